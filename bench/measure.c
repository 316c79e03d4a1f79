/* The clock, the medians and the arrays: see measure.h. */
#define _POSIX_C_SOURCE 200809L
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    MOST_REPETITIONS = 99,
    PAGE = 4096
};

double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double timed(work work) {
    double begin = seconds_now();
    work.run(work.state);
    return seconds_now() - begin;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return 0.5 * (values[(count - 1) / 2] + values[count / 2]);
}

pair measure_pair(work ours, work beside, int repetitions) {
    double ours_seconds[MOST_REPETITIONS], beside_seconds[MOST_REPETITIONS];
    int count = repetitions < MOST_REPETITIONS ? repetitions : MOST_REPETITIONS;
    timed(ours);
    timed(beside);
    for (int i = 0; i < count; i++) {
        ours_seconds[i] = timed(ours);
        beside_seconds[i] = timed(beside);
    }
    return (pair){median(ours_seconds, count), median(beside_seconds, count)};
}

void *allocate(size_t bytes) {
    void *memory = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
    if (!memory) {
        fprintf(stderr, "There are no %.1f GB of memory free for an array.\n", 1e-9 * (double)bytes);
        exit(EXIT_FAILURE);
    }
    return memory;
}

/* splitmix64: a good hash of a counter, so that any thread can make any element. */
static uint64_t random_bits(uint64_t seed, int64_t index) {
    uint64_t z = seed * 0xd1342543de82ef95u + ((uint64_t)index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Made in double: floats on a grid of 2^-24 would have exact differences and sums, and hide errors. */
void fill_f32(float *array, int64_t count, uint64_t seed, float low, float high) {
#pragma omp parallel for
    for (int64_t i = 0; i < count; i++)
        array[i] = (float)(low + ((double)high - low) * ((double)(random_bits(seed, i) >> 11) * 0x1p-53));
}

/* A 16-bit float from random bits: sign, mantissa, and one of three exponents below that of 2. */
static uint16_t random_16_bit_float(uint64_t bits, int mantissa_bits, int exponent_of_one) {
    uint64_t sign = bits & 1, exponent = (uint64_t)exponent_of_one - (bits >> 1) % 3, mantissa = bits >> 40;
    return (uint16_t)(sign << 15 | exponent << mantissa_bits | (mantissa & ((1u << mantissa_bits) - 1)));
}

void fill_bf16(uint16_t *array, int64_t count, uint64_t seed) {
#pragma omp parallel for
    for (int64_t i = 0; i < count; i++)
        array[i] = random_16_bit_float(random_bits(seed, i), 7, 127);
}

void fill_f16(uint16_t *array, int64_t count, uint64_t seed) {
#pragma omp parallel for
    for (int64_t i = 0; i < count; i++)
        array[i] = random_16_bit_float(random_bits(seed, i), 10, 15);
}
