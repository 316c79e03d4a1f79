/*
 * The cases: their data, their memory, and the sweeps that make the list. Each
 * sweep varies one axis or an important pair of axes around a plain case, since
 * the full product would be some ten million cases.
 */
#include "cases.h"
#include "oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------- data -- */

uint64_t random_bits(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

int64_t random_below(uint64_t *state, int64_t below) {
    return (int64_t)(random_bits(state) % (uint64_t)below);
}

/* -1 to 1 on a grid of 2^-30, so that every step of the arithmetic is exact. */
static double random_uniform(uint64_t *state) {
    return (double)((int64_t)(random_bits(state) >> 33) - (INT64_C(1) << 30)) / 1073741824.0;
}

/* The sum of a few uniform numbers is close to a bell curve, by additions alone. Four coarse
 * ones come out of one draw, the fifth gives the low bits. */
static double random_bell(uint64_t *state) {
    const uint64_t bits = random_bits(state);
    int64_t sum = 0;
    for (int i = 0; i < 4; i++) {
        sum += (int64_t)(bits >> 16 * i & 0xffff) - 0x8000;
    }
    return (double)sum / 32768.0 + random_uniform(state);
}

/* 2^exponent for the exponents of normal doubles. */
static double power_of_two(int64_t exponent) {
    return oracle_double_from_bits((uint64_t)(exponent + 1023) << 52);
}

static double random_scaled(uint64_t *state, int64_t least, int64_t most) {
    return random_uniform(state) * power_of_two(least + random_below(state, most - least + 1));
}

static double random_huge(uint64_t *state, int32_t dtype) {
    switch (dtype) {
    case ONEPASS_F16:
        return random_scaled(state, 10, 17); /* some are beyond 65504 and become infinite */
    case ONEPASS_F64:
        return random_scaled(state, 480, 1023);
    default:
        return random_scaled(state, 55, 127);
    }
}

static double random_tiny(uint64_t *state, int32_t dtype) {
    const int denormal = random_below(state, 2) == 0;
    switch (dtype) {
    case ONEPASS_F16:
        return denormal ? random_scaled(state, -25, -14) : random_scaled(state, -12, -8);
    case ONEPASS_F64:
        return denormal ? random_scaled(state, -52, 0) * power_of_two(-1022) : random_scaled(state, -540, -505);
    default:
        return denormal ? random_scaled(state, -149, -126) : random_scaled(state, -75, -60);
    }
}

/* Quiet and signalling NaN of both signs and with payloads, and infinities. */
static uint64_t random_special(uint64_t *state, int32_t dtype) {
    static const uint64_t faces[4][6] = {
        {0x7e00, 0xfe00, 0x7d01, 0xffff, 0x7c00, 0xfc00},
        {0x7fc0, 0xffc0, 0x7f81, 0xffff, 0x7f80, 0xff80},
        {0x7fc00000, 0xffc00000, 0x7f800001, 0xffffffff, 0x7f800000, 0xff800000},
        {UINT64_C(0x7ff8000000000000), UINT64_C(0xfff8000000000000), UINT64_C(0x7ff0000000000001), UINT64_MAX,
         UINT64_C(0x7ff0000000000000), UINT64_C(0xfff0000000000000)},
    };
    return faces[dtype - ONEPASS_F16][random_below(state, 6)];
}

static double random_kink(uint64_t *state, double parameter) {
    const double points[] = {0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, parameter, -parameter, 2 * parameter};
    return points[random_below(state, sizeof points / sizeof points[0])];
}

uint64_t random_element(uint64_t *state, int32_t data, int32_t dtype, double parameter) {
    double value = 0;
    switch (data) {
    case DATA_UNIFORM:
        value = random_uniform(state);
        break;
    case DATA_HUGE:
        value = random_huge(state, dtype);
        break;
    case DATA_TINY:
        value = random_tiny(state, dtype);
        break;
    case DATA_WIDE:
        value = random_scaled(state, -40, 40);
        break;
    case DATA_KINK:
        value = random_kink(state, parameter);
        break;
    case DATA_SPECIAL:
        if (random_below(state, 6) == 0) {
            return random_special(state, dtype);
        }
        value = 2 * random_uniform(state);
        break;
    default:
        value = random_bell(state);
    }
    return oracle_encode(dtype, value);
}

/* -------------------------------------------------------------- layouts -- */

/* An operand's own shape, against the full one. */
enum {
    FULL,
    PER_ROW,      /* the last length is 1: one number for each row */
    SHARED_ROW,   /* the last dimension alone: one row for all */
    SCALAR,       /* no dimension */
    EVEN_ONES,    /* dimensions 0, 2, ... have length 1 */
    ODD_ONES,     /* dimensions 1, 3, ... */
    LEADING_ONES, /* two dimensions of length 1 in front of the full shape */
    FIRST_ROW     /* the first length is 1 */
};

/* How a tensor's elements lie in memory. */
enum {
    NULL_STRIDES, /* dense, said by leaving the strides out */
    DENSE,        /* dense, with strides given */
    UNALIGNED,    /* dense, but one element after a 64-byte boundary */
    PADDED,       /* dense rows with a gap between them */
    TRANSPOSED,   /* the first dimension is the innermost */
    REVERSED,     /* all strides negative */
    FLIPPED,      /* the first stride negative */
    STEP_TWO,     /* every other element */
    PERMUTED,     /* memory order 2, 0, 3, 1 of four dimensions */
    ZERO_STRIDES, /* the full shape, but all strides 0 */
    ODD_STRIDES   /* dense; where a length is 1, a stride that must not matter */
};

enum {
    OVER_PREDICTION = 1, /* the gradient in the prediction overwrites the prediction */
    OVER_TARGET = 2
};

typedef struct layout_row {
    const char *name;
    int rank; /* 1: (rows * columns); 2: (rows, columns); 4: (rows, 2, 3, columns) */
    int prediction_shape, prediction_memory;
    int target_shape, target_memory;
    int output_memory;
    int in_place;
} layout_row;

static const layout_row layouts[] = {
    /* The first two are named in cases.h. */
    {"dense", 1, FULL, NULL_STRIDES, FULL, NULL_STRIDES, NULL_STRIDES, 0},
    {"unaligned", 1, FULL, UNALIGNED, FULL, UNALIGNED, UNALIGNED, 0},
    /* Dense in every spelling, which must all find the same path. */
    {"dense, strides given", 2, FULL, DENSE, FULL, DENSE, DENSE, 0},
    {"dense, four dimensions", 4, FULL, NULL_STRIDES, FULL, DENSE, NULL_STRIDES, 0},
    {"dense, leading ones", 2, FULL, NULL_STRIDES, LEADING_ONES, ODD_STRIDES, ODD_STRIDES, 0},
    /* Operands and outputs whose alignments differ. */
    {"target unaligned", 1, FULL, NULL_STRIDES, FULL, UNALIGNED, NULL_STRIDES, 0},
    {"outputs unaligned", 1, FULL, NULL_STRIDES, FULL, NULL_STRIDES, UNALIGNED, 0},
    /* The broadcasts that have fast paths: a number a row, a row for all, one number. */
    {"target per row", 2, FULL, NULL_STRIDES, PER_ROW, NULL_STRIDES, NULL_STRIDES, 0},
    {"target shared row", 2, FULL, NULL_STRIDES, SHARED_ROW, NULL_STRIDES, NULL_STRIDES, 0},
    {"target first row", 2, FULL, NULL_STRIDES, FIRST_ROW, ODD_STRIDES, DENSE, 0},
    {"target scalar", 2, FULL, NULL_STRIDES, SCALAR, NULL_STRIDES, NULL_STRIDES, 0},
    {"target zero strides", 2, FULL, NULL_STRIDES, FULL, ZERO_STRIDES, NULL_STRIDES, 0},
    /* The same with the roles exchanged, and both operands broadcast. */
    {"prediction per row", 2, PER_ROW, NULL_STRIDES, FULL, NULL_STRIDES, NULL_STRIDES, 0},
    {"prediction shared row", 2, SHARED_ROW, NULL_STRIDES, FULL, NULL_STRIDES, NULL_STRIDES, 0},
    {"prediction scalar", 1, SCALAR, NULL_STRIDES, FULL, NULL_STRIDES, NULL_STRIDES, 0},
    {"both broadcast", 2, FIRST_ROW, NULL_STRIDES, PER_ROW, NULL_STRIDES, NULL_STRIDES, 0},
    {"both broadcast crosswise", 4, EVEN_ONES, DENSE, ODD_ONES, DENSE, PERMUTED, 0},
    {"both zero strides", 1, FULL, ZERO_STRIDES, FULL, ZERO_STRIDES, NULL_STRIDES, 0},
    /* Strides. */
    {"padded rows", 2, FULL, PADDED, FULL, PADDED, PADDED, 0},
    {"padded prediction", 2, FULL, PADDED, FULL, NULL_STRIDES, NULL_STRIDES, 0},
    {"padded, target per row", 2, FULL, PADDED, PER_ROW, STEP_TWO, PADDED, 0},
    {"padded, target shared row", 2, FULL, PADDED, SHARED_ROW, REVERSED, DENSE, 0},
    {"transposed", 2, FULL, TRANSPOSED, FULL, TRANSPOSED, TRANSPOSED, 0},
    {"prediction transposed", 2, FULL, TRANSPOSED, FULL, NULL_STRIDES, NULL_STRIDES, 0},
    {"outputs transposed", 2, FULL, NULL_STRIDES, FULL, DENSE, TRANSPOSED, 0},
    {"reversed", 1, FULL, REVERSED, FULL, REVERSED, REVERSED, 0},
    {"target reversed", 2, FULL, DENSE, FULL, REVERSED, FLIPPED, 0},
    {"step two", 1, FULL, STEP_TWO, FULL, STEP_TWO, STEP_TWO, 0},
    {"outputs step two", 1, FULL, NULL_STRIDES, FULL, NULL_STRIDES, STEP_TWO, 0},
    {"permuted", 4, FULL, PERMUTED, FULL, PERMUTED, PERMUTED, 0},
    {"permuted against dense", 4, FULL, NULL_STRIDES, FULL, PERMUTED, TRANSPOSED, 0},
    /* Gradients over their operands. */
    {"in place, prediction", 1, FULL, NULL_STRIDES, FULL, NULL_STRIDES, NULL_STRIDES, OVER_PREDICTION},
    {"in place, target", 1, FULL, NULL_STRIDES, FULL, UNALIGNED, NULL_STRIDES, OVER_TARGET},
    {"in place, both", 1, FULL, NULL_STRIDES, FULL, NULL_STRIDES, NULL_STRIDES, OVER_PREDICTION | OVER_TARGET},
    {"in place, target per row", 2, FULL, NULL_STRIDES, PER_ROW, NULL_STRIDES, NULL_STRIDES, OVER_PREDICTION},
    {"in place, padded rows", 2, FULL, PADDED, FULL, PADDED, PADDED, OVER_PREDICTION | OVER_TARGET},
    {"in place, permuted", 4, FULL, PERMUTED, FULL, REVERSED, PERMUTED, OVER_PREDICTION | OVER_TARGET},
};

/* The weights of cases.h, against the common shape. */
static const struct weight_row {
    const char *name;
    int shape, memory;
} weight_rows[WEIGHT_COUNT] = {
    [WEIGHT_ABSENT] = {"absent", FULL, NULL_STRIDES},
    [WEIGHT_DENSE] = {"dense", FULL, NULL_STRIDES},
    [WEIGHT_UNALIGNED] = {"unaligned", FULL, UNALIGNED},
    [WEIGHT_PER_ROW] = {"per row", PER_ROW, NULL_STRIDES},
    [WEIGHT_SHARED_ROW] = {"shared row", SHARED_ROW, NULL_STRIDES},
    [WEIGHT_SCALAR] = {"scalar", SCALAR, NULL_STRIDES},
    [WEIGHT_PADDED] = {"padded", FULL, PADDED},
    [WEIGHT_TRANSPOSED] = {"transposed", FULL, TRANSPOSED},
    [WEIGHT_REVERSED] = {"reversed", FULL, REVERSED},
    [WEIGHT_STEP_TWO] = {"step two", FULL, STEP_TWO},
    [WEIGHT_ZERO_STRIDES] = {"zero strides", FULL, ZERO_STRIDES},
};

int case_layout_count(void) {
    return (int)(sizeof layouts / sizeof layouts[0]);
}

const char *case_layout_name(int layout) {
    return layouts[layout].name;
}

int case_layout_named(const char *name) {
    for (int layout = 0; layout < case_layout_count(); layout++) {
        if (strcmp(case_layout_name(layout), name) == 0) {
            return layout;
        }
    }
    printf("expected a layout \"%s\" in the list of cases, got none\n", name);
    exit(1);
}

/* --------------------------------------------------------------- memory -- */

static int32_t full_shape(const test_case *c, int64_t *shape) {
    switch (layouts[c->layout].rank) {
    case 1:
        shape[0] = c->rows * c->columns;
        return 1;
    case 2:
        shape[0] = c->rows;
        shape[1] = c->columns;
        return 2;
    default:
        shape[0] = c->rows;
        shape[1] = 2;
        shape[2] = 3;
        shape[3] = c->columns;
        return 4;
    }
}

static int32_t own_shape(int kind, int32_t rank, const int64_t *full, int64_t *shape) {
    switch (kind) {
    case SCALAR:
        return 0;
    case SHARED_ROW:
        shape[0] = full[rank - 1];
        return 1;
    case LEADING_ONES:
        shape[0] = shape[1] = 1;
        memcpy(shape + 2, full, (size_t)rank * sizeof *shape);
        return rank + 2;
    default:
        for (int d = 0; d < rank; d++) {
            const int one = (kind == PER_ROW && d == rank - 1) || (kind == FIRST_ROW && d == 0) ||
                            (kind == EVEN_ONES && d % 2 == 0) || (kind == ODD_ONES && d % 2 == 1);
            shape[d] = one ? 1 : full[d];
        }
        return rank;
    }
}

/* The dimension that is `place`-th from the innermost in memory. */
static int dimension_at(int memory, int32_t ndim, int place) {
    static const int permuted[4] = {1, 3, 0, 2};
    if (memory == TRANSPOSED) {
        return place;
    }
    return memory == PERMUTED && ndim == 4 ? permuted[place] : ndim - 1 - place;
}

/* Writes the strides; returns the offset of element 0 from the lowest address. */
static int64_t lay_out(int memory, int32_t ndim, const int64_t *shape, int64_t *strides) {
    int64_t origin = 0;
    int64_t stride = memory == STEP_TWO ? 2 : 1;
    for (int place = 0; place < ndim; place++) {
        const int d = dimension_at(memory, ndim, place);
        strides[d] = memory == ZERO_STRIDES ? 0 : stride;
        stride *= shape[d] > 1 ? shape[d] : 1;
        if (memory == PADDED && place == 0) {
            stride += 3;
        }
        if (memory == ODD_STRIDES && shape[d] == 1) {
            strides[d] = 977;
        }
        if (memory == REVERSED || (memory == FLIPPED && d == 0)) {
            origin += shape[d] > 1 ? (shape[d] - 1) * strides[d] : 0;
            strides[d] = -strides[d];
        }
    }
    return origin;
}

static int64_t element_count(int32_t ndim, const int64_t *shape) {
    int64_t count = 1;
    for (int d = 0; d < ndim; d++) {
        count *= shape[d];
    }
    return count;
}

/* Elements from the lowest address to the highest. */
static int64_t extent(int32_t ndim, const int64_t *shape, const int64_t *strides) {
    int64_t reach = 1;
    for (int d = 0; d < ndim; d++) {
        reach += (shape[d] - 1) * (strides[d] < 0 ? -strides[d] : strides[d]);
    }
    return element_count(ndim, shape) ? reach : 0;
}

/* Poison on both sides of every tensor; a vector of any instruction set is no longer. */
enum {
    MARGIN = 64,
    POISON = 0xa5
};

/* Gives the tensor a place in the block; its address is filled in when the block exists. */
static void place(prepared_case *prepared, int which, int32_t dtype, int32_t ndim, const int64_t *shape, int memory) {
    onepass_tensor *tensor = &prepared->tensor[which];
    int64_t *own = prepared->shape[which];
    int64_t *strides = prepared->strides[which];
    memmove(own, shape, (size_t)ndim * sizeof *shape);
    const int64_t origin = lay_out(memory, ndim, own, strides);
    const size_t size = oracle_size(dtype);
    size_t begin = (prepared->block_size + MARGIN + 63) / 64 * 64;
    if (memory == UNALIGNED) {
        begin += size;
    }
    tensor->dtype = dtype;
    tensor->ndim = ndim;
    tensor->shape = ndim ? own : NULL;
    tensor->strides = !ndim || memory == NULL_STRIDES || memory == UNALIGNED ? NULL : strides;
    prepared->begin[which] = begin;
    prepared->bytes[which] = (size_t)extent(ndim, own, strides) * size;
    prepared->block_size = begin + prepared->bytes[which] + MARGIN;
    /* The distance for now; the block's address is added later. */
    tensor->data = (void *)(uintptr_t)(begin + (size_t)origin * size);
}

static void place_upstream(prepared_case *prepared, const test_case *c, int32_t ndim, const int64_t *shape) {
    static const int64_t ones[3] = {1, 1, 1};
    if (c->reduction == ONEPASS_NONE) {
        place(prepared, TENSOR_UPSTREAM, c->upstream_dtype, ndim, shape,
              c->upstream == UPSTREAM_TENSOR ? layouts[c->layout].output_memory : ZERO_STRIDES);
    } else {
        place(prepared, TENSOR_UPSTREAM, c->upstream_dtype, c->upstream == UPSTREAM_TENSOR ? 3 : 0, ones, NULL_STRIDES);
    }
    prepared->call.upstream = &prepared->tensor[TENSOR_UPSTREAM];
}

static void place_outputs(prepared_case *prepared, const test_case *c, int32_t ndim, const int64_t *shape) {
    static const int64_t ones[2] = {1, 1};
    const layout_row *layout = &layouts[c->layout];
    onepass_call *call = &prepared->call;
    if (c->wanted & WANT_VALUE) {
        if (c->reduction == ONEPASS_NONE) {
            place(prepared, TENSOR_VALUE, c->value, ndim, shape, layout->output_memory);
        } else {
            place(prepared, TENSOR_VALUE, c->value, layout->rank == 1 ? 0 : 2, ones, NULL_STRIDES);
        }
        call->value = &prepared->tensor[TENSOR_VALUE];
    }
    for (int which = 0; which < 2; which++) {
        const int mine = TENSOR_GRADIENT_PREDICTION + which;
        if (!(c->wanted & (WANT_PREDICTION << which))) {
            continue;
        }
        if (layout->in_place & (OVER_PREDICTION << which)) {
            call->gradient[which] = &prepared->tensor[which];
        } else {
            place(prepared, mine, c->gradient, ndim, shape, layout->output_memory);
            call->gradient[which] = &prepared->tensor[mine];
        }
    }
}

/* Fills an input's elements and leaves the gaps between them poisoned. */
static void fill(prepared_case *prepared, int which, const test_case *c, uint64_t *state) {
    const onepass_tensor *tensor = &prepared->tensor[which];
    const double parameter = c->parameter_count ? c->parameter : 1;
    const int64_t count = element_count(tensor->ndim, tensor->shape);
    for (int64_t i = 0; i < count; i++) {
        char *address = (char *)tensor->data +
                        oracle_offset(tensor, tensor->ndim, tensor->shape, i) * (int64_t)oracle_size(tensor->dtype);
        oracle_store_bits(tensor->dtype, address, random_element(state, c->data, tensor->dtype, parameter));
    }
}

static void fill_upstream(prepared_case *prepared, const test_case *c, uint64_t *state) {
    if (c->upstream == UPSTREAM_TENSOR) {
        fill(prepared, TENSOR_UPSTREAM, c, state);
        return;
    }
    const onepass_tensor *tensor = &prepared->tensor[TENSOR_UPSTREAM];
    if (prepared->bytes[TENSOR_UPSTREAM]) {
        oracle_store(tensor->dtype, tensor->data, c->upstream == UPSTREAM_ONE ? 1.0 : -0.3700000001);
    }
}

static uint64_t random_weight(uint64_t *state, int32_t weights, int32_t dtype) {
    switch (weights) {
    case WEIGHTS_SIGNED:
        return random_element(state, DATA_UNIFORM, dtype, 0);
    case WEIGHTS_SPARSE:
        return oracle_encode(dtype, random_below(state, 5) ? 0.0 : 1.0);
    case WEIGHTS_ZERO:
        return oracle_encode(dtype, random_below(state, 2) ? 0.0 : -0.0);
    case WEIGHTS_ONE:
        return oracle_encode(dtype, 1.0);
    case WEIGHTS_WIDE:
        return random_element(state, DATA_WIDE, dtype, 0);
    case WEIGHTS_SPECIAL:
        return random_element(state, DATA_SPECIAL, dtype, 0);
    default:
        return oracle_encode(dtype, 1.0 + 0.5 * random_uniform(state));
    }
}

static void fill_weight(prepared_case *prepared, const test_case *c, uint64_t *state) {
    const onepass_tensor *tensor = &prepared->tensor[TENSOR_WEIGHT];
    const int64_t count = element_count(tensor->ndim, tensor->shape);
    for (int64_t i = 0; i < count; i++) {
        char *address = (char *)tensor->data +
                        oracle_offset(tensor, tensor->ndim, tensor->shape, i) * (int64_t)oracle_size(tensor->dtype);
        oracle_store_bits(tensor->dtype, address, random_weight(state, c->weights, tensor->dtype));
    }
}

static void make_block(prepared_case *prepared) {
    prepared->block_size = (prepared->block_size + 63) / 64 * 64;
    prepared->block = aligned_alloc(64, prepared->block_size);
    if (!prepared->block) {
        abort();
    }
    memset(prepared->block, POISON, prepared->block_size);
    for (int which = 0; which < TENSOR_COUNT; which++) {
        onepass_tensor *tensor = &prepared->tensor[which];
        tensor->data = prepared->block + (uintptr_t)tensor->data;
        /* No elements: the contract allows null, so half of such tensors have it. */
        if (!prepared->bytes[which] && tensor->ndim == 1) {
            tensor->data = NULL;
        }
    }
}

prepared_case *case_prepare(const test_case *c) {
    const layout_row *layout = &layouts[c->layout];
    prepared_case *prepared = calloc(1, sizeof *prepared);
    if (!prepared) {
        abort();
    }
    onepass_call *call = &prepared->call;
    call->size = sizeof *call;
    call->loss = c->loss;
    call->reduction = c->reduction;
    call->parameter_count = c->parameter_count;
    call->parameter[0] = c->parameter;
    call->divisor = c->divisor;
    call->threads = c->threads;

    int64_t full[ONEPASS_MAX_DIMENSIONS];
    int64_t shape[ONEPASS_MAX_DIMENSIONS];
    const int32_t rank = full_shape(c, full);
    int32_t ndim = own_shape(layout->prediction_shape, rank, full, shape);
    place(prepared, TENSOR_PREDICTION, c->prediction, ndim, shape, layout->prediction_memory);
    ndim = own_shape(layout->target_shape, rank, full, shape);
    place(prepared, TENSOR_TARGET, c->target, ndim, shape, layout->target_memory);
    call->operand[ONEPASS_PREDICTION] = &prepared->tensor[TENSOR_PREDICTION];
    call->operand[ONEPASS_TARGET] = &prepared->tensor[TENSOR_TARGET];
    oracle_common_shape(call, &ndim, shape);
    if (c->upstream != UPSTREAM_ABSENT) {
        place_upstream(prepared, c, ndim, shape);
    }
    place_outputs(prepared, c, ndim, shape);
    if (c->weight != WEIGHT_ABSENT) {
        int64_t own[ONEPASS_MAX_DIMENSIONS];
        const struct weight_row *row = &weight_rows[c->weight];
        ndim = own_shape(row->shape, ndim, shape, own);
        place(prepared, TENSOR_WEIGHT, c->weight_dtype, ndim, own, row->memory);
        call->weight = &prepared->tensor[TENSOR_WEIGHT];
    }

    make_block(prepared);
    uint64_t state = c->seed;
    fill(prepared, TENSOR_PREDICTION, c, &state);
    fill(prepared, TENSOR_TARGET, c, &state);
    if (c->upstream != UPSTREAM_ABSENT) {
        fill_upstream(prepared, c, &state);
    }
    if (c->weight != WEIGHT_ABSENT) {
        fill_weight(prepared, c, &state);
    }
    return prepared;
}

int case_in_double(const test_case *c) {
    return c->prediction == ONEPASS_F64 || c->target == ONEPASS_F64 ||
           (c->weight != WEIGHT_ABSENT && c->weight_dtype == ONEPASS_F64);
}

void case_free(prepared_case *prepared) {
    if (prepared) {
        free(prepared->block);
        free(prepared);
    }
}

const char *case_owner(const prepared_case *prepared, size_t byte) {
    static const char *const names[] = {"prediction", "target",     "upstream", "value",
                                        "gradient p", "gradient t", "weight"};
    for (int which = 0; which < TENSOR_COUNT; which++) {
        const size_t begin = prepared->begin[which];
        if (byte >= begin && byte < begin + prepared->bytes[which]) {
            return names[which];
        }
    }
    return "the poison around the tensors";
}

int case_equal(const prepared_case *expected, const prepared_case *got, char *text, size_t size) {
    size_t byte = 0;
    if (memcmp(expected->block, got->block, got->block_size) == 0) {
        return 1;
    }
    while (expected->block[byte] == got->block[byte]) {
        byte++;
    }
    const size_t word = byte / 8 * 8;
    snprintf(text, size, "first difference in %s, byte %zu: expected %016llx, got %016llx", case_owner(got, byte), byte,
             (unsigned long long)oracle_load_bits(ONEPASS_F64, expected->block + word),
             (unsigned long long)oracle_load_bits(ONEPASS_F64, got->block + word));
    return 0;
}

/* --------------------------------------------------------------- sweeps -- */

typedef struct list {
    test_case *cases;
    size_t count;
    size_t room;
} list;

static void add(list *all, test_case c) {
    if (all->count == all->room) {
        all->room = all->room ? 2 * all->room : 1024;
        all->cases = realloc(all->cases, all->room * sizeof *all->cases);
        if (!all->cases) {
            abort();
        }
    }
    /* Seeds count within a loss's group, so a new loss or group leaves the data of the others alone. */
    c.seed = 1;
    for (const char *letter = c.group; *letter; letter++) {
        c.seed = c.seed * 31 + (unsigned char)*letter;
    }
    for (size_t i = all->count; i-- > 0;) {
        const test_case *before = &all->cases[i];
        if (before->group == c.group && before->loss == c.loss) {
            c.seed = before->seed + 1;
            break;
        }
    }
    all->cases[all->count++] = c;
}

/* The plain case that every sweep starts from. 7 rows of 191: a full tile and a
 * part, rows that end inside a lane row and no length that is a power of two. */
static test_case plain(const char *group, const char *loss) {
    const test_case c = {.group = group,
                         .loss = loss,
                         .prediction = ONEPASS_F32,
                         .target = ONEPASS_F32,
                         .gradient = ONEPASS_F32,
                         .value = ONEPASS_F32,
                         .upstream_dtype = ONEPASS_F32,
                         .reduction = ONEPASS_MEAN,
                         .wanted = WANT_ALL,
                         .rows = 7,
                         .columns = 191,
                         .data = DATA_NORMAL};
    return c;
}

static void of_dtype(test_case *c, int32_t dtype) {
    c->prediction = c->target = c->gradient = c->value = c->upstream_dtype = dtype;
}

static void sweep_sizes(list *all, const char *loss) {
    test_case c = plain("sizes", loss);
    c.rows = 1;
    for (int32_t dtype = ONEPASS_F16; dtype <= ONEPASS_F64; dtype++) {
        of_dtype(&c, dtype);
        c.value = ONEPASS_F64; /* in which no bit of the sum is rounded away */
        c.layout = dtype % 2 ? LAYOUT_DENSE : LAYOUT_UNALIGNED;
        /* Empty, one, every remainder of any vector length, and both sides of one and two lane rows. */
        for (c.columns = 0; c.columns <= 264; c.columns++) {
            add(all, c);
        }
        /* Both sides of every further lane row of a tile, and of the tile. */
        for (int64_t row = 3; row <= 9; row++) {
            for (c.columns = row * 128 - 1; c.columns <= row * 128 + 1; c.columns++) {
                add(all, c);
            }
        }
        /* Runs of 2, 3, 5, 8, 16, 31, 33 and 64 tiles: whole and broken aligned trees, with a part
         * of one element, of a lane row and a bit, and all but one element. */
        static const int64_t tiles[] = {2, 3, 5, 8, 16, 31, 33, 64};
        static const int64_t around[] = {-129, -128, -127, -1, 0, 1, 127, 128, 129};
        for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++) {
            for (size_t j = 0; j < sizeof around / sizeof around[0]; j++) {
                c.columns = tiles[i] * ONEPASS_TILE + around[j];
                /* The long ones in both compute types: what is particular to 16 bits shows in the short ones. */
                if (tiles[i] <= 3 || dtype >= ONEPASS_F32) {
                    add(all, c);
                }
            }
        }
    }
}

