/*
 * The order of summation. Nobody else in onepass adds numbers up.
 *
 * The order depends on the index of the elements alone, so that a sum has the
 * same bits whoever computes it, and it leaves every engine free in its schedule:
 *
 *   1. Elements are numbered in row-major order of the common shape.
 *   2. A tile is 1024 consecutive elements, seen as 8 rows of 128 lanes: element
 *      i of a tile belongs to row i / 128 and lane i mod 128.
 *   3. The terms of a lane are added in `real` by the tree over the rows,
 *      ((r0+r1)+(r2+r3))+((r4+r5)+(r6+r7)). Terms beyond the end are +0.
 *   4. The 128 lane sums are widened to double and added by halves: lane l and
 *      l+64, then l and l+32, l+16, ... l+1. From here on everything is double.
 *   5. The tiles are added by the aligned binary tree over their index: node
 *      (level, i) is node (level-1, 2i) plus node (level-1, 2i+1); where there is
 *      no right child the left one stands alone. So an aligned run of 2^k tiles
 *      is one number.
 *
 * Why so: 8 rows of float keep the error of constant terms at zero and leave a
 * GPU thread enough loads in flight; whole rows of 128 lanes are what a vector
 * unit and a warp both like; an aligned tree can be cut anywhere and joined again.
 * tests/golden.txt holds the bits. After the first release a change of the order
 * is a change of version.
 */
#ifndef ONEPASS_ORDER_H
#define ONEPASS_ORDER_H

#include "loss.h"

#include <stdint.h>

#define ORDER_ROWS  8
#define ORDER_LANES 128
#define ORDER_TILE  (ORDER_ROWS * ORDER_LANES)

/* A 64-bit count of tiles makes a tree of at most this many levels. */
#define ORDER_MAX_LEVELS 64

/* `omp simd` because a term may also write a gradient, at its own index only. 64-bit
 * indices because clang gathers one by one with 32-bit ones, at a fifth of the rate. */
#define ORDER_EACH_LANE(statement)                                                                                     \
    _Pragma("omp simd") for (int64_t lane = 0; lane < ORDER_LANES; lane++) {                                           \
        statement;                                                                                                     \
    }

/* Step 3 for a whole tile: term(tile, i) is the term of element i, asked for once
 * each, in order. Row by row, since two streams of memory are faster than sixteen
 * (0.99 of a plain loop's rate against 0.51 on a Neoverse N1); the half-built
 * trees stay in L1. */
struct tile;
typedef real order_term(const struct tile *tile, int64_t element);

ALWAYS_INLINE void order_rows(order_term *term, const struct tile *tile, real *sum) {
    _Alignas(64) real four[ORDER_LANES], two[ORDER_LANES];
#define ROW(row) term(tile, (row)*ORDER_LANES + lane)
    ORDER_EACH_LANE(sum[lane] = ROW(0))
    ORDER_EACH_LANE(sum[lane] = sum[lane] + ROW(1))
    ORDER_EACH_LANE(two[lane] = ROW(2))
    ORDER_EACH_LANE(sum[lane] = sum[lane] + (two[lane] + ROW(3)))
    ORDER_EACH_LANE(four[lane] = ROW(4))
    ORDER_EACH_LANE(four[lane] = four[lane] + ROW(5))
    ORDER_EACH_LANE(two[lane] = ROW(6))
    ORDER_EACH_LANE(sum[lane] = sum[lane] + (four[lane] + (two[lane] + ROW(7))))
#undef ROW
}

/* Step 4. The halves from 64 down to 16 act on 16 columns of lanes that do not
 * meet, so each column is added in registers before the next is begun. */
ALWAYS_INLINE double order_lanes(const real *sum) {
    double column[16], last[4];
    for (int l = 0; l < 16; l++) {
        const double q0 = sum[l], q1 = sum[l + 16], q2 = sum[l + 32], q3 = sum[l + 48];
        const double q4 = sum[l + 64], q5 = sum[l + 80], q6 = sum[l + 96], q7 = sum[l + 112];
        column[l] = ((q0 + q4) + (q2 + q6)) + ((q1 + q5) + (q3 + q7));
    }
    for (int l = 0; l < 4; l++)
        last[l] = (column[l] + column[l + 8]) + (column[l + 4] + column[l + 12]);
    return (last[0] + last[2]) + (last[1] + last[3]);
}

/* Step 5 for tiles that come one after the other, from an aligned one on. The
 * stack holds the nodes that still wait for their right sibling, largest first. */
typedef struct order_stack {
    double node[ORDER_MAX_LEVELS];
    int depth;
    int64_t tiles;
} order_stack;

ALWAYS_INLINE void order_push(order_stack *stack, double tile_sum) {
    double sum = tile_sum;
    for (int64_t tiles = stack->tiles++; tiles & 1; tiles >>= 1)
        sum = stack->node[--stack->depth] + sum;
    stack->node[stack->depth++] = sum;
}

/* The sum of what was pushed: nodes without a right sibling stand alone until they are one. */
ALWAYS_INLINE double order_top(const order_stack *stack) {
    if (stack->depth == 0)
        return 0;
    double sum = stack->node[stack->depth - 1];
    for (int i = stack->depth - 2; i >= 0; i--)
        sum = stack->node[i] + sum;
    return sum;
}

/* Step 5 for nodes of one level, in place: returns their common ancestor. */
ALWAYS_INLINE double order_tree(double *node, int64_t count) {
    for (int64_t apart = 1; apart < count; apart *= 2)
        for (int64_t i = 0; i + apart < count; i += 2 * apart)
            node[i] = node[i] + node[i + apart];
    return count > 0 ? node[0] : 0;
}

#endif
