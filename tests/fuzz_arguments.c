/*
 * A fuzzer of the argument checks: bytes become a call, and whatever they become, the library must stay inside the
 * memory that the call names.
 *
 * All tensors lie in a few arenas between guard zones. What a tensor may touch is worked out here, byte by byte and
 * without the library's help. A tensor that would leave its arena, or a call that would take too long, is made odd (an
 * odd address fits no type of number), so that the library must refuse it but has to look at its shape first; a mask,
 * whose bytes may lie anywhere, is made one of numbers. Then:
 *
 * - an error has a message and changes no byte of any arena, a success has none;
 * - a success writes nothing but the elements of its outputs, and no byte of an output belongs to anything else,
 *   unless a gradient lies over its own operand;
 * - with ONEPASS_SKIP_IF_UPSTREAM_IS_ONE it writes nothing at all where the upstream gradient is 1;
 * - the guard zones stay as they were.
 *
 * Under libFuzzer this is the whole program; elsewhere fuzz_driver.c calls it with pseudo-random bytes.
 */
#include "fuzz_board.h"

#include <string.h>

/* ---------------------------------------------------------------- calls -- */

enum {
    PREDICTION,
    TARGET,
    UPSTREAM,
    VALUE,
    GRADIENT_P,
    GRADIENT_T,
    WEIGHT,
    MASK,
    THIRD,
    GRADIENT_V,
    TENSORS
};

typedef struct fuzzed_call {
    onepass_call call;
    uint8_t tail[16];
    fuzzed_tensor tensors[TENSORS];
    bool must_fail;
} fuzzed_call;

static void take_tensors(source *source, fuzzed_call *f) {
    onepass_call *call = &f->call;
    const onepass_tensor **const places[TENSORS] = {
        &call->operand[0],  &call->operand[1], &call->upstream, &call->value,      &call->gradient[0],
        &call->gradient[1], &call->weight,     &call->mask,     &call->operand[2], &call->gradient[2]};
    const onepass_loss_info *info = onepass_loss_named(call->loss);
    const bool has_third = info != NULL && info->operand_count > ONEPASS_THIRD;
    const unsigned absent = take_byte(source);
    for (int i = 0; i < (has_third ? TENSORS : THIRD); i++) {
        fuzzed_tensor *t = &f->tensors[i];
        uint8_t choice = take_byte(source);
        t->tensor.dtype = choice >= 248 ? (int32_t)choice - 250 : i == MASK ? ONEPASS_BOOL : ONEPASS_F16 + choice % 4;
        bool single = call->reduction != ONEPASS_NONE && (i == UPSTREAM || i == VALUE);
        if (single && choice % 16 != 0)
            memset(t->shape, 0, sizeof t->shape);
        else
            take_shape(source, t, i == PREDICTION ? NULL : &f->tensors[PREDICTION]);
        take_strides(source, t);
        take_place(source, t, i % ARENAS);
        if ((i == GRADIENT_P || i == GRADIENT_T || i == GRADIENT_V) && choice % 8 == 7)
            *t = f->tensors[i == GRADIENT_V ? THIRD : i - GRADIENT_P]; /* in place */
        if (t->tensor.strides != NULL)
            t->tensor.strides = t->strides;
        if (t->tensor.shape != NULL)
            t->tensor.shape = t->shape;
        const bool is_operand = i < UPSTREAM || i == THIRD;
        bool is_absent = is_operand ? absent >= 250 && absent % TENSORS == (unsigned)i
                                    : (i == GRADIENT_V ? choice / 8 : absent >> i) % 2 == 1;
        *places[i] = is_absent ? NULL : &t->tensor;
    }
}

