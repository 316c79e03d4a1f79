/*
 * The functions of the vector losses of one header, for tiles: the twin of unit.c. Compiled once for each header,
 * instruction set and compute type.
 *
 * -ffp-contract=off is part of the meaning: a fused multiply-add has other bits.
 */
#include "cpu/vector_tile.h"
#include "math/vector.h"

typedef void vector_terms(const real *x, const double *parameter, double *term);
typedef double vector_slope(int which, const real *x, const double *parameter, const double *factor);
typedef void vector_usual(double *parameter);

/* Whether a loss is asked for as it usually is. */
ALWAYS_INLINE bool is_usual(vector_usual *usual, const double *parameter) {
    double own[ONEPASS_MAX_PARAMETERS];
    memcpy(own, parameter, sizeof own);
    usual(own);
    return memcmp(own, parameter, sizeof own) == 0;
}

/* What an element adds to one of the sums, and its slope. Arrays are made here, since gcc makes no vectors of a loop
 * that has its own; what several calls have in common it computes once. */
ALWAYS_INLINE double term_of(vector_terms *terms, int which, real a, real b, real c, const double *parameter) {
    const real x[MOST_OPERANDS] = {a, b, c};
    double own[VECTOR_MOST_SUMS] = {0, 0, 0};
    terms(x, parameter, own);
    return own[which];
}

ALWAYS_INLINE real slope_of(vector_slope *slope, int which, real a, real b, real c, const double *parameter,
                            const double *factor) {
    const real x[MOST_OPERANDS] = {a, b, c};
    return canonical((real)slope(which, x, parameter, factor));
}

/* The sum of a lane's terms in two or four neighbouring lines, by the tree; lines that are missing are +0. */
ALWAYS_INLINE double sum_of_lines(vector_terms *terms, int which, const vector_tile *tile, int64_t i, int lines) {
    const real *a = tile->operand[0] + i, *b = tile->operand[1] + i, *c = tile->operand[2] + i;
    const double *parameter = tile->parameter;
    const int64_t line = ORDER_LANES;
    const double first = term_of(terms, which, a[0], b[0], c[0], parameter) +
                         term_of(terms, which, a[line], b[line], c[line], parameter);
    if (lines == 2)
        return first + 0;
    return first + (term_of(terms, which, a[2 * line], b[2 * line], c[2 * line], parameter) +
                    term_of(terms, which, a[3 * line], b[3 * line], c[3 * line], parameter));
}

typedef double lane_sums[VECTOR_MOST_SUMS][ORDER_LANES];

ALWAYS_INLINE void sum_half(vector_terms *terms, int sums, const vector_tile *tile, int64_t first, int lines,
                            lane_sums half) {
#pragma omp simd
    for (int64_t lane = 0; lane < ORDER_LANES; lane++) {
        half[0][lane] = sum_of_lines(terms, 0, tile, first + lane, lines);
        if (sums > 1)
            half[1][lane] = sum_of_lines(terms, 1, tile, first + lane, lines);
        if (sums > 2)
            half[2][lane] = sum_of_lines(terms, 2, tile, first + lane, lines);
    }
}

/* Tiles of whole pairs of lines: terms stay in registers until four are added up. One sum alone is as fast by itself,
 * and so are fewer streams of memory. */
ALWAYS_INLINE bool has_pairs(int sums, const vector_tile *tile) {
    return sums > 1 && tile->count > 0 && tile->count % (2 * ORDER_LANES) == 0;
}

ALWAYS_INLINE void sum_pairs(vector_terms *terms, int sums, const vector_tile *tile, double *sum) {
    _Alignas(64) lane_sums half[2];
    for (int i = 0; i < 2; i++) {
        const int64_t first = i * ORDER_TILE / 2, left = tile->count - first;
        if (left >= ORDER_TILE / 2)
            sum_half(terms, sums, tile, first, 4, half[i]);
        else if (left > 0)
            sum_half(terms, sums, tile, first, 2, half[i]);
        else
            memset(half[i], 0, sizeof half[i]);
    }
    for (int k = 0; k < sums; k++) {
        ORDER_EACH_LANE(half[0][k][lane] = half[0][k][lane] + half[1][k][lane])
        sum[k] = order_lanes_of(order_load_wide, half[0][k]);
    }
}

