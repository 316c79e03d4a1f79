/*
 * Rows that are moved as vectors, of floats or bf16, of which there is nothing to know but labels. Of those that are
 * single tiles a warp has some by itself; else a warp has a tile of each row of its block, of up to 32 tiles, so that
 * value and gradient come of one read. Blocks stay for all rows: a warp's lanes read the labels of 32 rows at a time,
 * and finish as many, and nobody waits for others to do so. Without what is asked about tensors of every kind there are
 * a quarter to a third of the instructions less than in dense.h.
 */
#ifndef ONEPASS_CUDA_ROWS_SIMPLE_H
#define ONEPASS_CUDA_ROWS_SIMPLE_H

#include "cuda/rows/dense.h"

#if !defined(ONEPASS_REAL_F64)

/* ---------------------------------------------------------------- some rows -- */

/* Who shares rows, a warp or a block: it has every so many-th, so that at any time all work on neighbours. */
typedef struct row_team {
    int index, step;
    int rows;      /* that it has */
    int at_a_time; /* up to 32 of them, as many each time */
} row_team;

ALWAYS_INLINE row_team team_of(const cuda_row *job, int index, int teams) {
    row_team team = {index, teams, 0, 1};
    if (index < job->rows) {
        team.rows = (int)((job->rows - index + teams - 1) / teams);
        const int times = (team.rows + ORDER_WARP - 1) / ORDER_WARP;
        team.at_a_time = (team.rows + times - 1) / times;
    }
    return team;
}

/* In the place of a label. */
#define LABEL_IGNORED (-1)
#define LABEL_BAD     (-2)

/* Some rows of a team, a lane each. */
typedef struct lane_rows {
    int64_t first; /* of the first lane; the others follow, a team's step apart */
    int count;
    int label;         /* of the lane's own */
    unsigned counting; /* a bit for each row that takes part */
} lane_rows;

ALWAYS_INLINE int64_t row_of_lane(const row_team *team, const lane_rows *rows, int lane) {
    return rows->first + (int64_t)lane * team->step;
}

ALWAYS_INLINE lane_rows describe_lanes(const cuda_row *job, const row_team *team, int done, int thread) {
    const int left = team->rows - done;
    lane_rows rows = {team->index + (int64_t)done * team->step, 0, LABEL_IGNORED, 0};
    rows.count = left < team->at_a_time ? left : team->at_a_time;
    if (thread < rows.count) {
        const int64_t label =
            load_index(job->data[CUDA_ROW_TARGET], job->dtype[CUDA_ROW_TARGET], row_of_lane(team, &rows, thread));
        const int part = part_of_label(job, label);
        rows.label = part == ROW_COUNTS ? (int)label : part == ROW_BAD ? LABEL_BAD : LABEL_IGNORED;
    }
    rows.counting = __ballot_sync(~0u, rows.label >= 0);
    return rows;
}

ALWAYS_INLINE int first_lane(unsigned lanes) {
    return __ffs((int)lanes) - 1;
}

/* What dense.h knows of such a row. */
ALWAYS_INLINE row simple_row(int label) {
    row row = {};
    row.label = label;
    row.part = label >= 0 ? ROW_COUNTS : label == LABEL_BAD ? ROW_BAD : ROW_IGNORED;
    row.weight = row.class_weight = 1;
    row.upstream = 1;
    return row;
}

/* ------------------------------------------------------------------- numbers -- */

/* They are floats, or bf16. */
ALWAYS_INLINE real as_real(real x) {
    return x;
}

ALWAYS_INLINE real as_real(uint16_t bf16) {
    return f32_of((uint32_t)bf16 << 16);
}

ALWAYS_INLINE void store_number(real *to, real x) {
    *to = x;
}

ALWAYS_INLINE void store_number(uint16_t *to, real x) {
    *to = (uint16_t)bf16_of_f32(x);
}

template <typename number> ALWAYS_INLINE number *row_at(const cuda_row *job, int which, int64_t row) {
    return (number *)job->data[which] + row * job->view[which].stride[0];
}

ALWAYS_INLINE own_range unpack_numbers(const tile *tile, const vector *read, own_numbers x) {
    EACH_LINE unpack_vector(read[line], x[line]);
    return range_of(tile, x);
}

