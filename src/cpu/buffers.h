/*
 * A thread's buffers, and what is done with a tile that lies in one: weights, masks and upstream gradients, and the sum
 * of terms that were computed before.
 */
#ifndef ONEPASS_CPU_BUFFERS_H
#define ONEPASS_CPU_BUFFERS_H

#include "cpu/lines.h"

/* What a tile's elements are multiplied by, or hidden by, where it does not lie in memory as the computation wants it.
 * Apart from the other buffers, since calls without it need that much less stack, and their sums with gradients take as
 * much. */
typedef struct factors {
    _Alignas(64) real upstream[ORDER_TILE];
    real weight[ORDER_TILE];
    real mask[ORDER_TILE];                       /* 0 and 1 */
    const void *constant_weight, *constant_mask; /* as in `buffers` */
} factors;

/* One thread's buffers, for what does not lie in memory as the computation wants it. They are on the stack, so they are
 * few: results leave theirs before the next are computed. */
typedef struct buffers {
    _Alignas(64) real operand[MOST_OPERANDS][ORDER_TILE];
    real result[ORDER_TILE]; /* values, or a gradient */
    /* Where the constant that fills operand[k] was read, so that a strip of the same row need not fill it again. */
    const void *constant[MOST_OPERANDS];
    factors *factors; /* null where the job has none */
} buffers;

/* Numbers times their weights, and a factor for all. */
ALWAYS_INLINE void weigh(real *x, int count, const real *weight, real factor) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        x[i] = canonical(x[i] * weight[i] * factor);
}

/* 0 where the mask is, whatever stands there. */
ALWAYS_INLINE void hide(real *x, int count, const real *mask) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        x[i] = choose(mask[i] != 0, x[i], 0);
}

/* The sum of one whole tile. */
ALWAYS_INLINE void one_sum(order_term *term, const real *first, const real *second, double *sum) {
    each_sum(term, prefetch_nothing, &(strip){.operand = {first, second, second}, .from_memory = true, .tiles = 1},
             sizeof(real), LINES_OF_SUMS_SHORT, sum);
}

/* The sum of a tile's terms that lie in a buffer, `count` of them. Missing terms are +0. */
static void stored_sum(real *terms, int count, double *sum) {
    memset(terms + count, 0, (size_t)(ORDER_TILE - count) * sizeof *terms);
    *sum = order_stored_lines(terms);
}

static void multiply_by_one(real *gradient, int count, real factor) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        gradient[i] = canonical(gradient[i] * factor);
}

ALWAYS_INLINE void multiply_by_each(real *gradient, int count, const real *factor) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        gradient[i] = canonical(gradient[i] * factor[i]);
}

#endif
