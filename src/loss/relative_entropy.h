/*
 * Relative entropy of a target to a prediction, both of them probabilities: what Kullback and Leibler's divergence adds
 * up. It is kl_div of the prediction's logarithm, without a tensor of logarithms, and keeps its digits where prediction
 * and target are near each other.
 */
#ifndef ONEPASS_LOSS_RELATIVE_ENTROPY_H
#define ONEPASS_LOSS_RELATIVE_ENTROPY_H

#include "math/elementary.h"

/* log(t/p); infinite for p = 0, NaN where t is 0, as autograd has its slope, and for what is no probability. */
LOSS_FUNCTION real relative_entropy_log(real p, real t) {
    const real most = (real)(sizeof(real) == 4 ? 0x1p100 : 0x1p960);
    const real edge = choose(p == 0, fused(t, REAL_INFINITY, REAL_INFINITY), REAL_NAN);
    return choose((t > 0) & (p > 0) & (p < most), real_log_of_shares(t, p), edge);
}

/* 0 log(0/p) is 0, also for p = 0. */
LOSS_FUNCTION real relative_entropy_value(real p, real t, const real *parameter) {
    (void)parameter;
    return choose((t == 0) & (p >= 0), 0, t * relative_entropy_log(p, t));
}

LOSS_FUNCTION real relative_entropy_slope_p(real p, real t, const real *parameter) {
    (void)parameter;
    return choose((t == 0) & (p >= 0), 0, real_ratio_of_shares(0 - t, p));
}

LOSS_FUNCTION real relative_entropy_slope_t(real p, real t, const real *parameter) {
    (void)parameter;
    return relative_entropy_log(p, t) + 1;
}

#endif

LOSS(relative_entropy, (prediction, target), LONG, "divergence of a probability from a prediction of it",
     "t == 0 ? 0 : t*(log(t) - log(p))", "t == 0 ? 0 : -t/p",
     ACCURACY("", ULP(4), ULP(2), ULP_OF(4, "max(abs(log(t) - log(p)), 1)")), NO_PARAMETERS)