/* Every pair of operand types with every gradient type; the value's type and the reduction go around. */
static void sweep_types(list *all, const char *loss) {
    test_case c = plain("types", loss);
    int turn = 0;
    for (c.prediction = ONEPASS_F16; c.prediction <= ONEPASS_F64; c.prediction++) {
        for (c.target = ONEPASS_F16; c.target <= ONEPASS_F64; c.target++) {
            for (c.gradient = ONEPASS_F16; c.gradient <= ONEPASS_F64; c.gradient++) {
                for (c.reduction = ONEPASS_MEAN; c.reduction <= ONEPASS_NONE; c.reduction++) {
                    c.value = ONEPASS_F16 + (c.gradient + turn / 3) % 4;
                    c.upstream = turn % 2 ? UPSTREAM_OTHER : UPSTREAM_ABSENT;
                    c.upstream_dtype = ONEPASS_F16 + turn % 4;
                    turn++;
                    add(all, c);
                }
            }
        }
    }
}

/* Every reduction with every set of outputs and every kind of upstream gradient. */
static void sweep_outputs(list *all, const char *loss) {
    static const int32_t dtypes[] = {ONEPASS_F32, ONEPASS_F64, ONEPASS_F16};
    test_case c = plain("outputs", loss);
    for (int i = 0; i < 3; i++) {
        of_dtype(&c, dtypes[i]);
        for (c.reduction = ONEPASS_MEAN; c.reduction <= ONEPASS_NONE; c.reduction++) {
            for (c.wanted = 1; c.wanted <= WANT_ALL; c.wanted++) {
                for (c.upstream = UPSTREAM_ABSENT; c.upstream <= UPSTREAM_TENSOR; c.upstream++) {
                    c.upstream_dtype = c.wanted == WANT_ALL ? ONEPASS_F64 : dtypes[i];
                    add(all, c);
                }
            }
        }
    }
}

