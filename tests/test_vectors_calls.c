/*
 * Vector losses by every kind of call: rows that arrive in slices, one number for all elements, an upstream gradient
 * that is known later or was 1 all the time, and the caller's rounding and flushing modes. All are bit-identical to one
 * plain call.
 */
#include "check.h"
#include "vector_case.h"

#include <fenv.h>
#include <math.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

static const uint64_t hash_begin = UINT64_C(0xcbf29ce484222325);

static vector_case case_of(const char *loss, int32_t dtype, int64_t rows, int64_t elements) {
    const int vectors = oracle_vector_operands(loss);
    vector_case c = {.loss = loss,
                     .value = dtype,
                     .weight = ONEPASS_F32,
                     .mask = true,
                     .reduction = ONEPASS_MEAN,
                     .divisor = 37.5,
                     .batch = rows,
                     .elements = elements,
                     .seed = 5};
    for (int k = 0; k < ORACLE_OPERANDS; k++) {
        c.operand[k] = dtype;
        c.gradient[k] = k < vectors ? dtype : 0;
    }
    return c;
}

static uint64_t run_and_hash(prepared_vectors *p, const char *what) {
    vector_case_poison(p);
    CHECK_OK(onepass_run(&p->call), what);
    return vector_case_hash(hash_begin, p);
}

/* --------------------------------------------------------------- slices -- */

/* The tensors of a dense case from one row on, so many of them. */
typedef struct slice {
    onepass_call call;
    onepass_tensor operand[ORACLE_OPERANDS], gradient[ORACLE_OPERANDS], weight, mask;
    int64_t shape[2];
} slice;

static onepass_tensor cut(const onepass_tensor *whole, const int64_t *shape, int64_t first) {
    const int64_t each = whole->ndim == 2 ? shape[1] : 1;
    char *data = (char *)whole->data + first * each * (int64_t)onepass_dtype_size(whole->dtype);
    return (onepass_tensor){data, whole->dtype, whole->ndim, shape, NULL};
}

static void cut_slice(const prepared_vectors *p, int64_t first, int64_t last, slice *s) {
    s->shape[0] = last - first;
    s->shape[1] = p->of.elements;
    s->call = p->call;
    s->call.value = NULL;
    for (int k = 0; k < ORACLE_OPERANDS; k++) {
        if (p->call.operand[k]) {
            s->operand[k] = cut(p->call.operand[k], s->shape, first);
            s->call.operand[k] = &s->operand[k];
        }
        if (p->call.gradient[k]) {
            s->gradient[k] = cut(p->call.gradient[k], s->shape, first);
            s->call.gradient[k] = &s->gradient[k];
        }
    }
    s->weight = cut(p->call.weight, s->shape, first);
    s->mask = cut(p->call.mask, s->shape, first);
    s->call.weight = &s->weight;
    s->call.mask = &s->mask;
}

/* The last slice first, and each second one into an accumulator of its own, which is merged. */
static void accumulate(const prepared_vectors *p, const char *what) {
    static const int64_t cuts[] = {0, 1000, 1001, 1024, 3000, 4096, 4490};
    enum {
        SLICES = sizeof cuts / sizeof cuts[0]
    };
    onepass_accumulator *all[2] = {NULL, NULL};
    onepass_call begin = {.size = sizeof begin, .loss = p->call.loss, .divisor = p->call.divisor};
    for (int i = 0; i < 2; i++) {
        CHECK_OK(onepass_accumulator_begin(&all[i], &begin, p->rows), what);
    }
    for (int i = SLICES - 1; i >= 0; i--) {
        slice s;
        cut_slice(p, cuts[i], i + 1 < SLICES ? cuts[i + 1] : p->rows, &s);
        CHECK_OK(onepass_accumulator_add(all[i % 2], &s.call, cuts[i]), what);
    }
    CHECK_OK(onepass_accumulator_merge(all[0], all[1]), what);
    CHECK_OK(onepass_accumulator_finish(all[0], p->call.value), what);
    onepass_accumulator_destroy(all[0]);
    onepass_accumulator_destroy(all[1]);
}

