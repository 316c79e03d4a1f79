/*
 * Questions for the tests of losses over rows: dense rows of a few numbers, asked of the library with all outputs, and
 * compared with what is written down or with the oracle.
 */
#ifndef ONEPASS_TESTS_ROW_QUESTIONS_H
#define ONEPASS_TESTS_ROW_QUESTIONS_H

#include "check.h"
#include "oracle.h"
#include "row_losses.h"

#include <math.h>
#include <stdbool.h>

enum {
    MOST = 3000 /* classes, or elements */
};

/* ------------------------------------------------------------ questions -- */

/* Dense rows of numbers that are computed in float or in double, with all outputs. */
typedef struct question {
    const char *loss;
    int32_t dtype, reduction, flags;
    int64_t rows, classes;
    const double *input;
    const int64_t *label;
    const double *probability, *class_weight, *weight, *upstream; /* null: none */
    const unsigned char *mask;
    double parameter[ONEPASS_MAX_PARAMETERS];
    int32_t parameter_count;
} question;

typedef struct results {
    onepass_status status;
    double value[MOST], gradient[2][MOST], log_sum_exp[MOST], divided_by;
    int64_t predicted[MOST];
    bool untouched; /* no output was written to */
} results;

static results got;

static inline void store(int32_t dtype, void *into, const double *numbers, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        oracle_store(dtype, (char *)into + i * (int64_t)oracle_size(dtype), numbers[i]);
    }
}

static inline void load(int32_t dtype, const void *from, double *numbers, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        numbers[i] = oracle_load(dtype, (const char *)from + i * (int64_t)oracle_size(dtype));
    }
}

static inline bool is_poison(const void *memory, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        if (((const unsigned char *)memory)[i] != 0xa5) {
            return false;
        }
    }
    return true;
}

/* Asks the library. */
static inline void ask(const question *q) {
    static double memory[12][MOST];
    const bool none = q->reduction == ONEPASS_NONE, has_softmax = strcmp(q->loss, "nll") != 0;
    const int64_t all[2] = {q->rows, q->classes}, rows = q->rows, classes = q->classes;
    const int32_t type = q->dtype;
    memset(memory, 0xa5, sizeof memory);
    store(type, memory[0], q->input, rows * classes);
    onepass_tensor input = {memory[0], type, 2, all, NULL}, target = {memory[1], ONEPASS_I64, 1, &rows, NULL};
    onepass_tensor class_weight = {memory[2], type, 1, &classes, NULL}, weight = {memory[3], type, 1, &rows, NULL};
    onepass_tensor mask = {memory[4], ONEPASS_BOOL, 1, &rows, NULL}, upstream = {memory[5], type, none, &rows, NULL};
    onepass_tensor value = {memory[6], type, none, &rows, NULL}, gradient = {memory[7], type, 2, all, NULL};
    onepass_tensor of_target = {memory[8], type, 2, all, NULL}, lse = {memory[9], type, 1, &rows, NULL};
    onepass_tensor predicted = {memory[10], ONEPASS_I64, 1, &rows, NULL}, by = {memory[11], ONEPASS_F64, 0, NULL, NULL};
    onepass_call call = {.size = sizeof call,
                         .loss = q->loss,
                         .reduction = q->reduction,
                         .flags = q->flags,
                         .operand = {&input, &target},
                         .value = &value,
                         .gradient = {&gradient},
                         .parameter_count = q->parameter_count,
                         .predicted = &predicted,
                         .log_sum_exp = has_softmax ? &lse : NULL,
                         .divided_by = q->reduction ? NULL : &by};
    memcpy(call.parameter, q->parameter, sizeof call.parameter);
    if (q->probability) {
        target = (onepass_tensor){memory[1], type, 2, all, NULL};
        store(type, memory[1], q->probability, rows * classes);
        call.gradient[1] = &of_target;
    } else {
        memcpy(memory[1], q->label, (size_t)rows * sizeof *q->label);
    }
    if (q->class_weight) {
        store(type, memory[2], q->class_weight, classes);
        call.operand[2] = &class_weight;
    }
    if (q->weight) {
        store(type, memory[3], q->weight, rows);
        call.weight = &weight;
    }
    if (q->mask) {
        memcpy(memory[4], q->mask, (size_t)rows);
        call.mask = &mask;
    }
    if (q->upstream) {
        store(type, memory[5], q->upstream, none ? rows : 1);
        call.upstream = &upstream;
    }
    got.status = onepass_run(&call);
    got.untouched = is_poison(memory[6], 6 * sizeof memory[6]);
    load(type, memory[6], got.value, none ? rows : 1);
    load(type, memory[7], got.gradient[0], rows * classes);
    load(type, memory[8], got.gradient[1], q->probability ? rows * classes : 0);
    load(type, memory[9], got.log_sum_exp, has_softmax ? rows : 0);
    memcpy(got.predicted, memory[10], (size_t)rows * sizeof(int64_t));
    load(ONEPASS_F64, memory[11], &got.divided_by, 1);
}

