/*
 * The loops over the lines of a strip: sums, sums with a gradient, values and gradients of terms that the caller names.
 * They are inlined where they are called, with the term inside.
 */
#ifndef ONEPASS_CPU_LINES_H
#define ONEPASS_CPU_LINES_H

#include "cpu/strip.h"
#include "order.h"

/* ------------------------------------------------------------------ tile -- */

/* An address that the compiler knows nothing about. On Arm it else keeps one for each line from tile to tile, for which
 * it has no registers. */
ALWAYS_INLINE void *opaque(const void *address) {
#if defined(__aarch64__)
    __asm__("" : "+r"(address));
#endif
    return (void *)(uintptr_t)address;
}

/* A copy, whose address nobody else has: it cannot alias what the loops write. What all tiles have in common is copied
 * once a strip: stores of it between tiles ended the write streaming of an N1 (hinge and its gradient took half as long
 * again, the gradient of squared_hinge a quarter). */
ALWAYS_INLINE tile tile_of(const strip *strip) {
    tile tile = {.scale = strip->scale};
    for (int k = 0; k < MOST_OPERANDS; k++)
        tile.stride[k] = strip->stride[k];
    memcpy(tile.parameter, strip->parameter, sizeof tile.parameter);
    return tile;
}

ALWAYS_INLINE void go_to_tile(tile *tile, const strip *strip, int index, size_t size) {
    const bool followed = index + 1 < strip->tiles || !strip->is_last;
    tile->gradient = strip->gradient ? opaque(strip->gradient + index * ORDER_TILE) : NULL;
    tile->prefetch_operands = followed && strip->from_memory;
    tile->is_followed = followed;
    tile->from_memory = strip->from_memory;
    for (int k = 0; k < MOST_OPERANDS; k++)
        tile->operand[k] = opaque((const char *)strip->operand[k] + index * strip->step[k] * (int64_t)size);
}

/* The elements from the given one on, whose gradients go elsewhere. */
ALWAYS_INLINE tile block_of(const tile *whole, int64_t element, size_t size, real *gradient) {
    tile block = *whole;
    for (int k = 0; k < MOST_OPERANDS; k++)
        block.operand[k] = (const char *)whole->operand[k] + element * (int64_t)size;
    block.gradient = gradient;
    return block;
}

ALWAYS_INLINE int tile_count(const strip *strip, int index) {
    const int left = strip->count - index * ORDER_TILE;
    return left < ORDER_TILE ? left : ORDER_TILE;
}

ALWAYS_INLINE real read_real(const tile *tile, int operand, int64_t i) {
    return ((const real *)tile->operand[operand])[i];
}

/* -------------------------------------------------------------- prefetch -- */

/*
 * How a processor likes its tiles. x86 has the memory of the next tile on its way while it computes one: hardware stops
 * at the end of a page, which a tile of floats is, and a store waits for its line. Value and gradient of mse, 8192 x
 * 8192 on a Xeon, went from 0.66 to 1.0 of a plain loop's rate. What the second-level cache holds is there soon enough,
 * but for the lines to be written. Four lines at a time leave few sums to store beside a gradient (0.44 to 0.8 of a
 * plain loop in that cache); losses that compute long gain nothing by it, and their code would be there four times.
 * With AVX2, which has half a cache line to a vector, all lines of one go from there: no sum is stored but the last,
 * and both halves of a gradient's cache line one after the other (hinge 6 % faster, mse 2 %; with AVX-512 nothing).
 *
 * Arm's cores like plain streams best: one line at a time without a pause, and cache lines of a gradient stored whole
 * and in order, which keeps their write streaming. Two lines at a time are as good if what they will need is asked for
 * as it lies in memory (mse took twice as long on a Neoverse N1 without). Their prefetching is helped over the pauses
 * of arithmetic by asking for what comes 512 bytes later; further ahead, or for the beginning of the next tile, it is
 * disturbed (mse and its gradient 550 ps an element, 500 with it, 670). Losses that compute long want several lines,
 * which do not wait for each other, and they wait for no memory: adding in passing would only have their code there
 * once a line. Focal took 13.4, 9.0 and 7.6 ns an element with one, two and four lines, and with its
 * gradient 16.5, 11.0 and 9.6. Of 16-bit numbers two vectors come at a time, so that two lines are as much. Few lines
 * are for doubles, for losses so long that they fill a processor by themselves, and for those that still wait for
 * memory, which more streams slow down (mape of 2^22 floats 1.5 ns instead of 1.25).
 */
