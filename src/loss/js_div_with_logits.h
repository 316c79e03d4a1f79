/* How far two rows of logits are from a mixture of them, as distributions: the divergence of Jensen and Shannon. */
#ifndef ONEPASS_LOSS_JS_DIV_WITH_LOGITS_H
#define ONEPASS_LOSS_JS_DIV_WITH_LOGITS_H

#include "math/vector.h"

/* share * log(a / m) of a probability and the mixture; nobody asks for a = 0, which leaves some number. */
ALWAYS_INLINE double js_div_log(real a, real mixture, double share) {
    const bool is_there = (a > 0) & (mixture > 0);
    const real log = real_log_of_shares(choose(is_there, a, 1), choose(is_there, mixture, 1));
    return wide_choose(is_there, share * (double)log, 0);
}

ALWAYS_INLINE real js_div_mixture(const double *parameter, real p, real q) {
    return (real)((1 - parameter[0]) * (double)p + parameter[0] * (double)q);
}

/* Parameters: beta, temperature. */
VECTOR_FUNCTION js_div_with_logits_terms(const real *x, const double *parameter, double *term) {
    const real p = x[0], q = x[1], mixture = js_div_mixture(parameter, p, q);
    term[0] = (double)p * js_div_log(p, mixture, 1 - parameter[0]);
    term[1] = (double)q * js_div_log(q, mixture, parameter[0]);
}

VECTOR_FUNCTION js_div_with_logits_row(const vector_sums *row, const double *parameter, vector_slopes *out) {
    const double per_temperature = 1 / parameter[1];
    out->value = wide_choose(row->softmaxes.above == row->softmaxes.above, wide_at_least(row->sum[0] + row->sum[1], 0),
                             WIDE_NAN); /* which no classes have */
    out->factor[0] = per_temperature;
    out->factor[1] = row->sum[0] * per_temperature;
    out->factor[2] = row->sum[1] * per_temperature;
}

VECTOR_SLOPE js_div_with_logits_slope(int which, const real *x, const double *parameter, const double *factor) {
    const real p = x[0], q = x[1], mixture = js_div_mixture(parameter, p, q);
    return which == 0 ? (double)p * (js_div_log(p, mixture, 1 - parameter[0]) * factor[0] - factor[1])
                      : (double)q * (js_div_log(q, mixture, parameter[0]) * factor[0] - factor[2]);
}

VECTOR_FUNCTION js_div_with_logits_usual(double *parameter) {
    (void)parameter;
}

#endif

VECTOR_LOSS(js_div_with_logits, (input, target), 2, 2, SOFTMAX,
            "divergence of two rows of logits, as distributions, from a mixture of them",
            "(1 - beta)*sum(p*log(p/m)) + beta*sum(q*log(q/m)), m = (1 - beta)*p + beta*q, p = softmax(z/temperature), "
            "q = softmax(t/temperature)",
            "(1 - beta)*p*(log(p/m) - sum(p*log(p/m)))/temperature",
            ACCURACY("", ULP_OF(4, "(1 - beta)*sum(p*(abs(log(p/m)) + 1)) + beta*sum(q*(abs(log(q/m)) + 1))"),
                     ULP_OF(6, "(1 - beta)*p*(abs(log(p/m)) + 1)/temperature"),
                     ULP_OF(6, "beta*q*(abs(log(q/m)) + 1)/temperature")),
            PARAMETERS({"beta", "the target's share of the mixture", 0.5, WITHIN(0, 1)}, TEMPERATURE))
