/*
 * What is done to a group of rows side by side: the loops over its rows are vectors, and the order of summation is
 * that of every row by itself.
 */
#ifndef ONEPASS_CPU_ROWS_ASIDE_H
#define ONEPASS_CPU_ROWS_ASIDE_H

#include "descriptor.h"

#include "cpu/rows/aside_logits.h"

/* -------------------------------------------------------------------- sums -- */

/* Step 3 of the order: what a lane adds up, for rows of so few classes that a line at least is missing. Its +0 is
 * added, since it makes a sum of -0. */
typedef real aside_lanes[ORDER_LANES][ROWS_ASIDE];
typedef real aside_term(const group *group, const real *u, int64_t class, int64_t r);

ALWAYS_INLINE real stored_aside(const group *group, const real *u, int64_t class, int64_t r) {
    (void)u;
    return group->z[class * ROWS_ASIDE + r];
}

/* Of logits that are -inf, and weights that are 0, the product is 0; a row without a largest has no use for it. */
ALWAYS_INLINE real weighted_aside(const group *group, const real *u, int64_t class, int64_t r) {
    return choose(u[class] == 0, 0, u[class] * (group->z[class * ROWS_ASIDE + r] - group->largest[r]));
}

ALWAYS_INLINE void sum_lines_aside(aside_term *term, const group *group, const real *u, aside_lanes lanes) {
    real part[ORDER_LINES][ROWS_ASIDE];
    for (int64_t lane = 0; lane < ORDER_LANES && lane < group->classes; lane++) {
        real *sum = lanes[lane];
        if (group->classes <= lane + ORDER_LANES && group->classes <= 2 * ORDER_LANES) {
            EACH_ROW_ASIDE(sum[r] = term(group, u, lane, r) + 0)
            continue;
        }
        if (group->classes <= 2 * ORDER_LANES) { /* lines of zeros change nothing but -0 */
            EACH_ROW_ASIDE(sum[r] = (term(group, u, lane, r) + term(group, u, ORDER_LANES + lane, r)) + 0)
            continue;
        }
        for (int64_t line = 0; line < ORDER_LINES; line++) {
            const int64_t class = line * ORDER_LANES + lane;
            if (class < group->classes)
                EACH_ROW_ASIDE(part[line][r] = term(group, u, class, r))
            else
                EACH_ROW_ASIDE(part[line][r] = 0)
        }
        EACH_ROW_ASIDE(sum[r] = ((part[0][r] + part[1][r]) + (part[2][r] + part[3][r])) +
                                ((part[4][r] + part[5][r]) + (part[6][r] + part[7][r])))
    }
}

/* Step 4, the lanes that there are, by halves: a lane without a partner stands alone. Up to 16 of them are added in
 * registers, for which their number must be known to the compiler; lanes by halves with sums in memory took three times
 * as long on a Neoverse N1. `apart` is the distance of lanes, in numbers. */
#if ONEPASS_HAS_REALS && defined(DOUBLES)
typedef doubles aside_sums;
#define ROWS_OF_SUMS     DOUBLES
#define LANE_ASIDE(lane) load_as_doubles(from + (lane)*apart + r)
#define KEEP_SUMS        store_doubles
#else
typedef double aside_sums;
#define ROWS_OF_SUMS     1
#define LANE_ASIDE(lane) ((double)from[(lane)*apart + r])
#define KEEP_SUMS(to, x) (void)(*(to) = (x))
#endif
ALWAYS_INLINE aside_sums two_aside(const real *from, int64_t apart, int64_t lanes, int64_t r, int64_t lane) {
    return lane + 8 < lanes ? LANE_ASIDE(lane) + LANE_ASIDE(lane + 8) : LANE_ASIDE(lane);
}

ALWAYS_INLINE aside_sums four_aside(const real *from, int64_t apart, int64_t lanes, int64_t r, int64_t lane) {
    const aside_sums own = two_aside(from, apart, lanes, r, lane);
    return lane + 4 < lanes ? own + two_aside(from, apart, lanes, r, lane + 4) : own;
}

