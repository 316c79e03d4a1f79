/* A group of rows side by side. */
#ifndef ONEPASS_CPU_ROWS_GROUP_H
#define ONEPASS_CPU_ROWS_GROUP_H

#include "order.h"

#include "cpu/vector_exponentials.h"
#include "math/row.h"

/* Enough of them that vectors do not wait for each other: with 16, which are one or two vectors of floats, AVX-512 and
 * AVX2 took a fifth longer. More would take more stack. */
#if defined(__AVX2__) && !defined(ONEPASS_REAL_F64)
#define ROWS_ASIDE 32
#else
#define ROWS_ASIDE 16
#endif

#define EACH_ROW_ASIDE(statement)                                                                                      \
    _Pragma("omp simd") for (int64_t r = 0; r < ROWS_ASIDE; r++) {                                                     \
        statement;                                                                                                     \
    }

/* A group of rows; a number a row, where not said otherwise. Numbers begin with a cache line, and the compiler knows
 * it: else loops over rows begin and end with numbers one by one. */
typedef struct group {
    real *z; /* [class][row]: logits, then exponentials, then slopes */
    int64_t classes;
    int64_t first;     /* row */
    int count;         /* of rows that there are */
    bool has_absent;   /* rows that take no part */
    bool has_upstream; /* an upstream gradient that is not 1 */
    bool is_calm;      /* of all rows, if somebody looked: softmax_is_calm() */

    _Alignas(64) int64_t label[ROWS_ASIDE];
    int64_t takes_part[ROWS_ASIDE];                      /* 1 or 0, as wide as what it chooses */
    double class_weight[ROWS_ASIDE], weight[ROWS_ASIDE]; /* of the label; of the row */

    /* The state but for the largest logit, ... */
    double others[ROWS_ASIDE], own[ROWS_ASIDE], lse[ROWS_ASIDE], weights[ROWS_ASIDE];
    /* ... and what row_sums has beside it, with the sum of u (largest - z). */
    double weighted[ROWS_ASIDE], weighted_loss[ROWS_ASIDE];

    double nll[ROWS_ASIDE], per_sum[ROWS_ASIDE], own_share[ROWS_ASIDE], others_share[ROWS_ASIDE];
    /* What the loss makes of them, as in row_slopes; then `value` is times the row's weight. */
    double value[ROWS_ASIDE], of_exponentials[ROWS_ASIDE], of_weights[ROWS_ASIDE], of_own[ROWS_ASIDE];

    /* Of the logits. */
    _Alignas(64) real largest[ROWS_ASIDE];                      /* or NaN */
    real anchor[ROWS_ASIDE], n[ROWS_ASIDE], lowest[ROWS_ASIDE]; /* of the shift */
#if ONEPASS_HAS_REALS && !defined(__aarch64__)
    real smallest[ROWS_ASIDE]; /* or NaN */
#endif
    /* Slopes are e f - u b, the label's own apart, all times the upstream gradient. */
    real f[ROWS_ASIDE], b[ROWS_ASIDE], own_slope[ROWS_ASIDE], upstream[ROWS_ASIDE];

    _Alignas(64) int32_t own_place[ROWS_ASIDE]; /* of the label in z */
} group;

#endif
