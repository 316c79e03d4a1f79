/*
 * Gradients that are scaled later, when the upstream gradient is known, or computed anew unless it is 1.
 */
#define _GNU_SOURCE
#include "check.h"
#include "oracle.h"
#include "pairwise.h"

#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

/* -------------------------------------------------------- scaling later -- */

/* The gradients as they are without the upstream gradient, scaled: the bits of all at once. */
static void scale_later(const test_case *c, double upstream, uint64_t seed) {
    char text[512], what[576];
    job job;
    cuda_launch launch;
    prepared_case *expected = case_prepare(c);
    prepared_case *got = case_prepare(c);
    case_describe(c, text, sizeof text);
    snprintf(what, sizeof what, "scaled later by %g: %s", upstream, text);
    oracle_store(c->upstream_dtype, expected->tensor[TENSOR_UPSTREAM].data, upstream);
    oracle_store(c->upstream_dtype, got->tensor[TENSOR_UPSTREAM].data, upstream);
    const onepass_call scale = {.size = sizeof scale,
                                .upstream = got->call.upstream,
                                .gradient = {got->call.gradient[0], got->call.gradient[1]}};
    onepass_call without = got->call;
    without.upstream = NULL;
    onepass_cuda_shape.kernels = seed % 2 ? CUDA_GENERAL_KERNELS : 0;
    if (CHECK_OK(onepass_run(&expected->call), what) && CHECK_OK(onepass_run(&without), what) &&
        CHECK_OK(onepass_plan_scale(&scale, &job), what) && simt_plan_and_run(&job, seed, what, &launch)) {
        simt_compare(expected, got, simt_describe(&launch, seed).text, what);
    }
    onepass_cuda_shape = (cuda_shape){0};
    case_free(expected);
    case_free(got);
}

/* By 1 nothing is read or written: the gradient lies where nobody may do either. */
static void scale_by_one(int32_t compute, int32_t upstream_dtype) {
    const int64_t count = 5000;
    const size_t bytes = (size_t)count * sizeof(double);
    double one = 0;
    job job;
    cuda_launch launch;
    void *nowhere = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!CHECK(nowhere != MAP_FAILED, "expected memory, got none")) {
        return;
    }
    oracle_store(upstream_dtype, &one, 1.0);
    const onepass_tensor upstream = {&one, upstream_dtype, 0, NULL, NULL};
    const onepass_tensor gradient = {nowhere, compute, 1, &count, NULL};
    const onepass_call scale = {.size = sizeof scale, .upstream = &upstream, .gradient = {&gradient}};
    if (CHECK_OK(onepass_plan_scale(&scale, &job), "scaling by 1")) {
        simt_plan_and_run(&job, (uint64_t)upstream_dtype, "scaling by 1", &launch);
    }
    munmap(nowhere, bytes);
}

void test_simt_scale(int32_t compute, bool quick) {
    static const double upstreams[] = {-0.37, 0.0, -0.0, 1e-42, 3e38, 1.0, NAN};
    static const int64_t columns[] = {191, 1500, 5000};
    static const int32_t wanted[] = {WANT_ALL, WANT_PREDICTION, WANT_TARGET};
    int turn = 0;
    for (int l = 0; oracle_loss_at(l); l++) {
        if (!case_loss_is_swept(oracle_loss_at(l)->name)) {
            continue;
        }
        for (int32_t layout = quick ? l : 0; layout < case_layout_count(); layout += quick ? 5 : 1, turn++) {
            const test_case c = {.group = "scale",
                                 .loss = oracle_loss_at(l)->name,
                                 .prediction = compute,
                                 .target = compute,
                                 .gradient = compute,
                                 .value = compute,
                                 .upstream_dtype = ONEPASS_F16 + turn % 4,
                                 .reduction = turn % 2 ? ONEPASS_SUM : ONEPASS_MEAN,
                                 .wanted = wanted[turn % COUNT(wanted)],
                                 .upstream = UPSTREAM_OTHER,
                                 .layout = layout,
                                 .rows = 7,
                                 .columns = columns[turn / 2 % COUNT(columns)],
                                 .data = DATA_SPECIAL,
                                 .seed = (uint64_t)turn};
            for (int i = 0; i < COUNT(upstreams); i++) {
                scale_later(&c, upstreams[i], (uint64_t)(turn * COUNT(upstreams) + i));
            }
        }
    }
    for (int32_t dtype = ONEPASS_F16; dtype <= ONEPASS_F64; dtype++) {
        scale_by_one(compute, dtype);
    }
}

