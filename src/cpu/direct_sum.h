/* The sum of a whole tile's exponentials, in the order, added up where they come out of the arithmetic. */
#ifndef ONEPASS_CPU_DIRECT_SUM_H
#define ONEPASS_CPU_DIRECT_SUM_H

#include "cpu/exponentials.h"

#if ONEPASS_HAS_REALS

/* What Arm and AVX-512 do each in its way: of which logits, how lines are asked for, and how those that lead are
 * counted and left out. */
#if defined(__aarch64__)

#define DIRECT_LOGITS LOGITS_WITHOUT_ANCHOR
typedef reals_bits leader_counts; /* of each lane of a vector */

ALWAYS_INLINE bool can_sum_down(const tile *tile) {
    return tile->parameter[ANCHOR] == 0;
}

ALWAYS_INLINE void ask_for_lines(const tile *tile, int64_t element, int64_t count) {
    (void)count;
    ask_for_next(tile, element, false);
}

ALWAYS_INLINE void ask_for_lines_and_targets(const tile *tile, int64_t element, int64_t count) {
    (void)count;
    ask_for_next(tile, element, true);
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

ALWAYS_INLINE bool can_sum_down(const tile *tile) {
    return tile->parameter[CALM] != 0;
}

ALWAYS_INLINE void ask_for_lines(const tile *tile, int64_t element, int64_t count) {
    if (element < ORDER_TILE / 4 && tile->parameter[ASKED] != 0)
        return;
    const uintptr_t behind = (uintptr_t)tile->operand[1] + (uintptr_t)((ORDER_TILE + element) * tile->stride[1]);
    if (!tile->from_memory || !tile->prefetch_operands)
        prefetch_logits(tile, element, count);
    else if (tile->stride[1] == sizeof(real)) /* so that there is no loop */
        prefetch_far((const void *)behind, count * (int64_t)sizeof(real));
    else
        prefetch_far((const void *)behind, count * tile->stride[1]);
}

/* And for the third operand, which will be read after this tile. */
ALWAYS_INLINE void ask_for_lines_and_targets(const tile *tile, int64_t element, int64_t count) {
    ask_for_lines(tile, element, count);
    if (tile->prefetch_operands)
        prefetch_here(tile->operand[2], sizeof(real), element, count);
}

ALWAYS_INLINE reals without_leading(reals e, real most, leader_counts *leaders) {
    const __mmask16 is_most = _mm512_cmp_ps_mask(e, each_real(most), _CMP_EQ_OQ);
    *leaders += __builtin_popcount(is_most);
    return _mm512_mask_mov_ps(e, is_most, each_real(0));
}

#define NO_LEADERS      0
#define SUM_OF(leaders) (leaders)

#endif

/* What the exponentials of a tile are made of. */
typedef struct down_lines {
    softmax softmax;
    reals lowest, rounder;
    const real *z;
} down_lines;

ALWAYS_INLINE down_lines down_lines_of(const tile *tile) {
    return (down_lines){
        .softmax = {.factor = tile->parameter[FACTOR], .factor_low = tile->parameter[FACTOR_LOW]},
        .lowest = each_real(tile->parameter[LOWEST]),
        .rounder = each_real(SOFTMAX_ROUNDER - tile->parameter[WHOLE]),
        .z = tile->operand[0],
    };
}

/* Those of some lanes in all lines. */
ALWAYS_INLINE void exponentials_down(const down_lines *down, int64_t lane, reals *e) {
    const vector_shift shift = {NULL, &down->lowest, &down->rounder, 1};
    reals shifted[ORDER_LINES];
    begin_exponentials(&down->softmax, &shift, DIRECT_LOGITS, down->z + lane, ORDER_LANES, ORDER_LINES, shifted, e);
    for (int i = 0; i < ORDER_LINES; i++)
        e[i] = end_exponential(DIRECT_LOGITS, shifted[i], e[i]);
}

ALWAYS_INLINE void store_sum_of_lines(real *sum, const reals *e) {
    store_reals(sum, reals_plus(reals_plus(reals_plus(e[0], e[1]), reals_plus(e[2], e[3])),
                                reals_plus(reals_plus(e[4], e[5]), reals_plus(e[6], e[7]))));
}

/* The sum but for those that lead, as in sum_without_leading(). `e`, if it is not null, has all exponentials then.
 * They are added up where they come out, those of a lane in all eight lines at a time: to store them first took a tenth
 * longer on a Neoverse N1, and so did it to ask for no line ahead; values of tv_distance_with_logits took a tenth
 * longer on a Xeon. */
ALWAYS_INLINE double sum_lines_without_leading(const tile *tile, ask_function *ask, real most, real *e,
                                               double *leading) {
    const down_lines down = down_lines_of(tile);
    _Alignas(64) real sum[ORDER_LANES];
    leader_counts leaders = NO_LEADERS;
    for (int64_t lane = 0; lane < ORDER_LANES; lane += REALS) {
        reals line[ORDER_LINES];
        ask(tile, lane * ORDER_LINES, ORDER_LINES * REALS);
        exponentials_down(&down, lane, line);
        for (int64_t i = 0; i < ORDER_LINES; i++) {
            if (e)
                store_reals(e + i * ORDER_LANES + lane, line[i]);
            line[i] = without_leading(line[i], most, &leaders);
        }
        store_sum_of_lines(sum + lane, line);
    }
    *leading = (double)SUM_OF(leaders) * (double)most;
    return order_lanes(sum);
}

#endif

#endif
