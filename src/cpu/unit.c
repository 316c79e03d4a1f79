/*
 * The functions of the losses of one header, for strips. Compiled once for each header, instruction set and compute
 * type, so that a changed loss is compiled alone: ONEPASS_UNIT_HEADER is the header, ONEPASS_VARIANT (avx2_f32) ends
 * the names of the tables that come out.
 *
 * -ffp-contract=off is part of the meaning: a fused multiply-add has other bits.
 */
#include "cpu/lines.h"
#include "dtype.h"

ALWAYS_INLINE real read_strided(const tile *tile, int operand, int64_t i) {
    return ((const real *)tile->operand[operand])[i * tile->stride[operand]];
}
ALWAYS_INLINE real read_f16(const tile *tile, int operand, int64_t i) {
    return load_f16(tile->operand[operand], i);
}
ALWAYS_INLINE real read_bf16(const tile *tile, int operand, int64_t i) {
    return load_bf16(tile->operand[operand], i);
}

#define SIZE_real    sizeof(real)
#define SIZE_strided sizeof(real)
#define SIZE_f16     2
#define SIZE_bf16    2

/* In passing where nothing but the memory takes time; elsewhere it would only have the code there once a line. */
#define IS_PLAIN_real    true
#define IS_PLAIN_strided false
#define IS_PLAIN_f16     false
#define IS_PLAIN_bf16    false
#define OTHER_LINES(lines)                                                                                             \
    ((lines) == (int)IN_PASSING ? 1 : (lines) < (int)MOST_LINES_OF_OTHERS ? (lines) : (int)MOST_LINES_OF_OTHERS)
#define LINES(lines, access) (IS_PLAIN_##access ? (int)(lines) : OTHER_LINES((int)(lines)))

/* The arguments of a loss's functions, by the list of its operands. */
#define ARGUMENTS_2(access) read_##access(tile, 0, i), read_##access(tile, 1, i), tile->parameter
#define ARGUMENTS_3(access)                                                                                            \
    read_##access(tile, 0, i), read_##access(tile, 1, i), read_##access(tile, 2, i), tile->parameter
#define ARGUMENTS(operands, access) PASTE(ARGUMENTS_, OPERANDS_OF operands)(access)

