/*
 * The quotient of two doubles, rounded to double and then to float, as C has it, in a third of the steps: small
 * launches wait for each of them (20 to 40 ns of 1200 to 2000). Without wide.h, whose table would have every launch of
 * a kernel beside it wait for one more bank of constants (80 ns).
 */
#ifndef ONEPASS_CUDA_QUOTIENT_H
#define ONEPASS_CUDA_QUOTIENT_H

#include "math/real.h"

typedef struct quick_quotient {
    float rounded;
    bool is_sure; /* else it may be anything */
} quick_quotient;

#if defined(__CUDACC__)
/* 1 / x to 19 binary digits; 0 where that is denormal, and infinity where x is. */
ALWAYS_INLINE double rough_reciprocal(double x) {
    double found;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(found) : "d"(x));
    return found;
}

/* a * b + c, rounded once. */
ALWAYS_INLINE double quotient_fused(double a, double b, double c) {
    return __fma_rn(a, b, c);
}
#else
ALWAYS_INLINE double rough_reciprocal(double x) {
    double found = 1 / x;
    uint64_t bits;
    memcpy(&bits, &found, sizeof bits);
    bits &= ~UINT64_C(0) << 33;
    memcpy(&found, &bits, sizeof found);
    return found;
}

ALWAYS_INLINE double quotient_fused(double a, double b, double c) {
    return __builtin_fma(a, b, c);
}
#endif

/*
 * By a reciprocal of twice the 19 digits that rough_reciprocal() has, so that the quotient is wrong by less than 2^-36
 * of it. That rounds to the same float as the quotient in double, which is wrong by 2^-53 of it, unless the middle
 * between two floats is nearer than 2^-35. Nothing is sure of what is no normal float: zeros, infinities and NaN, too.
 */
ALWAYS_INLINE quick_quotient divide_quickly(double a, double b) {
    const double rough = rough_reciprocal(b);
    const double quotient = a * quotient_fused(rough, quotient_fused(-b, rough, 1), rough);
    uint64_t bits;
    memcpy(&bits, &quotient, sizeof bits);
    const uint32_t low = (uint32_t)bits, high = (uint32_t)(bits >> 32) & 0x7fffffff;
    const uint32_t beyond_float = 1u << 29, margin = 1u << 17; /* units of the double's last place */
    const bool is_near_middle = ((low + beyond_float / 2 + margin) & (beyond_float - 1)) < 2 * margin;
    const bool is_normal = high >= 0x38200000 && high < 0x47e00000; /* 2^-125 to 2^127 */
    const bool is_sure = is_normal & !is_near_middle;               /* without a branch */
    return (quick_quotient){(float)quotient, is_sure};
}

#endif
