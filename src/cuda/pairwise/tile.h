/*
 * A tile in the hands of a warp: which of its elements a thread has, and the vectors that they are moved in.
 */
#ifndef ONEPASS_CUDA_PAIRWISE_TILE_H
#define ONEPASS_CUDA_PAIRWISE_TILE_H

#include "cuda/gpu.h"
#include "cuda/parameter.h"
#include "dtype.h"
#include "order.h"

/* What a kernel was told in its compute type. */
#if defined(ONEPASS_REAL_F64)
#define REAL(numbers) (numbers).f64
#else
#define REAL(numbers) (numbers).f32
#endif

/* Whether an upstream gradient is 1, of the type that most have: asked first, since a launch waits for all the code
 * that it comes by. */
ALWAYS_INLINE bool is_plainly_one(const void *upstream, int32_t dtype) {
    return dtype == REAL_DTYPE && *(const real *)upstream == 1;
}

#define EACH_LINE   _Pragma("unroll") for (int line = 0; line < ORDER_LINES; line++)
#define EACH_OWN    _Pragma("unroll") for (int own = 0; own < ORDER_OWN_LANES; own++)
#define EACH_VECTOR _Pragma("unroll") for (int i = 0; i < VECTORS; i++)

/* Where a thread stands in its block. */
typedef struct place_in_block {
    int thread, warp, warps;
} place_in_block;

ALWAYS_INLINE place_in_block here_in_block(void) {
    return (place_in_block){(int)threadIdx.x % ORDER_WARP, (int)threadIdx.x / ORDER_WARP, (int)blockDim.x / ORDER_WARP};
}

/* The same in a kernel for small inputs, which has no time to ask how many warps there are. */
ALWAYS_INLINE place_in_block here_in_small_block(void) {
    return (place_in_block){(int)(threadIdx.x % ORDER_WARP), (int)(threadIdx.x / ORDER_WARP), 0};
}

typedef struct tile {
    int64_t index;
    int count;    /* elements: ORDER_TILE, or fewer in a tile that the input ends in */
    int thread;   /* within the warp */
    int ahead;    /* as in rows/loose.h, else 0 */
    real *buffer; /* in shared memory: up to five tiles */
} tile;

ALWAYS_INLINE tile tile_at(int64_t index, int left, int thread, real *buffer) {
    tile tile;
    tile.index = index;
    tile.count = left < ORDER_TILE ? left : ORDER_TILE;
    tile.thread = anew(thread);
    tile.ahead = 0;
    tile.buffer = buffer;
    return tile;
}

/* So many neighbouring lines of the first tile, or of those behind it, seen as the first ones of one that begins there:
 * a thread's own lanes, of floats, are those of a thread so much further on. One addition finds them. */
template <int lines> ALWAYS_INLINE tile tile_of_lines(int index, int thread) {
    static_assert(lines < ORDER_LINES && sizeof(real) == sizeof(float), "a thread's own lanes follow on one another");
    return tile_at(0, ORDER_TILE, index * lines * ORDER_WARP + thread, NULL);
}

/* The warp's own, of those that a launch has. */
ALWAYS_INLINE real *shared_buffer(const cuda_head *head, int warp) {
    extern __shared__ __align__(16) unsigned char shared_memory[];
    return (real *)shared_memory + warp * head->buffers * ORDER_TILE;
}

/* One of a thread's own lanes, and its place in the tile. */
ALWAYS_INLINE int own_lane(const tile *tile, int own) {
    const int lane = order_lane(tile->thread, own);
    return tile->ahead == 0 ? lane : (lane - tile->ahead) & (ORDER_LANES - 1);
}

ALWAYS_INLINE int own_element(const tile *tile, int line, int own) {
    return line * ORDER_LANES + own_lane(tile, own);
}

/* The same in memory, so said that all lines share one address and differ in what an instruction adds to it. */
template <typename number> ALWAYS_INLINE number *own_place(const tile *tile, number *at, int line, int own) {
    return at + order_lane(tile->thread, own) + line * ORDER_LANES;
}

ALWAYS_INLINE int64_t divide(int64_t n, const cuda_divisor *by) {
    return (int64_t)(__umul64hi((uint64_t)n, by->magic) >> by->shift);
}

/* A warp's sum of whole numbers: newer GPUs have an instruction for it. */
ALWAYS_INLINE int warp_sum(int x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    return __reduce_add_sync(~0u, x);
#else
    for (int distance = ORDER_WARP / 2; distance > 0; distance /= 2)
        x += __shfl_xor_sync(~0u, x, distance);
    return x;
#endif
}

/* --------------------------------------------------------------- vectors -- */

/* A thread's own lanes of a line are one vector of four floats, or two of two doubles. */
#define VECTOR  (16 / (int)sizeof(real))
#define VECTORS (ORDER_OWN_LANES / VECTOR)

#if defined(ONEPASS_REAL_F64)
typedef double2 vector;

ALWAYS_INLINE vector pack_vector(const real *x) {
    return make_double2(x[0], x[1]);
}

ALWAYS_INLINE void unpack_vector(vector v, real *x) {
    x[0] = v.x;
    x[1] = v.y;
}
#else
typedef float4 vector;

ALWAYS_INLINE vector pack_vector(const real *x) {
    return make_float4(x[0], x[1], x[2], x[3]);
}

ALWAYS_INLINE void unpack_vector(vector v, real *x) {
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

/* Two 16-bit numbers. What Hopper makes of NaN is the largest of signed integers, and the canonical one the largest of
 * all others. */
ALWAYS_INLINE uint32_t pack_two(bool f16, real low, real high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && __CUDACC_VER_MAJOR__ >= 12
    uint32_t both;
    if (f16)
        asm("cvt.rn.f16x2.f32 %0, %1, %2;\n\tmin.s16x2 %0, %0, %3;"
            : "=&r"(both)
            : "f"(high), "f"(low), "r"(0x7e007e00));
    else
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n\tmin.s16x2 %0, %0, %3;"
            : "=&r"(both)
            : "f"(high), "f"(low), "r"(0x7fc07fc0));
    return both;
#else
    return narrow(f16, low) | narrow(f16, high) << 16;
#endif
}

ALWAYS_INLINE uint2 pack_half(bool f16, const real *x) {
    return make_uint2(narrow(f16, x[0]) | narrow(f16, x[1]) << 16, narrow(f16, x[2]) | narrow(f16, x[3]) << 16);
}
#endif

/* Registers that are set only under a condition would keep what they had before, and so
 * be taken for the whole kernel; those that are cleared first are free until then. */
ALWAYS_INLINE vector zero_vector(void) {
    const real zero[VECTOR] = {0};
    return pack_vector(zero);
}

/* Own lanes of a line in shared memory. */
ALWAYS_INLINE void read_line(const tile *tile, const real *from, int line, real *x) {
    EACH_VECTOR unpack_vector(*(const vector *)own_place(tile, from, line, i * VECTOR), x + i * VECTOR);
}

ALWAYS_INLINE void write_line(const tile *tile, real *to, int line, const real *x) {
    EACH_VECTOR *(vector *)own_place(tile, to, line, i * VECTOR) = pack_vector(x + i * VECTOR);
}

#endif
