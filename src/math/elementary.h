/*
 * Elementary functions of a `real`, for losses that need them: included after real.h, and like it compiled as C and as
 * CUDA C, in float and in double. libm and CUDA's library have other bits on every machine; these have the same ones
 * everywhere by construction, because nothing is used but what IEEE 754 fixes to the last bit: sums, products, fused
 * multiply-adds, reciprocals, comparisons and the bits of a number. A product is fused with a sum where fused() says so
 * and nowhere else (so contraction must be off); a machine without such an instruction computes the same bits in more
 * steps. No table, no branch on data: loops over them vectorise (but doubles on SSE2 by gcc 12, which choose() stops),
 * and a GPU runs straight through. Rounding is to nearest, as the engines see to.
 *
 * Results of real_exp, real_log, real_log1p, real_tanh, real_sigmoid and real_pow are within 1 unit in the last place
 * of the exact ones, those of real_expm1 and real_softplus within 2, denormal numbers included: tests/all_floats.c asks
 * all 2^32 floats, tests/test_transcendental.c many doubles; docs/numerics.md has the figures. NaN gives NaN, of any
 * face. tests/derive_polynomials.py derives the coefficients.
 *
 * What is saved is instructions: a GPU loads and stores numbers so fast that a loss has room for a few dozen. Integer
 * operations, comparisons and choices, of which it does half as many at a time as of sums and products, are the
 * dearest.
 *
 * Figures in comments are for float, with those for double in parentheses.
 */
#ifndef ONEPASS_MATH_ELEMENTARY_H
#define ONEPASS_MATH_ELEMENTARY_H

#if defined(ONEPASS_REAL_F64)
#define REAL_MANTISSA_BITS 52
#define REAL_BIAS          ((real_bits)1023)
#define REAL_SMALLEST      ((real)0x1p-1022) /* the smallest number that is not denormal */
#define REAL_SHIFT         ((real)0x1p54)    /* makes a denormal number a normal one */
#define REAL_SHIFT_BITS    ((real_bits)54 << 52)
#define EXP_LOWEST         ((real)-746) /* e^-745.14 is half of the smallest denormal number */
#define LOG2_E             ((real)0x1.71547652b82fep+0)
#define LN_2               ((real)0x1.62e42fefa39efp-1)
#define LN_2_LOW           ((real)0x1.abc9e3b39803fp-56)
#else
#define REAL_MANTISSA_BITS 23
#define REAL_BIAS          ((real_bits)127)
#define REAL_SMALLEST      ((real)0x1p-126)
#define REAL_SHIFT         ((real)0x1p24)
#define REAL_SHIFT_BITS    ((real_bits)24 << 23)
#define EXP_LOWEST         ((real)-104) /* e^-103.98 is half of the smallest denormal number */
#define LOG2_E             ((real)0x1.715476p+0)
#define LN_2               ((real)0x1.62e43p-1)
#define LN_2_LOW           ((real)-0x1.05c61p-29)
#endif

#define REAL_INFINITY real_of(REAL_EXPONENT_BITS)
#define REAL_NAN      real_of(REAL_NAN_BITS)

/* ---------------------------------------------------- fused multiply-add -- */

/* a + b, rounded to odd: where the sum is not a number of the type, it is the one of its two neighbours whose last bit
 * is set. A second rounding, to fewer digits or of a sum in which this is the small term, then gives what one rounding
 * of the exact sum would have given. Infinity stays what it is. */
ALWAYS_INLINE double sum_rounded_to_odd(double a, double b) {
    const double sum = a + b, of_b = sum - a;
    const double error = (a - (sum - of_b)) + (b - of_b);
    uint64_t bits, error_bits;
    memcpy(&bits, &sum, sizeof bits);
    memcpy(&error_bits, &error, sizeof error_bits);
    const uint64_t exponent = bits & UINT64_C(0x7ff0000000000000);
    const uint64_t infinite = (exponent + UINT64_C(0x0010000000000000)) >> 63;
    const uint64_t size = error_bits << 1;
    const uint64_t inexact = ((size | (0 - size)) >> 63) & (infinite ^ 1);
    const uint64_t too_large = (bits ^ error_bits) >> 63; /* away from zero */
    bits = (bits - (inexact & too_large)) | inexact;
    double odd;
    memcpy(&odd, &bits, sizeof odd);
    return odd;
}

/* Not inlined where every loss would have it dozens of times: it would be two thirds of the library. */
#if defined(__CUDACC__)
#define EMULATION ALWAYS_INLINE
#else
#define EMULATION static __attribute__((noinline, unused))
#endif

/* fused() where no instruction does it. In float for any arguments, since the product is exact in double. In double for
 * all that this header asks: the product must not be so small that its last digits are lost, below 2^-900, unless c is
 * much larger, nor |b| so large that it is nearly infinite. Boldo and Melquiond's way: the product as two numbers, by
 * splitting the factors in halves of 26 digits, and exact sums. */
EMULATION real fused_emulated(real a, real b, real c) {
#if defined(ONEPASS_REAL_F64)
    const real plain = a * b + c;
    const bool large = magnitude(a) > (real)0x1p900;
    a = choose(large, a * (real)0x1p-120, a);
    b = choose(large, b * (real)0x1p120, b);
    const real_bits half = 0x4000000, mask = ~(2 * half - 1);
    const real a_high = real_of((bits_of(a) + half) & mask), a_low = a - a_high;
    const real b_high = real_of((bits_of(b) + half) & mask), b_low = b - b_high;
    const real product = a * b;
    const real rest = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
    /* c + rest and then product + that, both exactly; what they leave is rounded to odd */
    const real low = c + rest, low_of_rest = low - c;
    const real low_left = (c - (low - low_of_rest)) + (rest - low_of_rest);
    const real high = product + low, high_of_low = high - product;
    const real high_left = (product - (high - high_of_low)) + (low - high_of_low);
    const real sum = high + sum_rounded_to_odd(low_left, high_left);
    return choose((plain - plain == 0) & (sum != 0), sum, plain); /* infinite, NaN, or a zero of some sign */
#else
    return (real)sum_rounded_to_odd((double)a * (double)b, (double)c);
#endif
}

