/*
 * The CUDA engine's kernels on the CPU, thread by thread, against the CPU engine:
 * every case of the list as the plan would launch it, then other launch shapes,
 * many tiles, gradients that are scaled later or computed anew, tensors at the edge of
 * memory and beyond 2^32 elements. Whole blocks of memory are compared, poison included. All
 * launches share one workspace.
 *
 *   test_simt [f32|f64]      the kernels of one compute type, or of both
 *
 * ONEPASS_SIMT_SEED in the environment is a number that is added to every seed.
 */
#define _GNU_SOURCE
#include "cases.h"
#include "check.h"
#include "plan/plan.h"
#include "fence.h"
#include "oracle.h"
#include "launch.h"

#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* ------------------------------------------------------------ a launch -- */

static _Alignas(256) unsigned char workspace[ONEPASS_WORKSPACE_SIZE + CUDA_WORKSPACE_HEAD + MARGIN];
static uint64_t first_seed;
static int32_t flags_of_cases; /* of onepass_flags */

/* How a job was launched, for messages. */
typedef struct how {
    char text[160];
} how;

static how describe(const cuda_launch *launch, uint64_t seed) {
    how how;
    snprintf(how.text, sizeof how.text, "onepass_%s_%s of %s, %u blocks of %u threads, seed %llu",
             launch->loss->info.name, onepass_cuda_variant[launch->variant].name, oracle_dtype_name(launch->compute),
             launch->blocks, launch->threads, (unsigned long long)seed);
    return how;
}

static size_t first_other(const unsigned char *bytes, size_t count, unsigned char expected) {
    size_t i = 0;
    while (i < count && bytes[i] == expected) {
        i++;
    }
    return i;
}

/* The head of the workspace, which has the counter, is zeroed once; the rest may hold anything. */
static void poison_workspace(const cuda_launch *launch) {
    memset(workspace + CUDA_WORKSPACE_HEAD, 0xff, launch->workspace + MARGIN);
}

/* The sum of weights that the last launch of such has left is of no meaning to any launch but the next. */
static void poison_weights(void) {
    memset(workspace + CUDA_WEIGHTS_AT, 0xff, sizeof(double));
}

/* Afterwards the head is zero again but for the sum of weights, whether the launch has left it so or not. Blocks that
 * are awaited (await.h) leave sums by marks, which are gone: a sum of an earlier launch must not be found. */
static void check_workspace(const cuda_launch *launch, uint64_t seed, const char *what) {
    const size_t size = launch->workspace ? launch->workspace : CUDA_WORKSPACE_HEAD;
    double weights;
    memcpy(&weights, workspace + CUDA_WEIGHTS_AT, sizeof weights);
    memset(workspace + CUDA_WEIGHTS_AT, 0, sizeof weights);
    const size_t zeros = first_other(workspace, CUDA_WORKSPACE_HEAD, 0);
    CHECK(zeros == CUDA_WORKSPACE_HEAD, "%s; %s: expected the workspace's head at zero, got %02x at byte %zu", what,
          describe(launch, seed).text, workspace[zeros], zeros);
    const int kind = onepass_cuda_variant[launch->variant].kind;
    if ((kind == kind_small || kind == kind_small_mean) && size > CUDA_WORKSPACE_HEAD) {
        const size_t cleared = first_other(workspace + CUDA_WORKSPACE_HEAD, size - CUDA_WORKSPACE_HEAD, 0);
        CHECK(cleared == size - CUDA_WORKSPACE_HEAD, "%s; %s: left a sum that the next launch would take for its own",
              what, describe(launch, seed).text);
    }
    const size_t beyond = first_other(workspace + size, MARGIN, 0xff);
    CHECK(beyond == MARGIN, "%s; %s: wrote beyond its %zu bytes of workspace", what, describe(launch, seed).text, size);
    memset(workspace, 0, CUDA_WORKSPACE_HEAD);
    memcpy(workspace + CUDA_WEIGHTS_AT, &weights, sizeof weights);
}

/* The launch bounds of the kernels. */
static uint32_t most_threads_of(const cuda_launch *launch) {
    const int32_t tiles = 8; /* of those for a few tiles */
    switch (onepass_cuda_variant[launch->variant].kind) {
    case kind_few:
    case kind_few_mean:
        return tiles * CUDA_FEW_WARPS * 32;
    case kind_tiny:
    case kind_tiny_both:
        return CUDA_TINY_WARPS * 32;
    case kind_tiny_mean:
        return (CUDA_TINY_WARPS + 1) * 32;
    case kind_whole:
        return CUDA_WHOLE_WARPS * 32;
    default:
        return CUDA_MOST_WARPS * 32;
    }
}

