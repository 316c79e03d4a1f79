/*
 * Vector losses on a real GPU: the list of cases in all launch shapes, captured calls, and more than 2^31 elements. The
 * CPU engine's bits are what is expected.
 */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include "cuda/plan.h"
#include "gpu.h"
#include "test_cuda.h"
#include "vector_case.h"

/* ------------------------------------------------------------ a case there -- */

enum {
    MOST_TENSORS = 16
};

/* A case whose tensors are on the GPU as well. */
typedef struct vector_work {
    prepared_vectors *expected; /* what the CPU makes of it */
    prepared_vectors *there;    /* points into the GPU's memory; its own is what the GPU begins with */
    unsigned char *memory[MOST_TENSORS];
    char text[600];
} vector_work;

static bool work_begin(const vector_case *c, vector_work *work) {
    *work = (vector_work){.expected = vector_case_prepare(c), .there = vector_case_prepare(c)};
    vector_case_describe(c, work->text, sizeof work->text);
    for (int i = 0; vector_case_tensor(work->there, i); i++) {
        work->memory[i] = gpu_allocate(vector_case_tensor(work->there, i)->bytes);
        vector_case_point(work->there, i, work->memory[i]);
    }
    work->there->call.device = ONEPASS_CUDA;
    return CHECK_OK(onepass_run(&work->expected->call), work->text);
}

static void work_end(vector_work *work) {
    for (int i = 0; vector_case_tensor(work->there, i); i++) {
        gpu_free(work->memory[i]);
    }
    vector_case_free(work->expected);
    vector_case_free(work->there);
}

static void work_send(const vector_work *work, void *stream) {
    for (int i = 0; vector_case_tensor(work->there, i); i++) {
        const case_tensor *tensor = vector_case_tensor(work->there, i);
        gpu_write(work->memory[i], tensor->memory, tensor->bytes, stream);
    }
}

static onepass_status work_call(const vector_work *work, void *stream) {
    work->there->call.stream = stream;
    return onepass_run(&work->there->call);
}

static void work_compare(const vector_work *work, void *stream, const char *how) {
    for (int i = 0; vector_case_tensor(work->there, i); i++) {
        char difference[200];
        const case_tensor *tensor = vector_case_tensor(work->expected, i);
        unsigned char *got = gpu_allocate_host(tensor->bytes);
        gpu_read(got, work->memory[i], tensor->bytes, stream);
        const bool equal = case_tensor_equal(tensor, got, difference, sizeof difference);
        CHECK(equal, "%s; %s: %s", how, work->text, difference);
        free(got);
    }
}

static void run_work(const vector_work *work, void *stream, const char *how) {
    gpu_doing("%s: %s", how, work->text);
    work_send(work, stream);
    if (CHECK_OK(work_call(work, stream), work->text)) {
        work_compare(work, stream, how);
    }
}

/* ------------------------------------------------------------------ the list -- */

/* Each second case with gradients over their operands, where nothing is broadcast and all are of one type. */
static vector_case case_at(const vector_case *list, size_t i) {
    vector_case c = list[i];
    const int vectors = oracle_vector_operands(c.loss);
    bool fits = vector_case_is_apart(&c, 0) && vector_case_is_apart(&c, 1);
    for (int k = 0; k < vectors; k++) {
        fits &= c.gradient[k] == 0 || c.gradient[k] == c.operand[k];
    }
    c.in_place = fits && i % 2;
    return c;
}

int test_cuda_vectors(bool reduced) {
    static const cuda_shape shapes[] = {{.kernels = CUDA_GENERAL_KERNELS},
                                        {.kernels = CUDA_LARGE_KERNELS},
                                        {.most_blocks = 2},
                                        {.kernels = CUDA_LARGE_KERNELS, .most_blocks = 3}};
    size_t count;
    const vector_case *list = vector_case_list(&count);
    void *stream = gpu_stream_begin();
    for (size_t i = 0; i < count; i += reduced ? 37 : 1) {
        const vector_case c = case_at(list, i);
        vector_work work;
        if (work_begin(&c, &work)) {
            run_work(&work, stream, "the list");
            onepass_cuda_shape = shapes[i % 4];
            run_work(&work, stream, "in another shape");
            onepass_cuda_shape = (cuda_shape){.kernels = CUDA_SMALL_KERNELS};
            run_work(&work, stream, "as if there were many rows");
            onepass_cuda_shape = (cuda_shape){0};
        }
        work_end(&work);
    }
    printf("%zu cases\n", reduced ? count / 37 + 1 : count);
    gpu_stream_end(stream);
    return section_finish();
}

/* ------------------------------------------------------------------ graphs -- */

int test_cuda_vectors_graphs(bool reduced) {
    size_t count;
    const vector_case *list = vector_case_list(&count);
    void *stream = gpu_stream_begin(), *other = gpu_stream_begin();
    for (size_t i = 5; i < count; i += reduced ? 301 : 31) {
        vector_work work;
        if (work_begin(&list[i], &work)) {
            gpu_doing("captured: %s", work.text);
            gpu_capture_begin(stream, (int)(i % GPU_CAPTURE_MODES));
            CHECK_OK(work_call(&work, stream), work.text);
            gpu_graph graph = gpu_capture_end(stream);
            for (int replay = 0; replay < 3; replay++) {
                void *on = replay % 2 ? other : stream;
                work_send(&work, on);
                gpu_replay(&graph, on);
                work_compare(&work, on, "replayed");
            }
            gpu_graph_end(&graph);
        }
        work_end(&work);
    }
    gpu_stream_end(stream);
    gpu_stream_end(other);
    return section_finish();
}

/* ------------------------------------------------------ beyond 2^31 elements -- */

enum {
    PERIOD = 3 /* rows that are different */
};

