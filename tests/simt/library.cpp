/* What a library of kernels has once: the dynamic shared memory. */
#include "cuda.h"

SIMT_LIBRARY(onepass_simt_library, shared_memory)
