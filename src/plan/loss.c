/* The plan of a loss: its tensors, what may overlap, what a mean is divided by. */
#include "call.h"
#include "message.h"
#include "plan/plan.h"
#include "plan/tensors.h"

#include <math.h>

/* An absent tensor spans nothing. The rest of it is never looked at, and zeroing all of it took a tenth of a small
 * call. */
static void forget_absent(tensors *all) {
    all->weight.begin = all->weight.end = all->mask.begin = all->mask.end = 0;
    all->upstream.begin = all->upstream.end = all->divisor.begin = all->divisor.end = 0;
    all->value.begin = all->value.end = all->divided_by.begin = all->divided_by.end = 0;
    all->log_sum_exp.begin = all->log_sum_exp.end = all->predicted.begin = all->predicted.end = 0;
    all->row_state.begin = all->row_state.end = all->tile_sums.begin = all->tile_sums.end = 0;
    all->label_logit.begin = all->label_logit.end = 0;
    for (int32_t k = 0; k < ONEPASS_MAX_OPERANDS; k++)
        all->gradient[k].begin = all->gradient[k].end = 0;
}

static void place_workspace(const onepass_call *call, tensor *workspace) {
    workspace->name = "workspace";
    workspace->begin = (uintptr_t)call->workspace;
    workspace->end = workspace->begin + call->workspace_size;
}

onepass_status onepass_check_operands(const onepass_call *call, const job *job) {
    for (int32_t k = job->operand_count; k < ONEPASS_MAX_OPERANDS; k++)
        if (call->operand[k] || call->gradient[k])
            return onepass_fail(ONEPASS_NOT_SUPPORTED, "%s[%d] is set; %s has %d operands, so it must be null",
                                call->operand[k] ? "operand" : "gradient", k, call->loss, job->operand_count);
    return ONEPASS_OK;
}

/* What messages call the shape of all that has a value. */
static const char *common_name(const job *job) {
    return job->family == FAMILY_PAIRWISE ? "the operands' common shape" : "the rows' shape";
}

/* A weight is broadcast to the common shape and has no part in it. */
static onepass_status plan_weight(const onepass_call *call, tensors *all, job *job) {
    job->weight.data = NULL;
    if (!call->weight)
        return ONEPASS_OK;
    OK(onepass_read_tensor(call->weight, "weight", &all->weight));
    OK(onepass_check_broadcast(&all->weight, &all->common, common_name(job)));
    onepass_make_view(&all->weight, &all->common, &job->weight);
    if (all->weight.dtype == ONEPASS_F64)
        job->compute = ONEPASS_F64;
    return ONEPASS_OK;
}

static onepass_status plan_mask(const onepass_call *call, tensors *all, job *job) {
    job->mask.data = NULL;
    if (!call->mask)
        return ONEPASS_OK;
    OK(onepass_read_mask(call->mask, &all->mask));
    OK(onepass_check_broadcast(&all->mask, &all->common, common_name(job)));
    onepass_make_view(&all->mask, &all->common, &job->mask);
    return ONEPASS_OK;
}

/* Upstream gradient and value have one element, or with the reduction none the common shape. */
static onepass_status plan_reduced(const onepass_tensor *given, const char *name, const onepass_shape *common, job *job,
                                   tensor *tensor, view *view) {
    view->data = NULL;
    if (!given)
        return ONEPASS_OK;
    if (job->reduction == ONEPASS_NONE) {
        OK(onepass_read_tensor(given, name, tensor));
        OK(onepass_check_shape(tensor, common, "with the reduction none it"));
    } else {
        OK(onepass_read_scalar(given, name, tensor));
    }
    onepass_make_view(tensor, &tensor->shape, view);
    return ONEPASS_OK;
}

