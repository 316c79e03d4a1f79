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
#include <onepass.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

long fuzz_failures;
bool fuzz_goes_on;

/* libFuzzer keeps the input of a program that aborts; fuzz_driver.c goes on and counts. */
static void fuzz_check(bool holds, const char *otherwise) {
    if (holds)
        return;
    fuzz_failures++;
    fprintf(stderr, "fuzz_arguments: %s; the last message is \"%s\"\n", otherwise, onepass_message());
    if (!fuzz_goes_on)
        abort();
}

/* ---------------------------------------------------------------- the bytes -- */

typedef struct source {
    const uint8_t *next, *end;
} source;

/* Behind the end there are zeros, which decode to the plainest choice everywhere. */
static uint8_t take_byte(source *source) {
    return source->next < source->end ? *source->next++ : 0;
}

static uint64_t take_word(source *source) {
    uint64_t word = 0;
    for (int i = 0; i < 8; i++)
        word = word << 8 | take_byte(source);
    return word;
}

/* Mostly small numbers, sometimes those at which checks go wrong, sometimes anything. */
static int64_t take_number(source *source, int64_t small) {
    static const int64_t edges[] = {
        -1,
        -2,
        INT64_MIN,
        INT64_MAX,
        INT64_MAX / 2,
        INT64_MIN / 2,
        INT64_MAX / 4 + 1,
        INT32_MAX,
        INT32_MIN,
        1ll << 31,
        1ll << 32,
        (1ll << 32) + 1,
        1ll << 40,
        1ll << 61,
        1ll << 62,
        1023,
        1024,
        1025,
        2047,
        2048,
        3000,
    };
    uint8_t choice = take_byte(source);
    if (choice < 232)
        return choice % small;
    if (choice < 253)
        return edges[choice - 232];
    return (int64_t)take_word(source);
}

static double take_real(source *source) {
    static const double reals[] = {0, 1, 0.5, 2, 3, -1, -0.0, 1e-320, 1e300, -1e300, INFINITY, -INFINITY, NAN};
    uint8_t choice = take_byte(source);
    if (choice < sizeof reals / sizeof *reals)
        return reals[choice];
    uint64_t word = take_word(source);
    double real;
    memcpy(&real, &word, sizeof real);
    return real;
}

/* ---------------------------------------------------------------- the arenas -- */

enum {
    ARENAS = 4,
    ARENA = 8192, /* bytes: two tiles of floats */
    GUARD = 256,
    BOARD = ARENAS * (ARENA + GUARD) + GUARD /* guard, arena, guard, arena, ..., guard */
};

/* What a byte of an arena is to the call. A gradient over its operand is an output and nothing else. */
enum {
    INPUT = 1,
    OUTPUT = 2
};

static uint8_t *board;             /* the arenas */
static uint8_t before[BOARD];      /* as they were before the call */
static uint8_t uses[BOARD];        /* INPUT, OUTPUT or both */
static uint8_t numbers[2 * BOARD]; /* what the arenas are filled from */

#if defined(__SANITIZE_ADDRESS__)
#define ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ADDRESS_SANITIZER 1
#endif
#endif
#if defined(ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#define FORBID_MEMORY(at, size) ASAN_POISON_MEMORY_REGION(at, size)
#define ALLOW_MEMORY(at, size)  ASAN_UNPOISON_MEMORY_REGION(at, size)
#else
#define FORBID_MEMORY(at, size) ((void)(at), (void)(size))
#define ALLOW_MEMORY(at, size)  ((void)(at), (void)(size))
#endif

static uint8_t *arena_at(int index) {
    return board + GUARD + (size_t)index * (ARENA + GUARD);
}

/* Numbers of ordinary size in every element type: 0x3f.. and 0xbf.. at the top, and now and then anything. */
static void make_numbers(void) {
    uint32_t state = 1;
    for (size_t i = 0; i < sizeof numbers; i++) {
        state = state * 1664525u + 1013904223u;
        uint8_t byte = (uint8_t)(state >> 24);
        numbers[i] = i % 2 == 1 && byte < 250 ? (uint8_t)(0x3f | (byte & 0x80)) : byte;
    }
}

