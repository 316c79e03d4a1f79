/*
 * The gradient alone of dense tensors with a weight, a mask or both, where what a mean is divided by is known. What a
 * warp has first is on its way before anything is asked: of a small input each question would be as long as the rest.
 * There a block has a tile. Of a large input a warp has whole tiles, so that more is on its way: with a mask, of 2^28
 * elements, a step took 0.88 of the time.
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

/* So many lines of a tile, which are seen as in tile_of_lines(). What is multiplied with is asked for once. */
template <typename loss, int count, bool whole>
ALWAYS_INLINE void backward_lines(const cuda_backward *job, int64_t index, int thread, int left, outputs *outputs) {
    const tile tile = tile_at(index, whole ? ORDER_TILE : left, thread, NULL);
    const weighted_tensors tensors = {{job->operand[0], job->operand[1]}, job->weight, job->mask, false};
    weighted_lines<loss, count> lines;
    prefetch_weighted_lines<BACKWARD, whole>(&tensors, &tile, 0, &lines);
    if (!outputs->gradients) {
        outputs->gradients = 1;
        outputs->upstream = upstream_of(job);
        outputs->scale = scale_of(job);
    }
    compute_weighted_lines<BACKWARD>(&tensors, outputs, &tile, job->gradient, 0, &lines, NULL, NULL);
}

/* The tile that the input ends in, out of line, so that the others' code lies in one piece. */
template <typename loss, int count>
static __device__ __noinline__ void backward_last_lines(const cuda_backward *job, int64_t index, int thread, int left) {
    outputs outputs = {};
    outputs.parameter = REAL(job->parameter);
    backward_lines<loss, count, false>(job, index, thread, left, &outputs);
}

template <typename loss, direction direction, access access> ALWAYS_INLINE void run_kernel(const cuda_backward *job) {
    const place_in_block at = here_in_small_block();
    const int64_t left = job->count - (int64_t)blockIdx.x * ORDER_TILE;
    const int thread = at.warp * BACKWARD_LINES * ORDER_WARP + at.thread;
    if (job->skip_if_one && upstream_of(job) == 1)
        return;
    outputs outputs = {};
    outputs.parameter = REAL(job->parameter);
    if (left >= ORDER_TILE)
        backward_lines<loss, BACKWARD_LINES, true>(job, blockIdx.x, thread, ORDER_TILE, &outputs);
    else
        backward_last_lines<loss, BACKWARD_LINES>(job, blockIdx.x, thread, (int)left);
}

template <typename loss, direction direction, access access>
ALWAYS_INLINE void run_kernel(const cuda_long_backward *job) {
    const cuda_backward *of = &job->backward;
    const place_in_block at = here_in_small_block();
    int64_t index = ((int64_t)blockIdx.x << job->warp_bits) + at.warp, left = of->count - index * ORDER_TILE;
    if (of->skip_if_one && upstream_of(of) == 1)
        return;
    outputs outputs = {};
    outputs.parameter = REAL(of->parameter);
#pragma unroll 1
    for (; left >= ORDER_TILE; index += job->apart, left -= job->apart * ORDER_TILE)
        backward_lines<loss, ORDER_LINES, true>(of, index, at.thread, ORDER_TILE, &outputs);
    if (left > 0)
        backward_last_lines<loss, ORDER_LINES>(of, index, at.thread, (int)left);
}

#endif
