/*
 * Losses over rows as src/math has them, summed literally in the order of src/order.h: every row by itself, every tile
 * as 1024 terms of which the missing ones are +0. What a schedule leaves out, reorders or computes side by side must
 * not show in the bits. The mathematics is the library's own; other tests ask whether it is right.
 */
#ifndef ONEPASS_TESTS_ROWS_MODEL_H
#define ONEPASS_TESTS_ROWS_MODEL_H

#include "onepass.h"

#include <stdbool.h>

typedef struct rows_model {
    const char *loss;
    double parameter[ONEPASS_MAX_PARAMETERS];
    double smoothing, softcap, temperature;
    int64_t rows, classes, ignore_index;
    int reduction;
    bool over_elements;
    double divisor; /* of a mean; 0: of the rows that take part */

    /* Exact in the types that the tensors have. Null: absent. */
    const double *input;         /* [rows][classes] */
    const double *probabilities; /* [rows][classes] */
    const int64_t *label;        /* [rows] */
    const double *class_weight;  /* [classes] */
    const double *weight, *mask; /* [rows] */
    const double *upstream;      /* [rows] for none, else one */

    /* Results, but for the last rounding to the type of a tensor. */
    double value;      /* of a mean or a sum */
    double *values;    /* [rows], of none */
    double *gradient;  /* [rows][classes] */
    double *of_target; /* [rows][classes], of probabilities */
    double *log_sum_exp;
    double *state; /* [rows][ONEPASS_ROW_STATE]; as zeros of rows that take no part */
    int64_t *predicted;
} rows_model;

void rows_model_f32(rows_model *model);
void rows_model_f64(rows_model *model);

#endif
