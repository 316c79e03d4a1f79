/*
 * Rows of any types and strides, of any number of classes, with all outputs: a block has a row at a time, and its tiles
 * go through shared memory.
 */
#ifndef ONEPASS_CUDA_ROWS_ANY_H
#define ONEPASS_CUDA_ROWS_ANY_H

#include "cuda/rows/dense.h"

/* Logits of a tile, capped. */
ALWAYS_INLINE own_range gather_capped(const cuda_row *job, const row *row, const tile *tile, own_numbers x,
                                      own_numbers slope) {
    const own_range range = gather_logits<ROW_ANYHOW>(job, row->input, tile, x);
    if (REAL(job->softmax.softcap) == 0)
        return range;
    cap_logits(job, tile, x, slope);
    return range_of(tile, x);
}

/* ------------------------------------------------------------------- sums -- */

/* The sums of the tiles from `first` on, as many as can wait. */
template <row_kind kind>
ALWAYS_INLINE void sum_span(const cuda_row *job, const row *row, int64_t first, int tiles, real *buffer,
                            const waiting *waiting) {
    const place_in_block at = here_in_block();
    if (kind == ROW_LABEL && job->shard == SHARD_VALUE) {
        recall_numbers(job, row, first, tiles, waiting);
        return;
    }
#pragma unroll 1
    for (int t = at.warp; t < tiles; t += at.warps) {
        const tile tile = row_tile_at(first + t, job->classes, at.thread, buffer);
        own_numbers x, u, slope;
        tile_sums sums;
        const own_range range = gather_capped(job, row, &tile, x, slope);
        if (job->weighs)
            gather_weights<kind, ROW_ANYHOW>(job, row->target, &tile, u);
        sum_tile<kind, false>(job, row->label, &tile, range, job->weighs ? WEIGHS_EACH : WEIGHS_NOTHING, x, u, &sums);
        leave_tile<kind>(waiting, t, at.thread, job->weighs, &sums);
    }
}

/* The largest logit of a row of more tiles than can wait, in a pass of its own. `largest` has a place for each warp. */
ALWAYS_INLINE real largest_of_row(const cuda_row *job, const row *row, real *buffer, real *largest) {
    const place_in_block at = here_in_block();
    real own = -REAL_INFINITY;
#pragma unroll 1
    for (int64_t t = at.warp; t < job->tiles; t += at.warps) {
        if (job->shard == SHARD_VALUE) {
            own = larger_or_nan(own, (real)*numbers_of_tile(job, row->index, t));
            continue;
        }
        const tile tile = row_tile_at(t, job->classes, at.thread, buffer);
        own_numbers x, slope;
        const own_range range = gather_capped(job, row, &tile, x, slope);
        own = larger_or_nan(own, warp_largest_or_nan(range.largest));
    }
    if (at.thread == 0)
        largest[at.warp] = own;
    __syncthreads();
    own = -REAL_INFINITY;
    for (int w = 0; w < at.warps; w++)
        own = larger_or_nan(own, largest[w]);
    __syncthreads();
    return own;
}

/* A row of more tiles than can wait: its spans are joined one after the other, and then their nodes. The label's tile
 * tells its largest logit when it comes by. By all warps; the first one has the result. */
template <row_kind kind>
ALWAYS_INLINE void sum_spans(const cuda_row *job, const row *row, real label_logit, real *buffer,
                             const waiting *waiting, order_stack *stack, row_sum *sum) {
    const place_in_block at = here_in_block();
    begin_join(job, largest_of_row(job, row, buffer, waiting->largest), label_logit, sum);
    if (threadIdx.x == 0)
        for (int k = 0; k < 4; k++)
            stack[k].depth = 0, stack[k].tiles = 0;
#pragma unroll 1
    for (int64_t first = 0; first < job->tiles; first += CUDA_MOST_ROW_TILES) {
        const int64_t left = job->tiles - first;
        const int tiles = left < CUDA_MOST_ROW_TILES ? (int)left : CUDA_MOST_ROW_TILES;
        sum_span<kind>(job, row, first, tiles, buffer, waiting);
        __syncthreads();
        if (at.warp == 0) {
            const tile_parts sums = join_tiles<kind>(job, waiting, 0, tiles, at.thread, job->weighs, sum);
            const int64_t label_tile = row->label / ORDER_TILE - first;
            if (kind == ROW_LABEL && label_tile >= 0 && label_tile < tiles)
                sum->own = own_part(job, waiting->largest[label_tile], label_logit, sum->exponent);
            if (at.thread == 0) {
                order_push(&stack[0], sums.others);
                order_push(&stack[1], sums.weights);
                order_push(&stack[2], sums.weighted);
                order_push(&stack[3], sums.leading);
            }
        }
        __syncthreads();
    }
    const tile_parts sums = {order_top(&stack[0]), order_top(&stack[3]), order_top(&stack[1]), order_top(&stack[2])};
    end_join<kind>(&sums, job->weighs, sum);
}

