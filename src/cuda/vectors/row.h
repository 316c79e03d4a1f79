/*
 * A row as the kernels of vector losses see it: what it is multiplied by, and from its sums to its value and the
 * factors of its slopes.
 */
#ifndef ONEPASS_CUDA_VECTORS_ROW_H
#define ONEPASS_CUDA_VECTORS_ROW_H

#include "cuda/combine.h"
#include "cuda/vectors/tile.h"

ALWAYS_INLINE char *row_address(const cuda_vector *job, int which, int64_t row) {
    return vector_address(job, which, vector_place(job, which, row).offset);
}

ALWAYS_INLINE double row_number(const cuda_vector *job, int which, int64_t row, double otherwise) {
    return job->data[which] ? load_scalar(row_address(job, which, row), job->dtype[which]) : otherwise;
}

ALWAYS_INLINE bool row_takes_part(const cuda_vector *job, int64_t row) {
    return row_number(job, CUDA_VECTOR_MASK, row, 1) != 0;
}

ALWAYS_INLINE real row_upstream(const cuda_vector *job, int64_t row) {
    return (real)row_number(job, CUDA_VECTOR_UPSTREAM, job->reduction == ONEPASS_NONE ? row : 0, 1);
}

/* Nothing is to be done where the upstream gradient is 1. */
ALWAYS_INLINE bool is_done_before(const cuda_vector *job) {
    return job->skip_if_one && row_upstream(job, 0) == 1;
}

/* One over what a mean is divided by. */
ALWAYS_INLINE double per_divisor_of(const cuda_vector *job) {
    const char *workspace = (const char *)job->total.workspace;
    return job->reduction == ONEPASS_MEAN && job->over_weights ? 1 / *(const double *)(workspace + CUDA_WEIGHTS_AT)
                                                               : job->per_divisor;
}

ALWAYS_INLINE double *in_workspace(const cuda_vector *job, int64_t at) {
    return (double *)((char *)job->total.workspace + at);
}

/* The row of a chunk. */
ALWAYS_INLINE int64_t divide_by_chunks(const cuda_vector *job, int64_t chunk) {
    return job->chunks == 1 ? chunk : divide(chunk, &job->by_chunks);
}

/* The row of a tile; these are numbered row by row. */
ALWAYS_INLINE int64_t row_of_tile(const cuda_vector *job, int64_t tile) {
    return job->tiles == 1 ? tile : divide(tile, &job->by_tiles);
}

/* A warp's own shared memory, a tile a vector, which only those that go through it have: as the compute type, or as
 * vectors lie in memory, where a warp may have several such places. With lists of labels there is one more, for
 * another tile. */
template <typename loss, vector_access access> ALWAYS_INLINE real *vector_buffer(const cuda_vector *job, int warp) {
    extern __shared__ __align__(16) unsigned char shared_memory[];
    const int size = access == VECTORS_STAGED && job->halves ? (int)sizeof(uint16_t) : (int)sizeof(real);
    return access == VECTORS_DENSE
               ? NULL
               : (real *)(shared_memory + warp * (loss::VECTOR_COUNT + loss::LABEL_LISTS) * ORDER_TILE * size);
}

/* The sum of a row's nodes in the workspace by all warps of a block; the first thread has it. Missing ones are nothing.
 */
ALWAYS_INLINE double sum_of_nodes(const double *node, int64_t count, double *of_warp, order_stack *stack) {
    const place_in_block at = here_in_block();
    if (threadIdx.x == 0)
        stack->depth = 0, stack->tiles = 0;
#pragma unroll 1
    for (int64_t first = 0; first < count; first += (int64_t)at.warps * GROUP) {
        const double sum = group_sum(node, first + (int64_t)at.warp * GROUP, count, at.thread);
        if (at.thread == 0)
            of_warp[at.warp] = sum;
        __syncthreads();
        if (threadIdx.x == 0)
            order_push(stack, order_tree(of_warp, at.warps));
        __syncthreads();
    }
    const double sum = threadIdx.x == 0 ? order_top(stack) : 0;
    __syncthreads(); /* before the stack begins anew */
    return sum;
}

/* What is known of a row with softmaxes, between launches. */
ALWAYS_INLINE vector_softmaxes *known_of_row(const cuda_vector *job, int64_t row) {
    return (vector_softmaxes *)in_workspace(job, job->known_at) + row;
}

/* What a row is told beside its vectors. */
typedef struct row_numbers {
    double weight;
    double number; /* of the operand that is one number a row */
} row_numbers;

/* What its class weighs is no other than its own weight. */
template <typename loss> ALWAYS_INLINE double row_weight(const cuda_vector *job, int64_t row, const own_class *label) {
    const double weight = row_number(job, CUDA_VECTOR_WEIGHT, row, 1);
    if (!loss::LABELS || label->at < 0)
        return weight;
    return weight * row_number(job, CUDA_VECTOR_OPERAND + ONEPASS_CLASS_WEIGHT, label->at, 1);
}