static void sweep_layouts(list *all, const char *loss) {
    static const int64_t shapes[][2] = {
        {7, 191},   /* a tile begins and ends inside rows */
        {67, 33},   /* rows shorter than a lane row: a tile holds many */
        {3, 1024},  /* rows that are tiles */
        {2, 1500},  /* rows longer than a tile: a tile lies within a row or crosses one */
        {3, 5000},  /* rows of several tiles: what is constant along a row is so for whole tiles, then changes */
        {4, 2048},  /* the same, but the change comes between two whole tiles */
        {2, 20000}, /* rows of some twenty tiles, more than an engine takes at a time */
        {300, 1},   /* a column: the last dimension has nothing to run along */
        {1, 300},   /* a row: the first one has not */
        {0, 5},     /* no rows, */
        {5, 0},     /* and rows of no length */
    };
    static const int32_t pairs[][2] = {{ONEPASS_F32, ONEPASS_F32},
                                       {ONEPASS_F16, ONEPASS_F32},
                                       {ONEPASS_F64, ONEPASS_F64},
                                       {ONEPASS_BF16, ONEPASS_BF16}};
    test_case c = plain("layouts", loss);
    for (c.layout = 0; c.layout < case_layout_count(); c.layout++) {
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            c.rows = shapes[i][0];
            c.columns = shapes[i][1];
            if (c.columns > 10000 && layouts[c.layout].rank == 4) {
                continue; /* six times as long, to show nothing more */
            }
            c.data = c.columns > 10000 ? DATA_UNIFORM : DATA_NORMAL; /* the quicker to make */
            c.prediction = c.gradient = c.value = pairs[i % 4][0];
            c.target = pairs[i % 4][1];
            c.reduction = (int32_t)(i + (size_t)c.layout) % 3;
            c.upstream = UPSTREAM_TENSOR;
            c.threads = c.rows == 2 ? 3 : 0;
            add(all, c);
        }
        c.threads = 0;
        /* At the plain shape, every pair of types, with the sum and with a value an element. */
        c.rows = 7;
        c.columns = 191;
        c.upstream = UPSTREAM_ABSENT;
        for (int i = 0; i < 4; i++) {
            c.prediction = c.gradient = c.value = pairs[i][0];
            c.target = pairs[i][1];
            c.reduction = ONEPASS_NONE;
            add(all, c);
            c.reduction = ONEPASS_SUM;
            add(all, c);
        }
        /* Each output alone, since a layout may take another path without the others. */
        for (c.wanted = 1; c.wanted <= 4; c.wanted *= 2) {
            c.prediction = c.target = c.gradient = ONEPASS_F32;
            c.reduction = ONEPASS_MEAN;
            add(all, c);
        }
        c.wanted = WANT_ALL;
    }
}

