/*
 * The order within a row and over rows, bit for bit: rows computed once more, slowly and literally, as docs/numerics.md
 * defines them. Tiles of 1024 classes, each with a whole-numbered shift of its own; exponentials in base 2; the label's
 * term, or those that lead, left out of the sum; tiles joined by powers of two. This file is compiled once with real =
 * float and once with real = double (ROWS_IN_DOUBLE), and looks at the cases that compute so.
 */
#include "check.h"
#include "oracle.h"
#include "row_case.h"
#include "row_losses.h"

#include <float.h>
#include <math.h>

#if defined(ROWS_IN_DOUBLE)
typedef double real;
#define IN_FLOAT 0
#else
typedef float real;
#define IN_FLOAT 1
#endif

enum {
    TILE = 1024,
    MOST_TILES = 64
};

/* -------------------------------------------------------------- functions -- */

static real fused(real a, real b, real c) {
    return IN_FLOAT ? (real)fmaf((float)a, (float)b, (float)c) : (real)fma((double)a, (double)b, (double)c);
}

/* So many steps of the polynomial of the definition: all 12 are 2^f for f from -1/2 to 1/2, and 10 are (2^f - 1 - f log
 * 2) / f^2. */
static double polynomial(double f, size_t steps) {
    static const double coefficient[] = {0x1.e79938f6b8e0ap-32, 0x1.e61de754e7e88p-28, 0x1.b52681fb34686p-24,
                                         0x1.62bfc631d46f3p-20, 0x1.ffcbfba551dc4p-17, 0x1.4309130f602bep-13,
                                         0x1.5d87fe78ceab5p-10, 0x1.3b2ab6fb9fea8p-7,  0x1.c6b08d7049fep-5,
                                         0x1.ebfbdff82c5a5p-3,  0x1.62e42fefa39efp-1,  1};
    double p = coefficient[0];
    for (size_t i = 1; i < steps; i++) {
        p = fma(p, f, coefficient[i]);
    }
    return p;
}

static double power_in_double(double f) {
    return polynomial(f, 12);
}

static real power(real f) {
    static const float coefficient[] = {
        0x1.41f964p-13f, 0x1.5f41b8p-10f, 0x1.3b2d56p-7f, 0x1.c6aee4p-5f, 0x1.ebfbdcp-3f, 0x1.62e43p-1f, 1};
    if (!IN_FLOAT) {
        return (real)power_in_double((double)f);
    }
    float p = coefficient[0];
    for (size_t i = 1; i < sizeof coefficient / sizeof coefficient[0]; i++) {
        p = fmaf(p, (float)f, coefficient[i]);
    }
    return p;
}

/* 2^x for x <= 0, and 0 below -1000. */
static double scale_of(double x) {
    if (!(x >= -1000)) {
        return 0;
    }
    const double whole = rint(x);
    return ldexp(power_in_double(x - whole), (int)whole);
}

/* Where results are rounded to float, sums are divided by through their reciprocal. */
static double over(double x, double sum) {
    return IN_FLOAT ? x * (1 / sum) : x / sum;
}

