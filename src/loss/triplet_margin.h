/* How much an anchor's distance from a negative lacks to be a margin longer than that from a positive. */
#ifndef ONEPASS_LOSS_TRIPLET_MARGIN_H
#define ONEPASS_LOSS_TRIPLET_MARGIN_H

#include "math/vector.h"

/* Parameters: margin, p, eps, swap. The last sum is for the swap: the negative's distance from anchor or positive,
 * whichever is nearer. */
VECTOR_FUNCTION triplet_margin_terms(const vector_element *x, const double *parameter, double *term) {
    const double p = parameter[1], eps = parameter[2];
    term[0] = vector_power(vector_apart(x[0], x[1], eps), p);
    term[1] = vector_power(vector_apart(x[0], x[2], eps), p);
    term[2] = wide_choose(parameter[3] != 0, vector_power(vector_apart(x[1], x[2], eps), p), 0);
}

VECTOR_FUNCTION triplet_margin_row(const vector_sums *row, const double *parameter, vector_slopes *out) {
    const double p = parameter[1];
    const bool swap = parameter[3] != 0;
    const double positive = vector_distance(row->sum[0], p), negative = vector_distance(row->sum[1], p);
    const double other = vector_distance(row->sum[2], p);
    const bool is_other = swap && !(negative <= other || negative != negative), ties = swap && negative == other;
    const double lacking = (parameter[0] + positive) - (is_other ? other : negative);
    const double passes = wide_choose(lacking < 0, 0, 1);
    const double to_other = is_other ? passes : ties ? 0.5 * passes : 0;
    out->value = wide_at_least(lacking, 0);
    out->factor[0] = passes * vector_distance_factor(positive, p);
    out->factor[1] = (passes - to_other) * vector_distance_factor(negative, p);
    out->factor[2] = to_other != 0 ? to_other * vector_distance_factor(other, p) : 0;
}

VECTOR_SLOPE triplet_margin_slope(int which, const vector_element *x, const double *parameter, const double *factor) {
    const double p = parameter[1], eps = parameter[2];
    const double positive = factor[0] * vector_direction(vector_apart(x[0], x[1], eps), p);
    const double negative = factor[1] * vector_direction(vector_apart(x[0], x[2], eps), p);
    const double other = factor[2] * vector_direction(vector_apart(x[1], x[2], eps), p);
    return which == 0 ? positive - negative : which == 1 ? -positive - other : negative + other;
}

VECTOR_FUNCTION triplet_margin_usual(double *parameter) {
    parameter[1] = 2;
    parameter[3] = 0;
}

#endif

VECTOR_LOSS(triplet_margin, (anchor, positive, negative), 3, 3, SHORT,
            "distance from a positive beyond that from a negative", "max(0, margin + d(a, p) - d(a, n))",
            "slope of d(a, p) - slope of d(a, n)",
            ACCURACY("", ULP_OF(1, "margin + d(a, p) + d(a, n)"), ULP_OF(1, "2**-26"), ULP_OF(1, "2**-26"),
                     ULP_OF(1, "2**-26")),
            PARAMETERS({"margin", "how much longer the distance from the negative is to be", 1, ANY_FINITE},
                       {"p", "the power of the distance, 1 or 2", 2, BETWEEN(1, 2)},
                       {"eps", "added to every component of a difference", 1e-6, ANY_FINITE},
                       {"swap", "1: the negative's distance is that from anchor or positive, whichever is nearer", 0,
                        BETWEEN(0, 1)}))
