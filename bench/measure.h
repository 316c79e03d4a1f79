/*
 * How things are measured here: two works in turn, A B A B, and the median of each,
 * so that whatever else the machine does meets both alike. And the arrays that
 * the works run on.
 */
#ifndef ONEPASS_BENCH_MEASURE_H
#define ONEPASS_BENCH_MEASURE_H

#include <stddef.h>
#include <stdint.h>

typedef struct work {
    void (*run)(void *state);
    void *state;
} work;

/* Median seconds. */
typedef struct pair {
    double ours;
    double beside;
} pair;

double seconds_now(void);

/* Runs each once to warm up, then both in turn. At most 99 repetitions. */
pair measure_pair(work ours, work beside, int repetitions);

/* Page-aligned memory; ends the program with a sentence if there is none. */
void *allocate(size_t bytes);

/* Random numbers, uniform in [low, high) and a function of seed and index alone. The threads that
 * fill an array are the threads that read it later, so that its pages are near them. */
void fill_f32(float *array, int64_t count, uint64_t seed, float low, float high);

/* The same in bf16 and f16, of random sign and with magnitudes in [0.25, 2). */
void fill_bf16(uint16_t *array, int64_t count, uint64_t seed);
void fill_f16(uint16_t *array, int64_t count, uint64_t seed);

#endif
