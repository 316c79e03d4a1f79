/*
 * The CUDA engine's host side against a fake driver, up to the first launch: what it says when something is missing,
 * which context it uses and leaves current, and which kernels it looks up there.
 *
 *   test_cuda_host_preparation                   with the fake as libcuda.so.1
 *   test_cuda_host_preparation missing-symbol    with a fake that lacks a function
 *   test_cuda_host_preparation no-driver         with none
 */
#define _GNU_SOURCE
#include "cuda_host.h"

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
    onepass_cuda_toolkit = 0;
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
    onepass_cuda_toolkit = 13010;
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
    CHECK(fake->loads == 6 && fake->lookups == 3,
          "%d modules were loaded and %d kernels looked up; expected two and one in each of three contexts",
          fake->loads, fake->lookups);

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
    HOLDS(before != after && fake->retains == 2 && fake->loads == 4 && fake->lookups == 2 && fake->depth() == 0);
    HOLDS(context_of_run(&s) == after && fake->loads == 4 && fake->lookups == 2);

    /* The same with that context current, as the runtime library leaves it. */
    fake->set_current(fake->primary(0));
    fake->reset_primary(0);
    HOLDS(context_of_run(&s) != after && fake->retains == 3 && fake->loads == 6 && fake->lookups == 3);
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
        HOLDS(fake->loads == 3 * (i + 1) && fake->lookups == 2 * (i + 1));
        fake->set_current(NULL);
        fake->destroy_context(own);
    }
    HOLDS(fake->counts.memory == 0 && fake->counts.modules == 0 && fake->counts.streams == 0);
}

/* ------------------------------------------------------------------- kernels -- */

/* Preparing loads what serves every loss, and looks up no kernel; a call loads its loss's unit and looks up the kernel
 * that it needs, once a context. */
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
        HOLDS(fake->loads == 2 && fake->lookups == 1);
    }
    for (int again = 0; again < 2; again++) {
        CHECK_OK(onepass_scale(&scale), "scale");
        HOLDS(fake->loads == 2 && fake->lookups == 2);
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
    CHECK(fake->loads == LOSS_UNITS + 1, "%d modules for %d units; expected none in f64", fake->loads, LOSS_UNITS);

    make_f64(fake, &s);
    for (int again = 0; again < 2; again++) {
        CHECK_OK(onepass_run(&s.call), "f64");
        HOLDS(fake->loads == LOSS_UNITS + 2 && fake->lookups == losses + 2);
    }

    /* In another context all begins anew, and f64 may be the first. */
    fake->set_current(fake->make_context(0));
    CHECK_OK(onepass_prepare(ONEPASS_CUDA, 0), "prepare another");
    HOLDS(fake->loads == LOSS_UNITS + 3 && fake->lookups == losses + 2);
    CHECK_OK(onepass_run(&s.call), "f64 in another");
    HOLDS(fake->loads == LOSS_UNITS + 4 && fake->lookups == losses + 3);
}

/* What fails is said; nothing is launched or allocated but a module, and the next attempt is in order. */
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
         "finding the kernel onepass_mse|for f32 failed|CUDA_ERROR_NOT_FOUND|what the fake says", 2, 1, false},
        {"cuModuleLoadData", 222, ONEPASS_DEVICE_FAILED,
         "loading the kernels on GPU 0|CUDA 13.0|CUDA_ERROR_UNSUPPORTED_PTX_VERSION", 3, 2, true},
        {"cuModuleGetFunction", CUDA_ERROR_OUT_OF_MEMORY, ONEPASS_OUT_OF_MEMORY,
         "finding the kernel onepass_hinge|for f64 failed|CUDA_ERROR_OUT_OF_MEMORY", 4, 3, true},
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
        const bool loaded = strcmp(failures[i].function, "cuModuleGetFunction") == 0;
        HOLDS(fake->counts.modules == counts.modules + loaded && fake->counts.streams == counts.streams);
        HOLDS(fake->depth() == 0 && fake->mode() == 0);
        CHECK_OK(onepass_run(&s.call), "the next attempt");
        HOLDS(fake->loads == failures[i].loads && fake->lookups == failures[i].lookups);
        HOLDS(fake->launches == launches + 1 && strstr(last_launch(fake)->kernel, s.call.loss));
    }
}

static const host_test tests[] = {
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
    {"order of checks", test_order_of_checks},
};

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "missing-symbol") == 0)
        return run_missing_symbol();
    if (argc > 1 && strcmp(argv[1], "no-driver") == 0)
        return run_no_driver();
    run_tests(tests, sizeof tests / sizeof *tests);
    return check_finish();
}
