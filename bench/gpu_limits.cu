/*
 * What the memory of a GPU allows, and CUB's answer to mse: kernels that stand beside
 * ours in bench/gpu.py. They are apart from the library because nothing here follows
 * an order: they read, add up in whatever order is fastest, or write.
 *
 * Each launcher takes the shape of its launch, so that the benchmark can try many and
 * call the best one the limit. All return a cudaError_t; work goes to the stream.
 */
#include <cstddef>
#include <cstdint>

#include <cub/cub.cuh> /* DeviceReduce */
#include <thrust/functional.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/tuple.h>

/* ---------------------------------------------------------------- shape -- */

/* How a load or a store asks the caches to treat what it moves. */
enum hint {
    PLAIN = 0,
    STREAMING = 1,  /* evict first */
    NO_ALLOCATE = 2 /* loads only: nothing stays in L1, and L2 fetches 256 bytes */
};

/* The launch that the benchmark asks for. */
typedef struct launch_shape {
    int32_t in_flight; /* 16-byte loads a thread issues for each operand before it uses one: 1, 2, 4 or 8 */
    int32_t threads;   /* of a block */
    int32_t waves;     /* 0: a block for every chunk; else so many times the blocks that fit, striding */
    int32_t load;      /* hint */
    int32_t store;     /* hint; PLAIN or STREAMING */
} launch_shape;

/* ------------------------------------------------------- loads and stores -- */

template <int LOAD> __device__ inline float4 fetch(const float4 *from) {
    if (LOAD == STREAMING)
        return __ldcs(from);
#if __CUDA_ARCH__ >= 800
    if (LOAD == NO_ALLOCATE) {
        float4 v;
        asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                     : "l"(from));
        return v;
    }
#endif
    return *from;
}

template <int STORE> __device__ inline void put(float4 *to, float4 v) {
    if (STORE == STREAMING)
        __stcs(to, v);
    else
        *to = v;
}

/* Chunk c of an array is the `IN_FLIGHT * blockDim.x` vectors from that times c on. All its loads are issued
 * before the first is used; vectors beyond the end are zeros. */
template <int IN_FLIGHT, int LOAD>
__device__ inline void fetch_chunk(const float4 *array, int64_t first, int64_t count, float4 *v) {
#pragma unroll
    for (int k = 0; k < IN_FLIGHT; k++) {
        const int64_t i = first + (int64_t)k * blockDim.x;
        v[k] = i < count ? fetch<LOAD>(array + i) : make_float4(0, 0, 0, 0);
    }
}

/* -------------------------------------------------------------- reading -- */

__device__ inline float magnitude(float4 v) {
    return (fabsf(v.x) + fabsf(v.y)) + (fabsf(v.z) + fabsf(v.w));
}

/* Adds up the block's numbers, and adds that to *sum. All threads call it. */
__device__ inline void add_block(float s, float *sum) {
    __shared__ float warp_sums[32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = (blockDim.x + 31) >> 5;
#pragma unroll
    for (int o = 16; o > 0; o >>= 1)
        s += __shfl_xor_sync(0xffffffffu, s, o);
    if (lane == 0)
        warp_sums[warp] = s;
    __syncthreads();
    if (warp == 0) {
        s = lane < warps ? warp_sums[lane] : 0.0f;
#pragma unroll
        for (int o = 16; o > 0; o >>= 1)
            s += __shfl_xor_sync(0xffffffffu, s, o);
        if (lane == 0)
            atomicAdd(sum, s);
    }
}

/* What a kernel reads: one, two or three arrays. */
typedef struct operands {
    const float4 *array[3];
} operands;

/* Adds the magnitudes of all numbers in the arrays to *sum. */
template <int ARRAYS, int IN_FLIGHT, int LOAD>
__global__ void read_arrays(operands from, int64_t count, int64_t chunks, float *sum) {
    float s = 0;
    for (int64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const int64_t first = chunk * IN_FLIGHT * blockDim.x + threadIdx.x;
        float4 x[ARRAYS][IN_FLIGHT];
#pragma unroll
        for (int a = 0; a < ARRAYS; a++)
            fetch_chunk<IN_FLIGHT, LOAD>(from.array[a], first, count, x[a]);
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; k++) {
            float m = magnitude(x[0][k]);
#pragma unroll
            for (int a = 1; a < ARRAYS; a++)
                m += magnitude(x[a][k]);
            s += m;
        }
    }
    add_block(s, sum);
}

/* -------------------------------------------------------------- writing -- */

/* to = the arrays' sum * scale. */
template <int ARRAYS, int IN_FLIGHT, int LOAD, int STORE>
__global__ void write_array(operands from, float4 *to, int64_t count, int64_t chunks, float scale) {
    for (int64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const int64_t first = chunk * IN_FLIGHT * blockDim.x + threadIdx.x;
        float4 x[ARRAYS][IN_FLIGHT];
#pragma unroll
        for (int a = 0; a < ARRAYS; a++)
            fetch_chunk<IN_FLIGHT, LOAD>(from.array[a], first, count, x[a]);
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; k++) {
            float4 v = make_float4(0, 0, 0, 0);
#pragma unroll
            for (int a = 0; a < ARRAYS; a++) {
                v.x += x[a][k].x * scale;
                v.y += x[a][k].y * scale;
                v.z += x[a][k].z * scale;
                v.w += x[a][k].w * scale;
            }
            const int64_t i = first + (int64_t)k * blockDim.x;
            if (i < count)
                put<STORE>(to + i, v);
        }
    }
}

