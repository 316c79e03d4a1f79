/*
 * Weights and masks: by hand, weights of 1 and masks that leave all, and means over the number of elements.
 */
#include "cases.h"
#include "check.h"
#include "cpu/threads.h"
#include "oracle.h"

#include <math.h>

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

/* Of loops over every loss that are about bits sanitizers see a quarter, each loss another one. */
static int is_taken(int turn) {
    return !CHECK_SANITIZED || check_takes((size_t)turn, 4);
}

/* Weights of 1 have the bits of none, and so has a mask that leaves all elements. */
static void test_weights_of_one(void) {
    for (int i = 0; oracle_loss_at(i); i++) {
        for (int turn = 0; turn < 24; turn++) {
            if (!is_taken(turn + i)) {
                continue;
            }
            test_case c = {.group = "ones",
                           .loss = oracle_loss_at(i)->name,
                           .prediction = turn % 4 == 3 ? ONEPASS_F64 : ONEPASS_F32,
                           .target = ONEPASS_F32,
                           .gradient = ONEPASS_F64,
                           .value = ONEPASS_F64,
                           .upstream_dtype = ONEPASS_F32,
                           .reduction = turn % 4,
                           .wanted = WANT_ALL,
                           .upstream = turn / 3 % 4,
                           .layout = case_layout_named("target per row"),
                           .rows = 7,
                           .columns = turn % 2 ? 191 : 2048,
                           .data = DATA_NORMAL,
                           .weight_dtype = ONEPASS_F16,
                           .weights = WEIGHTS_ONE,
                           .masks = MASKS_ALL,
                           .seed = (uint64_t)turn};
            const int how = turn / 2 % 3; /* a weight, a mask, both */
            prepared_case *without = case_prepare(&c);
            /* Filled after the weight, the third operand has other numbers; these are taken over. */
            c.weight = how == 1 ? WEIGHT_ABSENT : turn % 2 ? WEIGHT_DENSE : WEIGHT_SCALAR;
            c.mask = how == 0 ? WEIGHT_ABSENT : turn % 2 ? WEIGHT_PER_ROW : WEIGHT_DENSE;
            prepared_case *with = case_prepare(&c);
            memcpy(with->block + with->begin[TENSOR_THIRD], without->block + without->begin[TENSOR_THIRD],
                   with->bytes[TENSOR_THIRD]);
            CHECK_OK(onepass_run(&without->call), "without weights");
            CHECK_OK(onepass_run(&with->call), "with weights of 1 or a full mask");
            for (int which = TENSOR_VALUE; which <= TENSOR_GRADIENT_THIRD; which++) {
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

/* ---------------------------------------------------------------- masks -- */

typedef struct masked {
    const char *what;
    int32_t reduction;
    double divisor;
    unsigned char mask[4];
    int weighted; /* by 1, 0, 2, -1 */
    float value, gradient[4];
} masked;

/* mse of p = 1, 2, 3, 4 and t = 0, by hand, as for the weights. The common shape is (2, 2). */
static const masked masked_results[] = {
    {"mean", ONEPASS_MEAN, 0, {1, 0, 0, 255}, 0, 8.5f, {1, 0, 0, 4}},
    {"sum", ONEPASS_SUM, 0, {1, 0, 0, 2}, 0, 17, {2, 0, 0, 8}},
    {"mean with a divisor", ONEPASS_MEAN, 4, {0, 1, 1, 0}, 0, 3.25f, {0, 1, 1.5f, 0}},
    {"batchmean", ONEPASS_BATCHMEAN, 0, {1, 0, 0, 1}, 0, 8.5f, {1, 0, 0, 4}},
    {"batchmean of all", ONEPASS_BATCHMEAN, 0, {1, 1, 1, 1}, 0, 15, {1, 2, 3, 4}},
    {"nothing takes part", ONEPASS_MEAN, 0, {0, 0, 0, 0}, 0, NAN, {0, 0, 0, 0}},
    {"nothing takes part in a sum", ONEPASS_SUM, 0, {0, 0, 0, 0}, 0, 0, {0, 0, 0, 0}},
    {"nothing takes part in a batchmean", ONEPASS_BATCHMEAN, 0, {0, 0, 0, 0}, 0, 0, {0, 0, 0, 0}},
    {"weighted mean", ONEPASS_MEAN, 0, {1, 1, 1, 0}, 1, 19.0f / 3, {2.0f / 3, 0, 4, 0}},
    {"weighted mean of weights that sum to 0",
     ONEPASS_MEAN,
     0,
     {1, 1, 0, 1},
     1,
     -INFINITY,
     {INFINITY, NAN, 0, -INFINITY}},
    {"weighted batchmean", ONEPASS_BATCHMEAN, 0, {0, 1, 1, 1}, 1, 1, {0, 0, 6, -4}},
};

static void test_masks_by_hand(void) {
    static const int64_t shape[2] = {2, 2};
    float p[4] = {1, 2, 3, 4}, t = 0, weight[4] = {1, 0, 2, -1};
    for (size_t i = 0; i < sizeof masked_results / sizeof masked_results[0]; i++) {
        const masked *row = &masked_results[i];
        unsigned char mask[4];
        float value = -77, gradient[4] = {-77, -77, -77, -77};
        memcpy(mask, row->mask, sizeof mask);
        const onepass_tensor prediction = {p, ONEPASS_F32, 2, shape, NULL}, target = {&t, ONEPASS_F32, 0, NULL, NULL};
        const onepass_tensor m = {mask, ONEPASS_BOOL, 2, shape, NULL}, w = {weight, ONEPASS_F32, 2, shape, NULL};
        const onepass_tensor v = {&value, ONEPASS_F32, 0, NULL, NULL}, g = {gradient, ONEPASS_F32, 2, shape, NULL};
        const onepass_call call = {.size = sizeof call,
                                   .loss = "mse",
                                   .reduction = row->reduction,
                                   .divisor = row->divisor,
                                   .operand = {&prediction, &target},
                                   .weight = row->weighted ? &w : NULL,
                                   .mask = &m,
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

/* Every loss and type, with a weight, a mask, both and neither: over the number of elements, to the bit. */
static void test_over_elements(void) {
    static const int32_t lies[] = {WEIGHT_ABSENT, WEIGHT_DENSE, WEIGHT_DENSE + 1};
    int turn = 0;
    for (int l = 0; oracle_loss_at(l); l++) {
        for (int32_t dtype = ONEPASS_F16; dtype <= ONEPASS_F64; dtype++) {
            for (int beside = 0; beside < 9; beside++, turn++) {
                if (!is_taken(turn)) {
                    continue;
                }
                test_case c = case_dense("over elements", oracle_loss_at(l)->name, dtype, turn % 5 ? 127 : 3001);
                c.wanted = WANT_ALL;
                c.upstream = UPSTREAM_OTHER;
                c.rows = 3;
                c.data = DATA_UNIFORM;
                c.weight = lies[beside / 3];
                c.weight_dtype = turn % 7 ? dtype : ONEPASS_F64;
                c.weights = turn % WEIGHTS_COUNT;
                c.mask = lies[beside % 3];
                c.masks = turn / 2 % MASKS_COUNT;
                c.threads = turn % 3;
                c.seed = (uint64_t)turn;
                prepared_case *expected = case_prepare(&c), *got = case_prepare(&c);
                char difference[160], text[512];
                case_describe(&c, text, sizeof text);
                expected->call.flags = got->call.flags = ONEPASS_OVER_ELEMENTS;
                oracle_run(&expected->call);
                if (CHECK_OK(onepass_run(&got->call), text)) {
                    CHECK(case_equal(expected, got, difference, sizeof difference), "%s: %s", difference, text);
                }
                case_free(expected);
                case_free(got);
            }
        }
    }
}

int main(void) {
    onepass_cpu_cores = 5; /* the most threads that a case has */
    test_weights_by_hand();
    test_weights_of_one();
    test_masks_by_hand();
    test_over_elements();
    return check_finish();
}
