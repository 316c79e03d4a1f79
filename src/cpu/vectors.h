/*
 * The CPU engine's entries for vector losses, and what it hands to their functions. vectors.c is compiled once for each
 * instruction set and compute type, vector_unit.c once for each header as well.
 */
#ifndef ONEPASS_CPU_VECTORS_H
#define ONEPASS_CPU_VECTORS_H

#include "cpu/run.h"
#include "vector_sums.h"

/* As cpu_rows_function of rows.h, which calls it: `count` rows from `first` on. */
typedef void cpu_vectors_function(const job *job, int64_t first, int64_t count, void *terms);

/* A row that threads share, by its tiles. First each thread leaves the sums of its spans of 2^level tiles, those of the
 * i-th sum from node[i] on, ... */
typedef void cpu_vector_sums_function(const job *job, int64_t row, int64_t first_tile, int64_t end_tile, int level,
                                      double *const *node);

/* ... then one finishes the row, of the sums of all, ... */
typedef void cpu_vector_finish_function(const job *job, int64_t row, const double *sum, vector_slopes *slopes,
                                        void *term);

/* ... and each writes the gradients of its tiles. */
typedef void cpu_vector_slopes_function(const job *job, int64_t row, int64_t first_tile, int64_t end_tile,
                                        const vector_slopes *slopes);

#endif
