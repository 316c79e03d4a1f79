/*
 * The functions of the vector losses of one header, for tiles: the twin of unit.c. Compiled once for each header,
 * instruction set and compute type.
 *
 * -ffp-contract=off is part of the meaning: a fused multiply-add has other bits.
 */
#include "cpu/lines.h"
#include "cpu/vector_columns.h"
#include "cpu/vector_reals.h"
#include "cpu/vector_tile.h"
#include "math/vector.h"

/* Terms, added to the sums `before` them if there are any. */
typedef void vector_terms(const real *x, const double *parameter, const double *before, double *term);
typedef double vector_slope(int which, const real *x, const double *parameter, const double *factor);
typedef void vector_usual(double *parameter);

/* Whether a loss is asked for as it usually is. */
ALWAYS_INLINE bool is_usual(vector_usual *usual, const double *parameter) {
    double own[ONEPASS_MAX_PARAMETERS];
    memcpy(own, parameter, sizeof own);
    usual(own);
    return memcmp(own, parameter, sizeof own) == 0;
}

/* What the compiler may know of them: those of usual calls, and of other calls of a loss with labels. */
ALWAYS_INLINE void set_parameters(vector_usual *usual, bool has_own, double *parameter) {
    if (usual)
        usual(parameter);
    else if (has_own)
        parameter[VECTOR_OWN_POWER] = 2;
}

/* What an element adds to one of the sums, on top of what is there before it, if that is not null, and its slope.
 * Arrays are made here, since gcc makes no vectors of a loop that has its own; what several calls have in common it
 * computes once. */
ALWAYS_INLINE double term_of(vector_terms *terms, int which, real a, real b, real c, const double *parameter,
                             const double *before) {
    const real x[MOST_OPERANDS] = {a, b, c};
    const double sums[VECTOR_MOST_SUMS] = {before ? *before : 0, before ? *before : 0, before ? *before : 0};
    double own[VECTOR_MOST_SUMS] = {0, 0, 0};
    terms(x, parameter, before ? sums : NULL, own);
    return own[which];
}

ALWAYS_INLINE real slope_of(vector_slope *slope, int which, real a, real b, real c, const double *parameter,
                            const double *factor) {
    const real x[MOST_OPERANDS] = {a, b, c};
    const real own = (real)slope(which, x, parameter, factor);
    return sizeof own < sizeof(double) ? lean(own) : canonical(own); /* made float, it is a result of arithmetic */
}

/* Of a tile's element. Beside those of a loss with labels there is the own score, the same for all; in the place of the
 * own score itself there is none, where that is looked at. */
typedef enum own_score {
    NO_OWN,
    OWN_BESIDE,
    OWN_LEFT_OUT
} own_score;

/* The same of elements that are double already. */
ALWAYS_INLINE double wide_term_of(vector_wide_terms *terms, int which, double a, double b, double c,
                                  const double *parameter, const double *before) {
    const double x[MOST_OPERANDS] = {a, b, c};
    const double sums[VECTOR_MOST_SUMS] = {before ? *before : 0, before ? *before : 0, before ? *before : 0};
    double own[VECTOR_MOST_SUMS] = {0, 0, 0};
    terms(x, parameter, before ? sums : NULL, own);
    return own[which];
}

/* What terms are made of: a tile's elements, or those of some lanes, which are double already. */
typedef struct elements {
    const vector_tile *tile;
    vector_terms *terms;
    own_score own;
    vector_wide_terms *wide; /* or null */
    const double *lanes[MOST_OPERANDS];
} elements;

ALWAYS_INLINE double term_at(const elements *of, int which, int64_t i, const double *before) {
    const vector_tile *tile = of->tile;
    if (of->wide)
        return wide_term_of(of->wide, which, of->lanes[0][i], of->lanes[1][i], of->lanes[2][i], tile->parameter,
                            before);
    const real *a = tile->operand[0], *b = tile->operand[1], *c = tile->operand[2];
    const real x = of->own == OWN_LEFT_OUT && i == tile->own ? -REAL_INFINITY : a[i];
    return term_of(of->terms, which, x, of->own ? tile->own_score : b[i], of->own == OWN_LEFT_OUT ? x : c[i],
                   tile->parameter, before);
}

