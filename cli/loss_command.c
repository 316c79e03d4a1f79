/* onepass LOSS PREDICTIONS TARGETS: opens the files, has the task computed, and says what came out. */
#include "loss_options.h"
#include "progress.h"
#include "stop.h"
#include "task.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------- the files -- */

static int complain_of_shapes(const task *task, const char *verb) {
    char shape[INPUTS][256];
    for (int k = 0; k < INPUTS; k++)
        write_shape(shape[k], sizeof shape[k], task->input[k].layout.ndim, task->input[k].layout.shape);
    if (strcmp(verb, "weight") == 0)
        return complain(WRONG, "%s: has shape %s, which cannot be broadcast to that of %s and %s, %s and %s",
                        task->input[WEIGHTS].path, shape[WEIGHTS], task->input[PREDICTIONS].path,
                        task->input[TARGETS].path, shape[PREDICTIONS], shape[TARGETS]);
    return complain(WRONG, "%s has shape %s and %s has shape %s, which do not broadcast", task->input[PREDICTIONS].path,
                    shape[PREDICTIONS], task->input[TARGETS].path, shape[TARGETS]);
}

/* A weight has no say in the common shape. */
static int join_shapes(task *task) {
    task->common = (extents){.count = 1};
    if (!extents_join(&task->common, &task->input[PREDICTIONS].layout) ||
        !extents_join(&task->common, &task->input[TARGETS].layout))
        return complain_of_shapes(task, "");
    if (!task_is_weighted(task))
        return RIGHT;
    extents with_weight = task->common;
    const bool fits = extents_join(&with_weight, &task->input[WEIGHTS].layout) &&
                      with_weight.ndim == task->common.ndim && with_weight.count == task->common.count &&
                      memcmp(with_weight.shape, task->common.shape, sizeof with_weight.shape) == 0;
    return fits ? RIGHT : complain_of_shapes(task, "weight");
}

/* As PyTorch promotes: the larger type; f32 for f16 with bf16. */
static int32_t promote(int32_t a, int32_t b) {
    const bool both_small = a < ONEPASS_F32 && b < ONEPASS_F32;
    return a == b ? a : both_small ? ONEPASS_F32 : a > b ? a : b;
}

static void choose_types(task *task) {
    task->gradient_dtype = task->input[PREDICTIONS].layout.dtype;
    task->value_dtype = promote(task->gradient_dtype, task->input[TARGETS].layout.dtype);
    if (task_is_weighted(task))
        task->value_dtype = promote(task->value_dtype, task->input[WEIGHTS].layout.dtype);
}

static int open_inputs(task *task, const loss_options *options) {
    const char *const paths[INPUTS] = {options->predictions, options->targets, options->weight};
    int status = RIGHT;
    for (int k = 0; k < INPUTS && status == RIGHT; k++)
        if (paths[k])
            status = input_open(&task->input[k], k, paths[k], options->integers_are_bf16);
    return status == RIGHT ? join_shapes(task) : status;
}

static int check_outputs(task *task, const loss_options *options) {
    const input *const inputs[INPUTS] = {&task->input[0], &task->input[1], &task->input[2]};
    int status = RIGHT;
    if (options->gradient)
        status = output_check(&task->gradient, 0, options->gradient, inputs, INPUTS);
    if (status == RIGHT && options->losses)
        status = output_check(&task->losses, 1, options->losses, inputs, INPUTS);
    if (status == RIGHT && options->losses && options->gradient &&
        strcmp(task->gradient.file.final, task->losses.file.final) == 0)
        status = complain(WRONG, "%s and %s: are one file; expected two", options->gradient, options->losses);
    return status;
}

static int begin_outputs(task *task) {
    int status = RIGHT;
    if (task->gradient.file.name)
        status = output_begin(&task->gradient, task->gradient_dtype, &task->common);
    if (status == RIGHT && task->losses.file.name)
        status = output_begin(&task->losses, task->value_dtype, &task->common);
    return status;
}

static int finish_outputs(task *task) {
    int status = output_close(&task->gradient);
    if (status == RIGHT)
        status = output_close(&task->losses);
    if (status == RIGHT)
        status = stop_wanted() ? FAILED : output_rename(&task->gradient);
    return status == RIGHT ? output_rename(&task->losses) : status;
}

/* ------------------------------------------------------------------- the answer -- */

static void print_file(const char *key, const char *path) {
    printf(", \"%s\": ", key);
    if (path)
        print_json_string(path);
    else
        printf("null");
}

static void print_value(const task *task) {
    char digits[64], bits[32];
    if (task->call.reduction == ONEPASS_NONE) {
        printf(", \"value\": null, \"bits\": null");
        return;
    }
    number_digits(&task->value, digits, sizeof digits);
    number_hex(&task->value, bits, sizeof bits);
    const char *quote = isfinite(number_value(&task->value)) ? "" : "\"";
    printf(", \"value\": %s%s%s, \"bits\": \"%s\"", quote, digits, quote, bits);
}

