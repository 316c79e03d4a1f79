/*
 * The losses whose every element has a value: their means and gradients against the formulas that users are shown,
 * computed in double.
 *
 * The numbers have few digits, and so have the parameters: differences and products of two of them are exact in float,
 * and there are 2^18 of them, so that dividing by their number is exact, too. What a result may be off by is then what
 * the catalogue states for the loss, and a little for the order of summation.
 */
#include "check.h"
#include "demo.h"
#include "formula.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COUNT = 1 << 18,
    MOST_OPERANDS = 3
};

/* ----------------------------------------------------------- the inputs -- */

typedef enum kind {
    ANY,         /* -4 to 4 */
    POSITIVE,    /* 0 to 4 */
    PROBABILITY, /* 0 to 1 */
} kind;

/* What predictions and targets may be, the most general first: a loss gets the first for which its formula has a
 * result everywhere. Where it speaks of what a target leaves of 1, that is a probability. */
static const struct {
    kind prediction, target;
} inputs[] = {{ANY, ANY}, {ANY, POSITIVE}, {POSITIVE, POSITIVE}, {ANY, PROBABILITY}, {PROBABILITY, PROBABILITY}};

/* Odd multiples of 2^-9 or 2^-11, never 0. A quarter of the targets are whole numbers, which mean something special to
 * some losses. */
static float input(kind kind, bool is_target, uint64_t bits) {
    const int steps = (int)(bits >> 40) & 2047, whole = (int)(bits % 3);
    if (is_target && bits >> 62 == 0)
        return (float)(kind == ANY ? whole - 1 : kind == POSITIVE ? whole + 1 : whole & 1);
    if (kind == PROBABILITY)
        return (float)(2 * (steps & 1023) + 1) / 2048;
    return (float)(2 * steps + 1) / (kind == ANY ? 512 : 1024) - (kind == ANY ? 4 : 0);
}

/* ------------------------------------------------------------- one loss -- */

typedef struct subject {
    const onepass_loss_info *loss;
    formula value, slope, value_unit, slope_unit; /* the latter two: what the errors are in units of */
    double parameter[ONEPASS_MAX_PARAMETERS];
    float *operand[MOST_OPERANDS];
} subject;

/* The default, or the nearest number of few digits; where that is 0, the smallest such. */
static double short_number(double number) {
    const double nearest = round(number * 512) / 512;
    return nearest == 0 && number != 0 ? 1.0 / 512 : nearest;
}

static formula read_unit(const char *unit, const onepass_loss_info *loss) {
    return formula_read(unit ? unit : "0", loss);
}

static bool prepare(subject *subject, const onepass_loss_info *loss) {
    subject->loss = loss;
    subject->value = formula_read(loss->value, loss);
    subject->slope = formula_read(loss->slope, loss);
    subject->value_unit = read_unit(loss->accuracy->error[0].of, loss);
    subject->slope_unit = read_unit(loss->accuracy->error[1].of, loss);
    for (int i = 0; i < loss->parameter_count; i++)
        subject->parameter[i] = short_number(loss->parameter[i].default_value);
    return loss->operand_count <= MOST_OPERANDS && subject->value.understood && subject->slope.understood &&
           subject->value_unit.understood && subject->slope_unit.understood;
}

static void fill(subject *subject, kind prediction, kind target) {
    for (int operand = 0; operand < subject->loss->operand_count; operand++) {
        const bool is_target = !strcmp(subject->loss->operand[operand], "target");
        const kind kind = is_target ? target : operand == ONEPASS_THIRD ? POSITIVE : prediction;
        for (int64_t i = 0; i < COUNT; i++)
            subject->operand[operand][i] = input(kind, is_target, random_bits((uint64_t)(i * MOST_OPERANDS + operand)));
    }
}

/* The inputs of BLOCK elements from `first` on, as a formula wants them. */
static void bring(const subject *subject, int64_t first, double block[][BLOCK], const double **variable) {
    for (int operand = 0; operand < subject->loss->operand_count; operand++)
        for (int i = 0; i < BLOCK; i++)
            block[operand][i] = (double)subject->operand[operand][first + i];
    for (int i = 0; i < BLOCK; i++)
        block[DIFFERENCE][i] = block[PREDICTION][i] - block[TARGET][i];
    for (int i = 0; i < FIRST_PARAMETER; i++)
        variable[i] = block[i];
    for (int i = 0; i < subject->loss->parameter_count; i++)
        variable[FIRST_PARAMETER + i] = &subject->parameter[i];
}

