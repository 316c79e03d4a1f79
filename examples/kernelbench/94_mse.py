# onepass for problem 94 of KernelBench's level 1. Copyright (c) 2026 the onepass authors, MIT License.
#
# Generated; change the sources and run `python3 examples/kernelbench/amalgamate.py`. The sources, whose comments are
# left out here: examples/kernelbench/binding.cpp, examples/kernelbench/mean.cu, examples/kernelbench/mean.h,
# include/onepass.h, src/catalog.c, src/cpu/instruction_sets.h, src/cuda/combine.h, src/cuda/gpu.h, src/cuda/memory.h,
# src/cuda/pairwise.cu, src/cuda/pairwise.h, src/cuda/plan.c, src/descriptor.c, src/descriptor.h, src/dtype.h,
# src/engine.h, src/internal.h, src/loss/mse.h, src/math/real.h, src/order.h, src/tensor.c, src/tensor.h, src/view.h.
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Kernels, plan and launch.
CUDA = r'''
#include <cuda_runtime_api.h>
#include <stdint.h>

#define MEAN_MOST_DIMENSIONS 16
#define MEAN_WORKSPACE       262400

typedef struct mean_call {
    int32_t ndim;
    const int64_t *shape;
    const float *data[2];
    const int64_t *stride[2];
    float *value;
    void *workspace;
    cudaStream_t stream;
} mean_call;

__attribute__((visibility("hidden"))) cudaError_t mean_launch(const mean_call *call);

#include <float.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if FLT_EVAL_METHOD != 0
#error "onepass needs a target that computes float in float and double in double (FLT_EVAL_METHOD 0)"
#endif

#if defined(__FAST_MATH__)
#error "onepass must not be compiled with -ffast-math: it would change the bits and lose NaN"
#endif

#if defined(ONEPASS_REAL_F64)
typedef double real;
typedef uint64_t real_bits;
#define REAL_DTYPE         ONEPASS_F64
#define REAL_SIGN_BIT      UINT64_C(0x8000000000000000)
#define REAL_EXPONENT_BITS UINT64_C(0x7ff0000000000000)
#define REAL_NAN_BITS      UINT64_C(0x7ff8000000000000)
#else
typedef float real;
typedef uint32_t real_bits;
#define REAL_DTYPE         ONEPASS_F32
#define REAL_SIGN_BIT      UINT32_C(0x80000000)
#define REAL_EXPONENT_BITS UINT32_C(0x7f800000)
#define REAL_NAN_BITS      UINT32_C(0x7fc00000)
#endif

#if defined(__CUDACC__)
#define ALWAYS_INLINE static __device__ __forceinline__
#else
#define ALWAYS_INLINE static inline __attribute__((always_inline, unused))
#endif
#define LOSS_FUNCTION ALWAYS_INLINE

#define OPERANDS_COUNTED(a, b, c, d, count, ...) count
#define OPERANDS_OF(...)                         OPERANDS_COUNTED(__VA_ARGS__, 4, 3, 2, 1)
#define PASTE_OF(a, b)                           a##b
#define PASTE(a, b)                              PASTE_OF(a, b)

LOSS_FUNCTION real_bits bits_of(real x) {
    real_bits bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

LOSS_FUNCTION real real_of(real_bits bits) {
    real x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

LOSS_FUNCTION real choose(bool condition, real a, real b) {
#if defined(__CUDACC__)
    return condition ? a : b;
#else
    const real_bits mask = (real_bits)0 - (real_bits)condition;
    return real_of((bits_of(a) & mask) | (bits_of(b) & ~mask));
#endif
}

LOSS_FUNCTION real minus_if(bool condition, real x) {
#if defined(__CUDACC__)
    return condition ? -x : x * (real)-0.0;
#else
    return choose(condition, -1, (real)-0.0) * x;
#endif
}

LOSS_FUNCTION real magnitude(real x) {
    return sizeof(real) == sizeof(float) ? (real)__builtin_fabsf((float)x) : (real)__builtin_fabs((double)x);
}

LOSS_FUNCTION real signed_like(real x, real number) {
    return real_of((bits_of(x) & REAL_SIGN_BIT) | bits_of(number));
}

LOSS_FUNCTION real sign(real x) {
    return choose(x == 0, 0, signed_like(x, 1));
}

LOSS_FUNCTION real square_root(real x) {
#if defined(__CUDACC__)
    return sizeof(real) == sizeof(float) ? (real)__fsqrt_rn((float)x) : (real)__dsqrt_rn((double)x);
#else
    return sizeof(real) == sizeof(float) ? (real)__builtin_sqrtf((float)x) : (real)__builtin_sqrt((double)x);
#endif
}

LOSS_FUNCTION real canonical(real x) {
    return choose(x != x, real_of(REAL_NAN_BITS), x);
}

ALWAYS_INLINE unsigned take_ticket(unsigned *counter) {
#if defined(__CUDACC__)
    unsigned number;
    asm volatile("atom.add.acq_rel.gpu.u32 %0, [%1], 1;" : "=r"(number) : "l"(counter) : "memory");
    return number;
#else
    return atomicAdd(counter, 1u);
#endif
}

ALWAYS_INLINE int anew(int x) {
#if defined(__CUDACC__)
    asm volatile("" : "+r"(x));
#endif
    return x;
}

ALWAYS_INLINE uint2 apart(uint2 x) {
#if defined(__CUDACC__)
    asm volatile("" : "+r"(x.x), "+r"(x.y));
#endif
    return x;
}

#if defined(__CUDACC__)
#define HINTED_LOAD(name, hint)                                                                                        \
    template <typename vector> ALWAYS_INLINE vector name(const vector *address) {                                      \
        uint4 bits;                                                                                                    \
        vector loaded;                                                                                                 \
        static_assert(sizeof loaded == sizeof bits, "16 bytes");                                                       \
        asm volatile("ld.global." hint ".v4.u32 {%0, %1, %2, %3}, [%4];"                                               \
                     : "=r"(bits.x), "=r"(bits.y), "=r"(bits.z), "=r"(bits.w)                                          \
                     : "l"(address)                                                                                    \
                     : "memory");                                                                                      \
        memcpy(&loaded, &bits, sizeof loaded);                                                                         \
        return loaded;                                                                                                 \
    }
#else
#define HINTED_LOAD(name, hint)                                                                                        \
    template <typename vector> ALWAYS_INLINE vector name(const vector *address) {                                      \
        return __ldcs(address);                                                                                        \
    }
#endif
HINTED_LOAD(load_outside, "L1::no_allocate")
HINTED_LOAD(load_longest, "L1::evict_last")

#define ONEPASS_INTERNAL __attribute__((visibility("hidden")))

#include <stddef.h>
#include <stdint.h>

#define ONEPASS_VERSION_MAJOR 0
#define ONEPASS_VERSION_MINOR 1
#define ONEPASS_VERSION_PATCH 0
#define ONEPASS_VERSION       (ONEPASS_VERSION_MAJOR * 10000 + ONEPASS_VERSION_MINOR * 100 + ONEPASS_VERSION_PATCH)

#define ONEPASS_MAX_DIMENSIONS 16
#define ONEPASS_MAX_OPERANDS   4
#define ONEPASS_MAX_PARAMETERS 8

#define ONEPASS_TILE 1024

#define ONEPASS_STACK_SIZE 98304

#define ONEPASS_WORKSPACE_SIZE 262400

#if defined(ONEPASS_STATIC)
#define ONEPASS_API
#elif defined(__GNUC__)
#define ONEPASS_API __attribute__((visibility("default")))
#else
#define ONEPASS_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum onepass_status {
    ONEPASS_OK = 0,
    ONEPASS_INVALID_ARGUMENT = 1,
    ONEPASS_INVALID_SHAPE = 2,
    ONEPASS_INVALID_MEMORY = 3,
    ONEPASS_NOT_SUPPORTED = 4,
    ONEPASS_NO_DEVICE = 5,
    ONEPASS_OUT_OF_MEMORY = 6,
    ONEPASS_INCOMPLETE = 7,
    ONEPASS_DEVICE_FAILED = 8
} onepass_status;

typedef enum onepass_dtype {
    ONEPASS_F16 = 1,
    ONEPASS_BF16 = 2,
    ONEPASS_F32 = 3,
    ONEPASS_F64 = 4,
    ONEPASS_BOOL = 5
} onepass_dtype;

typedef enum onepass_reduction {
    ONEPASS_MEAN = 0,
    ONEPASS_SUM = 1,
    ONEPASS_NONE = 2,
    ONEPASS_BATCHMEAN = 3
} onepass_reduction;

typedef enum onepass_device {
    ONEPASS_CPU = 0,
    ONEPASS_CUDA = 1
} onepass_device;

enum onepass_flags {
    ONEPASS_SKIP_IF_UPSTREAM_IS_ONE = 1,
    ONEPASS_OVER_ELEMENTS = 2
};

enum {
    ONEPASS_PREDICTION = 0,
    ONEPASS_TARGET = 1,
    ONEPASS_THIRD = 2
};

typedef struct onepass_tensor {
    void *data;
    int32_t dtype;
    int32_t ndim;
    const int64_t *shape;
    const int64_t *strides;
} onepass_tensor;

typedef struct onepass_call {
    size_t size;

    const char *loss;
    int32_t reduction;
    int32_t parameter_count;
    double parameter[ONEPASS_MAX_PARAMETERS];

    const onepass_tensor *operand[ONEPASS_MAX_OPERANDS];
    const onepass_tensor *weight;
    const onepass_tensor *mask;
    const onepass_tensor *upstream;

    const onepass_tensor *value;
    const onepass_tensor *gradient[ONEPASS_MAX_OPERANDS];

    double divisor;

    int32_t device;
    int32_t device_index;
    void *stream;
    int32_t threads;
    int32_t flags;
    void *workspace;
    size_t workspace_size;
} onepass_call;

#ifdef __cplusplus
static inline onepass_call onepass_call_init() {
    onepass_call call = onepass_call();
    call.size = sizeof call;
    return call;
}
#define ONEPASS_CALL_INIT onepass_call_init()
#else
#define ONEPASS_CALL_INIT                                                                                              \
    { .size = sizeof(onepass_call) }
#endif

ONEPASS_API onepass_status onepass_run(const onepass_call *call);

ONEPASS_API onepass_status onepass_forward(const char *loss, onepass_reduction reduction,
                                           const onepass_tensor *prediction, const onepass_tensor *target,
                                           const onepass_tensor *value);
ONEPASS_API onepass_status onepass_backward(const char *loss, onepass_reduction reduction,
                                            const onepass_tensor *prediction, const onepass_tensor *target,
                                            const onepass_tensor *upstream, const onepass_tensor *gradient_prediction,
                                            const onepass_tensor *gradient_target);
ONEPASS_API onepass_status onepass_forward_backward(const char *loss, onepass_reduction reduction,
                                                    const onepass_tensor *prediction, const onepass_tensor *target,
                                                    const onepass_tensor *value,
                                                    const onepass_tensor *gradient_prediction);

ONEPASS_API onepass_status onepass_mean_f32(const char *loss, int64_t count, const float *prediction,
                                            const float *target, float *value, float *gradient);

ONEPASS_API onepass_status onepass_scale(const onepass_call *call);

ONEPASS_API onepass_status onepass_prepare(int32_t device, int32_t device_index);

typedef struct onepass_accumulator onepass_accumulator;

ONEPASS_API onepass_status onepass_accumulator_begin(onepass_accumulator **accumulator, const onepass_call *call,
                                                     int64_t total);
ONEPASS_API onepass_status onepass_accumulator_add(onepass_accumulator *accumulator, const onepass_call *call,
                                                   int64_t first);
ONEPASS_API onepass_status onepass_accumulator_merge(onepass_accumulator *into, const onepass_accumulator *from);
ONEPASS_API onepass_status onepass_accumulator_finish(const onepass_accumulator *accumulator,
                                                      const onepass_tensor *value);
ONEPASS_API void onepass_accumulator_destroy(onepass_accumulator *accumulator);

ONEPASS_API const char *onepass_message(void);

ONEPASS_API const char *onepass_status_name(onepass_status status);

ONEPASS_API int onepass_version(void);
ONEPASS_API const char *onepass_version_text(void);

typedef struct onepass_parameter_info {
    const char *name;
    const char *meaning;
    double default_value;
    double minimum;
    double maximum;
    int32_t minimum_excluded;
    int32_t maximum_excluded;
} onepass_parameter_info;

typedef struct onepass_error {
    double ulp;
    const char *of;
} onepass_error;

typedef struct onepass_accuracy {
    const char *rounded;
    onepass_error error[1 + ONEPASS_MAX_OPERANDS];
} onepass_accuracy;

typedef struct onepass_loss_info {
    const char *name;
    const char *meaning;
    const char *value;
    const char *slope;
    int32_t operand_count;
    int32_t parameter_count;
    const onepass_parameter_info *parameter;
    const char *const *operand;
    const onepass_accuracy *accuracy;
} onepass_loss_info;

ONEPASS_API const onepass_loss_info *onepass_loss_at(int32_t index);
ONEPASS_API const onepass_loss_info *onepass_loss_named(const char *name);

typedef struct onepass_machine_info {
    size_t size;
    const char *instruction_set;
    const char *instruction_sets;
    int32_t threads;
    int32_t gpu_count;
    const char *gpu_reason;
    const char *gpu_names;
    int32_t gpu_driver;
    int32_t gpu_toolkit;
} onepass_machine_info;

ONEPASS_API onepass_status onepass_machine(onepass_machine_info *info);

#ifdef __cplusplus
}
#endif

typedef enum family {
    FAMILY_PAIRWISE,
    FAMILY_SCALE,
    FAMILY_WEIGHTS
} family;

struct cpu_loss;
typedef struct cpu_losses {
    const struct cpu_loss *avx512_f32, *avx512_f64;
    const struct cpu_loss *avx2_f32, *avx2_f64;
    const struct cpu_loss *sse2_f32, *sse2_f64;
    const struct cpu_loss *sve_f32, *sve_f64;
    const struct cpu_loss *neon_f32, *neon_f64;
    const struct cpu_loss *baseline_f32, *baseline_f64;
} cpu_losses;

typedef struct cuda_images {
    const unsigned char *f32, *f64;
} cuda_images;

typedef struct loss {
    onepass_loss_info info;
    enum family family;
    const struct cuda_images *cuda;
    struct cpu_losses cpu;
} loss;

ONEPASS_INTERNAL const loss *onepass_find_loss(const char *name);

ONEPASS_INTERNAL int32_t onepass_loss_index(const loss *loss);

typedef struct view {
    void *data;
    int32_t dtype;
    int32_t ndim;
    int64_t shape[ONEPASS_MAX_DIMENSIONS];
    int64_t stride[ONEPASS_MAX_DIMENSIONS];
} view;

#include <stdbool.h>

#define MOST_OPERANDS 3

typedef struct job {
    enum family family;
    const struct loss *loss;
    int32_t operand_count;
    double parameter[ONEPASS_MAX_PARAMETERS];
    int32_t reduction;
    int32_t compute;

    int64_t first;
    int64_t count;

    view operand[ONEPASS_MAX_OPERANDS];
    view weight;
    view mask;
    view upstream;
    view value;
    view gradient[ONEPASS_MAX_OPERANDS];
    bool in_place[ONEPASS_MAX_OPERANDS];

    bool skip_if_one;
    double divisor;
    bool over_weights;
    bool over_elements;
    double *sum;
    int32_t threads;

    int32_t device_index;
    void *stream;
    void *workspace;
    size_t workspace_size;
} job;

static inline const char *onepass_operand_name(const job *job, int32_t k) {
    return job->loss ? job->loss->info.operand[k] : "weight";
}
static const char *const onepass_gradient_name[ONEPASS_MAX_OPERANDS] = {
    "gradient[0] (for the prediction)", "gradient[1] (for the target)", "gradient[2]", "gradient[3]"};

static inline double onepass_reduced(int32_t reduction, double sum, double divisor) {
    return reduction == ONEPASS_MEAN ? sum / divisor : sum;
}

ONEPASS_INTERNAL void onepass_plan_weights(const job *weighted, job *weights);

typedef struct engine {
    const char *name;
    onepass_status (*run)(const job *job);
    onepass_status (*prepare)(int32_t device_index);
    onepass_status (*describe)(onepass_machine_info *info);
} engine;

ONEPASS_INTERNAL extern const engine onepass_cpu_engine;
ONEPASS_INTERNAL extern const engine onepass_cuda_engine;

static inline const engine *onepass_engine(int32_t device) {
    return device == ONEPASS_CUDA ? &onepass_cuda_engine : &onepass_cpu_engine;
}

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_WORKSPACE_HEAD 256
#define CUDA_WEIGHTS_AT     128
#define CUDA_MOST_BLOCKS    ((ONEPASS_WORKSPACE_SIZE - CUDA_WORKSPACE_HEAD) / 8)

#define CUDA_FIRST_WORKSPACE      onepass_first_workspace
#define CUDA_FIRST_WORKSPACE_NAME "onepass_first_workspace"

#define CUDA_MOST_WARPS 8

#define CUDA_MOST_NODES 256

typedef union cuda_real {
    float f32;
    double f64;
} cuda_real;
typedef union cuda_reals {
    float f32[ONEPASS_MAX_PARAMETERS];
    double f64[ONEPASS_MAX_PARAMETERS];
} cuda_reals;

enum {
    CUDA_PREDICTION,
    CUDA_TARGET,
    CUDA_UPSTREAM = CUDA_PREDICTION + MOST_OPERANDS,
    CUDA_VALUE,
    CUDA_GRADIENT,
    CUDA_TENSORS = CUDA_GRADIENT + MOST_OPERANDS,
    CUDA_WEIGHT = CUDA_TENSORS,
    CUDA_MASK,
    CUDA_GENERAL_TENSORS
};

typedef struct cuda_total {
    void *value;
    void *workspace;
    double number;
    uint8_t divides;
    uint8_t dtype;
    uint8_t aligned;
    int32_t count;
} cuda_total;

typedef struct cuda_head {
    cuda_total total;
    void *data[CUDA_TENSORS];
    int64_t count;
    uint8_t dtype[CUDA_TENSORS];
    uint8_t reduction;
    uint8_t skip_if_one;
    uint8_t rows;
    int32_t tiles_per_block;
    int32_t sweeps;
    cuda_reals parameter;
    cuda_real scale;
    int32_t buffers;
} cuda_head;

typedef struct cuda_divisor {
    uint64_t magic;
    int32_t shift;
} cuda_divisor;

typedef struct cuda_rows {
    int64_t tile_step;
    int64_t row_step;
    int64_t tiles;
    cuda_divisor by;
} cuda_rows;

typedef struct cuda_direct {
    cuda_head head;
    cuda_rows rows[CUDA_TENSORS];
} cuda_direct;

typedef struct cuda_weighted {
    cuda_head head;
    void *weight, *mask;
    int32_t over_weights;
} cuda_weighted;

typedef struct cuda_small {
    cuda_total total;
    void *operand[2];
    void *gradient, *upstream;
    int32_t upstream_dtype;
    cuda_real scale;
    cuda_reals parameter;
} cuda_small;

typedef struct cuda_view {
    int32_t ndim;
    int64_t extent[ONEPASS_MAX_DIMENSIONS];
    int64_t stride[ONEPASS_MAX_DIMENSIONS];
    cuda_divisor by[ONEPASS_MAX_DIMENSIONS];
} cuda_view;

typedef struct cuda_general {
    cuda_head head;
    cuda_view view[CUDA_GENERAL_TENSORS];
    void *weight, *mask;
    int32_t weight_dtype;
    int32_t over_weights;
    int32_t weight_buffer;
} cuda_general;

typedef struct cuda_launch {
    union {
        cuda_total total;
        cuda_head head;
        cuda_direct direct;
        cuda_weighted weighted;
        cuda_small small;
        cuda_general general;
    } parameter;
    int32_t kernel;
    uint32_t blocks;
    uint32_t threads;
    uint32_t shared_memory;
    size_t workspace;
} cuda_launch;

enum {
    CUDA_GENERAL_KERNELS = 1,
    CUDA_LARGE_KERNELS = 2
};
typedef struct cuda_shape {
    int32_t warps;
    int32_t tiles_per_block;
    int32_t most_blocks;
    int32_t kernels;
} cuda_shape;
ONEPASS_INTERNAL extern cuda_shape onepass_cuda_shape;

ONEPASS_INTERNAL void onepass_cuda_plan(const job *job, int32_t multiprocessors, cuda_launch *launch);

ONEPASS_INTERNAL void onepass_cuda_give_workspace(cuda_launch *launch, void *workspace);

ONEPASS_INTERNAL const char *onepass_cuda_kernel_name(int32_t kernel);

#ifdef __cplusplus
}
#endif

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__aarch64__) && !defined(__cplusplus)
typedef __fp16 native_half;
#define NATIVE_HALF 1
#else
#define NATIVE_HALF 0
#endif

ALWAYS_INLINE size_t dtype_size(int32_t dtype) {
    return dtype == ONEPASS_F64 ? 8 : dtype == ONEPASS_F32 ? 4 : dtype == ONEPASS_BOOL ? 1 : 2;
}

ALWAYS_INLINE uint32_t f32_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

ALWAYS_INLINE float f32_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

ALWAYS_INLINE uint32_t choose_bits(bool condition, uint32_t a, uint32_t b) {
    const uint32_t mask = 0u - (uint32_t)condition;
    return (a & mask) | (b & ~mask);
}

ALWAYS_INLINE float f32_of_bf16(uint16_t half) {
    return f32_of((uint32_t)half << 16);
}

ALWAYS_INLINE float f32_of_f16(uint16_t half) {
#if defined(__CUDACC__)
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(half));
    return x;
#elif NATIVE_HALF
    native_half native;
    memcpy(&native, &half, sizeof native);
    return (float)native;
#else
    const uint32_t magnitude_bits = f32_bits(f32_of((uint32_t)(half & 0x7fff) << 13) * 0x1p112f);
    const uint32_t special = choose_bits((half & 0x7c00) == 0x7c00, 0x7f800000u, 0);
    return f32_of(magnitude_bits | special | (uint32_t)(half & 0x8000) << 16);
#endif
}

ALWAYS_INLINE uint16_t bf16_of_f32(float x) {
    const uint32_t bits = f32_bits(x);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return (uint16_t)choose_bits((bits & 0x7fffffffu) > 0x7f800000u, 0x7fc0u, rounded);
}

ALWAYS_INLINE uint16_t f16_of_f32(float x) {
    const uint32_t bits = f32_bits(x);
    const uint32_t size = bits & 0x7fffffffu;
#if defined(__CUDACC__)
    uint16_t half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
#elif NATIVE_HALF
    const native_half native = (native_half)x;
    uint16_t half;
    memcpy(&half, &native, sizeof half);
#else
    const uint32_t normal = (size - 0x38000000u + 0xfffu + ((size >> 13) & 1u)) >> 13;
    const uint32_t denormal = f32_bits(f32_of(size) + 0.5f) - 0x3f000000u;
    uint32_t half = choose_bits(size < 0x38800000u, denormal, normal);
    half = choose_bits(size >= 0x47800000u, 0x7c00u, half);
    half |= bits >> 16 & 0x8000u;
#endif
    return (uint16_t)choose_bits(size > 0x7f800000u, 0x7e00u, half);
}

ALWAYS_INLINE uint16_t small_of_f64(double x, int mantissa, int bias, uint16_t nan) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint16_t negative = (uint16_t)(bits >> 63 << 15);
    const uint64_t size = bits & UINT64_C(0x7fffffffffffffff);
    const uint16_t infinity = (uint16_t)((2 * bias + 1) << mantissa);
    if (size > UINT64_C(0x7ff0000000000000))
        return nan;
    const int exponent = (int)(size >> 52) - 1023;
    if (exponent > bias)
        return negative | infinity;
    uint64_t digits = size & UINT64_C(0x000fffffffffffff);
    int drop = 52 - mantissa;
    if (exponent > -bias) {
        digits |= (uint64_t)(exponent + bias) << 52;
    } else {
        digits |= UINT64_C(1) << 52;
        drop += 1 - bias - exponent;
        if (drop > 54)
            return negative;
    }
    const uint64_t half = UINT64_C(1) << (drop - 1);
    const uint64_t odd = digits >> drop & 1;
    return negative | (uint16_t)((digits + half - 1 + odd) >> drop);
}

ALWAYS_INLINE uint16_t f16_of_f64(double x) {
    return small_of_f64(x, 10, 15, 0x7e00);
}

ALWAYS_INLINE uint16_t bf16_of_f64(double x) {
    return small_of_f64(x, 7, 127, 0x7fc0);
}

ALWAYS_INLINE real load_f16(const void *data, int64_t i) {
    return f32_of_f16(((const uint16_t *)data)[i]);
}
ALWAYS_INLINE real load_bf16(const void *data, int64_t i) {
    return f32_of_bf16(((const uint16_t *)data)[i]);
}
ALWAYS_INLINE real load_f32(const void *data, int64_t i) {
    return ((const float *)data)[i];
}
ALWAYS_INLINE real load_f64(const void *data, int64_t i) {
    return (real)((const double *)data)[i];
}

ALWAYS_INLINE real load_bool(const void *data, int64_t i) {
    return ((const unsigned char *)data)[i] != 0;
}

ALWAYS_INLINE double load_scalar(const void *data, int32_t dtype) {
    switch (dtype) {
    case ONEPASS_F16:
        return (double)f32_of_f16(*(const uint16_t *)data);
    case ONEPASS_BF16:
        return (double)f32_of_bf16(*(const uint16_t *)data);
    case ONEPASS_F32:
        return (double)*(const float *)data;
    case ONEPASS_BOOL:
        return *(const unsigned char *)data != 0;
    default:
        return *(const double *)data;
    }
}

ALWAYS_INLINE void store_scalar(void *data, int32_t dtype, double x) {
    const uint64_t nan = UINT64_C(0x7ff8000000000000);
    if (x != x)
        memcpy(&x, &nan, sizeof x);
    switch (dtype) {
    case ONEPASS_F32:
        *(float *)data = (float)x;
        break;
    case ONEPASS_F64:
        *(double *)data = x;
        break;
    default:
        *(uint16_t *)data = dtype == ONEPASS_F16 ? f16_of_f64(x) : bf16_of_f64(x);
    }
}

#include <stdint.h>

#define ORDER_LINES 8
#define ORDER_LANES 128
#define ORDER_TILE  (ORDER_LINES * ORDER_LANES)

#define ORDER_MAX_LEVELS 64

#define ORDER_TOP_LEVEL 62

#define ORDER_NOTHING (-0.0)

#if defined(__cplusplus)

#define ORDER_WARP      32
#define ORDER_OWN_LANES 4

ALWAYS_INLINE int order_lane(int thread, int own) {
    return sizeof(real) == sizeof(float) ? 4 * thread + own : 2 * thread + own % 2 + own / 2 * (ORDER_LANES / 2);
}

ALWAYS_INLINE void order_line(int line, real term, real *sum, real *two, real *four) {
    switch (line) {
    case 0:
        *sum = term;
        break;
    case 1:
        *sum = *sum + term;
        break;
    case 2:
        *two = term;
        break;
    case 3:
        *sum = *sum + (*two + term);
        break;
    case 4:
        *four = term;
        break;
    case 5:
        *four = *four + term;
        break;
    case 6:
        *two = term;
        break;
    default:
        *sum = *sum + (*four + (*two + term));
    }
}

ALWAYS_INLINE double order_swap(double x, int distance) {
    return __shfl_xor_sync(~0u, x, distance);
}

ALWAYS_INLINE double order_halve(int thread, int distance, double first, double second) {
    const bool upper = thread & distance;
    return (upper ? second : first) + order_swap(upper ? first : second, distance);
}

ALWAYS_INLINE double order_lanes(int thread, const real *own) {
    const double l0 = own[0], l1 = own[1], l2 = own[2], l3 = own[3];
    if (sizeof(real) == sizeof(float)) {
        const double a = order_halve(thread, 16, l0, l2), b = order_halve(thread, 16, l1, l3);
        double sum = order_halve(thread, 8, a, b);
        for (int distance = 4; distance > 0; distance /= 2)
            sum = sum + order_swap(sum, distance);
        sum = sum + order_swap(sum, 16);
        return sum + order_swap(sum, 8);
    }
    double sum = order_halve(thread, 16, l0 + l2, l1 + l3);
    for (int distance = 8; distance > 0; distance /= 2)
        sum = sum + order_swap(sum, distance);
    return sum + order_swap(sum, 16);
}

ALWAYS_INLINE double order_lanes_of(int thread, const double *lane) {
    const double q0 = lane[thread], q1 = lane[thread + 32], q2 = lane[thread + 64], q3 = lane[thread + 96];
    double sum = (q0 + q2) + (q1 + q3);
    for (int distance = 16; distance > 0; distance /= 2)
        sum = sum + order_swap(sum, distance);
    return sum;
}

#define ORDER_TOGETHER 4
#define ORDER_PITCH    (ORDER_LANES + 8)

ALWAYS_INLINE double order_lanes_together(int thread, const real *lane) {
    const real *own = lane + thread / 8 * ORDER_PITCH + thread % 8;
    double sum[8];
#pragma unroll
    for (int i = 0; i < 8; i++)
        sum[i] = (double)own[8 * i] + (double)own[8 * i + 64];
#pragma unroll
    for (int i = 0; i < 4; i++)
        sum[i] = sum[i] + sum[i + 4];
    double total = (sum[0] + sum[2]) + (sum[1] + sum[3]);
    for (int distance = 4; distance > 0; distance /= 2)
        total = total + order_swap(total, distance);
    return total;
}

ALWAYS_INLINE double order_neighbours(double node, int count) {
    for (int distance = 1; distance < count; distance *= 2)
        node = node + order_swap(node, distance);
    return node;
}

#define ORDER_SHARE 8

ALWAYS_INLINE double order_shares(int thread, double *share) {
#pragma unroll
    for (int half = ORDER_SHARE / 2, distance = 1; half > 0; half /= 2, distance *= 2)
#pragma unroll
        for (int i = 0; i < half; i++)
            share[i] = order_halve(thread, distance, share[i], share[i + half]);
    double node = share[0];
    node = node + order_swap(node, 8);
    node = node + order_swap(node, 16);
    for (int distance = 4; distance > 0; distance /= 2)
        node = node + order_swap(node, distance);
    return node;
}

#else

#define ORDER_EACH_LANE(statement)                                                                                     \
    _Pragma("omp simd") for (int64_t lane = 0; lane < ORDER_LANES; lane++) {                                           \
        statement;                                                                                                     \
    }

struct tile;
typedef real order_term(const struct tile *tile, int64_t element);
typedef void order_prefetch(const struct tile *tile, int64_t element, int64_t count);

ALWAYS_INLINE real order_some_lines(order_term *term, const struct tile *tile, int64_t i, int lines) {
    const int64_t line = ORDER_LANES;
    if (lines == 1)
        return term(tile, i);
    if (lines == 2)
        return term(tile, i) + term(tile, i + line);
    return (term(tile, i) + term(tile, i + line)) + (term(tile, i + 2 * line) + term(tile, i + 3 * line));
}

ALWAYS_INLINE void order_lines(order_term *term, order_prefetch *prefetch, const struct tile *tile, int lines,
                               int block, real (*part)[ORDER_LANES], real *sum) {
    for (int64_t i = 0; i < ORDER_LINES / lines; i++)
        for (int64_t first = 0; first < ORDER_LANES; first += block) {
            const int64_t element = i * lines * ORDER_LANES;
            prefetch(tile, element + first * lines, block * lines);
#pragma omp simd
            for (int64_t lane = first; lane < first + block; lane++)
                part[i][lane] = order_some_lines(term, tile, element + lane, lines);
        }
    if (lines == 4)
        ORDER_EACH_LANE(sum[lane] = part[0][lane] + part[1][lane])
    else if (lines == 2)
        ORDER_EACH_LANE(sum[lane] = (part[0][lane] + part[1][lane]) + (part[2][lane] + part[3][lane]))
    else
        ORDER_EACH_LANE(sum[lane] = ((part[0][lane] + part[1][lane]) + (part[2][lane] + part[3][lane])) +
                                    ((part[4][lane] + part[5][lane]) + (part[6][lane] + part[7][lane])))
}

ALWAYS_INLINE double order_lanes(const real *sum) {
    double column[16], last[4];
    for (int l = 0; l < 16; l++) {
        const double q0 = sum[l], q1 = sum[l + 16], q2 = sum[l + 32], q3 = sum[l + 48];
        const double q4 = sum[l + 64], q5 = sum[l + 80], q6 = sum[l + 96], q7 = sum[l + 112];
        column[l] = ((q0 + q4) + (q2 + q6)) + ((q1 + q5) + (q3 + q7));
    }
    for (int l = 0; l < 4; l++)
        last[l] = (column[l] + column[l + 8]) + (column[l + 4] + column[l + 12]);
    return (last[0] + last[2]) + (last[1] + last[3]);
}

#endif

typedef struct order_stack {
    double node[ORDER_MAX_LEVELS];
    int depth;
    int64_t tiles;
} order_stack;

ALWAYS_INLINE void order_push(order_stack *stack, double tile_sum) {
    double sum = tile_sum;
    for (int64_t tiles = stack->tiles++; tiles & 1; tiles >>= 1)
        sum = stack->node[--stack->depth] + sum;
    stack->node[stack->depth++] = sum;
}

ALWAYS_INLINE double order_top(const order_stack *stack) {
    if (stack->depth == 0)
        return 0;
    double sum = stack->node[stack->depth - 1];
    for (int i = stack->depth - 2; i >= 0; i--)
        sum = stack->node[i] + sum;
    return sum;
}

typedef struct order_nodes {
    order_stack stack;
    int level;
    double *next;
} order_nodes;

ALWAYS_INLINE void order_end_node(order_nodes *nodes) {
    if (nodes->stack.tiles)
        *nodes->next++ = order_top(&nodes->stack);
    nodes->stack.depth = 0;
    nodes->stack.tiles = 0;
}

ALWAYS_INLINE void order_push_tile(order_nodes *nodes, double tile_sum) {
    order_push(&nodes->stack, tile_sum);
    if (nodes->stack.tiles >> nodes->level)
        order_end_node(nodes);
}

ALWAYS_INLINE double order_tree(double *node, int64_t count) {
    for (int64_t apart = 1; apart < count; apart *= 2)
        for (int64_t i = 0; i + apart < count; i += 2 * apart)
            node[i] = node[i] + node[i + apart];
    return count > 0 ? node[0] : 0;
}

#if !defined(__cplusplus)

typedef struct order_node {
    int64_t first;
    int level;
    double sum;
    double weights;
} order_node;

typedef struct order_forest {
    int64_t tiles;
    int64_t count;
    order_node *node;
} order_forest;

static inline int order_level_of(int64_t tile, int64_t end) {
    int level = 0;
    while (level < ORDER_TOP_LEVEL - 1 && !(tile >> level & 1) && end - tile >= (int64_t)2 << level)
        level++;
    return level;
}

#define ORDER_MOST_NODES (2 * ORDER_MAX_LEVELS)

static inline int64_t order_node_end(const order_forest *forest, const order_node *node) {
    const int64_t left = forest->tiles - node->first;
    return node->level >= ORDER_TOP_LEVEL || left <= (int64_t)1 << node->level
               ? forest->tiles
               : node->first + ((int64_t)1 << node->level);
}

static inline int64_t order_place(const order_forest *forest, int64_t first) {
    int64_t low = 0, high = forest->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (forest->node[middle].first < first)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static inline bool order_has_some(const order_forest *forest, int64_t first, int64_t end) {
    const int64_t at = order_place(forest, first);
    return (at > 0 && order_node_end(forest, &forest->node[at - 1]) > first) ||
           (at < forest->count && forest->node[at].first < end);
}

static inline void order_climb(order_forest *forest, int64_t at) {
    for (;;) {
        order_node *own = &forest->node[at];
        if (own->first == 0 && order_node_end(forest, own) == forest->tiles)
            return;
        const int64_t length = (int64_t)1 << own->level;
        const bool is_right = own->first & length;
        if (!is_right && own->first + length >= forest->tiles) {
            own->level++;
            continue;
        }
        const int64_t left = is_right ? at - 1 : at;
        if (left < 0 || left + 1 >= forest->count)
            return;
        order_node *pair = &forest->node[left];
        if (pair[0].level != own->level || pair[1].level != own->level || pair[1].first != pair[0].first + length)
            return;
        pair[0].sum = pair[0].sum + pair[1].sum;
        pair[0].weights = pair[0].weights + pair[1].weights;
        pair[0].level++;
        forest->count--;
        memmove(pair + 1, pair + 2, (size_t)(forest->count - left - 1) * sizeof *pair);
        at = left;
    }
}

static inline void order_insert(order_forest *forest, order_node node) {
    const int64_t at = order_place(forest, node.first);
    order_node *place = &forest->node[at];
    memmove(place + 1, place, (size_t)(forest->count - at) * sizeof *place);
    *place = node;
    forest->count++;
    order_climb(forest, at);
}

#endif

ALWAYS_INLINE double tree_of(int thread, double *node, int count) {
    const int own = count > ORDER_WARP ? count / ORDER_WARP : 1;
    const double sum = thread * own < count ? order_tree(node + thread * own, own) : ORDER_NOTHING;
    return order_neighbours(sum, count < ORDER_WARP ? count : ORDER_WARP);
}

ALWAYS_INLINE void write_value(const cuda_total *total, double sum) {
    store_scalar(total->value, total->dtype, total->divides ? sum / total->number : sum * total->number);
}

static __device__ __noinline__ void write_rare_value(const cuda_total *total, double sum) {
    write_value(total, sum);
}

ALWAYS_INLINE void write_small_value(const cuda_total *total, double sum) {
    if (!total->divides && total->dtype == ONEPASS_F32)
        store_scalar(total->value, ONEPASS_F32, sum * total->number);
    else
        write_rare_value(total, sum);
}

ALWAYS_INLINE double pair_sum(const double *partial, int64_t at, int64_t count) {
    const double left = at < count ? __ldcg(partial + at) : ORDER_NOTHING;
    return left + (at + 1 < count ? __ldcg(partial + at + 1) : ORDER_NOTHING);
}

#define GROUP (2 * ORDER_SHARE * ORDER_WARP)

ALWAYS_INLINE double group_sum(const double *partial, int64_t first, int64_t count, int thread) {
    double share[ORDER_SHARE];
#pragma unroll
    for (int i = 0; i < ORDER_SHARE; i++)
        share[i] = pair_sum(partial, first + 2 * (i * ORDER_WARP + thread), count);
    return order_shares(thread, share);
}

ALWAYS_INLINE bool leave_sum(unsigned *counter, double *partial, double sum, int thread) {
    unsigned number = 0;
    if (thread == 0) {
        __stcg(partial + blockIdx.x, sum);
        number = take_ticket(counter);
    }
    return __shfl_sync(~0u, number, 0) == gridDim.x - 1;
}

ALWAYS_INLINE bool tell_block(bool known, bool *shared) {
    if (threadIdx.x == 0)
        *shared = known;
    __syncthreads();
    return *shared;
}

ALWAYS_INLINE bool combine_blocks(void *workspace, double *node, double *sum) {
    __shared__ bool is_last;
    const int thread = threadIdx.x % ORDER_WARP, warp = threadIdx.x / ORDER_WARP, warps = blockDim.x / ORDER_WARP;
    unsigned *counter = (unsigned *)workspace;
    double *partial = (double *)workspace + CUDA_WORKSPACE_HEAD / sizeof(double);
    const int64_t blocks = gridDim.x;
    const bool last = warp == 0 && leave_sum(counter, partial, *sum, thread);
    const bool by_one_warp = blocks <= GROUP;
    if (by_one_warp ? !last : !tell_block(last, &is_last))
        return false;
    if (blocks <= 2 * ORDER_WARP) {
        *sum = order_neighbours(pair_sum(partial, 2 * thread, blocks), ORDER_WARP);
    } else {
        int groups = 1;
        while (groups * GROUP < blocks)
            groups *= 2;
#pragma unroll 1
        for (int group = warp; group < groups; group += warps) {
            *sum = group_sum(partial, (int64_t)group * GROUP, blocks, thread);
            if (thread == 0)
                node[group] = *sum;
        }
        if (!by_one_warp) {
            __syncthreads();
            if (warp != 0)
                return false;
            *sum = tree_of(thread, node, groups);
        }
    }
    if (thread == 0)
        *counter = 0;
    return thread == 0;
}

ALWAYS_INLINE bool has_total(const cuda_total *total, double *node, double *sum) {
    return gridDim.x == 1 ? threadIdx.x == 0 : combine_blocks(total->workspace, node, sum);
}

#define EACH_ROW    _Pragma("unroll") for (int row = 0; row < ORDER_LINES; row++)
#define EACH_OWN    _Pragma("unroll") for (int own = 0; own < ORDER_OWN_LANES; own++)
#define EACH_VECTOR _Pragma("unroll") for (int i = 0; i < VECTORS; i++)

typedef struct tile {
    int64_t index;
    int count;
    int thread;
    real *buffer;
} tile;

ALWAYS_INLINE tile tile_at(int64_t index, int left, int thread, real *buffer) {
    tile tile;
    tile.index = index;
    tile.count = left < ORDER_TILE ? left : ORDER_TILE;
    tile.thread = anew(thread);
    tile.buffer = buffer;
    return tile;
}

ALWAYS_INLINE real *shared_buffer(const cuda_head *head, int warp) {
    extern __shared__ __align__(16) unsigned char shared_memory[];
    return (real *)shared_memory + warp * head->buffers * ORDER_TILE;
}

ALWAYS_INLINE int own_element(const tile *tile, int row, int own) {
    return row * ORDER_LANES + order_lane(tile->thread, own);
}

template <typename number> ALWAYS_INLINE number *own_place(const tile *tile, number *at, int row, int own) {
    return at + order_lane(tile->thread, own) + row * ORDER_LANES;
}

ALWAYS_INLINE int64_t divide(int64_t n, const cuda_divisor *by) {
    return (int64_t)(__umul64hi((uint64_t)n, by->magic) >> by->shift);
}

#define VECTOR  (16 / (int)sizeof(real))
#define VECTORS (ORDER_OWN_LANES / VECTOR)

#if defined(ONEPASS_REAL_F64)
typedef double2 vector;

ALWAYS_INLINE vector pack(const real *x) {
    return make_double2(x[0], x[1]);
}

ALWAYS_INLINE void unpack(vector v, real *x) {
    x[0] = v.x;
    x[1] = v.y;
}
#else
typedef float4 vector;

ALWAYS_INLINE vector pack(const real *x) {
    return make_float4(x[0], x[1], x[2], x[3]);
}

ALWAYS_INLINE void unpack(vector v, real *x) {
    x[0] = v.x;
    x[1] = v.y;
    x[2] = v.z;
    x[3] = v.w;
}

ALWAYS_INLINE void unpack_half(bool f16, uint2 v, real *x) {
    x[0] = f16 ? f32_of_f16((uint16_t)v.x) : f32_of(v.x << 16);
    x[1] = f16 ? f32_of_f16((uint16_t)(v.x >> 16)) : f32_of(v.x & 0xffff0000u);
    x[2] = f16 ? f32_of_f16((uint16_t)v.y) : f32_of(v.y << 16);
    x[3] = f16 ? f32_of_f16((uint16_t)(v.y >> 16)) : f32_of(v.y & 0xffff0000u);
}

ALWAYS_INLINE uint32_t narrow(bool f16, float x) {
    return f16 ? f16_of_f32(x) : bf16_of_f32(x);
}

ALWAYS_INLINE uint2 pack_half(bool f16, const real *x) {
    return make_uint2(narrow(f16, x[0]) | narrow(f16, x[1]) << 16, narrow(f16, x[2]) | narrow(f16, x[3]) << 16);
}
#endif

ALWAYS_INLINE vector zero_vector(void) {
    const real zero[VECTOR] = {0};
    return pack(zero);
}

ALWAYS_INLINE void read_row(const tile *tile, const real *from, int row, real *x) {
    EACH_VECTOR unpack(*(const vector *)own_place(tile, from, row, i * VECTOR), x + i * VECTOR);
}

ALWAYS_INLINE void write_row(const tile *tile, real *to, int row, const real *x) {
    EACH_VECTOR *(vector *)own_place(tile, to, row, i * VECTOR) = pack(x + i * VECTOR);
}

typedef enum access {
    ACCESS_REAL,
    ACCESS_HALF
} access;

ALWAYS_INLINE int access_size(access access) {
    return access == ACCESS_REAL ? sizeof(real) : sizeof(uint16_t);
}

ALWAYS_INLINE bool is_constant(const cuda_direct *job, int which) {
    return (job->head.rows >> which & 1) && job->rows[which].tile_step == 0;
}

ALWAYS_INLINE void *dense_address(const cuda_direct *job, int which, const tile *tile, int size) {
    return (char *)job->head.data[which] + tile->index * ORDER_TILE * size;
}

ALWAYS_INLINE void *tile_address(const cuda_direct *job, int which, const tile *tile, int size) {
    if (!(job->head.rows >> which & 1))
        return dense_address(job, which, tile, size);
    const cuda_rows *rows = &job->rows[which];
    const int64_t row = rows->tiles == 1 ? tile->index : divide(tile->index, &rows->by);
    const int64_t offset = row * rows->row_step + (tile->index - row * rows->tiles) * rows->tile_step;
    return (char *)job->head.data[which] + offset * size;
}

typedef struct numbers {
    vector at[VECTORS];
} numbers;

typedef enum keeping {
    KEEP_AS_USUAL,
    KEEP_LEAST,
    KEEP_OUTSIDE,
    KEEP_LONGEST
} keeping;

template <keeping keeping> ALWAYS_INLINE vector load_vector(const vector *address) {
    return keeping == KEEP_LEAST     ? __ldcs(address)
           : keeping == KEEP_OUTSIDE ? load_outside(address)
           : keeping == KEEP_LONGEST ? load_longest(address)
                                     : *address;
}

template <access access, keeping keeping>
ALWAYS_INLINE void send_for_row(const tile *tile, const void *from, int row, numbers *into) {
    if (access == ACCESS_REAL)
        EACH_VECTOR {
            into->at[i] = load_vector<keeping>((const vector *)own_place(tile, (const real *)from, row, i * VECTOR));
        }
#if !defined(ONEPASS_REAL_F64)
    if (access == ACCESS_HALF) {
        const uint2 *address = (const uint2 *)own_place(tile, (const uint16_t *)from, row, 0);
        const uint2 half = keeping == KEEP_LEAST || keeping == KEEP_OUTSIDE ? __ldcs(address) : *address;
        into->at[0].x = real_of(half.x);
        into->at[0].y = real_of(half.y);
    }
#endif
}

ALWAYS_INLINE void send_for_constant(const void *from, numbers *into) {
    real x[ORDER_OWN_LANES];
    EACH_OWN x[own] = *(const real *)from;
    EACH_VECTOR into->at[i] = pack(x + i * VECTOR);
}

template <access access> ALWAYS_INLINE void send_for_rest(const tile *tile, const void *from, int row, numbers *into) {
    real x[ORDER_OWN_LANES];
#if !defined(ONEPASS_REAL_F64)
    uint32_t half[ORDER_OWN_LANES];
    if (access == ACCESS_HALF) {
        EACH_OWN {
            const int element = own_element(tile, row, own);
            half[own] = element < tile->count ? ((const uint16_t *)from)[element] : 0;
        }
        into->at[0].x = real_of(half[0] | half[1] << 16);
        into->at[0].y = real_of(half[2] | half[3] << 16);
    }
#endif
    if (access == ACCESS_REAL) {
        EACH_OWN {
            const int element = own_element(tile, row, own);
            x[own] = element < tile->count ? ((const real *)from)[element] : 0;
        }
        EACH_VECTOR into->at[i] = pack(x + i * VECTOR);
    }
}

template <access access> ALWAYS_INLINE void receive(bool f16, const numbers *numbers, real *x) {
    if (access == ACCESS_REAL)
        EACH_VECTOR unpack(numbers->at[i], x + i * VECTOR);
#if !defined(ONEPASS_REAL_F64)
    if (access == ACCESS_HALF) {
        const uint2 half = make_uint2(bits_of(numbers->at[0].x), bits_of(numbers->at[0].y));
        if (f16)
            unpack_half(true, apart(half), x);
        else
            unpack_half(false, half, x);
    }
#endif
}

template <access access> ALWAYS_INLINE void put_row(const tile *tile, bool f16, void *to, int row, const real *x) {
#if !defined(ONEPASS_REAL_F64)
    if (access == ACCESS_HALF)
        *(uint2 *)own_place(tile, (uint16_t *)to, row, 0) = f16 ? apart(pack_half(true, x)) : pack_half(false, x);
#endif
    if (access == ACCESS_REAL)
        EACH_VECTOR *(vector *)own_place(tile, (real *)to, row, i * VECTOR) = pack(x + i * VECTOR);
}

template <access access> ALWAYS_INLINE void put_last_row(const tile *tile, bool f16, void *to, int row, const real *x) {
    EACH_OWN {
        const int element = own_element(tile, row, own);
#if !defined(ONEPASS_REAL_F64)
        if (access == ACCESS_HALF && element < tile->count)
            ((uint16_t *)to)[element] = (uint16_t)narrow(f16, x[own]);
#endif
        if (access == ACCESS_REAL && element < tile->count)
            ((real *)to)[element] = x[own];
    }
}

typedef real (*load_function)(const void *data, int64_t i);

ALWAYS_INLINE void store_one(int32_t dtype, void *data, int64_t i, real x) {
    switch (dtype) {
    case ONEPASS_F16:
        ((uint16_t *)data)[i] = sizeof x == sizeof(float) ? f16_of_f32((float)x) : f16_of_f64((double)x);
        break;
    case ONEPASS_BF16:
        ((uint16_t *)data)[i] = sizeof x == sizeof(float) ? bf16_of_f32((float)x) : bf16_of_f64((double)x);
        break;
    case ONEPASS_F32:
        ((float *)data)[i] = (float)x;
        break;
    default:
        ((double *)data)[i] = (double)x;
    }
}

ALWAYS_INLINE void fill_by_vectors(const tile *tile, const real *from, real *buffer) {
    numbers read[ORDER_LINES];
    EACH_ROW EACH_VECTOR {
        const int element = own_element(tile, row, i * VECTOR);
        read[row].at[i] = zero_vector();
        if (element + VECTOR <= tile->count)
            read[row].at[i] = *(const vector *)(from + element);
    }
    EACH_ROW EACH_VECTOR {
        const int element = own_element(tile, row, i * VECTOR);
        if (element + VECTOR <= tile->count)
            *(vector *)(buffer + element) = read[row].at[i];
    }
    const int rest = tile->count / VECTOR * VECTOR + tile->thread;
    if (rest < tile->count)
        buffer[rest] = from[rest];
}

#if !defined(ONEPASS_REAL_F64)
ALWAYS_INLINE void fill_by_half_vectors(const tile *tile, int32_t dtype, const uint16_t *from, real *buffer) {
    uint2 read[ORDER_LINES];
    EACH_ROW {
        const int element = own_element(tile, row, 0);
        read[row] = make_uint2(0, 0);
        if (element + 4 <= tile->count)
            read[row] = *(const uint2 *)(from + element);
    }
    EACH_ROW {
        const int element = own_element(tile, row, 0);
        real x[ORDER_OWN_LANES];
        unpack_half(dtype == ONEPASS_F16, read[row], x);
        if (element + 4 <= tile->count)
            write_row(tile, buffer, row, x);
    }
    const int rest = tile->count / 4 * 4 + tile->thread;
    if (rest < tile->count)
        buffer[rest] = dtype == ONEPASS_F16 ? load_f16(from, rest) : load_bf16(from, rest);
}
#endif

template <load_function load>
ALWAYS_INLINE void fill_one_by_one(const tile *tile, const void *from, int64_t stride, real *buffer) {
#pragma unroll 8
    for (int i = tile->thread; i < tile->count; i += ORDER_WARP)
        buffer[i] = load(from, i * stride);
}

ALWAYS_INLINE void fill_from_row(const tile *tile, int32_t dtype, const void *from, int64_t stride, real *buffer) {
    const bool dense = stride == 1;
    if (dense && dtype == REAL_DTYPE && (uintptr_t)from % 16 == 0)
        fill_by_vectors(tile, (const real *)from, buffer);
#if !defined(ONEPASS_REAL_F64)
    else if (dense && dtype < ONEPASS_F32 && (uintptr_t)from % 8 == 0)
        fill_by_half_vectors(tile, dtype, (const uint16_t *)from, buffer);
#endif
    else if (dtype == ONEPASS_F16)
        fill_one_by_one<load_f16>(tile, from, stride, buffer);
    else if (dtype == ONEPASS_BF16)
        fill_one_by_one<load_bf16>(tile, from, stride, buffer);
    else if (dtype == ONEPASS_F32)
        fill_one_by_one<load_f32>(tile, from, stride, buffer);
    else if (dtype == ONEPASS_BOOL)
        fill_one_by_one<load_bool>(tile, from, stride, buffer);
    else
        fill_one_by_one<load_f64>(tile, from, stride, buffer);
}

typedef struct place {
    int64_t offset;
    int64_t left;
} place;

ALWAYS_INLINE place place_of(const cuda_view *view, int64_t element) {
    place at;
    const int inner = view->ndim - 1;
    at.offset = 0;
    at.left = view->extent[inner] - element;
#pragma unroll 1
    for (int d = inner; d > 0; d--) {
        const int64_t outer = divide(element, &view->by[d]);
        const int64_t index = element - outer * view->extent[d];
        if (d == inner)
            at.left = view->extent[d] - index;
        at.offset += index * view->stride[d];
        element = outer;
    }
    at.offset += element * view->stride[0];
    return at;
}

ALWAYS_INLINE void fill_buffer(const cuda_general *job, int which, const tile *tile, real *buffer) {
    const cuda_view *view = &job->view[which];
    const bool is_weight = which == CUDA_WEIGHT;
    const int dtype = is_weight ? job->weight_dtype : job->head.dtype[which], size = (int)dtype_size(dtype);
    const char *data = (const char *)(is_weight ? job->weight : job->head.data[which]);
    const place at = place_of(view, tile->index * ORDER_TILE);
    if (at.left >= tile->count) {
        fill_from_row(tile, dtype, data + at.offset * size, view->stride[view->ndim - 1], buffer);
        return;
    }
#pragma unroll 4
    for (int i = tile->thread; i < tile->count; i += ORDER_WARP)
        buffer[i] = (real)load_scalar(data + place_of(view, tile->index * ORDER_TILE + i).offset * size, dtype);
}

ALWAYS_INLINE real *plain_tile(const cuda_general *job, int which, void *data, int dtype, const tile *tile) {
    const cuda_view *view = &job->view[which];
    const bool plain = dtype == REAL_DTYPE && view->ndim == 1 && view->stride[0] == 1;
    return plain && (uintptr_t)data % 16 == 0 ? (real *)data + tile->index * ORDER_TILE : NULL;
}

ALWAYS_INLINE const real *plain_input(const cuda_general *job, int which, const tile *tile) {
    const bool is_weight = which == CUDA_WEIGHT;
    void *data = is_weight ? job->weight : job->head.data[which];
    if (tile->count < ORDER_TILE)
        return NULL;
    return plain_tile(job, which, data, is_weight ? job->weight_dtype : job->head.dtype[which], tile);
}

ALWAYS_INLINE real *plain_output(const cuda_general *job, int which, const tile *tile) {
    return plain_tile(job, which, job->head.data[which], job->head.dtype[which], tile);
}

ALWAYS_INLINE void empty_buffer(const cuda_general *job, int which, const tile *tile, const real *buffer) {
    const cuda_view *view = &job->view[which];
    const place at = place_of(view, tile->index * ORDER_TILE);
    const int64_t stride = view->stride[view->ndim - 1];
    const bool one_row = at.left >= tile->count;
#pragma unroll 1
    for (int i = tile->thread; i < tile->count; i += ORDER_WARP)
        store_one(job->head.dtype[which], job->head.data[which],
                  one_row ? at.offset + i * stride : place_of(view, tile->index * ORDER_TILE + i).offset, buffer[i]);
}

typedef uint32_t part;
#define PART_ALL UINT32_C(0xffffffff)

ALWAYS_INLINE bool takes_part(part part, int row, int own) {
    return part >> (row * ORDER_OWN_LANES + own) & 1;
}

ALWAYS_INLINE part part_of_word(uint32_t bytes) {
    part part = 0;
    EACH_OWN part |= (uint32_t)((bytes >> 8 * own & 0xff) != 0) << own;
    return part;
}

ALWAYS_INLINE part read_mask(const cuda_general *job, const tile *tile) {
    const cuda_view *view = &job->view[CUDA_MASK];
    const unsigned char *mask = (const unsigned char *)job->mask;
    const place at = place_of(view, tile->index * ORDER_TILE);
    const int64_t stride = view->stride[view->ndim - 1];
    const bool one_row = at.left >= tile->count;
    part part = 0;
    if (sizeof(real) == sizeof(float) && one_row && stride == 1 && tile->count == ORDER_TILE &&
        (uintptr_t)(mask + at.offset) % 4 == 0) {
        uint32_t bytes[ORDER_LINES];
        EACH_ROW bytes[row] = *(const uint32_t *)(mask + at.offset + own_element(tile, row, 0));
        EACH_ROW part |= part_of_word(bytes[row]) << (row * ORDER_OWN_LANES);
        return part;
    }
#pragma unroll 1
    for (int i = 0; i < ORDER_LINES * ORDER_OWN_LANES; i++) {
        const int element = own_element(tile, i / ORDER_OWN_LANES, i % ORDER_OWN_LANES);
        if (element >= tile->count)
            continue;
        const int64_t offset =
            one_row ? at.offset + element * stride : place_of(view, tile->index * ORDER_TILE + element).offset;
        part |= (uint32_t)(mask[offset] != 0) << i;
    }
    return part;
}

#if defined(ONEPASS_REAL_F64)
#define KERNEL(name)  onepass_##name##_f64
#define REAL(numbers) (numbers).f64
#define BLOCKS        1
#define LEAN_BLOCKS   1
#else
#define KERNEL(name)  onepass_##name##_f32
#define REAL(numbers) (numbers).f32
#define BLOCKS        2
#define LEAN_BLOCKS   4
#endif
#define MOST_WARPS CUDA_MOST_WARPS
#define BOUNDS     __launch_bounds__(MOST_WARPS *ORDER_WARP, BLOCKS)

#define ARGUMENTS_2 x[0], x[1]
#define ARGUMENTS_3 x[0], x[1], x[2]
#define LOSS_MEMBER(name, member, operands)                                                                            \
    ALWAYS_INLINE real member(const real *x, const real *parameter) {                                                  \
        return name##_##member(PASTE(ARGUMENTS_, OPERANDS_OF operands), parameter);                                    \
    }
#define LOSS_SLOPE_2(name, operands)
#define LOSS_SLOPE_3(name, operands) LOSS_MEMBER(name, slope_v, operands)
#define LOSS(name, operands, ...)                                                                                      \
    struct name##_loss {                                                                                               \
        enum {                                                                                                         \
            OPERANDS = OPERANDS_OF operands                                                                            \
        };                                                                                                             \
        LOSS_MEMBER(name, value, operands)                                                                             \
        LOSS_MEMBER(name, slope_p, operands)                                                                           \
        LOSS_MEMBER(name, slope_t, operands)                                                                           \
        PASTE(LOSS_SLOPE_, OPERANDS_OF operands)(name, operands)                                                       \
    };

LOSS_FUNCTION real mse_value(real p, real t, const real *parameter) {
    (void)parameter;
    const real x = p - t;
    return x * x;
}

LOSS_FUNCTION real mse_slope_p(real p, real t, const real *parameter) {
    (void)parameter;
    return 2 * (p - t);
}

LOSS_FUNCTION real mse_slope_t(real p, real t, const real *parameter) {
    return -mse_slope_p(p, t, parameter);
}

LOSS(mse, (prediction, target), SHORT, "squared error", "x*x", "2*x", ACCURACY("x", ULP(0.5), ULP(0.5), ULP(0.5)),
     NO_PARAMETERS)
#undef LOSS

struct weights_loss {
    enum {
        OPERANDS = 1
    };
    ALWAYS_INLINE real value(const real *x, const real *parameter) {
        return x[0];
    }
};

typedef real (*loss_function)(const real *x, const real *parameter);

typedef enum outputs {
    OUTPUTS_VALUE,
    OUTPUTS_BOTH,
    OUTPUTS_GRADIENT,
    OUTPUTS_ANY
} outputs;

typedef struct wanted {
    bool sum, values;
    unsigned gradients;
    bool upstream_is_tensor;
    real scale;
    real upstream;
    const real *parameter;
} wanted;

template <outputs outputs> ALWAYS_INLINE wanted what_is_wanted(const cuda_head *head) {
    const bool any = outputs == OUTPUTS_ANY, none = any && head->reduction == ONEPASS_NONE;
    wanted wanted;
    wanted.sum = outputs == OUTPUTS_VALUE || outputs == OUTPUTS_BOTH || (any && !none && head->total.value);
    wanted.values = none && head->data[CUDA_VALUE];
    wanted.gradients = outputs == OUTPUTS_BOTH || outputs == OUTPUTS_GRADIENT;
    for (int k = 0; k < MOST_OPERANDS && any; k++)
        wanted.gradients |= (unsigned)(head->data[CUDA_GRADIENT + k] != NULL) << k;
    wanted.upstream_is_tensor = none && head->data[CUDA_UPSTREAM];
    wanted.scale = REAL(head->scale);
    wanted.parameter = REAL(head->parameter);
    wanted.upstream = 1;
    if (outputs != OUTPUTS_VALUE && !none && head->data[CUDA_UPSTREAM])
        wanted.upstream = (real)load_scalar(head->data[CUDA_UPSTREAM], head->dtype[CUDA_UPSTREAM]);
    return wanted;
}

typedef struct lane_sums {
    real sum[ORDER_OWN_LANES], two[ORDER_OWN_LANES], four[ORDER_OWN_LANES];
} lane_sums;

ALWAYS_INLINE void add_row(int row, const real *term, lane_sums *sums) {
    EACH_OWN order_line(row, term[own], &sums->sum[own], &sums->two[own], &sums->four[own]);
}

typedef struct own_row {
    real x[ORDER_OWN_LANES][MOST_OPERANDS];
} own_row;

ALWAYS_INLINE real gradient_of(const wanted *wanted, real slope, real upstream) {
    return canonical(slope * wanted->scale * upstream);
}

ALWAYS_INLINE void end_row(const tile *tile, int row, real *x) {
    EACH_OWN x[own] = own_element(tile, row, own) < tile->count ? x[own] : 0;
}

template <typename loss, access access> struct stage {
    enum {
        ROWS = access == ACCESS_HALF               ? ORDER_LINES
               : loss::OPERANDS * sizeof(real) > 8 ? ORDER_LINES / 4
                                                   : ORDER_LINES / 2
    };
    numbers of[ROWS][loss::OPERANDS];
};

#define EACH_OPERAND   _Pragma("unroll") for (int k = 0; k < loss::OPERANDS; k++)
#define EACH_STAGE_ROW _Pragma("unroll") for (int row = 0; row < stage<loss, access>::ROWS; row++)

template <typename loss, access access, keeping keeping>
ALWAYS_INLINE void send_for_rows(const tile *tile, void *const *at, int first, stage<loss, access> *into) {
    EACH_STAGE_ROW EACH_OPERAND {
        if (keeping == KEEP_OUTSIDE && k == CUDA_TARGET)
            send_for_row<access, KEEP_LONGEST>(tile, at[k], first + row, &into->of[row][k]);
        else
            send_for_row<access, keeping>(tile, at[k], first + row, &into->of[row][k]);
    }
}

template <typename loss> ALWAYS_INLINE bool has_constants(const cuda_direct *job) {
    bool has = false;
    EACH_OPERAND has |= is_constant(job, CUDA_PREDICTION + k);
    return has;
}

template <typename loss, access access>
ALWAYS_INLINE void send_for_constants(const cuda_direct *job, const tile *tile, void *const *at, int first,
                                      stage<loss, access> *into) {
    EACH_OPERAND {
        if (is_constant(job, CUDA_PREDICTION + k))
            EACH_STAGE_ROW send_for_constant(at[k], &into->of[row][k]);
        else
            EACH_STAGE_ROW send_for_row<ACCESS_REAL, KEEP_LEAST>(tile, at[k], first + row, &into->of[row][k]);
    }
}

template <typename loss, access access>
ALWAYS_INLINE void send_for_last_rows(const cuda_direct *job, const tile *tile, void *const *at, int first,
                                      stage<loss, access> *into) {
    EACH_OPERAND {
        if (access == ACCESS_REAL && is_constant(job, CUDA_PREDICTION + k))
            EACH_STAGE_ROW send_for_constant(at[k], &into->of[row][k]);
        else
            EACH_STAGE_ROW send_for_rest<access>(tile, at[k], first + row, &into->of[row][k]);
    }
}

template <typename loss, access access> struct ahead {
    bool is_plain;
    void *at[loss::OPERANDS];
    stage<loss, access> rows;
};

template <typename loss, outputs outputs, access access>
ALWAYS_INLINE void send_for_stage(const cuda_direct *job, const tile *tile, const ahead<loss, access> *ahead, int first,
                                  stage<loss, access> *into) {
    if (!ahead->is_plain && tile->count < ORDER_TILE)
        send_for_last_rows<loss, access>(job, tile, ahead->at, first, into);
    else if (access == ACCESS_REAL && !ahead->is_plain)
        send_for_constants<loss, access>(job, tile, ahead->at, first, into);
    else if (outputs != OUTPUTS_VALUE)
        send_for_rows<loss, access, KEEP_AS_USUAL>(tile, ahead->at, first, into);
    else if (loss::OPERANDS > 2 || (job->head.rows >> CUDA_TARGET & 1))
        send_for_rows<loss, access, KEEP_OUTSIDE>(tile, ahead->at, first, into);
    else
        send_for_rows<loss, access, KEEP_LEAST>(tile, ahead->at, first, into);
}

template <typename loss, access access> ALWAYS_INLINE void receive_row(bool f16, const numbers *from, own_row *into) {
    EACH_OPERAND {
        real x[ORDER_OWN_LANES];
        receive<access>(f16, &from[k], x);
        EACH_OWN into->x[own][k] = x[own];
    }
}

template <typename loss, outputs outputs, access access, int rows>
ALWAYS_INLINE void compute_rows(const tile *tile, const wanted *wanted, bool f16, bool plain, void *gradient, int first,
                                const numbers (*from)[loss::OPERANDS], lane_sums *sums) {
    real value[rows][ORDER_OWN_LANES], slope[rows][ORDER_OWN_LANES];
#define EACH_OF_ROWS _Pragma("unroll") for (int row = 0; row < rows; row++)
    EACH_OF_ROWS {
        own_row in;
        receive_row<loss, access>(f16, from[row], &in);
        EACH_OWN {
            if constexpr (outputs != OUTPUTS_GRADIENT)
                value[row][own] = loss::value(in.x[own], wanted->parameter);
            if constexpr (outputs != OUTPUTS_VALUE)
                slope[row][own] = gradient_of(wanted, loss::slope_p(in.x[own], wanted->parameter), wanted->upstream);
        }
    }
    if constexpr (outputs != OUTPUTS_GRADIENT) {
        if (tile->count < ORDER_TILE)
            EACH_OF_ROWS end_row(tile, first + row, value[row]);
        EACH_OF_ROWS add_row(first + row, value[row], sums);
    }
    if constexpr (outputs != OUTPUTS_VALUE) {
        if (plain)
            EACH_OF_ROWS put_row<access>(tile, f16, gradient, first + row, slope[row]);
        else
            EACH_OF_ROWS put_last_row<access>(tile, f16, gradient, first + row, slope[row]);
    }
#undef EACH_OF_ROWS
}

template <typename loss, outputs outputs, access access>
ALWAYS_INLINE void compute_stage(const tile *tile, const wanted *wanted, bool f16, void *gradient, int first,
                                 const stage<loss, access> *from, lane_sums *sums) {
    compute_rows<loss, outputs, access, stage<loss, access>::ROWS>(tile, wanted, f16, tile->count == ORDER_TILE,
                                                                   gradient, first, from->of, sums);
}

template <typename loss, outputs outputs, access access>
ALWAYS_INLINE void begin_tile(const cuda_direct *job, const tile *tile, ahead<loss, access> *ahead) {
    if (tile->count <= 0)
        return;
    const bool is_whole = tile->count == ORDER_TILE;
    if (job->head.rows == 0) {
        ahead->is_plain = is_whole;
        EACH_OPERAND ahead->at[k] = dense_address(job, CUDA_PREDICTION + k, tile, access_size(access));
    } else {
        ahead->is_plain = is_whole && !(access == ACCESS_REAL && has_constants<loss>(job));
        EACH_OPERAND ahead->at[k] = tile_address(job, CUDA_PREDICTION + k, tile, access_size(access));
    }
    send_for_stage<loss, outputs, access>(job, tile, ahead, 0, &ahead->rows);
}

template <typename loss, outputs outputs, access access>
ALWAYS_INLINE void run_tile(const cuda_direct *job, const wanted *wanted, const tile *now, const tile *next,
                            ahead<loss, access> *ahead, lane_sums *sums) {
    const int rows = stage<loss, access>::ROWS;
    const bool f16 = access == ACCESS_HALF && job->head.dtype[CUDA_PREDICTION] == ONEPASS_F16;
    void *gradient = outputs == OUTPUTS_VALUE ? NULL : tile_address(job, CUDA_GRADIENT, now, access_size(access));
    if constexpr (rows == ORDER_LINES) {
        begin_tile<loss, outputs, access>(job, now, ahead);
        compute_stage<loss, outputs, access>(now, wanted, f16, gradient, 0, &ahead->rows, sums);
    } else {
        stage<loss, access> other;
#pragma unroll
        for (int first = 0; first < ORDER_LINES; first += 2 * rows) {
            send_for_stage<loss, outputs, access>(job, now, ahead, first + rows, &other);
            compute_stage<loss, outputs, access>(now, wanted, false, gradient, first, &ahead->rows, sums);
            if (first + 2 * rows < ORDER_LINES)
                send_for_stage<loss, outputs, access>(job, now, ahead, first + 2 * rows, &ahead->rows);
            else
                begin_tile<loss, outputs, access>(job, next, ahead);
            compute_stage<loss, outputs, access>(now, wanted, false, gradient, first + rows, &other, sums);
        }
    }
}

#define WEIGHTED_ROWS (ORDER_LINES / 2)
#define EACH_WEIGHTED _Pragma("unroll") for (int row = 0; row < WEIGHTED_ROWS; row++)

ALWAYS_INLINE void send_for_weighted(const tile *tile, const void *data, int first, numbers *into, int apart) {
    const real one = 1, *from = (const real *)data + tile->index * ORDER_TILE;
    if (!data)
        EACH_WEIGHTED send_for_constant(&one, &into[row * apart]);
    else if (tile->count == ORDER_TILE)
        EACH_WEIGHTED send_for_row<ACCESS_REAL, KEEP_LEAST>(tile, from, first + row, &into[row * apart]);
    else
        EACH_WEIGHTED send_for_rest<ACCESS_REAL>(tile, from, first + row, &into[row * apart]);
}

ALWAYS_INLINE uint32_t mask_word(const tile *tile, const unsigned char *mask, int row) {
    const unsigned char *at = mask + own_element(tile, row, 0);
    if (tile->count == ORDER_TILE)
        return __ldcs((const uint32_t *)at);
    uint32_t word = 0;
    EACH_OWN if (own_element(tile, row, own) < tile->count) word |= (uint32_t)at[own] << 8 * own;
    return word;
}

template <typename loss, outputs outputs>
ALWAYS_INLINE void run_half(const cuda_weighted *job, const wanted *wanted, const tile *tile, int first,
                            lane_sums *sums) {
    numbers in[WEIGHTED_ROWS][loss::OPERANDS], weight[WEIGHTED_ROWS];
    uint32_t mask[WEIGHTED_ROWS];
    const unsigned char *mask_tile = (const unsigned char *)job->mask + tile->index * ORDER_TILE;
    EACH_OPERAND send_for_weighted(tile, job->head.data[CUDA_PREDICTION + k], first, &in[0][k], loss::OPERANDS);
    send_for_weighted(tile, job->weight, first, weight, 1);
    EACH_WEIGHTED mask[row] = job->mask ? mask_word(tile, mask_tile, first + row) : ~0u;
    real *gradient = (real *)job->head.data[CUDA_GRADIENT] + tile->index * ORDER_TILE;
    EACH_WEIGHTED {
        own_row x;
        real w[ORDER_OWN_LANES], value[ORDER_OWN_LANES], slope[ORDER_OWN_LANES];
        receive_row<loss, ACCESS_REAL>(false, in[row], &x);
        receive<ACCESS_REAL>(false, &weight[row], w);
        EACH_OWN {
            const bool takes_part = mask[row] >> 8 * own & 0xff;
            value[own] = takes_part ? canonical(loss::value(x.x[own], wanted->parameter) * w[own]) : 0;
            if constexpr (outputs == OUTPUTS_BOTH) {
                const real weighted = loss::slope_p(x.x[own], wanted->parameter) * w[own];
                slope[own] = takes_part ? gradient_of(wanted, weighted, wanted->upstream) : 0;
            }
        }
        end_row(tile, first + row, value);
        add_row(first + row, value, sums);
        if constexpr (outputs == OUTPUTS_BOTH) {
            if (tile->count == ORDER_TILE)
                put_row<ACCESS_REAL>(tile, false, gradient, first + row, slope);
            else
                put_last_row<ACCESS_REAL>(tile, false, gradient, first + row, slope);
        }
    }
}

ALWAYS_INLINE real *buffer_of(const tile *tile, int which) {
    return tile->buffer + which * ORDER_TILE;
}

#define GENERAL_INPUTS (MOST_OPERANDS + 2)
#define INPUT_UPSTREAM MOST_OPERANDS
#define INPUT_WEIGHT   (MOST_OPERANDS + 1)
typedef struct sources {
    const real *at[GENERAL_INPUTS];
} sources;

typedef struct inputs {
    real x[GENERAL_INPUTS][ORDER_OWN_LANES];
} inputs;

ALWAYS_INLINE void read_inputs(const tile *tile, const sources *sources, int row, inputs *into) {
#pragma unroll
    for (int k = 0; k < GENERAL_INPUTS; k++)
        if (sources->at[k])
            read_row(tile, sources->at[k], row, into->x[k]);
}

#define GENERAL_OUTPUTS (1 + MOST_OPERANDS)
typedef struct places {
    real *at[GENERAL_OUTPUTS];
} places;

ALWAYS_INLINE void put_result(const tile *tile, const places *places, int output, int row, const real *x) {
    if (places->at[output] && tile->count == ORDER_TILE)
        put_row<ACCESS_REAL>(tile, false, places->at[output], row, x);
    else if (places->at[output])
        put_last_row<ACCESS_REAL>(tile, false, places->at[output], row, x);
    else
        write_row(tile, buffer_of(tile, output), row, x);
}

template <loss_function slope>
ALWAYS_INLINE void buffered_gradient(const tile *tile, const wanted *wanted, const places *places, part part, int k,
                                     int row, const own_row *in, const real *upstream, const real *weight) {
    real x[ORDER_OWN_LANES];
    EACH_OWN {
        const real weighted = slope(in->x[own], wanted->parameter) * weight[own];
        x[own] = takes_part(part, row, own) ? gradient_of(wanted, weighted, upstream[own]) : 0;
    }
    put_result(tile, places, 1 + k, row, x);
}

template <typename loss>
ALWAYS_INLINE void buffered_row(const tile *tile, const wanted *wanted, const inputs *inputs, part part,
                                const places *places, int row, lane_sums *sums) {
    own_row in;
    real x[ORDER_OWN_LANES];
    const real *upstream = inputs->x[INPUT_UPSTREAM], *weight = inputs->x[INPUT_WEIGHT];
#pragma unroll
    for (int k = 0; k < loss::OPERANDS; k++)
        EACH_OWN in.x[own][k] = inputs->x[k][own];
    if (wanted->sum || wanted->values) {
        EACH_OWN {
            const real value = loss::value(in.x[own], wanted->parameter);
            x[own] = takes_part(part, row, own) ? canonical(value * weight[own]) : 0;
        }
        end_row(tile, row, x);
    }
    if (wanted->sum)
        add_row(row, x, sums);
    if constexpr (loss::OPERANDS > 1) {
        if (wanted->values)
            put_result(tile, places, 0, row, x);
        if (wanted->gradients & 1)
            buffered_gradient<loss::slope_p>(tile, wanted, places, part, 0, row, &in, upstream, weight);
        if (wanted->gradients & 2)
            buffered_gradient<loss::slope_t>(tile, wanted, places, part, 1, row, &in, upstream, weight);
        if constexpr (loss::OPERANDS > 2)
            if (wanted->gradients & 4)
                buffered_gradient<loss::slope_v>(tile, wanted, places, part, 2, row, &in, upstream, weight);
    }
}

template <typename loss>
ALWAYS_INLINE void run_tile(const cuda_general *job, const wanted *wanted, const tile *tile, lane_sums *sums) {
    const bool has_weight = job->weight != NULL;
    const int buffered = loss::OPERANDS + wanted->upstream_is_tensor;
    sources sources = {};
#pragma unroll 1
    for (int k = 0; k < buffered + has_weight; k++) {
        const int which = k < loss::OPERANDS ? CUDA_PREDICTION + k : k < buffered ? CUDA_UPSTREAM : CUDA_WEIGHT;
        const int input = k < loss::OPERANDS ? k : k < buffered ? INPUT_UPSTREAM : INPUT_WEIGHT;
        const real *at = plain_input(job, which, tile);
        if (!at) {
            real *buffer = buffer_of(tile, k < buffered ? k : job->weight_buffer);
            fill_buffer(job, which, tile, buffer);
            at = buffer;
        }
#pragma unroll
        for (int i = 0; i < GENERAL_INPUTS; i++)
            sources.at[i] = i == input ? at : sources.at[i];
    }
    const part part = job->mask ? read_mask(job, tile) : PART_ALL;
    places places;
#pragma unroll
    for (int k = 0; k < GENERAL_OUTPUTS; k++) {
        const bool is_wanted = k == 0 ? wanted->values : wanted->gradients >> (k - 1) & 1;
        places.at[k] = k <= loss::OPERANDS && is_wanted ? plain_output(job, CUDA_VALUE + k, tile) : NULL;
    }
    __syncwarp();
    inputs next;
    EACH_OWN next.x[INPUT_UPSTREAM][own] = wanted->upstream;
    EACH_OWN next.x[INPUT_WEIGHT][own] = 1;
    read_inputs(tile, &sources, 0, &next);
#pragma unroll 1
    for (int row = 0; row < ORDER_LINES; row++) {
        const inputs now = next;
        if (row + 1 < ORDER_LINES)
            read_inputs(tile, &sources, row + 1, &next);
        buffered_row<loss>(tile, wanted, &now, part, &places, row, sums);
    }
    __syncwarp();
#pragma unroll 1
    for (int k = 0; k <= loss::OPERANDS; k++)
        if ((k == 0 ? wanted->values : wanted->gradients >> (k - 1) & 1) && !plain_output(job, CUDA_VALUE + k, tile))
            empty_buffer(job, CUDA_VALUE + k, tile, buffer_of(tile, k));
    __syncwarp();
}

ALWAYS_INLINE bool is_over_weights(const cuda_direct *job) {
    return false;
}
template <typename parameter> ALWAYS_INLINE bool is_over_weights(const parameter *job) {
    return job->over_weights;
}

ALWAYS_INLINE double sum_of_weights(const cuda_head *head) {
    return *(const double *)((const char *)head->total.workspace + CUDA_WEIGHTS_AT);
}

typedef struct place_in_block {
    int thread, warp, warps;
} place_in_block;

ALWAYS_INLINE place_in_block here_in_block(void) {
    return (place_in_block){(int)threadIdx.x % ORDER_WARP, (int)threadIdx.x / ORDER_WARP, (int)blockDim.x / ORDER_WARP};
}

template <typename loss, outputs outputs, access access>
ALWAYS_INLINE double run_tiles(const cuda_direct *job, const wanted *wanted, int64_t first, int count, double *node) {
    __shared__ __align__(16) real lanes[MOST_WARPS][ORDER_TOGETHER * ORDER_PITCH];
    const place_in_block at = here_in_block();
    const int tiles = job->head.tiles_per_block;
    double sum = ORDER_NOTHING;
    tile now = tile_at(first + at.warp, count - at.warp * ORDER_TILE, at.thread, lanes[at.warp]);
    ahead<loss, access> ahead;
    if (stage<loss, access>::ROWS < ORDER_LINES)
        begin_tile<loss, outputs, access>(job, &now, &ahead);
    int together = 0;
#pragma unroll 1
    for (int i = at.warp; i < tiles; i += at.warps) {
        const int further = i + at.warps;
        const tile next = tile_at(first + further, count - further * ORDER_TILE, at.thread, lanes[at.warp]);
        lane_sums sums = {};
        if (now.count > 0)
            run_tile<loss, outputs, access>(job, wanted, &now, &next, &ahead, &sums);
        if constexpr (outputs != OUTPUTS_GRADIENT) {
            write_row(&now, now.buffer + together++ * ORDER_PITCH, 0, sums.sum);
            if (together == ORDER_TOGETHER || further >= tiles) {
                __syncwarp();
                const int threads = ORDER_WARP / ORDER_TOGETHER, own = at.thread / threads;
                const int index = i - (together - 1 - own) * at.warps;
                sum = order_lanes_together(at.thread, now.buffer);
                if (own < together && at.thread % threads == 0)
                    node[index] = index * ORDER_TILE < count ? sum : ORDER_NOTHING;
                __syncwarp();
                together = 0;
            }
        }
        now = next;
    }
    return sum;
}

template <typename loss, outputs outputs, access access>
ALWAYS_INLINE double run_tiles(const cuda_general *job, const wanted *wanted, int64_t first, int count, double *node) {
    const place_in_block at = here_in_block();
    const int tiles = job->head.tiles_per_block;
    real *buffer = shared_buffer(&job->head, at.warp);
    double sum = ORDER_NOTHING;
#pragma unroll 1
    for (int i = at.warp; i < tiles; i += at.warps) {
        const tile tile = tile_at(first + i, count - i * ORDER_TILE, at.thread, buffer);
        lane_sums sums = {};
        if (tile.count > 0)
            run_tile<loss>(job, wanted, &tile, &sums);
        if (!wanted->sum)
            continue;
        sum = tile.count > 0 ? order_lanes(tile.thread, sums.sum) : ORDER_NOTHING;
        if (at.thread == 0)
            node[i] = sum;
    }
    return sum;
}

template <typename loss, outputs outputs, access access>
ALWAYS_INLINE double run_tiles(const cuda_weighted *job, const wanted *wanted, int64_t first, int count, double *node) {
    const place_in_block at = here_in_block();
    const int tiles = job->head.tiles_per_block;
    double sum = ORDER_NOTHING;
#pragma unroll 1
    for (int i = at.warp; i < tiles; i += at.warps) {
        const tile tile = tile_at(first + i, count - i * ORDER_TILE, at.thread, NULL);
        lane_sums sums = {};
        if (tile.count > 0)
#pragma unroll
            for (int half = 0; half < ORDER_LINES; half += WEIGHTED_ROWS)
                run_half<loss, outputs>(job, wanted, &tile, half, &sums);
        sum = tile.count > 0 ? order_lanes(tile.thread, sums.sum) : ORDER_NOTHING;
        if (at.thread == 0)
            node[i] = sum;
    }
    return sum;
}

template <typename loss, outputs outputs, access access, typename parameter>
ALWAYS_INLINE void run_block(const parameter *job) {
    __shared__ double node[CUDA_MOST_NODES];
    __shared__ order_stack stack;
    const cuda_head *head = &job->head;
    const place_in_block at = here_in_block();
    const int tiles = head->tiles_per_block, sweeps = head->sweeps;
    const double weights = is_over_weights(job) ? sum_of_weights(head) : 1;
    wanted wanted = what_is_wanted<outputs>(head);
    if (is_over_weights(job))
        wanted.scale = (real)(1 / weights);
    if (outputs >= OUTPUTS_GRADIENT && head->skip_if_one && wanted.upstream == 1)
        return;
    double sum = ORDER_NOTHING;
    if (sweeps > 1 && threadIdx.x == 0)
        stack.depth = 0, stack.tiles = 0;

#pragma unroll 1
    for (int sweep = 0; sweep < sweeps; sweep++) {
        const int64_t first = ((int64_t)blockIdx.x * sweeps + sweep) * tiles;
        const int64_t left = head->count - first * ORDER_TILE;
        const int count = left < tiles * ORDER_TILE ? (int)left : tiles * ORDER_TILE;
        if (count <= 0)
            break;
        sum = run_tiles<loss, outputs, access>(job, &wanted, first, count, node);
        if (wanted.sum && tiles > 1) {
            __syncthreads();
            if (at.warp == 0)
                sum = tree_of(at.thread, node, tiles);
        }
        if (wanted.sum && sweeps > 1) {
            if (threadIdx.x == 0)
                order_push(&stack, sum);
            __syncthreads();
        }
    }
    if (!wanted.sum)
        return;
    if (sweeps > 1 && threadIdx.x == 0)
        sum = stack.depth ? order_top(&stack) : ORDER_NOTHING;
    if (head->count == 0)
        sum = 0;
    if (has_total(&head->total, node, &sum))
        write_value(&head->total, sum / weights);
}

template <typename loss, outputs outputs> ALWAYS_INLINE void run_small(const cuda_small *job) {
    __shared__ double node[CUDA_MOST_NODES];
    const place_in_block at = here_in_block();
    const int index = blockIdx.x * at.warps + at.warp, left = job->total.count - index * ORDER_TILE;
    double sum = ORDER_NOTHING;
    if (left > 0) {
        const tile tile = tile_at(index, left, at.thread, NULL);
        const bool plain = left >= ORDER_TILE && job->total.aligned;
        const int64_t first = (int64_t)index * ORDER_TILE;
        numbers in[ORDER_LINES][loss::OPERANDS];
        EACH_OPERAND {
            const real *from = (const real *)job->operand[k] + first;
            if (plain)
                EACH_ROW send_for_row<ACCESS_REAL, KEEP_LEAST>(&tile, from, row, &in[row][k]);
            else
                EACH_ROW send_for_rest<ACCESS_REAL>(&tile, from, row, &in[row][k]);
        }
        wanted wanted = {};
        wanted.parameter = REAL(job->parameter);
        wanted.scale = REAL(job->scale);
        wanted.upstream = 1;
        if (outputs == OUTPUTS_BOTH && job->upstream)
            wanted.upstream = (real)load_scalar(job->upstream, job->upstream_dtype);
        lane_sums sums = {};
        compute_rows<loss, outputs, ACCESS_REAL, ORDER_LINES>(&tile, &wanted, false, plain,
                                                              (real *)job->gradient + first, 0, in, &sums);
        sum = order_lanes(at.thread, sums.sum);
    }
    if (at.warps > 1) {
        if (at.thread == 0)
            node[at.warp] = sum;
        __syncthreads();
        if (at.warp == 0)
            sum = order_neighbours(at.thread < at.warps ? node[at.thread] : ORDER_NOTHING, at.warps);
    }
    if (has_total(&job->total, node, &sum))
        write_small_value(&job->total, sum);
}

ALWAYS_INLINE void scale_tile(const cuda_direct *job, int which, const tile *tile, real factor) {
    real *at = (real *)tile_address(job, which, tile, sizeof(real));
    if (tile->count < ORDER_TILE) {
        for (int i = tile->thread; i < tile->count; i += ORDER_WARP)
            at[i] = canonical(at[i] * factor);
        return;
    }
    numbers numbers[ORDER_LINES];
    EACH_ROW send_for_row<ACCESS_REAL, KEEP_LEAST>(tile, at, row, &numbers[row]);
    EACH_ROW {
        real x[ORDER_OWN_LANES];
        receive<ACCESS_REAL>(false, &numbers[row], x);
        EACH_OWN x[own] = canonical(x[own] * factor);
        put_row<ACCESS_REAL>(tile, false, at, row, x);
    }
}

ALWAYS_INLINE void scale_tile(const cuda_general *job, int which, const tile *tile, real factor) {
    real *data = (real *)job->head.data[which];
    for (int i = tile->thread; i < tile->count; i += ORDER_WARP) {
        real *at = data + place_of(&job->view[which], tile->index * ORDER_TILE + i).offset;
        *at = canonical(*at * factor);
    }
}

template <typename parameter> ALWAYS_INLINE void scale_block(const parameter *job) {
    const cuda_head *head = &job->head;
    const int thread = threadIdx.x % ORDER_WARP, warp = threadIdx.x / ORDER_WARP, warps = blockDim.x / ORDER_WARP;
    const real upstream = (real)load_scalar(head->data[CUDA_UPSTREAM], head->dtype[CUDA_UPSTREAM]);
    if (upstream == 1)
        return;
    const int64_t run = (int64_t)head->sweeps * head->tiles_per_block, first = blockIdx.x * run;
    for (int64_t i = first + warp; i < first + run && i * ORDER_TILE < head->count; i += warps) {
        const int64_t left = head->count - i * ORDER_TILE;
        const tile tile = tile_at(i, left < ORDER_TILE ? (int)left : ORDER_TILE, thread, NULL);
#pragma unroll 1
        for (int which = CUDA_GRADIENT; which < CUDA_TENSORS; which++)
            if (head->data[which])
                scale_tile(job, which, &tile, upstream);
    }
}

#define KERNEL_OF(bounds, name, parameter)                                                                             \
    extern "C" __global__ void bounds KERNEL(name)(const __grid_constant__ parameter job)
#define LEAN_BOUNDS __launch_bounds__(MOST_WARPS *ORDER_WARP, LEAN_BLOCKS)

#define DIRECT(bounds, name, kernel, outputs, access)                                                                  \
    KERNEL_OF(bounds, name##_##kernel, cuda_direct) {                                                                  \
        run_block<name##_loss, outputs, access>(&job);                                                                 \
    }
#define WEIGHTED(name, kernel, outputs)                                                                                \
    KERNEL_OF(BOUNDS, name##_##kernel, cuda_weighted) {                                                                \
        run_block<name##_loss, outputs, ACCESS_REAL>(&job);                                                            \
    }
#define SMALL(name, kernel, outputs)                                                                                   \
    KERNEL_OF(BOUNDS, name##_##kernel, cuda_small) {                                                                   \
        run_small<name##_loss, outputs>(&job);                                                                         \
    }
#define GENERAL(name)                                                                                                  \
    KERNEL_OF(BOUNDS, name##_general, cuda_general) {                                                                  \
        run_block<name##_loss, OUTPUTS_ANY, ACCESS_REAL>(&job);                                                        \
    }

#if defined(ONEPASS_REAL_F64)
#define KERNELS_2(name)                                                                                                \
    GENERAL(name)                                                                                                      \
    DIRECT(BOUNDS, name, forward, OUTPUTS_VALUE, ACCESS_REAL)
#define KERNELS_3(name) KERNELS_2(name)
#else
#define KERNELS_3(name)                                                                                                \
    GENERAL(name)                                                                                                      \
    DIRECT(BOUNDS, name, forward, OUTPUTS_VALUE, ACCESS_REAL)
#define KERNELS_2(name)                                                                                                \
    KERNELS_3(name)                                                                                                    \
    SMALL(name, small_forward, OUTPUTS_VALUE)
#endif

#define LOSS(name, operands, ...) PASTE(KERNELS_, OPERANDS_OF operands)(name)

LOSS(mse, (prediction, target), SHORT, "squared error", "x*x", "2*x", ACCURACY("x", ULP(0.5), ULP(0.5), ULP(0.5)),
     NO_PARAMETERS)
#undef LOSS

#if !defined(ONEPASS_REAL_F64)
#endif

#define dtype_size(dtype) sizeof(float)

#include <math.h>
#include <string.h>

#define WARP 32

#define MOST_SMALL_FORWARD (1 << 22)
#define MOST_SMALL_BOTH    (1 << 21)

cuda_shape onepass_cuda_shape;

#define LOSS(name, ...)

LOSS(mse, (prediction, target), SHORT, "squared error", "x*x", "2*x", ACCURACY("x", ULP(0.5), ULP(0.5), ULP(0.5)),
     NO_PARAMETERS)
#undef LOSS

typedef enum variant {
    GENERAL,
    FORWARD,
    BOTH,
    WEIGHTED_FORWARD,
    WEIGHTED_BOTH,
    BACKWARD,
    FORWARD_HALF,
    BOTH_HALF,
    BACKWARD_HALF,
    SMALL_FORWARD,
    SMALL_BOTH,
    VARIANTS
} variant;

#define WIDE_VARIANTS   (WEIGHTED_BOTH + 1)
#define DOUBLE_VARIANTS (FORWARD + 1)
#define KERNEL_COUNT_2  (VARIANTS + DOUBLE_VARIANTS)
#define KERNEL_COUNT_3  (WIDE_VARIANTS + DOUBLE_VARIANTS)

#define NAME(name, variant, real) "onepass_" name "_" variant "_" real
#define BASIC_NAMES(name, real)   NAME(name, "general", real), NAME(name, "forward", real)
#define WIDE_NAMES(name)                                                                                               \
    BASIC_NAMES(name, "f32"), NAME(name, "both", "f32"), NAME(name, "weighted_forward", "f32"),                        \
        NAME(name, "weighted_both", "f32")
#define NAMES_OF_2(name)                                                                                               \
    WIDE_NAMES(name), NAME(name, "backward", "f32"), NAME(name, "forward_half", "f32"),                                \
        NAME(name, "both_half", "f32"), NAME(name, "backward_half", "f32"), NAME(name, "small_forward", "f32"),        \
        NAME(name, "small_both", "f32"), BASIC_NAMES(name, "f64")
#define NAMES_OF_3(name) WIDE_NAMES(name), BASIC_NAMES(name, "f64")

#define LOSS(name, operands, ...) PASTE(NAMES_OF_, OPERANDS_OF operands)(#name),
static const char *const kernel_names[] = {

LOSS(mse, (prediction, target), SHORT, "squared error", "x*x", "2*x", ACCURACY("x", ULP(0.5), ULP(0.5), ULP(0.5)),
     NO_PARAMETERS)
    NAME("scale", "direct", "f32"),    NAME("scale", "direct", "f64"),    NAME("scale", "general", "f32"),
    NAME("scale", "general", "f64"),   NAME("weights", "direct", "f32"),  NAME("weights", "direct", "f64"),
    NAME("weights", "general", "f32"), NAME("weights", "general", "f64"), NAME("weights", "weighted", "f32")};
#undef LOSS

enum {
#define LOSS(name, operands, ...)                                                                                      \
    FIRST_OF_##name, LAST_OF_##name = FIRST_OF_##name + PASTE(KERNEL_COUNT_, OPERANDS_OF operands) - 1,

LOSS(mse, (prediction, target), SHORT, "squared error", "x*x", "2*x", ACCURACY("x", ULP(0.5), ULP(0.5), ULP(0.5)),
     NO_PARAMETERS)
#undef LOSS
    SCALE_DIRECT,
    WEIGHTS_DIRECT = SCALE_DIRECT + 4,
    WEIGHTS_WEIGHTED = WEIGHTS_DIRECT + 4,
    KERNEL_COUNT
};

static const int32_t first_kernel[] = {
#define LOSS(name, ...) FIRST_OF_##name,

LOSS(mse, (prediction, target), SHORT, "squared error", "x*x", "2*x", ACCURACY("x", ULP(0.5), ULP(0.5), ULP(0.5)),
     NO_PARAMETERS)
#undef LOSS
};

const char *onepass_cuda_kernel_name(int32_t kernel) {
    return kernel >= 0 && kernel < KERNEL_COUNT ? kernel_names[kernel] : NULL;
}

static int32_t variants_in_float(const job *job) {
    return job->operand_count == 2 ? VARIANTS : WIDE_VARIANTS;
}

static bool has_variant(const job *job, variant variant) {
    return (int32_t)variant < (job->compute == ONEPASS_F64 ? (int32_t)DOUBLE_VARIANTS : variants_in_float(job));
}

static int32_t kernel_of(const job *job, variant variant) {
    const bool in_double = job->compute == ONEPASS_F64;
    if (job->family == FAMILY_WEIGHTS && variant == WEIGHTED_FORWARD)
        return WEIGHTS_WEIGHTED;
    if (!job->loss)
        return (job->family == FAMILY_SCALE ? SCALE_DIRECT : WEIGHTS_DIRECT) + (variant == GENERAL ? 2 : 0) + in_double;
    return first_kernel[onepass_loss_index(job->loss)] + (in_double ? variants_in_float(job) : 0) + (int32_t)variant;
}

static const view *tensor_of(const job *job, int which) {
    static const view absent = {0};
    switch (which) {
    case CUDA_UPSTREAM:
        return &job->upstream;
    case CUDA_VALUE:
        return &job->value;
    case CUDA_WEIGHT:
        return &job->weight;
    case CUDA_MASK:
        return &job->mask;
    default:
        if (which >= CUDA_GRADIENT)
            return &job->gradient[which - CUDA_GRADIENT];
        return which < job->operand_count ? &job->operand[which] : &absent;
    }
}

static bool is_one_number(const job *job, int which) {
    return (which == CUDA_UPSTREAM || which == CUDA_VALUE) && job->reduction != ONEPASS_NONE;
}

static bool wants_sum(const job *job) {
    return job->family == FAMILY_WEIGHTS ||
           (job->family != FAMILY_SCALE && job->reduction != ONEPASS_NONE && job->value.data);
}

static cuda_divisor divisor_of(int64_t d) {
    if (d < 2)
        return (cuda_divisor){0, 0};
    const int bits = 64 - __builtin_clzll((uint64_t)d - 1);
    __extension__ typedef unsigned __int128 wide;
    const wide power = (wide)1 << (63 + bits);
    return (cuda_divisor){(uint64_t)((power + (uint64_t)d - 1) / (uint64_t)d), bits - 1};
}

typedef enum layout {
    NOT_DIRECT,
    ABSENT,
    REALS,
    HALVES,
    CONSTANTS
} layout;

static layout layout_of(const view *view, int32_t compute, cuda_rows *rows, bool *has_rows) {
    if (!view->data)
        return ABSENT;
    const int inner = view->ndim - 1;
    const int64_t size = (int64_t)dtype_size(view->dtype), stride = view->stride[inner];
    const bool constant = stride == 0, real = view->dtype == compute, half = size == 2 && compute == ONEPASS_F32;
    const int64_t alignment = constant ? size : real ? 16 : 8;
    *has_rows = constant || view->ndim == 2;
    *rows = (cuda_rows){.tile_step = constant ? 0 : ORDER_TILE, .tiles = 1};
    if (view->ndim > 2 || (stride != 0 && stride != 1) || !(real || (half && !constant)))
        return NOT_DIRECT;
    if (view->ndim == 2) {
        rows->row_step = view->stride[0];
        rows->tiles = view->shape[1] / ORDER_TILE;
        rows->by = divisor_of(rows->tiles);
        if (view->shape[1] % ORDER_TILE != 0)
            return NOT_DIRECT;
    }
    if ((intptr_t)view->data % alignment != 0 || rows->row_step * size % alignment != 0)
        return NOT_DIRECT;
    return constant ? CONSTANTS : real ? REALS : HALVES;
}

static variant variant_of_outputs(const job *job, bool half) {
    const bool gradient = job->gradient[0].data;
    if (job->reduction == ONEPASS_NONE || job->gradient[1].data || job->gradient[2].data)
        return GENERAL;
    if (!wants_sum(job))
        return half ? BACKWARD_HALF : BACKWARD;
    if (gradient)
        return half ? BOTH_HALF : BOTH;
    return half ? FORWARD_HALF : FORWARD;
}

static variant direct_variant(const job *job, cuda_direct *direct) {
    const bool scale_only = job->family == FAMILY_SCALE;
    layout layout[CUDA_TENSORS];
    direct->head.rows = 0;
    for (int which = 0; which < CUDA_TENSORS; which++) {
        bool has_rows = false;
        layout[which] = is_one_number(job, which)
                            ? ABSENT
                            : layout_of(tensor_of(job, which), job->compute, &direct->rows[which], &has_rows);
        if (has_rows)
            direct->head.rows |= (uint8_t)(1u << which);
    }
    const bool half = layout[CUDA_PREDICTION] == HALVES;
    for (int k = 0; k < MOST_OPERANDS; k++)
        if (layout[CUDA_GRADIENT + k] != ABSENT && layout[CUDA_GRADIENT + k] != (half ? HALVES : REALS))
            return GENERAL;
    if (scale_only)
        return FORWARD;
    if (half && job->gradient[0].data && job->gradient[0].dtype != job->operand[0].dtype)
        return GENERAL;
    for (int k = 0; k < job->operand_count; k++) {
        const bool constant = layout[k] == CONSTANTS && !half;
        if (!constant && layout[k] != (half ? HALVES : REALS))
            return GENERAL;
        if (half && job->operand[k].dtype != job->operand[0].dtype)
            return GENERAL;
    }
    if (!job->loss)
        return half ? GENERAL : FORWARD;
    const variant variant = variant_of_outputs(job, half);
    return has_variant(job, variant) ? variant : GENERAL;
}

static void general_view(const view *view, cuda_view *general) {
    general->ndim = view->ndim;
    for (int32_t d = 0; d < view->ndim; d++) {
        general->extent[d] = view->shape[d];
        general->stride[d] = view->stride[d];
        general->by[d] = divisor_of(view->shape[d]);
    }
}

static int32_t unweighted_buffers(const job *job) {
    if (job->family == FAMILY_SCALE)
        return 0;
    const bool upstream_is_tensor = job->reduction == ONEPASS_NONE && job->upstream.data;
    int32_t buffers = job->operand_count + upstream_is_tensor;
    for (int32_t k = 0; k < MOST_OPERANDS; k++)
        if (job->gradient[k].data && buffers < 2 + k)
            buffers = 2 + k;
    return buffers;
}

static void plan_general(const job *job, cuda_general *general) {
    for (int which = 0; which < CUDA_GENERAL_TENSORS; which++)
        if (tensor_of(job, which)->data)
            general_view(tensor_of(job, which), &general->view[which]);
    general->weight = job->weight.data;
    general->weight_dtype = job->weight.data ? job->weight.dtype : 0;
    general->weight_buffer = unweighted_buffers(job);
    general->mask = job->mask.data;
    general->over_weights = job->over_weights;
}

static bool is_aligned(const view *view, uintptr_t bytes) {
    return (uintptr_t)view->data % bytes == 0;
}

static bool is_dense(const view *view, int32_t dtype) {
    return view->dtype == dtype && view->ndim == 1 && view->stride[0] == 1;
}

static bool is_dense_sum(const job *job) {
    if (job->compute != ONEPASS_F32 || job->family == FAMILY_SCALE || !wants_sum(job) || job->gradient[1].data ||
        job->gradient[2].data)
        return false;
    for (int k = 0; k < job->operand_count; k++)
        if (!is_dense(&job->operand[k], ONEPASS_F32))
            return false;
    return !job->gradient[0].data || is_dense(&job->gradient[0], ONEPASS_F32);
}

static bool is_aligned_job(const job *job) {
    bool aligned = is_aligned(&job->gradient[0], 16);
    for (int k = 0; k < job->operand_count; k++)
        aligned &= is_aligned(&job->operand[k], 16);
    return aligned;
}

static variant small_variant(const job *job) {
    const int64_t most = job->gradient[0].data ? MOST_SMALL_BOTH : MOST_SMALL_FORWARD;
    if (job->count == 0 || job->count > most || !job->loss || !has_variant(job, SMALL_FORWARD) || !is_dense_sum(job))
        return GENERAL;
    return job->gradient[0].data ? SMALL_BOTH : SMALL_FORWARD;
}

static bool counts_mask(const job *job) {
    return job->family == FAMILY_WEIGHTS && job->operand[0].dtype == ONEPASS_BOOL;
}

static variant weighted_variant(const job *job) {
    const view *mask = counts_mask(job) ? &job->operand[0] : &job->mask;
    const bool sums = counts_mask(job) ? job->compute == ONEPASS_F32 : is_dense_sum(job) && is_aligned_job(job);
    const bool weight = !job->weight.data || (is_dense(&job->weight, ONEPASS_F32) && is_aligned(&job->weight, 16));
    if (!sums || !weight || (mask->data && !(is_dense(mask, ONEPASS_BOOL) && is_aligned(mask, 4))))
        return GENERAL;
    return job->gradient[0].data ? WEIGHTED_BOTH : WEIGHTED_FORWARD;
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t up_to_power_of_two(int64_t n) {
    int64_t power = 1;
    while (power < n)
        power *= 2;
    return power;
}

typedef struct block {
    int32_t warps, tiles;
} block;

static block small_block(int64_t tiles) {
    const int64_t usual = tiles <= CUDA_MOST_WARPS ? up_to_power_of_two(tiles)
                          : tiles <= 128           ? 2
                          : tiles <= 512           ? 4
                                                   : 8;
    const int64_t forced = onepass_cuda_shape.tiles_per_block;
    const int32_t taken = (int32_t)least(forced ? forced : usual, CUDA_MOST_WARPS);
    return (block){taken, taken};
}

static block direct_block(variant variant, bool has_rows, int64_t tiles, int32_t multiprocessors) {
    const bool writes = variant != FORWARD && variant != FORWARD_HALF && variant != WEIGHTED_FORWARD;
    const int64_t most_tiles = writes ? 4 : has_rows ? 32 : 8;
    const int64_t waves = tiles / (16 * (int64_t)multiprocessors) + 1;
    const int64_t tiles_a_warp = up_to_power_of_two(least(waves, most_tiles));
    const int64_t usual = least(CUDA_MOST_WARPS, up_to_power_of_two(tiles));
    const int64_t warps = onepass_cuda_shape.warps ? least(onepass_cuda_shape.warps, CUDA_MOST_WARPS) : usual;
    const int64_t forced = onepass_cuda_shape.tiles_per_block;
    return (block){(int32_t)warps, (int32_t)(forced ? forced : warps * tiles_a_warp)};
}

static block general_block(const job *job, const cuda_head *head, int64_t tiles, int32_t multiprocessors) {
    const int64_t tile = ORDER_TILE * (int64_t)dtype_size(job->compute);
    const int64_t waves = tiles / (32 * (int64_t)multiprocessors) + 1;
    int64_t warps = onepass_cuda_shape.warps ? onepass_cuda_shape.warps : least(8, up_to_power_of_two(tiles));
    while (warps > 1 && warps * head->buffers * tile > 32768)
        warps /= 2;
    const int64_t forced = onepass_cuda_shape.tiles_per_block;
    return (block){(int32_t)warps, (int32_t)(forced ? forced : warps * up_to_power_of_two(least(waves, 8)))};
}

static void plan_shape(const job *job, variant variant, int32_t multiprocessors, cuda_launch *launch) {
    cuda_head *head = &launch->parameter.head;
    const int64_t tiles = job->count / ORDER_TILE + (job->count % ORDER_TILE != 0);
    const bool small = variant == SMALL_FORWARD || variant == SMALL_BOTH;
    const block block = small                ? small_block(tiles)
                        : variant == GENERAL ? general_block(job, head, tiles, multiprocessors)
                                             : direct_block(variant, head->rows != 0, tiles, multiprocessors);
    const int64_t forced = onepass_cuda_shape.most_blocks;
    const int64_t most_blocks = forced && !small ? forced : CUDA_MOST_BLOCKS;
    int64_t run = block.tiles;
    while ((tiles - 1) / run >= most_blocks)
        run *= 2;
    int64_t blocks = tiles / run + (tiles % run != 0);
    if (blocks == 0 && wants_sum(job))
        blocks = 1;
    if (!small) {
        head->tiles_per_block = block.tiles;
        head->sweeps = (int32_t)(run / block.tiles);
    }
    const int32_t buffering = variant == GENERAL ? block.warps : 0;
    launch->blocks = (uint32_t)blocks;
    launch->threads = (uint32_t)(block.warps * WARP);
    launch->shared_memory = (uint32_t)(buffering * head->buffers * ORDER_TILE) * (uint32_t)dtype_size(job->compute);
    const bool passes_weights = job->over_weights || job->family == FAMILY_WEIGHTS;
    launch->workspace = wants_sum(job) && blocks > 1 ? CUDA_WORKSPACE_HEAD + (size_t)blocks * sizeof(double)
                        : passes_weights             ? CUDA_WORKSPACE_HEAD
                                                     : 0;
}

static bool is_power_of_two(double x) {
    int exponent;
    return x > 0 && isfinite(x) && frexp(x, &exponent) == 0.5;
}

static void plan_total(const job *job, cuda_total *total) {
    const bool known = job->reduction == ONEPASS_MEAN && !job->over_weights;
    const double divisor = known ? job->divisor : 1, reciprocal = 1 / divisor;
    const bool multiplies = is_power_of_two(divisor) && isnormal(reciprocal);
    total->value = job->value.data;
    total->workspace = NULL;
    total->number = multiplies ? reciprocal : divisor;
    total->divides = !multiplies;
    total->dtype =
        (uint8_t)(job->family == FAMILY_WEIGHTS ? ONEPASS_F64 : job->value.dtype);
}

static void plan_numbers(const job *job, cuda_real *scale, cuda_reals *parameter) {
    const bool in_double = job->compute == ONEPASS_F64;
    const double factor = job->reduction == ONEPASS_MEAN && !job->over_weights ? 1 / job->divisor : 1;
    for (int32_t i = 0; i < ONEPASS_MAX_PARAMETERS; i++) {
        if (in_double)
            parameter->f64[i] = job->parameter[i];
        else
            parameter->f32[i] = (float)job->parameter[i];
    }
    if (in_double)
        scale->f64 = factor;
    else
        scale->f32 = (float)factor;
}

static void plan_head(const job *job, cuda_head *head) {
    head->count = job->count;
    head->reduction = (uint8_t)job->reduction;
    head->skip_if_one = job->skip_if_one;
    for (int which = 0; which < CUDA_TENSORS; which++) {
        const view *view = tensor_of(job, which);
        head->data[which] = view->data;
        head->dtype[which] = view->data ? (uint8_t)view->dtype : 0;
    }
    head->buffers = unweighted_buffers(job) + (job->weight.data != NULL);
    plan_numbers(job, &head->scale, &head->parameter);
}

static void plan_weighted(const job *job, cuda_weighted *weighted) {
    plan_head(job, &weighted->head);
    weighted->weight = job->weight.data;
    weighted->mask = job->mask.data;
    weighted->over_weights = job->over_weights;
    if (counts_mask(job)) {
        weighted->mask = job->operand[0].data;
        weighted->head.data[CUDA_PREDICTION] = NULL;
    }
}

static void plan_small(const job *job, cuda_small *small) {
    for (int k = 0; k < 2; k++)
        small->operand[k] = job->operand[k].data;
    small->gradient = job->gradient[0].data;
    small->upstream = job->upstream.data;
    small->upstream_dtype = job->upstream.data ? job->upstream.dtype : 0;
    small->total.count = (int32_t)job->count;
    small->total.aligned = is_aligned_job(job);
    plan_numbers(job, &small->scale, &small->parameter);
}

static variant choose_variant(const job *job, cuda_direct *direct) {
    const int32_t kernels = onepass_cuda_shape.kernels;
    variant variant = GENERAL;
    if (kernels == CUDA_GENERAL_KERNELS)
        return GENERAL;
    if (job->weight.data || job->mask.data || counts_mask(job))
        return weighted_variant(job);
    if (kernels == 0)
        variant = small_variant(job);
    return variant == GENERAL ? direct_variant(job, direct) : variant;
}

void onepass_cuda_plan(const job *job, int32_t multiprocessors, cuda_launch *launch) {
    const variant variant = choose_variant(job, &launch->parameter.direct);
    plan_total(job, &launch->parameter.total);
    if (variant == SMALL_FORWARD || variant == SMALL_BOTH) {
        plan_small(job, &launch->parameter.small);
    } else if (variant == WEIGHTED_FORWARD || variant == WEIGHTED_BOTH) {
        plan_weighted(job, &launch->parameter.weighted);
    } else {
        plan_head(job, &launch->parameter.head);
        if (variant == GENERAL)
            plan_general(job, &launch->parameter.general);
    }
    launch->kernel = kernel_of(job, variant);
    plan_shape(job, variant, multiprocessors, launch);
}

void onepass_cuda_give_workspace(cuda_launch *launch, void *workspace) {
    launch->parameter.total.workspace = workspace;
    if (launch->kernel >= WEIGHTS_DIRECT)
        launch->parameter.total.value = (char *)workspace + CUDA_WEIGHTS_AT;
}

#define ONEPASS_UNIT mean

#if defined(ONEPASS_HAS_AVX512)
#define IF_AVX512(...) __VA_ARGS__
#else
#define IF_AVX512(...)
#endif
#if defined(ONEPASS_HAS_AVX2)
#define IF_AVX2(...) __VA_ARGS__
#else
#define IF_AVX2(...)
#endif
#if defined(ONEPASS_HAS_SSE2)
#define IF_SSE2(...) __VA_ARGS__
#else
#define IF_SSE2(...)
#endif
#if defined(ONEPASS_HAS_SVE)
#define IF_SVE(...) __VA_ARGS__
#else
#define IF_SVE(...)
#endif
#if defined(ONEPASS_HAS_NEON)
#define IF_NEON(...) __VA_ARGS__
#else
#define IF_NEON(...)
#endif
#if defined(ONEPASS_HAS_BASELINE)
#define IF_BASELINE(...) __VA_ARGS__
#else
#define IF_BASELINE(...)
#endif

#define EACH_INSTRUCTION_SET(SET, argument)                                                                            \
    IF_AVX512(SET(argument, avx512, true))                                                                             \
    IF_AVX2(SET(argument, avx2, true))                                                                                 \
    IF_SSE2(SET(argument, sse2, true))                                                                                 \
    IF_SVE(SET(argument, sve, false))                                                                                  \
    IF_NEON(SET(argument, neon, true))                                                                                 \
    IF_BASELINE(SET(argument, baseline, true))

#include <math.h>

#define PARAMETERS(...)                                                                                                \
    {                                                                                                                  \
        __VA_ARGS__, {                                                                                                 \
            0                                                                                                          \
        }                                                                                                              \
    }
#define NO_PARAMETERS                                                                                                  \
    {                                                                                                                  \
        { 0 }                                                                                                          \
    }

#define ANY          -INFINITY, INFINITY, 0, 0
#define AT_LEAST(x)  x, INFINITY, 0, 0
#define ABOVE(x)     x, INFINITY, 1, 0
#define WITHIN(a, b) a, b, 1, 1

#define ACCURACY(rounded, ...)                                                                                         \
    {                                                                                                                  \
        rounded, {                                                                                                     \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
#define ULP(count)                                                                                                     \
    { count, NULL }
#define ULP_OF(count, formula)                                                                                         \
    { count, formula }

#define NAMES_2(a, b)    #a, #b
#define NAMES_3(a, b, c) #a, #b, #c
#define NAMES(...)                                                                                                     \
    { PASTE(NAMES_, OPERANDS_OF(__VA_ARGS__))(__VA_ARGS__) }

#define CUDA_IMAGES PASTE(onepass_cuda_images_, ONEPASS_UNIT)
ONEPASS_INTERNAL extern const cuda_images CUDA_IMAGES;

#define DECLARE_FUNCTIONS(name, set, automatic)                                                                        \
    ONEPASS_INTERNAL extern const struct cpu_loss onepass_cpu_##name##_##set##_f32;                                    \
    ONEPASS_INTERNAL extern const struct cpu_loss onepass_cpu_##name##_##set##_f64;
#define FUNCTIONS(name, set, automatic)                                                                                \
    .set##_f32 = &onepass_cpu_##name##_##set##_f32, .set##_f64 = &onepass_cpu_##name##_##set##_f64,

#define LOSS(name, operands, length, meaning, value, slope, accuracy, ...)                                             \
    static const onepass_accuracy name##_accuracy = accuracy;                                                          \
    static const onepass_parameter_info name##_parameters[] = __VA_ARGS__;                                             \
    static const char *const name##_operands[] = NAMES operands;                                                       \
    EACH_INSTRUCTION_SET(DECLARE_FUNCTIONS, name)                                                                      \
    ONEPASS_INTERNAL extern const loss onepass_loss_##name;                                                            \
    const loss onepass_loss_##name = {{#name, meaning, value, slope, OPERANDS_OF operands,                             \
                                       sizeof name##_parameters / sizeof *name##_parameters - 1, name##_parameters,    \
                                       name##_operands, &name##_accuracy},                                             \
                                      FAMILY_PAIRWISE,                                                                 \
                                      &CUDA_IMAGES,                                                                    \
                                      {EACH_INSTRUCTION_SET(FUNCTIONS, name)}};

LOSS(mse, (prediction, target), SHORT, "squared error", "x*x", "2*x", ACCURACY("x", ULP(0.5), ULP(0.5), ULP(0.5)),
     NO_PARAMETERS)
#undef LOSS

#include <string.h>

#define LOSS(name, ...) ONEPASS_INTERNAL extern const loss onepass_loss_##name;

LOSS(mse, (prediction, target), SHORT, "squared error", "x*x", "2*x", ACCURACY("x", ULP(0.5), ULP(0.5), ULP(0.5)),
     NO_PARAMETERS)
#undef LOSS

static const loss *const losses[] = {
#define LOSS(name, ...) &onepass_loss_##name,

LOSS(mse, (prediction, target), SHORT, "squared error", "x*x", "2*x", ACCURACY("x", ULP(0.5), ULP(0.5), ULP(0.5)),
     NO_PARAMETERS)
#undef LOSS
};

#define LOSS_COUNT ((int32_t)(sizeof losses / sizeof *losses))

int32_t onepass_loss_index(const loss *loss) {
    int32_t i = 0;
    while (losses[i] != loss)
        i++;
    return i;
}

const loss *onepass_find_loss(const char *name) {
    for (int32_t i = 0; name && i < LOSS_COUNT; i++)
        if (strcmp(losses[i]->info.name, name) == 0)
            return losses[i];
    return NULL;
}

const onepass_loss_info *onepass_loss_at(int32_t index) {
    return index >= 0 && index < LOSS_COUNT ? &losses[index]->info : NULL;
}

const onepass_loss_info *onepass_loss_named(const char *name) {
    const loss *loss = onepass_find_loss(name);
    return loss ? &loss->info : NULL;
}
const cuda_images onepass_cuda_images_mean = {NULL, NULL};

typedef struct shape {
    int32_t ndim;
    int64_t extent[ONEPASS_MAX_DIMENSIONS];
    int64_t count;
} shape;

typedef struct tensor {
    const char *name;
    void *data;
    int32_t dtype;
    struct shape shape;
    int64_t stride[ONEPASS_MAX_DIMENSIONS];
    uintptr_t begin, end;
} tensor;
void onepass_make_view(const tensor *tensor, const shape *common, view *view) {
    view->data = tensor->data;
    view->dtype = tensor->dtype;
    view->ndim = 0;
    const int32_t missing = common->ndim - tensor->shape.ndim;
    for (int32_t d = 0; d < common->ndim && common->count > 0; d++) {
        const int64_t extent = common->extent[d];
        if (extent == 1)
            continue;
        const int64_t stride = d < missing || tensor->shape.extent[d - missing] == 1 ? 0 : tensor->stride[d - missing];
        const int32_t outer = view->ndim - 1;
        if (outer >= 0 && view->stride[outer] == stride * extent) {
            view->shape[outer] *= extent;
            view->stride[outer] = stride;
        } else {
            view->shape[view->ndim] = extent;
            view->stride[view->ndim++] = stride;
        }
    }
    if (view->ndim == 0) {
        view->shape[0] = 1;
        view->stride[0] = 1;
        view->ndim = 1;
    }
}

static_assert(MEAN_WORKSPACE == ONEPASS_WORKSPACE_SIZE, "enough for every call");
static_assert(MEAN_MOST_DIMENSIONS == ONEPASS_MAX_DIMENSIONS, "those that a view has room for");

static void fill_view(const mean_call *call, int which, const shape *common, view *view) {
    tensor tensor = {};
    tensor.data = const_cast<float *>(call->data[which]);
    tensor.dtype = ONEPASS_F32;
    tensor.shape = *common;
    for (int32_t d = 0; d < call->ndim; d++)
        tensor.stride[d] = call->stride[which][d];
    onepass_make_view(&tensor, common, view);
}

static job job_of(const mean_call *call) {
    shape common = {};
    common.ndim = call->ndim;
    common.count = 1;
    for (int32_t d = 0; d < call->ndim; d++) {
        common.extent[d] = call->shape[d];
        common.count *= call->shape[d];
    }
    job job = {};
    job.operand_count = 2;
    job.loss = losses[0];
    for (int32_t i = 0; i < job.loss->info.parameter_count; i++)
        job.parameter[i] = job.loss->info.parameter[i].default_value;
    job.reduction = ONEPASS_MEAN;
    job.compute = ONEPASS_F32;
    job.count = common.count;
    job.divisor = (double)common.count;
    for (int which = 0; which < 2; which++)
        fill_view(call, which, &common, &job.operand[which]);
    job.value.data = call->value;
    job.value.dtype = ONEPASS_F32;
    job.value.ndim = 1;
    job.value.shape[0] = job.value.stride[0] = 1;
    return job;
}

#define LOSS(name, ...)                                                                                                \
    static const void *kernel_at(const job *job, int32_t index) {                                                      \
        if (index == kernel_of(job, FORWARD))                                                                          \
            return (const void *)KERNEL(name##_forward);                                                               \
        if (index == kernel_of(job, SMALL_FORWARD))                                                                    \
            return (const void *)KERNEL(name##_small_forward);                                                         \
        return (const void *)KERNEL(name##_general);                                                                   \
    }

LOSS(mse, (prediction, target), SHORT, "squared error", "x*x", "2*x", ACCURACY("x", ULP(0.5), ULP(0.5), ULP(0.5)),
     NO_PARAMETERS)
#undef LOSS

#define OK(expression)                                                                                                 \
    do {                                                                                                               \
        const cudaError_t answer = (expression);                                                                       \
        if (answer != cudaSuccess)                                                                                     \
            return answer;                                                                                             \
    } while (0)

cudaError_t mean_launch(const mean_call *call) {
    const job job = job_of(call);
    cuda_launch launch;
    int gpu, multiprocessors;
    OK(cudaGetDevice(&gpu));
    OK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, gpu));
    onepass_cuda_plan(&job, multiprocessors, &launch);
    onepass_cuda_give_workspace(&launch, call->workspace);
    if (launch.workspace > 0)
        OK(cudaMemsetAsync(call->workspace, 0, CUDA_WORKSPACE_HEAD, call->stream));
    void *parameter[] = {&launch.parameter};
    return cudaLaunchKernel(kernel_at(&job, launch.kernel), dim3(launch.blocks), dim3(launch.threads), parameter,
                            launch.shared_memory, call->stream);
}
'''

