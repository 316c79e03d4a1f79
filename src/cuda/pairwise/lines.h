/*
 * Between memory and a warp's registers, the direct way: numbers that lie without gaps at an aligned address are moved
 * by 16-byte accesses (8 bytes for 16-bit types), all of a stage in flight before the first is used.
 */
#ifndef ONEPASS_CUDA_PAIRWISE_LINES_H
#define ONEPASS_CUDA_PAIRWISE_LINES_H

#include "cuda/pairwise/tile.h"

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

/* A thread's share of an operand's line: loaded, and waited for where it is unpacked. */
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

template <keeping keeping> ALWAYS_INLINE void store_vector(vector *address, vector x) {
    if constexpr (keeping == KEEP_LEAST)
        __stcs(address, x);
    else
        *address = x;
}

template <access access, keeping keeping>
ALWAYS_INLINE void prefetch_line(const tile *tile, const void *from, int line, numbers *into) {
    if (access == ACCESS_REAL)
        EACH_VECTOR {
            into->at[i] = load_vector<keeping>((const vector *)own_place(tile, (const real *)from, line, i * VECTOR));
        }
#if !defined(ONEPASS_REAL_F64)
    if (access == ACCESS_HALF) { /* they wait in the first two places of their four */
        const uint2 *address = (const uint2 *)own_place(tile, (const uint16_t *)from, line, 0);
        const uint2 half = keeping == KEEP_LEAST || keeping == KEEP_OUTSIDE ? __ldcs(address) : *address;
        into->at[0].x = real_of(half.x);
        into->at[0].y = real_of(half.y);
    }
#endif
}

/* One number for all. */
ALWAYS_INLINE void prefetch_constant(const void *from, numbers *into) {
    real x[ORDER_OWN_LANES];
    EACH_OWN x[own] = *(const real *)from;
    EACH_VECTOR into->at[i] = pack_vector(x + i * VECTOR);
}

/* The same in a tile that the input ends in, number by number. */
template <access access>
ALWAYS_INLINE void prefetch_last_line(const tile *tile, const void *from, int line, numbers *into) {
    real x[ORDER_OWN_LANES];
#if !defined(ONEPASS_REAL_F64)
    uint32_t half[ORDER_OWN_LANES];
    if (access == ACCESS_HALF) {
        EACH_OWN {
            const int element = own_element(tile, line, own);
            half[own] = element < tile->count ? ((const uint16_t *)from)[element] : 0;
        }
        into->at[0].x = real_of(half[0] | half[1] << 16);
        into->at[0].y = real_of(half[2] | half[3] << 16);
    }
#endif
    if (access == ACCESS_REAL) {
        EACH_OWN {
            const int element = own_element(tile, line, own);
            x[own] = element < tile->count ? ((const real *)from)[element] : 0;
        }
        EACH_VECTOR into->at[i] = pack_vector(x + i * VECTOR);
    }
}

template <access access> ALWAYS_INLINE void unpack(bool f16, const numbers *numbers, real *x) {
    if (access == ACCESS_REAL)
        EACH_VECTOR unpack_vector(numbers->at[i], x + i * VECTOR);
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

/* One line of results. Without a hint: "not read again" cost 1 % of the rate of value and gradient where the target is
 * one row, and gains where the operands will be read again, which a gradient alone has (backward.h). */
template <access access, keeping keeping = KEEP_AS_USUAL>
ALWAYS_INLINE void put_line(const tile *tile, bool f16, void *to, int line, const real *x) {
#if !defined(ONEPASS_REAL_F64)
    if (access == ACCESS_HALF)
        *(uint2 *)own_place(tile, (uint16_t *)to, line, 0) = f16 ? apart(pack_half(true, x)) : pack_half(false, x);
#endif
    if (access == ACCESS_REAL)
        EACH_VECTOR store_vector<keeping>((vector *)own_place(tile, (real *)to, line, i * VECTOR),
                                          pack_vector(x + i * VECTOR));
}

/* The same in a tile that the input ends in, number by number. */
template <access access>
ALWAYS_INLINE void put_last_line(const tile *tile, bool f16, void *to, int line, const real *x) {
    EACH_OWN {
        const int element = own_element(tile, line, own);
#if !defined(ONEPASS_REAL_F64)
        if (access == ACCESS_HALF && element < tile->count)
            ((uint16_t *)to)[element] = (uint16_t)narrow(f16, x[own]);
#endif
        if (access == ACCESS_REAL && element < tile->count)
            ((real *)to)[element] = x[own];
    }
}

#endif
