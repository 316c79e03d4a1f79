/*
 * The library on a real GPU: everything against the CPU engine's bits.
 *
 *     test_cuda                every section, each in a process of its own: one that
 *                              fails does not disturb the others, and some must be
 *                              the first that a process does with the GPU
 *     test_cuda SECTION...     these, one after the other, in this process
 *     test_cuda --reduced [SECTION...]   small versions of most of them, or of these, for
 *                              compute-sanitizer
 *     test_cuda --list         the sections
 *
 * Skipped (77) where there is no GPU or the build has no kernels. ONEPASS_TEST_QUICK=1
 * leaves out what takes gigabytes.
 */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include "gpu.h"
#include "test_cuda.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

typedef struct section {
    const char *name;
    int (*run)(bool reduced);
    bool in_reduced;
    unsigned limit; /* seconds, some ten times what it takes: a kernel that hangs must not hold the GPU for long */
    const char *meaning;
} section;

static const section sections[] = {
    {"cases", test_cuda_cases, true, 120, "every case of the list"},
    {"shapes", test_cuda_shapes, true, 120, "every launch shape, over some of the list and thousands of tiles"},
    {"scale", test_cuda_scale, true, 60, "gradients that are scaled later"},
    {"skip_if_one", test_cuda_skip_if_one, true, 60, "gradients that are computed anew unless the upstream one is 1"},
    {"sizes", test_cuda_sizes, false, 120, "around every power of two"},
    {"repeats", test_cuda_repeats, false, 60, "the same call again and again"},
    {"reciprocals", test_cuda_reciprocals, true, 60, "divisors of all digits"},
    {"large", test_cuda_large, false, 180, "2^30 elements"},
    {"beyond_32_bits", test_cuda_beyond_32_bits, false, 180, "more than 2^32 elements"},
    {"rows", test_cuda_rows, true, 180, "losses over rows, drawn from seeds"},
    {"rows_clusters", test_cuda_rows_clusters, true, 120, "long rows that clusters of blocks have"},
    {"rows_graphs", test_cuda_rows_graphs, true, 60, "the same, captured"},
    {"rows_threads", test_cuda_rows_threads, true, 60, "the same, by threads that share a stream"},
    {"rows_edges", test_cuda_rows_edges, true, 60, "no rows, one class, no labels, divisors that are tensors"},
    {"rows_shards", test_cuda_rows_shards, true, 60, "classes that are shared out"},
    {"rows_beyond_31_bits", test_cuda_rows_beyond, false, 120, "more than 2^31 elements in rows"},
    {"vectors", test_cuda_vectors, true, 180, "vector losses, every case of their list"},
    {"vectors_graphs", test_cuda_vectors_graphs, true, 60, "the same, captured"},
    {"vectors_beyond_31_bits", test_cuda_vectors_beyond, false, 120, "more than 2^31 elements in vectors"},
    {"slices", test_cuda_slices, true, 120, "accumulators of slices, on several streams"},
    {"first_capture_global", test_cuda_first_capture_global, false, 60, "a capture before any other call"},
    {"first_capture_thread_local", test_cuda_first_capture_thread_local, false, 60, "the same, thread-local"},
    {"first_capture_relaxed", test_cuda_first_capture_relaxed, false, 60, "the same, relaxed"},
    {"graphs", test_cuda_graphs, true, 120, "captured calls, replayed anywhere and at the same time"},
    {"first_threads", test_cuda_first_threads, false, 60, "the first calls from eight threads at once"},
    {"threads", test_cuda_threads, true, 120, "eight threads on streams of all kinds"},
    {"memory", test_cuda_memory, false, 60, "what the library takes of the GPU's memory"},
    {"contexts", test_cuda_contexts, false, 60, "contexts and streams that come and go"},
    {"workspace", test_cuda_workspace, true, 60, "the caller's own workspace"},
    {"refusals", test_cuda_refusals, false, 60, "what must be refused, and what must not"},
};

enum {
    SECTIONS = sizeof sections / sizeof sections[0],
    REDUCED_LIMIT = 300
};

