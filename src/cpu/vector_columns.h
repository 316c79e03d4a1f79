/*
 * Sums of whole lines on Arm, column by column: the tree over a column's lines and over its lanes is gone down two
 * lanes at a time, so that no sum waits in memory.
 *
 * A Neoverse N1 has one unit that converts to double, of the two that compute, and looks ahead by some 30 operations.
 * Elements are converted before the terms of those before them are computed, and each step stays where it is written:
 * where a compiler orders them, all conversions come first, or each right before it is needed. Values of cosines took
 * 0.98 ns an element and take 0.87, those of triplets 1.46 and 1.43.
 */
#ifndef ONEPASS_CPU_VECTOR_COLUMNS_H
#define ONEPASS_CPU_VECTOR_COLUMNS_H

#include "cpu/lines.h"
#include "cpu/vector_tile.h"
#include "math/vector.h"

/* Terms of elements that are double, added to the sums `before` them if there are any. */
typedef void vector_wide_terms(const double *x, const double *parameter, const double *before, double *term);

#if HAS_WIDE_ELEMENTS && defined(__ARM_NEON)
#include <arm_neon.h>

typedef float64x2_t lane_pair;
typedef struct pair_elements {
    lane_pair of[MOST_OPERANDS];
} pair_elements;
typedef struct pair_sums {
    lane_pair of[VECTOR_MOST_SUMS];
} pair_sums;

/* Has it computed between what stands before and behind. */
ALWAYS_INLINE void stay(lane_pair x) {
    __asm__ volatile("" : : "w"(x));
}

/* The elements of a column, in the order of the tree: those of all lines for one lane, and lanes by halves. */
#define MOST_AHEAD 4
typedef struct column {
    const real *operand[MOST_OPERANDS], *next[MOST_OPERANDS]; /* what is asked for meanwhile */
    int lines;
    pair_elements ahead[MOST_AHEAD];
} column;

ALWAYS_INLINE lane_pair load_wide(const real *from) {
#if defined(ONEPASS_REAL_F64)
    return vld1q_f64(from);
#else
    return vcvt_f64_f32(vld1_f32(from));
#endif
}

/* Behind its last element comes the first of the next column. */
ALWAYS_INLINE int64_t place_in_column(int lines, int n) {
    const int half = n / lines % 8;
    return n % lines * ORDER_LANES + ((half & 1) * 4 + (half & 2) + half / 4) * ORDER_COLUMNS + n / (8 * lines) * 2;
}

ALWAYS_INLINE void widen_pair(int vectors, column *column, int n) {
    for (int k = 0; k < vectors; k++) {
        const lane_pair wide = load_wide(column->operand[k] + place_in_column(column->lines, n));
        stay(wide);
        column->ahead[n % MOST_AHEAD].of[k] = wide;
    }
}

ALWAYS_INLINE pair_elements take_pair(int vectors, column *column, int n) {
    pair_elements own = column->ahead[n % MOST_AHEAD];
    if (n % 8 == 0)
        for (int k = 0; k < vectors; k++)
            prefetch_here(column->next[k], sizeof(real), n / 8 * CACHE_LINE / (int)sizeof(real), 1);
    widen_pair(vectors, column, n + MOST_AHEAD);
    for (int k = 0; k < vectors; k++)
        __asm__ volatile("" : "+w"(own.of[k])); /* nothing is done to it earlier */
    return own;
}

/* What the n-th element adds. */
ALWAYS_INLINE pair_sums add_pair(vector_wide_terms *terms, int vectors, int sums, const double *parameter,
                                 column *column, int n, const pair_sums *before) {
    const pair_elements own = take_pair(vectors, column, n);
    double term[2][VECTOR_MOST_SUMS] = {{0}};
    pair_sums sum = {0};
    for (int lane = 0; lane < 2; lane++) {
        double x[MOST_OPERANDS] = {0}, so_far[VECTOR_MOST_SUMS] = {0};
        for (int k = 0; k < vectors; k++)
            x[k] = own.of[k][lane];
        for (int k = 0; before && k < sums; k++)
            so_far[k] = before->of[k][lane];
        terms(x, parameter, before ? so_far : NULL, term[lane]);
    }
    for (int k = 0; k < sums; k++) {
        sum.of[k] = (lane_pair){term[0][k], term[1][k]};
        stay(sum.of[k]);
    }
    return sum;
}

ALWAYS_INLINE pair_sums sum_of_pairs(int sums, const pair_sums *left, const pair_sums *right) {
    pair_sums sum = {0};
    for (int k = 0; k < sums; k++) {
        sum.of[k] = left->of[k] + right->of[k];
        stay(sum.of[k]);
    }
    return sum;
}

