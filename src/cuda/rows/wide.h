/*
 * Value and gradient of rows of bf16 as in simple.h, of 17 to 32 tiles: each warp has a tile of a row, and all warps of
 * a multiprocessor are one block, so that nobody computes while they wait for each other. So they do not: a warp leaves
 * its exponentials in shared memory and goes on with the next row, whose logits have come there, too. When that is
 * summed, some warp, another one each time, has joined the tiles of the row before. It does so before it begins a tile
 * of its own, when its registers are free, and the others have but a factor to read. So the memory brings logits and
 * takes gradients all the time, and what is done once a row is done by one warp.
 *
 * A thread has no more than 64 registers, which are just enough for a tile, and shared memory leaves little of the
 * cache to those that do not fit: kept there, a few of them made it slower than simple_both.h. So what is known of rows
 * lies in shared memory, places are found out anew, and numbers become floats one line after the other.
 *
 * How far ahead a warp can be: it leaves what its tile of row k comes to when it has seen row k - 2 joined, and has
 * written its slopes; for that all warps have left what theirs came to, and so have seen row k - 4 joined.
 */
#ifndef ONEPASS_CUDA_ROWS_WIDE_H
#define ONEPASS_CUDA_ROWS_WIDE_H

#include "cuda/cluster.h"
#include "cuda/rows/simple_both.h"

#if !defined(ONEPASS_REAL_F64)

/* Rows whose sums have a place at the same time. */
#define WIDE_ROWS 2

/* What slopes are made of: the tiles' exponentials, and the label's own. */
typedef struct wide_slopes {
    real factor[CUDA_WIDE_WARPS];
    real own;
} wide_slopes;

/* The rows at hand, up to 32. */
typedef struct wide_rows {
    int done;          /* rows of the block before them */
    unsigned counting; /* a bit for each that takes part */
    unsigned number;   /* of rows before them that did */
    int label[ORDER_WARP];
    real label_logit[ORDER_WARP];
} wide_rows;

typedef struct wide_block {
    simple_sums<CUDA_WIDE_WARPS, 1> sums;
    wide_slopes slopes[WIDE_ROWS];
    cluster_barrier are_there[WIDE_ROWS], is_joined[WIDE_ROWS];
    wide_rows rows;
    real upstream;
} wide_block;

/* A warp's exponentials that wait for their row, and logits that are on their way. */
typedef struct wide_room {
    real kept[ORDER_TILE];
    uint16_t sent[ORDER_TILE];
} wide_room;

/* ------------------------------------------------------------ where a warp is -- */

/* Found out anew where it is needed. */
ALWAYS_INLINE place_in_block anew_in_block(void) {
    const int thread = anew((int)threadIdx.x);
    const place_in_block at = {thread % ORDER_WARP, thread / ORDER_WARP, (int)blockDim.x / ORDER_WARP};
    return at;
}

ALWAYS_INLINE tile wide_tile(const cuda_row *job) {
    const place_in_block at = anew_in_block();
    return dense_tile_at<ROW_VECTORS>(at.warp, (int)job->classes, 0, at.thread);
}

ALWAYS_INLINE wide_room *room_in_block(void) {
    extern __shared__ __align__(16) unsigned char shared_memory[];
    return (wide_room *)shared_memory + anew_in_block().warp;
}

/* As team_of() deals rows out to blocks. */
ALWAYS_INLINE int64_t index_of_row(const wide_rows *rows, int lane) {
    return (int64_t)blockIdx.x + (int64_t)(rows->done + lane) * gridDim.x;
}

/* The warp's tile of such a row. */
ALWAYS_INLINE uint16_t *tile_of_row(const cuda_row *job, int which, const wide_rows *rows, int lane) {
    return row_at<uint16_t>(job, which, index_of_row(rows, lane)) + anew_in_block().warp * ORDER_TILE;
}

/* The next row behind one that takes part itself; -1: none. */
ALWAYS_INLINE int row_behind(const wide_rows *rows, int lane) {
    return first_lane(rows->counting & ~((2u << lane) - 1));
}

/* How many there were before a row, in all that the block has. */
ALWAYS_INLINE unsigned number_of_row(const wide_rows *rows, int lane) {
    return rows->number + (unsigned)__popc(rows->counting & ((1u << lane) - 1));
}

/* -------------------------------------------------------------------- joining -- */

