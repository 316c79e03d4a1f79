/*
 * What distances of two rows of logits must be near: p is the softmax of the input's, q that of the target's.
 *
 * Exponentials are computed in the compute type, and added up in it within lanes; of a row's sum the largest one stands
 * apart. What follows from it, a unit being that of the compute type: a probability is off by 2 units of itself, the
 * logarithm of a sum by as many as the others have errors, times what they are of the sum, however small the loss is.
 * Logarithms are of logits, so that those of probabilities that vanish are as exact as others; but what is below
 * 2^-125, or 2^-1021 in double, may be 0.
 */
#include "vector_row.h"

/* ------------------------------------------------------------ elementary -- */

static doubled expm1_of(doubled x) {
    return fabs(x.high) < 0.5 ? doubled_small_expm1(x) : doubled_subtract(doubled_exp(x), doubled_of(1));
}

/* log(1 + x) for all x above -1. */
static doubled log1p_of(doubled x) {
    if (x.high >= 0) {
        return doubled_log1p(x);
    }
    const doubled rest = doubled_add(doubled_of(1), x);
    return doubled_negative(doubled_log1p(doubled_divide(doubled_negative(x), rest)));
}

static doubled log_of(double x) {
    return log1p_of(doubled_subtract(doubled_of(x), doubled_of(1)));
}

/* --------------------------------------------------------------- softmax -- */

typedef struct logits {
    const double *x;
    double temperature, largest;
    doubled log_sum; /* of the exponentials of what a logit is more than the largest */
    double off;      /* that this may be */
    int are_numbers; /* no NaN, no +inf, and one of them is not -inf */
} logits;

static double unit_of(const vector_row *r) {
    return r->in_float ? 0x1p-23 : UNIT;
}

static doubled scaled_logit(const logits *l, int64_t i) {
    const doubled above = doubled_subtract(doubled_of(l->x[i]), doubled_of(l->largest));
    return doubled_divide(above, doubled_of(l->temperature));
}

static doubled log_probability(const logits *l, int64_t i) {
    return doubled_subtract(scaled_logit(l, i), l->log_sum);
}

static int may_vanish(const vector_row *r, const logits *l, int64_t i) {
    return log_probability(l, i).high < (r->in_float ? -125 : -1021) * 0.69314718055994531;
}

/* What the logarithm of a sum may be off by: a unit of each exponential but the largest, and half a unit for each level
 * of the sum, of which float has those of the lines. */
static double sum_error(const vector_row *r, doubled log_sum) {
    const double others = -expm1(-log_sum.high), all_levels = levels(r->count);
    return others * unit_of(r) * (1 + (r->in_float ? fmin(all_levels, 3) : all_levels) / 2);
}

/* The probabilities are left where the slopes will be. A largest logit is left out of the sum, so that log1p has all
 * digits of the others. */
static logits softmax(vector_row *r, int operand, double temperature) {
    logits l = {.x = r->x[operand], .temperature = temperature, .largest = -INFINITY};
    bounded *probability = r->slope[operand];
    int64_t leader = -1;
    int has_nan = 0;
    for (int64_t i = 0; i < r->count; i++) {
        has_nan |= isnan(l.x[i]);
        if (l.x[i] > l.largest) {
            l.largest = l.x[i];
            leader = i;
        }
    }
    l.are_numbers = !has_nan && isfinite(l.largest);
    doubled others = doubled_of(0);
    for (int64_t i = 0; l.are_numbers && i < r->count; i++) {
        probability[i].is = doubled_exp(scaled_logit(&l, i));
        others = i == leader ? others : doubled_add(others, probability[i].is);
    }
    l.log_sum = doubled_log1p(others);
    l.off = sum_error(r, l.log_sum);
    for (int64_t i = 0; l.are_numbers && i < r->count; i++) {
        const doubled is = doubled_divide(probability[i].is, doubled_add(doubled_of(1), others));
        const double off = 2 * unit_of(r) * is.high + (may_vanish(r, &l, i) ? is.high + LEAST_NUMBER : 0);
        probability[i] = (bounded){is, l.x[i] == -INFINITY ? 0 : off};
    }
    return l;
}

