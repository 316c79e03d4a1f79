#include "task_files.h"
#include "operands.h"
#include "stop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- the shapes -- */

/* "p.npy has shape (3,) and t.npy has shape (4,)", of the operands up to this one. Names may be long. */
static int complain_of_shapes(const task *task, int last) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return complain(FAILED, "no memory for the names of files that do not broadcast");
    for (int k = 0; k <= last; k++) {
        const layout *layout = &task->input[k].layout;
        char shape[256];
        write_shape(shape, sizeof shape, layout->ndim, layout->shape);
        fputs(k == 0 ? "" : k < last ? ", " : " and ", stream);
        fprintf(stream, "%s has shape %s", task->input[k].path, shape);
    }
    fclose(stream);
    const int status = complain(WRONG, "%s, which do not broadcast", text ? text : "files");
    free(text);
    return status;
}

/* An axis counted from 0 on, of the one that the call has, or the usual one. */
static int32_t find_axis(const task *task, int32_t ndim, int32_t usual) {
    const int32_t given = task->call.axis;
    return given == 0 ? usual : given > 0 ? given - 1 : ndim + given;
}

/* The extents that number the rows, the product of which may be too large where a row has no elements. */
static bool add_row_extent(task *task, int64_t extent) {
    task->common.extent[task->common.ndim++] = extent;
    return !__builtin_mul_overflow(task->common.count, extent, &task->common.count);
}

/* The rows of a loss over rows: the input without the dimension of its classes. */
static int find_rows(task *task) {
    const input *input = &task->input[ONEPASS_PREDICTION];
    const int32_t ndim = input->layout.ndim, given = task->call.axis;
    const onepass_tensor tensor = layout_tensor(&input->layout);
    char shape[256];
    write_shape(shape, sizeof shape, ndim, input->layout.shape);
    if (ndim == 0)
        return complain(WRONG, "%s: has shape (); expected at least one dimension, that of the classes", input->path);
    task->axis = find_axis(task, ndim, ndim > 1);
    if (task->axis < 0 || task->axis >= ndim)
        return complain(WRONG, "%s: has shape %s, and --axis is %d; expected 0 to %d, or -%d to -1", input->path, shape,
                        given > 0 ? given - 1 : given, ndim - 1, ndim);
    task->call.axis = task->axis + 1;
    task->classes = input->layout.shape[task->axis];
    onepass_broadcast(&task->full, &tensor);
    for (int32_t d = 0; d < ndim; d++) {
        if (d == task->axis)
            continue;
        if (!add_row_extent(task, input->layout.shape[d]))
            return complain(WRONG, "%s: has shape %s, which are more rows than can be counted", input->path, shape);
    }
    return RIGHT;
}

static bool has_shape(const input *input, int32_t ndim, const int64_t *extent) {
    return input->layout.ndim == ndim && memcmp(input->layout.shape, extent, (size_t)ndim * sizeof *extent) == 0;
}

static int check_class_weight(const task *task) {
    const input *weight = &task->input[ONEPASS_CLASS_WEIGHT];
    char own[256];
    if (!takes_class_weight(task->loss) || !task_has(task, ONEPASS_CLASS_WEIGHT) ||
        has_shape(weight, 1, &task->classes))
        return RIGHT;
    write_shape(own, sizeof own, weight->layout.ndim, weight->layout.shape);
    return complain(WRONG, "%s: has shape %s; expected a weight for each class, of shape (%lld,)", weight->path, own,
                    (long long)task->classes);
}

/* Labels are not broadcast. One label may have a dimension where there is one row without any. */
static int check_row_shapes(const task *task) {
    const input *target = &task->input[ONEPASS_TARGET];
    const onepass_shape *expected = task_has_labels(task) ? &task->common : &task->full;
    const bool is_one = expected->ndim == 0 && target->layout.count == 1;
    char own[256], other[256];
    write_shape(own, sizeof own, target->layout.ndim, target->layout.shape);
    write_shape(other, sizeof other, expected->ndim, expected->extent);
    if (!has_shape(target, expected->ndim, expected->extent) && !is_one && task_has_labels(task))
        return complain(WRONG,
                        "%s: has shape %s; expected a class index for each row, of shape %s: that of %s without "
                        "axis %d, the classes",
                        target->path, own, other, task->input[ONEPASS_PREDICTION].path, task->axis);
    if (!has_shape(target, expected->ndim, expected->extent) && !is_one)
        return complain(WRONG,
                        "%s: has shape %s; expected a probability for each class of each row, of shape %s: that "
                        "of %s",
                        target->path, own, other, task->input[ONEPASS_PREDICTION].path);
    return RIGHT;
}

