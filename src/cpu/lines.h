/*
 * The loops over the lines of a strip: sums, sums with a gradient, values and gradients of terms that the caller names.
 * They are inlined where they are called, with the term inside.
 */
#ifndef ONEPASS_CPU_LINES_H
#define ONEPASS_CPU_LINES_H

#include "cpu/strip.h"
#include "order.h"

/* ------------------------------------------------------------------ tile -- */

/* A copy, whose address nobody else has: it cannot alias what the loops write. */
ALWAYS_INLINE tile tile_of(const strip *strip, int index, size_t size) {
    const bool followed = index + 1 < strip->tiles || !strip->is_last;
    tile tile = {.scale = strip->scale,
                 .gradient = strip->gradient ? strip->gradient + index * ORDER_TILE : NULL,
                 .prefetch_operands = followed && strip->from_memory,
                 .prefetch_gradient = followed};
    for (int k = 0; k < MOST_OPERANDS; k++) {
        tile.operand[k] = (const char *)strip->operand[k] + index * strip->step[k] * (int64_t)size;
        tile.stride[k] = strip->stride[k];
    }
    memcpy(tile.parameter, strip->parameter, sizeof tile.parameter);
    return tile;
}

ALWAYS_INLINE int tile_count(const strip *strip, int index) {
    const int left = strip->count - index * ORDER_TILE;
    return left < ORDER_TILE ? left : ORDER_TILE;
}

ALWAYS_INLINE real read_real(const tile *tile, int operand, int64_t i) {
    return ((const real *)tile->operand[operand])[i];
}

/* A term that lies in a buffer already. */
ALWAYS_INLINE real stored_term(const tile *tile, int64_t i) {
    return read_real(tile, 0, i);
}

/* -------------------------------------------------------------- prefetch -- */

/*
 * How a processor likes its tiles. x86 has the memory of the next tile on its way while it computes one: hardware stops
 * at the end of a page, which a tile of floats is, and a store waits for its line. Value and gradient of mse, 8192 x
 * 8192 on a Xeon, went from 0.66 to 1.0 of a plain loop's rate. What the second-level cache holds is there soon enough,
 * but for the lines to be written. Four lines at a time leave few sums to store beside a gradient (0.44 to 0.8 of a
 * plain loop in that cache); losses that compute long gain nothing by it, and their code would be there four times.
 *
 * Arm's cores like plain streams best: one line at a time without a pause, and gradients one element after the other,
 * which keeps their write streaming (mse took twice as long on a Neoverse N1 with two lines at a time). Only losses
 * that compute long want two lines, which do not wait for each other (log_cosh 30 ms instead of 35), and they wait for
 * no memory: adding in passing would only have their code there once a line.
 */
enum {
    IN_PASSING /* instead of a number of lines: one at a time, with nothing left to add at the end of the tile */
};

#if defined(__x86_64__)
enum {
    CAN_PREFETCH = true,
    TILES_OF_SUMS = 1,
    BLOCK_OF_LANES = 16,
    LINES_OF_SUMS_SHORT = 4,
    LINES_OF_SUMS_LONG = 2,
    LINES_OF_GRADIENTS_SHORT = 4,
    LINES_OF_GRADIENTS_LONG = 1
};
#else
enum {
    CAN_PREFETCH = false,
    TILES_OF_SUMS = STRIP_TILES,
    BLOCK_OF_LANES = ORDER_LANES,
    LINES_OF_SUMS_SHORT = IN_PASSING,
    LINES_OF_SUMS_LONG = 2,
    LINES_OF_GRADIENTS_SHORT = IN_PASSING,
    LINES_OF_GRADIENTS_LONG = 1
};
#endif

#define CACHE_LINE        64
#define MOST_CACHED_BYTES (1 << 20) /* of an operand's, on one core */

/* The bytes of `count` elements of the next tile, beginning at those of `element`. */
ALWAYS_INLINE void prefetch(const void *tile, int64_t size, int64_t element, int64_t count, bool to_write) {
    const uintptr_t from = (uintptr_t)tile + (uintptr_t)((ORDER_TILE + element) * size);
    for (int64_t byte = 0; byte < count * size; byte += CACHE_LINE) {
        const void *line = (const void *)(from + (uintptr_t)byte);
        if (to_write)
            __builtin_prefetch(line, 1);
        else
            __builtin_prefetch(line);
    }
}

