/*
 * Conversions between element types: the oracle's against the compiler's and by hand, the library's against the
 * oracle's, for every 16-bit pattern and every tie.
 */
#include "cases.h"
#include "check.h"
#include "oracle.h"

#include <math.h>

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

int main(void) {
    test_conversions();
    test_library_conversions();
    return check_finish();
}