enum {
    IN_PASSING, /* instead of a number of lines: one at a time, with nothing left to add at the end of the tile */
    DOWN_IN_CACHES = ORDER_LINES /* all of them where a cache has the operands, else four */
};

#if defined(__ARM_NEON) && !defined(__ARM_FEATURE_SVE)
#define HAS_NEON_ALONE true
#else
#define HAS_NEON_ALONE false
#endif
#if defined(__AVX512F__)
#define HAS_AVX512 true
#else
#define HAS_AVX512 false
#endif

#if defined(__x86_64__)
enum {
    CAN_PREFETCH = true,
    CAN_GO_DOWN = false,
    IN_BLOCKS = false,
    TILES_OF_SUMS = 1,
    LANES_A_PREFETCH = 16,
    LINES_OF_SUMS_SHORT = 4,
    LINES_OF_SUMS_LONG = 2,
    LINES_OF_SUMS_LONG_FEW_LINES = 2,
    LINES_OF_GRADIENTS_SHORT = 4,
    LINES_OF_GRADIENTS_SHORT_MENDED = HAS_AVX512 || sizeof(real) > sizeof(float) ? 4 : DOWN_IN_CACHES,
    LINES_OF_GRADIENTS_LONG = 1,
    LINES_OF_GRADIENTS_LONG_FEW_LINES = 1,
    MOST_LINES_OF_OTHERS = 4 /* than dense floats or doubles */
};
#else
enum {
    CAN_PREFETCH = false,
    CAN_GO_DOWN = HAS_NEON_ALONE && sizeof(real) == sizeof(float),
    IN_BLOCKS = true,
    TILES_OF_SUMS = 16,
    LANES_A_PREFETCH = ORDER_LANES,
    LINES_OF_SUMS_SHORT = IN_PASSING,
    LINES_OF_SUMS_LONG = sizeof(real) == sizeof(float) ? 4 : 2,
    LINES_OF_SUMS_LONG_FEW_LINES = 2,
    LINES_OF_GRADIENTS_SHORT = IN_PASSING,
    LINES_OF_GRADIENTS_SHORT_MENDED = IN_PASSING,
    LINES_OF_GRADIENTS_LONG = sizeof(real) == sizeof(float) ? 4 : 1,
    LINES_OF_GRADIENTS_LONG_FEW_LINES = 1,
    MOST_LINES_OF_OTHERS = 2
};
#endif

enum {
    LINES_OF_SUMS_SHORT_MENDED = LINES_OF_SUMS_SHORT
};

#define CACHE_LINE 64

/* Of an operand's: what the second-level cache of an x86 core holds, or the last of an Arm processor's. A Neoverse N1
 * with 32 MiB goes down the lines of 8 MiB an operand a tenth faster, and of 16 a tenth slower, than in passing. */
#if defined(__x86_64__)
#define MOST_CACHED_BYTES (1 << 20)
#else
#define MOST_CACHED_BYTES (4 << 20)
#endif

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

/* Memory that is read much later, to the second-level cache: on its way to the first it would take the place of what is
 * needed sooner, and of requests there are few at a time. */
ALWAYS_INLINE void prefetch_far(const void *memory, int64_t bytes) {
    for (int64_t byte = 0; byte < bytes; byte += CACHE_LINE)
        __builtin_prefetch((const void *)((uintptr_t)memory + (uintptr_t)byte), 0, 2);
}

/* The bytes of `count` elements. The compiler leaves it where it stands: behind the loads of a block it gained half as
 * much. What is known of the element is part of the instruction: a sum of its own for each took 2 % of hinge's time. */
