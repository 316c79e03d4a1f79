/*
 * The CUDA engine's host side against a fake driver: what it says when something is missing, which context it uses and
 * leaves current, which memory it accepts, and who gets which workspace.
 *
 *   test_cuda_host                   with the fake as libcuda.so.1
 *   test_cuda_host missing-symbol    with a fake that lacks a function
 *   test_cuda_host no-driver         with none
 */
#define _GNU_SOURCE
#include <fenv.h>
#include <math.h>
#include <pthread.h>

#include "cuda_host.h"

#define HOLDS(condition) CHECK(condition, "%s does not hold", #condition)

/* ------------------------------------------------------ what may be missing -- */

static void test_cpu_alone(void *unused) {
    (void)unused;
    float p[3] = {1, 2, 3}, t[3] = {0, 0, 0}, value = 0, gradient[3], factor = 2;
    const int64_t shape[1] = {3};
    const onepass_tensor upstream = {&factor, ONEPASS_F32, 0, NULL, NULL}, g = {gradient, ONEPASS_F32, 1, shape, NULL};
    HOLDS(onepass_mean_f32("mse", 3, p, t, &value, gradient) == ONEPASS_OK);
    onepass_call call = ONEPASS_CALL_INIT;
    call.upstream = &upstream;
    call.gradient[0] = &g;
    HOLDS(onepass_scale(&call) == ONEPASS_OK);
    HOLDS(onepass_prepare(ONEPASS_CPU, 0) == ONEPASS_OK);
    CHECK(!driver_is_open(), "calls on the CPU opened the driver");
}

static void test_no_kernels(void *unused) {
    (void)unused;
    onepass_cuda_image_toolkit = 0;
    static const char words[] = "ONEPASS_CUDA|this build of onepass has no CUDA kernels|nvcc was not found";
    onepass_machine_info info = {.size = sizeof info};
    float number = 1, result = 0;
    const onepass_tensor operand = {&number, ONEPASS_F32, 0, NULL, NULL}, value = {&result, ONEPASS_F32, 0, NULL, NULL};
    onepass_call call = ONEPASS_CALL_INIT;
    call.loss = "mse";
    call.operand[0] = call.operand[1] = &operand;
    call.value = &value;
    call.device = ONEPASS_CUDA;
    expect_refusal(onepass_prepare(ONEPASS_CUDA, 0), ONEPASS_NO_DEVICE, words, "prepare without kernels");
    expect_refusal(onepass_run(&call), ONEPASS_NO_DEVICE, words, "run without kernels");
    CHECK(!driver_is_open(), "a call without kernels opened the driver");
    HOLDS(onepass_machine(&info) == ONEPASS_OK);
    HOLDS(info.gpu_count == 0 && strstr(info.gpu_reason, "no CUDA kernels") && info.gpu_names[0] == '\0');
    HOLDS(info.gpu_driver == FAKE_VERSION && info.gpu_toolkit == 0);
}

static void test_no_device(void *unused) {
    (void)unused;
    onepass_machine_info info = {.size = sizeof info};
    find_fake()->gpus = 0;
    for (int again = 0; again < 2; again++)
        expect_refusal(onepass_prepare(ONEPASS_CUDA, 0), ONEPASS_NO_DEVICE,
                       "ONEPASS_CUDA|initialisation|CUDA_ERROR_NO_DEVICE|100", "no device");
    HOLDS(onepass_machine(&info) == ONEPASS_OK && onepass_message()[0] == '\0');
    HOLDS(info.gpu_count == 0 && strstr(info.gpu_reason, "CUDA_ERROR_NO_DEVICE") && info.gpu_names[0] == '\0');
    HOLDS(info.gpu_driver == FAKE_VERSION && info.gpu_toolkit == FAKE_VERSION);
}

static void test_old_driver(void *unused) {
    (void)unused;
    onepass_machine_info info = {.size = sizeof info};
    fake *fake = find_fake();
    fake->version = 12040;
    expect_refusal(onepass_prepare(ONEPASS_CUDA, 0), ONEPASS_NO_DEVICE, "too old|CUDA 12.4|CUDA 13.0", "old driver");
    HOLDS(onepass_machine(&info) == ONEPASS_OK && info.gpu_count == 0 && info.gpu_driver == 12040);
    CHECK(fake->calls == 1, "%d calls of a driver that is too old; expected no more than its version", fake->calls);
}

