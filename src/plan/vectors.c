/*
 * Operands and gradients of a vector loss: vectors are broadcast to one shape, which the axis cuts into rows and what a
 * vector is made of. Views are over all elements, row by row.
 */
#include "message.h"
#include "plan/tensors.h"

/* The first dimension of a vector, counted from 0. */
static onepass_status find_axis(const onepass_call *call, const onepass_shape *elements, int32_t *axis) {
    const int32_t ndim = elements->ndim;
    if (ndim == 0)
        FAIL_SHAPE("the vectors of %s have no dimensions; expected at least one, that of their elements", call->loss);
    *axis = call->axis > 0 ? call->axis - 1 : ndim + (call->axis ? call->axis : -1);
    if (*axis < 0 || *axis >= ndim)
        FAIL_SHAPE("axis is %d, but the vectors' common shape has %d dimensions; expected 1 to %d, -%d to -1, or 0 for "
                   "the last",
                   call->axis, ndim, ndim, ndim);
    return ONEPASS_OK;
}

static onepass_status cut_into_rows(const onepass_call *call, tensors *all, job *job) {
    const onepass_shape *elements = &all->elements;
    onepass_shape vector = {0};
    int32_t axis = 0;
    OK(find_axis(call, elements, &axis));
    all->common = (onepass_shape){.ndim = axis};
    vector.ndim = elements->ndim - axis;
    for (int32_t d = 0; d < elements->ndim; d++) {
        onepass_shape *part = d < axis ? &all->common : &vector;
        part->extent[d < axis ? d : d - axis] = elements->extent[d];
    }
    OK(onepass_count_rows("the vectors' common shape", &all->common));
    OK(onepass_count_rows("a vector", &vector));
    job->vectors.length = vector.count;
    return ONEPASS_OK;
}

/* As many class indices as there are elements. */
static onepass_status plan_label_lists(const onepass_call *call, tensors *all, job *job) {
    tensor *labels = &all->operand[ONEPASS_TARGET];
    OK(onepass_read_labels(call->operand[ONEPASS_TARGET], call->loss, "", labels));
    OK(onepass_check_shape(labels, &all->elements, "lists of class indices"));
    onepass_make_view(labels, &all->elements, &job->operand[ONEPASS_TARGET]);
    return ONEPASS_OK;
}

/* One number a row, of any type, unless it is a class index. */
static onepass_status plan_number(const onepass_call *call, int32_t k, tensors *all, job *job) {
    tensor *number = &all->operand[k];
    const int32_t dtype = call->operand[k]->dtype;
    if (job->loss->has_labels || (dtype >= ONEPASS_I64 && dtype <= ONEPASS_U8))
        OK(onepass_read_labels(call->operand[k], call->loss, "", number));
    else
        OK(onepass_read_tensor(call->operand[k], onepass_operand_name(job, k), number));
    if (!onepass_same_shape(&number->shape, &all->common))
        return onepass_fail_rows(number, &all->common,
                                 job->loss->has_labels ? "class indices have" : "one number a row has");
    onepass_make_view(number, &all->common, &job->operand[k]);
    return ONEPASS_OK;
}

/* That of a row's class multiplies what the row weighs. */
static onepass_status plan_class_weight(const onepass_call *call, tensors *all, job *job) {
    const int32_t k = ONEPASS_CLASS_WEIGHT;
    tensor *weight = &all->operand[k];
    job->operand[k].data = NULL;
    weight->begin = weight->end = 0;
    if (!call->operand[k])
        return ONEPASS_OK;
    OK(onepass_read_class_weight(call->operand[k], job->vectors.length, weight));
    onepass_make_view(weight, &weight->shape, &job->operand[k]);
    if (weight->dtype == ONEPASS_F64)
        job->compute = ONEPASS_F64;
    return ONEPASS_OK;
}

onepass_status onepass_plan_vector_operands(const onepass_call *call, tensors *all, job *job) {
    const int32_t vectors = job->loss->vectors;
    const int32_t needed = job->loss->has_labels ? ONEPASS_CLASS_WEIGHT : job->operand_count;
    for (int32_t k = 0; k < needed; k++)
        if (!call->operand[k])
            FAIL_ARGUMENT("operand[%d], the %s, is null; expected a tensor", k, onepass_operand_name(job, k));
    for (int32_t k = 0; k < vectors; k++)
        OK(onepass_read_tensor(call->operand[k], onepass_operand_name(job, k), &all->operand[k]));
    OK(onepass_common_shape(all->operand, vectors, &all->elements));
    OK(cut_into_rows(call, all, job));
    job->compute = ONEPASS_F32;
    for (int32_t k = 0; k < vectors; k++) {
        onepass_make_view(&all->operand[k], &all->elements, &job->operand[k]);
        if (all->operand[k].dtype == ONEPASS_F64)
            job->compute = ONEPASS_F64;
    }
    job->vectors.scale.softcap = 0;
    if (job->loss->has_softmaxes)
        onepass_plan_softmax(&job->vectors.scale, onepass_named_parameter(job, "temperature", 1));
    if (job->loss->has_label_lists)
        return plan_label_lists(call, all, job);
    if (vectors < job->operand_count)
        OK(plan_number(call, vectors, all, job));
    return job->loss->has_labels ? plan_class_weight(call, all, job) : ONEPASS_OK;
}

onepass_status onepass_plan_vector_gradients(const onepass_call *call, tensors *all, job *job) {
    for (int32_t k = 0; k < ONEPASS_MAX_OPERANDS; k++) {
        tensor *gradient = &all->gradient[k];
        if (!call->gradient[k])
            continue;
        if (k >= job->loss->vectors)
            FAIL_ARGUMENT("gradient[%d] is set, but the %s of %s has none; expected null", k,
                          onepass_operand_name(job, k), call->loss);
        OK(onepass_read_tensor(call->gradient[k], onepass_gradient_name(job, k), gradient));
        OK(onepass_check_shape(gradient, &all->elements, "a gradient"));
        OK(onepass_check_output(gradient));
        onepass_make_view(gradient, &all->elements, &job->gradient[k]);
        job->in_place[k] = all->elements.count > 0 && onepass_same_place(gradient, &all->operand[k]);
        if (job->in_place[k] && job->loss->has_label_lists) /* which are gone through for every tile */
            FAIL_MEMORY("%s overlaps %s in memory; the gradient of %s may not lie over its operand", gradient->name,
                        onepass_operand_name(job, k), call->loss);
    }
    return ONEPASS_OK;
}
