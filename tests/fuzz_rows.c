/* The part of the fuzzer (fuzz_arguments.c) that makes calls of losses over rows: labels, axes, outputs of rows, and
 * classes that are shared out. */
#include "fuzz_board.h"

#include <string.h>

enum {
    ROW_INPUT,
    ROW_TARGET,
    ROW_CLASS_WEIGHT,
    ROW_WEIGHT,
    ROW_MASK,
    ROW_UPSTREAM,
    ROW_DIVISOR,
    ROW_VALUE,
    ROW_GRADIENT,
    ROW_TARGET_GRADIENT,
    ROW_LOG_SUM_EXP,
    ROW_PREDICTED,
    ROW_STATE,
    ROW_DIVIDED_BY,
    ROW_TILE_SUMS,
    ROW_LABEL_LOGIT,
    ROW_TENSORS
};

typedef struct fuzzed_rows {
    onepass_call call;
    fuzzed_tensor tensors[ROW_TENSORS];
    int32_t axis;       /* that of the input, from 0 */
    bool probabilities; /* and no labels */
    bool smooth;
    bool must_fail;
} fuzzed_rows;

/* All classes, here and elsewhere. */
static int64_t classes_of(const fuzzed_rows *f) {
    const fuzzed_tensor *input = &f->tensors[ROW_INPUT];
    const int64_t here = input->shape[f->axis];
    return f->call.all_classes != 0 ? f->call.all_classes : here;
}

/* The shape that a tensor of a good call has. */
static void shape_of_rows(fuzzed_rows *f, int i) {
    fuzzed_tensor *t = &f->tensors[i];
    const fuzzed_tensor *input = &f->tensors[ROW_INPUT];
    const int32_t ndim = input->tensor.ndim;
    const bool none = f->call.reduction == ONEPASS_NONE;
    int64_t rows = 1;
    t->tensor.ndim = 0;
    t->tensor.shape = t->shape;
    for (int32_t d = 0; d < ndim; d++)
        rows = d == f->axis || input->shape[d] < 0 || input->shape[d] > MOST_WORK ? rows : rows * input->shape[d];
    if (i == ROW_GRADIENT || i == ROW_TARGET_GRADIENT || (i == ROW_TARGET && f->probabilities)) {
        t->tensor.ndim = ndim;
        memcpy(t->shape, input->shape, sizeof t->shape);
    } else if (i == ROW_CLASS_WEIGHT) {
        t->tensor.ndim = 1;
        t->shape[0] = classes_of(f);
    } else if (i == ROW_STATE) {
        t->tensor.ndim = 2;
        t->shape[0] = rows;
        t->shape[1] = ONEPASS_ROW_STATE;
    } else if (i == ROW_TILE_SUMS) {
        const int64_t classes = f->call.value != NULL ? f->call.all_classes : input->shape[f->axis];
        t->tensor.ndim = 3;
        t->shape[0] = rows;
        t->shape[1] = f->smooth ? ONEPASS_SMOOTH_TILE_SUMS : ONEPASS_TILE_SUMS;
        t->shape[2] = classes / ONEPASS_TILE + (classes % ONEPASS_TILE != 0);
    } else if (i == ROW_LABEL_LOGIT) {
        t->tensor.ndim = 1;
        t->shape[0] = rows;
    } else if (!(i == ROW_DIVISOR || i == ROW_DIVIDED_BY || ((i == ROW_UPSTREAM || i == ROW_VALUE) && !none))) {
        for (int32_t d = 0; d < ndim; d++)
            if (d != f->axis)
                t->shape[t->tensor.ndim++] = input->shape[d];
    }
}

static int32_t dtype_of_rows(const fuzzed_rows *f, int i, uint8_t choice) {
    if (choice >= 250)
        return (int32_t)choice - 247;
    if (i == ROW_TARGET && !f->probabilities)
        return ONEPASS_I64 + choice % 3;
    return i == ROW_MASK                                                  ? ONEPASS_BOOL
           : i == ROW_PREDICTED                                           ? ONEPASS_I64
           : i == ROW_STATE || i == ROW_TILE_SUMS || i == ROW_LABEL_LOGIT ? ONEPASS_F64
                                                                          : ONEPASS_F16 + choice % 4;
}

