/*
 * Deviance of Tweedie's distributions, whose variance is a power of the mean: Poisson's is that of power 1, the gamma
 * distribution's of 2, the inverse Gaussian's of 3; between 1 and 2 they are sums of gamma variables, as many as
 * Poisson's distribution says: amounts of rain, or of claims, of which many are 0. NaN where prediction or target is
 * below 0.
 *
 * With L = log(t/p), c = power - 1 and a = 2 - power the deviance is 2 p^a (e^(aL) / (a(a-1)) - e^L / (a-1) + 1/a). The
 * sum in parentheses is the divided difference of e^(zL) over z = 0, 1 and a, and is taken as one, so that no digits
 * are lost where t is near p, nor where the power is near 1 or 2, which are no special cases then. The largest of the
 * three exponentials is factored out; from it the other two fall, with d = abs(L), as e^(-near*d) and e^(-far*d).
 */
#ifndef ONEPASS_LOSS_TWEEDIE_DEVIANCE_H
#define ONEPASS_LOSS_TWEEDIE_DEVIANCE_H

#include "math/elementary.h"

/* abs(log(t/p)), infinite where one of the two is 0, NaN where one is below. */
LOSS_FUNCTION real tweedie_distance(real p, real t) {
    const real distance = real_log_of_ratio(choose(t > p, t, p), choose(t > p, p, t));
    return choose((p >= 0) & (t >= 0), distance, REAL_NAN);
}

/* (1 - e^(-a*d)) / a */
LOSS_FUNCTION real tweedie_fall(real d, real a, real reciprocal_of_a) {
    return choose(a == 0, d, (0 - real_expm1(0 - a * d)) * reciprocal_of_a);
}

/* The divided difference of e^z over z = 0, -u and -w, for 0 <= u <= w <= 1: the sum of (-u)^i (-w)^j / (i+j+2)!. */
#define TWEEDIE_TERM(factorial)                                                                                        \
    tail = fused(-w, tail, (real)(1.0 / (factorial)));                                                                 \
    sum = fused(-u, sum, tail)

LOSS_FUNCTION real tweedie_series(real u, real w) {
#if defined(ONEPASS_REAL_F64)
    real tail = 1.0 / 2432902008176640000, sum = tail; /* 20! */
    TWEEDIE_TERM(121645100408832000);
    TWEEDIE_TERM(6402373705728000);
    TWEEDIE_TERM(355687428096000);
    TWEEDIE_TERM(20922789888000);
    TWEEDIE_TERM(1307674368000);
    TWEEDIE_TERM(87178291200);
    TWEEDIE_TERM(6227020800);
    TWEEDIE_TERM(479001600);
#else
    real tail = (real)(1.0 / 479001600), sum = tail; /* 12! */
#endif
    TWEEDIE_TERM(39916800);
    TWEEDIE_TERM(3628800);
    TWEEDIE_TERM(362880);
    TWEEDIE_TERM(40320);
    TWEEDIE_TERM(5040);
    TWEEDIE_TERM(720);
    TWEEDIE_TERM(120);
    TWEEDIE_TERM(24);
    TWEEDIE_TERM(6);
    TWEEDIE_TERM(2);
    return sum;
}

/* The sum in parentheses over its largest exponential. */
LOSS_FUNCTION real tweedie_share(real p, real t, real power) {
    const real c = power - 1, d = tweedie_distance(p, t);
    const real above = choose(c < 1, c, 1), below = magnitude(2 - power), span = choose(c < 1, 1, c);
    const real of_above = by_parameter(1, above), of_below = by_parameter(1, below);
    const real near = choose(t > p, above, below), rest = choose(t > p, below, above);
    const real fall = tweedie_fall(d, near, choose(t > p, of_above, of_below));
    const real further = tweedie_fall(d, rest, choose(t > p, of_below, of_above));
    const real apart = by_parameter(fall - real_exp(0 - near * d) * further, span);
    return choose(span * d < 1, d * d * tweedie_series(near * d, span * d), choose(t == 0, of_below, apart));
}

LOSS_FUNCTION real tweedie_deviance_value(real p, real t, const real *parameter) {
    const real power = parameter[0];
    const real base = choose((t > p) | (power <= 2), p, t), factor = choose(t > p, t, base);
    const real value = power_product(base, 1 - power, factor, 2 * tweedie_share(p, t, power));
    return choose(((p == 0) & (t > 0)) | ((t == 0) & (p > 0) & (power >= 2)), REAL_INFINITY, value);
}

LOSS_FUNCTION real tweedie_deviance_slope_p(real p, real t, const real *parameter) {
    return power_product(p, 0 - parameter[0], p - t, 2);
}

LOSS_FUNCTION real tweedie_deviance_slope_t(real p, real t, const real *parameter) {
    const real c = parameter[0] - 1;
    const real fall = tweedie_fall(tweedie_distance(p, t), c, by_parameter(1, c));
    return power_product(choose(t > p, p, t), 0 - c, fall, choose(t > p, 2, -2));
}

#endif

LOSS(tweedie_deviance, (prediction, target), LONG_FEW_LINES,
     "deviance of a number, given the mean of a distribution whose variance is a power of it",
     "power == 1 ? 2*((t == 0 ? 0 : t*(log(t) - log(p))) - t + p) : "
     "(power == 2 ? 2*(t/p - 1 - log(t) + log(p)) : "
     "2*(pow(t, 2 - power)/((1 - power)*(2 - power)) - t*pow(p, 1 - power)/(1 - power) + "
     "pow(p, 2 - power)/(2 - power)))",
     "2*x*pow(p, -power)", ACCURACY("", ULP(6), ULP(2), ULP(5)),
     PARAMETERS({"power", "of the mean that the variance is: 1 Poisson, 1 to 2 compound, 2 gamma, 3 inverse Gaussian",
                 1.5, 1, 3, 0, 0}))
