/*
 * Calls that are captured into graphs: in every mode of capture, replayed with other
 * numbers in the same memory, on other streams, beside each other and beside direct
 * calls. A captured call must have a workspace that nothing else ever uses; two
 * launches that share one give wrong sums, or none at all.
 */
#include "cases.h"
#include "check.h"
#include "gpu.h"
#include "oracle.h"
#include "test_cuda.h"

/* Reads a work's outputs back and compares. */
static void compare_outputs(const gpu_work *work, const void *outputs, void *stream, const char *what) {
    char text[256];
    const size_t bytes = gpu_work_bytes(work);
    unsigned char *got = gpu_allocate_host(bytes);
    gpu_read(got, outputs, bytes, stream);
    const int equal = gpu_work_equal(work, got, text, sizeof text);
    CHECK(equal, "%s: %s", what, text);
    free(got);
}

/* Captures one call. */
static gpu_graph capture(const gpu_work *work, void *outputs, void *stream, int mode) {
    char what[256];
    gpu_work_describe(work, what, sizeof what);
    gpu_doing("captured, %s: %s", gpu_capture_name[mode], what);
    gpu_capture_begin(stream, mode);
    CHECK_OK(gpu_work_call(work, outputs, stream), what); /* if this fails, so will what follows */
    gpu_graph graph = gpu_capture_end(stream);
    CHECK(graph.nodes == 1, "%s: expected that the call is one launch, got a graph of %zu nodes", what, graph.nodes);
    return graph;
}

/* --------------------------------------------------------- other numbers -- */

enum {
    VARIANTS = 4,
    REPLAYS = 20
};

/* A call captured once and replayed while its operands change. */
static void replay_with_changes(const char *loss, int32_t wanted, const gpu_numbers *p, const gpu_numbers *t,
                                int64_t count, int mode, int replays) {
    const size_t bytes = (size_t)count * oracle_size(p->dtype);
    void *stream = gpu_stream_begin();
    gpu_work works[VARIANTS];
    for (int variant = 0; variant < VARIANTS; variant++) {
        works[variant] =
            gpu_work_make(loss, ONEPASS_MEAN, wanted, p, t, variant * (p->count - count) / VARIANTS, count);
    }
    /* What is captured reads from here. */
    gpu_work captured = works[0];
    captured.device_p = gpu_allocate(bytes);
    captured.device_t = gpu_allocate(bytes);
    unsigned char *outputs = gpu_allocate(gpu_work_bytes(&captured));
    gpu_fill(captured.device_p, 0, bytes, stream);
    gpu_fill(captured.device_t, 0, bytes, stream);
    gpu_fill(outputs, GPU_POISON, gpu_work_bytes(&captured), stream);
    gpu_graph graph = capture(&captured, outputs, stream, mode);

    unsigned char first = 0;
    gpu_read(&first, outputs, 1, stream);
    CHECK(first == GPU_POISON, "%s: expected that a captured call does nothing yet", loss);
    for (int replay = 0; replay < replays; replay++) {
        const gpu_work *work = &works[replay % VARIANTS];
        char what[96];
        snprintf(what, sizeof what, "captured, %s, replay %d", gpu_capture_name[mode], replay);
        gpu_doing("%s, %s of %lld elements", what, loss, (long long)count);
        gpu_copy(captured.device_p, work->device_p, bytes, stream);
        gpu_copy(captured.device_t, work->device_t, bytes, stream);
        gpu_fill(outputs, GPU_POISON, gpu_work_bytes(work), stream);
        gpu_replay(&graph, stream);
        compare_outputs(work, outputs, stream, what);
    }
    gpu_graph_end(&graph);
    gpu_free(captured.device_p);
    gpu_free(captured.device_t);
    gpu_free(outputs);
    gpu_stream_end(stream);
    for (int variant = 0; variant < VARIANTS; variant++) {
        gpu_work_free(&works[variant]);
    }
}

