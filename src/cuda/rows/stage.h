/*
 * Between memory and the registers of threads that have a row of few classes each, through shared memory: a line of as
 * many rows as a block has threads comes while the one before it is computed. Rows that lie one behind the other come
 * and go in one piece, so that neighbouring threads move neighbouring numbers; where neighbouring rows are neighbours
 * in memory, as in images, threads do so anyway.
 */
#ifndef ONEPASS_CUDA_ROWS_STAGE_H
#define ONEPASS_CUDA_ROWS_STAGE_H

#include "cuda/async.h"
#include "cuda/rows/dense.h"

#define FEW_WARPS   4
#define FEW_THREADS (FEW_WARPS * ORDER_WARP)

ALWAYS_INLINE real load_few(const void *data, int32_t dtype, int64_t i) {
    return dtype == ONEPASS_F32    ? ((const float *)data)[i]
           : dtype == ONEPASS_BF16 ? load_bf16(data, i)
           : dtype == ONEPASS_F16  ? load_f16(data, i)
                                   : load_f64(data, i);
}

/* -------------------------------------------------------- rows in one piece -- */

/* An element, or a vector, of rows that lie without gaps: its row, and its place there. */
typedef struct few_place {
    int row, inside;
} few_place;

ALWAYS_INLINE void few_step(int length, int rows_a_step, int inside_a_step, few_place *at) {
    at->row += rows_a_step;
    at->inside += inside_a_step;
    if (at->inside >= length) {
        at->inside -= length;
        at->row++;
    }
}

/* Those of a thread, of `count` rows of such a length. */
#define EACH_FEW(count, length)                                                                                        \
    few_place at = {(int)threadIdx.x / (length), (int)threadIdx.x % (length)};                                         \
    const int rows_a_step = FEW_THREADS / (length), inside_a_step = FEW_THREADS % (length);                            \
    _Pragma("unroll 4") for (int i = threadIdx.x; i < (count) * (length);                                              \
                             i += FEW_THREADS, few_step(length, rows_a_step, inside_a_step, &at))

/* Rows in one piece lie in shared memory as they do outside, but so far apart that what neighbouring threads read of
 * theirs, vectors, pairs or single numbers, is in different banks. */
ALWAYS_INLINE int few_pitch(int classes) {
    return CUDA_FEW_PITCH(classes);
}

/* Whether they are moved four at a time, where there is one for each thread. */
ALWAYS_INLINE bool is_plain_few(const cuda_row *job, int which) {
    return sizeof(real) == sizeof(float) && job->dtype[which] == ONEPASS_F32 && (uintptr_t)job->data[which] % 16 == 0;
}

/* The vectors of a thread, of rows that lie so in shared memory, too. */
#define EACH_FEW_VECTOR                                                                                                \
    _Pragma("unroll") for (int k = 0; k < most / 4;                                                                    \
                           k++) if ((int)threadIdx.x + k * FEW_THREADS < FEW_THREADS / 4 * classes)

template <int most>
ALWAYS_INLINE void fill_few(const cuda_row *job, const void *from, bool plain, int count, real *buffer) {
    const int classes = anew((int)job->classes), pitch = few_pitch(classes);
    if (!plain || count < FEW_THREADS) {
        EACH_FEW(count, classes) buffer[at.row * pitch + at.inside] = load_few(from, job->dtype[CUDA_ROW_INPUT], i);
    } else if (pitch == classes) {
        real *to = buffer + 4 * threadIdx.x;
        const real *own = (const real *)from + 4 * threadIdx.x;
        EACH_FEW_VECTOR send_vector(to + 4 * k * FEW_THREADS, own + 4 * k * FEW_THREADS);
    } else {
        EACH_FEW(count, classes / 4) send_vector(buffer + at.row * pitch + 4 * at.inside, (const real *)from + 4 * i);
    }
}

template <int most>
ALWAYS_INLINE void empty_few(const cuda_row *job, int64_t first, bool plain, int count, const real *buffer) {
    const int classes = anew((int)job->classes), pitch = few_pitch(classes);
    const int32_t dtype = job->dtype[CUDA_ROW_GRADIENT];
    void *to = (char *)job->data[CUDA_ROW_GRADIENT] + first * classes * (int64_t)dtype_size(dtype);
    if (!plain || count < FEW_THREADS) {
        EACH_FEW(count, classes) store_one(dtype, to, i, buffer[at.row * pitch + at.inside]);
    } else if (pitch == classes) {
        const real *from = buffer + 4 * threadIdx.x;
        vector *own = (vector *)to + threadIdx.x;
        EACH_FEW_VECTOR __stcs(own + k * FEW_THREADS, *(const vector *)(from + 4 * k * FEW_THREADS));
    } else {
        EACH_FEW(count, classes / 4)
        __stcs((vector *)to + i, *(const vector *)(buffer + at.row * pitch + 4 * at.inside));
    }
}

