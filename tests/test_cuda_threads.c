/*
 * Many host threads at once: on streams of their own, on streams in common, and on the
 * default streams. Each keeps several calls in flight and checks every result.
 */
#define _POSIX_C_SOURCE 200809L
#include "cases.h"
#include "check.h"
#include "gpu.h"
#include "oracle.h"
#include "test_cuda.h"

#include <pthread.h>

enum {
    THREADS = 8,
    IN_FLIGHT = 8, /* calls of a thread before it waits */
    CALLS = 200,   /* of a thread */
    WORKS = 72,
    MOST = 1 << 20 /* elements */
};

/* ------------------------------------------------------------- the works -- */

/* Different losses, types, outputs and sizes from 1 to 2^20, all over the same operands. Three of four have a weight, a
 * mask or both, so that most are two launches, of which the second must find what its own first one left; no two have
 * the same weights, so that another's would show in the value and in the gradient. */
typedef struct works {
    gpu_numbers p[ONEPASS_F64 + 1], t[ONEPASS_F64 + 1], weight[ONEPASS_F64 + 1], mask;
    gpu_work work[WORKS];
    size_t bytes; /* of the largest outputs */
} works;

static void works_begin(works *works, int64_t most) {
    static const int32_t wanted[] = {WANT_VALUE, WANT_VALUE | WANT_PREDICTION, WANT_PREDICTION};
    uint64_t state = 31;
    int losses = 0;
    while (oracle_loss_at(losses)) {
        losses++;
    }
    for (int32_t dtype = ONEPASS_F16; dtype <= ONEPASS_F64; dtype++) {
        works->p[dtype] = gpu_numbers_make(dtype, most, GPU_PERIOD_P, 32);
        works->t[dtype] = gpu_numbers_make(dtype, most, GPU_PERIOD_T, 33);
        works->weight[dtype] = gpu_numbers_make(dtype, most, GPU_PERIOD_P, 34);
    }
    works->mask = gpu_numbers_make(ONEPASS_BOOL, most, GPU_PERIOD_T, 35);
    works->bytes = 0;
    for (int i = 0; i < WORKS; i++) {
        const int32_t dtype = i % 2 ? ONEPASS_F32 : ONEPASS_F16 + i / 2 % 4;
        /* As many small ones as large ones; the first has one element, the last all. */
        const int64_t below = most >> random_below(&state, 18);
        const int64_t count = i == 0 ? 1 : i == WORKS - 1 ? most : below ? 1 + random_below(&state, below) : 1;
        works->work[i] =
            gpu_work_make(oracle_loss_at(i % losses)->name, i % 5 ? ONEPASS_MEAN : ONEPASS_SUM, wanted[i / losses % 3],
                          &works->p[dtype], &works->t[dtype], random_below(&state, most - count + 1), count);
        const int64_t first = random_below(&state, most - count + 1);
        if (i % 4 != 0) {
            gpu_work_weigh(&works->work[i], i % 4 != 2 ? &works->weight[dtype] : NULL, i % 4 != 1 ? &works->mask : NULL,
                           first);
        }
        if (works->bytes < gpu_work_bytes(&works->work[i])) {
            works->bytes = gpu_work_bytes(&works->work[i]);
        }
    }
    works->bytes = (works->bytes + 255) / 256 * 256;
}

static void works_end(works *works) {
    for (int i = 0; i < WORKS; i++) {
        gpu_work_free(&works->work[i]);
    }
    for (int32_t dtype = ONEPASS_F16; dtype <= ONEPASS_F64; dtype++) {
        gpu_numbers_free(&works->p[dtype]);
        gpu_numbers_free(&works->t[dtype]);
        gpu_numbers_free(&works->weight[dtype]);
    }
    gpu_numbers_free(&works->mask);
}

/* ------------------------------------------------------------ the threads -- */

/* What a thread is told and what it found. CHECK counts without a lock, so the threads keep to themselves what
 * they find, and the one that waits for them checks. */
typedef struct worker {
    const works *works;
    int index;
    int calls;
    bool no_context; /* makes its calls without a current context */
    pthread_barrier_t *start;
    void *stream[IN_FLIGHT];
    unsigned char *outputs;   /* over there, of all calls in flight */
    unsigned char *read_back; /* pinned, of one */
    long right, wrong;
    char text[512]; /* about the first that was wrong */
} worker;

static void note(worker *worker, bool is_right, const char *text) {
    worker->right += is_right;
    worker->wrong += !is_right;
    if (!is_right && worker->wrong == 1) {
        snprintf(worker->text, sizeof worker->text, "%s", text);
    }
}

static void launch(worker *worker, const gpu_work *work, int slot) {
    unsigned char *outputs = worker->outputs + (size_t)slot * worker->works->bytes;
    void *stream = worker->stream[slot];
    gpu_fill(outputs, GPU_POISON, gpu_work_bytes(work), stream);
    if (worker->no_context) {
        GPU(cuCtxSetCurrent(NULL));
    }
    if (gpu_work_call(work, outputs, stream) != ONEPASS_OK) {
        note(worker, false, onepass_message());
    }
    if (worker->no_context) {
        gpu_enter();
    }
}

