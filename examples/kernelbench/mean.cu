/*
 * The mean loss of two float tensors, from their strides to a launch, as one translation unit. amalgamate.py begins
 * here and brings the header of one loss. Kernels, plan and views are the library's own, so the bits are too.
 */
#include "mean.h"

#include "cuda/kernel.h"

/* The kernels that compute the mean of floats, and no others. */
#define LOSS(name, operands, ...)                                                                                      \
    LOSS_TYPE(name, operands)                                                                                          \
    CUDA_KERNELS_1_F64(MAKE_KERNEL, name)                                                                              \
    MAKE_KERNEL(name, small_forward, small, FORWARD, REAL, SEVERAL)                                                    \
    MAKE_KERNEL(name, few_tiles_forward, few, FORWARD, REAL, ONE)                                                      \
    MAKE_KERNEL(name, tiny_forward, tiny, FORWARD, REAL, ONE)
#include ONEPASS_UNIT_HEADER
#undef LOSS

/* All numbers in memory are float here, and what the kernels made of dtype_size is the GPU's alone. */
#define dtype_size(dtype) sizeof(float)
#include "cuda/plan.c"
#include "cuda/shape.c"
#include "cuda/variant.c"

#define ONEPASS_UNIT mean
#include "descriptor.c" /* the parameters' defaults */
#undef LOSS
const cuda_images onepass_cuda_images_mean = {NULL, NULL}, onepass_cuda_images_every_loss = {NULL, NULL};

#include "launch.h"
#include "tensor.h" /* only: tensor */
#include "tensor.c" /* only: spread_strides, merge_dimensions, onepass_make_view */

static_assert(MEAN_WORKSPACE == ONEPASS_WORKSPACE_SIZE, "enough for every call");
static_assert(MEAN_MOST_DIMENSIONS == ONEPASS_MAX_DIMENSIONS, "those that a view has room for");

#define LOSS(name, ...)                                                                                                \
    static const loss *const the_loss = &onepass_loss_##name;                                                          \
    static const void *kernel_of(cuda_variant variant) {                                                               \
        if (variant == variant_forward)                                                                                \
            return (const void *)onepass_##name##_forward;                                                             \
        if (variant == variant_tiny_forward)                                                                           \
            return (const void *)onepass_##name##_tiny_forward;                                                        \
        if (variant == variant_few_tiles_forward)                                                                      \
            return (const void *)onepass_##name##_few_tiles_forward;                                                   \
        if (variant == variant_small_forward)                                                                          \
            return (const void *)onepass_##name##_small_forward;                                                       \
        return (const void *)onepass_##name##_general;                                                                 \
    }
#include ONEPASS_UNIT_HEADER
#undef LOSS

static void fill_view(const mean_call *call, int which, const onepass_shape *common, view *view) {
    tensor tensor = {};
    tensor.data = const_cast<float *>(call->data[which]);
    tensor.dtype = ONEPASS_F32;
    tensor.shape = *common;
    for (int32_t d = 0; d < call->ndim; d++)
        tensor.stride[d] = call->stride[which][d];
    onepass_make_view(&tensor, common, view);
}

static job job_of(const mean_call *call) {
    onepass_shape common = {};
    common.ndim = call->ndim;
    common.count = 1;
    for (int32_t d = 0; d < call->ndim; d++) {
        common.extent[d] = call->shape[d];
        common.count *= call->shape[d];
    }
    job job = {};
    job.operand_count = 2;
    job.loss = the_loss;
    for (int32_t i = 0; i < job.loss->info.parameter_count; i++)
        job.parameter[i] = job.loss->info.parameter[i].default_value;
    job.reduction = ONEPASS_MEAN;
    job.compute = ONEPASS_F32;
    job.count = common.count;
    job.divisor = call->divisor;
    for (int which = 0; which < 2; which++)
        fill_view(call, which, &common, &job.operand[which]);
    job.value.data = call->value;
    job.value.dtype = ONEPASS_F32;
    job.value.ndim = 1;
    job.value.shape[0] = job.value.stride[0] = 1;
    return job;
}

cudaError_t mean_launch(const mean_call *call) {
    const job job = job_of(call);
    cuda_launch launch;
    int multiprocessors;
    OK(count_multiprocessors(&multiprocessors));
    onepass_cuda_plan(&job, multiprocessors, &launch);
    if (launch.workspace > 0)
        OK(clear_counters(call->workspace, call->stream));
    return launch_planned(kernel_of(launch.variant), &launch, call->workspace, call->stream);
}
