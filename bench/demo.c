/*
 * onepass_demo: every loss that bench/plain.c knows, over two large arrays, forward, backward
 * and both, checked against a plain double-precision loop and measured against what this
 * machine's memory can do. Exits with 1 if a check fails.
 */
#define _POSIX_C_SOURCE 200809L
#include "machine.h"
#include "measure.h"
#include "plain.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <onepass.h>

typedef enum job {
    FORWARD,
    BACKWARD,
    BOTH,
    JOB_COUNT
} job;

static const char *const job_names[] = {"forward", "backward", "both"};

enum {
    REPETITIONS = 5,
    MOST_THREAD_COUNTS = 16
};

/* The value may be a step off the correctly rounded one. A gradient rounds a difference, 1/N and
 * their product, each by an ulp at most; with the standard parameters everything else is exact. */
static const double most_value_ulps = 1, most_gradient_ulps = 3;

typedef struct demo {
    int64_t side, count;
    onepass_machine_info machine;
    int thread_counts[MOST_THREAD_COUNTS];
    int thread_count_count;
    char same_bits_heading[64];

    float *prediction, *target;
    float *gradient, *first_gradient; /* what was just computed, and what it should equal */

    int64_t shape[2];
    onepass_tensor prediction_tensor, target_tensor, gradient_tensor, value_tensor;
    float value;
    onepass_call call;
} demo;

/* ------------------------------------------------------------- progress -- */

/* One line, overwritten, and only where somebody watches. */
static void show_progress(const char *loss, const char *job, const char *step) {
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K%s %s: %s ...", loss, job, step);
}

static void clear_progress(void) {
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K");
}

/* ---------------------------------------------------------------- setup -- */

static void check(onepass_status status) {
    if (status != ONEPASS_OK) {
        clear_progress();
        fprintf(stderr, "%s: %s\n", onepass_status_name(status), onepass_message());
        exit(EXIT_FAILURE);
    }
}

/* 1, 2 and 3 (uneven shares), then doubling, and all: two at least, even on one core. */
static void choose_thread_counts(demo *demo) {
    const int all = demo->machine.threads > 2 ? demo->machine.threads : 2;
    int n = 0;
    for (int threads = 1; threads < all && n < MOST_THREAD_COUNTS - 1;
         threads = threads < 4 ? threads + 1 : 2 * threads)
        demo->thread_counts[n++] = threads;
    demo->thread_counts[n++] = all;
    demo->thread_count_count = n;

    int used = snprintf(demo->same_bits_heading, sizeof demo->same_bits_heading, "same bits on");
    for (int i = 0; i < n && used < (int)sizeof demo->same_bits_heading; i++)
        used += snprintf(demo->same_bits_heading + used, sizeof demo->same_bits_heading - (size_t)used, "%s %d",
                         i ? "," : "", demo->thread_counts[i]);
}

static void set_up(demo *demo, int64_t side) {
    demo->side = side;
    demo->count = side * side;
    demo->machine.size = sizeof demo->machine;
    check(onepass_machine(&demo->machine));
    choose_thread_counts(demo);

    const size_t bytes = (size_t)demo->count * sizeof(float);
    float **arrays[] = {&demo->prediction, &demo->target, &demo->gradient, &demo->first_gradient};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        *arrays[i] = allocate(bytes);
        fill_f32(*arrays[i], demo->count, i, -2, 2);
    }
    demo->shape[0] = demo->shape[1] = side;
    demo->prediction_tensor = (onepass_tensor){demo->prediction, ONEPASS_F32, 2, demo->shape, NULL};
    demo->target_tensor = (onepass_tensor){demo->target, ONEPASS_F32, 2, demo->shape, NULL};
    demo->gradient_tensor = (onepass_tensor){demo->gradient, ONEPASS_F32, 2, demo->shape, NULL};
    demo->value_tensor = (onepass_tensor){&demo->value, ONEPASS_F32, 0, NULL, NULL};
}

/* ----------------------------------------------------------------- works -- */

static void run_onepass(void *state) {
    demo *demo = state;
    check(onepass_run(&demo->call));
}

static void run_read_two(void *state) {
    demo *demo = state;
    volatile float sum = plain_read_two(demo->count, demo->prediction, demo->target, demo->machine.threads);
    (void)sum;
}

static void run_read_two_write_one(void *state) {
    demo *demo = state;
    plain_read_two_write_one(demo->count, demo->prediction, demo->target, demo->first_gradient, demo->machine.threads);
}

static void prepare(demo *demo, const char *loss, job job) {
    demo->call = (onepass_call){.size = sizeof(onepass_call),
                                .loss = loss,
                                .reduction = ONEPASS_MEAN,
                                .operand = {&demo->prediction_tensor, &demo->target_tensor}};
    if (job != BACKWARD)
        demo->call.value = &demo->value_tensor;
    if (job != FORWARD)
        demo->call.gradient[ONEPASS_PREDICTION] = &demo->gradient_tensor;
}

/* --------------------------------------------------------------- checks -- */

/* Whatever was there before must not pass for a result. */
static void spoil(demo *demo) {
    demo->value = -1;
    memset(demo->gradient, 0xff, (size_t)demo->count * sizeof(float));
}

