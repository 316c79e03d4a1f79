/*
 * What a loss over rows must be near: its formula in twice double's precision, row by row. Sums that would cancel are
 * taken apart as one would with a pencil: lse - z of a logit z is (m - z) plus log1p of all exponentials but the
 * largest one's, and 1 - p of the label is what the others have.
 */
#include "doubled.h"
#include "oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------- parameters -- */

typedef struct row_parameters {
    double ignore_index, label_smoothing, z_loss, softcap, temperature, epsilon, alpha, gamma, q;
} row_parameters;

typedef enum row_parameter {
    IGNORE_INDEX,
    LABEL_SMOOTHING,
    Z_LOSS,
    SOFTCAP,
    TEMPERATURE,
    EPSILON,
    ALPHA,
    GAMMA,
    Q
} row_parameter;

/* A loss's parameters in the order of the catalogue. */
static const struct {
    const char *loss;
    row_parameter parameter[5];
} row_losses[] = {
    {"cross_entropy", {IGNORE_INDEX, LABEL_SMOOTHING, Z_LOSS, SOFTCAP, TEMPERATURE}},
    {"cross_entropy_with_probabilities", {LABEL_SMOOTHING, Z_LOSS, SOFTCAP, TEMPERATURE}},
    {"nll", {IGNORE_INDEX}},
    {"log_prob", {IGNORE_INDEX, SOFTCAP, TEMPERATURE}},
    {"poly", {IGNORE_INDEX, EPSILON, SOFTCAP, TEMPERATURE}},
    {"softmax_focal", {IGNORE_INDEX, ALPHA, GAMMA, SOFTCAP, TEMPERATURE}},
    {"generalized_cross_entropy", {IGNORE_INDEX, Q, SOFTCAP, TEMPERATURE}},
};

static double *parameter_at(row_parameters *all, row_parameter which) {
    switch (which) {
    case IGNORE_INDEX:
        return &all->ignore_index;
    case LABEL_SMOOTHING:
        return &all->label_smoothing;
    case Z_LOSS:
        return &all->z_loss;
    case SOFTCAP:
        return &all->softcap;
    case TEMPERATURE:
        return &all->temperature;
    case ALPHA:
        return &all->alpha;
    case GAMMA:
        return &all->gamma;
    case Q:
        return &all->q;
    default:
        return &all->epsilon;
    }
}

static row_parameters parameters_of(const oracle_rows *q) {
    row_parameters all = {-100, 0, 0, 0, 1, 0, 1, 0, 0};
    if (strcmp(q->loss, "poly") == 0) {
        all.epsilon = 2;
    }
    if (strcmp(q->loss, "softmax_focal") == 0) {
        all.gamma = 2;
    }
    if (strcmp(q->loss, "generalized_cross_entropy") == 0) {
        all.q = 0.7;
    }
    for (size_t i = 0; i < sizeof row_losses / sizeof row_losses[0]; i++) {
        if (strcmp(row_losses[i].loss, q->loss) == 0) {
            for (int k = 0; k < q->parameter_count; k++) {
                *parameter_at(&all, row_losses[i].parameter[k]) = q->parameter[k];
            }
            return all;
        }
    }
    fprintf(stderr, "tests/oracle/rows.c: expected %s among row_losses\n", q->loss);
    abort();
}

/* ------------------------------------------------------------ the rows -- */

static double class_weight(const oracle_rows *q, int64_t c) {
    return q->class_weight ? q->class_weight[c] : 1;
}

static double row_weight(const oracle_rows *q, int64_t row) {
    return q->weight ? q->weight[row] : 1;
}

static int takes_part(const oracle_rows *q, const row_parameters *p, int64_t row) {
    return !(q->mask && !q->mask[row]) && !(q->label && (double)q->label[row] == p->ignore_index);
}

static int64_t first_bad_label(const oracle_rows *q, const row_parameters *p) {
    for (int64_t row = 0; q->label && row < q->rows; row++) {
        if (takes_part(q, p, row) && (q->label[row] < 0 || q->label[row] >= q->classes)) {
            return row;
        }
    }
    return -1;
}

static double divisor_of(const oracle_rows *q, const row_parameters *p) {
    if (q->divisor != 0) {
        return q->divisor;
    }
    doubled sum = doubled_of(0);
    for (int64_t row = 0; row < q->rows; row++) {
        if (takes_part(q, p, row)) {
            doubled counts = doubled_of(q->over_elements ? 1 : row_weight(q, row));
            if (q->label && !q->over_elements) {
                counts = doubled_multiply(counts, doubled_of(class_weight(q, q->label[row])));
            }
            sum = doubled_add(sum, counts);
        }
    }
    return sum.high;
}

