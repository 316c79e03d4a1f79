/*
 * Focal: binary cross-entropy of a logit, less where the prediction is right already. With s = sigmoid(p) the
 * probability of being wrong is q = (1 - t)*s + t*(1 - s), and the cross-entropy is multiplied by q^gamma. The square,
 * which nearly everybody wants, needs neither exponential nor logarithm and is a loss of its own, with the bits that
 * the general one has for gamma = 2.
 */
#ifndef ONEPASS_LOSS_FOCAL_H
#define ONEPASS_LOSS_FOCAL_H

#include "transcendental.h"

LOSS_FUNCTION real focal_entropy(real p, real t) {
    const real distance = magnitude(p);
    return distance * choose(p > 0, 1 - t, t) + real_softplus(0 - distance);
}

/* The parts of q: a prediction above 0 is wrong where the target is 0, one below where it is 1. */
LOSS_FUNCTION real focal_above(real p, real t) {
    return (1 - t) * real_sigmoid(p);
}

LOSS_FUNCTION real focal_below(real p, real t) {
    return t * real_sigmoid(0 - p);
}

/* q^gamma */
LOSS_FUNCTION real focal_power(real q, real gamma) {
    const real power = choose(gamma == 0, 1, real_exp(gamma * real_log(q)));
    return choose(gamma == 2, q * q, power);
}

/* gamma * q^(gamma - 1). Where q is 0, what it is multiplied by is 0, too; q may be so small that 1/q is infinite. */
LOSS_FUNCTION real focal_power_slope(real q, real gamma) {
    const real slope = gamma * (focal_power(q, gamma) / q);
    return choose(gamma == 2, 2 * q, choose((q == 0) | (gamma == 0), 0, slope));
}

/* The weight of a class; none if alpha is negative. */
LOSS_FUNCTION real focal_balance(real t, real alpha) {
    return choose(alpha < 0, 1, alpha * t + (1 - alpha) * (1 - t));
}

/* The value and the slopes, given q^gamma and its derivative in q. */
LOSS_FUNCTION real focal_value_of(real p, real t, real alpha, real power) {
    return focal_balance(t, alpha) * (focal_entropy(p, t) * power);
}

/* The slope of the entropy is s - t, here without the digits that this loses. */
LOSS_FUNCTION real focal_slope_p_of(real p, real t, real alpha, real power, real power_slope) {
    const real of_entropy = (focal_above(p, t) - focal_below(p, t)) * power;
    const real of_q = (1 - 2 * t) * (real_sigmoid(p) * real_sigmoid(-p));
    const real of_power = focal_entropy(p, t) * (power_slope * of_q);
    return focal_balance(t, alpha) * (of_entropy + of_power);
}

LOSS_FUNCTION real focal_slope_t_of(real p, real t, real alpha, real power, real power_slope) {
    const real entropy = focal_entropy(p, t);
    const real of_balance = choose(alpha < 0, 0, 2 * alpha - 1) * (entropy * power);
    const real of_power = entropy * (power_slope * real_tanh((real)0.5 * p)); /* sigmoid(p) - sigmoid(-p) */
    return of_balance - focal_balance(t, alpha) * (of_power + p * power);
}

LOSS_FUNCTION real focal_q(real p, real t) {
    return focal_above(p, t) + focal_below(p, t);
}

LOSS_FUNCTION real focal_value(real p, real t, const real *parameter) {
    return focal_value_of(p, t, parameter[0], focal_power(focal_q(p, t), parameter[1]));
}

LOSS_FUNCTION real focal_slope_p(real p, real t, const real *parameter) {
    const real q = focal_q(p, t), gamma = parameter[1];
    return focal_slope_p_of(p, t, parameter[0], focal_power(q, gamma), focal_power_slope(q, gamma));
}

LOSS_FUNCTION real focal_slope_t(real p, real t, const real *parameter) {
    const real q = focal_q(p, t), gamma = parameter[1];
    return focal_slope_t_of(p, t, parameter[0], focal_power(q, gamma), focal_power_slope(q, gamma));
}

LOSS_FUNCTION real focal_squared_value(real p, real t, const real *parameter) {
    const real q = focal_q(p, t);
    return focal_value_of(p, t, parameter[0], q * q);
}

LOSS_FUNCTION real focal_squared_slope_p(real p, real t, const real *parameter) {
    const real q = focal_q(p, t);
    return focal_slope_p_of(p, t, parameter[0], q * q, 2 * q);
}

LOSS_FUNCTION real focal_squared_slope_t(real p, real t, const real *parameter) {
    const real q = focal_q(p, t);
    return focal_slope_t_of(p, t, parameter[0], q * q, 2 * q);
}

#endif

LOSS(focal, (prediction, target), "cross-entropy of a logit, less where the prediction is right already",
     "(alpha < 0 ? 1 : alpha*t + (1 - alpha)*(1 - t))*((1 - t)*p + softplus(-p))*"
     "pow((1 - t)*sigmoid(p) + t*sigmoid(-p), gamma)",
     "(alpha < 0 ? 1 : alpha*t + (1 - alpha)*(1 - t))*((sigmoid(p) - t)*"
     "pow((1 - t)*sigmoid(p) + t*sigmoid(-p), gamma) + ((1 - t)*p + softplus(-p))*gamma*"
     "pow((1 - t)*sigmoid(p) + t*sigmoid(-p), gamma - 1)*(1 - 2*t)*sigmoid(p)*sigmoid(-p))",
     PARAMETERS({"alpha", "the weight of positive targets, 1 - alpha that of others; negative: no weights", 0.25,
                 -INFINITY, 1, 0, 0},
                {"gamma", "the power of the probability of being wrong", 2.0, AT_LEAST(0)}))

LOSS(focal_squared, (prediction, target),
     "cross-entropy of a logit, times the square of the probability of being wrong: focal with gamma = 2, faster",
     "(alpha < 0 ? 1 : alpha*t + (1 - alpha)*(1 - t))*((1 - t)*p + softplus(-p))*"
     "pow((1 - t)*sigmoid(p) + t*sigmoid(-p), 2)",
     "(alpha < 0 ? 1 : alpha*t + (1 - alpha)*(1 - t))*((sigmoid(p) - t)*"
     "pow((1 - t)*sigmoid(p) + t*sigmoid(-p), 2) + ((1 - t)*p + softplus(-p))*2*"
     "((1 - t)*sigmoid(p) + t*sigmoid(-p))*(1 - 2*t)*sigmoid(p)*sigmoid(-p))",
     PARAMETERS({"alpha", "the weight of positive targets, 1 - alpha that of others; negative: no weights", 0.25,
                 -INFINITY, 1, 0, 0}))
