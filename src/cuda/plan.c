/*
 * From a job to a launch: which kernel, how many blocks of how many warps, and the
 * kernel's parameter. Pure arithmetic, without the driver.
 */
#include "cuda/plan.h"
#include "cuda/image.h"
#include "cuda/job.h"
#include "dtype.h"
#include "order.h"

/* ------------------------------------------------------------------ kernels -- */

/* What serves every loss is found like a loss. */
const loss onepass_cuda_weights = {
    .info = {.name = "weights", .operand_count = 1}, .family = FAMILY_WEIGHTS, .cuda = &onepass_cuda_images_every_loss};
const loss onepass_cuda_gradient = {
    .info = {.name = "gradient"}, .family = FAMILY_SCALE, .cuda = &onepass_cuda_images_every_loss};

static const loss *loss_of(const job *job) {
    switch (job->family) {
    case FAMILY_WEIGHTS:
        return &onepass_cuda_weights;
    case FAMILY_SCALE:
        return &onepass_cuda_gradient;
    default:
        return job->loss;
    }
}

/* ---------------------------------------------------------------- parameter -- */

void onepass_cuda_plan_view(const view *view, cuda_view *general) {
    general->ndim = view->ndim;
    general->first = 0;
    for (int32_t d = 0; d < view->ndim; d++) {
        general->extent[d] = view->shape[d];
        general->stride[d] = view->stride[d];
        general->by[d] = divisor_of(view->shape[d]);
    }
}

/* Tiles of shared memory for a warp: the operands and an upstream gradient, and in their place value and gradients. */
static int32_t unweighted_buffers(const job *job) {
    if (job->family == FAMILY_SCALE)
        return 0;
    const bool upstream_is_tensor = job->reduction == ONEPASS_NONE && job->upstream.data;
    int32_t buffers = job->operand_count + upstream_is_tensor;
    for (int32_t k = 0; k < MOST_OPERANDS; k++)
        if (job->gradient[k].data && buffers < 2 + k)
            buffers = 2 + k;
    return buffers;
}

static void plan_general(const job *job, cuda_general *general) {
    for (int which = 0; which < CUDA_GENERAL_TENSORS; which++) {
        if (!tensor_of(job, which)->data)
            continue;
        onepass_cuda_plan_view(tensor_of(job, which), &general->view[which]);
        if (general->view[which].ndim > 1)
            general->view[which].first = job->first;
    }
    general->weight = job->weight.data;
    general->weight_dtype = job->weight.data ? job->weight.dtype : 0;
    general->weight_buffer = unweighted_buffers(job);
    general->mask = job->mask.data;
    general->over_weights = job->over_weights;
    general->divisor = onepass_cuda_finds_divisor(job) ? job->divisor_tensor.data : NULL;
}

static void plan_total(const job *job, cuda_total *total) {
    const double divisor = job->sum ? 1 : known_divisor(job);
    const bool multiplies = is_product(divisor);
    const view *value = job->family == FAMILY_SCALE ? &job->upstream : &job->value;
    total->value = value->data;
    total->workspace = NULL;
    total->number = multiplies ? 1 / divisor : divisor;
    total->divides = !multiplies;
    total->dtype =
        (uint8_t)(job->family == FAMILY_WEIGHTS ? ONEPASS_F64 : value->dtype); /* they go into the workspace */
}

/* In the compute type, as all that a slope or a term is computed with. */
static void plan_numbers(const job *job, cuda_real *scale, cuda_reals *parameter) {
    const bool in_double = job->compute == ONEPASS_F64;
    const double factor = 1 / known_divisor(job);
    for (int32_t i = 0; i < ONEPASS_MAX_PARAMETERS; i++) {
        if (in_double)
            parameter->f64[i] = job->parameter[i];
        else
            parameter->f32[i] = (float)job->parameter[i];
    }
    if (in_double)
        scale->f64 = factor;
    else
        scale->f32 = (float)factor;
}

