/*
 * The memory of a case: how its tensors lie, and the call that names them.
 */
#include "cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    OVER_TARGET = 2,
    OVER_THIRD = 4 /* if there is one, and it lies as the target does */
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
    {"in place, both", 1, FULL, NULL_STRIDES, FULL, NULL_STRIDES, NULL_STRIDES,
     OVER_PREDICTION | OVER_TARGET | OVER_THIRD},
    {"in place, target per row", 2, FULL, NULL_STRIDES, PER_ROW, NULL_STRIDES, NULL_STRIDES, OVER_PREDICTION},
    {"in place, padded rows", 2, FULL, PADDED, FULL, PADDED, PADDED, OVER_PREDICTION | OVER_TARGET},
    {"in place, permuted", 4, FULL, PERMUTED, FULL, REVERSED, PERMUTED, OVER_PREDICTION | OVER_TARGET},
};

/* The weights of cases.h, against the common shape. Masks and third operands lie in the same ways. */
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

int case_layout_rank(int layout) {
    return layouts[layout].rank;
}

const char *case_layout_name(int layout) {
    return layouts[layout].name;
}

const char *case_weight_name(int weight) {
    return weight_rows[weight].name;
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
    const int32_t wanted = case_wanted(c);
    onepass_call *call = &prepared->call;
    if (wanted & WANT_VALUE) {
        if (c->reduction == ONEPASS_NONE) {
            place(prepared, TENSOR_VALUE, c->value, ndim, shape, layout->output_memory);
        } else {
            place(prepared, TENSOR_VALUE, c->value, layout->rank == 1 ? 0 : 2, ones, NULL_STRIDES);
        }
        call->value = &prepared->tensor[TENSOR_VALUE];
    }
    for (int which = 0; which < ORACLE_OPERANDS; which++) {
        const int mine = TENSOR_GRADIENT_PREDICTION + which;
        if (!(wanted & (WANT_PREDICTION << which))) {
            continue;
        }
        const int lies_elsewhere = which == ONEPASS_THIRD && c->third;
        if ((layout->in_place & (OVER_PREDICTION << which)) && !lies_elsewhere) {
            call->gradient[which] = &prepared->tensor[which];
        } else {
            place(prepared, mine, c->gradient, ndim, shape, layout->output_memory);
            call->gradient[which] = &prepared->tensor[mine];
        }
    }
}

static char *address_of(const onepass_tensor *tensor, int64_t index) {
    return (char *)tensor->data +
           oracle_offset(tensor, tensor->ndim, tensor->shape, index) * (int64_t)oracle_size(tensor->dtype);
}

/* The parameter at which data can have a kink: the last. */
static double kink_of(const test_case *c) {
    const oracle_loss *loss = oracle_loss_named(c->loss);
    double parameter[ONEPASS_MAX_PARAMETERS];
    oracle_parameters(loss, c->parameter_count, c->parameter, parameter);
    return loss->parameter_count ? parameter[loss->parameter_count - 1] : 1;
}