/* By one warp, out of line: what it needs would take registers of a tile. */
template <typename loss> ONCE_A_ROW void join_wide_row(const cuda_row *job, int lane, wide_block *block) {
    const place_in_block at = here_in_block();
    const unsigned number = number_of_row(&block->rows, lane);
    const simple_factor factor = simple_factor_of(job);
    simple_sums<CUDA_WIDE_WARPS, 1> *sums = &block->sums;
    wide_slopes *slopes = &block->slopes[number % WIDE_ROWS];
    wait_at_barrier(&block->are_there[number % WIDE_ROWS], number / WIDE_ROWS);
    const simple_join joined =
        join_simple(job, sums->tile_largest[number % WIDE_ROWS], sums->tile_others[number % WIDE_ROWS],
                    up_to_power_of_two(at.warps), &at, block->rows.label[lane], block->rows.label_logit[lane]);
    const row_factors factors = simple_factors_of<loss>(job, factor.common, &joined.sum);
    if (at.thread < at.warps)
        slopes->factor[at.thread] = joined.sum.good ? (real)(factors.of_exponentials * joined.scale) : REAL_NAN;
    if (at.thread == 0)
        slopes->own = joined.sum.good ? factors.own : REAL_NAN;
    if (at.thread == lane) {
        sums->largest[0][lane] = joined.largest;
        sums->others[0][lane] = joined.sum.others;
        sums->own[0][lane] = joined.sum.own;
    }
    __syncwarp();
    if (at.thread == 0)
        arrive(&block->is_joined[number % WIDE_ROWS]);
}

template <typename loss> ALWAYS_INLINE void join_in_turn(const cuda_row *job, int lane, wide_block *block) {
    const place_in_block at = anew_in_block();
    if (number_of_row(&block->rows, lane) % (unsigned)at.warps == (unsigned)at.warp)
        join_wide_row<loss>(job, lane, block);
}

/* ------------------------------------------------------------------- gradient -- */

/* A line of a whole tile that has nothing but numbers: it takes no more registers than that, beside a tile's. */
template <bool scales>
ALWAYS_INLINE void write_calm_line(const tile *tile, real f, real upstream, int line, const real *kept, uint16_t *to) {
    real x[ORDER_OWN_LANES];
    unpack_vector(*(const vector *)own_place(tile, kept, line, 0), x);
    EACH_OWN x[own] = x[own] * f;
    if (scales)
        EACH_OWN x[own] = x[own] * upstream;
    write_four<true>(tile, to, line, x);
}

ALWAYS_INLINE void write_any_line(const tile *tile, real f, real upstream, int line, const real *kept, uint16_t *to) {
    real x[ORDER_OWN_LANES];
    unpack_vector(*(const vector *)own_place(tile, kept, line, 0), x);
    EACH_OWN x[own] = canonical(x[own] * f);
    if (upstream != 1)
        EACH_OWN x[own] = canonical(x[own] * upstream);
    write_four<false>(tile, to, line, x);
}

ALWAYS_INLINE void write_kept(const tile *tile, real f, real upstream, const real *kept, uint16_t *to) {
    const bool calm = tile->count == ORDER_TILE && is_finite(f) && is_finite(upstream);
    if (calm && upstream == 1) {
        EACH_LINE write_calm_line<false>(tile, f, upstream, line, kept, to);
    } else if (calm) {
        EACH_LINE write_calm_line<true>(tile, f, upstream, line, kept, to);
    } else {
#pragma unroll 1
        for (int line = 0; line < ORDER_LINES && is_in(tile, line, 0); line++)
            write_any_line(tile, f, upstream, line, kept, to);
    }
}

ALWAYS_INLINE void write_wide_gradient(const cuda_row *job, int lane, wide_block *block) {
    const unsigned number = number_of_row(&block->rows, lane);
    const wide_slopes *slopes = &block->slopes[number % WIDE_ROWS];
    const simple_factor factor = {0, block->upstream};
    const tile tile = wide_tile(job);
    uint16_t *to = tile_of_row(job, CUDA_ROW_GRADIENT, &block->rows, lane);
    wait_at_barrier(&block->is_joined[number % WIDE_ROWS], number / WIDE_ROWS);
    write_kept(&tile, slopes->factor[tile.index], factor.upstream, room_in_block()->kept, to);
    put_simple_label(&factor, slopes->own, block->rows.label[lane] - (int)tile.index * ORDER_TILE, &tile, to);
}

/* ------------------------------------------------------------------------ sums -- */

/* Numbers become floats when it is their turn: all others take half of the registers. */
ALWAYS_INLINE void exponentiate_wide(const cuda_row *job, const softmax_shift *given, const tile *tile, bool calm,
                                     const uint2 *read, own_numbers x) {
    const softmax softmax = softmax_of_job(job);
    const softmax_shift shift = *given;
    if (calm) {
        EACH_LINE {
            unpack_half(false, read[line], x[line]);
            EACH_OWN x[line][own] = softmax_exponential_above(&softmax, &shift, x[line][own]);
        }
    } else {
        unpack_rows(false, read, x);
        exponentiate(&softmax, &shift, tile, false, x);
    }
}

