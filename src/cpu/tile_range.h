/* The largest and the smallest of a tile's logits. */
#ifndef ONEPASS_CPU_TILE_RANGE_H
#define ONEPASS_CPU_TILE_RANGE_H

#include "cpu/lines.h"
#include "cpu/vector_reals.h"
#include "math/softmax.h"

/* What a tile's logits lie between. */
typedef struct tile_range {
    real largest;  /* or NaN, if one is; -0 is 0 */
    real smallest; /* or less; anything if one is NaN */
} tile_range;

#if defined(__aarch64__)

/* --------------------------------------------------------------------- Arm -- */

/* An instruction of Arm's has NaN win, which C has no word for: a fifth of a value's time otherwise. Nobody looks for
 * the smallest: on a Neoverse N1 it took as long as is saved where a tile is calm. */
enum {
    FINDS_SMALLEST = false
};

static tile_range range_of(const real *z, int64_t count) {
    real largest = -REAL_INFINITY;
    int64_t first = 0;
    if (count >= MOST_VECTORS * REALS) {
        reals place[MOST_VECTORS];
        for (int i = 0; i < MOST_VECTORS; i++)
            place[i] = load_reals(z + i * REALS);
        for (first = MOST_VECTORS * REALS; first + MOST_VECTORS * REALS <= count; first += MOST_VECTORS * REALS)
            for (int i = 0; i < MOST_VECTORS; i++)
                place[i] = NEON(vmaxq)(place[i], load_reals(z + first + i * REALS));
        for (int half = MOST_VECTORS / 2; half > 0; half /= 2)
            for (int i = 0; i < half; i++)
                place[i] = NEON(vmaxq)(place[i], place[i + half]);
        largest = NEON(vmaxvq)(place[0]);
    }
    for (; first < count; first++)
        largest = z[first] > largest || z[first] != z[first] ? z[first] : largest;
    return (tile_range){largest == largest ? largest + 0 : REAL_NAN, -REAL_INFINITY};
}

#elif ONEPASS_HAS_REALS

/* ----------------------------------------------------------------- AVX-512 -- */

enum {
    FINDS_SMALLEST = true
};

/* Some logits, where they lie or, of bf16, once they are in the buffer. */
ALWAYS_INLINE reals seen_logits(const real *z, const uint16_t *halves, real *buffer, int64_t i, __mmask16 own) {
    if (!halves)
        return own == 0xffff ? load_reals(z + i) : _mm512_maskz_loadu_ps(own, z + i);
    const __m256i x =
        own == 0xffff ? _mm256_loadu_si256((const void *)(halves + i)) : _mm256_maskz_loadu_epi16(own, halves + i);
    const reals wide = reals_of_bf16(x);
    if (own == 0xffff)
        store_reals(buffer + i, wide);
    else
        _mm512_mask_storeu_ps(buffer + i, own, wide);
    return wide;
}

/* Of the vectors that were looked at. */
typedef struct seen_range {
    reals largest, smallest;
    __mmask16 ordered; /* where none of them is NaN */
} seen_range;

/* Vectors of one line of logits are compared with each other first, so that few comparisons wait for the line before.
 * Whether there is a NaN is left in a mask register, for half an operation a vector. */
#define LINE_VECTORS ((int)(ORDER_LANES / REALS))

ALWAYS_INLINE void see_line(seen_range *seen, const reals *z) {
    reals largest[LINE_VECTORS / 2], smallest[LINE_VECTORS / 2];
    for (int i = 0; i < LINE_VECTORS / 2; i++) {
        const reals other = z[i + LINE_VECTORS / 2];
        seen->ordered = _mm512_mask_cmp_ps_mask(seen->ordered, z[i], other, _CMP_ORD_Q);
        largest[i] = _mm512_max_ps(z[i], other);
        smallest[i] = _mm512_min_ps(z[i], other);
    }
    for (int half = LINE_VECTORS / 4; half > 0; half /= 2)
        for (int i = 0; i < half; i++) {
            largest[i] = _mm512_max_ps(largest[i], largest[i + half]);
            smallest[i] = _mm512_min_ps(smallest[i], smallest[i + half]);
        }
    seen->largest = _mm512_max_ps(seen->largest, largest[0]);
    seen->smallest = _mm512_min_ps(seen->smallest, smallest[0]);
}

/* Memory that will be needed is asked for while logits are looked at, if there is any: so many bytes with each line. */
typedef struct asked_memory {
    const char *first; /* or null */
    int64_t bytes;
    bool is_far; /* as prefetch_far() has it */
} asked_memory;

