/*
 * From a job to a launch: which kernel, how many blocks of how many warps, and the
 * kernel's parameter. Pure arithmetic, without the driver.
 */
#include "cuda/pairwise.h"
#include "dtype.h"
#include "order.h"

#include <math.h>
#include <string.h>

#define WARP 32

/* Beyond so many elements the small kernels are not faster. */
#define MOST_SMALL_FORWARD (1 << 22)
#define MOST_SMALL_BOTH    (1 << 21)

cuda_shape onepass_cuda_shape;

/* ----------------------------------------------------------------- kernels -- */

#define LOSS(name, ...)
#include "losses.def"
#undef LOSS

typedef enum variant {
    GENERAL,
    FORWARD,
    BOTH,
    WEIGHTED_FORWARD,
    WEIGHTED_BOTH,
    BACKWARD,
    FORWARD_HALF,
    BOTH_HALF,
    BACKWARD_HALF,
    SMALL_FORWARD,
    SMALL_BOTH,
    VARIANTS
} variant;

/* The kernels of a loss, as src/cuda/pairwise.cu makes them: in float all of the above for two operands and the first
 * five for three, and then in double the first two. */
#define WIDE_VARIANTS   (WEIGHTED_BOTH + 1)
#define DOUBLE_VARIANTS (FORWARD + 1)
#define KERNEL_COUNT_2  (VARIANTS + DOUBLE_VARIANTS)
#define KERNEL_COUNT_3  (WIDE_VARIANTS + DOUBLE_VARIANTS)

#define NAME(name, variant, real) "onepass_" name "_" variant "_" real
#define BASIC_NAMES(name, real)   NAME(name, "general", real), NAME(name, "forward", real)
#define WIDE_NAMES(name)                                                                                               \
    BASIC_NAMES(name, "f32"), NAME(name, "both", "f32"), NAME(name, "weighted_forward", "f32"),                        \
        NAME(name, "weighted_both", "f32")
#define NAMES_OF_2(name)                                                                                               \
    WIDE_NAMES(name), NAME(name, "backward", "f32"), NAME(name, "forward_half", "f32"),                                \
        NAME(name, "both_half", "f32"), NAME(name, "backward_half", "f32"), NAME(name, "small_forward", "f32"),        \
        NAME(name, "small_both", "f32"), BASIC_NAMES(name, "f64")
#define NAMES_OF_3(name) WIDE_NAMES(name), BASIC_NAMES(name, "f64")

#define LOSS(name, operands, ...) PASTE(NAMES_OF_, OPERANDS_OF operands)(#name),
static const char *const kernel_names[] = {
#include "losses.def"
    NAME("scale", "direct", "f32"),    NAME("scale", "direct", "f64"),    NAME("scale", "general", "f32"),
    NAME("scale", "general", "f64"),   NAME("weights", "direct", "f32"),  NAME("weights", "direct", "f64"),
    NAME("weights", "general", "f32"), NAME("weights", "general", "f64"), NAME("weights", "weighted", "f32")};
#undef LOSS

/* The first kernel of each loss. */
enum {
#define LOSS(name, operands, ...)                                                                                      \
    FIRST_OF_##name, LAST_OF_##name = FIRST_OF_##name + PASTE(KERNEL_COUNT_, OPERANDS_OF operands) - 1,
#include "losses.def"
#undef LOSS
    SCALE_DIRECT,
    WEIGHTS_DIRECT = SCALE_DIRECT + 4,
    WEIGHTS_WEIGHTED = WEIGHTS_DIRECT + 4,
    KERNEL_COUNT
};

static const int32_t first_kernel[] = {
#define LOSS(name, ...) FIRST_OF_##name,
#include "losses.def"
#undef LOSS
};

const char *onepass_cuda_kernel_name(int32_t kernel) {
    return kernel >= 0 && kernel < KERNEL_COUNT ? kernel_names[kernel] : NULL;
}

static int32_t variants_in_float(const job *job) {
    return job->operand_count == 2 ? VARIANTS : WIDE_VARIANTS;
}

static bool has_variant(const job *job, variant variant) {
    return (int32_t)variant < (job->compute == ONEPASS_F64 ? (int32_t)DOUBLE_VARIANTS : variants_in_float(job));
}

