/*
 * The accumulator of losses over rows, whose elements are rows: whatever the slices, their order and the number of
 * partial accumulators, value, gradients and the outputs of each row are bit-identical to those of one call; and that
 * call agrees with the formula.
 */
#include "accumulator_bytes.h"
#include "cases.h"
#include "check.h"
#include "oracle.h"

#include <math.h>

/* ------------------------------------------------------------ the whole -- */

enum {
    MOST_ROWS = 7 * ONEPASS_TILE + 100, /* a broken tree */
    MOST_CLASSES = 1100,                /* more than a tile of them */
    IGNORED = 3,                        /* a class whose rows take no part */
    PARAMETERS = 4                      /* that a call gives, by the order of cross_entropy */
};

typedef struct whole {
    const char *loss;
    int32_t reduction, dtype, label_dtype;
    int weighted, masked, class_weighted;
    int64_t rows, classes;
    double divisor;

    char *logits, *labels, *gradient, *expected_gradient, *lse, *expected_lse;
    float *weight, *class_weight;
    unsigned char *mask;
    int64_t *predicted, *expected_predicted;
    double *state, *expected_state;
    double expected, expected_divided_by; /* one call's, in f64 */
} whole;

static void *allocate(size_t count, size_t size) {
    void *memory = malloc(count > 0 ? count * size : 1);
    if (!memory) {
        perror("malloc");
        exit(1);
    }
    memset(memory, 0xa5, count * size);
    return memory;
}

static size_t label_size(const whole *w) {
    return onepass_dtype_size(w->label_dtype);
}

static int64_t label_of(const whole *w, int64_t row) {
    const char *at = w->labels + (size_t)row * label_size(w);
    return w->label_dtype == ONEPASS_I64   ? *(const int64_t *)(const void *)at
           : w->label_dtype == ONEPASS_I32 ? *(const int32_t *)(const void *)at
                                           : *(const unsigned char *)at;
}

static void set_label(const whole *w, int64_t row, int64_t label) {
    char *at = w->labels + (size_t)row * label_size(w);
    if (w->label_dtype == ONEPASS_I64)
        *(int64_t *)(void *)at = label;
    else if (w->label_dtype == ONEPASS_I32)
        *(int32_t *)(void *)at = (int32_t)label;
    else
        *(unsigned char *)at = (unsigned char)label;
}

static int is_cross_entropy(const whole *w) {
    return strcmp(w->loss, "cross_entropy") == 0;
}

static onepass_call call_of(const whole *w) {
    onepass_call call = {.size = sizeof call, .loss = w->loss, .reduction = w->reduction, .divisor = w->divisor};
    call.parameter_count = is_cross_entropy(w) ? PARAMETERS : 1;
    call.parameter[0] = IGNORED;
    if (is_cross_entropy(w)) {
        call.parameter[1] = 0.125; /* label_smoothing */
        call.parameter[2] = 0.01;  /* z_loss */
        call.parameter[3] = 30;    /* softcap */
    }
    return call;
}

/* The tensors of rows first to last - 1. */
typedef struct slice {
    int64_t shape[2], state_shape[2], classes;
    onepass_tensor logits, labels, class_weight, weight, mask, gradient, lse, predicted, state;
    onepass_call call;
} slice;

typedef struct outputs {
    char *gradient, *lse;
    int64_t *predicted;
    double *state;
} outputs;

