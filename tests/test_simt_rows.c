/*
 * The CUDA engine's kernels for losses over rows on the CPU, thread by thread, against the CPU engine: cases drawn from
 * seeds, then those for each kernel, other launch shapes, tensors at the edge of memory. Whole blocks of memory are
 * compared, poison included.
 *
 *   test_simt_rows [f32|f64] [SEED]   the kernels of one compute type, or of both; one case alone
 */
#define _GNU_SOURCE
#include "plan/plan.h"
#include "row_cases.h"
#include "row_shards.h"
#include "steps.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* --------------------------------------------------------------- a case -- */

static bool is_refused(const onepass_call *call) {
    job job;
    return onepass_plan(call, &job) != ONEPASS_OK;
}

static void run_scheduled(const row_case *c, const prepared_row_case *expected, cuda_shape shape, uint64_t schedule,
                          const char *text) {
    char difference[200], kernel[96] = "";
    job job;
    prepared_row_case *got = row_prepare(c);
    onepass_cuda_shape = shape;
    if (CHECK_OK(onepass_plan(&got->call, &job), text) &&
        run_steps(&job, c->seed + 1000 * schedule, text, kernel, sizeof kernel)) {
        const bool equal = row_equal(expected, got->block, difference, sizeof difference);
        CHECK(equal, "%s; %s: %s", text, kernel, difference);
    }
    onepass_cuda_shape = (cuda_shape){0};
    row_free(got);
}

static void run_shape(const row_case *c, const prepared_row_case *expected, cuda_shape shape, const char *text) {
    run_scheduled(c, expected, shape, 0, text);
}

static void run_case(const row_case *c) {
    char text[600];
    prepared_row_case *expected = row_prepare(c);
    row_describe(c, text, sizeof text);
    if (!is_refused(&expected->call) && CHECK_OK(onepass_run(&expected->call), text)) {
        run_shape(c, expected, (cuda_shape){0}, text);
        if (c->seed % 3 == 0)
            run_shape(c, expected, (cuda_shape){.kernels = CUDA_GENERAL_KERNELS}, text);
        if (c->seed % 3 == 1)
            run_shape(c, expected,
                      (cuda_shape){.warps = 1 + (int32_t)(c->seed % 5), .tiles_per_block = 1 + (int32_t)(c->seed % 7)},
                      text);
    }
    row_free(expected);
}

/* Those that matter most, each for certain. */
static void test_main_paths(void) {
    const int losses = label_loss_count() + 1; /* the fourth is that of probabilities */
    static const int64_t sizes[] = {10, 21, 70, 150, 300, 700, 1000, 1001, 4096, 12288, 40000};
    static const int32_t wanted[] = {ROW_VALUE, ROW_VALUE | ROW_GRADIENT, ROW_GRADIENT | ROW_FROM_STATE};
    uint64_t seed = 0;
    for (int l = 0; l < losses; l++)
        for (int i = 0; i < COUNT(sizes); i++)
            for (int w = 0; w < COUNT(wanted); w++)
                for (int smooth = 0; smooth < (l == 0 || l == 3 ? 2 : 1); smooth++, seed++) {
                    row_case c = {.loss = l == 3 ? "cross_entropy_with_probabilities" : label_loss_at(l - (l > 3)),
                                  .dtype = seed % 2 || sizes[i] == 21 ? ONEPASS_F32 : ONEPASS_BF16,
                                  .target = ONEPASS_I64,
                                  .rows = sizes[i] > 4096 ? 3 : 19,
                                  .classes = sizes[i],
                                  .layout = sizes[i] > 10 && sizes[i] < 1000 ? ROW_IMAGES : ROW_DENSE,
                                  .wanted = wanted[w],
                                  .smoothing = smooth ? 0.1 : 0,
                                  .some_ignored = l<2, .upstream = w> 0 && seed % 3 == 0,
                                  .seed = seed};
                    c.gradient = c.dtype;
                    if (!row_has_labels(&c))
                        c.target = c.dtype;
                    run_case(&c);
                }
}

/* Rows of few classes, more than a tile of them: blocks that have one line or several, and that add up a tile. Of
 * images with a multiple of 32 rows each warps move vectors. Code that is made for a number of classes has it as it is
 * and with fewer, and logits of every kind. */
