/*
 * Value and gradient of rows as in simple.h, of up to 32 tiles.
 */
#ifndef ONEPASS_CUDA_ROWS_SIMPLE_BOTH_H
#define ONEPASS_CUDA_ROWS_SIMPLE_BOTH_H

#include "cuda/rows/simple.h"

#if !defined(ONEPASS_REAL_F64)

/* The warp's tile of a row that is next: on its way to shared memory, or, where a block has too many warps for that,
 * and of 16-bit numbers alone, as prefetch_outside() has it, to the cache that all multiprocessors share. */
template <bool staged, typename number>
ALWAYS_INLINE void send_simple(const cuda_row *job, int64_t row, int t, int thread, number *room) {
    const tile tile = dense_tile_at<ROW_VECTORS>(t, (int)job->classes, 0, thread);
    const number *from = row_at<const number>(job, CUDA_ROW_INPUT, row) + t * ORDER_TILE;
    if (staged) {
        send_lines<true>(&tile, from, room);
        return;
    }
#if defined(__CUDACC__)
    const int own = thread * (ORDER_TILE / ORDER_WARP);
    if (sizeof(number) == sizeof(uint16_t) && own < tile.count)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(from + own));
#endif
}

/* The same when it is its turn. */
template <bool staged, typename number>
ALWAYS_INLINE own_range receive_simple(const cuda_row *job, int64_t row, const tile *tile, const number *room,
                                       own_numbers x) {
    if (!staged)
        return read_simple(tile, row_at<const number>(job, CUDA_ROW_INPUT, row) + tile->index * ORDER_TILE, x);
    typename four_of<number>::type read[ORDER_LINES];
    wait_for_sent();
    unpack_lines<true>(tile, room, read);
    return unpack_numbers(tile, read, x);
}

template <bool calm> ALWAYS_INLINE void write_four(const tile *tile, real *to, int line, const real *x) {
    *(vector *)own_place(tile, to, line, 0) = pack_vector(x);
}

template <bool calm> ALWAYS_INLINE void write_four(const tile *tile, uint16_t *to, int line, const real *x) {
    *(uint2 *)own_place(tile, to, line, 0) = four_bf16(calm, x);
}

template <bool calm, typename number>
ALWAYS_INLINE void write_lines(const tile *tile, number *to, const own_numbers x) {
    if (tile->count == ORDER_TILE) {
        EACH_LINE write_four<calm>(tile, to, line, x[line]);
    } else if (ends_in_last_line(tile)) {
        EACH_LINE if (line < ORDER_LINES - 1 || is_in(tile, line, 0)) write_four<calm>(tile, to, line, x[line]);
    } else {
        EACH_LINE if (is_in(tile, line, 0)) write_four<calm>(tile, to, line, x[line]);
    }
}

/* One branch for a tile: if each number asks, compilers round all of them to 16 bits in both ways and choose, which was
 * a sixth of the instructions. */
template <typename number>
ALWAYS_INLINE void write_simple(const tile *tile, number *to, bool calm, const own_numbers x) {
    if (calm)
        write_lines<true>(tile, to, x);
    else
        write_lines<false>(tile, to, x);
}

template <typename number> ALWAYS_INLINE void fill_simple(const tile *tile, number *to, real otherwise) {
    own_numbers x;
    EACH_NUMBER x[line][own] = otherwise;
    write_simple(tile, to, false, x);
}

/* What all rows have in common. */
typedef struct simple_factor {
    double common; /* what their slopes are multiplied by */
    real upstream;
} simple_factor;

ALWAYS_INLINE simple_factor simple_factor_of(const cuda_row *job) {
    const simple_factor factor = {per_divisor_of(job) * job->softmax.scale.per_temperature, upstream_of_all(job)};
    return factor;
}

/* As factors_of_row(). */
template <typename loss>
ALWAYS_INLINE row_factors simple_factors_of(const cuda_row *job, double common, const row_sum *sum) {
    const double no_parameters[ONEPASS_MAX_PARAMETERS] = {};
    row known = {};
    known.class_weight = 1;
    const row_facts facts = facts_of(job, &known, sum);
    const row_sums sums = row_sums_of_state(&job->softmax.scale, &facts, 0);
    row_slopes slopes;
    if (job->has_parameters)
        loss::row(&sums, job->parameter, &slopes);
    else /* zeros that the compiler knows of */
        loss::row(&sums, no_parameters, &slopes);
    return row_factors_of(&facts.row, &slopes, common);
}

/* Sums of tiles, of this row and the one before or after, and what rows come to. */
template <int warps, int teams> struct simple_sums {
    double tile_others[2][warps];
    double others[teams][ORDER_WARP], own[teams][ORDER_WARP];
    real tile_largest[2][warps];
    real largest[teams][ORDER_WARP];
};

/* A row that is joined, and what exponentials of a tile, the warp's or the lane's own, are multiplied by to be of the
 * row's exponent. */
typedef struct simple_join {
    row_sum sum;
    real largest;
    double scale;
} simple_join;