static const section *section_named(const char *name) {
    for (int i = 0; i < SECTIONS; i++) {
        if (strcmp(sections[i].name, name) == 0) {
            return &sections[i];
        }
    }
    return NULL;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void heading(const section *section) {
    printf("\n--- %s: %s\n", section->name, section->meaning);
    fflush(stdout);
}

/* The program again with the section's name, as a user would type it. */
static int run_apart(const section *section, char *program) {
    char *arguments[] = {program, (char *)(uintptr_t)section->name, NULL};
    pid_t child = 0;
    int status = 0;
    if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ) != 0 ||
        waitpid(child, &status, 0) != child) {
        printf("%s could not be started\n", section->name);
        return 1;
    }
    if (WIFSIGNALED(status)) {
        printf("%s was ended by signal %d%s\n", section->name, WTERMSIG(status),
               WTERMSIG(status) == SIGALRM ? ": it took too long, so something hangs" : "");
        return 1;
    }
    return WEXITSTATUS(status);
}

static int run_all(char *program) {
    double seconds[SECTIONS];
    int failed[SECTIONS];
    int failures = 0;
    for (int i = 0; i < SECTIONS; i++) {
        const double begin = now();
        heading(&sections[i]);
        failed[i] = run_apart(&sections[i], program);
        seconds[i] = now() - begin;
        failures += failed[i] != 0;
    }
    printf("\n");
    for (int i = 0; i < SECTIONS; i++) {
        printf("%-28s %6.1f s  %s\n", sections[i].name, seconds[i], failed[i] ? "FAILED" : "passed");
    }
    printf("%d of %d sections failed\n", failures, SECTIONS);
    return failures != 0;
}

static bool is_among(const char *name, char **names, int count) {
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return count == 0;
}

static int run_reduced(char **names, int count) {
    int failures = 0;
    alarm(REDUCED_LIMIT);
    gpu_open();
    for (int i = 0; i < SECTIONS; i++) {
        if (sections[i].in_reduced && is_among(sections[i].name, names, count)) {
            heading(&sections[i]);
            failures += sections[i].run(true) != 0;
        }
    }
    return failures != 0;
}

static int run_named(char **names, int count) {
    int failures = 0;
    gpu_open();
    for (int i = 0; i < count; i++) {
        const section *section = section_named(names[i]);
        alarm(section->limit);
        gpu_doing("the beginning of %s", section->name);
        failures += section->run(false) != 0;
    }
    return failures != 0;
}

static void print_machine(void) {
    onepass_machine_info info = {.size = sizeof info};
    char name[128] = "";
    int driver = 0;
    GPU(cuDeviceGetName(name, sizeof name, 0));
    GPU(cuDriverGetVersion(&driver));
    CHECK_OK(onepass_machine(&info), "onepass_machine");
    printf("%s, driver for CUDA %d.%d; the library sees: %s (%s), built with %d.%d; CPU: %s, %d threads\n", name,
           driver / 1000, driver % 1000 / 10, info.gpu_names, info.gpu_count ? "usable" : info.gpu_reason,
           info.gpu_toolkit / 1000, info.gpu_toolkit % 1000 / 10, info.instruction_set, info.threads);
}

int main(int count, char **arguments) {
    const bool reduced = count > 1 && strcmp(arguments[1], "--reduced") == 0;
    if (count == 2 && strcmp(arguments[1], "--list") == 0) {
        for (int i = 0; i < SECTIONS; i++) {
            printf("%-28s %s\n", sections[i].name, sections[i].meaning);
        }
        return 0;
    }
    for (int i = reduced ? 2 : 1; i < count; i++) {
        if (!section_named(arguments[i])) {
            printf("there is no section \"%s\"; test_cuda --list lists them\n", arguments[i]);
            return 2;
        }
    }
    const char *missing = gpu_missing();
    if (missing) {
        return check_skip(missing);
    }
    if (count == 1) {
        print_machine();
        return run_all(arguments[0]);
    }
    return reduced ? run_reduced(arguments + 2, count - 2) : run_named(arguments + 1, count - 1);
}
