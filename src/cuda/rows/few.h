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

/* An element of rows that lie without gaps, by row and class. A row has a number of places that puts a class of
 * neighbouring rows into different banks. */
typedef struct few_place {
    int row, class_index;
} few_place;

ALWAYS_INLINE int few_pitch(int classes) {
    return classes % 4 == 0 ? classes + 1 : classes; /* two rows in one bank do little harm */
}

/* Whole blocks of floats without gaps between rows are moved four at a time. */
ALWAYS_INLINE bool is_plain_few(const cuda_row *job, int which, int count) {
    return job->dtype[which] == ONEPASS_F32 && job->classes % 4 != 0 && count == FEW_THREADS &&
           (uintptr_t)job->data[which] % 16 == 0;
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
#if !defined(ONEPASS_REAL_F64)
    if (is_plain_few(job, CUDA_ROW_INPUT, count)) {
#pragma unroll 4
        for (int i = threadIdx.x; i < FEW_THREADS / 4 * classes; i += FEW_THREADS)
            ((vector *)buffer)[i] = __ldcs((const vector *)from + i);
        return;
    }
#endif
    EACH_FEW_ELEMENT(count * classes) buffer[at.row * pitch + at.class_index] = load_few(from, dtype, i);
}

ALWAYS_INLINE void empty_few(const cuda_row *job, int64_t first, int count, const real *buffer) {
    const int classes = (int)job->classes, pitch = few_pitch(classes);
    const int32_t dtype = job->dtype[CUDA_ROW_GRADIENT];
    void *to = (char *)job->data[CUDA_ROW_GRADIENT] + first * classes * (int64_t)dtype_size(dtype);
#if !defined(ONEPASS_REAL_F64)
    if (is_plain_few(job, CUDA_ROW_GRADIENT, count)) {
#pragma unroll 4
        for (int i = threadIdx.x; i < FEW_THREADS / 4 * classes; i += FEW_THREADS)
            __stcs((vector *)to + i, ((const vector *)buffer)[i]);
        return;
    }
#endif
    EACH_FEW_ELEMENT(count * classes) store_one(dtype, to, i, buffer[at.row * pitch + at.class_index]);
}

/* -------------------------------------------------------------------- a row -- */

/* The order's tree over lanes of which only the first have a term. */
ALWAYS_INLINE double sum_of_few(int classes, const real *x) {
    double sum[CUDA_FEW_CLASSES / 2];
#pragma unroll
    for (int c = 0; c < CUDA_FEW_CLASSES / 2; c++) {
        sum[c] = 0;
        if (c < classes)
            sum[c] = (double)x[c];
        if (c + CUDA_FEW_CLASSES / 2 < classes)
            sum[c] = sum[c] + (double)x[c + CUDA_FEW_CLASSES / 2];
    }
#pragma unroll
    for (int half = CUDA_FEW_CLASSES / 4; half > 0; half /= 2)
#pragma unroll
        for (int c = 0; c < half; c++)
            sum[c] = sum[c] + sum[c + half];
    return sum[0];
}

ALWAYS_INLINE real largest_of_few(int classes, const real *x) {
    real largest = -REAL_INFINITY;
    EACH_CLASS if (c < classes) largest = larger_or_nan(largest, x[c]);
    return largest;
}

/* Logits become exponentials; the label's is apart. */
ALWAYS_INLINE void sum_few(const cuda_row *job, const row *row, softmax_shift *shift, real *x, row_sum *sum) {
    const int classes = (int)job->classes, label = (int)row->label;
    const softmax softmax = softmax_of_job(job);
    const real largest = largest_of_few(classes, x);
    real label_logit = -REAL_INFINITY;
    EACH_CLASS if (c < classes) label_logit = c == label ? x[c] : label_logit;
    *shift = shift_of(job, largest);
    begin_join(job, largest, label_logit, sum);
    EACH_CLASS if (c < classes) {
        const real z = c != label ? x[c] - shift->anchor : -REAL_INFINITY;
        x[c] = softmax_exponential(&softmax, shift, z);
    }
    sum->others = sum_of_few(classes, x);
    sum->own = own_part(job, largest, label_logit, sum->exponent);
    sum->weights = sum->weighted = 0;
}

