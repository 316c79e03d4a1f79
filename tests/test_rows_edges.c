/*
 * Losses over rows at their edges: NaN and infinities, rows that take no part, no rows, one class and none, weights
 * that are 0, labels that are no class, powers of probabilities that are nearly 0 or 1, logits and temperatures of
 * absurd sizes, and more elements than 31 bits can count. What is expected is written down here, or comes from the
 * oracle.
 */
#define _DEFAULT_SOURCE
#include "check.h"
#include "oracle.h"

#include <fenv.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <sys/mman.h>

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

static void store(int32_t dtype, void *into, const double *numbers, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        oracle_store(dtype, (char *)into + i * (int64_t)oracle_size(dtype), numbers[i]);
    }
}

static void load(int32_t dtype, const void *from, double *numbers, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        numbers[i] = oracle_load(dtype, (const char *)from + i * (int64_t)oracle_size(dtype));
    }
}

static bool is_poison(const void *memory, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        if (((const unsigned char *)memory)[i] != 0xa5) {
            return false;
        }
    }
    return true;
}

/* Asks the library. */
static void ask(const question *q) {
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
static bool same(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

static void expect_numbers(const char *what, const char *of, const double *numbers, const double *expected,
                           int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (!CHECK(same(numbers[i], expected[i]), "%s: %s %lld: expected %.9g, got %.9g", what, of, (long long)i,
                   expected[i], numbers[i])) {
            return;
        }
    }
}

/* -------------------------------------------------------- with the oracle -- */

static double unit_of(int32_t dtype, double number) {
    int exponent;
    frexp(number, &exponent);
    const int digits = dtype == ONEPASS_F64 ? 53 : 24, least = dtype == ONEPASS_F64 ? -1021 : -125;
    return ldexp(1, (number == 0 || exponent < least ? least : exponent) - digits);
}

/* `lost` is what may be missing besides. */
static bool is_within(int32_t dtype, double number, double expected, double size, double units, double lost) {
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
static void expect_oracle(const char *what, const question *given) {
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

/* ----------------------------------------------------- NaN and infinities -- */

static const int32_t computes[] = {ONEPASS_F32, ONEPASS_F64};
static const char *const softmaxes[] = {"cross_entropy", "log_prob", "poly", "softmax_focal",
                                        "generalized_cross_entropy"};
enum {
    SOFTMAXES = sizeof softmaxes / sizeof *softmaxes
};

static void test_nan_and_infinity(int32_t dtype, const char *loss) {
    static const double bad[] = {NAN, INFINITY};
    static double input[MOST];
    for (int kind = 0; kind < 2; kind++) {
        for (int64_t at = 0; at < 4; at++) { /* in the first row, whichever class; the second row has nothing odd */
            const double numbers[8] = {1, 2, 3, 0.5, 1, 2, 3, 0.5};
            memcpy(input, numbers, sizeof numbers);
            input[at] = bad[kind];
            question q = {
                loss, dtype, ONEPASS_NONE, .rows = 2, .classes = 4, .input = input, .label = (int64_t[]){1, 1}};
            ask(&q);
            CHECK(isnan(got.value[0]) && isfinite(got.value[1]), "%s: expected NaN and a number, got %g, %g", loss,
                  got.value[0], got.value[1]);
            CHECK(isnan(got.log_sum_exp[0]), "%s: expected log_sum_exp NaN, got %g", loss, got.log_sum_exp[0]);
            for (int c = 0; c < 4; c++) {
                CHECK(isnan(got.gradient[0][c]) && isfinite(got.gradient[0][4 + c]),
                      "%s: class %d: expected gradients NaN and a number, got %g, %g", loss, c, got.gradient[0][c],
                      got.gradient[0][4 + c]);
            }
            CHECK(got.predicted[0] == at && got.predicted[1] == 2, "%s: expected classes %lld and 2, got %lld and %lld",
                  loss, (long long)at, (long long)got.predicted[0], (long long)got.predicted[1]);
        }
    }
    /* In another tile than the label, and in the last, partly filled one. */
    for (int64_t at = 0; at < 2500; at += 1249) {
        for (int k = 0; k < 2500; k++) {
            input[k] = k % 7;
        }
        input[at] = NAN;
        question q = {loss, dtype, ONEPASS_SUM, .rows = 1, .classes = 2500, .input = input, .label = (int64_t[]){5}};
        ask(&q);
        CHECK(isnan(got.value[0]) && isnan(got.gradient[0][0]) && isnan(got.gradient[0][2499]) &&
                  isnan(got.gradient[0][5]),
              "%s: a NaN in class %lld of 2500: expected NaN everywhere, got %g", loss, (long long)at, got.value[0]);
    }
}

static void test_minus_infinity(int32_t dtype, const char *loss) {
    static double input[MOST];
    const double m = -INFINITY;
    question q = {loss, dtype, ONEPASS_NONE, .rows = 1, .classes = 4, .input = input, .label = (int64_t[]){1}};
    memcpy(input, (double[]){m, 1, 2, m}, 4 * sizeof(double));
    expect_oracle("-inf beside the label", &q);
    CHECK(got.gradient[0][0] == 0 && got.gradient[0][3] == 0, "%s: expected gradients 0, got %g, %g", loss,
          got.gradient[0][0], got.gradient[0][3]);
    memcpy(input, (double[]){1, m, 2, 3}, 4 * sizeof(double));
    expect_oracle("-inf at the label", &q);
    const int sign = strcmp(loss, "log_prob") == 0 ? -1 : 1;
    const bool is_bounded = strcmp(loss, "generalized_cross_entropy") == 0; /* which gives such a label up */
    double most = is_bounded ? 1 / 0.7 : sign * INFINITY;
    oracle_round(dtype, &most, 1);
    CHECK(got.value[0] == most && got.gradient[0][1] == (is_bounded ? 0 : -sign),
          "%s: -inf at the label: got %g, gradient %g", loss, got.value[0], got.gradient[0][1]);
    memcpy(input, (double[]){m, m, m, m}, 4 * sizeof(double));
    ask(&q);
    CHECK(isnan(got.value[0]) && isnan(got.gradient[0][0]) && isnan(got.gradient[0][1]) && got.predicted[0] == 0,
          "%s: -inf alone: expected NaN, got %g", loss, got.value[0]);
    memcpy(input, (double[]){m, m, m, -1e9}, 4 * sizeof(double));
    q.label = (int64_t[]){3};
    ask(&q);
    CHECK(got.value[0] == 0 && got.gradient[0][3] == 0 && got.log_sum_exp[0] == -1e9,
          "%s: -inf beside -1e9: expected 0, got %g", loss, got.value[0]);

    /* Whole tiles of it. */
    int64_t label;
    q.label = &label;
    for (int tile = 0; tile < 3; tile++) {
        for (int k = 0; k < 3000; k++) {
            input[k] = k / 1024 == tile ? m : (k % 11) - 5.0;
        }
        q.classes = 3000;
        for (label = 500; label < 3000; label += 1200) {
            expect_oracle("a tile of -inf", &q);
        }
    }
    for (int k = 0; k < 3000; k++) {
        input[k] = m;
    }
    label = 7;
    ask(&q);
    CHECK(isnan(got.value[0]) && isnan(got.gradient[0][2999]), "%s: three tiles of -inf: expected NaN, got %g", loss,
          got.value[0]);
    input[1500] = 2;
    label = 1500;
    ask(&q);
    CHECK(got.value[0] == 0 && got.gradient[0][1500] == 0 && got.gradient[0][0] == 0, "%s: 2 beside -inf alone: got %g",
          loss, got.value[0]);
}

static void test_smoothing_at_infinity(int32_t dtype) {
    const double m = -INFINITY;
    question q = {"cross_entropy",
                  dtype,
                  ONEPASS_NONE,
                  .rows = 1,
                  .classes = 3,
                  .input = (double[]){1, m, 2},
                  .label = (int64_t[]){0},
                  .parameter = {-100, 0.1},
                  .parameter_count = 2};
    ask(&q);
    CHECK(got.value[0] == INFINITY, "smoothing with -inf: expected inf, got %g", got.value[0]);
    q.class_weight = (double[]){1, 0, 1};
    expect_oracle("smoothing with -inf of weight 0", &q);
    CHECK(isfinite(got.value[0]), "smoothing with -inf of weight 0: expected a number, got %g", got.value[0]);

    q = (question){"cross_entropy_with_probabilities",
                   dtype,
                   ONEPASS_NONE,
                   .rows = 3,
                   .classes = 3,
                   .input = (double[]){1, m, 2, 1, m, 2, 1, 2, 3},
                   .probability = (double[]){0.5, 0, 0.5, 0.5, 0.25, 0.25, 0, 0, 0}};
    expect_oracle("probability 0 of -inf", &q);
    CHECK(isfinite(got.value[0]) && got.value[1] == INFINITY && got.value[2] == 0,
          "probabilities: expected a number, inf and 0, got %g, %g, %g", got.value[0], got.value[1], got.value[2]);
    CHECK(got.gradient[1][1] == INFINITY, "the slope in the probability of -inf: expected inf, got %g",
          got.gradient[1][1]);
    CHECK(got.gradient[0][6] == 0 && got.gradient[0][7] == 0 && got.gradient[0][8] == 0,
          "probabilities 0: expected gradients 0, got %g, %g, %g", got.gradient[0][6], got.gradient[0][7],
          got.gradient[0][8]);
    q = (question){"cross_entropy_with_probabilities",
                   dtype,
                   ONEPASS_NONE,
                   .rows = 2,
                   .classes = 2,
                   .input = (double[]){1, 2, 1, 2},
                   .probability = (double[]){NAN, 0.5, 0.5, 0.5}};
    ask(&q);
    CHECK(isnan(got.value[0]) && isnan(got.gradient[0][0]) && isnan(got.gradient[0][1]) && isfinite(got.value[1]),
          "a probability that is NaN: expected NaN and a number, got %g, %g", got.value[0], got.value[1]);
}

/* ------------------------------------------------- powers of probabilities -- */

/* The label's logit beside three others, by so much above or below them; and all of it. */
static const double leads[] = {-900, -700, -330, -100, -30, -2, -0.1, 0, 0.1, 2, 17, 30, 60, 80};

enum {
    LEADS = sizeof leads / sizeof *leads
};

static void fill_led(double *input, int64_t *label) {
    for (int row = 0; row < LEADS + 2; row++) {
        label[row] = row % 4;
        for (int c = 0; c < 4; c++) {
            const double other = row == LEADS + 1 ? -INFINITY : 0.25 * c - 3;
            input[4 * row + c] = c != label[row] ? other : row == LEADS ? -INFINITY : leads[row % LEADS] - 3;
        }
    }
}

/* gamma 0 and q 0 are cross-entropy, to the sign of a zero. */
static void test_no_power(int32_t dtype) {
    static const char *const losses[] = {"softmax_focal", "generalized_cross_entropy"};
    static double input[4 * (LEADS + 2)], value[LEADS + 2], gradient[4 * (LEADS + 2)];
    static int64_t label[LEADS + 2];
    fill_led(input, label);
    question q = {"cross_entropy", dtype,          ONEPASS_NONE,   .rows = LEADS + 2,
                  .classes = 4,    .input = input, .label = label, .class_weight = (double[]){1, 0.3, 2.5, 0}};
    ask(&q);
    memcpy(value, got.value, sizeof value);
    memcpy(gradient, got.gradient[0], sizeof gradient);
    for (int i = 0; i < 2; i++) {
        q.loss = losses[i];
        q.parameter_count = 3;
        memcpy(q.parameter, i == 0 ? (double[]){-100, 1, 0} : (double[]){-100, 0, 0}, 3 * sizeof(double));
        ask(&q);
        CHECK(memcmp(value, got.value, sizeof value) == 0, "%s: expected cross-entropy's values", losses[i]);
        CHECK(memcmp(gradient, got.gradient[0], sizeof gradient) == 0, "%s: expected cross-entropy's gradients",
              losses[i]);
    }
}

/* Sure rows and lost ones: a power of nearly nothing, whose slope alone would be infinite, and one of a probability
 * that no double holds. */
static void test_powers(int32_t dtype) {
    static const double gammas[] = {0.01, 0.5, 1, 1.7, 2, 5, 100}, qs[] = {1e-200, 1e-6, 0.01, 0.3, 0.7, 1};
    static double input[4 * (LEADS + 2)];
    static int64_t label[LEADS + 2];
    fill_led(input, label);
    for (int i = 0; i < 7 + 6; i++) {
        question q = {i < 7 ? "softmax_focal" : "generalized_cross_entropy",
                      dtype,
                      ONEPASS_NONE,
                      .rows = LEADS + 2,
                      .classes = 4,
                      .input = input,
                      .label = label,
                      .parameter_count = i < 7 ? 3 : 2};
        memcpy(q.parameter, i < 7 ? (double[]){-100, 1, gammas[i]} : (double[]){-100, qs[i - 7], 0},
               3 * sizeof(double));
        expect_oracle(q.loss, &q);
        for (int64_t at = 0; at < 4 * q.rows; at++) {
            CHECK(isfinite(got.gradient[0][at]), "%s: expected a finite gradient, got %g", q.loss, got.gradient[0][at]);
        }
        CHECK(got.value[LEADS + 1] == 0, "%s: a label that has all: expected 0, got %g", q.loss, got.value[LEADS + 1]);
    }
}

/* ------------------------------------------------- rows that take no part -- */

static void test_all_ignored(int32_t dtype) {
    static const char *const losses[] = {"cross_entropy", "nll", "log_prob", "softmax_focal",
                                         "generalized_cross_entropy"};
    const double zero[6] = {0}, nan = NAN;
    for (int i = 0; i < 5; i++) {
        for (int32_t reduction = ONEPASS_MEAN; reduction <= ONEPASS_NONE; reduction++) {
            for (int hidden = 0; hidden < 2; hidden++) {
                question q = {losses[i],
                              dtype,
                              reduction,
                              .rows = 2,
                              .classes = 3,
                              .input = (double[]){NAN, 1, INFINITY, 2, 3, 4},
                              .label = hidden ? (int64_t[]){77, -3} : (int64_t[]){-100, -100},
                              .mask = hidden ? (unsigned char[]){0, 0} : NULL};
                ask(&q);
                CHECK(got.status == ONEPASS_OK, "%s: %s", losses[i], onepass_message());
                expect_numbers(losses[i], "gradient", got.gradient[0], zero, 6);
                expect_numbers(losses[i], "value", got.value, reduction == ONEPASS_MEAN ? &nan : zero,
                               reduction == ONEPASS_NONE ? 2 : 1);
                CHECK(got.predicted[0] == -1 && got.predicted[1] == -1, "%s: expected no class, got %lld", losses[i],
                      (long long)got.predicted[0]);
                CHECK(reduction != ONEPASS_MEAN || got.divided_by == 0, "%s: expected to be divided by 0, got %g",
                      losses[i], got.divided_by);
                if (i != 1) {
                    expect_numbers(losses[i], "log_sum_exp", got.log_sum_exp, zero, 2);
                }
            }
        }
    }
}

static void test_nothing(int32_t dtype) {
    const double none[1] = {0};
    const int64_t no_label[1] = {-100};
    static const char *const losses[] = {"cross_entropy", "nll", "log_prob", "cross_entropy_with_probabilities"};
    for (int i = 0; i < 4; i++) {
        for (int32_t reduction = ONEPASS_MEAN; reduction <= ONEPASS_NONE; reduction++) {
            const double expected = reduction == ONEPASS_MEAN ? NAN : 0;
            question q = {losses[i], dtype, reduction, .rows = 0, .classes = 3, .input = none, .label = no_label};
            q.probability = i == 3 ? none : NULL;
            q.label = i == 3 ? NULL : no_label;
            ask(&q);
            CHECK(got.status == ONEPASS_OK, "%s of no rows: %s", losses[i], onepass_message());
            expect_numbers(losses[i], "no rows: value", got.value, &expected, reduction == ONEPASS_NONE ? 0 : 1);

            /* A row without classes has no softmax, and no label can be right. */
            q.rows = 1;
            q.classes = 0;
            const double without = i == 3 ? NAN : expected;
            ask(&q);
            CHECK(got.status == ONEPASS_OK, "%s of no classes: %s", losses[i], onepass_message());
            expect_numbers(losses[i], "no classes: value", got.value, &without, 1);
            q.label = (int64_t[]){0};
            if (i < 3) {
                ask(&q);
                CHECK(got.status == ONEPASS_OUT_OF_BOUNDS && got.untouched, "%s of no classes with label 0: got %s",
                      losses[i], onepass_status_name(got.status));
            }
        }
    }
}

static void test_one_class(int32_t dtype) {
    const double zero[3] = {0};
    for (int smoothed = 0; smoothed < 2; smoothed++) {
        question q = {"cross_entropy",
                      dtype,
                      ONEPASS_NONE,
                      .rows = 3,
                      .classes = 1,
                      .input = (double[]){5, -1e8, 1e30},
                      .label = (int64_t[]){0, 0, 0},
                      .parameter = {-100, 0.25},
                      .parameter_count = smoothed ? 2 : 0};
        ask(&q);
        expect_numbers("one class", "value", got.value, zero, 3);
        expect_numbers("one class", "gradient", got.gradient[0], zero, 3);
    }
    question q = {"cross_entropy_with_probabilities",
                  dtype,
                  ONEPASS_NONE,
                  .rows = 3,
                  .classes = 1,
                  .input = (double[]){5, -1e8, 1e30},
                  .probability = (double[]){1, 0.5, 0}};
    ask(&q);
    expect_numbers("one class with probabilities", "value", got.value, zero, 3);
    expect_numbers("one class with probabilities", "gradient", got.gradient[0], zero, 3);
}

static void test_weights(int32_t dtype) {
    const double nan[6] = {NAN, NAN, NAN, 0, 0, 0};
    question q = {"cross_entropy",
                  dtype,
                  ONEPASS_MEAN,
                  .rows = 2,
                  .classes = 3,
                  .input = (double[]){1, 2, 3, 4, 5, 6},
                  .label = (int64_t[]){1, -100},
                  .class_weight = (double[]){1, 0, 1}};
    ask(&q);
    CHECK(isnan(got.value[0]) && got.divided_by == 0, "weights of 0: expected NaN over 0, got %g over %g", got.value[0],
          got.divided_by);
    expect_numbers("weights of 0", "gradient", got.gradient[0], nan, 6);
    q.reduction = ONEPASS_SUM;
    ask(&q);
    CHECK(got.value[0] == 0, "a sum with weights of 0: expected 0, got %g", got.value[0]);
    q.reduction = ONEPASS_MEAN;
    q.class_weight = (double[]){1, -2, 0.5};
    q.label = (int64_t[]){1, 2};
    expect_oracle("negative weights", &q);
    CHECK(got.divided_by == -1.5, "negative weights: expected to be divided by -1.5, got %g", got.divided_by);
    q.class_weight = NULL;
    q.weight = (double[]){-2, 0.5};
    expect_oracle("negative weights of rows", &q);
    CHECK(got.divided_by == -1.5, "negative weights of rows: expected -1.5, got %g", got.divided_by);
    q.flags = ONEPASS_OVER_ELEMENTS;
    ask(&q);
    CHECK(got.divided_by == 2, "over elements: expected to be divided by 2, got %g", got.divided_by);
}

/* What the largest is if several are. */
static void test_predicted(int32_t dtype) {
    question q = {"cross_entropy",
                  dtype,
                  ONEPASS_NONE,
                  .rows = 4,
                  .classes = 3,
                  .input = (double[]){-0.0, 0.0, -1, 1, 7, 7, NAN, 1, NAN, -INFINITY, -INFINITY, 1},
                  .label = (int64_t[]){0, 0, 0, 0}};
    ask(&q);
    const int64_t expected[4] = {0, 1, 0, 2};
    for (int row = 0; row < 4; row++) {
        CHECK(got.predicted[row] == expected[row], "row %d: expected class %lld, got %lld", row,
              (long long)expected[row], (long long)got.predicted[row]);
    }
}

/* ------------------------------------------------- labels that are no class -- */

static void test_bounds(int32_t dtype) {
    static const int64_t wrong[] = {3, -1, -99, -101, 1000000, INT64_MAX, INT64_MIN, (int64_t)1 << 32, 0x100000001};
    static const char *const losses[] = {"cross_entropy", "nll", "log_prob"};
    for (int i = 0; i < 3; i++) {
        for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
            char number[32];
            question q = {losses[i],
                          dtype,
                          ONEPASS_NONE,
                          .rows = 3,
                          .classes = 3,
                          .input = (double[9]){1, 2},
                          .label = (int64_t[]){0, -100, wrong[k]}};
            ask(&q);
            CHECK(got.status == ONEPASS_OUT_OF_BOUNDS && got.untouched, "%s, label %lld: expected a refusal, got %s",
                  losses[i], (long long)wrong[k], onepass_status_name(got.status));
            snprintf(number, sizeof number, "arget %lld ", (long long)wrong[k]);
            CHECK(strstr(onepass_message(), number) && strstr(onepass_message(), "out of bounds") &&
                      strstr(onepass_message(), "row 2"),
                  "%s: the message does not say what was wrong: \"%s\"", losses[i], onepass_message());
            q.mask = (unsigned char[]){1, 1, 0};
            ask(&q);
            CHECK(got.status == ONEPASS_OK, "%s: a hidden label %lld: %s", losses[i], (long long)wrong[k],
                  onepass_message());
        }
    }
}

/* ------------------------------------------------------------ absurd sizes -- */

static void test_sizes_of_logits(int32_t dtype, const char *loss) {
    static double input[MOST];
    static const double rows[][4] = {
        {1e8, 0, 1, -1e8},
        {1e8, 1e8, 1e8 + 8, 0},
        {-1e9, -INFINITY, -1e9, -INFINITY},
        {1048576, 1048575, 0, 5},
        {-1048576, -1048575, -1048577, 0},
        {726817, 726818, 726819, 726000},
        {1e30, 1e30, -1e30, 0},
        {FLT_MAX, FLT_MAX, -FLT_MAX, 0},
        {-FLT_MAX, -FLT_MAX, -FLT_MAX, -FLT_MAX},
        {FLT_MIN, 0, -FLT_MIN, 1e-44},
        {1e-40, 1e-41, 0, -1e-40},
        {100, 50, 0, -20},
        {16777217, 16777215, 16777214, 3},
        {0, 0, 0, 0},
        {-0.0, 0, -0.0, 0},
        {88.7, 0, -88.7, 10},
        {-103.9, -103.9, -103.9, 0},
        {1e5, 99999, 99998, 99990},
    };
    question q = {loss, dtype, ONEPASS_NONE, .rows = 1, .classes = 4, .input = input};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        memcpy(input, rows[i], sizeof rows[i]);
        for (int64_t label = 0; label < 4; label++) {
            char what[128];
            snprintf(what, sizeof what, "%s of {%g, %g, %g, %g}, label %d", loss, rows[i][0], rows[i][1], rows[i][2],
                     rows[i][3], (int)label);
            q.label = &label;
            expect_oracle(what, &q);
        }
    }

    /* Sizes on both sides of what is taken relative to the tile's largest, in several tiles. */
    static const double pairs[][3] = {
        {1048580, 1048570, 0}, {726815, 726825, 726820},         {-1e9, -1e9, -1e9},  {1e8, 0, 1e8},
        {0x1p49, 0x1p49, 0},   {-0x1p20, -0x1.0001p20, -0x1p21}, {3e38, 3e38, -3e38}, {726810.0, 726817.25, 726818.5},
        {0, 500, 1000}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        q.classes = 2500;
        for (int k = 0; k < 2500; k++) {
            input[k] = pairs[i][k / 1024] - (k % 5);
        }
        for (int64_t label = 1; label < 2500; label += 833) {
            char what[80];
            snprintf(what, sizeof what, "%s of tiles of %.9g, %.9g, %.9g, label %d", loss, pairs[i][0], pairs[i][1],
                     pairs[i][2], (int)label);
            q.label = &label;
            expect_oracle(what, &q);
        }
    }
}

static void test_large_doubles(void) {
    static const double rows[][4] = {{1.2e308, -1.2e308, 0, 1},
                                     {DBL_MAX, 1.3e308, 0, 1.3e308},
                                     {DBL_MAX, DBL_MAX, -1, DBL_MAX},
                                     {-1.3e308, -DBL_MAX, -1.3e308, -1.7e308},
                                     {DBL_MIN, 0, -DBL_MIN, 5e-324},
                                     {1e300, 1e300, 1, -1e300},
                                     {0x1p49, 0x1p49 - 3, 0, 1},
                                     {-0x1p50, -0x1p50 - 2, -0x1p50 + 2, -0x1p51},
                                     {709, 0, -709, -740},
                                     {0, -745, -1000, 3},
                                     {1e15, 1e15 + 1, 1e15 - 4, 0}};
    question q = {"cross_entropy", ONEPASS_F64, ONEPASS_NONE, .rows = 1, .classes = 4};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int64_t label = 0; label < 4; label++) {
            char what[80];
            snprintf(what, sizeof what, "%g, %g, %g, %g, label %d", rows[i][0], rows[i][1], rows[i][2], rows[i][3],
                     (int)label);
            q.input = rows[i];
            q.label = &label;
            expect_oracle(what, &q);
        }
    }
}

