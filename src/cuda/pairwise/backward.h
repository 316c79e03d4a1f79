/*
 * The gradient alone of dense tensors with a weight, a mask or both, where what a mean is divided by is known. A block
 * has a tile, which is on its way before anything is asked: of a small input each question would be as long as the
 * rest. Blocks begin with the last tile, which the value was computed of a moment ago: with weights of 2^22 elements it
 * is still in the cache (a step took 0.91 of the time on an H200), where the gradient makes way first (0.89 of that).
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
ALWAYS_INLINE void backward_lines(const cuda_backward *job, place_in_block at, int index) {
    const int thread = at.warp * BACKWARD_LINES * ORDER_WARP + at.thread;
    const tile tile = tile_at(index, whole ? ORDER_TILE : job->last_count, thread, NULL);
    const weighted_tensors tensors = {{job->operand[0], job->operand[1]}, job->weight, job->mask, false};
    weighted_lines<loss, BACKWARD_LINES> lines;
    prefetch_weighted_lines<BACKWARD, whole, KEEP_AS_USUAL>(&tensors, &tile, 0, &lines);
    outputs outputs = {};
    outputs.parameter = REAL(job->parameter);
    outputs.upstream = upstream_of(job);
    outputs.scale = scale_of(job);
    compute_weighted_lines<BACKWARD>(&tensors, &outputs, &tile, job->gradient, 0, &lines, NULL, NULL);
}

ALWAYS_INLINE bool is_whole(const cuda_backward *job, int index) {
    return index < job->last_tile + job->last_is_whole;
}

/* The tile that the input ends in, out of line, so that the rest lies in one piece. */
template <typename loss>
static __device__ __noinline__ void backward_last_lines(const cuda_backward *job, place_in_block at) {
    backward_lines<loss, false>(job, at, job->last_tile);
}

template <typename loss> ALWAYS_INLINE void run_backward(const cuda_backward *job) {
    const place_in_block at = here_in_small_block();
    const int index = job->last_tile - (int)blockIdx.x;
    if (is_whole(job, index))
        backward_lines<loss, true>(job, at, index);
    else
        backward_last_lines<loss>(job, at);
}

/* A gradient that the upstream gradient hardly ever asks to compute anew. Blocks are few then, with several tiles: to
 * begin one for each and end it took a GPU a quarter of a step with a mask of 2^28 elements. */
template <typename loss> ALWAYS_INLINE void run_anew(const cuda_backward *job) {
    if (is_plainly_one(job->upstream, job->upstream_dtype) || upstream_of(job) == 1)
        return;
    const place_in_block at = here_in_small_block();
#pragma unroll 1
    for (int index = job->last_tile - (int)blockIdx.x; index >= 0; index -= job->blocks) {
        if (is_whole(job, index))
            backward_lines<loss, true>(job, at, index);
        else
            backward_lines<loss, false>(job, at, index);
    }
}

template <typename loss, direction direction, access access> ALWAYS_INLINE void run_kernel(const cuda_backward *job) {
    if constexpr (direction == ANEW)
        run_anew<loss>(job);
    else
        run_backward<loss>(job);
}

#endif
