/* The distance of two vectors, by the sum of magnitudes or by the root of the sum of squares. */
#ifndef ONEPASS_LOSS_PAIRWISE_DISTANCE_H
#define ONEPASS_LOSS_PAIRWISE_DISTANCE_H

#include "math/vector.h"

VECTOR_FUNCTION pairwise_distance_terms(const vector_element *x, const double *parameter, double *term) {
    term[0] = vector_power(vector_apart(x[0], x[1], parameter[1]), parameter[0]);
}

VECTOR_FUNCTION pairwise_distance_row(const vector_sums *row, const double *parameter, vector_slopes *out) {
    out->value = vector_distance(row->sum[0], parameter[0]);
    out->factor[0] = vector_distance_factor(out->value, parameter[0]);
}

VECTOR_SLOPE pairwise_distance_slope(int which, const vector_element *x, const double *parameter,
                                     const double *factor) {
    const double direction = vector_direction(vector_apart(x[0], x[1], parameter[1]), parameter[0]);
    return (which == 0 ? factor[0] : -factor[0]) * direction; /* gcc 12 for SVE fails if the product is negated */
}

VECTOR_FUNCTION pairwise_distance_usual(double *parameter) {
    parameter[0] = 2;
}

#endif

VECTOR_LOSS(pairwise_distance, (input1, input2), 2, 1, SHORT, "distance of two vectors",
            "sum(abs(a - b + eps)**p)**(1/p)", "sign(a - b + eps)*(abs(a - b + eps)/d)**(p - 1)",
            ACCURACY("", ULP(1), ULP(1), ULP(1)),
            PARAMETERS({"p", "the power, 1 or 2", 2, BETWEEN(1, 2)},
                       {"eps", "added to every component of the difference", 1e-6, ANY_FINITE}))
