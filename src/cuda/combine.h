/*
 * From sums of tiles to the value: the tree within a block, the tree over the blocks,
 * and the division at the end. The last block to finish adds up what all have left in the
 * workspace, in order; who is last is told by a counter.
 */
#ifndef ONEPASS_CUDA_COMBINE_H
#define ONEPASS_CUDA_COMBINE_H

#include "cuda/gpu.h"
#include "cuda/parameter.h"
#include "dtype.h"
#include "order.h"

/* Nodes of one level in shared memory, their number a power of two, by one warp. */
ALWAYS_INLINE double tree_of(int thread, double *node, int count) {
    const int own = count > ORDER_WARP ? count / ORDER_WARP : 1;
    const double sum = thread * own < count ? order_tree(node + thread * own, own) : ORDER_NOTHING;
    return order_neighbours(sum, count < ORDER_WARP ? count : ORDER_WARP);
}

/* The mean is the sum over the divisor, rounded once to the type of the value. */
ALWAYS_INLINE void write_value(const cuda_total *total, double sum) {
    store_scalar(total->value, total->dtype, total->divides ? sum / total->number : sum * total->number);
}

/* The same for a small call, which waits for all the code that it comes by: what is rare is out of line. Elsewhere that
 * would cost a kernel registers for a call. */
static __device__ __noinline__ void write_rare_value(const cuda_total *total, double sum) {
    write_value(total, sum);
}

ALWAYS_INLINE void write_small_value(const cuda_total *total, double sum) {
    if (!total->divides && total->dtype == ONEPASS_F32)
        store_scalar(total->value, ONEPASS_F32, sum * total->number);
    else
        write_rare_value(total, sum);
}

ALWAYS_INLINE double pair_sum(const double *partial, int64_t at, int64_t count) {
    const double left = at < count ? __ldcg(partial + at) : ORDER_NOTHING;
    return left + (at + 1 < count ? __ldcg(partial + at + 1) : ORDER_NOTHING);
}

/* A warp adds up so many neighbouring partial sums at a time. All are in flight before the
 * first is used, since everybody waits for the last block (measured: 13 us of a launch of
 * 32768 blocks against four a thread). */
#define GROUP (2 * ORDER_SHARE * ORDER_WARP)

ALWAYS_INLINE double group_sum(const double *partial, int64_t first, int64_t count, int thread) {
    double share[ORDER_SHARE];
#pragma unroll
    for (int i = 0; i < ORDER_SHARE; i++)
        share[i] = pair_sum(partial, first + 2 * (i * ORDER_WARP + thread), count);
    return order_shares(thread, share);
}

/* Leaves the block's sums in the workspace and tells if all others have done so before. By one warp. */
template <int sums> ALWAYS_INLINE bool leave_sums(unsigned *counter, double *partial, const double *sum, int thread) {
    unsigned number = 0;
    if (thread == 0) {
#pragma unroll
        for (int i = 0; i < sums; i++)
            __stcg(partial + i * (int64_t)gridDim.x + blockIdx.x, sum[i]);
        number = take_ticket(counter);
    }
    return __shfl_sync(~0u, number, 0) == gridDim.x - 1;
}

/* What the first thread knows, for the whole block. */
ALWAYS_INLINE bool tell_block(bool known, bool *shared) {
    if (threadIdx.x == 0)
        *shared = known;
    __syncthreads();
    return *shared;
}

/* The last block to come here adds up the partial sums of all; returns whether this
 * thread has the sums. Those of few blocks are added up by the warp that brings the last
 * one, which need not wait for its block (0.8 us), and by a shorter code if they are
 * fewer still (0.15 us). */
template <int sums> ALWAYS_INLINE bool combine_blocks(void *workspace, double *node, double *sum) {
    __shared__ bool is_last;
    const int thread = threadIdx.x % ORDER_WARP, warp = threadIdx.x / ORDER_WARP, warps = blockDim.x / ORDER_WARP;
    unsigned *counter = (unsigned *)workspace;
    double *partial = (double *)workspace + CUDA_WORKSPACE_HEAD / sizeof(double);
    const int64_t blocks = gridDim.x;
    const bool last = warp == 0 && leave_sums<sums>(counter, partial, sum, thread);
    const bool by_one_warp = blocks <= GROUP;
    if (by_one_warp ? !last : !tell_block(last, &is_last))
        return false;
    if (blocks <= 2 * ORDER_WARP) {
#pragma unroll
        for (int i = 0; i < sums; i++)
            sum[i] = order_neighbours(pair_sum(partial + i * blocks, 2 * thread, blocks), ORDER_WARP);
    } else {
        int groups = 1;
        while (groups * GROUP < blocks)
            groups *= 2;
#pragma unroll 1
        for (int group = warp; group < groups; group += warps) {
#pragma unroll
            for (int i = 0; i < sums; i++) {
                sum[i] = group_sum(partial + i * blocks, (int64_t)group * GROUP, blocks, thread);
                if (thread == 0)
                    node[i * groups + group] = sum[i];
            }
        }
        if (!by_one_warp) {
            __syncthreads();
            if (warp != 0)
                return false;
#pragma unroll
            for (int i = 0; i < sums; i++)
                sum[i] = tree_of(thread, node + i * groups, groups);
        }
    }
    if (thread == 0)
        *counter = 0;
    return thread == 0;
}

/* A block's sums, known to its first warp, become part of those of all; returns whether this thread has the latter. */
template <int sums> ALWAYS_INLINE bool has_totals(const cuda_total *total, double *node, double *sum) {
    return gridDim.x == 1 ? threadIdx.x == 0 : combine_blocks<sums>(total->workspace, node, sum);
}

ALWAYS_INLINE bool has_total(const cuda_total *total, double *node, double *sum) {
    return has_totals<1>(total, node, sum);
}

#endif