/* Rows do not depend on each other: the values and gradients of those that begin a period are those of the first ones.
 */
static void compare_rows(const float *value, const uint16_t *gradient, const unsigned char *there_value,
                         const unsigned char *there_gradient, int64_t first, int64_t rows, int64_t length) {
    float got_value[PERIOD];
    uint16_t *got = malloc((size_t)(rows * length) * 2);
    gpu_read(got_value, there_value + (size_t)first * 4, (size_t)rows * 4, NULL);
    gpu_read(got, there_gradient + (size_t)(first * length) * 2, (size_t)(rows * length) * 2, NULL);
    CHECK(memcmp(value, got_value, (size_t)rows * 4) == 0, "rows from %lld on: other values", (long long)first);
    CHECK(memcmp(gradient, got, (size_t)(rows * length) * 2) == 0, "rows from %lld on: other gradients",
          (long long)first);
    free(got);
}

/* The distance of rows from one that they share. */
static onepass_status measure(void *rows_of, void *one, void *values, void *gradients, int64_t rows, int64_t length,
                              int32_t device) {
    const int64_t shape[] = {rows, length};
    const onepass_tensor a = {rows_of, ONEPASS_BF16, 2, shape, NULL}, b = {one, ONEPASS_BF16, 1, shape + 1, NULL};
    const onepass_tensor v = {values, ONEPASS_F32, 1, shape, NULL}, g = {gradients, ONEPASS_BF16, 2, shape, NULL};
    const onepass_call call = {.size = sizeof call,
                               .loss = "pairwise_distance",
                               .reduction = ONEPASS_NONE,
                               .operand = {&a, &b},
                               .value = &v,
                               .gradient = {&g},
                               .device = device};
    return onepass_run(&call);
}

static void run_beyond(int64_t rows, int64_t length) {
    const size_t bytes = (size_t)(rows * length) * 2, pattern = (size_t)(PERIOD * length) * 2;
    unsigned char *a = gpu_try_allocate(bytes), *g = a ? gpu_try_allocate(bytes) : NULL;
    if (!g) {
        printf("left out: no room for twice %zu bytes\n", bytes);
        gpu_free(a);
        return;
    }
    uint16_t *numbers = malloc(pattern), *gradient = malloc(pattern);
    float value[PERIOD];
    unsigned char *v = gpu_allocate((size_t)rows * 4), *one = gpu_allocate((size_t)length * 2);
    for (int64_t i = 0; i < PERIOD * length; i++)
        oracle_store(ONEPASS_BF16, numbers + i, (double)(i * 7919 % 1009) / 256 - 2);
    gpu_write(a, numbers, pattern, NULL);
    gpu_write(one, numbers, (size_t)length * 2, NULL);
    for (int64_t have = PERIOD; have < rows;) { /* doubled until all are there */
        const int64_t more = have < rows - have ? have : rows - have;
        gpu_copy(a + (size_t)(have * length) * 2, a, (size_t)(more * length) * 2, NULL);
        have += more;
    }
    gpu_doing("%lld x %lld", (long long)rows, (long long)length);
    CHECK_OK(measure(numbers, numbers, value, gradient, PERIOD, length, ONEPASS_CPU), "on the CPU");
    if (CHECK_OK(measure(a, one, v, g, rows, length, ONEPASS_CUDA), "beyond 2^31 elements")) {
        const int64_t wrap = (INT64_C(1) << 31) / length, places[] = {0, wrap - 1, wrap, rows - 1};
        for (int i = 0; i < 4; i++) {
            const int64_t first = places[i] / PERIOD * PERIOD; /* where the pattern begins */
            compare_rows(value, gradient, v, g, first, rows - first < PERIOD ? rows - first : PERIOD, length);
        }
    }
    gpu_free(a);
    gpu_free(g);
    gpu_free(v);
    gpu_free(one);
    free(numbers);
    free(gradient);
}

/* One vector of more than 2^32 elements, which are all the same one in memory: the order's sum of so many equals. */
static void run_one_long(void) {
    const int64_t count = (INT64_C(1) << 32) + 4100, shape[] = {1, count}, everywhere[] = {0, 0};
    const float numbers[] = {0.7f, 0.1f};
    double value = 0;
    unsigned char *there = gpu_allocate(2 * sizeof(float) + sizeof(double));
    const onepass_tensor a = {there, ONEPASS_F32, 2, shape, everywhere};
    const onepass_tensor b = {there + sizeof(float), ONEPASS_F32, 2, shape, everywhere};
    const onepass_tensor v = {there + 2 * sizeof(float), ONEPASS_F64, 0, NULL, NULL};
    const onepass_call call = {.size = sizeof call,
                               .loss = "pairwise_distance",
                               .reduction = ONEPASS_SUM,
                               .parameter_count = 2,
                               .parameter = {1, 0},
                               .operand = {&a, &b},
                               .value = &v,
                               .device = ONEPASS_CUDA};
    gpu_doing("one vector of %lld", (long long)count);
    gpu_write(there, numbers, sizeof numbers, NULL);
    if (CHECK_OK(onepass_run(&call), "one long vector")) {
        const double sum = oracle_sum_of_equals((double)numbers[0] - (double)numbers[1], count, 0);
        gpu_read(&value, there + 2 * sizeof(float), sizeof value, NULL);
        CHECK_BITS(oracle_double_bits((double)(float)sum), oracle_double_bits(value), "one long vector");
    }
    gpu_free(there);
}

int test_cuda_vectors_beyond(bool reduced) {
    if (reduced)
        return section_finish();
    run_one_long();
    run_beyond(2200001, 1000); /* narrow */
    run_beyond(530001, 4096);  /* short */
    run_beyond(40001, 60000);  /* long */
    run_beyond(2200001, 1001); /* not aligned */
    return section_finish();
}