# Tensors, stream and memory of PyTorch.
BINDING = r'''
#include <cuda_runtime_api.h>
#include <stdint.h>

#define MEAN_MOST_DIMENSIONS 16
#define MEAN_WORKSPACE       262400

typedef struct mean_call {
    int32_t ndim;
    const int64_t *shape;
    const float *data[2];
    const int64_t *stride[2];
    float *value;
    void *workspace;
    cudaStream_t stream;
} mean_call;

__attribute__((visibility("hidden"))) cudaError_t mean_launch(const mean_call *call);

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/extension.h>

torch::Tensor mean_loss(const torch::Tensor &predictions, const torch::Tensor &targets) {
    TORCH_CHECK(predictions.device() == targets.device(), "predictions are on ", predictions.device(),
                " and targets on ", targets.device(), "; expected one GPU");
    const c10::cuda::CUDAGuard guard(predictions.device());
    const torch::Tensor both[] = {predictions, targets};
    const torch::Tensor value = torch::empty({}, predictions.options());
    const torch::Tensor workspace = torch::empty({MEAN_WORKSPACE}, predictions.options().dtype(torch::kUInt8));
    mean_call call;
    call.ndim = (int32_t)both[0].dim();
    call.shape = both[0].sizes().data();
    for (int which = 0; which < 2; which++) {
        call.data[which] = both[which].const_data_ptr<float>();
        call.stride[which] = both[which].strides().data();
    }
    call.value = value.mutable_data_ptr<float>();
    call.workspace = workspace.mutable_data_ptr();
    call.stream = c10::cuda::getCurrentCUDAStream();
    C10_CUDA_CHECK(mean_launch(&call));
    return value;
}
'''

