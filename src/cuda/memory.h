/*
 * Between memory and a warp's registers. Memory types, strides and broadcasting end
 * here, by branches that all threads of a warp take together.
 *
 * The direct way: numbers that lie without gaps at an aligned address are moved by
 * 16-byte accesses (8 bytes for 16-bit types), all of a tile in flight before the
 * first is used. The general way: any others are brought into shared memory first, by
 * loops that are short in code.
 */
#ifndef ONEPASS_CUDA_MEMORY_H
#define ONEPASS_CUDA_MEMORY_H

#include "cuda/gpu.h"
#include "cuda/pairwise.h"
#include "dtype.h"
#include "order.h"

#define EACH_ROW    _Pragma("unroll") for (int row = 0; row < ORDER_LINES; row++)
#define EACH_OWN    _Pragma("unroll") for (int own = 0; own < ORDER_OWN_LANES; own++)
#define EACH_VECTOR _Pragma("unroll") for (int i = 0; i < VECTORS; i++)

typedef struct tile {
    int64_t index;
    int count;    /* elements: ORDER_TILE, or fewer in a tile that the input ends in */
    int thread;   /* within the warp */
    real *buffer; /* in shared memory: up to five tiles */
} tile;

ALWAYS_INLINE tile tile_at(int64_t index, int left, int thread, real *buffer) {
    tile tile;
    tile.index = index;
    tile.count = left < ORDER_TILE ? left : ORDER_TILE;
    tile.thread = anew(thread);
    tile.buffer = buffer;
    return tile;
}

/* The warp's own, of those that a launch has. */
ALWAYS_INLINE real *shared_buffer(const cuda_head *head, int warp) {
    extern __shared__ __align__(16) unsigned char shared_memory[];
    return (real *)shared_memory + warp * head->buffers * ORDER_TILE;
}

/* The place in the tile of one of a thread's own lanes. */
ALWAYS_INLINE int own_element(const tile *tile, int row, int own) {
    return row * ORDER_LANES + order_lane(tile->thread, own);
}

/* The same in memory, so said that all rows share one address and differ in what an instruction adds to it. */
template <typename number> ALWAYS_INLINE number *own_place(const tile *tile, number *at, int row, int own) {
    return at + order_lane(tile->thread, own) + row * ORDER_LANES;
}

ALWAYS_INLINE int64_t divide(int64_t n, const cuda_divisor *by) {
    return (int64_t)(__umul64hi((uint64_t)n, by->magic) >> by->shift);
}

/* --------------------------------------------------------------- vectors -- */

/* A thread's own lanes of a row are one vector of four floats, or two of two doubles. */
#define VECTOR  (16 / (int)sizeof(real))
#define VECTORS (ORDER_OWN_LANES / VECTOR)

#if defined(ONEPASS_REAL_F64)
typedef double2 vector;

ALWAYS_INLINE vector pack(const real *x) {
    return make_double2(x[0], x[1]);
}

ALWAYS_INLINE void unpack(vector v, real *x) {
    x[0] = v.x;
    x[1] = v.y;
}
#else
typedef float4 vector;

ALWAYS_INLINE vector pack(const real *x) {
    return make_float4(x[0], x[1], x[2], x[3]);
}

ALWAYS_INLINE void unpack(vector v, real *x) {
    x[0] = v.x;
    x[1] = v.y;
    x[2] = v.z;
    x[3] = v.w;
}

/* Four 16-bit numbers. */
ALWAYS_INLINE void unpack_half(bool f16, uint2 v, real *x) {
    x[0] = f16 ? f32_of_f16((uint16_t)v.x) : f32_of(v.x << 16);
    x[1] = f16 ? f32_of_f16((uint16_t)(v.x >> 16)) : f32_of(v.x & 0xffff0000u);
    x[2] = f16 ? f32_of_f16((uint16_t)v.y) : f32_of(v.y << 16);
    x[3] = f16 ? f32_of_f16((uint16_t)(v.y >> 16)) : f32_of(v.y & 0xffff0000u);
}

