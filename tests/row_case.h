/*
 * The cases of losses over rows: what is computed, of which numbers, types, shapes and strides; and a case made ready,
 * with memory for every tensor, guard bytes around it, and the same numbers as plain arrays for the oracle. One list
 * serves correctness, bits that must not change and speedups that must not show.
 */
#ifndef ONEPASS_TESTS_ROW_CASE_H
#define ONEPASS_TESTS_ROW_CASE_H

#include "case_tensor.h"

/* Where the classes are, and how the rows lie. */
typedef enum row_layout {
    ROWS_DENSE,         /* (rows, classes) */
    ROWS_TRANSPOSED,    /* the same, rows side by side */
    ROWS_STRIDED,       /* the same, with gaps between classes and rows */
    ROWS_REVERSED,      /* the same, strides negative */
    ROWS_REPEATED,      /* the same, one row again and again: stride 0 */
    ROWS_EVEN,          /* the same, one class again and again: stride 0 */
    ROWS_IMAGE,         /* (batch, classes, points) */
    ROWS_CHANNELS_LAST, /* the same, in memory (batch, points, classes) */
    ROWS_CLASSES_FIRST, /* (classes, batch, points), axis 1 */
    ROWS_CLASSES_LAST,  /* (batch, points, classes), axis -1 */
    ROWS_VECTOR,        /* (classes) */
    ROW_LAYOUTS
} row_layout;

typedef enum row_data {
    ROWS_NORMAL,    /* logits around 0 */
    ROWS_OFFSET,    /* the same with a large number added to all, another one in each row */
    ROWS_CONFIDENT, /* the label leads by 5 to 80 */
    ROWS_WRONG,     /* the label is 5 to 100 below the others */
    ROWS_SPREAD,    /* logits from -80 to 80 */
    ROW_DATA,
    ROWS_ABSURD = ROW_DATA, /* far larger ones, and -inf */
    ROWS_FAR,               /* the second tile is some 700 below the others, and a label there 30 more */
    ROWS_ONE_HOT            /* one class leads by 5 to 80, in some rows two do; its probability is 1, others' are 0 */
} row_data;

typedef struct row_case {
    const char *group;
    const char *loss;
    int32_t input, target;                  /* types; the target's is that of labels or probabilities */
    int32_t class_weight, weight, upstream; /* types; 0: none */
    int32_t value, gradient;                /* types; 0: not wanted */
    int32_t target_gradient;                /* the same */
    int32_t log_sum_exp;                    /* the same */
    bool mask, in_place, predicted, state, divided_by;
    int32_t reduction, flags, threads;
    double divisor;
    int32_t divisor_tensor; /* a type: the divisor is a tensor of it */
    bool ignored;           /* some labels are ignore_index */
    int32_t parameter_count;
    double parameter[ONEPASS_MAX_PARAMETERS];
    int64_t batch, points, classes; /* rows = batch * points; points 0 is 1 */
    row_layout layout;
    row_data data;
    uint64_t seed;
} row_case;

typedef struct prepared_rows {
    row_case of;
    int64_t rows;
    onepass_call call;
    case_tensor input, target, class_weight, weight, mask, upstream, divisor;
    case_tensor value, gradient[2], log_sum_exp, predicted, state, divided_by;
    oracle_rows question; /* with the numbers of the inputs; nothing is asked for yet */
    void *kept[8];        /* which the question points to */
} prepared_rows;

/* All cases. Those of a loss are together, and in them those of a group. */
const row_case *row_case_list(size_t *count);

/* The number of rows, and whether computing is in double. */
int64_t row_case_rows(const row_case *c);
bool row_case_in_double(const row_case *c);
bool row_case_has_labels(const char *loss);
void row_case_describe(const row_case *c, char *text, size_t size);

prepared_rows *row_case_prepare(const row_case *c);
void row_case_free(prepared_rows *prepared);

/* Makes the outputs' memory what it was before any call. In place of a gradient over its operand the operand's numbers
 * come back. */
void row_case_poison(prepared_rows *prepared);

/* Whether nothing but elements of the outputs was written, or nothing at all. */
bool row_case_kept_fences(const prepared_rows *prepared);
bool row_case_is_untouched(const prepared_rows *prepared);

/* An element. */
void *row_address(const case_tensor *of, int64_t row, int64_t c);
double row_number(const case_tensor *of, int64_t row, int64_t c);

/* 64-bit FNV-1a over the bits of all outputs, row by row. The rows' state, which is for the library alone, is no part.
 */
uint64_t row_case_hash(uint64_t hash, const prepared_rows *prepared);

#endif