/* Rows that lie anywhere: exponents of all sizes, with and without a label. */
static void test_offsets(int32_t dtype) {
    for (int offset = -1600; offset <= 1600; offset++) {
        const double at = offset + 0.1, input[4] = {at, at - 1, at + 0.5, at - 3};
        char what[64];
        snprintf(what, sizeof what, "logits around %g", at);
        question q = {"cross_entropy_with_probabilities",
                      dtype,
                      ONEPASS_NONE,
                      .rows = 1,
                      .classes = 4,
                      .input = input,
                      .probability = (double[]){0.5, 0.25, 0.125, 0.125}};
        expect_oracle(what, &q);
        q = (question){"cross_entropy", dtype,          ONEPASS_NONE,           .rows = 1,
                       .classes = 4,    .input = input, .label = (int64_t[]){1}};
        expect_oracle(what, &q);
    }
}

static void test_temperatures(int32_t dtype) {
    static const double temperatures[] = {1e-3, 0.01, 0.3, 1.7, 20, 1e3, 1e-30, 1e30, 1e-10, 1e10};
    static const double rows[][4] = {{1, 2, 3, 4}, {1e4, 1e4 - 1, 0, 2}, {-1e8, 0, 1e8, 5}, {1e-3, 2e-3, -1e-3, 0}};
    for (size_t i = 0; i < sizeof temperatures / sizeof temperatures[0]; i++) {
        for (int k = 0; k < 4; k++) {
            for (int64_t label = 0; label < 4; label += 3) {
                char what[64];
                question q = {"log_prob",          dtype,
                              ONEPASS_NONE,        .rows = 1,
                              .classes = 4,        .input = rows[k],
                              .label = &label,     .parameter = {-100, 0, temperatures[i]},
                              .parameter_count = 3};
                snprintf(what, sizeof what, "temperature %g, row %d, label %d", temperatures[i], k, (int)label);
                expect_oracle(what, &q);
            }
        }
    }
}

