/*
 * From a job over rows to its launches: what comes before and after the one that has the rows. Pure arithmetic, as in
 * plan.c.
 */
#include "cuda/image.h"
#include "cuda/row_plan.h"
#include "math/softmax.h"

#include <string.h>

const loss onepass_cuda_rows = {
    .info = {.name = "rows"}, .family = FAMILY_ROW_WEIGHTS, .cuda = &onepass_cuda_images_every_loss};

/* The sum of the rows' terms, which is that of their weights but goes to the value. */
const loss onepass_cuda_terms = {.info = {.name = "weights", .operand_count = 1},
                                 .family = FAMILY_PAIRWISE,
                                 .cuda = &onepass_cuda_images_every_loss};

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
    row->expected_upstream = job->expected_upstream;
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
    row->needs_lse = job->loss->kind != ROW_PICKED && onepass_cuda_needs_lse(job);
    row->terms_at = wants_sum(job) ? onepass_cuda_terms_at(job) : 0;
    row->completes = row->needs_lse || row->weighs || rows->log_sum_exp.data || (rows->state && !rows->reads_state);
    row->finishes = row->terms_at || job->value.data || rows->log_sum_exp.data || (rows->state && !rows->reads_state);
}

/* -------------------------------------------------------------------- steps -- */

/* A block of few classes adds up its rows if they are a tile. */
static bool adds_up(const job *job, const cuda_limits *limits) {
    bool in_one_piece;
    return job->family == FAMILY_ROWS && wants_sum(job) && !job->terms && tiles_of(job->count) <= CUDA_MOST_BLOCKS &&
           is_few_variant(onepass_cuda_row_variant(job, limits, &in_one_piece)) &&
           onepass_cuda_lines_of_block(job, limits->multiprocessors) == ORDER_LINES;
}

/* Rows that are longer, or not moved as vectors, are gone through twice: forward, which leaves their states, and
 * backward. */
static bool goes_twice(const job *job, const cuda_limits *limits) {
    bool in_one_piece;
    if (!job->gradient[0].data || job->family != FAMILY_ROWS)
        return false;
    return is_forward(onepass_cuda_row_variant(job, limits, &in_one_piece));
}

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
static bool counts_itself(const job *job, const cuda_limits *limits) {
    bool in_one_piece;
    if (!job->over_weights || job->family != FAMILY_ROWS || job->divisor_tensor.data || !counts_rows(job) ||
        job->loss->kind == ROW_PROBABILITIES)
        return false;
    return (is_forward(onepass_cuda_row_variant(job, limits, &in_one_piece)) && job->count >> CUDA_BLOCK_BITS == 0) ||
           (adds_up(job, limits) && !job->gradient[0].data);
}

/* What becomes of a sum that needs no launch of its own. */
static void plan_row_total(const job *job, cuda_total *total) {
    const double divisor = known_divisor(job);
    total->value = job->value.data;
    total->divides = !is_product(divisor);
    total->number = total->divides ? divisor : 1 / divisor;
    total->dtype = (uint8_t)job->value.dtype;
}

static void plan_rows(const job *given, const cuda_limits *limits, cuda_launch *launch) {
    bool in_one_piece = false;
    struct job forward = *given;
    const bool twice = goes_twice(given, limits);
    const job *job = twice ? &forward : given;
    forward.gradient[0].data = NULL;
    begin_launch(job, job->loss, onepass_cuda_row_variant(job, limits, &in_one_piece), launch);
    cuda_row *row = &launch->parameter.row;
    plan_row(job, row);
    if (keeps_rows(launch->variant)) {
        row->group = is_few_variant(launch->variant) ? in_one_piece : onepass_cuda_log2_of_row(job, launch->variant);
        onepass_cuda_plan_kept_rows(job, in_one_piece, row);
        row->lines =
            (uint8_t)(is_few_variant(launch->variant)    ? onepass_cuda_lines_of_block(job, limits->multiprocessors)
                      : is_team_variant(launch->variant) ? onepass_cuda_lines_of_teams(job, limits->multiprocessors)
                                                         : onepass_cuda_lines_aside(job, limits->multiprocessors));
        if (job->rows.reads_state) /* the row is at hand: what it comes to is computed anew, with the same bits */
            row->state = NULL;
    }
    if (is_simple_variant(launch->variant))
        onepass_cuda_plan_kept_rows(job, false, row);
    if (twice && !row->state) {
        row->state_at = state_at(job);
        row->completes = row->finishes = 1;
    }
    row->counts = counts_itself(job, limits);
    row->sums = adds_up(job, limits);
    if (row->sums)
        plan_row_total(job, &row->total);
    launch->variant = onepass_cuda_plain_variant(job, launch, in_one_piece);
    onepass_cuda_plan_row_shape(job, limits, launch);
    launch->workspace = row->sums           ? CUDA_WORKSPACE_HEAD + 8 * (size_t)tiles_of(job->count)
                        : row->state_at     ? workspace_with_states(job)
                        : row->terms_at     ? onepass_cuda_terms_size(job)
                        : job->over_weights ? CUDA_WORKSPACE_HEAD
                                            : 0;
}

