/* In the place of the CUDA engine where there is none at all: in the amalgamation. */
#include "engine.h"
#include "message.h"
#include "pending.h"

#define MISSING "this is the library in one file, which has the CPU's engine alone"

static onepass_status run_nowhere(const job *job) {
    (void)job;
    return onepass_fail(ONEPASS_NO_DEVICE, MISSING);
}

static onepass_status prepare_nothing(int32_t device_index) {
    (void)device_index;
    return onepass_fail(ONEPASS_NO_DEVICE, MISSING);
}

static onepass_status describe_nothing(onepass_machine_info *info) {
    info->gpu_count = 0;
    info->gpu_reason = MISSING;
    info->gpu_names = "";
    info->gpu_driver = info->gpu_toolkit = 0;
    return ONEPASS_OK;
}

onepass_status onepass_pending_add(pending_slices *pending, const job *job, const slice_parts *parts,
                                   pending_taker *take, void *taker) {
    (void)pending, (void)parts, (void)take, (void)taker;
    return run_nowhere(job);
}

onepass_status onepass_pending_take(pending_slices *pending, pending_taker *take, void *taker) {
    (void)pending, (void)take, (void)taker;
    return ONEPASS_OK;
}

void onepass_pending_drop(pending_slices *pending) {
    (void)pending;
}

const engine onepass_cuda_engine = {"cuda", run_nowhere, prepare_nothing, describe_nothing};

ONEPASS_INTERNAL extern const cuda_images onepass_cuda_images_absent;
const cuda_images onepass_cuda_images_absent = {NULL, NULL};