/* The kernels may be of a later minor version. If they cannot be loaded then, both versions are named. */
static void test_older_driver(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    onepass_cuda_image_toolkit = 13010;
    fake->fail_in = "cuModuleLoadData";
    fake->fail_at = 1;
    fake->fail_with = 222;
    expect_refusal(onepass_prepare(ONEPASS_CUDA, 0), ONEPASS_DEVICE_FAILED,
                   "loading the kernels|CUDA 13.1|CUDA 13.0|CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "older driver");
    CHECK_OK(onepass_prepare(ONEPASS_CUDA, 0), "the second attempt");
}

static void test_machine(void *unused) {
    (void)unused;
    onepass_machine_info info = {.size = sizeof info};
    for (int again = 0; again < 2; again++) {
        HOLDS(onepass_machine(&info) == ONEPASS_OK && onepass_message()[0] == '\0');
        HOLDS(info.gpu_count == 2 && info.gpu_reason[0] == '\0' && strcmp(info.gpu_names, "Fake 0, Fake 1") == 0);
        HOLDS(info.gpu_driver == FAKE_VERSION && info.gpu_toolkit == FAKE_VERSION);
    }
    expect_refusal(onepass_prepare(ONEPASS_CUDA, 2), ONEPASS_NO_DEVICE, "device_index is 2|2", "a third GPU");
    HOLDS(find_fake()->retains == 0);
}

static int run_missing_symbol(void) {
    if (!find_fake())
        return check_skip("the fake driver is not in LD_LIBRARY_PATH");
    onepass_machine_info info = {.size = sizeof info};
    expect_refusal(onepass_prepare(ONEPASS_CUDA, 0), ONEPASS_NO_DEVICE, "too old|cuStreamGetId", "a missing function");
    HOLDS(onepass_machine(&info) == ONEPASS_OK && info.gpu_count == 0 && strstr(info.gpu_reason, "cuStreamGetId"));
    HOLDS(find_fake()->calls == 0);
    return check_finish();
}

static int run_no_driver(void) {
    if (dlopen("libcuda.so.1", RTLD_NOW))
        return check_skip("this machine has a CUDA driver");
    onepass_machine_info info = {.size = sizeof info};
    expect_refusal(onepass_prepare(ONEPASS_CUDA, 0), ONEPASS_NO_DEVICE,
                   "ONEPASS_CUDA|the CUDA driver is not here|libcuda.so.1", "no driver");
    HOLDS(onepass_machine(&info) == ONEPASS_OK && info.gpu_count == 0 && info.gpu_driver == 0);
    HOLDS(strstr(info.gpu_reason, "libcuda.so.1") && info.gpu_toolkit == FAKE_VERSION);
    return check_finish();
}

/* A child of a process that has used the driver cannot; it still computes on the CPU. */
static void test_fork(void *unused) {
    (void)unused;
    float p[1] = {3}, t[1] = {1}, value = 0;
    CHECK_OK(onepass_prepare(ONEPASS_CUDA, 0), "before fork");
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        onepass_machine_info info = {.size = sizeof info};
        check_failed = 0;
        expect_refusal(onepass_prepare(ONEPASS_CUDA, 0), ONEPASS_NO_DEVICE, "forked|CUDA", "after fork");
        HOLDS(onepass_machine(&info) == ONEPASS_OK && info.gpu_count == 0 && strstr(info.gpu_reason, "forked"));
        HOLDS(onepass_mean_f32("mse", 1, p, t, &value, NULL) == ONEPASS_OK && value == 4);
        _exit(check_failed != 0);
    }
    int status = -1;
    HOLDS(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_OK(onepass_prepare(ONEPASS_CUDA, 1), "the parent after fork");
}

/* ------------------------------------------------------------------ contexts -- */

static unsigned long long context_of_run(scene *s) {
    fake *fake = find_fake();
    CHECK_OK(onepass_run(&s->call), "run");
    return fake->launches ? last_launch(fake)->context : 0;
}

/* By the driver's own function, as any other part of a program would ask. */
static cuda_context current_context(void) {
    cuda_context current = NULL;
    cuda_result (*get)(cuda_context *) = NULL;
    void *symbol = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuCtxGetCurrent");
    memcpy(&get, &symbol, sizeof get);
    get(&current);
    return current;
}

static void test_contexts(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    scene here, there;
    make_scene(fake, 0, MANY, &here);
    make_scene(fake, 1, MANY, &there);

    /* Nobody's: the primary one, retained once, and nothing is current afterwards. */
    const unsigned long long primary = context_of_run(&here);
    HOLDS(fake->retains == 1 && fake->pushes == 1 && fake->depth() == 0);
    HOLDS(context_of_run(&here) == primary && fake->retains == 1 && fake->pushes == 2 && fake->depth() == 0);

    /* The caller's own, of this GPU: that one, and the stack is not touched. */
    cuda_context own = fake->make_context(0);
    fake->set_current(own);
    const unsigned long long by_own = context_of_run(&here);
    HOLDS(by_own != primary && fake->pushes == 2 && fake->depth() == 1 && current_context() == own);
    HOLDS(context_of_run(&here) == by_own && fake->retains == 1);

    /* The caller's own, of another GPU: the primary one of the GPU that the call names. */
    const unsigned long long other = context_of_run(&there);
    HOLDS(other != by_own && other != primary && fake->retains == 2 && fake->pushes == 3);
    HOLDS(fake->depth() == 1 && current_context() == own);
    CHECK(fake->loads == 3 && fake->lookups == 3,
          "%d modules were loaded and %d kernels looked up; expected one in each of three contexts", fake->loads,
          fake->lookups);

    /* A refusal leaves the caller's context as well. */
    here.prediction.data = there.prediction.data;
    fake->set_current(fake->make_context(1));
    expect_refusal(onepass_run(&here.call), ONEPASS_INVALID_MEMORY, "prediction", "a refusal");
    HOLDS(fake->depth() == 1 && current_context() != own);
}

/* Somebody resets the primary context (cudaDeviceReset): it has another identity, and everything is made anew. */
static void test_reset(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    scene s;
    make_scene(fake, 0, MANY, &s);
    const unsigned long long before = context_of_run(&s);
    fake->reset_primary(0);
    const unsigned long long after = context_of_run(&s);
    HOLDS(before != after && fake->retains == 2 && fake->loads == 2 && fake->lookups == 2 && fake->depth() == 0);
    HOLDS(context_of_run(&s) == after && fake->loads == 2 && fake->lookups == 2);

    /* The same with that context current, as the runtime library leaves it. */
    fake->set_current(fake->primary(0));
    fake->reset_primary(0);
    HOLDS(context_of_run(&s) != after && fake->retains == 3 && fake->loads == 3 && fake->lookups == 3);
    HOLDS(fake->depth() == 1 && current_context() == fake->primary(0));
}

/* A context's handle is used again for another context: what was kept for the first is not used for the second. */
static void test_handle_of_context(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    scene s, in_f64;
    make_scene(fake, 0, MANY, &s);
    make_scene(fake, 0, MANY, &in_f64);
    make_f64(fake, &in_f64);
    for (int i = 0; i < 100; i++) {
        cuda_context own = fake->make_context(0);
        fake->set_current(own);
        CHECK_OK(onepass_run(&s.call), "a context");
        CHECK_OK(onepass_run(&in_f64.call), "a context, f64");
        HOLDS(fake->loads == 2 * (i + 1) && fake->lookups == 2 * (i + 1));
        fake->set_current(NULL);
        fake->destroy_context(own);
    }
    HOLDS(fake->counts.memory == 0 && fake->counts.modules == 0 && fake->counts.streams == 0);
}

/* ------------------------------------------------------------------- kernels -- */

/* Preparing looks up none; a call looks up the one that it needs, once a context. */
static void test_lookups(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    scene s;
    make_scene(fake, 0, MANY, &s);
    const onepass_call scale = scaling(&s);
    for (int again = 0; again < 2; again++) {
        CHECK_OK(onepass_prepare(ONEPASS_CUDA, 0), "prepare");
        HOLDS(fake->loads == 1 && fake->lookups == 0 && fake->counts.memory == 0);
    }
    for (int again = 0; again < 2; again++) {
        CHECK_OK(onepass_run(&s.call), "run");
        HOLDS(fake->lookups == 1);
    }
    for (int again = 0; again < 2; again++) {
        CHECK_OK(onepass_scale(&scale), "scale");
        HOLDS(fake->lookups == 2);
    }
    int losses = 0;
    for (; onepass_loss_at(losses); losses++) {
        s.call.loss = onepass_loss_at(losses)->name;
        const bool has_third = onepass_loss_at(losses)->operand_count > ONEPASS_THIRD;
        s.call.operand[ONEPASS_THIRD] = has_third ? &s.target : NULL;
        CHECK_OK(onepass_run(&s.call), s.call.loss);
    }
    s.call.loss = "mse";
    s.call.operand[ONEPASS_THIRD] = NULL;
    CHECK(fake->lookups == losses + 1, "%d lookups for %d losses and scale", fake->lookups, losses);
    HOLDS(fake->loads == 1); /* f64 was not wanted */

    make_f64(fake, &s);
    for (int again = 0; again < 2; again++) {
        CHECK_OK(onepass_run(&s.call), "f64");
        HOLDS(fake->loads == 2 && fake->lookups == losses + 2);
    }

    /* In another context all begins anew, and f64 may be the first. */
    fake->set_current(fake->make_context(0));
    CHECK_OK(onepass_prepare(ONEPASS_CUDA, 0), "prepare another");
    HOLDS(fake->loads == 3 && fake->lookups == losses + 2);
    CHECK_OK(onepass_run(&s.call), "f64 in another");
    HOLDS(fake->loads == 4 && fake->lookups == losses + 3);
}

/* What fails is said; nothing is launched or allocated, and the next attempt is in order. */
static void test_failed_lookup(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    scene s;
    make_scene(fake, 0, MANY, &s);
    CHECK_OK(onepass_prepare(ONEPASS_CUDA, 0), "prepare");
    const struct {
        const char *function;
        cuda_result error;
        onepass_status status;
        const char *words;
        int32_t loads, lookups; /* when the next attempt is done */
        bool is_f64;
    } failures[] = {
        {"cuModuleGetFunction", 500, ONEPASS_DEVICE_FAILED,
         "finding the kernel onepass_mse|_f32 failed|CUDA_ERROR_NOT_FOUND|what the fake says", 1, 1, false},
        {"cuModuleLoadData", 222, ONEPASS_DEVICE_FAILED,
         "loading the kernels on GPU 0|CUDA 13.0|CUDA_ERROR_UNSUPPORTED_PTX_VERSION", 2, 2, true},
        {"cuModuleGetFunction", CUDA_ERROR_OUT_OF_MEMORY, ONEPASS_OUT_OF_MEMORY,
         "finding the kernel onepass_hinge|_f64 failed|CUDA_ERROR_OUT_OF_MEMORY", 2, 3, true},
    };
    for (int i = 0; i < 3; i++) {
        const fake_counts counts = fake->counts;
        const int32_t launches = fake->launches;
        if (failures[i].is_f64 && s.prediction.dtype != ONEPASS_F64)
            make_f64(fake, &s);
        s.call.loss = i < 2 ? "mse" : "hinge";
        fake->fail_in = failures[i].function;
        fake->fail_at = 1;
        fake->fail_with = failures[i].error;
        expect_refusal(onepass_run(&s.call), failures[i].status, failures[i].words, failures[i].function);
        HOLDS(fake->launches == launches && fake->counts.memory == counts.memory);
        HOLDS(fake->counts.modules == counts.modules && fake->counts.streams == counts.streams);
        HOLDS(fake->depth() == 0 && fake->mode() == 0);
        CHECK_OK(onepass_run(&s.call), "the next attempt");
        HOLDS(fake->loads == failures[i].loads && fake->lookups == failures[i].lookups);
        HOLDS(fake->launches == launches + 1 && strstr(last_launch(fake)->kernel, s.call.loss));
    }
}

/* -------------------------------------------------------------------- memory -- */

static void test_pointers(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    _Alignas(16) static char plain[ONEPASS_WORKSPACE_SIZE]; /* more than any of the tensors */
    const size_t size = sizeof plain;
    const struct {
        const char *words;
        void *data;
    } wrong[] = {
        {"is in host memory|expected memory of GPU 0", plain},
        {"is in pinned host memory|expected memory of GPU 0", (void *)fake->allocate(FAKE_PINNED, 0, size)},
        {"is in memory of GPU 1|expected memory of GPU 0", (void *)fake->allocate(FAKE_DEVICE, 1, size)},
    };
    scene s;
    make_scene(fake, 0, MANY, &s);
    make_weighted(fake, &s);
    s.call.reduction = ONEPASS_SUM; /* so that a call is one launch */
    s.call.workspace = (void *)fake->allocate(FAKE_DEVICE, 0, ONEPASS_WORKSPACE_SIZE);
    s.call.workspace_size = ONEPASS_WORKSPACE_SIZE;
    memset(s.call.workspace, 0, ONEPASS_WORKSPACE_SIZE);
    const struct {
        const char *name;
        void **place;
    } tensors[] = {
        {"prediction", &s.prediction.data},
        {"target", &s.target.data},
        {"weight", &s.weight.data},
        {"upstream", &s.upstream.data},
        {"value", &s.value.data},
        {"gradient[0] (for the prediction)", &s.gradient[0].data},
        {"gradient[1] (for the target)", &s.gradient[1].data},
        {"workspace", &s.call.workspace},
    };
    const cuda_pointer managed = fake->allocate(FAKE_MANAGED, 1, size);
    memset((void *)managed, 0, size);
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        void *right = *tensors[i].place;
        for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
            *tensors[i].place = wrong[k].data;
            expect_refusal(onepass_run(&s.call), ONEPASS_INVALID_MEMORY, wrong[k].words, tensors[i].name);
            CHECK(strstr(onepass_message(), tensors[i].name) == onepass_message(), "expected %s in \"%s\"",
                  tensors[i].name, onepass_message());
        }
        *tensors[i].place = (void *)managed;
        if (i != 7) /* a workspace in another GPU's managed memory is none of the fake's business */
            CHECK_OK(onepass_run(&s.call), "managed memory");
        *tensors[i].place = right;
    }
    CHECK(fake->launches == 7, "%d launches; expected only those in managed memory", fake->launches);
    CHECK_OK(onepass_run(&s.call), "all in place again");
}

