/* What the gradients of a mean are divided by, where weights, a mask or labels have a say. They need it from the first
 * piece on, so these are read beforehand. */
#include "divisor.h"
#include "rows.h"
#include "stop.h"
#include "tool.h"

#include <math.h>
#include <string.h>

/* A number at every index of a piece, in the type that the loss itself is computed in. */
static onepass_tensor same_everywhere(int number, int32_t compute, const onepass_shape *piece) {
    static const double f64[] = {-1, 0, 1};
    static const float f32[] = {-1, 0, 1};
    static const int64_t strides[ONEPASS_MAX_DIMENSIONS] = {0};
    const void *data = compute == ONEPASS_F64 ? (const void *)(f64 + 1 + number) : f32 + 1 + number;
    onepass_tensor tensor = piece_tensor(data, compute, piece);
    tensor.strides = strides;
    return tensor;
}

/* Adds up a piece in the library's order: its weights, or its elements, are the losses of predictions that are off
 * by 1. The mask has its usual say. */
static int add_elements(pass *pass, onepass_accumulator *accumulator, const onepass_call *call, bool with_weights,
                        int64_t first, const onepass_shape *piece) {
    const task *task = pass->task;
    const onepass_tensor one = same_everywhere(1, compute_dtype(task), piece);
    const onepass_tensor zero = same_everywhere(0, compute_dtype(task), piece);
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

/* The same of rows with labels: what they count for is their loss where every log-probability is -1. */
static int add_labels(pass *pass, onepass_accumulator *accumulator, const onepass_call *call, bool with_weights,
                      int64_t first, const onepass_shape *piece) {
    const task *task = pass->task;
    const onepass_shape block = {2, {piece->count, task->classes}, piece->count * task->classes};
    const onepass_shape classes = {1, {task->classes}, task->classes};
    const onepass_tensor minus_one = same_everywhere(-1, compute_dtype(task), &block);
    onepass_tensor taken[INPUTS];
    onepass_call slice = *call;
    for (int k = ONEPASS_TARGET; k < INPUTS; k++) {
        const bool is_weight = k == WEIGHT || k == ONEPASS_CLASS_WEIGHT;
        if (!task_has(task, k) || (is_weight && !with_weights))
            continue;
        if (!take_rows(pass, k, first, k == ONEPASS_CLASS_WEIGHT ? &classes : piece, &taken[k]))
            return FAILED;
        *(k == WEIGHT ? &slice.weight : k == MASK ? &slice.mask : &slice.operand[k]) = &taken[k];
        if (k != ONEPASS_CLASS_WEIGHT)
            step_forward(pass, (uint64_t)piece->count * onepass_dtype_size(taken[k].dtype));
    }
    slice.operand[ONEPASS_PREDICTION] = &minus_one;
    const onepass_status status = onepass_accumulator_add(accumulator, &slice, first);
    return status == ONEPASS_OK ? RIGHT : complain_of_rows(task, status);
}

static onepass_call counting_call(const task *task) {
    onepass_call call = {.size = sizeof call, .loss = "mse", .reduction = ONEPASS_SUM, .threads = task->call.threads};
    if (!task_has_labels(task))
        return call;
    call.loss = "nll";
    call.parameter_count = 1; /* ignore_index */
    for (int32_t i = 0; i < task->loss->parameter_count; i++)
        if (strcmp(task->loss->parameter[i].name, "ignore_index") == 0)
            call.parameter[0] = task->call.parameter[i];
    return call;
}

/* The weights, or without them the number, of the elements that take part. */
static int add_up(pass *pass, bool with_weights, double *sum) {
    const onepass_call call = counting_call(pass->task);
    const bool has_labels = task_has_labels(pass->task);
    const onepass_tensor value = {.data = sum, .dtype = ONEPASS_F64};
    onepass_accumulator *accumulator = NULL;
    onepass_shape piece;
    int result = RIGHT;
    onepass_status status = onepass_accumulator_begin(&accumulator, &call, pass->task->common.count);
    if (status != ONEPASS_OK)
        return complain_of_library(status);
    for (int64_t first = 0; result == RIGHT && next_piece(pass, first, &piece); first += piece.count)
        result = stop_wanted() ? FAILED
                 : has_labels  ? add_labels(pass, accumulator, &call, with_weights, first, &piece)
                               : add_elements(pass, accumulator, &call, with_weights, first, &piece);
    if (result == RIGHT)
        status = onepass_accumulator_finish(accumulator, &value);
    onepass_accumulator_destroy(accumulator);
    return status == ONEPASS_OK ? result : complain_of_library(status);
}

static int complain_of_weights(const task *task, double sum) {
    if (task_has_labels(task))
        return complain(WRONG,
                        "%s: the weights of the rows that take part sum to %g; the gradient of a mean is divided by "
                        "their sum, so expected a positive, finite one",
                        task->input[task_has(task, WEIGHT) ? WEIGHT : ONEPASS_CLASS_WEIGHT].path, sum);
    return complain(WRONG,
                    "%s: its weights%s sum to %g; the gradient of a weighted mean is divided by their sum, so expected "
                    "a positive, finite one",
                    task->input[WEIGHT].path, task_has(task, MASK) ? " of the elements that take part" : "", sum);
}

/* Whether there are weights that may sum to 0 though elements take part. */
static bool has_weights(const task *task) {
    return task_has(task, WEIGHT) || task_has_class_weight(task);
}

int check_labels(task *task) {
    pass pass = {.task = task, .end = task->common.count, .pieces = {.elements = (int64_t)1 << 20}};
    double sum;
    int status =
        open_row_numbers(&pass, task->common.count < pass.pieces.elements ? task->common.count : pass.pieces.elements);
    if (status == RIGHT)
        status = add_up(&pass, false, &sum);
    close_pass(&pass);
    return status;
}

static int find_divisor_of_whole(pass *pass) {
    const task *task = pass->task;
    double sum, count;
    if (task_has_labels(task) && task->call.reduction == ONEPASS_NONE)
        return add_up(pass, false, &sum); /* a label that is no class is then named with its row in the whole */
    if (!task_sums_first(task))
        return RIGHT;
    int status = add_up(pass, true, &sum);
    if (status != RIGHT)
        return status;
    count = sum;
    const bool can_be_none = task_has(task, MASK) || task_has_labels(task);
    if (sum == 0 && has_weights(task) && can_be_none)
        status = add_up(pass, false, &count); /* weights of 0, or none at all? */
    if (status != RIGHT)
        return status;
    pass->nothing_takes_part = count == 0 && can_be_none;
    if (pass->nothing_takes_part) {
        pass->call.reduction = ONEPASS_SUM; /* the gradients are zeros, whatever they are divided by */
        return RIGHT;
    }
    if (!(sum > 0 && isfinite(sum)))
        return complain_of_weights(task, sum);
    pass->call.divisor = sum;
    return RIGHT;
}

/* A part's gradients are divided by what the whole's are. */
int find_divisor(pass *pass) {
    const int64_t end = pass->end;
    pass->end = pass->task->common.count;
    const int status = find_divisor_of_whole(pass);
    pass->end = end;
    return status;
}
