/*
 * Squared error of the logarithms, each of 1 plus a number.
 *
 * Their difference is one logarithm, log(1 + abs(p - t) / (1 + the lesser of p and t)), but for its sign. It keeps all
 * its digits where prediction and target are near each other, and a division takes less time than a second logarithm.
 */
#ifndef ONEPASS_LOSS_MSLE_H
#define ONEPASS_LOSS_MSLE_H

#include "math/elementary.h"

/* NaN where the lesser is below -1, as its logarithm is. */
LOSS_FUNCTION real msle_distance(real p, real t) {
    const real x = p - t, base = 1 + choose(x < 0, p, t);
    return real_log1p_of_ratio(choose(base < 0, REAL_NAN, magnitude(x)), base);
}

LOSS_FUNCTION real msle_value(real p, real t, const real *parameter) {
    (void)parameter;
    const real distance = msle_distance(p, t);
    return distance * distance;
}

/* Twice the difference of the logarithms. */
LOSS_FUNCTION real msle_factor(real p, real t) {
    return signed_like(p - t, 2) * msle_distance(p, t);
}

LOSS_FUNCTION real msle_slope_p(real p, real t, const real *parameter) {
    (void)parameter;
    return real_ratio(msle_factor(p, t), 1 + p);
}

LOSS_FUNCTION real msle_slope_t(real p, real t, const real *parameter) {
    (void)parameter;
    return -real_ratio(msle_factor(p, t), 1 + t);
}

#endif

LOSS(msle, (prediction, target), LONG, "squared error of the logarithms, of 1 plus each number",
     "(log1p(p) - log1p(t))*(log1p(p) - log1p(t))", "2*(log1p(p) - log1p(t))/(1 + p)",
     ACCURACY("", ULP(5), ULP(4), ULP(4)), NO_PARAMETERS)
