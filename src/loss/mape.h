/* Absolute error in per cent of the target. */
#ifndef ONEPASS_LOSS_MAPE_H
#define ONEPASS_LOSS_MAPE_H

#include "math/elementary.h"

/* What the error is measured against; eps keeps it from 0. */
LOSS_FUNCTION real mape_measure(real t, const real *parameter) {
    return choose(magnitude(t) < parameter[0], parameter[0], magnitude(t));
}

/* The hundred comes before the division, so that it does not magnify a rounding to a denormal number, unless it would
 * make infinity of a huge error. */
LOSS_FUNCTION real mape_value(real p, real t, const real *parameter) {
    const real error = magnitude(p - t);
    const bool huge = error > (real)(sizeof(real) == 4 ? 0x1p120 : 0x1p1016);
    return real_ratio(error * choose(huge, 1, 100), mape_measure(t, parameter)) * choose(huge, 100, 1);
}

LOSS_FUNCTION real mape_slope_p(real p, real t, const real *parameter) {
    const real x = p - t;
    return real_ratio(100 * choose(x == x, sign(x), x), mape_measure(t, parameter));
}

/* Beyond eps the measure changes with the target; what the two changes leave is the slope in p times p/t. */
LOSS_FUNCTION real mape_slope_t(real p, real t, const real *parameter) {
    return -(mape_slope_p(p, t, parameter) * choose(magnitude(t) > parameter[0], p / t, 1));
}

#endif

LOSS(mape, (prediction, target), LONG_FEW_LINES, "absolute error in per cent of the target",
     "100*abs(x)/max(abs(t), eps)", "100*sign(x)/max(abs(t), eps)", ACCURACY("x", ULP(2), ULP(1.5), ULP(3)),
     PARAMETERS({"eps", "the least magnitude of a target, in place of smaller ones", 1e-7, ABOVE(0)}))
