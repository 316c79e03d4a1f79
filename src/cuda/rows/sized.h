/*
 * Rows of few classes of which there is nothing to know but labels, by code that is made for their number: a thread has
 * a row, with all its classes in registers, and a warp has 32 of them at a time, while the next 32 come to shared
 * memory. Numbers of classes share the code of the next size above, with classes of -inf.
 */
#ifndef ONEPASS_CUDA_ROWS_SIZED_H
#define ONEPASS_CUDA_ROWS_SIZED_H

#include "cuda/rows/sized_data.h"

#if !defined(ONEPASS_REAL_F64)

/* -------------------------------------------------------------------- a row -- */

/* The order's tree over lanes of which only the first have a term, all of them known to the compiler: lanes 16 apart,
 * 8, 4, 2 and 1. */
template <int size, int first, int distance> ALWAYS_INLINE double sum_of_sized(const real *x) {
    if constexpr (distance == CUDA_FEW_CLASSES)
        return (double)x[first];
    else if constexpr (first + distance < size)
        return sum_of_sized<size, first, 2 * distance>(x) + sum_of_sized<size, first + distance, 2 * distance>(x);
    else
        return sum_of_sized<size, first, 2 * distance>(x);
}

/* Nobody waits long for the one before. */
template <int first, int count> ALWAYS_INLINE real largest_of(const real *x) {
    if constexpr (count == 1)
        return x[first];
    else
        return larger_or_nan(largest_of<first, count / 2>(x), largest_of<first + count / 2, count - count / 2>(x));
}

/* As shift_of(), with the usual case first; all logits have the anchor taken off. */
template <int size>
ALWAYS_INLINE softmax_shift shift_sized(const cuda_row *job, const softmax *softmax, real largest, real *x) {
    const real product = (largest + 0) * softmax->factor;
    softmax_shift shift;
    if (magnitude(product) < SOFTMAX_LARGEST) {
        shift.anchor = 0;
        shift.largest = largest + 0;
        shift.n = softmax_ceiling(product);
        shift.exponent = (double)shift.n;
        shift.lowest = (shift.n - SOFTMAX_RANGE) * softmax->per_factor;
        return shift;
    }
    shift = shift_of(job, largest);
    if (shift.anchor != 0)
        EACH_SIZED x[c] = x[c] - shift.anchor;
    return shift;
}

/* The logits of all classes but the label's become exponentials. */
template <int size> ALWAYS_INLINE row_sum sum_sized(const cuda_row *job, real label_logit, real *x) {
    const softmax softmax = softmax_of_job(job);
    row_sum sum = {};
    const real largest = larger_or_nan(label_logit, largest_of<0, size>(x));
    const softmax_shift shift = shift_sized<size>(job, &softmax, largest, x);
    EACH_SIZED x[c] = softmax_exponential(&softmax, &shift, x[c]);
    sum.exponent = shift.exponent;
    sum.good = shift.exponent - shift.exponent == 0;
    sum.largest = shift.largest;
    sum.label_logit = label_logit;
    sum.others = sum_of_sized<size, 0, 1>(x);
    sum.own = (double)softmax_exponential(&softmax, &shift, label_logit - shift.anchor);
    return sum;
}

ONCE_A_ROW double nll_of_lost_label(const cuda_row *job, double largest, double others, double own, real label_logit) {
    row_facts facts = {};
    facts.row.largest = largest;
    facts.row.others = others;
    facts.row.own = own;
    facts.label_logit = label_logit;
    return row_nll_of_rest(&job->softmax.scale, &facts);
}