#if !defined(ONEPASS_EMULATE_FMA) && !defined(__FMA__) && !defined(__ARM_FEATURE_FMA) && !defined(__aarch64__) &&      \
    !(defined(__FP_FAST_FMA) && defined(__FP_FAST_FMAF)) && !defined(__CUDACC__)
#define ONEPASS_EMULATE_FMA
#endif

/* a * b + c, rounded once. */
ALWAYS_INLINE real fused(real a, real b, real c) {
#if defined(__CUDACC__)
    return sizeof(real) == sizeof(float) ? (real)__fmaf_rn((float)a, (float)b, (float)c)
                                         : (real)__fma_rn((double)a, (double)b, (double)c);
#elif defined(ONEPASS_EMULATE_FMA)
    return fused_emulated(a, b, c);
#else
    return sizeof(real) == sizeof(float) ? (real)__builtin_fmaf((float)a, (float)b, (float)c)
                                         : (real)__builtin_fma((double)a, (double)b, (double)c);
#endif
}

/* a * b + c where a * b may be denormal, which fused_emulated() cannot do in double. */
ALWAYS_INLINE real fused_if_float(real a, real b, real c) {
#if defined(ONEPASS_REAL_F64)
    return a * b + c;
#else
    return fused(a, b, c);
#endif
}

/* ----------------------------------------------------------- polynomials -- */

/* Coefficients from the highest power down, in groups that do not wait for each other: one after the other, Horner's
 * way, took twice as long on a Neoverse N1. With the square at hand, as it mostly is, pairs cost no operation more. */
ALWAYS_INLINE real linear(real c1, real c0, real x) {
    return fused(c1, x, c0);
}

ALWAYS_INLINE real cubic(real c3, real c2, real c1, real c0, real x, real x2) {
    return fused(linear(c3, c2, x), x2, linear(c1, c0, x));
}

/* (e^r - 1 - r) / r^2 for r in [log(3/4), log(3/2)]. The error, times r^2 / e^r, is below 2^-27.7 (2^-62.9). */
ALWAYS_INLINE real exp_polynomial(real r, real r2) {
#if defined(ONEPASS_REAL_F64)
    const real r4 = r2 * r2;
    real p = fused(0x1.2f00fc6dc4ea6p-29, r2, linear(0x1.aec90472c59e1p-26, 0x1.27dd6434131dbp-22, r));
    p = fused(p, r4,
              cubic(0x1.71de395f509bfp-19, 0x1.a01a0444239b8p-16, 0x1.a01a019c87fdep-13, 0x1.6c16c16bb1dp-10, r, r2));
    return fused(p, r4, cubic(0x1.1111111111a75p-7, 0x1.55555555556p-5, 0x1.5555555555554p-3, 0x1p-1, r, r2));
#else
    const real p = fused(0x1.7c1a28p-10f, r2, linear(0x1.11ef72p-7f, 0x1.554b4cp-5f, r));
    return fused(p, r2, linear(0x1.5554d8p-3f, 0x1p-1f, r));
#endif
}

/* (log(1+f) - f) / f^2 for f in [-1/4, 1/2], in double plus 1/2 and divided by f once more, so that this is less to be
 * rounded. The error, times f^2 / log(1+f), is below 2^-29.5 (2^-56.4). In float the coefficients of odd powers, the
 * highest among them, are positive, so that infinity gives infinity. */
ALWAYS_INLINE real log_curvature(real f, real f2) {
#if defined(ONEPASS_REAL_F64)
    const real f4 = f2 * f2;
    real p = fused(0x1.091f2d48450bp-7, f2, linear(-0x1.e1815463d3b5bp-6, 0x1.9f4c363b13d16p-5, f));
    p = fused(p, f4,
              cubic(-0x1.e8e7f3d4f5676p-5, 0x1.f252ab1899ab4p-5, -0x1.fffcddd685a44p-5, 0x1.101cafdbf21a7p-4, f, f2));
    p = fused(p, f4,
              cubic(-0x1.246575df046c2p-4, 0x1.3b1f033bfdd72p-4, -0x1.5559395e3dd25p-4, 0x1.745cec1f1d7ecp-4, f, f2));
    p = fused(p, f4,
              cubic(-0x1.999972ca78de8p-4, 0x1.c71c70dea6c55p-4, -0x1.00000063deef9p-3, 0x1.2492492974e2ep-3, f, f2));
    p = fused(p, f4,
              cubic(-0x1.555555545924ap-3, 0x1.999999998c6d3p-3, -0x1.0000000000772p-2, 0x1.55555555555ap-2, f, f2));
    return p;
#else
    real p = linear(0x1.349dc2p-5f, -0x1.7565fap-4f, f);
    p = fused(p, f2, linear(0x1.df422p-4f, -0x1.04aa32p-3f, f));
    p = fused(p, f2, linear(0x1.24609ep-3f, -0x1.5519b8p-3f, f));
    p = fused(p, f2, linear(0x1.999788p-3f, -0x1.00007p-2f, f));
    p = fused(p, f2, linear(0x1.55555ap-2f, -0x1p-1f, f));
    return p;
#endif
}

/* log(1+f) - f for f in [-1/4, 1/2], plus `more`; in double also plus `low`, which float has no use for. */
ALWAYS_INLINE real log_of_sum(real f, real low, real more) {
    const real f2 = f * f, curvature = log_curvature(f, f2);
#if defined(ONEPASS_REAL_F64)
    return more + fused(-0.5, f2, fused(f * curvature, f2, low));
#else
    (void)low;
    return fused(curvature, f2, more);
#endif
}

