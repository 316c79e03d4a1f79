/*
 * A tile of one row, classes along vectors: where its logits lie, and the sum of its exponentials in the order.
 */
#ifndef ONEPASS_CPU_ROWS_TILE_H
#define ONEPASS_CPU_ROWS_TILE_H

#include "cpu/direct_sum.h"
#include "cpu/rows/job.h"

/* For what does not lie in memory as the computation wants it. */
typedef struct tile_buffers {
    _Alignas(64) real z[ORDER_TILE];
    real e[ORDER_TILE];     /* terms, or a gradient */
    real u[ORDER_TILE];     /* class weights, or these times probabilities */
    real slope[ORDER_TILE]; /* of capped logits in those before */
} tile_buffers;

static view classes_of(const void *first, int32_t dtype, int64_t classes, int64_t stride) {
    return (view){(void *)(uintptr_t)first, dtype, 1, {classes}, {stride}};
}

static int tile_size(const rows *rows, int64_t tile) {
    return (int)least(rows->of->classes - tile * ORDER_TILE, ORDER_TILE);
}

/* --------------------------------------------------------------- operands -- */

/* softcap * tanh(z / softcap), and its slope where there are gradients. */
static void cap_logits(const rows *rows, int count, tile_buffers *buffers) {
    const softmax softmax = rows->softmax;
    if (rows->has_gradient) {
#pragma omp simd
        for (int64_t i = 0; i < count; i++)
            buffers->slope[i] = softmax_cap_slope(&softmax, buffers->z[i]);
    }
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        buffers->z[i] = softmax.softcap * softmax_tangent(&softmax, buffers->z[i]);
}

/* Logits of a tile: where they lie if they lie as wanted, else in the buffer. */
static const real *logits_of(const rows *rows, const char *first, int64_t tile, tile_buffers *buffers) {
    const int count = tile_size(rows, tile);
    const view classes = classes_of(first, rows->job->operand[0].dtype, rows->of->classes, rows->of->class_stride[0]);
    const bool capped = rows->softmax.softcap != 0;
    if (!capped && direct(&classes, tile * ORDER_TILE, count))
        return address_of(&classes, tile * ORDER_TILE);
    gather_copy(&classes, tile * ORDER_TILE, count, buffers->z);
    if (capped)
        cap_logits(rows, count, buffers);
    return buffers->z;
}

/* Class weights of a tile in the buffer. */
static void gather_class_weights(const rows *rows, int64_t tile, int count, real *into) {
    const view *weight = &rows->job->operand[2];
    if (weight->data) {
        const view classes = classes_of(weight->data, weight->dtype, rows->of->classes, rows->of->class_stride[2]);
        gather_copy(&classes, tile * ORDER_TILE, count, into);
        return;
    }
    for (int i = 0; i < count; i++)
        into[i] = 1;
}

/* u_c of a tile, in the buffer, or null where all are 1; `target` is the row of probabilities. */
static const real *weights_of(const rows *rows, const char *target, int64_t tile, tile_buffers *buffers) {
    const int count = tile_size(rows, tile);
    const bool has_weights = rows->job->operand[2].data;
    if (has_weights)
        gather_class_weights(rows, tile, count, buffers->u);
    if (rows->has_labels)
        return has_weights ? buffers->u : NULL;
    const real kept = rows->kept, share = rows->share;
    const view classes = classes_of(target, rows->job->operand[1].dtype, rows->of->classes, rows->of->class_stride[1]);
    const real *given = direct(&classes, tile * ORDER_TILE, count);
    const real *q = given ? given : gather_copy(&classes, tile * ORDER_TILE, count, buffers->e);
    if (has_weights) {
#pragma omp simd
        for (int64_t i = 0; i < count; i++)
            buffers->u[i] = buffers->u[i] * (q[i] * kept + share);
    } else {
#pragma omp simd
        for (int64_t i = 0; i < count; i++)
            buffers->u[i] = q[i] * kept + share;
    }
    return buffers->u;
}

/* ------------------------------------------------------------ exponentials -- */

/* Behind the memory that the logits came from, which is the second operand, there is the next tile, or the next row.
 * With AVX-512 values alone look a tile further, since their arithmetic takes less time than memory needs: those of
 * 32000 classes took a twentieth longer otherwise. With gradients that took longer. */
static bool looks_further(const rows *rows) {
    return ONEPASS_HAS_REALS && CAN_PREFETCH && rows->has_labels && !rows->has_gradient;
}

static const void *behind_tile(const rows *rows, const char *const *first, int64_t index) {
    const int64_t size = (int64_t)dtype_size(rows->job->operand[0].dtype);
    return (const void *)((uintptr_t)first[0] + (uintptr_t)((index + looks_further(rows)) * ORDER_TILE * size));
}

/* Whether a quarter of that is asked for while a tile's range is looked for: the memory had nothing to do then, and
 * values of 4096 classes took an eighth longer on a Xeon. */
static bool asks_early(const rows *rows, int count) {
    return looks_further(rows) && rows->of->class_stride[0] == 1 && count == ORDER_TILE;
}

