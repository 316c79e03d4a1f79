/*
 * A row as the kernels of losses over rows see it: what is known of it before its classes are looked at, and what
 * becomes of their sums. Much of that is in double and takes long, so a lane has a row: a warp's lanes do it for up to
 * 32 rows at a time.
 */
#ifndef ONEPASS_CUDA_ROWS_ROW_H
#define ONEPASS_CUDA_ROWS_ROW_H

#include "cuda/combine.h"
#include "cuda/exponentials.h"
#include "cuda/pairwise/views.h"

/* How a row takes part. */
typedef enum row_part {
    ROW_IGNORED,
    ROW_COUNTS,
    ROW_BAD /* its label is no class */
} row_part;

/* What is known of a row before its classes are read. */
typedef struct row {
    int64_t index;
    int64_t label;                   /* -1: none; counted from the first class that is here */
    int64_t input, target, gradient; /* where its first class is, in elements */
    double weight, class_weight;
    real upstream;
    int part;
} row;

/* What its tiles come to; not good: it has no softmax. */
typedef struct row_sum {
    double exponent, others, own; /* as in row_facts and softmax_row */
    double weights, weighted;     /* as in row_facts */
    real largest, label_logit;
    bool good;
} row_sum;

/* Out of line, as is all that is done once a row and takes much code: it would be half of what there is to compile. */
#define ONCE_A_ROW static __device__ __noinline__

ALWAYS_INLINE softmax softmax_of_job(const cuda_row *job) {
    return softmax_as_told(&job->softmax);
}

ALWAYS_INLINE softmax_shift shift_of(const cuda_row *job, real largest) {
    const softmax softmax = softmax_of_job(job);
    return softmax_shift_of(&softmax, &job->softmax.scale, largest);
}

/* Between launches, in the workspace: how many rows take part, and what a mean is divided by. */
ALWAYS_INLINE unsigned long long *count_of(const cuda_row *job) {
    return (unsigned long long *)((char *)job->total.workspace + CUDA_COUNT_AT);
}

ALWAYS_INLINE double *weights_of(const cuda_row *job) {
    return (double *)((char *)job->total.workspace + CUDA_WEIGHTS_AT);
}

/* One over what a mean is divided by. */
ALWAYS_INLINE double per_divisor_of(const cuda_row *job) {
    return job->reduction != ONEPASS_MEAN ? 1 : job->over_weights ? 1 / *weights_of(job) : 1 / job->divisor;
}

/* ------------------------------------------------------------ what is known -- */

ALWAYS_INLINE int64_t row_offset(const cuda_row *job, int which, int64_t row) {
    const cuda_view *view = &job->view[which];
    return view->ndim == 1 ? row * view->stride[0] : place_of(view, row).offset;
}

ALWAYS_INLINE char *row_address(const cuda_row *job, int which, int64_t row) {
    return (char *)job->data[which] + row_offset(job, which, row) * (int64_t)dtype_size(job->dtype[which]);
}

ALWAYS_INLINE double row_number(const cuda_row *job, int which, int64_t row, double otherwise) {
    return job->data[which] ? load_scalar(row_address(job, which, row), job->dtype[which]) : otherwise;
}

/* That of a mean or a sum. */
ALWAYS_INLINE real upstream_of_all(const cuda_row *job) {
    return job->data[CUDA_ROW_UPSTREAM] ? (real)load_scalar(job->data[CUDA_ROW_UPSTREAM], job->dtype[CUDA_ROW_UPSTREAM])
                                        : (real)job->expected_upstream;
}

ALWAYS_INLINE int part_of_label(const cuda_row *job, int64_t label) {
    if (label == job->ignore_index)
        return ROW_IGNORED;
    return (uint64_t)label < (uint64_t)job->all_classes ? ROW_COUNTS : ROW_BAD;
}

/* Whether a row takes part, and its label where there is one, counted from the first class that is here. */
template <row_kind kind> ALWAYS_INLINE int row_part_of(const cuda_row *job, int64_t row, int64_t *label) {
    *label = -1;
    if (row_number(job, CUDA_ROW_MASK, row, 1) == 0)
        return ROW_IGNORED;
    if (kind == ROW_PROBABILITIES)
        return ROW_COUNTS;
    const int64_t index = load_index(row_address(job, CUDA_ROW_TARGET, row), job->dtype[CUDA_ROW_TARGET], 0);
    *label = index - job->first_class;
    return part_of_label(job, index);
}

