/*
 * Rows whose classes lie side by side, in float or a 16-bit type: a warp takes a tile, all loads of which are in flight
 * before the first is used.
 */
#ifndef ONEPASS_CUDA_ROWS_DENSE_H
#define ONEPASS_CUDA_ROWS_DENSE_H

#include "cuda/rows/join.h"

/* The rows of a block. */
typedef struct row_group {
    int64_t first;
    int count;
} row_group;

ALWAYS_INLINE row_group group_of_block(const cuda_row *job) {
    row_group group;
    group.first = (int64_t)blockIdx.x * job->group;
    const int64_t left = job->rows - group.first;
    group.count = left < job->group ? (int)left : job->group;
    return group;
}

/* Each lane knows a row of the group; those beyond know nothing. */
template <row_kind kind>
ALWAYS_INLINE row describe_own(const cuda_row *job, const row_rules *rules, const row_group *group, int thread) {
    row own = {};
    if (thread < group->count)
        own = describe_row_of<kind>(job, rules, group->first + thread);
    return own;
}

/* Places in shared memory for the sums of tiles. */
#define WAITING_TILES(count, weighs)                                                                                   \
    __shared__ double waiting_others[count], waiting_weights[weighs ? count : 1],                                      \
        waiting_weighted[weighs ? count : 1];                                                                          \
    __shared__ real waiting_largest[count];                                                                            \
    const waiting waiting = {waiting_largest, waiting_others, waiting_weights, waiting_weighted}

/* ------------------------------------------------------------------ forward -- */

/* A row of few tiles, by a thread of its own. */
template <row_kind kind>
ALWAYS_INLINE void join_own_row(const cuda_row *job, const row_rules *rules, const waiting *waiting, int at, int tiles,
                                bool weighs, const row *row, row_result *result) {
    real largest = -REAL_INFINITY;
    row_facts *facts = &result->facts;
    for (int t = 0; t < tiles; t++)
        largest = larger_or_nan(largest, waiting->largest[at + t]);
    begin_facts(job, row, facts);
    result->good = begin_join(job, rules, largest, facts);
    facts->row.own = 0;
    if (kind == ROW_LABEL)
        facts->row.own = own_part(job, rules, waiting->largest[at + (int)(row->label / ORDER_TILE)], row->label_logit,
                                  facts->row.exponent);
#pragma unroll 1
    for (int t = 0; t < tiles; t++) {
        const tile_parts parts = parts_of_tile(job, rules, waiting, at + t, weighs, facts);
        waiting->others[at + t] = parts.others;
        if (weighs)
            waiting->weighted[at + t] = parts.weighted;
    }
    facts->row.others = order_tree(waiting->others + at, tiles);
    facts->row.weights = weighs ? order_tree(waiting->weights + at, tiles) : 0;
    facts->weighted = weighs ? order_tree(waiting->weighted + at, tiles) : 0;
}

/* Rows of more tiles are joined by a warp each. */
#define MOST_OWN_TILES 8

/* Values alone. Tiles of all rows of a group are taken one after the other, whatever their row; when all are there a
 * lane finishes a row. */
template <typename loss, bool weighs> ALWAYS_INLINE void run_forward(const cuda_row *job) {
    WAITING_TILES(CUDA_MOST_ROW_TILES, weighs);
    const place_in_block at = here_in_block();
    const row_rules rules = row_rules_of(job);
    const row_group group = group_of_block(job);
    const row own = describe_own<loss::KIND>(job, &rules, &group, at.thread);
    const int tiles = (int)job->tiles;
    int i = at.warp / tiles, t = at.warp % tiles;
#pragma unroll 1
    while (i < group.count) {
        const row row = tell_row(&own, i);
        if (row.part == ROW_COUNTS) {
            const tile tile = row_tile_at(t, job->classes, at.thread, NULL);
            own_numbers x, u;
            tile_sums sums;
            gather_logits<ROW_VECTORS>(job, &row, &tile, x);
            if (weighs)
                gather_weights<loss::KIND, ROW_VECTORS>(job, &rules, &row, &tile, u);
            sum_tile(job, &rules, &row, &tile, weighs, x, u, &sums);
            leave_tile(&waiting, i * tiles + t, at.thread, weighs, &sums);
        }
        for (t += at.warps; t >= tiles; t -= tiles)
            i++;
    }
    __syncthreads();
    if (at.warp != 0)
        return;
    row_result result = {};
    if (tiles <= MOST_OWN_TILES) {
        if (at.thread < group.count && own.part == ROW_COUNTS)
            join_own_row<loss::KIND>(job, &rules, &waiting, at.thread * tiles, tiles, weighs, &own, &result);
    } else {
#pragma unroll 1
        for (int r = 0; r < group.count; r++) {
            const row row = tell_row(&own, r);
            row_result joined;
            if (row.part != ROW_COUNTS)
                continue;
            join_row<loss::KIND>(job, &rules, &waiting, r * tiles, tiles, at.thread, weighs, &row, &joined);
            if (at.thread == r)
                result = joined;
        }
    }
    if (at.thread < group.count)
        finish_row<loss>(job, &rules, &own, group.first + at.thread, &result);
}

