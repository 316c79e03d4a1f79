/*
 * Between rows of few classes without gaps and a group of rows side by side, [class][row]: squares of four rows and
 * four classes are turned in registers. Number by number it took a fifth of the time of rows of 10 classes.
 */
#ifndef ONEPASS_CPU_ROWS_TRANSPOSE_H
#define ONEPASS_CPU_ROWS_TRANSPOSE_H

#include "cpu/rows/aside.h"

/* Vectors of the compiler's own, which every instruction set has something for. */
typedef __attribute__((vector_size(4 * sizeof(real)))) real four;
typedef __attribute__((vector_size(4 * sizeof(real)))) real_bits four_places;

#if defined(__clang__)
#define PICK(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define PICK(a, b, i, j, k, l) __builtin_shuffle(a, b, (four_places){i, j, k, l})
#endif

/* Lines of four numbers, `from_stride` apart, become columns. */
ALWAYS_INLINE void turn_square(const real *from, int64_t from_stride, real *to, int64_t to_stride) {
    four a, b, c, d;
    memcpy(&a, from, sizeof a);
    memcpy(&b, from + from_stride, sizeof b);
    memcpy(&c, from + 2 * from_stride, sizeof c);
    memcpy(&d, from + 3 * from_stride, sizeof d);
    const four ab_low = PICK(a, b, 0, 4, 1, 5), ab_high = PICK(a, b, 2, 6, 3, 7);
    const four cd_low = PICK(c, d, 0, 4, 1, 5), cd_high = PICK(c, d, 2, 6, 3, 7);
    const four turned[4] = {PICK(ab_low, cd_low, 0, 1, 4, 5), PICK(ab_low, cd_low, 2, 3, 6, 7),
                            PICK(ab_high, cd_high, 0, 1, 4, 5), PICK(ab_high, cd_high, 2, 3, 6, 7)};
    for (int i = 0; i < 4; i++)
        memcpy(to + i * to_stride, &turned[i], sizeof turned[i]);
}

/* The first class of the next square: the last one reaches back to end with the last class. */
ALWAYS_INLINE int64_t next_square(int64_t class, int64_t classes) {
    return class + 4 < classes && class + 8 > classes ? classes - 4 : class + 4;
}

#define ROWS_A_SQUARE 4

/* Those of `count` rows that squares have. */
ALWAYS_INLINE int64_t rows_of_squares(int64_t classes, int64_t count) {
    return classes < 4 ? 0 : count / ROWS_A_SQUARE * ROWS_A_SQUARE;
}

#if ONEPASS_HAS_REALS && !defined(__aarch64__)

/* With AVX-512 four squares at once, below each other: with one at a time values of 10 classes took a tenth longer. */
#define ROWS_OF_FOUR ((int64_t)16)

typedef struct four_squares {
    reals line[4]; /* of each square */
} four_squares;

ALWAYS_INLINE four_squares turned_squares(four_squares of) {
    const __m512d ab_low = _mm512_castps_pd(_mm512_unpacklo_ps(of.line[0], of.line[1]));
    const __m512d ab_high = _mm512_castps_pd(_mm512_unpackhi_ps(of.line[0], of.line[1]));
    const __m512d cd_low = _mm512_castps_pd(_mm512_unpacklo_ps(of.line[2], of.line[3]));
    const __m512d cd_high = _mm512_castps_pd(_mm512_unpackhi_ps(of.line[2], of.line[3]));
    return (four_squares){{_mm512_castpd_ps(_mm512_unpacklo_pd(ab_low, cd_low)),
                           _mm512_castpd_ps(_mm512_unpackhi_pd(ab_low, cd_low)),
                           _mm512_castpd_ps(_mm512_unpacklo_pd(ab_high, cd_high)),
                           _mm512_castpd_ps(_mm512_unpackhi_pd(ab_high, cd_high))}};
}

