/* Smooth L1: a parabola closer than beta to the target, a straight line beyond. */
#ifndef ONEPASS_LOSS_SMOOTH_L1_H
#define ONEPASS_LOSS_SMOOTH_L1_H

#include "math/elementary.h"

LOSS_FUNCTION real smooth_l1_value(real p, real t, const real *parameter) {
    const real beta = parameter[0];
    const real distance = magnitude(p - t);
    /* distance * distance is bit-identical to x * x. With beta = 0 the parabola is 0/0 or x/0 and never chosen but for
     * NaN. The question is that of the slope, which need not be asked twice. */
    return choose(distance >= beta, distance - (real)0.5 * beta, by_parameter((real)0.5 * distance * distance, beta));
}

LOSS_FUNCTION real smooth_l1_slope_p(real p, real t, const real *parameter) {
    const real beta = parameter[0];
    const real x = p - t;
    return choose(magnitude(x) >= beta, sign(x), by_parameter(x, beta));
}

LOSS_FUNCTION real smooth_l1_scaled_slope_p(real p, real t, const real *parameter, real scale) {
    return smooth_l1_slope_p(p, t, parameter) * scale;
}

LOSS_FUNCTION real smooth_l1_mended(real product, real scale) {
    (void)scale;
    return product; /* NaN comes with a NaN as the value */
}

LOSS_FUNCTION real smooth_l1_slope_t(real p, real t, const real *parameter) {
    return -smooth_l1_slope_p(p, t, parameter);
}

#endif

LOSS(smooth_l1, (prediction, target), SHORT_MENDED, "squared error near the target, absolute error beyond",
     "abs(x) < beta ? 0.5*x*x/beta : abs(x) - 0.5*beta", "abs(x) >= beta ? sign(x) : x/beta",
     ACCURACY("x; 0.5*x*x", ULP(1), ULP(1), ULP(1)),
     PARAMETERS({"beta", "where the parabola meets the line", 1.0, AT_LEAST(0)}))