static void test_changes(bool reduced) {
    static const int32_t wanted[] = {WANT_VALUE, WANT_VALUE | WANT_PREDICTION, WANT_PREDICTION};
    /* One tile, which one warp does; a few blocks; and blocks enough that some wait for others to end. */
    static const int64_t counts[] = {1000, 20011, 3000017};
    const int sizes = reduced ? 2 : 3;
    gpu_numbers p = gpu_numbers_make(ONEPASS_F32, 2 * counts[sizes - 1], GPU_PERIOD_P, 21);
    gpu_numbers t = gpu_numbers_make(ONEPASS_F32, 2 * counts[sizes - 1], GPU_PERIOD_T, 22);
    for (int i = 0; oracle_loss_at(i); i++) {
        if (!case_loss_is_swept(oracle_loss_at(i)->name)) {
            continue;
        }
        for (int j = 0; j < 3; j++) {
            for (int size = 0; size < sizes; size++) {
                for (int mode = 0; mode < GPU_CAPTURE_MODES; mode++) {
                    if (!reduced || (i + j + size) % 3 == mode) {
                        replay_with_changes(oracle_loss_at(i)->name, wanted[j], &p, &t, counts[size], mode,
                                            reduced ? 2 : REPLAYS);
                    }
                }
            }
        }
    }
    gpu_numbers_free(&p);
    gpu_numbers_free(&t);
}

/* ---------------------------------------------------------- side by side -- */

enum {
    CHAIN = 10 /* calls in a graph, each with outputs of its own */
};

/* A graph of several calls on the same operands, and its outputs. */
typedef struct chain {
    gpu_work work;
    gpu_graph graph;
    unsigned char *outputs;
} chain;

static chain chain_capture(const gpu_work *work, void *stream) {
    chain chain = {.work = *work};
    const size_t bytes = gpu_work_bytes(work);
    chain.outputs = gpu_allocate(CHAIN * bytes);
    gpu_capture_begin(stream, GPU_CAPTURE_GLOBAL);
    for (int i = 0; i < CHAIN; i++) {
        CHECK_OK(gpu_work_call(work, chain.outputs + (size_t)i * bytes, stream), "a chain of calls, captured");
    }
    chain.graph = gpu_capture_end(stream);
    return chain;
}

static void chain_launch(const chain *chain, void *stream) {
    gpu_fill(chain->outputs, GPU_POISON, CHAIN * gpu_work_bytes(&chain->work), stream);
    gpu_replay(&chain->graph, stream);
}

static void chain_compare(const chain *chain, unsigned char *read_back, void *stream, const char *what) {
    const size_t bytes = gpu_work_bytes(&chain->work);
    gpu_read(read_back, chain->outputs, CHAIN * bytes, stream);
    for (int i = 0; i < CHAIN; i++) {
        char text[256];
        const int equal = gpu_work_equal(&chain->work, read_back + (size_t)i * bytes, text, sizeof text);
        CHECK(equal, "%s: call %d of the graph: %s", what, i, text);
    }
}

static void chain_end(chain *chain) {
    gpu_graph_end(&chain->graph);
    gpu_free(chain->outputs);
}

/* Two graphs captured from one stream, replayed on two others, with direct calls on the first. */
static void run_side_by_side(const gpu_work *first, const gpu_work *second, int rounds) {
    void *stream[3] = {gpu_stream_begin(), gpu_stream_begin(), gpu_stream_begin()};
    chain one = chain_capture(first, stream[0]);
    chain other = chain_capture(second, stream[0]);
    unsigned char *direct = gpu_allocate(gpu_work_bytes(first));
    unsigned char *read_back = gpu_allocate_pinned(CHAIN * gpu_work_bytes(second));
    for (int round = 0; round < rounds; round++) {
        char what[96];
        snprintf(what, sizeof what, "side by side, round %d", round);
        gpu_doing("%s, %s of %lld elements", what, first->loss, (long long)first->count);
        chain_launch(&one, stream[1]);
        chain_launch(&other, stream[2]);
        /* The stream that both were captured from goes on with direct calls in half of the rounds. */
        for (int call = 0; call < CHAIN && round % 2; call++) {
            CHECK_OK(gpu_work_run(first, direct, stream[0]), what);
        }
        chain_compare(&one, read_back, stream[1], what);
        chain_compare(&other, read_back, stream[2], what);
        if (round % 2) {
            compare_outputs(first, direct, stream[0], "direct calls beside graphs");
        }
    }
    chain_end(&one);
    chain_end(&other);
    gpu_free(direct);
    gpu_free_pinned(read_back);
    for (int i = 0; i < 3; i++) {
        gpu_stream_end(stream[i]);
    }
}