static void take_call(source *source, fuzzed_call *f) {
    static const char *const wrong[] = {"", "mze", "%s%n", NULL};
    int32_t losses = 0;
    while (onepass_loss_at(losses) != NULL)
        losses++;
    memset(f, 0, sizeof *f);
    onepass_call *call = &f->call;
    uint8_t odd = take_byte(source); /* the seldom ones: one field at a time */
    uint8_t choice = take_byte(source);
    call->size = sizeof *call;
    call->loss = choice < 252 ? onepass_loss_at(choice % losses)->name : wrong[choice - 252];
    call->reduction = take_byte(source) % 4;
    uint8_t how = take_byte(source);
    call->threads = how % 4;
    if (choice >= 128 && choice % 3 != 0) {
        call->parameter_count = choice % 3;
        for (int i = 0; i < call->parameter_count; i++)
            call->parameter[i] = take_real(source);
    }
    take_tensors(source, f);
    if (how % 8 == 7) {
        call->flags = ONEPASS_SKIP_IF_UPSTREAM_IS_ONE;
        call->value = how % 64 == 7 ? call->value : NULL; /* else nearly all would be refused */
    }
    if (how % 16 == 14)
        call->flags |= ONEPASS_OVER_ELEMENTS;
    switch (odd) {
    case 255:
        call->size = (size_t)take_number(source, 512);
        if (call->size > sizeof *call + sizeof f->tail)
            call->size = sizeof *call + sizeof f->tail; /* what is behind is not ours */
        break;
    case 254:
        call->size += sizeof f->tail;
        f->tail[take_byte(source) % sizeof f->tail] = take_byte(source);
        break;
    case 253:
        call->reduction = (int32_t)take_number(source, 4);
        break;
    case 252:
        call->parameter_count = (int32_t)take_number(source, 10);
        for (int i = 0; i < ONEPASS_MAX_PARAMETERS; i++)
            call->parameter[i] = take_real(source);
        break;
    case 251:
        call->divisor = take_real(source);
        break;
    case 250:
        call->device = (int32_t)take_number(source, 3);
        call->device_index = (int32_t)take_number(source, 3);
        if (take_byte(source) % 2 == 1) {
            call->workspace = arena_at(0) - GUARD + take_byte(source);
            call->workspace_size = (size_t)take_number(source, 256);
        }
        break;
    case 249:
        call->threads = (int32_t)take_number(source, 8);
        call->threads = call->threads > 64 ? 64 : call->threads; /* threads are asked for, not for ever */
        break;
    case 248:
        call->flags = (int32_t)take_number(source, 8);
        break;
    case 247:
        call->workspace = take_byte(source) % 2 == 1 ? arena_at(0) - GUARD : NULL;
        call->workspace_size = take_byte(source);
        call->stream = take_byte(source) % 2 == 1 ? arena_at(0) - GUARD : NULL;
        break;
    case 246:
        call->operand[2 + take_byte(source) % 2] = &f->tensors[TARGET].tensor;
        break;
    case 245:
        call->gradient[2 + take_byte(source) % 2] = &f->tensors[GRADIENT_T].tensor;
        break;
    case 244:
        call->weight = take_byte(source) % 2 == 1 ? &f->tensors[TARGET].tensor : NULL;
        call->mask = take_byte(source) % 2 == 1 ? &f->tensors[TARGET].tensor : call->mask;
        break;
    default:
        break;
    }
}

/* How many elements the operands can have together: never less than their common shape has. */
static bool is_quick(const fuzzed_call *f) {
    int64_t work = 1;
    for (int from_last = 1; from_last <= ONEPASS_MAX_DIMENSIONS; from_last++) {
        int64_t most = 1;
        for (int k = 0; k < 3 && (k < 2 || f->call.operand[k] != NULL); k++) {
            const onepass_tensor *tensor = &f->tensors[k < 2 ? PREDICTION + k : THIRD].tensor;
            if (!is_sound(tensor) || elements_up_to(tensor, 1) == 0)
                return true; /* refused, or nothing to compute */
            if (from_last <= tensor->ndim && tensor->shape[tensor->ndim - from_last] > most)
                most = tensor->shape[tensor->ndim - from_last];
        }
        if (most > MOST_WORK / work)
            return false;
        work *= most;
    }
    return true;
}

