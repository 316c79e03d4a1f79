/*
 * onepass_scale on the CPU: gradients that were computed without an upstream gradient and scaled afterwards have the
 * bits of gradients that were computed with it, and where it is 1 they are not even touched.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "check.h"
#include "oracle.h"

enum {
    MOST = 100000,
    OPERANDS = 3,
    GAPS = 3 /* elements from one to the next, at most */
};

/* How the gradients lie. */
typedef enum layout {
    DENSE,
    GAPPED,
    BACKWARDS,
    TRANSPOSED,
    LAYOUTS
} layout;

typedef union numbers {
    float f32[MOST * GAPS];
    double f64[MOST * GAPS];
} numbers;

static numbers prediction, target, at_once[OPERANDS], later[OPERANDS];

/* Numbers of all sizes and signs, a NaN, infinities and denormals among them. */
static double number(int64_t i) {
    static const double special[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0, 1e-42, -1e-310, 3e38, 1e300};
    if (i % 97 == 5)
        return special[i / 97 % 9];
    const int64_t mixed = (i * 7919 + 104729) % 20011;
    return (double)(mixed - 10000) / 1024;
}

static void fill(numbers *numbers, int32_t dtype, int64_t from) {
    for (int64_t i = 0; i < MOST; i++) {
        if (dtype == ONEPASS_F32)
            numbers->f32[i] = (float)number(i + from);
        else
            numbers->f64[i] = number(i + from);
    }
}

typedef struct shape {
    int32_t ndim;
    int64_t extent[2], stride[2], first;
} shape;

static shape shape_of(layout layout, int64_t count) {
    switch (layout) {
    case GAPPED:
        return (shape){1, {count}, {GAPS}, 0};
    case BACKWARDS:
        return (shape){1, {count}, {-1}, count ? count - 1 : 0};
    case TRANSPOSED:
        return count % 5 ? shape_of(DENSE, count) : (shape){2, {5, count / 5}, {1, 5}, 0};
    default:
        return (shape){1, {count}, {1}, 0};
    }
}

static onepass_tensor tensor_of(numbers *numbers, int32_t dtype, const shape *shape, bool is_dense) {
    const size_t size = dtype == ONEPASS_F32 ? 4 : 8;
    char *data = (char *)numbers + (is_dense ? 0 : (size_t)shape->first * size);
    return (onepass_tensor){data, dtype, shape->ndim, shape->extent, is_dense ? NULL : shape->stride};
}

typedef struct scaling {
    const char *loss;
    int32_t dtype, upstream_dtype, threads;
    double upstream;
    layout layout;
    int64_t count;
} scaling;

/* The gradients of a mean, for all operands; a third one is the target again. */
static void compute_gradients(const scaling *c, const onepass_tensor *p, const onepass_tensor *t,
                              const onepass_tensor *upstream, const onepass_tensor *gradient, const char *what) {
    onepass_call call = ONEPASS_CALL_INIT;
    const int32_t operands = onepass_loss_named(c->loss)->operand_count;
    call.loss = c->loss;
    call.upstream = upstream;
    for (int k = 0; k < operands; k++) {
        call.operand[k] = k == ONEPASS_PREDICTION ? p : t;
        call.gradient[k] = &gradient[k];
    }
    CHECK_OK(onepass_run(&call), what);
}

