/*
 * The accumulator: whatever the slices, their order and the number of partial
 * accumulators, the bits are those of one call over the whole, weighted or masked
 * or not; and a refused slice leaves it as it was.
 */
#include "accumulator_bytes.h"
#include "cases.h"
#include "check.h"
#include "oracle.h"

/* ------------------------------------------------------------ the whole -- */

typedef struct whole {
    const char *loss;
    int32_t reduction;
    int32_t operand_dtype;
    int32_t gradient_dtype;
    int32_t weight_dtype; /* 0: no weights */
    int masked;
    double divisor;
    int64_t count;
    int operands;
    char *operand[ORACLE_OPERANDS];
    char *weight;
    char *mask;
    char *gradient[ORACLE_OPERANDS];          /* what the slices wrote */
    char *expected_gradient[ORACLE_OPERANDS]; /* what one call writes */
    double expected[2];                       /* one call's value in f64 and, decoded, in f16 */
} whole;

static char *allocate(size_t bytes) {
    char *memory = malloc(bytes ? bytes : 1);
    if (!memory) {
        perror("malloc");
        exit(1);
    }
    return memory;
}

/* The gradients of a weighted or masked mean need the sum of all weights, which slices do not know. */
static int has_gradients(const whole *w) {
    return (!w->weight_dtype && !w->masked) || w->reduction == ONEPASS_SUM || w->divisor != 0;
}

static onepass_call call_of(const whole *w) {
    const onepass_call call = {.size = sizeof call, .loss = w->loss, .reduction = w->reduction, .divisor = w->divisor};
    return call;
}

/* The tensors of a slice of the whole. */
typedef struct slice {
    int64_t count;
    onepass_tensor operand[ORACLE_OPERANDS], gradient[ORACLE_OPERANDS], weight, mask;
    onepass_call call;
} slice;

/* Elements first to last - 1; `gradient` is where theirs go, or null. */
static void cut_slice(const whole *w, int64_t first, int64_t last, char *const *gradient, slice *s) {
    const size_t at = (size_t)first, weight_size = w->weight_dtype ? oracle_size(w->weight_dtype) : 0;
    s->count = last - first;
    s->call = call_of(w);
    for (int j = 0; j < w->operands; j++) {
        s->operand[j] =
            (onepass_tensor){w->operand[j] + at * oracle_size(w->operand_dtype), w->operand_dtype, 1, &s->count, NULL};
        s->call.operand[j] = &s->operand[j];
        if (gradient) {
            s->gradient[j] = (onepass_tensor){gradient[j] + at * oracle_size(w->gradient_dtype), w->gradient_dtype, 1,
                                              &s->count, NULL};
            s->call.gradient[j] = &s->gradient[j];
        }
    }
    s->weight = (onepass_tensor){w->weight + at * weight_size, w->weight_dtype, 1, &s->count, NULL};
    s->mask = (onepass_tensor){w->mask + first, ONEPASS_BOOL, 1, &s->count, NULL};
    s->call.weight = w->weight_dtype ? &s->weight : NULL;
    s->call.mask = w->masked ? &s->mask : NULL;
}

/* One call over the whole; also checked against the oracle, so that the two routes cannot be wrong together. */
static void run_whole(whole *w, int32_t value_dtype, double *value) {
    double stored = -1;
    double by_oracle = -1;
    const onepass_tensor v = {&stored, value_dtype, 0, NULL, NULL};
    const onepass_tensor o = {&by_oracle, value_dtype, 0, NULL, NULL};
    slice all;
    cut_slice(w, 0, w->count, NULL, &all);
    all.call.value = &o;
    oracle_run(&all.call);
    cut_slice(w, 0, w->count, w->expected_gradient, &all);
    all.call.value = &v;
    CHECK_OK(onepass_run(&all.call), "the whole in one call");
    CHECK_BITS(oracle_load_bits(value_dtype, &by_oracle), oracle_load_bits(value_dtype, &stored), "the whole");
    *value = oracle_load(value_dtype, &stored);
}

static whole make_whole(const char *loss, int32_t reduction, int32_t operand_dtype, int32_t gradient_dtype,
                        int32_t weight_dtype, int masked, int64_t count, double divisor) {
    const oracle_loss *known = oracle_loss_named(loss);
    const size_t size = oracle_size(operand_dtype);
    const size_t gradient_bytes = (size_t)count * oracle_size(gradient_dtype);
    whole w = {.loss = loss,
               .reduction = reduction,
               .operand_dtype = operand_dtype,
               .gradient_dtype = gradient_dtype,
               .weight_dtype = weight_dtype,
               .masked = masked,
               .divisor = divisor,
               .count = count,
               .operands = known->operand_count};
    uint64_t state = 12 + (uint64_t)count;
    for (int j = 0; j < w.operands; j++) {
        w.operand[j] = allocate((size_t)count * size);
        for (int64_t i = 0; i < count; i++) {
            const int32_t data = i % 5 ? DATA_NORMAL : DATA_WIDE;
            oracle_store_bits(operand_dtype, w.operand[j] + (size_t)i * size,
                              random_operand(&state, data, known->domain[j], operand_dtype, 0));
        }
    }
    w.weight = allocate((size_t)count * (weight_dtype ? oracle_size(weight_dtype) : 0));
    for (int64_t i = 0; i < count && weight_dtype; i++) {
        oracle_store_bits(weight_dtype, w.weight + (size_t)i * oracle_size(weight_dtype),
                          random_element(&state, i % 3 ? DATA_UNIFORM : DATA_WIDE, weight_dtype, 0));
    }
    w.mask = allocate((size_t)count);
    for (int64_t i = 0; i < count && masked; i++) {
        oracle_store_bits(ONEPASS_BOOL, w.mask + i, random_mask(&state, MASKS_HALF));
    }
    for (int j = 0; j < w.operands; j++) {
        w.gradient[j] = allocate(gradient_bytes);
        w.expected_gradient[j] = allocate(gradient_bytes);
        memset(w.gradient[j], 0xa5, gradient_bytes);
    }
    run_whole(&w, ONEPASS_F64, &w.expected[0]);
    run_whole(&w, ONEPASS_F16, &w.expected[1]);
    return w;
}

