/*
 * Losses over rows against the oracle: values within 4 units in the last place, also with a large common offset and of
 * confident rows; gradients within 4 of the sum of their terms' magnitudes, which in the plain case is that of the
 * gradient itself. And the same bits by every route: value and gradient together or apart, through a row's state, in
 * place, on any number of threads, with any strides.
 */
#include "check.h"
#include "cpu/threads.h"
#include "row_case.h"

#include <float.h>
#include <math.h>

/* --------------------------------------------------------------- bounds -- */

/* A unit in the last place of a type at a number. */
static double ulp(int32_t dtype, double number) {
    static const struct {
        int digits, least;
    } types[] = {
        [ONEPASS_F16] = {11, -13}, [ONEPASS_BF16] = {8, -125}, [ONEPASS_F32] = {24, -125}, [ONEPASS_F64] = {53, -1021}};
    int exponent;
    frexp(number, &exponent);
    exponent = number == 0 || exponent < types[dtype].least ? types[dtype].least : exponent;
    return ldexp(1, exponent - types[dtype].digits);
}

/* The largest errors of plain cases, in units of the compute type, for the record. */
static struct { double value, gradient; } worst[2];

/* Whether a result, in the type of its output, is within so many units of the compute type of `size`. Half a unit of
 * them is the last rounding's if the types are the same. */
static bool is_near(double got, int32_t type, double expected, double size, int32_t compute, double units) {
    if (isnan(expected) || isinf(expected)) {
        return isnan(expected) ? isnan(got) : got == expected;
    }
    const double unit = ulp(compute, size);
    const double error = (type == compute && type != ONEPASS_F64 ? units - 0.5 : units) * unit;
    double range[2] = {expected - error, expected + error};
    oracle_round(type, range, 2);
    return got >= range[0] && got <= range[1];
}

static double parameter(const row_case *c, const char *name, double otherwise) {
    const onepass_loss_info *info = onepass_loss_named(c->loss);
    for (int32_t k = 0; k < c->parameter_count; k++) {
        if (strcmp(info->parameter[k].name, name) == 0) {
            return c->parameter[k];
        }
    }
    return otherwise;
}

/* The units that a row is allowed: capped logits are rounded, and what that makes of an exponential grows with them. */
static double units_of(const prepared_rows *p, int64_t row) {
    const double softcap = parameter(&p->of, "softcap", 0), temperature = parameter(&p->of, "temperature", 1);
    double most = 0;
    for (int64_t c = 0; softcap != 0 && c < p->of.classes; c++) {
        most = fmax(most, fabs(softcap * tanh(p->question.input[row * p->of.classes + c] / softcap)) / temperature);
    }
    return 4 + 2 * most;
}

/* In double the factors of a gradient are rounded as the gradient is: half a unit for each that is there, and so are
 * the sum of the exponentials and the quotient by it. */
static double units_of_factors(const row_case *c) {
    const bool in_double = row_case_in_double(c);
    const bool divided = c->reduction == ONEPASS_MEAN || c->reduction == ONEPASS_BATCHMEAN;
    const int factors = (c->class_weight != 0) + (c->weight != 0) + 2 * divided +
                        (parameter(c, "temperature", 1) != 1) + (parameter(c, "label_smoothing", 0) != 0) +
                        !row_case_has_labels(c->loss);
    return (c->upstream ? 0.5 : 0) + (in_double ? 0.5 * (factors + 2) : 0);
}

/* What the loss's own arithmetic adds. */
static double units_of_loss(const prepared_rows *p, bool of_slope) {
    return row_case_in_double(&p->of) ? oracle_units_of_row(&p->question, of_slope) : 0;
}

static void record(double *largest, double got, double expected, int32_t type, int32_t compute) {
    const double units = fabs(got - expected) / ulp(compute, expected);
    if (type == compute && units > *largest) {
        *largest = units;
    }
}

/* The largest logit of so many classes from `first` on, in powers of two. */
static double largest_of(const prepared_rows *p, int64_t row, int64_t first, int64_t count) {
    double largest = -INFINITY;
    for (int64_t c = first; c < p->of.classes && c < first + count; c++) {
        largest = fmax(largest, p->question.input[row * p->of.classes + c]);
    }
    return largest / parameter(&p->of, "temperature", 1) * 1.4426950408889634;
}

