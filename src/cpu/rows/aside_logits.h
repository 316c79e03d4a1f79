/*
 * From a group's logits to their exponentials: rows side by side.
 */
#ifndef ONEPASS_CPU_ROWS_ASIDE_LOGITS_H
#define ONEPASS_CPU_ROWS_ASIDE_LOGITS_H

#include "cpu/rows/group.h"

static void find_shifts(const softmax *given, const softmax_scale *given_scale, group *group) {
    const softmax softmax = *given;
    const softmax_scale scale = *given_scale;
#pragma omp simd
    for (int64_t r = 0; r < ROWS_ASIDE; r++) {
        const softmax_shift shift = softmax_shift_aside(&softmax, &scale, group->largest[r]);
        group->anchor[r] = shift.anchor;
        group->n[r] = shift.n;
        group->lowest[r] = shift.lowest;
    }
}

#if defined(__aarch64__)

/* --------------------------------------------------------------------- Arm -- */

#define VECTORS_ASIDE (ROWS_ASIDE / REALS)

/* What the logits of a vector of rows lie between; NaN if one is. */
typedef struct rows_range {
    reals largest, smallest;
} rows_range;

ALWAYS_INLINE rows_range range_at(const real *z) {
    return (rows_range){load_reals(z), load_reals(z)};
}

ALWAYS_INLINE rows_range joined_range(rows_range a, rows_range b) {
    return (rows_range){NEON(vmaxq)(a.largest, b.largest), NEON(vminq)(a.smallest, b.smallest)};
}

/* Keeps the largest of a vector of rows, and the shift that they have if they are as nearly all are: softmax_is_calm(),
 * in which case all bits are set. */
ALWAYS_INLINE reals_bits shift_calm_rows(const softmax *softmax, rows_range range, int64_t r, group *group) {
    const reals largest = reals_plus(range.largest, each_real(0)); /* -0 is 0 */
    const reals product = reals_times(largest, each_real(softmax->factor));
    const reals n = reals_plus(NEON(vrndpq)(product), each_real(0));
    const reals least = reals_times(reals_less(n, each_real(SOFTMAX_RANGE - 3)), each_real(softmax->per_factor));
    store_reals(group->largest + r, largest);
    store_reals(group->n + r, n);
    return SIGNED_BITS(NEON(vcaltq)(product, each_real(SOFTMAX_LARGEST))) &
           SIGNED_BITS(NEON(vcgtq)(range.smallest, least));
}

ALWAYS_INLINE void know_calm(reals_bits calm, group *group) {
    group->is_calm = vminvq_u32((uint32x4_t)calm) != 0;
    if (!group->is_calm)
        EACH_ROW_ASIDE(group->largest[r] = canonical(group->largest[r]))
}

/* And the shifts. Four vectors of rows at a time, each of which has a name: gcc stores arrays of them at each class. */
static void find_largest(const softmax *given, group *group) {
    const softmax softmax = *given;
    reals_bits calm = each_bits(-1);
    for (int64_t r = 0; r < ROWS_ASIDE; r += 4 * REALS) {
        const real *z = group->z + r;
        rows_range a = range_at(z), b = range_at(z + REALS), c = range_at(z + 2 * REALS), d = range_at(z + 3 * REALS);
        for (int64_t class = 1; class < group->classes; class ++) {
            z += ROWS_ASIDE;
            a = joined_range(a, range_at(z));
            b = joined_range(b, range_at(z + REALS));
            c = joined_range(c, range_at(z + 2 * REALS));
            d = joined_range(d, range_at(z + 3 * REALS));
        }
        calm &= shift_calm_rows(&softmax, a, r, group) & shift_calm_rows(&softmax, b, r + REALS, group) &
                shift_calm_rows(&softmax, c, r + 2 * REALS, group) & shift_calm_rows(&softmax, d, r + 3 * REALS, group);
    }
    know_calm(calm, group);
}

/* In the place of the logits. */
ALWAYS_INLINE void exponentiate_kind(const softmax *given, logits_kind kind, group *group) {
    const softmax softmax = *given;
    real *z = group->z;
    reals anchor[VECTORS_ASIDE], lowest[VECTORS_ASIDE], rounder[VECTORS_ASIDE];
    for (int64_t i = 0; i < VECTORS_ASIDE; i++) {
        anchor[i] = load_reals(group->anchor + i * REALS);
        lowest[i] = load_reals(group->lowest + i * REALS);
        rounder[i] = reals_less(each_real(SOFTMAX_ROUNDER), load_reals(group->n + i * REALS));
    }
    const vector_shift shift = {anchor, lowest, rounder, VECTORS_ASIDE};
    const int64_t count = group->classes * ROWS_ASIDE;
    int64_t i = 0;
    for (; i + MOST_VECTORS * REALS <= count; i += MOST_VECTORS * REALS)
        exponentiate_vectors(&softmax, &shift, kind, z + i, MOST_VECTORS, z + i);
    if (i < count) /* a last class */
        exponentiate_vectors(&softmax, &shift, kind, z + i, VECTORS_ASIDE, z + i);
}

