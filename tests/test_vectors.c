/*
 * Vector losses against the oracle: every value and gradient, in every type, lies between the least and the largest
 * number that the rounding errors of computing in double allow (tests/oracle/vectors.c derives them), which in float is
 * nearly always one number alone. And the same bits by every route: value and gradients together or apart, in place, on
 * any number of threads, with any strides.
 */
#include "check.h"
#include "cpu/threads.h"
#include "vector_case.h"

#include <math.h>

/* ------------------------------------------------------------ the oracle -- */

typedef struct answers {
    oracle_range *value, *gradient[ORACLE_OPERANDS];
    unsigned char *at_kink;
    double divided_by;
} answers;

static answers ask_oracle(const prepared_vectors *p) {
    const size_t rows = (size_t)p->rows, all = rows * (size_t)p->of.elements;
    answers a = {.value = case_allocate((rows + 1) * sizeof(oracle_range)), .at_kink = case_allocate(rows)};
    oracle_vectors q = p->question;
    for (int k = 0; k < ORACLE_OPERANDS; k++) {
        a.gradient[k] = p->of.gradient[k] ? case_allocate(all * sizeof(oracle_range)) : NULL;
        q.gradient[k] = a.gradient[k];
    }
    q.value = a.value;
    q.at_kink = a.at_kink;
    q.divided_by = &a.divided_by;
    oracle_answer_vectors(&q);
    return a;
}

static void forget(answers *a) {
    free(a->value);
    free(a->at_kink);
    for (int k = 0; k < ORACLE_OPERANDS; k++) {
        free(a->gradient[k]);
    }
}

/* -------------------------------------------------------------- results -- */

/* How many results there were in float and in double, and how many of them could be no other number. */
static struct { long all, settled; } seen[2];
static long rows_at_kinks, rows_seen;

/* Both ends are rounded to the type of the output, as the result is. */
static bool is_within(double got, int32_t type, oracle_range range, bool in_double) {
    double end[2] = {range.least, range.most};
    oracle_round(type, end, 2);
    seen[in_double].all++;
    seen[in_double].settled += end[0] == end[1] || isnan(end[0]);
    return isnan(end[0]) || isnan(end[1]) ? isnan(got) : got >= end[0] && got <= end[1];
}

static void check_values(const prepared_vectors *p, const answers *a, const char *what) {
    const int64_t count = p->of.reduction == ONEPASS_NONE ? p->rows : 1;
    for (int64_t row = 0; row < count; row++) {
        const double got = vector_number(p, &p->value, row, 0);
        if (!is_within(got, p->of.value, a->value[row], !p->question.in_float)) {
            CHECK(false, "%s: row %lld: expected a value from %.17g to %.17g, got %.17g", what, (long long)row,
                  a->value[row].least, a->value[row].most, got);
            return;
        }
    }
    CHECK(true, "%s", what);
}

static void check_gradient(const prepared_vectors *p, const answers *a, int k, const char *what) {
    for (int64_t at = 0; at < p->rows * p->of.elements; at++) {
        const int64_t row = at / p->of.elements;
        const double got = vector_number(p, &p->gradient[k], row, at % p->of.elements);
        if (!a->at_kink[row] && !is_within(got, p->of.gradient[k], a->gradient[k][at], !p->question.in_float)) {
            CHECK(false, "%s: row %lld, element %lld: expected gradient[%d] from %.17g to %.17g, got %.17g", what,
                  (long long)row, (long long)(at % p->of.elements), k, a->gradient[k][at].least,
                  a->gradient[k][at].most, got);
            return;
        }
    }
    CHECK(true, "%s", what);
}

static void count_kinks(const prepared_vectors *p, const answers *a) {
    rows_seen += (long)p->rows;
    for (int64_t row = 0; row < p->rows; row++) {
        rows_at_kinks += a->at_kink[row];
    }
}

static void check_case(const vector_case *c) {
    char what[512];
    prepared_vectors *p = vector_case_prepare(c);
    vector_case_describe(c, what, sizeof what);
    answers a = ask_oracle(p);
    vector_case_poison(p);
    if (CHECK_OK(onepass_run(&p->call), what)) {
        CHECK(vector_case_kept_fences(p), "%s: expected nothing but the outputs' elements to be written", what);
        if (c->value) {
            check_values(p, &a, what);
        }
        for (int k = 0; k < ORACLE_OPERANDS; k++) {
            if (c->gradient[k]) {
                check_gradient(p, &a, k, what);
            }
        }
        if (c->divided_by) {
            const double got = vector_number(p, &p->divided_by, 0, 0);
            CHECK(got == a.divided_by, "%s: expected to be divided by %.17g, got %.17g", what, a.divided_by, got);
        }
        count_kinks(p, &a);
    }
    forget(&a);
    vector_case_free(p);
}

