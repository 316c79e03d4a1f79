/*
 * What a loss of vectors must be near: its formula in numbers that carry the largest error of computing them in double.
 *
 * All that follows is monotonous (roundings, sums in the order, products with an upstream gradient), so that the least
 * and the largest number of a result come from those that go in.
 */
#include "vector_row.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- norms -- */

static bounded root(bounded a) {
    const doubled is = doubled_sqrt(a.is);
    return rounded(is, is.high > 0 ? fmin(a.off / is.high, sqrt(a.off)) : sqrt(a.off));
}

static bounded sum_of_products(const double *a, const double *b, int64_t count) {
    total t = {{{0, 0}, 0}, 0};
    for (int64_t i = 0; i < count; i++) {
        add_term(&t, times(exactly(a[i]), exactly(b[i])));
    }
    return sum_of(&t, count);
}

/* --------------------------------------------------------------- hinges -- */

/* Passes a row's number on where it is not below 0, with the slope 1 also at 0 itself; NaN passes. */
static int passes(vector_row *r, bounded number) {
    r->at_kink |= number.off > 0 && size(number) <= number.off;
    return !(number.is.high < 0);
}

/* ------------------------------------------------------ cosine_similarity -- */

/* The slope in x of x.y / (n m), n being held to be at least something, which has no slope: (y / m - c x / |x|) / n. */
static bounded cosine_slope(double x, double y, bounded norm, bounded n, bounded m, bounded c) {
    const bounded turned = size(norm) == 0 ? times(c, exactly(0)) : over(times(c, exactly(x)), norm);
    return over(minus(over(exactly(y), m), turned), n);
}

static void cosine_similarity(vector_row *r) {
    const double *a = r->x[0], *b = r->x[1], eps = r->k[0];
    const bounded norm_a = root(sum_of_products(a, a, r->count)), norm_b = root(sum_of_products(b, b, r->count));
    const bounded n = at_least(norm_a, eps), m = at_least(norm_b, eps);
    const bounded c = over(sum_of_products(a, b, r->count), times(n, m));
    r->value = c;
    for (int64_t i = 0; i < r->count; i++) {
        set_slopes(r, 0, i, cosine_slope(a[i], b[i], norm_a, n, m, c));
        set_slopes(r, 1, i, cosine_slope(b[i], a[i], norm_b, m, n, c));
    }
}

/* ------------------------------------------------------- cosine_embedding -- */

static void cosine_embedding(vector_row *r) {
    const double *a = r->x[0], *b = r->x[1], y = r->x[2][0];
    const bounded n = plus(sum_of_products(a, a, r->count), exactly(1e-12));
    const bounded m = plus(sum_of_products(b, b, r->count), exactly(1e-12));
    const bounded norms = root(times(n, m)), c = over(sum_of_products(a, b, r->count), norms);
    const bounded above = minus(c, exactly(r->k[0]));
    const double sign = y == 1 ? -1 : y == -1 && passes(r, above) ? 1 : 0;
    r->value = y == 1 ? minus(exactly(1), c) : y == -1 ? at_least(above, 0) : exactly(0);
    for (int64_t i = 0; i < r->count; i++) {
        const bounded of_a = minus(over(exactly(b[i]), norms), over(times(c, exactly(a[i])), n));
        const bounded of_b = minus(over(exactly(a[i]), norms), over(times(c, exactly(b[i])), m));
        set_slopes(r, 0, i, sign == 0 ? exactly(0) : sign < 0 ? negative(of_a) : of_a);
        set_slopes(r, 1, i, sign == 0 ? exactly(0) : sign < 0 ? negative(of_b) : of_b);
    }
}

/* -------------------------------------------------------------- distances -- */

static bounded difference(double a, double b, double eps) {
    return plus(minus(exactly(a), exactly(b)), exactly(eps));
}

static bounded absolute(bounded a) {
    return a.is.high < 0 ? negative(a) : a;
}

static bounded distance(const double *a, const double *b, int64_t count, double p, double eps) {
    total t = {{{0, 0}, 0}, 0};
    for (int64_t i = 0; i < count; i++) {
        const bounded z = difference(a[i], b[i], eps);
        add_term(&t, p == 1 ? absolute(z) : times(z, z));
    }
    const bounded sum = sum_of(&t, count);
    return p == 1 ? sum : root(sum);
}

