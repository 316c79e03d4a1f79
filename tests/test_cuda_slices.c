/*
 * Accumulators of slices in a GPU's memory: any slices, on several streams, have the bits of one call on the CPU; and a
 * large one, whose nodes are long.
 */
#define _POSIX_C_SOURCE 200809L
#include "gpu.h"
#include "slices.h"
#include "test_cuda.h"

static void write_there(void *to, const void *from, size_t size) {
    gpu_write(to, from, size, GPU_DEFAULT_STREAM);
}

static void read_there(void *to, const void *from, size_t size) {
    GPU(cuCtxSynchronize());
    gpu_read(to, from, size, GPU_DEFAULT_STREAM);
}

/* Many tiles, from an odd element on, in slices that the GPU still computes when they are asked for. */
static void test_large(int64_t count) {
    enum {
        SLICES = 7
    };
    void *stream[SLICES];
    double expected = -1, got = -2;
    gpu_numbers p = gpu_numbers_make(ONEPASS_F32, count, GPU_PERIOD_P, 5);
    gpu_numbers t = gpu_numbers_make(ONEPASS_F32, count, GPU_PERIOD_T, 6);
    const onepass_tensor one[2] = {{p.host, ONEPASS_F32, 1, &count, NULL}, {t.host, ONEPASS_F32, 1, &count, NULL}};
    const onepass_tensor value = {&expected, ONEPASS_F64, 0, NULL, NULL}, sum = {&got, ONEPASS_F64, 0, NULL, NULL};
    onepass_call call = {.size = sizeof call, .loss = "mse", .operand = {&one[0], &one[1]}, .value = &value};
    onepass_accumulator *accumulator = NULL;
    gpu_doing("slices of %lld elements", (long long)count);
    CHECK_OK(onepass_run(&call), "the whole on the CPU");
    const onepass_call begin = {.size = sizeof begin, .loss = "mse"};
    CHECK_OK(onepass_accumulator_begin(&accumulator, &begin, count), "begin");
    for (int i = 0; i < SLICES; i++) {
        const int64_t first = count * i / SLICES, length = count * (i + 1) / SLICES - first;
        const onepass_tensor slice[2] = {{p.device + 4 * first, ONEPASS_F32, 1, &length, NULL},
                                         {t.device + 4 * first, ONEPASS_F32, 1, &length, NULL}};
        onepass_call add = {.size = sizeof add, .loss = "mse", .operand = {&slice[0], &slice[1]}};
        add.device = ONEPASS_CUDA;
        add.stream = stream[i] = gpu_stream_begin();
        CHECK_OK(onepass_accumulator_add(accumulator, &add, first), "a large slice");
    }
    CHECK_OK(onepass_accumulator_finish(accumulator, &sum), "finish");
    CHECK_BITS(oracle_double_bits(expected), oracle_double_bits(got), "large slices");
    onepass_accumulator_destroy(accumulator);
    for (int i = 0; i < SLICES; i++)
        gpu_stream_end(stream[i]);
    gpu_numbers_free(&p);
    gpu_numbers_free(&t);
}

/* A graph would add the same elements again. */
static void test_capture(void) {
    const int64_t count = ONEPASS_TILE;
    onepass_accumulator *accumulator = NULL;
    unsigned char *memory = gpu_allocate(4 * ONEPASS_TILE);
    void *stream = gpu_stream_begin();
    const onepass_tensor slice = {memory, ONEPASS_F32, 1, &count, NULL};
    onepass_call call = {.size = sizeof call, .loss = "mse"};
    CHECK_OK(onepass_accumulator_begin(&accumulator, &call, count), "begin");
    call.operand[0] = call.operand[1] = &slice;
    call.device = ONEPASS_CUDA;
    call.stream = stream;
    gpu_capture_begin(stream, GPU_CAPTURE_GLOBAL);
    CHECK(onepass_accumulator_add(accumulator, &call, 0) == ONEPASS_NOT_SUPPORTED, "expected a refusal, got \"%s\"",
          onepass_message());
    gpu_graph graph = gpu_capture_end(stream);
    CHECK(graph.nodes == 0, "expected nothing in the graph, got %zu nodes", graph.nodes);
    gpu_graph_end(&graph);
    CHECK_OK(onepass_accumulator_add(accumulator, &call, 0), "the same slice when the capture has ended");
    onepass_accumulator_destroy(accumulator); /* nobody has asked for it */
    gpu_stream_end(stream);
    gpu_free(memory);
}

int test_cuda_slices(bool reduced) {
    slices_place place = {gpu_allocate, gpu_free, write_there, read_there, {GPU_DEFAULT_STREAM}};
    place.stream[1] = gpu_stream_begin();
    place.stream[2] = gpu_stream_begin();
    for (int i = 0; i < SLICES_CASES; i++) {
        gpu_doing("slices, case %d", i);
        slices_run(&slices_cases[i], &place, (uint64_t)i, reduced ? 1 : 8);
    }
    gpu_stream_end(place.stream[1]);
    gpu_stream_end(place.stream[2]);
    test_capture();
    test_large(reduced ? 5 * ONEPASS_TILE + 1 : ((int64_t)1 << 26) + 4321);
    return section_finish();
}
