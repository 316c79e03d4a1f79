/*
 * A slice of an accumulator as launches, one after the other on one stream: a launch for each node of the tree, which
 * leaves its sum among the results, and one for the terms of a torn tile. Of losses over rows and vectors all rows are
 * computed at once, and their terms, which are in the workspace, are then added up node by node.
 *
 * Nothing here touches the driver, so that the tests can run a slice on the CPU.
 */
#ifndef ONEPASS_CUDA_SLICE_H
#define ONEPASS_CUDA_SLICE_H

#include "cuda/plan.h"
#include "parts.h"

/* Who launches and copies. Before there is a workspace, to find out how much is needed, its address is 0. */
typedef struct cuda_visitor {
    onepass_status (*launch)(struct cuda_visitor *visitor, cuda_launch *launch);
    onepass_status (*copy)(struct cuda_visitor *visitor, char *to, const char *from, size_t size);
    cuda_limits limits;
    uintptr_t workspace;
    char *results;
} cuda_visitor;

/* The job has neither value nor sum, and divides by what the whole is divided by. */
ONEPASS_INTERNAL onepass_status onepass_cuda_visit_slice(const job *job, const slice_parts *parts,
                                                         cuda_visitor *visitor);

#endif
