/*
 * Between memory and a warp's registers, the general way: numbers of any type and at any strides are brought into
 * shared memory, by loops that are short in code. Types, strides and broadcasting end here, by branches that all
 * threads of a warp take together.
 */
#ifndef ONEPASS_CUDA_PAIRWISE_VIEWS_H
#define ONEPASS_CUDA_PAIRWISE_VIEWS_H

#include "cuda/pairwise/tile.h"

/* -------------------------------------------------- through shared memory -- */

typedef real (*load_function)(const void *data, int64_t i);

ALWAYS_INLINE void store_one(int32_t dtype, void *data, int64_t i, real x) {
    switch (dtype) {
    case ONEPASS_F16:
        ((uint16_t *)data)[i] = sizeof x == sizeof(float) ? f16_of_f32((float)x) : f16_of_f64((double)x);
        break;
    case ONEPASS_BF16:
        ((uint16_t *)data)[i] = sizeof x == sizeof(float) ? bf16_of_f32((float)x) : bf16_of_f64((double)x);
        break;
    case ONEPASS_F32:
        ((float *)data)[i] = (float)x;
        break;
    default:
        ((double *)data)[i] = (double)x;
    }
}

/* The tile's numbers by vectors, all in flight at once, and one by one those that do not fill a vector. */
ALWAYS_INLINE void fill_by_vectors(const tile *tile, const real *from, real *buffer) {
    numbers read[ORDER_LINES];
    EACH_LINE EACH_VECTOR {
        const int element = own_element(tile, line, i * VECTOR);
        read[line].at[i] = zero_vector();
        if (element + VECTOR <= tile->count)
            read[line].at[i] = *(const vector *)(from + element);
    }
    EACH_LINE EACH_VECTOR {
        const int element = own_element(tile, line, i * VECTOR);
        if (element + VECTOR <= tile->count)
            *(vector *)(buffer + element) = read[line].at[i];
    }
    const int rest = tile->count / VECTOR * VECTOR + tile->thread;
    if (rest < tile->count)
        buffer[rest] = from[rest];
}

#if !defined(ONEPASS_REAL_F64)
ALWAYS_INLINE void fill_by_half_vectors(const tile *tile, int32_t dtype, const uint16_t *from, real *buffer) {
    uint2 read[ORDER_LINES];
    EACH_LINE {
        const int element = own_element(tile, line, 0);
        read[line] = make_uint2(0, 0);
        if (element + 4 <= tile->count)
            read[line] = *(const uint2 *)(from + element);
    }
    EACH_LINE {
        const int element = own_element(tile, line, 0);
        real x[ORDER_OWN_LANES];
        unpack_half(dtype == ONEPASS_F16, read[line], x);
        if (element + 4 <= tile->count)
            write_line(tile, buffer, line, x);
    }
    const int rest = tile->count / 4 * 4 + tile->thread;
    if (rest < tile->count)
        buffer[rest] = dtype == ONEPASS_F16 ? load_f16(from, rest) : load_bf16(from, rest);
}
#endif

template <load_function load>
ALWAYS_INLINE void fill_one_by_one(const tile *tile, const void *from, int64_t stride, real *buffer) {
#pragma unroll 8
    for (int i = tile->thread; i < tile->count; i += ORDER_WARP)
        buffer[i] = load(from, i * stride);
}

/* A tile that lies in one row. */
ALWAYS_INLINE void fill_from_row(const tile *tile, int32_t dtype, const void *from, int64_t stride, real *buffer) {
    const bool dense = stride == 1;
    if (dense && dtype == REAL_DTYPE && (uintptr_t)from % 16 == 0)
        fill_by_vectors(tile, (const real *)from, buffer);
#if !defined(ONEPASS_REAL_F64)
    else if (dense && dtype < ONEPASS_F32 && (uintptr_t)from % 8 == 0)
        fill_by_half_vectors(tile, dtype, (const uint16_t *)from, buffer);
#endif
    else if (dtype == ONEPASS_F16)
        fill_one_by_one<load_f16>(tile, from, stride, buffer);
    else if (dtype == ONEPASS_BF16)
        fill_one_by_one<load_bf16>(tile, from, stride, buffer);
    else if (dtype == ONEPASS_F32)
        fill_one_by_one<load_f32>(tile, from, stride, buffer);
    else if (dtype == ONEPASS_BOOL)
        fill_one_by_one<load_bool>(tile, from, stride, buffer);
    else
        fill_one_by_one<load_f64>(tile, from, stride, buffer);
}

/* ----------------------------------------------------------- general views -- */

/* Where an element of a view lies, and how much of the view's innermost row is left from there on. */
typedef struct place {
    int64_t offset;
    int64_t left;
} place;

ALWAYS_INLINE place place_of(const cuda_view *view, int64_t element) {
    place at;
    const int inner = view->ndim - 1;
    at.offset = 0;
    at.left = view->extent[inner] - element;
#pragma unroll 1
    for (int d = inner; d > 0; d--) {
        const int64_t outer = divide(element, &view->by[d]);
        const int64_t index = element - outer * view->extent[d];
        if (d == inner)
            at.left = view->extent[d] - index;
        at.offset += index * view->stride[d];
        element = outer;
    }
    at.offset += element * view->stride[0];
    return at;
}

