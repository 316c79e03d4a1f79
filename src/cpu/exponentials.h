/*
 * A tile of logits: its exponentials, and their sum in the order without those that lead.
 */
#ifndef ONEPASS_CPU_EXPONENTIALS_H
#define ONEPASS_CPU_EXPONENTIALS_H

#include "cpu/buffers.h"
#include "cpu/tile_range.h"
#include "cpu/vector_exponentials.h"
#include "math/row.h"

/* ------------------------------------------------------------ exponentials -- */

/* What the terms of a tile are made of: its shift takes the place of a loss's parameters. */
enum {
    FACTOR,
    FACTOR_LOW,
    ANCHOR,
    WHOLE,
    LOWEST,
    CALM,  /* 1 or 0 */
    ASKED, /* 1: what comes first of the memory behind was asked for already; or 0 */
};

/* `smallest` of them, or -inf if nobody knows. */
static tile tile_of_logits(const softmax *softmax, const softmax_shift *shift, real smallest, const real *z) {
    tile tile = {.operand = {z, z, z}};
    tile.parameter[FACTOR] = softmax->factor;
    tile.parameter[FACTOR_LOW] = softmax->factor_low;
    tile.parameter[ANCHOR] = shift->anchor;
    tile.parameter[WHOLE] = shift->n;
    tile.parameter[LOWEST] = shift->lowest;
    tile.parameter[CALM] = softmax_is_calm(softmax, shift, smallest);
    return tile;
}

ALWAYS_INLINE real exponential_term(const tile *tile, int64_t i) {
    const softmax softmax = {tile->parameter[FACTOR], tile->parameter[FACTOR_LOW], 0, 0};
    const softmax_shift shift = {.n = tile->parameter[WHOLE], .lowest = tile->parameter[LOWEST]};
    return softmax_exponential(&softmax, &shift, read_real(tile, 0, i) - tile->parameter[ANCHOR]);
}

ALWAYS_INLINE real calm_exponential_term(const tile *tile, int64_t i) {
    const softmax softmax = {tile->parameter[FACTOR], tile->parameter[FACTOR_LOW], 0, 0};
    const softmax_shift shift = {.n = tile->parameter[WHOLE]};
    return softmax_exponential_above(&softmax, &shift, read_real(tile, 0, i));
}

#if ONEPASS_HAS_REALS

/* On Arm, while some vectors from the given element on are exponentiated: as many of the next tile, which lies behind
 * the second operand, and of the third operand, which will be read after this tile. A line or two of each. */
ALWAYS_INLINE void ask_for_next(const tile *tile, int64_t element, bool has_third) {
#if defined(__aarch64__)
    const int64_t size = tile->stride[1], bytes = MOST_VECTORS * REALS * size;
    const char *next = (const char *)tile->operand[1] + (ORDER_TILE + element) * size;
    const char *other = (const char *)tile->operand[2] + element * size;
    if (!tile->prefetch_operands)
        return;
    __builtin_prefetch(next);
    __builtin_prefetch(next + bytes / 2);
    if (has_third) {
        __builtin_prefetch(other);
        __builtin_prefetch(other + bytes / 2);
    }
#else
    (void)tile, (void)element, (void)has_third;
#endif
}

ALWAYS_INLINE void exponentiate_some(const tile *tile, logits_kind kind, int64_t first, int64_t count, real *e) {
    const softmax softmax = {.factor = tile->parameter[FACTOR], .factor_low = tile->parameter[FACTOR_LOW]};
    const reals anchor = each_real(tile->parameter[ANCHOR]), lowest = each_real(tile->parameter[LOWEST]),
                rounder = each_real(SOFTMAX_ROUNDER - tile->parameter[WHOLE]);
    const vector_shift shift = {&anchor, &lowest, &rounder, 1};
    const real *z = (const real *)tile->operand[0] + first;
    real rest[REALS];
    int64_t i = 0;
    for (; i + MOST_VECTORS * REALS <= count; i += MOST_VECTORS * REALS) {
        ask_for_next(tile, first + i, true);
        exponentiate_vectors(&softmax, &shift, kind, z + i, MOST_VECTORS, e + i);
    }
    for (; i + REALS <= count; i += REALS)
        exponentiate_vectors(&softmax, &shift, kind, z + i, 1, e + i);
    if (i == count)
        return;
    memset(rest, 0, sizeof rest);
    memcpy(rest, z + i, (size_t)(count - i) * sizeof *z);
    exponentiate_vectors(&softmax, &shift, kind, rest, 1, rest);
    memcpy(e + i, rest, (size_t)(count - i) * sizeof *e);
}

