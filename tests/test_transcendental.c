/*
 * The elementary functions of src/math/elementary.h, in float or (ONEPASS_REAL_F64) in double: special values, the
 * error of many arguments against libm in a wider type, no steps back where one region meets the next, a vectorised
 * loop against single calls, and a checksum of results that is the same on every machine. Quotients and powers, of two
 * arguments, are asked apart (logarithms of quotients by tests/accuracy/, as the losses that they are); and those
 * functions that promise the bits of others on a part of their domain are compared with them. So it is with
 * ONEPASS_EMULATE_FMA, by which the header does without fused multiply-adds of the machine's; the emulated ones are
 * compared with libm's.
 *
 *     test_transcendental_f64 [TIMES]     asks TIMES as many arguments (tests/all_floats.c asks every float)
 */
#include "check.h"
#include "math/real.h"
#include "math/elementary.h"

#include <float.h>
#include <math.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* The type and the functions of the reference. A long double that is no wider than double is none. */
#if defined(ONEPASS_REAL_F64)
typedef long double wide;
#define WIDE(function)  function##l
#define WIDTH(function) function
#define DIGITS          53
#define HAVE_REFERENCE  (LDBL_MANT_DIG >= 64)
#else
typedef double wide;
#define WIDE(function)  function
#define WIDTH(function) function##f
#define DIGITS          24
#define HAVE_REFERENCE  1
#endif

enum {
    BLOCK = 4096
};

/* ------------------------------------------------------------- functions -- */

static wide wide_exp(wide x) {
    return WIDE(exp)(x);
}
static wide wide_expm1(wide x) {
    return WIDE(expm1)(x);
}
static wide wide_log(wide x) {
    return WIDE(log)(x);
}
static wide wide_log1p(wide x) {
    return WIDE(log1p)(x);
}
static wide wide_tanh(wide x) {
    return WIDE(tanh)(x);
}
static wide wide_sigmoid(wide x) {
    return x < 0 ? WIDE(exp)(x) / (1 + WIDE(exp)(x)) : 1 / (1 + WIDE(exp)(-x));
}
static wide wide_quick_sigmoid(wide x) {
    return wide_sigmoid(x);
}
static wide wide_softplus(wide x) {
    return x > 0 ? x + WIDE(log1p)(WIDE(exp)(-x)) : WIDE(log1p)(WIDE(exp)(x));
}

/* One call at a time, and a loop that the compiler vectorises. */
#define LOOP(name, function)                                                                                           \
    __attribute__((noinline)) static void loop_##name(const real *x, real *y, int64_t count) {                         \
        _Pragma("omp simd") for (int64_t i = 0; i < count; i++) y[i] = function(x[i]);                                 \
    }
