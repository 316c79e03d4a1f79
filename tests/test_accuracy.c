/*
 * The promise about accuracy. For random inputs the float result is within one
 * unit in the last place of the exact sum of the float terms, rounded once, at
 * any size; for constant, huge, tiny and widely spread terms the relative error
 * of the sum is at most 4 * 2^-24. The terms are the oracle's; what is judged
 * is the summing, which losses share: those that the list of cases samples are
 * judged at fewer sizes and on the numbers that they are made for.
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
    float *operand[ORACLE_OPERANDS];
    double *term;
} memory;

/* Of floats of one sign: the number of steps between neighbours from one to the other. */
static int64_t units_apart(float a, float b) {
    return llabs((int64_t)oracle_load_bits(ONEPASS_F32, &a) - (int64_t)oracle_load_bits(ONEPASS_F32, &b));
}

static void library_sum(const char *loss, const memory *m, int64_t count, int32_t dtype, void *value) {
    const onepass_tensor v = {value, dtype, 0, NULL, NULL};
    onepass_tensor in[ORACLE_OPERANDS];
    onepass_call call = {.size = sizeof call, .loss = loss, .reduction = ONEPASS_SUM, .value = &v};
    for (int i = 0; i < oracle_loss_named(loss)->operand_count; i++) {
        in[i] = (onepass_tensor){m->operand[i], ONEPASS_F32, 1, &count, NULL};
        call.operand[i] = &in[i];
    }
    CHECK_OK(onepass_run(&call), loss);
}

static void compute_terms(const oracle_loss *loss, memory *m, int64_t count) {
    double k[ONEPASS_MAX_PARAMETERS];
    oracle_parameters(loss, 0, NULL, k);
    for (int64_t i = 0; i < count; i++) {
        double operand[ORACLE_OPERANDS], result[ORACLE_PARTS];
        for (int j = 0; j < ORACLE_OPERANDS; j++) {
            operand[j] = (double)m->operand[j][i];
        }
        oracle_term(loss, 1, operand, k, result);
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

static void fill_random(const oracle_loss *loss, memory *m, int64_t count, int32_t data) {
    uint64_t state = 31;
    for (int64_t i = 0; i < count; i++) {
        for (int j = 0; j < loss->operand_count; j++) {
            oracle_store_bits(ONEPASS_F32, &m->operand[j][i],
                              random_operand(&state, data, loss->domain[j], ONEPASS_F32, 0));
        }
    }
}

static void test_random(memory *m, int64_t most) {
    fill_random(oracle_loss_named("mse"), m, most, DATA_UNIFORM);
    for (int i = 0; oracle_loss_at(i); i++) {
        const oracle_loss *loss = oracle_loss_at(i);
        if (!case_loss_is_swept(loss->name)) {
            continue;
        }
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
            CHECK_OK(onepass_mean_f32(loss->name, count, m->operand[0], m->operand[1], &got_mean, NULL), loss->name);
            CHECK(units_apart(mean, got_mean) <= 1, "%s, mean of %lld: expected %.9g within 1 ulp, got %.9g",
                  loss->name, (long long)count, (double)mean, (double)got_mean);
        }
    }
}

/* ------------------------------------------------------------ hard terms -- */

/* A sum with an infinite term, which a probability of 0 may have, says nothing of summing. */
static void make_finite(const oracle_loss *loss, memory *m, int64_t count) {
    compute_terms(loss, m, count);
    for (int64_t i = 0; i < count; i++) {
        for (int j = 0; j < loss->operand_count && !isfinite(m->term[i]); j++) {
            m->operand[j][i] = 0.5F;
        }
    }
}

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
        const int64_t count = most / 10;
        if (!case_loss_is_swept(loss->name)) {
            fill_random(loss, m, count / 10, DATA_UNIFORM);
            make_finite(loss, m, count / 10);
            check_bound("plain terms", loss, m, count / 10);
            continue;
        }
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            for (size_t j = 0; j < sizeof constants / sizeof constants[0]; j++) {
                for (int64_t n = 0; n < counts[c]; n++) {
                    m->operand[0][n] = constants[j];
                    m->operand[1][n] = -constants[j];
                }
                check_bound("constant terms", loss, m, counts[c]);
            }
        }
        /* DATA_HUGE has squares that overflow; these stay below, so that the sum means something. */
        fill_random(loss, m, count, DATA_UNIFORM);
        for (int64_t n = 0; n < count; n++) {
            m->operand[0][n] *= 0x1p50f;
            m->operand[1][n] *= 0x1p50f;
        }
        check_bound("huge terms", loss, m, count);
        fill_random(loss, m, count, DATA_TINY);
        check_bound("tiny terms", loss, m, count);
        fill_random(loss, m, count, DATA_WIDE);
        check_bound("terms of all magnitudes", loss, m, count);
        /* One term outweighs all others together, which must not be lost either. */
        fill_random(loss, m, count, DATA_UNIFORM);
        m->operand[0][count / 2] = 1e6f;
        m->operand[1][count / 2] = -1e6f;
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
    memory m = {
        {calloc((size_t)most, sizeof(float)), calloc((size_t)most, sizeof(float)), calloc((size_t)most, sizeof(float))},
        malloc((size_t)most * sizeof(double))};
    if (!m.operand[0] || !m.operand[1] || !m.operand[2] || !m.term) {
        perror("malloc");
        return 1;
    }
    test_random(&m, most);
    test_hard(&m, most < 10000000 ? most : 10000000);
    for (int i = 0; i < ORACLE_OPERANDS; i++) {
        free(m.operand[i]);
    }
    free(m.term);
    return check_finish();
}