/* What a GPU would refuse: more threads than the kernels' launch bounds, more shared memory (with a little that is
 * not dynamic) than the 48 KiB that need no special request. Shapes that a test asks for may go beyond. */
static bool check_plan(const cuda_launch *launch, const char *what) {
    const bool forced = onepass_cuda_shape.warps != 0;
    const uint32_t most_threads = forced ? SIMT_MOST_THREADS : most_threads_of(launch);
    const uint32_t most_shared_memory = forced ? 400 * 1024 : 44 * 1024;
    return CHECK(launch->threads % 32 == 0 && launch->threads >= 32 && launch->threads <= most_threads &&
                     launch->shared_memory <= most_shared_memory && launch->workspace <= ONEPASS_WORKSPACE_SIZE,
                 "%s: a plan that cannot be launched: %s, %u bytes of shared memory, %zu of workspace", what,
                 describe(launch, 0).text, launch->shared_memory, launch->workspace);
}

/* Runs the blocks from `first_block` on, or all if their number is 0. A job without work has no launch. */
static bool run_blocks(cuda_launch *launch, uint64_t seed, uint32_t first_block, uint32_t block_count,
                       const char *what) {
    if (launch->blocks == 0) {
        return true;
    }
    if (!check_plan(launch, what)) {
        return false;
    }
    onepass_cuda_give_workspace(launch, launch->workspace ? workspace : NULL);
    poison_workspace(launch);
    if (!CHECK(simt_run_plan(launch, first_seed + seed, first_block, block_count), "%s: there is no kernel %s", what,
               describe(launch, seed).text)) {
        return false;
    }
    check_workspace(launch, seed, what);
    return true;
}

/* The launch that comes before that of a job which is divided by the sum of its weights. */
static void plan_before(const job *job, cuda_launch *launch) {
    struct job weights;
    onepass_plan_weights(job, &weights);
    onepass_cuda_plan(&weights, MULTIPROCESSORS, launch);
}

static bool has_launch_before(const job *job) {
    return job->over_weights && !onepass_cuda_weighs_itself(job) && !onepass_cuda_finds_divisor(job);
}

/* Says whether it could be launched. */
static bool plan_and_run(const job *job, uint64_t seed, const char *what, cuda_launch *launch) {
    poison_weights();
    if (has_launch_before(job)) {
        plan_before(job, launch);
        if (!run_blocks(launch, seed, 0, 0, what)) {
            return false;
        }
    }
    onepass_cuda_plan(job, MULTIPROCESSORS, launch);
    return run_blocks(launch, seed, 0, 0, what);
}

/* --------------------------------------------------------------- a case -- */

static void compare_blocks(const prepared_case *expected, const prepared_case *got, const char *how, const char *what) {
    char difference[160];
    if (case_equal(expected, got, difference, sizeof difference)) {
        CHECK(1, "equal");
    } else {
        CHECK(0, "%s; %s: %s", what, how, difference);
    }
}

/* What the CPU engine divides a mean by. */
static double divisor_of_case(const test_case *c, const char *what) {
    double divided_by = 0;
    const onepass_tensor tensor = {&divided_by, ONEPASS_F64, 0, NULL, NULL};
    prepared_case *copy = case_prepare(c);
    copy->call.flags = flags_of_cases;
    copy->call.divided_by = &tensor;
    CHECK_OK(onepass_run(&copy->call), what);
    case_free(copy);
    return divided_by;
}

/* The same case with what its mean is divided by known beforehand. */
static void run_with_divisor(const test_case *c, const prepared_case *expected, uint64_t seed, const char *what) {
    job job;
    cuda_launch launch;
    double divisor = divisor_of_case(c, what);
    const onepass_tensor tensor = {&divisor, ONEPASS_F64, 0, NULL, NULL};
    prepared_case *got = case_prepare(c);
    got->call.flags = flags_of_cases & ~(uint32_t)ONEPASS_OVER_ELEMENTS;
    got->call.divisor_tensor = &tensor;
    if (CHECK_OK(onepass_plan(&got->call, &job), what) && CHECK(!has_launch_before(&job), "%s: two launches", what) &&
        plan_and_run(&job, seed, what, &launch)) {
        compare_blocks(expected, got, describe(&launch, seed).text, what);
    }
    case_free(got);
}

