/* The GPU as the tests use it: the driver, memory, streams and graphs, then calls and what must come out of them. */
#include "gpu.h"
#include "oracle.h"

#include <dlfcn.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------- the driver -- */

gpu_driver gpu;
static void *primary_context;
static _Thread_local char doing[640];

void gpu_doing(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(doing, sizeof doing, format, arguments);
    va_end(arguments);
}

void gpu_expect(int result, const char *call, const char *file, int line) {
    if (result == 0) {
        return;
    }
    const char *name = NULL;
    const char *text = NULL;
    gpu.cuGetErrorName(result, &name);
    gpu.cuGetErrorString(result, &text);
    const char *slash = strrchr(file, '/');
    printf("%s:%d: %s: the driver says %s (%d: %s)%s%s\n", slash ? slash + 1 : file, line, call, name ? name : "?",
           result, text ? text : "?", doing[0] ? "; the test was at: " : "", doing);
    fflush(stdout);
    _Exit(1);
}

static void *open_driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    const char *absent = NULL;
    void *symbol = NULL;
    if (!library) {
        return NULL;
    }
#define ENTRY(name, arguments)                                                                                         \
    symbol = dlsym(library, #name);                                                                                    \
    memcpy(&gpu.name, &symbol, sizeof symbol);                                                                         \
    absent = symbol ? absent : #name;
    GPU_FUNCTIONS(ENTRY)
#undef ENTRY
    if (absent) {
        printf("libcuda.so.1 has no %s, which the tests need\n", absent);
        exit(1);
    }
    return library;
}

const char *gpu_missing(void) {
    static char sentence[640];
    int count = 0;
    if (!gpu.cuInit && !open_driver()) {
        return "this machine has no libcuda.so.1, the driver of NVIDIA's GPUs";
    }
    const int result = gpu.cuInit(0);
    if (result != 0) {
        const char *name = NULL;
        gpu.cuGetErrorName(result, &name);
        snprintf(sentence, sizeof sentence, "there is a driver but no GPU to use: cuInit says %s (%d)",
                 name ? name : "?", result);
        return sentence;
    }
    GPU(cuDeviceGetCount(&count));
    if (count == 0) {
        return "this machine has no NVIDIA GPU";
    }
    onepass_machine_info info = {.size = sizeof info};
    if (onepass_machine(&info) != ONEPASS_OK) {
        printf("onepass_machine: %s\n", onepass_message());
        exit(1);
    }
    snprintf(sentence, sizeof sentence, "this build has no kernels: %s", info.gpu_reason);
    return info.gpu_toolkit == 0 ? sentence : NULL;
}

void gpu_open(void) {
    int device = 0;
    GPU(cuDeviceGet(&device, 0));
    GPU(cuDevicePrimaryCtxRetain(&primary_context, device));
    gpu_enter();
}

void gpu_enter(void) {
    GPU(cuCtxSetCurrent(primary_context));
}

/* ------------------------------------------------- memory and streams -- */

/* cuMemAlloc's memory is aligned to this, and nothing that a kernel does looks further. */
enum {
    ALIGNMENT = 256
};

static uint64_t address_of(const void *memory) {
    return (uint64_t)(uintptr_t)memory;
}

void *gpu_try_allocate(size_t bytes) {
    uint64_t address = 0;
    return gpu.cuMemAlloc_v2(&address, bytes) == 0 ? (void *)(uintptr_t)address : NULL;
}

void *gpu_allocate(size_t bytes) {
    uint64_t address = 0;
    GPU(cuMemAlloc_v2(&address, bytes));
    return (void *)(uintptr_t)address;
}

void gpu_free(void *memory) {
    GPU(cuMemFree_v2(address_of(memory)));
}

size_t gpu_available(void) {
    size_t available = 0;
    size_t total = 0;
    GPU(cuMemGetInfo_v2(&available, &total));
    return available;
}

void *gpu_allocate_host(size_t bytes) {
    void *memory = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (!memory) {
        perror("aligned_alloc");
        exit(1);
    }
    return memory;
}

