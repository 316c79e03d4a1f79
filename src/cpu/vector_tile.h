/* What the CPU engine hands to the functions of a vector loss: vectors.c fills tiles, vector_unit.c computes them. */
#ifndef ONEPASS_CPU_VECTOR_TILE_H
#define ONEPASS_CPU_VECTOR_TILE_H

#include "engine.h"
#include "order.h"
#include "vector_sums.h"

/* Up to ORDER_TILE elements of a row, as `real` without gaps, or of several rows, one behind the other. */
typedef struct vector_tile {
    const real *operand[MOST_OPERANDS]; /* those that the loss does not have are another's */
    int64_t rows, count;                /* so many elements of each row */
    bool is_followed;                   /* the operands are where the caller has them, and more of them lie behind */
    const char *source[MOST_OPERANDS];  /* where the caller has those that were converted from 16 bits, ... */
    bool has_source;                    /* ... if all were, and more of them lie behind */
    int64_t beyond;                     /* so many elements more than a tile: what comes next lies as much farther on */
    bool has_slopes;                    /* else sums that are for slopes alone may be left out, as 0 */
    int64_t own;                        /* element of a loss with labels, if it is one of these, ... */
    real own_score;                     /* ... which stands beside each of them */
    double parameter[ONEPASS_MAX_PARAMETERS];
} vector_tile;

#define SOURCE_SIZE 2 /* bytes of such a number */

/* Whether losses have elements' numbers kept. */
#if defined(__ARM_NEON) && !defined(__ARM_FEATURE_SVE)
#define HAS_KEPT_NUMBERS 1
#else
#define HAS_KEPT_NUMBERS 0
#endif

/* `sums` leaves one number for each row and each of the loss's sums, and 0 behind them; a gradient is made of the rows'
 * factors. */
typedef double tile_sums[VECTOR_MOST_SUMS];

/* `keep`, where it is not null, writes what the others want for each element as the third operand of a tile that has
 * slopes. */
typedef struct REAL_NAME(cpu_vector) {
    void (*keep)(const vector_tile *tile, real *kept);
    void (*sums)(const vector_tile *tile, tile_sums *sum);
    void (*gradient[MOST_OPERANDS])(const vector_tile *tile, const vector_slopes *slopes, real *gradient);
} cpu_vector;

#endif
