/*
 * Rows of no more than half a tile: a warp has as many as their lines fill a tile, and needs nobody else. Slopes read
 * the elements again, which are in a cache.
 */
#ifndef ONEPASS_CUDA_VECTORS_NARROW_H
#define ONEPASS_CUDA_VECTORS_NARROW_H

#include "cuda/vectors/row.h"

#if !defined(ONEPASS_REAL_F64)

/* A warp's rows, of LINES lines each. */
template <int LINES> struct narrow_rows {
    int64_t first;
    unsigned here; /* which of them there are, a bit each, ... */
    unsigned part; /* ... and which take part */
    int thread;
    bool full;  /* all of them, with all elements that their lines have room for */
    int own_at; /* the class of row i is lane i's, ... */
    real own_x; /* ... and its element */
};

/* The thread's own four elements of a line, and whether the row is so long. */
template <int LINES> ALWAYS_INLINE int element_of(const narrow_rows<LINES> *rows, int line) {
    return line % LINES * ORDER_LANES + order_lane(rows->thread, 0);
}

template <int LINES>
ALWAYS_INLINE bool is_in_rows(const cuda_vector *job, const narrow_rows<LINES> *rows, unsigned which, int line) {
    return (which >> line / LINES & 1) && element_of(rows, line) < (int)job->length;
}

/* ------------------------------------------------------------------ sums -- */

/* `COUNT` lines of each operand from `begin` on, all in flight before the first is used. */
template <typename four, int OPERANDS, int LINES, int COUNT, bool FULL>
ALWAYS_INLINE void read_rows(const cuda_vector *job, const narrow_rows<LINES> *rows, int begin, four zero,
                             four (*read)[COUNT]) {
    constexpr int size = (int)sizeof(four) / ORDER_OWN_LANES;
#pragma unroll
    for (int k = 0; k < OPERANDS; k++) {
        const char *from = dense_address(job, CUDA_VECTOR_OPERAND + k, rows->first, order_lane(rows->thread, 0));
        const int64_t step = job->row_stride[CUDA_VECTOR_OPERAND + k];
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const int line = begin + i;
            read[k][i] = zero;
            if (FULL || is_in_rows(job, rows, rows->part, line))
                read[k][i] = *(const four *)(from + size * (line / LINES * step + line % LINES * ORDER_LANES));
        }
    }
}

template <int OPERANDS, int LINES, int COUNT, bool FULL>
ALWAYS_INLINE void read_lines(const cuda_vector *job, const narrow_rows<LINES> *rows, int begin,
                              real (*x)[COUNT][ORDER_OWN_LANES]) {
    constexpr int operands = OPERANDS, lines = COUNT;
    if (job->halves) {
        uint2 read[OPERANDS][COUNT];
        read_rows<uint2, OPERANDS, LINES, COUNT, FULL>(job, rows, begin, make_uint2(0, 0), read);
        EACH_READ unpack_half(job->dtype[CUDA_VECTOR_OPERAND + j] == ONEPASS_F16, read[j][i], x[j][i]);
    } else {
        vector read[OPERANDS][COUNT];
        read_rows<vector, OPERANDS, LINES, COUNT, FULL>(job, rows, begin, zero_vector(), read);
        EACH_READ unpack_vector(read[j][i], x[j][i]);
    }
}

/* As place_own() has it, of lines that are one row's. */
template <typename loss, int LINES, int COUNT>
ALWAYS_INLINE void place_own_of_lines(const narrow_rows<LINES> *rows, int begin, int own_at, real own_x,
                                      real (*x)[COUNT][ORDER_OWN_LANES]) {
    if (!loss::LABELS)
        return;
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        EACH_OWN {
            x[0][i][own] = element_of(rows, begin + i) + own == own_at ? -REAL_INFINITY : x[0][i][own];
            x[1][i][own] = own_x;
        }
}

/* The sums over `COUNT` lines, for each of a thread's own lanes. */
template <typename loss, int LINES, int COUNT, bool FULL>
ALWAYS_INLINE void sum_lines(const cuda_vector *job, const double *parameter, const narrow_rows<LINES> *rows, int begin,
                             double (*lane)[ORDER_OWN_LANES]) {
    real x[loss::ELEMENTS][COUNT][ORDER_OWN_LANES];
    read_lines<loss::VECTOR_COUNT, LINES, COUNT, FULL>(job, rows, begin, x);
    if (loss::LABELS)
        place_own_of_lines<loss, LINES, COUNT>(rows, begin, __shfl_sync(~0u, rows->own_at, begin / LINES),
                                               __shfl_sync(~0u, rows->own_x, begin / LINES), x);
    EACH_OWN {
        double term[COUNT][VECTOR_MOST_SUMS];
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const real operand[] = OWN_OPERANDS(x, i, own);
            loss::terms(operand, parameter, term[i]);
#pragma unroll
            for (int k = 0; k < loss::SUMS && !FULL; k++)
                term[i][k] = is_in_rows(job, rows, rows->part, begin + i) ? term[i][k] : 0;
        }
#pragma unroll
        for (int k = 0; k < loss::SUMS; k++)
            lane[k][own] = COUNT == 1   ? term[0][k]
                           : COUNT == 2 ? term[0][k] + term[COUNT - 1][k]
                                        : (term[0][k] + term[COUNT > 1][k]) + (term[COUNT / 2][k] + term[COUNT - 1][k]);
    }
}

