/*
 * Few tiles, all of them whole, of a sum like that of tiny.h: a block, a warp a tile. Threads meet in shared memory
 * first and shuffle what is left, since a step of the tree takes a thread a third of the time by itself (2^13 elements
 * of mse took 1.67 us on an H200 where the kernel of small.h took 1.98).
 */
#ifndef ONEPASS_CUDA_PAIRWISE_FEW_H
#define ONEPASS_CUDA_PAIRWISE_FEW_H

#include "cuda/pairwise/compute.h"

template <typename loss> ALWAYS_INLINE void run_few(const cuda_tiny *job) {
    __shared__ __align__(16) real lanes[ORDER_FEW][ORDER_LANES];
    __shared__ double nodes[ORDER_FEW][ORDER_FEW_PITCH];
    const place_in_block at = here_in_block();
    const tile tile = tile_at(at.warp, ORDER_TILE, at.thread, NULL);
    numbers in[ORDER_LINES][loss::OPERANDS];
    EACH_LINE EACH_OPERAND {
        const real *from = (const real *)job->operand[k] + at.warp * ORDER_TILE;
        prefetch_line<ACCESS_REAL, KEEP_LEAST>(&tile, from, line, &in[line][k]);
    }
    outputs outputs = {};
    outputs.parameter = REAL(job->parameter);
    lane_sums sums = {};
    compute_lines<loss, FORWARD, ACCESS_REAL, ORDER_LINES>(&tile, &outputs, false, true, NULL, 0, in, &sums);
    write_line(&tile, lanes[at.warp], 0, sums.sum);
    __syncwarp();
    nodes[at.warp][at.thread] = order_far_lanes(at.thread, lanes[at.warp]);
    __syncthreads();
    if (at.warp > 0)
        return;
    const double total = order_few(at.thread, nodes, at.warps);
    if (at.thread == 0)
        store_scalar(job->value, ONEPASS_F32, total * job->factor);
}

#endif
