/* Workspaces: one for each stream, and a slot for each captured call. */
#include "cuda/workspace.h"

#include <stdlib.h>

#define SLAB_SIZE      ((size_t)1 << 20)
#define SLOT_ALIGNMENT ((size_t)256)

/* So many streams keep their workspaces. A program that makes and destroys streams for ever gets by
 * with these and as many as it has launches in flight. */
#define STREAMS_FOR_GOOD 64

/* ---------------------------------------------------------------- memory -- */

/* On the library's own stream, which waits for nobody: nothing of the caller's is waited for. */
static onepass_status zero(const cuda_driver *driver, cuda_stream stream, cuda_pointer memory, size_t size) {
    OK(onepass_cuda_check(driver, driver->cuMemsetD8Async(memory, 0, size, stream), "zeroing a workspace"));
    return onepass_cuda_check(driver, driver->cuStreamSynchronize(stream), "zeroing a workspace");
}

static onepass_status allocate(const cuda_driver *driver, cuda_stream stream, size_t size, const char *what,
                               cuda_pointer *memory) {
    cuda_pointer new = 0;
    OK(onepass_cuda_check(driver, driver->cuMemAlloc(&new, size), "allocating %zu bytes of GPU memory for %s", size,
                          what));
    const onepass_status status = zero(driver, stream, new, size);
    if (status != ONEPASS_OK)
        driver->cuMemFree(new);
    else
        *memory = new;
    return status;
}

static onepass_status allocate_slot(const cuda_driver *driver, cuda_workspaces *workspaces, size_t size,
                                    cuda_pointer *slot) {
    return allocate(driver, workspaces->stream, size, "the workspace of a captured call", slot);
}

static onepass_status allocate_slab(const cuda_driver *driver, cuda_workspaces *workspaces) {
    OK(allocate(driver, workspaces->stream, SLAB_SIZE, "the workspaces of captured calls", &workspaces->slab));
    workspaces->slab_left = SLAB_SIZE;
    return ONEPASS_OK;
}

onepass_status onepass_cuda_make_workspaces(const cuda_driver *driver, cuda_pointer first,
                                            cuda_workspaces *workspaces) {
    workspaces->first = first;
    return onepass_cuda_check(driver, driver->cuStreamCreate(&workspaces->stream, CU_STREAM_NON_BLOCKING),
                              "making a stream");
}

void onepass_cuda_drop_workspaces(const cuda_driver *driver, cuda_workspaces *workspaces, bool context_is_gone) {
    if (workspaces->stream && !context_is_gone)
        driver->cuStreamDestroy(workspaces->stream);
    pthread_mutex_destroy(&workspaces->lock);
    free(workspaces->of_stream);
}

/* ----------------------------------------------------------- captured calls -- */

/* Slots are never used again: a graph may be replayed as long as the context lives. One that would take much of a slab,
 * as those of many rows do, is memory of its own. */
static onepass_status take_slot(const cuda_driver *driver, cuda_workspaces *workspaces, size_t size,
                                cuda_pointer *slot) {
    size = (size + SLOT_ALIGNMENT - 1) / SLOT_ALIGNMENT * SLOT_ALIGNMENT;
    int mode;
    if (size > SLAB_SIZE / 2) {
        OK(onepass_cuda_relax(driver, &mode));
        return onepass_cuda_unrelax(driver, &mode, allocate_slot(driver, workspaces, size, slot));
    }
    if (workspaces->slab_left < size) {
        OK(onepass_cuda_relax(driver, &mode));
        OK(onepass_cuda_unrelax(driver, &mode, allocate_slab(driver, workspaces)));
    }
    *slot = workspaces->slab;
    workspaces->slab += size;
    workspaces->slab_left -= size;
    return ONEPASS_OK;
}

/* ------------------------------------------------------------------ streams -- */

static stream_workspace *find_stream(cuda_workspaces *workspaces, unsigned long long stream) {
    for (int32_t i = 0; i < workspaces->count; i++)
        if (workspaces->of_stream[i].stream == stream)
            return &workspaces->of_stream[i];
    return NULL;
}

/* One whose stream has not kept it for good and whose last launch is done. */
static onepass_status find_idle(const cuda_driver *driver, cuda_workspaces *workspaces, stream_workspace **found) {
    *found = NULL;
    for (int32_t i = STREAMS_FOR_GOOD; i < workspaces->count && !*found; i++) {
        stream_workspace *one = &workspaces->of_stream[i];
        const cuda_result result = one->done ? driver->cuEventQuery(one->done) : CUDA_ERROR_NOT_READY;
        if (result == CUDA_SUCCESS)
            *found = one;
        else if (result != CUDA_ERROR_NOT_READY)
            return onepass_cuda_check(driver, result, "asking whether a workspace is still in use");
    }
    return ONEPASS_OK;
}

static onepass_status make_room(cuda_workspaces *workspaces) {
    if (workspaces->count < workspaces->room)
        return ONEPASS_OK;
    const int32_t room = workspaces->room ? 2 * workspaces->room : 8;
    stream_workspace *grown = realloc(workspaces->of_stream, (size_t)room * sizeof *grown);
    if (!grown)
        return onepass_fail(ONEPASS_OUT_OF_MEMORY, "no memory for the list of %d workspaces", room);
    workspaces->of_stream = grown;
    workspaces->room = room;
    return ONEPASS_OK;
}

