/*
 * What surrounds a call on the GPU: the memory that the library takes, contexts and
 * streams that come and go, the caller's own workspace, and what must be refused.
 */
#include "cases.h"
#include "check.h"
#include "gpu.h"
#include "oracle.h"
#include "cuda/plan.h"
#include "test_cuda.h"

enum {
    MIB = 1 << 20
};

/* Operands and a work on them, for tests that need a call that is large enough to need partial sums. */
typedef struct scenery {
    gpu_numbers p, t;
    gpu_work work;
    unsigned char *outputs;
    unsigned char *read_back;
} scenery;

static scenery scenery_begin(int64_t count, int32_t wanted) {
    scenery scenery = {.p = gpu_numbers_make(ONEPASS_F32, count, GPU_PERIOD_P, 41),
                       .t = gpu_numbers_make(ONEPASS_F32, count, GPU_PERIOD_T, 42)};
    scenery.work = gpu_work_make("mse", ONEPASS_MEAN, wanted, &scenery.p, &scenery.t, 0, count);
    scenery.outputs = gpu_allocate(gpu_work_bytes(&scenery.work));
    scenery.read_back = gpu_allocate_host(gpu_work_bytes(&scenery.work));
    return scenery;
}

static void scenery_end(scenery *scenery) {
    gpu_work_free(&scenery->work);
    gpu_free(scenery->outputs);
    free(scenery->read_back);
    gpu_numbers_free(&scenery->p);
    gpu_numbers_free(&scenery->t);
}

static void compare_outputs(const scenery *scenery, void *stream, const char *what) {
    char text[256];
    gpu_read(scenery->read_back, scenery->outputs, gpu_work_bytes(&scenery->work), stream);
    const int equal = gpu_work_equal(&scenery->work, scenery->read_back, text, sizeof text);
    CHECK(equal, "%s: %s", what, text);
}

static void run_and_compare(const scenery *scenery, void *stream, const char *what) {
    gpu_doing("%s", what);
    if (CHECK_OK(gpu_work_run(&scenery->work, scenery->outputs, stream), what)) {
        compare_outputs(scenery, stream, what);
    }
}

/* ---------------------------------------------------------------- memory -- */

static double mib(size_t before, size_t after) {
    return ((double)before - (double)after) / MIB;
}

/* Thousands of calls of all sizes on one stream. Must be the first that a process does, or the preparation is over. */
int test_cuda_memory(bool reduced) {
    enum {
        SIZES = 12,
        CALLS = 6000
    };
    const int64_t most = INT64_C(1) << 22;
    gpu_numbers p = gpu_numbers_make(ONEPASS_F32, most, GPU_PERIOD_P, 43);
    gpu_numbers t = gpu_numbers_make(ONEPASS_F32, most, GPU_PERIOD_T, 44);
    gpu_work works[SIZES];
    for (int i = 0; i < SIZES; i++) {
        works[i] = gpu_work_make(i % 2 ? "mse" : "hinge", ONEPASS_MEAN,
                                 i % 3 ? WANT_VALUE : WANT_VALUE | WANT_PREDICTION, &p, &t, 0, most >> 2 * i);
    }
    const size_t bytes = (size_t)most * sizeof(float) + GPU_OUTPUT_HEAD + GPU_OUTPUT_TAIL;
    unsigned char *outputs = gpu_allocate(bytes);
    unsigned char *read_back = gpu_allocate_pinned(bytes);
    void *stream = gpu_stream_begin();
    gpu_fill(outputs, 0, bytes, stream); /* whatever the driver itself allocates for a first launch, it has now */
    gpu_wait(stream);

    const size_t before = gpu_available();
    CHECK_OK(onepass_prepare(ONEPASS_CUDA, 0), "onepass_prepare");
    const size_t prepared = gpu_available();
    for (int i = 0; i < (reduced ? SIZES : CALLS); i++) {
        const gpu_work *work = &works[i % SIZES];
        char text[256];
        gpu_doing("call %d of many on one stream", i);
        CHECK_OK(gpu_work_run(work, outputs, stream), "one of many calls on one stream");
        if (i % 101 == 0) {
            gpu_read(read_back, outputs, gpu_work_bytes(work), stream);
            const int equal = gpu_work_equal(work, read_back, text, sizeof text);
            CHECK(equal, "call %d of many on one stream: %s", i, text);
        }
    }
    gpu_wait(stream);
    const size_t after = gpu_available();
    printf("onepass_prepare takes %.1f MiB of the GPU's memory, kernels included; the calls after it %.1f MiB more\n",
           mib(before, prepared), mib(prepared, after));
    CHECK(mib(prepared, after) < 4, "expected that calls on one stream take less than 4 MiB, got %.1f MiB",
          mib(prepared, after));

    for (int i = 0; i < SIZES; i++) {
        gpu_work_free(&works[i]);
    }
    gpu_free(outputs);
    gpu_free_pinned(read_back);
    gpu_stream_end(stream);
    gpu_numbers_free(&p);
    gpu_numbers_free(&t);
    return section_finish();
}