/* By the tree: 6 or 8 elements from the n-th on. */
ALWAYS_INLINE pair_sums add_elements(vector_wide_terms *terms, int vectors, int sums, const double *parameter,
                                     column *column, int n, int count) {
    pair_sums first = add_pair(terms, vectors, sums, parameter, column, n, NULL);
    first = add_pair(terms, vectors, sums, parameter, column, n + 1, &first);
    pair_sums next = add_pair(terms, vectors, sums, parameter, column, n + 2, NULL);
    next = add_pair(terms, vectors, sums, parameter, column, n + 3, &next);
    first = sum_of_pairs(sums, &first, &next);
    next = add_pair(terms, vectors, sums, parameter, column, n + 4, NULL);
    next = add_pair(terms, vectors, sums, parameter, column, n + 5, &next);
    if (count == 8) {
        pair_sums last = add_pair(terms, vectors, sums, parameter, column, n + 6, NULL);
        last = add_pair(terms, vectors, sums, parameter, column, n + 7, &last);
        next = sum_of_pairs(sums, &next, &last);
    }
    return sum_of_pairs(sums, &first, &next);
}

ALWAYS_INLINE pair_sums sum_of_two_halves(vector_wide_terms *terms, int vectors, int sums, const double *parameter,
                                          column *column, int half) {
    const int lines = column->lines;
    const pair_sums left = add_elements(terms, vectors, sums, parameter, column, half * lines, lines);
    const pair_sums right = add_elements(terms, vectors, sums, parameter, column, (half + 1) * lines, lines);
    return sum_of_pairs(sums, &left, &right);
}

ALWAYS_INLINE pair_sums sum_of_four_halves(vector_wide_terms *terms, int vectors, int sums, const double *parameter,
                                           column *column, int half) {
    const pair_sums left = sum_of_two_halves(terms, vectors, sums, parameter, column, half);
    const pair_sums right = sum_of_two_halves(terms, vectors, sums, parameter, column, half + 2);
    return sum_of_pairs(sums, &left, &right);
}

ALWAYS_INLINE pair_sums sum_of_column(vector_wide_terms *terms, int vectors, int sums, const double *parameter,
                                      column *column) {
    const pair_sums left = sum_of_four_halves(terms, vectors, sums, parameter, column, 0);
    const pair_sums right = sum_of_four_halves(terms, vectors, sums, parameter, column, 4);
    return sum_of_pairs(sums, &left, &right);
}

/* Of a tile of 6 or 8 lines. More than a tile ahead of what is computed the memory is asked for what comes, in the
 * order in which it lies: exactly a tile ahead triplets took 6 % longer. */
ALWAYS_INLINE void sum_columns(vector_wide_terms *terms, int vectors, int sums, const vector_tile *tile, int lines,
                               double *sum) {
    double columns[VECTOR_MOST_SUMS][ORDER_COLUMNS];
    column column = {.lines = lines};
    for (int k = 0; k < vectors; k++) {
        column.operand[k] = tile->operand[k];
        column.next[k] = tile->operand[k] + (tile->is_followed ? ORDER_TILE + ORDER_TILE / 2 : 0);
    }
    for (int n = 0; n < MOST_AHEAD; n++)
        widen_pair(vectors, &column, n);
#pragma GCC unroll 1
    for (int lane = 0; lane < ORDER_COLUMNS; lane += 2) {
        const pair_sums own = sum_of_column(terms, vectors, sums, tile->parameter, &column);
        for (int k = 0; k < sums; k++)
            memcpy(&columns[k][lane], &own.of[k], sizeof own.of[k]);
        for (int k = 0; k < vectors; k++) {
            column.operand[k] += 2;
            column.next[k] += lines * CACHE_LINE / (int)sizeof(real);
        }
    }
    for (int k = 0; k < sums; k++)
        sum[k] = order_columns(columns[k]) + (lines < ORDER_LINES ? 0 : -0.0); /* as in sum_pairs() */
}

/* Returns whether the tile is of such lines. Many embeddings have six. */
ALWAYS_INLINE bool sum_whole_lines(vector_wide_terms *terms, int vectors, int sums, const vector_tile *tile,
                                   double *sum) {
    if (!terms || (tile->count != ORDER_TILE && tile->count != 6 * ORDER_LANES))
        return false;
    if (tile->count == ORDER_TILE)
        sum_columns(terms, vectors, sums, tile, ORDER_LINES, sum);
    else
        sum_columns(terms, vectors, sums, tile, 6, sum);
    return true;
}

#else

ALWAYS_INLINE bool sum_whole_lines(vector_wide_terms *terms, int vectors, int sums, const vector_tile *tile,
                                   double *sum) {
    (void)terms, (void)vectors, (void)sums, (void)tile, (void)sum;
    return false;
}

#endif

#endif
