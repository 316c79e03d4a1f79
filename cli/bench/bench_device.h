/* What `onepass bench` needs of a device, CPU or GPU: memory, numbers in it, and the time of a few losses beside the
 * limit of the device's memory. And what both of them share. */
#ifndef ONEPASS_CLI_BENCH_DEVICE_H
#define ONEPASS_CLI_BENCH_DEVICE_H

#include "layout.h" /* problem, the types' names and sizes */

enum {
    BENCH_ARRAYS = 3, /* prediction, target, gradient */
    BENCH_MOST_LOSSES = 32,
    BENCH_PADDING = 256 /* bytes that each array has beyond its numbers, for limits that read whole steps */
};

typedef enum bench_mode {
    BENCH_FORWARD, /* the value */
    BENCH_BOTH,    /* and the gradient for the prediction */
    BENCH_MODES
} bench_mode;

/* Some losses with the same bytes to move, which take turns with the limit of those bytes. */
typedef struct bench_group {
    int32_t dtype;
    bench_mode mode;
    int64_t count;
    const char *loss[BENCH_MOST_LOSSES];
    int losses;
} bench_group;

typedef struct bench_device {
    const char *limit; /* in words: what it is, and that it does nothing else */

    bool (*open)(int index, int32_t threads, problem *problem);
    const char *(*name)(void);
    size_t (*free_memory)(void);

    /* `arrays` of them, of `bytes` each and the padding. */
    bool (*allocate)(int arrays, size_t bytes, problem *problem);

    /* The prediction and the target. */
    bool (*fill)(int32_t dtype, int64_t count, problem *problem);

    /* The seconds of one call, of each loss and then of the limit. */
    bool (*measure)(const bench_group *group, double *seconds, problem *problem);

    void (*close)(void);
} bench_device;

extern const bench_device bench_cpu, bench_gpu;

/* --------------------------------------------------------- what they share -- */

const char *bench_mode_name(bench_mode mode);

/* That must move: each input read once, the gradient written once. */
double bench_bytes(int32_t dtype, bench_mode mode, int64_t count);

/* A call with the tensors that it points to: never copied. The value is in the type of the operands. */
typedef struct bench_call {
    onepass_call call;
    onepass_tensor prediction, target, gradient, value;
    int64_t shape;
} bench_call;

void bench_call_make(bench_call *made, const bench_group *group, int loss, void *const array[BENCH_ARRAYS],
                     void *value);

/* Random numbers of either sign, of magnitudes in [0.25, 2), in this many elements, which are repeated. */
enum {
    BENCH_PERIOD = 1 << 16
};
void bench_numbers(void *numbers, int32_t dtype, uint64_t seed);

#endif
