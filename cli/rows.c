/*
 * Slices of rows, which are seen through a window of the file; gradients, which need memory, are computed for fewer
 * rows at a time. Where the classes of a row do not lie next to each other, rows are copied together, 1024 or more at a
 * time, since fewer would have the same pages read again and again; but a gradient of that layout cannot be written row
 * by row, so all of it is one piece then. Elements of vectors are to all this what classes are; they always come last,
 * and vectors that are broadcast are copied.
 */
#include "rows.h"
#include "operands.h"
#include "tool.h"

#include <stdlib.h>

/* Of the files for a slice, and of a gradient's part of it. */
#define SLICE_BYTES    ((int64_t)64 << 20)
#define GRADIENT_BYTES ((int64_t)32 << 20)

/* ----------------------------------------------------------------- opening -- */

/* Whether an input has a number for each class of each row, or for each element of each vector. */
static bool is_wide(const task *task, int input) {
    if (count_vectors(task->loss) > 0)
        return input < count_vectors(task->loss) || (input == ONEPASS_TARGET && has_label_lists(task->loss));
    return input == ONEPASS_PREDICTION || (input == ONEPASS_TARGET && !task_has_labels(task));
}

static bool is_class_weight(const task *task, int input) {
    return input == ONEPASS_CLASS_WEIGHT && takes_class_weight(task->loss);
}

int64_t numbers_of_a_row(const task *task, int input) {
    return is_class_weight(task, input) ? 0 : is_wide(task, input) ? task->classes : 1;
}

uint64_t bytes_of_a_row(const task *task) {
    uint64_t bytes = 0;
    for (int k = 0; k < INPUTS; k++)
        if (task_has(task, k))
            bytes += onepass_dtype_size(task->input[k].layout.dtype) * (uint64_t)numbers_of_a_row(task, k);
    for (int k = 0; k < OUTPUTS; k++)
        if (task_wants(task, k))
            bytes += onepass_dtype_size(output_dtype(task, k)) * (k < LOSSES ? (uint64_t)task->classes : 1);
    return bytes;
}

/* Whether nothing comes behind the classes of a row; a vector is all that comes. */
static bool has_classes_last(const task *task) {
    if (count_vectors(task->loss) > 0)
        return true;
    for (int32_t d = task->axis + 1; d < task->full.ndim; d++)
        if (task->full.extent[d] != 1)
            return false;
    return true;
}

/* Whether the rows of each input that has any lie one behind the other, in the order in which they are asked for. */
static bool are_rows_in_order(const task *task) {
    const onepass_shape *full = &task->full;
    bool in_order = has_classes_last(task);
    for (int k = 0; k < INPUTS && in_order; k++) {
        if (!task_has(task, k) || !is_wide(task, k))
            continue;
        const layout *layout = &task->input[k].layout;
        int64_t step = 1;
        in_order = layout->ndim == full->ndim;
        for (int32_t d = full->ndim - 1; d >= 0 && in_order; d--) {
            in_order = layout->shape[d] == full->extent[d] && (layout->shape[d] == 1 || layout->stride[d] == step);
            step *= layout->shape[d];
        }
    }
    return in_order;
}

/* A power of two, so that a slice is one node of the order of summation, or a part of one that others make whole. */
static int64_t rows_of_a_slice(const task *task) {
    const double room = (double)SLICE_BYTES / (double)(bytes_of_a_row(task) + 1);
    int64_t rows = are_rows_in_order(task) ? 1 : ONEPASS_TILE;
    while (2 * (double)rows <= room)
        rows *= 2;
    return rows;
}

int open_row_numbers(pass *pass, int64_t rows) {
    task *task = pass->task;
    for (int k = 0; k < INPUTS; k++) {
        if (!task_has(task, k) || is_wide(task, k))
            continue;
        if (k < ONEPASS_MAX_OPERANDS) /* of its own shape */
            source_open_moved(&pass->source[k], &task->input[k], -1);
        else
            source_open(&pass->source[k], &task->input[k], &task->common);
        if (!source_prepare(&pass->source[k], is_class_weight(task, k) ? task->classes : rows))
            return FAILED;
    }
    return RIGHT;
}

static int open_classes(pass *pass, int64_t rows) {
    task *task = pass->task;
    for (int k = 0; k < INPUTS; k++) {
        if (!task_has(task, k) || !is_wide(task, k))
            continue;
        if (count_vectors(task->loss) > 0)
            source_open(&pass->source[k], &task->input[k], &task->full);
        else
            source_open_moved(&pass->source[k], &task->input[k], pass->is_whole ? -1 : task->axis);
        if (!source_prepare(&pass->source[k], rows * task->classes))
            return FAILED;
    }
    return RIGHT;
}

