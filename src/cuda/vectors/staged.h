/*
 * Tiles of rows that come to a warp's shared memory, which has places for several.
 */
#ifndef ONEPASS_CUDA_VECTORS_STAGED_H
#define ONEPASS_CUDA_VECTORS_STAGED_H

#include "cuda/async.h"
#include "cuda/vectors/row.h"

/* The tile of that index, in that place of the block's. Such rows have few tiles. */
template <typename loss> ALWAYS_INLINE tile staged_tile(const cuda_vector *job, int index, int place) {
    return tile_at(index, (int)job->length - index * ORDER_TILE, here_in_block().thread,
                   vector_buffer<loss, VECTORS_STAGED>(job, place));
}

/* As many tiles of that many bytes will be sent for. */
template <typename loss>
ALWAYS_INLINE void expect_tiles(const cuda_vector *job, const tile *tile, int tiles, uint64_t *barrier) {
    expect_bytes(barrier, tile->thread, tiles * loss::VECTOR_COUNT * tile->count * (job->halves ? 2 : 4));
}

template <typename loss>
ALWAYS_INLINE void send_tile(const cuda_vector *job, int64_t row, const tile *tile, uint64_t *barrier) {
    const int size = job->halves ? 2 : 4;
#pragma unroll
    for (int k = 0; k < loss::VECTOR_COUNT; k++)
        send_bytes(barrier, tile->thread, (char *)tile->buffer + k * ORDER_TILE * size,
                   tile_in_place(job, CUDA_VECTOR_OPERAND + k, row, tile), tile->count * size);
}

/* Of a loss with labels, that of the i-th row, which thread i knows. */
template <typename loss> ALWAYS_INLINE own_class label_of_row(const own_class *labels, int i) {
    own_class label = {-1, 0};
    if (loss::LABELS) {
        label.at = __shfl_sync(~0u, labels->at, i);
        label.x = __shfl_sync(~0u, labels->x, i);
    }
    return label;
}

#endif
