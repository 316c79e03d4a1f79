/*
 * A row as the kernels of losses over rows see it: what is known of it before its classes are looked at, and what
 * becomes of their sums. Much of that is in double and takes long, so a lane has a row: a warp's lanes do it for up to
 * 32 rows at a time.
 */
#ifndef ONEPASS_CUDA_ROWS_ROW_H
#define ONEPASS_CUDA_ROWS_ROW_H

#include "cuda/combine.h"
#include "cuda/pairwise/lines.h"
#include "cuda/pairwise/views.h"
#include "math/row.h"

/* How a row takes part. */
typedef enum row_part {
    ROW_IGNORED,
    ROW_COUNTS,
    ROW_BAD /* its label is no class */
} row_part;

/* What is known of a row before its classes are read. */
typedef struct row {
    int64_t label;
    int64_t input, target, gradient; /* where its first class is, in elements */
    double weight, class_weight;
    real upstream;
    real label_logit;
    int part;
} row;

/* What a job says, in the compute type. */
typedef struct row_rules {
    softmax base;     /* how logits are exponentiated */
    real kept, share; /* u_c = w_c (kept q_c + share): of smoothed probabilities */
    double per_divisor;
} row_rules;

ALWAYS_INLINE double row_divisor(const cuda_row *job) {
    return job->over_weights ? *(const double *)((const char *)job->total.workspace + CUDA_WEIGHTS_AT) : job->divisor;
}

