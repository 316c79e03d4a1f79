/*
 * From a job to a launch. Nothing here touches the driver, so that the tests can plan a launch and run it on the CPU.
 */
#ifndef ONEPASS_CUDA_PLAN_H
#define ONEPASS_CUDA_PLAN_H

#include "cuda/kernels.def"
#include "cuda/parameter.h"

/* ---------------------------------------------------------------- kernels -- */

/* The kinds of parameters. */
typedef enum cuda_kind {
    kind_direct,
    kind_weighted,
    kind_small,
    kind_small_mean,
    kind_few,
    kind_few_mean,
    kind_backward,
    kind_whole,
    kind_tiny,
    kind_tiny_mean,
    kind_tiny_both,
    kind_general,
    kind_row,
    kind_vector,
    kind_terms,
    kind_divided_by
} cuda_kind;

/* Kernels of this kind and those behind it wait for the launch before theirs by themselves: see gpu.h. */
#define FIRST_KIND_THAT_WAITS kind_row

/* Every kernel that there may be: those of a loss, those that scale, and those of losses over rows. */
#define CUDA_EVERY_ROW_KERNEL(KERNEL)                                                                                  \
    CUDA_ROW_KERNELS_LABEL_F32(KERNEL, )                                                                               \
    CUDA_ROW_KERNELS_PICKED_F32(KERNEL, )                                                                              \
    CUDA_ROW_KERNELS_NO_LOSS(KERNEL, )                                                                                 \
    CUDA_LONG_KERNELS_F32(KERNEL, )                                                                                    \
    CUDA_SOFTMAXES_F32(KERNEL, )

#define CUDA_ENUMERATOR(loss, variant, ...) variant_##variant,
typedef enum cuda_variant {
    CUDA_KERNELS_2_F32(CUDA_ENUMERATOR, )
    CUDA_KERNELS_0_F32(CUDA_ENUMERATOR, ) CUDA_EVERY_ROW_KERNEL(CUDA_ENUMERATOR) CUDA_VARIANTS
} cuda_variant;
#undef CUDA_ENUMERATOR

typedef struct cuda_variant_info {
    const char *name;
    cuda_kind kind;
    direction direction;
} cuda_variant_info;

/* src/cuda/variant.c */
ONEPASS_INTERNAL extern const cuda_variant_info onepass_cuda_variant[CUDA_VARIANTS];
ONEPASS_INTERNAL bool onepass_cuda_has_variant(int32_t operands, int32_t compute, cuda_variant variant);
ONEPASS_INTERNAL bool onepass_cuda_has_row_variant(row_kind kind, int32_t compute, cuda_variant variant);
ONEPASS_INTERNAL bool onepass_cuda_has_vector_variant(const loss *loss, int32_t compute, cuda_variant variant);

/* The fastest that can do the job. Fills in what only a direct one is told. */
ONEPASS_INTERNAL cuda_variant onepass_cuda_choose_variant(const job *job, cuda_direct *direct);

/* Whether the launch that has the elements finds out what their mean is divided by, so that none comes before it. */
ONEPASS_INTERNAL bool onepass_cuda_weighs_itself(const job *job);

/* Whether the kernel reads what a mean is divided by where the caller has it. */
ONEPASS_INTERNAL bool onepass_cuda_finds_divisor(const job *job);

/* src/cuda/plan.c: those whose kernels serve every loss. */
ONEPASS_INTERNAL extern const loss onepass_cuda_weights, onepass_cuda_gradient;

/* src/cuda/rows.c: those of losses over rows that do. */
ONEPASS_INTERNAL extern const loss onepass_cuda_rows, onepass_cuda_terms;

/* src/cuda/rows.c: what a call says about logits. */
ONEPASS_INTERNAL void onepass_cuda_plan_softmax(const softmax_scale *scale, int32_t compute, cuda_softmax *told);

static inline bool is_mean(direction direction) {
    return (direction >= MEAN && direction <= MASK_MEAN) || direction >= MEAN_BOTH;
}

/* ----------------------------------------------------------------- launch -- */

/* What a plan asks about a GPU. */
typedef struct cuda_limits {
    int32_t multiprocessors;
    int32_t shared_memory; /* that a block can have, in bytes */
    int32_t clusters;      /* of CUDA_CLUSTER multiprocessors that there can be at a time; 0: none */
    bool overlaps;         /* a launch of a call may begin while the one before it ends */
} cuda_limits;

