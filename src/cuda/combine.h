/*
 * From sums of tiles to the value: the tree within a block, the tree over the blocks,
 * and the division at the end. The last block to finish adds up what all have left in the
 * workspace, in order; who is last is told by a counter.
 */
#ifndef ONEPASS_CUDA_COMBINE_H
#define ONEPASS_CUDA_COMBINE_H

#include "cuda/gpu.h"
#include "cuda/pairwise.h"
#include "dtype.h"
#include "order.h"

/* Nodes of one level in shared memory, their number a power of two, by one warp. */
ALWAYS_INLINE double tree_of(int thread, double *node, int count) {
    const int own = count > ORDER_WARP ? count / ORDER_WARP : 1;
    const double sum = thread * own < count ? order_tree(node + thread * own, own) : ORDER_NOTHING;
    return order_neighbours(sum, count < ORDER_WARP ? count : ORDER_WARP);
}

/* The mean is the sum over the divisor, rounded once to the type of the value. */
ALWAYS_INLINE void write_value(const cuda_head *head, double sum) {
    if (head->count == 0)
        sum = 0;
    if (head->reduction == ONEPASS_MEAN)
        sum = head->reciprocal != 0 ? sum * head->reciprocal : sum / head->divisor;
    store_scalar(head->data[CUDA_VALUE], head->dtype[CUDA_VALUE], sum);
}

/* A warp adds up 128 neighbouring partial sums at a time, four a thread. */
#define GROUP 128

ALWAYS_INLINE double group_sum(const double *partial, int64_t first, int64_t count, int thread) {
    double own[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int64_t at = first + 4 * thread + i;
        own[i] = at < count ? __ldcg(partial + at) : ORDER_NOTHING;
    }
    return order_neighbours((own[0] + own[1]) + (own[2] + own[3]), ORDER_WARP);
}

/* Leaves the block's sum in the workspace and tells if all others have done so before. By one warp. */
ALWAYS_INLINE bool leave_sum(unsigned *counter, double *partial, double sum, int thread) {
    unsigned number = 0;
    if (thread == 0) {
        __stcg(partial + blockIdx.x, sum);
        number = take_ticket(counter);
    }
    return __shfl_sync(~0u, number, 0) == gridDim.x - 1;
}

/* The last block to come here adds up the partial sums of all; returns whether this
 * thread has the sum. A small grid's are added up by the warp that brings the last one,
 * without waiting for others. */
ALWAYS_INLINE bool combine_blocks(void *workspace, double *node, double *sum) {
    __shared__ bool is_last;
    const int thread = threadIdx.x % ORDER_WARP, warp = threadIdx.x / ORDER_WARP, warps = blockDim.x / ORDER_WARP;
    unsigned *counter = (unsigned *)workspace;
    double *partial = (double *)workspace + CUDA_WORKSPACE_HEAD / sizeof(double);
    const int64_t blocks = gridDim.x;
    const bool last = warp == 0 && leave_sum(counter, partial, *sum, thread);
    if (blocks <= GROUP) {
        if (!last)
            return false;
        *sum = group_sum(partial, 0, blocks, thread);
    } else {
        if (threadIdx.x == 0)
            is_last = last;
        __syncthreads();
        if (!is_last)
            return false;
        int groups = 1;
        while (groups * GROUP < blocks)
            groups *= 2;
        for (int group = warp; group < groups; group += warps) {
            const double group_node = group_sum(partial, (int64_t)group * GROUP, blocks, thread);
            if (thread == 0)
                node[group] = group_node;
        }
        __syncthreads();
        if (warp != 0)
            return false;
        *sum = tree_of(thread, node, groups);
    }
    if (thread == 0)
        *counter = 0;
    return thread == 0;
}

/* A block's sum, known to its first warp, becomes part of the value. */
ALWAYS_INLINE void finish(const cuda_head *head, double *node, double sum) {
    const bool has_sum = gridDim.x == 1 ? threadIdx.x == 0 : combine_blocks(head->workspace, node, &sum);
    if (has_sum)
        write_value(head, sum);
}

#endif