/* How far apart the elements are whose terms are added, then the sums of two, then those of four. */
typedef struct distances {
    int64_t one, two, four;
} distances;

static const distances lines_apart = {ORDER_LANES, 2 * ORDER_LANES, 4 * ORDER_LANES};
static const distances halves_apart = {ORDER_LANES / 2, ORDER_LANES / 4, ORDER_LANES / 8}; /* of a line */

/* The sum of 2, 4, 6 or 8 terms from element i on, by the tree. */
ALWAYS_INLINE double sum_of_two(const elements *of, int which, int64_t i, distances apart) {
    const double one = term_at(of, which, i, NULL);
    return term_at(of, which, i + apart.one, &one);
}

ALWAYS_INLINE double sum_of_some(const elements *of, int which, int64_t i, distances apart, int count) {
    const double two = sum_of_two(of, which, i, apart);
    if (count == 2)
        return two;
    const double four = two + sum_of_two(of, which, i + apart.two, apart);
    if (count == 4)
        return four;
    if (count == 6)
        return four + sum_of_two(of, which, i + apart.four, apart);
    return four +
           (sum_of_two(of, which, i + apart.four, apart) + sum_of_two(of, which, i + apart.four + apart.two, apart));
}

typedef double wide_lane_sums[VECTOR_MOST_SUMS][ORDER_LANES];

/* Lanes are added up some at a time: in floats, a cache line of them, ... */
#define LANES_A_BLOCK 16

/* ... or what a loss wants: a vector at a time has what is prefetched asked for in passing. */
#define LANES_OF_SHORT      (HAS_NEON_ALONE ? 4 : LANES_A_BLOCK)
#define LANES_OF_PRODUCTS   LANES_OF_SHORT
#define LANES_OF_LONG       LANES_OF_SHORT
#define LANES_OF_SOFTMAX    LANES_A_BLOCK
#define LANES_OF_CARRIED    LANES_A_BLOCK
#define LANES_OF_LABELLED   LANES_A_BLOCK
#define LANES_OF_MULTILABEL LANES_A_BLOCK

/* The sums of `count` terms each, from element i on, of so many lanes: those of each sum of the row have so much room.
 */
ALWAYS_INLINE void sum_some_lanes(const elements *of, int sums, int64_t i, distances apart, int count, int lanes,
                                  double *sum, int64_t room) {
#pragma omp simd
    for (int64_t lane = 0; lane < lanes; lane++) {
        sum[lane] = sum_of_some(of, 0, i + lane, apart, count);
        if (sums > 1)
            sum[room + lane] = sum_of_some(of, 1, i + lane, apart, count);
        if (sums > 2)
            sum[2 * room + lane] = sum_of_some(of, 2, i + lane, apart, count);
    }
}

#if defined(DOUBLES)
/* The same of as many lanes as a vector of doubles has. Elements are made double as they come from memory: of more
 * lanes a compiler makes vectors of floats, and takes these apart. In a first-level cache the sums of cosines took 1.2
 * times as long with AVX-512, and 1.1 with AVX2. */
ALWAYS_INLINE void sum_double_lanes(vector_wide_terms *wide, int vectors, int sums, const vector_tile *tile, int64_t i,
                                    distances apart, int count, double *sum, int64_t room) {
    _Alignas(64) double x[MOST_OPERANDS][ORDER_LINES][DOUBLES];
    const elements of = {.tile = tile, .wide = wide, .lanes = {x[0][0], x[1][0], x[vectors - 1][0]}};
    for (int k = 0; k < vectors; k++)
        for (int n = 0; n < count; n++) {
            const real *from = tile->operand[k] + i;
            from += n % 2 * apart.one + n / 2 % 2 * apart.two + n / 4 * apart.four;
            store_doubles(x[k][n], load_as_doubles(from));
        }
    sum_some_lanes(&of, sums, 0, (distances){DOUBLES, 2 * DOUBLES, 4 * DOUBLES}, count, DOUBLES, sum, room);
}
#endif

