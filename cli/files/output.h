/* A .npy file to be, which appears under its name when it is complete. */
#ifndef ONEPASS_CLI_OUTPUT_H
#define ONEPASS_CLI_OUTPUT_H

#include "replacement.h"
#include "source.h"

typedef struct output {
    replacement file; /* a name of null: not wanted */
    int index;        /* among the files that stop.h knows */
} output;

/* Looks whether there can be a file of this name, without making one. Complains if it is one of the inputs, a
 * directory, ... */
int output_check(output *output, int index, const char *path, const input *const *inputs, int count);

/* Makes the file beside its name; of a .npy file it also writes the header. */
int output_make(output *output);
int output_begin(output *output, int32_t dtype, const onepass_shape *shape);
int output_write(output *output, const void *bytes, size_t count);

/* First close all of them, then rename all. */
int output_close(output *output);
int output_rename(output *output);

/* Takes away what is not complete; also of an output that was not begun. */
void output_abandon(output *output);

#endif
