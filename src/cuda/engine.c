/*
 * The CUDA engine around the kernels: every pointer is known to be memory of the GPU
 * before anything is launched, and a job is one launch on the caller's stream, for which
 * nobody waits; two, if it is divided by the sum of its weights.
 */
#include "cuda/context.h"
#include "cuda/image.h"
#include "cuda/plan.h"

/* ---------------------------------------------------------------- pointers -- */

/* Memory of this GPU, or managed memory. */
static onepass_status check_pointer(const cuda_scope *scope, const void *data, const char *name) {
    int attribute[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                       CU_POINTER_ATTRIBUTE_IS_MANAGED};
    unsigned type = 0, is_managed = 0;
    int gpu = -1;
    void *answer[] = {&type, &gpu, &is_managed};
    const cuda_driver *driver = scope->driver;
    OK(onepass_cuda_check(driver, driver->cuPointerGetAttributes(3, attribute, answer, (cuda_pointer)data),
                          "asking where %s lies", name));
    if (is_managed || (type == CU_MEMORYTYPE_DEVICE && gpu == scope->gpu))
        return ONEPASS_OK;
    if (type == CU_MEMORYTYPE_DEVICE)
        return onepass_fail(ONEPASS_INVALID_MEMORY, "%s is in memory of GPU %d; expected memory of GPU %d", name, gpu,
                            scope->gpu);
    return onepass_fail(ONEPASS_INVALID_MEMORY, "%s is in %s; expected memory of GPU %d", name,
                        type == CU_MEMORYTYPE_HOST ? "pinned host memory"
                                                   : "host memory, or in none that the CUDA driver knows",
                        scope->gpu);
}

static onepass_status check_view(const cuda_scope *scope, const view *view, const char *name, int64_t count) {
    return view->data && count > 0 ? check_pointer(scope, view->data, name) : ONEPASS_OK;
}

/* All that the kernels will touch. */
static onepass_status check_pointers(const cuda_scope *scope, const job *job) {
    const int64_t reduced = job->reduction == ONEPASS_NONE ? job->count : 1;
    for (int32_t k = 0; k < job->operand_count; k++)
        OK(check_view(scope, &job->operand[k], onepass_operand_name(job, k), job->count));
    OK(check_view(scope, &job->weight, "weight", job->count));
    OK(check_view(scope, &job->mask, "mask", job->count));
    OK(check_view(scope, &job->upstream, "upstream", reduced));
    OK(check_view(scope, &job->value, "value", reduced));
    for (int32_t k = 0; k < ONEPASS_MAX_OPERANDS; k++)
        OK(check_view(scope, &job->gradient[k], onepass_gradient_name[k], job->count));
    return job->workspace ? check_pointer(scope, job->workspace, "workspace") : ONEPASS_OK;
}

/* --------------------------------------------------------------------- run -- */

static onepass_status find_workspace(const job *job, const cuda_scope *scope, cuda_state *state, size_t size,
                                     cuda_loan *loan) {
    *loan = (cuda_loan){0};
    if (size == 0)
        return ONEPASS_OK;
    if (!job->workspace)
        return onepass_cuda_borrow(scope->driver, &state->workspaces, job->stream, size, job->over_weights, loan);
    if (job->workspace_size < size)
        return onepass_fail(ONEPASS_INVALID_ARGUMENT,
                            "workspace_size is %zu; this call needs %zu bytes, and ONEPASS_WORKSPACE_SIZE (%d) is "
                            "enough for every call",
                            job->workspace_size, size, ONEPASS_WORKSPACE_SIZE);
    loan->memory = (cuda_pointer)job->workspace;
    return ONEPASS_OK;
}

/* A launch with its kernel. */
typedef struct step {
    cuda_launch launch;
    cuda_function kernel;
} step;

static onepass_status plan_step(const job *job, const cuda_scope *scope, cuda_state *state, step *step) {
    onepass_cuda_plan(job, state->multiprocessors, &step->launch);
    return step->launch.blocks ? onepass_cuda_kernel(scope, state, &step->launch, &step->kernel) : ONEPASS_OK;
}

static onepass_status plan_weights(const job *job, const cuda_scope *scope, cuda_state *state, step *step) {
    struct job weights;
    onepass_plan_weights(job, &weights);
    return plan_step(&weights, scope, state, step);
}

static onepass_status take_step(const cuda_driver *driver, step *step, cuda_pointer workspace, cuda_stream stream) {
    cuda_launch *launch = &step->launch;
    onepass_cuda_give_workspace(launch, (void *)workspace);
    return onepass_cuda_check(
        driver,
        driver->cuLaunchKernel(step->kernel, launch->blocks, 1, 1, launch->threads, 1, 1, launch->shared_memory, stream,
                               (void *[]){&launch->parameter}, NULL),
        "launching the kernel onepass_%s_%s", launch->loss->info.name, onepass_cuda_variant[launch->variant].name);
}

/* Whatever can be refused is so before the first launch. If then the second fails, the first has written nothing but
 * the workspace. */
static onepass_status run_here(const job *job, const cuda_scope *scope) {
    cuda_state *state;
    step whole, weights;
    cuda_loan loan;
    OK(check_pointers(scope, job));
    OK(onepass_cuda_state(scope, &state));
    OK(plan_step(job, scope, state, &whole));
    if (whole.launch.blocks == 0)
        return ONEPASS_OK;
    size_t workspace = whole.launch.workspace;
    if (job->over_weights) {
        OK(plan_weights(job, scope, state, &weights));
        if (workspace < weights.launch.workspace)
            workspace = weights.launch.workspace;
    }
    OK(find_workspace(job, scope, state, workspace, &loan));
    onepass_status status = ONEPASS_OK;
    if (job->over_weights)
        status = take_step(scope->driver, &weights, loan.memory, job->stream);
    if (status == ONEPASS_OK)
        status = take_step(scope->driver, &whole, loan.memory, job->stream);
    onepass_cuda_return(scope->driver, &state->workspaces, job->stream, &loan);
    return status;
}

static onepass_status cuda_run(const job *job) {
    cuda_scope scope;
    OK(onepass_cuda_enter(job->device_index, &scope));
    return onepass_cuda_leave(&scope, run_here(job, &scope));
}

static onepass_status cuda_prepare(int32_t device_index) {
    cuda_scope scope;
    cuda_state *state;
    OK(onepass_cuda_enter(device_index, &scope));
    return onepass_cuda_leave(&scope, onepass_cuda_state(&scope, &state));
}

static onepass_status cuda_describe(onepass_machine_info *info) {
    const cuda_driver *driver = onepass_cuda_driver();
    info->gpu_reason = onepass_cuda_reason(driver);
    const bool is_usable = info->gpu_reason[0] == '\0';
    info->gpu_count = is_usable ? driver->gpu_count : 0;
    info->gpu_names = is_usable ? driver->gpu_names : "";
    info->gpu_driver = driver->version;
    info->gpu_toolkit = onepass_cuda_toolkit;
    return ONEPASS_OK;
}

const engine onepass_cuda_engine = {"cuda", cuda_run, cuda_prepare, cuda_describe};
