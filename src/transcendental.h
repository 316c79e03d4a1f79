/*
 * Elementary functions of a `real`, for losses that need them: included after loss.h, and like it compiled as C and as
 * CUDA C, in float and in double. libm and CUDA's library have other bits on every machine; these have the same ones
 * everywhere by construction, because nothing is used but what IEEE 754 fixes to the last bit: sums, products,
 * comparisons and the bits of a number. No fused multiply-add (SSE2 has none, so contraction must be off), no
 * division, no conversion, no table, no branch: loops over them vectorise (but doubles on SSE2 by gcc 12, which
 * choose() stops), and a GPU runs straight through. Rounding is to nearest, as the engines see to.
 *
 * Every result is within 1 unit in the last place of the exact one, denormal numbers included: tests/all_floats.c asks
 * all 2^32 floats, tests/test_transcendental.c many doubles; docs/numerics.md has the figures. NaN gives NaN, of any
 * face. tests/derive_polynomials.py derives the coefficients.
 *
 * Figures in comments are for float, with those for double in parentheses.
 */
#ifndef ONEPASS_TRANSCENDENTAL_H
#define ONEPASS_TRANSCENDENTAL_H

#if defined(ONEPASS_REAL_F64)
#define REAL_MANTISSA_BITS 52
#define REAL_BIAS          ((real_bits)1023)
#define REAL_SHORT_MASK    (~(real_bits)0x7ffffff) /* leaves 26 digits: products of two such are exact */
#define REAL_SMALLEST      ((real)0x1p-1022)       /* the smallest number that is not denormal */
#define REAL_SHIFT         ((real)0x1p54)          /* makes a denormal number a normal one */
#define REAL_SHIFT_POWER   ((real)54)
#define EXP_LOWEST         ((real)-746)    /* e^-745.14 is half of the smallest denormal number */
#define EXP_HIGHEST        ((real)710)     /* e^709.79 is infinite */
#define TANH_LINEAR        ((real)0x1p-28) /* below, tanh(x) = x: x^2 / 3 is less than 2^-57 */
#define LOG2_E             ((real)0x1.71547652b82fep+0)
#define LN_2_HIGH          ((real)0x1.62e42fefa38p-1) /* 42 digits: times an exponent it is exact */
#define LN_2_LOW           ((real)0x1.ef35793c7673p-45)
#else
#define REAL_MANTISSA_BITS 23
#define REAL_BIAS          ((real_bits)127)
#define REAL_SHORT_MASK    (~(real_bits)0xfff) /* leaves 12 digits: products of two such are exact */
#define REAL_SMALLEST      ((real)0x1p-126)
#define REAL_SHIFT         ((real)0x1p24)
#define REAL_SHIFT_POWER   ((real)24)
#define EXP_LOWEST         ((real)-104)    /* e^-103.98 is half of the smallest denormal number */
#define EXP_HIGHEST        ((real)89)      /* e^88.73 is infinite */
#define TANH_LINEAR        ((real)0x1p-13) /* x^2 / 3 is less than 2^-27 */
#define LOG2_E             ((real)0x1.715476p+0)
#define LN_2_HIGH          ((real)0x1.62e4p-1) /* 16 digits */
#define LN_2_LOW           ((real)0x1.7f7d1cp-20)
#endif

#define REAL_INFINITY real_of(REAL_EXPONENT_BITS)
#define REAL_NAN      real_of(REAL_NAN_BITS)

/* The sum of a number and of another, much smaller one: what rounding took from the first. */
typedef struct real_pair {
    real head, tail;
} real_pair;

/* a + b, exactly, for |a| >= |b| or a = 0 (or an a so short that a - sum is exact all the same). */
ALWAYS_INLINE real_pair fast_sum(real a, real b) {
    const real sum = a + b;
    const real_pair exact = {sum, (a - sum) + b};
    return exact;
}

/* 2^(biased - REAL_BIAS), for exponents of normal numbers. */
ALWAYS_INLINE real power_of_two(real_bits biased) {
    return real_of(biased << REAL_MANTISSA_BITS);
}

/* ----------------------------------------------------------- polynomials -- */

/* Coefficients from the highest power down, in groups that do not wait for each other: one after the other, Horner's
 * way, took twice as long on a Neoverse N1. In float the groups are pairs, which cost no operation more. */
ALWAYS_INLINE real linear(real c1, real c0, real x) {
    return c1 * x + c0;
}

ALWAYS_INLINE real cubic(real c3, real c2, real c1, real c0, real x, real x2) {
    return linear(c3, c2, x) * x2 + linear(c1, c0, x);
}

