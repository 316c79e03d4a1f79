/*
 * From a job over rows to its launches: which kernel has the rows, and what comes before and after it. Pure arithmetic,
 * as in plan.c.
 */
#include "cuda/image.h"
#include "cuda/job.h"
#include "cuda/plan.h"
#include "dtype.h"
#include "math/softmax.h"
#include "order.h"

#include <string.h>

#define WARP 32

/* Of a block where threads have rows. */
#define ROW_THREADS 128

const loss onepass_cuda_rows = {
    .info = {.name = "rows"}, .family = FAMILY_ROW_WEIGHTS, .cuda = &onepass_cuda_images_every_loss};

/* The sum of the rows' terms, which is that of their weights but goes to the value. */
const loss onepass_cuda_terms = {.info = {.name = "weights", .operand_count = 1},
                                 .family = FAMILY_PAIRWISE,
                                 .cuda = &onepass_cuda_images_every_loss};

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t tiles_of(int64_t count) {
    return count / ORDER_TILE + (count % ORDER_TILE != 0);
}

/* ---------------------------------------------------------------- workspace -- */

/* Behind the partial sums of a launch that adds up the terms: it has a block a tile at most. */
int64_t onepass_cuda_terms_at(const job *job) {
    const int64_t blocks = least((tiles_of(job->count) + 31) / 32 * 32, CUDA_MOST_BLOCKS);
    return CUDA_WORKSPACE_HEAD + 8 * blocks;
}

size_t onepass_cuda_terms_size(const job *job) {
    return (size_t)onepass_cuda_terms_at(job) + (size_t)job->count * dtype_size(job->compute);
}

/* And behind them the states of rows that are gone through twice. */
static int64_t state_at(const job *job) {
    return ((int64_t)onepass_cuda_terms_size(job) + 7) / 8 * 8;
}

static size_t workspace_with_states(const job *job) {
    return (size_t)state_at(job) + (size_t)job->count * ONEPASS_ROW_STATE * sizeof(double);
}

/* ---------------------------------------------------------------- parameter -- */

static const view *row_tensor(const job *job, int which) {
    switch (which) {
    case CUDA_ROW_INPUT:
    case CUDA_ROW_TARGET:
        return &job->operand[which];
    case CUDA_ROW_WEIGHT:
        return &job->weight;
    case CUDA_ROW_MASK:
        return &job->mask;
    case CUDA_ROW_UPSTREAM:
        return &job->upstream;
    case CUDA_ROW_VALUE:
        return &job->value;
    case CUDA_ROW_LOG_SUM_EXP:
        return &job->rows.log_sum_exp;
    case CUDA_ROW_PREDICTED:
        return &job->rows.predicted;
    default:
        return &job->gradient[which - CUDA_ROW_GRADIENT];
    }
}

/* Whether slopes are made of the logarithm of the sum, which takes long and is else left for later: asked of the loss
 * itself. */
static bool needs_lse(const job *job) {
    const double nan = (double)NAN;
    const row_sums sums = {WIDE_LN_2, nan, 0.5, 0.5, 1, nan, 1, (double)job->rows.shard.all_classes};
    row_slopes slopes = {0};
    job->loss->row(&sums, job->parameter, &slopes);
    return isnan(slopes.exponentials) || isnan(slopes.weights) || isnan(slopes.own);
}

void onepass_cuda_plan_softmax(const softmax_scale *scale, int32_t compute, cuda_softmax *told) {
    told->scale = *scale;
    if (compute == ONEPASS_F64) {
        told->factor.f64 = scale->factor;
        told->factor_low.f64 = scale->factor_low;
        told->per_factor.f64 = 1 / scale->factor;
        told->softcap.f64 = scale->softcap;
        return;
    }
    const softmax softmax = softmax_of(scale); /* this file has it in float */
    told->factor.f32 = softmax.factor;
    told->factor_low.f32 = softmax.factor_low;
    told->per_factor.f32 = softmax.per_factor;
    told->softcap.f32 = softmax.softcap;
}

static void plan_numbers(const job *job, cuda_row *row) {
    const double kept = 1 - job->rows.smoothing, share = job->rows.smoothing / (double)job->rows.shard.all_classes;
    onepass_cuda_plan_softmax(&job->rows.scale, job->compute, &row->softmax);
    if (job->compute == ONEPASS_F64) {
        row->kept.f64 = kept;
        row->share.f64 = share;
    } else {
        row->kept.f32 = (float)kept;
        row->share.f32 = (float)share;
    }
}