static void free_whole(whole *w) {
    free(w->weight);
    free(w->mask);
    for (int j = 0; j < w->operands; j++) {
        free(w->operand[j]);
        free(w->gradient[j]);
        free(w->expected_gradient[j]);
    }
}

/* --------------------------------------------------------------- slices -- */

static onepass_accumulator *begin(const whole *w) {
    const onepass_call call = call_of(w);
    onepass_accumulator *accumulator = NULL;
    CHECK_OK(onepass_accumulator_begin(&accumulator, &call, w->count), "begin");
    return accumulator;
}

/* Adds elements first to last - 1, with all gradients where slices can have them. */
static onepass_status add_slice(onepass_accumulator *accumulator, const whole *w, int64_t first, int64_t last) {
    slice s;
    cut_slice(w, first, last, has_gradients(w) ? w->gradient : NULL, &s);
    return onepass_accumulator_add(accumulator, &s.call, first);
}

/* The value in f64 and f16, twice: finishing changes nothing. */
static void check_value(const onepass_accumulator *accumulator, const whole *w, const char *what) {
    static const int32_t dtypes[2] = {ONEPASS_F64, ONEPASS_F16};
    for (int i = 0; i < 4; i++) {
        double stored = -1;
        const int32_t dtype = dtypes[i % 2];
        const onepass_tensor v = {&stored, dtype, 0, NULL, NULL};
        if (CHECK_OK(onepass_accumulator_finish(accumulator, &v), what)) {
            CHECK_BITS(oracle_encode(dtype, w->expected[i % 2]), oracle_load_bits(dtype, &stored), what);
        }
    }
}

static void check_gradients(const whole *w, const char *what) {
    const size_t bytes = (size_t)w->count * oracle_size(w->gradient_dtype);
    for (int which = 0; which < w->operands && has_gradients(w); which++) {
        CHECK(memcmp(w->expected_gradient[which], w->gradient[which], bytes) == 0,
              "%s: expected the gradient in %c of one call", what, "ptv"[which]);
    }
}

enum {
    MOST_SLICES = 512,
    MOST_PARTS = 5
};

/* Cuts at random tiles or elements, in random order, into up to five accumulators that are merged in random order; some
 * travel as bytes first. */
