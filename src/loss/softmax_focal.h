/* Cross-entropy of a row of logits with a label, less of it the surer the label is (Lin et al. 2017). */
#ifndef ONEPASS_LOSS_SOFTMAX_FOCAL_H
#define ONEPASS_LOSS_SOFTMAX_FOCAL_H

#include "math/softmax.h"

/* With u = 1 - p_y the slope has p_y nll / u: nll / u is 1 where the label has all, and p_y nll is 0 where it has
 * nothing. With gamma 0 all of it is cross-entropy's, bit for bit. */
ROW_FUNCTION softmax_focal_row(const row_sums *row, const double *parameter, row_slopes *out) {
    const double alpha = parameter[1], gamma = parameter[2];
    const double power = alpha * row->weight * wide_power(row->others, gamma);
    const double ratio = row->others > 0 ? row->nll / row->others : 1, steeper = row->own > 0 ? row->own * ratio : 0;
    out->value = power * row->nll;
    out->exponentials = power * (1 + gamma * steeper);
    out->weights = 0;
    out->own = 0 - out->exponentials * row->others;
}

#endif

ROW_LOSS(softmax_focal, LABEL, "cross-entropy of logits with a class index, times a power of what others have",
         "alpha*w[y]*pow(1 - softmax(z)[y], gamma)*(lse - z[y])",
         "alpha*w[y]*pow(1 - softmax(z)[y], gamma)*(1 + gamma*softmax(z)[y]*(lse - z[y])/(1 - softmax(z)[y]))"
         "*(softmax(z)[c] - (c == y))",
         ACCURACY("", ULP_OF(4, "(1 + gamma)*alpha*w[y]*pow(1 - softmax(z)[y], gamma)*(lse - z[y])"),
                  ULP_OF(4, "(1 + gamma)*alpha*w[y]*pow(1 - softmax(z)[y], gamma)*(1"
                            " + gamma*softmax(z)[y]*(lse - z[y])/(1 - softmax(z)[y]))*(softmax(z)[c] - (c == y))")),
         PARAMETERS(IGNORE_INDEX, {"alpha", "what the loss is multiplied by", 1, FINITE(0)},
                    {"gamma", "the power of the other classes' probability", 2, FINITE(0)}, SOFTCAP, TEMPERATURE))
