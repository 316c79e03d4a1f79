/*
 * Memory for the partial sums of a launch, in one context. Each stream has a workspace
 * of its own, and so has each captured call, since nobody knows when, where and beside
 * what a graph will be replayed.
 */
#ifndef ONEPASS_CUDA_WORKSPACE_H
#define ONEPASS_CUDA_WORKSPACE_H

#include "cuda/driver.h"

#include <pthread.h>

typedef struct stream_workspace {
    unsigned long long stream; /* the identity of the stream that has it: handles are reused, identities are not */
    cuda_pointer memory;
    size_t size;
    cuda_event done; /* recorded after each launch; null: the stream keeps it for good */
} stream_workspace;

typedef struct cuda_workspaces {
    pthread_mutex_t lock; /* for all that follows */
    cuda_stream stream;   /* the library's own: new memory is zeroed on it */
    stream_workspace *of_stream;
    int32_t count, room;
    cuda_pointer first; /* that of the stream which comes first; 0: taken */
    cuda_pointer slab;  /* what is left of it goes to captured calls, slot by slot */
    size_t slab_left;
} cuda_workspaces;

/* A workspace for the launches of one call. */
typedef struct cuda_loan {
    cuda_pointer memory;
    stream_workspace *recycled; /* null: the stream keeps it for good, or it is a captured call's slot */
    bool locked;                /* nobody else can borrow before it is returned */
} cuda_loan;

/* What is needed to make them; memory is allocated when a call first needs it. `first` is a zeroed workspace that is
 * there already. */
ONEPASS_INTERNAL onepass_status onepass_cuda_make_workspaces(const cuda_driver *driver, cuda_pointer first,
                                                             cuda_workspaces *workspaces);

/* After a preparation that failed, or for a context that is gone (then the driver has freed what was in it). */
ONEPASS_INTERNAL void onepass_cuda_drop_workspaces(const cuda_driver *driver, cuda_workspaces *workspaces,
                                                   bool context_is_gone);

/* Whether a stream is captured into a graph; one whose capture was spoiled is an error. */
ONEPASS_INTERNAL onepass_status onepass_cuda_is_captured(const cuda_driver *driver, cuda_stream stream, bool *captured);

/* A zeroed workspace of `size` bytes for the next launches on the stream. Whoever has it launches and returns it. If
 * one launch leaves something to the next, no other call on the stream may come in between: the workspace is lent
 * alone.
 */
ONEPASS_INTERNAL onepass_status onepass_cuda_borrow(const cuda_driver *driver, cuda_workspaces *workspaces,
                                                    cuda_stream stream, size_t size, bool alone, cuda_loan *loan);
ONEPASS_INTERNAL void onepass_cuda_return(const cuda_driver *driver, cuda_workspaces *workspaces, cuda_stream stream,
                                          const cuda_loan *loan);

#endif
