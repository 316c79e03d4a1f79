/*
 * Slices in the memory of a GPU, or of what stands for one: any slices of a whole, on several streams and in several
 * accumulators, against one call on the CPU, and against the bytes of an accumulator with the same slices on the CPU.
 * A header of static functions, like check.h.
 */
#ifndef ONEPASS_TESTS_SLICES_H
#define ONEPASS_TESTS_SLICES_H

#include "accumulator_bytes.h"
#include "cases.h"
#include "check.h"
#include "oracle.h"

#include <stdbool.h>

/* ------------------------------------------------------------------ the cases -- */

typedef struct slices_case {
    const char *loss;
    int64_t rows;   /* or elements */
    int64_t length; /* of a row: classes or elements of a vector; of other losses more than 1 is columns, */
    bool broadcast; /* which share one row of targets and weights; ... */
    int64_t gap;    /* ... and so many elements lie between rows of predictions */
    int32_t dtype;
    int32_t weight;                                           /* its type; 0: none */
    bool mask, class_weight, gradient, f16_gradient, outputs; /* outputs of rows */
    int32_t reduction;
    double divisor;
} slices_case;

static const slices_case slices_cases[] = {
    {.loss = "mse", .rows = 5000, .length = 1, .dtype = ONEPASS_F32, .gradient = true},
    {.loss = "mse", .rows = 40 * 1024 + 77, .length = 1, .dtype = ONEPASS_F32},
    {.loss = "hinge", .rows = 9000, .length = 1, .dtype = ONEPASS_F16, .gradient = true, .f16_gradient = true},
    {.loss = "smooth_l1", .rows = 4100, .length = 1, .dtype = ONEPASS_F64, .gradient = true, .reduction = ONEPASS_SUM},
    {.loss = "mse", .rows = 7000, .length = 1, .dtype = ONEPASS_F32, .weight = ONEPASS_F32},
    {.loss = "mse", .rows = 6000, .length = 1, .dtype = ONEPASS_F32, .mask = true},
    {.loss = "mse", .rows = 5000, .length = 1, .dtype = ONEPASS_BF16, .weight = ONEPASS_F64, .mask = true},
    {.loss = "mse",
     .rows = 5000,
     .length = 1,
     .dtype = ONEPASS_F32,
     .weight = ONEPASS_F32,
     .mask = true,
     .gradient = true,
     .divisor = 321.5},
    {.loss = "gaussian_nll", .rows = 3000, .length = 1, .dtype = ONEPASS_F32, .gradient = true},
    {.loss = "mse",
     .rows = 30,
     .length = 300,
     .dtype = ONEPASS_F32,
     .broadcast = true,
     .weight = ONEPASS_F16,
     .mask = true},
    {.loss = "smooth_l1", .rows = 17, .length = 400, .dtype = ONEPASS_F32, .broadcast = true, .gradient = true},
    {.loss = "mse", .rows = 24, .length = 1024, .dtype = ONEPASS_F32, .broadcast = true, .gradient = true},
    {.loss = "mse", .rows = 9, .length = 3072, .dtype = ONEPASS_F32, .broadcast = true},
    {.loss = "mse", .rows = 21, .length = 1024, .dtype = ONEPASS_F32, .broadcast = true, .gap = 64, .gradient = true},
    {.loss = "mse", .rows = 13, .length = 520, .dtype = ONEPASS_F64, .gap = 3, .gradient = true},
    {.loss = "cross_entropy", .rows = 2600, .length = 5, .dtype = ONEPASS_F32},
    {.loss = "cross_entropy",
     .rows = 3000,
     .length = 7,
     .dtype = ONEPASS_F32,
     .weight = ONEPASS_F32,
     .gradient = true,
     .outputs = true,
     .divisor = 2000},
    {.loss = "cross_entropy", .rows = 1300, .length = 36, .dtype = ONEPASS_F16, .mask = true, .class_weight = true},
    {.loss = "cross_entropy",
     .rows = 1100,
     .length = 12,
     .dtype = ONEPASS_F64,
     .weight = ONEPASS_F32,
     .class_weight = true,
     .reduction = ONEPASS_SUM},
    {.loss = "nll", .rows = 2500, .length = 3, .dtype = ONEPASS_F32, .gradient = true, .divisor = 2500},
    {.loss = "cross_entropy_with_probabilities",
     .rows = 1200,
     .length = 9,
     .dtype = ONEPASS_F32,
     .weight = ONEPASS_F32,
     .mask = true},
    {.loss = "cosine_similarity", .rows = 2200, .length = 6, .dtype = ONEPASS_F32, .gradient = true},
    {.loss = "pairwise_distance", .rows = 1500, .length = 4, .dtype = ONEPASS_F64, .weight = ONEPASS_F32},
    {.loss = "triplet_margin", .rows = 1200, .length = 8, .dtype = ONEPASS_F16, .mask = true},
    {.loss = "kl_div_with_logits", .rows = 1100, .length = 8, .dtype = ONEPASS_F32, .gradient = true},
};