/* The logits of a tile, as logits_of() has them, and their range. With AVX-512 those of bf16 become floats while they
 * are looked at. */
static const real *see_logits(const rows *rows, const char *const *first, int64_t index, tile_buffers *buffers,
                              tile_range *range) {
    const int count = tile_size(rows, index);
#if ONEPASS_HAS_REALS && !defined(__aarch64__)
    const int64_t size = (int64_t)dtype_size(rows->job->operand[0].dtype);
    const char *next = (const char *)behind_tile(rows, first, index);
    const asked_memory ahead = {asks_early(rows, count) ? next + ORDER_TILE * size : NULL, ORDER_LANES / 4 * size,
                                rows->are_far};
    if (rows->job->operand[0].dtype == ONEPASS_BF16 && rows->of->class_stride[0] == 1 && rows->softmax.softcap == 0) {
        const uint16_t *halves = (const uint16_t *)(const void *)first[0] + index * ORDER_TILE;
        *range = range_while_asking(NULL, halves, buffers->z, count, ahead);
        return buffers->z;
    }
    const real *z = logits_of(rows, first[0], index, buffers);
    *range = ahead.first ? range_while_asking(z, NULL, NULL, count, ahead) : range_of(z, count);
#else
    const real *z = logits_of(rows, first[0], index, buffers);
    *range = range_of(z, count);
#endif
    return z;
}

static void let_prefetch(const rows *rows, const char *const *first, int64_t index, tile *tile) {
    const int64_t size = (int64_t)dtype_size(rows->job->operand[0].dtype);
    tile->operand[1] = behind_tile(rows, first, index);
    if (!rows->has_labels)
        tile->operand[2] = first[1] + index * ORDER_TILE * size;
    tile->stride[1] = size;
    tile->prefetch_operands = rows->of->class_stride[0] == 1;
    tile->from_memory = rows->are_far;
    tile->parameter[ASKED] = asks_early(rows, tile_size(rows, index));
}

/* exponentiate() where the exponentials go to memory that a cache may not have, as a gradient's is. On x86 a vector at
 * a time: several that are stored at once wait for it, and value and gradient of 4096 classes took a fifth longer with
 * AVX-512. */
static void exponentiate_far(const tile *given, int64_t first, int64_t count, real *e) {
#if defined(__x86_64__)
    const tile tile = *given;
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        e[i] = exponential_term(&tile, first + i);
#else
    exponentiate(given, first, count, e);
#endif
}

static void exponentiate_lines_far(const tile *tile, int64_t count, real *e) {
    for (int64_t first = 0; first < count; first += ORDER_LANES) {
        prefetch_logits(tile, first, ORDER_LANES);
        exponentiate_far(tile, first, least(count - first, ORDER_LANES), e + first);
    }
}

/* The exponentials of a tile, which may go far away. */
static void exponentiate_tile(const tile *given, bool is_far, int64_t count, real *e) {
    if (!CAN_PREFETCH) {
        exponentiate(given, 0, count, e);
        return;
    }
    const tile tile = *given;
    if (is_far)
        exponentiate_lines_far(&tile, count, e);
    else if (tile.parameter[CALM] != 0)
        exponentiate_lines(&tile, LOGITS_CALM, prefetch_logits, count, e);
    else
        exponentiate_lines(&tile, LOGITS_ANY, prefetch_logits, count, e);
}

/* Their sum, with zeros behind them where there is room for a whole tile; but the label's, if it is one of them, is
 * given back instead. */
static double sum_exponentials(int count, int64_t label, real *e, real *own) {
    if (label >= 0 && label < count) {
        *own = e[label];
        e[label] = 0;
    }
    memset(e + count, 0, (size_t)(ORDER_TILE - count) * sizeof *e);
    return order_stored_lines(e);
}

#if ONEPASS_HAS_REALS
/* The same but for the label's, if it is one of them, which is given back instead: its lanes come last, by way of
 * memory. */
static __attribute__((noinline)) double sum_down(const tile *tile, int64_t label, real *own) {
    const down_lines down = down_lines_of(tile);
    const bool has_label = label >= 0 && label < ORDER_TILE;
    const int64_t lanes_of_label = has_label ? label % ORDER_LANES / REALS * REALS : -1;
    _Alignas(64) real sum[ORDER_LANES];
    reals e[ORDER_LINES];
    for (int64_t lane = 0; lane < ORDER_LANES; lane += REALS) {
        ask_for_lines(tile, lane * ORDER_LINES, ORDER_LINES * REALS);
        if (lane == lanes_of_label)
            continue;
        exponentials_down(&down, lane, e);
        store_sum_of_lines(sum + lane, e);
    }
    if (has_label) {
        _Alignas(64) real line[ORDER_LINES][REALS];
        real *label_term = &line[label / ORDER_LANES][label % REALS];
        exponentials_down(&down, lanes_of_label, e);
        for (int i = 0; i < ORDER_LINES; i++)
            store_reals(line[i], e[i]);
        *own = *label_term;
        *label_term = 0;
        for (int i = 0; i < ORDER_LINES; i++)
            e[i] = load_reals(line[i]);
        store_sum_of_lines(sum + lanes_of_label, e);
    }
    return order_lanes(sum);
}

