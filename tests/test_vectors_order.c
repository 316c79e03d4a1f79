/*
 * The order within a vector and over rows, bit for bit: rows computed once more, slowly and literally, as
 * docs/numerics.md defines them. What an element adds to a row's sums, in double; tiles of 1024 elements; what becomes
 * of the sums, operation by operation; slopes from factors into which weight and divisor were multiplied. This file is
 * compiled once with real = float and once with real = double (ONEPASS_REAL_F64), and looks at the cases that compute
 * so. The sigmoids and exponentials of logits are the library's, which have tests of their own.
 */
#include "check.h"
#include "math/real.h"
#include "math/elementary.h"
#include "oracle.h"
#include "softmaxes_model.h"
#include "vector_case.h"

#include <math.h>

enum {
    IN_FLOAT = sizeof(real) == sizeof(float),
    SUMS = 3,
    FACTORS = 3
};

/* ------------------------------------------------------------------- a row -- */

/* The parameters, the operand that is one number, the sums, and what comes of them. */
typedef struct row {
    const double *k;
    int vectors; /* operands that are such */
    int64_t own; /* the element that the number is the index of, or -1 */
    double length, number, sum[SUMS], value, factor[FACTORS];
    softmaxes_model softmaxes; /* of those losses that have them, ... */
    double *element[3];        /* ... whose elements are others than the operands' */
} row;

typedef struct definition {
    const char *loss;
    void (*terms)(const double *x, const row *r, double *term);
    void (*finish)(row *r);
    double (*slope)(int which, const double *x, const row *r);
} definition;

static double larger(double x, double least) {
    return x < least ? least : x;
}

static double reciprocal_or_0(double x) {
    return x == 0 ? 0 : 1 / x;
}

/* ---------------------------------------------------------------- cosines -- */

static void cosine_terms(const double *x, const row *r, double *term) {
    (void)r;
    term[0] = x[0] * x[1];
    term[1] = x[0] * x[0];
    term[2] = x[1] * x[1];
}

static void finish_similarity(row *r) {
    const double norm_a = sqrt(r->sum[1]), norm_b = sqrt(r->sum[2]);
    const double a = larger(norm_a, r->k[0]), b = larger(norm_b, r->k[0]);
    const double per_a = 1 / a, per_b = 1 / b;
    r->value = (r->sum[0] * per_a) * per_b;
    r->factor[0] = per_a * per_b;
    r->factor[1] = (r->value * per_a) * reciprocal_or_0(norm_a);
    r->factor[2] = (r->value * per_b) * reciprocal_or_0(norm_b);
}

static void finish_embedding(row *r) {
    const double square_a = r->sum[1] + 1e-12, square_b = r->sum[2] + 1e-12;
    const double per_a = 1 / sqrt(square_a), per_b = 1 / sqrt(square_b);
    const double cosine = (r->sum[0] * per_a) * per_b, beyond = cosine - r->k[0];
    const double sign = r->number == 1 ? -1 : r->number == -1 && !(beyond < 0) ? 1 : 0;
    r->value = r->number == 1 ? 1 - cosine : r->number == -1 ? larger(beyond, 0) : 0;
    r->factor[0] = (sign * per_a) * per_b;
    r->factor[1] = ((sign * cosine) * per_a) * per_a;
    r->factor[2] = ((sign * cosine) * per_b) * per_b;
}

static double cosine_slope(int which, const double *x, const row *r) {
    return r->factor[0] * x[1 - which] - r->factor[1 + which] * x[which];
}

/* -------------------------------------------------------------- distances -- */

static double apart(double a, double b, double eps) {
    return (a - b) + eps;
}

static double power(double z, double p) {
    return p == 1 ? fabs(z) : z * z;
}

static double distance(double sum, double p) {
    return p == 1 ? sum : sqrt(sum);
}

static double factor_of(double distance, double p) {
    return p == 1 ? 1 : reciprocal_or_0(distance);
}

