/* A pass over the files on the CPU, piece by piece: what divisor.c and on_cpu.c share. */
#ifndef ONEPASS_CLI_PASS_H
#define ONEPASS_CLI_PASS_H

#include "progress.h"
#include "task.h"

typedef struct pass {
    task *task;
    onepass_call call; /* the task's, as the accumulator wants it */
    pieces pieces;
    source source[INPUTS];
    unsigned char *output[OUTPUTS];   /* of a piece; null: not wanted */
    onepass_accumulator *accumulator; /* null: the reduction is none */
    bool nothing_takes_part;          /* the mask leaves no element */
    progress progress;
    uint64_t done_bytes;
} pass;

/* The next piece from `first` on; false at the end. */
bool next_piece(const pass *pass, int64_t first, extents *piece);

/* Says that so many bytes more have been read or written. */
void step_forward(pass *pass, uint64_t bytes);

/* A tensor of the piece's shape. */
onepass_tensor piece_tensor(const void *data, int32_t dtype, const extents *piece);

/* Where weights or a mask decide what the gradients of a mean are divided by, finds it out and lets the pass's call
 * have it. */
int find_divisor(pass *pass);

#endif