/* log(1+f) for f in [0, 1], in the same manner; the polynomial's error is below 2^-26.6 (2^-57.2). */
ALWAYS_INLINE real log_of_wide_sum(real f) {
    const real f2 = f * f;
#if defined(ONEPASS_REAL_F64)
    const real f4 = f2 * f2;
    real p = cubic(-0x1.24a35ca3e5661p-16, 0x1.b537f22793864p-13, -0x1.368afc8222eaap-10, 0x1.185def3cc6d44p-8, f, f2);
    p = fused(p, f4,
              cubic(-0x1.6bc57121a3f06p-7, 0x1.6cca50d1c6edfp-6, -0x1.2a5367b2e1eeap-5, 0x1.a0d88bfeb442cp-5, f, f2));
    p = fused(p, f4,
              cubic(-0x1.03f32356838c5p-4, 0x1.2d87944ed2cd1p-4, -0x1.50c2aa8c6ee35p-4, 0x1.73201d79aaa27p-4, f, f2));
    p = fused(p, f4,
              cubic(-0x1.9955d30662716p-4, 0x1.c71139698a2cbp-4, -0x1.fffe9949ce78p-4, 0x1.249238d672bcfp-3, f, f2));
    p = fused(p, f4,
              cubic(-0x1.5555544ee5a1ap-3, 0x1.9999998f0ef19p-3, -0x1.ffffffffc3bc7p-3, 0x1.55555555550fcp-2, f, f2));
    return f + fused(-0.5, f2, f * p * f2);
#else
    real p = fused(-0x1.e20458p-9f, f2, linear(0x1.6668ccp-6f, -0x1.f31234p-5f, f));
    p = fused(p, f2, linear(0x1.c3973p-4f, -0x1.3edd5p-3f, f));
    p = fused(p, f2, linear(0x1.94fa72p-3f, -0x1.ff7d72p-3f, f));
    p = fused(p, f2, linear(0x1.55527ep-2f, -0x1p-1f, f));
    return fused(p, f2, f);
#endif
}

/* (tanh(x) - x) / x^3 of z = x^2, for |x| <= TANH_EDGE. The error, times x^3 / tanh(x), is below 2^-27.1 (2^-56.9). */
#define TANH_EDGE ((real)0.65)

ALWAYS_INLINE real tanh_polynomial(real z) {
#if defined(ONEPASS_REAL_F64)
    const real z2 = z * z, z4 = z2 * z2;
    real p = cubic(0x1.78658accc793ap-18, -0x1.e982de908d66cp-16, 0x1.7bb7615d0bb1fp-14, -0x1.efcb7ce2ccbd6p-13, z, z2);
    p = fused(p, z4,
              cubic(0x1.34ed4e1b95dd1p-11, -0x1.7d98880e6f196p-10, 0x1.d6d30e8df8491p-9, -0x1.226e30d12513dp-7, z, z2));
    return fused(
        p, z4, cubic(0x1.664f485fdee5fp-6, -0x1.ba1ba1b97e889p-5, 0x1.11111111105f5p-3, -0x1.555555555554dp-2, z, z2));
#else
    real p = linear(-0x1.69718p-8f, 0x1.4f5f1p-6f, z);
    p = linear(p, -0x1.b7cff8p-5f, z);
    p = linear(p, 0x1.1103f2p-3f, z);
    return linear(p, -0x1.555524p-2f, z);
#endif
}

/* (log(cosh(x)) - x^2/2) / x^4 of z = x^2, for |x| <= TANH_EDGE: tanh's polynomial integrated, term by term. */
ALWAYS_INLINE real log_cosh_polynomial(real z) {
#if defined(ONEPASS_REAL_F64)
    const real z2 = z * z, z4 = z2 * z2;
    real p = cubic(0x1.cf41e5e858182p-23, -0x1.46573f0b08ef3p-20, 0x1.142846cf4e52ep-18, -0x1.8ca2ca4f0a312p-17, z, z2);
    p = fused(
        p, z4,
        cubic(0x1.129a0c8a4c52cp-15, -0x1.7d98880e6f196p-14, 0x1.0d0ae3bed7053p-12, -0x1.833d966c316fcp-11, z, z2));
    return fused(
        p, z4, cubic(0x1.1ea5d37fe584cp-9, -0x1.ba1ba1b97e889p-8, 0x1.6c16c16c15d47p-6, -0x1.555555555554dp-4, z, z2));
#else
    real p = linear(-0x1.e1ecaap-12f, 0x1.0c4c0cp-9f, z);
    p = linear(p, -0x1.b7cff8p-8f, z);
    p = linear(p, 0x1.6c0542p-6f, z);
    return linear(p, -0x1.555524p-4f, z);
#endif
}

/* (2 atanh(s) - 2 s - 2/3 s^3) / s^5 of z = s^2, for |s| <= 1/5. The error, times s^5 / (2 atanh(s)), is below 2^-36.9
 * (2^-66.1). */
ALWAYS_INLINE real atanh_polynomial(real z) {
#if defined(ONEPASS_REAL_F64)
    const real z2 = z * z;
    real p = cubic(0x1.017129f3e9992p-3, 0x1.dad48a4e92db9p-4, 0x1.1139f426d7b26p-3, 0x1.3b1299b3e736bp-3, z, z2);
    return fused(p, z2 * z2,
                 cubic(0x1.745d1bbf7ba9bp-3, 0x1.c71c71bc8205ap-3, 0x1.2492492498cc6p-2, 0x1.9999999999968p-2, z, z2));
#else
    return cubic(0x1.98be48p-3f, 0x1.c5ac76p-3f, 0x1.249548p-2f, 0x1.999996p-2f, z, z * z);
#endif
}

/* a = 1/d for d in [1, 2], to a relative 2^-14 (2^-29): a parabola to 2^-6.5, then Newton's step, which squares the
 * error and leaves it on one side; half of that is added again. Its users correct it by what a product of a and d
 * leaves of 1: since a is at least 1/2, also for d = 2, and at most just above 1, 1 - a is exact, and d - 1 need not be
 * rounded. */
