/*
 * Losses over rows on a real GPU: cases drawn from seeds, captured calls, threads that share a stream, and more than
 * 2^31 elements. The CPU engine's bits are what is expected.
 */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include "cuda/plan.h"
#include "gpu.h"
#include "row_cases.h"
#include "test_cuda.h"

#include <pthread.h>

/* ------------------------------------------------------------ a case there -- */

/* A case whose block is on the GPU as well. */
typedef struct row_work {
    row_case c;
    prepared_row_case *expected; /* what the CPU makes of it */
    prepared_row_case *there;    /* points into the GPU's memory; its block is what the GPU begins with */
    unsigned char *memory;
    char text[600];
    bool good; /* the library takes it */
} row_work;

static row_work work_begin(const row_case *c) {
    row_work work = {.c = *c, .expected = row_prepare(c), .there = row_prepare(c)};
    row_describe(c, work.text, sizeof work.text);
    work.good = onepass_run(&work.expected->call) == ONEPASS_OK;
    work.memory = gpu_allocate(work.there->size);
    row_place(work.there, work.memory);
    work.there->call.device = ONEPASS_CUDA;
    return work;
}

static void work_end(row_work *work) {
    gpu_free(work->memory);
    row_free(work->expected);
    row_free(work->there);
}

static void work_send(const row_work *work, void *stream) {
    gpu_write(work->memory, work->there->block, work->there->size, stream);
}

static onepass_status work_call(row_work *work, void *stream) {
    work->there->call.stream = stream;
    return onepass_run(&work->there->call);
}

static void work_compare(const row_work *work, void *stream, const char *how) {
    char difference[200];
    unsigned char *got = gpu_allocate_host(work->there->size);
    gpu_read(got, work->memory, work->there->size, stream);
    const bool equal = row_equal(work->expected, got, difference, sizeof difference);
    CHECK(equal, "%s; %s: %s", how, work->text, difference);
    free(got);
}

static void run_work(row_work *work, void *stream, const char *how) {
    gpu_doing("%s: %s", how, work->text);
    work_send(work, stream);
    if (CHECK_OK(work_call(work, stream), work->text))
        work_compare(work, stream, how);
}

int test_cuda_rows(bool reduced) {
    const uint64_t cases = reduced ? 60 : 1500;
    void *stream = gpu_stream_begin();
    long run = 0;
    for (uint64_t i = 0; i < cases; i++) {
        const row_case c = row_draw(i + 100000, i % 4 == 3);
        row_work work = work_begin(&c);
        if (work.good) {
            run++;
            run_work(&work, stream, "drawn");
            const cuda_shape general = {.kernels = CUDA_GENERAL_KERNELS};
            const cuda_shape other = {.warps = 1 + (int32_t)(i % 8), .tiles_per_block = 1 + (int32_t)(i % 5)};
            onepass_cuda_shape = i % 2 ? general : other;
            if (i % 3 == 0)
                run_work(&work, stream, "in another shape");
            onepass_cuda_shape = (cuda_shape){0};
        }
        work_end(&work);
    }
    for (int i = 0; i < row_long_cases() && (!reduced || i < 6); i++) {
        const row_case c = row_long_case(i);
        row_work work = work_begin(&c);
        if (CHECK(work.good, "%s: expected that it is not refused", work.text))
            run_work(&work, stream, "long");
        work_end(&work);
    }
    printf("%ld cases that were drawn\n", run);
    gpu_stream_end(stream);
    return section_finish();
}

int test_cuda_rows_clusters(bool reduced) {
    void *stream = gpu_stream_begin();
    for (int i = 0; i < row_cluster_cases(reduced); i++) {
        const row_case c = row_cluster_case(i);
        row_work work = work_begin(&c);
        if (CHECK(work.good, "%s: expected that it is not refused", work.text))
            for (int again = 0; again < (reduced ? 1 : 5); again++)
                run_work(&work, stream, "by a cluster");
        work_end(&work);
    }
    gpu_stream_end(stream);
    return section_finish();
}

/* ------------------------------------------------------------------ graphs -- */

