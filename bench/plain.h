/*
 * The plain loops that a user would write instead of calling onepass, and the
 * same formulas in double precision to check against.
 *
 * This is the only place in C of bench/ that knows a formula. A loss that has none here
 * is left out of the benchmark; giving it one costs three small functions, an include and an entry of the table in
 * plain.c.
 */
#ifndef ONEPASS_BENCH_PLAIN_H
#define ONEPASS_BENCH_PLAIN_H

#include <stdint.h>

/* Two operands of float as four nested loops see them; unused outer dimensions have size 1. */
typedef struct plain_nest {
    int64_t shape[4];
    const float *prediction;
    int64_t prediction_stride[4];
    const float *target;
    int64_t target_stride[4];
} plain_nest;

/* `parameter` is beta, margin, or whatever the loss has; losses without one ignore it. */
typedef struct plain_loss {
    const char *name;

    /* Float loops: no order of summation, no accuracy. All but `serial` run on `threads` threads. */
    float (*serial)(int64_t count, const float *prediction, const float *target, float parameter);
    float (*forward)(int64_t count, const float *prediction, const float *target, float parameter, int threads);
    void (*backward)(int64_t count, const float *prediction, const float *target, float parameter, float scale,
                     float *gradient, int threads);
    float (*both)(int64_t count, const float *prediction, const float *target, float parameter, float scale,
                  float *gradient, int threads);
    float (*nested)(const plain_nest *nest, float parameter, int threads);

    /* Double loops: the sum of the float terms, and the largest error of a gradient in ulp. */
    double (*sum_of_terms)(int64_t count, const float *prediction, const float *target, float parameter, int threads);
    double (*gradient_error)(int64_t count, const float *prediction, const float *target, float parameter, double scale,
                             const float *gradient, int threads);
} plain_loss;

/* Null if there are no plain loops for a loss of this name. The first compiled as a
 * user would; the second with the flags that a user who looks at the machine code
 * might add, and right to the last bit, so that it also serves to check against. */
const plain_loss *plain_loss_named(const char *name);
const plain_loss *plain_tuned_loss_named(const char *name);

/* The distance of a float from an exact result, in units of the exact result's last place. */
double plain_ulps(float found, double exact);

/* What the memory can do: the least work over one, two and three arrays. */
float plain_read_one(int64_t count, const float *a, int threads);
float plain_read_two(int64_t count, const float *a, const float *b, int threads);
void plain_read_two_write_one(int64_t count, const float *a, const float *b, float *out, int threads);
void plain_copy(int64_t count, const float *a, float *out, int threads);

#endif
