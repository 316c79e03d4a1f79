/*
 * Rows of few classes: a thread has a row, with all its classes in registers. A block goes over its rows line by line,
 * and sends for the next line before it computes one; of many rows it has a tile, and adds up their terms.
 */
#ifndef ONEPASS_CUDA_ROWS_FEW_H
#define ONEPASS_CUDA_ROWS_FEW_H

#include "cuda/rows/stage.h"

/* Classes go by fours, so that nothing is asked for each: those of the last four that the row does not have are -inf.
 */
#define EACH_CLASS                                                                                                     \
    _Pragma("unroll") for (int four = 0; four < most; four += 4) if (four < classes)                                   \
        _Pragma("unroll") for (int c = four; c < four + 4; c++)

/* -------------------------------------------------------------------- a row -- */

/* Four lanes that are neighbours, of those that are there. */
#define EACH_OF_FOUR _Pragma("unroll") for (int c = 0; c < 4; c++)

template <int first, int most> ALWAYS_INLINE void begin_four(int classes, const real *x, double *sum) {
    EACH_OF_FOUR sum[c] = 0;
    if (first < most && first < classes)
        EACH_OF_FOUR sum[c] = (double)x[first < most ? first + c : 0];
}

template <int first, int most> ALWAYS_INLINE void add_four(int classes, const real *x, double *sum) {
    if (first < most && first < classes)
        EACH_OF_FOUR sum[c] = sum[c] + (double)x[first < most ? first + c : 0];
}

template <int first> ALWAYS_INLINE void join_fours(int classes, const double *other, double *sum) {
    if (first < classes)
        EACH_OF_FOUR sum[c] = sum[c] + other[c];
}

/* The order's tree over lanes of which only the first have a term: 16 apart, 8, 4, and within a four. Few of its nodes
 * are there at the same time. */
