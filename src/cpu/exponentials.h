/*
 * A tile of logits: its largest, its exponentials, and their sum in the order without those that lead.
 */
#ifndef ONEPASS_CPU_EXPONENTIALS_H
#define ONEPASS_CPU_EXPONENTIALS_H

#include "cpu/buffers.h"
#include "cpu/neon_exponentials.h"
#include "math/row.h"

/* ------------------------------------------------------------ exponentials -- */

/* What the terms of a tile are made of: its shift takes the place of a loss's parameters. */
enum {
    FACTOR,
    FACTOR_LOW,
    ANCHOR,
    WHOLE,
    LOWEST
};

static tile tile_of_logits(const softmax *softmax, const softmax_shift *shift, const real *z) {
    tile tile = {.operand = {z, z, z}};
    tile.parameter[FACTOR] = softmax->factor;
    tile.parameter[FACTOR_LOW] = softmax->factor_low;
    tile.parameter[ANCHOR] = shift->anchor;
    tile.parameter[WHOLE] = shift->n;
    tile.parameter[LOWEST] = shift->lowest;
    return tile;
}

ALWAYS_INLINE real exponential_term(const tile *tile, int64_t i) {
    const softmax softmax = {tile->parameter[FACTOR], tile->parameter[FACTOR_LOW], 0, 0};
    const softmax_shift shift = {.n = tile->parameter[WHOLE], .lowest = tile->parameter[LOWEST]};
    return softmax_exponential(&softmax, &shift, read_real(tile, 0, i) - tile->parameter[ANCHOR]);
}

#if defined(__aarch64__)

/* Those of some logits of a tile. */
static void exponentiate(const tile *tile, int64_t first, int64_t count, real *e) {
    const softmax softmax = {.factor = tile->parameter[FACTOR], .factor_low = tile->parameter[FACTOR_LOW]};
    const reals anchor = NEON(vdupq_n)(tile->parameter[ANCHOR]), lowest = NEON(vdupq_n)(tile->parameter[LOWEST]),
                rounder = NEON(vdupq_n)(SOFTMAX_ROUNDER - tile->parameter[WHOLE]);
    const neon_shift shift = {&anchor, &lowest, &rounder, 1};
    const real *z = (const real *)tile->operand[0] + first;
    int64_t i = 0;
    for (; i + MOST_VECTORS * REALS <= count; i += MOST_VECTORS * REALS)
        exponentiate_vectors(&softmax, &shift, z + i, MOST_VECTORS, e + i);
    for (; i + REALS <= count; i += REALS)
        exponentiate_vectors(&softmax, &shift, z + i, 1, e + i);
    for (; i < count; i++)
        e[i] = exponential_term(tile, first + i);
}

#else

/* Those of some logits of a tile. */
static void exponentiate(const tile *given, int64_t first, int64_t count, real *e) {
    const tile tile = *given;
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        e[i] = exponential_term(&tile, first + i);
}

/* ----------------------------------------------------------------- largest -- */

/* Places that have a largest number of their own: enough of them that a vector does not wait for the one before. */
#define PLACES 64

typedef struct largest_places {
    _Alignas(64) real largest[PLACES];
    real_bits is_nan[PLACES]; /* looked for apart, since comparisons with NaN are false */
} largest_places;

ALWAYS_INLINE void see_place(largest_places *places, int64_t i, real z) {
    places->largest[i] = z > places->largest[i] ? z : places->largest[i];
    places->is_nan[i] |= (real_bits)(z != z);
}

/* Two numbers, of which one comparison says whether there is a NaN. */
ALWAYS_INLINE void see_two(largest_places *places, int64_t i, real z, real other) {
    const real larger = z > places->largest[i] ? z : places->largest[i];
    places->largest[i] = other > larger ? other : larger;
    places->is_nan[i] |= (real_bits)__builtin_isunordered(z, other);
}

/* The places of the second half are seen by the first; vectors where `half` is known. */
ALWAYS_INLINE void fold_places(largest_places *places, int64_t half) {
#pragma omp simd
    for (int64_t i = 0; i < half; i++) {
        see_place(places, i, places->largest[i + half]);
        places->is_nan[i] |= places->is_nan[i + half];
    }
}

/* The largest of numbers, or NaN if one is; -0 is 0. Compilers know no reduction by such a maximum, so the loops have
 * none. */
static real largest_of(const real *z, int64_t count) {
    largest_places places;
    int64_t first = 0;
#pragma omp simd
    for (int64_t i = 0; i < PLACES; i++) {
        places.largest[i] = -REAL_INFINITY;
        places.is_nan[i] = 0;
    }
    for (; first + 2 * PLACES <= count; first += 2 * PLACES) {
#pragma omp simd
        for (int64_t i = 0; i < PLACES; i++)
            see_two(&places, i, z[first + i], z[first + PLACES + i]);
    }
    if (first + PLACES <= count) {
#pragma omp simd
        for (int64_t i = 0; i < PLACES; i++)
            see_place(&places, i, z[first + i]);
        first += PLACES;
    }
    for (int64_t i = 0; first + i < count; i++)
        see_place(&places, i, z[first + i]);
    fold_places(&places, PLACES / 2);
    fold_places(&places, PLACES / 4);
    fold_places(&places, PLACES / 8);
    for (int64_t half = PLACES / 16; half > 0; half /= 2)
        fold_places(&places, half);
    return places.is_nan[0] ? REAL_NAN : places.largest[0] + 0;
}

#endif

/* --------------------------------------------------------------------- sum -- */

/* The sum of a tile's exponentials without those that lead, which are all alike. Their sum is apart. All are left in e,
 * if that is not where the terms are. */
static double sum_without_leading(const tile *tile, int count, real most, real *e, real *terms, double *leading) {
    real_bits leaders = 0;
    double sum;
    exponentiate(tile, 0, count, e);
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