/* Returns the row's value. Its slopes are left to the caller. */
template <typename loss>
ALWAYS_INLINE double settle_sized(const cuda_row *job, const sized_block *block, const row_sum *sum,
                                  row_factors *factors) {
    const double no_parameters[ONEPASS_MAX_PARAMETERS] = {};
    row known = {};
    known.weight = known.class_weight = 1;
    const row_facts facts = facts_of(job, &known, sum);
    row_sums sums = row_usual_sums(&facts, 0);
    row_slopes slopes;
    if (!row_has_own(sum->own))
        sums.nll = nll_of_lost_label(job, facts.row.largest, sum->others, sum->own, sum->label_logit);
    if (block->has_parameters)
        loss::row(&sums, job->parameter, &slopes);
    else /* zeros that the compiler knows of save 20 instructions a row */
        loss::row(&sums, no_parameters, &slopes);
    *factors = row_factors_of(&facts.row, &slopes, block->common);
    return sum->good ? slopes.value : WIDE_NAN;
}

/* As few_gradient(). */
template <int size> ALWAYS_INLINE void scale_sized(const few_slopes *slopes, real *x) {
    const real f = slopes->f, upstream = slopes->upstream;
    if (slopes->plain && is_finite(f) && upstream == 1) {
        EACH_SIZED x[c] = x[c] * f;
    } else if (slopes->plain) {
        EACH_SIZED {
            x[c] = canonical(x[c] * f);
            if (upstream != 1)
                x[c] = canonical(x[c] * upstream);
        }
    } else {
        EACH_SIZED x[c] = slopes->otherwise;
    }
}

/* A row that takes part and is in its place, where the label's logit gives way to what stands for no class. Returns its
 * value; its gradient takes its place. */
template <typename loss, bool writes, int size>
ALWAYS_INLINE double run_sized_row(const cuda_row *job, const sized_block *block, int part, int label, char *own) {
    char *own_label = own + label * (block->step * block->bytes);
    double value = part == ROW_IGNORED ? 0 : WIDE_NAN;
    few_slopes slopes = {0, 0, block->upstream, part == ROW_IGNORED ? 0 : REAL_NAN, false};
    real x[size];
    if (part == ROW_COUNTS) {
        const real label_logit = read_number(block, own_label);
        row_factors factors;
        write_number(block, own_label, -REAL_INFINITY);
        read_sized<size>(block, own, x);
        const row_sum sum = sum_sized<size>(job, label_logit, x);
        value = settle_sized<loss>(job, block, &sum, &factors);
        slopes.plain = sum.good;
        slopes.f = (real)factors.of_exponentials;
        slopes.own = canonical(factors.own);
        if (slopes.upstream != 1)
            slopes.own = canonical(slopes.own * slopes.upstream);
        if (!slopes.plain)
            slopes.own = slopes.otherwise;
    }
    if (writes) {
        scale_sized<size>(&slopes, x);
        write_sized<size>(block, part == ROW_IGNORED || (slopes.plain && is_finite(slopes.f) && slopes.upstream == 1),
                          x, own);
        if (part == ROW_COUNTS)
            write_number(block, own_label, slopes.own);
    }
    return value;
}

/* ---------------------------------------------------------------------- rows -- */

ONCE_A_ROW void write_term_apart(const cuda_row *job, int64_t row, double value) {
    write_term(job, row, value);
}

/* Where a warp is: at every 128th row. */
typedef struct sized_walk {
    int64_t index;  /* of the lane's own row */
    int64_t offset; /* of the warp's first number, or of the lane's own where rows lie side by side; */
    int inside;     /* there the row's place among its neighbours */
} sized_walk;

ALWAYS_INLINE sized_walk begin_sized_walk(const cuda_row *job, const sized_block *block, int64_t first) {
    sized_walk walk = {first + threadIdx.x, 0, 0};
    if (block->in_one_piece) {
        walk.offset = (first + threadIdx.x / ORDER_WARP * ORDER_WARP) * block->classes;
    } else {
        const few_walk aside = begin_walk(job, walk.index);
        walk.offset = aside.offset;
        walk.inside = aside.inside;
    }
    return walk;
}

ALWAYS_INLINE void step_sized_walk(const cuda_row *job, const sized_block *block, sized_walk *walk) {
    walk->index += FEW_THREADS;
    if (block->in_one_piece) {
        walk->offset += FEW_THREADS * block->classes;
    } else {
        few_walk aside = {walk->offset, walk->inside};
        step_walk(job, &aside);
        walk->offset = aside.offset;
        walk->inside = aside.inside;
    }
}