int test_cuda_rows_graphs(bool reduced) {
    const uint64_t cases = reduced ? 6 : 60;
    void *stream = gpu_stream_begin(), *other = gpu_stream_begin();
    for (uint64_t i = 0; i < cases; i++) {
        row_case c = row_draw(i + 200000, false);
        c.layout = ROW_DENSE;
        row_work work = work_begin(&c);
        if (work.good) {
            gpu_doing("captured: %s", work.text);
            gpu_capture_begin(stream, (int)(i % GPU_CAPTURE_MODES));
            CHECK_OK(work_call(&work, stream), work.text);
            gpu_graph graph = gpu_capture_end(stream);
            for (int replay = 0; replay < 3; replay++) {
                void *on = replay % 2 ? other : stream;
                work_send(&work, on);
                gpu_replay(&graph, on);
                work_compare(&work, on, "replayed");
            }
            gpu_graph_end(&graph);
        }
        work_end(&work);
    }
    gpu_stream_end(stream);
    gpu_stream_end(other);
    return section_finish();
}

/* ----------------------------------------------------------------- threads -- */

enum {
    ROW_THREADS = 4,
    ROW_WORKS = 12
};

typedef struct row_thread {
    row_work work[ROW_WORKS];
    void *stream;
    int rounds;
    onepass_status status;
} row_thread;

/* Calls one after the other, with those of other threads in between on the same stream. */
static void *call_in_turn(void *argument) {
    row_thread *thread = argument;
    gpu_enter();
    for (int round = 0; round < thread->rounds; round++)
        for (int i = 0; i < ROW_WORKS; i++)
            if (thread->work[i].good) {
                const onepass_status status = work_call(&thread->work[i], thread->stream);
                thread->status = status != ONEPASS_OK ? status : thread->status;
            }
    return NULL;
}

int test_cuda_rows_threads(bool reduced) {
    void *stream = gpu_stream_begin();
    row_thread *threads = calloc(ROW_THREADS, sizeof *threads);
    pthread_t handle[ROW_THREADS];
    for (int t = 0; t < ROW_THREADS; t++) {
        threads[t].stream = stream;
        threads[t].rounds = reduced ? 1 : 10;
        for (int i = 0; i < ROW_WORKS; i++) {
            row_case c = row_draw((uint64_t)(300000 + t * ROW_WORKS + i), false);
            c.reduction = ONEPASS_MEAN;
            c.layout = c.layout == ROW_IN_PLACE ? ROW_DENSE : c.layout; /* so that a call can be made again */
            threads[t].work[i] = work_begin(&c);
            work_send(&threads[t].work[i], stream);
        }
    }
    for (int t = 0; t < ROW_THREADS; t++)
        pthread_create(&handle[t], NULL, call_in_turn, &threads[t]);
    for (int t = 0; t < ROW_THREADS; t++)
        pthread_join(handle[t], NULL);
    for (int t = 0; t < ROW_THREADS; t++) {
        CHECK(threads[t].status == ONEPASS_OK, "thread %d: got %s", t, onepass_status_name(threads[t].status));
        for (int i = 0; i < ROW_WORKS; i++) {
            if (threads[t].work[i].good)
                work_compare(&threads[t].work[i], stream, "threads on one stream");
            work_end(&threads[t].work[i]);
        }
    }
    free(threads);
    gpu_stream_end(stream);
    return section_finish();
}

/* ------------------------------------------------------ beyond 2^31 elements -- */

/* Rows do not depend on each other: those around where an index of 32 bits would wrap, and the last, are computed on
 * the CPU by themselves. */
