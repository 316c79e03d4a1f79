/* What the memory of a CPU allows: loops that read two arrays, and write a third of them or not, and do nothing else.
 */
#ifndef ONEPASS_CLI_CPU_LIMITS_H
#define ONEPASS_CLI_CPU_LIMITS_H

#include <stdbool.h>
#include <stddef.h>

/* Arrays are read in steps of so many bytes: they have room for the last one, and begin at a multiple of it. */
enum {
    LIMIT_STEP = 128
};

typedef struct limit_work {
    const void *a, *b;
    void *c;      /* null: nothing is written */
    size_t bytes; /* of each array */
    int threads;
    int loop; /* which one; the fastest depends on the processor and the size */
} limit_work;

/* How many loops there are that write, or that only read. */
int limit_loops(bool writes);

void limit_run(const limit_work *work);

#endif