void *gpu_allocate_pinned(size_t bytes) {
    void *memory = NULL;
    GPU(cuMemHostAlloc(&memory, bytes, 0));
    return memory;
}

void *gpu_allocate_managed(size_t bytes) {
    uint64_t address = 0;
    GPU(cuMemAllocManaged(&address, bytes, 1)); /* CU_MEM_ATTACH_GLOBAL */
    return (void *)(uintptr_t)address;
}

void gpu_free_pinned(void *memory) {
    GPU(cuMemFreeHost(memory));
}

void gpu_write(void *to, const void *from, size_t bytes, void *stream) {
    if (bytes) {
        GPU(cuMemcpyHtoDAsync_v2(address_of(to), from, bytes, stream));
    }
    gpu_wait(stream);
}

void gpu_copy(void *to, const void *from, size_t bytes, void *stream) {
    if (bytes) {
        GPU(cuMemcpyDtoDAsync_v2(address_of(to), address_of(from), bytes, stream));
    }
}

void gpu_fill(void *to, unsigned char byte, size_t bytes, void *stream) {
    if (bytes) {
        GPU(cuMemsetD8Async(address_of(to), byte, bytes, stream));
    }
}

void gpu_read(void *to, const void *from, size_t bytes, void *stream) {
    if (bytes) {
        GPU(cuMemcpyDtoHAsync_v2(to, address_of(from), bytes, stream));
    }
    gpu_wait(stream);
}

void *gpu_stream_begin(void) {
    const unsigned not_blocking = 1;
    void *stream = NULL;
    GPU(cuStreamCreate(&stream, not_blocking));
    return stream;
}

void gpu_stream_end(void *stream) {
    GPU(cuStreamDestroy_v2(stream));
}

void gpu_wait(void *stream) {
    GPU(cuStreamSynchronize(stream));
}

/* --------------------------------------------------------------- graphs -- */

const char *const gpu_capture_name[GPU_CAPTURE_MODES] = {"global", "thread-local", "relaxed"};

void gpu_capture_begin(void *stream, int mode) {
    GPU(cuStreamBeginCapture_v2(stream, mode));
}

gpu_graph gpu_capture_end(void *stream) {
    gpu_graph graph = {0};
    GPU(cuStreamEndCapture(stream, &graph.graph));
    GPU(cuGraphGetNodes(graph.graph, NULL, &graph.nodes));
    GPU(cuGraphInstantiateWithFlags(&graph.executable, graph.graph, 0));
    return graph;
}

void gpu_replay(const gpu_graph *graph, void *stream) {
    GPU(cuGraphLaunch(graph->executable, stream));
}

void gpu_graph_end(gpu_graph *graph) {
    GPU(cuGraphExecDestroy(graph->executable));
    GPU(cuGraphDestroy(graph->graph));
}

/* ---------------------------------------- a case of the list, over there -- */

size_t gpu_block_bytes(const prepared_case *prepared) {
    return prepared->block_size + ALIGNMENT;
}

void *gpu_block_in(const prepared_case *prepared, void *memory) {
    return (unsigned char *)memory + (uintptr_t)prepared->block % ALIGNMENT;
}

/* The translated tensor in the place of one of the prepared case's own. */
static const onepass_tensor *counterpart(const prepared_case *prepared, const onepass_tensor *tensor,
                                         const gpu_case *translated) {
    return tensor ? &translated->tensor[tensor - prepared->tensor] : NULL;
}

void gpu_case_translate(const prepared_case *prepared, void *block, void *stream, gpu_case *translated) {
    onepass_call *call = &translated->call;
    for (int which = 0; which < TENSOR_COUNT; which++) {
        onepass_tensor *tensor = &translated->tensor[which];
        *tensor = prepared->tensor[which];
        if (tensor->data) {
            tensor->data = (unsigned char *)block + ((unsigned char *)tensor->data - prepared->block);
        }
    }
    *call = prepared->call;
    for (int which = 0; which < ONEPASS_MAX_OPERANDS; which++) {
        call->operand[which] = counterpart(prepared, call->operand[which], translated);
        call->gradient[which] = counterpart(prepared, call->gradient[which], translated);
    }
    call->weight = counterpart(prepared, call->weight, translated);
    call->mask = counterpart(prepared, call->mask, translated);
    call->upstream = counterpart(prepared, call->upstream, translated);
    call->value = counterpart(prepared, call->value, translated);
    call->device = ONEPASS_CUDA;
    call->stream = stream;
}

