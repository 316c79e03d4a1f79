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

/* The last block to come here, whose first warp knows that it is, adds up the partial sums of all; returns whether this
 * thread has the sums. Few of them are added up by that warp alone, which need not wait for its block (0.8 us), and by
 * a shorter code if they are fewer still (0.15 us). */
template <int sums>
ALWAYS_INLINE bool combine_partials(void *workspace, int64_t count, bool last, double *node, double *sum) {
    __shared__ bool is_last;
    const int thread = threadIdx.x % ORDER_WARP, warp = threadIdx.x / ORDER_WARP, warps = blockDim.x / ORDER_WARP;
    const double *partial = (const double *)workspace + CUDA_WORKSPACE_HEAD / sizeof(double);
    const bool by_one_warp = count <= GROUP;
    if (by_one_warp ? !last : !tell_block(last, &is_last))
        return false;
    if (count <= 2 * ORDER_WARP) {
#pragma unroll
        for (int i = 0; i < sums; i++)
            sum[i] = order_neighbours(pair_sum(partial + i * count, 2 * thread, count), ORDER_WARP);
    } else {
        int groups = 1;
        while (groups * GROUP < count)
            groups *= 2;
#pragma unroll 1
        for (int group = warp; group < groups; group += warps) {
#pragma unroll
            for (int i = 0; i < sums; i++) {
                sum[i] = group_sum(partial + i * count, (int64_t)group * GROUP, count, thread);
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
        *(unsigned *)workspace = 0;
    return thread == 0;
}

/* One a block. */
template <int sums> ALWAYS_INLINE bool combine_blocks(void *workspace, double *node, double *sum) {
    double *partial = (double *)workspace + CUDA_WORKSPACE_HEAD / sizeof(double);
    const bool last =
        threadIdx.x < ORDER_WARP && leave_sums<sums>((unsigned *)workspace, partial, sum, (int)threadIdx.x);
    return combine_partials<sums>(workspace, gridDim.x, last, node, sum);
}

/* A block's sums, known to its first warp, become part of those of all; returns whether this thread has the latter. */
template <int sums> ALWAYS_INLINE bool has_totals(const cuda_total *total, double *node, double *sum) {
    return gridDim.x == 1 ? threadIdx.x == 0 : combine_blocks<sums>(total->workspace, node, sum);
}

ALWAYS_INLINE bool has_total(const cuda_total *total, double *node, double *sum) {
    return has_totals<1>(total, node, sum);
}

#endif