static void plan_row(const job *job, cuda_row *row) {
    const row_job *rows = &job->rows;
    memset(row, 0, sizeof *row);
    for (int which = 0; which < CUDA_ROW_TENSORS; which++) {
        const view *view = row_tensor(job, which);
        row->data[which] = view->data;
        if (!view->data)
            continue;
        row->dtype[which] = (uint8_t)view->dtype;
        onepass_cuda_plan_view(view, &row->view[which]);
    }
    row->class_weight = job->operand[2].data;
    row->class_weight_dtype = (uint8_t)job->operand[2].dtype;
    row->state = rows->state;
    row->rows = job->count;
    row->classes = rows->classes;
    row->first_class = rows->shard.first_class;
    row->all_classes = rows->shard.all_classes;
    row->shard = (uint8_t)rows->shard.step;
    row->tile_sums = rows->shard.tile_sums;
    row->row_step = rows->shard.row_step;
    row->sum_step = rows->shard.sum_step;
    row->sums_of_tile = (uint8_t)rows->shard.sums_of_tile;
    row->label_logit = rows->shard.label_logit;
    row->tiles = most(tiles_of(rows->shard.step == SHARD_VALUE ? rows->shard.all_classes : rows->classes), 1);
    memcpy(row->class_stride, rows->class_stride, sizeof row->class_stride);
    memcpy(row->gradient_stride, rows->gradient_stride, sizeof row->gradient_stride);
    row->ignore_index = rows->ignore_index;
    row->reduction = (uint8_t)job->reduction;
    row->skip_if_one = job->skip_if_one;
    row->reads_state = rows->reads_state;
    row->over_weights = job->over_weights;
    row->over_elements = job->over_elements;
    row->smoothing = rows->smoothing;
    plan_numbers(job, row);
    row->divisor = job->reduction == ONEPASS_MEAN ? job->divisor : 1;
    memcpy(row->parameter, job->parameter, sizeof row->parameter);
    if (job->family != FAMILY_ROWS) {
        row->terms_at = onepass_cuda_terms_at(job);
        return;
    }
    row->weighs = job->loss->kind == ROW_PROBABILITIES || rows->smoothing != 0;
    row->needs_lse = job->loss->kind != ROW_PICKED && needs_lse(job);
    row->terms_at = wants_sum(job) ? onepass_cuda_terms_at(job) : 0;
    row->completes = row->needs_lse || row->weighs || rows->log_sum_exp.data || (rows->state && !rows->reads_state);
    row->finishes = row->terms_at || job->value.data || rows->log_sum_exp.data || (rows->state && !rows->reads_state);
}

/* ------------------------------------------------------------------ variant -- */

/* Rows without gaps between classes, in float or a 16-bit type. */
static bool is_loose(const view *view, int64_t class_stride) {
    return class_stride == 1 && view->dtype < ONEPASS_F64;
}

/* Those whose classes can be moved four at a time. */
static bool is_vectors(const view *view, int64_t class_stride, int64_t classes) {
    const int64_t alignment = 4 * (int64_t)dtype_size(view->dtype);
    if (!is_loose(view, class_stride) || classes % 4 != 0 || !is_aligned(view, (uintptr_t)alignment))
        return false;
    bool aligned = true;
    for (int32_t d = 0; d < view->ndim; d++)
        aligned &= view->shape[d] == 1 || view->stride[d] % 4 == 0;
    return aligned;
}

static bool has_vectors(const job *job) {
    const row_job *rows = &job->rows;
    const view *weight = &job->operand[2];
    const bool probabilities = job->loss->kind == ROW_PROBABILITIES;
    return is_vectors(&job->operand[0], rows->class_stride[0], rows->classes) &&
           (!probabilities || is_vectors(&job->operand[1], rows->class_stride[1], rows->classes)) &&
           (!job->gradient[0].data || is_vectors(&job->gradient[0], rows->gradient_stride[0], rows->classes)) &&
           (!weight->data || (!probabilities && rows->smoothing == 0) ||
            (probabilities && is_vectors(weight, rows->class_stride[2], rows->classes)));
}

static bool has_loose_rows(const job *job) {
    return is_loose(&job->operand[0], job->rows.class_stride[0]) &&
           (!job->gradient[0].data || is_loose(&job->gradient[0], job->rows.gradient_stride[0]));
}

/* Tensors whose rows of few classes lie one behind the other. */
static bool is_one_piece(const view *view, int64_t class_stride, int64_t classes) {
    return class_stride == 1 && view->ndim == 1 && view->stride[0] == classes;
}

/* Threads that have a row each find its classes by strides of 32 bits. */
static bool is_short(int64_t stride) {
    return stride == (int32_t)stride;
}

/* Tensors whose rows are neighbours in memory, at least as many of them as a block has threads. */
static bool lies_in_lines(const view *view) {
    if (view->ndim == 2)
        return view->stride[1] == 1 && view->shape[1] >= ROW_THREADS && view->shape[1] <= INT32_MAX;
    return view->ndim == 1 && view->stride[0] == 1;
}

