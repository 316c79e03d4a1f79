/*
 * A block's share of the work: its span of tiles, whose sums meet in shared memory, and its part of the total.
 */
#ifndef ONEPASS_CUDA_PAIRWISE_BLOCK_H
#define ONEPASS_CUDA_PAIRWISE_BLOCK_H

#include "cuda/combine.h"
#include "cuda/pairwise/direct.h"
#include "cuda/pairwise/general.h"
#include "cuda/pairwise/weighted.h"

/* What a mean is divided by beyond the head's divisor. */
ALWAYS_INLINE bool is_over_weights(const cuda_direct *job) {
    return false;
}
template <typename parameter> ALWAYS_INLINE bool is_over_weights(const parameter *job) {
    return job->over_weights;
}

ALWAYS_INLINE double sum_of_weights(const cuda_direct *job) {
    return 1;
}
template <typename parameter> ALWAYS_INLINE double sum_of_weights(const parameter *job) {
    const char *workspace = (const char *)job->head.total.workspace;
    return *(const double *)(job->divisor ? job->divisor : workspace + CUDA_WEIGHTS_AT) + 0.; /* no -0, as in a sum */
}

/* A block takes an aligned span of tiles; their sums meet in shared memory. Inputs beyond what so many blocks can take
 * make it come again, in sweeps. */
template <typename loss, direction direction, access access, typename parameter>
ALWAYS_INLINE void run_block(const parameter *job) {
    __shared__ double node[CUDA_MOST_NODES];
    __shared__ order_stack stack;
    const cuda_head *head = &job->head;
    const place_in_block at = here_in_block();
    const int tiles = head->tiles_per_block, sweeps = head->sweeps;
    const double weights = is_over_weights(job) ? sum_of_weights(job) : 1;
    outputs outputs = outputs_of<direction>(head);
    if (is_over_weights(job))
        outputs.scale = (real)(1 / weights);
    if (direction >= BACKWARD && head->skip_if_one && outputs.upstream == 1)
        return;
    double sum = ORDER_NOTHING;
    if (sweeps > 1 && threadIdx.x == 0)
        stack.depth = 0, stack.tiles = 0;

#pragma unroll 1
    for (int sweep = 0; sweep < sweeps; sweep++) {
        const int64_t first = ((int64_t)blockIdx.x * sweeps + sweep) * tiles;
        const int64_t left = head->count - first * ORDER_TILE;
        const int count = left < tiles * ORDER_TILE ? (int)left : tiles * ORDER_TILE;
        if (count <= 0)
            break;
        sum = run_tiles<loss, direction, access>(job, &outputs, first, count, node);
        if (outputs.sum && tiles > 1) {
            __syncthreads();
            if (at.warp == 0)
                sum = tree_of(at.thread, node, tiles);
        }
        if (outputs.sum && sweeps > 1) {
            if (threadIdx.x == 0)
                order_push(&stack, sum);
            __syncthreads();
        }
    }
    if (!outputs.sum)
        return;
    if (sweeps > 1 && threadIdx.x == 0)
        sum = stack.depth ? order_top(&stack) : ORDER_NOTHING;
    if (head->count == 0)
        sum = 0;
    if (has_total(&head->total, node, &sum))
        write_value(&head->total, sum / weights);
}

#endif