/* The term and, stored, the slope times the scale: by two functions of the loss, or by one. */
ALWAYS_INLINE real with_gradient(real term, real slope, const tile *tile, int64_t i) {
    tile->gradient[i] = lean_product(slope, tile->scale);
    return term;
}
#define BOTH_SHORT(name, operands, access)                                                                             \
    with_gradient(name##_value(ARGUMENTS(operands, access)), name##_slope_p(ARGUMENTS(operands, access)), tile, i)
#define BOTH_LONG           BOTH_SHORT
#define BOTH_LONG_FEW_LINES BOTH_SHORT
#define BOTH_SHORT_MENDED(name, operands, access)                                                                      \
    name##_both(ARGUMENTS(operands, access), tile->scale, &tile->gradient[i])

/* What is made of a loss for each access to its operands, ... */
#define LOSS_SUMS(name, operands, length, access)                                                                      \
    ALWAYS_INLINE real name##_term_##access(const tile *tile, int64_t i) {                                             \
        return name##_value(ARGUMENTS(operands, access));                                                              \
    }                                                                                                                  \
    ALWAYS_INLINE real name##_term_and_gradient_##access(const tile *tile, int64_t i) {                                \
        return BOTH_##length(name, operands, access);                                                                  \
    }                                                                                                                  \
    ALWAYS_INLINE void name##_prefetch_##access(const tile *tile, int64_t element, int64_t count) {                    \
        prefetch_operands(tile, OPERANDS_OF operands, SIZE_##access, element, count);                                  \
    }                                                                                                                  \
    ALWAYS_INLINE void name##_prefetch_all_##access(const tile *tile, int64_t element, int64_t count) {                \
        prefetch_operands(tile, OPERANDS_OF operands, SIZE_##access, element, count);                                  \
        prefetch_gradient(tile, element, count);                                                                       \
    }                                                                                                                  \
    static void name##_sums_##access(const strip *strip, double *sum) {                                                \
        each_sum(name##_term_##access, name##_prefetch_##access, strip, SIZE_##access,                                 \
                 LINES(LINES_OF_SUMS_##length, access), sum);                                                          \
    }                                                                                                                  \
    static __attribute__((unused)) void name##_sums_and_gradient_##access(const strip *strip, double *sum) {           \
        each_sum_and_gradient(name##_term_and_gradient_##access, name##_prefetch_all_##access, strip, SIZE_##access,   \
                              LINES(LINES_OF_GRADIENTS_##length, access), sum);                                        \
    }

/* ... for each operand, ... */
#define LOSS_GRADIENT(name, operands, which, product)                                                                  \
    ALWAYS_INLINE real name##_slope_##which##_at(const tile *tile, int64_t i) {                                        \
        return name##_slope_##which(ARGUMENTS(operands, real));                                                        \
    }                                                                                                                  \
    static void name##_gradient_##which(const strip *strip, real *gradient) {                                          \
        each_element(name##_slope_##which##_at, product, strip, gradient);                                             \
    }
#define LOSS_GRADIENTS_2(name, operands)                                                                               \
    LOSS_GRADIENT(name, operands, p, lean_product)                                                                     \
    LOSS_GRADIENT(name, operands, t, canonical_product)
#define LOSS_GRADIENTS_3(name, operands)                                                                               \
    LOSS_GRADIENTS_2(name, operands)                                                                                   \
    LOSS_GRADIENT(name, operands, v, canonical_product)
#define GRADIENTS_2(name) name##_gradient_p, name##_gradient_t
#define GRADIENTS_3(name) GRADIENTS_2(name), name##_gradient_v

/* ... and once. */
#define LOSS_ELEMENTS(name, operands)                                                                                  \
    PASTE(LOSS_GRADIENTS_, OPERANDS_OF operands)                                                                       \
    (name, operands) static void name##_values(const strip *strip, real *value) {                                      \
        each_element(name##_term_real, canonical_value, strip, value);                                                 \
    }

/* With a gradient only losses that wait for the memory read around gaps on Arm, and the others out of a buffer: focal
 * took 17 ns an element on a Neoverse N1, and takes 11. */
#define WITH_GAPS_SHORT(function) function##_strided
#if defined(__x86_64__)
#define WITH_GAPS_LONG(function) function##_strided
#else
#define WITH_GAPS_LONG(function) NULL
#endif
#define WITH_GAPS_SHORT_MENDED   WITH_GAPS_SHORT
#define WITH_GAPS_LONG_FEW_LINES WITH_GAPS_SHORT

/* What was stored with a sum that is not finite is looked at again. */
#define MEND_SHORT(name)          NULL, NULL
#define MEND_SHORT_MENDED(name)   name##_together, name##_mend
#define MEND_LONG(name)           NULL, NULL
#define MEND_LONG_FEW_LINES(name) NULL, NULL
#define LOSS_MEND_SHORT(name)
#define LOSS_MEND_LONG(name)
#define LOSS_MEND_LONG_FEW_LINES(name)
#define LOSS_MEND_SHORT_MENDED(name)                                                                                   \
    static bool name##_together(const real *parameter) {                                                               \
        return name##_has_both(parameter);                                                                             \
    }                                                                                                                  \
    static void name##_mend(real *gradient, real scale) {                                                              \
        for (int64_t i = 0; i < ORDER_TILE; i++)                                                                       \
            gradient[i] = canonical(name##_mended(gradient[i], scale));                                                \
    }

/* Accesses other than the first are for float: they cost a loss five times the code. */
#if defined(ONEPASS_REAL_F64)
#define LOSS_SUMS_OF_EACH(name, operands, length) LOSS_SUMS(name, operands, length, real)
#define EACH_ACCESS(function, with_gaps)                                                                               \
    { function##_real }
#else
#define LOSS_SUMS_OF_EACH(name, operands, length)                                                                      \
    LOSS_SUMS(name, operands, length, real)                                                                            \
    LOSS_SUMS(name, operands, length, strided)                                                                         \
    LOSS_SUMS(name, operands, length, f16)                                                                             \
    LOSS_SUMS(name, operands, length, bf16)
#define EACH_ACCESS(function, with_gaps)                                                                               \
    { function##_real, with_gaps, function##_f16, function##_bf16 }
#endif

/* src/descriptor.c refers to the table. */
#define LOSS(name, operands, length, ...)                                                                              \
    LOSS_SUMS_OF_EACH(name, operands, length)                                                                          \
    LOSS_ELEMENTS(name, operands)                                                                                      \
    LOSS_MEND_##length(name) ONEPASS_INTERNAL extern const cpu_loss PASTE(onepass_cpu_##name##_, ONEPASS_VARIANT);     \
    const cpu_loss PASTE(onepass_cpu_##name##_, ONEPASS_VARIANT) = {                                                   \
        EACH_ACCESS(name##_sums, name##_sums_strided),                                                                 \
        EACH_ACCESS(name##_sums_and_gradient, WITH_GAPS_##length(name##_sums_and_gradient)),                           \
        name##_values,                                                                                                 \
        {PASTE(GRADIENTS_, OPERANDS_OF operands)(name)},                                                               \
        MEND_##length(name)};
#include ONEPASS_UNIT_HEADER
