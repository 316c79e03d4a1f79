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

/* Beyond this many elements the small kernels are not faster. */
#define SMALL_ELEMENTS (1 << 20)

cuda_shape onepass_cuda_shape;

/* ----------------------------------------------------------------- kernels -- */

#define LOSS(name, ...)
#include "losses.def"
#undef LOSS

/* The kernels of a loss, in this order; all but the last two in float and in double. */
typedef enum variant {
    FORWARD,
    FORWARD_CONSTANT,
    BOTH,
    BOTH_CONSTANT,
    SMALL_FORWARD,
    SMALL_BOTH,
    DIRECT,
    GENERAL,
    FORWARD_HALF,
    BOTH_HALF,
    KERNELS_OF_A_LOSS = 2 * FORWARD_HALF + 2
} variant;

#define IN_BOTH_TYPES(name) "onepass_" name "_f32", "onepass_" name "_f64"
#define LOSS(name, ...)                                                                                                \
    IN_BOTH_TYPES(#name "_forward"), IN_BOTH_TYPES(#name "_forward_constant"), IN_BOTH_TYPES(#name "_both"),           \
        IN_BOTH_TYPES(#name "_both_constant"), IN_BOTH_TYPES(#name "_small_forward"),                                  \
        IN_BOTH_TYPES(#name "_small_both"), IN_BOTH_TYPES(#name "_direct"), IN_BOTH_TYPES(#name "_general"),           \
        "onepass_" #name "_forward_half_f32", "onepass_" #name "_both_half_f32",
static const char *const kernel_names[] = {
#include "losses.def"
    IN_BOTH_TYPES("scale_direct"), IN_BOTH_TYPES("scale_general"), IN_BOTH_TYPES("weights_direct"),
    IN_BOTH_TYPES("weights_general")};
#undef LOSS

#define KERNEL_COUNT   ((int32_t)(sizeof kernel_names / sizeof *kernel_names))
#define SCALE_DIRECT   (KERNEL_COUNT - 8)
#define WEIGHTS_DIRECT (KERNEL_COUNT - 4)

const char *onepass_cuda_kernel_name(int32_t kernel) {
    return kernel >= 0 && kernel < KERNEL_COUNT ? kernel_names[kernel] : NULL;
}

static int32_t kernel_of(const job *job, variant variant) {
    const bool in_double = job->compute == ONEPASS_F64;
    if (job->loss < 0)
        return (job->loss == ONEPASS_SCALE_ONLY ? SCALE_DIRECT : WEIGHTS_DIRECT) + (variant == GENERAL ? 2 : 0) +
               in_double;
    const int32_t first = job->loss * KERNELS_OF_A_LOSS;
    return variant < FORWARD_HALF ? first + 2 * (int32_t)variant + in_double
                                  : first + 2 * FORWARD_HALF + (int32_t)(variant - FORWARD_HALF);
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
    case CUDA_PREDICTION:
    case CUDA_TARGET:
        return job->loss == ONEPASS_SCALE_ONLY ? &absent : &job->operand[which];
    default:
        return &job->gradient[which - CUDA_GRADIENT];
    }
}

/* Upstream gradient and value are one number, unless nothing is reduced. */
static bool is_one_number(const job *job, int which) {
    return (which == CUDA_UPSTREAM || which == CUDA_VALUE) && job->reduction != ONEPASS_NONE;
}

static bool wants_sum(const job *job) {
    return job->loss == ONEPASS_WEIGHTS_ONLY ||
           (job->loss != ONEPASS_SCALE_ONLY && job->reduction != ONEPASS_NONE && job->value.data);
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
    *rows = (cuda_rows){.tile_step = stride * ORDER_TILE, .tiles = 1};
    if (view->ndim > 2 || (stride != 0 && stride != 1) || !(real || (half && !constant)))
        return NOT_DIRECT;
    if (view->ndim == 2) {
        *rows = (cuda_rows){.tile_step = stride * ORDER_TILE,
                            .row_step = view->stride[0],
                            .tiles = view->shape[1] / ORDER_TILE,
                            .by = divisor_of(view->shape[1] / ORDER_TILE)};
        if (view->shape[1] % ORDER_TILE != 0)
            return NOT_DIRECT;
    }
    if ((intptr_t)view->data % alignment != 0 || rows->row_step * size % alignment != 0)
        return NOT_DIRECT;
    return constant ? CONSTANTS : real ? REALS : HALVES;
}

/* Outputs are of the operands' type, and so is an upstream tensor of a float or double computation. */
static bool fits(layout layout, bool half, int which) {
    return layout == ABSENT || layout == (half && which != CUDA_UPSTREAM ? HALVES : REALS);
}

/* The direct kernel that can do the job, or GENERAL. Fills in the rows. */
static variant direct_variant(const job *job, cuda_direct *direct) {
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
    const bool half = layout[CUDA_PREDICTION] == HALVES, constant = layout[CUDA_TARGET] == CONSTANTS;
    for (int which = CUDA_UPSTREAM; which < CUDA_TENSORS; which++)
        if (!fits(layout[which], half, which))
            return GENERAL;
    if (job->loss == ONEPASS_SCALE_ONLY)
        return DIRECT;
    if (half && job->operand[0].dtype != job->operand[1].dtype)
        return GENERAL;
    for (int k = 0; k < 2; k++)
        if (half && job->gradient[k].data && job->gradient[k].dtype != job->operand[0].dtype)
            return GENERAL;
    if (half && layout[CUDA_VALUE] != ABSENT && job->value.dtype != job->operand[0].dtype)
        return GENERAL;
    const bool operands_fit = layout[CUDA_PREDICTION] == REALS
                                  ? layout[CUDA_TARGET] >= REALS && layout[CUDA_TARGET] != HALVES
                                  : half && layout[CUDA_TARGET] == HALVES;
    if (!operands_fit)
        return GENERAL;
    if (!wants_sum(job) || job->gradient[1].data || job->loss == ONEPASS_WEIGHTS_ONLY)
        return DIRECT;
    if (job->gradient[0].data)
        return half ? BOTH_HALF : constant ? BOTH_CONSTANT : BOTH;
    return half ? FORWARD_HALF : constant ? FORWARD_CONSTANT : FORWARD;
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

static void plan_general(const job *job, cuda_general *general) {
    for (int which = 0; which < CUDA_TENSORS; which++)
        if (tensor_of(job, which)->data)
            general_view(tensor_of(job, which), &general->view[which]);
    general->weight = job->weight.data;
    general->weight_dtype = job->weight.data ? job->weight.dtype : 0;
    general->over_weights = job->over_weights;
    if (job->weight.data)
        general_view(&job->weight, &general->view[CUDA_WEIGHT]);
}

/* --------------------------------------------------------------------- small -- */

static bool is_dense(const view *view, int32_t dtype) {
    return view->dtype == dtype && view->ndim == 1 && view->stride[0] == 1;
}

/* The kernel for small inputs that can do the job, or GENERAL. */
static variant small_variant(const job *job) {
    if (job->count > SMALL_ELEMENTS || job->loss < 0 || !wants_sum(job) || job->gradient[1].data)
        return GENERAL;
    for (int k = 0; k < 2; k++)
        if (job->count > 0 && !is_dense(&job->operand[k], job->compute))
            return GENERAL;
    if (!job->gradient[0].data)
        return SMALL_FORWARD;
    return is_dense(&job->gradient[0], job->compute) ? SMALL_BOTH : GENERAL;
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

/* Four warps a tile. One block while it can take all tiles, since a second one costs the
 * time of a ticket; then small blocks, since large ones take longer to begin. */
static block small_block(const job *job, int64_t tiles) {
    const int64_t most = CUDA_SMALL_TILES(job->compute);
    const int64_t usual = tiles <= most ? up_to_power_of_two(tiles) : tiles <= 128 ? 2 : tiles <= 512 ? 4 : 8;
    const int64_t forced = onepass_cuda_shape.tiles_per_block;
    const int64_t taken = least(forced ? forced : usual, most);
    return (block){(int32_t)(4 * taken), (int32_t)taken};
}

/* A wave is what 16 warps a multiprocessor take at a time. Tiles of one array, or of two of
 * 16 bits, need few registers, so that there are 32. A value alone wants few blocks, of up to
 * 8 tiles a warp; with a gradient neighbouring blocks had better work on neighbouring tiles. */
static block direct_block(const job *job, variant variant, const cuda_head *head, int64_t tiles,
                          int32_t multiprocessors) {
    const bool in_float = job->compute == ONEPASS_F32, rows = head->rows >> CUDA_TARGET & 1;
    const bool lean = variant == FORWARD_HALF || variant == FORWARD_CONSTANT;
    const int64_t waves = tiles / (16 * (int64_t)multiprocessors) + 1;
    int64_t warps = lean && in_float && waves >= 4 ? 16 : 8, tiles_a_warp = up_to_power_of_two(least(waves, 8));
    if (variant == BOTH || variant == BOTH_CONSTANT) {
        warps = in_float && !rows ? 16 : 8;
        tiles_a_warp = up_to_power_of_two(least(waves, rows ? 4 : 2));
    }
    warps = least(warps, up_to_power_of_two(tiles));
    if (onepass_cuda_shape.warps)
        warps = least(onepass_cuda_shape.warps, in_float ? 16 : 8);
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

static void plan_shape(const job *job, variant variant, int32_t multiprocessors, cuda_launch *launch) {
    cuda_head *head = &launch->parameter.head;
    const int64_t tiles = job->count / ORDER_TILE + (job->count % ORDER_TILE != 0);
    const bool small = variant == SMALL_FORWARD || variant == SMALL_BOTH;
    const block block = small                ? small_block(job, tiles)
                        : variant == GENERAL ? general_block(job, head, tiles, multiprocessors)
                                             : direct_block(job, variant, head, tiles, multiprocessors);
    const int64_t forced = onepass_cuda_shape.most_blocks;
    const int64_t most_blocks = forced && !small ? forced : CUDA_MOST_BLOCKS;
    int64_t run = block.tiles;
    while ((tiles - 1) / run >= most_blocks)
        run *= 2;
    int64_t blocks = tiles / run + (tiles % run != 0);
    if (blocks == 0 && wants_sum(job))
        blocks = 1; /* which writes the sum of nothing */
    head->tiles_per_block = block.tiles;
    head->sweeps = (int32_t)(run / block.tiles);
    const int32_t buffering = variant == GENERAL ? block.warps : !small && job->count % ORDER_TILE != 0; /* warps */
    launch->blocks = (uint32_t)blocks;
    launch->threads = (uint32_t)(block.warps * WARP);
    launch->shared_memory = (uint32_t)(buffering * head->buffers * ORDER_TILE) * (uint32_t)dtype_size(job->compute);
    const bool passes_weights = job->over_weights || job->loss == ONEPASS_WEIGHTS_ONLY;
    launch->workspace = wants_sum(job) && blocks > 1 ? CUDA_WORKSPACE_HEAD + (size_t)blocks * sizeof(double)
                        : passes_weights             ? CUDA_WORKSPACE_HEAD
                                                     : 0;
}

/* ---------------------------------------------------------------------- plan -- */

static bool is_power_of_two(double x) {
    int exponent;
    return x > 0 && isfinite(x) && frexp(x, &exponent) == 0.5;
}

static void plan_numbers(const job *job, cuda_head *head) {
    const double divisor = job->over_weights ? 1 : job->divisor; /* the rest is known on the GPU alone */
    const double reciprocal = 1 / divisor, scale = job->reduction == ONEPASS_MEAN ? reciprocal : 1;
    head->divisor = divisor;
    /* A GPU takes long to divide, and by a power of two a product has the same bits. */
    head->reciprocal = is_power_of_two(divisor) && isnormal(reciprocal) ? reciprocal : 0;
    for (int32_t i = 0; i < ONEPASS_MAX_PARAMETERS; i++) {
        if (job->compute == ONEPASS_F64)
            head->parameter.f64[i] = job->parameter[i];
        else
            head->parameter.f32[i] = (float)job->parameter[i];
    }
    if (job->compute == ONEPASS_F64)
        head->scale.f64 = scale;
    else
        head->scale.f32 = (float)scale;
}

static void plan_head(const job *job, cuda_head *head) {
    head->workspace = NULL;
    head->count = job->count;
    head->reduction = (uint8_t)job->reduction;
    head->unless_one = job->unless_one;
    for (int which = 0; which < CUDA_TENSORS; which++) {
        const view *view = tensor_of(job, which);
        head->data[which] = view->data;
        head->dtype[which] = view->data ? (uint8_t)view->dtype : 0;
    }
    const bool third = head->data[CUDA_GRADIENT + 1] || (job->reduction == ONEPASS_NONE && head->data[CUDA_UPSTREAM]);
    head->buffers = job->loss == ONEPASS_SCALE_ONLY ? 0 : (third ? 3 : 2) + (job->weight.data != NULL);
    if (job->loss == ONEPASS_WEIGHTS_ONLY)
        head->dtype[CUDA_VALUE] = ONEPASS_F64; /* which goes into the workspace */
    plan_numbers(job, head);
}

void onepass_cuda_plan(const job *job, int32_t multiprocessors, cuda_launch *launch) {
    const int32_t kernels = job->weight.data ? CUDA_GENERAL_KERNELS : onepass_cuda_shape.kernels;
    variant variant = kernels == 0 ? small_variant(job) : GENERAL;
    if (variant == GENERAL && kernels != CUDA_GENERAL_KERNELS)
        variant = direct_variant(job, &launch->parameter.direct);
    if (variant == GENERAL)
        plan_general(job, &launch->parameter.general);
    plan_head(job, &launch->parameter.head);
    launch->kernel = kernel_of(job, variant);
    plan_shape(job, variant, multiprocessors, launch);
}

void onepass_cuda_give_workspace(cuda_launch *launch, void *workspace) {
    launch->parameter.head.workspace = workspace;
    if (launch->kernel >= WEIGHTS_DIRECT)
        launch->parameter.head.data[CUDA_VALUE] = (char *)workspace + CUDA_WEIGHTS_AT;
}
