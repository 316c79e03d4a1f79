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

/* Whether the shift has no anchor, as nearly always. */
ALWAYS_INLINE bool is_usual_largest(const softmax *softmax, real largest) {
    return magnitude((largest + 0) * softmax->factor) < SOFTMAX_LARGEST;
}

/* As shift_of(), with the usual case first. */
ALWAYS_INLINE softmax_shift usual_shift_of(const cuda_row *job, real largest) {
    const softmax softmax = softmax_of_job(job);
    const real product = (largest + 0) * softmax.factor;
    softmax_shift shift;
    if (!is_usual_largest(&softmax, largest))
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

#endif

#endif