/* The terms of each sum lie side by side before they are added up, those beyond the end being +0. */
ALWAYS_INLINE void sum_tile(vector_terms *terms, vector_usual *usual, int sums, const vector_tile *given, double *sum) {
    _Alignas(64) double term[VECTOR_MOST_SUMS][ORDER_TILE];
    vector_tile tile = *given;
    if (usual)
        usual(tile.parameter);
    if (usual && has_pairs(sums, &tile)) {
        sum_pairs(terms, sums, &tile, sum);
        return;
    }
    const real *a = tile.operand[0], *b = tile.operand[1], *c = tile.operand[2];
#pragma omp simd
    for (int64_t i = 0; i < tile.count; i++) {
        term[0][i] = term_of(terms, 0, a[i], b[i], c[i], tile.parameter);
        if (sums > 1)
            term[1][i] = term_of(terms, 1, a[i], b[i], c[i], tile.parameter);
        if (sums > 2)
            term[2][i] = term_of(terms, 2, a[i], b[i], c[i], tile.parameter);
    }
    const bool is_few = tile.count <= ORDER_LANES / 2;
    int64_t places = is_few ? 1 : ORDER_LANES;
    while (places < tile.count)
        places *= 2;
    for (int k = 0; k < sums; k++) {
        memset(term[k] + tile.count, 0, (size_t)(places - tile.count) * sizeof(double));
        sum[k] = is_few ? order_wide_few(term[k], (int)places) : order_wide_lines(term[k], (int)(places / ORDER_LANES));
    }
}

ALWAYS_INLINE void write_slopes(vector_slope *slope, vector_usual *usual, int which, const vector_tile *given,
                                const double *factors, real *gradient) {
    vector_tile tile = *given;
    if (usual)
        usual(tile.parameter);
    const double factor[VECTOR_MOST_FACTORS] = {factors[0], factors[1], factors[2]};
    const real *a = tile.operand[0], *b = tile.operand[1], *c = tile.operand[2];
#pragma omp simd
    for (int64_t i = 0; i < tile.count; i++)
        gradient[i] = slope_of(slope, which, a[i], b[i], c[i], tile.parameter, factor);
}

#define GRADIENT(name, which)                                                                                          \
    static void name##_gradient_##which(const vector_tile *tile, const double *factor, real *gradient) {               \
        if (is_usual(name##_usual, tile->parameter))                                                                   \
            write_slopes(name##_slope, name##_usual, which, tile, factor, gradient);                                   \
        else                                                                                                           \
            write_slopes(name##_slope, NULL, which, tile, factor, gradient);                                           \
    }
#define GRADIENTS_1(name) GRADIENT(name, 0)
#define GRADIENTS_2(name) GRADIENTS_1(name) GRADIENT(name, 1)
#define GRADIENTS_3(name) GRADIENTS_2(name) GRADIENT(name, 2)
#define EACH_1(name)      name##_gradient_0
#define EACH_2(name)      EACH_1(name), name##_gradient_1
#define EACH_3(name)      EACH_2(name), name##_gradient_2

/* src/descriptor.c refers to the table. Nobody calls the function for sums of a loss that has none. */
#define VECTOR_LOSS(name, operands, vector_count, sum_count, length, ...)                                              \
    VECTOR_FUNCTION name##_terms_of(const real *x, const double *parameter, double *term) {                            \
        VECTOR_TERMS_##length(name, x, parameter, term);                                                               \
    }                                                                                                                  \
    static void name##_sums(const vector_tile *tile, double *sum) {                                                    \
        if (is_usual(name##_usual, tile->parameter))                                                                   \
            sum_tile(name##_terms_of, name##_usual, sum_count, tile, sum);                                             \
        else                                                                                                           \
            sum_tile(name##_terms_of, NULL, sum_count, tile, sum);                                                     \
    }                                                                                                                  \
    GRADIENTS_##vector_count(name)                                                                                     \
        ONEPASS_INTERNAL extern const cpu_vector PASTE(onepass_cpu_##name##_, ONEPASS_VARIANT);                        \
    const cpu_vector PASTE(onepass_cpu_##name##_, ONEPASS_VARIANT) = {name##_sums, {EACH_##vector_count(name)}};
#include ONEPASS_UNIT_HEADER
