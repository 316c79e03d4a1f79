/* The sum of a tile's exponentials that nobody else looks at, in the order, without storing them. */
#ifndef ONEPASS_CPU_ROWS_DIRECT_SUM_H
#define ONEPASS_CPU_ROWS_DIRECT_SUM_H

#include "cpu/exponentials.h"
#include "cpu/rows/job.h"

#if defined(__aarch64__)

/* Exponentials are added up where they come out, those of a lane in all eight lines at a time: to store them first took
 * a tenth longer on a Neoverse N1, and so did it to ask for no line ahead. Of whole tiles without an anchor. Returns
 * how many in each lane of a vector lead, which are left out. */
ALWAYS_INLINE reals_bits sum_down_lines(const tile *tile, bool leads, real most, real *sum) {
    const softmax softmax = {.factor = tile->parameter[FACTOR], .factor_low = tile->parameter[FACTOR_LOW]};
    const reals lowest = each_real(tile->parameter[LOWEST]),
                rounder = each_real(SOFTMAX_ROUNDER - tile->parameter[WHOLE]);
    const vector_shift shift = {NULL, &lowest, &rounder, 1};
    const real *z = tile->operand[0];
    reals_bits leaders = each_bits(0);
    for (int64_t lane = 0; lane < ORDER_LANES; lane += REALS) {
        reals shifted[ORDER_LINES], e[ORDER_LINES];
        ask_for_next(tile, lane * ORDER_LINES, leads);
        begin_exponentials(&softmax, &shift, LOGITS_WITHOUT_ANCHOR, z + lane, ORDER_LANES, ORDER_LINES, shifted, e);
        for (int i = 0; i < ORDER_LINES; i++) {
            e[i] = end_exponential(LOGITS_WITHOUT_ANCHOR, shifted[i], e[i]);
            if (!leads)
                continue;
            const reals_bits is_most = equal_reals(e[i], each_real(most)); /* all bits, which are -1 */
            leaders = NEON_BITS(vsubq)(leaders, is_most);
            e[i] = REALS_OF_BITS(NEON_BITS(vbicq)(BITS_OF_REALS(e[i]), is_most));
        }
        store_reals(sum + lane, reals_plus(reals_plus(reals_plus(e[0], e[1]), reals_plus(e[2], e[3])),
                                           reals_plus(reals_plus(e[4], e[5]), reals_plus(e[6], e[7]))));
    }
    return leaders;
}

/* But for the label's, if it is one of them, which is given back instead. */
static __attribute__((noinline)) double sum_down(const tile *tile, int64_t label, real *own) {
    _Alignas(64) real sum[ORDER_LANES];
    sum_down_lines(tile, false, 0, sum);
    if (label >= 0 && label < ORDER_TILE) {
        real e[ORDER_LINES];
        const int64_t lane = label % ORDER_LANES;
        for (int64_t i = 0; i < ORDER_LINES; i++)
            e[i] = exponential_term(tile, i * ORDER_LANES + lane);
        *own = e[label / ORDER_LANES];
        e[label / ORDER_LANES] = 0;
        sum[lane] = ((e[0] + e[1]) + (e[2] + e[3])) + ((e[4] + e[5]) + (e[6] + e[7]));
    }
    return order_lanes(sum);
}

/* But for those that lead, as in sum_without_leading(). */
static __attribute__((noinline)) double sum_down_without_leading(const tile *tile, real most, double *leading) {
    _Alignas(64) real sum[ORDER_LANES];
    *leading = (double)NEON_BITS(vaddvq)(sum_down_lines(tile, true, most, sum)) * (double)most;
    return order_lanes(sum);
}

#endif

/* Whether that was done: on Arm, for a whole tile. */
static bool sum_directly(const rows *rows, const tile *tile, int count, int64_t label, real most, real *own,
                         softmax_tile *sums) {
#if defined(__aarch64__)
    if (count < ORDER_TILE || tile->parameter[ANCHOR] != 0)
        return false;
    sums->others = rows->has_labels ? sum_down(tile, label, own) : sum_down_without_leading(tile, most, &sums->leading);
    return true;
#else
    (void)rows, (void)tile, (void)count, (void)label, (void)most, (void)own, (void)sums;
    return false;
#endif
}

#endif
