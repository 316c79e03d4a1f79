/* The fake driver: see fake_driver.h. Only what onepass uses is here. What exists: GPUs, contexts, modules, memory. */
#define _GNU_SOURCE
#include "fake_driver_state.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ----------------------------------------------------------------- state -- */

struct CUctx_st contexts[MOST_CONTEXTS];
struct CUstream_st streams[MOST_STREAMS];
struct CUevent_st events[MOST_EVENTS];
static struct CUmod_st modules[MOST_MODULES];
static memory memories[MOST_MEMORY];
struct CUstream_st null_streams[MOST_CONTEXTS];
unsigned long long last_identity = 1000;
static bool initialised;

static _Thread_local cuda_context stack[MOST_DEPTH];
static _Thread_local int32_t stack_depth;
_Thread_local int32_t capture_mode;

fake the_fake;
pthread_mutex_t lock;
static pthread_once_t once = PTHREAD_ONCE_INIT;

void violate(const char *how) {
    the_fake.violations++;
    the_fake.violation = how;
}

bool enter(const char *function, cuda_result *result) {
    (void)fake_driver();
    pthread_mutex_lock(&lock);
    the_fake.calls++;
    *result = CUDA_SUCCESS;
    if (the_fake.fail_at > 0 && (!the_fake.fail_in || strcmp(the_fake.fail_in, function) == 0) &&
        --the_fake.fail_at == 0) {
        the_fake.failed = function;
        *result = the_fake.fail_with;
    }
    return *result == CUDA_SUCCESS;
}

cuda_result leave(cuda_result result) {
    pthread_mutex_unlock(&lock);
    return result;
}