/* The sums of all rows of a warp; those of row i are lane i's. Lines that a row does not have add 0 to it. */
template <typename loss, int LINES, bool FULL>
ALWAYS_INLINE void sum_rows(const cuda_vector *job, const double *parameter, const narrow_rows<LINES> *rows,
                            double *sum) {
    static_assert(LINES <= HALF_TILE, "a thread has room for them");
#pragma unroll
    for (int begin = 0; begin < ORDER_LINES; begin += LINES) {
        double lane[VECTOR_MOST_SUMS][ORDER_OWN_LANES];
        sum_lines<loss, LINES, LINES, FULL>(job, parameter, rows, begin, lane);
#pragma unroll
        for (int k = 0; k < loss::SUMS; k++) {
            EACH_OWN lane[k][own] = lane[k][own] + 0;
            const double of_row = order_lanes(rows->thread, lane[k]);
            sum[k] = rows->thread == begin / LINES ? of_row : sum[k];
        }
    }
}

/* ---------------------------------------------------------------- slopes -- */

/* The gradients of all rows of a warp. Lane i has the factors of row i. */
template <typename loss, int LINES>
ALWAYS_INLINE void write_rows(const cuda_vector *job, const double *parameter, const narrow_rows<LINES> *rows,
                              const double *factors, real upstreams) {
    constexpr int COUNT = LINES < 2 ? LINES : 2;
#pragma unroll 1
    for (int begin = 0; begin < ORDER_LINES; begin += COUNT) {
        const int row = begin / LINES;
        const real upstream = __shfl_sync(~0u, upstreams, row);
        const bool part = rows->part >> row & 1;
        double factor[VECTOR_MOST_FACTORS];
        real x[loss::ELEMENTS][COUNT][ORDER_OWN_LANES];
        const int own_at = loss::LABELS ? __shfl_sync(~0u, rows->own_at, row) : -1;
#pragma unroll
        for (int i = 0; i < VECTOR_MOST_FACTORS; i++)
            factor[i] = __shfl_sync(~0u, factors[i], row);
        read_lines<loss::VECTOR_COUNT, LINES, COUNT, false>(job, rows, begin, x);
        place_own_of_lines<loss, LINES, COUNT>(rows, begin, own_at, (real)factor[VECTOR_OWN_ELEMENT], x);
#pragma unroll
        for (int k = 0; k < loss::VECTOR_COUNT; k++) {
            const int which = CUDA_VECTOR_GRADIENT + k;
            if (!job->data[which])
                continue;
#pragma unroll
            for (int i = 0; i < COUNT; i++) {
                real slope[ORDER_OWN_LANES];
                EACH_OWN {
                    const real operand[] = OWN_OPERANDS(x, i, own);
                    const bool is_own = own_at < 0 || element_of(rows, begin + i) + own == own_at;
                    const real own_slope = slope_of<loss>(k, operand, parameter, factor, is_own);
                    slope[own] = !part ? 0 : upstream != 1 ? canonical(own_slope * upstream) : own_slope;
                }
                if (is_in_rows(job, rows, rows->here, begin + i))
                    write_four(job, which, dense_address(job, which, rows->first + row, element_of(rows, begin + i)),
                               slope);
            }
        }
    }
}

/* ------------------------------------------------------------------ rows -- */

template <typename loss, int LINES> ALWAYS_INLINE void run_narrow_rows(const cuda_vector *job) {
    constexpr int ROWS = ORDER_LINES / LINES;
    const place_in_block at = here_in_block();
    OWN_PARAMETERS(parameter, true);
#pragma unroll 1
    for (int64_t first = ((int64_t)blockIdx.x * at.warps + at.warp) * ROWS; first < job->rows;
         first += (int64_t)gridDim.x * at.warps * ROWS) {
        const int64_t row = first + at.thread;
        const bool is_here = at.thread < ROWS && row < job->rows, part = is_here && row_takes_part(job, row);
        narrow_rows<LINES> rows;
        rows.first = first;
        rows.here = __ballot_sync(~0u, is_here);
        rows.part = __ballot_sync(~0u, part);
        rows.thread = at.thread;
        rows.full = rows.part == (1u << ROWS) - 1 && job->length == LINES * ORDER_LANES;
        const own_class label = part ? find_own<loss>(job, row) : (own_class){-1, 0};
        rows.own_at = (int)label.at;
        rows.own_x = label.x;
        double sum[VECTOR_MOST_SUMS] = {0, 0, 0}, factor[VECTOR_MOST_FACTORS] = {0, 0, 0};
        if (rows.full)
            sum_rows<loss, LINES, true>(job, parameter, &rows, sum);
        else
            sum_rows<loss, LINES, false>(job, parameter, &rows, sum);
        if (is_here)
            finish_vectors<loss>(job, parameter, row, sum, NULL, factor);
        if (job->has_gradient)
            write_rows<loss, LINES>(job, parameter, &rows, factor, part ? row_upstream(job, row) : 1);
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
