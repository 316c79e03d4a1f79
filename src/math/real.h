/*
 * What a loss header may use. A loss is written once, for one element, in terms
 * of `real`: the C compiler sees it with real = float and again with real =
 * double, for every instruction set, and so does nvcc. It therefore has no
 * branches on data, no libm and no knowledge of where its numbers come from.
 *
 * A loss `name` defines name_value, name_slope_p and name_slope_t, each a
 * LOSS_FUNCTION of (real p, real t, const real *parameter), and ends with a line
 *
 *     LOSS(name, (prediction, target), SHORT, meaning, formula, formula of slope_p, accuracy, parameters)
 *
 * outside its include guard. A loss of three operands names the third one in that
 * line, its functions take (real p, real t, real v, const real *parameter), and there is
 * a name_slope_v. Whoever includes losses.def defines LOSS first and so gets one
 * expansion a loss. docs/adding-a-loss.md is the recipe.
 */
#ifndef ONEPASS_MATH_REAL_H
#define ONEPASS_MATH_REAL_H

#include <float.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Excess precision (x87) would change the bits. */
#if FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16 /* 16: half in half, which nothing here computes in */
#error "onepass needs a target that computes float in float and double in double (FLT_EVAL_METHOD 0)"
#endif

#if defined(__FAST_MATH__)
#error "onepass must not be compiled with -ffast-math: it would change the bits and lose NaN"
#endif

#if defined(ONEPASS_REAL_F64)
typedef double real;
typedef uint64_t real_bits;
#define REAL_NAME(name)    name##_f64
#define REAL_DTYPE         ONEPASS_F64
#define REAL_SIGN_BIT      UINT64_C(0x8000000000000000)
#define REAL_EXPONENT_BITS UINT64_C(0x7ff0000000000000)
#define REAL_NAN_BITS      UINT64_C(0x7ff8000000000000)
#else
typedef float real;
typedef uint32_t real_bits;
#define REAL_NAME(name)    name##_f32
#define REAL_DTYPE         ONEPASS_F32
#define REAL_SIGN_BIT      UINT32_C(0x80000000)
#define REAL_EXPONENT_BITS UINT32_C(0x7f800000)
#define REAL_NAN_BITS      UINT32_C(0x7fc00000)
#endif

#if defined(__CUDACC__)
#define ALWAYS_INLINE static __device__ __forceinline__
#elif defined(ONEPASS_FREE_INLINE) /* as the compiler likes: the same bits, slower, compiled in a third of the time */
#define ALWAYS_INLINE static inline __attribute__((unused))
#else
#define ALWAYS_INLINE static inline __attribute__((always_inline, unused))
#endif
#define LOSS_FUNCTION ALWAYS_INLINE

/* For the list of operands in a line of losses.def: how many they are, and what is made of so many. */
#define OPERANDS_COUNTED(a, b, c, d, count, ...) count
#define OPERANDS_OF(...)                         OPERANDS_COUNTED(__VA_ARGS__, 4, 3, 2, 1)
#define PASTE_OF(a, b)                           a##b
#define PASTE(a, b)                              PASTE_OF(a, b)

LOSS_FUNCTION real_bits bits_of(real x) {
    real_bits bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

LOSS_FUNCTION real real_of(real_bits bits) {
    real x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* `a` where the condition holds, else `b`, by masks: gcc vectorises a loop over
 * it whatever stands on the two sides, and a ternary only without a division or
 * with -fno-trapping-math, which in turn spoils its code for clamping. A GPU has
 * an instruction for it, which nvcc finds in the ternary alone. */
LOSS_FUNCTION real choose(bool condition, real a, real b) {
#if defined(__CUDACC__)
    return condition ? a : b;
#else
    const real_bits mask = (real_bits)0 - (real_bits)condition;
    return real_of((bits_of(a) & mask) | (bits_of(b) & ~mask));
#endif
}

/* x times -1 where the condition holds, else times -0. Not with a choice of the factor on
 * a GPU: ptxas 13.0 makes that an integer and forgets the sign of the zero. And not with a
 * negation on a CPU, which gcc may move to where it spoils a NaN (src/cpu/lines.h). */
LOSS_FUNCTION real minus_if(bool condition, real x) {
#if defined(__CUDACC__)
    return condition ? -x : x * (real)-0.0;
#else
    return choose(condition, -1, (real)-0.0) * x;
#endif
}

/* minus_if(condition, x) * scale to the bit, by one product, for a scale above 0. An infinite x that does not count
 * gives the processor's own NaN, which is the canonical one but for its sign on x86. */
LOSS_FUNCTION real scaled_minus_if(bool condition, real x, real scale) {
#if defined(__x86_64__) || defined(__i386__)
    return real_of(bits_of(choose(condition, scale, 0) * x) ^ REAL_SIGN_BIT);
#else
    return choose(condition, -scale, (real)-0.0) * x;
#endif
}

/* x where it is not negative, else 0; NaN comes through. x is a result of arithmetic, and not -0. On Arm the engine's
 * NaNs are positive (src/cpu/lines.h), and the bits' larger number is one instruction: hinge 8 % faster on a Neoverse
 * N1. */
LOSS_FUNCTION real not_negative(real x) {
#if defined(__aarch64__) && !defined(__cplusplus) && !defined(ONEPASS_REAL_F64)
    const int32_t bits = (int32_t)bits_of(x);
    return real_of((real_bits)(bits > 0 ? bits : 0));
#else
    return choose(x < 0, 0, x);
#endif
}

/* The same with a zero that the compiler does not know for one: of the larger of two numbers gcc makes one instruction
 * on x86, but two if the other is 0 (hinge and its gradient took 6 % longer with AVX2). A scale less itself is one:
 * values come with a gradient only where the scale is finite (src/cpu/run.c). */
LOSS_FUNCTION real not_below(real x, real zero) {
#if defined(__x86_64__) && !defined(__cplusplus)
    return x < zero ? zero : x;
#else
    (void)zero;
    return not_negative(x);
#endif
}

LOSS_FUNCTION real magnitude(real x) {
    return sizeof(real) == sizeof(float) ? (real)__builtin_fabsf((float)x) : (real)__builtin_fabs((double)x);
}

/* A number that is not negative, with the sign of x. */
LOSS_FUNCTION real signed_like(real x, real number) {
    return real_of((bits_of(x) & REAL_SIGN_BIT) | bits_of(number));
}

/* -1, 0 or 1; for NaN 1 or -1, so ask about NaN first. */
LOSS_FUNCTION real sign(real x) {
    return choose(x == 0, 0, signed_like(x, 1));
}

/* Rounded once, by IEEE 754, on every machine. */
LOSS_FUNCTION real square_root(real x) {
#if defined(__CUDACC__)
    return sizeof(real) == sizeof(float) ? (real)__fsqrt_rn((float)x) : (real)__dsqrt_rn((double)x);
#else
    return sizeof(real) == sizeof(float) ? (real)__builtin_sqrtf((float)x) : (real)__builtin_sqrt((double)x);
#endif
}

/* Hardware differs in the NaN that it makes; what is stored has one face. */
LOSS_FUNCTION real canonical(real x) {
    return choose(x != x, real_of(REAL_NAN_BITS), x);
}

#endif
