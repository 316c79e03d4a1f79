/*
 * Contexts: which one a call uses, and what the library keeps in each that it has been
 * used in.
 */
#ifndef ONEPASS_CUDA_CONTEXT_H
#define ONEPASS_CUDA_CONTEXT_H

#include "cuda/driver.h"
#include "cuda/plan.h"
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

/* Makes a context current that was in a scope before, and that may be gone by now: `what` says what is gone with it. */
ONEPASS_INTERNAL onepass_status onepass_cuda_enter_again(const cuda_scope *former, const char *what, cuda_scope *scope);

/* Makes the caller's current again. `status` is that of what was done in between, and comes first. */
ONEPASS_INTERNAL onepass_status onepass_cuda_leave(const cuda_scope *scope, onepass_status status);

/* The kernels of a loss, by compute type (f32, f64) and variant; null: not looked up yet. */
typedef struct cuda_loss {
    struct cuda_loss *next;
    const loss *loss;
    _Atomic(cuda_function) kernel[2][CUDA_VARIANTS];
} cuda_loss;

/* The modules of a unit, by compute type; null: not loaded yet. */
typedef struct cuda_unit {
    struct cuda_unit *next;
    const cuda_images *images;
    cuda_module module[2];
} cuda_unit;

/* What the library keeps in a context. Losses and units are added at the front of their lists when they are first used
 * and stay there, so that losses are found without a lock. */
typedef struct cuda_state {
    struct cuda_state *next;
    cuda_context context;
    unsigned long long identity;
    cuda_limits limits;
    _Atomic(cuda_loss *) losses;
    cuda_unit *units;
    cuda_workspaces workspaces;
} cuda_state;

/* Finds it, or makes it if this is the context's first call. */
ONEPASS_INTERNAL onepass_status onepass_cuda_state(const cuda_scope *scope, cuda_state **state);

/* The kernel of a launch, looked up if this is the context's first call that needs it. */
ONEPASS_INTERNAL onepass_status onepass_cuda_kernel(const cuda_scope *scope, cuda_state *state,
                                                    const cuda_launch *launch, cuda_function *kernel);

#endif
