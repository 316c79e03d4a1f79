/* Quantile, or pinball: too low and too high cost differently, so that the best prediction is a quantile. */
#ifndef ONEPASS_LOSS_QUANTILE_H
#define ONEPASS_LOSS_QUANTILE_H

LOSS_FUNCTION real quantile_value(real p, real t, const real *parameter) {
    const real tau = parameter[0];
    const real e = t - p;
    return choose(e < 0, (tau - 1) * e, tau * e); /* NaN is not below 0 and comes through */
}

LOSS_FUNCTION real quantile_slope_p(real p, real t, const real *parameter) {
    const real tau = parameter[0];
    const real e = t - p;
    return choose(e > 0, -tau, choose(e < 0, 1 - tau, e)); /* e itself where it is 0 or NaN */
}

LOSS_FUNCTION real quantile_slope_t(real p, real t, const real *parameter) {
    return -quantile_slope_p(p, t, parameter);
}

#endif

LOSS(quantile, (prediction, target), SHORT, "absolute error, weighted by which side of the target it is on",
     "t - p < 0 ? (tau - 1)*(t - p) : tau*(t - p)", "t - p > 0 ? -tau : t - p < 0 ? 1 - tau : 0",
     ACCURACY("t - p", ULP(1), ULP(0.5), ULP(0.5)),
     PARAMETERS({"tau", "the quantile that the best prediction is", 0.5, WITHIN(0, 1)}))