static void cut_slice(const whole *w, int64_t first, int64_t last, const outputs *outputs, slice *s) {
    const size_t at = (size_t)first, size = oracle_size(w->dtype), row = (size_t)w->classes * size;
    *s = (slice){.shape = {last - first, w->classes},
                 .state_shape = {last - first, ONEPASS_ROW_STATE},
                 .classes = w->classes,
                 .call = call_of(w)};
    s->logits = (onepass_tensor){w->logits + at * row, w->dtype, 2, s->shape, NULL};
    s->labels = (onepass_tensor){w->labels + at * label_size(w), w->label_dtype, 1, s->shape, NULL};
    s->class_weight = (onepass_tensor){w->class_weight, ONEPASS_F32, 1, &s->classes, NULL};
    s->weight = (onepass_tensor){w->weight + at, ONEPASS_F32, 1, s->shape, NULL};
    s->mask = (onepass_tensor){w->mask + at, ONEPASS_BOOL, 1, s->shape, NULL};
    s->call.operand[0] = &s->logits;
    s->call.operand[1] = &s->labels;
    s->call.operand[2] = w->class_weighted ? &s->class_weight : NULL;
    s->call.weight = w->weighted ? &s->weight : NULL;
    s->call.mask = w->masked ? &s->mask : NULL;
    if (outputs->gradient) {
        s->gradient = (onepass_tensor){outputs->gradient + at * row, w->dtype, 2, s->shape, NULL};
        s->call.gradient[0] = &s->gradient;
    }
    if (outputs->predicted) {
        s->predicted = (onepass_tensor){outputs->predicted + at, ONEPASS_I64, 1, s->shape, NULL};
        s->call.predicted = &s->predicted;
    }
    if (outputs->lse && strcmp(w->loss, "nll") != 0) {
        s->lse = (onepass_tensor){outputs->lse + at * size, w->dtype, 1, s->shape, NULL};
        s->state = (onepass_tensor){outputs->state + at * ONEPASS_ROW_STATE, ONEPASS_F64, 2, s->state_shape, NULL};
        s->call.log_sum_exp = &s->lse;
        s->call.row_state = &s->state;
    }
}

/* ---------------------------------------------------------- the formula -- */

static int takes_part(const whole *w, int64_t row) {
    return label_of(w, row) != IGNORED && (!w->masked || w->mask[row]);
}

static double class_weight_of(const whole *w, int64_t c) {
    return w->class_weighted ? (double)w->class_weight[c] : 1;
}

/* What a row counts for. */
static double share_of(const whole *w, int64_t row) {
    return takes_part(w, row) ? class_weight_of(w, label_of(w, row)) * (w->weighted ? (double)w->weight[row] : 1) : 0;
}

static double logit_of(const whole *w, int64_t row, int64_t c) {
    const double z = oracle_load(w->dtype, w->logits + (size_t)(row * w->classes + c) * oracle_size(w->dtype));
    return is_cross_entropy(w) ? 30 * tanh(z / 30) : z;
}

static double log_sum_exp_of(const whole *w, int64_t row) {
    double largest = logit_of(w, row, 0);
    for (int64_t c = 1; c < w->classes; c++)
        largest = fmax(largest, logit_of(w, row, c));
    double sum = exp(logit_of(w, row, 0) - largest);
    for (int64_t c = 1; c < w->classes; c++)
        sum += exp(logit_of(w, row, c) - largest);
    return largest + log(sum);
}

static double loss_of(const whole *w, int64_t row) {
    const int64_t y = label_of(w, row);
    double smooth = 0;
    if (!takes_part(w, row))
        return 0;
    const double weight = w->weighted ? (double)w->weight[row] : 1;
    if (strcmp(w->loss, "nll") == 0)
        return -class_weight_of(w, y) * logit_of(w, row, y) * weight;
    const double lse = log_sum_exp_of(w, row), nll = class_weight_of(w, y) * (lse - logit_of(w, row, y));
    if (!is_cross_entropy(w))
        return -nll * weight; /* log_prob */
    for (int64_t c = 0; c < w->classes; c++)
        smooth += class_weight_of(w, c) * (lse - logit_of(w, row, c));
    return weight * (0.875 * nll + 0.125 / (double)w->classes * smooth + 0.01 * lse * lse);
}

