/* The blocks of a launch that has rows. Pure arithmetic. */
#include "cuda/row_plan.h"

/* How many share out a row, by the power of two: warps, all of a block or half, or the lanes of a team. */
int32_t onepass_cuda_log2_of_row(const job *job, cuda_variant variant) {
    int32_t log2 = is_team_variant(variant) ? 1 : 2;
    while (job->rows.classes > (int64_t)CUDA_ASIDE_KEPT << log2)
        log2++;
    return log2;
}

/* Of few classes: how many lines of rows a block has. While it computes one the next comes, but there are to be several
 * blocks for each that a multiprocessor can have. */
int32_t onepass_cuda_lines_of_block(const job *job, int32_t multiprocessors) {
    const int64_t all = (job->count + ROW_THREADS - 1) / ROW_THREADS, forced = onepass_cuda_shape.tiles_per_block;
    int32_t lines = ORDER_LINES;
    if (forced)
        return lines >> (forced - 1) % 3;
    while (lines > 1 && all / lines < 16 * (int64_t)multiprocessors)
        lines /= 2;
    return lines;
}

/* Of rows that are shared out: how many times 32 a block has, if that leaves some blocks to each multiprocessor. */
int32_t onepass_cuda_lines_aside(const job *job, int32_t multiprocessors) {
    int32_t lines = CUDA_ASIDE_ROWS / WARP;
    while (lines > 1 && job->count / (lines * WARP) < 4 * (int64_t)multiprocessors)
        lines /= 2;
    return lines;
}

/* How often a warp has as many rows as it has teams before it finishes them, up to 32 rows, if that leaves some blocks
 * to each multiprocessor. */
int32_t onepass_cuda_lines_of_teams(const job *job, int32_t multiprocessors) {
    const int32_t log2 = onepass_cuda_log2_of_row(job, variant_rows_teams_forward);
    const int64_t all = job->count / (CUDA_TEAM_WARPS * (WARP >> log2)), forced = onepass_cuda_shape.tiles_per_block;
    int32_t lines = 1 << log2;
    if (forced)
        return (int32_t)most(1, lines >> (forced - 1) % 3);
    while (lines > 1 && all / lines < CUDA_TEAM_BLOCKS * (int64_t)multiprocessors)
        lines /= 2;
    return lines;
}

/* As many as any GPU runs at the same time. */
#define SKIPPING_BLOCKS 4096

/* A block's warps, and its rows. */
typedef struct row_block {
    int64_t warps, rows;
} row_block;

static row_block row_block_of(const job *job, cuda_variant variant, int64_t tiles) {
    switch (variant) {
    case variant_rows_told:
        return (row_block){CUDA_TOLD_WARPS, CUDA_MOST_GROUP};
    case variant_rows_picked:
        return (row_block){4, least(128, most(1, 4096 / most(job->rows.classes, 1)))};
    case variant_rows_few_forward:
    case variant_rows_few_both:
    case variant_rows_fewer_forward:
    case variant_rows_fewer_both:
    case variant_rows_sized_forward:
    case variant_rows_sized_both:
    case variant_rows_sized_more_forward:
    case variant_rows_sized_more_both:
    case variant_rows_plain_forward:
    case variant_rows_plain_both:
        return (row_block){ROW_THREADS / WARP, ROW_THREADS};
    case variant_rows_teams_forward:
    case variant_rows_teams_both: /* of the last: for each line */
        return (row_block){CUDA_TEAM_WARPS, CUDA_TEAM_WARPS * (WARP >> onepass_cuda_log2_of_row(job, variant))};
    case variant_rows_aside:
        return (row_block){CUDA_ASIDE_WARPS, WARP};
    case variant_rows_aside_wide:
        return (row_block){CUDA_WIDE_WARPS, WARP};
    case variant_rows_any:
        return (row_block){least(CUDA_ANY_WARPS((int)dtype_size(job->compute)), tiles), 1 + (job->count >> 30)};
    case variant_rows_both_single:
        return (row_block){CUDA_VALUES_WARPS, CUDA_MOST_GROUP};
    case variant_rows_both:
        return (row_block){tiles, job->operand[0].dtype == ONEPASS_F32 ? 8 : 16};
    case variant_rows_loose_both:
        return (row_block){tiles, tiles == 1 ? 8 : 4};
    case variant_rows_weighed_both:
        return (row_block){tiles, 8};
    case variant_rows_both_wide:
        return (row_block){tiles, 16};
    case variant_rows_backward: /* neighbouring blocks on neighbouring rows */
    case variant_rows_weighed_backward:
    case variant_rows_loose_backward:
    case variant_rows_torn:
        return (row_block){4, most(1, 8 / tiles)};
    case variant_rows_forward:
    case variant_rows_long_forward:
    case variant_rows_loose_forward:
    case variant_rows_shared:
    case variant_rows_loose_shared:
        return (row_block){CUDA_VALUES_WARPS, most(1, (job->operand[0].dtype == ONEPASS_F32 ? 128 : 64) / tiles)};
    case variant_rows_weighed_forward:
        return (row_block){4, most(1, (job->loss->kind == ROW_PROBABILITIES ? 128 : 64) / tiles)};
    default:
        return (row_block){4, most(1, 64 / tiles)};
    }
}