/* ----------------------------------------------------- value and gradient -- */

/* A warp has a tile of each row, whose exponentials it keeps until the row's sum is known. All warps join the tiles for
 * themselves, which saves a barrier; the value is left for later. */
template <typename loss, bool weighs> ALWAYS_INLINE void run_both(const cuda_row *job) {
    WAITING_TILES(2 * CUDA_MOST_WARPS, weighs);
    const place_in_block at = here_in_block();
    if (is_done_before(job))
        return;
    const row_rules rules = row_rules_of(job);
    const row_group group = group_of_block(job);
    const row own = describe_own<loss::KIND>(job, &rules, &group, at.thread);
    const tile tile = row_tile_at(at.warp, job->classes, at.thread, NULL);
    row_result result = {};
    int turn = 0;
#pragma unroll 1
    for (int i = 0; i < group.count; i++) {
        const row row = tell_row(&own, i);
        if (row.part != ROW_COUNTS) {
            fill_gradient<ROW_VECTORS>(job, row.gradient, 0, &tile, row.part == ROW_BAD ? REAL_NAN : 0);
            continue;
        }
        own_numbers x, u;
        tile_sums sums;
        row_result joined;
        gather_logits<ROW_VECTORS>(job, &row, &tile, x);
        if (weighs)
            gather_weights<loss::KIND, ROW_VECTORS>(job, &rules, &row, &tile, u);
        sum_tile(job, &rules, &row, &tile, weighs, x, u, &sums);
        leave_tile(&waiting, turn + at.warp, at.thread, weighs, &sums);
        __syncthreads();
        join_row<loss::KIND>(job, &rules, &waiting, turn, at.warps, at.thread, weighs, &row, &joined);
        turn ^= CUDA_MOST_WARPS;
        if (at.thread == i)
            result = joined;
        if (joined.good) {
            const row_factors factors = factors_of_row<loss>(job, &rules, &row, &joined.facts);
            const real f = row_tile_factor(&factors, exponent_of(job, &rules, sums.largest), joined.facts.row.exponent);
            write_gradient<ROW_VECTORS>(job, &row, &tile, &factors, f, weighs, x, u);
        } else {
            fill_gradient<ROW_VECTORS>(job, row.gradient, 0, &tile, REAL_NAN);
        }
    }
    if (at.warp == 0 && at.thread < group.count)
        finish_row<loss>(job, &rules, &own, group.first + at.thread, &result);
}

/* What a warp tells the others of a row that it has joined. */
typedef struct joined_row {
    row_factors factors;
    double exponent;
    bool good;
} joined_row;

