/* Squared error. */
#ifndef ONEPASS_LOSS_MSE_H
#define ONEPASS_LOSS_MSE_H

LOSS_FUNCTION real mse_value(real p, real t, const real *parameter) {
    (void)parameter;
    const real x = p - t;
    return x * x;
}

LOSS_FUNCTION real mse_slope_p(real p, real t, const real *parameter) {
    (void)parameter;
    return 2 * (p - t);
}

LOSS_FUNCTION real mse_slope_t(real p, real t, const real *parameter) {
    return -mse_slope_p(p, t, parameter);
}

#endif

LOSS(mse, (prediction, target), SHORT, "squared error", "x*x", "2*x", ACCURACY("x", ULP(0.5), ULP(0.5), ULP(0.5)),
     NO_PARAMETERS)
