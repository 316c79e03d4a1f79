/*
 * Rows of few classes on their way, by code that is made for their number: between memory and shared memory, where they
 * come as they lie outside, row behind row or, as in images, class behind class, 16 bytes at a time whatever their
 * type, and between there and the registers of the thread that has a row.
 */
#ifndef ONEPASS_CUDA_ROWS_SIZED_DATA_H
#define ONEPASS_CUDA_ROWS_SIZED_DATA_H

#include "cuda/rows/few.h"

#if !defined(ONEPASS_REAL_F64)

/* Sizes are those that are common, and some between: each is code to be compiled. A size has no more than three classes
 * of -inf; nothing is asked about the others. */
template <int size> struct sized {
    static constexpr int LESS = size == 32   ? 28
                                : size == 28 ? 24
                                : size == 24 ? 22
                                : size == 22 ? 20
                                : size == 16 ? 12
                                : size == 12 ? 10
                                : size == 10 ? 8
                                : size == 8  ? 4
                                             : 2;
    static constexpr int CERTAIN = size - 3;
};

#define EACH_SIZED _Pragma("unroll") for (int c = 0; c < size; c++)
#define EACH_PAIR  _Pragma("unroll") for (int i = 0; i < size / 2; i++)

/* What a block knows all the time. */
typedef struct sized_block {
    bool in_one_piece, has_floats, has_f16, has_parameters;
    int classes;
    int bytes, pitch;
    int step; /* numbers from class to class */
    int room; /* bytes of a warp's rows */
    real upstream;
    double common; /* what all slopes are multiplied by */
} sized_block;

/* Bytes of a number, and, in shared memory, numbers from row to row. */
ALWAYS_INLINE int sized_bytes(const cuda_row *job) {
    return job->dtype[CUDA_ROW_INPUT] == ONEPASS_F32 ? 4 : 2;
}

ALWAYS_INLINE int sized_pitch(const cuda_row *job) {
    const int classes = (int)job->classes;
    return job->dtype[CUDA_ROW_INPUT] == ONEPASS_F32 ? few_pitch(classes) : classes;
}

template <bool writes> ALWAYS_INLINE sized_block sized_block_of(const cuda_row *job) {
    sized_block block;
    block.in_one_piece = job->group;
    block.has_floats = job->dtype[CUDA_ROW_INPUT] == ONEPASS_F32;
    block.has_f16 = job->dtype[CUDA_ROW_INPUT] == ONEPASS_F16;
    block.has_parameters = job->has_parameters;
    block.bytes = sized_bytes(job);
    block.classes = (int)job->classes;
    block.pitch = block.in_one_piece ? sized_pitch(job) : 1;
    block.step = block.in_one_piece ? 1 : ORDER_WARP;
    block.room = (block.in_one_piece ? block.pitch : block.classes) * ORDER_WARP * block.bytes;
    block.upstream = upstream_of_all(job);
    block.common = writes ? per_divisor_of(job) * job->softmax.scale.per_temperature : 0;
    return block;
}

/* ------------------------------------------------------ to and from memory -- */

/* The vectors of a warp's rows that a lane moves, those that it has for certain without a question. */
#define EACH_SIZED_VECTOR                                                                                              \
    _Pragma("unroll") for (int k = 0; 16 * k < size * bytes; k++) if (16 * (k + 1) <= sized<size>::CERTAIN * bytes ||  \
                                                                      lane + k * ORDER_WARP < 2 * bytes * classes)

/* The thread's place in its warp, found out anew: what follows from it is not kept in registers for all rows. */
ALWAYS_INLINE int lane_anew(void) {
    return anew((int)threadIdx.x) & (ORDER_WARP - 1);
}

/* Where such a vector is in shared memory, in bytes. */
template <int size, int bytes> ALWAYS_INLINE int sized_place(int classes, int vector) {
    if constexpr (bytes == 4 && size % 8 == 0) {
        if (classes == size)
            return vector / (size / 4) * ((size + 4) * bytes) + vector % (size / 4) * 16;
    }
    return vector * 16;
}