/* (e^r - 1 - r - r^2/2) / r^3 for |r| <= log(2)/2. The error, times r^3 / (e^r - 1), is below 2^-29.8 (2^-59.5). */
ALWAYS_INLINE real exp_polynomial(real r, real r2) {
#if defined(ONEPASS_REAL_F64)
    const real r4 = r2 * r2;
    real p = linear(0x1.1ef53b62163f8p-29, 0x1.af5e861a0e5a2p-26, r);
    p = p * r4 +
        cubic(0x1.27e52bad24c59p-22, 0x1.71ddf898a1af7p-19, 0x1.a01a01828c324p-16, 0x1.a01a01afb8064p-13, r, r2);
    return p * r4 +
           cubic(0x1.6c16c16c1cf06p-10, 0x1.111111110f75bp-7, 0x1.5555555555549p-5, 0x1.5555555555559p-3, r, r2);
#else
    const real p = 0x1.9fbdaap-13f * r2 + linear(0x1.6d421cp-10f, 0x1.1111cep-7f, r);
    return p * r2 + linear(0x1.5554fp-5f, 0x1.555554p-3f, r);
#endif
}

/* (log(1+f) - f + f^2/2) / f^3 for f in [-5/16, 3/8]. The error, times f^3 / log(1+f), is below 2^-27.3 (2^-56.5). */
ALWAYS_INLINE real log_polynomial(real f, real f2) {
#if defined(ONEPASS_REAL_F64)
    const real f4 = f2 * f2;
    real p = 0x1.7826c8626d198p-5 * f2 + linear(-0x1.3affbb9c5c9d8p-4, 0x1.f436d5ccd2483p-5, f);
    p = p * f4 + cubic(-0x1.99ec5eca639ap-5, 0x1.ce84090ac36d3p-5, -0x1.025fd265d725ep-4, 0x1.1258c2c4035p-4, f, f2);
    p = p * f4 + cubic(-0x1.246e91b341ecdp-4, 0x1.3afadd99bb575p-4, -0x1.5556796b1725p-4, 0x1.745e39c1a7e96p-4, f, f2);
    p = p * f4 + cubic(-0x1.9999958e4840dp-4, 0x1.c71c69d6e80fbp-4, -0x1.fffffffcb13f1p-4, 0x1.249249342f203p-3, f, f2);
    return p * f4 +
           cubic(-0x1.5555555571e96p-3, 0x1.999999997bb4bp-3, -0x1.ffffffffffd1dp-3, 0x1.55555555555fp-2, f, f2);
#else
    real p = linear(-0x1.934e6ep-4f, 0x1.167ccap-3f, f);
    p = p * f2 + linear(-0x1.063f06p-3f, 0x1.202ecap-3f, f);
    p = p * f2 + linear(-0x1.54cfdep-3f, 0x1.99bed8p-3f, f);
    return p * f2 + linear(-0x1.00016cp-2f, 0x1.555526p-2f, f);
#endif
}

/* 1/d for d in [1, 2], to a relative 2^-18 and 2^-36: Chebyshev's cubic to 2^-9.2, then Newton's step, which squares
 * the error. Its users correct a quotient that has half of its digits already, so this need not be exact. */
ALWAYS_INLINE real near_reciprocal(real d) {
    real r = (real)-0x1.c65285fd56843p-3;
    r = r * d + (real)0x1.54bde47e00e33p+0;
    r = r * d - (real)0x1.783c56f5cba58p+1;
    r = r * d + (real)0x1.6a09c2c5e0f16p+1;
    r = r * (2 - d * r);
#if defined(ONEPASS_REAL_F64)
    r = r * (2 - d * r);
#endif
    return r;
}

/* ----------------------------------------------------------- exponential -- */

/* e^x = 2^k (1 + first - low + r^2/2 + curve). The lowest bits of `power`, as many as an exponent and a sign have, are
 * k + bias. */
typedef struct reduced {
    real first, low, square, curve;
    real_bits power;
} reduced;

/* For EXP_LOWEST <= x <= EXP_HIGHEST, or NaN. The bias is the caller's, so that k + bias is not negative. */
ALWAYS_INLINE reduced reduce(real x, real_bits bias) {
    /* Adding a number whose last digit is worth 1 rounds to an integer, and leaves it in the lowest bits. */
    const real magic = (real)3 * (real)((real_bits)1 << (REAL_MANTISSA_BITS - 1)) + (real)bias;
    const real shifted = x * LOG2_E + magic;
    const real k = shifted - magic;
    /* k * LN_2_HIGH is exact for its few digits. So is the difference: both are multiples of the last digit of x or
     * of 2^-16 (2^-42), and it is at most 0.35. */
    const real first = x - k * LN_2_HIGH;
    const real low = k * LN_2_LOW;
    const real r = first - low, r2 = r * r;
    const reduced e = {first, low, (real)0.5 * r2, r2 * (r * exp_polynomial(r, r2)), bits_of(shifted)};
    return e;
}

