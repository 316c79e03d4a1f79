/*
 * The oracle: what every result must be, bit for bit, by the slowest and most
 * obvious route; of losses over rows and of vectors, what it must be near. It shares no code with the library but the
 * public structs and the elementary functions of src/math/elementary.h. The tests in C are linked with it, and so is
 * the demo, with what it has of rows and vectors; those in Python load it as a shared library, by oracle.py.
 *
 * Its translation units must be compiled without contraction of a*b+c, and run
 * with round-to-nearest and denormals on: both are part of its meaning.
 */
#ifndef ONEPASS_TESTS_ORACLE_H
#define ONEPASS_TESTS_ORACLE_H

#include <stddef.h>
#include <stdint.h>

#include "onepass.h"

/* ------------------------------------------------------------ the types -- */

size_t oracle_size(int32_t dtype);
const char *oracle_dtype_name(int32_t dtype);

/* The bits of the element at `address`, and back. */
uint64_t oracle_load_bits(int32_t dtype, const void *address);
void oracle_store_bits(int32_t dtype, void *address, uint64_t bits);

/* Every value of the types is a double; that of a ONEPASS_BOOL is 0 or 1. A double rounds once, to nearest
 * even, and NaN becomes the canonical one. Integer arithmetic only, so that it
 * holds whatever the floating-point state. */
uint64_t oracle_double_bits(double value);
double oracle_double_from_bits(uint64_t bits);
double oracle_decode(int32_t dtype, uint64_t bits);
uint64_t oracle_encode(int32_t dtype, double value);

/* Numbers rounded in place. */
void oracle_round(int32_t dtype, double *number, int64_t count);

/* An element's number. */
double oracle_load(int32_t dtype, const void *address);
void oracle_store(int32_t dtype, void *address, double value);

/* ----------------------------------------------------------- the losses -- */

/* Writes the value and the slope in each operand. There are ORACLE_OPERANDS operands, those that the loss does not have
 * included. */
enum {
    ORACLE_OPERANDS = 3,
    ORACLE_PARTS = 1 + ORACLE_OPERANDS
};
typedef void oracle_formula_float(const float *operand, const float *k, float *result);
typedef void oracle_formula_double(const double *operand, const double *k, double *result);

/* The numbers that an operand is made for. */
typedef enum oracle_domain {
    ORACLE_ANY,
    ORACLE_POSITIVE,
    ORACLE_PROBABILITY, /* 0 to 1 */
    ORACLE_SIGN         /* -1 and 1 */
} oracle_domain;

typedef struct oracle_loss {
    const char *name;
    int operand_count;
    int parameter_count;
    oracle_domain domain[ORACLE_OPERANDS];
    const double *default_value; /* of each parameter */
    oracle_formula_float *in_float;
    oracle_formula_double *in_double;
} oracle_loss;

const oracle_loss *oracle_loss_at(int index); /* null beyond the last */
const oracle_loss *oracle_loss_named(const char *name);

/* All parameters: the given ones, and the defaults of the others. */
void oracle_parameters(const oracle_loss *loss, int count, const double *given, double all[ONEPASS_MAX_PARAMETERS]);

/* The term of one element as the library must compute it, in float or in double. `k` has all parameters. */
void oracle_term(const oracle_loss *loss, int in_float, const double operand[ORACLE_OPERANDS], const double *k,
                 double result[ORACLE_PARTS]);

/* ------------------------------------------------------------ the order -- */

/* The sum in the order that the index fixes: terms are added in float or in
 * double within a tile's lanes, in double from there on. */
double oracle_sum(const double *term, int64_t count, int in_float);

/* The same for `count` equal terms, in time that grows with log(count). */
double oracle_sum_of_equals(double term, int64_t count, int in_float);

/* The sum in twice double's precision, for judging accuracy. */
double oracle_exact_sum(const double *term, int64_t count);

/* ----------------------------------------------------------- a question -- */

/* What a loss gives for arrays of `count` numbers, which are of the compute type or a narrower one. */
typedef struct oracle_question {
    const char *loss;
    const double *parameter;
    int32_t parameter_count; /* the others have their defaults */
    int32_t reduction;       /* ONEPASS_MEAN ... */
    int32_t in_float;        /* or in double */
    int64_t count;
    double divisor; /* of a mean; 0: the sum of the weights, or of the ones, that the mask shows */
    const double *operand[ORACLE_OPERANDS];
    const double *weight;      /* null: none */
    const unsigned char *mask; /* null: none; else 0 hides an element */
    const double *upstream;    /* null: 1; else a number, or with ONEPASS_NONE one for each element */

    /* Null: not asked for. */
    double *value; /* a number, or with ONEPASS_NONE one for each element */
    double *gradient[ORACLE_OPERANDS];
} oracle_question;