static bool lies_alike(const view *a, const view *b) {
    return a->ndim == b->ndim && (a->ndim == 1 || (a->shape[1] == b->shape[1] && a->stride[0] == b->stride[0]));
}

/* A thread a row: classes fit into registers. Rows may lie in one piece. */
static bool is_few(const job *job, bool *in_one_piece) {
    const row_job *rows = &job->rows;
    const view *input = &job->operand[0], *gradient = &job->gradient[0];
    *in_one_piece = is_one_piece(input, rows->class_stride[0], rows->classes) &&
                    (!gradient->data || is_one_piece(gradient, rows->gradient_stride[0], rows->classes));
    return rows->classes > 0 && rows->classes <= CUDA_FEW_CLASSES && is_short(rows->class_stride[0]) &&
           (!gradient->data || is_short(rows->gradient_stride[0]));
}

/* Whether such rows are found with little arithmetic, and have nothing but labels. */
static bool is_simple(const job *job, bool in_one_piece) {
    const row_job *rows = &job->rows;
    const view *input = &job->operand[0], *target = &job->operand[1], *gradient = &job->gradient[0];
    const bool in_lines =
        lies_in_lines(input) && (!gradient->data || (lies_in_lines(gradient) && lies_alike(input, gradient)));
    return (in_one_piece || in_lines) && target->ndim == 1 && target->stride[0] == 1 && !job->weight.data &&
           !job->mask.data && !job->operand[2].data && !(job->upstream.data && job->reduction == ONEPASS_NONE) &&
           !rows->log_sum_exp.data && !(rows->state && !rows->reads_state) && !needs_lse(job);
}

/* Whether 32 such rows begin at multiples of 16 bytes, and so do those of each class where they lie side by side. */
static bool is_in_vectors(const view *view, int64_t class_stride, bool in_one_piece) {
    const int64_t size = (int64_t)dtype_size(view->dtype);
    return is_aligned(view, 16) &&
           (in_one_piece || (class_stride * size % 16 == 0 &&
                             (view->ndim == 1 || (view->shape[1] % WARP == 0 && view->stride[0] * size % 16 == 0))));
}

static bool has_few_vectors(const job *job, bool in_one_piece) {
    const row_job *rows = &job->rows;
    return is_in_vectors(&job->operand[0], rows->class_stride[0], in_one_piece) &&
           (!job->gradient[0].data || is_in_vectors(&job->gradient[0], rows->gradient_stride[0], in_one_piece));
}

/* Simple rows are had by code that is made for their number of classes, in these ways or, floats side by side, one by
 * one. Their gradient is of their type. For floats in one piece and their gradient it does not pay from 29 classes on:
 * 5 % longer on an H200. */
static bool is_sized(const job *job, bool in_one_piece) {
    const view *input = &job->operand[0], *gradient = &job->gradient[0];
    if (in_one_piece && gradient->data && input->dtype == ONEPASS_F32 && job->rows.classes > 28)
        return false;
    return is_simple(job, in_one_piece) && (!gradient->data || gradient->dtype == input->dtype) &&
           (has_few_vectors(job, in_one_piece) || (!in_one_piece && input->dtype == ONEPASS_F32));
}

/* Whether a loss has parameters that are not 0, but for those that are not its own affair. */
static bool has_parameters(const job *job) {
    const onepass_loss_info *info = &job->loss->info;
    bool has = false;
    for (int32_t i = 0; i < info->parameter_count; i++) {
        const char *name = info->parameter[i].name;
        const bool own = strcmp(name, "ignore_index") != 0 && strcmp(name, "temperature") != 0;
        has |= own && wide_bits(job->parameter[i]) != 0;
    }
    return has;
}

static cuda_variant few_variant(const job *job, bool in_one_piece) {
    const bool more = job->rows.classes > CUDA_FEWER_CLASSES;
    if (is_sized(job, in_one_piece) && job->gradient[0].data)
        return more ? variant_rows_sized_more_both : variant_rows_sized_both;
    if (is_sized(job, in_one_piece))
        return more ? variant_rows_sized_more_forward : variant_rows_sized_forward;
    if (job->gradient[0].data)
        return more ? variant_rows_few_both : variant_rows_fewer_both;
    return more ? variant_rows_few_forward : variant_rows_fewer_forward;
}

/* Warps that share out a row have every 32nd of its classes at most. */
static bool is_short_for_warps(int64_t stride) {
    return is_short(stride) && is_short(stride * WARP);
}

/* Neighbouring rows are neighbours in memory. */
static bool lies_aside(const job *job) {
    const view *input = &job->operand[0];
    return input->ndim > 0 && input->stride[input->ndim - 1] == 1 && is_short_for_warps(job->rows.class_stride[0]) &&
           (!job->gradient[0].data || is_short_for_warps(job->rows.gradient_stride[0]));
}

