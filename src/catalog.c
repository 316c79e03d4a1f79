/* The list of losses as users see it, expanded from losses.def. */
#include "engine.h"
#include "loss.h"

#include <math.h>
#include <string.h>

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

#define LOSS(name, operands, length, meaning, value, slope, accuracy, ...)                                             \
    static const onepass_accuracy name##_accuracy = accuracy;                                                          \
    static const onepass_parameter_info name##_parameters[] = __VA_ARGS__;                                             \
    static const char *const name##_operands[] = NAMES operands;
#include "losses.def"
#undef LOSS

#define LOSS(name, operands, length, meaning, value, slope, accuracy, ...)                                             \
    {#name,                                                                                                            \
     meaning,                                                                                                          \
     value,                                                                                                            \
     slope,                                                                                                            \
     OPERANDS_OF operands,                                                                                             \
     sizeof name##_parameters / sizeof *name##_parameters - 1,                                                         \
     name##_parameters,                                                                                                \
     name##_operands,                                                                                                  \
     &name##_accuracy},
static const onepass_loss_info losses[] = {
#include "losses.def"
};
#undef LOSS

#define LOSS_COUNT ((int32_t)(sizeof losses / sizeof *losses))

int32_t onepass_loss_index(const char *name) {
    for (int32_t i = 0; name && i < LOSS_COUNT; i++)
        if (strcmp(losses[i].name, name) == 0)
            return i;
    return -1;
}

const onepass_loss_info *onepass_loss_at(int32_t index) {
    return index >= 0 && index < LOSS_COUNT ? &losses[index] : NULL;
}

const onepass_loss_info *onepass_loss_named(const char *name) {
    return onepass_loss_at(onepass_loss_index(name));
}
