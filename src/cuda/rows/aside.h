/*
 * Rows of more classes than registers hold, of one tile, which lie side by side as in images: a warp has neighbouring
 * rows, a thread each, and some of their classes, neighbouring threads neighbouring numbers. A team of warps shares out
 * the classes, and keeps them in registers from the one time that they are read.
 */
#ifndef ONEPASS_CUDA_ROWS_ASIDE_H
#define ONEPASS_CUDA_ROWS_ASIDE_H

#include "cuda/rows/few.h"

#if !defined(ONEPASS_REAL_F64)

/* What a block knows of its rows, and what its warps tell each other of those that they have at a time. */
template <int warps, int most> struct aside_block {
    row rows[most];
    real label_logit[most], largest[most];
    double others[most];
    few_slopes slopes[most];
    real largest_of_warp[warps][ORDER_WARP];
    double sum_of_warp[warps][ORDER_WARP];
};

/* A thread's part of a row: every class that is `team` further, from that of its warp in the team on. They go by fours,
 * as EACH_CLASS has it: what is kept of further ones is 0. */
typedef struct aside_part {
    int warp, team, log2_team; /* how many warps a team has */
    int classes;
} aside_part;

ALWAYS_INLINE aside_part aside_part_of(const cuda_row *job, bool is_there) {
    aside_part part;
    part.log2_team = job->group;
    part.team = 1 << part.log2_team;
    part.warp = (int)threadIdx.x / ORDER_WARP & (part.team - 1);
    part.classes = is_there ? ((int)job->classes + part.team - 1 - part.warp) >> part.log2_team : 0;
    return part;
}

/* A bit for the place of a class among those that are kept, if it is one. Predicates are made of seven bits at a time,
 * while each comparison with a place would make one. */
ALWAYS_INLINE unsigned place_kept(const aside_part *part, int label) {
    static_assert(CUDA_ASIDE_KEPT <= 32, "a bit for each");
    return label >= 0 && (label & (part->team - 1)) == part->warp ? 1u << (label >> part->log2_team) : 0;
}

/* -------------------------------------------------------------- in and out -- */

/* Numbers as they are: what is made of them waits for the last. */
template <typename number>
ALWAYS_INLINE void read_kept(int classes, const number *from, int step, number otherwise, number *x) {
    constexpr int most = CUDA_ASIDE_KEPT;
    EACH_FOUR_CLASSES(x[c] = *stepped(from, step, c), x[c] = c < classes ? *stepped(from, step, c) : otherwise)
}

ALWAYS_INLINE void read_kept_halves(int classes, const uint16_t *from, int step, bool f16, real *x) {
    constexpr int most = CUDA_ASIDE_KEPT;
    uint16_t half[most] = {};
    read_kept(classes, from, step, (uint16_t)(f16 ? 0xfc00u : 0xff80u), half); /* -inf */
    if (f16) {
        EACH_CLASS x[c] = f32_of_f16(half[c]);
    } else {
        EACH_CLASS x[c] = f32_of((uint32_t)half[c] << 16);
    }
}

ALWAYS_INLINE void read_aside(const cuda_row *job, const aside_part *part, int64_t offset, real *x) {
    const int step = (int)job->class_stride[0] << part->log2_team;
    const int64_t first = offset + part->warp * job->class_stride[0];
    const void *from = job->data[CUDA_ROW_INPUT];
    if (job->dtype[CUDA_ROW_INPUT] == ONEPASS_F32) /* a double would be computed with in double */
        read_kept(part->classes, (const real *)from + first, step, -REAL_INFINITY, x);
    else
        read_kept_halves(part->classes, (const uint16_t *)from + first, step, job->dtype[CUDA_ROW_INPUT] == ONEPASS_F16,
                         x);
}

template <typename number> ALWAYS_INLINE void store_kept(int classes, number *to, int step, const real *x) {
    constexpr int most = CUDA_ASIDE_KEPT;
    EACH_FOUR_CLASSES(*stepped(to, step, c) = (number)x[c], if (c < classes) * stepped(to, step, c) = (number)x[c])
}

/* Numbers are rounded two at a time: the compiler sees that each two are the same. */
#define HALF_KEPT(c) ((uint16_t)(pack_two(f16, x[(c) & ~1], x[(c) | 1]) >> ((c)&1) * 16))

template <bool f16> ALWAYS_INLINE void store_kept_halves(int classes, uint16_t *to, int step, const real *x) {
    constexpr int most = CUDA_ASIDE_KEPT;
    EACH_FOUR_CLASSES(*stepped(to, step, c) = HALF_KEPT(c), if (c < classes) * stepped(to, step, c) = HALF_KEPT(c))
}

