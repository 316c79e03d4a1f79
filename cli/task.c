#include "task.h"
#include "operands.h"

#ifdef _OPENMP
#include <omp.h>
#endif

bool task_has(const task *task, int input) {
    return task->input[input].file >= 0;
}

bool task_wants(const task *task, int output) {
    return task->output[output].file.name != NULL;
}

bool task_wants_gradient(const task *task) {
    for (int k = 0; k < ONEPASS_MAX_OPERANDS; k++)
        if (task_wants(task, k))
            return true;
    return false;
}

bool task_has_labels(const task *task) {
    return task->loss->over_rows == ONEPASS_CLASS_INDEX;
}

bool task_has_class_weight(const task *task) {
    return has_classes(task->loss) && task_has(task, ONEPASS_CLASS_WEIGHT);
}

bool task_sums_first(const task *task) {
    return (task_has(task, WEIGHT) || task_has(task, MASK) || task_has_labels(task)) && task_wants_gradient(task) &&
           task->call.reduction == ONEPASS_MEAN && task->common.count > 0;
}

int32_t compute_dtype(const task *task) {
    for (int k = 0; k < INPUTS; k++)
        if (task_has(task, k) && !is_number_a_vector(task->loss, k) && task->input[k].layout.dtype == ONEPASS_F64)
            return ONEPASS_F64;
    return ONEPASS_F32;
}

int32_t output_dtype(const task *task, int output) {
    switch (output) {
    case LOSSES:
        return task->value_dtype;
    case LOG_SUM_EXP:
        return compute_dtype(task); /* 16 bits would leave it no digits behind the point */
    case PREDICTED:
        return ONEPASS_I64;
    default:
        return task->input[output].layout.dtype;
    }
}

const onepass_shape *output_shape(const task *task, int output) {
    if (task->part.count)
        return output < ONEPASS_MAX_OPERANDS ? &task->part_full : &task->part_common;
    return output < ONEPASS_MAX_OPERANDS ? &task->full : &task->common;
}

uint64_t input_bytes(const task *task, int input) {
    const layout *layout = &task->input[input].layout;
    return task_has(task, input) ? (uint64_t)layout->count * onepass_dtype_size(layout->dtype) : 0;
}

uint64_t output_bytes(const task *task, int output) {
    return task_wants(task, output)
               ? (uint64_t)output_shape(task, output)->count * onepass_dtype_size(output_dtype(task, output))
               : 0;
}

void point_call(const task *task, const onepass_tensor input[INPUTS], const onepass_tensor output[OUTPUTS],
                onepass_call *call) {
    for (int k = 0; k < ONEPASS_MAX_OPERANDS; k++) {
        call->operand[k] = task_has(task, k) ? &input[k] : NULL;
        call->gradient[k] = task_wants(task, k) ? &output[k] : NULL;
    }
    call->weight = task_has(task, WEIGHT) ? &input[WEIGHT] : NULL;
    call->mask = task_has(task, MASK) ? &input[MASK] : NULL;
    call->log_sum_exp = task_wants(task, LOG_SUM_EXP) ? &output[LOG_SUM_EXP] : NULL;
    call->predicted = task_wants(task, PREDICTED) ? &output[PREDICTED] : NULL;
}

int task_threads(const task *task) {
#ifdef _OPENMP
    const int wish = omp_get_max_threads(), cores = omp_get_num_procs(), here = wish < cores ? wish : cores;
#else
    const int here = 1;
#endif
    return task->call.threads > 0 && task->call.threads < here ? task->call.threads : here;
}
