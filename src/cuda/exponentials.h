/*
 * A tile of logits in the registers of a warp: its extremes, its exponentials and their sums.
 */
#ifndef ONEPASS_CUDA_EXPONENTIALS_H
#define ONEPASS_CUDA_EXPONENTIALS_H

#include "cuda/pairwise/lines.h"
#include "math/row.h"

ALWAYS_INLINE softmax softmax_as_told(const cuda_softmax *told) {
    const softmax softmax = {REAL(told->factor), REAL(told->factor_low), REAL(told->per_factor), REAL(told->softcap)};
    return softmax;
}

typedef real own_numbers[ORDER_LINES][ORDER_OWN_LANES];

#define EACH_NUMBER EACH_LINE EACH_OWN

/* Stands for classes beyond the last: not -inf where a look for NaN would stop at that. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && !defined(ONEPASS_REAL_F64)
#define ROW_NO_LOGIT (-REAL_INFINITY)
#else
#define ROW_NO_LOGIT (-(real)(sizeof(real) == sizeof(float) ? 0x1.fffffep127 : 0x1.fffffffffffffp1023))
#endif

ALWAYS_INLINE bool is_in(const tile *tile, int line, int own) {
    return own_element(tile, line, own) < tile->count;
}

/* --------------------------------------------------------------- extremes -- */

/* The extremes of a thread's own logits: the largest is NaN if one is, which the smallest then need not tell. */
typedef struct own_range {
    real largest, smallest;
} own_range;

/* The larger of two, NaN if one is: newer GPUs have an instruction for it, and for two numbers of 16 bits at a time. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && !defined(ONEPASS_REAL_F64)
#define ROW_KEEPS_NAN 1
ALWAYS_INLINE real larger_or_nan(real a, real b) {
    real larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
    return larger;
}

ALWAYS_INLINE uint32_t larger_pair(uint32_t a, uint32_t b) {
    uint32_t larger;
    asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
    return larger;
}

ALWAYS_INLINE uint32_t smaller_pair(uint32_t a, uint32_t b) {
    uint32_t smaller;
    asm("min.bf16x2 %0, %1, %2;" : "=r"(smaller) : "r"(a), "r"(b));
    return smaller;
}

/* Of four numbers a line. */
ALWAYS_INLINE own_range range_of_pairs(const uint2 *pairs) {
    uint32_t largest = pairs[0].x, smallest = pairs[0].x;
    EACH_LINE {
        largest = larger_pair(largest, larger_pair(pairs[line].x, pairs[line].y));
        smallest = smaller_pair(smallest, smaller_pair(pairs[line].x, pairs[line].y));
    }
    const own_range range = {larger_or_nan(f32_of(largest << 16), f32_of(largest & 0xffff0000u)),
                             softmax_smaller(f32_of(smallest << 16), f32_of(smallest & 0xffff0000u))};
    return range;
}

/* Floats as integers of the same order; the NaN of these instructions is positive, and so the largest. */
ALWAYS_INLINE int ordered_bits(int bits) {
    return bits ^ (bits >> 31 & 0x7fffffff);
}

ALWAYS_INLINE real warp_largest_at_once(real x) {
    return real_of((uint32_t)ordered_bits(__reduce_max_sync(~0u, ordered_bits((int)bits_of(x)))));
}
#else
#define ROW_KEEPS_NAN 0
ALWAYS_INLINE real larger_or_nan(real a, real b) {
    return a != a ? a : b != b ? b : a > b ? a : b;
}

#endif

ALWAYS_INLINE real warp_largest_or_nan(real x) {
    for (int distance = ORDER_WARP / 2; distance > 0; distance /= 2)
        x = larger_or_nan(x, __shfl_xor_sync(~0u, x, distance));
    return x;
}

/* The same by one instruction, where there is one. It pays in backward alone: with it forward took a third longer. */
#if !ROW_KEEPS_NAN
#define warp_largest_at_once warp_largest_or_nan
#endif

/* The others' maximum loses NaN; a sum of zeros times logits does not, nor does it lose -inf, which is as it should be,
 * and so is looked at again. A chain for each lane: nobody waits long for the one before. */
ALWAYS_INLINE own_range range_of(const tile *tile, const own_numbers x) {
    real largest[ORDER_OWN_LANES], smallest[ORDER_OWN_LANES], nothing = 0;
    EACH_OWN largest[own] = smallest[own] = x[0][own];
    EACH_NUMBER {
        smallest[own] = softmax_smaller(x[line][own], smallest[own]);
        largest[own] =
            ROW_KEEPS_NAN ? larger_or_nan(largest[own], x[line][own]) : softmax_larger(x[line][own], largest[own]);
        if (!ROW_KEEPS_NAN)
            nothing = fused(x[line][own], 0, nothing);
    }
    own_range range = {
        larger_or_nan(larger_or_nan(largest[0], largest[1]), larger_or_nan(largest[2], largest[3])),
        softmax_smaller(softmax_smaller(smallest[0], smallest[1]), softmax_smaller(smallest[2], smallest[3]))};
    if (!ROW_KEEPS_NAN && __any_sync(~0u, nothing != nothing)) {
        range.largest = -REAL_INFINITY;
        EACH_NUMBER if (is_in(tile, line, own)) range.largest = larger_or_nan(range.largest, x[line][own]);
    }
    return range;
}

/* ----------------------------------------------------------- exponentials -- */

/* Of floats, whatever lanes a thread has. */
ALWAYS_INLINE bool is_calm_tile(const softmax *softmax, const softmax_shift *shift, real smallest) {
    return sizeof(real) == sizeof(float) && __all_sync(~0u, softmax_is_calm(softmax, shift, smallest));
}

ALWAYS_INLINE void exponentiate(const softmax *of, const softmax_shift *shift, const tile *tile, bool calm,
                                own_numbers x) {
    const softmax softmax = *of;
    const softmax_shift own_shift = *shift;
    if (calm) {
        EACH_NUMBER x[line][own] = softmax_exponential_above(&softmax, &own_shift, x[line][own]);
        return;
    }
    if (shift->anchor != 0)
        EACH_NUMBER x[line][own] = is_in(tile, line, own) ? x[line][own] - own_shift.anchor : -REAL_INFINITY;
    EACH_NUMBER x[line][own] = softmax_exponential(&softmax, &own_shift, x[line][own]);
}

/* The sums of a thread's own lanes. */
ALWAYS_INLINE void sum_lanes(const own_numbers x, real *lane) {
    EACH_OWN lane[own] =
        ((x[0][own] + x[1][own]) + (x[2][own] + x[3][own])) + ((x[4][own] + x[5][own]) + (x[6][own] + x[7][own]));
}

ALWAYS_INLINE double sum_of_tile(int thread, const own_numbers x) {
    real lane[ORDER_OWN_LANES];
    sum_lanes(x, lane);
    return order_lanes(thread, lane);
}

/* The sums of a thread's own lanes of a tile's exponentials but for those that lead, which are all alike. Returns the
 * sum of these, of the whole tile. */
ALWAYS_INLINE double lanes_without_leading(real most, const own_numbers x, real *lane) {
    own_numbers term;
    real leaders = 0; /* a whole number: sums of predicates take a GPU longer */
    EACH_NUMBER {
        const real leads = x[line][own] == most ? 1 : 0;
        leaders += leads;
        term[line][own] = fused(-most, leads, x[line][own]);
    }
    sum_lanes(term, lane);
    return (double)warp_sum((int)leaders) * (double)most;
}

#endif
