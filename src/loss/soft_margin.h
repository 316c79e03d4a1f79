/* Soft margin: the logistic loss of a target that is 1 or -1. */
#ifndef ONEPASS_LOSS_SOFT_MARGIN_H
#define ONEPASS_LOSS_SOFT_MARGIN_H

#include "math/elementary.h"

LOSS_FUNCTION real soft_margin_value(real p, real t, const real *parameter) {
    (void)parameter;
    return real_softplus(0 - t * p);
}

/* 0 - s and not -s, which a slope must not end in; where s underflows, the zero has the sign of the other operand. */
LOSS_FUNCTION real soft_margin_factor(real p, real t) {
    return 0 - real_sigmoid(0 - t * p);
}

LOSS_FUNCTION real soft_margin_slope_p(real p, real t, const real *parameter) {
    (void)parameter;
    return soft_margin_factor(p, t) * t;
}

LOSS_FUNCTION real soft_margin_slope_t(real p, real t, const real *parameter) {
    (void)parameter;
    return soft_margin_factor(p, t) * p;
}

#endif

LOSS(soft_margin, (prediction, target), LONG, "logistic loss of a target that is 1 or -1", "softplus(-(t*p))",
     "-t*sigmoid(-(t*p))", ACCURACY("t*p; sigmoid(-(t*p))", ULP(2), ULP(1.5), ULP(1.5)), NO_PARAMETERS)