/* Fills an input's elements and leaves the gaps between them poisoned. */
static void fill(prepared_case *prepared, int which, const test_case *c, uint64_t *state) {
    const onepass_tensor *tensor = &prepared->tensor[which];
    const oracle_domain domain = which <= TENSOR_THIRD ? oracle_loss_named(c->loss)->domain[which] : ORACLE_ANY;
    const double kink = kink_of(c);
    const int64_t count = element_count(tensor->ndim, tensor->shape);
    for (int64_t i = 0; i < count; i++) {
        uint64_t bits;
        if (which == TENSOR_WEIGHT) {
            bits = random_weight(state, c->weights, tensor->dtype);
        } else if (which == TENSOR_MASK) {
            bits = random_mask(state, c->masks);
        } else {
            bits = random_operand(state, c->data, domain, tensor->dtype, kink);
        }
        oracle_store_bits(tensor->dtype, address_of(tensor, i), bits);
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

/* What is hidden must have no part in anything, so it is the worst that it can be. */
static void spoil_hidden(prepared_case *prepared) {
    const onepass_tensor *prediction = &prepared->tensor[TENSOR_PREDICTION], *mask = &prepared->tensor[TENSOR_MASK];
    int32_t ndim;
    int64_t shape[ONEPASS_MAX_DIMENSIONS];
    const int64_t count = oracle_common_shape(&prepared->call, &ndim, shape);
    if (prepared->bytes[TENSOR_PREDICTION] / oracle_size(prediction->dtype) < (size_t)count) {
        return; /* several elements share one */
    }
    for (int64_t i = 0; i < count; i++) {
        const char *at = (const char *)mask->data + oracle_offset(mask, ndim, shape, i);
        if (oracle_load(ONEPASS_BOOL, at) == 0) {
            const int64_t offset = oracle_offset(prediction, ndim, shape, i) * (int64_t)oracle_size(prediction->dtype);
            oracle_store(prediction->dtype, (char *)prediction->data + offset, i % 2 ? NAN : -INFINITY);
        }
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

/* The operands; their common shape is the call's. */
static void place_operands(prepared_case *prepared, const test_case *c) {
    const layout_row *layout = &layouts[c->layout];
    int64_t full[ONEPASS_MAX_DIMENSIONS];
    int64_t shape[ONEPASS_MAX_DIMENSIONS];
    const int32_t rank = full_shape(c, full);
    int32_t ndim = own_shape(layout->prediction_shape, rank, full, shape);
    place(prepared, TENSOR_PREDICTION, c->prediction, ndim, shape, layout->prediction_memory);
    ndim = own_shape(layout->target_shape, rank, full, shape);
    place(prepared, TENSOR_TARGET, c->target, ndim, shape, layout->target_memory);
    const int count = oracle_loss_named(c->loss)->operand_count;
    if (count > ONEPASS_THIRD) {
        const struct weight_row *row = &weight_rows[c->third];
        ndim = own_shape(c->third ? row->shape : layout->target_shape, rank, full, shape);
        place(prepared, TENSOR_THIRD, c->third_dtype ? c->third_dtype : c->target, ndim, shape,
              c->third ? row->memory : layout->target_memory);
    }
    for (int which = 0; which < count; which++) {
        prepared->call.operand[which] = &prepared->tensor[which];
    }
}

/* A weight or a mask. */
static const onepass_tensor *place_beside(prepared_case *prepared, int which, int lies, int32_t dtype, int32_t ndim,
                                          const int64_t *shape) {
    int64_t own[ONEPASS_MAX_DIMENSIONS];
    if (lies == WEIGHT_ABSENT) {
        return NULL;
    }
    ndim = own_shape(weight_rows[lies].shape, ndim, shape, own);
    place(prepared, which, dtype, ndim, own, weight_rows[lies].memory);
    return &prepared->tensor[which];
}

prepared_case *case_prepare(const test_case *c) {
    prepared_case *prepared = calloc(1, sizeof *prepared);
    if (!prepared) {
        abort();
    }
    onepass_call *call = &prepared->call;
    call->size = sizeof *call;
    call->loss = c->loss;
    call->reduction = c->reduction;
    call->parameter_count = c->parameter_count;
    memcpy(call->parameter, c->parameter, sizeof call->parameter);
    call->divisor = c->divisor;
    call->threads = c->threads;

    int32_t ndim;
    int64_t shape[ONEPASS_MAX_DIMENSIONS];
    place_operands(prepared, c);
    oracle_common_shape(call, &ndim, shape);
    if (c->upstream != UPSTREAM_ABSENT) {
        place_upstream(prepared, c, ndim, shape);
    }
    place_outputs(prepared, c, ndim, shape);
    call->weight = place_beside(prepared, TENSOR_WEIGHT, c->weight, c->weight_dtype, ndim, shape);
    call->mask = place_beside(prepared, TENSOR_MASK, c->mask, ONEPASS_BOOL, ndim, shape);

    make_block(prepared);
    uint64_t state = c->seed;
    fill(prepared, TENSOR_PREDICTION, c, &state);
    fill(prepared, TENSOR_TARGET, c, &state);
    if (c->upstream != UPSTREAM_ABSENT) {
        fill_upstream(prepared, c, &state);
    }
    if (call->weight) {
        fill(prepared, TENSOR_WEIGHT, c, &state);
    }
    if (call->operand[ONEPASS_THIRD]) {
        fill(prepared, TENSOR_THIRD, c, &state);
    }
    if (call->mask) {
        fill(prepared, TENSOR_MASK, c, &state);
    }
    if (call->mask && c->masks == MASKS_OVER_NAN) {
        spoil_hidden(prepared);
    }
    return prepared;
}

test_case case_dense(const char *group, const char *loss, int32_t dtype, int64_t count) {
    return (test_case){.group = group,
                       .loss = loss,
                       .prediction = dtype,
                       .target = dtype,
                       .gradient = dtype,
                       .value = dtype,
                       .upstream_dtype = dtype,
                       .weight_dtype = dtype,
                       .reduction = ONEPASS_MEAN,
                       .wanted = WANT_VALUE,
                       .layout = LAYOUT_DENSE,
                       .rows = 1,
                       .columns = count,
                       .data = DATA_NORMAL};
}

int case_in_double(const test_case *c) {
    const int has_third = oracle_loss_named(c->loss)->operand_count > ONEPASS_THIRD;
    return c->prediction == ONEPASS_F64 || c->target == ONEPASS_F64 || (has_third && c->third_dtype == ONEPASS_F64) ||
           (c->weight != WEIGHT_ABSENT && c->weight_dtype == ONEPASS_F64);
}

int32_t case_wanted(const test_case *c) {
    const int32_t wanted = c->wanted & ((WANT_PREDICTION << oracle_loss_named(c->loss)->operand_count) - 1);
    return wanted ? wanted : WANT_VALUE;
}

void case_free(prepared_case *prepared) {
    if (prepared) {
        free(prepared->block);
        free(prepared);
    }
}

const char *case_owner(const prepared_case *prepared, size_t byte) {
    static const char *const names[TENSOR_COUNT] = {"prediction", "target",     "third operand", "upstream", "value",
                                                    "gradient p", "gradient t", "gradient v",    "weight",   "mask"};
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
