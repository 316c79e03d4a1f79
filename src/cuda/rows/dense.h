/*
 * Rows whose classes lie side by side, in float or a 16-bit type: a warp takes a tile, all loads of which are in flight
 * before the first is used.
 */
#ifndef ONEPASS_CUDA_ROWS_DENSE_H
#define ONEPASS_CUDA_ROWS_DENSE_H

#include "cuda/rows/one_shift.h"
#include "cuda/rows/prefetch.h"

/* The rows of a block: a group of neighbours, of which its threads find out what is known. The first blocks may
 * have longer groups than others. */
typedef struct row_group {
    int64_t first;
    int count;
} row_group;

ALWAYS_INLINE row_group group_of_block(const cuda_row *job) {
    const int beyond = (int)blockIdx.x - job->long_groups, rows = beyond < 0 ? job->long_group : job->group;
    row_group group;
    group.first = (int64_t)job->long_groups * job->long_group + (int64_t)beyond * rows;
    const int64_t left = job->rows - group.first;
    group.count = left < rows ? (int)left : rows;
    return group;
}

template <row_kind kind> ALWAYS_INLINE row_group describe_group(const cuda_row *job, row *rows) {
    const row_group group = group_of_block(job);
    for (int i = (int)threadIdx.x; i < group.count; i += (int)blockDim.x)
        describe_row<kind>(job, group.first + i, &rows[i]);
    __syncthreads();
    return group;
}

/* Places in shared memory for the sums of tiles. */
#define WAITING_TILES(count, weighs)                                                                                   \
    __shared__ double waiting_others[count], waiting_leading[weighs ? count : 1], waiting_weights[weighs ? count : 1], \
        waiting_weighted[weighs ? count : 1];                                                                          \
    __shared__ real waiting_largest[count];                                                                            \
    const waiting waiting = {waiting_largest, waiting_others, waiting_leading, waiting_weights, waiting_weighted}

/* Rows of more tiles are joined by a warp each. */
#define MOST_OWN_TILES 8

/* What a warp has to do when all tiles of a group are there: a lane finishes a row, from `first` on. */
template <typename loss, weighing weighs>
ALWAYS_INLINE void finish_group(const cuda_row *job, const row_group *group, int first, const row *rows,
                                const waiting *waiting, row_sum *sums) {
    const int thread = (int)threadIdx.x % ORDER_WARP, own = first + thread, tiles = (int)job->tiles;
    if (tiles <= MOST_OWN_TILES) {
        if (own < group->count && rows[own].part == ROW_COUNTS)
            join_own_row<loss::KIND>(job, waiting, own * tiles, tiles, weighs != WEIGHS_NOTHING, &rows[own],
                                     row_logit(job, &rows[own]), &sums[own]);
    } else {
#pragma unroll 1
        for (int r = first; r < group->count && r < first + ORDER_WARP; r++) {
            if (rows[r].part != ROW_COUNTS)
                continue;
            join_row<loss::KIND>(job, *waiting, r * tiles, tiles, thread, weighs != WEIGHS_NOTHING, rows[r].label,
                                 row_logit(job, &rows[r]), &sums[r]);
        }
        __syncwarp();
    }
    if (own < group->count)
        finish_row<loss>(job, &rows[own], group->first + own, &sums[own]);
}

/* The same out of line: what it needs would take registers of kernels that have none to spare. */
template <typename loss, weighing weighs>
ONCE_A_ROW void finish_group_apart(const cuda_row *job, row_group group, int first, const row *rows, waiting waiting,
                                   row_sum *sums) {
    finish_group<loss, weighs>(job, &group, first, rows, &waiting, sums);
}

/* Where classes are shared out. By all threads of a block; the last warp, which has no more tiles than others, fetches
 * the labels' logits before it waits for them. */
ALWAYS_INLINE void leave_group(const cuda_row *job, const row_group *group, const row *rows, const waiting *waiting) {
    const place_in_block at = here_in_block();
    const int tiles = (int)job->tiles;
    if (at.warp == at.warps - 1 && at.thread < group->count)
        leave_label_logit(job, &rows[at.thread]);
    __syncthreads();
#pragma unroll 1
    for (int k = (int)threadIdx.x; k < group->count * tiles; k += (int)blockDim.x)
        leave_numbers(job, &rows[k / tiles], *waiting, k, k % tiles);
}

