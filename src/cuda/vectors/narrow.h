/*
 * Rows of no more than half a tile: as many threads have one as sixteen elements for each take, which stay in their
 * registers until slopes are written. A warp has several rows at a time, and goes through more; with the values of all
 * of them, where nothing else is wanted, it is done at once, a thread with one.
 */
#ifndef ONEPASS_CUDA_VECTORS_NARROW_H
#define ONEPASS_CUDA_VECTORS_NARROW_H

#include "cuda/vectors/row.h"

#if !defined(ONEPASS_REAL_F64)

#define NARROW_FOURS 4
#define EACH_FOUR    _Pragma("unroll") for (int i = 0; i < NARROW_FOURS; i++)

/* The threads of a row of so many lines. */
template <int LINES> constexpr int narrow_threads = LINES *ORDER_LANES / (NARROW_FOURS * ORDER_OWN_LANES);

/* Neighbouring threads have neighbouring fours. */
template <int LINES> ALWAYS_INLINE int element_of(int thread, int four) {
    return ORDER_OWN_LANES * (four * narrow_threads<LINES> + thread % narrow_threads<LINES>);
}

template <int LINES> ALWAYS_INLINE bool is_in_row(const cuda_vector *job, int thread, int four) {
    return element_of<LINES>(thread, four) < (int)job->length;
}

/* -------------------------------------------------------------- elements -- */

/* All are in flight before the first is used. */
template <typename four, int OPERANDS, int LINES, bool FULL>
ALWAYS_INLINE void read_fours_of_row(const cuda_vector *job, const vector_row *row, int thread, four zero,
                                     four (*read)[NARROW_FOURS]) {
#pragma unroll
    for (int k = 0; k < OPERANDS; k++) {
        const char *from = dense_address(job, CUDA_VECTOR_OPERAND + k, row->index, element_of<LINES>(thread, 0));
        EACH_FOUR {
            read[k][i] = zero;
            if (FULL || (row->part && is_in_row<LINES>(job, thread, i)))
                read[k][i] = ((const four *)from)[i * narrow_threads<LINES>];
        }
    }
}

template <typename loss, int LINES, bool FULL>
ALWAYS_INLINE void read_row(const cuda_vector *job, const vector_row *row, int thread,
                            real (*x)[NARROW_FOURS][ORDER_OWN_LANES]) {
    constexpr int operands = loss::VECTOR_COUNT, lines = NARROW_FOURS;
    if (job->halves) {
        uint2 read[operands][lines];
        read_fours_of_row<uint2, operands, LINES, FULL>(job, row, thread, make_uint2(0, 0), read);
        unpack_halves<operands, lines>(job, 0, read, x);
    } else {
        vector read[operands][lines];
        read_fours_of_row<vector, operands, LINES, FULL>(job, row, thread, zero_vector(), read);
        EACH_READ unpack_vector(read[j][i], x[j][i]);
    }
    if (loss::LABELS) /* as place_own() has it */
        EACH_FOUR EACH_OWN {
            x[0][i][own] = element_of<LINES>(thread, i) + own == row->label.at ? -REAL_INFINITY : x[0][i][own];
            x[1][i][own] = row->label.x;
        }
}

/* ------------------------------------------------------------------ sums -- */

/* What elements of two fours add to their lane's sums, as far as the row has them. */
template <typename loss, int LINES>
ALWAYS_INLINE void add_two_of_row(const cuda_vector *job, const double *parameter, int thread, int one, int other,
                                  const real *first, const real *second, double *sum) {
    double term[2][VECTOR_MOST_SUMS];
    loss::terms(first, parameter, term[0]);
    loss::terms(second, parameter, term[1]);
#pragma unroll
    for (int k = 0; k < loss::SUMS; k++)
        sum[k] = (is_in_row<LINES>(job, thread, one) ? term[0][k] : 0) +
                 (is_in_row<LINES>(job, thread, other) ? term[1][k] : 0);
}

/* A thread has four lines of a lane, or two lines and lanes 64 apart, or lanes 64 and 32 apart. Lines that a row does
 * not have add 0 to it, which makes a sum of nothing but -0 one of +0, here as well as earlier. */
template <typename loss, int LINES, bool FULL>
ALWAYS_INLINE void sum_row(const cuda_vector *job, const double *parameter, int thread,
                           const real (*x)[NARROW_FOURS][ORDER_OWN_LANES], double *sum) {
    constexpr int next = LINES == ORDER_LINES / 2 ? 1 : 2; /* of a four, the one that it is added to first */
    double lane[VECTOR_MOST_SUMS][ORDER_OWN_LANES];
    EACH_OWN {
        double sums[2][VECTOR_MOST_SUMS];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int one = i * (3 - next), other = one + next;
            const real first[] = OWN_OPERANDS(x, one, own), second[] = OWN_OPERANDS(x, other, own);
            if (FULL)
                add_two<loss>(parameter, first, second, sums[i]);
            else
                add_two_of_row<loss, LINES>(job, parameter, thread, one, other, first, second, sums[i]);
        }
#pragma unroll
        for (int k = 0; k < loss::SUMS; k++)
            lane[k][own] = sums[0][k] + sums[1][k];
    }