static void print_parameters(const onepass_loss_info *loss, const onepass_call *call) {
    printf(", \"parameters\": {");
    for (int32_t i = 0; i < loss->parameter_count; i++) {
        printf("%s\"%s\": ", i ? ", " : "", loss->parameter[i].name);
        print_json_number(call->parameter[i]);
    }
    printf("}");
}

static void print_json(const task *task, const onepass_loss_info *loss, const loss_options *options, double seconds) {
    static const char *const reductions[] = {"mean", "sum", "none"};
    printf("{\"loss\": \"%s\"", loss->name);
    print_parameters(loss, &task->call);
    printf(", \"reduction\": \"%s\"", reductions[task->call.reduction]);
    print_value(task);
    printf(", \"type\": \"%s\", \"shape\": [", dtype_name(task->value_dtype));
    for (int32_t d = 0; d < task->common.ndim; d++)
        printf("%s%lld", d ? ", " : "", (long long)task->common.shape[d]);
    printf("], \"elements\": %lld", (long long)task->common.count);
    if (task->call.device == ONEPASS_CUDA)
        printf(", \"device\": \"cuda:%d\"", task->call.device_index);
    else
        printf(", \"device\": \"cpu\"");
    printf(", \"threads\": %d, \"seconds\": %.6g, \"bytes\": %llu", task_threads(task), seconds,
           (unsigned long long)task->bytes);
    print_file("grad", options->gradient);
    print_file("none", options->losses);
    puts("}");
}

static int print_answer(const task *task, const onepass_loss_info *loss, const loss_options *options, double seconds) {
    char text[64];
    if (options->as_json) {
        print_json(task, loss, options, seconds);
    } else if (task->call.reduction != ONEPASS_NONE) {
        if (options->as_hex)
            number_hex(&task->value, text, sizeof text);
        else
            number_digits(&task->value, text, sizeof text);
        puts(text);
    }
    return close_output();
}

/* --------------------------------------------------------------------- the work -- */

/* The CPU reads weights twice where their sum has to be known first. */
static uint64_t count_bytes(const task *task) {
    uint64_t bytes = 0;
    for (int k = 0; k < INPUTS; k++)
        if (task->input[k].file >= 0)
            bytes += input_bytes(&task->input[k]);
    if (task->call.device == ONEPASS_CPU && task_sums_weights(task))
        bytes += input_bytes(&task->input[WEIGHTS]);
    if (task->gradient.file.name)
        bytes += (uint64_t)task->common.count * dtype_bytes(task->gradient_dtype);
    if (task->losses.file.name)
        bytes += (uint64_t)task->common.count * dtype_bytes(task->value_dtype);
    return bytes;
}

/* The library says what it thinks of the parameters before a file is written or a GPU is opened. */
static int check_parameters(const task *task) {
    onepass_accumulator *accumulator = NULL;
    onepass_call call = task->call;
    call.device = ONEPASS_CPU;
    call.device_index = 0;
    call.reduction = ONEPASS_SUM;
    const onepass_status status = onepass_accumulator_begin(&accumulator, &call, 0);
    onepass_accumulator_destroy(accumulator);
    return status == ONEPASS_OK ? RIGHT : complain_of_library(status);
}

static int work(task *task, const loss_options *options) {
    int status = check_parameters(task);
    if (status == RIGHT)
        status = open_inputs(task, options);
    if (status == RIGHT && !stop_wanted())
        status = check_outputs(task, options);
    if (status != RIGHT || stop_wanted())
        return status == RIGHT ? FAILED : status;
    choose_types(task);
    task->bytes = count_bytes(task);
    status = begin_outputs(task);
    if (status == RIGHT)
        status = task->call.device == ONEPASS_CUDA ? compute_on_gpu(task) : compute_on_cpu(task);
    return status == RIGHT ? finish_outputs(task) : status;
}

int loss_command(const onepass_loss_info *loss, int argc, char **argv) {
    loss_options options;
    int status = read_loss_options(&options, loss, argc, argv);
    if (status == RIGHT && options.wants_help) {
        print_loss_help(loss);
        return close_output();
    }
    if (status != RIGHT)
        return status;
    task task = {.call = options.call};
    task.gradient.file.file = task.losses.file.file = -1;
    for (int k = 0; k < INPUTS; k++)
        task.input[k].file = -1;
    stop_prepare();
    const double begun = clock_seconds();
    status = work(&task, &options);
    const double seconds = clock_seconds() - begun;
    output_abandon(&task.gradient);
    output_abandon(&task.losses);
    for (int k = 0; k < INPUTS; k++)
        input_close(&task.input[k]);
    stop_now();
    return status == RIGHT ? print_answer(&task, loss, &options, seconds) : status;
}