ALWAYS_INLINE void prefetch_nothing(const tile *tile, int64_t element, int64_t count) {
    (void)tile, (void)element, (void)count;
}

ALWAYS_INLINE void prefetch_operands(const tile *tile, int operands, int64_t size, int64_t element, int64_t count) {
    for (int k = 0; CAN_PREFETCH && tile->prefetch_operands && k < operands; k++)
        prefetch(tile->operand[k], size, element, count, false);
}

ALWAYS_INLINE void prefetch_gradient(const tile *tile, int64_t element, int64_t count) {
    if (CAN_PREFETCH && tile->prefetch_gradient)
        prefetch(tile->gradient, sizeof(real), element, count, true);
}

/* ------------------------------------------------------------------ sums -- */

/* The sums of a tile's lanes. */
ALWAYS_INLINE void lane_sums(order_term *term, order_prefetch *prefetch, const tile *tile, int lines, real *sum) {
    _Alignas(64) real part[ORDER_LINES][ORDER_LANES];
    if (lines == IN_PASSING)
        order_lines_in_passing(term, tile, sum);
    else
        order_lines(term, prefetch, tile, lines, BLOCK_OF_LANES, part, sum);
}

ALWAYS_INLINE void each_sum(order_term *term, order_prefetch *prefetch, const strip *strip, size_t size, int lines,
                            double *sum) {
    _Alignas(64) real lanes[ORDER_LANES];
    for (int index = 0; index < strip->tiles; index++) {
        const tile tile = tile_of(strip, index, size);
        lane_sums(term, prefetch, &tile, lines, lanes);
        sum[index] = order_lanes(lanes);
    }
}

/* The same for terms that also write a gradient. Where a store of another kind ends their streaming, the sums wait
 * until the end of the strip. */
ALWAYS_INLINE void each_sum_and_gradient(order_term *term, order_prefetch *prefetch, const strip *strip, size_t size,
                                         int lines, double *sum) {
    _Alignas(64) real lanes[TILES_OF_SUMS][ORDER_LANES];
    for (int index = 0; index < strip->tiles; index++) {
        const tile tile = tile_of(strip, index, size);
        lane_sums(term, prefetch, &tile, lines, lanes[index % TILES_OF_SUMS]);
        if (TILES_OF_SUMS == 1)
            sum[index] = order_lanes(lanes[0]);
    }
    for (int index = 0; TILES_OF_SUMS > 1 && index < strip->tiles; index++)
        sum[index] = order_lanes(lanes[index % TILES_OF_SUMS]);
}

/* ----------------------------------------------- values and gradients -- */

/* slope * scale as it is stored. */
typedef real product_function(real slope, real scale);

ALWAYS_INLINE real canonical_product(real slope, real scale) {
    return canonical(slope * scale);
}

/* The same for the gradient that training needs most. On Arm the engine computes in
 * the default-NaN mode, in which a product's NaN is the canonical one (a strip's sum
 * and gradient were 25 % faster for it on a Neoverse N1). A compiler may still move a
 * negation behind the product, so a slope_p must not end in one. */
ALWAYS_INLINE real lean_product(real slope, real scale) {
#if defined(__aarch64__)
    return slope * scale;
#else
    return canonical_product(slope, scale);
#endif
}

ALWAYS_INLINE void each_value(order_term *term, const strip *strip, real *value) {
    for (int index = 0; index < strip->tiles; index++) {
        const tile tile = tile_of(strip, index, sizeof(real));
        const int count = tile_count(strip, index);
        real *out = value + index * ORDER_TILE;
#pragma omp simd
        for (int64_t i = 0; i < count; i++)
            out[i] = canonical(term(&tile, i));
    }
}

ALWAYS_INLINE void each_gradient(order_term *slope, product_function *product, const strip *strip, real *gradient) {
    for (int index = 0; index < strip->tiles; index++) {
        const tile tile = tile_of(strip, index, sizeof(real));
        const int count = tile_count(strip, index);
        real *out = gradient + index * ORDER_TILE;
#pragma omp simd
        for (int64_t i = 0; i < count; i++)
            out[i] = product(slope(&tile, i), tile.scale);
    }
}

#endif
