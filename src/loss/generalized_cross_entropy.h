/* Between cross-entropy (q 0) and the probability that the label lacks (q 1), for labels of which some are wrong (Zhang
 * and Sabuncu 2018). */
#ifndef ONEPASS_LOSS_GENERALIZED_CROSS_ENTROPY_H
#define ONEPASS_LOSS_GENERALIZED_CROSS_ENTROPY_H

#include "math/softmax.h"

/* p_y^q = e^(-q nll) for the slopes: from p_y itself, which keeps more digits, unless that is lost. The value does not
 * divide by q while p_y^q is near 1, so that a q of 0 is cross-entropy, bit for bit. */
ROW_FUNCTION generalized_cross_entropy_row(const row_sums *row, const double *parameter, row_slopes *out) {
    const double q = parameter[1], t = q > 0 ? q * row->nll : 0;
    const double power = row->own >= 0x1p-1000 ? wide_power(row->own, q) : wide_decay(t);
    const double lacking = t < WIDE_LN_2 ? row->nll * wide_lack_ratio(t) : (1 - wide_decay(t)) / q;
    out->value = row->weight * lacking;
    out->exponentials = row->weight * power;
    out->weights = 0;
    out->own = 0 - out->exponentials * row->others;
}

#endif

ROW_LOSS(generalized_cross_entropy, LABEL, "what logits' probability of a class index, to a power, lacks of 1",
         "q == 0 ? w[y]*(lse - z[y]) : -w[y]*expm1(q*(z[y] - lse))/q",
         "w[y]*exp(q*(z[y] - lse))*(softmax(z)[c] - (c == y))",
         ACCURACY("", ULP(4), ULP_OF(4, "(1 + q)*w[y]*exp(q*(z[y] - lse))*(softmax(z)[c] - (c == y))")),
         PARAMETERS(IGNORE_INDEX, {"q", "the power: 0 is cross-entropy, 1 the probability lacking", 0.7, BETWEEN(0, 1)},
                    SOFTCAP, TEMPERATURE))
