/*
 * Where the system has no threads to give, a call does with fewer, says nothing and computes the same bits: OpenMP's
 * runtimes would end the program. Each limit, on the address space or on the number of processes, is set in a new
 * program, since after fork() a call has one thread anyway.
 */
#define _GNU_SOURCE
#include "check.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOLDS(condition) CHECK(condition, "%s does not hold", #condition)

enum {
    COUNT = 600000,
    CALLERS = 8,
    NOBODY = 65534 /* a user's limit on processes does not bind root */
};

static float prediction[COUNT], target[COUNT], expected[COUNT], gradient[CALLERS][COUNT];

static void fill_operands(void) {
    uint32_t state = 7;
    for (int i = 0; i < COUNT; i++) {
        state = state * 1664525u + 1013904223u;
        prediction[i] = (float)(state >> 8) * 0x1p-24f;
        target[i] = (float)(state >> 12) * 0x1p-21f;
    }
}

/* The mean and its gradient; the result is the value, or -1 if the call failed. */
static double run(int32_t threads, float *into) {
    const int64_t count = COUNT;
    double value = -1;
    const onepass_tensor p = {prediction, ONEPASS_F32, 1, &count, NULL}, t = {target, ONEPASS_F32, 1, &count, NULL};
    const onepass_tensor v = {&value, ONEPASS_F64, 0, NULL, NULL}, g = {into, ONEPASS_F32, 1, &count, NULL};
    onepass_call call = ONEPASS_CALL_INIT;
    call.loss = "mse";
    call.operand[0] = &p;
    call.operand[1] = &t;
    call.value = &v;
    call.gradient[0] = &g;
    call.threads = threads;
    return onepass_run(&call) == ONEPASS_OK ? value : -1;
}

/* ----------------------------------------------------------------- limits -- */

static size_t address_space(void) {
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%zu", &pages) != 1) {
        pages = 0;
    }
    if (file) {
        fclose(file);
    }
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static int leave_bytes(size_t more) {
    const size_t most = address_space() + more;
    return setrlimit(RLIMIT_AS, &(struct rlimit){most, most});
}

static int leave_processes(size_t more) {
    if (geteuid() == 0 && setuid(NOBODY) != 0) {
        return -1;
    }
    return setrlimit(RLIMIT_NPROC, &(struct rlimit){more, more});
}

typedef struct limit {
    const char *name;
    int (*set)(size_t more);
    size_t more;
    int callers;       /* threads of the program that make their first call at once */
    const char *stack; /* OMP_STACKSIZE, unless null */
} limit;

/* A thread's stack is 8 MiB by default. */
static const limit limits[] = {
    {"512 KiB of memory left", leave_bytes, (size_t)1 << 19, 1, NULL},
    {"4 MiB left", leave_bytes, (size_t)1 << 22, 1, NULL},
    {"9 MiB left", leave_bytes, (size_t)9 << 20, 1, NULL},
    {"20 MiB left", leave_bytes, (size_t)20 << 20, 1, NULL},
    {"100 MiB left", leave_bytes, (size_t)100 << 20, 1, NULL},
    {"no process left", leave_processes, 0, 1, NULL},
    {"one process left", leave_processes, 2, 1, NULL},
    {"three processes left", leave_processes, 4, 1, NULL},
    {"20 MiB left to all callers", leave_bytes, (size_t)20 << 20, CALLERS, NULL},
    {"three processes left to all callers", leave_processes, 4, CALLERS, NULL},
    {"100 MiB left, stacks of 1 GiB", leave_bytes, (size_t)100 << 20, 1, "1G"},
    {"100 MiB left, stacks of 300000 KiB", leave_bytes, (size_t)100 << 20, 1, " 300000 "},
    {"100 MiB left, stacks beyond all memory", leave_bytes, (size_t)100 << 20, 1, "17179869183G"},
};

typedef struct caller {
    pthread_t thread;
    pthread_barrier_t *limited;
    int32_t threads;
    double value;
    float *gradient;
    bool differs;
} caller;