/* Exponentials from 2^-127 (2^-1023) of their tile's largest down are 0, and so are tiles from 2^-1000 of the row's. */
static bool may_vanish(const prepared_rows *p, int64_t row, int64_t c, int32_t compute) {
    const double own = largest_of(p, row, c, 1),
                 of_tile = largest_of(p, row, c / ONEPASS_TILE * ONEPASS_TILE, ONEPASS_TILE);
    return own - of_tile < (compute == ONEPASS_F64 ? -1021 : -125) ||
           of_tile - largest_of(p, row, 0, p->of.classes) < -998;
}

/* 1 - tanh^2 is a factor that is right to 4 units of its own. */
static double units_of_cap(const row_case *c) {
    return parameter(c, "softcap", 0) != 0 ? 4 : 0;
}

/* ------------------------------------------------------------ the oracle -- */

typedef struct answers {
    double *value, *row_value, *row_size, *gradient[2], *gradient_size, *lse;
    int64_t *predicted;
    double divided_by;
} answers;

static answers ask_oracle(prepared_rows *p) {
    const size_t rows = (size_t)p->rows, all = rows * (size_t)p->of.classes;
    answers a = {.value = case_allocate(rows * sizeof(double) + 8),
                 .row_value = case_allocate(rows * sizeof(double)),
                 .row_size = case_allocate(rows * sizeof(double)),
                 .gradient = {case_allocate(all * sizeof(double)), NULL},
                 .gradient_size = case_allocate(all * sizeof(double)),
                 .lse = case_allocate(rows * sizeof(double)),
                 .predicted = case_allocate(rows * sizeof(int64_t))};
    oracle_rows q = p->question;
    if (p->of.target_gradient) {
        a.gradient[1] = case_allocate(all * sizeof(double));
    }
    q.value = a.value;
    q.row_value = a.row_value;
    q.row_value_size = a.row_size;
    q.gradient[0] = p->of.gradient ? a.gradient[0] : NULL;
    q.gradient[1] = a.gradient[1];
    q.gradient_size = p->of.gradient ? a.gradient_size : NULL;
    q.log_sum_exp = a.lse;
    q.predicted = a.predicted;
    q.divided_by = &a.divided_by;
    CHECK(oracle_answer_rows(&q) < 0, "%s: expected labels that are classes", p->of.loss);
    return a;
}

static void forget(answers *a) {
    free(a->value);
    free(a->row_value);
    free(a->row_size);
    free(a->gradient[0]);
    free(a->gradient[1]);
    free(a->gradient_size);
    free(a->lse);
    free(a->predicted);
}

/* -------------------------------------------------------------- results -- */

static void check_rows_values(const prepared_rows *p, const answers *a, int32_t compute, const char *what) {
    for (int64_t row = 0; row < p->rows; row++) {
        const double got = row_number(&p->value, row, 0);
        if (strcmp(p->of.group, "sizes") == 0) {
            record(&worst[compute == ONEPASS_F64].value, got, a->row_value[row], p->of.value, compute);
        }
        const double units = units_of(p, row) + units_of_loss(p, false);
        CHECK(is_near(got, p->of.value, a->row_value[row], a->row_size[row], compute, units),
              "%s: row %lld: expected %.17g, got %.17g, %.2f units off", what, (long long)row, a->row_value[row], got,
              fabs(got - a->row_value[row]) / ulp(compute, a->row_size[row]));
    }
}

/* A sum's terms are rounded, and added in the compute type eight at a time. */
static void check_reduced_value(const prepared_rows *p, const answers *a, int32_t compute, const char *what) {
    double size = 0, units = 4;
    for (int64_t row = 0; row < p->rows; row++) {
        size += a->row_size[row];
        units = fmax(units, units_of(p, row) + units_of_loss(p, false));
    }
    size = p->of.reduction == ONEPASS_SUM ? size : size / fabs(a->divided_by);
    const double got = row_number(&p->value, 0, 0);
    CHECK(is_near(got, p->of.value, *a->value, size, compute, units + 2), "%s: expected %.17g, got %.17g", what,
          *a->value, got);
}