/* The first of the largest; a NaN before all others. */
static int64_t largest_class(const double *z, int64_t classes) {
    int64_t found = -1;
    for (int64_t c = 0; c < classes; c++) {
        if (z[c] != z[c]) {
            return c;
        }
        if (found < 0 || z[c] > z[found]) {
            found = c;
        }
    }
    return found;
}

/* ------------------------------------------------------------- a softmax -- */

/* A row's logits, capped and divided by the temperature, and what comes of them. */
typedef struct softmax {
    doubled *x;
    doubled *e;     /* e^(x - most) */
    doubled *slope; /* of x in z, without the temperature */
    doubled most;   /* the largest x */
    doubled sum;    /* of e */
    doubled above;  /* lse - most */
    doubled lse;
    int is_good; /* neither NaN nor +inf, nor -inf alone */
} softmax;

static doubled *allocate(int64_t count) {
    doubled *numbers = malloc((size_t)(count ? count : 1) * sizeof *numbers);
    if (!numbers) {
        abort();
    }
    return numbers;
}

static void cap(const row_parameters *p, double z, doubled *x, doubled *slope) {
    *x = doubled_of(z);
    *slope = doubled_of(1);
    if (p->softcap != 0) {
        const doubled cap = doubled_of(p->softcap);
        *x = doubled_multiply(cap, doubled_tanh(doubled_divide(doubled_of(z), cap), slope));
    }
    *x = p->temperature != 1 ? doubled_divide(*x, doubled_of(p->temperature)) : *x;
}

static void add_up(const row_parameters *p, const double *z, int64_t classes, softmax *s) {
    int64_t largest = -1;
    s->is_good = 1;
    for (int64_t c = 0; c < classes; c++) {
        cap(p, z[c], &s->x[c], &s->slope[c]);
        s->is_good &= s->x[c].high < INFINITY;
        if (largest < 0 || doubled_subtract(s->x[c], s->x[largest]).high > 0) {
            largest = c;
        }
    }
    s->is_good &= largest >= 0 && s->x[largest].high > -INFINITY;
    if (!s->is_good) {
        return;
    }
    s->most = s->x[largest];
    doubled others = doubled_of(0);
    for (int64_t c = 0; c < classes; c++) {
        s->e[c] = doubled_exp(doubled_subtract(s->x[c], s->most));
        others = c == largest ? others : doubled_add(others, s->e[c]);
    }
    s->sum = doubled_add(others, doubled_of(1));
    s->above = doubled_log1p(others);
    s->lse = doubled_add(s->most, s->above);
}

/* lse - x of a class. */
static doubled distance(const softmax *s, int64_t c) {
    return doubled_add(doubled_subtract(s->most, s->x[c]), s->above);
}

/* The terms of lse may cancel, too: the largest logit, and the logarithm of a sum of 1 and more. */
static double size_of_lse(const softmax *s) {
    return fabs(s->most.high) + fmax(s->above.high, 1);
}

static doubled probability(const softmax *s, int64_t c) {
    return doubled_divide(s->e[c], s->sum);
}

/* 1 - p of a class. */
static doubled probability_of_others(const softmax *s, int64_t c, int64_t classes) {
    doubled others = doubled_of(0);
    for (int64_t k = 0; k < classes; k++) {
        others = k == c ? others : doubled_add(others, s->e[k]);
    }
    return doubled_divide(others, s->sum);
}

/* ----------------------------------------------------------------- a row -- */

/* g of the label: n + epsilon (1 - e^-n), (1 - e^-n)^gamma n or (1 - e^(-q n)) / q of n = lse - x_y; and its slope in
 * n.
 *
 * Both with what their errors are measured by. The ratio r of the others' exponentials to the label's is right to what
 * cross-entropy's value is, n being log(1 + r), and a function of r has r's relative error so many times as its
 * logarithm rises with that of r: 1 - p p times, p -(1 - p) times, n (1 - p) / n times. A slope has beside it the error
 * of the probability that it is multiplied by. */
typedef struct curve {
    doubled value, slope;
    double size, slope_size;
} curve;

/* What every loss with a softmax is: sum of shared_c (lse - x_c) + own g(lse - x_y) + z_loss lse^2, where g(n) is n for
 * most. The parts are kept apart, so that nothing cancels that need not. */
