/* From a job to the driver, step by step: what whole calls and slices of accumulators share. */
#ifndef ONEPASS_CUDA_LAUNCH_H
#define ONEPASS_CUDA_LAUNCH_H

#include "cuda/context.h"

/* src/cuda/engine.c. All that the kernels will touch is memory of the GPU. */
ONEPASS_INTERNAL onepass_status onepass_cuda_check_pointers(const cuda_scope *scope, const job *job);

/* `size` bytes for the job's launches: the caller's, or the library's own; see onepass_cuda_borrow(). */
ONEPASS_INTERNAL onepass_status onepass_cuda_find_workspace(const job *job, const cuda_scope *scope, cuda_state *state,
                                                            size_t size, bool alone, cuda_loan *loan);

/* Launches what was planned; if it `overlaps`, as soon as the launch before it in the stream begins to end. */
ONEPASS_INTERNAL onepass_status onepass_cuda_take_step(const cuda_driver *driver, cuda_launch *launch,
                                                       cuda_function kernel, cuda_pointer workspace, cuda_stream stream,
                                                       bool overlaps);

#endif
