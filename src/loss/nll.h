/* Negative log-likelihood of a row of log-probabilities: minus the label's. */
#ifndef ONEPASS_LOSS_NLL_H
#define ONEPASS_LOSS_NLL_H

#include "math/softmax.h"

ROW_FUNCTION nll_row(const row_sums *row, const double *parameter, row_slopes *out) {
    (void)parameter;
    out->value = row->weight * row->nll;
    out->exponentials = 0;
    out->weights = 0;
    out->own = -row->weight;
}

#endif

ROW_LOSS(nll, PICKED, "minus the log-probability of a class index", "-w[y]*z[y]", "-w[y]*(c == y)",
         ACCURACY("", ULP(0.5), ULP(0.5)), PARAMETERS(IGNORE_INDEX))
