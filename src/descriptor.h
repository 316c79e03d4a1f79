/*
 * A loss as the library knows it: what users are told, and where each engine finds its code. Jobs point to one. The
 * losses of losses.def have theirs from descriptor.c; whoever brings another loss hands in one like them.
 */
#ifndef ONEPASS_DESCRIPTOR_H
#define ONEPASS_DESCRIPTOR_H

#include "internal.h"
#include "onepass.h"

#include <stdbool.h>

/* What a job computes. A loss is of one of the families for losses, which are the first. */
typedef enum family {
    FAMILY_PAIRWISE,   /* a loss whose every element has a value */
    FAMILY_ROWS,       /* a loss whose every row has one */
    FAMILY_VECTORS,    /* a loss whose every row has one, made of a few sums */
    FAMILY_SCALE,      /* gradients times an upstream gradient, in place */
    FAMILY_WEIGHTS,    /* the sum of the first operand where the mask, if there is one, says so */
    FAMILY_ROW_WEIGHTS /* the sum of what the rows of a loss over rows count for in a mean */
} family;

/* How a loss over rows looks at a row. */
typedef enum row_kind {
    ROW_LABEL,         /* a softmax of which the label's class is picked */
    ROW_PROBABILITIES, /* a softmax with a probability for each class */
    ROW_PICKED         /* the label's number alone */
} row_kind;

struct row_sums;
struct row_slopes;
typedef void row_function(const struct row_sums *row, const double *parameter, struct row_slopes *slopes);

struct vector_sums;
struct vector_slopes;
typedef void vector_function(const struct vector_sums *row, const double *parameter, struct vector_slopes *slopes);
typedef double vector_value_function(const struct vector_sums *row, const double *parameter);

/* The functions of a loss in one compute type, of src/cpu/strip.h, by the name of what they were compiled for; null
 * where the build has none. */
struct cpu_loss_f32;
struct cpu_loss_f64;
typedef struct cpu_losses {
    const struct cpu_loss_f32 *avx512_f32, *avx2_f32, *sse2_f32, *sve_f32, *neon_f32, *baseline_f32;
    const struct cpu_loss_f64 *avx512_f64, *avx2_f64, *sse2_f64, *sve_f64, *neon_f64, *baseline_f64;
} cpu_losses;

/* The same of a vector loss, of src/cpu/vectors.h. */
struct cpu_vector_f32;
struct cpu_vector_f64;
typedef struct cpu_vectors {
    const struct cpu_vector_f32 *avx512_f32, *avx2_f32, *sse2_f32, *sve_f32, *neon_f32, *baseline_f32;
    const struct cpu_vector_f64 *avx512_f64, *avx2_f64, *sse2_f64, *sve_f64, *neon_f64, *baseline_f64;
} cpu_vectors;

/* The kernels of a loss, as fat binaries; null where the build has none. */
typedef struct cuda_images {
    const unsigned char *f32, *f64;
} cuda_images;

typedef struct loss {
    onepass_loss_info info;
    enum family family;
    const struct cuda_images *cuda;
    struct cpu_losses cpu; /* of a pairwise loss */
    enum row_kind kind;    /* of a loss over rows, ... */
    row_function *row;     /* ... from a row's sums to its value and slopes */

    struct cpu_vectors cpu_vectors;          /* of a vector loss, ... */
    vector_function *vector;                 /* ... from a row's sums to its value and slopes, ... */
    vector_value_function *vector_value;     /* ... or to its value alone, ... */
    void (*vector_usual)(double *parameter); /* ... which sets parameters that choose as they usually are, ... */
    int32_t vectors;                         /* ... how many operands are vectors; one behind them is a number a row, */
    int32_t sums;                            /* ... how many sums are made of them, ... */
    bool has_softmaxes;                      /* ... whether they are logits, of which it wants probabilities, ... */
    bool has_labels;                         /* ... whether the number a row is the index of an element; class weights
                                                may then follow; ... */
    bool has_label_lists;                    /* ... whether there is an index an element instead, ... */
    bool is_long;                            /* ... and whether an element takes many operations */
} loss;

/* src/catalog.c: the loss of that name, or null. */
ONEPASS_INTERNAL const loss *onepass_find_loss(const char *name);

#endif
