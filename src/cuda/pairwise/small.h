/*
 * Small inputs: dense operands of the compute type, of which each warp has one tile.
 */
#ifndef ONEPASS_CUDA_PAIRWISE_SMALL_H
#define ONEPASS_CUDA_PAIRWISE_SMALL_H

#include "cuda/await.h"
#include "cuda/combine.h"
#include "cuda/pairwise/compute.h"

/* The sum of a tile. Plain ones are whole and aligned. */
template <typename loss, direction direction, bool plain>
ALWAYS_INLINE double small_tile(const cuda_small *job, int thread, int index, int left) {
    const tile tile = tile_at(index, plain ? ORDER_TILE : left, thread, NULL);
    const int64_t first = (int64_t)index * ORDER_TILE;
    numbers in[ORDER_LINES][loss::OPERANDS];
    EACH_LINE EACH_OPERAND {
        const real *from = (const real *)job->operand[k] + first;
        if constexpr (plain)
            prefetch_line<ACCESS_REAL, KEEP_LEAST>(&tile, from, line, &in[line][k]);
        else
            prefetch_last_line<ACCESS_REAL>(&tile, from, line, &in[line][k]);
    }
    outputs outputs = {};
    outputs.parameter = REAL(job->parameter);
    outputs.scale = REAL(job->scale);
    outputs.upstream = 1;
    if (direction == BOTH && job->upstream)
        outputs.upstream = (real)load_scalar(job->upstream, job->upstream_dtype);
    lane_sums sums = {};
    compute_lines<loss, direction, ACCESS_REAL, ORDER_LINES>(&tile, &outputs, false, plain,
                                                             (real *)job->gradient + first, 0, in, &sums);
    return order_lanes(thread, sums.sum);
}

/* Out of line, so that the others' code lies in one piece. */
template <typename loss, direction direction>
static __device__ __noinline__ double small_rare_tile(const cuda_small *job, int thread, int index, int left) {
    return small_tile<loss, direction, false>(job, thread, index, left);
}

/* A launch begins with cold caches of instructions and parameters, so that a small input costs what its code is long,
 * and a warp has one tile, all of whose numbers it loads at once. Serves dense operands of the compute type. */
template <typename loss, direction direction> ALWAYS_INLINE void run_small(const cuda_small *job) {
    __shared__ block_sums<1> shared;
    const place_in_block at = here_in_small_block();
    const all_blocks all = begin_block(job->total.workspace, job->total.count, job->total.warp_bits);
    const int index = (int)blockIdx.x * all.warps + at.warp, left = job->total.count - index * ORDER_TILE;
    double sum = ORDER_NOTHING;
    if (left >= ORDER_TILE && job->total.aligned)
        sum = small_tile<loss, direction, true>(job, at.thread, index, left);
    else if (left > 0)
        sum = small_rare_tile<loss, direction>(job, at.thread, index, left);
    if (end_block<1>(&all, &shared, &sum))
        write_small_value(&job->total, sum);
}

#endif
