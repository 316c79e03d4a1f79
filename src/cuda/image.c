/* Which toolkit has made the kernels. A build without nvcc has none, and the engine says so when it is asked to run. */
#include "cuda/image.h"

#if defined(ONEPASS_CUDA_TOOLKIT)
const int32_t onepass_cuda_toolkit = ONEPASS_CUDA_TOOLKIT;
const char onepass_cuda_missing[] = "";
#else
const int32_t onepass_cuda_toolkit = 0;
const char onepass_cuda_missing[] = ONEPASS_CUDA_MISSING;
#endif
