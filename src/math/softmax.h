/*
 * Softmax over a row of logits without a pass for its maximum, for losses over rows: included after real.h, and like it
 * compiled as C and as CUDA C, in float and in double.
 *
 * A row is cut into tiles of 1024 classes, which are summed in the order of order.h. A tile's logits are exponentiated
 * in base 2 with a whole-numbered shift of the tile's own, so that a tile needs nothing from its neighbours, and
 * joining tiles multiplies by powers of two, which is exact:
 *
 *     n = ceil(m L), m the tile's largest logit, L = log2(e) / temperature
 *     e_c = 2^(z_c L - n), exactly 0 from 2^-127 (2^-1023) down, and so for z_c = -inf
 *
 * L is the sum of two reals, and z L - n is rounded at its own size, so that neither large logits nor a large common
 * offset cost digits. Beyond what a real can hold as a whole number, logits are taken relative to the tile's largest,
 * which is then the tile's anchor: E = anchor L + n in double takes the place of n.
 *
 * The label's term is left out of a row's sum: what the others sum to is exact to the last digits, however small it is
 * against the label's own. Where there are probabilities in the place of a label, the terms of the classes that lead
 * are left out, those whose exponential is that of the largest logit.
 */
#ifndef ONEPASS_MATH_SOFTMAX_H
#define ONEPASS_MATH_SOFTMAX_H

#include "math/elementary.h"
#include "math/wide.h"
#include "row_scale.h"

/* What the call says about them, in the compute type. */
typedef struct softmax {
    real factor, factor_low;
    real per_factor;
    real softcap;
} softmax;

/* For the host as well, where one compiler has host and kernels. */
#if defined(__CUDACC__)
#define SOFTMAX_ANYWHERE static __host__ __device__ __forceinline__
#else
#define SOFTMAX_ANYWHERE ALWAYS_INLINE
#endif

SOFTMAX_ANYWHERE softmax softmax_of(const softmax_scale *scale) {
    const real factor = (real)scale->factor;
    const softmax of = {factor, (real)((scale->factor - (double)factor) + scale->factor_low), (real)(1 / scale->factor),
                        (real)scale->softcap};
    return of;
}

/* Whole numbers up to here, doubled, are exact as the distance from SOFTMAX_ROUNDER, which rounds a sum to one. */
#define SOFTMAX_LARGEST ((real)(sizeof(real) == 4 ? 0x1p20 : 0x1p49))
#define SOFTMAX_ROUNDER ((real)(sizeof(real) == 4 ? 0x1.8p23 : 0x1.8p52))
#define SOFTMAX_RANGE   ((real)(sizeof(real) == 4 ? 127 : 1023))

/* --------------------------------------------------------------- a logit -- */

/* tanh(z / softcap). */
ALWAYS_INLINE real softmax_tangent(const softmax *softmax, real z) {
    return real_tanh(z / softmax->softcap);
}

/* 1 - tanh(z / softcap)^2 = 4 y / (1 + y)^2 with y = e^(-2 |z / softcap|), which does not cancel. What the quotient
 * lacks, which many softcaps from 0 would show, is made up for in y; of an infinite quotient it is no number. */
ALWAYS_INLINE real softmax_cap_slope(const softmax *softmax, real z) {
    const real cap = softmax->softcap, distance = magnitude(z), x = distance / cap;
    const real lacking = 2 * fused(-x, cap, distance) * (1 / cap);
    const real decayed = decay_of(2 * x).y;
    const real y = fused(-choose(lacking - lacking == 0, lacking, 0), decayed, decayed);
    const real reciprocal = real_reciprocal(1 + y);
    return 4 * y * reciprocal * reciprocal;
}

/* -------------------------------------------------------- a tile's shift -- */

/* How a tile's logits are exponentiated. */
typedef struct softmax_shift {
    real anchor;  /* taken off each logit; 0 unless they are very large */
    real largest; /* the largest logit of the tile; 0 if all are -inf */
    real n;
    real lowest;     /* where 2^(z L - n) is 0 */
    double exponent; /* E; -inf: no logit is larger than -inf; NaN: one is NaN or +inf */
} softmax_shift;