ALWAYS_INLINE void copy_number(int bytes, char *to, int i, const char *from, int64_t j) {
    if (bytes == 4)
        send_one((real *)to + i, (const real *)from + j);
    else
        ((uint16_t *)to)[i] = ((const uint16_t *)from)[j];
}

/* Fewer rows than a warp has threads, one number at a time. */
ONCE_A_ROW void send_loosely(const cuda_row *job, int count, int64_t offset, char *to) {
    const int lane = lane_anew(), classes = (int)job->classes, stride = (int)job->class_stride[0];
    const int bytes = sized_bytes(job), pitch = sized_pitch(job);
    const char *from = (const char *)job->data[CUDA_ROW_INPUT];
    if (job->group) {
#pragma unroll 4
        for (int i = lane; i < count * classes; i += ORDER_WARP)
            copy_number(bytes, to, i / classes * pitch + i % classes, from, offset + i);
    } else if (lane < count) {
#pragma unroll 4
        for (int c = 0; c < classes; c++)
            copy_number(bytes, to, c * ORDER_WARP + lane, from, offset + (int64_t)c * stride);
    }
}

ONCE_A_ROW void leave_loosely(const cuda_row *job, int count, int64_t offset, const char *from) {
    const int lane = lane_anew(), classes = (int)job->classes, stride = (int)job->gradient_stride[0];
    const int bytes = sized_bytes(job), pitch = sized_pitch(job), step = job->group ? ORDER_WARP : 1;
    char *to = (char *)job->data[CUDA_ROW_GRADIENT];
    const int numbers = job->group ? count * classes : lane < count ? classes : 0;
#pragma unroll 4
    for (int i = job->group ? lane : 0; i < numbers; i += step) {
        const int at = job->group ? i / classes * pitch + i % classes : i * ORDER_WARP + lane;
        const int64_t place = job->group ? offset + i : offset + (int64_t)i * stride;
        if (bytes == 4)
            ((uint32_t *)to)[place] = ((const uint32_t *)from)[at];
        else
            ((uint16_t *)to)[place] = ((const uint16_t *)from)[at];
    }
}

/* Where rows lie side by side, a class of a warp's rows is as many vectors as twice the bytes of a number: the class
 * that a lane begins with, from the first on. */
template <int bytes> ALWAYS_INLINE const char *class_of_lane(int lane, const char *from, int stride) {
    const int steps = lane / (2 * bytes);
    return bytes == 4 ? (const char *)stepped((const uint32_t *)from, stride, steps)
                      : (const char *)stepped((const uint16_t *)from, stride, steps);
}

template <int size, int bytes>
ALWAYS_INLINE void send_vectors(const cuda_row *job, const sized_block *block, int64_t offset, char *to) {
    const int lane = lane_anew(), classes = block->classes;
    const char *data = (const char *)job->data[CUDA_ROW_INPUT];
    if (block->in_one_piece) {
        const char *from = data + offset * bytes + lane * 16;
        EACH_SIZED_VECTOR send_vector((real *)(to + sized_place<size, bytes>(classes, lane + k * ORDER_WARP)),
                                      (const real *)(from + k * ORDER_WARP * 16));
    } else {
        const int stride = (int)job->class_stride[0];
        const char *from = data + (offset - lane) * bytes + lane % (2 * bytes) * 16;
        const uint4 *own = (const uint4 *)class_of_lane<bytes>(lane, from, stride);
        EACH_SIZED_VECTOR send_vector((real *)(to + lane * 16 + k * ORDER_WARP * 16),
                                      (const real *)stepped(own, stride, k));
    }
}

template <int size, int bytes>
ALWAYS_INLINE void leave_vectors(const cuda_row *job, const sized_block *block, int64_t offset, const char *from) {
    const int lane = lane_anew(), classes = block->classes;
    char *data = (char *)job->data[CUDA_ROW_GRADIENT];
    if (block->in_one_piece) {
        char *to = data + offset * bytes + lane * 16;
        EACH_SIZED_VECTOR __stcs((uint4 *)(to + k * ORDER_WARP * 16),
                                 *(const uint4 *)(from + sized_place<size, bytes>(classes, lane + k * ORDER_WARP)));
    } else {
        const int stride = (int)job->gradient_stride[0];
        char *to = data + (offset - lane) * bytes + lane % (2 * bytes) * 16;
        uint4 *own = (uint4 *)class_of_lane<bytes>(lane, to, stride);
        EACH_SIZED_VECTOR __stcs(stepped(own, stride, k), *(const uint4 *)(from + lane * 16 + k * ORDER_WARP * 16));
    }
}