/* Of so many rows from a line on, those of the warp. */
ALWAYS_INLINE int rows_of_warp(int rows) {
    const int left = rows - (int)(threadIdx.x / ORDER_WARP * ORDER_WARP);
    return left < 0 ? 0 : left < ORDER_WARP ? left : ORDER_WARP;
}

/* A span of lines of 128 rows: a warp's part of each is sent for before that of the one before it is computed. */
template <typename loss, bool writes, int size>
ALWAYS_INLINE void run_sized_span(const cuda_row *job, const sized_block *block, int64_t first, int left, char *buffers,
                                  few_sum *sum) {
    const int lane = (int)(threadIdx.x % ORDER_WARP), warp = (int)(threadIdx.x / ORDER_WARP), lines = job->lines;
    const bool whole = left == lines * FEW_THREADS;
    char *own = buffers + warp * (lines > 1 ? 2 : 1) * block->room;
    sized_walk walk = begin_sized_walk(job, block, first);
    int next = whole ? ORDER_WARP : rows_of_warp(left), count = next, buffer = block->room;
    int64_t label = 0, offset = 0;
#pragma unroll 1
    for (int line = -1; line < lines; line++) {
        double value = 0;
        wait_for_sent();
        __syncwarp();
        const int own_label = (int)label, part = part_of_label(job, label);
        const int64_t own_offset = offset;
        if (line + 1 < lines && next > 0) {
            if (lane < next)
                label = simple_label(job, walk.index);
            offset = walk.offset;
            send_sized<size>(job, block, next, offset, own + (buffer ^ block->room));
            step_sized_walk(job, block, &walk);
        }
        if (line >= 0) {
            if (lane < count) {
                value = run_sized_row<loss, writes, size>(job, block, part, own_label,
                                                          own + buffer + lane * block->pitch * block->bytes);
                sum->rows += part != ROW_IGNORED;
                if (!job->sums && job->finishes)
                    write_term_apart(job, first + line * FEW_THREADS + threadIdx.x, value);
            }
            add_few(line, canonical((real)value), sum);
            if (writes && count > 0)
                leave_sized<size>(job, block, count, own_offset, own + buffer);
        }
        buffer ^= block->room;
        count = next;
        if (!whole)
            next = rows_of_warp(left - (line + 2) * FEW_THREADS);
    }
}

/* As run_few(). */
template <typename loss, bool writes, int size> ALWAYS_INLINE void run_sized(const cuda_row *job, few_sum *sum) {
    extern __shared__ __align__(16) unsigned char shared_memory[];
    const sized_block block = sized_block_of<writes>(job);
    const int64_t rows = (int64_t)job->lines * FEW_THREADS;
#pragma unroll 1
    for (int64_t first = blockIdx.x * rows; first < job->rows; first += gridDim.x * rows) {
        const int64_t left = job->rows - first;
        run_sized_span<loss, writes, size>(job, &block, first, left < rows ? (int)left : (int)rows,
                                           (char *)shared_memory, sum);
        __syncwarp();
    }
}

/* Sizes from the largest down. */
template <typename loss, bool writes, int size, int least>
ALWAYS_INLINE void run_of_size(const cuda_row *job, few_sum *sum) {
    if constexpr (size > least) {
        if (job->classes <= sized<size>::LESS) {
            run_of_size<loss, writes, sized<size>::LESS, least>(job, sum);
            return;
        }
    }
    run_sized<loss, writes, size>(job, sum);
}

template <typename loss, bool writes, int most, int least> ALWAYS_INLINE void run_sizes(const cuda_row *job) {
    extern __shared__ __align__(16) unsigned char shared_memory[];
    few_sum sum = {};
    if (writes && is_done_before(job))
        return;
    run_of_size<loss, writes, most, least>(job, &sum);
    if (job->sums) {
        __syncthreads();
        end_few(job, &sum, (real *)shared_memory);
    }
}

#endif

#endif
