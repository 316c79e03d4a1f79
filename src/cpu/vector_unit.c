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

/* Of a tile's element. Beside those of a loss with labels there is the own score, the same for all. */
ALWAYS_INLINE double term_at(vector_terms *terms, bool has_own, int which, const vector_tile *tile, int64_t i) {
    const real *a = tile->operand[0], *b = tile->operand[1], *c = tile->operand[2];
    return term_of(terms, which, a[i], has_own ? tile->own_score : b[i], c[i], tile->parameter);
}

/* In the place of the own score itself there is none. */
ALWAYS_INLINE double term_but_own(vector_terms *terms, int which, const vector_tile *tile, int64_t i) {
    const real a = i == tile->own ? -REAL_INFINITY : tile->operand[0][i];
    return term_of(terms, which, a, tile->own_score, a, tile->parameter);
}

/* The sum of a lane's terms in two or four neighbouring lines, by the tree. */
ALWAYS_INLINE double sum_of_lines(vector_terms *terms, bool has_own, int which, const vector_tile *tile, int64_t i,
                                  int lines) {
    const int64_t line = ORDER_LANES;
    const double first = term_at(terms, has_own, which, tile, i) + term_at(terms, has_own, which, tile, i + line);
    if (lines == 2)
        return first;
    return first +
           (term_at(terms, has_own, which, tile, i + 2 * line) + term_at(terms, has_own, which, tile, i + 3 * line));
}

ALWAYS_INLINE double lines_but_own(vector_terms *terms, int which, const vector_tile *tile, int64_t i, int lines) {
    const int64_t line = ORDER_LANES;
    const double first = term_but_own(terms, which, tile, i) + term_but_own(terms, which, tile, i + line);
    if (lines == 2)
        return first;
    return first + (term_but_own(terms, which, tile, i + 2 * line) + term_but_own(terms, which, tile, i + 3 * line));
}

typedef double lane_sums[VECTOR_MOST_SUMS][ORDER_LANES];

/* Of the lines from element `first` on. The lane of the own score is added up once more, without it. */
ALWAYS_INLINE void sum_lines(vector_terms *terms, int sums, bool has_own, const vector_tile *tile, int64_t first,
                             int lines, lane_sums sum) {
#pragma omp simd
    for (int64_t lane = 0; lane < ORDER_LANES; lane++) {
        sum[0][lane] = sum_of_lines(terms, has_own, 0, tile, first + lane, lines);
        if (sums > 1)
            sum[1][lane] = sum_of_lines(terms, has_own, 1, tile, first + lane, lines);
        if (sums > 2)
            sum[2][lane] = sum_of_lines(terms, has_own, 2, tile, first + lane, lines);
    }
    const int64_t own = tile->own - first;
    for (int k = 0; has_own && own >= 0 && own < lines * ORDER_LANES && k < sums; k++)
        sum[k][own % ORDER_LANES] = lines_but_own(terms, k, tile, first + own % ORDER_LANES, lines);
}

/* Terms of the elements from `first` on, those of each sum side by side: there is room for so many of one. */
ALWAYS_INLINE void store_terms(vector_terms *terms, int sums, bool has_own, const vector_tile *tile, int64_t first,
                               int64_t room, double *term) {
    const int64_t count = tile->count - first, own = tile->own - first;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        term[i] = term_at(terms, has_own, 0, tile, first + i);
        if (sums > 1)
            term[room + i] = term_at(terms, has_own, 1, tile, first + i);
        if (sums > 2)
            term[2 * room + i] = term_at(terms, has_own, 2, tile, first + i);
    }
    for (int k = 0; has_own && own >= 0 && own < count && k < sums; k++)
        term[k * room + own] = term_but_own(terms, k, tile, tile->own);
}

/* Lanes of two halves of a tile, or of one and nothing. */
ALWAYS_INLINE double load_halves(const void *halves, int lane) {
    const double *sum = halves;
    return sum[lane] + sum[lane + (int)(sizeof(lane_sums) / sizeof(double))];
}

