/*
 * From a job over vectors to its launches. Pure arithmetic, as in plan.c.
 */
#include "cuda/arithmetic.h"
#include "cuda/job.h"
#include "cuda/plan.h"
#include "dtype.h"
#include "order.h"
#include "vector_sums.h"

#include <string.h>

/* Beyond, blocks take several turns. */
#define MOST_BLOCKS (INT64_C(1) << 30)

/* The same for each multiprocessor, where most often there is nothing to do: to begin a block takes time, too. */
#define SKIPPING_WAVES INT64_C(8)

/* ---------------------------------------------------------------- variant -- */

/* How vectors and gradients lie, as vectors/tile.h knows it. */
typedef enum layout {
    ANYHOW,
    FLOATS,
    HALVES
} layout;

/* From row to row, in elements; -1 if rows do not lie at one distance from each other, or have gaps. */
static int64_t row_stride(const view *view, int64_t length) {
    if (view->ndim == 1)
        return view->stride[0] == 1 ? length : -1;
    return view->ndim == 2 && view->stride[1] == 1 && view->shape[1] == length ? view->stride[0] : -1;
}

/* Rows of four elements at a time. */
static layout layout_of(const view *view, int64_t length) {
    const int64_t stride = row_stride(view, length);
    const uintptr_t alignment = 4 * dtype_size(view->dtype);
    if (view->dtype == ONEPASS_F64 || stride < 0 || stride % 4 != 0 || length % 4 != 0 || !is_aligned(view, alignment))
        return ANYHOW;
    return view->dtype == ONEPASS_F32 ? FLOATS : HALVES;
}

/* Whether the loss is asked for as it usually is. Other ways have the kernels for any layout alone, but where a loss's
 * own have both. */
static bool is_usual(const job *job) {
    double usual[ONEPASS_MAX_PARAMETERS];
    memcpy(usual, job->parameter, sizeof usual);
    job->loss->vector_usual(usual);
    return memcmp(usual, job->parameter, sizeof usual) == 0;
}

static bool has_both_ways(const job *job) {
    return job->loss->has_labels; /* as vector_kernel.h has it */
}

static layout layout_of_job(const job *job) {
    const int32_t vectors = job->loss->vectors;
    const int64_t length = job->vectors.length;
    if (job->compute == ONEPASS_F64 || length == 0 || job->loss->has_label_lists ||
        !(is_usual(job) || has_both_ways(job)) || onepass_cuda_shape.kernels == CUDA_GENERAL_KERNELS)
        return ANYHOW;
    const layout first = layout_of(&job->operand[0], length);
    for (int32_t k = 0; k < vectors; k++)
        if (layout_of(&job->operand[k], length) != first ||
            (job->gradient[k].data && layout_of(&job->gradient[k], length) != first))
            return ANYHOW;
    return first;
}

static int64_t tiles_of(const job *job) {
    return job->vectors.length / ORDER_TILE + (job->vectors.length % ORDER_TILE != 0);
}

static bool has_gradient(const job *job) {
    bool any = false;
    for (int k = 0; k < MOST_OPERANDS; k++)
        any |= job->gradient[k].data != NULL;
    return any;
}

/* How rows are gone through. */
typedef enum way {
    NARROW, /* a warp has whole rows */
    VALUES, /* a warp has whole rows of several tiles, of which there are many and nobody wants gradients */
    SHORT,  /* a block has, for their gradients, or for softmaxes, or if a row is one tile */
    LONG    /* rows are cut into chunks, in several launches */
} way;

/* Rows of whole 16 bytes, which are copied to shared memory as they lie. */
static bool is_in_sixteens(const job *job) {
    bool all = true;
    for (int32_t k = 0; k < job->loss->vectors; k++) {
        const view *view = &job->operand[k];
        const int64_t elements = 16 / (int64_t)dtype_size(view->dtype), length = job->vectors.length;
        all &= length % elements == 0 && row_stride(view, length) % elements == 0 && is_aligned(view, 16);
    }
    return all;
}

