/*
 * The CUDA driver, opened at run time, so that one library serves machines with and
 * without a GPU and is built without the toolkit. The names and numbers here are those
 * of cuda.h; there are no more of them than the engine uses.
 */
#ifndef ONEPASS_CUDA_DRIVER_H
#define ONEPASS_CUDA_DRIVER_H

#include "engine.h"
#include "message.h"

typedef int cuda_result;
typedef int cuda_device;
typedef uintptr_t cuda_pointer; /* to memory of a GPU */
typedef struct CUctx_st *cuda_context;
typedef struct CUmod_st *cuda_module;
typedef struct CUfunc_st *cuda_function;
typedef struct CUstream_st *cuda_stream;
typedef struct CUevent_st *cuda_event;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709 /* or a primary context that was reset */
};

enum {
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
    CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
    CU_MEMORYTYPE_HOST = 1,
    CU_MEMORYTYPE_DEVICE = 2,
    CU_STREAM_NON_BLOCKING = 1,
    CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
    CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2,
    CU_STREAM_CAPTURE_MODE_RELAXED = 2,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6
};

/* What is special about a launch. */
typedef struct cuda_attribute {
    int which;
    char unused[4];
    union {
        int number;
        char size[64];
    } value;
} cuda_attribute;

/* How a kernel is launched, or would be. */
typedef struct cuda_config {
    unsigned blocks[3], threads[3], shared_memory;
    cuda_stream stream;
    const cuda_attribute *attributes;
    unsigned attribute_count;
} cuda_config;

/* The driver's functions, a line each: name, symbol (cuda.h maps some names to a later
 * version), parameters. */
