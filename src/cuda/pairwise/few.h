/*
 * Few tiles, all of them whole, of a sum like that of tiny.h: a block, two warps a tile. Threads meet in shared memory
 * first and shuffle what is left, since a step of the tree takes a thread a third of the time by itself (2^13 elements
 * of mse took 1.60 us on an H200 where the kernel of small.h took 1.98).
 */
#ifndef ONEPASS_CUDA_PAIRWISE_FEW_H
#define ONEPASS_CUDA_PAIRWISE_FEW_H

#include "cuda/pairwise/tiny.h"

template <typename loss> ALWAYS_INLINE void run_few(const cuda_tiny *job) {
    constexpr int warps = CUDA_FEW_WARPS, lines = ORDER_LINES / warps; /* of a tile, of a warp */
    __shared__ __align__(16) real part[ORDER_FEW * warps][ORDER_LANES];
    __shared__ double node[1][ORDER_FEW][ORDER_FEW_PITCH];
    const place_in_block at = here_in_small_block();
    const tile tile = tile_at(0, ORDER_TILE, at.thread, NULL);
    numbers in[lines][loss::OPERANDS];
#pragma unroll
    for (int line = 0; line < lines; line++)
        EACH_OPERAND {
            const real *from = (const real *)job->operand[k] + at.warp * lines * ORDER_LANES;
            prefetch_line<ACCESS_REAL, KEEP_LEAST>(&tile, from, line, &in[line][k]);
        }
    outputs outputs = {};
    outputs.parameter = REAL(job->parameter);
    lane_sums sums = {};
    compute_lines<loss, FORWARD, ACCESS_REAL, lines>(&tile, &outputs, false, true, NULL, 0, in, &sums);
    write_line(&tile, part[at.warp], 0, sums.sum);
    __syncthreads();
    const int tiles = job->count / ORDER_TILE;
    if (at.warp < tiles)
        node[0][at.warp][at.thread] = order_far_lanes<warps>(at.thread, part + at.warp * warps);
    __syncthreads();
    if (at.warp > 0)
        return;
    double total;
    order_few<1, ORDER_FEW>(at.thread, node, tiles, &total);
    if (at.thread == 0)
        store_scalar(job->value, ONEPASS_F32, reduced(job, total));
}

#endif