ALWAYS_INLINE real near_reciprocal(real d) {
    real a = linear(linear((real)0x1.426d8ap-2, (real)-0x1.6e5bd2p+0, d), (real)0x1.0d7fe4p+1, d);
    a = fused(a, fused(-d, a, (real)0x1.0003cap+0), a);
#if defined(ONEPASS_REAL_F64)
    a = fused(a, fused(-d, a, 0x1.0000000754p+0), a);
#endif
    return a;
}

/* ------------------------------------------------------------ reciprocal -- */

/* 1 / d as IEEE 754 rounds it, for a d whose size is from 2^-100 to 2^100. A GPU has a reciprocal that may be off by a
 * unit in the last place, and a step of Newton's rounds it (tests/test_cuda_sizes.c compares divisors of all digits).
 */
#if defined(__CUDACC__) && !defined(ONEPASS_REAL_F64)
ALWAYS_INLINE real rough_reciprocal(real d) {
    real near;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(near) : "f"(d));
    return near;
}

ALWAYS_INLINE real real_reciprocal(real d) {
    const real near = rough_reciprocal(d);
    return fused(near, fused(-d, near, 1), near);
}

/* The same, or d may be 0 or infinite, which Newton's step does not survive. */
ALWAYS_INLINE real real_reciprocal_of_any(real d) {
    const real rounded = real_reciprocal(d);
    return choose(rounded == rounded, rounded, rough_reciprocal(d));
}
#else
ALWAYS_INLINE real real_reciprocal(real d) {
    return 1 / d;
}

ALWAYS_INLINE real real_reciprocal_of_any(real d) {
    return 1 / d;
}
#endif

/* ----------------------------------------------------------- exponential -- */

/* Adding a number whose last digit is worth 1 rounds to an integer, and leaves it, plus `bias`, in the lowest bits. */
#define ROUNDER(bias) ((real)3 * (real)((real_bits)1 << (REAL_MANTISSA_BITS - 1)) + (real)(bias))
/* Subtracted first, so that x / log(2) is rounded to the k with x - k log(2) in [log(3/4), log(3/2)]: below 1 numbers
 * lie twice as close as above, and an error counts twice, so the interval of e^r reaches half as far there. */
#define ROUNDED_FROM ((real)0.0849625)

/* x - k log(2), of which the first step is exact. */
ALWAYS_INLINE real remainder_of(real x, real k) {
    return fused(k, -LN_2_LOW, fused(k, -LN_2, x));
}

/* e^r - 1 = sum = r + curvature * r2 */
typedef struct grown {
    real r, r2, curvature, sum;
} grown;

ALWAYS_INLINE grown growth_of(real r) {
    grown g;
    g.r = r;
    g.r2 = r * r;
    g.curvature = exp_polynomial(r, g.r2);
    g.sum = fused(g.curvature, g.r2, r);
    return g;
}

ALWAYS_INLINE real at_most_one(real x) {
#if defined(__CUDACC__) && !defined(ONEPASS_REAL_F64)
    return __saturatef(x); /* which costs nothing; what is below 0 or NaN does not matter here */
#else
    return choose(x > 1, 1, x);
#endif
}

/* e^x = 2^k e^r. 2^k is a product of two, since k may lie beyond the exponents of numbers; only the last product can
 * round, and only to a denormal number. Where x is too large k is not, but r, and its polynomial gives a number that is
 * large enough, or infinity. */
#define EXP_POWERS ((real)(sizeof(real) == 4 ? 288 : 2112)) /* k is from LEAST to LEAST + POWERS */
#define EXP_LEAST  ((real)(sizeof(real) == 4 ? -158 : -1086))

ALWAYS_INLINE real real_exp(real x) {
    const real within = choose(x < EXP_LOWEST, EXP_LOWEST, x); /* NaN comes through */
    const real place = at_most_one(fused(within, LOG2_E / EXP_POWERS, (-EXP_LEAST - ROUNDED_FROM) / EXP_POWERS));
    const real rounded = fused(place, EXP_POWERS, ROUNDER(2 * REAL_BIAS) + EXP_LEAST);
    const real growth = growth_of(remainder_of(within, rounded - ROUNDER(2 * REAL_BIAS))).sum;
    const real_bits power = bits_of(rounded) << REAL_MANTISSA_BITS;
    const real_bits half = (bits_of(rounded) << (REAL_MANTISSA_BITS - 1)) & (REAL_SIGN_BIT | REAL_EXPONENT_BITS);
    return (1 + growth) * real_of(half) * real_of(power - half);
}

/* e^r - 1 for r = x + low - k log(2), whose own rounding is not lost: the digits that it lacks are added last. */
ALWAYS_INLINE real exact_growth(real x, real low, real k) {
    const grown g = growth_of(fused(k, -LN_2, x));
    const real lacking = fused(k, -LN_2_LOW, low);
    return g.r + fused(g.curvature, g.r2, fused(lacking, g.sum, lacking));
}

/* e^x - 1 = 2^k g + (2^k - 1) with e^r = 1 + g; halved, since 2^k may be infinite where the result is not. A tiny x
 * is its own result, also a denormal one, of which half would lose a digit, and -0. */
#define EXPM1_TINY  ((real)(sizeof(real) == 4 ? 0x1p-26 : 0x1p-56))
#define EXPM1_LEAST ((real)(sizeof(real) == 4 ? -20 : -40)) /* beyond which e^x is nothing to 1, ... */
#define EXPM1_MOST  ((real)(sizeof(real) == 4 ? 89 : 710))  /* ... or infinite */

ALWAYS_INLINE real real_expm1(real x) {
    const real within = choose(x < EXPM1_LEAST, EXPM1_LEAST, choose(x > EXPM1_MOST, EXPM1_MOST, x)); /* NaN as it is */
    const real rounded = fused(within, LOG2_E, -ROUNDED_FROM) + ROUNDER(REAL_BIAS - 1);
    const real half = real_of(bits_of(rounded) << REAL_MANTISSA_BITS);
    const real growth = exact_growth(within, 0, rounded - ROUNDER(REAL_BIAS - 1));
    return choose(magnitude(x) < EXPM1_TINY, x, 2 * fused(growth, half, half - (real)0.5));
}

