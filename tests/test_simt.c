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
#include "check.h"
#include "fence.h"
#include "oracle.h"
#include "pairwise.h"

#include <sys/mman.h>
#include <unistd.h>

/* ------------------------------------------------------------- the list -- */

static void test_list(int32_t compute, size_t step) {
    size_t count;
    const test_case *cases = case_list(&count);
    size_t run = 0;
    for (size_t i = 0; i < count; i += step) {
        if (simt_compute_type(&cases[i]) == compute) {
            simt_run_case(&cases[i], NULL, 0, i);
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
                    simt_run_case(&c, NULL, 0, (uint64_t)turn);
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
        simt_flags = over_elements ? ONEPASS_OVER_ELEMENTS : 0;
        simt_run_case(&c, &one_warp, by_one_warp, (uint64_t)turn);
        simt_flags = 0;
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
        simt_run_case(&c, NULL, 0, (uint64_t)turn);
    }
    for (int turn = 0; turn < COUNT(mean_columns); turn++) {
        test_case c = case_dense("tiny means", loss, dtype, mean_columns[turn]);
        c.seed = (uint64_t)turn;
        give_factors(&c, turn);
        c.weights = WEIGHTS_SIGNED;
        c.masks = turn % 2 ? MASKS_OVER_NAN : turn % 4 ? MASKS_HALF : MASKS_ALL;
        c.wanted = mean_columns[turn] <= 2048 && turn > 5 ? WANT_VALUE | WANT_PREDICTION : WANT_VALUE;
        simt_run_case(&c, NULL, 0, (uint64_t)turn);
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
        simt_run_case(&c, NULL, 0, (uint64_t)turn);
    }
}

/* Means of so many blocks that the last one can just await them, and of more. */
static void test_many_blocks(void) {
    const cuda_shape a_tile_a_block = {.warps = 1, .tiles_per_block = 1, .kernels = CUDA_LARGE_KERNELS};
    for (int turn = 0; turn < 2; turn++) {
        test_case c = case_dense("many blocks", "mse", ONEPASS_F32, (CUDA_MOST_AWAITED + turn) * ONEPASS_TILE);
        give_factors(&c, 2 - turn);
        c.wanted = WANT_VALUE;
        simt_run_case(&c, &a_tile_a_block, 1, (uint64_t)turn);
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
        simt_plan_and_run(&job, (uint64_t)count, "mse at the edge of memory", &launch)) {
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
            simt_run_blocks(&launch, (uint64_t)i, (uint32_t)block, 1, "beyond 2^32");
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
    test_simt_shapes(compute, quick);
    test_simt_scale(compute, quick);
    test_simt_skip_if_one(compute, quick);
    test_edges(compute);
    test_beyond(compute);
    if (compute == ONEPASS_F32) {
        test_many_blocks();
        test_simt_divisors();
    }
    check_all_launched(compute);
}

int main(int argc, char **argv) {
    const bool quick = check_quick("eight of nine cases of the list, four of five of everything else");
    const char *only = argc > 1 ? argv[1] : "";
    const char *seed = getenv("ONEPASS_SIMT_SEED");
    simt_first_seed = seed ? strtoull(seed, NULL, 10) * 1000003 : 0;
    if (strcmp(only, "f64") != 0) {
        test_compute_type(ONEPASS_F32, quick);
    }
    if (strcmp(only, "f32") != 0) {
        test_compute_type(ONEPASS_F64, quick);
    }
    return check_finish();
}