/* A function of its own, which leaves more registers to the others: steps took a twentieth longer otherwise. */
static __attribute__((noinline)) void exponentiate_aside(const softmax *softmax, const softmax_scale *scale,
                                                         group *group) {
    if (group->is_calm) {
        exponentiate_kind(softmax, LOGITS_CALM, group);
        return;
    }
    find_shifts(softmax, scale, group);
    exponentiate_kind(softmax, LOGITS_ANY, group);
}

#elif ONEPASS_HAS_REALS

/* ----------------------------------------------------------------- AVX-512 -- */

#define VECTORS_ASIDE (ROWS_ASIDE / REALS)

/* And the smallest, while the numbers are at hand. */
static void find_largest(const softmax *softmax, group *group) {
    (void)softmax;
    const reals nan = each_real(REAL_NAN);
    reals largest[VECTORS_ASIDE], smallest[VECTORS_ASIDE];
    __mmask16 ordered[VECTORS_ASIDE];
    for (int64_t i = 0; i < VECTORS_ASIDE; i++) {
        largest[i] = smallest[i] = load_reals(group->z + i * REALS);
        ordered[i] = _mm512_cmp_ps_mask(largest[i], largest[i], _CMP_ORD_Q);
    }
    for (int64_t class = 1; class < group->classes; class ++)
        for (int64_t i = 0; i < VECTORS_ASIDE; i++) {
            const reals z = load_reals(group->z + class * ROWS_ASIDE + i * REALS);
            ordered[i] = _mm512_mask_cmp_ps_mask(ordered[i], z, z, _CMP_ORD_Q);
            largest[i] = _mm512_max_ps(z, largest[i]);
            smallest[i] = _mm512_min_ps(z, smallest[i]);
        }
    for (int64_t i = 0; i < VECTORS_ASIDE; i++) { /* -0 is 0 */
        store_reals(group->largest + i * REALS, _mm512_mask_add_ps(nan, ordered[i], largest[i], each_real(0)));
        store_reals(group->smallest + i * REALS, _mm512_mask_mov_ps(nan, ordered[i], smallest[i]));
    }
}

/* Whether all rows are as nearly all are, whose exponentials take fewer steps: see softmax_is_calm(). An infinite
 * logit, of which the shift says nothing, is not. */
static bool is_calm_aside(const softmax *softmax, const group *group) {
    __mmask16 calm = 0xffff;
    for (int64_t i = 0; i < ROWS_ASIDE; i += REALS) {
        const reals n = load_reals(group->n + i);
        const reals least = reals_times(reals_less(n, each_real(SOFTMAX_RANGE - 3)), each_real(softmax->per_factor));
        calm = _mm512_mask_cmp_ps_mask(calm, load_reals(group->anchor + i), each_real(0), _CMP_EQ_OQ);
        calm = _mm512_mask_cmp_ps_mask(calm, load_reals(group->smallest + i), least, _CMP_GT_OQ);
        calm = _mm512_mask_cmp_ps_mask(calm, load_reals(group->largest + i), each_real(REAL_INFINITY), _CMP_LT_OQ);
    }
    return calm == 0xffff;
}

/* Where the labels' are, and what they are once they were found. */
typedef struct own_exponentials {
    reals_bits place[VECTORS_ASIDE]; /* in z, less the row's number within its vector */
    reals e[VECTORS_ASIDE];
} own_exponentials;

/* Of some vectors of neighbouring classes. Where the label's was there is a 0: stored one by one, these would hold up
 * whoever reads vectors of them. */
ALWAYS_INLINE void exponentiate_classes(const softmax *softmax, const vector_shift *shift, logits_kind kind,
                                        int64_t first, int vectors, real *z, own_exponentials *own) {
    reals shifted[MOST_VECTORS], e[MOST_VECTORS];
    begin_exponentials(softmax, shift, kind, z + first, REALS, vectors, shifted, e);
    for (int i = 0; i < vectors; i++) {
        const int row = i % VECTORS_ASIDE;
        const reals_bits place = each_bits((real_bits)(first + i * REALS));
        const __mmask16 is_own = _mm512_cmpeq_epi32_mask(own->place[row], place);
        e[i] = end_exponential(kind, shifted[i], e[i]);
        own->e[row] = _mm512_mask_mov_ps(own->e[row], is_own, e[i]);
        store_reals(z + first + i * REALS, _mm512_mask_mov_ps(e[i], is_own, each_real(0)));
    }
}