/* --------------------------------------------------------------- routes -- */

static const uint64_t hash_begin = UINT64_C(0xcbf29ce484222325);

/* Runs a call with poisoned outputs and hashes all outputs of the case, those that are not asked for as poison. */
static uint64_t run_and_hash(prepared_vectors *p, const onepass_call *call, const char *what) {
    vector_case_poison(p);
    CHECK_OK(onepass_run(call), what);
    return vector_case_hash(hash_begin, p);
}

/* What the outputs are together they must be one by one: the bytes of one output, the others being left out. */
static void check_alone(prepared_vectors *p, const onepass_call *alone, const case_tensor *output, const char *what) {
    unsigned char *together = case_allocate(output->bytes);
    run_and_hash(p, &p->call, what);
    memcpy(together, output->memory, output->bytes);
    run_and_hash(p, alone, what);
    CHECK(memcmp(together, output->memory, output->bytes) == 0, "%s: expected the bits of a call that asks for all",
          what);
    free(together);
}

static void check_each_alone(prepared_vectors *p, const char *what) {
    onepass_call none = p->call;
    memset(none.gradient, 0, sizeof none.gradient);
    none.value = none.divided_by = NULL;
    for (int k = 0; k < oracle_vector_operands(p->of.loss); k++) {
        onepass_call alone = none;
        alone.gradient[k] = p->call.gradient[k];
        check_alone(p, &alone, &p->gradient[k], what);
    }
    onepass_call alone = none;
    alone.value = p->call.value;
    check_alone(p, &alone, &p->value, what);
}

static void check_routes(const vector_case *given) {
    static const int32_t threads[] = {1, 2, 3, 7};
    char what[512];
    vector_case c = *given;
    c.value = c.value ? c.value : ONEPASS_F32;
    for (int k = 0; k < oracle_vector_operands(c.loss); k++) {
        c.gradient[k] = c.gradient[k] ? c.gradient[k] : c.operand[k];
    }
    prepared_vectors *p = vector_case_prepare(&c);
    vector_case_describe(&c, what, sizeof what);
    const uint64_t expected = run_and_hash(p, &p->call, what);
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        p->call.threads = threads[i];
        CHECK_BITS(expected, run_and_hash(p, &p->call, what), what);
    }
    p->call.threads = c.threads;
    check_each_alone(p, what);
    vector_case_free(p);
    const bool is_same_data = vector_case_is_apart(&c, 0) && vector_case_is_apart(&c, 1);
    if (c.layout > VECTORS_DENSE && is_same_data && c.reduction != ONEPASS_BATCHMEAN) {
        c.layout = VECTORS_DENSE;
        p = vector_case_prepare(&c);
        CHECK_BITS(expected, run_and_hash(p, &p->call, what), what);
        vector_case_free(p);
    }
}

/* Gradients over their operands: all of them, or one. */
static void check_in_place(const vector_case *given, int only) {
    char what[512];
    vector_case c = *given;
    for (int k = 0; k < oracle_vector_operands(c.loss); k++) {
        c.gradient[k] = only < 0 || k == only ? c.operand[k] : 0;
    }
    vector_case_describe(&c, what, sizeof what);
    prepared_vectors *apart = vector_case_prepare(&c);
    c.in_place = true;
    prepared_vectors *over = vector_case_prepare(&c);
    CHECK_BITS(run_and_hash(apart, &apart->call, what), run_and_hash(over, &over->call, what), what);
    CHECK(vector_case_kept_fences(over), "%s: in place: expected nothing but elements to be written", what);
    vector_case_free(apart);
    vector_case_free(over);
}

/* A broadcast operand, or that operand written out in full: the same bits. */
static void check_written_out(const vector_case *c) {
    char what[512];
    vector_case_describe(c, what, sizeof what);
    prepared_vectors *p = vector_case_prepare(c);
    const uint64_t expected = run_and_hash(p, &p->call, what);
    onepass_tensor full[ORACLE_OPERANDS];
    for (int k = 0; k < oracle_vector_operands(c->loss); k++) {
        const size_t size = oracle_size(c->operand[k]), count = (size_t)(p->rows * c->elements);
        full[k] = (onepass_tensor){case_allocate(size * count), c->operand[k], p->ndim, p->shape, NULL};
        for (size_t i = 0; i < count; i++) {
            oracle_store(c->operand[k], (char *)full[k].data + i * size, p->question.operand[k][i]);
        }
        p->call.operand[k] = &full[k];
    }
    CHECK_BITS(expected, run_and_hash(p, &p->call, what), what);
    for (int k = 0; k < oracle_vector_operands(c->loss); k++) {
        free(full[k].data);
    }
    vector_case_free(p);
}

