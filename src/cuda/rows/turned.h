/*
 * Between memory and rows side by side of aside.h, for rows that lie one behind the other: of more classes than a
 * thread has registers for, and of so few that a warp for each row would mostly have nothing to do. They come and go in
 * one piece, so that neighbouring threads move neighbouring numbers, and are turned in shared memory.
 */
#ifndef ONEPASS_CUDA_ROWS_TURNED_H
#define ONEPASS_CUDA_ROWS_TURNED_H

#include "cuda/rows/stage.h"

#if !defined(ONEPASS_REAL_F64)

/* Where the numbers of a thread go in shared memory, of rows in one piece. */
typedef struct turned_place {
    few_place at;
    int classes, pitch;
    int rows_a_step, inside_a_step;
} turned_place;

ALWAYS_INLINE turned_place turned_place_of(const cuda_row *job) {
    const int classes = anew((int)job->classes), thread = (int)threadIdx.x, threads = (int)blockDim.x;
    return {{thread / classes, thread % classes},
            classes,
            CUDA_TURNED_PITCH(classes),
            threads / classes,
            threads % classes};
}

ALWAYS_INLINE int next_place(turned_place *place) {
    const int here = place->at.row * place->pitch + place->at.inside;
    few_step(place->classes, place->rows_a_step, place->inside_a_step, &place->at);
    return here;
}

/* Numbers that a thread sends for before it puts down the first. */
#define TURNED_AHEAD 8

#define EACH_AHEAD _Pragma("unroll") for (int k = 0; k < TURNED_AHEAD; k++) if (i + k * threads < count)

template <typename number, typename conversion>
ALWAYS_INLINE void fill_turned_with(const number *from, int count, turned_place place, conversion real_of_number,
                                    real *buffer) {
    const int threads = (int)blockDim.x;
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < count; i += TURNED_AHEAD * threads) {
        number x[TURNED_AHEAD];
        EACH_AHEAD x[k] = from[i + k * threads];
        EACH_AHEAD buffer[next_place(&place)] = real_of_number(x[k]);
    }
}

/* So many rows from that on which begins at `offset`. */
ALWAYS_INLINE void fill_turned(const cuda_row *job, int64_t offset, int rows, real *buffer) {
    const turned_place place = turned_place_of(job);
    const int count = rows * place.classes;
    const void *from = job->data[CUDA_ROW_INPUT];
    if (job->dtype[CUDA_ROW_INPUT] == ONEPASS_F32) /* a double would be computed with in double */
        fill_turned_with((const real *)from + offset, count, place, [](real x) { return x; }, buffer);
    else if (job->dtype[CUDA_ROW_INPUT] == ONEPASS_BF16)
        fill_turned_with((const uint16_t *)from + offset, count, place,
                         [](uint16_t x) { return f32_of((uint32_t)x << 16); }, buffer);
    else
        fill_turned_with((const uint16_t *)from + offset, count, place, [](uint16_t x) { return f32_of_f16(x); },
                         buffer);
}

ALWAYS_INLINE void empty_turned(const cuda_row *job, int64_t offset, int rows, const real *buffer) {
    turned_place place = turned_place_of(job);
    const int count = rows * place.classes, threads = (int)blockDim.x;
    const int32_t dtype = job->dtype[CUDA_ROW_GRADIENT];
    if (dtype == ONEPASS_F32) {
        real *to = (real *)job->data[CUDA_ROW_GRADIENT] + offset;
#pragma unroll 4
        for (int i = (int)threadIdx.x; i < count; i += threads)
            to[i] = buffer[next_place(&place)];
        return;
    }
#pragma unroll 4
    for (int i = (int)threadIdx.x; i < count; i += threads)
        store_one(dtype, job->data[CUDA_ROW_GRADIENT], offset + i, buffer[next_place(&place)]);
}

#endif

#endif