/* ------------------------------------------------------------- narrow types -- */

/* Sums and divisors are not kept in 16 bits. */
static void test_long_means(void) {
    enum {
        ROWS = 70001
    };
    static uint16_t input[2 * ROWS], gradient[2 * ROWS];
    static unsigned char label[ROWS];
    uint16_t value = 0;
    double divided_by = 0;
    const int64_t shape[2] = {ROWS, 2};
    const onepass_tensor x = {input, ONEPASS_F16, 2, shape, NULL}, y = {label, ONEPASS_U8, 1, shape, NULL};
    const onepass_tensor v = {&value, ONEPASS_F16, 0, NULL, NULL}, g = {gradient, ONEPASS_F16, 2, shape, NULL};
    const onepass_tensor by = {&divided_by, ONEPASS_F64, 0, NULL, NULL};
    for (int i = 0; i < ROWS; i++) {
        input[2 * i] = (uint16_t)oracle_encode(ONEPASS_F16, 100);
    }
    memset(label, 1, sizeof label);
    onepass_call call = {.size = sizeof call,
                         .loss = "cross_entropy",
                         .operand = {&x, &y},
                         .value = &v,
                         .gradient = {&g},
                         .divided_by = &by};
    CHECK_OK(onepass_run(&call), "70001 rows of f16");
    CHECK(oracle_decode(ONEPASS_F16, value) == 100 && divided_by == ROWS,
          "70001 rows of f16: expected a mean of 100, got %g", oracle_decode(ONEPASS_F16, value));
    double expected = 1.0 / ROWS;
    oracle_round(ONEPASS_F16, &expected, 1);
    CHECK(oracle_decode(ONEPASS_F16, gradient[0]) == expected, "70001 rows of f16: expected a gradient of %g, got %g",
          expected, oracle_decode(ONEPASS_F16, gradient[0]));
}

