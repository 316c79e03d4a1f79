/*
 * The prediction of each row: the class of its largest number, the first of equals, or of the first NaN. A warp has a
 * row, or a thread has one where its classes lie apart or are few.
 */
#ifndef ONEPASS_CUDA_ROWS_PREDICTED_H
#define ONEPASS_CUDA_ROWS_PREDICTED_H

#include "cuda/rows/row.h"

typedef struct candidate {
    real z;
    int64_t index; /* -1: none */
} candidate;

ALWAYS_INLINE bool is_better(real z, int64_t index, const candidate *than) {
    if (index < 0 || than->index < 0)
        return index >= 0;
    const bool nan = z != z, than_nan = than->z != than->z;
    if (nan != than_nan)
        return nan;
    if (!nan && z != than->z)
        return z > than->z;
    return index < than->index;
}

/* The best of every so many classes from `first` on. */
template <load_function load>
ALWAYS_INLINE candidate best_of_some(const cuda_row *job, int64_t input, int64_t first, int64_t step) {
    candidate best = {0, -1};
#pragma unroll 4
    for (int64_t c = first; c < job->classes; c += step) {
        const real z = load(job->data[CUDA_ROW_INPUT], input + c * job->class_stride[0]);
        if (best.index < 0 || z > best.z || (z != z && best.z == best.z))
            best = (candidate){z, c};
    }
    return best;
}

ALWAYS_INLINE candidate best_of_row(const cuda_row *job, int64_t input, int64_t first, int64_t step) {
    switch (job->dtype[CUDA_ROW_INPUT]) {
    case ONEPASS_F16:
        return best_of_some<load_f16>(job, input, first, step);
    case ONEPASS_BF16:
        return best_of_some<load_bf16>(job, input, first, step);
    case ONEPASS_F32:
        return best_of_some<load_f32>(job, input, first, step);
    default:
        return best_of_some<load_f64>(job, input, first, step);
    }
}

/* -1 of rows that take no part. */
ALWAYS_INLINE void write_predicted(const cuda_row *job, int64_t row, int64_t predicted) {
    int64_t label;
    const bool has_labels = job->dtype[CUDA_ROW_TARGET] > ONEPASS_F64;
    const int part =
        has_labels ? row_part_of<ROW_LABEL>(job, row, &label) : row_part_of<ROW_PROBABILITIES>(job, row, &label);
    *(int64_t *)row_address(job, CUDA_ROW_PREDICTED, row) = part == ROW_IGNORED ? -1 : predicted;
}

ALWAYS_INLINE void run_row_predicted(const cuda_row *job) {
    const int64_t own = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const int64_t row = job->group == 1 ? own : own / ORDER_WARP;
    const int thread = threadIdx.x % ORDER_WARP;
    if (row >= job->rows)
        return;
    const int64_t input = row_offset(job, CUDA_ROW_INPUT, row);
    if (job->group == 1) {
        write_predicted(job, row, best_of_row(job, input, 0, 1).index);
        return;
    }
    candidate best = best_of_row(job, input, thread, ORDER_WARP);
    for (int distance = ORDER_WARP / 2; distance > 0; distance /= 2) {
        const real z = __shfl_xor_sync(~0u, best.z, distance);
        const int64_t index = __shfl_xor_sync(~0u, (long long)best.index, distance);
        if (is_better(z, index, &best))
            best = (candidate){z, index};
    }
    if (thread == 0)
        write_predicted(job, row, best.index);
}

#endif