static bool is_weighed_forward(cuda_variant variant) {
    return variant == variant_rows_weighed_forward || variant == variant_rows_weighed_shared;
}

/* Kernels that prefetch tiles of rows. */
static bool prefetches(cuda_variant variant) {
    return variant == variant_rows_both || variant == variant_rows_both_single || is_weighed_forward(variant) ||
           variant == variant_rows_weighed_both;
}

static bool has_four_warps(cuda_variant variant) {
    return variant == variant_rows_forward || variant == variant_rows_long_forward ||
           variant == variant_rows_loose_forward || variant == variant_rows_shared ||
           variant == variant_rows_loose_shared || variant == variant_rows_both_single ||
           variant == variant_rows_weighed_forward || variant == variant_rows_weighed_shared;
}

static bool is_backward(cuda_variant variant) {
    return variant == variant_rows_backward || variant == variant_rows_weighed_backward ||
           variant == variant_rows_loose_backward;
}

/* No more rows a block than leave some blocks to each multiprocessor, but a tile for each warp. */
static int64_t rows_for_all(const job *job, row_block block, int64_t tiles, int32_t multiprocessors) {
    int64_t rows = least(block.rows, CUDA_MOST_GROUP);
    const int64_t blocks = block.warps > CUDA_MOST_WARPS ? 1 : 4; /* of a multiprocessor */
    while (rows > 1 && rows * tiles > block.warps && job->count / rows < blocks * multiprocessors)
        rows /= 2;
    return rows;
}

/* Blocks of values with weights that a multiprocessor has at a time. */
#define WEIGHED_BLOCKS 4

/* The most rows of a block, of which it has `rows` otherwise. With probabilities a multiprocessor has few blocks, which
 * end and begin together, and nothing is read meanwhile: 32768 rows of 4096 classes took 1.1 to 1.5 % less on an H200
 * by one wave of blocks than by two. */
static int64_t most_rows(const job *job, cuda_variant variant, int64_t rows, int64_t tiles, const cuda_limits *limits) {
    if (variant != variant_rows_weighed_forward || job->loss->kind != ROW_PROBABILITIES ||
        WEIGHED_BLOCKS * (CUDA_WEIGHED_ROOM + CUDA_WEIGHED_OWN) > limits->shared_memory)
        return rows;
    return most(rows, least(CUDA_WEIGHED_GROUP, 256 / tiles));
}

/* Values of many rows come by as many blocks as there can be at a time, or a multiple of that, each with as many rows,
 * and what remains by small blocks, which go where others have ended; unless rows are so few and short that warps would
 * have no tile. On an H200 32768 rows of 5000 classes took 1.2 times as long by 1.2 waves of blocks, and such of 4096,
 * where some multiprocessors had seven blocks and some eight, 1.4 % longer. Returns the most rows that a block has. */
static int64_t share_out_rows(const job *job, int64_t rows, const cuda_limits *limits, cuda_launch *launch) {
    cuda_row *row = &launch->parameter.row;
    const int64_t at_a_time =
        (is_weighed_forward(launch->variant) ? WEIGHED_BLOCKS : 8) * (int64_t)limits->multiprocessors;
    const int64_t each = most_rows(job, launch->variant, rows, row->tiles, limits);
    const int64_t needed = (job->count + each - 1) / each, blocks = (needed + at_a_time - 1) / at_a_time * at_a_time;
    if (blocks == 0 || job->count / blocks * row->tiles < CUDA_VALUES_WARPS)
        return rows;
    row->group = (int32_t)most(1, CUDA_VALUES_WARPS / row->tiles);
    row->long_group = (int32_t)(job->count / blocks);
    row->long_groups = (int32_t)blocks;
    launch->blocks = (uint32_t)(blocks + (job->count % blocks + row->group - 1) / row->group);
    return most(row->group, row->long_group);
}

/* Shared memory for a tile of logits for each warp, and one of probabilities if there is so much. */
#define MOST_ROOM (40 << 10)

