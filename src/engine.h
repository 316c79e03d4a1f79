/*
 * What stands between the public call and the engines: a job, which is a call
 * that has been checked and planned, and the table of entries that an engine fills.
 */
#ifndef ONEPASS_ENGINE_H
#define ONEPASS_ENGINE_H

#include "descriptor.h"
#include "onepass.h"

#include <stdbool.h>
#include <stdint.h>

/* Functions that the library's files share with each other but not with users. */
#define ONEPASS_INTERNAL __attribute__((visibility("hidden")))

/*
 * A tensor at the common shape, as an engine walks it: element i in row-major
 * order of that shape is found by this view's own dimensions, which are as few as
 * the strides allow. A dense tensor has one, whatever the call's shape; a row that
 * is shared by all rows has two, the outer with stride 0.
 */
typedef struct view {
    void *data; /* null: absent */
    int32_t dtype;
    int32_t ndim; /* at least 1 */
    int64_t shape[ONEPASS_MAX_DIMENSIONS];
    int64_t stride[ONEPASS_MAX_DIMENSIONS]; /* in elements */
} view;

/* A loss of this version has so many operands at most; the header has room for more. */
#define MOST_OPERANDS 3

typedef struct job {
    enum family family;
    const struct loss *loss; /* null in the families that have none */
    int32_t operand_count;
    double parameter[ONEPASS_MAX_PARAMETERS];
    int32_t reduction;
    int32_t compute; /* ONEPASS_F32 or ONEPASS_F64 */

    /* The elements: `count` of the common shape, from `first` on. Tiles are counted from `first`. */
    int64_t first;
    int64_t count;

    view operand[ONEPASS_MAX_OPERANDS];
    view weight;
    view mask;
    view upstream; /* one element for mean and sum */
    view value;    /* one element for mean and sum */
    view gradient[ONEPASS_MAX_OPERANDS];
    bool in_place[ONEPASS_MAX_OPERANDS]; /* the gradient lies over its operand */

    bool skip_if_one;   /* nothing is done where the upstream gradient is 1 */
    double divisor;     /* of a mean, unless ... */
    bool over_weights;  /* ... it is the sum of the weights, or the number of elements that the mask leaves, computed
                           first */
    bool over_elements; /* that number, though there are weights */
    double *sum;        /* if not null: the plain sum goes here as well */
    int32_t threads;

    /* For a GPU. */
    int32_t device_index;
    void *stream;
    void *workspace; /* the caller's; null: the library's own */
    size_t workspace_size;
} job;

/* `run` is called in the state of src/float_state.h, which the public functions enter; an engine's own threads enter it
 * themselves. */
typedef struct engine {
    const char *name;
    onepass_status (*run)(const job *job);
    onepass_status (*prepare)(int32_t device_index);
} engine;

/* src/check.c: a caller's call, whose size may be another than ours. Nobody else looks at it. */
ONEPASS_INTERNAL onepass_status onepass_read_call(const onepass_call *given, onepass_call *call);

/* Checks a call that was read, and plans it. `job` is complete only if the status is ONEPASS_OK. */
ONEPASS_INTERNAL onepass_status onepass_plan(const onepass_call *call, job *job);

/* ... and the parts of it that an accumulator needs on its own. */
ONEPASS_INTERNAL onepass_status onepass_plan_loss(const onepass_call *call, job *job);
ONEPASS_INTERNAL onepass_status onepass_plan_scalar(const onepass_tensor *tensor, const char *name, view *view);

/* The job that adds up the weights of a job, or counts the elements that its mask leaves. Its sum is the caller's to
 * ask for. */
ONEPASS_INTERNAL void onepass_plan_weights(const job *weighted, job *weights);

/* The same as onepass_plan for a call of onepass_scale. */
ONEPASS_INTERNAL onepass_status onepass_plan_scale(const onepass_call *call, job *job);

/* Whether there can be such a device at all; that it is there is the engine's to say. */
ONEPASS_INTERNAL onepass_status onepass_check_device(int32_t device, int32_t device_index);

/* What messages call the tensors of a job. */
ONEPASS_INTERNAL const char *onepass_operand_name(const job *job, int32_t k);
ONEPASS_INTERNAL extern const char *const onepass_gradient_name[ONEPASS_MAX_OPERANDS];

/* src/catalog.c: the loss of that name, or null. */
ONEPASS_INTERNAL const loss *onepass_find_loss(const char *name);

/* ... and the place in losses.def of a loss that is there. */
ONEPASS_INTERNAL int32_t onepass_loss_index(const loss *loss);

/* src/message.c: sets the calling thread's message and returns the status. */
ONEPASS_INTERNAL onepass_status onepass_fail(onepass_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
ONEPASS_INTERNAL onepass_status onepass_succeed(void);

/* src/cpu/engine.c */
ONEPASS_INTERNAL extern const engine onepass_cpu_engine;
ONEPASS_INTERNAL onepass_status onepass_cpu_describe(onepass_machine_info *info);

/* ... and the value of a whole whose sum is known. */
ONEPASS_INTERNAL void onepass_cpu_finish(const view *value, double sum, int32_t reduction, double divisor);

/* src/cuda/engine.c */
ONEPASS_INTERNAL extern const engine onepass_cuda_engine;
ONEPASS_INTERNAL void onepass_cuda_describe(onepass_machine_info *info);

#endif