/* The slope of the distance d in a: sign(z) |z|^(p-1) / d^(p-1), 0 where z is 0. */
static bounded distance_slope(double a, double b, double p, double eps, bounded d) {
    const bounded z = difference(a, b, eps);
    if (z.is.high == 0 && z.off == 0) {
        return exactly(0);
    }
    if (p == 1) {
        const double sign = z.is.high > 0 ? 1 : z.is.high < 0 ? -1 : z.is.high;
        return (bounded){doubled_of(sign), size(z) <= z.off ? 2 : 0};
    }
    return over(z, d);
}

static void pairwise_distance(vector_row *r) {
    const double *a = r->x[0], *b = r->x[1], p = r->k[0], eps = r->k[1];
    r->value = distance(a, b, r->count, p, eps);
    for (int64_t i = 0; i < r->count; i++) {
        const bounded slope = distance_slope(a[i], b[i], p, eps, r->value);
        set_slopes(r, 0, i, slope);
        set_slopes(r, 1, i, negative(slope));
    }
}

/* --------------------------------------------------------- triplet_margin -- */

/* What the distances of the negative from the anchor and, if they may be swapped, from the positive count for: the
 * smaller one, or half each. */
static void choose(vector_row *r, bounded from_anchor, bounded from_positive, double share[2]) {
    const bounded apart = minus(from_anchor, from_positive);
    r->at_kink |= apart.off > 0 && size(apart) <= apart.off;
    share[0] = apart.is.high < 0 ? 1 : apart.is.high > 0 ? 0 : 0.5;
    share[1] = 1 - share[0];
}

static bounded scaled(bounded a, double by) {
    return (bounded){doubled_multiply(a.is, doubled_of(by)), a.off * fabs(by)};
}

static void triplet_margin(vector_row *r) {
    const double *a = r->x[0], *b = r->x[1], *n = r->x[2];
    const double margin = r->k[0], p = r->k[1], eps = r->k[2], swap = r->k[3];
    const bounded near = distance(a, b, r->count, p, eps), far = distance(a, n, r->count, p, eps);
    const bounded other = distance(b, n, r->count, p, eps);
    double share[2] = {1, 0};
    if (swap != 0) {
        choose(r, far, other, share);
    }
    const bounded nearest = share[0] == 0 ? other : far;
    const bounded hinge = minus(plus(exactly(margin), near), nearest);
    const int on = passes(r, hinge);
    r->value = at_least(hinge, 0);
    for (int64_t i = 0; i < r->count; i++) {
        const bounded to_near = distance_slope(a[i], b[i], p, eps, near);
        const bounded to_far = scaled(distance_slope(a[i], n[i], p, eps, far), share[0]);
        const bounded to_other = scaled(distance_slope(b[i], n[i], p, eps, other), share[1]);
        set_slopes(r, 0, i, on ? minus(to_near, to_far) : exactly(0));
        set_slopes(r, 1, i, on ? negative(plus(to_near, to_other)) : exactly(0));
        set_slopes(r, 2, i, on ? plus(to_far, to_other) : exactly(0));
    }
}

/* ----------------------------------------------------------- multi_margin -- */

/* Whether a score is above the own one less the margin, where the slope begins only beyond 0; NaN is not. */
static int is_above(vector_row *r, bounded lacking) {
    r->at_kink |= lacking.off > 0 && size(lacking) <= lacking.off;
    return lacking.is.high > 0;
}

static void multi_margin(vector_row *r) {
    const double *z = r->x[0], p = r->k[0], margin = r->k[1];
    const int64_t own = (int64_t)r->x[1][0];
    const bounded weight = exactly(r->x[2] && r->count > 0 ? r->x[2][own] : 1);
    const bounded classes = exactly((double)r->count);
    total values = {{{0, 0}, 0}, 0}, slopes = values;
    for (int64_t i = 0; i < r->count; i++) {
        const bounded lacking = plus(minus(exactly(margin), exactly(z[own])), exactly(z[i]));
        bounded slope = exactly(0);
        if (i != own && is_above(r, lacking)) {
            add_term(&values, p == 1 ? lacking : times(lacking, lacking));
            slope = p == 1 ? exactly(1) : scaled(lacking, 2);
            add_term(&slopes, slope);
        }
        set_slopes(r, 0, i, times(over(slope, classes), weight));
    }
    if (r->count == 0) {
        return; /* whoever asks for what a mean is divided by */
    }
    r->value = times(over(sum_of(&values, r->count), classes), weight);
    set_slopes(r, 0, own, negative(times(over(sum_of(&slopes, r->count), classes), weight)));
}

