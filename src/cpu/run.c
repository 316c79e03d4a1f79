/*
 * The CPU engine's work on tiles: gather the operands of a tile as `real` numbers, have a loss's functions compute
 * values and slopes lane by lane, scatter what was computed. Compiled once for each instruction set and each compute
 * type; ONEPASS_VARIANT (avx2_f32) ends the names of the two functions that come out.
 *
 * -ffp-contract=off is part of the meaning: a fused multiply-add has other bits.
 */
#include "cpu/run.h"     /* the entries */
#include "cpu/buffers.h" /* what is done in them */
#include "cpu/memory.h"  /* gather and scatter */
#include "order.h"       /* whatever is added up */

/* --------------------------------------------------------------- outputs -- */

/* What is computed of each tile. */
typedef struct outputs {
    bool sum, values, gradient[MOST_OPERANDS];
    int gradients; /* how many */
    bool upstream_is_tensor;
    bool weighted;   /* then the scale is left to be multiplied after the weight */
    bool one_by_one; /* tiles with a weight or a mask */
    bool together;   /* sums may come with a gradient */
    bool only_sums;  /* alone or together */
    real scale;
    access access; /* in which the sums can read the operands, where whole tiles of each lie in one row */
    real upstream; /* if it is one number; 1 if there is none */
} outputs;

/* Gaps within a cache line: the sums read around them (0.95 of a plain loop's rate
 * on a Neoverse N1, against 0.62 through a buffer). Wider ones are better gathered. */
static bool has_narrow_gaps(const view *view) {
    const int64_t stride = inner_stride(view);
    return stride != 0 && stride != 1 && stride * (int64_t)sizeof(real) < 64 && -stride * (int64_t)sizeof(real) < 64;
}

/* What the sums can read where it lies. */
static access sums_access(const job *job, const cpu_loss *loss) {
    const bool has_strided = (job->gradient[0].data ? loss->sums_and_gradient : loss->sums)[ACCESS_STRIDED];
    const int32_t dtype = job->operand[0].dtype;
    bool dense = true, gaps = false;
    for (int32_t k = 0; k < job->operand_count; k++) {
        if (job->operand[k].dtype != dtype)
            return ACCESS_REAL;
        dense &= inner_stride(&job->operand[k]) == 1;
        gaps |= has_narrow_gaps(&job->operand[k]);
    }
    if (sizeof(real) != sizeof(float))
        return ACCESS_REAL;
    if (dtype == REAL_DTYPE)
        return gaps && has_strided ? ACCESS_STRIDED : ACCESS_REAL;
    return !dense ? ACCESS_REAL : dtype == ONEPASS_F16 ? ACCESS_F16 : ACCESS_BF16;
}

/* The scale must be a finite number above 0; a loss may ask for more. */
static bool may_come_together(const cpu_loss *loss, const real *parameter, real scale) {
    return 2 * scale - 2 * scale == 0 && scale > 0 && loss && (!loss->together || loss->together(parameter));
}

static outputs outputs_of(const job *job, const cpu_loss *loss, const real *parameter) {
    const bool none = job->reduction == ONEPASS_NONE;
    outputs outputs = {.sum = job->sum || (!none && job->value.data),
                       .values = none && job->value.data,
                       .upstream_is_tensor = none && job->upstream.data,
                       .weighted = job->weight.data,
                       .one_by_one = job->weight.data || job->mask.data,
                       .scale = job->reduction == ONEPASS_MEAN ? (real)(1.0 / job->divisor) : 1,
                       .upstream = 1};
    if (!none && job->upstream.data)
        outputs.upstream = (real)load_scalar(job->upstream.data, job->upstream.dtype);
    outputs.together = may_come_together(loss, parameter, outputs.scale);
    for (int k = 0; k < MOST_OPERANDS; k++) {
        outputs.gradient[k] = job->gradient[k].data;
        outputs.gradients += outputs.gradient[k];
    }
    outputs.only_sums = loss && outputs.sum && !outputs.values && !outputs.one_by_one &&
                        outputs.gradients == (outputs.together && outputs.gradient[0]);
    if (outputs.only_sums)
        outputs.access = sums_access(job, loss);
    return outputs;
}