static void check_formula(const whole *w) {
    double sum = 0, size = 0, count = 0;
    for (int64_t row = 0; row < w->rows; row++) {
        const double loss = loss_of(w, row);
        sum += loss;
        size += fabs(loss);
        count += share_of(w, row);
    }
    const double divisor = w->reduction == ONEPASS_SUM ? 1 : w->divisor != 0 ? w->divisor : count;
    const double expected = sum / divisor, bound = 1e-6 * size / divisor;
    if (w->reduction == ONEPASS_MEAN)
        CHECK(fabs(w->expected_divided_by - divisor) <= 1e-6 * divisor,
              "%s: expected to be divided by %.17g, got %.17g", w->loss, divisor, w->expected_divided_by);
    if (divisor == 0)
        CHECK(isnan(w->expected), "%s: expected NaN of no rows that count, got %g", w->loss, w->expected);
    else
        CHECK(fabs(w->expected - expected) <= bound, "%s: expected %.17g by the formula, got %.17g", w->loss, expected,
              w->expected);
}

/* ---------------------------------------------------------- making one -- */

static void fill(whole *w) {
    uint64_t state = 5 + (uint64_t)(w->rows * 3 + w->classes);
    for (int64_t i = 0; i < w->rows * w->classes; i++)
        oracle_store_bits(w->dtype, w->logits + (size_t)i * oracle_size(w->dtype),
                          random_element(&state, DATA_NORMAL, w->dtype, 0));
    for (int64_t row = 0; row < w->rows; row++) {
        set_label(w, row, random_below(&state, w->classes < 200 ? w->classes : 200));
        w->weight[row] = 0.25F * (float)(1 + random_below(&state, 9));
        w->mask[row] = random_below(&state, 4) != 0;
    }
    for (int64_t c = 0; c < w->classes; c++)
        w->class_weight[c] = 0.125F * (float)(1 + random_below(&state, 20));
}

/* One call over the whole, with all outputs. */
static void run_whole(whole *w) {
    const outputs all = {w->expected_gradient, w->expected_lse, w->expected_predicted, w->expected_state};
    const onepass_tensor value = {&w->expected, ONEPASS_F64, 0, NULL, NULL};
    const onepass_tensor divided_by = {&w->expected_divided_by, ONEPASS_F64, 0, NULL, NULL};
    slice s;
    cut_slice(w, 0, w->rows, &all, &s);
    s.call.value = &value;
    s.call.divided_by = w->reduction == ONEPASS_MEAN ? &divided_by : NULL;
    CHECK_OK(onepass_run(&s.call), "the whole in one call");
    check_formula(w);
}

static whole make_whole(const whole *like) {
    whole w = *like;
    const size_t rows = (size_t)w.rows, elements = rows * (size_t)w.classes, size = oracle_size(w.dtype);
    w.logits = allocate(elements, size);
    w.gradient = allocate(elements, size);
    w.expected_gradient = allocate(elements, size);
    w.lse = allocate(rows, size);
    w.expected_lse = allocate(rows, size);
    w.labels = allocate(rows, label_size(&w));
    w.weight = allocate(rows, sizeof *w.weight);
    w.class_weight = allocate((size_t)w.classes, sizeof *w.class_weight);
    w.mask = allocate(rows, 1);
    w.predicted = allocate(rows, sizeof *w.predicted);
    w.expected_predicted = allocate(rows, sizeof *w.predicted);
    w.state = allocate(rows * ONEPASS_ROW_STATE, sizeof *w.state);
    w.expected_state = allocate(rows * ONEPASS_ROW_STATE, sizeof *w.state);
    fill(&w);
    run_whole(&w);
    return w;
}