static void random_slicing(const whole *w, uint64_t *state) {
    static const int64_t steps[] = {ONEPASS_TILE, 1, 20, 700}; /* several cuts in a tile, to few of them */
    int64_t cut[MOST_SLICES + 1];
    int slices = 0;
    const int64_t longest = 1 + random_below(state, 40), step = steps[random_below(state, 4)];
    for (cut[0] = 0; cut[slices] < w->count && slices < MOST_SLICES; slices++) {
        const int64_t next = cut[slices] + step * (1 + random_below(state, longest));
        cut[slices + 1] = next < w->count && slices < MOST_SLICES - 1 ? next : w->count;
    }
    int order[MOST_SLICES];
    for (int i = 0; i < slices; i++) {
        const int other = (int)random_below(state, i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    onepass_accumulator *part[MOST_PARTS];
    const int parts = 1 + (int)random_below(state, MOST_PARTS);
    for (int i = 0; i < parts; i++) {
        part[i] = begin(w);
    }
    for (int i = 0; i < slices; i++) {
        const int s = order[i];
        CHECK_OK(add_slice(part[random_below(state, parts)], w, cut[s], cut[s + 1]), "add");
    }
    for (int i = 0; i < parts; i++) {
        if (random_below(state, 2)) {
            part[i] = through_bytes(part[i]);
        }
    }
    for (int left = parts; left > 1; left--) {
        const int from = (int)random_below(state, left);
        onepass_accumulator *taken = part[from];
        part[from] = part[left - 1];
        CHECK_OK(onepass_accumulator_merge(part[random_below(state, left - 1)], taken), "merge");
        onepass_accumulator_destroy(taken);
    }
    check_value(part[0], w, "random slices");
    check_gradients(w, "random slices");
    onepass_accumulator_destroy(part[0]);
}

static void test_slicing(void) {
    static const int64_t counts[] = {
        0,              /* nothing to add; the mean is NaN */
        1,              /* less than a line */
        1023,           /* one tile, all but full, */
        1024,           /* full, */
        1025,           /* and one element more */
        7 * 1024 + 100, /* a broken tree */
        100000,         /* 98 tiles: many slices */
    };
    static const int32_t dtypes[][2] = {{ONEPASS_F32, ONEPASS_F32},
                                        {ONEPASS_F64, ONEPASS_F64},
                                        {ONEPASS_F16, ONEPASS_BF16},
                                        {ONEPASS_BF16, ONEPASS_F32}};
    static const int32_t weights[] = {0, ONEPASS_F32, ONEPASS_F64, ONEPASS_F16}; /* 0: none */
    const int quick = check_quick("three of four random slicings, half of the weights, masks and reductions of a size");
    const int rounds = !quick ? 12 : CHECK_SANITIZED ? 1 : 3;
    uint64_t state = 77;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        for (int j = 0; oracle_loss_at(j); j++) {
            const char *loss = oracle_loss_at(j)->name;
            const int swept = case_loss_is_swept(loss);
            for (int turn = 0; turn < 16; turn++) {
                const int32_t reduction = turn % 2 ? ONEPASS_SUM : ONEPASS_MEAN;
                const int32_t *dtype = dtypes[(i + (size_t)j) % 4];
                const double divisor = reduction == ONEPASS_MEAN && j == 1 ? 12345.5 : 0;
                if (!swept && (counts[i] < 2000 || counts[i] > 50000 || (turn + j) % 5)) {
                    continue; /* slicing is the same for all losses */
                }
                if (quick && swept && ((size_t)(turn + turn / 2 + turn / 8 + j) + i) % 2) {
                    continue; /* another half for the next size and loss */
                }
                whole w = make_whole(loss, reduction, dtype[0], dtype[1], weights[turn / 2 % 4], turn / 8, counts[i],
                                     divisor);
                for (int round = 0; round < (swept ? rounds : 2); round++) {
                    random_slicing(&w, &state);
                }
                free_whole(&w);
            }
        }
    }
}

/* A slice may have any shape, strides and broadcasting of its own, and an upstream gradient. */
static void test_shaped_slices(void) {
    enum {
        ROWS = 24,
        COLUMNS = 512
    };
    static float p[ROWS * COLUMNS * 2], t[COLUMNS], gradient[2][ROWS * COLUMNS];
    const int64_t shape[2] = {ROWS, COLUMNS};
    const int64_t strides[2] = {2 * COLUMNS, 2};
    const int64_t half[2] = {ROWS / 2, COLUMNS};
    const int64_t row[1] = {COLUMNS};
    uint64_t state = 3;
    for (int i = 0; i < ROWS * COLUMNS * 2; i++) {
        oracle_store_bits(ONEPASS_F32, &p[i], random_element(&state, DATA_NORMAL, ONEPASS_F32, 0));
    }
    for (int i = 0; i < COLUMNS; i++) {
        oracle_store_bits(ONEPASS_F32, &t[i], random_element(&state, DATA_NORMAL, ONEPASS_F32, 0));
    }
    float g = -1.7f;
    double expected = -1;
    double got = -2;
    const onepass_tensor upstream = {&g, ONEPASS_F32, 0, NULL, NULL};
    const onepass_tensor all = {p, ONEPASS_F32, 2, shape, strides};
    const onepass_tensor target = {t, ONEPASS_F32, 1, row, NULL};
    const onepass_tensor all_gradient = {gradient[0], ONEPASS_F32, 2, shape, NULL};
    const onepass_tensor value = {&expected, ONEPASS_F64, 0, NULL, NULL};
    onepass_call call = {.size = sizeof call,
                         .loss = "smooth_l1",
                         .parameter_count = 1,
                         .parameter = {0.3},
                         .operand = {&all, &target},
                         .upstream = &upstream,
                         .value = &value,
                         .gradient = {&all_gradient}};
    CHECK_OK(onepass_run(&call), "the whole");

    onepass_accumulator *accumulator = NULL;
    const onepass_call start = {.size = sizeof start, .loss = "smooth_l1", .parameter_count = 1, .parameter = {0.3}};
    CHECK_OK(onepass_accumulator_begin(&accumulator, &start, ROWS * COLUMNS), "begin");
    for (int part = 1; part >= 0; part--) {
        const int64_t first = part * (ROWS / 2) * COLUMNS;
        const onepass_tensor slice = {p + 2 * first, ONEPASS_F32, 2, half, strides};
        const onepass_tensor slice_gradient = {gradient[1] + first, ONEPASS_F32, 2, half, NULL};
        call.operand[0] = &slice;
        call.value = NULL;
        call.gradient[0] = &slice_gradient;
        CHECK_OK(onepass_accumulator_add(accumulator, &call, first), "half of the rows");
    }
    const onepass_tensor finished = {&got, ONEPASS_F64, 0, NULL, NULL};
    CHECK_OK(onepass_accumulator_finish(accumulator, &finished), "finish");
    CHECK_BITS(oracle_double_bits(expected), oracle_double_bits(got), "two slices of rows");
    CHECK(memcmp(gradient[0], gradient[1], sizeof gradient[0]) == 0, "expected the gradient of one call");
    onepass_accumulator_destroy(accumulator);
}

/* --------------------------------------------------------------- errors -- */

/* A refusal has the status, a sentence, and leaves every gradient as it was. */
static void check_refused(onepass_status status, const whole *w, const char *what) {
    const size_t bytes = (size_t)w->count * oracle_size(w->gradient_dtype);
    CHECK(status != ONEPASS_OK && status != ONEPASS_INCOMPLETE, "%s: expected a refusal, got %s", what,
          onepass_status_name(status));
    CHECK(strlen(onepass_message()) > 10, "%s: expected a sentence, got \"%s\"", what, onepass_message());
    for (size_t i = 0; i < bytes; i++) {
        if ((unsigned char)w->gradient[0][i] != 0xa5 || (unsigned char)w->gradient[1][i] != 0xa5) {
            CHECK(0, "%s: expected nothing written, got byte %zu of a gradient", what, i);
            break;
        }
    }
}

static void check_incomplete(const onepass_accumulator *accumulator, const char *what) {
    double value = -7;
    const onepass_tensor v = {&value, ONEPASS_F64, 0, NULL, NULL};
    const onepass_status status = onepass_accumulator_finish(accumulator, &v);
    CHECK(status == ONEPASS_INCOMPLETE, "%s: expected ONEPASS_INCOMPLETE, got %s", what, onepass_status_name(status));
    CHECK(value == -7, "%s: expected no value written, got %g", what, value);
    CHECK(strlen(onepass_message()) > 10, "%s: expected a sentence, got \"%s\"", what, onepass_message());
}

/* A slice whose call differs from the one that began in one thing. */
static void refuse_changed_calls(onepass_accumulator *accumulator, const whole *w) {
    double value = -7;
    const int64_t count = ONEPASS_TILE;
    const onepass_tensor v = {&value, ONEPASS_F64, 0, NULL, NULL};
    slice first;
    cut_slice(w, 0, count, w->gradient, &first);
    const onepass_call good = first.call;
    onepass_call bad = good;
    bad.loss = "hinge";
    check_refused(onepass_accumulator_add(accumulator, &bad, 0), w, "another loss");
    bad = good;
    bad.loss = "no such loss";
    check_refused(onepass_accumulator_add(accumulator, &bad, 0), w, "an unknown loss");
    bad = good;
    bad.reduction = w->reduction == ONEPASS_SUM ? ONEPASS_MEAN : ONEPASS_SUM;
    check_refused(onepass_accumulator_add(accumulator, &bad, 0), w, "another reduction");
    bad = good;
    bad.parameter_count = 1;
    bad.parameter[0] = 0.125;
    check_refused(onepass_accumulator_add(accumulator, &bad, 0), w, "another parameter");
    bad = good;
    bad.divisor = 3;
    check_refused(onepass_accumulator_add(accumulator, &bad, 0), w, "another divisor");
    bad = good;
    bad.value = &v;
    check_refused(onepass_accumulator_add(accumulator, &bad, 0), w, "a value in a slice");
    CHECK(value == -7, "expected no value written by a slice, got %g", value);
    bad = good;
    bad.operand[1] = NULL;
    check_refused(onepass_accumulator_add(accumulator, &bad, 0), w, "no target");
    check_refused(onepass_accumulator_add(accumulator, NULL, 0), w, "no call");
    check_refused(onepass_accumulator_add(NULL, &good, 0), w, "no accumulator");
}

static void refuse_misplaced_slices(onepass_accumulator *accumulator, const whole *w) {
    slice two;
    cut_slice(w, 0, 2 * ONEPASS_TILE, NULL, &two);
    const onepass_call call = two.call;
    check_refused(onepass_accumulator_add(accumulator, &call, -1), w, "a slice before the beginning");
    check_refused(onepass_accumulator_add(accumulator, &call, 9 * ONEPASS_TILE), w, "a slice across the end");
    check_refused(onepass_accumulator_add(accumulator, &call, 100 * ONEPASS_TILE), w, "a slice behind the end");
    check_refused(onepass_accumulator_add(accumulator, &call, INT64_MAX / ONEPASS_TILE * ONEPASS_TILE), w,
                  "a slice whose end overflows");
}

static void refuse_bad_beginnings(const whole *w) {
    onepass_accumulator *none = NULL;
    onepass_call call = call_of(w);
    call.reduction = ONEPASS_NONE;
    check_refused(onepass_accumulator_begin(&none, &call, 10), w, "begin with reduction none");
    call.reduction = ONEPASS_BATCHMEAN;
    check_refused(onepass_accumulator_begin(&none, &call, 10), w, "begin with reduction batchmean");
    CHECK(!none, "expected no accumulator from a refused begin");
    call = call_of(w);
    check_refused(onepass_accumulator_begin(&none, &call, -1), w, "begin with a negative total");
    check_refused(onepass_accumulator_begin(NULL, &call, 10), w, "begin without a place for the accumulator");
    check_refused(onepass_accumulator_begin(&none, NULL, 10), w, "begin without a call");
    call.loss = "no such loss";
    check_refused(onepass_accumulator_begin(&none, &call, 10), w, "begin with an unknown loss");
}

static void refuse_bad_merges(onepass_accumulator *accumulator, const whole *w) {
    onepass_call call = call_of(w);
    onepass_accumulator *other = NULL;
    CHECK_OK(onepass_accumulator_begin(&other, &call, w->count + 1), "begin");
    check_refused(onepass_accumulator_merge(accumulator, other), w, "merge of another total");
    onepass_accumulator_destroy(other);
    call.loss = "hinge";
    CHECK_OK(onepass_accumulator_begin(&other, &call, w->count), "begin");
    check_refused(onepass_accumulator_merge(accumulator, other), w, "merge of another loss");
    onepass_accumulator_destroy(other);
    call = call_of(w);
    call.parameter_count = 1;
    call.parameter[0] = 0.125;
    CHECK_OK(onepass_accumulator_begin(&other, &call, w->count), "begin");
    check_refused(onepass_accumulator_merge(accumulator, other), w, "merge of another parameter");
    onepass_accumulator_destroy(other);
    check_refused(onepass_accumulator_merge(accumulator, NULL), w, "merge from nothing");
    check_refused(onepass_accumulator_merge(NULL, accumulator), w, "merge into nothing");
}

/* Every refusal, before and between good slices; the result is still that of one call. */
static void test_errors(void) {
    whole w = make_whole("smooth_l1", ONEPASS_MEAN, ONEPASS_F32, ONEPASS_F32, 0, 0, 10 * ONEPASS_TILE + 77, 0);
    whole poisoned = w; /* the gradients of refused slices must stay poison, so they have their own */
    const size_t bytes = (size_t)w.count * sizeof(float);
    for (int which = 0; which < 2; which++) {
        poisoned.gradient[which] = allocate(bytes);
        memset(poisoned.gradient[which], 0xa5, bytes);
    }
    onepass_accumulator *accumulator = begin(&w);
    check_incomplete(accumulator, "nothing added");
    refuse_bad_beginnings(&poisoned);
    refuse_changed_calls(accumulator, &poisoned);
    refuse_misplaced_slices(accumulator, &poisoned);
    refuse_bad_merges(accumulator, &poisoned);

    CHECK_OK(add_slice(accumulator, &w, 4 * ONEPASS_TILE, 7 * ONEPASS_TILE), "tiles 4 to 6");
    check_refused(add_slice(accumulator, &poisoned, 4 * ONEPASS_TILE, 7 * ONEPASS_TILE), &poisoned, "the same again");
    check_refused(add_slice(accumulator, &poisoned, 6 * ONEPASS_TILE, 8 * ONEPASS_TILE), &poisoned, "overlap behind");
    check_refused(add_slice(accumulator, &poisoned, 2 * ONEPASS_TILE, 5 * ONEPASS_TILE), &poisoned, "overlap before");
    check_refused(add_slice(accumulator, &poisoned, 0, w.count), &poisoned, "overlap all around");
    check_refused(add_slice(accumulator, &poisoned, 5 * ONEPASS_TILE, 6 * ONEPASS_TILE), &poisoned, "overlap inside");
    check_refused(onepass_accumulator_merge(accumulator, accumulator), &poisoned, "merge with itself");
    check_incomplete(accumulator, "three tiles of eleven");

    onepass_accumulator *other = begin(&w);
    CHECK_OK(add_slice(other, &w, 0, 5 * ONEPASS_TILE), "tiles 0 to 4");
    check_refused(onepass_accumulator_merge(accumulator, other), &poisoned, "merge that overlaps");
    onepass_accumulator_destroy(other);

    other = begin(&w);
    CHECK_OK(add_slice(other, &w, 0, 4 * ONEPASS_TILE), "tiles 0 to 3");
    CHECK_OK(onepass_accumulator_merge(accumulator, other), "merge that fits");
    check_incomplete(other, "the merged one stays as it was");
    CHECK_OK(add_slice(other, &w, 4 * ONEPASS_TILE, w.count), "the rest, into the merged one");
    check_value(other, &w, "the merged one, completed by itself");
    check_incomplete(accumulator, "seven tiles of eleven");
    CHECK_OK(add_slice(accumulator, &w, 7 * ONEPASS_TILE, w.count), "the rest");
    check_refused(onepass_accumulator_finish(accumulator, NULL), &poisoned, "finish without a value");
    check_value(accumulator, &w, "after all refusals");
    check_gradients(&w, "after all refusals");

    onepass_accumulator_destroy(other);
    onepass_accumulator_destroy(accumulator);
    onepass_accumulator_destroy(NULL);
    for (int which = 0; which < 2; which++) {
        free(poisoned.gradient[which]);
    }
    free_whole(&w);
}

static void expect_words(onepass_status status, const whole *w, const char *words, const char *what) {
    check_refused(status, w, what);
    CHECK(strstr(onepass_message(), words) != NULL, "%s: expected \"%s\" in \"%s\"", what, words, onepass_message());
}

static void expect_missing(const onepass_accumulator *accumulator, int64_t added, int64_t first, int64_t last) {
    char words[128];
    onepass_accumulator_info info = {.size = sizeof info};
    check_incomplete(accumulator, "a gap");
    snprintf(words, sizeof words,
             "%lld of the 10317 elements have been added; the first that are missing are %lld to %lld;",
             (long long)added, (long long)first, (long long)last);
    CHECK(strstr(onepass_message(), words) != NULL, "expected \"%s\" in \"%s\"", words, onepass_message());
    CHECK_OK(onepass_accumulator_describe(accumulator, &info), "describe");
    CHECK(info.added == added && info.missing == first && info.missing_end == last + 1,
          "expected %lld added and %lld to %lld missing, got %lld and %lld to %lld", (long long)added, (long long)first,
          (long long)last, (long long)info.added, (long long)info.missing, (long long)info.missing_end - 1);
}

/* Three slices in one tile, gaps and overlaps within tiles. Refused slices have gradients of their own. */
static void test_torn_errors(void) {
    whole w = make_whole("smooth_l1", ONEPASS_MEAN, ONEPASS_F32, ONEPASS_F32, 0, 0, 10 * ONEPASS_TILE + 77, 0);
    whole poisoned = w;
    const size_t bytes = (size_t)w.count * sizeof(float);
    for (int which = 0; which < 2; which++) {
        poisoned.gradient[which] = allocate(bytes);
        memset(poisoned.gradient[which], 0xa5, bytes);
    }
    onepass_accumulator *accumulator = begin(&w), *other = begin(&w);
    expect_missing(accumulator, 0, 0, w.count - 1);
    CHECK_OK(add_slice(accumulator, &w, 1400, 1500), "the middle of tile 1");
    expect_missing(accumulator, 100, 0, 1399);
    expect_words(add_slice(accumulator, &poisoned, 1499, 1600), &poisoned, "1499 is the first",
                 "overlap by one element");
    expect_words(add_slice(accumulator, &poisoned, 0, w.count), &poisoned, "1400 is the first", "overlap all around");
    expect_words(add_slice(accumulator, &poisoned, 1450, 1451), &poisoned, "elements 1450 to 1450", "overlap inside");
    CHECK_OK(add_slice(accumulator, &w, 0, 1400), "all before");
    expect_missing(accumulator, 1500, 1500, w.count - 1);
    CHECK_OK(add_slice(other, &w, 1499, 1501), "two elements, one of them there");
    expect_words(onepass_accumulator_merge(accumulator, other), &poisoned, "elements 1499 to 1500 were added to both",
                 "merge that overlaps by one");
    expect_words(onepass_accumulator_merge(other, accumulator), &poisoned, "1499 is the first", "the other way");
    onepass_accumulator_destroy(other);
    other = begin(&w);
    CHECK_OK(add_slice(other, &w, 1600, 1601), "an element that is new");
    CHECK_OK(add_slice(other, &w, 1400, 1401), "and one of the same tile that is not");
    CHECK_OK(add_slice(other, &w, 1700, 1701), "between two that are new");
    expect_words(onepass_accumulator_merge(accumulator, other), &poisoned, "elements 1400 to 1400", "one of three");
    onepass_accumulator_destroy(other);
    other = begin(&w);
    CHECK_OK(add_slice(other, &w, 1600, 1601), "an element that is new");
    CHECK_OK(add_slice(accumulator, &w, 1700, 1701), "one behind it");
    CHECK_OK(add_slice(other, &w, 1700, 1701), "and there, too");
    expect_words(onepass_accumulator_merge(accumulator, other), &poisoned, "elements 1700 to 1700",
                 "the second of two");
    onepass_accumulator_destroy(other);
    other = begin(&w);
    CHECK_OK(add_slice(accumulator, &w, 1701, 2000), "up to it");
    CHECK_OK(add_slice(other, &w, 2000, 5000), "more than tiles 2 and 3");
    CHECK_OK(onepass_accumulator_merge(accumulator, other), "merge");
    expect_missing(accumulator, 4800, 1500, 1699);
    expect_words(add_slice(accumulator, &poisoned, 4999, 6000), &poisoned, "4999 is the first",
                 "overlap of a torn tile");
    CHECK_OK(add_slice(accumulator, &w, 1500, 1700), "the gap: many slices in tile 1");
    expect_missing(accumulator, 5000, 5000, w.count - 1);
    CHECK_OK(add_slice(accumulator, &w, w.count - 1, w.count), "the last element");
    CHECK_OK(add_slice(accumulator, &w, 5000, w.count - 1), "all but the last element");
    check_value(accumulator, &w, "after all refusals");
    check_gradients(&w, "after all refusals");
    onepass_accumulator_destroy(other);
    onepass_accumulator_destroy(accumulator);
    for (int which = 0; which < 2; which++) {
        free(poisoned.gradient[which]);
    }
    free_whole(&w);
}

/* The first tile of the whole, with or without its weights, its mask and its gradient. */
enum {
    WEIGHT = 1,
    MASK = 2,
    GRADIENT = 4
};

static onepass_status add_first_tile(onepass_accumulator *accumulator, const whole *w, int with) {
    slice first;
    cut_slice(w, 0, ONEPASS_TILE, with & GRADIENT ? w->gradient : NULL, &first);
    first.call.weight = with & WEIGHT ? &first.weight : NULL;
    first.call.mask = with & MASK ? &first.mask : NULL;
    return onepass_accumulator_add(accumulator, &first.call, 0);
}

/* A mean's slices have weights or none of them has, and no gradients before the sum of the weights is known. The same
 * holds for masks. */
static void test_weighted_errors(int masked) {
    whole w = make_whole("mse", ONEPASS_MEAN, ONEPASS_F32, ONEPASS_F32, masked ? 0 : ONEPASS_F32, masked,
                         5 * ONEPASS_TILE + 9, 0);
    const int with = masked ? MASK : WEIGHT;
    const char *const name = masked ? "a mask" : "a weight", *const none = "neither weight nor mask";
    onepass_accumulator *weighted = begin(&w), *plain = begin(&w), *empty = begin(&w);
    expect_words(add_first_tile(weighted, &w, with | GRADIENT), &w, "divisor", "a gradient of a weighted mean");
    CHECK_OK(add_slice(weighted, &w, ONEPASS_TILE, 3 * ONEPASS_TILE), "tiles 1 and 2");
    expect_words(add_first_tile(weighted, &w, with | GRADIENT), &w, "divisor", "a gradient of a weighted mean, later");
    expect_words(add_first_tile(weighted, &w, 0), &w, none, "no weight after one");
    CHECK_OK(add_first_tile(plain, &w, 0), "tile 0 without a weight");
    expect_words(add_slice(plain, &w, ONEPASS_TILE, w.count), &w, name, "a weight after none");
    expect_words(onepass_accumulator_merge(weighted, plain), &w, none, "a merge from none");
    expect_words(onepass_accumulator_merge(plain, weighted), &w, none, "a merge into none");
    CHECK_OK(onepass_accumulator_merge(weighted, empty), "a merge from nothing");
    CHECK_OK(onepass_accumulator_merge(empty, weighted), "a merge into nothing");
    expect_words(add_first_tile(empty, &w, 0), &w, none, "no weight after a merge of one");
    CHECK_OK(add_slice(empty, &w, 3 * ONEPASS_TILE, w.count), "the rest");
    CHECK_OK(add_first_tile(empty, &w, with), "tile 0");
    check_value(empty, &w, "after all refusals");
    onepass_accumulator_destroy(weighted);
    onepass_accumulator_destroy(plain);
    onepass_accumulator_destroy(empty);
    free_whole(&w);
}

/* Weights are not a mask, nor both of them one. */
static void test_other_weights(void) {
    whole w = make_whole("mse", ONEPASS_MEAN, ONEPASS_F32, ONEPASS_F32, ONEPASS_F32, 1, 3 * ONEPASS_TILE, 0);
    onepass_accumulator *accumulator = begin(&w);
    CHECK_OK(add_slice(accumulator, &w, ONEPASS_TILE, w.count), "tiles with a weight and a mask");
    expect_words(add_first_tile(accumulator, &w, WEIGHT), &w, "a weight and a mask", "a weight after both");
    expect_words(add_first_tile(accumulator, &w, MASK), &w, "a mask", "a mask after both");
    CHECK_OK(add_first_tile(accumulator, &w, WEIGHT | MASK), "tile 0");
    check_value(accumulator, &w, "after all refusals");
    onepass_accumulator_destroy(accumulator);
    free_whole(&w);
}

/* Begun with different divisors, also where one of them names the count that the other stands for: with weights they
 * are not the same mean. */
static void test_other_divisor(void) {
    whole w = make_whole("mse", ONEPASS_MEAN, ONEPASS_F32, ONEPASS_F32, ONEPASS_F32, 0, 3 * ONEPASS_TILE, 0);
    onepass_accumulator *accumulator = begin(&w), *other = NULL;
    CHECK_OK(add_first_tile(accumulator, &w, WEIGHT), "tile 0");
    whole divided = w;
    for (int i = 0; i < 2; i++) {
        divided.divisor = i ? 7 : (double)w.count;
        for (int added = 0; added < 2; added++) {
            other = begin(&divided);
            if (added) {
                slice rest;
                cut_slice(&divided, ONEPASS_TILE, w.count, NULL, &rest);
                CHECK_OK(onepass_accumulator_add(other, &rest.call, ONEPASS_TILE), "the rest, with a divisor");
            }
            expect_words(onepass_accumulator_merge(accumulator, other), &w, "divisor", "a merge of another divisor");
            expect_words(onepass_accumulator_merge(other, accumulator), &w, "divisor", "a merge into another divisor");
            onepass_accumulator_destroy(other);
        }
    }
    CHECK_OK(add_slice(accumulator, &w, ONEPASS_TILE, w.count), "the rest");
    check_value(accumulator, &w, "after all refusals");
    onepass_accumulator_destroy(accumulator);
    free_whole(&w);
}

static onepass_status add_without_gradients(onepass_accumulator *accumulator, const whole *w, int64_t first,
                                            int64_t last) {
    slice s;
    cut_slice(w, first, last, NULL, &s);
    return onepass_accumulator_add(accumulator, &s.call, first);
}

/* No one call computes some of its elements in float and some in double, so no accumulator does. */
static void test_compute_types(int32_t reduction) {
    whole narrow = make_whole("mse", reduction, ONEPASS_F32, ONEPASS_F32, 0, 0, 3 * ONEPASS_TILE, 0);
    whole wide = make_whole("mse", reduction, ONEPASS_F64, ONEPASS_F64, 0, 0, 3 * ONEPASS_TILE, 0);
    const whole *const whole_of[2] = {&narrow, &wide};
    onepass_accumulator *both[2] = {begin(&narrow), begin(&wide)}, *empty = begin(&narrow);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(add_without_gradients(both[i], whole_of[i], 0, ONEPASS_TILE), "tile 0");
        expect_words(add_without_gradients(both[i], whole_of[!i], ONEPASS_TILE, narrow.count), whole_of[i],
                     i ? "in float" : "in double", "slices of another compute type");
        CHECK_OK(onepass_accumulator_merge(both[i], empty), "a merge from nothing");
    }
    slice weighted;
    const double one = 1;
    const onepass_tensor weight = {(void *)(uintptr_t)&one, ONEPASS_F64, 0, NULL, NULL};
    cut_slice(&narrow, ONEPASS_TILE, 2 * ONEPASS_TILE, NULL, &weighted);
    weighted.call.weight = &weight;
    if (reduction == ONEPASS_SUM) {
        expect_words(onepass_accumulator_add(both[0], &weighted.call, ONEPASS_TILE), &narrow, "in double",
                     "a weight in double");
    }
    onepass_accumulator *rest = begin(&wide);
    CHECK_OK(add_without_gradients(rest, &wide, ONEPASS_TILE, wide.count), "the rest in double");
    expect_words(onepass_accumulator_merge(both[0], rest), &narrow, "in double", "a merge from double");
    expect_words(onepass_accumulator_merge(rest, both[0]), &narrow, "in float", "a merge from float");
    CHECK_OK(onepass_accumulator_merge(empty, rest), "a merge into nothing");
    expect_words(add_without_gradients(empty, &narrow, 0, ONEPASS_TILE), &narrow, "in float",
                 "after a merge of double");
    CHECK_OK(onepass_accumulator_merge(both[1], rest), "a merge of one type");
    check_value(both[1], &wide, "in double, after all refusals");
    CHECK_OK(add_without_gradients(both[0], &narrow, ONEPASS_TILE, narrow.count), "the rest in float");
    check_value(both[0], &narrow, "in float, after all refusals");
    onepass_accumulator_destroy(both[0]);
    onepass_accumulator_destroy(both[1]);
    onepass_accumulator_destroy(empty);
    onepass_accumulator_destroy(rest);
    free_whole(&narrow);
    free_whole(&wide);
}