ALWAYS_INLINE void sum_block(vector_terms *terms, vector_wide_terms *wide, int vectors, int sums, bool has_own,
                             const vector_tile *tile, int64_t i, distances apart, int count, int lanes, double *sum,
                             int64_t room) {
    const elements of = {.tile = tile, .terms = terms, .own = has_own ? OWN_BESIDE : NO_OWN};
#if defined(DOUBLES)
    for (int64_t lane = 0; wide && lane < lanes; lane += DOUBLES)
        sum_double_lanes(wide, vectors, sums, tile, i + lane, apart, count, sum + lane, room);
    if (wide)
        return;
#else
    (void)wide, (void)vectors; /* those of Arm are for whole lines */
#endif
    sum_some_lanes(&of, sums, i, apart, count, lanes, sum, room);
}

/* The lane, or the column of lanes, that has the own score is added up once more, without it. */
ALWAYS_INLINE void leave_own_out(vector_terms *terms, int sums, const vector_tile *tile, int64_t i, distances apart,
                                 int count, double *sum, int64_t room) {
    const elements of = {.tile = tile, .terms = terms, .own = OWN_LEFT_OUT};
    for (int k = 0; k < sums; k++)
        sum[k * room] = sum_of_some(&of, k, i, apart, count);
}

/* The memory of what comes a tile later is on its way meanwhile: hardware does not see so many streams. Behind a buffer
 * nothing comes that is needed, and to fetch it cost cosines of 16-bit numbers half as much again on a Neoverse N1,
 * where the stack lay badly. */
ALWAYS_INLINE void prefetch_next(int vectors, const vector_tile *tile, int64_t element, int64_t count) {
    for (int k = 0; tile->is_followed && k < vectors; k++)
        prefetch(tile->operand[k], sizeof(real), element, count, false);
    for (int k = 0; CAN_PREFETCH && tile->has_source && k < vectors; k++)
        prefetch(tile->source[k], SOURCE_SIZE, element + tile->beyond, count, false);
}

/* The lanes of 2, 4, 6 or 8 lines from element `first` on. */
ALWAYS_INLINE void sum_lines(vector_terms *terms, vector_wide_terms *wide, int vectors, int sums, bool has_own,
                             const vector_tile *tile, int64_t first, int lines, int lanes, wide_lane_sums sum) {
    for (int64_t lane = 0; lane < ORDER_LANES; lane += lanes) {
        prefetch_next(vectors, tile, first + lines * lane, (int64_t)lines * lanes);
        sum_block(terms, wide, vectors, sums, has_own, tile, first + lane, lines_apart, lines, lanes, sum[0] + lane,
                  ORDER_LANES);
    }
    const int64_t own = tile->own - first, lane = own % ORDER_LANES;
    if (has_own && own >= 0 && own < lines * ORDER_LANES)
        leave_own_out(terms, sums, tile, first + lane, lines_apart, lines, sum[0] + lane, ORDER_LANES);
}

/* A tile that is one line, without room for its terms: adding by halves comes to columns of as many lanes as a block
 * has. */
ALWAYS_INLINE void sum_line(vector_terms *terms, vector_wide_terms *wide, int vectors, int sums, bool has_own,
                            int lanes, const vector_tile *tile, double *sum) {
    double column[VECTOR_MOST_SUMS][ORDER_COLUMNS];
    for (int64_t i = 0; i < ORDER_COLUMNS; i += lanes) {
        prefetch_next(vectors, tile, 8 * i, 8 * lanes);
        sum_block(terms, wide, vectors, sums, has_own, tile, i, halves_apart, 8, lanes, column[0] + i, ORDER_COLUMNS);
    }
    const int64_t own = tile->own % ORDER_COLUMNS;
    if (has_own && tile->own >= 0 && tile->own < ORDER_LANES)
        leave_own_out(terms, sums, tile, own, halves_apart, 8, column[0] + own, ORDER_COLUMNS);
    for (int k = 0; k < sums; k++)
        sum[k] = order_columns(column[k]) + 0;
}

