/*
 * Every loss of the catalogue: its value and its gradient against the formula that users are shown, computed in double,
 * and their bits on every number of threads, by every route and on the GPU.
 *
 * The numbers have few digits, and so have the parameters: differences and products of two of them are exact in float,
 * and there are 2^20 of them, so that dividing by their number is exact, too. What a result may be off by is then what
 * the catalogue states for the loss, and a little for the order of summation.
 */
#include "demo.h"
#include "formula.h"
#include "gpu.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COUNT = 1 << 18,
    MOST_OPERANDS = 3
};
#define BYTES (COUNT * sizeof(float))

/* A sum of floats may be off by 4 * 2^-24 of itself. Parts of a gradient that are rounded add up to one unit. */
static const double value_slack = 4, gradient_slack = 1;

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

/* A number of its own for each element and operand: the mixing function of splitmix64. */
static uint64_t random_bits(uint64_t index) {
    uint64_t z = (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

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

/* What a call left. */
typedef struct result {
    float value;
    float *gradient;
} result;

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

/* ------------------------------------------------------------- the bits -- */

typedef enum route {
    BOTH,
    FORWARD,
    BACKWARD,
    ROUTES
} route;

static void compute(const subject *subject, void *const *operand, route route, int threads, onepass_device device,
                    void *value, void *gradient) {
    static const int64_t shape[] = {COUNT};
    onepass_tensor tensor[MOST_OPERANDS];
    const onepass_tensor value_tensor = {value, ONEPASS_F32, 0, NULL, NULL};
    const onepass_tensor gradient_tensor = {gradient, ONEPASS_F32, 1, shape, NULL};
    onepass_call call = ONEPASS_CALL_INIT;
    call.loss = subject->loss->name;
    call.parameter_count = subject->loss->parameter_count;
    memcpy(call.parameter, subject->parameter, sizeof call.parameter);
    for (int i = 0; i < subject->loss->operand_count; i++) {
        tensor[i] = (onepass_tensor){operand[i], ONEPASS_F32, 1, shape, NULL};
        call.operand[i] = &tensor[i];
    }
    if (route != BACKWARD)
        call.value = &value_tensor;
    if (route != FORWARD)
        call.gradient[ONEPASS_PREDICTION] = &gradient_tensor;
    call.threads = threads;
    call.device = (int32_t)device;
    must(onepass_run(&call));
}

/* Whatever was there before must not pass for a result. */
static void spoil(result *result) {
    result->value = -1;
    memset(result->gradient, 0xff, BYTES);
}

static bool is_same(const result *a, const result *b, route route) {
    return (route == BACKWARD || !memcmp(&a->value, &b->value, sizeof a->value)) &&
           (route == FORWARD || !memcmp(a->gradient, b->gradient, BYTES));
}

/* Of every route on one thread, a few, and all. `expected` is of both at once, on one thread. */
static bool same_bits(const subject *subject, int most_threads, const result *expected, result *got) {
    bool same = true;
    for (int threads = 1;; threads = threads < 3 ? threads + 1 : 2 * threads) {
        threads = threads < most_threads ? threads : most_threads;
        for (route route = BOTH; route < ROUTES; route++) {
            spoil(got);
            compute(subject, (void *const *)subject->operand, route, threads, ONEPASS_CPU, &got->value, got->gradient);
            same = same && is_same(expected, got, route);
        }
        if (threads == most_threads)
            return same;
    }
}

static bool same_bits_on_gpu(const subject *subject, const result *expected, result *got) {
    static void *operand[MOST_OPERANDS], *gradient, *value;
    if (!value) {
        for (int i = 0; i < MOST_OPERANDS; i++)
            operand[i] = gpu_allocate(BYTES);
        gradient = gpu_allocate(BYTES);
        value = gpu_allocate(sizeof(float));
    }
    for (int i = 0; i < subject->loss->operand_count; i++)
        gpu_upload(operand[i], subject->operand[i], BYTES);
    bool same = true;
    for (route route = BOTH; route < ROUTES; route++) {
        spoil(got);
        gpu_upload(value, &got->value, sizeof(float));
        gpu_upload(gradient, got->gradient, BYTES);
        compute(subject, operand, route, 0, ONEPASS_CUDA, value, gradient);
        gpu_download(&got->value, value, sizeof(float));
        gpu_download(got->gradient, gradient, BYTES);
        same = same && is_same(expected, got, route);
    }
    return same;
}

/* ----------------------------------------------------------- the errors -- */

/* A unit in the last place of floats of this size. */
static double unit_of(double number) {
    int exponent;
    frexp(number, &exponent);
    return ldexp(1, (exponent < FLT_MIN_EXP ? FLT_MIN_EXP : exponent) - FLT_MANT_DIG);
}

typedef struct errors {
    double value, gradient; /* the largest, in units in the last place */
} errors;

static errors errors_of(const subject *subject, const result *got) {
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
            const double off = fabs((double)got->gradient[first + i] * COUNT - slope[i]);
            const double error = off / unit_of(fmax(fabs(slope[i]), fabs(slope_unit[i])));
            worst = error <= worst ? worst : error; /* NaN is the worst */
        }
    }
    return (errors){fabs((double)got->value - sum / COUNT) / unit_of(size / COUNT), worst};
}