ALWAYS_INLINE aside_sums eight_aside(const real *from, int64_t apart, int64_t lanes, int64_t r, int64_t lane) {
    const aside_sums own = four_aside(from, apart, lanes, r, lane);
    return lane + 2 < lanes ? own + four_aside(from, apart, lanes, r, lane + 2) : own;
}

ALWAYS_INLINE void some_lanes_aside(const real *from, int64_t apart, int64_t lanes, double *sum) {
#pragma omp simd
    for (int64_t r = 0; r < ROWS_ASIDE; r += ROWS_OF_SUMS) {
        const aside_sums own = eight_aside(from, apart, lanes, r, 0);
        KEEP_SUMS(sum + r, lanes > 1 ? own + eight_aside(from, apart, lanes, r, 1) : own);
    }
}

static void few_lanes_aside(const real *from, int64_t apart, int64_t lanes, double *sum) {
    switch (lanes) {
#define FEW_LANES(count)                                                                                               \
    case count:                                                                                                        \
        some_lanes_aside(from, apart, count, sum);                                                                     \
        break;
        FEW_LANES(1)
        FEW_LANES(2)
        FEW_LANES(3)
        FEW_LANES(4)
        FEW_LANES(5)
        FEW_LANES(6)
        FEW_LANES(7)
        FEW_LANES(8)
        FEW_LANES(9)
        FEW_LANES(10)
        FEW_LANES(11)
        FEW_LANES(12)
        FEW_LANES(13)
        FEW_LANES(14)
        FEW_LANES(15)
    default:
        some_lanes_aside(from, apart, 16, sum);
#undef FEW_LANES
    }
}

/* Of more than 16, first up to 16 that are a multiple of so many apart: the same tree. */
#define MOST_APART (ORDER_LANES / 16)

static void sum_lanes_aside(const real *lane, int64_t lanes, double *sum) {
    _Alignas(64) double part[MOST_APART][ROWS_ASIDE];
    int64_t apart = 1;
    if (lanes <= 16) {
        few_lanes_aside(lane, ROWS_ASIDE, lanes, sum);
        return;
    }
    while (lanes > 16 * apart)
        apart *= 2;
    for (int64_t l = 0; l < apart; l++)
        few_lanes_aside(lane + l * ROWS_ASIDE, apart * ROWS_ASIDE, (lanes - l + apart - 1) / apart, part[l]);
    for (; apart > 2; apart /= 2)
        for (int64_t l = 0; l < apart / 2; l++)
            EACH_ROW_ASIDE(part[l][r] = part[l][r] + part[l + apart / 2][r])
    EACH_ROW_ASIDE(sum[r] = part[0][r] + part[1][r])
}

/* Exponentials are never -0: where they are lanes as they lie, nothing is to be added. Lanes take much of a stack,
 * which is to have those of one sum at a time. */
static __attribute__((noinline)) void sum_exponentials_aside(group *group) {
    aside_lanes lanes;
    if (group->classes <= ORDER_LANES) {
        sum_lanes_aside(group->z, group->classes, group->others);
        return;
    }
    sum_lines_aside(stored_aside, group, NULL, lanes);
    sum_lanes_aside(lanes[0], ORDER_LANES, group->others);
}

/* The sum of u (largest - z), and of u. */
static __attribute__((noinline)) void sum_weighted_aside(group *group, const real *u, double weights) {
    aside_lanes lanes;
    double sum[ROWS_ASIDE];
    sum_lines_aside(weighted_aside, group, u, lanes);
    sum_lanes_aside(lanes[0], group->classes < ORDER_LANES ? group->classes : ORDER_LANES, sum);
    for (int r = 0; r < ROWS_ASIDE; r++) {
        const softmax_tile tile = {.weights = weights, .weighted = sum[r], .largest = group->largest[r]};
        group->weights[r] = weights;
        group->weighted[r] = row_part_of_weighted(&tile, group->largest[r]);
    }
}

