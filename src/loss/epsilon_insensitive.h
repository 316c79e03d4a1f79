/* Epsilon-insensitive: absolute error, where small ones cost nothing; the loss of support vector regression. */
#ifndef ONEPASS_LOSS_EPSILON_INSENSITIVE_H
#define ONEPASS_LOSS_EPSILON_INSENSITIVE_H

LOSS_FUNCTION real epsilon_insensitive_value(real p, real t, const real *parameter) {
    const real excess = magnitude(p - t) - parameter[0];
    return not_negative(excess);
}

LOSS_FUNCTION real epsilon_insensitive_slope_p(real p, real t, const real *parameter) {
    const real x = p - t;
    const real slope = choose(magnitude(x) > parameter[0], signed_like(x, 1), 0);
    return choose(x == x, slope, x);
}

LOSS_FUNCTION real epsilon_insensitive_slope_t(real p, real t, const real *parameter) {
    return -epsilon_insensitive_slope_p(p, t, parameter);
}

#endif

LOSS(epsilon_insensitive, (prediction, target), SHORT, "absolute error beyond what is forgiven", "max(abs(x) - eps, 0)",
     "abs(x) > eps ? sign(x) : 0", ACCURACY("x", ULP(0.5), ULP(0), ULP(0)),
     PARAMETERS({"eps", "the error that costs nothing", 0.1, AT_LEAST(0)}))