static void test_slices(const char *loss, int32_t dtype) {
    char what[512];
    const vector_case c = case_of(loss, dtype, 4500, 7);
    vector_case_describe(&c, what, sizeof what);
    prepared_vectors *p = vector_case_prepare(&c);
    const uint64_t expected = run_and_hash(p, what);
    vector_case_poison(p);
    accumulate(p, what);
    CHECK_BITS(expected, vector_case_hash(hash_begin, p), what);
    vector_case_free(p);
}

/* All slices have vectors of one length. */
static void test_other_length(void) {
    const vector_case c = case_of("cosine_similarity", ONEPASS_F32, 1500, 7);
    prepared_vectors *p = vector_case_prepare(&c);
    onepass_accumulator *all = NULL;
    slice s;
    CHECK_OK(onepass_accumulator_begin(&all, &p->call, p->rows), c.loss);
    cut_slice(p, 0, 1024, &s);
    CHECK_OK(onepass_accumulator_add(all, &s.call, 0), c.loss);
    cut_slice(p, 1024, 1500, &s);
    s.shape[1] = 6;
    const onepass_status status = onepass_accumulator_add(all, &s.call, 1024);
    CHECK(status == ONEPASS_INVALID_SHAPE && strstr(onepass_message(), "6") && strstr(onepass_message(), "7"),
          "a slice of shorter vectors: got %s: \"%s\"", onepass_status_name(status), onepass_message());
    onepass_accumulator_destroy(all);
    vector_case_free(p);
}

/* ----------------------------------------------------------- one number -- */

/* In vectors of several tiles, of which the engine need not gather but one, and in short ones, of whose values alone it
 * may gather several rows at once. */
static void test_one_number(const char *loss, int32_t dtype, int64_t rows, int64_t elements, bool values_alone) {
    char what[512];
    vector_case c = case_of(loss, dtype, rows, elements);
    if (values_alone) {
        c.mask = false;
        c.reduction = ONEPASS_NONE;
        c.divisor = 0;
        memset(c.gradient, 0, sizeof c.gradient);
    }
    vector_case_describe(&c, what, sizeof what);
    prepared_vectors *p = vector_case_prepare(&c);
    const onepass_tensor *dense = p->call.operand[0];
    const size_t size = onepass_dtype_size(dtype);
    for (int64_t i = 1; i < c.batch * c.elements; i++) {
        memcpy((char *)dense->data + (size_t)i * size, dense->data, size);
    }
    const int64_t strides[] = {0, 0};
    const onepass_tensor repeated = {dense->data, dtype, 2, dense->shape, strides};
    const uint64_t expected = run_and_hash(p, what);
    p->call.operand[0] = &repeated;
    CHECK(dense->ndim == 2, "%s: expected rows of vectors", what);
    CHECK_BITS(expected, run_and_hash(p, what), what);
    vector_case_free(p);
}

/* Terms that are -0 sum to +0 where the last tile has room for more: as its signs show, the sum of 768 elements, whose
 * lines are added up by twos, is that of 700, which are not. */
static void test_sign_of_zero(void) {
    static const int64_t lengths[] = {700, 768};
    static float a[768], b[768], gradient[2][2][768];
    for (int i = 0; i < 768; i++) {
        a[i] = 1;
        b[i] = -0.0F;
    }
    for (int i = 0; i < 2; i++) {
        const int64_t shape[] = {1, lengths[i]};
        float value;
        const onepass_tensor x = {a, ONEPASS_F32, 2, shape, NULL}, y = {b, ONEPASS_F32, 2, shape, NULL};
        const onepass_tensor of_x = {gradient[i][0], ONEPASS_F32, 2, shape, NULL},
                             of_y = {gradient[i][1], ONEPASS_F32, 2, shape, NULL};
        const onepass_tensor loss = {&value, ONEPASS_F32, 0, NULL, NULL};
        const onepass_call call = {.size = sizeof call,
                                   .loss = "cosine_similarity",
                                   .reduction = ONEPASS_SUM,
                                   .operand = {&x, &y},
                                   .value = &loss,
                                   .gradient = {&of_x, &of_y}};
        CHECK_OK(onepass_run(&call), "zeros of a sign");
    }
    for (int k = 0; k < 2; k++) {
        CHECK(!signbit(gradient[0][k][0]) == !signbit(gradient[1][k][0]),
              "gradient[%d] of zeros of a sign: expected one sign, got %g and %g", k, (double)gradient[0][k][0],
              (double)gradient[1][k][0]);
    }
}

