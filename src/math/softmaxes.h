/*
 * Two softmaxes a row, of logits that are the two vectors of a loss: from the sums of a row's tiles to what is known of
 * it, and from there to an element's probabilities. Tiles are those of softmax.h, whose leading exponentials are apart.
 */
#ifndef ONEPASS_MATH_SOFTMAXES_H
#define ONEPASS_MATH_SOFTMAXES_H

#include "math/row.h"
#include "vector_sums.h"

/* The sums over a row's tiles: of each softmax that of the exponentials that do not lead, and of those that do, and ...
 */
#define SOFTMAXES_SUMS    5
#define SOFTMAXES_CARRIED 4 /* ... of the second's exponentials times softmaxes_apart() */

/* ----------------------------------------------------------- an element -- */

/* How much more a logit of the second lies above its largest than that of the first does. */
ALWAYS_INLINE real softmaxes_apart(real first, real largest_first, real second, real largest_second) {
    return (second - largest_second) - (first - largest_first);
}

/* What an exponential of the second carries. */
ALWAYS_INLINE real softmaxes_carried(real exponential, real apart) {
    return choose(exponential == 0, 0, exponential * apart);
}

/* --------------------------------------------------------------- a tile -- */

/* A tile's part of what a row carries: `weighted` of the second's tile, whose sums are by its own shift and about the
 * largest logits of the tile. */
ALWAYS_INLINE double softmaxes_part_of_carried(const softmax_tile *second, double first_largest, double exponent,
                                               const double *largest) {
    const double scale = wide_exp2(second->exponent - exponent), all = second->others + second->leading;
    const double apart = ((double)second->largest - largest[1]) - (first_largest - largest[0]);
    return scale == 0 ? 0 : (second->weighted + all * apart) * scale;
}

/* Its parts of all sums. */
ALWAYS_INLINE void softmaxes_parts(const softmax_tile *tile, const double *exponent, const double *largest,
                                   double *part) {
    part[0] = row_part_of_others(&tile[0], exponent[0], (real)largest[0]);
    part[1] = row_part_of_leading(&tile[0], (real)largest[0]);
    part[2] = row_part_of_others(&tile[1], exponent[1], (real)largest[1]);
    part[3] = row_part_of_leading(&tile[1], (real)largest[1]);
    part[SOFTMAXES_CARRIED] = softmaxes_part_of_carried(&tile[1], (double)tile[0].largest, exponent[1], largest);
}

/* What makes probabilities of a tile's exponentials. */
ALWAYS_INLINE real softmaxes_factor(double per_sum, double tile_exponent, double row_exponent) {
    return (real)(per_sum * wide_exp2(tile_exponent - row_exponent));
}

/* ---------------------------------------------------------------- a row -- */

/* The exponents that the row's sums are in, of its largest logits. False if it has no softmax. */
ALWAYS_INLINE bool softmaxes_exponents(const softmax *softmax, const softmax_scale *scale, const double *largest,
                                       double *exponent) {
    exponent[0] = softmax_shift_of(softmax, scale, (real)largest[0]).exponent;
    exponent[1] = softmax_shift_of(softmax, scale, (real)largest[1]).exponent;
    return exponent[0] - exponent[0] == 0 && exponent[1] - exponent[1] == 0;
}

/* One of the two: lse - largest, and one over the sum. */
ALWAYS_INLINE double softmaxes_above(const softmax *softmax, const softmax_scale *scale, double largest,
                                     const double *sum, double *per_sum) {
    const softmax_row row = {largest, sum[0], sum[1], 0, 0};
    *per_sum = 1 / (sum[0] + sum[1]);
    return row_above(softmax, scale, &row);
}

/* Of the row's sums. */
ALWAYS_INLINE void softmaxes_know(const softmax *softmax, const softmax_scale *scale, const double *largest,
                                  const double *sum, vector_softmaxes *row) {
    const vector_softmaxes none = {{WIDE_NAN, WIDE_NAN}, {WIDE_NAN, WIDE_NAN}, WIDE_NAN, WIDE_NAN};
    double exponent[2];
    *row = none;
    if (!softmaxes_exponents(softmax, scale, largest, exponent))
        return;
    row->largest[0] = largest[0];
    row->largest[1] = largest[1];
    const double first = softmaxes_above(softmax, scale, largest[0], sum, &row->per_sum[0]);
    row->above = softmaxes_above(softmax, scale, largest[1], sum + 2, &row->per_sum[1]) - first;
    row->carried = sum[SOFTMAXES_CARRIED] * row->per_sum[1];
}

#endif