static void check_gradients(const prepared_rows *p, const answers *a, int32_t compute, const char *what) {
    for (int64_t row = 0; row < p->rows; row++) {
        const double units =
            units_of(p, row) + units_of_factors(&p->of) + units_of_cap(&p->of) + units_of_loss(p, true);
        for (int64_t c = 0; c < p->of.classes; c++) {
            const int64_t at = row * p->of.classes + c;
            const double expected = a->gradient[0][at], size = a->gradient_size[at];
            const double got = row_number(&p->gradient[0], row, c);
            const bool holds = is_near(got, p->of.gradient, expected, size, compute, units) ||
                               (got == 0 && may_vanish(p, row, c, compute));
            if (strcmp(p->of.group, "sizes") == 0 && row_case_has_labels(p->of.loss) && got != 0) {
                record(&worst[compute == ONEPASS_F64].gradient, got, expected, p->of.gradient, compute);
            }
            if (!holds) {
                CHECK(false, "%s: row %lld, class %lld: expected gradient %.17g, got %.17g, %.2f units off", what,
                      (long long)row, (long long)c, expected, got, fabs(got - expected) / ulp(compute, size));
                return;
            }
        }
    }
    CHECK(true, "%s", what);
}

/* What exponentials that are 0 would have added to the logarithm of a sum of 1 and more, times weights up to 4. */
static double vanished(const prepared_rows *p, int32_t compute) {
    return 4 * (double)p->of.classes * (compute == ONEPASS_F64 ? 0x1p-1022 : 0x1p-126);
}

static void check_target_gradients(const prepared_rows *p, const answers *a, int32_t compute, const char *what) {
    for (int64_t at = 0; at < p->rows * p->of.classes; at++) {
        const int64_t row = at / p->of.classes;
        const double got = row_number(&p->gradient[1], row, at % p->of.classes), expected = a->gradient[1][at];
        const double units = units_of(p, row) + units_of_factors(&p->of);
        if (!is_near(got, p->of.target_gradient, expected, expected, compute, units) &&
            !(fabs(got - expected) < vanished(p, compute))) {
            CHECK(false, "%s: element %lld: expected gradient of the target %.17g, got %.17g", what, (long long)at,
                  expected, got);
            return;
        }
    }
    CHECK(true, "%s", what);
}

static double largest_logit(const prepared_rows *p, int64_t row) {
    const double softcap = parameter(&p->of, "softcap", 0);
    double most = -INFINITY;
    for (int64_t c = 0; c < p->of.classes; c++) {
        most = fmax(most, p->question.input[row * p->of.classes + c]);
    }
    most = softcap != 0 ? softcap * tanh(most / softcap) : most;
    return most / parameter(&p->of, "temperature", 1);
}

static void check_row_outputs(const prepared_rows *p, const answers *a, int32_t compute, const char *what) {
    for (int64_t row = 0; p->of.log_sum_exp && row < p->rows; row++) {
        const double got = row_number(&p->log_sum_exp, row, 0), above = a->lse[row] - largest_logit(p, row);
        const double size = fmax(fabs(a->lse[row]), isfinite(above) ? fmax(above, 1) : 0);
        CHECK(is_near(got, p->of.log_sum_exp, a->lse[row], size, compute, units_of(p, row)),
              "%s: row %lld: expected log_sum_exp %.17g, got %.17g", what, (long long)row, a->lse[row], got);
    }
    for (int64_t row = 0; p->of.predicted && row < p->rows; row++) {
        const double got = row_number(&p->predicted, row, 0);
        CHECK(got == (double)a->predicted[row], "%s: row %lld: expected class %lld predicted, got %g", what,
              (long long)row, (long long)a->predicted[row], got);
    }
    if (p->of.divided_by) {
        const double got = row_number(&p->divided_by, 0, 0);
        CHECK(is_near(got, ONEPASS_F64, a->divided_by, a->divided_by, compute, 4),
              "%s: expected to be divided by %.17g, got %.17g", what, a->divided_by, got);
    }
}

static void check_case(const row_case *c) {
    char what[512];
    const int32_t compute = row_case_in_double(c) ? ONEPASS_F64 : ONEPASS_F32;
    prepared_rows *p = row_case_prepare(c);
    row_case_describe(c, what, sizeof what);
    answers a = ask_oracle(p);
    row_case_poison(p);
    if (CHECK_OK(onepass_run(&p->call), what)) {
        CHECK(row_case_kept_fences(p), "%s: expected nothing but the outputs' elements to be written", what);
        if (c->value && c->reduction == ONEPASS_NONE) {
            check_rows_values(p, &a, compute, what);
        } else if (c->value) {
            check_reduced_value(p, &a, compute, what);
        }
        if (c->gradient) {
            check_gradients(p, &a, compute, what);
        }
        if (c->target_gradient) {
            check_target_gradients(p, &a, compute, what);
        }
        check_row_outputs(p, &a, compute, what);
    }
    forget(&a);
    row_case_free(p);
}