static onepass_status find_memory(const cuda_driver *driver, cuda_workspaces *workspaces, cuda_pointer *memory) {
    if (!workspaces->first)
        return allocate(driver, workspaces->stream, ONEPASS_WORKSPACE_SIZE, "a stream's workspace", memory);
    *memory = workspaces->first;
    workspaces->first = 0;
    return ONEPASS_OK;
}

static onepass_status replace_memory(const cuda_driver *driver, cuda_stream stream, size_t size,
                                     stream_workspace *workspace) {
    OK(allocate(driver, stream, size, "a stream's workspace", &workspace->memory));
    workspace->size = size;
    return ONEPASS_OK;
}

/* Calls over many rows need more. What was there before stays, since launches may still use it: at least twice the
 * size each time, all of that together is no more than what is used. */
static onepass_status grow(const cuda_driver *driver, cuda_workspaces *workspaces, size_t size,
                           stream_workspace *workspace) {
    const size_t grown = size > 2 * workspace->size ? size : 2 * workspace->size;
    int mode;
    OK(onepass_cuda_relax(driver, &mode));
    return onepass_cuda_unrelax(driver, &mode, replace_memory(driver, workspaces->stream, grown, workspace));
}

static onepass_status add_workspace(const cuda_driver *driver, cuda_workspaces *workspaces, stream_workspace **added) {
    stream_workspace new = {0};
    OK(make_room(workspaces));
    if (workspaces->count >= STREAMS_FOR_GOOD)
        OK(onepass_cuda_check(driver, driver->cuEventCreate(&new.done, CU_EVENT_DISABLE_TIMING), "making an event"));
    new.size = ONEPASS_WORKSPACE_SIZE;
    const onepass_status status = find_memory(driver, workspaces, &new.memory);
    if (status == ONEPASS_OK) {
        *added = &workspaces->of_stream[workspaces->count++];
        **added = new;
    } else if (new.done) {
        driver->cuEventDestroy(new.done);
    }
    return status;
}

static onepass_status find_or_add(const cuda_driver *driver, cuda_workspaces *workspaces, unsigned long long stream,
                                  stream_workspace **found) {
    OK(find_idle(driver, workspaces, found));
    if (!*found)
        OK(add_workspace(driver, workspaces, found));
    (*found)->stream = stream;
    return ONEPASS_OK;
}

static onepass_status workspace_of_stream(const cuda_driver *driver, cuda_workspaces *workspaces,
                                          unsigned long long stream, stream_workspace **workspace) {
    *workspace = find_stream(workspaces, stream);
    if (*workspace)
        return ONEPASS_OK;
    int mode;
    OK(onepass_cuda_relax(driver, &mode));
    return onepass_cuda_unrelax(driver, &mode, find_or_add(driver, workspaces, stream, workspace));
}

/* -------------------------------------------------------- borrow and return -- */

onepass_status onepass_cuda_is_captured(const cuda_driver *driver, cuda_stream stream, bool *captured) {
    int capture = 0;
    OK(onepass_cuda_check(driver, driver->cuStreamIsCapturing(stream, &capture),
                          "asking whether the stream is captured"));
    if (capture == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
        return onepass_fail(ONEPASS_DEVICE_FAILED,
                            "the stream's capture was spoiled by an earlier error; end it and capture again");
    *captured = capture == CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return ONEPASS_OK;
}

onepass_status onepass_cuda_borrow(const cuda_driver *driver, cuda_workspaces *workspaces, cuda_stream stream,
                                   size_t size, bool alone, cuda_loan *loan) {
    bool captured = false;
    unsigned long long identity = 0;
    stream_workspace *workspace = NULL;
    *loan = (cuda_loan){0};
    OK(onepass_cuda_is_captured(driver, stream, &captured));
    if (!captured)
        OK(onepass_cuda_check(driver, driver->cuStreamGetId(stream, &identity), "asking for the stream's identity"));
    pthread_mutex_lock(&workspaces->lock);
    onepass_status status = captured ? take_slot(driver, workspaces, size, &loan->memory)
                                     : workspace_of_stream(driver, workspaces, identity, &workspace);
    if (status == ONEPASS_OK && workspace && workspace->size < size)
        status = grow(driver, workspaces, size, workspace);
    if (status == ONEPASS_OK && workspace) {
        loan->memory = workspace->memory;
        loan->recycled = workspace->done ? workspace : NULL;
        /* Nor may anybody look for one between the choice of a workspace that changes hands and the record of its use.
         */
        loan->locked = alone || loan->recycled;
    }
    if (!loan->locked)
        pthread_mutex_unlock(&workspaces->lock);
    return status;
}

void onepass_cuda_return(const cuda_driver *driver, cuda_workspaces *workspaces, cuda_stream stream,
                         const cuda_loan *loan) {
    stream_workspace *recycled = loan->recycled;
    /* If its use cannot be recorded nobody else may ever have it. The launch itself was made, so the call did not fail.
     */
    if (recycled && driver->cuEventRecord(recycled->done, stream) != CUDA_SUCCESS) {
        driver->cuEventDestroy(recycled->done);
        recycled->done = NULL;
    }
    if (loan->locked)
        pthread_mutex_unlock(&workspaces->lock);
}
