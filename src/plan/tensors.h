/*
 * The tensors of a call, checked one by one. loss.c plans what every loss has; what operands and gradients there are
 * and how they lie is a family's to say.
 */
#ifndef ONEPASS_PLAN_TENSORS_H
#define ONEPASS_PLAN_TENSORS_H

#include "engine.h"
#include "tensor.h"

/* The workspace is none of them, but has a place in memory like them. An absent tensor spans nothing. */
typedef struct tensors {
    tensor operand[ONEPASS_MAX_OPERANDS];
    tensor weight, mask, upstream, divisor;
    tensor value, divided_by, log_sum_exp, predicted, row_state, tile_sums, label_logit;
    tensor gradient[ONEPASS_MAX_OPERANDS];
    tensor workspace;
    onepass_shape common;   /* of the elements, or of the rows */
    onepass_shape elements; /* of vectors */
} tensors;

/* src/plan/pairwise.c, src/plan/rows.c and src/plan/vectors.c: the operands, from which the common shape and the
 * compute type come, and the gradients. Rows have more outputs. */
ONEPASS_INTERNAL onepass_status onepass_plan_pairwise_operands(const onepass_call *call, tensors *all, job *job);
ONEPASS_INTERNAL onepass_status onepass_plan_pairwise_gradients(const onepass_call *call, tensors *all, job *job);
ONEPASS_INTERNAL onepass_status onepass_plan_row_operands(const onepass_call *call, tensors *all, job *job);
ONEPASS_INTERNAL onepass_status onepass_plan_row_outputs(const onepass_call *call, tensors *all, job *job);
ONEPASS_INTERNAL onepass_status onepass_plan_vector_operands(const onepass_call *call, tensors *all, job *job);
ONEPASS_INTERNAL onepass_status onepass_plan_vector_gradients(const onepass_call *call, tensors *all, job *job);

/* src/plan/rows.c: the parameters of a loss over rows, as far as their limits do not say all; one that the plan knows
 * by its name, or what losses that do not have it do; and what becomes of a temperature. */
ONEPASS_INTERNAL onepass_status onepass_plan_row_parameters(job *job);
ONEPASS_INTERNAL double onepass_named_parameter(const job *job, const char *name, double otherwise);
ONEPASS_INTERNAL void onepass_plan_softmax(softmax_scale *scale, double temperature);

/* src/plan/rows.c: the number of rows, which may overflow where that of elements, being 0 for lack of others, does not.
 */
ONEPASS_INTERNAL onepass_status onepass_count_rows(const char *name, onepass_shape *rows);

/* src/plan/rows.c: a weight for each of so many classes. */
ONEPASS_INTERNAL onepass_status onepass_read_class_weight(const onepass_tensor *given, int64_t classes, tensor *weight);

/* src/plan/shards.c: where the classes are shared out, which of them the input has, and the numbers that travel. */
ONEPASS_INTERNAL onepass_status onepass_plan_shard(const onepass_call *call, job *job);
ONEPASS_INTERNAL onepass_status onepass_plan_shard_numbers(const onepass_call *call, tensors *all, job *job);

/* src/plan/loss.c: that the call has no operand or gradient that its loss does not have. */
ONEPASS_INTERNAL onepass_status onepass_check_operands(const onepass_call *call, const job *job);

#endif