/* A tensor without elements may point anywhere. */
static void test_empty(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    float plain[1];
    scene s;
    make_scene(fake, 0, 0, &s);
    s.prediction.data = s.target.data = s.gradient[0].data = plain;
    s.gradient[1].data = NULL;
    CHECK_OK(onepass_run(&s.call), "the mean of nothing");
    HOLDS(fake->launches == 1 && last_launch(fake)->blocks == 1 && !last_launch(fake)->head.workspace);
    s.call.value = NULL;
    CHECK_OK(onepass_run(&s.call), "the gradient of nothing");
    s.call.reduction = ONEPASS_NONE;
    s.call.upstream = s.call.value = &(onepass_tensor){plain, ONEPASS_F32, 1, s.shape, NULL};
    CHECK_OK(onepass_run(&s.call), "no values");
    onepass_call scale = scaling(&s);
    scale.upstream = &s.upstream;
    CHECK_OK(onepass_scale(&scale), "nothing to scale");
    HOLDS(fake->launches == 1);
}

/* ------------------------------------------------------------------ launches -- */

/* What the plan says is what is launched. */
static void test_launch(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    scene s;
    make_scene(fake, 0, MANY, &s);
    fake->set_current(fake->make_context(0));
    cuda_stream stream = fake->make_stream();
    for (int i = 0; onepass_loss_at(i); i++) {
        job job;
        static cuda_launch plan;
        s.call.loss = onepass_loss_at(i)->name;
        s.call.operand[ONEPASS_THIRD] = onepass_loss_at(i)->operand_count > ONEPASS_THIRD ? &s.target : NULL;
        HOLDS(onepass_plan(&s.call, &job) == ONEPASS_OK);
        onepass_cuda_plan(&job, FAKE_MULTIPROCESSORS, &plan);
        CHECK_OK(run_on(&s, stream), s.call.loss);
        const fake_launch *launch = last_launch(fake);
        HOLDS(fake->launches == i + 1 && launch->blocks == plan.blocks && launch->threads == plan.threads);
        HOLDS(launch->shared_memory == plan.shared_memory && launch->head.count == MANY && launch->head.workspace);
        CHECK(strcmp(launch->kernel, onepass_cuda_kernel_name(plan.kernel)) == 0, "%s was launched for %s",
              launch->kernel, s.call.loss);
    }
    s.call.loss = "mse";
    s.call.operand[ONEPASS_THIRD] = NULL;
    make_f64(fake, &s);
    CHECK_OK(run_on(&s, stream), "f64");
    HOLDS(strstr(last_launch(fake)->kernel, "_f64") != NULL);
}