/* The whole number that is no less, for less than SOFTMAX_LARGEST in size; 0 is +0. gcc makes no vectors of ceil(). */
ALWAYS_INLINE real softmax_ceiling(real x) {
#if defined(__CUDACC__)
    return (sizeof(real) == sizeof(float) ? (real)__builtin_ceilf((float)x) : (real)__builtin_ceil((double)x)) + 0;
#else
    const real nearest = (x + SOFTMAX_ROUNDER) - SOFTMAX_ROUNDER;
    return nearest + choose(nearest < x, 1, 0);
#endif
}

/* Of an anchor; finite, although the product of a double, or one by a tiny temperature, may not be. */
ALWAYS_INLINE double softmax_anchor_exponent(const softmax_scale *scale, real anchor) {
    const double product = (double)anchor * scale->factor;
    return wide_choose(product > WIDE_LARGEST, WIDE_LARGEST,
                       wide_choose(product < -WIDE_LARGEST, -WIDE_LARGEST, product));
}

/* `largest` is the largest logit, or NaN if one is. Of equal zeros it may be either: adding one makes it +0. A GPU, and
 * who has one row at a time, take branches: without them 4096 classes took a GPU a quarter longer. */
ALWAYS_INLINE softmax_shift softmax_shift_of(const softmax *softmax, const softmax_scale *scale, real largest) {
    const real product = (largest + 0) * softmax->factor;
    softmax_shift shift;
    shift.anchor = shift.n = 0;
    shift.largest = largest + 0;
    if (!(largest < REAL_INFINITY)) { /* +inf or NaN */
        shift.exponent = WIDE_NAN;
        shift.largest = 0;
    } else if (largest == -REAL_INFINITY) {
        shift.exponent = -WIDE_INFINITY;
        shift.largest = 0;
    } else if (product >= SOFTMAX_LARGEST || product <= -SOFTMAX_LARGEST) {
        shift.anchor = shift.largest;
        shift.exponent = softmax_anchor_exponent(scale, largest);
    } else {
        shift.n = softmax_ceiling(product);
        shift.exponent = (double)shift.n;
    }
    shift.lowest = (shift.n - SOFTMAX_RANGE) * softmax->per_factor;
    return shift;
}

/* The same on a CPU without branches, for rows side by side, each of which has a shift. */
ALWAYS_INLINE softmax_shift softmax_shift_aside(const softmax *softmax, const softmax_scale *scale, real largest) {
#if defined(__CUDACC__)
    return softmax_shift_of(softmax, scale, largest);
#else
    const real product = (largest + 0) * softmax->factor;
    softmax_shift shift;
    const bool is_small = (product < SOFTMAX_LARGEST) & (product > -SOFTMAX_LARGEST);
    shift.largest = choose(largest - largest == 0, largest + 0, 0);
    shift.anchor = choose(is_small, 0, shift.largest);
    shift.n = choose(is_small, softmax_ceiling(product), 0);
    const double wide = (double)largest, wide_product = (double)product;
    const bool has_whole = (wide_product < (double)SOFTMAX_LARGEST) & (wide_product > -(double)SOFTMAX_LARGEST);
    const double exponent = wide_choose(has_whole, (double)shift.n, softmax_anchor_exponent(scale, shift.anchor));
    shift.exponent = wide_choose(wide - wide == 0, exponent, wide_choose(wide < 0, wide, WIDE_NAN));
    shift.lowest = (shift.n - SOFTMAX_RANGE) * softmax->per_factor;
    return shift;
#endif
}

/* ---------------------------------------------------------- an exponential -- */

/* 2^f for f in [-1/2, 1/2], by Horner's rule: the error is below 2^-25.9 (2^-55). */
#if defined(ONEPASS_REAL_F64)
#define SOFTMAX_HIGHEST ((real)0x1.e79938f6b8e0ap-32)
#define SOFTMAX_LOWER(next)                                                                                            \
    next(0x1.e61de754e7e88p-28) next(0x1.b52681fb34686p-24) next(0x1.62bfc631d46f3p-20) next(0x1.ffcbfba551dc4p-17)    \
        next(0x1.4309130f602bep-13) next(0x1.5d87fe78ceab5p-10) next(0x1.3b2ab6fb9fea8p-7) next(0x1.c6b08d7049fep-5)   \
            next(0x1.ebfbdff82c5a5p-3) next(0x1.62e42fefa39efp-1) next(1)