ALWAYS_INLINE void ask_for_memory(const asked_memory *ahead, int64_t line) {
    if (ahead->first && ahead->is_far)
        prefetch_far(ahead->first + line * ahead->bytes, ahead->bytes);
    for (int64_t byte = 0; ahead->first && !ahead->is_far && byte < ahead->bytes; byte += CACHE_LINE)
        __builtin_prefetch((const void *)((uintptr_t)ahead->first + (uintptr_t)(line * ahead->bytes + byte)));
}

ALWAYS_INLINE tile_range range_while_asking(const real *z, const uint16_t *halves, real *buffer, int64_t count,
                                            asked_memory ahead) {
    seen_range seen = {each_real(-REAL_INFINITY), each_real(REAL_INFINITY), 0xffff};
    int64_t first = 0;
    for (; first + ORDER_LANES <= count; first += ORDER_LANES) {
        reals line[LINE_VECTORS];
        ask_for_memory(&ahead, first / ORDER_LANES);
        for (int i = 0; i < LINE_VECTORS; i++)
            line[i] = seen_logits(z, halves, buffer, first + i * REALS, 0xffff);
        see_line(&seen, line);
    }
    for (; first < count; first += REALS) {
        const int64_t left = count - first;
        const __mmask16 own = left < REALS ? (__mmask16)((1u << left) - 1) : 0xffff;
        const reals a = seen_logits(z, halves, buffer, first, own);
        seen.ordered = _mm512_mask_cmp_ps_mask(seen.ordered, a, a, _CMP_ORD_Q);
        seen.largest = _mm512_mask_max_ps(seen.largest, own, a, seen.largest);
        seen.smallest = _mm512_mask_min_ps(seen.smallest, own, a, seen.smallest);
    }
    return (tile_range){seen.ordered == 0xffff ? _mm512_reduce_max_ps(seen.largest) + 0 : REAL_NAN,
                        _mm512_reduce_min_ps(seen.smallest)};
}

static tile_range range_of(const real *z, int64_t count) {
    return range_while_asking(z, NULL, NULL, count, (asked_memory){0});
}

#else

/* --------------------------------------------------------- any other vectors -- */

enum {
    FINDS_SMALLEST = true
};

/* Places that have a range of their own: enough of them that a vector does not wait for the one before. */
#define PLACES 32

typedef struct range_places {
    _Alignas(64) real largest[PLACES];
    real smallest[PLACES];
    real_bits is_nan[PLACES]; /* looked for apart, since comparisons with NaN are false */
} range_places;

ALWAYS_INLINE void see_place(range_places *places, int64_t i, real z) {
    places->largest[i] = z > places->largest[i] ? z : places->largest[i];
    places->smallest[i] = z < places->smallest[i] ? z : places->smallest[i];
    places->is_nan[i] |= (real_bits)(z != z);
}

/* Two numbers, of which one comparison says whether there is a NaN. */
ALWAYS_INLINE void see_two(range_places *places, int64_t i, real z, real other) {
    const real larger = z > places->largest[i] ? z : places->largest[i];
    const real smaller = z < places->smallest[i] ? z : places->smallest[i];
    places->largest[i] = other > larger ? other : larger;
    places->smallest[i] = other < smaller ? other : smaller;
    places->is_nan[i] |= (real_bits)__builtin_isunordered(z, other);
}

/* The places of the second half are seen by the first; vectors where `half` is known. */
ALWAYS_INLINE void fold_places(range_places *places, int64_t half) {
#pragma omp simd
    for (int64_t i = 0; i < half; i++) {
        const real largest = places->largest[i + half], smallest = places->smallest[i + half];
        places->largest[i] = largest > places->largest[i] ? largest : places->largest[i];
        places->smallest[i] = smallest < places->smallest[i] ? smallest : places->smallest[i];
        places->is_nan[i] |= places->is_nan[i + half];
    }
}

/* Compilers know no reduction by such a maximum, so the loops have none. */
static tile_range range_of(const real *z, int64_t count) {
    range_places places;
    int64_t first = 0;
#pragma omp simd
    for (int64_t i = 0; i < PLACES; i++) {
        places.largest[i] = -REAL_INFINITY;
        places.smallest[i] = REAL_INFINITY;
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
    return (tile_range){places.is_nan[0] ? REAL_NAN : places.largest[0] + 0, places.smallest[0]};
}

#endif

#endif
