/*
 * Losses that look at the label's number alone: a thread has a row, and all threads of a block fill the gradients of
 * its rows.
 */
#ifndef ONEPASS_CUDA_ROWS_PICKED_H
#define ONEPASS_CUDA_ROWS_PICKED_H

#include "cuda/rows/any.h"

#define PICKED_WARPS   4
#define PICKED_THREADS (PICKED_WARPS * ORDER_WARP)

/* A row's gradient: one number at the label, another elsewhere. */
typedef struct picked_row {
    int64_t label, gradient;
    real own, others;
} picked_row;

template <typename loss> ALWAYS_INLINE picked_row pick(const cuda_row *job, const row *row, int64_t index) {
    row_slopes slopes = {};
    if (row->part == ROW_COUNTS) {
        row_sums sums = {};
        sums.nll = -(double)row_logit(job, row);
        sums.weight = row->class_weight;
        sums.classes = (double)job->classes;
        loss::row(&sums, job->parameter, &slopes);
    }
    const double otherwise = row->part == ROW_BAD ? WIDE_NAN : 0;
    const real own = canonical((real)(slopes.own * (row->weight * per_divisor_of(job))));
    picked_row picked;
    picked.label = row->part == ROW_COUNTS ? row->label : -1;
    picked.gradient = row->gradient;
    picked.own = row->upstream != 1 ? canonical(own * row->upstream) : own;
    picked.others = canonical((real)otherwise);
    write_term(job, index, row->part == ROW_COUNTS ? slopes.value * row->weight : otherwise);
    return picked;
}

ALWAYS_INLINE void fill_picked(const cuda_row *job, int count, const picked_row *rows) {
    const int64_t classes = job->classes;
    int64_t c = threadIdx.x % classes;
    int i = (int)(threadIdx.x / classes);
    const int64_t classes_a_step = PICKED_THREADS % classes;
    const int rows_a_step = (int)(PICKED_THREADS / classes);
#pragma unroll 4
    while (i < count) {
        const picked_row *row = &rows[i];
        store_one(job->dtype[CUDA_ROW_GRADIENT], job->data[CUDA_ROW_GRADIENT],
                  row->gradient + c * job->gradient_stride[0], c == row->label ? row->own : row->others);
        c += classes_a_step;
        i += rows_a_step;
        if (c >= classes) {
            c -= classes;
            i++;
        }
    }
}

template <typename loss> ALWAYS_INLINE void run_picked(const cuda_row *job) {
    __shared__ picked_row picked[PICKED_THREADS];
    if (is_done_before(job))
        return;
    const row_group group = group_of_block(job);
    if ((int)threadIdx.x < group.count) {
        const row own = describe_row_here<ROW_LABEL>(job, group.first + threadIdx.x);
        picked[threadIdx.x] = pick<loss>(job, &own, group.first + threadIdx.x);
    }
    __syncthreads();
    if (job->data[CUDA_ROW_GRADIENT] && job->classes > 0)
        fill_picked(job, group.count, picked);
}

#endif