/* How many rows take part, for the launch that adds up the terms. By the first warp of each block. */
ALWAYS_INLINE void count_group(const cuda_row *job, const row_group *group, const row *rows) {
    const int thread = (int)threadIdx.x;
    const unsigned part =
        __ballot_sync(~0u, thread < group->count && rows[thread < group->count ? thread : 0].part != ROW_IGNORED);
    if (thread == 0)
        leave_count(job, (unsigned)__popc(part));
}

/* What a row's gradient is made of. */
typedef struct joined_row {
    row_factors factors;
    double exponent;
    bool good;
} joined_row;

#if !defined(ONEPASS_REAL_F64)
/* ------------------------------------------------------------------ forward -- */

/* Places for the sums of all tiles of a group, behind what is prefetched. */
ALWAYS_INLINE waiting waiting_of_group(const cuda_row *job, int warps) {
    const int rows = job->long_group > job->group ? job->long_group : job->group, tiles = rows * (int)job->tiles;
    double *others = (double *)room_of_warp(job, warps);
    const waiting waiting = {(real *)(others + 4 * tiles), others, others + tiles, others + 2 * tiles,
                             others + 3 * tiles};
    return waiting;
}

/* Values alone, or, where classes are shared out, the sums of tiles. Tiles of all rows of a group are taken one after
 * the other, whatever their row. */
template <typename loss, weighing weighs, bool leaves_sums> ALWAYS_INLINE void run_forward(const cuda_row *job) {
    __shared__ row rows[CUDA_WEIGHED_GROUP];
    __shared__ row_sum sums_of_rows[CUDA_WEIGHED_GROUP];
    static_assert(sizeof rows + sizeof sums_of_rows <= CUDA_WEIGHED_OWN, "shared memory");
    const place_in_block at = here_in_block();
    const int tiles = (int)job->tiles, classes = (int)job->classes;
    const waiting waiting = waiting_of_group(job, at.warps);
    char *room = room_of_warp(job, at.warp);
    const row_group group = describe_group<loss::KIND>(job, rows);
    tile_walk next = {0, at.warp};
    skip_rows(rows, group.count, tiles, at.warps, &next);
    if (next.row < group.count)
        prefetch_tile<loss::KIND, false>(job, &rows[next.row], next.tile, room);
#pragma unroll 1
    while (next.row < group.count) {
        const tile tile = dense_tile_at<ROW_VECTORS>(next.tile, classes, 0, at.thread);
        const int64_t label = rows[next.row].label, target = rows[next.row].target;
        const int place = next.row * tiles + next.tile;
        own_numbers x, u;
        tile_sums sums;
        next.tile += at.warps;
        skip_rows(rows, group.count, tiles, at.warps, &next);
        wait_for_sent();
        const own_range range = unpack_logits<false>(job, &tile, room, x);
        if (weighs == WEIGHS_EACH)
            unpack_probabilities<loss::KIND>(job, target, &tile, room, u);
        if (next.row < group.count)
            prefetch_tile<loss::KIND, false>(job, &rows[next.row], next.tile, room);
        if (weighs == WEIGHS_EACH)
            make_weights<loss::KIND, ROW_VECTORS>(job, &tile, u);
        sum_tile<loss::KIND, true>(job, label, &tile, range, weighs, x, u, &sums);
        leave_tile<loss::KIND>(&waiting, place, at.thread, weighs != WEIGHS_NOTHING, &sums);
    }
    if (leaves_sums) {
        leave_group(job, &group, rows, &waiting);
        return;
    }
    __syncthreads();
#pragma unroll 1
    for (int first = at.warp * ORDER_WARP; first < group.count; first += at.warps * ORDER_WARP)
        finish_group_apart<loss, weighs>(job, group, first, rows, waiting, sums_of_rows);
    if (at.warp == 0 && job->counts) /* of labels, whose groups are no larger than a warp */
        count_group(job, &group, rows);
}

/* The same of labels, which is what matters most: the sums of tiles are made some together, and little is
 * asked for a tile that is known of its row. */
