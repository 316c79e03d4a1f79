/*
 * A CUDA driver that is none: built as a libcuda.so.1, it keeps devices, contexts, streams, memory, events and modules
 * as the real one would, runs nothing, and writes down what it was asked for. It knows what a driver refuses while a
 * stream is captured, and what a program must never do, and counts both. A test reaches it through the one function
 * below, which it looks up in the library that onepass has opened as well.
 */
#ifndef ONEPASS_TESTS_FAKE_DRIVER_H
#define ONEPASS_TESTS_FAKE_DRIVER_H

#include "cuda/driver.h"
#include "cuda/plan.h"

enum {
    FAKE_VERSION = 13000,
    FAKE_MULTIPROCESSORS = 132,
    FAKE_SHARED_MEMORY = 227 * 1024,
    FAKE_CLUSTERS = 15,
    FAKE_MOST_LAUNCHES = 4096
};

static const cuda_limits fake_limits = {FAKE_MULTIPROCESSORS, FAKE_SHARED_MEMORY, FAKE_CLUSTERS, true};

/* What exists. The test's own memory, streams and contexts are not counted. */
typedef struct fake_counts {
    int32_t memory, streams, events, modules, retained; /* the last: references to primary contexts */
    size_t bytes;
} fake_counts;

typedef struct fake_launch {
    const char *kernel, *image; /* its name, and where it comes from: "mse f32" */
    uint32_t blocks, threads, shared_memory;
    unsigned long long stream, context; /* identities */
    bool captured, overlaps;
    union { /* the kernel's parameter, or its beginning */
        cuda_head head;
        cuda_general general;
        cuda_weighted weighted;
        cuda_small_mean small_mean;
        cuda_backward backward;
        cuda_whole whole;
        cuda_tiny tiny;
        cuda_row row;
        cuda_terms terms;
        cuda_divided_by divided_by;
    };
} fake_launch;

typedef enum fake_memory {
    FAKE_DEVICE,
    FAKE_PINNED,
    FAKE_MANAGED
} fake_memory;

/* All that a test may set, look at or do. */
typedef struct fake {
    /* To set before the driver is opened. */
    int32_t version, gpus;

    /* The failure: the `fail_at`-th call from now on, of the function named or of any, answers `fail_with`. */
    const char *fail_in; /* null: any */
    int32_t fail_at;     /* counts down; 0: none */
    cuda_result fail_with;
    const char *failed; /* the function that did */

    /* What was asked for. */
    int32_t calls, loads, lookups, retains, pushes, synchronisations; /* loads of modules, lookups of kernels */
    int32_t waits;                                                    /* for events */
    int32_t launches;
    fake_launch launch[FAKE_MOST_LAUNCHES]; /* the last ones, by their number modulo this */
    fake_counts counts;

    /* What must never happen: a caller's stream waited for, memory that two running launches use, a workspace that was
     * not zeroed, another call's weights, a function used in the wrong context. The last of them in words. */
    int32_t violations;
    const char *violation;

    const void *divisor; /* of calls that have one as a tensor: what a launch may be divided by beside weights */
    bool busy;           /* launches do not end before finish() */
    bool slow; /* launches, loads, lookups and questions about contexts take their time: others come in between */

    cuda_pointer (*allocate)(fake_memory kind, int32_t gpu, size_t size);
    void (*release)(cuda_pointer memory);
    cuda_context (*make_context)(int32_t gpu); /* current to nobody */
    void (*destroy_context)(cuda_context context);
    cuda_context (*primary)(int32_t gpu);
    void (*reset_primary)(int32_t gpu);
    void (*set_current)(cuda_context context); /* replaces the calling thread's whole stack */
    int32_t (*depth)(void);                    /* of that stack */
    int32_t (*mode)(void);                     /* the calling thread's capture mode; 0: global */
    void (*set_mode)(int32_t mode);
    cuda_stream (*make_stream)(void); /* in the current context */
    void (*destroy_stream)(cuda_stream stream);
    void (*capture)(cuda_stream stream, int32_t status);
    int32_t (*capture_status)(cuda_stream stream);
    void (*finish)(cuda_stream stream); /* all that was launched on it is done */
} fake;

fake *fake_driver(void);

#endif
