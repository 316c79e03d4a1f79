/*
 * The CUDA engine's kernels for vector losses on the CPU, thread by thread, against the CPU engine: the list of cases,
 * in the launch shapes that the library chooses and in others, and more for each kernel. The memory of all tensors is
 * compared, poison included.
 *
 *   test_simt_vectors [f32|f64]   the kernels of one compute type, or of both
 */
#define _GNU_SOURCE
#include "plan/plan.h"
#include "steps.h"
#include "vector_case.h"

#include <math.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* --------------------------------------------------------------- a case -- */

static void run_shape(const vector_case *c, prepared_vectors *expected, cuda_shape shape, const char *text) {
    char difference[200], kernel[96] = "";
    job job;
    prepared_vectors *got = vector_case_prepare(c);
    onepass_cuda_shape = shape;
    if (CHECK_OK(onepass_plan(&got->call, &job), text) && run_steps(&job, c->seed, text, kernel, sizeof kernel)) {
        for (int i = 0; vector_case_tensor(expected, i); i++) {
            const bool equal = case_tensor_equal(vector_case_tensor(expected, i), vector_case_tensor(got, i)->memory,
                                                 difference, sizeof difference);
            CHECK(equal, "%s; %s: %s", text, kernel, difference);
        }
    }
    onepass_cuda_shape = (cuda_shape){0};
    vector_case_free(got);
}

static void run_case(const vector_case *c) {
    static const cuda_shape shapes[] = {{.kernels = CUDA_GENERAL_KERNELS},
                                        {.kernels = CUDA_LARGE_KERNELS},
                                        {.most_blocks = 2},
                                        {.kernels = CUDA_LARGE_KERNELS, .most_blocks = 3}};
    char text[600];
    prepared_vectors *expected = vector_case_prepare(c);
    vector_case_describe(c, text, sizeof text);
    if (CHECK_OK(onepass_run(&expected->call), text)) {
        run_shape(c, expected, (cuda_shape){0}, text);
        run_shape(c, expected, shapes[c->seed % (uint64_t)COUNT(shapes)], text);
        if (!c->gradient[0] && !c->gradient[1] && !c->gradient[2]) /* as if there were many rows */
            run_shape(c, expected, (cuda_shape){.kernels = CUDA_SMALL_KERNELS, .most_blocks = (int32_t)(c->seed % 2)},
                      text);
    }
    vector_case_free(expected);
}

/* ------------------------------------------------------- for each kernel -- */

/* Rows of whole fours, which the kernels for aligned rows take: several in a line, lines, several tiles, chunks of
 * tiles. */
static void test_main_paths(const char *loss, bool in_double, bool quick) {
    static const int64_t lengths[] = {4, 12, 64, 128, 132, 300, 516, 1000, 1024, 1028, 2048, 4100, 8192, 9000, 20000};
    static const int32_t types[] = {ONEPASS_F32, ONEPASS_F16, ONEPASS_BF16};
    uint64_t seed = 0;
    for (int i = 0; i < COUNT(lengths); i++) {
        for (int wanted = 0; wanted < 3; wanted++, seed++) { /* value, both, gradients */
            if (quick && wanted != i % 3) {
                continue;
            }
            const int32_t dtype = in_double ? ONEPASS_F64 : types[seed % 3];
            vector_case c = {.loss = loss,
                             .value = wanted < 2 ? dtype : 0,
                             .reduction = seed % 2 ? ONEPASS_MEAN : ONEPASS_NONE,
                             .weight = seed % 4 == 1 ? ONEPASS_F32 : 0,
                             .mask = seed % 5 == 2,
                             .upstream = wanted && seed % 3 == 0 ? dtype : 0,
                             .class_weight = vector_loss_has_labels(loss) && seed % 2 ? dtype : 0,
                             .parameter_count = vector_loss_has_labels(loss) && i % 2, /* of p 2 */
                             .parameter = {2},
                             .batch = lengths[i] > 4096 ? 3 : 21,
                             .elements = lengths[i],
                             .in_place = wanted && seed % 7 == 3,
                             .seed = seed};
            for (int k = 0; k < ORACLE_OPERANDS; k++) {
                c.operand[k] = dtype;
                c.gradient[k] = wanted && k < oracle_vector_operands(loss) && (seed + (uint64_t)k) % 4 ? dtype : 0;
            }
            if (!c.value && !c.gradient[0] && !c.gradient[1])
                c.gradient[0] = dtype;
            run_case(&c);
        }
    }
}