/* ---------------------------------------------------------------- gradients -- */

/* The label's slope takes its place among the others. */
ALWAYS_INLINE void place_label(const row *row, const tile *tile, real own_slope, own_numbers x) {
    const int64_t place = row->label - tile->index * ORDER_TILE;
    EACH_NUMBER if (own_element(tile, line, own) == place) x[line][own] = own_slope;
}

ALWAYS_INLINE void logit_gradient(const cuda_row *job, const row *row, const tile *tile, own_range range,
                                  const joined_row *joined, own_numbers x, const own_numbers u,
                                  const own_numbers slope) {
    const softmax_shift shift = shift_of(job, largest_of_tile(job, row, tile, warp_largest_or_nan(range.largest)));
    const real f = row_tile_factor(&joined->factors, shift.exponent, joined->exponent);
    const softmax softmax = softmax_of_job(job);
    exponentiate(&softmax, &shift, tile, false, x);
    if (job->weighs)
        EACH_NUMBER x[line][own] = canonical(x[line][own] * f - u[line][own] * joined->factors.of_weights);
    else
        EACH_NUMBER x[line][own] = canonical(x[line][own] * f);
    place_label(row, tile, canonical(joined->factors.own), x);
    if (REAL(job->softmax.softcap) != 0)
        EACH_NUMBER x[line][own] = canonical(x[line][own] * slope[line][own]);
    scale_gradient(row->upstream, false, x);
    scatter_gradient<ROW_ANYHOW>(job, row->gradient, 0, tile, false, x);
}

/* slope of q_c = (1 - s) w_c (lse - z_c). */
ALWAYS_INLINE void probability_gradient(const cuda_row *job, const row *row, int64_t offset, const tile *tile,
                                        double largest, double above, const own_numbers x) {
    own_numbers w;
    const double common = row->weight * per_divisor_of(job) * (1 - job->smoothing);
    gather_class_weights<ROW_ANYHOW>(job, tile, w);
    EACH_NUMBER {
        const double distance = row_distance(&job->softmax.scale, largest, above, (double)x[line][own]);
        w[line][own] = canonical((real)(distance * (double)w[line][own] * common));
    }
    scale_gradient(row->upstream, false, w);
    scatter_gradient<ROW_ANYHOW>(job, offset, 1, tile, false, w);
}

/* Every class of a row that has no softmax, or takes no part, gets one number. */
ALWAYS_INLINE void fill_gradients(const cuda_row *job, const row *row, int64_t target_gradient, real number,
                                  real *buffer) {
    const place_in_block at = here_in_block();
#pragma unroll 1
    for (int64_t t = at.warp; t < job->tiles; t += at.warps) {
        const tile tile = row_tile_at(t, job->classes, at.thread, buffer);
        if (job->data[CUDA_ROW_GRADIENT])
            fill_gradient<ROW_ANYHOW>(job, row->gradient, 0, &tile, number);
        if (job->data[CUDA_ROW_GRADIENT + 1])
            fill_gradient<ROW_ANYHOW>(job, target_gradient, 1, &tile, number);
    }
}

template <row_kind kind>
ALWAYS_INLINE void write_gradients(const cuda_row *job, const row *row, int64_t target_gradient,
                                   const joined_row *joined, double largest, double above, real *buffer) {
    const place_in_block at = here_in_block();
#pragma unroll 1
    for (int64_t t = at.warp; t < job->tiles; t += at.warps) {
        const tile tile = row_tile_at(t, job->classes, at.thread, buffer);
        own_numbers x, u, slope;
        if (kind == ROW_PROBABILITIES && job->data[CUDA_ROW_GRADIENT + 1]) {
            gather_capped(job, row, &tile, x, slope);
            probability_gradient(job, row, target_gradient, &tile, largest, above, x);
        }
        if (job->data[CUDA_ROW_GRADIENT]) {
            const own_range range = gather_capped(job, row, &tile, x, slope);
            if (job->weighs)
                gather_weights<kind, ROW_ANYHOW>(job, row->target, &tile, u);
            logit_gradient(job, row, &tile, range, joined, x, u, slope);
        }
    }
}

/* ---------------------------------------------------------------------- rows -- */

/* What the block's first warp has found out of a row, for all of it. */
typedef struct any_row {
    joined_row joined;
    double largest, above; /* the largest logit, and lse - largest */
} any_row;

template <typename loss>
ALWAYS_INLINE void sum_row(const cuda_row *job, const row *row, real label_logit, real *buffer, const waiting *waiting,
                           order_stack *stack, row_sum *sum) {
    const place_in_block at = here_in_block();
    if (job->tiles <= CUDA_MOST_ROW_TILES) {
        sum_span<loss::KIND>(job, row, 0, (int)job->tiles, buffer, waiting);
        __syncthreads();
        if (at.warp == 0)
            join_row<loss::KIND>(job, *waiting, 0, (int)job->tiles, at.thread, job->weighs, row->label, label_logit,
                                 sum);
    } else {
        sum_spans<loss::KIND>(job, row, label_logit, buffer, waiting, stack, sum);
    }
}

