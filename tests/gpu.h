/*
 * The GPU as the tests use it. libcuda.so.1 is opened here with declarations of our
 * own, apart from src/cuda/driver.h, so that a mistake there is not repeated here.
 *
 * What a test expects of the library is checked by the test. What it needs of the
 * driver must work: a failure there is printed, with what was being done, and ends
 * the program, since after most of them (a kernel that went astray) nothing works.
 */
#ifndef ONEPASS_TESTS_GPU_H
#define ONEPASS_TESTS_GPU_H

#include <stddef.h>
#include <stdint.h>

#include "cases.h"
#include "onepass.h"

/* ----------------------------------------------------------- the driver -- */

/* CUDA_KERNEL_NODE_PARAMS_v2: a launch in a graph. */
typedef struct gpu_kernel_node {
    void *function;
    unsigned blocks[3];
    unsigned threads[3];
    unsigned shared_memory;
    void **parameters;
    void **extra;
    void *kernel;
    void *context;
} gpu_kernel_node;

/* Names are those of the symbols; handles are void *, and CUdeviceptr has 64 bits. */
#define GPU_FUNCTIONS(ENTRY)                                                                                           \
    ENTRY(cuInit, (unsigned flags))                                                                                    \
    ENTRY(cuDriverGetVersion, (int *version))                                                                          \
    ENTRY(cuGetErrorName, (int error, const char **name))                                                              \
    ENTRY(cuGetErrorString, (int error, const char **text))                                                            \
    ENTRY(cuDeviceGetCount, (int *count))                                                                              \
    ENTRY(cuDeviceGet, (int *device, int index))                                                                       \
    ENTRY(cuDeviceGetName, (char *name, int size, int device))                                                         \
    ENTRY(cuDevicePrimaryCtxRetain, (void **context, int device))                                                      \
    ENTRY(cuCtxCreate_v2, (void **context, unsigned flags, int device))                                                \
    ENTRY(cuCtxDestroy_v2, (void *context))                                                                            \
    ENTRY(cuCtxGetCurrent, (void **context))                                                                           \
    ENTRY(cuCtxSetCurrent, (void *context))                                                                            \
    ENTRY(cuCtxSynchronize, (void))                                                                                    \
    ENTRY(cuMemGetInfo_v2, (size_t * available, size_t * total))                                                       \
    ENTRY(cuMemAlloc_v2, (uint64_t * address, size_t bytes))                                                           \
    ENTRY(cuMemFree_v2, (uint64_t address))                                                                            \
    ENTRY(cuMemAllocManaged, (uint64_t * address, size_t bytes, unsigned flags))                                       \
    ENTRY(cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags))                                               \
    ENTRY(cuMemFreeHost, (void *memory))                                                                               \
    ENTRY(cuMemcpyHtoDAsync_v2, (uint64_t to, const void *from, size_t bytes, void *stream))                           \
    ENTRY(cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t bytes, void *stream))                                 \
    ENTRY(cuMemcpyDtoDAsync_v2, (uint64_t to, uint64_t from, size_t bytes, void *stream))                              \
    ENTRY(cuMemsetD8Async, (uint64_t to, unsigned char byte, size_t bytes, void *stream))                              \
    ENTRY(cuStreamCreate, (void **stream, unsigned flags))                                                             \
    ENTRY(cuStreamDestroy_v2, (void *stream))                                                                          \
    ENTRY(cuStreamSynchronize, (void *stream))                                                                         \
    ENTRY(cuStreamWaitEvent, (void *stream, void *event, unsigned flags))                                              \
    ENTRY(cuEventCreate, (void **event, unsigned flags))                                                               \
    ENTRY(cuEventRecord, (void *event, void *stream))                                                                  \
    ENTRY(cuEventDestroy_v2, (void *event))                                                                            \
    ENTRY(cuStreamBeginCapture_v2, (void *stream, int mode))                                                           \
    ENTRY(cuStreamEndCapture, (void *stream, void **graph))                                                            \
    ENTRY(cuGraphKernelNodeGetParams_v2, (void *node, gpu_kernel_node *parameters))                                    \
    ENTRY(cuGraphGetNodes, (void *graph, void **nodes, size_t *count))                                                 \
    ENTRY(cuGraphInstantiateWithFlags, (void **executable, void *graph, unsigned long long flags))                     \
    ENTRY(cuGraphLaunch, (void *executable, void *stream))                                                             \
    ENTRY(cuGraphExecDestroy, (void *executable))                                                                      \
    ENTRY(cuGraphDestroy, (void *graph))

typedef struct gpu_driver {
#define ENTRY(name, arguments) int(*name) arguments;
    GPU_FUNCTIONS(ENTRY)
#undef ENTRY
} gpu_driver;

extern gpu_driver gpu;

/* GPU(cuStreamSynchronize(stream)); ends the program if the driver says no. */
#define GPU(call) gpu_expect(gpu.call, #call, __FILE__, __LINE__)
void gpu_expect(int result, const char *call, const char *file, int line);

/* What the calling thread is at, for the message of a failure, which may come later than its cause. */
__attribute__((format(printf, 1, 2))) void gpu_doing(const char *format, ...);

/* Null if this machine has a GPU and this build has kernels for it; else a sentence. */
const char *gpu_missing(void);

/* Opens the first GPU; its primary context is current in the calling thread. */
void gpu_open(void);

/* Makes that context current in another thread. */
void gpu_enter(void);

/* ------------------------------------------------- memory and streams -- */

void *gpu_allocate(size_t bytes);
void *gpu_try_allocate(size_t bytes); /* null if there is not enough */
void gpu_free(void *memory);
size_t gpu_available(void);