/* Tiles of some whole pairs of lines: terms stay in registers until four are added up. Those of the elements behind
 * them, which are less than a pair, are in `rest`, and +0 behind these. */
#define PAIR (2 * ORDER_LANES)
ALWAYS_INLINE void sum_pairs(vector_terms *terms, int sums, bool has_own, const vector_tile *tile, const double *rest,
                             double *sum) {
    _Alignas(64) lane_sums half[2];
    for (int h = 0; h < 2; h++) {
        const int64_t first = h * ORDER_TILE / 2, left = tile->count - first;
        if (left >= ORDER_TILE / 2) {
            sum_lines(terms, sums, has_own, tile, first, 4, half[h]);
            continue;
        }
        if (left >= PAIR)
            sum_lines(terms, sums, has_own, tile, first, 2, half[h]);
        for (int k = 0; k < sums; k++) {
            double *own = half[h][k];
            const double *last = rest + k * PAIR;
            if (left > PAIR)
                ORDER_EACH_LANE(own[lane] = own[lane] + (last[lane] + last[lane + ORDER_LANES]))
            else if (left == PAIR)
                ORDER_EACH_LANE(own[lane] = own[lane] + 0)
            else if (left > 0)
                ORDER_EACH_LANE(own[lane] = (last[lane] + last[lane + ORDER_LANES]) + 0)
            else
                memset(own, 0, sizeof half[h][k]);
        }
    }
    for (int k = 0; k < sums; k++)
        sum[k] = order_lanes_of(load_halves, half[0][k]);
}

/* How many sums there are but for the last, if the compiler knows that it is 0. */
ALWAYS_INLINE int sums_of(vector_terms *terms, int sums, const vector_tile *tile) {
    const real any = (real)tile->count;
    const double last = term_of(terms, sums - 1, any, any, any, tile->parameter);
    return __builtin_constant_p(last) && last == 0 ? sums - 1 : sums;
}

ALWAYS_INLINE void sum_terms(vector_terms *terms, bool is_usual, int sums, bool has_own, const vector_tile *tile,
                             double *term, double *sum) {
    const bool has_pairs = is_usual && sums > 1;
    const int64_t whole = has_pairs ? tile->count / PAIR * PAIR : 0, count = tile->count - whole;
    const int64_t room = has_pairs ? PAIR : ORDER_TILE;
    const bool is_few = count <= ORDER_LANES / 2 && !whole;
    int64_t places = is_few ? 1 : whole ? PAIR : ORDER_LANES;
    while (places < count)
        places *= 2;
    if (count > 0)
        store_terms(terms, sums, has_own, tile, whole, room, term);
    for (int k = 0; k < sums && (count > 0 || !whole); k++)
        memset(term + k * room + count, 0, (size_t)(places - count) * sizeof *term);
    if (whole) {
        sum_pairs(terms, sums, has_own, tile, term, sum);
        return;
    }
    const int lines = (int)(places / ORDER_LANES), own_lines = has_pairs ? (lines == 2 ? 2 : 1) : lines;
    for (int k = 0; k < sums; k++)
        sum[k] = is_few ? order_wide_few(term + k * room, (int)places) : order_wide_lines(term + k * room, own_lines);
}

/* Terms beyond the end are +0. One sum alone is as fast with all terms side by side, and so are fewer streams of
 * memory. */
ALWAYS_INLINE void sum_tile(vector_terms *terms, vector_usual *usual, int sums, bool has_own, const vector_tile *given,
                            double *term, double *sum) {
    vector_tile tile = *given;
    if (usual)
        usual(tile.parameter);
    if (usual && sums > 2 && sums_of(terms, sums, &tile) < sums) { /* two have room where three have */
        sum_terms(terms, true, sums - 1, has_own, &tile, term, sum);
        sum[sums - 1] = 0;
    } else {
        sum_terms(terms, usual, sums, has_own, &tile, term, sum);
    }
}

