/* The plan of a loss whose every element has a value: its tensors, what may overlap, what a mean is divided by. */
#include "call.h"
#include "message.h"
#include "plan/plan.h"
#include "tensor.h"

/* The tensors of a call, checked one by one: operands first, then weight, mask, upstream, value, gradients. The
 * workspace is none of them, but has a place in memory like them. */
typedef struct tensors {
    tensor operand[ONEPASS_MAX_OPERANDS];
    tensor weight, mask, upstream, value;
    tensor gradient[ONEPASS_MAX_OPERANDS];
    tensor workspace;
    onepass_shape common;
} tensors;

/* An absent tensor spans nothing. The rest of it is never looked at, and zeroing all of it took a tenth of a small
 * call. */
static void forget_absent(tensors *all) {
    all->weight.begin = all->weight.end = all->mask.begin = all->mask.end = 0;
    all->upstream.begin = all->upstream.end = 0;
    all->value.begin = all->value.end = 0;
    for (int32_t k = 0; k < ONEPASS_MAX_OPERANDS; k++)
        all->gradient[k].begin = all->gradient[k].end = 0;
}

static void place_workspace(const onepass_call *call, tensor *workspace) {
    workspace->name = "workspace";
    workspace->begin = (uintptr_t)call->workspace;
    workspace->end = workspace->begin + call->workspace_size;
}

static onepass_status plan_operands(const onepass_call *call, tensors *all, job *job) {
    for (int32_t k = 0; k < ONEPASS_MAX_OPERANDS; k++) {
        if (k >= job->operand_count && (call->operand[k] || call->gradient[k]))
            return onepass_fail(ONEPASS_NOT_SUPPORTED, "%s[%d] is set; %s has %d operands, so it must be null",
                                call->operand[k] ? "operand" : "gradient", k, call->loss, job->operand_count);
        if (k >= job->operand_count)
            continue;
        if (!call->operand[k])
            FAIL_ARGUMENT("operand[%d], the %s, is null; expected a tensor", k, onepass_operand_name(job, k));
        OK(onepass_read_tensor(call->operand[k], onepass_operand_name(job, k), &all->operand[k]));
    }
    OK(onepass_common_shape(all->operand, job->operand_count, &all->common));
    job->compute = ONEPASS_F32;
    for (int32_t k = 0; k < job->operand_count; k++) {
        onepass_make_view(&all->operand[k], &all->common, &job->operand[k]);
        if (all->operand[k].dtype == ONEPASS_F64)
            job->compute = ONEPASS_F64;
    }
    return ONEPASS_OK;
}

/* A weight is broadcast to the common shape and has no part in it. */
static onepass_status plan_weight(const onepass_call *call, tensors *all, job *job) {
    job->weight.data = NULL;
    if (!call->weight)
        return ONEPASS_OK;
    OK(onepass_read_tensor(call->weight, "weight", &all->weight));
    OK(onepass_check_broadcast(&all->weight, &all->common));
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
    OK(onepass_check_broadcast(&all->mask, &all->common));
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

static onepass_status plan_gradients(const onepass_call *call, tensors *all, job *job) {
    for (int32_t k = 0; k < ONEPASS_MAX_OPERANDS; k++) {
        job->gradient[k].data = NULL;
        job->in_place[k] = false;
        if (!call->gradient[k])
            continue;
        OK(onepass_read_tensor(call->gradient[k], onepass_gradient_name[k], &all->gradient[k]));
        OK(onepass_check_shape(&all->gradient[k], &all->common, "a gradient"));
        OK(onepass_check_output(&all->gradient[k]));
        onepass_make_view(&all->gradient[k], &all->common, &job->gradient[k]);
        job->in_place[k] = all->common.count > 0 && onepass_same_place(&all->gradient[k], &all->operand[k]);
    }
    return ONEPASS_OK;
}

#define MOST_OUTPUTS (2 + ONEPASS_MAX_OPERANDS)

/* Whatever is written against everything else. Tensors that are absent, as most are, span nothing. */
static onepass_status check_overlaps(const tensors *all, const job *job) {
    const tensor *output[MOST_OUTPUTS] = {&all->value};
    for (int32_t k = 0; k < ONEPASS_MAX_OPERANDS; k++)
        output[1 + k] = &all->gradient[k];
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
                        onepass_gradient_name[k]);
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
    /* The weights of no elements sum to what their count is. */
    job->over_weights = !own_divisor && (counts_weights || job->mask.data) && job->count > 0;
    if (!own_divisor)
        job->divisor = (double)job->count;
}

onepass_status onepass_plan(const onepass_call *call, job *job) {
    tensors all;
    OK(onepass_plan_loss(call, job));
    forget_absent(&all);
    place_workspace(call, &all.workspace);
    OK(plan_operands(call, &all, job));
    OK(plan_weight(call, &all, job));
    OK(plan_mask(call, &all, job));
    OK(plan_reduced(call->upstream, "upstream", &all.common, job, &all.upstream, &job->upstream));
    OK(plan_reduced(call->value, "value", &all.common, job, &all.value, &job->value));
    if (call->value)
        OK(onepass_check_output(&all.value));
    OK(plan_gradients(call, &all, job));
    OK(check_overlaps(&all, job));
    OK(check_skip_if_one(call, job));
    job->skip_if_one = call->flags & ONEPASS_SKIP_IF_UPSTREAM_IS_ONE;
    job->first = 0;
    job->count = all.common.count;
    job->sum = NULL;
    plan_divisor(&all.common, job);
    return ONEPASS_OK;
}
