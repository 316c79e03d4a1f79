/*
 * Focal: binary cross-entropy of a logit, less where the prediction is right already. With s = sigmoid(p) the
 * probability of being wrong is q = (1 - t)*s + t*(1 - s), and the cross-entropy is multiplied by q^gamma. The square,
 * which nearly everybody wants, needs neither exponential nor logarithm and is a loss of its own, with the bits that
 * the general one has for gamma = 2.
 */
#ifndef ONEPASS_LOSS_FOCAL_H
#define ONEPASS_LOSS_FOCAL_H

#include "math/elementary.h"

/* What value and slopes are made of, given abs(p). A prediction above 0 is wrong by 1 - t, one below by t: with u that
 * and w what is left of 1 the cross-entropy is abs(p)*u + softplus(-abs(p)), and q is u and w, each times its side's
 * probability. */
typedef struct focal_parts {
    real entropy;
    real wrong, right; /* q is their sum */
    real variance;     /* sigmoid(p)*sigmoid(-p) */
} focal_parts;

LOSS_FUNCTION focal_parts focal_parts_of(real p, real t) {
    const real distance = magnitude(p);
    const sigmoids side = quick_sigmoids(distance);
    focal_parts parts;
    parts.entropy = fused(distance, choose(p > 0, 1 - t, t), softplus_of_minus(distance));
    parts.wrong = choose(p > 0, 1 - t, t) * side.of_plus;
    parts.right = choose(p > 0, t, 1 - t) * side.of_minus;
    parts.variance = side.of_minus * side.of_plus;
    return parts;
}

LOSS_FUNCTION real focal_q(real p, real t) {
    return focal_parts_of(p, t).wrong + focal_parts_of(p, t).right;
}

/* q^gamma */
LOSS_FUNCTION real focal_power(real q, real gamma) {
    const real power = choose(gamma == 0, 1, real_exp(gamma * real_log(q)));
    return choose(gamma == 2, q * q, power);
}

/* gamma * q^(gamma - 1). Where q is 0, what it is multiplied by is 0, too; q may be so small that 1/q is infinite. */
LOSS_FUNCTION real focal_power_slope(real q, real gamma) {
    const real slope = gamma * real_ratio(focal_power(q, gamma), q);
    return choose(gamma == 2, 2 * q, choose((q == 0) | (gamma == 0), 0, slope));
}

/* The weight of a class, alpha*t + (1 - alpha)*(1 - t); 1 if alpha is negative. */
LOSS_FUNCTION real focal_balance(real t, real alpha) {
    return choose(alpha < 0, 1, fused(alpha, t, (1 - alpha) * (1 - t)));
}

/* The value and the slopes, given q^gamma and its derivative in q. */
LOSS_FUNCTION real focal_value_of(real p, real t, real alpha, real power) {
    return focal_balance(t, alpha) * (focal_parts_of(p, t).entropy * power);
}

/* The slope of the entropy is sigmoid(p) - t, here without the digits that this loses. */
LOSS_FUNCTION real focal_slope_p_of(real p, real t, real alpha, real power, real power_slope) {
    const focal_parts parts = focal_parts_of(p, t);
    const real size = parts.wrong - parts.right, of_entropy = choose(p > 0, size, 0 - size) * power;
    const real of_power = parts.entropy * (power_slope * ((1 - 2 * t) * parts.variance));
    return focal_balance(t, alpha) * (of_entropy + of_power);
}