/* Terms of the elements from `first` on, which are less than two lines, those of each sum side by side. */
#define PAIR (2 * ORDER_LANES)
ALWAYS_INLINE void store_terms(vector_terms *terms, int sums, bool has_own, const vector_tile *tile, int64_t first,
                               double *term) {
    const int64_t count = tile->count - first, own = tile->own - first;
    const elements of = {.tile = tile, .terms = terms, .own = has_own ? OWN_BESIDE : NO_OWN};
    const elements without_own = {.tile = tile, .terms = terms, .own = OWN_LEFT_OUT};
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        term[i] = term_at(&of, 0, first + i, NULL);
        if (sums > 1)
            term[PAIR + i] = term_at(&of, 1, first + i, NULL);
        if (sums > 2)
            term[2 * PAIR + i] = term_at(&of, 2, first + i, NULL);
    }
    for (int k = 0; has_own && own >= 0 && own < count && k < sums; k++)
        term[k * PAIR + own] = term_at(&without_own, k, tile->own, NULL);
}

/* Lanes of two halves of a tile. */
ALWAYS_INLINE double load_halves(const void *halves, int lane) {
    const double *sum = halves;
    return sum[lane] + sum[lane + (int)(sizeof(wide_lane_sums) / sizeof(double))];
}

/* Tiles of some whole pairs of lines: terms stay in registers until four are added up. Those of the elements behind
 * them, which are less than a pair, are in `rest`, and +0 behind these. Other terms that are missing are not added: as
 * in order_wide_lines() one +0 at the end is as good, and where none is missing, -0 leaves a sum as it is. */
ALWAYS_INLINE void sum_pairs(vector_terms *terms, vector_wide_terms *wide, int vectors, int sums, bool has_own,
                             int lanes, const vector_tile *tile, const double *rest, double *sum) {
    _Alignas(64) wide_lane_sums half[2];
    const bool has_second = tile->count > ORDER_TILE / 2;
    for (int h = 0; h < 1 + has_second; h++) {
        const int64_t first = h * ORDER_TILE / 2, left = tile->count - first;
        if (left >= ORDER_TILE / 2) {
            sum_lines(terms, wide, vectors, sums, has_own, tile, first, 4, lanes, half[h]);
            continue;
        }
        if (left >= PAIR)
            sum_lines(terms, wide, vectors, sums, has_own, tile, first, 2, LANES_A_BLOCK, half[h]);
        for (int k = 0; k < sums && left != PAIR; k++) {
            double *own = half[h][k];
            const double *last = rest + k * PAIR;
            if (left > PAIR)
                ORDER_EACH_LANE(own[lane] = own[lane] + (last[lane] + last[lane + ORDER_LANES]))
            else
                ORDER_EACH_LANE(own[lane] = last[lane] + last[lane + ORDER_LANES])
        }
    }
    const double missing = tile->count < ORDER_TILE ? 0 : -0.0;
    for (int k = 0; k < sums; k++)
        sum[k] = (has_second ? order_lanes_of(load_halves, half[0][k]) : order_lanes_of(order_load_wide, half[0][k])) +
                 missing;
}

/* With AVX-512 all lines of a tile of six or eight at once: there are registers for their elements, and one array of
 * lanes instead of two waits for the end. Returns whether it is such a tile. */
ALWAYS_INLINE bool sum_all_lines(vector_terms *terms, vector_wide_terms *wide, int vectors, int sums, bool has_own,
                                 int lanes, const vector_tile *tile, double *sum) {
    _Alignas(64) wide_lane_sums all;
    if (!HAS_AVX512 || !wide || (tile->count != ORDER_TILE && tile->count != 6 * ORDER_LANES))
        return false;
    if (tile->count == ORDER_TILE)
        sum_lines(terms, wide, vectors, sums, has_own, tile, 0, ORDER_LINES, lanes, all);
    else
        sum_lines(terms, wide, vectors, sums, has_own, tile, 0, 6, lanes, all);
    for (int k = 0; k < sums; k++)
        sum[k] = order_lanes_of(order_load_wide, all[k]) + (tile->count < ORDER_TILE ? 0 : -0.0); /* as above */
    return true;
}

