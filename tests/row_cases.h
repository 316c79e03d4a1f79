/*
 * Calls of losses over rows, with their tensors in one block of memory that is poisoned before: whoever runs a case
 * elsewhere copies the block, lets the call point into the copy, and compares all of it. For the tests of the CUDA
 * engine, whose oracle is the CPU engine's bits. A header of static functions, like check.h.
 */
#ifndef ONEPASS_TESTS_ROW_CASES_H
#define ONEPASS_TESTS_ROW_CASES_H

#include "check.h"
#include "onepass.h"
#include "oracle.h"
#include "row_losses.h"

#include <math.h>

/* How the classes lie. */
enum {
    ROW_DENSE,      /* (rows, classes), without gaps */
    ROW_PADDED,     /* the same with a gap behind each row that keeps it aligned */
    ROW_SHIFTED,    /* the same with one that does not */
    ROW_IMAGES,     /* (n, classes, d): neighbouring rows side by side */
    ROW_TRANSPOSED, /* (rows, classes), stored the other way round */
    ROW_BACKWARDS,  /* every second class of a longer row */
    ROW_IN_PLACE,   /* dense, the gradient over the logits */
    ROW_LAYOUTS
};
static const char *const row_layout_name[ROW_LAYOUTS] = {"dense",      "padded",    "shifted", "images",
                                                         "transposed", "backwards", "in place"};

/* What stands in the logits. */
enum {
    ROW_NORMAL,
    ROW_CONFIDENT, /* the label far ahead, and a large common offset */
    ROW_LARGE,     /* beyond whole numbers of float, and finfo.min */
    ROW_SPECIAL,   /* NaN, infinities, rows of -inf */
    ROW_DATA,
    ROW_TILES = ROW_DATA /* of long rows, which are not drawn: tiles that rise and fall, or lie far apart */
};

enum {
    ROW_VALUE = 1,
    ROW_GRADIENT = 2,
    ROW_TARGET_GRADIENT = 4,
    ROW_LSE = 8,
    ROW_PREDICTED = 16,
    ROW_STATE = 32,
    ROW_FROM_STATE = 64, /* gradients from a state that another call has left */
    ROW_DIVIDED_BY = 128
};

typedef struct row_case {
    const char *loss;
    int32_t dtype, target, gradient;
    int32_t reduction;
    int64_t rows, classes;
    int32_t layout, data;
    int32_t wanted;
    bool class_weight, weight, mask, upstream, divisor_tensor;
    bool some_ignored, all_ignored, bad_labels;
    double smoothing, z_loss, softcap, temperature; /* 0: the default */
    uint64_t seed;
} row_case;

enum {
    ROW_TENSORS = 14,
    ROW_POISON = 0x5a
};

typedef struct prepared_row_case {
    onepass_call call;
    onepass_tensor tensor[ROW_TENSORS];
    int64_t shape[ROW_TENSORS][3], stride[ROW_TENSORS][3];
    size_t tensor_at[ROW_TENSORS];
    int tensors;
    unsigned char *block;
    size_t size;
} prepared_row_case;

