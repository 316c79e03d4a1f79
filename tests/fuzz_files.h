/*
 * What the fuzzers of the parsers have in common: how bytes become a file, and what must hold of the answer.
 *
 * The choices are made by the last two bytes of the input, which are part of the file all the same. So a real file is
 * an input as it is, and one that ends in zeros, or in the end of line of a .npy file without elements, is taken as it
 * is.
 */
#ifndef ONEPASS_TESTS_FUZZ_FILES_H
#define ONEPASS_TESTS_FUZZ_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../cli/files/layout.h"
#include "fuzz.h"

/* libFuzzer keeps the input of a program that aborts; fuzz_driver.c goes on and counts. */
static inline void fuzz_check(bool holds, const char *otherwise) {
    if (holds)
        return;
    fuzz_failures++;
    fprintf(stderr, "%s\n", otherwise);
    if (!fuzz_goes_on)
        abort();
}

/* ---------------------------------------------------------------- choices -- */

typedef struct choice {
    unsigned dressing; /* 0 to 3: the bytes as they are, or behind a good beginning, or members that they choose */
    unsigned option;   /* 0 to 15 */
    unsigned relation; /* 0 to 3: of the file's size to that of its beginning */
    uint8_t amount;
} choice;

static inline choice choose(const uint8_t *data, size_t size) {
    const uint8_t last = size > 0 && data[size - 1] != '\n' ? data[size - 1] : 0;
    return (choice){
        .dressing = last & 3, .relation = last >> 2 & 3, .option = last >> 4, .amount = size > 1 ? data[size - 2] : 0};
}

/* The file is its beginning, or goes on, or has become shorter meanwhile, or is beyond all measure. */
static inline uint64_t choose_file_size(const choice *choice, size_t size) {
    static const uint64_t more[] = {0, 1, 2, 4, 6, 8, 12, 16, 24, 48, 96, 192};
    switch (choice->relation) {
    case 1:
        return size + more[choice->amount % (sizeof more / sizeof *more)];
    case 2:
        return size - (choice->amount < size ? choice->amount : size);
    case 3:
        return UINT64_MAX - choice->amount;
    }
    return size;
}

/* ---------------------------------------------------------------- the file -- */

/* A file that is put together piece by piece. Its block ends with it, so that a sanitizer sees who reads on. */
typedef struct built {
    unsigned char *bytes;
    size_t size;
} built;

static inline void append(built *built, const void *bytes, size_t size) {
    built->bytes = realloc(built->bytes, built->size + size + (built->size + size == 0));
    if (built->bytes == NULL)
        abort();
    if (size > 0)
        memcpy(built->bytes + built->size, bytes, size);
    built->size += size;
}

/* Random bytes make no header. Members that are good, or nearly so, sometimes do: the first byte says how many, and
 * those after it which. */
static inline void append_members(built *built, const uint8_t *data, size_t size, const char *const *members,
                                  size_t count) {
    const size_t wanted = size > 0 ? data[0] % 6 : 0;
    append(built, "{", 1);
    for (size_t i = 1; i <= wanted && i < size; i++)
        append(built, members[data[i] % count], strlen(members[data[i] % count]));
    append(built, "}", 1);
}

static inline void append_number(built *built, uint64_t number, int bytes) {
    for (int i = 0; i < bytes; i++) {
        const unsigned char byte = (unsigned char)(number >> (8 * i));
        append(built, &byte, 1);
    }
}

/* ---------------------------------------------------------------- answers -- */

static inline void check_problem(const problem *problem) {
    const char *end = memchr(problem->text, '\0', sizeof problem->text);
    fuzz_check(end != NULL && end > problem->text, "a failure has no sentence, or one without an end");
    for (const char *c = problem->text; end != NULL && c < end; c++)
        fuzz_check((unsigned char)*c >= ' ' && *c != 0x7f, "a sentence has a control character");
}

static inline bool is_dense(const layout *layout, bool fortran) {
    int64_t stride = 1;
    for (int32_t i = 0; i < layout->ndim; i++) {
        const int32_t d = fortran ? i : layout->ndim - 1 - i;
        if (layout->stride[d] != stride)
            return false;
        stride *= layout->shape[d];
    }
    return true;
}

static inline void check_layout(const layout *layout, uint64_t file_size) {
    fuzz_check(onepass_dtype_size(layout->dtype) > 0, "a layout has no type");
    fuzz_check(layout->ndim >= 0 && layout->ndim <= ONEPASS_MAX_DIMENSIONS, "a layout has too many dimensions");
    bool empty = false;
    int64_t count = 1;
    for (int32_t d = 0; d < layout->ndim; d++) {
        fuzz_check(layout->shape[d] >= 0, "an extent is negative");
        empty |= layout->shape[d] == 0;
        if (!empty)
            fuzz_check(!__builtin_mul_overflow(count, layout->shape[d], &count), "a shape overflows");
    }
    fuzz_check(layout->count == (empty ? 0 : count), "a count is not the product of the shape");
    for (int32_t d = 0; d < layout->ndim && empty; d++)
        fuzz_check(layout->stride[d] == 0, "an empty array has a stride");
    fuzz_check(empty || is_dense(layout, false) || is_dense(layout, true), "strides are of neither order");
    uint64_t bytes, end;
    const bool overflows = __builtin_mul_overflow((uint64_t)layout->count, onepass_dtype_size(layout->dtype), &bytes) ||
                           __builtin_add_overflow(layout->offset, bytes, &end);
    fuzz_check(!overflows && end <= file_size, "an array leaves its file");
}

#endif
