/* The board of fuzz_board.h: bytes, arenas, tensors in them, and what must hold of them after a call. */
#include "fuzz_board.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

long fuzz_failures;
bool fuzz_goes_on;

void fuzz_check(bool holds, const char *otherwise) {
    if (holds)
        return;
    fuzz_failures++;
    fprintf(stderr, "fuzz_arguments: %s; the last message is \"%s\"\n", otherwise, onepass_message());
    if (!fuzz_goes_on)
        abort();
}

/* ---------------------------------------------------------------- the bytes -- */

uint8_t take_byte(source *source) {
    return source->next < source->end ? *source->next++ : 0;
}

uint64_t take_word(source *source) {
    uint64_t word = 0;
    for (int i = 0; i < 8; i++)
        word = word << 8 | take_byte(source);
    return word;
}

int64_t take_number(source *source, int64_t small) {
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

double take_real(source *source) {
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

uint8_t *arena_at(int index) {
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

void fill_board(uint8_t seed) {
    if (board == NULL) {
        make_numbers();
        board = aligned_alloc(64, (BOARD + 63) / 64 * 64);
        if (board == NULL)
            abort();
    }
    open_guards();
    memcpy(before, numbers + 2 * seed, BOARD);
    memcpy(board, before, BOARD);
    close_guards();
}

void put_bytes(void *at, const void *bytes, size_t size) {
    memcpy(at, bytes, size);
    memcpy(before + ((uint8_t *)at - board), bytes, size);
}

/* ---------------------------------------------------------------- tensors -- */

size_t element_size(int32_t dtype) {
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

void take_shape(source *source, fuzzed_tensor *t, const fuzzed_tensor *like) {
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

void take_strides(source *source, fuzzed_tensor *t) {
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

bool is_sound(const onepass_tensor *tensor) {
    if (tensor->dtype < ONEPASS_F16 || tensor->dtype > ONEPASS_U8 || tensor->ndim < 0 ||
        tensor->ndim > ONEPASS_MAX_DIMENSIONS || (tensor->ndim > 0 && tensor->shape == NULL))
        return false;
    for (int32_t d = 0; d < tensor->ndim; d++)
        if (tensor->shape[d] < 0)
            return false;
    return true;
}

int64_t elements_up_to(const onepass_tensor *tensor, int64_t most) {
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

void take_place(source *source, fuzzed_tensor *t, int usual_arena) {
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

bool fits(const onepass_tensor *tensor) {
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

bool put_one(const onepass_tensor *upstream) {
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
    put_bytes(upstream->data, one, element_size(upstream->dtype));
    return true;
}

void check_message(onepass_status status) {
    const char *message = onepass_message();
    if (status == ONEPASS_OK)
        fuzz_check(message[0] == '\0', "a message although all is well");
    else
        fuzz_check(message[0] != '\0' && message[strlen(message) - 1] != '\n' && strlen(message) < 4096,
                   "an error without a proper message");
}

void check_board(const onepass_call *call, onepass_status status) {
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
        const bool sums = call->value == NULL && call->gradient[0] == NULL; /* of tiles, if there are places for them */
        mark(call->value == NULL ? call->row_state : NULL, INPUT);
        mark(sums ? NULL : call->tile_sums, INPUT);
        mark(sums ? NULL : call->label_logit, INPUT);
        for (int k = 0; k < 3; k++)
            apart &= mark(call->gradient[k], OUTPUT);
        apart &= mark(call->value, OUTPUT);
        apart &= mark(call->value != NULL ? call->row_state : NULL, OUTPUT);
        apart &= mark(sums ? call->tile_sums : NULL, OUTPUT);
        apart &= mark(sums ? call->label_logit : NULL, OUTPUT);
        apart &= mark(call->log_sum_exp, OUTPUT);
        apart &= mark(call->predicted, OUTPUT);
        apart &= mark(call->divided_by, OUTPUT);
        fuzz_check(apart, "outputs were accepted that overlap");
    }
    fuzz_check(memcmp(board, before, BOARD) == 0, status == ONEPASS_OK ? "a byte was written that belongs to no output"
                                                                       : "an error, and something was written");
}
