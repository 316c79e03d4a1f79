/* Hinge: nothing is lost where prediction and target agree by the margin. */
#ifndef ONEPASS_LOSS_HINGE_H
#define ONEPASS_LOSS_HINGE_H

LOSS_FUNCTION real hinge_value(real p, real t, const real *parameter) {
    const real shortfall = parameter[0] - p * t;
    return not_negative(shortfall);
}

/* The kink included, as in the gradient of PyTorch's clamp. */
LOSS_FUNCTION bool hinge_counts(real p, real t, const real *parameter) {
    return parameter[0] - p * t >= 0;
}

/* Products, not choices of 0: 0 times an infinite operand is NaN, as autograd has it. */
LOSS_FUNCTION real hinge_slope_p(real p, real t, const real *parameter) {
    return minus_if(hinge_counts(p, t, parameter), t);
}

LOSS_FUNCTION bool hinge_has_both(const real *parameter) {
    (void)parameter;
    return true;
}

LOSS_FUNCTION real hinge_both(real p, real t, const real *parameter, real scale, real *gradient) {
    const real value = not_below(parameter[0] - p * t, scale - scale);
    *gradient = scaled_minus_if(hinge_counts(p, t, parameter), t, scale);
    return value;
}

LOSS_FUNCTION real hinge_mended(real gradient, real scale) {
    (void)scale;
    return gradient; /* NaN comes with a NaN as the value, or canonical */
}

LOSS_FUNCTION real hinge_slope_t(real p, real t, const real *parameter) {
    return minus_if(hinge_counts(p, t, parameter), p);
}

#endif

LOSS(hinge, (prediction, target), SHORT_MENDED, "how far the product of prediction and target falls short of a margin",
     "max(margin - p*t, 0)", "margin - p*t >= 0 ? -t : 0", ACCURACY("p*t", ULP(0.5), ULP(0), ULP(0)),
     PARAMETERS({"margin", "the product that is enough", 1.0, ANY}))
