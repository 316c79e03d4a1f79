/*
 * Every case of the list against the oracle, bit for bit: values, gradients,
 * untouched memory. Then what the list cannot say: literal tables of NaN,
 * infinity and kinks, slopes against finite differences, and tensors that end
 * at the end of readable memory.
 */
#define _DEFAULT_SOURCE
#include "cases.h"
#include "check.h"
#include "fence.h"
#include "oracle.h"

#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

/* ------------------------------------------------------------- the list -- */

static void compare_blocks(const test_case *c, const prepared_case *expected, const prepared_case *got) {
    char text[512], difference[160];
    if (case_equal(expected, got, difference, sizeof difference)) {
        CHECK(1, "equal");
        return;
    }
    case_describe(c, text, sizeof text);
    CHECK(0, "%s: %s", text, difference);
}

static void test_list(void) {
    size_t count;
    const test_case *cases = case_list(&count);
    const size_t step = check_quick("four of five cases of the list") ? 5 : 1;
    for (size_t i = 0; i < count; i += step) {
        prepared_case *expected = case_prepare(&cases[i]);
        prepared_case *got = case_prepare(&cases[i]);
        oracle_run(&expected->call);
        const onepass_status status = onepass_run(&got->call);
        if (status != ONEPASS_OK) {
            char text[512];
            case_describe(&cases[i], text, sizeof text);
            CHECK_OK(status, text);
        } else {
            compare_blocks(&cases[i], expected, got);
        }
        case_free(expected);
        case_free(got);
    }
    printf("%zu cases in the list\n", count);
}

/* ------------------------------------------------------------ the tables -- */

/* One element in float, summed: the value and both slopes as they are. */
static void one_element(const char *loss, int32_t parameter_count, double parameter, float p, float t,
                        float result[3]) {
    onepass_tensor tensor[5] = {{&p, ONEPASS_F32, 0, NULL, NULL},
                                {&t, ONEPASS_F32, 0, NULL, NULL},
                                {&result[0], ONEPASS_F32, 0, NULL, NULL},
                                {&result[1], ONEPASS_F32, 0, NULL, NULL},
                                {&result[2], ONEPASS_F32, 0, NULL, NULL}};
    onepass_call call = {.size = sizeof call,
                         .loss = loss,
                         .reduction = ONEPASS_SUM,
                         .parameter_count = parameter_count,
                         .parameter = {parameter},
                         .operand = {&tensor[0], &tensor[1]},
                         .value = &tensor[2],
                         .gradient = {&tensor[3], &tensor[4]}};
    CHECK_OK(onepass_run(&call), loss);
}

typedef struct known {
    const char *loss;
    int32_t parameter_count;
    double parameter;
    float p, t;
    float value, slope_p, slope_t;
} known;