#define FUNCTION(name)                                                                                                 \
    __attribute__((noinline)) static real call_##name(real x) {                                                        \
        return real_##name(x);                                                                                         \
    }                                                                                                                  \
    LOOP(name, real_##name)
FUNCTION(exp)
FUNCTION(expm1)
FUNCTION(log)
FUNCTION(log1p)
FUNCTION(tanh)
FUNCTION(sigmoid)
FUNCTION(softplus)
FUNCTION(quick_sigmoid)

typedef struct function {
    const char *name;
    real (*call)(real x);
    void (*loop)(const real *x, real *y, int64_t count);
    wide (*reference)(wide x);
    int limit;            /* of the error, in units in the last place */
    uint64_t checksum[2]; /* in float and in double */
} function;

#define OF(name) #name, call_##name, loop_##name, wide_##name
static const function functions[] = {
    {OF(exp), 1, {UINT64_C(0x0c2aa3190b7fc0ac), UINT64_C(0x679e7b07a62890ae)}},
    {OF(expm1), 2, {UINT64_C(0xe55ab406182415ba), UINT64_C(0x639e62207885b0f8)}},
    {OF(log), 1, {UINT64_C(0xb71550f764908885), UINT64_C(0xe5834eab83a138cc)}},
    {OF(log1p), 1, {UINT64_C(0xf9480eb37e2e4e7c), UINT64_C(0x9b0bb012f7fd3e27)}},
    {OF(tanh), 1, {UINT64_C(0x8b10742a3df66fe1), UINT64_C(0x952a476dd9cd85c1)}},
    {OF(sigmoid), 1, {UINT64_C(0xdcc47c23aca0da44), UINT64_C(0xcbdcfb4326d6cdc3)}},
    {OF(softplus), 2, {UINT64_C(0x0613e6c198cc09f4), UINT64_C(0xbd3920460d146a33)}},
    {OF(quick_sigmoid), 3, {UINT64_C(0x31f68855d3331a68), UINT64_C(0xe15fe9c7862fa129)}},
};

static const function *function_named(const char *name) {
    for (int i = 0; i < COUNT(functions); i++) {
        if (strcmp(functions[i].name, name) == 0) {
            return &functions[i];
        }
    }
    return NULL;
}

/* -------------------------------------------------------- special values -- */

#define INF          ((real)INFINITY)
#define MIN          REAL_SMALLEST
#define TINY         real_of(1) /* the smallest denormal number */
#define REAL_LARGEST real_of(REAL_EXPONENT_BITS - 1)
#define ONE_BELOW    real_of(bits_of((real)1) - 1)

static void test_special_values(void) {
    static const struct special {
        const char *name;
        double x, y;
    } specials[] = {
        {"exp", 0, 1},
        {"exp", -0.0, 1},
        {"exp", INFINITY, INFINITY},
        {"exp", -INFINITY, 0},
        {"exp", NAN, NAN},
        {"exp", 1e30, INFINITY},
        {"exp", -1e30, 0},
        {"expm1", 0, 0},
        {"expm1", -0.0, -0.0},
        {"expm1", INFINITY, INFINITY},
        {"expm1", -INFINITY, -1},
        {"expm1", NAN, NAN},
        {"expm1", 1e30, INFINITY},
        {"expm1", -1e30, -1},
        {"log", 1, 0},
        {"log", 0, -INFINITY},
        {"log", -0.0, -INFINITY},
        {"log", -1, NAN},
        {"log", -1e-40, NAN},
        {"log", -INFINITY, NAN},
        {"log", INFINITY, INFINITY},
        {"log", NAN, NAN},
        {"log1p", 0, 0},
        {"log1p", -0.0, -0.0},
        {"log1p", -1, -INFINITY},
        {"log1p", -2, NAN},
        {"log1p", -INFINITY, NAN},
        {"log1p", INFINITY, INFINITY},
        {"log1p", NAN, NAN},
        {"tanh", 0, 0},
        {"tanh", -0.0, -0.0},
        {"tanh", 20, 1},
        {"tanh", -20, -1},
        {"tanh", INFINITY, 1},
        {"tanh", -INFINITY, -1},
        {"tanh", NAN, NAN},
        {"sigmoid", 0, 0.5},
        {"sigmoid", -0.0, 0.5},
        {"sigmoid", 40, 1},
        {"sigmoid", INFINITY, 1},
        {"sigmoid", -INFINITY, 0},
        {"sigmoid", -1000, 0},
        {"sigmoid", NAN, NAN},
        {"softplus", INFINITY, INFINITY},
        {"softplus", -INFINITY, 0},
        {"softplus", -1000, 0},
        {"softplus", 1000, 1000},
        {"softplus", 1e30, 1e30},
        {"softplus", NAN, NAN},
        {"quick_sigmoid", 0, 0.5},
        {"quick_sigmoid", -0.0, 0.5},
        {"quick_sigmoid", 40, 1},
        {"quick_sigmoid", INFINITY, 1},
        {"quick_sigmoid", -INFINITY, 0},
        {"quick_sigmoid", -1000, 0},
        {"quick_sigmoid", NAN, NAN},
    };
    for (int i = 0; i < COUNT(specials); i++) {
        const real x = (real)specials[i].x, y = (real)specials[i].y;
        char what[64];
        snprintf(what, sizeof what, "%s(%g)", specials[i].name, specials[i].x);
        CHECK_BITS(bits_of(canonical(y)), bits_of(canonical(function_named(specials[i].name)->call(x))), what);
    }
    /* Denormal numbers: those that come out as they went in, those that come out of a normal argument, and the
     * logarithm of the least of all. */
    for (real_bits bits = 1; bits < bits_of(MIN); bits = bits * 3 + 1) {
        for (int sign = 0; sign < 2; sign++) {
            const real x = sign ? -real_of(bits) : real_of(bits);
            CHECK_BITS(bits_of(x), bits_of(call_expm1(x)), "expm1 of a denormal number");
            CHECK_BITS(bits_of(x), bits_of(call_log1p(x)), "log1p of a denormal number");
            CHECK_BITS(bits_of(x), bits_of(call_tanh(x)), "tanh of a denormal number");
            CHECK_BITS(bits_of((real)1), bits_of(call_exp(x)), "exp of a denormal number");
            CHECK_BITS(bits_of((real)0.5), bits_of(call_sigmoid(x)), "sigmoid of a denormal number");
            CHECK_BITS(bits_of((real)0.5), bits_of(call_quick_sigmoid(x)), "quick_sigmoid of a denormal number");
        }
    }
    const real log_tiny = sizeof(real) == 4 ? (real)-0x1.9d1dap+6 : (real)-0x1.74385446d71c3p+9;
    CHECK_BITS(bits_of(log_tiny), bits_of(call_log(TINY)), "log of the smallest denormal number");
    /* The last argument whose exponential is finite, and the first whose is not. */
    const real last = sizeof(real) == 4 ? (real)0x1.62e42ep+6 : (real)0x1.62e42fefa39efp+9;
    CHECK(call_exp(last) < INF, "expected exp(%a) to be finite", (double)last);
    CHECK(call_exp(real_of(bits_of(last) + 1)) == INF, "expected exp to overflow just above %a", (double)last);
    CHECK(call_expm1(last) < INF, "expected expm1(%a) to be finite", (double)last);
    CHECK(call_expm1(real_of(bits_of(last) + 1)) == INF, "expected expm1 to overflow just above %a", (double)last);
    CHECK(call_log1p(-ONE_BELOW) > -INF, "expected log1p just above -1 to be finite");
}

/* -------------------------------------------------------------- accuracy -- */

/* In units in the last place of a `real` near the exact result; infinite where only one of the two is a number. */
static double error_in_ulp(real got, wide exact) {
    const real nearest = (real)exact;
    if (exact != exact || got != got) {
        return exact != exact && got != got ? 0 : (double)INFINITY;
    }
    if (nearest == INF || nearest == -INF || got == INF || got == -INF) {
        return got == nearest ? 0 : (double)INFINITY;
    }
    int exponent;
    WIDE(frexp)(exact, &exponent);
    const int least = sizeof(real) == 4 ? FLT_MIN_EXP : DBL_MIN_EXP;
    return (double)WIDE(fabs)(WIDE(ldexp)((wide)got - exact, DIGITS - (exponent < least ? least : exponent)));
}

typedef struct worst {
    double error;
    real x;
    int64_t count;
} worst;

static void ask(const function *f, const real *x, int count, worst *worst) {
    real y[BLOCK];
    f->loop(x, y, count);
    for (int i = 0; i < count; i++) {
        const double error = error_in_ulp(y[i], f->reference((wide)x[i]));
        if (error > worst->error) {
            worst->error = error;
            worst->x = x[i];
        }
    }
    worst->count += count;
}

static uint64_t random_bits(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t x = *state;
    x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    return x ^ (x >> 32);
}

/* A number with any mantissa and sign, and an exponent from 2^low to 2^high. */
static real random_between(uint64_t *state, int low, int high) {
    const uint64_t bits = random_bits(state);
    const real_bits mantissa = (real_bits)(bits >> 8) & (((real_bits)1 << REAL_MANTISSA_BITS) - 1);
    const real_bits exponent = (real_bits)((int64_t)REAL_BIAS + low + (int64_t)(bits % 127) % (high - low + 1));
    const real_bits sign = bits >> 63 ? REAL_SIGN_BIT : 0;
    return real_of(sign | exponent << REAL_MANTISSA_BITS | mantissa);
}

/* Of any bits. */
static real random_number(uint64_t *state) {
    return real_of((real_bits)(random_bits(state) >> (sizeof(real) == 4 ? 32 : 0)));
}

/* Often of few digits, or 0. */
static real random_denormal(uint64_t *state) {
    const int digits = (int)(random_bits(state) % (REAL_MANTISSA_BITS + 1));
    return real_of((real_bits)(random_bits(state) >> 8) & (((real_bits)1 << digits) - 1));
}

static real random_argument(uint64_t *state, int64_t i) {
    switch (i % 4) {
    case 0:
        return random_number(state);
    case 1: /* everything happens here */
        return random_between(state, -3, 3);
    case 2: /* where exponentials leave the range of numbers */
        return random_between(state, sizeof(real) == 4 ? 4 : 7, sizeof(real) == 4 ? 6 : 9);
    default:
        return random_between(state, -30, 1);
    }
}

static void test_accuracy(int64_t count) {
    for (int k = 0; k < COUNT(functions); k++) {
        worst worst = {0, 0, 0};
        uint64_t state = 1;
        real x[BLOCK];
        for (int64_t done = 0; done < count; done += BLOCK) {
            for (int i = 0; i < BLOCK; i++) {
                x[i] = random_argument(&state, i);
                if (strcmp(functions[k].name, "log") == 0 && i % 4) {
                    x[i] = magnitude(x[i]);
                }
            }
            ask(&functions[k], x, BLOCK, &worst);
        }
        printf("%-13s  at most %.4f ulp, at %a, of %lld arguments\n", functions[k].name, worst.error, (double)worst.x,
               (long long)worst.count);
        CHECK(worst.error <= functions[k].limit, "%s(%a): expected at most %d ulp, got %g", functions[k].name,
              (double)worst.x, functions[k].limit, worst.error);
    }
}

/* ------------------------------------------------------------ boundaries -- */

/* Where a function changes from one way of computing to another; the powers of two of e^x change at 3/2 of a power of
 * two, those of log at 3/4 of one. */
static const double boundaries[] = {
    0.40546510810816438,
    1.0986122886681098,
    -0.28768207245178093,
    -0.98082925301172619,
    -0.5,
    0.14384103622589046,
    0.49041462650586309,
    0.65,
    0.34657359027997264,
    20.1,
    -20.1,
    0.75,
    1.5,
    0.375,
    1,
    3,
    -0.25,
    0.5,
    2,
    -0.625,
    0.69314718055994529,
    0x1p-13,
    0x1p-28,
    9.0109133472792,
    19.061547465398498,
    16.635532333438688,
    36.736800569677101,
    88.722839,
    -87.336544,
    -103.97208,
    709.78271289338397,
    -708.39641853226408,
    -745.13321910194122,
    0x1p-126,
    0x1p-1022,
    0x1.8p127,
    0x1.8p1023,
};

static void test_boundaries(void) {
    for (int k = 0; k < COUNT(functions); k++) {
        const function *f = &functions[k];
        worst worst = {0, 0, 0};
        long back = 0;
        for (int b = 0; b < COUNT(boundaries); b++) {
            real x[BLOCK], y[BLOCK];
            const real middle = (real)boundaries[b];
            if (middle == 0 || middle == INF) {
                continue; /* of the other type */
            }
            for (int i = 0; i < BLOCK; i++) { /* in the order of bits: upwards or, if negative, downwards */
                x[i] = real_of(bits_of(middle) + (real_bits)i - BLOCK / 2);
            }
            if (HAVE_REFERENCE) {
                ask(f, x, BLOCK / (sizeof(real) == 4 ? 1 : 4), &worst);
            }
            f->loop(x, y, BLOCK);
            for (int i = 1; i < BLOCK; i++) {
                const real low = middle < 0 ? y[i] : y[i - 1], high = middle < 0 ? y[i - 1] : y[i];
                back += low > high;
                /* Two errors of less than 1 ulp cannot step back by more than one, of less than 2 by more than three.
                 */
                const real_bits step = low < 0 ? bits_of(high) - bits_of(low) : bits_of(low) - bits_of(high);
                CHECK(!(low > high) || step + 1 <= 2 * (real_bits)f->limit || 0 - step + 1 <= 2 * (real_bits)f->limit,
                      "%s steps back by too much near %a", f->name, (double)x[i]);
            }
        }
        printf("%-13s  at most %.4f ulp near boundaries, %ld steps back\n", f->name, worst.error, back);
        CHECK(worst.error <= f->limit, "%s(%a): expected at most %d ulp, got %g", f->name, (double)worst.x, f->limit,
              worst.error);
    }
}

/* ---------------------------------------------------- fused multiply-add -- */

/* A number of random digits and with an exponent from -range to range; often short, so that sums are halfway. */
static real random_factor(uint64_t *state, int range) {
    const real x = random_between(state, -range, range);
    return random_bits(state) % 3 ? x : real_of(bits_of(x) & ~(((real_bits)1 << (REAL_MANTISSA_BITS / 2)) - 1));
}

/* The emulation against libm, which rounds right on every machine, by an instruction or without. */
static void test_fused(int64_t count) {
    static const double specials[] = {0, -0.0, 1, -1, 0.5, INFINITY, -INFINITY, NAN, 3};
    uint64_t state = 3;
    long differ = 0;
    for (int64_t i = 0; i < count; i++) {
        const real a = random_factor(&state, 40), b = random_factor(&state, 40);
        real c = random_factor(&state, 60);
        switch (i % 4) {
        case 1: /* nearly cancels */
            c = -a * b;
            c = real_of(bits_of(c) + (real_bits)(random_bits(&state) % 5) - 2);
            break;
        case 2: /* far below the product */
            c = a * b * (real)(sizeof(real) == 4 ? 0x1p-30 : 0x1p-60);
            break;
        case 3: /* half of the last digit of c, or nearly */
            c = a * b * (real)(sizeof(real) == 4 ? 0x1p24 : 0x1p53);
            c = real_of(bits_of(c) & ~(real_bits)0xff);
            break;
        }
        differ += bits_of(canonical(fused_emulated(a, b, c))) != bits_of(canonical((real)WIDTH(fma)(a, b, c)));
    }
    CHECK(differ == 0, "expected the emulated fused multiply-add to be libm's; %ld of %lld differ", differ,
          (long long)count);
    for (int i = 0; i < COUNT(specials) * COUNT(specials) * COUNT(specials); i++) {
        const real a = (real)specials[i % COUNT(specials)], b = (real)specials[i / COUNT(specials) % COUNT(specials)];
        const real c = (real)specials[i / COUNT(specials) / COUNT(specials)];
        char what[96];
        snprintf(what, sizeof what, "fused_emulated(%g, %g, %g)", (double)a, (double)b, (double)c);
        CHECK_BITS(bits_of(canonical((real)WIDTH(fma)(a, b, c))), bits_of(canonical(fused_emulated(a, b, c))), what);
    }
    if (sizeof(real) == 4) { /* where products and results are denormal or infinite */
        for (int64_t i = 0; i < count; i++) {
            const real a = random_factor(&state, 62), b = random_factor(&state, 62);
            const real c =
                i % 2 ? real_of((real_bits)random_bits(&state)) : real_of((real_bits)(random_bits(&state) >> 41));
            const real small = b * (real)0x1p-100;
            differ +=
                bits_of(canonical(fused_emulated(a, small, c))) != bits_of(canonical((real)WIDTH(fma)(a, small, c)));
        }
        CHECK(differ == 0, "expected denormal results of the emulation to be libm's; %ld differ", differ);
    }
}

/* ----------------------------------------------------- parts of a domain -- */

LOOP(log_of_positive, real_log_of_positive)
LOOP(log_of_large, real_log_of_large)
LOOP(log_of_share, real_log_of_share)
static real log_of_rest_of(real x) {
    return real_log_of_rest(0 - x);
}
LOOP(log1p_above_minus_one, log1p_above_minus_one)
LOOP(log_of_rest, log_of_rest_of)
LOOP(log1p_of_positive, real_log1p_of_positive)

/* Functions that have, from `low` to `high`, the bits of another one. */
static void test_parts(int64_t count) {
    const struct part {
        const char *name;
        void (*loop)(const real *x, real *y, int64_t count);
        const char *of;
        real low, high;
    } parts[] = {
        {"log_of_positive", loop_log_of_positive, "log", TINY, REAL_LARGEST},
        {"log_of_large", loop_log_of_large, "log", 1, REAL_LARGEST},
        {"log_of_share", loop_log_of_share, "log", TINY, 1},
        {"log1p_above_minus_one", loop_log1p_above_minus_one, "log1p", -ONE_BELOW, REAL_LARGEST},
        {"log1p_of_positive", loop_log1p_of_positive, "log1p", 0, INF},
        {"log_of_rest", loop_log_of_rest, "log1p", -ONE_BELOW, -TINY},
    };
    const real edges[] = {TINY,
                          3 * TINY,
                          real_of(bits_of(MIN) - 1),
                          MIN,
                          (real)0.75,
                          ONE_BELOW,
                          1,
                          (real)1.5,
                          0,
                          REAL_LARGEST,
                          INF,
                          -TINY,
                          (real)-0.25,
                          -ONE_BELOW};
    for (int k = 0; k < COUNT(parts); k++) {
        const struct part *part = &parts[k];
        uint64_t state = 5;
        int64_t tried = 0;
        long differ = 0;
        real x[BLOCK], part_y[BLOCK], whole_y[BLOCK], first = 0;
        for (int64_t done = 0; done < count; done += BLOCK) {
            for (int i = 0; i < BLOCK;) {
                x[i] = tried < COUNT(edges) ? edges[tried]
                       : tried % 8 == 7     ? random_denormal(&state)
                                            : random_argument(&state, tried);
                tried++;
                i += x[i] >= part->low && x[i] <= part->high;
            }
            part->loop(x, part_y, BLOCK);
            function_named(part->of)->loop(x, whole_y, BLOCK);
            for (int i = 0; i < BLOCK; i++) {
                if (bits_of(part_y[i]) != bits_of(whole_y[i]) && differ++ == 0) {
                    first = x[i];
                }
            }
        }
        CHECK(differ == 0, "expected %s to have the bits of %s; %ld differ, the first at %a", part->name, part->of,
              differ, (double)first);
    }
    const real nothing = (real)NAN, zero = 0;
    real y;
    loop_log1p_of_positive(&nothing, &y, 1);
    CHECK(y != y, "expected log1p_of_positive(NaN) to be NaN, got %g", (double)y);
    loop_log_of_share(&zero, &y, 1);
    CHECK(y < call_log(TINY), "expected log_of_share(0) to be below all logarithms, got %g", (double)y);
}

/* ---------------------------------------------------------------- ratios -- */

#define RATIO_CHECKSUM (sizeof(real) == 4 ? UINT64_C(0x342b9f8c61a69f80) : UINT64_C(0x6a230eb3505ad7d5))

__attribute__((noinline)) static real call_ratio(real a, real b) {
    return real_ratio(a, b);
}

__attribute__((noinline)) static void loop_ratio(const real *a, const real *b, real *y, int64_t count) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        y[i] = real_ratio(a[i], b[i]);
}

