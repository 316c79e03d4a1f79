/*
 * Opens the CUDA driver and finds out what it has: once for the process, at the first
 * call that names a GPU or asks for the machine. Calls on the CPU never come here.
 */
#include "cuda/driver.h"
#include "cuda/image.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define DRIVER_LIBRARY "libcuda.so.1"
#define NO_KERNELS     "this build of onepass has no CUDA kernels: %s when it was configured"

static cuda_driver the_driver;
static pthread_once_t driver_opened = PTHREAD_ONCE_INIT;

/* ----------------------------------------------------------------- opening -- */

static bool cannot(const char *format, ...) __attribute__((format(printf, 1, 2)));
static bool cannot(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(the_driver.reason, sizeof the_driver.reason, format, arguments);
    va_end(arguments);
    return false;
}

static const char *error_name(const cuda_driver *driver, cuda_result error) {
    const char *name = NULL;
    return driver->cuGetErrorName(error, &name) == CUDA_SUCCESS && name ? name : "an error without a name";
}

/* Whether the driver did it. If not, that is the reason. */
static bool did(cuda_result result, const char *doing) {
    return result == CUDA_SUCCESS ||
           cannot("the CUDA driver failed at %s: %s (%d)", doing, error_name(&the_driver, result), result);
}

static bool find_functions(void) {
    static const struct {
        const char *symbol;
        size_t offset;
    } functions[] = {
#define PLACE(name, symbol, parameters) {symbol, offsetof(cuda_driver, name)},
        CUDA_DRIVER_FUNCTIONS(PLACE)
#undef PLACE
    };
    void *library = dlopen(DRIVER_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        return cannot("the CUDA driver is not here: %s", why ? why : DRIVER_LIBRARY " cannot be opened");
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *function = dlsym(library, functions[i].symbol);
        if (!function)
            return cannot("the CUDA driver (" DRIVER_LIBRARY ") is too old: it has no %s", functions[i].symbol);
        memcpy((char *)&the_driver + functions[i].offset, &function, sizeof function);
    }
    return true;
}

static bool ask_version(void) {
    int version = 0;
    if (!did(the_driver.cuDriverGetVersion(&version), "telling its version"))
        return false;
    the_driver.version = version;
    return true;
}

/* Kernels run under every driver of the toolkit's major version, and under later ones. */
static bool check_version(void) {
    const int version = the_driver.version, toolkit = onepass_cuda_toolkit;
    return version / 1000 >= toolkit / 1000 ||
           cannot("the CUDA driver is too old: it is of CUDA %d.%d, and the kernels need one of CUDA %d.0 or later",
                  version / 1000, version % 1000 / 10, toolkit / 1000);
}

static bool find_gpus(void) {
    int count = 0;
    if (!did(the_driver.cuInit(0), "its initialisation") ||
        !did(the_driver.cuDeviceGetCount(&count), "counting the GPUs"))
        return false;
    if (count <= 0)
        return cannot("the CUDA driver is here, but it has no GPU");
    size_t used = 0;
    const int32_t known = count < CUDA_MOST_GPUS ? count : CUDA_MOST_GPUS;
    for (int32_t i = 0; i < known; i++) {
        char name[256] = "";
        if (!did(the_driver.cuDeviceGet(&the_driver.gpu[i], i), "finding a GPU") ||
            !did(the_driver.cuDeviceGetName(name, sizeof name, the_driver.gpu[i]), "naming a GPU"))
            return false;
        if (used < sizeof the_driver.gpu_names)
            used += (size_t)snprintf(the_driver.gpu_names + used, sizeof the_driver.gpu_names - used, "%s%s",
                                     i ? ", " : "", name);
    }
    the_driver.gpu_count = known;
    return true;
}

/* ---------------------------------------------------------------- after fork -- */

static atomic_bool is_fork;

static void remember_fork(void) {
    atomic_store_explicit(&is_fork, true, memory_order_relaxed);
}

static void open_driver(void) {
    pthread_atfork(NULL, NULL, remember_fork);
    const bool is_open = find_functions() && ask_version();
    if (onepass_cuda_toolkit == 0)
        cannot(NO_KERNELS, onepass_cuda_missing);
    else if (is_open && check_version())
        find_gpus();
}

