/*
 * Logits of an image's next block of rows, which come while this one is computed: each class has some neighbouring
 * lines of them, and classes are often a power of two apart, so that no cache has room for all lines of a few rows.
 * They are asked for class by class, no sooner than a group ahead, and copied to the other half of the buffer.
 */
#ifndef ONEPASS_CPU_ROWS_COMING_H
#define ONEPASS_CPU_ROWS_COMING_H

#include "cpu/lines.h"
#include "cpu/rows/group.h"

#if defined(__AVX2__)
#define BRINGS_AHEAD true
#else
#define BRINGS_AHEAD false /* was not measured */
#endif

typedef struct coming {
    const real *from; /* of the first row and class */
    int64_t apart;    /* from class to class, in numbers */
    int64_t rows, classes;
    real *into;           /* [group][class][row] */
    int64_t asked, ready; /* classes that were asked for, and copied */
} coming;

/* For so many quarters of the classes up to `end` that are not there. A core has room for a dozen lines on their way.
 */
ALWAYS_INLINE void ask_for_coming(coming *coming, int64_t end, int64_t quarters) {
    const int64_t up_to = !BRINGS_AHEAD ? 0 : coming->ready + ((end - coming->ready) * quarters + 3) / 4;
    for (; coming->asked < up_to; coming->asked++) {
        const real *from = coming->from + coming->asked * coming->apart;
        for (int64_t row = 0; row < coming->rows; row += CACHE_LINE / (int64_t)sizeof(real))
            __builtin_prefetch(from + row);
    }
}

static void copy_coming(coming *coming, int64_t end) {
    for (; BRINGS_AHEAD && coming->rows && coming->ready < end; coming->ready++) {
        const real *from = coming->from + coming->ready * coming->apart;
        real *into = coming->into + coming->ready * ROWS_ASIDE;
        for (int64_t row = 0; row < coming->rows; row += ROWS_ASIDE, into += coming->classes * ROWS_ASIDE)
            EACH_ROW_ASIDE(into[r] = from[row + r])
    }
}

#endif
