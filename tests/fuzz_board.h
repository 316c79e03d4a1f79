/*
 * What the fuzzers of calls share. Bytes become numbers, shapes and places; all tensors lie in a few arenas between
 * guard zones; and what a tensor may touch is worked out here, byte by byte and without the library's help.
 */
#ifndef ONEPASS_TESTS_FUZZ_BOARD_H
#define ONEPASS_TESTS_FUZZ_BOARD_H

#include <onepass.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fuzz.h"

/* libFuzzer keeps the input of a program that aborts; fuzz_driver.c goes on and counts. */
void fuzz_check(bool holds, const char *otherwise);

/* ---------------------------------------------------------------- the bytes -- */

typedef struct source {
    const uint8_t *next, *end;
} source;

/* Behind the end there are zeros, which decode to the plainest choice everywhere. */
uint8_t take_byte(source *source);
uint64_t take_word(source *source);

/* Mostly small numbers, sometimes those at which checks go wrong, sometimes anything. */
int64_t take_number(source *source, int64_t small);
double take_real(source *source);

/* ---------------------------------------------------------------- the arenas -- */

enum {
    ARENAS = 4,
    ARENA = 8192, /* bytes: two tiles of floats */
    GUARD = 256,
    BOARD = ARENAS * (ARENA + GUARD) + GUARD /* guard, arena, guard, arena, ..., guard */
};

uint8_t *arena_at(int index);

/* New numbers everywhere, and the guards closed. */
void fill_board(uint8_t seed);

/* Bytes of an arena that are there before the call. */
void put_bytes(void *at, const void *bytes, size_t size);

/* ---------------------------------------------------------------- tensors -- */

typedef struct fuzzed_tensor {
    onepass_tensor tensor;
    int64_t shape[ONEPASS_MAX_DIMENSIONS + 2];
    int64_t strides[ONEPASS_MAX_DIMENSIONS + 2];
} fuzzed_tensor;

size_t element_size(int32_t dtype);

/* The first tensor of a call has a shape of its own; later ones mostly take it, or a change of it that broadcasts. */
void take_shape(source *source, fuzzed_tensor *t, const fuzzed_tensor *like);
void take_strides(source *source, fuzzed_tensor *t);

/* Draws the place: mostly where the tensor fits, in an arena that may be shared. */
void take_place(source *source, fuzzed_tensor *t, int usual_arena);

/* Whether the library may take the tensor for a sound one at all; what is unsound it must refuse. */
bool is_sound(const onepass_tensor *tensor);

/* The number of elements, or `most` + 1 if there are more. */
int64_t elements_up_to(const onepass_tensor *tensor, int64_t most);

/* Whether all of it lies in one arena. */
bool fits(const onepass_tensor *tensor);

/* ---------------------------------------------------------------- what must hold -- */

enum {
    MOST_WORK = 1 << 14 /* elements; more would only be slow */
};

/* Makes the upstream gradient 1, where it is one element of an arena. */
bool put_one(const onepass_tensor *upstream);

void check_message(onepass_status status);

/* After a call: only the outputs' elements may differ from what was there before. */
void check_board(const onepass_call *call, onepass_status status);

/* fuzz_rows.c: calls of losses over rows. */
void fuzz_rows(source *source);

/* fuzz_vectors.c: calls of vector losses. */
void fuzz_vectors(source *source);

#endif