/* Written out by hand, so that a slip in the oracle's formulas has a second witness. */
static const known known_results[] = {
    /* A NaN stays NaN in value and slopes. */
    {"mse", 0, 0, NAN, 1, NAN, NAN, NAN},
    {"mse", 0, 0, 1, NAN, NAN, NAN, NAN},
    {"smooth_l1", 0, 0, NAN, 1, NAN, NAN, NAN},
    {"smooth_l1", 0, 0, 1, NAN, NAN, NAN, NAN},
    {"smooth_l1", 1, 0, NAN, 1, NAN, NAN, NAN},
    /* Infinite differences, and infinity less itself. */
    {"mse", 0, 0, INFINITY, 1, INFINITY, INFINITY, -INFINITY},
    {"mse", 0, 0, 1, INFINITY, INFINITY, -INFINITY, INFINITY},
    {"mse", 0, 0, INFINITY, INFINITY, NAN, NAN, NAN},
    {"smooth_l1", 0, 0, INFINITY, 1, INFINITY, 1, -1},
    {"smooth_l1", 0, 0, 1, INFINITY, INFINITY, -1, 1},
    {"smooth_l1", 0, 0, -INFINITY, -INFINITY, NAN, NAN, NAN},
    /* The square overflows, the difference does not. */
    {"mse", 0, 0, 1e30f, 0, INFINITY, 2e30f, -2e30f},
    /* Plain numbers. */
    {"mse", 0, 0, 3, 1, 4, 4, -4},
    {"mse", 0, 0, -1, 2, 9, -6, 6},
    {"mse", 0, 0, 2, 2, 0, 0, -0.0f},
    {"smooth_l1", 0, 0, 3, 1, 1.5f, 1, -1},
    {"smooth_l1", 0, 0, 1, 1.5f, 0.125f, -0.5f, 0.5f},
    {"smooth_l1", 1, 4, 3, 1, 0.5f, 0.5f, -0.5f},
    /* On the kink of smooth_l1 both formulas agree in value; the slope is the sign. */
    {"smooth_l1", 0, 0, 1, 0, 0.5f, 1, -1},
    {"smooth_l1", 0, 0, -1, 0, 0.5f, -1, 1},
    {"smooth_l1", 1, 2, 1, 3, 1, -1, 1},
    /* beta = 0 is l1, whose slope at 0 is 0. */
    {"smooth_l1", 1, 0, 5, 2, 3, 1, -1},
    {"smooth_l1", 1, 0, 2, 5, 3, -1, 1},
    {"smooth_l1", 1, 0, 2, 2, 0, 0, -0.0f},
    {"smooth_l1", 1, 0, -0.0f, 0, 0, 0, -0.0f},
    /* hinge: wrong side, right side, within the margin, on the kink (slope 1, as clamp has it). */
    {"hinge", 0, 0, -2, 1, 3, -1, 2},
    {"hinge", 0, 0, 2, 1, 0, -0.0f, -0.0f},
    {"hinge", 0, 0, 0.5f, -1, 1.5f, 1, -0.5f},
    {"hinge", 0, 0, 1, 1, 0, -1, -1},
    {"hinge", 0, 0, -1, -1, 0, 1, 1},
    {"hinge", 1, 3, 2, 1, 1, -1, -2},
    {"hinge", 1, 3, 3, 1, 0, -1, -3},
    /* a = 0 where margin - p*t is NaN; 0 times NaN or infinity is NaN all the same. */
    {"hinge", 0, 0, NAN, 2, NAN, -0.0f, NAN},
    {"hinge", 0, 0, 2, NAN, NAN, NAN, -0.0f},
    {"hinge", 0, 0, 2, INFINITY, 0, NAN, -0.0f},
    {"hinge", 0, 0, INFINITY, 2, 0, -0.0f, NAN},
    {"hinge", 0, 0, -2, INFINITY, INFINITY, -INFINITY, 2},
    {"hinge", 0, 0, 0, INFINITY, NAN, NAN, -0.0f},
};

static void test_tables(void) {
    for (size_t i = 0; i < sizeof known_results / sizeof known_results[0]; i++) {
        const known *row = &known_results[i];
        const float expected[3] = {row->value, row->slope_p, row->slope_t};
        static const char *const part[3] = {"value", "slope p", "slope t"};
        float got[3] = {-77, -77, -77};
        one_element(row->loss, row->parameter_count, row->parameter, row->p, row->t, got);
        for (int j = 0; j < 3; j++) {
            char what[160];
            snprintf(what, sizeof what, "%s(%g) of p = %g, t = %g, %s (expected %g)", row->loss, row->parameter,
                     (double)row->p, (double)row->t, part[j], (double)expected[j]);
            CHECK_BITS(oracle_encode(ONEPASS_F32, (double)expected[j]), oracle_load_bits(ONEPASS_F32, &got[j]), what);
        }
    }
}

/* Sums and means of nothing, and NaN or infinity anywhere in a long sum. */
static void test_reduced_specials(void) {
    enum {
        COUNT = 5000
    };
    static float p[COUNT], t[COUNT];
    for (int i = 0; oracle_loss_at(i); i++) {
        const char *loss = oracle_loss_at(i)->name;
        float value = 7;
        CHECK_OK(onepass_mean_f32(loss, 0, p, t, &value, NULL), loss);
        CHECK_BITS(0x7fc00000, oracle_load_bits(ONEPASS_F32, &value), "mean of nothing");
        for (int64_t at = 0; at < COUNT; at += 831) {
            p[at] = NAN;
            CHECK_OK(onepass_mean_f32(loss, COUNT, p, t, &value, NULL), loss);
            CHECK_BITS(0x7fc00000, oracle_load_bits(ONEPASS_F32, &value), "mean with one NaN");
            p[at] = -INFINITY;
            t[at] = 1;
            CHECK_OK(onepass_mean_f32(loss, COUNT, p, t, &value, NULL), loss);
            CHECK_BITS(0x7f800000, oracle_load_bits(ONEPASS_F32, &value), "mean with one infinite term");
            p[at] = t[at] = 0;
        }
    }
}

