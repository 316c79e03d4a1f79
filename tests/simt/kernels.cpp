/*
 * The CUDA engine's kernels, the very source, for the harness. Compiled once for each unit and compute type, like the
 * original; ONEPASS_UNIT_SOURCE is "cuda/unit.cu" or "cuda/every_loss.cu".
 */
#include "cuda.h"

/* A GPU needs every call inlined. Here that would take minutes to compile, and the compiler may choose. */
#include "math/real.h"
#undef ALWAYS_INLINE
#define ALWAYS_INLINE static inline __attribute__((unused))

#include ONEPASS_UNIT_SOURCE