/* ------------------------------------------------------------- upstream -- */

static void test_upstream(const char *loss, int32_t dtype) {
    char what[512];
    vector_case c = case_of(loss, dtype, 40, 70);
    c.value = 0;
    vector_case_describe(&c, what, sizeof what);
    prepared_vectors *p = vector_case_prepare(&c);
    double three = 3, one = 1;
    const onepass_tensor other = {&three, ONEPASS_F64, 0, NULL, NULL}, same = {&one, ONEPASS_F64, 0, NULL, NULL};
    const uint64_t plain = run_and_hash(p, what);
    p->call.upstream = &other;
    const uint64_t expected = run_and_hash(p, what);
    CHECK(plain != expected, "%s: expected an upstream gradient to matter", what);
    p->call.upstream = NULL;
    run_and_hash(p, what);
    onepass_call scale = {.size = sizeof scale, .upstream = &other}, later = p->call;
    memcpy(scale.gradient, p->call.gradient, sizeof scale.gradient);
    CHECK_OK(onepass_scale(&scale), what);
    CHECK_BITS(expected, vector_case_hash(hash_begin, p), what);
    vector_case_poison(p);
    later.upstream = &other;
    later.flags = ONEPASS_SKIP_IF_UPSTREAM_IS_ONE;
    CHECK_OK(onepass_run(&later), what);
    CHECK_BITS(expected, vector_case_hash(hash_begin, p), what);
    vector_case_poison(p);
    const uint64_t poisoned = vector_case_hash(hash_begin, p);
    later.upstream = &same;
    CHECK_OK(onepass_run(&later), what);
    CHECK_BITS(poisoned, vector_case_hash(hash_begin, p), what);
    vector_case_free(p);
}

/* --------------------------------------------------------------- states -- */

static void flush_denormals(void) {
#if defined(__SSE__)
    _mm_setcsr(_mm_getcsr() | 0x8040);
#elif defined(__aarch64__)
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    control |= UINT64_C(1) << 24;
    __asm__ volatile("msr fpcr, %0" : : "r"(control));
#endif
}

static void test_states(const char *loss, int32_t dtype, vector_data data) {
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    char what[512];
    vector_case c = case_of(loss, dtype, 12, 1500);
    c.data = data;
    c.reduction = ONEPASS_NONE;
    c.divisor = 0;
    vector_case_describe(&c, what, sizeof what);
    prepared_vectors *p = vector_case_prepare(&c);
    const uint64_t expected = run_and_hash(p, what);
    for (int i = 0; i < 6; i++) {
        fenv_t standard;
        vector_case_poison(p);
        fegetenv(&standard);
        fesetround(modes[i / 2]);
        if (i % 2) {
            flush_denormals();
        }
        const onepass_status status = onepass_run(&p->call);
        fesetenv(&standard);
        CHECK_OK(status, what);
        CHECK_BITS(expected, vector_case_hash(hash_begin, p), what);
    }
    vector_case_free(p);
}

int main(void) {
    test_other_length();
    test_sign_of_zero();
    for (int32_t i = 0; onepass_vector_loss_at(i); i++) {
        const char *loss = onepass_vector_loss_at(i)->name;
        for (int32_t dtype = ONEPASS_F32; dtype <= ONEPASS_F64; dtype++) {
            test_slices(loss, dtype);
            test_one_number(loss, dtype, 3, 3100, false);
            test_one_number(loss, dtype, 7, 600, true);
            test_one_number(loss, dtype, 70, 100, true);
            test_upstream(loss, dtype);
            test_states(loss, dtype, VECTORS_NORMAL);
            test_states(loss, dtype, VECTORS_TINY);
        }
    }
    return check_finish();
}