ALWAYS_INLINE void prefetch_here(const void *tile, int64_t size, int64_t element, int64_t count) {
    for (int64_t byte = element * size; byte < (element + count) * size; byte += CACHE_LINE) {
#if defined(__aarch64__)
        __asm__ volatile("prfm pldl1keep, [%0, %1]" : : "r"(tile), "rn"(byte));
#else
        __builtin_prefetch((const void *)((uintptr_t)tile + (uintptr_t)byte));
#endif
    }
}

ALWAYS_INLINE void prefetch_nothing(const tile *tile, int64_t element, int64_t count) {
    (void)tile, (void)element, (void)count;
}

ALWAYS_INLINE void prefetch_operands(const tile *tile, int operands, int64_t size, int64_t element, int64_t count) {
    for (int k = 0; k < operands; k++)
        if (!CAN_PREFETCH)
            prefetch_here(tile->operand[k], size, element, count);
        else if (tile->prefetch_operands)
            prefetch(tile->operand[k], size, element, count, false);
}

ALWAYS_INLINE void prefetch_gradient(const tile *tile, int64_t element, int64_t count) {
    if (CAN_PREFETCH && tile->is_followed)
        prefetch(tile->gradient, sizeof(real), element, count, true);
}

/* -------------------------------------------------------------- product -- */

/* slope * scale as it is stored, or a value, which has no scale. */
typedef real product_function(real slope, real scale);

ALWAYS_INLINE real canonical_product(real slope, real scale) {
    return canonical(slope * scale);
}

ALWAYS_INLINE real canonical_value(real value, real scale) {
    (void)scale;
    return canonical(value);
}

/* A result of arithmetic as it is stored. On Arm the engine computes in the default-NaN mode, in which a result's NaN
 * is the canonical one (a strip's sum and gradient were 25 % faster for it on a Neoverse N1). A compiler may still move
 * a negation behind a product, so a slope_p must not end in one. */
ALWAYS_INLINE real lean(real result) {
#if defined(__aarch64__)
    return result;
#else
    return canonical(result);
#endif
}

/* For the gradient that training needs most. */
ALWAYS_INLINE real lean_product(real slope, real scale) {
    return lean(slope * scale);
}

/* ---------------------------------------------------------------- block -- */

/*
 * So many elements are computed before any of them is stored. A compiler does not move a load over a store that might
 * change what is loaded, and computations that it cannot mix wait for each other: on a Neoverse N1 value and gradient
 * of hinge took 900 ps an element and take 690 in blocks of 128 bytes, its gradient alone 570 and 480.
 */
#define BLOCK (128 / (int)sizeof(real))

/* What is asked for ahead of a block. */
#define SOON (512 / (int)sizeof(real))

/* ------------------------------------------------------------------ sums -- */

/*
 * In passing: one line at a time, each added to what came before it, so that the memory has no pause (sums that waited
 * for the end of the tile took mse a fifth longer on a Neoverse N1). A block's gradient is stored before its sums,
 * which keeps the write streaming.
 */
typedef struct lines_so_far {
    _Alignas(64) real two[ORDER_LANES], four[ORDER_LANES];
    real *sum;
} lines_so_far;

ALWAYS_INLINE void add_block(int line, int64_t first, const real *value, lines_so_far *so_far) {
#pragma omp simd
    for (int64_t i = 0; i < BLOCK; i++)
        order_line(line, value[i], &so_far->sum[first + i], &so_far->two[first + i], &so_far->four[first + i]);
}

/* The same with a line that the compiler knows. */
ALWAYS_INLINE void add_block_of(int line, int64_t first, const real *value, lines_so_far *so_far) {
    switch (line) {
    case 0:
        add_block(0, first, value, so_far);
        break;
    case 1:
        add_block(1, first, value, so_far);
        break;
    case 2:
        add_block(2, first, value, so_far);
        break;
    case 3:
        add_block(3, first, value, so_far);
        break;
    case 4:
        add_block(4, first, value, so_far);
        break;
    case 5:
        add_block(5, first, value, so_far);
        break;
    case 6:
        add_block(6, first, value, so_far);
        break;
    default:
        add_block(7, first, value, so_far);
    }
}

