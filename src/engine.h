/*
 * What stands between the public call and the engines: a job, which is a call
 * that has been checked and planned, and the table of entries that an engine fills.
 */
#ifndef ONEPASS_ENGINE_H
#define ONEPASS_ENGINE_H

#include "descriptor.h"
#include "internal.h"
#include "row_scale.h"
#include "view.h"

#include <stdbool.h>

/* A loss of this version has so many operands at most; the header has room for more. */
#define MOST_OPERANDS 3

/* What a call does of a row whose classes are shared out. */
typedef enum shard_step {
    SHARD_NONE,   /* they are not: it has them all */
    SHARD_SUMS,   /* the sums of its tiles are written */
    SHARD_VALUE,  /* those of all tiles are joined; there are no classes */
    SHARD_SLOPES, /* gradients come of a row's state */
} shard_step;

typedef struct row_shard {
    shard_step step;
    int64_t first_class, all_classes; /* 0, and the number of classes, where they are not shared out */
    double *tile_sums;                /* or null, where tiles of gradients are whole */
    int64_t row_step, sum_step;       /* from row to row of them, and from one number of a tile to the next */
    int64_t sums_of_tile;             /* how many numbers */
    double *label_logit;
} row_shard;

/* What a loss over rows has beyond other losses. Its views are over rows: each leads to the row's first class. */
typedef struct row_job {
    int32_t axis;
    int64_t classes;
    int64_t class_stride[ONEPASS_MAX_OPERANDS];    /* from class to class of an operand, in elements */
    int64_t gradient_stride[ONEPASS_MAX_OPERANDS]; /* and of its gradient */
    int64_t ignore_index;
    double smoothing;
    softmax_scale scale;
    view log_sum_exp, predicted; /* outputs; absent if their data are null */
    double *state;               /* ONEPASS_ROW_STATE numbers a row, or null */
    bool reads_state;            /* they are an input */
    row_shard shard;             /* where there are class weights, they begin with those of its own classes */
} row_job;

/* And what a vector loss has. Views of its operands that are vectors, and of their gradients, are over all elements,
 * row by row. */
typedef struct vector_job {
    int64_t length;      /* elements of a vector */
    softmax_scale scale; /* of a loss with softmaxes */
} vector_job;

typedef struct job {
    enum family family;
    const struct loss *loss; /* null in the families that have none */
    int32_t operand_count;
    double parameter[ONEPASS_MAX_PARAMETERS];
    int32_t reduction;
    int32_t compute; /* ONEPASS_F32 or ONEPASS_F64 */

    /* The elements: `count` of the common shape, from `first` on. Tiles are counted from `first`. On a GPU views of one
     * dimension begin there, and those of several are told. */
    int64_t first;
    int64_t count;

    view operand[ONEPASS_MAX_OPERANDS];
    view weight;
    view mask;
    view upstream; /* one element for mean and sum */
    view value;    /* one element for mean and sum */
    view gradient[ONEPASS_MAX_OPERANDS];
    bool in_place[ONEPASS_MAX_OPERANDS]; /* the gradient lies over its operand */

    double expected_upstream; /* what the upstream gradient is where there is none: 1, unless a loss is over rows */
    bool skip_if_one;         /* nothing is done where the upstream gradient is what is expected */
    double divisor;           /* of a mean, unless ... */
    bool over_weights;   /* ... it is the sum of the weights, or the number of elements that the mask leaves, computed
                            first */
    bool over_elements;  /* that number, though there are weights */
    view divisor_tensor; /* what a mean is divided by, if its data are not null; one element */
    view divided_by;     /* an output: what a mean was divided by; one element */
    double *sum;         /* if not null: the plain sum goes here as well; on a GPU it is the value, in its place */
    void *terms;         /* if not null: of fewer elements than a tile, with a sum, the terms stay here, in the compute
                            type; a tile of them, which ends with +0. On a GPU the terms of rows stay in the workspace,
                            and nobody adds them up */
    int32_t threads;
    row_job rows;       /* of a loss over rows */
    vector_job vectors; /* of a vector loss */

    /* For a GPU. */
    int32_t device_index;
    void *stream;
    void *workspace; /* the caller's; null: the library's own */
    size_t workspace_size;
} job;

/* What messages call the tensors of a job. */
static inline const char *onepass_operand_name(const job *job, int32_t k) {
    return job->loss ? job->loss->info.operand[k] : "weight";
}
static inline const char *onepass_gradient_name(const job *job, int32_t k) {
    static const char *const of_vectors[] = {"gradient[0]", "gradient[1]", "gradient[2]", "gradient[3]"};
    static const char *const names[] = {"gradient[0] (for the prediction)", "gradient[1] (for the target)",
                                        "gradient[2]", "gradient[3]"};
    return (job->family == FAMILY_VECTORS ? of_vectors : names)[k];
}

/* What becomes of a sum, in double; it is rounded once, to the type of the value. */
static inline double onepass_reduced(int32_t reduction, double sum, double divisor) {
    return reduction == ONEPASS_MEAN ? sum / divisor : sum;
}

/* src/plan/weights.c: the job that adds up the weights of a job, or counts the elements that its mask leaves. Its sum
 * is the caller's to ask for. */
ONEPASS_INTERNAL void onepass_plan_weights(const job *weighted, job *weights);

/* `run` is called in the state of src/float_state.h, which the public functions enter; an engine's own threads enter it
 * themselves. `describe` fills in what the engine knows. */
typedef struct engine {
    const char *name;
    onepass_status (*run)(const job *job);
    onepass_status (*prepare)(int32_t device_index);
    onepass_status (*describe)(onepass_machine_info *info);
} engine;

ONEPASS_INTERNAL extern const engine onepass_cpu_engine;  /* src/cpu/engine.c */
ONEPASS_INTERNAL extern const engine onepass_cuda_engine; /* src/cuda/engine.c */

/* src/cpu/engine.c: every class index that the CPU will look at is that of a class. The message counts the rows that
 * come before those of the job, of a whole that arrives in slices. */
ONEPASS_INTERNAL onepass_status onepass_check_labels(const job *job, int64_t rows_before);

static inline const engine *onepass_engine(int32_t device) {
    return device == ONEPASS_CUDA ? &onepass_cuda_engine : &onepass_cpu_engine;
}

#endif
