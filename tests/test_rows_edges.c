/*
 * Losses over rows at their edges: NaN and infinities, powers of probabilities that are nearly 0 or 1, rows that take
 * no part, no rows, one class and none, weights that are 0, labels that are no class. What is expected is written down
 * here, or comes from the oracle. Sizes are test_rows_sizes.c's.
 */
#include "row_questions.h"

/* ----------------------------------------------------- NaN and infinities -- */

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
    /* In the first of 70 rows: those that are computed after it have what they have without it. */
    for (int kind = 0; kind < 2; kind++) {
        const int64_t label[70] = {0};
        for (int k = 0; k < 280; k++) {
            input[k] = k % 4;
        }
        input[0] = bad[kind];
        question q = {loss, dtype, ONEPASS_SUM, .rows = 70, .classes = 4, .input = input, .label = label};
        ask(&q);
        for (int k = 4; k < 280; k++) {
            CHECK(isfinite(got.gradient[0][k]) && got.gradient[0][k] == got.gradient[0][4 + k % 4],
                  "%s: gradient %d behind a row of NaN: expected %g, got %g", loss, k, got.gradient[0][4 + k % 4],
                  got.gradient[0][k]);
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
    const bool is_bounded = isfinite(got.value[0]); /* as the oracle has it: such a label is given up */
    const bool is_generalized = strcmp(loss, "generalized_cross_entropy") == 0;
    double most = is_generalized ? 1 / 0.7 : is_bounded ? got.value[0] : sign * INFINITY;
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
    const double zero[6] = {0}, nan = NAN;
    for (int i = 0; onepass_row_loss_at(i); i++) {
        const char *loss = onepass_row_loss_at(i)->name;
        if (!row_loss_has_labels(loss)) {
            continue;
        }
        for (int32_t reduction = ONEPASS_MEAN; reduction <= ONEPASS_NONE; reduction++) {
            for (int hidden = 0; hidden < 2; hidden++) {
                question q = {loss,
                              dtype,
                              reduction,
                              .rows = 2,
                              .classes = 3,
                              .input = (double[]){NAN, 1, INFINITY, 2, 3, 4},
                              .label = hidden ? (int64_t[]){77, -3} : (int64_t[]){-100, -100},
                              .mask = hidden ? (unsigned char[]){0, 0} : NULL};
                ask(&q);
                CHECK(got.status == ONEPASS_OK, "%s: %s", loss, onepass_message());
                expect_numbers(loss, "gradient", got.gradient[0], zero, 6);
                expect_numbers(loss, "value", got.value, reduction == ONEPASS_MEAN ? &nan : zero,
                               reduction == ONEPASS_NONE ? 2 : 1);
                CHECK(got.predicted[0] == -1 && got.predicted[1] == -1, "%s: expected no class, got %lld", loss,
                      (long long)got.predicted[0]);
                CHECK(reduction != ONEPASS_MEAN || got.divided_by == 0, "%s: expected to be divided by 0, got %g", loss,
                      got.divided_by);
                if (strcmp(loss, "nll") != 0) {
                    expect_numbers(loss, "log_sum_exp", got.log_sum_exp, zero, 2);
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
                CHECK(strstr(onepass_message(), "there are 0 classes"), "%s of no classes: \"%s\" does not say so",
                      losses[i], onepass_message());
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

int main(void) {
    for (int i = 0; i < 2; i++) {
        const int32_t dtype = computes[i];
        for (int k = 0; label_loss_at(k); k++) {
            test_nan_and_infinity(dtype, label_loss_at(k));
            test_minus_infinity(dtype, label_loss_at(k));
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
    }
    return check_finish();
}
