/*
 * What surrounds the launches that have rows: what a mean is divided by, which is the sum of what each row counts for
 * or the number of rows, the sum of their terms, and what the caller is told.
 */
#ifndef ONEPASS_CUDA_ROWS_WEIGHTS_H
#define ONEPASS_CUDA_ROWS_WEIGHTS_H

#include "cuda/rows/row.h"

/* What each row counts for goes to the place of the rows' terms. */
ALWAYS_INLINE void run_row_weights(const cuda_row *job) {
    const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= job->rows)
        return;
    int64_t label;
    const int part = row_part_of<ROW_LABEL>(job, row, &label);
    double weight = part != ROW_IGNORED;
    if (part == ROW_COUNTS && !job->over_elements)
        weight = row_class_weight(job, label) * row_number(job, CUDA_ROW_WEIGHT, row, 1);
    ((real *)((char *)job->total.workspace + job->terms_at))[row] = canonical((real)weight);
}

/* Labels that lie side by side are read four at a time: 12 us less of the 227 that a step of 4194304 rows of 10 classes
 * took on an H200. Returns the row after the last of them. */
template <typename index> ALWAYS_INLINE int64_t count_fours(const cuda_row *job, unsigned *own) {
    typedef struct __align__(16) {
        index label[16 / sizeof(index)];
    }
    labels;
    const labels *from = (const labels *)job->data[CUDA_ROW_TARGET];
    const int64_t fours = job->rows / 4, threads = (int64_t)gridDim.x * blockDim.x;
    const index ignored = (index)job->ignore_index;
    const int loads = 4 * sizeof(index) / 16, each = 16 / sizeof(index);
#pragma unroll 2
    for (int64_t four = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; four < fours; four += threads) {
        labels some[loads];
#pragma unroll
        for (int i = 0; i < loads; i++)
            some[i] = from[four * loads + i];
#pragma unroll
        for (int i = 0; i < 4; i++)
            *own += some[i / each].label[i % each] != ignored;
    }
    return 4 * fours;
}

/* Rows that count as 1 are counted, in any order. The last block leaves the number to the next launch. */
ALWAYS_INLINE void run_row_count(const cuda_row *job) {
    __shared__ unsigned of_warp[CUDA_MOST_WARPS];
    const int thread = threadIdx.x % ORDER_WARP, warp = threadIdx.x / ORDER_WARP, warps = blockDim.x / ORDER_WARP;
    const cuda_view *labels = &job->view[CUDA_ROW_TARGET];
    const bool in_fours = !job->data[CUDA_ROW_MASK] && labels->ndim == 1 && labels->stride[0] == 1 &&
                          (uintptr_t)job->data[CUDA_ROW_TARGET] % 16 == 0;
    unsigned own = 0;
    int64_t first = 0;
    if (is_done_before(job))
        return;
    if (in_fours && job->dtype[CUDA_ROW_TARGET] == ONEPASS_I64)
        first = count_fours<int64_t>(job, &own);
    else if (in_fours && job->dtype[CUDA_ROW_TARGET] == ONEPASS_I32 && job->ignore_index == (int32_t)job->ignore_index)
        first = count_fours<int32_t>(job, &own);
    for (int64_t row = first + (int64_t)blockIdx.x * blockDim.x + threadIdx.x; row < job->rows;
         row += (int64_t)gridDim.x * blockDim.x) {
        int64_t label;
        own += row_part_of<ROW_LABEL>(job, row, &label) != ROW_IGNORED;
    }
    for (int distance = ORDER_WARP / 2; distance > 0; distance /= 2)
        own += __shfl_xor_sync(~0u, own, distance);
    if (thread == 0)
        of_warp[warp] = own;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    unsigned sum = 0;
    for (int w = 0; w < warps; w++)
        sum += of_warp[w];
    leave_count(job, sum);
}

/* The terms of rows become a total, or what they count for does: a warp adds up a tile. */
ALWAYS_INLINE void run_total(const cuda_terms *job) {
    __shared__ double node[CUDA_MOST_NODES];
    const place_in_block at = here_in_block();
    const char *workspace = (const char *)job->total.workspace;
    const real *terms = (const real *)(workspace + job->terms_at);
    const int64_t first = (int64_t)blockIdx.x * job->tiles;
    const double weights = job->over_weights ? *(const double *)(workspace + CUDA_WEIGHTS_AT) + 0. : 1; /* no -0 */
    double sum = ORDER_NOTHING;
#pragma unroll 1
    for (int i = at.warp; i < job->tiles; i += at.warps) {
        const int64_t left = job->count - (first + i) * ORDER_TILE;
        if (left > 0) {
            const tile tile = tile_at(first + i, left < ORDER_TILE ? (int)left : ORDER_TILE, at.thread, NULL);
            const real *from = terms + tile.index * ORDER_TILE;
            own_numbers x = {};
            if (tile.count == ORDER_TILE)
                EACH_LINE read_line(&tile, from, line, x[line]);
            else
                EACH_NUMBER if (is_in(&tile, line, own)) x[line][own] = from[own_element(&tile, line, own)];
            sum = sum_of_tile(at.thread, x);
        }
        if (at.thread == 0)
            node[i] = left > 0 ? sum : ORDER_NOTHING;
    }
    __syncthreads();
    if (at.warp == 0)
        sum = job->count > 0 ? tree_of(at.thread, node, job->tiles) : 0;
    if (!has_total(&job->total, node, &sum))
        return;
    if (job->total.value)
        write_small_value(&job->total, job->over_weights ? sum / weights : sum);
    else
        *(double *)((char *)job->total.workspace + CUDA_WEIGHTS_AT) = sum;
}

/* What a mean was divided by, for the caller. */
ALWAYS_INLINE void run_divided_by(const cuda_divided_by *job) {
    if (job->skip_if_one) {
        const double upstream = load_scalar(job->upstream, job->upstream_dtype), expected = job->expected_upstream;
        if (job->in_double ? upstream == expected : (float)upstream == (float)expected)
            return;
    }
    const char *workspace = (const char *)job->total.workspace;
    store_scalar(job->total.value, job->total.dtype,
                 job->over_weights ? *(const double *)(workspace + CUDA_WEIGHTS_AT) : job->total.number);
}

#endif
