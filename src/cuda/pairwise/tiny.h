/*
 * Tiny inputs: the sum of a tile of floats, dense, aligned and ending with a pair of lines, alone or with the gradient
 * of such a sum. A launch waits for its parameter and for its code, so both are short, and what the plan knows is not
 * asked; four warps share the tile (2^10 elements of mse took 1.11 us instead of 1.24 on an H200; of several tiles the
 * kernel of few.h is quicker).
 */
#ifndef ONEPASS_CUDA_PAIRWISE_TINY_H
#define ONEPASS_CUDA_PAIRWISE_TINY_H

#include "cuda/pairwise/compute.h"

/* Out of line, and told by a sign: with its code in place and a flag 2^11 elements took 0.01 us longer. */
static __device__ __noinline__ double divided(double sum, double divisor) {
    return sum / divisor;
}

/* The mean or sum. */
ALWAYS_INLINE double reduced(const cuda_tiny *job, double sum) {
    return job->number < 0 ? divided(sum, -job->number) : sum * job->number;
}

ALWAYS_INLINE double reduced(const cuda_tiny_both *job, double sum) {
    return sum * job->factor;
}

/* What becomes of a pair of neighbouring lines, beside their sums. */
template <typename loss> ALWAYS_INLINE void put_pair(const cuda_tiny *job, const tile *tile, const own_line *lines) {}

template <typename loss>
ALWAYS_INLINE void put_pair(const cuda_tiny_both *job, const tile *tile, const own_line *lines) {
    outputs outputs = {};
    outputs.scale = (real)job->factor;
#pragma unroll
    for (int line = 0; line < 2; line++) {
        real slope[ORDER_OWN_LANES];
        EACH_OWN slope[own] =
            gradient_of(&outputs, loss::slope_p(lines[line].x[own], REAL(job->parameter)), 1); /* no upstream */
        put_line<ACCESS_REAL>(tile, false, job->gradient, line, slope);
    }
}

/* A warp has a pair of lines. One beyond the end computes the first pair and forgets it: loads behind a branch would
 * wait for all that the compiler puts before it (0.03 us). */
template <typename loss, typename parameter> ALWAYS_INLINE void run_tiny(const parameter *job) {
    __shared__ __align__(16) real pairs[ORDER_PAIRS][ORDER_LANES]; /* one for each warp */
    __shared__ double node[1][1][ORDER_FEW_PITCH];
    const place_in_block at = here_in_small_block();
    const bool has_pair = at.warp * 2 * ORDER_LANES < job->count;
    const tile tile = tile_of_lines<2>(has_pair ? at.warp : 0, at.thread);
    numbers in[2][loss::OPERANDS];
    own_line lines[2];
    real sum[ORDER_OWN_LANES];
    EACH_OPERAND {
        prefetch_line<ACCESS_REAL, KEEP_LEAST>(&tile, job->operand[k], 0, &in[0][k]);
        prefetch_line<ACCESS_REAL, KEEP_LEAST>(&tile, job->operand[k], 1, &in[1][k]);
    }
    unpack_line<loss, ACCESS_REAL>(false, in[0], &lines[0]);
    unpack_line<loss, ACCESS_REAL>(false, in[1], &lines[1]);
    EACH_OWN {
        const real both =
            loss::value(lines[0].x[own], REAL(job->parameter)) + loss::value(lines[1].x[own], REAL(job->parameter));
        sum[own] = has_pair ? both : 0;
    }
    if (has_pair)
        put_pair<loss>(job, &tile, lines);
    const struct tile in_shared = tile_at(0, ORDER_TILE, at.thread, NULL);
    write_line(&in_shared, pairs[at.warp], 0, sum);
    __syncthreads();
    if (at.warp > 0)
        return;
    node[0][0][at.thread] = order_far_lanes<ORDER_PAIRS>(at.thread, pairs);
    __syncwarp();
    double total;
    order_few<1, 1>(at.thread, node, 1, &total);
    if (at.thread == 0)
        store_scalar(job->value, ONEPASS_F32, reduced(job, total));
}

#endif