/* -------------------------------------------------------------- contexts -- */

static void *current_context(void) {
    void *context = NULL;
    GPU(cuCtxGetCurrent(&context));
    return context;
}

static void expect_context(void *expected, const char *what) {
    void *context = current_context();
    CHECK(context == expected, "%s: expected that the current context stays %p, got %p", what, expected, context);
}

/* Every function that comes near the GPU, with `current` as the current context, and a call that is refused. */
static void call_everything(const scenery *scenery, void *stream, void *current, const char *what) {
    float on_the_host = 1;
    gpu_call refused;
    gpu_call scaled;
    void *primary = current_context();
    gpu_call_make(&scenery->work, scenery->outputs, stream, &refused);
    refused.value.data = &on_the_host;
    refused.value.dtype = ONEPASS_F32;
    gpu_call_make(&scenery->work, scenery->outputs, stream, &scaled);
    onepass_call scale = {.size = sizeof scale,
                          .upstream = &scaled.value, /* any one number; the outputs are made anew below */
                          .gradient = {&scaled.gradient},
                          .device = ONEPASS_CUDA,
                          .stream = stream};
    gpu_fill(scenery->outputs, 0, gpu_work_bytes(&scenery->work), stream);
    gpu_wait(stream);

    GPU(cuCtxSetCurrent(current));
    CHECK_OK(onepass_prepare(ONEPASS_CUDA, 0), what);
    expect_context(current, "onepass_prepare");
    CHECK_OK(onepass_scale(&scale), what);
    expect_context(current, "onepass_scale");
    CHECK(onepass_run(&refused.call) != ONEPASS_OK, "%s: expected that a value on the host is refused", what);
    expect_context(current, "a refused call");
    GPU(cuCtxSetCurrent(primary));
    gpu_fill(scenery->outputs, GPU_POISON, gpu_work_bytes(&scenery->work), stream);
    gpu_wait(stream);
    GPU(cuCtxSetCurrent(current));
    CHECK_OK(gpu_work_call(&scenery->work, scenery->outputs, stream), what);
    expect_context(current, what);
    GPU(cuCtxSetCurrent(primary));
    compare_outputs(scenery, stream, what);
}

/* A context of the test's own, with memory and a stream in it. Its handle is likely to be that of the one before. */
static void call_in_own_context(const scenery *of_primary, void *primary_stream) {
    void *primary = current_context();
    void *own = NULL;
    int device = 0;
    GPU(cuDeviceGet(&device, 0));
    GPU(cuCtxCreate_v2(&own, 0, device));
    GPU(cuCtxSetCurrent(own));
    scenery scenery = scenery_begin(300001, WANT_VALUE | WANT_PREDICTION);
    void *stream = gpu_stream_begin();
    call_everything(&scenery, stream, own, "a context of the caller's own");
    gpu_stream_end(stream);
    scenery_end(&scenery);
    GPU(cuCtxDestroy_v2(own));
    GPU(cuCtxSetCurrent(primary));
    run_and_compare(of_primary, primary_stream, "the primary context after another");
}

