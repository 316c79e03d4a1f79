/* Charbonnier: absolute error, rounded off near the target. */
#ifndef ONEPASS_LOSS_CHARBONNIER_H
#define ONEPASS_LOSS_CHARBONNIER_H

LOSS_FUNCTION real charbonnier_value(real p, real t, const real *parameter) {
    const real eps = parameter[0];
    const real x = p - t;
    return square_root(x * x + eps * eps);
}

/* 0/0 is met with eps = 0, which is l1; a square that underflows to 0 with a tiny eps, which is near enough to it. */
LOSS_FUNCTION real charbonnier_slope_p(real p, real t, const real *parameter) {
    const real root = charbonnier_value(p, t, parameter);
    const real x = p - t;
    return choose(root == 0, sign(x), x / root);
}

LOSS_FUNCTION real charbonnier_slope_t(real p, real t, const real *parameter) {
    return -charbonnier_slope_p(p, t, parameter);
}

#endif

LOSS(charbonnier, (prediction, target), SHORT, "absolute error, smooth near the target", "sqrt(x*x + eps*eps)",
     "x == 0 ? 0 : x/sqrt(x*x + eps*eps)", ACCURACY("x; x*x; eps*eps", ULP(1), ULP(2), ULP(2)),
     PARAMETERS({"eps", "the width of the smooth part", 1e-3, AT_LEAST(0)}))
