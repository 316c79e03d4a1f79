/*
 * The CUDA engine's kernels, the very source, as a library for the harness. Compiled
 * once for each compute type, like the original.
 */
#include "cuda.h"

/* A GPU needs every call inlined. Here that would take minutes to compile, and the compiler may choose. */
#include "math/real.h"
#undef ALWAYS_INLINE
#define ALWAYS_INLINE static inline __attribute__((unused))

#include "cuda/pairwise.cu"

#if defined(ONEPASS_REAL_F64)
SIMT_LIBRARY(onepass_simt_kernels_f64, shared_memory)
#else
SIMT_LIBRARY(onepass_simt_kernels_f32, shared_memory)
#endif