/* The gradients of rows that have been gone through. */
static void plan_second_pass(const job *job, const cuda_limits *limits, cuda_launch *launch) {
    struct job backward = *job;
    double in_workspace; /* nobody looks at it, but it chooses the kernel */
    backward.value.data = backward.rows.log_sum_exp.data = NULL;
    backward.rows.reads_state = true;
    if (!job->rows.state)
        backward.rows.state = &in_workspace;
    plan_rows(&backward, limits, launch);
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

/* Whether the sum of the terms is that of as many blocks as leave room for it. */
static bool has_total_kernel(const job *job) {
    return tiles_of(job->count) <= (int64_t)CUDA_TERMS_TILES * CUDA_MOST_BLOCKS;
}

static void plan_total(const job *job, bool of_weights, cuda_launch *launch) {
    cuda_terms *terms = &launch->parameter.terms;
    const int64_t tiles = most(tiles_of(job->count), 1), forced = onepass_cuda_shape.tiles_per_block;
    const int64_t span = least(tiles, forced ? least(forced, CUDA_TERMS_TILES) : CUDA_TERMS_TILES);
    begin_launch(job, &onepass_cuda_rows, variant_total, launch);
    *terms = (cuda_terms){.terms_at = onepass_cuda_terms_at(job),
                          .count = job->count,
                          .tiles = 1,
                          .over_weights = !of_weights && job->over_weights};
    while (terms->tiles < span)
        terms->tiles *= 2;
    if (!of_weights)
        plan_row_total(job, &terms->total);
    launch->blocks = (uint32_t)((tiles + terms->tiles - 1) / terms->tiles);
    launch->threads = (uint32_t)least(terms->tiles, CUDA_TERMS_WARPS((int)dtype_size(job->compute))) * WARP;
    launch->workspace = onepass_cuda_terms_size(job);
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
        .expected_upstream = job->expected_upstream,
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
    else if (step == 1 && !counts_rows(&weights) && has_total_kernel(&weights))
        plan_total(&weights, true, launch);
    else if (step == 1 && !counts_rows(&weights))
        onepass_cuda_plan_terms(&weights, true, multiprocessors, launch);
    else
        return false;
    return true;
}

static int steps_before(const job *job, const cuda_limits *limits) {
    if (!job->over_weights || counts_itself(job, limits) || onepass_cuda_finds_divisor(job) ||
        onepass_cuda_weighs_itself(job))
        return 0;
    const bool by_rows =
        job->family == FAMILY_ROWS && job->loss->kind != ROW_PROBABILITIES && !job->divisor_tensor.data;
    return by_rows && !counts_rows(job) ? 2 : 1;
}

bool onepass_cuda_plan_step(const job *job, int step, const cuda_limits *limits, cuda_launch *launch) {
    const int32_t multiprocessors = limits->multiprocessors;
    const bool rows = job->family == FAMILY_ROWS;
    const int before = steps_before(job, limits), predicts = rows && job->rows.predicted.data ? 1 : 0;
    if (predicts && step == 0) {
        plan_row_predicted(job, launch);
        return true;
    }
    step -= predicts;
    if (step < before)
        return plan_before(job, step, multiprocessors, launch);
    step -= before;
    const bool vectors = job->family == FAMILY_VECTORS;
    const bool sums = (rows || vectors) && wants_sum(job) && !job->terms && !adds_up(job, limits);
    const int own = vectors ? onepass_cuda_vector_steps(job, limits) : goes_twice(job, limits) ? 2 : 1;
    if (step < own && vectors)
        onepass_cuda_plan_vectors(job, step, limits, launch);
    else if (step == 0 && rows)
        plan_rows(job, limits, launch);
    else if (step == 0)
        onepass_cuda_plan(job, multiprocessors, launch);
    else if (step < own)
        plan_second_pass(job, limits, launch);
    else if (step == own && sums && has_total_kernel(job))
        plan_total(job, false, launch);
    else if (step == own && sums)
        onepass_cuda_plan_terms(job, false, multiprocessors, launch);
    else if (step == own + sums && job->divided_by.data && !onepass_cuda_weighs_itself(job))
        plan_divided_by(job, launch);
    else
        return false;
    return true;
}