static void test_side_by_side(bool reduced) {
    /* Small ones overlap as a whole, large ones where one ends and the other begins. */
    static const int64_t counts[] = {20000, 150000, 1 << 20, 1 << 22};
    const int64_t most = reduced ? counts[0] : counts[3];
    gpu_numbers p = gpu_numbers_make(ONEPASS_F32, 2 * most, GPU_PERIOD_P, 23);
    gpu_numbers t = gpu_numbers_make(ONEPASS_F32, 2 * most, GPU_PERIOD_T, 24);
    for (int i = 0; i < 4 && counts[i] <= most; i++) {
        /* Values alone, then with gradients, which are large to read back and so come with fewer rounds. */
        gpu_work first = gpu_work_make("mse", ONEPASS_MEAN, WANT_VALUE, &p, &t, 0, counts[i]);
        gpu_work second = gpu_work_make("smooth_l1", ONEPASS_SUM, WANT_VALUE, &p, &t, counts[i], counts[i]);
        run_side_by_side(&first, &second, reduced ? 2 : 240);
        gpu_work_free(&first);
        gpu_work_free(&second);
        first = gpu_work_make("hinge", ONEPASS_MEAN, WANT_VALUE | WANT_PREDICTION, &p, &t, 0, counts[i]);
        second = gpu_work_make("hinge", ONEPASS_MEAN, WANT_VALUE | WANT_PREDICTION, &p, &t, counts[i], counts[i]);
        run_side_by_side(&first, &second, reduced ? 2 : i < 2 ? 60 : 12);
        gpu_work_free(&first);
        gpu_work_free(&second);
    }
    gpu_numbers_free(&p);
    gpu_numbers_free(&t);
}

/* ------------------------------------------------------------ many slots -- */

/* Thousands of captured calls, all alive at once: more than one piece of memory holds the workspaces of. */
static void test_many_captures(bool reduced) {
    enum {
        GRAPHS = 300,
        STREAMS = 8
    };
    static chain chains[GRAPHS];
    const int graphs = reduced ? 4 : GRAPHS;
    const int64_t count = reduced ? 20000 : 150000;
    gpu_numbers p = gpu_numbers_make(ONEPASS_F32, count + GRAPHS, GPU_PERIOD_P, 25);
    gpu_numbers t = gpu_numbers_make(ONEPASS_F32, count + GRAPHS, GPU_PERIOD_T, 26);
    void *streams[STREAMS];
    unsigned char *read_back = gpu_allocate_pinned(CHAIN * (GPU_OUTPUT_HEAD + GPU_OUTPUT_TAIL));
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = gpu_stream_begin();
    }
    for (int i = 0; i < graphs; i++) {
        gpu_doing("capturing graph %d of %d", i, graphs);
        const gpu_work work = gpu_work_make("mse", ONEPASS_SUM, WANT_VALUE, &p, &t, i, count);
        chains[i] = chain_capture(&work, streams[0]);
    }
    for (int round = 0; round < 3; round++) {
        gpu_doing("%d graphs on %d streams, round %d", graphs, STREAMS, round);
        for (int i = 0; i < graphs; i++) {
            chain_launch(&chains[i], streams[i % STREAMS]);
        }
        for (int i = 0; i < graphs; i++) {
            chain_compare(&chains[i], read_back, streams[i % STREAMS], "many graphs at once");
        }
    }
    for (int i = 0; i < graphs; i++) {
        chain_end(&chains[i]);
        gpu_work_free(&chains[i].work);
    }
    for (int i = 0; i < STREAMS; i++) {
        gpu_stream_end(streams[i]);
    }
    gpu_free_pinned(read_back);
    gpu_numbers_free(&p);
    gpu_numbers_free(&t);
}

/* ------------------------------------------------------ around a capture -- */

/* While one stream is captured, a stream that never had a call gets one, which needs memory; and the
 * capture spreads by an event to another stream, which nobody told the library about. */