static int32_t kernel_of(const job *job, variant variant) {
    const bool in_double = job->compute == ONEPASS_F64;
    if (job->family == FAMILY_WEIGHTS && variant == WEIGHTED_FORWARD)
        return WEIGHTS_WEIGHTED;
    if (!job->loss)
        return (job->family == FAMILY_SCALE ? SCALE_DIRECT : WEIGHTS_DIRECT) + (variant == GENERAL ? 2 : 0) + in_double;
    return first_kernel[onepass_loss_index(job->loss)] + (in_double ? variants_in_float(job) : 0) + (int32_t)variant;
}

/* ------------------------------------------------------------------ tensors -- */

/* A job's tensors by the kernels' numbers. */
static const view *tensor_of(const job *job, int which) {
    static const view absent = {0};
    switch (which) {
    case CUDA_UPSTREAM:
        return &job->upstream;
    case CUDA_VALUE:
        return &job->value;
    case CUDA_WEIGHT:
        return &job->weight;
    case CUDA_MASK:
        return &job->mask;
    default:
        if (which >= CUDA_GRADIENT)
            return &job->gradient[which - CUDA_GRADIENT];
        return which < job->operand_count ? &job->operand[which] : &absent;
    }
}

/* Upstream gradient and value are one number, unless nothing is reduced. */
static bool is_one_number(const job *job, int which) {
    return (which == CUDA_UPSTREAM || which == CUDA_VALUE) && job->reduction != ONEPASS_NONE;
}

static bool wants_sum(const job *job) {
    return job->family == FAMILY_WEIGHTS ||
           (job->family != FAMILY_SCALE && job->reduction != ONEPASS_NONE && job->value.data);
}

/* With so many bits that d - 1 has, magic = ceil(2^(63+bits) / d) fits into 64, and the
 * product with n < 2^63 is off by less than what lies between a quotient and the next. */
static cuda_divisor divisor_of(int64_t d) {
    if (d < 2)
        return (cuda_divisor){0, 0}; /* never divided by */
    const int bits = 64 - __builtin_clzll((uint64_t)d - 1);
    __extension__ typedef unsigned __int128 wide;
    const wide power = (wide)1 << (63 + bits);
    return (cuda_divisor){(uint64_t)((power + (uint64_t)d - 1) / (uint64_t)d), bits - 1};
}

/* -------------------------------------------------------------------- direct -- */

/* What a direct kernel finds at a tensor's tiles. */
typedef enum layout {
    NOT_DIRECT,
    ABSENT,
    REALS,    /* numbers of the compute type, aligned to 16 bytes */
    HALVES,   /* numbers of a 16-bit type for a float computation, aligned to 8 */
    CONSTANTS /* one number of the compute type for a tile */
} layout;

