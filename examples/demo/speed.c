/*
 * How fast it is: the value and the gradient of a few losses on arrays too large for the caches, compared with the loop
 * that one would write by hand, compiled for this very machine, and with a loop that but reads two arrays and writes a
 * third, which is the least that must be done.
 */
#define _POSIX_C_SOURCE 200809L
#include "demo.h"
#include "gpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    COUNT = 1 << 25,
    REPETITIONS = 3
};
#define BYTES (COUNT * sizeof(float))

static float *prediction, *target, *gradient;

/* ---------------------------------------------------- loops by hand -- */

/* The sum of VALUE, and SLOPE/COUNT for each element. */
#define LOOP(name, VALUE, SLOPE)                                                                                       \
    static double name(void) {                                                                                         \
        float sum = 0;                                                                                                 \
        _Pragma("omp parallel for simd reduction(+ : sum)") for (int i = 0; i < COUNT; i++) {                          \
            const float p = prediction[i], t = target[i], x = p - t;                                                   \
            (void)x;                                                                                                   \
            sum += VALUE;                                                                                              \
            gradient[i] = SLOPE / COUNT;                                                                               \
        }                                                                                                              \
        return (double)sum / COUNT;                                                                                    \
    }
LOOP(only_memory, 0, (p + t))
LOOP(mse, x *x, 2 * x)
LOOP(huber, (fabsf(x) < 1 ? 0.5f * x * x : fabsf(x) - 0.5f), (fabsf(x) < 1 ? x : copysignf(1, x)))
LOOP(bce_with_logits, (1 - t) * p + log1pf(expf(-fabsf(p))) + (p < 0 ? -p : 0), (1 / (1 + expf(-p)) - t))

static const struct {
    const char *name;
    double (*by_hand)(void);
} losses[] = {{"mse", mse}, {"huber", huber}, {"bce_with_logits", bce_with_logits}};

/* --------------------------------------------------------- measuring -- */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double milliseconds_by_hand(double (*loop)(void), double *value) {
    const double begin = now();
    *value = loop();
    return 1e3 * (now() - begin);
}

static double milliseconds(const char *loss, float *value) {
    const double begin = now();
    must(onepass_mean_f32(loss, COUNT, prediction, target, value, gradient));
    return 1e3 * (now() - begin);
}

/* Waits for the GPU by fetching the value. */
static double milliseconds_on_gpu(const onepass_call *call, float *value) {
    const double begin = now();
    for (int i = 0; i < REPETITIONS; i++)
        must(onepass_run(call));
    gpu_download(value, call->value->data, sizeof *value);
    return 1e3 * (now() - begin) / REPETITIONS;
}

static double shortest(double a, double b) {
    return a < b ? a : b;
}

/* ------------------------------------------------------------ tables -- */

static void show_loss(const char *loss, double (*by_hand)(void)) {
    double ours = INFINITY, plain = INFINITY, least = INFINITY, plain_value = 0, unused;
    float value = 0;
    /* In turn, so that whatever else the machine does meets all alike. */
    for (int i = 0; i < REPETITIONS; i++) {
        ours = shortest(ours, milliseconds(loss, &value));
        plain = shortest(plain, milliseconds_by_hand(by_hand, &plain_value));
        least = shortest(least, milliseconds_by_hand(only_memory, &unused));
    }
    show_progress("");
    printf("%-18s %9.1f ms %9.1f ms %9.1f ms %12.0f %% %14.9g %14.9g\n", loss, ours, plain, least, 100 * least / ours,
           (double)value, plain_value);
    fflush(stdout);
}

static bool show_on_gpu(void) {
    static const int64_t shape[] = {COUNT};
    void *memory[3];
    for (int i = 0; i < 3; i++)
        memory[i] = gpu_allocate(BYTES);
    gpu_upload(memory[0], prediction, BYTES);
    gpu_upload(memory[1], target, BYTES);
    const onepass_tensor p = {memory[0], ONEPASS_F32, 1, shape, NULL}, t = {memory[1], ONEPASS_F32, 1, shape, NULL};
    const onepass_tensor g = {memory[2], ONEPASS_F32, 1, shape, NULL};
    const onepass_tensor v = {gpu_allocate(sizeof(float)), ONEPASS_F32, 0, NULL, NULL};
    onepass_call call = {.size = sizeof call, .operand = {&p, &t}, .value = &v, .gradient = {&g}};
    call.device = ONEPASS_CUDA;
    bool right = true;
    printf("\nThe same on the GPU:\n\n");
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        float on_cpu, on_gpu;
        call.loss = losses[i].name;
        milliseconds(call.loss, &on_cpu);
        milliseconds_on_gpu(&call, &on_gpu); /* the first loads the kernel */
        const double time = milliseconds_on_gpu(&call, &on_gpu);
        const bool same = !memcmp(&on_cpu, &on_gpu, sizeof on_cpu);
        printf("%-18s %9.3f ms, %5.0f GB/s; the mean has %s bits\n", call.loss, time, 3e-6 * (double)BYTES / time,
               same ? "the CPU's" : "OTHER");
        right = right && same;
    }
    return right;
}

bool show_speed(const onepass_machine_info *machine) {
    prediction = allocate(COUNT, sizeof(float));
    target = allocate(COUNT, sizeof(float));
    gradient = allocate(COUNT, sizeof(float));
    show_progress("filling two large arrays");
    for (uint32_t i = 0; i < COUNT; i++) {
        prediction[i] = (float)(i * 2654435761u >> 8) / (1 << 21) - 4;
        target[i] = (float)(i * 2246822519u >> 8) / (1 << 24);
    }
    show_progress("");
    printf(
        "\nIs it fast? Mean and gradient of two arrays of %d numbers (%.0f MB each), on %d thread%s. \"By hand\" is a\n"
        "float loop in C with OpenMP for this machine; \"memory\" only reads both arrays and writes the third, and\n"
        "its share of our time says how near we are to what the memory can do. The means differ because a plain\n"
        "sum of floats loses digits.\n\n",
        COUNT, 1e-6 * (double)BYTES, machine->threads, machine->threads == 1 ? "" : "s");
    printf("%-18s %12s %12s %12s %14s %14s %14s\n", "loss", "onepass", "by hand", "memory", "of the limit", "mean",
           "by hand");
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        show_progress(losses[i].name);
        show_loss(losses[i].name, losses[i].by_hand);
    }
    const bool right = machine->gpu_count == 0 || show_on_gpu();
    free(prediction);
    free(target);
    free(gradient);
    return right;
}