/* `expected` has been through the CPU engine. */
static void run_on_copy(const test_case *c, const prepared_case *expected, uint64_t seed, const char *what) {
    job job;
    cuda_launch launch;
    prepared_case *got = case_prepare(c);
    got->call.flags = flags_of_cases;
    double divided_by = 0;
    if (CHECK_OK(onepass_plan(&got->call, &job), what)) {
        const bool is_told = onepass_cuda_weighs_itself(&job), over_weights = job.over_weights;
        if (is_told) {
            job.divided_by = (view){.data = &divided_by, .dtype = ONEPASS_F64};
        }
        if (plan_and_run(&job, seed, what, &launch)) {
            compare_blocks(expected, got, describe(&launch, seed).text, what);
        }
        if (is_told) {
            const double wanted = divisor_of_case(c, what);
            CHECK(divided_by == wanted || (isnan(divided_by) && isnan(wanted)), "%s; %s: divided by %a, told %a", what,
                  describe(&launch, seed).text, wanted, divided_by);
        }
        if (over_weights && job.gradient[0].data) {
            run_with_divisor(c, expected, seed, what);
        }
    }
    case_free(got);
}

/* Which kernel the plan takes for a call, as things stand, and which one before it; as one number. */
static int32_t kernels_for(const onepass_call *call, const char *what) {
    job job;
    cuda_launch launch = {.variant = 0}, before = {.variant = 0};
    if (CHECK_OK(onepass_plan(call, &job), what)) {
        onepass_cuda_plan(&job, MULTIPROCESSORS, &launch);
        if (has_launch_before(&job)) {
            plan_before(&job, &before);
        }
    }
    return (int32_t)before.variant * CUDA_VARIANTS + (int32_t)launch.variant;
}

/* By every kernel that can do it, in the plan's own shape. */
static void run_kernels(const test_case *c, const prepared_case *expected, uint64_t seed, const char *what) {
    static const int32_t choices[] = {0, CUDA_SMALL_KERNELS, CUDA_LARGE_KERNELS, CUDA_GENERAL_KERNELS};
    int32_t kernel[COUNT(choices)];
    for (int i = 0; i < COUNT(choices); i++) {
        bool again = false;
        onepass_cuda_shape = (cuda_shape){.kernels = choices[i]};
        kernel[i] = kernels_for(&expected->call, what);
        for (int j = 0; j < i; j++) {
            again = again || kernel[j] == kernel[i];
        }
        if (!again) {
            run_on_copy(c, expected, seed, what);
        }
    }
}

/* In each of these shapes, or if there are none in the plan's own. */
static void run_case(const test_case *c, const cuda_shape *shapes, int count, uint64_t seed) {
    char text[512];
    prepared_case *expected = case_prepare(c);
    expected->call.flags = flags_of_cases;
    case_describe(c, text, sizeof text);
    if (CHECK_OK(onepass_run(&expected->call), text)) {
        if (count == 0) {
            run_kernels(c, expected, seed, text);
        }
        for (int i = 0; i < count; i++) {
            onepass_cuda_shape = shapes[i];
            run_on_copy(c, expected, seed * 1000 + (uint64_t)i, text);
        }
        onepass_cuda_shape = (cuda_shape){0};
    }
    case_free(expected);
}

static int32_t compute_type(const test_case *c) {
    return case_in_double(c) ? ONEPASS_F64 : ONEPASS_F32;
}

static void test_list(int32_t compute, size_t step) {
    size_t count;
    const test_case *cases = case_list(&count);
    size_t run = 0;
    for (size_t i = 0; i < count; i += step) {
        if (compute_type(&cases[i]) == compute) {
            run_case(&cases[i], NULL, 0, i);
            run++;
        }
    }
    printf("%s: %zu cases of the list\n", oracle_dtype_name(compute), run);
}

/* ------------------------------------------------------ every fast path -- */

/* The layouts, types and outputs for which there may be kernels of their own, each with each; of losses that are not
 * swept what matters most. */
static void sweep_fast_paths(const char *loss, int32_t dtype, int64_t rows, int64_t columns, int step) {
    const bool swept = case_loss_is_swept(loss);
    static const char *const layouts[] = {"dense",
                                          "target scalar",
                                          "target per row",
                                          "target shared row",
                                          "prediction per row",
                                          "in place, prediction",
                                          "in place, both"};
    int turn = 0;
    for (int i = 0; i < (swept ? COUNT(layouts) : 1); i++) {
        for (int32_t reduction = ONEPASS_MEAN; reduction <= ONEPASS_NONE; reduction++) {
            for (int32_t wanted = 1; wanted <= WANT_ALL; wanted++, turn++) {
                test_case c = case_dense("fast paths", loss, dtype, columns);
                c.upstream_dtype = turn % 2 ? ONEPASS_F32 : dtype;
                c.reduction = reduction;
                c.wanted = wanted;
                c.upstream = turn / 2 % 4;
                c.layout = case_layout_named(layouts[i]);
                c.rows = rows;
                c.seed = (uint64_t)turn;
                /* A mean of one output or two has the kernels that matter most, so none of these is left out. */
                if ((swept && turn % step == 0) || (reduction == ONEPASS_MEAN && wanted <= 3)) {
                    run_case(&c, NULL, 0, (uint64_t)turn);
                }
            }
        }
    }
}