/* 1 + first - low + square + curve, smaller terms first; off by at most 2^-26.2 (2^-55.3). */
ALWAYS_INLINE real_pair significand_of(const reduced e) {
    const real_pair sum = fast_sum(1, e.first);
    return fast_sum(sum.head, ((sum.tail - e.low) + e.curve) + e.square);
}

ALWAYS_INLINE real real_exp(real x) {
    const real above = choose(x < EXP_LOWEST, EXP_LOWEST, x); /* NaN comes through */
    const reduced e = reduce(choose(above > EXP_HIGHEST, EXP_HIGHEST, above), 2 * REAL_BIAS);
    /* 2^k as a product of two, since k may lie beyond the exponents of numbers. Only the last product can round, and
     * only to a denormal number. */
    const real_bits power = e.power & (4 * REAL_BIAS + 3), half = power >> 1;
    return significand_of(e).head * power_of_two(half) * power_of_two(power - half);
}

/* e^-d = significand * scale for a distance d >= 0. */
typedef struct decay {
    real_pair significand;
    real scale;
} decay;

ALWAYS_INLINE decay decay_of(real d) {
    const reduced e = reduce(-choose(d > -EXP_LOWEST, -EXP_LOWEST, d), REAL_BIAS + 64);
    /* 2^k may be denormal, which a product makes it. (2^-150, half of the smallest denormal number, becomes 0.) */
    const decay y = {significand_of(e), power_of_two(e.power) * (real)0x1p-64};
    return y;
}

ALWAYS_INLINE real_pair scaled(const decay y) {
    const real_pair number = {y.significand.head * y.scale, y.significand.tail * y.scale};
    return number;
}

/* ------------------------------------------------------------- quotients -- */

/* numerator / (1 + y), for y in [0, 1]. With half of the digits in the quotient and in the divisor their product is
 * exact, and so is what is left of the numerator. */
ALWAYS_INLINE real ratio(real_pair numerator, real_pair y) {
    const real divisor = 1 + y.head;
    const real reciprocal = near_reciprocal(divisor);
    const real quotient = real_of(bits_of(numerator.head * reciprocal) & REAL_SHORT_MASK);
    const real high = real_of(bits_of(divisor) & REAL_SHORT_MASK);
    const real low = ((1 - high) + y.head) + y.tail;
    const real left = (numerator.head - quotient * high) + (numerator.tail - quotient * low);
    return quotient + left * reciprocal;
}

/* 1 / (1 + e^-x). With y = e^-|x| it is 1 / (1 + y) for positive x and y / (1 + y) for negative; the latter is scaled
 * last, so that it loses nothing where it is denormal. */
ALWAYS_INLINE real real_sigmoid(real x) {
    const decay y = decay_of(magnitude(x));
    const bool negative = x < 0;
    const real_pair numerator = {choose(negative, y.significand.head, 1), choose(negative, y.significand.tail, 0)};
    const real q = ratio(numerator, scaled(y));
    return choose(negative, q * y.scale, q);
}

/* (1 - y) / (1 + y) with y = e^-2|x|, and the sign of x. Where |x| is small the numerator's head has few digits left,
 * but these are exact, and the tail has the others. */
ALWAYS_INLINE real real_tanh(real x) {
    const real distance = magnitude(x);
    const real_pair y = scaled(decay_of(2 * distance));
    real_pair numerator = fast_sum(1, -y.head);
    numerator.tail = numerator.tail - y.tail;
    const real q = ratio(numerator, y);
    return choose(distance < TANH_LINEAR, x, real_of(bits_of(q) | (bits_of(x) & REAL_SIGN_BIT)));
}

/* ------------------------------------------------------------- logarithm -- */

/* base + log(1 + f) for f in [-5/16, 3/8], where |base| > |f| or base = 0. The square, which is the largest term of the
 * rest, is added last, so that only two roundings count: its own and that of the rest. The interval is where the rest
 * is below 2^-4, and so they are at most 2^-28 and 2^-29 (2^-57 and 2^-58). */
