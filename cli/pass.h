/* A pass over the files on the CPU, piece by piece, so that neither the memory nor the bits depend on their sizes. */
#ifndef ONEPASS_CLI_PASS_H
#define ONEPASS_CLI_PASS_H

#include "progress.h"
#include "task.h"

typedef struct pass {
    task *task;
    onepass_call call;  /* the task's, as the accumulator wants it */
    int64_t first, end; /* the elements, or rows, of the task's part */
    pieces pieces;
    source source[INPUTS];
    unsigned char *output[OUTPUTS];   /* of a piece; null: not wanted */
    onepass_accumulator *accumulator; /* null: the reduction is none */
    bool nothing_takes_part;          /* mask and labels leave no element of a mean */
    onepass_accumulator *of_nothing;  /* the state of a part of such a mean; else null */
    bool is_whole;                    /* a loss over rows in one piece */
    int64_t gradient_rows;            /* of a loss over rows: gradients are computed for so many rows at a time */
    double *row_state;                /* of those of a piece, where they are fewer; or null */
    progress progress;
    uint64_t done_bytes;
} pass;

/* The next piece from `first` on; false at the end. */
bool next_piece(const pass *pass, int64_t first, onepass_shape *piece);

/* Says that so many bytes more have been read or written. */
void step_forward(pass *pass, uint64_t bytes);

/* A tensor of the piece's shape. */
onepass_tensor piece_tensor(const void *data, int32_t dtype, const onepass_shape *piece);

/* Bytes that one element has in all inputs and outputs. */
size_t bytes_of_an_element(const task *task);

/* What a slice comes to, and its gradients. */
onepass_status add_slice(pass *pass, const onepass_call *call, int64_t first);

/* Writes `count` numbers of each output from `first` to `end` - 1 that is wanted. */
int write_outputs(pass *pass, int first, int end, int64_t count);

/* Every pass that was opened is closed, whether that went well or not. */
int open_pass(pass *pass, task *task);
void close_pass(pass *pass);

#endif
