/*
 * The mean over weights, a mask or both of a tile that ends with a pair of lines, like tiny.h, or of a few whole tiles,
 * like few.h: a block, with as many warps a tile as there, and a float as the value; alone, or with the gradient for
 * the prediction. Each has a kernel of its own, which is shorter than both (0.06 us of 1.6).
 */
#ifndef ONEPASS_CUDA_PAIRWISE_FEW_MEAN_H
#define ONEPASS_CUDA_PAIRWISE_FEW_MEAN_H

#include "cuda/pairwise/mean.h"
#include "cuda/quotient.h"

/* What warps leave in shared memory: the sums of lanes in some lines, of terms and of weights, or how many elements of
 * a thread take part; then what remains of a tile's. `most` tiles have room, and a warp that has no lines. */
template <direction direction, int most> struct few_means {
    enum {
        SUMS = direction == MASK_MEAN ? 1 : 2,
        WARPS = most == 1 ? CUDA_TINY_WARPS : CUDA_FEW_WARPS, /* of a tile */
        LINES = ORDER_LINES / WARPS,                          /* of a warp */
        FOURS = WARPS * ORDER_WARP / 4                        /* of a tile's counts, which are added up together */
    };
    real part[SUMS][most * WARPS + 1][ORDER_LANES];
    double node[SUMS][most][ORDER_FEW_PITCH];
    uint8_t count[(most * WARPS + 1) * ORDER_WARP];
    void *late;            /* what lies on the parameter's second cache line: that comes while the operands do */
    double sum[MEAN_SUMS]; /* of all tiles */
};

/* How many elements take part, of so many tiles. By one warp, which has the sums of four threads at a time, and of so
 * many tiles that all of its bytes together are more than one has room for. */
template <direction direction, int most>
ALWAYS_INLINE uint32_t count_few(int thread, const few_means<direction, most> *shared, int tiles) {
    constexpr int fours = few_means<direction, most>::FOURS;
    const uint32_t *own = (const uint32_t *)shared->count + thread;
    uint32_t count = 0;
#pragma unroll
    for (int i = 0; i < most * fours; i += ORDER_WARP)
        count += i + thread < tiles * fours ? own[i] : 0;
    const uint32_t pairs = (count & 0x00ff00ff) + (count >> 8 & 0x00ff00ff);
    return (uint32_t)warp_sum((int)((pairs >> 16) + (pairs & 0xffff)));
}

/* A warp's lines, from when they are asked for to their gradients. One beyond the end computes the first ones and
 * forgets them, as in tiny.h. */
template <typename loss, int own_lines> struct few_lines {
    bool are_there;
    tile place;
    weighted_tensors of;
    outputs asked;
    weighted_lines<loss, own_lines> numbers;
};

template <direction direction, bool writes, int most, typename loss, int own_lines>
ALWAYS_INLINE void put_few_means(const cuda_tiny_mean *job, const place_in_block *at, few_lines<loss, own_lines> *lines,
                                 few_means<direction, most> *shared) {
    const bool has_lines = (most > 1 && !writes) || at->warp * own_lines * ORDER_LANES < job->count;
    lines->are_there = has_lines;
    lines->place = tile_of_lines<own_lines>(has_lines ? at->warp : 0, at->thread);
    lines->of = (weighted_tensors){{job->operand[0], job->operand[1]}, job->weight, job->mask, false};
    lines->asked = (outputs){};
    lines->asked.parameter = REAL(job->parameter);
    lines->asked.upstream = 1;
    prefetch_weighted_lines<direction, true, KEEP_LEAST, direction != WEIGHT_MEAN>(&lines->of, &lines->place, 0,
                                                                                   &lines->numbers);
    if constexpr (direction != WEIGHT_MEAN) /* its words are fewer than the sums */
        EACH_OF(own_lines) lines->numbers.mask[line] = has_lines ? lines->numbers.mask[line] : 0;
    if (threadIdx.x == 0 && (writes || direction == MEAN || job->told)) /* of a mean to ask takes longer */
        shared->late = writes ? job->gradient : job->divided_by;
    lane_sums terms = {};
    lane_weights weights = {};
    compute_weighted_lines<direction>(&lines->of, &lines->asked, &lines->place, NULL, 0, &lines->numbers, &terms,
                                      &weights);
    if constexpr (direction == WEIGHT_MEAN)
        EACH_OWN {
            terms.sum[own] = has_lines ? terms.sum[own] : 0;
            weights.sums.sum[own] = has_lines ? weights.sums.sum[own] : 0;
        }
    const struct tile in_shared = tile_at(0, ORDER_TILE, at->thread, NULL);
    write_line(&in_shared, shared->part[OF_TERMS][at->warp], 0, terms.sum);
    if constexpr (direction == MASK_MEAN)
        shared->count[at->warp * ORDER_WARP + at->thread] = (uint8_t)sum_of_bytes(weights.ones);
    else
        write_line(&in_shared, shared->part[OF_WEIGHTS][at->warp], 0, weights.sums.sum);
}

/* One of the sums, of all tiles, by a warp. */
template <direction direction, int most>
ALWAYS_INLINE double sum_of_few(int thread, few_means<direction, most> *shared, int of, int tiles) {
    double sum;
    if (direction == MASK_MEAN && of == OF_WEIGHTS)
        return count_few(thread, shared, tiles);
    if constexpr (most == 1) {
        shared->node[of][0][thread] = order_far_lanes<few_means<direction, most>::WARPS>(thread, shared->part[of]);
        __syncwarp();
    }
    order_few<1, most>(thread, shared->node + of, tiles, &sum);
    return sum;
}

/* The first store is nearly always the last. */
static __device__ __noinline__ void store_rare_mean(void *value, double terms, double weights) {
    store_scalar(value, ONEPASS_F32, terms / weights);
}