ALWAYS_INLINE void line_in_passing(order_term *term, order_prefetch *prefetch, const tile *tile, size_t size, int line,
                                   bool has_slopes, lines_so_far *so_far) {
    for (int64_t first = 0; first < ORDER_LANES; first += BLOCK) {
        real value[BLOCK], gradient[BLOCK];
        const int64_t element = line * ORDER_LANES + first;
        const struct tile ahead = block_of(tile, first, size, NULL);
        if (has_slopes && sizeof(real) == sizeof(float))
            prefetch(&ahead, line * ORDER_LANES + SOON, BLOCK);
        const struct tile block = block_of(tile, element, size, gradient);
#pragma omp simd
        for (int64_t i = 0; i < BLOCK; i++)
            value[i] = term(&block, i);
#pragma omp simd
        for (int64_t i = 0; i < (has_slopes ? BLOCK : 0); i++)
            tile->gradient[element + i] = gradient[i];
        add_block_of(line, first, value, so_far);
    }
}

/* With a gradient, in float, the code is there once a line: a jump a block costs a tenth there, and nothing elsewhere.
 */
ALWAYS_INLINE void lines_in_passing(order_term *term, order_prefetch *prefetch, const tile *tile, size_t size,
                                    bool has_slopes, real *sum) {
    lines_so_far so_far;
    so_far.sum = opaque(sum); /* may be the gradient for all the compiler knows, which keeps their stores in order */
    if (has_slopes && sizeof(real) == sizeof(float)) {
        line_in_passing(term, prefetch, tile, size, 0, has_slopes, &so_far);
        line_in_passing(term, prefetch, tile, size, 1, has_slopes, &so_far);
        line_in_passing(term, prefetch, tile, size, 2, has_slopes, &so_far);
        line_in_passing(term, prefetch, tile, size, 3, has_slopes, &so_far);
        line_in_passing(term, prefetch, tile, size, 4, has_slopes, &so_far);
        line_in_passing(term, prefetch, tile, size, 5, has_slopes, &so_far);
        line_in_passing(term, prefetch, tile, size, 6, has_slopes, &so_far);
        line_in_passing(term, prefetch, tile, size, 7, has_slopes, &so_far);
    } else {
        for (int line = 0; line < ORDER_LINES; line++)
            line_in_passing(term, prefetch, tile, size, line, has_slopes, &so_far);
    }
}

/*
 * Down all lines, a cache line's lanes at a time: no sum waits in memory, and nothing but the gradient is stored. It is
 * for operands that a cache holds. No processor foresees these steps, so each asks for two lines of the next tile,
 * which come in their order. Of 65536 floats on a Neoverse N1 the value of mse took 295 ps an element and takes 245,
 * with its gradient 425 and 370; of floats in memory it takes 590 instead of 420.
 */
#define LANES_DOWN (CACHE_LINE / (int)sizeof(real))

typedef struct lanes_so_far {
    real sum[LANES_DOWN], two[LANES_DOWN], four[LANES_DOWN];
} lanes_so_far;

/* Has them computed before what comes next: gcc would keep the operands of all lines in registers, of which there are
 * not so many, until the gradient is stored. */
ALWAYS_INLINE void keep_order(const real *lanes) {
#if defined(__ARM_NEON)
    typedef real vector __attribute__((vector_size(16)));
    for (int i = 0; i < LANES_DOWN; i += (int)(sizeof(vector) / sizeof(real))) {
        vector part;
        memcpy(&part, lanes + i, sizeof part);
        __asm__ volatile("" : : "w"(part));
    }
#else
    (void)lanes;
#endif
}