static void random_operands(uint64_t *state, int64_t i, real *a, real *b) {
    const int far = (int)(REAL_BIAS / 2);
    *a = random_number(state);
    *b = random_number(state);
    switch (i % 6) {
    case 1: /* near 1 */
        *a = random_between(state, -3, 3);
        *b = random_between(state, -3, 3);
        break;
    case 2: /* near each other */
        *a = *b + *b * random_between(state, -REAL_MANTISSA_BITS - 1, -1);
        break;
    case 3:
        *a = random_denormal(state);
        break;
    case 4:
        *b = random_denormal(state);
        break;
    case 5: /* their quotient is denormal */
        *a = random_between(state, -far - 17, -far + 13);
        *b = random_between(state, far, far + 17);
        break;
    }
}

static void fill_operands(uint64_t *state, real *a, real *b, int count) {
    for (int i = 0; i < count; i++)
        random_operands(state, i, &a[i], &b[i]);
}

/* Of an `a` so small that its digits may be lost any other within 8 of the smallest denormal number may be divided. */
static double ratio_error(real y, real a, real b) {
    const double error = error_in_ulp(y, (wide)a / (wide)b);
    if (magnitude(a) >= 16 * MIN || a == 0 || error == 0)
        return error;
    const wide less = ((wide)a - 8 * (wide)TINY) / (wide)b, more = ((wide)a + 8 * (wide)TINY) / (wide)b;
    if (((wide)y >= less && (wide)y <= more) || ((wide)y <= less && (wide)y >= more))
        return 0;
    return fmin(error_in_ulp(y, less), error_in_ulp(y, more));
}