static void plan_room(const job *job, int64_t warps, cuda_launch *launch) {
    cuda_row *row = &launch->parameter.row;
    const int32_t logits = ORDER_TILE * (int32_t)dtype_size(job->operand[0].dtype);
    row->room = logits;
    if (job->loss->kind == ROW_PROBABILITIES) {
        const int32_t both = logits + ORDER_TILE * (int32_t)dtype_size(job->operand[1].dtype);
        const int64_t room = launch->variant == variant_rows_weighed_forward ? CUDA_WEIGHED_ROOM : MOST_ROOM;
        row->target_room = launch->shared_memory + warps * both <= room ? logits : 0;
        row->room = row->target_room ? both : logits;
    }
    launch->shared_memory += (uint32_t)(warps * row->room);
}

static bool is_plain_variant(cuda_variant variant) {
    return variant == variant_rows_plain_forward || variant == variant_rows_plain_both;
}

/* They stay for all tiles, and are as many as there can be at the same time. */
static int64_t plain_blocks(cuda_variant variant, int64_t tiles, int32_t multiprocessors) {
    const int64_t forced = onepass_cuda_shape.tiles_per_block;
    const int64_t blocks = variant == variant_rows_plain_both ? CUDA_PLAIN_BLOCKS_BOTH : CUDA_PLAIN_BLOCKS;
    return forced ? (tiles + forced - 1) / forced : least(tiles, blocks * multiprocessors);
}

/* The same, by rows: of a multiprocessor. */
static int64_t simple_blocks(const job *job, cuda_variant variant, int64_t warps) {
    const int64_t waves = job->skip_if_one                        ? 1
                          : job->operand[0].dtype == ONEPASS_BF16 ? CUDA_SIMPLE_WAVES_BF16
                                                                  : CUDA_SIMPLE_WAVES;
    switch (variant) {
    case variant_rows_simple_forward:
        return CUDA_SIMPLE_BLOCKS;
    case variant_rows_simple_wide:
    case variant_rows_wide_bf16:
        return CUDA_WIDE_WARPS / warps;
    default:
        return waves * CUDA_SIMPLE_WARPS_BOTH / warps;
    }
}

/* A warp has some rows, or a block, of which a warp has a tile of each. */
static void plan_simple_shape(const job *job, int32_t multiprocessors, cuda_launch *launch) {
    const cuda_variant variant = launch->variant;
    const int64_t forced = onepass_cuda_shape.tiles_per_block;
    const bool by_warps = variant == variant_rows_simple_forward || variant == variant_rows_simple_single;
    const int64_t warps = by_warps ? CUDA_VALUES_WARPS : launch->parameter.row.tiles;
    const int64_t blocks = simple_blocks(job, variant, warps) * multiprocessors;
    const int64_t needed = by_warps ? (job->count + warps - 1) / warps : job->count;
    launch->blocks = (uint32_t)(forced ? (needed + forced - 1) / forced : least(needed, blocks));
    launch->threads = (uint32_t)(warps * WARP);
    if (variant == variant_rows_simple_both || variant == variant_rows_simple_single)
        plan_room(job, warps, launch);
    if (variant == variant_rows_wide_bf16)
        launch->shared_memory = (uint32_t)(warps * CUDA_WIDE_ROOM);
}

/* Those that have tiles; another one joins them. */
static int64_t cluster_warps(int64_t tiles) {
    return (tiles + 2 * CUDA_CLUSTER - 1) / (2 * CUDA_CLUSTER);
}

int32_t onepass_cuda_cluster_shared_memory(int64_t tiles) {
    return (int32_t)cluster_warps(tiles) * CUDA_CLUSTER_ROOM + CUDA_CLUSTER_OWN;
}

/* Clusters stay for all rows, and are as many as there can be at a time. What a block can have of shared memory is all
 * but a KiB of what a multiprocessor has, and each block takes as much beside its own. */
static void plan_cluster(const job *job, const cuda_limits *limits, cuda_launch *launch) {
    const int64_t tiles = launch->parameter.row.tiles, warps = cluster_warps(tiles), beside = 1024;
    const int64_t room = (limits->shared_memory + beside) / (onepass_cuda_cluster_shared_memory(tiles) + beside);
    const int64_t resident = least(room, CUDA_CLUSTER_WARPS / warps) * limits->clusters;
    const int64_t forced = onepass_cuda_shape.tiles_per_block;
    launch->blocks = CUDA_CLUSTER * (uint32_t)least(job->count, forced ? forced : resident);
    launch->threads = (uint32_t)((warps + 1) * WARP);
    launch->shared_memory = (uint32_t)(warps * CUDA_CLUSTER_ROOM);
}

