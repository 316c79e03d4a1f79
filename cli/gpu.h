/* A GPU's memory for the tool, by the CUDA driver, which is opened when a GPU is first asked for: the tool links to no
 * CUDA library. Functions that can fail return false, null or 0, and gpu_problem() says why. One GPU a run. */
#ifndef ONEPASS_CLI_GPU_H
#define ONEPASS_CLI_GPU_H

#include <stdbool.h>
#include <stddef.h>

/* Its primary context becomes the thread's current one, which is where the library then computes. */
bool gpu_open(int index);
const char *gpu_problem(void);

/* Bytes that are free now. */
size_t gpu_free_memory(void);

void *gpu_allocate(size_t bytes);
void gpu_release(void *memory); /* null is fine */
bool gpu_upload(void *to, const void *from, size_t bytes);
bool gpu_download(void *to, const void *from, size_t bytes);

/* Waits for everything that was launched; false if any of it failed. */
bool gpu_wait(void);

#endif
