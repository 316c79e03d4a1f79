/*
 * The mean over weights, a mask or both: the terms and what they count for are added up in the same pass.
 * With a gradient that is not possible, since each of its elements is divided by the latter's sum.
 */
#ifndef ONEPASS_CUDA_PAIRWISE_MEAN_H
#define ONEPASS_CUDA_PAIRWISE_MEAN_H

#include "cuda/await.h"
#include "cuda/combine.h"
#include "cuda/pairwise/block.h"
#include "cuda/pairwise/weighted.h"

typedef enum mean_sum {
    OF_TERMS,
    OF_WEIGHTS,
    MEAN_SUMS
} mean_sum;

/* What the mean was divided by, for who asks. */
ALWAYS_INLINE void tell_divisor(int32_t told, void *divided_by, double weights) {
    if (told)
        store_scalar(divided_by, told, weights);
}

#define EACH_SUM _Pragma("unroll") for (int of = OF_TERMS; of < MEAN_SUMS; of++)

/* What a tile's elements count for, by its warp. */
template <direction direction> ALWAYS_INLINE double weight_of_tile(int thread, const lane_weights *weights) {
    if constexpr (direction != MASK_MEAN)
        return order_lanes(thread, weights->sums.sum);
    return warp_sum((int)sum_of_bytes(weights->ones));
}

/* Lines that are prefetched while as many are computed: two stages fit into the registers. */
template <typename loss, direction direction> struct mean_stage {
    enum {
        LINES = direction == MASK_MEAN && loss::OPERANDS == 2 ? ORDER_LINES / 2 : ORDER_LINES / 4
    };
    weighted_lines<loss, LINES> of;
};

/* As three operands are loaded in direct.h. */
template <direction direction, typename loss>
ALWAYS_INLINE void begin_mean(const weighted_tensors *of, const tile *tile, int first,
                              mean_stage<loss, direction> *stage) {
    if (tile->count > 0)
        prefetch_weighted_lines<direction, false, KEEP_OUTSIDE>(of, tile, first, &stage->of);
}

/* A tile whose first lines are in `even`, which has those of the next one afterwards. */
template <direction direction, typename loss>
ALWAYS_INLINE void run_mean_tile(const weighted_tensors *of, const outputs *outputs, const tile *now, const tile *next,
                                 mean_stage<loss, direction> *even, lane_sums *sums, lane_weights *weights) {
    constexpr int lines = mean_stage<loss, direction>::LINES;
    mean_stage<loss, direction> odd;
#pragma unroll
    for (int first = 0; first < ORDER_LINES; first += 2 * lines) {
        const int after = first + 2 * lines;
        begin_mean(of, now, first + lines, &odd);
        compute_weighted_lines<direction>(of, outputs, now, NULL, first, &even->of, sums, weights);
        if (after < ORDER_LINES)
            begin_mean(of, now, after, even);
        else
            begin_mean(of, next, 0, even);
        compute_weighted_lines<direction>(of, outputs, now, NULL, first + lines, &odd.of, sums, weights);
    }
}

/* The lanes of some tiles, which are added up together, as in direct.h. */
template <direction direction> struct mean_lanes {
    enum {
        SUMS = direction == MASK_MEAN ? 1 : 2 /* others are numbers of elements */
    };
    real of[SUMS][ORDER_TOGETHER * ORDER_PITCH];
};

/* A block takes an aligned span of tiles; their sums meet in shared memory. If blocks are few enough the one that began
 * last awaits the others, which is over sooner than to look at the end for who is last (2 us). */
template <typename loss, direction direction> ALWAYS_INLINE void run_mean(const cuda_weighted *job) {
    constexpr int sums_of_lanes = mean_lanes<direction>::SUMS;
    __shared__ double node[MEAN_SUMS][CUDA_MOST_NODES];
    __shared__ __align__(16) mean_lanes<direction> lanes_of_warp[CUDA_MOST_WARPS];
    __shared__ block_sums<MEAN_SUMS> shared;
    const cuda_head *head = &job->head;
    const place_in_block at = here_in_block();
    const bool awaits = gridDim.x <= CUDA_MOST_AWAITED;
    const int tiles = head->tiles_per_block;
    const int64_t first = (int64_t)blockIdx.x * tiles, left = head->count - first * ORDER_TILE;
    const int count = left < tiles * ORDER_TILE ? (int)left : tiles * ORDER_TILE;
    const outputs outputs = outputs_of<direction>(head);
    const weighted_tensors tensors = tensors_of(job);
    mean_lanes<direction> *lanes = &lanes_of_warp[at.warp];
    tile now = tile_at(first + at.warp, count - at.warp * ORDER_TILE, at.thread, NULL);
    mean_stage<loss, direction> stage;
    begin_mean(&tensors, &now, 0, &stage);
    const all_blocks all = awaits ? begin_blocks(head->total.workspace, (int)gridDim.x, at.warps) : (all_blocks){};
    int together = 0;
#pragma unroll 1
    for (int i = at.warp; i < tiles; i += at.warps) {
        const int further = i + at.warps, beyond = further < tiles ? count - further * ORDER_TILE : 0;
        const tile next = tile_at(first + further, beyond, at.thread, NULL);
        lane_sums sums = {};
        lane_weights weights = {};
        if (now.count > 0)
            run_mean_tile(&tensors, &outputs, &now, &next, &stage, &sums, &weights);
        write_line(&now, lanes->of[OF_TERMS] + together * ORDER_PITCH, 0, sums.sum);
        if constexpr (direction == MASK_MEAN) {
            const int ones = warp_sum((int)sum_of_bytes(weights.ones));
            if (at.thread == 0)
                node[OF_WEIGHTS][i] = ones;
        } else
            write_line(&now, lanes->of[OF_WEIGHTS] + together * ORDER_PITCH, 0, weights.sums.sum);
        if (++together == ORDER_TOGETHER || further >= tiles) {
            __syncwarp();
            const int threads = ORDER_WARP / ORDER_TOGETHER, own = at.thread / threads; /* of the tiles */
            const int index = i - (together - 1 - own) * at.warps;
#pragma unroll
            for (int of = 0; of < sums_of_lanes; of++) {
                const double sum = order_lanes_together(at.thread, lanes->of[of]);
                if (own < together && at.thread % threads == 0)
                    node[of][index] = index * ORDER_TILE < count ? sum : ORDER_NOTHING;
            }
            __syncwarp();
            together = 0;
        }
        now = next;
    }
    leave_number(&all, &shared);
    __syncthreads();
    double sum[MEAN_SUMS] = {};
    if (at.warp == 0)
        EACH_SUM sum[of] = tree_of(at.thread, node[of], tiles);
    if (!(awaits ? join_blocks<MEAN_SUMS>(&all, &shared, sum) : has_totals<MEAN_SUMS>(&head->total, node[0], sum)))
        return;
    write_value(&head->total, sum[OF_TERMS] / sum[OF_WEIGHTS]);
    tell_divisor(job->told, job->divided_by, sum[OF_WEIGHTS]);
}

template <typename loss, direction direction, access access> ALWAYS_INLINE void run_kernel(const cuda_weighted *job) {
    if constexpr (direction == MEAN || direction == MASK_MEAN)
        run_mean<loss, direction>(job);
    else
        run_block<loss, direction, access>(job);
}

#endif