/* --------------------------------------------------------------- routes -- */

static const uint64_t hash_begin = UINT64_C(0xcbf29ce484222325);

/* Runs a call with poisoned outputs and hashes all outputs of the case, those that are not asked for as poison. */
static uint64_t run_and_hash(prepared_rows *p, const onepass_call *call, const char *what) {
    row_case_poison(p);
    CHECK_OK(onepass_run(call), what);
    return row_case_hash(hash_begin, p);
}

/* What the outputs are together they must be one by one: the bytes of one output, the others being left out. */
static void check_alone(prepared_rows *p, const onepass_call *alone, const case_tensor *output, const char *what) {
    unsigned char *together = case_allocate(output->bytes);
    run_and_hash(p, &p->call, what);
    memcpy(together, output->memory, output->bytes);
    run_and_hash(p, alone, what);
    CHECK(memcmp(together, output->memory, output->bytes) == 0, "%s: expected the bits of a call that asks for all",
          what);
    free(together);
}

/* Backward from a row's state: the gradients of the call that left it. */
static void check_state(prepared_rows *p, const char *what) {
    const case_tensor *gradient = &p->gradient[0], *state = &p->state;
    unsigned char *together = case_allocate(gradient->bytes), *left = case_allocate(state->bytes);
    run_and_hash(p, &p->call, what);
    memcpy(together, gradient->memory, gradient->bytes);
    memcpy(left, state->memory, state->bytes);
    onepass_call backward = p->call;
    backward.value = backward.log_sum_exp = backward.predicted = backward.divided_by = NULL;
    row_case_poison(p);
    for (int64_t row = 0; row < p->rows; row++) { /* of rows that take no part it is not looked at */
        const bool is_out =
            (p->of.mask && !p->question.mask[row]) ||
            (p->of.ignored && (double)p->question.label[row] == parameter(&p->of, "ignore_index", -100));
        unsigned char *of_row = (unsigned char *)row_address(state, row, 0) - state->memory + left;
        if (is_out) {
            memset(of_row, 0x3c, ONEPASS_ROW_STATE * sizeof(double));
        }
    }
    memcpy(state->memory, left, state->bytes);
    CHECK_OK(onepass_run(&backward), what);
    CHECK(memcmp(together, gradient->memory, gradient->bytes) == 0,
          "%s: expected the gradient from the row's state to have the bits of one call", what);
    CHECK(memcmp(left, state->memory, state->bytes) == 0, "%s: expected the row's state, an input, to stay", what);
    free(together);
    free(left);
}

static void check_routes(const row_case *given) {
    char what[512];
    row_case c = *given;
    const bool has_softmax = strcmp(c.loss, "nll") != 0;
    c.value = c.value ? c.value : ONEPASS_F32;
    c.gradient = c.gradient ? c.gradient : c.input;
    c.in_place = false;
    c.state = has_softmax;
    prepared_rows *p = row_case_prepare(&c);
    row_case_describe(&c, what, sizeof what);
    const uint64_t expected = run_and_hash(p, &p->call, what);
    for (int32_t threads = 1; threads <= 4; threads++) {
        p->call.threads = threads;
        CHECK_BITS(expected, run_and_hash(p, &p->call, what), what);
    }
    p->call.threads = c.threads;
    onepass_call alone = p->call;
    alone.gradient[0] = alone.gradient[1] = alone.log_sum_exp = alone.predicted = alone.row_state = NULL;
    check_alone(p, &alone, &p->value, what);
    alone = p->call;
    alone.value = alone.log_sum_exp = alone.predicted = alone.row_state = alone.divided_by = NULL;
    check_alone(p, &alone, &p->gradient[0], what);
    if (has_softmax) {
        check_state(p, what);
    }
    row_case_free(p);
    if (c.layout > ROWS_DENSE && c.layout != ROWS_REPEATED && c.layout != ROWS_EVEN &&
        c.reduction != ONEPASS_BATCHMEAN) {
        c.layout = ROWS_DENSE;
        p = row_case_prepare(&c);
        CHECK_BITS(expected, run_and_hash(p, &p->call, what), what);
        row_case_free(p);
    }
}

/* A gradient over its operand. */
static void check_in_place(const row_case *given) {
    char what[512];
    row_case c = *given;
    c.gradient = c.input;
    c.in_place = false;
    row_case_describe(&c, what, sizeof what);
    prepared_rows *apart = row_case_prepare(&c);
    c.in_place = true;
    prepared_rows *over = row_case_prepare(&c);
    CHECK_BITS(run_and_hash(apart, &apart->call, what), run_and_hash(over, &over->call, what), what);
    CHECK(row_case_kept_fences(over), "%s: in place: expected nothing but elements to be written", what);
    row_case_free(apart);
    row_case_free(over);
}