/* What a mean is divided by, as a tensor, and where to say what that was. */
static onepass_status plan_divisor_tensors(const onepass_call *call, tensors *all, job *job) {
    job->divisor_tensor.data = job->divided_by.data = NULL;
    if ((call->divisor_tensor || call->divided_by) && job->reduction != ONEPASS_MEAN)
        FAIL_ARGUMENT("%s is set, but only a mean is divided; expected null for this reduction",
                      call->divisor_tensor ? "divisor_tensor" : "divided_by");
    if (call->divisor_tensor && (call->divisor != 0 || job->over_elements))
        FAIL_ARGUMENT("divisor_tensor is set beside %s; expected one of them",
                      call->divisor != 0 ? "divisor" : "ONEPASS_OVER_ELEMENTS");
    if (call->divisor_tensor) {
        OK(onepass_read_scalar(call->divisor_tensor, "divisor_tensor", &all->divisor));
        onepass_make_view(&all->divisor, &all->divisor.shape, &job->divisor_tensor);
    }
    if (call->divided_by) {
        OK(onepass_read_scalar(call->divided_by, "divided_by", &all->divided_by));
        onepass_make_view(&all->divided_by, &all->divided_by.shape, &job->divided_by);
    }
    return ONEPASS_OK;
}

/* What only a loss over rows has; vectors have an axis too. */
static onepass_status check_row_fields(const onepass_call *call, const job *job) {
    const char *name = call->axis && job->family != FAMILY_VECTORS ? "axis"
                       : call->log_sum_exp                         ? "log_sum_exp"
                       : call->predicted                           ? "predicted"
                       : call->row_state                           ? "row_state"
                       : call->reserved                            ? "reserved"
                       : call->first_class                         ? "first_class"
                       : call->all_classes                         ? "all_classes"
                       : call->tile_sums                           ? "tile_sums"
                       : call->label_logit                         ? "label_logit"
                       : call->expected_upstream != 0              ? "expected_upstream"
                                                                   : NULL;
    if (name)
        FAIL_ARGUMENT("%s is set, but %s is no loss over rows; expected 0 or null", name, call->loss);
    return ONEPASS_OK;
}

#define MOST_OUTPUTS (8 + ONEPASS_MAX_OPERANDS)

/* Whatever is written against everything else. Tensors that are absent, as most are, span nothing. */
static onepass_status check_overlaps(const tensors *all, const job *job) {
    const tensor *output[MOST_OUTPUTS] = {&all->value};
    for (int32_t k = 0; k < ONEPASS_MAX_OPERANDS; k++)
        output[1 + k] = &all->gradient[k];
    output[MOST_OUTPUTS - 7] = &all->tile_sums; /* or inputs, which must be apart from all outputs too, ... */
    output[MOST_OUTPUTS - 6] = &all->label_logit;
    output[MOST_OUTPUTS - 5] = &all->divided_by;
    output[MOST_OUTPUTS - 4] = &all->log_sum_exp;
    output[MOST_OUTPUTS - 3] = &all->predicted;
    output[MOST_OUTPUTS - 2] = &all->row_state; /* ... as this one */
    output[MOST_OUTPUTS - 1] = &all->workspace;
    for (int32_t i = 0; i < MOST_OUTPUTS; i++) {
        if (output[i]->begin == output[i]->end)
            continue;
        for (int32_t k = 0; k < job->operand_count; k++)
            if (!(i == 1 + k && job->in_place[k]))
                OK(onepass_check_apart(output[i], &all->operand[k]));
        OK(onepass_check_apart(output[i], &all->weight));
        OK(onepass_check_apart(output[i], &all->mask));
        OK(onepass_check_apart(output[i], &all->upstream));
        OK(onepass_check_apart(output[i], &all->divisor));
        for (int32_t j = 0; j < i; j++)
            OK(onepass_check_apart(output[i], output[j]));
    }
    return ONEPASS_OK;
}

/* What would be lost if nothing were done must not be wanted, nor may a gradient have taken the place of what it would
 * be computed of. */