/* ------------------------------------------------------------------- facts -- */

ALWAYS_INLINE softmax_row state_aside(const group *group, int64_t r) {
    return (softmax_row){(double)group->largest[r], group->others[r], group->own[r], group->lse[r], group->weights[r]};
}

static void set_state(group *group, int r, softmax_row state) {
    group->largest[r] = (real)state.largest;
    group->others[r] = state.others;
    group->own[r] = state.own;
    group->lse[r] = state.lse;
    group->weights[r] = state.weights;
}

static row_facts facts_aside(const group *group, int64_t r) {
    return (row_facts){.row = state_aside(group, r),
                       .weighted = group->weighted[r],
                       .weight = group->class_weight[r],
                       .classes = (double)group->classes};
}

/* The state's logarithm. Loops over rows set the members that they need one by one: of a struct that a function returns
 * gcc 13 makes no vectors, and rows of 10 classes took 1.4 times as long with AVX-512. */
static void finish_sums(const softmax *given, const softmax_scale *given_scale, group *group) {
    const softmax softmax = *given;
    const softmax_scale scale = *given_scale;
#pragma omp simd
    for (int64_t r = 0; r < ROWS_ASIDE; r++) {
        row_facts facts;
        facts.row.largest = (double)group->largest[r];
        facts.row.others = group->others[r];
        facts.row.own = group->own[r];
        facts.row.weights = group->weights[r];
        facts.weighted = group->weighted[r];
        const double above = row_complete(&softmax, &scale, &facts);
        group->lse[r] = facts.row.lse;
        group->weighted_loss[r] = row_weighted(&scale, &facts, above);
    }
}

/* ------------------------------------------------------------------ losses -- */

/* What is the same for all rows. */
typedef struct aside_scale {
    double per_divisor, per_temperature;
} aside_scale;

/* What the state comes to, where row_has_own(). */
static void finish_states(group *group) {
#pragma omp simd
    for (int64_t r = 0; r < ROWS_ASIDE; r++)
        group->nll[r] = wide_log1p_ratio(group->others[r], group->own[r]);
}

/* Shares of the sum, for slopes: it is divided by once. */
static void finish_shares(group *group) {
#pragma omp simd
    for (int64_t r = 0; r < ROWS_ASIDE; r++) {
        const double sum = group->others[r] + group->own[r], per_sum = 1 / sum;
        group->per_sum[r] = per_sum;
        group->own_share[r] = row_over(group->own[r], sum, per_sum);
        group->others_share[r] = row_over(group->others[r], sum, per_sum);
    }
}

/* What a loss makes of a group's rows. */
typedef void aside_function(const double *parameter, bool has_slopes, group *group);

ALWAYS_INLINE void apply_to_rows(row_function *loss, const double *given, bool has_slopes, group *group) {
    double parameter[ONEPASS_MAX_PARAMETERS];
    memcpy(parameter, given, sizeof parameter);
#pragma omp simd
    for (int64_t r = 0; r < ROWS_ASIDE; r++) {
        const double sum = group->others[r] + group->own[r], per_sum = 1 / sum;
        row_sums sums;
        row_slopes slopes;
        sums.nll = group->nll[r];
        sums.lse = group->lse[r];
        sums.own = has_slopes ? group->own_share[r] : row_over(group->own[r], sum, per_sum);
        sums.others = has_slopes ? group->others_share[r] : row_over(group->others[r], sum, per_sum);
        sums.weight = group->class_weight[r];
        sums.weighted = group->weighted_loss[r];
        sums.weights = group->weights[r];
        sums.classes = (double)group->classes;
        loss(&sums, parameter, &slopes);
        group->value[r] = slopes.value * group->weight[r];
        if (has_slopes) {
            group->of_exponentials[r] = slopes.exponentials;
            group->of_weights[r] = slopes.weights;
            group->of_own[r] = slopes.own;
        }
    }
}