static void test_many_rows(void) {
    static const int64_t sizes[][2] = {{3, 4},   {10, 9}, {16, 14}, {21, 22}, {24, 27},
                                       {29, 32}, {6, 8},  {13, 12}, {18, 28}};
    static const int32_t wanted[] = {ROW_VALUE, ROW_VALUE | ROW_GRADIENT, ROW_GRADIENT};
    static const int32_t dtypes[] = {ONEPASS_F32, ONEPASS_BF16, ONEPASS_F32, ONEPASS_F16};
    uint64_t seed = 0;
    for (int i = 0; i < COUNT(sizes); i++)
        for (int w = 0; w < COUNT(wanted); w++)
            for (int images = 0; images < 2; images++, seed++) {
                char text[600];
                const int32_t dtype = dtypes[(seed + seed / 4) % 4];
                const row_case c = {.loss = "cross_entropy",
                                    .dtype = dtype,
                                    .target = ONEPASS_I64,
                                    .gradient = dtype,
                                    .rows = seed % 3 ? 2304 : 2300,
                                    .classes = sizes[i][(w + images) % 2],
                                    .layout = images ? ROW_IMAGES : ROW_DENSE,
                                    .data = (int32_t)((seed + i / 4) % ROW_DATA),
                                    .wanted = wanted[w],
                                    .some_ignored = seed % 2,
                                    .upstream = w > 0 && seed % 3 == 0,
                                    .seed = seed};
                prepared_row_case *expected = row_prepare(&c);
                row_describe(&c, text, sizeof text);
                if (CHECK_OK(onepass_run(&expected->call), text))
                    run_shape(&c, expected, (cuda_shape){.tiles_per_block = i % 3 == 2 ? 1 + w : 1}, text);
                row_free(expected);
            }
}

/* As PyTorch mostly has them: floats row behind row, labels of 64 bits, and blocks that have several tiles of rows. */
static void test_plain_rows(void) {
    static const int64_t sizes[] = {10, 2, 16, 4, 12, 8};
    static const int32_t wanted[] = {ROW_VALUE, ROW_VALUE | ROW_GRADIENT, ROW_GRADIENT};
    uint64_t seed = 0;
    for (int l = 0; label_loss_at(l); l++)
        for (int w = 0; w < COUNT(wanted); w++, seed++) {
            char text[600];
            const row_case c = {.loss = label_loss_at(l),
                                .dtype = ONEPASS_F32,
                                .target = ONEPASS_I64,
                                .gradient = ONEPASS_F32,
                                .rows = seed % 2 ? 5120 : 4700,
                                .classes = sizes[seed % COUNT(sizes)],
                                .wanted = wanted[w],
                                .some_ignored = l < 2,
                                .upstream = w == 2 && l % 2,
                                .seed = seed};
            prepared_row_case *expected = row_prepare(&c);
            row_describe(&c, text, sizeof text);
            if (CHECK_OK(onepass_run(&expected->call), text))
                run_shape(&c, expected, (cuda_shape){.tiles_per_block = 1 + 3 * (int32_t)(seed % 3)}, text);
            row_free(expected);
        }
}

/* Rows behind rows of more classes than a thread has registers for: teams of 2, 4, 8 and 16 lanes, whose last fours are
 * whole, torn or not there, rows of one step and of several, by warps that have some once or, of few blocks, often. */
static void test_teams(void) {
    static const int64_t sizes[] = {33, 50, 64, 65, 100, 127, 128, 129, 200, 256, 257, 388, 511, 512};
    static const int64_t rows[] = {1, 40, 128, 65, 350};
    static const int32_t wanted[] = {ROW_VALUE, ROW_VALUE | ROW_GRADIENT, ROW_GRADIENT};
    static const int32_t dtypes[] = {ONEPASS_F32, ONEPASS_BF16, ONEPASS_F16};
    uint64_t seed = 0;
    for (int i = 0; i < COUNT(sizes); i++)
        for (int w = 0; w < COUNT(wanted); w++)
            for (int d = 0; d < COUNT(dtypes); d++, seed++) {
                char text[600];
                const row_case c = {.loss = label_loss_in_turn(seed),
                                    .dtype = dtypes[d],
                                    .target = seed % 4 ? ONEPASS_I64 : ONEPASS_U8,
                                    .gradient = seed % 5 ? dtypes[d] : ONEPASS_F32,
                                    .rows = rows[(seed + i) % COUNT(rows)],
                                    .classes = sizes[i],
                                    .data = (int32_t)(seed / 3 % ROW_DATA),
                                    .wanted = wanted[w],
                                    .some_ignored = seed % 3 != 0,
                                    .upstream = w == 2 || (w == 1 && d == 1),
                                    .seed = seed};
                prepared_row_case *expected = row_prepare(&c);
                row_describe(&c, text, sizeof text);
                if (CHECK_OK(onepass_run(&expected->call), text))
                    run_shape(&c, expected, (cuda_shape){.tiles_per_block = (int32_t)(seed % 5)}, text);
                row_free(expected);
            }
}

