/* The logarithm of the probability that a row of logits gives to its label. */
#ifndef ONEPASS_LOSS_LOG_PROB_H
#define ONEPASS_LOSS_LOG_PROB_H

#include "math/softmax.h"

ROW_FUNCTION log_prob_row(const row_sums *row, const double *parameter, row_slopes *out) {
    (void)parameter;
    out->value = -(row->weight * row->nll);
    out->exponentials = -row->weight;
    out->weights = 0;
    out->own = row->weight * row->others;
}

#endif

ROW_LOSS(log_prob, LABEL, "logarithm of the probability that logits give to a class index", "w[y]*(z[y] - lse)",
         "w[y]*((c == y) - softmax(z)[c])", ACCURACY("", ULP(4), ULP(4)),
         PARAMETERS(IGNORE_INDEX, SOFTCAP, TEMPERATURE))