ALWAYS_INLINE void line_down(order_term *term, order_prefetch *prefetch, const tile *tile, size_t size, int64_t first,
                             int line, bool has_slopes, lanes_so_far *so_far) {
    real value[LANES_DOWN], gradient[LANES_DOWN];
    const int64_t element = line * ORDER_LANES + first;
    if (!CAN_PREFETCH) {
        const int64_t next = first * ORDER_LINES + (tile->is_followed ? ORDER_TILE : 0);
        const struct tile ahead = block_of(tile, next, size, NULL);
        prefetch(&ahead, line * LANES_DOWN, LANES_DOWN);
    }
    const struct tile block = block_of(tile, element, size, gradient);
#pragma omp simd
    for (int64_t i = 0; i < LANES_DOWN; i++)
        value[i] = term(&block, i);
#pragma omp simd
    for (int64_t i = 0; i < (has_slopes ? LANES_DOWN : 0); i++)
        tile->gradient[element + i] = gradient[i];
    keep_order(value);
#pragma omp simd
    for (int64_t i = 0; i < LANES_DOWN; i++)
        order_line(line, value[i], &so_far->sum[i], &so_far->two[i], &so_far->four[i]);
    keep_order(so_far->sum);
}

ALWAYS_INLINE void lines_down(order_term *term, order_prefetch *prefetch, const tile *tile, size_t size,
                              bool has_slopes, real *sum) {
    for (int64_t first = 0; first < ORDER_LANES; first += LANES_DOWN) {
        lanes_so_far so_far;
        if (CAN_PREFETCH)
            prefetch(tile, first * ORDER_LINES, ORDER_LINES * LANES_DOWN);
        line_down(term, prefetch, tile, size, first, 0, has_slopes, &so_far);
        line_down(term, prefetch, tile, size, first, 1, has_slopes, &so_far);
        line_down(term, prefetch, tile, size, first, 2, has_slopes, &so_far);
        line_down(term, prefetch, tile, size, first, 3, has_slopes, &so_far);
        line_down(term, prefetch, tile, size, first, 4, has_slopes, &so_far);
        line_down(term, prefetch, tile, size, first, 5, has_slopes, &so_far);
        line_down(term, prefetch, tile, size, first, 6, has_slopes, &so_far);
        line_down(term, prefetch, tile, size, first, 7, has_slopes, &so_far);
#pragma omp simd
        for (int64_t i = 0; i < LANES_DOWN; i++)
            sum[first + i] = so_far.sum[i];
    }
}

/*
 * Two lines at a time, a cache line's lanes of each, for a gradient of floats in memory on Arm: half of the sums that
 * lines in passing store and load again stay in registers, and a Neoverse N1 has each store wait for a vector unit.
 * What is computed next is loaded before the gradient is stored. The operands are asked for one cache line after the
 * other, as they lie: in the order in which they are loaded, it took twice as long. Value and gradient of hinge took
 * 553 ps an element and take 536, of smooth_l1 1110 and 975, of mse 460 and 467.
 */
typedef __attribute__((vector_size(16), may_alias, aligned(sizeof(real)))) real quad;
#define QUAD  (16 / (int)sizeof(real))
#define QUADS (LANES_DOWN / QUAD)

/* What is asked for ahead of two lines: with 512 or 768 bytes it took 1 % longer. */
#define SOON_OF_TWO (640 / (int)sizeof(real))

typedef struct lanes_ahead {
    quad operand[MOST_OPERANDS][QUADS];
} lanes_ahead;

ALWAYS_INLINE void load_ahead(const tile *tile, int64_t element, lanes_ahead *ahead) {
    for (int k = 0; k < MOST_OPERANDS; k++)
        for (int i = 0; i < QUADS; i++)
            ahead->operand[k][i] = *(const quad *)((const real *)tile->operand[k] + element + i * QUAD);
}

/* Computes what was loaded, and loads what begins at `next`. Stores that a compiler has out of their order end the
 * write streaming of an N1, hence volatile. */
ALWAYS_INLINE void line_of_two(order_term *term, const tile *tile, size_t size, int64_t element, int64_t next,
                               lanes_ahead *ahead, real *value) {
    real gradient[LANES_DOWN], own[MOST_OPERANDS][LANES_DOWN];
    struct tile block = block_of(tile, 0, size, gradient);
    for (int k = 0; k < MOST_OPERANDS; k++) {
        for (int i = 0; i < QUADS; i++)
            *(quad *)(own[k] + i * QUAD) = ahead->operand[k][i];
        block.operand[k] = own[k];
    }
    load_ahead(tile, next, ahead);
#pragma omp simd
    for (int64_t i = 0; i < LANES_DOWN; i++)
        value[i] = term(&block, i);
    for (int i = 0; i < LANES_DOWN; i += QUAD)
        *(volatile quad *)(tile->gradient + element + i) = *(const quad *)(gradient + i);
    keep_order(value);
}