/* ------------------------------------------------------------- many labels -- */

/* So many that threads share the look at them: all are counted, and one that is no class is found wherever it is. */
static void test_many_labels(void) {
    enum {
        ROWS = 200003
    };
    static const int64_t places[] = {0, 65535, 65536, 100001, 100002, ROWS - 1};
    static float input[3 * ROWS], value;
    static int64_t label[ROWS];
    double divided_by = 0;
    const int64_t shape[2] = {ROWS, 3};
    const onepass_tensor x = {input, ONEPASS_F32, 2, shape, NULL}, y = {label, ONEPASS_I64, 1, shape, NULL};
    const onepass_tensor v = {&value, ONEPASS_F32, 0, NULL, NULL}, by = {&divided_by, ONEPASS_F64, 0, NULL, NULL};
    int64_t counted = 0;
    for (int64_t i = 0; i < ROWS; i++) {
        label[i] = i % 7 == 3 ? -100 : i % 3;
        counted += i % 7 != 3;
    }
    for (int32_t threads = 0; threads < 4; threads++) {
        onepass_call call = {.size = sizeof call,
                             .loss = "cross_entropy",
                             .operand = {&x, &y},
                             .value = &v,
                             .divided_by = &by,
                             .threads = threads};
        CHECK_OK(onepass_run(&call), "200003 rows");
        CHECK(divided_by == (double)counted, "200003 rows, %d threads: expected %lld to count, got %g", threads,
              (long long)counted, divided_by);
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
            char row[32];
            const int64_t kept = label[places[i]];
            snprintf(row, sizeof row, "row %lld ", (long long)places[i]);
            label[places[i]] = 3;
            CHECK(onepass_run(&call) == ONEPASS_OUT_OF_BOUNDS && strstr(onepass_message(), row),
                  "200003 rows, %d threads: expected label 3 in %sto be refused", threads, row);
            label[places[i]] = kept;
        }
    }
}