#else

ALWAYS_INLINE void exponentiate_some(const tile *given, logits_kind kind, int64_t first, int64_t count, real *e) {
    const tile tile = *given; /* which has no address that others know */
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        e[i] = kind == LOGITS_CALM ? calm_exponential_term(&tile, first + i) : exponential_term(&tile, first + i);
}

#endif

/* Apart: in one function gcc keeps the vectors of one of them on the stack as well. */
static __attribute__((noinline)) void exponentiate_calm(const tile *tile, int64_t first, int64_t count, real *e) {
    exponentiate_some(tile, LOGITS_CALM, first, count, e);
}

static __attribute__((noinline)) void exponentiate_any(const tile *tile, int64_t first, int64_t count, real *e) {
    exponentiate_some(tile, LOGITS_ANY, first, count, e);
}

static __attribute__((noinline)) void exponentiate_plain(const tile *tile, int64_t first, int64_t count, real *e) {
    exponentiate_some(tile, LOGITS_WITHOUT_ANCHOR, first, count, e);
}

/* Those of some logits of a tile. */
static void exponentiate(const tile *tile, int64_t first, int64_t count, real *e) {
    if (FINDS_SMALLEST && tile->parameter[CALM] != 0)
        exponentiate_calm(tile, first, count, e);
    else if (!FINDS_SMALLEST && tile->parameter[ANCHOR] == 0)
        exponentiate_plain(tile, first, count, e);
    else
        exponentiate_any(tile, first, count, e);
}

/* Of the next tile, while this one is exponentiated. */
ALWAYS_INLINE void prefetch_logits(const tile *tile, int64_t element, int64_t count) {
    if (!CAN_PREFETCH || !tile->prefetch_operands)
        return;
    if (tile->stride[1] == sizeof(real)) /* so that there is no loop */
        prefetch(tile->operand[1], sizeof(real), element, count, false);
    else
        prefetch(tile->operand[1], tile->stride[1], element, count, false);
}

/* Prefetches what will be needed, for so many logits from the given one on. */
typedef void ask_function(const tile *tile, int64_t element, int64_t count);

/* A line at a time, while other memory is asked for. */
ALWAYS_INLINE void exponentiate_lines(const tile *tile, logits_kind kind, ask_function *ask, int64_t count, real *e) {
    int64_t first = 0;
    for (; first + ORDER_LANES <= count; first += ORDER_LANES) {
        ask(tile, first, ORDER_LANES);
        exponentiate_some(tile, kind, first, ORDER_LANES, e + first);
    }
    if (first < count) {
        ask(tile, first, count - first);
        exponentiate_some(tile, kind, first, count - first, e + first);
    }
}

/* --------------------------------------------------------------------- sum -- */

/* The sum of a tile's exponentials, which are in e, without those that lead, which are all alike. Their sum is apart.
 * Where the terms are there is room for as many. */
static double sum_without_leading(int count, real most, const real *e, real *terms, double *leading) {
    real_bits leaders = 0;
    double sum;
#pragma omp simd reduction(+ : leaders)
    for (int64_t i = 0; i < count; i++) {
        leaders += (real_bits)(e[i] == most);
        terms[i] = choose(e[i] == most, 0, e[i]);
    }
    stored_sum(terms, count, &sum);
    *leading = (double)leaders * (double)most;
    return sum;
}

#endif
