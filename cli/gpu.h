/* A GPU's memory, stream and clock for the tool, by the CUDA driver, which is opened when a GPU is first asked for: the
 * tool links to no CUDA library. Functions that can fail return false, null or a negative number, and gpu_problem()
 * says why. One GPU a run. */
#ifndef ONEPASS_CLI_GPU_H
#define ONEPASS_CLI_GPU_H

#include <stdbool.h>
#include <stddef.h>

/* Its primary context becomes the thread's current one, which is where the library then computes. */
bool gpu_open(int index);
const char *gpu_problem(void);
const char *gpu_name(void); /* "NVIDIA H200" */

/* Bytes that are free now. */
size_t gpu_free_memory(void);

void *gpu_allocate(size_t bytes);
void gpu_release(void *memory); /* null is fine */
bool gpu_upload(void *to, const void *from, size_t bytes);
bool gpu_download(void *to, const void *from, size_t bytes);
bool gpu_clear(void *memory, size_t bytes); /* zeros */

/* Waits for everything that was launched; false if any of it failed. */
bool gpu_wait(void);

/* ------------------------------------------------------ kernels and time -- */

/* A stream of the tool's own, which can be captured; everything below goes to it. */
void *gpu_stream(void);

/* Kernels of an image: a fat binary. */
typedef struct gpu_kernel gpu_kernel;
bool gpu_load(const void *image);
gpu_kernel *gpu_kernel_named(const char *name);
int gpu_blocks_that_fit(gpu_kernel *kernel, int threads); /* on the whole GPU at once; 0 if it cannot run so */
bool gpu_launch(gpu_kernel *kernel, unsigned blocks, unsigned threads, void **parameters);

/* What goes to the stream in between becomes a graph instead of being run. */
typedef struct gpu_graph gpu_graph;
bool gpu_capture(void);
gpu_graph *gpu_end_capture(void);
void gpu_release_graph(gpu_graph *graph); /* null is fine */

/* A replay between two marks of the GPU's clock, and its seconds, once it has ended. */
double gpu_replay(gpu_graph *graph);

#endif