const cuda_driver *onepass_cuda_driver(void) {
    pthread_once(&driver_opened, open_driver);
    return &the_driver;
}

const char *onepass_cuda_reason(const cuda_driver *driver) {
    if (driver->reason[0] == '\0' && atomic_load_explicit(&is_fork, memory_order_relaxed))
        return "this process was forked from one that had opened the CUDA driver, and a driver does not survive that; "
               "fork before the first use of a GPU, or start a new program";
    return driver->reason;
}

onepass_status onepass_cuda_open(const cuda_driver **driver) {
    if (onepass_cuda_toolkit == 0)
        return onepass_fail(ONEPASS_NO_DEVICE, "device is ONEPASS_CUDA, but " NO_KERNELS, onepass_cuda_missing);
    *driver = onepass_cuda_driver();
    const char *reason = onepass_cuda_reason(*driver);
    if (reason[0] != '\0')
        return onepass_fail(ONEPASS_NO_DEVICE, "device is ONEPASS_CUDA, but %s", reason);
    return ONEPASS_OK;
}

/* -------------------------------------------------------------------- errors -- */

static onepass_status status_of(cuda_result error) {
    switch (error) {
    case CUDA_ERROR_OUT_OF_MEMORY:
        return ONEPASS_OUT_OF_MEMORY;
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
        return ONEPASS_NO_DEVICE;
    default:
        return ONEPASS_DEVICE_FAILED;
    }
}

/* Errors of a kernel that ran before, in whoever's name: every later call in the context answers the same. */
static bool is_sticky(cuda_result error) {
    switch (error) {
    case 214: /* CUDA_ERROR_ECC_UNCORRECTABLE */
    case 220: /* CUDA_ERROR_NVLINK_UNCORRECTABLE */
    case 226: /* CUDA_ERROR_CONTAINED */
    case 700: /* CUDA_ERROR_ILLEGAL_ADDRESS */
    case 702: /* CUDA_ERROR_LAUNCH_TIMEOUT */
    case 710: /* CUDA_ERROR_ASSERT */
    case 714: /* CUDA_ERROR_HARDWARE_STACK_ERROR */
    case 715: /* CUDA_ERROR_ILLEGAL_INSTRUCTION */
    case 716: /* CUDA_ERROR_MISALIGNED_ADDRESS */
    case 717: /* CUDA_ERROR_INVALID_ADDRESS_SPACE */
    case 718: /* CUDA_ERROR_INVALID_PC */
    case 719: /* CUDA_ERROR_LAUNCH_FAILED */
        return true;
    default:
        return false;
    }
}

onepass_status onepass_cuda_check(const cuda_driver *driver, cuda_result result, const char *format, ...) {
    if (result == CUDA_SUCCESS)
        return ONEPASS_OK;
    char doing[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(doing, sizeof doing, format, arguments);
    va_end(arguments);
    const char *text = NULL;
    if (driver->cuGetErrorString(result, &text) != CUDA_SUCCESS || !text)
        text = "no explanation";
    return onepass_fail(status_of(result), "%s failed: %s (%d), %s%s", doing, error_name(driver, result), result, text,
                        is_sticky(result) ? "; an earlier kernel in this context failed, and nothing more can run in it"
                                          : "");
}

/* ------------------------------------------------------------------- capture -- */

onepass_status onepass_cuda_relax(const cuda_driver *driver, int *mode) {
    *mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    return onepass_cuda_check(driver, driver->cuThreadExchangeStreamCaptureMode(mode),
                              "relaxing the thread's capture mode");
}

/* `status` is that of what was done in between, and comes first. */
onepass_status onepass_cuda_unrelax(const cuda_driver *driver, int *mode, onepass_status status) {
    const cuda_result result = driver->cuThreadExchangeStreamCaptureMode(mode);
    if (status != ONEPASS_OK)
        return status;
    return onepass_cuda_check(driver, result, "restoring the thread's capture mode");
}