static cuda_variant row_variant(const job *job, bool *in_one_piece) {
    const row_job *rows = &job->rows;
    const bool gradient = job->gradient[0].data, weighs = job->loss->kind == ROW_PROBABILITIES || rows->smoothing != 0;
    const int64_t tiles = tiles_of(rows->classes);
    if (job->loss->kind == ROW_PICKED)
        return variant_rows_picked;
    if (rows->shard.step == SHARD_VALUE && tiles_of(rows->shard.all_classes) <= CUDA_MOST_ROW_TILES &&
        onepass_cuda_shape.kernels != CUDA_GENERAL_KERNELS)
        return variant_rows_told;
    if (job->compute == ONEPASS_F64 || job->gradient[1].data || rows->scale.softcap != 0 || rows->classes == 0 ||
        onepass_cuda_shape.kernels == CUDA_GENERAL_KERNELS)
        return variant_rows_any;
    const bool whole = rows->shard.step == SHARD_NONE; /* threads that have a row want all of it */
    if (whole && !weighs && is_few(job, in_one_piece))
        return few_variant(job, *in_one_piece);
    const bool vectors = has_vectors(job), backward = gradient && rows->state && rows->reads_state;
    if (whole && !weighs && rows->class_stride[0] != 1 && rows->classes <= ORDER_TILE && lies_aside(job))
        return rows->classes > CUDA_ASIDE_KEPT * CUDA_ASIDE_WARPS ? variant_rows_aside_wide : variant_rows_aside;
    if (tiles > CUDA_MOST_ROW_TILES || (!vectors && (weighs || !has_loose_rows(job))))
        return variant_rows_any;
    if (rows->shard.step == SHARD_SLOPES && rows->shard.tile_sums) /* of torn tiles, which are few */
        return weighs || !has_loose_rows(job) ? variant_rows_any : variant_rows_torn;
    if (rows->shard.step == SHARD_SUMS)
        return !vectors ? variant_rows_loose_shared : weighs ? variant_rows_weighed_shared : variant_rows_shared;
    if (backward)
        return !vectors ? variant_rows_loose_backward : weighs ? variant_rows_weighed_backward : variant_rows_backward;
    if (gradient && tiles <= CUDA_MOST_WARPS)
        return !vectors     ? variant_rows_loose_both
               : weighs     ? variant_rows_weighed_both
               : tiles == 1 ? variant_rows_both_single
                            : variant_rows_both;
    if (!vectors)
        return variant_rows_loose_forward;
    if (gradient && !weighs && tiles <= CUDA_WIDE_WARPS)
        return variant_rows_both_wide;
    return weighs ? variant_rows_weighed_forward : variant_rows_forward;
}

static bool is_sized_variant(cuda_variant variant) {
    return variant == variant_rows_sized_forward || variant == variant_rows_sized_both ||
           variant == variant_rows_sized_more_forward || variant == variant_rows_sized_more_both ||
           variant == variant_rows_plain_forward || variant == variant_rows_plain_both;
}

/* Whether a thread has all classes of a row in its registers, */
static bool is_few_variant(cuda_variant variant) {
    return is_sized_variant(variant) || variant == variant_rows_few_forward || variant == variant_rows_few_both ||
           variant == variant_rows_fewer_forward || variant == variant_rows_fewer_both;
}

/* or so has a block, which reads them once anyway. */
static bool keeps_rows(cuda_variant variant) {
    return is_few_variant(variant) || variant == variant_rows_aside || variant == variant_rows_aside_wide;
}

/* How many warps, by the power of two, share out a row: all of a block, or half. */
static int32_t log2_warps_of_row(const job *job) {
    int32_t log2 = 2;
    while (job->rows.classes > (int64_t)CUDA_ASIDE_KEPT << log2)
        log2++;
    return log2;
}

/* Of few classes: how many lines of rows a block has. While it computes one the next comes, but there are to be several
 * blocks for each that a multiprocessor can have. */
static int32_t lines_of_block(const job *job, int32_t multiprocessors) {
    const int64_t all = (job->count + ROW_THREADS - 1) / ROW_THREADS, forced = onepass_cuda_shape.tiles_per_block;
    int32_t lines = ORDER_LINES;
    if (forced)
        return lines >> (forced - 1) % 3;
    while (lines > 1 && all / lines < 16 * (int64_t)multiprocessors)
        lines /= 2;
    return lines;
}

/* Of rows that are shared out: how many times 32 a block has, if that leaves some blocks to each multiprocessor. */
static int32_t lines_aside(const job *job, int32_t multiprocessors) {
    int32_t lines = CUDA_ASIDE_ROWS / WARP;
    while (lines > 1 && job->count / (lines * WARP) < 4 * (int64_t)multiprocessors)
        lines /= 2;
    return lines;
}