/* Every distribution with every parameter and type. */
static void sweep_data(list *all, const char *loss) {
    /* 0.3 is no float; 1e-40 is denormal in float; 1e-50 is 0 in float, 1e50 infinite. */
    static const double parameters[] = {0, 0.3, 1, 2.5, 1e-40, 1e-50, 1e50};
    const onepass_loss_info *info = onepass_loss_named(loss);
    test_case c = plain("data", loss);
    for (c.data = 0; c.data < DATA_COUNT; c.data++) {
        for (int32_t dtype = ONEPASS_F16; dtype <= ONEPASS_F64; dtype++) {
            of_dtype(&c, dtype);
            for (int i = -1; i < (int)(sizeof parameters / sizeof parameters[0]); i++) {
                c.parameter_count = i >= 0;
                c.parameter = i >= 0 ? parameters[i] : 0;
                if (i >= 0 && (!info || !info->parameter_count || c.parameter < info->parameter[0].least)) {
                    continue;
                }
                c.reduction = ONEPASS_NONE;
                c.upstream = UPSTREAM_TENSOR;
                add(all, c);
                c.reduction = ONEPASS_MEAN;
                c.upstream = UPSTREAM_OTHER;
                add(all, c);
            }
        }
    }
    /* NaN, infinity and kinks in every position of a loop's remainder: compilers take the sign
     * of a NaN to be free, and treat it differently in vector and scalar code. */
    c = plain("data", loss);
    c.rows = 1;
    for (c.data = DATA_SPECIAL; c.data <= DATA_KINK; c.data++) {
        for (int32_t dtype = ONEPASS_F16; dtype <= ONEPASS_F64; dtype++) {
            of_dtype(&c, dtype);
            for (c.columns = 1; c.columns <= 48; c.columns++) {
                c.reduction = (int32_t)c.columns % 3;
                c.upstream = (int32_t)c.columns / 3 % 4;
                add(all, c);
            }
        }
    }
}

