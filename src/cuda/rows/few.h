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

/* Classes go by fours, so that nothing is asked for each: those of the last four that the row does not have are -inf.
 */
#define EACH_CLASS                                                                                                     \
    _Pragma("unroll") for (int four = 0; four < most; four += 4) if (four < classes)                                   \
        _Pragma("unroll") for (int c = four; c < four + 4; c++)

ALWAYS_INLINE real load_few(const void *data, int32_t dtype, int64_t i) {
    return dtype == ONEPASS_F32    ? ((const float *)data)[i]
           : dtype == ONEPASS_BF16 ? load_bf16(data, i)
           : dtype == ONEPASS_F16  ? load_f16(data, i)
                                   : load_f64(data, i);
}

/* ------------------------------------------------------- rows in one piece -- */

/* An element of rows that lie without gaps, by row and class. */
typedef struct few_place {
    int row, class_index;
} few_place;

/* The places of a row: a class of neighbouring rows, or a pair of classes, is in different banks. */
ALWAYS_INLINE int few_pitch(int classes) {
    return classes % 4 == 0 ? classes + 2 : classes;
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

/* The same by twos, of an even number of classes. */
#define EACH_PAIR                                                                                                      \
    _Pragma("unroll") for (int four = 0; four < most; four += 4) if (four < classes)                                   \
        _Pragma("unroll") for (int c = four; c < four + 4; c += 2)
#if defined(ONEPASS_REAL_F64)
typedef double2 two_reals;
#define make_two make_double2
#else
typedef float2 two_reals;
#define make_two make_float2
#endif

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

/* A row between its places and registers. */
template <int most> ALWAYS_INLINE void read_few(int classes, const real *own, real *x) {
    if (classes % 2 == 0) {
        EACH_PAIR {
            const two_reals two =
                c < classes ? *(const two_reals *)(own + c) : make_two(-REAL_INFINITY, -REAL_INFINITY);
            x[c] = two.x;
            x[c + 1] = two.y;
        }
    } else {
        EACH_CLASS x[c] = c < classes ? own[c] : -REAL_INFINITY;
    }
}

template <int most> ALWAYS_INLINE void write_few(int classes, const real *x, real *own) {
    if (classes % 2 == 0) {
        EACH_PAIR if (c < classes) * (two_reals *)(own + c) = make_two(x[c], x[c + 1]);
    } else {
        EACH_CLASS if (c < classes) own[c] = x[c];
    }
}

/* -------------------------------------------------------------------- a row -- */

template <int half> ALWAYS_INLINE void add_upper_half(double *sum) {
#pragma unroll
    for (int c = 0; c < half; c++)
        sum[c] = sum[c] + sum[c + half];
}

/* The order's tree over lanes of which only the first have a term. */
template <int most> ALWAYS_INLINE double sum_of_few(int classes, const real *x) {
    double sum[most / 2] = {};
    EACH_CLASS {
        if (c < most / 2)
            sum[c] = (double)x[c];
        else
            sum[c - most / 2] = sum[c - most / 2] + (double)x[c];
    }
    if (most > 16 && classes > 8)
        add_upper_half<most / 4>(sum);
    if (classes > 4)
        add_upper_half<4>(sum);
    add_upper_half<2>(sum);
    return sum[0] + sum[1];
}

/* The logits of all classes but the label's become exponentials. */
template <int most>
ALWAYS_INLINE void sum_few(const cuda_row *job, real label_logit, softmax_shift *shift, real *x, row_sum *sum) {
    const int classes = (int)job->classes;
    const softmax softmax = softmax_of_job(job);
    real largest = label_logit;
    EACH_CLASS largest = larger_or_nan(largest, x[c]);
    *shift = shift_of(job, largest);
    if (shift->anchor != 0)
        EACH_CLASS x[c] = x[c] - shift->anchor;
    EACH_CLASS x[c] = softmax_exponential(&softmax, shift, x[c]);
    sum->exponent = shift->exponent;
    sum->good = shift->exponent - shift->exponent == 0;
    sum->largest = shift->largest;
    sum->label_logit = label_logit;
    sum->others = sum_of_few<most>(classes, x);
    sum->own = (double)softmax_exponential(&softmax, shift, label_logit - shift->anchor);
    sum->weights = sum->weighted = 0;
}

/* What becomes of a row's exponentials; a row that has no softmax, or takes no part, has one number for all. */
typedef struct few_slopes {
    real f, own, upstream, otherwise;
    bool plain;
} few_slopes;

template <typename loss>
ALWAYS_INLINE few_slopes few_slopes_of(const cuda_row *job, const row *row, const row_sum *sum) {
    few_slopes slopes = {0, 0, row->upstream, row->part == ROW_IGNORED ? 0 : REAL_NAN, false};
    if (row->part != ROW_COUNTS)
        return slopes;
    const row_factors factors = factors_of_row<loss>(job, per_divisor_of(job), row, sum);
    slopes.f = (real)factors.of_exponentials;
    slopes.own = canonical(factors.own);
    slopes.plain = sum->good;
    if (row->upstream != 1)
        slopes.own = canonical(slopes.own * row->upstream);
    if (!slopes.plain)
        slopes.own = slopes.otherwise;
    return slopes;
}

template <int most> ALWAYS_INLINE void few_gradient(int classes, const few_slopes *slopes, real *x) {
    const real f = slopes->f, upstream = slopes->upstream;
    if (slopes->plain && is_finite(f) && upstream == 1) {
        EACH_CLASS x[c] = x[c] * f;
    } else if (slopes->plain) {
        EACH_CLASS {
            x[c] = canonical(x[c] * f);
            if (upstream != 1)
                x[c] = canonical(x[c] * upstream);
        }
    } else {
        EACH_CLASS x[c] = slopes->otherwise;
    }
}

/* ---------------------------------------------------------- rows side by side -- */

/* A loop for each type: one that asks for the type each time would be too long to be unrolled. */
template <int most, load_function load>
ALWAYS_INLINE void load_each_class(int classes, const void *from, int64_t offset, int64_t stride, real *x) {
    EACH_CLASS x[c] = c < classes ? load(from, offset + c * stride) : -REAL_INFINITY;
}

template <int most> ALWAYS_INLINE void load_few_classes(const cuda_row *job, int64_t offset, real *x) {
    const int classes = (int)job->classes;
    const void *from = job->data[CUDA_ROW_INPUT];
    switch (job->dtype[CUDA_ROW_INPUT]) {
    case ONEPASS_F32:
        load_each_class<most, load_f32>(classes, from, offset, job->class_stride[0], x);
        break;
    case ONEPASS_BF16:
        load_each_class<most, load_bf16>(classes, from, offset, job->class_stride[0], x);
        break;
    default: /* a double would be computed with in double */
        load_each_class<most, load_f16>(classes, from, offset, job->class_stride[0], x);
    }
}

template <int most, int dtype>
ALWAYS_INLINE void store_each_class(int classes, void *to, int64_t offset, int64_t stride, const real *x) {
    EACH_CLASS if (c < classes) store_one(dtype, to, offset + c * stride, x[c]);
}

template <int most> ALWAYS_INLINE void store_few_classes(const cuda_row *job, int64_t offset, const real *x) {
    const int classes = (int)job->classes;
    void *to = job->data[CUDA_ROW_GRADIENT];
    switch (job->dtype[CUDA_ROW_GRADIENT]) {
    case ONEPASS_F32:
        store_each_class<most, ONEPASS_F32>(classes, to, offset, job->gradient_stride[0], x);
        break;
    case ONEPASS_BF16:
        store_each_class<most, ONEPASS_BF16>(classes, to, offset, job->gradient_stride[0], x);
        break;
    case ONEPASS_F16:
        store_each_class<most, ONEPASS_F16>(classes, to, offset, job->gradient_stride[0], x);
        break;
    default:
        store_each_class<most, ONEPASS_F64>(classes, to, offset, job->gradient_stride[0], x);
    }
}

/* ---------------------------------------------------------------------- rows -- */

/* Whose classes come and go through shared memory: the label's place is read, and then taken by what stands for no
 * class, and in the end by its slope. */
template <int most> ALWAYS_INLINE void read_staged(const row *row, int classes, real *own, real *label_logit, real *x) {
    if (row->part == ROW_COUNTS) {
        *label_logit = own[row->label];
        own[row->label] = -REAL_INFINITY;
    }
    read_few<most>(classes, own, x);
}

template <int most>
ALWAYS_INLINE void write_staged(const row *row, int classes, const few_slopes *slopes, const real *x, real *own) {
    write_few<most>(classes, x, own);
    if (row->part == ROW_COUNTS)
        own[row->label] = slopes->own;
}

/* The others' come and go straight. */
template <int most> ALWAYS_INLINE void read_aside(const cuda_row *job, const row *row, real *label_logit, real *x) {
    const int classes = (int)job->classes, label = row->part == ROW_COUNTS ? (int)row->label : -1;
    load_few_classes<most>(job, row->input, x);
    EACH_CLASS {
        *label_logit = c == label ? x[c] : *label_logit;
        x[c] = c == label ? -REAL_INFINITY : x[c];
    }
}

template <int most>
ALWAYS_INLINE void write_aside(const cuda_row *job, const row *row, const few_slopes *slopes, real *x) {
    const int classes = (int)job->classes, label = row->part == ROW_COUNTS ? (int)row->label : -1;
    EACH_CLASS x[c] = c == label ? slopes->own : x[c];
    store_few_classes<most>(job, row->gradient, x);
}

/* A row of the thread's own, in its place in shared memory if it is staged. */
template <typename loss, bool writes, int most>
ALWAYS_INLINE void run_few_row(const cuda_row *job, int64_t index, const row *row, real *staged) {
    const int classes = (int)job->classes;
    real x[most], label_logit = -REAL_INFINITY;
    row_sum sum = {};
    softmax_shift shift;
    if (staged)
        read_staged<most>(row, classes, staged, &label_logit, x);
    else
        read_aside<most>(job, row, &label_logit, x);
    if (row->part == ROW_COUNTS)
        sum_few<most>(job, label_logit, &shift, x, &sum);
    if (writes) {
        const few_slopes slopes = few_slopes_of<loss>(job, row, &sum);
        few_gradient<most>(classes, &slopes, x);
        if (staged)
            write_staged<most>(row, classes, &slopes, x, staged);
        else
            write_aside<most>(job, row, &slopes, x);
    }
    finish_row_here<loss>(job, row, index, &sum);
}

/* Blocks take turns where there are fewer of them than rows ask for. */
template <typename loss, bool writes, int most> ALWAYS_INLINE void run_few(const cuda_row *job) {
    __shared__ __align__(16) real buffer[FEW_THREADS * (most + 2)];
    if (writes && is_done_before(job))
        return;
    const bool is_staged = job->group;
    real *staged = is_staged ? buffer + threadIdx.x * few_pitch((int)job->classes) : NULL;
#pragma unroll 1
    for (int64_t first = (int64_t)blockIdx.x * FEW_THREADS; first < job->rows;
         first += (int64_t)gridDim.x * FEW_THREADS) {
        const int64_t left = job->rows - first, index = first + threadIdx.x;
        const int count = left < FEW_THREADS ? (int)left : FEW_THREADS;
        row row = {};
        if (is_staged)
            fill_few(job, first, count, buffer);
        if ((int)threadIdx.x < count)
            row = describe_row_here<ROW_LABEL>(job, index);
        if (is_staged)
            __syncthreads();
        if ((int)threadIdx.x < count)
            run_few_row<loss, writes, most>(job, index, &row, staged);
        if (is_staged)
            __syncthreads();
        if (writes && is_staged) {
            empty_few(job, first, count, buffer);
            __syncthreads();
        }
    }
}

#endif
