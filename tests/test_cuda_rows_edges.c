/*
 * Losses over rows on a real GPU, at their edges: no rows, one class, rows that are all ignored, labels that are none,
 * and a divisor that is a tensor, of losses of elements too. Each call is made on the CPU and on the GPU; what both
 * leave in memory must be the same bytes, and some of it is known.
 */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include "gpu.h"
#include "test_cuda.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

/* ------------------------------------------------------- a call in two places -- */

enum {
    MOST_TENSORS = 8,
    MOST_CLASSES = 9001,
    ROWS = 37,
    FENCE = 8
};

/* A call whose tensors are in the host's memory, and one whose tensors are in the GPU's. */
typedef struct twins {
    onepass_call here, there;
    struct {
        onepass_tensor here, there;
        size_t bytes;
    } tensor[MOST_TENSORS];
    int count;
} twins;

static size_t size_of(int32_t dtype) {
    return dtype == ONEPASS_F64 || dtype == ONEPASS_I64    ? 8
           : dtype == ONEPASS_F16 || dtype == ONEPASS_BF16 ? 2
           : dtype == ONEPASS_BOOL || dtype == ONEPASS_U8  ? 1
                                                           : 4;
}

/* A tensor for a field of the call, which is at that offset; outputs have no data. Returns the host's. */
static void *add(twins *t, size_t field, int32_t dtype, int32_t ndim, const int64_t *shape, const void *data) {
    const int i = t->count++;
    size_t bytes = size_of(dtype);
    for (int32_t d = 0; d < ndim; d++)
        bytes *= (size_t)shape[d];
    void *here = malloc(bytes + FENCE), *there = gpu_allocate(bytes + FENCE);
    memset(here, 0xA5, bytes + FENCE);
    if (data)
        memcpy(here, data, bytes);
    gpu_write(there, here, bytes + FENCE, NULL);
    t->tensor[i].here = (onepass_tensor){here, dtype, ndim, shape, NULL};
    t->tensor[i].there = (onepass_tensor){there, dtype, ndim, shape, NULL};
    t->tensor[i].bytes = bytes + FENCE; /* with some behind, which nobody may touch */
    *(const onepass_tensor **)((char *)&t->here + field) = &t->tensor[i].here;
    *(const onepass_tensor **)((char *)&t->there + field) = &t->tensor[i].there;
    return t->tensor[i].here.data;
}
#define FIELD(name) offsetof(onepass_call, name)

static void begin(twins *t, const char *loss, int32_t reduction) {
    *t = (twins){.here = ONEPASS_CALL_INIT, .there = ONEPASS_CALL_INIT};
    t->here.loss = t->there.loss = loss;
    t->here.reduction = t->there.reduction = reduction;
    t->there.device = ONEPASS_CUDA;
}

static void compare(const twins *t, const char *what) {
    for (int i = 0; i < t->count; i++) {
        unsigned char *got = malloc(t->tensor[i].bytes);
        gpu_read(got, t->tensor[i].there.data, t->tensor[i].bytes, NULL);
        CHECK(memcmp(got, t->tensor[i].here.data, t->tensor[i].bytes) == 0, "%s: tensor %d has other bytes", what, i);
        free(got);
    }
}

static void end(twins *t) {
    for (int i = 0; i < t->count; i++) {
        free(t->tensor[i].here.data);
        gpu_free(t->tensor[i].there.data);
    }
}

static bool run_twins(twins *t, const char *what) {
    gpu_doing("%s", what);
    if (!CHECK_OK(onepass_run(&t->here), what) || !CHECK_OK(onepass_run(&t->there), what))
        return false;
    compare(t, what);
    return true;
}

/* ---------------------------------------------------------------------- data -- */

static const int64_t class_counts[] = {1, 5, 1000, 1001, MOST_CLASSES}; /* a kernel each, and one for long rows */
static float numbers[ROWS * MOST_CLASSES + 1];
static int64_t labels[ROWS];

static void fill(int64_t classes) {
    for (int64_t i = 0; i <= ROWS * MOST_CLASSES; i++)
        numbers[i] = (float)(i * 7919 % 1013) / 128.0f - 4.0f;
    for (int64_t i = 0; i < ROWS; i++)
        labels[i] = i % 5 == 3 ? -100 : i * 31 % classes;
}

