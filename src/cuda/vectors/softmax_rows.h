/*
 * Rows of losses with softmaxes. Those of a few tiles are gone through at once: a warp has a tile, whose exponentials
 * stay in its registers, and all warps of a row join its tiles, each for itself; the next ones are on their way to
 * shared memory meanwhile, where there is room. Longer ones have two more launches before those of other vector losses,
 * for what tiles leave and for what is known of rows, and come from memory once more for each of the others; with no
 * sums of its own, a loss is done with rows when it knows them.
 */
#ifndef ONEPASS_CUDA_VECTORS_SOFTMAX_ROWS_H
#define ONEPASS_CUDA_VECTORS_SOFTMAX_ROWS_H

#include "cuda/vectors/long.h"
#include "cuda/vectors/softmaxes.h"
#include "cuda/vectors/staged.h"

/* The larger of two, NaN if one is. */
ALWAYS_INLINE double wide_larger_or_nan(double a, double b) {
    return b != b || b > a ? b : a;
}

/* ------------------------------------------------------- rows of few tiles -- */

/* What the warps of a block tell each other; of tiles in turns, so that nobody waits for those who still read. */
typedef struct short_softmaxes {
    lanes_together lanes[CUDA_SOFTMAX_WARPS];
    tile_softmaxes tile[2][CUDA_SOFTMAX_WARPS];
    double node[VECTOR_MOST_SUMS][CUDA_SOFTMAX_WARPS];
    double factor[CUDA_SOFTMAX_WARPS][VECTOR_MOST_FACTORS];
    uint64_t barrier[CUDA_SOFTMAX_WARPS];
} short_softmaxes;
static_assert(sizeof(real) != sizeof(float) || sizeof(short_softmaxes) <= CUDA_SOFTMAX_BYTES, "as the plan has it");

/* What a lane of a warp has of its row, when the lanes of a warp join tiles: lane 8 k + i has the k-th vector's part of
 * tile i. */
#define JOINED_TILES CUDA_MOST_WARPS

ALWAYS_INLINE double from_vector(double x, int k) {
    return __shfl_sync(~0u, x, k * JOINED_TILES);
}

ALWAYS_INLINE double largest_of_lanes(double x) {
    for (int distance = JOINED_TILES / 2; distance > 0; distance /= 2)
        x = wide_larger_or_nan(x, order_swap(x, distance));
    return x;
}

/* A row of `tiles` tiles. `wants_value`: all of it, and not only what probabilities need. */
template <typename loss>
ALWAYS_INLINE void join_short_row(const cuda_vector *job, const tile_softmaxes *tile, int tiles, int thread,
                                  bool wants_value, vector_softmaxes *known) {
    const softmax softmax = softmax_as_told(&job->softmax);
    const softmax_scale *scale = &job->softmax.scale;
    const int k = thread / JOINED_TILES % 2, i = thread % JOINED_TILES;
    const bool is_there = i < tiles;
    const tile_softmaxes *own = &tile[is_there ? i : 0];
    const double largest = largest_of_lanes(is_there ? own->largest[k] : -WIDE_INFINITY);
    const softmax_shift shift = softmax_shift_of(&softmax, scale, (real)own->largest[k]);
    const double exponent = softmax_shift_of(&softmax, scale, (real)largest).exponent;
    const softmax_tile sums = {shift.exponent, own->others[k], own->leading[k], 0, own->carried, shift.largest};
    double sum[2] = {is_there ? row_part_of_others(&sums, exponent, (real)largest) : ORDER_NOTHING,
                     is_there ? row_part_of_leading(&sums, (real)largest) : ORDER_NOTHING};
    double carried = 0, above = 0, per_sum = 0;
    sum[0] = order_neighbours(sum[0], JOINED_TILES);
    sum[1] = order_neighbours(sum[1], JOINED_TILES);
    known->largest[0] = from_vector(largest, 0);
    known->largest[1] = from_vector(largest, 1);
    if (loss::SUMS == 0 && wants_value) {
        const double first = (double)softmax_shift_of(&softmax, scale, (real)own->largest[0]).largest;
        carried = order_neighbours(
            is_there ? softmaxes_part_of_carried(&sums, first, exponent, known->largest) : ORDER_NOTHING, JOINED_TILES);
    }
    if (wants_value)
        above = softmaxes_above(&softmax, scale, largest, sum, &per_sum);
    else
        per_sum = 1 / (sum[0] + sum[1]);
    const bool any = __all_sync(~0u, exponent - exponent == 0);
    known->per_sum[0] = any ? from_vector(per_sum, 0) : WIDE_NAN;
    known->per_sum[1] = any ? from_vector(per_sum, 1) : WIDE_NAN;
    known->above = any ? from_vector(above, 1) - from_vector(above, 0) : WIDE_NAN;
    known->carried = any ? from_vector(carried, 1) * known->per_sum[1] : WIDE_NAN;
    if (!any)
        known->largest[0] = known->largest[1] = WIDE_NAN;
}