/* Logits become exponentials, and what they come to is left. */
ALWAYS_INLINE void sum_wide_tile(const cuda_row *job, int lane, const tile *tile, const uint2 *read, own_numbers x,
                                 wide_block *block) {
    const softmax softmax = softmax_of_job(job);
    const own_range range = unpack_numbers(tile, read, x);
    const real largest = warp_largest_or_nan(range.largest);
    const softmax_shift shift = usual_shift_of(job, largest);
    real lane_sums[ORDER_OWN_LANES];
    exponentiate_wide(job, &shift, tile, is_calm_tile(&softmax, &shift, range.smallest), read, x);
    drop_beyond(tile, x);
    leave_label_out(tile, block->rows.label[lane] - (int)tile->index * ORDER_TILE, x);
    sum_lanes(x, lane_sums);
    const double others = order_lanes(tile->thread, lane_sums);
    __syncwarp(); /* all have read what the row before was multiplied by, in whose place another will stand */
    if (tile->thread == 0) {
        const int place = (int)(number_of_row(&block->rows, lane) % WIDE_ROWS);
        block->sums.tile_largest[place][tile->index] = largest;
        block->sums.tile_others[place][tile->index] = others;
        arrive(&block->are_there[place]);
    }
}

/* ----------------------------------------------------------------------- rows -- */

ALWAYS_INLINE void send_wide(const cuda_row *job, const wide_rows *rows, int lane) {
    const tile tile = wide_tile(job);
    if (lane >= 0)
        send_lines<true>(&tile, tile_of_row(job, CUDA_ROW_INPUT, rows, lane), room_in_block()->sent);
}

/* The rows at hand that take part. Each is written while the one behind it is at hand, the last one in a turn that has
 * none. */
template <typename loss> ALWAYS_INLINE void run_some_wide_rows(const cuda_row *job, wide_block *block) {
    const wide_rows *rows = &block->rows;
    int lane = first_lane(rows->counting), before = -1;
    send_wide(job, rows, lane);
#pragma unroll 1
    while (lane >= 0 || before >= 0) {
        const tile tile = wide_tile(job);
        own_numbers x;
        if (before >= 0)
            join_in_turn<loss>(job, before, block);
        if (lane >= 0) {
            uint2 read[ORDER_LINES];
            wait_for_sent();
            unpack_lines<true>(&tile, room_in_block()->sent, read);
            send_wide(job, rows, row_behind(rows, lane));
            sum_wide_tile(job, lane, &tile, read, x, block);
        }
        if (before >= 0)
            write_wide_gradient(job, before, block);
        if (lane >= 0)
            EACH_LINE *(vector *)own_place(&tile, room_in_block()->kept, line, 0) = pack_vector(x[line]);
        before = lane;
        lane = lane >= 0 ? row_behind(rows, lane) : -1;
    }
}

/* By one warp. */
ALWAYS_INLINE void leave_rows(const cuda_row *job, const row_team *team, const lane_rows *rows, int done, int thread,
                              wide_rows *known) {
    const uint16_t *from = row_at<const uint16_t>(job, CUDA_ROW_INPUT, row_of_lane(team, rows, thread));
    known->label[thread] = rows->label;
    known->label_logit[thread] = rows->label >= 0 ? as_real(from[rows->label]) : 0;
    if (thread == 0) {
        known->number += done > 0 ? (unsigned)__popc(known->counting) : 0;
        known->done = done;
        known->counting = rows->counting;
    }
}

template <typename loss> ALWAYS_INLINE void run_wide_rows(const cuda_row *job, wide_block *block) {
    const place_in_block at = here_in_block();
    const row_team team = team_of(job, (int)blockIdx.x, (int)gridDim.x);
#pragma unroll 1
    for (int done = 0; done < team.rows; done += team.at_a_time) {
        const lane_rows rows = describe_lanes(job, &team, done, at.thread);
        if (at.warp == 0)
            leave_rows(job, &team, &rows, done, at.thread, &block->rows);
        fill_other_rows<uint16_t>(job, &team, &rows, at.warp, at.thread);
        __syncthreads();
        run_some_wide_rows<loss>(job, block);
        __syncthreads();
        if (at.warp == 0 && at.thread < rows.count)
            finish_joined<loss>(job, row_of_lane(&team, &rows, at.thread), rows.label,
                                block->rows.label_logit[at.thread], 0, at.thread, &block->sums);
    }
}

template <typename loss> ALWAYS_INLINE void run_wide_bf16(const cuda_row *job) {
    __shared__ wide_block block;
    static_assert(sizeof(wide_block) <= CUDA_WIDE_OWN && sizeof(wide_room) == CUDA_WIDE_ROOM, "shared memory");
    if (is_done_before(job))
        return;
    if (threadIdx.x < WIDE_ROWS) {
        begin_barrier(&block.are_there[threadIdx.x], (int)blockDim.x / ORDER_WARP);
        begin_barrier(&block.is_joined[threadIdx.x], 1);
    }
    if (threadIdx.x == 0) {
        block.rows.number = 0;
        block.upstream = upstream_of_all(job);
    }
    __syncthreads();
    run_wide_rows<loss>(job, &block);
}

#endif

#endif