/* Long rows that clusters of blocks have, one cluster or several. Where no row takes part lanes may be far apart. */
static void test_clusters(void) {
    for (int i = 0; i < row_cluster_cases(true); i++) {
        char text[600];
        const row_case c = row_cluster_case(i);
        prepared_row_case *expected = row_prepare(&c);
        row_describe(&c, text, sizeof text);
        if (CHECK_OK(onepass_run(&expected->call), text))
            for (int schedule = 0; schedule < (c.all_ignored ? 6 : 2); schedule++)
                run_scheduled(&c, expected, (cuda_shape){.tiles_per_block = i % 4 == 2 ? 0 : 1 + i % 4 / 3},
                              (uint64_t)schedule, text);
        row_free(expected);
    }
}

/* Rows of up to eight tiles with nothing but labels: warps and blocks that have none, one or more than 32 of them, and
 * labels that are ignored, in each of a row's tiles. */
static void test_simple_rows(void) {
    static const int64_t sizes[][2] = {{1000, 170}, {36, 90},  {2052, 50}, {1024, 35},
                                       {520, 133},  {8192, 9}, {1028, 70}, {9220, 35}};
    static const int32_t wanted[] = {ROW_VALUE, ROW_VALUE | ROW_GRADIENT, ROW_GRADIENT, ROW_VALUE | ROW_STATE};
    uint64_t seed = 0;
    for (int i = 0; i < COUNT(sizes); i++)
        for (int w = 0; w < COUNT(wanted); w++)
            for (int bf16 = 0; bf16 < 2; bf16++, seed++) {
                char text[600];
                const int32_t dtype = bf16 ? ONEPASS_BF16 : ONEPASS_F32;
                const row_case c = {.loss = label_loss_in_turn(seed),
                                    .dtype = dtype,
                                    .target = seed % 4 ? ONEPASS_I64 : ONEPASS_I32,
                                    .gradient = dtype,
                                    .rows = sizes[i][1],
                                    .classes = sizes[i][0],
                                    .data = (int32_t)(seed / 3 % ROW_DATA),
                                    .wanted = wanted[w],
                                    .some_ignored = seed % 3 != 0,
                                    .upstream = w == 2 || (w == 1 && bf16),
                                    .seed = seed};
                prepared_row_case *expected = row_prepare(&c);
                row_describe(&c, text, sizeof text);
                if (CHECK_OK(onepass_run(&expected->call), text)) {
                    run_shape(&c, expected, (cuda_shape){0}, text);
                    run_shape(&c, expected, (cuda_shape){.tiles_per_block = seed % 2 ? 1000 : 12}, text);
                }
                row_free(expected);
            }
    for (int i = 0; i < 2 * label_loss_count(); i++) { /* f16 goes by the kernels that take more */
        const row_case c = {.loss = label_loss_at(i / 2),
                            .dtype = ONEPASS_F16,
                            .target = ONEPASS_I64,
                            .gradient = ONEPASS_F16,
                            .rows = 9,
                            .classes = i % 2 ? 1000 : 12288,
                            .wanted = ROW_VALUE | ROW_GRADIENT,
                            .seed = (uint64_t)i};
        run_case(&c);
    }
}

/* Rows of bf16 of 17 to 32 tiles, whose warps send each other messages, in several orders of threads: blocks that have
 * one row, some, or more than 32; whole tiles alone, and what else may be asked of rows. */
static void test_wide_rows(void) {
    static const int64_t sizes[][2] = {{17412, 35}, {32764, 3}, {17408, 5}};
    static const int32_t wanted[] = {ROW_GRADIENT, ROW_VALUE | ROW_GRADIENT,
                                     ROW_VALUE | ROW_GRADIENT | ROW_LSE | ROW_STATE};
    uint64_t seed = 0;
    for (int i = 0; i < COUNT(sizes); i++)
        for (int k = 0; k < label_loss_count(); k++, seed++) {
            char text[600];
            const row_case c = {.loss = label_loss_at(k),
                                .dtype = ONEPASS_BF16,
                                .target = ONEPASS_I64,
                                .gradient = ONEPASS_BF16,
                                .rows = sizes[i][1],
                                .classes = sizes[i][0],
                                .data = (int32_t)(seed % ROW_DATA),
                                .wanted = wanted[seed % 3],
                                .some_ignored = seed % 4 != 0,
                                .upstream = seed % 4 != 1,
                                .seed = seed};
            prepared_row_case *expected = row_prepare(&c);
            row_describe(&c, text, sizeof text);
            if (CHECK_OK(onepass_run(&expected->call), text))
                for (uint64_t schedule = 0; schedule < 3; schedule++)
                    run_scheduled(&c, expected, (cuda_shape){.tiles_per_block = (int32_t)(1000 >> 4 * schedule)},
                                  schedule, text);
            row_free(expected);
        }
}