/* -------------------------------------------------------------- weights -- */

typedef struct weighed {
    const char *what;
    int32_t reduction;
    double divisor;
    float weight[4];
    float value, gradient[4];
} weighed;

/* mse of p = 1, 2, 3, 4 and t = 0, by hand: terms 1, 4, 9, 16, slopes 2, 4, 6, 8. */
static const weighed weighed_results[] = {
    {"mean", ONEPASS_MEAN, 0, {1, 0, 2, -1}, 1.5f, {1, 0, 6, -4}},
    {"sum", ONEPASS_SUM, 0, {1, 0, 2, -1}, 3, {2, 0, 12, -8}},
    {"mean with a divisor", ONEPASS_MEAN, 4, {1, 0, 2, -1}, 0.75f, {0.5f, 0, 3, -2}},
    {"mean of ones", ONEPASS_MEAN, 0, {1, 1, 1, 1}, 7.5f, {0.5f, 1, 1.5f, 2}},
    {"weights that sum to 0", ONEPASS_MEAN, 0, {1, -1, 0, 0}, -INFINITY, {INFINITY, -INFINITY, NAN, NAN}},
    {"no weight at all", ONEPASS_MEAN, 0, {0, 0, 0, 0}, NAN, {NAN, NAN, NAN, NAN}},
    {"a NaN", ONEPASS_MEAN, 0, {NAN, 1, 1, 1}, NAN, {NAN, NAN, NAN, NAN}},
    {"a NaN in a sum", ONEPASS_SUM, 0, {NAN, 1, 1, 1}, NAN, {NAN, 4, 6, 8}},
    {"an infinite one", ONEPASS_MEAN, 0, {INFINITY, 1, -1, 1}, NAN, {NAN, 0, -0.0f, 0}},
};

static void test_weights_by_hand(void) {
    float p[4] = {1, 2, 3, 4}, t = 0;
    const int64_t count = 4;
    const onepass_tensor prediction = {p, ONEPASS_F32, 1, &count, NULL}, target = {&t, ONEPASS_F32, 0, NULL, NULL};
    for (size_t i = 0; i < sizeof weighed_results / sizeof weighed_results[0]; i++) {
        const weighed *row = &weighed_results[i];
        float weight[4], value = -77, gradient[4] = {-77, -77, -77, -77};
        memcpy(weight, row->weight, sizeof weight);
        const onepass_tensor w = {weight, ONEPASS_F32, 1, &count, NULL}, v = {&value, ONEPASS_F32, 0, NULL, NULL};
        const onepass_tensor g = {gradient, ONEPASS_F32, 1, &count, NULL};
        const onepass_call call = {.size = sizeof call,
                                   .loss = "mse",
                                   .reduction = row->reduction,
                                   .divisor = row->divisor,
                                   .operand = {&prediction, &target},
                                   .weight = &w,
                                   .value = &v,
                                   .gradient = {&g}};
        CHECK_OK(onepass_run(&call), row->what);
        CHECK_BITS(oracle_encode(ONEPASS_F32, (double)row->value), oracle_load_bits(ONEPASS_F32, &value), row->what);
        for (int j = 0; j < 4; j++) {
            CHECK_BITS(oracle_encode(ONEPASS_F32, (double)row->gradient[j]),
                       oracle_load_bits(ONEPASS_F32, &gradient[j]), row->what);
        }
    }
}

/* Weights of 1 have the bits of none. */
static void test_weights_of_one(void) {
    for (int i = 0; oracle_loss_at(i); i++) {
        for (int turn = 0; turn < 24; turn++) {
            test_case c = {.group = "ones",
                           .loss = oracle_loss_at(i)->name,
                           .prediction = turn % 4 == 3 ? ONEPASS_F64 : ONEPASS_F32,
                           .target = ONEPASS_F32,
                           .gradient = ONEPASS_F64,
                           .value = ONEPASS_F64,
                           .upstream_dtype = ONEPASS_F32,
                           .reduction = turn % 3,
                           .wanted = WANT_ALL,
                           .upstream = turn / 3 % 4,
                           .layout = case_layout_named("target per row"),
                           .rows = 7,
                           .columns = turn % 2 ? 191 : 2048,
                           .data = DATA_NORMAL,
                           .weight_dtype = ONEPASS_F16,
                           .weights = WEIGHTS_ONE,
                           .seed = (uint64_t)turn};
            prepared_case *without = case_prepare(&c);
            c.weight = turn % 2 ? WEIGHT_DENSE : WEIGHT_SCALAR;
            prepared_case *with = case_prepare(&c);
            CHECK_OK(onepass_run(&without->call), "without weights");
            CHECK_OK(onepass_run(&with->call), "with weights of 1");
            for (int which = TENSOR_VALUE; which <= TENSOR_GRADIENT_TARGET; which++) {
                CHECK(memcmp(without->block + without->begin[which], with->block + with->begin[which],
                             without->bytes[which]) == 0,
                      "%s, turn %d: expected the bits of a call without weights in %s", c.loss, turn,
                      case_owner(with, with->begin[which]));
            }
            case_free(without);
            case_free(with);
        }
    }
}

