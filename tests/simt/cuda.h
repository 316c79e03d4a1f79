/*
 * The words of CUDA C that the kernels use, for a C++ compiler that knows none of
 * them: included before a kernel's source it makes that source run under the
 * harness. Loads and stores with a cache hint check their alignment, as a GPU
 * does; the compiler's sanitizer checks the plain ones.
 *
 * Shared memory is thread-local storage: the one kind of C++ object that may stand
 * where CUDA's may (in a function, in a template, as `extern` array of unknown
 * size) and whose place in memory can still be found out. So kernels are linked
 * into a shared object of their own, which has no other such storage; its source
 * ends with SIMT_LIBRARY.
 */
#ifndef ONEPASS_TESTS_SIMT_CUDA_H
#define ONEPASS_TESTS_SIMT_CUDA_H

#include "simt.h"

#include <stdint.h>
#include <string.h>

#define SIMT_HARNESS 1

#define __global__ __attribute__((visibility("default")))
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__    __attribute__((noinline))
#define __shared__      thread_local
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#if !defined(__restrict__)
#define __restrict__ __restrict
#endif

/* Where in a kernel's source something happens. */
#define SIMT_PLACE_PARAMETERS const char *file = __builtin_FILE(), int line = __builtin_LINE()

/* Defines the dynamic shared memory, under the name that the kernels use, and the function that
 * tells the tests of this library. More than a GPU has for a block: tests try launch shapes that none could. */
#define SIMT_LIBRARY(name, dynamic_name)                                                                               \
    thread_local __align__(16) unsigned char dynamic_name[400 * 1024];                                                 \
    extern "C" __attribute__((visibility("default"))) const simt_library *name(void) {                                 \
        static simt_library library;                                                                                   \
        library.dynamic = (char *)dynamic_name;                                                                        \
        library.dynamic_size = sizeof dynamic_name;                                                                    \
        return &library;                                                                                               \
    }

/* ---------------------------------------------------------------- vectors -- */

#define SIMT_VECTOR_2(name, type)                                                                                      \
    struct alignas(2 * sizeof(type)) name {                                                                            \
        type x, y;                                                                                                     \
    };                                                                                                                 \
    static inline name make_##name(type x, type y) {                                                                   \
        return name{x, y};                                                                                             \
    }

/* 16 bytes at most: vectors of four doubles are aligned like two. */
#define SIMT_VECTOR_4(name, type)                                                                                      \
    struct alignas(sizeof(type) < 4 ? 4 * sizeof(type) : 16) name {                                                    \
        type x, y, z, w;                                                                                               \
    };                                                                                                                 \
    static inline name make_##name(type x, type y, type z, type w) {                                                   \
        return name{x, y, z, w};                                                                                       \
    }

typedef unsigned short ushort;
typedef unsigned int uint;

SIMT_VECTOR_2(float2, float)
SIMT_VECTOR_2(double2, double)
SIMT_VECTOR_2(int2, int)
SIMT_VECTOR_2(uint2, unsigned int)
SIMT_VECTOR_2(ushort2, unsigned short)
SIMT_VECTOR_2(ulonglong2, unsigned long long)
SIMT_VECTOR_4(float4, float)
SIMT_VECTOR_4(int4, int)
SIMT_VECTOR_4(uint4, unsigned int)
SIMT_VECTOR_4(ushort4, unsigned short)

/* ----------------------------------------------------------------- memory -- */

static inline void simt_access(const void *address, size_t alignment, const char *file, int line) {
    if ((uintptr_t)address % alignment != 0) {
        simt_misaligned(address, alignment, file, line);
    }
    if (--simt_accesses_left <= 0) {
        simt_yield();
    }
}

#define SIMT_LOAD(name)                                                                                                \
    template <typename T> static inline T name(const T *address, SIMT_PLACE_PARAMETERS) {                              \
        simt_access(address, alignof(T), file, line);                                                                  \
        return *address;                                                                                               \
    }
#define SIMT_STORE(name)                                                                                               \
    template <typename T> static inline void name(T *address, T value, SIMT_PLACE_PARAMETERS) {                        \
        simt_access(address, alignof(T), file, line);                                                                  \
        *address = value;                                                                                              \
    }

