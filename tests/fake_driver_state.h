/*
 * What the parts of the fake driver share: what exists (fake_driver.c), what runs (fake_driver_work.c), and how each of
 * the driver's functions begins and ends.
 */
#ifndef ONEPASS_TESTS_FAKE_DRIVER_STATE_H
#define ONEPASS_TESTS_FAKE_DRIVER_STATE_H

#include "fake_driver.h"

#include <pthread.h>

#define EXPORT __attribute__((visibility("default")))

/* ---------------------------------------------------------------- things -- */

enum {
    FIRST_GPU = 40, /* a device is not its index */
    MOST_CONTEXTS = 32,
    MOST_STREAMS = 4096,
    MOST_EVENTS = 4096,
    MOST_MODULES = 128,
    MOST_MEMORY = 8192,
    MOST_DEPTH = 16,
    MOST_KERNELS = 64,
    ILLEGAL = 1,
    NOT_INITIALIZED = 3,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901
};

/* Places are used again as soon as they are free, so that handles are too; identities are not. */
struct CUctx_st {
    bool alive, is_primary;
    int32_t gpu;
    unsigned long long identity, null_stream;
};

struct CUstream_st {
    bool alive, is_library, non_blocking;
    int32_t capture;
    cuda_context context;
    unsigned long long identity;
    long launched, done; /* launches, by their number on this stream */
};

struct CUevent_st {
    bool alive;
    cuda_context context;
    cuda_stream stream;
    unsigned long long identity; /* of the stream, whose place may have another tenant by now */
    long launch;
};

struct CUfunc_st {
    cuda_module module;
    char name[64];
    uint32_t most_shared_memory; /* that it was given; 0: as much as any has */
};

struct CUmod_st {
    bool alive;
    cuda_context context;
    char image[64]; /* the unit and the compute type: "mse f32" */
    int32_t kernels;
    struct CUfunc_st kernel[MOST_KERNELS];
    cuda_pointer workspace; /* a variable of the module; 0: nobody has asked for it yet */
};

typedef struct memory {
    unsigned char *data;
    size_t size;
    fake_memory kind;
    int32_t gpu;
    bool is_library;
    cuda_context context;
    /* The last launch that had it for a workspace. */
    cuda_stream user;
    unsigned long long user_identity;
    long launch;
} memory;

extern struct CUctx_st contexts[MOST_CONTEXTS];
extern struct CUstream_st streams[MOST_STREAMS];
extern struct CUevent_st events[MOST_EVENTS];
extern struct CUstream_st null_streams[MOST_CONTEXTS]; /* a context's default stream, by the context's place */
extern unsigned long long last_identity;
extern _Thread_local int32_t capture_mode;

extern fake the_fake;
extern pthread_mutex_t lock;

void violate(const char *how);
cuda_context current(void);
struct CUstream_st *stream_of(cuda_stream stream);
memory *memory_at(cuda_pointer pointer);

/* Fills in what a test may do with streams. */
void fake_driver_add_streams(fake *fake);

/* ------------------------------------------------------------- functions -- */

/* Every function of the driver begins with this: it is counted, and perhaps it fails. */
bool enter(const char *function, cuda_result *result);
cuda_result leave(cuda_result result);

#define ENTER                                                                                                          \
    cuda_result result;                                                                                                \
    if (!enter(__func__, &result))                                                                                     \
    return leave(result)

/* Returns an error unless something holds. */
#define NEED(condition, error)                                                                                         \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            return leave(error);                                                                                       \
    } while (0)

/* Not under the lock: others come in between. */
void take_time(void);

#define NEED_CONTEXT NEED(current() && current()->alive, INVALID_CONTEXT)

/* What a driver refuses while anybody captures, unless the thread's mode is relaxed; and then the capture is spoiled.
 */
bool is_prohibited(void);

#define NEED_NO_CAPTURE NEED(!is_prohibited(), CAPTURE_UNSUPPORTED)

#endif