static void test_ratios(int64_t count) {
    real a[BLOCK], b[BLOCK], y[BLOCK], worst_a = 0, worst_b = 0;
    double worst = 0;
    uint64_t state = 6;
    for (int64_t done = 0; done < count; done += BLOCK) {
        fill_operands(&state, a, b, BLOCK);
        loop_ratio(a, b, y, BLOCK);
        for (int i = 0; i < BLOCK; i++) {
            const double error = ratio_error(y[i], a[i], b[i]);
            if (error > worst) {
                worst = error;
                worst_a = a[i];
                worst_b = b[i];
            }
        }
    }
    printf("%-13s  at most %.4f ulp, at %a and %a, of %lld pairs\n", "ratio", worst, (double)worst_a, (double)worst_b,
           (long long)count);
    CHECK(worst <= 1.5, "ratio(%a, %a): expected at most 1.5 ulp, got %g", (double)worst_a, (double)worst_b, worst);
}

/* All pairs of numbers at the edges. */
static void test_special_ratios(void) {
    const real specials[] = {
        0, -(real)0, TINY, -TINY, real_of(bits_of(MIN) - 1), MIN, -MIN, 1, -1, 3, REAL_LARGEST, INF, -INF, (real)NAN};
    for (int i = 0; i < COUNT(specials) * COUNT(specials); i++) {
        const real a = specials[i / COUNT(specials)], b = specials[i % COUNT(specials)];
        const real expected = canonical(a / b), got = canonical(call_ratio(a, b));
        const bool is_edge = a == 0 || b == 0 || a - a != 0 || b - b != 0;
        char what[96];
        snprintf(what, sizeof what, "ratio(%a, %a)", (double)a, (double)b);
        if (is_edge || expected - expected != 0)
            CHECK_BITS(bits_of(expected), bits_of(got), what);
        else if (HAVE_REFERENCE)
            CHECK(ratio_error(got, a, b) <= 1.5, "%s: expected %a, got %a", what, (double)expected, (double)got);
    }
}

