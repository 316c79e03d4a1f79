/*
 * Functions of double, whatever `real` is: what becomes of a row's sums is computed in double, once a row. Like those
 * of elementary.h they have the same bits everywhere, because they are made of what IEEE 754 fixes to the last bit.
 * Errors are below 3 units in the last place, or 2^-40 of the result where a float is to come of it.
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
#define WIDE_LARGEST    0x1.fffffffffffffp+1023

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

/* (2^f - 1 - f log 2) / f^2 for f in [-1/2, 1/2]. */
ALWAYS_INLINE double wide_exp2_curve(double f) {
    double p = 0x1.e79938f6b8e0ap-32;
    p = wide_fused(p, f, 0x1.e61de754e7e88p-28);
    p = wide_fused(p, f, 0x1.b52681fb34686p-24);
    p = wide_fused(p, f, 0x1.62bfc631d46f3p-20);
    p = wide_fused(p, f, 0x1.ffcbfba551dc4p-17);
    p = wide_fused(p, f, 0x1.4309130f602bep-13);
    p = wide_fused(p, f, 0x1.5d87fe78ceab5p-10);
    p = wide_fused(p, f, 0x1.3b2ab6fb9fea8p-7);
    p = wide_fused(p, f, 0x1.c6b08d7049fep-5);
    return wide_fused(p, f, 0x1.ebfbdff82c5a5p-3);
}

/* 2^x for x <= 0. Exact for whole numbers, and 0 below -1000 for all: whoever joins tiles drops the same ones. */
ALWAYS_INLINE double wide_exp2(double x) {
    if (!(x >= -1000))
        return 0;
    const double rounder = 0x1.8p52, shifted = x + rounder, f = x - (shifted - rounder);
    const double power = wide_of((wide_bits(shifted) << 52) + (UINT64_C(1023) << 52));
    if (f == 0) /* as nearly always; the polynomial is 1 there */
        return power;
    return wide_fused(wide_fused(wide_exp2_curve(f), f, WIDE_LN_2), f, 1) * power;
}

/* 2/13 to 2/3, and log 2. A GPU has them where a kernel's parameters are: as part of the code each would take two
 * instructions a row. */
#if defined(__CUDACC__)
#define WIDE_TABLE static __constant__ double
#else
#define WIDE_TABLE static const double
#endif
WIDE_TABLE wide_log_table[] = {0x1.3b13b13b13b14p-3,
                               0x1.745d1745d1746p-3,
                               0x1.c71c71c71c71cp-3,
                               0x1.2492492492492p-2,
                               0x1.999999999999ap-2,
                               0x1.5555555555555p-1,
                               WIDE_LN_2,
                               WIDE_LN_2_LOW};

/* log(1 + a / b) for a >= 0 and a normal b > 0, by one division. (a + b) / b = 2^k q; the difference of the numbers'
 * bits is nearly that of their logarithms, so q is between 2/3 and 3/2, and log q = 2 atanh(s) with s = (q - 1) / (q +
 * 1) by its series. q - 1 is computed without what a + b loses; with k = 0 it is a / b itself. */
ALWAYS_INLINE double wide_log1p_ratio(double a, double b) {
    const double sum = a + b;
    const uint64_t distance = wide_bits(sum) - wide_bits(b) + (UINT64_C(1) << 51);
    const uint64_t whole = distance & ~((UINT64_C(1) << 52) - 1); /* k as an exponent */
    const double k = wide_of_whole((int64_t)(distance >> 52)), near = wide_of(wide_bits(b) + whole);
    const double s = ((b - near) + a) / (sum + near), z = s * s;
    double r = 0x1.1111111111111p-3; /* 2/15: for a float to come of it */
    if (sizeof(real) == sizeof(double)) {
        r = 0x1.8618618618618p-4;                   /* 2/21 */
        r = wide_fused(r, z, 0x1.af286bca1af28p-4); /* 2/19 */
        r = wide_fused(r, z, 0x1.e1e1e1e1e1e1ep-4); /* 2/17 */
        r = wide_fused(r, z, 0x1.1111111111111p-3); /* 2/15 */
    }
    r = wide_fused(r, z, wide_log_table[0]);
    r = wide_fused(r, z, wide_log_table[1]);
    r = wide_fused(r, z, wide_log_table[2]);
    r = wide_fused(r, z, wide_log_table[3]);
    r = wide_fused(r, z, wide_log_table[4]);
    r = wide_fused(r, z, wide_log_table[5]);
    const double log_q = wide_fused(s * z, r, 2 * s);
    return wide_fused(k, wide_log_table[6], wide_fused(k, wide_log_table[7], log_q));
}