ALWAYS_INLINE real plus_log(real_pair base, real f) {
    const real_pair sum = fast_sum(base.head, f);
    const real f2 = f * f;
    const real rest = (f2 * (f * log_polynomial(f, f2)) + (sum.tail + base.tail)) - (real)0.5 * f2;
    return sum.head + rest;
}

/* With x = 2^k m and m in [11/16, 11/8): the bits of 2^k times 1 + (m - 11/16), in the format of numbers. */
ALWAYS_INLINE real_bits split(real x) {
    return bits_of(x) - bits_of((real)0.6875) + (REAL_BIAS << REAL_MANTISSA_BITS);
}

/* k log(2), of what split() gave: k + bias becomes the lowest bits of a number whose last digit is worth 1. `origin` is
 * what that number is for k = 0. */
#define LOG_ORIGIN ((real)((real_bits)1 << REAL_MANTISSA_BITS) + (real)REAL_BIAS)

ALWAYS_INLINE real_pair log_of_power(real_bits split, real origin) {
    const real_bits magic = bits_of((real)((real_bits)1 << REAL_MANTISSA_BITS));
    const real k = real_of(magic | (split >> REAL_MANTISSA_BITS)) - origin;
    const real_pair product = {k * LN_2_HIGH, k * LN_2_LOW};
    return product;
}

ALWAYS_INLINE real real_log(real x) {
    const bool denormal = x < REAL_SMALLEST;
    const real_bits parts = split(choose(denormal, x * REAL_SHIFT, x));
    const real m = real_of((parts & ~(REAL_SIGN_BIT | REAL_EXPONENT_BITS)) + bits_of((real)0.6875));
    const real origin = choose(denormal, LOG_ORIGIN + REAL_SHIFT_POWER, LOG_ORIGIN);
    const real result = plus_log(log_of_power(parts, origin), m - 1);
    const real edge = choose(x == 0, -REAL_INFINITY, REAL_NAN);
    return choose(x > 0, choose(x == REAL_INFINITY, x, result), edge);
}

/* base + log(1 + f). The derivative, 1 / (1+f), is near enough to 1 - f for what the tail contributes. */
ALWAYS_INLINE real plus_log_of_sum(real_pair base, real_pair f) {
    base.tail = base.tail + f.tail * (1 - f.head);
    return plus_log(base, f.head);
}

/* log(1+x) = k log(2) + log(1+f) with 1+f = (1+x) / 2^k, so f = (1 / 2^k - 1) + x / 2^k. Both terms are exact up to
 * k = 24 (53), beyond which 1 is nothing to x, and fast_sum is exact too: they are opposite and within a factor of 2 of
 * each other unless k = 1 and x < 1/2, when the first is the larger. So 1+x, rounded, is good enough to find k. */
ALWAYS_INLINE real real_log1p(real x) {
    const real_bits parts = split(1 + x);
    const real_bits k = (parts & REAL_EXPONENT_BITS) - (REAL_BIAS << REAL_MANTISSA_BITS);
    /* k = 0 wherever x is so small that it must not lose bits here; four times 1 / 2^k is a number for all k. */
    const real reduced_x = real_of(bits_of(x) - k);
    const real scale = real_of(bits_of((real)4) - k) * (real)0.25;
    const real result = plus_log_of_sum(log_of_power(parts, LOG_ORIGIN), fast_sum(scale - 1, reduced_x));
    const real edge = choose(x == -1, -REAL_INFINITY, REAL_NAN);
    /* x + x == x: the zeros, whose sign is kept, and infinity */
    return choose(x > -1, choose(x + x == x, x, result), edge);
}

/* log(1 + e^x) = max(x, 0) + log(1+y) with y = e^-|x|, and log(1+y) = log(2) + log(1 + (y-1)/2) where y > 3/8. */
ALWAYS_INLINE real real_softplus(real x) {
    const real_pair y = scaled(decay_of(magnitude(x)));
    const bool large = y.head > (real)0.375;
    const real half = choose(large, (real)0.5, 1);
    real_pair f = fast_sum(half - 1, y.head * half);
    f.tail = f.tail + y.tail * half;
    /* Exact although x may be larger, up to 1: LN_2_HIGH has so few digits. */
    real_pair base = fast_sum(choose(large, LN_2_HIGH, 0), choose(x > 0, x, 0));
    base.tail = base.tail + choose(large, LN_2_LOW, 0);
    /* Beyond, x is its own softplus, infinity included, which the sums would make a NaN. */
    return choose(x > -EXP_LOWEST, x, plus_log_of_sum(base, f));
}

#endif