/* The operands at their common shape, of which all from the axis on is a vector. */
static int find_vectors(task *task) {
    const int32_t ndim = task->full.ndim, given = task->call.axis;
    char shape[256];
    write_shape(shape, sizeof shape, ndim, task->full.extent);
    if (ndim == 0)
        return complain(WRONG, "%s: has shape (); expected at least one dimension, that of a vector's elements",
                        task->input[0].path);
    task->axis = find_axis(task, ndim, ndim - 1);
    if (task->axis < 0 || task->axis >= ndim)
        return complain(WRONG, "--axis is %d, and the vectors' common shape is %s; expected 0 to %d, or -%d to -1",
                        given > 0 ? given - 1 : given, shape, ndim - 1, ndim);
    task->call.axis = task->axis + 1;
    task->classes = 1;
    for (int32_t d = 0; d < ndim; d++)
        if (d < task->axis ? !add_row_extent(task, task->full.extent[d])
                           : __builtin_mul_overflow(task->classes, task->full.extent[d], &task->classes))
            return complain(WRONG, "the vectors' common shape is %s, which are more than can be counted", shape);
    return RIGHT;
}

/* A number for each vector is not broadcast. */
static int check_numbers(const task *task) {
    const int last = count_vectors(task->loss);
    const input *number = &task->input[last];
    char own[256], expected[256];
    if (!is_number_a_vector(task->loss, last) || has_shape(number, task->common.ndim, task->common.extent))
        return RIGHT;
    write_shape(own, sizeof own, number->layout.ndim, number->layout.shape);
    write_shape(expected, sizeof expected, task->common.ndim, task->common.extent);
    return complain(WRONG, "%s: has shape %s; expected a number for each vector, of shape %s", number->path, own,
                    expected);
}

/* Nor are lists of class indices. */
static int check_label_lists(const task *task) {
    const input *target = &task->input[ONEPASS_TARGET];
    char own[256], expected[256];
    if (!has_label_lists(task->loss) || has_shape(target, task->full.ndim, task->full.extent))
        return RIGHT;
    write_shape(own, sizeof own, target->layout.ndim, target->layout.shape);
    write_shape(expected, sizeof expected, task->full.ndim, task->full.extent);
    return complain(WRONG, "%s: has shape %s; expected a list of class indices for each row, of shape %s: that of %s",
                    target->path, own, expected, task->input[ONEPASS_PREDICTION].path);
}

/* Of a weight or a mask, which have no say in the common shape. */
static int check_reach(const task *task, int k) {
    const onepass_tensor tensor = layout_tensor(&task->input[k].layout);
    int64_t strides[ONEPASS_MAX_DIMENSIONS];
    if (!task_has(task, k) || onepass_broadcast_strides(&tensor, &task->common, strides) == ONEPASS_OK)
        return RIGHT;
    char own[256], common[256];
    write_shape(own, sizeof own, task->input[k].layout.ndim, task->input[k].layout.shape);
    write_shape(common, sizeof common, task->common.ndim, task->common.extent);
    return complain(WRONG, "%s: has shape %s, which cannot be broadcast to that of the operands, %s",
                    task->input[k].path, own, common);
}

/* The common shape of the first operands. */
static int broadcast_operands(task *task, int count, onepass_shape *common) {
    for (int k = 0; k < count; k++) {
        const onepass_tensor tensor = layout_tensor(&task->input[k].layout);
        if (onepass_broadcast(common, &tensor) != ONEPASS_OK)
            return complain_of_shapes(task, k);
    }
    return RIGHT;
}

static int join_shapes(task *task) {
    const int vectors = count_vectors(task->loss);
    int status;
    task->common = task->full = (onepass_shape)ONEPASS_SHAPE_INIT;
    if (has_classes(task->loss)) {
        status = find_rows(task);
        if (status == RIGHT)
            status = check_row_shapes(task);
    } else if (vectors > 0) {
        status = broadcast_operands(task, vectors, &task->full);
        if (status == RIGHT)
            status = find_vectors(task);
        if (status == RIGHT)
            status = check_numbers(task);
        if (status == RIGHT)
            status = check_label_lists(task);
    } else {
        status = broadcast_operands(task, task->loss->operand_count, &task->common);
        task->full = task->common;
    }
    if (status == RIGHT)
        status = check_class_weight(task);
    if (status == RIGHT)
        status = check_reach(task, WEIGHT);
    return status == RIGHT ? check_reach(task, MASK) : status;
}

/* A part may begin and end within any dimension but that of the classes, or those of a vector, so it keeps no other. */
static void find_part_shapes(task *task) {
    const int64_t count = task->common.count;
    const int64_t own = part_end(&task->part, count) - part_begin(&task->part, count);
    task->part_common = task->part_full = (onepass_shape){1, {own}, own};
    if (task->loss->over_rows)
        task->part_full = (onepass_shape){2, {own, task->classes}, own * task->classes};
}

/* ------------------------------------------------------------------- the inputs -- */

