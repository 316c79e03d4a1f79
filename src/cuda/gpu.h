/*
 * The few words of a GPU that CUDA C has no name for. Compiled without nvcc, as the
 * tests do, they are plain C of the same meaning.
 */
#ifndef ONEPASS_CUDA_GPU_H
#define ONEPASS_CUDA_GPU_H

#include "loss.h"

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

/* The same number, but the compiler does not know that. What is computed of it is computed
 * anew each time, instead of kept in registers that a tile needs for its numbers. */
ALWAYS_INLINE int anew(int x) {
#if defined(__CUDACC__)
    asm volatile("" : "+r"(x));
#endif
    return x;
}

#endif