typedef struct mixture {
    doubled *shared;
    doubled own;
    doubled total; /* of shared */
    double z_loss;
    curve g; /* of the label */
} mixture;

static void mix(const oracle_rows *q, const row_parameters *p, int64_t row, mixture *m) {
    const doubled s = doubled_of(p->label_smoothing), kept = doubled_subtract(doubled_of(1), s);
    const doubled share = doubled_divide(s, doubled_of((double)q->classes));
    m->total = m->own = doubled_of(0);
    m->z_loss = p->z_loss;
    for (int64_t c = 0; c < q->classes; c++) {
        doubled part = share;
        if (q->probability) {
            part = doubled_add(doubled_multiply(kept, doubled_of(q->probability[row * q->classes + c])), share);
        }
        m->shared[c] = doubled_multiply(doubled_of(class_weight(q, c)), part);
        m->total = doubled_add(m->total, m->shared[c]);
    }
    if (q->label) {
        m->own =
            doubled_multiply(doubled_multiply(kept, doubled_of(class_weight(q, q->label[row]))), doubled_of(p->alpha));
    }
    if (strcmp(q->loss, "log_prob") == 0) {
        m->own = doubled_negative(m->own);
    }
}

/* A sum and the sum of its terms' magnitudes. */
typedef struct total {
    doubled sum;
    double size;
} total;

static void add_term(total *t, doubled term) {
    t->sum = doubled_add(t->sum, term);
    t->size += fabs(term.high);
}

static doubled focal_power(doubled own, doubled others, double gamma) {
    if (gamma == 0 || others.high == 0) {
        return doubled_of(gamma == 0);
    }
    const doubled log = doubled_negative(doubled_log1p(doubled_divide(own, others)));
    return doubled_exp(doubled_multiply(doubled_of(gamma), log));
}

/* (1 - p)^gamma n, and (1 - p)^gamma (1 + h) with h = gamma p n / (1 - p). */
static curve focal_curve(doubled n, doubled own, doubled others, double gamma) {
    const doubled power = focal_power(own, others, gamma), one = doubled_of(1);
    const doubled ratio = others.high > 0 ? doubled_divide(n, others) : one;
    const doubled h = own.high > 0 ? doubled_multiply(doubled_multiply(own, ratio), doubled_of(gamma)) : doubled_of(0);
    const double of_power = gamma * own.high, of_n = 1 / ratio.high;
    const double of_slope = fabs(of_power - h.high / (1 + h.high) * (1 - of_n));
    curve c = {doubled_multiply(power, n), doubled_multiply(power, doubled_add(one, h)), 0, 0};
    c.size = fmax(of_power + of_n, 1) * c.value.high;
    c.slope_size = (1 + of_slope) * c.slope.high;
    return c;
}

/* (1 - p^q) / q, whose error is never more than n's, and p^q. Where p is less than a double holds, p^q is made of n:
 * its three roundings, and that of the product, are those of an exponent. */
static curve generalized_curve(doubled n, doubled own, doubled others, double q) {
    const doubled t = doubled_multiply(n, doubled_of(-q)), power = doubled_exp(t);
    const doubled lacking =
        t.high > -0.5 ? doubled_negative(doubled_small_expm1(t)) : doubled_subtract(doubled_of(1), power);
    curve c = {doubled_divide(lacking, doubled_of(q)), power, 0, (1 + q * others.high) * power.high};
    c.size = c.value.high;
    if (own.high < 0x1p-999 && power.high > 0) {
        c.slope_size = (1 + -t.high) * power.high;
    }
    return c;
}

static curve curve_of(const oracle_rows *q, const row_parameters *p, const softmax *s, int64_t label) {
    const doubled n = distance(s, label), own = probability(s, label);
    const doubled others = probability_of_others(s, label, q->classes), epsilon = doubled_of(p->epsilon);
    curve c = {n, doubled_of(1), n.high, 1};
    if (p->gamma != 0) {
        c = focal_curve(n, own, others, p->gamma);
    } else if (p->q != 0) {
        c = generalized_curve(n, own, others, p->q);
    } else if (p->epsilon != 0) {
        c.value = doubled_add(n, doubled_multiply(epsilon, others));
        c.slope = doubled_add(doubled_of(1), doubled_multiply(epsilon, own));
        c.size = c.value.high;
        c.slope_size = c.slope.high;
    }
    return c;
}