/* y = e^-d = (1 + growth) * scale for a distance d >= 0. */
typedef struct decay {
    grown growth;
    real scale, y;
} decay;

ALWAYS_INLINE decay decay_of(real d) {
    const real within = choose(d > -EXP_LOWEST, -EXP_LOWEST, d); /* NaN comes through */
    const real rounded = fused(within, -LOG2_E, -ROUNDED_FROM) + ROUNDER(REAL_BIAS + 64);
    decay e;
    e.growth = growth_of(remainder_of(-within, rounded - ROUNDER(REAL_BIAS + 64)));
    /* 2^k may be denormal, which a product makes it. (2^-150, half of the smallest denormal number, becomes 0.) */
    e.scale = real_of(bits_of(rounded) << REAL_MANTISSA_BITS) * (real)0x1p-64;
    e.y = fused_if_float(e.growth.sum, e.scale, e.scale);
    return e;
}

/* 1 / (1 + e^d) for a distance d >= 0: y / (1+y) with y = e^-d. The terms of y are taken anew where y itself, rounded,
 * would cost a rounding; and the scale comes last, so that nothing is lost where the result is denormal. */
ALWAYS_INLINE real real_sigmoid_of_minus(real d) {
    const decay e = decay_of(d);
    const grown g = e.growth;
    const real a = near_reciprocal(1 + e.y);
    const real left = fused(-a, g.sum * e.scale, fused(-a, e.scale, 1 - a));
    const real more = fused(g.sum, left, left); /* (1 + g.sum) (1 + left) - 1 = g.sum + more */
    return fused(a, g.r + fused(g.curvature, g.r2, more), a) * e.scale;
}

/* 1 / (1 + e^-x) */
ALWAYS_INLINE real real_sigmoid(real x) {
    const real share = real_sigmoid_of_minus(magnitude(x));
    return choose(x < 0, share, 1 - share);
}

/* e^-d for a d >= 0, to be added to 1, to which e^-80 is nothing; NaN gives a number. */
ALWAYS_INLINE real near_decay(real d) {
#if defined(__CUDACC__)
    const real within = sizeof(real) == sizeof(float) ? (real)fminf((float)d, 80.0f) : (real)fmin((double)d, 80.0);
#else
    const real within = choose(d < 80, d, 80);
#endif
    const real rounded = fused(within, -LOG2_E, -ROUNDED_FROM) + ROUNDER(REAL_BIAS);
    const real scale = real_of(bits_of(rounded) << REAL_MANTISSA_BITS);
    return fused(growth_of(remainder_of(-within, rounded - ROUNDER(REAL_BIAS))).sum, scale, scale);
}

/* 1 - 2 y / (1+y) with y = e^-2|x|, or a polynomial where that would cancel, which NaN takes; and the sign of x. */
ALWAYS_INLINE real real_tanh(real x) {
    const real d = magnitude(x), z = d * d;
    const real y = near_decay(2 * d);
    const real a = near_reciprocal(1 + y);
    const real large = fused(-2 * y, fused(a, fused(-a, y, 1 - a), a), 1);
    const real small = fused(z * tanh_polynomial(z), d, d);
    return real_of(bits_of(choose(d > TANH_EDGE, large, small)) | (bits_of(x) & REAL_SIGN_BIT));
}

/* log(1 + e^-d) for a distance d >= 0 */
ALWAYS_INLINE real softplus_of_minus(real d) {
    return log_of_wide_sum(decay_of(d).y);
}

/* The sigmoids of a distance d >= 0 and of -d, by a reciprocal: in half of real_sigmoid()'s operations, and within 3
 * units in the last place. With y = e^-d they are 1 / (1+y) and y / (1+y). */
typedef struct sigmoids {
    real of_plus, of_minus;
} sigmoids;

ALWAYS_INLINE sigmoids quick_sigmoids(real d) {
    const real y = decay_of(d).y, reciprocal = real_reciprocal(1 + y);
    return (sigmoids){reciprocal, y * reciprocal};
}

ALWAYS_INLINE real real_quick_sigmoid(real x) {
    const sigmoids both = quick_sigmoids(magnitude(x));
    return choose(x < 0, both.of_minus, both.of_plus);
}

ALWAYS_INLINE real positive_part(real x) {
#if defined(__CUDACC__)
    return sizeof(real) == sizeof(float) ? (real)fmaxf((float)x, 0.0f) : (real)fmax((double)x, 0.0);
#else
    return choose(x > 0, x, 0); /* 0 for NaN */
#endif
}

/* log(1 + e^x) = max(x, 0) + log(1 + e^-|x|). */
ALWAYS_INLINE real real_softplus(real x) {
    return positive_part(x) + softplus_of_minus(magnitude(x));
}

/* log(cosh(x)) = |x| + log(1 + e^-2|x|) - log(2), or a polynomial where that would cancel, which NaN takes. */
ALWAYS_INLINE real real_log_cosh(real x) {
    const real d = magnitude(x), z = d * d;
    const real large = d + (log_of_wide_sum(near_decay(2 * d)) - LN_2);
    const real small = z * fused(z, log_cosh_polynomial(z), (real)0.5);
    return choose(d > TANH_EDGE, large, small);
}

/* ------------------------------------------------------------- logarithm -- */

/* Of the bits of 2^k m with m in [3/4, 3/2): minus k, at the place of the exponent. */
ALWAYS_INLINE real_bits opposite_exponent(real_bits bits) {
    const real_bits below = ((real_bits)1 << REAL_MANTISSA_BITS) - 1;
    return (bits_of((real)0.75) + below - bits) & ~below;
}

/* rest + k log(2), with k as the opposite of it, a number that is in float as large as the exponent's place makes it.
 * Its factor is OF_OPPOSITE(LN_2). */
