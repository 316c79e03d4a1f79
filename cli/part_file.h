/* A file with the state of a part of a whole, as --state writes it and onepass merge reads it: what the library exports
 * of an accumulator, behind which part it is and the type of the answer. */
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

int part_write(output *output, const part *part, int32_t value_dtype, const onepass_accumulator *accumulator);

/* A file that was read. What a program other than the tool has exported is taken too: then the part is 0 of 0, and the
 * type that of the computation. */
typedef struct part_file {
    const char *path;
    part part;
    int32_t value_dtype;
    onepass_accumulator *accumulator;
    onepass_accumulator_info info;
} part_file;

/* Complains of what is wrong. The accumulator is the caller's to destroy, whether that went well or not. */
int part_read(part_file *file, const char *path);

#endif
