/* How far two rows of logits are from each other, as distributions: half of what their probabilities differ by. */
#ifndef ONEPASS_LOSS_TV_DISTANCE_WITH_LOGITS_H
#define ONEPASS_LOSS_TV_DISTANCE_WITH_LOGITS_H

#include "math/vector.h"

/* 1 if the first of two probabilities is larger, -1 if the second is, 0 if none, which makes a NaN of a NaN that it is
 * multiplied by. Of floats it is asked in float: doubles took values of 4096 classes a fifth longer on a Xeon. */
ALWAYS_INLINE real tv_distance_with_logits_sign(real p, real q) {
    return (real)(p > q) - (real)(p < q);
}

VECTOR_FUNCTION tv_distance_with_logits_terms(const real *x, const double *parameter, double *term) {
    const real sign = tv_distance_with_logits_sign(x[0], x[1]);
    (void)parameter;
    term[0] = (double)(x[0] * sign);
    term[1] = (double)(x[1] * sign);
}

VECTOR_FUNCTION tv_distance_with_logits_row(const vector_sums *row, const double *parameter, vector_slopes *out) {
    const double half = 0.5 / parameter[0];
    out->value = wide_choose(row->softmaxes.above == row->softmaxes.above,
                             wide_at_least(0.5 * (row->sum[0] - row->sum[1]), 0), WIDE_NAN); /* of no classes */
    out->factor[0] = half;
    out->factor[1] = row->sum[0] * half;
    out->factor[2] = row->sum[1] * half;
}

VECTOR_SLOPE tv_distance_with_logits_slope(int which, const real *x, const double *parameter, const double *factor) {
    const double p = (double)x[0], q = (double)x[1];
    const double pull = (double)tv_distance_with_logits_sign(x[0], x[1]) * factor[0];
    (void)parameter;
    return which == 0 ? p * (pull - factor[1]) : q * (factor[2] - pull);
}

VECTOR_FUNCTION tv_distance_with_logits_usual(double *parameter) {
    (void)parameter;
}

#endif

VECTOR_LOSS(tv_distance_with_logits, (input, target), 2, 2, SOFTMAX,
            "total variation between two rows of logits, as distributions",
            "sum(abs(p - q))/2, p = softmax(z/temperature), q = softmax(t/temperature)",
            "p*(s - sum(p*s))/(2*temperature), s = sign(p - q)",
            ACCURACY("", ULP_OF(4, "sum(p + q)/2"), ULP_OF(5, "p/temperature"), ULP_OF(5, "q/temperature")),
            PARAMETERS(TEMPERATURE))
