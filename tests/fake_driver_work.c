/* The fake driver's work in time: streams and their captures, events, launches, and what kernels would notice. */
#define _GNU_SOURCE
#include "fake_driver_state.h"

#include <stddef.h>
#include <string.h>

/* ----------------------------------------------------------------- streams -- */

static cuda_stream place_stream(bool is_library, bool non_blocking) {
    for (int i = 0; i < MOST_STREAMS; i++) {
        if (streams[i].alive)
            continue;
        streams[i] = (struct CUstream_st){.alive = true,
                                          .is_library = is_library,
                                          .non_blocking = non_blocking,
                                          .context = current(),
                                          .identity = ++last_identity};
        the_fake.counts.streams += is_library;
        return &streams[i];
    }
    return NULL;
}

static cuda_stream make_stream(void) {
    pthread_mutex_lock(&lock);
    cuda_stream made = place_stream(false, false);
    pthread_mutex_unlock(&lock);
    return made;
}

static void destroy_stream(cuda_stream stream) {
    pthread_mutex_lock(&lock);
    stream->alive = false;
    pthread_mutex_unlock(&lock);
}

static void capture(cuda_stream stream, int32_t status) {
    pthread_mutex_lock(&lock);
    stream->capture = status;
    pthread_mutex_unlock(&lock);
}

static int32_t capture_status(cuda_stream stream) {
    pthread_mutex_lock(&lock);
    const int32_t status = stream->capture;
    pthread_mutex_unlock(&lock);
    return status;
}

static void finish(cuda_stream stream) {
    pthread_mutex_lock(&lock);
    stream = stream_of(stream);
    stream->done = stream->launched;
    pthread_mutex_unlock(&lock);
}

static int32_t mode(void) {
    return capture_mode;
}

static void set_mode(int32_t mode) {
    capture_mode = mode;
}