/* By the number of the turn: weights, a mask, or both. */
static void give_factors(test_case *c, int turn) {
    const int kinds = 1 + turn % 3;
    c->weight = kinds & 1 ? WEIGHT_DENSE : WEIGHT_ABSENT;
    c->mask = kinds & 2 ? WEIGHT_DENSE : WEIGHT_ABSENT;
}

/* Dense weights and masks, one of them or both, of every loss; with an end within a tile and without one. Warps have a
 * tile each, or one has all. */
static void sweep_weighted(const char *loss, int32_t dtype, int64_t columns, bool by_one_warp) {
    const cuda_shape one_warp = {.warps = 1, .tiles_per_block = 4, .kernels = CUDA_LARGE_KERNELS};
    for (int turn = 0; turn < 15; turn++) {
        test_case c = case_dense("weighted", loss, dtype, columns);
        c.seed = (uint64_t)turn;
        give_factors(&c, turn);
        c.reduction = turn % 4 == 3 ? ONEPASS_SUM : ONEPASS_MEAN;
        c.wanted = turn >= 12 ? WANT_PREDICTION : turn / 3 % 2 ? WANT_VALUE | WANT_PREDICTION : WANT_VALUE;
        c.upstream = turn % 3;
        c.weights = turn / 6 ? WEIGHTS_SIGNED : WEIGHTS_POSITIVE;
        c.masks = turn / 6 ? MASKS_OVER_NAN : MASKS_HALF;
        const bool over_elements = turn >= 6 && c.weight != WEIGHT_ABSENT && c.reduction == ONEPASS_MEAN;
        flags_of_cases = over_elements ? ONEPASS_OVER_ELEMENTS : 0;
        run_case(&c, &one_warp, by_one_warp, (uint64_t)turn);
        flags_of_cases = 0;
    }
}

/* What the kernels for tiny inputs take, of every loss: pairs of lines up to a tile, and a few whole tiles; as a mean
 * what needs no division, or one over weights, a mask or both, the last with their gradients. And gradients alone of
 * whole lines. */
static void sweep_tiny(const char *loss, int32_t dtype) {
    static const int64_t columns[] = {256, 1024, 512, 768, 8192, 2048, 3072};
    static const int64_t whole_columns[] = {1536, 512, 2560, 1024};
    static const int64_t mean_columns[] = {1024, 768, 256, 3072, 8192, 2048, 768, 1024, 256, 2048, 2048, 2048, 5120};
    for (int turn = 0; turn < COUNT(columns); turn++) {
        test_case c = case_dense("tiny", loss, dtype, columns[turn]);
        c.seed = (uint64_t)turn;
        c.reduction = turn % 3 ? ONEPASS_MEAN : ONEPASS_SUM;
        c.wanted = turn % 2 && turn < 5 ? WANT_VALUE | WANT_PREDICTION : WANT_VALUE;
        run_case(&c, NULL, 0, (uint64_t)turn);
    }
    for (int turn = 0; turn < COUNT(mean_columns); turn++) {
        test_case c = case_dense("tiny means", loss, dtype, mean_columns[turn]);
        c.seed = (uint64_t)turn;
        give_factors(&c, turn);
        c.weights = WEIGHTS_SIGNED;
        c.masks = turn % 2 ? MASKS_OVER_NAN : MASKS_HALF;
        c.wanted = mean_columns[turn] <= 2048 && turn > 5 ? WANT_VALUE | WANT_PREDICTION : WANT_VALUE;
        run_case(&c, NULL, 0, (uint64_t)turn);
    }
    for (int turn = 0; turn < 2 * COUNT(whole_columns); turn++) {
        test_case c = case_dense("whole lines", loss, dtype, whole_columns[(turn + turn / 4) % COUNT(whole_columns)]);
        c.seed = (uint64_t)turn;
        c.upstream = turn % 3 ? UPSTREAM_OTHER : UPSTREAM_ONE;
        c.upstream_dtype = ONEPASS_F32;
        c.wanted = WANT_PREDICTION;
        c.reduction = turn == 7 ? ONEPASS_SUM : ONEPASS_MEAN;
        if (turn % 4 < 3) {
            give_factors(&c, turn % 4);
        }
        c.weights = WEIGHTS_SIGNED;
        c.masks = turn < 4 ? MASKS_OVER_NAN : MASKS_HALF;
        run_case(&c, NULL, 0, (uint64_t)turn);
    }
}

