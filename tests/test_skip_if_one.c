/*
 * ONEPASS_SKIP_IF_UPSTREAM_IS_ONE on the CPU: gradients that were computed without an upstream gradient are left alone
 * where that is 1 in the type of the computation, and are else computed anew, with the oracle's bits. Whole blocks of
 * memory are compared, poison included.
 */
#define _GNU_SOURCE
#include "cases.h"
#include "check.h"
#include "oracle.h"

#include <math.h>
#include <stdbool.h>
#include <sys/mman.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* What the upstream gradient is depends on its own type too: 1 + 2^-30 is 1 in all but f64. */
static bool is_one(const test_case *c, const prepared_case *prepared) {
    const double upstream = oracle_load(c->upstream_dtype, prepared->tensor[TENSOR_UPSTREAM].data);
    return case_in_double(c) ? upstream == 1 : (float)upstream == 1;
}

static void expect_equal(const prepared_case *expected, const prepared_case *got, const char *what, const char *text) {
    char difference[160];
    if (case_equal(expected, got, difference, sizeof difference)) {
        CHECK(1, "equal");
    } else {
        CHECK(0, "%s: %s: %s", what, difference, text);
    }
}

static prepared_case *prepare(const test_case *c, double upstream) {
    prepared_case *prepared = case_prepare(c);
    oracle_store(c->upstream_dtype, prepared->tensor[TENSOR_UPSTREAM].data, upstream);
    return prepared;
}

/* As it is meant: after a call without the upstream gradient. */
static void check_after_forward(const test_case *c, double upstream, const prepared_case *expected, const char *text) {
    prepared_case *got = prepare(c, upstream);
    onepass_call without = got->call;
    without.upstream = NULL;
    got->call.flags = ONEPASS_SKIP_IF_UPSTREAM_IS_ONE;
    if (CHECK_OK(onepass_run(&without), text) && CHECK_OK(onepass_run(&got->call), text)) {
        expect_equal(expected, got, "computed before", text);
    }
    case_free(got);
}

/* With gradients that are poison: whether they are written at all. */
static void check_poisoned(const test_case *c, double upstream, const prepared_case *expected, const char *text) {
    prepared_case *untouched = prepare(c, upstream);
    prepared_case *got = prepare(c, upstream);
    got->call.flags = ONEPASS_SKIP_IF_UPSTREAM_IS_ONE;
    if (CHECK_OK(onepass_run(&got->call), text)) {
        expect_equal(is_one(c, got) ? untouched : expected, got, "poisoned", text);
    }
    case_free(untouched);
    case_free(got);
}

static int ones, others;

static void check_upstream(const test_case *c, double upstream) {
    char described[512], text[560];
    prepared_case *expected = prepare(c, upstream);
    case_describe(c, described, sizeof described);
    snprintf(text, sizeof text, "upstream %.17g: %s", upstream, described);
    oracle_run(&expected->call);
    *(is_one(c, expected) ? &ones : &others) += 1;
    check_after_forward(c, upstream, expected, text);
    check_poisoned(c, upstream, expected, text);
    case_free(expected);
}

/* Every loss and type of operands and gradients, for most losses a quarter of these; the other axes take turns, at
 * lengths that share no factor. */
