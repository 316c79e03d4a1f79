/*
 * Means that a quick quotient (cuda/quotient.h) is not sure of: their kernels store once more, by what C divides.
 */
#include "check.h"
#include "oracle.h"
#include "pairwise.h"

#include <math.h>

enum {
    WHOLE = 5 * ONEPASS_TILE / 2, /* elements: whole lines */
    FEW = 3 * ONEPASS_TILE,       /* and whole tiles */
    NEAR_MIDDLE = 2289            /* the reciprocal is nearly the middle between two floats */
};

static bool run_kernel(const onepass_call *call, cuda_variant expected, const char *what) {
    job job;
    cuda_launch launch;
    return CHECK_OK(onepass_plan(call, &job), what) && simt_plan_and_run(&job, 1, what, &launch) &&
           CHECK(launch.variant == expected, "%s: expected the kernel %s, got %s", what,
                 onepass_cuda_variant[expected].name, onepass_cuda_variant[launch.variant].name);
}

/* The gradient over its operand, whose numbers are gone after the first store. */
static void check_gradient(double divisor) {
    static float p[2][WHOLE], t[WHOLE];
    static unsigned char ones[WHOLE];
    char what[80];
    const int64_t count = WHOLE;
    uint64_t state = 1;
    float upstream = 0.75f;
    snprintf(what, sizeof what, "a gradient divided by %g", divisor);
    for (int i = 0; i < WHOLE; i++) {
        p[0][i] = p[1][i] = (float)(random_bits(&state) % 1000) / 7;
        ones[i] = i % 3 != 0;
    }
    const onepass_tensor target = {t, ONEPASS_F32, 1, &count, NULL}, mask = {ones, ONEPASS_BOOL, 1, &count, NULL};
    const onepass_tensor by = {&divisor, ONEPASS_F64, 0, NULL, NULL}, factor = {&upstream, ONEPASS_F32, 0, NULL, NULL};
    const onepass_tensor over[2] = {{p[0], ONEPASS_F32, 1, &count, NULL}, {p[1], ONEPASS_F32, 1, &count, NULL}};
    onepass_call call = {.size = sizeof call,
                         .loss = "mse",
                         .reduction = ONEPASS_MEAN,
                         .operand = {&over[0], &target},
                         .mask = &mask,
                         .divisor_tensor = &by,
                         .upstream = &factor,
                         .gradient = {&over[0]}};
    if (CHECK_OK(onepass_run(&call), what)) {
        call.operand[0] = call.gradient[0] = &over[1];
        if (run_kernel(&call, variant_whole_masked_backward, what)) {
            CHECK(memcmp(p[0], p[1], sizeof p[0]) == 0, "%s: expected the CPU's bits, got others", what);
        }
    }
}

/* The mean of a 1, where there is one, and of zeros, as many in all as the mask, the weight or both have ones. */
static void check_value(int64_t count, int taken, bool has_weight, bool has_mask, cuda_variant variant) {
    static float p[FEW] = {1}, t[FEW], weights[FEW];
    static unsigned char ones[FEW];
    char what[80];
    float found = -1;
    snprintf(what, sizeof what, "%s: a mean of %d of %lld elements", onepass_cuda_variant[variant].name, taken,
             (long long)count);
    for (int i = 0; i < count; i++) {
        weights[i] = ones[i] = i < taken;
    }
    const onepass_tensor in = {p, ONEPASS_F32, 1, &count, NULL}, target = {t, ONEPASS_F32, 1, &count, NULL};
    const onepass_tensor mask = {ones, ONEPASS_BOOL, 1, &count, NULL}, value = {&found, ONEPASS_F32, 0, NULL, NULL};
    const onepass_tensor weight = {weights, ONEPASS_F32, 1, &count, NULL};
    const onepass_call call = {.size = sizeof call,
                               .loss = "mse",
                               .reduction = ONEPASS_MEAN,
                               .operand = {&in, &target},
                               .weight = has_weight ? &weight : NULL,
                               .mask = has_mask ? &mask : NULL,
                               .value = &value};
    if (run_kernel(&call, variant, what)) {
        CHECK_BITS(oracle_encode(ONEPASS_F32, (taken > 0) / (double)taken), oracle_load_bits(ONEPASS_F32, &found),
                   what);
    }
}

void test_simt_divisors(void) {
    static const double divisors[] = {NEAR_MIDDLE, 3, 0, -0., NAN, INFINITY, 0x1p130, -0x1p-140};
    for (int i = 0; i < COUNT(divisors); i++) {
        check_gradient(divisors[i]);
    }
    for (int taken = 0; taken <= NEAR_MIDDLE; taken += NEAR_MIDDLE) {
        check_value(FEW, taken, true, false, variant_few_tiles_weighted_mean);
        check_value(FEW, taken, false, true, variant_few_tiles_masked_mean);
        check_value(FEW, taken, true, true, variant_few_tiles_mean);
        check_value(FEW - 1, taken, false, true, variant_small_masked_mean);
    }
    for (int taken = 0; taken <= 3; taken += 3) {
        check_value(ONEPASS_TILE, taken, true, false, variant_tiny_weighted_mean);
        check_value(ONEPASS_TILE, taken, false, true, variant_tiny_masked_mean);
        check_value(ONEPASS_TILE, taken, true, true, variant_tiny_mean);
    }
}
