/*
 * What the tests of the CUDA engine's host side share: kernels that are none, the fake driver, calls whose tensors lie
 * in the fake's memory, and processes. The library opens the driver once a process, so each case runs in a child of
 * its own, which begins with nothing opened.
 */
#ifndef ONEPASS_TESTS_CUDA_HOST_H
#define ONEPASS_TESTS_CUDA_HOST_H

#include <dlfcn.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "fake_driver.h"

#define HOLDS(condition) CHECK(condition, "%s does not hold", #condition)

/* ------------------------------------------------------------- the kernels -- */

/* The archive's own stay out of a program that has these. */
#define UNIT(name)                                                                                                     \
    extern const cuda_images onepass_cuda_images_##name;                                                               \
    const cuda_images onepass_cuda_images_##name = {(const unsigned char *)"fake " #name " f32",                       \
                                                    (const unsigned char *)"fake " #name " f64"};
#include "row_units.h"    /* of losses over rows, ... */
#include "units.h"        /* ... of others, a line for each header, ... */
#include "vector_units.h" /* ... and of vector losses */
UNIT(every_loss)
#undef UNIT

/* Not const: a test sets the toolkit before the driver is opened. */
int32_t onepass_cuda_toolkit = FAKE_VERSION;
char onepass_cuda_missing[] = "nvcc was not found";

enum {
#define UNIT(name) +1
    LOSS_UNITS = 0
#include "units.h"
#undef UNIT
};

/* --------------------------------------------------------------- the driver -- */

static inline bool driver_is_open(void) {
    return dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) != NULL;
}

/* Null if the library that is found is not the fake. */
static inline fake *find_fake(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *symbol = library ? dlsym(library, "fake_driver") : NULL;
    fake *(*function)(void) = NULL;
    memcpy(&function, &symbol, sizeof function);
    return function ? function() : NULL;
}

static inline const fake_launch *last_launch(const fake *fake) {
    return &fake->launch[(fake->launches - 1) % FAKE_MOST_LAUNCHES];
}

/* ---------------------------------------------------------------- the calls -- */

enum {
    MANY = 32768, /* elements: several blocks, so partial sums and a workspace */
    FOR_GOOD = 64 /* streams of a context that keep their workspaces */
};

/* A call with everything wanted, all of it in memory of one GPU. */
typedef struct scene {
    onepass_call call;
    int64_t shape[1], no_strides[1];
    onepass_tensor prediction, target, weight, mask, upstream, value, gradient[2];
} scene;

static inline onepass_tensor place(fake *fake, int32_t gpu, int32_t ndim, const int64_t *shape) {
    const size_t size = ndim ? (size_t)shape[0] * sizeof(float) : sizeof(float);
    return (onepass_tensor){(void *)fake->allocate(FAKE_DEVICE, gpu, size ? size : 1), ONEPASS_F32, ndim, shape, NULL};
}

static inline void make_scene(fake *fake, int32_t gpu, int64_t count, scene *s) {
    *s = (scene){.call = ONEPASS_CALL_INIT, .shape = {count}};
    s->prediction = place(fake, gpu, 1, s->shape);
    s->target = place(fake, gpu, 1, s->shape);
    s->upstream = place(fake, gpu, 0, NULL);
    s->value = place(fake, gpu, 0, NULL);
    s->gradient[0] = place(fake, gpu, 1, s->shape);
    s->gradient[1] = place(fake, gpu, 1, s->shape);
    s->call.loss = "mse";
    s->call.operand[0] = &s->prediction;
    s->call.operand[1] = &s->target;
    s->call.upstream = &s->upstream;
    s->call.value = &s->value;
    s->call.gradient[0] = &s->gradient[0];
    s->call.gradient[1] = &s->gradient[1];
    s->call.device = ONEPASS_CUDA;
    s->call.device_index = gpu;
}

/* From now on the call has a weight for each element. */
static inline void make_weighted(fake *fake, scene *s) {
    s->weight = place(fake, s->call.device_index, 1, s->shape);
    s->call.weight = &s->weight;
}

/* From now on the call has a mask for each element. */
static inline void make_masked(fake *fake, scene *s) {
    s->mask = place(fake, s->call.device_index, 1, s->shape);
    s->mask.dtype = ONEPASS_BOOL;
    s->call.mask = &s->mask;
}

/* From now on the call's compute type is f64. */
static inline void make_f64(fake *fake, scene *s) {
    s->prediction.dtype = ONEPASS_F64;
    s->prediction.data =
        (void *)fake->allocate(FAKE_DEVICE, s->call.device_index, (size_t)s->shape[0] * sizeof(double));
}

static inline onepass_status run_on(scene *s, cuda_stream stream) {
    s->call.stream = stream;
    return onepass_run(&s->call);
}

/* The call that scales the scene's gradients. */
static inline onepass_call scaling(const scene *s) {
    onepass_call call = ONEPASS_CALL_INIT;
    call.upstream = s->call.upstream;
    call.gradient[0] = s->call.gradient[0];
    call.gradient[1] = s->call.gradient[1];
    call.device = ONEPASS_CUDA;
    call.device_index = s->call.device_index;
    return call;
}

/* `words` must all be in the message; they stand apart by '|'. */
static inline void expect_refusal(onepass_status status, onepass_status expected, const char *words, const char *what) {
    char list[256], *rest = list;
    CHECK(status == expected, "%s: expected %s, got %s: \"%s\"", what, onepass_status_name(expected),
          onepass_status_name(status), onepass_message());
    snprintf(list, sizeof list, "%s", words);
    for (char *word; (word = strtok_r(rest, "|", &rest)) != NULL;)
        CHECK(strstr(onepass_message(), word) != NULL, "%s: the message lacks \"%s\": \"%s\"", what, word,
              onepass_message());
}

/* ------------------------------------------------------------ the processes -- */

/* What a child tells its parent. */
typedef struct report {
    long passed, failed;
    int32_t calls;
    fake_counts counts;
} report;

static report *shared_report;

/* Runs a case in a child; its checks count here. */
static inline void run_child(const char *name, void (*run)(void *argument), void *argument) {
    if (!shared_report)
        shared_report = mmap(NULL, sizeof *shared_report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *shared_report = (report){0};
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        check_passed = check_failed = 0;
        run(argument);
        if (driver_is_open() && find_fake())
            CHECK(find_fake()->violations == 0, "%s: %d violations, the last: %s", name, find_fake()->violations,
                  find_fake()->violation);
        shared_report->passed = check_passed;
        shared_report->failed = check_failed;
        exit(0);
    }
    int status = -1;
    const bool ended = child > 0 && waitpid(child, &status, 0) == child;
    check_passed += shared_report->passed;
    check_failed += shared_report->failed;
    CHECK(ended && WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: the child ended with status %x", name,
          (unsigned)status);
    if (shared_report->failed)
        printf("failed: %s\n", name);
}

typedef struct host_test {
    const char *name;
    void (*run)(void *unused);
} host_test;

static inline void look_for_fake(void *unused) {
    (void)unused;
    HOLDS(find_fake() != NULL);
}

/* Each in a child of its own; none if the fake is not found. */
static inline void run_tests(const host_test *tests, size_t count) {
    run_child("the fake driver is found", look_for_fake, NULL);
    if (check_failed != 0)
        return;
    for (size_t i = 0; i < count; i++)
        run_child(tests[i].name, tests[i].run, NULL);
}

#endif
