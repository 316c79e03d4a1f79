/*
 * Slices of accumulators on GPUs. Their results lie in slabs of memory that belong to the accumulator, one behind the
 * other; an event behind a slice's launches tells when they are there. A slab is copied to the host as a whole, and
 * begins anew when nothing in it is waited for.
 */
#include "pending.h"

#include "cuda/launch.h"
#include "cuda/slice.h"

#include <stdlib.h>

/* Room for dozens of slices that tear two tiles, and for thousands that tear none. */
#define SLAB_SIZE ((size_t)1 << 18)

typedef struct pending_slab {
    struct pending_slab *next;
    cuda_scope scope; /* the context, to enter it again */
    cuda_pointer memory;
    size_t used;
    int32_t slices;
} pending_slab;

/* --------------------------------------------------------------- taking them in -- */

/* Forgets a slice; its slab's context is current. */
static void remove_slice(const cuda_driver *driver, pending_slice **at) {
    pending_slice *slice = *at;
    *at = slice->next;
    if (slice->done)
        driver->cuEventDestroy(slice->done);
    if (--slice->slab->slices == 0)
        slice->slab->used = 0;
    free(slice);
}

static onepass_status wait_for_slab(const cuda_driver *driver, const pending_slices *pending,
                                    const pending_slab *slab) {
    for (const pending_slice *slice = pending->slice; slice; slice = slice->next)
        if (slice->slab == slab)
            OK(onepass_cuda_check(driver, driver->cuEventSynchronize(slice->done),
                                  "waiting for a slice of an accumulator"));
    return ONEPASS_OK;
}

/* On the library's own stream, since the caller's have done their part. */
static onepass_status fetch_slab(const cuda_scope *scope, const pending_slab *slab, unsigned char *results) {
    const cuda_driver *driver = scope->driver;
    cuda_state *state;
    OK(onepass_cuda_state(scope, &state));
    const cuda_stream stream = state->workspaces.stream;
    OK(onepass_cuda_check(driver, driver->cuMemcpyDtoHAsync(results, slab->memory, slab->used, stream),
                          "copying the sums of an accumulator"));
    return onepass_cuda_check(driver, driver->cuStreamSynchronize(stream), "copying the sums of an accumulator");
}

static onepass_status hand_over_slab(const cuda_driver *driver, pending_slices *pending, const pending_slab *slab,
                                     const unsigned char *results, pending_taker *take, void *taker) {
    pending_slice **at = &pending->slice;
    while (*at) {
        const pending_slice *slice = *at;
        if (slice->slab != slab) {
            at = &(*at)->next;
            continue;
        }
        if (slice->first < slice->end)
            OK(take(taker, slice, results + slice->at));
        remove_slice(driver, at);
    }
    return ONEPASS_OK;
}

static onepass_status take_slab_here(const cuda_scope *scope, pending_slices *pending, const pending_slab *slab,
                                     pending_taker *take, void *taker) {
    OK(wait_for_slab(scope->driver, pending, slab));
    unsigned char *results = malloc(slab->used);
    if (!results)
        return onepass_fail(ONEPASS_OUT_OF_MEMORY, "no memory for the %zu bytes of an accumulator's sums", slab->used);
    onepass_status status = fetch_slab(scope, slab, results);
    if (status == ONEPASS_OK)
        status = hand_over_slab(scope->driver, pending, slab, results, take, taker);
    free(results);
    return status;
}

/* In the slab's context. Another thread may be capturing, which is not meant. */
static onepass_status take_slab(const cuda_scope *scope, pending_slices *pending, const pending_slab *slab,
                                pending_taker *take, void *taker) {
    int mode;
    OK(onepass_cuda_relax(scope->driver, &mode));
    return onepass_cuda_unrelax(scope->driver, &mode, take_slab_here(scope, pending, slab, take, taker));
}

static onepass_status enter_slab(const pending_slab *slab, cuda_scope *scope) {
    return onepass_cuda_enter_again(&slab->scope, "the sums of slices that an accumulator had there", scope);
}

onepass_status onepass_pending_take(pending_slices *pending, pending_taker *take, void *taker) {
    for (pending_slab *slab = pending->slab; slab; slab = slab->next) {
        cuda_scope scope;
        if (slab->slices == 0)
            continue;
        OK(enter_slab(slab, &scope));
        OK(onepass_cuda_leave(&scope, take_slab(&scope, pending, slab, take, taker)));
    }
    return ONEPASS_OK;
}

/* ----------------------------------------------------------------------- room -- */