ALWAYS_INLINE void turn_four_squares(const real *rows, int64_t classes, real *z) {
    four_squares of;
    for (int64_t i = 0; i < 4; i++) {
        of.line[i] = _mm512_castps128_ps512(_mm_loadu_ps(rows + i * classes));
        of.line[i] = _mm512_insertf32x4(of.line[i], _mm_loadu_ps(rows + (i + 4) * classes), 1);
        of.line[i] = _mm512_insertf32x4(of.line[i], _mm_loadu_ps(rows + (i + 8) * classes), 2);
        of.line[i] = _mm512_insertf32x4(of.line[i], _mm_loadu_ps(rows + (i + 12) * classes), 3);
    }
    of = turned_squares(of);
    for (int64_t i = 0; i < 4; i++)
        store_reals(z + i * ROWS_ASIDE, of.line[i]);
}

ALWAYS_INLINE void turn_four_back(const real *z, int64_t classes, real *rows) {
    four_squares of;
    for (int64_t i = 0; i < 4; i++)
        of.line[i] = load_reals(z + i * ROWS_ASIDE);
    of = turned_squares(of);
    for (int64_t i = 0; i < 4; i++) {
        _mm_storeu_ps(rows + i * classes, _mm512_castps512_ps128(of.line[i]));
        _mm_storeu_ps(rows + (i + 4) * classes, _mm512_extractf32x4_ps(of.line[i], 1));
        _mm_storeu_ps(rows + (i + 8) * classes, _mm512_extractf32x4_ps(of.line[i], 2));
        _mm_storeu_ps(rows + (i + 12) * classes, _mm512_extractf32x4_ps(of.line[i], 3));
    }
}

#else

#define ROWS_OF_FOUR INT64_MAX

ALWAYS_INLINE void turn_four_squares(const real *rows, int64_t classes, real *z) {
    (void)rows, (void)classes, (void)z;
}

ALWAYS_INLINE void turn_four_back(const real *z, int64_t classes, real *rows) {
    (void)z, (void)classes, (void)rows;
}

#endif

/* Some rows of a group, one behind the other, `count` of them. */
static void turn_rows_aside(const real *rows, int64_t classes, int64_t count, real *z) {
    const int64_t turned = rows_of_squares(classes, count);
    for (int64_t class = 0; class < classes && turned > 0; class = next_square(class, classes)) {
        int64_t r = 0;
        for (; turned - r >= ROWS_OF_FOUR; r += ROWS_OF_FOUR)
            turn_four_squares(rows + r * classes + class, classes, z + class * ROWS_ASIDE + r);
        for (; r < turned; r += ROWS_A_SQUARE)
            turn_square(rows + r * classes + class, classes, z + class * ROWS_ASIDE + r, ROWS_ASIDE);
    }
    for (int64_t r = turned; r < count; r++)
        for (int64_t class = 0; class < classes; class ++)
            z[class * ROWS_ASIDE + r] = rows[r * classes + class];
}

static void turn_rows_back(const real *z, int64_t classes, int64_t count, real *rows) {
    const int64_t turned = rows_of_squares(classes, count);
    int64_t r = 0;
    for (; turned - r >= ROWS_OF_FOUR; r += ROWS_OF_FOUR)
        for (int64_t class = 0; class < classes; class = next_square(class, classes))
            turn_four_back(z + class * ROWS_ASIDE + r, classes, rows + r * classes + class);
    for (; r < turned; r += ROWS_A_SQUARE)
        for (int64_t class = 0; class < classes; class = next_square(class, classes))
            turn_square(z + class * ROWS_ASIDE + r, ROWS_ASIDE, rows + r * classes + class, classes);
    for (; r < count; r++)
        for (int64_t class = 0; class < classes; class ++)
            rows[r * classes + class] = z[class * ROWS_ASIDE + r];
}

#if defined(__aarch64__) && !defined(ONEPASS_REAL_F64)

/* ----------------------------------------------- on Arm, and seen meanwhile -- */

#define TURNS_GROUPS true
#define TURNS_AHEAD  false

