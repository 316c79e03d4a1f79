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
typedef unsigned long long address;

/* Name, symbol, parameters. */
#define DRIVER_FUNCTIONS(FUNCTION)                                                                                     \
    FUNCTION(name_error, "cuGetErrorName", (int error, const char **name))                                             \
    FUNCTION(explain_error, "cuGetErrorString", (int error, const char **text))                                        \
    FUNCTION(init, "cuInit", (unsigned flags))                                                                         \
    FUNCTION(get_device, "cuDeviceGet", (int *device, int index))                                                      \
    FUNCTION(retain_context, "cuDevicePrimaryCtxRetain", (context * context, int device))                              \
    FUNCTION(set_context, "cuCtxSetCurrent", (context context))                                                        \
    FUNCTION(wait, "cuCtxSynchronize", (void))                                                                         \
    FUNCTION(ask_memory, "cuMemGetInfo_v2", (size_t * available, size_t * total))                                      \
    FUNCTION(allocate, "cuMemAlloc_v2", (address * memory, size_t bytes))                                              \
    FUNCTION(release, "cuMemFree_v2", (address memory))                                                                \
    FUNCTION(upload, "cuMemcpyHtoD_v2", (address to, const void *from, size_t bytes))                                  \
    FUNCTION(download, "cuMemcpyDtoH_v2", (void *to, address from, size_t bytes))

typedef struct driver_functions {
#define MEMBER(name, symbol, parameters) int(*name) parameters;
    DRIVER_FUNCTIONS(MEMBER)
#undef MEMBER
} driver_functions;

static driver_functions driver;

static struct {
    bool is_open;
    int index;
    char problem[768];
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

bool gpu_wait(void) {
    return did(driver.wait(), "what it was given to compute");
}