static way way_of(const job *job) {
    if (layout_of_job(job) == ANYHOW || onepass_cuda_shape.kernels == CUDA_LARGE_KERNELS)
        return LONG;
    if (job->loss->has_softmaxes) {
        const bool carried =
            job->loss->sums == 0; /* whose values, and second vector's gradients, are had more quickly */
        return tiles_of(job) > CUDA_MOST_WARPS || (carried && (!has_gradient(job) || job->gradient[1].data)) ? LONG
                                                                                                             : SHORT;
    }
    if (job->vectors.length <= ORDER_TILE / 2 && is_usual(job))
        return NARROW;
    return tiles_of(job) <= (has_gradient(job) ? CUDA_MOST_WARPS : 1) && is_in_sixteens(job) ? SHORT : LONG;
}

/* Rows that such a warp has at a time: the same bytes of any type. */
static int64_t rows_of_short_warp(const job *job) {
    return !job->loss->has_softmaxes && layout_of_job(job) == HALVES ? CUDA_SHORT_ROWS : 1;
}

/* Tiles of each vector in shared memory. */
static int64_t staged_bytes(const loss *loss, int64_t tiles, size_t size) {
    return tiles * loss->vectors * ORDER_TILE * (int64_t)size;
}

static int64_t short_bytes(const job *job, int64_t warps) {
    return staged_bytes(job->loss, warps * rows_of_short_warp(job), dtype_size(job->operand[0].dtype));
}

/* Two places a warp. */
static int64_t value_bytes(const job *job) {
    return staged_bytes(job->loss, 2 * CUDA_VALUE_WARPS, dtype_size(job->operand[0].dtype));
}

/* Beside what the kernel has of its own. */
static bool fits(int64_t bytes, const cuda_limits *limits) {
    return bytes + 1024 <= limits->shared_memory;
}

/* Whether the next tiles of short rows with softmaxes come to shared memory: where a multiprocessor has room for those
 * of all warps that it has registers for, in one block or two. */
static bool all_fit(int64_t bytes, const cuda_limits *limits) {
    return fits(bytes + 2 * CUDA_SOFTMAX_BYTES, limits);
}

static bool is_staged(const job *job, const cuda_limits *limits) {
    return job->loss->has_softmaxes && layout_of_job(job) != ANYHOW && is_in_sixteens(job) &&
           all_fit(short_bytes(job, CUDA_SOFTMAX_WARPS), limits);
}

/* Warps of a block that has short rows: as few as there are rows for, but four; with softmaxes alone and the next tiles
 * on their way, all that a multiprocessor has. */
static int64_t short_warps(const job *job, int64_t warps_of_row, const cuda_limits *limits) {
    if (job->loss->sums == 0 && is_staged(job, limits))
        return CUDA_SOFTMAX_WARPS;
    return job->loss->has_softmaxes || warps_of_row > 4 ? CUDA_MOST_WARPS : 4;
}

/* Blocks that have the next rows on their way stay for them; half of them come later, and even out what others have
 * left. */
static int64_t short_blocks(const job *job, int64_t blocks, int64_t warps, const cuda_limits *limits) {
    return is_staged(job, limits) ? least(blocks, 2 * CUDA_SOFTMAX_WARPS / warps * (int64_t)limits->multiprocessors)
                                  : blocks;
}

/* Whether the values of rows are the work of a warp each: where there are enough of them for all multiprocessors, of
 * which each has room for several blocks. */
static bool has_values_alone(const job *job, const cuda_limits *limits) {
    const int64_t tiles = job->count * power_for(tiles_of(job)), bytes = value_bytes(job);
    const bool many = tiles >= (int64_t)limits->multiprocessors * CUDA_VALUE_TILES * CUDA_VALUE_WARPS * 4 &&
                      fits(CUDA_VALUE_BLOCKS * bytes, limits);
    return !has_gradient(job) && !job->loss->has_softmaxes && tiles_of(job) <= CUDA_VALUE_TILES &&
           is_in_sixteens(job) && (many || (onepass_cuda_shape.kernels == CUDA_SMALL_KERNELS && fits(bytes, limits)));
}

/* The same on a GPU that may have less shared memory than some rows need. */
static way way_on(const job *job, const cuda_limits *limits) {
    const way way = way_of(job);
    if (way == NARROW || layout_of_job(job) == ANYHOW || onepass_cuda_shape.kernels == CUDA_LARGE_KERNELS)
        return way;
    if (has_values_alone(job, limits))
        return VALUES;
    if (way != SHORT)
        return way;
    const int64_t warps = short_warps(job, power_for(tiles_of(job)), limits);
    return job->loss->has_softmaxes || fits(short_bytes(job, warps), limits) ? SHORT : LONG;
}

