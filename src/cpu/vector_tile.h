/* What the CPU engine hands to the functions of a vector loss: vectors.c fills tiles, vector_unit.c computes them. */
#ifndef ONEPASS_CPU_VECTOR_TILE_H
#define ONEPASS_CPU_VECTOR_TILE_H

#include "engine.h"
#include "order.h"
#include "vector_sums.h"

/* Up to ORDER_TILE elements of a row, as `real` without gaps. */
typedef struct vector_tile {
    const real *operand[MOST_OPERANDS]; /* those that the loss does not have are another's */
    int64_t count;
    bool in_memory;  /* the operands are where the caller has them, and not in a buffer */
    bool has_slopes; /* else sums that are for slopes alone may be left out, as 0 */
    int64_t own;     /* element of a loss with labels, if it is one of these, ... */
    real own_score;  /* ... which stands beside each of them */
    double parameter[ONEPASS_MAX_PARAMETERS];
} vector_tile;

/* `sums` leaves one number for each of the loss's sums; a gradient is made of the row's factors. */
typedef struct REAL_NAME(cpu_vector) {
    void (*sums)(const vector_tile *tile, double *sum);
    void (*gradient[MOST_OPERANDS])(const vector_tile *tile, const double *factor, real *gradient);
} cpu_vector;

#endif
