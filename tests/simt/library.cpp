/* What a library of kernels has once: the dynamic shared memory. */
#include "cuda.h"

#if defined(ONEPASS_REAL_F64)
SIMT_LIBRARY(onepass_simt_kernels_f64, shared_memory)
#else
SIMT_LIBRARY(onepass_simt_kernels_f32, shared_memory)
#endif