int32_t onepass_cuda_most_shared_memory(const cuda_launch *launch, const cuda_limits *limits) {
    const int64_t warps = launch->loss->has_softmaxes ? CUDA_SOFTMAX_WARPS : CUDA_MOST_WARPS;
    const int64_t bytes = staged_bytes(launch->loss, warps, sizeof(float));
    if (launch->variant == variant_rows_cluster)
        return (int32_t)least(CUDA_CLUSTER_WARPS * CUDA_CLUSTER_ROOM, limits->shared_memory - CUDA_CLUSTER_OWN);
    if (launch->variant == variant_rows_weighed_forward)
        return (int32_t)least(CUDA_WEIGHED_ROOM, limits->shared_memory - CUDA_WEIGHED_OWN);
    if (launch->variant == variant_rows_wide_bf16)
        return (int32_t)least(CUDA_WIDE_WARPS * CUDA_WIDE_ROOM, limits->shared_memory - CUDA_WIDE_OWN);
    if (launch->variant != variant_vectors_short && launch->variant != variant_vectors_values)
        return 0;
    if (launch->loss->has_softmaxes)
        return all_fit(bytes, limits) ? (int32_t)bytes : 0;
    return (int32_t)(fits(bytes, limits) ? bytes : limits->shared_memory - 1024);
}

/* -------------------------------------------------------------- workspace -- */

/* Whether sums are made as vectors/ahead.h has it. */
static bool is_ahead(const job *job) {
    return job->loss->is_long && way_of(job) == LONG && layout_of_job(job) == FLOATS &&
           job->vectors.length % ORDER_TILE == 0 && tiles_of(job) >= CUDA_MOST_WARPS;
}

/* With fewer chunks these are smaller, so that a large GPU has no idle blocks. */
#define ENOUGH_CHUNKS 1024

/* Lines of a narrow row, warps of a short one, tiles of a chunk. */
static int64_t chunk_of(const job *job) {
    const int64_t tiles = power_for(tiles_of(job));
    if (way_of(job) == NARROW)
        return power_for((job->vectors.length + ORDER_LANES - 1) / ORDER_LANES);
    if (!is_ahead(job))
        return least(tiles, CUDA_MOST_CHUNK);
    const int64_t enough = onepass_cuda_shape.tiles_per_block ? onepass_cuda_shape.tiles_per_block
                                                              : power_for(job->count * tiles_of(job) / ENOUGH_CHUNKS);
    return least(tiles, least(enough > CUDA_MOST_WARPS ? enough : CUDA_MOST_WARPS, CUDA_AHEAD_CHUNK));
}

/* Rows that a warp has at a time, of those of half a tile or less. */
static int64_t rows_of_narrow_warp(const job *job) {
    return ORDER_LINES / 2 / chunk_of(job);
}

static int64_t chunks_of(const job *job) {
    const int64_t chunk = chunk_of(job), chunks = (tiles_of(job) + chunk - 1) / chunk;
    return chunks > 0 ? chunks : 1;
}

static int64_t nodes_at(const job *job) {
    return ((int64_t)onepass_cuda_terms_size(job) + 7) / 8 * 8;
}

static int64_t factors_at(const job *job) {
    return nodes_at(job) + 8 * job->loss->sums * job->count * chunks_of(job);
}

static int64_t known_at(const job *job) {
    return factors_at(job) + 8 * VECTOR_MOST_FACTORS * job->count;
}

static int64_t tiles_at(const job *job) {
    return known_at(job) + (job->loss->has_softmaxes ? (int64_t)sizeof(vector_softmaxes) * job->count : 0);
}

static int64_t end_of_tiles(const job *job) {
    return tiles_at(job) + (job->loss->has_softmaxes ? 8 * CUDA_TILE_SOFTMAXES * job->count * tiles_of(job) : 0);
}

static size_t workspace_of(const job *job, way way) {
    if (way == LONG)
        return (size_t)end_of_tiles(job);
    return wants_sum(job) ? onepass_cuda_terms_size(job) : job->over_weights ? CUDA_WORKSPACE_HEAD : 0;
}

/* -------------------------------------------------------------- parameter -- */

