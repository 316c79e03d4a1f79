/*
 * Rows without gaps at any address, moved four numbers at a time nevertheless: from the aligned address before a tile's
 * first number on, which is `ahead` of it. Threads then have the lanes of a line that are as many before their own; in
 * the place of those before the first, the first thread has the line's last.
 */
#ifndef ONEPASS_CUDA_ROWS_LOOSE_H
#define ONEPASS_CUDA_ROWS_LOOSE_H

#include "cuda/rows/row.h"

#if !defined(ONEPASS_REAL_F64)
ALWAYS_INLINE int elements_ahead(const cuda_row *job, int which, int64_t offset) {
    const uintptr_t first = (uintptr_t)job->data[which] / dtype_size(job->dtype[which]);
    return (int)((first + (uintptr_t)offset) % ORDER_OWN_LANES);
}

/* Where a thread's four of a line begin in the tile: some of the first thread's lie before it. */
ALWAYS_INLINE int first_of_four(const tile *tile, int line) {
    return line * ORDER_LANES + order_lane(tile->thread, 0) - tile->ahead;
}

/* Whether all of them are in it. */
ALWAYS_INLINE bool is_whole(const tile *tile, int line) {
    const int first = first_of_four(tile, line);
    return first >= 0 && first + ORDER_OWN_LANES <= tile->count;
}

/* So many of the first thread's fours are of the next line. */
ALWAYS_INLINE int taken_ahead(const tile *tile) {
    return tile->thread == 0 ? tile->ahead : 0;
}

/* Four of which so many of the first are another's. */
ALWAYS_INLINE float4 with_first(int taken, float4 four, float4 other) {
    return make_float4(taken > 0 ? other.x : four.x, taken > 1 ? other.y : four.y, taken > 2 ? other.z : four.z,
                       taken > 3 ? other.w : four.w);
}

ALWAYS_INLINE uint2 with_first(int taken, uint2 four, uint2 other) {
    const uint32_t low = taken > 1 ? ~0u : taken > 0 ? 0xffffu : 0, high = taken > 3 ? ~0u : taken > 2 ? 0xffffu : 0;
    return make_uint2((other.x & low) | (four.x & ~low), (other.y & high) | (four.y & ~high));
}

/* The first and the last tile of a row are read one by one: fours would ask too much about their ends. */
template <typename four, typename number>
ALWAYS_INLINE void read_end(const tile *tile, const number *from, number otherwise, four *read) {
    EACH_LINE {
        number x[ORDER_OWN_LANES];
        EACH_OWN {
            const int element = own_element(tile, line, own);
            x[own] = element < tile->count ? from[element] : otherwise;
        }
        memcpy(&read[line], x, sizeof read[line]);
    }
}

/* What a whole tile has of its last four. */
template <typename four, typename number>
ALWAYS_INLINE four read_torn_four(const number *from, int first, number otherwise) {
    number x[ORDER_OWN_LANES];
    four read;
    EACH_OWN x[own] = first + own < ORDER_TILE ? from[first + own] : otherwise;
    memcpy(&read, x, sizeof read);
    return read;
}

template <typename four, typename number>
ALWAYS_INLINE void read_fours(const tile *tile, const number *from, number otherwise, four *read) {
    const int taken = taken_ahead(tile);
    if (tile->count < ORDER_TILE || tile->index == 0) {
        read_end(tile, from, otherwise, read);
        return;
    }
    EACH_LINE read[line] = *(const four *)(from + first_of_four(tile, line));
    if (tile->ahead == 0)
        return;
    four last = read[ORDER_LINES - 1];
    if (taken > 0)
        last = read_torn_four<four>(from, ORDER_TILE - taken, otherwise);
    EACH_LINE read[line] = with_first(taken, read[line], line + 1 < ORDER_LINES ? read[line + 1] : last);
}

/* A tile has up to two torn fours: the first thread's first, and, of whoever has it, that with the tile's last number.
 * Returns the line of the latter, or -1; what lies behind the last line is the first thread's, apart. */
ALWAYS_INLINE int line_of_torn_end(const tile *tile) {
    const int last = tile->count - 1 + tile->ahead;
    const bool is_torn = last < ORDER_TILE && last % ORDER_OWN_LANES != ORDER_OWN_LANES - 1;
    return is_torn && last % ORDER_LANES / ORDER_OWN_LANES == tile->thread ? last / ORDER_LANES : -1;
}

template <typename four, typename number> ALWAYS_INLINE void write_torn_four(number *to, int first, int count, four x) {
    number number_of[ORDER_OWN_LANES];
    memcpy(number_of, &x, sizeof x);
    EACH_OWN if (first + own >= 0 && first + own < count) to[first + own] = number_of[own];
}

/* The same back. What lies before the tile, and behind its last number, belongs to others. */
template <typename four, typename number> ALWAYS_INLINE void write_fours(const tile *tile, number *to, const four *x) {
    const int first = first_of_four(tile, 0), taken = taken_ahead(tile), torn = line_of_torn_end(tile);
    four end = x[0];
    EACH_LINE {
        const four here = with_first(taken, x[line], x[line > 0 ? line - 1 : 0]);
        if (is_whole(tile, line))
            *(four *)(to + first + line * ORDER_LANES) = here;
        end = with_first(line == torn ? ORDER_OWN_LANES : 0, end, here);
    }
    if (taken > 0) {
        write_torn_four(to, first, tile->count, x[0]);
        write_torn_four(to, ORDER_TILE - taken, tile->count, x[ORDER_LINES - 1]);
    }
    if (torn >= 0 && (torn > 0 || taken == 0))
        write_torn_four(to, first + torn * ORDER_LANES, tile->count, end);
}

/* Sums of a thread's lanes become those of the lanes that it has in the order. */
ALWAYS_INLINE void bring_lanes_home(const tile *tile, real *lane) {
    if (tile->ahead == 0)
        return;
    const int neighbour = (tile->thread + 1) % ORDER_WARP;
    real x[2 * ORDER_OWN_LANES - 1];
    EACH_OWN x[own] = lane[own];
#pragma unroll
    for (int i = 0; i < ORDER_OWN_LANES - 1; i++)
        x[ORDER_OWN_LANES + i] = __shfl_sync(~0u, lane[i], neighbour);
    EACH_OWN lane[own] = tile->ahead == 1 ? x[own + 1] : tile->ahead == 2 ? x[own + 2] : x[own + 3];
}
#endif

#endif