enum {
    SLICES_CASES = sizeof slices_cases / sizeof *slices_cases,
    SLICES_IGNORED = 1,  /* a class whose rows take no part */
    SLICES_MOST = 12,    /* slices, and ... */
    SLICES_PARTS = 3,    /* ... accumulators that they are spread over */
    SLICES_TENSORS = 11, /* of a case */
    SLICES_STREAMS = 3
};

static inline int32_t slices_over_rows(const slices_case *c) {
    return onepass_loss_named(c->loss)->over_rows;
}

static inline bool slices_in_double(const slices_case *c) {
    return c->dtype == ONEPASS_F64 || c->weight == ONEPASS_F64;
}

/* Elements or rows of the whole, which slices are counted in, and how many each of `rows` has. */
static inline int64_t slices_unit(const slices_case *c) {
    return slices_over_rows(c) ? 1 : c->length;
}

/* ------------------------------------------------------------------ the tensors -- */

/* Where the slices are computed. */
typedef struct slices_place {
    void *(*allocate)(size_t size);
    void (*release)(void *memory);
    void (*write)(void *to, const void *from, size_t size);
    void (*read)(void *to, const void *from, size_t size); /* waits for all streams */
    void *stream[SLICES_STREAMS];
} slices_place;

typedef struct slices_tensor {
    size_t field; /* of the call */
    int32_t dtype;
    int64_t a_row;  /* elements of a row, ... */
    int64_t step;   /* ... and from row to row */
    bool is_shared; /* by all rows */
    bool is_output;
    unsigned char *expected, *here, *there; /* of one call; of slices on the CPU, and where the slices are computed */
} slices_tensor;

typedef struct slices_whole {
    const slices_case *c;
    slices_tensor tensor[SLICES_TENSORS];
    int count;
    double expected;
} slices_whole;

static inline size_t slices_bytes(const slices_whole *w, const slices_tensor *tensor) {
    return (size_t)(tensor->is_shared ? 1 : w->c->rows) * (size_t)tensor->step * onepass_dtype_size(tensor->dtype);
}

static inline void slices_have(slices_whole *w, bool wanted, size_t field, int32_t dtype, int64_t a_row, bool is_shared,
                               bool is_output) {
    if (wanted)
        w->tensor[w->count++] = (slices_tensor){field, dtype, a_row, a_row, is_shared, is_output, NULL, NULL, NULL};
}

