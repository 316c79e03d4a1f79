/* Negative log-likelihood under the normal distribution, whose mean and variance are predicted. */
#ifndef ONEPASS_LOSS_GAUSSIAN_NLL_H
#define ONEPASS_LOSS_GAUSSIAN_NLL_H

#include "math/elementary.h"

/* As in PyTorch the slopes do not know of the bound: they are those at eps wherever the variance is less. */
LOSS_FUNCTION real gaussian_nll_bounded(real v, const real *parameter) {
    return choose(v < parameter[1], parameter[1], v); /* NaN comes through */
}

LOSS_FUNCTION real gaussian_nll_value(real p, real t, real v, const real *parameter) {
    const real x = p - t, c = gaussian_nll_bounded(v, parameter);
    return (real)0.5 * (real_log(c) + x * real_ratio(x, c)) + parameter[0] * (real)0.91893853320467274178;
}

LOSS_FUNCTION real gaussian_nll_slope_p(real p, real t, real v, const real *parameter) {
    const real x = p - t, c = gaussian_nll_bounded(v, parameter);
    return real_ratio(x, c);
}

LOSS_FUNCTION real gaussian_nll_slope_t(real p, real t, real v, const real *parameter) {
    return -gaussian_nll_slope_p(p, t, v, parameter);
}

LOSS_FUNCTION real gaussian_nll_slope_v(real p, real t, real v, const real *parameter) {
    const real x = p - t, c = gaussian_nll_bounded(v, parameter);
    return real_ratio((real)0.5 * (1 - x * real_ratio(x, c)), c);
}

#endif

LOSS(gaussian_nll, (prediction, target, variance), LONG, "negative log-likelihood of a number, given mean and variance",
     "0.5*(log(max(v, eps)) + x*x/max(v, eps)) + full*0.9189385332046728", "x/max(v, eps)",
     ACCURACY("x; x*x/max(v, eps)", ULP_OF(2, "abs(log(max(v, eps)))"), ULP(1.5), ULP(1.5),
              ULP_OF(3, "0.5/max(v, eps)")),
     PARAMETERS({"full", "1 adds the constant term, log(2*pi)/2", 0.0, 0, 1, 0, 0},
                {"eps", "the least variance, in place of smaller ones", 1e-6, ABOVE(0)}))