/* A GPU of one multiprocessor has several waves of blocks that have as many rows each, and those that remain have
 * fewer: values of labels, aligned and not, with smoothing, and of probabilities. */
static void test_waves(void) {
    static const int64_t sizes[][2] = {{2100, 83}, {2101, 41}, {1028, 170}, {9300, 19}, {2048, 3}};
    uint64_t seed = 0;
    simt_limits.multiprocessors = 1;
    for (int i = 0; i < COUNT(sizes); i++)
        for (int kind = 0; kind < 4; kind++, seed++) {
            const int32_t dtype = kind == 1 ? ONEPASS_BF16 : ONEPASS_F32;
            const row_case c = {.loss = kind == 3   ? "cross_entropy_with_probabilities"
                                        : kind == 2 ? "cross_entropy"
                                                    : label_loss_in_turn(seed),
                                .dtype = dtype,
                                .target = kind == 3 ? dtype : ONEPASS_I64,
                                .gradient = dtype,
                                .rows = sizes[i][1],
                                .classes = sizes[i][0],
                                .wanted = i == 1 ? ROW_VALUE | ROW_GRADIENT : ROW_VALUE | (seed % 2 ? ROW_STATE : 0),
                                .smoothing = kind == 2 ? 0.1 : 0,
                                .some_ignored = kind < 2,
                                .seed = seed};
            run_case(&c);
        }
    simt_limits.multiprocessors = MULTIPROCESSORS;
}

/* More terms than one block adds up, once as many as are too many for one, and what they count for. */
static void test_totals(int32_t dtype) {
    for (int i = 0; i < 6; i++) {
        char text[600];
        const row_case c = {.loss = "nll",
                            .dtype = dtype,
                            .target = ONEPASS_I64,
                            .gradient = dtype,
                            .rows = i == 0  ? 33000
                                    : i % 2 ? 3072
                                            : 2500,
                            .classes = 2,
                            .class_weight = i % 3,
                            .weight = i % 3 == 2,
                            .reduction = i == 5 ? ONEPASS_SUM : ONEPASS_MEAN,
                            .wanted = ROW_VALUE,
                            .some_ignored = true,
                            .seed = (uint64_t)i};
        prepared_row_case *expected = row_prepare(&c);
        row_describe(&c, text, sizeof text);
        if (CHECK_OK(onepass_run(&expected->call), text)) {
            run_shape(&c, expected, (cuda_shape){0}, text);
            run_shape(&c, expected, (cuda_shape){.tiles_per_block = i == 0 ? 8 : 1 + i % 2}, text);
        }
        row_free(expected);
    }
}

/* Of rows whose tiles share a shift a quick run takes one loss of each kind of data, and each loss once. */
static void test_rows_by_one_shift(bool quick) {
    for (int i = 0; i < row_long_cases(); i++) {
        const row_case c = row_long_case(i);
        if (!quick || i <= label_loss_count() || i + 2 >= row_long_cases())
            run_case(&c);
    }
}

/* Rows of more tiles than can wait: the label in a later span. */
static void test_long_rows(int32_t dtype, bool quick) {
    for (int i = quick; i < 3; i++) {
        const row_case c = {.loss = i == 2 ? "cross_entropy_with_probabilities" : "cross_entropy",
                            .dtype = dtype,
                            .target = i == 2 ? dtype : ONEPASS_I64,
                            .gradient = dtype,
                            .rows = quick ? 1 : 2,
                            .classes = 1024 * 1100 + 12,
                            .data = i == 1 ? ROW_CONFIDENT : ROW_NORMAL,
                            .wanted = ROW_VALUE | ROW_GRADIENT | ROW_STATE,
                            .smoothing = i == 1 ? 0.1 : 0,
                            .seed = (uint64_t)i};
        run_case(&c);
    }
}

