/*
 * The mean over weights, a mask or both of a few tiles, or of one that ends with a pair of lines, like tiny.h and
 * few.h: a block, four warps a tile, a float as the value. One tile has an end of its own, which is shorter (0.06 us
 * of 1.3).
 */
#ifndef ONEPASS_CUDA_PAIRWISE_FEW_MEAN_H
#define ONEPASS_CUDA_PAIRWISE_FEW_MEAN_H

#include "cuda/pairwise/mean.h"

/* What warps leave in shared memory: the sums of lanes in a pair of lines, of terms and of weights, or how many
 * elements of a thread take part; then what remains of a tile's. */
template <direction direction> struct few_means {
    enum {
        SUMS = direction == MASK_MEAN ? 1 : 2
    };
    real pair[SUMS][ORDER_FEW * ORDER_PAIRS][ORDER_LANES];
    double node[SUMS][ORDER_FEW][ORDER_FEW_PITCH];
    uint8_t count[ORDER_FEW * ORDER_PAIRS * ORDER_WARP];
};

/* How many elements take part, of so many tiles. By one warp, which has the sums of four threads at a time. */
template <int most> ALWAYS_INLINE uint32_t count_few(int thread, const uint8_t *counts, int tiles) {
    const uint32_t *fours = (const uint32_t *)counts;
    uint32_t count = fours[thread];
#pragma unroll
    for (int i = 1; i < most; i++)
        count += i < tiles ? fours[i * ORDER_WARP + thread] : 0;
    count = sum_of_bytes(count);
#pragma unroll
    for (int distance = ORDER_WARP / 2; distance > 0; distance /= 2)
        count += __shfl_xor_sync(~0u, count, distance);
    return count;
}

/* A warp has a pair of lines. One beyond the end computes the first pair and forgets it, as in tiny.h. */
template <typename loss, direction direction>
ALWAYS_INLINE void put_few_means(const cuda_few_mean *job, const place_in_block *at, few_means<direction> *shared) {
    const bool has_pair = at->warp * 2 * ORDER_LANES < job->count;
    const tile tile = tile_of_lines<2>(has_pair ? at->warp : 0, at->thread);
    const weighted_tensors tensors = {{job->operand[0], job->operand[1]}, job->weight, job->mask, false};
    outputs outputs = {};
    outputs.parameter = REAL(job->parameter);
    weighted_lines<loss, 2> lines;
    prefetch_weighted_lines<direction, true>(&tensors, &tile, 0, &lines);
    lane_sums terms = {};
    lane_weights weights = {};
    compute_weighted_lines<direction>(&tensors, &outputs, &tile, NULL, 0, &lines, &terms, &weights);
    EACH_OWN {
        terms.sum[own] = has_pair ? terms.sum[own] : 0;
        weights.sums.sum[own] = has_pair ? weights.sums.sum[own] : 0;
    }
    const struct tile in_shared = tile_at(0, ORDER_TILE, at->thread, NULL);
    write_line(&in_shared, shared->pair[OF_TERMS][at->warp], 0, terms.sum);
    if constexpr (direction == MASK_MEAN)
        shared->count[at->warp * ORDER_WARP + at->thread] = has_pair ? (uint8_t)sum_of_bytes(weights.ones) : 0;
    else
        write_line(&in_shared, shared->pair[OF_WEIGHTS][at->warp], 0, weights.sums.sum);
}

template <typename loss, direction direction> ALWAYS_INLINE void run_few_mean(const cuda_few_mean *job) {
    constexpr int sums = few_means<direction>::SUMS;
    __shared__ __align__(16) few_means<direction> shared;
    const place_in_block at = here_in_small_block();
    put_few_means<loss, direction>(job, &at, &shared);
    __syncthreads();
    double sum[MEAN_SUMS];
    if (job->count <= ORDER_TILE) {
        if (at.warp > 0)
            return;
        ORDER_EACH_SUM sum[of] = order_far_lanes<ORDER_PAIRS>(at.thread, shared.pair[of]);
        if constexpr (direction == MASK_MEAN)
            sum[OF_WEIGHTS] = count_few<1>(at.thread, shared.count, 1);
        order_near_lanes<sums>(sum);
        const double mean = sum[OF_TERMS] / sum[OF_WEIGHTS]; /* begun before the terms are known */
        if (at.thread == 0) {
            store_scalar(job->value, ONEPASS_F32, mean);
            tell_divisor(job, sum[OF_WEIGHTS]);
        }
        return;
    }
    const int tiles = job->count / ORDER_TILE;
    if (at.warp < tiles)
        ORDER_EACH_SUM shared.node[of][at.warp][at.thread] =
            order_far_lanes<ORDER_PAIRS>(at.thread, shared.pair[of] + at.warp * ORDER_PAIRS);
    __syncthreads();
    if (at.warp > 0)
        return;
    if constexpr (direction == MASK_MEAN)
        sum[OF_WEIGHTS] = count_few<ORDER_FEW>(at.thread, shared.count, tiles);
    order_few<sums, ORDER_FEW>(at.thread, shared.node, tiles, sum);
    if (at.thread == 0) {
        store_scalar(job->value, ONEPASS_F32, sum[OF_TERMS] / sum[OF_WEIGHTS]);
        tell_divisor(job, sum[OF_WEIGHTS]);
    }
}

template <typename loss, direction direction, access access> ALWAYS_INLINE void run_kernel(const cuda_few_mean *job) {
    run_few_mean<loss, direction>(job);
}

#endif