static void make_odd(fuzzed_call *f, int i) {
    onepass_tensor *tensor = &f->tensors[i].tensor;
    if (is_sound(tensor) && elements_up_to(tensor, 1) == 0)
        return;
    if (i == MASK)
        tensor->dtype = ONEPASS_F16;
    if (tensor->data != NULL)
        tensor->data = (void *)((uintptr_t)tensor->data | 1);
    f->must_fail = true;
}

/* Makes sure that the call cannot touch what is not ours. */
static void tame(fuzzed_call *f) {
    const onepass_call *call = &f->call;
    const onepass_tensor *const given[TENSORS] = {call->operand[0],  call->operand[1],  call->upstream, call->value,
                                                  call->gradient[0], call->gradient[1], call->weight,   call->mask,
                                                  call->operand[2],  call->gradient[2]};
    bool quick = is_quick(f);
    for (int i = 0; i < TENSORS; i++)
        if (given[i] != NULL && (!fits(given[i]) || (!quick && i <= TARGET)))
            make_odd(f, i);
}

/* ---------------------------------------------------------------- the ways in -- */

static void fuzz_run(source *source) {
    static fuzzed_call f;
    take_call(source, &f);
    tame(&f);
    const onepass_call nothing = {0};
    const bool flagged = f.call.flags & ONEPASS_SKIP_IF_UPSTREAM_IS_ONE, is_one = flagged && put_one(f.call.upstream);
    onepass_status status = onepass_run(&f.call);
    fuzz_check(status != ONEPASS_OK || !f.must_fail, "a call was accepted that leaves its memory");
    fuzz_check(status != ONEPASS_OK || !flagged || (f.call.upstream != NULL && f.call.value == NULL),
               "a call was accepted that asks about no upstream gradient, or wants a value unless it is 1");
    check_message(status);
    check_board(is_one ? &nothing : &f.call, status);
}

/* ---------------------------------------------------------------- the other ways in -- */

static void fuzz_short_functions(source *source) {
    static fuzzed_call f;
    take_call(source, &f);
    tame(&f);
    const onepass_call *c = &f.call;
    onepass_call as_run = {0};
    onepass_status status;
    as_run.operand[0] = c->operand[0];
    as_run.operand[1] = c->operand[1];
    onepass_reduction reduction = (onepass_reduction)c->reduction;
    switch (take_byte(source) % 4) {
    case 0:
        as_run.value = c->value;
        status = onepass_forward(c->loss, reduction, c->operand[0], c->operand[1], c->value);
        break;
    case 1:
        as_run.upstream = c->upstream;
        as_run.gradient[0] = c->gradient[0];
        as_run.gradient[1] = c->gradient[1];
        status = onepass_backward(c->loss, reduction, c->operand[0], c->operand[1], c->upstream, c->gradient[0],
                                  c->gradient[1]);
        break;
    case 2:
        as_run.value = c->value;
        as_run.gradient[0] = c->gradient[0];
        status = onepass_forward_backward(c->loss, reduction, c->operand[0], c->operand[1], c->value, c->gradient[0]);
        break;
    default: {
        /* Places in the arenas at which `count` floats, taken from any number, would still fit. */
        int64_t count = take_number(source, 1500);
        int64_t sure = count > 0 && count <= ARENA / 4 ? count : 0;
        uint8_t wanted = take_byte(source);
        const float *p = (const float *)(const void *)arena_at(0), *t = (const float *)(const void *)arena_at(1);
        float *value = wanted % 4 == 0 ? NULL : (float *)(void *)arena_at(2);
        float *gradient = wanted % 5 == 0 ? NULL : (float *)(void *)arena_at(3);
        if (sure == 0 && count > 0)
            p = (const float *)(const void *)(arena_at(0) + 1);
        status = onepass_mean_f32(c->loss, count, p, t, value, gradient);
        onepass_tensor one = {value, ONEPASS_F32, 0, NULL, NULL}, many = {gradient, ONEPASS_F32, 1, &sure, NULL};
        onepass_call described = {.value = value != NULL ? &one : NULL, .gradient = {gradient != NULL ? &many : NULL}};
        check_message(status);
        check_board(&described, status);
        return;
    }
    }
    check_message(status);
    check_board(&as_run, status);
}

