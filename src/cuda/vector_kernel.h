/*
 * From kernels.def to the kernels of vector losses: the twin of kernel.h. Which ones serve a job is for
 * src/cuda/vectors.c to say.
 *
 * --fmad=false is part of the meaning here too.
 */
#ifndef ONEPASS_CUDA_VECTOR_KERNEL_H
#define ONEPASS_CUDA_VECTOR_KERNEL_H

#include "cuda/kernels.def"
#include "cuda/vectors/ahead.h"
#include "cuda/vectors/long.h"
#include "cuda/vectors/narrow.h"
#include "cuda/vectors/short.h"
#include "cuda/vectors/softmax_rows.h"
#include "cuda/vectors/values.h"

#if defined(ONEPASS_REAL_F64)
#define VECTOR_KERNELS_SHORT   CUDA_VECTOR_KERNELS_F64
#define VECTOR_KERNELS_LONG    CUDA_LONG_KERNELS_F64
#define VECTOR_KERNELS_SOFTMAX CUDA_SOFTMAX_KERNELS_F64
#define VECTOR_KERNELS_CARRIED CUDA_CARRIED_KERNELS_F64
#else
#define VECTOR_KERNELS_SHORT   CUDA_VECTOR_KERNELS_F32
#define VECTOR_KERNELS_LONG    CUDA_LONG_KERNELS_F32
#define VECTOR_KERNELS_SOFTMAX CUDA_SOFTMAX_KERNELS_F32
#define VECTOR_KERNELS_CARRIED CUDA_CARRIED_KERNELS_F32
#endif
#define VECTOR_KERNELS_PRODUCTS VECTOR_KERNELS_SHORT
#define VECTOR_KERNELS_LABELLED VECTOR_KERNELS_SHORT
/* Pairs of elements are work enough to hide how they lie. */
#define VECTOR_KERNELS_MULTILABEL CUDA_VECTOR_KERNELS_F64

/* Whoever has one vector computes little: kernels for rows of a warp or more have the formula that is not usual too,
 * and ask once, so that the usual one stays as it is. Others would be twice as large. */
#define BOTH_WAYS_SHORT      false
#define BOTH_WAYS_LONG       false
#define BOTH_WAYS_PRODUCTS   false
#define BOTH_WAYS_SOFTMAX    false
#define BOTH_WAYS_CARRIED    false
#define BOTH_WAYS_LABELLED   true
#define BOTH_WAYS_MULTILABEL false

/* Products of floats are exact in double. */
#define VECTOR_ADD_SHORT(name, x, parameter, sum) add_terms(x, parameter, sum)
#define VECTOR_ADD_LONG                           VECTOR_ADD_SHORT
#define VECTOR_ADD_SOFTMAX                        VECTOR_ADD_SHORT
#define VECTOR_ADD_CARRIED                        VECTOR_ADD_SHORT
#define VECTOR_ADD_LABELLED                       VECTOR_ADD_SHORT
#define VECTOR_ADD_MULTILABEL                     VECTOR_ADD_SHORT
#if defined(ONEPASS_REAL_F64)
#define VECTOR_ADD_PRODUCTS VECTOR_ADD_SHORT
#else
#define VECTOR_ADD_PRODUCTS(name, x, parameter, sum)                                                                   \
    double left[SUMS], right[SUMS];                                                                                    \
    name##_factors(x, left, right);                                                                                    \
    _Pragma("unroll") for (int k = 0; k < SUMS; k++) sum[k] = wide_fused(left[k], right[k], sum[k])
#endif

/* A loss as the templates take it. */
#define VECTOR_LOSS_TYPE(name, operands, vector_count, sum_count, length)                                              \
    struct name##_vectors {                                                                                            \
        enum {                                                                                                         \
            OPERANDS = OPERANDS_OF operands,                                                                           \
            VECTOR_COUNT = vector_count,                                                                               \
            LABELS = HAS_LABELS_##length,                                                                              \
            LABEL_LISTS = HAS_LABEL_LISTS_##length,                                                                    \
            ELEMENTS = vector_count + LABELS + LABEL_LISTS, /* that its functions are given */                         \
            SUMS = sum_count,                                                                                          \
            MORE_BLOCKS = IS_LONG_##length, /* which hides what it computes behind more warps */                       \
            BOTH_WAYS = BOTH_WAYS_##length,                                                                            \
            SOFTMAXES = HAS_SOFTMAXES_##length                                                                         \
        };                                                                                                             \
        ALWAYS_INLINE void terms(const real *x, const double *parameter, double *term) {                               \
            VECTOR_TERMS_##length(name, x, parameter, term);                                                           \
        }                                                                                                              \
        ALWAYS_INLINE void add_terms(const real *x, const double *parameter, double *sum) {                            \
            double term[VECTOR_MOST_SUMS];                                                                             \
            terms(x, parameter, term);                                                                                 \
            _Pragma("unroll") for (int k = 0; k < SUMS; k++) sum[k] = sum[k] + term[k];                                \
        }                                                                                                              \
        ALWAYS_INLINE void add(const real *x, const double *parameter, double *sum) {                                  \
            VECTOR_ADD_##length(name, x, parameter, sum);                                                              \
        }                                                                                                              \
        ALWAYS_INLINE void row(const vector_sums *row, const double *parameter, vector_slopes *slopes) {               \
            name##_row(row, parameter, slopes);                                                                        \
        }                                                                                                              \
        ALWAYS_INLINE double slope(int which, const real *x, const double *parameter, const double *factor) {          \
            return name##_slope(which, x, parameter, factor);                                                          \
        }                                                                                                              \
        ALWAYS_INLINE void usual(double *parameter) {                                                                  \
            name##_usual(parameter);                                                                                   \
        }                                                                                                              \
    };

