/*
 * Losses over rows and sizes: logits and temperatures of absurd sizes, sums that 16 bits cannot hold, more labels than
 * one thread looks at, more elements than 31 bits can count; the short functions and the rounding modes. What is
 * expected is written down here, or comes from the oracle.
 */
#define _DEFAULT_SOURCE
#include "row_questions.h"

#include <fenv.h>
#include <float.h>
#include <sys/mman.h>

/* ------------------------------------------------------------ absurd sizes -- */

static void test_sizes_of_logits(int32_t dtype, const char *loss) {
    static double input[MOST];
    static const double rows[][4] = {
        {1e8, 0, 1, -1e8},
        {1e8, 1e8, 1e8 + 8, 0},
        {-1e9, -INFINITY, -1e9, -INFINITY},
        {1048576, 1048575, 0, 5},
        {-1048576, -1048575, -1048577, 0},
        {726817, 726818, 726819, 726000},
        {1e30, 1e30, -1e30, 0},
        {FLT_MAX, FLT_MAX, -FLT_MAX, 0},
        {-FLT_MAX, -FLT_MAX, -FLT_MAX, -FLT_MAX},
        {FLT_MIN, 0, -FLT_MIN, 1e-44},
        {1e-40, 1e-41, 0, -1e-40},
        {100, 50, 0, -20},
        {16777217, 16777215, 16777214, 3},
        {0, 0, 0, 0},
        {-0.0, 0, -0.0, 0},
        {88.7, 0, -88.7, 10},
        {-103.9, -103.9, -103.9, 0},
        {1e5, 99999, 99998, 99990},
    };
    question q = {loss, dtype, ONEPASS_NONE, .rows = 1, .classes = 4, .input = input};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        memcpy(input, rows[i], sizeof rows[i]);
        for (int64_t label = 0; label < 4; label++) {
            char what[128];
            snprintf(what, sizeof what, "%s of {%g, %g, %g, %g}, label %d", loss, rows[i][0], rows[i][1], rows[i][2],
                     rows[i][3], (int)label);
            q.label = &label;
            expect_oracle(what, &q);
        }
    }

    /* Sizes on both sides of what is taken relative to the tile's largest, in several tiles. */
    static const double pairs[][3] = {
        {1048580, 1048570, 0}, {726815, 726825, 726820},         {-1e9, -1e9, -1e9},  {1e8, 0, 1e8},
        {0x1p49, 0x1p49, 0},   {-0x1p20, -0x1.0001p20, -0x1p21}, {3e38, 3e38, -3e38}, {726810.0, 726817.25, 726818.5},
        {0, 500, 1000}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        q.classes = 2500;
        for (int k = 0; k < 2500; k++) {
            input[k] = pairs[i][k / 1024] - (k % 5);
        }
        for (int64_t label = 1; label < 2500; label += 833) {
            char what[80];
            snprintf(what, sizeof what, "%s of tiles of %.9g, %.9g, %.9g, label %d", loss, pairs[i][0], pairs[i][1],
                     pairs[i][2], (int)label);
            q.label = &label;
            expect_oracle(what, &q);
        }
    }
}

static void test_large_doubles(void) {
    static const double rows[][4] = {{1.2e308, -1.2e308, 0, 1},
                                     {DBL_MAX, 1.3e308, 0, 1.3e308},
                                     {DBL_MAX, DBL_MAX, -1, DBL_MAX},
                                     {-1.3e308, -DBL_MAX, -1.3e308, -1.7e308},
                                     {DBL_MIN, 0, -DBL_MIN, 5e-324},
                                     {1e300, 1e300, 1, -1e300},
                                     {0x1p49, 0x1p49 - 3, 0, 1},
                                     {-0x1p50, -0x1p50 - 2, -0x1p50 + 2, -0x1p51},
                                     {709, 0, -709, -740},
                                     {0, -745, -1000, 3},
                                     {1e15, 1e15 + 1, 1e15 - 4, 0}};
    question q = {"cross_entropy", ONEPASS_F64, ONEPASS_NONE, .rows = 1, .classes = 4};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int64_t label = 0; label < 4; label++) {
            char what[80];
            snprintf(what, sizeof what, "%g, %g, %g, %g, label %d", rows[i][0], rows[i][1], rows[i][2], rows[i][3],
                     (int)label);
            q.input = rows[i];
            q.label = &label;
            expect_oracle(what, &q);
        }
    }
}