static double direction(double z, double p) {
    return p != 1 ? z : z > 0 ? 1 : z < 0 ? -1 : z * 0;
}

static void distance_terms(const double *x, const row *r, double *term) {
    const double *k = r->k;
    term[0] = power(apart(x[0], x[1], k[1]), k[0]);
}

static void finish_distance(row *r) {
    r->value = distance(r->sum[0], r->k[0]);
    r->factor[0] = factor_of(r->value, r->k[0]);
}

static double distance_slope(int which, const double *x, const row *r) {
    const double slope = r->factor[0] * direction(apart(x[0], x[1], r->k[1]), r->k[0]);
    return which ? -slope : slope;
}

static void triplet_terms(const double *x, const row *r, double *term) {
    const double *k = r->k;
    term[0] = power(apart(x[0], x[1], k[2]), k[1]);
    term[1] = power(apart(x[0], x[2], k[2]), k[1]);
    term[2] = power(apart(x[1], x[2], k[2]), k[1]);
}

static void finish_triplet(row *r) {
    const double p = r->k[1], near = distance(r->sum[0], p), far = distance(r->sum[1], p),
                 other = distance(r->sum[2], p);
    const double share = r->k[3] == 0 ? 0 : far == other ? 0.5 : other < far ? 1 : 0;
    const double lacking = (r->k[0] + near) - (share == 1 ? other : far), passes = lacking < 0 ? 0 : 1;
    r->value = larger(lacking, 0);
    r->factor[0] = passes * factor_of(near, p);
    r->factor[1] = (passes - share * passes) * factor_of(far, p);
    r->factor[2] = share * passes != 0 ? share * passes * factor_of(other, p) : 0;
}

static double triplet_slope(int which, const double *x, const row *r) {
    const double p = r->k[1], eps = r->k[2];
    const double near = r->factor[0] * direction(apart(x[0], x[1], eps), p);
    const double far = r->factor[1] * direction(apart(x[0], x[2], eps), p);
    const double other = r->factor[2] * direction(apart(x[1], x[2], eps), p);
    return which == 0 ? near - far : which == 1 ? -near - other : far + other;
}

/* ----------------------------------------------------------- multi_margin -- */

/* Whose elements are a score and the own one. */

static double lacking(const double *x, const row *r) {
    return (r->k[1] - x[1]) + x[0];
}

static void margin_terms(const double *x, const row *r, double *term) {
    const double z = lacking(x, r), above = z > 0 ? z : 0;
    term[0] = r->k[0] == 1 ? above : above * above;
    term[1] = r->k[0] == 1 ? (z > 0 ? 1 : 0) : above;
}

static void finish_margin(row *r) {
    r->value = r->sum[0] / r->length;
    r->factor[0] = r->k[0] / r->length;
    r->factor[1] = 0 - r->factor[0] * r->sum[1];
}

static double margin_slope(int which, const double *x, const row *r) {
    const double z = lacking(x, r);
    (void)which;
    return !(z > 0) ? 0 : r->k[0] == 1 ? r->factor[0] : r->factor[0] * z;
}

/* ------------------------------------------------------ multilabel_margin -- */

/* Whose element is the number of pairs that it has slopes in, as sum_pairs() leaves it. */

static void no_pairs(const double *x, const row *r, double *term) {
    (void)x;
    (void)r;
    (void)term;
}

static void finish_pairs(row *r) {
    r->value = r->sum[0] / r->length;
    r->factor[0] = 1 / r->length;
}

static double pair_slope(int which, const double *x, const row *r) {
    (void)which;
    return x[0] * r->factor[0];
}

/* ---------------------------------------------------------------- tversky -- */

static void add_overlap(double o, double rest, double t, double *term) {
    term[0] = o * t;
    term[1] = o * (1 - t);
    term[2] = rest * t;
}

static void overlap_terms(const double *x, const row *r, double *term) {
    (void)r;
    add_overlap(x[0], 1 - x[0], x[1], term);
}

