/* Margin ranking: the first input is to be above the second by a margin where the target is 1, below where it is -1. */
#ifndef ONEPASS_LOSS_MARGIN_RANKING_H
#define ONEPASS_LOSS_MARGIN_RANKING_H

LOSS_FUNCTION real margin_ranking_value(real p, real t, real v, const real *parameter) {
    const real shortfall = parameter[0] - v * (p - t);
    return not_negative(shortfall);
}

/* The kink included, as in the gradient of PyTorch's clamp_min. */
LOSS_FUNCTION bool margin_ranking_counts(real p, real t, real v, const real *parameter) {
    return parameter[0] - v * (p - t) >= 0;
}

LOSS_FUNCTION real margin_ranking_slope_p(real p, real t, real v, const real *parameter) {
    return minus_if(margin_ranking_counts(p, t, v, parameter), v);
}

LOSS_FUNCTION bool margin_ranking_has_both(const real *parameter) {
    (void)parameter;
    return true;
}

LOSS_FUNCTION real margin_ranking_both(real p, real t, real v, const real *parameter, real scale, real *gradient) {
    const real value = not_below(parameter[0] - v * (p - t), scale - scale);
    *gradient = scaled_minus_if(margin_ranking_counts(p, t, v, parameter), v, scale);
    return value;
}

LOSS_FUNCTION real margin_ranking_mended(real gradient, real scale) {
    (void)scale;
    return gradient; /* NaN comes with a NaN as the value, or canonical */
}

LOSS_FUNCTION real margin_ranking_slope_t(real p, real t, real v, const real *parameter) {
    return -margin_ranking_slope_p(p, t, v, parameter);
}

LOSS_FUNCTION real margin_ranking_slope_v(real p, real t, real v, const real *parameter) {
    return minus_if(margin_ranking_counts(p, t, v, parameter), p - t);
}

#endif

LOSS(margin_ranking, (input1, input2, target), SHORT_MENDED, "how far two inputs fall short of a margin between them",
     "max(margin - v*x, 0)", "margin - v*x >= 0 ? -v : 0", ACCURACY("x; v*x", ULP(0.5), ULP(0), ULP(0), ULP(0.5)),
     PARAMETERS({"margin", "the difference, in the target's direction, that is enough", 0.0, ANY}))