/* Where nobody divides by the weights, slices without them or without a mask are as if these were 1. */
static void test_mixed_sum(void) {
    whole w = make_whole("mse", ONEPASS_SUM, ONEPASS_F32, ONEPASS_F32, ONEPASS_F32, 1, 3 * ONEPASS_TILE, 0);
    for (int64_t i = 0; i < ONEPASS_TILE; i++) {
        oracle_store(ONEPASS_F32, w.weight + (size_t)i * sizeof(float), 1.0);
        oracle_store(ONEPASS_BOOL, w.mask + i, 1.0);
    }
    run_whole(&w, ONEPASS_F64, &w.expected[0]);
    run_whole(&w, ONEPASS_F16, &w.expected[1]);
    onepass_accumulator *accumulator = begin(&w);
    CHECK_OK(add_slice(accumulator, &w, ONEPASS_TILE, w.count), "two tiles with weights");
    CHECK_OK(add_first_tile(accumulator, &w, 0), "one without");
    check_value(accumulator, &w, "a sum of slices with and without weights");
    onepass_accumulator_destroy(accumulator);
    free_whole(&w);
}

/* What an accumulator says of itself, parameters that were left out included. */
static void test_describe(void) {
    whole w = make_whole("smooth_l1", ONEPASS_MEAN, ONEPASS_F32, ONEPASS_F32, 0, 0, 2 * ONEPASS_TILE + 100, 7);
    onepass_accumulator *accumulator = begin(&w);
    struct {
        onepass_accumulator_info info;
        char beyond;
    } longer = {.info = {.size = sizeof longer.info + 1}, .beyond = 1};
    onepass_accumulator_info info = {.size = sizeof info};
    CHECK_OK(onepass_accumulator_describe(accumulator, &info), "nothing added");
    CHECK(strcmp(info.loss, "smooth_l1") == 0 && info.reduction == ONEPASS_MEAN && info.divisor == 7,
          "what it says of itself is wrong");
    CHECK(info.parameter_count == 1 && info.parameter[0] == 1 && info.parameter[1] == 0,
          "what it says of itself is wrong");
    CHECK(info.total == w.count && info.added == 0 && info.size == sizeof info, "what it says of itself is wrong");
    CHECK_OK(add_without_gradients(accumulator, &w, 2 * ONEPASS_TILE, w.count), "the last tile");
    CHECK_OK(onepass_accumulator_describe(accumulator, &longer.info), "in a longer struct");
    CHECK(longer.info.added == 100 && longer.info.size == sizeof longer.info + 1 && longer.beyond == 0,
          "what it says of itself is wrong");
    CHECK_OK(add_without_gradients(accumulator, &w, 0, ONEPASS_TILE), "the first tile");
    CHECK_OK(onepass_accumulator_describe(accumulator, &info), "two slices");
    CHECK(info.added == ONEPASS_TILE + 100, "what it says of itself is wrong");
    expect_words(onepass_accumulator_describe(NULL, &info), &w, "accumulator is null", "of nothing");
    expect_words(onepass_accumulator_describe(accumulator, NULL), &w, "info is null", "to nowhere");
    info.size = 8;
    expect_words(onepass_accumulator_describe(accumulator, &info), &w, "info.size is 8", "a size that is none");
    onepass_accumulator_destroy(accumulator);
    free_whole(&w);
}

int main(void) {
    test_slicing();
    test_shaped_slices();
    test_errors();
    test_torn_errors();
    test_weighted_errors(0);
    test_weighted_errors(1);
    test_other_weights();
    test_other_divisor();
    test_compute_types(ONEPASS_MEAN);
    test_compute_types(ONEPASS_SUM);
    test_mixed_sum();
    test_describe();
    return check_finish();
}
