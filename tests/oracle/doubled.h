/*
 * Numbers of twice double's precision, a sum of two doubles whose smaller one is at most half a unit in the last place
 * of the larger: for judging results of double, where long double has 64 bits on one machine and is slow in software on
 * another. About 100 bits are right, which is all that is asked for. Functions are written for clarity.
 */
#ifndef ONEPASS_TESTS_DOUBLED_H
#define ONEPASS_TESTS_DOUBLED_H

#include <math.h>

typedef struct doubled {
    double high, low;
} doubled;

static inline doubled doubled_of(double x) {
    return (doubled){x, 0};
}

/* Infinities and NaN have no lower part. */
static inline doubled doubled_normal(double high, double low) {
    const double sum = high + low;
    return isfinite(sum) ? (doubled){sum, low - (sum - high)} : (doubled){sum, 0};
}

static inline doubled doubled_add(doubled a, doubled b) {
    const double sum = a.high + b.high, taken = sum - a.high;
    const double error = (a.high - (sum - taken)) + (b.high - taken);
    if (!isfinite(sum)) {
        return doubled_of(sum);
    }
    return doubled_normal(sum, error + (a.low + b.low));
}

static inline doubled doubled_negative(doubled a) {
    return (doubled){-a.high, -a.low};
}

static inline doubled doubled_subtract(doubled a, doubled b) {
    return doubled_add(a, doubled_negative(b));
}

static inline doubled doubled_multiply(doubled a, doubled b) {
    const double product = a.high * b.high;
    if (!isfinite(product) || product == 0) {
        return doubled_of(product);
    }
    return doubled_normal(product, fma(a.high, b.high, -product) + (a.high * b.low + a.low * b.high));
}

static inline doubled doubled_divide(doubled a, doubled b) {
    const double first = a.high / b.high;
    if (!isfinite(first) || isinf(b.high)) {
        return doubled_of(first);
    }
    const doubled rest = doubled_subtract(a, doubled_multiply(b, doubled_of(first)));
    return doubled_normal(first, (rest.high + rest.low) / b.high);
}

/* By a small whole number, which is quicker. */
static inline doubled doubled_share(doubled a, double n) {
    const double first = a.high / n;
    return doubled_normal(first, (fma(-first, n, a.high) + a.low) / n);
}

/* By a step of Newton's. */
static inline doubled doubled_sqrt(doubled a) {
    const double first = sqrt(a.high);
    if (!isfinite(first) || first == 0) {
        return doubled_of(first);
    }
    const doubled rest = doubled_subtract(a, doubled_multiply(doubled_of(first), doubled_of(first)));
    return doubled_normal(first, (rest.high + rest.low) / (2 * first));
}

/* Times a power of two. */
static inline doubled doubled_scale(doubled a, int exponent) {
    return (doubled){ldexp(a.high, exponent), ldexp(a.low, exponent)};
}

/* e^x - 1 for |x| up to 1/2, by its series for x / 512 and (1 + e)^2 - 1 = 2 e + e^2. */
static inline doubled doubled_small_expm1(doubled x) {
    const doubled r = doubled_scale(x, -9);
    doubled sum = doubled_of(0);
    for (int n = 10; n >= 1; n--) {
        sum = doubled_share(doubled_multiply(r, doubled_add(doubled_of(1), sum)), n);
    }
    for (int i = 0; i < 9; i++) {
        sum = doubled_add(doubled_scale(sum, 1), doubled_multiply(sum, sum));
    }
    return sum;
}

/* e^x: 2^k e^r, with ln 2 as the sum of three doubles, the first of which has few bits. */
static inline doubled doubled_exp(doubled x) {
    if (x.high < -800) {
        return doubled_of(x.high == x.high ? 0 : x.high);
    }
    if (!(x.high < 800)) {
        return doubled_of(x.high == x.high ? INFINITY : x.high);
    }
    const double k = rint(x.high / 0.69314718055994531);
    doubled r = doubled_add(x, doubled_of(-k * 0x1.62e42fefap-1));
    r = doubled_add(r, doubled_multiply(doubled_of(-k), doubled_normal(0x1.cf79abc9e3b3ap-40, -0x1.ff0342542fc33p-94)));
    return doubled_scale(doubled_add(doubled_of(1), doubled_small_expm1(r)), (int)k);
}

/* log(1 + x) for x >= 0: 2 atanh(x / (2 + x)) by its series where x is small, else by Newton's method. */
static inline doubled doubled_log1p(doubled x) {
    if (!isfinite(x.high) || x.high == 0) {
        return doubled_of(x.high);
    }
    if (x.high < 0x1p-6) {
        const doubled s = doubled_divide(x, doubled_add(doubled_of(2), x)), square = doubled_multiply(s, s);
        doubled sum = doubled_of(0);
        for (int n = 21; n >= 1; n -= 2) {
            sum = doubled_add(doubled_divide(doubled_of(1), doubled_of(n)), doubled_multiply(square, sum));
        }
        return doubled_scale(doubled_multiply(s, sum), 1);
    }
    doubled y = doubled_of(log1p(x.high));
    for (int i = 0; i < 2; i++) {
        const doubled ratio = doubled_multiply(doubled_add(doubled_of(1), x), doubled_exp(doubled_negative(y)));
        y = doubled_add(y, doubled_subtract(ratio, doubled_of(1)));
    }
    return y;
}

/* tanh x, and its slope, 1 - tanh^2 x. */
static inline doubled doubled_tanh(doubled x, doubled *slope) {
    const doubled size = x.high < 0 ? doubled_negative(x) : x, one = doubled_of(1);
    const doubled e = doubled_exp(doubled_scale(doubled_negative(size), 1)); /* e^-2|x| */
    const doubled below = size.high < 0.25
                              ? doubled_negative(doubled_small_expm1(doubled_scale(doubled_negative(size), 1)))
                              : doubled_subtract(one, e);
    const doubled sum = doubled_add(one, e), tangent = doubled_divide(below, sum);
    *slope = doubled_divide(doubled_scale(e, 2), doubled_multiply(sum, sum));
    return x.high < 0 ? doubled_negative(tangent) : tangent;
}

#endif