/* Sums that a loss makes of probabilities, over the warps of a row, and what becomes of them. */
template <typename loss>
ALWAYS_INLINE void finish_short_row(const cuda_vector *job, const double *parameter, int64_t row, int first, int warps,
                                    const vector_softmaxes *known, short_softmaxes *shared) {
    double sum[VECTOR_MOST_SUMS] = {0, 0, 0};
#pragma unroll
    for (int k = 0; k < loss::SUMS; k++)
        sum[k] = order_tree(&shared->node[k][first], warps);
    finish_vectors<loss>(job, parameter, row, sum, known, shared->factor[first / warps]);
}

/* Sends for a warp's tile of a row, if there is such and its logits are wanted. */
template <typename loss>
ALWAYS_INLINE void send_logits(const cuda_vector *job, int64_t row, const tile *tile, uint64_t *barrier) {
    if (!job->is_staged || row >= job->rows || tile->index >= job->tiles || !row_takes_part(job, row))
        return;
    expect_tiles<loss>(job, tile, 1, barrier);
    send_tile<loss>(job, row, tile, barrier);
}

/* The logits of one that was sent for, the first that was not `waited` for, or that lies where it is. */
template <typename loss>
ALWAYS_INLINE void receive_logits(const cuda_vector *job, const vector_tile *own_tile, uint64_t *barrier,
                                  unsigned *waited, exponentials *e) {
    if (!job->is_staged) {
        read_logits<VECTORS_DENSE>(job, own_tile, e);
        return;
    }
    const vector_tile staged = begin_tile<loss, VECTORS_STAGED>(job, own_tile->row, &own_tile->of);
    wait_for_bytes(barrier, (*waited)++);
    read_logits<VECTORS_STAGED>(job, &staged, e);
}

/* `first` is the first of the block's rows, and the next ones are `step` further on. job->chunk, a power of two, is the
 * number of warps that a row has. */
template <typename loss>
ALWAYS_INLINE void run_softmax_block(const cuda_vector *job, int64_t first, int64_t step, int turn, unsigned *waited,
                                     short_softmaxes *shared) {
    const place_in_block at = here_in_block();
    const int warps = job->chunk, own = at.warp / warps, first_warp = own * warps;
    const int64_t row = first + own;
    const bool leads = at.warp == first_warp;
    const tile tile =
        vector_tile_at(job, at.warp % warps, at.thread, vector_buffer<loss, VECTORS_STAGED>(job, at.warp));
    const bool is_there = row < job->rows && tile.index < job->tiles;
    const bool part = is_there && row_takes_part(job, row);
    const vector_tile own_tile = begin_tile<loss, VECTORS_DENSE>(job, row, &tile);
    vector_softmaxes known;
    exponentials e;
    OWN_PARAMETERS(parameter, true);
    if (part)
        receive_logits<loss>(job, &own_tile, &shared->barrier[at.warp], waited, &e);
    send_logits<loss>(job, row + step, &tile, &shared->barrier[at.warp]);
    if (part) {
        tile_softmaxes sums;
        sum_softmaxes<loss>(job, &tile, &e, shared->lanes[at.warp], &sums);
        if (at.thread == 0)
            shared->tile[turn][at.warp] = sums;
    }
    __syncthreads();
    if (part) {
        join_short_row<loss>(job, &shared->tile[turn][first_warp], (int)job->tiles, at.thread, loss::SUMS == 0 && leads,
                             &known);
        make_probabilities(job, &known, &e);
    }
    double factor[VECTOR_MOST_FACTORS] = {0, 0, 0};
    if (loss::SUMS == 0) { /* the first vector's slopes need nothing else that is known of the row */
        if (leads && row < job->rows)
            finish_vectors<loss>(job, parameter, row, NULL, &known, factor);
        else if (part) {
            const row_numbers numbers = numbers_of<loss>(job, row, NULL);
            find_slopes<loss>(job, parameter, &numbers, NULL, &known, NULL, factor);
        }
    } else {
        double sum[VECTOR_MOST_SUMS] = {ORDER_NOTHING, ORDER_NOTHING, ORDER_NOTHING};
        if (part)
            sum_probabilities<loss>(parameter, &tile, &e, sum);
        if (at.thread == 0)
#pragma unroll
            for (int k = 0; k < loss::SUMS; k++)
                shared->node[k][at.warp] = sum[k];
        __syncthreads();
        if (leads && at.thread == 0 && row < job->rows)
            finish_short_row<loss>(job, parameter, row, first_warp, warps, &known, shared);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < VECTOR_MOST_FACTORS; k++)
            factor[k] = shared->factor[own][k];
    }
    if (is_there) {
        if (loss::SUMS > 0) /* else rows whose second vector has a gradient go the longer way, with more registers */
            write_probability_slopes<loss, VECTORS_DENSE, 1>(job, parameter, &known, &own_tile, part, &e, factor);
        write_probability_slopes<loss, VECTORS_DENSE, 0>(job, parameter, &known, &own_tile, part, &e, factor);
    }
}

