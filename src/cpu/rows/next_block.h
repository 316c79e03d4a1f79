/*
 * A double buffer for images: the logits of the next block of rows are prefetched and copied while this block is
 * computed. Each class has some neighbouring lines of them, and classes are often a power of two apart, so that no
 * cache has room for all lines of a few rows: class by class, and no sooner than a group ahead.
 */
#ifndef ONEPASS_CPU_ROWS_NEXT_BLOCK_H
#define ONEPASS_CPU_ROWS_NEXT_BLOCK_H

#include "cpu/lines.h"
#include "cpu/rows/group.h"

#if defined(__AVX2__)
#define HAS_DOUBLE_BUFFER true
#else
#define HAS_DOUBLE_BUFFER false /* was not measured */
#endif

typedef struct next_block {
    const real *from; /* of the first row and class */
    int64_t apart;    /* from class to class, in numbers */
    int64_t rows, classes;
    real *into;           /* [group][class][row] */
    int64_t asked, ready; /* classes that were prefetched, and copied */
} next_block;

/* So many quarters of the classes up to `end` that are not there. A core has room for a dozen lines on their way. */
ALWAYS_INLINE void prefetch_next_block(next_block *next, int64_t end, int64_t quarters) {
    const int64_t up_to = !HAS_DOUBLE_BUFFER ? 0 : next->ready + ((end - next->ready) * quarters + 3) / 4;
    for (; next->asked < up_to; next->asked++) {
        const real *from = next->from + next->asked * next->apart;
        for (int64_t row = 0; row < next->rows; row += CACHE_LINE / (int64_t)sizeof(real))
            __builtin_prefetch(from + row);
    }
}

static void copy_next_block(next_block *next, int64_t end) {
    for (; HAS_DOUBLE_BUFFER && next->rows && next->ready < end; next->ready++) {
        const real *from = next->from + next->ready * next->apart;
        real *into = next->into + next->ready * ROWS_ASIDE;
        for (int64_t row = 0; row < next->rows; row += ROWS_ASIDE, into += next->classes * ROWS_ASIDE)
            EACH_ROW_ASIDE(into[r] = from[row + r])
    }
}

#endif
