/* Cross-entropy of a row of logits with a label, and the first term of its expansion in what the others have once more
 * (PolyLoss, Leng et al. 2022). */
#ifndef ONEPASS_LOSS_POLY_H
#define ONEPASS_LOSS_POLY_H

#include "math/softmax.h"

ROW_FUNCTION poly_row(const row_sums *row, const double *parameter, row_slopes *out) {
    const double epsilon = parameter[1], steeper = row->weight * (1 + epsilon * row->own);
    out->value = row->weight * (row->nll + epsilon * row->others);
    out->exponentials = steeper;
    out->weights = 0;
    out->own = -(steeper * row->others);
}

#endif

ROW_LOSS(poly, LABEL, "cross-entropy of logits with a class index, and a multiple of what others have",
         "w[y]*(lse - z[y] + epsilon*(1 - softmax(z)[y]))",
         "w[y]*(1 + epsilon*softmax(z)[y])*(softmax(z)[c] - (c == y))", ACCURACY("", ULP(4), ULP(4)),
         PARAMETERS(IGNORE_INDEX,
                    {"epsilon", "how often the probability of the other classes is added", 2, AT_LEAST(0)}, SOFTCAP,
                    TEMPERATURE))