#define CUDA_DRIVER_FUNCTIONS(FUNCTION)                                                                                \
    FUNCTION(cuGetErrorName, "cuGetErrorName", (cuda_result error, const char **name))                                 \
    FUNCTION(cuGetErrorString, "cuGetErrorString", (cuda_result error, const char **text))                             \
    FUNCTION(cuDriverGetVersion, "cuDriverGetVersion", (int *version))                                                 \
    FUNCTION(cuInit, "cuInit", (unsigned flags))                                                                       \
    FUNCTION(cuDeviceGetCount, "cuDeviceGetCount", (int *count))                                                       \
    FUNCTION(cuDeviceGet, "cuDeviceGet", (cuda_device * device, int ordinal))                                          \
    FUNCTION(cuDeviceGetName, "cuDeviceGetName", (char *name, int length, cuda_device device))                         \
    FUNCTION(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int *number, int attribute, cuda_device device))           \
    FUNCTION(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (cuda_context * context, cuda_device device))       \
    FUNCTION(cuCtxGetCurrent, "cuCtxGetCurrent", (cuda_context * context))                                             \
    FUNCTION(cuCtxGetDevice, "cuCtxGetDevice", (cuda_device * device))                                                 \
    FUNCTION(cuCtxGetId, "cuCtxGetId", (cuda_context context, unsigned long long *identity))                           \
    FUNCTION(cuCtxPushCurrent, "cuCtxPushCurrent_v2", (cuda_context context))                                          \
    FUNCTION(cuCtxPopCurrent, "cuCtxPopCurrent_v2", (cuda_context * context))                                          \
    FUNCTION(cuModuleLoadData, "cuModuleLoadData", (cuda_module * module, const void *image))                          \
    FUNCTION(cuModuleUnload, "cuModuleUnload", (cuda_module module))                                                   \
    FUNCTION(cuModuleGetFunction, "cuModuleGetFunction",                                                               \
             (cuda_function * kernel, cuda_module module, const char *name))                                           \
    FUNCTION(cuFuncSetAttribute, "cuFuncSetAttribute", (cuda_function kernel, int attribute, int number))              \
    FUNCTION(cuOccupancyMaxActiveClusters, "cuOccupancyMaxActiveClusters",                                             \
             (int *clusters, cuda_function kernel, const cuda_config *config))                                         \
    FUNCTION(cuModuleGetGlobal, "cuModuleGetGlobal_v2",                                                                \
             (cuda_pointer * memory, size_t * size, cuda_module module, const char *name))                             \
    FUNCTION(cuMemAlloc, "cuMemAlloc_v2", (cuda_pointer * memory, size_t size))                                        \
    FUNCTION(cuMemFree, "cuMemFree_v2", (cuda_pointer memory))                                                         \
    FUNCTION(cuMemsetD8Async, "cuMemsetD8Async",                                                                       \
             (cuda_pointer memory, unsigned char byte, size_t size, cuda_stream stream))                               \
    FUNCTION(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2",                                                                \
             (cuda_pointer to, cuda_pointer from, size_t size, cuda_stream stream))                                    \
    FUNCTION(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2",                                                                \
             (void *to, cuda_pointer from, size_t size, cuda_stream stream))                                           \
    FUNCTION(cuStreamCreate, "cuStreamCreate", (cuda_stream * stream, unsigned flags))                                 \
    FUNCTION(cuStreamDestroy, "cuStreamDestroy_v2", (cuda_stream stream))                                              \
    FUNCTION(cuStreamSynchronize, "cuStreamSynchronize", (cuda_stream stream))                                         \
    FUNCTION(cuStreamGetId, "cuStreamGetId", (cuda_stream stream, unsigned long long *identity))                       \
    FUNCTION(cuStreamIsCapturing, "cuStreamIsCapturing", (cuda_stream stream, int *status))                            \
    FUNCTION(cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", (int *mode))                      \
    FUNCTION(cuEventCreate, "cuEventCreate", (cuda_event * event, unsigned flags))                                     \
    FUNCTION(cuEventDestroy, "cuEventDestroy_v2", (cuda_event event))                                                  \
    FUNCTION(cuEventRecord, "cuEventRecord", (cuda_event event, cuda_stream stream))                                   \
    FUNCTION(cuEventQuery, "cuEventQuery", (cuda_event event))                                                         \
    FUNCTION(cuEventSynchronize, "cuEventSynchronize", (cuda_event event))                                             \
    FUNCTION(cuPointerGetAttributes, "cuPointerGetAttributes",                                                         \
             (unsigned count, int *attributes, void **data, cuda_pointer pointer))                                     \
    FUNCTION(cuLaunchKernelEx, "cuLaunchKernelEx",                                                                     \
             (const cuda_config *config, cuda_function kernel, void **parameters, void **extra))

#define CUDA_MOST_GPUS 64

typedef struct cuda_driver {
#define MEMBER(name, symbol, parameters) cuda_result(*name) parameters;
    CUDA_DRIVER_FUNCTIONS(MEMBER)
#undef MEMBER
    int32_t version; /* as the driver counts: 13000 is CUDA 13.0; 0: not opened */
    int32_t gpu_count;
    cuda_device gpu[CUDA_MOST_GPUS];
    char gpu_names[2048];
    char reason[512]; /* why it cannot be used; else "" */
} cuda_driver;

/* Opens the driver, once for the process, and says whether a GPU can be used. */
ONEPASS_INTERNAL onepass_status onepass_cuda_open(const cuda_driver **driver);

/* The same for who only asks: never null, and why it cannot be used, or "". */
ONEPASS_INTERNAL const cuda_driver *onepass_cuda_driver(void);
ONEPASS_INTERNAL const char *onepass_cuda_reason(const cuda_driver *driver);

/* The status and the sentence for what the driver answered: ONEPASS_OK for success. `format`
 * says what was being done, so that "... failed" may follow. */
ONEPASS_INTERNAL onepass_status onepass_cuda_check(const cuda_driver *driver, cuda_result result, const char *format,
                                                   ...) __attribute__((format(printf, 3, 4)));

/* While a stream is captured, by any thread, the driver refuses to load, allocate, query and
 * wait, since that could be meant for the capture. Between these two calls it lets this thread. */
ONEPASS_INTERNAL onepass_status onepass_cuda_relax(const cuda_driver *driver, int *mode);
ONEPASS_INTERNAL onepass_status onepass_cuda_unrelax(const cuda_driver *driver, int *mode, onepass_status status);

#endif
