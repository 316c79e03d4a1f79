/*
 * Sizes: both sides of every power of two, 2^30 elements, and more elements than 32
 * bits can count, which zero strides make cheap. And the same call many times over.
 */
#define _DEFAULT_SOURCE
#include "cases.h"
#include "check.h"
#include "gpu.h"
#include "oracle.h"
#include "test_cuda.h"

#include <sys/mman.h>

/* Outputs over there, and room to read them back. */
typedef struct outputs {
    void *stream;
    void *memory;
    unsigned char *read_back; /* pinned */
} outputs;

static outputs outputs_begin(size_t bytes) {
    return (outputs){gpu_stream_begin(), gpu_allocate(bytes), gpu_allocate_pinned(bytes)};
}

static void outputs_end(outputs *outputs) {
    gpu_free(outputs->memory);
    gpu_free_pinned(outputs->read_back);
    gpu_stream_end(outputs->stream);
}

static void run_work(const gpu_work *work, const outputs *outputs) {
    char text[256];
    gpu_work_describe(work, text, sizeof text);
    gpu_doing("%s", text);
    if (CHECK_OK(gpu_work_run(work, outputs->memory, outputs->stream), text)) {
        gpu_read(outputs->read_back, outputs->memory, gpu_work_bytes(work), outputs->stream);
        const int equal = gpu_work_equal(work, outputs->read_back, text, sizeof text);
        CHECK(equal, "%s", text);
    }
}

/* ---------------------------------------------------------------- sizes -- */

/* From one element over a line and a tile to runs of thousands of tiles. */
static void run_sizes(int32_t dtype, int most) {
    const int64_t room = (INT64_C(1) << most) + 4;
    gpu_numbers p = gpu_numbers_make(dtype, room, GPU_PERIOD_P, 1);
    gpu_numbers t = gpu_numbers_make(dtype, room, GPU_PERIOD_T, 2);
    outputs outputs = outputs_begin((size_t)room * oracle_size(dtype) + GPU_OUTPUT_HEAD + GPU_OUTPUT_TAIL);
    for (int i = 0; oracle_loss_at(i); i++) {
        if (!case_loss_is_swept(oracle_loss_at(i)->name)) {
            continue;
        }
        for (int power = 0; power <= most; power++) {
            for (int64_t count = (INT64_C(1) << power) - 1; count <= (INT64_C(1) << power) + 1; count++) {
                /* Forward alone and with a gradient are different paths; so is an operand off its alignment. */
                const int64_t first = count % 3;
                gpu_work forward = gpu_work_make(oracle_loss_at(i)->name, power % 2 ? ONEPASS_MEAN : ONEPASS_SUM,
                                                 WANT_VALUE, &p, &t, first, count);
                gpu_work both = gpu_work_make(oracle_loss_at(i)->name, power % 2 ? ONEPASS_SUM : ONEPASS_MEAN,
                                              WANT_VALUE | WANT_PREDICTION, &p, &t, 0, count);
                run_work(&forward, &outputs);
                run_work(&both, &outputs);
                gpu_work_free(&forward);
                gpu_work_free(&both);
            }
        }
    }
    outputs_end(&outputs);
    gpu_numbers_free(&p);
    gpu_numbers_free(&t);
}

int test_cuda_sizes(bool reduced) {
    const int most = reduced || check_quick("sizes beyond 2^20") ? 20 : 24;
    run_sizes(ONEPASS_F32, most);
    run_sizes(ONEPASS_F16, most - 2);
    run_sizes(ONEPASS_BF16, most - 2);
    run_sizes(ONEPASS_F64, most - 2);
    return section_finish();
}

/* -------------------------------------------------------------- repeats -- */