/* Whether the compiler knows that the last sum is 0. */
ALWAYS_INLINE bool lacks_last(vector_terms *terms, int sums, const vector_tile *tile) {
    const real any = (real)tile->count;
    const double last = term_of(terms, sums - 1, any, any, any, tile->parameter, NULL);
    return __builtin_constant_p(last) && last == 0;
}

/* Terms beyond the end are +0. */
ALWAYS_INLINE void sum_terms(vector_terms *terms, vector_wide_terms *wide, int vectors, int sums, bool has_own,
                             int lanes, const vector_tile *tile, double *sum) {
    _Alignas(64) double term[VECTOR_MOST_SUMS * PAIR];
    const int64_t whole = tile->count / PAIR * PAIR, count = tile->count - whole;
    const bool is_few = count <= ORDER_LANES / 2 && !whole;
    if (sum_whole_lines(wide, vectors, sums, tile, sum) ||
        sum_all_lines(terms, wide, vectors, sums, has_own, lanes, tile, sum))
        return;
    if (tile->count == ORDER_LANES) {
        sum_line(terms, wide, vectors, sums, has_own, lanes, tile, sum);
        return;
    }
    int64_t places = is_few ? 16 : whole ? PAIR : ORDER_LANES;
    while (places < count)
        places *= 2;
    if (count > 0)
        store_terms(terms, sums, has_own, tile, whole, term);
    for (int k = 0; k < sums && (count > 0 || !whole); k++)
        memset(term + k * PAIR + count, 0, (size_t)(places - count) * sizeof *term);
    if (whole) {
        sum_pairs(terms, wide, vectors, sums, has_own, lanes, tile, term, sum);
        return;
    }
    for (int k = 0; k < sums; k++)
        sum[k] = is_few ? order_wide_few(term + k * PAIR, (int)places)
                        : order_wide_lines(term + k * PAIR, places == PAIR ? 2 : 1);
}

/* On to the tile's next row. */
ALWAYS_INLINE void go_to_next_row(vector_tile *tile) {
    for (int k = 0; k < MOST_OPERANDS; k++)
        tile->operand[k] += tile->count;
    for (int k = 0; k < MOST_OPERANDS && tile->has_source && tile->source[k]; k++)
        tile->source[k] += SOURCE_SIZE * tile->count;
}

ALWAYS_INLINE void sum_rows(vector_terms *terms, vector_wide_terms *wide, int vectors, int sums, bool has_own,
                            int lanes, vector_usual *usual, const vector_tile *given, tile_sums *sum) {
    vector_tile tile = *given;
    set_parameters(usual, has_own, tile.parameter);
    /* Of a loss with labels the last sum is for the own slope. */
    const bool is_less = (has_own && !tile.has_slopes) || (usual && sums > 2 && lacks_last(terms, sums, &tile));
    for (int64_t row = 0; row < tile.rows; row++, go_to_next_row(&tile)) {
        for (int k = sums - is_less; k < VECTOR_MOST_SUMS; k++)
            sum[row][k] = 0;
        if (is_less)
            sum_terms(terms, wide, vectors, sums - 1, has_own, lanes, &tile, sum[row]);
        else
            sum_terms(terms, wide, vectors, sums, has_own, lanes, &tile, sum[row]);
    }
}

/* So many lines of slopes are computed side by side. A Neoverse N1 does not look far enough ahead to find, behind one
 * that takes many operations, another to do meanwhile: slopes of tversky_with_logits took 3.9 ns an element instead of
 * 2.8. */