/* Rows of whole tiles, and an end within a tile. */
static void test_fast_paths(int32_t compute, int step) {
    const int32_t first = compute == ONEPASS_F64 ? ONEPASS_F64 : ONEPASS_F16;
    for (int l = 0; oracle_loss_at(l); l++) {
        for (int32_t dtype = first; dtype <= compute; dtype++) {
            sweep_fast_paths(oracle_loss_at(l)->name, dtype, 3, 2048, step);
            sweep_fast_paths(oracle_loss_at(l)->name, dtype, 1, 3077, step);
        }
        sweep_weighted(oracle_loss_at(l)->name, compute, 3077, l % 2 == 0);
        sweep_weighted(oracle_loss_at(l)->name, compute, 2048, l % 2 == 1);
        sweep_tiny(oracle_loss_at(l)->name, compute);
    }
}

/* ------------------------------------------------------- launch shapes -- */

/* With few tiles a block, small inputs make many blocks and a tall tree of partial sums; with few
 * blocks each goes over its tiles in many sweeps. */
static const int32_t all_warps[] = {1, 2, 4, 8, 16};
static const int32_t all_tiles[] = {1, 2, 4, 8, 16};
static const int32_t all_blocks[] = {0, 1, 2, 3, 4, 130};

enum {
    SHAPES = 5 * 5 * 6 * 3 /* the last: the choice of kernels */
};

static cuda_shape shape_at(int index) {
    return (cuda_shape){.warps = all_warps[index % 5],
                        .tiles_per_block = all_tiles[index / 5 % 5],
                        .most_blocks = all_blocks[index / 25 % 6],
                        .kernels = index / 150 % 3};
}

/* `each` of the shapes, another choice for every turn: 31 shares no factor with their number. */
static int choose_shapes(cuda_shape *shapes, int each, int turn) {
    for (int i = 0; i < each; i++) {
        shapes[i] = shape_at((turn * each + i) * 31 % SHAPES);
    }
    return each;
}

/* Every so-manieth case of the list under a few shapes. */
static void test_shapes(int32_t compute, size_t step) {
    size_t count;
    cuda_shape shapes[SHAPES];
    const test_case *cases = case_list(&count);
    int turn = 0;
    for (size_t i = 3; i < count; i += 7 * step) {
        if (compute_type(&cases[i]) == compute) {
            run_case(&cases[i], shapes, choose_shapes(shapes, 5, turn++), i);
        }
    }
}

/*
 * Many tiles out of little memory: the prediction is a row for all rows, the target a
 * number for each. The numbers span many orders of magnitude, so that the sum depends
 * on the order: within 2^22 numbers of like size a double adds floats exactly.
 */
static test_case case_of_tiles(const char *loss, int32_t compute, int64_t tiles, int32_t wanted) {
    const int64_t columns = 1021; /* no tile but the first begins with a row */
    return (test_case){.group = "many tiles",
                       .loss = loss,
                       .prediction = compute,
                       .target = ONEPASS_F32,
                       .gradient = compute,
                       .value = ONEPASS_F64,
                       .upstream_dtype = ONEPASS_F32,
                       .reduction = tiles % 2 ? ONEPASS_SUM : ONEPASS_MEAN,
                       .wanted = wanted,
                       .layout = case_layout_named("both broadcast"),
                       .rows = tiles * ONEPASS_TILE / columns,
                       .columns = columns,
                       .data = DATA_WIDE,
                       .seed = (uint64_t)tiles};
}

