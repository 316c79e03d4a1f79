/*
 * Exponentials of logits, several vectors at a time: each step is done to all of them before the next, so that none
 * waits for the one before. A compiler has one vector after the other, and a processor looks only so far ahead: AVX-512
 * took a quarter longer. The bits are those of softmax_exponential(), whose operations they are.
 */
#ifndef ONEPASS_CPU_VECTOR_EXPONENTIALS_H
#define ONEPASS_CPU_VECTOR_EXPONENTIALS_H

#include "cpu/vector_reals.h"
#include "math/softmax.h"

/* What is known of logits: where none is so small that its exponential is 0 or denormal, they stay what they are, and
 * where there is no anchor, none is taken off. */
typedef enum logits_kind {
    LOGITS_ANY,
    LOGITS_WITHOUT_ANCHOR,
    LOGITS_CALM
} logits_kind;

#if ONEPASS_HAS_REALS

/* What is done to logits before they are exponentiated: one shift for all vectors, or as many as take turns. */
typedef struct vector_shift {
    const reals *anchor, *lowest, *rounder;
    int count;
} vector_shift;

ALWAYS_INLINE reals prepared_logits(const vector_shift *shift, logits_kind kind, reals z, int own) {
    if (kind == LOGITS_CALM)
        return z;
    return larger_reals(kind == LOGITS_ANY ? reals_less(z, shift->anchor[own]) : z, shift->lowest[own]);
}

/* What the exponentials of so many vectors of logits, `apart` numbers from one to the next but for the last, are made
 * of. */
ALWAYS_INLINE void begin_exponentials_up_to(const softmax *softmax, const vector_shift *shift, logits_kind kind,
                                            const real *z, int64_t apart, int vectors, const real *last, reals *shifted,
                                            reals *p) {
    static const reals coefficient[] = {
#define COEFFICIENT(number) SAME_REALS(number),
        SOFTMAX_LOWER(COEFFICIENT)
#undef COEFFICIENT
    };
    const reals factor = each_real(softmax->factor), factor_low = each_real(softmax->factor_low);
    reals above[MOST_VECTORS], f[MOST_VECTORS];
    for (int i = 0; i < vectors; i++)
        above[i] = prepared_logits(shift, kind, load_reals(i + 1 < vectors ? z + i * apart : last), i % shift->count);
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
}

ALWAYS_INLINE void begin_exponentials(const softmax *softmax, const vector_shift *shift, logits_kind kind,
                                      const real *z, int64_t apart, int vectors, reals *shifted, reals *p) {
    begin_exponentials_up_to(softmax, shift, kind, z, apart, vectors, z + (vectors - 1) * apart, shifted, p);
}

ALWAYS_INLINE reals end_exponential(logits_kind kind, reals shifted, reals p) {
    const reals_bits k = SHIFTED_BITS(BITS_OF_REALS(shifted), REAL_MANTISSA_BITS);
    return kind == LOGITS_CALM
               ? REALS_OF_BITS(sum_of_bits(BITS_OF_REALS(p), k))
               : reals_times(p, REALS_OF_BITS(sum_of_bits(k, each_bits(REAL_BIAS << REAL_MANTISSA_BITS))));
}

#if defined(__aarch64__)

/* The same of MOST_VECTORS neighbouring vectors of calm logits, where each vector has a name: of arrays of them gcc
 * leaves some in memory, which took exponentials a tenth longer on a Neoverse N1. */
#define EACH_VECTOR(step) step(0) step(1) step(2) step(3) step(4) step(5) step(6) step(7)
ALWAYS_INLINE void exponentiate_calm_vectors(const softmax *softmax, const vector_shift *shift, const real *z,
                                             real *e) {
    static const reals coefficient[] = {
#define COEFFICIENT(number) SAME_REALS(number),
        SOFTMAX_LOWER(COEFFICIENT)
#undef COEFFICIENT
    };
    const reals factor = each_real(softmax->factor), factor_low = each_real(softmax->factor_low);
    const reals *rounder = shift->rounder, *next = coefficient;
    const int count = shift->count;
#define BRING(i)      const reals z##i = load_reals(z + i * REALS);
#define SHIFT(i)      const reals shifted##i = fused_reals(z##i, factor, brought(&rounder[i % count]));
#define TAKE_WHOLE(i) reals f##i = reals_less(rounder[i % count], shifted##i);
#define TAKE_HIGH(i)  f##i = fused_reals(z##i, factor, f##i);
#define TAKE_LOW(i)   f##i = fused_reals(z##i, factor_low, f##i);
#define BEGIN(i)      reals p##i = each_real(SOFTMAX_HIGHEST);
#define NEXT(i)       p##i = fused_reals(p##i, f##i, brought(next));
#define END(i)        store_reals(e + i * REALS, end_exponential(LOGITS_CALM, shifted##i, p##i));
#define STEP(number)  EACH_VECTOR(NEXT) next++;
    EACH_VECTOR(BRING)
    EACH_VECTOR(SHIFT)
    EACH_VECTOR(TAKE_WHOLE)
    EACH_VECTOR(TAKE_HIGH)
    EACH_VECTOR(TAKE_LOW)
    EACH_VECTOR(BEGIN)
    SOFTMAX_LOWER(STEP)
    EACH_VECTOR(END)
#undef BRING
#undef SHIFT
#undef TAKE_WHOLE
#undef TAKE_HIGH
#undef TAKE_LOW
#undef BEGIN
#undef NEXT
#undef END
#undef STEP
}

#endif

/* Of neighbouring vectors, in whose place they may be. */
ALWAYS_INLINE void exponentiate_vectors(const softmax *softmax, const vector_shift *shift, logits_kind kind,
                                        const real *z, int vectors, real *e) {
#if defined(__aarch64__)
    if (kind == LOGITS_CALM && vectors == MOST_VECTORS) {
        exponentiate_calm_vectors(softmax, shift, z, e);
        return;
    }
#endif
    reals shifted[MOST_VECTORS], p[MOST_VECTORS];
    begin_exponentials(softmax, shift, kind, z, REALS, vectors, shifted, p);
    for (int i = 0; i < vectors; i++)
        store_reals(e + i * REALS, end_exponential(kind, shifted[i], p[i]));
}

#endif

#endif