#if defined(__aarch64__)
#define LINES_OF_SLOPES_LONG 4
#else
#define LINES_OF_SLOPES_LONG 1
#endif
#define LINES_OF_SLOPES_SHORT      1
#define LINES_OF_SLOPES_PRODUCTS   1
#define LINES_OF_SLOPES_SOFTMAX    LINES_OF_SLOPES_LONG
#define LINES_OF_SLOPES_CARRIED    1
#define LINES_OF_SLOPES_LABELLED   1
#define LINES_OF_SLOPES_MULTILABEL 1

/* That of the own score is somebody else's. */
ALWAYS_INLINE real slope_at(vector_slope *slope, bool has_own, int which, const vector_tile *tile, const double *factor,
                            int64_t i) {
    const real *a = tile->operand[0], *b = tile->operand[1], *c = tile->operand[2];
    return slope_of(slope, which, a[i], has_own ? tile->own_score : b[i], c[i], tile->parameter, factor);
}

ALWAYS_INLINE void write_row_slopes(vector_slope *slope, bool has_own, int lines, int which, const vector_tile *tile,
                                    const double *factors, real *gradient) {
    const int64_t line = ORDER_LANES;
    const double factor[VECTOR_MOST_FACTORS] = {factors[0], factors[1], factors[2]};
    int64_t done = 0;
    for (; lines == 4 && done + 4 * line <= tile->count; done += 4 * line) {
#pragma omp simd
        for (int64_t i = done; i < done + line; i++) {
            const real first = slope_at(slope, has_own, which, tile, factor, i);
            const real second = slope_at(slope, has_own, which, tile, factor, i + line);
            const real third = slope_at(slope, has_own, which, tile, factor, i + 2 * line);
            const real fourth = slope_at(slope, has_own, which, tile, factor, i + 3 * line);
            gradient[i] = first;
            gradient[i + line] = second;
            gradient[i + 2 * line] = third;
            gradient[i + 3 * line] = fourth;
        }
    }
#pragma omp simd
    for (int64_t i = done; i < tile->count; i++)
        gradient[i] = slope_at(slope, has_own, which, tile, factor, i);
}

ALWAYS_INLINE void write_slopes(vector_slope *slope, vector_usual *usual, bool has_own, int lines, int which,
                                const vector_tile *given, const vector_slopes *slopes, real *gradient) {
    vector_tile tile = *given;
    set_parameters(usual, has_own, tile.parameter);
    for (int64_t row = 0; row < tile.rows; row++, go_to_next_row(&tile))
        write_row_slopes(slope, has_own, lines, which, &tile, slopes[row].factor, gradient + row * tile.count);
}

