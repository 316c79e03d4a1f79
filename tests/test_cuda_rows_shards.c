/*
 * Rows whose classes are shared out, on a real GPU: any shares of the classes give the bits of one call over all of
 * them on the CPU. Both see the memory.
 */
#define _POSIX_C_SOURCE 200809L
#include "gpu.h"
#include "row_shards.h"
#include "test_cuda.h"

static onepass_status run_there(const onepass_call *call, const char *what) {
    onepass_call there = *call;
    (void)what;
    there.device = ONEPASS_CUDA;
    const onepass_status status = onepass_run(&there);
    gpu_wait(NULL);
    return status;
}

int test_cuda_rows_shards(bool reduced) {
    static const shard_place there = {gpu_allocate_managed, gpu_free, run_there};
    for (uint64_t seed = 0; seed < (reduced ? 60 : 600); seed++)
        shard_check(&there, seed, seed % 4 == 3, 0);
    for (uint64_t seed = 0; seed < 4; seed++) { /* of many tiles, and of more than wait in shared memory */
        shard_check(&there, seed, seed % 2, ONEPASS_TILE * 200 + 12);
        shard_check(&there, seed, seed % 2, ONEPASS_TILE * 1100 + 12);
    }
    return section_finish();
}
