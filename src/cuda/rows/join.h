/*
 * From tiles to rows: the sums of a row's tiles wait in shared memory until all are there.
 */
#ifndef ONEPASS_CUDA_ROWS_JOIN_H
#define ONEPASS_CUDA_ROWS_JOIN_H

#include "cuda/rows/tile.h"

/* The sums of tiles, in shared memory. */
typedef struct waiting {
    real *largest;
    double *others, *weights, *weighted;
} waiting;

ALWAYS_INLINE void leave_tile(const waiting *waiting, int at, int thread, bool weighs, const tile_sums *sums) {
    if (thread != 0)
        return;
    waiting->largest[at] = sums->largest;
    waiting->others[at] = sums->others;
    if (weighs) {
        waiting->weights[at] = sums->weights;
        waiting->weighted[at] = sums->weighted;
    }
}

ALWAYS_INLINE double exponent_of(const cuda_row *job, const row_rules *rules, real largest) {
    return softmax_shift_of(&rules->base, &job->scale, largest).exponent;
}

/* A tile's part of each of the row's sums. */
typedef struct tile_parts {
    double others, weights, weighted;
} tile_parts;

ALWAYS_INLINE tile_parts parts_of_tile(const cuda_row *job, const row_rules *rules, const waiting *waiting, int at,
                                       bool weighs, const row_facts *facts) {
    const softmax_shift shift = softmax_shift_of(&rules->base, &job->scale, waiting->largest[at]);
    tile_parts parts = {};
    softmax_tile tile;
    tile.exponent = shift.exponent;
    tile.others = waiting->others[at];
    parts.others = row_part_of_others(&tile, facts->row.exponent);
    if (weighs) {
        tile.largest = shift.largest;
        tile.weights = parts.weights = waiting->weights[at];
        tile.weighted = waiting->weighted[at];
        parts.weighted = row_part_of_weighted(&tile, facts->largest);
    }
    return parts;
}

/* Begins with the largest logit of the row, NaN or -inf included: says whether there is a softmax. */
ALWAYS_INLINE bool begin_join(const cuda_row *job, const row_rules *rules, real largest, row_facts *facts) {
    const softmax_shift shift = softmax_shift_of(&rules->base, &job->scale, largest);
    facts->largest = shift.largest;
    facts->row.exponent = shift.exponent;
    return shift.exponent - shift.exponent == 0;
}

/* The largest of two logits; NaN if one is. */
ALWAYS_INLINE real larger_or_nan(real a, real b) {
    return a != a ? a : b != b ? b : a > b ? a : b;
}

ALWAYS_INLINE real warp_largest_or_nan(real x) {
    for (int distance = ORDER_WARP / 2; distance > 0; distance /= 2)
        x = larger_or_nan(x, __shfl_xor_sync(~0u, x, distance));
    return x;
}

ALWAYS_INLINE int row_tiles_up(int tiles) {
    int power = 1;
    while (power < tiles)
        power *= 2;
    return power;
}

/* The tree over up to CUDA_MOST_ROW_TILES tiles from `at` on, by a warp: `node` is its own. Everybody gets the sums. */
ALWAYS_INLINE tile_parts join_tiles(const cuda_row *job, const row_rules *rules, const waiting *waiting, int at,
                                    int tiles, int thread, bool weighs, const row_facts *facts) {
    tile_parts sums;
    const int power = row_tiles_up(tiles), own = power > ORDER_WARP ? power / ORDER_WARP : 1;
    sums.others = sums.weights = sums.weighted = ORDER_NOTHING;
    /* A thread's tiles are neighbours, and few: pushed on a stack of their own they become one node. */
    double others[5], weights[5], weighted[5];
    int taken = 0;
#pragma unroll 1
    for (int i = 0; i < own; i++) {
        const int t = thread * own + i;
        tile_parts parts = {ORDER_NOTHING, ORDER_NOTHING, ORDER_NOTHING};
        if (t < tiles)
            parts = parts_of_tile(job, rules, waiting, at + t, weighs, facts);
        taken = i;
#pragma unroll
        for (int level = 0; level < 5; level++) {
            if (!(taken >> level & 1)) {
                others[level] = parts.others;
                weights[level] = parts.weights;
                weighted[level] = parts.weighted;
                break;
            }
            parts.others = others[level] + parts.others;
            parts.weights = weights[level] + parts.weights;
            parts.weighted = weighted[level] + parts.weighted;
        }
        sums = parts;
    }
    sums.others = order_neighbours(sums.others, ORDER_WARP);
    if (weighs) {
        sums.weights = order_neighbours(sums.weights, ORDER_WARP);
        sums.weighted = order_neighbours(sums.weighted, ORDER_WARP);
    }
    return sums;
}

/* All tiles of a row by a warp. The label's tile is one of them. */
template <row_kind kind>
ALWAYS_INLINE void join_row(const cuda_row *job, const row_rules *rules, const waiting *waiting, int at, int tiles,
                            int thread, bool weighs, const row *row, row_result *result) {
    real largest = -REAL_INFINITY;
#pragma unroll 1
    for (int t = thread; t < tiles; t += ORDER_WARP)
        largest = larger_or_nan(largest, waiting->largest[at + t]);
    row_facts *facts = &result->facts;
    begin_facts(job, row, facts);
    result->good = begin_join(job, rules, warp_largest_or_nan(largest), facts);
    const tile_parts sums = join_tiles(job, rules, waiting, at, tiles, thread, weighs, facts);
    facts->row.others = sums.others;
    facts->row.weights = weighs ? sums.weights : 0;
    facts->weighted = weighs ? sums.weighted : 0;
    facts->row.own = 0;
    if (kind == ROW_LABEL)
        facts->row.own = own_part(job, rules, waiting->largest[at + (int)(row->label / ORDER_TILE)], row->label_logit,
                                  facts->row.exponent);
}

#endif