/* ---------------------------------------------------------------- strips -- */

/* How many tiles from `element` on make a strip for which the view need not be gathered, or only one constant tile. */
static int64_t tiles_without_gather(const view *view, int64_t element, access access) {
    if (access != ACCESS_REAL)
        return row_length(view, element) / ORDER_TILE;
    const int64_t dense = view->dtype == REAL_DTYPE ? dense_length(view, element) : 0;
    return (dense ? dense : constant_length(view, element)) / ORDER_TILE;
}

static int64_t tiles_without_scatter(const view *view, int64_t element) {
    return view->dtype == REAL_DTYPE ? dense_length(view, element) / ORDER_TILE : 0;
}

/* An operand that its gradient will lie over is copied first, if other gradients are computed from it as well. */
static bool must_copy(const job *job, const outputs *outputs, int k) {
    return outputs->gradients > 1 && job->in_place[k];
}

/* The next strip: as many tiles as nobody needs a buffer for, else one. */
static access next_strip(const job *job, const outputs *outputs, int64_t element, int64_t left, strip *strip,
                         buffers *buffers) {
    int64_t tiles = least(left / ORDER_TILE, outputs->one_by_one ? 1 : STRIP_TILES);
    access access = tiles ? outputs->access : ACCESS_REAL;
    for (int k = 0; k < job->operand_count; k++)
        if (row_length(&job->operand[k], element) < ORDER_TILE)
            access = ACCESS_REAL;
    for (int k = 0; k < job->operand_count; k++) {
        tiles = least(tiles, tiles_without_gather(&job->operand[k], element, access));
        if (outputs->gradient[k])
            tiles = must_copy(job, outputs, k) ? 0 : least(tiles, tiles_without_scatter(&job->gradient[k], element));
    }
    if (outputs->values)
        tiles = least(tiles, tiles_without_scatter(&job->value, element));

    strip->tiles = tiles > 0 ? (int)tiles : 1;
    strip->count = (int)least(left, (int64_t)strip->tiles * ORDER_TILE);
    for (int k = 0; k < job->operand_count; k++) {
        const view *view = &job->operand[k];
        if (access != ACCESS_REAL)
            strip->operand[k] = address_of(view, element);
        else if (must_copy(job, outputs, k))
            strip->operand[k] = gather_copy(view, element, strip->count, buffers->operand[k]);
        else
            strip->operand[k] = gather(view, element, strip->count, buffers->operand[k], &buffers->constant[k]);
        strip->stride[k] = access == ACCESS_STRIDED ? inner_stride(view) : 1;
        strip->step[k] = strip->operand[k] == buffers->operand[k] ? 0 : strip->stride[k] * ORDER_TILE;
    }
    for (int k = job->operand_count; k < MOST_OPERANDS; k++)
        strip->operand[k] = strip->operand[0];
    return access;
}

/* --------------------------------------------------------------- compute -- */

ALWAYS_INLINE real weighted_term(const tile *tile, int64_t i) {
    return read_real(tile, 0, i) * read_real(tile, 1, i);
}

/* A tile's weights and mask; null where there is no such thing. */
typedef struct element_weights {
    const real *weight, *mask;
} element_weights;

/* A tile that the input ends in, or whose terms are weighted or masked. */
static void buffered_sum(const cpu_loss *loss, const strip *given, element_weights element_weights, real *terms,
                         double *sum) {
    const real *weight = element_weights.weight;
    loss->values(given, terms);
    if (weight && !element_weights.mask && given->count == ORDER_TILE) {
        one_sum(weighted_term, terms, weight, sum);
        return;
    }
    if (weight)
        weigh(terms, given->count, weight, 1);
    if (element_weights.mask)
        hide(terms, given->count, element_weights.mask);
    stored_sum(terms, given->count, sum);
}

