/* A pass over the files of a loss over rows or of vectors: its pieces are slices of rows. */
#ifndef ONEPASS_CLI_ROWS_H
#define ONEPASS_CLI_ROWS_H

#include "pass.h"

/* As open_pass. */
int open_rows(pass *pass);

/* Opens what has one number a row, and the class weights, for slices of so many rows. */
int open_row_numbers(pass *pass, int64_t rows);

/* Bytes that a row has in all inputs and outputs. */
uint64_t bytes_of_a_row(const task *task);

/* Computes a slice and writes its outputs. */
int run_rows(pass *pass, int64_t first, const onepass_shape *piece);

/* How many numbers an input has for a row; of class weights, which no row has, 0. */
int64_t numbers_of_a_row(const task *task, int input);

/* The tensor of an input for the rows of a piece from `first` on. `shape` stays with the tensor. False: it has
 * complained. */
bool take_rows(pass *pass, int input, int64_t first, const onepass_shape *shape, onepass_tensor *tensor);

/* complain_of_library(), but names the file of a label that is no class. */
int complain_of_rows(const task *task, onepass_status status);

#endif
