/*
 * The quick quotients of small launches (cuda/quotient.h) with a reciprocal as bad as may be: where they are said to be
 * sure they are what C's division gives, rounded to float, and they nearly always are.
 */
#include "cases.h"
#include "check.h"
#include "cuda/quotient.h"
#include "oracle.h"

#include <math.h>

static long sure, asked;

static void check_quotient(double a, double b) {
    const quick_quotient found = divide_quickly(a, b);
    const float exact = (float)(a / b);
    asked++;
    sure += found.is_sure;
    if (found.is_sure) {
        CHECK(found.rounded == exact, "%a / %a: %a is not %a", a, b, found.rounded, exact);
    }
}

static double next_up(double x, int steps) {
    return oracle_double_from_bits(oracle_load_bits(ONEPASS_F64, &x) + (uint64_t)(int64_t)steps);
}

/* A number of 53 binary digits from 1 to 2, by a power of two. */
static double random_number(uint64_t *state, int most_exponent) {
    const uint64_t fraction = random_bits(state) >> 12;
    const int exponent = (int)(random_bits(state) % (uint64_t)(2 * most_exponent + 1)) - most_exponent;
    return ldexp(oracle_double_from_bits(UINT64_C(0x3ff0000000000000) | fraction), exponent);
}

/* Sums of terms over sums of weights, of any size. */
static void test_usual(void) {
    uint64_t state = 1;
    sure = asked = 0;
    for (int i = 0; i < 2000000; i++) {
        check_quotient(random_number(&state, 40) * (i % 2 ? 1 : -1), random_number(&state, 40));
    }
    CHECK(sure > asked - asked / 1000, "expected that all but a thousandth are sure, got %ld of %ld", sure, asked);
}

/* What lies next to the middle between two floats, and at some distance. */
static void test_middles(void) {
    uint64_t state = 2;
    for (int i = 0; i < 500000; i++) {
        const float below = (float)random_number(&state, 20);
        const double middle = (below + (double)nextafterf(below, INFINITY)) / 2, b = random_number(&state, 20);
        const double near = middle * b;
        const int distance = 1 << i % 31;
        check_quotient(near, b);
        check_quotient(next_up(near, distance), b);
        check_quotient(next_up(near, -distance), b);
    }
}

/* Nothing is sure of what has no usual quotient; numbers at the ends of a float's range may be. */
static void test_ends(void) {
    static const double odd[] = {0,         -0.,        INFINITY,  -INFINITY,       NAN,
                                 0x1p-1074, -0x1p-1030, 0x1p-1022, 0x1p-1000,       0x1p-149,
                                 0x1p-126,  0x1p-125,   1,         0x1.fffffffp127, 0x1p127,
                                 0x1p128,   0x1p1000,   0x1p1022,  0x1p1023,        0x1.fffffffffffffp1023};
    const int count = (int)(sizeof odd / sizeof *odd);
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < count; j++) {
            check_quotient(odd[i], odd[j]);
            check_quotient(odd[i] * 1.1, odd[j] * 1.3);
            const bool usual = isnormal((float)(odd[i] / odd[j]));
            CHECK(usual || !divide_quickly(odd[i], odd[j]).is_sure, "expected that %a / %a is not sure", odd[i],
                  odd[j]);
        }
    }
}

int main(void) {
    test_usual();
    test_middles();
    test_ends();
    return check_finish();
}
