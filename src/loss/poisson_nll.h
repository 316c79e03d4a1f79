/*
 * Negative log-likelihood of counts under Poisson's distribution, whose rate is predicted as its logarithm or itself
 * (_rate). What depends on the target alone, log(t!), is left out or (_full) approximated by Stirling's formula.
 */
#ifndef ONEPASS_LOSS_POISSON_NLL_H
#define ONEPASS_LOSS_POISSON_NLL_H

#include "math/elementary.h"

/* t*log(t) - t + log(2*pi*t)/2 for t above 1, else 0; NaN comes through, and what is infinite leaves NaN. */
LOSS_FUNCTION real poisson_stirling(real t) {
    return choose(t <= 1, 0, (t + (real)0.5) * real_log_of_large(t) - t + (real)0.91893853320467274178);
}

LOSS_FUNCTION real poisson_stirling_slope(real t) {
    return choose(t <= 1, 0, real_log(t) + real_ratio((real)0.5, t));
}

LOSS_FUNCTION real poisson_nll_value(real p, real t, const real *parameter) {
    (void)parameter;
    return real_exp(p) - t * p;
}

LOSS_FUNCTION real poisson_nll_slope_p(real p, real t, const real *parameter) {
    (void)parameter;
    return real_exp(p) - t;
}

LOSS_FUNCTION real poisson_nll_slope_t(real p, real t, const real *parameter) {
    (void)t, (void)parameter;
    return -p;
}

LOSS_FUNCTION real poisson_nll_full_value(real p, real t, const real *parameter) {
    return poisson_nll_value(p, t, parameter) + poisson_stirling(t);
}

LOSS_FUNCTION real poisson_nll_full_slope_p(real p, real t, const real *parameter) {
    return poisson_nll_slope_p(p, t, parameter);
}

LOSS_FUNCTION real poisson_nll_full_slope_t(real p, real t, const real *parameter) {
    (void)parameter;
    return poisson_stirling_slope(t) - p;
}

LOSS_FUNCTION real poisson_nll_rate_value(real p, real t, const real *parameter) {
    return p - t * real_log(p + parameter[0]);
}

/* 1 - t/rate, but 0 where t is the rate, and with all its digits near there. */
LOSS_FUNCTION real poisson_nll_rate_slope_p(real p, real t, const real *parameter) {
    const real rate = p + parameter[0];
    return choose(rate == REAL_INFINITY, 1 - t * 0, real_ratio(rate - t, rate));
}

LOSS_FUNCTION real poisson_nll_rate_slope_t(real p, real t, const real *parameter) {
    (void)t;
    return -real_log(p + parameter[0]);
}

LOSS_FUNCTION real poisson_nll_rate_full_value(real p, real t, const real *parameter) {
    return poisson_nll_rate_value(p, t, parameter) + poisson_stirling(t);
}

LOSS_FUNCTION real poisson_nll_rate_full_slope_p(real p, real t, const real *parameter) {
    return poisson_nll_rate_slope_p(p, t, parameter);
}

LOSS_FUNCTION real poisson_nll_rate_full_slope_t(real p, real t, const real *parameter) {
    return poisson_stirling_slope(t) - real_log(p + parameter[0]);
}

#endif

LOSS(poisson_nll, (prediction, target), LONG, "negative log-likelihood of a count, given the logarithm of the rate",
     "exp(p) - t*p", "exp(p) - t", ACCURACY("exp(p); t*p", ULP_OF(1.5, "abs(t*p)"), ULP_OF(1.5, "t"), ULP(0)),
     NO_PARAMETERS)

LOSS(poisson_nll_full, (prediction, target), LONG,
     "negative log-likelihood of a count, given the logarithm of the rate, with Stirling's term for the count",
     "exp(p) - t*p + (t > 1 ? t*log(t) - t + 0.5*log(6.283185307179586*t) : 0)", "exp(p) - t",
     ACCURACY("exp(p); t*p; t*log(t)", ULP_OF(2, "abs(t*p) + t*max(log(max(t, 1)), 1)"), ULP_OF(1.5, "t"),
              ULP_OF(2, "abs(p)")),
     NO_PARAMETERS)

LOSS(poisson_nll_rate, (prediction, target), LONG, "negative log-likelihood of a count, given the rate",
     "p - t*log(p + eps)", "1 - t/(p + eps)", ACCURACY("p + eps; t*log(p + eps)", ULP_OF(1.5, "p"), ULP(2), ULP(1)),
     PARAMETERS({"eps", "added to the rate, to keep its logarithm finite", 1e-8, ABOVE(0)}))

LOSS(poisson_nll_rate_full, (prediction, target), LONG,
     "negative log-likelihood of a count, given the rate, with Stirling's term for the count",
     "p - t*log(p + eps) + (t > 1 ? t*log(t) - t + 0.5*log(6.283185307179586*t) : 0)", "1 - t/(p + eps)",
     ACCURACY("p + eps; t*log(p + eps); t*log(t)", ULP_OF(2, "p + t*max(log(max(t, 1)), 1)"), ULP(2),
              ULP_OF(2, "log(max(t, 1))")),
     PARAMETERS({"eps", "added to the rate, to keep its logarithm finite", 1e-8, ABOVE(0)}))