/* The first element of an output that differs, in words; 0 if none does. */
static int find_element(const prepared_case *expected, const unsigned char *got, const onepass_tensor *output,
                        const char *name, char *text, size_t size) {
    int64_t count = 1;
    int64_t different = 0;
    for (int d = 0; d < output->ndim; d++) {
        count *= output->shape[d];
    }
    for (int64_t i = 0; i < count; i++) {
        const int64_t offset = oracle_offset(output, output->ndim, output->shape, i);
        const unsigned char *wanted = (unsigned char *)output->data + offset * (int64_t)oracle_size(output->dtype);
        const uint64_t wanted_bits = oracle_load_bits(output->dtype, wanted);
        const uint64_t got_bits = oracle_load_bits(output->dtype, got + (wanted - expected->block));
        if (wanted_bits != got_bits && different++ == 0) {
            snprintf(text, size, "%s, element %lld: expected bits %llx, got %llx", name, (long long)i,
                     (unsigned long long)wanted_bits, (unsigned long long)got_bits);
        }
    }
    if (different) {
        const size_t used = strlen(text);
        snprintf(text + used, size - used, "; %lld of %lld elements differ", (long long)different, (long long)count);
    }
    return different != 0;
}

/* A byte that may not have been written. */
static void find_byte(const prepared_case *expected, const unsigned char *got, char *text, size_t size) {
    size_t byte = 0;
    while (expected->block[byte] == got[byte]) {
        byte++;
    }
    snprintf(text, size,
             "a byte that is no output's was written, in %s, byte %zu of the block: expected %02x, got %02x",
             case_owner(expected, byte), byte, expected->block[byte], got[byte]);
}

int gpu_case_equal(const prepared_case *expected, const unsigned char *got, char *text, size_t size) {
    const onepass_call *call = &expected->call;
    const onepass_tensor *const outputs[] = {call->value, call->gradient[0], call->gradient[1], call->gradient[2]};
    static const char *const names[] = {"value", "gradient p", "gradient t", "gradient v"};
    if (memcmp(expected->block, got, expected->block_size) == 0) {
        return 1;
    }
    for (int i = 0; i < 4; i++) {
        if (outputs[i] && find_element(expected, got, outputs[i], names[i], text, size)) {
            return 0;
        }
    }
    find_byte(expected, got, text, size);
    return 0;
}

/* ----------------------------------------- plain calls over many numbers -- */

/* The magnitude changes every two tiles. Where all were of one magnitude, double would hold the sum of all lanes
 * without rounding, and no order of the tiles would show; were it to change more, a term that is left out would not. */
static uint64_t number_at(size_t index, int32_t dtype, uint64_t *state) {
    if (dtype == ONEPASS_BOOL) {
        return random_mask(state, MASKS_HALF);
    }
    const double uniform = oracle_decode(ONEPASS_F64, random_element(state, DATA_UNIFORM, ONEPASS_F64, 0));
    const int exponent = (int)(index / (2 * ONEPASS_TILE) * 3 % 5) * -4;
    return oracle_encode(dtype, ldexp(uniform, exponent));
}