__attribute__((noinline)) static real call_by_parameter(real a, real b) {
    return by_parameter(a, b);
}

/* Divisors above 0 of any size; of those near the ends of numbers only quotients that are not denormal. */
static void test_by_parameter(int64_t count) {
    double worst = 0;
    real worst_a = 0, worst_b = 0;
    uint64_t state = 8;
    for (int64_t i = 0; i < count; i++) {
        real a, b;
        random_operands(&state, i, &a, &b);
        b = magnitude(b);
        if (i % 7 == 0)
            b = real_of(bits_of(b) & REAL_EXPONENT_BITS); /* a power of two, or 0 */
        const real exact = a / b;
        if (!(magnitude(exact) >= MIN && magnitude(exact) < REAL_LARGEST / 4))
            continue;
        const double error = error_in_ulp(call_by_parameter(a, b), (wide)a / (wide)b);
        CHECK(i % 7 != 0 || error == 0, "by_parameter(%a, %a): expected a power of two to divide exactly", (double)a,
              (double)b);
        if (error > worst) {
            worst = error;
            worst_a = a;
            worst_b = b;
        }
    }
    printf("%-13s  at most %.4f ulp, at %a and %a\n", "by_parameter", worst, (double)worst_a, (double)worst_b);
    CHECK(worst <= 1.5, "by_parameter(%a, %a): expected at most 1.5 ulp, got %g", (double)worst_a, (double)worst_b,
          worst);
    for (int i = -20; i <= 20; i++) /* denormal numbers by 1 */
        CHECK_BITS(bits_of(i * TINY), bits_of(call_by_parameter(i * TINY, 1)), "a denormal number by 1");
}

