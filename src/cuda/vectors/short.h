/*
 * Rows of a few tiles: a warp has a tile, and a block as many rows as it has warps for. Slopes read the tile again,
 * which is in the multiprocessor's own cache: two blocks of three operands fit there.
 */
#ifndef ONEPASS_CUDA_VECTORS_SHORT_H
#define ONEPASS_CUDA_VECTORS_SHORT_H

#include "cuda/vectors/row.h"

/* What the warps of a block tell each other. */
typedef struct short_rows {
    double node[VECTOR_MOST_SUMS][CUDA_MOST_WARPS];
    double factor[CUDA_MOST_WARPS][VECTOR_MOST_FACTORS];
} short_rows;

/* `first` is the first of the block's rows. job->chunk, a power of two, is the number of warps that a row has. */
template <typename loss, vector_access access, bool is_usual>
ALWAYS_INLINE void run_block_of_rows(const cuda_vector *job, int64_t first, short_rows *shared) {
    const place_in_block at = here_in_block();
    const int warps = job->chunk, own = at.warp / warps;
    const int64_t row = first + own;
    const tile tile = vector_tile_at(job, at.warp % warps, at.thread, NULL);
    const bool is_there = row < job->rows && tile.index < job->tiles;
    const bool part = is_there && row_takes_part(job, row);
    OWN_PARAMETERS(parameter, is_usual);
    double sum[VECTOR_MOST_SUMS] = {ORDER_NOTHING, ORDER_NOTHING, ORDER_NOTHING};
    if (part)
        sum_vectors<loss, access>(job, parameter, row, &tile, sum);
    if (at.thread == 0)
#pragma unroll
        for (int k = 0; k < loss::SUMS; k++)
            shared->node[k][at.warp] = sum[k];
    __syncthreads();
    if (at.warp % warps == 0 && at.thread == 0 && row < job->rows) {
#pragma unroll
        for (int k = 0; k < loss::SUMS; k++)
            sum[k] = order_tree(&shared->node[k][at.warp], warps);
        finish_vectors<loss>(job, parameter, row, sum, NULL, shared->factor[own]);
    }
    if (!job->has_gradient)
        return;
    __syncthreads();
    if (!is_there)
        return;
    const double factor[VECTOR_MOST_FACTORS] = {shared->factor[own][0], shared->factor[own][1], shared->factor[own][2]};
    write_slopes<loss, access>(job, parameter, row, &tile, part, factor, part ? row_upstream(job, row) : 1);
}

template <typename loss, vector_access access, bool is_usual> ALWAYS_INLINE void run_short(const cuda_vector *job) {
    __shared__ short_rows shared;
    if (is_done_before(job))
        return;
    const int64_t rows = blockDim.x / ORDER_WARP / job->chunk;
#pragma unroll 1
    for (int64_t first = blockIdx.x * rows; first < job->rows; first += gridDim.x * rows) {
        run_block_of_rows<loss, access, is_usual>(job, first, &shared);
        __syncthreads(); /* before the next rows' nodes */
    }
}

#endif