/* A period is made one by one; then what is there is copied behind itself, twice as much each time. */
void gpu_numbers_fill(int32_t dtype, void *host, void *device, int64_t count, int64_t period, uint64_t seed) {
    const size_t size = oracle_size(dtype);
    const size_t bytes = (size_t)count * size;
    size_t filled = (size_t)(period < count ? period : count) * size;
    unsigned char *one_period = gpu_allocate_host(filled);
    for (size_t at = 0; at < filled; at += size) {
        oracle_store_bits(dtype, one_period + at, number_at(at / size, dtype, &seed));
    }
    if (host) {
        memcpy(host, one_period, filled);
    }
    if (device) {
        gpu_write(device, one_period, filled, GPU_DEFAULT_STREAM);
    }
    while (filled < bytes) {
        const size_t more = filled < bytes - filled ? filled : bytes - filled;
        if (host) {
            memcpy((unsigned char *)host + filled, host, more);
        }
        if (device) {
            gpu_copy((unsigned char *)device + filled, device, more, GPU_DEFAULT_STREAM);
        }
        filled += more;
    }
    if (device) {
        gpu_wait(GPU_DEFAULT_STREAM);
    }
    free(one_period);
}

gpu_numbers gpu_numbers_make(int32_t dtype, int64_t count, int64_t period, uint64_t seed) {
    const size_t bytes = (size_t)count * oracle_size(dtype);
    const gpu_numbers numbers = {dtype, count, gpu_allocate_host(bytes), gpu_allocate(bytes)};
    gpu_numbers_fill(dtype, numbers.host, numbers.device, count, period, seed);
    return numbers;
}

void gpu_numbers_free(gpu_numbers *numbers) {
    free(numbers->host);
    gpu_free(numbers->device);
}

size_t gpu_work_bytes(const gpu_work *work) {
    const size_t gradient = work->wanted & WANT_PREDICTION ? (size_t)work->count * oracle_size(work->dtype) : 0;
    return GPU_OUTPUT_HEAD + gradient + GPU_OUTPUT_TAIL;
}

static onepass_tensor numbers_tensor(const gpu_numbers *numbers, int here, const int64_t *shape) {
    return (onepass_tensor){here ? numbers->host : numbers->device, numbers->dtype, 1, shape, NULL};
}

/* The call on the host's memory or the GPU's. */
static void make_call(const gpu_work *work, int32_t device, void *outputs, gpu_call *made) {
    const int here = device == ONEPASS_CPU;
    made->shape = work->count;
    made->p = (onepass_tensor){here ? work->host_p : work->device_p, work->dtype, 1, &made->shape, NULL};
    made->t = (onepass_tensor){here ? work->host_t : work->device_t, work->dtype, 1, &made->shape, NULL};
    made->weight = numbers_tensor(&work->weight, here, &made->shape);
    made->mask = numbers_tensor(&work->mask, here, &made->shape);
    made->value = (onepass_tensor){outputs, ONEPASS_F64, 0, NULL, NULL};
    made->gradient = (onepass_tensor){(unsigned char *)outputs + GPU_OUTPUT_HEAD, work->dtype, 1, &made->shape, NULL};
    made->call = (onepass_call){.size = sizeof made->call,
                                .loss = work->loss,
                                .reduction = work->reduction,
                                .operand = {&made->p, &made->t},
                                .weight = made->weight.data ? &made->weight : NULL,
                                .mask = made->mask.data ? &made->mask : NULL,
                                .value = work->wanted & WANT_VALUE ? &made->value : NULL,
                                .gradient = {work->wanted & WANT_PREDICTION ? &made->gradient : NULL},
                                .device = device};
    if (onepass_loss_named(work->loss)->operand_count > ONEPASS_THIRD)
        made->call.operand[ONEPASS_THIRD] = &made->t; /* whatever it means there */
}

void gpu_call_make(const gpu_work *work, void *outputs, void *stream, gpu_call *made) {
    make_call(work, ONEPASS_CUDA, outputs, made);
    made->call.stream = stream;
}

onepass_status gpu_work_call(const gpu_work *work, void *outputs, void *stream) {
    gpu_call made;
    gpu_call_make(work, outputs, stream, &made);
    return onepass_run(&made.call);
}

onepass_status gpu_work_run(const gpu_work *work, void *outputs, void *stream) {
    gpu_fill(outputs, GPU_POISON, gpu_work_bytes(work), stream);
    return gpu_work_call(work, outputs, stream);
}