/* A block of few classes adds up its rows if they are a tile. */
static bool adds_up(const job *job, int32_t multiprocessors) {
    bool in_one_piece;
    return job->family == FAMILY_ROWS && wants_sum(job) && !job->terms && tiles_of(job->count) <= CUDA_MOST_BLOCKS &&
           is_few_variant(row_variant(job, &in_one_piece)) && lines_of_block(job, multiprocessors) == ORDER_LINES;
}

/* Whether values alone come of it. */
static bool is_forward(cuda_variant variant) {
    return variant == variant_rows_forward || variant == variant_rows_weighed_forward ||
           variant == variant_rows_loose_forward;
}

/* Rows that are longer, or not moved as vectors, are gone through twice: forward, which leaves their states, and
 * backward. */
static bool goes_twice(const job *job) {
    bool in_one_piece;
    if (!job->gradient[0].data || job->family != FAMILY_ROWS)
        return false;
    return is_forward(row_variant(job, &in_one_piece));
}

/* -------------------------------------------------------------------- shape -- */

/* As many as any GPU runs at the same time. */
#define SKIPPING_BLOCKS 4096

/* A block's warps, and its rows. */
typedef struct row_block {
    int64_t warps, rows;
} row_block;

static row_block row_block_of(const job *job, cuda_variant variant, int64_t tiles) {
    switch (variant) {
    case variant_rows_told:
        return (row_block){CUDA_TOLD_WARPS, CUDA_TOLD_WARPS};
    case variant_rows_picked:
        return (row_block){4, least(128, most(1, 4096 / most(job->rows.classes, 1)))};
    case variant_rows_few_forward:
    case variant_rows_few_both:
    case variant_rows_fewer_forward:
    case variant_rows_fewer_both:
    case variant_rows_sized_forward:
    case variant_rows_sized_both:
    case variant_rows_sized_more_forward:
    case variant_rows_sized_more_both:
    case variant_rows_plain_forward:
    case variant_rows_plain_both:
        return (row_block){ROW_THREADS / WARP, ROW_THREADS};
    case variant_rows_aside:
        return (row_block){CUDA_ASIDE_WARPS, WARP};
    case variant_rows_aside_wide:
        return (row_block){CUDA_WIDE_WARPS, WARP};
    case variant_rows_any:
        return (row_block){least(CUDA_ANY_WARPS((int)dtype_size(job->compute)), tiles), 1 + (job->count >> 30)};
    case variant_rows_both_single:
        return (row_block){CUDA_VALUES_WARPS, CUDA_MOST_GROUP};
    case variant_rows_both:
        return (row_block){tiles, job->operand[0].dtype == ONEPASS_F32 ? 8 : 16};
    case variant_rows_loose_both:
        return (row_block){tiles, tiles == 1 ? 8 : 4};
    case variant_rows_weighed_both:
        return (row_block){tiles, 8};
    case variant_rows_both_wide:
        return (row_block){tiles, 16};
    case variant_rows_backward: /* neighbouring blocks on neighbouring rows */
    case variant_rows_weighed_backward:
    case variant_rows_loose_backward:
    case variant_rows_torn:
        return (row_block){4, most(1, 8 / tiles)};
    case variant_rows_forward:
    case variant_rows_loose_forward:
    case variant_rows_shared:
    case variant_rows_loose_shared:
        return (row_block){CUDA_VALUES_WARPS, most(1, (job->operand[0].dtype == ONEPASS_F32 ? 128 : 64) / tiles)};
    default:
        return (row_block){4, most(1, 64 / tiles)};
    }
}

/* Kernels that prefetch tiles of rows. */
static bool prefetches(cuda_variant variant) {
    return variant == variant_rows_both || variant == variant_rows_both_single ||
           variant == variant_rows_weighed_forward || variant == variant_rows_weighed_shared ||
           variant == variant_rows_weighed_both;
}

static bool has_four_warps(cuda_variant variant) {
    return variant == variant_rows_forward || variant == variant_rows_loose_forward || variant == variant_rows_shared ||
           variant == variant_rows_loose_shared || variant == variant_rows_both_single ||
           variant == variant_rows_weighed_forward || variant == variant_rows_weighed_shared;
}

/* No more rows a block than leave some blocks to each multiprocessor, but a tile for each warp. */
static int64_t rows_for_all(const job *job, row_block block, int64_t tiles, int32_t multiprocessors) {
    int64_t rows = least(block.rows, CUDA_MOST_GROUP);
    const int64_t blocks = block.warps > CUDA_MOST_WARPS ? 1 : 4; /* of a multiprocessor */
    while (rows > 1 && rows * tiles > block.warps && job->count / rows < blocks * multiprocessors)
        rows /= 2;
    return rows;
}

/* Shared memory for a tile of logits for each warp, and one of probabilities if there is so much. */
#define MOST_ROOM (40 << 10)