static inline void slices_list(const slices_case *c, slices_whole *w) {
    const int32_t over_rows = slices_over_rows(c);
    const bool labels = over_rows == ONEPASS_CLASS_INDEX, rows = labels || over_rows == ONEPASS_CLASS_PROBABILITIES;
    const int operands = rows ? 2 : onepass_loss_named(c->loss)->operand_count;
    const int64_t length = c->length, weights = over_rows ? 1 : length;
    *w = (slices_whole){.c = c};
    for (int k = 0; k < operands; k++)
        slices_have(w, true, offsetof(onepass_call, operand) + (size_t)k * sizeof(void *),
                    labels && k == 1 ? ONEPASS_I64 : c->dtype, labels && k == 1 ? 1 : length, c->broadcast && k == 1,
                    false);
    w->tensor[0].step += c->gap;
    slices_have(w, c->class_weight, offsetof(onepass_call, operand[2]), ONEPASS_F32, length, true, false);
    slices_have(w, c->weight != 0, offsetof(onepass_call, weight), c->weight, weights, c->broadcast, false);
    slices_have(w, c->mask, offsetof(onepass_call, mask), ONEPASS_BOOL, weights, false, false);
    for (int k = 0; k < (rows ? 1 : operands); k++)
        slices_have(w, c->gradient, offsetof(onepass_call, gradient) + (size_t)k * sizeof(void *),
                    c->f16_gradient ? ONEPASS_F16 : c->dtype, length, false, true);
    slices_have(w, c->outputs, offsetof(onepass_call, log_sum_exp), c->dtype, 1, false, true);
    slices_have(w, c->outputs, offsetof(onepass_call, predicted), ONEPASS_I64, 1, false, true);
    slices_have(w, c->outputs, offsetof(onepass_call, row_state), ONEPASS_F64, ONEPASS_ROW_STATE, false, true);
}

static inline void slices_fill(const slices_whole *w, const slices_tensor *tensor, uint64_t *state) {
    const size_t size = onepass_dtype_size(tensor->dtype), bytes = slices_bytes(w, tensor);
    const oracle_loss *known = slices_over_rows(w->c) ? NULL : oracle_loss_named(w->c->loss);
    const size_t k = (tensor->field - offsetof(onepass_call, operand)) / sizeof(void *);
    for (size_t at = 0; at < bytes; at += size) {
        unsigned char *element = tensor->here + at;
        if (tensor->dtype == ONEPASS_I64) {
            const int64_t label = random_below(state, w->c->length);
            memcpy(element, &label, sizeof label);
        } else if (tensor->dtype == ONEPASS_BOOL) {
            *element = (unsigned char)random_mask(state, MASKS_HALF);
        } else if (known && k < (size_t)known->operand_count) {
            oracle_store_bits(tensor->dtype, element,
                              random_operand(state, DATA_NORMAL, known->domain[k], tensor->dtype, 0));
        } else {
            oracle_store_bits(tensor->dtype, element, random_element(state, DATA_NORMAL, tensor->dtype, 0));
        }
    }
}

static inline void *slices_allocate(size_t bytes) {
    void *memory = malloc(bytes + 1);
    if (!memory) {
        perror("malloc");
        exit(1);
    }
    return memory;
}

static inline slices_whole slices_make(const slices_case *c, const slices_place *place, uint64_t *state) {
    slices_whole w;
    slices_list(c, &w);
    for (int i = 0; i < w.count; i++) {
        slices_tensor *tensor = &w.tensor[i];
        const size_t bytes = slices_bytes(&w, tensor);
        tensor->here = slices_allocate(bytes);
        tensor->there = place->allocate(bytes);
        memset(tensor->here, 0xa5, bytes);
        if (tensor->is_output)
            tensor->expected = slices_allocate(bytes);
        else
            slices_fill(&w, tensor, state);
        place->write(tensor->there, tensor->here, bytes);
    }
    return w;
}

static inline void slices_free(slices_whole *w, const slices_place *place) {
    for (int i = 0; i < w->count; i++) {
        free(w->tensor[i].expected);
        free(w->tensor[i].here);
        place->release(w->tensor[i].there);
    }
}

/* ------------------------------------------------------------------------ calls -- */

typedef struct slices_call {
    onepass_call call;
    int64_t shape[SLICES_TENSORS][2], strides[SLICES_TENSORS][2];
    onepass_tensor tensor[SLICES_TENSORS];
} slices_call;

static inline onepass_call slices_begin(const slices_case *c) {
    onepass_call call = {.size = sizeof call, .loss = c->loss, .reduction = c->reduction, .divisor = c->divisor};
    if (slices_over_rows(c) == ONEPASS_CLASS_INDEX) {
        call.parameter_count = 1;
        call.parameter[0] = SLICES_IGNORED;
    }
    return call;
}

