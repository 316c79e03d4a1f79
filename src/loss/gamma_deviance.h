/*
 * Deviance of the gamma distribution, for positive predictions and targets; NaN where one of the two is below 0.
 * Divisions come one after the other, since p*p and p*t underflow, that by the larger number first.
 */
#ifndef ONEPASS_LOSS_GAMMA_DEVIANCE_H
#define ONEPASS_LOSS_GAMMA_DEVIANCE_H

#include "math/elementary.h"

LOSS_FUNCTION real gamma_deviance_value(real p, real t, const real *parameter) {
    (void)parameter;
    return fused(-2, real_log_lag(t, p), 0); /* not -0 where t is p */
}

LOSS_FUNCTION real gamma_deviance_slope_p(real p, real t, const real *parameter) {
    (void)parameter;
    return 2 * real_ratio(real_ratio(p - t, p), p);
}

LOSS_FUNCTION real gamma_deviance_slope_t(real p, real t, const real *parameter) {
    (void)parameter;
    const bool below = magnitude(p) < magnitude(t);
    return 2 * real_ratio(real_ratio(t - p, choose(below, t, p)), choose(below, p, t));
}

#endif

LOSS(gamma_deviance, (prediction, target), LONG,
     "deviance of a positive number, given the mean of a gamma distribution", "2*(t/p - 1 - log(t/p))", "2*x/(p*p)",
     ACCURACY("", ULP(6), ULP(3), ULP(3)), NO_PARAMETERS)
