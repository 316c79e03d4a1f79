/*
 * From the sums of few blocks to that of all, without a second look at who is last: the block that began last waits for
 * what the others leave. All of them have begun by then, and none waits for anything, so there is an end to it. Tickets
 * are taken at the beginning, while operands are on their way, and a block that has left its sum is gone: a ticket at
 * its end, as in combine.h, takes 0.4 us longer, and where blocks wait for the place of others (2^22 elements) 1 us.
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

/* The sums of so many pairs of neighbouring blocks: a thread's i-th is pair 32 i + thread. All are in flight before the
 * first is looked at: those beyond the last block look at that one, since a load that not all threads take would be
 * waited for (8 of them one after the other: 1.6 us). The places are left without marks. */
template <int pairs> ALWAYS_INLINE void await_pairs(ulonglong2 *left, int first, int blocks, int thread, double *sum) {
    ulonglong2 found[2 * pairs];
    int block[2 * pairs];
    bool all;
#pragma unroll
    for (int i = 0; i < 2 * pairs; i++)
        block[i] = first + 2 * (i / 2 * ORDER_WARP + thread) + i % 2;
    do {
        all = true;
#pragma unroll
        for (int i = 0; i < 2 * pairs; i++)
            found[i] = load_anew(left + (block[i] < blocks ? block[i] : blocks - 1));
#pragma unroll
        for (int i = 0; i < 2 * pairs; i++)
            all &= is_there(found[i]);
    } while (!all);
    __syncwarp(); /* nobody looks any more */
#pragma unroll
    for (int i = 0; i < 2 * pairs; i++) {
        if (block[i] < blocks)
            left[block[i]] = make_ulonglong2(0, 0);
        const double right = block[i] < blocks ? unmarked(found[i]) : ORDER_NOTHING;
        sum[i / 2] = i % 2 ? sum[i / 2] + right : right;
    }
}

/* The sum of the blocks, of which there are at most CUDA_MOST_AWAITED. By one warp. Few of them have a shorter code. */
ALWAYS_INLINE double await_blocks(void *workspace, int thread) {
    ulonglong2 *left = awaited_at(workspace);
    const int blocks = (int)gridDim.x, half = ORDER_SHARE / 2;
    double share[ORDER_SHARE];
    if (blocks <= 2 * ORDER_WARP) {
        await_pairs<1>(left, 0, blocks, thread, share);
        return order_neighbours(share[0], ORDER_WARP);
    }
#pragma unroll
    for (int i = half; i < ORDER_SHARE; i++)
        share[i] = ORDER_NOTHING;
    await_pairs<half>(left, 0, blocks, thread, share);
    if (blocks > 2 * half * ORDER_WARP)
        await_pairs<half>(left, 2 * half * ORDER_WARP, blocks, thread, share + half);
    return order_shares(thread, share);
}

static_assert(CUDA_MOST_AWAITED == 2 * ORDER_SHARE * ORDER_WARP && CUDA_AWAITED_BYTES == sizeof(ulonglong2),
              "a warp awaits as many as are planned");

/* What the first thread of a block has taken at the beginning. */
ALWAYS_INLINE unsigned begin_block(void *workspace) {
    return gridDim.x > 1 && threadIdx.x == 0 ? take_number((unsigned *)workspace, gridDim.x - 1) : 0;
}

/* A block's sum, known to its first warp, becomes part of that of all; returns whether this thread has the latter. By
 * that warp. */
ALWAYS_INLINE bool end_block(void *workspace, unsigned number, double *sum) {
    const int thread = threadIdx.x % ORDER_WARP;
    if (gridDim.x == 1)
        return thread == 0;
    if (thread == 0)
        store_whole(awaited_at(workspace) + blockIdx.x, marked(*sum));
    if (__shfl_sync(~0u, number, 0) != gridDim.x - 1)
        return false;
    *sum = await_blocks(workspace, thread);
    return thread == 0;
}

#endif