int test_cuda_repeats(bool reduced) {
    const int64_t count = INT64_C(1) << (reduced ? 14 : 24);
    const int times = reduced ? 3 : 50;
    gpu_numbers p = gpu_numbers_make(ONEPASS_F32, count, GPU_PERIOD_P, 3);
    gpu_numbers t = gpu_numbers_make(ONEPASS_F32, count, GPU_PERIOD_T, 4);
    outputs outputs = outputs_begin((size_t)count * sizeof(float) + GPU_OUTPUT_HEAD + GPU_OUTPUT_TAIL);
    for (int i = 0; oracle_loss_at(i); i++) {
        if (!case_loss_is_swept(oracle_loss_at(i)->name)) {
            continue;
        }
        gpu_work both =
            gpu_work_make(oracle_loss_at(i)->name, ONEPASS_MEAN, WANT_VALUE | WANT_PREDICTION, &p, &t, 0, count);
        gpu_work forward = gpu_work_make(oracle_loss_at(i)->name, ONEPASS_SUM, WANT_VALUE, &p, &t, 0, count);
        for (int time = 0; time < times; time++) {
            run_work(&both, &outputs);
            run_work(&forward, &outputs);
        }
        gpu_work_free(&both);
        gpu_work_free(&forward);
    }
    outputs_end(&outputs);
    gpu_numbers_free(&p);
    gpu_numbers_free(&t);
    return section_finish();
}

/* ---------------------------------------------------------- reciprocals -- */

/* A GPU's reciprocal is rounded by a step of Newton's (src/math/elementary.h) and must be the CPU's whatever the digits
 * of the divisor: all that a float can have, and the sums of 1 and a power of e that a sigmoid divides by. */
static float any_mantissa(int64_t i) {
    return 1 + (float)i * 0x1p-23f;
}

static float any_logit(int64_t i) {
    return (float)i * 0x1p-19f;
}

static float zero_or_one(int64_t i) {
    return (float)(i % 2);
}

static float above_all(int64_t i) {
    return (float)(3 + i % 5);
}

static gpu_numbers numbers_of(float (*number)(int64_t i), int64_t count, void *stream) {
    gpu_numbers numbers = gpu_numbers_make(ONEPASS_F32, count, GPU_PERIOD_P, 1);
    for (int64_t i = 0; i < count; i++) {
        ((float *)(void *)numbers.host)[i] = number(i);
    }
    gpu_write(numbers.device, numbers.host, (size_t)count * sizeof(float), stream);
    return numbers;
}

int test_cuda_reciprocals(bool reduced) {
    const int64_t count = INT64_C(1) << (reduced ? 14 : 23);
    const struct {
        const char *loss;
        float (*p)(int64_t i), (*t)(int64_t i);
    } works[] = {{"mape", above_all, any_mantissa}, {"focal_squared", any_logit, zero_or_one}};
    outputs outputs = outputs_begin((size_t)count * sizeof(float) + GPU_OUTPUT_HEAD + GPU_OUTPUT_TAIL);
    for (int i = 0; i < 2; i++) {
        gpu_numbers p = numbers_of(works[i].p, count, outputs.stream);
        gpu_numbers t = numbers_of(works[i].t, count, outputs.stream);
        gpu_work both = gpu_work_make(works[i].loss, ONEPASS_SUM, WANT_VALUE | WANT_PREDICTION, &p, &t, 0, count);
        run_work(&both, &outputs);
        gpu_work_free(&both);
        gpu_numbers_free(&p);
        gpu_numbers_free(&t);
    }
    outputs_end(&outputs);
    return section_finish();
}

/* ----------------------------------------------------------------- 2^30 -- */

enum {
    PIECE = 64 << 20 /* bytes that are read back and compared at a time */
};

/* Compares the GPU's memory with the host's, piece by piece. */
static void compare_memory(const void *expected, const void *device, size_t bytes, int32_t dtype,
                           unsigned char *read_back, void *stream, const char *what) {
    const size_t size = oracle_size(dtype);
    for (size_t at = 0; at < bytes; at += PIECE) {
        const size_t piece = bytes - at < PIECE ? bytes - at : PIECE;
        const unsigned char *mine = (const unsigned char *)expected + at;
        gpu_read(read_back, (const unsigned char *)device + at, piece, stream);
        if (memcmp(mine, read_back, piece) == 0) {
            continue;
        }
        size_t byte = 0;
        while (byte < piece && mine[byte] == read_back[byte]) {
            byte++;
        }
        byte = byte / size * size;
        CHECK(0, "%s: gradient p, element %zu: expected bits %llx, got %llx", what, (at + byte) / size,
              (unsigned long long)oracle_load_bits(dtype, mine + byte),
              (unsigned long long)oracle_load_bits(dtype, read_back + byte));
        return;
    }
    CHECK(1, "equal");
}