static void plan_room(const job *job, int64_t warps, cuda_launch *launch) {
    cuda_row *row = &launch->parameter.row;
    const int32_t logits = ORDER_TILE * (int32_t)dtype_size(job->operand[0].dtype);
    row->room = logits;
    if (job->loss->kind == ROW_PROBABILITIES) {
        const int32_t both = logits + ORDER_TILE * (int32_t)dtype_size(job->operand[1].dtype);
        row->target_room = launch->shared_memory + warps * both <= MOST_ROOM ? logits : 0;
        row->room = row->target_room ? both : logits;
    }
    launch->shared_memory += (uint32_t)(warps * row->room);
}

static bool is_plain_variant(cuda_variant variant) {
    return variant == variant_rows_plain_forward || variant == variant_rows_plain_both;
}

/* They stay for all tiles, and are as many as there can be at the same time. */
static int64_t plain_blocks(cuda_variant variant, int64_t tiles, int32_t multiprocessors) {
    const int64_t forced = onepass_cuda_shape.tiles_per_block;
    const int64_t blocks = variant == variant_rows_plain_both ? CUDA_PLAIN_BLOCKS_BOTH : CUDA_PLAIN_BLOCKS;
    return forced ? (tiles + forced - 1) / forced : least(tiles, blocks * multiprocessors);
}

static void plan_row_shape(const job *job, int32_t multiprocessors, cuda_launch *launch) {
    cuda_row *row = &launch->parameter.row;
    row_block block = row_block_of(job, launch->variant, row->tiles);
    const bool fixed = keeps_rows(launch->variant) || launch->variant == variant_rows_told;
    block.rows *= most(row->lines, 1);
    const bool one_tile_a_warp = launch->variant == variant_rows_both || launch->variant == variant_rows_both_wide ||
                                 launch->variant == variant_rows_loose_both ||
                                 launch->variant == variant_rows_weighed_both;
    if (has_four_warps(launch->variant) || one_tile_a_warp)
        block.rows = rows_for_all(job, block, row->tiles, multiprocessors);
    if (onepass_cuda_shape.tiles_per_block && !fixed)
        block.rows = least(onepass_cuda_shape.tiles_per_block, CUDA_MOST_GROUP);
    if (onepass_cuda_shape.warps && !fixed && !one_tile_a_warp && launch->variant != variant_rows_picked)
        block.warps = least(onepass_cuda_shape.warps, launch->variant == variant_rows_any ? block.warps
                                                      : has_four_warps(launch->variant)   ? CUDA_VALUES_WARPS
                                                                                          : CUDA_MOST_WARPS);
    if (!fixed && launch->variant != variant_rows_any && launch->variant != variant_rows_picked)
        block.rows = most(1, least(least(block.rows, CUDA_MOST_GROUP), CUDA_MOST_ROW_TILES / row->tiles));
    launch->blocks = (uint32_t)((job->count + block.rows - 1) / block.rows);
    launch->threads = (uint32_t)(block.warps * WARP);
    if (is_plain_variant(launch->variant))
        launch->blocks = (uint32_t)plain_blocks(launch->variant, launch->blocks, multiprocessors);
    if (fixed && job->skip_if_one) /* mostly nothing is to be done, which takes time for each block */
        launch->blocks = (uint32_t)least(launch->blocks, SKIPPING_BLOCKS);
    if (!fixed)
        row->group = (int32_t)block.rows;
    if (is_few_variant(launch->variant)) { /* of one line, or of this and the next; of terms in any case */
        const size_t size = is_sized_variant(launch->variant) ? dtype_size(job->operand[0].dtype) : sizeof(float);
        const int64_t numbers = (row->lines > 1 ? 2 : 1) * CUDA_FEW_PITCH(row->classes);
        launch->shared_memory = ROW_THREADS * (uint32_t)most(numbers * (int64_t)size, sizeof(float));
    }
    if (launch->variant == variant_rows_weighed_forward || launch->variant == variant_rows_weighed_shared)
        launch->shared_memory = (uint32_t)(block.rows * row->tiles * CUDA_WAITING_SIZE);
    if (prefetches(launch->variant))
        plan_room(job, block.warps, launch);
}

/* -------------------------------------------------------------------- steps -- */

static void begin_launch(const job *job, const loss *loss, cuda_variant variant, cuda_launch *launch) {
    launch->loss = loss;
    launch->variant = variant;
    launch->compute = job->compute;
    launch->shared_memory = 0;
    launch->blocks = 0;
    launch->workspace = 0;
    launch->sums_terms = false;
}

/* What the rows count for, or their number where all count as 1. */
static bool counts_rows(const job *job) {
    return job->over_elements || (!job->weight.data && !job->operand[2].data);
}