ALWAYS_INLINE double row_class_weight(const cuda_row *job, int64_t label) {
    if (!job->class_weight)
        return 1;
    const int64_t size = (int64_t)dtype_size(job->class_weight_dtype);
    return load_scalar((const char *)job->class_weight + label * job->class_stride[2] * size, job->class_weight_dtype);
}

/* The label's logit, or -inf where there is none, or none here. */
ALWAYS_INLINE real row_logit(const cuda_row *job, const row *row) {
    const int32_t dtype = job->dtype[CUDA_ROW_INPUT];
    const char *at = (const char *)job->data[CUDA_ROW_INPUT];
    if (row->part != ROW_COUNTS)
        return -REAL_INFINITY;
    if (job->shard > SHARD_SUMS)
        return (real)job->label_logit[row->index];
    if ((uint64_t)row->label >= (uint64_t)job->classes)
        return -REAL_INFINITY;
    const real z =
        (real)load_scalar(at + (row->input + row->label * job->class_stride[0]) * (int64_t)dtype_size(dtype), dtype);
    const softmax softmax = softmax_of_job(job);
    return softmax.softcap != 0 ? softmax.softcap * softmax_tangent(&softmax, z) : z;
}

template <row_kind kind> ALWAYS_INLINE row describe_row_here(const cuda_row *job, int64_t index) {
    row row = {};
    row.index = index;
    row.part = row_part_of<kind>(job, index, &row.label);
    row.input = job->data[CUDA_ROW_INPUT] ? row_offset(job, CUDA_ROW_INPUT, index) : 0;
    row.gradient = job->data[CUDA_ROW_GRADIENT] ? row_offset(job, CUDA_ROW_GRADIENT, index) : 0;
    row.target = kind == ROW_PROBABILITIES ? row_offset(job, CUDA_ROW_TARGET, index) : 0;
    row.weight = row_number(job, CUDA_ROW_WEIGHT, index, 1);
    row.class_weight = 1;
    row.upstream =
        (real)row_number(job, CUDA_ROW_UPSTREAM, job->reduction == ONEPASS_NONE ? index : 0, job->expected_upstream);
    if (kind != ROW_PROBABILITIES && row.part == ROW_COUNTS)
        row.class_weight = row_class_weight(job, row.label);
    return row;
}

template <row_kind kind> ONCE_A_ROW void describe_row(const cuda_row *job, int64_t index, row *into) {
    *into = describe_row_here<kind>(job, index);
}

/* When all are counted. */
ALWAYS_INLINE void end_count(const cuda_row *job) {
    *weights_of(job) = (double)atomicAdd(count_of(job), 0ull);
    *count_of(job) = 0;
}

/* Rows that count as 1 are counted, in any order, and with them the blocks, below. The last block leaves the number to
 * the next launch. By one thread of each. */
ALWAYS_INLINE void leave_count(const cuda_row *job, unsigned rows) {
    const unsigned long long own = (unsigned long long)rows << CUDA_BLOCK_BITS;
    const unsigned long long before = atomicAdd(count_of(job), own + 1);
    if ((before & ((1u << CUDA_BLOCK_BITS) - 1)) != gridDim.x - 1)
        return;
    *weights_of(job) = (double)((before + own) >> CUDA_BLOCK_BITS);
    *count_of(job) = 0;
}

/* ---------------------------------------------------------- what becomes of it -- */

/* The label's own exponential, by the row's exponent. */
ALWAYS_INLINE double own_part(const cuda_row *job, real tile_largest, real label_logit, double exponent) {
    const softmax softmax = softmax_of_job(job);
    const softmax_shift shift = shift_of(job, tile_largest);
    const double own = (double)softmax_exponential(&softmax, &shift, label_logit - shift.anchor);
    return own * wide_exp2(shift.exponent - exponent);
}

ALWAYS_INLINE row_facts facts_of(const cuda_row *job, const row *row, const row_sum *sum) {
    row_facts facts;
    facts.row = (softmax_row){(double)sum->largest, sum->others, sum->own, 0, sum->weights};
    facts.exponent = sum->exponent;
    facts.weighted = sum->weighted;
    facts.label_logit = sum->label_logit;
    facts.weight = row->class_weight;
    facts.classes = (double)job->all_classes;
    return facts;
}

ONCE_A_ROW double lse_of_row(const cuda_row *job, const row_facts *facts) {
    const softmax softmax = softmax_of_job(job);
    row_facts complete = *facts;
    row_complete(&softmax, &job->softmax.scale, &complete);
    return complete.row.lse;
}