/* The tiles' sums, a lane each, over and over: as join_few_tiles(). Each lane knows the power of two of its tile, so
 * that nobody computes those of the label's tile, or of the warp's, again: the scale is the lane's own. */
ALWAYS_INLINE simple_join join_simple(const cuda_row *job, const real *tile_largest, const double *tile_others,
                                      int power, const place_in_block *at, int label, real label_logit) {
    const int t = at->thread & (power - 1);
    const bool is_tile = t < at->warps;
    const real own_largest = is_tile ? tile_largest[t] : -REAL_INFINITY;
    const softmax softmax = softmax_of_job(job);
    simple_join joined;
    joined.largest = own_largest;
    for (int distance = 1; distance < power; distance *= 2)
        joined.largest = larger_or_nan(joined.largest, __shfl_xor_sync(~0u, joined.largest, distance));
    const softmax_shift whole = usual_shift_of(job, joined.largest), shift = usual_shift_of(job, own_largest);
    const double scale = wide_exp2(shift.exponent - whole.exponent);
    const double own = (double)softmax_exponential(&softmax, &shift, label_logit - shift.anchor) * scale;
    joined.sum.largest = whole.largest;
    joined.sum.label_logit = label_logit;
    joined.sum.exponent = whole.exponent;
    joined.sum.good = whole.exponent - whole.exponent == 0;
    joined.sum.weights = joined.sum.weighted = 0;
    joined.sum.others = order_neighbours(is_tile ? tile_others[t] * scale : ORDER_NOTHING, power);
    joined.sum.own = __shfl_sync(~0u, own, label / ORDER_TILE);
    joined.scale = scale;
    return joined;
}

/* The same of a row that is one tile. */
ALWAYS_INLINE simple_join join_single(const cuda_row *job, real largest, const softmax_shift *shift, double others,
                                      real label_logit) {
    const softmax softmax = softmax_of_job(job);
    simple_join joined;
    joined.largest = largest;
    joined.sum.largest = shift->largest;
    joined.sum.label_logit = label_logit;
    joined.sum.exponent = shift->exponent;
    joined.sum.good = shift->exponent - shift->exponent == 0;
    joined.sum.weights = joined.sum.weighted = 0;
    joined.sum.others = others;
    joined.sum.own = (double)softmax_exponential(&softmax, shift, label_logit - shift->anchor);
    joined.scale = 1;
    return joined;
}

/* The label's own slope stands by itself: whoever has written its place does so again. */
template <typename number>
ALWAYS_INLINE void put_simple_label(const simple_factor *factor, real slope, int label_place, const tile *tile,
                                    number *to) {
    if ((unsigned)label_place < ORDER_TILE && label_place % ORDER_LANES / ORDER_OWN_LANES == tile->thread) {
        const real own = canonical(slope);
        store_number(to + label_place, factor->upstream != 1 ? canonical(own * factor->upstream) : own);
    }
}

template <typename loss, typename number>
ALWAYS_INLINE void write_simple_gradient(const cuda_row *job, const simple_factor *factor, const simple_join *joined,
                                         int label_place, const tile *tile, number *to, own_numbers x) {
    if (!joined->sum.good) {
        fill_simple(tile, to, REAL_NAN);
        return;
    }
    const row_factors factors = simple_factors_of<loss>(job, factor->common, &joined->sum);
    const real f = (real)(factors.of_exponentials * joined->scale);
    const bool calm = is_finite(f) && is_finite(factor->upstream);
    EACH_NUMBER x[line][own] = x[line][own] * f;
    scale_gradient(factor->upstream, calm, x);
    write_simple(tile, to, calm, x);
    put_simple_label(factor, factors.own, label_place, tile, to);
}

/* Rows that take no part, or whose label is no class. */
template <typename number>
ALWAYS_INLINE void fill_other_rows(const cuda_row *job, const row_team *team, const lane_rows *rows, int t,
                                   int thread) {
    unsigned left = (rows->count < ORDER_WARP ? (1u << rows->count) - 1 : ~0u) & ~rows->counting;
#pragma unroll 1
    for (; left; left &= left - 1) {
        const tile tile = dense_tile_at<ROW_VECTORS>(t, (int)job->classes, 0, thread);
        const int lane = first_lane(left), label = __shfl_sync(~0u, rows->label, lane);
        fill_simple(&tile, row_at<number>(job, CUDA_ROW_GRADIENT, row_of_lane(team, rows, lane)) + t * ORDER_TILE,
                    label == LABEL_IGNORED ? 0 : REAL_NAN);
    }
}

/* A row whose turn it is. */
typedef struct row_turn {
    int lane; /* that will finish it */
    int label;
    real label_logit;
    int place; /* where sums of its tiles wait */
} row_turn;