static void finish_overlap(row *r) {
    const double alpha = r->k[0], beta = r->k[1], smooth = r->k[2], eps = r->k[3];
    const double lost = alpha * r->sum[1] + beta * r->sum[2], kept = r->sum[0] + smooth, all = kept + lost;
    const double per_size = 1 / larger(all, eps), score = kept * per_size, pull = all < eps ? 0 : score * per_size;
    r->value = all < eps ? 1 - score : lost * per_size;
    r->factor[0] = pull * ((1 - alpha) - beta) - per_size;
    r->factor[1] = pull * alpha;
    r->factor[2] = pull * beta;
}

static double overlap_slope(int which, const double *x, const row *r) {
    return r->factor[0] * x[1 - which] + r->factor[1 + which];
}

static double sigmoid(double x) {
    return (double)real_quick_sigmoid((real)x);
}

/* That of -x comes from the same exponential, also at -0. */
static double other_sigmoid(double x) {
    const sigmoids both = quick_sigmoids(magnitude((real)x));
    return (double)(x < 0 ? both.of_plus : both.of_minus);
}

static void logit_terms(const double *x, const row *r, double *term) {
    (void)r;
    add_overlap(sigmoid(x[0]), other_sigmoid(x[0]), x[1], term);
}

static double logit_slope(int which, const double *x, const row *r) {
    const double o = sigmoid(x[0]), y[] = {o, x[1]}, slope = overlap_slope(which, y, r);
    return which == 0 ? slope * (o * other_sigmoid(x[0])) : slope;
}

/* ---------------------------------------------------------- distributions -- */

/* Whose elements are p, q and how far the logits are apart. */

static void no_terms(const double *x, const row *r, double *term) {
    (void)x, (void)r, (void)term;
}

static void finish_kl(row *r) {
    const double per_temperature = 1 / r->k[0];
    r->value = larger(r->softmaxes.carried * per_temperature - r->softmaxes.above, 0);
    r->factor[0] = per_temperature;
    r->factor[1] = per_temperature * per_temperature;
    r->factor[2] = (r->softmaxes.above + r->value) * per_temperature;
}

static double kl_slope(int which, const double *x, const row *r) {
    if (which == 0) {
        return (double)(((real)x[0] - (real)x[1]) * (real)r->factor[0]);
    }
    return x[1] == 0 ? 0 : x[1] * (x[2] * r->factor[1] - r->factor[2]);
}

/* share * log(a / m), 0 where a is. */
static double js_log(int which, const double *x, const row *r) {
    const real own = (real)x[which], mixture = (real)((1 - r->k[0]) * x[0] + r->k[0] * x[1]);
    const double share = which ? r->k[0] : 1 - r->k[0];
    return own > 0 && mixture > 0 ? share * (double)real_log_of_shares(own, mixture) : 0;
}

static void js_terms(const double *x, const row *r, double *term) {
    term[0] = x[0] * js_log(0, x, r);
    term[1] = x[1] * js_log(1, x, r);
}

static void finish_js(row *r) {
    const double per_temperature = 1 / r->k[1];
    r->value = isnan(r->softmaxes.above) ? NAN : larger(r->sum[0] + r->sum[1], 0);
    r->factor[0] = per_temperature;
    r->factor[1] = r->sum[0] * per_temperature;
    r->factor[2] = r->sum[1] * per_temperature;
}

static double js_slope(int which, const double *x, const row *r) {
    return x[which] * (js_log(which, x, r) * r->factor[0] - r->factor[1 + which]);
}

static double sign_of(double x) {
    return x > 0 ? 1 : x < 0 ? -1 : x * 0;
}

static void tv_terms(const double *x, const row *r, double *term) {
    (void)r;
    term[0] = x[0] * sign_of(x[0] - x[1]);
    term[1] = x[1] * sign_of(x[0] - x[1]);
}