/* --------------------------------------------------------------- slopes -- */

/* The loss of one element in double, as the library computes it. */
static double value_at(const char *loss, double p, double t, double *slope_p, double *slope_t) {
    double value = 0;
    onepass_tensor tensor[5] = {{&p, ONEPASS_F64, 0, NULL, NULL},
                                {&t, ONEPASS_F64, 0, NULL, NULL},
                                {&value, ONEPASS_F64, 0, NULL, NULL},
                                {slope_p, ONEPASS_F64, 0, NULL, NULL},
                                {slope_t, ONEPASS_F64, 0, NULL, NULL}};
    onepass_call call = {.size = sizeof call,
                         .loss = loss,
                         .reduction = ONEPASS_SUM,
                         .operand = {&tensor[0], &tensor[1]},
                         .value = &tensor[2],
                         .gradient = {slope_p ? &tensor[3] : NULL, slope_t ? &tensor[4] : NULL}};
    CHECK_OK(onepass_run(&call), loss);
    return value;
}

/* Central differences. A slope that differs on both sides is a kink and is left out;
 * those have their rows in the tables. Every loss has smooth points, so few are. */
static void test_slopes(void) {
    const double h = 1e-6;
    for (int i = 0; oracle_loss_at(i); i++) {
        const char *loss = oracle_loss_at(i)->name;
        uint64_t state = 99;
        int smooth = 0;
        for (int trial = 0; trial < 400; trial++) {
            const double p = oracle_decode(ONEPASS_F64, random_element(&state, DATA_NORMAL, ONEPASS_F64, 0));
            const double t = oracle_decode(ONEPASS_F64, random_element(&state, DATA_NORMAL, ONEPASS_F64, 0));
            double slope[2];
            const double middle = value_at(loss, p, t, &slope[0], &slope[1]);
            for (int which = 0; which < 2; which++) {
                const double dp = which == 0 ? h : 0;
                const double dt = which == 1 ? h : 0;
                const double above = value_at(loss, p + dp, t + dt, NULL, NULL);
                const double below = value_at(loss, p - dp, t - dt, NULL, NULL);
                if (fabs((above - middle) - (middle - below)) > 1e-3 * h) {
                    continue;
                }
                smooth++;
                CHECK(fabs((above - below) / (2 * h) - slope[which]) < 1e-6 * (1 + fabs(slope[which])),
                      "%s at p = %g, t = %g: slope in %s: expected %.9g by differences, got %.9g", loss, p, t,
                      which ? "t" : "p", (above - below) / (2 * h), slope[which]);
            }
        }
        CHECK(smooth > 700, "%s: expected more than 700 smooth points of 800, got %d", loss, smooth);
    }
}

/* ---------------------------------------------------------------- edges -- */

/* Tensors that end at an unreadable page, or begin after one: a load beyond the
 * last element, which poison cannot show, dies here. */
