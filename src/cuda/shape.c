/*
 * How many blocks of how many warps a launch has. The shapes are those that were fastest on an H200, each within a few
 * per cent of its neighbours.
 */
#include "cuda/arithmetic.h"
#include "cuda/job.h"
#include "cuda/plan.h"
#include "dtype.h"
#include "order.h"

cuda_shape onepass_cuda_shape;

/* A variant's block: its warps, and the tiles that it takes at a time. */
typedef struct block {
    int32_t warps, tiles;
} block;

/* What the tests ask for, if they do, of what blocks of elements can have: tests of rows ask for other numbers. */
static int64_t forced_tiles(void) {
    const int64_t forced = onepass_cuda_shape.tiles_per_block;
    return forced ? least(power_for(forced), CUDA_MOST_NODES) : 0;
}

/* A warp a tile. One block while it can take all tiles, since a second one costs the time of a ticket. */
static block small_block(int64_t tiles) {
    const int64_t usual = tiles <= CUDA_MOST_WARPS ? power_for(tiles) : tiles <= 128 ? 2 : tiles <= 1024 ? 4 : 8;
    const int64_t forced = forced_tiles();
    int32_t taken = (int32_t)least(forced ? forced : usual, CUDA_MOST_WARPS);
    while ((tiles - 1) / taken >= CUDA_MOST_AWAITED)
        taken *= 2;
    return (block){taken, taken};
}

/* What one block does: as many warps for each tile, and one more where a gradient waits for a sum. */
static block block_of_few(int64_t tiles, int32_t warps, direction direction) {
    return (block){(int32_t)tiles * warps + (direction >= MEAN_BOTH), (int32_t)tiles};
}

/* A wave is what 16 warps a multiprocessor take at a time. A value alone wants few blocks, of up to 8 tiles a warp, or
 * 32 where half of a tile comes from a cache (3 % of the rate); with a gradient neighbouring blocks had better work on
 * neighbouring tiles. Of a mean over weights there are no more blocks than can be awaited, if there is a way. */
static block direct_block(direction direction, bool has_rows, int64_t tiles, int32_t multiprocessors) {
    const bool writes = direction == BOTH || direction == BACKWARD;
    const int64_t waves = tiles / (16 * (int64_t)multiprocessors) + 1;
    const int64_t tiles_a_warp = power_for(least(waves, writes ? 4 : has_rows ? 32 : 8));
    const int64_t usual = least(CUDA_MOST_WARPS, power_for(tiles));
    const int64_t warps = onepass_cuda_shape.warps ? least(onepass_cuda_shape.warps, CUDA_MOST_WARPS) : usual;
    const int64_t forced = forced_tiles();
    int64_t taken = forced ? forced : least(warps * tiles_a_warp, CUDA_MOST_NODES);
    while (is_mean(direction) && !forced && taken < CUDA_MOST_NODES && (tiles - 1) / taken >= CUDA_MOST_AWAITED)
        taken *= 2;
    return (block){(int32_t)warps, (int32_t)taken};
}

/* A tile, or so many that there are few blocks where most often nothing is done. */
static block backward_block(const job *job, int64_t tiles, int32_t multiprocessors) {
    const int64_t forced = forced_tiles(), waves = tiles / (8 * (int64_t)multiprocessors) + 1;
    return (block){CUDA_BACKWARD_WARPS, job->skip_if_one ? (int32_t)(forced ? forced : least(waves, INT32_MAX)) : 1};
}

/* As many warps as 32 KiB have buffers for, so that blocks share a multiprocessor well. */
static block general_block(const job *job, const cuda_head *head, int64_t tiles, int32_t multiprocessors) {
    const int64_t tile = ORDER_TILE * (int64_t)dtype_size(job->compute);
    const int64_t waves = tiles / (32 * (int64_t)multiprocessors) + 1;
    int64_t warps = onepass_cuda_shape.warps ? onepass_cuda_shape.warps : least(8, power_for(tiles));
    while (warps > 1 && warps * head->buffers * tile > 32768)
        warps /= 2;
    const int64_t forced = forced_tiles();
    return (block){(int32_t)warps, (int32_t)(forced ? forced : warps * power_for(least(waves, 8)))};
}

