/*
 * The gradient alone of dense tensors with a weight, a mask or both, where what a mean is divided by is known. A block
 * has a tile, which is on its way before anything is asked: of a small input each question would be as long as the
 * rest.
 */
#ifndef ONEPASS_CUDA_PAIRWISE_BACKWARD_H
#define ONEPASS_CUDA_PAIRWISE_BACKWARD_H

#include "cuda/pairwise/weighted.h"

/* Of a tile, that a warp has: a launch waits for its code, which is as long as they are many. */
#define BACKWARD_LINES (ORDER_LINES / CUDA_BACKWARD_WARPS)

ALWAYS_INLINE real upstream_of(const cuda_backward *job) {
    if (job->upstream_dtype == REAL_DTYPE)
        return *(const real *)job->upstream;
    return job->upstream ? (real)load_scalar(job->upstream, job->upstream_dtype) : 1;
}

/* No -0, as of a sum. */
ALWAYS_INLINE real scale_of(const cuda_backward *job) {
    return job->divisor ? (real)(1 / (*(const double *)job->divisor + 0.)) : REAL(job->scale);
}

/* The lines of a warp are seen as in tile_of_lines(). */
template <typename loss, bool whole>
ALWAYS_INLINE void backward_lines(const cuda_backward *job, place_in_block at, int left) {
    const int thread = at.warp * BACKWARD_LINES * ORDER_WARP + at.thread;
    const tile tile = tile_at(blockIdx.x, whole ? ORDER_TILE : left, thread, NULL);
    const weighted_tensors tensors = {{job->operand[0], job->operand[1]}, job->weight, job->mask, false};
    weighted_lines<loss, BACKWARD_LINES> lines;
    prefetch_weighted_lines<BACKWARD, whole>(&tensors, &tile, 0, &lines);
    outputs outputs = {};
    outputs.parameter = REAL(job->parameter);
    outputs.upstream = upstream_of(job);
    outputs.scale = scale_of(job);
    compute_weighted_lines<BACKWARD>(&tensors, &outputs, &tile, job->gradient, 0, &lines, NULL, NULL);
}

/* The tile that the input ends in, out of line, so that the others' code lies in one piece. */
template <typename loss>
static __device__ __noinline__ void backward_last_lines(const cuda_backward *job, place_in_block at, int left) {
    backward_lines<loss, false>(job, at, left);
}

template <typename loss> ALWAYS_INLINE void run_backward(const cuda_backward *job) {
    const place_in_block at = here_in_small_block();
    const int64_t left = job->count - (int64_t)blockIdx.x * ORDER_TILE;
    if (job->skip_if_one && upstream_of(job) == 1)
        return;
    if (left >= ORDER_TILE)
        backward_lines<loss, true>(job, at, ORDER_TILE);
    else
        backward_last_lines<loss>(job, at, (int)left);
}

template <typename loss, direction direction, access access> ALWAYS_INLINE void run_kernel(const cuda_backward *job) {
    run_backward<loss>(job);
}

#endif
