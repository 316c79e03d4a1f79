/*
 * Vectors of reals by the instructions of Arm, and of floats by those of AVX-512, for what a compiler does not find.
 * ONEPASS_HAS_REALS says whether there are any.
 */
#ifndef ONEPASS_CPU_VECTOR_REALS_H
#define ONEPASS_CPU_VECTOR_REALS_H

#include "math/real.h"

#if defined(__aarch64__)
#include <arm_neon.h>

#define ONEPASS_HAS_REALS 1
#if defined(ONEPASS_REAL_F64)
typedef float64x2_t reals;
typedef int64x2_t reals_bits;
#define SAME_REALS(x)                                                                                                  \
    { x, x }
#define NEON(operation)      operation##_f64
#define NEON_BITS(operation) operation##_s64
#define BITS_OF_REALS(x)     vreinterpretq_s64_f64(x)
#define REALS_OF_BITS(bits)  vreinterpretq_f64_s64(bits)
#define SIGNED_BITS(bits)    vreinterpretq_s64_u64(bits)
#else
typedef float32x4_t reals;
typedef int32x4_t reals_bits;
#define SAME_REALS(x)                                                                                                  \
    { x, x, x, x }
#define NEON(operation)      operation##_f32
#define NEON_BITS(operation) operation##_s32
#define BITS_OF_REALS(x)     vreinterpretq_s32_f32(x)
#define REALS_OF_BITS(bits)  vreinterpretq_f32_s32(bits)
#define SIGNED_BITS(bits)    vreinterpretq_s32_u32(bits)
#endif
#define SHIFTED_BITS(bits, by) NEON_BITS(vshlq_n)(bits, by)

ALWAYS_INLINE reals each_real(real x) {
    return NEON(vdupq_n)(x);
}
ALWAYS_INLINE reals load_reals(const real *from) {
    return NEON(vld1q)(from);
}
ALWAYS_INLINE void store_reals(real *to, reals x) {
    NEON(vst1q)(to, x);
}
ALWAYS_INLINE reals reals_less(reals a, reals b) {
    return NEON(vsubq)(a, b);
}
ALWAYS_INLINE reals reals_plus(reals a, reals b) {
    return NEON(vaddq)(a, b);
}
ALWAYS_INLINE reals reals_times(reals a, reals b) {
    return NEON(vmulq)(a, b);
}
ALWAYS_INLINE reals fused_reals(reals a, reals b, reals c) {
    return NEON(vfmaq)(c, a, b);
}
/* The larger of two, and the second if the first is NaN. */
ALWAYS_INLINE reals larger_reals(reals a, reals b) {
    return NEON(vmaxnmq)(a, b);
}
/* All bits where they are. */
ALWAYS_INLINE reals_bits equal_reals(reals a, reals b) {
    return SIGNED_BITS(NEON(vceqq)(a, b));
}
ALWAYS_INLINE reals_bits each_bits(real_bits bits) {
    return NEON_BITS(vdupq_n)(bits);
}
ALWAYS_INLINE reals_bits sum_of_bits(reals_bits a, reals_bits b) {
    return NEON_BITS(vaddq)(a, b);
}

/* From memory, whatever the compiler knows of it. A fused multiply-add of Arm's overwrites the number that it adds to.
 * To have that brought from memory each time is better than to have it copied, since loads do not take the place of
 * arithmetic: exponentials of a vector took 14.2 cycles on a Neoverse N1, and take 9.7. */
ALWAYS_INLINE reals brought(const reals *from) {
    reals numbers;
    __asm__ volatile("ldr %q0, %1" : "=w"(numbers) : "m"(*from));
    return numbers;
}

#elif defined(__AVX512F__) && !defined(ONEPASS_REAL_F64)
#include <immintrin.h>

#define ONEPASS_HAS_REALS 1
typedef __m512 reals;
typedef __m512i reals_bits;
#define SAME_REALS(x)                                                                                                  \
    { x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x }
#define BITS_OF_REALS(x)       _mm512_castps_si512(x)
#define REALS_OF_BITS(bits)    _mm512_castsi512_ps(bits)
#define SHIFTED_BITS(bits, by) _mm512_slli_epi32(bits, by)

ALWAYS_INLINE reals each_real(real x) {
    return _mm512_set1_ps(x);
}
ALWAYS_INLINE reals load_reals(const real *from) {
    return _mm512_loadu_ps(from);
}
ALWAYS_INLINE void store_reals(real *to, reals x) {
    _mm512_storeu_ps(to, x);
}
ALWAYS_INLINE reals reals_less(reals a, reals b) {
    return _mm512_sub_ps(a, b);
}
ALWAYS_INLINE reals reals_plus(reals a, reals b) {
    return _mm512_add_ps(a, b);
}
ALWAYS_INLINE reals reals_times(reals a, reals b) {
    return _mm512_mul_ps(a, b);
}
ALWAYS_INLINE reals fused_reals(reals a, reals b, reals c) {
    return _mm512_fmadd_ps(a, b, c);
}
ALWAYS_INLINE reals larger_reals(reals a, reals b) {
    return _mm512_max_ps(a, b);
}
ALWAYS_INLINE reals_bits each_bits(real_bits bits) {
    return _mm512_set1_epi32((int)bits);
}
ALWAYS_INLINE reals_bits sum_of_bits(reals_bits a, reals_bits b) {
    return _mm512_add_epi32(a, b);
}
ALWAYS_INLINE reals brought(const reals *from) {
    return *from;
}
ALWAYS_INLINE reals reals_of_bf16(__m256i halves) {
    return REALS_OF_BITS(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

#else
#define ONEPASS_HAS_REALS 0
#endif

#if ONEPASS_HAS_REALS
#define REALS        ((int64_t)(sizeof(reals) / sizeof(real))) /* of a vector */
#define MOST_VECTORS 8                                         /* that do not wait for each other */
#endif

/* Floats as doubles, as many as a vector of x86 has room for. */
#if defined(__AVX512F__) && !defined(ONEPASS_REAL_F64)
typedef __attribute__((vector_size(64))) double doubles;
#define DOUBLES 8
ALWAYS_INLINE doubles load_as_doubles(const real *from) {
    return (doubles)_mm512_cvtps_pd(_mm256_loadu_ps(from));
}
ALWAYS_INLINE void store_doubles(double *to, doubles x) {
    _mm512_storeu_pd(to, (__m512d)x);
}
#elif defined(__AVX2__) && !defined(ONEPASS_REAL_F64)
#include <immintrin.h>
typedef __attribute__((vector_size(32))) double doubles;
#define DOUBLES 4
ALWAYS_INLINE doubles load_as_doubles(const real *from) {
    return (doubles)_mm256_cvtps_pd(_mm_loadu_ps(from));
}
ALWAYS_INLINE void store_doubles(double *to, doubles x) {
    _mm256_storeu_pd(to, (__m256d)x);
}
#endif

#endif
