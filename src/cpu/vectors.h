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

/* The tiles of a row that one thread has. What is summed over them it leaves for spans of 2^level tiles: of the i-th
 * sum from node[i] on. */
typedef struct vector_share {
    int64_t row, first_tile, end_tile;
    int level;
    double *const *node;
} vector_share;

/* The most sums that a row has at a time: those of softmaxes. */
#define VECTOR_MOST_NODES 5

/* What threads that share a row do one after the other. Of a loss with softmaxes each has its tiles' largest logits,
 * ... */
typedef void cpu_vector_largest_function(const job *job, const vector_share *share, double *largest);

/* ... with those of the row the sums that softmaxes are made of, ... */
typedef void cpu_vector_softmaxes_function(const job *job, const vector_share *share, const double *largest);

/* ... of which one makes what is known of the row; ... */
typedef void cpu_vector_know_function(const job *job, const double *largest, const double *sum,
                                      vector_softmaxes *softmaxes);

/* ... then each has the sums of its tiles, ... */
typedef void cpu_vector_sums_function(const job *job, const vector_share *share, const vector_softmaxes *softmaxes);

/* ... one finishes the row, of the sums of all, ... */
typedef void cpu_vector_finish_function(const job *job, int64_t row, const double *sum,
                                        const vector_softmaxes *softmaxes, vector_slopes *slopes, void *term);

/* ... and each writes the gradients of its tiles. */
typedef void cpu_vector_slopes_function(const job *job, const vector_share *share, const vector_softmaxes *softmaxes,
                                        const vector_slopes *slopes);

#endif
