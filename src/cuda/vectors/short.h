/*
 * Rows of a few tiles: a warp has a tile, and a block as many rows as it has warps for. A tile comes to the warp's
 * shared memory, where its sums and its slopes find it: 98 of 100 second reads did not find theirs in the
 * multiprocessor's own cache, which is smaller than what all warps have read, and the memory was busy for two thirds of
 * the time. On an H200 gradients of floats take a fifth less so, and values of rows of one tile, which were three
 * launches, a twentieth. A block has no more warps than its rows need, and no more rows than that: while some compute,
 * those that have just begun wait for the memory. (Blocks that stay, and have the next row on its way, were slower.)
 * Of 16-bit types a warp has a tile of two rows, as many bytes as of floats; what comes after the sums is for both.
 */
#ifndef ONEPASS_CUDA_VECTORS_SHORT_H
#define ONEPASS_CUDA_VECTORS_SHORT_H

#include "cuda/vectors/staged.h"

/* What the warps of a block tell each other, in turns, so that nobody waits for those who still read. */
typedef struct short_rows {
    double node[2][CUDA_SHORT_ROWS][VECTOR_MOST_SUMS][CUDA_MOST_WARPS];
    uint64_t barrier[CUDA_MOST_WARPS];
} short_rows;

/* From the sums of a row's tiles, one a warp, to those of the row, which every warp of it finds for itself: a lane has
 * one sum of one tile. */
template <typename loss> ALWAYS_INLINE void join_warps(int warps, const double (*node)[CUDA_MOST_WARPS], double *sum) {
    const place_in_block at = here_in_block();
    const int k = at.thread / CUDA_MOST_WARPS, i = at.thread % CUDA_MOST_WARPS, first = at.warp / warps * warps;
    static_assert(VECTOR_MOST_SUMS * CUDA_MOST_WARPS <= ORDER_WARP, "a lane has one");
    const double own = order_neighbours(k < loss::SUMS && i < warps ? node[k][first + i] : ORDER_NOTHING, warps);
#pragma unroll
    for (int of = 0; of < loss::SUMS; of++)
        sum[of] = __shfl_sync(~0u, own, of * CUDA_MOST_WARPS);
}

/* The sums of the block's rows; of a warp's i-th row, its i-th thread has them, and whoever is a multiple of ROWS
 * further on. */
template <typename loss, int ROWS>
ALWAYS_INLINE void join_rows(int warps, double (*node)[VECTOR_MOST_SUMS][CUDA_MOST_WARPS], double *sum) {
    const place_in_block at = here_in_block();
    if (at.thread < ROWS)
#pragma unroll
        for (int k = 0; k < loss::SUMS; k++)
            node[at.thread][k][at.warp] = sum[k];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        double of_row[VECTOR_MOST_SUMS];
        join_warps<loss>(warps, node[i], of_row);
        keep_sums<loss>(at.thread % ROWS == i, of_row, sum);
    }
}

/* The same tile of those of a warp's rows that take part is sent for. */
template <typename loss, int ROWS>
ALWAYS_INLINE void send_tiles(const cuda_vector *job, int64_t first, int index, unsigned part, uint64_t *barrier) {
    const int place = here_in_block().warp * ROWS;
    const tile any = staged_tile<loss>(job, index, place);
    expect_tiles<loss>(job, &any, __popc(part), barrier);
#pragma unroll 1
    for (int i = 0; i < ROWS; i++) {
        const tile tile = staged_tile<loss>(job, index, place + i);
        if (part >> i & 1)
            send_tile<loss>(job, first + i, &tile, barrier);
    }
}

