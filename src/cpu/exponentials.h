/*
 * A tile of logits: its largest, its exponentials, and their sum in the order without those that lead.
 */
#ifndef ONEPASS_CPU_EXPONENTIALS_H
#define ONEPASS_CPU_EXPONENTIALS_H

#include "cpu/buffers.h"
#include "math/row.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(__aarch64__)

/* An instruction of Arm's has NaN win, which C has no word for: a fifth of a value's time otherwise. */
#if defined(ONEPASS_REAL_F64)
typedef float64x2_t reals;
#define LARGER_REALS(a, b) vmaxq_f64(a, b)
#define LARGEST_REAL(a)    vmaxvq_f64(a)
#define LOAD_REALS(z)      vld1q_f64(z)
#else
typedef float32x4_t reals;
#define LARGER_REALS(a, b) vmaxq_f32(a, b)
#define LARGEST_REAL(a)    vmaxvq_f32(a)
#define LOAD_REALS(z)      vld1q_f32(z)
#endif

#define REALS  (int64_t)(sizeof(reals) / sizeof(real)) /* of a vector */
#define PLACES 8                                       /* vectors that do not wait for each other */

/* The largest of numbers, or NaN if one is; -0 is 0. */
static real largest_of(const real *z, int64_t count) {
    real largest = -REAL_INFINITY;
    int64_t first = 0;
    if (count >= PLACES * REALS) {
        reals place[PLACES];
        for (int i = 0; i < PLACES; i++)
            place[i] = LOAD_REALS(z + i * REALS);
        for (first = PLACES * REALS; first + PLACES * REALS <= count; first += PLACES * REALS)
            for (int i = 0; i < PLACES; i++)
                place[i] = LARGER_REALS(place[i], LOAD_REALS(z + first + i * REALS));
        for (int half = PLACES / 2; half > 0; half /= 2)
            for (int i = 0; i < half; i++)
                place[i] = LARGER_REALS(place[i], place[i + half]);
        largest = LARGEST_REAL(place[0]);
    }
    for (; first < count; first++)
        largest = z[first] > largest || z[first] != z[first] ? z[first] : largest;
    return largest == largest ? largest + 0 : REAL_NAN;
}

#else

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
    for (; first + PLACES <= count; first += PLACES) {
#pragma omp simd
        for (int64_t i = 0; i < PLACES; i++)
            see_place(&places, i, z[first + i]);
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

/* The same, kept where the tile's gradient will be. */
ALWAYS_INLINE real kept_term(const tile *tile, int64_t i) {
    const real e = exponential_term(tile, i);
    tile->gradient[i] = e;
    return e;
}

/* The sum of a tile's exponentials without those that lead, which are all alike. Their sum is apart. */
static double sum_without_leading(const tile *given, int count, real most, real *terms, double *leading) {
    const tile tile = *given;
    real_bits leaders = 0;
    double sum;
#pragma omp simd reduction(+ : leaders)
    for (int64_t i = 0; i < count; i++) {
        const real e = exponential_term(&tile, i);
        leaders += (real_bits)(e == most);
        terms[i] = choose(e == most, 0, e);
    }
    stored_sum(terms, count, &sum);
    *leading = (double)leaders * (double)most;
    return sum;
}

#endif
