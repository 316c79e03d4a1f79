/*
 * The CUDA engine's host side against a fake driver: which memory a call may have its tensors in, what is launched for
 * it, and what is said if the launch fails.
 */
#define _GNU_SOURCE
#include <fenv.h>

#include "cuda_host.h"
#include "plan/plan.h"

static int64_t elements_of(const fake_launch *launch) {
    return strstr(launch->kernel, "_small_") ? launch->head.total.count : launch->head.count;
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
    HOLDS(fake->launches == 1 && last_launch(fake)->blocks == 1 && !last_launch(fake)->head.total.workspace);
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
        HOLDS(launch->shared_memory == plan.shared_memory && elements_of(launch) == MANY &&
              launch->head.total.workspace);
        char kernel[64];
        snprintf(kernel, sizeof kernel, "onepass_%s_%s", s.call.loss, onepass_cuda_variant[plan.variant].name);
        CHECK(strcmp(launch->kernel, kernel) == 0 && strstr(launch->image, " f32"), "%s of %s was launched for %s",
              launch->kernel, launch->image, s.call.loss);
    }
    s.call.loss = "mse";
    s.call.operand[ONEPASS_THIRD] = NULL;
    make_f64(fake, &s);
    CHECK_OK(run_on(&s, stream), "f64");
    HOLDS(strcmp(last_launch(fake)->image, "mse f64") == 0);
}

/* The last two launches are those of a weighted mean, out of one workspace: the sum of the weights goes where the
 * second finds it. */
