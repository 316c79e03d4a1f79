/*
 * The CUDA engine's host side against a fake driver: who gets which workspace. One for each stream, handed on when it
 * is idle; the caller's own; and for captured calls, which may be replayed at any time, one for each call.
 */
#define _GNU_SOURCE
#include "cuda_host.h"
#include "plan/plan.h"

/* ---------------------------------------------------------------- workspaces -- */

static void *workspace_of_run(fake *fake, scene *s, cuda_stream stream) {
    CHECK_OK(run_on(s, stream), "run");
    return last_launch(fake)->head.total.workspace;
}

static void test_callers_workspace(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    scene s;
    static cuda_launch plan;
    job job;
    char words[64];
    make_scene(fake, 0, MANY, &s);
    HOLDS(onepass_plan(&s.call, &job) == ONEPASS_OK);
    onepass_cuda_plan(&job, FAKE_MULTIPROCESSORS, &plan);
    HOLDS(plan.workspace > 0 && plan.workspace <= ONEPASS_WORKSPACE_SIZE);
    s.call.workspace = (void *)fake->allocate(FAKE_DEVICE, 0, plan.workspace);
    memset(s.call.workspace, 0, plan.workspace);
    s.call.workspace_size = plan.workspace - 1;
    snprintf(words, sizeof words, "workspace_size|%zu|%zu", plan.workspace - 1, plan.workspace);
    expect_refusal(onepass_run(&s.call), ONEPASS_INVALID_ARGUMENT, words, "a workspace that is too small");
    HOLDS(fake->launches == 0);
    s.call.workspace_size = plan.workspace;
    HOLDS(workspace_of_run(fake, &s, NULL) == s.call.workspace);
    const int32_t allocations = fake->counts.memory;
    HOLDS(workspace_of_run(fake, &s, NULL) == s.call.workspace && fake->counts.memory == allocations);

    /* Also for a captured call: the caller knows when the graph is replayed. */
    fake->set_current(fake->make_context(0));
    cuda_stream stream = fake->make_stream();
    fake->capture(stream, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    HOLDS(workspace_of_run(fake, &s, stream) == s.call.workspace && last_launch(fake)->captured);

    /* A call that needs none does not look at its size. */
    s.call.value = NULL;
    s.call.workspace_size = 16;
    CHECK_OK(run_on(&s, NULL), "a call that needs no workspace");
}

/* One for each stream, by its identity. */
static void test_stream_identity(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    scene s;
    make_scene(fake, 0, MANY, &s);
    fake->set_current(fake->make_context(0));
    cuda_stream first = fake->make_stream(), second = fake->make_stream();
    void *of_null = workspace_of_run(fake, &s, NULL);
    void *of_first = workspace_of_run(fake, &s, first), *of_second = workspace_of_run(fake, &s, second);
    HOLDS(of_null != of_first && of_first != of_second && of_null != of_second);
    const int32_t synchronisations = fake->synchronisations;
    HOLDS(workspace_of_run(fake, &s, first) == of_first && workspace_of_run(fake, &s, NULL) == of_null);
    CHECK(fake->synchronisations == synchronisations, "a stream was waited for although nothing was made");
    fake->destroy_stream(first);
    cuda_stream third = fake->make_stream();
    CHECK(third == first, "the fake did not use a handle again, so nothing is tested");
    HOLDS(workspace_of_run(fake, &s, third) != of_first);

    /* The default stream of another context is another stream. */
    fake->set_current(fake->make_context(0));
    HOLDS(workspace_of_run(fake, &s, NULL) != of_null);
}

/* Beyond the first streams, workspaces change hands, but only when their last launch is done. */
static void test_recycling(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    scene s;
    void *for_good[FOR_GOOD];
    cuda_stream stream[FOR_GOOD];
    make_scene(fake, 0, MANY, &s);
    fake->set_current(fake->make_context(0));
    for (int i = 0; i < FOR_GOOD; i++)
        for_good[i] = workspace_of_run(fake, &s, stream[i] = fake->make_stream());
    HOLDS(fake->counts.events == 0);
    const int32_t allocations = fake->counts.memory;

    fake->busy = true;
    cuda_stream a = fake->make_stream(), b = fake->make_stream(), c = fake->make_stream();
    void *of_a = workspace_of_run(fake, &s, a), *of_b = workspace_of_run(fake, &s, b);
    HOLDS(of_a != of_b && fake->counts.memory == allocations + 2);
    HOLDS(workspace_of_run(fake, &s, a) == of_a);
    fake->finish(b);
    HOLDS(workspace_of_run(fake, &s, c) == of_b); /* the one that is idle */
    HOLDS(workspace_of_run(fake, &s, a) == of_a);
    void *anew = workspace_of_run(fake, &s, b); /* b's own is c's now, and all are in use */
    HOLDS(anew != of_a && anew != of_b && fake->counts.memory == allocations + 3);
    fake->busy = false;
    fake->finish(a);
    fake->finish(b);
    fake->finish(c);

    /* For ever, and nothing is added. */
    for (int i = 0; i < 1000; i++) {
        cuda_stream one = fake->make_stream();
        void *workspace = workspace_of_run(fake, &s, one);
        for (int k = 0; k < FOR_GOOD; k++)
            HOLDS(workspace != for_good[k]);
        fake->destroy_stream(one);
    }
    HOLDS(fake->counts.memory == allocations + 3 && fake->counts.events == 3);
    for (int i = 0; i < FOR_GOOD; i++)
        HOLDS(workspace_of_run(fake, &s, stream[i]) == for_good[i]);
}

/* If the use of one cannot be recorded, the call is in order all the same, and no other stream ever gets that one. */
static void test_unrecorded(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    scene s;
    make_scene(fake, 0, MANY, &s);
    fake->set_current(fake->make_context(0));
    for (int i = 0; i < FOR_GOOD; i++)
        workspace_of_run(fake, &s, fake->make_stream());
    cuda_stream stream = fake->make_stream();
    fake->fail_in = "cuEventRecord";
    fake->fail_at = 1;
    fake->fail_with = 999;
    void *workspace = workspace_of_run(fake, &s, stream);
    HOLDS(fake->failed && fake->counts.events == 0);
    HOLDS(workspace_of_run(fake, &s, stream) == workspace);
    HOLDS(workspace_of_run(fake, &s, fake->make_stream()) != workspace);
    HOLDS(workspace_of_run(fake, &s, fake->make_stream()) != workspace);
}

/* ------------------------------------------------------------------- capture -- */

/* The very first call may be captured: all that must be made is made, and the capture goes on. */
static void test_first_call_captured(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    scene s;
    make_scene(fake, 0, MANY, &s);
    fake->set_current(fake->make_context(0));
    cuda_stream stream = fake->make_stream(), other = fake->make_stream();
    fake->capture(stream, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    void *slot = workspace_of_run(fake, &s, stream);
    HOLDS(last_launch(fake)->captured && fake->capture_status(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);

    /* And a stream beside it that is not captured may have its first. */
    void *workspace = workspace_of_run(fake, &s, other);
    HOLDS(workspace != slot && !last_launch(fake)->captured);
    HOLDS(fake->capture_status(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE && fake->mode() == 0);

    fake->capture(stream, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    const int32_t launches = fake->launches;
    expect_refusal(run_on(&s, stream), ONEPASS_DEVICE_FAILED, "capture|spoiled", "a spoiled capture");
    HOLDS(fake->launches == launches);
    fake->capture(stream, 0);
    HOLDS(workspace_of_run(fake, &s, stream) != slot);
}

/* In a context that is prepared and has been used, a captured call may still be the first that needs a kernel, a
 * module, or a slab. */
static void test_first_kernel_captured(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    scene s;
    make_scene(fake, 0, MANY, &s);
    fake->set_current(fake->make_context(0));
    cuda_stream stream = fake->make_stream(), other = fake->make_stream();
    CHECK_OK(onepass_prepare(ONEPASS_CUDA, 0), "prepare");
    workspace_of_run(fake, &s, other);
    HOLDS(fake->lookups == 1 && fake->counts.memory == 0); /* the first workspace is the module's */
    fake->capture(stream, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    s.call.loss = "hinge";
    void *first = workspace_of_run(fake, &s, stream);
    HOLDS(fake->lookups == 2 && fake->loads == 3 && fake->counts.memory == 1);
    HOLDS(last_launch(fake)->captured && strstr(last_launch(fake)->kernel, "onepass_hinge"));
    make_f64(fake, &s);
    void *second = workspace_of_run(fake, &s, stream);
    HOLDS(fake->lookups == 3 && fake->loads == 4 && fake->counts.memory == 1 && first != second);
    HOLDS(last_launch(fake)->captured && strcmp(last_launch(fake)->image, "hinge f64") == 0);
    HOLDS(fake->capture_status(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE && fake->mode() == 0);

    /* A lookup that fails does not spoil the capture. */
    s.call.loss = "mse";
    fake->fail_in = "cuModuleGetFunction";
    fake->fail_at = 1;
    fake->fail_with = CUDA_ERROR_OUT_OF_MEMORY;
    expect_refusal(run_on(&s, stream), ONEPASS_OUT_OF_MEMORY, "finding the kernel onepass_mse", "a failed lookup");
    HOLDS(fake->capture_status(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE && fake->mode() == 0);
    CHECK_OK(run_on(&s, stream), "the next attempt");
    HOLDS(last_launch(fake)->captured && fake->capture_status(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
}

static int compare_addresses(const void *a, const void *b) {
    const uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
    return (x > y) - (x < y);
}

/* Every captured call has memory of its own, slab after slab. */
static void test_slots(void *unused) {
    (void)unused;
    enum {
        CALLS = 4000
    };
    static uintptr_t slot[CALLS];
    static cuda_launch plan;
    job job;
    fake *fake = find_fake();
    scene s;
    make_scene(fake, 0, MANY, &s);
    HOLDS(onepass_plan(&s.call, &job) == ONEPASS_OK);
    onepass_cuda_plan(&job, FAKE_MULTIPROCESSORS, &plan);
    fake->set_current(fake->make_context(0));
    cuda_stream stream[2] = {fake->make_stream(), fake->make_stream()};
    CHECK_OK(onepass_prepare(ONEPASS_CUDA, 0), "prepare");
    CHECK(fake->counts.memory == 0, "prepared: %d allocations, %zu bytes", fake->counts.memory, fake->counts.bytes);
    for (int i = 0; i < CALLS; i++) {
        fake->capture(stream[i % 2], CU_STREAM_CAPTURE_STATUS_ACTIVE);
        slot[i] = (uintptr_t)workspace_of_run(fake, &s, stream[i % 2]);
        fake->capture(stream[i % 2], 0);
        HOLDS(i > 0 || (fake->counts.memory == 1 && fake->counts.bytes == 1 << 20));
    }
    HOLDS(fake->counts.memory > 1 && fake->counts.bytes == (size_t)fake->counts.memory << 20);
    qsort(slot, CALLS, sizeof *slot, compare_addresses);
    for (int i = 0; i < CALLS; i++) {
        HOLDS(slot[i] % 256 == 0);
        HOLDS(i == 0 || slot[i] - slot[i - 1] >= plan.workspace);
    }

    /* No memory for the next slab. */
    const int32_t slabs = fake->counts.memory;
    fake->fail_in = "cuMemAlloc_v2";
    fake->fail_at = 1;
    fake->fail_with = CUDA_ERROR_OUT_OF_MEMORY;
    fake->capture(stream[0], CU_STREAM_CAPTURE_STATUS_ACTIVE);
    onepass_status status = ONEPASS_OK;
    for (int i = 0; i < CALLS && status == ONEPASS_OK; i++)
        status = run_on(&s, stream[0]);
    expect_refusal(status, ONEPASS_OUT_OF_MEMORY, "allocating|1048576|captured calls|CUDA_ERROR_OUT_OF_MEMORY",
                   "no memory for a slab");
    HOLDS(fake->counts.memory == slabs && fake->mode() == 0);
    CHECK_OK(run_on(&s, stream[0]), "the next attempt");
    HOLDS(fake->counts.memory == slabs + 1);
    HOLDS(fake->capture_status(stream[0]) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
}

static const host_test tests[] = {
    {"the caller's workspace", test_callers_workspace},
    {"stream identity", test_stream_identity},
    {"recycling", test_recycling},
    {"unrecorded", test_unrecorded},
    {"first call captured", test_first_call_captured},
    {"first use of a kernel captured", test_first_kernel_captured},
    {"slots", test_slots},
};

int main(void) {
    run_tests(tests, sizeof tests / sizeof *tests);
    return check_finish();
}