/* Streams one after the other; the handle of one that ended is soon another's. */
static void call_on_passing_streams(const scenery *scenery, int streams) {
    const size_t before = gpu_available();
    for (int i = 0; i < streams; i++) {
        void *stream = gpu_stream_begin();
        run_and_compare(scenery, stream, "one of many streams that come and go");
        gpu_stream_end(stream);
    }
    const double taken = mib(before, gpu_available());
    printf("%d streams, one after the other, took %.1f MiB\n", streams, taken);
    CHECK(taken < 32, "expected that streams which come and go take less than 32 MiB, got %.1f MiB", taken);
}

/* A stream that ends while its calls still run, and the next ones at once. */
static void call_on_ending_streams(const scenery *scenery, int streams) {
    const size_t bytes = (gpu_work_bytes(&scenery->work) + 255) / 256 * 256;
    unsigned char *outputs = gpu_allocate((size_t)streams * bytes);
    gpu_doing("streams that end while their calls run");
    for (int i = 0; i < streams; i++) {
        void *stream = gpu_stream_begin();
        CHECK_OK(gpu_work_run(&scenery->work, outputs + (size_t)i * bytes, stream), "a stream that ends at once");
        gpu_stream_end(stream);
    }
    GPU(cuCtxSynchronize());
    for (int i = 0; i < streams; i++) {
        char text[256];
        gpu_read(scenery->read_back, outputs + (size_t)i * bytes, gpu_work_bytes(&scenery->work), GPU_DEFAULT_STREAM);
        const int equal = gpu_work_equal(&scenery->work, scenery->read_back, text, sizeof text);
        CHECK(equal, "stream %d, which ended while its calls ran: %s", i, text);
    }
    gpu_free(outputs);
}

/* More streams at the same time than the library keeps workspaces for, with several calls in flight on each. */
static void call_on_many_streams(const scenery *scenery, int rounds) {
    enum {
        STREAMS = 200
    };
    const size_t bytes = (gpu_work_bytes(&scenery->work) + 255) / 256 * 256;
    unsigned char *outputs = gpu_allocate(STREAMS * bytes);
    void *streams[STREAMS];
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = gpu_stream_begin();
    }
    for (int round = 0; round < rounds; round++) {
        gpu_doing("many streams at once, round %d", round);
        for (int i = 0; i < 3 * STREAMS; i++) {
            CHECK_OK(gpu_work_run(&scenery->work, outputs + (size_t)(i % STREAMS) * bytes, streams[i % STREAMS]),
                     "many streams at once");
        }
        for (int i = 0; i < STREAMS; i++) {
            char text[256];
            gpu_read(scenery->read_back, outputs + (size_t)i * bytes, gpu_work_bytes(&scenery->work), streams[i]);
            const int equal = gpu_work_equal(&scenery->work, scenery->read_back, text, sizeof text);
            CHECK(equal, "many streams at once, stream %d: %s", i, text);
        }
    }
    for (int i = 0; i < STREAMS; i++) {
        gpu_stream_end(streams[i]);
    }
    gpu_free(outputs);
}

int test_cuda_contexts(bool reduced) {
    scenery scenery = scenery_begin(300001, WANT_VALUE | WANT_PREDICTION);
    void *stream = gpu_stream_begin();
    call_everything(&scenery, stream, NULL, "no current context");
    call_everything(&scenery, stream, current_context(), "the primary context");
    call_everything(&scenery, GPU_DEFAULT_STREAM, NULL, "no current context, the default stream");
    for (int i = 0; i < (reduced ? 1 : 4); i++) {
        call_in_own_context(&scenery, stream);
    }
    call_on_passing_streams(&scenery, reduced ? 5 : 300);
    call_on_ending_streams(&scenery, reduced ? 5 : 300);
    call_on_many_streams(&scenery, reduced ? 1 : 10);
    gpu_stream_end(stream);
    scenery_end(&scenery);
    return section_finish();
}

