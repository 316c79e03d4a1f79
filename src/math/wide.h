/*
 * Functions of double, whatever `real` is: what becomes of a row's sums is computed in double, once a row. Like those
 * of elementary.h they have the same bits everywhere, because they are made of what IEEE 754 fixes to the last bit.
 * Errors are below 2 units in the last place.
 */
#ifndef ONEPASS_MATH_WIDE_H
#define ONEPASS_MATH_WIDE_H

#include "math/real.h"

#define WIDE_LOG2_E     0x1.71547652b82fep+0
#define WIDE_LOG2_E_LOW 0x1.777d0ffda0d24p-56
#define WIDE_LN_2       0x1.62e42fefa39efp-1
#define WIDE_LN_2_LOW   0x1.abc9e3b39803fp-56
#define WIDE_NAN        wide_of(UINT64_C(0x7ff8000000000000))
#define WIDE_INFINITY   wide_of(UINT64_C(0x7ff0000000000000))

ALWAYS_INLINE double wide_of(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

ALWAYS_INLINE uint64_t wide_bits(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* `a` where the condition holds, else `b`, as choose() of real.h does it: loops over rows vectorise. */
ALWAYS_INLINE double wide_choose(bool condition, double a, double b) {
#if defined(__CUDACC__)
    return condition ? a : b;
#else
    const uint64_t mask = (uint64_t)0 - (uint64_t)condition;
    return wide_of((wide_bits(a) & mask) | (wide_bits(b) & ~mask));
#endif
}

/* A whole number of less than 2^51 in size: few vector units convert 64-bit integers. */
ALWAYS_INLINE double wide_of_whole(int64_t k) {
#if defined(__CUDACC__)
    return (double)k;
#else
    return wide_of(wide_bits(0x1.8p52) + (uint64_t)k) - 0x1.8p52;
#endif
}

/* a * b + c, rounded once. A processor without the instruction leaves it to libm, which is exact too. */
ALWAYS_INLINE double wide_fused(double a, double b, double c) {
#if defined(__CUDACC__)
    return __fma_rn(a, b, c);
#else
    return __builtin_fma(a, b, c);
#endif
}

/* 2^x for x <= 0. Exact for whole numbers, and 0 below -1000 for all: whoever joins tiles drops the same ones. */
ALWAYS_INLINE double wide_exp2(double x) {
    if (!(x >= -1000))
        return 0;
    const double rounder = 0x1.8p52, shifted = x + rounder, f = x - (shifted - rounder);
    const double power = wide_of((wide_bits(shifted) << 52) + (UINT64_C(1023) << 52));
    if (f == 0) /* as nearly always; the polynomial is 1 there */
        return power;
    double p = 0x1.e79938f6b8e0ap-32;
    p = wide_fused(p, f, 0x1.e61de754e7e88p-28);
    p = wide_fused(p, f, 0x1.b52681fb34686p-24);
    p = wide_fused(p, f, 0x1.62bfc631d46f3p-20);
    p = wide_fused(p, f, 0x1.ffcbfba551dc4p-17);
    p = wide_fused(p, f, 0x1.4309130f602bep-13);
    p = wide_fused(p, f, 0x1.5d87fe78ceab5p-10);
    p = wide_fused(p, f, 0x1.3b2ab6fb9fea8p-7);
    p = wide_fused(p, f, 0x1.c6b08d7049fep-5);
    p = wide_fused(p, f, 0x1.ebfbdff82c5a5p-3);
    p = wide_fused(p, f, 0x1.62e42fefa39efp-1);
    p = wide_fused(p, f, 1);
    return p * power;
}

/* log(1 + x) for x >= 0, infinity and NaN. 1 + x = 2^k (1 + f) with f between sqrt(1/2) - 1 and sqrt(2) - 1; what the
 * sum 1 + x loses comes back as a correction. log(1 + f) = 2 atanh(s), s = f / (2 + f), by its series, whose terms
 * beyond the tenth are below 2^-58. */
ALWAYS_INLINE double wide_log1p(double x) {
    const double sum = 1 + x, lost = wide_choose(sum > 0x1p53, 0, x - (sum - 1));
    const uint64_t offset = wide_bits(sum) + (UINT64_C(0x3ff0000000000000) - UINT64_C(0x3fe6a09e667f3bcd));
    const int64_t exponent = (int64_t)(offset >> 52) - 1023;
    const double m = wide_of(wide_bits(sum) - ((uint64_t)exponent << 52)), k = wide_of_whole(exponent);
    const double f = wide_choose(k == 0, x, m - 1), correction = wide_choose(k == 0, 0, lost * (1 / sum));
    const double s = f / (2 + f), z = s * s, half = 0.5 * f * f;
    double r = 0x1.8618618618618p-4;            /* 2/21 */
    r = wide_fused(r, z, 0x1.af286bca1af28p-4); /* 2/19 */
    r = wide_fused(r, z, 0x1.e1e1e1e1e1e1ep-4); /* 2/17 */
    r = wide_fused(r, z, 0x1.1111111111111p-3); /* 2/15 */
    r = wide_fused(r, z, 0x1.3b13b13b13b14p-3); /* 2/13 */
    r = wide_fused(r, z, 0x1.745d1745d1746p-3); /* 2/11 */
    r = wide_fused(r, z, 0x1.c71c71c71c71cp-3); /* 2/9 */
    r = wide_fused(r, z, 0x1.2492492492492p-2); /* 2/7 */
    r = wide_fused(r, z, 0x1.999999999999ap-2); /* 2/5 */
    r = wide_fused(r, z, 0x1.5555555555555p-1); /* 2/3 */
    const double low = s * (half + z * r) + wide_fused(k, WIDE_LN_2_LOW, correction);
    return wide_choose(x < WIDE_INFINITY, wide_fused(k, WIDE_LN_2, f - (half - low)), x);
}

/* log2 of a positive, finite number; nothing is lost near 1. */
ALWAYS_INLINE double wide_log2(double x) {
    const uint64_t offset = wide_bits(x) + (UINT64_C(0x3ff0000000000000) - UINT64_C(0x3fe6a09e667f3bcd));
    const int64_t k = (int64_t)(offset >> 52) - 1023;
    const double m = wide_of(wide_bits(x) - ((uint64_t)k << 52)), f = m - 1;
    const double log_m = f >= 0 ? wide_log1p(f) : -wide_log1p(-f / m);
    return wide_fused(log_m, WIDE_LOG2_E, (double)k);
}

#endif