/* --------------------------------------------------------- rows side by side -- */

/* A thread's row is a column of its own. Whole fours ask nothing for each class. */
#define EACH_FOUR_CLASSES(whole, partly)                                                                               \
    _Pragma("unroll") for (int four = 0; four < most; four += 4) {                                                     \
        if (four + 4 <= classes)                                                                                       \
            _Pragma("unroll") for (int c = four; c < four + 4; c++) {                                                  \
                whole;                                                                                                 \
            }                                                                                                          \
        else if (four < classes)                                                                                       \
            _Pragma("unroll") for (int c = four; c < four + 4; c++) {                                                  \
                partly;                                                                                                \
            }                                                                                                          \
    }

/* An address by one instruction, which compilers take two or three for. */
template <typename number> ALWAYS_INLINE number *stepped(number *from, int stride, int steps) {
#if defined(__CUDACC__)
    number *to;
    asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(to) : "r"(stride), "r"(steps * (int)sizeof(number)), "l"(from));
    return to;
#else
    return from + (int64_t)steps * stride;
#endif
}

template <int most, load_function load>
ALWAYS_INLINE void fill_column(int classes, const void *from, int stride, real *own) {
    EACH_FOUR_CLASSES(own[c * FEW_THREADS] = load(from, (int64_t)c * stride),
                      if (c < classes) own[c * FEW_THREADS] = load(from, (int64_t)c * stride))
}

template <int most> ALWAYS_INLINE void send_column(int classes, const real *from, int stride, real *own) {
    EACH_FOUR_CLASSES(send_one(own + c * FEW_THREADS, stepped(from, stride, c)),
                      if (c < classes) send_one(own + c * FEW_THREADS, stepped(from, stride, c)))
}

template <int most> ALWAYS_INLINE void fill_aside(const cuda_row *job, int64_t offset, real *own) {
    const int classes = (int)job->classes, stride = anew((int)job->class_stride[0]);
    const char *from = (const char *)job->data[CUDA_ROW_INPUT];
    switch (job->dtype[CUDA_ROW_INPUT]) {
    case ONEPASS_F32:
        send_column<most>(classes, (const real *)from + offset, stride, own);
        break;
    case ONEPASS_BF16:
        fill_column<most, load_bf16>(classes, from + offset * 2, stride, own);
        break;
    default: /* a double would be computed with in double */
        fill_column<most, load_f16>(classes, from + offset * 2, stride, own);
    }
}

/* ----------------------------------------------------------------- registers -- */

/* A row between its places and registers. What is set under a condition alone would take registers for all rows. */
#if defined(ONEPASS_REAL_F64)
typedef double2 two_reals;
#define make_two make_double2
#else
typedef float2 two_reals;
#define make_two make_float2
#endif

template <int most> ALWAYS_INLINE void read_few(bool in_one_piece, int classes, const real *own, real *x) {
#pragma unroll
    for (int c = 0; c < most; c++)
        x[c] = 0;
    if (!in_one_piece) {
        EACH_FOUR_CLASSES(x[c] = own[c * FEW_THREADS], x[c] = c < classes ? own[c * FEW_THREADS] : -REAL_INFINITY)
    } else if (classes % 4 == 0 && VECTOR == 4) {
#pragma unroll
        for (int four = 0; four < most; four += 4)
            if (four < classes)
                unpack_vector(*(const vector *)(own + four), x + four);
    } else if (classes % 2 == 0) {
#pragma unroll
        for (int four = 0; four < most; four += 4)
            if (four < classes) {
                const bool whole = four + 4 <= classes;
                const two_reals first = *(const two_reals *)(own + four), none = {-REAL_INFINITY, -REAL_INFINITY};
                const two_reals second = whole ? *(const two_reals *)(own + four + 2) : none;
                x[four] = first.x;
                x[four + 1] = first.y;
                x[four + 2] = second.x;
                x[four + 3] = second.y;
            }
    } else {
        EACH_FOUR_CLASSES(x[c] = own[c], x[c] = c < classes ? own[c] : -REAL_INFINITY)
    }
}

template <int most> ALWAYS_INLINE void write_few(int classes, const real *x, real *own) {
    if (classes % 4 == 0 && VECTOR == 4) {
#pragma unroll
        for (int four = 0; four < most; four += 4)
            if (four < classes)
                *(vector *)(own + four) = pack_vector(x + four);
    } else if (classes % 2 == 0) {
#pragma unroll
        for (int c = 0; c < most; c += 2)
            if (c < classes)
                *(two_reals *)(own + c) = make_two(x[c], x[c + 1]);
    } else {
        EACH_FOUR_CLASSES(own[c] = x[c], if (c < classes) own[c] = x[c])
    }
}

#endif
