/* The part of the fuzzer (fuzz_arguments.c) that makes calls of vector losses: operands that are broadcast, axes, and a
 * number for each row. */
#include "fuzz_board.h"

#include <string.h>

enum {
    VECTOR_OPERANDS = 3,
    VECTOR_WEIGHT = VECTOR_OPERANDS,
    VECTOR_MASK,
    VECTOR_UPSTREAM,
    VECTOR_DIVISOR,
    VECTOR_VALUE,
    VECTOR_DIVIDED_BY,
    VECTOR_GRADIENT,
    VECTOR_TENSORS = VECTOR_GRADIENT + VECTOR_OPERANDS
};

typedef struct fuzzed_vectors {
    onepass_call call;
    fuzzed_tensor tensors[VECTOR_TENSORS];
    fuzzed_tensor common; /* has the operands' common shape, if there is one */
    int vectors;          /* operands that are vectors */
    int operands;
    int32_t axis; /* from 0 */
    bool must_fail;
} fuzzed_vectors;

/* Widens the common shape by a tensor's, aligned at the last dimension; shapes that do not fit leave something. */
static void widen(fuzzed_tensor *common, const fuzzed_tensor *t) {
    const int32_t ndim = t->tensor.ndim, room = ONEPASS_MAX_DIMENSIONS;
    if (ndim < 0 || ndim > room || t->tensor.shape == NULL)
        return;
    for (; common->tensor.ndim < ndim; common->tensor.ndim++) {
        memmove(common->shape + 1, common->shape, (size_t)common->tensor.ndim * sizeof common->shape[0]);
        common->shape[0] = 1;
    }
    for (int32_t d = 1; d <= ndim; d++) {
        int64_t *extent = &common->shape[common->tensor.ndim - d];
        *extent = *extent == 1 ? t->shape[ndim - d] : *extent;
    }
}

/* The shape that a tensor of a good call has. */
static void shape_of_vectors(fuzzed_vectors *f, int i) {
    fuzzed_tensor *t = &f->tensors[i];
    const bool none = f->call.reduction == ONEPASS_NONE;
    t->tensor.ndim = 0;
    t->tensor.shape = t->shape;
    memcpy(t->shape, f->common.shape, sizeof t->shape);
    const onepass_loss_info *info = onepass_loss_named(f->call.loss);
    if (i == ONEPASS_CLASS_WEIGHT && f->vectors == 1) {
        t->shape[0] = f->common.tensor.ndim > 0 ? f->common.shape[f->common.tensor.ndim - 1] : 1;
        t->tensor.ndim = 1;
    } else if (i >= VECTOR_GRADIENT || (i == ONEPASS_TARGET && info->over_rows == ONEPASS_CLASSES_A_VECTOR))
        t->tensor.ndim = f->common.tensor.ndim;
    else if (!(i == VECTOR_DIVISOR || i == VECTOR_DIVIDED_BY || ((i == VECTOR_UPSTREAM || i == VECTOR_VALUE) && !none)))
        t->tensor.ndim = f->axis;
}

static int32_t dtype_of_vectors(const fuzzed_vectors *f, int i, uint8_t choice) {
    if (choice >= 250)
        return (int32_t)choice - 247;
    if (i == f->vectors && i < f->operands && choice % 2)
        return ONEPASS_I64 + choice % 3;
    return i == VECTOR_MASK ? ONEPASS_BOOL : ONEPASS_F16 + choice % 4;
}

/* Where the rows end, once the common shape is there. */
static void take_axis(source *source, fuzzed_vectors *f) {
    const uint8_t choice = take_byte(source);
    const int32_t ndim = f->common.tensor.ndim;
    f->axis = ndim > 0 ? ndim - 1 : 0;
    if (choice >= 128 && choice < 240 && ndim > 0) {
        f->axis = choice % ndim;
        f->call.axis = choice % 2 == 0 ? f->axis + 1 : f->axis - ndim;
    } else if (choice >= 240) {
        f->call.axis = (int32_t)take_number(source, 5);
    }
}

/* Each tensor has a place of its own, mostly. */
static void take_vector(source *source, fuzzed_vectors *f, int i) {
    fuzzed_tensor *t = &f->tensors[i];
    const uint8_t choice = take_byte(source);
    t->tensor.dtype = dtype_of_vectors(f, i, choice);
    if (i < f->vectors) {
        take_shape(source, t, i > 0 ? &f->tensors[0] : NULL);
        widen(&f->common, t);
    } else {
        shape_of_vectors(f, i);
        if (choice >= 244)
            take_shape(source, t, &f->tensors[0]);
    }
    if (choice % 8 == 7)
        take_strides(source, t);
    take_place(source, t, i % ARENAS);
    if (choice < 224)
        t->tensor.data = arena_at(i % ARENAS) + i / ARENAS * (ARENA / 4) + ARENA / 8;
    if (i >= VECTOR_GRADIENT && choice % 8 == 6)
        *t = f->tensors[i - VECTOR_GRADIENT]; /* in place */
    t->tensor.strides = t->tensor.strides != NULL ? t->strides : NULL;
    t->tensor.shape = t->tensor.shape != NULL ? t->shape : NULL;
}