static void test_edges(void) {
    enum {
        MOST = 2 * ONEPASS_TILE + 300
    };
    fenced memory[4];
    for (int i = 0; i < 4; i++) {
        memory[i] = fence(MOST * sizeof(double));
    }
    for (int32_t dtype = ONEPASS_F16; dtype <= ONEPASS_F64; dtype++) {
        const size_t size = oracle_size(dtype);
        for (int64_t count = 1; count <= MOST; count += count < 150 ? 1 : 127) {
            for (int at_end = 0; at_end < 2; at_end++) {
                onepass_tensor tensor[4];
                double value;
                onepass_tensor scalar = {&value, ONEPASS_F64, 0, NULL, NULL};
                for (int i = 0; i < 4; i++) {
                    memset(memory[i].begin, 0, memory[i].bytes);
                    char *data = memory[i].begin + (at_end ? memory[i].bytes - (size_t)count * size : 0);
                    tensor[i] = (onepass_tensor){data, dtype, 1, &count, NULL};
                }
                for (int64_t i = 0; i < count; i++) {
                    oracle_store(dtype, (char *)tensor[0].data + (size_t)i * size, 2.0);
                }
                onepass_call call = {.size = sizeof call,
                                     .loss = "mse",
                                     .reduction = ONEPASS_SUM,
                                     .operand = {&tensor[0], &tensor[1]},
                                     .value = &scalar,
                                     .gradient = {&tensor[2], &tensor[3]}};
                CHECK_OK(onepass_run(&call), "mse at the edge of memory");
                CHECK(value == 4.0 * (double)count, "%s, %lld elements at the edge: expected %g, got %g",
                      oracle_dtype_name(dtype), (long long)count, 4.0 * (double)count, value);
            }
        }
    }
    for (int i = 0; i < 4; i++) {
        munmap(memory[i].all, memory[i].bytes + 2 * memory[i].page);
    }
}

/* ---------------------------------------------------------- conversions -- */

/* The gradient of hinge in p is -t where p = 0, so it shows how t is loaded and the
 * result stored, and nothing else. Both vectorised and, in the last few, not. */
static void negated_by_library(int32_t from, const void *t, int32_t to, void *gradient, int64_t count) {
    float zero = 0;
    const onepass_tensor p = {&zero, ONEPASS_F32, 0, NULL, NULL};
    const onepass_tensor target = {(void *)(uintptr_t)t, from, 1, &count, NULL};
    const onepass_tensor g = {gradient, to, 1, &count, NULL};
    CHECK_OK(onepass_backward("hinge", ONEPASS_SUM, &p, &target, NULL, &g, NULL), "conversion");
}

static void check_negated(int32_t from, const unsigned char *t, int32_t to, unsigned char *gradient, int64_t count) {
    negated_by_library(from, t, to, gradient, count);
    for (int64_t i = 0; i < count; i++) {
        const double value = oracle_load(from, t + (size_t)i * oracle_size(from));
        const double expected = value - value == 0 ? -value : NAN; /* 0 times infinity is NaN */
        char what[96];
        snprintf(what, sizeof what, "%a from %s, negated, to %s", value, oracle_dtype_name(from),
                 oracle_dtype_name(to));
        CHECK_BITS(oracle_encode(to, expected), oracle_load_bits(to, gradient + (size_t)i * oracle_size(to)), what);
    }
}

/* Every 16-bit pattern is loaded; and every tie between two 16-bit numbers is stored, with its
 * neighbours in the wider type on both sides, which a rounding in two steps gets wrong. */
static void test_library_conversions(void) {
    enum {
        PATTERNS = 65536,
        MOST = 3 * PATTERNS + 16
    };
    unsigned char *t = malloc(MOST * sizeof(double));
    unsigned char *gradient = malloc(MOST * sizeof(double));
    if (!t || !gradient) {
        perror("malloc");
        exit(1);
    }
    for (int32_t small = ONEPASS_F16; small <= ONEPASS_BF16; small++) {
        for (uint64_t bits = 0; bits < PATTERNS; bits++) {
            oracle_store_bits(small, t + 2 * bits, bits);
        }
        check_negated(small, t, ONEPASS_F32, gradient, PATTERNS);
        check_negated(small, t, ONEPASS_F64, gradient, PATTERNS);
        for (int32_t wide = ONEPASS_F32; wide <= ONEPASS_F64; wide++) {
            const size_t size = oracle_size(wide);
            int64_t count = 0;
            for (uint64_t bits = 0; bits < PATTERNS; bits++) {
                const double low = oracle_decode(small, bits);
                const double high = oracle_decode(small, bits + 1);
                /* Beyond the largest the next step would have the same length. */
                const double step = high - high == 0 ? high - low : low - oracle_decode(small, bits - 1);
                const uint64_t tie = oracle_encode(wide, low + step / 2);
                for (uint64_t around = tie - 1; low - low == 0 && tie && around != tie + 2; around++) {
                    oracle_store_bits(wide, t + (size_t)count++ * size, around);
                }
            }
            check_negated(wide, t, small, gradient, count);
        }
    }
    free(t);
    free(gradient);
}

/* ----------------------------------------------------------- the oracle -- */

