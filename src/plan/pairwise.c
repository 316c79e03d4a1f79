/* Operands and gradients of a loss whose every element has a value: they have one shape, to which they are broadcast.
 */
#include "message.h"
#include "plan/tensors.h"

onepass_status onepass_plan_pairwise_operands(const onepass_call *call, tensors *all, job *job) {
    for (int32_t k = 0; k < job->operand_count; k++) {
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

onepass_status onepass_plan_pairwise_gradients(const onepass_call *call, tensors *all, job *job) {
    for (int32_t k = 0; k < ONEPASS_MAX_OPERANDS; k++) {
        if (!call->gradient[k])
            continue;
        OK(onepass_read_tensor(call->gradient[k], onepass_gradient_name(job, k), &all->gradient[k]));
        OK(onepass_check_shape(&all->gradient[k], &all->common, "a gradient"));
        OK(onepass_check_output(&all->gradient[k]));
        onepass_make_view(&all->gradient[k], &all->common, &job->gradient[k]);
        job->in_place[k] = all->common.count > 0 && onepass_same_place(&all->gradient[k], &all->operand[k]);
    }
    return ONEPASS_OK;
}