#define GRADIENT(name, has_own, lines, which)                                                                          \
    static void name##_gradient_##which(const vector_tile *tile, const vector_slopes *slopes, real *gradient) {        \
        if (is_usual(name##_usual, tile->parameter))                                                                   \
            write_slopes(name##_slope_of, name##_usual, has_own, lines, which, tile, slopes, gradient);                \
        else                                                                                                           \
            write_slopes(name##_slope_of, NULL, has_own, lines, which, tile, slopes, gradient);                        \
    }
#define GRADIENTS_1(name, has_own, lines) GRADIENT(name, has_own, lines, 0)
#define GRADIENTS_2(name, has_own, lines) GRADIENTS_1(name, has_own, lines) GRADIENT(name, has_own, lines, 1)
#define GRADIENTS_3(name, has_own, lines) GRADIENTS_2(name, has_own, lines) GRADIENT(name, has_own, lines, 2)
#define EACH_1(name)                      name##_gradient_0
#define EACH_2(name)                      EACH_1(name), name##_gradient_1
#define EACH_3(name)                      EACH_2(name), name##_gradient_2

/* Terms on top of others. Those that are exact products of floats are added by one operation where there is one. */
ALWAYS_INLINE void add_terms(const double *before, double *term) {
    for (int k = 0; before && k < VECTOR_MOST_SUMS; k++)
        term[k] = before[k] + term[k];
}

ALWAYS_INLINE void add_products(const double *before, const double *left, const double *right, double *term) {
    for (int k = 0; k < VECTOR_MOST_SUMS; k++) {
        const double product = left[k] * right[k];
#if !defined(ONEPASS_REAL_F64) && (defined(__aarch64__) || defined(__FMA__))
        term[k] = before ? __builtin_fma(left[k], right[k], before[k]) : product;
#else
        term[k] = before ? before[k] + product : product;
#endif
    }
}

#define ADD_TERMS_PRODUCTS(name, x, parameter, before, term)                                                           \
    double left[VECTOR_MOST_SUMS] = {0}, right[VECTOR_MOST_SUMS] = {0};                                                \
    (void)(parameter);                                                                                                 \
    name##_factors(x, left, right);                                                                                    \
    add_products(before, left, right, term)
#define ADD_TERMS_SHORT(name, x, parameter, before, term)                                                              \
    VECTOR_TERMS_SHORT(name, x, parameter, term);                                                                      \
    add_terms(before, term)
#define ADD_TERMS_CARRIED(name, x, parameter, before, term)                                                            \
    VECTOR_TERMS_CARRIED(name, x, parameter, term);                                                                    \
    add_terms(before, term)
#define ADD_TERMS_LONG       ADD_TERMS_SHORT
#define ADD_TERMS_SOFTMAX    ADD_TERMS_SHORT
#define ADD_TERMS_LABELLED   ADD_TERMS_SHORT
#define ADD_TERMS_MULTILABEL ADD_TERMS_SHORT

/* What takes long of a loss that does is computed once for sums and slopes on Arm, if both are wanted, and kept between
 * them: four lines at a time, as slopes are. Value and gradient of tversky_with_logits took a Neoverse N1 6.0 ns an
 * element, and take 5.05, or 4.6 in its second-level cache. */
ALWAYS_INLINE void keep_elements(real (*kept_of)(real), const real *x, int64_t count, real *kept) {
    const int64_t line = ORDER_LANES;
    int64_t done = 0;
    for (; done + 4 * line <= count; done += 4 * line) {
#pragma omp simd
        for (int64_t i = done; i < done + line; i++) {
            const real first = kept_of(x[i]), second = kept_of(x[i + line]);
            const real third = kept_of(x[i + 2 * line]), fourth = kept_of(x[i + 3 * line]);
            kept[i] = first;
            kept[i + line] = second;
            kept[i + 2 * line] = third;
            kept[i + 3 * line] = fourth;
        }
    }
#pragma omp simd
    for (int64_t i = done; i < count; i++)
        kept[i] = kept_of(x[i]);
}

#define KEPT_FUNCTIONS(name, vectors, sums)                                                                            \
    static void name##_keep(const vector_tile *tile, real *kept) {                                                     \
        keep_elements(name##_kept, tile->operand[0], tile->rows * tile->count, kept);                                  \
    }                                                                                                                  \
    VECTOR_FUNCTION name##_kept_terms_of(const real *x, const double *parameter, const double *before, double *term) { \
        name##_kept_terms(x, parameter, term);                                                                         \
        add_terms(before, term);                                                                                       \
    }                                                                                                                  \
    static __attribute__((noinline)) void name##_kept_sums(const vector_tile *tile, tile_sums *sum) {                  \
        sum_rows(name##_kept_terms_of, NULL, vectors, sums, false, LANES_OF_LONG, NULL, tile, sum);                    \
    }

/* What a loss has where numbers are kept, or else. */
#if HAS_KEPT_NUMBERS
#define KEPT_LONG(kept, otherwise) kept
#else
#define KEPT_LONG(kept, otherwise) otherwise
#endif
#define KEPT_SHORT(kept, otherwise) otherwise
#define KEPT_PRODUCTS               KEPT_SHORT
#define KEPT_SOFTMAX                KEPT_SHORT
#define KEPT_CARRIED                KEPT_SHORT
#define KEPT_LABELLED               KEPT_SHORT
#define KEPT_MULTILABEL             KEPT_SHORT

/* Elements as they are given to a loss's functions. */
#define GIVEN_SHORT(given, x) const vector_element given[MOST_OPERANDS] = {(x)[0], (x)[1], (x)[2]}
#define GIVEN_LONG(given, x)  const real *given = x
#define GIVEN_PRODUCTS        GIVEN_SHORT
#define GIVEN_SOFTMAX         GIVEN_LONG
#define GIVEN_CARRIED         GIVEN_LONG
#define GIVEN_LABELLED        GIVEN_LONG
#define GIVEN_MULTILABEL      GIVEN_LONG

/* The terms of elements that are double already. */
#define WIDE_FUNCTION(name, length)                                                                                    \
    VECTOR_FUNCTION name##_wide_terms(const double *x, const double *parameter, const double *before, double *term) {  \
        ADD_TERMS_##length(name, x, parameter, before, term);                                                          \
    }

/* What a loss has where elements are widened before, or else. */
#if HAS_WIDE_ELEMENTS
#define WIDE_SHORT(wide, otherwise) wide
#else
#define WIDE_SHORT(wide, otherwise) otherwise
#endif
#define WIDE_LONG(wide, otherwise) otherwise
#define WIDE_PRODUCTS              WIDE_SHORT
#define WIDE_SOFTMAX               WIDE_LONG
#define WIDE_CARRIED               WIDE_LONG
#define WIDE_LABELLED              WIDE_LONG
#define WIDE_MULTILABEL            WIDE_LONG

#define SUMMED(name, vectors, sums, length)                                                                            \
    name##_terms_of, WIDE_##length(name##_wide_terms, NULL), vectors, sums, HAS_LABELS_##length, LANES_OF_##length

/* src/descriptor.c refers to the table. Nobody calls the function for sums of a loss that has none. */
#define VECTOR_LOSS(name, operands, vector_count, sum_count, length, ...)                                              \
    VECTOR_FUNCTION name##_terms_of(const real *x, const double *parameter, const double *before, double *term) {      \
        GIVEN_##length(given, x);                                                                                      \
        ADD_TERMS_##length(name, given, parameter, before, term);                                                      \
    }                                                                                                                  \
    WIDE_##length(WIDE_FUNCTION(name, length), ) KEPT_##length(KEPT_FUNCTIONS(name, vector_count, sum_count), )        \
        VECTOR_SLOPE name##_slope_of(int which, const real *x, const double *parameter, const double *factor) {        \
        GIVEN_##length(given, x);                                                                                      \
        return KEPT_##length(name##_kept_slope, name##_slope)(which, given, parameter, factor);                        \
    }                                                                                                                  \
    static __attribute__((noinline)) void name##_unusual_sums(const vector_tile *tile, tile_sums *sum) {               \
        sum_rows(SUMMED(name, vector_count, sum_count, length), NULL, tile, sum);                                      \
    }                                                                                                                  \
    static __attribute__((noinline)) void name##_usual_sums(const vector_tile *tile, tile_sums *sum) {                 \
        sum_rows(SUMMED(name, vector_count, sum_count, length), name##_usual, tile, sum);                              \
    }                                                                                                                  \
    static void name##_sums(const vector_tile *tile, tile_sums *sum) {                                                 \
        void (*kept_sums)(const vector_tile *, tile_sums *) = KEPT_##length(name##_kept_sums, NULL);                   \
        if (kept_sums && tile->has_slopes)                                                                             \
            kept_sums(tile, sum);                                                                                      \
        else if (is_usual(name##_usual, tile->parameter))                                                              \
            name##_usual_sums(tile, sum);                                                                              \
        else                                                                                                           \
            name##_unusual_sums(tile, sum);                                                                            \
    }                                                                                                                  \
    GRADIENTS_##vector_count(name, HAS_LABELS_##length, LINES_OF_SLOPES_##length)                                      \
        ONEPASS_INTERNAL extern const cpu_vector PASTE(onepass_cpu_##name##_, ONEPASS_VARIANT);                        \
    const cpu_vector PASTE(onepass_cpu_##name##_, ONEPASS_VARIANT) = {                                                 \
        KEPT_##length(name##_keep, NULL), name##_sums, {EACH_##vector_count(name)}};
#include ONEPASS_UNIT_HEADER
