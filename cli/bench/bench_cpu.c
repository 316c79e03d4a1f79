/* The CPU as `onepass bench` measures it: calls of the library, and the loops of cpu_limits.h. */
#include "bench_device.h"
#include "cpu_limits.h"
#include "progress.h" /* the clock */
#include "turns.h"

#include "machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of a turn: short calls are repeated until the clock's own steps count for nothing. */
#define SECONDS_OF_TURN 200e-6

/* The limit's loops take part on one thread too, where waking the others may take longer than the loop. */
#define BYTES_FOR_ONE_THREAD (16.0 * 1024 * 1024)

static struct {
    unsigned char *array[BENCH_ARRAYS];
    int32_t threads_asked_for; /* 0: the library decides */
    int32_t threads;
    char name[160];
} cpu;

static bool open_cpu(int index, int32_t threads, problem *problem) {
    (void)index;
    onepass_machine_info machine = {.size = sizeof machine};
    if (onepass_machine(&machine) != ONEPASS_OK)
        return fail(problem, "%s", onepass_message());
    cpu.threads_asked_for = threads;
    const int32_t cores = (int32_t)sysconf(_SC_NPROCESSORS_ONLN); /* more make no loop faster */
    cpu.threads = threads == 0 ? machine.threads : threads < cores ? threads : cores;
    processor_name(cpu.name, sizeof cpu.name);
    return true;
}

static const char *cpu_name(void) {
    return cpu.name;
}

/* -------------------------------------------------------------------- memory -- */

/* The number after a word in a small file; SIZE_MAX if there is none: no limit. */
static size_t number_in(const char *path, const char *word, size_t unit) {
    char line[256];
    unsigned long long number;
    size_t found = SIZE_MAX;
    FILE *file = fopen(path, "r");
    while (file && found == SIZE_MAX && fgets(line, sizeof line, file))
        if (!strncmp(line, word, strlen(word)) && sscanf(line + strlen(word), "%llu", &number) == 1)
            found = number > SIZE_MAX / unit ? SIZE_MAX : (size_t)number * unit;
    if (file)
        fclose(file);
    return found;
}

/* What the kernel would find without swapping, and what the container may still take of it: beyond either, the tool
 * would be killed, not refused. */
static size_t cpu_free_memory(void) {
    const size_t most = number_in("/sys/fs/cgroup/memory.max", "", 1),
                 used = number_in("/sys/fs/cgroup/memory.current", "", 1);
    const size_t granted = most == SIZE_MAX || used == SIZE_MAX ? SIZE_MAX : most > used ? most - used : 0;
    size_t available = number_in("/proc/meminfo", "MemAvailable:", 1024);
    if (available == SIZE_MAX)
        available = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    return available < granted ? available : granted;
}

static void close_cpu(void) {
    for (int i = 0; i < BENCH_ARRAYS; i++) {
        free(cpu.array[i]);
        cpu.array[i] = NULL;
    }
}

static bool cpu_allocate(int arrays, size_t bytes, problem *problem) {
    const size_t page = 4096, whole = (bytes + BENCH_PADDING + page - 1) / page * page;
    for (int i = 0; i < arrays; i++)
        if (!(cpu.array[i] = aligned_alloc(page, whole)))
            return fail(problem, "there is no memory for an array of %.1f GB", 1e-9 * (double)whole);
    return true;
}

/* The threads that fill a part of an array are those that read it, so that its pages are near them. */
static void repeat(unsigned char *array, const unsigned char *period, size_t period_bytes, size_t bytes) {
    const int64_t periods = (int64_t)((bytes + period_bytes - 1) / period_bytes);
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
    for (int64_t i = 0; i < periods; i++) {
        const size_t first = (size_t)i * period_bytes;
        memcpy(array + first, period, bytes - first < period_bytes ? bytes - first : period_bytes);
    }
}

