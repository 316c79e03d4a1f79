/* How far the scores of other classes are above those of a row's own classes less 1. */
#ifndef ONEPASS_LOSS_MULTILABEL_MARGIN_H
#define ONEPASS_LOSS_MULTILABEL_MARGIN_H

#include "math/vector.h"

/* As PyTorch has it, what is not above 0 counts for nothing, and so does NaN. */
ALWAYS_INLINE double multilabel_margin_lacking(const real *x) {
    return (1 - (double)x[1]) + (double)x[0];
}

VECTOR_FUNCTION multilabel_margin_terms(const real *x, const double *parameter, double *term) {
    const double lacking = multilabel_margin_lacking(x);
    (void)parameter;
    term[0] = wide_choose(lacking > 0, lacking, 0);
}

VECTOR_FUNCTION multilabel_margin_row(const vector_sums *row, const double *parameter, vector_slopes *out) {
    (void)parameter;
    out->value = row->sum[0] / row->length;
    out->factor[0] = 1 / row->length;
}

VECTOR_SLOPE multilabel_margin_slope(int which, const real *x, const double *parameter, const double *factor) {
    (void)which;
    (void)parameter;
    return wide_choose(multilabel_margin_lacking(x) > 0, factor[0], 0);
}

VECTOR_FUNCTION multilabel_margin_usual(double *parameter) {
    (void)parameter;
}

#endif

VECTOR_LOSS(multilabel_margin, (input, target), 1, 1, MULTILABEL,
            "how far other classes' scores are above those of the targets less 1",
            "sum(max(0, 1 - z[y] + z), for each y, but for z of any y)/C",
            "(how many z[y] - 1 are below z)/C; that of z[y] is minus how many other z are above z[y] - 1, over C",
            ACCURACY("", ULP_OF(2, "sum(1 + abs(z[y]) + abs(z), for each y)/C"), ULP(1)), NO_PARAMETERS)
