/*
 * What serves every loss: the kernels that add up weights and that scale gradients, and the first workspace.
 */
#include "cuda/kernel.h"
#include "cuda/kernels.def"
#include "cuda/rows/predicted.h"
#include "cuda/rows/weights.h"

/* What a mean is divided by is the sum of a loss whose value is its only operand. */
struct weights_loss {
    enum {
        OPERANDS = 1
    };
    ALWAYS_INLINE real value(const real *x, const real *parameter) {
        return x[0];
    }
};
MAKE_KERNELS(weights, 1)

struct gradient_loss;
MAKE_KERNELS(gradient, 0)

/* What a mean over rows is divided by, what is predicted, and the sum of terms. */
#define MAKE_EXTRA_KERNEL(loss, variant, parameter, warps, blocks)                                                     \
    extern "C" __global__ void __launch_bounds__((warps)*ORDER_WARP, blocks)                                           \
        onepass_##loss##_##variant(const __grid_constant__ cuda_##parameter job) {                                     \
        await_launch_before();                                                                                         \
        run_##variant(&job);                                                                                           \
    }
CUDA_ROW_KERNELS_NO_LOSS(MAKE_EXTRA_KERNEL, rows)

#if !defined(ONEPASS_REAL_F64) && defined(__CUDACC__)
extern "C" {
__device__ __align__(256) unsigned char CUDA_FIRST_WORKSPACE[ONEPASS_WORKSPACE_SIZE];

/* Never launched: the host asks how many such clusters there can be at a time. Where it is not found, the kernels were
 * compiled for GPUs that have none. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
__global__ void __cluster_dims__(CUDA_CLUSTER) __launch_bounds__((CUDA_CLUSTER_WARPS + 1) * ORDER_WARP)
    CUDA_ANY_CLUSTER(void) {}
#endif
}
#endif