static void take_row_input(source *source, fuzzed_rows *f) {
    fuzzed_tensor *t = &f->tensors[ROW_INPUT];
    const uint8_t choice = take_byte(source), axis = take_byte(source);
    t->tensor.ndim = 1 + choice % 3;
    t->tensor.shape = t->shape;
    for (int32_t d = 0; d < t->tensor.ndim; d++)
        t->shape[d] = take_number(source, 7);
    f->axis = t->tensor.ndim == 1 ? 0 : 1;
    if (axis >= 128 && axis < 224) {
        f->axis = axis % t->tensor.ndim;
        f->call.axis = axis % 2 == 0 ? f->axis + 1 : f->axis - t->tensor.ndim;
    } else if (axis >= 224) {
        f->call.axis = (int32_t)take_number(source, 5);
    }
}

/* Where a call has its tensors. */
static const onepass_tensor **place_of(onepass_call *call, int i) {
    const onepass_tensor **const places[ROW_TENSORS] = {
        &call->operand[0],  &call->operand[1],  &call->operand[2],     &call->weight,
        &call->mask,        &call->upstream,    &call->divisor_tensor, &call->value,
        &call->gradient[0], &call->gradient[1], &call->log_sum_exp,    &call->predicted,
        &call->row_state,   &call->divided_by,  &call->tile_sums,      &call->label_logit};
    return places[i];
}

/* Each tensor has a place of its own, mostly. */
static void take_row_tensor(source *source, fuzzed_rows *f, int i, bool there) {
    fuzzed_tensor *t = &f->tensors[i];
    const uint8_t choice = take_byte(source);
    t->tensor.dtype = dtype_of_rows(f, i, choice);
    if (i != ROW_INPUT) {
        shape_of_rows(f, i);
        if (choice >= 244)
            take_shape(source, t, &f->tensors[ROW_INPUT]);
    }
    if (choice % 8 == 7)
        take_strides(source, t);
    take_place(source, t, i % ARENAS);
    if (choice < 224)
        t->tensor.data = arena_at(i % ARENAS) + i / ARENAS * (ARENA / 4) + ARENA / 8;
    if ((i == ROW_GRADIENT || i == ROW_TARGET_GRADIENT) && choice % 8 == 6)
        *t = f->tensors[i - ROW_GRADIENT]; /* in place */
    t->tensor.strides = t->tensor.strides != NULL ? t->strides : NULL;
    t->tensor.shape = t->tensor.shape != NULL ? t->shape : NULL;
    *place_of(&f->call, i) = there ? &t->tensor : NULL;
}

static void take_row_tensors(source *source, fuzzed_rows *f) {
    const unsigned there = take_byte(source) | (unsigned)take_byte(source) << 8 | 1 << ROW_INPUT | 1 << ROW_TARGET;
    for (int i = 0; i < ROW_TILE_SUMS; i++)
        take_row_tensor(source, f, i, there >> i & 1);
}

/* Of the outputs, and of what they are made of, those that one of the three kinds of calls has. */
static void tidy_shards(fuzzed_rows *f, int kind) {
    onepass_call *call = &f->call;
    call->operand[ROW_CLASS_WEIGHT] = NULL; /* which would be large */
    call->predicted = NULL;
    call->value = kind == 1 ? &f->tensors[ROW_VALUE].tensor : NULL;
    call->gradient[0] = kind == 2 ? &f->tensors[ROW_GRADIENT].tensor : NULL;
    call->row_state = kind == 2 ? &f->tensors[ROW_STATE].tensor : kind == 1 ? call->row_state : NULL;
    if (kind != 1)
        call->log_sum_exp = NULL;
    if (kind == 0)
        call->divisor_tensor = call->divided_by = NULL;
    if (kind == 1)
        f->tensors[ROW_INPUT].shape[f->axis] = 0;
}

/* Classes that are shared out: sums of tiles, a value, or a gradient, mostly such that it is in order. */
static void take_row_shards(source *source, fuzzed_rows *f) {
    onepass_call *call = &f->call;
    const uint8_t choice = take_byte(source), odd = take_byte(source);
    const int kind = choice % 8 - 5;
    if (kind < 0)
        return;
    if (odd < 224)
        tidy_shards(f, kind);
    const int64_t classes = f->tensors[ROW_INPUT].shape[f->axis];
    const uint64_t first = (uint64_t)take_number(source, 3) * (kind == 2 ? 341 : ONEPASS_TILE);
    const uint64_t behind = (uint64_t)take_number(source, 1500);
    call->first_class = kind == 1 && odd < 224 ? 0 : (int64_t)first;
    call->all_classes = (int64_t)((uint64_t)classes + (kind == 1 && odd < 224 ? 1 + behind : first));
    if (kind == 2 || odd >= 240)
        call->all_classes = (int64_t)((uint64_t)call->all_classes + behind);
    take_row_tensor(source, f, ROW_TILE_SUMS, odd % 16 != 0);
    take_row_tensor(source, f, ROW_LABEL_LOGIT, odd % 16 != 1);
}

