/*
 * Slices of accumulators and the driver, without a GPU: what is launched and on which stream, that nobody waits before
 * results are asked for, memory that comes and goes, captures, contexts, and every failure of the driver.
 */
#define _GNU_SOURCE
#include "cuda_host.h"

enum {
    TILES = 16,
    TOTAL = TILES * ONEPASS_TILE
};

static onepass_accumulator *begin(int64_t total) {
    onepass_accumulator *accumulator = NULL;
    const onepass_call call = {.size = sizeof call, .loss = "mse"};
    HOLDS(onepass_accumulator_begin(&accumulator, &call, total) == ONEPASS_OK);
    return accumulator;
}

/* A slice of so many elements, without outputs. */
static void make_slice(fake *fake, int64_t count, scene *s) {
    make_scene(fake, 0, count, s);
    s->call.upstream = s->call.value = s->call.gradient[0] = s->call.gradient[1] = NULL;
}

static onepass_status add_on(onepass_accumulator *accumulator, scene *s, cuda_stream stream, int64_t first) {
    s->call.stream = stream;
    return onepass_accumulator_add(accumulator, &s->call, first);
}

static onepass_status finish(const onepass_accumulator *accumulator) {
    double value;
    const onepass_tensor place = {&value, ONEPASS_F64, 0, NULL, NULL};
    return onepass_accumulator_finish(accumulator, &place);
}

static int64_t added(const onepass_accumulator *accumulator) {
    onepass_accumulator_info info = {.size = sizeof info};
    HOLDS(onepass_accumulator_describe(accumulator, &info) == ONEPASS_OK);
    return info.added;
}

/* ------------------------------------------------------------------------ on streams -- */

/* Two halves on two streams that are busy: who adds and asks how far it is does not wait, who finishes does. */
static void test_streams(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    scene s;
    make_slice(fake, TOTAL / 2, &s);
    HOLDS(onepass_prepare(ONEPASS_CUDA, 0) == ONEPASS_OK);
    fake->set_current(fake->primary(0));
    cuda_stream stream[2] = {fake->make_stream(), fake->make_stream()};
    onepass_accumulator *accumulator = begin(TOTAL);
    fake->busy = true;
    const int32_t synchronisations = fake->synchronisations, launches = fake->launches;
    for (int i = 0; i < 2; i++) {
        HOLDS(add_on(accumulator, &s, stream[i], i * TOTAL / 2) == ONEPASS_OK);
        CHECK(fake->launches == launches + i + 1, "expected a launch for an aligned slice");
        HOLDS(strcmp(last_launch(fake)->kernel, "onepass_mse_small_forward") == 0);
        HOLDS(last_launch(fake)->head.total.dtype == ONEPASS_F64 && last_launch(fake)->head.total.number == 1);
    }
    HOLDS(fake->launch[launches].stream != fake->launch[launches + 1].stream);
    HOLDS(added(accumulator) == TOTAL);
    expect_refusal(add_on(accumulator, &s, stream[0], 0), ONEPASS_INVALID_ARGUMENT, "added already|0 is the first",
                   "a slice that is on its way");
    HOLDS(fake->waits == 0 && fake->synchronisations == synchronisations);
    HOLDS(finish(accumulator) == ONEPASS_OK && fake->waits == 2);
    HOLDS(finish(accumulator) == ONEPASS_OK && fake->waits == 2);
    onepass_accumulator_destroy(accumulator);
    HOLDS(fake->counts.memory == 0 && fake->counts.events == 0);
}

/* The nodes of tiles 1 to 14 are 1, 2-3, 4-7, 8-11, 12-13 and 14: a launch each, and one for the terms at either end.
 */
static void test_torn(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    scene s;
    make_slice(fake, 14 * ONEPASS_TILE + 100 + 50, &s);
    onepass_accumulator *accumulator = begin(TOTAL);
    HOLDS(add_on(accumulator, &s, NULL, ONEPASS_TILE - 100) == ONEPASS_OK);
    CHECK(fake->launches == 8, "expected 6 nodes and 2 torn tiles, got %d launches", fake->launches);
    HOLDS(strcmp(fake->launch[0].kernel, "onepass_mse_general") == 0 && fake->launch[0].head.count == 100);
    HOLDS(strcmp(fake->launch[7].kernel, "onepass_mse_general") == 0 && fake->launch[7].head.count == 50);
    HOLDS(fake->launch[0].head.reduction == ONEPASS_NONE && fake->launch[0].head.data[CUDA_VALUE]);
    HOLDS((char *)fake->launch[7].head.data[0] ==
          (char *)s.prediction.data + (14 * ONEPASS_TILE + 100) * sizeof(float));
    expect_refusal(finish(accumulator), ONEPASS_INCOMPLETE, "14486|0 to 923", "finished too early");
    HOLDS(fake->waits == 0);
    onepass_accumulator_destroy(accumulator);
}

