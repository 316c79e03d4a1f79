/*
 * Rows of any length, by three launches: the sums of chunks of tiles, the rows, and the slopes. What differs for a loss
 * with softmaxes is in softmax_rows.h.
 */
#ifndef ONEPASS_CUDA_VECTORS_LONG_H
#define ONEPASS_CUDA_VECTORS_LONG_H

#include "cuda/vectors/label_lists.h"
#include "cuda/vectors/row.h"

/* ------------------------------------------------------------------ sums -- */

/* Chunks are numbered row by row; a block has one, or so many small ones that each of its warps has a tile. */
template <typename loss, vector_access access, bool is_usual> ALWAYS_INLINE void run_sums(const cuda_vector *job) {
    __shared__ double node[VECTOR_MOST_SUMS][CUDA_MOST_CHUNK];
    const place_in_block at = here_in_block();
    const int chunk = job->chunk, slots = chunk > at.warps ? chunk : at.warps, chunks = slots / chunk;
    const int64_t all = job->rows * job->chunks;
    OWN_PARAMETERS(parameter, is_usual);
    if (is_done_before(job))
        return;
#pragma unroll 1
    for (int64_t first = blockIdx.x * (int64_t)chunks; first < all; first += gridDim.x * (int64_t)chunks) {
#pragma unroll 1
        for (int slot = at.warp; slot < slots; slot += at.warps) {
            const int64_t index = first + slot / chunk, row = divide_by_chunks(job, index);
            const tile tile = vector_tile_at(job, (index - row * job->chunks) * chunk + slot % chunk, at.thread,
                                             vector_buffer<loss, access>(job, at.warp));
            double sum[VECTOR_MOST_SUMS] = {ORDER_NOTHING, ORDER_NOTHING, ORDER_NOTHING};
            if (index < all && tile.index < job->tiles && row_takes_part(job, row))
                tile_work<loss, access>::sum(job, parameter, row, &tile, sum);
            if (at.thread == 0)
#pragma unroll
                for (int k = 0; k < loss::SUMS; k++)
                    node[k][slot] = sum[k];
        }
        __syncthreads();
#pragma unroll 1
        for (int k = at.warp; k < loss::SUMS; k += at.warps) { /* a thread has a slot: there are no more of them */
            const double sum = order_neighbours(at.thread < slots ? node[k][at.thread] : ORDER_NOTHING, chunk);
            const int64_t index = first + at.thread / chunk;
            if (at.thread % chunk == 0 && at.thread < slots && index < all)
                in_workspace(job, job->nodes_at)[k * all + index] = sum;
        }
        __syncthreads();
    }
}

/* ---------------------------------------------------------------- finish -- */

ALWAYS_INLINE void leave_factors(const cuda_vector *job, int64_t row, const double *factor) {
    double *into = in_workspace(job, job->factors_at) + row * VECTOR_MOST_FACTORS;
#pragma unroll
    for (int i = 0; i < VECTOR_MOST_FACTORS; i++)
        into[i] = factor[i];
}

/* A row that later launches may ask about, by one thread. */
template <typename loss>
ALWAYS_INLINE void finish_row_of_launch(const cuda_vector *job, int64_t row, const double *sum,
                                        const vector_softmaxes *known) {
    double factor[VECTOR_MOST_FACTORS];
    finish_vectors<loss>(job, job->parameter, row, sum, known, factor);
    if (job->has_gradient)
        leave_factors(job, row, factor);
}

/* A thread has a row of one chunk, a block one of several. */
template <typename loss> ALWAYS_INLINE void run_finish(const cuda_vector *job) {
    __shared__ double of_warp[CUDA_MOST_WARPS];
    __shared__ order_stack stack;
    const double *node = in_workspace(job, job->nodes_at);
    const int64_t all = job->rows * job->chunks, rows = job->chunks == 1 ? blockDim.x : 1;
    if (is_done_before(job))
        return;
#pragma unroll 1
    for (int64_t first = blockIdx.x * rows; first < job->rows; first += gridDim.x * rows) {
        const int64_t row = first + (job->chunks == 1 ? threadIdx.x : 0);
        double sum[VECTOR_MOST_SUMS] = {0, 0, 0};
#pragma unroll
        for (int k = 0; k < loss::SUMS; k++)
            if (job->chunks > 1)
                sum[k] = sum_of_nodes(node + k * all + row * job->chunks, job->chunks, of_warp, &stack);
            else if (row < job->rows)
                sum[k] = node[k * all + row];
        if (row < job->rows && (job->chunks == 1 || threadIdx.x == 0))
            finish_row_of_launch<loss>(job, row, sum, known_of_row(job, row));
    }
}

/* ---------------------------------------------------------------- slopes -- */

/* A warp has a tile; tiles are numbered row by row. The last come first: of what was read for the sums they are still
 * in the cache. */
template <typename loss, vector_access access, bool is_usual> ALWAYS_INLINE void run_slopes(const cuda_vector *job) {
    const place_in_block at = here_in_block();
    const int64_t all = job->rows * job->tiles;
    OWN_PARAMETERS(parameter, is_usual);
    if (is_done_before(job))
        return;
#pragma unroll 1
    for (int64_t turn = blockIdx.x * (int64_t)at.warps + at.warp; turn < all; turn += gridDim.x * (int64_t)at.warps) {
        const int64_t slot = all - 1 - turn, row = row_of_tile(job, slot);
        const tile tile =
            vector_tile_at(job, slot - row * job->tiles, at.thread, vector_buffer<loss, access>(job, at.warp));
        const bool part = row_takes_part(job, row);
        const double *from = in_workspace(job, job->factors_at) + row * VECTOR_MOST_FACTORS;
        const double factor[VECTOR_MOST_FACTORS] = {from[0], from[1], from[2]};
        tile_work<loss, access>::slopes(job, parameter, row, &tile, part, factor, part ? row_upstream(job, row) : 1);
    }
}

#endif
