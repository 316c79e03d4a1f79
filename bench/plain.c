/*
 * The plain loops. This file is compiled by itself, several times: as a user would compile it, with -O3 and every
 * instruction of this machine (plain_loss_named), and with -fno-trapping-math, which lets gcc vectorise smooth_l1 and
 * which few users know (plain_tuned_loss_named); on x86 both once more without AVX-512. PLAIN_LOSS_NAMED is the name.
 */
#include "plain.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* ------------------------------------------------------------- formulas -- */

/* Of each loss: the term, and its slope in the prediction. */

static inline float mse_term(float p, float t, float unused) {
    (void)unused;
    float x = p - t;
    return x * x;
}

static inline float mse_slope(float p, float t, float unused) {
    (void)unused;
    return 2 * (p - t);
}

static inline float smooth_l1_term(float p, float t, float beta) {
    float a = fabsf(p - t);
    return a < beta ? 0.5f * a * a / beta : a - 0.5f * beta;
}

static inline float smooth_l1_slope(float p, float t, float beta) {
    float x = p - t;
    return fabsf(x) < beta ? x / beta : copysignf(1, x);
}

static inline float hinge_term(float p, float t, float margin) {
    float h = margin - p * t;
    return h > 0 ? h : 0;
}

static inline float hinge_slope(float p, float t, float margin) {
    return margin - p * t >= 0 ? -t : 0;
}

/* ---------------------------------------------------------------- loops -- */

#define LOSS mse
#include "plain_loops.h"
#undef LOSS

#define LOSS smooth_l1
#include "plain_loops.h"
#undef LOSS

#define LOSS hinge
#include "plain_loops.h"
#undef LOSS

#define LOOPS(loss) #loss, loss##_forward, loss##_backward, loss##_both, loss##_nested
static const plain_loss losses[] = {{LOOPS(mse)}, {LOOPS(smooth_l1)}, {LOOPS(hinge)}};

const plain_loss *PLAIN_LOSS_NAMED(const char *name) {
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
        if (!strcmp(losses[i].name, name))
            return &losses[i];
    return NULL;
}

/* --------------------------------------------------------------- memory -- */

#if defined(PLAIN_MEMORY)
static float read_one(int64_t count, const float *a, int threads) {
    float s = 0;
#pragma omp parallel for simd reduction(+ : s) num_threads(threads)
    for (int64_t i = 0; i < count; i++)
        s += a[i];
    return s;
}

float plain_read(int64_t count, const float *a, const float *b, int threads) {
    if (!b)
        return read_one(count, a, threads);
    float s = 0;
#pragma omp parallel for simd reduction(+ : s) num_threads(threads)
    for (int64_t i = 0; i < count; i++)
        s += a[i] + b[i];
    return s;
}

void plain_write(int64_t count, const float *a, const float *b, float *out, int threads) {
    if (!b)
        b = a; /* which is in the cache by then */
#pragma omp parallel for simd num_threads(threads)
    for (int64_t i = 0; i < count; i++)
        out[i] = a[i] + b[i];
}
#endif
