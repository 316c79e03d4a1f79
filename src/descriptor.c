/*
 * The descriptors of the losses of one header. Compiled once for each header: ONEPASS_UNIT (mse) is its name,
 * ONEPASS_UNIT_HEADER ("loss/mse.h") where it is.
 */
#include "cpu/instruction_sets.h"
#include "engine.h"
#include "math/real.h"

#include <math.h>

/* Each list ends with an empty entry, so that a loss without parameters has one too. */
#define PARAMETERS(...)                                                                                                \
    {                                                                                                                  \
        __VA_ARGS__, {                                                                                                 \
            0                                                                                                          \
        }                                                                                                              \
    }
#define NO_PARAMETERS                                                                                                  \
    {                                                                                                                  \
        { 0 }                                                                                                          \
    }

/* What a parameter may be: least, greatest, and whether these themselves are out. */
#define ANY           -INFINITY, INFINITY, 0, 0
#define AT_LEAST(x)   x, INFINITY, 0, 0
#define ABOVE(x)      x, INFINITY, 1, 0
#define FINITE(x)     x, INFINITY, 0, 1
#define ANY_FINITE    -INFINITY, INFINITY, 1, 1
#define WITHIN(a, b)  a, b, 1, 1
#define BETWEEN(a, b) a, b, 0, 0