ALWAYS_INLINE uint32_t narrow(bool f16, float x) {
    return f16 ? f16_of_f32(x) : bf16_of_f32(x);
}

ALWAYS_INLINE uint2 pack_half(bool f16, const real *x) {
    return make_uint2(narrow(f16, x[0]) | narrow(f16, x[1]) << 16, narrow(f16, x[2]) | narrow(f16, x[3]) << 16);
}
#endif

/* Registers that are set only under a condition would keep what they had before, and so
 * be taken for the whole kernel; those that are cleared first are free until then. */
ALWAYS_INLINE vector zero_vector(void) {
    const real zero[VECTOR] = {0};
    return pack(zero);
}

/* Own lanes of a row in shared memory. */
ALWAYS_INLINE void read_row(const tile *tile, const real *from, int row, real *x) {
    EACH_VECTOR unpack(*(const vector *)own_place(tile, from, row, i * VECTOR), x + i * VECTOR);
}

ALWAYS_INLINE void write_row(const tile *tile, real *to, int row, const real *x) {
    EACH_VECTOR *(vector *)own_place(tile, to, row, i * VECTOR) = pack(x + i * VECTOR);
}

/* ---------------------------------------------------------------- direct -- */

/* What lies at a tile's address. */
typedef enum access {
    ACCESS_REAL, /* numbers of the compute type */
    ACCESS_HALF  /* of one of the 16-bit types; which one is a branch that all threads take together */
} access;

ALWAYS_INLINE int access_size(access access) {
    return access == ACCESS_REAL ? sizeof(real) : sizeof(uint16_t);
}

ALWAYS_INLINE bool is_constant(const cuda_direct *job, int which) {
    return (job->head.rows >> which & 1) && job->rows[which].tile_step == 0;
}

/* Where a tile begins, if the tiles follow on one another, and in general. */
ALWAYS_INLINE void *dense_address(const cuda_direct *job, int which, const tile *tile, int size) {
    return (char *)job->head.data[which] + tile->index * ORDER_TILE * size;
}

ALWAYS_INLINE void *tile_address(const cuda_direct *job, int which, const tile *tile, int size) {
    if (!(job->head.rows >> which & 1))
        return dense_address(job, which, tile, size);
    const cuda_rows *rows = &job->rows[which];
    const int64_t row = rows->tiles == 1 ? tile->index : divide(tile->index, &rows->by);
    const int64_t offset = row * rows->row_step + (tile->index - row * rows->tiles) * rows->tile_step;
    return (char *)job->head.data[which] + offset * size;
}

/* A thread's share of an operand's row, sent for and waited for later. */
typedef struct numbers {
    vector at[VECTORS];
} numbers;

/* What becomes of numbers in the caches once they have been read. */
typedef enum keeping {
    KEEP_AS_USUAL,
    KEEP_LEAST,   /* they are not read again */
    KEEP_OUTSIDE, /* nor are they to take the place of others in the multiprocessor's own cache, ... */
    KEEP_LONGEST  /* ... which other tiles will come back to */
} keeping;

template <keeping keeping> ALWAYS_INLINE vector load_vector(const vector *address) {
    return keeping == KEEP_LEAST     ? __ldcs(address)
           : keeping == KEEP_OUTSIDE ? load_outside(address)
           : keeping == KEEP_LONGEST ? load_longest(address)
                                     : *address;
}

template <access access, keeping keeping>
ALWAYS_INLINE void send_for_row(const tile *tile, const void *from, int row, numbers *into) {
    if (access == ACCESS_REAL)
        EACH_VECTOR {
            into->at[i] = load_vector<keeping>((const vector *)own_place(tile, (const real *)from, row, i * VECTOR));
        }
#if !defined(ONEPASS_REAL_F64)
    if (access == ACCESS_HALF) { /* they wait in the first two places of their four */
        const uint2 *address = (const uint2 *)own_place(tile, (const uint16_t *)from, row, 0);
        const uint2 half = keeping == KEEP_LEAST || keeping == KEEP_OUTSIDE ? __ldcs(address) : *address;
        into->at[0].x = real_of(half.x);
        into->at[0].y = real_of(half.y);
    }
#endif
}

