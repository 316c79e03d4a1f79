/* Cross-entropy of a row of logits with a probability for each class. */
#ifndef ONEPASS_LOSS_CROSS_ENTROPY_WITH_PROBABILITIES_H
#define ONEPASS_LOSS_CROSS_ENTROPY_WITH_PROBABILITIES_H

#include "math/softmax.h"

/* Probabilities q_c come smoothed: u_c = w_c ((1 - s) q_c + s / classes). */
ROW_FUNCTION cross_entropy_with_probabilities_row(const row_sums *row, const double *parameter, row_slopes *out) {
    const double z_loss = parameter[1], pull = z_loss != 0 ? 2 * z_loss * row->lse : 0;
    out->value = row->weighted;
    if (z_loss != 0)
        out->value = out->value + z_loss * row->lse * row->lse;
    out->exponentials = row->weights + pull;
    out->weights = 1;
    out->own = 0;
}

#endif

ROW_LOSS(cross_entropy_with_probabilities, PROBABILITIES, "cross-entropy of logits with a probability for each class",
         "sum(w*((1 - s)*q + s/C)*(lse - z)) + z_loss*lse*lse",
         "(sum(w*((1 - s)*q + s/C)) + 2*z_loss*lse)*softmax(z)[c] - w[c]*((1 - s)*q[c] + s/C)",
         ACCURACY("", ULP(4), ULP(4), ULP(4)),
         PARAMETERS({"label_smoothing", "the share s of the probabilities that goes to all classes alike", 0,
                     BETWEEN(0, 1)},
                    Z_LOSS, SOFTCAP, TEMPERATURE))