static void free_whole(whole *w) {
    void *const all[] = {w->logits,        w->gradient,     w->expected_gradient,
                         w->lse,           w->expected_lse, w->labels,
                         w->weight,        w->class_weight, w->mask,
                         w->predicted,     w->state,        w->expected_predicted,
                         w->expected_state};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* --------------------------------------------------------------- slices -- */

static onepass_accumulator *begin(const whole *w) {
    const onepass_call call = call_of(w);
    onepass_accumulator *accumulator = NULL;
    CHECK_OK(onepass_accumulator_begin(&accumulator, &call, w->rows), "begin");
    return accumulator;
}

static outputs outputs_of(const whole *w) {
    const int has_gradient = w->reduction == ONEPASS_SUM || w->divisor != 0;
    const outputs all = {has_gradient ? w->gradient : NULL, w->lse, w->predicted, w->state};
    return all;
}

static onepass_status add_slice(onepass_accumulator *accumulator, const whole *w, int64_t first, int64_t last) {
    const outputs own = outputs_of(w);
    slice s;
    cut_slice(w, first, last, &own, &s);
    return onepass_accumulator_add(accumulator, &s.call, first);
}

static void check_whole(const onepass_accumulator *accumulator, const whole *w) {
    const size_t rows = (size_t)w->rows, size = oracle_size(w->dtype);
    double value = -1;
    const onepass_tensor v = {&value, ONEPASS_F64, 0, NULL, NULL};
    CHECK_OK(onepass_accumulator_finish(accumulator, &v), "finish");
    CHECK_BITS(oracle_double_bits(w->expected), oracle_double_bits(value), w->loss);
    if (outputs_of(w).gradient)
        CHECK(memcmp(w->expected_gradient, w->gradient, rows * (size_t)w->classes * size) == 0,
              "%s: expected the gradient of one call", w->loss);
    CHECK(memcmp(w->expected_predicted, w->predicted, rows * sizeof *w->predicted) == 0,
          "%s: expected the predictions of one call", w->loss);
    if (strcmp(w->loss, "nll") == 0)
        return;
    CHECK(memcmp(w->expected_lse, w->lse, rows * size) == 0, "%s: expected log_sum_exp of one call", w->loss);
    for (int64_t row = 0; row < w->rows; row++)
        if (takes_part(w, row))
            CHECK(memcmp(w->expected_state + row * ONEPASS_ROW_STATE, w->state + row * ONEPASS_ROW_STATE,
                         ONEPASS_ROW_STATE * sizeof *w->state) == 0,
                  "%s: expected the state that one call has for row %lld", w->loss, (long long)row);
}

/* Cuts at random tiles or rows, in random order, into up to three accumulators, which travel as bytes. */
static void random_slicing(const whole *w, uint64_t *state) {
    static const int64_t steps[] = {ONEPASS_TILE, 300, 40}; /* several cuts in a tile */
    enum {
        MOST = MOST_ROWS / 40 + 1,
        PARTS = 3
    };
    int64_t cut[MOST + 1] = {0};
    int slices = 0, order[MOST];
    const int64_t step = steps[random_below(state, 3)];
    for (; cut[slices] < w->rows; slices++) {
        const int64_t torn = step < ONEPASS_TILE ? random_below(state, step) : 0;
        const int64_t next = cut[slices] + step * (1 + random_below(state, 4)) - torn;
        cut[slices + 1] = next < w->rows && slices < MOST - 1 ? next : w->rows;
    }
    for (int i = 0; i < slices; i++) {
        const int other = (int)random_below(state, i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    onepass_accumulator *part[PARTS];
    for (int i = 0; i < PARTS; i++)
        part[i] = begin(w);
    for (int i = 0; i < slices; i++)
        CHECK_OK(add_slice(part[random_below(state, PARTS)], w, cut[order[i]], cut[order[i] + 1]), "add");
    const int into = (int)random_below(state, PARTS);
    for (int i = 0; i < PARTS; i++)
        part[i] = through_bytes(part[i]);
    for (int i = 1; i < PARTS; i++)
        CHECK_OK(onepass_accumulator_merge(part[into], part[(into + i) % PARTS]), "merge");
    check_whole(part[into], w);
    for (int i = 0; i < PARTS; i++)
        onepass_accumulator_destroy(part[i]);
}

/* --------------------------------------------------------------- tests -- */

static void test_slicing(void) {
    static const whole cases[] = {
        {.loss = "cross_entropy", ONEPASS_MEAN, ONEPASS_F32, ONEPASS_I64, 0, 0, 0, MOST_ROWS, 7, 0},
        {.loss = "cross_entropy", ONEPASS_MEAN, ONEPASS_F32, ONEPASS_I32, 1, 1, 1, MOST_ROWS, 10, 0},
        {.loss = "cross_entropy", ONEPASS_MEAN, ONEPASS_F64, ONEPASS_U8, 0, 0, 1, MOST_ROWS, 5, 1234.5},
        {.loss = "cross_entropy",
         ONEPASS_SUM,
         ONEPASS_BF16,
         ONEPASS_I64,
         1,
         0,
         0,
         2 * ONEPASS_TILE + 1,
         MOST_CLASSES,
         0},
        {.loss = "cross_entropy", ONEPASS_MEAN, ONEPASS_F32, ONEPASS_I64, 0, 1, 0, 1, 4, 0},
        {.loss = "cross_entropy", ONEPASS_MEAN, ONEPASS_F32, ONEPASS_I64, 0, 0, 0, 0, 4, 0}, /* no rows: NaN */
        {.loss = "nll", ONEPASS_MEAN, ONEPASS_F32, ONEPASS_I64, 1, 0, 1, MOST_ROWS, 6, 0},
        {.loss = "nll", ONEPASS_SUM, ONEPASS_F16, ONEPASS_U8, 0, 1, 0, MOST_ROWS, 6, 0},
        {.loss = "log_prob", ONEPASS_MEAN, ONEPASS_F32, ONEPASS_I64, 0, 1, 1, MOST_ROWS, 9, 17},
    };
    const int rounds = check_quick("three of four random slicings") ? 1 : 4;
    uint64_t state = 9;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        whole w = make_whole(&cases[i]);
        for (int round = 0; round < rounds; round++)
            random_slicing(&w, &state);
        free_whole(&w);
    }
}

/* Gradients of a mean need its divisor beforehand. nll of numbers that are all -1 sums what the rows count for. */
static void test_divisor_beforehand(void) {
    static const float minus_one = -1;
    static const int64_t everywhere[2] = {0, 0};
    const whole like = {.loss = "cross_entropy", ONEPASS_MEAN, ONEPASS_F32, ONEPASS_I64, 1, 1, 1, MOST_ROWS, 10, 0};
    const outputs none = {0};
    whole w = make_whole(&like);
    onepass_call call = {.size = sizeof call, .loss = "nll", .reduction = ONEPASS_SUM, .parameter_count = 1};
    call.parameter[0] = IGNORED;
    onepass_accumulator *counter = NULL;
    CHECK_OK(onepass_accumulator_begin(&counter, &call, w.rows), "begin");
    for (int64_t first = 0; first < w.rows; first += 2 * ONEPASS_TILE) {
        const int64_t last = w.rows - first < 2 * ONEPASS_TILE ? w.rows : first + 2 * ONEPASS_TILE;
        slice s;
        cut_slice(&w, first, last, &none, &s);
        s.logits.data = (void *)(uintptr_t)&minus_one;
        s.logits.strides = everywhere;
        s.call.loss = call.loss;
        s.call.reduction = call.reduction;
        s.call.parameter_count = 1;
        CHECK_OK(onepass_accumulator_add(counter, &s.call, first), "what the rows count for");
    }
    double sum = -1;
    const onepass_tensor value = {&sum, ONEPASS_F64, 0, NULL, NULL};
    CHECK_OK(onepass_accumulator_finish(counter, &value), "finish");
    CHECK_BITS(oracle_double_bits(w.expected_divided_by), oracle_double_bits(sum),
               "the sum of what the rows count for");
    onepass_accumulator_destroy(counter);

    uint64_t state = 11;
    w.divisor = sum; /* the results stay those of the call without it */
    random_slicing(&w, &state);
    free_whole(&w);
}

static void test_probabilities(void) {
    enum {
        ROWS = 3 * ONEPASS_TILE + 5,
        CLASSES = 6
    };
    static float z[ROWS * CLASSES], q[ROWS * CLASSES], gradient[2][2][ROWS * CLASSES];
    uint64_t state = 21;
    for (int i = 0; i < ROWS * CLASSES; i++) {
        oracle_store_bits(ONEPASS_F32, &z[i], random_element(&state, DATA_NORMAL, ONEPASS_F32, 0));
        q[i] = 0.01F * (float)random_below(&state, 30);
    }
    double value[2] = {-1, -2}, formula = 0;
    onepass_accumulator *accumulator = NULL;
    const onepass_call start = {.size = sizeof start, .loss = "cross_entropy_with_probabilities"};
    CHECK_OK(onepass_accumulator_begin(&accumulator, &start, ROWS), "begin");
    static const int64_t cuts[][2] = {{2 * ONEPASS_TILE, ROWS}, {0, 2 * ONEPASS_TILE}, {0, ROWS}};
    for (int i = 0; i < 3; i++) {
        const int64_t first = cuts[i][0], shape[2] = {cuts[i][1] - first, CLASSES};
        const int whole = i == 2;
        const onepass_tensor input = {z + first * CLASSES, ONEPASS_F32, 2, shape, NULL};
        const onepass_tensor target = {q + first * CLASSES, ONEPASS_F32, 2, shape, NULL};
        const onepass_tensor g = {gradient[whole][0] + first * CLASSES, ONEPASS_F32, 2, shape, NULL};
        const onepass_tensor h = {gradient[whole][1] + first * CLASSES, ONEPASS_F32, 2, shape, NULL};
        const onepass_tensor v = {&value[0], ONEPASS_F64, 0, NULL, NULL};
        onepass_call call = start;
        call.operand[0] = &input;
        call.operand[1] = &target;
        call.gradient[0] = &g;
        call.gradient[1] = &h;
        call.value = whole ? &v : NULL;
        CHECK_OK(whole ? onepass_run(&call) : onepass_accumulator_add(accumulator, &call, first), "probabilities");
    }
    const onepass_tensor v = {&value[1], ONEPASS_F64, 0, NULL, NULL};
    CHECK_OK(onepass_accumulator_finish(accumulator, &v), "finish");
    CHECK_BITS(oracle_double_bits(value[0]), oracle_double_bits(value[1]), "probabilities in slices");
    CHECK(memcmp(gradient[0], gradient[1], sizeof gradient[0]) == 0, "expected the gradients of one call");
    for (int row = 0; row < ROWS; row++) {
        double sum = 0;
        for (int c = 0; c < CLASSES; c++)
            sum += exp((double)z[row * CLASSES + c]);
        for (int c = 0; c < CLASSES; c++)
            formula += (double)q[row * CLASSES + c] * (log(sum) - (double)z[row * CLASSES + c]) / ROWS;
    }
    CHECK(fabs(formula - value[1]) < 1e-6 * formula, "expected %.17g by the formula, got %.17g", formula, value[1]);
    onepass_accumulator_destroy(accumulator);
}

/* ---------------------------------------------------------------- errors -- */

static void expect_words(onepass_status expected, onepass_status status, const char *words) {
    CHECK(status == expected, "expected %s, got %s", onepass_status_name(expected), onepass_status_name(status));
    CHECK(strstr(onepass_message(), words) != NULL, "expected \"%s\" in \"%s\"", words, onepass_message());
}

/* Nothing is written by a slice that is refused, not even by its good blocks. */
static void refuse_bad_label(onepass_accumulator *accumulator, whole *w) {
    const int64_t row = 4 * ONEPASS_TILE + 17;
    const outputs all = {NULL, w->lse, w->predicted, w->state};
    const size_t size = (size_t)w->rows * oracle_size(w->dtype);
    char words[64];
    slice s;
    set_label(w, row, 77);
    cut_slice(w, 2 * ONEPASS_TILE, 5 * ONEPASS_TILE, &all, &s);
    snprintf(words, sizeof words, "target 77 in row %lld", (long long)row);
    expect_words(ONEPASS_OUT_OF_BOUNDS, onepass_accumulator_add(accumulator, &s.call, 2 * ONEPASS_TILE), words);
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)w->lse[i] != 0xa5) {
            CHECK(0, "expected nothing written, got byte %zu of log_sum_exp", i);
            break;
        }
    set_label(w, row, IGNORED);
}