/* Rows that lie anywhere: exponents of all sizes, with and without a label. */
static void test_offsets(int32_t dtype) {
    for (int offset = -1600; offset <= 1600; offset++) {
        const double at = offset + 0.1, input[4] = {at, at - 1, at + 0.5, at - 3};
        char what[64];
        snprintf(what, sizeof what, "logits around %g", at);
        question q = {"cross_entropy_with_probabilities",
                      dtype,
                      ONEPASS_NONE,
                      .rows = 1,
                      .classes = 4,
                      .input = input,
                      .probability = (double[]){0.5, 0.25, 0.125, 0.125}};
        expect_oracle(what, &q);
        q = (question){"cross_entropy", dtype,          ONEPASS_NONE,           .rows = 1,
                       .classes = 4,    .input = input, .label = (int64_t[]){1}};
        expect_oracle(what, &q);
    }
}

static void test_temperatures(int32_t dtype) {
    static const double temperatures[] = {1e-3, 0.01, 0.3, 1.7, 20, 1e3, 1e-30, 1e30, 1e-10, 1e10};
    static const double rows[][4] = {{1, 2, 3, 4}, {1e4, 1e4 - 1, 0, 2}, {-1e8, 0, 1e8, 5}, {1e-3, 2e-3, -1e-3, 0}};
    for (size_t i = 0; i < sizeof temperatures / sizeof temperatures[0]; i++) {
        for (int k = 0; k < 4; k++) {
            for (int64_t label = 0; label < 4; label += 3) {
                char what[64];
                question q = {"log_prob",          dtype,
                              ONEPASS_NONE,        .rows = 1,
                              .classes = 4,        .input = rows[k],
                              .label = &label,     .parameter = {-100, 0, temperatures[i]},
                              .parameter_count = 3};
                snprintf(what, sizeof what, "temperature %g, row %d, label %d", temperatures[i], k, (int)label);
                expect_oracle(what, &q);
            }
        }
    }
}

/* ------------------------------------------------------------- narrow types -- */

/* Sums and divisors are not kept in 16 bits. */
static void test_long_means(void) {
    enum {
        ROWS = 70001
    };
    static uint16_t input[2 * ROWS], gradient[2 * ROWS];
    static unsigned char label[ROWS];
    uint16_t value = 0;
    double divided_by = 0;
    const int64_t shape[2] = {ROWS, 2};
    const onepass_tensor x = {input, ONEPASS_F16, 2, shape, NULL}, y = {label, ONEPASS_U8, 1, shape, NULL};
    const onepass_tensor v = {&value, ONEPASS_F16, 0, NULL, NULL}, g = {gradient, ONEPASS_F16, 2, shape, NULL};
    const onepass_tensor by = {&divided_by, ONEPASS_F64, 0, NULL, NULL};
    for (int i = 0; i < ROWS; i++) {
        input[2 * i] = (uint16_t)oracle_encode(ONEPASS_F16, 100);
    }
    memset(label, 1, sizeof label);
    onepass_call call = {.size = sizeof call,
                         .loss = "cross_entropy",
                         .operand = {&x, &y},
                         .value = &v,
                         .gradient = {&g},
                         .divided_by = &by};
    CHECK_OK(onepass_run(&call), "70001 rows of f16");
    CHECK(oracle_decode(ONEPASS_F16, value) == 100 && divided_by == ROWS,
          "70001 rows of f16: expected a mean of 100, got %g", oracle_decode(ONEPASS_F16, value));
    double expected = 1.0 / ROWS;
    oracle_round(ONEPASS_F16, &expected, 1);
    CHECK(oracle_decode(ONEPASS_F16, gradient[0]) == expected, "70001 rows of f16: expected a gradient of %g, got %g",
          expected, oracle_decode(ONEPASS_F16, gradient[0]));
}

