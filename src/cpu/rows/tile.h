/*
 * A tile of one row, classes along vectors: where its logits lie, its largest logit, and the sum of its exponentials in
 * the order, which are computed as they are added up and not stored.
 */
#ifndef ONEPASS_CPU_ROWS_TILE_H
#define ONEPASS_CPU_ROWS_TILE_H

#include "cpu/exponentials.h"
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

/* Logits of a tile: where they lie if they lie as wanted, else in the buffer, and -inf up to the end of a line. */
static const real *logits_of(const rows *rows, const char *first, int64_t tile, tile_buffers *buffers) {
    const int count = tile_size(rows, tile);
    const view classes = classes_of(first, rows->job->operand[0].dtype, rows->of->classes, rows->of->class_stride[0]);
    const bool capped = rows->softmax.softcap != 0;
    if (!capped && count == ORDER_TILE && direct(&classes, tile * ORDER_TILE, count))
        return address_of(&classes, tile * ORDER_TILE);
    gather_copy(&classes, tile * ORDER_TILE, count, buffers->z);
    if (capped)
        cap_logits(rows, count, buffers);
    for (int i = count; i % ORDER_LANES; i++)
        buffers->z[i] = -REAL_INFINITY;
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

/* u_c of a tile in the buffer; `target` is the row of probabilities. */
static void gather_weights(const rows *rows, const char *target, int64_t tile, tile_buffers *buffers) {
    const int count = tile_size(rows, tile);
    gather_class_weights(rows, tile, count, buffers->u);
    if (rows->has_labels)
        return;
    const real kept = rows->kept, share = rows->share;
    const view classes = classes_of(target, rows->job->operand[1].dtype, rows->of->classes, rows->of->class_stride[1]);
    gather_copy(&classes, tile * ORDER_TILE, count, buffers->e);
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        buffers->u[i] = buffers->u[i] * (buffers->e[i] * kept + share);
}

/* ------------------------------------------------------------ exponentials -- */

/* Behind the memory that the logits came from, which is the second operand, there is the next tile, or the next row. */
static void let_prefetch(const rows *rows, const char *first, int64_t index, tile *tile) {
    const int64_t size = (int64_t)dtype_size(rows->job->operand[0].dtype);
    tile->operand[1] = first + index * ORDER_TILE * size;
    tile->stride[1] = size;
    tile->prefetch_operands = rows->of->class_stride[0] == 1;
}

ALWAYS_INLINE void prefetch_logits(const tile *tile, int64_t element, int64_t count) {
    if (CAN_PREFETCH && tile->prefetch_operands)
        prefetch(tile->operand[1], tile->stride[1], element, count, false);
}

/* Step 3 of the order for a tile that the row ends in. Lines that are missing are +0, and so are exponentials of -inf
 * up to the end of the last line. */
ALWAYS_INLINE void sum_some_lines(order_term *term, const tile *given, int lines, real *lanes) {
    _Alignas(64) real part[ORDER_LINES][ORDER_LANES];
    const tile tile = *given;
    for (int line = 0; line < lines; line++) {
        prefetch_logits(&tile, line * ORDER_LANES, ORDER_LANES);
        ORDER_EACH_LANE(part[line][lane] = term(&tile, line * ORDER_LANES + lane))
    }
    memset(part[lines], 0, (size_t)(ORDER_LINES - lines) * sizeof *part);
    ORDER_EACH_LANE(lanes[lane] = ((part[0][lane] + part[1][lane]) + (part[2][lane] + part[3][lane])) +
                                  ((part[4][lane] + part[5][lane]) + (part[6][lane] + part[7][lane])))
}

ALWAYS_INLINE void sum_all_lines(order_term *term, const tile *given, int lines, real *lanes) {
    _Alignas(64) real part[ORDER_LINES][ORDER_LANES];
    const tile tile = *given;
    order_lines(term, prefetch_logits, &tile, lines, LANES_A_PREFETCH, part, lanes);
}

ALWAYS_INLINE void sum_lines(order_term *term, const tile *tile, int count, int lines, real *lanes) {
    if (count == ORDER_TILE)
        sum_all_lines(term, tile, lines, lanes);
    else
        sum_some_lines(term, tile, (count - 1) / ORDER_LANES + 1, lanes);
}

/* Those of exponentials, which are also kept if the tile has a place for them. */
static void sum_and_forget(const tile *tile, int count, real *lanes) {
    sum_lines(exponential_term, tile, count, LINES_OF_SUMS_LONG, lanes);
}

static void sum_and_keep(const tile *tile, int count, real *lanes) {
    sum_lines(kept_term, tile, count, LINES_OF_GRADIENTS_LONG, lanes);
}

/* The sum of one lane without the label's term. */
static real lane_without(const tile *tile, int count, int64_t label) {
    real term[ORDER_LINES];
    for (int64_t line = 0, i = label % ORDER_LANES; line < ORDER_LINES; line++, i += ORDER_LANES)
        term[line] = i < count && i != label ? exponential_term(tile, i) : 0;
    return ((term[0] + term[1]) + (term[2] + term[3])) + ((term[4] + term[5]) + (term[6] + term[7]));
}

/* The sum of a tile's exponentials; the label's, if it is one of them, is left out. */
static double sum_exponentials(const tile *tile, int count, int64_t label) {
    _Alignas(64) real lanes[ORDER_LANES];
    if (tile->gradient)
        sum_and_keep(tile, count, lanes);
    else
        sum_and_forget(tile, count, lanes);
    if (label >= 0 && label < count)
        lanes[label % ORDER_LANES] = lane_without(tile, count, label);
    return order_lanes(lanes);
}

/* ----------------------------------------------------------------- weights -- */

static double sum_of_weights(const real *u, int count, real *copy) {
    double sum;
    if (count == ORDER_TILE) {
        one_sum(stored_term, u, u, &sum);
        return sum;
    }
    memcpy(copy, u, (size_t)count * sizeof *u);
    stored_sum(copy, count, &sum);
    return sum;
}

/* The sum of u (z - largest). Of logits that are -inf, and weights that are 0, the product is 0. */
static double sum_weighted(const real *z, const real *u, real largest, int count, real *terms) {
    double sum;
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        terms[i] = choose(u[i] == 0, 0, u[i] * (z[i] - largest));
    stored_sum(terms, count, &sum);
    return sum;
}

#endif
