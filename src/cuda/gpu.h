/*
 * The few words of a GPU that CUDA C has no name for. Compiled without nvcc, as the
 * tests do, they are plain C of the same meaning.
 */
#ifndef ONEPASS_CUDA_GPU_H
#define ONEPASS_CUDA_GPU_H

#include "math/real.h"

/* A launch may begin while the one before it in its call ends. What is read or written comes after this. */
ALWAYS_INLINE void await_launch_before(void) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Takes a number, counting from 0. What the caller wrote before is seen by whoever takes
 * a later number: cheaper than two fences (measured: 0.5 us of a small call). */
ALWAYS_INLINE unsigned take_ticket(unsigned *counter) {
#if defined(__CUDACC__)
    unsigned number;
    asm volatile("atom.add.acq_rel.gpu.u32 %0, [%1], 1;" : "=r"(number) : "l"(counter) : "memory");
    return number;
#else
    return atomicAdd(counter, 1u);
#endif
}

/* Takes a number from 0 to `last`, and says nothing about what was written before; after the last one comes 0 again.
 * Nobody waits for it until it is looked at: of atomic additions ptxas makes one for a warp, and waits at once. */
ALWAYS_INLINE unsigned take_number(unsigned *counter, unsigned last) {
    unsigned number;
#if defined(__CUDACC__)
    asm volatile("atom.relaxed.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(number) : "l"(counter), "r"(last) : "memory");
#else
    number = atomicAdd(counter, 1u);
    if (number == last)
        *counter = 0;
#endif
    return number;
}

/* 16 bytes that another block may write at the same time, as one access: from where all blocks see the same. */
ALWAYS_INLINE ulonglong2 load_anew(const ulonglong2 *address) {
#if defined(__CUDACC__)
    ulonglong2 found;
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(found.x), "=l"(found.y)
                 : "l"(address)
                 : "memory");
    return found;
#else
    simt_atomic();
    return *address;
#endif
}

ALWAYS_INLINE void store_whole(ulonglong2 *address, ulonglong2 x) {
#if defined(__CUDACC__)
    asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(address), "l"(x.x), "l"(x.y) : "memory");
#else
    *address = x;
#endif
}

/* The same number, but the compiler does not know that. What is computed of it is computed
 * anew each time, instead of kept in registers that a tile needs for its numbers. */
ALWAYS_INLINE int anew(int x) {
#if defined(__CUDACC__)
    asm volatile("" : "+r"(x));
#endif
    return x;
}

ALWAYS_INLINE float anew(float x) {
#if defined(__CUDACC__)
    asm volatile("" : "+f"(x));
#endif
    return x;
}

/* The same bits, but the compiler cannot choose between them and others without a branch: both sides of one that all
 * threads take together would cost more than it. */
ALWAYS_INLINE uint2 apart(uint2 x) {
#if defined(__CUDACC__)
    asm volatile("" : "+r"(x.x), "+r"(x.y));
#endif
    return x;
}

/* Loads of 16 bytes that take no place in the multiprocessor's own cache, and such that keep
 * theirs for as long as the cache can. */
#if defined(__CUDACC__)
#define HINTED_LOAD(name, hint)                                                                                        \
    template <typename vector> ALWAYS_INLINE vector name(const vector *address) {                                      \
        uint4 bits;                                                                                                    \
        vector loaded;                                                                                                 \
        static_assert(sizeof loaded == sizeof bits, "16 bytes");                                                       \
        asm volatile("ld.global." hint ".v4.u32 {%0, %1, %2, %3}, [%4];"                                               \
                     : "=r"(bits.x), "=r"(bits.y), "=r"(bits.z), "=r"(bits.w)                                          \
                     : "l"(address)                                                                                    \
                     : "memory");                                                                                      \
        memcpy(&loaded, &bits, sizeof loaded);                                                                         \
        return loaded;                                                                                                 \
    }
#else
#define HINTED_LOAD(name, hint)                                                                                        \
    template <typename vector> ALWAYS_INLINE vector name(const vector *address) {                                      \
        return __ldcs(address);                                                                                        \
    }
#endif
HINTED_LOAD(load_outside, "L1::no_allocate")
HINTED_LOAD(load_longest, "L1::evict_last")

#endif