/* The same with weights of both signs: two trees, whose launches have the same shape or not. */
static void test_weighted_tiles(int32_t compute, bool quick) {
    static const int64_t tiles[] = {2, 3, 5, 9, 17, 33, 65, 130, 257, 700};
    static const int32_t weights[] = {WEIGHT_DENSE, WEIGHT_PER_ROW, WEIGHT_SHARED_ROW, WEIGHT_STEP_TWO};
    cuda_shape shapes[SHAPES];
    for (int i = 0; i < COUNT(tiles); i += quick ? 3 : 1) {
        for (int l = 0; oracle_loss_at(l); l++) {
            if (!case_loss_is_swept(oracle_loss_at(l)->name)) {
                continue;
            }
            test_case c = case_of_tiles(oracle_loss_at(l)->name, compute, tiles[i], WANT_VALUE | WANT_PREDICTION);
            c.reduction = ONEPASS_MEAN;
            c.weight = weights[(i + l) % COUNT(weights)];
            c.weight_dtype = l % 2 ? ONEPASS_F16 : compute;
            c.weights = l % 2 ? WEIGHTS_SIGNED : WEIGHTS_WIDE;
            run_case(&c, NULL, 0, (uint64_t)i);
            run_case(&c, shapes, choose_shapes(shapes, tiles[i] < 100 ? 12 : 2, 3 * i + l), (uint64_t)i);
        }
    }
}

/* The same for the order within a tile, which few tiles show best: among many, a last bit of one is lost. */
static void test_few_tiles(int32_t compute, bool quick) {
    for (int l = 0; oracle_loss_at(l); l++) {
        if (!case_loss_is_swept(oracle_loss_at(l)->name)) {
            continue;
        }
        for (int64_t tiles = 1; tiles <= 9; tiles++) {
            for (int turn = 0; turn < (quick ? 3 : 12); turn++) {
                test_case c = case_of_tiles(oracle_loss_at(l)->name, compute, tiles, WANT_VALUE);
                c.layout = turn % 3 == 2 ? LAYOUT_UNALIGNED : LAYOUT_DENSE;
                c.target = compute;
                c.rows = 1;
                c.value = turn % 2 ? ONEPASS_F32 : ONEPASS_F64;
                c.columns = tiles * ONEPASS_TILE - (turn % 2 ? 256 * (turn / 4) : 5 * turn);
                c.seed = (uint64_t)(100 * tiles + turn);
                run_case(&c, NULL, 0, c.seed);
            }
        }
    }
}

/* Small kernels of so many blocks that several warps of the last one, or one of them several times, await the others.
 */
static void test_awaited_blocks(bool quick) {
    static const int64_t tiles[] = {64, 65, 129, 300, 513, 1025};
    for (int i = 0; i < (quick ? 3 : COUNT(tiles)); i++) {
        for (int kinds = 0; kinds < 4; kinds++) { /* none, a weight, a mask, both */
            const cuda_shape shapes[] = {{.tiles_per_block = 1}, {.tiles_per_block = 4}, {0}};
            test_case c = case_of_tiles("mse", ONEPASS_F32, tiles[i], WANT_VALUE);
            c.layout = LAYOUT_DENSE;
            c.value = kinds % 2 ? ONEPASS_F32 : ONEPASS_F64;
            c.reduction = ONEPASS_MEAN;
            c.rows = 1;
            c.columns = tiles[i] * ONEPASS_TILE - 5 * i;
            c.weight = kinds & 1 ? WEIGHT_DENSE : WEIGHT_ABSENT;
            c.weight_dtype = ONEPASS_F32;
            c.weights = WEIGHTS_WIDE;
            c.mask = kinds & 2 ? WEIGHT_DENSE : WEIGHT_ABSENT;
            run_case(&c, shapes, COUNT(shapes), c.seed);
        }
    }
}

/* Both sides of the powers of two at which the tree, the warps or the plan may take another path. */
static void test_many_tiles(int32_t compute, bool quick) {
    static const int64_t tiles[] = {2,   3,   7,   15,  17,  31,  33,   63,   65,   127,  129, 130,
                                    255, 257, 511, 513, 700, 999, 1025, 1300, 2047, 2049, 3000};
    cuda_shape shapes[SHAPES];
    for (int i = 0; i < COUNT(tiles); i += quick ? 5 : 1) {
        const int32_t wanted = i % 3 ? WANT_VALUE : WANT_VALUE | WANT_PREDICTION;
        for (int l = 0; oracle_loss_at(l); l++) {
            if (!case_loss_is_swept(oracle_loss_at(l)->name)) {
                continue;
            }
            const test_case c = case_of_tiles(oracle_loss_at(l)->name, compute, tiles[i], wanted);
            run_case(&c, NULL, 0, (uint64_t)i);
            /* Each shape comes up often with few tiles, now and then with many. */
            const int each = tiles[i] < 100 ? 12 : tiles[i] < 600 ? 4 : 1;
            run_case(&c, shapes, choose_shapes(shapes, each, 3 * i + l), (uint64_t)i);
        }
    }
}

