/*
 * From the sums of a row's tiles to the row's value and slopes, in double: what both engines do alike, once a row.
 */
#ifndef ONEPASS_MATH_ROW_H
#define ONEPASS_MATH_ROW_H

#include "math/softmax.h"

/* What a tile of a row comes to. */
typedef struct softmax_tile {
    double exponent; /* of its shift */
    double others;   /* the sum of its exponentials, without the label's or the leading ones, ... */
    double leading;  /* ... the sum of these, 0 where there are labels, ... */
    double weights;  /* ... of its classes' u_c, ... */
    double weighted; /* ... and of u_c (z_c - largest) */
    real largest;
} softmax_tile;

/* The exponential of a tile's largest logit, by the tile's shift. */
ALWAYS_INLINE real row_most_of_tile(const softmax *softmax, const softmax_shift *shift) {
    return softmax_exponential(softmax, shift, shift->largest - shift->anchor);
}

/* A tile's part of the row's sums, which are then added up by the tree over tiles. What leads in a tile leads in its
 * row if the row has no larger logit. */
ALWAYS_INLINE double row_part_of_others(const softmax_tile *tile, double exponent, real largest) {
    const double others = tile->largest == largest ? tile->others : tile->others + tile->leading;
    return others * wide_exp2(tile->exponent - exponent);
}

ALWAYS_INLINE double row_part_of_leading(const softmax_tile *tile, real largest) {
    return tile->largest == largest ? tile->leading : 0;
}

ALWAYS_INLINE double row_part_of_weighted(const softmax_tile *tile, real largest) {
    return tile->weights * ((double)largest - (double)tile->largest) - tile->weighted;
}

/* A tile as the numbers that travel where classes are shared out, the last two of them if there are weights. Of one
 * that has no softmax the largest logit says so. */
ALWAYS_INLINE void row_numbers_of_tile(const softmax_tile *tile, double *number) {
    const bool has_softmax = tile->exponent == tile->exponent;
    const double largest = tile->exponent == -WIDE_INFINITY ? tile->exponent : (double)tile->largest;
    number[0] = has_softmax ? largest : WIDE_NAN;
    number[1] = has_softmax ? tile->others : WIDE_NAN;
    number[2] = tile->weights;
    number[3] = has_softmax ? tile->weighted : WIDE_NAN;
}

/* What a row is known by when its tiles have been joined. */
typedef struct row_facts {
    softmax_row row;  /* but for lse */
    double exponent;  /* E: the largest of the tiles' */
    double weighted;  /* the sum of u_c (largest - z_c) */
    real label_logit; /* z_y */
    double weight;    /* the label's class weight, or 1 */
    double classes;
} row_facts;

/* lse - largest. Nothing cancels where the label leads, or where there is none. */
ALWAYS_INLINE double row_above(const softmax *softmax, const softmax_scale *scale, const softmax_row *row) {
    const softmax_shift shift = softmax_shift_aside(softmax, scale, (real)row->largest);
    const double most = (double)row_most_of_tile(softmax, &shift);
    return wide_log1p_ratio(row->others + (row->own - most), most);
}

/* lse - z of a logit, which costs no digit where both have a large part in common. */
ALWAYS_INLINE double row_distance(const softmax_scale *scale, double largest, double above, double z) {
    return wide_fused(largest - z, scale->per_temperature, above);
}

/* x / sum. In float one division of several, which take a GPU long, is exact enough: results are rounded to float. */
ALWAYS_INLINE double row_over(double x, double sum, double per_sum) {
    return sizeof(real) == sizeof(double) ? x / sum : x * per_sum;
}

ALWAYS_INLINE double row_per_sum(const softmax_row *row) {
    return 1 / (row->others + row->own);
}

/* Whether a label's exponential is far from being lost beside the others'. */
ALWAYS_INLINE bool row_has_own(double own) {
    return own >= 0x1p-1000;
}

/* Minus the logarithm of the label's probability where it is not. */
ALWAYS_INLINE double row_nll_of_rest(const softmax_scale *scale, const row_facts *facts) {
    const softmax softmax = softmax_of(scale);
    return row_distance(scale, facts->row.largest, row_above(&softmax, scale, &facts->row), (double)facts->label_logit);
}

/* From a row's state, where row_has_own(). `weighted` is asked for by values alone. */
ALWAYS_INLINE row_sums row_usual_sums(const row_facts *facts, double weighted) {
    const softmax_row *row = &facts->row;
    const double sum = row->others + row->own, per_sum = row_per_sum(row);
    row_sums sums;
    sums.nll = wide_log1p_ratio(row->others, row->own);
    sums.lse = row->lse;
    sums.own = row_over(row->own, sum, per_sum);
    sums.others = row_over(row->others, sum, per_sum);
    sums.weight = facts->weight;
    sums.weighted = weighted;
    sums.weights = row->weights;
    sums.classes = facts->classes;
    return sums;
}

ALWAYS_INLINE row_sums row_sums_of_state(const softmax_scale *scale, const row_facts *facts, double weighted) {
    row_sums sums = row_usual_sums(facts, weighted);
    if (!row_has_own(facts->row.own))
        sums.nll = row_nll_of_rest(scale, facts);
    return sums;
}

/* From what the tiles came to: this completes the state. Returns lse - largest. */
ALWAYS_INLINE double row_complete(const softmax *softmax, const softmax_scale *scale, row_facts *facts) {
    const double above = row_above(softmax, scale, &facts->row);
    facts->row.lse = wide_fused(facts->row.largest, scale->per_temperature, above);
    return above;
}

/* The sum of u_c (lse - z_c). */
ALWAYS_INLINE double row_weighted(const softmax_scale *scale, const row_facts *facts, double above) {
    return facts->row.weights * above + facts->weighted * scale->per_temperature;
}

ALWAYS_INLINE row_sums row_sums_of(const softmax *softmax, const softmax_scale *scale, row_facts *facts) {
    const double above = row_complete(softmax, scale, facts);
    return row_sums_of_state(scale, facts, row_weighted(scale, facts, above));
}

/* What a row's slopes are multiplied by: its weight, one over the divisor, and one over the temperature. */
typedef struct row_factors {
    double of_exponentials; /* times 2^(E_k - E) that of a tile's e_c */
    real of_weights;        /* that of u_c */
    real own;               /* the label's slope */
} row_factors;

/* `per_sum` is one over the row's sum, for whoever has it already. */
ALWAYS_INLINE row_factors row_factors_by(const softmax_row *row, double per_sum, const row_slopes *slopes,
                                         double common) {
    row_factors factors;
    factors.of_exponentials = row_over(slopes->exponentials, row->others + row->own, per_sum) * common;
    factors.of_weights = (real)(slopes->weights * common);
    factors.own = (real)(slopes->own * common);
    return factors;
}

ALWAYS_INLINE row_factors row_factors_of(const softmax_row *row, const row_slopes *slopes, double common) {
    return row_factors_by(row, row_per_sum(row), slopes, common);
}

ALWAYS_INLINE real row_tile_factor(const row_factors *factors, double tile_exponent, double row_exponent) {
    return (real)(factors->of_exponentials * wide_exp2(tile_exponent - row_exponent));
}

#endif