/* The results are not yet rounded to the types of the outputs. The loss must be known. */
void oracle_answer(const oracle_question *question);

/* --------------------------------------------------- losses over rows -- */

/* What a loss over rows gives for `rows` times `classes` numbers, in twice double's precision and rounded to double at
 * the end: not to the bit what the library must give, but what it must be near. */
typedef struct oracle_rows {
    const char *loss;
    const double *parameter;
    int32_t parameter_count; /* the others have their defaults */
    int32_t reduction;       /* ONEPASS_MEAN, or _BATCHMEAN with the batch as the divisor, ... */
    int32_t over_elements;   /* a mean is divided by the number of rows that take part, though there are weights */
    int64_t rows;
    int64_t classes;
    double divisor; /* of a mean; 0: what the rows that take part count for */
    const double *input;
    const int64_t *label;       /* a class for each row, or ... */
    const double *probability;  /* ... a probability for each class of each row */
    const double *class_weight; /* null: 1 */
    const double *weight;       /* of rows; null: 1 */
    const unsigned char *mask;  /* null: none; else 0 hides a row */
    const double *upstream;     /* null: 1; else a number, or with ONEPASS_NONE one for each row */

    /* Null: not asked for. The sizes are sums of the magnitudes of the terms that a result is the sum of. */
    double *value; /* a number, or with ONEPASS_NONE one for each row */
    double *row_value;
    double *row_value_size;
    double *gradient[2]; /* for the input and the probabilities */
    double *gradient_size;
    double *log_sum_exp;
    int64_t *predicted;
    double *divided_by;
} oracle_rows;

/* Returns -1, or the first row that takes part and whose label is no class; nothing is written then. The loss must be
 * known. */
int64_t oracle_answer_rows(const oracle_rows *question);

/* What a row's value, or a slope, may be off beyond 4 units in the last place of the sizes where all is computed in
 * double, and what a loss makes of its row's sums is rounded as the rest is. */
double oracle_units_of_row(const oracle_rows *question, int of_slope);

/* ------------------------------------------------------ vector losses -- */

/* What a loss of vectors gives for `rows` rows of `elements` numbers: the least and the largest number that a result
 * may be, by the rounding errors that computing in double can have at most. Float results are nearly always one number.
 */
typedef struct oracle_range {
    double least, most;
} oracle_range;

typedef struct oracle_vectors {
    const char *loss;
    const double *parameter;
    int32_t parameter_count; /* the others have their defaults */
    int32_t reduction;       /* ONEPASS_MEAN, or _BATCHMEAN with the batch as the divisor, ... */
    int32_t over_elements;   /* a mean is divided by the number of rows that take part, though there are weights */
    int32_t in_float;        /* the compute type */
    int64_t rows;
    int64_t elements;
    double divisor;                         /* of a mean; 0: what the rows that take part count for */
    const double *operand[ORACLE_OPERANDS]; /* a number for each element; a target: each row; class weights, or null:
                                               each element of a row */
    const double *weight;                   /* of rows; null: 1 */
    const unsigned char *mask;              /* null: none; else 0 hides a row */
    const double *upstream;                 /* null: 1; else a number, or with ONEPASS_NONE one for each row */

    /* Null: not asked for. Not yet rounded to the outputs' types. */
    oracle_range *value;                     /* one, or with ONEPASS_NONE one for each row */
    oracle_range *gradient[ORACLE_OPERANDS]; /* each operand's, at the common shape */
    double *exact_value;                     /* of each row, its weight included */
    double *exact_slope[ORACLE_OPERANDS];    /* of each row's value, its weight included */
    unsigned char *at_kink;                  /* of each row: rounding decides which side's slopes it has */
    double *divided_by;
} oracle_vectors;

/* The loss must be known. */
void oracle_answer_vectors(const oracle_vectors *question);

/* Whether there is such a loss, and how many of its operands are vectors. */
int oracle_vector_operands(const char *loss);

/* -------------------------------------------------------------- a call -- */

/* Element `index`, in row-major order of the shape, as an offset into a tensor
 * that is broadcast to the shape. */
int64_t oracle_offset(const onepass_tensor *tensor, int32_t ndim, const int64_t *shape, int64_t index);

/* The operands' common shape; returns the number of its elements. */
int64_t oracle_common_shape(const onepass_call *call, int32_t *ndim, int64_t shape[ONEPASS_MAX_DIMENSIONS]);

/* Does what the call describes; the call must be in order. */
void oracle_run(const onepass_call *call);

#endif