/* ------------------------------------------------------------- many labels -- */

/* So many that threads share the look at them: all are counted, and one that is no class is found wherever it is. */
static void test_many_labels(void) {
    enum {
        ROWS = 200003
    };
    static const int64_t places[] = {0, 65535, 65536, 100001, 100002, ROWS - 1};
    static float input[3 * ROWS], value;
    static int64_t label[ROWS];
    double divided_by = 0;
    const int64_t shape[2] = {ROWS, 3};
    const onepass_tensor x = {input, ONEPASS_F32, 2, shape, NULL}, y = {label, ONEPASS_I64, 1, shape, NULL};
    const onepass_tensor v = {&value, ONEPASS_F32, 0, NULL, NULL}, by = {&divided_by, ONEPASS_F64, 0, NULL, NULL};
    int64_t counted = 0;
    for (int64_t i = 0; i < ROWS; i++) {
        label[i] = i % 7 == 3 ? -100 : i % 3;
        counted += i % 7 != 3;
    }
    for (int32_t threads = 0; threads < 4; threads++) {
        onepass_call call = {.size = sizeof call,
                             .loss = "cross_entropy",
                             .operand = {&x, &y},
                             .value = &v,
                             .divided_by = &by,
                             .threads = threads};
        CHECK_OK(onepass_run(&call), "200003 rows");
        CHECK(divided_by == (double)counted, "200003 rows, %d threads: expected %lld to count, got %g", threads,
              (long long)counted, divided_by);
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
            char row[32];
            const int64_t kept = label[places[i]];
            snprintf(row, sizeof row, "row %lld ", (long long)places[i]);
            label[places[i]] = 3;
            CHECK(onepass_run(&call) == ONEPASS_OUT_OF_BOUNDS && strstr(onepass_message(), row),
                  "200003 rows, %d threads: expected label 3 in %sto be refused", threads, row);
            label[places[i]] = kept;
        }
    }
}

/* ------------------------------------------------------------ the short ways -- */

static void test_short_functions(void) {
    float x[6] = {1, 2, 3, 0, -1, 4}, value[2], gradient[2][6];
    int32_t y[2] = {2, 0};
    const int64_t shape[2] = {2, 3};
    const onepass_tensor input = {x, ONEPASS_F32, 2, shape, NULL}, target = {y, ONEPASS_I32, 1, shape, NULL};
    const onepass_tensor v0 = {&value[0], ONEPASS_F32, 0, NULL, NULL}, v1 = {&value[1], ONEPASS_F32, 0, NULL, NULL};
    const onepass_tensor g0 = {gradient[0], ONEPASS_F32, 2, shape, NULL},
                         g1 = {gradient[1], ONEPASS_F32, 2, shape, NULL};
    CHECK_OK(onepass_forward("cross_entropy", ONEPASS_MEAN, &input, &target, &v0), "forward");
    CHECK_OK(onepass_backward("cross_entropy", ONEPASS_MEAN, &input, &target, NULL, &g0, NULL), "backward");
    CHECK_OK(onepass_forward_backward("cross_entropy", ONEPASS_MEAN, &input, &target, &v1, &g1), "both");
    CHECK(memcmp(&value[0], &value[1], sizeof value[0]) == 0 &&
              memcmp(gradient[0], gradient[1], sizeof gradient[0]) == 0,
          "expected forward and backward to give the bits of both together");
    question q = {"cross_entropy",
                  ONEPASS_F32,
                  ONEPASS_MEAN,
                  .rows = 2,
                  .classes = 3,
                  .input = (double[]){1, 2, 3, 0, -1, 4},
                  .label = (int64_t[]){2, 0}};
    ask(&q);
    CHECK(got.value[0] == (double)value[0], "expected %g, got %g", got.value[0], (double)value[0]);
}

