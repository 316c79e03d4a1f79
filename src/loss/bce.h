/* Binary cross-entropy of a probability. Outside of 0 to 1 it is NaN, and so is its slope. */
#ifndef ONEPASS_LOSS_BCE_H
#define ONEPASS_LOSS_BCE_H

#include "math/elementary.h"

LOSS_FUNCTION bool bce_is_probability(real p) {
    return (p >= 0) & (p <= 1);
}

LOSS_FUNCTION real bce_value(real p, real t, const real *parameter) {
    (void)parameter;
    /* PyTorch's way to keep the loss finite where a probability is 0 or 1: no logarithm is below -100. That of 1 - p is
     * so for p = 1 alone. */
    const real of_p = real_log_of_share(magnitude(p)), of_rest = real_log_of_rest(p);
    const real value = (t - 1) * choose(p == 1, -100, of_rest) - t * choose(of_p < -100, -100, of_p);
    return choose(bce_is_probability(p), value, real_of(REAL_NAN_BITS));
}

LOSS_FUNCTION real bce_slope_p(real p, real t, const real *parameter) {
    (void)parameter;
    const real variance = (1 - p) * p;
    const real slope = real_ratio(p - t, choose(variance < (real)1e-12, (real)1e-12, variance));
    return choose(bce_is_probability(p), slope, real_of(REAL_NAN_BITS));
}

LOSS_FUNCTION real bce_slope_t(real p, real t, const real *parameter) {
    (void)t, (void)parameter;
    return real_log1p(0 - p) - real_log(p);
}

#endif

LOSS(bce, (prediction, target), LONG, "cross-entropy of a probability with a target from 0 to 1",
     "(t - 1)*max(log1p(-p), -100) - t*max(log(p), -100)", "x/max((1 - p)*p, 1e-12)",
     ACCURACY("", ULP(3), ULP(3), ULP_OF(2, "abs(log(p))")), NO_PARAMETERS)