static void test_errors(void) {
    const whole like = {
        .loss = "cross_entropy", ONEPASS_MEAN, ONEPASS_F32, ONEPASS_I64, 0, 0, 0, 5 * ONEPASS_TILE, 8, 0};
    whole w = make_whole(&like);
    onepass_accumulator *accumulator = begin(&w), *other = NULL;
    const outputs gradient = {.gradient = w.gradient}, none = {0};
    double number = 3;
    const onepass_tensor scalar = {&number, ONEPASS_F64, 0, NULL, NULL};
    slice s;
    refuse_bad_label(accumulator, &w);
    run_whole(&w); /* a row less */
    cut_slice(&w, 0, 2 * ONEPASS_TILE, &gradient, &s);
    expect_words(ONEPASS_INVALID_ARGUMENT, onepass_accumulator_add(accumulator, &s.call, 0), "expected it as divisor");
    cut_slice(&w, 0, 2 * ONEPASS_TILE, &none, &s);
    s.call.divisor_tensor = &scalar;
    expect_words(ONEPASS_NOT_SUPPORTED, onepass_accumulator_add(accumulator, &s.call, 0), "divisor_tensor is set");
    expect_words(ONEPASS_NOT_SUPPORTED, onepass_accumulator_begin(&other, &s.call, 8), "divisor_tensor is set");
    s.call.divisor_tensor = NULL;
    s.call.divided_by = &scalar;
    expect_words(ONEPASS_NOT_SUPPORTED, onepass_accumulator_add(accumulator, &s.call, 0), "divided_by is set");
    CHECK_OK(add_slice(accumulator, &w, 0, 2 * ONEPASS_TILE), "tiles 0 and 1");

    whole narrow = w;
    narrow.classes = 4; /* the same memory, seen as rows of half the size */
    for (int64_t row = 0; row < w.rows; row++)
        set_label(&narrow, row, label_of(&w, row) % 4);
    cut_slice(&narrow, 2 * ONEPASS_TILE, w.rows, &none, &s);
    expect_words(ONEPASS_INVALID_SHAPE, onepass_accumulator_add(accumulator, &s.call, 2 * ONEPASS_TILE), "4 classes");
    other = begin(&w);
    CHECK_OK(onepass_accumulator_add(other, &s.call, 2 * ONEPASS_TILE), "rows of four classes");
    expect_words(ONEPASS_INVALID_SHAPE, onepass_accumulator_merge(accumulator, other), "4 classes");
    onepass_accumulator_destroy(other);
    onepass_accumulator_destroy(accumulator);
    free_whole(&w);
}