/* Value and gradient of so many rows; the value is returned. */
static float *add_rows(twins *t, const int64_t *shape) {
    const bool has_labels = strcmp(t->here.loss, "cross_entropy_with_probabilities") != 0;
    add(t, FIELD(operand[0]), ONEPASS_F32, 2, shape, numbers);
    if (has_labels)
        add(t, FIELD(operand[1]), ONEPASS_I64, 1, shape, labels);
    else
        add(t, FIELD(operand[1]), ONEPASS_F32, 2, shape, numbers);
    add(t, FIELD(gradient[0]), ONEPASS_F32, 2, shape, NULL);
    return add(t, FIELD(value), ONEPASS_F32, t->here.reduction == ONEPASS_NONE, shape, NULL);
}

/* --------------------------------------------------------------------- edges -- */

static void test_no_rows(int64_t classes) {
    static const char *const losses[] = {"cross_entropy", "nll", "cross_entropy_with_probabilities"};
    const int64_t shape[] = {0, classes};
    for (int i = 0; i < 9; i++) {
        twins t;
        begin(&t, losses[i / 3], (int32_t[]){ONEPASS_MEAN, ONEPASS_SUM, ONEPASS_NONE}[i % 3]);
        const float *value = add_rows(&t, shape);
        add(&t, FIELD(log_sum_exp), ONEPASS_F32, 1, shape, NULL);
        if (i / 3 == 1)
            t.here.log_sum_exp = t.there.log_sum_exp = NULL; /* which nll has not */
        if (run_twins(&t, "no rows"))
            CHECK(i % 3 == 0 ? isnan(*value) : i % 3 == 2 || *value == 0, "%s of no rows is %g", losses[i / 3], *value);
        end(&t);
    }
}

static void test_all_ignored(int64_t classes) {
    const int64_t shape[] = {ROWS, classes};
    for (int i = 0; i < ROWS; i++)
        labels[i] = -100;
    for (int32_t reduction = ONEPASS_MEAN; reduction <= ONEPASS_NONE; reduction++) {
        twins t;
        begin(&t, "cross_entropy", reduction);
        const float *value = add_rows(&t, shape), *gradient = t.tensor[2].here.data;
        if (run_twins(&t, "all rows are ignored"))
            CHECK(reduction == ONEPASS_MEAN ? isnan(*value) : *value == 0, "the value is %g", *value);
        for (int64_t k = 0; k < ROWS * classes; k++)
            if (gradient[k] != 0 && CHECK(false, "class %lld has the gradient %g", (long long)k, gradient[k]))
                break;
        end(&t);
    }
}

/* The CPU refuses such labels. On the GPU their rows are NaN, all others as if those were ignored, and the context
 * lives. */
static void test_no_labels(int64_t classes) {
    const int64_t shape[] = {ROWS, classes};
    const int64_t wrong[] = {classes, -1, INT64_MAX, INT64_MIN};
    for (int32_t reduction = ONEPASS_MEAN; reduction <= ONEPASS_NONE; reduction++) {
        twins t;
        fill(classes);
        for (int i = 0; i < 4; i++)
            labels[9 * i] = -100;
        begin(&t, "cross_entropy", reduction);
        const float *value = add_rows(&t, shape), *gradient = t.tensor[2].here.data;
        for (int i = 0; i < 4; i++)
            labels[9 * i] = wrong[i];
        gpu_write(t.tensor[1].there.data, labels, sizeof labels, NULL);
        CHECK_OK(onepass_run(&t.here), "rows that are ignored");
        CHECK_OK(onepass_run(&t.there), "labels that are none");
        float got_value[ROWS], *got = malloc((size_t)(ROWS * classes) * 4);
        gpu_read(got_value, t.tensor[3].there.data, reduction == ONEPASS_NONE ? sizeof got_value : 4, NULL);
        gpu_read(got, t.tensor[2].there.data, (size_t)(ROWS * classes) * 4, NULL);
        if (reduction != ONEPASS_NONE)
            CHECK(isnan(got_value[0]), "the value is %g beside labels that are none", got_value[0]);
        for (int64_t row = 0; row < ROWS; row++) {
            const bool is_wrong = row % 9 == 0 && row < 36;
            bool as_expected = reduction != ONEPASS_NONE ||
                               (is_wrong ? isnan(got_value[row]) : memcmp(&value[row], &got_value[row], 4) == 0);
            for (int64_t c = 0; c < classes; c++)
                as_expected &= is_wrong ? isnan(got[row * classes + c])
                                        : reduction == ONEPASS_MEAN ||
                                              memcmp(&gradient[row * classes + c], &got[row * classes + c], 4) == 0;
            CHECK(as_expected, "row %lld of %lld classes: not as expected", (long long)row, (long long)classes);
        }
        free(got);
        end(&t);
    }
    fill(classes);
    twins t;
    begin(&t, "cross_entropy", ONEPASS_MEAN);
    add_rows(&t, shape);
    run_twins(&t, "a call after labels that were none");
    end(&t);
}

