/*
 * Kernels of losses over elements on the CPU: a call as the plan would launch it, or in other shapes, against the CPU
 * engine. All launches share one workspace, whose poison is looked at after each.
 */
#ifndef ONEPASS_TESTS_SIMT_PAIRWISE_H
#define ONEPASS_TESTS_SIMT_PAIRWISE_H

#include "cases.h"
#include "plan/plan.h"
#include "launch.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

extern uint64_t simt_first_seed; /* added to every seed */
extern int32_t simt_flags;       /* of onepass_flags, for every case */

/* How a job was launched, for messages. */
typedef struct how {
    char text[160];
} how;

how simt_describe(const cuda_launch *launch, uint64_t seed);

/* Runs the blocks from `first_block` on, or all if their number is 0. A job without work has no launch. */
bool simt_run_blocks(cuda_launch *launch, uint64_t seed, uint32_t first_block, uint32_t block_count, const char *what);

/* Says whether it could be launched. */
bool simt_plan_and_run(const job *job, uint64_t seed, const char *what, cuda_launch *launch);

void simt_compare(const prepared_case *expected, const prepared_case *got, const char *how, const char *what);

/* In each of these shapes, or if there are none in the plan's own. */
void simt_run_case(const test_case *c, const cuda_shape *shapes, int count, uint64_t seed);

int32_t simt_compute_type(const test_case *c);

/* The parts of test_simt; quick: some of their cases. */
void test_simt_shapes(int32_t compute, bool quick);
void test_simt_scale(int32_t compute, bool quick);
void test_simt_skip_if_one(int32_t compute, bool quick);
void test_simt_divisors(void);

#endif
