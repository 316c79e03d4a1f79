/*
 * Values of long rows of bf16: whole tiles by the shift of one of them, for as long as it will do. A tile's own shift
 * follows from its largest logit, which lanes find out by exchanging it five times while nobody computes.
 *
 * By another whole number n all exponentials of a tile differ by a power of two, and so do their sums, as long as none
 * is 0 or denormal by either. But a product of a logit and the factor that lies between two whole numbers is rounded to
 * the one or the other as n is odd or even; the plan sees to it that there is none (src/cuda/row_variant.c).
 */
#ifndef ONEPASS_CUDA_ROWS_ONE_SHIFT_H
#define ONEPASS_CUDA_ROWS_ONE_SHIFT_H

#include "cuda/rows/join.h"

#if !defined(ONEPASS_REAL_F64)

/* The logits of a tile of bf16 from `from` on, and their extremes. */
ALWAYS_INLINE own_range read_bf16(const tile *tile, const uint16_t *from, own_numbers x) {
    uint2 half[ORDER_LINES];
    read_lines(tile, from, half);
    unpack_rows(false, half, x);
#if ROW_KEEPS_NAN
    return range_of_pairs(half);
#else
    return range_of(tile, x);
#endif
}

/* Of a row's tiles, which begins at `row` and waits from `first_place` on, the t-th and every `step`-th behind it, up
 * to the label's, one that is not whole, or one of logits too far apart; returns which. What waits with a sum is the
 * largest logit of the tile whose shift it is by: no logit of its own is larger, so that the largest of all that wait
 * is the row's. */
ALWAYS_INLINE int sum_by_one_shift(const cuda_row *job, const waiting *waiting, const uint16_t *row, int label, int t,
                                   int step, int thread, int first_place, lane_room *room) {
    const softmax softmax = softmax_of_job(job);
    const int whole = (int)job->classes / ORDER_TILE, label_tile = label / ORDER_TILE;
    softmax_shift shift = {};
    real largest = -REAL_INFINITY, least = 0;
#pragma unroll 1
    for (; t < whole && t != label_tile; t += step) {
        const tile tile = tile_at(t, ORDER_TILE, thread, NULL);
        own_numbers x;
        real lane[ORDER_OWN_LANES];
        const own_range range = read_bf16(&tile, row + t * ORDER_TILE, x);
        if (!__all_sync(~0u, range.largest <= largest && range.smallest > least)) {
            largest = warp_largest_or_nan(range.largest);
            const real product = (largest + 0) * softmax.factor;
            shift.n = softmax_ceiling(product);
            least = softmax_least_calm(&softmax, &shift);
            if (!__all_sync(~0u, magnitude(product) < SOFTMAX_LARGEST / 2 && range.smallest > least))
                break;
        }
        EACH_NUMBER x[line][own] = softmax_exponential_above(&softmax, &shift, x[line][own]);
        sum_lanes(x, lane);
        leave_lanes(waiting, first_place + t, thread, largest, lane, room);
    }
    return t;
}

#endif

#endif
