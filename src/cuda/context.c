/* The choice of a context, its preparation, and the kernels in it, each looked up when a call first needs it. */
#include "cuda/context.h"
#include "cuda/arithmetic.h"
#include "cuda/image.h"

#include <stdio.h>
#include <stdlib.h>

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

onepass_status onepass_cuda_enter_again(const cuda_scope *former, const char *what, cuda_scope *scope) {
    *scope = (cuda_scope){.gpu = former->gpu, .context = former->context};
    OK(onepass_cuda_open(&scope->driver));
    const cuda_result result = push(scope);
    const bool is_another = scope->pushed && scope->identity != former->identity;
    if (is_another)
        scope->driver->cuCtxPopCurrent(&(cuda_context){NULL});
    if (is_another || result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_INVALID_CONTEXT)
        return onepass_fail(ONEPASS_DEVICE_FAILED, "the context of GPU %d is gone, and %s with it", former->gpu, what);
    return onepass_cuda_check(scope->driver, result, "entering a context of GPU %d again", former->gpu);
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

static onepass_status find_or_add_unit(cuda_state *state, const cuda_images *images, cuda_unit **found) {
    for (*found = state->units; *found; *found = (*found)->next)
        if ((*found)->images == images)
            return ONEPASS_OK;
    cuda_unit *unit = calloc(1, sizeof *unit);
    if (!unit)
        return onepass_fail(ONEPASS_OUT_OF_MEMORY, "no memory for the kernels of a loss");
    unit->images = images;
    unit->next = state->units;
    state->units = *found = unit;
    return ONEPASS_OK;
}

static onepass_status load_module(const cuda_scope *scope, cuda_state *state, const cuda_images *images, bool is_f64,
                                  cuda_module *loaded) {
    const cuda_driver *driver = scope->driver;
    const int here = driver->version, built = onepass_cuda_toolkit;
    cuda_unit *unit;
    OK(find_or_add_unit(state, images, &unit));
    if (!unit->module[is_f64])
        OK(onepass_cuda_check(driver,
                              driver->cuModuleLoadData(&unit->module[is_f64], is_f64 ? images->f64 : images->f32),
                              "loading the kernels on GPU %d (built by CUDA %d.%d; the driver is of CUDA %d.%d)",
                              scope->gpu, built / 1000, built % 1000 / 10, here / 1000, here % 1000 / 10));
    *loaded = unit->module[is_f64];
    return ONEPASS_OK;
}

static onepass_status ask_gpu(const cuda_scope *scope, int attribute, const char *what, int32_t *answer) {
    int number = 0;
    OK(onepass_cuda_check(scope->driver,
                          scope->driver->cuDeviceGetAttribute(&number, attribute, scope->driver->gpu[scope->gpu]),
                          "asking %s GPU %d has", what, scope->gpu));
    *answer = number;
    return ONEPASS_OK;
}

/* Blocks of a cluster are neighbours on the chip, so that some multiprocessors may have none. */
static onepass_status ask_clusters(const cuda_driver *driver, cuda_module module, cuda_limits *limits) {
    const cuda_config config = {.blocks = {CUDA_CLUSTER * (unsigned)limits->multiprocessors, 1, 1},
                                .threads = {(CUDA_CLUSTER_WARPS + 1) * WARP, 1, 1},
                                .shared_memory = (unsigned)limits->shared_memory};
    cuda_function kernel;
    int clusters = 0;
    limits->clusters = 0;
    limits->overlaps = false;
    const cuda_result found = driver->cuModuleGetFunction(&kernel, module, CUDA_ANY_CLUSTER_NAME);
    if (found == CUDA_ERROR_NOT_FOUND)
        return ONEPASS_OK;
    OK(onepass_cuda_check(driver, found, "finding the kernel %s", CUDA_ANY_CLUSTER_NAME));
    OK(onepass_cuda_check(
        driver,
        driver->cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, limits->shared_memory),
        "giving a cluster's blocks %d bytes of shared memory", limits->shared_memory));
    OK(onepass_cuda_check(driver, driver->cuOccupancyMaxActiveClusters(&clusters, kernel, &config),
                          "asking how many clusters of blocks there can be"));
    limits->clusters = clusters;
    limits->overlaps = driver->version >= 12030; /* from which on that can be captured, too; older GPUs never do it */
    return ONEPASS_OK;
}