# Without fused multiply-adds: the bits depend on it.
extension = load_inline(
    name="onepass_kernelbench_mse",
    cpp_sources=BINDING,
    cuda_sources=CUDA,
    functions=["mean_loss"],
    extra_cuda_cflags=["-O3", "--fmad=false"],
    no_implicit_headers=True,
)


def checked(tensor, name):
    """The tensor, if the kernels can read it."""
    if not tensor.is_cuda:
        raise ValueError(f"{name} is on {tensor.device}; expected a CUDA tensor")
    if tensor.dtype != torch.float32 or tensor.layout != torch.strided or tensor.is_neg():
        raise TypeError(f"{name} is of type {tensor.dtype}; expected a plain tensor of float32")
    if tensor.dim() > 16:
        raise ValueError(f"{name} has {tensor.dim()} dimensions; expected up to 16")
    if torch.is_grad_enabled() and tensor.requires_grad:
        raise NotImplementedError(f"{name} requires a gradient, and this file computes none; the package onepass does")
    return tensor


class ModelNew(nn.Module):
    """The mean of (predictions - targets) ** 2."""

    def forward(self, predictions, targets):
        # Broadcasting moves no data.
        both = torch.broadcast_tensors(checked(predictions, "predictions"), checked(targets, "targets"))
        return extension.mean_loss(*both)