/* The guard zones are closed to everybody while the library runs: writes are seen in any build, reads with the address
 * sanitizer. */
static void close_guards(void) {
    for (int i = 0; i <= ARENAS; i++)
        FORBID_MEMORY(arena_at(i) - GUARD, GUARD);
}

static void open_guards(void) {
    for (int i = 0; i <= ARENAS; i++)
        ALLOW_MEMORY(arena_at(i) - GUARD, GUARD);
}

static void fill_board(uint8_t seed) {
    open_guards();
    memcpy(before, numbers + 2 * seed, BOARD);
    memcpy(board, before, BOARD);
    close_guards();
}

/* ---------------------------------------------------------------- tensors -- */

typedef struct fuzzed_tensor {
    onepass_tensor tensor;
    int64_t shape[ONEPASS_MAX_DIMENSIONS + 2];
    int64_t strides[ONEPASS_MAX_DIMENSIONS + 2];
} fuzzed_tensor;

static size_t element_size(int32_t dtype) {
    switch (dtype) {
    case ONEPASS_F64:
    case ONEPASS_I64:
        return 8;
    case ONEPASS_F32:
    case ONEPASS_I32:
        return 4;
    case ONEPASS_BOOL:
    case ONEPASS_U8:
        return 1;
    default:
        return 2;
    }
}

/* The first tensor of a call has a shape of its own; later ones mostly take it, or a change of it that broadcasts. */
static void take_shape(source *source, fuzzed_tensor *t, const fuzzed_tensor *like) {
    uint8_t choice = take_byte(source);
    t->tensor.ndim = choice % 4;
    if (choice >= 224)
        t->tensor.ndim = choice >= 252 ? (int32_t)take_word(source) : choice - 225;
    for (size_t d = 0; d < sizeof t->shape / sizeof *t->shape; d++)
        t->shape[d] = 1;
    t->tensor.shape = t->shape;
    if (like != NULL && choice < 160) {
        t->tensor.ndim = like->tensor.ndim;
        memcpy(t->shape, like->shape, sizeof t->shape);
        if (choice >= 96 && t->tensor.ndim > 0 && t->tensor.ndim <= ONEPASS_MAX_DIMENSIONS)
            t->shape[choice % t->tensor.ndim] = choice < 150 ? 1 : take_number(source, 8);
        return;
    }
    for (int32_t d = 0; d < t->tensor.ndim && d < ONEPASS_MAX_DIMENSIONS + 2; d++)
        t->shape[d] = take_number(source, d < 3 ? 20 : 3);
    if (choice == 251)
        t->tensor.shape = NULL;
}

static void take_strides(source *source, fuzzed_tensor *t) {
    uint8_t choice = take_byte(source);
    if (choice < 128)
        return; /* null: dense */
    t->tensor.strides = t->strides;
    uint64_t stride = 1;
    int32_t ndim = t->tensor.ndim < 0 ? 0 : t->tensor.ndim;
    for (int32_t d = (ndim < ONEPASS_MAX_DIMENSIONS + 2 ? ndim : ONEPASS_MAX_DIMENSIONS + 2) - 1; d >= 0; d--) {
        if (choice < 160) {
            t->strides[d] = (int64_t)stride;
        } else if (choice < 208) { /* backwards, shared, or with gaps */
            t->strides[d] = (int64_t)(stride * (choice % 3 == 0 ? UINT64_MAX : choice % 3 == 1 ? 0 : 2));
        } else {
            t->strides[d] = (int64_t)((uint64_t)take_number(source, 40) * (choice % 2 == 0 ? 1 : UINT64_MAX));
        }
        stride *= (uint64_t)t->shape[d];
    }
}