/* ------------------------------------------------------------- workspace -- */

/* Whether `bytes` bytes over there all have this value; the place of the first that has not. */
static size_t first_other(const unsigned char *memory, unsigned char byte, size_t bytes, void *stream) {
    unsigned char *read_back = gpu_allocate_host(bytes);
    size_t at = 0;
    gpu_read(read_back, memory, bytes, stream);
    while (at < bytes && read_back[at] == byte) {
        at++;
    }
    free(read_back);
    return at;
}

enum {
    WORDS = 32
};

/* Captures a call and reads the first words of its kernel's parameter, where the workspace must be one. */
static void captured_words(const gpu_work *work, void *outputs, void *stream, void *workspace, void *words[WORDS]) {
    gpu_call made;
    gpu_kernel_node launch = {0};
    void *node = NULL;
    size_t count = 1;
    gpu_call_make(work, outputs, stream, &made);
    made.call.workspace = workspace;
    made.call.workspace_size = workspace ? ONEPASS_WORKSPACE_SIZE : 0;
    gpu_capture_begin(stream, GPU_CAPTURE_RELAXED);
    CHECK_OK(onepass_run(&made.call), "a captured call, to look at its workspace");
    gpu_graph graph = gpu_capture_end(stream);
    memset(words, 0, WORDS * sizeof *words);
    if (CHECK(graph.nodes == 1, "expected a graph of one launch, got %zu nodes", graph.nodes)) {
        GPU(cuGraphGetNodes(graph.graph, &node, &count));
        GPU(cuGraphKernelNodeGetParams_v2(node, &launch));
        if (CHECK(launch.parameters != NULL, "expected that the driver shows a launch's parameter")) {
            memcpy(words, launch.parameters[0], WORDS * sizeof *words);
        }
    }
    gpu_graph_end(&graph);
}

/* In a graph one can see which workspace a launch has: the caller's, or one that no other launch has. */
static void look_at_workspaces(const gpu_work *work, void *outputs, void *stream, void *workspace) {
    void *given[WORDS];
    void *first[WORDS];
    void *second[WORDS];
    int at = 0;
    captured_words(work, outputs, stream, workspace, given);
    captured_words(work, outputs, stream, NULL, first);
    captured_words(work, outputs, stream, NULL, second);
    while (at < WORDS && given[at] != workspace) {
        at++;
    }
    if (CHECK(at < WORDS, "expected that the caller's workspace %p is used, got another", workspace)) {
        CHECK(first[at] && second[at] && first[at] != second[at] && first[at] != workspace,
              "expected that each captured call has a workspace of its own, got %p and %p", first[at], second[at]);
    }
}

