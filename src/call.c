/* A call but for its tensors: see call.h. */
#include "call.h"

#include "message.h"
#include "plan/tensors.h"
#include "sized.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

onepass_status onepass_read_call(const onepass_call *given, onepass_call *call) {
    if (!given)
        FAIL_ARGUMENT("call is null; expected a pointer to an onepass_call");
    if (!is_plausible_size(given->size, CALL_SIZE_0_1_0))
        FAIL_ARGUMENT(
            "call.size is %zu; expected sizeof(onepass_call), which is %zu here: begin with ONEPASS_CALL_INIT",
            given->size, sizeof *call);
    const size_t unknown = read_sized(call, sizeof *call, given, given->size);
    if (unknown)
        return onepass_fail(ONEPASS_NOT_SUPPORTED,
                            "call uses a field at byte %zu that this version (%s) does not know; update the library",
                            unknown, onepass_version_text());
    return ONEPASS_OK;
}

onepass_status onepass_check_flags(const onepass_call *call) {
    if (call->flags & ~(ONEPASS_SKIP_IF_UPSTREAM_IS_ONE | ONEPASS_OVER_ELEMENTS))
        return onepass_fail(ONEPASS_NOT_SUPPORTED,
                            "flags is %d; this version (%s) knows ONEPASS_SKIP_IF_UPSTREAM_IS_ONE (%d) and "
                            "ONEPASS_OVER_ELEMENTS (%d) alone, or 0",
                            call->flags, onepass_version_text(), ONEPASS_SKIP_IF_UPSTREAM_IS_ONE,
                            ONEPASS_OVER_ELEMENTS);
    return ONEPASS_OK;
}

onepass_status onepass_check_device(int32_t device, int32_t device_index) {
    if (device != ONEPASS_CPU && device != ONEPASS_CUDA)
        FAIL_ARGUMENT("device is %d; expected ONEPASS_CPU (0) or ONEPASS_CUDA (1)", device);
    if (device == ONEPASS_CPU && device_index != 0)
        FAIL_ARGUMENT("device_index is %d; expected 0 for the CPU", device_index);
    if (device_index < 0)
        FAIL_ARGUMENT("device_index is %d; expected the index of a GPU, from 0 on", device_index);
    return ONEPASS_OK;
}

/* A workspace holds numbers of 8 bytes; kernels may read two at a time. */
#define WORKSPACE_ALIGNMENT 16

static onepass_status check_workspace(const onepass_call *call) {
    if (!call->workspace && call->workspace_size)
        FAIL_ARGUMENT("workspace_size is %zu, but workspace is null; expected both or neither", call->workspace_size);
    if ((uintptr_t)call->workspace % WORKSPACE_ALIGNMENT != 0)
        FAIL_MEMORY("workspace is at %p, which is misaligned; expected a multiple of %d bytes", call->workspace,
                    WORKSPACE_ALIGNMENT);
    if ((uintptr_t)call->workspace > UINTPTR_MAX - call->workspace_size)
        FAIL_ARGUMENT("workspace_size is %zu, which reaches beyond the address space", call->workspace_size);
    return ONEPASS_OK;
}

onepass_status onepass_plan_place(const onepass_call *call, job *job) {
    OK(onepass_check_device(call->device, call->device_index));
    if (call->threads < 0)
        FAIL_ARGUMENT("threads is %d; expected a number of threads, or 0 to let the library decide", call->threads);
    if (call->device == ONEPASS_CPU && call->stream)
        FAIL_ARGUMENT("stream is set, but device is ONEPASS_CPU, which has no streams; expected null");
    if (call->device == ONEPASS_CPU && (call->workspace || call->workspace_size))
        FAIL_ARGUMENT("workspace is set, but device is ONEPASS_CPU, which needs none; expected null and size 0");
    OK(check_workspace(call));
    job->threads = call->threads;
    job->device_index = call->device_index;
    job->stream = call->stream;
    job->workspace = call->workspace;
    job->workspace_size = call->workspace_size;
    return ONEPASS_OK;
}

