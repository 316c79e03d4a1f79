/* What `onepass LOSS PREDICTION TARGET` is to do, once its files are open, and the two ways to do it. */
#ifndef ONEPASS_CLI_TASK_H
#define ONEPASS_CLI_TASK_H

#include "number.h"
#include "part_file.h"

/* The inputs: the operands, as a call counts them, and then ... */
enum {
    WEIGHT = ONEPASS_MAX_OPERANDS,
    MASK,
    INPUTS
};

/* The outputs: the operands' gradients, and then those of each element or row. */
enum {
    LOSSES = ONEPASS_MAX_OPERANDS,
    LOG_SUM_EXP,
    PREDICTED,
    OUTPUTS
};

typedef struct task {
    const onepass_loss_info *loss;
    onepass_call call;      /* the loss, its parameters, the reduction, the threads, the device; no tensors yet */
    input input[INPUTS];    /* a file of -1: there is none */
    output output[OUTPUTS]; /* a name of null: not wanted */
    onepass_shape common;   /* of the elements or, of a loss over rows or of vectors, of the rows */
    onepass_shape full;     /* of the gradients: the same, with the classes or the vectors' elements */
    int32_t axis;           /* the dimension of the classes, or the first one of a vector, from 0 on */
    int64_t classes;        /* of a row; or elements of a vector */
    int32_t value_dtype;    /* of the answer and of the elements' losses */

    part part;                 /* that is to be computed, for ... */
    output state;              /* ... its state; a name of null: all is computed */
    onepass_shape part_common; /* of the part's outputs: its elements or rows, one behind the other, ... */
    onepass_shape part_full;   /* ... and with the classes or the vectors' elements behind them */

    number value;   /* the answer, unless the reduction is none */
    uint64_t bytes; /* that the files moved */
} task;

bool task_has(const task *task, int input);
bool task_wants(const task *task, int output);
bool task_wants_gradient(const task *task); /* of any operand */
bool task_has_labels(const task *task);     /* its target has class indices */
bool task_has_class_weight(const task *task);

/* Whether weights, a mask or what labels count for have to be added up before the gradients, which are divided by their
 * sum. */
bool task_sums_first(const task *task);

/* float or double, as the library will compute. */
int32_t compute_dtype(const task *task);

/* The type of an output: a gradient has its operand's. */
int32_t output_dtype(const task *task, int output);
const onepass_shape *output_shape(const task *task, int output);

/* Bytes of an input's or an output's elements. */
uint64_t input_bytes(const task *task, int input);
uint64_t output_bytes(const task *task, int output);

/* Points a call to those of the tensors that there are, and to the gradients that are wanted. */
void point_call(const task *task, const onepass_tensor input[INPUTS], const onepass_tensor output[OUTPUTS],
                onepass_call *call);

/* Both leave the value in the task and the outputs written, but without their names. Where the tool was asked to stop
 * they return FAILED without a word. */
int compute_on_cpu(task *task);
int compute_on_gpu(task *task);

/* Threads that the CPU is to use: the task's, or as many as there are. */
int task_threads(const task *task);

#endif