/* 2^(x + low) for x <= 0, `low` being far smaller; down to the smallest double. */
ALWAYS_INLINE double wide_exp2_of_sum(double x, double low) {
    if (!(x >= -1100))
        return 0;
    const bool is_far = x < -900;
    const double power = wide_exp2(x + wide_choose(is_far, 512, 0));
    return wide_fused(power, low * WIDE_LN_2, power) * wide_choose(is_far, 0x1p-512, 1);
}

/* e^-t for t >= 0, within 1.5 units in the last place of what t is. */
ALWAYS_INLINE double wide_decay(double t) {
    const double x = -t * WIDE_LOG2_E;
    return wide_exp2_of_sum(x, wide_fused(-t, WIDE_LOG2_E, -x) - t * WIDE_LOG2_E_LOW);
}

/* (1 - e^-t) / t for t from 0 to log 2, and 1 for 0, within 2 units: the product of that of t / 2, which is short of
 * 1 by little, and of (1 + e^(-t/2)) / 2. */
ALWAYS_INLINE double wide_lack_ratio(double t) {
    const double half = 0.5 * t, f = -half * WIDE_LOG2_E;
    const double ratio = wide_fused(f * WIDE_LOG2_E, wide_exp2_curve(f), 1);
    return ratio * wide_fused(-0.5 * half, ratio, 1);
}

/* x^y for x from 0 to 1 and a finite y >= 0, within 1.5 + y / 25 units in the last place; 0^0 is 1. The logarithm of x
 * = 2^k m, m from 3/4 to 3/2, is a sum of two doubles: k and 2 atanh(s), s = (m - 1) / (m + 1). */
ALWAYS_INLINE double wide_power(double x, double y) {
    if (y == 0 || x >= 1)
        return 1;
    if (y == 1 || x == 0)
        return x;
    if (y == 2)
        return x * x;
    const bool is_tiny = x < 0x1p-1000;
    const double scaled = x * wide_choose(is_tiny, 0x1p100, 1);
    const uint64_t above = wide_bits(scaled) - wide_bits(0.75), whole = above & ~((UINT64_C(1) << 52) - 1);
    const double m = wide_of(wide_bits(scaled) - whole);
    const double k = -wide_of_whole((int64_t)((0 - whole) >> 52)) - wide_choose(is_tiny, 100, 0);
    const double sum = m + 1, sum_low = m - (sum - 1), per_sum = 1 / sum, s = (m - 1) * per_sum;
    const double s_low = wide_fused(-s, sum_low, wide_fused(-s, sum, m - 1)) * per_sum, z = s * s;
    double r = 0x1.642c8590b2164p-4; /* 2/23 */
    r = wide_fused(r, z, 0x1.8618618618618p-4);
    r = wide_fused(r, z, 0x1.af286bca1af28p-4);
    r = wide_fused(r, z, 0x1.e1e1e1e1e1e1ep-4);
    r = wide_fused(r, z, 0x1.1111111111111p-3);
    r = wide_fused(r, z, 0x1.3b13b13b13b14p-3);
    r = wide_fused(r, z, 0x1.745d1745d1746p-3);
    r = wide_fused(r, z, 0x1.c71c71c71c71cp-3);
    r = wide_fused(r, z, 0x1.2492492492492p-2);
    r = wide_fused(r, z, 0x1.999999999999ap-2);
    r = wide_fused(r, z, 0x1.5555555555555p-1); /* 2/3 */
    const double first = 2 * s * WIDE_LOG2_E, rest = wide_fused(s * z, r, 2 * s_low) * WIDE_LOG2_E;
    const double first_low = wide_fused(2 * s, WIDE_LOG2_E, -first) + 2 * s * WIDE_LOG2_E_LOW;
    const double about = k + first, low = ((first - (about - k)) + first_low) + rest;
    const double log2 = about + low, log2_low = low - (log2 - about), power = y * log2;
    return wide_exp2_of_sum(power, wide_fused(y, log2, -power) + y * log2_low);
}

#endif