ALWAYS_INLINE row_rules row_rules_of(const cuda_row *job) {
    row_rules rules;
    rules.base = softmax_of(&job->scale);
    rules.kept = (real)(1 - job->smoothing);
    rules.share = (real)(job->smoothing / (double)job->classes);
    rules.per_divisor = job->reduction == ONEPASS_MEAN ? 1 / row_divisor(job) : 1;
    return rules;
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

/* Whether a row takes part, and its label where there is one. */
template <row_kind kind> ALWAYS_INLINE int row_part_of(const cuda_row *job, int64_t row, int64_t *label) {
    *label = -1;
    if (row_number(job, CUDA_ROW_MASK, row, 1) == 0)
        return ROW_IGNORED;
    if (kind == ROW_PROBABILITIES)
        return ROW_COUNTS;
    *label = load_index(row_address(job, CUDA_ROW_TARGET, row), job->dtype[CUDA_ROW_TARGET], 0);
    if (*label == job->ignore_index)
        return ROW_IGNORED;
    return *label >= 0 && *label < job->classes ? ROW_COUNTS : ROW_BAD;
}

ALWAYS_INLINE double row_class_weight(const cuda_row *job, int64_t label) {
    if (!job->class_weight)
        return 1;
    const int64_t size = (int64_t)dtype_size(job->class_weight_dtype);
    return load_scalar((const char *)job->class_weight + label * job->class_stride[2] * size, job->class_weight_dtype);
}

ALWAYS_INLINE real row_logit(const cuda_row *job, const row_rules *rules, int64_t input, int64_t label) {
    const int32_t dtype = job->dtype[CUDA_ROW_INPUT];
    const char *at = (const char *)job->data[CUDA_ROW_INPUT];
    const real z = (real)load_scalar(at + (input + label * job->class_stride[0]) * (int64_t)dtype_size(dtype), dtype);
    return rules->base.softcap != 0 ? rules->base.softcap * softmax_tangent(&rules->base, z) : z;
}

/* Out of line, as is all that is done once a row and takes much code: it would be half of what there is to compile. */
#define ONCE_A_ROW static __device__ __noinline__

template <row_kind kind> ONCE_A_ROW row describe_row(const cuda_row *job, const row_rules *rules, int64_t index) {
    row row = {};
    row.part = row_part_of<kind>(job, index, &row.label);
    row.input = row_offset(job, CUDA_ROW_INPUT, index);
    row.gradient = job->data[CUDA_ROW_GRADIENT] ? row_offset(job, CUDA_ROW_GRADIENT, index) : 0;
    row.target = kind == ROW_PROBABILITIES ? row_offset(job, CUDA_ROW_TARGET, index) : 0;
    row.weight = row_number(job, CUDA_ROW_WEIGHT, index, 1);
    row.class_weight = 1;
    row.label_logit = -REAL_INFINITY;
    row.upstream = 1;
    if (job->data[CUDA_ROW_UPSTREAM]) {
        const int64_t at = job->reduction == ONEPASS_NONE ? index : 0;
        row.upstream = (real)load_scalar(row_address(job, CUDA_ROW_UPSTREAM, at), job->dtype[CUDA_ROW_UPSTREAM]);
    }
    if (kind != ROW_PROBABILITIES && row.part == ROW_COUNTS) {
        row.class_weight = row_class_weight(job, row.label);
        row.label_logit = row_logit(job, rules, row.input, row.label);
    }
    return row;
}

template <row_kind kind> ALWAYS_INLINE row describe_row_of(const cuda_row *job, const row_rules *rules, int64_t index) {
    const row_rules copy = *rules;
    return describe_row<kind>(job, &copy, index);
}

template <typename number> ALWAYS_INLINE number tell_warp(number x, int lane) {
    return __shfl_sync(~0u, x, lane);
}

/* What a lane knows, for its whole warp. */
ALWAYS_INLINE row tell_row(const row *own, int lane) {
    row row;
    row.label = tell_warp((long long)own->label, lane);
    row.input = tell_warp((long long)own->input, lane);
    row.target = tell_warp((long long)own->target, lane);
    row.gradient = tell_warp((long long)own->gradient, lane);
    row.weight = tell_warp(own->weight, lane);
    row.class_weight = tell_warp(own->class_weight, lane);
    row.upstream = tell_warp(own->upstream, lane);
    row.label_logit = tell_warp(own->label_logit, lane);
    row.part = tell_warp(own->part, lane);
    return row;
}

/* ---------------------------------------------------------- what becomes of it -- */

/* Everything of a row that its tiles come to; not good: it has no softmax. */
typedef struct row_result {
    row_facts facts;
    bool good;
} row_result;

ALWAYS_INLINE void begin_facts(const cuda_row *job, const row *row, row_facts *facts) {
    facts->label_logit = row->label_logit;
    facts->weight = row->class_weight;
    facts->classes = (double)job->classes;
    facts->row.lse = 0;
}

/* The label's own exponential, by the row's exponent. */
ALWAYS_INLINE double own_part(const cuda_row *job, const row_rules *rules, real tile_largest, real label_logit,
                              double exponent) {
    const softmax_shift shift = softmax_shift_of(&rules->base, &job->scale, tile_largest);
    const double own = (double)softmax_exponential(&rules->base, &shift, label_logit - shift.anchor);
    return own * wide_exp2(shift.exponent - exponent);
}

/* What a row's slopes are made of. */
template <typename loss>
ALWAYS_INLINE row_factors slopes_of_row(const cuda_row *job, const row_rules *rules, const row *row, row_facts *facts) {
    row_slopes slopes;
    const row_sums sums = row_sums_of_state(&job->scale, facts, 0);
    loss::row(&sums, job->parameter, &slopes);
    return row_factors_of(&facts->row, &slopes, row->weight * rules->per_divisor * job->scale.per_temperature);
}

template <typename loss>
ALWAYS_INLINE row_factors factors_of_row(const cuda_row *job, const row_rules *rules, const row *row,
                                         row_facts *facts) {
    if (job->needs_lse)
        row_complete(&rules->base, &job->scale, facts);
    return slopes_of_row<loss>(job, rules, row, facts);
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

/* Value and state of a row of the lane's own. */
template <typename loss>
ONCE_A_ROW void write_row(const cuda_row *job, const row_rules *rules, const row *row, int64_t index,
                          row_result *result) {
    softmax_row *state = &result->facts.row;
    double value = 0;
    if (row->part == ROW_COUNTS && result->good) {
        row_slopes slopes;
        const row_sums sums = row_sums_of(&rules->base, &job->scale, &result->facts);
        loss::row(&sums, job->parameter, &slopes);
        value = slopes.value * row->weight;
    } else {
        const double nothing = row->part == ROW_IGNORED ? 0 : WIDE_NAN;
        *state = (softmax_row){nothing, nothing, nothing, nothing, nothing};
        value = nothing;
    }
    write_term(job, index, value);
    write_row_number(job, CUDA_ROW_LOG_SUM_EXP, index, state->lse);
    if (job->state) {
        const double number[] = {state->exponent, state->others, state->own, state->lse, state->weights};
#pragma unroll
        for (int i = 0; i < ONEPASS_ROW_STATE; i++)
            store_scalar(job->state + index * ONEPASS_ROW_STATE + i, ONEPASS_F64, number[i]);
    }
}

/* What the caller keeps in registers stays there: copies are handed on. */
template <typename loss>
ALWAYS_INLINE void finish_row(const cuda_row *job, const row_rules *rules, const row *row, int64_t index,
                              const row_result *result) {
    if (!job->finishes)
        return;
    const row_rules own_rules = *rules;
    const struct row own_row = *row;
    row_result own_result = *result;
    write_row<loss>(job, &own_rules, &own_row, index, &own_result);
}

/* What backward knows of a row from its state. */
ALWAYS_INLINE void read_state(const cuda_row *job, int64_t index, row_result *result) {
    const double *state = job->state + index * ONEPASS_ROW_STATE;
    result->facts.row = (softmax_row){state[0], state[1], state[2], state[3], state[4]};
    result->good = state[0] == state[0];
}

ALWAYS_INLINE bool is_finite(real x) {
    return x - x == 0;
}

/* Nothing is to be done where the upstream gradient is 1. */
ALWAYS_INLINE bool is_done_before(const cuda_row *job) {
    return job->skip_if_one && (real)load_scalar(job->data[CUDA_ROW_UPSTREAM], job->dtype[CUDA_ROW_UPSTREAM]) == 1;
}

#endif