template <typename loss> ALWAYS_INLINE void run_softmax_short(const cuda_vector *job) {
    __shared__ short_softmaxes shared;
    const place_in_block at = here_in_block();
    const int64_t rows = at.warps / job->chunk, step = gridDim.x * rows;
    const tile tile =
        vector_tile_at(job, at.warp % job->chunk, at.thread, vector_buffer<loss, VECTORS_STAGED>(job, at.warp));
    unsigned waited = 0;
    int turn = 0;
    if (is_done_before(job))
        return;
    prepare_to_wait(&shared.barrier[at.warp], at.thread);
    send_logits<loss>(job, blockIdx.x * rows + at.warp / job->chunk, &tile, &shared.barrier[at.warp]);
#pragma unroll 1
    for (int64_t first = blockIdx.x * rows; first < job->rows; first += step, turn ^= 1)
        run_softmax_block<loss>(job, first, step, turn, &waited, &shared);
}

/* ------------------------------------------------------------- longer rows -- */

/* What the tiles of a row leave in the workspace: the i-th number of all of them, then the next. */
ALWAYS_INLINE double *tiles_of_row(const cuda_vector *job, int64_t row) {
    return in_workspace(job, job->tiles_at) + row * job->tiles * CUDA_TILE_SOFTMAXES;
}

/* What a tile leaves. */
ALWAYS_INLINE void leave_tile(const cuda_vector *job, int64_t row, const tile *tile, const tile_softmaxes *sums) {
    double *into = tiles_of_row(job, row) + tile->index;
    const double number[CUDA_TILE_SOFTMAXES] = {sums->largest[0], sums->largest[1], sums->others[0], sums->others[1],
                                                sums->leading[0], sums->leading[1], sums->carried};
    if (tile->thread == 0)
#pragma unroll
        for (int i = 0; i < CUDA_TILE_SOFTMAXES; i++)
            into[i * job->tiles] = number[i];
}

/* A warp has a tile. */
template <typename loss, vector_access access> ALWAYS_INLINE void run_softmaxes(const cuda_vector *job) {
    __shared__ lanes_together lanes[access == VECTORS_ANYHOW ? 1 : CUDA_MOST_WARPS]; /* else where the logits were */
    const place_in_block at = here_in_block();
    const int64_t all = job->rows * job->tiles;
    if (is_done_before(job))
        return;
#pragma unroll 1
    for (int64_t slot = blockIdx.x * (int64_t)at.warps + at.warp; slot < all; slot += gridDim.x * (int64_t)at.warps) {
        const int64_t row = row_of_tile(job, slot);
        const tile tile =
            vector_tile_at(job, slot - row * job->tiles, at.thread, vector_buffer<loss, access>(job, at.warp));
        tile_softmaxes sums;
        exponentials e;
        if (!row_takes_part(job, row))
            continue;
        const vector_tile own_tile = begin_tile<loss, access>(job, row, &tile);
        read_logits<access>(job, &own_tile, &e);
        sum_softmaxes<loss>(job, &tile, &e, access == VECTORS_ANYHOW ? tile.buffer : lanes[at.warp], &sums);
        leave_tile(job, row, &tile, &sums);
    }
}

/* ----------------------------------------------------------- known of rows -- */

