/*
 * From tiles to rows: the sums of a row's tiles wait in shared memory until all are there.
 */
#ifndef ONEPASS_CUDA_ROWS_JOIN_H
#define ONEPASS_CUDA_ROWS_JOIN_H

#include "cuda/rows/tile.h"

/* The sums of tiles, in shared memory. */
typedef struct waiting {
    real *largest;
    double *others, *leading, *weights, *weighted;
} waiting;

template <row_kind kind>
ALWAYS_INLINE void leave_tile(const waiting *waiting, int at, int thread, bool weighs, const tile_sums *sums) {
    if (thread != 0)
        return;
    waiting->largest[at] = sums->largest;
    waiting->others[at] = sums->others;
    if (kind == ROW_PROBABILITIES)
        waiting->leading[at] = sums->leading;
    if (weighs) {
        waiting->weights[at] = sums->weights;
        waiting->weighted[at] = sums->weighted;
    }
}

/* ------------------------------------------------- classes that are shared out -- */

/* The first number of a tile that travels. */
ALWAYS_INLINE double *numbers_of_tile(const cuda_row *job, int64_t row, int64_t tile) {
    return job->tile_sums + row * job->row_step + tile;
}

/* The sums of a tile, which wait at `at`, leave as such numbers; of a row that takes no part they are 0. */
ONCE_A_ROW void leave_numbers(const cuda_row *job, const row *row, waiting waiting, int at, int64_t index) {
    double number[ONEPASS_SMOOTH_TILE_SUMS] = {};
    if (row->part == ROW_COUNTS) {
        const softmax_shift shift = shift_of(job, waiting.largest[at]);
        softmax_tile tile = {};
        tile.exponent = shift.exponent;
        tile.largest = shift.largest;
        tile.others = waiting.others[at];
        if (job->weighs) {
            tile.weights = waiting.weights[at];
            tile.weighted = waiting.weighted[at];
        }
        row_numbers_of_tile(&tile, number);
    }
#pragma unroll
    for (int i = 0; i < ONEPASS_SMOOTH_TILE_SUMS; i++)
        if (i < job->sums_of_tile)
            store_scalar(numbers_of_tile(job, row->index, index) + i * job->sum_step, ONEPASS_F64, number[i]);
}

ALWAYS_INLINE void leave_label_logit(const cuda_row *job, const row *row) {
    job->label_logit[row->index] = row->part == ROW_COUNTS ? (double)row_logit(job, row) : 0;
}

/* And come back to wait. */
ALWAYS_INLINE void recall_numbers(const cuda_row *job, const row *row, int64_t first, int tiles,
                                  const waiting *waiting) {
#pragma unroll 1
    for (int t = (int)threadIdx.x; t < tiles; t += (int)blockDim.x) {
        const double *number = numbers_of_tile(job, row->index, first + t);
        waiting->largest[t] = (real)number[0];
        waiting->others[t] = number[job->sum_step];
        if (job->weighs) {
            waiting->weights[t] = number[2 * job->sum_step];
            waiting->weighted[t] = number[3 * job->sum_step];
        }
    }
}

/* The largest logit of a tile, which may be one that is not here. */
ALWAYS_INLINE real largest_of_tile(const cuda_row *job, const row *row, const tile *tile, real own) {
    return job->tile_sums ? (real)*numbers_of_tile(job, row->index, tile->index) : own;
}

/* Lanes of some tiles of a warp, in shared memory, that are added up together: it takes little longer than for one.
 * Behind the lanes of a tile are its largest logit and the number of its place, which would take registers. */
typedef struct lane_room {
    real *lane; /* ORDER_TOGETHER tiles, ORDER_PITCH apart */
    int tiles;
} lane_room;

ALWAYS_INLINE void add_up_room(const waiting *waiting, int thread, lane_room *room) {
    __syncwarp();
    const double sum = order_lanes_together(thread, room->lane);
    if (thread % 8 == 0 && thread / 8 < room->tiles) {
        const real *behind = room->lane + thread / 8 * ORDER_PITCH + ORDER_LANES;
        const int at = (int)bits_of(behind[1]);
        waiting->others[at] = sum;
        waiting->largest[at] = behind[0];
    }
    __syncwarp();
    room->tiles = 0;
}

