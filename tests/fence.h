/* Memory with nothing readable before and behind it: what poison cannot show, a load beyond the last element, dies
 * there. Whoever includes this defines _DEFAULT_SOURCE or _GNU_SOURCE first. */
#ifndef ONEPASS_TESTS_FENCE_H
#define ONEPASS_TESTS_FENCE_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct fenced {
    char *all;
    char *begin;
    size_t bytes;
    size_t page;
} fenced;

static inline fenced fence(size_t bytes) {
    fenced f;
    f.page = (size_t)sysconf(_SC_PAGESIZE);
    f.bytes = (bytes + f.page - 1) / f.page * f.page;
    f.all = mmap(NULL, f.bytes + 2 * f.page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (f.all == MAP_FAILED || mprotect(f.all + f.page, f.bytes, PROT_READ | PROT_WRITE) != 0) {
        perror("mmap");
        exit(1);
    }
    f.begin = f.all + f.page;
    return f;
}

#endif