/* Floats of rows side by side that begin anywhere: a thread has its own row. */
template <int size> ALWAYS_INLINE void send_classes(const cuda_row *job, int64_t offset, real *to) {
    const int stride = (int)job->class_stride[0], lane = lane_anew();
    const real *from = (const real *)job->data[CUDA_ROW_INPUT] + offset;
    EACH_SIZED if (c < sized<size>::CERTAIN || c < job->classes)
        send_one(to + c * ORDER_WARP + lane, stepped(from, stride, c));
}

template <int size> ALWAYS_INLINE void leave_classes(const cuda_row *job, int64_t offset, const real *from) {
    const int stride = (int)job->gradient_stride[0], lane = lane_anew();
    real *to = (real *)job->data[CUDA_ROW_GRADIENT] + offset;
    EACH_SIZED if (c < sized<size>::CERTAIN || c < job->classes) * stepped(to, stride, c) = from[c * ORDER_WARP + lane];
}

template <int size>
ALWAYS_INLINE void send_sized(const cuda_row *job, const sized_block *block, int count, int64_t offset, char *to) {
    if (count < ORDER_WARP)
        send_loosely(job, count, offset, to);
    else if (!block->has_floats)
        send_vectors<size, 2>(job, block, offset, to);
    else if (block->in_one_piece || job->in_vectors)
        send_vectors<size, 4>(job, block, offset, to);
    else
        send_classes<size>(job, offset, (real *)to);
}

template <int size>
ALWAYS_INLINE void leave_sized(const cuda_row *job, const sized_block *block, int count, int64_t offset,
                               const char *from) {
    __syncwarp();
    if (count < ORDER_WARP)
        leave_loosely(job, count, offset, from);
    else if (!block->has_floats)
        leave_vectors<size, 2>(job, block, offset, from);
    else if (block->in_one_piece || job->in_vectors)
        leave_vectors<size, 4>(job, block, offset, from);
    else
        leave_classes<size>(job, offset, (const real *)from);
}

/* --------------------------------------------------------------- registers -- */

/* A number of a row between its place and a register. */
ALWAYS_INLINE real read_number(const sized_block *block, const char *at) {
    return block->has_floats ? *(const real *)at
           : block->has_f16  ? f32_of_f16(*(const uint16_t *)at)
                             : f32_of_bf16(*(const uint16_t *)at);
}

ALWAYS_INLINE void write_number(const sized_block *block, char *at, real x) {
    if (block->has_floats)
        *(real *)at = x;
    else
        *(uint16_t *)at = (uint16_t)narrow(block->has_f16, x);
}

template <int size> ALWAYS_INLINE void read_floats(const sized_block *block, const real *own, real *x) {
    if (!block->in_one_piece) {
        EACH_SIZED x[c] = c < sized<size>::CERTAIN || c < block->classes ? own[c * ORDER_WARP] : -REAL_INFINITY;
    } else if (block->classes != size) {
        EACH_SIZED x[c] = c < sized<size>::CERTAIN || c < block->classes ? own[c] : -REAL_INFINITY;
    } else if (size % 4 == 0) {
#pragma unroll
        for (int c = 0; c < size; c += 4)
            unpack_vector(*(const vector *)(own + c), x + c);
    } else {
        EACH_PAIR {
            const two_reals two = *(const two_reals *)(own + 2 * i);
            x[2 * i] = two.x;
            x[2 * i + 1] = two.y;
        }
    }
}

template <int size> ALWAYS_INLINE void write_floats(const sized_block *block, const real *x, real *own) {
    if (!block->in_one_piece) {
        EACH_SIZED if (c < sized<size>::CERTAIN || c < block->classes) own[c * ORDER_WARP] = x[c];
    } else if (block->classes != size) {
        EACH_SIZED if (c < sized<size>::CERTAIN || c < block->classes) own[c] = x[c];
    } else if (size % 4 == 0) {
#pragma unroll
        for (int c = 0; c < size; c += 4)
            *(vector *)(own + c) = pack_vector(x + c);
    } else {
        EACH_PAIR *(two_reals *)(own + 2 * i) = make_two(x[2 * i], x[2 * i + 1]);
    }
}