/* Calls of all sizes with a workspace of the caller's, which is left ready for the next by each: its counter is 0. */
int test_cuda_workspace(bool reduced) {
    const int most = reduced ? 16 : 25;
    const int64_t room = INT64_C(1) << most;
    gpu_numbers p = gpu_numbers_make(ONEPASS_F32, room, GPU_PERIOD_P, 45);
    gpu_numbers t = gpu_numbers_make(ONEPASS_F32, room, GPU_PERIOD_T, 46);
    void *stream = gpu_stream_begin();
    unsigned char *memory = gpu_allocate(ONEPASS_WORKSPACE_SIZE + 512);
    unsigned char *workspace = memory + 256;
    unsigned char *outputs = gpu_allocate(GPU_OUTPUT_HEAD + GPU_OUTPUT_TAIL);
    unsigned char read_back[GPU_OUTPUT_HEAD + GPU_OUTPUT_TAIL];
    gpu_work work = {0};
    gpu_fill(memory, GPU_POISON, ONEPASS_WORKSPACE_SIZE + 512, stream);
    gpu_fill(workspace, 0, ONEPASS_WORKSPACE_SIZE, stream);
    for (int power = 0; power <= most; power++) {
        char what[256];
        gpu_call made;
        gpu_work_free(&work);
        work = gpu_work_make("mse", ONEPASS_MEAN, WANT_VALUE, &p, &t, 0, (INT64_C(1) << power) - power % 2);
        gpu_work_describe(&work, what, sizeof what);
        gpu_doing("the caller's own workspace: %s", what);
        for (int time = 0; time < 3; time++) {
            gpu_fill(outputs, GPU_POISON, sizeof read_back, stream);
            gpu_call_make(&work, outputs, stream, &made);
            made.call.workspace = workspace;
            made.call.workspace_size = ONEPASS_WORKSPACE_SIZE;
            CHECK_OK(onepass_run(&made.call), what);
        }
        gpu_read(read_back, outputs, sizeof read_back, stream);
        CHECK(gpu_work_equal(&work, read_back, what, sizeof what), "the caller's own workspace: %s", what);
        const size_t other = first_other(workspace, 0, CUDA_WORKSPACE_HEAD, stream);
        CHECK(other == CUDA_WORKSPACE_HEAD,
              "%s: expected that the head of the caller's workspace is left zeroed, got another byte %zu", what, other);
    }
    CHECK(first_other(memory, GPU_POISON, 256, stream) == 256 &&
              first_other(workspace + ONEPASS_WORKSPACE_SIZE, GPU_POISON, 256, stream) == 256,
          "expected that nothing around the caller's workspace is written");

    look_at_workspaces(&work, outputs, stream, workspace);
    gpu_work_free(&work);
    gpu_free(memory);
    gpu_free(outputs);
    gpu_stream_end(stream);
    gpu_numbers_free(&p);
    gpu_numbers_free(&t);
    return section_finish();
}

/* -------------------------------------------------------------- refusals -- */

/* A call that must be refused: the status, words of the sentence, and nothing written. */
static void expect_refusal(const scenery *scenery, const onepass_call *call, onepass_status expected, const char *word,
                           const char *what) {
    const size_t bytes = gpu_work_bytes(&scenery->work);
    gpu_doing("%s", what);
    gpu_fill(scenery->outputs, GPU_POISON, bytes, call->stream);
    const onepass_status status = onepass_run(call);
    const char *message = onepass_message();
    CHECK(status == expected, "%s: expected %s, got %s: \"%s\"", what, onepass_status_name(expected),
          onepass_status_name(status), message);
    CHECK(strstr(message, word) != NULL, "%s: expected a message with \"%s\", got \"%s\"", what, word, message);
    const size_t other = first_other(scenery->outputs, GPU_POISON, bytes, call->stream);
    CHECK(other == bytes, "%s: expected that nothing is written, got another byte %zu", what, other);
}

/* Each tensor of the call in turn in memory that the GPU must not be sent to. */
static void refuse_memory(const scenery *scenery, void *stream, void *memory, const char *kind) {
    static const char *const names[] = {"prediction", "target", "upstream", "value", "gradient[0]", "workspace"};
    for (int which = 0; which < 6; which++) {
        char what[96];
        gpu_call made;
        gpu_call_make(&scenery->work, scenery->outputs, stream, &made);
        onepass_tensor upstream = {memory, ONEPASS_F32, 0, NULL, NULL};
        onepass_tensor *const tensors[] = {&made.p, &made.t, &upstream, &made.value, &made.gradient};
        if (which < 5) {
            tensors[which]->data = memory;
        }
        made.call.upstream = which == 2 ? &upstream : NULL;
        made.call.workspace = which == 5 ? memory : NULL;
        made.call.workspace_size = which == 5 ? ONEPASS_WORKSPACE_SIZE : 0;
        snprintf(what, sizeof what, "%s in %s", names[which], kind);
        expect_refusal(scenery, &made.call, ONEPASS_INVALID_MEMORY, names[which], what);
    }
}