static void check_slot(worker *worker, const gpu_work *work, int slot) {
    char text[256];
    gpu_read(worker->read_back, worker->outputs + (size_t)slot * worker->works->bytes, gpu_work_bytes(work),
             worker->stream[slot]);
    note(worker, gpu_work_equal(work, worker->read_back, text, sizeof text), text);
}

static void *work_hard(void *argument) {
    worker *worker = argument;
    uint64_t state = 1000 + (uint64_t)worker->index;
    gpu_enter();
    gpu_doing("the calls of thread %d", worker->index);
    pthread_barrier_wait(worker->start);
    for (int call = 0; call < worker->calls; call += IN_FLIGHT) {
        const gpu_work *chosen[IN_FLIGHT];
        for (int slot = 0; slot < IN_FLIGHT; slot++) {
            chosen[slot] = &worker->works->work[random_below(&state, WORKS)];
            launch(worker, chosen[slot], slot);
        }
        for (int slot = 0; slot < IN_FLIGHT; slot++) {
            check_slot(worker, chosen[slot], slot);
        }
    }
    return NULL;
}

/* Which streams the calls of a thread go to. */
typedef enum arrangement {
    ONE_EACH,         /* a stream a thread */
    MANY_EACH,        /* eight streams a thread */
    MANY_IN_COMMON,   /* eight streams, which all threads use */
    ONE_IN_COMMON,    /* one stream for all */
    DEFAULT_STREAM,   /* null */
    STREAM_PER_THREAD /* the handle that is another stream in each thread */
} arrangement;

static const char *const arrangement_name[] = {"a stream a thread",       "eight streams a thread",
                                               "eight streams in common", "one stream in common",
                                               "the default stream",      "the default stream of each thread"};

static void *stream_for(arrangement arrangement, void *streams[THREADS][IN_FLIGHT], int thread, int slot) {
    switch (arrangement) {
    case ONE_EACH:
        return streams[thread][0];
    case MANY_EACH:
        return streams[thread][slot];
    case MANY_IN_COMMON:
        return streams[0][slot];
    case ONE_IN_COMMON:
        return streams[0][0];
    case DEFAULT_STREAM:
        return GPU_DEFAULT_STREAM;
    default:
        return GPU_STREAM_PER_THREAD;
    }
}

/* All threads wait for each other and then begin. */
static void run_threads(const works *works, arrangement arrangement, int threads, int calls,
                        bool some_without_context) {
    static worker workers[THREADS];
    pthread_t thread[THREADS];
    pthread_barrier_t start;
    void *streams[THREADS][IN_FLIGHT];
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) {
        for (int slot = 0; slot < IN_FLIGHT; slot++) {
            streams[i][slot] = gpu_stream_begin();
        }
    }
    for (int i = 0; i < threads; i++) {
        workers[i] = (worker){.works = works,
                              .index = i,
                              .calls = calls,
                              .no_context = some_without_context && i % 2,
                              .start = &start,
                              .outputs = gpu_allocate(IN_FLIGHT * works->bytes),
                              .read_back = gpu_allocate_pinned(works->bytes)};
        for (int slot = 0; slot < IN_FLIGHT; slot++) {
            workers[i].stream[slot] = stream_for(arrangement, streams, i, slot);
        }
    }
    for (int i = 0; i < threads; i++) {
        if (pthread_create(&thread[i], NULL, work_hard, &workers[i]) != 0) {
            printf("pthread_create failed\n");
            exit(1);
        }
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
        CHECK(workers[i].wrong == 0 && workers[i].right >= calls,
              "%s, thread %d: expected %d right results, got %ld wrong ones: %s", arrangement_name[arrangement], i,
              calls, workers[i].wrong, workers[i].text);
    }
    /* Not before all are done: some streams are in common. */
    for (int i = 0; i < threads; i++) {
        gpu_free(workers[i].outputs);
        gpu_free_pinned(workers[i].read_back);
        for (int slot = 0; slot < IN_FLIGHT; slot++) {
            gpu_stream_end(streams[i][slot]);
        }
    }
    pthread_barrier_destroy(&start);
}

int test_cuda_threads(bool reduced) {
    static works works;
    works_begin(&works, reduced ? 20000 : MOST);
    for (arrangement arrangement = ONE_EACH; arrangement <= STREAM_PER_THREAD; arrangement++) {
        run_threads(&works, arrangement, reduced ? 3 : THREADS, reduced ? IN_FLIGHT : CALLS, false);
    }
    works_end(&works);
    return section_finish();
}

/* The library has not been used yet, so that all threads come to prepare the GPU; half of them have no current
 * context, so that they come to the primary one by the library's hand. */
int test_cuda_first_threads(bool reduced) {
    static works works;
    works_begin(&works, MOST >> 4);
    run_threads(&works, ONE_EACH, THREADS, reduced ? IN_FLIGHT : CALLS, true);
    works_end(&works);
    return section_finish();
}