static void compare_rows(const uint16_t *logits, const int64_t *labels, int64_t first, int64_t rows, int64_t classes,
                         const unsigned char *there_value, const unsigned char *there_gradient) {
    float value[4], got_value[4];
    uint16_t *gradient = malloc((size_t)(rows * classes) * 2), *got = malloc((size_t)(rows * classes) * 2);
    const int64_t shape[] = {rows, classes};
    const onepass_tensor z = {(void *)(uintptr_t)logits, ONEPASS_BF16, 2, shape, NULL};
    const onepass_tensor y = {(void *)(uintptr_t)labels, ONEPASS_I64, 1, shape, NULL};
    const onepass_tensor v = {value, ONEPASS_F32, 1, shape, NULL}, g = {gradient, ONEPASS_BF16, 2, shape, NULL};
    const onepass_call call = {.size = sizeof call,
                               .loss = "cross_entropy",
                               .reduction = ONEPASS_NONE,
                               .operand = {&z, &y},
                               .value = &v,
                               .gradient = {&g}};
    CHECK_OK(onepass_run(&call), "rows of a large tensor");
    gpu_read(got_value, there_value + (size_t)first * 4, (size_t)rows * 4, NULL);
    gpu_read(got, there_gradient + (size_t)(first * classes) * 2, (size_t)(rows * classes) * 2, NULL);
    CHECK(memcmp(value, got_value, (size_t)rows * 4) == 0, "rows from %lld on: other values", (long long)first);
    CHECK(memcmp(gradient, got, (size_t)(rows * classes) * 2) == 0, "rows from %lld on: other gradients",
          (long long)first);
    free(gradient);
    free(got);
}

static void run_beyond(int64_t rows, int64_t classes) {
    const int64_t period = 3; /* rows that are different */
    const size_t bytes = (size_t)(rows * classes) * 2;
    unsigned char *z = gpu_try_allocate(bytes), *g = z ? gpu_try_allocate(bytes) : NULL;
    if (!g) {
        printf("left out: no room for twice %zu bytes\n", bytes);
        gpu_free(z);
        return;
    }
    uint16_t *logits = malloc((size_t)(period * classes) * 2);
    int64_t *labels = malloc((size_t)rows * 8);
    unsigned char *y = gpu_allocate((size_t)rows * 8), *v = gpu_allocate((size_t)rows * 4);
    uint64_t state = 5;
    for (int64_t i = 0; i < period * classes; i++)
        oracle_store(ONEPASS_BF16, logits + i, 12 * row_uniform(&state) - 6);
    for (int64_t row = 0; row < rows; row++)
        labels[row] = row * 7919 % classes;
    gpu_write(y, labels, (size_t)rows * 8, NULL);
    gpu_write(z, logits, (size_t)(period * classes) * 2, NULL);
    for (int64_t have = period; have < rows;) { /* doubled until all are there */
        const int64_t more = have < rows - have ? have : rows - have;
        gpu_copy(z + (size_t)(have * classes) * 2, z, (size_t)(more * classes) * 2, NULL);
        have += more;
    }
    const int64_t shape[] = {rows, classes};
    const onepass_tensor tz = {z, ONEPASS_BF16, 2, shape, NULL}, ty = {y, ONEPASS_I64, 1, shape, NULL};
    const onepass_tensor tv = {v, ONEPASS_F32, 1, shape, NULL}, tg = {g, ONEPASS_BF16, 2, shape, NULL};
    const onepass_call call = {.size = sizeof call,
                               .loss = "cross_entropy",
                               .reduction = ONEPASS_NONE,
                               .operand = {&tz, &ty},
                               .value = &tv,
                               .gradient = {&tg},
                               .device = ONEPASS_CUDA};
    gpu_doing("%lld x %lld", (long long)rows, (long long)classes);
    if (CHECK_OK(onepass_run(&call), "beyond 2^31 elements")) {
        const int64_t wrap = (INT64_C(1) << 31) / classes;
        const int64_t places[] = {0, wrap - 1, wrap, rows - 2};
        for (int i = 0; i < 4; i++) {
            const int64_t first = places[i] / period * period; /* where the pattern begins */
            const int64_t count = rows - first < period ? rows - first : period;
            compare_rows(logits, labels + first, first, count, classes, v, g);
        }
    }
    gpu_free(z);
    gpu_free(g);
    gpu_free(y);
    gpu_free(v);
    free(logits);
    free(labels);
}

int test_cuda_rows_beyond(bool reduced) {
    if (reduced)
        return section_finish();
    run_beyond(70001, 32768);
    run_beyond(530001, 4096);
    run_beyond(220000001, 10);
    run_beyond(2200001, 1001); /* not aligned */
    return section_finish();
}
