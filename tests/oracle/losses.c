/* The list of the losses, and the term of one element. */
#include "oracle.h"

#include <string.h>

/* Behind a number that stands for nothing, so that a loss without parameters has an array, too. */
#define WITH_ZERO(...)                                                                                                 \
    { 0, __VA_ARGS__ }
/* What formulas_float.c and formulas_double.c make of the same lines. */
#define ORACLE_LOSS(name, domains, defaults, ...)                                                                      \
    static const double name##_defaults[] = WITH_ZERO defaults;                                                        \
    oracle_formula_float oracle_##name##_in_float;                                                                     \
    oracle_formula_double oracle_##name##_in_double;
#include "formulas.def"
#undef ORACLE_LOSS

#define ANY           ORACLE_ANY
#define POSITIVE      ORACLE_POSITIVE
#define PROBABILITY   ORACLE_PROBABILITY
#define SIGN          ORACLE_SIGN
#define COUNT_OF(...) (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int))
#define LIST(...)                                                                                                      \
    { __VA_ARGS__ }

static const oracle_loss losses[] = {
#define ORACLE_LOSS(name, domains, defaults, ...)                                                                      \
    {#name,                                                                                                            \
     COUNT_OF domains,                                                                                                 \
     (int)(sizeof name##_defaults / sizeof name##_defaults[0]) - 1,                                                    \
     LIST domains,                                                                                                     \
     name##_defaults + 1,                                                                                              \
     oracle_##name##_in_float,                                                                                         \
     oracle_##name##_in_double},
#include "formulas.def"
#undef ORACLE_LOSS
};

const oracle_loss *oracle_loss_at(int index) {
    return index >= 0 && (size_t)index < sizeof losses / sizeof losses[0] ? &losses[index] : NULL;
}

const oracle_loss *oracle_loss_named(const char *name) {
    for (int i = 0; oracle_loss_at(i); i++) {
        if (strcmp(name, losses[i].name) == 0) {
            return &losses[i];
        }
    }
    return NULL;
}

void oracle_parameters(const oracle_loss *loss, int count, const double *given, double all[ONEPASS_MAX_PARAMETERS]) {
    for (int i = 0; i < ONEPASS_MAX_PARAMETERS; i++) {
        all[i] = (i < count ? given[i] : i < loss->parameter_count ? loss->default_value[i] : 0) + 0.0; /* -0 is 0 */
    }
}

void oracle_term(const oracle_loss *loss, int in_float, const double operand[ORACLE_OPERANDS], const double *k,
                 double result[ORACLE_PARTS]) {
    if (!in_float) {
        loss->in_double(operand, k, result);
        return;
    }
    float parameter[ONEPASS_MAX_PARAMETERS];
    for (int i = 0; i < ONEPASS_MAX_PARAMETERS; i++) {
        parameter[i] = (float)k[i];
    }
    float number[ORACLE_OPERANDS];
    for (int i = 0; i < ORACLE_OPERANDS; i++) {
        number[i] = i < loss->operand_count ? (float)operand[i] : 0;
    }
    float rounded[ORACLE_PARTS];
    loss->in_float(number, parameter, rounded);
    for (int i = 0; i < 1 + loss->operand_count; i++) {
        result[i] = rounded[i];
    }
}
