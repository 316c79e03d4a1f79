/* NumPy's file format: a magic, a version, and a Python dictionary that describes the bytes after it. */
#ifndef ONEPASS_CLI_NPY_H
#define ONEPASS_CLI_NPY_H

#include "layout.h"

/* Whether a file that begins like this is meant to be one: the magic, or as much of it as there is. */
bool npy_is_meant(const unsigned char *head, size_t size);

/* `head` is the file's beginning: all of it, or at least the header. Nothing beyond `size` bytes is read, whatever the
 * header says. */
bool npy_parse(const unsigned char *head, size_t size, uint64_t file_size, purpose purpose, layout *layout,
               problem *problem);

/* The header of a file with an array of numbers in C order, in this machine's byte order, to the byte as NumPy 2 writes
 * it. Returns its length, a multiple of 64. */
enum {
    NPY_MOST_HEADER = 1024
};
size_t npy_write_header(char header[NPY_MOST_HEADER], int32_t dtype, int32_t ndim, const int64_t *shape);

#endif