/* The block of a variant. */
static block block_of(const job *job, cuda_variant variant, const cuda_head *head, int64_t tiles,
                      int32_t multiprocessors) {
    const direction direction = onepass_cuda_variant[variant].direction;
    switch (onepass_cuda_variant[variant].kind) {
    case kind_tiny:
    case kind_tiny_mean:
    case kind_tiny_both:
        return block_of_few(tiles, CUDA_TINY_WARPS, direction);
    case kind_few:
    case kind_few_mean:
        return block_of_few(tiles, CUDA_FEW_WARPS, direction);
    case kind_small:
    case kind_small_mean:
        return small_block(tiles);
    case kind_backward:
        return backward_block(job, tiles, multiprocessors);
    case kind_whole:
        return (block){CUDA_WHOLE_WARPS, 1};
    case kind_general:
        return general_block(job, head, tiles, multiprocessors);
    default:
        return direct_block(direction, head->rows != 0, tiles, multiprocessors);
    }
}

static uint8_t log2_of(int32_t power_of_two) {
    uint8_t bits = 0;
    while (power_of_two >> bits > 1)
        bits++;
    return bits;
}

/* Small kernels are told how many warps a block has, that of a gradient how many blocks there are, the others how many
 * tiles one takes, and those that are one block, or have a line a warp, nothing. */
static void tell_shape(cuda_kind kind, const block *block, int64_t span, int64_t blocks, cuda_launch *launch) {
    if (kind == kind_small)
        launch->parameter.small.total.warp_bits = log2_of(block->warps);
    else if (kind == kind_small_mean)
        launch->parameter.small_mean.warp_bits = log2_of(block->warps);
    else if (kind == kind_backward)
        launch->parameter.backward.blocks = (int32_t)blocks;
    else if (kind == kind_direct || kind == kind_weighted || kind == kind_general) {
        launch->parameter.head.tiles_per_block = block->tiles;
        launch->parameter.head.sweeps = (int32_t)(span / block->tiles);
    }
}

/* Bytes of workspace. Those that are one block leave nothing in it. */
static size_t workspace_of(const job *job, cuda_kind kind, direction direction, int64_t blocks) {
    const bool mean = is_mean(direction), is_small = kind == kind_small || kind == kind_small_mean;
    const bool awaited = is_small || (mean && blocks <= CUDA_MOST_AWAITED);
    const size_t left = (awaited ? CUDA_AWAITED_BYTES : sizeof(double)) * (mean ? 2 : 1); /* by a block */
    if (kind == kind_tiny || kind == kind_tiny_mean || kind == kind_tiny_both || kind == kind_few ||
        kind == kind_few_mean)
        return 0;
    if (wants_sum(job) && blocks > 1)
        return CUDA_WORKSPACE_HEAD + (size_t)blocks * left;
    return (job->over_weights && !onepass_cuda_finds_divisor(job)) || job->family == FAMILY_WEIGHTS
               ? CUDA_WORKSPACE_HEAD
               : 0;
}

void onepass_cuda_plan_shape(const job *job, int32_t multiprocessors, cuda_launch *launch) {
    const cuda_head *head = &launch->parameter.head;
    const cuda_variant_info *variant = &onepass_cuda_variant[launch->variant];
    const int64_t tiles = job->count / ORDER_TILE + (job->count % ORDER_TILE != 0);
    const block block = block_of(job, launch->variant, head, tiles, multiprocessors);
    const bool takes_sweeps = variant->kind == kind_direct || variant->kind == kind_general ||
                              (variant->kind == kind_weighted && !is_mean(variant->direction));
    const bool mean = is_mean(variant->direction); /* which has two sums, and takes its tiles in one go */
    const int64_t forced = takes_sweeps ? onepass_cuda_shape.most_blocks : 0;
    const int64_t usual = variant->kind == kind_backward ? INT32_MAX : CUDA_MOST_BLOCKS / (mean ? 2 : 1);
    const int64_t most_blocks = forced ? forced : usual; /* a gradient alone leaves nothing that needs room */
    int64_t span = block.tiles;
    while ((tiles - 1) / span >= most_blocks)
        span *= 2;
    int64_t blocks =
        variant->kind == kind_whole ? job->count / CUDA_WHOLE_ELEMENTS : tiles / span + (tiles % span != 0);
    if (blocks == 0 && wants_sum(job))
        blocks = 1; /* which writes the sum of nothing */
    tell_shape(variant->kind, &block, span, blocks, launch);
    launch->blocks = (uint32_t)blocks;
    launch->threads = (uint32_t)(block.warps * WARP);
    const int32_t elements = variant->kind == kind_general ? block.warps * head->buffers * ORDER_TILE : 0;
    launch->shared_memory = (uint32_t)elements * (uint32_t)dtype_size(job->compute);
    launch->workspace = workspace_of(job, variant->kind, variant->direction, blocks);
}
