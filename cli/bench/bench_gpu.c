/* A GPU as `onepass bench` measures it: graphs of calls of the library and of the limits' kernels, and the GPU's own
 * clock around a replay. The calls of a graph follow each other without the host, so that a small one is measured as a
 * training step that is replayed would meet it. */
#include "bench_device.h"
#include "gpu.h"
#include "gpu_limits.h"
#include "turns.h"

#include <stdlib.h>

enum {
    FINALISTS = 2,     /* shapes of the limit's kernel that take turns with the losses */
    MOST_SEARCHES = 64 /* of the best shapes for a number of bytes, which are remembered */
};

static struct {
    int32_t index;
    void *array[BENCH_ARRAYS];
    void *value, *workspace;
} gpu;

static bool gpu_fails(problem *problem) {
    return fail(problem, "%s", gpu_problem());
}

static bool open_gpu(int index, int32_t threads, problem *problem) {
    (void)threads;
    gpu.index = index;
    if (!gpu_open(index) || !gpu_stream())
        return gpu_fails(problem);
    if (!gpu_limits_load(problem))
        return false;
    if (onepass_prepare(ONEPASS_CUDA, index) != ONEPASS_OK)
        return fail(problem, "%s", onepass_message());
    gpu.value = gpu_allocate(sizeof(double));
    gpu.workspace = gpu_allocate(ONEPASS_WORKSPACE_SIZE);
    if (!gpu.value || !gpu.workspace || !gpu_clear(gpu.workspace, ONEPASS_WORKSPACE_SIZE))
        return gpu_fails(problem);
    return true;
}

static void close_gpu(void) {
    for (int i = 0; i < BENCH_ARRAYS; i++) {
        gpu_release(gpu.array[i]);
        gpu.array[i] = NULL;
    }
    gpu_release(gpu.value);
    gpu_release(gpu.workspace);
    gpu.value = gpu.workspace = NULL;
}

static bool allocate(int arrays, size_t bytes, problem *problem) {
    for (int i = 0; i < arrays; i++)
        if (!(gpu.array[i] = gpu_allocate(bytes + BENCH_PADDING)))
            return gpu_fails(problem);
    return true;
}

static bool fill(int32_t dtype, int64_t count, problem *problem) {
    const size_t bytes = (size_t)count * dtype_bytes(dtype) + BENCH_PADDING,
                 period_bytes = BENCH_PERIOD * dtype_bytes(dtype);
    unsigned char *period = malloc(period_bytes);
    if (!period)
        return fail(problem, "there is no memory left");
    bool is_done = true;
    for (int i = 0; i < 2; i++) {
        bench_numbers(period, dtype, (uint64_t)i + 1);
        for (size_t first = 0; is_done && first < bytes; first += period_bytes)
            is_done = gpu_upload((unsigned char *)gpu.array[i] + first, period,
                                 bytes - first < period_bytes ? bytes - first : period_bytes);
    }
    free(period);
    return is_done || gpu_fails(problem);
}

/* -------------------------------------------------------------------- graphs -- */

/* What is replayed, and how many calls it is. */
typedef struct replay {
    gpu_graph *graph;
    int calls;
} replay;

/* Enough that the launch of the graph itself hardly counts, and that its first call, which finds another's data in the
 * cache, does not either. */
static int calls_in_graph(int64_t count) {
    return count <= 1 << 20 ? 64 : count <= 1 << 24 ? 16 : 4;
}

static double turn(void *state) {
    const replay *replay = state;
    const double seconds = gpu_limits_linger() ? gpu_replay(replay->graph) : -1;
    return seconds < 0 ? -1 : seconds / replay->calls;
}

/* Captures the calls of a loss. The first runs before that, so that what it needs is loaded. */
static bool capture_loss(replay *made, const bench_group *group, int loss, problem *problem) {
    bench_call ours;
    bench_call_make(&ours, group, loss, gpu.array, gpu.value);
    ours.call.device = ONEPASS_CUDA;
    ours.call.device_index = gpu.index;
    ours.call.stream = gpu_stream();
    ours.call.workspace = gpu.workspace; /* one serves all, since they follow each other */
    ours.call.workspace_size = ONEPASS_WORKSPACE_SIZE;
    *made = (replay){NULL, calls_in_graph(group->count)};
    if (onepass_run(&ours.call) != ONEPASS_OK)
        return fail(problem, "%s", onepass_message());
    if (!gpu_wait() || !gpu_capture())
        return gpu_fails(problem);
    bool is_done = true;
    for (int i = 0; is_done && i < made->calls; i++)
        is_done = onepass_run(&ours.call) == ONEPASS_OK || fail(problem, "%s", onepass_message());
    made->graph = gpu_end_capture();
    return is_done && (made->graph || gpu_fails(problem));
}