/* ------------------------------------------------------------ the short ways -- */

static void test_short_functions(void) {
    float x[6] = {1, 2, 3, 0, -1, 4}, value[2], gradient[2][6];
    int32_t y[2] = {2, 0};
    const int64_t shape[2] = {2, 3};
    const onepass_tensor input = {x, ONEPASS_F32, 2, shape, NULL}, target = {y, ONEPASS_I32, 1, shape, NULL};
    const onepass_tensor v0 = {&value[0], ONEPASS_F32, 0, NULL, NULL}, v1 = {&value[1], ONEPASS_F32, 0, NULL, NULL};
    const onepass_tensor g0 = {gradient[0], ONEPASS_F32, 2, shape, NULL},
                         g1 = {gradient[1], ONEPASS_F32, 2, shape, NULL};
    CHECK_OK(onepass_forward("cross_entropy", ONEPASS_MEAN, &input, &target, &v0), "forward");
    CHECK_OK(onepass_backward("cross_entropy", ONEPASS_MEAN, &input, &target, NULL, &g0, NULL), "backward");
    CHECK_OK(onepass_forward_backward("cross_entropy", ONEPASS_MEAN, &input, &target, &v1, &g1), "both");
    CHECK(memcmp(&value[0], &value[1], sizeof value[0]) == 0 &&
              memcmp(gradient[0], gradient[1], sizeof gradient[0]) == 0,
          "expected forward and backward to give the bits of both together");
    question q = {"cross_entropy",
                  ONEPASS_F32,
                  ONEPASS_MEAN,
                  .rows = 2,
                  .classes = 3,
                  .input = (double[]){1, 2, 3, 0, -1, 4},
                  .label = (int64_t[]){2, 0}};
    ask(&q);
    CHECK(got.value[0] == (double)value[0], "expected %g, got %g", got.value[0], (double)value[0]);
}

