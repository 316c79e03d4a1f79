/* The CUDA driver as the tool uses it. The declarations are its own, since the tool is built without the toolkit; names
 * and numbers are those of cuda.h, whose macros map some names to a later version of the function. */
#include "gpu.h"

#include <onepass.h>

#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct CUctx_st *context;
typedef struct CUmod_st *module;
typedef struct CUstream_st *stream;
typedef struct CUevent_st *event;
typedef struct CUgraph_st *graph;
typedef unsigned long long address;

enum {
    MULTIPROCESSOR_COUNT = 16, /* CU_DEVICE_ATTRIBUTE_... */
    NON_BLOCKING = 1,          /* CU_STREAM_..., a stream that does not wait for the default one */
    CAPTURE_THREAD_LOCAL = 1   /* CU_STREAM_CAPTURE_MODE_... */
};

/* Name, symbol, parameters. */
#define DRIVER_FUNCTIONS(FUNCTION)                                                                                     \
    FUNCTION(name_error, "cuGetErrorName", (int error, const char **name))                                             \
    FUNCTION(explain_error, "cuGetErrorString", (int error, const char **text))                                        \
    FUNCTION(init, "cuInit", (unsigned flags))                                                                         \
    FUNCTION(get_device, "cuDeviceGet", (int *device, int index))                                                      \
    FUNCTION(name_device, "cuDeviceGetName", (char *name, int size, int device))                                       \
    FUNCTION(ask_device, "cuDeviceGetAttribute", (int *number, int attribute, int device))                             \
    FUNCTION(retain_context, "cuDevicePrimaryCtxRetain", (context * context, int device))                              \
    FUNCTION(set_context, "cuCtxSetCurrent", (context context))                                                        \
    FUNCTION(wait, "cuCtxSynchronize", (void))                                                                         \
    FUNCTION(ask_memory, "cuMemGetInfo_v2", (size_t * available, size_t * total))                                      \
    FUNCTION(allocate, "cuMemAlloc_v2", (address * memory, size_t bytes))                                              \
    FUNCTION(release, "cuMemFree_v2", (address memory))                                                                \
    FUNCTION(upload, "cuMemcpyHtoD_v2", (address to, const void *from, size_t bytes))                                  \
    FUNCTION(download, "cuMemcpyDtoH_v2", (void *to, address from, size_t bytes))                                      \
    FUNCTION(set_bytes, "cuMemsetD8_v2", (address to, unsigned char byte, size_t bytes))                               \
    FUNCTION(load, "cuModuleLoadData", (module * module, const void *image))                                           \
    FUNCTION(find_kernel, "cuModuleGetFunction", (gpu_kernel * *kernel, module module, const char *name))              \
    FUNCTION(ask_occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor",                                             \
             (int *blocks, gpu_kernel *kernel, int threads, size_t shared_memory))                                     \
    FUNCTION(launch, "cuLaunchKernel",                                                                                 \
             (gpu_kernel * kernel, unsigned blocks, unsigned blocks_y, unsigned blocks_z, unsigned threads,            \
              unsigned threads_y, unsigned threads_z, unsigned shared_memory, stream stream, void **parameters,        \
              void **extra))                                                                                           \
    FUNCTION(create_stream, "cuStreamCreate", (stream * stream, unsigned flags))                                       \
    FUNCTION(wait_for_stream, "cuStreamSynchronize", (stream stream))                                                  \
    FUNCTION(begin_capture, "cuStreamBeginCapture_v2", (stream stream, int mode))                                      \
    FUNCTION(end_capture, "cuStreamEndCapture", (stream stream, graph * graph))                                        \
    FUNCTION(make_executable, "cuGraphInstantiateWithFlags",                                                           \
             (gpu_graph * *executable, graph graph, unsigned long long flags))                                         \
    FUNCTION(release_graph, "cuGraphDestroy", (graph graph))                                                           \
    FUNCTION(release_executable, "cuGraphExecDestroy", (gpu_graph * executable))                                       \
    FUNCTION(launch_graph, "cuGraphLaunch", (gpu_graph * executable, stream stream))                                   \
    FUNCTION(create_event, "cuEventCreate", (event * event, unsigned flags))                                           \
    FUNCTION(record_event, "cuEventRecord", (event event, stream stream))                                              \
    FUNCTION(elapsed, "cuEventElapsedTime", (float *milliseconds, event begin, event end))

typedef struct driver_functions {
#define MEMBER(name, symbol, parameters) int(*name) parameters;
    DRIVER_FUNCTIONS(MEMBER)
#undef MEMBER
} driver_functions;

static driver_functions driver;

static struct {
    bool is_open;
    int index, multiprocessors;
    char name[256];
    char problem[768];
    module module;
    stream stream;
    event begin, end;
} gpu;

/* ----------------------------------------------------------------- problems -- */

static bool cannot(const char *format, ...) __attribute__((format(printf, 1, 2)));
static bool cannot(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(gpu.problem, sizeof gpu.problem, format, arguments);
    va_end(arguments);
    return false;
}

/* Whether the driver did it. If not, that is the problem. */
static bool did(int result, const char *doing) {
    if (result == 0)
        return true;
    const char *name = NULL, *text = NULL;
    driver.name_error(result, &name);
    driver.explain_error(result, &text);
    return cannot("the CUDA driver failed at %s: %s (%d), %s", doing, name ? name : "an error without a name", result,
                  text ? text : "no explanation");
}

const char *gpu_problem(void) {
    return gpu.problem;
}

const char *gpu_name(void) {
    return gpu.name;
}

/* ------------------------------------------------------------------ opening -- */

static bool find_functions(void) {
    static const struct {
        const char *symbol;
        size_t offset;
    } functions[] = {
#define PLACE(name, symbol, parameters) {symbol, offsetof(driver_functions, name)},
        DRIVER_FUNCTIONS(PLACE)
#undef PLACE
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return cannot("the CUDA driver is not here: libcuda.so.1 cannot be opened");
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *function = dlsym(library, functions[i].symbol);
        if (!function)
            return cannot("the CUDA driver is too old: it has no %s", functions[i].symbol);
        memcpy((char *)&driver + functions[i].offset, &function, sizeof function);
    }
    return true;
}

/* The library has looked before, and knows why there is nothing to compute on. */
static bool is_there(int index) {
    onepass_machine_info machine = {.size = sizeof machine};
    if (onepass_machine(&machine) != ONEPASS_OK)
        return cannot("%s", onepass_message());
    if (machine.gpu_count == 0)
        return cannot("no GPU can be used: %s", machine.gpu_reason);
    if (index < 0 || index >= machine.gpu_count)
        return cannot("there is no GPU %d here: %s", index,
                      machine.gpu_count == 1 ? "the only one is cuda:0" : "\"onepass info\" lists them");
    return true;
}

bool gpu_open(int index) {
    int device = 0;
    context context = NULL;
    if (gpu.is_open)
        return index == gpu.index || cannot("GPU %d is in use, and only one can be", gpu.index);
    gpu.is_open = is_there(index) && find_functions() && did(driver.init(0), "its initialisation") &&
                  did(driver.get_device(&device, index), "finding the GPU") &&
                  did(driver.name_device(gpu.name, sizeof gpu.name, device), "naming the GPU") &&
                  did(driver.ask_device(&gpu.multiprocessors, MULTIPROCESSOR_COUNT, device), "describing the GPU") &&
                  did(driver.retain_context(&context, device), "making a context") &&
                  did(driver.set_context(context), "entering its context");
    gpu.index = index;
    return gpu.is_open;
}

/* ------------------------------------------------------------------- memory -- */

static address address_of(const void *memory) {
    return (address)(uintptr_t)memory;
}

size_t gpu_free_memory(void) {
    size_t available = 0, total = 0;
    return did(driver.ask_memory(&available, &total), "telling how much memory is free") ? available : 0;
}

void *gpu_allocate(size_t bytes) {
    address memory = 0;
    char doing[64];
    snprintf(doing, sizeof doing, "allocating %.3g %s", (bytes < 1000000000 ? 1e-6 : 1e-9) * (double)bytes,
             bytes < 1000000000 ? "MB" : "GB");
    return did(driver.allocate(&memory, bytes > 0 ? bytes : 1), doing) ? (void *)(uintptr_t)memory : NULL;
}

void gpu_release(void *memory) {
    if (memory)
        driver.release(address_of(memory)); /* a failure here would hide the one that led here */
}

bool gpu_upload(void *to, const void *from, size_t bytes) {
    return bytes == 0 || did(driver.upload(address_of(to), from, bytes), "copying to the GPU");
}

bool gpu_download(void *to, const void *from, size_t bytes) {
    return bytes == 0 || did(driver.download(to, address_of(from), bytes), "copying from the GPU");
}

bool gpu_clear(void *memory, size_t bytes) {
    return bytes == 0 || did(driver.set_bytes(address_of(memory), 0, bytes), "clearing memory");
}

bool gpu_wait(void) {
    return did(driver.wait(), "what it was given to compute");
}

/* ------------------------------------------------------------------ kernels -- */

void *gpu_stream(void) {
    if (!gpu.stream && !did(driver.create_stream(&gpu.stream, NON_BLOCKING), "making a stream"))
        return NULL;
    return gpu.stream;
}

bool gpu_load(const void *image) {
    return gpu.module || did(driver.load(&gpu.module, image), "loading the kernels of the limits");
}

gpu_kernel *gpu_kernel_named(const char *name) {
    gpu_kernel *kernel = NULL;
    return did(driver.find_kernel(&kernel, gpu.module, name), "finding a kernel") ? kernel : NULL;
}

int gpu_blocks_that_fit(gpu_kernel *kernel, int threads) {
    int blocks = 0;
    return did(driver.ask_occupancy(&blocks, kernel, threads, 0), "counting the blocks that fit")
               ? blocks * gpu.multiprocessors
               : 0;
}

bool gpu_launch(gpu_kernel *kernel, unsigned blocks, unsigned threads, void **parameters) {
    return did(driver.launch(kernel, blocks, 1, 1, threads, 1, 1, 0, gpu.stream, parameters, NULL),
               "launching a kernel");
}

/* ------------------------------------------------------------ graphs and time -- */

bool gpu_capture(void) {
    return gpu_stream() && did(driver.begin_capture(gpu.stream, CAPTURE_THREAD_LOCAL), "beginning a graph");
}

gpu_graph *gpu_end_capture(void) {
    graph captured = NULL;
    gpu_graph *executable = NULL;
    if (!did(driver.end_capture(gpu.stream, &captured), "ending a graph"))
        return NULL;
    const bool is_made = did(driver.make_executable(&executable, captured, 0), "preparing a graph");
    driver.release_graph(captured);
    return is_made ? executable : NULL;
}

void gpu_release_graph(gpu_graph *graph) {
    if (graph)
        driver.release_executable(graph);
}

static bool have_events(void) {
    return gpu.end || (did(driver.create_event(&gpu.begin, 0), "making an event") &&
                       did(driver.create_event(&gpu.end, 0), "making an event"));
}

double gpu_replay(gpu_graph *graph) {
    float milliseconds = 0;
    const bool is_done = have_events() && did(driver.record_event(gpu.begin, gpu.stream), "marking a time") &&
                         did(driver.launch_graph(graph, gpu.stream), "launching a graph") &&
                         did(driver.record_event(gpu.end, gpu.stream), "marking a time") &&
                         did(driver.wait_for_stream(gpu.stream), "replaying a graph") &&
                         did(driver.elapsed(&milliseconds, gpu.begin, gpu.end), "telling a time");
    return is_done ? 1e-3 * (double)milliseconds : -1;
}
