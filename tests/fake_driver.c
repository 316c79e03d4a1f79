/* The fake driver: see fake_driver.h. Only what onepass uses is here. */
#define _GNU_SOURCE
#include "fake_driver.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

/* ---------------------------------------------------------------- things -- */

enum {
    FIRST_GPU = 40, /* a device is not its index */
    MOST_CONTEXTS = 32,
    MOST_STREAMS = 4096,
    MOST_EVENTS = 4096,
    MOST_MODULES = 128,
    MOST_MEMORY = 8192,
    MOST_DEPTH = 16,
    MOST_KERNELS = 64,
    ILLEGAL = 1,
    NOT_INITIALIZED = 3,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901
};

/* Places are used again as soon as they are free, so that handles are too; identities are not. */
struct CUctx_st {
    bool alive, is_primary;
    int32_t gpu;
    unsigned long long identity, null_stream;
};

struct CUstream_st {
    bool alive, is_library, non_blocking;
    int32_t capture;
    cuda_context context;
    unsigned long long identity;
    long launched, done; /* launches, by their number on this stream */
};

struct CUevent_st {
    bool alive;
    cuda_context context;
    cuda_stream stream;
    unsigned long long identity; /* of the stream, whose place may have another tenant by now */
    long launch;
};

struct CUfunc_st {
    cuda_module module;
    char name[64];
};

struct CUmod_st {
    bool alive;
    cuda_context context;
    char image[64]; /* the unit and the compute type: "mse f32" */
    int32_t kernels;
    struct CUfunc_st kernel[MOST_KERNELS];
    cuda_pointer workspace; /* a variable of the module; 0: nobody has asked for it yet */
};

typedef struct memory {
    unsigned char *data;
    size_t size;
    fake_memory kind;
    int32_t gpu;
    bool is_library;
    cuda_context context;
    /* The last launch that had it for a workspace. */
    cuda_stream user;
    unsigned long long user_identity;
    long launch;
} memory;

static struct CUctx_st contexts[MOST_CONTEXTS];
static struct CUstream_st streams[MOST_STREAMS];
static struct CUevent_st events[MOST_EVENTS];
static struct CUmod_st modules[MOST_MODULES];
static memory memories[MOST_MEMORY];
static struct CUstream_st null_streams[MOST_CONTEXTS]; /* a context's default stream, by the context's place */
static unsigned long long last_identity = 1000;
static bool initialised;

static _Thread_local cuda_context stack[MOST_DEPTH];
static _Thread_local int32_t stack_depth;
static _Thread_local int32_t capture_mode;

static fake the_fake;
static pthread_mutex_t lock;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void violate(const char *how) {
    the_fake.violations++;
    the_fake.violation = how;
}

/* Every function of the driver begins with this: it is counted, and perhaps it fails. */
static bool enter(const char *function, cuda_result *result) {
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

static cuda_result leave(cuda_result result) {
    pthread_mutex_unlock(&lock);
    return result;
}

#define ENTER                                                                                                          \
    cuda_result result;                                                                                                \
    if (!enter(__func__, &result))                                                                                     \
    return leave(result)

/* Returns an error unless something holds. */
#define NEED(condition, error)                                                                                         \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            return leave(error);                                                                                       \
    } while (0)