/* Gradients that are there stay where the upstream gradient is 1. */
static void test_skip_if_one(void) {
    float x[3] = {1, 2, 3}, gradient[3] = {7, 7, 7}, upstream = 1;
    int64_t y = 1;
    const int64_t shape[2] = {1, 3};
    const onepass_tensor input = {x, ONEPASS_F32, 2, shape, NULL}, target = {&y, ONEPASS_I64, 1, shape, NULL};
    const onepass_tensor g = {gradient, ONEPASS_F32, 2, shape, NULL}, u = {&upstream, ONEPASS_F32, 0, NULL, NULL};
    onepass_call call = {.size = sizeof call,
                         .loss = "cross_entropy",
                         .operand = {&input, &target},
                         .gradient = {&g},
                         .upstream = &u,
                         .flags = ONEPASS_SKIP_IF_UPSTREAM_IS_ONE};
    CHECK_OK(onepass_run(&call), "upstream 1");
    CHECK(gradient[0] == 7 && gradient[2] == 7, "expected the gradient to stay, got %g", (double)gradient[0]);
    upstream = 2;
    CHECK_OK(onepass_run(&call), "upstream 2");
    CHECK(gradient[0] > 0 && gradient[0] < 1 && gradient[1] < 0, "expected a gradient, got %g", (double)gradient[0]);
}