ALWAYS_INLINE void store_mean(void *value, double terms, double weights) {
    const quick_quotient mean = divide_quickly(terms, weights);
    *(float *)value = mean.rounded;
    if (!mean.is_sure)
        store_rare_mean(value, terms, weights);
}

/* The mean alone. A warp adds up the terms and another one the weights, by the same code, since a launch waits for
 * every line of it; one divides while the other says by what, which lies on the parameter's second cache line (together
 * 0.01 to 0.07 us less than one warp took, and 0.06 to 0.11 where somebody asks for the divisor). */
template <direction direction, int most>
ALWAYS_INLINE void put_mean(const cuda_tiny_mean *job, const place_in_block *at, few_means<direction, most> *shared,
                            int tiles) {
    if (at->warp >= MEAN_SUMS)
        return;
    const double sum = sum_of_few(at->thread, shared, at->warp, tiles);
    if (at->thread == 0)
        shared->sum[at->warp] = sum;
    __syncthreads();
    if (at->warp == OF_TERMS) {
        if (at->thread == 0)
            tell_divisor(job->told, shared->late, shared->sum[OF_WEIGHTS]);
        return;
    }
    if (at->thread == 0)
        store_mean(job->value, shared->sum[OF_TERMS], sum);
}

/* The same over a mask: a warp counts what takes part sooner than another could tell it. */
template <int most>
ALWAYS_INLINE void put_mean(const cuda_tiny_mean *job, const place_in_block *at, few_means<MASK_MEAN, most> *shared,
                            int tiles) {
    if (at->warp > 0)
        return;
    const double weights = sum_of_few(at->thread, shared, OF_WEIGHTS, tiles);
    const double terms = sum_of_few(at->thread, shared, OF_TERMS, tiles);
    if (threadIdx.x == 0) {
        store_mean(job->value, terms, weights);
        tell_divisor(job->told, shared->late, weights);
    }
}

/* The same with the gradient, which waits for what the mean is divided by, with its operands still in registers: all
 * warps add up both, which is quicker than to wait for one; and while they divide for that, a warp that has no lines
 * does so for the value. */
template <direction direction, int most, typename loss, int own_lines>
ALWAYS_INLINE void put_mean_and_gradient(const cuda_tiny_mean *job, const place_in_block *at,
                                         few_lines<loss, own_lines> *lines, few_means<direction, most> *shared,
                                         int tiles) {
    constexpr int sums = few_means<direction, most>::SUMS, warps = few_means<direction, most>::WARPS;
    double sum[MEAN_SUMS];
    if constexpr (most == 1)
        ORDER_EACH_SUM sum[of] = order_far_lanes<warps>(at->thread, shared->part[of]);
    if constexpr (direction == MASK_MEAN)
        sum[OF_WEIGHTS] = count_few(at->thread, shared, tiles);
    if constexpr (most == 1)
        order_near_lanes<sums>(sum);
    else
        order_few<sums, most>(at->thread, shared->node, tiles, sum);
    if (lines->are_there) {
        const real scale = (real)(1 / (sum[OF_WEIGHTS] + 0.));               /* no -0, as of a sum */
        lines->asked.scale = most == 1 ? scale : __shfl_sync(~0u, scale, 0); /* the first thread has all tiles */
        compute_weighted_lines<BACKWARD>(&lines->of, &lines->asked, &lines->place, shared->late, 0, &lines->numbers,
                                         NULL, NULL);
    }
    const double mean = sum[OF_TERMS] / sum[OF_WEIGHTS]; /* begun before the terms are known */
    if ((int)threadIdx.x == tiles * warps * ORDER_WARP) {
        store_scalar(job->value, ONEPASS_F32, mean);
        tell_divisor(job->told, job->divided_by, sum[OF_WEIGHTS]);
    }
}

template <typename loss, direction asked, int most> ALWAYS_INLINE void run_few_mean(const cuda_tiny_mean *job) {
    constexpr bool writes = asked >= MEAN_BOTH;
    constexpr direction direction = asked == MEAN_BOTH     ? MEAN
                                    : asked == WEIGHT_BOTH ? WEIGHT_MEAN
                                    : asked == MASK_BOTH   ? MASK_MEAN
                                                           : asked;
    constexpr int sums = few_means<direction, most>::SUMS, warps = few_means<direction, most>::WARPS;
    __shared__ __align__(16) few_means<direction, most> shared;
    const place_in_block at = here_in_small_block();
    const int tiles = most == 1 ? 1 : job->count / ORDER_TILE;
    few_lines<loss, few_means<direction, most>::LINES> lines;
    put_few_means<direction, writes>(job, &at, &lines, &shared);
    __syncthreads();
    if constexpr (most > 1) {
        static_assert(sums <= warps, "a warp for each sum of each tile");
        if (at.warp < sums * tiles) {
            const int of = at.warp < tiles ? OF_TERMS : OF_WEIGHTS, tile = at.warp - of * tiles;
            shared.node[of][tile][at.thread] = order_far_lanes<warps>(at.thread, shared.part[of] + tile * warps);
        }
        __syncthreads();
    }
    if constexpr (writes)
        put_mean_and_gradient(job, &at, &lines, &shared, tiles);
    else
        put_mean(job, &at, &shared, tiles);
}

template <typename loss, direction direction, access access> ALWAYS_INLINE void run_kernel(const cuda_tiny_mean *job) {
    run_few_mean<loss, direction, 1>(job);
}

template <typename loss, direction direction, access access> ALWAYS_INLINE void run_kernel(const cuda_few_mean *job) {
    run_few_mean<loss, direction, ORDER_FEW>(&job->tiny);
}

#endif