template <typename loss, row_access access, bool leaves_sums, bool by_one_shift = false>
ALWAYS_INLINE void run_values(const cuda_row *job) {
    WAITING_TILES(CUDA_MOST_ROW_TILES, false);
    __shared__ __align__(16) real lanes[CUDA_VALUES_WARPS][ORDER_TOGETHER * ORDER_PITCH];
    __shared__ row rows[CUDA_MOST_GROUP];
    __shared__ row_sum sums_of_rows[CUDA_MOST_GROUP];
    const place_in_block at = here_in_block();
    const int tiles = (int)job->tiles, classes = (int)job->classes;
    int i = at.warp / tiles, t = at.warp % tiles;
    lane_room room = {lanes[at.warp], 0};
    const row_group group = describe_group<loss::KIND>(job, rows);
#pragma unroll 1
    while (i < group.count) {
        const int64_t input = rows[i].input;
        const int label = (int)rows[i].label, part = rows[i].part, ahead = row_ahead<access>(job, input);
#pragma unroll 1
        for (; t < tiles; t += at.warps) {
            if (part != ROW_COUNTS)
                continue;
            const uint16_t *row = (const uint16_t *)job->data[CUDA_ROW_INPUT] + input;
            if (by_one_shift)
                t = sum_by_one_shift(job, &waiting, row, label, t, at.warps, at.thread, i * tiles, &room);
            if (by_one_shift && t >= tiles)
                break;
            const tile tile = dense_tile_at<access>(t, classes, ahead, at.thread);
            own_numbers x;
            real lane[ORDER_OWN_LANES];
            const own_range range =
                by_one_shift ? read_bf16(&tile, row + t * ORDER_TILE, x) : gather_logits<access>(job, input, &tile, x);
            const real largest =
                sum_lanes_of_tile<access == ROW_VECTORS>(job, label - t * ORDER_TILE, &tile, range, x, lane);
            leave_lanes(&waiting, i * tiles + t, at.thread, largest, lane, &room);
        }
        for (; t >= tiles; t -= tiles)
            i++;
    }
    if (room.tiles)
        add_up_room(&waiting, at.thread, &room);
    if (leaves_sums) {
        leave_group(job, &group, rows, &waiting);
        return;
    }
    __syncthreads();
    if (at.warp != 0)
        return;
    finish_group<loss, WEIGHS_NOTHING>(job, &group, 0, rows, &waiting, sums_of_rows);
    if (job->counts)
        count_group(job, &group, rows);
}

/* ----------------------------------------------------- value and gradient -- */

/* The next row that takes part, of those that a warp has a tile of. */
template <row_kind kind, bool single>
ALWAYS_INLINE void prefetch_row(const cuda_row *job, const row *rows, const row_group *group, int i,
                                const place_in_block *at, char *room) {
    const int step = single ? at->warps : 1;
#pragma unroll 1
    while (i < group->count && rows[i].part != ROW_COUNTS)
        i += step;
    if (i < group->count)
        prefetch_tile<kind, single>(job, &rows[i], single ? 0 : at->warp, room);
}

/* A warp has a tile of each row, whose exponentials it keeps until the row's sum is known. All warps join the tiles for
 * themselves, which saves a barrier; the value is left for later. Of rows that are single tiles each warp has its own;
 * a barrier before each keeps warps where the others' instructions are at hand. */