/* One job again and again, each time in another order of events, out of one workspace. */
static void test_seeds(int32_t compute, bool quick) {
    const test_case c = case_of_tiles("mse", compute, 21, WANT_ALL);
    cuda_shape shapes[100];
    const int repeats = quick ? 20 : COUNT(shapes);
    for (int i = 0; i < repeats; i++) {
        shapes[i] = (cuda_shape){1 << i % 3, 2, i % 2 ? 0 : 3, i / 4 % 3};
    }
    run_case(&c, shapes, repeats, 77);
}

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
        CHECK_OK(onepass_plan_scale(&scale, &job), what) && plan_and_run(&job, seed, what, &launch)) {
        compare_blocks(expected, got, describe(&launch, seed).text, what);
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
        plan_and_run(&job, (uint64_t)upstream_dtype, "scaling by 1", &launch);
    }
    munmap(nowhere, bytes);
}

static void test_scale(int32_t compute, bool quick) {
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
        CHECK_OK(onepass_plan(&got->call, &job), what) && plan_and_run(&job, seed, what, &launch)) {
        compare_blocks(expected, got, describe(&launch, seed).text, what);
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
    if (CHECK_OK(onepass_plan(&call, &job), "left alone") && plan_and_run(&job, 1, "left alone", &launch)) {
        CHECK(launch.variant == variant_general, "left alone: got %s", describe(&launch, 1).text);
    }
    onepass_cuda_shape = (cuda_shape){0};
    munmap(nowhere, 4 * bytes);
}

static void test_skip_if_one(int32_t compute, bool quick) {
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

/* ---------------------------------------------------------------- edges -- */

/* The sum of count squares of 2, with both gradients, all at one edge of their memory. */
static void run_at_edge(fenced memory[4], int32_t dtype, int64_t count, bool at_end) {
    onepass_tensor tensor[4];
    const size_t bytes = (size_t)count * oracle_size(dtype);
    double value = 0;
    job job;
    cuda_launch launch;
    const onepass_tensor scalar = {&value, ONEPASS_F64, 0, NULL, NULL};
    for (int i = 0; i < 4; i++) {
        memset(memory[i].begin, 0, memory[i].bytes);
        tensor[i] = (onepass_tensor){memory[i].begin + (at_end ? memory[i].bytes - bytes : 0), dtype, 1, &count, NULL};
    }
    for (int64_t i = 0; i < count; i++) {
        oracle_store(dtype, (char *)tensor[0].data + (size_t)i * oracle_size(dtype), 2.0);
    }
    const onepass_call call = {.size = sizeof call,
                               .loss = "mse",
                               .reduction = ONEPASS_SUM,
                               .operand = {&tensor[0], &tensor[1]},
                               .value = &scalar,
                               .gradient = {&tensor[2], &tensor[3]}};
    if (CHECK_OK(onepass_plan(&call, &job), "mse at the edge of memory") &&
        plan_and_run(&job, (uint64_t)count, "mse at the edge of memory", &launch)) {
        CHECK(value == 4.0 * (double)count, "%s, %lld elements at the edge: expected %g, got %g",
              oracle_dtype_name(dtype), (long long)count, 4.0 * (double)count, value);
    }
}

/* A load beyond the last element, which poison cannot show, dies here. */
static void test_edges(int32_t compute) {
    static const int64_t counts[] = {1,   2,   3,   4,   5,    7,    8,    9,    31,   33,   127,  128,
                                     129, 255, 513, 897, 1022, 1023, 1024, 1025, 1026, 1028, 2047, 2049};
    fenced memory[4];
    for (int i = 0; i < 4; i++) {
        memory[i] = fence((2 * ONEPASS_TILE + 8) * sizeof(double));
    }
    const int32_t first = compute == ONEPASS_F64 ? ONEPASS_F64 : ONEPASS_F16;
    for (int32_t dtype = first; dtype <= compute; dtype++) {
        for (int i = 0; i < COUNT(counts); i++) {
            run_at_edge(memory, dtype, counts[i], false);
            run_at_edge(memory, dtype, counts[i], true);
        }
    }
    for (int i = 0; i < 4; i++) {
        munmap(memory[i].all, memory[i].bytes + 2 * memory[i].page);
    }
}

/* -------------------------------------------------------- beyond 2^32 -- */

/* A few elements around where an index of 32 bits, signed or not, would wrap around, and the last ones. */
static void check_elements(const char *gradient, int32_t dtype, int64_t first, int64_t end) {
    for (int64_t i = first; i < end; i++) {
        const double got = oracle_load(dtype, gradient + (size_t)i * oracle_size(dtype));
        if (!CHECK(got == 4.0, "beyond 2^32: expected 4 at element %lld, got %g", (long long)i, got)) {
            return;
        }
    }
}

/*
 * The gradient of 2^32 + 5000 elements, of which only some blocks run. Memory that is
 * never touched costs nothing but addresses.
 */
static void test_beyond(int32_t compute) {
    const int64_t count = (INT64_C(1) << 32) + 5000;
    const int32_t dtype = compute == ONEPASS_F64 ? ONEPASS_F64 : ONEPASS_F16;
    const size_t bytes = (size_t)count * oracle_size(dtype);
    double two = 0, zero = 0;
    const int64_t none = 0;
    job job;
    cuda_launch launch;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        printf("left out: no room for %zu bytes of addresses\n", bytes);
        return;
    }
    oracle_store(dtype, &two, 2.0);
    const onepass_tensor p = {&two, dtype, 1, &count, &none}, t = {&zero, dtype, 1, &count, &none};
    const onepass_tensor gradient = {memory, dtype, 1, &count, NULL};
    const onepass_call call = {
        .size = sizeof call, .loss = "mse", .reduction = ONEPASS_SUM, .operand = {&p, &t}, .gradient = {&gradient}};
    onepass_cuda_shape = (cuda_shape){.warps = 4, .tiles_per_block = 4};
    if (CHECK_OK(onepass_plan(&call, &job), "beyond 2^32")) {
        onepass_cuda_plan(&job, MULTIPROCESSORS, &launch);
        const int64_t each =
            (int64_t)launch.parameter.head.sweeps * launch.parameter.head.tiles_per_block * ONEPASS_TILE;
        const int64_t around[] = {0, INT64_C(1) << 31, INT64_C(1) << 32, count - 1};
        for (int i = 0; i < COUNT(around); i++) {
            const int64_t block = around[i] / each;
            const int64_t end = (block + 1) * each < count ? (block + 1) * each : count;
            run_blocks(&launch, (uint64_t)i, (uint32_t)block, 1, "beyond 2^32");
            check_elements(memory, dtype, around[i], around[i] + 3000 < end ? around[i] + 3000 : end);
        }
    }
    onepass_cuda_shape = (cuda_shape){0};
    munmap(memory, bytes);
}