/* Gradients that are there stay where the upstream gradient is 1, or what was expected; and for that they are computed
 * where there is none. */
static void test_skip_if_one(void) {
    float x[3] = {1, 2, 3}, gradient[3] = {7, 7, 7}, upstream = 1;
    int64_t y = 1;
    const int64_t shape[2] = {1, 3};
    const onepass_tensor input = {x, ONEPASS_F32, 2, shape, NULL}, target = {&y, ONEPASS_I64, 1, shape, NULL};
    const onepass_tensor g = {gradient, ONEPASS_F32, 2, shape, NULL}, u = {&upstream, ONEPASS_F32, 0, NULL, NULL};
    onepass_call call = {.size = sizeof call,
                         .loss = "cross_entropy",
                         .operand = {&input, &target},
                         .gradient = {&g},
                         .upstream = &u,
                         .flags = ONEPASS_SKIP_IF_UPSTREAM_IS_ONE};
    CHECK_OK(onepass_run(&call), "upstream 1");
    CHECK(gradient[0] == 7 && gradient[2] == 7, "expected the gradient to stay, got %g", (double)gradient[0]);
    upstream = 2;
    CHECK_OK(onepass_run(&call), "upstream 2");
    CHECK(gradient[0] > 0 && gradient[0] < 1 && gradient[1] < 0, "expected a gradient, got %g", (double)gradient[0]);
    const float twice = gradient[0];
    gradient[0] = 7;
    call.expected_upstream = 2;
    CHECK_OK(onepass_run(&call), "upstream 2, as expected");
    CHECK(gradient[0] == 7, "expected the gradient to stay, got %g", (double)gradient[0]);
    call.upstream = NULL;
    call.flags = 0;
    CHECK_OK(onepass_run(&call), "no upstream, but 2 expected");
    CHECK(gradient[0] == twice, "expected %g, got %g", (double)twice, (double)gradient[0]);
    call.expected_upstream = 0;
    CHECK_OK(onepass_run(&call), "no upstream");
    CHECK(gradient[0] * 2 == twice, "expected half of %g, got %g", (double)twice, (double)gradient[0]);
}

/* Another rounding mode is the caller's own affair. */
static void test_rounding_modes(void) {
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    static double input[2000];
    static results expected;
    for (int i = 0; i < 2000; i++) {
        input[i] = sin(i) * 5;
    }
    question q = {"cross_entropy",
                  ONEPASS_F32,
                  ONEPASS_MEAN,
                  .rows = 20,
                  .classes = 100,
                  .input = input,
                  .label = (int64_t[20]){3, 5, 7},
                  .parameter = {-100, 0.1, 0.01, 30, 2},
                  .parameter_count = 5};
    ask(&q);
    expected = got;
    for (int i = 0; i < 3; i++) {
        fesetround(modes[i]);
        ask(&q);
        CHECK(fegetround() == modes[i], "expected the rounding mode to stay");
        fesetround(FE_TONEAREST);
        CHECK(memcmp(&expected.value, &got.value, sizeof(double)) == 0 &&
                  memcmp(expected.gradient[0], got.gradient[0], sizeof input) == 0,
              "expected the same bits in every rounding mode");
    }
}

/* -------------------------------------------------------- large gradients -- */

/* Gradients of images that are too large for caches may be stored past them, where they are whole cache lines: bits are
 * those of one that begins in the midst of a line, and nothing is left out. Lines of logits overlap, to be fewer. */