ALWAYS_INLINE void two_lines(order_term *term, order_prefetch *prefetch, const tile *tile, size_t size, int line,
                             real *sum, real *four) {
    lanes_ahead ahead;
    load_ahead(tile, line * ORDER_LANES, &ahead);
    for (int64_t first = 0; first < ORDER_LANES; first += LANES_DOWN) {
        real value[2][LANES_DOWN];
        const int64_t element = line * ORDER_LANES + first;
        const struct tile soon = block_of(tile, 2 * first, size, NULL);
        prefetch(&soon, line * ORDER_LANES + SOON_OF_TWO, LANES_DOWN);
        line_of_two(term, tile, size, element, element + ORDER_LANES, &ahead, value[0]);
        prefetch(&soon, line * ORDER_LANES + SOON_OF_TWO + LANES_DOWN, LANES_DOWN);
        line_of_two(term, tile, size, element + ORDER_LANES, element + LANES_DOWN, &ahead, value[1]);
#pragma omp simd
        for (int64_t i = 0; i < LANES_DOWN; i++) {
            real two;
            order_line(line, value[0][i], &sum[first + i], &two, &four[first + i]);
            order_line(line + 1, value[1][i], &sum[first + i], &two, &four[first + i]);
        }
    }
}

ALWAYS_INLINE void lines_in_twos(order_term *term, order_prefetch *prefetch, const tile *tile, size_t size, real *sum) {
    _Alignas(64) real four[ORDER_LANES];
    two_lines(term, prefetch, tile, size, 0, sum, four);
    two_lines(term, prefetch, tile, size, 2, sum, four);
    two_lines(term, prefetch, tile, size, 4, sum, four);
    two_lines(term, prefetch, tile, size, 6, sum, four);
}

/* Whether the lanes that go down, or in twos, are whole cache lines of the gradient. Where they are parts of two, a
 * Neoverse N1 reads each before it is written: mse took 1.4 times as long in its last cache as in passing, and twice as
 * long in memory. Large arrays of malloc() begin 16 bytes behind a cache line. */
ALWAYS_INLINE bool has_whole_lines(const real *gradient) {
    return (uintptr_t)gradient % CACHE_LINE == 0;
}

/* The sums of a tile's lanes. */
ALWAYS_INLINE void lane_sums(order_term *term, order_prefetch *prefetch, const tile *tile, size_t size, int lines,
                             bool has_slopes, real *sum) {
    _Alignas(64) real part[ORDER_LINES][ORDER_LANES];
    const bool can_leave = lines == IN_PASSING && CAN_GO_DOWN && (!has_slopes || has_whole_lines(tile->gradient));
    if ((can_leave || lines == DOWN_IN_CACHES) && !tile->from_memory)
        lines_down(term, prefetch, tile, size, has_slopes, sum);
    else if (can_leave && has_slopes)
        lines_in_twos(term, prefetch, tile, size, opaque(sum)); /* as in lines_in_passing() */
    else if (lines == IN_PASSING)
        lines_in_passing(term, prefetch, tile, size, has_slopes, sum);
    else
        order_lines(term, CAN_PREFETCH ? prefetch : prefetch_nothing, tile, lines == DOWN_IN_CACHES ? 4 : lines,
                    LANES_A_PREFETCH, part, sum);
}

/* The same for terms that also write a gradient. Of several lines all is computed before any of it is stored, since a
 * compiler has the second line's loads wait for the first one's stores if they are of one type: focal took 16.5 ns an
 * element with two lines, too. */