static onepass_status allocate_slab(const cuda_scope *scope, pending_slices *pending, pending_slab **made) {
    const cuda_driver *driver = scope->driver;
    pending_slab *slab = calloc(1, sizeof *slab);
    int mode;
    if (!slab)
        return onepass_fail(ONEPASS_OUT_OF_MEMORY, "no memory for the list of an accumulator's slices");
    slab->scope = *scope;
    onepass_status status = onepass_cuda_relax(driver, &mode);
    if (status == ONEPASS_OK)
        status = onepass_cuda_unrelax(
            driver, &mode,
            onepass_cuda_check(driver, driver->cuMemAlloc(&slab->memory, SLAB_SIZE),
                               "allocating %zu bytes of GPU memory for the sums of an accumulator", SLAB_SIZE));
    if (status != ONEPASS_OK) {
        free(slab);
        return status;
    }
    slab->next = pending->slab;
    pending->slab = *made = slab;
    return ONEPASS_OK;
}

/* Whether all slices of a slab are done. If the driver does not say, they are not. */
static bool is_done(const cuda_driver *driver, const pending_slices *pending, const pending_slab *slab) {
    for (const pending_slice *slice = pending->slice; slice; slice = slice->next)
        if (slice->slab == slab && driver->cuEventQuery(slice->done) != CUDA_SUCCESS)
            return false;
    return true;
}

/* A slab of this context with room: one that has some; one whose slices are done, and now taken in; a new one. So there
 * is no more memory than what slices in flight need. */
static onepass_status find_slab(const cuda_scope *scope, pending_slices *pending, size_t size, pending_taker *take,
                                void *taker, pending_slab **found) {
    for (*found = pending->slab; *found; *found = (*found)->next)
        if ((*found)->scope.identity == scope->identity && SLAB_SIZE - (*found)->used >= size)
            return ONEPASS_OK;
    for (*found = pending->slab; *found; *found = (*found)->next)
        if ((*found)->scope.identity == scope->identity && is_done(scope->driver, pending, *found))
            return take_slab(scope, pending, *found, take, taker);
    return allocate_slab(scope, pending, found);
}

static onepass_status make_slice(const cuda_scope *scope, pending_slab *slab, pending_slices *pending,
                                 pending_slice **made) {
    const cuda_driver *driver = scope->driver;
    pending_slice *slice = calloc(1, sizeof *slice);
    if (!slice)
        return onepass_fail(ONEPASS_OUT_OF_MEMORY, "no memory for a slice of an accumulator");
    cuda_event done = NULL;
    const onepass_status status =
        onepass_cuda_check(driver, driver->cuEventCreate(&done, CU_EVENT_DISABLE_TIMING), "making an event");
    if (status != ONEPASS_OK) {
        free(slice);
        return status;
    }
    *slice = (pending_slice){.next = pending->slice, .slab = slab, .at = slab->used, .done = done};
    slab->slices++;
    pending->slice = *made = slice;
    return ONEPASS_OK;
}

/* ------------------------------------------------------------------------ add -- */

/* Whoever goes over a slice's launches: first to look up the kernels, then to launch them. */
typedef struct launcher {
    cuda_visitor visitor; /* the first member: it is who is called */
    const cuda_scope *scope;
    cuda_state *state;
    cuda_stream stream;
    size_t needed; /* bytes of workspace */
    bool launched; /* something was */
} launcher;

static onepass_status look_up(cuda_visitor *visitor, cuda_launch *launch) {
    launcher *own = (launcher *)visitor;
    cuda_function kernel;
    if (own->needed < launch->workspace)
        own->needed = launch->workspace;
    return onepass_cuda_kernel(own->scope, own->state, launch, &kernel);
}

static onepass_status copy_nothing(cuda_visitor *visitor, char *to, const char *from, size_t size) {
    (void)visitor, (void)to, (void)from, (void)size;
    return ONEPASS_OK;
}

static onepass_status launch_it(cuda_visitor *visitor, cuda_launch *launch) {
    launcher *own = (launcher *)visitor;
    cuda_function kernel;
    OK(onepass_cuda_kernel(own->scope, own->state, launch, &kernel));
    OK(onepass_cuda_take_step(own->scope->driver, launch, kernel, visitor->workspace, own->stream, false));
    own->launched = true;
    return ONEPASS_OK;
}

static onepass_status copy_it(cuda_visitor *visitor, char *to, const char *from, size_t size) {
    const launcher *own = (const launcher *)visitor;
    const cuda_driver *driver = own->scope->driver;
    return onepass_cuda_check(driver,
                              driver->cuMemcpyDtoDAsync((cuda_pointer)to, (cuda_pointer)from, size, own->stream),
                              "copying the terms of a torn tile");
}