/* Whether the formulas have results for the first some thousand elements. */
static bool has_results(const subject *subject) {
    double block[FIRST_PARAMETER][BLOCK], value[BLOCK], slope[BLOCK];
    const double *variable[VARIABLES];
    for (int64_t first = 0; first < 16 * BLOCK; first += BLOCK) {
        bring(subject, first, block, variable);
        formula_compute(&subject->value, variable, BLOCK, value);
        formula_compute(&subject->slope, variable, BLOCK, slope);
        for (int i = 0; i < BLOCK; i++)
            if (!isfinite(value[i]) || !isfinite(slope[i]))
                return false;
    }
    return true;
}

static bool choose_inputs(subject *subject) {
    const bool only_probability = strstr(subject->loss->value, "1 - t");
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        if (only_probability && inputs[i].target != PROBABILITY)
            continue;
        fill(subject, inputs[i].prediction, inputs[i].target);
        if (has_results(subject))
            return true;
    }
    return false;
}

/* ----------------------------------------------------------- the errors -- */

static errors errors_of(const subject *subject, float mean, const float *gradient) {
    static double block[FIRST_PARAMETER][BLOCK], value[BLOCK], slope[BLOCK], value_unit[BLOCK], slope_unit[BLOCK];
    const double *variable[VARIABLES];
    double sum = 0, size = 0, worst = 0;
    for (int64_t first = 0; first < COUNT; first += BLOCK) {
        bring(subject, first, block, variable);
        formula_compute(&subject->value, variable, BLOCK, value);
        formula_compute(&subject->slope, variable, BLOCK, slope);
        formula_compute(&subject->value_unit, variable, BLOCK, value_unit);
        formula_compute(&subject->slope_unit, variable, BLOCK, slope_unit);
        for (int i = 0; i < BLOCK; i++) {
            sum += value[i];
            size += fmax(fabs(value[i]), fabs(value_unit[i]));
            const double off = fabs((double)gradient[first + i] * COUNT - slope[i]);
            const double error = off / unit_of(fmax(fabs(slope[i]), fabs(slope_unit[i])));
            worst = worse(error, worst);
        }
    }
    return (errors){fabs((double)mean - sum / COUNT) / unit_of(size / COUNT), worst};
}

/* ------------------------------------------------------------ the table -- */

static bool check_loss(const subject *subject, float *gradient, const onepass_machine_info *machine) {
    static const int64_t shape[] = {COUNT};
    float value;
    onepass_tensor operand[MOST_OPERANDS];
    const onepass_tensor value_tensor = {&value, ONEPASS_F32, 0, NULL, NULL};
    const onepass_tensor gradient_tensor = {gradient, ONEPASS_F32, 1, shape, NULL};
    onepass_call call = ONEPASS_CALL_INIT;
    call.loss = subject->loss->name;
    call.parameter_count = subject->loss->parameter_count;
    memcpy(call.parameter, subject->parameter, sizeof call.parameter);
    for (int i = 0; i < subject->loss->operand_count; i++) {
        operand[i] = (onepass_tensor){subject->operand[i], ONEPASS_F32, 1, shape, NULL};
        call.operand[i] = &operand[i];
    }
    call.value = &value_tensor;
    call.gradient[ONEPASS_PREDICTION] = &gradient_tensor;
    call.threads = 1;
    must(onepass_run(&call));
    const errors errors = errors_of(subject, value, gradient);
    return show_checked(&call, errors, errors_are_small(subject->loss, errors), machine);
}

bool check_elements(const onepass_machine_info *machine) {
    static subject subject;
    for (int i = 0; i < MOST_OPERANDS; i++)
        subject.operand[i] = allocate(COUNT, sizeof(float));
    float *gradient = allocate(COUNT, sizeof *gradient);
    printf("\nLosses of each element, for %d elements, against their formulas computed in double precision:\n\n",
           COUNT);
    show_heading(machine);
    bool right = true;
    const onepass_loss_info *loss;
    for (int32_t i = 0; (loss = onepass_loss_at(i)); i++) {
        show_progress(loss->name);
        if (!prepare(&subject, loss)) {
            printf("%-32s its formulas are not understood: %s; %s\n", loss->name, loss->value, loss->slope);
            right = false;
        } else if (!choose_inputs(&subject)) {
            printf("%-32s its formula has no result for the inputs that the demo knows: %s\n", loss->name, loss->value);
            right = false;
        } else {
            right = check_loss(&subject, gradient, machine) && right;
        }
    }
    for (int i = 0; i < MOST_OPERANDS; i++)
        free(subject.operand[i]);
    free(gradient);
    return right;
}