/* One number for all. */
ALWAYS_INLINE void send_for_constant(const void *from, numbers *into) {
    real x[ORDER_OWN_LANES];
    EACH_OWN x[own] = *(const real *)from;
    EACH_VECTOR into->at[i] = pack(x + i * VECTOR);
}

/* The same in a tile that the input ends in, number by number. */
template <access access> ALWAYS_INLINE void send_for_rest(const tile *tile, const void *from, int row, numbers *into) {
    real x[ORDER_OWN_LANES];
#if !defined(ONEPASS_REAL_F64)
    uint32_t half[ORDER_OWN_LANES];
    if (access == ACCESS_HALF) {
        EACH_OWN {
            const int element = own_element(tile, row, own);
            half[own] = element < tile->count ? ((const uint16_t *)from)[element] : 0;
        }
        into->at[0].x = real_of(half[0] | half[1] << 16);
        into->at[0].y = real_of(half[2] | half[3] << 16);
    }
#endif
    if (access == ACCESS_REAL) {
        EACH_OWN {
            const int element = own_element(tile, row, own);
            x[own] = element < tile->count ? ((const real *)from)[element] : 0;
        }
        EACH_VECTOR into->at[i] = pack(x + i * VECTOR);
    }
}

template <access access> ALWAYS_INLINE void receive(bool f16, const numbers *numbers, real *x) {
    if (access == ACCESS_REAL)
        EACH_VECTOR unpack(numbers->at[i], x + i * VECTOR);
#if !defined(ONEPASS_REAL_F64)
    if (access == ACCESS_HALF) {
        const uint2 half = make_uint2(bits_of(numbers->at[0].x), bits_of(numbers->at[0].y));
        if (f16)
            unpack_half(true, apart(half), x);
        else
            unpack_half(false, half, x);
    }
#endif
}

/* One row of results. Without a hint: "not read again" cost 1 % of the rate of value and gradient where the target is
 * one row, and gained nothing elsewhere. */
template <access access> ALWAYS_INLINE void put_row(const tile *tile, bool f16, void *to, int row, const real *x) {
#if !defined(ONEPASS_REAL_F64)
    if (access == ACCESS_HALF)
        *(uint2 *)own_place(tile, (uint16_t *)to, row, 0) = f16 ? apart(pack_half(true, x)) : pack_half(false, x);
#endif
    if (access == ACCESS_REAL)
        EACH_VECTOR *(vector *)own_place(tile, (real *)to, row, i * VECTOR) = pack(x + i * VECTOR);
}

/* The same in a tile that the input ends in, number by number. */
template <access access> ALWAYS_INLINE void put_last_row(const tile *tile, bool f16, void *to, int row, const real *x) {
    EACH_OWN {
        const int element = own_element(tile, row, own);
#if !defined(ONEPASS_REAL_F64)
        if (access == ACCESS_HALF && element < tile->count)
            ((uint16_t *)to)[element] = (uint16_t)narrow(f16, x[own]);
#endif
        if (access == ACCESS_REAL && element < tile->count)
            ((real *)to)[element] = x[own];
    }
}

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
    EACH_ROW EACH_VECTOR {
        const int element = own_element(tile, row, i * VECTOR);
        read[row].at[i] = zero_vector();
        if (element + VECTOR <= tile->count)
            read[row].at[i] = *(const vector *)(from + element);
    }
    EACH_ROW EACH_VECTOR {
        const int element = own_element(tile, row, i * VECTOR);
        if (element + VECTOR <= tile->count)
            *(vector *)(buffer + element) = read[row].at[i];
    }
    const int rest = tile->count / VECTOR * VECTOR + tile->thread;
    if (rest < tile->count)
        buffer[rest] = from[rest];
}

