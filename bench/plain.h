/*
 * The plain loops that a user would write instead of calling onepass, and calls of the library, each many times in a
 * loop, so that both are timed alike. python/onepass/bench/plain.py calls them and has the same struct.
 */
#ifndef ONEPASS_BENCH_PLAIN_H
#define ONEPASS_BENCH_PLAIN_H

#include <stdint.h>

typedef enum plain_job {
    PLAIN_FORWARD,
    PLAIN_BACKWARD,
    PLAIN_BOTH,
    PLAIN_NESTED, /* forward, over any strides */
    PLAIN_READ,   /* what the memory can do: adds up one array or two, ... */
    PLAIN_WRITE   /* ... or copies one, or adds two into a third */
} plain_job;

/* Two operands of float, as four nested loops see them; the outer dimensions beyond ndim have size 1. */
typedef struct plain_work {
    const char *loss;
    int32_t job;   /* plain_job */
    int32_t tuned; /* by the loops compiled with the flags of one who looks at the machine code */
    int32_t threads;
    int32_t ndim;
    int64_t shape[4];
    int64_t strides[2][4];
    const float *operand[2];
    float *gradient;
    float parameter; /* beta, margin, or whatever the loss has; losses without one ignore it */
    float value;     /* the mean of onepass, the sum of the plain loops, which have no order and no accuracy */
} plain_work;

/* Null, or what is wrong. */
const char *plain_repeat(plain_work *work, int64_t calls);
const char *onepass_repeat(plain_work *work, int64_t calls);

/* The loops of one loss. */
typedef struct plain_loss {
    const char *name;
    float (*forward)(int64_t count, const float *prediction, const float *target, float parameter, int threads);
    void (*backward)(int64_t count, const float *prediction, const float *target, float parameter, float scale,
                     float *gradient, int threads);
    float (*both)(int64_t count, const float *prediction, const float *target, float parameter, float scale,
                  float *gradient, int threads);
    float (*nested)(const plain_work *work);
} plain_loss;

/* Null if there are none for a loss of this name. */
typedef const plain_loss *plain_loss_finder(const char *name);
plain_loss_finder plain_loss_named, plain_tuned_loss_named;
plain_loss_finder plain_avx2_loss_named, plain_tuned_avx2_loss_named; /* where PLAIN_HAS_AVX2 */

/* The least work over one, two and three arrays; b may be null. */
float plain_read(int64_t count, const float *a, const float *b, int threads);
void plain_write(int64_t count, const float *a, const float *b, float *out, int threads);

#endif