/* A term that is a product of `by`, with what its factor's error is measured by. */
static void add_curved(total *t, doubled by, doubled factor, double size) {
    t->sum = doubled_add(t->sum, doubled_multiply(by, factor));
    t->size += fabs(by.high) * size;
}

/* A class that counts for nothing adds nothing, though its logit be -inf. */
static total value_of(const oracle_rows *q, const softmax *s, const mixture *m) {
    total value = {{0, 0}, 0};
    for (int64_t c = 0; c < q->classes; c++) {
        if (m->shared[c].high != 0) {
            add_term(&value, doubled_multiply(m->shared[c], doubled_add(doubled_subtract(s->most, s->x[c]), s->above)));
        }
    }
    if (q->label) {
        add_curved(&value, m->own, m->g.value, m->g.size);
    }
    if (m->z_loss != 0) {
        const doubled square = doubled_multiply(s->lse, s->lse);
        value.sum = doubled_add(value.sum, doubled_multiply(doubled_of(m->z_loss), square));
        value.size += 2 * m->z_loss * fabs(s->lse.high) * size_of_lse(s);
    }
    return value;
}

/* The slope in a logit: (sum of u + 2 z_loss lse) p - u, u_c being shared_c + (c == y) own g'(n). */
static total slope_of(const oracle_rows *q, const softmax *s, const mixture *m, int64_t label, int64_t c) {
    total slope = {{0, 0}, 0};
    const doubled p = probability(s, c), pull = doubled_scale(doubled_multiply(doubled_of(m->z_loss), s->lse), 1);
    if (q->label) {
        const doubled by = c == label ? doubled_negative(probability_of_others(s, c, q->classes)) : p;
        add_curved(&slope, doubled_multiply(m->own, by), m->g.slope, m->g.slope_size);
    }
    add_term(&slope, doubled_multiply(m->total, p));
    add_term(&slope, doubled_negative(m->shared[c]));
    if (m->z_loss != 0) {
        slope.sum = doubled_add(slope.sum, doubled_multiply(pull, p));
        slope.size += 2 * m->z_loss * size_of_lse(s) * p.high;
    }
    return slope;
}

/* What a row's gradients are multiplied by. */
static doubled common_factor(const oracle_rows *q, int64_t row, double divisor) {
    const int is_mean = q->reduction == ONEPASS_MEAN || q->reduction == ONEPASS_BATCHMEAN;
    const double upstream = q->upstream ? q->upstream[q->reduction == ONEPASS_NONE ? row : 0] : 1;
    const doubled weighted = doubled_multiply(doubled_of(row_weight(q, row)), doubled_of(upstream));
    return is_mean ? doubled_divide(weighted, doubled_of(divisor)) : weighted;
}

static void write_gradients(const oracle_rows *q, const row_parameters *p, int64_t row, const softmax *s,
                            const mixture *m, double divisor) {
    const doubled factor = common_factor(q, row, divisor);
    const doubled for_logits = doubled_divide(factor, doubled_of(p->temperature));
    const doubled for_target =
        doubled_multiply(factor, doubled_subtract(doubled_of(1), doubled_of(p->label_smoothing)));
    for (int64_t c = 0; c < q->classes; c++) {
        const int64_t at = row * q->classes + c;
        if (q->gradient[0]) {
            const total slope = slope_of(q, s, m, q->label ? q->label[row] : -1, c);
            const doubled scale = doubled_multiply(for_logits, s->slope[c]);
            q->gradient[0][at] = doubled_multiply(slope.sum, scale).high;
            if (q->gradient_size) {
                q->gradient_size[at] = slope.size * fabs(scale.high);
            }
        }
        if (q->gradient[1]) {
            const doubled weighted = doubled_multiply(doubled_of(class_weight(q, c)), distance(s, c));
            q->gradient[1][at] = doubled_multiply(weighted, for_target).high;
        }
    }
}

static void fill_gradients(const oracle_rows *q, int64_t row, double number) {
    double *const all[3] = {q->gradient[0], q->gradient[1], q->gradient_size};
    for (int k = 0; k < 3; k++) {
        for (int64_t c = 0; all[k] && c < q->classes; c++) {
            all[k][row * q->classes + c] = number;
        }
    }
}