ALWAYS_INLINE void store_aside(const cuda_row *job, const aside_part *part, int64_t offset, const real *x) {
    const int step = (int)job->gradient_stride[0] << part->log2_team;
    const int64_t first = offset + part->warp * job->gradient_stride[0];
    void *to = job->data[CUDA_ROW_GRADIENT];
    switch (job->dtype[CUDA_ROW_GRADIENT]) {
    case ONEPASS_F32:
        store_kept(part->classes, (float *)to + first, step, x);
        break;
    case ONEPASS_BF16:
        store_kept_halves<false>(part->classes, (uint16_t *)to + first, step, x);
        break;
    case ONEPASS_F16:
        store_kept_halves<true>(part->classes, (uint16_t *)to + first, step, x);
        break;
    default:
        store_kept(part->classes, (double *)to + first, step, x);
    }
}

/* -------------------------------------------------------------------- sums -- */

/* The order's tree over lanes, those from the first on that are `step` apart: loops would not be unrolled. */
template <int count, int step> struct tree_by_halves {
    ALWAYS_INLINE double sum(const double *lane) {
        return tree_by_halves<count, 2 * step>::sum(lane) + tree_by_halves<count, 2 * step>::sum(lane + step);
    }
};
template <int count> struct tree_by_halves<count, count> {
    ALWAYS_INLINE double sum(const double *lane) {
        return *lane;
    }
};

/* A lane of the tile: neighbouring lines, and then what they come to. */
template <int lanes, int lines> struct tree_of_lines {
    ALWAYS_INLINE real sum(const real *x) {
        return tree_of_lines<lanes, lines / 2>::sum(x) + tree_of_lines<lanes, lines / 2>::sum(x + lines / 2 * lanes);
    }
};
template <int lanes> struct tree_of_lines<lanes, 1> {
    ALWAYS_INLINE real sum(const real *x) {
        return *x;
    }
};

/* The tree over the lanes of a thread; what remains of it is over the warps of a team. */
template <int team> ALWAYS_INLINE double sum_kept(const real *x) {
    constexpr int lanes = ORDER_LANES / team;
    double lane[lanes];
#pragma unroll
    for (int i = 0; i < lanes; i++)
        lane[i] = (double)tree_of_lines<lanes, CUDA_ASIDE_KEPT / lanes>::sum(x + i);
    return tree_by_halves<lanes, 1>::sum(lane);
}

template <int team> ALWAYS_INLINE real largest_of_team(const real (*of_warp)[ORDER_WARP], int thread) {
    real largest = of_warp[0][thread];
#pragma unroll
    for (int w = 1; w < team; w++)
        largest = larger_or_nan(largest, of_warp[w][thread]);
    return largest;
}

template <int team> ALWAYS_INLINE double sum_of_team(const double (*of_warp)[ORDER_WARP], int thread) {
    double sum[team];
#pragma unroll
    for (int w = 0; w < team; w++)
        sum[w] = of_warp[w][thread];
    return tree_by_halves<team, 1>::sum(sum);
}

/* From logits to exponentials, the label's 0, and their sum. */
template <int warps>
ALWAYS_INLINE double exponentiate_kept(const cuda_row *job, const aside_part *part, const softmax_shift *shift,
                                       int label, real *x) {
    constexpr int most = CUDA_ASIDE_KEPT;
    const int classes = part->classes;
    const unsigned own = place_kept(part, label);
    const softmax softmax = softmax_of_job(job);
    if (shift->anchor != 0)
        EACH_CLASS x[c] = x[c] - shift->anchor;
    EACH_CLASS x[c] = softmax_exponential(&softmax, shift, x[c]);
    EACH_CLASS x[c] = own >> c & 1 ? 0 : x[c];
    return part->team == warps ? sum_kept<warps>(x) : sum_kept<warps / 2>(x);
}

/* What a row's parts come to. */
template <typename block> ALWAYS_INLINE row_sum sum_of_row(const cuda_row *job, const block *shared, int i) {
    row_sum sum = {};
    if (shared->rows[i].part != ROW_COUNTS)
        return sum;
    const softmax softmax = softmax_of_job(job);
    const softmax_shift shift = shift_of(job, shared->largest[i]);
    sum.exponent = shift.exponent;
    sum.good = shift.exponent - shift.exponent == 0;
    sum.largest = shift.largest;
    sum.label_logit = shared->label_logit[i];
    sum.others = shared->others[i];
    sum.own = (double)softmax_exponential(&softmax, &shift, sum.label_logit - shift.anchor);
    return sum;
}

