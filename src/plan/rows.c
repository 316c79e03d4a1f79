/*
 * Operands and outputs of a loss over rows. The views of a job are over its rows: a view leads to the first class of a
 * row, and from there one stride leads from class to class.
 */
#include "dtype.h"
#include "math/wide.h"
#include "message.h"
#include "plan/tensors.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------- parameters -- */

double onepass_named_parameter(const job *job, const char *name, double otherwise) {
    const onepass_loss_info *info = &job->loss->info;
    for (int32_t i = 0; i < info->parameter_count; i++)
        if (strcmp(info->parameter[i].name, name) == 0)
            return job->parameter[i];
    return otherwise;
}

/* log2(e) / temperature to twice the digits of a double. */
void onepass_plan_softmax(softmax_scale *scale, double temperature) {
    const double factor = WIDE_LOG2_E / temperature;
    scale->factor = factor;
    scale->factor_low = (fma(-factor, temperature, WIDE_LOG2_E) + WIDE_LOG2_E_LOW) / temperature;
    scale->per_temperature = 1 / temperature;
}

onepass_status onepass_plan_row_parameters(job *job) {
    row_job *rows = &job->rows;
    const double index = onepass_named_parameter(job, "ignore_index", -1);
    if (index != floor(index))
        FAIL_ARGUMENT("ignore_index of %s is %s; expected a whole number from -2^53 to 2^53", job->loss->info.name,
                      onepass_in_digits(index).characters);
    rows->ignore_index = (int64_t)index;
    rows->smoothing = onepass_named_parameter(job, "label_smoothing", 0);
    rows->scale.softcap = onepass_named_parameter(job, "softcap", 0);
    if (rows->scale.softcap != 0 && rows->scale.softcap < 1e-30) /* a float would have none */
        FAIL_ARGUMENT("softcap of %s is %s; expected 0, or 1e-30 to 1e+30", job->loss->info.name,
                      onepass_in_digits(rows->scale.softcap).characters);
    onepass_plan_softmax(&rows->scale, onepass_named_parameter(job, "temperature", 1));
    return ONEPASS_OK;
}

/* ------------------------------------------------------------------ shapes -- */

/* The axis, counted from 0. */
static onepass_status find_axis(const onepass_call *call, const tensor *input, int32_t *axis) {
    const int32_t ndim = input->shape.ndim;
    if (ndim == 0)
        FAIL_SHAPE("%s has no dimensions; expected at least one, that of the classes", input->name);
    if (call->axis == 0)
        *axis = ndim == 1 ? 0 : 1;
    else
        *axis = call->axis > 0 ? call->axis - 1 : ndim + call->axis;
    if (*axis < 0 || *axis >= ndim)
        FAIL_SHAPE("axis is %d, but %s has %d dimensions; expected 1 to %d, -%d to -1, or 0 for the default",
                   call->axis, input->name, ndim, ndim, ndim);
    return ONEPASS_OK;
}

static onepass_shape without_axis(const onepass_shape *shape, int32_t axis) {
    onepass_shape rows = {.ndim = shape->ndim - 1, .count = 1};
    for (int32_t d = 0; d < rows.ndim; d++) {
        rows.extent[d] = shape->extent[d + (d >= axis)];
        rows.count = (int64_t)((uint64_t)rows.count * (uint64_t)rows.extent[d]); /* may wrap: see below */
    }
    return rows;
}

onepass_status onepass_count_rows(const char *name, onepass_shape *rows) {
    bool empty = false;
    int64_t count = 1;
    for (int32_t d = 0; d < rows->ndim; d++)
        empty |= rows->extent[d] == 0;
    for (int32_t d = 0; d < rows->ndim && !empty; d++)
        if (__builtin_mul_overflow(count, rows->extent[d], &count))
            FAIL_SHAPE("%s has more rows than fit into 63 bits", name);
    rows->count = empty ? 0 : count;
    return ONEPASS_OK;
}

