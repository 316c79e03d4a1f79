/*
 * The CPU engine around the tiles: which instruction set this machine has, how
 * many threads a job is worth, and the tree over the spans of tiles that the threads
 * computed.
 */
#include "cpu/instruction_sets.h"
#include "cpu/rows.h"
#include "cpu/labels.h"
#include "cpu/threads.h"
#include "cpu/vectors.h"
#include "dtype.h"
#include "float_state.h"
#include "message.h"
#include "order.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif
#if defined(_OPENMP)
#include <omp.h>
#endif

/* ------------------------------------------------------- instruction sets -- */

/* What every processor of the architecture has needs no question. */
#define HERE_sse2     true
#define HERE_neon     true
#define HERE_baseline true

#if defined(__x86_64__)
#define HERE_avx2 (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#define HERE_avx512                                                                                                    \
    (HERE_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&                           \
     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
#elif defined(__aarch64__) && defined(__linux__)
#define HERE_sve ((getauxval(AT_HWCAP) & (1ul << 22)) != 0) /* HWCAP_SVE */
#else
#define HERE_sve false
#endif

/* What is compiled for each of them, in each compute type. */
typedef struct cpu_functions {
    cpu_begin_function *begin;
    cpu_run_function *run, *run_rows;
    cpu_rows_function *rows;
    cpu_terms_function *terms;
    cpu_labels_function *labels;
    cpu_share_function *share;
    cpu_vector_largest_function *vector_largest;
    cpu_vector_softmaxes_function *vector_softmaxes;
    cpu_vector_know_function *vector_know;
    cpu_vector_sums_function *vector_sums;
    cpu_vector_finish_function *vector_finish;
    cpu_vector_slopes_function *vector_slopes;
} cpu_functions;

typedef struct instruction_set {
    const char *name;
    bool (*is_here)(void);
    bool automatic; /* chosen without being asked for */
    const cpu_functions f32, f64;
} instruction_set;

#define DECLARE_FUNCTIONS(set_real)                                                                                    \
    ONEPASS_INTERNAL cpu_begin_function onepass_cpu_begin_##set_real;                                                  \
    ONEPASS_INTERNAL cpu_run_function onepass_cpu_run_##set_real, onepass_cpu_run_rows_##set_real;                     \
    ONEPASS_INTERNAL cpu_rows_function onepass_cpu_rows_##set_real;                                                    \
    ONEPASS_INTERNAL cpu_terms_function onepass_cpu_terms_##set_real;                                                  \
    ONEPASS_INTERNAL cpu_labels_function onepass_cpu_labels_##set_real;                                                \
    ONEPASS_INTERNAL cpu_share_function onepass_cpu_share_##set_real;                                                  \
    ONEPASS_INTERNAL cpu_vector_largest_function onepass_cpu_vector_largest_##set_real;                                \
    ONEPASS_INTERNAL cpu_vector_softmaxes_function onepass_cpu_vector_softmaxes_##set_real;                            \
    ONEPASS_INTERNAL cpu_vector_know_function onepass_cpu_vector_know_##set_real;                                      \
    ONEPASS_INTERNAL cpu_vector_sums_function onepass_cpu_vector_sums_##set_real;                                      \
    ONEPASS_INTERNAL cpu_vector_finish_function onepass_cpu_vector_finish_##set_real;                                  \
    ONEPASS_INTERNAL cpu_vector_slopes_function onepass_cpu_vector_slopes_##set_real;
#define FUNCTIONS(set_real)                                                                                            \
    {                                                                                                                  \
        onepass_cpu_begin_##set_real, onepass_cpu_run_##set_real, onepass_cpu_run_rows_##set_real,                     \
            onepass_cpu_rows_##set_real, onepass_cpu_terms_##set_real, onepass_cpu_labels_##set_real,                  \
            onepass_cpu_share_##set_real, onepass_cpu_vector_largest_##set_real,                                       \
            onepass_cpu_vector_softmaxes_##set_real, onepass_cpu_vector_know_##set_real,                               \
            onepass_cpu_vector_sums_##set_real, onepass_cpu_vector_finish_##set_real,                                  \
            onepass_cpu_vector_slopes_##set_real                                                                       \
    }
#define DECLARE(unused, set, automatic)                                                                                \
    DECLARE_FUNCTIONS(set##_f32)                                                                                       \
    DECLARE_FUNCTIONS(set##_f64)                                                                                       \
    static bool has_##set(void) {                                                                                      \
        return HERE_##set;                                                                                             \
    }
EACH_INSTRUCTION_SET(DECLARE, )

#define INSTRUCTION_SET(unused, set, automatic)                                                                        \
    {#set, has_##set, automatic, FUNCTIONS(set##_f32), FUNCTIONS(set##_f64)},
static const instruction_set instruction_sets[] = {EACH_INSTRUCTION_SET(INSTRUCTION_SET, )};

#define INSTRUCTION_SET_COUNT (sizeof instruction_sets / sizeof *instruction_sets)

/* What was found out at the first call. Threads that find it out at the same time find the same. */
typedef struct machine {
    const instruction_set *chosen; /* null: ONEPASS_ISA names one that is not here */
    char asked_for[32];
    char available[64];
} machine;

static machine this_machine;
static pthread_once_t machine_known = PTHREAD_ONCE_INIT;

static void look_at_machine(void) {
    const char *wish = getenv("ONEPASS_ISA");
    const bool asked = wish && *wish;
    if (asked)
        snprintf(this_machine.asked_for, sizeof this_machine.asked_for, "%s", wish);
    for (size_t i = 0; i < INSTRUCTION_SET_COUNT; i++) {
        const instruction_set *set = &instruction_sets[i];
        if (!set->is_here())
            continue;
        const size_t used = strlen(this_machine.available);
        snprintf(this_machine.available + used, sizeof this_machine.available - used, "%s%s", used ? " " : "",
                 set->name);
        if (!this_machine.chosen && (asked ? strcmp(wish, set->name) == 0 : set->automatic))
            this_machine.chosen = set;
    }
}

static onepass_status choose_instruction_set(const instruction_set **set) {
    pthread_once(&machine_known, look_at_machine);
    *set = this_machine.chosen;
    if (!*set)
        return onepass_fail(ONEPASS_INVALID_ARGUMENT,
                            "the environment variable ONEPASS_ISA is \"%s\"; this machine and build have: %s",
                            this_machine.asked_for, this_machine.available);
    return ONEPASS_OK;
}

/* ----------------------------------------------------------------- threads -- */

/* A thread is woken for no less than this many tiles: about 20 microseconds of work. */
#define TILES_WORTH_A_THREAD 32

/* A call that names a number gets it, as far as there are tiles and cores. */
static int64_t threads_for(const job *job, int64_t tiles) {
    const int64_t useful = job->threads ? tiles : tiles / TILES_WORTH_A_THREAD;
    if (useful < 2)
        return 1;
    return onepass_cpu_possible_threads(least(useful, job->threads ? job->threads : onepass_cpu_wished_threads()));
}

/* Rows, in tiles of elements. */
static int64_t tiles_of_rows(const job *job) {
    const int64_t length = job->family == FAMILY_VECTORS ? job->vectors.length : job->rows.classes;
    const double elements = (double)job->count * (double)(length + 8);
    return elements < 1e15 ? (int64_t)(elements / ORDER_TILE) + 1 : INT64_C(1) << 40;
}

static int64_t threads_for_labels(const job *job) {
    return has_class_indices(job) ? threads_for(job, tiles_of_rows(job)) : 1;
}

/* Where there are fewer tiles of rows a thread, and not as many for each, threads share tiles. */
#define TILES_A_THREAD 8

/* --------------------------------------------------------------------- run -- */

/* Spans are aligned and have 2^level tiles, so that each is one node of the tree.
 * Enough of them to share out evenly, few enough to keep their sums on the stack. */
#define MOST_SPANS       1024
#define SPANS_PER_THREAD 128

static int level_of_spans(int64_t tiles, int64_t threads, int64_t most) {
    const int64_t spans = least(threads * SPANS_PER_THREAD, most);
    int level = 0;
    while (((tiles - 1) >> level) + 1 > spans)
        level++;
    while (tiles % (threads << (level + 1)) == 0) /* as even, with fewer sums to hand on */
        level++;
    return level;
}

/* Each thread has its share of the spans in one piece. A span that nobody has a sum of counts as 0. */
static double run_on_threads(cpu_run_function *run, const job *job, const cpu_start *start, int64_t tiles,
                             int64_t threads) {
    double sum[MOST_SPANS];
    const int level = level_of_spans(tiles, threads, MOST_SPANS);
    const int64_t spans = ((tiles - 1) >> level) + 1;
    memset(sum, 0, (size_t)spans * sizeof *sum);
#if defined(_OPENMP)
#pragma omp parallel num_threads((int)threads)
    {
        const float_state callers = enter_float_state();
        const int64_t thread = omp_get_thread_num(), team = omp_get_num_threads();
        const int64_t first = spans * thread / team, end = spans * (thread + 1) / team;
        const int64_t first_tile = first << level, end_tile = least(end << level, tiles);
        run(job, start, first_tile, end_tile - first_tile, level, sum + first);
        leave_float_state(callers);
    }
#else
    run(job, start, 0, tiles, level, sum);
#endif
    return order_tree(sum, spans);
}

static double run_alone(cpu_run_function *run, const job *job, const cpu_start *start, int64_t tiles) {
    double sum = 0;
    run(job, start, 0, tiles, ORDER_TOP_LEVEL, &sum);
    return sum;
}

/* Rows of many classes: threads share those of each tile, since there may be few tiles. */
static double run_rows_on_threads(const cpu_functions *functions, const job *job, int64_t threads) {
    _Alignas(64) double own[ORDER_TILE]; /* or floats */
    void *terms = job->terms ? job->terms : own;
    const int64_t size = job->compute == ONEPASS_F64 ? sizeof(double) : sizeof(float);
    order_stack stack;
    stack.depth = 0;
    stack.tiles = 0;
    for (int64_t first = 0; first < job->count; first += ORDER_TILE) {
        const int64_t count = least(job->count - first, ORDER_TILE), share = (count - 1) / (threads * 4) + 1;
#if defined(_OPENMP)
#pragma omp parallel num_threads((int)threads)
        {
            const float_state callers = enter_float_state();
#pragma omp for schedule(dynamic)
            for (int64_t row = 0; row < count; row += share)
                functions->rows(job, first + row, least(count - row, share), (char *)terms + row * size);
            leave_float_state(callers);
        }
#else
        (void)share;
        functions->rows(job, first, count, terms);
#endif
        order_push(&stack, functions->terms(terms, count));
    }
    return order_top(&stack);
}

#if defined(_OPENMP)
/* Fewer rows than threads, of many classes: threads share the tiles of each row. */
static bool threads_share_rows(const job *job, int64_t threads) {
    if (job->family != FAMILY_ROWS || job->loss->kind == ROW_PICKED || job->rows.classes == 0 ||
        job->rows.shard.step == SHARD_SUMS)
        return false;
    const int64_t tiles = (job->rows.classes - 1) / ORDER_TILE + 1;
    return job->count < threads && tiles >= threads && tiles <= MOST_SHARED_TILES;
}

static double share_rows(const cpu_functions *functions, const job *job, int64_t threads) {
    _Alignas(64) double own[ORDER_TILE]; /* or floats */
    void *terms = job->terms ? job->terms : own;
    shared_row shared;
    const int64_t size = job->compute == ONEPASS_F64 ? sizeof(double) : sizeof(float);
    const int64_t tiles = (job->rows.classes - 1) / ORDER_TILE + 1;
#pragma omp parallel num_threads((int)threads)
    {
        const float_state callers = enter_float_state();
        const int64_t thread = omp_get_thread_num(), team = omp_get_num_threads();
        const int64_t first = tiles * thread / team, end = tiles * (thread + 1) / team;
        for (int64_t row = 0; row < job->count; row++)
            for (int step = SHARE_BEGIN; step <= SHARE_GRADIENTS; step++) {
                if (thread == 0 || step == SHARE_SUMS || step == SHARE_GRADIENTS)
                    functions->share(job, row, (share_step)step, first, end, &shared, (char *)terms + row * size);
#pragma omp barrier
            }
        leave_float_state(callers);
    }
    return functions->terms(terms, job->count);
}

/* Of several sums there are fewer spans, to keep them on the stack. */
#define MOST_VECTOR_SPANS 512

/* Fewer rows than threads, of long vectors. */
static bool threads_share_vectors(const job *job, int64_t threads) {
    return job->family == FAMILY_VECTORS && job->count < threads && threads <= MOST_VECTOR_SPANS &&
           job->vectors.length / ORDER_TILE >= threads * TILES_A_THREAD;
}

/* A row that threads share. */
typedef struct shared_vectors {
    const cpu_functions *functions;
    double nodes[VECTOR_MOST_NODES][MOST_VECTOR_SPANS];
    int64_t spans;
    double largest[2];
    double sum[VECTOR_MOST_NODES];
    vector_softmaxes softmaxes;
    vector_slopes slopes;
} shared_vectors;

/* What all threads left in their nodes; one thread adds it up. */
static void join_nodes(shared_vectors *shared, int sums) {
    for (int k = 0; k < sums; k++)
        shared->sum[k] = order_tree(shared->nodes[k], shared->spans);
}

/* The largest of what the threads found; NaN if one is. */
static void join_largest(shared_vectors *shared, int64_t team) {
    for (int k = 0; k < 2; k++) {
        shared->largest[k] = -HUGE_VAL;
        for (int64_t i = 0; i < team; i++) {
            const double own = shared->nodes[k][i];
            shared->largest[k] = own != own || own > shared->largest[k] ? own : shared->largest[k];
        }
    }
}

/* All threads come here together. What each finds first waits where nodes will be. */
static void share_softmaxes(const job *job, const vector_share *share, int64_t thread, int64_t team,
                            shared_vectors *shared) {
    double own[2];
    shared->functions->vector_largest(job, share, own);
    shared->nodes[0][thread] = own[0];
    shared->nodes[1][thread] = own[1];
#pragma omp barrier
    if (thread == 0)
        join_largest(shared, team);
#pragma omp barrier
    shared->functions->vector_softmaxes(job, share, shared->largest);
#pragma omp barrier
    if (thread == 0) {
        join_nodes(shared, VECTOR_MOST_NODES);
        shared->functions->vector_know(job, shared->largest, shared->sum, &shared->softmaxes);
    }
#pragma omp barrier
}

/* Threads share the spans of each row. */
static double share_vectors(const cpu_functions *functions, const job *job, int64_t threads) {
    _Alignas(64) double own[ORDER_TILE]; /* or floats */
    void *terms = job->terms ? job->terms : own;
    const int64_t size = job->compute == ONEPASS_F64 ? sizeof(double) : sizeof(float);
    const int64_t tiles = (job->vectors.length - 1) / ORDER_TILE + 1;
    const int level = level_of_spans(tiles, threads, MOST_VECTOR_SPANS);
    shared_vectors shared = {.functions = functions, .spans = ((tiles - 1) >> level) + 1};
#pragma omp parallel num_threads((int)threads)
    {
        const float_state callers = enter_float_state();
        const int64_t thread = omp_get_thread_num(), team = omp_get_num_threads();
        const int64_t first = shared.spans * thread / team, end = shared.spans * (thread + 1) / team;
        double *const node[VECTOR_MOST_NODES] = {shared.nodes[0] + first, shared.nodes[1] + first,
                                                 shared.nodes[2] + first, shared.nodes[3] + first,
                                                 shared.nodes[4] + first};
        for (int64_t row = 0; row < job->count; row++) {
            const vector_share share = {row, first << level, end << level, level, node};
            if (job->loss->has_softmaxes)
                share_softmaxes(job, &share, thread, team, &shared);
            if (job->loss->sums > 0)
                functions->vector_sums(job, &share, &shared.softmaxes);
#pragma omp barrier
            if (thread == 0) {
                join_nodes(&shared, job->loss->sums);
                functions->vector_finish(job, row, shared.sum, &shared.softmaxes, &shared.slopes,
                                         (char *)terms + row * size);
            }
#pragma omp barrier
            functions->vector_slopes(job, &share, &shared.softmaxes, &shared.slopes);
        }
        leave_float_state(callers);
    }
    return functions->terms(terms, job->count);
}
#endif

static double compute_sum(const cpu_functions *functions, const job *job) {
    const bool over_rows =
        job->family == FAMILY_ROWS || job->family == FAMILY_ROW_WEIGHTS || job->family == FAMILY_VECTORS;
    cpu_run_function *const run = over_rows ? functions->run_rows : functions->run;
    const int64_t tiles = job->count / ORDER_TILE + (job->count % ORDER_TILE != 0);
    const int64_t work = over_rows && job->family != FAMILY_ROW_WEIGHTS ? tiles_of_rows(job) : tiles;
    const int64_t threads = threads_for(job, work);
#if defined(_OPENMP)
    if (threads > 1 && threads <= ORDER_TILE && threads_share_rows(job, threads))
        return share_rows(functions, job, threads);
    if (threads > 1 && threads_share_vectors(job, threads))
        return share_vectors(functions, job, threads);
#endif
    if (threads > 1 && over_rows && tiles < threads * TILES_A_THREAD && tiles % threads != 0)
        return run_rows_on_threads(functions, job, threads);
    cpu_start start;
    if (!over_rows)
        functions->begin(job, &start);
    return threads > 1 ? run_on_threads(run, job, &start, tiles, threads) : run_alone(run, job, &start, tiles);
}

static void compute(const cpu_functions *functions, const job *job) {
    const double sum = compute_sum(functions, job);
    if (job->sum)
        *job->sum = sum;
    if (job->reduction != ONEPASS_NONE && job->value.data)
        store_scalar(job->value.data, job->value.dtype, onepass_reduced(job->reduction, sum, job->divisor));
}

static const cpu_functions *functions_for(const instruction_set *set, const job *job) {
    return job->compute == ONEPASS_F64 ? &set->f64 : &set->f32;
}

/* Not inlined: its job need not be on the stack beside the other. */
static __attribute__((noinline)) double sum_of_weights(const instruction_set *set, const job *job) {
    struct job weights;
    double sum;
    onepass_plan_weights(job, &weights);
    weights.sum = &sum;
    compute(functions_for(set, &weights), &weights);
    return sum;
}

/* The weights first, since the gradient of every element is divided by their sum. `counted` as check_labels() has it.
 */
static void compute_over_weights(const instruction_set *set, const job *job, int64_t counted) {
    struct job divided = *job;
    divided.divisor = divides_by_count(job) ? (double)counted : sum_of_weights(set, job);
    compute(functions_for(set, job), &divided);
    if (job->divided_by.data)
        store_scalar(job->divided_by.data, job->divided_by.dtype, divided.divisor);
}

/* ------------------------------------------------------------------- entry -- */

onepass_status onepass_check_labels(const job *job, int64_t rows_before) {
    const instruction_set *set;
    int64_t counted;
    OK(choose_instruction_set(&set));
    return check_labels(job, functions_for(set, job)->labels, rows_before, threads_for_labels(job), &counted);
}

/* In the compute type, as the gradient is multiplied by it. */
static bool upstream_is_expected(const job *job) {
    const double upstream = load_scalar(job->upstream.data, job->upstream.dtype), expected = job->expected_upstream;
    return job->compute == ONEPASS_F64 ? upstream == expected : (float)upstream == (float)expected;
}

static onepass_status cpu_run(const job *job) {
    const instruction_set *set;
    int64_t counted = 0;
    OK(choose_instruction_set(&set));
    OK(check_labels(job, functions_for(set, job)->labels, 0, threads_for_labels(job), &counted));
    const bool done_before = job->skip_if_one && upstream_is_expected(job);
    if (done_before)
        return ONEPASS_OK;
    if (job->over_weights) {
        compute_over_weights(set, job, counted);
        return ONEPASS_OK;
    }
    compute(functions_for(set, job), job);
    if (job->divided_by.data)
        store_scalar(job->divided_by.data, job->divided_by.dtype, job->divisor);
    return ONEPASS_OK;
}

/* Nothing to do but to say early that there is no such instruction set. */
static onepass_status cpu_prepare(int32_t device_index) {
    const instruction_set *set;
    (void)device_index; /* there is one CPU */
    return choose_instruction_set(&set);
}

static onepass_status cpu_describe(onepass_machine_info *info) {
    const instruction_set *set;
    const onepass_status status = choose_instruction_set(&set);
    if (status != ONEPASS_OK)
        return status;
    info->instruction_set = set->name;
    info->instruction_sets = this_machine.available;
    info->threads = onepass_cpu_default_threads();
    return ONEPASS_OK;
}

const engine onepass_cpu_engine = {"cpu", cpu_run, cpu_prepare, cpu_describe};
