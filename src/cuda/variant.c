/*
 * Which kernels there are, and the fastest of them that can do a job.
 */
#include "cuda/job.h"
#include "cuda/kernels.def"
#include "cuda/plan.h"
#include "dtype.h"
#include "order.h"

/* Beyond so many elements these kernels are not faster. */
#define MOST_FEW           (8 * ORDER_TILE) /* and no more would fit into a block */
#define MOST_FEW_BOTH      (2 * ORDER_TILE) /* of a mean over weights or a mask, with its gradient */
#define MOST_WHOLE         (1 << 22)        /* elements of a gradient alone */
#define MOST_SMALL_FORWARD (1 << 24)
#define MOST_SMALL_BOTH    (1 << 21)

/* Beyond so many there is no room for two partial sums of each block. */
#define MOST_IN_ONE_PASS ((int64_t)CUDA_MOST_BLOCKS / 2 * CUDA_MOST_NODES * ORDER_TILE)

/* ----------------------------------------------------------------- kernels -- */

#define VARIANT(loss, variant, parameter, direction, ...) {#variant, kind_##parameter, direction},
#define ROW_VARIANT(loss, variant, parameter, ...)        {#variant, kind_##parameter, ANY_OUTPUT},
const cuda_variant_info onepass_cuda_variant[CUDA_VARIANTS] = {
    CUDA_KERNELS_2_F32(VARIANT, ) CUDA_KERNELS_0_F32(VARIANT, ) CUDA_EVERY_ROW_KERNEL(ROW_VARIANT)};

/* A set of variants, a bit each. */
typedef struct variants {
    uint64_t bits[2];
} variants;
#define LOW_BIT(loss, variant, ...)  | (variant_##variant < 64 ? UINT64_C(1) << variant_##variant % 64 : 0)
#define HIGH_BIT(loss, variant, ...) | (variant_##variant < 64 ? 0 : UINT64_C(1) << variant_##variant % 64)
#define VARIANTS(kernels)                                                                                              \
    {                                                                                                                  \
        { 0 kernels(LOW_BIT, ), 0 kernels(HIGH_BIT, ) }                                                                \
    }

static bool has(const variants *set, cuda_variant variant) {
    return set->bits[variant / 64] >> variant % 64 & 1;
}