static onepass_status check_skip_if_one(const onepass_call *call, const job *job) {
    if (!(call->flags & ONEPASS_SKIP_IF_UPSTREAM_IS_ONE))
        return ONEPASS_OK;
    if (call->value)
        FAIL_ARGUMENT("value is set, but flags has ONEPASS_SKIP_IF_UPSTREAM_IS_ONE, with which nothing may be written; "
                      "expected null");
    if (!call->upstream || job->reduction == ONEPASS_NONE)
        FAIL_ARGUMENT("flags has ONEPASS_SKIP_IF_UPSTREAM_IS_ONE, which asks about an upstream gradient of one "
                      "element; expected one, "
                      "and a reduction to a mean or a sum");
    for (int32_t k = 0; k < ONEPASS_MAX_OPERANDS; k++)
        if (job->in_place[k])
            FAIL_MEMORY("%s lies over its operand, but flags has ONEPASS_SKIP_IF_UPSTREAM_IS_ONE, which may need that "
                        "operand again; "
                        "expected memory of its own",
                        onepass_gradient_name(job, k));
    return ONEPASS_OK;
}

/* What a mean is divided by. A batchmean is a mean with a divisor. */
static void plan_divisor(const onepass_shape *common, job *job) {
    if (job->reduction == ONEPASS_BATCHMEAN) {
        job->reduction = ONEPASS_MEAN;
        job->divisor = common->ndim > 0 ? (double)common->extent[0] : 1;
        job->over_weights = false;
        return;
    }
    const bool own_divisor = job->reduction != ONEPASS_MEAN || job->divisor != 0;
    const bool counts_weights = job->weight.data && !job->over_elements;
    const bool counts_labels = job->family == FAMILY_ROWS && job->loss->kind != ROW_PROBABILITIES;
    /* The weights of no elements sum to what their count is. */
    job->over_weights = !own_divisor && (counts_weights || counts_labels || job->mask.data) && job->count > 0;
    if (job->divisor_tensor.data)
        job->over_weights = true;
    if (!own_divisor)
        job->divisor = (double)job->count;
}

/* What a family has of its own. */
typedef struct family_plan {
    onepass_status (*operands)(const onepass_call *call, tensors *all, job *job);
    onepass_status (*outputs)(const onepass_call *call, tensors *all, job *job);
} family_plan;

static const family_plan family_plans[] = {
    [FAMILY_PAIRWISE] = {onepass_plan_pairwise_operands, onepass_plan_pairwise_gradients},
    [FAMILY_ROWS] = {onepass_plan_row_operands, onepass_plan_row_outputs},
    [FAMILY_VECTORS] = {onepass_plan_vector_operands, onepass_plan_vector_gradients}};

onepass_status onepass_plan(const onepass_call *call, job *job) {
    tensors all;
    OK(onepass_plan_loss(call, job));
    const family_plan *family = &family_plans[job->family];
    forget_absent(&all);
    place_workspace(call, &all.workspace);
    OK(onepass_check_operands(call, job));
    OK(family->operands(call, &all, job));
    OK(plan_weight(call, &all, job));
    OK(plan_mask(call, &all, job));
    OK(plan_reduced(call->upstream, "upstream", &all.common, job, &all.upstream, &job->upstream));
    OK(plan_reduced(call->value, "value", &all.common, job, &all.value, &job->value));
    if (call->value)
        OK(onepass_check_output(&all.value));
    for (int32_t k = 0; k < ONEPASS_MAX_OPERANDS; k++) {
        job->gradient[k].data = NULL;
        job->in_place[k] = false;
    }
    if (job->family != FAMILY_ROWS)
        OK(check_row_fields(call, job));
    OK(family->outputs(call, &all, job));
    OK(plan_divisor_tensors(call, &all, job));
    OK(check_overlaps(&all, job));
    OK(check_skip_if_one(call, job));
    if (!isfinite(call->expected_upstream))
        FAIL_ARGUMENT("expected_upstream is %g; expected a finite number", call->expected_upstream);
    job->expected_upstream = call->expected_upstream != 0 ? call->expected_upstream : 1;
    job->skip_if_one = call->flags & ONEPASS_SKIP_IF_UPSTREAM_IS_ONE;
    job->first = 0;
    job->count = all.common.count;
    job->sum = NULL;
    job->terms = NULL;
    plan_divisor(&all.common, job);
    return ONEPASS_OK;
}
