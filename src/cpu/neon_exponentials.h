/*
 * The exponentials and the largest of a tile's logits by Arm's vector instructions, where a compiler does not find
 * them. The bits are those of softmax_exponential(), whose operations they are.
 */
#ifndef ONEPASS_CPU_NEON_EXPONENTIALS_H
#define ONEPASS_CPU_NEON_EXPONENTIALS_H

#include "math/softmax.h"

#if defined(__aarch64__)
#include <arm_neon.h>

#if defined(ONEPASS_REAL_F64)
typedef float64x2_t reals;
#define NEON(operation) operation##_f64
#define EACH_REAL(number)                                                                                              \
    { number, number }
#define AS_BITS(numbers)    vreinterpretq_s64_f64(numbers)
#define AS_REALS(bits)      vreinterpretq_f64_s64(bits)
#define SHIFTED_BITS(bits)  vshlq_n_s64(bits, REAL_MANTISSA_BITS)
#define BITS_AND_BIAS(bits) vaddq_s64(bits, vdupq_n_s64(REAL_BIAS << REAL_MANTISSA_BITS))
#else
typedef float32x4_t reals;
#define NEON(operation) operation##_f32
#define EACH_REAL(number)                                                                                              \
    { number, number, number, number }
#define AS_BITS(numbers)    vreinterpretq_s32_f32(numbers)
#define AS_REALS(bits)      vreinterpretq_f32_s32(bits)
#define SHIFTED_BITS(bits)  vshlq_n_s32(bits, REAL_MANTISSA_BITS)
#define BITS_AND_BIAS(bits) vaddq_s32(bits, vdupq_n_s32(REAL_BIAS << REAL_MANTISSA_BITS))
#endif

#define REALS        ((int64_t)(sizeof(reals) / sizeof(real))) /* of a vector */
#define MOST_VECTORS 8                                         /* that do not wait for each other */

/* ------------------------------------------------------------ exponentials -- */

/* Brought from memory, whatever the compiler knows of it. */
ALWAYS_INLINE reals brought(const reals *from) {
    reals numbers;
    __asm__ volatile("ldr %q0, %1" : "=w"(numbers) : "m"(*from));
    return numbers;
}

/* What is done to logits before they are exponentiated: one shift for all vectors, or as many as take turns. */
typedef struct neon_shift {
    const reals *anchor, *lowest, *rounder;
    int count;
} neon_shift;

/* Those of so many vectors of logits, in whose place they may be. A fused multiply-add of Arm's overwrites the number
 * that it adds to. To have that brought from memory each time is better than to have it copied, since loads do not
 * take the place of arithmetic: a vector of 1024 floats took 14.2 cycles on a Neoverse N1, and takes 9.7. */

ALWAYS_INLINE void exponentiate_vectors(const softmax *softmax, const neon_shift *shift, const real *z, int vectors,
                                        real *e) {
    static const reals coefficient[] = {
#define COEFFICIENT(number) EACH_REAL(number),
        SOFTMAX_LOWER(COEFFICIENT)
#undef COEFFICIENT
    };
    const reals factor = NEON(vdupq_n)(softmax->factor), factor_low = NEON(vdupq_n)(softmax->factor_low);
    reals above[MOST_VECTORS], shifted[MOST_VECTORS], f[MOST_VECTORS], p[MOST_VECTORS];
    for (int i = 0; i < vectors; i++) {
        const int own = i % shift->count;
        above[i] = NEON(vmaxnmq)(NEON(vsubq)(NEON(vld1q)(z + i * REALS), shift->anchor[own]), shift->lowest[own]);
    }
    for (int i = 0; i < vectors; i++)
        shifted[i] = NEON(vfmaq)(brought(&shift->rounder[i % shift->count]), above[i], factor);
    for (int i = 0; i < vectors; i++) {
        const reals below = NEON(vsubq)(shift->rounder[i % shift->count], shifted[i]); /* minus the whole part */
        f[i] = NEON(vfmaq)(NEON(vfmaq)(below, above[i], factor), above[i], factor_low);
        p[i] = NEON(vdupq_n)(SOFTMAX_HIGHEST);
    }
    const reals *next = coefficient;
#define STEP(number)                                                                                                   \
    for (int i = 0; i < vectors; i++)                                                                                  \
        p[i] = NEON(vfmaq)(brought(next), p[i], f[i]);                                                                 \
    next++;
    SOFTMAX_LOWER(STEP)
#undef STEP
    for (int i = 0; i < vectors; i++)
        NEON(vst1q)(e + i * REALS, NEON(vmulq)(p[i], AS_REALS(BITS_AND_BIAS(SHIFTED_BITS(AS_BITS(shifted[i]))))));
}

/* ----------------------------------------------------------------- largest -- */

/* The largest of numbers, or NaN if one is; -0 is 0. An instruction of Arm's has NaN win, which C has no word for: a
 * fifth of a value's time otherwise. */
static real largest_of(const real *z, int64_t count) {
    real largest = -REAL_INFINITY;
    int64_t first = 0;
    if (count >= MOST_VECTORS * REALS) {
        reals place[MOST_VECTORS];
        for (int i = 0; i < MOST_VECTORS; i++)
            place[i] = NEON(vld1q)(z + i * REALS);
        for (first = MOST_VECTORS * REALS; first + MOST_VECTORS * REALS <= count; first += MOST_VECTORS * REALS)
            for (int i = 0; i < MOST_VECTORS; i++)
                place[i] = NEON(vmaxq)(place[i], NEON(vld1q)(z + first + i * REALS));
        for (int half = MOST_VECTORS / 2; half > 0; half /= 2)
            for (int i = 0; i < half; i++)
                place[i] = NEON(vmaxq)(place[i], place[i + half]);
        largest = NEON(vmaxvq)(place[0]);
    }
    for (; first < count; first++)
        largest = z[first] > largest || z[first] != z[first] ? z[first] : largest;
    return largest == largest ? largest + 0 : REAL_NAN;
}

#endif

#endif