#pragma unroll
    for (int k = 0; k < loss::SUMS; k++)
        sum[k] = order_near_fours<narrow_threads<LINES>>(thread, lane[k]) + 0;
}

/* ---------------------------------------------------------------- slopes -- */

template <typename loss, int LINES, bool FULL>
ALWAYS_INLINE void write_row(const cuda_vector *job, const double *parameter, const vector_row *row, int thread,
                             real (*x)[NARROW_FOURS][ORDER_OWN_LANES], const double *factor) {
    const real upstream = row->part ? row_upstream(job, row->index) : 1;
#pragma unroll
    for (int j = 0; j < loss::VECTOR_COUNT; j++) /* as doubles, of the sums, they would not find room */
        EACH_FOUR EACH_OWN x[j][i][own] = anew(x[j][i][own]);
#pragma unroll
    for (int k = 0; k < loss::VECTOR_COUNT; k++) {
        const int which = CUDA_VECTOR_GRADIENT + k;
        if (!job->data[which])
            continue;
        char *to = dense_address(job, which, row->index, 0);
        EACH_FOUR if (FULL || (row->is_there && is_in_row<LINES>(job, thread, i))) {
            real slope[ORDER_OWN_LANES];
            EACH_OWN {
                const real operand[] = OWN_OPERANDS(x, i, own);
                const bool is_own = row->label.at < 0 || element_of<LINES>(thread, i) + own == row->label.at;
                slope[own] = slope_of<loss>(k, operand, parameter, factor, is_own, upstream);
                slope[own] = FULL || row->part ? slope[own] : 0;
            }
            write_four(job, which, to + element_of<LINES>(thread, i) * (job->halves ? 2 : 4), slope);
        }
    }
}

/* ------------------------------------------------------------------ rows -- */

/* Rows with gradients, one a group of threads, from elements to slopes. */
template <typename loss, int LINES, bool FULL>
ALWAYS_INLINE void run_narrow_row(const cuda_vector *job, const double *parameter, vector_row *row, int thread,
                                  double *sum) {
    real x[loss::ELEMENTS][NARROW_FOURS][ORDER_OWN_LANES];
    read_row<loss, LINES, FULL>(job, row, thread, x);
    if (job->has_gradient)
        ask_for_numbers<loss>(job, row);
    sum_row<loss, LINES, FULL>(job, parameter, thread, x, sum);
    if (!job->has_gradient)
        return;
    double factor[VECTOR_MOST_FACTORS];
    const double value = finish_row<loss>(job, parameter, row, sum, factor);
    if (row->is_there && thread % narrow_threads<LINES> == 0)
        leave_value(job, row->index, value);
    write_row<loss, LINES, FULL>(job, parameter, row, thread, x, factor);
}

/* In a turn each group of threads has a row. Without gradients, the thread that has the turn's number in its group
 * keeps the sums. */
template <typename loss, int LINES> ALWAYS_INLINE void run_narrow_rows(const cuda_vector *job) {
    constexpr int THREADS = narrow_threads<LINES>, GROUPS = ORDER_WARP / THREADS;
    const place_in_block at = here_in_block();
    const int turns = job->turns, own_turn = at.thread % THREADS;
    const int64_t step = (int64_t)gridDim.x * at.warps * GROUPS * turns;
    OWN_PARAMETERS(parameter, true);
#pragma unroll 1
    for (int64_t first = ((int64_t)blockIdx.x * at.warps + at.warp) * GROUPS * turns; first < job->rows;
         first += step) {
        const int64_t of_group = first + at.thread / THREADS * turns, own_row = of_group + own_turn;
        double kept[VECTOR_MOST_SUMS] = {0, 0, 0}, factor[VECTOR_MOST_FACTORS];
#pragma unroll 1
        for (int turn = 0; turn < turns; turn++) {
            const int64_t index = of_group + turn;
            vector_row row = vector_row_at<loss>(job, index, index < job->rows);
            const bool full = __all_sync(~0u, row.part) && job->length == LINES * ORDER_LANES;
            double sum[VECTOR_MOST_SUMS];
            if (full)
                run_narrow_row<loss, LINES, true>(job, parameter, &row, at.thread, sum);
            else
                run_narrow_row<loss, LINES, false>(job, parameter, &row, at.thread, sum);
            keep_sums<loss>(own_turn == turn, sum, kept);
        }
        if (!job->has_gradient && own_turn < turns && own_row < job->rows)
            finish_vectors<loss>(job, parameter, own_row, kept, NULL, factor);
    }
}

/* job->chunk is the number of lines that a row has, a power of two. */
template <typename loss> ALWAYS_INLINE void run_narrow(const cuda_vector *job) {
    if (is_done_before(job))
        return;
    if (job->chunk == 1)
        run_narrow_rows<loss, 1>(job);
    else if (job->chunk == 2)
        run_narrow_rows<loss, 2>(job);
    else
        run_narrow_rows<loss, 4>(job);
}

#endif

#endif