ALWAYS_INLINE own_range unpack_numbers(const tile *tile, const uint2 *read, own_numbers x) {
    unpack_rows(false, read, x);
#if ROW_KEEPS_NAN
    return range_of_pairs(read);
#else
    return range_of(tile, x);
#endif
}

/* Four numbers in registers. */
template <typename number> struct four_of { typedef vector type; };
template <> struct four_of<uint16_t> { typedef uint2 type; };

/* --------------------------------------------------------------------- tiles -- */

template <typename number> ALWAYS_INLINE own_range read_simple(const tile *tile, const number *from, own_numbers x) {
    typename four_of<number>::type read[ORDER_LINES];
    read_lines(tile, from, read);
    return unpack_numbers(tile, read, x);
}

/* As shift_of(), with the usual case first. */
ALWAYS_INLINE softmax_shift usual_shift_of(const cuda_row *job, real largest) {
    const softmax softmax = softmax_of_job(job);
    const real product = (largest + 0) * softmax.factor;
    softmax_shift shift;
    if (!(magnitude(product) < SOFTMAX_LARGEST))
        return shift_of(job, largest);
    shift.anchor = 0;
    shift.largest = largest + 0;
    shift.n = softmax_ceiling(product);
    shift.exponent = (double)shift.n;
    shift.lowest = (shift.n - SOFTMAX_RANGE) * softmax.per_factor;
    return shift;
}

/* As sum_lanes_of_tile(). */
ALWAYS_INLINE softmax_shift sum_simple_lanes(const cuda_row *job, int label_place, const tile *tile, real largest,
                                             real smallest, own_numbers x, real *lane) {
    const softmax_shift shift = usual_shift_of(job, largest);
    const softmax softmax = softmax_of_job(job);
    exponentiate(&softmax, &shift, tile, is_calm_tile(&softmax, &shift, smallest), x);
    drop_beyond(tile, x);
    leave_label_out(tile, label_place, x);
    sum_lanes(x, lane);
    return shift;
}

/* -------------------------------------------------------------------- values -- */

/* What a warp has in shared memory, with the sums of a tile for each lane. */
typedef struct simple_warp {
    alignas(16) real lanes[ORDER_TOGETHER * ORDER_PITCH]; /* moved as vectors */
    double others[ORDER_WARP];
    real largest[ORDER_WARP];
    unsigned rows; /* that take part */
} simple_warp;

/* Rows that are single tiles. They are read when they are needed: while a warp waits, others compute. On an H200 copies
 * to shared memory ahead of time were slower by a tenth, and the engine for bulk copies by a quarter. */
template <typename number>
ALWAYS_INLINE void sum_simple_rows(const cuda_row *job, const row_team *team, const lane_rows *rows, int thread,
                                   simple_warp *own) {
    const waiting waiting = {own->largest, own->others, NULL, NULL, NULL};
    lane_room lanes = {own->lanes, 0, 0};
    unsigned left = rows->counting;
#pragma unroll 1
    while (left) {
        const tile tile = dense_tile_at<ROW_VECTORS>(0, (int)job->classes, 0, thread);
        const int lane = first_lane(left), label = __shfl_sync(~0u, rows->label, lane);
        own_numbers x;
        real lane_sums[ORDER_OWN_LANES];
        const own_range range =
            read_simple(&tile, row_at<const number>(job, CUDA_ROW_INPUT, row_of_lane(team, rows, lane)), x);
        const real largest = warp_largest_or_nan(range.largest);
        sum_simple_lanes(job, label, &tile, largest, range.smallest, x, lane_sums);
        leave_lanes(&waiting, lane, thread, largest, lane_sums, &lanes);
        left &= left - 1;
    }
    if (lanes.tiles)
        add_up_room(&waiting, thread, &lanes);
    __syncwarp();
}

