/*
 * The mean triplet margin loss of rows of float vectors, from their strides to the launches, as one translation unit:
 * the twin of mean.cu. Kernels, plan and views are the library's own, so the bits are too.
 */
#include "vectors.h"

#include "cuda/kernel.h"
#include "cuda/vector_kernel.h"
#include <string.h>

/* The kernels that compute the mean of floats, and no others. */
#define VECTOR_LOSS(name, operands, vector_count, sum_count, length, ...)                                              \
    VECTOR_LOSS_TYPE(name, operands, vector_count, sum_count, length)                                                  \
    MAKE_VECTOR_KERNEL(name, vectors_any_sums, vector, 4, 1)                                                           \
    MAKE_VECTOR_KERNEL(name, vectors_finish, vector, 8, 1)                                                             \
    MAKE_VECTOR_KERNEL(name, vectors_narrow, vector, 8, 2)                                                             \
    MAKE_VECTOR_KERNEL(name, vectors_sums, vector, 8, 2)
#include ONEPASS_UNIT_HEADER
#undef VECTOR_LOSS

/* And the sum of the rows' values. */
#include "terms.h"

/* All numbers in memory are float here. */
#define dtype_size(dtype) sizeof(float)
#include "cuda/plan.c"
#include "cuda/shape.c"
#include "cuda/row_variant.c"
#include "cuda/row_shape.c"
#include "cuda/rows.c"
namespace of_vectors { /* which has names of rows.c */
#include "cuda/vectors.c"
}
int onepass_cuda_vector_steps(const job *job, const cuda_limits *limits) {
    return of_vectors::onepass_cuda_vector_steps(job, limits);
}
void onepass_cuda_plan_vectors(const job *job, int step, const cuda_limits *limits, cuda_launch *launch) {
    of_vectors::onepass_cuda_plan_vectors(job, step, limits, launch);
}
#include "cuda/variant.c"
#include "plan/weights.c"
#include "launch.h"
const cuda_images onepass_cuda_images_every_loss = {NULL, NULL};

/* As the header has it, which is the GPU's alone here. */
static void usual(double *parameter) {
    parameter[1] = 2;
    parameter[3] = 0;
}

static loss make_loss() {
    loss made = {};
    made.info.name = "triplet_margin";
    made.info.operand_count = 3;
    made.family = FAMILY_VECTORS;
    made.vector_usual = usual;
    made.vectors = 3;
    made.sums = 3;
    return made;
}
static const loss the_loss = make_loss();

static view view_of(const void *data, int64_t rows, int64_t row_stride, int64_t length, int64_t element_stride) {
    view view = {};
    view.data = const_cast<void *>(data);
    view.dtype = ONEPASS_F32;
    view.ndim = 2;
    view.shape[0] = rows;
    view.stride[0] = row_stride;
    view.shape[1] = length;
    view.stride[1] = element_stride;
    return view;
}

/* As PyTorch's defaults are, but for the margin: p 2, eps 1e-6, no swap. */
static job job_of(const vectors_call *call) {
    job job = {};
    job.family = FAMILY_VECTORS;
    job.loss = &the_loss;
    job.operand_count = 3;
    job.reduction = ONEPASS_MEAN;
    job.compute = ONEPASS_F32;
    job.count = call->rows;
    job.vectors.length = call->length;
    for (int k = 0; k < 3; k++)
        job.operand[k] =
            view_of(call->vectors[k], call->rows, call->row_stride[k], call->length, call->element_stride[k]);
    job.value.data = call->value;
    job.value.dtype = ONEPASS_F32;
    job.value.ndim = 1;
    job.value.shape[0] = job.value.stride[0] = 1;
    job.divisor = (double)call->rows;
    job.parameter[0] = call->margin;
    job.parameter[1] = 2;
    job.parameter[2] = 1e-6;
    return job;
}

static const void *kernel_of(const cuda_launch *launch) {
    switch (launch->variant) {
    case variant_vectors_narrow:
        return (const void *)onepass_triplet_margin_vectors_narrow;
    case variant_vectors_sums:
        return (const void *)onepass_triplet_margin_vectors_sums;
    case variant_vectors_any_sums:
        return (const void *)onepass_triplet_margin_vectors_any_sums;
    case variant_vectors_finish:
        return (const void *)onepass_triplet_margin_vectors_finish;
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

size_t vectors_workspace(const vectors_call *call) {
    const job job = job_of(call);
    cuda_launch launch;
    size_t most = ONEPASS_WORKSPACE_SIZE;
    const cuda_limits limits = {1, 0};
    for (int step = 0; onepass_cuda_plan_step(&job, step, &limits, &launch); step++)
        most = launch.workspace > most ? launch.workspace : most;
    return most;
}

cudaError_t vectors_launch(const vectors_call *call) {
    const job job = job_of(call);
    cuda_launch launch;
    int multiprocessors;
    OK(count_multiprocessors(&multiprocessors));
    OK(clear_counters(call->workspace, call->stream));
    const cuda_limits limits = {multiprocessors, 0}; /* without kernels that ask for more shared memory than others */
    for (int step = 0; onepass_cuda_plan_step(&job, step, &limits, &launch); step++)
        OK(launch_planned(kernel_of(&launch), &launch, call->workspace, call->stream));
    return cudaSuccess;
}