static layout layout_of(const view *view, int32_t compute, cuda_rows *rows, bool *has_rows) {
    if (!view->data)
        return ABSENT;
    const int inner = view->ndim - 1;
    const int64_t size = (int64_t)dtype_size(view->dtype), stride = view->stride[inner];
    const bool constant = stride == 0, real = view->dtype == compute, half = size == 2 && compute == ONEPASS_F32;
    const int64_t alignment = constant ? size : real ? 16 : 8;
    *has_rows = constant || view->ndim == 2;
    *rows = (cuda_rows){.tile_step = constant ? 0 : ORDER_TILE, .tiles = 1};
    if (view->ndim > 2 || (stride != 0 && stride != 1) || !(real || (half && !constant)))
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
static variant variant_of_outputs(const job *job, bool half) {
    const bool gradient = job->gradient[0].data;
    if (job->reduction == ONEPASS_NONE || job->gradient[1].data || job->gradient[2].data)
        return GENERAL;
    if (!wants_sum(job))
        return half ? BACKWARD_HALF : BACKWARD;
    if (gradient)
        return half ? BOTH_HALF : BOTH;
    return half ? FORWARD_HALF : FORWARD;
}

/* The direct kernel that can do the job, or GENERAL. Fills in the rows. The gradient is of the operands' type. */
static variant direct_variant(const job *job, cuda_direct *direct) {
    const bool scale_only = job->family == FAMILY_SCALE;
    layout layout[CUDA_TENSORS];
    direct->head.rows = 0;
    for (int which = 0; which < CUDA_TENSORS; which++) {
        bool has_rows = false;
        layout[which] = is_one_number(job, which)
                            ? ABSENT
                            : layout_of(tensor_of(job, which), job->compute, &direct->rows[which], &has_rows);
        if (has_rows)
            direct->head.rows |= (uint8_t)(1u << which);
    }
    const bool half = layout[CUDA_PREDICTION] == HALVES;
    for (int k = 0; k < MOST_OPERANDS; k++)
        if (layout[CUDA_GRADIENT + k] != ABSENT && layout[CUDA_GRADIENT + k] != (half ? HALVES : REALS))
            return GENERAL;
    if (scale_only)
        return FORWARD; /* any that is not general */
    if (half && job->gradient[0].data && job->gradient[0].dtype != job->operand[0].dtype)
        return GENERAL;
    for (int k = 0; k < job->operand_count; k++) {
        const bool constant = layout[k] == CONSTANTS && !half;
        if (!constant && layout[k] != (half ? HALVES : REALS))
            return GENERAL;
        if (half && job->operand[k].dtype != job->operand[0].dtype)
            return GENERAL;
    }
    if (!job->loss)
        return half ? GENERAL : FORWARD;
    const variant variant = variant_of_outputs(job, half);
    return has_variant(job, variant) ? variant : GENERAL;
}

/* ------------------------------------------------------------------- general -- */

static void general_view(const view *view, cuda_view *general) {
    general->ndim = view->ndim;
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
    for (int which = 0; which < CUDA_GENERAL_TENSORS; which++)
        if (tensor_of(job, which)->data)
            general_view(tensor_of(job, which), &general->view[which]);
    general->weight = job->weight.data;
    general->weight_dtype = job->weight.data ? job->weight.dtype : 0;
    general->weight_buffer = unweighted_buffers(job);
    general->mask = job->mask.data;
    general->over_weights = job->over_weights;
}

/* ----------------------------------------------------------- dense tensors -- */

static bool is_aligned(const view *view, uintptr_t bytes) {
    return (uintptr_t)view->data % bytes == 0;
}

static bool is_dense(const view *view, int32_t dtype) {
    return view->dtype == dtype && view->ndim == 1 && view->stride[0] == 1;
}

/* Whether the sum is wanted, alone or with the gradient for the prediction, of dense operands in float. */
static bool is_dense_sum(const job *job) {
    if (job->compute != ONEPASS_F32 || job->family == FAMILY_SCALE || !wants_sum(job) || job->gradient[1].data ||
        job->gradient[2].data)
        return false;
    for (int k = 0; k < job->operand_count; k++)
        if (!is_dense(&job->operand[k], ONEPASS_F32))
            return false;
    return !job->gradient[0].data || is_dense(&job->gradient[0], ONEPASS_F32);
}

static bool is_aligned_job(const job *job) {
    bool aligned = is_aligned(&job->gradient[0], 16);
    for (int k = 0; k < job->operand_count; k++)
        aligned &= is_aligned(&job->operand[k], 16);
    return aligned;
}

/* The kernel for small inputs that can do the job, or GENERAL. */
static variant small_variant(const job *job) {
    const int64_t most = job->gradient[0].data ? MOST_SMALL_BOTH : MOST_SMALL_FORWARD;
    if (job->count == 0 || job->count > most || !job->loss || !has_variant(job, SMALL_FORWARD) || !is_dense_sum(job))
        return GENERAL;
    return job->gradient[0].data ? SMALL_BOTH : SMALL_FORWARD;
}

/* What a mean is divided by may be the number of a mask's elements: then the mask is the operand. */
static bool counts_mask(const job *job) {
    return job->family == FAMILY_WEIGHTS && job->operand[0].dtype == ONEPASS_BOOL;
}

/* The kernel for weights and masks that can do the job, or GENERAL. */
static variant weighted_variant(const job *job) {
    const view *mask = counts_mask(job) ? &job->operand[0] : &job->mask;
    const bool sums = counts_mask(job) ? job->compute == ONEPASS_F32 : is_dense_sum(job) && is_aligned_job(job);
    const bool weight = !job->weight.data || (is_dense(&job->weight, ONEPASS_F32) && is_aligned(&job->weight, 16));
    if (!sums || !weight || (mask->data && !(is_dense(mask, ONEPASS_BOOL) && is_aligned(mask, 4))))
        return GENERAL;
    return job->gradient[0].data ? WEIGHTED_BOTH : WEIGHTED_FORWARD;
}

/* --------------------------------------------------------------------- shape -- */

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t up_to_power_of_two(int64_t n) {
    int64_t power = 1;
    while (power < n)
        power *= 2;
    return power;
}

/* A variant's block: its warps, and the tiles that it takes at a time. */
typedef struct block {
    int32_t warps, tiles;
} block;

/* The shapes below are those that were fastest on an H200, each within a few per cent of its neighbours. */

/* A warp a tile. One block while it can take all tiles, since a second one costs the time of a ticket. */
static block small_block(int64_t tiles) {
    const int64_t usual = tiles <= CUDA_MOST_WARPS ? up_to_power_of_two(tiles)
                          : tiles <= 128           ? 2
                          : tiles <= 512           ? 4
                                                   : 8;
    const int64_t forced = onepass_cuda_shape.tiles_per_block;
    const int32_t taken = (int32_t)least(forced ? forced : usual, CUDA_MOST_WARPS);
    return (block){taken, taken};
}

/* A wave is what 16 warps a multiprocessor take at a time. A value alone wants few blocks, of up to 8 tiles a warp, or
 * 32 where half of a tile comes from a cache (3 % of the rate); with a gradient neighbouring blocks had better work on
 * neighbouring tiles. */
static block direct_block(variant variant, bool has_rows, int64_t tiles, int32_t multiprocessors) {
    const bool writes = variant != FORWARD && variant != FORWARD_HALF && variant != WEIGHTED_FORWARD;
    const int64_t most_tiles = writes ? 4 : has_rows ? 32 : 8;
    const int64_t waves = tiles / (16 * (int64_t)multiprocessors) + 1;
    const int64_t tiles_a_warp = up_to_power_of_two(least(waves, most_tiles));
    const int64_t usual = least(CUDA_MOST_WARPS, up_to_power_of_two(tiles));
    const int64_t warps = onepass_cuda_shape.warps ? least(onepass_cuda_shape.warps, CUDA_MOST_WARPS) : usual;
    const int64_t forced = onepass_cuda_shape.tiles_per_block;
    return (block){(int32_t)warps, (int32_t)(forced ? forced : warps * tiles_a_warp)};
}

/* As many warps as 32 KiB have buffers for, so that blocks share a multiprocessor well. */
static block general_block(const job *job, const cuda_head *head, int64_t tiles, int32_t multiprocessors) {
    const int64_t tile = ORDER_TILE * (int64_t)dtype_size(job->compute);
    const int64_t waves = tiles / (32 * (int64_t)multiprocessors) + 1;
    int64_t warps = onepass_cuda_shape.warps ? onepass_cuda_shape.warps : least(8, up_to_power_of_two(tiles));
    while (warps > 1 && warps * head->buffers * tile > 32768)
        warps /= 2;
    const int64_t forced = onepass_cuda_shape.tiles_per_block;
    return (block){(int32_t)warps, (int32_t)(forced ? forced : warps * up_to_power_of_two(least(waves, 8)))};
}

/* Of what a small kernel is told, nothing depends on its shape. */
static void plan_shape(const job *job, variant variant, int32_t multiprocessors, cuda_launch *launch) {
    cuda_head *head = &launch->parameter.head;
    const int64_t tiles = job->count / ORDER_TILE + (job->count % ORDER_TILE != 0);
    const bool small = variant == SMALL_FORWARD || variant == SMALL_BOTH;
    const block block = small                ? small_block(tiles)
                        : variant == GENERAL ? general_block(job, head, tiles, multiprocessors)
                                             : direct_block(variant, head->rows != 0, tiles, multiprocessors);
    const int64_t forced = onepass_cuda_shape.most_blocks;
    const int64_t most_blocks = forced && !small ? forced : CUDA_MOST_BLOCKS;
    int64_t run = block.tiles;
    while ((tiles - 1) / run >= most_blocks)
        run *= 2;
    int64_t blocks = tiles / run + (tiles % run != 0);
    if (blocks == 0 && wants_sum(job))
        blocks = 1; /* which writes the sum of nothing */
    if (!small) {
        head->tiles_per_block = block.tiles;
        head->sweeps = (int32_t)(run / block.tiles);
    }
    const int32_t buffering = variant == GENERAL ? block.warps : 0; /* warps */
    launch->blocks = (uint32_t)blocks;
    launch->threads = (uint32_t)(block.warps * WARP);
    launch->shared_memory = (uint32_t)(buffering * head->buffers * ORDER_TILE) * (uint32_t)dtype_size(job->compute);
    const bool passes_weights = job->over_weights || job->family == FAMILY_WEIGHTS;
    launch->workspace = wants_sum(job) && blocks > 1 ? CUDA_WORKSPACE_HEAD + (size_t)blocks * sizeof(double)
                        : passes_weights             ? CUDA_WORKSPACE_HEAD
                                                     : 0;
}

/* ---------------------------------------------------------------------- plan -- */

static bool is_power_of_two(double x) {
    int exponent;
    return x > 0 && isfinite(x) && frexp(x, &exponent) == 0.5;
}

/* A GPU takes long to divide, and by a power of two a product has the same bits. */
static void plan_total(const job *job, cuda_total *total) {
    const bool known = job->reduction == ONEPASS_MEAN && !job->over_weights; /* else on the GPU alone */
    const double divisor = known ? job->divisor : 1, reciprocal = 1 / divisor;
    const bool multiplies = is_power_of_two(divisor) && isnormal(reciprocal);
    total->value = job->value.data;
    total->workspace = NULL;
    total->number = multiplies ? reciprocal : divisor;
    total->divides = !multiplies;
    total->dtype =
        (uint8_t)(job->family == FAMILY_WEIGHTS ? ONEPASS_F64 : job->value.dtype); /* they go into the workspace */
}

/* In the compute type, as all that a slope or a term is computed with. */
static void plan_numbers(const job *job, cuda_real *scale, cuda_reals *parameter) {
    const bool in_double = job->compute == ONEPASS_F64;
    const double factor = job->reduction == ONEPASS_MEAN && !job->over_weights ? 1 / job->divisor : 1;
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

static void plan_weighted(const job *job, cuda_weighted *weighted) {
    plan_head(job, &weighted->head);
    weighted->weight = job->weight.data;
    weighted->mask = job->mask.data;
    weighted->over_weights = job->over_weights;
    if (counts_mask(job)) {
        weighted->mask = job->operand[0].data;
        weighted->head.data[CUDA_PREDICTION] = NULL; /* ones */
    }
}

static void plan_small(const job *job, cuda_small *small) {
    for (int k = 0; k < 2; k++)
        small->operand[k] = job->operand[k].data;
    small->gradient = job->gradient[0].data;
    small->upstream = job->upstream.data;
    small->upstream_dtype = job->upstream.data ? job->upstream.dtype : 0;
    small->total.count = (int32_t)job->count;
    small->total.aligned = is_aligned_job(job);
    plan_numbers(job, &small->scale, &small->parameter);
}

/* The fastest kernel that can do the job. Fills in what only a direct one is told. */
static variant choose_variant(const job *job, cuda_direct *direct) {
    const int32_t kernels = onepass_cuda_shape.kernels;
    variant variant = GENERAL;
    if (kernels == CUDA_GENERAL_KERNELS)
        return GENERAL;
    if (job->weight.data || job->mask.data || counts_mask(job))
        return weighted_variant(job);
    if (kernels == 0)
        variant = small_variant(job);
    return variant == GENERAL ? direct_variant(job, direct) : variant;
}

void onepass_cuda_plan(const job *job, int32_t multiprocessors, cuda_launch *launch) {
    const variant variant = choose_variant(job, &launch->parameter.direct);
    plan_total(job, &launch->parameter.total);
    if (variant == SMALL_FORWARD || variant == SMALL_BOTH) {
        plan_small(job, &launch->parameter.small);
    } else if (variant == WEIGHTED_FORWARD || variant == WEIGHTED_BOTH) {
        plan_weighted(job, &launch->parameter.weighted);
    } else {
        plan_head(job, &launch->parameter.head);
        if (variant == GENERAL)
            plan_general(job, &launch->parameter.general);
    }
    launch->kernel = kernel_of(job, variant);
    plan_shape(job, variant, multiprocessors, launch);
}

void onepass_cuda_give_workspace(cuda_launch *launch, void *workspace) {
    launch->parameter.total.workspace = workspace;
    if (launch->kernel >= WEIGHTS_DIRECT)
        launch->parameter.total.value = (char *)workspace + CUDA_WEIGHTS_AT;
}