static void test_around_a_capture(int mode, int replays) {
    const int64_t count = 150000;
    gpu_numbers p = gpu_numbers_make(ONEPASS_F32, 2 * count, GPU_PERIOD_P, 27);
    gpu_numbers t = gpu_numbers_make(ONEPASS_F32, 2 * count, GPU_PERIOD_T, 28);
    gpu_work direct_work = gpu_work_make("mse", ONEPASS_MEAN, WANT_VALUE | WANT_PREDICTION, &p, &t, 0, count);
    gpu_work work = gpu_work_make("mse", ONEPASS_MEAN, WANT_VALUE | WANT_PREDICTION, &p, &t, count, count);
    const size_t bytes = gpu_work_bytes(&work);
    unsigned char *outputs = gpu_allocate(3 * bytes);
    void *stream[3] = {gpu_stream_begin(), gpu_stream_begin(), gpu_stream_begin()};
    void *events[2];
    for (int i = 0; i < 2; i++) {
        GPU(cuEventCreate(&events[i], 0));
    }
    gpu_doing("a capture, %s, that spreads to another stream, beside a direct call", gpu_capture_name[mode]);
    gpu_fill(outputs, GPU_POISON, 3 * bytes, stream[2]);
    gpu_wait(stream[2]);
    gpu_capture_begin(stream[0], mode);
    CHECK_OK(gpu_work_call(&direct_work, outputs, stream[2]), "a direct call beside a capture");
    GPU(cuEventRecord(events[0], stream[0]));
    GPU(cuStreamWaitEvent(stream[1], events[0], 0));
    CHECK_OK(gpu_work_call(&work, outputs + bytes, stream[0]), "a captured call beside another");
    CHECK_OK(gpu_work_call(&work, outputs + 2 * bytes, stream[1]), "a call that an event brought into a capture");
    GPU(cuEventRecord(events[1], stream[1]));
    GPU(cuStreamWaitEvent(stream[0], events[1], 0));
    gpu_graph graph = gpu_capture_end(stream[0]);
    CHECK(graph.nodes == 2, "expected a graph of two launches, got %zu nodes", graph.nodes);
    compare_outputs(&direct_work, outputs, stream[2], "a direct call beside a capture");
    for (int replay = 0; replay < replays; replay++) {
        gpu_fill(outputs, GPU_POISON, 3 * bytes, stream[2]);
        gpu_replay(&graph, stream[2]);
        compare_outputs(&work, outputs + bytes, stream[2], "the first of two branches of a graph");
        compare_outputs(&work, outputs + 2 * bytes, stream[2], "the second of two branches of a graph");
    }
    gpu_graph_end(&graph);
    for (int i = 0; i < 2; i++) {
        GPU(cuEventDestroy_v2(events[i]));
    }
    for (int i = 0; i < 3; i++) {
        gpu_stream_end(stream[i]);
    }
    gpu_free(outputs);
    gpu_work_free(&work);
    gpu_work_free(&direct_work);
    gpu_numbers_free(&p);
    gpu_numbers_free(&t);
}

/* -------------------------------------------------------- weighted means -- */

/* Fills the memory that a graph was captured with anew; `expected` then has what the CPU makes of it. */
static void send_case(const prepared_case *expected, void *block, void *stream) {
    gpu_write(block, expected->block, expected->block_size, stream);
    CHECK_OK(onepass_run(&expected->call), "a weighted mean on the CPU");
}

static void receive_case(const prepared_case *expected, const void *block, void *stream, const char *what) {
    char text[256];
    unsigned char *got = gpu_allocate_host(expected->block_size);
    gpu_read(got, block, expected->block_size, stream);
    const int equal = gpu_case_equal(expected, got, text, sizeof text);
    CHECK(equal, "%s: %s", what, text);
    free(got);
}

/* Two launches, of which the second divides by what the first has summed: captured once, replayed with other weights,
 * with direct calls in between. */
static void replay_weighted(test_case c, int mode, int replays) {
    char what[512];
    gpu_case translated;
    void *stream = gpu_stream_begin();
    prepared_case *prepared = case_prepare(&c);
    void *memory = gpu_allocate(gpu_block_bytes(prepared));
    void *block = gpu_block_in(prepared, memory);
    gpu_case_translate(prepared, block, stream, &translated);
    case_describe(&c, what, sizeof what);
    gpu_doing("captured, %s: %s", gpu_capture_name[mode], what);
    gpu_capture_begin(stream, mode);
    CHECK_OK(onepass_run(&translated.call), what);
    gpu_graph graph = gpu_capture_end(stream);
    CHECK(graph.nodes == 2, "%s: expected two launches, got a graph of %zu nodes", what, graph.nodes);
    for (int replay = 0; replay < replays; replay++) {
        c.seed++;
        prepared_case *expected = case_prepare(&c);
        send_case(expected, block, stream);
        if (replay % 3 == 2) {
            CHECK_OK(onepass_run(&translated.call), what);
        } else {
            gpu_replay(&graph, stream);
        }
        receive_case(expected, block, stream, what);
        case_free(expected);
    }
    gpu_graph_end(&graph);
    gpu_free(memory);
    case_free(prepared);
    gpu_stream_end(stream);
}