/* Another rounding mode is the caller's own affair. */
static void test_rounding_modes(void) {
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    static double input[2000];
    static results expected;
    for (int i = 0; i < 2000; i++) {
        input[i] = sin(i) * 5;
    }
    question q = {"cross_entropy",
                  ONEPASS_F32,
                  ONEPASS_MEAN,
                  .rows = 20,
                  .classes = 100,
                  .input = input,
                  .label = (int64_t[20]){3, 5, 7},
                  .parameter = {-100, 0.1, 0.01, 30, 2},
                  .parameter_count = 5};
    ask(&q);
    expected = got;
    for (int i = 0; i < 3; i++) {
        fesetround(modes[i]);
        ask(&q);
        CHECK(fegetround() == modes[i], "expected the rounding mode to stay");
        fesetround(FE_TONEAREST);
        CHECK(memcmp(&expected.value, &got.value, sizeof(double)) == 0 &&
                  memcmp(expected.gradient[0], got.gradient[0], sizeof input) == 0,
              "expected the same bits in every rounding mode");
    }
}

/* -------------------------------------------------------- beyond 31 bits -- */

/* Many elements: one row again and again, of which nll looks at one number; classes and rows that are gigabytes apart.
 */
static void test_many_elements(void) {
    const int64_t rows = 3 << 20, shape[2] = {rows, 1000}, none[2] = {0, 0};
    float x = 2.5f;
    int64_t y = 999;
    double value = 0, divided_by = 0;
    const onepass_tensor input = {&x, ONEPASS_F32, 2, shape, none}, target = {&y, ONEPASS_I64, 1, shape, none};
    const onepass_tensor v = {&value, ONEPASS_F64, 0, NULL, NULL}, by = {&divided_by, ONEPASS_F64, 0, NULL, NULL};
    onepass_call call = {
        .size = sizeof call, .loss = "nll", .operand = {&input, &target}, .value = &v, .divided_by = &by};
    CHECK_OK(onepass_run(&call), "3 * 2^20 rows of 1000 classes");
    CHECK(value == -2.5 && divided_by == (double)rows, "many rows: expected -2.5 over %lld, got %g over %g",
          (long long)rows, value, divided_by);

    const size_t bytes = (size_t)5 << 32;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        printf("left out: no %zu bytes of addresses for numbers that are far apart\n", bytes);
        return;
    }
    const int64_t apart = (int64_t)1 << 31; /* two bytes each */
    const int64_t far_shape[2] = {3, 3}, far_rows[2] = {apart / 2, 1}, far_classes[2] = {1, apart - 7};
    int64_t labels[3] = {2, 0, 1};
    double values[2][3] = {{0}}, near[9], gradient[2][9] = {{0}};
    for (int route = 0; route < 2; route++) {
        const onepass_tensor far_input = {memory, ONEPASS_BF16, 2, far_shape, route ? far_classes : far_rows};
        for (int i = 0; i < 9; i++) {
            near[i] = (i * 5 % 7) - 2;
            const int64_t offset = i / 3 * far_input.strides[0] + i % 3 * far_input.strides[1];
            oracle_store(ONEPASS_BF16, memory + 2 * offset, near[i]);
        }
        const onepass_tensor y3 = {labels, ONEPASS_I64, 1, far_shape, NULL},
                             v3 = {values[0], ONEPASS_F64, 1, far_shape, NULL};
        const onepass_tensor g3 = {gradient[0], ONEPASS_F64, 2, far_shape, NULL};
        onepass_call far_call = {.size = sizeof far_call,
                                 .loss = "cross_entropy",
                                 .reduction = ONEPASS_NONE,
                                 .operand = {&far_input, &y3},
                                 .value = &v3,
                                 .gradient = {&g3}};
        CHECK_OK(onepass_run(&far_call), "numbers that are far apart");
        uint16_t dense[9];
        for (int i = 0; i < 9; i++) {
            oracle_store(ONEPASS_BF16, &dense[i], near[i]);
        }
        const onepass_tensor near_input = {dense, ONEPASS_BF16, 2, far_shape, NULL};
        const onepass_tensor v4 = {values[1], ONEPASS_F64, 1, far_shape, NULL},
                             g4 = {gradient[1], ONEPASS_F64, 2, far_shape, NULL};
        far_call.operand[0] = &near_input;
        far_call.value = &v4;
        far_call.gradient[0] = &g4;
        CHECK_OK(onepass_run(&far_call), "the same numbers side by side");
        CHECK(memcmp(values[0], values[1], sizeof values[0]) == 0 &&
                  memcmp(gradient[0], gradient[1], sizeof gradient[0]) == 0,
              "expected numbers that are far apart to give the bits of numbers side by side");
    }
    munmap(memory, bytes);
}