/* The library and the oracle know the same losses and defaults. */
static void test_catalogue(void) {
    int count = 0;
    for (; onepass_loss_at(count); count++) {
        const onepass_loss_info *info = onepass_loss_at(count);
        const oracle_loss *loss = oracle_loss_named(info->name);
        if (CHECK(loss != NULL, "%s: expected a line in oracle_losses.def, got none", info->name) &&
            info->parameter_count) {
            CHECK(loss->standard == info->parameter[0].standard, "%s: expected default %g, got %g", info->name,
                  loss->standard, info->parameter[0].standard);
        }
        CHECK(onepass_loss_named(info->name) == info, "%s: expected the same entry by name", info->name);
    }
    for (int i = 0; oracle_loss_at(i); i++) {
        CHECK(onepass_loss_named(oracle_loss_at(i)->name) != NULL, "%s: expected the library to have it",
              oracle_loss_at(i)->name);
    }
    CHECK(count > 0, "expected losses, got none");
}

/* The oracle's conversions against the compiler's, where C has them. */
static void test_conversions(void) {
    uint64_t state = 5;
    for (int i = 0; i < 20000; i++) {
        const double value = oracle_double_from_bits(random_bits(&state));
        const double scaled = oracle_decode(ONEPASS_F64, random_element(&state, DATA_TINY, ONEPASS_F32, 0));
        const double both[2] = {value, scaled};
        for (int j = 0; j < 2; j++) {
            const float rounded = (float)both[j];
            if (both[j] == both[j]) {
                CHECK_BITS(oracle_load_bits(ONEPASS_F32, &rounded), oracle_encode(ONEPASS_F32, both[j]), "to float");
            }
        }
    }
    /* Every 16-bit pattern survives the way to double and back; NaN becomes canonical. */
    for (uint64_t bits = 0; bits < 65536; bits++) {
        const int nan_f16 = (bits & 0x7fff) > 0x7c00;
        const int nan_bf16 = (bits & 0x7fff) > 0x7f80;
        CHECK_BITS(nan_f16 ? 0x7e00 : bits, oracle_encode(ONEPASS_F16, oracle_decode(ONEPASS_F16, bits)), "f16");
        CHECK_BITS(nan_bf16 ? 0x7fc0 : bits, oracle_encode(ONEPASS_BF16, oracle_decode(ONEPASS_BF16, bits)), "bf16");
    }
    /* Ties, the last finite number, the first infinite one and denormals, by hand. */
    CHECK_BITS(0x7bff, oracle_encode(ONEPASS_F16, 65519.99), "f16 below the tie");
    CHECK_BITS(0x7c00, oracle_encode(ONEPASS_F16, 65520), "f16 at the tie to infinity");
    CHECK_BITS(0x3c00, oracle_encode(ONEPASS_F16, 1 + 0x1p-11), "f16 tie to even, down");
    CHECK_BITS(0x3c02, oracle_encode(ONEPASS_F16, 1 + 0x3p-11), "f16 tie to even, up");
    CHECK_BITS(0x3c01, oracle_encode(ONEPASS_F16, 1 + 0x1p-11 + 0x1p-50), "f16 just above a tie");
    CHECK_BITS(0x0000, oracle_encode(ONEPASS_F16, 0x1p-25), "f16 half of the least denormal");
    CHECK_BITS(0x0001, oracle_encode(ONEPASS_F16, 0x1.000001p-25), "f16 above half of the least denormal");
    CHECK_BITS(0x8400, oracle_encode(ONEPASS_F16, -0x1.ffffffp-15), "f16 up to the least normal");
    CHECK_BITS(0x3f80, oracle_encode(ONEPASS_BF16, 1 + 0x1p-8), "bf16 tie to even, down");
    CHECK_BITS(0x3f82, oracle_encode(ONEPASS_BF16, 1 + 0x3p-8), "bf16 tie to even, up");
    CHECK_BITS(0x0001, oracle_encode(ONEPASS_BF16, 0x1p-133), "bf16 least denormal");
    CHECK_BITS(0x7f80, oracle_encode(ONEPASS_BF16, 0x1.ffp127), "bf16 at the tie to infinity");
}

int main(void) {
    test_conversions();
    test_catalogue();
    test_tables();
    test_reduced_specials();
    test_weights_by_hand();
    test_weights_of_one();
    test_slopes();
    test_edges();
    test_library_conversions();
    test_list();
    return check_finish();
}