/* In the place of the logits. Two classes at a time: of four, gcc leaves vectors in memory, and rows of 10 classes took
 * a tenth longer. */
ALWAYS_INLINE void exponentiate_kind(const softmax *given, logits_kind kind, group *group) {
    const softmax softmax = *given;
    const reals_bits number = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    reals anchor[VECTORS_ASIDE], lowest[VECTORS_ASIDE], rounder[VECTORS_ASIDE];
    own_exponentials own;
    for (int64_t i = 0; i < VECTORS_ASIDE; i++) {
        anchor[i] = load_reals(group->anchor + i * REALS);
        lowest[i] = load_reals(group->lowest + i * REALS);
        rounder[i] = reals_less(each_real(SOFTMAX_ROUNDER), load_reals(group->n + i * REALS));
        own.place[i] = _mm512_sub_epi32(_mm512_loadu_si512(group->own_place + i * REALS), number);
        own.e[i] = each_real(0);
    }
    const vector_shift shift = {anchor, lowest, rounder, VECTORS_ASIDE};
    const int64_t count = group->classes * ROWS_ASIDE;
    int64_t i = 0;
    for (; i + 2 * ROWS_ASIDE <= count; i += 2 * ROWS_ASIDE)
        exponentiate_classes(&softmax, &shift, kind, i, 2 * VECTORS_ASIDE, group->z, &own);
    if (i < count) /* a last class */
        exponentiate_classes(&softmax, &shift, kind, i, VECTORS_ASIDE, group->z, &own);
    for (i = 0; i < VECTORS_ASIDE; i++) {
        double *e = group->own + i * REALS;
        _mm512_storeu_pd(e, _mm512_cvtps_pd(_mm512_castps512_ps256(own.e[i])));
        _mm512_storeu_pd(e + REALS / 2, _mm512_cvtps_pd(_mm512_extractf32x8_ps(own.e[i], 1)));
    }
}

static void exponentiate_aside(const softmax *softmax, const softmax_scale *scale, group *group) {
    find_shifts(softmax, scale, group);
    group->is_calm = is_calm_aside(softmax, group);
    if (group->is_calm)
        exponentiate_kind(softmax, LOGITS_CALM, group);
    else
        exponentiate_kind(softmax, LOGITS_ANY, group);
}

#else

/* --------------------------------------------------------- any other vectors -- */

static void find_largest(const softmax *softmax, group *group) {
    (void)softmax;
    real largest[ROWS_ASIDE];
    real_bits is_nan[ROWS_ASIDE];
    EACH_ROW_ASIDE(largest[r] = -REAL_INFINITY; is_nan[r] = 0)
    for (int64_t class = 0; class < group->classes; class ++) {
        const real *z = group->z + class * ROWS_ASIDE;
        EACH_ROW_ASIDE(largest[r] = z[r] > largest[r] ? z[r] : largest[r];
                       is_nan[r] |= (real_bits)0 - (real_bits)(z[r] != z[r]))
    }
    EACH_ROW_ASIDE(group->largest[r] = choose(is_nan[r] != 0, REAL_NAN, largest[r] + 0)) /* -0 is 0 */
}

/* In the place of the logits. */
static void exponentiate_aside(const softmax *given, const softmax_scale *scale, group *group) {
    const softmax softmax = *given;
    find_shifts(given, scale, group);
    real anchor[ROWS_ASIDE], n[ROWS_ASIDE], lowest[ROWS_ASIDE];
    EACH_ROW_ASIDE(anchor[r] = group->anchor[r]; n[r] = group->n[r]; lowest[r] = group->lowest[r])
    for (int64_t class = 0; class < group->classes; class ++) {
        real *z = group->z + class * ROWS_ASIDE;
#pragma omp simd
        for (int64_t r = 0; r < ROWS_ASIDE; r++) {
            softmax_shift shift; /* member by member: of one with zeros in it gcc 13 makes no vectors */
            shift.n = n[r];
            shift.lowest = lowest[r];
            z[r] = softmax_exponential(&softmax, &shift, z[r] - anchor[r]);
        }
    }
}

#endif

/* The labels' exponentials, which have a 0 in their place then. */
static void take_own_exponentials(group *group) {
#if defined(__aarch64__) || !ONEPASS_HAS_REALS
    for (int r = 0; r < ROWS_ASIDE; r++) {
        group->own[r] = (double)group->z[group->own_place[r]];
        group->z[group->own_place[r]] = 0;
    }
#else
    (void)group; /* AVX-512 has done so */
#endif
}

#endif