/* The module that serves every loss tells whether the kernels suit this GPU and this driver. */
static onepass_status fill_state(const cuda_scope *scope, cuda_state *state) {
    const cuda_driver *driver = scope->driver;
    cuda_pointer first = 0;
    size_t size = 0;
    cuda_module module;
    OK(load_module(scope, state, &onepass_cuda_images_every_loss, false, &module));
    OK(onepass_cuda_check(driver, driver->cuModuleGetGlobal(&first, &size, module, CUDA_FIRST_WORKSPACE_NAME),
                          "finding the first workspace"));
    OK(onepass_cuda_make_workspaces(driver, first, &state->workspaces));
    OK(ask_gpu(scope, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, "how many multiprocessors",
               &state->limits.multiprocessors));
    OK(ask_gpu(scope, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, "how much shared memory",
               &state->limits.shared_memory));
    return ask_clusters(driver, module, &state->limits);
}

static void drop_state(const cuda_driver *driver, cuda_state *state, bool context_is_gone) {
    for (cuda_unit *unit = state->units, *next; unit; unit = next) {
        next = unit->next;
        for (int i = 0; i < 2 && !context_is_gone; i++)
            if (unit->module[i])
                driver->cuModuleUnload(unit->module[i]);
        free(unit);
    }
    for (cuda_loss *loss = atomic_load_explicit(&state->losses, memory_order_relaxed), *next; loss; loss = next) {
        next = loss->next;
        free(loss);
    }
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
    cuda_state *state = calloc(1, sizeof *state);
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

static cuda_loss *find_loss(cuda_state *state, const loss *loss) {
    cuda_loss *found = atomic_load_explicit(&state->losses, memory_order_acquire);
    while (found && found->loss != loss)
        found = found->next;
    return found;
}

static onepass_status find_or_add_loss(cuda_state *state, const loss *loss, cuda_loss **found) {
    *found = find_loss(state, loss);
    if (*found)
        return ONEPASS_OK;
    *found = calloc(1, sizeof **found);
    if (!*found)
        return onepass_fail(ONEPASS_OUT_OF_MEMORY, "no memory for the kernels of %s", loss->info.name);
    (*found)->loss = loss;
    (*found)->next = atomic_load_explicit(&state->losses, memory_order_relaxed);
    atomic_store_explicit(&state->losses, *found, memory_order_release);
    return ONEPASS_OK;
}

/* By lazy loading a kernel takes memory of the GPU when it is looked up, and a program uses few. A module that was
 * loaded for a kernel which is not found then stays, for the next attempt. */
static onepass_status look_up(const cuda_scope *scope, cuda_state *state, const cuda_launch *launch,
                              _Atomic(cuda_function) *place) {
    const cuda_driver *driver = scope->driver;
    const bool is_f64 = launch->compute == ONEPASS_F64;
    char name[128];
    cuda_module module;
    cuda_function kernel = NULL;
    snprintf(name, sizeof name, "onepass_%s_%s", launch->loss->info.name, onepass_cuda_variant[launch->variant].name);
    OK(load_module(scope, state, launch->loss->cuda, is_f64, &module));
    OK(onepass_cuda_check(driver, driver->cuModuleGetFunction(&kernel, module, name), "finding the kernel %s for %s",
                          name, is_f64 ? "f64" : "f32"));
    const int32_t most = onepass_cuda_most_shared_memory(launch, &state->limits);
    if (most > 0)
        OK(onepass_cuda_check(driver,
                              driver->cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most),
                              "giving the kernel %s %d bytes of shared memory", name, most));
    atomic_store_explicit(place, kernel, memory_order_release);
    return ONEPASS_OK;
}

static onepass_status find_or_look_up(const cuda_scope *scope, cuda_state *state, const cuda_launch *launch,
                                      cuda_function *kernel) {
    cuda_loss *loss;
    int mode;
    OK(find_or_add_loss(state, launch->loss, &loss));
    _Atomic(cuda_function) *place = &loss->kernel[launch->compute == ONEPASS_F64][launch->variant];
    *kernel = atomic_load_explicit(place, memory_order_relaxed);
    if (*kernel)
        return ONEPASS_OK;
    OK(onepass_cuda_relax(scope->driver, &mode));
    OK(onepass_cuda_unrelax(scope->driver, &mode, look_up(scope, state, launch, place)));
    *kernel = atomic_load_explicit(place, memory_order_relaxed);
    return ONEPASS_OK;
}

onepass_status onepass_cuda_kernel(const cuda_scope *scope, cuda_state *state, const cuda_launch *launch,
                                   cuda_function *kernel) {
    cuda_loss *loss = find_loss(state, launch->loss);
    *kernel = NULL;
    if (loss)
        *kernel =
            atomic_load_explicit(&loss->kernel[launch->compute == ONEPASS_F64][launch->variant], memory_order_acquire);
    if (*kernel)
        return ONEPASS_OK;
    pthread_mutex_lock(&lock);
    const onepass_status status = find_or_look_up(scope, state, launch, kernel);
    pthread_mutex_unlock(&lock);
    return status;
}