/* The numbers of a tile, which are `step` apart, become its parts of the row's sums. */
ALWAYS_INLINE void parts_of_tile(const cuda_vector *job, const double *number, int64_t step, const double *exponent,
                                 const double *largest, double *part) {
    const softmax softmax = softmax_as_told(&job->softmax);
    softmax_tile tile[2];
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const softmax_shift shift = softmax_shift_of(&softmax, &job->softmax.scale, (real)number[k * step]);
        const softmax_tile own = {shift.exponent,   number[(2 + k) * step], number[(4 + k) * step], 0,
                                  number[6 * step], shift.largest};
        tile[k] = own;
    }
    softmaxes_parts(tile, exponent, largest, part);
}

ALWAYS_INLINE bool exponents_of_row(const cuda_vector *job, const double *largest, double *exponent) {
    const softmax softmax = softmax_as_told(&job->softmax);
    return softmaxes_exponents(&softmax, &job->softmax.scale, largest, exponent);
}

/* By one thread. A loss that needs no other sums is done with the row. */
template <typename loss>
ALWAYS_INLINE void leave_known(const cuda_vector *job, int64_t row, bool part, const double *largest,
                               const double *sum) {
    const softmax softmax = softmax_as_told(&job->softmax);
    vector_softmaxes known;
    if (part) {
        softmaxes_know(&softmax, &job->softmax.scale, largest, sum, &known);
        if (loss::SUMS > 0 || job->has_gradient)
            *known_of_row(job, row) = known;
    }
    if (loss::SUMS == 0)
        finish_row_of_launch<loss>(job, row, NULL, &known);
}

/* A row of no more tiles than a warp has threads, each of which has one; job->chunk, a power of two, of them have the
 * row. Every thread of the warp comes here. */
template <typename loss> ALWAYS_INLINE void know_row_of_warp(const cuda_vector *job, int64_t row) {
    const int lanes = job->chunk, i = (int)threadIdx.x % lanes;
    const bool is_here = row < job->rows, part = is_here && row_takes_part(job, row), has = part && i < job->tiles;
    double number[CUDA_TILE_SOFTMAXES], largest[2], exponent[2];
    double sum[SOFTMAXES_SUMS] = {ORDER_NOTHING, ORDER_NOTHING, ORDER_NOTHING, ORDER_NOTHING, ORDER_NOTHING};
#pragma unroll
    for (int k = 0; k < CUDA_TILE_SOFTMAXES; k++)
        number[k] = has ? tiles_of_row(job, row)[k * job->tiles + i] : -WIDE_INFINITY;
#pragma unroll
    for (int k = 0; k < 2; k++) {
        largest[k] = number[k];
        for (int distance = 1; distance < lanes; distance *= 2)
            largest[k] = wide_larger_or_nan(largest[k], order_swap(largest[k], distance));
    }
    if (exponents_of_row(job, largest, exponent) && has)
        parts_of_tile(job, number, 1, exponent, largest, sum);
#pragma unroll
    for (int k = 0; k < SOFTMAXES_SUMS; k++)
        sum[k] = order_neighbours(sum[k], lanes);
    if (is_here && i == 0)
        leave_known<loss>(job, row, part, largest, sum);
}

/* The largest number of all tiles, NaN if one is, known to all threads of a block. */
ALWAYS_INLINE double largest_of_tiles(const double *number, int64_t tiles, double *of_warp) {
    const place_in_block at = here_in_block();
    double largest = -WIDE_INFINITY;
#pragma unroll 1
    for (int64_t i = threadIdx.x; i < tiles; i += blockDim.x)
        largest = wide_larger_or_nan(largest, number[i]);
    for (int distance = ORDER_WARP / 2; distance > 0; distance /= 2)
        largest = wide_larger_or_nan(largest, order_swap(largest, distance));
    if (at.thread == 0)
        of_warp[at.warp] = largest;
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < at.warps; i++)
        largest = wide_larger_or_nan(largest, of_warp[i]);
    __syncthreads();
    return largest;
}

