/*
 * What a job over rows says about all of its rows, and about one of them: where its numbers lie, whether it takes part,
 * and what it counts for.
 */
#ifndef ONEPASS_CPU_ROWS_JOB_H
#define ONEPASS_CPU_ROWS_JOB_H

#include "cpu/row_numbers.h"
#include "math/row.h"

/* What is the same for all rows of a job. */
typedef struct rows {
    const job *job;
    const row_job *of;
    softmax softmax;
    real kept, share; /* u_c = w_c (kept q_c + share): of smoothed probabilities */
    bool has_labels;  /* and not probabilities */
    bool weighs;      /* the value needs the sums of u_c, and the slopes need u_c */
    bool reads_state; /* which was computed before */
    bool has_gradient;
    bool keeps;         /* exponentials, where the logits' gradient will be: it need not compute them anew */
    bool has_outputs;   /* numbers of each row */
    bool are_far;       /* logits, so that they are asked for as prefetch_far() has it */
    double per_divisor; /* one over the divisor */
} rows;

/* A row that the second-level cache has when it comes to be multiplied. */
#define MOST_KEPT ((int64_t)131072)

static bool keeps_exponentials(const job *job) {
    const row_job *rows = &job->rows;
    const bool has_softmax = job->loss->kind == ROW_LABEL || job->loss->kind == ROW_PROBABILITIES;
    return job->gradient[0].data && job->gradient[0].dtype == REAL_DTYPE && rows->gradient_stride[0] == 1 &&
           !job->in_place[0] && !job->gradient[1].data && rows->classes <= MOST_KEPT && rows->scale.softcap == 0 &&
           rows->shard.step == SHARD_NONE && has_softmax && !(rows->reads_state && rows->state);
}

/* Of logits that no cache is likely to have, those that are asked for two tiles ahead come to the second-level cache:
 * values of 1024 x 32000 floats took up to a seventh longer on a Xeon otherwise, and those of 32 MiB and less up to a
 * twelfth less. */
#define MOST_NEAR_BYTES ((double)(32 << 20))

static bool are_far(const job *job) {
    const double numbers = (double)job->count * (double)job->rows.classes;
    return numbers * (double)dtype_size(job->operand[0].dtype) > MOST_NEAR_BYTES;
}

static rows rows_of(const job *job) {
    const bool has_labels = job->loss->kind != ROW_PROBABILITIES;
    return (rows){.job = job,
                  .of = &job->rows,
                  .softmax = softmax_of(&job->rows.scale),
                  .kept = (real)(1 - job->rows.smoothing),
                  .share = (real)(job->rows.smoothing / (double)job->rows.shard.all_classes),
                  .has_labels = has_labels,
                  .weighs = !has_labels || job->rows.smoothing != 0,
                  .reads_state = job->rows.reads_state && job->rows.state,
                  .has_gradient = job->gradient[0].data || job->gradient[1].data,
                  .keeps = keeps_exponentials(job),
                  .has_outputs = job->reduction == ONEPASS_NONE || job->rows.log_sum_exp.data || job->rows.state,
                  .are_far = are_far(job),
                  .per_divisor = job->reduction == ONEPASS_MEAN ? 1 / job->divisor : 1};
}

/* ------------------------------------------------------------------ a row -- */

static int64_t index_of(const job *job, int64_t row) {
    return load_index(address_of(&job->operand[1], row), job->operand[1].dtype, 0);
}

/* Counted from the first class that is here. */
static int64_t label_of(const job *job, int64_t row) {
    return index_of(job, row) - job->rows.shard.first_class;
}

/* Whether a row counts at all. */
static bool takes_part(const rows *rows, int64_t row) {
    const job *job = rows->job;
    return element_of(&job->mask, row, 1) != 0 && !(rows->has_labels && index_of(job, row) == rows->of->ignore_index);
}

static double class_weight_of(const job *job, int64_t label) {
    const view *weight = &job->operand[2];
    const int64_t size = (int64_t)dtype_size(weight->dtype);
    return weight->data
               ? load_scalar((const char *)weight->data + label * job->rows.class_stride[2] * size, weight->dtype)
               : 1;
}

/* ---------------------------------------------------------------- outputs -- */

/* The numbers that come with a row's value, of the row's state; those of a row that takes no part are 0. */
static void write_outputs(const rows *rows, int64_t row, double value, const softmax_row *state) {
    const row_job *of = rows->of;
    if (rows->job->reduction == ONEPASS_NONE)
        write_number(&rows->job->value, row, value);
    write_number(&of->log_sum_exp, row, state->lse);
    const double number[] = {state->largest, state->others, state->own, state->lse, state->weights};
    for (int i = 0; of->state && !rows->reads_state && i < ONEPASS_ROW_STATE; i++) /* a NaN has one face */
        store_scalar(of->state + row * ONEPASS_ROW_STATE + i, ONEPASS_F64, number[i]);
}

static void write_predicted(const rows *rows, int64_t row, int64_t class) {
    if (rows->of->predicted.data)
        *(int64_t *)address_of(&rows->of->predicted, row) = class;
}

static softmax_row no_softmax(void) {
    return (softmax_row){WIDE_NAN, WIDE_NAN, WIDE_NAN, WIDE_NAN, WIDE_NAN};
}

#endif