/* Gradients in place: they are inputs and outputs at once, so whatever else the call names must be apart. */
static void fuzz_scale(source *source) {
    static fuzzed_call f;
    take_call(source, &f);
    if (take_byte(source) < 240) {
        f.call.loss = NULL;
        f.call.reduction = f.call.parameter_count = 0;
        f.call.operand[0] = f.call.operand[1] = f.call.operand[2] = NULL;
        f.call.weight = f.call.mask = f.call.value = NULL;
    }
    tame(&f);
    const onepass_call as_run = {.upstream = f.call.upstream,
                                 .gradient = {f.call.gradient[0], f.call.gradient[1], f.call.gradient[2]}};
    onepass_status status = onepass_scale(&f.call);
    fuzz_check(status != ONEPASS_OK || !f.must_fail, "gradients were accepted that leave their memory");
    check_message(status);
    check_board(&as_run, status);
}

/* Begin, some slices, perhaps a merge, finish: in any order and with anything. */
static void fuzz_accumulator(source *source) {
    static fuzzed_call f;
    onepass_accumulator *accumulators[2] = {NULL, NULL};
    take_call(source, &f);
    for (int i = 0; i < 2; i++) {
        onepass_call begin = f.call;
        if (take_byte(source) < 240) {
            memset(begin.operand, 0, sizeof begin.operand);
            memset(begin.gradient, 0, sizeof begin.gradient);
            begin.weight = begin.mask = begin.upstream = begin.value = NULL;
        }
        begin.size = begin.size > sizeof begin ? sizeof begin : begin.size; /* the tail is not copied */
        check_message(onepass_accumulator_begin(&accumulators[i], &begin, take_number(source, 200)));
    }
    int steps = take_byte(source) % 6;
    for (int step = 0; step < steps; step++) {
        uint8_t choice = take_byte(source);
        onepass_accumulator *accumulator = accumulators[choice % 2];
        onepass_status status;
        fill_board(choice);
        if (choice < 160) {
            if (choice >= 64) {
                const char *loss = f.call.loss;
                take_call(source, &f);
                f.call.loss = choice < 128 ? loss : f.call.loss;
            }
            if (choice < 150)
                f.call.value = NULL;
            tame(&f);
            int64_t first = (int64_t)((uint64_t)take_number(source, 3) * (choice % 5 != 0 ? ONEPASS_TILE : 1));
            status = onepass_accumulator_add(accumulator, &f.call, first);
            fuzz_check(status != ONEPASS_OK || !f.must_fail, "a slice was accepted that leaves its memory");
            check_message(status);
            check_board(&f.call, status);
        } else if (choice < 200) {
            check_message(onepass_accumulator_merge(accumulator, accumulators[choice / 2 % 2]));
            check_board(&(onepass_call){0}, ONEPASS_OK);
        } else {
            onepass_tensor value = {arena_at(0) + choice % 16, ONEPASS_F16 + choice % 4, 0, NULL, NULL};
            status = onepass_accumulator_finish(accumulator, choice == 255 ? NULL : &value);
            check_message(status);
            check_board(&(onepass_call){.value = &value}, status);
        }
    }
    onepass_accumulator_destroy(accumulators[0]);
    onepass_accumulator_destroy(accumulators[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    source source = {data, data + size};
    uint8_t way = take_byte(&source);
    fill_board(way);
    if (way >= 40 && way < 68)
        fuzz_vectors(&source);
    else if (way < 112)
        fuzz_run(&source);
    else if (way < 160)
        fuzz_rows(&source);
    else if (way < 172)
        fuzz_scale(&source);
    else if (way < 192)
        fuzz_short_functions(&source);
    else
        fuzz_accumulator(&source);
    return 0;
}