typedef enum slices_memory {
    SLICES_EXPECTED,
    SLICES_HERE,
    SLICES_THERE
} slices_memory;

/* Of rows first to end - 1. */
static inline void slices_cut(const slices_whole *w, slices_memory memory, int64_t first, int64_t end,
                              slices_call *made) {
    made->call = slices_begin(w->c);
    for (int i = 0; i < w->count; i++) {
        const slices_tensor *from = &w->tensor[i];
        const bool flat = from->a_row == 1 && (w->c->length == 1 || slices_over_rows(w->c));
        const size_t at = from->is_shared ? 0 : (size_t)first * (size_t)from->step * onepass_dtype_size(from->dtype);
        unsigned char *data = memory == SLICES_THERE                      ? from->there
                              : memory == SLICES_HERE || !from->is_output ? from->here
                                                                          : from->expected;
        made->shape[i][0] = end - first;
        made->shape[i][1] = from->a_row;
        made->strides[i][0] = from->step;
        made->strides[i][1] = 1;
        made->tensor[i] = (onepass_tensor){data + at, from->dtype, flat || from->is_shared ? 1 : 2,
                                           made->shape[i] + from->is_shared, made->strides[i] + from->is_shared};
        const onepass_tensor *tensor = &made->tensor[i];
        memcpy((char *)&made->call + from->field, &tensor, sizeof tensor);
    }
}

static inline void slices_expect(slices_whole *w, const char *what) {
    slices_call all;
    const onepass_tensor value = {&w->expected, ONEPASS_F64, 0, NULL, NULL};
    slices_cut(w, SLICES_EXPECTED, 0, w->c->rows, &all);
    all.call.value = &value;
    CHECK_OK(onepass_run(&all.call), what);
}

/* ----------------------------------------------------------------------- slices -- */

static inline void slices_add(onepass_accumulator *accumulator, const slices_whole *w, slices_memory memory,
                              void *stream, int64_t first, int64_t end, const char *what) {
    slices_call slice;
    slices_cut(w, memory, first, end, &slice);
    slice.call.device = memory == SLICES_THERE ? ONEPASS_CUDA : ONEPASS_CPU;
    slice.call.stream = memory == SLICES_THERE ? stream : NULL;
    CHECK_OK(onepass_accumulator_add(accumulator, &slice.call, first * slices_unit(w->c)), what);
}

/* Cuts rows anywhere, some of them where tiles are, and shuffles the slices. */
static inline int slices_shuffle(const slices_case *c, uint64_t *state, int64_t (*slice)[2]) {
    int count = 0;
    for (int64_t first = 0; first < c->rows; count++) {
        const int64_t left = c->rows - first, most = 1 + 2 * left / (SLICES_MOST / 2);
        int64_t next = count == SLICES_MOST - 1 ? left : 1 + random_below(state, left < most ? left : most);
        if (count % 4 == 1 && first + next > ONEPASS_TILE && (first + next) % ONEPASS_TILE < next)
            next -= (first + next) % ONEPASS_TILE;
        const int at = (int)random_below(state, count + 1);
        memcpy(slice[count], slice[at], sizeof *slice);
        slice[at][0] = first;
        slice[at][1] = first += next;
    }
    return count;
}

/* The header ends with a fingerprint of the class weights, 0 if only a GPU knows them; all ends with a checksum. */
#define SLICES_FINGERPRINT 216

static inline bool slices_are_same(const unsigned char *there, const unsigned char *here, size_t size) {
    const size_t after = SLICES_FINGERPRINT + 8;
    uint64_t fingerprint;
    memcpy(&fingerprint, there + SLICES_FINGERPRINT, sizeof fingerprint);
    if (fingerprint != 0)
        return memcmp(there, here, size) == 0;
    return memcmp(there, here, SLICES_FINGERPRINT) == 0 && memcmp(there + after, here + after, size - after - 8) == 0;
}