LOSS_FUNCTION real focal_slope_t_of(real p, real t, real alpha, real power, real power_slope) {
    const real entropy = focal_parts_of(p, t).entropy;
    const real of_balance = choose(alpha < 0, 0, 2 * alpha - 1) * (entropy * power);
    const real of_power = entropy * (power_slope * real_tanh((real)0.5 * p)); /* sigmoid(p) - sigmoid(-p) */
    return of_balance - focal_balance(t, alpha) * (of_power + p * power);
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

/* The parts that the formulas have several times: the weight of a class, the entropy and the probability of being
 * wrong. */
#define FOCAL_A "(alpha < 0 ? 1 : alpha*t + (1 - alpha)*(1 - t))"
#define FOCAL_E "((1 - t)*p + softplus(-p))"
#define FOCAL_Q "(1 - t)*sigmoid(p) + t*sigmoid(-p)"

/* A power magnifies the error of what it is taken of, and of its logarithm. */
#define FOCAL_MAGNIFIED(gamma) "(1 + " gamma "*max(1, abs(log(" FOCAL_Q "))))"
#define FOCAL_ACCURACY(gamma, power_slope)                                                                             \
    ACCURACY(FOCAL_Q "; pow(" FOCAL_Q ", " gamma "); " FOCAL_E "*" power_slope "*tanh(0.5*p) + p*pow(" FOCAL_Q         \
                     ", " gamma ")",                                                                                   \
             ULP_OF(4, FOCAL_MAGNIFIED(gamma) "*" FOCAL_A "*" FOCAL_E "*pow(" FOCAL_Q ", " gamma ")"),                 \
             ULP_OF(4, FOCAL_MAGNIFIED(gamma) "*" FOCAL_A "*(pow(" FOCAL_Q ", " gamma " + 1) + " FOCAL_E               \
                                              "*" power_slope "*sigmoid(p)*sigmoid(-p))"),                             \
             ULP_OF(4, FOCAL_MAGNIFIED(gamma) "*(" FOCAL_E "*pow(" FOCAL_Q ", " gamma ") + " FOCAL_A "*(" FOCAL_E      \
                                              "*" power_slope "*abs(tanh(0.5*p)) + abs(p)*pow(" FOCAL_Q ", " gamma     \
                                              ")))"))

#endif

LOSS(focal, (prediction, target), LONG, "cross-entropy of a logit, less where the prediction is right already",
     "(alpha < 0 ? 1 : alpha*t + (1 - alpha)*(1 - t))*((1 - t)*p + softplus(-p))*"
     "pow((1 - t)*sigmoid(p) + t*sigmoid(-p), gamma)",
     "(alpha < 0 ? 1 : alpha*t + (1 - alpha)*(1 - t))*((sigmoid(p) - t)*"
     "pow((1 - t)*sigmoid(p) + t*sigmoid(-p), gamma) + ((1 - t)*p + softplus(-p))*gamma*"
     "pow((1 - t)*sigmoid(p) + t*sigmoid(-p), gamma)/((1 - t)*sigmoid(p) + t*sigmoid(-p))*"
     "(1 - 2*t)*sigmoid(p)*sigmoid(-p))",
     FOCAL_ACCURACY("gamma", "gamma*pow(" FOCAL_Q ", gamma)/(" FOCAL_Q ")"),
     PARAMETERS({"alpha", "the weight of positive targets, 1 - alpha that of others; negative: no weights", 0.25,
                 -INFINITY, 1, 0, 0},
                {"gamma", "the power of the probability of being wrong", 2.0, BETWEEN(0, 1e30)}))

LOSS(focal_squared, (prediction, target), LONG,
     "cross-entropy of a logit, times the square of the probability of being wrong: focal with gamma = 2, faster",
     "(alpha < 0 ? 1 : alpha*t + (1 - alpha)*(1 - t))*((1 - t)*p + softplus(-p))*"
     "pow((1 - t)*sigmoid(p) + t*sigmoid(-p), 2)",
     "(alpha < 0 ? 1 : alpha*t + (1 - alpha)*(1 - t))*((sigmoid(p) - t)*"
     "pow((1 - t)*sigmoid(p) + t*sigmoid(-p), 2) + ((1 - t)*p + softplus(-p))*2*"
     "((1 - t)*sigmoid(p) + t*sigmoid(-p))*(1 - 2*t)*sigmoid(p)*sigmoid(-p))",
     FOCAL_ACCURACY("2", "2*(" FOCAL_Q ")"),
     PARAMETERS({"alpha", "the weight of positive targets, 1 - alpha that of others; negative: no weights", 0.25,
                 -INFINITY, 1, 0, 0}))