/* That of the own score is somebody else's. */
ALWAYS_INLINE void write_slopes(vector_slope *slope, vector_usual *usual, bool has_own, int which,
                                const vector_tile *given, const double *factors, real *gradient) {
    vector_tile tile = *given;
    if (usual)
        usual(tile.parameter);
    const double factor[VECTOR_MOST_FACTORS] = {factors[0], factors[1], factors[2]};
    const real *a = tile.operand[0], *b = tile.operand[1], *c = tile.operand[2];
#pragma omp simd
    for (int64_t i = 0; i < tile.count; i++)
        gradient[i] = slope_of(slope, which, a[i], has_own ? tile.own_score : b[i], c[i], tile.parameter, factor);
}

#define GRADIENT(name, has_own, which)                                                                                 \
    static void name##_gradient_##which(const vector_tile *tile, const double *factor, real *gradient) {               \
        if (is_usual(name##_usual, tile->parameter))                                                                   \
            write_slopes(name##_slope, name##_usual, has_own, which, tile, factor, gradient);                          \
        else                                                                                                           \
            write_slopes(name##_slope, NULL, has_own, which, tile, factor, gradient);                                  \
    }
#define GRADIENTS_1(name, has_own) GRADIENT(name, has_own, 0)
#define GRADIENTS_2(name, has_own) GRADIENTS_1(name, has_own) GRADIENT(name, has_own, 1)
#define GRADIENTS_3(name, has_own) GRADIENTS_2(name, has_own) GRADIENT(name, has_own, 2)
#define EACH_1(name)               name##_gradient_0
#define EACH_2(name)               EACH_1(name), name##_gradient_1
#define EACH_3(name)               EACH_2(name), name##_gradient_2

/* Terms that wait to be added up: less than two lines of them, or a tile. Buffers of what is not usual, which are
 * large, are on the stack only where they are needed. */
#define ROOM_FOR_TERMS(sum_count, room) _Alignas(64) double term[((sum_count) > 0 ? (sum_count) : 1) * (room)]

/* src/descriptor.c refers to the table. Nobody calls the function for sums of a loss that has none. */
#define VECTOR_LOSS(name, operands, vector_count, sum_count, length, ...)                                              \
    VECTOR_FUNCTION name##_terms_of(const real *x, const double *parameter, double *term) {                            \
        VECTOR_TERMS_##length(name, x, parameter, term);                                                               \
    }                                                                                                                  \
    static __attribute__((noinline)) void name##_unusual_sums(const vector_tile *tile, double *sum) {                  \
        ROOM_FOR_TERMS(sum_count, ORDER_TILE);                                                                         \
        sum_tile(name##_terms_of, NULL, sum_count, HAS_LABELS_##length, tile, term, sum);                              \
    }                                                                                                                  \
    static __attribute__((noinline)) void name##_usual_sums(const vector_tile *tile, double *sum) {                    \
        ROOM_FOR_TERMS(sum_count, (sum_count) > 1 ? PAIR : ORDER_TILE);                                                \
        sum_tile(name##_terms_of, name##_usual, sum_count, HAS_LABELS_##length, tile, term, sum);                      \
    }                                                                                                                  \
    static void name##_sums(const vector_tile *tile, double *sum) {                                                    \
        if (is_usual(name##_usual, tile->parameter))                                                                   \
            name##_usual_sums(tile, sum);                                                                              \
        else                                                                                                           \
            name##_unusual_sums(tile, sum);                                                                            \
    }                                                                                                                  \
    GRADIENTS_##vector_count(name, HAS_LABELS_##length)                                                                \
        ONEPASS_INTERNAL extern const cpu_vector PASTE(onepass_cpu_##name##_, ONEPASS_VARIANT);                        \
    const cpu_vector PASTE(onepass_cpu_##name##_, ONEPASS_VARIANT) = {name##_sums, {EACH_##vector_count(name)}};
#include ONEPASS_UNIT_HEADER
