/*
 * Tukey's biweight: half of the squared error near the target, and a constant, so that it does not matter how far off
 * an outlier is, from a distance of c on. With u = (x/c)^2 it is c^2/6 * (1 - (1-u)^3), which would lose its digits
 * near the target, and its slope is x * (1-u)^2, where 1-u would lose them near c.
 */
#ifndef ONEPASS_LOSS_TUKEY_BIWEIGHT_H
#define ONEPASS_LOSS_TUKEY_BIWEIGHT_H

#include "math/elementary.h"

/* An infinite c is as good as a huge one, which is a number. */
LOSS_FUNCTION real tukey_biweight_width(const real *parameter) {
    const real huge = (real)(sizeof(real) == 4 ? 0x1p127 : 0x1p1023);
    return choose(parameter[0] > huge, huge, parameter[0]);
}

LOSS_FUNCTION real tukey_biweight_value(real p, real t, const real *parameter) {
    const real c = tukey_biweight_width(parameter), distance = magnitude(p - t), sixth = (real)(1.0 / 6);
    const real share = by_parameter(distance, c), u = share * share;
    return choose(distance >= c, c * (c * sixth), distance * (distance * ((real)0.5 - u * ((real)0.5 - u * sixth))));
}

LOSS_FUNCTION real tukey_biweight_slope_p(real p, real t, const real *parameter) {
    const real c = tukey_biweight_width(parameter), x = p - t, distance = magnitude(x);
    const real weight = by_parameter(c - distance, c) * (1 + by_parameter(distance, c));
    return choose(distance >= c, 0, x * weight * weight);
}

LOSS_FUNCTION real tukey_biweight_slope_t(real p, real t, const real *parameter) {
    return -tukey_biweight_slope_p(p, t, parameter);
}

#endif

LOSS(tukey_biweight, (prediction, target), SHORT, "squared error near the target, a constant for outliers",
     "abs(x) < c ? c*c/6*(1 - pow(1 - x*x/(c*c), 3)) : c*c/6", "abs(x) < c ? x*pow(1 - x*x/(c*c), 2) : 0",
     ACCURACY("x", ULP(3), ULP(6), ULP(6)),
     PARAMETERS({"c", "the distance from which on an error counts as an outlier", 4.685, ABOVE(0)}))