/* Of values alone the compiler sees which shares they are made of: those of cross-entropy need none. */
ALWAYS_INLINE void apply_aside(row_function *loss, const double *parameter, bool has_slopes, group *group) {
    if (has_slopes)
        apply_to_rows(loss, parameter, true, group);
    else
        apply_to_rows(loss, parameter, false, group);
}

ALWAYS_INLINE void keep_factors(const aside_scale *scale, const row_slopes *slopes, double per_sum, int64_t r,
                                group *group) {
    const softmax_row state = state_aside(group, r);
    const double common = group->weight[r] * scale->per_divisor * scale->per_temperature;
    const row_factors factors = row_factors_by(&state, per_sum, slopes, common);
    group->f[r] = (real)factors.of_exponentials;
    group->b[r] = factors.of_weights;
    group->own_slope[r] = factors.own;
}

static void keep_all_factors(const aside_scale *given, group *group) {
    const aside_scale scale = *given;
#pragma omp simd
    for (int64_t r = 0; r < ROWS_ASIDE; r++) {
        const row_slopes slopes = {0, group->of_exponentials[r], group->of_weights[r], group->of_own[r]};
        keep_factors(&scale, &slopes, group->per_sum[r], r, group);
    }
}

/* Whether a row is not as the loops take it to be: its label's exponential is lost, it has no softmax, or its label's
 * slope is a zero whose sign may be that of a logarithm that was not computed. */
ALWAYS_INLINE bool is_unusual(const group *group, bool has_slopes, int64_t r) {
    return !row_has_own(group->own[r]) | (group->largest[r] - group->largest[r] != 0) |
           (has_slopes & (group->own_slope[r] == 0));
}

/* In float none but the last is so of calm rows, whose exponentials are all far from 0. */
static bool has_unusual(const group *group, bool has_slopes) {
    int unusual = 0;
    if (group->is_calm && !has_slopes && sizeof(real) == sizeof(float))
        return false;
#pragma omp simd reduction(| : unusual)
    for (int64_t r = 0; r < ROWS_ASIDE; r++)
        unusual |= is_unusual(group, has_slopes, r);
    return unusual;
}

/* Rows that take no part: what they add is 0, whatever stands there. */
static void hide_absent(bool has_slopes, group *group) {
    EACH_ROW_ASIDE(group->value[r] = wide_choose(group->takes_part[r] != 0, group->value[r], 0))
    if (has_slopes)
        EACH_ROW_ASIDE(group->f[r] = choose(group->takes_part[r] != 0, group->f[r], 0);
                       group->b[r] = choose(group->takes_part[r] != 0, group->b[r], 0);
                       group->own_slope[r] = choose(group->takes_part[r] != 0, group->own_slope[r], 0))
}

/* ------------------------------------------------------------------ slopes -- */

static void multiply_aside(group *group) {
    for (int64_t class = 0; class < group->classes; class ++) {
        real *z = group->z + class * ROWS_ASIDE;
        EACH_ROW_ASIDE(z[r] = canonical(z[r] * group->upstream[r]))
    }
}

/* In the place of the exponentials. Rows that take no part have 0, whatever stands there. */
static void write_slopes_aside(group *group, const real *u) {
    real f[ROWS_ASIDE], b[ROWS_ASIDE];
    EACH_ROW_ASIDE(f[r] = group->f[r]; b[r] = group->b[r])
    for (int64_t class = 0; class < group->classes; class ++) {
        real *z = group->z + class * ROWS_ASIDE;
        if (u)
            EACH_ROW_ASIDE(z[r] = lean(z[r] * f[r] - u[class] * b[r]))
        else
            EACH_ROW_ASIDE(z[r] = lean(z[r] * f[r]))
    }
    for (int r = 0; r < ROWS_ASIDE; r++)
        group->z[group->own_place[r]] = canonical(group->own_slope[r]);
    if (group->has_upstream)
        multiply_aside(group);
    for (int r = 0; group->has_absent && r < group->count; r++)
        for (int64_t class = 0; !group->takes_part[r] && class < group->classes; class ++)
            group->z[class * ROWS_ASIDE + r] = 0;
}

#endif