/* The tile's first element. */
ALWAYS_INLINE int64_t first_element(const cuda_view *view, const tile *tile) {
    return view->first + tile->index * ORDER_TILE;
}

ALWAYS_INLINE void fill_buffer(const cuda_general *job, int which, const tile *tile, real *buffer) {
    const cuda_view *view = &job->view[which];
    const bool is_weight = which == CUDA_WEIGHT;
    const int dtype = is_weight ? job->weight_dtype : job->head.dtype[which], size = (int)dtype_size(dtype);
    const char *data = (const char *)(is_weight ? job->weight : job->head.data[which]);
    const place at = place_of(view, first_element(view, tile));
    if (at.left >= tile->count) {
        fill_from_row(tile, dtype, data + at.offset * size, view->stride[view->ndim - 1], buffer);
        return;
    }
#pragma unroll 4
    for (int i = tile->thread; i < tile->count; i += ORDER_WARP)
        buffer[i] = (real)load_scalar(data + place_of(view, first_element(view, tile) + i).offset * size, dtype);
}

/* Where a tile can be read, or put, line by line as a direct kernel does; null if it must go through shared memory. */
ALWAYS_INLINE real *plain_tile(const cuda_general *job, int which, void *data, int dtype, const tile *tile) {
    const cuda_view *view = &job->view[which];
    const bool plain = dtype == REAL_DTYPE && view->ndim == 1 && view->stride[0] == 1;
    return plain && (uintptr_t)data % 16 == 0 ? (real *)data + tile->index * ORDER_TILE : NULL;
}

ALWAYS_INLINE const real *plain_input(const cuda_general *job, int which, const tile *tile) {
    const bool is_weight = which == CUDA_WEIGHT;
    void *data = is_weight ? job->weight : job->head.data[which];
    if (tile->count < ORDER_TILE)
        return NULL;
    return plain_tile(job, which, data, is_weight ? job->weight_dtype : job->head.dtype[which], tile);
}

ALWAYS_INLINE real *plain_output(const cuda_general *job, int which, const tile *tile) {
    return plain_tile(job, which, job->head.data[which], job->head.dtype[which], tile);
}

ALWAYS_INLINE void empty_buffer(const cuda_general *job, int which, const tile *tile, const real *buffer) {
    const cuda_view *view = &job->view[which];
    const place at = place_of(view, first_element(view, tile));
    const int64_t stride = view->stride[view->ndim - 1];
    const bool one_row = at.left >= tile->count;
#pragma unroll 1
    for (int i = tile->thread; i < tile->count; i += ORDER_WARP)
        store_one(job->head.dtype[which], job->head.data[which],
                  one_row ? at.offset + i * stride : place_of(view, first_element(view, tile) + i).offset, buffer[i]);
}

/* ------------------------------------------------------------------- mask -- */

/* Which of a thread's own elements of a tile take part: a bit each, lines after one another. */
typedef uint32_t part;
#define PART_ALL UINT32_C(0xffffffff)

ALWAYS_INLINE bool takes_part(part part, int line, int own) {
    return part >> (line * ORDER_OWN_LANES + own) & 1;
}

/* Four bytes of a mask at once, as four bits. */
ALWAYS_INLINE part part_of_word(uint32_t bytes) {
    part part = 0;
    EACH_OWN part |= (uint32_t)((bytes >> 8 * own & 0xff) != 0) << own;
    return part;
}

ALWAYS_INLINE part read_mask(const cuda_general *job, const tile *tile) {
    const cuda_view *view = &job->view[CUDA_MASK];
    const unsigned char *mask = (const unsigned char *)job->mask;
    const place at = place_of(view, first_element(view, tile));
    const int64_t stride = view->stride[view->ndim - 1];
    const bool one_row = at.left >= tile->count;
    part part = 0;
    if (sizeof(real) == sizeof(float) && one_row && stride == 1 && tile->count == ORDER_TILE &&
        (uintptr_t)(mask + at.offset) % 4 == 0) {
        uint32_t bytes[ORDER_LINES];
        EACH_LINE bytes[line] = *(const uint32_t *)(mask + at.offset + own_element(tile, line, 0));
        EACH_LINE part |= part_of_word(bytes[line]) << (line * ORDER_OWN_LANES);
        return part;
    }
#pragma unroll 1
    for (int i = 0; i < ORDER_LINES * ORDER_OWN_LANES; i++) {
        const int element = own_element(tile, i / ORDER_OWN_LANES, i % ORDER_OWN_LANES);
        if (element >= tile->count)
            continue;
        const int64_t offset =
            one_row ? at.offset + element * stride : place_of(view, first_element(view, tile) + element).offset;
        part |= (uint32_t)(mask[offset] != 0) << i;
    }
    return part;
}

#endif