/* Where classes are shared out. */
template <row_kind kind>
ALWAYS_INLINE void leave_any_row(const cuda_row *job, const row *row, real *buffer, const waiting *waiting) {
#pragma unroll 1
    for (int64_t first = 0; first < job->tiles; first += CUDA_MOST_ROW_TILES) {
        const int64_t left = job->tiles - first;
        const int tiles = left < CUDA_MOST_ROW_TILES ? (int)left : CUDA_MOST_ROW_TILES;
        if (row->part == ROW_COUNTS)
            sum_span<kind>(job, row, first, tiles, buffer, waiting);
        __syncthreads();
#pragma unroll 1
        for (int t = (int)threadIdx.x; t < tiles; t += (int)blockDim.x)
            leave_numbers(job, row, *waiting, t, first + t);
        __syncthreads();
    }
    if (threadIdx.x == 0)
        leave_label_logit(job, row);
}

/* By one thread. */
template <typename loss>
ONCE_A_ROW void tell_any_row(const cuda_row *job, const row *row, int64_t index, const row_sum *sum, any_row *told) {
    row_facts facts = facts_of(job, row, sum);
    const double per_divisor = per_divisor_of(job);
    if (job->reads_state && job->state) {
        told->joined.good = read_state(job, index, &facts);
        told->joined.factors = slopes_of_row<loss>(job, per_divisor, row, &facts);
    } else {
        told->joined.good = sum->good;
        told->joined.factors = factors_of_row<loss>(job, per_divisor, row, sum);
    }
    told->joined.exponent = facts.exponent;
    told->largest = facts.row.largest;
    if (loss::KIND == ROW_PROBABILITIES) {
        const softmax softmax = softmax_of_job(job);
        told->above = row_above(&softmax, &job->softmax.scale, &facts.row);
    }
}

template <typename loss>
ALWAYS_INLINE void run_any_row(const cuda_row *job, const row *row, int64_t index, real *buffer, const waiting *waiting,
                               order_stack *stack, any_row *told, row_sum *sum) {
    const bool has_gradient = job->data[CUDA_ROW_GRADIENT] || job->data[CUDA_ROW_GRADIENT + 1];
    const bool from_state = job->reads_state && job->state, counts = row->part == ROW_COUNTS;
    const int64_t target_gradient =
        job->data[CUDA_ROW_GRADIENT + 1] ? row_offset(job, CUDA_ROW_GRADIENT + 1, index) : 0;
    const real label_logit = row_logit(job, row);
    if (loss::KIND == ROW_LABEL && job->shard == SHARD_SUMS) {
        leave_any_row<loss::KIND>(job, row, buffer, waiting);
        return;
    }
    __syncthreads(); /* nobody writes a gradient before all have read what it may lie over */
    if (counts) {
        row_sum own_sum = {};
        own_sum.label_logit = label_logit; /* a state has it not */
        if (!from_state)
            sum_row<loss>(job, row, label_logit, buffer, waiting, stack, &own_sum);
        if (threadIdx.x == 0) {
            *sum = own_sum;
            tell_any_row<loss>(job, row, index, sum, told);
        }
        __syncthreads();
    }
    if (has_gradient && (!counts || !told->joined.good))
        fill_gradients(job, row, target_gradient, row->part == ROW_IGNORED ? 0 : REAL_NAN, buffer);
    else if (has_gradient)
        write_gradients<loss::KIND>(job, row, target_gradient, &told->joined, told->largest, told->above, buffer);
    if (threadIdx.x == 0 && !from_state)
        finish_row<loss>(job, row, index, sum);
    __syncthreads();
}

template <typename loss> ALWAYS_INLINE void run_any(const cuda_row *job) {
    WAITING_TILES(CUDA_MOST_ROW_TILES, true);
    __shared__ any_row told;
    __shared__ row row;
    __shared__ row_sum sum;
    __shared__ order_stack stack[4];
    __shared__ __align__(16) real buffers[CUDA_ANY_WARPS(sizeof(real))][ORDER_TILE];
    if (is_done_before(job))
        return;
    const row_group group = group_of_block(job);
    real *buffer = buffers[threadIdx.x / ORDER_WARP];
#pragma unroll 1
    for (int i = 0; i < group.count; i++) {
        if (threadIdx.x == 0)
            describe_row<loss::KIND>(job, group.first + i, &row);
        __syncthreads();
        run_any_row<loss>(job, &row, group.first + i, buffer, &waiting, stack, &told, &sum);
    }
}

#endif
