/*
 * Launch shapes: other numbers of warps, tiles and blocks than the plan has, many tiles and few, and one job in many
 * orders of events.
 */
#include "check.h"
#include "oracle.h"
#include "pairwise.h"

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
        if (simt_compute_type(&cases[i]) == compute) {
            simt_run_case(&cases[i], shapes, choose_shapes(shapes, 5, turn++), i);
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
            simt_run_case(&c, NULL, 0, (uint64_t)i);
            simt_run_case(&c, shapes, choose_shapes(shapes, tiles[i] < 100 ? 12 : 2, 3 * i + l), (uint64_t)i);
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
                simt_run_case(&c, NULL, 0, c.seed);
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
            simt_run_case(&c, shapes, COUNT(shapes), c.seed);
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
            simt_run_case(&c, NULL, 0, (uint64_t)i);
            /* Each shape comes up often with few tiles, now and then with many. */
            const int each = tiles[i] < 100 ? 12 : tiles[i] < 600 ? 4 : 1;
            simt_run_case(&c, shapes, choose_shapes(shapes, each, 3 * i + l), (uint64_t)i);
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
    simt_run_case(&c, shapes, repeats, 77);
}

void test_simt_shapes(int32_t compute, bool quick) {
    test_shapes(compute, quick ? 5 : 1);
    test_few_tiles(compute, quick);
    test_many_tiles(compute, quick);
    if (compute == ONEPASS_F32) {
        test_awaited_blocks(quick);
    }
    test_weighted_tiles(compute, quick);
    test_seeds(compute, quick);
}
