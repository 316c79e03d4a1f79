/*
 * Values of many rows of up to eight tiles: a warp goes through eight tiles, of one row or of several. While it
 * computes one, the next comes to the other of two places in shared memory, and when it has the sums of all, each row
 * is finished by a thread.
 */
#ifndef ONEPASS_CUDA_VECTORS_VALUES_H
#define ONEPASS_CUDA_VECTORS_VALUES_H

#include "cuda/vectors/staged.h"

#define VALUE_PLACES 2
static_assert(CUDA_VALUE_TILES == 8, "as many as the threads that have the same share");

/* The i-th of a warp's tiles; job->chunk, a power of two, is how many each row has room for. */
typedef struct value_tiles {
    int64_t first;   /* row */
    int shift;       /* log2 of job->chunk */
    unsigned part;   /* a bit for each tile that takes part */
    unsigned phases; /* of the places' barriers */
} value_tiles;

template <typename loss> ALWAYS_INLINE tile value_tile(const cuda_vector *job, int i) {
    return staged_tile<loss>(job, i & (job->chunk - 1), here_in_block().warp * VALUE_PLACES + i % VALUE_PLACES);
}

template <typename loss>
ALWAYS_INLINE void send_value_tile(const cuda_vector *job, const value_tiles *tiles, int i, uint64_t *barrier) {
    const tile tile = value_tile<loss>(job, i);
    if (i >= CUDA_VALUE_TILES || !(tiles->part >> i & 1))
        return;
    expect_tiles<loss>(job, &tile, 1, barrier + i % VALUE_PLACES);
    send_tile<loss>(job, tiles->first + (i >> tiles->shift), &tile, barrier + i % VALUE_PLACES);
}

/* The first of the threads that keep a share of tile i's sums: its bits are those that order_share() leaves alone. */
ALWAYS_INLINE int keeper_of(int i) {
    return (i & 1) | (i & 6) << 2;
}

template <typename loss>
ALWAYS_INLINE double share_of_tile(const cuda_vector *job, const double *parameter, int64_t row, const tile *tile,
                                   const own_class *label) {
    const vector_tile own_tile = begin_tile<loss, VECTORS_STAGED>(job, row, tile);
    double lane[VECTOR_MOST_SUMS][ORDER_OWN_LANES] = {};
    sum_lanes<loss, VECTORS_STAGED>(job, parameter, &own_tile, label, lane);
    return add_missing(tile, order_share<loss::SUMS>(tile->thread, lane));
}

/* Thread i knows of tile i. */
template <typename loss>
ALWAYS_INLINE void run_values_of_warp(const cuda_vector *job, const double *parameter, value_tiles *tiles,
                                      uint64_t *barrier) {
    const int thread = here_in_block().thread, own_tile = thread & (job->chunk - 1);
    const int64_t own_row = tiles->first + (thread >> tiles->shift);
    vector_row row = vector_row_at<loss>(job, own_row, thread < CUDA_VALUE_TILES && own_row < job->rows);
    double kept = ORDER_NOTHING, sum[VECTOR_MOST_SUMS], factor[VECTOR_MOST_FACTORS];
    tiles->part = __ballot_sync(~0u, row.part && own_tile < job->tiles);
    send_value_tile<loss>(job, tiles, 0, barrier);
    ask_for_numbers<loss>(job, &row);
#pragma unroll 1
    for (int i = 0; i < CUDA_VALUE_TILES; i++) {
        const int place = i % VALUE_PLACES;
        send_value_tile<loss>(job, tiles, i + 1, barrier);
        if (!(tiles->part >> i & 1))
            continue;
        const tile tile = value_tile<loss>(job, i);
        const own_class label = label_of_row<loss>(&row.label, i);
        wait_for_bytes(barrier + place, tiles->phases >> place);
        tiles->phases ^= 1u << place;
        const double share = share_of_tile<loss>(job, parameter, tiles->first + (i >> tiles->shift), &tile, &label);
        kept = (thread & keeper_of(CUDA_VALUE_TILES - 1)) == keeper_of(i) ? share : kept;
    }
#pragma unroll
    for (int k = 0; k < loss::SUMS; k++) {
        const int from = keeper_of(thread % CUDA_VALUE_TILES) + order_share_of(k);
        sum[k] = order_neighbours(__shfl_sync(~0u, kept, from), job->chunk);
    }
    if (row.is_there && own_tile == 0)
        leave_value(job, own_row, finish_row<loss>(job, parameter, &row, sum, factor));
}

template <typename loss, bool is_usual> ALWAYS_INLINE void run_values(const cuda_vector *job) {
    __shared__ uint64_t barriers[CUDA_MOST_WARPS][VALUE_PLACES];
    const place_in_block at = here_in_block();
    const int rows = CUDA_VALUE_TILES / job->chunk;
    value_tiles tiles = {0, __ffs(job->chunk) - 1, 0, 0};
    OWN_PARAMETERS(parameter, is_usual);
#pragma unroll
    for (int i = 0; i < VALUE_PLACES; i++)
        prepare_to_wait(&barriers[at.warp][i], at.thread);
#pragma unroll 1
    for (int64_t warp = blockIdx.x * (int64_t)at.warps + at.warp; warp * rows < job->rows;
         warp += gridDim.x * (int64_t)at.warps) {
        tiles.first = warp * rows;
        run_values_of_warp<loss>(job, parameter, &tiles, barriers[at.warp]);
    }
}

#endif
