/*
 * A tensor of a case of row or vector losses: memory of its own, poisoned, with guard bytes before and behind it, and
 * numbers of any type in it.
 */
#ifndef ONEPASS_TESTS_CASE_TENSOR_H
#define ONEPASS_TESTS_CASE_TENSOR_H

#include "oracle.h"

#include <stdbool.h>

enum {
    CASE_DIMENSIONS = 4
};

typedef struct case_tensor {
    onepass_tensor tensor;
    int64_t shape[CASE_DIMENSIONS], strides[CASE_DIMENSIONS];
    unsigned char *memory;
    size_t bytes;

    /* Of rows: the axis of the classes; -1: it has a number a row, or one. */
    int32_t axis;

    /* Of vectors: strides at the common shape, 0 where it is repeated, and the rows and elements that it has apart from
     * each other, as an output. */
    int64_t steps[CASE_DIMENSIONS];
    int64_t rows, elements;
} case_tensor;

/* Memory, all of it 0. Whoever gets none ends. */
void *case_allocate(size_t bytes);

const char *case_type_name(int32_t dtype); /* "none" for 0 */
size_t case_type_size(int32_t dtype);

/* A number of any type. */
double case_load(int32_t dtype, const void *at);
void case_store(int32_t dtype, void *at, double number);

int64_t case_count(const case_tensor *of);

/* Gives memory to a tensor whose shape, strides and type are there. */
void case_place(case_tensor *of);

/* Another tensor in the memory of one: a gradient over its operand. */
void case_share(case_tensor *of, const case_tensor *owner);

void case_poison(const case_tensor *of);
bool case_is_poison(const case_tensor *of);

/* Whether nothing but its elements was written. */
bool case_kept_fence(const case_tensor *of);

/* SplitMix64: a number from 0 to 1; and one around 0, in a bell of four of them. */
double case_uniform(uint64_t *state);
double case_normal(uint64_t *state);

/* Whether a tensor's memory is what another run of the case has left, poison included; if not, says where they first
 * differ. */
bool case_tensor_equal(const case_tensor *expected, const unsigned char *got, char *text, size_t size);

#endif
