/* Binary cross-entropy of a probability. Outside of 0 to 1 it is NaN, and so is its slope. */
#ifndef ONEPASS_LOSS_BCE_H
#define ONEPASS_LOSS_BCE_H

#include "transcendental.h"

/* PyTorch's way to keep the loss finite where a probability is 0 or 1; NaN comes through. */
LOSS_FUNCTION real bce_bounded(real logarithm) {
    return choose(logarithm < -100, -100, logarithm);
}

LOSS_FUNCTION real bce_value(real p, real t, const real *parameter) {
    (void)parameter;
    return (t - 1) * bce_bounded(real_log1p(0 - p)) - t * bce_bounded(real_log(p));
}

LOSS_FUNCTION real bce_slope_p(real p, real t, const real *parameter) {
    (void)parameter;
    const real variance = (1 - p) * p;
    const real slope = (p - t) / choose(variance < (real)1e-12, (real)1e-12, variance);
    return choose(variance < 0, real_of(REAL_NAN_BITS), slope);
}

LOSS_FUNCTION real bce_slope_t(real p, real t, const real *parameter) {
    (void)t, (void)parameter;
    return real_log1p(0 - p) - real_log(p);
}

#endif

LOSS(bce, (prediction, target), "cross-entropy of a probability with a target from 0 to 1",
     "(t - 1)*max(log1p(-p), -100) - t*max(log(p), -100)", "x/max((1 - p)*p, 1e-12)", NO_PARAMETERS)
