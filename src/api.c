/* The public functions: each clears the thread's message, has its call planned and hands the job to an engine. */
#include "call.h"
#include "float_state.h"
#include "message.h"
#include "plan/plan.h"
#include "sized.h"

onepass_status onepass_machine(onepass_machine_info *info) {
    onepass_succeed();
    if (!info)
        FAIL_ARGUMENT("info is null; expected a pointer to an onepass_machine_info");
    if (!is_plausible_size(info->size, MACHINE_INFO_SIZE_0_1_0))
        FAIL_ARGUMENT("info.size is %zu; expected sizeof(onepass_machine_info), which is %zu here", info->size,
                      sizeof *info);
    onepass_machine_info all = {.size = info->size};
    OK(onepass_engine(ONEPASS_CPU)->describe(&all));
    OK(onepass_engine(ONEPASS_CUDA)->describe(&all));
    write_sized(info, all.size, &all, sizeof all);
    return ONEPASS_OK;
}

static bool has_outputs(const onepass_call *call) {
    bool any = call->value || call->tile_sums;
    for (int32_t k = 0; k < ONEPASS_MAX_OPERANDS; k++)
        any |= call->gradient[k] != NULL;
    return any;
}

ARITHMETIC onepass_status run(const onepass_call *given) {
    onepass_call call;
    job job;
    onepass_succeed();
    OK(onepass_read_call(given, &call));
    OK(onepass_plan(&call, &job));
    if (!has_outputs(&call))
        FAIL_ARGUMENT("nothing is asked for: value and gradients are null; expected at least one output");
    return onepass_engine(call.device)->run(&job);
}

ARITHMETIC onepass_status scale(const onepass_call *given) {
    onepass_call call;
    job job;
    onepass_succeed();
    OK(onepass_read_call(given, &call));
    OK(onepass_plan_scale(&call, &job));
    return onepass_engine(call.device)->run(&job);
}

/* In our own floating-point state from the first comparison on: flushed to zero, a divisor may look like one that was
 * not given. */

onepass_status onepass_run(const onepass_call *call) {
    const float_state callers = enter_float_state();
    const onepass_status status = run(call);
    leave_float_state(callers);
    return status;
}

onepass_status onepass_scale(const onepass_call *call) {
    const float_state callers = enter_float_state();
    const onepass_status status = scale(call);
    leave_float_state(callers);
    return status;
}

onepass_status onepass_prepare(int32_t device, int32_t device_index) {
    onepass_succeed();
    OK(onepass_check_device(device, device_index));
    return onepass_engine(device)->prepare(device_index);
}

/* ------------------------------------------------------ the common cases -- */

onepass_status onepass_forward(const char *loss, onepass_reduction reduction, const onepass_tensor *prediction,
                               const onepass_tensor *target, const onepass_tensor *value) {
    return onepass_run(&(onepass_call){.size = sizeof(onepass_call),
                                       .loss = loss,
                                       .reduction = (int32_t)reduction,
                                       .operand = {prediction, target},
                                       .value = value});
}

onepass_status onepass_backward(const char *loss, onepass_reduction reduction, const onepass_tensor *prediction,
                                const onepass_tensor *target, const onepass_tensor *upstream,
                                const onepass_tensor *gradient_prediction, const onepass_tensor *gradient_target) {
    return onepass_run(&(onepass_call){.size = sizeof(onepass_call),
                                       .loss = loss,
                                       .reduction = (int32_t)reduction,
                                       .operand = {prediction, target},
                                       .upstream = upstream,
                                       .gradient = {gradient_prediction, gradient_target}});
}

onepass_status onepass_forward_backward(const char *loss, onepass_reduction reduction, const onepass_tensor *prediction,
                                        const onepass_tensor *target, const onepass_tensor *value,
                                        const onepass_tensor *gradient_prediction) {
    return onepass_run(&(onepass_call){.size = sizeof(onepass_call),
                                       .loss = loss,
                                       .reduction = (int32_t)reduction,
                                       .operand = {prediction, target},
                                       .value = value,
                                       .gradient = {gradient_prediction}});
}

/* The library never writes through an operand's pointer, so the const goes no further than this. */
static onepass_tensor vector_f32(const float *data, const int64_t *count) {
    return (onepass_tensor){.data = (void *)(uintptr_t)data, .dtype = ONEPASS_F32, .ndim = 1, .shape = count};
}

onepass_status onepass_mean_f32(const char *loss, int64_t count, const float *prediction, const float *target,
                                float *value, float *gradient) {
    const onepass_tensor p = vector_f32(prediction, &count), t = vector_f32(target, &count);
    const onepass_tensor g = vector_f32(gradient, &count), v = {.data = value, .dtype = ONEPASS_F32};
    return onepass_run(&(onepass_call){.size = sizeof(onepass_call),
                                       .loss = loss,
                                       .reduction = ONEPASS_MEAN,
                                       .operand = {&p, &t},
                                       .value = value ? &v : NULL,
                                       .gradient = {gradient ? &g : NULL}});
}