/* Backward from a state where many a label's exponential is lost beside the others': slopes made of its logarithm. */
static void test_lost_labels(int32_t dtype) {
    static const int64_t sizes[] = {10, 150, 1000, 4096, 12288};
    for (int i = 0; i < 2 * COUNT(sizes); i++) {
        const row_case c = {.loss = "generalized_cross_entropy",
                            .dtype = dtype,
                            .target = ONEPASS_I64,
                            .gradient = dtype,
                            .rows = 19,
                            .classes = sizes[i / 2],
                            .layout = i % 2 ? ROW_IMAGES : ROW_DENSE,
                            .wanted = ROW_GRADIENT | ROW_FROM_STATE,
                            .temperature = dtype == ONEPASS_F64 ? 0.005 : 0.03,
                            .seed = (uint64_t)i};
        run_case(&c);
    }
}

/* Labels that are no class: the CPU refuses them, the GPU has NaN in those rows, and the others as without them. */
static void test_bad_labels(int32_t dtype) {
    static const int64_t sizes[] = {1, 10, 1000, 4096, 12288, 1001, 17412};
    for (int i = 0; i < COUNT(sizes); i++)
        for (int nll = 0; nll < 2; nll++) {
            char kernel[96] = "";
            job job;
            row_case c = {.loss = nll ? "nll" : "cross_entropy",
                          .dtype = dtype,
                          .target = ONEPASS_I64,
                          .gradient = ONEPASS_F64,
                          .reduction = ONEPASS_NONE,
                          .rows = 7,
                          .classes = sizes[i],
                          .wanted = ROW_VALUE | ROW_GRADIENT | (nll ? 0 : ROW_LSE | ROW_STATE),
                          .class_weight = i % 2,
                          .bad_labels = true,
                          .seed = (uint64_t)i};
            c.gradient = dtype;
            prepared_row_case *p = row_prepare(&c);
            if (CHECK_OK(onepass_plan(&p->call, &job), "bad labels") &&
                run_steps(&job, c.seed, "bad labels", kernel, sizeof kernel))
                for (int64_t row = 0; row < c.rows; row++) {
                    const bool bad = row % 3 == 0;
                    const double value = oracle_load(dtype, row_element(p, p->call.value, row, -1));
                    const double first = oracle_load(dtype, row_element(p, p->call.gradient[0], row, 0));
                    const double last = oracle_load(dtype, row_element(p, p->call.gradient[0], row, c.classes - 1));
                    CHECK(isnan(value) == bad && isnan(first) == bad && isnan(last) == bad,
                          "%s of %lld classes, row %lld: got value %g, gradients %g and %g; %s", c.loss,
                          (long long)c.classes, (long long)row, value, first, last, kernel);
                }
            row_free(p);
        }
}

/* A mean whose divisor is counted: with an upstream gradient of 1, or with that which is expected, nothing is written,
 * with another all is, and without one gradients are for that. */
static void test_skip_if_one(int32_t dtype) {
    static const int64_t sizes[] = {10, 21, 30, 1000, 1001, 4096, 9000, 9001, 17412};
    for (int i = 0; i < COUNT(sizes); i++)
        for (int one = 0; one < 4; one++) {
            char difference[200], kernel[96] = "";
            job job;
            const row_case c = {.loss = "cross_entropy",
                                .dtype = dtype,
                                .target = ONEPASS_I64,
                                .gradient = dtype,
                                .rows = 40,
                                .classes = sizes[i],
                                .wanted = ROW_GRADIENT,
                                .some_ignored = true,
                                .upstream = true,
                                .seed = (uint64_t)i};
            prepared_row_case *expected = row_prepare(&c), *got = row_prepare(&c);
            for (int k = 0; k < 2; k++) {
                prepared_row_case *p = k ? got : expected;
                p->call.flags = one < 3 ? ONEPASS_SKIP_IF_UPSTREAM_IS_ONE : 0;
                if (one == 1)
                    row_store(p, p->call.upstream, 0, -1, 1);
                if (one >= 2)
                    p->call.expected_upstream = (double)-0.37f;
                if (one == 3)
                    p->call.upstream = NULL;
            }
            if (CHECK_OK(onepass_run(&expected->call), "skipping") &&
                CHECK_OK(onepass_plan(&got->call, &job), "skipping") &&
                run_steps(&job, c.seed, "skipping", kernel, sizeof kernel)) {
                const bool equal = row_equal(expected, got->block, difference, sizeof difference);
                CHECK(equal, "%lld classes, upstream gradient %d; %s: %s", (long long)c.classes, one, kernel,
                      difference);
            }
            row_free(expected);
            row_free(got);
        }
}