/* More tiles than a chunk has many times over, and not aligned. */
static void test_long_vectors(const char *loss, int32_t dtype) {
    for (int64_t odd = 0; odd < 2; odd++) {
        vector_case c = {.loss = loss, .value = dtype, .batch = 2, .elements = 1024 * 300 + 12 + odd, .seed = 3};
        for (int k = 0; k < ORACLE_OPERANDS; k++) {
            c.operand[k] = dtype;
            c.gradient[k] = k < oracle_vector_operands(loss) ? dtype : 0;
        }
        run_case(&c);
    }
}

/* Rows of whole tiles of a loss that computes long, whose warps have sent for what comes next: some chunks a row, the
 * last of which does not fill all warps, several a block, and rows that take no part. */
static void test_whole_tiles(void) {
    static const struct {
        int64_t batch, tiles;
        cuda_shape shape;
    } of[] = {{3, 9, {.most_blocks = 2}}, {1, 35, {.tiles_per_block = 32, .most_blocks = 1}}};
    for (int i = 0; i < COUNT(of); i++) {
        const vector_case c = {.loss = "tversky_with_logits",
                               .value = ONEPASS_F32,
                               .reduction = i ? ONEPASS_MEAN : ONEPASS_NONE,
                               .mask = i == 0,
                               .batch = of[i].batch,
                               .elements = of[i].tiles * 1024,
                               .operand = {ONEPASS_F32, ONEPASS_F32},
                               .seed = (uint64_t)i};
        char text[600];
        prepared_vectors *expected = vector_case_prepare(&c);
        vector_case_describe(&c, text, sizeof text);
        if (CHECK_OK(onepass_run(&expected->call), text))
            run_shape(&c, expected, of[i].shape, text);
        vector_case_free(expected);
    }
}

/* Gradients that are there already if the upstream gradient is 1. Blocks take several turns then, and there are few. */
static void test_skipped(const char *loss, int64_t rows, int64_t length, float upstream) {
    vector_case c = {.loss = loss,
                     .reduction = ONEPASS_MEAN,
                     .upstream = ONEPASS_F32,
                     .flags = ONEPASS_SKIP_IF_UPSTREAM_IS_ONE,
                     .batch = rows,
                     .elements = length,
                     .seed = 7};
    char text[600], kernel[96] = "", difference[200];
    job job;
    cuda_launch launch;
    for (int k = 0; k < ORACLE_OPERANDS; k++) {
        c.operand[k] = ONEPASS_F32;
        c.gradient[k] = k < oracle_vector_operands(loss) ? ONEPASS_F32 : 0;
    }
    prepared_vectors *expected = vector_case_prepare(&c), *got = vector_case_prepare(&c);
    vector_case_describe(&c, text, sizeof text);
    memcpy(vector_address(expected, &expected->upstream, 0, 0), &upstream, sizeof upstream);
    memcpy(vector_address(got, &got->upstream, 0, 0), &upstream, sizeof upstream);
    if (CHECK_OK(onepass_run(&expected->call), text) && CHECK_OK(onepass_plan(&got->call, &job), text)) {
        for (int i = 0; onepass_cuda_plan_step(&job, i, &simt_limits, &launch); i++)
            CHECK(launch.blocks <= 8 * (uint32_t)simt_limits.multiprocessors, "%s: %u blocks, most often to do nothing",
                  text, launch.blocks);
        if (run_steps(&job, c.seed, text, kernel, sizeof kernel))
            for (int i = 0; vector_case_tensor(expected, i); i++) {
                const bool equal = case_tensor_equal(vector_case_tensor(expected, i),
                                                     vector_case_tensor(got, i)->memory, difference, sizeof difference);
                CHECK(equal, "upstream %g, %s; %s: %s", upstream, text, kernel, difference);
            }
    }
    vector_case_free(expected);
    vector_case_free(got);
}