static void test_large_gradients(void) {
    enum {
        CLASSES = 4,
        ROWS = (1 << 22) + 48,
        APART = 64
    };
    const int64_t shape[3] = {1, CLASSES, ROWS}, strides[3] = {0, APART, 1}, rows[2] = {1, ROWS};
    const size_t numbers = (size_t)CLASSES * ROWS;
    float *x = malloc((ROWS + CLASSES * APART) * sizeof *x);
    uint8_t *y = malloc(ROWS);
    float *gradient[2] = {aligned_alloc(64, numbers * sizeof(float)), malloc((numbers + 1) * sizeof(float))};
    if (CHECK(x && y && gradient[0] && gradient[1], "memory for a large gradient")) {
        for (int64_t i = 0; i < ROWS + CLASSES * APART; i++)
            x[i] = (float)(i * 7919 % 1009) / 64;
        for (int64_t i = 0; i < ROWS; i++)
            y[i] = (uint8_t)(i * 31 % CLASSES);
        for (int k = 0; k < 2; k++) {
            memset(gradient[k], 0xff, numbers * sizeof(float));
            const onepass_tensor input = {x, ONEPASS_F32, 3, shape, strides}, target = {y, ONEPASS_U8, 2, rows, NULL};
            const onepass_tensor g = {gradient[k] + k, ONEPASS_F32, 3, shape, NULL};
            onepass_call call = {.size = sizeof call,
                                 .loss = "cross_entropy",
                                 .reduction = ONEPASS_SUM,
                                 .operand = {&input, &target},
                                 .gradient = {&g},
                                 .axis = 2,
                                 .threads = 2};
            CHECK_OK(onepass_run(&call), "a large gradient");
        }
        CHECK(memcmp(gradient[0], gradient[1] + 1, numbers * sizeof(float)) == 0,
              "a large gradient: expected the same bits wherever it lies");
    }
    free(x);
    free(y);
    free(gradient[0]);
    free(gradient[1]);
}

/* -------------------------------------------------------- beyond 31 bits -- */

/* Many elements: one row again and again, of which nll looks at one number; classes and rows that are gigabytes apart.
 */
static void test_many_elements(void) {
    const int64_t rows = 3 << 20, shape[2] = {rows, 1000}, none[2] = {0, 0};
    float x = 2.5f;
    int64_t y = 999;
    double value = 0, divided_by = 0;
    const onepass_tensor input = {&x, ONEPASS_F32, 2, shape, none}, target = {&y, ONEPASS_I64, 1, shape, none};
    const onepass_tensor v = {&value, ONEPASS_F64, 0, NULL, NULL}, by = {&divided_by, ONEPASS_F64, 0, NULL, NULL};
    onepass_call call = {
        .size = sizeof call, .loss = "nll", .operand = {&input, &target}, .value = &v, .divided_by = &by};
    CHECK_OK(onepass_run(&call), "3 * 2^20 rows of 1000 classes");
    CHECK(value == -2.5 && divided_by == (double)rows, "many rows: expected -2.5 over %lld, got %g over %g",
          (long long)rows, value, divided_by);

    const size_t bytes = (size_t)5 << 32;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        printf("left out: no %zu bytes of addresses for numbers that are far apart\n", bytes);
        return;
    }
    const int64_t apart = (int64_t)1 << 31; /* two bytes each */
    const int64_t far_shape[2] = {3, 3}, far_rows[2] = {apart / 2, 1}, far_classes[2] = {1, apart - 7};
    int64_t labels[3] = {2, 0, 1};
    double values[2][3] = {{0}}, near[9], gradient[2][9] = {{0}};
    for (int route = 0; route < 2; route++) {
        const onepass_tensor far_input = {memory, ONEPASS_BF16, 2, far_shape, route ? far_classes : far_rows};
        for (int i = 0; i < 9; i++) {
            near[i] = (i * 5 % 7) - 2;
            const int64_t offset = i / 3 * far_input.strides[0] + i % 3 * far_input.strides[1];
            oracle_store(ONEPASS_BF16, memory + 2 * offset, near[i]);
        }
        const onepass_tensor y3 = {labels, ONEPASS_I64, 1, far_shape, NULL},
                             v3 = {values[0], ONEPASS_F64, 1, far_shape, NULL};
        const onepass_tensor g3 = {gradient[0], ONEPASS_F64, 2, far_shape, NULL};
        onepass_call far_call = {.size = sizeof far_call,
                                 .loss = "cross_entropy",
                                 .reduction = ONEPASS_NONE,
                                 .operand = {&far_input, &y3},
                                 .value = &v3,
                                 .gradient = {&g3}};
        CHECK_OK(onepass_run(&far_call), "numbers that are far apart");
        uint16_t dense[9];
        for (int i = 0; i < 9; i++) {
            oracle_store(ONEPASS_BF16, &dense[i], near[i]);
        }
        const onepass_tensor near_input = {dense, ONEPASS_BF16, 2, far_shape, NULL};
        const onepass_tensor v4 = {values[1], ONEPASS_F64, 1, far_shape, NULL},
                             g4 = {gradient[1], ONEPASS_F64, 2, far_shape, NULL};
        far_call.operand[0] = &near_input;
        far_call.value = &v4;
        far_call.gradient[0] = &g4;
        CHECK_OK(onepass_run(&far_call), "the same numbers side by side");
        CHECK(memcmp(values[0], values[1], sizeof values[0]) == 0 &&
                  memcmp(gradient[0], gradient[1], sizeof gradient[0]) == 0,
              "expected numbers that are far apart to give the bits of numbers side by side");
    }
    munmap(memory, bytes);
}