/* Those that there are for so many operands in a compute type. */
#define EACH_COUNT(real)                                                                                               \
    {                                                                                                                  \
        VARIANTS(CUDA_KERNELS_0_##real), VARIANTS(CUDA_KERNELS_1_##real), VARIANTS(CUDA_KERNELS_2_##real),             \
            VARIANTS(CUDA_KERNELS_3_##real)                                                                            \
    }
static const variants variants_f32[MOST_OPERANDS + 1] = EACH_COUNT(F32);
static const variants variants_f64[MOST_OPERANDS + 1] = EACH_COUNT(F64);

bool onepass_cuda_has_variant(int32_t operands, int32_t compute, cuda_variant variant) {
    return has(&(compute == ONEPASS_F64 ? variants_f64 : variants_f32)[operands], variant);
}

/* The same by how a loss over rows looks at them. */
#define EACH_KIND(real)                                                                                                \
    {                                                                                                                  \
        VARIANTS(CUDA_ROW_KERNELS_LABEL_##real), VARIANTS(CUDA_ROW_KERNELS_PROBABILITIES_##real),                      \
            VARIANTS(CUDA_ROW_KERNELS_PICKED_##real)                                                                   \
    }
static const variants row_variants_f32[] = EACH_KIND(F32);
static const variants row_variants_f64[] = EACH_KIND(F64);

bool onepass_cuda_has_row_variant(row_kind kind, int32_t compute, cuda_variant variant) {
    return has(&(compute == ONEPASS_F64 ? row_variants_f64 : row_variants_f32)[kind], variant);
}

#define EACH_VECTOR_KERNEL(real)                                                                                       \
    {                                                                                                                  \
        VARIANTS(CUDA_VECTOR_KERNELS_##real), VARIANTS(CUDA_SOFTMAX_KERNELS_##real),                                   \
            VARIANTS(CUDA_CARRIED_KERNELS_##real), VARIANTS(CUDA_VECTOR_KERNELS_F64),                                  \
            VARIANTS(CUDA_LONG_KERNELS_##real)                                                                         \
    }
static const variants vector_variants_f32[] = EACH_VECTOR_KERNEL(F32);
static const variants vector_variants_f64[] = EACH_VECTOR_KERNEL(F64);

bool onepass_cuda_has_vector_variant(const loss *loss, int32_t compute, cuda_variant variant) {
    const int kind = loss->is_long ? 4 : loss->has_label_lists ? 3 : !loss->has_softmaxes ? 0 : loss->sums > 0 ? 1 : 2;
    return has(&(compute == ONEPASS_F64 ? vector_variants_f64 : vector_variants_f32)[kind], variant);
}

static bool has_variant(const job *job, cuda_variant variant) {
    return onepass_cuda_has_variant(job->operand_count, job->compute, variant);
}

/* ------------------------------------------------------------ direct tiles -- */

/* What a direct kernel finds at a tensor's tiles. */
typedef enum layout {
    NOT_DIRECT,
    ABSENT,
    REALS,    /* numbers of the compute type, aligned to 16 bytes */
    HALVES,   /* numbers of a 16-bit type for a float computation, aligned to 8 */
    CONSTANTS /* one number of the compute type for a tile */
} layout;

static layout layout_of(const job *job, const view *view, cuda_rows *rows, bool *has_rows) {
    const int32_t compute = job->compute;
    if (!view->data)
        return ABSENT;
    const int inner = view->ndim - 1;
    const int64_t size = (int64_t)dtype_size(view->dtype), stride = view->stride[inner];
    const bool constant = stride == 0, real = view->dtype == compute, half = size == 2 && compute == ONEPASS_F32;
    const int64_t alignment = constant ? size : real ? 16 : 8;
    *has_rows = constant || view->ndim == 2;
    *rows = (cuda_rows){.tile_step = constant ? 0 : ORDER_TILE, .tiles = 1};
    if (view->ndim > 2 || (view->ndim == 2 && job->first != 0) || (stride != 0 && stride != 1) ||
        !(real || (half && !constant)))
        return NOT_DIRECT;
    if (view->ndim == 2) {
        rows->row_step = view->stride[0];
        rows->tiles = view->shape[1] / ORDER_TILE;
        rows->by = divisor_of(rows->tiles);
        if (view->shape[1] % ORDER_TILE != 0)
            return NOT_DIRECT;
    }
    if ((intptr_t)view->data % alignment != 0 || rows->row_step * size % alignment != 0)
        return NOT_DIRECT;
    return constant ? CONSTANTS : real ? REALS : HALVES;
}

/* What a direct kernel gives: a sum with or without the gradient for the prediction, or that gradient alone. */
static cuda_variant variant_of_outputs(const job *job, bool half) {
    const bool gradient = job->gradient[0].data;
    if (job->reduction == ONEPASS_NONE || job->gradient[1].data || job->gradient[2].data)
        return variant_general;
    if (!wants_sum(job))
        return half ? variant_backward_half : variant_backward;
    if (gradient)
        return half ? variant_both_half : variant_both;
    return half ? variant_forward_half : variant_forward;
}

/* The layouts of all tensors. Fills in the rows. */
static void find_layouts(const job *job, cuda_direct *direct, layout *layout) {
    direct->head.rows = 0;
    for (int which = 0; which < CUDA_TENSORS; which++) {
        bool has_rows = false;
        layout[which] =
            is_one_number(job, which) ? ABSENT : layout_of(job, tensor_of(job, which), &direct->rows[which], &has_rows);
        if (has_rows)
            direct->head.rows |= (uint8_t)(1u << which);
    }
}

static bool gradients_are(const layout *layout, enum layout expected) {
    bool all = true;
    for (int k = 0; k < MOST_OPERANDS; k++)
        all &= layout[CUDA_GRADIENT + k] == ABSENT || layout[CUDA_GRADIENT + k] == expected;
    return all;
}

/* Operands of the compute type may be constants; those of a 16-bit type are all of the same. */
static bool operands_are(const job *job, const layout *layout, enum layout expected) {
    bool all = true;
    for (int k = 0; k < job->operand_count; k++)
        all &= expected == HALVES ? layout[k] == HALVES && job->operand[k].dtype == job->operand[0].dtype
                                  : layout[k] == REALS || layout[k] == CONSTANTS;
    return all;
}

/* The direct kernel that can do the job, or the general one. The gradient is of the operands' type. */
static cuda_variant direct_variant(const job *job, cuda_direct *direct) {
    layout layout[CUDA_TENSORS];
    find_layouts(job, direct, layout);
    const bool half = layout[CUDA_PREDICTION] == HALVES;
    const enum layout expected = half ? HALVES : REALS;
    const cuda_variant variant = variant_of_outputs(job, half);
    if (!gradients_are(layout, expected) || !operands_are(job, layout, expected) || !has_variant(job, variant) ||
        (half && job->gradient[0].data && job->gradient[0].dtype != job->operand[0].dtype))
        return variant_general;
    return variant;
}

static cuda_variant scale_variant(const job *job, cuda_direct *direct) {
    layout layout[CUDA_TENSORS];
    find_layouts(job, direct, layout);
    return gradients_are(layout, REALS) ? variant_scale_direct : variant_scale_general;
}

/* ----------------------------------------------------------- dense tensors -- */

/* Whether dense operands in float have no other gradient than a dense one for the prediction. */
static bool is_dense_job(const job *job) {
    if (job->compute != ONEPASS_F32 || job->gradient[1].data || job->gradient[2].data)
        return false;
    for (int k = 0; k < job->operand_count; k++)
        if (!is_dense(&job->operand[k], ONEPASS_F32))
            return false;
    return !job->gradient[0].data || is_dense(&job->gradient[0], ONEPASS_F32);
}

/* Whether the sum of such is wanted, alone or with that gradient. */
static bool is_dense_sum(const job *job) {
    return wants_sum(job) && is_dense_job(job);
}

/* Whether nothing needs to be asked about the sum, with its gradient or without. */
static bool is_quick_sum(const job *job) {
    return job->value.dtype == ONEPASS_F32 && !job->upstream.data &&
           (!job->gradient[0].data || is_product(known_divisor(job))) && is_aligned_job(job) && is_dense_sum(job);
}

/* Whether one block can take all elements: whole tiles, or one that ends with a pair of lines. */
static bool is_few(const job *job) {
    const bool one = job->count <= ORDER_TILE && job->count % (2 * ORDER_LANES) == 0;
    return job->count > 0 && (one || (job->count <= MOST_FEW && job->count % ORDER_TILE == 0));
}

/* The kernel for what one block can do without asking anything, or the general one. */
static cuda_variant tiny_variant(const job *job) {
    const bool gradient = job->gradient[0].data, one = job->count <= ORDER_TILE;
    if (!is_few(job) || (gradient && !one) || !has_variant(job, variant_tiny_forward) || !is_quick_sum(job))
        return variant_general;
    return !one ? variant_few_tiles_forward : gradient ? variant_tiny_both : variant_tiny_forward;
}

/* The kernel for small inputs that can do the job, or the general one. */
static cuda_variant small_variant(const job *job) {
    const int64_t most = job->gradient[0].data ? MOST_SMALL_BOTH : MOST_SMALL_FORWARD;
    if (job->count == 0 || job->count > most || !has_variant(job, variant_small_forward) || !is_dense_sum(job))
        return variant_general;
    return job->gradient[0].data ? variant_small_both : variant_small_forward;
}

/* Whether the gradient alone is wanted, of dense tensors of whole lines, and nothing needs to be asked about it. */
static bool is_whole(const job *job) {
    return onepass_cuda_shape.kernels == 0 && !wants_sum(job) && job->reduction != ONEPASS_NONE && !job->skip_if_one &&
           job->upstream.data && job->upstream.dtype == ONEPASS_F32 && job->count > 0 && job->count <= MOST_WHOLE &&
           job->count % CUDA_WHOLE_ELEMENTS == 0 && has_variant(job, variant_whole_backward) && is_dense_job(job) &&
           is_aligned_job(job);
}

/* Its kernel, by what is given. */
static cuda_variant whole_variant(const job *job) {
    return job->weight.data && job->mask.data ? variant_whole_mean_backward
           : job->weight.data                 ? variant_whole_weighted_backward
           : job->mask.data                   ? variant_whole_masked_backward
                                              : variant_whole_backward;
}

/* The kernel for the mean over dense weights, a mask or both that one block can take, with its gradient or without. */
static cuda_variant few_mean_variant(const job *job) {
    static const cuda_variant variant[2][2][3] = {
        {{variant_few_tiles_weighted_mean, variant_few_tiles_masked_mean, variant_few_tiles_mean},
         {variant_few_tiles_weighted_both, variant_few_tiles_masked_both, variant_few_tiles_mean_both}},
        {{variant_tiny_weighted_mean, variant_tiny_masked_mean, variant_tiny_mean},
         {variant_tiny_weighted_both, variant_tiny_masked_both, variant_tiny_mean_both}}};
    const int given = !job->mask.data ? 0 : !job->weight.data ? 1 : 2;
    return variant[job->count <= ORDER_TILE][job->gradient[0].data != NULL][given];
}

/* The same of any number of elements. With a gradient that is only possible where one block has them all. */
static cuda_variant mean_variant(const job *job) {
    const int32_t kernels = onepass_cuda_shape.kernels;
    const bool small = job->count <= MOST_SMALL_FORWARD && kernels != CUDA_LARGE_KERNELS && !job->over_elements &&
                       has_variant(job, variant_small_weighted_mean);
    const bool few = small && kernels == 0 && is_few(job) && job->value.dtype == ONEPASS_F32;
    if (few && (!job->gradient[0].data || (!job->upstream.data && job->count <= MOST_FEW_BOTH)))
        return few_mean_variant(job);
    if (job->gradient[0].data)
        return variant_weighted_both;
    if (small)
        return !job->mask.data     ? variant_small_weighted_mean
               : !job->weight.data ? variant_small_masked_mean
                                   : variant_small_mean;
    return job->weight.data ? variant_weighted_mean : variant_masked_mean;
}

/* The kernel for weights and masks that can do the job, or the general one. */
static cuda_variant weighted_variant(const job *job) {
    const view *mask = counts_mask(job) ? &job->operand[0] : &job->mask;
    const bool dense = counts_mask(job) ? job->compute == ONEPASS_F32
                                        : job->reduction != ONEPASS_NONE && is_dense_job(job) && is_aligned_job(job);
    const bool weight = !job->weight.data || (is_dense(&job->weight, ONEPASS_F32) && is_aligned(&job->weight, 16));
    if (!dense || !weight || (mask->data && !(is_dense(mask, ONEPASS_BOOL) && is_aligned(mask, 4))))
        return variant_general;
    const bool knows_divisor = !job->over_weights || onepass_cuda_finds_divisor(job);
    if (job->over_weights && knows_divisor && (job->weight.data || mask->data) && is_whole(job))
        return whole_variant(job);
    if (!wants_sum(job))
        return !knows_divisor || !has_variant(job, variant_weighted_backward) ? variant_general
               : job->skip_if_one                                             ? variant_weighted_anew
                                                                              : variant_weighted_backward;
    const bool in_one_pass = job->over_weights && !job->divisor_tensor.data && (job->weight.data || mask->data) &&
                             job->count <= MOST_IN_ONE_PASS && has_variant(job, variant_weighted_mean);
    return in_one_pass ? mean_variant(job) : job->gradient[0].data ? variant_weighted_both : variant_weighted_forward;
}

/* ----------------------------------------------------------------- choice -- */

bool onepass_cuda_finds_divisor(const job *job) {
    return job->family == FAMILY_PAIRWISE && job->divisor_tensor.data && job->divisor_tensor.dtype == ONEPASS_F64 &&
           !job->divided_by.data;
}

bool onepass_cuda_weighs_itself(const job *job) {
    cuda_direct unused;
    if (job->family != FAMILY_PAIRWISE || !job->over_weights)
        return false;
    return is_mean(onepass_cuda_variant[onepass_cuda_choose_variant(job, &unused)].direction);
}

cuda_variant onepass_cuda_choose_variant(const job *job, cuda_direct *direct) {
    const int32_t kernels = onepass_cuda_shape.kernels;
    cuda_variant variant = variant_general;
    if (job->family == FAMILY_SCALE)
        return kernels == CUDA_GENERAL_KERNELS ? variant_scale_general : scale_variant(job, direct);
    if (kernels == CUDA_GENERAL_KERNELS)
        return variant_general;
    if (job->weight.data || job->mask.data || counts_mask(job) || job->over_weights)
        return weighted_variant(job);
    if (kernels == 0)
        variant = is_whole(job) ? variant_whole_backward : tiny_variant(job);
    if (variant == variant_general && (kernels == 0 || kernels == CUDA_SMALL_KERNELS))
        variant = small_variant(job);
    return variant == variant_general ? direct_variant(job, direct) : variant;
}