void take_time(void) {
    if (fake_driver()->slow)
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

cuda_context current(void) {
    return stack_depth > 0 ? stack[stack_depth - 1] : NULL;
}

bool is_prohibited(void) {
    bool captures = false;
    for (int i = 0; i < MOST_STREAMS && capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED; i++) {
        if (!streams[i].alive || streams[i].capture != CU_STREAM_CAPTURE_STATUS_ACTIVE)
            continue;
        streams[i].capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
        captures = true;
    }
    return captures;
}

struct CUstream_st *stream_of(cuda_stream stream) {
    return (uintptr_t)stream <= 1 && current() ? &null_streams[current() - contexts] : stream;
}

memory *memory_at(cuda_pointer pointer) {
    for (int i = 0; i < MOST_MEMORY; i++)
        if (memories[i].data && pointer >= (cuda_pointer)memories[i].data &&
            pointer < (cuda_pointer)memories[i].data + memories[i].size)
            return &memories[i];
    return NULL;
}

/* ------------------------------------------------------- asking the driver -- */

EXPORT cuda_result cuGetErrorName(cuda_result error, const char **name);
EXPORT cuda_result cuGetErrorName(cuda_result error, const char **name) {
    static const struct {
        cuda_result error;
        const char *name;
    } names[] = {
        {1, "CUDA_ERROR_INVALID_VALUE"},
        {2, "CUDA_ERROR_OUT_OF_MEMORY"},
        {3, "CUDA_ERROR_NOT_INITIALIZED"},
        {100, "CUDA_ERROR_NO_DEVICE"},
        {101, "CUDA_ERROR_INVALID_DEVICE"},
        {201, "CUDA_ERROR_INVALID_CONTEXT"},
        {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
        {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
        {400, "CUDA_ERROR_INVALID_HANDLE"},
        {500, "CUDA_ERROR_NOT_FOUND"},
        {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED"},
        {719, "CUDA_ERROR_LAUNCH_FAILED"},
        {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
        {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i].error != error)
            continue;
        *name = names[i].name;
        return CUDA_SUCCESS;
    }
    return ILLEGAL;
}

EXPORT cuda_result cuGetErrorString(cuda_result error, const char **text);
EXPORT cuda_result cuGetErrorString(cuda_result error, const char **text) {
    *text = "what the fake says";
    return error == 999 ? ILLEGAL : CUDA_SUCCESS;
}

EXPORT cuda_result cuDriverGetVersion(int *version);
EXPORT cuda_result cuDriverGetVersion(int *version) {
    ENTER;
    *version = the_fake.version;
    return leave(CUDA_SUCCESS);
}

EXPORT cuda_result cuInit(unsigned flags);
EXPORT cuda_result cuInit(unsigned flags) {
    ENTER;
    NEED(flags == 0, ILLEGAL);
    NEED(the_fake.gpus > 0, CUDA_ERROR_NO_DEVICE);
    initialised = true;
    return leave(CUDA_SUCCESS);
}

EXPORT cuda_result cuDeviceGetCount(int *count);
EXPORT cuda_result cuDeviceGetCount(int *count) {
    ENTER;
    NEED(initialised, NOT_INITIALIZED);
    *count = the_fake.gpus;
    return leave(CUDA_SUCCESS);
}

EXPORT cuda_result cuDeviceGet(cuda_device *device, int ordinal);
EXPORT cuda_result cuDeviceGet(cuda_device *device, int ordinal) {
    ENTER;
    NEED(ordinal >= 0 && ordinal < the_fake.gpus, CUDA_ERROR_INVALID_DEVICE);
    *device = FIRST_GPU + ordinal;
    return leave(CUDA_SUCCESS);
}

EXPORT cuda_result cuDeviceGetName(char *name, int length, cuda_device device);
EXPORT cuda_result cuDeviceGetName(char *name, int length, cuda_device device) {
    ENTER;
    snprintf(name, (size_t)length, "Fake %d", device - FIRST_GPU);
    return leave(CUDA_SUCCESS);
}

EXPORT cuda_result cuDeviceGetAttribute(int *number, int attribute, cuda_device device);
EXPORT cuda_result cuDeviceGetAttribute(int *number, int attribute, cuda_device device) {
    ENTER;
    NEED(device >= FIRST_GPU && device < FIRST_GPU + the_fake.gpus, CUDA_ERROR_INVALID_DEVICE);
    NEED(attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ||
             attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
         ILLEGAL);
    *number = attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ? FAKE_MULTIPROCESSORS : FAKE_SHARED_MEMORY;
    return leave(CUDA_SUCCESS);
}

/* ---------------------------------------------------------------- contexts -- */

static cuda_context place_context(cuda_context context, int32_t gpu, bool is_primary) {
    last_identity += 2;
    *context = (struct CUctx_st){true, is_primary, gpu, last_identity - 1, last_identity};
    null_streams[context - contexts] =
        (struct CUstream_st){.alive = true, .context = context, .identity = context->null_stream};
    return context;
}

static cuda_context make_context(int32_t gpu) {
    cuda_context made = NULL;
    pthread_mutex_lock(&lock);
    for (int i = the_fake.gpus; i < MOST_CONTEXTS && !made; i++) /* the first places are for primary contexts */
        if (!contexts[i].alive)
            made = place_context(&contexts[i], gpu, false);
    pthread_mutex_unlock(&lock);
    return made;
}

static void forget_memory(memory *memory) {
    if (memory->is_library) {
        the_fake.counts.memory--;
        the_fake.counts.bytes -= memory->size;
    }
    free(memory->data);
    memory->data = NULL;
}

static void unload(cuda_module module) {
    module->alive = false;
    the_fake.counts.modules--;
    if (module->workspace)
        forget_memory(memory_at(module->workspace));
    module->workspace = 0;
}

/* With all that is in it. */
static void destroy_context(cuda_context context) {
    pthread_mutex_lock(&lock);
    context->alive = false;
    for (int i = 0; i < MOST_STREAMS; i++) {
        if (!streams[i].alive || streams[i].context != context)
            continue;
        streams[i].alive = false;
        the_fake.counts.streams -= streams[i].is_library;
    }
    for (int i = 0; i < MOST_EVENTS; i++) {
        if (!events[i].alive || events[i].context != context)
            continue;
        events[i].alive = false;
        the_fake.counts.events--;
    }
    for (int i = 0; i < MOST_MODULES; i++)
        if (modules[i].alive && modules[i].context == context)
            unload(&modules[i]);
    for (int i = 0; i < MOST_MEMORY; i++)
        if (memories[i].data && memories[i].is_library && memories[i].context == context)
            forget_memory(&memories[i]);
    pthread_mutex_unlock(&lock);
}

static cuda_context primary(int32_t gpu) {
    return &contexts[gpu];
}

static void reset_primary(int32_t gpu) {
    destroy_context(&contexts[gpu]);
}

EXPORT cuda_result cuDevicePrimaryCtxRetain(cuda_context *context, cuda_device device);
EXPORT cuda_result cuDevicePrimaryCtxRetain(cuda_context *context, cuda_device device) {
    ENTER;
    const int32_t gpu = device - FIRST_GPU;
    NEED(gpu >= 0 && gpu < the_fake.gpus, CUDA_ERROR_INVALID_DEVICE);
    if (!contexts[gpu].alive)
        place_context(&contexts[gpu], gpu, true);
    the_fake.retains++;
    the_fake.counts.retained++;
    *context = &contexts[gpu];
    return leave(CUDA_SUCCESS);
}

static void set_current(cuda_context context) {
    stack_depth = context != NULL;
    stack[0] = context;
}

static int32_t depth(void) {
    return stack_depth;
}

EXPORT cuda_result cuCtxGetCurrent(cuda_context *context);
EXPORT cuda_result cuCtxGetCurrent(cuda_context *context) {
    ENTER;
    NEED(initialised, NOT_INITIALIZED);
    *context = current();
    return leave(CUDA_SUCCESS);
}

EXPORT cuda_result cuCtxGetDevice(cuda_device *device);
EXPORT cuda_result cuCtxGetDevice(cuda_device *device) {
    ENTER;
    NEED(current(), INVALID_CONTEXT);
    *device = FIRST_GPU + current()->gpu;
    return leave(CUDA_SUCCESS);
}

EXPORT cuda_result cuCtxGetId(cuda_context context, unsigned long long *identity);
EXPORT cuda_result cuCtxGetId(cuda_context context, unsigned long long *identity) {
    ENTER;
    const bool is_alive = context && context->alive;
    if (is_alive)
        *identity = context->identity;
    leave(CUDA_SUCCESS);
    take_time(); /* the answer may be out of date when it is heard */
    return is_alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

EXPORT cuda_result cuCtxPushCurrent_v2(cuda_context context);
EXPORT cuda_result cuCtxPushCurrent_v2(cuda_context context) {
    ENTER;
    NEED(context && stack_depth < MOST_DEPTH, INVALID_CONTEXT);
    the_fake.pushes++;
    stack[stack_depth++] = context;
    return leave(CUDA_SUCCESS);
}

EXPORT cuda_result cuCtxPopCurrent_v2(cuda_context *context);
EXPORT cuda_result cuCtxPopCurrent_v2(cuda_context *context) {
    ENTER;
    NEED(stack_depth > 0, INVALID_CONTEXT);
    *context = stack[--stack_depth];
    return leave(CUDA_SUCCESS);
}

/* ----------------------------------------------------------------- modules -- */

/* An image is text here: "fake mse f32" has kernels that begin with onepass_mse, "fake every_loss f32" all others. */
EXPORT cuda_result cuModuleLoadData(cuda_module *module, const void *image);
EXPORT cuda_result cuModuleLoadData(cuda_module *module, const void *image) {
    take_time();
    ENTER;
    NEED_CONTEXT;
    NEED_NO_CAPTURE;
    NEED(image && strncmp(image, "fake ", 5) == 0, 200);
    for (int i = 0; i < MOST_MODULES; i++) {
        if (modules[i].alive)
            continue;
        modules[i].alive = true;
        modules[i].context = current();
        snprintf(modules[i].image, sizeof modules[i].image, "%s", (const char *)image + 5);
        modules[i].kernels = 0;
        the_fake.counts.modules++;
        the_fake.loads++;
        *module = &modules[i];
        return leave(CUDA_SUCCESS);
    }
    return leave(CUDA_ERROR_OUT_OF_MEMORY);
}

EXPORT cuda_result cuModuleUnload(cuda_module module);
EXPORT cuda_result cuModuleUnload(cuda_module module) {
    ENTER;
    NEED(module && module->alive && module->context == current(), INVALID_HANDLE);
    NEED_NO_CAPTURE;
    unload(module);
    return leave(CUDA_SUCCESS);
}

static bool has_kernel(cuda_module module, const char *name) {
    const size_t unit = strcspn(module->image, " ");
    if (strncmp(module->image, "every_loss ", 11) == 0)
        return strncmp(name, "onepass_weights_", 16) == 0 || strncmp(name, "onepass_gradient_", 17) == 0 ||
               strncmp(name, "onepass_rows_", 13) == 0 || strcmp(name, CUDA_ANY_CLUSTER_NAME) == 0;
    return strncmp(name, "onepass_", 8) == 0 && strncmp(name + 8, module->image, unit) == 0;
}

EXPORT cuda_result cuModuleGetFunction(cuda_function *kernel, cuda_module module, const char *name);
EXPORT cuda_result cuModuleGetFunction(cuda_function *kernel, cuda_module module, const char *name) {
    take_time();
    ENTER;
    NEED(module && module->alive && module->context == current(), INVALID_HANDLE);
    NEED_NO_CAPTURE;
    NEED(module->kernels < MOST_KERNELS, NOT_FOUND);
    NEED(has_kernel(module, name), NOT_FOUND);
    the_fake.lookups += strcmp(name, CUDA_ANY_CLUSTER_NAME) != 0;
    cuda_function made = &module->kernel[module->kernels++];
    made->module = module;
    made->most_shared_memory = 0;
    snprintf(made->name, sizeof made->name, "%s", name);
    *kernel = made;
    return leave(CUDA_SUCCESS);
}

EXPORT cuda_result cuFuncSetAttribute(cuda_function kernel, int attribute, int number);
EXPORT cuda_result cuFuncSetAttribute(cuda_function kernel, int attribute, int number) {
    ENTER;
    NEED(kernel && kernel->module->alive && kernel->module->context == current(), INVALID_HANDLE);
    NEED(attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && number > 0 && number <= FAKE_SHARED_MEMORY,
         ILLEGAL);
    kernel->most_shared_memory = (uint32_t)number;
    return leave(CUDA_SUCCESS);
}

EXPORT cuda_result cuOccupancyMaxActiveClusters(int *clusters, cuda_function kernel, const cuda_config *config);
EXPORT cuda_result cuOccupancyMaxActiveClusters(int *clusters, cuda_function kernel, const cuda_config *config) {
    ENTER;
    NEED(kernel && kernel->module->alive && kernel->module->context == current(), INVALID_HANDLE);
    NEED(strcmp(kernel->name, CUDA_ANY_CLUSTER_NAME) == 0 && config->blocks[0] % CUDA_CLUSTER == 0 &&
             config->shared_memory <= kernel->most_shared_memory && !config->attribute_count,
         ILLEGAL);
    *clusters = FAKE_CLUSTERS;
    return leave(CUDA_SUCCESS);
}

/* ------------------------------------------------------------------ memory -- */

static cuda_result place_memory(fake_memory kind, int32_t gpu, size_t size, bool is_library, cuda_pointer *pointer) {
    for (int i = 0; i < MOST_MEMORY; i++) {
        if (memories[i].data)
            continue;
        unsigned char *data = aligned_alloc(256, (size + 255) / 256 * 256);
        if (!data)
            break;
        memset(data, 0xA5, size);
        memories[i] = (memory){.data = data, .size = size, .kind = kind, .gpu = gpu, .is_library = is_library};
        memories[i].context = current();
        the_fake.counts.memory += is_library;
        the_fake.counts.bytes += is_library ? size : 0;
        *pointer = (cuda_pointer)data;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static cuda_pointer allocate(fake_memory kind, int32_t gpu, size_t size) {
    cuda_pointer pointer = 0;
    pthread_mutex_lock(&lock);
    place_memory(kind, gpu, size, false, &pointer);
    pthread_mutex_unlock(&lock);
    return pointer;
}

static void release(cuda_pointer pointer) {
    pthread_mutex_lock(&lock);
    memory *memory = memory_at(pointer);
    if (memory)
        forget_memory(memory);
    pthread_mutex_unlock(&lock);
}

/* The one variable that a module has; its memory comes and goes with the module, and is zeroed. */
EXPORT cuda_result cuModuleGetGlobal_v2(cuda_pointer *pointer, size_t *size, cuda_module module, const char *name);
EXPORT cuda_result cuModuleGetGlobal_v2(cuda_pointer *pointer, size_t *size, cuda_module module, const char *name) {
    ENTER;
    NEED(module && module->alive && module->context == current(), INVALID_HANDLE);
    NEED_NO_CAPTURE;
    NEED(strcmp(name, CUDA_FIRST_WORKSPACE_NAME) == 0 && strcmp(module->image, "every_loss f32") == 0, NOT_FOUND);
    *size = ONEPASS_WORKSPACE_SIZE;
    if (!module->workspace) {
        NEED(place_memory(FAKE_DEVICE, current()->gpu, *size, false, &module->workspace) == CUDA_SUCCESS,
             CUDA_ERROR_OUT_OF_MEMORY);
        memset((void *)module->workspace, 0, *size);
    }
    *pointer = module->workspace;
    return leave(CUDA_SUCCESS);
}

EXPORT cuda_result cuMemAlloc_v2(cuda_pointer *pointer, size_t size);
EXPORT cuda_result cuMemAlloc_v2(cuda_pointer *pointer, size_t size) {
    ENTER;
    NEED_CONTEXT;
    NEED_NO_CAPTURE;
    return leave(place_memory(FAKE_DEVICE, current()->gpu, size, true, pointer));
}

EXPORT cuda_result cuMemFree_v2(cuda_pointer pointer);
EXPORT cuda_result cuMemFree_v2(cuda_pointer pointer) {
    ENTER;
    memory *memory = memory_at(pointer);
    NEED(memory && memory->is_library && memory->context == current() && pointer == (cuda_pointer)memory->data,
         ILLEGAL);
    NEED_NO_CAPTURE;
    forget_memory(memory);
    return leave(CUDA_SUCCESS);
}

EXPORT cuda_result cuMemsetD8Async(cuda_pointer pointer, unsigned char byte, size_t size, cuda_stream stream);
EXPORT cuda_result cuMemsetD8Async(cuda_pointer pointer, unsigned char byte, size_t size, cuda_stream stream) {
    ENTER;
    memory *memory = memory_at(pointer);
    NEED(memory && pointer + size <= (cuda_pointer)memory->data + memory->size, ILLEGAL);
    NEED(stream && stream->alive && stream->context == current(), INVALID_HANDLE);
    if (!stream->is_library || !stream->non_blocking)
        violate("memory was zeroed on a stream that is not the library's own");
    memset((void *)pointer, byte, size);
    return leave(CUDA_SUCCESS);
}

/* Within memory of the current context's GPU. */
static bool is_within(cuda_pointer pointer, size_t size) {
    const memory *memory = memory_at(pointer);
    return memory && pointer + size <= (cuda_pointer)memory->data + memory->size && current() &&
           memory->gpu == current()->gpu;
}

EXPORT cuda_result cuMemcpyDtoDAsync_v2(cuda_pointer to, cuda_pointer from, size_t size, cuda_stream stream);
EXPORT cuda_result cuMemcpyDtoDAsync_v2(cuda_pointer to, cuda_pointer from, size_t size, cuda_stream stream) {
    ENTER;
    NEED_CONTEXT;
    stream = stream_of(stream);
    NEED(is_within(to, size) && is_within(from, size), ILLEGAL);
    NEED(stream->alive && stream->context == current(), INVALID_HANDLE);
    stream->launched++;
    if (!the_fake.busy)
        stream->done = stream->launched;
    memcpy((void *)to, (const void *)from, size);
    return leave(CUDA_SUCCESS);
}

EXPORT cuda_result cuMemcpyDtoHAsync_v2(void *to, cuda_pointer from, size_t size, cuda_stream stream);
EXPORT cuda_result cuMemcpyDtoHAsync_v2(void *to, cuda_pointer from, size_t size, cuda_stream stream) {
    ENTER;
    NEED_CONTEXT;
    NEED(is_within(from, size), ILLEGAL);
    NEED(stream && stream->alive && stream->context == current(), INVALID_HANDLE);
    if (!stream->is_library || !stream->non_blocking)
        violate("memory was copied on a stream that is not the library's own");
    memcpy(to, (const void *)from, size);
    return leave(CUDA_SUCCESS);
}

EXPORT cuda_result cuPointerGetAttributes(unsigned count, int *attributes, void **data, cuda_pointer pointer);
EXPORT cuda_result cuPointerGetAttributes(unsigned count, int *attributes, void **data, cuda_pointer pointer) {
    ENTER;
    const memory *memory = memory_at(pointer);
    for (unsigned i = 0; i < count; i++) {
        int answer = 0;
        if (attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
            answer = !memory ? 0 : memory->kind == FAKE_DEVICE ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
        else if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
            answer = memory ? memory->gpu : -2;
        else
            answer = memory && memory->kind == FAKE_MANAGED;
        memcpy(data[i], &answer, sizeof answer);
    }
    return leave(CUDA_SUCCESS);
}

/* ----------------------------------------------------------------- control -- */

static void make_fake(void) {
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &recursive);
    the_fake.version = FAKE_VERSION;
    the_fake.gpus = 2;
    the_fake.allocate = allocate;
    the_fake.release = release;
    the_fake.make_context = make_context;
    the_fake.destroy_context = destroy_context;
    the_fake.primary = primary;
    the_fake.reset_primary = reset_primary;
    the_fake.set_current = set_current;
    the_fake.depth = depth;
    fake_driver_add_streams(&the_fake);
}

EXPORT fake *fake_driver(void) {
    pthread_once(&once, make_fake);
    return &the_fake;
}