/* Whether the library may take the tensor for a sound one at all; what is unsound it must refuse. */
static bool is_sound(const onepass_tensor *tensor) {
    if (tensor->dtype < ONEPASS_F16 || tensor->dtype > ONEPASS_U8 || tensor->ndim < 0 ||
        tensor->ndim > ONEPASS_MAX_DIMENSIONS || (tensor->ndim > 0 && tensor->shape == NULL))
        return false;
    for (int32_t d = 0; d < tensor->ndim; d++)
        if (tensor->shape[d] < 0)
            return false;
    return true;
}

/* The number of elements, or `most` + 1 if there are more. */
static int64_t elements_up_to(const onepass_tensor *tensor, int64_t most) {
    int64_t count = 1;
    for (int32_t d = 0; d < tensor->ndim; d++)
        if (tensor->shape[d] == 0)
            return 0;
    for (int32_t d = 0; d < tensor->ndim; d++) {
        if (tensor->shape[d] > most / count)
            return most + 1;
        count *= tensor->shape[d];
    }
    return count;
}

/* Lowest and highest byte offset of a sound tensor with elements. In double, which cannot overflow: exact where the
 * tensor could fit an arena, and clamped far outside of any where it could not. */
static void reach(const onepass_tensor *tensor, int64_t *lowest, int64_t *highest) {
    const double limit = 0x1p60, size = (double)element_size(tensor->dtype);
    double low = 0, high = size, dense = size;
    for (int32_t d = tensor->ndim - 1; d >= 0; d--) {
        double stride = tensor->strides != NULL ? size * (double)tensor->strides[d] : dense;
        double span = stride * ((double)tensor->shape[d] - 1);
        low += span < 0 ? span : 0;
        high += span > 0 ? span : 0;
        dense *= (double)tensor->shape[d];
    }
    *lowest = (int64_t)(low < -limit ? -limit : low);
    *highest = (int64_t)(high > limit ? limit : high);
}

/* Draws the place: mostly where the tensor fits, in an arena that may be shared. */
static void take_place(source *source, fuzzed_tensor *t, int usual_arena) {
    uint8_t choice = take_byte(source);
    int arena = choice < 192 ? usual_arena : choice % ARENAS;
    size_t offset = (size_t)take_byte(source) * 8 % ARENA;
    int64_t lowest = 0, highest = 0;
    if (is_sound(&t->tensor) && elements_up_to(&t->tensor, ARENA) > 0)
        reach(&t->tensor, &lowest, &highest);
    if (lowest > -ARENA)
        offset = (offset + (size_t)-lowest + 7) / 8 * 8;
    t->tensor.data = arena_at(arena) + (choice % 64 < 4 ? choice % 64 : 0) + offset;
    if (choice >= 250)
        t->tensor.data = choice == 250 ? NULL : (void *)(uintptr_t)take_word(source);
}

static bool fits(const onepass_tensor *tensor) {
    if (!is_sound(tensor) || elements_up_to(tensor, ARENA) == 0)
        return true; /* nothing to touch */
    int64_t lowest, highest;
    reach(tensor, &lowest, &highest);
    for (int i = 0; i < ARENAS; i++) {
        intptr_t offset = (intptr_t)((uintptr_t)tensor->data - (uintptr_t)arena_at(i));
        if (offset >= 0 && offset < ARENA && offset + lowest >= 0 && offset + highest <= ARENA)
            return true;
    }
    return false;
}

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