/* log q - log p, of how far the logits are from their rows' largest ones, in the compute type. */
static bounded log_ratio(const vector_row *r, const logits *p, const logits *q, int64_t i) {
    const doubled is = doubled_subtract(log_probability(q, i), log_probability(p, i));
    const double distances = fabs(scaled_logit(p, i).high) + fabs(scaled_logit(q, i).high);
    const double off = p->off + q->off + unit_of(r) * distances;
    return (bounded){is, isfinite(is.high) ? off : 0};
}

/* ----------------------------------------------------------------- a row -- */

/* The softmax of both operands; false, with results that are NaN, if there is none. */
static int two_softmaxes(vector_row *r, double temperature, logits *p, logits *q) {
    *p = softmax(r, 0, temperature);
    *q = softmax(r, 1, temperature);
    if (p->are_numbers && q->are_numbers) {
        return 1;
    }
    r->value = exactly(NAN);
    for (int64_t i = 0; i < r->count; i++) {
        set_slopes(r, 0, i, exactly(NAN));
        set_slopes(r, 1, i, exactly(NAN));
    }
    return 0;
}

/* A number that is not below 0, nor computed as such. */
static bounded not_negative(bounded a) {
    if (!(a.is.high < a.off)) {
        return a;
    }
    const double half = (fmax(a.is.high, 0) + a.off) / 2;
    return (bounded){doubled_of(half), half};
}

static int is_nothing(bounded probability) {
    return size(probability) == 0 && probability.off == 0;
}

/* p (x - mean) / T, or the same of q: what a softmax makes of slopes. */
static bounded softmax_slope(bounded probability, bounded x, bounded mean, double temperature) {
    return is_nothing(probability) ? exactly(0) : over(times(probability, minus(x, mean)), exactly(temperature));
}

/* ---------------------------------------------------- Kullback and Leibler -- */

void kl_div_with_logits(vector_row *r) {
    const double temperature = r->k[0];
    total sum = {{{0, 0}, 0}, 0};
    logits p, q;
    if (!two_softmaxes(r, temperature, &p, &q)) {
        return;
    }
    for (int64_t i = 0; i < r->count; i++) {
        if (!is_nothing(r->slope[1][i])) {
            add_term(&sum, times(r->slope[1][i], log_ratio(r, &p, &q, i)));
            r->at_kink |= p.x[i] == -INFINITY; /* infinite: inf - inf is anything */
        }
    }
    const bounded kl = sum_of(&sum, r->count);
    r->value = not_negative(kl);
    for (int64_t i = 0; i < r->count; i++) {
        const bounded of_p = r->slope[0][i], of_q = r->slope[1][i];
        set_slopes(r, 0, i, over(minus(of_p, of_q), exactly(temperature)));
        set_slopes(r, 1, i, softmax_slope(of_q, log_ratio(r, &p, &q, i), kl, temperature));
    }
}

/* ----------------------------------------------------- Jensen and Shannon -- */

/* log(p / m) = -log(1 + beta (q/p - 1)), of log q - log p. */
static doubled log_of_share(doubled ratio, double beta) {
    if (ratio.high > 700) { /* where the exponential overflows, and the rest is nothing */
        return doubled_negative(doubled_add(ratio, log_of(beta)));
    }
    return doubled_negative(log1p_of(doubled_multiply(doubled_of(beta), expm1_of(ratio))));
}

/* And how far that may be off: its slope in log q - log p is at most 1, and rounding p, m and their quotient is
 * allowed. Of a p that may be 0 it is no number to rely on; if q may be, it may be -log(1 - beta). */
static bounded share_of(const vector_row *r, const logits *p, const logits *q, int64_t i, doubled is, double beta) {
    const double without = may_vanish(r, q, i) ? fabs(is.high + log1p(-beta)) : 0;
    const double off = log_ratio(r, p, q, i).off + 2 * unit_of(r) + unit_of(r) * fabs(is.high) + without;
    return (bounded){is, may_vanish(r, p, i) ? fabs(is.high) + 1 : off};
}