/* ------------------------------------------------------- computing anew -- */

/* What the upstream gradient of the case is where it is computed. */
static bool upstream_is_one(const test_case *c, const prepared_case *prepared) {
    const double upstream = oracle_load(c->upstream_dtype, prepared->tensor[TENSOR_UPSTREAM].data);
    return case_in_double(c) ? upstream == 1 : (float)upstream == 1;
}

/* Gradients that are poison stay it where the upstream gradient is 1, and else have the bits of all at once. */
static void compute_skip_if_one(const test_case *c, double upstream, uint64_t seed) {
    char text[512], what[576];
    job job;
    cuda_launch launch;
    prepared_case *expected = case_prepare(c);
    prepared_case *got = case_prepare(c);
    case_describe(c, text, sizeof text);
    snprintf(what, sizeof what, "unless %.17g is one: %s", upstream, text);
    oracle_store(c->upstream_dtype, expected->tensor[TENSOR_UPSTREAM].data, upstream);
    oracle_store(c->upstream_dtype, got->tensor[TENSOR_UPSTREAM].data, upstream);
    got->call.flags = ONEPASS_SKIP_IF_UPSTREAM_IS_ONE;
    onepass_cuda_shape.kernels = seed % 2 ? CUDA_GENERAL_KERNELS : 0;
    if ((upstream_is_one(c, got) || CHECK_OK(onepass_run(&expected->call), what)) &&
        CHECK_OK(onepass_plan(&got->call, &job), what) && simt_plan_and_run(&job, seed, what, &launch)) {
        simt_compare(expected, got, simt_describe(&launch, seed).text, what);
    }
    onepass_cuda_shape = (cuda_shape){0};
    case_free(expected);
    case_free(got);
}

/* The same of dense tensors with weights, a mask or both, by blocks of several tiles, as large inputs have them. */
static void skip_if_one_in_few_blocks(const char *loss, int32_t tiles, double upstream) {
    test_case c = case_dense("unless one", loss, ONEPASS_F32, 7500);
    c.reduction = ONEPASS_SUM;
    c.wanted = WANT_PREDICTION;
    c.upstream = UPSTREAM_OTHER;
    for (int given = 1; given < 4; given++) {
        c.weight = given & 1 ? WEIGHT_DENSE : WEIGHT_ABSENT;
        c.mask = given & 2 ? WEIGHT_DENSE : WEIGHT_ABSENT;
        onepass_cuda_shape.tiles_per_block = tiles;
        compute_skip_if_one(&c, upstream, 0);
    }
}

