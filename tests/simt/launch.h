/*
 * A planned launch on the CPU: which kernel it is, in which library, and how it is called. The workspace is the test's,
 * which has given it before.
 */
#ifndef ONEPASS_TESTS_SIMT_LAUNCH_H
#define ONEPASS_TESTS_SIMT_LAUNCH_H

#include "cuda/plan.h"
#include "simt.h"

#include <stdbool.h>

enum {
    MULTIPROCESSORS = 132, /* of an H200 */
    MARGIN = 256           /* bytes of poison behind the part of the workspace that a launch asks for */
};

/* Of an H200, too, unless a test wants a smaller GPU. */
extern cuda_limits simt_limits;

typedef struct kernel_name {
    char text[64];
} kernel_name;

kernel_name simt_name(const char *loss, cuda_variant variant);

/* Runs the blocks from `first_block` on, or all if their number is 0. False: there is no such kernel. */
bool simt_run_plan(const cuda_launch *launch, uint64_t seed, uint32_t first_block, uint32_t block_count);

/* Whether a kernel was launched since the last time that all were forgotten. */
bool simt_was_launched(const kernel_name *name);
void simt_forget_launches(void);

#endif
