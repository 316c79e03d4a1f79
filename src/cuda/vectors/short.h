/*
 * Rows of a few tiles: a warp has a tile, and a block as many rows as it has warps for. A tile comes to the warp's
 * shared memory, where its sums and its slopes find it: 98 of 100 second reads did not find theirs in the
 * multiprocessor's own cache, which is smaller than what all warps have read, and the memory was busy for two thirds of
 * the time. On an H200 gradients of floats take a fifth less so, and values of rows of one tile, which were three
 * launches, a twentieth. A block has no more warps than its rows need, and no more rows than that: while some compute,
 * those that have just begun wait for the memory. (Blocks that stay, and have the next row on its way, were slower.)
 */
#ifndef ONEPASS_CUDA_VECTORS_SHORT_H
#define ONEPASS_CUDA_VECTORS_SHORT_H

#include "cuda/async.h"
#include "cuda/vectors/row.h"

/* What the warps of a block tell each other, in turns, so that nobody waits for those who still read. */
typedef struct short_rows {
    double node[2][VECTOR_MOST_SUMS][CUDA_MOST_WARPS];
    uint64_t barrier[CUDA_MOST_WARPS];
} short_rows;

/* A row's tile comes to the warp's memory. `waited` counts how often it has. */
template <typename loss>
ALWAYS_INLINE void fetch_tile(const cuda_vector *job, int64_t row, const tile *tile, uint64_t *barrier,
                              unsigned *waited) {
    const int size = job->halves ? 2 : 4, bytes = tile->count * size;
    expect_bytes(barrier, tile->thread, loss::VECTOR_COUNT * bytes);
#pragma unroll
    for (int k = 0; k < loss::VECTOR_COUNT; k++)
        send_bytes(barrier, tile->thread, (char *)tile->buffer + k * ORDER_TILE * size,
                   tile_in_place(job, CUDA_VECTOR_OPERAND + k, row, tile), bytes);
    wait_for_bytes(barrier, (*waited)++);
}

/* From the sums of a row's tiles, one a warp, to those of the row, which every warp of it finds for itself: a lane has
 * one sum of one tile. */
template <typename loss> ALWAYS_INLINE void join_warps(int warps, double (*node)[CUDA_MOST_WARPS], double *sum) {
    const place_in_block at = here_in_block();
    const int k = at.thread / CUDA_MOST_WARPS, i = at.thread % CUDA_MOST_WARPS, first = at.warp / warps * warps;
    static_assert(VECTOR_MOST_SUMS * CUDA_MOST_WARPS <= ORDER_WARP, "a lane has one");
    if (at.thread == 0)
#pragma unroll
        for (int of = 0; of < loss::SUMS; of++)
            node[of][at.warp] = sum[of];
    __syncthreads();
    const double own = order_neighbours(k < loss::SUMS && i < warps ? node[k][first + i] : ORDER_NOTHING, warps);
#pragma unroll
    for (int of = 0; of < loss::SUMS; of++)
        sum[of] = __shfl_sync(~0u, own, of * CUDA_MOST_WARPS);
}

/* `first` is the first of the block's rows. job->chunk, a power of two, is the number of warps that a row has. */
template <typename loss, bool is_usual>
ALWAYS_INLINE void run_block_of_rows(const cuda_vector *job, int64_t first, int turn, unsigned *waited,
                                     short_rows *shared) {
    const place_in_block at = here_in_block();
    const int warps = job->chunk;
    const int64_t row = first + at.warp / warps;
    const tile tile =
        vector_tile_at(job, at.warp % warps, at.thread, vector_buffer<loss, VECTORS_STAGED>(job, at.warp));
    const bool is_there = row < job->rows && tile.index < job->tiles;
    const bool part = is_there && row_takes_part(job, row);
    const own_class label = part ? find_own<loss>(job, row) : (own_class){-1, 0};
    OWN_PARAMETERS(parameter, is_usual);
    double sum[VECTOR_MOST_SUMS] = {ORDER_NOTHING, ORDER_NOTHING, ORDER_NOTHING};
    double factor[VECTOR_MOST_FACTORS] = {0, 0, 0}, value = 0;
    if (part) {
        fetch_tile<loss>(job, row, &tile, &shared->barrier[at.warp], waited);
        sum_vectors<loss, VECTORS_STAGED>(job, parameter, row, &tile, &label, sum);
    }
    if (warps > 1)
        join_warps<loss>(warps, shared->node[turn], sum);
    if (part)
        value = find_slopes<loss>(job, parameter, row, sum, NULL, &label, factor);
    if (is_there && tile.index == 0 && at.thread == 0)
        leave_value(job, row, value);
    if (is_there && job->has_gradient)
        write_slopes<loss, VECTORS_STAGED>(job, parameter, row, &tile, part, factor, part ? row_upstream(job, row) : 1);
}

template <typename loss, bool is_usual> ALWAYS_INLINE void run_short(const cuda_vector *job) {
    __shared__ short_rows shared;
    const place_in_block at = here_in_block();
    const int64_t rows = at.warps / job->chunk;
    unsigned waited = 0;
    int turn = 0;
    if (is_done_before(job))
        return;
    prepare_to_wait(&shared.barrier[at.warp], at.thread);
#pragma unroll 1
    for (int64_t first = blockIdx.x * rows; first < job->rows; first += gridDim.x * rows, turn ^= 1)
        run_block_of_rows<loss, is_usual>(job, first, turn, &waited, &shared);
}

#endif
