/*
 * All launches of a job over rows or vectors on the CPU, one after the other, in a workspace of the size that they ask
 * for. What lies behind it is poison, and its head is left as the library expects it. A header of static functions,
 * like check.h.
 */
#ifndef ONEPASS_TESTS_SIMT_STEPS_H
#define ONEPASS_TESTS_SIMT_STEPS_H

#include "check.h"
#include "launch.h"

static unsigned char *workspace; /* zeroed once, and its head left zeroed */
static size_t workspace_size;

static inline void make_workspace(size_t size) {
    if (size + MARGIN + CUDA_WORKSPACE_HEAD > workspace_size) {
        free(workspace);
        workspace_size = (size + MARGIN + CUDA_WORKSPACE_HEAD + 255) / 256 * 256;
        workspace = aligned_alloc(256, workspace_size);
        memset(workspace, 0, workspace_size);
    }
    memset(workspace + CUDA_WORKSPACE_HEAD, 0xff, workspace_size - CUDA_WORKSPACE_HEAD);
}

/* The head is zero but for the sum of weights; nothing is written behind what was asked for. */
static inline void check_workspace(const char *name, size_t size, const char *what) {
    bool zero = true, clean = true;
    for (size_t i = 0; i < CUDA_WORKSPACE_HEAD; i++)
        zero &= workspace[i] == 0 || (i >= CUDA_WEIGHTS_AT && i < CUDA_WEIGHTS_AT + sizeof(double));
    for (size_t i = size > CUDA_WORKSPACE_HEAD ? size : CUDA_WORKSPACE_HEAD; i < workspace_size; i++)
        clean &= workspace[i] == 0xff;
    CHECK(zero, "%s, %s: expected the workspace's head at zero", name, what);
    CHECK(clean, "%s, %s: wrote beyond its %zu bytes of workspace", name, what, size);
}

static inline bool run_launch(cuda_launch *launch, size_t size, uint64_t seed, const char *what) {
    const kernel_name name = simt_name(launch->loss->info.name, launch->variant);
    const int32_t most = onepass_cuda_most_shared_memory(launch, &simt_limits);
    if (launch->blocks == 0)
        return true;
    if (!CHECK(launch->threads % 32 == 0 && launch->threads >= 32 && launch->threads <= CUDA_WIDE_WARPS * 32 &&
                   launch->shared_memory <= (most ? (uint32_t)most : 44 * 1024),
               "%s: %s cannot be launched: %u threads, %u bytes", what, name.text, launch->threads,
               launch->shared_memory))
        return false;
    onepass_cuda_give_workspace(launch, workspace);
    if (!CHECK(simt_run_plan(launch, seed, 0, 0), "%s: there is no kernel %s", what, name.text))
        return false;
    check_workspace(name.text, size, what);
    return true;
}

/* Bytes of workspace that are enough, by the header of the library. */
static inline size_t enough_workspace(const job *job) {
    const int64_t a_row = job->family == FAMILY_VECTORS ? 56 + 24 * (job->vectors.length / 32768) : 48;
    return ONEPASS_WORKSPACE_SIZE + (size_t)(a_row * job->count);
}

/* `kernel` tells of the last launch that has rows
 * of its own, for messages. */
static inline bool run_steps(const job *job, uint64_t seed, const char *what, char *kernel, size_t size) {
    cuda_launch *launch = malloc(sizeof *launch);
    size_t bytes = 0;
    bool good = true;
    for (int i = 0; onepass_cuda_plan_step(job, i, &simt_limits, launch); i++) {
        const cuda_kind kind = onepass_cuda_variant[launch->variant].kind;
        CHECK(i < CUDA_MOST_STEPS, "%s: more steps than there may be", what);
        bytes = launch->workspace > bytes ? launch->workspace : bytes;
        if (kind == kind_row || kind == kind_vector)
            snprintf(kernel, size, "%s, %u x %u", onepass_cuda_variant[launch->variant].name, launch->blocks,
                     launch->threads);
    }
    CHECK(bytes <= enough_workspace(job), "%s: %zu bytes of workspace", what, bytes);
    make_workspace(bytes);
    for (int i = 0; good && onepass_cuda_plan_step(job, i, &simt_limits, launch); i++)
        good = run_launch(launch, bytes, seed + (uint64_t)i, what);
    free(launch);
    return good;
}

#endif
