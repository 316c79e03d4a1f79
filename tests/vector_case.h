/*
 * The cases of vector losses: what is computed, of which numbers, types, shapes and strides; and a case made ready,
 * with memory for every tensor, guard bytes around it, and the same numbers as plain arrays for the oracle. One list
 * serves correctness, bits that must not change and speedups that must not show.
 */
#ifndef ONEPASS_TESTS_VECTOR_CASE_H
#define ONEPASS_TESTS_VECTOR_CASE_H

#include "case_tensor.h"

/* The common shape and the axis, and how the operands lie. */
typedef enum vector_layout {
    VECTORS_DENSE,      /* (rows, elements) */
    VECTORS_TRANSPOSED, /* the same, rows side by side; axis -1 */
    VECTORS_STRIDED,    /* the same, with gaps between elements and rows; axis 2 */
    VECTORS_REVERSED,   /* the same, strides negative */
    VECTORS_MIXED,      /* the same, each tensor in another one of these orders */
    VECTORS_REPEATED,   /* the same, the first operand one row again and again: stride 0 */
    VECTORS_ONE_ROW,    /* the same, the second operand (elements) */
    VECTORS_ONE_COLUMN, /* the same, the second operand (rows, 1) */
    VECTORS_OUTER,      /* (batch, 1, elements) with (points, elements): every pair */
    VECTORS_BLOCKS,     /* (batch, points, height, width), axis 3 */
    VECTORS_TURNED,     /* the same, axis -2, in memory (batch, points, width, height) */
    VECTORS_SCATTERED,  /* the same, in memory (height, batch, width, points): no two dimensions are one */
    VECTORS_ALL,        /* (height, width), axis 1: one row */
    VECTORS_VECTOR,     /* (elements) */
    VECTOR_LAYOUTS
} vector_layout;

typedef enum vector_data {
    VECTORS_NORMAL, /* around 0; probabilities of targets that are 0 or 1, or between; logits */
    VECTORS_NEAR,   /* operands that differ little */
    VECTORS_EQUAL,  /* that do not */
    VECTORS_ZERO,   /* some rows of zeros, in one operand or all */
    VECTORS_HUGE,   /* whose squares overflow the type */
    VECTORS_TINY,   /* whose squares underflow it, and denormal ones */
    VECTOR_DATA,
    VECTORS_FAR = VECTOR_DATA, /* logits from here on: large ones, with offsets that the rows have in common or not */
    VECTORS_LEADING,           /* rows whose first or last element leads by 80, or by more than exponentials hold */
    VECTORS_IMPOSSIBLE         /* -inf in the target, in both, or, where the loss is finite, in the input */
} vector_data;

typedef struct vector_case {
    const char *group;
    const char *loss;
    int32_t operand[ORACLE_OPERANDS];  /* types */
    int32_t gradient[ORACLE_OPERANDS]; /* types; 0: not wanted */
    int32_t value, weight, upstream;   /* the same; 0: none */
    int32_t class_weight;              /* the same, of a loss with labels, ... */
    int64_t class_stride;              /* ... and the step from class to class; 0: 1 */
    bool mask, in_place, divided_by;
    int32_t reduction, flags, threads;
    double divisor;
    int32_t divisor_tensor; /* a type: the divisor is a tensor of it */
    int32_t parameter_count;
    double parameter[ONEPASS_MAX_PARAMETERS];
    int64_t batch, points, elements, width; /* rows = batch * points; points and width 0 are 1 */
    vector_layout layout;
    vector_data data;
    uint64_t seed;
} vector_case;

typedef struct prepared_vectors {
    vector_case of;
    int64_t rows;
    int32_t ndim, row_dimensions; /* of the common shape */
    int64_t shape[CASE_DIMENSIONS];
    onepass_call call;
    case_tensor operand[ORACLE_OPERANDS], weight, mask, upstream, divisor;
    case_tensor value, gradient[ORACLE_OPERANDS], divided_by;
    oracle_vectors question; /* with the numbers of the inputs; nothing is asked for yet */
    void *kept[6];           /* which the question points to */
} prepared_vectors;

/* All cases. Those of a loss are together, and in them those of a group. */
const vector_case *vector_case_list(size_t *count);

int64_t vector_case_rows(const vector_case *c);

/* Whether both operands are logits, of distributions over a row. */
bool vector_loss_compares_softmaxes(const char *loss);

/* Whether the last operand has a class index for each row, which names one of its elements. */
bool vector_loss_has_labels(const char *loss);

/* Whether it has a list of them for each row, as long as the row, of which those before the first -1 count. */
bool vector_loss_has_label_lists(const char *loss);

/* Whether computing is in double, in which the numbers of rows have no say. */
bool vector_case_in_double(const vector_case *c);
void vector_case_describe(const vector_case *c, char *text, size_t size);

/* Whether no two elements of an operand are one in memory. */
bool vector_case_is_apart(const vector_case *c, int operand);

prepared_vectors *vector_case_prepare(const vector_case *c);
void vector_case_free(prepared_vectors *prepared);

/* Makes the outputs' memory what it was before any call. In place of a gradient over its operand the operand's numbers
 * come back. */
void vector_case_poison(prepared_vectors *prepared);

/* Whether nothing but elements of the outputs was written. */
bool vector_case_kept_fences(const prepared_vectors *prepared);

/* An element. */
void *vector_address(const prepared_vectors *prepared, const case_tensor *of, int64_t row, int64_t element);
double vector_number(const prepared_vectors *prepared, const case_tensor *of, int64_t row, int64_t element);

/* The tensors that have memory of their own, inputs first; null beyond the last. */
case_tensor *vector_case_tensor(prepared_vectors *prepared, int index);

/* Lets the call point into copies of the tensors' memory, each where it lies in the tensors' own: whoever runs a case
 * elsewhere copies them there and back. */
void vector_case_point(prepared_vectors *prepared, int index, unsigned char *copy);

/* A hash of the bits of all outputs, row by row: FNV-1a's step for each element, and a shift, since its product carries
 * upwards alone. */
uint64_t vector_case_hash(uint64_t hash, const prepared_vectors *prepared);

#endif