static void test_bits(bool quick) {
    static const double upstreams[] = {1, 2.5, NAN, INFINITY, -0.0, 1 + 0x1p-30, -1, 1 + 0x1p-52, 0x1.fffffep-1};
    static const int64_t columns[] = {1, 127, 1024, 1025, 3001};
    static const int32_t wanted[] = {WANT_PREDICTION, WANT_TARGET, WANT_ALL & ~WANT_VALUE};
    static const char *const layouts[] = {"dense", "unaligned", "target shared row", "padded rows", "transposed"};
    int turn = 0;
    for (int l = 0; oracle_loss_at(l); l++) {
        const int swept = case_loss_is_swept(oracle_loss_at(l)->name), step = !swept ? WEIGHT_COUNT : quick ? 3 : 1;
        for (int32_t operand = ONEPASS_F16; operand <= ONEPASS_F64; operand++) {
            for (int32_t gradient = ONEPASS_F16; gradient <= ONEPASS_F64; gradient++) {
                if (!swept && (operand + gradient + l) % 4) {
                    continue;
                }
                for (int32_t weight = step == 1 ? 0 : turn % step; weight < WEIGHT_COUNT; weight += step, turn++) {
                    const test_case c = {.group = "unless one",
                                         .loss = oracle_loss_at(l)->name,
                                         .prediction = operand,
                                         .target = turn % 11 ? operand : ONEPASS_F32,
                                         .gradient = gradient,
                                         .value = operand,
                                         .upstream_dtype = turn % 4 ? ONEPASS_F64 : ONEPASS_F16 + turn / 4 % 3,
                                         .reduction = turn / 2 % 2 ? ONEPASS_SUM : ONEPASS_MEAN,
                                         .wanted = wanted[turn % COUNT(wanted)],
                                         .upstream = turn % 7 ? UPSTREAM_OTHER : UPSTREAM_TENSOR,
                                         .layout = case_layout_named(layouts[turn % COUNT(layouts)]),
                                         .rows = 3,
                                         .columns = columns[turn / 3 % COUNT(columns)],
                                         .data = turn % DATA_COUNT,
                                         .weight = weight,
                                         .weight_dtype = turn % 13 ? operand : ONEPASS_F64,
                                         .weights = turn % WEIGHTS_COUNT,
                                         .mask = turn % 3 ? WEIGHT_ABSENT : turn / 3 % WEIGHT_COUNT,
                                         .masks = turn / 4 % MASKS_COUNT,
                                         .divisor = turn / 2 % 2 == 0 && turn % 5 == 0 ? 7 : 0,
                                         .threads = turn % 3,
                                         .seed = (uint64_t)turn};
                    for (int i = 0; i < COUNT(upstreams); i++) {
                        check_upstream(&c, upstreams[i]);
                    }
                }
            }
        }
    }
    printf("%d upstream gradients that are 1 where it is computed, %d that are not\n", ones, others);
    CHECK(ones > 0 && others > ones, "expected some of both");
}

/* Where it is 1 nothing is read either: operands, weights and gradients lie where nobody may. */
static void test_untouched(void) {
    static const double upstreams[] = {1, 1 + 0x1p-30};
    const int64_t shape[1] = {1000};
    char *nowhere = mmap(NULL, 5 * 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (nowhere == MAP_FAILED) {
        printf("left out: no memory that cannot be touched\n");
        return;
    }
    for (int32_t dtype = ONEPASS_F16; dtype <= ONEPASS_F64; dtype++) {
        for (int i = 0; i < (dtype == ONEPASS_F64 ? 1 : 2); i++) {
            double memory = upstreams[i];
            onepass_tensor tensor[5];
            for (int k = 0; k < 5; k++) {
                tensor[k] = (onepass_tensor){nowhere + (size_t)k * 8192, dtype, 1, shape, NULL};
            }
            const onepass_tensor upstream = {&memory, ONEPASS_F64, 0, NULL, NULL};
            const onepass_call call = {.size = sizeof call,
                                       .loss = "mse",
                                       .operand = {&tensor[0], &tensor[1]},
                                       .weight = &tensor[2],
                                       .upstream = &upstream,
                                       .gradient = {&tensor[3], &tensor[4]},
                                       .flags = ONEPASS_SKIP_IF_UPSTREAM_IS_ONE};
            CHECK_OK(onepass_run(&call), oracle_dtype_name(dtype));
        }
    }
    munmap(nowhere, 5 * 8192);
}

int main(void) {
    test_bits(check_quick("two of three ways that a weight lies"));
    test_untouched();
    return check_finish();
}
