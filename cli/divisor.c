/* What the gradients of a weighted or masked mean are divided by. They need it from the first piece on, so the weights
 * and the mask are read beforehand. */
#include "divisor.h"
#include "stop.h"
#include "tool.h"

#include <math.h>

static int32_t compute_type(const task *task) {
    for (int k = 0; k < INPUTS; k++)
        if (task_has(task, k) && task->input[k].layout.dtype == ONEPASS_F64)
            return ONEPASS_F64;
    return ONEPASS_F32;
}

/* A number at every index of a piece, in the type that the loss itself is computed in. */
static onepass_tensor same_everywhere(int number, int32_t compute, const onepass_shape *piece) {
    static const double f64[] = {0, 1};
    static const float f32[] = {0, 1};
    static const int64_t strides[ONEPASS_MAX_DIMENSIONS] = {0};
    const void *data = compute == ONEPASS_F64 ? (const void *)(f64 + number) : f32 + number;
    onepass_tensor tensor = piece_tensor(data, compute, piece);
    tensor.strides = strides;
    return tensor;
}

/* Adds up a piece in the library's order: its weights, or its elements, are the losses of predictions that are off
 * by 1. The mask has its usual say. */
static int add_piece(pass *pass, onepass_accumulator *accumulator, const onepass_call *call, bool with_weights,
                     int64_t first, const onepass_shape *piece) {
    const task *task = pass->task;
    const onepass_tensor one = same_everywhere(1, compute_type(task), piece);
    const onepass_tensor zero = same_everywhere(0, compute_type(task), piece);
    onepass_tensor taken[INPUTS];
    onepass_call slice = *call;
    for (int k = WEIGHT; k <= MASK; k++) {
        if (!task_has(task, k) || (k == WEIGHT && !with_weights))
            continue;
        if (!source_take(&pass->source[k], first, piece, &pass->pieces, task_threads(task), &taken[k]))
            return FAILED;
        *(k == WEIGHT ? &slice.weight : &slice.mask) = &taken[k];
        step_forward(pass, (uint64_t)piece->count * onepass_dtype_size(taken[k].dtype));
    }
    slice.operand[ONEPASS_PREDICTION] = &one;
    slice.operand[ONEPASS_TARGET] = &zero;
    const onepass_status status = onepass_accumulator_add(accumulator, &slice, first);
    return status == ONEPASS_OK ? RIGHT : complain_of_library(status);
}

/* The weights, or without them the number, of the elements that take part. */
static int add_up(pass *pass, bool with_weights, double *sum) {
    const onepass_call call = {
        .size = sizeof call, .loss = "mse", .reduction = ONEPASS_SUM, .threads = pass->call.threads};
    const onepass_tensor value = {.data = sum, .dtype = ONEPASS_F64};
    onepass_accumulator *accumulator = NULL;
    onepass_shape piece;
    int result = RIGHT;
    onepass_status status = onepass_accumulator_begin(&accumulator, &call, pass->task->common.count);
    if (status != ONEPASS_OK)
        return complain_of_library(status);
    for (int64_t first = 0; result == RIGHT && next_piece(pass, first, &piece); first += piece.count)
        result = stop_wanted() ? FAILED : add_piece(pass, accumulator, &call, with_weights, first, &piece);
    if (result == RIGHT)
        status = onepass_accumulator_finish(accumulator, &value);
    onepass_accumulator_destroy(accumulator);
    return status == ONEPASS_OK ? result : complain_of_library(status);
}

static int complain_of_weights(const task *task, double sum) {
    return complain(WRONG,
                    "%s: its weights%s sum to %g; the gradient of a weighted mean is divided by their sum, so expected "
                    "a positive, finite one",
                    task->input[WEIGHT].path, task_has(task, MASK) ? " of the elements that take part" : "", sum);
}

int find_divisor(pass *pass) {
    const task *task = pass->task;
    double sum, count;
    if (!task_sums_first(task))
        return RIGHT;
    int status = add_up(pass, true, &sum);
    if (status != RIGHT)
        return status;
    count = sum;
    if (sum == 0 && task_has(task, WEIGHT) && task_has(task, MASK))
        status = add_up(pass, false, &count); /* weights of 0, or none at all? */
    if (status != RIGHT)
        return status;
    pass->nothing_takes_part = count == 0 && task_has(task, MASK);
    if (pass->nothing_takes_part) {
        pass->call.reduction = ONEPASS_SUM; /* the gradients are zeros, whatever they are divided by */
        return RIGHT;
    }
    if (!(sum > 0 && isfinite(sum)))
        return complain_of_weights(task, sum);
    pass->call.divisor = sum;
    return RIGHT;
}
