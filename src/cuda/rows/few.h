/*
 * Rows of few classes: a thread has a row, with all its classes in registers. Rows that lie one behind the other come
 * and go through shared memory, so that neighbouring threads move neighbouring numbers; where neighbouring rows are
 * neighbours in memory, as in images, threads do so anyway.
 */
#ifndef ONEPASS_CUDA_ROWS_FEW_H
#define ONEPASS_CUDA_ROWS_FEW_H

#include "cuda/rows/dense.h"

#define FEW_WARPS   4
#define FEW_THREADS (FEW_WARPS * ORDER_WARP)
#define EACH_CLASS  _Pragma("unroll") for (int c = 0; c < CUDA_FEW_CLASSES; c++)

ALWAYS_INLINE real load_few(const void *data, int32_t dtype, int64_t i) {
    return dtype == ONEPASS_F32    ? ((const float *)data)[i]
           : dtype == ONEPASS_BF16 ? load_bf16(data, i)
           : dtype == ONEPASS_F16  ? load_f16(data, i)
                                   : load_f64(data, i);
}

/* ------------------------------------------------------- rows in one piece -- */

/* An element of rows that lie without gaps, by row and class. A row has an odd number of places, so that a class of
 * neighbouring rows is in different banks. */
typedef struct few_place {
    int row, class_index;
} few_place;

ALWAYS_INLINE int few_pitch(int classes) {
    return classes | 1;
}

ALWAYS_INLINE void few_step(int classes, int rows_a_step, int classes_a_step, few_place *at) {
    at->row += rows_a_step;
    at->class_index += classes_a_step;
    if (at->class_index >= classes) {
        at->class_index -= classes;
        at->row++;
    }
}

#define EACH_FEW_ELEMENT(count)                                                                                        \
    few_place at = {(int)threadIdx.x / classes, (int)threadIdx.x % classes};                                           \
    const int rows_a_step = FEW_THREADS / classes, classes_a_step = FEW_THREADS % classes;                             \
    _Pragma("unroll 4") for (int i = threadIdx.x; i < (count);                                                         \
                             i += FEW_THREADS, few_step(classes, rows_a_step, classes_a_step, &at))

ALWAYS_INLINE void fill_few(const cuda_row *job, int64_t first, int count, real *buffer) {
    const int classes = (int)job->classes, pitch = few_pitch(classes);
    const int32_t dtype = job->dtype[CUDA_ROW_INPUT];
    const void *from = (const char *)job->data[CUDA_ROW_INPUT] + first * classes * (int64_t)dtype_size(dtype);
    EACH_FEW_ELEMENT(count * classes) buffer[at.row * pitch + at.class_index] = load_few(from, dtype, i);
}

ALWAYS_INLINE void empty_few(const cuda_row *job, int64_t first, int count, const real *buffer) {
    const int classes = (int)job->classes, pitch = few_pitch(classes);
    const int32_t dtype = job->dtype[CUDA_ROW_GRADIENT];
    void *to = (char *)job->data[CUDA_ROW_GRADIENT] + first * classes * (int64_t)dtype_size(dtype);
    EACH_FEW_ELEMENT(count * classes) store_one(dtype, to, i, buffer[at.row * pitch + at.class_index]);
}

/* -------------------------------------------------------------------- a row -- */

/* The order's tree over lanes of which only the first have a term. */
ALWAYS_INLINE double sum_of_few(const real *x) {
    double sum[CUDA_FEW_CLASSES / 2];
#pragma unroll
    for (int c = 0; c < CUDA_FEW_CLASSES / 2; c++)
        sum[c] = (double)x[c] + (double)x[c + CUDA_FEW_CLASSES / 2];
#pragma unroll
    for (int half = CUDA_FEW_CLASSES / 4; half > 0; half /= 2)
#pragma unroll
        for (int c = 0; c < half; c++)
            sum[c] = sum[c] + sum[c + half];
    return sum[0];
}

ALWAYS_INLINE real largest_of_few(int classes, const real *x) {
    real largest = -REAL_INFINITY;
    bool has_nan = false;
    EACH_CLASS if (c < classes) {
        largest = softmax_larger(x[c], largest);
        has_nan |= x[c] != x[c];
    }
    return has_nan ? REAL_NAN : largest;
}