/* What else may be said of a call: a divisor (tiny and huge ones too), a number of threads. */
static void sweep_settings(list *all, const char *loss) {
    /* For 0.001 and 2^24 + 1, 1 over the divisor's float is not the float of 1 over the divisor. */
    static const double divisors[] = {1, 3, 0.001, 16777217, 1e-30, 1e30, 1e300};
    test_case c = plain("settings", loss);
    for (size_t i = 0; i < sizeof divisors / sizeof divisors[0]; i++) {
        c.divisor = divisors[i];
        for (int32_t dtype = ONEPASS_F16; dtype <= ONEPASS_F64; dtype++) {
            of_dtype(&c, dtype);
            c.reduction = ONEPASS_MEAN;
            add(all, c);
        }
    }
    c = plain("settings", loss);
    /* 98 tiles and a part: enough that threads have something to share. */
    c.rows = 1;
    c.columns = 98 * ONEPASS_TILE + 77;
    for (c.threads = 1; c.threads <= 5; c.threads++) {
        c.reduction = c.threads % 3;
        add(all, c);
    }
}

/* Every layout of a weight with the reductions and the outputs that may take another path; types go around. */
static void sweep_weight_layouts(list *all, const char *loss) {
    static const int64_t shapes[][2] = {{7, 191}, {3, 1024}, {2, 1500}, {4, 2048}, {0, 5}};
    static const int32_t wanted[] = {WANT_VALUE, WANT_PREDICTION, WANT_VALUE | WANT_PREDICTION, WANT_ALL};
    test_case c = plain("weight layouts", loss);
    int turn = 0;
    c.layout = case_layout_named("dense, strides given");
    for (c.weight = WEIGHT_DENSE; c.weight < WEIGHT_COUNT; c.weight++) {
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            c.rows = shapes[i][0];
            c.columns = shapes[i][1];
            for (c.reduction = ONEPASS_MEAN; c.reduction <= ONEPASS_NONE; c.reduction++, turn++) {
                of_dtype(&c, turn % 4 == 3 ? ONEPASS_F64 : ONEPASS_F32);
                c.weight_dtype = ONEPASS_F16 + turn / 2 % 4;
                c.wanted = wanted[turn % 4];
                c.upstream = turn / 3 % 4;
                add(all, c);
            }
        }
    }
    /* Every layout of the operands, in-place gradients among them, with a weight that lies otherwise. */
    for (c.layout = 0; c.layout < case_layout_count(); c.layout++) {
        for (int i = 0; i < 3; i++, turn++) {
            c.rows = shapes[i][0];
            c.columns = shapes[i][1];
            of_dtype(&c, i == 1 ? ONEPASS_F16 : i == 2 ? ONEPASS_F64 : ONEPASS_F32);
            c.weight = WEIGHT_DENSE + turn % (WEIGHT_COUNT - WEIGHT_DENSE);
            c.weight_dtype = i == 1 ? ONEPASS_BF16 : ONEPASS_F32;
            c.reduction = turn % 4 == 3 ? ONEPASS_MEAN : turn % 4;
            c.wanted = WANT_ALL;
            c.upstream = turn / 2 % 4;
            add(all, c);
        }
    }
}

