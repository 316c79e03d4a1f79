/*
 * Tiny inputs: a sum of float that one block takes, of dense, aligned operands that end with a pair of lines. A launch
 * waits for its parameter and for its code, so both are short: warps share a tile, and what the plan knows is not
 * asked.
 */
#ifndef ONEPASS_CUDA_PAIRWISE_TINY_H
#define ONEPASS_CUDA_PAIRWISE_TINY_H

#include "cuda/pairwise/compute.h"

/* The sums of a pair of neighbouring lines. */
template <typename loss> ALWAYS_INLINE void add_pair(const cuda_tiny *job, const tile *tile, int first, real *sum) {
    numbers in[2][loss::OPERANDS];
    own_line even, odd;
    EACH_OPERAND {
        const real *from = (const real *)job->operand[k] + first;
        prefetch_line<ACCESS_REAL, KEEP_LEAST>(tile, from, 0, &in[0][k]);
        prefetch_line<ACCESS_REAL, KEEP_LEAST>(tile, from, 1, &in[1][k]);
    }
    unpack_line<loss, ACCESS_REAL>(false, in[0], &even);
    unpack_line<loss, ACCESS_REAL>(false, in[1], &odd);
    EACH_OWN sum[own] = loss::value(even.x[own], REAL(job->parameter)) + loss::value(odd.x[own], REAL(job->parameter));
}

template <typename loss> ALWAYS_INLINE void run_tiny(const cuda_tiny *job) {
    extern __shared__ __align__(16) unsigned char shared_memory[];
    __shared__ double node[CUDA_TINY_TILES];
    const place_in_block at = here_in_block();
    real(*pairs)[ORDER_LANES] = (real(*)[ORDER_LANES])shared_memory; /* one for each warp */
    const int first = at.warp * 2 * ORDER_LANES, tiles = at.warps / ORDER_PAIRS;
    const tile tile = tile_at(0, ORDER_TILE, at.thread, NULL);
    real sum[ORDER_OWN_LANES] = {};
    if (first < job->count)
        add_pair<loss>(job, &tile, first, sum);
    write_line(&tile, pairs[at.warp], 0, sum);
    __syncthreads();
    double total = ORDER_NOTHING;
    if (at.warp * ORDER_TILE < job->count) /* of the first warps, a tile each */
        total = order_pairs(at.thread, pairs + at.warp * ORDER_PAIRS);
    if (tiles > 1) {
        if (at.warp < tiles && at.thread == 0)
            node[at.warp] = total;
        __syncthreads();
        if (at.warp == 0)
            total = order_neighbours(node[at.thread % tiles], tiles);
    }
    if (threadIdx.x == 0)
        store_scalar(job->value, ONEPASS_F32, total * job->factor);
}

#endif
