/*
 * From the sums of the blocks of a small kernel to those of all, without a second look at who is last: the block that
 * began last waits for what the others leave. All of them have begun by then, and none waits for anything, so there is
 * an end to it. Tickets are taken at the beginning, while operands are on their way, and a block that has left its sum
 * is gone: a ticket at its end, as in combine.h, takes 0.4 us longer, and where blocks wait for the place of others
 * (2^22 elements) 1 us.
 */
#ifndef ONEPASS_CUDA_AWAIT_H
#define ONEPASS_CUDA_AWAIT_H

#include "cuda/gpu.h"
#include "cuda/parameter.h"
#include "order.h"

/* A sum is left beside a mark that only it can have, so that whoever finds both knows that it is there, and whoever
 * finds what lay there before, or one of both, knows that it is not. */
#define AWAITED_MARK UINT64_C(0x7ff4c3a59d2e8b61)

ALWAYS_INLINE bool is_there(ulonglong2 left) {
    return (left.x ^ left.y) == AWAITED_MARK;
}

ALWAYS_INLINE ulonglong2 marked(double sum) {
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    return make_ulonglong2(bits, bits ^ AWAITED_MARK);
}

ALWAYS_INLINE double unmarked(ulonglong2 left) {
    const uint64_t bits = left.x;
    double sum;
    memcpy(&sum, &bits, sizeof sum);
    return sum;
}

ALWAYS_INLINE ulonglong2 *awaited_at(void *workspace) {
    return (ulonglong2 *)((char *)workspace + CUDA_WORKSPACE_HEAD);
}

/* What a block knows of all. A small kernel is told so on the first cache line of its parameter, since the GPU's own
 * words for it lie on one more that it would wait for. */
typedef struct all_blocks {
    void *workspace;
    int warps, blocks;
    unsigned number; /* what the first thread of this one has taken at the beginning */
} all_blocks;

ALWAYS_INLINE all_blocks begin_blocks(void *workspace, int blocks, int warps) {
    all_blocks all = {workspace, warps, blocks, 0};
    if (blocks > 1 && threadIdx.x == 0)
        all.number = take_number((unsigned *)workspace, (unsigned)blocks - 1);
    return all;
}

/* The same where blocks have a power of two of warps, a tile each. */
ALWAYS_INLINE all_blocks begin_block(void *workspace, int count, int warp_bits) {
    return begin_blocks(workspace, (int)((unsigned)(count - 1) / ORDER_TILE >> warp_bits) + 1, 1 << warp_bits);
}

/* A warp awaits so many blocks at a time, two a thread. */
#define AWAITED_GROUP  (2 * ORDER_WARP)
#define AWAITED_GROUPS (CUDA_MOST_AWAITED / AWAITED_GROUP)
static_assert(AWAITED_GROUPS <= ORDER_WARP && CUDA_AWAITED_BYTES == sizeof(ulonglong2),
              "a warp adds up what the groups come to");

/* What the warps of a block leave to its first one. */
template <int sums> struct block_sums {
    double warp[sums][CUDA_MOST_WARPS], group[sums][AWAITED_GROUPS];
    unsigned number;
};

/* The sums of a group of blocks. All are in flight before the first is looked at: those beyond the last block look at
 * that one, since a load that not all threads take would be waited for. The places are left without marks. */
template <int sums> ALWAYS_INLINE void await_group(ulonglong2 *left, int group, int blocks, int thread, double *sum) {
    ulonglong2 found[sums][2];
    const int first = group * AWAITED_GROUP + 2 * thread;
    bool all;
#define EACH_OF_PAIR _Pragma("unroll") for (int i = 0; i < 2; i++)
    do {
        all = true;
        ORDER_EACH_SUM EACH_OF_PAIR found[of][i] =
            load_anew(left + of * blocks + (first + i < blocks ? first + i : blocks - 1));
        ORDER_EACH_SUM EACH_OF_PAIR all &= is_there(found[of][i]);
    } while (!all);
    __syncwarp(); /* nobody looks any more */
    ORDER_EACH_SUM {
        double own[2];
        EACH_OF_PAIR {
            own[i] = first + i < blocks ? unmarked(found[of][i]) : ORDER_NOTHING;
            if (first + i < blocks)
                left[of * blocks + first + i] = make_ulonglong2(0, 0);
        }
        sum[of] = order_neighbours(own[0] + own[1], ORDER_WARP);
    }
#undef EACH_OF_PAIR
}

/* Before the block's threads meet: which of them is the last to have begun. */
template <int sums> ALWAYS_INLINE void leave_number(const all_blocks *all, block_sums<sums> *shared) {
    if (threadIdx.x == 0)
        shared->number = all->number;
}

/* A block's sums, known to its first warp, become part of those of all; returns whether this thread has the latter. All
 * warps of the block that began last wait, each for others (0.3 us less than one of them takes for 512 blocks). */
template <int sums> ALWAYS_INLINE bool join_blocks(const all_blocks *all, block_sums<sums> *shared, double *sum) {
    const int thread = threadIdx.x % ORDER_WARP, warp = threadIdx.x / ORDER_WARP;
    ulonglong2 *left = awaited_at(all->workspace);
    if (all->blocks == 1)
        return threadIdx.x == 0;
    if (threadIdx.x == 0)
        ORDER_EACH_SUM store_whole(left + of * all->blocks + blockIdx.x, marked(sum[of]));
    if (shared->number != (unsigned)all->blocks - 1)
        return false;
    const int groups = (all->blocks + AWAITED_GROUP - 1) / AWAITED_GROUP;
#pragma unroll 1
    for (int group = warp; group < groups; group += all->warps) {
        await_group<sums>(left, group, all->blocks, thread, sum);
        if (thread == 0)
            ORDER_EACH_SUM shared->group[of][group] = sum[of];
    }
    if (groups > 1) {
        __syncthreads();
        if (warp == 0)
            ORDER_EACH_SUM sum[of] =
                order_neighbours(thread < groups ? shared->group[of][thread] : ORDER_NOTHING, ORDER_WARP);
    }
    return threadIdx.x == 0;
}

/* The same of the sums of a block's warps. */
template <int sums> ALWAYS_INLINE bool end_block(const all_blocks *all, block_sums<sums> *shared, double *sum) {
    const int thread = threadIdx.x % ORDER_WARP, warp = threadIdx.x / ORDER_WARP;
    if (thread == 0)
        ORDER_EACH_SUM shared->warp[of][warp] = sum[of];
    leave_number(all, shared);
    __syncthreads();
    if (warp == 0)
        ORDER_EACH_SUM sum[of] =
            order_neighbours(thread < all->warps ? shared->warp[of][thread] : ORDER_NOTHING, all->warps);
    return join_blocks(all, shared, sum);
}

#endif