/* Rows may be counted by the launch that has them, if nothing in it is divided by their number. */
static bool counts_itself(const job *job, int32_t multiprocessors) {
    bool in_one_piece;
    if (!job->over_weights || job->family != FAMILY_ROWS || job->divisor_tensor.data || !counts_rows(job) ||
        job->loss->kind == ROW_PROBABILITIES)
        return false;
    return is_forward(row_variant(job, &in_one_piece)) || (adds_up(job, multiprocessors) && !job->gradient[0].data);
}

/* What becomes of a sum that needs no launch of its own. */
static void plan_row_total(const job *job, cuda_total *total) {
    const double divisor = known_divisor(job);
    total->value = job->value.data;
    total->divides = !is_product(divisor);
    total->number = total->divides ? divisor : 1 / divisor;
    total->dtype = (uint8_t)job->value.dtype;
}

/* As is_sized(), but with nothing left to ask about: see rows/plain.h. */
static cuda_variant plain_variant(const job *job, const cuda_launch *launch, bool in_one_piece) {
    const cuda_row *row = &launch->parameter.row;
    const bool is_sized = launch->variant == variant_rows_sized_forward || launch->variant == variant_rows_sized_both;
    const int64_t c = row->classes;
    const bool has_size = c == 2 || c == 4 || c == 8 || c == 10 || c == 12 || c == 16;
    if (!is_sized || !in_one_piece || !has_size || row->lines != ORDER_LINES || (row->finishes && !row->sums) ||
        job->operand[0].dtype != ONEPASS_F32 || job->operand[1].dtype != ONEPASS_I64)
        return launch->variant;
    return job->gradient[0].data ? variant_rows_plain_both : variant_rows_plain_forward;
}

static void plan_rows(const job *given, int32_t multiprocessors, cuda_launch *launch) {
    bool in_one_piece = false;
    struct job forward = *given;
    const bool twice = goes_twice(given);
    const job *job = twice ? &forward : given;
    forward.gradient[0].data = NULL;
    begin_launch(job, job->loss, row_variant(job, &in_one_piece), launch);
    cuda_row *row = &launch->parameter.row;
    plan_row(job, row);
    if (keeps_rows(launch->variant)) {
        row->group = is_few_variant(launch->variant) ? in_one_piece : log2_warps_of_row(job);
        row->simple = is_simple(job, in_one_piece);
        row->has_parameters = has_parameters(job);
        row->in_vectors = has_few_vectors(job, in_one_piece);
        row->lines = (uint8_t)(is_few_variant(launch->variant) ? lines_of_block(job, multiprocessors)
                                                               : lines_aside(job, multiprocessors));
        if (job->rows.reads_state) /* the row is at hand: what it comes to is computed anew, with the same bits */
            row->state = NULL;
    }
    if (twice && !row->state) {
        row->state_at = state_at(job);
        row->completes = row->finishes = 1;
    }
    row->counts = counts_itself(job, multiprocessors);
    row->sums = adds_up(job, multiprocessors);
    if (row->sums)
        plan_row_total(job, &row->total);
    launch->variant = plain_variant(job, launch, in_one_piece);
    plan_row_shape(job, multiprocessors, launch);
    launch->workspace = row->sums           ? CUDA_WORKSPACE_HEAD + 8 * (size_t)tiles_of(job->count)
                        : row->state_at     ? workspace_with_states(job)
                        : row->terms_at     ? onepass_cuda_terms_size(job)
                        : job->over_weights ? CUDA_WORKSPACE_HEAD
                                            : 0;
}

/* The gradients of rows that have been gone through. */
static void plan_second_pass(const job *job, int32_t multiprocessors, cuda_launch *launch) {
    struct job backward = *job;
    double in_workspace; /* nobody looks at it, but it chooses the kernel */
    backward.value.data = backward.rows.log_sum_exp.data = NULL;
    backward.rows.reads_state = true;
    if (!job->rows.state)
        backward.rows.state = &in_workspace;
    plan_rows(&backward, multiprocessors, launch);
    if (!job->rows.state) {
        launch->parameter.row.state = NULL;
        launch->parameter.row.state_at = state_at(job);
        launch->workspace = workspace_with_states(job);
    }
}

void onepass_cuda_plan_row_weights(const job *job, cuda_launch *launch) {
    const bool counts = counts_rows(job) && !job->terms;
    const int64_t blocks = (job->count + 255) / 256;
    begin_launch(job, &onepass_cuda_rows, counts ? variant_row_count : variant_row_weights, launch);
    plan_row(job, &launch->parameter.row);
    launch->blocks = (uint32_t)(counts ? least(blocks, 1024) : blocks);
    launch->threads = 256;
    launch->workspace = counts ? CUDA_WORKSPACE_HEAD : onepass_cuda_terms_size(job);
}

