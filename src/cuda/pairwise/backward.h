/*
 * The gradient alone of dense tensors with a weight, a mask or both, where what a mean is divided by is known. A warp
 * has its first tile on the way before it asks for that: of a small input each question would be as long as the rest.
 */
#ifndef ONEPASS_CUDA_PAIRWISE_BACKWARD_H
#define ONEPASS_CUDA_PAIRWISE_BACKWARD_H

#include "cuda/pairwise/weighted.h"

static __device__ __noinline__ real rare_upstream(const cuda_backward *job) {
    return job->upstream ? (real)load_scalar(job->upstream, job->upstream_dtype) : 1;
}

ALWAYS_INLINE real upstream_of(const cuda_backward *job) {
    return job->upstream_dtype == REAL_DTYPE ? *(const real *)job->upstream : rare_upstream(job);
}

/* No -0, as of a sum. */
ALWAYS_INLINE real scale_of(const cuda_backward *job) {
    return job->divisor ? (real)(1 / (*(const double *)job->divisor + 0.)) : REAL(job->scale);
}

template <typename loss, bool whole>
ALWAYS_INLINE void backward_tile(const cuda_backward *job, int thread, int64_t index, int left, outputs *outputs) {
    const tile tile = tile_at(index, whole ? ORDER_TILE : left, thread, NULL);
    const weighted_tensors tensors = {{job->operand[0], job->operand[1]}, job->weight, job->mask, false};
    weighted_lines<loss, ORDER_LINES> lines;
    prefetch_weighted_lines<BACKWARD, whole>(&tensors, &tile, 0, &lines);
    if (!outputs->gradients) {
        outputs->gradients = 1;
        outputs->upstream = upstream_of(job);
        outputs->scale = scale_of(job);
    }
    compute_weighted_lines<BACKWARD>(&tensors, outputs, &tile, job->gradient, 0, &lines, NULL, NULL);
}

/* The tile that the input ends in, out of line, so that the others' code lies in one piece. */
template <typename loss>
static __device__ __noinline__ void backward_last_tile(const cuda_backward *job, int thread, int64_t index, int left) {
    outputs outputs = {};
    outputs.parameter = REAL(job->parameter);
    backward_tile<loss, false>(job, thread, index, left, &outputs);
}

template <typename loss> ALWAYS_INLINE void run_backward(const cuda_backward *job) {
    const place_in_block at = here_in_small_block();
    int64_t index = ((int64_t)blockIdx.x << job->warp_bits) + at.warp, left = job->count - index * ORDER_TILE;
    if (job->skip_if_one && rare_upstream(job) == 1)
        return;
    outputs outputs = {};
    outputs.parameter = REAL(job->parameter);
#pragma unroll 1
    for (; left >= ORDER_TILE; index += job->apart, left -= job->apart * ORDER_TILE)
        backward_tile<loss, true>(job, at.thread, index, ORDER_TILE, &outputs);
    if (left > 0)
        backward_last_tile<loss>(job, at.thread, index, (int)left);
}

template <typename loss, direction direction, access access> ALWAYS_INLINE void run_kernel(const cuda_backward *job) {
    run_backward<loss>(job);
}

#endif