/* A view of a tensor's rows, and the stride from class to class. */
static void view_rows(const tensor *given, int32_t axis, const onepass_shape *rows, view *view, int64_t *class_stride) {
    tensor first = *given;
    first.shape = without_axis(&given->shape, axis);
    for (int32_t d = axis; d < first.shape.ndim; d++)
        first.stride[d] = given->stride[d + 1];
    onepass_make_view(&first, rows, view);
    *class_stride = given->stride[axis];
}

/* ---------------------------------------------------------------- operands -- */

static onepass_status plan_labels(const onepass_call *call, tensors *all, job *job) {
    const char *advice =
        job->loss->kind == ROW_LABEL ? "; for class probabilities there is cross_entropy_with_probabilities" : "";
    tensor *target = &all->operand[1];
    OK(onepass_read_labels(call->operand[1], job->loss->info.name, advice, target));
    if (!onepass_same_shape(&target->shape, &all->common) && !(all->common.ndim == 0 && target->shape.count == 1))
        return onepass_fail_rows(target, &all->common, "class indices have");
    onepass_make_view(target, &target->shape, &job->operand[1]);
    return ONEPASS_OK;
}

static onepass_status plan_probabilities(const onepass_call *call, tensors *all, job *job) {
    tensor *target = &all->operand[1];
    OK(onepass_read_tensor(call->operand[1], "target", target));
    if (!onepass_same_shape(&target->shape, &all->operand[0].shape))
        return onepass_fail_rows(target, &all->operand[0].shape, "class probabilities have");
    view_rows(target, job->rows.axis, &all->common, &job->operand[1], &job->rows.class_stride[1]);
    return ONEPASS_OK;
}

onepass_status onepass_read_class_weight(const onepass_tensor *given, int64_t classes, tensor *weight) {
    OK(onepass_read_tensor(given, "class_weight", weight));
    if (weight->shape.ndim != 1 || weight->shape.extent[0] != classes)
        return onepass_fail_rows(weight, &(onepass_shape){1, {classes}, classes}, "class weights have");
    return ONEPASS_OK;
}

static onepass_status plan_class_weight(const onepass_call *call, tensors *all, job *job) {
    tensor *weight = &all->operand[2];
    job->operand[2].data = NULL;
    job->operand[2].dtype = 0;
    weight->begin = weight->end = 0;
    if (!call->operand[2])
        return ONEPASS_OK;
    const row_shard *shard = &job->rows.shard;
    OK(onepass_read_class_weight(call->operand[2], shard->all_classes, weight));
    const int64_t before = shard->first_class * weight->stride[0] * (int64_t)dtype_size(weight->dtype);
    job->operand[2] = (view){(char *)weight->data + before, weight->dtype, 1, {1}, {0}};
    job->rows.class_stride[2] = weight->stride[0];
    return ONEPASS_OK;
}

onepass_status onepass_plan_row_operands(const onepass_call *call, tensors *all, job *job) {
    row_job *rows = &job->rows;
    for (int32_t k = 0; k < 2; k++)
        if (!call->operand[k])
            FAIL_ARGUMENT("operand[%d], the %s, is null; expected a tensor", k, onepass_operand_name(job, k));
    OK(onepass_read_tensor(call->operand[0], "input", &all->operand[0]));
    OK(find_axis(call, &all->operand[0], &rows->axis));
    all->common = without_axis(&all->operand[0].shape, rows->axis);
    OK(onepass_count_rows(all->operand[0].name, &all->common));
    rows->classes = all->operand[0].shape.extent[rows->axis];
    view_rows(&all->operand[0], rows->axis, &all->common, &job->operand[0], &rows->class_stride[0]);
    OK(onepass_plan_shard(call, job));
    if (job->loss->kind == ROW_PROBABILITIES)
        OK(plan_probabilities(call, all, job));
    else
        OK(plan_labels(call, all, job));
    OK(plan_class_weight(call, all, job));
    job->compute = ONEPASS_F32;
    for (int32_t k = 0; k < 3; k++)
        if (call->operand[k] && all->operand[k].dtype == ONEPASS_F64)
            job->compute = ONEPASS_F64;
    return ONEPASS_OK;
}

/* ----------------------------------------------------------------- outputs -- */

