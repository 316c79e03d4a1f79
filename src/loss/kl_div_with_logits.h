/* How far one row of logits is from another, as distributions: the divergence of Kullback and Leibler of the target's
 * from the input's. The other way round is the same loss with the operands exchanged. */
#ifndef ONEPASS_LOSS_KL_DIV_WITH_LOGITS_H
#define ONEPASS_LOSS_KL_DIV_WITH_LOGITS_H

#include "math/vector.h"

/* log q - log p of an element is apart / temperature - above. A divergence is not negative, but for roundings. */
VECTOR_FUNCTION kl_div_with_logits_row(const vector_sums *row, const double *parameter, vector_slopes *out) {
    const double per_temperature = 1 / parameter[0], above = row->softmaxes.above;
    out->value = wide_at_least(row->softmaxes.carried * per_temperature - above, 0);
    out->factor[0] = per_temperature;
    out->factor[1] = per_temperature * per_temperature;
    out->factor[2] = (above + out->value) * per_temperature;
}

VECTOR_SLOPE kl_div_with_logits_slope(int which, const real *x, const double *parameter, const double *factor) {
    const real p = x[0], q = x[1], apart = x[2];
    (void)parameter;
    return which == 0 ? (double)((p - q) * (real)factor[0])
                      : wide_choose(q == 0, 0, (double)q * ((double)apart * factor[1] - factor[2]));
}

VECTOR_FUNCTION kl_div_with_logits_usual(double *parameter) {
    (void)parameter;
}

#endif

VECTOR_LOSS(kl_div_with_logits, (input, target), 2, 0, CARRIED,
            "divergence of a target's distribution from an input's, both of them rows of logits",
            "sum(q*(log(q) - log(p))), p = softmax(z/temperature), q = softmax(t/temperature)", "(p - q)/temperature",
            ACCURACY("", ULP_OF(4, "sum(q*(max(t) - t + max(z) - z))/temperature + 2 - max(p) - max(q)"),
                     ULP_OF(5, "(p + q)/temperature"),
                     ULP_OF(4, "q*((max(t) - t + max(z) - z)/temperature + value + 1)/temperature")),
            PARAMETERS(TEMPERATURE))