/* The reciprocals of all mantissas are rounded to the nearest, whatever the exponent. */
static void test_reciprocals(int step) {
    static const double scales[] = {0x1p-24, 0x1p-12, 1, 0x1p70, 0x1p-100};
    const uint32_t one = UINT32_C(1) << 24;
    long differ = 0;
    for (uint32_t i = 0; i < one; i += (uint32_t)step) {
        const real b = (real)(one + i) * (real)scales[i / (uint32_t)step % COUNT(scales)];
        differ += call_ratio(1, b) != 1 / b;
    }
    CHECK(differ == 0, "expected reciprocals to be rounded to the nearest number; %ld are not", differ);
}

/* ---------------------------------------------------------------- powers -- */

#define POWER_CHECKSUM (sizeof(real) == 4 ? UINT64_C(0xa552bee314429eca) : UINT64_C(0x5e446a8d8baa6cbc))

__attribute__((noinline)) static real call_pow(real x, real y) {
    return real_pow(x, y);
}

__attribute__((noinline)) static void loop_pow(const real *x, const real *y, real *z, int64_t count) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        z[i] = real_pow(x[i], y[i]);
}

static void random_power(uint64_t *state, int64_t i, real *x, real *y) {
    const int most = sizeof(real) == 4 ? 6 : 9;
    *x = magnitude(random_number(state));
    *y = random_between(state, -3, 3);
    switch (i % 6) {
    case 1: /* near 1, to a power that counts */
        *x = 1 + random_between(state, -REAL_MANTISSA_BITS - 1, -3);
        *y = real_of(bits_of(random_between(state, most, most)) / 2 + bits_of(1 / (*x - 1)) / 2);
        break;
    case 2: /* where powers leave the range of numbers */
        *x = magnitude(random_between(state, -4, 4));
        *y = random_between(state, most - 2, most + 2);
        break;
    case 3:
        *x = random_denormal(state);
        break;
    case 4: /* those with exact results */
        *x = (real)(random_bits(state) % 1000);
        *y = (real)(random_bits(state) % 5) - 1;
        break;
    case 5:
        *y = random_number(state);
        break;
    }
}