/* p, t and the gradient, here and over there. */
typedef struct large {
    int64_t count;
    unsigned char *host, *device;
    unsigned char *value; /* over there */
    unsigned char *read_back;
    void *stream;
} large;

/* One mapping, so that a machine which has not that much memory says so at once. */
static bool large_begin(large *large, int64_t count) {
    const size_t bytes = (size_t)count * sizeof(float);
    *large = (struct large){.count = count};
    large->device = gpu_try_allocate(3 * bytes);
    if (!large->device) {
        printf("left out: this GPU has not %zu MiB to spare\n", 3 * bytes >> 20);
        return false;
    }
    large->host = mmap(NULL, 3 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (large->host == MAP_FAILED) {
        printf("left out: this machine has not %zu MiB to spare\n", 3 * bytes >> 20);
        gpu_free(large->device);
        return false;
    }
    madvise(large->host, 3 * bytes, MADV_HUGEPAGE); /* a few thousand page faults instead of millions */
    large->value = gpu_allocate(GPU_OUTPUT_HEAD);
    large->read_back = gpu_allocate_pinned(PIECE);
    large->stream = gpu_stream_begin();
    gpu_numbers_fill(ONEPASS_F32, large->host, large->device, count, GPU_PERIOD_P, 5);
    gpu_numbers_fill(ONEPASS_F32, large->host + bytes, large->device + bytes, count, GPU_PERIOD_T, 6);
    return true;
}

static void large_end(large *large) {
    munmap(large->host, 3 * (size_t)large->count * sizeof(float));
    gpu_free(large->device);
    gpu_free(large->value);
    gpu_free_pinned(large->read_back);
    gpu_stream_end(large->stream);
}

/* The mean, and the gradient if it is wanted, on the CPU or the GPU. */
static onepass_status run_large(const large *large, const char *loss, int32_t device, bool gradient_wanted,
                                void *value) {
    const size_t bytes = (size_t)large->count * sizeof(float);
    unsigned char *memory = device == ONEPASS_CPU ? large->host : large->device;
    const onepass_tensor p = {memory, ONEPASS_F32, 1, &large->count, NULL};
    const onepass_tensor t = {memory + bytes, ONEPASS_F32, 1, &large->count, NULL};
    const onepass_tensor gradient = {memory + 2 * bytes, ONEPASS_F32, 1, &large->count, NULL};
    const onepass_tensor v = {value, ONEPASS_F64, 0, NULL, NULL};
    const onepass_call call = {.size = sizeof call,
                               .loss = loss,
                               .operand = {&p, &t},
                               .value = &v,
                               .gradient = {gradient_wanted ? &gradient : NULL},
                               .device = device,
                               .stream = device == ONEPASS_CUDA ? large->stream : NULL};
    return onepass_run(&call);
}

static void compare_value(const void *device, const double *expected, void *stream, const char *what) {
    double got = 0;
    gpu_read(&got, device, sizeof got, stream);
    CHECK_BITS(oracle_double_bits(*expected), oracle_double_bits(got), what);
}

static void compare_large(const large *large, const char *loss) {
    const size_t bytes = (size_t)large->count * sizeof(float);
    char what[96];
    double expected = 0;
    snprintf(what, sizeof what, "%s mean of %lld elements in f32", loss, (long long)large->count);
    gpu_doing("%s", what);
    gpu_fill(large->value, GPU_POISON, sizeof expected, large->stream);
    gpu_fill(large->device + 2 * bytes, GPU_POISON, bytes, large->stream);
    if (!CHECK_OK(run_large(large, loss, ONEPASS_CPU, true, &expected), what) ||
        !CHECK_OK(run_large(large, loss, ONEPASS_CUDA, false, large->value), what)) {
        return;
    }
    compare_value(large->value, &expected, large->stream, what);
    snprintf(what, sizeof what, "%s mean of %lld elements in f32, with gradient", loss, (long long)large->count);
    gpu_fill(large->value, GPU_POISON, sizeof expected, large->stream);
    if (CHECK_OK(run_large(large, loss, ONEPASS_CUDA, true, large->value), what)) {
        compare_value(large->value, &expected, large->stream, what);
        compare_memory(large->host + 2 * bytes, large->device + 2 * bytes, bytes, ONEPASS_F32, large->read_back,
                       large->stream, what);
    }
}

int test_cuda_large(bool reduced) {
    const int64_t count = INT64_C(1) << (reduced || check_quick("2^30 elements; 2^26 instead") ? 26 : 30);
    large large;
    if (large_begin(&large, count)) {
        for (int i = 0; oracle_loss_at(i); i++) {
            if (!case_loss_is_swept(oracle_loss_at(i)->name)) {
                continue;
            }
            compare_large(&large, oracle_loss_at(i)->name);
        }
        large_end(&large);
    } else {
        CHECK(1, "left out");
    }
    return section_finish();
}

/* ---------------------------------------------------------- beyond 2^32 -- */

/* A row shared by all rows, and a number for each row or for all. */
typedef struct wide {
    int64_t rows, columns;
    gpu_numbers row, column;
    unsigned char *value;
    void *stream;
} wide;

static void run_wide(const wide *wide, const char *loss, int32_t reduction, const onepass_tensor *host,
                     const onepass_tensor *device, const char *which) {
    char what[160];
    double expected = 0;
    snprintf(what, sizeof what, "%s %s of %lld x %lld elements, %s", loss, reduction == ONEPASS_SUM ? "sum" : "mean",
             (long long)wide->rows, (long long)wide->columns, which);
    gpu_doing("%s", what);
    const onepass_tensor value = {&expected, ONEPASS_F64, 0, NULL, NULL};
    const onepass_tensor device_value = {wide->value, ONEPASS_F64, 0, NULL, NULL};
    const onepass_call call = {.size = sizeof call,
                               .loss = loss,
                               .reduction = reduction,
                               .operand = {&device[0], &device[1]},
                               .value = &device_value,
                               .device = ONEPASS_CUDA,
                               .stream = wide->stream};
    gpu_fill(wide->value, GPU_POISON, sizeof expected, wide->stream);
    if (CHECK_OK(onepass_run(&call), what) &&
        CHECK_OK(onepass_forward(loss, (onepass_reduction)reduction, &host[0], &host[1], &value), what)) {
        compare_value(wide->value, &expected, wide->stream, what);
    }
}

static void sums_beyond_32_bits(const wide *wide, const char *loss) {
    const int64_t full[2] = {wide->rows, wide->columns};
    const int64_t none[2] = {0, 0};
    const int64_t column_shape[2] = {wide->rows, 1};
    const onepass_tensor row[2] = {{wide->row.host, ONEPASS_F32, 1, &wide->columns, NULL},
                                   {wide->row.device, ONEPASS_F32, 1, &wide->columns, NULL}};
    const onepass_tensor column[2] = {{wide->column.host, ONEPASS_F32, 2, column_shape, NULL},
                                      {wide->column.device, ONEPASS_F32, 2, column_shape, NULL}};
    const onepass_tensor one[2] = {{wide->column.host, ONEPASS_F32, 2, full, none},
                                   {wide->column.device, ONEPASS_F32, 2, full, none}};
    run_wide(wide, loss, ONEPASS_SUM, (onepass_tensor[]){one[0], row[0]}, (onepass_tensor[]){one[1], row[1]},
             "p zero strides, t shared row");
    run_wide(wide, loss, ONEPASS_MEAN, (onepass_tensor[]){one[0], row[0]}, (onepass_tensor[]){one[1], row[1]},
             "p zero strides, t shared row");
    run_wide(wide, loss, ONEPASS_SUM, (onepass_tensor[]){row[0], column[0]}, (onepass_tensor[]){row[1], column[1]},
             "p shared row, t per row");
}

/* A gradient of more than 2^32 elements, for what a scatter does with such an index: in bf16,
 * read back some rows at a time and compared with the same rows alone. */
static void gradient_beyond_32_bits(const wide *wide, const char *loss) {
    const int64_t shape[2] = {4097, 1048583};
    const int64_t column_shape[2] = {4097, 1};
    const int64_t rows_a_piece = 24;
    const size_t row_bytes = (size_t)shape[1] * 2;
    unsigned char *device = gpu_try_allocate((size_t)shape[0] * row_bytes);
    if (!device) {
        printf("left out: a gradient of more than 2^32 elements, for which this GPU has not 8 GiB to spare\n");
        return;
    }
    unsigned char *expected = gpu_allocate_host((size_t)rows_a_piece * row_bytes);
    unsigned char *read_back = gpu_allocate_pinned(PIECE);
    const onepass_tensor t = {wide->row.device, ONEPASS_F32, 1, &shape[1], NULL};
    const onepass_tensor p = {wide->column.device, ONEPASS_F32, 2, column_shape, NULL};
    const onepass_tensor gradient = {device, ONEPASS_BF16, 2, shape, NULL};
    const onepass_call call = {.size = sizeof call,
                               .loss = loss,
                               .reduction = ONEPASS_SUM,
                               .operand = {&p, &t},
                               .gradient = {&gradient},
                               .device = ONEPASS_CUDA,
                               .stream = wide->stream};
    gpu_doing("%s, a gradient of 4097 x 1048583 elements", loss);
    gpu_fill(device, GPU_POISON, (size_t)shape[0] * row_bytes, wide->stream);
    if (CHECK_OK(onepass_run(&call), "a gradient beyond 2^32")) {
        for (int64_t row = 0; row < shape[0]; row += rows_a_piece) {
            const int64_t left = shape[0] - row;
            const int64_t piece[2] = {left < rows_a_piece ? left : rows_a_piece, shape[1]};
            const int64_t piece_column[2] = {piece[0], 1};
            const onepass_tensor some_t = {wide->row.host, ONEPASS_F32, 1, &shape[1], NULL};
            const onepass_tensor some_p = {wide->column.host + (size_t)row * sizeof(float), ONEPASS_F32, 2,
                                           piece_column, NULL};
            const onepass_tensor some = {expected, ONEPASS_BF16, 2, piece, NULL};
            char what[96];
            snprintf(what, sizeof what, "%s, 4097 x 1048583 elements, from row %lld on", loss, (long long)row);
            CHECK_OK(onepass_backward(loss, ONEPASS_SUM, &some_p, &some_t, NULL, &some, NULL), what);
            compare_memory(expected, device + (size_t)row * row_bytes, (size_t)piece[0] * row_bytes, ONEPASS_BF16,
                           read_back, wide->stream, what);
        }
    }
    free(expected);
    gpu_free_pinned(read_back);
    gpu_free(device);
}

int test_cuda_beyond_32_bits(bool reduced) {
    if (reduced || check_quick("more than 2^32 elements")) {
        CHECK(1, "left out");
        return section_finish();
    }
    wide wide = {.rows = 5000, .columns = 1000003};
    wide.row = gpu_numbers_make(ONEPASS_F32, 1048583, GPU_PERIOD_T, 7);
    wide.column = gpu_numbers_make(ONEPASS_F32, wide.rows, GPU_PERIOD_P, 8);
    wide.value = gpu_allocate(GPU_OUTPUT_HEAD);
    wide.stream = gpu_stream_begin();
    for (int i = 0; oracle_loss_at(i); i++) {
        if (!case_loss_is_swept(oracle_loss_at(i)->name)) {
            continue;
        }
        sums_beyond_32_bits(&wide, oracle_loss_at(i)->name);
    }
    gradient_beyond_32_bits(&wide, "mse");
    gpu_numbers_free(&wide.row);
    gpu_numbers_free(&wide.column);
    gpu_free(wide.value);
    gpu_stream_end(wide.stream);
    return section_finish();
}
