/* The kernels of limits.cu, which are embedded in the tool, and the ways to launch them. */
#ifndef ONEPASS_CLI_GPU_LIMITS_H
#define ONEPASS_CLI_GPU_LIMITS_H

#include "layout.h" /* problem */

/* The GPU is open. False where the tool was built without nvcc, or where the GPU refuses the kernels. */
bool gpu_limits_load(problem *problem);

/* How a kernel is launched: how much it has in flight, its blocks, its hints. Numbers from 0 on; a shape that is the
 * same as another for so many bytes, or that the GPU cannot run, is of no use. */
int gpu_limit_shapes(void);
bool gpu_limit_is_useful(int shape, bool writes, size_t bytes);

/* Reads `bytes` bytes of a and of b, in whole vectors of 16, and writes as many to c if it writes. */
bool gpu_limit_launch(int shape, bool writes, size_t bytes, void *a, void *b, void *c);

/* Lets the host get ahead of the GPU. */
bool gpu_limits_linger(void);

#endif