/* ------------------------------------------------------------------ divisors -- */

/* A tensor as divisor is the number, to the bit, and divided_by says so. */
static void test_divisors(const char *loss, int64_t classes) {
    const int64_t shape[] = {ROWS, classes};
    const bool over_rows = strcmp(loss, "mse") != 0;
    const double f64 = 44;
    const float f32 = 44;
    const uint16_t f16 = 0x5180, bf16 = 0x4230; /* 44 in both */
    const struct {
        int32_t dtype;
        const void *data;
    } divisors[] = {{0, NULL}, {ONEPASS_F32, &f32}, {ONEPASS_F64, &f64}, {ONEPASS_F16, &f16}, {ONEPASS_BF16, &bf16}};
    float expected = 0;
    for (int i = 0; i < 5; i++) {
        twins t;
        const float *value;
        begin(&t, loss, ONEPASS_MEAN);
        if (over_rows) {
            value = add_rows(&t, shape);
        } else {
            add(&t, FIELD(operand[0]), ONEPASS_F32, 2, shape, numbers);
            add(&t, FIELD(operand[1]), ONEPASS_F32, 2, shape, numbers + 1);
            add(&t, FIELD(gradient[0]), ONEPASS_F32, 2, shape, NULL);
            value = add(&t, FIELD(value), ONEPASS_F32, 0, NULL, NULL);
        }
        if (i == 0)
            t.here.divisor = t.there.divisor = 44;
        else
            add(&t, FIELD(divisor_tensor), divisors[i].dtype, 0, NULL, divisors[i].data);
        const double *divided_by = add(&t, FIELD(divided_by), ONEPASS_F64, 0, NULL, NULL);
        if (run_twins(&t, loss))
            CHECK(*divided_by == 44 && (i == 0 || memcmp(&expected, value, 4) == 0),
                  "%s: divided by %g, value %g; expected 44 and %g", loss, *divided_by, *value, expected);
        expected = *value;
        end(&t);
    }
}

/* Without a divisor of the caller's: what takes part is counted, or weighed. */
static void test_counts(int64_t classes) {
    const int64_t shape[] = {ROWS, classes};
    double count = 0, weighed = 0;
    float weight[ROWS];
    for (int i = 0; i < ROWS; i++) {
        weight[i] = (float)(1 + i % 4) / 4;
        count += labels[i] >= 0;
        weighed += labels[i] >= 0 ? (double)weight[i] : 0;
    }
    for (int weights = 0; weights < 2; weights++) {
        twins t;
        begin(&t, "cross_entropy", ONEPASS_MEAN);
        add_rows(&t, shape);
        if (weights)
            add(&t, FIELD(weight), ONEPASS_F32, 1, shape, weight);
        const double *divided_by = add(&t, FIELD(divided_by), ONEPASS_F64, 0, NULL, NULL);
        if (run_twins(&t, "what rows count for"))
            CHECK(*divided_by == (weights ? weighed : count), "divided by %g; expected %g", *divided_by,
                  weights ? weighed : count);
        end(&t);
    }
}

int test_cuda_rows_edges(bool reduced) {
    const int kinds = (int)(sizeof class_counts / sizeof *class_counts);
    for (int i = 0; i < (reduced ? kinds - 1 : kinds); i++) {
        const int64_t classes = class_counts[i];
        fill(classes);
        test_no_rows(classes);
        test_divisors("cross_entropy", classes);
        test_divisors("nll", classes);
        test_divisors("cross_entropy_with_probabilities", classes);
        test_divisors("mse", classes);
        test_counts(classes);
        test_no_labels(classes);
        test_all_ignored(classes);
    }
    return section_finish();
}