/* Host memory, aligned as the GPU's is; free() frees it. */
void *gpu_allocate_host(size_t bytes);

/* Host memory that the GPU can copy to and from at full speed. */
void *gpu_allocate_pinned(size_t bytes);
void gpu_free_pinned(void *memory);

/* Memory that the host and the GPU share; gpu_free() frees it. */
void *gpu_allocate_managed(size_t bytes);

/* On a stream, in its order. Those that touch the host's memory also wait until they are done. */
void gpu_copy(void *to, const void *from, size_t bytes, void *stream);
void gpu_fill(void *to, unsigned char byte, size_t bytes, void *stream);
void gpu_write(void *to, const void *from, size_t bytes, void *stream);
void gpu_read(void *to, const void *from, size_t bytes, void *stream);

/* Streams that do not wait for the default stream. */
void *gpu_stream_begin(void);
void gpu_stream_end(void *stream);
void gpu_wait(void *stream);

/* The two default streams that have handles of their own: the one null stands for, and one for each thread. */
#define GPU_DEFAULT_STREAM    NULL
#define GPU_STREAM_PER_THREAD ((void *)(uintptr_t)2)

/* --------------------------------------------------------------- graphs -- */

enum {
    GPU_CAPTURE_GLOBAL,
    GPU_CAPTURE_THREAD_LOCAL,
    GPU_CAPTURE_RELAXED,
    GPU_CAPTURE_MODES
};
extern const char *const gpu_capture_name[GPU_CAPTURE_MODES];

typedef struct gpu_graph {
    void *graph;
    void *executable;
    size_t nodes;
} gpu_graph;

void gpu_capture_begin(void *stream, int mode);
gpu_graph gpu_capture_end(void *stream);
void gpu_replay(const gpu_graph *graph, void *stream);
void gpu_graph_end(gpu_graph *graph);

/* ---------------------------------------- a case of the list, over there -- */

/* The call of a prepared case with its tensors in a copy of the block that lies in the GPU's memory. */
typedef struct gpu_case {
    onepass_call call;
    onepass_tensor tensor[TENSOR_COUNT];
} gpu_case;

/* Bytes to allocate for a block, and where in them it must lie to be aligned as it is here. */
size_t gpu_block_bytes(const prepared_case *prepared);
void *gpu_block_in(const prepared_case *prepared, void *memory);
void gpu_case_translate(const prepared_case *prepared, void *block, void *stream, gpu_case *translated);

/* Whether the two blocks are equal; if not, says where they first differ. */
int gpu_case_equal(const prepared_case *expected, const unsigned char *got, char *text, size_t size);

/* ----------------------------------------- plain calls over many numbers -- */

/* Numbers here and the same over there: dense, period after period. A period is a prime
 * number of elements, so that no two tiles are alike, and quickly made. */
typedef struct gpu_numbers {
    int32_t dtype;
    int64_t count;
    unsigned char *host;
    unsigned char *device;
} gpu_numbers;

enum {
    GPU_PERIOD_P = 1048573,
    GPU_PERIOD_T = 1048571
};

gpu_numbers gpu_numbers_make(int32_t dtype, int64_t count, int64_t period, uint64_t seed);
void gpu_numbers_free(gpu_numbers *numbers);

/* Fills host memory, or the GPU's, with the same numbers. */
void gpu_numbers_fill(int32_t dtype, void *host, void *device, int64_t count, int64_t period, uint64_t seed);

/* A loss over dense operands of one type, and perhaps a weight and a mask. The outputs, poisoned before, are one piece
 * of memory: the value as f64, then from GPU_OUTPUT_HEAD on the gradient in p, in the operands' type. */
typedef struct gpu_work {
    const char *loss;
    int32_t reduction; /* mean or sum */
    int32_t dtype;
    int32_t wanted; /* WANT_VALUE, WANT_PREDICTION */
    int64_t count;
    unsigned char *host_p, *host_t;
    unsigned char *device_p, *device_t;
    gpu_numbers weight, mask; /* from the work's first element on; without memory: absent */
    unsigned char *expected;  /* the CPU's outputs */
} gpu_work;

enum {
    GPU_OUTPUT_HEAD = 256,
    GPU_OUTPUT_TAIL = 256,
    GPU_POISON = 0x5a
};

/* The work on the elements of p and t from `first` on, with what the CPU makes of it. */
gpu_work gpu_work_make(const char *loss, int32_t reduction, int32_t wanted, const gpu_numbers *p, const gpu_numbers *t,
                       int64_t first, int64_t count);
void gpu_work_free(gpu_work *work);

/* From now on with those elements of a weight, of a mask (ONEPASS_BOOL), or of both; null means none. */
void gpu_work_weigh(gpu_work *work, const gpu_numbers *weight, const gpu_numbers *mask, int64_t first);

size_t gpu_work_bytes(const gpu_work *work); /* of its outputs */

/* The call, with the tensors that it points to, for a test to change before it is run. */
typedef struct gpu_call {
    onepass_call call;
    onepass_tensor p, t, weight, mask, value, gradient;
    int64_t shape;
} gpu_call;

void gpu_call_make(const gpu_work *work, void *outputs, void *stream, gpu_call *made);

/* Poisons the outputs and makes the call, or does the latter alone; returns what the library returned. */
onepass_status gpu_work_run(const gpu_work *work, void *outputs, void *stream);
onepass_status gpu_work_call(const gpu_work *work, void *outputs, void *stream);

/* Whether these outputs, read back, are the expected ones; if not, says where they first differ. */
int gpu_work_equal(const gpu_work *work, const unsigned char *got, char *text, size_t size);
void gpu_work_describe(const gpu_work *work, char *text, size_t size);

#endif
