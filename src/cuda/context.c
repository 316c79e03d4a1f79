/* The choice of a context, its preparation, and the kernels in it, each looked up when a call first needs it. */
#include "cuda/context.h"
#include "cuda/image.h"
#include "cuda/pairwise.h"

#include <stdlib.h>
#include <string.h>

/* One lock for what the process has once: primary contexts, and the list of states with what is in them.
 * It is held while a context is prepared and while a kernel is looked up, so that threads whose first
 * calls come at the same time do so once. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---------------------------------------------------------------- the choice -- */

/* Retained once for each GPU, and kept: releasing the last reference would end it under the caller's feet. */
static struct primary {
    cuda_context context;
    int64_t times; /* that it was retained: a handle may be the same as before a reset */
} primary[CUDA_MOST_GPUS];

/* `lost` is the reference that is no good any more, 0 for none: of all threads that lose it one retains the next. */
static onepass_status retain_primary(const cuda_scope *scope, int64_t lost, struct primary *retained) {
    const cuda_driver *driver = scope->driver;
    struct primary *own = &primary[scope->gpu];
    cuda_result result = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    if (own->times == lost)
        result = driver->cuDevicePrimaryCtxRetain(&own->context, driver->gpu[scope->gpu]);
    if (own->times == lost && result == CUDA_SUCCESS)
        own->times++;
    *retained = *own;
    pthread_mutex_unlock(&lock);
    return onepass_cuda_check(driver, result, "retaining the primary context of GPU %d", scope->gpu);
}

static cuda_result push(cuda_scope *scope) {
    const cuda_driver *driver = scope->driver;
    cuda_result result = driver->cuCtxPushCurrent(scope->context);
    if (result != CUDA_SUCCESS)
        return result;
    result = driver->cuCtxGetId(scope->context, &scope->identity);
    scope->pushed = result == CUDA_SUCCESS;
    if (!scope->pushed)
        driver->cuCtxPopCurrent(&(cuda_context){NULL});
    return result;
}

/* A primary context that somebody has reset (cudaDeviceReset) must be retained anew. */
static onepass_status enter_primary(cuda_scope *scope) {
    struct primary retained;
    OK(retain_primary(scope, 0, &retained));
    scope->context = retained.context;
    cuda_result result = push(scope);
    if (result == CUDA_ERROR_CONTEXT_IS_DESTROYED) {
        OK(retain_primary(scope, retained.times, &retained));
        scope->context = retained.context;
        result = push(scope);
    }
    return onepass_cuda_check(scope->driver, result, "entering the primary context of GPU %d", scope->gpu);
}

/* Whether the caller's current context, if there is one, is of this GPU. */
static onepass_status look_at_current(cuda_scope *scope, bool *is_ours) {
    const cuda_driver *driver = scope->driver;
    cuda_device gpu = -1;
    *is_ours = false;
    OK(onepass_cuda_check(driver, driver->cuCtxGetCurrent(&scope->context), "asking for the current context"));
    if (!scope->context)
        return ONEPASS_OK;
    cuda_result result = driver->cuCtxGetDevice(&gpu);
    *is_ours = result == CUDA_SUCCESS && gpu == driver->gpu[scope->gpu];
    if (*is_ours)
        result = driver->cuCtxGetId(scope->context, &scope->identity);
    if (result == CUDA_ERROR_CONTEXT_IS_DESTROYED) {
        *is_ours = false;
        return ONEPASS_OK;
    }
    return onepass_cuda_check(driver, result, "asking for the current context's GPU");
}

onepass_status onepass_cuda_enter(int32_t device_index, cuda_scope *scope) {
    *scope = (cuda_scope){.gpu = device_index};
    OK(onepass_cuda_open(&scope->driver));
    if (device_index >= scope->driver->gpu_count)
        return onepass_fail(ONEPASS_NO_DEVICE, "device_index is %d; expected less than %d, the number of GPUs here",
                            device_index, scope->driver->gpu_count);
    bool is_ours;
    OK(look_at_current(scope, &is_ours));
    return is_ours ? ONEPASS_OK : enter_primary(scope);
}

onepass_status onepass_cuda_leave(const cuda_scope *scope, onepass_status status) {
    cuda_context ours;
    const cuda_result result = scope->pushed ? scope->driver->cuCtxPopCurrent(&ours) : CUDA_SUCCESS;
    if (status != ONEPASS_OK)
        return status;
    return onepass_cuda_check(scope->driver, result, "making the caller's context current again");
}

/* ----------------------------------------------------------- the preparation -- */

static cuda_state *states;

static int32_t kernel_count(void) {
    int32_t count = 0;
    while (onepass_cuda_kernel_name(count))
        count++;
    return count;
}

static onepass_status load_module(const cuda_scope *scope, cuda_state *state, bool is_f64) {
    const cuda_driver *driver = scope->driver;
    const int here = driver->version, built = onepass_cuda_image_toolkit;
    cuda_module module = NULL;
    OK(onepass_cuda_check(driver,
                          driver->cuModuleLoadData(&module, is_f64 ? onepass_cuda_image_f64 : onepass_cuda_image_f32),
                          "loading the kernels on GPU %d (built by CUDA %d.%d; the driver is of CUDA %d.%d)",
                          scope->gpu, built / 1000, built % 1000 / 10, here / 1000, here % 1000 / 10));
    state->module[is_f64] = module;
    return ONEPASS_OK;
}