static void write_values(const job *job, const cpu_loss *loss, const strip *strip, element_weights element_weights,
                         int64_t element, buffers *buffers) {
    real *into = direct(&job->value, element, strip->count), *values = into ? into : buffers->result;
    loss->values(strip, values);
    if (element_weights.weight)
        weigh(values, strip->count, element_weights.weight, 1);
    if (element_weights.mask)
        hide(values, strip->count, element_weights.mask);
    if (!into)
        scatter(&job->value, element, strip->count, values);
}

static bool are_finite(const double *sum, int64_t count) {
    double off = 0;
#pragma omp simd reduction(+ : off)
    for (int64_t i = 0; i < count; i++)
        off += sum[i] - sum[i];
    return off == 0;
}

/* Gradients that came with sums are right where these are finite; elsewhere a loss may have more to do. */
static void mend_tiles(const cpu_loss *loss, const strip *strip, const double *sum) {
    if (!loss->mend || are_finite(sum, strip->tiles))
        return;
    for (int index = 0; index < strip->tiles; index++)
        if (!are_finite(sum + index, 1))
            loss->mend(strip->gradient + index * ORDER_TILE, strip->scale);
}

/* The upstream gradient comes last, so that a gradient may also be scaled later with the same bits. */
static void multiply_by_upstream(const job *job, const outputs *outputs, int64_t element, int count, factors *factors,
                                 real *gradient) {
    if (outputs->upstream_is_tensor) {
        const void *constant = NULL;
        for (int done = 0; done < count; done += ORDER_TILE) {
            const int n = (int)least(count - done, ORDER_TILE);
            multiply_by_each(gradient + done, n,
                             gather(&job->upstream, element + done, n, factors->upstream, &constant));
        }
    } else if (outputs->upstream != 1) {
        multiply_by_one(gradient, count, outputs->upstream);
    }
}

static element_weights element_weights_of(const job *job, int64_t element, int count, factors *factors) {
    element_weights element_weights = {NULL, NULL};
    if (job->weight.data)
        element_weights.weight = gather(&job->weight, element, count, factors->weight, &factors->constant_weight);
    if (job->mask.data)
        element_weights.mask = gather(&job->mask, element, count, factors->mask, &factors->constant_mask);
    return element_weights;
}

/* All outputs of a strip; `sum` has one number a tile, if there are sums. */
static void run_strip(const job *job, const outputs *outputs, access access, strip *strip, int64_t element,
                      buffers *buffers, double *sum) {
    const cpu_loss *loss = job->loss->cpu.ONEPASS_VARIANT;
    const element_weights element_weights = element_weights_of(job, element, strip->count, buffers->factors);
    const bool whole = strip->count == strip->tiles * ORDER_TILE && !outputs->one_by_one;
    const bool together = whole && outputs->sum && outputs->gradient[0] && outputs->together;

    if (together) {
        real *into = direct(&job->gradient[0], element, strip->count);
        strip->gradient = into ? into : buffers->result;
        loss->sums_and_gradient[access](strip, sum);
        mend_tiles(loss, strip, sum);
    } else if (outputs->sum && whole) {
        loss->sums[access](strip, sum);
    } else if (outputs->sum) {
        buffered_sum(loss, strip, element_weights, job->terms ? job->terms : buffers->result, sum);
    }
    if (outputs->values)
        write_values(job, loss, strip, element_weights, element, buffers);
    for (int k = 0; k < job->operand_count; k++) {
        if (!outputs->gradient[k])
            continue;
        real *into = direct(&job->gradient[k], element, strip->count), *gradient = into ? into : buffers->result;
        if (!(together && k == 0))
            loss->gradient[k](strip, gradient);
        if (element_weights.weight)
            weigh(gradient, strip->count, element_weights.weight, outputs->scale);
        multiply_by_upstream(job, outputs, element, strip->count, buffers->factors, gradient);
        if (element_weights.mask)
            hide(gradient, strip->count, element_weights.mask);
        if (!into)
            scatter(&job->gradient[k], element, strip->count, gradient);
    }
}

