/*
 * What the plans of losses over rows have in common: row_variant.c chooses the kernel, row_shape.c its blocks, rows.c
 * the launches.
 */
#ifndef ONEPASS_CUDA_ROW_PLAN_H
#define ONEPASS_CUDA_ROW_PLAN_H

#include "cuda/arithmetic.h"
#include "cuda/job.h"
#include "cuda/plan.h"
#include "dtype.h"
#include "order.h"

/* Of a block where threads have rows. */
#define ROW_THREADS 128

static inline int64_t tiles_of(int64_t count) {
    return count / ORDER_TILE + (count % ORDER_TILE != 0);
}

/* ----------------------------------------------------------------- variants -- */

static inline bool is_sized_variant(cuda_variant variant) {
    return variant == variant_rows_sized_forward || variant == variant_rows_sized_both ||
           variant == variant_rows_sized_more_forward || variant == variant_rows_sized_more_both ||
           variant == variant_rows_plain_forward || variant == variant_rows_plain_both;
}

/* Whether a thread has all classes of a row in its registers, */
static inline bool is_few_variant(cuda_variant variant) {
    return is_sized_variant(variant) || variant == variant_rows_few_forward || variant == variant_rows_few_both ||
           variant == variant_rows_fewer_forward || variant == variant_rows_fewer_both;
}

/* Whether lanes share out a row. */
static inline bool is_team_variant(cuda_variant variant) {
    return variant == variant_rows_teams_forward || variant == variant_rows_teams_both;
}

/* or so has a block, which reads them once anyway. */
static inline bool keeps_rows(cuda_variant variant) {
    return is_few_variant(variant) || variant == variant_rows_aside || variant == variant_rows_aside_wide ||
           is_team_variant(variant);
}

/* Whether there is nothing to know of rows but labels. */
static inline bool is_simple_variant(cuda_variant variant) {
    return variant == variant_rows_simple_forward || variant == variant_rows_simple_both ||
           variant == variant_rows_simple_single || variant == variant_rows_simple_wide ||
           variant == variant_rows_wide_bf16 || variant == variant_rows_cluster;
}

/* Whether values alone come of it. */
static inline bool is_forward(cuda_variant variant) {
    return variant == variant_rows_forward || variant == variant_rows_long_forward ||
           variant == variant_rows_simple_forward || variant == variant_rows_weighed_forward ||
           variant == variant_rows_loose_forward || variant == variant_rows_teams_forward ||
           variant == variant_rows_told;
}

/* src/cuda/row_variant.c: the kernel that has a job's rows, and whether these, of few classes, lie in one piece. */
ONEPASS_INTERNAL cuda_variant onepass_cuda_row_variant(const job *job, const cuda_limits *limits, bool *in_one_piece);

/* Whether slopes are made of the logarithm of the sum, which takes long and is else left for later. */
ONEPASS_INTERNAL bool onepass_cuda_needs_lse(const job *job);

/* src/cuda/row_shape.c: shared memory of a block where a cluster has rows of so many tiles. */
ONEPASS_INTERNAL int32_t onepass_cuda_cluster_shared_memory(int64_t tiles);

/* What a kernel that keeps its rows is told about them. */
ONEPASS_INTERNAL void onepass_cuda_plan_kept_rows(const job *job, bool in_one_piece, cuda_row *row);

/* The kernel of a launch that is planned, or one that has nothing left to ask about. */
ONEPASS_INTERNAL cuda_variant onepass_cuda_plain_variant(const job *job, const cuda_launch *launch, bool in_one_piece);

/* src/cuda/row_shape.c: how many lines of rows a block has where it keeps rows of few classes, or shares them out; by
 * how many warps, as the power of two; and blocks, threads and shared memory of a launch that is planned otherwise. */
ONEPASS_INTERNAL int32_t onepass_cuda_lines_of_block(const job *job, int32_t multiprocessors);
ONEPASS_INTERNAL int32_t onepass_cuda_lines_aside(const job *job, int32_t multiprocessors);
ONEPASS_INTERNAL int32_t onepass_cuda_lines_of_teams(const job *job, int32_t multiprocessors);
ONEPASS_INTERNAL int32_t onepass_cuda_log2_of_row(const job *job, cuda_variant variant);
ONEPASS_INTERNAL void onepass_cuda_plan_row_shape(const job *job, const cuda_limits *limits, cuda_launch *launch);

#endif