/* How exact a loss is: parts of its formulas that are rounded, and the errors of the value and of each slope. */
#define ACCURACY(rounded, ...)                                                                                         \
    {                                                                                                                  \
        rounded, {                                                                                                     \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
#define ULP(count)                                                                                                     \
    { count, NULL }
#define ULP_OF(count, formula)                                                                                         \
    { count, formula }

/* The operands' names, from (prediction, target) to {"prediction", "target"}. */
#define NAMES_2(a, b)    #a, #b
#define NAMES_3(a, b, c) #a, #b, #c
#define NAMES(...)                                                                                                     \
    { PASTE(NAMES_, OPERANDS_OF(__VA_ARGS__))(__VA_ARGS__) }

/* What src/cuda/unit.c makes of the header, ... */
#define CUDA_IMAGES PASTE(onepass_cuda_images_, ONEPASS_UNIT)
ONEPASS_INTERNAL extern const cuda_images CUDA_IMAGES;

/* ... and src/cpu/unit.c of each loss. */
#define DECLARE_FUNCTIONS(name, set, automatic)                                                                        \
    ONEPASS_INTERNAL extern const struct cpu_loss_f32 onepass_cpu_##name##_##set##_f32;                                \
    ONEPASS_INTERNAL extern const struct cpu_loss_f64 onepass_cpu_##name##_##set##_f64;
#define FUNCTIONS(name, set, automatic)                                                                                \
    .set##_f32 = &onepass_cpu_##name##_##set##_f32, .set##_f64 = &onepass_cpu_##name##_##set##_f64,

#define LOSS(name, operands, length, meaning, value, slope, accuracy, ...)                                             \
    static const onepass_accuracy name##_accuracy = accuracy;                                                          \
    static const onepass_parameter_info name##_parameters[] = __VA_ARGS__;                                             \
    static const char *const name##_operands[] = NAMES operands;                                                       \
    EACH_INSTRUCTION_SET(DECLARE_FUNCTIONS, name)                                                                      \
    ONEPASS_INTERNAL extern const loss onepass_loss_##name;                                                            \
    const loss onepass_loss_##name = {.info = {#name, meaning, value, slope, OPERANDS_OF operands,                     \
                                               sizeof name##_parameters / sizeof *name##_parameters - 1,               \
                                               name##_parameters, name##_operands, &name##_accuracy, 0, 0},            \
                                      .family = FAMILY_PAIRWISE,                                                       \
                                      .cuda = &CUDA_IMAGES,                                                            \
                                      .cpu = {EACH_INSTRUCTION_SET(FUNCTIONS, name)}};

/* ------------------------------------------------------- losses over rows -- */

/* Parameters that many of them have. The plan knows these by their names. */
#define IGNORE_INDEX                                                                                                   \
    { "ignore_index", "rows with this class index take no part", -100, BETWEEN(-0x1p53, 0x1p53) }
#define Z_LOSS                                                                                                         \
    { "z_loss", "what the square of the logarithm of the sum of exponentials is added with", 0, AT_LEAST(0) }
#define SOFTCAP                                                                                                        \
    { "softcap", "logits z become softcap*tanh(z/softcap); 0: they stay as they are", 0, BETWEEN(0, 1e30) }
#define TEMPERATURE                                                                                                    \
    { "temperature", "logits are divided by it", 1, BETWEEN(1e-30, 1e30) }

#define TARGET_LABEL         ONEPASS_CLASS_INDEX
#define TARGET_PICKED        ONEPASS_CLASS_INDEX
#define TARGET_PROBABILITIES ONEPASS_CLASS_PROBABILITIES

#define ROW_LOSS(name, target, meaning, value, slope, accuracy, ...)                                                   \
    static const onepass_accuracy name##_accuracy = accuracy;                                                          \
    static const onepass_parameter_info name##_parameters[] = __VA_ARGS__;                                             \
    static const char *const name##_operands[] = {"input", "target", "class_weight"};                                  \
    static void name##_row_function(const row_sums *row, const double *parameter, row_slopes *slopes) {                \
        name##_row(row, parameter, slopes);                                                                            \
    }                                                                                                                  \
    ONEPASS_INTERNAL extern const loss onepass_loss_##name;                                                            \
    const loss onepass_loss_##name = {                                                                                 \
        .info = {#name, meaning, value, slope, 3, sizeof name##_parameters / sizeof *name##_parameters - 1,            \
                 name##_parameters, name##_operands, &name##_accuracy, TARGET_##target, ROW_##target != ROW_PICKED},   \
        .family = FAMILY_ROWS,                                                                                         \
        .cuda = &CUDA_IMAGES,                                                                                          \
        .kind = ROW_##target,                                                                                          \
        .row = name##_row_function};

/* --------------------------------------------------------- vector losses -- */

/* What src/cpu/vector_unit.c makes of each. */
#define DECLARE_VECTOR_FUNCTIONS(name, set, automatic)                                                                 \
    ONEPASS_INTERNAL extern const struct cpu_vector_f32 onepass_cpu_##name##_##set##_f32;                              \
    ONEPASS_INTERNAL extern const struct cpu_vector_f64 onepass_cpu_##name##_##set##_f64;

#define VECTOR_LOSS(name, operands, vector_count, sum_count, length, meaning, formula, slope, accuracy, ...)           \
    static const onepass_accuracy name##_accuracy = accuracy;                                                          \
    static const onepass_parameter_info name##_parameters[] = __VA_ARGS__;                                             \
    static const char *const name##_operands[] = NAMES operands;                                                       \
    static void name##_vector_function(const vector_sums *row, const double *parameter, vector_slopes *slopes) {       \
        name##_row(row, parameter, slopes);                                                                            \
    }                                                                                                                  \
    static double name##_value_function(const vector_sums *row, const double *parameter) {                             \
        vector_slopes own;                                                                                             \
        name##_row(row, parameter, &own);                                                                              \
        return own.value;                                                                                              \
    }                                                                                                                  \
    static void name##_usual_function(double *parameter) {                                                             \
        name##_usual(parameter);                                                                                       \
    }                                                                                                                  \
    EACH_INSTRUCTION_SET(DECLARE_VECTOR_FUNCTIONS, name)                                                               \
    ONEPASS_INTERNAL extern const loss onepass_loss_##name;                                                            \
    const loss onepass_loss_##name = {.info = {#name, meaning, formula, slope, OPERANDS_OF operands,                   \
                                               sizeof name##_parameters / sizeof *name##_parameters - 1,               \
                                               name##_parameters, name##_operands, &name##_accuracy,                   \
                                               OPERANDS_OF operands == (vector_count) ? ONEPASS_VECTOR                 \
                                               : HAS_LABELS_##length                  ? ONEPASS_CLASS_A_VECTOR         \
                                               : HAS_LABEL_LISTS_##length             ? ONEPASS_CLASSES_A_VECTOR       \
                                                                                      : ONEPASS_NUMBER_A_VECTOR,                   \
                                               0},                                                                     \
                                      .family = FAMILY_VECTORS,                                                        \
                                      .cuda = &CUDA_IMAGES,                                                            \
                                      .cpu_vectors = {EACH_INSTRUCTION_SET(FUNCTIONS, name)},                          \
                                      .vector = name##_vector_function,                                                \
                                      .vector_value = name##_value_function,                                           \
                                      .vector_usual = name##_usual_function,                                           \
                                      .vectors = vector_count,                                                         \
                                      .sums = sum_count,                                                               \
                                      .has_softmaxes = HAS_SOFTMAXES_##length,                                         \
                                      .has_labels = HAS_LABELS_##length,                                               \
                                      .has_label_lists = HAS_LABEL_LISTS_##length,                                     \
                                      .is_long = IS_LONG_##length};

#include ONEPASS_UNIT_HEADER
#undef VECTOR_LOSS
#undef ROW_LOSS
#undef LOSS
