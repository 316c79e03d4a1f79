/* Which kernel has the rows of a job, by how they lie in memory and what is asked of them. Pure arithmetic. */
#include "cuda/row_plan.h"
#include "math/softmax.h"

#include <math.h>
#include <string.h>

/* Asked of the loss itself. */
bool onepass_cuda_needs_lse(const job *job) {
    const double nan = (double)NAN;
    const row_sums sums = {WIDE_LN_2, nan, 0.5, 0.5, 1, nan, 1, (double)job->rows.shard.all_classes};
    row_slopes slopes = {0};
    job->loss->row(&sums, job->parameter, &slopes);
    return isnan(slopes.exponentials) || isnan(slopes.weights) || isnan(slopes.own);
}

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

/* Those of an input, and of its gradient. */
static bool are_one_piece(const job *job) {
    const row_job *rows = &job->rows;
    return is_one_piece(&job->operand[0], rows->class_stride[0], rows->classes) &&
           (!job->gradient[0].data || is_one_piece(&job->gradient[0], rows->gradient_stride[0], rows->classes));
}

/* A thread a row: classes fit into registers. Rows may lie in one piece. */
static bool is_few(const job *job, bool *in_one_piece) {
    const row_job *rows = &job->rows;
    *in_one_piece = are_one_piece(job);
    return rows->classes > 0 && rows->classes <= CUDA_FEW_CLASSES && is_short(rows->class_stride[0]) &&
           (!job->gradient[0].data || is_short(rows->gradient_stride[0]));
}

/* Rows with nothing but labels, which lie side by side. */
static bool has_only_labels(const job *job) {
    const view *target = &job->operand[1];
    return target->ndim == 1 && target->stride[0] == 1 && !job->weight.data && !job->mask.data &&
           !job->operand[2].data && !(job->upstream.data && job->reduction == ONEPASS_NONE) &&
           !onepass_cuda_needs_lse(job);
}