static void finish_tv(row *r) {
    const double half = 0.5 / r->k[0];
    r->value = isnan(r->softmaxes.above) ? NAN : larger(0.5 * (r->sum[0] - r->sum[1]), 0);
    r->factor[0] = half;
    r->factor[1] = r->sum[0] * half;
    r->factor[2] = r->sum[1] * half;
}

static double tv_slope(int which, const double *x, const row *r) {
    const double pull = sign_of(x[0] - x[1]) * r->factor[0];
    return which == 0 ? x[0] * (pull - r->factor[1]) : x[1] * (r->factor[2] - pull);
}

static const definition definitions[] = {
    {"cosine_similarity", cosine_terms, finish_similarity, cosine_slope},
    {"cosine_embedding", cosine_terms, finish_embedding, cosine_slope},
    {"pairwise_distance", distance_terms, finish_distance, distance_slope},
    {"triplet_margin", triplet_terms, finish_triplet, triplet_slope},
    {"multi_margin", margin_terms, finish_margin, margin_slope},
    {"multilabel_margin", no_pairs, finish_pairs, pair_slope},
    {"tversky", overlap_terms, finish_overlap, overlap_slope},
    {"tversky_with_logits", logit_terms, finish_overlap, logit_slope},
    {"kl_div_with_logits", no_terms, finish_kl, kl_slope},
    {"js_div_with_logits", js_terms, finish_js, js_slope},
    {"tv_distance_with_logits", tv_terms, finish_tv, tv_slope},
};

static const definition *definition_of(const char *loss) {
    for (size_t i = 0; i < sizeof definitions / sizeof definitions[0]; i++) {
        if (strcmp(definitions[i].loss, loss) == 0) {
            return &definitions[i];
        }
    }
    return NULL;
}

/* ------------------------------------------------------------ comparisons -- */

/* The elements at one place. */
static void elements_at(const oracle_vectors *q, const row *r, int64_t index, int64_t i, double x[ORACLE_OPERANDS]) {
    for (int k = 0; k < ORACLE_OPERANDS; k++) {
        const bool is_there = r->element[k] || k < r->vectors;
        x[k] = !is_there ? 0 : r->element[k] ? r->element[k][i] : q->operand[k][index * q->elements + i];
    }
    if (r->own >= 0) {
        x[0] = i == r->own ? -INFINITY : x[0];
        x[1] = q->operand[0][index * q->elements + r->own];
    }
}

static void sum_row(const oracle_vectors *q, const definition *d, int64_t index, row *r) {
    double *term[SUMS], x[ORACLE_OPERANDS], own[SUMS] = {0};
    for (int s = 0; s < SUMS; s++) {
        term[s] = calloc((size_t)q->elements + 1, sizeof(double));
        if (!term[s]) {
            abort();
        }
    }
    for (int64_t i = 0; i < q->elements; i++) {
        elements_at(q, r, index, i, x);
        d->terms(x, r, own);
        for (int s = 0; s < SUMS; s++) {
            term[s][i] = own[s];
        }
    }
    for (int s = 0; s < SUMS; s++) {
        r->sum[s] = oracle_sum(term[s], q->elements, 0);
        free(term[s]);
    }
}

/* Steps 3 and 4 for each label by itself, one label after the other, and step 5 over what these come to. */
static void sum_pairs(const oracle_vectors *q, int64_t index, row *r) {
    const double *z = q->operand[0] + index * q->elements, *list = q->operand[1] + index * q->elements;
    const int64_t n = q->elements, tiles = (n + 1023) / 1024;
    double *node = calloc((size_t)tiles + 1, sizeof *node), *number = r->element[0], term[1024];
    bool *is_label = calloc((size_t)n + 1, sizeof *is_label);
    if (!node || !is_label) {
        abort();
    }
    memset(number, 0, (size_t)n * sizeof *number);
    for (int64_t k = 0; k < n && list[k] >= 0; k++) {
        is_label[(int64_t)list[k]] = true;
    }
    for (int64_t k = 0; k < n && list[k] >= 0; k++) {
        const int64_t own = (int64_t)list[k];
        for (int64_t i = 0; i < n; i++) {
            const double lacking = (1 - z[own]) + z[i];
            const bool is_above = !is_label[i] && lacking > 0;
            term[i % 1024] = is_above ? lacking : 0;
            number[i] += is_above;
            number[own] -= is_above;
            if (i % 1024 == 1023 || i == n - 1) {
                node[i / 1024] += oracle_sum(term, i % 1024 + 1, 0);
            }
        }
    }
    for (int64_t apart = 1; apart < tiles; apart *= 2) {
        for (int64_t i = 0; i + apart < tiles; i += 2 * apart) {
            node[i] += node[i + apart];
        }
    }
    r->sum[0] = node[0];
    free(node);
    free(is_label);
}

