/*
 * The product of gradients and an upstream gradient that was not known when they were computed.
 */
#ifndef ONEPASS_CUDA_PAIRWISE_SCALE_H
#define ONEPASS_CUDA_PAIRWISE_SCALE_H

#include "cuda/pairwise/lines.h"
#include "cuda/pairwise/views.h"

ALWAYS_INLINE void scale_tile(const cuda_direct *job, int which, const tile *tile, real factor) {
    real *at = (real *)tile_address(job, which, tile, sizeof(real));
    if (tile->count < ORDER_TILE) {
        for (int i = tile->thread; i < tile->count; i += ORDER_WARP)
            at[i] = canonical(at[i] * factor);
        return;
    }
    numbers numbers[ORDER_LINES];
    EACH_LINE prefetch_line<ACCESS_REAL, KEEP_LEAST>(tile, at, line, &numbers[line]);
    EACH_LINE {
        real x[ORDER_OWN_LANES];
        unpack<ACCESS_REAL>(false, &numbers[line], x);
        EACH_OWN x[own] = canonical(x[own] * factor);
        put_line<ACCESS_REAL>(tile, false, at, line, x);
    }
}

ALWAYS_INLINE void scale_tile(const cuda_general *job, int which, const tile *tile, real factor) {
    real *data = (real *)job->head.data[which];
    for (int i = tile->thread; i < tile->count; i += ORDER_WARP) {
        real *at = data + place_of(&job->view[which], tile->index * ORDER_TILE + i).offset;
        *at = canonical(*at * factor);
    }
}

template <typename parameter> ALWAYS_INLINE void scale_block(const parameter *job) {
    const cuda_head *head = &job->head;
    if (is_plainly_one(head->total.value, head->total.dtype))
        return;
    const int thread = threadIdx.x % ORDER_WARP, warp = threadIdx.x / ORDER_WARP, warps = blockDim.x / ORDER_WARP;
    const real upstream = (real)load_scalar(head->total.value, head->total.dtype);
    if (upstream == 1)
        return;
    const int64_t span = (int64_t)head->sweeps * head->tiles_per_block, first = blockIdx.x * span;
    for (int64_t i = first + warp; i < first + span && i * ORDER_TILE < head->count; i += warps) {
        const int64_t left = head->count - i * ORDER_TILE;
        const tile tile = tile_at(i, left < ORDER_TILE ? (int)left : ORDER_TILE, thread, NULL);
#pragma unroll 1
        for (int which = CUDA_GRADIENT; which < CUDA_TENSORS; which++)
            if (head->data[which])
                scale_tile(job, which, &tile, upstream);
    }
}

#endif