/* 16-bit numbers, two of them in a word. */
template <int size> ALWAYS_INLINE void read_words(const sized_block *block, const uint16_t *own, uint32_t *word) {
    const uint32_t none = block->has_f16 ? 0xfc00u : 0xff80u;
    if (block->in_one_piece && block->classes == size) {
#pragma unroll
        for (int i = 0; i < size / 2; i += size % 8 == 0 ? 4 : size % 4 == 0 ? 2 : 1) {
            const uint16_t *at = own + 2 * i;
            if (size % 8 == 0) {
                const uint4 four = *(const uint4 *)at;
                word[i] = four.x;
                word[i + 1] = four.y;
                word[i + 2] = four.z;
                word[i + 3] = four.w;
            } else if (size % 4 == 0) {
                const uint2 two = *(const uint2 *)at;
                word[i] = two.x;
                word[i + 1] = two.y;
            } else {
                word[i] = *(const uint32_t *)at;
            }
        }
        return;
    }
    const int step = block->step;
    EACH_PAIR {
        uint32_t first = none, second = none;
        if (2 * i < sized<size>::CERTAIN || 2 * i < block->classes)
            first = own[2 * i * step];
        if (2 * i + 1 < sized<size>::CERTAIN || 2 * i + 1 < block->classes)
            second = own[(2 * i + 1) * step];
        word[i] = first | second << 16;
    }
}

template <int size> ALWAYS_INLINE void write_words(const sized_block *block, const uint32_t *word, uint16_t *own) {
    if (block->in_one_piece && block->classes == size) {
#pragma unroll
        for (int i = 0; i < size / 2; i += size % 8 == 0 ? 4 : size % 4 == 0 ? 2 : 1) {
            uint16_t *at = own + 2 * i;
            if (size % 8 == 0)
                *(uint4 *)at = make_uint4(word[i], word[i + 1], word[i + 2], word[i + 3]);
            else if (size % 4 == 0)
                *(uint2 *)at = make_uint2(word[i], word[i + 1]);
            else
                *(uint32_t *)at = word[i];
        }
        return;
    }
    const int step = block->step;
    EACH_PAIR {
        if (2 * i < sized<size>::CERTAIN || 2 * i < block->classes)
            own[2 * i * step] = (uint16_t)word[i];
        if (2 * i + 1 < sized<size>::CERTAIN || 2 * i + 1 < block->classes)
            own[(2 * i + 1) * step] = (uint16_t)(word[i] >> 16);
    }
}

template <int size> ALWAYS_INLINE void read_sized(const sized_block *block, const char *own, real *x) {
    if (block->has_floats) {
        read_floats<size>(block, (const real *)own, x);
        return;
    }
    uint32_t word[size / 2];
    read_words<size>(block, (const uint16_t *)own, word);
    if (block->has_f16)
        EACH_SIZED x[c] = f32_of_f16((uint16_t)(word[c / 2] >> c % 2 * 16));
    else
        EACH_SIZED x[c] = f32_of(c % 2 ? word[c / 2] & 0xffff0000u : word[c / 2] << 16);
}

template <int size> ALWAYS_INLINE void write_sized(const sized_block *block, bool calm, const real *x, char *own) {
    if (block->has_floats) {
        write_floats<size>(block, x, (real *)own);
        return;
    }
    uint32_t word[size / 2];
    if (block->has_f16 && calm)
        EACH_PAIR word[i] = pair_of_f16(x[2 * i], x[2 * i + 1], true);
    else if (block->has_f16)
        EACH_PAIR word[i] = pair_of_f16(x[2 * i], x[2 * i + 1], false);
    else if (calm)
        EACH_PAIR word[i] = pair_of_bf16(x[2 * i], x[2 * i + 1], true);
    else
        EACH_PAIR word[i] = pair_of_bf16(x[2 * i], x[2 * i + 1], false);
    write_words<size>(block, word, (uint16_t *)own);
}

#endif

#endif