/* --------------------------------------------------------------- slopes -- */

/* The oracle's own slopes against differences of its values. */
static void check_slopes(const vector_case *c) {
    const double step = 1e-5;
    char what[512];
    vector_case_describe(c, what, sizeof what);
    prepared_vectors *p = vector_case_prepare(c);
    const int vectors = oracle_vector_operands(c->loss);
    const size_t all = (size_t)(p->rows * c->elements);
    double *slope[ORACLE_OPERANDS] = {NULL}, *value = case_allocate((size_t)p->rows * sizeof *value);
    oracle_vectors q = p->question;
    for (int k = 0; k < vectors; k++) {
        q.exact_slope[k] = slope[k] = case_allocate(all * sizeof(double));
    }
    oracle_answer_vectors(&q);
    memset(q.exact_slope, 0, sizeof q.exact_slope);
    q.exact_value = value;
    for (size_t at = 0; at < (size_t)vectors * all; at++) {
        const int k = (int)(at / all);
        double *number = &((double *)p->kept[k])[at % all], side[2];
        const double kept = *number;
        for (int s = 0; s < 2; s++) {
            *number = s ? kept + step : kept - step;
            oracle_answer_vectors(&q);
            side[s] = value[(int64_t)(at % all) / c->elements];
        }
        *number = kept;
        const double expected = (side[1] - side[0]) / (2 * step), got = slope[k][at % all];
        CHECK(fabs(expected - got) < 1e-7, "%s: element %zu of operand %d: expected slope %g, got %g", what, at % all,
              k, expected, got);
    }
    for (int k = 0; k < vectors; k++) {
        free(slope[k]);
    }
    free(value);
    vector_case_free(p);
}

static void test_slopes(void) {
    static const double other[][4] = {{0.5, 1, 0, 1}, {0.2, 2, 0.25, 1}, {1, 1, 0.125, 0}};
    for (int32_t i = 0; onepass_vector_loss_at(i); i++) {
        const onepass_loss_info *info = onepass_vector_loss_at(i);
        for (int k = 0; k < 4; k++) {
            vector_case c = {.loss = info->name,
                             .operand = {ONEPASS_F64, ONEPASS_F64, ONEPASS_F64},
                             .weight = k == 2 ? ONEPASS_F64 : 0,
                             .reduction = ONEPASS_SUM,
                             .batch = 6,
                             .elements = 5,
                             .seed = 3};
            for (int32_t j = 0; k && j < info->parameter_count; j++) {
                const bool is_power = strcmp(info->parameter[j].name, "p") == 0;
                c.parameter[c.parameter_count++] = is_power ? 1 + k % 2 : other[k - 1][j];
            }
            check_slopes(&c);
        }
    }
}

/* ----------------------------------------------------------------- main -- */

int main(void) {
    size_t count;
    const vector_case *cases = vector_case_list(&count);
    const int quick = check_quick("elements beyond 2500, more than 1000 rows, and routes of most cases");
    onepass_cpu_cores = 7; /* the most threads that a case has */
    test_slopes();
    const size_t one_of = check_one_of(5);
    size_t taken = 0;
    for (size_t i = 0; i < count; i++) {
        const vector_case *c = &cases[i];
        const bool is_slow = vector_loss_compares_softmaxes(c->loss) && c->elements * vector_case_rows(c) > 12000;
        const bool is_large = c->elements > 2500 || vector_case_rows(c) > 1000 || is_slow;
        if ((quick && is_large) || !check_takes(i, one_of)) {
            continue;
        }
        taken++;
        check_case(c);
        if ((strcmp(c->group, "sizes") != 0 || taken % 2 == 0) && (!quick || taken % 8 == 0)) {
            check_routes(c);
        }
        if (strcmp(c->group, "layouts") == 0) {
            check_written_out(c);
            if (vector_case_is_apart(c, 0) && vector_case_is_apart(c, 1)) {
                for (int only = -1; only < oracle_vector_operands(c->loss); only++) {
                    check_in_place(c, only);
                }
            }
        }
    }
    CHECK(count >= 1000, "expected the cases of all losses, got %zu", count);
    CHECK(rows_at_kinks * 20 < rows_seen, "expected few rows at kinks, got %ld of %ld", rows_at_kinks, rows_seen);
    printf("%zu cases; results that could be no other number: %.4f of %ld in float, %.4f of %ld in double\n", count,
           (double)seen[0].settled / (double)seen[0].all, seen[0].all, (double)seen[1].settled / (double)seen[1].all,
           seen[1].all);
    return check_finish();
}