ALWAYS_INLINE void leave_lanes(const waiting *waiting, int at, int thread, real largest, const real *lane,
                               lane_room *room) {
    real *own = room->lane + room->tiles * ORDER_PITCH + order_lane(thread, 0);
    *(vector *)own = pack_vector(lane);
    if (thread == 0) {
        own[ORDER_LANES] = largest;
        own[ORDER_LANES + 1] = real_of((uint32_t)at);
    }
    if (++room->tiles == ORDER_TOGETHER)
        add_up_room(waiting, thread, room);
}

/* A tile's part of each of the row's sums. */
typedef struct tile_parts {
    double others, leading, weights, weighted;
} tile_parts;

template <row_kind kind>
ALWAYS_INLINE tile_parts parts_of_tile(const cuda_row *job, const waiting *waiting, int at, bool weighs,
                                       const row_sum *row) {
    const softmax_shift shift = shift_of(job, waiting->largest[at]);
    tile_parts parts = {};
    softmax_tile tile;
    tile.exponent = shift.exponent;
    tile.largest = shift.largest;
    tile.others = waiting->others[at];
    tile.leading = kind == ROW_PROBABILITIES ? waiting->leading[at] : 0;
    parts.others = row_part_of_others(&tile, row->exponent, row->largest);
    if (kind == ROW_PROBABILITIES)
        parts.leading = row_part_of_leading(&tile, row->largest);
    if (weighs) {
        tile.weights = parts.weights = waiting->weights[at];
        tile.weighted = waiting->weighted[at];
        parts.weighted = row_part_of_weighted(&tile, row->largest);
    }
    return parts;
}

/* Begins with the largest logit of the row, NaN or -inf included. */
ALWAYS_INLINE void begin_join(const cuda_row *job, real largest, real label_logit, row_sum *row) {
    const softmax_shift shift = shift_of(job, largest);
    row->largest = shift.largest;
    row->label_logit = label_logit;
    row->exponent = shift.exponent;
    row->good = shift.exponent - shift.exponent == 0;
    row->own = 0;
}

template <row_kind kind> ALWAYS_INLINE void end_join(const tile_parts *sums, bool weighs, row_sum *row) {
    row->others = sums->others;
    if (kind == ROW_PROBABILITIES)
        row->own = sums->leading;
    row->weights = weighs ? sums->weights : 0;
    row->weighted = weighs ? sums->weighted : 0;
}

/* --------------------------------------------------------- by a thread, or some -- */

/* A row of few tiles, by a thread of its own: sums take the places of their terms. */
template <row_kind kind>
ALWAYS_INLINE void join_own_row(const cuda_row *job, const waiting *waiting, int at, int tiles, bool weighs,
                                const row *row, real label_logit, row_sum *sum) {
    real largest = -REAL_INFINITY;
    for (int t = 0; t < tiles; t++)
        largest = larger_or_nan(largest, waiting->largest[at + t]);
    begin_join(job, largest, label_logit, sum);
    if (kind == ROW_LABEL)
        sum->own = own_part(job, waiting->largest[at + (int)(row->label / ORDER_TILE)], label_logit, sum->exponent);
#pragma unroll 1
    for (int t = 0; t < tiles; t++) {
        const tile_parts parts = parts_of_tile<kind>(job, waiting, at + t, weighs, sum);
        waiting->others[at + t] = parts.others;
        if (kind == ROW_PROBABILITIES)
            waiting->leading[at + t] = parts.leading;
        if (weighs)
            waiting->weighted[at + t] = parts.weighted;
    }
    tile_parts sums;
    sums.others = order_tree(waiting->others + at, tiles);
    if (kind == ROW_PROBABILITIES)
        sums.leading = order_tree(waiting->leading + at, tiles);
    if (weighs) {
        sums.weights = order_tree(waiting->weights + at, tiles);
        sums.weighted = order_tree(waiting->weighted + at, tiles);
    }
    end_join<kind>(&sums, weighs, sum);
}

/* The same by a warp: lanes have a tile each, over and over, so that all get the sums. `power`, a power of two, is not
 * less than the number of tiles. */