/* The tile's slopes in each of a warp's rows, of which the i-th thread has the factors. */
template <typename loss, int ROWS>
ALWAYS_INLINE void write_rows(const cuda_vector *job, const double *parameter, int64_t first, int index, unsigned part,
                              const double *factors, real upstreams) {
#pragma unroll 1
    for (int i = 0; i < ROWS && first + i < job->rows; i++) {
        const tile tile = staged_tile<loss>(job, index, here_in_block().warp * ROWS + i);
        const real upstream = ROWS == 1 ? upstreams : __shfl_sync(~0u, upstreams, i);
        double factor[VECTOR_MOST_FACTORS];
#pragma unroll
        for (int k = 0; k < VECTOR_MOST_FACTORS; k++)
            factor[k] = ROWS == 1 ? factors[k] : __shfl_sync(~0u, factors[k], i);
        write_slopes<loss, VECTORS_STAGED>(job, parameter, first + i, &tile, part >> i & 1, factor, upstream);
    }
}

/* `first` is the first of the warp's rows; thread i knows of row i. job->chunk, a power of two, is the number of warps
 * that a row has. `waited` counts how often this one has waited. */
template <typename loss, int ROWS, bool is_usual>
ALWAYS_INLINE void run_warp_of_rows(const cuda_vector *job, int64_t first, int turn, unsigned *waited,
                                    short_rows *shared) {
    const place_in_block at = here_in_block();
    const int warps = job->chunk, index = at.warp % warps;
    const int64_t own_row = first + at.thread % ROWS;
    vector_row row = vector_row_at<loss>(job, own_row, own_row < job->rows && index < job->tiles);
    const unsigned part = __ballot_sync(~0u, row.part) & ((1u << ROWS) - 1);
    OWN_PARAMETERS(parameter, is_usual);
    double sum[VECTOR_MOST_SUMS] = {ORDER_NOTHING, ORDER_NOTHING, ORDER_NOTHING}, factor[VECTOR_MOST_FACTORS];
    if (part)
        send_tiles<loss, ROWS>(job, first, index, part, &shared->barrier[at.warp]);
    ask_for_numbers<loss>(job, &row);
    if (part)
        wait_for_bytes(&shared->barrier[at.warp], (*waited)++);
#pragma unroll 1
    for (int i = 0; i < ROWS; i++) {
        const tile tile = staged_tile<loss>(job, index, at.warp * ROWS + i);
        const own_class label = ROWS == 1 ? row.label : label_of_row<loss>(&row.label, i);
        double of_row[VECTOR_MOST_SUMS];
        if (part >> i & 1) {
            sum_vectors<loss, VECTORS_STAGED>(job, parameter, first + i, &tile, &label, of_row);
            keep_sums<loss>(at.thread % ROWS == i, of_row, sum);
        }
    }
    if (warps > 1)
        join_rows<loss, ROWS>(warps, shared->node[turn], sum);
    const double value = finish_row<loss>(job, parameter, &row, sum, factor);
    if (row.is_there && index == 0 && at.thread < ROWS)
        leave_value(job, own_row, value);
    if (job->has_gradient && index < job->tiles)
        write_rows<loss, ROWS>(job, parameter, first, index, part, factor, row.part ? row_upstream(job, own_row) : 1);
}

template <typename loss, int ROWS, bool is_usual> ALWAYS_INLINE void run_rows(const cuda_vector *job) {
    __shared__ short_rows shared;
    const place_in_block at = here_in_block();
    const int64_t rows = at.warps / job->chunk * ROWS;
    unsigned waited = 0;
    int turn = 0;
    prepare_to_wait(&shared.barrier[at.warp], at.thread);
#pragma unroll 1
    for (int64_t first = blockIdx.x * rows; first < job->rows; first += gridDim.x * rows, turn ^= 1)
        run_warp_of_rows<loss, ROWS, is_usual>(job, first + at.warp / job->chunk * ROWS, turn, &waited, &shared);
}

template <typename loss, bool is_usual> ALWAYS_INLINE void run_short(const cuda_vector *job) {
    if (is_done_before(job))
        return;
    if (job->turns == 1)
        run_rows<loss, 1, is_usual>(job);
    else
        run_rows<loss, CUDA_SHORT_ROWS, is_usual>(job);
}

#endif