/* Numbers of the rows that teams have next, and slopes of those that they have. */
static void plan_teams(const job *job, int32_t multiprocessors, cuda_launch *launch) {
    cuda_row *row = &launch->parameter.row;
    const int64_t needed = launch->blocks, forced = onepass_cuda_shape.tiles_per_block;
    const int32_t numbers = (WARP >> row->group) * (int32_t)row->classes;
    row->room = CUDA_TEAM_KNOWN + CUDA_TEAM_ROOM(numbers, (int32_t)dtype_size(job->operand[0].dtype)) +
                (job->gradient[0].data ? CUDA_TEAM_ROOM(numbers, (int32_t)sizeof(float)) : 0);
    const int64_t blocks = (job->skip_if_one ? 1 : CUDA_TEAM_WAVES) * CUDA_TEAM_BLOCKS * (int64_t)multiprocessors;
    launch->shared_memory = (uint32_t)(CUDA_TEAM_WARPS * row->room);
    launch->blocks = (uint32_t)(forced ? (needed + forced - 1) / forced : least(needed, blocks));
}

void onepass_cuda_plan_row_shape(const job *job, const cuda_limits *limits, cuda_launch *launch) {
    const int32_t multiprocessors = limits->multiprocessors;
    cuda_row *row = &launch->parameter.row;
    if (launch->variant == variant_rows_cluster) {
        plan_cluster(job, limits, launch);
        return;
    }
    if (is_simple_variant(launch->variant)) {
        plan_simple_shape(job, multiprocessors, launch);
        return;
    }
    row_block block = row_block_of(job, launch->variant, row->tiles);
    const bool fixed = keeps_rows(launch->variant);
    block.rows *= most(row->lines, 1);
    const bool one_tile_a_warp = launch->variant == variant_rows_both || launch->variant == variant_rows_both_wide ||
                                 launch->variant == variant_rows_loose_both ||
                                 launch->variant == variant_rows_weighed_both;
    if (has_four_warps(launch->variant) || one_tile_a_warp)
        block.rows = rows_for_all(job, block, row->tiles, multiprocessors);
    /* Mostly there is nothing to do then but to begin a block: 16384 of them took 11 us on an H200, 1024 of them 2. */
    if (job->skip_if_one && is_backward(launch->variant))
        block.rows = rows_for_all(job, (row_block){block.warps, CUDA_MOST_GROUP}, row->tiles, multiprocessors);
    if (onepass_cuda_shape.tiles_per_block && !fixed)
        block.rows = least(onepass_cuda_shape.tiles_per_block, CUDA_MOST_GROUP);
    if (onepass_cuda_shape.warps && !fixed && !one_tile_a_warp && launch->variant != variant_rows_picked)
        block.warps = least(onepass_cuda_shape.warps, launch->variant == variant_rows_any ? block.warps
                                                      : has_four_warps(launch->variant)   ? CUDA_VALUES_WARPS
                                                                                          : CUDA_MOST_WARPS);
    const int64_t waiting = launch->variant == variant_rows_told ? CUDA_TOLD_TILES : CUDA_MOST_ROW_TILES;
    if (!fixed && launch->variant != variant_rows_any && launch->variant != variant_rows_picked)
        block.rows = most(1, least(least(block.rows, CUDA_MOST_GROUP), waiting / row->tiles));
    launch->blocks = (uint32_t)((job->count + block.rows - 1) / block.rows);
    launch->threads = (uint32_t)(block.warps * WARP);
    if (!fixed)
        row->group = (int32_t)block.rows;
    if (has_four_warps(launch->variant) && !job->gradient[0].data && !onepass_cuda_shape.tiles_per_block)
        block.rows = share_out_rows(job, block.rows, limits, launch);
    if (is_plain_variant(launch->variant))
        launch->blocks = (uint32_t)plain_blocks(launch->variant, launch->blocks, multiprocessors);
    if (fixed && job->skip_if_one) /* the same */
        launch->blocks = (uint32_t)least(launch->blocks, SKIPPING_BLOCKS);
    if (is_few_variant(launch->variant)) { /* of one line, or of this and the next; of terms in any case */
        const size_t size = is_sized_variant(launch->variant) ? dtype_size(job->operand[0].dtype) : sizeof(float);
        const int64_t numbers = (row->lines > 1 ? 2 : 1) * CUDA_FEW_PITCH(row->classes);
        launch->shared_memory = ROW_THREADS * (uint32_t)most(numbers * (int64_t)size, sizeof(float));
    }
    if (is_team_variant(launch->variant))
        plan_teams(job, multiprocessors, launch);
    if (is_weighed_forward(launch->variant))
        launch->shared_memory = (uint32_t)(block.rows * row->tiles * CUDA_WAITING_SIZE);
    if (prefetches(launch->variant))
        plan_room(job, block.warps, launch);
}