template <typename loss, weighing weighs, row_access access, int most_warps, bool single>
ALWAYS_INLINE void run_both(const cuda_row *job) {
    constexpr bool prefetches = access == ROW_VECTORS && most_warps != CUDA_WIDE_WARPS;
    WAITING_TILES(2 * most_warps, weighs != WEIGHS_NOTHING);
    __shared__ row rows[CUDA_MOST_GROUP];
    __shared__ real label_logit[CUDA_MOST_GROUP];
    __shared__ row_sum sums_of_rows[CUDA_MOST_GROUP];
    if (is_done_before(job))
        return;
    const place_in_block at = here_in_block();
    const row_group group = describe_group<loss::KIND>(job, rows);
    tile tile = row_tile_at(single ? 0 : at.warp, job->classes, at.thread, NULL);
    const int warps = single ? 1 : at.warps, power = up_to_power_of_two(warps), step = single ? at.warps : 1;
    const double per_divisor = per_divisor_of(job);
    char *room = room_of_warp(job, at.warp);
    int turn = 0;
    if (prefetches)
        prefetch_row<loss::KIND, single>(job, rows, &group, single ? at.warp : 0, &at, room);
    if (loss::KIND == ROW_LABEL && (int)threadIdx.x < group.count) /* of all rows at once, long before they are used */
        label_logit[threadIdx.x] = row_logit(job, &rows[threadIdx.x]);
#pragma unroll 1
    for (int first = 0; first < group.count; first += step) {
        const int i = single ? first + at.warp : first, slot = turn + (single ? at.warp : 0);
        if (single)
            __syncthreads();
        if (i >= group.count)
            continue;
        const row *row = &rows[i];
        tile.ahead = row_ahead<access>(job, row->input);
        if (row->part != ROW_COUNTS) {
            fill_gradient<access>(job, row->gradient, 0, &tile, row->part == ROW_BAD ? REAL_NAN : 0);
            continue;
        }
        own_numbers x, u;
        tile_sums sums;
        row_sum joined;
        own_range range;
        if (prefetches) {
            wait_for_sent();
            range = unpack_logits<single>(job, &tile, room, x);
            if (weighs == WEIGHS_EACH)
                unpack_probabilities<loss::KIND>(job, row->target, &tile, room, u);
            prefetch_row<loss::KIND, single>(job, rows, &group, i + step, &at, room);
        } else {
            range = gather_logits<access, false>(job, row->input, &tile, x);
            if (access == ROW_VECTORS && i + 1 < group.count)
                prefetch_outside(job, &rows[i + 1], &tile);
        }
        if (weighs == WEIGHS_EACH)
            make_weights<loss::KIND, access>(job, &tile, u);
        sum_tile<loss::KIND, prefetches>(job, row->label, &tile, range, weighs, x, u, &sums);
        leave_tile<loss::KIND>(&waiting, turn + at.warp, at.thread, weighs != WEIGHS_NOTHING, &sums);
        if (single)
            __syncwarp();
        else
            __syncthreads();
        join_few_tiles<loss::KIND>(job, &waiting, slot, warps, power, at.thread, weighs != WEIGHS_NOTHING, row,
                                   loss::KIND == ROW_LABEL ? label_logit[i] : -REAL_INFINITY, &joined);
        turn ^= most_warps;
        if (single ? at.thread == 0 : threadIdx.x == 0)
            sums_of_rows[i] = joined;
        if (joined.good) {
            const row_factors factors = factors_of_row<loss>(job, per_divisor, row, &joined);
            const real f = row_tile_factor(&factors, shift_of(job, sums.largest).exponent, joined.exponent);
            write_gradient<access>(job, row, &tile, &factors, f, weighs, x, u);
        } else {
            fill_gradient<access>(job, row->gradient, 0, &tile, REAL_NAN);
        }
    }
    if (single)
        __syncthreads();
    if (at.warp != 0)
        return;
    __syncwarp();
    if (at.thread < group.count)
        finish_row<loss>(job, &rows[at.thread], group.first + at.thread, &sums_of_rows[at.thread]);
}

/* ----------------------------------------------------------------- backward -- */

/* Gradients from the rows' states: no tile needs another. Of a torn tile the largest logit is told. */
template <typename loss, weighing weighs, row_access access, bool is_torn>
ALWAYS_INLINE void run_backward(const cuda_row *job) {
    __shared__ row rows[CUDA_MOST_GROUP];
    __shared__ joined_row told[CUDA_MOST_GROUP];
    if (is_done_before(job))
        return;
    const place_in_block at = here_in_block();
    const int tiles = (int)job->tiles, thread = (int)threadIdx.x;
    int i = at.warp / tiles, t = at.warp % tiles;
    const row_group group = describe_group<loss::KIND>(job, rows);
    if (thread < group.count && rows[thread].part == ROW_COUNTS) {
        row_sum unstated = {};
        unstated.label_logit = row_logit(job, &rows[thread]);
        row_facts facts = facts_of(job, &rows[thread], &unstated);
        const bool good = read_state(job, group.first + thread, &facts);
        const row_factors factors = slopes_of_row<loss>(job, per_divisor_of(job), &rows[thread], &facts);
        told[thread] = (joined_row){factors, facts.exponent, good};
    }
    __syncthreads();
#pragma unroll 1
    while (i < group.count) {
        const row *row = &rows[i];
        const tile tile = dense_tile_at<access>(t, (int)job->classes, row_ahead<access>(job, row->input), at.thread);
        if (row->part == ROW_COUNTS && told[i].good) {
            own_numbers x, u;
            const own_range range = gather_logits<access>(job, row->input, &tile, x);
            if (weighs == WEIGHS_EACH)
                gather_weights<loss::KIND, access>(job, row->target, &tile, u);
            const softmax_shift shift =
                shift_of(job, is_torn ? largest_of_tile(job, row, &tile, 0) : warp_largest_at_once(range.largest));
            const row_factors factors = told[i].factors;
            const real f = row_tile_factor(&factors, shift.exponent, told[i].exponent);
            const softmax softmax = softmax_of_job(job);
            exponentiate(&softmax, &shift, &tile, is_calm_tile(&softmax, &shift, range.smallest), x);
            write_gradient<access>(job, row, &tile, &factors, f, weighs, x, u);
        } else {
            fill_gradient<access>(job, row->gradient, 0, &tile, row->part == ROW_IGNORED ? 0 : REAL_NAN);
        }
        for (t += at.warps; t >= tiles; t -= tiles)
            i++;
    }
}

#endif

#endif