/* -w_y z_y, and nothing but the label has a slope. */
static total picked_row(const oracle_rows *q, int64_t row, double divisor) {
    const int64_t at = row * q->classes + q->label[row];
    const double weight = class_weight(q, q->label[row]);
    total value = {{0, 0}, 0};
    add_term(&value, doubled_negative(doubled_multiply(doubled_of(weight), doubled_of(q->input[at]))));
    fill_gradients(q, row, 0);
    if (q->gradient[0]) {
        q->gradient[0][at] = doubled_multiply(doubled_of(-weight), common_factor(q, row, divisor)).high;
        if (q->gradient_size) {
            q->gradient_size[at] = fabs(q->gradient[0][at]);
        }
    }
    return value;
}

static total softmax_row(const oracle_rows *q, const row_parameters *p, int64_t row, double divisor, softmax *s,
                         mixture *m) {
    add_up(p, q->input + row * q->classes, q->classes, s);
    if (!s->is_good) {
        fill_gradients(q, row, NAN);
        s->lse = doubled_of(NAN);
        return (total){{NAN, 0}, NAN};
    }
    mix(q, p, row, m);
    if (q->label) {
        m->g = curve_of(q, p, s, q->label[row]);
    }
    if (q->gradient[0] || q->gradient[1]) {
        write_gradients(q, p, row, s, m, divisor);
    }
    return value_of(q, s, m);
}

/* A row's value, its weight included. */
static total answer_row(const oracle_rows *q, const row_parameters *p, int64_t row, double divisor, softmax *s,
                        mixture *m) {
    const int is_in = takes_part(q, p, row), is_picked = strcmp(q->loss, "nll") == 0;
    total value = {{0, 0}, 0};
    s->lse = doubled_of(0);
    if (!is_in) {
        fill_gradients(q, row, 0);
    } else {
        value = is_picked ? picked_row(q, row, divisor) : softmax_row(q, p, row, divisor, s, m);
        value.sum = doubled_multiply(value.sum, doubled_of(row_weight(q, row)));
        value.size = value.size * fabs(row_weight(q, row));
    }
    if (q->row_value) {
        q->row_value[row] = value.sum.high;
    }
    if (q->row_value_size) {
        q->row_value_size[row] = value.size;
    }
    if (q->log_sum_exp) {
        q->log_sum_exp[row] = s->lse.high;
    }
    if (q->predicted) {
        q->predicted[row] = is_in ? largest_class(q->input + row * q->classes, q->classes) : -1;
    }
    return value;
}

int64_t oracle_answer_rows(const oracle_rows *q) {
    const row_parameters p = parameters_of(q);
    const int64_t bad = first_bad_label(q, &p);
    if (bad >= 0) {
        return bad;
    }
    const double divisor = divisor_of(q, &p);
    softmax s = {.x = allocate(q->classes), .e = allocate(q->classes), .slope = allocate(q->classes)};
    mixture m = {.shared = allocate(q->classes)};
    doubled sum = doubled_of(0);
    for (int64_t row = 0; row < q->rows; row++) {
        const total value = answer_row(q, &p, row, divisor, &s, &m);
        sum = doubled_add(sum, value.sum);
        if (q->value && q->reduction == ONEPASS_NONE) {
            q->value[row] = value.sum.high;
        }
    }
    if (q->value && q->reduction != ONEPASS_NONE) {
        *q->value = q->reduction == ONEPASS_SUM ? sum.high : doubled_divide(sum, doubled_of(divisor)).high;
    }
    if (q->divided_by) {
        *q->divided_by = divisor;
    }
    free(s.x);
    free(s.e);
    free(s.slope);
    free(m.shared);
    return -1;
}

/* Half a unit for each operation, 3 for a logarithm, 1.5 and y / 25 for a power of y, 2 for 1 - e^-t; and the base of a
 * power, a quotient by a sum, y times. */
double oracle_units_of_row(const oracle_rows *q, int of_slope) {
    const row_parameters p = parameters_of(q);
    if (strcmp(q->loss, "softmax_focal") == 0) { /* alpha w u^gamma n; times 1 + gamma p n / u instead of n */
        const double of_power = p.gamma + 1.5 + p.gamma / 25 + 1;
        return of_power + (of_slope ? 1 + 6.5 * p.gamma / (1 + p.gamma) : 0.5);
    }
    if (strcmp(q->loss, "generalized_cross_entropy") == 0) { /* w p^q; w n (1 - e^-t) / t with t = q n */
        return of_slope ? p.q + 1.5 + p.q / 25 + 0.5 : 0.5 + 2 + 0.5;
    }
    return 0;
}