/* What a kernel does, of a loss without softmaxes and of one with. */
template <typename loss, bool has_softmaxes> struct vector_kernels {
    template <vector_access access, bool is_usual> ALWAYS_INLINE void sums(const cuda_vector *job) {
        run_sums<loss, access, is_usual>(job);
    }
    template <vector_access access, bool is_usual> ALWAYS_INLINE void slopes(const cuda_vector *job) {
        run_slopes<loss, access, is_usual>(job);
    }
    template <bool is_usual> ALWAYS_INLINE void rows_of_few_tiles(const cuda_vector *job) {
        run_short<loss, is_usual>(job);
    }
};
template <typename loss> struct vector_kernels<loss, true> {
    template <vector_access access, bool is_usual> ALWAYS_INLINE void sums(const cuda_vector *job) {
        run_softmax_sums<loss, access>(job);
    }
    template <vector_access access, bool is_usual> ALWAYS_INLINE void slopes(const cuda_vector *job) {
        run_softmax_slopes<loss, access>(job);
    }
    template <bool is_usual> ALWAYS_INLINE void rows_of_few_tiles(const cuda_vector *job) {
        run_softmax_short<loss>(job);
    }
};
template <typename loss> using kernels_of = vector_kernels<loss, loss::SOFTMAXES>;

#if !defined(ONEPASS_REAL_F64)
template <typename loss> ALWAYS_INLINE void run_vectors_narrow(const cuda_vector *job) {
    run_narrow<loss>(job);
}
template <typename loss> ALWAYS_INLINE bool is_usual(const cuda_vector *job) {
    return !loss::BOTH_WAYS || job->is_usual;
}
template <typename loss> ALWAYS_INLINE void run_vectors_short(const cuda_vector *job) {
    if (is_usual<loss>(job))
        kernels_of<loss>::template rows_of_few_tiles<true>(job);
    else
        kernels_of<loss>::template rows_of_few_tiles<!loss::BOTH_WAYS>(job);
}
template <typename loss> ALWAYS_INLINE void run_vectors_values(const cuda_vector *job) {
    if (is_usual<loss>(job))
        run_values<loss, true>(job);
    else
        run_values<loss, !loss::BOTH_WAYS>(job);
}
template <typename loss> ALWAYS_INLINE void run_vectors_softmaxes(const cuda_vector *job) {
    run_softmaxes<loss, VECTORS_DENSE>(job);
}
template <typename loss> ALWAYS_INLINE void run_vectors_sums(const cuda_vector *job) {
    if (is_usual<loss>(job))
        kernels_of<loss>::template sums<VECTORS_DENSE, true>(job);
    else
        kernels_of<loss>::template sums<VECTORS_DENSE, !loss::BOTH_WAYS>(job);
}
template <typename loss> ALWAYS_INLINE void run_vectors_sums_ahead(const cuda_vector *job) {
    run_sums_ahead<loss>(job);
}
template <typename loss> ALWAYS_INLINE void run_vectors_slopes(const cuda_vector *job) {
    if (is_usual<loss>(job))
        kernels_of<loss>::template slopes<VECTORS_DENSE, true>(job);
    else
        kernels_of<loss>::template slopes<VECTORS_DENSE, !loss::BOTH_WAYS>(job);
}
#endif
template <typename loss> ALWAYS_INLINE void run_vectors_any_softmaxes(const cuda_vector *job) {
    run_softmaxes<loss, VECTORS_ANYHOW>(job);
}
template <typename loss> ALWAYS_INLINE void run_vectors_know(const cuda_vector *job) {
    run_know<loss>(job);
}
template <typename loss> ALWAYS_INLINE void run_vectors_any_sums(const cuda_vector *job) {
    kernels_of<loss>::template sums<VECTORS_ANYHOW, false>(job);
}
template <typename loss> ALWAYS_INLINE void run_vectors_any_slopes(const cuda_vector *job) {
    kernels_of<loss>::template slopes<VECTORS_ANYHOW, false>(job);
}
template <typename loss> ALWAYS_INLINE void run_vectors_finish(const cuda_vector *job) {
    run_finish<loss>(job);
}

#define MAKE_VECTOR_KERNEL(loss, variant, parameter, warps, blocks)                                                    \
    extern "C" __global__ void __launch_bounds__((warps)*ORDER_WARP, (blocks) + loss##_vectors::MORE_BLOCKS)           \
        onepass_##loss##_##variant(const __grid_constant__ cuda_##parameter job) {                                     \
        await_launch_before();                                                                                         \
        run_##variant<loss##_vectors>(&job);                                                                           \
    }

#endif