/* A longer one, by a block. */
template <typename loss>
ALWAYS_INLINE void know_row_together(const cuda_vector *job, int64_t row, double *of_warp, order_stack *stack) {
    const int64_t tiles = job->tiles;
    const bool part = row_takes_part(job, row);
    double *number = tiles_of_row(job, row), largest[2] = {0, 0}, exponent[2], sum[SOFTMAXES_SUMS] = {0, 0, 0, 0, 0};
    if (part) {
        largest[0] = largest_of_tiles(number, tiles, of_warp);
        largest[1] = largest_of_tiles(number + tiles, tiles, of_warp);
        const bool any = exponents_of_row(job, largest, exponent);
#pragma unroll 1
        for (int64_t i = threadIdx.x; any && i < tiles; i += blockDim.x) {
            double own[SOFTMAXES_SUMS];
            parts_of_tile(job, number + i, tiles, exponent, largest, own);
#pragma unroll
            for (int k = 0; k < SOFTMAXES_SUMS; k++)
                number[k * tiles + i] = own[k];
        }
        __threadfence_block();
        __syncthreads();
#pragma unroll
        for (int k = 0; k < SOFTMAXES_SUMS; k++)
            sum[k] = any ? sum_of_nodes(number + k * tiles, tiles, of_warp, stack) : 0;
    }
    if (threadIdx.x == 0)
        leave_known<loss>(job, row, part, largest, sum);
    __syncthreads();
}

template <typename loss> ALWAYS_INLINE void run_know(const cuda_vector *job) {
    __shared__ double of_warp[CUDA_MOST_WARPS];
    __shared__ order_stack stack;
    const bool by_warps = job->tiles <= ORDER_WARP;
    const int64_t rows = by_warps ? blockDim.x / job->chunk : 1;
    if (is_done_before(job))
        return;
#pragma unroll 1
    for (int64_t first = blockIdx.x * rows; first < job->rows; first += gridDim.x * rows)
        if (by_warps)
            know_row_of_warp<loss>(job, first + threadIdx.x / job->chunk);
        else
            know_row_together<loss>(job, first, of_warp, &stack);
}

/* -------------------------------------------------------- sums and slopes -- */

/* As run_sums() of long.h. */
template <typename loss, vector_access access> ALWAYS_INLINE void run_softmax_sums(const cuda_vector *job) {
    __shared__ double node[VECTOR_MOST_SUMS][CUDA_MOST_CHUNK];
    const place_in_block at = here_in_block();
    const int chunk = job->chunk, slots = chunk > at.warps ? chunk : at.warps, chunks = slots / chunk;
    const int64_t all = job->rows * job->chunks;
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
            if (index < all && tile.index < job->tiles && row_takes_part(job, row)) {
                const vector_tile own_tile = begin_tile<loss, access>(job, row, &tile);
                exponentials e;
                read_logits<access>(job, &own_tile, &e);
                exponentiate_logits(job, &tile, &e);
                make_probabilities(job, known_of_row(job, row), &e);
                sum_probabilities<loss>(job->parameter, &tile, &e, sum);
            }
            if (at.thread == 0)
#pragma unroll
                for (int k = 0; k < loss::SUMS; k++)
                    node[k][slot] = sum[k];
        }
        __syncthreads();
        if ((int)threadIdx.x < chunks && first + threadIdx.x < all)
#pragma unroll
            for (int k = 0; k < loss::SUMS; k++)
                in_workspace(job, job->nodes_at)[k * all + first + threadIdx.x] =
                    order_tree(&node[k][threadIdx.x * chunk], chunk);
        __syncthreads();
    }
}

/* As run_slopes() of long.h. */
template <typename loss, vector_access access> ALWAYS_INLINE void run_softmax_slopes(const cuda_vector *job) {
    const place_in_block at = here_in_block();
    const int64_t all = job->rows * job->tiles;
    if (is_done_before(job))
        return;
#pragma unroll 1
    for (int64_t slot = blockIdx.x * (int64_t)at.warps + at.warp; slot < all; slot += gridDim.x * (int64_t)at.warps) {
        const int64_t row = row_of_tile(job, slot);
        const tile tile =
            vector_tile_at(job, slot - row * job->tiles, at.thread, vector_buffer<loss, access>(job, at.warp));
        const vector_tile own_tile = begin_tile<loss, access>(job, row, &tile);
        const vector_softmaxes *known = known_of_row(job, row);
        const bool part = row_takes_part(job, row);
        const double *from = in_workspace(job, job->factors_at) + row * VECTOR_MOST_FACTORS;
        const double factor[VECTOR_MOST_FACTORS] = {from[0], from[1], from[2]};
        exponentials e;
        if (part) {
            read_logits<access>(job, &own_tile, &e);
            exponentiate_logits(job, &tile, &e);
            make_probabilities(job, known, &e);
        }
        write_softmax_slopes<loss, access>(job, job->parameter, known, &own_tile, part, &e, factor);
    }
}

#endif
