/*
 * The CUDA engine's host side against a fake driver, with eight threads that call at once: each thing is prepared once,
 * and no workspace is in two hands.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>

#include "cuda_host.h"

enum {
    THREADS = 8
};

typedef struct crowd {
    pthread_barrier_t barrier;
    cuda_context context; /* null: none is current */
    int rounds;
    bool churn; /* a new stream each time */
    bool in_f64;
    cuda_stream stream; /* for all; null: each has its own */
    bool weighted;      /* a third of the threads has weights, another masks, the rest both */
    atomic_int members;
} crowd;

static void add_weights(crowd *crowd, fake *fake, scene *s) {
    const int kind = atomic_fetch_add(&crowd->members, 1) % 3;
    if (kind != 1)
        make_weighted(fake, s);
    if (kind != 0)
        make_masked(fake, s);
}

static void *one_of_many(void *argument) {
    crowd *crowd = argument;
    fake *fake = find_fake();
    scene s;
    uintptr_t wrong = 0;
    make_scene(fake, 0, MANY, &s);
    if (crowd->in_f64)
        make_f64(fake, &s);
    if (crowd->weighted)
        add_weights(crowd, fake, &s);
    fake->set_current(crowd->context);
    cuda_stream stream = crowd->stream ? crowd->stream : crowd->context ? fake->make_stream() : NULL;
    pthread_barrier_wait(&crowd->barrier);
    for (int i = 0; i < crowd->rounds; i++) {
        wrong += run_on(&s, stream) != ONEPASS_OK;
        wrong += fake->depth() != (crowd->context != NULL) || fake->mode() != 0;
        if (!crowd->churn)
            continue;
        if (i % 3 == 0)
            wrong += run_on(&s, stream) != ONEPASS_OK;
        fake->finish(stream);
        fake->destroy_stream(stream);
        stream = fake->make_stream();
    }
    return (void *)wrong;
}

static void run_crowd(crowd *crowd) {
    pthread_t thread[THREADS];
    pthread_barrier_init(&crowd->barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        HOLDS(pthread_create(&thread[i], NULL, one_of_many, crowd) == 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong = NULL;
        pthread_join(thread[i], &wrong);
        CHECK(!wrong, "thread %d: %d calls went wrong", i, (int)(uintptr_t)wrong);
    }
    pthread_barrier_destroy(&crowd->barrier);
}

/* Eight threads whose first calls come at once: one preparation, and one lookup. */
static void test_first_calls(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    crowd crowd = {.rounds = 3};
    fake->slow = true;
    run_crowd(&crowd);
    HOLDS(fake->loads == 2 && fake->lookups == 1 && fake->retains == 1 && fake->launches == 3 * THREADS);
    HOLDS(fake->counts.memory == 0); /* the default stream has the module's own workspace */
}

static void test_first_calls_own_context(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    crowd crowd = {.rounds = 3, .context = fake->make_context(0)};
    fake->slow = true;
    run_crowd(&crowd);
    HOLDS(fake->loads == 2 && fake->lookups == 1 && fake->retains == 0 && fake->counts.memory == THREADS - 1);
}

/* The same in contexts that are prepared, so that they meet at the lookup: first for f32, then for f64, each with a
 * module. Often, since they do not always meet. */
static void test_first_lookups(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    fake->slow = true;
    for (int i = 0; i < 20; i++) {
        crowd crowd = {.rounds = 1, .context = fake->make_context(0)};
        fake->set_current(crowd.context);
        CHECK_OK(onepass_prepare(ONEPASS_CUDA, 0), "prepare");
        HOLDS(fake->loads == 3 * i + 1 && fake->lookups == 2 * i);
        run_crowd(&crowd);
        HOLDS(fake->loads == 3 * i + 2 && fake->lookups == 2 * i + 1);
        crowd.in_f64 = true;
        run_crowd(&crowd);
        HOLDS(fake->loads == 3 * i + 3 && fake->lookups == 2 * i + 2);
    }
    HOLDS(fake->launches == 40 * THREADS);
}

/* Streams come and go while eight threads launch: no workspace is ever in two hands, and no more are made than are in
 * use at once. */
static void test_churn(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    crowd crowd = {.rounds = check_quick("most rounds of the threads") ? 30 : 200, .context = fake->make_context(0)};
    fake->busy = fake->slow = crowd.churn = true;
    run_crowd(&crowd);
    CHECK(fake->counts.memory <= FOR_GOOD + THREADS + 1, "%d allocations for %d threads", fake->counts.memory, THREADS);
}

/* A weighted or masked mean is two launches, of which the second finds in the workspace what the first left there: no
 * other thread's may come in between on the stream that they share. The fake counts those that do. */
static void run_weighted(fake *fake, cuda_stream stream, cuda_context context) {
    crowd crowd = {.rounds = 50, .context = context, .stream = stream, .weighted = true};
    const int before = fake->launches;
    fake->slow = true;
    run_crowd(&crowd);
    HOLDS(fake->launches - before == 2 * 50 * THREADS);
}

static void test_weights(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    cuda_context context = fake->make_context(0);
    run_weighted(fake, NULL, NULL); /* the default stream */
    fake->set_current(context);
    run_weighted(fake, fake->make_stream(), context);
}

/* The same on a stream beyond those that keep their workspaces. */
static void test_weights_in_recycled_workspace(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    scene s;
    make_scene(fake, 0, MANY, &s);
    cuda_context context = fake->make_context(0);
    fake->set_current(context);
    for (int i = 0; i < FOR_GOOD; i++)
        CHECK_OK(run_on(&s, fake->make_stream()), "a stream that keeps its workspace");
    run_weighted(fake, fake->make_stream(), context);
    HOLDS(fake->counts.events == 1);
}

/* The primary context was reset, and eight threads notice at once: it is retained once more. */
static void test_reset(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    crowd crowd = {.rounds = 1};
    fake->slow = true;
    for (int i = 1; i <= 20; i++) {
        run_crowd(&crowd);
        CHECK(fake->retains == i, "after %d resets: expected %d references to the primary context, got %d", i - 1, i,
              fake->retains);
        fake->reset_primary(0);
    }
}

static const host_test tests[] = {
    {"first calls of eight threads", test_first_calls},
    {"first calls of eight threads in a context of their own", test_first_calls_own_context},
    {"first lookups of eight threads", test_first_lookups},
    {"churn", test_churn},
    {"weights on one stream", test_weights},
    {"weights in a recycled workspace", test_weights_in_recycled_workspace},
    {"the primary context reset", test_reset},
};

int main(void) {
    run_tests(tests, sizeof tests / sizeof *tests);
    return check_finish();
}
