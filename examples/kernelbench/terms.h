/*
 * The sum of the rows' values, for rows.cu and vectors.cu alike: of most by one kernel, and of very many as any sum is.
 */
#ifndef ONEPASS_KERNELBENCH_TERMS_H
#define ONEPASS_KERNELBENCH_TERMS_H

#include "cuda/kernel.h"
#include "cuda/rows/weights.h"

extern "C" __global__ void __launch_bounds__(CUDA_TERMS_WARPS(sizeof(real)) * ORDER_WARP)
    onepass_rows_total(const __grid_constant__ cuda_terms job) {
    run_total(&job);
}

struct weights_loss {
    enum {
        OPERANDS = 1
    };
    ALWAYS_INLINE real value(const real *x, const real *parameter) {
        return x[0];
    }
};
CUDA_KERNELS_1_F32(MAKE_KERNEL, weights)

#endif
