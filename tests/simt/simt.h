/*
 * The SIMT harness: runs a CUDA kernel on the CPU, thread by thread, so that a
 * machine without a GPU executes every line of it.
 *
 * A GPU's thread is a fiber, which runs until it must wait: at a barrier, at an
 * operation of its warp, at an atomic, now and then at a load or store. Who goes
 * on then (which block, which warp, which lane) is drawn from a seed, so what a
 * kernel takes for granted and no barrier ensures goes wrong soon. Shared
 * memory is all NaN before each block, and one to three blocks are under way at a
 * time, or all those of a cluster.
 *
 * A mistake of the kernel (threads that wait for each other for ever, lanes that
 * meet at different operations, a misaligned access, a stack or an address out of
 * bounds) is told on stderr, with the threads that made it, and ends the program.
 *
 * One launch at a time; not for use from several threads of the CPU.
 */
#ifndef ONEPASS_TESTS_SIMT_H
#define ONEPASS_TESTS_SIMT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------- for the tests -- */

enum {
    SIMT_MOST_THREADS = 1024 /* of a block */
};

/* The shared object that kernels were linked into, made known by SIMT_LIBRARY of cuda.h. Its
 * thread-local storage is the kernels' shared memory. */
typedef struct simt_library {
    char *dynamic; /* the array that a kernel declares `extern __shared__`, within that storage */
    size_t dynamic_size;
} simt_library;

typedef struct simt_launch {
    const simt_library *library;
    const char *name;             /* for messages */
    void (*body)(void *argument); /* what each thread does: call the kernel */
    void *argument;
    uint32_t blocks;
    uint32_t threads;       /* of a block */
    uint32_t shared_memory; /* bytes of the dynamic array */
    uint32_t cluster;       /* blocks that can reach each other's shared memory; 0: none can */
    uint64_t seed;
    /* If set, only these blocks run: a sample of a grid that would take too long. */
    uint32_t first_block, block_count;
} simt_launch;

/* Returns when all threads of all blocks have. */
void simt_run(const simt_launch *launch);

/* --------------------------------------------------------- for the kernels -- */

typedef struct simt_index {
    unsigned x, y, z;
} simt_index;

extern simt_index threadIdx, blockIdx, blockDim, gridDim;

typedef enum simt_operation {
    SIMT_SYNCWARP,
    SIMT_SHFL,
    SIMT_SHFL_UP,
    SIMT_SHFL_DOWN,
    SIMT_SHFL_XOR,
    SIMT_ANY,
    SIMT_ALL,
    SIMT_BALLOT
} simt_operation;

void simt_barrier(const char *file, int line);

/* Meets the other lanes of `mask`; the result is that of the operation, for the caller's lane. */
uint64_t simt_warp(simt_operation operation, unsigned mask, uint64_t value, int argument, int width, const char *file,
                   int line);

/* Lets others go first, perhaps. */
void simt_yield(void);

/* An atomic operation has happened: other blocks may go first. */
void simt_atomic(void);

/* Returns whether it is there; if not others go first, who may bring it. */
bool simt_found(bool is_there);

/* All threads of a cluster meet. */
void simt_meet_cluster(void);

/* Where what is at `address` in the shared memory of the block that calls is in that of the `rank`-th of its cluster,
 * until the thread next waits. */
void *simt_in_block(int rank, void *address);

/* Loads and stores until the next one at which simt_yield is due. */
extern int simt_accesses_left;

__attribute__((noreturn)) void simt_misaligned(const void *address, size_t alignment, const char *file, int line);

#ifdef __cplusplus
}
#endif
#endif