static onepass_status launch_slice(const job *job, const slice_parts *parts, launcher *launcher) {
    cuda_visitor *visitor = &launcher->visitor;
    cuda_loan loan;
    visitor->launch = look_up;
    visitor->copy = copy_nothing;
    OK(onepass_cuda_visit_slice(job, parts, visitor));
    OK(onepass_cuda_find_workspace(job, launcher->scope, launcher->state, launcher->needed, true, &loan));
    visitor->workspace = loan.memory;
    visitor->launch = launch_it;
    visitor->copy = copy_it;
    const onepass_status status = onepass_cuda_visit_slice(job, parts, visitor);
    onepass_cuda_return(launcher->scope->driver, &launcher->state->workspaces, launcher->stream, &loan);
    return status;
}

static onepass_status check_stream(const cuda_driver *driver, cuda_stream stream) {
    bool captured = false;
    OK(onepass_cuda_is_captured(driver, stream, &captured));
    if (captured)
        return onepass_fail(ONEPASS_NOT_SUPPORTED,
                            "the stream is captured into a graph, which would add the same elements each time that it "
                            "is replayed; expected a slice of an accumulator on a stream that is not");
    return ONEPASS_OK;
}

/* Of a slice that failed when some of it was launched already, the room is taken until that is done. */
static onepass_status add_here(const cuda_scope *scope, pending_slices *pending, const job *job,
                               const slice_parts *parts, pending_taker *take, void *taker) {
    const cuda_driver *driver = scope->driver;
    launcher launcher = {.scope = scope, .stream = job->stream};
    pending_slab *slab;
    pending_slice *slice = NULL;
    OK(onepass_cuda_check_pointers(scope, job));
    OK(onepass_cuda_state(scope, &launcher.state));
    OK(check_stream(driver, job->stream));
    OK(find_slab(scope, pending, parts->size, take, taker, &slab));
    OK(make_slice(scope, slab, pending, &slice));
    launcher.visitor.limits = launcher.state->limits;
    launcher.visitor.results = (char *)(slab->memory + slice->at);
    onepass_status status = launch_slice(job, parts, &launcher);
    if (launcher.launched) {
        const cuda_result recorded = driver->cuEventRecord(slice->done, job->stream);
        slab->used += parts->size;
        if (status == ONEPASS_OK)
            status = onepass_cuda_check(driver, recorded, "recording the end of a slice");
    } else {
        remove_slice(driver, &pending->slice);
    }
    if (status == ONEPASS_OK) {
        slice->first = parts->first;
        slice->end = parts->end;
    }
    return status;
}

onepass_status onepass_pending_add(pending_slices *pending, const job *job, const slice_parts *parts,
                                   pending_taker *take, void *taker) {
    cuda_scope scope;
    OK(onepass_cuda_enter(job->device_index, &scope));
    const onepass_status added = add_here(&scope, pending, job, parts, take, taker);
    const onepass_status left = onepass_cuda_leave(&scope, added);
    if (added == ONEPASS_OK && left != ONEPASS_OK)
        pending->slice->first = pending->slice->end = 0;
    return left;
}

/* ----------------------------------------------------------------------- drop -- */

/* Launches may still write to the memory. If its context is gone, so is it. */
static void free_slab(const pending_slices *pending, pending_slab *slab) {
    cuda_scope scope;
    int mode;
    if (enter_slab(slab, &scope) == ONEPASS_OK) {
        const cuda_driver *driver = scope.driver;
        const bool relaxed = onepass_cuda_relax(driver, &mode) == ONEPASS_OK;
        for (const pending_slice *slice = pending->slice; slice; slice = slice->next)
            if (slice->slab == slab) {
                driver->cuEventSynchronize(slice->done);
                driver->cuEventDestroy(slice->done);
            }
        driver->cuMemFree(slab->memory);
        if (relaxed)
            onepass_cuda_unrelax(driver, &mode, ONEPASS_OK);
        onepass_cuda_leave(&scope, ONEPASS_OK);
    }
    free(slab);
}

void onepass_pending_drop(pending_slices *pending) {
    for (pending_slab *slab = pending->slab, *next; slab; slab = next) {
        next = slab->next;
        free_slab(pending, slab);
    }
    for (pending_slice *slice = pending->slice, *next; slice; slice = next) {
        next = slice->next;
        free(slice);
    }
    *pending = (pending_slices){0};
}