/* Which kernel, how large, with what. The kernel reads as much of the parameter as it knows. */
typedef struct cuda_launch {
    union {
        cuda_total total;
        cuda_head head;
        cuda_direct direct;
        cuda_weighted weighted;
        cuda_small small;
        cuda_small_mean small_mean;
        cuda_few few;
        cuda_few_mean few_mean;
        cuda_tiny_mean tiny_mean;
        cuda_backward backward;
        cuda_whole whole;
        cuda_tiny tiny;
        cuda_tiny_both tiny_both;
        cuda_general general;
        cuda_row row;
        cuda_vector vector;
        cuda_terms terms;
        cuda_divided_by divided_by;
    } parameter;
    const loss *loss;
    cuda_variant variant;
    int32_t compute;        /* ONEPASS_F32 or ONEPASS_F64: which of the loss's images has the kernel */
    uint32_t blocks;        /* 0: there is nothing to do */
    uint32_t threads;       /* of a block */
    uint32_t shared_memory; /* of a block, in bytes */
    size_t workspace;       /* bytes that parameter.total.workspace must have; 0 if none is needed */
    bool sums_terms;        /* its operand is in the workspace: the address is one within */
} cuda_launch;

/* Tests set these to try other kernels and launch shapes than the plan would choose; 0 leaves it the choice. */
enum {
    CUDA_GENERAL_KERNELS = 1, /* whatever the tensors */
    CUDA_LARGE_KERNELS = 2,   /* not those for small inputs */
    CUDA_SMALL_KERNELS = 3    /* not those for tiny ones */
};
typedef struct cuda_shape {
    int32_t warps;
    int32_t tiles_per_block;
    int32_t most_blocks;
    int32_t kernels;
} cuda_shape;
ONEPASS_INTERNAL extern cuda_shape onepass_cuda_shape;

/* src/cuda/shape.c: blocks and threads of a launch that is planned otherwise. */
ONEPASS_INTERNAL void onepass_cuda_plan_shape(const job *job, int32_t multiprocessors, cuda_launch *launch);

/* src/cuda/plan.c: the launch that has the elements of a job which is not over rows. */
ONEPASS_INTERNAL void onepass_cuda_plan(const job *job, int32_t multiprocessors, cuda_launch *launch);
ONEPASS_INTERNAL void onepass_cuda_plan_view(const view *view, cuda_view *general);

/* src/cuda/rows.c: all launches of a job, one after the other, in the same workspace; false: there is none of this
 * number. What rows predict, and what a mean is divided by, may be found out in some before the one that has the
 * elements or rows, and the terms of rows are added up in one behind it. */
#define CUDA_MOST_STEPS 9
ONEPASS_INTERNAL bool onepass_cuda_plan_step(const job *job, int step, const cuda_limits *limits, cuda_launch *launch);

/* The sum of the terms, or of the weights, that rows have left in the workspace, from onepass_cuda_terms_at() on; and
 * how much workspace that takes. */
ONEPASS_INTERNAL void onepass_cuda_plan_terms(const job *job, bool of_weights, int32_t multiprocessors,
                                              cuda_launch *launch);
ONEPASS_INTERNAL int64_t onepass_cuda_terms_at(const job *job);
ONEPASS_INTERNAL size_t onepass_cuda_terms_size(const job *job);

/* What each row of a job of FAMILY_ROW_WEIGHTS counts for, or how many rows do. */
ONEPASS_INTERNAL void onepass_cuda_plan_row_weights(const job *job, cuda_launch *launch);

/* src/cuda/vectors.c: the launches that have the rows of a vector loss, from 0 on, and how many there are. */
ONEPASS_INTERNAL int onepass_cuda_vector_steps(const job *job, const cuda_limits *limits);
ONEPASS_INTERNAL void onepass_cuda_plan_vectors(const job *job, int step, const cuda_limits *limits,
                                                cuda_launch *launch);

/* The most shared memory that any launch of a kernel asks for, if that is more than a block has unless the driver is
 * told; else 0. */
ONEPASS_INTERNAL int32_t onepass_cuda_most_shared_memory(const cuda_launch *launch, const cuda_limits *limits);

/* What was planned gets its workspace: `launch->workspace` bytes. */
ONEPASS_INTERNAL void onepass_cuda_give_workspace(cuda_launch *launch, void *workspace);

#endif