/* Whether an input has a say in the value's type, as in PyTorch's functions and in the Python package: weights of
 * classes that labels choose have none, nor have pos_weight and weight of binary cross-entropy, nor has one number as
 * the weight of many. */
static bool decides_type(const task *task, int k) {
    const onepass_loss_info *loss = task->loss;
    if (!task_has(task, k) || is_number_a_vector(loss, k) || !suits(task->input[k].layout.dtype, FOR_NUMBERS))
        return false;
    if (k > ONEPASS_TARGET && strncmp(loss->name, "bce", 3) == 0)
        return false;
    if (k == WEIGHT)
        return task->input[k].layout.ndim > 0 || (task->common.ndim == 0 && !loss->over_rows);
    return !(k == ONEPASS_THIRD && (task_has_labels(task) || loss->over_rows == ONEPASS_CLASS_A_VECTOR));
}

static void choose_type(task *task) {
    task->value_dtype = task->input[ONEPASS_PREDICTION].layout.dtype;
    for (int k = 0; k <= WEIGHT; k++)
        if (decides_type(task, k))
            task->value_dtype = onepass_promote(task->value_dtype, task->input[k].layout.dtype);
}

static purpose purpose_of(const task *task, int input, purpose numbers) {
    const bool is_class =
        task_has_labels(task) || task->loss->over_rows == ONEPASS_CLASS_A_VECTOR || has_label_lists(task->loss);
    return input == MASK                           ? FOR_MASK
           : input == ONEPASS_TARGET && is_class   ? FOR_LABELS
           : is_number_a_vector(task->loss, input) ? FOR_ANY_NUMBERS
                                                   : numbers;
}

int open_inputs(task *task, const loss_options *options) {
    const purpose numbers = options->integers_are_bf16 ? FOR_NUMBERS_OR_BITS : FOR_NUMBERS;
    const char *path[INPUTS] = {[WEIGHT] = options->weight, [MASK] = options->mask};
    int status = RIGHT;
    memcpy(path, options->operand, sizeof options->operand);
    for (int k = 0; k < INPUTS && status == RIGHT; k++)
        if (path[k])
            status = input_open(&task->input[k], k, path[k], purpose_of(task, k, numbers));
    if (status == RIGHT && !stop_wanted())
        status = join_shapes(task);
    find_part_shapes(task);
    choose_type(task);
    return status;
}

/* ------------------------------------------------------------------ the outputs -- */

/* Of the first `count` outputs and another one: two names, links followed, may be one file's. */
static int check_apart(const task *task, int count, const output *other) {
    for (int i = 0; i < count; i++)
        if (task_wants(task, i) && is_one_file(task->output[i].file.name, other->file.name))
            return complain(WRONG, "%s and %s: are one file; expected two", task->output[i].file.name,
                            other->file.name);
    return RIGHT;
}

int check_outputs(task *task, const loss_options *options) {
    const char *path[OUTPUTS] = {
        [LOSSES] = options->losses, [LOG_SUM_EXP] = options->log_sum_exp, [PREDICTED] = options->predicted};
    const input *inputs[INPUTS];
    int status = RIGHT;
    memcpy(path, options->gradient, sizeof options->gradient);
    for (int k = 0; k < INPUTS; k++)
        inputs[k] = &task->input[k];
    for (int k = 0; k < OUTPUTS && status == RIGHT; k++) {
        if (!path[k])
            continue;
        status = output_check(&task->output[k], k, path[k], inputs, INPUTS);
        if (status == RIGHT)
            status = check_apart(task, k, &task->output[k]);
    }
    if (options->state && status == RIGHT)
        status = output_check(&task->state, OUTPUTS, options->state, inputs, INPUTS);
    return options->state && status == RIGHT ? check_apart(task, OUTPUTS, &task->state) : status;
}

int begin_outputs(task *task) {
    int status = RIGHT;
    for (int k = 0; k < OUTPUTS && status == RIGHT; k++)
        if (task_wants(task, k))
            status = output_begin(&task->output[k], output_dtype(task, k), output_shape(task, k));
    return status == RIGHT && task->state.file.name ? output_make(&task->state) : status;
}

int complete_outputs(task *task) {
    int status = RIGHT;
    for (int k = 0; k < OUTPUTS && status == RIGHT; k++)
        status = output_close(&task->output[k]);
    if (status == RIGHT && task->state.file.name)
        status = output_close(&task->state);
    return status;
}

int name_outputs(task *task) {
    int status = RIGHT;
    for (int k = 0; k < OUTPUTS && status == RIGHT; k++)
        status = output_rename(&task->output[k]);
    return status == RIGHT && task->state.file.name ? output_rename(&task->state) : status;
}

void close_files(task *task) {
    for (int k = 0; k < OUTPUTS; k++)
        output_abandon(&task->output[k]);
    output_abandon(&task->state);
    for (int k = 0; k < INPUTS; k++)
        input_close(&task->input[k]);
}