/* The losses of a slice are also there where nobody wants them: other outputs come with them alone. */
static int open_outputs(pass *pass, int64_t rows) {
    const task *task = pass->task;
    bool lacks = false;
    for (int k = 0; k < OUTPUTS && rows > 0; k++) {
        const int64_t count = k < LOSSES ? pass->gradient_rows * task->classes : rows;
        if (task_wants(task, k) || (k == LOSSES && task->call.reduction == ONEPASS_NONE))
            lacks |= !(pass->output[k] = malloc((size_t)count * onepass_dtype_size(output_dtype(task, k)) + 1));
    }
    if (pass->gradient_rows < rows && task->loss->has_log_sum_exp)
        lacks |= !(pass->row_state = malloc((size_t)rows * ONEPASS_ROW_STATE * sizeof *pass->row_state));
    if (lacks && pass->is_whole)
        return complain(FAILED,
                        "no memory for the outputs, which are computed in one piece unless the classes are the "
                        "last dimension of %s",
                        task->input[ONEPASS_PREDICTION].path);
    return lacks ? complain(FAILED, "no memory for a piece of the outputs") : RIGHT;
}

int open_rows(pass *pass) {
    const task *task = pass->task;
    const bool is_small = (double)bytes_of_a_row(task) * (double)task->common.count <= SLICE_BYTES;
    progress_begin(&pass->progress,
                   task->part.count ? (uint64_t)(pass->end - pass->first) * bytes_of_a_row(task) : task->bytes);
    pass->is_whole = !has_classes_last(task) && !task->part.count && (is_small || task_wants_gradient(task));
    const int64_t count = task->common.count, slice = pass->is_whole ? count : rows_of_a_slice(task);
    const int64_t rows = count < slice ? count : slice;
    pass->pieces = (pieces){.elements = slice};
    pass->gradient_rows = rows;
    if (!pass->is_whole && task_wants_gradient(task) && task->classes > 0) {
        const int64_t room = GRADIENT_BYTES / (task->classes * (int64_t)sizeof(double)) + 1;
        pass->gradient_rows = room < rows ? room : rows;
    }
    int status = open_row_numbers(pass, rows);
    if (status == RIGHT)
        status = open_classes(pass, rows);
    return status == RIGHT ? open_outputs(pass, rows) : status;
}

/* ------------------------------------------------------------------ tensors -- */

bool take_rows(pass *pass, int input, int64_t first, const onepass_shape *shape, onepass_tensor *tensor) {
    const task *task = pass->task;
    static const pieces plain;
    static const double nothing; /* rows without classes lie somewhere, too */
    *tensor = piece_tensor(&nothing, task->input[input].layout.dtype, shape);
    const int64_t at = is_class_weight(task, input) ? 0 : is_wide(task, input) ? first * task->classes : first;
    return shape->count == 0 || source_take(&pass->source[input], at, shape, &plain, task_threads(task), tensor);
}

/* The shapes of a slice's tensors. */
typedef struct slice {
    onepass_shape rows, block, classes;
    int64_t state[2];
    onepass_tensor input[INPUTS], output[OUTPUTS], row_state;
    onepass_call call;
} slice;

static bool take_slice(pass *pass, int64_t first, const onepass_shape *piece, slice *slice) {
    const task *task = pass->task;
    slice->rows = pass->is_whole ? task->common : *piece;
    slice->block =
        pass->is_whole ? task->full : (onepass_shape){2, {piece->count, task->classes}, piece->count * task->classes};
    slice->classes = (onepass_shape){1, {task->classes}, task->classes};
    for (int k = 0; k < INPUTS; k++) {
        const onepass_shape *shape = is_class_weight(task, k) ? &slice->classes
                                     : is_wide(task, k)       ? &slice->block
                                                              : &slice->rows;
        if (task_has(task, k) && !take_rows(pass, k, first, shape, &slice->input[k]))
            return false;
    }
    for (int k = 0; k < OUTPUTS; k++)
        slice->output[k] =
            piece_tensor(pass->output[k], output_dtype(task, k), k < LOSSES ? &slice->block : &slice->rows);
    slice->state[0] = piece->count;
    slice->state[1] = ONEPASS_ROW_STATE;
    slice->row_state = (onepass_tensor){pass->row_state, ONEPASS_F64, 2, slice->state, NULL};
    slice->call = pass->call;
    point_call(task, slice->input, slice->output, &slice->call);
    slice->call.axis = pass->is_whole ? task->axis + 1 : 2;
    return true;
}

