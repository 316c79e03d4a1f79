/* How little of a region is found: Tversky's index of probabilities, or of logits, taken from 1. With both of its
 * parameters 1/2 it is Dice's, with both 1 Jaccard's. */
#ifndef ONEPASS_LOSS_TVERSKY_H
#define ONEPASS_LOSS_TVERSKY_H

#include "math/vector.h"

/* What is found, found wrongly, and missed, of a probability, of its complement, and of the target. Each is summed by
 * itself, so that nothing cancels. */
VECTOR_FUNCTION tversky_parts(double found, double other, double target, double *term) {
    term[0] = found * target;
    term[1] = found * (1 - target);
    term[2] = other * target;
}

VECTOR_FUNCTION tversky_terms(const vector_element *x, const double *parameter, double *term) {
    (void)parameter;
    tversky_parts((double)x[0], 1 - (double)x[0], (double)x[1], term);
}

/* Parameters: alpha, beta, smooth, eps. */
VECTOR_FUNCTION tversky_row(const vector_sums *row, const double *parameter, vector_slopes *out) {
    const double alpha = parameter[0], beta = parameter[1], smooth = parameter[2], eps = parameter[3];
    const double lost = alpha * row->sum[1] + beta * row->sum[2], kept = row->sum[0] + smooth, whole = kept + lost;
    const bool is_least = whole < eps;
    const double per_size = 1 / wide_choose(is_least, eps, whole), score = kept * per_size;
    const double pull = wide_choose(is_least, 0, score * per_size);
    out->value = wide_choose(is_least, 1 - score, lost * per_size);
    out->factor[0] = pull * ((1 - alpha) - beta) - per_size;
    out->factor[1] = pull * alpha;
    out->factor[2] = pull * beta;
}

VECTOR_SLOPE tversky_slope(int which, const vector_element *x, const double *parameter, const double *factor) {
    (void)parameter;
    return which == 0 ? factor[0] * (double)x[1] + factor[1] : factor[0] * (double)x[0] + factor[2];
}

/* Of a logit e^-|z|, and of both its sigmoids: what is found, and what is not. */
VECTOR_KEPT tversky_with_logits_kept(real logit) {
    return decay_of(magnitude(logit)).y;
}

ALWAYS_INLINE sigmoids tversky_sigmoids(real kept) {
    const real reciprocal = real_reciprocal(1 + kept); /* as in quick_sigmoids() */
    return (sigmoids){reciprocal, kept * reciprocal};
}

ALWAYS_INLINE sigmoids tversky_found(real logit, real kept) {
    const sigmoids both = tversky_sigmoids(kept);
    const sigmoids found = {choose(logit < 0, both.of_minus, both.of_plus),
                            choose(logit < 0, both.of_plus, both.of_minus)};
    return found;
}

VECTOR_FUNCTION tversky_with_logits_kept_terms(const real *x, const double *parameter, double *term) {
    const sigmoids found = tversky_found(x[0], x[2]);
    (void)parameter;
    tversky_parts((double)found.of_plus, (double)found.of_minus, (double)x[1], term);
}

VECTOR_FUNCTION tversky_with_logits_terms(const real *x, const double *parameter, double *term) {
    const real all[] = {x[0], x[1], tversky_with_logits_kept(x[0])};
    tversky_with_logits_kept_terms(all, parameter, term);
}

VECTOR_FUNCTION tversky_with_logits_row(const vector_sums *row, const double *parameter, vector_slopes *out) {
    tversky_row(row, parameter, out);
}

VECTOR_SLOPE tversky_with_logits_kept_slope(int which, const real *x, const double *parameter, const double *factor) {
    const vector_element probability[] = {which == 0 ? 0 : tversky_found(x[0], x[2]).of_plus, x[1]};
    const double slope = tversky_slope(which, probability, parameter, factor);
    const sigmoids both = tversky_sigmoids(x[2]); /* whichever is found: their product is the same */
    return which == 0 ? slope * ((double)both.of_plus * (double)both.of_minus) : slope;
}

VECTOR_SLOPE tversky_with_logits_slope(int which, const real *x, const double *parameter, const double *factor) {
    const real all[] = {x[0], x[1], tversky_with_logits_kept(x[0])};
    return tversky_with_logits_kept_slope(which, all, parameter, factor);
}

VECTOR_FUNCTION tversky_usual(double *parameter) {
    (void)parameter;
}

VECTOR_FUNCTION tversky_with_logits_usual(double *parameter) {
    (void)parameter;
}

#endif

VECTOR_LOSS(tversky, (input, target), 2, 3, SHORT, "1 - Tversky's index of probabilities and a region",
            "1 - (I + smooth)/max(I + alpha*FP + beta*FN + smooth, eps), I = sum(o*t), FP = sum(o*(1 - t)), "
            "FN = sum((1 - o)*t)",
            "(index*((1 - alpha - beta)*t + alpha) - t)/whole",
            ACCURACY("", ULP(1), ULP_OF(1, "t/whole"), ULP_OF(1, "o/whole")),
            PARAMETERS({"alpha", "what is found wrongly counts so much", 0.5, FINITE(0)},
                       {"beta", "what is missed counts so much", 0.5, FINITE(0)},
                       {"smooth", "added to what is found and to the whole", 0, FINITE(0)},
                       {"eps", "the least that the whole counts as", 1e-7, FINITE(0)}))

VECTOR_LOSS(tversky_with_logits, (input, target), 2, 3, LONG, "1 - Tversky's index of logits and a region",
            "that of tversky with o = sigmoid(z)", "that of tversky, times o*(1 - o)",
            ACCURACY("", ULP(6), ULP_OF(12, "t*o*(1 - o)/whole"), ULP_OF(10, "o/whole")),
            PARAMETERS({"alpha", "what is found wrongly counts so much", 0.5, FINITE(0)},
                       {"beta", "what is missed counts so much", 0.5, FINITE(0)},
                       {"smooth", "added to what is found and to the whole", 0, FINITE(0)},
                       {"eps", "the least that the whole counts as", 1e-7, FINITE(0)}))