typedef struct logarithm {
    real opposite, rest;
} logarithm;

#if defined(ONEPASS_REAL_F64)
#define OF_OPPOSITE(x) (-(x))
#else
#define OF_OPPOSITE(x) (-(x) * (real)0x1p-23)
#endif

ALWAYS_INLINE real number_of(real_bits exponent) {
#if defined(ONEPASS_REAL_F64)
    /* Becomes the lowest bits of a number whose last digit is worth 1: few machines convert 64-bit integers. */
    const real_bits biased = (exponent + ((real_bits)1100 << REAL_MANTISSA_BITS)) >> REAL_MANTISSA_BITS;
    return real_of(bits_of((real)0x1p52) | biased) - (real)(0x1p52 + 1100);
#else
    return (real)(int32_t)exponent;
#endif
}

/* The same for the ratio of two numbers, whose exponent k may be as far from 0 as 277 (2098), which an integer has no
 * place for on both sides: either down to there, and up to 180 (1100), or the other way round. */
typedef enum side {
    DOWN = sizeof(real) == 4 ? 74 : 0,
    UP = sizeof(real) == 4 ? -74 : -1100
} side;

ALWAYS_INLINE real number_of_ratio(real_bits exponent, side side) {
    const real unit = (real)(sizeof(real) == 4 ? 0x1p23 : 1);
    return number_of(exponent - ((real_bits)side << REAL_MANTISSA_BITS)) - (real)-side * unit;
}

/* k log(2) + log(1+f) for f in [-1/4, 1/2]. In float what k * LN_2 lacks is less than 2^-28 of the sum. */
ALWAYS_INLINE logarithm logarithm_of(real_bits opposite, real f) {
    logarithm l;
    l.opposite = number_of(opposite);
    l.rest = log_of_sum(f, l.opposite * OF_OPPOSITE(LN_2_LOW), f);
    return l;
}

/* Where k is 1 or -1 and the sum is below 1/2 it is exact, and elsewhere it is so much larger than the rest that the
 * latter's rounding counts for half. For k = 0 the product is -0, to which a rest of -0 may be added. */
ALWAYS_INLINE real sum_of(const logarithm l) {
    return fused(l.opposite, OF_OPPOSITE(LN_2), l.rest);
}

/* Of the bits of a number that is neither denormal nor 0. */
ALWAYS_INLINE logarithm logarithm_of_bits(real_bits bits) {
    const real_bits opposite = opposite_exponent(bits);
    return logarithm_of(opposite, real_of(bits + opposite) - 1);
}

/* The bits of a number above 0 and below infinity. A denormal number's exponent, below all that a number can have, only
 * exists as an integer. */
ALWAYS_INLINE real_bits normal_bits(real x) {
    const real shifted = real_of(bits_of(x * REAL_SHIFT) - REAL_SHIFT_BITS);
    return bits_of(choose(x < REAL_SMALLEST, shifted, x));
}

/* For losses that see to other arguments themselves; these give some number then. log(x) for x above 0 and below
 * infinity, ... */
ALWAYS_INLINE real real_log_of_positive(real x) {
    return sum_of(logarithm_of_bits(normal_bits(x)));
}

/* ... for x from 1 on, ... */
ALWAYS_INLINE real real_log_of_large(real x) {
    return sum_of(logarithm_of_bits(bits_of(x)));
}

/* ... for x from 0 to 1, where 0 gives a number below all other logarithms, -104.6 (-746.5). None is denormal once it
 * is multiplied, and the exponent is corrected as an integer. */
ALWAYS_INLINE real real_log_of_share(real x) {
    const real_bits bits = bits_of(x * REAL_SHIFT), opposite = opposite_exponent(bits);
    return sum_of(logarithm_of(opposite + REAL_SHIFT_BITS, real_of(bits + opposite) - 1));
}

/* ... and log(1-x) for x from 0 to 1, but for 1. */
ALWAYS_INLINE real real_log_of_rest(real x) {
    const real_bits opposite = opposite_exponent(bits_of(1 - x));
    const real scale = real_of(bits_of((real)1) + opposite);
    return sum_of(logarithm_of(opposite, fused(-x, scale, scale - 1)));
}

ALWAYS_INLINE real real_log(real x) {
    /* Infinity and NaN as they are; NaN for negative numbers */
    const real edge = fused(x, REAL_INFINITY, REAL_INFINITY);
    const real result = choose(bits_of(x) >= REAL_EXPONENT_BITS, edge, real_log_of_positive(x));
    return choose(x == 0, -REAL_INFINITY, result);
}

/* log(1+x) = k log(2) + log(1+f) with 1+f = (1+x) / 2^k, so f = x / 2^k - (1 - 1 / 2^k), where the product is exact and
 * so, up to k = 24 (53), beyond which 1 is nothing to x, is the difference. So 1+x, rounded, is good enough to find k.
 * For k = 0 it is x - 0, which leaves -0 as it is. */
ALWAYS_INLINE real log1p_above_minus_one(real x) {
    const real_bits opposite = opposite_exponent(bits_of(1 + x));
    const real scale = real_of(bits_of((real)4) + opposite) * (real)0.25; /* which may be denormal */
    return sum_of(logarithm_of(opposite, fused(x, scale, -(1 - scale))));
}

/* For x from 0 on, and NaN. */
ALWAYS_INLINE real real_log1p_of_positive(real x) {
#if defined(ONEPASS_REAL_F64)
    return choose(x == REAL_INFINITY, x, log1p_above_minus_one(x));
#else
    return log1p_above_minus_one(x); /* infinity comes through */
#endif
}

ALWAYS_INLINE real real_log1p(real x) {
    return choose(x > -1, real_log1p_of_positive(x), choose(x == -1, -REAL_INFINITY, REAL_NAN));
}

/* ---------------------------------------------------------------- powers -- */

/* A number as the sum of two, of which the second has digits that the first lacks. */
typedef struct pair {
    real high, low;
} pair;