/* Roughly log2 of a positive number, times 2^52. */
static int64_t rough_log2(double x) {
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* log(1 + a / b) by the series of the definition: (a + b) / b = 2^k q with q near 1, and q - 1 = (b - 2^k b + a) / 2^k
 * b. A float needs fewer terms. */
static double log1p_of_ratio(double a, double b) {
    const double sum = a + b;
    const int k = (int)((rough_log2(sum) - rough_log2(b) + (INT64_C(1) << 51)) >> 52);
    const double near = ldexp(b, k), s = (b - near + a) / (sum + near), z = s * s;
    double r = 0;
    for (int n = IN_FLOAT ? 15 : 21; n >= 3; n -= 2) {
        r = fma(r, z, 2.0 / n);
    }
    return fma(k, 0x1.62e42fefa39efp-1, fma(k, 0x1.abc9e3b39803fp-56, fma(s * z, r, 2 * s)));
}

static const double log2_e = 0x1.71547652b82fep+0, log2_e_low = 0x1.777d0ffda0d24p-56, ln_2 = 0x1.62e42fefa39efp-1;

/* 2^(x + low) for x <= 0. */
static double power_of_sum(double x, double low) {
    if (!(x >= -1100)) {
        return 0;
    }
    const int lifted = x < -900 ? 512 : 0;
    const double about = scale_of(x + lifted);
    return ldexp(fma(about, low * ln_2, about), -lifted);
}

/* e^-t. */
static double decay(double t) {
    const double x = -t * log2_e;
    return power_of_sum(x, fma(-t, log2_e, -x) - t * log2_e_low);
}

/* (1 - e^-t) / t for t up to log 2: that of t / 2, times (1 + e^(-t/2)) / 2. */
static double lack_ratio(double t) {
    const double f = -(t / 2) * log2_e, ratio = fma(f * log2_e, polynomial(f, 10), 1);
    return ratio * fma(-(t / 4), ratio, 1);
}

/* x^y for x from 0 to 1: 2^(y log2 x), the logarithm as a sum of two doubles, k + log2 m with m from 3/4 to 3/2. */
static double raised(double x, double y) {
    if (y == 0 || x >= 1 || y == 1 || x == 0 || y == 2) {
        return y == 0 || x >= 1 ? 1 : y == 2 ? x * x : x;
    }
    int k;
    double m = frexp(x, &k), r = 0;
    if (m < 0.75) {
        m = 2 * m;
        k = k - 1;
    }
    const double sum = m + 1, lost = m - (sum - 1), per_sum = 1 / sum, s = (m - 1) * per_sum, z = s * s;
    const double s_low = fma(-s, lost, fma(-s, sum, m - 1)) * per_sum;
    for (int n = 23; n >= 3; n -= 2) {
        r = fma(r, z, 2.0 / n);
    }
    const double first = 2 * s * log2_e, first_low = fma(2 * s, log2_e, -first) + 2 * s * log2_e_low;
    const double rest = fma(s * z, r, 2 * s_low) * log2_e;
    const double about = k + first, low = first - (about - k) + first_low + rest;
    const double log2_x = about + low, log2_low = low - (log2_x - about), power = y * log2_x;
    return power_of_sum(power, fma(y, log2_x, -power) + y * log2_low);
}

/* The tree over tiles. */
static double tree(const double *sum, int64_t first, int64_t count, int64_t width) {
    if (width == 1) {
        return sum[first];
    }
    const double left = tree(sum, first, count, width / 2);
    return first + width / 2 < count ? left + tree(sum, first + width / 2, count, width / 2) : left;
}

static double tree_of(const double *sum, int64_t count) {
    int64_t width = 1;
    while (width < count) {
        width *= 2;
    }
    return tree(sum, 0, count, width);
}

/* ------------------------------------------------------------------ a tile -- */

/* log2(e) / temperature, to twice the digits of a double, and as the sum of two reals. */
typedef struct factors {
    double wide, wide_low, per_temperature;
    real high, low, inverse;
} factors;

static factors factors_of(double temperature) {
    factors f;
    f.wide = log2_e / temperature;
    f.wide_low = (fma(-f.wide, temperature, log2_e) + log2_e_low) / temperature;
    f.per_temperature = 1 / temperature;
    f.high = (real)f.wide;
    f.low = (real)((f.wide - (double)f.high) + f.wide_low);
    f.inverse = (real)(1 / f.wide);
    return f;
}

typedef struct tile {
    real largest, anchor, n;
    double exponent; /* n, or that of the anchor; -inf: there is no finite logit */
} tile;

static tile shift_of(const factors *f, real largest) {
    tile t = {largest, 0, 0, 0};
    const real product = largest * f->high, limit = (real)(IN_FLOAT ? 0x1p20 : 0x1p49);
    if (largest == -(real)INFINITY) {
        t.largest = 0;
        t.exponent = -INFINITY;
    } else if (product >= limit || product <= -limit) {
        t.anchor = largest;
        t.exponent = fmax(fmin((double)largest * f->wide, DBL_MAX), -DBL_MAX);
    } else {
        t.n = (real)ceil((double)product);
        t.exponent = (double)t.n;
    }
    return t;
}

static real exponential(const factors *f, const tile *t, real logit) {
    const real rounder = (real)(IN_FLOAT ? 0x1.8p23 : 0x1.8p52) - t->n, range = IN_FLOAT ? 127 : 1023;
    const real lowest = (t->n - range) * f->inverse, z = logit - t->anchor > lowest ? logit - t->anchor : lowest;
    const real whole = fused(z, f->high, rounder) - rounder;
    const real rest = fused(z, f->low, fused(z, f->high, -whole));
    const int k = (int)(whole - t->n);
    return k <= -range ? 0 : (real)(power(rest) * (real)ldexp(1, k));
}

/* ------------------------------------------------------------------- a row -- */

typedef struct row {
    double largest, others, own, lse, weights; /* the state, in its order */
    double exponent, value, weighted, above;
    double exponentials, of_weights, of_own; /* slopes: e_c's factor, u_c's factor, the label's own */
} row;

typedef struct parameters {
    double smoothing, z_loss, temperature, epsilon, alpha, gamma, q;
} parameters;

static double named(const row_case *c, const char *name, double otherwise) {
    const onepass_loss_info *info = onepass_loss_named(c->loss);
    for (int32_t k = 0; k < c->parameter_count; k++) {
        if (strcmp(info->parameter[k].name, name) == 0) {
            return c->parameter[k];
        }
    }
    return otherwise;
}

static tile tile_of(const factors *f, const double *z, int64_t count) {
    real largest = -(real)INFINITY;
    for (int64_t c = 0; c < count; c++) {
        largest = (real)z[c] > largest ? (real)z[c] : largest;
    }
    return shift_of(f, largest);
}

/* w_c, or w_c ((1 - s) q_c + s / C). */
static real share_of(const oracle_rows *q, const parameters *p, int64_t index, int64_t c) {
    const real weight = (real)(q->class_weight ? q->class_weight[c] : 1);
    if (!q->probability) {
        return weight;
    }
    const real kept = (real)(1 - p->smoothing), share = (real)(p->smoothing / (double)q->classes);
    const real product = (real)q->probability[index * q->classes + c] * kept;
    return weight * (real)(product + share);
}

static row sum_row(const oracle_rows *q, const parameters *p, const factors *f, int64_t index) {
    const double *z = q->input + index * q->classes;
    const int64_t label = q->label ? q->label[index] : -1, tiles = (q->classes + TILE - 1) / TILE;
    double others[MOST_TILES] = {0}, leading[MOST_TILES] = {0}, weights[MOST_TILES], weighted[MOST_TILES];
    double own = 0, own_exponent = 0;
    row r = {0};
    const tile whole = tile_of(f, z, q->classes);
    r.exponent = whole.exponent;
    r.largest = (double)whole.largest;
    for (int64_t k = 0; k < tiles; k++) {
        const int64_t first = k * TILE, count = q->classes - first < TILE ? q->classes - first : TILE;
        const tile t = tile_of(f, z + first, count);
        const double most = (double)exponential(f, &t, t.largest);
        double e[TILE], u[TILE], uz[TILE], leaders = 0;
        for (int64_t c = 0; c < count; c++) {
            const real logit = (real)z[first + c], share = share_of(q, p, index, first + c);
            e[c] = (double)exponential(f, &t, logit);
            u[c] = (double)share;
            uz[c] = share == 0 ? 0 : (double)(real)(share * (real)(logit - t.largest));
            if (first + c == label) {
                own = e[c];
                own_exponent = t.exponent;
                e[c] = 0;
            }
            if (label < 0 && e[c] == most) { /* it leads */
                leaders++;
                e[c] = 0;
            }
        }
        const bool leads = t.largest == whole.largest;
        leading[k] = leads ? leaders * most : 0;
        others[k] = (oracle_sum(e, count, IN_FLOAT) + (leads ? 0 : leaders * most)) * scale_of(t.exponent - r.exponent);
        weights[k] = oracle_sum(u, count, IN_FLOAT);
        weighted[k] = weights[k] * ((double)whole.largest - (double)t.largest) - oracle_sum(uz, count, IN_FLOAT);
    }
    r.others = tree_of(others, tiles);
    r.own = label >= 0 ? own * scale_of(own_exponent - r.exponent) : tree_of(leading, tiles);
    if (q->probability || p->smoothing != 0) {
        r.weights = tree_of(weights, tiles);
        r.weighted = tree_of(weighted, tiles);
    }
    const double most = (double)exponential(f, &whole, whole.largest);
    r.above = log1p_of_ratio(r.others + (r.own - most), most);
    r.lse = fma((double)whole.largest, f->per_temperature, r.above);
    return r;
}

/* lse - z. */
static double distance(const factors *f, const row *r, double z) {
    return fma(r->largest - z, f->per_temperature, r->above);
}

/* A loss that is a function of the label's probability; whether this is one. */
static bool is_of_label(const char *loss, const parameters *p, double weight, double nll, double own, double others,
                        row *r) {
    if (strcmp(loss, "log_prob") == 0) {
        r->value = -(weight * nll);
        r->exponentials = -weight;
        r->of_own = weight * others;
    } else if (strcmp(loss, "softmax_focal") == 0) {
        const double power = p->alpha * weight * raised(others, p->gamma);
        const double steeper = own == 0 ? 0 : others == 0 ? own : own * (nll / others);
        r->value = power * nll;
        r->exponentials = power * (1 + p->gamma * steeper);
        r->of_own = 0 - r->exponentials * others;
    } else if (strcmp(loss, "generalized_cross_entropy") == 0) {
        const double t = p->q == 0 ? 0 : p->q * nll;
        r->value = weight * (t < ln_2 ? nll * lack_ratio(t) : (1 - decay(t)) / p->q);
        r->exponentials = weight * (own >= 0x1p-1000 ? raised(own, p->q) : decay(t));
        r->of_own = 0 - r->exponentials * others;
    } else if (strcmp(loss, "poly") == 0) {
        r->value = weight * (nll + p->epsilon * others);
        r->exponentials = weight * (1 + p->epsilon * own);
        r->of_own = -(r->exponentials * others);
    } else {
        return false;
    }
    return true;
}

static void value_row(const oracle_rows *q, const parameters *p, const factors *f, int64_t index, row *r) {
    const double sum = r->others + r->own, share = p->smoothing / (double)q->classes;
    const double u = r->weights * r->above + r->weighted * f->per_temperature,
                 pull = p->z_loss != 0 ? 2 * p->z_loss * r->lse : 0;
    const double penalty = p->z_loss * r->lse * r->lse;
    if (q->probability) {
        r->value = p->z_loss != 0 ? u + penalty : u;
        r->exponentials = r->weights + pull;
        r->of_weights = 1;
        return;
    }
    const double z = q->input[index * q->classes + q->label[index]];
    const double nll = r->own >= 0x1p-1000 ? log1p_of_ratio(r->others, r->own)
                       : z == -INFINITY    ? INFINITY
                                           : distance(f, r, z);
    const double weight = q->class_weight ? q->class_weight[q->label[index]] : 1;
    const double own = over(r->own, sum), others = over(r->others, sum), kept = (1 - p->smoothing) * weight;
    if (is_of_label(q->loss, p, weight, nll, own, others, r)) {
        return;
    }
    r->value = kept * nll;
    r->value = p->smoothing != 0 ? r->value + share * u : r->value;
    r->value = p->z_loss != 0 ? r->value + penalty : r->value;
    r->exponentials = kept + share * r->weights + pull;
    r->of_weights = share;
    r->of_own = (share * (r->weights * own - weight) - kept * others) + pull * own;
}

/* ------------------------------------------------------------ comparisons -- */

static bool is_in(const row_case *c, const oracle_rows *q, int64_t index) {
    return !(q->mask && !q->mask[index]) && !(q->label && (double)q->label[index] == named(c, "ignore_index", -100));
}

static bool same_bits(double a, double b) {
    return oracle_double_bits(a) == oracle_double_bits(b) || (isnan(a) && isnan(b));
}

static void check_gradient(const prepared_rows *got, const parameters *p, const factors *f, int64_t index, const row *r,
                           double divisor, const char *what) {
    const oracle_rows *q = &got->question;
    const double *z = q->input + index * q->classes;
    const double weight = q->weight ? q->weight[index] : 1, per_divisor = divisor == 1 ? 1 : 1 / divisor;
    const double common = weight * per_divisor * f->per_temperature,
                 factor = over(r->exponentials, r->others + r->own) * common;
    const real b = (real)(r->of_weights * common), own = (real)(r->of_own * common);
    const real upstream = (real)(q->upstream ? q->upstream[q->reduction == ONEPASS_NONE ? index : 0] : 1);
    const bool weighs = q->probability || p->smoothing != 0;
    for (int64_t c = 0; c < q->classes; c++) {
        const int64_t first = c / TILE * TILE, count = q->classes - first < TILE ? q->classes - first : TILE;
        static tile t;
        if (c == first) {
            t = tile_of(f, z + first, count);
        }
        const real scaled = (real)(factor * scale_of(t.exponent - r->exponent));
        real slope = exponential(f, &t, (real)z[c]) * scaled;
        if (weighs) {
            slope = slope - (real)(share_of(q, p, index, c) * b);
        }
        slope = q->label && c == q->label[index] ? own : slope;
        slope = upstream != 1 ? (real)(slope * upstream) : slope;
        const double found = row_number(&got->gradient[0], index, c);
        if (!same_bits((double)slope, found)) {
            CHECK(false, "%s: row %lld, class %lld: expected gradient %a, got %a", what, (long long)index, (long long)c,
                  (double)slope, found);
            return;
        }
    }
    CHECK(true, "%s", what);
}

static void check_row(const prepared_rows *got, const parameters *p, const factors *f, int64_t index, double divisor,
                      double *term, const char *what) {
    const oracle_rows *q = &got->question;
    row r = sum_row(q, p, f, index);
    value_row(q, p, f, index, &r);
    const double state[ONEPASS_ROW_STATE] = {r.largest, r.others, r.own, r.lse, r.weights};
    for (int i = 0; i < ONEPASS_ROW_STATE; i++) {
        const double found = row_number(&got->state, index, i);
        CHECK(state[i] == found, "%s: row %lld: expected number %d of the state to be %a, got %a", what,
              (long long)index, i, state[i], found);
    }
    const double value = r.value * (q->weight ? q->weight[index] : 1);
    *term = (double)(real)value;
    if (q->reduction == ONEPASS_NONE) {
        const double found = row_number(&got->value, index, 0);
        CHECK(same_bits(value, found), "%s: row %lld: expected %a, got %a", what, (long long)index, value, found);
    }
    const double lse = row_number(&got->log_sum_exp, index, 0);
    CHECK(same_bits(r.lse, lse), "%s: row %lld: expected log_sum_exp %a, got %a", what, (long long)index, r.lse, lse);
    check_gradient(got, p, f, index, &r, divisor, what);
}

/* What a mean is divided by: what the rows count for, added up as the rows are. */
static double divisor_of(const prepared_rows *got, double *counts) {
    const oracle_rows *q = &got->question;
    const bool is_mean = q->reduction == ONEPASS_MEAN;
    if (!is_mean || q->divisor != 0) {
        return q->reduction == ONEPASS_MEAN || q->reduction == ONEPASS_BATCHMEAN ? q->divisor : 1;
    }
    for (int64_t row = 0; row < q->rows; row++) {
        const bool in = is_in(&got->of, q, row);
        const double of_class = q->label && q->class_weight && in ? q->class_weight[q->label[row]] : 1;
        counts[row] = !in ? 0 : q->over_elements ? 1 : (double)(real)(of_class * (q->weight ? q->weight[row] : 1));
    }
    return oracle_sum(counts, q->rows, IN_FLOAT);
}

static void check_case(const row_case *given) {
    char what[512];
    row_case c = *given;
    c.value = c.log_sum_exp = ONEPASS_F64;
    c.gradient = IN_FLOAT ? ONEPASS_F32 : ONEPASS_F64;
    c.state = true;
    c.in_place = false;
    c.divided_by = c.reduction == ONEPASS_MEAN;
    row_case_describe(&c, what, sizeof what);
    prepared_rows *p = row_case_prepare(&c);
    const oracle_rows *q = &p->question;
    const parameters named_parameters = {
        named(&c, "label_smoothing", 0), named(&c, "z_loss", 0), named(&c, "temperature", 1), named(&c, "epsilon", 2),
        named(&c, "alpha", 1),           named(&c, "gamma", 2),  named(&c, "q", 0.7)};
    const factors f = factors_of(named_parameters.temperature);
    double *terms = calloc((size_t)q->rows, sizeof *terms);
    if (terms && CHECK_OK(onepass_run(&p->call), what)) {
        const double divisor = divisor_of(p, terms);
        for (int64_t row = 0; row < q->rows; row++) {
            terms[row] = 0;
            if (is_in(&c, q, row)) {
                check_row(p, &named_parameters, &f, row, divisor, &terms[row], what);
            }
        }
        if (q->reduction != ONEPASS_NONE) {
            const double sum = oracle_sum(terms, q->rows, IN_FLOAT), found = row_number(&p->value, 0, 0);
            const double expected = q->reduction == ONEPASS_SUM ? sum : sum / divisor;
            CHECK(same_bits(expected, found), "%s: expected %a, got %a", what, expected, found);
        }
        if (c.divided_by) {
            const double found = row_number(&p->divided_by, 0, 0);
            CHECK(same_bits(divisor, found), "%s: expected to be divided by %a, got %a", what, divisor, found);
        }
    }
    free(terms);
    row_case_free(p);
}

/* Every number of classes that rows side by side add up in their own way, more rows than are taken together, with and
 * without weights. */
static void check_few_classes(const row_case *few) {
    for (int64_t classes = 1; classes <= 96; classes += classes < 34 ? 1 : 13) {
        row_case c = *few;
        c.batch = 37;
        c.classes = classes;
        c.parameter_count = 2;
        c.parameter[0] = -100;
        c.parameter[1] = classes % 2 ? 0.1 : 0;
        check_case(&c);
    }
}

int main(void) {
    size_t count, looked_at = 0;
    bool looked_at_few = false;
    const row_case *cases = row_case_list(&count);
    const int quick = check_quick("nine of ten cases");
    for (int i = 0; label_loss_at(i); i++) {
        row r;
        const bool is_known = is_of_label(label_loss_at(i), &(parameters){.q = 1}, 1, 1, 0.5, 0.5, &r);
        CHECK(is_known || strcmp(label_loss_at(i), "cross_entropy") == 0,
              "expected that is_of_label of tests/test_rows_order.c has the operations of %s, in their order",
              label_loss_at(i));
    }
    for (size_t i = 0; i < count; i++) {
        const row_case *c = &cases[i];
        if (row_case_in_double(c) == !IN_FLOAT && strcmp(c->loss, "nll") != 0 && named(c, "softcap", 0) == 0 &&
            (!quick || i % 10 == 0)) {
            check_case(c);
            looked_at++;
        }
        const bool is_few = strcmp(c->loss, "cross_entropy") == 0 && strcmp(c->group, "sizes") == 0 && c->classes == 10;
        if (is_few && row_case_in_double(c) == !IN_FLOAT && !looked_at_few) {
            check_few_classes(c);
            looked_at_few = true;
        }
    }
    printf("%zu cases in %s\n", looked_at, IN_FLOAT ? "float" : "double");
    return check_finish();
}