static void plan_head(const job *job, cuda_head *head) {
    plan_total(job, &head->total);
    head->count = job->count;
    head->reduction = (uint8_t)job->reduction;
    head->skip_if_one = job->skip_if_one;
    for (int which = 0; which < CUDA_TENSORS; which++) {
        const view *view = tensor_of(job, which);
        head->data[which] = view->data;
        head->dtype[which] = view->data ? (uint8_t)view->dtype : 0;
    }
    head->buffers = unweighted_buffers(job) + (job->weight.data != NULL);
    plan_numbers(job, &head->scale, &head->parameter);
}

/* Where a mean over weights says what it was divided by, if it is asked. */
static void tell(const job *job, uint8_t *told, void **divided_by) {
    *divided_by = job->divided_by.data;
    *told = (uint8_t)(job->divided_by.data ? job->divided_by.dtype : 0);
}

static void plan_weighted(const job *job, cuda_weighted *weighted) {
    plan_head(job, &weighted->head);
    weighted->weight = job->weight.data;
    weighted->mask = job->mask.data;
    weighted->over_weights = job->over_weights;
    weighted->over_elements = job->over_elements;
    weighted->divisor = onepass_cuda_finds_divisor(job) ? job->divisor_tensor.data : NULL;
    tell(job, &weighted->told, &weighted->divided_by);
    if (counts_mask(job)) {
        weighted->mask = job->operand[0].data;
        weighted->head.data[CUDA_PREDICTION] = NULL; /* ones */
    }
}

static void plan_backward(const job *job, cuda_backward *backward) {
    for (int k = 0; k < 2; k++)
        backward->operand[k] = job->operand[k].data;
    backward->weight = job->weight.data;
    backward->mask = job->mask.data;
    backward->gradient = job->gradient[0].data;
    backward->divisor = job->over_weights ? job->divisor_tensor.data : NULL;
    backward->upstream = job->upstream.data;
    backward->upstream_dtype = (uint8_t)(job->upstream.data ? job->upstream.dtype : 0);
    backward->last_tile = (int32_t)((job->count - 1) / ORDER_TILE);
    backward->last_count = (int32_t)((job->count - 1) % ORDER_TILE + 1);
    backward->last_is_whole = backward->last_count == ORDER_TILE;
    plan_numbers(job, &backward->scale, &backward->parameter);
}

/* The addresses of the last block's elements. A loss has a divisor or a scale, as the kernel knows. */
static void plan_whole(const job *job, cuda_whole *whole) {
    const int64_t first = job->count - CUDA_WHOLE_ELEMENTS;
    const view *factor = job->weight.data ? &job->weight : &job->mask;
    cuda_real scale;
    for (int k = 0; k < 2; k++)
        whole->operand[k] = (float *)job->operand[k].data + first;
    whole->weight = factor->data ? (char *)factor->data + first * (int64_t)dtype_size(factor->dtype) : NULL;
    whole->mask = job->mask.data ? (char *)job->mask.data + first : NULL;
    whole->upstream = job->upstream.data;
    whole->gradient = (float *)job->gradient[0].data + first;
    plan_numbers(job, &scale, &whole->parameter);
    if (job->over_weights)
        whole->divisor = job->divisor_tensor.data;
    else
        whole->scale = scale;
}

static void plan_small(const job *job, cuda_small *small) {
    plan_total(job, &small->total);
    for (int k = 0; k < 2; k++)
        small->operand[k] = job->operand[k].data;
    small->gradient = job->gradient[0].data;
    small->upstream = job->upstream.data;
    small->upstream_dtype = job->upstream.data ? job->upstream.dtype : 0;
    small->total.count = (int32_t)job->count;
    small->total.aligned = is_aligned_job(job);
    plan_numbers(job, &small->scale, &small->parameter);
}