static inline uint64_t row_random(uint64_t *state) {
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline double row_uniform(uint64_t *state) {
    return (double)(row_random(state) >> 11) * 0x1p-53;
}

static inline size_t row_size_of(int32_t dtype) {
    return onepass_dtype_size(dtype);
}

static inline onepass_tensor *row_tensor_make(prepared_row_case *p, int32_t dtype, int ndim, const int64_t *shape,
                                              const int64_t *stride, size_t elements, size_t shift) {
    const int i = p->tensors++;
    for (int d = 0; d < ndim; d++) {
        p->shape[i][d] = shape[d];
        p->stride[i][d] = stride ? stride[d] : 0;
    }
    p->tensor_at[i] = p->size + shift * row_size_of(dtype);
    p->size += (elements + shift) * row_size_of(dtype);
    p->size = (p->size + 64 + 255) / 256 * 256;
    p->tensor[i] = (onepass_tensor){NULL, dtype, ndim, p->shape[i], stride ? p->stride[i] : NULL};
    return &p->tensor[i];
}

/* A tensor of rows and classes: its shape follows from the layout. */
static inline onepass_tensor *row_matrix_make(prepared_row_case *p, const row_case *c, int32_t dtype) {
    const int64_t n = c->rows, k = c->classes;
    const size_t all = (size_t)(n * k);
    switch (c->layout) {
    case ROW_PADDED: {
        const int64_t pitch = (k + 15) / 8 * 8;
        return row_tensor_make(p, dtype, 2, (int64_t[]){n, k}, (int64_t[]){pitch, 1}, (size_t)(n * pitch), 0);
    }
    case ROW_SHIFTED:
        return row_tensor_make(p, dtype, 2, (int64_t[]){n, k}, (int64_t[]){k + 3, 1}, (size_t)(n * (k + 3)), 1);
    case ROW_IMAGES: {
        const int64_t outer = n % 2 == 0 ? 2 : 1, inner = n / outer;
        return row_tensor_make(p, dtype, 3, (int64_t[]){outer, k, inner}, NULL, all, 0);
    }
    case ROW_TRANSPOSED:
        return row_tensor_make(p, dtype, 2, (int64_t[]){n, k}, (int64_t[]){1, n}, all, 0);
    case ROW_BACKWARDS:
        return row_tensor_make(p, dtype, 2, (int64_t[]){n, k}, (int64_t[]){2 * k, 2}, 2 * all, 0);
    default:
        return row_tensor_make(p, dtype, 2, (int64_t[]){n, k}, NULL, all, 0);
    }
}

/* One number a row. */
static inline onepass_tensor *row_vector_make(prepared_row_case *p, const row_case *c, int32_t dtype) {
    const int64_t outer = c->rows % 2 == 0 ? 2 : 1;
    if (c->layout == ROW_IMAGES)
        return row_tensor_make(p, dtype, 2, (int64_t[]){outer, c->rows / outer}, NULL, (size_t)c->rows, 0);
    if (c->layout == ROW_BACKWARDS)
        return row_tensor_make(p, dtype, 1, (int64_t[]){c->rows}, (int64_t[]){3}, (size_t)(3 * c->rows), 0);
    return row_tensor_make(p, dtype, 1, (int64_t[]){c->rows}, NULL, (size_t)c->rows, 0);
}

static inline onepass_tensor *row_scalar_make(prepared_row_case *p, int32_t dtype) {
    return row_tensor_make(p, dtype, 0, NULL, NULL, 1, 0);
}

/* The address of an element, by row and class; a vector has one class. */
static inline unsigned char *row_element(const prepared_row_case *p, const onepass_tensor *t, int64_t row, int64_t k) {
    const int i = (int)(t - p->tensor);
    const int64_t inner = t->ndim > 0 ? t->shape[t->ndim - 1] : 1;
    int64_t at;
    if (t->ndim == 3)
        at = (row / inner * t->shape[1] + k) * inner + row % inner;
    else if (t->ndim == 2 && t->strides)
        at = row * t->strides[0] + k * t->strides[1];
    else if (t->ndim == 2 && k >= 0)
        at = row * inner + k;
    else
        at = t->strides ? row * t->strides[0] : row;
    return p->block + p->tensor_at[i] + (size_t)at * row_size_of(t->dtype);
}

static inline void row_store(prepared_row_case *p, const onepass_tensor *t, int64_t row, int64_t k, double x) {
    oracle_store(t->dtype, row_element(p, t, row, k), x);
}

static inline void row_store_index(prepared_row_case *p, const onepass_tensor *t, int64_t row, int64_t label) {
    unsigned char *at = row_element(p, t, row, -1);
    const int32_t label32 = (int32_t)label;
    if (t->dtype == ONEPASS_I64)
        memcpy(at, &label, sizeof label);
    else if (t->dtype == ONEPASS_I32)
        memcpy(at, &label32, sizeof label32);
    else
        *at = (uint8_t)label;
}

static inline double row_logit_of(const row_case *c, int64_t row, int64_t k, int64_t label, uint64_t *state) {
    const double u = row_uniform(state), noise = 8 * (row_uniform(state) + row_uniform(state) - 1);
    switch (c->data) {
    case ROW_CONFIDENT:
        return noise / 4 + (k == label ? 20 : 0) + (row % 3 ? 0 : c->dtype == ONEPASS_F16 ? 1000 : 100000);
    case ROW_LARGE:
        if (c->dtype == ONEPASS_F16)
            return row % 4 == 0 ? -65504 : 60000 * (u - 0.5);
        return row % 4 == 0   ? (u < 0.5 ? -3.4028234663852886e38 : -3e38)
               : row % 4 == 1 ? 1e8 * u
               : row % 4 == 2 ? 1048580 - 10 * (double)(k % 3)
                              : (u < 0.3 ? -1e9 : -INFINITY);
    case ROW_SPECIAL:
        if (row % 7 == 1)
            return -INFINITY;
        if (row % 7 == 2)
            return u < 2.0 / (double)c->classes ? NAN : noise;
        if (row % 7 == 3)
            return u < 2.0 / (double)c->classes ? INFINITY : noise;
        if (row % 7 == 4)
            return u < 0.5 ? -INFINITY : noise;
        if (row % 7 == 5)
            return k % 2 ? 0.0 : -0.0;
        return row % 7 == 6 ? (k == label ? -INFINITY : noise) : 0;
    case ROW_TILES: {
        const double tile = (double)(k / 1024);
        return noise + (row % 4 == 0   ? 0.75 * tile
                        : row % 4 == 1 ? -1.5 * tile
                        : row % 4 == 2 ? -30 * (double)(k / 1024 * 5 % 7)
                                       : -100 * (double)(k / 4096 % 2));
    }
    default:
        return noise;
    }
}

static inline bool row_has_labels(const row_case *c) {
    return row_loss_has_labels(c->loss);
}

static inline void row_fill(prepared_row_case *p, const row_case *c) {
    uint64_t state = c->seed * 7919 + 1;
    const onepass_call *call = &p->call;
    for (int64_t row = 0; row < c->rows; row++) {
        int64_t label = c->classes ? (int64_t)(row_random(&state) % (uint64_t)c->classes) : 0;
        for (int64_t k = 0; k < c->classes; k++) {
            row_store(p, call->operand[0], row, k, row_logit_of(c, row, k, label, &state));
            if (!row_has_labels(c))
                row_store(p, call->operand[1], row, k, row_random(&state) % 3 ? row_uniform(&state) : 0);
        }
        if (c->all_ignored || (c->some_ignored && row_random(&state) % 3 == 0))
            label = c->target == ONEPASS_U8 ? 255 : -100;
        else if (c->bad_labels && row % 3 == 0)
            label = row % 2 || c->target == ONEPASS_U8 ? c->classes : -7;
        if (row_has_labels(c))
            row_store_index(p, call->operand[1], row, label);
        if (call->weight)
            row_store(p, call->weight, row, -1, row % 5 == 4 ? 0 : row_uniform(&state) * 3 - 0.5);
        if (call->mask)
            *row_element(p, call->mask, row, -1) = row_random(&state) % 4 != 0;
        if (call->upstream && call->upstream->ndim > 0)
            row_store(p, call->upstream, row, -1, row_uniform(&state) * 4 - 2);
    }
    for (int64_t k = 0; call->operand[2] && k < c->classes; k++)
        row_store(p, call->operand[2], k, -1, k % 11 == 3 ? 0 : row_uniform(&state) * 2);
    if (call->upstream && call->upstream->ndim == 0)
        row_store(p, call->upstream, 0, -1, -0.37);
    if (call->divisor_tensor)
        row_store(p, call->divisor_tensor, 0, -1, 17.5);
}

static inline void row_parameters(prepared_row_case *p, const row_case *c) {
    const onepass_loss_info *info = onepass_loss_named(c->loss);
    onepass_call *call = &p->call;
    call->parameter_count = info->parameter_count;
    for (int32_t i = 0; i < info->parameter_count; i++) {
        const char *name = info->parameter[i].name;
        double x = info->parameter[i].default_value;
        if (strcmp(name, "ignore_index") == 0 && c->target == ONEPASS_U8)
            x = 255;
        if (strcmp(name, "label_smoothing") == 0)
            x = c->smoothing;
        if (strcmp(name, "z_loss") == 0)
            x = c->z_loss;
        if (strcmp(name, "softcap") == 0)
            x = c->softcap;
        if (strcmp(name, "temperature") == 0 && c->temperature != 0)
            x = c->temperature;
        call->parameter[i] = x;
    }
}

/* Lets the call point into a block that may be elsewhere. */
static inline void row_place(prepared_row_case *p, unsigned char *block) {
    for (int i = 0; i < p->tensors; i++)
        p->tensor[i].data = block + p->tensor_at[i];
}

static inline void row_outputs(prepared_row_case *p, const row_case *c) {
    onepass_call *call = &p->call;
    const bool none = c->reduction == ONEPASS_NONE;
    if (c->wanted & ROW_VALUE)
        call->value = none ? row_vector_make(p, c, c->gradient) : row_scalar_make(p, c->gradient);
    if ((c->wanted & ROW_GRADIENT) && c->layout == ROW_IN_PLACE)
        call->gradient[0] = call->operand[0];
    else if (c->wanted & ROW_GRADIENT)
        call->gradient[0] = row_matrix_make(p, c, c->gradient);
    if (c->wanted & ROW_TARGET_GRADIENT)
        call->gradient[1] = row_matrix_make(p, c, c->gradient);
    if (c->wanted & ROW_LSE)
        call->log_sum_exp = row_vector_make(p, c, c->seed % 2 ? ONEPASS_F32 : ONEPASS_F64);
    if (c->wanted & ROW_PREDICTED)
        call->predicted = row_vector_make(p, c, ONEPASS_I64);
    if (c->wanted & (ROW_STATE | ROW_FROM_STATE))
        call->row_state = row_tensor_make(p, ONEPASS_F64, 2, (int64_t[]){c->rows, ONEPASS_ROW_STATE}, NULL,
                                          (size_t)c->rows * ONEPASS_ROW_STATE, 0);
    if ((c->wanted & ROW_DIVIDED_BY) && c->reduction == ONEPASS_MEAN)
        call->divided_by = row_scalar_make(p, c->seed % 2 ? ONEPASS_F64 : ONEPASS_F32);
}

static inline prepared_row_case *row_prepare(const row_case *c) {
    prepared_row_case *p = calloc(1, sizeof *p);
    onepass_call *call = &p->call;
    call->size = sizeof *call;
    call->loss = c->loss;
    call->reduction = c->reduction;
    row_parameters(p, c);
    call->operand[0] = row_matrix_make(p, c, c->dtype);
    call->operand[1] = row_has_labels(c) ? row_vector_make(p, c, c->target) : row_matrix_make(p, c, c->target);
    if (c->class_weight) {
        const int64_t every_second = 2;
        const int32_t wide = c->dtype == ONEPASS_F64 ? ONEPASS_F64 : ONEPASS_F32;
        call->operand[2] = row_tensor_make(p, c->seed % 4 == 3 ? ONEPASS_BF16 : wide, 1, &c->classes,
                                           c->seed % 4 == 2 ? &every_second : NULL, (size_t)(2 * c->classes), 0);
    }
    if (c->weight)
        call->weight = row_vector_make(p, c, c->dtype);
    if (c->mask)
        call->mask = row_vector_make(p, c, ONEPASS_BOOL);
    if (c->upstream)
        call->upstream =
            c->reduction == ONEPASS_NONE ? row_vector_make(p, c, c->gradient) : row_scalar_make(p, ONEPASS_F32);
    if (c->divisor_tensor && c->reduction == ONEPASS_MEAN)
        call->divisor_tensor = row_scalar_make(p, c->seed % 2 ? ONEPASS_F64 : ONEPASS_F32);
    row_outputs(p, c);
    p->block = aligned_alloc(256, p->size);
    memset(p->block, ROW_POISON, p->size);
    row_place(p, p->block);
    row_fill(p, c);
    if (c->wanted & ROW_FROM_STATE) { /* which a call of its own leaves, with a value that nobody looks at */
        onepass_call first = *call;
        double *value = malloc(sizeof *value * (size_t)(c->rows + 1));
        const int64_t outer = c->rows % 2 == 0 ? 2 : 1, image[] = {outer, c->rows / outer};
        const bool images = c->layout == ROW_IMAGES;
        const onepass_tensor all = {value, ONEPASS_F64, images ? 2 : 1, images ? image : &c->rows, NULL};
        const onepass_tensor one = {value, ONEPASS_F64, 0, NULL, NULL};
        first.upstream = NULL;
        first.gradient[0] = first.gradient[1] = NULL;
        first.divided_by = NULL;
        first.value = c->reduction == ONEPASS_NONE ? &all : &one;
        CHECK_OK(onepass_run(&first), "the call that leaves the state");
        free(value);
    }
    return p;
}

static inline void row_free(prepared_row_case *p) {
    free(p->block);
    free(p);
}

static inline void row_describe(const row_case *c, char *text, size_t size) {
    snprintf(
        text, size,
        "%s %s -> %s, target %d, reduction %d, %lld x %lld, %s, data %d, wanted %d, class weight %d, weight %d, mask "
        "%d, upstream %d, divisor tensor %d, ignored %d %d, bad %d, smoothing %g, z_loss %g, softcap %g, "
        "temperature %g, seed %llu",
        c->loss, oracle_dtype_name(c->dtype), oracle_dtype_name(c->gradient), c->target, c->reduction,
        (long long)c->rows, (long long)c->classes, row_layout_name[c->layout], c->data, c->wanted, c->class_weight,
        c->weight, c->mask, c->upstream, c->divisor_tensor, c->some_ignored, c->all_ignored, c->bad_labels,
        c->smoothing, c->z_loss, c->softcap, c->temperature, (unsigned long long)c->seed);
}

/* Says where two blocks first differ. */
static inline bool row_equal(const prepared_row_case *expected, const unsigned char *got, char *text, size_t size) {
    for (size_t i = 0; i < expected->size; i++) {
        if (expected->block[i] == got[i])
            continue;
        int t = 0;
        while (t + 1 < expected->tensors && expected->tensor_at[t + 1] <= i)
            t++;
        const size_t each = row_size_of(expected->tensor[t].dtype), element = (i - expected->tensor_at[t]) / each;
        uint64_t a = 0, b = 0;
        memcpy(&a, expected->block + expected->tensor_at[t] + element * each, each);
        memcpy(&b, got + expected->tensor_at[t] + element * each, each);
        snprintf(text, size, "tensor %d of %d (dtype %d), element %zu: expected %llx, got %llx", t, expected->tensors,
                 expected->tensor[t].dtype, element, (unsigned long long)a, (unsigned long long)b);
        return false;
    }
    return true;
}

/* Long rows of bf16, whose tiles may share a shift on a GPU: every loss of labels, every kind of data, and a factor of
 * 1, by which logits lie between two whole numbers. */
static inline int row_long_cases(void) {
    return label_loss_count() * (ROW_TILES + 1) + 2;
}

static inline row_case row_long_case(int i) {
    const bool has_ties = i >= label_loss_count() * (ROW_TILES + 1);
    const row_case c = {.loss = label_loss_in_turn((uint64_t)i),
                        .dtype = ONEPASS_BF16,
                        .target = i % 2 ? ONEPASS_I64 : ONEPASS_I32,
                        .gradient = ONEPASS_BF16,
                        .rows = i % 3 ? 5 : 8,
                        .classes = i % 4 ? 65536 + 1024 * (i % 5) : 70004,
                        .reduction = i % 2 ? ONEPASS_MEAN : ONEPASS_NONE,
                        .data = has_ties ? ROW_TILES : i % (ROW_TILES + 1),
                        .wanted = ROW_VALUE | ROW_STATE | ROW_LSE,
                        .some_ignored = i % 3 == 0,
                        .temperature = has_ties ? 1.4426950408889634 : 0,
                        .seed = (uint64_t)i};
    return c;
}

/* Rows of bf16 that clusters of blocks of a GPU have, value and gradient of them: of each loss, of numbers of tiles
 * that leave warps with one tile or none, of every kind of data, and, unless `few`, more rows than all clusters are
 * told of at a time. Some take no part, and what comes back is multiplied. */
static const int64_t row_cluster_size[][2] = {{33032, 3}, {36872, 40}, {40968, 13}, {33288, 70}, {65536, 3},
                                              {65544, 9}, {34824, 5},  {131072, 2}, {33000, 9},  {32776, 7}};
static const int64_t row_cluster_large[][2] = {{128256, 400}, {33032, 3000}, {65544, 1100}, {131072, 70}};

static inline int row_cluster_cases(bool few) {
    const int sizes = (int)(sizeof row_cluster_size / sizeof *row_cluster_size);
    const int large = (int)(sizeof row_cluster_large / sizeof *row_cluster_large);
    return sizes + label_loss_count() - 1 + (few ? 0 : large);
}

static inline row_case row_cluster_case(int i) {
    const int sizes = (int)(sizeof row_cluster_size / sizeof *row_cluster_size);
    const int other = i - sizes, large = other - (label_loss_count() - 1);
    const int64_t *size = large >= 0 ? row_cluster_large[large] : row_cluster_size[other < 0 ? i : 0];
    const row_case c = {.loss = label_loss_at(other < 0 || large >= 0 ? 0 : 1 + other),
                        .dtype = ONEPASS_BF16,
                        .target = i % 3 ? ONEPASS_I64 : ONEPASS_I32,
                        .gradient = ONEPASS_BF16,
                        .rows = size[1],
                        .classes = size[0],
                        .reduction = i % 4 == 3 ? ONEPASS_NONE : ONEPASS_MEAN,
                        .layout = i % 6 == 4   ? ROW_IN_PLACE
                                  : i % 6 == 5 ? ROW_PADDED
                                               : ROW_DENSE,
                        .data = i % 5 ? i % (ROW_TILES + 1) : ROW_NORMAL,
                        .wanted = ROW_VALUE | ROW_GRADIENT,
                        .some_ignored = i % 2 == 1,
                        .all_ignored = i == 8 || i == 9,
                        .upstream = i % 3 == 1 && i % 4 != 3,
                        .seed = (uint64_t)i};
    return c;
}

/* A case drawn from a seed: everything with everything. */
static inline row_case row_draw(uint64_t seed, bool in_double) {
    static const int32_t targets[] = {ONEPASS_I64, ONEPASS_I32, ONEPASS_U8};
    static const int64_t sizes[] = {1,   2,    4,    10,   21,   31,   32,   33,   64,   100,  127,  128,
                                    132, 1000, 1024, 1028, 1029, 2048, 3000, 4096, 5000, 8192, 9000, 12288};
    uint64_t s = seed * 1000003 + 17;
    const uint64_t drawn = row_random(&s) % (uint64_t)(row_loss_count() + 1);
    row_case c = {.loss = onepass_row_loss_at(twice_the_first((int64_t)drawn))->name, .seed = seed};
    const bool labels = row_has_labels(&c), softmax = strcmp(c.loss, "nll") != 0;
    c.dtype = in_double ? ONEPASS_F64 : ONEPASS_F16 + (int32_t)(row_random(&s) % 3);
    c.classes = sizes[row_random(&s) % (sizeof sizes / sizeof *sizes)];
    c.rows = c.classes > 4000 ? 1 + (int64_t)(row_random(&s) % 6) : 1 + (int64_t)(row_random(&s) % 40);
    if (row_random(&s) % 8 == 0 && c.classes <= 132)
        c.rows = 1000 + (int64_t)(row_random(&s) % 300);
    c.target = labels ? targets[row_random(&s) % (c.classes < 250 ? 3 : 2)] : c.dtype;
    c.gradient = row_random(&s) % 4 ? c.dtype : ONEPASS_F16 + (int32_t)(row_random(&s) % 4);
    c.reduction = (int32_t)(row_random(&s) % 3);
    c.layout = row_random(&s) % 2 ? ROW_DENSE : (int32_t)(row_random(&s) % ROW_LAYOUTS);
    c.data = row_random(&s) % 2 ? ROW_NORMAL : (int32_t)(row_random(&s) % ROW_DATA);
    static const int32_t wanted[] = {ROW_VALUE, ROW_VALUE | ROW_GRADIENT, ROW_GRADIENT, ROW_FROM_STATE | ROW_GRADIENT,
                                     ROW_VALUE | ROW_STATE};
    c.wanted = wanted[row_random(&s) % (softmax ? 5 : 3)];
    if (row_random(&s) % 4 == 0 && (c.wanted & ROW_VALUE))
        c.wanted |= softmax ? ROW_LSE | ROW_STATE : ROW_PREDICTED;
    if (row_random(&s) % 8 == 0 && (c.wanted & ROW_VALUE))
        c.wanted |= ROW_PREDICTED;
    if (!labels && row_random(&s) % 3 == 0 && (c.wanted & ROW_GRADIENT))
        c.wanted |= ROW_TARGET_GRADIENT;
    if (row_random(&s) % 4 == 0)
        c.wanted |= ROW_DIVIDED_BY;
    c.class_weight = row_random(&s) % 3 == 0;
    c.weight = row_random(&s) % 4 == 0;
    c.mask = row_random(&s) % 4 == 0;
    c.upstream = (c.wanted & ROW_GRADIENT) && row_random(&s) % 2;
    c.divisor_tensor = row_random(&s) % 6 == 0;
    c.some_ignored = labels && row_random(&s) % 2;
    c.all_ignored = labels && row_random(&s) % 16 == 0;
    if (softmax && row_random(&s) % 3 == 0)
        c.smoothing = 0.1;
    if (softmax && row_random(&s) % 4 == 0)
        c.z_loss = 1e-3;
    if (softmax && row_random(&s) % 8 == 0)
        c.softcap = 30;
    if (softmax && row_random(&s) % 6 == 0)
        c.temperature = 0.7;
    if (c.layout == ROW_IN_PLACE)
        c.gradient = c.dtype;
    return c;
}

#endif
