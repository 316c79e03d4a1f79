/*
 * The order of summation: the library's sum against the literal one of the
 * oracle, for many sizes and numbers of threads, by every route, and once beyond
 * 2^32 elements. Values are written as double, so that no bit of the sum hides
 * behind a rounding.
 */
#include "cases.h"
#include "check.h"
#include "cpu/threads.h"
#include "oracle.h"

enum {
    MOST = 5000003
};

static const int32_t thread_counts[] = {1, 2, 3, 7, 16};

/* One input for all sizes: each size takes a prefix. */
typedef struct input {
    int32_t dtype;
    int in_float;
    int operands;
    char *operand[ORACLE_OPERANDS];
    double *term;
} input;

static void *allocate(size_t bytes) {
    void *memory = malloc(bytes);
    if (!memory) {
        perror("malloc");
        exit(1);
    }
    return memory;
}

static input make_input(const char *name, int32_t dtype, int64_t count) {
    const oracle_loss *loss = oracle_loss_named(name);
    const size_t size = oracle_size(dtype);
    double k[ONEPASS_MAX_PARAMETERS];
    oracle_parameters(loss, 0, NULL, k);
    input in = {.dtype = dtype, .in_float = dtype != ONEPASS_F64, .operands = loss->operand_count};
    in.term = allocate((size_t)count * sizeof(double));
    for (int j = 0; j < in.operands; j++) {
        in.operand[j] = allocate((size_t)count * size);
    }
    uint64_t state = 2024;
    for (int64_t i = 0; i < count; i++) {
        double operand[ORACLE_OPERANDS] = {0}, result[ORACLE_PARTS];
        for (int j = 0; j < in.operands; j++) {
            /* A wide range of magnitudes, so that nearly every other order gives other bits; f16
             * has no room for it, but enough terms to lose bits in the lanes' float sums. */
            const int32_t data = j || i % 3 || dtype == ONEPASS_F16 ? DATA_UNIFORM : DATA_WIDE;
            const uint64_t bits = random_operand(&state, data, loss->domain[j], dtype, 0);
            oracle_store_bits(dtype, in.operand[j] + (size_t)i * size, bits);
            operand[j] = oracle_decode(dtype, bits);
        }
        oracle_term(loss, in.in_float, operand, k, result);
        in.term[i] = result[0];
    }
    return in;
}

static void free_input(input *in) {
    for (int j = 0; j < in->operands; j++) {
        free(in->operand[j]);
    }
    free(in->term);
}

/* The operands of a call, `count` elements of them. */
static void set_operands(onepass_call *call, onepass_tensor *tensor, const input *in, const int64_t *count) {
    for (int j = 0; j < in->operands; j++) {
        tensor[j] = (onepass_tensor){in->operand[j], in->dtype, 1, count, NULL};
        call->operand[j] = &tensor[j];
    }
}

static double library_sum(const char *loss, const input *in, int64_t count, int32_t threads) {
    double value = -1;
    const onepass_tensor v = {&value, ONEPASS_F64, 0, NULL, NULL};
    onepass_tensor tensor[ORACLE_OPERANDS];
    onepass_call call = {.size = sizeof call, .loss = loss, .reduction = ONEPASS_SUM, .value = &v, .threads = threads};
    set_operands(&call, tensor, in, &count);
    CHECK_OK(onepass_run(&call), "sum");
    return value;
}

static void compare_sums(const char *loss, const input *in, int64_t count) {
    const double expected = oracle_sum(in->term, count, in->in_float);
    for (size_t i = 0; i < sizeof thread_counts / sizeof thread_counts[0]; i++) {
        char what[96];
        const double got = library_sum(loss, in, count, thread_counts[i]);
        snprintf(what, sizeof what, "%s in %s, %lld elements, %d threads", loss, oracle_dtype_name(in->dtype),
                 (long long)count, thread_counts[i]);
        CHECK_BITS(oracle_double_bits(expected), oracle_double_bits(got), what);
    }
}

/* ---------------------------------------------------------------- sizes -- */

static void test_sizes(const char *loss, int32_t dtype, int64_t most) {
    static const int64_t runs[] = {
        1,                            /* a tile */
        2,    3,                      /* the smallest tree, and the smallest with a node that has no right child */
        7,    8,                      /* around a power of two */
        33,                           /* one more than a power of two: a lone tile on every level but the last */
        85,                           /* 1010101 in binary: lone nodes on every other level */
        127,  128,                    /* around the run lengths that threads and blocks work on */
        255,  256,  1023, 1024, 2731, /* 101010101011: the broken tree again, large */
        4095, 4096,
    };
    input in = make_input(loss, dtype, most);
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        for (int64_t count = runs[i] * ONEPASS_TILE - 1; count <= runs[i] * ONEPASS_TILE + 1; count++) {
            if (count <= most) {
                compare_sums(loss, &in, count);
            }
        }
    }
    /* Small sizes that threads can hardly share, then anything, then all. */
    for (int64_t count = 0; count < 300; count += 23) {
        compare_sums(loss, &in, count);
    }
    uint64_t state = 7;
    for (int i = 0; i < (CHECK_SANITIZED ? 8 : 40); i++) {
        compare_sums(loss, &in, random_below(&state, most < 400000 ? most : 400000));
    }
    compare_sums(loss, &in, most);

    /* These data must be able to tell orders apart: a plain loop must not give the same bits. */
    double plain = 0;
    for (int64_t i = 0; i < most; i++) {
        plain += in.term[i];
    }
    CHECK(plain != oracle_sum(in.term, most, in.in_float), "expected data for which the order matters");
    free_input(&in);
}