/* ------------------------------------------------------------ the table -- */

/* Without blanks at the end. */
static void print_row(const char *loss, const char *mean, const char *error, const char *gradient_error,
                      const char *same, const char *last) {
    printf("%-26s %13s %10s %13s   %-*s%s\n", loss, mean, error, gradient_error, *last ? 7 : 0, same, last);
    fflush(stdout);
}

static bool check_loss(subject *subject, const onepass_machine_info *machine, result *expected, result *got) {
    compute(subject, (void *const *)subject->operand, BOTH, 1, ONEPASS_CPU, &expected->value, expected->gradient);
    const errors errors = errors_of(subject, expected);
    const onepass_error *stated = subject->loss->accuracy->error;
    const bool right = errors.value <= stated[0].ulp + value_slack && errors.gradient <= stated[1].ulp + gradient_slack;
    const bool same = same_bits(subject, machine->threads, expected, got);
    const bool has_gpu = machine->gpu_count > 0, same_on_gpu = has_gpu && same_bits_on_gpu(subject, expected, got);

    char mean[16], error[16], gradient_error[16], last[32];
    snprintf(mean, sizeof mean, "%.7g", (double)expected->value);
    snprintf(error, sizeof error, "%.2f", errors.value);
    snprintf(gradient_error, sizeof gradient_error, "%.2f", errors.gradient);
    snprintf(last, sizeof last, "%s%s", !has_gpu ? "" : same_on_gpu ? "yes" : "NO", right ? "" : "   WRONG");
    show_progress("");
    print_row(subject->loss->name, mean, error, gradient_error, same ? "yes" : "NO", last);
    return right && same && (!has_gpu || same_on_gpu);
}

bool check_losses(const onepass_machine_info *machine) {
    static subject subject;
    for (int i = 0; i < MOST_OPERANDS; i++)
        subject.operand[i] = allocate(COUNT, sizeof(float));
    result expected = {0, allocate(COUNT, sizeof(float))}, got = {0, allocate(COUNT, sizeof(float))};

    printf(
        "\nIs it right? Every loss, its mean over %d numbers and the gradient of that, against its formula computed\n"
        "in double precision. Errors are in units of a float's last digit: 0.5 is what rounding to a float costs.\n"
        "\"Same bits\": forward alone, backward alone and both at once, on 1 to %d threads%s.\n\n",
        COUNT, machine->threads, machine->gpu_count > 0 ? ", and the same on the GPU" : "");
    print_row("", "", "error of", "error of", "same", "");
    print_row("loss", "mean", "the mean", "the gradient", "bits", machine->gpu_count > 0 ? "on the GPU" : "");
    bool right = true;
    const onepass_loss_info *loss;
    for (int32_t i = 0; (loss = onepass_loss_at(i)); i++) {
        show_progress(loss->name);
        if (!prepare(&subject, loss)) {
            printf("%-26s its formulas are not understood: %s; %s\n", loss->name, loss->value, loss->slope);
            right = false;
        } else if (!choose_inputs(&subject)) {
            printf("%-26s its formula has no result for the inputs that the demo knows: %s\n", loss->name, loss->value);
            right = false;
        } else {
            right = check_loss(&subject, machine, &expected, &got) && right;
        }
    }
    for (int i = 0; i < MOST_OPERANDS; i++)
        free(subject.operand[i]);
    free(expected.gradient);
    free(got.gradient);
    return right;
}
