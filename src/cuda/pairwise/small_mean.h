/*
 * The mean over weights, a mask or both of small inputs, like small.h: dense tensors, of which each warp has one tile.
 */
#ifndef ONEPASS_CUDA_PAIRWISE_SMALL_MEAN_H
#define ONEPASS_CUDA_PAIRWISE_SMALL_MEAN_H

#include "cuda/await.h"
#include "cuda/pairwise/mean.h"

typedef struct tile_means {
    double sum[MEAN_SUMS];
} tile_means;

template <typename loss, direction direction, bool whole>
ALWAYS_INLINE tile_means small_mean_tile(const cuda_small_mean *job, int thread, int index, int left) {
    const tile tile = tile_at(index, whole ? ORDER_TILE : left, thread, NULL);
    const weighted_tensors tensors = {{job->operand[0], job->operand[1]}, job->weight, job->mask, false};
    outputs outputs = {};
    outputs.parameter = REAL(job->parameter);
    weighted_lines<loss, ORDER_LINES> lines;
    prefetch_weighted_lines<direction, whole, KEEP_LEAST, direction != WEIGHT_MEAN>(&tensors, &tile, 0, &lines);
    lane_sums sums = {};
    lane_weights weights = {};
    compute_weighted_lines<direction>(&tensors, &outputs, &tile, NULL, 0, &lines, &sums, &weights);
    return (tile_means){{order_lanes(thread, sums.sum), weight_of_tile<direction>(thread, &weights)}};
}

/* The tile that the input ends in, out of line, so that the others' code lies in one piece. */
template <typename loss, direction direction>
static __device__ __noinline__ tile_means small_mean_last_tile(const cuda_small_mean *job, int thread, int index,
                                                               int left) {
    return small_mean_tile<loss, direction, false>(job, thread, index, left);
}

template <typename loss, direction direction> ALWAYS_INLINE void run_small_mean(const cuda_small_mean *job) {
    __shared__ block_sums<MEAN_SUMS> shared;
    const place_in_block at = here_in_small_block();
    const all_blocks all = begin_block(job->workspace, job->count, job->warp_bits);
    const int index = (int)blockIdx.x * all.warps + at.warp, left = job->count - index * ORDER_TILE;
    tile_means own = {{ORDER_NOTHING, ORDER_NOTHING}};
    if (left >= ORDER_TILE)
        own = small_mean_tile<loss, direction, true>(job, at.thread, index, left);
    else if (left > 0)
        own = small_mean_last_tile<loss, direction>(job, at.thread, index, left);
    if (!end_block<MEAN_SUMS>(&all, &shared, own.sum))
        return;
    store_scalar(job->value, job->dtype, own.sum[OF_TERMS] / own.sum[OF_WEIGHTS]);
    tell_divisor(job->told, job->divided_by, own.sum[OF_WEIGHTS]);
}

template <typename loss, direction direction, access access> ALWAYS_INLINE void run_kernel(const cuda_small_mean *job) {
    run_small_mean<loss, direction>(job);
}

#endif