/* Every type of a weight with every type of the operands, and what it is made of with what they are made of. */
static void sweep_weights(list *all, const char *loss) {
    test_case c = plain("weights", loss);
    int turn = 0;
    for (c.weight_dtype = ONEPASS_F16; c.weight_dtype <= ONEPASS_F64; c.weight_dtype++) {
        for (c.prediction = ONEPASS_F16; c.prediction <= ONEPASS_F64; c.prediction++) {
            for (c.reduction = ONEPASS_MEAN; c.reduction <= ONEPASS_NONE; c.reduction++, turn++) {
                c.weight = WEIGHT_DENSE + turn % 3;
                c.target = turn % 2 ? ONEPASS_F32 : c.prediction;
                c.gradient = ONEPASS_F16 + turn % 4;
                c.value = ONEPASS_F16 + turn / 2 % 4;
                c.upstream = turn / 3 % 4;
                c.upstream_dtype = ONEPASS_F16 + turn / 4 % 4;
                add(all, c);
            }
        }
    }
    static const int32_t data[] = {DATA_NORMAL, DATA_WIDE, DATA_SPECIAL, DATA_KINK, DATA_HUGE, DATA_TINY};
    for (c.weights = 0; c.weights < WEIGHTS_COUNT; c.weights++) {
        for (size_t i = 0; i < sizeof data / sizeof data[0]; i++) {
            for (c.reduction = ONEPASS_MEAN; c.reduction <= ONEPASS_NONE; c.reduction++, turn++) {
                c.data = data[i];
                of_dtype(&c, turn % 3 ? ONEPASS_F32 : ONEPASS_F64);
                c.value = ONEPASS_F64;
                c.weight = WEIGHT_DENSE;
                c.weight_dtype = turn % 5 ? c.prediction : ONEPASS_F16;
                c.upstream = turn / 3 % 4;
                add(all, c);
            }
        }
    }
    /* A divisor of the call's own, which comes before the sum of the weights; 0.001 has no exact reciprocal. */
    c = plain("weights", loss);
    c.weight = WEIGHT_DENSE;
    for (c.weight_dtype = ONEPASS_F32; c.weight_dtype <= ONEPASS_F64; c.weight_dtype++) {
        for (c.wanted = 1; c.wanted <= WANT_ALL; c.wanted++) {
            c.divisor = c.wanted % 2 ? 0.001 : 1024;
            add(all, c);
        }
    }
}