static const view *vector_tensor(const job *job, int which) {
    static const view absent = {0};
    switch (which) {
    case CUDA_VECTOR_WEIGHT:
        return &job->weight;
    case CUDA_VECTOR_MASK:
        return &job->mask;
    case CUDA_VECTOR_UPSTREAM:
        return &job->upstream;
    case CUDA_VECTOR_VALUE:
        return &job->value;
    default:
        if (which >= CUDA_VECTOR_GRADIENT)
            return &job->gradient[which - CUDA_VECTOR_GRADIENT];
        return which < job->operand_count ? &job->operand[which] : &absent;
    }
}

/* Turns of a warp with narrow rows: more where that leaves all multiprocessors enough to do. */
static int64_t turns_of(const job *job, way way, const cuda_limits *limits) {
    if (way != NARROW)
        return way == SHORT ? rows_of_short_warp(job) : 1;
    const int64_t rows = rows_of_narrow_warp(job),
                  turns = job->count / (rows * limits->multiprocessors * CUDA_MOST_WARPS * 4);
    return turns < 1 ? 1 : least(turns, CUDA_MOST_TURNS);
}

static void plan_parameter(const job *job, way way, const cuda_limits *limits, cuda_vector *vector) {
    memset(vector, 0, sizeof *vector);
    for (int which = 0; which < CUDA_VECTOR_TENSORS; which++) {
        const view *view = vector_tensor(job, which);
        vector->data[which] = view->data;
        if (!view->data)
            continue;
        vector->dtype[which] = (uint8_t)view->dtype;
        onepass_cuda_plan_view(view, &vector->view[which]);
        vector->row_stride[which] = row_stride(view, job->vectors.length);
    }
    vector->rows = job->count;
    vector->length = job->vectors.length;
    vector->tiles = tiles_of(job);
    vector->chunk = (int32_t)chunk_of(job);
    vector->turns = (int32_t)turns_of(job, way, limits);
    vector->chunks = chunks_of(job);
    vector->by_chunks = divisor_of(vector->chunks);
    vector->by_tiles = divisor_of(vector->tiles);
    vector->terms_at = wants_sum(job) ? onepass_cuda_terms_at(job) : 0;
    if (way == LONG) {
        vector->nodes_at = nodes_at(job);
        vector->factors_at = factors_at(job);
        vector->known_at = known_at(job);
        vector->tiles_at = tiles_at(job);
    }
    vector->reduction = (uint8_t)job->reduction;
    vector->skip_if_one = job->skip_if_one;
    vector->over_weights = job->over_weights;
    vector->has_gradient = has_gradient(job);
    vector->is_staged = is_staged(job, limits);
    vector->is_usual = is_usual(job);
    vector->halves = layout_of_job(job) == HALVES;
    vector->per_divisor = job->reduction == ONEPASS_MEAN ? 1 / job->divisor : 1;
    if (job->loss->has_softmaxes)
        onepass_cuda_plan_softmax(&job->vectors.scale, job->compute, &vector->softmax);
    memcpy(vector->parameter, job->parameter, sizeof vector->parameter);
}

/* ----------------------------------------------------------------- launch -- */

static int64_t blocks_for(int64_t work, int64_t a_block) {
    const int64_t most = onepass_cuda_shape.most_blocks ? onepass_cuda_shape.most_blocks : MOST_BLOCKS;
    return least((work + a_block - 1) / a_block, most);
}

static void plan_launch(const job *job, way way, const cuda_limits *limits, cuda_variant variant, int64_t warps,
                        int64_t blocks, cuda_launch *launch) {
    const bool goes_through = variant == variant_vectors_any_softmaxes || variant == variant_vectors_any_sums ||
                              variant == variant_vectors_any_slopes;
    const int64_t buffers = job->loss->vectors + job->loss->has_label_lists; /* as vectors/row.h has them */
    const bool has_tiles = way == SHORT && (!job->loss->has_softmaxes || is_staged(job, limits));
    launch->loss = job->loss;
    launch->variant = variant;
    launch->compute = job->compute;
    launch->sums_terms = false;
    launch->threads = (uint32_t)(warps * WARP);
    launch->blocks = (uint32_t)(job->skip_if_one ? least(blocks, SKIPPING_WAVES * limits->multiprocessors) : blocks);
    launch->shared_memory = goes_through ? (uint32_t)(warps * buffers * ORDER_TILE) * (uint32_t)dtype_size(job->compute)
                            : has_tiles  ? (uint32_t)short_bytes(job, warps)
                            : way == VALUES ? (uint32_t)value_bytes(job)
                                            : 0;
    launch->workspace = workspace_of(job, way);
    plan_parameter(job, way, limits, &launch->parameter.vector);
}

