/*
 * The sections of the tests on a GPU. Each returns 0 if all was as expected. With
 * `reduced` set it does the same work on a few small inputs, for compute-sanitizer,
 * under which a launch takes a thousand times as long.
 */
#ifndef ONEPASS_TESTS_TEST_CUDA_H
#define ONEPASS_TESTS_TEST_CUDA_H

#include "check.h"

#include <stdbool.h>

/* The end of a section; the next one counts from 0. */
static inline int section_finish(void) {
    const int status = check_finish();
    check_passed = check_failed = 0;
    return status;
}

/* test_cuda_cases.c */
int test_cuda_cases(bool reduced);
int test_cuda_shapes(bool reduced);
int test_cuda_scale(bool reduced);
int test_cuda_skip_if_one(bool reduced);

/* test_cuda_sizes.c */
int test_cuda_sizes(bool reduced);
int test_cuda_repeats(bool reduced);
int test_cuda_reciprocals(bool reduced);
int test_cuda_large(bool reduced);
int test_cuda_beyond_32_bits(bool reduced);

/* test_cuda_graphs.c; the first three must be the first that a process does. */
int test_cuda_first_capture_global(bool reduced);
int test_cuda_first_capture_thread_local(bool reduced);
int test_cuda_first_capture_relaxed(bool reduced);
int test_cuda_graphs(bool reduced);

/* test_cuda_threads.c; likewise the first. */
int test_cuda_first_threads(bool reduced);
int test_cuda_threads(bool reduced);

/* test_cuda_state.c */
int test_cuda_memory(bool reduced);
int test_cuda_contexts(bool reduced);
int test_cuda_refusals(bool reduced);
int test_cuda_workspace(bool reduced);

/* test_cuda_rows.c */
int test_cuda_rows(bool reduced);
int test_cuda_rows_clusters(bool reduced);
int test_cuda_rows_graphs(bool reduced);
int test_cuda_rows_threads(bool reduced);
int test_cuda_rows_beyond(bool reduced);

/* test_cuda_rows_edges.c */
int test_cuda_rows_edges(bool reduced);

/* test_cuda_rows_shards.c */
int test_cuda_rows_shards(bool reduced);

/* test_cuda_slices.c */
int test_cuda_slices(bool reduced);

/* test_cuda_vectors.c */
int test_cuda_vectors(bool reduced);
int test_cuda_vectors_graphs(bool reduced);
int test_cuda_vectors_beyond(bool reduced);

#endif