/* --------------------------------------------------------------- slopes -- */

/* The oracle's own gradients against differences of its values. */
static void check_slopes(const row_case *given, int which) {
    const double step = 1e-5;
    char what[512];
    row_case c = *given;
    c.target_gradient = row_case_has_labels(c.loss) ? 0 : ONEPASS_F64;
    row_case_describe(&c, what, sizeof what);
    prepared_rows *p = row_case_prepare(&c);
    answers a = ask_oracle(p);
    double *number = (double *)(uintptr_t)(which ? p->question.probability : p->question.input);
    for (int64_t at = 0; at < p->rows * c.classes; at++) {
        double value[2];
        const double kept = number[at];
        for (int side = 0; side < 2; side++) {
            oracle_rows q = p->question;
            number[at] = side ? kept + step : kept - step;
            q.value = &value[side];
            oracle_answer_rows(&q);
        }
        number[at] = kept;
        const double slope = (value[1] - value[0]) / (2 * step);
        CHECK(fabs(slope - a.gradient[which][at]) < 1e-7, "%s: element %lld of operand %d: expected slope %g, got %g",
              what, (long long)at, which, slope, a.gradient[which][at]);
    }
    forget(&a);
    row_case_free(p);
}

static void test_slopes(void) {
    for (int32_t i = 0; onepass_row_loss_at(i); i++) {
        for (int k = 0; k < 3; k++) {
            row_case c = {.loss = onepass_row_loss_at(i)->name,
                          .input = ONEPASS_F64,
                          .value = ONEPASS_F64,
                          .gradient = ONEPASS_F64,
                          .reduction = k ? ONEPASS_MEAN : ONEPASS_SUM,
                          .batch = 4,
                          .classes = 5,
                          .class_weight = k ? ONEPASS_F64 : 0,
                          .weight = k == 2 ? ONEPASS_F64 : 0,
                          .seed = 3};
            const onepass_loss_info *info = onepass_row_loss_at(i);
            c.target = row_case_has_labels(c.loss) ? ONEPASS_I64 : ONEPASS_F64;
            static const double other[] = {0.2, 0.3, 5, 2};
            const int32_t first = row_case_has_labels(c.loss) ? 1 : 0;
            for (int32_t j = 0; k && j < info->parameter_count; j++) {
                c.parameter[j] = j < first                                             ? -100
                                 : strcmp(info->parameter[j].name, "softcap") == 0     ? other[2]
                                 : strcmp(info->parameter[j].name, "temperature") == 0 ? other[3]
                                                                                       : other[j - first];
                c.parameter_count = j + 1;
            }
            check_slopes(&c, 0);
            if (!row_case_has_labels(c.loss)) {
                check_slopes(&c, 1);
            }
        }
    }
}

/* ----------------------------------------------------------------- main -- */

int main(void) {
    size_t count;
    const row_case *cases = row_case_list(&count);
    const int quick = check_quick("classes beyond 2500, and routes of most cases");
    onepass_cpu_cores = 4; /* the most threads that a case has */
    test_slopes();
    const size_t one_of = check_one_of(5);
    size_t taken = 0;
    for (size_t i = 0; i < count; i++) {
        const row_case *c = &cases[i];
        const bool is_large = c->classes > 2500 || row_case_rows(c) > 1000;
        if ((quick && is_large) || !check_takes(i, one_of)) {
            continue;
        }
        taken++;
        check_case(c);
        const bool is_shared = row_case_rows(c) < 4; /* by the tiles of a row, if there are more threads */
        if ((!is_large || is_shared) && (strcmp(c->group, "sizes") != 0 || taken % 4 == 0) &&
            (!quick || taken % 8 == 0)) {
            check_routes(c);
        }
        if (strcmp(c->group, "layouts") == 0 && c->layout != ROWS_REPEATED && c->layout != ROWS_EVEN) {
            check_in_place(c);
        }
    }
    printf("%zu cases; the largest errors in units of the last place: float: value %.2f, gradient %.2f; double: %.2f, "
           "%.2f\n",
           count, worst[0].value, worst[0].gradient, worst[1].value, worst[1].gradient);
    return check_finish();
}
