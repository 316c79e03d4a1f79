/* The plan of onepass_scale: gradients of one call, multiplied in place by an upstream gradient of one element. */
#include "call.h"
#include "message.h"
#include "plan/plan.h"
#include "tensor.h"

/* A call that only scales gradients describes nothing else; a field that is set was meant for another function. */
static onepass_status check_scale_only(const onepass_call *call) {
    const char *name = call->loss                             ? "loss"
                       : call->parameter_count                ? "parameter_count"
                       : call->reduction                      ? "reduction"
                       : call->divisor != 0                   ? "divisor"
                       : call->operand[0]                     ? "operand[0], the prediction,"
                       : call->operand[1]                     ? "operand[1], the target,"
                       : call->operand[2] || call->operand[3] ? "operand[2] or operand[3]"
                       : call->weight                         ? "weight"
                       : call->mask                           ? "mask"
                       : call->value                          ? "value"
                       : call->gradient[MOST_OPERANDS]        ? "gradient[3]"
                       : call->flags                          ? "flags"
                                                              : NULL;
    if (name)
        FAIL_ARGUMENT("%s is set; onepass_scale multiplies gradients by upstream and takes nothing else, so it must be "
                      "null or 0",
                      name);
    if (!call->gradient[0] && !call->gradient[1] && !call->gradient[2])
        FAIL_ARGUMENT("nothing is to be scaled: gradient[0] to gradient[2] are null; expected at least one");
    return ONEPASS_OK;
}

/* A 16-bit gradient was rounded before it is scaled, so it would have other bits. */
static onepass_status check_scalable(const tensor *gradient) {
    if (gradient->dtype != ONEPASS_F32 && gradient->dtype != ONEPASS_F64)
        return onepass_fail(ONEPASS_NOT_SUPPORTED,
                            "%s has 16 bits an element and was rounded to them before upstream was known; compute it "
                            "anew with upstream instead",
                            gradient->name);
    return ONEPASS_OK;
}

/* Two gradients are those of one call, so they have one shape, and one type if they can be scaled at all. */
static onepass_status check_pair(const tensor *first, const tensor *second) {
    if (first->dtype != second->dtype)
        FAIL_ARGUMENT("%s and %s have different types; gradients of one call that can be scaled have one, that of the "
                      "computation",
                      first->name, second->name);
    OK(onepass_check_same_shape(first, second));
    return onepass_check_apart(first, second);
}

static onepass_status plan_scaled(const onepass_call *call, tensor *gradient, job *job) {
    for (int32_t k = 0; k < MOST_OPERANDS; k++) {
        if (!call->gradient[k])
            continue;
        OK(onepass_read_tensor(call->gradient[k], onepass_gradient_name(job, k), &gradient[k]));
        OK(onepass_check_output(&gradient[k]));
        OK(check_scalable(&gradient[k]));
        onepass_make_view(&gradient[k], &gradient[k].shape, &job->gradient[k]);
        job->compute = gradient[k].dtype;
        job->count = gradient[k].shape.count;
        for (int32_t j = 0; j < k; j++)
            if (call->gradient[j])
                OK(check_pair(&gradient[j], &gradient[k]));
    }
    return ONEPASS_OK;
}

onepass_status onepass_plan_scale(const onepass_call *call, job *job) {
    tensor gradient[MOST_OPERANDS], upstream;
    OK(onepass_check_flags(call));
    OK(check_scale_only(call));
    *job = (struct job){.family = FAMILY_SCALE, .reduction = ONEPASS_SUM, .divisor = 1};
    OK(onepass_plan_place(call, job));
    OK(onepass_read_scalar(call->upstream, "upstream", &upstream));
    OK(plan_scaled(call, gradient, job));
    onepass_make_view(&upstream, &upstream.shape, &job->upstream);
    for (int32_t k = 0; k < MOST_OPERANDS; k++)
        if (call->gradient[k])
            OK(onepass_check_apart(&gradient[k], &upstream));
    return ONEPASS_OK;
}