/* Not under the lock: others come in between. */
static void take_time(void) {
    if (fake_driver()->slow)
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

static cuda_context current(void) {
    return stack_depth > 0 ? stack[stack_depth - 1] : NULL;
}

#define NEED_CONTEXT NEED(current() && current()->alive, INVALID_CONTEXT)

/* What a driver refuses while anybody captures, unless the thread's mode is relaxed; and then the capture is spoiled.
 */
static bool is_prohibited(void) {
    bool captures = false;
    for (int i = 0; i < MOST_STREAMS && capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED; i++) {
        if (!streams[i].alive || streams[i].capture != CU_STREAM_CAPTURE_STATUS_ACTIVE)
            continue;
        streams[i].capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
        captures = true;
    }
    return captures;
}

#define NEED_NO_CAPTURE NEED(!is_prohibited(), CAPTURE_UNSUPPORTED)

static struct CUstream_st *stream_of(cuda_stream stream) {
    return (uintptr_t)stream <= 1 && current() ? &null_streams[current() - contexts] : stream;
}

static memory *memory_at(cuda_pointer pointer) {
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
    NEED(attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, ILLEGAL);
    *number = FAKE_MULTIPROCESSORS;
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
               strncmp(name, "onepass_rows_", 13) == 0;
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
    the_fake.lookups++;
    cuda_function made = &module->kernel[module->kernels++];
    made->module = module;
    snprintf(made->name, sizeof made->name, "%s", name);
    *kernel = made;
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

/* ----------------------------------------------------------------- streams -- */

static cuda_stream place_stream(bool is_library, bool non_blocking) {
    for (int i = 0; i < MOST_STREAMS; i++) {
        if (streams[i].alive)
            continue;
        streams[i] = (struct CUstream_st){.alive = true,
                                          .is_library = is_library,
                                          .non_blocking = non_blocking,
                                          .context = current(),
                                          .identity = ++last_identity};
        the_fake.counts.streams += is_library;
        return &streams[i];
    }
    return NULL;
}

static cuda_stream make_stream(void) {
    pthread_mutex_lock(&lock);
    cuda_stream made = place_stream(false, false);
    pthread_mutex_unlock(&lock);
    return made;
}

static void destroy_stream(cuda_stream stream) {
    pthread_mutex_lock(&lock);
    stream->alive = false;
    pthread_mutex_unlock(&lock);
}

static void capture(cuda_stream stream, int32_t status) {
    pthread_mutex_lock(&lock);
    stream->capture = status;
    pthread_mutex_unlock(&lock);
}

static int32_t capture_status(cuda_stream stream) {
    pthread_mutex_lock(&lock);
    const int32_t status = stream->capture;
    pthread_mutex_unlock(&lock);
    return status;
}

static void finish(cuda_stream stream) {
    pthread_mutex_lock(&lock);
    stream = stream_of(stream);
    stream->done = stream->launched;
    pthread_mutex_unlock(&lock);
}

static int32_t mode(void) {
    return capture_mode;
}

static void set_mode(int32_t mode) {
    capture_mode = mode;
}

EXPORT cuda_result cuStreamCreate(cuda_stream *stream, unsigned flags);
EXPORT cuda_result cuStreamCreate(cuda_stream *stream, unsigned flags) {
    ENTER;
    NEED_CONTEXT;
    *stream = place_stream(true, flags & CU_STREAM_NON_BLOCKING);
    return leave(*stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

EXPORT cuda_result cuStreamDestroy_v2(cuda_stream stream);
EXPORT cuda_result cuStreamDestroy_v2(cuda_stream stream) {
    ENTER;
    NEED(stream && stream->alive && stream->is_library, INVALID_HANDLE);
    stream->alive = false;
    the_fake.counts.streams--;
    return leave(CUDA_SUCCESS);
}

EXPORT cuda_result cuStreamSynchronize(cuda_stream stream);
EXPORT cuda_result cuStreamSynchronize(cuda_stream stream) {
    ENTER;
    NEED_CONTEXT;
    NEED_NO_CAPTURE;
    the_fake.synchronisations++;
    if (!stream || !stream->is_library)
        violate("a caller's stream was waited for");
    return leave(CUDA_SUCCESS);
}

#if !defined(FAKE_LACKS_STREAM_ID)
EXPORT cuda_result cuStreamGetId(cuda_stream stream, unsigned long long *identity);
EXPORT cuda_result cuStreamGetId(cuda_stream stream, unsigned long long *identity) {
    ENTER;
    NEED_CONTEXT;
    stream = stream_of(stream);
    NEED(stream->alive && stream->context == current(), INVALID_HANDLE);
    *identity = stream->identity;
    return leave(CUDA_SUCCESS);
}
#endif

EXPORT cuda_result cuStreamIsCapturing(cuda_stream stream, int *status);
EXPORT cuda_result cuStreamIsCapturing(cuda_stream stream, int *status) {
    ENTER;
    NEED_CONTEXT;
    stream = stream_of(stream);
    NEED(stream->alive && stream->context == current(), INVALID_HANDLE);
    *status = stream->capture;
    return leave(CUDA_SUCCESS);
}

EXPORT cuda_result cuThreadExchangeStreamCaptureMode(int *exchanged);
EXPORT cuda_result cuThreadExchangeStreamCaptureMode(int *exchanged) {
    ENTER;
    const int former = capture_mode;
    capture_mode = *exchanged;
    *exchanged = former;
    return leave(CUDA_SUCCESS);
}

/* ------------------------------------------------------------------ events -- */

EXPORT cuda_result cuEventCreate(cuda_event *event, unsigned flags);
EXPORT cuda_result cuEventCreate(cuda_event *event, unsigned flags) {
    ENTER;
    NEED_CONTEXT;
    NEED(flags == CU_EVENT_DISABLE_TIMING, ILLEGAL);
    for (int i = 0; i < MOST_EVENTS; i++) {
        if (events[i].alive)
            continue;
        events[i] = (struct CUevent_st){.alive = true, .context = current()};
        the_fake.counts.events++;
        *event = &events[i];
        return leave(CUDA_SUCCESS);
    }
    return leave(CUDA_ERROR_OUT_OF_MEMORY);
}

EXPORT cuda_result cuEventDestroy_v2(cuda_event event);
EXPORT cuda_result cuEventDestroy_v2(cuda_event event) {
    ENTER;
    NEED(event && event->alive, INVALID_HANDLE);
    event->alive = false;
    the_fake.counts.events--;
    return leave(CUDA_SUCCESS);
}

EXPORT cuda_result cuEventRecord(cuda_event event, cuda_stream stream);
EXPORT cuda_result cuEventRecord(cuda_event event, cuda_stream stream) {
    ENTER;
    stream = stream_of(stream);
    NEED(event && event->alive && stream->alive && stream->context == event->context, INVALID_HANDLE);
    event->stream = stream;
    event->identity = stream->identity;
    event->launch = stream->launched;
    return leave(CUDA_SUCCESS);
}

/* Work on a stream that was destroyed goes on to its end; here it is there at once. */
static bool is_running(cuda_stream stream, unsigned long long identity, long launch) {
    return stream && stream->alive && stream->identity == identity && stream->done < launch;
}

EXPORT cuda_result cuEventQuery(cuda_event event);
EXPORT cuda_result cuEventQuery(cuda_event event) {
    ENTER;
    NEED(event && event->alive && event->context == current(), INVALID_HANDLE);
    NEED_NO_CAPTURE;
    return leave(is_running(event->stream, event->identity, event->launch) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS);
}

/* Who waits for work that is running has it done. */
EXPORT cuda_result cuEventSynchronize(cuda_event event);
EXPORT cuda_result cuEventSynchronize(cuda_event event) {
    ENTER;
    NEED(event && event->alive && event->context == current(), INVALID_HANDLE);
    NEED_NO_CAPTURE;
    the_fake.waits++;
    if (is_running(event->stream, event->identity, event->launch))
        event->stream->done = event->launch;
    return leave(CUDA_SUCCESS);
}

/* ---------------------------------------------------------------- launches -- */

/* What a kernel would notice: its workspace is memory of the GPU, zeroed, and nobody else's. */
static void use_workspace(const cuda_head *head, cuda_stream stream) {
    memory *memory = memory_at((cuda_pointer)head->total.workspace);
    if (!memory || memory->gpu != stream->context->gpu) {
        violate("a workspace is not memory of the GPU");
        return;
    }
    const unsigned char *bytes = head->total.workspace;
    for (size_t i = 0; i < CUDA_WORKSPACE_HEAD; i++)
        if ((i < CUDA_WEIGHTS_AT || i >= CUDA_WEIGHTS_AT + sizeof(double)) && bytes[i] != 0)
            violate("a workspace is not zeroed");
    if (stream->capture || memory->size != ONEPASS_WORKSPACE_SIZE)
        return; /* a slot: the tests compare them all */
    if (memory->user != stream && is_running(memory->user, memory->user_identity, memory->launch))
        violate("two running launches have one workspace");
    memory->user = stream;
    memory->user_identity = stream->identity;
    memory->launch = stream->launched;
}

/* For the sum of the weights stands here where they lie: a launch that is divided by it must find its own call's. What
 * rows count for has no place but their labels'; and so have their terms, which lie in the workspace. */
static void leave_weights(const char *kernel, const cuda_head *head) {
    const cuda_weighted *weighted = (const cuda_weighted *)head;
    const bool are_mask = strstr(kernel, "weighted") && !head->data[CUDA_PREDICTION];
    memcpy(head->total.value, are_mask ? &weighted->mask : &head->data[CUDA_PREDICTION], sizeof(void *));
}

static void find_weights(const cuda_total *total, const void *expected) {
    const void *found;
    memcpy(&found, (const char *)total->workspace + CUDA_WEIGHTS_AT, sizeof found);
    if (found != expected && (!the_fake.divisor || found != the_fake.divisor))
        violate("a launch is divided by the weights of another call");
}

static bool is_in_workspace(const cuda_total *total, const void *data) {
    const memory *memory = memory_at((cuda_pointer)total->workspace);
    return memory && memory == memory_at((cuda_pointer)data);
}

static size_t real_size(const fake_launch *launch) {
    return strstr(launch->image, " f64") ? sizeof(double) : sizeof(float);
}

/* Where that lies which rows count for. */
static const void *counted_by(const fake_launch *launch, const cuda_row *row) {
    if (!strstr(launch->kernel, "with_probabilities"))
        return row->data[CUDA_ROW_TARGET];
    return row->data[CUDA_ROW_WEIGHT] ? row->data[CUDA_ROW_WEIGHT] : row->data[CUDA_ROW_MASK];
}

/* Rows leave that place at that of their terms, if there is room for a pointer. */
static void use_rows(const fake_launch *launch, const cuda_row *row) {
    char *workspace = row->total.workspace;
    const void *counted = counted_by(launch, row);
    const bool is_weights = strstr(launch->kernel, "_row_weights") != NULL;
    if (workspace && row->terms_at) {
        const memory *memory = memory_at((cuda_pointer)workspace);
        const size_t terms = (size_t)row->rows * real_size(launch);
        if (!memory || (unsigned char *)workspace + row->terms_at + terms > memory->data + memory->size)
            violate("the terms of rows lie beyond the workspace");
        else if (terms >= sizeof counted)
            memcpy(workspace + row->terms_at, &counted, sizeof counted);
    }
    if (strstr(launch->kernel, "_row_count") || (row->counts && !is_weights))
        memcpy(workspace + CUDA_WEIGHTS_AT, &counted, sizeof counted);
    else if (row->over_weights && !is_weights)
        find_weights(&row->total, counted);
}

/* The sum of what rows count for, which stays in the workspace, or of their terms, which may be divided by the former.
 */
static void sum_terms(const fake_launch *launch, int32_t over_weights) {
    const cuda_head *head = &launch->head;
    const void *counted;
    if ((size_t)head->count * real_size(launch) < sizeof counted)
        return;
    memcpy(&counted, head->data[CUDA_PREDICTION], sizeof counted);
    if (is_in_workspace(&head->total, head->total.value))
        memcpy(head->total.value, &counted, sizeof counted);
    else if (over_weights)
        find_weights(&head->total, counted);
}

static void use_weights(const fake_launch *launch) {
    const cuda_head *head = &launch->head;
    const cuda_general *general = strstr(launch->kernel, "general") ? &launch->general : NULL;
    const cuda_weighted *weighted = strstr(launch->kernel, "weighted") ? &launch->weighted : NULL;
    const int32_t over_weights = general ? general->over_weights : weighted ? weighted->over_weights : 0;
    if (strstr(launch->kernel, "_divided_by") || strstr(launch->kernel, "_row_predicted"))
        return;
    if (strstr(launch->kernel, "_row"))
        use_rows(launch, &launch->row);
    else if (strstr(launch->kernel, "weights") && is_in_workspace(&head->total, head->data[CUDA_PREDICTION]))
        sum_terms(launch, over_weights);
    else if (strstr(launch->kernel, "weights"))
        leave_weights(launch->kernel, head);
    else if (general && over_weights)
        find_weights(&head->total, general->weight ? general->weight : general->mask);
    else if (over_weights)
        find_weights(&head->total, weighted->weight ? weighted->weight : weighted->mask);
}

EXPORT cuda_result cuLaunchKernel(cuda_function kernel, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z,
                                  unsigned threads_x, unsigned threads_y, unsigned threads_z, unsigned shared_memory,
                                  cuda_stream stream, void **parameters, void **extra);
EXPORT cuda_result cuLaunchKernel(cuda_function kernel, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z,
                                  unsigned threads_x, unsigned threads_y, unsigned threads_z, unsigned shared_memory,
                                  cuda_stream stream, void **parameters, void **extra) {
    take_time();
    ENTER;
    NEED_CONTEXT;
    stream = stream_of(stream);
    NEED(kernel && kernel->module->alive && kernel->module->context == current(), INVALID_HANDLE);
    NEED(stream->alive && stream->context == current(), INVALID_HANDLE);
    NEED(stream->capture != CU_STREAM_CAPTURE_STATUS_INVALIDATED, CAPTURE_INVALIDATED);
    NEED(blocks_x > 0 && blocks_y == 1 && blocks_z == 1 && threads_x > 0 && threads_x <= 1024 && threads_y == 1 &&
             threads_z == 1 && shared_memory <= 48 * 1024 && !extra,
         ILLEGAL);
    fake_launch *launch = &the_fake.launch[the_fake.launches++ % FAKE_MOST_LAUNCHES];
    *launch = (fake_launch){.kernel = kernel->name,
                            .image = kernel->module->image,
                            .blocks = blocks_x,
                            .threads = threads_x,
                            .shared_memory = shared_memory,
                            .stream = stream->identity,
                            .context = current()->identity,
                            .captured = stream->capture == CU_STREAM_CAPTURE_STATUS_ACTIVE};
    /* Whatever it is, there is as much memory: the plan has room for every kind. */
    memcpy((char *)launch + offsetof(fake_launch, head), parameters[0], sizeof *launch - offsetof(fake_launch, head));
    if (!launch->captured)
        stream->launched++;
    if (!strstr(kernel->name, "_tiny_") && launch->head.total.workspace)
        use_workspace(&launch->head, stream);
    use_weights(launch);
    if (!the_fake.busy)
        stream->done = stream->launched;
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
    the_fake.mode = mode;
    the_fake.set_mode = set_mode;
    the_fake.make_stream = make_stream;
    the_fake.destroy_stream = destroy_stream;
    the_fake.capture = capture;
    the_fake.capture_status = capture_status;
    the_fake.finish = finish;
}

EXPORT fake *fake_driver(void) {
    pthread_once(&once, make_fake);
    return &the_fake;
}
