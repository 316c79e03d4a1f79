/* Cross-entropy of a row of logits with a label. */
#ifndef ONEPASS_LOSS_CROSS_ENTROPY_H
#define ONEPASS_LOSS_CROSS_ENTROPY_H

#include "math/softmax.h"

/* A smoothed label gives the share s of itself to all classes alike; z_loss draws the logarithm of the sum to 0. */
ROW_FUNCTION cross_entropy_row(const row_sums *row, const double *parameter, row_slopes *out) {
    const double s = parameter[1], z_loss = parameter[2], w = row->weight;
    const double share = s != 0 ? s / row->classes : 0, kept = (1 - s) * w;
    const double pull = z_loss != 0 ? 2 * z_loss * row->lse : 0;
    out->value = kept * row->nll;
    if (s != 0)
        out->value = out->value + share * row->weighted;
    if (z_loss != 0)
        out->value = out->value + z_loss * row->lse * row->lse;
    out->exponentials = kept + share * row->weights + pull;
    out->weights = share;
    out->own = (share * (row->weights * row->own - w) - kept * row->others) + pull * row->own;
}

#endif

ROW_LOSS(cross_entropy, LABEL, "cross-entropy of logits with a class index",
         "(1 - s)*w[y]*(lse - z[y]) + s/C*sum(w*(lse - z)) + z_loss*lse*lse",
         "((1 - s)*w[y] + s/C*sum(w) + 2*z_loss*lse)*softmax(z)[c] - s/C*w[c] - (c == y)*(1 - s)*w[y]",
         ACCURACY("", ULP(4), ULP(4)),
         PARAMETERS(IGNORE_INDEX,
                    {"label_smoothing", "the share s of a label that goes to all classes alike", 0, BETWEEN(0, 1)},
                    Z_LOSS, SOFTCAP, TEMPERATURE))
