/*
 * The mean cross-entropy of rows of float logits, from their strides to the launches, as one translation unit: the twin
 * of mean.cu. Kernels, plan and views are the library's own, so the bits are too.
 */
#include "rows.h"

#include "cuda/kernel.h"
#include "cuda/row_kernel.h"
#include "cuda/rows/weights.h"

/* The kernels that compute the mean of floats, as kernels.def has them, and no others. */
#define ROW_LOSS(name, target, ...)                                                                                    \
    ROW_LOSS_TYPE(name, target)                                                                                        \
    MAKE_ROW_KERNEL(name, rows_any, row, 4, 3)                                                                         \
    MAKE_ROW_KERNEL(name, rows_forward, row, 4, 8)                                                                     \
    MAKE_ROW_KERNEL(name, rows_simple_forward, row, 4, CUDA_SIMPLE_BLOCKS)                                             \
    MAKE_ROW_KERNEL(name, rows_loose_forward, row, 4, 8)                                                               \
    MAKE_ROW_KERNEL(name, rows_aside, row, CUDA_ASIDE_WARPS, 4)                                                        \
    MAKE_ROW_KERNEL(name, rows_aside_wide, row, 32, 1)                                                                 \
    MAKE_ROW_KERNEL(name, rows_teams_forward, row, CUDA_TEAM_WARPS, CUDA_TEAM_BLOCKS)                                  \
    MAKE_ROW_KERNEL(name, rows_few_forward, row, 4, 6)                                                                 \
    MAKE_ROW_KERNEL(name, rows_fewer_forward, row, 4, 8)
#include ONEPASS_UNIT_HEADER
#undef ROW_LOSS

/* How many rows count, ... */
extern "C" __global__ void __launch_bounds__(256) onepass_rows_row_count(const __grid_constant__ cuda_row job) {
    run_row_count(&job);
}

/* ... and the sum of their values. */
#include "terms.h"

/* Numbers in memory are float here, but for labels, whose size the plan does not ask for. */
#define dtype_size(dtype)      sizeof(float)
#define ONEPASS_HAS_SIZED_ROWS 0
#include "cuda/plan.c"
#include "cuda/shape.c"
#include "cuda/row_variant.c"
#include "cuda/row_shape.c"
#include "cuda/rows.c"
int onepass_cuda_vector_steps(const job *job, const cuda_limits *limits) { /* there are no vectors */
    (void)job;
    (void)limits;
    return 0;
}
void onepass_cuda_plan_vectors(const job *job, int step, const cuda_limits *limits, cuda_launch *launch) {
    (void)job;
    (void)step;
    (void)limits;
    (void)launch;
}
#include "cuda/variant.c"
#include "plan/weights.c"
#include "launch.h"
const cuda_images onepass_cuda_images_every_loss = {NULL, NULL};

/* The plan asks which slopes need a logarithm; there are none. */
static void no_slopes(const row_sums *row, const double *parameter, row_slopes *slopes) {
    (void)row;
    (void)parameter;
    (void)slopes;
}

static loss make_loss() {
    loss made = {};
    made.info.name = "cross_entropy";
    made.info.operand_count = 3;
    made.family = FAMILY_ROWS;
    made.kind = ROW_LABEL;
    made.row = no_slopes;
    return made;
}
static const loss the_loss = make_loss();

static view view_of(const void *data, int32_t dtype, int64_t count, int64_t stride) {
    view view = {};
    view.data = const_cast<void *>(data);
    view.dtype = dtype;
    view.ndim = 1;
    view.shape[0] = count;
    view.stride[0] = stride;
    return view;
}

/* As PyTorch's defaults are: ignore_index -100, no smoothing, the mean over the rows that count. */
static job job_of(const rows_call *call) {
    job job = {};
    job.family = FAMILY_ROWS;
    job.loss = &the_loss;
    job.operand_count = 3;
    job.reduction = ONEPASS_MEAN;
    job.compute = ONEPASS_F32;
    job.count = call->rows;
    job.operand[0] = view_of(call->predictions, ONEPASS_F32, call->rows, call->row_stride);
    job.operand[1] = view_of(call->targets, ONEPASS_I64, call->rows, call->target_stride);
    job.value = view_of(call->value, ONEPASS_F32, 1, 1);
    job.divisor = (double)call->rows;
    job.over_weights = call->rows > 0;
    job.parameter[0] = -100;
    job.parameter[4] = 1; /* temperature */
    job.rows.axis = 1;
    job.rows.classes = job.rows.shard.all_classes = call->classes;
    job.rows.class_stride[0] = call->class_stride;
    job.rows.ignore_index = -100;
    job.rows.scale.factor = WIDE_LOG2_E;
    job.rows.scale.factor_low = WIDE_LOG2_E_LOW;
    job.rows.scale.per_temperature = 1;
    return job;
}

static const void *kernel_of(const cuda_launch *launch) {
    switch (launch->variant) {
    case variant_rows_forward:
        return (const void *)onepass_cross_entropy_rows_forward;
    case variant_rows_simple_forward:
        return (const void *)onepass_cross_entropy_rows_simple_forward;
    case variant_rows_loose_forward:
        return (const void *)onepass_cross_entropy_rows_loose_forward;
    case variant_rows_aside:
        return (const void *)onepass_cross_entropy_rows_aside;
    case variant_rows_aside_wide:
        return (const void *)onepass_cross_entropy_rows_aside_wide;
    case variant_rows_teams_forward:
        return (const void *)onepass_cross_entropy_rows_teams_forward;
    case variant_rows_few_forward:
        return (const void *)onepass_cross_entropy_rows_few_forward;
    case variant_rows_fewer_forward:
        return (const void *)onepass_cross_entropy_rows_fewer_forward;
    case variant_rows_any:
        return (const void *)onepass_cross_entropy_rows_any;
    case variant_row_count:
        return (const void *)onepass_rows_row_count;
    case variant_total:
        return (const void *)onepass_rows_total;
    case variant_forward:
        return (const void *)onepass_weights_forward;
    case variant_weighted_forward:
        return (const void *)onepass_weights_weighted_forward;
    case variant_general:
        return (const void *)onepass_weights_general;
    default:
        return NULL; /* which the launch refuses */
    }
}

cudaError_t rows_launch(const rows_call *call) {
    const job job = job_of(call);
    cuda_launch launch;
    int multiprocessors;
    OK(count_multiprocessors(&multiprocessors));
    OK(clear_counters(call->workspace, call->stream));
    const cuda_limits limits = {multiprocessors, 0};
    for (int step = 0; onepass_cuda_plan_step(&job, step, &limits, &launch); step++)
        OK(launch_planned(kernel_of(&launch), &launch, call->workspace, call->stream));
    return cudaSuccess;
}
