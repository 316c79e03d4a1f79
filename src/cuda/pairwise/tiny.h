/*
 * Tiny inputs: the sum of a tile of floats, dense, aligned and ending with a pair of lines, alone or with the gradient
 * of such a sum. A launch waits for its parameter and for its code, so both are short, and what the plan knows is not
 * asked; four warps share the tile (2^10 elements of mse took 1.22 us instead of 1.37 on an H200; of several tiles the
 * kernel of few.h is quicker).
 */
#ifndef ONEPASS_CUDA_PAIRWISE_TINY_H
#define ONEPASS_CUDA_PAIRWISE_TINY_H

#include "cuda/pairwise/compute.h"

/* What becomes of a pair of neighbouring lines, beside their sums. */
template <typename loss>
ALWAYS_INLINE void put_pair(const cuda_tiny *job, const tile *tile, int first, const own_line *lines) {}

template <typename loss>
ALWAYS_INLINE void put_pair(const cuda_tiny_both *job, const tile *tile, int first, const own_line *lines) {
    outputs outputs = {};
    outputs.scale = REAL(job->scale);
#pragma unroll
    for (int line = 0; line < 2; line++) {
        real slope[ORDER_OWN_LANES];
        EACH_OWN slope[own] =
            gradient_of(&outputs, loss::slope_p(lines[line].x[own], REAL(job->parameter)), 1); /* no upstream */
        put_line<ACCESS_REAL>(tile, false, (real *)job->gradient + first, line, slope);
    }
}

/* The sums of a pair of neighbouring lines. */
template <typename loss, typename parameter>
ALWAYS_INLINE void add_pair(const parameter *job, const tile *tile, int first, real *sum) {
    numbers in[2][loss::OPERANDS];
    own_line lines[2];
    EACH_OPERAND {
        const real *from = (const real *)job->operand[k] + first;
        prefetch_line<ACCESS_REAL, KEEP_LEAST>(tile, from, 0, &in[0][k]);
        prefetch_line<ACCESS_REAL, KEEP_LEAST>(tile, from, 1, &in[1][k]);
    }
    unpack_line<loss, ACCESS_REAL>(false, in[0], &lines[0]);
    unpack_line<loss, ACCESS_REAL>(false, in[1], &lines[1]);
    EACH_OWN sum[own] =
        loss::value(lines[0].x[own], REAL(job->parameter)) + loss::value(lines[1].x[own], REAL(job->parameter));
    put_pair<loss>(job, tile, first, lines);
}

template <typename loss, typename parameter> ALWAYS_INLINE void run_tiny(const parameter *job) {
    __shared__ __align__(16) real pairs[ORDER_PAIRS][ORDER_LANES]; /* one for each warp */
    const place_in_block at = here_in_block();
    const tile tile = tile_at(0, ORDER_TILE, at.thread, NULL);
    const int first = at.warp * 2 * ORDER_LANES;
    real sum[ORDER_OWN_LANES] = {};
    if (first < job->count)
        add_pair<loss>(job, &tile, first, sum);
    write_line(&tile, pairs[at.warp], 0, sum);
    __syncthreads();
    if (at.warp > 0)
        return;
    const double total = order_pairs(at.thread, pairs);
    if (at.thread == 0)
        store_scalar(job->value, ONEPASS_F32, total * job->factor);
}

#endif