/* ----------------------------------------------- jobs without a loss -- */

/* The upstream gradient alone, for gradients that were computed without it. */
static void scale_gradients(const job *job, const outputs *outputs, int64_t element, int64_t end, buffers *buffers) {
    for (int count; element < end && outputs->upstream != 1; element += count) {
        count = (int)least(end - element, ORDER_TILE);
        for (int k = 0; k < MOST_OPERANDS; k++) {
            const view *view = &job->gradient[k];
            if (!outputs->gradient[k])
                continue;
            real *into = direct(view, element, count), *gradient = into ? into : buffers->result;
            if (!into)
                gather_copy(view, element, count, gradient);
            multiply_by_one(gradient, count, outputs->upstream);
            if (!into)
                scatter(view, element, count, gradient);
        }
    }
}

/* The weights alone, or the mask, for the mean that is divided by their sum. A tile that lies as `real`, and counts as
 * a whole, is read where it is. */
static void sum_weights(const job *job, int64_t element, int64_t end, buffers *buffers, order_nodes *nodes) {
    factors *factors = buffers->factors;
    real *terms = job->terms ? job->terms : buffers->result;
    double sum;
    for (int count; element < end; element += count) {
        count = (int)least(end - element, ORDER_TILE);
        const real *weight =
            gather(&job->operand[0], job->first + element, count, factors->weight, &factors->constant_weight);
        if (count == ORDER_TILE && !job->mask.data) {
            sum = order_stored_lines(weight);
        } else {
            memcpy(terms, weight, (size_t)count * sizeof *weight);
            if (job->mask.data)
                hide(terms, count,
                     gather(&job->mask, job->first + element, count, factors->mask, &factors->constant_mask));
            stored_sum(terms, count, &sum);
        }
        order_push_tile(nodes, sum);
    }
}

/* ----------------------------------------------------------------- begin -- */

/* What threads begin with. */
typedef struct start {
    const cpu_loss *loss;
    int64_t tiles_in_line; /* from the first on; nobody asks the job there */
    strip strip;           /* with the first of them, if there are any */
    outputs outputs;
} start;

_Static_assert(sizeof(start) <= sizeof(cpu_start), "cpu_start needs more bytes");

static bool lies_in_line(const view *view, access access) {
    return view->ndim == 1 && (access != ACCESS_REAL || (view->dtype == REAL_DTYPE && view->stride[0] == 1));
}

/* Whole tiles of nothing but sums, and of a gradient that comes with them. */
static int64_t tiles_in_line(const job *job, const outputs *outputs) {
    bool all = outputs->only_sums && outputs->upstream == 1;
    for (int k = 0; k < job->operand_count; k++)
        all &= lies_in_line(&job->operand[k], outputs->access);
    if (outputs->gradient[0])
        all &= lies_in_line(&job->gradient[0], ACCESS_REAL);
    return all ? job->count / ORDER_TILE : 0;
}

#define BEGIN PASTE(onepass_cpu_begin_, ONEPASS_VARIANT)
ONEPASS_INTERNAL cpu_begin_function BEGIN;

void BEGIN(const job *job, cpu_start *room) {
    start *start = (void *)room->bytes;
    start->loss = job->loss ? job->loss->cpu.ONEPASS_VARIANT : NULL;
    start->strip = (strip){.from_memory = job->count * (int64_t)dtype_size(job->operand[0].dtype) > MOST_CACHED_BYTES};
    for (int i = 0; i < ONEPASS_MAX_PARAMETERS; i++)
        start->strip.parameter[i] = (real)job->parameter[i];
    start->outputs = outputs_of(job, start->loss, start->strip.parameter);
    start->strip.scale = start->outputs.weighted ? 1 : start->outputs.scale;
    start->tiles_in_line = tiles_in_line(job, &start->outputs);
    if (!start->tiles_in_line)
        return;
    for (int k = 0; k < MOST_OPERANDS; k++) {
        const view *view = &job->operand[k < job->operand_count ? k : 0];
        start->strip.operand[k] = address_of(view, job->first);
        start->strip.stride[k] = view->stride[0];
        start->strip.step[k] = view->stride[0] * ORDER_TILE;
    }
    if (start->outputs.gradient[0])
        start->strip.gradient = address_of(&job->gradient[0], job->first);
}

