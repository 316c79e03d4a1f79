/*
 * Numbers in memory: f16, bf16, f32 and f64, loaded and stored alike everywhere.
 *
 * Loading is exact. Storing rounds once, to nearest even, and a NaN is stored as
 * the canonical quiet one. Conversions that an instruction set has are used where
 * the compiler offers them; the integer versions give the same bits.
 */
#ifndef ONEPASS_DTYPE_H
#define ONEPASS_DTYPE_H

#include "math/real.h"
#include "onepass.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The compiler's half, where loops over it become vector code. On x86 they do not
 * (gcc 12 and 13 convert one number at a time, at a quarter of the rate of f32),
 * and the integer version does. */
#if defined(__aarch64__) && !defined(__cplusplus)
typedef __fp16 native_half;
#define NATIVE_HALF 1
#else
#define NATIVE_HALF 0
#endif

/* A number whose origin the compiler is not to look at. gcc compares what was a half as a half, of which it makes no
 * vectors: on a Neoverse N1 tweedie_deviance took 102 ns an element instead of 23, and kl_div with its gradient 15
 * instead of 5. */
#define OF_UNKNOWN_ORIGIN(x) (x)
#if defined(__has_builtin)
#if __has_builtin(__builtin_assoc_barrier)
#undef OF_UNKNOWN_ORIGIN
#define OF_UNKNOWN_ORIGIN(x) __builtin_assoc_barrier(x)
#endif
#endif

ALWAYS_INLINE size_t dtype_size(int32_t dtype) {
    switch (dtype) {
    case ONEPASS_F64:
    case ONEPASS_I64:
        return 8;
    case ONEPASS_F32:
    case ONEPASS_I32:
        return 4;
    case ONEPASS_BOOL:
    case ONEPASS_U8:
        return 1;
    default:
        return 2;
    }
}

ALWAYS_INLINE uint32_t f32_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

ALWAYS_INLINE float f32_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

ALWAYS_INLINE uint32_t choose_bits(bool condition, uint32_t a, uint32_t b) {
    const uint32_t mask = 0u - (uint32_t)condition;
    return (a & mask) | (b & ~mask);
}

/* ---------------------------------------------------- 16 bits to float -- */

ALWAYS_INLINE float f32_of_bf16(uint16_t half) {
    return f32_of((uint32_t)half << 16);
}

ALWAYS_INLINE float f32_of_f16(uint16_t half) {
#if defined(__CUDACC__)
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(half));
    return x;
#elif NATIVE_HALF
    native_half native;
    memcpy(&native, &half, sizeof native);
    return OF_UNKNOWN_ORIGIN((float)native);
#else
    /* Exponent and mantissa in float's places; the product re-biases the exponent, denormals included. */
    const uint32_t magnitude_bits = f32_bits(f32_of((uint32_t)(half & 0x7fff) << 13) * 0x1p112f);
    const uint32_t special = choose_bits((half & 0x7c00) == 0x7c00, 0x7f800000u, 0);
    return f32_of(magnitude_bits | special | (uint32_t)(half & 0x8000) << 16);
#endif
}

/* ---------------------------------------------------- float to 16 bits -- */