/* Before anything is written that may lie over the logits. */
static void plan_row_predicted(const job *job, cuda_launch *launch) {
    const bool thread_a_row = job->rows.class_stride[0] != 1 || job->rows.classes <= WARP;
    begin_launch(job, &onepass_cuda_rows, variant_row_predicted, launch);
    plan_row(job, &launch->parameter.row);
    launch->parameter.row.group = thread_a_row ? 1 : 0;
    launch->threads = 256;
    launch->blocks = (uint32_t)((job->count * (thread_a_row ? 1 : WARP) + 255) / 256);
}

/* The sum of the terms, or of the weights, that lie in the workspace. */
void onepass_cuda_plan_terms(const job *job, bool of_weights, int32_t multiprocessors, cuda_launch *launch) {
    struct job sum = {.family = of_weights ? FAMILY_WEIGHTS : FAMILY_PAIRWISE,
                      .loss = &onepass_cuda_terms,
                      .operand_count = 1,
                      .reduction = of_weights ? ONEPASS_SUM : job->reduction,
                      .compute = job->compute,
                      .count = job->count,
                      .operand = {{(void *)(uintptr_t)onepass_cuda_terms_at(job), job->compute, 1, {job->count}, {1}}},
                      .divisor = of_weights ? 1 : job->divisor,
                      .over_weights = !of_weights && job->over_weights};
    if (!of_weights)
        sum.value = job->value;
    onepass_cuda_plan(&sum, multiprocessors, launch);
    launch->sums_terms = true;
    if (launch->workspace < onepass_cuda_terms_size(job))
        launch->workspace = onepass_cuda_terms_size(job);
}

static void plan_divided_by(const job *job, cuda_launch *launch) {
    cuda_divided_by *divided_by = &launch->parameter.divided_by;
    begin_launch(job, &onepass_cuda_rows, variant_divided_by, launch);
    *divided_by = (cuda_divided_by){
        .total = {.value = job->divided_by.data, .number = job->divisor, .dtype = (uint8_t)job->divided_by.dtype},
        .upstream = job->upstream.data,
        .upstream_dtype = job->upstream.dtype,
        .in_double = job->compute == ONEPASS_F64,
        .skip_if_one = job->skip_if_one,
        .over_weights = job->over_weights};
    launch->compute = ONEPASS_F32;
    launch->blocks = 1;
    launch->threads = WARP;
    launch->workspace = job->over_weights ? CUDA_WORKSPACE_HEAD : 0;
}

/* What comes before: where the divisor is found out. */
static bool plan_before(const job *job, int step, int32_t multiprocessors, cuda_launch *launch) {
    struct job weights;
    onepass_plan_weights(job, &weights);
    if (weights.family != FAMILY_ROW_WEIGHTS) {
        onepass_cuda_plan(&weights, multiprocessors, launch);
        return step == 0;
    }
    weights.upstream = job->upstream; /* where nothing is done if that is 1, nothing is counted */
    weights.skip_if_one = job->skip_if_one;
    if (step == 0)
        onepass_cuda_plan_row_weights(&weights, launch);
    else if (step == 1 && !counts_rows(&weights))
        onepass_cuda_plan_terms(&weights, true, multiprocessors, launch);
    else
        return false;
    return true;
}

static int steps_before(const job *job, int32_t multiprocessors) {
    if (!job->over_weights || counts_itself(job, multiprocessors) || onepass_cuda_weighs_itself(job))
        return 0;
    const bool by_rows =
        job->family == FAMILY_ROWS && job->loss->kind != ROW_PROBABILITIES && !job->divisor_tensor.data;
    return by_rows && !counts_rows(job) ? 2 : 1;
}

bool onepass_cuda_plan_step(const job *job, int step, int32_t multiprocessors, cuda_launch *launch) {
    const bool rows = job->family == FAMILY_ROWS;
    const int before = steps_before(job, multiprocessors), predicts = rows && job->rows.predicted.data ? 1 : 0;
    if (predicts && step == 0) {
        plan_row_predicted(job, launch);
        return true;
    }
    step -= predicts;
    if (step < before)
        return plan_before(job, step, multiprocessors, launch);
    step -= before;
    const bool vectors = job->family == FAMILY_VECTORS;
    const bool sums = (rows || vectors) && wants_sum(job) && !job->terms && !adds_up(job, multiprocessors);
    const int own = vectors ? onepass_cuda_vector_steps(job) : goes_twice(job) ? 2 : 1;
    if (step < own && vectors)
        onepass_cuda_plan_vectors(job, step, launch);
    else if (step == 0 && rows)
        plan_rows(job, multiprocessors, launch);
    else if (step == 0)
        onepass_cuda_plan(job, multiprocessors, launch);
    else if (step < own)
        plan_second_pass(job, multiprocessors, launch);
    else if (step == own && sums)
        onepass_cuda_plan_terms(job, false, multiprocessors, launch);
    else if (step == own + sums && job->divided_by.data)
        plan_divided_by(job, launch);
    else
        return false;
    return true;
}
