/*
 * A planned launch by CUDA's runtime, for mean.cu and rows.cu alike. The counters in the workspace are zeroed by each
 * call, on its own stream. That costs a microsecond or two, and calls on several streams and in graphs share nothing.
 */
#ifndef ONEPASS_KERNELBENCH_LAUNCH_H
#define ONEPASS_KERNELBENCH_LAUNCH_H

#include "cuda/plan.h"

#define OK(expression)                                                                                                 \
    do {                                                                                                               \
        const cudaError_t answer = (expression);                                                                       \
        if (answer != cudaSuccess)                                                                                     \
            return answer;                                                                                             \
    } while (0)

static cudaError_t count_multiprocessors(int *count) {
    int gpu;
    OK(cudaGetDevice(&gpu));
    return cudaDeviceGetAttribute(count, cudaDevAttrMultiProcessorCount, gpu);
}

static cudaError_t clear_counters(void *workspace, cudaStream_t stream) {
    return cudaMemsetAsync(workspace, 0, CUDA_WORKSPACE_HEAD, stream);
}

static cudaError_t launch_planned(const void *kernel, cuda_launch *launch, void *workspace, cudaStream_t stream) {
    if (launch->blocks == 0)
        return cudaSuccess;
    onepass_cuda_give_workspace(launch, workspace);
    void *parameter[] = {&launch->parameter};
    return cudaLaunchKernel(kernel, dim3(launch->blocks), dim3(launch->threads), parameter, launch->shared_memory,
                            stream);
}

#endif