/* A mean's slices have class weights or none of them has. */
static void test_class_weights_of_some(void) {
    const whole like = {.loss = "nll", ONEPASS_MEAN, ONEPASS_F32, ONEPASS_I64, 0, 1, 1, 2 * ONEPASS_TILE + 5, 8, 0};
    whole w = make_whole(&like), without = w;
    without.class_weighted = 0;
    onepass_accumulator *one = begin(&w), *other = begin(&w);
    CHECK_OK(add_slice(one, &w, 0, 100), "rows with class weights");
    expect_words(ONEPASS_INVALID_ARGUMENT, add_slice(one, &without, 100, w.rows),
                 "the slice has a mask, but the slices before had class weights and a mask");
    CHECK_OK(add_slice(other, &without, 100, w.rows), "rows without");
    other = through_bytes(other);
    expect_words(ONEPASS_INVALID_ARGUMENT, onepass_accumulator_merge(one, other), "class weights and a mask");
    expect_words(ONEPASS_INVALID_ARGUMENT, onepass_accumulator_merge(other, one), "class weights and a mask");
    onepass_accumulator_destroy(one);
    onepass_accumulator_destroy(other);
    free_whole(&w);
}

/* Both slices come, one into each of two accumulators and both into one. */
static void refuse_class_weights(const whole *w, const whole *changed, const char *words) {
    onepass_accumulator *one = begin(w), *other = begin(w), *neither = begin(w);
    CHECK_OK(add_slice(one, w, 0, 100), "rows of some class weights");
    expect_words(ONEPASS_INVALID_ARGUMENT, add_slice(one, changed, 100, w->rows), words);
    CHECK_OK(add_slice(other, changed, 100, w->rows), "rows of others");
    one = through_bytes(one);
    other = through_bytes(other);
    expect_words(ONEPASS_INVALID_ARGUMENT, onepass_accumulator_merge(one, other), words);
    CHECK_OK(onepass_accumulator_merge(neither, one), "into one that has no slice");
    expect_words(ONEPASS_INVALID_ARGUMENT, onepass_accumulator_merge(neither, other), words);
    CHECK_OK(add_slice(one, w, 100, w->rows), "the rest of the same rows");
    onepass_accumulator_destroy(one);
    onepass_accumulator_destroy(other);
    onepass_accumulator_destroy(neither);
}

