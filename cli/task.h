/* What `onepass LOSS PREDICTIONS TARGETS` is to do, once its files are open, and the two ways to do it. */
#ifndef ONEPASS_CLI_TASK_H
#define ONEPASS_CLI_TASK_H

#include "number.h"
#include "output.h"

enum {
    PREDICTIONS,
    TARGETS,
    WEIGHTS,
    INPUTS
};

typedef struct task {
    onepass_call call;   /* the loss, its parameters, the reduction, the threads, the device; no tensors yet */
    input input[INPUTS]; /* a file of -1: no weights */
    extents common;
    output gradient, losses; /* a name of null: not wanted */
    int32_t gradient_dtype, value_dtype;

    number value;   /* the answer, unless the reduction is none */
    uint64_t bytes; /* that the files moved */
} task;

/* Whether there are weights. */
bool task_is_weighted(const task *task);

/* Whether the sum of the weights has to be known before the gradient. */
bool task_sums_weights(const task *task);

/* Bytes of an input's elements. */
uint64_t input_bytes(const input *input);

/* Both leave the value in the task and the outputs written, but without their names. Where the tool was asked to stop
 * they return FAILED without a word. */
int compute_on_cpu(task *task);
int compute_on_gpu(task *task);

/* Threads that the CPU is to use: the task's, or as many as there are. */
int task_threads(const task *task);

#endif
