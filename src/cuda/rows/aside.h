/*
 * Rows of more classes than registers hold, of one tile, which lie side by side as in images: a thread has a row and
 * walks over its classes, neighbouring threads over neighbouring numbers. It does so twice, and once more for a
 * gradient; what was read once lies in the cache.
 */
#ifndef ONEPASS_CUDA_ROWS_ASIDE_H
#define ONEPASS_CUDA_ROWS_ASIDE_H

#include "cuda/rows/few.h"

/* Classes whose logits are in flight at the same time. */
#define ASIDE_SOME   8
#define EACH_OF_SOME _Pragma("unroll") for (int k = 0; k < ASIDE_SOME; k++)

/* A thread's row: its first class, and what its exponentials are made with. */
typedef struct aside_row {
    const void *from;
    int64_t offset, stride;
    int classes, label;
    softmax base;
    softmax_shift shift;
} aside_row;

template <load_function load> ALWAYS_INLINE real aside_logit(const aside_row *row, int c) {
    return c < row->classes ? load(row->from, row->offset + c * row->stride) : -REAL_INFINITY;
}

/* The label's exponential is left out. */
ALWAYS_INLINE real aside_term(const aside_row *row, int c, real z) {
    const real term = softmax_exponential(&row->base, &row->shift, z - row->shift.anchor);
    return c == row->label ? 0 : term;
}

template <load_function load> ALWAYS_INLINE real aside_largest(const aside_row *row) {
    real largest = -REAL_INFINITY;
#pragma unroll 1
    for (int first = 0; first < row->classes; first += ASIDE_SOME) {
        real z[ASIDE_SOME];
        EACH_OF_SOME z[k] = aside_logit<load>(row, first + k);
        EACH_OF_SOME largest = larger_or_nan(largest, z[k]);
    }
    return largest;
}

/* Step 3 of the order for one lane of a tile that has more than two lines. */
template <load_function load> ONCE_A_ROW real aside_long_lane(const aside_row *row, int lane) {
    real x[ORDER_LINES];
    EACH_LINE x[line] = aside_logit<load>(row, line * ORDER_LANES + lane);
    EACH_LINE x[line] = aside_term(row, line * ORDER_LANES + lane, x[line]);
    return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
}

/* Eight lanes, 16 apart, in the order in which the tree by halves meets them. */
template <load_function load> ALWAYS_INLINE double aside_lanes(const aside_row *row, int first) {
    const int lane[ASIDE_SOME] = {first,      first + 64, first + 32, first + 96,
                                  first + 16, first + 80, first + 48, first + 112};
    real x[ASIDE_SOME], next[ASIDE_SOME];
    if (row->classes > 2 * ORDER_LANES) {
        const aside_row copy = *row;
#pragma unroll 1
        for (int k = 0; k < ASIDE_SOME; k++)
            x[k] = aside_long_lane<load>(&copy, lane[k]);
    } else {
        EACH_OF_SOME x[k] = aside_logit<load>(row, lane[k]);
        EACH_OF_SOME next[k] = aside_logit<load>(row, lane[k] + ORDER_LANES);
        EACH_OF_SOME x[k] = aside_term(row, lane[k], x[k]);
        if (row->classes > ORDER_LANES)
            EACH_OF_SOME x[k] = x[k] + aside_term(row, lane[k] + ORDER_LANES, next[k]);
    }
    return (((double)x[0] + (double)x[1]) + ((double)x[2] + (double)x[3])) +
           (((double)x[4] + (double)x[5]) + ((double)x[6] + (double)x[7]));
}

/* The sum of a tile in the order, but for the label: its lanes by bit-reversed numbers. */
template <load_function load> ALWAYS_INLINE double aside_sum(const aside_row *row) {
    double sum = 0, node[4] = {};
#pragma unroll 1
    for (int i = 0; i < 16; i++) {
        const int first = (i & 1) << 3 | (i & 2) << 1 | (i & 4) >> 1 | (i & 8) >> 3;
        sum = first < row->classes ? aside_lanes<load>(row, first) : 0;
#pragma unroll
        for (int level = 0; level < 4; level++) {
            if (!(i >> level & 1)) {
                node[level] = sum;
                break;
            }
            sum = node[level] + sum;
        }
    }
    return sum;
}

/* From logits to slopes. */
template <load_function load>
ALWAYS_INLINE void aside_gradient(const cuda_row *job, const aside_row *row, int64_t gradient,
                                  const few_slopes *slopes) {
#pragma unroll 1
    for (int first = 0; first < row->classes; first += ASIDE_SOME) {
        real x[ASIDE_SOME];
        EACH_OF_SOME x[k] = slopes->plain ? aside_logit<load>(row, first + k) : 0;
        EACH_OF_SOME {
            const real e = softmax_exponential(&row->base, &row->shift, x[k] - row->shift.anchor);
            real slope = canonical(e * slopes->f);
            if (slopes->upstream != 1)
                slope = canonical(slope * slopes->upstream);
            slope = slopes->plain ? slope : slopes->otherwise;
            x[k] = first + k == row->label ? slopes->own : slope;
        }
        EACH_OF_SOME if (first + k < row->classes)
            store_one(job->dtype[CUDA_ROW_GRADIENT], job->data[CUDA_ROW_GRADIENT],
                      gradient + (first + k) * job->gradient_stride[0], x[k]);
    }
}

template <typename loss, load_function load> ALWAYS_INLINE void run_aside_row(const cuda_row *job, int64_t index) {
    const row row = describe_row_here<ROW_LABEL>(job, index);
    const bool counts = row.part == ROW_COUNTS;
    const real label_logit = row_logit(job, &row);
    aside_row own = {
        job->data[CUDA_ROW_INPUT], row.input, job->class_stride[0], (int)job->classes, counts ? (int)row.label : -1,
        softmax_of_job(job),       {}};
    row_sum sum = {};
    if (counts) {
        own.shift = shift_of(job, aside_largest<load>(&own));
        sum.exponent = own.shift.exponent;
        sum.good = own.shift.exponent - own.shift.exponent == 0;
        sum.largest = own.shift.largest;
        sum.label_logit = label_logit;
        sum.others = aside_sum<load>(&own);
        sum.own = (double)softmax_exponential(&own.base, &own.shift, label_logit - own.shift.anchor);
    }
    if (job->data[CUDA_ROW_GRADIENT]) {
        const few_slopes slopes = few_slopes_of<loss>(job, per_divisor_of(job), &row, &sum);
        aside_gradient<load>(job, &own, row.gradient, &slopes);
    }
    finish_row_here<loss>(job, &row, index, &sum);
}

template <typename loss, load_function load> ALWAYS_INLINE void run_aside_rows(const cuda_row *job) {
#pragma unroll 1
    for (int64_t index = (int64_t)blockIdx.x * FEW_THREADS + threadIdx.x; index < job->rows;
         index += (int64_t)gridDim.x * FEW_THREADS)
        run_aside_row<loss, load>(job, index);
}

template <typename loss> ALWAYS_INLINE void run_aside(const cuda_row *job) {
    if (is_done_before(job))
        return;
    switch (job->dtype[CUDA_ROW_INPUT]) {
    case ONEPASS_F32:
        run_aside_rows<loss, load_f32>(job);
        break;
    case ONEPASS_BF16:
        run_aside_rows<loss, load_bf16>(job);
        break;
    default: /* a double would be computed with in double */
        run_aside_rows<loss, load_f16>(job);
    }
}

#endif