/* Of longer rows the logits are read again, from the cache. */
template <typename loss, bool weighs> ALWAYS_INLINE void run_both_long(const cuda_row *job) {
    WAITING_TILES(CUDA_MOST_ROW_TILES, weighs);
    __shared__ joined_row told;
    const place_in_block at = here_in_block();
    if (is_done_before(job))
        return;
    const row_rules rules = row_rules_of(job);
    const row_group group = group_of_block(job);
    const row own = describe_own<loss::KIND>(job, &rules, &group, at.thread);
    const int tiles = (int)job->tiles;
    row_result result = {};
#pragma unroll 1
    for (int i = 0; i < group.count; i++) {
        const row row = tell_row(&own, i);
        own_numbers x, u;
        if (row.part != ROW_COUNTS) {
#pragma unroll 1
            for (int t = at.warp; t < tiles; t += at.warps) {
                const tile tile = row_tile_at(t, job->classes, at.thread, NULL);
                fill_gradient<ROW_VECTORS>(job, row.gradient, 0, &tile, row.part == ROW_BAD ? REAL_NAN : 0);
            }
            continue;
        }
#pragma unroll 1
        for (int t = at.warp; t < tiles; t += at.warps) {
            const tile tile = row_tile_at(t, job->classes, at.thread, NULL);
            tile_sums sums;
            gather_logits<ROW_VECTORS>(job, &row, &tile, x);
            if (weighs)
                gather_weights<loss::KIND, ROW_VECTORS>(job, &rules, &row, &tile, u);
            sum_tile(job, &rules, &row, &tile, weighs, x, u, &sums);
            leave_tile(&waiting, t, at.thread, weighs, &sums);
        }
        __syncthreads();
        if (at.warp == 0) {
            row_result joined;
            join_row<loss::KIND>(job, &rules, &waiting, 0, tiles, at.thread, weighs, &row, &joined);
            if (at.thread == i)
                result = joined;
            const row_factors factors = factors_of_row<loss>(job, &rules, &row, &joined.facts);
            if (at.thread == 0)
                told = (joined_row){factors, joined.facts.row.exponent, joined.good};
        }
        __syncthreads();
        const joined_row joined = told;
#pragma unroll 1
        for (int t = at.warp; t < tiles; t += at.warps) {
            const tile tile = row_tile_at(t, job->classes, at.thread, NULL);
            if (!joined.good) {
                fill_gradient<ROW_VECTORS>(job, row.gradient, 0, &tile, REAL_NAN);
                continue;
            }
            const softmax_shift shift = softmax_shift_of(&rules.base, &job->scale, waiting.largest[t]);
            const real f = row_tile_factor(&joined.factors, shift.exponent, joined.exponent);
            gather_logits<ROW_VECTORS>(job, &row, &tile, x);
            if (weighs)
                gather_weights<loss::KIND, ROW_VECTORS>(job, &rules, &row, &tile, u);
            exponentiate(&rules, &shift, &tile, x);
            write_gradient<ROW_VECTORS>(job, &row, &tile, &joined.factors, f, weighs, x, u);
        }
        __syncthreads();
    }
    if (at.warp == 0 && at.thread < group.count)
        finish_row<loss>(job, &rules, &own, group.first + at.thread, &result);
}

/* ----------------------------------------------------------------- backward -- */

/* Gradients from the rows' states: no tile needs another. */
template <typename loss, bool weighs> ALWAYS_INLINE void run_backward(const cuda_row *job) {
    const place_in_block at = here_in_block();
    if (is_done_before(job))
        return;
    const row_rules rules = row_rules_of(job);
    const row_group group = group_of_block(job);
    const row own = describe_own<loss::KIND>(job, &rules, &group, at.thread);
    row_result own_result = {};
    row_factors own_factors = {};
    if (at.thread < group.count && own.part == ROW_COUNTS) {
        begin_facts(job, &own, &own_result.facts);
        read_state(job, group.first + at.thread, &own_result);
        own_factors = slopes_of_row<loss>(job, &rules, &own, &own_result.facts);
    }
    const int tiles = (int)job->tiles;
    int i = at.warp / tiles, t = at.warp % tiles;
#pragma unroll 1
    while (i < group.count) {
        const row row = tell_row(&own, i);
        const bool good = tell_warp((int)own_result.good, i);
        const tile tile = row_tile_at(t, job->classes, at.thread, NULL);
        if (row.part == ROW_COUNTS && good) {
            own_numbers x, u;
            row_factors factors;
            factors.of_exponentials = tell_warp(own_factors.of_exponentials, i);
            factors.of_weights = tell_warp(own_factors.of_weights, i);
            factors.own = tell_warp(own_factors.own, i);
            const double exponent = tell_warp(own_result.facts.row.exponent, i);
            gather_logits<ROW_VECTORS>(job, &row, &tile, x);
            if (weighs)
                gather_weights<loss::KIND, ROW_VECTORS>(job, &rules, &row, &tile, u);
            const real largest = largest_of_tile(&tile, x);
            const softmax_shift shift = softmax_shift_of(&rules.base, &job->scale, largest);
            const real f = row_tile_factor(&factors, shift.exponent, exponent);
            exponentiate(&rules, &shift, &tile, x);
            write_gradient<ROW_VECTORS>(job, &row, &tile, &factors, f, weighs, x, u);
        } else {
            fill_gradient<ROW_VECTORS>(job, row.gradient, 0, &tile, row.part == ROW_IGNORED ? 0 : REAL_NAN);
        }
        for (t += at.warps; t >= tiles; t -= tiles)
            i++;
    }
}

#endif