static bool same_bits(double a, double b) {
    return oracle_double_bits(a) == oracle_double_bits(b) || (isnan(a) && isnan(b));
}

static void check_gradients(const prepared_vectors *p, const definition *d, int64_t index, const row *r,
                            const char *what) {
    const oracle_vectors *q = &p->question;
    const real upstream = (real)(q->upstream ? q->upstream[q->reduction == ONEPASS_NONE ? index : 0] : 1);
    double x[ORACLE_OPERANDS] = {0};
    for (int64_t at = 0; at < r->vectors * q->elements; at++) {
        const int which = (int)(at / q->elements);
        const int64_t i = at % q->elements;
        elements_at(q, r, index, i, x);
        const real slope = (real)(i == r->own ? r->factor[1] : d->slope(which, x, r));
        const double expected = (double)(upstream != 1 ? slope * upstream : slope);
        const double found = vector_number(p, &p->gradient[which], index, i);
        if (!same_bits(expected, found)) {
            CHECK(false, "%s: row %lld, element %lld: expected gradient[%d] %a, got %a", what, (long long)index,
                  (long long)i, which, expected, found);
            return;
        }
    }
    CHECK(true, "%s", what);
}

static void check_row(const prepared_vectors *p, const definition *d, int64_t index, row *r, double divisor,
                      double *term, const char *what) {
    const oracle_vectors *q = &p->question;
    const bool divided = q->reduction == ONEPASS_MEAN || q->reduction == ONEPASS_BATCHMEAN;
    const double *numbers = q->operand[r->vectors % ORACLE_OPERANDS];
    const bool has_lists = vector_loss_has_label_lists(q->loss);
    r->number = onepass_loss_named(q->loss)->over_rows > ONEPASS_VECTOR && !has_lists ? numbers[index] : 0;
    r->own = vector_loss_has_labels(q->loss) ? (int64_t)r->number : -1;
    const double of_class = r->own >= 0 && q->operand[2] ? q->operand[2][r->own] : 1;
    const double weight = (q->weight ? q->weight[index] : 1) * of_class;
    const double scale = divided ? weight * (1 / divisor) : weight;
    r->length = (double)q->elements;
    if (vector_loss_compares_softmaxes(q->loss)) {
        const double temperature = r->k[onepass_loss_named(q->loss)->parameter_count - 1];
        r->softmaxes = model_softmaxes(q->operand[0] + index * q->elements, q->operand[1] + index * q->elements,
                                       q->elements, temperature, r->element);
    }
    if (has_lists) {
        sum_pairs(q, index, r);
    } else {
        sum_row(q, d, index, r);
    }
    memset(r->factor, 0, sizeof r->factor);
    d->finish(r);
    const double value = r->value * weight;
    for (int k = 0; k < FACTORS; k++) {
        r->factor[k] = r->factor[k] * scale;
    }
    *term = (double)(real)value;
    if (q->reduction == ONEPASS_NONE) {
        const double found = vector_number(p, &p->value, index, 0);
        CHECK(same_bits(value, found), "%s: row %lld: expected %a, got %a", what, (long long)index, value, found);
    }
    check_gradients(p, d, index, r, what);
}