static bool capture_limit(replay *made, const bench_group *group, int shape, problem *problem) {
    const size_t bytes = (size_t)group->count * dtype_bytes(group->dtype);
    *made = (replay){NULL, calls_in_graph(group->count)};
    if (!gpu_capture())
        return gpu_fails(problem);
    bool is_done = true;
    for (int i = 0; is_done && i < made->calls; i++)
        is_done = gpu_limit_launch(shape, group->mode == BENCH_BOTH, bytes, gpu.array[0], gpu.array[1], gpu.array[2]) ||
                  gpu_fails(problem);
    made->graph = gpu_end_capture();
    return is_done && (made->graph || gpu_fails(problem));
}

/* ------------------------------------------------------- the limit's best shapes -- */

/* The fastest shapes for a number of bytes. */
typedef struct search {
    bench_mode mode;
    size_t bytes;
    int shape[FINALISTS]; /* -1: none */
    double seconds[FINALISTS];
} search;

/* The better of two turns, after one to warm up; negative if it failed. */
static double seconds_of_shape(const bench_group *group, int shape, problem *problem) {
    replay replay;
    double best = -1;
    bool is_done = capture_limit(&replay, group, shape, problem);
    for (int i = 0; is_done && i < 3; i++) {
        const double seconds = turn(&replay);
        is_done = seconds >= 0 || gpu_fails(problem);
        if (i == 1 || (i > 1 && seconds < best))
            best = seconds;
    }
    gpu_release_graph(replay.graph);
    return is_done ? best : -1;
}

static void keep(search *search, int shape, double seconds) {
    int place = FINALISTS;
    while (place > 0 && (search->shape[place - 1] < 0 || seconds < search->seconds[place - 1]))
        place--;
    for (int i = FINALISTS - 1; i > place; i--) {
        search->shape[i] = search->shape[i - 1];
        search->seconds[i] = search->seconds[i - 1];
    }
    if (place < FINALISTS) {
        search->shape[place] = shape;
        search->seconds[place] = seconds;
    }
}

static bool try_shapes(search *search, const bench_group *group, problem *problem) {
    for (int i = 0; i < FINALISTS; i++)
        search->shape[i] = -1;
    for (int shape = 0; shape < gpu_limit_shapes(); shape++) {
        if (!gpu_limit_is_useful(shape, search->mode == BENCH_BOTH, search->bytes))
            continue;
        const double seconds = seconds_of_shape(group, shape, problem);
        if (seconds < 0)
            return false;
        keep(search, shape, seconds);
    }
    return search->shape[0] >= 0 || fail(problem, "the GPU can run none of the limits' kernels");
}

/* Types of the same size, and twice as many elements of half the size, have the same bytes to move. */
static const search *best_shapes(const bench_group *group, problem *problem) {
    static search searches[MOST_SEARCHES];
    static int count;
    const size_t bytes = (size_t)group->count * dtype_bytes(group->dtype);
    for (int i = 0; i < count; i++)
        if (searches[i].mode == group->mode && searches[i].bytes == bytes)
            return &searches[i];
    if (count == MOST_SEARCHES)
        count = 0;
    searches[count].mode = group->mode;
    searches[count].bytes = bytes;
    return try_shapes(&searches[count], group, problem) ? &searches[count++] : NULL;
}

/* ----------------------------------------------------------------- measuring -- */

static bool make_contenders(const bench_group *group, replay *replays, contender *contenders, int *count,
                            problem *problem) {
    const search *best = best_shapes(group, problem);
    for (int i = 0; best && i < group->losses + FINALISTS; i++) {
        const bool is_loss = i < group->losses;
        if (!is_loss && best->shape[i - group->losses] < 0)
            break;
        contenders[i] = (contender){turn, &replays[i], 0};
        *count = i + 1;
        if (!(is_loss ? capture_loss(&replays[i], group, i, problem)
                      : capture_limit(&replays[i], group, best->shape[i - group->losses], problem)))
            return false;
    }
    return best != NULL;
}

static bool measure(const bench_group *group, double *seconds, problem *problem) {
    replay replays[BENCH_MOST_LOSSES + FINALISTS];
    contender contenders[BENCH_MOST_LOSSES + FINALISTS];
    int count = 0;
    bool is_done = make_contenders(group, replays, contenders, &count, problem);
    for (int i = 0; is_done && i < count; i++)
        is_done = turn(&replays[i]) >= 0 || gpu_fails(problem); /* warms up */
    is_done = is_done && (take_turns(contenders, count) || gpu_fails(problem));
    for (int i = 0; is_done && i < count; i++) {
        double *place = &seconds[i < group->losses ? i : group->losses];
        if (i <= group->losses || contenders[i].seconds < *place)
            *place = contenders[i].seconds;
    }
    for (int i = 0; i < count; i++)
        gpu_release_graph(replays[i].graph);
    return is_done;
}

const bench_device bench_gpu = {.limit = "the fastest of many kernels over the same bytes",
                                .open = open_gpu,
                                .name = gpu_name,
                                .free_memory = gpu_free_memory,
                                .allocate = allocate,
                                .fill = fill,
                                .measure = measure,
                                .close = close_gpu};