static onepass_status refuse_loss_name(const char *name) {
    if (!name)
        FAIL_ARGUMENT("loss is null; expected a name, \"%s\" for one", onepass_loss_at(0)->name);
    char names[1024];
    size_t used = 0;
    for (int32_t i = 0; onepass_loss_at(i) && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", onepass_loss_at(i)->name);
    for (int32_t i = 0; onepass_row_loss_at(i) && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, ", %s", onepass_row_loss_at(i)->name);
    for (int32_t i = 0; onepass_vector_loss_at(i) && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, ", %s", onepass_vector_loss_at(i)->name);
    FAIL_ARGUMENT("loss is \"%.64s\"; expected one of %s", name, names);
}

/* Powers and choices of vector losses are one of two numbers. */
static bool is_choice(const loss *loss, const onepass_parameter_info *known) {
    return loss->family == FAMILY_VECTORS && (strcmp(known->name, "p") == 0 || strcmp(known->name, "swap") == 0);
}

static onepass_status check_parameter(const loss *of, const onepass_parameter_info *known, double parameter) {
    const char *loss = of->info.name;
    if (isnan(parameter))
        FAIL_ARGUMENT("%s of %s is NaN; expected a number", known->name, loss);
    if (is_choice(of, known) && parameter != known->minimum && parameter != known->maximum)
        FAIL_ARGUMENT("%s of %s is %s; expected %s or %s", known->name, loss, onepass_in_digits(parameter).characters,
                      onepass_in_digits(known->minimum).characters, onepass_in_digits(known->maximum).characters);
    if (parameter < known->minimum || (known->minimum_excluded && parameter == known->minimum))
        FAIL_ARGUMENT("%s of %s is %s; expected %s %s", known->name, loss, onepass_in_digits(parameter).characters,
                      known->minimum_excluded ? "more than" : "at least", onepass_in_digits(known->minimum).characters);
    if (parameter > known->maximum || (known->maximum_excluded && parameter == known->maximum))
        FAIL_ARGUMENT("%s of %s is %s; expected %s %s", known->name, loss, onepass_in_digits(parameter).characters,
                      known->maximum_excluded ? "less than" : "at most", onepass_in_digits(known->maximum).characters);
    return ONEPASS_OK;
}

onepass_status onepass_plan_loss(const onepass_call *call, job *job) {
    OK(onepass_check_flags(call));
    job->loss = onepass_find_loss(call->loss);
    if (!job->loss)
        return refuse_loss_name(call->loss);
    job->family = job->loss->family;
    const onepass_loss_info *loss = &job->loss->info;
    job->operand_count = loss->operand_count;
    if (call->parameter_count < 0 || call->parameter_count > loss->parameter_count)
        FAIL_ARGUMENT("parameter_count is %d; %s takes 0 to %d parameters", call->parameter_count, loss->name,
                      loss->parameter_count);
    for (int32_t i = 0; i < ONEPASS_MAX_PARAMETERS; i++)
        job->parameter[i] = 0;
    for (int32_t i = 0; i < loss->parameter_count; i++) {
        const onepass_parameter_info *known = &loss->parameter[i];
        const double parameter = i < call->parameter_count ? call->parameter[i] : known->default_value;
        OK(check_parameter(job->loss, known, parameter));
        job->parameter[i] = parameter + 0.0; /* -0 is 0: compilers differ in what becomes of the sign in a choice */
    }
    if (job->family == FAMILY_ROWS)
        OK(onepass_plan_row_parameters(job));
    if (call->reduction < ONEPASS_MEAN || call->reduction > ONEPASS_BATCHMEAN)
        FAIL_ARGUMENT("reduction is %d; expected ONEPASS_MEAN (0), ONEPASS_SUM (1), ONEPASS_NONE (2) or "
                      "ONEPASS_BATCHMEAN (3)",
                      call->reduction);
    if (call->divisor != 0 && call->reduction != ONEPASS_MEAN)
        FAIL_ARGUMENT("divisor is %g, but only a mean is divided; expected 0 for this reduction", call->divisor);
    if (!isfinite(call->divisor) || call->divisor < 0)
        FAIL_ARGUMENT("divisor is %g; expected a positive number, or 0 to divide by the count", call->divisor);
    job->reduction = call->reduction;
    job->divisor = call->divisor;
    job->over_elements = call->flags & ONEPASS_OVER_ELEMENTS;
    if (job->over_elements && (call->reduction != ONEPASS_MEAN || call->divisor != 0))
        FAIL_ARGUMENT(
            "flags has ONEPASS_OVER_ELEMENTS, which says what a mean is divided by; expected ONEPASS_MEAN and "
            "no divisor");
    return onepass_plan_place(call, job);
}