/* The module for f32 tells whether the kernels suit this GPU and this driver. */
static onepass_status fill_state(const cuda_scope *scope, cuda_state *state) {
    const cuda_driver *driver = scope->driver;
    int multiprocessors = 0;
    cuda_pointer first = 0;
    size_t size = 0;
    OK(load_module(scope, state, false));
    OK(onepass_cuda_check(driver, driver->cuModuleGetGlobal(&first, &size, state->module[0], CUDA_FIRST_WORKSPACE_NAME),
                          "finding the first workspace"));
    OK(onepass_cuda_make_workspaces(driver, first, &state->workspaces));
    OK(onepass_cuda_check(driver,
                          driver->cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                                       driver->gpu[scope->gpu]),
                          "counting the multiprocessors of GPU %d", scope->gpu));
    state->multiprocessors = multiprocessors;
    return ONEPASS_OK;
}

static void drop_state(const cuda_driver *driver, cuda_state *state, bool context_is_gone) {
    for (int i = 0; i < 2 && !context_is_gone; i++)
        if (state->module[i])
            driver->cuModuleUnload(state->module[i]);
    onepass_cuda_drop_workspaces(driver, &state->workspaces, context_is_gone);
    free(state);
}

/* Handles are used again: one that now belongs to another context tells that its former context is gone. */
static void forget_former(const cuda_scope *scope) {
    for (cuda_state **at = &states; *at; at = &(*at)->next) {
        cuda_state *former = *at;
        if (former->context != scope->context)
            continue;
        *at = former->next;
        drop_state(scope->driver, former, true);
        return;
    }
}

static onepass_status make_state(const cuda_scope *scope, cuda_state **made) {
    cuda_state *state = calloc(1, sizeof *state + (size_t)kernel_count() * sizeof *state->kernel);
    if (!state)
        return onepass_fail(ONEPASS_OUT_OF_MEMORY, "no memory for the state of a context");
    state->context = scope->context;
    state->identity = scope->identity;
    pthread_mutex_init(&state->workspaces.lock, NULL);
    const onepass_status status = fill_state(scope, state);
    if (status != ONEPASS_OK) {
        drop_state(scope->driver, state, false);
        return status;
    }
    forget_former(scope);
    state->next = states;
    states = *made = state;
    return ONEPASS_OK;
}

static onepass_status find_or_make(const cuda_scope *scope, cuda_state **state) {
    for (*state = states; *state; *state = (*state)->next)
        if ((*state)->identity == scope->identity)
            return ONEPASS_OK;
    int mode;
    OK(onepass_cuda_relax(scope->driver, &mode));
    return onepass_cuda_unrelax(scope->driver, &mode, make_state(scope, state));
}

onepass_status onepass_cuda_state(const cuda_scope *scope, cuda_state **state) {
    pthread_mutex_lock(&lock);
    const onepass_status status = find_or_make(scope, state);
    pthread_mutex_unlock(&lock);
    return status;
}

/* --------------------------------------------------------------- the kernels -- */

/* By lazy loading a kernel takes memory of the GPU when it is looked up: all of them took 6 to 8 MiB, and a program
 * uses few. A module that was loaded for a kernel which is not found then stays, for the next attempt. */
static onepass_status look_up(const cuda_scope *scope, cuda_state *state, int32_t index) {
    const cuda_driver *driver = scope->driver;
    const char *name = onepass_cuda_kernel_name(index), *real = strrchr(name, '_');
    const bool is_f64 = real && strcmp(real, "_f64") == 0;
    cuda_function kernel = NULL;
    if (!state->module[is_f64])
        OK(load_module(scope, state, is_f64));
    OK(onepass_cuda_check(driver, driver->cuModuleGetFunction(&kernel, state->module[is_f64], name),
                          "finding the kernel %s", name));
    atomic_store_explicit(&state->kernel[index], kernel, memory_order_release);
    return ONEPASS_OK;
}

static onepass_status find_or_look_up(const cuda_scope *scope, cuda_state *state, int32_t index) {
    if (atomic_load_explicit(&state->kernel[index], memory_order_relaxed))
        return ONEPASS_OK;
    int mode;
    OK(onepass_cuda_relax(scope->driver, &mode));
    return onepass_cuda_unrelax(scope->driver, &mode, look_up(scope, state, index));
}

onepass_status onepass_cuda_kernel(const cuda_scope *scope, cuda_state *state, int32_t index, cuda_function *kernel) {
    *kernel = atomic_load_explicit(&state->kernel[index], memory_order_acquire);
    if (*kernel)
        return ONEPASS_OK;
    pthread_mutex_lock(&lock);
    const onepass_status status = find_or_look_up(scope, state, index);
    *kernel = atomic_load_explicit(&state->kernel[index], memory_order_relaxed);
    pthread_mutex_unlock(&lock);
    return status;
}
