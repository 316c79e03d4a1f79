/*
 * The plain loops. This file is compiled by itself, twice: as a user would compile
 * it, with -O3 and every instruction of this machine (plain_loss_named), and with
 * PLAIN_TUNED defined and two flags more (plain_tuned_loss_named).
 * -fno-trapping-math lets gcc vectorise smooth_l1, which few users know; and the
 * checks need -ffp-contract=off, to see the terms as the losses round them.
 */
#include "plain.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------- formulas -- */

/* Of each loss: the float term, its float slope in the prediction, and that slope in
 * double. Where a slope jumps by more than a rounding, all three decide on the float that the loss sees. */

static inline float mse_term(float p, float t, float unused) {
    (void)unused;
    float x = p - t;
    return x * x;
}

static inline float mse_slope(float p, float t, float unused) {
    (void)unused;
    return 2 * (p - t);
}

static inline double mse_exact_slope(float p, float t, float unused) {
    (void)unused;
    return 2 * ((double)p - t);
}

static inline float smooth_l1_term(float p, float t, float beta) {
    float a = fabsf(p - t);
    return a < beta ? 0.5f * a * a / beta : a - 0.5f * beta;
}

static inline float smooth_l1_slope(float p, float t, float beta) {
    float x = p - t;
    return fabsf(x) < beta ? x / beta : copysignf(1, x);
}

static inline double smooth_l1_exact_slope(float p, float t, float beta) {
    double x = (double)p - t;
    return fabs(x) < beta ? x / beta : copysign(1, x);
}

static inline float hinge_term(float p, float t, float margin) {
    float h = margin - p * t;
    return h > 0 ? h : 0;
}

static inline float hinge_slope(float p, float t, float margin) {
    return margin - p * t >= 0 ? -t : 0;
}

static inline double hinge_exact_slope(float p, float t, float margin) {
    return margin - p * t >= 0 ? -(double)t : 0;
}

/* ---------------------------------------------------------------- loops -- */

static inline double ulps_between(float found, double exact) {
    int exponent = -149;
    if (exact != 0)
        frexp(exact, &exponent);
    return fabs(found - exact) * ldexp(1, exponent - 24 > -149 ? 24 - exponent : 149);
}

#define LOSS mse
#include "plain_loops.h"
#undef LOSS

#define LOSS smooth_l1
#include "plain_loops.h"
#undef LOSS

#define LOSS hinge
#include "plain_loops.h"
#undef LOSS

/* clang-format off */
#define LOOPS(loss)                                                                                                    \
    #loss, loss##_serial, loss##_forward, loss##_backward, loss##_both, loss##_nested,                                 \
    loss##_sum_of_terms, loss##_gradient_error
/* clang-format on */

static const plain_loss losses[] = {{LOOPS(mse)}, {LOOPS(smooth_l1)}, {LOOPS(hinge)}};

#if defined(PLAIN_TUNED)
#define LOSS_NAMED plain_tuned_loss_named
#else
#define LOSS_NAMED plain_loss_named
#endif

const plain_loss *LOSS_NAMED(const char *name) {
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
        if (!strcmp(losses[i].name, name))
            return &losses[i];
    return NULL;
}

/* --------------------------------------------------------------- memory -- */

#if !defined(PLAIN_TUNED)
double plain_ulps(float found, double exact) {
    return ulps_between(found, exact);
}

float plain_read_one(int64_t count, const float *a, int threads) {
    float s = 0;
#pragma omp parallel for simd reduction(+ : s) num_threads(threads)
    for (int64_t i = 0; i < count; i++)
        s += a[i];
    return s;
}

float plain_read_two(int64_t count, const float *a, const float *b, int threads) {
    float s = 0;
#pragma omp parallel for simd reduction(+ : s) num_threads(threads)
    for (int64_t i = 0; i < count; i++)
        s += a[i] + b[i];
    return s;
}

void plain_read_two_write_one(int64_t count, const float *a, const float *b, float *out, int threads) {
#pragma omp parallel for simd num_threads(threads)
    for (int64_t i = 0; i < count; i++)
        out[i] = a[i] + b[i];
}

void plain_copy(int64_t count, const float *a, float *out, int threads) {
#pragma omp parallel for simd num_threads(threads)
    for (int64_t i = 0; i < count; i++)
        out[i] = a[i];
}
#endif