/* Classes that are shared out. */
static onepass_status run_share(const onepass_call *call, const char *what) {
    char kernel[96] = "";
    job job;
    const onepass_status status = onepass_plan(call, &job);
    if (status == ONEPASS_OK)
        run_steps(&job, 1, what, kernel, sizeof kernel);
    return status;
}

static void test_shards(bool in_double, bool quick) {
    static const shard_place place = {malloc, free, run_share};
    for (uint64_t seed = 0; seed < (quick ? 120 : 400); seed++) {
        if (seed % 5 == 0)
            onepass_cuda_shape = (cuda_shape){.kernels = CUDA_GENERAL_KERNELS};
        shard_check(&place, seed, in_double, 0);
        onepass_cuda_shape = (cuda_shape){0};
    }
    shard_check(&place, 1, in_double, ONEPASS_TILE * 200 + 12);
    shard_check(&place, 1, in_double, ONEPASS_TILE * 1100 + 12);
}

/* ------------------------------------------------------------------ all -- */

static bool has_smoothing(const onepass_loss_info *info) {
    bool has = false;
    for (int32_t i = 0; i < info->parameter_count; i++)
        has |= strcmp(info->parameter[i].name, "label_smoothing") == 0;
    return has;
}

/* The name of a kernel that no case has launched so far; "" if there is none. */
static kernel_name not_launched(const onepass_loss_info *info, int32_t compute) {
    const row_kind kind = !info->has_log_sum_exp                           ? ROW_PICKED
                          : info->over_rows == ONEPASS_CLASS_PROBABILITIES ? ROW_PROBABILITIES
                                                                           : ROW_LABEL;
    for (int variant = 0; variant < CUDA_VARIANTS; variant++) {
        const kernel_name name = simt_name(info->name, (cuda_variant)variant);
        if (strstr(name.text, "weighed") && !has_smoothing(info))
            continue; /* which nobody can ask for */
        if (onepass_cuda_has_row_variant(kind, compute, (cuda_variant)variant) && !simt_was_launched(&name))
            return name;
    }
    return (kernel_name){""};
}

/* Which kernels the cases before have met depends on how many losses there are to draw from: as many more are drawn as
 * a loss needs. */
static void launch_the_rest(uint64_t first, int32_t compute) {
    for (int i = 0; onepass_row_loss_at(i); i++) {
        const onepass_loss_info *info = onepass_row_loss_at(i);
        for (uint64_t seed = first; seed < 20 * first && *not_launched(info, compute).text; seed++) {
            const row_case c = row_draw(seed, compute == ONEPASS_F64);
            if (strcmp(c.loss, info->name) == 0)
                run_case(&c);
        }
        const kernel_name missing = not_launched(info, compute);
        CHECK(!*missing.text, "expected that %s of %s is launched", missing.text, oracle_dtype_name(compute));
    }
    simt_forget_launches();
}

int main(int argc, char **argv) {
    const bool quick = check_quick("three of four cases that are drawn, nine of ten in double, and of long rows");
    const char *only = argc > 1 ? argv[1] : "";
    for (int in_double = 0; in_double < 2; in_double++) {
        const uint64_t cases = !quick ? 800 : in_double ? 80 : 200; /* which has few kernels */
        if (strcmp(only, in_double ? "f32" : "f64") == 0)
            continue;
        const int32_t dtype = in_double ? ONEPASS_F64 : ONEPASS_F32;
        if (argc > 2) {
            const row_case c = row_draw(strtoull(argv[2], NULL, 10), in_double);
            run_case(&c);
            continue;
        }
        if (!in_double) {
            test_main_paths();
            test_many_rows();
            test_plain_rows();
            test_teams();
            test_simple_rows();
            test_wide_rows();
            test_waves();
            test_clusters();
            test_rows_by_one_shift(quick);
        }
        for (uint64_t seed = 0; seed < cases; seed++) {
            const row_case c = row_draw(seed, in_double);
            run_case(&c);
        }
        test_lost_labels(dtype);
        test_totals(dtype);
        test_bad_labels(dtype);
        test_skip_if_one(dtype);
        if (!in_double) {
            test_bad_labels(ONEPASS_BF16);
            test_skip_if_one(ONEPASS_BF16);
        }
        test_long_rows(dtype, quick);
        test_shards(in_double, quick);
        launch_the_rest(cases, dtype);
    }
    return check_finish();
}
