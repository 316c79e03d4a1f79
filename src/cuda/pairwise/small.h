/*
 * Small inputs: dense operands of the compute type, of which each warp has one tile.
 */
#ifndef ONEPASS_CUDA_PAIRWISE_SMALL_H
#define ONEPASS_CUDA_PAIRWISE_SMALL_H

#include "cuda/combine.h"
#include "cuda/pairwise/compute.h"

/* A launch begins with cold caches of instructions and parameters, so that a small input costs what its code is long,
 * and a warp has one tile, all of whose numbers it loads at once. Serves dense operands of the compute type. */
template <typename loss, direction direction> ALWAYS_INLINE void run_small(const cuda_small *job) {
    __shared__ double node[CUDA_MOST_NODES];
    const place_in_block at = here_in_block();
    const int index = blockIdx.x * at.warps + at.warp, left = job->total.count - index * ORDER_TILE;
    double sum = ORDER_NOTHING;
    if (left > 0) {
        const tile tile = tile_at(index, left, at.thread, NULL);
        const bool plain = left >= ORDER_TILE && job->total.aligned;
        const int64_t first = (int64_t)index * ORDER_TILE;
        numbers in[ORDER_LINES][loss::OPERANDS];
        EACH_OPERAND {
            const real *from = (const real *)job->operand[k] + first;
            if (plain)
                EACH_LINE prefetch_line<ACCESS_REAL, KEEP_LEAST>(&tile, from, line, &in[line][k]);
            else
                EACH_LINE prefetch_last_line<ACCESS_REAL>(&tile, from, line, &in[line][k]);
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
        sum = order_lanes(at.thread, sums.sum);
    }
    if (at.warps > 1) {
        if (at.thread == 0)
            node[at.warp] = sum;
        __syncthreads();
        if (at.warp == 0)
            sum = order_neighbours(at.thread < at.warps ? node[at.thread] : ORDER_NOTHING, at.warps);
    }
    if (has_total(&job->total, node, &sum))
        write_small_value(&job->total, sum);
}

#endif
