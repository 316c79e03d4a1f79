/*
 * What planning asks of a job.
 */
#ifndef ONEPASS_CUDA_JOB_H
#define ONEPASS_CUDA_JOB_H

#include "cuda/parameter.h"

#include <math.h>

/* A job's tensors by the kernels' numbers. */
static inline const view *tensor_of(const job *job, int which) {
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

/* Upstream gradient and value are one number, unless nothing is reduced. */
static inline bool is_one_number(const job *job, int which) {
    return (which == CUDA_UPSTREAM || which == CUDA_VALUE) && job->reduction != ONEPASS_NONE;
}

static inline bool wants_sum(const job *job) {
    return job->family == FAMILY_WEIGHTS ||
           (job->family != FAMILY_SCALE && job->reduction != ONEPASS_NONE && job->value.data);
}

static inline bool is_aligned(const view *view, uintptr_t bytes) {
    return (uintptr_t)view->data % bytes == 0;
}

static inline bool is_dense(const view *view, int32_t dtype) {
    return view->dtype == dtype && view->ndim == 1 && view->stride[0] == 1;
}

static inline bool is_aligned_job(const job *job) {
    bool aligned = is_aligned(&job->gradient[0], 16);
    for (int k = 0; k < job->operand_count; k++)
        aligned &= is_aligned(&job->operand[k], 16);
    return aligned;
}

/* What a mean is divided by may be the number of a mask's elements: then the mask is the operand. */
static inline bool counts_mask(const job *job) {
    return job->family == FAMILY_WEIGHTS && job->operand[0].dtype == ONEPASS_BOOL;
}

/* What a sum is divided by, as far as the host knows; else that is done on the GPU alone. */
static inline double known_divisor(const job *job) {
    return job->reduction == ONEPASS_MEAN && !job->over_weights ? job->divisor : 1;
}

/* A GPU takes long to divide, and by a power of two a product has the same bits. */
static inline bool is_product(double divisor) {
    int exponent;
    return divisor > 0 && isfinite(divisor) && frexp(divisor, &exponent) == 0.5 && isnormal(1 / divisor);
}

/* With so many bits that d - 1 has, magic = ceil(2^(63+bits) / d) fits into 64, and the
 * product with n < 2^63 is off by less than what lies between a quotient and the next. */
static inline cuda_divisor divisor_of(int64_t d) {
    if (d < 2)
        return (cuda_divisor){0, 0}; /* never divided by */
    const int bits = 64 - __builtin_clzll((uint64_t)d - 1);
    __extension__ typedef unsigned __int128 wide;
    const wide power = (wide)1 << (63 + bits);
    return (cuda_divisor){(uint64_t)((power + (uint64_t)d - 1) / (uint64_t)d), bits - 1};
}

#endif
