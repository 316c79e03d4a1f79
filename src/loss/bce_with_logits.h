/*
 * Binary cross-entropy of a logit, without or with a weight for what is positive.
 *
 * The loss is (1 - t)*p + (1 - t + v*t)*softplus(-p). With softplus(-p) = max(-p, 0) + softplus(-abs(p)) the two large
 * terms, which cancel where p is far below 0, become one: abs(p) times 1 - t on the one side of 0, v*t on the other.
 * The slope is minus or plus that, and plus or minus (1 - t + v*t)*sigmoid(-abs(p)): near 1 a sigmoid has no digits
 * left.
 */
#ifndef ONEPASS_LOSS_BCE_WITH_LOGITS_H
#define ONEPASS_LOSS_BCE_WITH_LOGITS_H

#include "math/elementary.h"

LOSS_FUNCTION real bce_with_logits_value(real p, real t, const real *parameter) {
    (void)parameter;
    const real distance = magnitude(p);
    return distance * choose(p > 0, 1 - t, t) + real_softplus(0 - distance);
}

LOSS_FUNCTION real bce_with_logits_slope_p(real p, real t, const real *parameter) {
    (void)parameter;
    const real wrong = choose(p > 0, 1 - t, t), share = real_sigmoid_of_minus(magnitude(p));
    return choose(p > 0, wrong - share, share - wrong);
}

LOSS_FUNCTION real bce_with_logits_slope_t(real p, real t, const real *parameter) {
    (void)t, (void)parameter;
    return -p;
}

LOSS_FUNCTION real bce_with_logits_pos_weight_value(real p, real t, real v, const real *parameter) {
    (void)parameter;
    const real distance = magnitude(p), negative = 1 - t, positive = v * t;
    return distance * choose(p > 0, negative, positive) + (negative + positive) * real_softplus(0 - distance);
}

LOSS_FUNCTION real bce_with_logits_pos_weight_slope_p(real p, real t, real v, const real *parameter) {
    (void)parameter;
    const real negative = 1 - t, positive = v * t, wrong = choose(p > 0, negative, positive);
    const real share = (negative + positive) * real_sigmoid_of_minus(magnitude(p));
    return choose(p > 0, wrong - share, share - wrong);
}

LOSS_FUNCTION real bce_with_logits_pos_weight_slope_t(real p, real t, real v, const real *parameter) {
    (void)t, (void)parameter;
    const real distance = magnitude(p);
    return distance * choose(p > 0, -1, v) + (v - 1) * real_softplus(0 - distance);
}

LOSS_FUNCTION real bce_with_logits_pos_weight_slope_v(real p, real t, real v, const real *parameter) {
    (void)v, (void)parameter;
    return t * real_softplus(0 - p);
}

#endif

LOSS(bce_with_logits, (prediction, target), LONG, "cross-entropy of a logit with a target from 0 to 1",
     "(1 - t)*p + softplus(-p)", "sigmoid(p) - t", ACCURACY("", ULP(3), ULP_OF(2, "sigmoid(-abs(p))"), ULP(0)),
     NO_PARAMETERS)

LOSS(bce_with_logits_pos_weight, (prediction, target, pos_weight), LONG,
     "cross-entropy of a logit with a target from 0 to 1, what is positive being weighted",
     "(1 - t)*p + (1 - t + v*t)*softplus(-p)", "(1 - t + v*t)*sigmoid(p) - v*t",
     ACCURACY("v*t", ULP(3), ULP_OF(3, "(1 - t)*sigmoid(p)"), ULP_OF(3, "softplus(p)"), ULP(3)), NO_PARAMETERS)
