/* A file with the state of a part of a whole, as --state writes it and onepass merge reads it: what the library exports
 * of an accumulator, behind which part it is, the type of the answer and what tells parts of other files. */
#ifndef ONEPASS_CLI_PART_FILE_H
#define ONEPASS_CLI_PART_FILE_H

#include "output.h"

/* Which part, from 1 on, of how many. */
enum {
    MOST_PARTS = 1000000
};

typedef struct part {
    int32_t index, count; /* 0 of 0: all, or nobody knows */
} part;

/* The elements, or rows, of a part are those from part_begin() to part_end() - 1. */
int64_t part_begin(const part *part, int64_t elements);
int64_t part_end(const part *part, int64_t elements);

/* What all parts of a whole were computed from, as far as it can be told without reading all of it: of each input, the
 * operands, the weight and the mask, its type and its shape. And fingerprints of some numbers on both sides of where
 * the part begins and where it ends: the part before, and the one behind, have seen the same. 0: there is nothing. */
enum {
    PART_INPUTS = ONEPASS_MAX_OPERANDS + 2
};

typedef struct part_input {
    int32_t dtype; /* 0: there is no such input */
    int32_t ndim;
    int64_t shape[ONEPASS_MAX_DIMENSIONS];
} part_input;

typedef struct part_origin {
    part_input input[PART_INPUTS];
    int32_t axis; /* of the classes, or the first one of a vector; else 0 */
    uint64_t before, behind;
} part_origin;

int part_write(output *output, const part *part, int32_t value_dtype, const part_origin *origin,
               const onepass_accumulator *accumulator);

/* A file that was read. What a program other than the tool has exported is taken too: then the part is 0 of 0, and the
 * type that of the computation. */
typedef struct part_file {
    const char *path;
    part part;
    int32_t value_dtype;
    part_origin origin;
    onepass_accumulator *accumulator;
    onepass_accumulator_info info;
} part_file;

/* Complains of what is wrong. The accumulator is the caller's to destroy, whether that went well or not. */
int part_read(part_file *file, const char *path);

#endif
