/* Kullback and Leibler's divergence of a target from a prediction that is the logarithm of a probability. The target is
 * a probability or (_log_target) the logarithm of one. */
#ifndef ONEPASS_LOSS_KL_DIV_H
#define ONEPASS_LOSS_KL_DIV_H

#include "math/elementary.h"

LOSS_FUNCTION real kl_div_value(real p, real t, const real *parameter) {
    (void)parameter;
    return choose(t == 0, 0, t * real_log(t)) - t * p;
}

/* -t, said so that it does not end in a minus. */
LOSS_FUNCTION real kl_div_slope_p(real p, real t, const real *parameter) {
    (void)p, (void)parameter;
    return minus_if(t == t, t);
}

/* t/t is 1, but NaN where t is 0, as autograd has it. */
LOSS_FUNCTION real kl_div_slope_t(real p, real t, const real *parameter) {
    (void)parameter;
    return (real_log(t) + t / t) - p;
}

LOSS_FUNCTION real kl_div_log_target_value(real p, real t, const real *parameter) {
    (void)parameter;
    return real_exp(t) * (t - p);
}

LOSS_FUNCTION real kl_div_log_target_slope_p(real p, real t, const real *parameter) {
    (void)p, (void)parameter;
    const real probability = real_exp(t);
    return minus_if(probability == probability, probability);
}

LOSS_FUNCTION real kl_div_log_target_slope_t(real p, real t, const real *parameter) {
    (void)parameter;
    return real_exp(t) * ((t - p) + 1);
}

#endif

LOSS(kl_div, (prediction, target), LONG_FEW_LINES, "divergence of a probability from a prediction of its logarithm",
     "(t == 0 ? 0 : t*log(t)) - t*p", "-t",
     ACCURACY("t*p", ULP_OF(1.5, "abs(t*p)"), ULP(0), ULP_OF(2, "max(abs(p), 1)")), NO_PARAMETERS)

LOSS(kl_div_log_target, (prediction, target), LONG,
     "divergence of a probability from a prediction of its logarithm, the target being a logarithm, too",
     "exp(t)*(t - p)", "-exp(t)", ACCURACY("t - p; exp(t)", ULP(2), ULP(1), ULP_OF(2, "exp(t)")), NO_PARAMETERS)