/* Whether rows of few classes have no more, and are found with little arithmetic. */
static bool is_simple(const job *job, bool in_one_piece) {
    const row_job *rows = &job->rows;
    const view *input = &job->operand[0], *gradient = &job->gradient[0];
    const bool in_lines =
        lies_in_lines(input) && (!gradient->data || (lies_in_lines(gradient) && lies_alike(input, gradient)));
    return (in_one_piece || in_lines) && has_only_labels(job) && !rows->log_sum_exp.data &&
           !(rows->state && !rows->reads_state);
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
 * 5 % longer on an H200. A program that has a few of the kernels may do without these, which are the longest. */
#if !defined(ONEPASS_HAS_SIZED_ROWS)
#define ONEPASS_HAS_SIZED_ROWS 1
#endif
static bool is_sized(const job *job, bool in_one_piece) {
    const view *input = &job->operand[0], *gradient = &job->gradient[0];
    if (!ONEPASS_HAS_SIZED_ROWS ||
        (in_one_piece && gradient->data && input->dtype == ONEPASS_F32 && job->rows.classes > 28))
        return false;
    return is_simple(job, in_one_piece) && (!gradient->data || gradient->dtype == input->dtype) &&
           (has_few_vectors(job, in_one_piece) || (!in_one_piece && input->dtype == ONEPASS_F32));
}

/* Whether a loss has parameters that are not 0, but for those that are not its own affair. */
static bool has_parameters(const job *job) {
    const onepass_loss_info *info = &job->loss->info;
    const double zero = 0;
    bool has = false;
    for (int32_t i = 0; i < info->parameter_count; i++) {
        const char *name = info->parameter[i].name;
        const bool own = strcmp(name, "ignore_index") != 0 && strcmp(name, "temperature") != 0;
        has |= own && memcmp(&job->parameter[i], &zero, sizeof zero) != 0;
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

/* Rows of floats, or of bf16, that are found by one stride and have no more than labels. */
static bool is_bare(const job *job) {
    const view *input = &job->operand[0], *gradient = &job->gradient[0];
    return (input->dtype == ONEPASS_BF16 || input->dtype == ONEPASS_F32) && input->ndim == 1 && has_only_labels(job) &&
           (!gradient->data || (gradient->ndim == 1 && gradient->dtype == input->dtype));
}

/* Rows of bf16 of which a multiprocessor has one block (rows/wide.h). Two or three blocks hide behind each other what
 * each of them waits for: by that kernel rows of 9 to 16 tiles took as long on an H200, or up to 5 % longer. */
static bool fits_wide(const job *job, int64_t tiles, const cuda_limits *limits) {
    return limits->clusters > 0 && 2 * tiles > CUDA_WIDE_WARPS && tiles <= CUDA_WIDE_WARPS &&
           job->operand[0].dtype == ONEPASS_BF16 && tiles * CUDA_WIDE_ROOM + CUDA_WIDE_OWN <= limits->shared_memory;
}

/* The kernel of such rows, of few tiles. */
static cuda_variant simple_variant(const job *job, int64_t tiles, const cuda_limits *limits) {
    return !job->gradient[0].data          ? variant_rows_simple_forward
           : tiles == 1                    ? variant_rows_simple_single
           : fits_wide(job, tiles, limits) ? variant_rows_wide_bf16
           : tiles > CUDA_MOST_WARPS       ? variant_rows_simple_wide
                                           : variant_rows_simple_both;
}

/* Long rows that a cluster of blocks has: bf16 that comes to shared memory by copies of 16 bytes. */
static bool fits_cluster(const job *job, int64_t tiles, const cuda_limits *limits) {
    const view *input = &job->operand[0];
    return limits->clusters > 0 && tiles > CUDA_CLUSTER_LEAST && tiles <= CUDA_CLUSTER_TILES &&
           input->dtype == ONEPASS_BF16 && is_aligned(input, 16) && job->rows.classes % 8 == 0 &&
           input->stride[0] % 8 == 0 && onepass_cuda_cluster_shared_memory(tiles) <= limits->shared_memory;
}

/* Neighbouring rows are neighbours in memory. */
static bool lies_aside(const job *job) {
    const view *input = &job->operand[0];
    return input->ndim > 0 && input->stride[input->ndim - 1] == 1 && is_short_for_warps(job->rows.class_stride[0]) &&
           (!job->gradient[0].data || is_short_for_warps(job->rows.gradient_stride[0]));
}

/* Whether tiles are to share a shift (rows/one_shift.h). Of a factor of 24 digits, of which one of the last three is 1,
 * an odd multiple has at least 22 digits from its first to its last 1: it lies between two whole numbers from 2^20 on
 * alone. Rows of fewer tiles do not gain by it, since each begins with a tile's own shift. */
static bool is_long_bf16(const job *job, int64_t tiles) {
    const float factor = (float)job->rows.scale.factor;
    uint32_t bits;
    memcpy(&bits, &factor, sizeof bits);
    return job->operand[0].dtype == ONEPASS_BF16 && tiles >= CUDA_LONG_TILES && (bits & 7) != 0;
}

cuda_variant onepass_cuda_row_variant(const job *job, const cuda_limits *limits, bool *in_one_piece) {
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
    if (whole && !weighs && rows->classes <= CUDA_TEAM_CLASSES && are_one_piece(job))
        return gradient ? variant_rows_teams_both : variant_rows_teams_forward;
    if (tiles > CUDA_MOST_ROW_TILES || (!vectors && (weighs || !has_loose_rows(job))))
        return variant_rows_any;
    if (rows->shard.step == SHARD_SLOPES && rows->shard.tile_sums) /* of torn tiles, which are few */
        return weighs || !has_loose_rows(job) ? variant_rows_any : variant_rows_torn;
    if (rows->shard.step == SHARD_SUMS)
        return !vectors ? variant_rows_loose_shared : weighs ? variant_rows_weighed_shared : variant_rows_shared;
    if (backward)
        return !vectors ? variant_rows_loose_backward : weighs ? variant_rows_weighed_backward : variant_rows_backward;
    if (whole && vectors && !weighs && gradient && is_bare(job) && fits_cluster(job, tiles, limits))
        return variant_rows_cluster;
    if (whole && vectors && !weighs && tiles <= (gradient ? CUDA_WIDE_WARPS : 1) && is_bare(job))
        return simple_variant(job, tiles, limits);
    if (gradient && tiles <= CUDA_MOST_WARPS)
        return !vectors     ? variant_rows_loose_both
               : weighs     ? variant_rows_weighed_both
               : tiles == 1 ? variant_rows_both_single
                            : variant_rows_both;
    if (!vectors)
        return variant_rows_loose_forward;
    if (gradient && !weighs && tiles <= CUDA_WIDE_WARPS)
        return variant_rows_both_wide;
    if (whole && !weighs && is_long_bf16(job, tiles))
        return variant_rows_long_forward;
    return weighs ? variant_rows_weighed_forward : variant_rows_forward;
}

/* As is_sized(), but with nothing left to ask about: see rows/plain.h. */
cuda_variant onepass_cuda_plain_variant(const job *job, const cuda_launch *launch, bool in_one_piece) {
    const cuda_row *row = &launch->parameter.row;
    const bool is_sized = launch->variant == variant_rows_sized_forward || launch->variant == variant_rows_sized_both;
    const int64_t c = row->classes;
    const bool has_size = c == 2 || c == 4 || c == 8 || c == 10 || c == 12 || c == 16;
    if (!is_sized || !in_one_piece || !has_size || row->lines != ORDER_LINES || (row->finishes && !row->sums) ||
        job->operand[0].dtype != ONEPASS_F32 || job->operand[1].dtype != ONEPASS_I64)
        return launch->variant;
    return job->gradient[0].data ? variant_rows_plain_both : variant_rows_plain_forward;
}

void onepass_cuda_plan_kept_rows(const job *job, bool in_one_piece, cuda_row *row) {
    row->simple = is_simple(job, in_one_piece);
    row->has_parameters = has_parameters(job);
    row->in_vectors = has_few_vectors(job, in_one_piece);
}