#if !defined(ONEPASS_REAL_F64)
ALWAYS_INLINE void fill_by_half_vectors(const tile *tile, int32_t dtype, const uint16_t *from, real *buffer) {
    uint2 read[ORDER_LINES];
    EACH_ROW {
        const int element = own_element(tile, row, 0);
        read[row] = make_uint2(0, 0);
        if (element + 4 <= tile->count)
            read[row] = *(const uint2 *)(from + element);
    }
    EACH_ROW {
        const int element = own_element(tile, row, 0);
        real x[ORDER_OWN_LANES];
        unpack_half(dtype == ONEPASS_F16, read[row], x);
        if (element + 4 <= tile->count)
            write_row(tile, buffer, row, x);
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

ALWAYS_INLINE void fill_buffer(const cuda_general *job, int which, const tile *tile, real *buffer) {
    const cuda_view *view = &job->view[which];
    const bool is_weight = which == CUDA_WEIGHT;
    const int dtype = is_weight ? job->weight_dtype : job->head.dtype[which], size = (int)dtype_size(dtype);
    const char *data = (const char *)(is_weight ? job->weight : job->head.data[which]);
    const place at = place_of(view, tile->index * ORDER_TILE);
    if (at.left >= tile->count) {
        fill_from_row(tile, dtype, data + at.offset * size, view->stride[view->ndim - 1], buffer);
        return;
    }
#pragma unroll 4
    for (int i = tile->thread; i < tile->count; i += ORDER_WARP)
        buffer[i] = (real)load_scalar(data + place_of(view, tile->index * ORDER_TILE + i).offset * size, dtype);
}

/* Where a tile can be read, or put, row by row as a direct kernel does; null if it must go through shared memory. */
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
    const place at = place_of(view, tile->index * ORDER_TILE);
    const int64_t stride = view->stride[view->ndim - 1];
    const bool one_row = at.left >= tile->count;
#pragma unroll 1
    for (int i = tile->thread; i < tile->count; i += ORDER_WARP)
        store_one(job->head.dtype[which], job->head.data[which],
                  one_row ? at.offset + i * stride : place_of(view, tile->index * ORDER_TILE + i).offset, buffer[i]);
}

/* ------------------------------------------------------------------- mask -- */

/* Which of a thread's own elements of a tile take part: a bit each, rows after one another. */
typedef uint32_t part;
#define PART_ALL UINT32_C(0xffffffff)

ALWAYS_INLINE bool takes_part(part part, int row, int own) {
    return part >> (row * ORDER_OWN_LANES + own) & 1;
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
    const place at = place_of(view, tile->index * ORDER_TILE);
    const int64_t stride = view->stride[view->ndim - 1];
    const bool one_row = at.left >= tile->count;
    part part = 0;
    if (sizeof(real) == sizeof(float) && one_row && stride == 1 && tile->count == ORDER_TILE &&
        (uintptr_t)(mask + at.offset) % 4 == 0) {
        uint32_t bytes[ORDER_LINES];
        EACH_ROW bytes[row] = *(const uint32_t *)(mask + at.offset + own_element(tile, row, 0));
        EACH_ROW part |= part_of_word(bytes[row]) << (row * ORDER_OWN_LANES);
        return part;
    }
#pragma unroll 1
    for (int i = 0; i < ORDER_LINES * ORDER_OWN_LANES; i++) {
        const int element = own_element(tile, i / ORDER_OWN_LANES, i % ORDER_OWN_LANES);
        if (element >= tile->count)
            continue;
        const int64_t offset =
            one_row ? at.offset + element * stride : place_of(view, tile->index * ORDER_TILE + element).offset;
        part |= (uint32_t)(mask[offset] != 0) << i;
    }
    return part;
}

#endif
