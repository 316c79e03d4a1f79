/*
 * The CUDA engine around the kernels: every pointer is known to be memory of the GPU
 * before anything is launched, and a job is one launch on the caller's stream, for which
 * nobody waits, or a few: what a mean is divided by may have to be found out first, and the terms of rows be added up.
 */
#include "cuda/launch.h"
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

/* What only a loss over rows has. */
static onepass_status check_row_pointers(const cuda_scope *scope, const job *job) {
    const row_job *rows = &job->rows;
    if (job->family != FAMILY_ROWS)
        return ONEPASS_OK;
    OK(check_view(scope, &rows->log_sum_exp, "log_sum_exp", job->count));
    OK(check_view(scope, &rows->predicted, "predicted", job->count));
    return rows->state && job->count > 0 ? check_pointer(scope, rows->state, "row_state") : ONEPASS_OK;
}

/* How many elements a loss has, and how many its k-th operand: rows have one for each class, labels one a row, class
 * weights one a class. */
static int64_t elements_of(const job *job) {
    const bool no_elements = (job->family == FAMILY_ROWS && job->rows.classes == 0) ||
                             (job->family == FAMILY_VECTORS && job->vectors.length == 0);
    return no_elements ? 0 : job->count;
}

static int64_t elements_of_operand(const job *job, int32_t k) {
    if (job->family == FAMILY_VECTORS)
        return k < job->loss->vectors || job->loss->has_label_lists ? elements_of(job)
               : k == ONEPASS_CLASS_WEIGHT && job->loss->has_labels ? job->vectors.length
                                                                    : job->count;
    if (job->family != FAMILY_ROWS || k == 0)
        return elements_of(job);
    if (k == 1)
        return job->loss->kind == ROW_PROBABILITIES ? elements_of(job) : job->count;
    return job->rows.classes;
}

/* All that the kernels will touch. */
onepass_status onepass_cuda_check_pointers(const cuda_scope *scope, const job *job) {
    const int64_t reduced = job->reduction == ONEPASS_NONE ? job->count : 1;
    for (int32_t k = 0; k < job->operand_count; k++)
        OK(check_view(scope, &job->operand[k], onepass_operand_name(job, k), elements_of_operand(job, k)));
    OK(check_view(scope, &job->weight, "weight", job->count));
    OK(check_view(scope, &job->mask, "mask", job->count));
    OK(check_view(scope, &job->upstream, "upstream", reduced));
    OK(check_view(scope, &job->value, "value", reduced));
    for (int32_t k = 0; k < ONEPASS_MAX_OPERANDS; k++)
        OK(check_view(scope, &job->gradient[k], onepass_gradient_name(job, k), elements_of(job)));
    OK(check_view(scope, &job->divisor_tensor, "divisor_tensor", 1));
    OK(check_view(scope, &job->divided_by, "divided_by", 1));
    OK(check_row_pointers(scope, job));
    return job->workspace ? check_pointer(scope, job->workspace, "workspace") : ONEPASS_OK;
}

/* --------------------------------------------------------------------- run -- */

/* Beyond ONEPASS_WORKSPACE_SIZE. */
static const char *what_rows_need(const job *job) {
    if (job->family == FAMILY_ROWS)
        return ", with 48 bytes a row more for a loss over rows";
    if (job->family != FAMILY_VECTORS)
        return "";
    return job->loss->has_softmaxes
               ? ", with 160 bytes a row more for a comparison of logits, and 64 for every 1024 elements of a row"
               : ", with 56 bytes a row more for a vector loss, and 24 for every 32768 elements of a row";
}