ALWAYS_INLINE void lane_sums_and_gradient(order_term *term, order_prefetch *prefetch, const tile *tile, size_t size,
                                          int lines, real *sum) {
    if (!IN_BLOCKS || lines < 2 || size != sizeof(real)) {
        lane_sums(term, prefetch, tile, size, lines, true, sum);
        return;
    }
    _Alignas(64) real gradient[ORDER_TILE];
    const struct tile computed = block_of(tile, 0, size, gradient);
    lane_sums(term, prefetch, &computed, size, lines, true, sum);
#pragma omp simd
    for (int64_t i = 0; i < ORDER_TILE; i++)
        tile->gradient[i] = gradient[i];
}

ALWAYS_INLINE void each_sum(order_term *term, order_prefetch *prefetch, const strip *strip, size_t size, int lines,
                            double *sum) {
    _Alignas(64) real lanes[ORDER_LANES];
    tile tile = tile_of(strip);
    for (int index = 0; index < strip->tiles; index++) {
        go_to_tile(&tile, strip, index, size);
        lane_sums(term, prefetch, &tile, size, lines, false, lanes);
        sum[index] = order_lanes(lanes);
    }
}

/* A function of its own, and not unrolled: it saves no registers, which would be stores of another kind. */
static __attribute__((noinline, unused)) void columns_of(const real *sum, double *column) {
#pragma GCC unroll 1
    for (int l = 0; l < ORDER_COLUMNS; l++)
        column[l] = order_column(order_load_real, sum, l);
}

/* The same for terms that also write a gradient. Where a store of anything but whole cache lines ends their streaming,
 * the sums of some tiles wait for each other. In passing, which waits for the memory, only the columns of their lanes
 * do, until the end of the strip: the lanes of 16 tiles would have it idle (mse took 5 % longer on a Neoverse N1). In a
 * cache nothing waits: storing columns and loading them again took 2 % of mse's time. */
ALWAYS_INLINE void each_sum_and_gradient(order_term *term, order_prefetch *prefetch, const strip *strip, size_t size,
                                         int lines, double *sum) {
    const bool in_columns = lines == IN_PASSING;
    const bool at_once =
        TILES_OF_SUMS == 1 || (in_columns && CAN_GO_DOWN && !strip->from_memory && has_whole_lines(strip->gradient));
    _Alignas(64) real lanes[TILES_OF_SUMS][ORDER_LANES];
    _Alignas(64) double column[STRIP_TILES][ORDER_COLUMNS];
    tile tile = tile_of(strip);
    for (int index = 0; index < strip->tiles; index++) {
        real *sums = lanes[in_columns ? 0 : index % TILES_OF_SUMS];
        go_to_tile(&tile, strip, index, size);
        lane_sums_and_gradient(term, prefetch, &tile, size, lines, sums);
        if (at_once)
            sum[index] = order_lanes(sums);
        else if (in_columns)
            columns_of(sums, column[index]);
        else if ((index + 1) % TILES_OF_SUMS == 0 || index + 1 == strip->tiles)
            for (int i = index - index % TILES_OF_SUMS; i <= index; i++)
                sum[i] = order_lanes(lanes[i % TILES_OF_SUMS]);
    }
    for (int index = 0; in_columns && !at_once && index < strip->tiles; index++)
        sum[index] = order_columns(column[index]);
}

/* ----------------------------------------------- values and gradients -- */

/* The terms of a strip, values or slopes, as they are stored. */
ALWAYS_INLINE void each_element(order_term *term, product_function *product, const strip *strip, real *result) {
    tile tile = tile_of(strip);
    for (int index = 0; index < strip->tiles; index++) {
        go_to_tile(&tile, strip, index, sizeof(real));
        const int64_t count = tile_count(strip, index), whole = IN_BLOCKS ? count - count % BLOCK : 0;
        real *out = result + index * ORDER_TILE;
        for (int64_t first = 0; first < whole; first += BLOCK) {
            real block[BLOCK];
#pragma omp simd
            for (int64_t i = 0; i < BLOCK; i++)
                block[i] = term(&tile, first + i);
#pragma omp simd
            for (int64_t i = 0; i < BLOCK; i++)
                out[first + i] = product(block[i], tile.scale);
        }
#pragma omp simd
        for (int64_t i = whole; i < count; i++)
            out[i] = product(term(&tile, i), tile.scale);
    }
}

#endif