template <typename loss>
ALWAYS_INLINE void few_gradient(const cuda_row *job, const row *row, const softmax_shift *shift, const row_sum *sum,
                                real *x) {
    row_factors factors = {};
    real f = 0;
    const int classes = (int)job->classes, label = (int)row->label;
    if (row->part == ROW_COUNTS) {
        factors = factors_of_row<loss>(job, per_divisor_of(job), row, sum);
        f = row_tile_factor(&factors, shift->exponent, sum->exponent);
    }
    const bool plain = row->part == ROW_COUNTS && sum->good;
    const real otherwise = row->part == ROW_IGNORED ? 0 : REAL_NAN;
    EACH_CLASS if (c < classes) {
        real slope = canonical(c == label ? factors.own : x[c] * f);
        if (row->upstream != 1)
            slope = canonical(slope * row->upstream);
        x[c] = plain ? slope : otherwise;
    }
}

/* ---------------------------------------------------------- rows side by side -- */

/* A loop for each type: one that asks for the type each time would be too long to be unrolled. */
template <load_function load>
ALWAYS_INLINE void load_each_class(int classes, const void *from, int64_t offset, int64_t stride, real *x) {
    EACH_CLASS if (c < classes) x[c] = load(from, offset + c * stride);
}

ALWAYS_INLINE void load_few_classes(const cuda_row *job, int64_t offset, real *x) {
    const int classes = (int)job->classes;
    const void *from = job->data[CUDA_ROW_INPUT];
    switch (job->dtype[CUDA_ROW_INPUT]) {
    case ONEPASS_F32:
        load_each_class<load_f32>(classes, from, offset, job->class_stride[0], x);
        break;
    case ONEPASS_BF16:
        load_each_class<load_bf16>(classes, from, offset, job->class_stride[0], x);
        break;
    default: /* a double would be computed with in double */
        load_each_class<load_f16>(classes, from, offset, job->class_stride[0], x);
    }
}

template <int dtype>
ALWAYS_INLINE void store_each_class(int classes, void *to, int64_t offset, int64_t stride, const real *x) {
    EACH_CLASS if (c < classes) store_one(dtype, to, offset + c * stride, x[c]);
}

ALWAYS_INLINE void store_few_classes(const cuda_row *job, int64_t offset, const real *x) {
    const int classes = (int)job->classes;
    void *to = job->data[CUDA_ROW_GRADIENT];
    switch (job->dtype[CUDA_ROW_GRADIENT]) {
    case ONEPASS_F32:
        store_each_class<ONEPASS_F32>(classes, to, offset, job->gradient_stride[0], x);
        break;
    case ONEPASS_BF16:
        store_each_class<ONEPASS_BF16>(classes, to, offset, job->gradient_stride[0], x);
        break;
    case ONEPASS_F16:
        store_each_class<ONEPASS_F16>(classes, to, offset, job->gradient_stride[0], x);
        break;
    default:
        store_each_class<ONEPASS_F64>(classes, to, offset, job->gradient_stride[0], x);
    }
}

/* ---------------------------------------------------------------------- rows -- */

template <typename loss, bool writes> ALWAYS_INLINE void run_few(const cuda_row *job) {
    __shared__ __align__(16) real buffer[FEW_THREADS * (CUDA_FEW_CLASSES + 1)];
    if (writes && is_done_before(job))
        return;
    const int classes = (int)job->classes, pitch = few_pitch(classes);
    const int64_t first = (int64_t)blockIdx.x * FEW_THREADS, left = job->rows - first, index = first + threadIdx.x;
    const int count = left < FEW_THREADS ? (int)left : FEW_THREADS;
    const bool is_row = (int)threadIdx.x < count, is_staged = job->group;
    row row = {};
    real x[CUDA_FEW_CLASSES] = {};
    if (is_staged) {
        fill_few(job, first, count, buffer);
        __syncthreads();
    }
    if (is_row)
        row = describe_row_here<ROW_LABEL>(job, index);
    if (is_row && is_staged) {
        EACH_CLASS if (c < classes) x[c] = buffer[threadIdx.x * pitch + c];
    } else if (is_row) {
        load_few_classes(job, row.input, x);
    }
    row_sum sum = {};
    softmax_shift shift = {};
    if (is_row && row.part == ROW_COUNTS)
        sum_few(job, &row, &shift, x, &sum);
    if (writes) {
        if (is_row)
            few_gradient<loss>(job, &row, &shift, &sum, x);
        if (is_staged && is_row) {
            EACH_CLASS if (c < classes) buffer[threadIdx.x * pitch + c] = x[c];
        } else if (is_row) {
            store_few_classes(job, row.gradient, x);
        }
        if (is_staged) {
            __syncthreads();
            empty_few(job, first, count, buffer);
        }
    }
    if (is_row)
        finish_row_here<loss>(job, &row, index, &sum);
}

#endif