/* What the launches of rows that are cut into chunks do, in this order. Not every loss needs every step. */
typedef enum step {
    STEP_SOFTMAXES,
    STEP_KNOW,
    STEP_SUMS,
    STEP_FINISH,
    STEP_SLOPES,
    STEPS
} step;

static bool needs_step(const job *job, int step) {
    switch (step) {
    case STEP_SOFTMAXES:
    case STEP_KNOW:
        return job->loss->has_softmaxes;
    case STEP_SUMS:
    case STEP_FINISH: /* else it is done with rows when it knows them */
        return job->loss->sums > 0;
    default:
        return has_gradient(job);
    }
}

int onepass_cuda_vector_steps(const job *job, const cuda_limits *limits) {
    int steps = 0;
    for (int step = 0; step < STEPS; step++)
        steps += needs_step(job, step);
    return way_on(job, limits) == LONG ? steps : 1;
}

/* The step that is the job's n-th. */
static step step_of(const job *job, int n) {
    int step = 0;
    for (; !needs_step(job, step) || n-- > 0; step++)
        continue;
    return (enum step)step;
}

static void plan_step(const job *job, step step, const cuda_limits *limits, cuda_launch *launch) {
    const bool any = layout_of_job(job) == ANYHOW;
    const int64_t chunk = chunk_of(job), chunks = chunks_of(job), all = job->count * chunks, tiles = tiles_of(job);
    const int64_t warps = !any ? CUDA_MOST_WARPS : job->compute == ONEPASS_F64 ? 1 : 2;
    switch (step) {
    case STEP_SOFTMAXES:
        plan_launch(job, LONG, limits, any ? variant_vectors_any_softmaxes : variant_vectors_softmaxes, warps,
                    blocks_for(job->count * (tiles ? tiles : 1), warps), launch);
        break;
    case STEP_KNOW:
        plan_launch(job, LONG, limits, variant_vectors_know, CUDA_MOST_WARPS / 2,
                    blocks_for(job->count, tiles > WARP ? 1 : CUDA_MOST_WARPS / 2 * WARP / chunk), launch);
        break;
    case STEP_SUMS:
        if (is_ahead(job)) {
            plan_launch(job, LONG, limits, variant_vectors_sums_ahead, warps,
                        least(blocks_for(all, 1), CUDA_AHEAD_BLOCKS * (int64_t)limits->multiprocessors), launch);
            break;
        }
        plan_launch(job, LONG, limits, any ? variant_vectors_any_sums : variant_vectors_sums, warps,
                    blocks_for(all, chunk < warps ? warps / chunk : 1), launch);
        break;
    case STEP_FINISH:
        plan_launch(job, LONG, limits, variant_vectors_finish, CUDA_MOST_WARPS,
                    blocks_for(job->count, chunks == 1 ? CUDA_MOST_WARPS * WARP : 1), launch);
        break;
    default:
        plan_launch(job, LONG, limits, any ? variant_vectors_any_slopes : variant_vectors_slopes, warps,
                    blocks_for(job->count * tiles, warps), launch);
    }
}

void onepass_cuda_plan_vectors(const job *job, int step, const cuda_limits *limits, cuda_launch *launch) {
    const way way = way_on(job, limits);
    const int64_t chunk = chunk_of(job), turns = turns_of(job, way, limits), warps = CUDA_MOST_WARPS;
    const int64_t few_warps = short_warps(job, chunk, limits);
    if (way == NARROW)
        plan_launch(job, way, limits, variant_vectors_narrow, warps,
                    blocks_for(job->count, warps * rows_of_narrow_warp(job) * turns), launch);
    else if (way == VALUES)
        plan_launch(job, way, limits, variant_vectors_values, CUDA_VALUE_WARPS,
                    blocks_for(job->count, CUDA_VALUE_WARPS * CUDA_VALUE_TILES / chunk), launch);
    else if (way == SHORT)
        plan_launch(job, way, limits, variant_vectors_short, few_warps,
                    short_blocks(job, blocks_for(job->count, few_warps / chunk * turns), few_warps, limits), launch);
    else
        plan_step(job, step_of(job, step), limits, launch);
}