static void *call_limited(void *argument) {
    caller *caller = argument;
    pthread_barrier_wait(caller->limited);
    for (int round = 0; round < 3; round++) {
        memset(caller->gradient, 0, sizeof expected);
        caller->differs |= run(caller->threads, caller->gradient) != caller->value ||
                           memcmp(caller->gradient, expected, sizeof expected) != 0;
    }
    return NULL;
}

/* The program under a limit; what it finds is its exit status. */
static int run_limited(const limit *limit, int32_t threads, double value) {
    caller callers[CALLERS];
    pthread_barrier_t limited;
    if (pthread_barrier_init(&limited, NULL, (unsigned)limit->callers) != 0) {
        return 2;
    }
    for (int i = 0; i < limit->callers; i++) {
        callers[i] = (caller){.limited = &limited, .threads = threads, .value = value, .gradient = gradient[i]};
        if (i > 0 && pthread_create(&callers[i].thread, NULL, call_limited, &callers[i]) != 0) {
            return 2;
        }
    }
    if (limit->set(limit->more) != 0) {
        return 2;
    }
    call_limited(&callers[0]);
    bool differs = callers[0].differs;
    for (int i = 1; i < limit->callers; i++) {
        pthread_join(callers[i].thread, NULL);
        differs |= callers[i].differs;
    }
    return differs;
}

static void start_limited(size_t which, int32_t threads, int printed) {
    char limit_text[16], threads_text[16];
    snprintf(limit_text, sizeof limit_text, "%zu", which);
    snprintf(threads_text, sizeof threads_text, "%d", threads);
    dup2(printed, STDOUT_FILENO);
    dup2(printed, STDERR_FILENO);
    if (limits[which].stack) {
        setenv("OMP_STACKSIZE", limits[which].stack, 1);
    }
    alarm(300);
    execl("/proc/self/exe", "test_limits", limit_text, threads_text, (char *)NULL);
    _exit(3);
}

static void test_limit(size_t which, int32_t threads) {
    int ends[2], status = -1;
    char printed[256] = "";
    if (!CHECK(pipe(ends) == 0, "expected a pipe")) {
        return;
    }
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        start_limited(which, threads, ends[1]);
    }
    close(ends[1]);
    const ssize_t bytes = read(ends[0], printed, sizeof printed - 1);
    close(ends[0]);
    HOLDS(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(bytes == 0, "%s, %d threads: expected nothing printed, got \"%s\"", limits[which].name, threads, printed);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s, %d threads: expected the same bits, got status %x",
          limits[which].name, threads, (unsigned)status);
}

/* ------------------------------------------------------------------ cores -- */

static int count_threads(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    for (const struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    if (folder) {
        closedir(folder);
    }
    return count;
}

/* Whatever a call or the environment asks for. */
static void test_cores(double value) {
    cpu_set_t cores;
    HOLDS(sched_getaffinity(0, sizeof cores, &cores) == 0);
    static const int32_t asked[] = {64, INT32_MAX, 0};
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        HOLDS(run(asked[i], gradient[0]) == value);
        CHECK(count_threads() <= CPU_COUNT(&cores), "%d threads asked for: expected at most %d, got %d", asked[i],
              CPU_COUNT(&cores), count_threads());
    }
}

int main(int argc, char **argv) {
    fill_operands();
    const double value = run(1, expected);
    if (argc == 3) {
        return run_limited(&limits[atoi(argv[1])], atoi(argv[2]), value);
    }
    HOLDS(value > 0);
    if (count_threads() == 0) {
        return check_skip("this system does not show its threads");
    }
    /* Sanitizers need more address space than any limit leaves. */
    for (size_t i = 0; i < sizeof limits / sizeof limits[0] && !CHECK_SANITIZED; i++) {
        static const int32_t asked[] = {0, 2, 64, INT32_MAX};
        for (size_t j = 0; j < sizeof asked / sizeof asked[0]; j++) {
            test_limit(i, asked[j]);
        }
    }
    test_cores(value);
    return check_finish();
}