static onepass_status plan_gradient(const onepass_call *call, int32_t k, tensors *all, job *job) {
    tensor *gradient = &all->gradient[k];
    if (!call->gradient[k])
        return ONEPASS_OK;
    if (k == 1 && job->loss->kind != ROW_PROBABILITIES)
        FAIL_ARGUMENT("gradient[1] is set, but class indices have no gradient; expected null");
    if (k == 2)
        return onepass_fail(ONEPASS_NOT_SUPPORTED,
                            "gradient[2] is set; gradients for class weights are not computed, so it must be null");
    OK(onepass_read_tensor(call->gradient[k], onepass_gradient_name(job, k), gradient));
    if (!onepass_same_shape(&gradient->shape, &all->operand[0].shape))
        return onepass_fail_rows(gradient, &all->operand[0].shape, "a gradient has");
    OK(onepass_check_output(gradient));
    view_rows(gradient, job->rows.axis, &all->common, &job->gradient[k], &job->rows.gradient_stride[k]);
    job->in_place[k] = gradient->shape.count > 0 && onepass_same_place(gradient, &all->operand[k]);
    return ONEPASS_OK;
}

/* One number a row. */
static onepass_status plan_row_output(const onepass_tensor *given, bool is_index, const char *name, tensors *all,
                                      tensor *tensor, view *view) {
    view->data = NULL;
    if (!given)
        return ONEPASS_OK;
    if (is_index)
        OK(onepass_read_indices(given, name, tensor));
    else
        OK(onepass_read_tensor(given, name, tensor));
    if (!onepass_same_shape(&tensor->shape, &all->common))
        return onepass_fail_rows(tensor, &all->common, "one number a row has");
    OK(onepass_check_output(tensor));
    onepass_make_view(tensor, &tensor->shape, view);
    return ONEPASS_OK;
}

static onepass_status plan_row_state(const onepass_call *call, tensors *all, job *job) {
    tensor *state = &all->row_state;
    const onepass_shape expected = {2, {all->common.count, ONEPASS_ROW_STATE}, 0};
    job->rows.state = NULL;
    job->rows.reads_state = false;
    if (!call->row_state)
        return ONEPASS_OK;
    OK(onepass_read_tensor(call->row_state, "row_state", state));
    if (state->dtype != ONEPASS_F64)
        FAIL_ARGUMENT("row_state has dtype %d; expected ONEPASS_F64 (4)", state->dtype);
    const bool dense =
        state->shape.count == 0 ||
        (state->stride[1] == 1 && (state->stride[0] == ONEPASS_ROW_STATE || state->shape.extent[0] == 1));
    if (!onepass_same_shape(&state->shape, &expected) || !dense)
        return onepass_fail_rows(state, &expected, "row_state has no gaps and");
    job->rows.state = state->data;
    job->rows.reads_state = !call->value;
    return ONEPASS_OK;
}

onepass_status onepass_plan_row_outputs(const onepass_call *call, tensors *all, job *job) {
    if (call->reserved)
        return onepass_fail(ONEPASS_NOT_SUPPORTED, "reserved is %d; expected 0", call->reserved);
    if (job->loss->kind == ROW_PICKED && (call->log_sum_exp || call->row_state))
        FAIL_ARGUMENT("%s is set, but %s has no softmax; expected null",
                      call->log_sum_exp ? "log_sum_exp" : "row_state", call->loss);
    if (!call->value && (call->log_sum_exp || call->predicted))
        FAIL_ARGUMENT("%s is set without value; it comes with the value, so expected both or neither",
                      call->log_sum_exp ? "log_sum_exp" : "predicted");
    for (int32_t k = 0; k < 3; k++)
        OK(plan_gradient(call, k, all, job));
    OK(plan_row_output(call->log_sum_exp, false, "log_sum_exp", all, &all->log_sum_exp, &job->rows.log_sum_exp));
    OK(plan_row_output(call->predicted, true, "predicted", all, &all->predicted, &job->rows.predicted));
    OK(plan_row_state(call, all, job));
    return onepass_plan_shard_numbers(call, all, job);
}