EXPORT cuda_result cuStreamCreate(cuda_stream *stream, unsigned flags);
EXPORT cuda_result cuStreamCreate(cuda_stream *stream, unsigned flags) {
    ENTER;
    NEED_CONTEXT;
    *stream = place_stream(true, flags & CU_STREAM_NON_BLOCKING);
    return leave(*stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

EXPORT cuda_result cuStreamDestroy_v2(cuda_stream stream);
EXPORT cuda_result cuStreamDestroy_v2(cuda_stream stream) {
    ENTER;
    NEED(stream && stream->alive && stream->is_library, INVALID_HANDLE);
    stream->alive = false;
    the_fake.counts.streams--;
    return leave(CUDA_SUCCESS);
}

EXPORT cuda_result cuStreamSynchronize(cuda_stream stream);
EXPORT cuda_result cuStreamSynchronize(cuda_stream stream) {
    ENTER;
    NEED_CONTEXT;
    NEED_NO_CAPTURE;
    the_fake.synchronisations++;
    if (!stream || !stream->is_library)
        violate("a caller's stream was waited for");
    return leave(CUDA_SUCCESS);
}

#if !defined(FAKE_LACKS_STREAM_ID)
EXPORT cuda_result cuStreamGetId(cuda_stream stream, unsigned long long *identity);
EXPORT cuda_result cuStreamGetId(cuda_stream stream, unsigned long long *identity) {
    ENTER;
    NEED_CONTEXT;
    stream = stream_of(stream);
    NEED(stream->alive && stream->context == current(), INVALID_HANDLE);
    *identity = stream->identity;
    return leave(CUDA_SUCCESS);
}
#endif

EXPORT cuda_result cuStreamIsCapturing(cuda_stream stream, int *status);
EXPORT cuda_result cuStreamIsCapturing(cuda_stream stream, int *status) {
    ENTER;
    NEED_CONTEXT;
    stream = stream_of(stream);
    NEED(stream->alive && stream->context == current(), INVALID_HANDLE);
    *status = stream->capture;
    return leave(CUDA_SUCCESS);
}

EXPORT cuda_result cuThreadExchangeStreamCaptureMode(int *exchanged);
EXPORT cuda_result cuThreadExchangeStreamCaptureMode(int *exchanged) {
    ENTER;
    const int former = capture_mode;
    capture_mode = *exchanged;
    *exchanged = former;
    return leave(CUDA_SUCCESS);
}

/* ------------------------------------------------------------------ events -- */

EXPORT cuda_result cuEventCreate(cuda_event *event, unsigned flags);
EXPORT cuda_result cuEventCreate(cuda_event *event, unsigned flags) {
    ENTER;
    NEED_CONTEXT;
    NEED(flags == CU_EVENT_DISABLE_TIMING, ILLEGAL);
    for (int i = 0; i < MOST_EVENTS; i++) {
        if (events[i].alive)
            continue;
        events[i] = (struct CUevent_st){.alive = true, .context = current()};
        the_fake.counts.events++;
        *event = &events[i];
        return leave(CUDA_SUCCESS);
    }
    return leave(CUDA_ERROR_OUT_OF_MEMORY);
}

EXPORT cuda_result cuEventDestroy_v2(cuda_event event);
EXPORT cuda_result cuEventDestroy_v2(cuda_event event) {
    ENTER;
    NEED(event && event->alive, INVALID_HANDLE);
    event->alive = false;
    the_fake.counts.events--;
    return leave(CUDA_SUCCESS);
}

EXPORT cuda_result cuEventRecord(cuda_event event, cuda_stream stream);
EXPORT cuda_result cuEventRecord(cuda_event event, cuda_stream stream) {
    ENTER;
    stream = stream_of(stream);
    NEED(event && event->alive && stream->alive && stream->context == event->context, INVALID_HANDLE);
    event->stream = stream;
    event->identity = stream->identity;
    event->launch = stream->launched;
    return leave(CUDA_SUCCESS);
}

/* Work on a stream that was destroyed goes on to its end; here it is there at once. */
static bool is_running(cuda_stream stream, unsigned long long identity, long launch) {
    return stream && stream->alive && stream->identity == identity && stream->done < launch;
}

EXPORT cuda_result cuEventQuery(cuda_event event);
EXPORT cuda_result cuEventQuery(cuda_event event) {
    ENTER;
    NEED(event && event->alive && event->context == current(), INVALID_HANDLE);
    NEED_NO_CAPTURE;
    return leave(is_running(event->stream, event->identity, event->launch) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS);
}

/* Who waits for work that is running has it done. */
EXPORT cuda_result cuEventSynchronize(cuda_event event);
EXPORT cuda_result cuEventSynchronize(cuda_event event) {
    ENTER;
    NEED(event && event->alive && event->context == current(), INVALID_HANDLE);
    NEED_NO_CAPTURE;
    the_fake.waits++;
    if (is_running(event->stream, event->identity, event->launch))
        event->stream->done = event->launch;
    return leave(CUDA_SUCCESS);
}

/* ---------------------------------------------------------------- launches -- */

/* What a kernel would notice: its workspace is memory of the GPU, zeroed, and nobody else's. */
static void use_workspace(const cuda_head *head, cuda_stream stream) {
    memory *memory = memory_at((cuda_pointer)head->total.workspace);
    if (!memory || memory->gpu != stream->context->gpu) {
        violate("a workspace is not memory of the GPU");
        return;
    }
    const unsigned char *bytes = head->total.workspace;
    for (size_t i = 0; i < CUDA_WORKSPACE_HEAD; i++)
        if ((i < CUDA_WEIGHTS_AT || i >= CUDA_WEIGHTS_AT + sizeof(double)) && bytes[i] != 0)
            violate("a workspace is not zeroed");
    if (stream->capture || memory->size != ONEPASS_WORKSPACE_SIZE)
        return; /* a slot: the tests compare them all */
    if (memory->user != stream && is_running(memory->user, memory->user_identity, memory->launch))
        violate("two running launches have one workspace");
    memory->user = stream;
    memory->user_identity = stream->identity;
    memory->launch = stream->launched;
}

/* For the sum of the weights stands here where they lie: a launch that is divided by it must find its own call's. What
 * rows count for has no place but their labels'; and so have their terms, which lie in the workspace. */
static void leave_weights(const char *kernel, const cuda_head *head) {
    const cuda_weighted *weighted = (const cuda_weighted *)head;
    const bool are_mask = strstr(kernel, "weighted") && !head->data[CUDA_PREDICTION];
    memcpy(head->total.value, are_mask ? &weighted->mask : &head->data[CUDA_PREDICTION], sizeof(void *));
}

static void find_weights(const cuda_total *total, const void *expected) {
    const void *found;
    memcpy(&found, (const char *)total->workspace + CUDA_WEIGHTS_AT, sizeof found);
    if (found != expected && (!the_fake.divisor || found != the_fake.divisor))
        violate("a launch is divided by the weights of another call");
}

static bool is_in_workspace(const cuda_total *total, const void *data) {
    const memory *memory = memory_at((cuda_pointer)total->workspace);
    return memory && memory == memory_at((cuda_pointer)data);
}

static size_t real_size(const fake_launch *launch) {
    return strstr(launch->image, " f64") ? sizeof(double) : sizeof(float);
}

/* Where that lies which rows count for. */
static const void *counted_by(const fake_launch *launch, const cuda_row *row) {
    if (!strstr(launch->kernel, "with_probabilities"))
        return row->data[CUDA_ROW_TARGET];
    return row->data[CUDA_ROW_WEIGHT] ? row->data[CUDA_ROW_WEIGHT] : row->data[CUDA_ROW_MASK];
}

/* Rows leave that place at that of their terms, if there is room for a pointer. */
static void use_rows(const fake_launch *launch, const cuda_row *row) {
    char *workspace = row->total.workspace;
    const void *counted = counted_by(launch, row);
    const bool is_weights = strstr(launch->kernel, "_row_weights") != NULL;
    if (workspace && row->terms_at) {
        const memory *memory = memory_at((cuda_pointer)workspace);
        const size_t terms = (size_t)row->rows * real_size(launch);
        if (!memory || (unsigned char *)workspace + row->terms_at + terms > memory->data + memory->size)
            violate("the terms of rows lie beyond the workspace");
        else if (terms >= sizeof counted)
            memcpy(workspace + row->terms_at, &counted, sizeof counted);
    }
    if (strstr(launch->kernel, "_row_count") || (row->counts && !is_weights))
        memcpy(workspace + CUDA_WEIGHTS_AT, &counted, sizeof counted);
    else if (row->over_weights && !is_weights)
        find_weights(&row->total, counted);
}

/* The sum of what rows count for, which stays in the workspace, or of their terms, which may be divided by the former.
 */
static void sum_terms(const fake_launch *launch, int32_t over_weights) {
    const cuda_head *head = &launch->head;
    const void *counted;
    if ((size_t)head->count * real_size(launch) < sizeof counted)
        return;
    memcpy(&counted, head->data[CUDA_PREDICTION], sizeof counted);
    if (is_in_workspace(&head->total, head->total.value))
        memcpy(head->total.value, &counted, sizeof counted);
    else if (over_weights)
        find_weights(&head->total, counted);
}

static void use_total(const fake_launch *launch) {
    const cuda_terms *terms = &launch->terms;
    const char *from = (const char *)terms->total.workspace + terms->terms_at;
    const void *counted;
    if ((size_t)terms->count * real_size(launch) < sizeof counted)
        return;
    memcpy(&counted, from, sizeof counted);
    if (!terms->total.value)
        memcpy((char *)terms->total.workspace + CUDA_WEIGHTS_AT, &counted, sizeof counted);
    else if (terms->over_weights)
        find_weights(&terms->total, counted);
}

static void use_weights(const fake_launch *launch) {
    const cuda_head *head = &launch->head;
    const cuda_general *general = strstr(launch->kernel, "general") ? &launch->general : NULL;
    const cuda_weighted *weighted = strstr(launch->kernel, "weighted") ? &launch->weighted : NULL;
    const void *divisor = general ? general->divisor : weighted ? weighted->divisor : NULL; /* of the caller's */
    const int32_t over_weights = divisor ? 0 : general ? general->over_weights : weighted ? weighted->over_weights : 0;
    if (strstr(launch->kernel, "_divided_by") || strstr(launch->kernel, "_row_predicted") ||
        strstr(launch->kernel, "ed_mean") ||   /* which finds its weights itself */
        strstr(launch->kernel, "ed_backward")) /* which has been told */
        return;
    if (strstr(launch->kernel, "rows_total"))
        use_total(launch);
    else if (strstr(launch->kernel, "_row"))
        use_rows(launch, &launch->row);
    else if (strstr(launch->kernel, "weights") && is_in_workspace(&head->total, head->data[CUDA_PREDICTION]))
        sum_terms(launch, over_weights);
    else if (strstr(launch->kernel, "weights"))
        leave_weights(launch->kernel, head);
    else if (general && over_weights)
        find_weights(&head->total, general->weight ? general->weight : general->mask);
    else if (over_weights)
        find_weights(&head->total, weighted->weight ? weighted->weight : weighted->mask);
}

EXPORT cuda_result cuLaunchKernelEx(const cuda_config *config, cuda_function kernel, void **parameters, void **extra);
EXPORT cuda_result cuLaunchKernelEx(const cuda_config *config, cuda_function kernel, void **parameters, void **extra) {
    take_time();
    ENTER;
    NEED_CONTEXT;
    const cuda_stream stream = stream_of(config->stream);
    const unsigned *blocks = config->blocks, *threads = config->threads, shared_memory = config->shared_memory;
    NEED(kernel && kernel->module->alive && kernel->module->context == current(), INVALID_HANDLE);
    NEED(stream->alive && stream->context == current(), INVALID_HANDLE);
    NEED(stream->capture != CU_STREAM_CAPTURE_STATUS_INVALIDATED, CAPTURE_INVALIDATED);
    NEED(blocks[0] > 0 && blocks[1] == 1 && blocks[2] == 1 && threads[0] > 0 && threads[0] <= 1024 && threads[1] == 1 &&
             threads[2] == 1 &&
             shared_memory <= (kernel->most_shared_memory ? kernel->most_shared_memory : 48 * 1024) && !extra,
         ILLEGAL);
    NEED(config->attribute_count <= 1, ILLEGAL);
    NEED(config->attribute_count == 0 ||
             (config->attributes->which == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
              config->attributes->value.number == 1),
         ILLEGAL);
    fake_launch *launch = &the_fake.launch[the_fake.launches++ % FAKE_MOST_LAUNCHES];
    *launch = (fake_launch){.kernel = kernel->name,
                            .image = kernel->module->image,
                            .blocks = blocks[0],
                            .threads = threads[0],
                            .shared_memory = shared_memory,
                            .overlaps = config->attribute_count > 0,
                            .stream = stream->identity,
                            .context = current()->identity,
                            .captured = stream->capture == CU_STREAM_CAPTURE_STATUS_ACTIVE};
    /* Whatever it is, there is as much memory: the plan has room for every kind. */
    memcpy((char *)launch + offsetof(fake_launch, head), parameters[0], sizeof *launch - offsetof(fake_launch, head));
    if (!launch->captured)
        stream->launched++;
    if (!strstr(kernel->name, "_tiny_") && !strstr(kernel->name, "_few_tiles_") &&
        !strstr(kernel->name, "_weighted_backward") && !strstr(kernel->name, "_whole_") && launch->head.total.workspace)
        use_workspace(&launch->head, stream);
    use_weights(launch);
    if (!the_fake.busy)
        stream->done = stream->launched;
    return leave(CUDA_SUCCESS);
}

/* ----------------------------------------------------------------- control -- */

void fake_driver_add_streams(fake *fake) {
    fake->mode = mode;
    fake->set_mode = set_mode;
    fake->make_stream = make_stream;
    fake->destroy_stream = destroy_stream;
    fake->capture = capture;
    fake->capture_status = capture_status;
    fake->finish = finish;
}