/* A row of more classes than 31 bits can count, all alike. */
static void test_many_classes(void) {
    const int64_t classes = ((int64_t)1 << 31) + 5000, shape[2] = {1, classes}, none[2] = {0, 0};
    float x = 1;
    int64_t y = classes - 1;
    double value = 0;
    const onepass_tensor input = {&x, ONEPASS_F32, 2, shape, none}, target = {&y, ONEPASS_I64, 1, shape, none};
    const onepass_tensor v = {&value, ONEPASS_F64, 0, NULL, NULL};
    onepass_call call = {.size = sizeof call, .loss = "cross_entropy", .operand = {&input, &target}, .value = &v};
    CHECK_OK(onepass_run(&call), "2^31 + 5000 classes");
    CHECK(is_within(ONEPASS_F32, value, log((double)classes), log((double)classes), 4, 0),
          "2^31 + 5000 classes: expected %.9g, got %.9g", log((double)classes), value);
}

/* A z_loss so small that it shows beside large logits alone. Only the mean is asked for: other outputs need the
 * logarithm of the sum by themselves. */
static void test_small_z_loss(void) {
    float x[2][3] = {{0x1p20F, 0x1p20F - 1, 0}, {0, 0x1p20F - 1, 0x1p20F}};
    int64_t y[] = {0, 1};
    const int64_t shape[] = {2, 3};
    double value = 0;
    const onepass_tensor input = {x, ONEPASS_F32, 2, shape, NULL}, target = {y, ONEPASS_I64, 1, shape, NULL};
    const onepass_tensor v = {&value, ONEPASS_F64, 0, NULL, NULL};
    onepass_call call = {.size = sizeof call, .loss = "cross_entropy", .operand = {&input, &target}, .value = &v};
    call.parameter_count = 3;
    call.parameter[0] = -100;
    call.parameter[2] = 0x1p-60;
    const double above = log1p(exp(-1)), lse = 0x1p20 + above, expected = above + 0.5 + 0x1p-60 * lse * lse;
    CHECK_OK(onepass_run(&call), "a small z_loss");
    CHECK(is_within(ONEPASS_F32, value, expected, expected, 4, 0), "a small z_loss: expected %.9g, got %.9g", expected,
          value);
}

int main(void) {
    for (int i = 0; i < 2; i++) {
        const int32_t dtype = computes[i];
        for (int k = 0; label_loss_at(k); k++) {
            test_sizes_of_logits(dtype, label_loss_at(k));
        }
        test_offsets(dtype);
        test_temperatures(dtype);
    }
    test_large_doubles();
    test_small_z_loss();
    test_long_means();
    test_many_labels();
    test_short_functions();
    test_skip_if_one();
    test_rounding_modes();
    test_large_gradients();
    test_many_elements();
    if (!check_quick("2^31 classes")) {
        test_many_classes();
    }
    return check_finish();
}