/* ------------------------------------------------------------------ running -- */

int complain_of_rows(const task *task, onepass_status status) {
    if (status == ONEPASS_OUT_OF_BOUNDS)
        return complain(WRONG, "%s: %s", task->input[ONEPASS_TARGET].path, onepass_message());
    return complain_of_library(status);
}

static void forget_gradients(onepass_call *call) {
    for (int k = 0; k < ONEPASS_MAX_OPERANDS; k++)
        call->gradient[k] = NULL;
}

/* The loss of each row, and with the reduction none all else. */
static onepass_status run_each(const pass *pass, const slice *slice, const onepass_call *given) {
    onepass_call call = *given;
    call.value = &slice->output[LOSSES];
    if (pass->accumulator) {
        call.reduction = ONEPASS_NONE;
        call.divisor = 0;
        call.log_sum_exp = call.predicted = call.row_state = NULL;
        forget_gradients(&call);
    }
    return onepass_run(&call);
}

/* All of the slice, but for gradients that are computed part by part. */
static onepass_status run_slice(pass *pass, const slice *slice, int64_t first) {
    onepass_call call = slice->call;
    if (pass->gradient_rows < slice->rows.count) {
        forget_gradients(&call);
        call.row_state = pass->task->loss->has_log_sum_exp ? &slice->row_state : NULL;
    }
    onepass_status status = ONEPASS_OK;
    if (pass->accumulator)
        status = add_slice(pass, &call, first);
    if (status == ONEPASS_OK && (task_wants(pass->task, LOSSES) || !pass->accumulator))
        status = run_each(pass, slice, &call);
    return status;
}

/* Moves a slice's tensor on to its rows from `row` on. */
static onepass_tensor part_of(const onepass_tensor *whole, int64_t row, const int64_t *shape) {
    onepass_tensor part = *whole;
    const int64_t width = whole->ndim == 2 ? whole->shape[1] : 1;
    if (part.data)
        part.data = (char *)part.data + (size_t)(row * width) * onepass_dtype_size(part.dtype);
    part.shape = shape;
    return part;
}

/* The gradients of `count` rows of a slice from `row` on, by the state that their values left. */
static onepass_status run_part(const pass *pass, const slice *slice, int64_t row, int64_t count) {
    const task *task = pass->task;
    const int64_t shape[2] = {count, task->classes}, state[2] = {count, ONEPASS_ROW_STATE};
    onepass_tensor input[INPUTS], output[OUTPUTS];
    for (int k = 0; k < INPUTS; k++)
        input[k] = is_class_weight(task, k) ? slice->input[k] : part_of(&slice->input[k], row, shape);
    for (int k = 0; k < OUTPUTS; k++) {
        output[k] = slice->output[k]; /* a part's gradients have the room to themselves */
        output[k].shape = shape;
    }
    const onepass_tensor row_state = part_of(&slice->row_state, row, state);
    onepass_call call = slice->call;
    point_call(task, input, output, &call);
    call.log_sum_exp = call.predicted = NULL;
    call.row_state = task->loss->has_log_sum_exp ? &row_state : NULL;
    if (call.reduction == ONEPASS_MEAN && call.divisor == 0)
        call.divisor = (double)task->common.count;
    return onepass_run(&call);
}

static int run_parts(pass *pass, const slice *slice) {
    int status = RIGHT;
    for (int64_t row = 0; row < slice->rows.count && status == RIGHT; row += pass->gradient_rows) {
        const int64_t left = slice->rows.count - row, count = left < pass->gradient_rows ? left : pass->gradient_rows;
        const onepass_status ran = run_part(pass, slice, row, count);
        status = ran == ONEPASS_OK ? write_outputs(pass, 0, LOSSES, count * pass->task->classes)
                                   : complain_of_rows(pass->task, ran);
    }
    return status;
}

int run_rows(pass *pass, int64_t first, const onepass_shape *piece) {
    slice slice;
    if (!take_slice(pass, first, piece, &slice))
        return FAILED;
    const onepass_status ran = run_slice(pass, &slice, first);
    if (ran != ONEPASS_OK)
        return complain_of_rows(pass->task, ran);
    const int status = write_outputs(pass, LOSSES, OUTPUTS, piece->count);
    if (status != RIGHT || !task_wants_gradient(pass->task))
        return status;
    return pass->gradient_rows < piece->count ? run_parts(pass, &slice)
                                              : write_outputs(pass, 0, LOSSES, slice.block.count);
}
