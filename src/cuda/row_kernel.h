/*
 * From kernels.def to the kernels of losses over rows: the twin of kernel.h. Which one serves a job is for
 * src/cuda/rows.c to say.
 *
 * --fmad=false is part of the meaning here too.
 */
#ifndef ONEPASS_CUDA_ROW_KERNEL_H
#define ONEPASS_CUDA_ROW_KERNEL_H

#include "cuda/kernels.def"
#include "cuda/rows/any.h"
#include "cuda/rows/aside.h"
#include "cuda/rows/cluster.h"
#include "cuda/rows/picked.h"
#include "cuda/rows/plain.h"
#include "cuda/rows/simple_both.h"
#include "cuda/rows/simple_values.h"
#include "cuda/rows/teams.h"
#include "cuda/rows/told.h"
#include "cuda/rows/wide.h"

#if defined(ONEPASS_REAL_F64)
#define ROW_KERNELS_OF(kind) PASTE(PASTE(CUDA_ROW_KERNELS_, kind), _F64)
#else
#define ROW_KERNELS_OF(kind) PASTE(PASTE(CUDA_ROW_KERNELS_, kind), _F32)
#endif

/* A loss as the templates take it. */
#define ROW_LOSS_TYPE(name, target)                                                                                    \
    struct name##_rows {                                                                                               \
        static constexpr row_kind KIND = ROW_##target;                                                                 \
        ALWAYS_INLINE void row(const row_sums *row, const double *parameter, row_slopes *slopes) {                     \
            name##_row(row, parameter, slopes);                                                                        \
        }                                                                                                              \
    };

/* Of labels these kernels serve smoothing without class weights: with such weights it is rare. */
template <typename loss> struct weighing_of {
    static constexpr weighing IS = loss::KIND == ROW_PROBABILITIES ? WEIGHS_EACH : WEIGHS_ONES;
};

#if !defined(ONEPASS_REAL_F64)
template <typename loss> ALWAYS_INLINE void run_rows_forward(const cuda_row *job) {
    run_values<loss, ROW_VECTORS, false>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_long_forward(const cuda_row *job) {
    run_values<loss, ROW_VECTORS, false, true>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_both(const cuda_row *job) {
    run_both<loss, WEIGHS_NOTHING, ROW_VECTORS, CUDA_MOST_WARPS, false>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_both_single(const cuda_row *job) {
    run_both<loss, WEIGHS_NOTHING, ROW_VECTORS, CUDA_MOST_WARPS, true>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_both_wide(const cuda_row *job) {
    run_both<loss, WEIGHS_NOTHING, ROW_VECTORS, CUDA_WIDE_WARPS, false>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_simple_forward(const cuda_row *job) {
    run_simple_forward<loss>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_simple_both(const cuda_row *job) {
    run_simple_both<loss, CUDA_MOST_WARPS, false, true>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_simple_single(const cuda_row *job) {
    run_simple_both<loss, CUDA_VALUES_WARPS, true, true>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_simple_wide(const cuda_row *job) {
    run_simple_both<loss, CUDA_WIDE_WARPS, false, false>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_wide_bf16(const cuda_row *job) {
    run_wide_bf16<loss>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_cluster(const cuda_row *job) {
    run_cluster<loss>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_backward(const cuda_row *job) {
    run_backward<loss, WEIGHS_NOTHING, ROW_VECTORS, false>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_loose_forward(const cuda_row *job) {
    run_values<loss, ROW_LOOSE, false>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_loose_both(const cuda_row *job) {
    run_both<loss, WEIGHS_NOTHING, ROW_LOOSE, CUDA_MOST_WARPS, false>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_loose_backward(const cuda_row *job) {
    run_backward<loss, WEIGHS_NOTHING, ROW_LOOSE, false>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_weighed_forward(const cuda_row *job) {
    run_forward<loss, weighing_of<loss>::IS, false>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_weighed_both(const cuda_row *job) {
    run_both<loss, weighing_of<loss>::IS, ROW_VECTORS, CUDA_MOST_WARPS, false>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_weighed_backward(const cuda_row *job) {
    run_backward<loss, weighing_of<loss>::IS, ROW_VECTORS, false>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_shared(const cuda_row *job) {
    run_values<loss, ROW_VECTORS, true>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_loose_shared(const cuda_row *job) {
    run_values<loss, ROW_LOOSE, true>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_weighed_shared(const cuda_row *job) {
    run_forward<loss, weighing_of<loss>::IS, true>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_torn(const cuda_row *job) {
    run_backward<loss, WEIGHS_NOTHING, ROW_LOOSE, true>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_few_forward(const cuda_row *job) {
    run_few<loss, false, CUDA_FEW_CLASSES>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_few_both(const cuda_row *job) {
    run_few<loss, true, CUDA_FEW_CLASSES>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_fewer_forward(const cuda_row *job) {
    run_few<loss, false, CUDA_FEWER_CLASSES>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_fewer_both(const cuda_row *job) {
    run_few<loss, true, CUDA_FEWER_CLASSES>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_sized_forward(const cuda_row *job) {
    run_sizes<loss, false, CUDA_FEWER_CLASSES, 2>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_sized_both(const cuda_row *job) {
    run_sizes<loss, true, CUDA_FEWER_CLASSES, 2>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_sized_more_forward(const cuda_row *job) {
    run_sizes<loss, false, CUDA_FEW_CLASSES, 20>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_sized_more_both(const cuda_row *job) {
    run_sizes<loss, true, CUDA_FEW_CLASSES, 20>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_plain_forward(const cuda_row *job) {
    run_plain<loss, false>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_plain_both(const cuda_row *job) {
    run_plain<loss, true>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_aside(const cuda_row *job) {
    run_aside<loss, CUDA_ASIDE_WARPS>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_aside_wide(const cuda_row *job) {
    run_aside<loss, CUDA_WIDE_WARPS>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_teams_forward(const cuda_row *job) {
    run_teams<loss, false>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_teams_both(const cuda_row *job) {
    run_teams<loss, true>(job);
}
#endif
template <typename loss> ALWAYS_INLINE void run_rows_any(const cuda_row *job) {
    run_any<loss>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_told(const cuda_row *job) {
    run_told<loss>(job);
}
template <typename loss> ALWAYS_INLINE void run_rows_picked(const cuda_row *job) {
    run_picked<loss>(job);
}

#define MAKE_ROW_KERNEL(loss, variant, parameter, warps, blocks)                                                       \
    extern "C" __global__ void __launch_bounds__((warps)*ORDER_WARP, blocks)                                           \
        onepass_##loss##_##variant(const __grid_constant__ cuda_##parameter job) {                                     \
        await_launch_before();                                                                                         \
        run_##variant<loss##_rows>(&job);                                                                              \
    }

/* Blocks that make up a cluster are launched as one. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && !defined(ONEPASS_REAL_F64)
#define CLUSTERED_LABEL(loss)                                                                                          \
    extern "C" __global__ void __cluster_dims__(CUDA_CLUSTER)                                                          \
        onepass_##loss##_rows_cluster(const __grid_constant__ cuda_row job);
#else
#define CLUSTERED_LABEL(loss)
#endif
#define CLUSTERED_PROBABILITIES(loss)
#define CLUSTERED_PICKED(loss)

/* All those of a loss that looks at rows in such a way. */
#define MAKE_ROW_KERNELS(loss, target) CLUSTERED_##target(loss) ROW_KERNELS_OF(target)(MAKE_ROW_KERNEL, loss)

#endif