/* Two classes of four rows, which are given as two numbers of the first two rows, row by row, and two of the others. */
ALWAYS_INLINE rows_range keep_two(real *to, reals ab, reals cd) {
    const float64x2_t first = vreinterpretq_f64_f32(ab), second = vreinterpretq_f64_f32(cd);
    const reals x = vreinterpretq_f32_f64(vzip1q_f64(first, second));
    const reals y = vreinterpretq_f32_f64(vzip2q_f64(first, second));
    store_reals(to, x);
    store_reals(to + ROWS_ASIDE, y);
    return (rows_range){vmaxq_f32(x, y), vminq_f32(x, y)};
}

ALWAYS_INLINE rows_range turn_four(const real *from, int64_t classes, real *to) {
    const reals a = load_reals(from), b = load_reals(from + classes);
    const reals c = load_reals(from + 2 * classes), d = load_reals(from + 3 * classes);
    const rows_range low = keep_two(to, vzip1q_f32(a, b), vzip1q_f32(c, d));
    return joined_range(low, keep_two(to + 2 * ROWS_ASIDE, vzip2q_f32(a, b), vzip2q_f32(c, d)));
}

ALWAYS_INLINE reals load_two(const real *from) {
    return vcombine_f32(vld1_f32(from), vdup_n_f32(0));
}

ALWAYS_INLINE rows_range turn_two(const real *from, int64_t classes, real *to) {
    const reals a = load_two(from), b = load_two(from + classes);
    const reals c = load_two(from + 2 * classes), d = load_two(from + 3 * classes);
    return keep_two(to, vzip1q_f32(a, b), vzip1q_f32(c, d));
}

/* So many bytes ahead, and at least the next group: since much is done between two groups, hardware does not bring them
 * in time. */
#define TURNED_AHEAD ((int64_t)6400)

/* Four rows of four classes or more. */
ALWAYS_INLINE rows_range turn_rows(const real *from, int64_t classes, real *to) {
    const int64_t size = sizeof(real), group = ROWS_ASIDE * classes * size;
    const uintptr_t ahead = (uintptr_t)from + (uintptr_t)(group > TURNED_AHEAD ? group : TURNED_AHEAD);
    for (int64_t byte = 0; byte < REALS * classes * size; byte += CACHE_LINE)
        __builtin_prefetch((const void *)(ahead + (uintptr_t)byte));
    rows_range range = turn_four(from, classes, to);
    for (int64_t class = next_square(0, classes); class < classes; class = next_square(class, classes)) {
        if (class + 6 == classes) {
            range = joined_range(range, turn_four(from + class, classes, to + class * ROWS_ASIDE));
            class += 4;
        }
        if (class + 2 == classes)
            return joined_range(range, turn_two(from + class, classes, to + class * ROWS_ASIDE));
        range = joined_range(range, turn_four(from + class, classes, to + class * ROWS_ASIDE));
    }
    return range;
}

/* A whole group, whose largest logits and shifts are known then. */
static __attribute__((noinline)) void turn_group(const softmax *given, const real *rows, group *group) {
    const softmax softmax = *given;
    reals_bits calm = each_bits(-1);
    for (int64_t r = 0; r < ROWS_ASIDE; r += REALS) {
        const rows_range range = turn_rows(rows + r * group->classes, group->classes, group->z + r);
        calm &= shift_calm_rows(&softmax, range, r, group);
    }
    know_calm(calm, group);
}

#else

/* With AVX-512 a group is turned before the one before it is computed, and its slopes are turned back at once: the
 * memory is waited for meanwhile, two groups are all that a first-level cache has to keep, and vectors are not loaded
 * right after their parts were stored. Values of rows of 10 classes took a seventh longer on a Xeon when a block of
 * groups was turned at a time, steps a tenth. */
#if ONEPASS_HAS_REALS && !defined(__aarch64__)
#define TURNS_GROUPS true
#define TURNS_AHEAD  true
#else
#define TURNS_GROUPS false
#define TURNS_AHEAD  false
#endif

static void turn_group(const softmax *softmax, const real *rows, group *group) {
    (void)softmax, (void)rows, (void)group;
}

#endif

#endif