/* A row of more classes than 31 bits can count, all alike. */
static void test_many_classes(void) {
    const int64_t classes = ((int64_t)1 << 31) + 5000, shape[2] = {1, classes}, none[2] = {0, 0};
    float x = 1;
    int64_t y = classes - 1;
    double value = 0;
    const onepass_tensor input = {&x, ONEPASS_F32, 2, shape, none}, target = {&y, ONEPASS_I64, 1, shape, none};
    const onepass_tensor v = {&value, ONEPASS_F64, 0, NULL, NULL};
    onepass_call call = {.size = sizeof call, .loss = "cross_entropy", .operand = {&input, &target}, .value = &v};
    CHECK_OK(onepass_run(&call), "2^31 + 5000 classes");
    CHECK(is_within(ONEPASS_F32, value, log((double)classes), log((double)classes), 4, 0),
          "2^31 + 5000 classes: expected %.9g, got %.9g", log((double)classes), value);
}

/* A z_loss so small that it shows beside large logits alone. Only the mean is asked for: other outputs need the
 * logarithm of the sum by themselves. */
static void test_small_z_loss(void) {
    float x[2][3] = {{0x1p20F, 0x1p20F - 1, 0}, {0, 0x1p20F - 1, 0x1p20F}};
    int64_t y[] = {0, 1};
    const int64_t shape[] = {2, 3};
    double value = 0;
    const onepass_tensor input = {x, ONEPASS_F32, 2, shape, NULL}, target = {y, ONEPASS_I64, 1, shape, NULL};
    const onepass_tensor v = {&value, ONEPASS_F64, 0, NULL, NULL};
    onepass_call call = {.size = sizeof call, .loss = "cross_entropy", .operand = {&input, &target}, .value = &v};
    call.parameter_count = 3;
    call.parameter[0] = -100;
    call.parameter[2] = 0x1p-60;
    const double above = log1p(exp(-1)), lse = 0x1p20 + above, expected = above + 0.5 + 0x1p-60 * lse * lse;
    CHECK_OK(onepass_run(&call), "a small z_loss");
    CHECK(is_within(ONEPASS_F32, value, expected, expected, 4, 0), "a small z_loss: expected %.9g, got %.9g", expected,
          value);
}

int main(void) {
    for (int i = 0; i < 2; i++) {
        const int32_t dtype = computes[i];
        for (int k = 0; k < SOFTMAXES; k++) {
            test_nan_and_infinity(dtype, softmaxes[k]);
            test_minus_infinity(dtype, softmaxes[k]);
            test_sizes_of_logits(dtype, softmaxes[k]);
        }
        test_no_power(dtype);
        test_powers(dtype);
        test_smoothing_at_infinity(dtype);
        test_all_ignored(dtype);
        test_nothing(dtype);
        test_one_class(dtype);
        test_weights(dtype);
        test_predicted(dtype);
        test_bounds(dtype);
        test_offsets(dtype);
        test_temperatures(dtype);
    }
    test_large_doubles();
    test_small_z_loss();
    test_long_means();
    test_many_labels();
    test_short_functions();
    test_skip_if_one();
    test_rounding_modes();
    test_many_elements();
    if (!check_quick("2^31 classes")) {
        test_many_classes();
    }
    return check_finish();
}