SIMT_LOAD(__ldg)
SIMT_LOAD(__ldca)
SIMT_LOAD(__ldcg)
SIMT_LOAD(__ldcs)
SIMT_LOAD(__ldlu)
SIMT_LOAD(__ldcv)
SIMT_STORE(__stwb)
SIMT_STORE(__stcg)
SIMT_STORE(__stcs)
SIMT_STORE(__stwt)

template <typename T> static inline T simt_add(T *address, T value) {
    simt_yield();
    const T before = *address;
    *address = before + value;
    simt_atomic();
    return before;
}

static inline unsigned atomicAdd(unsigned *address, unsigned value) {
    return simt_add(address, value);
}

static inline int atomicAdd(int *address, int value) {
    return simt_add(address, value);
}

static inline unsigned long long atomicAdd(unsigned long long *address, unsigned long long value) {
    return simt_add(address, value);
}

/* Memory is as one thread of the CPU sees it: in order. */
static inline void __threadfence(void) {}
static inline void __threadfence_block(void) {}

/* ------------------------------------------------------------------- bits -- */

template <typename To, typename From> static inline To simt_bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

static inline unsigned __float_as_uint(float x) {
    return simt_bits<unsigned>(x);
}
static inline float __uint_as_float(unsigned x) {
    return simt_bits<float>(x);
}
static inline int __float_as_int(float x) {
    return simt_bits<int>(x);
}
static inline float __int_as_float(int x) {
    return simt_bits<float>(x);
}
static inline long long __double_as_longlong(double x) {
    return simt_bits<long long>(x);
}
static inline double __longlong_as_double(long long x) {
    return simt_bits<double>(x);
}

static inline int __ffs(int x) {
    return __builtin_ffs(x);
}

static inline int __popc(unsigned x) {
    return __builtin_popcount(x);
}

static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    __extension__ typedef unsigned __int128 wide;
    return (unsigned long long)((wide)a * b >> 64);
}

/* --------------------------------------------------------------- meetings -- */

enum {
    warpSize = 32
};

static inline void __syncthreads(SIMT_PLACE_PARAMETERS) {
    simt_barrier(file, line);
}

static inline void __syncwarp(unsigned mask = ~0u, SIMT_PLACE_PARAMETERS) {
    simt_warp(SIMT_SYNCWARP, mask, 0, 0, 32, file, line);
}

template <typename T>
static inline T simt_shuffle(simt_operation operation, unsigned mask, T value, int argument, int width,
                             const char *file, int line) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a shuffle moves 4 or 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = simt_warp(operation, mask, bits, argument, width, file, line);
    memcpy(&value, &bits, sizeof value);
    return value;
}

#define SIMT_SHUFFLE(name, operation, type)                                                                            \
    template <typename T>                                                                                              \
    static inline T name(unsigned mask, T value, type argument, int width = 32, SIMT_PLACE_PARAMETERS) {               \
        return simt_shuffle(operation, mask, value, (int)argument, width, file, line);                                 \
    }

SIMT_SHUFFLE(__shfl_sync, SIMT_SHFL, int)
SIMT_SHUFFLE(__shfl_up_sync, SIMT_SHFL_UP, unsigned)
SIMT_SHUFFLE(__shfl_down_sync, SIMT_SHFL_DOWN, unsigned)
SIMT_SHUFFLE(__shfl_xor_sync, SIMT_SHFL_XOR, int)

static inline int __any_sync(unsigned mask, int predicate, SIMT_PLACE_PARAMETERS) {
    return (int)simt_warp(SIMT_ANY, mask, predicate != 0, 0, 32, file, line);
}
static inline int __all_sync(unsigned mask, int predicate, SIMT_PLACE_PARAMETERS) {
    return (int)simt_warp(SIMT_ALL, mask, predicate != 0, 0, 32, file, line);
}
static inline unsigned __ballot_sync(unsigned mask, int predicate, SIMT_PLACE_PARAMETERS) {
    return (unsigned)simt_warp(SIMT_BALLOT, mask, predicate != 0, 0, 32, file, line);
}

#endif