/* What the CPU makes of it. */
static void expect_outputs(gpu_work *work) {
    gpu_call made;
    memset(work->expected, GPU_POISON, gpu_work_bytes(work));
    make_call(work, ONEPASS_CPU, work->expected, &made);
    if (onepass_run(&made.call) != ONEPASS_OK) {
        printf("the CPU refuses what the GPU is to be compared with: %s\n", onepass_message());
        exit(1);
    }
}

static gpu_numbers numbers_from(const gpu_numbers *numbers, int64_t first) {
    const size_t begin = (size_t)first * oracle_size(numbers->dtype);
    return (gpu_numbers){numbers->dtype, numbers->count - first, numbers->host + begin, numbers->device + begin};
}

void gpu_work_weigh(gpu_work *work, const gpu_numbers *weight, const gpu_numbers *mask, int64_t first) {
    if (weight) {
        work->weight = numbers_from(weight, first);
    }
    if (mask) {
        work->mask = numbers_from(mask, first);
    }
    expect_outputs(work);
}

gpu_work gpu_work_make(const char *loss, int32_t reduction, int32_t wanted, const gpu_numbers *p, const gpu_numbers *t,
                       int64_t first, int64_t count) {
    const size_t begin = (size_t)first * oracle_size(p->dtype);
    gpu_work work = {.loss = loss,
                     .reduction = reduction,
                     .dtype = p->dtype,
                     .wanted = wanted,
                     .count = count,
                     .host_p = p->host + begin,
                     .host_t = t->host + begin,
                     .device_p = p->device + begin,
                     .device_t = t->device + begin};
    work.expected = gpu_allocate_host(gpu_work_bytes(&work));
    expect_outputs(&work);
    return work;
}

void gpu_work_free(gpu_work *work) {
    free(work->expected);
    work->expected = NULL;
}

void gpu_work_describe(const gpu_work *work, char *text, size_t size) {
    snprintf(text, size, "%s %s%s%s of %lld elements in %s, wanted%s%s", work->loss,
             work->weight.host ? "weighted " : "", work->mask.host ? "masked " : "",
             work->reduction == ONEPASS_SUM ? "sum" : "mean", (long long)work->count, oracle_dtype_name(work->dtype),
             work->wanted & WANT_VALUE ? " value" : "", work->wanted & WANT_PREDICTION ? " gradient p" : "");
}

int gpu_work_equal(const gpu_work *work, const unsigned char *got, char *text, size_t size) {
    const size_t bytes = gpu_work_bytes(work);
    if (memcmp(work->expected, got, bytes) == 0) {
        return 1;
    }
    gpu_work_describe(work, text, size);
    const size_t used = strlen(text);
    text += used;
    size -= used;
    const uint64_t value = oracle_load_bits(ONEPASS_F64, work->expected);
    const uint64_t got_value = oracle_load_bits(ONEPASS_F64, got);
    if (value != got_value) {
        snprintf(text, size, ": value: expected bits %016llx, got %016llx", (unsigned long long)value,
                 (unsigned long long)got_value);
        return 0;
    }
    size_t byte = 0;
    while (work->expected[byte] == got[byte]) {
        byte++;
    }
    if (byte < GPU_OUTPUT_HEAD || byte >= bytes - GPU_OUTPUT_TAIL) {
        snprintf(text, size,
                 ": a byte around the gradient was written, the %zuth of the outputs: expected %02x, got %02x", byte,
                 work->expected[byte], got[byte]);
        return 0;
    }
    const size_t element = (byte - GPU_OUTPUT_HEAD) / oracle_size(work->dtype);
    const size_t at = GPU_OUTPUT_HEAD + element * oracle_size(work->dtype);
    snprintf(text, size, ": gradient p, element %zu: expected bits %llx, got %llx", element,
             (unsigned long long)oracle_load_bits(work->dtype, work->expected + at),
             (unsigned long long)oracle_load_bits(work->dtype, got + at));
    return 0;
}