static __attribute__((noinline)) double sum_down_without_leading(const tile *tile, real most, double *leading) {
    return sum_lines_without_leading(tile, ask_for_lines_and_targets, most, NULL, leading);
}
#endif

/* Whether a tile's exponentials were added up without being stored: on Arm and with AVX-512, of a whole tile. */
static bool sum_directly(const rows *rows, const tile *tile, int count, int64_t label, real most, real *own,
                         softmax_tile *sums) {
#if ONEPASS_HAS_REALS
    if (count < ORDER_TILE || !can_sum_down(tile))
        return false;
    sums->others = rows->has_labels ? sum_down(tile, label, own) : sum_down_without_leading(tile, most, &sums->leading);
    return true;
#else
    (void)rows, (void)tile, (void)count, (void)label, (void)most, (void)own, (void)sums;
    return false;
#endif
}

/* ----------------------------------------------------------------- weights -- */

static double sum_of_weights(const real *u, int count, real *copy) {
    double sum;
    if (!u)
        return count;
    if (count == ORDER_TILE)
        return order_stored_lines(u);
    memcpy(copy, u, (size_t)count * sizeof *u);
    stored_sum(copy, count, &sum);
    return sum;
}

/* u (z - largest), where u and z are the operands, and the tile's only parameter is the largest. Where a weight is 0,
 * the product is 0. */
ALWAYS_INLINE real weighted_logit(const tile *tile, int64_t i) {
    const real z = read_real(tile, 0, i), u = read_real(tile, 1, i);
    return choose(u == 0, 0, u * (z - tile->parameter[0]));
}

ALWAYS_INLINE real unweighted_logit(const tile *tile, int64_t i) {
    return read_real(tile, 0, i) - tile->parameter[0];
}

/* Of a whole tile, whose numbers are in a first-level cache by now. */
ALWAYS_INLINE double sum_of_tile(order_term *term, const tile *tile) {
    _Alignas(64) real part[ORDER_LINES][ORDER_LANES], sum[ORDER_LANES];
    order_lines(term, prefetch_nothing, tile, 4, ORDER_LANES, part, sum);
    return order_lanes(sum);
}

/* Their sum; those of a tile that is not whole wait in `terms`. */
static double sum_weighted(const real *z, const real *u, real largest, int count, real *terms) {
    const tile tile = {.operand = {z, u ? u : z, z}, .parameter = {largest}};
    double sum;
    if (count == ORDER_TILE)
        return u ? sum_of_tile(weighted_logit, &tile) : sum_of_tile(unweighted_logit, &tile);
    if (u) {
#pragma omp simd
        for (int64_t i = 0; i < count; i++)
            terms[i] = weighted_logit(&tile, i);
    } else {
#pragma omp simd
        for (int64_t i = 0; i < count; i++)
            terms[i] = unweighted_logit(&tile, i);
    }
    stored_sum(terms, count, &sum);
    return sum;
}

/* Probabilities of a whole tile that lie as wanted, in a call without class weights, or null: what they come to needs
 * no buffer. */
static const real *plain_targets_of(const rows *rows, const char *target, int64_t tile, int count) {
    const view classes = classes_of(target, rows->job->operand[1].dtype, rows->of->classes, rows->of->class_stride[1]);
    if (rows->has_labels || rows->job->operand[2].data || count < ORDER_TILE)
        return NULL;
    return direct(&classes, tile * ORDER_TILE, count);
}

/* u of a probability, which is the second operand, where the first one is the logit. */
ALWAYS_INLINE real plain_weight(const tile *tile, int64_t i) {
    return read_real(tile, 1, i) * tile->parameter[1] + tile->parameter[2];
}

ALWAYS_INLINE real plainly_weighted_logit(const tile *tile, int64_t i) {
    const real u = plain_weight(tile, i);
    return choose(u == 0, 0, u * (read_real(tile, 0, i) - tile->parameter[0]));
}

/* Both sums of them in one pass. */
static void sum_targets(const rows *rows, const real *z, const real *q, real largest, softmax_tile *sums) {
    const tile tile = {.operand = {z, q, q}, .parameter = {largest, rows->kept, rows->share}};
    _Alignas(64) real u[2][ORDER_LANES], x[2][ORDER_LANES];
    for (int64_t half = 0; half < 2; half++)
        ORDER_EACH_LANE(const int64_t i = half * ORDER_TILE / 2 + lane;
                        u[half][lane] = order_some_lines(plain_weight, &tile, i, 4);
                        x[half][lane] = order_some_lines(plainly_weighted_logit, &tile, i, 4))
    ORDER_EACH_LANE(u[0][lane] = u[0][lane] + u[1][lane]; x[0][lane] = x[0][lane] + x[1][lane])
    sums->weights = order_lanes(u[0]);
    sums->weighted = order_lanes(x[0]);
}

#endif
