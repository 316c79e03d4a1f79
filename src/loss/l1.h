/* Absolute error. */
#ifndef ONEPASS_LOSS_L1_H
#define ONEPASS_LOSS_L1_H

LOSS_FUNCTION real l1_value(real p, real t, const real *parameter) {
    (void)parameter;
    return magnitude(p - t);
}

LOSS_FUNCTION real l1_slope_p(real p, real t, const real *parameter) {
    (void)parameter;
    const real x = p - t;
    return choose(x == x, sign(x), x); /* NaN has a sign, too, but is to come through */
}

LOSS_FUNCTION real l1_slope_t(real p, real t, const real *parameter) {
    return -l1_slope_p(p, t, parameter);
}

#endif

LOSS(l1, (prediction, target), SHORT, "absolute error", "abs(x)", "sign(x)", ACCURACY("x", ULP(0.5), ULP(0), ULP(0)),
     NO_PARAMETERS)