/* Which a GPU cannot refuse: value and gradient of their rows, and of no others, are NaN. */
static void test_labels_that_are_no_classes(const char *loss, int32_t dtype) {
    static const int64_t lengths[] = {12, 1000, 2048, 9001};
    for (int i = 0; i < COUNT(lengths); i++) {
        const vector_case c = {.loss = loss,
                               .value = dtype,
                               .reduction = ONEPASS_NONE,
                               .batch = 5,
                               .elements = lengths[i],
                               .operand = {dtype},
                               .gradient = {dtype}};
        const int64_t beyond = c.elements, below = -2;
        char text[600], kernel[96] = "";
        job job;
        prepared_vectors *p = vector_case_prepare(&c);
        vector_case_describe(&c, text, sizeof text);
        memcpy(vector_address(p, &p->operand[1], 1, 0), &beyond, sizeof beyond);
        memcpy(vector_address(p, &p->operand[1], 3, 0), &below, sizeof below);
        if (CHECK_OK(onepass_plan(&p->call, &job), text) && run_steps(&job, 1, text, kernel, sizeof kernel))
            for (int64_t row = 0; row < c.batch; row++) {
                int64_t nans = isnan(vector_number(p, &p->value, row, 0)) ? 1 : 0;
                for (int64_t k = 0; k < c.elements; k++)
                    nans += isnan(vector_number(p, &p->gradient[0], row, k)) ? 1 : 0;
                CHECK(nans == (row % 2 ? 1 + c.elements : 0), "%s; %s: row %d has %lld NaN", text, kernel, (int)row,
                      (long long)nans);
            }
        vector_case_free(p);
    }
}

/* Thread by thread a large case takes minutes. */
static bool is_taken(const vector_case *c, size_t index, bool quick) {
    return vector_case_rows(c) * c->elements <= (quick ? 10000 : 30000) && index % (quick ? 20 : 5) == 0;
}

static void check_launched(int32_t compute) {
    for (int i = 0; onepass_vector_loss_at(i); i++) {
        for (int variant = 0; variant < CUDA_VARIANTS; variant++) {
            const char *loss = onepass_vector_loss_at(i)->name;
            const kernel_name name = simt_name(loss, (cuda_variant)variant);
            if (onepass_cuda_has_vector_variant(onepass_find_loss(loss), compute, (cuda_variant)variant))
                CHECK(simt_was_launched(&name), "expected that %s of %s is launched", name.text,
                      oracle_dtype_name(compute));
        }
    }
    simt_forget_launches();
}

int main(int argc, char **argv) {
    const bool quick = check_quick("most cases of the list, two of three sets of outputs, and long vectors");
    const char *only = argc > 1 ? argv[1] : "";
    size_t count, taken = 0;
    const vector_case *cases = vector_case_list(&count);
    for (int in_double = 0; in_double < 2; in_double++) {
        if (strcmp(only, in_double ? "f32" : "f64") == 0)
            continue;
        for (size_t i = 0; i < count; i++)
            if (vector_case_in_double(&cases[i]) == in_double && is_taken(&cases[i], i, quick)) {
                run_case(&cases[i]);
                taken++;
            }
        for (int i = 0; onepass_vector_loss_at(i); i++) {
            test_main_paths(onepass_vector_loss_at(i)->name, in_double, quick);
            if (!quick && i % 3 == 0)
                test_long_vectors(onepass_vector_loss_at(i)->name, in_double ? ONEPASS_F64 : ONEPASS_BF16);
        }
        simt_limits.multiprocessors = 2;
        for (int wanted = 0; wanted < 2 && !in_double; wanted++) {
            const float upstream = wanted ? 0.3F : 1;
            test_skipped("cosine_embedding", 1100, 128, upstream);
            test_skipped("triplet_margin", 70, 1024, upstream);
            test_skipped("kl_div_with_logits", 20, 3072, upstream);
            test_skipped("tversky", 2, 150 * 1024, upstream);
        }
        simt_limits.multiprocessors = MULTIPROCESSORS;
        if (!in_double)
            test_whole_tiles();
        test_labels_that_are_no_classes("multi_margin", in_double ? ONEPASS_F64 : ONEPASS_F32);
        test_labels_that_are_no_classes("multilabel_margin", in_double ? ONEPASS_F64 : ONEPASS_F32);
        check_launched(in_double ? ONEPASS_F64 : ONEPASS_F32);
    }
    printf("%zu cases of the list\n", taken);
    free(workspace);
    return check_finish();
}