template <row_kind kind>
ALWAYS_INLINE void join_few_tiles(const cuda_row *job, const waiting *waiting, int at, int tiles, int power, int thread,
                                  bool weighs, const row *row, real label_logit, row_sum *sum) {
    const int t = thread & (power - 1);
    real largest = t < tiles ? waiting->largest[at + t] : -REAL_INFINITY;
    for (int distance = 1; distance < power; distance *= 2)
        largest = larger_or_nan(largest, __shfl_xor_sync(~0u, largest, distance));
    begin_join(job, largest, label_logit, sum);
    if (kind == ROW_LABEL)
        sum->own = own_part(job, waiting->largest[at + (int)(row->label / ORDER_TILE)], label_logit, sum->exponent);
    tile_parts parts = {ORDER_NOTHING, ORDER_NOTHING, ORDER_NOTHING, ORDER_NOTHING};
    if (t < tiles)
        parts = parts_of_tile<kind>(job, waiting, at + t, weighs, sum);
    parts.others = order_neighbours(parts.others, power);
    if (kind == ROW_PROBABILITIES)
        parts.leading = order_neighbours(parts.leading, power);
    if (weighs) {
        parts.weights = order_neighbours(parts.weights, power);
        parts.weighted = order_neighbours(parts.weighted, power);
    }
    end_join<kind>(&parts, weighs, sum);
}

/* ----------------------------------------------------------------- by a warp -- */

ALWAYS_INLINE int up_to_power_of_two(int n) {
    int power = 1;
    while (power < n)
        power *= 2;
    return power;
}

template <row_kind kind> ALWAYS_INLINE void add_parts_of_warp(bool weighs, tile_parts *parts) {
    parts->others = order_neighbours(parts->others, ORDER_WARP);
    if (kind == ROW_PROBABILITIES)
        parts->leading = order_neighbours(parts->leading, ORDER_WARP);
    if (weighs) {
        parts->weights = order_neighbours(parts->weights, ORDER_WARP);
        parts->weighted = order_neighbours(parts->weighted, ORDER_WARP);
    }
}

/* The tree over up to CUDA_MOST_ROW_TILES tiles from `at` on: as many as a warp has threads become a node at a time,
 * and nodes, no more than it has threads, wait in one each. Everybody gets the sums. */
template <row_kind kind>
ALWAYS_INLINE tile_parts join_tiles(const cuda_row *job, const waiting *waiting, int at, int tiles, int thread,
                                    bool weighs, const row_sum *row) {
    const tile_parts nothing = {ORDER_NOTHING, ORDER_NOTHING, ORDER_NOTHING, ORDER_NOTHING};
    tile_parts sums = nothing, nodes = nothing;
#pragma unroll 1
    for (int first = 0; first < tiles; first += ORDER_WARP) {
        sums = nothing;
        if (first + thread < tiles)
            sums = parts_of_tile<kind>(job, waiting, at + first + thread, weighs, row);
        add_parts_of_warp<kind>(weighs, &sums);
        if (thread == first / ORDER_WARP)
            nodes = sums;
    }
    if (tiles <= ORDER_WARP)
        return sums;
    add_parts_of_warp<kind>(weighs, &nodes);
    return nodes;
}

/* All tiles of a row, by a warp, whose first thread leaves the sum. The label's tile is one of them. */
template <row_kind kind>
ALWAYS_INLINE void join_row_here(const cuda_row *job, const waiting *waiting, int at, int tiles, int thread,
                                 bool weighs, int64_t label, real label_logit, row_sum *into) {
    row_sum sum;
    real largest = -REAL_INFINITY;
#pragma unroll 1
    for (int t = thread; t < tiles; t += ORDER_WARP)
        largest = larger_or_nan(largest, waiting->largest[at + t]);
    begin_join(job, warp_largest_or_nan(largest), label_logit, &sum);
    const tile_parts sums = join_tiles<kind>(job, waiting, at, tiles, thread, weighs, &sum);
    end_join<kind>(&sums, weighs, &sum);
    if (kind == ROW_LABEL)
        sum.own = own_part(job, waiting->largest[at + (int)(label / ORDER_TILE)], label_logit, sum.exponent);
    if (thread == 0)
        *into = sum;
}

template <row_kind kind>
ONCE_A_ROW void join_row(const cuda_row *job, waiting waiting, int at, int tiles, int thread, bool weighs,
                         int64_t label, real label_logit, row_sum *into) {
    join_row_here<kind>(job, &waiting, at, tiles, thread, weighs, label, label_logit, into);
}

#endif
