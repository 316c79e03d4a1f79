/*
 * What most calls with few classes have: floats row behind row, of a number of classes that there is code for, labels
 * as PyTorch has them, and many rows. As in sized.h a thread has a row, but nothing is asked about the way it lies,
 * which was a fifth of the instructions, and a block stays for all its tiles of rows: while it computes the last rows
 * of one the first of the next come.
 */
#ifndef ONEPASS_CUDA_ROWS_PLAIN_H
#define ONEPASS_CUDA_ROWS_PLAIN_H

#include "cuda/rows/sized.h"

#if !defined(ONEPASS_REAL_F64)

template <bool writes, int size> ALWAYS_INLINE sized_block plain_block(const cuda_row *job) {
    sized_block block = sized_block_of<writes>(job);
    block.in_one_piece = block.has_floats = true;
    block.has_f16 = false;
    block.classes = size;
    block.bytes = (int)sizeof(real);
    block.pitch = CUDA_FEW_PITCH(size);
    block.step = 1;
    block.room = block.pitch * ORDER_WARP * block.bytes;
    return block;
}

/* The warp's rows from one on. */
typedef struct plain_rows {
    int64_t first;
    int64_t label; /* of the lane's own */
    int count;
} plain_rows;

template <int size>
ALWAYS_INLINE void prefetch_plain(const cuda_row *job, const sized_block *block, char *to, plain_rows *rows) {
    const int lane = (int)(threadIdx.x % ORDER_WARP);
    const int64_t left = job->rows - rows->first;
    rows->count = left < 0 ? 0 : left < ORDER_WARP ? (int)left : ORDER_WARP;
    if (rows->count == 0)
        return;
    if (lane < rows->count)
        rows->label = ((const int64_t *)job->data[CUDA_ROW_TARGET])[rows->first + lane];
    send_sized<size>(job, block, rows->count, rows->first * size, to);
}

/* The sums of a block's lanes, of a tile and the next, and what the last block adds up. */
typedef struct plain_shared {
    double node[CUDA_MOST_NODES];
    real lanes[2][FEW_THREADS];
} plain_shared;

/* Blocks take turns at tiles. The sum of each goes where a block of its own would leave it. */
template <typename loss, bool writes, int size>
ALWAYS_INLINE void run_plain_tiles(const cuda_row *job, plain_shared *shared) {
    extern __shared__ __align__(16) unsigned char shared_memory[];
    const sized_block block = plain_block<writes, size>(job);
    const place_in_block at = here_in_block();
    const int64_t tiles = (job->rows + ORDER_TILE - 1) / ORDER_TILE, stride = (int64_t)gridDim.x * ORDER_TILE;
    double *partial = (double *)job->total.workspace + CUDA_WORKSPACE_HEAD / sizeof(double);
    char *own = (char *)shared_memory + at.warp * 2 * block.room;
    plain_rows next = {(int64_t)blockIdx.x * ORDER_TILE + at.warp * ORDER_WARP, 0, 0};
    few_sum sum = {};
    int buffer = 0, turn = 0;
    prefetch_plain<size>(job, &block, own, &next);
#pragma unroll 1
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
#pragma unroll 1
        for (int line = 0; line < ORDER_LINES; line++) {
            const plain_rows rows = next;
            double value = 0;
            next.first += line < ORDER_LINES - 1 ? FEW_THREADS : stride - (ORDER_LINES - 1) * FEW_THREADS;
            wait_for_sent();
            __syncwarp();
            prefetch_plain<size>(job, &block, own + (buffer ^ block.room), &next);
            if (at.thread < rows.count) {
                const int part = part_of_label(job, rows.label);
                value = run_sized_row<loss, writes, size>(job, &block, part, (int)rows.label,
                                                          own + buffer + at.thread * block.pitch * block.bytes);
                sum.rows += part != ROW_IGNORED;
            }
            add_few(line, canonical((real)value), &sum);
            if (writes && rows.count > 0)
                leave_sized<size>(job, &block, rows.count, rows.first * size, own + buffer);
            buffer ^= block.room;
        }
        if (!job->sums)
            continue;
        shared->lanes[turn][threadIdx.x] = sum.eight;
        __syncthreads(); /* once a tile: lanes of the one after the next lie where these do */
        if (at.warp == 0) {
            const double of_tile = sum_of_lanes(shared->lanes[turn], at.thread);
            if (at.thread == 0)
                __stcg(partial + tile, of_tile);
        }
        turn ^= 1;
    }
    if (!job->sums)
        return;
    count_few(job, sum.rows);
    __syncthreads();
    unsigned number = 0;
    double total;
    if (threadIdx.x == 0)
        number = take_ticket((unsigned *)job->total.workspace);
    const bool last = at.warp == 0 && __shfl_sync(~0u, number, 0) == gridDim.x - 1;
    if (combine_partials<1>(job->total.workspace, tiles, last, shared->node, &total))
        end_total(job, total);
}

/* Sizes from the largest down; there are no others. */
template <typename loss, bool writes, int size>
ALWAYS_INLINE void run_plain_size(const cuda_row *job, plain_shared *shared) {
    if constexpr (size > 2) {
        if (job->classes < size) {
            run_plain_size<loss, writes, sized<size>::LESS>(job, shared);
            return;
        }
    }
    run_plain_tiles<loss, writes, size>(job, shared);
}

template <typename loss, bool writes> ALWAYS_INLINE void run_plain(const cuda_row *job) {
    __shared__ plain_shared shared;
    if (writes && is_done_before(job))
        return;
    run_plain_size<loss, writes, CUDA_FEWER_CLASSES>(job, &shared);
}

#endif

#endif
