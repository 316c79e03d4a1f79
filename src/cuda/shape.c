/*
 * How many blocks of how many warps a launch has. The shapes are those that were fastest on an H200, each within a few
 * per cent of its neighbours.
 */
#include "cuda/job.h"
#include "cuda/plan.h"
#include "dtype.h"
#include "order.h"

#define WARP 32

cuda_shape onepass_cuda_shape;

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t up_to_power_of_two(int64_t n) {
    int64_t power = 1;
    while (power < n)
        power *= 2;
    return power;
}

/* A variant's block: its warps, and the tiles that it takes at a time. */
typedef struct block {
    int32_t warps, tiles;
} block;

/* A warp a tile. One block while it can take all tiles, since a second one costs the time of a ticket. */
static block small_block(int64_t tiles) {
    const int64_t usual = tiles <= CUDA_MOST_WARPS ? up_to_power_of_two(tiles)
                          : tiles <= 128           ? 2
                          : tiles <= 512           ? 4
                                                   : 8;
    const int64_t forced = onepass_cuda_shape.tiles_per_block;
    int32_t taken = (int32_t)least(forced ? forced : usual, CUDA_MOST_WARPS);
    while ((tiles - 1) / taken >= CUDA_MOST_AWAITED)
        taken *= 2;
    return (block){taken, taken};
}

static bool is_mean(direction direction) {
    return direction == MEAN || direction == MASK_MEAN;
}

/* A wave is what 16 warps a multiprocessor take at a time. A value alone wants few blocks, of up to 8 tiles a warp, or
 * 32 where half of a tile comes from a cache (3 % of the rate) or blocks have two sums to leave room for; with a
 * gradient neighbouring blocks had better work on neighbouring tiles. */
static block direct_block(direction direction, bool has_rows, int64_t tiles, int32_t multiprocessors) {
    const bool writes = direction == BOTH || direction == BACKWARD;
    const bool many = is_mean(direction) && tiles > (int64_t)CUDA_MOST_BLOCKS / 2 * CUDA_MOST_WARPS * 8;
    const int64_t most_tiles = writes ? 4 : has_rows || many ? 32 : 8;
    const int64_t waves = tiles / (16 * (int64_t)multiprocessors) + 1;
    const int64_t tiles_a_warp = up_to_power_of_two(least(waves, most_tiles));
    const int64_t usual = least(CUDA_MOST_WARPS, up_to_power_of_two(tiles));
    const int64_t warps = onepass_cuda_shape.warps ? least(onepass_cuda_shape.warps, CUDA_MOST_WARPS) : usual;
    const int64_t forced = onepass_cuda_shape.tiles_per_block;
    return (block){(int32_t)warps, (int32_t)(forced ? forced : warps * tiles_a_warp)};
}

/* As many warps as 32 KiB have buffers for, so that blocks share a multiprocessor well. */
static block general_block(const job *job, const cuda_head *head, int64_t tiles, int32_t multiprocessors) {
    const int64_t tile = ORDER_TILE * (int64_t)dtype_size(job->compute);
    const int64_t waves = tiles / (32 * (int64_t)multiprocessors) + 1;
    int64_t warps = onepass_cuda_shape.warps ? onepass_cuda_shape.warps : least(8, up_to_power_of_two(tiles));
    while (warps > 1 && warps * head->buffers * tile > 32768)
        warps /= 2;
    const int64_t forced = onepass_cuda_shape.tiles_per_block;
    return (block){(int32_t)warps, (int32_t)(forced ? forced : warps * up_to_power_of_two(least(waves, 8)))};
}

/* Of what small and tiny kernels are told, nothing depends on their shape. */
void onepass_cuda_plan_shape(const job *job, int32_t multiprocessors, cuda_launch *launch) {
    cuda_head *head = &launch->parameter.head;
    const cuda_variant_info *variant = &onepass_cuda_variant[launch->variant];
    const int64_t tiles = job->count / ORDER_TILE + (job->count % ORDER_TILE != 0);
    const bool tiny = variant->kind == kind_tiny || variant->kind == kind_tiny_both, few = variant->kind == kind_few;
    const bool small = tiny || few || variant->kind == kind_small, general = variant->kind == kind_general;
    const block block = tiny      ? (struct block){ORDER_LINES / 2, 1} /* four warps, a tile */
                        : few     ? (struct block){(int32_t)tiles, (int32_t)tiles}
                        : small   ? small_block(tiles)
                        : general ? general_block(job, head, tiles, multiprocessors)
                                  : direct_block(variant->direction, head->rows != 0, tiles, multiprocessors);
    const int64_t forced = onepass_cuda_shape.most_blocks;
    const bool mean = is_mean(variant->direction); /* which has two sums, and takes its tiles in one go */
    const int64_t most_blocks = forced && !small && !mean ? forced : CUDA_MOST_BLOCKS / (mean ? 2 : 1);
    int64_t span = block.tiles;
    while ((tiles - 1) / span >= most_blocks)
        span *= 2;
    int64_t blocks = tiles / span + (tiles % span != 0);
    if (blocks == 0 && wants_sum(job))
        blocks = 1; /* which writes the sum of nothing */
    if (!small) {
        head->tiles_per_block = block.tiles;
        head->sweeps = (int32_t)(span / block.tiles);
    }
    launch->blocks = (uint32_t)blocks;
    launch->threads = (uint32_t)(block.warps * WARP);
    const int32_t elements = general ? block.warps * head->buffers * ORDER_TILE : 0;
    launch->shared_memory = (uint32_t)elements * (uint32_t)dtype_size(job->compute);
    const size_t left = small ? CUDA_AWAITED_BYTES : mean ? 2 * sizeof(double) : sizeof(double); /* by a block */
    const bool passes_weights = job->over_weights || job->family == FAMILY_WEIGHTS;
    launch->workspace = wants_sum(job) && blocks > 1 ? CUDA_WORKSPACE_HEAD + (size_t)blocks * left
                        : passes_weights             ? CUDA_WORKSPACE_HEAD
                                                     : 0;
}
