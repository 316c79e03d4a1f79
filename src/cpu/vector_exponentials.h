/*
 * Exponentials of logits, several vectors at a time: each step is done to all of them before the next, so that none
 * waits for the one before. A compiler has one vector after the other, and a processor looks only so far ahead: AVX-512
 * took a quarter longer. The bits are those of softmax_exponential(), whose operations they are.
 */
#ifndef ONEPASS_CPU_VECTOR_EXPONENTIALS_H
#define ONEPASS_CPU_VECTOR_EXPONENTIALS_H

#include "cpu/vector_reals.h"
#include "math/softmax.h"

#if ONEPASS_HAS_REALS

/* What is done to logits before they are exponentiated: one shift for all vectors, or as many as take turns. */
typedef struct vector_shift {
    const reals *anchor, *lowest, *rounder;
    int count;
} vector_shift;

/* A calm tile's logits stay what they are. */
ALWAYS_INLINE reals prepared_logits(const vector_shift *shift, bool calm, reals z, int own) {
    return calm ? z : larger_reals(reals_less(z, shift->anchor[own]), shift->lowest[own]);
}

/* Those of so many vectors of logits, in whose place they may be. */
ALWAYS_INLINE void exponentiate_vectors(const softmax *softmax, const vector_shift *shift, bool calm, const real *z,
                                        int vectors, real *e) {
    static const reals coefficient[] = {
#define COEFFICIENT(number) SAME_REALS(number),
        SOFTMAX_LOWER(COEFFICIENT)
#undef COEFFICIENT
    };
    const reals factor = each_real(softmax->factor), factor_low = each_real(softmax->factor_low);
    reals above[MOST_VECTORS], shifted[MOST_VECTORS], f[MOST_VECTORS], p[MOST_VECTORS];
    for (int i = 0; i < vectors; i++)
        above[i] = prepared_logits(shift, calm, load_reals(z + i * REALS), i % shift->count);
    for (int i = 0; i < vectors; i++)
        shifted[i] = fused_reals(above[i], factor, brought(&shift->rounder[i % shift->count]));
    for (int i = 0; i < vectors; i++) {
        const reals below = reals_less(shift->rounder[i % shift->count], shifted[i]); /* minus the whole part */
        f[i] = fused_reals(above[i], factor_low, fused_reals(above[i], factor, below));
        p[i] = each_real(SOFTMAX_HIGHEST);
    }
    const reals *next = coefficient;
#define STEP(number)                                                                                                   \
    for (int i = 0; i < vectors; i++)                                                                                  \
        p[i] = fused_reals(p[i], f[i], brought(next));                                                                 \
    next++;
    SOFTMAX_LOWER(STEP)
#undef STEP
    const reals_bits bias = each_bits(REAL_BIAS << REAL_MANTISSA_BITS);
    for (int i = 0; i < vectors; i++) {
        const reals_bits k = SHIFTED_BITS(BITS_OF_REALS(shifted[i]), REAL_MANTISSA_BITS);
        store_reals(e + i * REALS, calm ? REALS_OF_BITS(sum_of_bits(BITS_OF_REALS(p[i]), k))
                                        : reals_times(p[i], REALS_OF_BITS(sum_of_bits(k, bias))));
    }
}

#endif

#endif
