/*
 * Losses over rows by every schedule of the CPU engine: rows one by one, rows side by side, rows that threads share, as
 * numbers of classes, layouts, types and outputs choose among them, against the literal order of rows_model.c. Cases
 * are drawn from a seed; every one is compared bit by bit.
 */
#include "check.h"
#include "dtype.h"
#include "row_losses.h"
#include "rows_model.h"

#include <math.h>
#include <stdbool.h>

/* ----------------------------------------------------------------- chance -- */

static uint64_t state_of_chance;

static uint64_t draw(void) { /* splitmix64 */
    uint64_t z = state_of_chance += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static int64_t below(int64_t limit) {
    return (int64_t)(draw() % (uint64_t)limit);
}

static bool one_in(int64_t n) {
    return below(n) == 0;
}

/* About normal, mean 0 and deviation 1. */
static double normal(void) {
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += (double)(draw() >> 11) * 0x1p-53;
    return sum - 6;
}

#define PICK(list) ((list)[below((int64_t)(sizeof(list) / sizeof *(list)))])

/* ---------------------------------------------------------------- tensors -- */

/* A tensor in memory of its own, and its numbers in row-major order. */
typedef struct tensor {
    onepass_tensor tensor;
    int64_t shape[4], stride[4];
    int64_t count, reach; /* elements, and those that the strides span */
    char *memory;
    int64_t first; /* element of the memory that is the tensor's first */
} tensor;

/* Dimensions nest in any order, with gaps; what is only read may run backwards. */
static void lay_out(tensor *t, int32_t dtype, int ndim, const int64_t *shape, bool any_order, bool backwards) {
    int order[4] = {0, 1, 2, 3};
    for (int i = ndim - 1; i > 0 && any_order; i--) {
        const int j = (int)below(i + 1), k = order[i];
        order[i] = order[j];
        order[j] = k;
    }
    int64_t step = any_order && one_in(5) ? 2 : 1;
    *t = (tensor){.count = 1};
    for (int i = ndim - 1; i >= 0; i--) {
        const int d = order[i];
        t->shape[d] = shape[d];
        t->stride[d] = step;
        step *= shape[d];
        t->count *= shape[d];
        step += any_order && one_in(6) ? 3 : 0;
        if (backwards && one_in(10)) {
            t->first += (shape[d] - 1) * t->stride[d];
            t->stride[d] = -t->stride[d];
        }
    }
    t->reach = step;
    t->memory = malloc((size_t)(step + 1) * dtype_size(dtype));
    memset(t->memory, 0xff, (size_t)(step + 1) * dtype_size(dtype)); /* NaN */
    t->tensor = (onepass_tensor){t->memory + t->first * (int64_t)dtype_size(dtype), dtype, ndim, t->shape, t->stride};
}

/* The same numbers, with shape and strides of its own, in the same place. */
static void *element(const tensor *t, int64_t index) {
    int64_t offset = 0;
    for (int d = t->tensor.ndim - 1; d >= 0; d--) {
        offset += index % t->shape[d] * t->stride[d];
        index /= t->shape[d];
    }
    return (char *)t->tensor.data + offset * (int64_t)dtype_size(t->tensor.dtype);
}

static void store(const tensor *t, int64_t index, double x) {
    void *at = element(t, index);
    switch (t->tensor.dtype) {
    case ONEPASS_BOOL:
    case ONEPASS_U8:
        *(uint8_t *)at = (uint8_t)x;
        break;
    case ONEPASS_I32:
        *(int32_t *)at = (int32_t)x;
        break;
    case ONEPASS_I64:
        *(int64_t *)at = (int64_t)x;
        break;
    default:
        store_scalar(at, t->tensor.dtype, x);
    }
}

static double rounded_to(int32_t dtype, double x) {
    double memory;
    store_scalar(&memory, dtype, x);
    return load_scalar(&memory, dtype);
}

/* ------------------------------------------------------------------ cases -- */

typedef struct row_case {
    int ndim, axis;
    int32_t parameter_count;
    int64_t shape[4], row_shape[4];
    int32_t input_dtype, compute;
    bool in_place, has_gradient, has_target_gradient;
    rows_model model;
    double *input, *probabilities, *class_weight, *weight, *mask, *upstream; /* what the model points to */
    int64_t *label;
    tensor of_input, of_target, of_class_weight, of_weight, of_mask, of_upstream;
} row_case;

static const int64_t class_counts[] = {1,   2,   3,   5,   8,   10,  15,   16,   17,   21,   31,   32,   33,   63,
                                       64,  65,  100, 127, 128, 129, 150,  200,  255,  256,  257,  300,  385,  500,
                                       511, 512, 513, 700, 896, 897, 1000, 1023, 1024, 1025, 1500, 2048, 2049, 5000};
static const int64_t row_counts[] = {1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 64, 65, 100, 130, 1030, 2100};
static const int32_t float_dtypes[] = {ONEPASS_F32, ONEPASS_F32, ONEPASS_F32, ONEPASS_F64,
                                       ONEPASS_F64, ONEPASS_F16, ONEPASS_BF16};

/* Rows of one dimension to three, the axis anywhere. */
static void choose_shape(row_case *c, int64_t rows, int64_t classes) {
    int64_t left = rows;
    c->ndim = 1 + (int)below(3);
    for (int d = 0; d < c->ndim; d++) {
        int64_t extent = d == c->ndim - 1 ? left : 1 + below(4);
        while (left % extent)
            extent--;
        c->row_shape[d] = extent;
        left /= extent;
    }
    c->axis = one_in(3) ? (int)below(c->ndim + 1) : one_in(2) ? c->ndim : 1;
    for (int d = 0, from = 0; d <= c->ndim; d++)
        c->shape[d] = d == c->axis ? classes : c->row_shape[from++];
}

/* In row-major order of (rows, classes) the numbers of a tensor whose axis is elsewhere. */
static int64_t index_of(const row_case *c, int64_t row, int64_t class) {
    int64_t inner = 1;
    for (int d = c->axis + 1; d <= c->ndim; d++)
        inner *= c->shape[d];
    return (row / inner * c->shape[c->axis] + class) * inner + row % inner;
}

/* Logits of one row. */
static void draw_logits(double *z, int64_t classes, int kind) {
    const double offset = kind == 1 ? 1000 : kind == 2 ? -3e7 : 0, spread = one_in(3) ? 20 : 2;
    for (int64_t i = 0; i < classes; i++)
        z[i] = offset + spread * normal();
    if (kind == 3) /* some or all of a tile are -inf */
        for (int64_t i = 0; i < classes; i++)
            if (i / 1024 == 0 || one_in(3))
                z[i] = -INFINITY;
    if (kind == 4)
        z[below(classes)] = NAN;
    if (kind == 5)
        z[below(classes)] = INFINITY;
    if (kind == 6)
        z[below(classes)] = 60;
    if (kind == 7)
        for (int64_t i = 0; i < classes; i++)
            z[i] = one_in(20) ? 1e8 : one_in(2) ? -1e9 : 0;
    if (kind == 8)
        for (int64_t i = 0; i < classes; i++)
            z[i] = -0.0;
    if (kind == 9)
        for (int64_t i = 0; i < classes; i++)
            z[i] = -INFINITY;
}

static double *numbers(int64_t count) {
    return malloc((size_t)(count + 1) * sizeof(double));
}

static void fill_operands(row_case *c) {
    rows_model *m = &c->model;
    const int32_t dtype = c->input_dtype;
    const bool clean = one_in(2);
    c->input = numbers(m->rows * m->classes);
    for (int64_t r = 0; r < m->rows; r++) {
        double *z = c->input + r * m->classes;
        draw_logits(z, m->classes, clean || one_in(2) ? 0 : (int)below(10));
        for (int64_t i = 0; i < m->classes; i++) {
            z[i] = rounded_to(dtype, z[i]);
            store(&c->of_input, index_of(c, r, i), z[i]);
        }
    }
    m->input = c->input;
    if (c->probabilities)
        for (int64_t r = 0; r < m->rows; r++)
            for (int64_t i = 0; i < m->classes; i++) {
                const double q = one_in(4) ? 0 : rounded_to(c->of_target.tensor.dtype, fabs(normal()) / 10);
                c->probabilities[r * m->classes + i] = q;
                store(&c->of_target, index_of(c, r, i), q);
            }
    for (int64_t r = 0; r < m->rows && c->label; r++) {
        c->label[r] = one_in(6) ? m->ignore_index : below(m->classes);
        if (c->label[r] < 0 && c->of_target.tensor.dtype == ONEPASS_U8)
            c->label[r] = 0;
        store(&c->of_target, r, (double)c->label[r]);
    }
}

/* Random numbers of a tensor over rows or classes; null in most cases. */
static double *draw_some(tensor *t, int32_t dtype, int ndim, const int64_t *shape, double zero_in) {
    lay_out(t, dtype, ndim, shape, one_in(3), false);
    double *x = numbers(t->count);
    for (int64_t i = 0; i < t->count; i++) {
        x[i] = one_in((int64_t)zero_in) ? (one_in(2) ? 0.0 : -0.0) : rounded_to(dtype, 0.25 + fabs(normal()));
        if (dtype == ONEPASS_BOOL)
            x[i] = x[i] != 0;
        else if (one_in(9))
            x[i] = -x[i];
        store(t, i, x[i]);
    }
    return x;
}

/* By their names, as the list of losses has them. */
static void choose_parameters(row_case *c) {
    rows_model *m = &c->model;
    const onepass_loss_info *info = onepass_loss_named(m->loss);
    m->temperature = 1;
    m->ignore_index = -1;
    c->parameter_count = info->parameter_count;
    for (int32_t i = 0; i < info->parameter_count; i++) {
        const char *name = info->parameter[i].name;
        double *p = &m->parameter[i];
        *p = info->parameter[i].default_value;
        if (strcmp(name, "ignore_index") == 0)
            *p = (double)(m->ignore_index = one_in(2) ? -100 : m->classes / 2);
        else if (strcmp(name, "label_smoothing") == 0)
            *p = m->smoothing = one_in(3) ? (one_in(4) ? 1 : 0.1) : 0;
        else if (strcmp(name, "z_loss") == 0)
            *p = one_in(3) ? 1e-3 : 0;
        else if (strcmp(name, "softcap") == 0)
            *p = m->softcap = one_in(8) ? 15 : 0;
        else if (strcmp(name, "temperature") == 0)
            *p = m->temperature = one_in(6) ? 2.5 : 1;
    }
}

static row_case draw_case(void) {
    row_case c = {.input_dtype = PICK(float_dtypes)};
    rows_model *m = &c.model;
    m->loss = onepass_row_loss_at(twice_the_first(below(row_loss_count() + 1)))->name;
    m->classes = one_in(100) ? 540000 : PICK(class_counts);
    m->rows = PICK(row_counts);
    while (m->rows > 1 && m->rows * m->classes > 70000)
        m->rows = m->rows / 2;
    const bool with_labels = row_loss_has_labels(m->loss);
    static const int32_t labels[] = {ONEPASS_I64, ONEPASS_I64, ONEPASS_I32, ONEPASS_U8};
    choose_shape(&c, m->rows, m->classes);
    lay_out(&c.of_input, c.input_dtype, c.ndim + 1, c.shape, one_in(2), true);
    if (with_labels) {
        c.label = malloc((size_t)m->rows * sizeof *c.label);
        lay_out(&c.of_target, m->classes > 255 ? ONEPASS_I64 : PICK(labels), c.ndim, c.row_shape, one_in(3), true);
    } else {
        c.probabilities = numbers(m->rows * m->classes);
        lay_out(&c.of_target, PICK(float_dtypes), c.ndim + 1, c.shape, one_in(2), true);
    }
    choose_parameters(&c);
    fill_operands(&c);
    if (one_in(3))
        c.class_weight = draw_some(&c.of_class_weight, PICK(float_dtypes), 1, &m->classes, 7);
    if (one_in(5))
        c.weight = draw_some(&c.of_weight, PICK(float_dtypes), c.ndim, c.row_shape, 9);
    if (one_in(5))
        c.mask = draw_some(&c.of_mask, ONEPASS_BOOL, c.ndim, c.row_shape, 3);
    m->reduction = (int)below(3);
    if (one_in(3) && m->reduction == ONEPASS_NONE)
        c.upstream = draw_some(&c.of_upstream, PICK(float_dtypes), c.ndim, c.row_shape, 9);
    else if (one_in(3) && m->reduction != ONEPASS_NONE)
        c.upstream = draw_some(&c.of_upstream, PICK(float_dtypes), 0, NULL, 9);
    m->over_elements = with_labels && m->reduction == ONEPASS_MEAN && one_in(5);
    m->divisor = m->reduction == ONEPASS_MEAN && !m->over_elements && (!with_labels || one_in(3)) ? 7.5 : 0;
    c.has_gradient = !one_in(4);
    c.has_target_gradient = c.has_gradient && !with_labels && one_in(2);
    c.in_place = c.has_gradient && one_in(4) && c.of_input.first == 0;
    m->probabilities = c.probabilities;
    m->label = c.label;
    m->class_weight = c.class_weight;
    m->weight = c.weight;
    m->mask = c.mask;
    m->upstream = c.upstream;
    const bool doubles = c.input_dtype == ONEPASS_F64 || (!with_labels && c.of_target.tensor.dtype == ONEPASS_F64) ||
                         (c.class_weight && c.of_class_weight.tensor.dtype == ONEPASS_F64) ||
                         (c.weight && c.of_weight.tensor.dtype == ONEPASS_F64);
    c.compute = doubles ? ONEPASS_F64 : ONEPASS_F32;
    return c;
}

/* ---------------------------------------------------------------- results -- */

static char case_text[300];

static void describe(const row_case *c, uint64_t seed, int threads) {
    const rows_model *m = &c->model;
    snprintf(case_text, sizeof case_text,
             "case %" PRIu64
             ": %s, input dtype %d, %lld rows, %lld classes, axis %d of %d, strides %lld %lld %lld %lld, %d "
             "threads, reduction %d, smoothing %g, softcap %g%s%s%s%s%s%s",
             seed, m->loss, (int)c->input_dtype, (long long)m->rows, (long long)m->classes, c->axis, c->ndim + 1,
             (long long)c->of_input.stride[0], (long long)c->of_input.stride[1], (long long)c->of_input.stride[2],
             (long long)c->of_input.stride[3], threads, m->reduction, m->smoothing, m->softcap,
             c->class_weight ? ", class weights" : "", c->weight ? ", weights" : "", c->mask ? ", mask" : "",
             c->upstream ? ", upstream" : "", c->has_gradient ? ", gradient" : "", c->in_place ? ", in place" : "");
}

/* One comparison a tensor; the first difference is told. */
static void check_tensor(const char *what, const tensor *t, const row_case *c, bool by_class, const double *expected) {
    const rows_model *m = &c->model;
    const size_t size = dtype_size(t->tensor.dtype);
    int64_t wrong = -1;
    for (int64_t i = 0; i < t->count && wrong < 0; i++) {
        double rounded = 0;
        const int64_t at = by_class ? index_of(c, i / m->classes, i % m->classes) : i;
        store_scalar(&rounded, t->tensor.dtype, expected[i]);
        if (memcmp(&rounded, element(t, at), size) != 0)
            wrong = i;
    }
    CHECK(wrong < 0, "%s of %s: expected %.17g at element %lld, got %.17g", what, case_text,
          wrong < 0 ? 0 : expected[wrong], (long long)wrong,
          wrong < 0 ? 0
                    : load_scalar(element(t, by_class ? index_of(c, wrong / m->classes, wrong % m->classes) : wrong),
                                  t->tensor.dtype));
}

/* Nothing but the elements was written: the gaps are still NaN. */
static int64_t intact_gaps(const tensor *t) {
    const size_t size = dtype_size(t->tensor.dtype);
    static const unsigned char all[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    int64_t intact = 0;
    for (int64_t i = 0; i <= t->reach; i++)
        intact += memcmp(t->memory + (size_t)i * size, all, size) == 0;
    return intact;
}

typedef struct results {
    tensor value, gradient, of_target, log_sum_exp, predicted, state;
} results;

static onepass_call call_of(const row_case *c, int threads) {
    const rows_model *m = &c->model;
    onepass_call call = ONEPASS_CALL_INIT;
    call.loss = m->loss;
    call.reduction = m->reduction;
    call.parameter_count = c->parameter_count;
    memcpy(call.parameter, m->parameter, sizeof call.parameter);
    call.operand[0] = &c->of_input.tensor;
    call.operand[1] = &c->of_target.tensor;
    call.operand[2] = c->class_weight ? &c->of_class_weight.tensor : NULL;
    call.weight = c->weight ? &c->of_weight.tensor : NULL;
    call.mask = c->mask ? &c->of_mask.tensor : NULL;
    call.upstream = c->upstream ? &c->of_upstream.tensor : NULL;
    call.divisor = m->divisor;
    call.flags = m->over_elements ? ONEPASS_OVER_ELEMENTS : 0;
    call.threads = threads;
    call.axis = c->axis + 1;
    return call;
}

static void check_gradients(const row_case *c, const results *r, const char *what) {
    const rows_model *m = &c->model;
    char text[64];
    snprintf(text, sizeof text, "gradient (%s)", what);
    check_tensor(text, &r->gradient, c, true, m->gradient);
    CHECK(intact_gaps(&r->gradient) == r->gradient.reach + 1 - r->gradient.count, "%s of %s: it wrote into a gap", text,
          case_text);
    if (c->has_target_gradient) {
        snprintf(text, sizeof text, "gradient for the target (%s)", what);
        check_tensor(text, &r->of_target, c, true, m->of_target);
    }
}

static void check_forward(const row_case *c, const results *r, bool has_softmax) {
    const rows_model *m = &c->model;
    check_tensor("value", &r->value, c, false, m->reduction == ONEPASS_NONE ? m->values : &m->value);
    int64_t wrong = 0;
    for (int64_t i = 0; i < m->rows; i++)
        wrong += *(int64_t *)element(&r->predicted, i) != m->predicted[i];
    CHECK(wrong == 0, "predicted classes of %s: expected all right, got %lld wrong", case_text, (long long)wrong);
    if (!has_softmax)
        return;
    check_tensor("log_sum_exp", &r->log_sum_exp, c, false, m->log_sum_exp);
    check_tensor("row_state", &r->state, c, false, m->state);
}

static void restore_input(const row_case *c) {
    const rows_model *m = &c->model;
    for (int64_t r = 0; r < m->rows; r++)
        for (int64_t i = 0; i < m->classes; i++)
            store(&c->of_input, index_of(c, r, i), c->input[r * m->classes + i]);
}

/* With the value, by the state that came with it, and alone. */
static void run_case(const row_case *c, const results *r, int threads) {
    const bool has_softmax = strcmp(c->model.loss, "nll") != 0;
    onepass_call call = call_of(c, threads);
    call.value = &r->value.tensor;
    call.predicted = &r->predicted.tensor;
    if (has_softmax) {
        call.log_sum_exp = &r->log_sum_exp.tensor;
        call.row_state = &r->state.tensor;
    }
    if (c->has_gradient)
        call.gradient[0] = &r->gradient.tensor;
    if (c->has_target_gradient)
        call.gradient[1] = &r->of_target.tensor;
    if (!CHECK_OK(onepass_run(&call), case_text))
        return;
    check_forward(c, r, has_softmax);
    if (!c->has_gradient)
        return;
    check_gradients(c, r, "with the value");
    call.value = call.predicted = call.log_sum_exp = NULL;
    for (int with_state = has_softmax; with_state >= 0; with_state--) {
        if (c->in_place)
            restore_input(c);
        call.row_state = with_state ? &r->state.tensor : NULL;
        if (CHECK_OK(onepass_run(&call), case_text))
            check_gradients(c, r, with_state ? "by the state" : "alone");
    }
    if (c->in_place)
        restore_input(c);
}

static void place_results(row_case *c, results *r) {
    const rows_model *m = &c->model;
    const bool same = !one_in(3);
    const int32_t dtype = same ? c->input_dtype : PICK(float_dtypes);
    const int64_t state_shape[2] = {m->rows, ONEPASS_ROW_STATE};
    lay_out(&r->value, PICK(float_dtypes), m->reduction == ONEPASS_NONE ? c->ndim : 0, c->row_shape, one_in(3), false);
    lay_out(&r->gradient, dtype, c->ndim + 1, c->shape, one_in(2), false);
    if (c->in_place) {
        free(r->gradient.memory);
        r->gradient = c->of_input;
        r->gradient.tensor.shape = r->gradient.shape;
        r->gradient.tensor.strides = r->gradient.stride;
    }
    lay_out(&r->of_target, PICK(float_dtypes), c->ndim + 1, c->shape, one_in(2), false);
    lay_out(&r->log_sum_exp, PICK(float_dtypes), c->ndim, c->row_shape, false, false);
    lay_out(&r->predicted, ONEPASS_I64, c->ndim, c->row_shape, one_in(3), false);
    lay_out(&r->state, ONEPASS_F64, 2, state_shape, false, false);
}

/* Shapes and strides lie beside the data, and cases are copied. */
static void mend(tensor *t) {
    t->tensor.shape = t->shape;
    t->tensor.strides = t->stride;
}

static void free_case(row_case *c, results *r) {
    rows_model *m = &c->model;
    void *const all[] = {c->input,
                         c->probabilities,
                         c->class_weight,
                         c->weight,
                         c->mask,
                         c->upstream,
                         c->label,
                         c->of_input.memory,
                         c->of_target.memory,
                         c->of_class_weight.memory,
                         c->of_weight.memory,
                         c->of_mask.memory,
                         c->of_upstream.memory,
                         m->values,
                         m->gradient,
                         m->of_target,
                         m->log_sum_exp,
                         m->state,
                         m->predicted,
                         r->value.memory,
                         c->in_place ? NULL : r->gradient.memory,
                         r->of_target.memory,
                         r->log_sum_exp.memory,
                         r->predicted.memory,
                         r->state.memory};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static void try_case(uint64_t seed) {
    state_of_chance = seed;
    row_case c = draw_case();
    results r;
    rows_model *m = &c.model;
    place_results(&c, &r);
    tensor *const all[] = {&c.of_input, &c.of_target, &c.of_class_weight, &c.of_weight,   &c.of_mask,   &c.of_upstream,
                           &r.value,    &r.gradient,  &r.of_target,       &r.log_sum_exp, &r.predicted, &r.state};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        mend(all[i]);
    m->values = numbers(m->rows);
    m->gradient = numbers(m->rows * m->classes);
    m->of_target = numbers(m->rows * m->classes);
    m->log_sum_exp = numbers(m->rows);
    m->state = numbers(m->rows * ONEPASS_ROW_STATE);
    m->predicted = malloc((size_t)m->rows * sizeof *m->predicted);
    if (c.compute == ONEPASS_F64)
        rows_model_f64(m);
    else
        rows_model_f32(m);
    for (int threads = 1; threads <= 2; threads++) {
        describe(&c, seed, threads);
        run_case(&c, &r, threads);
    }
    free_case(&c, &r);
}

int main(int argc, char **argv) {
    const bool quick = getenv("ONEPASS_TEST_QUICK") != NULL;
    const uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : argc > 1 ? 1 : quick ? 60 : 400;
    for (uint64_t seed = first; seed < first + count; seed++)
        try_case(seed);
    return check_finish();
}
