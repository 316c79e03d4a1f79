/* The sum of a tile's exponentials that nobody else looks at, in the order, without storing them. */
#ifndef ONEPASS_CPU_ROWS_DIRECT_SUM_H
#define ONEPASS_CPU_ROWS_DIRECT_SUM_H

#include "cpu/exponentials.h"
#include "cpu/rows/job.h"

#if ONEPASS_HAS_REALS

/* What Arm and AVX-512 do each in its way: of which logits, how lines are asked for, and how those that lead are
 * counted and left out. */
#if defined(__aarch64__)

#define DIRECT_LOGITS LOGITS_WITHOUT_ANCHOR
typedef reals_bits leader_counts; /* of each lane of a vector */

static bool can_sum_down(const tile *tile) {
    return tile->parameter[ANCHOR] == 0;
}

ALWAYS_INLINE void ask_for_lines(const tile *tile, int64_t element, bool leads) {
    ask_for_next(tile, element, leads);
}

ALWAYS_INLINE reals without_leading(reals e, real most, leader_counts *leaders) {
    const reals_bits is_most = equal_reals(e, each_real(most)); /* all bits, which are -1 */
    *leaders = NEON_BITS(vsubq)(*leaders, is_most);
    return REALS_OF_BITS(NEON_BITS(vbicq)(BITS_OF_REALS(e), is_most));
}

#define NO_LEADERS      each_bits(0)
#define SUM_OF(leaders) NEON_BITS(vaddvq)(leaders)

#else

#define DIRECT_LOGITS LOGITS_CALM
typedef int64_t leader_counts;

static bool can_sum_down(const tile *tile) {
    return tile->parameter[CALM] != 0;
}

ALWAYS_INLINE void ask_for_lines(const tile *tile, int64_t element, bool leads) {
    if (element >= ORDER_TILE / 4 || tile->parameter[ASKED] == 0)
        prefetch_logits(tile, element, ORDER_LINES * REALS);
    if (leads && tile->prefetch_operands)
        prefetch_here(tile->operand[2], sizeof(real), element, ORDER_LINES * REALS);
}

ALWAYS_INLINE reals without_leading(reals e, real most, leader_counts *leaders) {
    const __mmask16 is_most = _mm512_cmp_ps_mask(e, each_real(most), _CMP_EQ_OQ);
    *leaders += __builtin_popcount(is_most);
    return _mm512_mask_mov_ps(e, is_most, each_real(0));
}

#define NO_LEADERS      0
#define SUM_OF(leaders) (leaders)

#endif

/* Exponentials are added up where they come out, those of a lane in all eight lines at a time: to store them first took
 * a tenth longer on a Neoverse N1, and so did it to ask for no line ahead. Of whole tiles. Returns how many lead, which
 * are left out. */
ALWAYS_INLINE leader_counts sum_down_lines(const tile *tile, bool leads, real most, real *sum) {
    const softmax softmax = {.factor = tile->parameter[FACTOR], .factor_low = tile->parameter[FACTOR_LOW]};
    const reals lowest = each_real(tile->parameter[LOWEST]),
                rounder = each_real(SOFTMAX_ROUNDER - tile->parameter[WHOLE]);
    const vector_shift shift = {NULL, &lowest, &rounder, 1};
    const real *z = tile->operand[0];
    leader_counts leaders = NO_LEADERS;
    for (int64_t lane = 0; lane < ORDER_LANES; lane += REALS) {
        reals shifted[ORDER_LINES], e[ORDER_LINES];
        ask_for_lines(tile, lane * ORDER_LINES, leads);
        begin_exponentials(&softmax, &shift, DIRECT_LOGITS, z + lane, ORDER_LANES, ORDER_LINES, shifted, e);
        for (int i = 0; i < ORDER_LINES; i++) {
            e[i] = end_exponential(DIRECT_LOGITS, shifted[i], e[i]);
            if (leads)
                e[i] = without_leading(e[i], most, &leaders);
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
    *leading = (double)SUM_OF(sum_down_lines(tile, true, most, sum)) * (double)most;
    return order_lanes(sum);
}

#endif

/* Whether that was done: on Arm and with AVX-512, for a whole tile. */
static bool sum_directly(const rows *rows, const tile *tile, int count, int64_t label, real most, real *own,
                         softmax_tile *sums) {
#if ONEPASS_HAS_REALS
    if (count < ORDER_TILE || !can_sum_down(tile))
        return false;
    sums->others = rows->has_labels ? sum_down(tile, label, own) : sum_down_without_leading(tile, most, &sums->leading);
    return true;
#else
    (void)rows, (void)tile, (void)count, (void)label, (void)most, (void)own, (void)sums;
    return false;
#endif
}

#endif