/* NaN is NaN, and 0 of either sign 0. */
static inline bool same(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

static inline void expect_numbers(const char *what, const char *of, const double *numbers, const double *expected,
                                  int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (!CHECK(same(numbers[i], expected[i]), "%s: %s %lld: expected %.9g, got %.9g", what, of, (long long)i,
                   expected[i], numbers[i])) {
            return;
        }
    }
}

/* -------------------------------------------------------- with the oracle -- */

static inline double unit_of(int32_t dtype, double number) {
    int exponent;
    frexp(number, &exponent);
    const int digits = dtype == ONEPASS_F64 ? 53 : 24, least = dtype == ONEPASS_F64 ? -1021 : -125;
    return ldexp(1, (number == 0 || exponent < least ? least : exponent) - digits);
}

/* `lost` is what may be missing besides. */
static inline bool is_within(int32_t dtype, double number, double expected, double size, double units, double lost) {
    if (isnan(expected) || isinf(expected)) {
        return same(number, expected);
    }
    const double error = units * unit_of(dtype, size) + lost;
    double range[2] = {expected - error, expected + error};
    oracle_round(dtype, range, 2);
    return number >= range[0] && number <= range[1];
}

/* All results against the oracle's, within 4 units and what the loss adds in double; the numbers of the question are
 * rounded first. Exponentials that are below 2^-126 of the row's largest may be 0. */
static inline void expect_oracle(const char *what, const question *given) {
    static double numbers[3][MOST], expected[7][MOST];
    static int64_t predicted[MOST];
    question q = *given;
    const int64_t count = q.rows * q.classes;
    memcpy(numbers[0], q.input, (size_t)count * sizeof(double));
    oracle_round(q.dtype, numbers[0], count);
    q.input = numbers[0];
    if (q.probability) {
        memcpy(numbers[1], q.probability, (size_t)count * sizeof(double));
        oracle_round(q.dtype, numbers[1], count);
        q.probability = numbers[1];
    }
    ask(&q);
    if (!CHECK(got.status == ONEPASS_OK, "%s: expected ONEPASS_OK, got %s", what, onepass_message())) {
        return;
    }
    const oracle_rows asked = {.loss = q.loss,
                               .parameter = q.parameter,
                               .parameter_count = q.parameter_count,
                               .reduction = q.reduction,
                               .rows = q.rows,
                               .classes = q.classes,
                               .input = q.input,
                               .label = q.label,
                               .probability = q.probability,
                               .class_weight = q.class_weight,
                               .weight = q.weight,
                               .mask = q.mask,
                               .upstream = q.upstream,
                               .value = expected[0],
                               .row_value_size = expected[1],
                               .gradient = {expected[2], q.probability ? expected[3] : NULL},
                               .gradient_size = expected[4],
                               .log_sum_exp = expected[5],
                               .predicted = predicted,
                               .divided_by = expected[6]};
    CHECK(oracle_answer_rows(&asked) < 0, "%s: expected labels that are classes", what);
    const double of_value = q.dtype == ONEPASS_F64 ? oracle_units_of_row(&asked, 0) : 0;
    const double of_slope = q.dtype == ONEPASS_F64 ? oracle_units_of_row(&asked, 1) : 0;
    const double lost = (double)q.classes * (q.dtype == ONEPASS_F64 ? 0x1p-1021 : 0x1p-125);
    for (int64_t row = 0; q.reduction == ONEPASS_NONE && row < q.rows; row++) {
        CHECK(is_within(q.dtype, got.value[row], expected[0][row], expected[1][row], 4 + of_value, lost),
              "%s: row %lld: expected %.17g, got %.17g", what, (long long)row, expected[0][row], got.value[row]);
        CHECK(got.predicted[row] == predicted[row], "%s: row %lld: expected class %lld, got %lld", what, (long long)row,
              (long long)predicted[row], (long long)got.predicted[row]);
    }
    for (int64_t i = 0; i < count; i++) {
        const bool near = is_within(q.dtype, got.gradient[0][i], expected[2][i], expected[4][i], 4.5 + of_slope, lost);
        if (!CHECK(near, "%s: element %lld: expected gradient %.17g, got %.17g", what, (long long)i, expected[2][i],
                   got.gradient[0][i])) {
            return;
        }
    }
}

static const int32_t computes[] = {ONEPASS_F32, ONEPASS_F64};

#endif