static void fill_powers(uint64_t *state, real *x, real *y, int count) {
    for (int i = 0; i < count; i++)
        random_power(state, i, &x[i], &y[i]);
}

static void test_powers(int64_t count) {
    real x[BLOCK], y[BLOCK], z[BLOCK], worst_x = 0, worst_y = 0;
    double worst = 0;
    uint64_t state = 9;
    for (int64_t done = 0; done < count; done += BLOCK) {
        fill_powers(&state, x, y, BLOCK);
        loop_pow(x, y, z, BLOCK);
        for (int i = 0; i < BLOCK; i++) {
            const double error = error_in_ulp(z[i], WIDE(pow)((wide)x[i], (wide)y[i]));
            if (error > worst) {
                worst = error;
                worst_x = x[i];
                worst_y = y[i];
            }
        }
    }
    printf("%-13s  at most %.4f ulp, at %a and %a, of %lld pairs\n", "pow", worst, (double)worst_x, (double)worst_y,
           (long long)count);
    CHECK(worst <= 1, "pow(%a, %a): expected at most 1 ulp, got %g", (double)worst_x, (double)worst_y, worst);
}

/* All pairs of numbers at the edges, from 0 on; and NaN below. What is exact comes out so. */
static void test_special_powers(void) {
    const real bases[] = {0, TINY, MIN, (real)0.5, ONE_BELOW, 1, 2, 3, REAL_LARGEST, INF, (real)NAN};
    const real exponents[] = {
        0, -(real)0, 1, -1, 2, (real)0.5, TINY, -TINY, 1000, -1000, REAL_LARGEST, -REAL_LARGEST, INF, -INF, (real)NAN};
    for (int i = 0; i < COUNT(bases) * COUNT(exponents); i++) {
        const real x = bases[i / COUNT(exponents)], y = exponents[i % COUNT(exponents)],
                   got = canonical(call_pow(x, y));
        const wide exact = WIDE(pow)((wide)x, (wide)y);
        const real expected = canonical((real)exact);
        char what[96];
        snprintf(what, sizeof what, "pow(%a, %a)", (double)x, (double)y);
        if ((wide)expected == exact || expected - expected != 0)
            CHECK_BITS(bits_of(expected), bits_of(got), what);
        else if (HAVE_REFERENCE)
            CHECK(error_in_ulp(got, exact) <= 1, "%s: expected %a, got %a", what, (double)expected, (double)got);
    }
    const real below[] = {-TINY, -1, -3, -INF};
    for (int i = 0; i < COUNT(below); i++)
        CHECK(call_pow(below[i], 2) != call_pow(below[i], 2), "expected pow of a negative number to be NaN");
}