__global__ void nothing() {}

/* ------------------------------------------------------------ launching -- */

/* The grid for a kernel: a block for every chunk, or a multiple of the blocks that fit on the device at once. */
template <class Kernel>
static cudaError_t choose_grid(Kernel *kernel, const launch_shape *shape, int64_t chunks, unsigned *blocks) {
    int64_t most = INT32_MAX;
    if (shape->waves > 0) {
        int device = 0, multiprocessors = 0, resident = 0;
        cudaError_t error = cudaGetDevice(&device);
        if (error == cudaSuccess)
            error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
        if (error == cudaSuccess)
            error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, shape->threads, 0);
        if (error != cudaSuccess)
            return error;
        most = (int64_t)multiprocessors * resident * shape->waves;
    }
    *blocks = (unsigned)(chunks < most ? chunks : most);
    return *blocks > 0 ? cudaSuccess : cudaErrorInvalidConfiguration;
}

static int64_t chunks_of(int64_t count, int in_flight, int threads) {
    const int64_t chunk = (int64_t)in_flight * threads;
    return (count + chunk - 1) / chunk;
}

template <int ARRAYS, int IN_FLIGHT, int LOAD>
static cudaError_t launch_read(operands from, int64_t count, float *sum, const launch_shape *shape,
                               cudaStream_t stream) {
    const int64_t chunks = chunks_of(count, IN_FLIGHT, shape->threads);
    unsigned blocks = 0;
    const cudaError_t error = choose_grid(read_arrays<ARRAYS, IN_FLIGHT, LOAD>, shape, chunks, &blocks);
    if (error != cudaSuccess)
        return error;
    read_arrays<ARRAYS, IN_FLIGHT, LOAD><<<blocks, shape->threads, 0, stream>>>(from, count, chunks, sum);
    return cudaGetLastError();
}

template <int ARRAYS, int IN_FLIGHT, int LOAD, int STORE>
static cudaError_t launch_write(operands from, void *to, int64_t count, const launch_shape *shape,
                                cudaStream_t stream) {
    const int64_t chunks = chunks_of(count, IN_FLIGHT, shape->threads);
    unsigned blocks = 0;
    const cudaError_t error = choose_grid(write_array<ARRAYS, IN_FLIGHT, LOAD, STORE>, shape, chunks, &blocks);
    if (error != cudaSuccess)
        return error;
    write_array<ARRAYS, IN_FLIGHT, LOAD, STORE>
        <<<blocks, shape->threads, 0, stream>>>(from, (float4 *)to, count, chunks, 0.5f);
    return cudaGetLastError();
}

/* From a shape's numbers to a kernel: one step for each number that the compiler must know. */
template <int ARRAYS, int IN_FLIGHT>
static cudaError_t read_with_load(operands from, int64_t count, float *sum, const launch_shape *shape,
                                  cudaStream_t stream) {
    switch (shape->load) {
    case PLAIN:
        return launch_read<ARRAYS, IN_FLIGHT, PLAIN>(from, count, sum, shape, stream);
    case STREAMING:
        return launch_read<ARRAYS, IN_FLIGHT, STREAMING>(from, count, sum, shape, stream);
    case NO_ALLOCATE:
        return launch_read<ARRAYS, IN_FLIGHT, NO_ALLOCATE>(from, count, sum, shape, stream);
    default:
        return cudaErrorInvalidValue;
    }
}

template <int ARRAYS>
static cudaError_t read_in_flight(operands from, int64_t count, float *sum, const launch_shape *shape,
                                  cudaStream_t stream) {
    switch (shape->in_flight) {
    case 1:
        return read_with_load<ARRAYS, 1>(from, count, sum, shape, stream);
    case 2:
        return read_with_load<ARRAYS, 2>(from, count, sum, shape, stream);
    case 4:
        return read_with_load<ARRAYS, 4>(from, count, sum, shape, stream);
    case 8:
        return read_with_load<ARRAYS, 8>(from, count, sum, shape, stream);
    default:
        return cudaErrorInvalidValue;
    }
}

template <int ARRAYS, int IN_FLIGHT>
static cudaError_t write_with_hints(operands from, void *to, int64_t count, const launch_shape *shape,
                                    cudaStream_t stream) {
    if (shape->load == PLAIN && shape->store == PLAIN)
        return launch_write<ARRAYS, IN_FLIGHT, PLAIN, PLAIN>(from, to, count, shape, stream);
    if (shape->load == PLAIN && shape->store == STREAMING)
        return launch_write<ARRAYS, IN_FLIGHT, PLAIN, STREAMING>(from, to, count, shape, stream);
    if (shape->load == STREAMING && shape->store == STREAMING)
        return launch_write<ARRAYS, IN_FLIGHT, STREAMING, STREAMING>(from, to, count, shape, stream);
    if (shape->load == NO_ALLOCATE && shape->store == STREAMING)
        return launch_write<ARRAYS, IN_FLIGHT, NO_ALLOCATE, STREAMING>(from, to, count, shape, stream);
    return cudaErrorInvalidValue;
}

