/*
 * From kernels.def to kernels. Several direct ones and a general one come out for each loss, in one compute type. A
 * warp takes a tile: it gathers the operands as `real` numbers, computes values and slopes lane by lane, and scatters
 * what was computed.
 *
 * --fmad=false is part of the meaning: a fused multiply-add has other bits.
 */
#ifndef ONEPASS_CUDA_KERNEL_H
#define ONEPASS_CUDA_KERNEL_H

#include "cuda/kernels.def"
#include "cuda/pairwise/backward.h"
#include "cuda/pairwise/block.h"
#include "cuda/pairwise/few.h"
#include "cuda/pairwise/few_mean.h"
#include "cuda/pairwise/mean.h"
#include "cuda/pairwise/scale.h"
#include "cuda/pairwise/small.h"
#include "cuda/pairwise/small_mean.h"
#include "cuda/pairwise/tiny.h"
#include "cuda/pairwise/whole.h"

/* The most warps of a block, by the kind of the parameter. */
#define WARPS_direct     CUDA_MOST_WARPS
#define WARPS_weighted   CUDA_MOST_WARPS
#define WARPS_backward   CUDA_MOST_WARPS
#define WARPS_whole      CUDA_WHOLE_WARPS
#define WARPS_small      CUDA_MOST_WARPS
#define WARPS_small_mean CUDA_MOST_WARPS
#define WARPS_general    CUDA_MOST_WARPS
#define WARPS_few        (ORDER_FEW * CUDA_FEW_WARPS)
#define WARPS_few_mean   (ORDER_FEW * CUDA_FEW_WARPS)
#define WARPS_tiny_mean  (CUDA_TINY_WARPS + 1) /* as in few_mean.h */
#define WARPS_tiny       CUDA_TINY_WARPS
#define WARPS_tiny_both  CUDA_TINY_WARPS

#define BLOCKS_ONE 1
#if defined(ONEPASS_REAL_F64)
#define BLOCKS_USUAL         1 /* a thread needs up to 255 registers, ... */
#define BLOCKS_MANY          1
#define KERNELS_OF(operands) PASTE(PASTE(CUDA_KERNELS_, operands), _F64)
#else
#define BLOCKS_USUAL         2 /* ... or 128; */
#define BLOCKS_SEVERAL       3 /* ... a small kernel 80, so that 2^22 elements are little more than a wave; */
#define BLOCKS_MANY          4 /* with half of that twice as many warps fit */
#define KERNELS_OF(operands) PASTE(PASTE(CUDA_KERNELS_, operands), _F32)
#endif

/* A loss as the templates take it: its functions, of an array of operands. */
#define ARGUMENTS_2 x[0], x[1]
#define ARGUMENTS_3 x[0], x[1], x[2]
#define LOSS_MEMBER(name, member, operands)                                                                            \
    ALWAYS_INLINE real member(const real *x, const real *parameter) {                                                  \
        return name##_##member(PASTE(ARGUMENTS_, OPERANDS_OF operands), parameter);                                    \
    }
#define LOSS_SLOPE_2(name, operands)
#define LOSS_SLOPE_3(name, operands) LOSS_MEMBER(name, slope_v, operands)
#define LOSS_TYPE(name, operands)                                                                                      \
    struct name##_loss {                                                                                               \
        enum {                                                                                                         \
            OPERANDS = OPERANDS_OF operands                                                                            \
        };                                                                                                             \
        LOSS_MEMBER(name, value, operands)                                                                             \
        LOSS_MEMBER(name, slope_p, operands)                                                                           \
        LOSS_MEMBER(name, slope_t, operands)                                                                           \
        PASTE(LOSS_SLOPE_, OPERANDS_OF operands)(name, operands)                                                       \
    };

template <typename loss, direction direction, access access> ALWAYS_INLINE void run_kernel(const cuda_small *job) {
    run_small<loss, direction>(job);
}

template <typename loss, direction direction, access access> ALWAYS_INLINE void run_kernel(const cuda_few *job) {
    run_few<loss>(&job->tiny);
}

template <typename loss, direction direction, access access> ALWAYS_INLINE void run_kernel(const cuda_tiny *job) {
    run_tiny<loss>(job);
}

template <typename loss, direction direction, access access> ALWAYS_INLINE void run_kernel(const cuda_tiny_both *job) {
    run_tiny<loss>(job);
}

template <typename loss, direction direction, access access, typename parameter>
ALWAYS_INLINE void run_kernel(const parameter *job) {
    if constexpr (direction == SCALE)
        scale_block(job);
    else
        run_block<loss, direction, access>(job);
}

#define MAKE_KERNEL(loss, variant, parameter, direction, access, blocks)                                               \
    extern "C" __global__ void __launch_bounds__(WARPS_##parameter *ORDER_WARP, BLOCKS_##blocks)                       \
        onepass_##loss##_##variant(const __grid_constant__ cuda_##parameter job) {                                     \
        run_kernel<loss##_loss, direction, ACCESS_##access>(&job);                                                     \
    }

/* All those of a loss of so many operands. */
#define MAKE_KERNELS(loss, operands) KERNELS_OF(operands)(MAKE_KERNEL, loss)

#endif
