/*
 * The promise about accuracy. For random inputs the float result is within one
 * unit in the last place of the exact sum of the float terms, rounded once, at
 * any size; for constant, huge, tiny and widely spread terms the relative error
 * of the sum is at most 4 * 2^-24. The terms are the oracle's; what is judged
 * is the summing.
 *
 * ONEPASS_TEST_ELEMENTS sets the largest size, 10000000 unless told; 100000000
 * takes half a minute and 1.6 GB.
 */
#include "cases.h"
#include "check.h"
#include "oracle.h"

#include <math.h>

/* Relative to the sum of magnitudes. */
#define BOUND (4 * 0x1p-24)

typedef struct memory {
    float *p;
    float *t;
    double *term;
} memory;

/* Of floats of one sign: the number of steps between neighbours from one to the other. */
static int64_t units_apart(float a, float b) {
    return llabs((int64_t)oracle_load_bits(ONEPASS_F32, &a) - (int64_t)oracle_load_bits(ONEPASS_F32, &b));
}

static void library_sum(const char *loss, const memory *m, int64_t count, int32_t dtype, void *value) {
    const onepass_tensor p = {m->p, ONEPASS_F32, 1, &count, NULL};
    const onepass_tensor t = {m->t, ONEPASS_F32, 1, &count, NULL};
    const onepass_tensor v = {value, dtype, 0, NULL, NULL};
    CHECK_OK(onepass_forward(loss, ONEPASS_SUM, &p, &t, &v), loss);
}

static void compute_terms(const oracle_loss *loss, memory *m, int64_t count) {
    const double k[ONEPASS_MAX_PARAMETERS] = {loss->standard};
    for (int64_t i = 0; i < count; i++) {
        double result[3];
        oracle_term(loss, 1, (double)m->p[i], (double)m->t[i], k, result);
        m->term[i] = result[0];
    }
}

static double magnitude(const memory *m, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += fabs(m->term[i]);
    }
    return sum;
}

/* --------------------------------------------------------------- random -- */

static void fill_random(memory *m, int64_t count, int32_t data) {
    uint64_t state = 31;
    for (int64_t i = 0; i < count; i++) {
        oracle_store_bits(ONEPASS_F32, &m->p[i], random_element(&state, data, ONEPASS_F32, 0));
        oracle_store_bits(ONEPASS_F32, &m->t[i], random_element(&state, data, ONEPASS_F32, 0));
    }
}

static void test_random(memory *m, int64_t most) {
    fill_random(m, most, DATA_UNIFORM);
    for (int i = 0; oracle_loss_at(i); i++) {
        const oracle_loss *loss = oracle_loss_at(i);
        compute_terms(loss, m, most);
        for (int64_t count = 1; count <= most; count *= 10) {
            const double exact = oracle_exact_sum(m->term, count);
            const float rounded = (float)exact;
            const float mean = (float)(exact / (double)count);
            float sum = -1;
            float got_mean = -1;
            library_sum(loss->name, m, count, ONEPASS_F32, &sum);
            CHECK(units_apart(rounded, sum) <= 1, "%s, sum of %lld: expected %.9g within 1 ulp, got %.9g", loss->name,
                  (long long)count, (double)rounded, (double)sum);
            CHECK_OK(onepass_mean_f32(loss->name, count, m->p, m->t, &got_mean, NULL), loss->name);
            CHECK(units_apart(mean, got_mean) <= 1, "%s, mean of %lld: expected %.9g within 1 ulp, got %.9g",
                  loss->name, (long long)count, (double)mean, (double)got_mean);
        }
    }
}

/* ------------------------------------------------------------ hard terms -- */

static void check_bound(const char *what, const oracle_loss *loss, memory *m, int64_t count) {
    double got = -1;
    compute_terms(loss, m, count);
    const double exact = oracle_exact_sum(m->term, count);
    const double allowed = BOUND * magnitude(m, count);
    library_sum(loss->name, m, count, ONEPASS_F64, &got);
    CHECK(isfinite(exact) && fabs(got - exact) <= allowed, "%s, %s, %lld terms: expected %.17g within %.3g, got %.17g",
          loss->name, what, (long long)count, exact, allowed, got);
}

static void test_hard(memory *m, int64_t most) {
    static const float constants[] = {0.1f, 1.0f / 3, 1e-3f, 1e15f, 1e-20f};
    /* A tile, a broken tree, and enough terms that a plain float loop has long stopped growing. */
    const int64_t counts[] = {1, 1000, 1024, 77777, most / 4};
    for (int i = 0; oracle_loss_at(i); i++) {
        const oracle_loss *loss = oracle_loss_at(i);
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            for (size_t j = 0; j < sizeof constants / sizeof constants[0]; j++) {
                for (int64_t n = 0; n < counts[c]; n++) {
                    m->p[n] = constants[j];
                    m->t[n] = -constants[j];
                }
                check_bound("constant terms", loss, m, counts[c]);
            }
        }
        /* DATA_HUGE has squares that overflow; these stay below, so that the sum means something. */
        const int64_t count = most / 10;
        fill_random(m, count, DATA_UNIFORM);
        for (int64_t n = 0; n < count; n++) {
            m->p[n] *= 0x1p50f;
            m->t[n] *= 0x1p50f;
        }
        check_bound("huge terms", loss, m, count);
        fill_random(m, count, DATA_TINY);
        check_bound("tiny terms", loss, m, count);
        fill_random(m, count, DATA_WIDE);
        check_bound("terms of all magnitudes", loss, m, count);
        /* One term outweighs all others together, which must not be lost either. */
        fill_random(m, count, DATA_UNIFORM);
        m->p[count / 2] = 1e6f;
        m->t[count / 2] = -1e6f;
        check_bound("one large term among small ones", loss, m, count);
    }
}

int main(void) {
    const char *elements = getenv("ONEPASS_TEST_ELEMENTS");
    int64_t most = elements ? strtoll(elements, NULL, 10) : 10000000;
    if (most < 100) {
        printf("ONEPASS_TEST_ELEMENTS: expected a number of at least 100, got \"%s\"\n", elements);
        return 1;
    }
    if (!elements && check_quick("sums of more than 1000000 elements")) {
        most = 1000000;
    }
    memory m = {malloc((size_t)most * sizeof(float)), malloc((size_t)most * sizeof(float)),
                malloc((size_t)most * sizeof(double))};
    if (!m.p || !m.t || !m.term) {
        perror("malloc");
        return 1;
    }
    test_random(&m, most);
    test_hard(&m, most < 10000000 ? most : 10000000);
    free(m.p);
    free(m.t);
    free(m.term);
    return check_finish();
}
