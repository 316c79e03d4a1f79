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

/* A workspace for one launch. */
typedef struct cuda_loan {
    cuda_pointer memory;
    stream_workspace *recycled; /* not null: the workspaces are locked until it is returned */
} cuda_loan;

/* What is needed to make them; memory is allocated when a call first needs it. `first` is a zeroed workspace that is
 * there already. */
ONEPASS_INTERNAL onepass_status onepass_cuda_make_workspaces(const cuda_driver *driver, cuda_pointer first,
                                                             cuda_workspaces *workspaces);

/* After a preparation that failed, or for a context that is gone (then the driver has freed what was in it). */
ONEPASS_INTERNAL void onepass_cuda_drop_workspaces(const cuda_driver *driver, cuda_workspaces *workspaces,
                                                   bool context_is_gone);

/* A zeroed workspace of `size` bytes for the next launch on the stream. Whoever has it launches and returns it. */
ONEPASS_INTERNAL onepass_status onepass_cuda_borrow(const cuda_driver *driver, cuda_workspaces *workspaces,
                                                    cuda_stream stream, size_t size, cuda_loan *loan);
ONEPASS_INTERNAL void onepass_cuda_return(const cuda_driver *driver, cuda_workspaces *workspaces, cuda_stream stream,
                                          const cuda_loan *loan);

#endif