static void plan_small_mean(const job *job, cuda_small_mean *mean) {
    cuda_real unused;
    mean->value = job->value.data;
    for (int k = 0; k < 2; k++)
        mean->operand[k] = job->operand[k].data;
    mean->mask = job->mask.data;
    mean->weight = job->weight.data;
    mean->count = (int32_t)job->count;
    mean->dtype = (uint8_t)job->value.dtype;
    tell(job, &mean->told, &mean->divided_by);
    plan_numbers(job, &unused, &mean->parameter);
}

static void plan_tiny_mean(const job *job, cuda_tiny_mean *mean) {
    cuda_real unused;
    mean->value = job->value.data;
    for (int k = 0; k < 2; k++)
        mean->operand[k] = job->operand[k].data;
    mean->mask = job->mask.data;
    mean->weight = job->weight.data;
    mean->count = (int32_t)job->count;
    tell(job, &mean->told, &mean->divided_by);
    mean->gradient = job->gradient[0].data;
    plan_numbers(job, &unused, &mean->parameter);
}

static void plan_tiny(const job *job, cuda_tiny *tiny) {
    const double divisor = known_divisor(job);
    cuda_real unused;
    tiny->value = job->value.data;
    for (int k = 0; k < 2; k++)
        tiny->operand[k] = job->operand[k].data;
    tiny->number = is_product(divisor) ? 1 / divisor : -divisor;
    tiny->count = (int32_t)job->count;
    plan_numbers(job, &unused, &tiny->parameter);
}

static void plan_tiny_both(const job *job, cuda_tiny_both *tiny) {
    cuda_real unused;
    tiny->value = job->value.data;
    for (int k = 0; k < 2; k++)
        tiny->operand[k] = job->operand[k].data;
    tiny->factor = 1 / known_divisor(job);
    tiny->gradient = job->gradient[0].data;
    tiny->count = (int32_t)job->count;
    plan_numbers(job, &unused, &tiny->parameter);
}

/* --------------------------------------------------------------------- plan -- */

void onepass_cuda_plan(const job *job, int32_t multiprocessors, cuda_launch *launch) {
    launch->loss = loss_of(job);
    launch->compute = job->compute;
    launch->sums_terms = false;
    launch->variant = onepass_cuda_choose_variant(job, &launch->parameter.direct);
    switch (onepass_cuda_variant[launch->variant].kind) {
    case kind_few_mean:
        plan_tiny_mean(job, &launch->parameter.few_mean.tiny);
        break;
    case kind_few:
        plan_tiny(job, &launch->parameter.few.tiny);
        break;
    case kind_tiny:
        plan_tiny(job, &launch->parameter.tiny);
        break;
    case kind_tiny_mean:
        plan_tiny_mean(job, &launch->parameter.tiny_mean);
        break;
    case kind_tiny_both:
        plan_tiny_both(job, &launch->parameter.tiny_both);
        break;
    case kind_backward:
        plan_backward(job, &launch->parameter.backward);
        break;
    case kind_whole:
        plan_whole(job, &launch->parameter.whole);
        break;
    case kind_small_mean:
        plan_small_mean(job, &launch->parameter.small_mean);
        break;
    case kind_small:
        plan_small(job, &launch->parameter.small);
        break;
    case kind_weighted:
        plan_weighted(job, &launch->parameter.weighted);
        break;
    case kind_direct:
        plan_head(job, &launch->parameter.head);
        break;
    default:
        plan_head(job, &launch->parameter.head);
        plan_general(job, &launch->parameter.general);
    }
    onepass_cuda_plan_shape(job, multiprocessors, launch);
}

void onepass_cuda_give_workspace(cuda_launch *launch, void *workspace) {
    if (launch->workspace == 0)
        return;
    launch->parameter.total.workspace = workspace;
    if (launch->loss->family == FAMILY_WEIGHTS)
        launch->parameter.total.value = (char *)workspace + CUDA_WEIGHTS_AT;
    if (launch->sums_terms)
        launch->parameter.head.data[CUDA_PREDICTION] =
            (char *)workspace + (uintptr_t)launch->parameter.head.data[CUDA_PREDICTION];
}