static void take_row_call(source *source, fuzzed_rows *f) {
    int32_t losses = 0;
    while (onepass_row_loss_at(losses) != NULL)
        losses++;
    memset(f, 0, sizeof *f);
    onepass_call *call = &f->call;
    const uint8_t loss = take_byte(source), how = take_byte(source), odd = take_byte(source);
    const onepass_loss_info *info = onepass_row_loss_at(loss % losses);
    call->size = sizeof *call;
    call->loss = odd == 255 ? onepass_loss_at(loss % 16)->name : info->name;
    f->probabilities = info->over_rows == ONEPASS_CLASS_PROBABILITIES;
    call->reduction = how % 4;
    call->threads = how / 4 % 4;
    call->flags = how >= 240 ? how % 4 : 0;
    call->divisor = odd == 254 ? take_real(source) : 0;
    call->reserved = odd == 253;
    for (int32_t k = 0; k < info->parameter_count && loss >= 128; k++) {
        call->parameter[call->parameter_count++] = odd < 64 ? take_real(source) : info->parameter[k].default_value;
        f->smooth |= strcmp(info->parameter[k].name, "label_smoothing") == 0 && call->parameter[k] != 0;
    }
    take_row_input(source, f);
    take_row_tensors(source, f);
    if (!f->probabilities && odd < 240)
        call->gradient[1] = NULL; /* else all would be refused */
    if (strcmp(call->loss, "nll") == 0 && odd < 240)
        call->row_state = call->log_sum_exp = NULL;
    if (call->reduction != ONEPASS_MEAN && odd < 240)
        call->divisor_tensor = call->divided_by = NULL;
    if (call->value == NULL && odd < 240)
        call->log_sum_exp = call->predicted = NULL;
}

/* Whether the library has so little to do that it can be asked; it counts rows even if these have no classes. */
static bool has_few_rows(const fuzzed_rows *f) {
    const onepass_tensor *input = &f->tensors[ROW_INPUT].tensor;
    int64_t work = 1;
    for (int32_t d = 0; is_sound(input) && d < input->ndim; d++) {
        if (input->shape[d] > MOST_WORK / work)
            return false;
        work *= input->shape[d] > 0 ? input->shape[d] : 1;
    }
    return true;
}

static void tame_rows(fuzzed_rows *f) {
    for (int i = 0; i < ROW_TENSORS; i++) {
        onepass_tensor *tensor = &f->tensors[i].tensor;
        if (*place_of(&f->call, i) == NULL || fits(tensor))
            continue;
        if (element_size(tensor->dtype) == 1)
            tensor->dtype = 99;
        tensor->data = (void *)((uintptr_t)tensor->data | 1);
        f->must_fail = true;
    }
}

/* Puts classes where the labels are, where these are dense and in an arena: else hardly a call would be in order. */
static void put_labels(const fuzzed_rows *f, uint8_t seed) {
    const onepass_tensor *labels = f->call.operand[1];
    const int64_t classes = classes_of(f);
    const size_t size = element_size(labels->dtype);
    if (f->probabilities || !is_sound(labels) || labels->strides != NULL || classes <= 0 || !fits(labels) ||
        (uintptr_t)labels->data % size != 0)
        return;
    const int64_t count = elements_up_to(labels, MOST_WORK);
    for (int64_t i = 0; i < count && (size_t)(i + 1) * size <= ARENA; i++) {
        const int64_t label = (int64_t)(((uint64_t)i * 7 + seed) % (uint64_t)classes);
        put_bytes((uint8_t *)labels->data + (size_t)i * size, &label, size); /* the lowest bytes come first */
    }
}

void fuzz_rows(source *source) {
    static fuzzed_rows f;
    take_row_call(source, &f);
    const onepass_call nothing = {0};
    const uint8_t seed = take_byte(source);
    take_row_shards(source, &f);
    tame_rows(&f);
    if (!has_few_rows(&f))
        return;
    if (seed < 224)
        put_labels(&f, seed);
    const bool flagged = f.call.flags & ONEPASS_SKIP_IF_UPSTREAM_IS_ONE, is_one = flagged && put_one(f.call.upstream);
    onepass_status status = onepass_run(&f.call);
    fuzz_check(status != ONEPASS_OK || !f.must_fail, "a call over rows was accepted that leaves its memory");
    check_message(status);
    check_board(is_one ? &nothing : &f.call, status);
}