/* Of the lane's own row. */
template <typename loss, typename number>
ALWAYS_INLINE void finish_simple(const cuda_row *job, int64_t index, int label, real largest, double others) {
    const row row = simple_row(label);
    row_sum sum = {};
    if (label >= 0) {
        const real label_logit = as_real(row_at<const number>(job, CUDA_ROW_INPUT, index)[label]);
        begin_join(job, largest, label_logit, &sum);
        sum.others = others;
        sum.own = own_part(job, largest, label_logit, sum.exponent);
    }
    finish_row_here<loss>(job, &row, index, &sum);
}

template <typename loss, typename number> ALWAYS_INLINE void run_simple_values(const cuda_row *job, simple_warp *own) {
    const place_in_block at = here_in_block();
    const row_team team = team_of(job, (int)blockIdx.x * at.warps + at.warp, (int)gridDim.x * at.warps);
    if (at.thread == 0)
        own->rows = 0;
#pragma unroll 1
    for (int done = 0; done < team.rows; done += team.at_a_time) {
        const lane_rows rows = describe_lanes(job, &team, done, at.thread);
        const unsigned taking_part = __ballot_sync(~0u, rows.label != LABEL_IGNORED);
        if (at.thread == 0)
            own->rows += (unsigned)__popc(taking_part);
        sum_simple_rows<number>(job, &team, &rows, at.thread, own);
        if (at.thread < rows.count)
            finish_simple<loss, number>(job, row_of_lane(&team, &rows, at.thread), rows.label, own->largest[at.thread],
                                        own->others[at.thread]);
        __syncwarp();
    }
}

template <typename loss> ALWAYS_INLINE void run_simple_forward(const cuda_row *job) {
    __shared__ simple_warp shared[CUDA_VALUES_WARPS];
    const place_in_block at = here_in_block();
    if (job->dtype[CUDA_ROW_INPUT] == ONEPASS_F32)
        run_simple_values<loss, real>(job, &shared[at.warp]);
    else
        run_simple_values<loss, uint16_t>(job, &shared[at.warp]);
    if (!job->counts)
        return;
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned rows = 0;
        for (int warp = 0; warp < at.warps; warp++)
            rows += shared[warp].rows;
        leave_count(job, rows);
    }
}

/* ------------------------------------------------------- value and gradient -- */

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

ALWAYS_INLINE void write_four(const tile *tile, real *to, int line, bool calm, const real *x) {
    (void)calm;
    *(vector *)own_place(tile, to, line, 0) = pack_vector(x);
}

ALWAYS_INLINE void write_four(const tile *tile, uint16_t *to, int line, bool calm, const real *x) {
    *(uint2 *)own_place(tile, to, line, 0) = four_bf16(calm, x);
}

template <typename number>
ALWAYS_INLINE void write_simple(const tile *tile, number *to, bool calm, const own_numbers x) {
    if (tile->count == ORDER_TILE) {
        EACH_LINE write_four(tile, to, line, calm, x[line]);
    } else if (ends_in_last_line(tile)) {
        EACH_LINE if (line < ORDER_LINES - 1 || is_in(tile, line, 0)) write_four(tile, to, line, calm, x[line]);
    } else {
        EACH_LINE if (is_in(tile, line, 0)) write_four(tile, to, line, calm, x[line]);
    }
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
    simple_factor factor = {per_divisor_of(job) * job->softmax.scale.per_temperature, 1};
    if (job->data[CUDA_ROW_UPSTREAM])
        factor.upstream = (real)load_scalar(job->data[CUDA_ROW_UPSTREAM], job->dtype[CUDA_ROW_UPSTREAM]);
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

/* A row that is joined, and what exponentials of the warp's tile are multiplied by to be of the row's exponent. */
typedef struct simple_join {
    row_sum sum;
    real largest;
    double scale;
} simple_join;

/* The tiles' sums, a lane each, over and over: as join_few_tiles(). Each lane knows the power of two of its tile, so
 * that nobody computes those of the label's tile, or of the warp's, again. */
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
    joined.scale = __shfl_sync(~0u, scale, at->warp);
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
    /* The label's own slope stands by itself: whoever has written its place does so again. */
    if ((unsigned)label_place < ORDER_TILE && label_place % ORDER_LANES / ORDER_OWN_LANES == tile->thread) {
        const real own = canonical(factors.own);
        store_number(to + label_place, factor->upstream != 1 ? canonical(own * factor->upstream) : own);
    }
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