static void refuse_numbers(const scenery *scenery, void *stream) {
    gpu_call made;
    int count = 0;
    GPU(cuDeviceGetCount(&count));
    gpu_call_make(&scenery->work, scenery->outputs, stream, &made);
    made.call.device_index = count;
    expect_refusal(scenery, &made.call, ONEPASS_NO_DEVICE, "device_index", "one GPU too many");
    made.call.device_index = 1000000;
    expect_refusal(scenery, &made.call, ONEPASS_NO_DEVICE, "device_index", "far too many GPUs");
    made.call.device_index = -1;
    expect_refusal(scenery, &made.call, ONEPASS_INVALID_ARGUMENT, "device_index", "a negative GPU");
    made.call.device_index = 0;
    made.call.device = 2;
    expect_refusal(scenery, &made.call, ONEPASS_INVALID_ARGUMENT, "device", "a device that there is not");
    made.call.device = ONEPASS_CUDA;
    unsigned char *small = gpu_allocate(ONEPASS_WORKSPACE_SIZE);
    gpu_fill(small, 0, ONEPASS_WORKSPACE_SIZE, stream);
    made.call.workspace = small;
    made.call.workspace_size = 8;
    expect_refusal(scenery, &made.call, ONEPASS_INVALID_ARGUMENT, "workspace_size", "a workspace that is too small");
    gpu_free(small);
}

/* Managed memory is memory of the GPU too, for every tensor. */
static void accept_managed(const scenery *scenery, void *stream) {
    const unsigned attach_global = 1;
    const size_t operand = (size_t)scenery->work.count * sizeof(float);
    uint64_t address = 0;
    char text[256];
    gpu_work managed = scenery->work;
    GPU(cuMemAllocManaged(&address, 2 * operand + gpu_work_bytes(&managed), attach_global));
    unsigned char *memory = (unsigned char *)(uintptr_t)address;
    unsigned char *outputs = memory + 2 * operand;
    managed.device_p = memory;
    managed.device_t = memory + operand;
    memcpy(memory, managed.host_p, operand);
    memcpy(memory + operand, managed.host_t, operand);
    memset(outputs, GPU_POISON, gpu_work_bytes(&managed));
    gpu_doing("managed memory");
    if (CHECK_OK(gpu_work_call(&managed, outputs, stream), "managed memory")) {
        gpu_wait(stream);
        const int equal = gpu_work_equal(&managed, outputs, text, sizeof text);
        CHECK(equal, "managed memory: %s", text);
    }
    gpu_wait(stream);
    gpu_free(memory);
}

int test_cuda_refusals(bool reduced) {
    (void)reduced;
    /* 16 byte alignment of both operands, so that what is read as one piece is so in managed memory too. */
    scenery scenery = scenery_begin(300032, WANT_VALUE | WANT_PREDICTION);
    void *stream = gpu_stream_begin();
    const size_t operand = (size_t)scenery.work.count * sizeof(float);
    void *on_the_host = gpu_allocate_host(operand);
    void *pinned = gpu_allocate_pinned(operand);
    memset(on_the_host, 0, operand);
    memset(pinned, 0, operand);
    refuse_memory(&scenery, stream, on_the_host, "host memory");
    refuse_memory(&scenery, stream, pinned, "pinned host memory");
    refuse_numbers(&scenery, stream);
    accept_managed(&scenery, stream);
    /* And after all that a good call, on the same stream. */
    run_and_compare(&scenery, stream, "a good call after many that were refused");
    free(on_the_host);
    gpu_free_pinned(pinned);
    gpu_stream_end(stream);
    scenery_end(&scenery);
    return section_finish();
}