/* Logits become exponentials; the label's is apart. */
ALWAYS_INLINE void sum_few(const cuda_row *job, const row_rules *rules, const row *row, softmax_shift *shift, real *x,
                           row_result *result) {
    const int classes = (int)job->classes;
    row_facts *facts = &result->facts;
    const real largest = largest_of_few(classes, x);
    *shift = softmax_shift_of(&rules->base, &job->scale, largest);
    begin_facts(job, row, facts);
    result->good = begin_join(job, rules, largest, facts);
    EACH_CLASS {
        const real z = c < classes && c != (int)row->label ? x[c] - shift->anchor : -REAL_INFINITY;
        x[c] = softmax_exponential(&rules->base, shift, z);
    }
    facts->row.others = sum_of_few(x);
    facts->row.own = own_part(job, rules, largest, row->label_logit, facts->row.exponent);
    facts->row.weights = facts->weighted = 0;
}

template <typename loss>
ALWAYS_INLINE void few_gradient(const cuda_row *job, const row_rules *rules, const row *row, const softmax_shift *shift,
                                row_result *result, real *x) {
    row_factors factors = {};
    real f = 0;
    if (row->part == ROW_COUNTS) {
        factors = factors_of_row<loss>(job, rules, row, &result->facts);
        f = row_tile_factor(&factors, shift->exponent, result->facts.row.exponent);
    }
    const bool plain = row->part == ROW_COUNTS && result->good;
    const real otherwise = row->part == ROW_IGNORED ? 0 : REAL_NAN;
    EACH_CLASS {
        real slope = canonical(c == (int)row->label ? factors.own : x[c] * f);
        if (row->upstream != 1)
            slope = canonical(slope * row->upstream);
        x[c] = plain ? slope : otherwise;
    }
}

/* ---------------------------------------------------------------------- rows -- */

template <typename loss, bool writes> ALWAYS_INLINE void run_few(const cuda_row *job) {
    __shared__ real buffer[FEW_THREADS * (CUDA_FEW_CLASSES + 1)];
    if (writes && is_done_before(job))
        return;
    const row_rules rules = row_rules_of(job);
    const int classes = (int)job->classes, pitch = few_pitch(classes);
    const int64_t first = (int64_t)blockIdx.x * FEW_THREADS, left = job->rows - first, index = first + threadIdx.x;
    const int count = left < FEW_THREADS ? (int)left : FEW_THREADS;
    const bool is_row = (int)threadIdx.x < count, is_staged = job->group;
    row row = {};
    if (is_row)
        row = describe_row_of<ROW_LABEL>(job, &rules, index);
    real x[CUDA_FEW_CLASSES];
    if (is_staged) {
        fill_few(job, first, count, buffer);
        __syncthreads();
    }
    if (is_row) {
        const void *input = job->data[CUDA_ROW_INPUT];
        const int32_t dtype = job->dtype[CUDA_ROW_INPUT];
        EACH_CLASS x[c] = c >= classes ? 0
                          : is_staged  ? buffer[threadIdx.x * pitch + c]
                                       : load_few(input, dtype, row.input + c * job->class_stride[0]);
    }
    row_result result = {};
    softmax_shift shift = {};
    if (is_row && row.part == ROW_COUNTS)
        sum_few(job, &rules, &row, &shift, x, &result);
    if (writes) {
        if (is_row)
            few_gradient<loss>(job, &rules, &row, &shift, &result, x);
        if (is_staged && is_row) {
            EACH_CLASS if (c < classes) buffer[threadIdx.x * pitch + c] = x[c];
        } else if (is_row) {
            EACH_CLASS if (c < classes) store_one(job->dtype[CUDA_ROW_GRADIENT], job->data[CUDA_ROW_GRADIENT],
                                                  row.gradient + c * job->gradient_stride[0], x[c]);
        }
        if (is_staged) {
            __syncthreads();
            empty_few(job, first, count, buffer);
        }
    }
    if (is_row)
        finish_row<loss>(job, &rules, &row, index, &result);
}

#endif