template <int ARRAYS>
static cudaError_t write_in_flight(operands from, void *to, int64_t count, const launch_shape *shape,
                                   cudaStream_t stream) {
    switch (shape->in_flight) {
    case 1:
        return write_with_hints<ARRAYS, 1>(from, to, count, shape, stream);
    case 2:
        return write_with_hints<ARRAYS, 2>(from, to, count, shape, stream);
    case 4:
        return write_with_hints<ARRAYS, 4>(from, to, count, shape, stream);
    case 8:
        return write_with_hints<ARRAYS, 8>(from, to, count, shape, stream);
    default:
        return cudaErrorInvalidValue;
    }
}

/* ------------------------------------------------------------------ CUB -- */

struct squared_difference {
    template <class Pair> __host__ __device__ float operator()(const Pair &pair) const {
        const float x = thrust::get<0>(pair) - thrust::get<1>(pair);
        return x * x;
    }
};

struct squared_difference_at {
    const float *a, *b;
    __host__ __device__ float operator()(int64_t i) const {
        const float x = a[i] - b[i];
        return x * x;
    }
};

/* TransformReduce came with CUB 2.4 (CUDA 12.4); before that, Reduce over a transforming iterator is its meaning. */
template <class Items, class Transform>
static cudaError_t cub_sum(void *temporary, size_t *bytes, Items items, float *sum, int64_t count, Transform transform,
                           cudaStream_t stream) {
#if CUB_VERSION >= 200400
    return cub::DeviceReduce::TransformReduce(temporary, *bytes, items, sum, count, thrust::plus<float>(), transform,
                                              0.0f, stream);
#else
    return cub::DeviceReduce::Reduce(temporary, *bytes, thrust::make_transform_iterator(items, transform), sum,
                                     (int)count, thrust::plus<float>(), 0.0f, stream);
#endif
}

/* ------------------------------------------------------------- entrances -- */

static operands operands_of(const void *const *from, int arrays) {
    operands o = {};
    for (int a = 0; a < arrays; a++)
        o.array[a] = (const float4 *)from[a];
    return o;
}

extern "C" {

/* Adds the magnitudes of `bytes` bytes of float at each of `arrays` addresses to *sum. */
int limit_read(const void *const *from, int arrays, int64_t bytes, float *sum, const launch_shape *shape,
               cudaStream_t stream) {
    const int64_t count = bytes / (int64_t)sizeof(float4);
    switch (arrays) {
    case 1:
        return read_in_flight<1>(operands_of(from, 1), count, sum, shape, stream);
    case 2:
        return read_in_flight<2>(operands_of(from, 2), count, sum, shape, stream);
    case 3:
        return read_in_flight<3>(operands_of(from, 3), count, sum, shape, stream);
    default:
        return cudaErrorInvalidValue;
    }
}

/* Writes half of the sum of `bytes` bytes of float at each of `arrays` addresses to `to`. */
int limit_write(const void *const *from, int arrays, void *to, int64_t bytes, const launch_shape *shape,
                cudaStream_t stream) {
    const int64_t count = bytes / (int64_t)sizeof(float4);
    switch (arrays) {
    case 1:
        return write_in_flight<1>(operands_of(from, 1), to, count, shape, stream);
    case 2:
        return write_in_flight<2>(operands_of(from, 2), to, count, shape, stream);
    case 3:
        return write_in_flight<3>(operands_of(from, 3), to, count, shape, stream);
    default:
        return cudaErrorInvalidValue;
    }
}

int limit_copy(void *to, const void *from, int64_t bytes, cudaStream_t stream) {
    return cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDeviceToDevice, stream);
}

int limit_launch(cudaStream_t stream) {
    nothing<<<1, 32, 0, stream>>>();
    return cudaGetLastError();
}

/* The sum of squared differences; the mean is left to the caller. As CUB does it, a null `temporary` only sets
 * *temporary_bytes. By index, the operands are read inside the transform; otherwise CUB reads a zip of both. */
int cub_mse(void *temporary, size_t *temporary_bytes, const float *a, const float *b, int64_t count, float *sum,
            int by_index, cudaStream_t stream) {
    if (by_index)
        return cub_sum(temporary, temporary_bytes, thrust::make_counting_iterator<int64_t>(0), sum, count,
                       squared_difference_at{a, b}, stream);
    return cub_sum(temporary, temporary_bytes, thrust::make_zip_iterator(thrust::make_tuple(a, b)), sum, count,
                   squared_difference{}, stream);
}

const char *limit_error(int error) {
    return cudaGetErrorString((cudaError_t)error);
}

} /* extern "C" */