ALWAYS_INLINE pair exact_sum(real a, real b) {
    const real sum = a + b, of_b = sum - a;
    return (pair){sum, (a - (sum - of_b)) + (b - of_b)};
}

ALWAYS_INLINE pair exact_product(real a, real b) {
    const real product = a * b;
    return (pair){product, fused(a, b, -product)};
}

ALWAYS_INLINE pair product_of_pairs(pair a, pair b) {
    const pair product = exact_product(a.high, b.high);
    return (pair){product.high, fused(a.high, b.low, fused(a.low, b.high, product.low))};
}

/* log(x) for x above 0 and below infinity, to a relative 2^-34 (2^-63): k log(2) + 2 atanh(s) with s = f / (2+f) =
 * f / divisor, of whose series 2 s + s^3 (2/3 + s^2 P(s^2)) all but P is a pair. */
#define TWO_THIRDS     ((real)(sizeof(real) == 4 ? 0x1.555556p-1 : 0x1.5555555555555p-1))
#define TWO_THIRDS_LOW ((real)(sizeof(real) == 4 ? -0x1.555556p-26 : 0x1.5555555555555p-55))

ALWAYS_INLINE pair log_pair(real x) {
    const real_bits bits = normal_bits(x), opposite = opposite_exponent(bits);
    const real f = real_of(bits + opposite) - 1, k = number_of(opposite);
    const real divisor = 2 + f, lacking = f - (divisor - 2);
    const real reciprocal = real_reciprocal(divisor), near = f * reciprocal;
    const pair s = {near, fused(-near, lacking, fused(-near, divisor, f)) * reciprocal};
    const pair square = product_of_pairs(s, s);
    const real p = atanh_polynomial(square.high);
    const pair more = exact_product(square.high, p);
    const real factor = TWO_THIRDS + more.high, rest = (TWO_THIRDS - factor) + more.high;
    const real factor_low = rest + (fused(square.low, p, more.low) + TWO_THIRDS_LOW);
    const pair cube = product_of_pairs(s, product_of_pairs(square, (pair){factor, factor_low}));
    const pair of_k = exact_product(k, OF_OPPOSITE(LN_2));
    const pair straight = exact_sum(of_k.high, 2 * s.high), sum = exact_sum(straight.high, cube.high);
    const real low = fused(k, OF_OPPOSITE(LN_2_LOW), of_k.low);
    return (pair){sum.high, low + (fused(2, s.low, cube.low) + (straight.low + sum.low))};
}

/* x^y * a * b for x from 0 on, NaN below, also where x^y alone is beyond the range of numbers: 2^k is multiplied in
 * thirds, one before a, one before b and one after it. As a factor x^y has an error below 1 unit in the last place; it
 * is infinite for x = 0 and infinity alone, so that a factor of 0 gives 0 where a power is merely huge. */
#define POWER_MOST ((real)(3 * (REAL_BIAS - 1))) /* of k, either way */

ALWAYS_INLINE real power_product(real x, real y, real a, real b) {
    const pair log = log_pair(x), product = exact_product(y, log.high);
    /* Infinity and NaN as they are; NaN for negative numbers */
    const real edge = y * choose(x == 0, -REAL_INFINITY, fused(x, REAL_INFINITY, REAL_INFINITY));
    const real any = choose((x > 0) & (x < REAL_INFINITY), product.high, edge), exponent = choose(y == 0, 0, any);
    const real low = choose(magnitude(exponent) < POWER_MOST, fused(y, log.low, product.low), 0);
    const real most = POWER_MOST * LN_2;
    const real within = choose(exponent < -most, -most, choose(exponent > most, most, exponent));
    const real k = fused(within, LOG2_E, -ROUNDED_FROM) + ROUNDER(0) - ROUNDER(0);
    const real third = fused(k, (real)(1.0 / 3), ROUNDER(REAL_BIAS));
    const real last = k - 2 * (third - ROUNDER(REAL_BIAS)) + ROUNDER(REAL_BIAS);
    const real scale = real_of(bits_of(third) << REAL_MANTISSA_BITS);
    const real growth = choose(exponent == REAL_INFINITY, exponent, exact_growth(within, low, k));
    return (1 + growth) * scale * a * scale * b * real_of(bits_of(last) << REAL_MANTISSA_BITS);
}

/* x^y for x from 0 on, NaN below. 1^y and x^0 are 1 whatever y and x are, NaN too, as C's pow has it. */
ALWAYS_INLINE real real_pow(real x, real y) {
    return choose((x == 1) | (y == 0), 1, power_product(x, y, 1, 1));
}

/* -------------------------------------------------------------- division -- */

/* 1/b = reciprocal * scale */
typedef struct inverse {
    real reciprocal, scale;
} inverse;

/* A power of two that brings b near 1, from where neither it nor its reciprocal is denormal or infinite but for b = 0
 * and infinity. It knows b's exponent without the lowest two bits, so that it has one itself, whatever b is: b * scale
 * is in [1, 16), and less only if b is denormal. */
ALWAYS_INLINE real scale_of(real b) {
    const real_bits one = (real_bits)1 << REAL_MANTISSA_BITS, four = 4 * one;
    const real_bits exponent = bits_of(b) & REAL_EXPONENT_BITS & ~(four - 1);
    return real_of(REAL_EXPONENT_BITS - one - exponent);
}

ALWAYS_INLINE inverse inverse_of(real b) {
    const real scale = scale_of(b);
    return (inverse){real_reciprocal_of_any(b * scale), scale};
}

/* a / b within 1.5 units in the last place, or the a next to it within 8 of the smallest denormal number, if that is
 * more. Not by a division, because a GPU's asks about its operands and branches, which keeps the elements of a thread
 * apart. */
ALWAYS_INLINE real real_ratio(real a, real b) {
    const inverse of_b = inverse_of(b);
    return a * of_b.reciprocal * of_b.scale;
}