/* All slices have the same ones, whatever the reduction; in which type does not matter. */
static void test_other_class_weights(void) {
    for (int turn = 0; turn < 6; turn++) {
        const whole like = {.loss = turn % 2 ? "cross_entropy" : "nll",
                            .reduction = turn / 2 ? ONEPASS_SUM : ONEPASS_MEAN,
                            .dtype = ONEPASS_F32,
                            .label_dtype = ONEPASS_I64,
                            .class_weighted = 1,
                            .rows = 2 * ONEPASS_TILE + 5,
                            .classes = 8};
        whole w = make_whole(&like), changed = w, without = w;
        float others[8];
        memcpy(others, w.class_weight, sizeof others);
        others[turn] = nextafterf(others[turn], 9);
        changed.class_weight = others;
        refuse_class_weights(&w, &changed, "other class weights than the slices before");
        without.class_weighted = 0;
        if (turn / 2) /* a mean tells what it is divided by */
            refuse_class_weights(&w, &without, "no class weights, and the slices before had some");
        free_whole(&w);
    }
}

/* Of a vector loss too: its mean is not divided by them. */
static void test_class_weights_of_margins(void) {
    static float scores[6] = {1, 2, 3, 0, 1, 0}, weight[3] = {1, 0.5F, 2}, other[3] = {1, 0.25F, 2};
    static double same[3] = {1, 0.5, 2};
    static uint16_t halves[3] = {0x3c00, 0x3800, 0x4000};
    static int64_t labels[2] = {0, 2};
    const int64_t rows[2] = {1, 3}, one = 1, classes = 3;
    onepass_tensor input = {scores, ONEPASS_F32, 2, rows, NULL}, target = {labels, ONEPASS_I64, 1, &one, NULL};
    onepass_tensor weights = {weight, ONEPASS_F32, 1, &classes, NULL};
    onepass_call call = {.size = sizeof call, .loss = "multi_margin"};
    onepass_accumulator *accumulator = NULL;
    CHECK_OK(onepass_accumulator_begin(&accumulator, &call, 2), "begin");
    call.operand[0] = &input;
    call.operand[1] = &target;
    call.operand[ONEPASS_CLASS_WEIGHT] = &weights;
    CHECK_OK(onepass_accumulator_add(accumulator, &call, 0), "a row");
    accumulator = through_bytes(accumulator);
    input.data = scores + 3;
    target.data = labels + 1;
    weights.data = other;
    expect_words(ONEPASS_INVALID_ARGUMENT, onepass_accumulator_add(accumulator, &call, 1), "other class weights");
    call.operand[ONEPASS_CLASS_WEIGHT] = NULL;
    expect_words(ONEPASS_INVALID_ARGUMENT, onepass_accumulator_add(accumulator, &call, 1), "no class weights");
    call.operand[ONEPASS_CLASS_WEIGHT] = &weights;
    weights = (onepass_tensor){same, ONEPASS_F64, 1, &classes, NULL};
    expect_words(ONEPASS_INVALID_ARGUMENT, onepass_accumulator_add(accumulator, &call, 1), "double");
    weights = (onepass_tensor){halves, ONEPASS_F16, 1, &classes, NULL};
    CHECK_OK(onepass_accumulator_add(accumulator, &call, 1), "the other row, with the same weights in another type");
    onepass_accumulator_destroy(accumulator);
}

int main(void) {
    test_slicing();
    test_divisor_beforehand();
    test_probabilities();
    test_errors();
    test_class_weights_of_some();
    test_other_class_weights();
    test_class_weights_of_margins();
    return check_finish();
}