template <typename loss>
ALWAYS_INLINE row_numbers numbers_of(const cuda_vector *job, int64_t row, const own_class *label) {
    row_numbers numbers = {row_weight<loss>(job, row, label), 0};
    if (loss::VECTOR_COUNT < loss::OPERANDS && !loss::LABEL_LISTS)
        numbers.number = load_number(row_address(job, CUDA_VECTOR_OPERAND + loss::VECTOR_COUNT, row),
                                     job->dtype[CUDA_VECTOR_OPERAND + loss::VECTOR_COUNT]);
    return numbers;
}

/* From the row's sums to its value, which is returned, and the factors of its slopes; for a row that takes part. */
template <typename loss>
ALWAYS_INLINE double find_slopes(const cuda_vector *job, const double *parameter, const row_numbers *numbers,
                                 const double *sum, const vector_softmaxes *known, const own_class *label,
                                 double *factor) {
    const bool any = job->length > 0; /* else the sums are of nothing, which is +0 */
    vector_sums sums = {
        {any && loss::SUMS > 0 ? sum[0] : 0, any && loss::SUMS > 1 ? sum[1] : 0, any && loss::SUMS > 2 ? sum[2] : 0},
        numbers->number,
        (double)job->length,
        {}};
    vector_slopes slopes = {0, {0, 0, 0}};
    const double weight = numbers->weight;
    const double scale = job->reduction == ONEPASS_MEAN ? weight * per_divisor_of(job) : weight;
    if (loss::SOFTMAXES)
        sums.softmaxes = *known;
    loss::row(&sums, parameter, &slopes);
    if (loss::LABELS && label->at < 0)
        slopes.value = slopes.factor[VECTOR_OWN_SLOPE] = WIDE_NAN;
#pragma unroll
    for (int i = 0; i < VECTOR_MOST_FACTORS; i++)
        factor[i] = slopes.factor[i] * scale;
    if (loss::LABELS)
        factor[VECTOR_OWN_ELEMENT] = (double)label->x;
    return slopes.value * weight;
}

/* Leaves the row's term or value. */
ALWAYS_INLINE void leave_value(const cuda_vector *job, int64_t row, double value) {
    if (job->terms_at)
        ((real *)in_workspace(job, job->terms_at))[row] = canonical((real)value);
    if (job->reduction == ONEPASS_NONE && job->data[CUDA_VECTOR_VALUE])
        store_scalar(row_address(job, CUDA_VECTOR_VALUE, row), job->dtype[CUDA_VECTOR_VALUE], value);
}

/* The same, and the factors of its slopes. The twin of src/cpu/vectors.c. */
template <typename loss>
ALWAYS_INLINE void finish_vectors(const cuda_vector *job, const double *parameter, int64_t row, const double *sum,
                                  const vector_softmaxes *known, double *factor) {
    double value = 0;
#pragma unroll
    for (int i = 0; i < VECTOR_MOST_FACTORS; i++)
        factor[i] = 0;
    if (row_takes_part(job, row)) {
        const own_class label = find_own<loss>(job, row);
        const row_numbers numbers = numbers_of<loss>(job, row, &label);
        value = find_slopes<loss>(job, parameter, &numbers, sum, known, &label, factor);
    }
    leave_value(job, row, value);
}

/* ----------------------------------------------------------- known before -- */

/* All that is to be known of a row beside its vectors. Who waits for these asks for numbers in the meantime. */
typedef struct vector_row {
    int64_t index;
    bool is_there, part;
    own_class label;
    row_numbers numbers;
} vector_row;

template <typename loss> ALWAYS_INLINE vector_row vector_row_at(const cuda_vector *job, int64_t index, bool is_there) {
    vector_row row = {index, is_there, is_there && row_takes_part(job, index), {-1, 0}, {1, 0}};
    if (row.part)
        row.label = find_own<loss>(job, index);
    return row;
}

template <typename loss> ALWAYS_INLINE void ask_for_numbers(const cuda_vector *job, vector_row *row) {
    if (row->part)
        row->numbers = numbers_of<loss>(job, row->index, &row->label);
}

/* Its value. */
template <typename loss>
ALWAYS_INLINE double finish_row(const cuda_vector *job, const double *parameter, const vector_row *row,
                                const double *sum, double *factor) {
#pragma unroll
    for (int i = 0; i < VECTOR_MOST_FACTORS; i++)
        factor[i] = 0;
    return row->part ? find_slopes<loss>(job, parameter, &row->numbers, sum, NULL, &row->label, factor) : 0;
}

/* A thread keeps the sums of one of a warp's rows. */
template <typename loss> ALWAYS_INLINE void keep_sums(bool keeps, const double *sum, double *kept) {
#pragma unroll
    for (int k = 0; k < loss::SUMS; k++)
        kept[k] = keeps ? sum[k] : kept[k];
}

#endif