template <int most> ALWAYS_INLINE double sum_of_few(int classes, const real *x) {
    double sum[4], other[4], half[4];
    begin_four<0, most>(classes, x, sum);
    add_four<16, most>(classes, x, sum);
    begin_four<8, most>(classes, x, other);
    add_four<24, most>(classes, x, other);
    join_fours<8>(classes, other, sum);
    begin_four<4, most>(classes, x, half);
    add_four<20, most>(classes, x, half);
    begin_four<12, most>(classes, x, other);
    add_four<28, most>(classes, x, other);
    join_fours<12>(classes, other, half);
    join_fours<4>(classes, half, sum);
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

/* The logits of all classes but the label's become exponentials. */
template <int most>
ALWAYS_INLINE void sum_few(const cuda_row *job, real label_logit, softmax_shift *shift, real *x, row_sum *sum) {
    const int classes = (int)job->classes;
    const softmax softmax = softmax_of_job(job);
    real largest = label_logit;
    EACH_CLASS largest = larger_or_nan(largest, x[c]);
    *shift = shift_of(job, largest);
    if (shift->anchor != 0)
        EACH_CLASS x[c] = x[c] - shift->anchor;
    EACH_CLASS x[c] = softmax_exponential(&softmax, shift, x[c]);
    sum->exponent = shift->exponent;
    sum->good = shift->exponent - shift->exponent == 0;
    sum->largest = shift->largest;
    sum->label_logit = label_logit;
    sum->others = sum_of_few<most>(classes, x);
    sum->own = (double)softmax_exponential(&softmax, shift, label_logit - shift->anchor);
    sum->weights = sum->weighted = 0;
}

/* The value of a row, as settle_row() has it. */
template <typename loss> ALWAYS_INLINE double few_value(const cuda_row *job, const row *row, const row_sum *sum) {
    if (row->part != ROW_COUNTS || !sum->good)
        return row->part == ROW_IGNORED ? 0 : WIDE_NAN;
    const row_facts facts = facts_of(job, row, sum);
    const row_sums sums = row_sums_of_state(&job->softmax.scale, &facts, 0);
    row_slopes slopes;
    loss::row(&sums, job->parameter, &slopes);
    return slopes.value;
}

/* What becomes of a row's exponentials; a row that has no softmax, or takes no part, has one number for all. */
typedef struct few_slopes {
    real f, own, upstream, otherwise;
    bool plain;
} few_slopes;

template <typename loss>
ALWAYS_INLINE few_slopes few_slopes_of(const cuda_row *job, double per_divisor, const row *row, const row_sum *sum) {
    few_slopes slopes = {0, 0, row->upstream, row->part == ROW_IGNORED ? 0 : REAL_NAN, false};
    if (row->part != ROW_COUNTS)
        return slopes;
    const row_factors factors = factors_of_row<loss>(job, per_divisor, row, sum);
    slopes.f = (real)factors.of_exponentials;
    slopes.own = canonical(factors.own);
    slopes.plain = sum->good;
    if (row->upstream != 1)
        slopes.own = canonical(slopes.own * row->upstream);
    if (!slopes.plain)
        slopes.own = slopes.otherwise;
    return slopes;
}

template <int most> ALWAYS_INLINE void few_gradient(int classes, const few_slopes *slopes, real *x) {
    const real f = slopes->f, upstream = slopes->upstream;
    if (slopes->plain && is_finite(f) && upstream == 1) {
        EACH_CLASS x[c] = x[c] * f;
    } else if (slopes->plain) {
        EACH_CLASS {
            x[c] = canonical(x[c] * f);
            if (upstream != 1)
                x[c] = canonical(x[c] * upstream);
        }
    } else {
        EACH_CLASS x[c] = slopes->otherwise;
    }
}

/* Gradients of rows side by side go straight to their places. */
template <int most, int dtype>
ALWAYS_INLINE void store_each_class(int classes, char *first, int64_t offset, int stride, const real *x) {
    char *to = first + offset * (int64_t)dtype_size(dtype);
    EACH_FOUR_CLASSES(store_one(dtype, to, (int64_t)c * stride, x[c]),
                      if (c < classes) store_one(dtype, to, (int64_t)c * stride, x[c]))
}

template <int most> ALWAYS_INLINE void store_few_classes(const cuda_row *job, int64_t offset, const real *x) {
    const int classes = (int)job->classes, stride = anew((int)job->gradient_stride[0]);
    char *to = (char *)job->data[CUDA_ROW_GRADIENT];
    switch (job->dtype[CUDA_ROW_GRADIENT]) {
    case ONEPASS_F32:
        store_each_class<most, ONEPASS_F32>(classes, to, offset, stride, x);
        break;
    case ONEPASS_BF16:
        store_each_class<most, ONEPASS_BF16>(classes, to, offset, stride, x);
        break;
    case ONEPASS_F16:
        store_each_class<most, ONEPASS_F16>(classes, to, offset, stride, x);
        break;
    default:
        store_each_class<most, ONEPASS_F64>(classes, to, offset, stride, x);
    }
}

/* ------------------------------------------------------------ what is known -- */

/* Where a thread is among rows that lie side by side, in the logits as in their gradient: it comes to every 128th. */
typedef struct few_walk {
    int64_t offset; /* of the row's first class */
    int inside;     /* its place among its neighbours in memory */
} few_walk;

ALWAYS_INLINE few_walk begin_walk(const cuda_row *job, int64_t index) {
    const cuda_view *view = &job->view[CUDA_ROW_INPUT];
    few_walk walk = {index, 0};
    if (view->ndim == 2) {
        const int64_t outer = divide(index, &view->by[1]);
        walk.inside = (int)(index - outer * view->extent[1]);
        walk.offset = outer * view->stride[0] + walk.inside;
    }
    return walk;
}

ALWAYS_INLINE void step_walk(const cuda_row *job, few_walk *walk) {
    const cuda_view *view = &job->view[CUDA_ROW_INPUT];
    const int extent = (int)view->extent[1];
    walk->offset += FEW_THREADS;
    walk->inside += FEW_THREADS;
    if (view->ndim == 2 && walk->inside >= extent) {
        walk->inside -= extent;
        walk->offset += view->stride[0] - extent;
    }
}

/* Where a row of the thread's own is. */
ALWAYS_INLINE int64_t few_offset(const cuda_row *job, int64_t index, const few_walk *walk) {
    return job->simple ? walk->offset : row_offset(job, CUDA_ROW_INPUT, index);
}

/* The label of a row of which there is nothing else to know. */
ALWAYS_INLINE int64_t simple_label(const cuda_row *job, int64_t index) {
    return load_index(job->data[CUDA_ROW_TARGET], job->dtype[CUDA_ROW_TARGET], index);
}

ALWAYS_INLINE row describe_few(const cuda_row *job, int64_t index, int64_t label, int64_t offset, real upstream) {
    if (!job->simple)
        return describe_row_here<ROW_LABEL>(job, index);
    row row = {};
    row.label = label;
    row.part = part_of_label(job, label);
    row.input = row.gradient = offset;
    row.weight = row.class_weight = 1;
    row.upstream = upstream;
    return row;
}

/* ----------------------------------------------------------- a tile of rows -- */

/* What a thread adds up: its lane of a tile of rows, whose lines come one after the other, and how many take part. */
typedef struct few_sum {
    real two, four, eight;
    unsigned rows;
} few_sum;

ALWAYS_INLINE void add_few(int line, real term, few_sum *sum) {
    if (!(line & 1)) {
        sum->two = term;
    } else if (!(line & 2)) {
        sum->four = sum->two + term;
    } else if (!(line & 4)) {
        sum->eight = sum->four + (sum->two + term);
    } else {
        sum->eight = sum->eight + (sum->four + (sum->two + term));
    }
}

/* How many rows take part, where this launch finds that out. */
ALWAYS_INLINE void count_few(const cuda_row *job, unsigned rows) {
    if (!job->counts)
        return;
    for (int distance = ORDER_WARP / 2; distance > 0; distance /= 2)
        rows += __shfl_xor_sync(~0u, rows, distance);
    if (threadIdx.x % ORDER_WARP == 0)
        atomicAdd(count_of(job), (unsigned long long)rows);
}

/* The sum of a tile, by one warp, of lanes that lie in shared memory. */
ALWAYS_INLINE double sum_of_lanes(const real *lanes, int thread) {
    real lane[ORDER_OWN_LANES];
    EACH_OWN lane[own] = lanes[order_lane(thread, own)];
    return order_lanes(thread, lane);
}

/* The last block divides the total. */
ALWAYS_INLINE void end_total(const cuda_row *job, double sum) {
    if (job->counts)
        end_count(job);
    write_value(&job->total, job->over_weights ? sum / *weights_of(job) : sum);
}

/* The block's tile becomes part of the total. */
ALWAYS_INLINE void end_few(const cuda_row *job, const few_sum *own, real *lanes) {
    __shared__ double node[CUDA_MOST_NODES];
    const place_in_block at = here_in_block();
    lanes[threadIdx.x] = own->eight;
    count_few(job, own->rows);
    __syncthreads();
    double sum = 0;
    if (at.warp == 0)
        sum = sum_of_lanes(lanes, at.thread);
    if (has_total(&job->total, node, &sum))
        end_total(job, sum);
}

/* ---------------------------------------------------------------------- rows -- */

/* What a block knows all the time. */
typedef struct few_block {
    bool in_one_piece, plain, plain_gradient;
    int size;      /* of a buffer */
    int own, step; /* a thread's place in it, and from class to class there */
    real upstream;
} few_block;

ALWAYS_INLINE few_block few_block_of(const cuda_row *job) {
    few_block block;
    block.in_one_piece = job->group;
    block.plain = is_plain_few(job, CUDA_ROW_INPUT);
    block.plain_gradient = is_plain_few(job, CUDA_ROW_GRADIENT);
    block.size = FEW_THREADS * few_pitch((int)job->classes);
    block.own = block.in_one_piece ? (int)threadIdx.x * few_pitch((int)job->classes) : (int)threadIdx.x;
    block.step = block.in_one_piece ? 1 : FEW_THREADS;
    block.upstream = upstream_of_all(job);
    return block;
}

/* A row that is in its place in shared memory, where the label's logit gives way to what stands for no class. Returns
 * its value, if anybody asks for it; its gradient goes back to the place, or to where it belongs. */
template <typename loss, bool writes, int most>
ALWAYS_INLINE double run_few_row(const cuda_row *job, const few_block *block, int64_t index, const row *row,
                                 real *own) {
    const int classes = anew((int)job->classes);
    const bool in_one_piece = block->in_one_piece, counts = row->part == ROW_COUNTS;
    real *own_label = own + (int)row->label * block->step;
    real x[most], label_logit = -REAL_INFINITY;
    row_sum sum = {};
    softmax_shift shift;
    if (counts) {
        label_logit = *own_label;
        *own_label = -REAL_INFINITY;
    }
    read_few<most>(in_one_piece, classes, own, x);
    if (counts)
        sum_few<most>(job, label_logit, &shift, x, &sum);
    if (writes) {
        const few_slopes slopes = few_slopes_of<loss>(job, per_divisor_of(job), row, &sum);
        few_gradient<most>(classes, &slopes, x);
        if (in_one_piece) {
            write_few<most>(classes, x, own);
            if (counts)
                *own_label = slopes.own;
        } else {
            const int label = counts ? (int)row->label : -1;
            EACH_CLASS x[c] = c == label ? slopes.own : x[c];
            store_few_classes<most>(job, row->gradient, x);
        }
    }
    return !job->finishes ? 0 : job->simple ? few_value<loss>(job, row, &sum) : settle_row<loss>(job, row, index, &sum);
}

/* Sends for a line of as many rows as there are threads, or of those that are left. */
template <int most>
ALWAYS_INLINE void send_for_line(const cuda_row *job, const few_block *block, int64_t first, int count,
                                 const few_walk *walk, real *buffer) {
    if (block->in_one_piece) {
        const int64_t size = (int64_t)dtype_size(job->dtype[CUDA_ROW_INPUT]);
        const char *from = (const char *)job->data[CUDA_ROW_INPUT];
        fill_few<most>(job, from + first * (block->plain ? 4 : size) * (int)job->classes, block->plain, count, buffer);
    } else if ((int)threadIdx.x < count) {
        fill_aside<most>(job, few_offset(job, first + threadIdx.x, walk), buffer + threadIdx.x);
    }
}

/* Of so many rows from a line on, those that are in it. */
ALWAYS_INLINE int rows_of_line(int rows) {
    return rows < 0 ? 0 : rows < FEW_THREADS ? rows : FEW_THREADS;
}

/* A span of lines: each is sent for before the one before it is computed. */
template <typename loss, bool writes, int most>
ALWAYS_INLINE void run_few_span(const cuda_row *job, const few_block *block, int64_t first, int left, real *buffers,
                                few_sum *sum) {
    few_walk walk = {};
    int64_t label = 0;
    if (job->simple && !block->in_one_piece)
        walk = begin_walk(job, first + threadIdx.x);
    first -= FEW_THREADS;
#pragma unroll 1
    for (int line = -1; line < job->lines; line++, first += FEW_THREADS) {
        /* those from here on, and from the next line on */
        const int rows = left - line * FEW_THREADS, next = rows - FEW_THREADS;
        const bool has_row = line >= 0 && (int)threadIdx.x < rows;
        const int64_t index = first + threadIdx.x;
        real *buffer = buffers + (line & 1) * block->size;
        double value = 0;
        row row = {};
        if (line >= 0)
            wait_for_sent();
        if (block->in_one_piece)
            __syncthreads();
        if (has_row)
            row = describe_few(job, index, label, walk.offset, block->upstream);
        if (line + 1 < job->lines && next > 0) {
            if (line >= 0 && !block->in_one_piece)
                step_walk(job, &walk);
            if (job->simple && (int)threadIdx.x < next)
                label = simple_label(job, index + FEW_THREADS);
            send_for_line<most>(job, block, first + FEW_THREADS, rows_of_line(next), &walk,
                                buffers + (~line & 1) * block->size);
        }
        if (has_row) {
            value = run_few_row<loss, writes, most>(job, block, index, &row, buffer + block->own);
            sum->rows += row.part != ROW_IGNORED;
            if (!job->sums && job->finishes)
                write_term(job, index, value);
        }
        if (line >= 0)
            add_few(line, canonical((real)value), sum);
        if (writes && block->in_one_piece && line >= 0) {
            __syncthreads();
            empty_few<most>(job, first, block->plain_gradient, rows_of_line(rows), buffer);
        }
    }
}

/* Blocks take turns where there are fewer of them than rows ask for. One that adds up rows has a tile of them. */
template <typename loss, bool writes, int most> ALWAYS_INLINE void run_few(const cuda_row *job) {
    extern __shared__ __align__(16) unsigned char shared_memory[];
    real *buffers = (real *)shared_memory; /* two of as many places as CUDA_FEW_PITCH() says, or one for one line */
    if (writes && is_done_before(job))
        return;
    const few_block block = few_block_of(job);
    const int64_t rows = (int64_t)job->lines * FEW_THREADS;
    few_sum sum = {};
#pragma unroll 1
    for (int64_t first = blockIdx.x * rows; first < job->rows; first += gridDim.x * rows) {
        const int64_t left = job->rows - first;
        const int own = anew(left < rows ? (int)left : (int)rows); /* computed once, not for each line */
        run_few_span<loss, writes, most>(job, &block, first, own, buffers, &sum);
        __syncthreads();
    }
    if (job->sums)
        end_few(job, &sum, buffers);
}

#endif