/* The sum of the weights has the order of any sum. */
static void sweep_weight_sizes(list *all, const char *loss) {
    static const int64_t sizes[] = {0,
                                    1,
                                    2,
                                    3,
                                    4,
                                    5,
                                    7,
                                    8,
                                    15,
                                    16,
                                    17,
                                    31,
                                    32,
                                    33,
                                    63,
                                    127,
                                    128,
                                    129,
                                    1023,
                                    1024,
                                    1025,
                                    2047,
                                    2048,
                                    2049,
                                    3077,
                                    4096,
                                    5121,
                                    8192,
                                    9 * 1024 + 1,
                                    31 * 1024 + 1,
                                    33 * 1024 - 1,
                                    64 * 1024,
                                    98 * 1024 + 77};
    test_case c = plain("weight sizes", loss);
    c.rows = 1;
    c.value = ONEPASS_F64;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        c.columns = sizes[i];
        for (int turn = 0; turn < 3; turn++) {
            of_dtype(&c, turn == 2 ? ONEPASS_F64 : ONEPASS_F32);
            c.value = ONEPASS_F64;
            c.weight = turn == 1 ? WEIGHT_UNALIGNED : WEIGHT_DENSE;
            c.weight_dtype = turn == 1 ? ONEPASS_F16 : c.prediction;
            c.weights = turn == 0 ? WEIGHTS_WIDE : WEIGHTS_POSITIVE;
            c.wanted = i % 2 ? WANT_VALUE : WANT_VALUE | WANT_PREDICTION;
            c.reduction = i % 5 == 4 ? ONEPASS_SUM : ONEPASS_MEAN;
            c.threads = (int32_t)i % 4;
            add(all, c);
        }
    }
}

