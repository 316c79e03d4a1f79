/* Squared hinge: the square of how far prediction and target fall short of agreeing by the margin. */
#ifndef ONEPASS_LOSS_SQUARED_HINGE_H
#define ONEPASS_LOSS_SQUARED_HINGE_H

LOSS_FUNCTION real squared_hinge_value(real p, real t, const real *parameter) {
    const real shortfall = parameter[0] - p * t;
    const real m = not_negative(shortfall);
    return m * m;
}

/* -2 times the shortfall, which is to be multiplied by the other operand: 0 times an infinite one is NaN, as autograd
 * has it. Like the gradient of PyTorch's clamp it is a zero where the shortfall is NaN. */
LOSS_FUNCTION real squared_hinge_factor(real p, real t, const real *parameter) {
    const real shortfall = parameter[0] - p * t;
    return -2 * choose(shortfall >= 0, shortfall, 0);
}

LOSS_FUNCTION real squared_hinge_slope_p(real p, real t, const real *parameter) {
    return squared_hinge_factor(p, t, parameter) * t;
}

LOSS_FUNCTION real squared_hinge_slope_t(real p, real t, const real *parameter) {
    return squared_hinge_factor(p, t, parameter) * p;
}

#endif

LOSS(squared_hinge, (prediction, target), SHORT,
     "square of how far the product of prediction and target falls short of a margin",
     "max(margin - p*t, 0)*max(margin - p*t, 0)", "margin - p*t >= 0 ? -2*(margin - p*t)*t : 0",
     ACCURACY("p*t", ULP(1.5), ULP(1.5), ULP(1.5)), PARAMETERS({"margin", "the product that is enough", 1.0, ANY}))
