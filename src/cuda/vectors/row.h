/*
 * A row as the kernels of vector losses see it: what it is multiplied by, and from its sums to its value and the
 * factors of its slopes.
 */
#ifndef ONEPASS_CUDA_VECTORS_ROW_H
#define ONEPASS_CUDA_VECTORS_ROW_H

#include "cuda/combine.h"
#include "cuda/vectors/tile.h"

ALWAYS_INLINE char *row_address(const cuda_vector *job, int which, int64_t row) {
    return vector_address(job, which, vector_place(job, which, row).offset);
}

ALWAYS_INLINE double row_number(const cuda_vector *job, int which, int64_t row, double otherwise) {
    return job->data[which] ? load_scalar(row_address(job, which, row), job->dtype[which]) : otherwise;
}

ALWAYS_INLINE bool row_takes_part(const cuda_vector *job, int64_t row) {
    return row_number(job, CUDA_VECTOR_MASK, row, 1) != 0;
}

ALWAYS_INLINE real row_upstream(const cuda_vector *job, int64_t row) {
    return (real)row_number(job, CUDA_VECTOR_UPSTREAM, job->reduction == ONEPASS_NONE ? row : 0, 1);
}

/* Nothing is to be done where the upstream gradient is 1. */
ALWAYS_INLINE bool is_done_before(const cuda_vector *job) {
    return job->skip_if_one && row_upstream(job, 0) == 1;
}

/* One over what a mean is divided by. */
ALWAYS_INLINE double per_divisor_of(const cuda_vector *job) {
    const char *workspace = (const char *)job->total.workspace;
    return job->reduction != ONEPASS_MEAN ? 1
           : job->over_weights            ? 1 / *(const double *)(workspace + CUDA_WEIGHTS_AT)
                                          : 1 / job->divisor;
}

ALWAYS_INLINE double *in_workspace(const cuda_vector *job, int64_t at) {
    return (double *)((char *)job->total.workspace + at);
}

/* The row of a chunk. */
ALWAYS_INLINE int64_t divide_by_chunks(const cuda_vector *job, int64_t chunk) {
    return job->chunks == 1 ? chunk : divide(chunk, &job->by_chunks);
}

/* From the row's sums; leaves its term or value, and the factors of its slopes. The twin of src/cpu/vectors.c. */
template <typename loss>
ALWAYS_INLINE void finish_vectors(const cuda_vector *job, const double *parameter, int64_t row, const double *sum,
                                  double *factor) {
    const bool any = job->length > 0; /* else the sums are of nothing, which is +0 */
    vector_sums sums = {{any ? sum[0] : 0, any && loss::SUMS > 1 ? sum[1] : 0, any && loss::SUMS > 2 ? sum[2] : 0}, 0};
    vector_slopes slopes = {0, {0, 0, 0}};
    double value = 0;
    if (row_takes_part(job, row)) {
        const double weight = row_number(job, CUDA_VECTOR_WEIGHT, row, 1);
        const double scale = job->reduction == ONEPASS_MEAN ? weight * per_divisor_of(job) : weight;
        if (loss::VECTOR_COUNT < loss::OPERANDS)
            sums.number = load_number(row_address(job, CUDA_VECTOR_OPERAND + loss::VECTOR_COUNT, row),
                                      job->dtype[CUDA_VECTOR_OPERAND + loss::VECTOR_COUNT]);
        loss::row(&sums, parameter, &slopes);
        value = slopes.value * weight;
#pragma unroll
        for (int i = 0; i < VECTOR_MOST_FACTORS; i++)
            slopes.factor[i] = slopes.factor[i] * scale;
    }
    if (job->terms_at)
        ((real *)in_workspace(job, job->terms_at))[row] = canonical((real)value);
    if (job->reduction == ONEPASS_NONE && job->data[CUDA_VECTOR_VALUE])
        store_scalar(row_address(job, CUDA_VECTOR_VALUE, row), job->dtype[CUDA_VECTOR_VALUE], value);
#pragma unroll
    for (int i = 0; i < VECTOR_MOST_FACTORS; i++)
        factor[i] = slopes.factor[i];
}

#endif
