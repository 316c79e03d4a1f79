/*
 * Memory of the first GPU. Programs that have the CUDA toolkit get it by cudaMalloc; this one must compile without, so
 * it opens the driver itself. A failure ends the program.
 */
#ifndef ONEPASS_DEMO_GPU_H
#define ONEPASS_DEMO_GPU_H

#include <stddef.h>

void gpu_open(void);
void *gpu_allocate(size_t size);
void gpu_free(void *memory);
void gpu_upload(void *to, const void *from, size_t size);
void gpu_download(void *to, const void *from, size_t size); /* waits for the GPU */

#endif