/* Its tiles are joined, for which a block has a barrier, and its gradient is written. */
template <typename loss, typename number, bool single, typename sums>
ALWAYS_INLINE void run_simple_row(const cuda_row *job, const simple_factor *factor, const place_in_block *at, int power,
                                  const row_team *team, const lane_rows *rows, const row_turn *now, own_range range,
                                  const tile *tile, own_numbers x, sums *shared) {
    const int label_place = now->label - (int)tile->index * ORDER_TILE, of_team = single ? at->warp : 0;
    const real largest = warp_largest_or_nan(range.largest);
    real lane_sums[ORDER_OWN_LANES];
    const softmax_shift shift = sum_simple_lanes(job, label_place, tile, largest, range.smallest, x, lane_sums);
    const double others = order_lanes(at->thread, lane_sums);
    simple_join joined;
    if (single) {
        joined = join_single(job, largest, &shift, others, now->label_logit);
    } else {
        if (at->thread == 0) {
            shared->tile_largest[now->place][at->warp] = largest;
            shared->tile_others[now->place][at->warp] = others;
        }
        __syncthreads();
        joined = join_simple(job, shared->tile_largest[now->place], shared->tile_others[now->place], power, at,
                             now->label, now->label_logit);
        joined.scale = __shfl_sync(~0u, joined.scale, at->warp);
    }
    if (at->thread == now->lane && (single || at->warp == 0)) {
        shared->largest[of_team][now->lane] = joined.largest;
        shared->others[of_team][now->lane] = joined.sum.others;
        shared->own[of_team][now->lane] = joined.sum.own;
    }
    write_simple_gradient<loss>(
        job, factor, &joined, label_place, tile,
        row_at<number>(job, CUDA_ROW_GRADIENT, row_of_lane(team, rows, now->lane)) + tile->index * ORDER_TILE, x);
}

/* The lane's own row. */
template <typename loss, typename sums>
ALWAYS_INLINE void finish_joined(const cuda_row *job, int64_t index, int label, real label_logit, int of_team, int lane,
                                 const sums *shared) {
    const row row = simple_row(label);
    row_sum sum = {};
    if (label >= 0) {
        begin_join(job, shared->largest[of_team][lane], label_logit, &sum);
        sum.others = shared->others[of_team][lane];
        sum.own = shared->own[of_team][lane];
    }
    finish_row_here<loss>(job, &row, index, &sum);
}

template <typename loss, typename number, bool single, bool staged, typename sums>
ALWAYS_INLINE void run_simple_rows(const cuda_row *job, sums *shared) {
    const place_in_block at = here_in_block();
    const int t = single ? 0 : at.warp, power = up_to_power_of_two(at.warps);
    const row_team team = single ? team_of(job, (int)blockIdx.x * at.warps + at.warp, (int)gridDim.x * at.warps)
                                 : team_of(job, (int)blockIdx.x, (int)gridDim.x);
    const simple_factor factor = simple_factor_of(job);
    number *room = staged ? (number *)room_of_warp(job, at.warp) : NULL;
    int place = 0;
#pragma unroll 1
    for (int done = 0; done < team.rows; done += team.at_a_time) {
        const lane_rows rows = describe_lanes(job, &team, done, at.thread);
        const int64_t index = row_of_lane(&team, &rows, at.thread);
        const real logits = rows.label >= 0 ? as_real(row_at<const number>(job, CUDA_ROW_INPUT, index)[rows.label]) : 0;
        unsigned left = rows.counting;
        if (left)
            send_simple<staged>(job, row_of_lane(&team, &rows, first_lane(left)), t, at.thread, room);
        fill_other_rows<number>(job, &team, &rows, t, at.thread);
#pragma unroll 1
        while (left) {
            const tile tile = dense_tile_at<ROW_VECTORS>(t, (int)job->classes, 0, at.thread);
            const int lane = first_lane(left), label = __shfl_sync(~0u, rows.label, lane);
            own_numbers x;
            const own_range range = receive_simple<staged>(job, row_of_lane(&team, &rows, lane), &tile, room, x);
            left &= left - 1;
            if (left)
                send_simple<staged>(job, row_of_lane(&team, &rows, first_lane(left)), t, at.thread, room);
            const row_turn now = {lane, label, __shfl_sync(~0u, logits, lane), place};
            run_simple_row<loss, number, single>(job, &factor, &at, power, &team, &rows, &now, range, &tile, x, shared);
            place ^= 1;
        }
        if ((single || at.warp == 0) && at.thread < rows.count)
            finish_joined<loss>(job, index, rows.label, logits, single ? at.warp : 0, at.thread, shared);
    }
}

template <typename loss, int most_warps, bool single, bool staged>
ALWAYS_INLINE void run_simple_both(const cuda_row *job) {
    __shared__ simple_sums<single ? 1 : most_warps, single ? most_warps : 1> shared;
    if (is_done_before(job))
        return;
    if (job->dtype[CUDA_ROW_INPUT] == ONEPASS_F32)
        run_simple_rows<loss, real, single, staged>(job, &shared);
    else
        run_simple_rows<loss, uint16_t, single, staged>(job, &shared);
}

#endif

#endif
