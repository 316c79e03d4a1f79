/*
 * Reads a formula by recursive descent, a function for each rank of operators, into steps that take their inputs from a
 * stack and leave their result there.
 */
#include "formula.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------ functions -- */

static double negated(double a) {
    return -a;
}
static double sum(double a, double b) {
    return a + b;
}
static double difference(double a, double b) {
    return a - b;
}
static double product(double a, double b) {
    return a * b;
}
static double quotient(double a, double b) {
    return a / b;
}
static double less(double a, double b) {
    return a < b;
}
static double at_most(double a, double b) {
    return a <= b;
}
static double greater(double a, double b) {
    return a > b;
}
static double at_least(double a, double b) {
    return a >= b;
}
static double equal(double a, double b) {
    return a == b;
}
static double unequal(double a, double b) {
    return a != b;
}
static double sign(double a) {
    return (a > 0) - (a < 0);
}
static double sigmoid(double a) {
    return 1 / (1 + exp(-a));
}
static double softplus(double a) {
    return log1p(exp(-fabs(a))) + (a > 0 ? a : 0);
}
/* Not fmax and fmin, which hide a NaN. */
static double larger(double a, double b) {
    return isnan(a) || a > b ? a : b;
}
static double smaller(double a, double b) {
    return isnan(a) || a < b ? a : b;
}

static const struct {
    const char *name;
    double (*of_one)(double);
    double (*of_two)(double, double);
} functions[] = {
    {"abs", fabs, NULL},        {"sign", sign, NULL},         {"sqrt", sqrt, NULL},   {"exp", exp, NULL},
    {"expm1", expm1, NULL},     {"log", log, NULL},           {"log1p", log1p, NULL}, {"tanh", tanh, NULL},
    {"sigmoid", sigmoid, NULL}, {"softplus", softplus, NULL}, {"max", NULL, larger},  {"min", NULL, smaller},
    {"pow", NULL, pow},
};

/* -------------------------------------------------------------- reading -- */

static void add(formula *formula, step step) {
    if (formula->steps < MOST_STEPS)
        formula->step[formula->steps++] = step;
    else
        formula->understood = false;
}

/* Whether `text` comes next, which is then read. */
static bool next_is(formula *formula, const char *text) {
    formula->rest += strspn(formula->rest, " ");
    if (strncmp(formula->rest, text, strlen(text)))
        return false;
    formula->rest += strlen(text);
    return true;
}

static void expect(formula *formula, const char *text) {
    formula->understood = next_is(formula, text) && formula->understood;
}

static void read_choice(formula *formula);

static void read_variable(formula *formula, const char *name, size_t length) {
    static const char *const operands[] = {"p", "t", "v", "x"};
    const int parameters = formula->loss->parameter_count;
    for (int i = 0; i < FIRST_PARAMETER + parameters; i++) {
        const char *known = i < FIRST_PARAMETER ? operands[i] : formula->loss->parameter[i - FIRST_PARAMETER].name;
        if (strlen(known) == length && !strncmp(known, name, length)) {
            add(formula, (step){.variable = i});
            return;
        }
    }
    formula->understood = false;
}

static void read_call(formula *formula, const char *name, size_t length) {
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strlen(functions[i].name) == length && !strncmp(functions[i].name, name, length)) {
            read_choice(formula);
            if (functions[i].of_two) {
                expect(formula, ",");
                read_choice(formula);
            }
            expect(formula, ")");
            add(formula, (step){.inputs = functions[i].of_two ? 2 : 1,
                                .of_one = functions[i].of_one,
                                .of_two = functions[i].of_two});
            return;
        }
    formula->understood = false;
}

static void read_atom(formula *formula) {
    if (next_is(formula, "(")) {
        read_choice(formula);
        expect(formula, ")");
    } else if (isdigit((unsigned char)*formula->rest)) {
        char *end;
        const double number = strtod(formula->rest, &end);
        formula->rest = end;
        add(formula, (step){.variable = -1, .number = number});
    } else {
        const char *name = formula->rest;
        while (isalnum((unsigned char)*formula->rest) || *formula->rest == '_')
            formula->rest++;
        const size_t length = (size_t)(formula->rest - name);
        if (next_is(formula, "("))
            read_call(formula, name, length);
        else
            read_variable(formula, name, length);
    }
}

static void read_signed(formula *formula) {
    if (!next_is(formula, "-")) {
        read_atom(formula);
        return;
    }
    read_signed(formula);
    add(formula, (step){.inputs = 1, .of_one = negated});
}

/* read_part ( sign read_part )*, or but one sign. */
static void read_row(formula *formula, void (*read_part)(struct formula *), bool many, int signs,
                     const char *const *sign, double (*const *function)(double, double)) {
    read_part(formula);
    for (int i = 0; formula->understood && i < signs; i++)
        if (next_is(formula, sign[i])) {
            read_part(formula);
            add(formula, (step){.inputs = 2, .of_two = function[i]});
            if (!many)
                return;
            i = -1;
        }
}

static void read_product(formula *formula) {
    static const char *const signs[] = {"*", "/"};
    static double (*const functions[])(double, double) = {product, quotient};
    read_row(formula, read_signed, true, 2, signs, functions);
}

static void read_sum(formula *formula) {
    static const char *const signs[] = {"+", "-"};
    static double (*const functions[])(double, double) = {sum, difference};
    read_row(formula, read_product, true, 2, signs, functions);
}

static void read_comparison(formula *formula) {
    static const char *const signs[] = {"<=", ">=", "==", "!=", "<", ">"};
    static double (*const functions[])(double, double) = {at_most, at_least, equal, unequal, less, greater};
    read_row(formula, read_sum, false, 6, signs, functions);
}

static void read_choice(formula *formula) {
    read_comparison(formula);
    if (!formula->understood || !next_is(formula, "?"))
        return;
    read_choice(formula);
    expect(formula, ":");
    read_choice(formula);
    add(formula, (step){.inputs = 3});
}

formula formula_read(const char *text, const onepass_loss_info *loss) {
    formula formula = {.rest = text, .loss = loss, .understood = true};
    read_choice(&formula);
    formula.understood = formula.understood && *formula.rest == '\0';
    return formula;
}

/* ------------------------------------------------------------ computing -- */

static void fill(double *to, int count, double number) {
    for (int i = 0; i < count; i++)
        to[i] = number;
}

void formula_compute(const formula *formula, const double *const *variable, int count, double *result) {
    static double stack[MOST_STEPS][BLOCK];
    double(*top)[BLOCK] = stack; /* the first that is free */
    for (const step *step = formula->step; step < formula->step + formula->steps; step++) {
        double(*input)[BLOCK] = top - step->inputs;
        double *to = *input;
        if (step->inputs == 0 && (step->variable < 0 || step->variable >= FIRST_PARAMETER))
            fill(to, count, step->variable < 0 ? step->number : *variable[step->variable]);
        else if (step->inputs == 0)
            memcpy(to, variable[step->variable], (size_t)count * sizeof *to);
        for (int i = 0; step->inputs == 1 && i < count; i++)
            to[i] = step->of_one(to[i]);
        for (int i = 0; step->inputs == 2 && i < count; i++)
            to[i] = step->of_two(to[i], input[1][i]);
        for (int i = 0; step->inputs == 3 && i < count; i++)
            to[i] = to[i] != 0 ? input[1][i] : input[2][i];
        top = input + 1;
    }
    memcpy(result, stack, (size_t)count * sizeof *result);
}