static void check_reduced(const prepared_vectors *p, const double *terms, double divisor, const char *what) {
    const oracle_vectors *q = &p->question;
    const double sum = oracle_sum(terms, q->rows, IN_FLOAT), found = vector_number(p, &p->value, 0, 0);
    const double expected = q->reduction == ONEPASS_SUM ? sum : sum / divisor;
    CHECK(same_bits(expected, found), "%s: expected %a, got %a", what, expected, found);
}

/* What a mean is divided by, which test_vectors.c compares. */
static double divisor_of(const prepared_vectors *p) {
    double divisor = 1;
    oracle_vectors q = p->question;
    q.elements = 0;
    q.divided_by = &divisor;
    oracle_answer_vectors(&q);
    return divisor;
}

static void check_case(const vector_case *given) {
    char what[512];
    vector_case c = *given;
    c.value = ONEPASS_F64;
    for (int k = 0; k < oracle_vector_operands(c.loss); k++) {
        c.gradient[k] = IN_FLOAT ? ONEPASS_F32 : ONEPASS_F64;
    }
    vector_case_describe(&c, what, sizeof what);
    prepared_vectors *p = vector_case_prepare(&c);
    const oracle_vectors *q = &p->question;
    const definition *d = definition_of(c.loss);
    const onepass_loss_info *info = onepass_loss_named(c.loss);
    double k[ONEPASS_MAX_PARAMETERS], *terms = calloc((size_t)q->rows + 1, sizeof *terms);
    for (int32_t i = 0; i < info->parameter_count; i++) {
        k[i] = i < c.parameter_count ? c.parameter[i] : info->parameter[i].default_value;
    }
    row r = {.k = k, .vectors = oracle_vector_operands(c.loss)};
    const int made = vector_loss_compares_softmaxes(c.loss) ? 3 : vector_loss_has_label_lists(c.loss) ? 1 : 0;
    for (int i = 0; i < made; i++) {
        r.element[i] = calloc((size_t)q->elements + 1, sizeof(double));
        if (!r.element[i]) {
            abort();
        }
    }
    if (terms && CHECK(d != NULL, "%s has no definition here", c.loss) && CHECK_OK(onepass_run(&p->call), what)) {
        const double divisor = divisor_of(p);
        for (int64_t index = 0; index < q->rows; index++) {
            if (!q->mask || q->mask[index]) {
                check_row(p, d, index, &r, divisor, &terms[index], what);
            }
        }
        if (q->reduction != ONEPASS_NONE) {
            check_reduced(p, terms, divisor, what);
        }
    }
    for (int i = 0; i < 3; i++) {
        free(r.element[i]);
    }
    free(terms);
    vector_case_free(p);
}

/* Tiles of which pairs of lines are there: 256, 512 and 768 elements, alone and behind a whole tile; and some elements
 * of the next pair. */
static void check_pairs_of_lines(const vector_case *whole_tile) {
    static const int64_t elements[] = {256, 512, 768, 1280, 1792, 257, 384, 500, 640, 767, 800, 1000, 1300};
    for (size_t i = 0; i < sizeof elements / sizeof elements[0]; i++) {
        vector_case c = *whole_tile;
        c.batch = 2;
        c.elements = elements[i];
        check_case(&c);
    }
}

int main(void) {
    size_t count, looked_at = 0;
    const vector_case *cases = vector_case_list(&count);
    const int quick = check_quick("nine of ten cases");
    for (size_t i = 0; i < count; i++) {
        if (vector_case_in_double(&cases[i]) == !IN_FLOAT && (!quick || i % 10 == 0)) {
            check_case(&cases[i]);
            looked_at++;
        }
        const bool is_whole_tile = strcmp(cases[i].group, "sizes") == 0 && cases[i].elements == ONEPASS_TILE;
        if (is_whole_tile && vector_case_in_double(&cases[i]) == !IN_FLOAT) {
            check_pairs_of_lines(&cases[i]);
        }
    }
    printf("%zu cases in %s\n", looked_at, IN_FLOAT ? "float" : "double");
    return check_finish();
}