onepass_status onepass_cuda_find_workspace(const job *job, const cuda_scope *scope, cuda_state *state, size_t size,
                                           bool alone, cuda_loan *loan) {
    *loan = (cuda_loan){0};
    if (size == 0)
        return ONEPASS_OK;
    if (!job->workspace)
        return onepass_cuda_borrow(scope->driver, &state->workspaces, job->stream, size, alone, loan);
    if (job->workspace_size < size)
        return onepass_fail(ONEPASS_INVALID_ARGUMENT,
                            "workspace_size is %zu; this call needs %zu bytes, and ONEPASS_WORKSPACE_SIZE (%d) is "
                            "enough for every call%s",
                            job->workspace_size, size, ONEPASS_WORKSPACE_SIZE, what_rows_need(job));
    loan->memory = (cuda_pointer)job->workspace;
    return ONEPASS_OK;
}

/* The kernels of a job's launches. */
typedef struct steps {
    cuda_function kernel[CUDA_MOST_STEPS];
    int count;
    size_t workspace;
} steps;

/* Looks up every kernel, and leaves the plan of the last launch. */
static onepass_status plan_steps(const job *job, const cuda_scope *scope, cuda_state *state, steps *steps,
                                 cuda_launch *launch) {
    *steps = (struct steps){0};
    while (onepass_cuda_plan_step(job, steps->count, &state->limits, launch)) {
        if (launch->blocks)
            OK(onepass_cuda_kernel(scope, state, launch, &steps->kernel[steps->count]));
        if (steps->workspace < launch->workspace)
            steps->workspace = launch->workspace;
        steps->count++;
    }
    return ONEPASS_OK;
}

onepass_status onepass_cuda_take_step(const cuda_driver *driver, cuda_launch *launch, cuda_function kernel,
                                      cuda_pointer workspace, cuda_stream stream, bool overlaps) {
    const cuda_attribute overlap = {.which = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, .value.number = 1};
    const cuda_config config = {.blocks = {launch->blocks, 1, 1},
                                .threads = {launch->threads, 1, 1},
                                .shared_memory = launch->shared_memory,
                                .stream = stream,
                                .attributes = overlaps ? &overlap : NULL,
                                .attribute_count = overlaps};
    if (launch->blocks == 0)
        return ONEPASS_OK;
    onepass_cuda_give_workspace(launch, (void *)workspace);
    return onepass_cuda_check(driver, driver->cuLaunchKernelEx(&config, kernel, (void *[]){&launch->parameter}, NULL),
                              "launching the kernel onepass_%s_%s", launch->loss->info.name,
                              onepass_cuda_variant[launch->variant].name);
}

/* Whether a launch may begin while the one before it ends: its kernel waits for that by itself. Of those in double
 * there may be nothing but code for older GPUs, which have no such instruction. */
static bool may_overlap(const cuda_launch *launch, const cuda_limits *limits) {
    return limits->overlaps && launch->compute == ONEPASS_F32 &&
           onepass_cuda_variant[launch->variant].kind >= FIRST_KIND_THAT_WAITS;
}

/* Whatever can be refused is so before the first launch. If then a later one fails, those before have written to the
 * workspace, and may have to outputs of the call. A launch that is the only one is planned once. */
static onepass_status run_here(const job *job, const cuda_scope *scope) {
    cuda_state *state;
    steps steps;
    cuda_launch launch;
    cuda_loan loan;
    OK(onepass_cuda_check_pointers(scope, job));
    OK(onepass_cuda_state(scope, &state));
    OK(plan_steps(job, scope, state, &steps, &launch));
    OK(onepass_cuda_find_workspace(job, scope, state, steps.workspace, steps.count > 1, &loan));
    onepass_status status = ONEPASS_OK;
    bool launched = false;
    for (int i = 0; i < steps.count && status == ONEPASS_OK; i++) {
        if (steps.count > 1)
            onepass_cuda_plan_step(job, i, &state->limits, &launch);
        status = onepass_cuda_take_step(scope->driver, &launch, steps.kernel[i], loan.memory, job->stream,
                                        launched && may_overlap(&launch, &state->limits));
        launched |= launch.blocks > 0;
    }
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