/* The last two launches are those of a weighted mean, out of one workspace: the sum of the weights goes where the
 * second finds it. */
static void check_pair(const fake *fake, int32_t launches, const char *what) {
    if (!CHECK(fake->launches == launches, "%s: %d launches; expected %d", what, fake->launches, launches))
        return;
    const fake_launch *weights = &fake->launch[(launches - 2) % FAKE_MOST_LAUNCHES], *whole = last_launch(fake);
    char *workspace = whole->head.workspace;
    CHECK(strstr(weights->kernel, "weights") && strstr(whole->kernel, "general"), "%s: %s, then %s", what,
          weights->kernel, whole->kernel);
    HOLDS(weights->stream == whole->stream && weights->context == whole->context);
    HOLDS(weights->captured == whole->captured && weights->head.count == whole->head.count);
    HOLDS(workspace && weights->head.workspace == workspace);
    HOLDS(weights->head.data[CUDA_VALUE] == workspace + CUDA_WEIGHTS_AT);
    HOLDS(weights->head.dtype[CUDA_VALUE] == ONEPASS_F64);
}

static void test_weights(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    scene s;
    make_scene(fake, 0, MANY, &s);
    make_weighted(fake, &s);
    fake->set_current(fake->make_context(0));
    cuda_stream stream = fake->make_stream();
    CHECK_OK(run_on(&s, stream), "a weighted mean");
    check_pair(fake, 2, "a weighted mean");
    HOLDS(fake->counts.memory == 0 && fake->lookups == 2); /* the first workspace is the module's */

    /* Captured: two nodes, one slot. */
    fake->capture(stream, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    const void *first = last_launch(fake)->head.workspace;
    CHECK_OK(run_on(&s, stream), "a weighted mean, captured");
    check_pair(fake, 4, "a weighted mean, captured");
    HOLDS(last_launch(fake)->captured && last_launch(fake)->head.workspace != first);
    const char *slot = last_launch(fake)->head.workspace;
    CHECK_OK(run_on(&s, stream), "another");
    check_pair(fake, 6, "another");
    HOLDS((const char *)last_launch(fake)->head.workspace >= slot + CUDA_WORKSPACE_HEAD);
    fake->capture(stream, 0);

    /* A weight in f64 makes the computation so; gradients alone need the workspace too. */
    s.weight.dtype = ONEPASS_F64;
    s.weight.data = (void *)fake->allocate(FAKE_DEVICE, 0, MANY * sizeof(double));
    s.call.value = NULL;
    CHECK_OK(run_on(&s, stream), "gradients of a weighted mean in f64");
    check_pair(fake, 8, "gradients of a weighted mean in f64");
    HOLDS(strstr(last_launch(fake)->kernel, "_f64") != NULL);

    /* One launch where nothing is divided by the weights, and where there are none. */
    s.call.divisor = 3;
    CHECK_OK(run_on(&s, stream), "a weighted mean with a divisor");
    HOLDS(fake->launches == 9 && strstr(last_launch(fake)->kernel, "general"));
    s.call.divisor = 0;
    s.call.reduction = ONEPASS_SUM;
    CHECK_OK(run_on(&s, stream), "a weighted sum");
    HOLDS(fake->launches == 10 && strstr(last_launch(fake)->kernel, "general"));
    make_scene(fake, 0, 0, &s);
    make_weighted(fake, &s);
    CHECK_OK(run_on(&s, stream), "a weighted mean of nothing");
    HOLDS(fake->launches == 11 && last_launch(fake)->blocks == 1);
}

/* One tile needs no partial sums, but the sum of its weights a place; and where gradients alone are wanted it is the
 * launch before that has partial sums. */
static void test_weights_in_callers_workspace(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    scene s;
    static cuda_launch plan;
    job weights, job;
    char words[64];
    make_scene(fake, 0, 100, &s);
    make_weighted(fake, &s);
    s.call.workspace = (void *)fake->allocate(FAKE_DEVICE, 0, CUDA_WORKSPACE_HEAD);
    memset(s.call.workspace, 0, CUDA_WORKSPACE_HEAD);
    s.call.workspace_size = CUDA_WORKSPACE_HEAD - 1;
    expect_refusal(onepass_run(&s.call), ONEPASS_INVALID_ARGUMENT, "workspace_size|255|256", "a workspace too small");
    HOLDS(fake->launches == 0);
    s.call.workspace_size = CUDA_WORKSPACE_HEAD;
    CHECK_OK(onepass_run(&s.call), "a workspace that is just enough");
    check_pair(fake, 2, "in the caller's workspace");
    HOLDS(last_launch(fake)->head.workspace == s.call.workspace && fake->counts.memory == 0);

    make_scene(fake, 0, MANY, &s);
    make_weighted(fake, &s);
    s.call.value = NULL;
    HOLDS(onepass_plan(&s.call, &job) == ONEPASS_OK);
    onepass_plan_weights(&job, &weights);
    onepass_cuda_plan(&weights, FAKE_MULTIPROCESSORS, &plan);
    HOLDS(plan.workspace > CUDA_WORKSPACE_HEAD);
    s.call.workspace = (void *)fake->allocate(FAKE_DEVICE, 0, plan.workspace);
    memset(s.call.workspace, 0, plan.workspace);
    s.call.workspace_size = plan.workspace - 1;
    snprintf(words, sizeof words, "workspace_size|%zu|%zu", plan.workspace - 1, plan.workspace);
    expect_refusal(onepass_run(&s.call), ONEPASS_INVALID_ARGUMENT, words, "too small for the weights' partial sums");
    s.call.workspace_size = plan.workspace;
    CHECK_OK(onepass_run(&s.call), "enough for the weights' partial sums");
    check_pair(fake, 4, "gradients alone, in the caller's workspace");
}

static void test_scale(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    scene s;
    make_scene(fake, 0, MANY, &s);
    onepass_call call = scaling(&s);
    CHECK_OK(onepass_scale(&call), "scale");
    HOLDS(fake->launches == 1 && strstr(last_launch(fake)->kernel, "scale") &&
          strstr(last_launch(fake)->kernel, "_f32"));
    HOLDS(!last_launch(fake)->head.workspace && last_launch(fake)->head.count == MANY);
    void *right = s.upstream.data;
    s.upstream.data = &(float){2};
    expect_refusal(onepass_scale(&call), ONEPASS_INVALID_MEMORY, "upstream|host memory", "scale by host memory");
    s.upstream.data = right;
    s.gradient[1].dtype = ONEPASS_F16;
    expect_refusal(onepass_scale(&call), ONEPASS_NOT_SUPPORTED, "gradient[1]|16 bits|anew", "scale 16 bits");
    HOLDS(fake->launches == 1);
}

/* The question about the upstream gradient is the kernel's: one launch, whatever it is, and no workspace. */
static void test_unless_one(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    scene s;
    make_scene(fake, 0, MANY, &s);
    s.call.value = NULL;
    CHECK_OK(onepass_run(&s.call), "a call without flags");
    HOLDS(fake->launches == 1 && last_launch(fake)->head.unless_one == 0);
    s.call.flags = ONEPASS_UNLESS_ONE;
    CHECK_OK(onepass_run(&s.call), "unless one");
    HOLDS(fake->launches == 2 && last_launch(fake)->head.unless_one == 1);
    HOLDS(strstr(last_launch(fake)->kernel, "_general_") && !last_launch(fake)->head.workspace);
    HOLDS(last_launch(fake)->head.data[CUDA_UPSTREAM] == s.upstream.data && !last_launch(fake)->head.data[CUDA_VALUE]);
    s.gradient[1].dtype = ONEPASS_F16;
    CHECK_OK(onepass_run(&s.call), "unless one, in 16 bits");
    HOLDS(fake->launches == 3 && last_launch(fake)->head.unless_one == 1);
    HOLDS(strstr(last_launch(fake)->kernel, "general") && last_launch(fake)->head.dtype[CUDA_GRADIENT + 1] == 1);
    void *right = s.upstream.data;
    s.upstream.data = &(float){1};
    expect_refusal(onepass_run(&s.call), ONEPASS_INVALID_MEMORY, "upstream|host memory", "upstream in host memory");
    s.upstream.data = right;
    s.call.value = &s.value;
    expect_refusal(onepass_run(&s.call), ONEPASS_INVALID_ARGUMENT, "value|ONEPASS_UNLESS_ONE", "with a value");
    HOLDS(fake->launches == 3);
}

/* The numbers that a kernel is told, by the definition: in the state in which every program begins. */
static void check_numbers(const cuda_head *head, bool in_double, const char *what) {
    const volatile double divisor = 29999, beta = 0.1;
    CHECK(head->divisor == divisor && head->reciprocal == 0, "%s: expected the divisor %g, got %a and %a", what,
          divisor, head->divisor, head->reciprocal);
    if (in_double) {
        CHECK(head->scale.f64 == 1 / divisor, "%s: expected the scale %a, got %a", what, 1 / divisor, head->scale.f64);
        CHECK(head->parameter.f64[0] == beta, "%s: expected beta %a, got %a", what, beta, head->parameter.f64[0]);
    } else {
        CHECK(head->scale.f32 == (float)(1 / divisor), "%s: expected the scale %a, got %a", what,
              (double)(float)(1 / divisor), (double)head->scale.f32);
        CHECK(head->parameter.f32[0] == (float)beta, "%s: expected beta %a, got %a", what, (double)(float)beta,
              (double)head->parameter.f32[0]);
    }
}

/* Whatever the caller's rounding mode, and it finds its exception flags as they were. */
static void test_rounding(void *unused) {
    (void)unused;
    static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    static const char *const names[] = {"nearest", "upward", "downward", "toward zero"};
    fake *fake = find_fake();
    scene s;
    make_scene(fake, 0, 29999, &s);
    s.call.loss = "smooth_l1";
    s.call.parameter_count = 1;
    s.call.parameter[0] = 0.1;
    for (int i = 0; i < 8; i++) {
        if (i == 4)
            make_f64(fake, &s);
        fenv_t standard;
        fegetenv(&standard);
        fesetround(modes[i % 4]);
        feclearexcept(FE_ALL_EXCEPT);
        const onepass_status status = onepass_run(&s.call);
        const int raised = fetestexcept(FE_ALL_EXCEPT), mode = fegetround();
        fesetenv(&standard);
        CHECK_OK(status, names[i % 4]);
        CHECK(raised == 0 && mode == modes[i % 4], "%s: exception flags %x, mode %x", names[i % 4], (unsigned)raised,
              (unsigned)mode);
        check_numbers(&last_launch(fake)->head, i >= 4, names[i % 4]);
    }
    HOLDS(fake->launches == 8);
}

/* ---------------------------------------------------------------- workspaces -- */

static void *workspace_of_run(fake *fake, scene *s, cuda_stream stream) {
    CHECK_OK(run_on(s, stream), "run");
    return last_launch(fake)->head.workspace;
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

enum {
    FOR_GOOD = 64 /* streams that keep their workspaces */
};

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

/* In a context that is prepared and has been used, a captured call may still be the first that needs a kernel, the
 * module for f64, or a slab. */
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
    HOLDS(fake->lookups == 2 && fake->loads == 1 && fake->counts.memory == 1);
    HOLDS(last_launch(fake)->captured && strstr(last_launch(fake)->kernel, "onepass_hinge"));
    make_f64(fake, &s);
    void *second = workspace_of_run(fake, &s, stream);
    HOLDS(fake->lookups == 3 && fake->loads == 2 && fake->counts.memory == 1 && first != second);
    HOLDS(last_launch(fake)->captured && strstr(last_launch(fake)->kernel, "_f64"));
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

/* ------------------------------------------------------------------- threads -- */

enum {
    THREADS = 8
};

typedef struct crowd {
    pthread_barrier_t barrier;
    cuda_context context; /* null: none is current */
    int rounds;
    bool churn; /* a new stream each time */
    bool in_f64;
} crowd;

static void *one_of_many(void *argument) {
    crowd *crowd = argument;
    fake *fake = find_fake();
    scene s;
    uintptr_t wrong = 0;
    make_scene(fake, 0, MANY, &s);
    if (crowd->in_f64)
        make_f64(fake, &s);
    fake->set_current(crowd->context);
    cuda_stream stream = crowd->context ? fake->make_stream() : NULL;
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
    HOLDS(fake->loads == 1 && fake->lookups == 1 && fake->retains == 1 && fake->launches == 3 * THREADS);
    HOLDS(fake->counts.memory == 0); /* the default stream has the module's own workspace */
}

static void test_first_calls_own_context(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    crowd crowd = {.rounds = 3, .context = fake->make_context(0)};
    fake->slow = true;
    run_crowd(&crowd);
    HOLDS(fake->loads == 1 && fake->lookups == 1 && fake->retains == 0 && fake->counts.memory == THREADS - 1);
}

/* The same in contexts that are prepared, so that they meet at the lookup: first for f32, then for f64 and its module.
 * Often, since they do not always meet. */
static void test_first_lookups(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    fake->slow = true;
    for (int i = 0; i < 20; i++) {
        crowd crowd = {.rounds = 1, .context = fake->make_context(0)};
        fake->set_current(crowd.context);
        CHECK_OK(onepass_prepare(ONEPASS_CUDA, 0), "prepare");
        HOLDS(fake->loads == 2 * i + 1 && fake->lookups == 2 * i);
        run_crowd(&crowd);
        HOLDS(fake->loads == 2 * i + 1 && fake->lookups == 2 * i + 1);
        crowd.in_f64 = true;
        run_crowd(&crowd);
        HOLDS(fake->loads == 2 * i + 2 && fake->lookups == 2 * i + 2);
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

/* -------------------------------------------------------------------- errors -- */

/* An earlier kernel went wrong: the sentence says so. */
static void test_sticky(void *unused) {
    (void)unused;
    static const cuda_result sticky[] = {700, 719};
    fake *fake = find_fake();
    scene s;
    make_scene(fake, 0, MANY, &s);
    for (int i = 0; i < 2; i++) {
        fake->fail_in = "cuLaunchKernel";
        fake->fail_at = 1;
        fake->fail_with = sticky[i];
        expect_refusal(onepass_run(&s.call), ONEPASS_DEVICE_FAILED,
                       i ? "launching the kernel onepass_mse|CUDA_ERROR_LAUNCH_FAILED|an earlier kernel in this context"
                         : "launching the kernel onepass_mse|CUDA_ERROR_ILLEGAL_ADDRESS|what the fake says|an earlier",
                       "a sticky error");
    }
    fake->fail_at = 1;
    fake->fail_with = 701;
    expect_refusal(onepass_run(&s.call), ONEPASS_DEVICE_FAILED, "launching|701", "another error");
    HOLDS(strstr(onepass_message(), "earlier") == NULL);
    CHECK_OK(onepass_run(&s.call), "the next call");
}

/* What is wrong with the arguments is said before what is wrong with the device. */
static void test_order_of_checks(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    scene s;
    make_scene(fake, 0, MANY, &s);
    fake->gpus = 0;
    s.call.reduction = 7;
    expect_refusal(onepass_run(&s.call), ONEPASS_INVALID_ARGUMENT, "reduction", "a bad argument and no GPU");
    s.call.reduction = ONEPASS_MEAN;
    s.call.device_index = -1;
    expect_refusal(onepass_run(&s.call), ONEPASS_INVALID_ARGUMENT, "device_index is -1", "index -1 and no GPU");
    HOLDS(fake->calls == 0);
    s.call.device_index = 0;
    expect_refusal(onepass_run(&s.call), ONEPASS_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no GPU");
}

static const struct {
    const char *name;
    void (*run)(void *unused);
} tests[] = {
    {"calls on the CPU leave the driver alone", test_cpu_alone},
    {"no kernels", test_no_kernels},
    {"no device", test_no_device},
    {"old driver", test_old_driver},
    {"older driver", test_older_driver},
    {"machine", test_machine},
    {"fork", test_fork},
    {"contexts", test_contexts},
    {"reset", test_reset},
    {"handle of a context", test_handle_of_context},
    {"lookups", test_lookups},
    {"failed lookups", test_failed_lookup},
    {"pointers", test_pointers},
    {"empty", test_empty},
    {"launch", test_launch},
    {"weights", test_weights},
    {"weights in the caller's workspace", test_weights_in_callers_workspace},
    {"scale", test_scale},
    {"unless one", test_unless_one},
    {"rounding", test_rounding},
    {"the caller's workspace", test_callers_workspace},
    {"stream identity", test_stream_identity},
    {"recycling", test_recycling},
    {"unrecorded", test_unrecorded},
    {"first call captured", test_first_call_captured},
    {"first use of a kernel captured", test_first_kernel_captured},
    {"slots", test_slots},
    {"first calls of eight threads", test_first_calls},
    {"first calls of eight threads in a context of their own", test_first_calls_own_context},
    {"first lookups of eight threads", test_first_lookups},
    {"churn", test_churn},
    {"sticky errors", test_sticky},
    {"order of checks", test_order_of_checks},
};

static void look_for_fake(void *unused) {
    (void)unused;
    HOLDS(find_fake() != NULL);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "missing-symbol") == 0)
        return run_missing_symbol();
    if (argc > 1 && strcmp(argv[1], "no-driver") == 0)
        return run_no_driver();
    run_child("the fake driver is found", look_for_fake, NULL);
    for (size_t i = 0; i < sizeof tests / sizeof *tests && (i > 0 || check_failed == 0); i++)
        run_child(tests[i].name, tests[i].run, NULL);
    return check_finish();
}