/* ------------------------------------------------------ multilabel_margin -- */

static int is_listed(const double *list, int64_t labels, int64_t class) {
    for (int64_t k = 0; k < labels; k++) {
        if (list[k] == (double)class) {
            return 1;
        }
    }
    return 0;
}

/* Slopes are numbers of pairs, each pair being of a label and of a class that is none, over the number of classes. */
static void multilabel_margin(vector_row *r) {
    const double *z = r->x[0], *list = r->x[1];
    const bounded classes = exactly((double)r->count);
    bounded value = exactly(0);
    int64_t labels = 0;
    while (labels < r->count && list[labels] != -1) {
        labels++;
    }
    for (int64_t i = 0; i < r->count; i++) {
        set_slopes(r, 0, i, exactly(0));
    }
    for (int64_t k = 0; k < labels; k++) {
        const int64_t own = (int64_t)list[k];
        total values = {{{0, 0}, 0}, 0};
        for (int64_t i = 0; i < r->count; i++) {
            const bounded lacking = plus(minus(exactly(1), exactly(z[own])), exactly(z[i]));
            if (!is_listed(list, labels, i) && is_above(r, lacking)) {
                add_term(&values, lacking);
                set_slopes(r, 0, i, exactly(r->slope[0][i].is.high + 1));
                set_slopes(r, 0, own, exactly(r->slope[0][own].is.high - 1));
            }
        }
        value = plus(value, sum_of(&values, r->count));
    }
    r->value = over(value, classes);
    for (int64_t i = 0; i < r->count; i++) {
        set_slopes(r, 0, i, over(r->slope[0][i], classes));
    }
}

/* ---------------------------------------------------------------- tversky -- */

/* A probability and the opposite one. Those of a logit are within 3 units of the compute type. */
typedef struct probability {
    bounded p, rest;
} probability;

static probability probability_of(const vector_row *r, double x) {
    if (!r->has_logits) {
        return (probability){exactly(x), minus(exactly(1), exactly(x))};
    }
    const double three_units = r->in_float ? 3 * 0x1p-23 : 3 * UNIT, least = r->in_float ? 0x1p-148 : LEAST_NUMBER;
    const doubled one = doubled_of(1), small = doubled_exp(doubled_of(-fabs(x))), sum = doubled_add(one, small);
    const doubled lower = doubled_divide(small, sum), upper = doubled_divide(one, sum);
    const bounded low = {lower, three_units * lower.high + least}, high = {upper, three_units * upper.high};
    return x < 0 ? (probability){low, high} : (probability){high, low};
}

/* What is found, what is found wrongly, and what is missed. */
typedef struct overlap {
    bounded score, whole;
    double alpha, beta;
    int is_held; /* by eps, which has no slope */
} overlap;

/* The slope of the value in one of the two, y being the other one and `extra` what it counts for where y is 0: -(y -
 * score (y + extra (1 - y) - lack y)) / whole. What is added up may be sorted by y before, so that the errors are units
 * of all magnitudes. */
static bounded overlap_slope(const overlap *o, bounded y, double extra, double lack) {
    const bounded grows = minus(plus(y, times(exactly(extra), minus(exactly(1), y))), times(exactly(lack), y));
    bounded slope = negative(over(o->is_held ? y : minus(y, times(o->score, grows)), o->whole));
    const double most = size(y) + size(o->score) * (size(y) + extra + extra * size(y) + lack * size(y));
    slope.off += 4 * UNIT * most / size(o->whole);
    return slope;
}