/* --------------------------------------------------------------- routes -- */

typedef struct outcome {
    float value;
    float *gradient[ORACLE_OPERANDS];
} outcome;

static void run_route(const input *in, int64_t count, int32_t wanted, int32_t threads, const char *loss,
                      outcome *result) {
    const onepass_tensor v = {&result->value, ONEPASS_F32, 0, NULL, NULL};
    onepass_tensor tensor[ORACLE_OPERANDS], gradient[ORACLE_OPERANDS];
    onepass_call call = {
        .size = sizeof call, .loss = loss, .value = wanted & WANT_VALUE ? &v : NULL, .threads = threads};
    set_operands(&call, tensor, in, &count);
    for (int j = 0; j < in->operands; j++) {
        gradient[j] = (onepass_tensor){result->gradient[j], ONEPASS_F32, 1, &count, NULL};
        call.gradient[j] = wanted & (WANT_PREDICTION << j) ? &gradient[j] : NULL;
    }
    CHECK_OK(onepass_run(&call), "route");
}

static void compare_route(const outcome *expected, const outcome *got, int32_t wanted, int64_t count,
                          const char *what) {
    if (wanted & WANT_VALUE) {
        CHECK_BITS(oracle_load_bits(ONEPASS_F32, &expected->value), oracle_load_bits(ONEPASS_F32, &got->value), what);
    }
    for (int j = 0; j < ORACLE_OPERANDS; j++) {
        if (wanted & (WANT_PREDICTION << j)) {
            CHECK(memcmp(expected->gradient[j], got->gradient[j], (size_t)count * sizeof(float)) == 0,
                  "%s: expected the same gradient in %c", what, "ptv"[j]);
        }
    }
}

static void run_short_functions(const char *loss, const input *in, int64_t count, const outcome *expected,
                                outcome *got) {
    const float *numbers[2] = {(const float *)in->operand[0], (const float *)in->operand[1]};
    const onepass_tensor p = {in->operand[0], ONEPASS_F32, 1, &count, NULL};
    const onepass_tensor t = {in->operand[1], ONEPASS_F32, 1, &count, NULL};
    const onepass_tensor v = {&got->value, ONEPASS_F32, 0, NULL, NULL};
    const onepass_tensor gp = {got->gradient[0], ONEPASS_F32, 1, &count, NULL};
    const onepass_tensor gt = {got->gradient[1], ONEPASS_F32, 1, &count, NULL};
    const size_t bytes = (size_t)count * sizeof(float);

    got->value = -1;
    CHECK_OK(onepass_forward(loss, ONEPASS_MEAN, &p, &t, &v), "onepass_forward");
    compare_route(expected, got, WANT_VALUE, count, "onepass_forward");
    memset(got->gradient[0], 1, bytes);
    memset(got->gradient[1], 1, bytes);
    CHECK_OK(onepass_backward(loss, ONEPASS_MEAN, &p, &t, NULL, &gp, &gt), "onepass_backward");
    compare_route(expected, got, WANT_PREDICTION | WANT_TARGET, count, "onepass_backward");
    memset(got->gradient[1], 1, bytes);
    CHECK_OK(onepass_backward(loss, ONEPASS_MEAN, &p, &t, NULL, NULL, &gt), "onepass_backward, t only");
    compare_route(expected, got, WANT_TARGET, count, "onepass_backward, t only");
    got->value = -1;
    memset(got->gradient[0], 1, bytes);
    CHECK_OK(onepass_forward_backward(loss, ONEPASS_MEAN, &p, &t, &v, &gp), "onepass_forward_backward");
    compare_route(expected, got, WANT_VALUE | WANT_PREDICTION, count, "onepass_forward_backward");
    got->value = -1;
    memset(got->gradient[0], 1, bytes);
    CHECK_OK(onepass_mean_f32(loss, count, numbers[0], numbers[1], &got->value, got->gradient[0]), "onepass_mean_f32");
    compare_route(expected, got, WANT_VALUE | WANT_PREDICTION, count, "onepass_mean_f32");
    memset(got->gradient[0], 1, bytes);
    CHECK_OK(onepass_mean_f32(loss, count, numbers[0], numbers[1], NULL, got->gradient[0]),
             "onepass_mean_f32, gradient only");
    compare_route(expected, got, WANT_PREDICTION, count, "onepass_mean_f32, gradient only");
}