#else
#define SOFTMAX_HIGHEST ((real)0x1.41f964p-13f)
#define SOFTMAX_LOWER(next)                                                                                            \
    next(0x1.5f41b8p-10f) next(0x1.3b2d56p-7f) next(0x1.c6aee4p-5f) next(0x1.ebfbdcp-3f) next(0x1.62e43p-1f) next(1)
#endif

ALWAYS_INLINE real softmax_polynomial(real f) {
    real p = SOFTMAX_HIGHEST;
#define SOFTMAX_STEP(coefficient) p = fused(p, f, coefficient);
    SOFTMAX_LOWER(SOFTMAX_STEP)
#undef SOFTMAX_STEP
    return p;
}

/* The larger of two, and the second if the first is NaN: one instruction of a GPU. */
ALWAYS_INLINE real softmax_larger(real z, real lowest) {
#if defined(__CUDACC__)
    return sizeof(real) == sizeof(float) ? (real)fmaxf((float)z, (float)lowest) : (real)fmax((double)z, (double)lowest);
#elif defined(__aarch64__)
    return sizeof(real) == sizeof(float) ? (real)__builtin_fmaxf((float)z, (float)lowest)
                                         : (real)__builtin_fmax((double)z, (double)lowest);
#elif defined(__x86_64__)
    return z > lowest ? z : lowest; /* one instruction as well, which no compiler finds in choose() */
#else
    return choose(z > lowest, z, lowest);
#endif
}

ALWAYS_INLINE real softmax_smaller(real z, real highest) {
#if defined(__CUDACC__)
    return sizeof(real) == sizeof(float) ? (real)fminf((float)z, (float)highest)
                                         : (real)fmin((double)z, (double)highest);
#else
    return choose(z < highest, z, highest);
#endif
}

/* 2^(z L - n) for a logit that the anchor has been taken off. A NaN gives 0: the tile's shift knows of it. */
ALWAYS_INLINE real softmax_exponential(const softmax *softmax, const softmax_shift *shift, real z) {
    const real above = softmax_larger(z, shift->lowest), rounder = SOFTMAX_ROUNDER - shift->n;
    const real shifted = fused(above, softmax->factor, rounder), whole = shifted - rounder;
    const real f = fused(above, softmax->factor_low, fused(above, softmax->factor, -whole));
    /* The last bits of `shifted` are k + n - n = k, from -127 to 0: with the bias, the exponent of 2^k, or 0. */
    const real power = real_of((bits_of(shifted) << REAL_MANTISSA_BITS) + (REAL_BIAS << REAL_MANTISSA_BITS));
    return softmax_polynomial(f) * power;
}

/* Above this no logit is so small that its exponential is 0 or denormal: 2^-125 and up. */
ALWAYS_INLINE real softmax_least_calm(const softmax *softmax, const softmax_shift *shift) {
    return (shift->n - (SOFTMAX_RANGE - 3)) * softmax->per_factor;
}

/* Whether that goes for all logits of a tile. */
ALWAYS_INLINE bool softmax_is_calm(const softmax *softmax, const softmax_shift *shift, real smallest) {
    return (shift->anchor == 0) & (smallest > softmax_least_calm(softmax, shift));
}

/* The same of a calm tile: 2^k is not 0, so that k can be added to the exponent. */
ALWAYS_INLINE real softmax_exponential_above(const softmax *softmax, const softmax_shift *shift, real z) {
    const real rounder = SOFTMAX_ROUNDER - shift->n;
    const real shifted = fused(z, softmax->factor, rounder), whole = shifted - rounder;
    const real f = fused(z, softmax->factor_low, fused(z, softmax->factor, -whole));
    return real_of(bits_of(softmax_polynomial(f)) + (bits_of(shifted) << REAL_MANTISSA_BITS));
}

/* What a loss over rows is written as. */
#define ROW_FUNCTION ALWAYS_INLINE void

#endif
