/* Tensors of cases: their memory and the numbers in it. */
#include "case_tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GUARD = 64,
    POISON = 0xA5
};

void *case_allocate(size_t bytes) {
    void *memory = calloc(bytes ? bytes : 1, 1);
    if (!memory) {
        abort();
    }
    return memory;
}

/* -------------------------------------------------------------- numbers -- */

const char *case_type_name(int32_t dtype) {
    return dtype == ONEPASS_I64   ? "i64"
           : dtype == ONEPASS_I32 ? "i32"
           : dtype == ONEPASS_U8  ? "u8"
           : dtype                ? oracle_dtype_name(dtype)
                                  : "none";
}

size_t case_type_size(int32_t dtype) {
    return dtype == ONEPASS_I64 ? 8 : dtype == ONEPASS_I32 ? 4 : dtype == ONEPASS_U8 ? 1 : oracle_size(dtype);
}

double case_load(int32_t dtype, const void *at) {
    int64_t i64;
    int32_t i32;
    switch (dtype) {
    case ONEPASS_I64:
        memcpy(&i64, at, sizeof i64);
        return (double)i64;
    case ONEPASS_I32:
        memcpy(&i32, at, sizeof i32);
        return i32;
    case ONEPASS_U8:
        return *(const unsigned char *)at;
    default:
        return oracle_load(dtype, at);
    }
}

void case_store(int32_t dtype, void *at, double number) {
    const int64_t whole = dtype == ONEPASS_I64 || dtype == ONEPASS_I32 || dtype == ONEPASS_U8 ? (int64_t)number : 0;
    const int32_t i32 = (int32_t)whole;
    switch (dtype) {
    case ONEPASS_I64:
        memcpy(at, &whole, sizeof whole);
        break;
    case ONEPASS_I32:
        memcpy(at, &i32, sizeof i32);
        break;
    case ONEPASS_U8: /* which has no number below 0 to end a list with, or to be ignored */
        *(unsigned char *)at = (unsigned char)whole;
        break;
    default:
        oracle_store(dtype, at, number);
    }
}

double case_uniform(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

double case_normal(uint64_t *state) {
    return 2 * (case_uniform(state) + case_uniform(state) + case_uniform(state) + case_uniform(state) - 2);
}

/* --------------------------------------------------------------- memory -- */

int64_t case_count(const case_tensor *of) {
    int64_t count = 1;
    for (int32_t d = 0; d < of->tensor.ndim; d++) {
        count *= of->shape[d];
    }
    return count;
}

void case_place(case_tensor *of) {
    int64_t low = 0, high = 0;
    const int64_t size = (int64_t)case_type_size(of->tensor.dtype);
    const bool empty = case_count(of) == 0;
    for (int32_t d = 0; d < of->tensor.ndim && !empty; d++) {
        const int64_t reach = (of->shape[d] - 1) * of->strides[d];
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
    }
    of->bytes = (size_t)((empty ? 0 : high - low + 1) * size) + 2 * GUARD;
    of->memory = case_allocate(of->bytes);
    case_poison(of);
    of->tensor.data = of->memory + GUARD - low * size;
    of->tensor.shape = of->shape;
    of->tensor.strides = of->strides;
}

void case_share(case_tensor *of, const case_tensor *owner) {
    *of = *owner;
    of->tensor.shape = of->shape;
    of->tensor.strides = of->strides;
}

void case_poison(const case_tensor *of) {
    memset(of->memory, POISON, of->bytes);
}

static bool is_poison(const unsigned char *memory, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        if (memory[i] != POISON) {
            return false;
        }
    }
    return true;
}

bool case_is_poison(const case_tensor *of) {
    return is_poison(of->memory, of->bytes);
}

/* The elements' bytes are made poison in a copy, in which then nothing else may be left. */
bool case_kept_fence(const case_tensor *of) {
    unsigned char *copy = case_allocate(of->bytes);
    unsigned char *first = copy + ((unsigned char *)of->tensor.data - of->memory);
    const int64_t count = case_count(of), size = (int64_t)case_type_size(of->tensor.dtype);
    memcpy(copy, of->memory, of->bytes);
    for (int64_t i = 0; i < count; i++) {
        int64_t offset = 0, rest = i;
        for (int32_t d = of->tensor.ndim - 1; d >= 0; d--) {
            offset += rest % of->shape[d] * of->strides[d];
            rest /= of->shape[d];
        }
        memset(first + offset * size, POISON, (size_t)size);
    }
    const bool kept = is_poison(copy, of->bytes);
    free(copy);
    return kept;
}

bool case_tensor_equal(const case_tensor *expected, const unsigned char *got, char *text, size_t size) {
    for (size_t i = 0; i < expected->bytes; i++) {
        if (expected->memory[i] != got[i]) {
            const size_t each = case_type_size(expected->tensor.dtype), first = i / each * each;
            uint64_t a = 0, b = 0;
            memcpy(&a, expected->memory + first, each);
            memcpy(&b, got + first, each);
            snprintf(text, size, "a tensor of %s, element %lld of its memory: expected %llx, got %llx",
                     case_type_name(expected->tensor.dtype), (long long)(first / each) - (long long)(GUARD / each),
                     (unsigned long long)a, (unsigned long long)b);
            return false;
        }
    }
    return true;
}