enum {
    MOST_WORK = 1 << 14 /* elements; more would only be slow */
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
            call->workspace = board + take_byte(source);
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
        call->workspace = take_byte(source) % 2 == 1 ? board : NULL;
        call->workspace_size = take_byte(source);
        call->stream = take_byte(source) % 2 == 1 ? board : NULL;
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

/* ---------------------------------------------------------------- what must hold -- */

/* Marks every byte of every element of an accepted tensor. False if an output meets itself or something else. An
 * output's bytes are then put back, so that nothing else may differ from what was there before. */
static bool mark(const onepass_tensor *tensor, uint8_t use) {
    if (tensor == NULL)
        return true;
    int64_t index[ONEPASS_MAX_DIMENSIONS] = {0};
    bool apart = true;
    const size_t size = element_size(tensor->dtype);
    for (int64_t left = elements_up_to(tensor, MOST_WORK); left > 0; left--) {
        int64_t offset = 0, dense = 1;
        for (int32_t d = tensor->ndim - 1; d >= 0; d--) {
            offset += index[d] * (tensor->strides == NULL ? dense : tensor->shape[d] > 1 ? tensor->strides[d] : 0);
            dense *= tensor->shape[d];
        }
        size_t at = (size_t)((uint8_t *)tensor->data - board + offset * (int64_t)size);
        for (size_t byte = at; byte < at + size; byte++) {
            apart &= use == INPUT || uses[byte] == 0;
            uses[byte] |= use;
        }
        if (use == OUTPUT)
            memcpy(board + at, before + at, size);
        for (int32_t d = tensor->ndim - 1; d >= 0 && ++index[d] == tensor->shape[d]; d--)
            index[d] = 0;
    }
    return apart;
}

/* Whether two tensors are the same elements in the same order. */
static bool is_same(const onepass_tensor *a, const onepass_tensor *b) {
    if (a == NULL || b == NULL || a->data != b->data || a->dtype != b->dtype || a->ndim != b->ndim)
        return false;
    uint64_t dense = 1; /* may wrap in an empty tensor, where it does not matter */
    for (int32_t d = a->ndim - 1; d >= 0; d--) {
        uint64_t stride_a = a->strides != NULL ? (uint64_t)a->strides[d] : dense;
        uint64_t stride_b = b->strides != NULL ? (uint64_t)b->strides[d] : dense;
        if (a->shape[d] != b->shape[d] || (a->shape[d] > 1 && stride_a != stride_b))
            return false;
        dense *= (uint64_t)a->shape[d];
    }
    return true;
}

/* Makes the upstream gradient 1, where it is one element of an arena. */
static bool put_one(const onepass_tensor *upstream) {
    static const uint16_t f16 = 0x3c00, bf16 = 0x3f80;
    static const float f32 = 1;
    static const double f64 = 1;
    if (upstream == NULL || !is_sound(upstream) || elements_up_to(upstream, 1) != 1 || !fits(upstream) ||
        (uintptr_t)upstream->data % element_size(upstream->dtype) != 0)
        return false;
    const void *one = upstream->dtype == ONEPASS_F16    ? (const void *)&f16
                      : upstream->dtype == ONEPASS_BF16 ? (const void *)&bf16
                      : upstream->dtype == ONEPASS_F32  ? (const void *)&f32
                                                        : (const void *)&f64;
    memcpy(upstream->data, one, element_size(upstream->dtype));
    memcpy(before + ((uint8_t *)upstream->data - board), one, element_size(upstream->dtype));
    return true;
}

static void check_message(onepass_status status) {
    const char *message = onepass_message();
    if (status == ONEPASS_OK)
        fuzz_check(message[0] == '\0', "a message although all is well");
    else
        fuzz_check(message[0] != '\0' && message[strlen(message) - 1] != '\n' && strlen(message) < 4096,
                   "an error without a proper message");
}

/* After a call: only the outputs' elements may differ from what was there before. */
static void check_board(const onepass_call *call, onepass_status status) {
    open_guards();
    if (status == ONEPASS_OK) {
        bool apart = true;
        memset(uses, 0, BOARD);
        for (int k = 0; k < 3; k++)
            if (!is_same(call->operand[k], call->gradient[k]))
                mark(call->operand[k], INPUT);
        mark(call->weight, INPUT);
        mark(call->mask, INPUT);
        mark(call->upstream, INPUT);
        mark(call->divisor_tensor, INPUT);
        mark(call->value == NULL ? call->row_state : NULL, INPUT);
        for (int k = 0; k < 3; k++)
            apart &= mark(call->gradient[k], OUTPUT);
        apart &= mark(call->value, OUTPUT);
        apart &= mark(call->value != NULL ? call->row_state : NULL, OUTPUT);
        apart &= mark(call->log_sum_exp, OUTPUT);
        apart &= mark(call->predicted, OUTPUT);
        apart &= mark(call->divided_by, OUTPUT);
        fuzz_check(apart, "outputs were accepted that overlap");
    }
    fuzz_check(memcmp(board, before, BOARD) == 0, status == ONEPASS_OK ? "a byte was written that belongs to no output"
                                                                       : "an error, and something was written");
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

/* ---------------------------------------------------------------- rows -- */

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
    ROW_TENSORS
};

typedef struct fuzzed_rows {
    onepass_call call;
    fuzzed_tensor tensors[ROW_TENSORS];
    int32_t axis;       /* that of the input, from 0 */
    bool probabilities; /* and no labels */
    bool must_fail;
} fuzzed_rows;

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
        t->shape[0] = input->shape[f->axis];
    } else if (i == ROW_STATE) {
        t->tensor.ndim = 2;
        t->shape[0] = rows;
        t->shape[1] = ONEPASS_ROW_STATE;
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
    return i == ROW_MASK        ? ONEPASS_BOOL
           : i == ROW_PREDICTED ? ONEPASS_I64
           : i == ROW_STATE     ? ONEPASS_F64
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

/* Each tensor has a place of its own, mostly. */
static void take_row_tensors(source *source, fuzzed_rows *f) {
    onepass_call *call = &f->call;
    const onepass_tensor **const places[ROW_TENSORS] = {
        &call->operand[0],  &call->operand[1],     &call->operand[2], &call->weight,      &call->mask,
        &call->upstream,    &call->divisor_tensor, &call->value,      &call->gradient[0], &call->gradient[1],
        &call->log_sum_exp, &call->predicted,      &call->row_state,  &call->divided_by};
    const unsigned there = take_byte(source) | (unsigned)take_byte(source) << 8 | 1 << ROW_INPUT | 1 << ROW_TARGET;
    for (int i = 0; i < ROW_TENSORS; i++) {
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
        *places[i] = there >> i & 1 ? &t->tensor : NULL;
    }
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
    for (int32_t k = 0; k < info->parameter_count && loss >= 128; k++)
        call->parameter[call->parameter_count++] = odd < 64 ? take_real(source) : info->parameter[k].default_value;
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
        const onepass_call *call = &f->call;
        const onepass_tensor *const given[ROW_TENSORS] = {
            call->operand[0],  call->operand[1],     call->operand[2], call->weight,      call->mask,
            call->upstream,    call->divisor_tensor, call->value,      call->gradient[0], call->gradient[1],
            call->log_sum_exp, call->predicted,      call->row_state,  call->divided_by};
        if (given[i] == NULL || fits(tensor))
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
    const int64_t classes = f->tensors[ROW_INPUT].shape[f->axis];
    const size_t size = element_size(labels->dtype);
    if (f->probabilities || !is_sound(labels) || labels->strides != NULL || classes <= 0 || !fits(labels) ||
        (uintptr_t)labels->data % size != 0)
        return;
    const int64_t count = elements_up_to(labels, MOST_WORK);
    for (int64_t i = 0; i < count && (size_t)(i + 1) * size <= ARENA; i++) {
        const int64_t label = (i * 7 + seed) % classes;
        memcpy((uint8_t *)labels->data + (size_t)i * size, &label, size); /* the lowest bytes come first */
        memcpy(before + ((uint8_t *)labels->data - board) + (size_t)i * size, &label, size);
    }
}

static void fuzz_rows(source *source) {
    static fuzzed_rows f;
    take_row_call(source, &f);
    tame_rows(&f);
    const onepass_call nothing = {0};
    const uint8_t seed = take_byte(source);
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
    if (board == NULL) {
        make_numbers();
        board = aligned_alloc(64, (BOARD + 63) / 64 * 64);
        if (board == NULL)
            abort();
    }
    source source = {data, data + size};
    uint8_t way = take_byte(&source);
    fill_board(way);
    if (way < 112)
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