/* ------------------------------------------------------------- same bits -- */

/* The loop's results against single calls', and their checksum. */
static void check_same_bits(const char *name, const real *loop, const real *single, int count, uint64_t expected) {
    uint64_t checksum = UINT64_C(0xcbf29ce484222325); /* FNV-1a, a result at a time */
    long differ = 0;
    for (int i = 0; i < count; i++) {
        const real_bits bits = bits_of(canonical(loop[i]));
        differ += bits != bits_of(canonical(single[i]));
        checksum = (checksum ^ bits) * UINT64_C(0x100000001b3);
    }
    CHECK(differ == 0, "%s: expected the loop's bits to be those of single calls; %ld differ", name, differ);
    CHECK_BITS(expected, checksum, name);
}

/* From an odd address on and with a remainder. */
static void test_same_bits(void) {
    enum {
        ARGUMENTS = 100003
    };
    real *a = malloc(ARGUMENTS * sizeof *a), *b = malloc(ARGUMENTS * sizeof *b);
    real *y = malloc(ARGUMENTS * sizeof *y), *single = malloc(ARGUMENTS * sizeof *single);
    if (!a || !b || !y || !single) {
        perror("malloc");
        exit(1);
    }
    uint64_t state = 2;
    for (int i = 0; i < ARGUMENTS; i++) {
        a[i] = random_argument(&state, i);
    }
    for (int k = 0; k < COUNT(functions); k++) {
        const function *f = &functions[k];
        for (int i = 0; i < ARGUMENTS; i++) {
            single[i] = f->call(a[i]);
        }
        y[0] = single[0];
        f->loop(a + 1, y + 1, ARGUMENTS - 1);
        check_same_bits(f->name, y, single, ARGUMENTS, f->checksum[sizeof(real) == 8]);
    }
    state = 7;
    fill_operands(&state, a, b, ARGUMENTS);
    for (int i = 0; i < ARGUMENTS; i++) {
        single[i] = call_ratio(a[i], b[i]);
    }
    y[0] = single[0];
    loop_ratio(a + 1, b + 1, y + 1, ARGUMENTS - 1);
    check_same_bits("ratio", y, single, ARGUMENTS, RATIO_CHECKSUM);
    state = 10;
    fill_powers(&state, a, b, ARGUMENTS);
    for (int i = 0; i < ARGUMENTS; i++) {
        single[i] = call_pow(a[i], b[i]);
    }
    y[0] = single[0];
    loop_pow(a + 1, b + 1, y + 1, ARGUMENTS - 1);
    check_same_bits("pow", y, single, ARGUMENTS, POWER_CHECKSUM);
    free(a);
    free(b);
    free(y);
    free(single);
}

int main(int argc, char **argv) {
#if defined(__x86_64__) && defined(__FMA__)
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
        printf("left out: this machine has no fused multiply-add\n");
        return CHECK_SKIPPED;
    }
#endif
    /* On Arm long double is computed by software, a microsecond or more a function. */
    int64_t count = sizeof(real) == 4 ? 3000000 : LDBL_MANT_DIG == 64 ? 2000000 : 200000;
    if (check_quick("most of the arguments")) {
        count /= 50;
    }
    if (argc > 1) {
        count *= atoll(argv[1]);
    }
    test_special_values();
    test_special_ratios();
    test_special_powers();
    if (HAVE_REFERENCE) {
        test_accuracy(count);
        test_ratios(count);
        test_by_parameter(count);
        test_powers(count);
    } else {
        printf("left out: the errors, for which long double is not wide enough here\n");
    }
    test_boundaries();
    test_fused(count);
    test_parts(count);
    test_reciprocals(count < 1000000 ? 101 : 1);
    test_same_bits();
    return check_finish();
}
