/*
 * The gradient alone of few elements, all in whole lines, with weights, a mask, both or neither: a warp has a line, and
 * all that it needs is on its way before anything is computed. A value and then this gradient take less time than the
 * gradient with the value and a launch that asks whether it is to be scaled, up to 2^13 elements on an H200. Blocks
 * begin at the end, as in backward.h.
 */
#ifndef ONEPASS_CUDA_PAIRWISE_WHOLE_H
#define ONEPASS_CUDA_PAIRWISE_WHOLE_H

#include "cuda/pairwise/weighted.h"
#include "cuda/quotient.h"

static __device__ __noinline__ real rare_scale(double divisor) {
    return (real)(1 / (divisor + 0.)); /* no -0, as of a sum */
}

template <typename loss, direction direction, access access> ALWAYS_INLINE void run_kernel(const cuda_whole *job) {
    constexpr bool has_both = direction == MEAN_BACKWARD, has_weight = has_both || direction == WEIGHT_BACKWARD,
                   has_mask = has_both || direction == MASK_BACKWARD;
    constexpr enum direction factors = has_both ? MEAN : has_weight ? WEIGHT_MEAN : has_mask ? MASK_MEAN : BACKWARD;
    const place_in_block at = here_in_small_block();
    const tile tile = tile_of_lines<1>(at.warp - (int)blockIdx.x * CUDA_WHOLE_WARPS, at.thread);
    const void *weight = has_weight ? job->weight : NULL, *mask = has_both ? job->mask : has_mask ? job->weight : NULL;
    const weighted_tensors tensors = {{job->operand[0], job->operand[1]}, weight, mask, false};
    weighted_lines<loss, 1> line;
    prefetch_weighted_lines<factors, true, KEEP_AS_USUAL, has_mask>(&tensors, &tile, 0, &line);
    outputs outputs = {};
    outputs.parameter = REAL(job->parameter);
    outputs.upstream = *(const real *)job->upstream;
    outputs.scale = REAL(job->scale);
    if constexpr (has_weight || has_mask) {
        const double divisor = *(const double *)job->divisor;
        const quick_quotient scale = divide_quickly(1, divisor);
        outputs.scale = scale.rounded;
        compute_weighted_lines<BACKWARD>(&tensors, &outputs, &tile, job->gradient, 0, &line, NULL, NULL);
        if (scale.is_sure) /* as nearly always, or the line is stored once more */
            return;
        outputs.scale = rare_scale(divisor);
    }
    compute_weighted_lines<BACKWARD>(&tensors, &outputs, &tile, job->gradient, 0, &line, NULL, NULL);
}

#endif