static bool cpu_fill(int32_t dtype, int64_t count, problem *problem) {
    const size_t bytes = (size_t)count * dtype_bytes(dtype) + BENCH_PADDING;
    unsigned char *period = malloc(BENCH_PERIOD * dtype_bytes(dtype));
    if (!period)
        return fail(problem, "there is no memory left");
    for (int i = 0; i < 2; i++) {
        bench_numbers(period, dtype, (uint64_t)i + 1);
        repeat(cpu.array[i], period, BENCH_PERIOD * dtype_bytes(dtype), bytes);
    }
    free(period);
    return true;
}

/* ----------------------------------------------------------------- measuring -- */

/* A call of ours, or a loop of the limit. */
typedef struct work {
    bench_call ours;
    double value;
    bool is_limit;
    limit_work limit;
    int calls; /* in a turn */
} work;

static double turn(void *state) {
    const work *work = state;
    const double begin = clock_seconds();
    for (int i = 0; i < work->calls; i++)
        if (work->is_limit)
            limit_run(&work->limit);
        else if (onepass_run(&work->ours.call) != ONEPASS_OK)
            return -1;
    return (clock_seconds() - begin) / work->calls;
}

/* Warms up, and repeats the call until a turn is long enough. False if it fails. */
static bool settle(work *work) {
    double seconds;
    work->calls = 1;
    while ((seconds = turn(work)) >= 0 && seconds * work->calls < SECONDS_OF_TURN)
        work->calls *= 2;
    return seconds >= 0;
}

static int make_losses(work *works, const bench_group *group) {
    for (int i = 0; i < group->losses; i++) {
        void *const array[BENCH_ARRAYS] = {cpu.array[0], cpu.array[1], cpu.array[2]};
        works[i].is_limit = false;
        bench_call_make(&works[i].ours, group, i, array, &works[i].value);
        works[i].ours.call.threads = cpu.threads_asked_for;
    }
    return group->losses;
}

static int make_limits(work *works, const bench_group *group) {
    const bool writes = group->mode == BENCH_BOTH;
    const bool alone = cpu.threads > 1 && bench_bytes(group->dtype, group->mode, group->count) <= BYTES_FOR_ONE_THREAD;
    int count = 0;
    for (int loop = 0; loop < limit_loops(writes); loop++)
        for (int threads = alone ? 1 : cpu.threads;; threads = cpu.threads) {
            works[count].is_limit = true;
            works[count++].limit = (limit_work){.a = cpu.array[0],
                                                .b = cpu.array[1],
                                                .c = writes ? cpu.array[2] : NULL,
                                                .bytes = (size_t)group->count * dtype_bytes(group->dtype),
                                                .threads = threads,
                                                .loop = loop};
            if (threads == cpu.threads)
                break;
        }
    return count;
}

/* The limit is the fastest of its loops, which all take their turns: on a busy machine a first look misleads. */
static bool cpu_measure(const bench_group *group, double *seconds, problem *problem) {
    static work works[TURNS_MOST_CONTENDERS];
    contender contenders[TURNS_MOST_CONTENDERS];
    const int losses = make_losses(works, group), count = losses + make_limits(works + losses, group);
    bool is_done = true;
    for (int i = 0; is_done && i < count; i++) {
        contenders[i] = (contender){turn, &works[i], 0};
        is_done = settle(&works[i]);
    }
    if (!is_done || !take_turns(contenders, count))
        return fail(problem, "%s", onepass_message());
    for (int i = 0; i < count; i++) {
        double *place = &seconds[i < losses ? i : losses];
        if (i <= losses || contenders[i].seconds < *place)
            *place = contenders[i].seconds;
    }
    return true;
}

const bench_device bench_cpu = {.limit = "the fastest of a few loops over the same bytes, on the same threads",
                                .open = open_cpu,
                                .name = cpu_name,
                                .free_memory = cpu_free_memory,
                                .allocate = cpu_allocate,
                                .fill = cpu_fill,
                                .measure = cpu_measure,
                                .close = close_cpu};