/* ------------------------------------------------------------------ all -- */

static void check_launched(const char *loss, int32_t operands, int32_t compute) {
    for (int variant = 0; variant < CUDA_VARIANTS; variant++) {
        const kernel_name name = simt_name(loss, (cuda_variant)variant);
        if (onepass_cuda_has_variant(operands, compute, (cuda_variant)variant)) {
            CHECK(simt_was_launched(&name), "expected that %s of %s is launched", name.text,
                  oracle_dtype_name(compute));
        }
    }
}

/* Every kernel of the compute type that there is has been run. */
static void check_all_launched(int32_t compute) {
    for (int i = 0; onepass_loss_at(i); i++) {
        check_launched(onepass_loss_at(i)->name, onepass_loss_at(i)->operand_count, compute);
    }
    check_launched(onepass_cuda_weights.info.name, 1, compute);
    check_launched(onepass_cuda_gradient.info.name, 0, compute);
    simt_forget_launches();
}

static void test_compute_type(int32_t compute, bool quick) {
    test_list(compute, quick ? 9 : 1);
    test_fast_paths(compute, quick ? 9 : 1);
    test_shapes(compute, quick ? 5 : 1);
    test_few_tiles(compute, quick);
    test_many_tiles(compute, quick);
    if (compute == ONEPASS_F32) {
        test_awaited_blocks(quick);
    }
    test_weighted_tiles(compute, quick);
    test_seeds(compute, quick);
    test_scale(compute, quick);
    test_skip_if_one(compute, quick);
    test_edges(compute);
    test_beyond(compute);
    check_all_launched(compute);
}

int main(int argc, char **argv) {
    const bool quick = check_quick("eight of nine cases of the list, four of five of everything else");
    const char *only = argc > 1 ? argv[1] : "";
    const char *seed = getenv("ONEPASS_SIMT_SEED");
    first_seed = seed ? strtoull(seed, NULL, 10) * 1000003 : 0;
    if (strcmp(only, "f64") != 0) {
        test_compute_type(ONEPASS_F32, quick);
    }
    if (strcmp(only, "f32") != 0) {
        test_compute_type(ONEPASS_F64, quick);
    }
    return check_finish();
}
