/*
 * Every call of the driver fails once. For each of a few scenarios the driver's calls are counted; then, for each of
 * them, a child runs the scenario with that one failing. The call of onepass that meets the failure must say what
 * failed and leave everything as it was: the current context, the thread's capture mode, captures, and no memory,
 * stream, event or module beyond what a clean run keeps. The same calls again, without a failure, must be in order.
 *
 * What a clean run keeps for good: a reference to each primary context used, and in each context used a stream, a
 * module, another if f64 was wanted, a slab of 1 MiB if a call was captured (more when that is used up), and the
 * workspaces of the streams, with an event each beyond the first 64.
 */
#define _GNU_SOURCE
#include "cuda_host_rows.h"

/* ------------------------------------------------------------- the failures -- */

/* One failure, in the child that it is planted in. */
typedef struct failure {
    const struct scenario *scenario;
    int32_t at; /* 0: none, to see what a clean run does */
    cuda_result error;
    fake_counts clean; /* what a clean run keeps */

    fake *fake;
    bool met;      /* an onepass call has met it */
    bool is_final; /* the driver could not be opened, which is for good */
    int32_t launches, depth;
} failure;

static bool is_one_of(const char *name, const char *const *names) {
    for (; *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

/* These are asked once a process, and their answer stays. */
static const char *const opening[] = {"cuDriverGetVersion", "cuInit",          "cuDeviceGetCount",
                                      "cuDeviceGet",        "cuDeviceGetName", NULL};

static onepass_status expected_status(const failure *failure) {
    if (is_one_of(failure->fake->failed, opening))
        return ONEPASS_NO_DEVICE;
    switch (failure->error) {
    case 2:
        return ONEPASS_OUT_OF_MEMORY;
    case 100:
        return ONEPASS_NO_DEVICE;
    default:
        return ONEPASS_DEVICE_FAILED;
    }
}

/* What could not be put back, since that was what failed, the test puts back. */
static void check_restored(failure *failure) {
    fake *fake = failure->fake;
    if (strcmp(fake->failed, "cuCtxPopCurrent_v2") == 0) {
        fake->set_current(NULL);
        return;
    }
    if (strcmp(fake->failed, "cuThreadExchangeStreamCaptureMode") == 0)
        fake->set_mode(0);
    CHECK(fake->depth() == failure->depth, "%s failed: %d contexts on the stack; expected %d", fake->failed,
          fake->depth(), failure->depth);
    CHECK(fake->mode() == 0, "%s failed: the capture mode is %d; expected 0", fake->failed, fake->mode());
    /* But for the earlier steps of a call whose later step could not be launched. */
    for (int32_t i = failure->launches; i < fake->launches; i++) {
        const char *kernel = fake->launch[i % FAKE_MOST_LAUNCHES].kernel;
        CHECK(strcmp(fake->failed, "cuLaunchKernelEx") == 0 &&
                  (strstr(kernel, "onepass_weights_") || strstr(kernel, "row")),
              "%s failed, and %s was launched", fake->failed, kernel);
    }
}

/* The call that met the failure. */
static void check_failure(failure *failure, onepass_status status) {
    fake *fake = failure->fake;
    const char *name = failure->error == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
                       : failure->error == 100 ? "CUDA_ERROR_NO_DEVICE"
                       : failure->error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                               : "(999)";
    failure->met = true;
    failure->is_final = is_one_of(fake->failed, opening);
    /* The launch was made; only nobody else may have that workspace any more. */
    if (strcmp(fake->failed, "cuEventRecord") == 0) {
        CHECK_OK(status, "an event that was not recorded");
        return;
    }
    CHECK(status == expected_status(failure), "%s failed with %d: expected %s, got %s: \"%s\"", fake->failed,
          failure->error, onepass_status_name(expected_status(failure)), onepass_status_name(status),
          onepass_message());
    CHECK(strstr(onepass_message(), name) != NULL, "%s failed: \"%s\" does not name %s", fake->failed,
          onepass_message(), name);
    CHECK((strstr(onepass_message(), "an earlier kernel") != NULL) == (failure->error == 700 && !failure->is_final),
          "%s failed with %d: \"%s\"", fake->failed, failure->error, onepass_message());
    check_restored(failure);
}

/* Before and after each call of onepass. */
static void before(failure *failure) {
    failure->launches = failure->fake->launches;
    failure->depth = failure->fake->depth();
}

static void after(failure *failure, onepass_status status) {
    if (failure->fake->failed && !failure->met) {
        check_failure(failure, status);
    } else if (failure->is_final) {
        CHECK(status == ONEPASS_NO_DEVICE, "a driver that could not be opened: %s", onepass_status_name(status));
    } else {
        CHECK_OK(status, failure->met ? "a call after the failure" : "a call before the failure");
        HOLDS(failure->fake->depth() == failure->depth && failure->fake->mode() == 0);
    }
}

#define ATTEMPT(expression)                                                                                            \
    do {                                                                                                               \
        before(failure);                                                                                               \
        after(failure, (expression));                                                                                  \
    } while (0)

/* ------------------------------------------------------------ the scenarios -- */

static scene here, there, in_f64, weighted; /* the last two: here */
static row_scene over_rows, over_many;
static cuda_stream stream[FOR_GOOD + 3];

/* Nobody's context, two GPUs, everything for the first time. */
static void nobodys_context(failure *failure) {
    onepass_call scale = scaling(&here);
    ATTEMPT(onepass_run(&here.call));
    ATTEMPT(onepass_run(&there.call));
    ATTEMPT(onepass_scale(&scale));
    ATTEMPT(onepass_run(&in_f64.call));
    ATTEMPT(onepass_prepare(ONEPASS_CUDA, 1));
}

/* Prepared: the failures are those of what is left to the calls. */
static void prepare_here(failure *failure) {
    CHECK_OK(onepass_prepare(ONEPASS_CUDA, 0), "prepare");
    HOLDS(failure->fake->lookups == 0 && failure->fake->counts.memory == 0);
}

static void prepared(failure *failure) {
    ATTEMPT(onepass_run(&in_f64.call));
    ATTEMPT(onepass_run(&here.call));
}

/* The caller's own context, the first call captured, and the first in f64 too. */
static void prepare_capture(failure *failure) {
    fake *fake = failure->fake;
    fake->set_current(fake->make_context(0));
    for (int i = 0; i < 2; i++)
        stream[i] = fake->make_stream();
    fake->capture(stream[0], CU_STREAM_CAPTURE_STATUS_ACTIVE);
}

static void captured(failure *failure) {
    ATTEMPT(run_on(&here, stream[0]));
    ATTEMPT(run_on(&here, stream[1]));
    ATTEMPT(run_on(&here, stream[0]));
    ATTEMPT(run_on(&in_f64, stream[0]));
    HOLDS(failure->fake->capture_status(stream[0]) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
}

/* A slab that is used up. */
static void prepare_full_slab(failure *failure) {
    prepare_capture(failure);
    CHECK_OK(onepass_prepare(ONEPASS_CUDA, 0), "prepare");
    for (uintptr_t first = 0, last = 0; last - first < (1 << 20) - 512;
         last = (uintptr_t)last_launch(failure->fake)->head.total.workspace) {
        CHECK_OK(run_on(&here, stream[0]), "a captured call");
        if (!first)
            first = (uintptr_t)last_launch(failure->fake)->head.total.workspace;
    }
}

static void full_slab(failure *failure) {
    ATTEMPT(run_on(&here, stream[0]));
    HOLDS(failure->fake->capture_status(stream[0]) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
}

/* Two launches a call, directly and captured. */
static void weights(failure *failure) {
    ATTEMPT(run_on(&weighted, stream[1]));
    ATTEMPT(run_on(&weighted, stream[0]));
    HOLDS(failure->fake->capture_status(stream[0]) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
}

/* Five launches a call, directly and captured, and the kernels of two modules. */
static void prepare_rows(failure *failure) {
    prepare_capture(failure);
    make_longest(failure->fake, 300, &over_rows);
}

static void rows(failure *failure) {
    ATTEMPT(run_rows_on(&over_rows, stream[1]));
    ATTEMPT(run_rows_on(&over_rows, stream[0]));
    HOLDS(failure->fake->capture_status(stream[0]) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
}

/* More rows than a stream's workspace has room for. */
static void prepare_growth(failure *failure) {
    prepare_rows(failure);
    make_rows(failure->fake, 70000, 1, &over_many);
    failure->fake->capture(stream[0], 0);
    CHECK_OK(run_rows_on(&over_rows, stream[0]), "few rows");
}

static void growth(failure *failure) {
    ATTEMPT(run_rows_on(&over_many, stream[0]));
    ATTEMPT(run_rows_on(&over_rows, stream[0]));
}

/* More streams than keep their workspaces. */
static void prepare_streams(failure *failure) {
    fake *fake = failure->fake;
    fake->set_current(fake->make_context(0));
    for (int i = 0; i < FOR_GOOD + 3; i++)
        stream[i] = fake->make_stream();
    for (int i = 0; i < FOR_GOOD; i++)
        CHECK_OK(run_on(&here, stream[i]), "a stream that keeps its workspace");
    fake->busy = true;
}

static void many_streams(failure *failure) {
    ATTEMPT(run_on(&here, stream[FOR_GOOD]));
    ATTEMPT(run_on(&here, stream[FOR_GOOD + 1]));
    failure->fake->finish(stream[FOR_GOOD]);
    ATTEMPT(run_on(&weighted, stream[FOR_GOOD + 2]));
    for (int i = 0; i < 3; i++)
        failure->fake->finish(stream[FOR_GOOD + i]);
}

static const struct scenario {
    const char *name;
    void (*prepare)(failure *failure); /* before failures are planted; may be null */
    void (*run)(failure *failure);
} scenarios[] = {
    {"nobody's context", NULL, nobodys_context}, {"prepared", prepare_here, prepared},
    {"captured", prepare_capture, captured},     {"full slab", prepare_full_slab, full_slab},
    {"weights", prepare_capture, weights},       {"rows", prepare_rows, rows},
    {"many rows", prepare_growth, growth},       {"many streams", prepare_streams, many_streams},
};

/* ------------------------------------------------------------------ the runs -- */

static void check_counts(const failure *failure) {
    const fake_counts *now = &failure->fake->counts, *clean = &failure->clean;
    if (strcmp(failure->fake->failed, "cuEventRecord") == 0) {
        HOLDS(now->memory <= clean->memory + 1 && now->events <= clean->events);
        return;
    }
    CHECK(now->memory == clean->memory && now->bytes == clean->bytes && now->streams == clean->streams &&
              now->events == clean->events && now->modules == clean->modules && now->retained == clean->retained,
          "%s failed: %d allocations (%zu bytes), %d streams, %d events, %d modules, %d references are kept; "
          "expected %d (%zu), %d, %d, %d, %d",
          failure->fake->failed, now->memory, now->bytes, now->streams, now->events, now->modules, now->retained,
          clean->memory, clean->bytes, clean->streams, clean->events, clean->modules, clean->retained);
}

/* The scenario twice: with the failure, and then without. */
static void run_scenario(void *argument) {
    failure *failure = argument;
    fake *fake = failure->fake = find_fake();
    const struct scenario *scenario = failure->scenario;
    make_scene(fake, 0, MANY, &here);
    make_scene(fake, 1, MANY, &there);
    make_scene(fake, 0, MANY, &in_f64);
    make_f64(fake, &in_f64);
    make_scene(fake, 0, MANY, &weighted);
    make_weighted(fake, &weighted);
    if (scenario->prepare)
        scenario->prepare(failure);
    fake->fail_at = failure->at;
    fake->fail_with = failure->error;
    const int32_t calls = fake->calls;
    scenario->run(failure);
    shared_report->calls = fake->calls - calls;
    CHECK((failure->at > 0) == failure->met, "failure %d of %s was not met", failure->at, scenario->name);
    scenario->run(failure);
    shared_report->counts = fake->counts;
    if (failure->met && !failure->is_final)
        check_counts(failure);
    if (failure->is_final)
        HOLDS(fake->counts.memory == 0 && fake->counts.modules == 0 && fake->counts.retained == 0);
}

static void run_failures(const struct scenario *scenario, bool quick) {
    static const cuda_result errors[] = {999, 2, 700, 100};
    failure clean = {.scenario = scenario};
    run_child(scenario->name, run_scenario, &clean);
    const int32_t calls = shared_report->calls;
    const fake_counts counts = shared_report->counts;
    CHECK(calls > 0 && counts.modules > 0, "%s: %d calls of the driver", scenario->name, calls);
    /* Each with two errors, one of which changes from call to call; functions that are called often have them all. */
    for (int32_t at = 1; at <= calls; at++) {
        for (int i = 0; i < 4; i++) {
            char name[64];
            failure failure = {.scenario = scenario, .at = at, .error = errors[i], .clean = counts};
            snprintf(name, sizeof name, "%s, call %d, error %d", scenario->name, at, errors[i]);
            if (quick ? i == at % 4 : i == 0 || i == 1 + at % 3)
                run_child(name, run_scenario, &failure);
        }
    }
    printf("%s: %d calls of the driver, each failed\n", scenario->name, calls);
}

int main(void) {
    const bool quick = check_quick("one of the two errors of each call");
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios && check_failed == 0; i++)
        run_failures(&scenarios[i], quick);
    return check_finish();
}