static void test_weighted(bool reduced) {
    static const int64_t counts[] = {1000, 20011, 3000017};
    for (int i = 0; oracle_loss_at(i); i++) {
        if (!case_loss_is_swept(oracle_loss_at(i)->name)) {
            continue;
        }
        for (int size = 0; size < (reduced ? 2 : 3); size++) {
            for (int mode = 0; mode < GPU_CAPTURE_MODES; mode++) {
                const test_case c = {.group = "weighted graphs",
                                     .loss = oracle_loss_at(i)->name,
                                     .prediction = ONEPASS_F32,
                                     .target = ONEPASS_F32,
                                     .gradient = ONEPASS_F32,
                                     .value = ONEPASS_F64,
                                     .upstream_dtype = ONEPASS_F32,
                                     .reduction = ONEPASS_MEAN,
                                     .wanted = mode == 2 ? WANT_PREDICTION : WANT_VALUE | WANT_PREDICTION,
                                     .layout = LAYOUT_DENSE,
                                     .rows = 1,
                                     .columns = counts[size],
                                     .data = DATA_UNIFORM,
                                     .weight = mode == 1 ? WEIGHT_STEP_TWO : WEIGHT_DENSE,
                                     .weight_dtype = i == 1 ? ONEPASS_F16 : ONEPASS_F32,
                                     .seed = (uint64_t)(100 * size)};
                if (!reduced || (i + size) % 3 == mode) {
                    replay_weighted(c, mode, reduced ? 3 : 9);
                }
            }
        }
    }
}

int test_cuda_graphs(bool reduced) {
    test_weighted(reduced);
    test_changes(reduced);
    test_side_by_side(reduced);
    test_many_captures(reduced);
    for (int mode = 0; mode < GPU_CAPTURE_MODES; mode++) {
        test_around_a_capture(mode, reduced ? 2 : REPLAYS);
    }
    return section_finish();
}

/* -------------------------------------------------------- the first call -- */

/* A capture as the first thing that the library hears of the GPU: it must load and allocate within it. */
static int first_capture(int mode) {
    const int64_t count = 150000;
    gpu_numbers p = gpu_numbers_make(ONEPASS_F32, count, GPU_PERIOD_P, 29);
    gpu_numbers t = gpu_numbers_make(ONEPASS_F32, count, GPU_PERIOD_T, 30);
    gpu_work work = gpu_work_make("mse", ONEPASS_MEAN, WANT_VALUE | WANT_PREDICTION, &p, &t, 0, count);
    unsigned char *outputs = gpu_allocate(gpu_work_bytes(&work));
    void *stream = gpu_stream_begin();
    gpu_graph graph = capture(&work, outputs, stream, mode);
    for (int replay = 0; replay < REPLAYS; replay++) {
        gpu_fill(outputs, GPU_POISON, gpu_work_bytes(&work), stream);
        gpu_replay(&graph, stream);
        compare_outputs(&work, outputs, stream, "a capture before any other call");
    }
    CHECK_OK(gpu_work_run(&work, outputs, stream), "a direct call after the first capture");
    compare_outputs(&work, outputs, stream, "a direct call after the first capture");
    gpu_graph_end(&graph);
    gpu_stream_end(stream);
    gpu_free(outputs);
    gpu_work_free(&work);
    gpu_numbers_free(&p);
    gpu_numbers_free(&t);
    return section_finish();
}

int test_cuda_first_capture_global(bool reduced) {
    (void)reduced;
    return first_capture(GPU_CAPTURE_GLOBAL);
}

int test_cuda_first_capture_thread_local(bool reduced) {
    (void)reduced;
    return first_capture(GPU_CAPTURE_THREAD_LOCAL);
}

int test_cuda_first_capture_relaxed(bool reduced) {
    (void)reduced;
    return first_capture(GPU_CAPTURE_RELAXED);
}
