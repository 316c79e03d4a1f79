#include "task_files.h"
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

static int join_shapes(task *task) {
    task->common = (onepass_shape)ONEPASS_SHAPE_INIT;
    for (int k = 0; k < ONEPASS_MAX_OPERANDS && task_has(task, k); k++) {
        const onepass_tensor tensor = layout_tensor(&task->input[k].layout);
        if (onepass_broadcast(&task->common, &tensor) != ONEPASS_OK)
            return complain_of_shapes(task, k);
    }
    const int status = check_reach(task, WEIGHT);
    return status == RIGHT ? check_reach(task, MASK) : status;
}

/* ------------------------------------------------------------------- the inputs -- */

/* As PyTorch promotes: the larger type; f32 for f16 with bf16. */
static int32_t promote(int32_t a, int32_t b) {
    const bool both_small = a < ONEPASS_F32 && b < ONEPASS_F32;
    return a == b ? a : both_small ? ONEPASS_F32 : a > b ? a : b;
}

static void choose_type(task *task) {
    task->value_dtype = task->input[ONEPASS_PREDICTION].layout.dtype;
    for (int k = 0; k <= WEIGHT; k++)
        if (task_has(task, k))
            task->value_dtype = promote(task->value_dtype, task->input[k].layout.dtype);
}

int open_inputs(task *task, const loss_options *options) {
    const purpose numbers = options->integers_are_bf16 ? FOR_NUMBERS_OR_BITS : FOR_NUMBERS;
    const char *path[INPUTS] = {[WEIGHT] = options->weight, [MASK] = options->mask};
    int status = RIGHT;
    memcpy(path, options->operand, sizeof options->operand);
    for (int k = 0; k < INPUTS && status == RIGHT; k++)
        if (path[k])
            status = input_open(&task->input[k], k, path[k], k == MASK ? FOR_MASK : numbers);
    if (status == RIGHT && !stop_wanted())
        status = join_shapes(task);
    choose_type(task);
    return status;
}

/* ------------------------------------------------------------------ the outputs -- */

/* Two names, links followed, may be one file's. */
static int check_apart(const task *task, int k) {
    for (int i = 0; i < k; i++)
        if (task_wants(task, i) && is_one_file(task->output[i].file.name, task->output[k].file.name))
            return complain(WRONG, "%s and %s: are one file; expected two", task->output[i].file.name,
                            task->output[k].file.name);
    return RIGHT;
}

int check_outputs(task *task, const loss_options *options) {
    const char *path[OUTPUTS] = {[LOSSES] = options->losses};
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
            status = check_apart(task, k);
    }
    return status;
}

int begin_outputs(task *task) {
    int status = RIGHT;
    for (int k = 0; k < OUTPUTS && status == RIGHT; k++)
        if (task_wants(task, k))
            status = output_begin(&task->output[k], output_dtype(task, k), &task->common);
    return status;
}

int finish_outputs(task *task) {
    int status = RIGHT;
    for (int k = 0; k < OUTPUTS && status == RIGHT; k++)
        status = output_close(&task->output[k]);
    if (status == RIGHT && stop_wanted())
        return FAILED;
    for (int k = 0; k < OUTPUTS && status == RIGHT; k++)
        status = output_rename(&task->output[k]);
    return status;
}

void close_files(task *task) {
    for (int k = 0; k < OUTPUTS; k++)
        output_abandon(&task->output[k]);
    for (int k = 0; k < INPUTS; k++)
        input_close(&task->input[k]);
}
