/* The logarithm of the hyperbolic cosine: x^2/2 near the target, abs(x) - log(2) far from it. */
#ifndef ONEPASS_LOSS_LOG_COSH_H
#define ONEPASS_LOSS_LOG_COSH_H

#include "math/elementary.h"

LOSS_FUNCTION real log_cosh_value(real p, real t, const real *parameter) {
    (void)parameter;
    return real_log_cosh(p - t);
}

LOSS_FUNCTION real log_cosh_slope_p(real p, real t, const real *parameter) {
    (void)parameter;
    return real_tanh(p - t);
}

LOSS_FUNCTION real log_cosh_slope_t(real p, real t, const real *parameter) {
    return -log_cosh_slope_p(p, t, parameter);
}

#endif

LOSS(log_cosh, (prediction, target), LONG, "logarithm of the hyperbolic cosine of the error",
     "x + softplus(-2*x) - 0.6931471805599453", "tanh(x)", ACCURACY("x", ULP(2), ULP(1), ULP(1)), NO_PARAMETERS)