static void check_pair(const fake *fake, int32_t launches, const char *what) {
    if (!CHECK(fake->launches == launches, "%s: %d launches; expected %d", what, fake->launches, launches))
        return;
    const fake_launch *weights = &fake->launch[(launches - 2) % FAKE_MOST_LAUNCHES], *whole = last_launch(fake);
    char *workspace = whole->head.total.workspace;
    CHECK(strstr(weights->kernel, "weights") && strstr(whole->kernel, "general"), "%s: %s, then %s", what,
          weights->kernel, whole->kernel);
    HOLDS(weights->stream == whole->stream && weights->context == whole->context);
    HOLDS(weights->captured == whole->captured && elements_of(weights) == elements_of(whole));
    HOLDS(workspace && weights->head.total.workspace == workspace);
    HOLDS(weights->head.total.value == workspace + CUDA_WEIGHTS_AT);
    HOLDS(weights->head.total.dtype == ONEPASS_F64);
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
    const void *first = last_launch(fake)->head.total.workspace;
    CHECK_OK(run_on(&s, stream), "a weighted mean, captured");
    check_pair(fake, 4, "a weighted mean, captured");
    HOLDS(last_launch(fake)->captured && last_launch(fake)->head.total.workspace != first);
    const char *slot = last_launch(fake)->head.total.workspace;
    CHECK_OK(run_on(&s, stream), "another");
    check_pair(fake, 6, "another");
    HOLDS((const char *)last_launch(fake)->head.total.workspace >= slot + CUDA_WORKSPACE_HEAD);
    fake->capture(stream, 0);

    /* A weight in f64 makes the computation so; gradients alone need the workspace too. */
    s.weight.dtype = ONEPASS_F64;
    s.weight.data = (void *)fake->allocate(FAKE_DEVICE, 0, MANY * sizeof(double));
    s.call.value = NULL;
    CHECK_OK(run_on(&s, stream), "gradients of a weighted mean in f64");
    check_pair(fake, 8, "gradients of a weighted mean in f64");
    HOLDS(strcmp(last_launch(fake)->image, "mse f64") == 0);

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

/* Without a gradient the mean over dense weights or a mask is one launch; a divisor that is a tensor comes first. */
static void test_mean_in_one_pass(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    scene s;
    job job;
    make_scene(fake, 0, MANY, &s);
    s.call.gradient[0] = s.call.gradient[1] = s.call.upstream = NULL;
    fake->set_current(fake->make_context(0));
    cuda_stream stream = fake->make_stream();
    make_masked(fake, &s);
    CHECK_OK(run_on(&s, stream), "a masked mean");
    HOLDS(fake->launches == 1 && strcmp(last_launch(fake)->kernel, "onepass_mse_small_masked_mean") == 0);
    make_weighted(fake, &s);
    CHECK_OK(run_on(&s, stream), "a mean over weights and a mask");
    HOLDS(fake->launches == 2 && strcmp(last_launch(fake)->kernel, "onepass_mse_small_mean") == 0);
    s.call.divisor_tensor = &s.upstream;
    HOLDS(onepass_plan(&s.call, &job) == ONEPASS_OK && job.over_weights && !onepass_cuda_weighs_itself(&job));
    s.call.divisor_tensor = NULL;
    s.call.gradient[0] = &s.gradient[0];
    CHECK_OK(run_on(&s, stream), "one with a gradient");
    HOLDS(fake->launches == 4 && strcmp(last_launch(fake)->kernel, "onepass_mse_weighted_both") == 0);

    /* A divisor that the kernel can read where it lies needs no launch before, and what a mean was divided by none
     * behind. */
    s.call.value = NULL;
    s.call.divisor_tensor = &s.upstream;
    s.upstream.dtype = ONEPASS_F64;
    CHECK_OK(run_on(&s, stream), "a gradient with a known divisor");
    HOLDS(fake->launches == 5 && strcmp(last_launch(fake)->kernel, "onepass_mse_weighted_backward") == 0);
    HOLDS(last_launch(fake)->backward.divisor == s.upstream.data);
    s.upstream.dtype = ONEPASS_F32;
    fake->divisor = s.upstream.data;
    CHECK_OK(run_on(&s, stream), "a gradient with a divisor of another type");
    HOLDS(fake->launches == 7 && !last_launch(fake)->general.divisor);
    s.call.divisor_tensor = s.call.gradient[0] = NULL;
    s.call.value = &s.value;
    s.call.divided_by = &s.upstream;
    CHECK_OK(run_on(&s, stream), "a mean that tells what it was divided by");
    HOLDS(fake->launches == 8 && last_launch(fake)->small_mean.divided_by == s.upstream.data);
}

/* With a gradient it is so where one block has all elements. */
static void test_gradient_in_one_pass(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    scene s;
    make_scene(fake, 0, 2048, &s);
    make_weighted(fake, &s);
    s.call.gradient[1] = s.call.upstream = NULL;
    fake->set_current(fake->make_context(0));
    cuda_stream stream = fake->make_stream();
    CHECK_OK(run_on(&s, stream), "a mean over weights with its gradient");
    HOLDS(fake->launches == 1 && strcmp(last_launch(fake)->kernel, "onepass_mse_few_tiles_weighted_both") == 0);
    s.call.upstream = &s.upstream;
    CHECK_OK(run_on(&s, stream), "one with an upstream gradient");
    HOLDS(fake->launches == 3 && strcmp(last_launch(fake)->kernel, "onepass_mse_weighted_both") == 0);
}

/* Few elements are divided by their number, which a product would do with other bits one time in 2^29; where it would
 * not, they are multiplied. */
static void test_means_of_few(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    fake->set_current(fake->make_context(0));
    cuda_stream stream = fake->make_stream();
    for (int64_t count = 768; count <= 4096; count += count == 768 ? 256 : 3072) {
        scene s;
        make_scene(fake, 0, count, &s);
        s.call.gradient[0] = s.call.gradient[1] = s.call.upstream = NULL;
        CHECK_OK(run_on(&s, stream), "a mean of few");
        HOLDS(strstr(last_launch(fake)->kernel, count <= 1024 ? "tiny_forward" : "few_tiles_forward") != NULL);
        HOLDS(last_launch(fake)->tiny.number == (count == 768 ? -768 : 1. / (double)count));
    }
}

/* Of whole lines, where all is known, it is so for the gradient alone; blocks are counted from the last one. */
static void test_gradient_of_whole_lines(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    scene s;
    make_scene(fake, 0, 2048, &s);
    const onepass_tensor divisor = {(void *)fake->allocate(FAKE_DEVICE, 0, sizeof(double)), ONEPASS_F64, 0, NULL, NULL};
    s.call.value = s.call.gradient[1] = NULL;
    fake->set_current(fake->make_context(0));
    cuda_stream stream = fake->make_stream();
    CHECK_OK(run_on(&s, stream), "a gradient");
    const fake_launch *launch = last_launch(fake);
    HOLDS(strcmp(launch->kernel, "onepass_mse_whole_backward") == 0 && launch->blocks == 4 && launch->threads == 128);
    HOLDS(launch->whole.gradient == (float *)s.gradient[0].data + 1536 && launch->whole.scale.f32 == 1.f / 2048);
    s.upstream.dtype = ONEPASS_F64;
    CHECK_OK(run_on(&s, stream), "one with an upstream gradient in double");
    HOLDS(strcmp(last_launch(fake)->kernel, "onepass_mse_backward") == 0);
    s.upstream.dtype = ONEPASS_F32;
    s.call.divisor_tensor = &divisor;
    make_masked(fake, &s);
    CHECK_OK(run_on(&s, stream), "one under a mask");
    HOLDS(strcmp(last_launch(fake)->kernel, "onepass_mse_whole_masked_backward") == 0);
    HOLDS(last_launch(fake)->whole.weight == (char *)s.mask.data + 1536);
    make_weighted(fake, &s);
    CHECK_OK(run_on(&s, stream), "one with weights under a mask");
    HOLDS(strcmp(last_launch(fake)->kernel, "onepass_mse_whole_mean_backward") == 0);
    HOLDS(last_launch(fake)->whole.weight == (float *)s.weight.data + 1536);
    HOLDS(last_launch(fake)->whole.divisor == divisor.data && fake->launches == 4);
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
    HOLDS(last_launch(fake)->head.total.workspace == s.call.workspace && fake->counts.memory == 0);

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

/* Far apart, but within what a tensor may span: the plan's arithmetic must not overflow, which sanitizers see. Nobody
 * looks at the addresses; the value lies below the others, which span all above. */
static void test_wide_strides(void *unused) {
    (void)unused;
    static const int64_t strides[] = {INT64_C(1) << 53, (INT64_C(1) << 59) + 1};
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++) {
        static cuda_launch plan;
        const int64_t shape = 2;
        const onepass_tensor p = {(void *)0x20000, ONEPASS_F32, 1, &shape, &strides[i]};
        const onepass_tensor m = {(void *)0x20000, ONEPASS_BOOL, 1, &shape, &strides[i]};
        const onepass_tensor v = {(void *)0x10000, ONEPASS_F32, 0, NULL, NULL};
        onepass_call call = {.size = sizeof call, .loss = "mse", .operand = {&p, &p}, .value = &v};
        job job;
        for (int masked = 0; masked < 2; masked++) {
            call.mask = masked ? &m : NULL;
            CHECK_OK(onepass_plan(&call, &job), "wide strides");
            onepass_cuda_plan(&job, FAKE_MULTIPROCESSORS, &plan);
            HOLDS(plan.variant == variant_general);
            HOLDS(plan.parameter.general.view[CUDA_PREDICTION].stride[0] == strides[i]);
        }
    }
}

static void test_scale(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    scene s;
    make_scene(fake, 0, MANY, &s);
    onepass_call call = scaling(&s);
    CHECK_OK(onepass_scale(&call), "scale");
    HOLDS(fake->launches == 1 && strstr(last_launch(fake)->kernel, "scale") &&
          strcmp(last_launch(fake)->image, "every_loss f32") == 0);
    HOLDS(!last_launch(fake)->head.total.workspace && elements_of(last_launch(fake)) == MANY);
    void *right = s.upstream.data;
    s.upstream.data = &(float){2};
    expect_refusal(onepass_scale(&call), ONEPASS_INVALID_MEMORY, "upstream|host memory", "scale by host memory");
    s.upstream.data = right;
    s.gradient[1].dtype = ONEPASS_F16;
    expect_refusal(onepass_scale(&call), ONEPASS_NOT_SUPPORTED, "gradient[1]|16 bits|anew", "scale 16 bits");
    HOLDS(fake->launches == 1);
}

/* The question about the upstream gradient is the kernel's: one launch, whatever it is, and no workspace. */
static void test_skip_if_one(void *unused) {
    (void)unused;
    fake *fake = find_fake();
    scene s;
    make_scene(fake, 0, MANY, &s);
    s.call.value = NULL;
    CHECK_OK(onepass_run(&s.call), "a call without flags");
    HOLDS(fake->launches == 1 && last_launch(fake)->head.skip_if_one == 0);
    s.call.flags = ONEPASS_SKIP_IF_UPSTREAM_IS_ONE;
    CHECK_OK(onepass_run(&s.call), "unless one");
    HOLDS(fake->launches == 2 && last_launch(fake)->head.skip_if_one == 1);
    HOLDS(strstr(last_launch(fake)->kernel, "_general") && !last_launch(fake)->head.total.workspace);
    HOLDS(last_launch(fake)->head.data[CUDA_UPSTREAM] == s.upstream.data && !last_launch(fake)->head.data[CUDA_VALUE]);
    s.gradient[1].dtype = ONEPASS_F16;
    CHECK_OK(onepass_run(&s.call), "unless one, in 16 bits");
    HOLDS(fake->launches == 3 && last_launch(fake)->head.skip_if_one == 1);
    HOLDS(strstr(last_launch(fake)->kernel, "general") && last_launch(fake)->head.dtype[CUDA_GRADIENT + 1] == 1);
    void *right = s.upstream.data;
    s.upstream.data = &(float){1};
    expect_refusal(onepass_run(&s.call), ONEPASS_INVALID_MEMORY, "upstream|host memory", "upstream in host memory");
    s.upstream.data = right;
    s.call.value = &s.value;
    expect_refusal(onepass_run(&s.call), ONEPASS_INVALID_ARGUMENT, "value|ONEPASS_SKIP_IF_UPSTREAM_IS_ONE",
                   "with a value");
    HOLDS(fake->launches == 3);
}

/* The numbers that a kernel is told, by the definition: in the state in which every program begins. */
static void check_numbers(const cuda_head *head, bool in_double, const char *what) {
    const volatile double divisor = 29999, beta = 0.1;
    CHECK(head->total.divides && head->total.number == divisor, "%s: expected the divisor %g, got %a", what, divisor,
          head->total.number);
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

/* -------------------------------------------------------------------- errors -- */

/* An earlier kernel went wrong: the sentence says so. */
static void test_sticky(void *unused) {
    (void)unused;
    static const cuda_result sticky[] = {700, 719};
    fake *fake = find_fake();
    scene s;
    make_scene(fake, 0, MANY, &s);
    for (int i = 0; i < 2; i++) {
        fake->fail_in = "cuLaunchKernelEx";
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

static const host_test tests[] = {
    {"pointers", test_pointers},
    {"empty", test_empty},
    {"launch", test_launch},
    {"weights", test_weights},
    {"a mean in one pass", test_mean_in_one_pass},
    {"a mean with its gradient in one pass", test_gradient_in_one_pass},
    {"means of few elements", test_means_of_few},
    {"a gradient of whole lines", test_gradient_of_whole_lines},
    {"weights in the caller's workspace", test_weights_in_callers_workspace},
    {"wide strides", test_wide_strides},
    {"scale", test_scale},
    {"unless one", test_skip_if_one},
    {"rounding", test_rounding},
    {"sticky errors", test_sticky},
};

int main(void) {
    run_tests(tests, sizeof tests / sizeof *tests);
    return check_finish();
}