/* ------------------------------------------------------------------- run -- */

/* Strips of tiles that lie in line. */
static void run_in_line(const start *start, int64_t tile, int64_t end_tile, order_nodes *nodes) {
    const access access = start->outputs.access;
    const int64_t size = access == ACCESS_REAL || access == ACCESS_STRIDED ? sizeof(real) : 2;
    strip strip = start->strip;
    double sum[STRIP_TILES];
    for (; tile < end_tile; tile += strip.tiles) {
        strip.tiles = (int)least(end_tile - tile, STRIP_TILES);
        strip.is_last = tile + strip.tiles == end_tile;
        for (int k = 0; k < MOST_OPERANDS; k++)
            strip.operand[k] = (const char *)start->strip.operand[k] + tile * strip.step[k] * size;
        if (start->strip.gradient) {
            strip.gradient = start->strip.gradient + tile * ORDER_TILE;
            start->loss->sums_and_gradient[access](&strip, sum);
            mend_tiles(start->loss, &strip, sum);
        } else {
            start->loss->sums[access](&strip, sum);
        }
        order_push_tiles(nodes, sum, strip.tiles);
    }
}

static __attribute__((noinline)) void run(const job *job, const start *start, int64_t element, int64_t end,
                                          factors *factors, order_nodes *nodes) {
    const outputs outputs = start->outputs;
    strip strip = start->strip;
    double sum[STRIP_TILES];
    buffers buffers;
    for (int k = 0; k < MOST_OPERANDS; k++)
        buffers.constant[k] = NULL;
    buffers.factors = factors;
    if (job->family == FAMILY_SCALE) {
        scale_gradients(job, &outputs, element, end, &buffers);
        return;
    }
    if (job->family == FAMILY_WEIGHTS) {
        sum_weights(job, element, end, &buffers, nodes);
        return;
    }
    for (; element < end; element += strip.count) {
        const access access = next_strip(job, &outputs, job->first + element, end - element, &strip, &buffers);
        strip.is_last = element + strip.count >= end;
        run_strip(job, &outputs, access, &strip, job->first + element, &buffers, sum);
        if (outputs.sum)
            order_push_tiles(nodes, sum, strip.tiles);
    }
}

static __attribute__((noinline)) void run_with_factors(const job *job, const start *start, int64_t element, int64_t end,
                                                       order_nodes *nodes) {
    factors factors;
    factors.constant_weight = factors.constant_mask = NULL;
    run(job, start, element, end, &factors, nodes);
}

#define ENTRY PASTE(onepass_cpu_run_, ONEPASS_VARIANT)
ONEPASS_INTERNAL cpu_run_function ENTRY;

void ENTRY(const job *job, const cpu_start *room, int64_t first_tile, int64_t tile_count, int level, double *sums) {
    const start *start = (const void *)room->bytes;
    const int64_t end_tile = first_tile + tile_count, end_in_line = least(end_tile, start->tiles_in_line);
    order_nodes nodes; /* most of it is not written before it is read, and need not be zeroed */
    order_begin_nodes(&nodes, level, sums);
    if (first_tile < end_in_line) {
        run_in_line(start, first_tile, end_in_line, &nodes);
        first_tile = end_in_line;
    }
    if (first_tile < end_tile) {
        const int64_t element = first_tile * ORDER_TILE;
        const int64_t end = end_tile > job->count / ORDER_TILE ? job->count : end_tile * ORDER_TILE;
        if (start->outputs.one_by_one || start->outputs.upstream_is_tensor || job->family == FAMILY_WEIGHTS)
            run_with_factors(job, start, element, end, &nodes);
        else
            run(job, start, element, end, NULL, &nodes);
    }
    order_end_node(&nodes);
}
