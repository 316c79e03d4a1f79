/*
 * The kernel with the mistakes. It does on a small scale what the engine's kernels
 * do: lanes exchange through shared memory and by shuffles, warps through shared
 * memory, blocks through a workspace with a counter.
 */
#include "cuda.h"

#include "planted.h"

typedef struct warp_buffer {
    float at[32];
} warp_buffer;

/* Every lane's number and a multiple of its mirror image's, which comes through shared memory. */
static __device__ __forceinline__ float exchange(float x, int warp, int lane, int mistake) {
    __shared__ warp_buffer buffer[PLANTED_WARPS];
    buffer[warp].at[lane] = x;
    if (mistake != MISTAKE_NO_SYNCWARP)
        __syncwarp();
    const float other = buffer[warp].at[31 - lane];
    if (mistake != MISTAKE_NO_SECOND_SYNCWARP)
        __syncwarp();
    return x + other * (float)(lane % 3);
}

/* What goes wrong within a warp, apart from the result. */
static __device__ __forceinline__ float stumble(float x, int lane, const planted_job *job) {
    switch (job->mistake) {
    case MISTAKE_BARRIER_AND_SHUFFLE:
        if (lane < 16)
            __syncthreads();
        break; /* to the shuffles */
    case MISTAKE_DIFFERENT_OPERATIONS:
        if (lane % 2)
            __syncwarp();
        break;
    case MISTAKE_MASK_WITHOUT_SELF:
        return __shfl_sync(0x0000ffffu, x, 0);
    case MISTAKE_SOURCE_OUTSIDE_MASK:
        return lane < 16 ? __shfl_xor_sync(0x0000ffffu, x, 16) : x;
    case MISTAKE_MISALIGNED_LOAD:
        return __ldcs((const float4 *)(job->in + 1)).x;
    case MISTAKE_MISALIGNED_STORE:
        __stcs((double *)((char *)job->partial + 4), 1.0);
        break;
    case MISTAKE_MISALIGNED_VECTOR:
        return ((const float4 *)(job->in + 1))->y;
    case MISTAKE_WILD_ADDRESS:
        return *(const volatile float *)job->nowhere;
    default:
        break;
    }
    return x;
}

static __device__ __noinline__ int deep(volatile int *number) {
    volatile int here[256];
    here[*number % 256] = *number;
    *number = *number + 1;
    return *number < 1000 ? deep(number) + here[0] : here[1];
}

/* The sum over the block's threads, for thread 0. A template, since the engine's kernels are. */
template <typename real> static __device__ __forceinline__ double block_sum(real x, int warp, int lane, int mistake) {
    __shared__ double node[PLANTED_WARPS];
    const int warps = (int)blockDim.x / 32;
    double sum = x;
    for (int distance = 16; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(~0u, sum, distance);
    if (lane == 0)
        node[warp] = sum;
    if (mistake != MISTAKE_NO_BARRIER)
        __syncthreads();
    sum = 0;
    for (int i = 0; threadIdx.x == 0 && i < warps; i++)
        sum += node[i];
    if (mistake != MISTAKE_NO_SECOND_BARRIER)
        __syncthreads();
    return sum;
}

static __device__ __forceinline__ void combine(const planted_job *job, double sum) {
    unsigned number;
    if (job->mistake == MISTAKE_LATE_PARTIAL_SUM) {
        number = atomicAdd(job->counter, 1u);
        __stcg(job->partial + blockIdx.x, sum);
    } else {
        __stcg(job->partial + blockIdx.x, sum);
        number = atomicAdd(job->counter, 1u);
    }
    if ((job->mistake == MISTAKE_LAST_BLOCK_BY_INDEX ? blockIdx.x : number) != gridDim.x - 1)
        return;
    sum = 0;
    for (unsigned i = 0; i < gridDim.x; i++)
        sum += __ldcg(job->partial + i);
    *job->sum = sum;
    *job->counter = 0;
}

extern "C" __global__ void planted_sum(const __grid_constant__ planted_job job) {
    extern __shared__ __align__(16) unsigned char planted_memory[];
    double *thread_sum = (double *)planted_memory;
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    if (job.mistake == MISTAKE_EARLY_RETURN && threadIdx.x == 37)
        return;
    if (job.mistake != MISTAKE_UNWRITTEN)
        thread_sum[threadIdx.x] = 0;
    if (job.mistake == MISTAKE_BEYOND_DYNAMIC)
        thread_sum[threadIdx.x + 1] = 0;
    for (int round = 0; round < PLANTED_ROUNDS; round++) {
        float x = job.in[(blockIdx.x * PLANTED_ROUNDS + (unsigned)round) * blockDim.x + threadIdx.x];
        x = stumble(x, lane, &job);
        x = exchange(x, warp, lane, job.mistake);
        x = exchange(x, warp, lane, job.mistake);
        thread_sum[threadIdx.x] += block_sum(x, warp, lane, job.mistake);
    }
    if (job.mistake == MISTAKE_TWO_BARRIERS && warp > 0)
        __syncthreads();
    else
        __syncthreads();
    volatile int depth = 0;
    if (job.mistake == MISTAKE_DEEP_STACK)
        deep(&depth);
    if (threadIdx.x == 0)
        combine(&job, thread_sum[0]);
}

SIMT_LIBRARY(planted_library, planted_memory)
