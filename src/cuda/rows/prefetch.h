/*
 * Tiles of rows that come to shared memory while a warp computes the one before, four numbers at a time: a thread finds
 * its own where it has sent for them, so that nobody waits for another, and needs no registers for them until then.
 * Kernels with gradients, and those with weights, take 4 to 6 % less by it on an H200. Values of labels alone, whose
 * warps are more, take as long as without, and those of 16-bit numbers, which are bound by instructions, longer.
 */
#ifndef ONEPASS_CUDA_ROWS_PREFETCH_H
#define ONEPASS_CUDA_ROWS_PREFETCH_H

#include "cuda/async.h"
#include "cuda/rows/tile.h"

#if !defined(ONEPASS_REAL_F64)

/* The warp's room: a tile of logits, and one of probabilities behind it. */
ALWAYS_INLINE char *room_of_warp(const cuda_row *job, int warp) {
    extern __shared__ __align__(16) unsigned char shared_memory[];
    return (char *)shared_memory + warp * job->room;
}

ALWAYS_INLINE void send_four(real *to, const real *from) {
    send_vector(to, from);
}

ALWAYS_INLINE void send_four(uint16_t *to, const uint16_t *from) {
    send_half(to, from);
}

/* So many lines of a tile, from the first on. */
template <int lines, typename number> ALWAYS_INLINE void send_whole_lines(const number *from, number *to) {
    if constexpr (lines > 0) {
        send_whole_lines<lines - 1>(from, to);
        send_four_beyond<(lines - 1) * ORDER_LANES>(to, from);
    }
}

/* As read_lines(), which says what stands in beyond the last class. Of short rows nothing comes for lines that are
 * beyond it as a whole. */
template <bool is_short, typename number>
ALWAYS_INLINE void send_lines(const tile *tile, const number *from, number *room) {
    if (tile->count == ORDER_TILE) {
        send_whole_lines<ORDER_LINES>(own_place(tile, from, 0, 0), own_place(tile, room, 0, 0));
    } else if (ends_in_last_line(tile)) {
        const int last = ORDER_LINES - 1;
        send_whole_lines<last>(own_place(tile, from, 0, 0), own_place(tile, room, 0, 0));
        send_four(own_place(tile, room, last, 0), is_in(tile, last, 0) ? own_place(tile, from, last, 0) : from);
    } else {
        EACH_LINE if (!is_short || line * ORDER_LANES < tile->count)
            send_four(own_place(tile, room, line, 0), is_in(tile, line, 0) ? own_place(tile, from, line, 0) : from);
    }
}

template <bool is_short>
ALWAYS_INLINE void send_tile(const cuda_row *job, int which, int64_t offset, const tile *tile, char *room) {
    const int64_t first = offset + tile->index * ORDER_TILE;
    if (job->dtype[which] == ONEPASS_F32)
        send_lines<is_short>(tile, (const real *)job->data[which] + first, (real *)room);
    else
        send_lines<is_short>(tile, (const uint16_t *)job->data[which] + first, (uint16_t *)room);
}

/* What comes of a row's tile. */
template <row_kind kind, bool is_short>
ALWAYS_INLINE void prefetch_tile(const cuda_row *job, const row *row, int t, char *room) {
    const tile tile = dense_tile_at<ROW_VECTORS>(t, (int)job->classes, 0, (int)threadIdx.x % ORDER_WARP);
    send_tile<is_short>(job, CUDA_ROW_INPUT, row->input, &tile, room);
    if (kind == ROW_PROBABILITIES && job->target_room)
        send_tile<is_short>(job, CUDA_ROW_TARGET, row->target, &tile, room + job->target_room);
}

/* The same of 16-bit numbers as far as to the cache that all multiprocessors share, where there is no room nearer by.
 * Of floats that took longer: 409 us instead of 351 for 4096 rows of 32000 classes on an H200. */
ALWAYS_INLINE void prefetch_outside(const cuda_row *job, const row *row, const tile *tile) {
#if defined(__CUDACC__)
    const int own = tile->thread * (ORDER_TILE / ORDER_WARP);
    const uint16_t *from = (const uint16_t *)job->data[CUDA_ROW_INPUT] + row->input + tile->index * ORDER_TILE;
    if (job->dtype[CUDA_ROW_INPUT] != ONEPASS_F32 && own < tile->count)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(from + own));
#endif
}

/* Four numbers of each line of a tile that has come; those of the first stand in for lines that have not. */
template <bool is_short, typename four, typename number>
ALWAYS_INLINE void unpack_lines(const tile *tile, const number *room, four *read) {
    if (!is_short || ends_in_last_line(tile))
        EACH_LINE read[line] = *(const four *)own_place(tile, room, line, 0);
    else
        EACH_LINE read[line] = *(const four *)own_place(tile, room, line * ORDER_LANES < tile->count ? line : 0, 0);
}

template <bool is_short> ALWAYS_INLINE void unpack_floats(const tile *tile, const char *room, own_numbers x) {
    vector read[ORDER_LINES];
    unpack_lines<is_short>(tile, (const real *)room, read);
    EACH_LINE unpack_vector(read[line], x[line]);
}

/* As gather_logits(). */
template <bool is_short>
ALWAYS_INLINE own_range unpack_logits(const cuda_row *job, const tile *tile, const char *room, own_numbers x) {
    const int32_t dtype = job->dtype[CUDA_ROW_INPUT];
    if (dtype == ONEPASS_F32) {
        unpack_floats<is_short>(tile, room, x);
        return range_of(tile, x);
    }
    uint2 half[ORDER_LINES];
    unpack_lines<is_short>(tile, (const uint16_t *)room, half);
#if ROW_KEEPS_NAN
    if (dtype == ONEPASS_BF16) {
        unpack_rows(false, half, x);
        return range_of_pairs(half);
    }
#endif
    unpack_rows(dtype == ONEPASS_F16, half, x);
    return range_of(tile, x);
}

/* As gather_row(), of probabilities. They are made use of by make_weights(). */
template <row_kind kind>
ALWAYS_INLINE void unpack_probabilities(const cuda_row *job, int64_t target, const tile *tile, const char *room,
                                        own_numbers x) {
    const int32_t dtype = job->dtype[CUDA_ROW_TARGET];
    if (kind != ROW_PROBABILITIES)
        return;
    if (!job->target_room) {
        gather_row<ROW_VECTORS>(tile, job->data[CUDA_ROW_TARGET], dtype, target, 1, 0, x);
    } else if (dtype == ONEPASS_F32) {
        unpack_floats<false>(tile, room + job->target_room, x);
    } else {
        uint2 half[ORDER_LINES];
        unpack_lines<false>(tile, (const uint16_t *)(room + job->target_room), half);
        unpack_rows(dtype == ONEPASS_F16, half, x);
    }
}

/* ----------------------------------------------------- the tiles of a warp -- */

/* Of all rows of a group one after the other, every so many-th, but for those of rows that take no part. */
typedef struct tile_walk {
    int row, tile;
} tile_walk;

ALWAYS_INLINE void step_over_rows(int tiles, tile_walk *walk) {
    for (; walk->tile >= tiles; walk->tile -= tiles)
        walk->row++;
}

ALWAYS_INLINE void skip_rows(const row *rows, int count, int tiles, int warps, tile_walk *walk) {
    step_over_rows(tiles, walk);
#pragma unroll 1
    while (walk->row < count && rows[walk->row].part != ROW_COUNTS) {
        walk->tile += warps;
        step_over_rows(tiles, walk);
    }
}

#endif

#endif