/* -------------------------------------------------------------------- rows -- */

/* From exponentials to slopes. */
ALWAYS_INLINE void write_aside(const cuda_row *job, const aside_part *part, const row *row, const few_slopes *slopes,
                               real *x) {
    constexpr int most = CUDA_ASIDE_KEPT;
    const unsigned own = place_kept(part, row->part == ROW_COUNTS ? (int)row->label : -1);
    const int classes = part->classes;
    few_gradient<most>(classes, slopes, x);
    EACH_CLASS x[c] = own >> c & 1 ? slopes->own : x[c];
    store_aside(job, part, row->gradient, x);
}

/* One row a thread, of which the team's other warps have the rest. Warps take turns at what is done once a row. */
template <typename loss, int warps, typename block>
ALWAYS_INLINE void run_team(const cuda_row *job, int i, bool is_there, int turn, block *shared) {
    constexpr int most = CUDA_ASIDE_KEPT;
    const place_in_block at = here_in_block();
    const aside_part part = aside_part_of(job, is_there);
    const int first_warp = at.warp - part.warp, classes = part.classes;
    const row *row = &shared->rows[i];
    const bool joins = is_there && (turn & (part.team - 1)) == part.warp;
    real x[most] = {}, largest = -REAL_INFINITY;
    read_aside(job, &part, row->input, x);
    EACH_CLASS largest = larger_or_nan(largest, x[c]);
    shared->largest_of_warp[at.warp][at.thread] = largest;
    __syncthreads();
    largest = part.team == warps ? largest_of_team<warps>(shared->largest_of_warp, at.thread)
                                 : largest_of_team<warps / 2>(shared->largest_of_warp + first_warp, at.thread);
    const softmax_shift shift = shift_of(job, largest);
    const int label = is_there && row->part == ROW_COUNTS ? (int)row->label : -1;
    shared->sum_of_warp[at.warp][at.thread] = exponentiate_kept<warps>(job, &part, &shift, label, x);
    __syncthreads();
    if (joins) {
        shared->largest[i] = largest;
        shared->others[i] = part.team == warps ? sum_of_team<warps>(shared->sum_of_warp, at.thread)
                                               : sum_of_team<warps / 2>(shared->sum_of_warp + first_warp, at.thread);
    }
    if (!job->data[CUDA_ROW_GRADIENT])
        return;
    if (joins) {
        const row_sum sum = sum_of_row(job, shared, i);
        shared->slopes[i] = few_slopes_of<loss>(job, per_divisor_of(job), row, &sum);
    }
    __syncthreads();
    if (is_there)
        write_aside(job, &part, row, &shared->slopes[i], x);
}

template <typename loss, int warps, typename block>
ALWAYS_INLINE void run_block_aside(const cuda_row *job, int64_t first, block *shared) {
    const int64_t left = job->rows - first;
    const int most = job->lines * ORDER_WARP, rows = left < most ? (int)left : most, thread = (int)threadIdx.x;
    const int at_a_time = (warps >> job->group) * ORDER_WARP;
    const int own = (thread / ORDER_WARP >> job->group) * ORDER_WARP + thread % ORDER_WARP;
    if (thread < rows) {
        describe_row<ROW_LABEL>(job, first + thread, &shared->rows[thread]);
        shared->label_logit[thread] = row_logit(job, &shared->rows[thread]);
    }
    __syncthreads();
#pragma unroll 1
    for (int base = 0, turn = 0; base < rows; base += at_a_time, turn++) {
        const int i = base + own;
        run_team<loss, warps>(job, i < rows ? i : 0, i < rows, turn, shared);
    }
    __syncthreads();
    if (thread < rows) {
        const row_sum sum = sum_of_row(job, shared, thread);
        finish_row<loss>(job, &shared->rows[thread], first + thread, &sum);
    }
}

template <typename loss, int warps> ALWAYS_INLINE void run_aside(const cuda_row *job) {
    __shared__ aside_block<warps, CUDA_ASIDE_ROWS> shared;
    if (is_done_before(job))
        return;
    const int64_t rows = (int64_t)job->lines * ORDER_WARP;
#pragma unroll 1
    for (int64_t first = blockIdx.x * rows; first < job->rows; first += gridDim.x * rows) {
        run_block_aside<loss, warps>(job, first, &shared);
        __syncthreads(); /* before the next rows */
    }
}

#endif

#endif
