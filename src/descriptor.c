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
#define ANY          -INFINITY, INFINITY, 0, 0
#define AT_LEAST(x)  x, INFINITY, 0, 0
#define ABOVE(x)     x, INFINITY, 1, 0
#define WITHIN(a, b) a, b, 1, 1

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
    const loss onepass_loss_##name = {{#name, meaning, value, slope, OPERANDS_OF operands,                             \
                                       sizeof name##_parameters / sizeof *name##_parameters - 1, name##_parameters,    \
                                       name##_operands, &name##_accuracy},                                             \
                                      FAMILY_PAIRWISE,                                                                 \
                                      &CUDA_IMAGES,                                                                    \
                                      {EACH_INSTRUCTION_SET(FUNCTIONS, name)}};
#include ONEPASS_UNIT_HEADER
#undef LOSS