/* Of a number that is no NaN but the canonical one. */
ALWAYS_INLINE uint16_t bf16_of_canonical(float x) {
    const uint32_t bits = f32_bits(x);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

ALWAYS_INLINE uint16_t bf16_of_f32(float x) {
    return (uint16_t)choose_bits((f32_bits(x) & 0x7fffffffu) > 0x7f800000u, 0x7fc0u, bf16_of_canonical(x));
}

ALWAYS_INLINE uint16_t f16_of_f32(float x) {
    const uint32_t bits = f32_bits(x);
    const uint32_t size = bits & 0x7fffffffu;
#if defined(__CUDACC__)
    uint16_t half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
#elif NATIVE_HALF
    const native_half native = (native_half)x;
    uint16_t half;
    memcpy(&half, &native, sizeof half);
#else
    /* Normal: re-bias, round at bit 13; the carry out of the largest number is infinity. */
    const uint32_t normal = (size - 0x38000000u + 0xfffu + ((size >> 13) & 1u)) >> 13;
    /* Denormal: added to 0.5 the last bit of the sum is worth 2^-24, and the addition rounds. */
    const uint32_t denormal = f32_bits(f32_of(size) + 0.5f) - 0x3f000000u;
    uint32_t half = choose_bits(size < 0x38800000u, denormal, normal);
    half = choose_bits(size >= 0x47800000u, 0x7c00u, half);
    half |= bits >> 16 & 0x8000u;
#endif
    return (uint16_t)choose_bits(size > 0x7f800000u, 0x7e00u, half);
}

/* --------------------------------------------------- double to 16 bits -- */

/* Rounds a double once to a format with so many bits of mantissa and such a
 * bias: through float it would be rounded twice. */
ALWAYS_INLINE uint16_t small_of_f64(double x, int mantissa, int bias, uint16_t nan) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint16_t negative = (uint16_t)(bits >> 63 << 15);
    const uint64_t size = bits & UINT64_C(0x7fffffffffffffff);
    const uint16_t infinity = (uint16_t)((2 * bias + 1) << mantissa);
    if (size > UINT64_C(0x7ff0000000000000))
        return nan;
    const int exponent = (int)(size >> 52) - 1023;
    if (exponent > bias)
        return negative | infinity;
    uint64_t digits = size & UINT64_C(0x000fffffffffffff);
    int drop = 52 - mantissa;
    if (exponent > -bias) {
        digits |= (uint64_t)(exponent + bias) << 52;
    } else {
        digits |= UINT64_C(1) << 52; /* doubles too small to have this bit are dropped below */
        drop += 1 - bias - exponent;
        if (drop > 54)
            return negative;
    }
    const uint64_t half = UINT64_C(1) << (drop - 1);
    const uint64_t odd = digits >> drop & 1;
    return negative | (uint16_t)((digits + half - 1 + odd) >> drop);
}

ALWAYS_INLINE uint16_t f16_of_f64(double x) {
    return small_of_f64(x, 10, 15, 0x7e00);
}

ALWAYS_INLINE uint16_t bf16_of_f64(double x) {
    return small_of_f64(x, 7, 127, 0x7fc0);
}

/* --------------------------------------- one of many, in the compute type -- */

ALWAYS_INLINE real load_f16(const void *data, int64_t i) {
    return f32_of_f16(((const uint16_t *)data)[i]);
}
ALWAYS_INLINE real load_bf16(const void *data, int64_t i) {
    return f32_of_bf16(((const uint16_t *)data)[i]);
}
ALWAYS_INLINE real load_f32(const void *data, int64_t i) {
    return ((const float *)data)[i];
}
ALWAYS_INLINE real load_f64(const void *data, int64_t i) {
    return (real)((const double *)data)[i];
}

ALWAYS_INLINE real load_bool(const void *data, int64_t i) {
    return ((const unsigned char *)data)[i] != 0;
}

/* ----------------------------------------------------------- class indices -- */

ALWAYS_INLINE int64_t load_index(const void *data, int32_t dtype, int64_t i) {
    return dtype == ONEPASS_I64   ? ((const int64_t *)data)[i]
           : dtype == ONEPASS_I32 ? ((const int32_t *)data)[i]
                                  : ((const uint8_t *)data)[i];
}

/* ------------------------------------------- one number, any type, f64 -- */

/* For scalars: the upstream gradient and the value. */
ALWAYS_INLINE double load_scalar(const void *data, int32_t dtype) {
    switch (dtype) {
    case ONEPASS_F16:
        return (double)f32_of_f16(*(const uint16_t *)data);
    case ONEPASS_BF16:
        return (double)f32_of_bf16(*(const uint16_t *)data);
    case ONEPASS_F32:
        return (double)*(const float *)data;
    case ONEPASS_BOOL:
        return *(const unsigned char *)data != 0;
    default:
        return *(const double *)data;
    }
}

/* Whole numbers, too. */
ALWAYS_INLINE double load_number(const void *data, int32_t dtype) {
    return dtype >= ONEPASS_I64 ? (double)load_index(data, dtype, 0) : load_scalar(data, dtype);
}

ALWAYS_INLINE void store_scalar(void *data, int32_t dtype, double x) {
    const uint64_t nan = UINT64_C(0x7ff8000000000000);
    if (x != x)
        memcpy(&x, &nan, sizeof x);
    switch (dtype) {
    case ONEPASS_F32:
        *(float *)data = (float)x;
        break;
    case ONEPASS_F64:
        *(double *)data = x;
        break;
    default: /* both in one, since every kernel has this code */
        *(uint16_t *)data = dtype == ONEPASS_F16 ? f16_of_f64(x) : bf16_of_f64(x);
    }
}

#endif