static inline void slices_same_bytes(const onepass_accumulator *there, const onepass_accumulator *here,
                                     const char *what) {
    size_t sizes[2];
    unsigned char *bytes[2] = {exported(here, &sizes[0]), exported(there, &sizes[1])};
    CHECK(sizes[0] == sizes[1] && slices_are_same(bytes[1], bytes[0], sizes[0]),
          "%s: expected the %zu bytes of an accumulator on the CPU", what, sizes[0]);
    free(bytes[0]);
    free(bytes[1]);
}

static inline void slices_compare(const slices_whole *w, const slices_place *place, const char *what) {
    for (int i = 0; i < w->count; i++) {
        const slices_tensor *tensor = &w->tensor[i];
        const size_t bytes = slices_bytes(w, tensor);
        unsigned char *got = slices_allocate(bytes);
        place->read(got, tensor->there, bytes);
        CHECK(memcmp(got, tensor->is_output ? tensor->expected : tensor->here, bytes) == 0,
              "%s: tensor %d is not as one call on the CPU has it", what, i);
        free(got);
    }
}

static inline void slices_spread(const slices_whole *w, const slices_place *place, uint64_t *state, const char *what) {
    int64_t slice[SLICES_MOST][2];
    onepass_accumulator *there[SLICES_PARTS], *here[SLICES_PARTS];
    const onepass_call begin = slices_begin(w->c);
    const int count = slices_shuffle(w->c, state, slice), parts = 1 + (int)random_below(state, SLICES_PARTS);
    for (int i = 0; i < parts; i++) {
        CHECK_OK(onepass_accumulator_begin(&there[i], &begin, w->c->rows * slices_unit(w->c)), what);
        CHECK_OK(onepass_accumulator_begin(&here[i], &begin, w->c->rows * slices_unit(w->c)), what);
    }
    for (int i = 0; i < count; i++) {
        const int part = (int)random_below(state, parts);
        void *stream = place->stream[random_below(state, SLICES_STREAMS)];
        slices_add(there[part], w, i % 5 == 4 ? SLICES_HERE : SLICES_THERE, stream, slice[i][0], slice[i][1], what);
        slices_add(here[part], w, SLICES_HERE, NULL, slice[i][0], slice[i][1], what);
        if (i % 5 == 4) /* a slice of the CPU among those of the GPU: its outputs are where the GPU's are */
            for (int k = 0; k < w->count; k++) {
                const slices_tensor *tensor = &w->tensor[k];
                const size_t a_row = (size_t)tensor->step * onepass_dtype_size(tensor->dtype);
                if (tensor->is_output)
                    place->write(tensor->there + (size_t)slice[i][0] * a_row,
                                 tensor->here + (size_t)slice[i][0] * a_row,
                                 (size_t)(slice[i][1] - slice[i][0]) * a_row);
            }
    }
    for (int i = 0; i < parts; i++) {
        slices_same_bytes(there[i], here[i], what);
        if (i > 0)
            CHECK_OK(onepass_accumulator_merge(there[0], there[i]), what);
    }
    double value = -1;
    const onepass_tensor finished = {&value, ONEPASS_F64, 0, NULL, NULL};
    CHECK_OK(onepass_accumulator_finish(there[0], &finished), what);
    CHECK_BITS(oracle_double_bits(w->expected), oracle_double_bits(value), what);
    slices_compare(w, place, what);
    for (int i = 0; i < parts; i++) {
        onepass_accumulator_destroy(there[i]);
        onepass_accumulator_destroy(here[i]);
    }
}

/* The case as often as said, each time with other slices. */
static inline void slices_run(const slices_case *c, const slices_place *place, uint64_t seed, int times) {
    char what[160];
    uint64_t state = seed;
    snprintf(what, sizeof what, "slices of %s of %s, %lld x %lld, case %d", c->loss, oracle_dtype_name(c->dtype),
             (long long)c->rows, (long long)c->length, (int)(c - slices_cases));
    slices_whole w = slices_make(c, place, &state);
    slices_expect(&w, what);
    for (int i = 0; i < times; i++)
        slices_spread(&w, place, &state, what);
    slices_free(&w, place);
}

#endif