/* Runs on every number of threads and compares with the first, bit for bit. */
static bool same_bits(demo *demo) {
    const size_t bytes = (size_t)demo->count * sizeof(float);
    const bool has_value = demo->call.value, has_gradient = demo->call.gradient[ONEPASS_PREDICTION];
    float first_value = 0;
    bool same = true;
    for (int i = 0; i < demo->thread_count_count; i++) {
        spoil(demo);
        demo->call.threads = demo->thread_counts[i];
        run_onepass(demo);
        if (i == 0) {
            first_value = demo->value;
            if (has_gradient)
                memcpy(demo->first_gradient, demo->gradient, bytes);
            continue;
        }
        same = same && (!has_value || !memcmp(&first_value, &demo->value, sizeof first_value));
        same = same && (!has_gradient || !memcmp(demo->first_gradient, demo->gradient, bytes));
    }
    demo->call.threads = 0;
    return same;
}

/* ---------------------------------------------------------------- table -- */

static bool show_row(demo *demo, const onepass_loss_info *loss, job job, float reference) {
    const plain_loss *plain = plain_tuned_loss_named(loss->name);
    const float parameter = loss->parameter_count > 0 ? (float)loss->parameter[0].default_value : 0;
    const double bytes = (job == FORWARD ? 2 : 3) * (double)sizeof(float) * (double)demo->count;
    prepare(demo, loss->name, job);

    show_progress(loss->name, job_names[job], "measuring");
    pair seconds = measure_pair((work){run_onepass, demo},
                                (work){job == FORWARD ? run_read_two : run_read_two_write_one, demo}, REPETITIONS);
    show_progress(loss->name, job_names[job], "comparing numbers of threads");
    const bool same = same_bits(demo);
    show_progress(loss->name, job_names[job], "checking");

    char value[24] = "", value_error[24] = "", gradient_error[24] = "";
    bool right = same;
    if (job != BACKWARD) {
        const double ulps = plain_ulps(demo->value, (double)reference);
        right = right && ulps <= most_value_ulps;
        snprintf(value, sizeof value, "%.7f", (double)demo->value);
        snprintf(value_error, sizeof value_error, "%.2f", ulps);
    }
    if (job != FORWARD) {
        const double ulps = plain->gradient_error(demo->count, demo->prediction, demo->target, parameter,
                                                  1 / (double)demo->count, demo->gradient, demo->machine.threads);
        right = right && ulps <= most_gradient_ulps;
        snprintf(gradient_error, sizeof gradient_error, "%.2f", ulps);
    }
    clear_progress();
    printf("%-12s %-9s %11s %9s %12s %8.2f %7.2f %9.0f %%   %s%s\n", loss->name, job_names[job], value, value_error,
           gradient_error, 1e3 * seconds.ours, 1e-9 * bytes / seconds.ours, 100 * seconds.beside / seconds.ours,
           same ? "yes" : "NO", right ? "" : "   WRONG");
    fflush(stdout);
    return right;
}

static bool show_loss(demo *demo, const onepass_loss_info *loss, const plain_loss *plain) {
    show_progress(loss->name, "reference", "summing in double");
    const float parameter = loss->parameter_count > 0 ? (float)loss->parameter[0].default_value : 0;
    const double sum =
        plain->sum_of_terms(demo->count, demo->prediction, demo->target, parameter, demo->machine.threads);
    bool right = true;
    for (job job = FORWARD; job < JOB_COUNT; job++)
        right = show_row(demo, loss, job, (float)(sum / (double)demo->count)) && right;
    return right;
}

/* The losses that have a plain loop, then the names of those that have none. */
static bool show_losses(demo *demo) {
    bool right = true;
    const onepass_loss_info *loss;
    for (int32_t i = 0; (loss = onepass_loss_at(i)); i++) {
        const plain_loss *plain = plain_tuned_loss_named(loss->name);
        if (plain)
            right = show_loss(demo, loss, plain) && right;
    }
    const char *before = "Not checked, since bench/plain.c has no loop for them: ";
    for (int32_t i = 0; (loss = onepass_loss_at(i)); i++)
        if (!plain_tuned_loss_named(loss->name)) {
            printf("%s%s", before, loss->name);
            before = ", ";
        }
    printf("\n");
    return right;
}

int main(int argc, char **argv) {
    static demo demo;
    int64_t side = 8192;
    if (argc == 3 && !strcmp(argv[1], "--side"))
        side = strtoll(argv[2], NULL, 10);
    if ((argc != 1 && argc != 3) || side < 1 || side > 1 << 20) {
        fprintf(stderr, "usage: %s [--side N]   two arrays of N x N floats; 8192 if not given\n", argv[0]);
        return EXIT_FAILURE;
    }
    const double begin = seconds_now();
    set_up(&demo, side);

    char processor[128];
    processor_name(processor, sizeof processor);
    printf("onepass %s on %s, %d cores: %s, %d threads\n", onepass_version_text(), processor, cores_online(),
           demo.machine.instruction_set, (int)demo.machine.threads);
    printf("Two arrays of %lld x %lld floats, %.0f MB each. Errors are in ulp, against a plain double-precision loop;\n"
           "\"of memory\" is the rate beside a plain loop that only reads both arrays, or adds them into a third.\n\n",
           (long long)side, (long long)side, 4e-6 * (double)demo.count);
    printf("%-12s %-9s %11s %9s %12s %8s %7s %11s   %s\n", "loss", "work", "value", "value ulp", "gradient ulp", "ms",
           "GB/s", "of memory", demo.same_bits_heading);

    const bool right = show_losses(&demo);
    printf("\n%s, in %.0f seconds.\n", right ? "Everything is right" : "SOMETHING IS WRONG: see above",
           seconds_now() - begin);
    free(demo.prediction);
    free(demo.target);
    free(demo.gradient);
    free(demo.first_gradient);
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