static void tversky(vector_row *r) {
    const double *x = r->x[0], *t = r->x[1], alpha = r->k[0], beta = r->k[1], smooth = r->k[2], eps = r->k[3];
    total found = {{{0, 0}, 0}, 0}, wrong = found, missed = found;
    for (int64_t i = 0; i < r->count; i++) {
        const probability o = probability_of(r, x[i]);
        add_term(&found, times(o.p, exactly(t[i])));
        add_term(&wrong, times(o.p, minus(exactly(1), exactly(t[i]))));
        add_term(&missed, times(o.rest, exactly(t[i])));
    }
    const bounded lost =
        plus(times(exactly(alpha), sum_of(&wrong, r->count)), times(exactly(beta), sum_of(&missed, r->count)));
    const bounded kept = plus(sum_of(&found, r->count), exactly(smooth)), all = plus(kept, lost);
    const overlap o = {over(kept, at_least(all, eps)), at_least(all, eps), alpha, beta, all.is.high < eps};
    r->at_kink |= all.off > 0 && fabs(all.is.high - eps) <= all.off;
    r->value = o.is_held ? minus(exactly(1), o.score) : over(lost, o.whole);
    for (int64_t i = 0; i < r->count; i++) {
        const probability p = probability_of(r, x[i]);
        const bounded of_o = overlap_slope(&o, exactly(t[i]), alpha, beta);
        set_slopes(r, 0, i, r->has_logits ? times(of_o, times(p.p, p.rest)) : of_o);
        set_slopes(r, 1, i, overlap_slope(&o, p.p, beta, alpha));
    }
}

/* ------------------------------------------------------------- the losses -- */

/* The operands that are vectors; a further one has a number for each row, or a list of the row's length. With one
 * vector alone, the third has a number for each element, the same for all rows. */
static const struct vector_loss {
    const char *name;
    void (*answer)(vector_row *);
    int vectors;
    double default_value[PARAMETERS];
} losses[] = {
    {"cosine_similarity", cosine_similarity, 2, {1e-8}},
    {"cosine_embedding", cosine_embedding, 2, {0}},
    {"pairwise_distance", pairwise_distance, 2, {2, 1e-6}},
    {"triplet_margin", triplet_margin, 3, {1, 2, 1e-6, 0}},
    {"multi_margin", multi_margin, 1, {1, 1}},
    {"multilabel_margin", multilabel_margin, 1, {0}},
    {"tversky", tversky, 2, {0.5, 0.5, 0, 1e-7}},
    {"tversky_with_logits", tversky, 2, {0.5, 0.5, 0, 1e-7}},
    {"kl_div_with_logits", kl_div_with_logits, 2, {1}},
    {"js_div_with_logits", js_div_with_logits, 2, {0.5, 1}},
    {"tv_distance_with_logits", tv_distance_with_logits, 2, {1}},
};

static const struct vector_loss *loss_named(const char *name) {
    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
        if (strcmp(losses[i].name, name) == 0) {
            return &losses[i];
        }
    }
    return NULL;
}

int oracle_vector_operands(const char *loss) {
    return loss_named(loss) ? loss_named(loss)->vectors : 0;
}

/* ------------------------------------------------------------ reductions -- */

static int takes_part(const oracle_vectors *q, int64_t row) {
    return !(q->mask && !q->mask[row]);
}

static double row_weight(const oracle_vectors *q, int64_t row) {
    return q->weight ? q->weight[row] : 1;
}

static double to_compute_type(const oracle_vectors *q, double number) {
    return q->in_float ? (double)(float)number : number;
}

static void *allocate(int64_t count, size_t each) {
    void *memory = calloc((size_t)(count ? count : 1), each);
    if (!memory) {
        abort();
    }
    return memory;
}

/* The weights are added up as terms are, in the compute type within lanes. */
static double divisor_of(const oracle_vectors *q) {
    if (q->reduction != ONEPASS_MEAN && q->reduction != ONEPASS_BATCHMEAN) {
        return 1;
    }
    if (q->divisor != 0 || q->reduction == ONEPASS_BATCHMEAN) {
        return q->divisor;
    }
    double *counts = allocate(q->rows, sizeof *counts);
    for (int64_t row = 0; row < q->rows; row++) {
        counts[row] = !takes_part(q, row) ? 0 : q->over_elements ? 1 : row_weight(q, row);
    }
    const double sum = oracle_sum(counts, q->rows, q->in_float);
    free(counts);
    return sum;
}

static oracle_range range_of(bounded a) {
    const oracle_range all = {a.is.high - a.off, a.is.high + a.off};
    return isnan(a.off) || isinf(a.is.high) ? (oracle_range){a.is.high, a.is.high} : all;
}

/* A function that never falls, or never rises, of both ends. */
static oracle_range sorted(double a, double b) {
    return b < a ? (oracle_range){b, a} : (oracle_range){a, b};
}

static oracle_range rounded_range(const oracle_vectors *q, oracle_range r) {
    return (oracle_range){to_compute_type(q, r.least), to_compute_type(q, r.most)};
}

