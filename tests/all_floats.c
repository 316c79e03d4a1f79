/*
 * Every float there is, through each float function of src/math/elementary.h, on all cores: the largest error and
 * where, and how often a function steps back where it should rise. The reference is libm in double. Takes minutes, so
 * `make test` does not run it; ends with 1 if an error is larger than 1 unit in the last place, 2 for softplus or 3 for
 * quick_sigmoid.
 *
 *     all_floats [FUNCTION...]     exp log log1p tanh sigmoid softplus quick_sigmoid
 */
#define _POSIX_C_SOURCE 200809L
#include "math/real.h"
#include "math/elementary.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

static double exact_sigmoid(double x) {
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

static double exact_softplus(double x) {
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* Of two arguments; one power, which Tweedie's deviance may have, stands for all. */
#define EXPONENT 0.7f

static float real_power(float x) {
    return real_pow(x, EXPONENT);
}

static double exact_power(double x) {
    return pow(x < 0 ? NAN : x, (double)EXPONENT);
}

#define LOOP(name)                                                                                                     \
    static void loop_##name(const float *x, float *y, int64_t count) {                                                 \
        _Pragma("omp simd") for (int64_t i = 0; i < count; i++) y[i] = real_##name(x[i]);                              \
    }
LOOP(exp)
LOOP(expm1)
LOOP(log)
LOOP(log1p)
LOOP(tanh)
LOOP(sigmoid)
LOOP(softplus)
LOOP(quick_sigmoid)
LOOP(power)

static const struct function {
    const char *name;
    void (*loop)(const float *x, float *y, int64_t count);
    double (*exact)(double x);
    int limit; /* of the error, in units in the last place */
} functions[] = {
    {"exp", loop_exp, exp, 1},
    {"expm1", loop_expm1, expm1, 2},
    {"log", loop_log, log, 1},
    {"log1p", loop_log1p, log1p, 1},
    {"tanh", loop_tanh, tanh, 1},
    {"sigmoid", loop_sigmoid, exact_sigmoid, 1},
    {"softplus", loop_softplus, exact_softplus, 2},
    {"quick_sigmoid", loop_quick_sigmoid, exact_sigmoid, 3},
    {"power", loop_power, exact_power, 1},
};

enum {
    FUNCTIONS = sizeof functions / sizeof functions[0],
    BLOCK = 4096,    /* arguments of one call of the loop */
    CHUNK = 1 << 22, /* arguments of one turn of a thread */
    CHUNKS = 1024
};

typedef struct result {
    double error; /* the largest, in units in the last place */
    float at;
    int64_t back; /* neighbours whose results are in the wrong order */
} result;

/* Infinite where only one of the two is a number. */
static double error_in_ulp(float got, double exact) {
    const float nearest = (float)exact;
    if (isnan(exact) || isnan(got)) {
        return isnan(exact) && isnan(got) ? 0 : (double)INFINITY;
    }
    if (isinf(nearest) || isinf(got)) {
        return got == nearest ? 0 : (double)INFINITY;
    }
    /* Two to the exponent of the exact result, 2^-126 at least, 23 digits lower; all of it is exact. */
    uint64_t bits;
    const double size = fabs(exact) < 0x1p-126 ? 0x1p-126 : fabs(exact);
    memcpy(&bits, &size, sizeof bits);
    bits &= UINT64_C(0x7ff0000000000000);
    double power;
    memcpy(&power, &bits, sizeof power);
    return fabs((double)got - exact) / (power * 0x1p-23);
}

/* Arguments in the order of their bits: upwards if positive, downwards if negative. */
static void try_chunk(const struct function *f, uint32_t first, result *result) {
    float x[BLOCK], y[BLOCK];
    for (uint32_t start = first; start - first < CHUNK; start += BLOCK) {
        for (uint32_t i = 0; i < BLOCK; i++) {
            x[i] = real_of(start + i);
        }
        f->loop(x, y, BLOCK);
        for (int i = 0; i < BLOCK; i++) {
            const double error = error_in_ulp(y[i], f->exact((double)x[i]));
            if (error > result->error) {
                result->error = error;
                result->at = x[i];
            }
            result->back += i > 0 && (start >> 31 ? y[i] > y[i - 1] : y[i] < y[i - 1]);
        }
    }
}

static result try_all(const struct function *f) {
    result all = {0, 0, 0};
    int done = 0;
    const int show = isatty(STDERR_FILENO);
#pragma omp parallel for schedule(dynamic)
    for (int chunk = 0; chunk < CHUNKS; chunk++) {
        result one = {0, 0, 0};
        try_chunk(f, (uint32_t)chunk * CHUNK, &one);
#pragma omp critical
        {
            /* The first of equal errors, whichever thread found it first. */
            if (one.error > all.error || (one.error == all.error && bits_of(one.at) < bits_of(all.at))) {
                all.error = one.error;
                all.at = one.at;
            }
            all.back += one.back;
            done++;
            if (show) {
                fprintf(stderr, "\r%-13s %3d %%", f->name, done * 100 / CHUNKS);
            }
        }
    }
    if (show) {
        fprintf(stderr, "\r%20s\r", "");
    }
    return all;
}

static int wanted(const char *name, int argc, char **argv) {
    int found = argc < 2;
    for (int i = 1; i < argc; i++) {
        found |= strcmp(argv[i], name) == 0;
    }
    return found;
}

int main(int argc, char **argv) {
    int status = 0, asked = 0;
    for (int k = 0; k < FUNCTIONS; k++) {
        if (wanted(functions[k].name, argc, argv)) {
            const result r = try_all(&functions[k]);
            printf("%-13s  at most %.4f ulp, at %a; %lld steps back\n", functions[k].name, r.error, (double)r.at,
                   (long long)r.back);
            fflush(stdout);
            status |= !(r.error <= functions[k].limit);
            asked++;
        }
    }
    if (!asked) {
        fprintf(stderr, "all_floats: expected names of functions: exp expm1 log log1p tanh sigmoid softplus "
                        "quick_sigmoid power\n");
        return 2;
    }
    return status;
}
