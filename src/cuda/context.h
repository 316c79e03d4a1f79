/*
 * Contexts: which one a call uses, and what the library keeps in each that it has been
 * used in.
 */
#ifndef ONEPASS_CUDA_CONTEXT_H
#define ONEPASS_CUDA_CONTEXT_H

#include "cuda/driver.h"
#include "cuda/workspace.h"

#include <stdatomic.h>

/* Where a call runs: between enter and leave its context is current. */
typedef struct cuda_scope {
    const cuda_driver *driver;
    int32_t gpu; /* index */
    cuda_context context;
    unsigned long long identity; /* of the context: unlike handles these are never used again */
    bool pushed;
} cuda_scope;

/* Makes the right context current: the caller's if it belongs to the GPU, else the GPU's primary one. */
ONEPASS_INTERNAL onepass_status onepass_cuda_enter(int32_t device_index, cuda_scope *scope);

/* Makes the caller's current again. `status` is that of what was done in between, and comes first. */
ONEPASS_INTERNAL onepass_status onepass_cuda_leave(const cuda_scope *scope, onepass_status status);

/* What the library keeps in a context. */
typedef struct cuda_state {
    struct cuda_state *next;
    cuda_context context;
    unsigned long long identity;
    int32_t multiprocessors;
    cuda_module module[2]; /* for the compute types f32 and f64; null: not loaded yet */
    cuda_workspaces workspaces;
    _Atomic(cuda_function) kernel[]; /* by their index for onepass_cuda_kernel_name; null: not looked up yet */
} cuda_state;

/* Finds it, or makes it if this is the context's first call. */
ONEPASS_INTERNAL onepass_status onepass_cuda_state(const cuda_scope *scope, cuda_state **state);

/* A kernel by its index, looked up if this is the context's first call that needs it. */
ONEPASS_INTERNAL onepass_status onepass_cuda_kernel(const cuda_scope *scope, cuda_state *state, int32_t index,
                                                    cuda_function *kernel);

#endif