/* What a row's slopes are made of. */
template <typename loss>
ALWAYS_INLINE row_factors slopes_of_row(const cuda_row *job, double per_divisor, const row *row,
                                        const row_facts *facts) {
    row_slopes slopes;
    const row_sums sums = row_sums_of_state(&job->softmax.scale, facts, 0);
    loss::row(&sums, job->parameter, &slopes);
    return row_factors_of(&facts->row, &slopes, row->weight * per_divisor * job->softmax.scale.per_temperature);
}

template <typename loss>
ALWAYS_INLINE row_factors factors_of_row(const cuda_row *job, double per_divisor, const row *row, const row_sum *sum) {
    row_facts facts = facts_of(job, row, sum);
    if (job->needs_lse) {
        const row_facts copy = facts;
        facts.row.lse = lse_of_row(job, &copy);
    }
    return slopes_of_row<loss>(job, per_divisor, row, &facts);
}

ALWAYS_INLINE void write_row_number(const cuda_row *job, int which, int64_t row, double x) {
    if (job->data[which])
        store_scalar(row_address(job, which, row), job->dtype[which], x);
}

ALWAYS_INLINE void write_term(const cuda_row *job, int64_t row, double value) {
    if (job->terms_at)
        ((real *)((char *)job->total.workspace + job->terms_at))[row] = canonical((real)value);
    if (job->reduction == ONEPASS_NONE)
        write_row_number(job, CUDA_ROW_VALUE, row, value);
}

/* The state of a row, or null. */
ALWAYS_INLINE double *state_of_row(const cuda_row *job, int64_t index) {
    double *state = job->state_at ? (double *)((char *)job->total.workspace + job->state_at) : job->state;
    return state ? state + index * ONEPASS_ROW_STATE : NULL;
}

ALWAYS_INLINE void write_state(double *into, const softmax_row *state) {
    const double number[] = {state->largest, state->others, state->own, state->lse, state->weights};
#pragma unroll
    for (int i = 0; i < ONEPASS_ROW_STATE; i++)
        store_scalar(into + i, ONEPASS_F64, number[i]);
}

/* The value of a row that has one, and what goes with it. Logarithms that nobody asks for are left out. */
template <typename loss>
ALWAYS_INLINE double value_of_row(const cuda_row *job, const row *row, const row_sum *sum, softmax_row *state) {
    const softmax softmax = softmax_of_job(job);
    row_facts facts = facts_of(job, row, sum);
    row_slopes slopes;
    row_sums sums;
    if (job->completes)
        sums = row_sums_of(&softmax, &job->softmax.scale, &facts);
    else
        sums = row_sums_of_state(&job->softmax.scale, &facts, 0);
    loss::row(&sums, job->parameter, &slopes);
    *state = facts.row;
    return slopes.value * row->weight;
}

/* The value of a row of the lane's own, 0 where it takes no part and NaN where it has none. What else there is of it is
 * written. */
template <typename loss>
ALWAYS_INLINE double settle_row(const cuda_row *job, const row *row, int64_t index, const row_sum *sum) {
    const double nothing = row->part == ROW_IGNORED ? 0 : WIDE_NAN;
    softmax_row state = {nothing, nothing, nothing, nothing, nothing};
    double value = nothing;
    if (row->part == ROW_COUNTS && sum->good)
        value = value_of_row<loss>(job, row, sum, &state);
    write_row_number(job, CUDA_ROW_LOG_SUM_EXP, index, state.lse);
    double *into = state_of_row(job, index);
    if (into)
        write_state(into, &state);
    return value;
}

template <typename loss>
ALWAYS_INLINE void finish_row_here(const cuda_row *job, const row *row, int64_t index, const row_sum *sum) {
    if (job->finishes)
        write_term(job, index, settle_row<loss>(job, row, index, sum));
}

template <typename loss>
ONCE_A_ROW void finish_row(const cuda_row *job, const row *row, int64_t index, const row_sum *sum) {
    finish_row_here<loss>(job, row, index, sum);
}

/* What backward knows of a row from its state. */
ALWAYS_INLINE bool read_state(const cuda_row *job, int64_t index, row_facts *facts) {
    const double *state = state_of_row(job, index);
    facts->row = (softmax_row){state[0], state[1], state[2], state[3], state[4]};
    facts->exponent = shift_of(job, (real)state[0]).exponent;
    return state[0] == state[0];
}

ALWAYS_INLINE bool is_finite(real x) {
    return x - x == 0;
}

/* Nothing is to be done where the upstream gradient is what was expected. */
ALWAYS_INLINE bool is_done_before(const cuda_row *job) {
    return job->skip_if_one && upstream_of_all(job) == (real)job->expected_upstream;
}

#endif