static void write_gradients(const oracle_vectors *q, const vector_row *r, int vectors, int64_t row, double divisor) {
    const bounded weight = exactly(row_weight(q, row));
    const double g = q->upstream ? q->upstream[q->reduction == ONEPASS_NONE ? row : 0] : 1;
    for (int k = 0; k < vectors; k++) {
        for (int64_t i = 0; i < q->elements; i++) {
            const bounded slope = times(r->slope[k][i], weight);
            const oracle_range range = rounded_range(q, range_of(divisor == 1 ? slope : over(slope, exactly(divisor))));
            const double least = to_compute_type(q, range.least * to_compute_type(q, g));
            const double most = to_compute_type(q, range.most * to_compute_type(q, g));
            if (q->gradient[k]) {
                q->gradient[k][row * q->elements + i] = sorted(least, most);
            }
            if (q->exact_slope[k]) {
                q->exact_slope[k][row * q->elements + i] = slope.is.high;
            }
        }
    }
}

static void hide_row(const oracle_vectors *q, int vectors, int64_t row) {
    for (int k = 0; k < vectors; k++) {
        for (int64_t i = 0; i < q->elements; i++) {
            if (q->gradient[k]) {
                q->gradient[k][row * q->elements + i] = (oracle_range){0, 0};
            }
            if (q->exact_slope[k]) {
                q->exact_slope[k][row * q->elements + i] = 0;
            }
        }
    }
}

/* A row's value, its weight included. */
static bounded answer_row(const oracle_vectors *q, const struct vector_loss *loss, vector_row *r, int64_t row,
                          double divisor) {
    if (!takes_part(q, row)) {
        hide_row(q, loss->vectors, row);
        return exactly(0);
    }
    for (int k = 0; k < ORACLE_OPERANDS; k++) {
        const int64_t step = k < loss->vectors || loss->answer == multilabel_margin ? q->elements
                             : k == loss->vectors                                   ? 1
                                                                                    : 0;
        r->x[k] = q->operand[k] ? q->operand[k] + row * step : NULL;
    }
    r->count = q->elements;
    loss->answer(r);
    write_gradients(q, r, loss->vectors, row, divisor);
    return q->weight ? times(r->value, exactly(row_weight(q, row))) : r->value;
}

/* Sums round upwards where their terms do. */
static oracle_range reduce(const oracle_vectors *q, const oracle_range *term, double divisor) {
    double *least = allocate(q->rows, sizeof *least), *most = allocate(q->rows, sizeof *most);
    for (int64_t row = 0; row < q->rows; row++) {
        const oracle_range rounded = rounded_range(q, term[row]);
        least[row] = rounded.least;
        most[row] = rounded.most;
    }
    const double low = oracle_sum(least, q->rows, q->in_float), high = oracle_sum(most, q->rows, q->in_float);
    free(least);
    free(most);
    return q->reduction == ONEPASS_SUM ? sorted(low, high) : sorted(low / divisor, high / divisor);
}

void oracle_answer_vectors(const oracle_vectors *q) {
    const struct vector_loss *loss = loss_named(q->loss);
    if (!loss) {
        abort();
    }
    const double divisor = divisor_of(q);
    oracle_range *term = allocate(q->rows, sizeof *term);
    vector_row r = {.in_float = q->in_float, .has_logits = strcmp(q->loss, "tversky_with_logits") == 0};
    memcpy(r.k, loss->default_value, sizeof r.k);
    for (int32_t i = 0; i < q->parameter_count; i++) {
        r.k[i] = q->parameter[i];
    }
    for (int k = 0; k < ORACLE_OPERANDS; k++) {
        r.slope[k] = allocate(q->elements, sizeof *r.slope[k]);
    }
    for (int64_t row = 0; row < q->rows; row++) {
        r.at_kink = 0;
        const bounded value = answer_row(q, loss, &r, row, divisor);
        term[row] = range_of(value);
        if (q->exact_value) {
            q->exact_value[row] = value.is.high;
        }
        if (q->at_kink) {
            q->at_kink[row] = r.at_kink != 0;
        }
        if (q->value && q->reduction == ONEPASS_NONE) {
            q->value[row] = term[row];
        }
    }
    if (q->value && q->reduction != ONEPASS_NONE) {
        *q->value = reduce(q, term, divisor);
    }
    if (q->divided_by) {
        *q->divided_by = divisor;
    }
    for (int k = 0; k < ORACLE_OPERANDS; k++) {
        free(r.slope[k]);
    }
    free(term);
}
