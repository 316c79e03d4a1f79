/* A copy of a part of an array that the library cannot take from the file as it lies: in row-major order, in this
 * machine's byte order, next to each other. */
#ifndef ONEPASS_CLI_GATHER_H
#define ONEPASS_CLI_GATHER_H

#include "input.h"

/* An array at a shape that it was broadcast to. */
typedef struct view {
    input *input;
    int32_t ndim; /* as few as the strides allow; at least 1 */
    int64_t shape[ONEPASS_MAX_DIMENSIONS];
    int64_t stride[ONEPASS_MAX_DIMENSIONS]; /* in elements; 0 where it is broadcast */
} view;

/* Copies elements from `first` on, mapping no more than a window of the file at a time. False: it has complained. */
bool gather(const view *view, int64_t first, int64_t count, unsigned char *copy, int threads);

/* Turns the bytes of each element around; it has more than one. */
void swap_bytes(void *to, const void *from, int64_t count, size_t element_size);

#endif