/* The same for shares, numbers from 0 to 1: scaled first, so that nothing is lost of a tiny a. */
ALWAYS_INLINE real real_ratio_of_shares(real a, real b) {
    const inverse of_b = inverse_of(b);
    return a * of_b.scale * of_b.reciprocal;
}

/* The same for a parameter b above 0, of which the reciprocal is computed once: nothing is lost of a tiny a, and a
 * power of two divides exactly. */
ALWAYS_INLINE real by_parameter(real a, real b) {
    const real large = (real)(sizeof(real) == 4 ? 0x1p64 : 0x1p900), small = 1 / large;
    const real scale = choose(b > large, small, choose(b < small, large, 1));
    return a * scale * real_reciprocal_of_any(b * scale);
}

/* ---------------------------------------------------- logarithms of ratios -- */

/* log(1 + a/b) for a from 0 on and b from 2^-100 on, or 0, also where a/b overflows: as log1p, with 1 and a/b divided
 * by the scale of 1/b. */
ALWAYS_INLINE real real_log1p_of_ratio(real a, real b) {
    const inverse of_b = inverse_of(b);
    const real_bits exponent = bits_of(of_b.scale) - bits_of((real)1);
    const real ratio = a * of_b.reciprocal, one = real_of(bits_of((real)1) - exponent);
    const real_bits opposite = opposite_exponent(bits_of(ratio + one));
    const real power = real_of(bits_of((real)4) + opposite) * (real)0.25;
    const real result = sum_of(logarithm_of(opposite - exponent, fused(ratio, power, -(1 - one * power))));
#if defined(ONEPASS_REAL_F64)
    return choose(ratio == REAL_INFINITY, ratio, result);
#else
    return result;                   /* infinity comes through */
#endif
}

/* a/b = 2^k (1+f), also where a/b overflows or underflows: m is of its sign, and 0 or infinite only where it is. The
 * exponent k is that of the operands' scales and of what these leave. From 3/8 to 3, where little may be left of the
 * logarithm, f comes from the difference, with lack = 1 - a/b = (b-a)/b, which knows digits that a/b does not. */
typedef struct quotient {
    real m, k, f;
    real lack, less; /* less = 2^-k - 1 */
    bool near;
} quotient;

ALWAYS_INLINE quotient quotient_of(real a, real b, side side) {
    const real scale = scale_of(a);
    const inverse of_b = inverse_of(b);
    quotient q;
    /* scaled last, a tiny difference loses digits; scaled first, a large one is infinite, which near 1 none is */
    q.lack = side == UP ? (b - a) * of_b.scale * of_b.reciprocal : real_ratio(b - a, b);
    q.m = a * scale * of_b.reciprocal;
    const real_bits own = opposite_exponent(bits_of(q.m));
    const real_bits opposite = own + bits_of(scale) - bits_of(of_b.scale);
    const real power = real_of(bits_of((real)1) + opposite);
    q.k = number_of_ratio(opposite, side);
    q.less = power - 1;
    q.near = magnitude(q.k) < (real)-1.5 / OF_OPPOSITE(1);
    q.f = choose(q.near, fused(-q.lack, power, q.less), real_of(bits_of(q.m) + own) - 1);
    return q;
}

/* log(a/b) for a >= b >= 0; infinite for b = 0 and NaN for negative ratios. */
ALWAYS_INLINE real real_log_of_ratio(real a, real b) {
    const quotient q = quotient_of(a, b, UP);
    const logarithm l = {q.k, log_of_sum(q.f, q.k * OF_OPPOSITE(LN_2_LOW), q.f)};
    return choose((q.m > 0) & (q.m < REAL_INFINITY), sum_of(l), fused(q.m, REAL_INFINITY, REAL_INFINITY));
}

/* log(a/b) for shares, numbers above 0 and up to 2^100, whichever is larger, in two thirds of the operations; others
 * give some number. a/b = 2^k m/n, m in [1, 2) and m/n in [2/3, 3/2], since the difference of the numbers' bits is
 * nearly that of their logarithms; so m - n is exact, and log(m/n) = 2 atanh(s) with s = (m-n) / (m+n). */
ALWAYS_INLINE real real_log_of_shares(real a, real b) {
    const real_bits below = ((real_bits)1 << REAL_MANTISSA_BITS) - 1, half = (real_bits)1 << (REAL_MANTISSA_BITS - 1);
    const real_bits bits = bits_of(a * REAL_SHIFT), apart = bits_of(b * REAL_SHIFT) - bits;
    const real_bits opposite = (apart + half) & ~below;
    const real m = real_of((bits & below) | bits_of((real)1)), n = real_of(bits_of(m) + (apart - opposite));
    const real k = sizeof(real) == 4 ? number_of(opposite) : number_of_ratio(opposite, UP);
    const real s = (m - n) * real_reciprocal(m + n), z = s * s, factor = fused(z, atanh_polynomial(z), TWO_THIRDS);
    const real curved = sizeof(real) == 4 ? s * z * factor : fused(s * z, factor, k * OF_OPPOSITE(LN_2_LOW));
    return fused(k, OF_OPPOSITE(LN_2), fused(2, s, curved));
}

/* log(a/b) - (a/b - 1); minus infinity where a/b is 0, NaN where it is infinite, as the difference of two infinite
 * numbers is, or negative. Near 1 f + lack is not rounded. */
ALWAYS_INLINE real real_log_lag(real a, real b) {
    const quotient q = quotient_of(a, b, DOWN);
    const real near = fused(-q.lack, q.less, fused(q.k, OF_OPPOSITE(LN_2), q.less));
    const real straight = choose(q.near, near, fused(q.k, OF_OPPOSITE(LN_2), q.f + q.lack));
    const real result = log_of_sum(q.f, q.k * OF_OPPOSITE(LN_2_LOW), straight);
    return choose((q.m > 0) & (q.m < REAL_INFINITY), result, choose(q.m == 0, -REAL_INFINITY, REAL_NAN));
}

#endif