/* Accumulators are merged and exported with what is still on its way. */
static void test_merge(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    scene s;
    size_t size = 0;
    make_slice(fake, TOTAL / 2, &s);
    onepass_accumulator *one = begin(TOTAL), *other = begin(TOTAL);
    HOLDS(add_on(one, &s, NULL, 0) == ONEPASS_OK && add_on(other, &s, NULL, TOTAL / 2) == ONEPASS_OK);
    HOLDS(onepass_accumulator_export(one, NULL, 0, &size) == ONEPASS_OK);
    CHECK(size == 232 + 24, "expected one node, got %zu bytes", size);
    HOLDS(onepass_accumulator_merge(one, other) == ONEPASS_OK);
    HOLDS(finish(one) == ONEPASS_OK);
    onepass_accumulator_destroy(one);
    onepass_accumulator_destroy(other);
}

static void test_capture(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    scene s;
    make_slice(fake, TOTAL, &s);
    HOLDS(onepass_prepare(ONEPASS_CUDA, 0) == ONEPASS_OK);
    fake->set_current(fake->primary(0));
    cuda_stream captured = fake->make_stream();
    onepass_accumulator *accumulator = begin(TOTAL);
    fake->capture(captured, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    expect_refusal(add_on(accumulator, &s, captured, 0), ONEPASS_NOT_SUPPORTED, "captured|replayed",
                   "a stream that is captured");
    HOLDS(fake->launches == 0 && added(accumulator) == 0);
    /* Another stream is not, and all is done while the first one is. */
    HOLDS(add_on(accumulator, &s, NULL, 0) == ONEPASS_OK);
    HOLDS(finish(accumulator) == ONEPASS_OK);
    onepass_accumulator_destroy(accumulator);
    HOLDS(fake->capture_status(captured) == CU_STREAM_CAPTURE_STATUS_ACTIVE && fake->mode() == 0);
}

/* ---------------------------------------------------------------------------- memory -- */

/* Thousands of slices that tear tiles take no more memory than those that are on their way. */
static void test_memory(void *unused) {
    (void)unused;
    enum {
        SLICE = 1500,
        SLICES = 2000
    };
    fake *fake = find_fake();
    scene s;
    make_slice(fake, SLICE, &s);
    onepass_accumulator *accumulator = begin((int64_t)SLICE * SLICES);
    for (int i = 0; i < SLICES; i++)
        CHECK(add_on(accumulator, &s, NULL, (int64_t)SLICE * i) == ONEPASS_OK, "slice %d: %s", i, onepass_message());
    CHECK(fake->counts.memory == 1, "expected one slab for slices that are done, got %d", fake->counts.memory);
    HOLDS(finish(accumulator) == ONEPASS_OK);
    onepass_accumulator_destroy(accumulator);
    HOLDS(fake->counts.memory == 0 && fake->counts.events == 0);
    accumulator = begin((int64_t)SLICE * SLICES);
    fake->busy = true;
    for (int i = 0; i < SLICES; i++)
        HOLDS(add_on(accumulator, &s, NULL, (int64_t)SLICE * i) == ONEPASS_OK);
    CHECK(fake->counts.memory > 10 && fake->waits < SLICES + 100, "expected slabs for all slices on their way");
    onepass_accumulator_destroy(accumulator); /* with all that nobody has asked for */
    HOLDS(fake->counts.memory == 0 && fake->counts.events == 0);
}

static void test_host_memory(void *unused) {
    (void)unused;
    static float here[TOTAL];
    fake *fake = find_fake();
    scene s;
    make_slice(fake, TOTAL, &s);
    onepass_accumulator *accumulator = begin(TOTAL);
    s.target.data = here;
    expect_refusal(add_on(accumulator, &s, NULL, 0), ONEPASS_INVALID_MEMORY, "target|host memory", "a target here");
    HOLDS(fake->launches == 0 && added(accumulator) == 0 && fake->counts.memory == 0);
    onepass_accumulator_destroy(accumulator);
}

/* -------------------------------------------------------------------------- contexts -- */

static void test_contexts(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    scene s;
    make_slice(fake, TOTAL / 2, &s);
    onepass_accumulator *accumulator = begin(TOTAL), *lost = begin(TOTAL);
    HOLDS(onepass_prepare(ONEPASS_CUDA, 0) == ONEPASS_OK);
    cuda_context own = fake->make_context(0);
    HOLDS(add_on(accumulator, &s, NULL, 0) == ONEPASS_OK); /* in the primary context, and in another */
    fake->set_current(own);
    HOLDS(add_on(accumulator, &s, NULL, TOTAL / 2) == ONEPASS_OK);
    HOLDS(add_on(lost, &s, NULL, 0) == ONEPASS_OK && add_on(lost, &s, NULL, TOTAL / 2) == ONEPASS_OK);
    fake->set_current(NULL);
    HOLDS(finish(accumulator) == ONEPASS_OK && fake->depth() == 0);
    fake->destroy_context(own);
    expect_refusal(finish(lost), ONEPASS_DEVICE_FAILED, "context of GPU 0 is gone|sums", "a context that is gone");
    HOLDS(added(lost) == TOTAL && fake->depth() == 0);
    onepass_accumulator_destroy(lost);
    onepass_accumulator_destroy(accumulator);
    HOLDS(fake->depth() == 0);
}

/* -------------------------------------------------------------------------- failures -- */

/* What could not be put back, since that was what failed, the test puts back. */
static void check_failure(fake *fake, onepass_status status, const char *where) {
    CHECK(status == ONEPASS_OUT_OF_MEMORY && strstr(onepass_message(), " failed: CUDA_ERROR_OUT_OF_MEMORY"),
          "%s failed in %s: expected a sentence, got \"%s\"", fake->failed, where, onepass_message());
    if (strcmp(fake->failed, "cuCtxPopCurrent_v2") == 0)
        fake->set_current(NULL);
    if (strcmp(fake->failed, "cuThreadExchangeStreamCaptureMode") == 0)
        fake->set_mode(0);
    CHECK(fake->depth() == 0 && fake->mode() == 0, "%s failed in %s: not as it was", fake->failed, where);
}

/* The k-th call of the driver fails while a slice of a weighted mean is added, or taken in: then a sentence says so,
 * the accumulator has what it had, and all goes on. */
static void fail_once(void *argument) {
    const int32_t at = *(const int32_t *)argument;
    fake *fake = find_fake();
    scene s;
    make_slice(fake, 3 * ONEPASS_TILE + 7, &s);
    make_weighted(fake, &s);
    onepass_accumulator *accumulator = begin(2 * s.shape[0]);
    HOLDS(add_on(accumulator, &s, NULL, 0) == ONEPASS_OK);
    const fake_counts before = fake->counts;
    fake->fail_at = at;
    fake->fail_with = CUDA_ERROR_OUT_OF_MEMORY;
    onepass_status status = add_on(accumulator, &s, NULL, s.shape[0]);
    const bool in_add = fake->failed != NULL;
    if (in_add) {
        check_failure(fake, status, "add");
        CHECK(added(accumulator) == s.shape[0], "%s failed in add, and %lld elements were added", fake->failed,
              (long long)added(accumulator));
        HOLDS(fake->counts.memory == before.memory);
        HOLDS(add_on(accumulator, &s, NULL, s.shape[0]) == ONEPASS_OK);
    }
    status = finish(accumulator);
    const bool leaks = fake->failed && strcmp(fake->failed, "cuEventDestroy_v2") == 0; /* which spoils nothing else */
    if (!in_add && fake->failed && !leaks) {
        check_failure(fake, status, "finish");
        HOLDS(added(accumulator) == 2 * s.shape[0]);
        status = finish(accumulator);
    }
    CHECK(status == ONEPASS_OK, "after a failure: \"%s\"", onepass_message());
    shared_report->calls = fake->failed != NULL;
    fake->fail_at = 0;
    onepass_accumulator_destroy(accumulator);
    HOLDS(fake->counts.memory == 0 && fake->counts.events == leaks);
}

static void test_failures(void) {
    int32_t at = 0;
    do {
        char name[64];
        at++;
        snprintf(name, sizeof name, "failure %d", at);
        run_child(name, fail_once, &at);
    } while (shared_report->calls && at < 500);
    CHECK(at > 20 && at < 500, "expected dozens of calls that can fail, got %d", at - 1);
}

int main(void) {
    static const host_test tests[] = {
        {"streams", test_streams},   {"torn tiles", test_torn}, {"merge and export", test_merge},
        {"capture", test_capture},   {"memory", test_memory},   {"memory of the host", test_host_memory},
        {"contexts", test_contexts},
    };
    run_tests(tests, sizeof tests / sizeof *tests);
    if (check_failed == 0)
        test_failures();
    return check_finish();
}