const test_case *case_list(size_t *count) {
    static list all;
    if (!all.count) {
        for (int i = 0; oracle_loss_at(i); i++) {
            const char *loss = oracle_loss_at(i)->name;
            sweep_sizes(&all, loss);
            sweep_types(&all, loss);
            sweep_outputs(&all, loss);
            sweep_layouts(&all, loss);
            sweep_data(&all, loss);
            sweep_settings(&all, loss);
            sweep_weight_layouts(&all, loss);
            sweep_weights(&all, loss);
            sweep_weight_sizes(&all, loss);
        }
    }
    *count = all.count;
    return all.cases;
}

void case_describe(const test_case *c, char *text, size_t size) {
    static const char *const reductions[] = {"mean", "sum", "none"};
    static const char *const upstreams[] = {"absent", "1", "a number", "a tensor"};
    static const char *const data[] = {"uniform", "normal", "huge", "tiny", "wide", "special", "kink"};
    static const char *const weights[] = {"positive", "signed", "sparse", "zero", "one", "wide", "special"};
    char weight[64] = "";
    if (c->weight != WEIGHT_ABSENT) {
        snprintf(weight, sizeof weight, "%s weight %s in %s, ", weights[c->weights], weight_rows[c->weight].name,
                 oracle_dtype_name(c->weight_dtype));
    }
    snprintf(text, size,
             "%s %s(%.3g%s) %s, p %s, t %s, gradient %s, value %s, wanted%s%s%s, upstream %s in %s, %s, %lld x %lld, "
             "%s data, %sdivisor %g, threads %d, seed %llu",
             c->group, c->loss, c->parameter, c->parameter_count ? "" : " = default", reductions[c->reduction],
             oracle_dtype_name(c->prediction), oracle_dtype_name(c->target), oracle_dtype_name(c->gradient),
             oracle_dtype_name(c->value), c->wanted & WANT_VALUE ? " value" : "",
             c->wanted & WANT_PREDICTION ? " gradient p" : "", c->wanted & WANT_TARGET ? " gradient t" : "",
             upstreams[c->upstream], oracle_dtype_name(c->upstream_dtype), case_layout_name(c->layout),
             (long long)c->rows, (long long)c->columns, data[c->data], weight, c->divisor, (int)c->threads,
             (unsigned long long)c->seed);
}