static void check_scaling(const scaling *c) {
    const shape shape = shape_of(c->layout, c->count);
    const onepass_tensor p = tensor_of(&prediction, c->dtype, &shape, true);
    const onepass_tensor t = tensor_of(&target, c->dtype, &shape, true);
    double memory = 0;
    oracle_store(c->upstream_dtype, &memory, c->upstream);
    const onepass_tensor upstream = {&memory, c->upstream_dtype, 0, NULL, NULL};
    const size_t size = (size_t)c->count * GAPS * (c->dtype == ONEPASS_F32 ? 4 : 8);
    const int32_t operands = onepass_loss_named(c->loss)->operand_count;
    onepass_tensor gradient[OPERANDS], scaled[OPERANDS];
    for (int k = 0; k < operands; k++) {
        memset(&at_once[k], 0xA5, size);
        memset(&later[k], 0xA5, size);
        gradient[k] = tensor_of(&at_once[k], c->dtype, &shape, false);
        scaled[k] = tensor_of(&later[k], c->dtype, &shape, false);
    }
    compute_gradients(c, &p, &t, &upstream, gradient, "at once");
    compute_gradients(c, &p, &t, NULL, scaled, "without upstream");
    onepass_call call = ONEPASS_CALL_INIT;
    call.upstream = &upstream;
    call.threads = c->threads;
    const bool all_at_once = c->count % 2;
    for (int k = 0; k < operands; k++) {
        call.gradient[k] = &scaled[k];
        if (!all_at_once || k == operands - 1)
            CHECK_OK(onepass_scale(&call), "scale");
        if (!all_at_once)
            call.gradient[k] = NULL;
    }
    for (int k = 0; k < operands; k++)
        CHECK(memcmp(&at_once[k], &later[k], size) == 0,
              "%s in %s, upstream %g in %s, layout %d, %lld elements, %d threads: gradient[%d] has other bits when "
              "scaled",
              c->loss, oracle_dtype_name(c->dtype), c->upstream, oracle_dtype_name(c->upstream_dtype), (int)c->layout,
              (long long)c->count, c->threads, k);
}

static void test_bits(bool quick) {
    static const double upstream[] = {1, 2.5, -0.0, 1e-40, INFINITY, NAN, 65504, -3};
    static const int64_t counts[] = {0, 1, 127, 1024, 1025, 5000, 40000, MOST};
    int turn = 0;
    for (int32_t dtype = ONEPASS_F32; dtype <= ONEPASS_F64; dtype++) {
        fill(&prediction, dtype, 0);
        fill(&target, dtype, 31);
        for (int32_t loss = 0; onepass_loss_at(loss); loss++) {
            for (int i = 0; i < (quick ? 6 : 8); i++) {
                for (layout layout = DENSE; layout < LAYOUTS; layout++) {
                    const scaling c = {.loss = onepass_loss_at(loss)->name,
                                       .dtype = dtype,
                                       .upstream_dtype = ONEPASS_F16 + turn % 4,
                                       .threads = turn % 3,
                                       .upstream = upstream[turn / 4 % 8],
                                       .layout = layout,
                                       .count = counts[i]};
                    check_scaling(&c);
                    turn++;
                }
            }
        }
    }
}

/* Gradients that cannot be read or written, and an upstream gradient that is 1 in their type. */
static void test_untouched(void) {
    const int64_t shape[1] = {1000};
    void *nowhere = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (nowhere == MAP_FAILED) {
        printf("left out: no memory that cannot be touched\n");
        return;
    }
    float one = 1;
    double almost = 1 + 0x1p-40; /* 1 as a float */
    const onepass_tensor gradient = {nowhere, ONEPASS_F32, 1, shape, NULL};
    const onepass_tensor wide = {nowhere, ONEPASS_F64, 1, shape, NULL};
    onepass_tensor upstream = {&one, ONEPASS_F32, 0, NULL, NULL};
    onepass_call call = ONEPASS_CALL_INIT;
    call.upstream = &upstream;
    call.gradient[0] = &gradient;
    CHECK_OK(onepass_scale(&call), "scale f32 by 1");
    call.gradient[0] = &wide;
    CHECK_OK(onepass_scale(&call), "scale f64 by 1");
    upstream = (onepass_tensor){&almost, ONEPASS_F64, 0, NULL, NULL};
    call.gradient[0] = &gradient;
    CHECK_OK(onepass_scale(&call), "scale f32 by what is 1 in f32");
    munmap(nowhere, 8192);
}

int main(void) {
    test_bits(check_quick("the larger sizes"));
    test_untouched();
    return check_finish();
}
