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

/* Where no slope is 0 beyond beta, and by_parameter() is a product with the reciprocal: it scales nothing, or so that
 * no digit is lost of a distance below beta. */
LOSS_FUNCTION bool smooth_l1_has_both(const real *parameter) {
    const bool is_float = sizeof(real) == sizeof(float);
    return parameter[0] >= (real)(is_float ? 0x1p-126 : 0x1p-1022) &&
           parameter[0] <= (real)(is_float ? 0x1p64 : 0x1p900);
}

LOSS_FUNCTION real smooth_l1_both(real p, real t, const real *parameter, real scale, real *gradient) {
    const real beta = parameter[0], reciprocal = 1 / beta;
    const real x = p - t, distance = magnitude(x);
    const bool is_far = distance >= beta;
    *gradient = choose(is_far, signed_like(x, 1), x * reciprocal) * scale;
    return choose(is_far, distance - (real)0.5 * beta, (real)0.5 * distance * distance * reciprocal);
}

LOSS_FUNCTION real smooth_l1_mended(real gradient, real scale) {
    (void)scale;
    return gradient; /* NaN comes with a NaN as the value */
}

LOSS_FUNCTION real smooth_l1_slope_t(real p, real t, const real *parameter) {
    return -smooth_l1_slope_p(p, t, parameter);
}

#endif

LOSS(smooth_l1, (prediction, target), SHORT_MENDED, "squared error near the target, absolute error beyond",
     "abs(x) < beta ? 0.5*x*x/beta : abs(x) - 0.5*beta", "abs(x) >= beta ? sign(x) : x/beta",
     ACCURACY("x; 0.5*x*x", ULP(1), ULP(1), ULP(1)),
     PARAMETERS({"beta", "where the parabola meets the line", 1.0, AT_LEAST(0)}))