/* By the direct kernels or the general one: operands and gradients that nobody may read or write, without weights. */
static void leave_alone(int32_t dtype, double upstream, int32_t kernels) {
    const int64_t count = 5000;
    const size_t bytes = (size_t)count * sizeof(double) / 4096 * 4096 + 4096;
    job job;
    cuda_launch launch;
    onepass_tensor tensor[4];
    char *nowhere = mmap(NULL, 4 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!CHECK(nowhere != MAP_FAILED, "expected memory, got none")) {
        return;
    }
    for (int i = 0; i < 4; i++) {
        tensor[i] = (onepass_tensor){nowhere + (size_t)i * bytes, dtype, 1, &count, NULL};
    }
    const onepass_tensor one = {&upstream, ONEPASS_F64, 0, NULL, NULL};
    const onepass_call call = {.size = sizeof call,
                               .loss = "mse",
                               .operand = {&tensor[0], &tensor[1]},
                               .upstream = &one,
                               .gradient = {&tensor[2], &tensor[3]},
                               .flags = ONEPASS_SKIP_IF_UPSTREAM_IS_ONE};
    onepass_cuda_shape.kernels = kernels;
    if (CHECK_OK(onepass_plan(&call, &job), "left alone") && simt_plan_and_run(&job, 1, "left alone", &launch)) {
        CHECK(launch.variant == variant_general, "left alone: got %s", simt_describe(&launch, 1).text);
    }
    onepass_cuda_shape = (cuda_shape){0};
    munmap(nowhere, 4 * bytes);
}

void test_simt_skip_if_one(int32_t compute, bool quick) {
    static const double upstreams[] = {1, 2.5, NAN, INFINITY, -0.0, 1 + 0x1p-30, 1};
    static const int64_t columns[] = {1, 191, 1500, 2048};
    static const int32_t wanted[] = {WANT_PREDICTION, WANT_TARGET, WANT_PREDICTION | WANT_TARGET};
    const int32_t first = compute == ONEPASS_F64 ? ONEPASS_F64 : ONEPASS_F16;
    int turn = 0;
    for (int l = 0; oracle_loss_at(l); l++) {
        if (!case_loss_is_swept(oracle_loss_at(l)->name)) {
            continue;
        }
        for (int32_t layout = quick ? l : 0; layout < case_layout_count(); layout += quick ? 5 : 1, turn++) {
            if (strncmp(case_layout_name(layout), "in place", 8) == 0) {
                continue; /* which is refused */
            }
            const int32_t operand = first + turn % (compute - first + 1);
            const test_case c = {.group = "unless one",
                                 .loss = oracle_loss_at(l)->name,
                                 .prediction = operand,
                                 .target = operand,
                                 .gradient = turn % 3 ? operand : ONEPASS_F16 + turn / 3 % 4,
                                 .value = compute,
                                 .upstream_dtype = turn % 4 ? ONEPASS_F64 : ONEPASS_F16 + turn / 4 % 3,
                                 .reduction = turn / 2 % 2 ? ONEPASS_SUM : ONEPASS_MEAN,
                                 .wanted = wanted[turn / 5 % COUNT(wanted)],
                                 .upstream = UPSTREAM_OTHER,
                                 .layout = layout,
                                 .rows = 3,
                                 .columns = columns[turn / 2 % COUNT(columns)],
                                 .data = DATA_SPECIAL,
                                 .weight = turn % 2 ? turn / 2 % WEIGHT_COUNT : WEIGHT_ABSENT,
                                 .weight_dtype = operand,
                                 .weights = turn % WEIGHTS_COUNT,
                                 .seed = (uint64_t)turn};
            for (int i = 0; i < COUNT(upstreams); i++) {
                compute_skip_if_one(&c, upstreams[i], (uint64_t)(turn * COUNT(upstreams) + i));
            }
        }
    }
    for (int32_t tiles = 1; tiles <= 8 && compute == ONEPASS_F32; tiles++) {
        skip_if_one_in_few_blocks("mse", tiles, tiles % 3 ? 2.5 : 1);
    }
    for (int l = 0; oracle_loss_at(l) && compute == ONEPASS_F32; l++) {
        skip_if_one_in_few_blocks(oracle_loss_at(l)->name, 1 + l % 8, 2.5);
    }
    for (int32_t dtype = first; dtype <= compute; dtype++) {
        for (int32_t kernels = 0; kernels <= CUDA_GENERAL_KERNELS; kernels++) {
            leave_alone(dtype, 1, kernels);
            leave_alone(dtype, compute == ONEPASS_F64 ? 1 : 1 + 0x1p-30, kernels);
        }
    }
}
