/*
 * Deviance of the gamma distribution, for positive predictions and targets.
 *
 * The logarithm of t/p is that of 1 + abs(t - p) / (the lesser of p and t), but for its sign, which keeps its digits
 * where prediction and target are near each other. Divisions come one after the other, since p*p and p*t underflow.
 */
#ifndef ONEPASS_LOSS_GAMMA_DEVIANCE_H
#define ONEPASS_LOSS_GAMMA_DEVIANCE_H

#include "transcendental.h"

/* log(t/p); NaN where the lesser is below 0. */
LOSS_FUNCTION real gamma_deviance_log(real p, real t) {
    const real x = p - t, base = choose(x > 0, t, p);
    const real logarithm = real_log1p(choose(base < 0, real_of(REAL_NAN_BITS), magnitude(x) / base));
    return choose(x > 0, -1, 1) * logarithm;
}

LOSS_FUNCTION real gamma_deviance_value(real p, real t, const real *parameter) {
    (void)parameter;
    return 2 * ((t - p) / p - gamma_deviance_log(p, t));
}

LOSS_FUNCTION real gamma_deviance_slope_p(real p, real t, const real *parameter) {
    (void)parameter;
    return 2 * ((p - t) / p) / p;
}

LOSS_FUNCTION real gamma_deviance_slope_t(real p, real t, const real *parameter) {
    (void)parameter;
    return 2 * ((t - p) / p) / t;
}

#endif

LOSS(gamma_deviance, (prediction, target), "deviance of a positive number, given the mean of a gamma distribution",
     "2*(t/p - 1 - log(t/p))", "2*x/(p*p)", NO_PARAMETERS)