/* log(p / m), which is kept for the slopes, and log(q / m). */
static bounded input_share(vector_row *r, const logits *p, const logits *q, int64_t i) {
    return share_of(r, p, q, i, r->slope[2][i].is, r->k[0]);
}

static bounded target_share(vector_row *r, const logits *p, const logits *q, int64_t i) {
    const doubled ratio = log_ratio(r, p, q, i).is, kept = r->slope[2][i].is;
    const doubled is = isfinite(ratio.high) ? doubled_add(kept, ratio) : doubled_negative(log_of(r->k[0]));
    return share_of(r, q, p, i, is, 1 - r->k[0]);
}

void js_div_with_logits(vector_row *r) {
    const double beta = r->k[0], temperature = r->k[1];
    const bounded of_input = exactly(1 - beta), of_target = exactly(beta);
    total from_p = {{{0, 0}, 0}, 0}, from_q = from_p;
    logits p, q;
    if (!two_softmaxes(r, temperature, &p, &q)) {
        return;
    }
    for (int64_t i = 0; i < r->count; i++) {
        r->slope[2][i].is = log_of_share(log_ratio(r, &p, &q, i).is, beta);
        if (!is_nothing(r->slope[0][i])) {
            add_term(&from_p, times(r->slope[0][i], input_share(r, &p, &q, i)));
        }
        if (!is_nothing(r->slope[1][i])) {
            add_term(&from_q, times(r->slope[1][i], target_share(r, &p, &q, i)));
        }
    }
    const bounded p_sum = sum_of(&from_p, r->count), q_sum = sum_of(&from_q, r->count);
    r->value = not_negative(plus(times(of_input, p_sum), times(of_target, q_sum)));
    for (int64_t i = 0; i < r->count; i++) {
        const bounded for_p = input_share(r, &p, &q, i), for_q = target_share(r, &p, &q, i);
        set_slopes(r, 0, i, times(of_input, softmax_slope(r->slope[0][i], for_p, p_sum, temperature)));
        set_slopes(r, 1, i, times(of_target, softmax_slope(r->slope[1][i], for_q, q_sum, temperature)));
    }
}

/* -------------------------------------------------------- total variation -- */

/* The sign of a number, which may be another one where the number's error is larger than the number. */
static bounded sign_of(bounded a) {
    return (bounded){doubled_of(a.is.high > 0 ? 1 : a.is.high < 0 ? -1 : 0), size(a) <= a.off && a.off > 0 ? 2 : 0};
}

void tv_distance_with_logits(vector_row *r) {
    const double temperature = r->k[0];
    total sum = {{{0, 0}, 0}, 0}, signs_p = sum, signs_q = sum;
    logits p, q;
    if (!two_softmaxes(r, temperature, &p, &q)) {
        return;
    }
    for (int64_t i = 0; i < r->count; i++) {
        const bounded of_p = r->slope[0][i], of_q = r->slope[1][i], apart = minus(of_p, of_q);
        const bounded sign = sign_of(apart);
        add_term(&sum, apart.is.high < 0 ? negative(apart) : apart);
        add_term(&signs_p, times(of_p, sign));
        add_term(&signs_q, times(of_q, sign));
    }
    const bounded p_signs = sum_of(&signs_p, r->count), q_signs = sum_of(&signs_q, r->count);
    r->value = not_negative(over(sum_of(&sum, r->count), exactly(2)));
    for (int64_t i = 0; i < r->count; i++) {
        const bounded of_p = r->slope[0][i], of_q = r->slope[1][i], sign = sign_of(minus(of_p, of_q));
        set_slopes(r, 0, i, softmax_slope(of_p, sign, p_signs, 2 * temperature));
        set_slopes(r, 1, i, negative(softmax_slope(of_q, sign, q_signs, 2 * temperature)));
    }
}
