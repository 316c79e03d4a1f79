/* Huber: a parabola closer than delta to the target, a line of slope delta beyond. */
#ifndef ONEPASS_LOSS_HUBER_H
#define ONEPASS_LOSS_HUBER_H

LOSS_FUNCTION real huber_value(real p, real t, const real *parameter) {
    const real delta = parameter[0];
    const real distance = magnitude(p - t);
    return choose(distance < delta, (real)0.5 * distance * distance, delta * (distance - (real)0.5 * delta));
}

LOSS_FUNCTION real huber_slope_p(real p, real t, const real *parameter) {
    const real delta = parameter[0];
    const real x = p - t;
    return choose(magnitude(x) >= delta, delta * sign(x), x); /* NaN is not >= delta and comes through */
}

LOSS_FUNCTION real huber_slope_t(real p, real t, const real *parameter) {
    return -huber_slope_p(p, t, parameter);
}

#endif

LOSS(huber, (prediction, target), SHORT,
     "squared error near the target, absolute error beyond, without a jump in scale",
     "abs(x) < delta ? 0.5*x*x : delta*(abs(x) - 0.5*delta)", "abs(x) >= delta ? delta*sign(x) : x",
     ACCURACY("x", ULP(1), ULP(0.5), ULP(0.5)),
     PARAMETERS({"delta", "where the parabola meets the line", 1.0, ABOVE(0)}))