/* Any set of outputs, on any number of threads, by any function: the same bits. Of one of so many losses; of all, some
 * have more tiles. */
static void test_routes(int every) {
    const int64_t most = 300001, fewer = 41 * ONEPASS_TILE + 5; /* 292 tiles and a part, 41 tiles and a part */
    outcome expected = {0}, got = {0};
    for (int j = 0; j < ORACLE_OPERANDS; j++) {
        expected.gradient[j] = allocate((size_t)most * sizeof(float));
        got.gradient[j] = allocate((size_t)most * sizeof(float));
    }
    for (int i = 0; oracle_loss_at(i); i++) {
        if (i % every) {
            continue;
        }
        const char *loss = oracle_loss_at(i)->name;
        const int64_t count = case_loss_is_swept(loss) && every == 1 ? most : fewer;
        input in = make_input(loss, ONEPASS_F32, count);
        const int32_t all = (WANT_PREDICTION << in.operands) - 1;
        run_route(&in, count, all, 1, loss, &expected);
        for (int32_t wanted = 1; wanted <= all; wanted++) {
            for (size_t j = 0; j < sizeof thread_counts / sizeof thread_counts[0]; j++) {
                got.value = -1;
                for (int k = 0; k < in.operands; k++) {
                    memset(got.gradient[k], 1, (size_t)count * sizeof(float));
                }
                run_route(&in, count, wanted, thread_counts[j], loss, &got);
                compare_route(&expected, &got, wanted, count, loss);
            }
        }
        if (in.operands == 2) {
            run_short_functions(loss, &in, count, &expected, &got);
        }
        free_input(&in);
    }
    for (int j = 0; j < ORACLE_OPERANDS; j++) {
        free(expected.gradient[j]);
        free(got.gradient[j]);
    }
}

/* --------------------------------------------------------- beyond 2^32 -- */

static void test_equals(void) {
    double *term = allocate(40000 * sizeof *term);
    for (int i = 0; i < 40000; i++) {
        term[i] = (double)0.1f;
    }
    static const int64_t counts[] = {0, 1, 1023, 1024, 1025, 2048, 3000, 7 * 1024, 8 * 1024, 21 * 1024 + 5, 40000};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        CHECK_BITS(oracle_double_bits(oracle_sum(term, counts[i], 1)),
                   oracle_double_bits(oracle_sum_of_equals(term[0], counts[i], 1)), "the oracle's sum of equal terms");
    }
    free(term);
}

/* 65537 * 65537 elements from two numbers: a 32-bit index or count anywhere loses
 * all but 131073 of them. */
static void test_beyond_32_bits(void) {
    float p = 0.7f;
    float t = 0.1f;
    double value = -1;
    const int64_t side = 65537;
    const int64_t shape[2] = {side, side};
    const int64_t strides[2] = {0, 0};
    const onepass_tensor prediction = {&p, ONEPASS_F32, 2, shape, strides};
    const onepass_tensor target = {&t, ONEPASS_F32, 2, shape, strides};
    const onepass_tensor v = {&value, ONEPASS_F64, 0, NULL, NULL};
    const double k[ONEPASS_MAX_PARAMETERS] = {0};
    const double operand[ORACLE_OPERANDS] = {(double)p, (double)t};
    double result[ORACLE_PARTS];
    oracle_term(oracle_loss_named("mse"), 1, operand, k, result);
    CHECK_OK(onepass_forward("mse", ONEPASS_SUM, &prediction, &target, &v), "beyond 2^32");
    CHECK_BITS(oracle_double_bits(oracle_sum_of_equals(result[0], side * side, 1)), oracle_double_bits(value),
               "the sum of 65537 * 65537 elements");
}

int main(void) {
    const int quick =
        check_quick("sums of more than 600000 elements (with a sanitizer 60000), the case beyond 2^32, and with a "
                    "sanitizer routes of more than 41 tiles and of three of four losses");
    const int64_t most = quick ? (CHECK_SANITIZED ? 60000 : 600000) : MOST;
    onepass_cpu_cores = 16; /* the most of thread_counts */
    test_equals();
    test_sizes("mse", ONEPASS_F32, most);
    test_sizes("smooth_l1", ONEPASS_F64, 700000 < most ? 700000 : most);
    test_sizes("hinge", ONEPASS_BF16, 300000 < most ? 300000 : most);
    test_sizes("mse", ONEPASS_F16, 300000 < most ? 300000 : most);
    test_sizes("gaussian_nll", ONEPASS_F32, 300000 < most ? 300000 : most);
    test_routes(quick && CHECK_SANITIZED ? 4 : 1);
    if (!quick) {
        test_beyond_32_bits();
    }
    return check_finish();
}