static void take_vector_tensors(source *source, fuzzed_vectors *f) {
    onepass_call *call = &f->call;
    const onepass_tensor **const places[VECTOR_TENSORS] = {
        &call->operand[0], &call->operand[1],  &call->operand[2],     &call->weight,
        &call->mask,       &call->upstream,    &call->divisor_tensor, &call->value,
        &call->divided_by, &call->gradient[0], &call->gradient[1],    &call->gradient[2]};
    const int needed = f->vectors == 1 ? ONEPASS_CLASS_WEIGHT : f->operands; /* class weights may be left out */
    const unsigned there = take_byte(source) | (unsigned)take_byte(source) << 8 | ((1u << needed) - 1);
    const bool odd = take_byte(source) >= 240;
    for (int i = 0; i < VECTOR_TENSORS; i++) {
        const bool is_beyond = (i >= f->operands && i < VECTOR_OPERANDS) || i >= VECTOR_GRADIENT + f->vectors;
        if (i == f->vectors)
            take_axis(source, f);
        take_vector(source, f, i);
        *places[i] = (there >> i & 1) && (odd || !is_beyond) ? &f->tensors[i].tensor : NULL;
    }
    if (call->reduction != ONEPASS_MEAN && !odd)
        call->divisor_tensor = call->divided_by = NULL;
    if (odd && take_byte(source) % 2)
        call->log_sum_exp = &f->tensors[VECTOR_WEIGHT].tensor;
}

static void take_vector_call(source *source, fuzzed_vectors *f) {
    int32_t losses = 0;
    while (onepass_vector_loss_at(losses) != NULL)
        losses++;
    memset(f, 0, sizeof *f);
    onepass_call *call = &f->call;
    const uint8_t loss = take_byte(source), how = take_byte(source), odd = take_byte(source);
    const onepass_loss_info *info = onepass_vector_loss_at(loss % losses);
    call->size = sizeof *call;
    call->loss = info->name;
    f->operands = info->operand_count;
    f->vectors = info->over_rows == ONEPASS_CLASS_A_VECTOR ? 1
                 : info->over_rows > ONEPASS_VECTOR        ? f->operands - 1
                                                           : f->operands;
    call->reduction = how % 4;
    call->threads = how / 4 % 4;
    call->flags = how >= 240 ? how % 4 : 0;
    call->divisor = odd == 254 ? take_real(source) : 0;
    call->reserved = odd == 253;
    for (int32_t k = 0; k < info->parameter_count && loss >= 128; k++)
        call->parameter[call->parameter_count++] = odd < 64 ? take_real(source) : info->parameter[k].default_value;
    take_vector_tensors(source, f);
}

/* Whether the library has so little to do that it can be asked; it counts rows even if these have no elements. */
static bool has_few_elements(const fuzzed_vectors *f) {
    int64_t work = 1;
    for (int32_t d = 0; d < f->common.tensor.ndim; d++) {
        const int64_t extent = f->common.shape[d] > 0 ? f->common.shape[d] : 1;
        if (extent > MOST_WORK / work)
            return false;
        work *= extent;
    }
    return true;
}

/* What would leave its memory is made a tensor that must be refused. */
static void tame_vectors(fuzzed_vectors *f) {
    const onepass_call *call = &f->call;
    const onepass_tensor *const given[VECTOR_TENSORS] = {call->operand[0],     call->operand[1],  call->operand[2],
                                                         call->weight,         call->mask,        call->upstream,
                                                         call->divisor_tensor, call->value,       call->divided_by,
                                                         call->gradient[0],    call->gradient[1], call->gradient[2]};
    for (int i = 0; i < VECTOR_TENSORS; i++) {
        onepass_tensor *tensor = &f->tensors[i].tensor;
        if (given[i] == NULL || fits(tensor))
            continue;
        if (element_size(tensor->dtype) == 1)
            tensor->dtype = 99;
        tensor->data = (void *)((uintptr_t)tensor->data | 1);
        f->must_fail = true;
    }
}

void fuzz_vectors(source *source) {
    static fuzzed_vectors f;
    const onepass_call nothing = {0};
    take_vector_call(source, &f);
    tame_vectors(&f);
    if (!has_few_elements(&f))
        return;
    const bool flagged = f.call.flags & ONEPASS_SKIP_IF_UPSTREAM_IS_ONE, is_one = flagged && put_one(f.call.upstream);
    onepass_status status = onepass_run(&f.call);
    fuzz_check(status != ONEPASS_OK || !f.must_fail, "a call of vectors was accepted that leaves its memory");
    check_message(status);
    check_board(is_one ? &nothing : &f.call, status);
}
