/* How far the scores of other classes are above that of a row's own class less a margin. */
#ifndef ONEPASS_LOSS_MULTI_MARGIN_H
#define ONEPASS_LOSS_MULTI_MARGIN_H

#include "math/vector.h"

/* Parameters: p, margin. As PyTorch has it, what is not above 0 counts for nothing, and so does NaN. */
ALWAYS_INLINE double multi_margin_lacking(const real *x, const double *parameter) {
    return (parameter[1] - (double)x[1]) + (double)x[0];
}

/* The second sum is for the slope of the own score, on which all others press. */
VECTOR_FUNCTION multi_margin_terms(const real *x, const double *parameter, double *term) {
    const double lacking = multi_margin_lacking(x, parameter);
    const double above = wide_choose(lacking > 0, lacking, 0);
    term[0] = wide_choose(parameter[0] == 1, above, above * above);
    term[1] = wide_choose(parameter[0] == 1, wide_choose(lacking > 0, 1, 0), above);
}

VECTOR_FUNCTION multi_margin_row(const vector_sums *row, const double *parameter, vector_slopes *out) {
    out->value = row->sum[0] / row->length;
    out->factor[0] = parameter[0] / row->length;
    out->factor[VECTOR_OWN_SLOPE] = 0 - out->factor[0] * row->sum[1];
}

VECTOR_SLOPE multi_margin_slope(int which, const real *x, const double *parameter, const double *factor) {
    const double lacking = multi_margin_lacking(x, parameter);
    (void)which;
    return wide_choose(lacking > 0, wide_choose(parameter[0] == 1, factor[0], factor[0] * lacking), 0);
}

VECTOR_FUNCTION multi_margin_usual(double *parameter) {
    parameter[0] = 1;
}

#endif

VECTOR_LOSS(
    multi_margin, (input, target, class_weight), 1, 2, LABELLED,
    "how far other classes' scores are above that of the target less a margin",
    "w[y]*sum(max(0, margin - z[y] + z)**p, but for z[y])/C",
    "z > z[y] - margin ? w[y]*p*(margin - z[y] + z)**(p - 1)/C : 0; that of z[y] is minus the sum of the others'",
    ACCURACY("", ULP_OF(2, "abs(w[y])*sum((abs(margin) + abs(z[y]) + abs(z))**p)/C"),
             ULP_OF(2, "abs(w[y])*sum((abs(margin) + abs(z[y]) + abs(z))**(p - 1))/C")),
    PARAMETERS({"p", "the power, 1 or 2", 1, BETWEEN(1, 2)},
               {"margin", "how far the own score is to be above the others", 1, ANY_FINITE}))
