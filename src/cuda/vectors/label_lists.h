/*
 * Rows of scores and lists of labels: a warp has a tile, and goes through the list for it. The twin of
 * src/cpu/label_lists.h. All threads look at the same label, but where they mark the labels of a tile.
 */
#ifndef ONEPASS_CUDA_VECTORS_LABEL_LISTS_H
#define ONEPASS_CUDA_VECTORS_LABEL_LISTS_H

#include "cuda/vectors/tile.h"

/* How many labels a row has, before the first -1, and whether one of them is no class. */
typedef struct label_list {
    int64_t row, count;
    bool is_wrong;
} label_list;

ALWAYS_INLINE int64_t label_of(const cuda_vector *job, int64_t row, int64_t k) {
    const int which = CUDA_VECTOR_OPERAND + 1;
    const place at = vector_place(job, which, row * job->length + k);
    return load_index(vector_address(job, which, at.offset), job->dtype[which], 0);
}

static __device__ __noinline__ label_list labels_of_row(const cuda_vector *job, int64_t row) {
    label_list list = {row, 0, false};
    for (; list.count < job->length && !list.is_wrong; list.count++) {
        const int64_t label = label_of(job, row, list.count);
        if (label == -1)
            break;
        list.is_wrong = (uint64_t)label >= (uint64_t)job->length;
    }
    return list;
}

/* The k-th, with its score. */
ALWAYS_INLINE own_class label_at(const cuda_vector *job, const label_list *list, int64_t k) {
    const int which = CUDA_VECTOR_OPERAND;
    own_class label = {label_of(job, list->row, k), 0};
    const place at = vector_place(job, which, list->row * job->length + label.at);
    label.x = (real)load_scalar(vector_address(job, which, at.offset), job->dtype[which]);
    return label;
}

/* A tile in shared memory, with -inf in the labels' places, which lacks nothing. */
template <typename loss>
ALWAYS_INLINE vector_tile begin_others(const cuda_vector *job, const label_list *list, const tile *tile) {
    const vector_tile others = begin_tile<loss, VECTORS_ANYHOW>(job, list->row, tile);
#pragma unroll 1
    for (int64_t k = tile->thread; k < list->count; k += ORDER_WARP) {
        const own_class label = {label_of(job, list->row, k), 0};
        const int at = own_in_tile(&label, tile);
        if (at >= 0)
            ((real *)others.operand[0])[at] = -REAL_INFINITY;
    }
    __syncwarp();
    return others;
}

template <typename loss>
ALWAYS_INLINE void sum_over_labels(const cuda_vector *job, const double *parameter, int64_t row, const tile *tile,
                                   double *sum) {
    const label_list list = labels_of_row(job, row);
    sum[0] = list.is_wrong ? WIDE_NAN : 0;
    if (list.is_wrong)
        return;
    const vector_tile others = begin_others<loss>(job, &list, tile);
#pragma unroll 1
    for (int64_t k = 0; k < list.count; k++) {
        const own_class label = label_at(job, &list, k);
        double of_label[VECTOR_MOST_SUMS];
        sum_tile<loss, VECTORS_ANYHOW>(job, parameter, &others, &label, of_label);
        sum[0] = sum[0] + of_label[0];
    }
}

/* Adds 1 to the numbers of those elements of half a tile that have a slope together with a label. */
template <typename loss>
ALWAYS_INLINE void count_slopes(const double *parameter, const tile *tile, const own_class *label, int first,
                                half_tile *x, double (*number)[ORDER_OWN_LANES]) {
    const double one[VECTOR_MOST_FACTORS] = {1, 1, 1};
    place_own<loss>(label, tile, first, x);
    EACH_HALF_LINE EACH_OWN {
        const real operand[] = OWN_OPERANDS(x, i, own);
        const double slope = loss::slope(0, operand, parameter, one);
        number[i][own] += is_in(tile, first + i, own) ? slope : 0;
    }
}

/* With how many classes of the row a label has a slope. */
template <typename loss>
ALWAYS_INLINE double count_others(const cuda_vector *job, const double *parameter, const label_list *list,
                                  const own_class *label, int thread, real *buffer) {
    double number[HALF_TILE][ORDER_OWN_LANES] = {}, sum = 0;
#pragma unroll 1
    for (int64_t index = 0; index < job->tiles; index++) {
        const tile tile = vector_tile_at(job, index, thread, buffer);
        const vector_tile others = begin_others<loss>(job, list, &tile);
#pragma unroll 1
        for (int first = 0; first < ORDER_LINES; first += HALF_TILE) {
            half_tile x[loss::ELEMENTS];
            read_elements<VECTORS_ANYHOW, loss::VECTOR_COUNT, HALF_TILE>(job, 0, &others, first, x);
            count_slopes<loss>(parameter, &tile, label, first, x, number);
        }
    }
    EACH_HALF_LINE EACH_OWN sum += number[i][own];
    for (int distance = ORDER_WARP / 2; distance > 0; distance /= 2)
        sum += order_swap(sum, distance);
    return sum;
}

ALWAYS_INLINE real slope_of_number(double number, double factor, real upstream) {
    const real slope = canonical((real)(number * factor));
    return upstream != 1 ? canonical(slope * upstream) : slope;
}

/* Over the scores of labels, in shared memory. One that is given several times has as many slopes, and is written as
 * often. */
template <typename loss>
ALWAYS_INLINE void write_slopes_of_labels(const cuda_vector *job, const double *parameter, const label_list *list,
                                          const tile *tile, double factor, real upstream, real *slopes) {
#pragma unroll 1
    for (int64_t k = 0; k < list->count; k++) {
        const own_class label = label_at(job, list, k);
        const int at = own_in_tile(&label, tile);
        if (at < 0)
            continue;
        const double number = count_others<loss>(job, parameter, list, &label, tile->thread, slopes + ORDER_TILE);
        double times = 0;
#pragma unroll 1
        for (int64_t i = 0; i < list->count; i++)
            times += label_of(job, list->row, i) == label.at ? 1 : 0;
        if (tile->thread == 0)
            slopes[at] = slope_of_number(0 - times * number, factor, upstream);
    }
}

template <typename loss>
ALWAYS_INLINE void write_slopes_over_labels(const cuda_vector *job, const double *parameter, int64_t row,
                                            const tile *tile, bool part, const double *factors, real upstream) {
    const label_list none = {row, 0, false}, list = part ? labels_of_row(job, row) : none;
    const label_list *good = list.is_wrong ? &none : &list;
    const double factor = list.is_wrong ? WIDE_NAN : factors[0];
    const vector_tile others = begin_others<loss>(job, good, tile);
#pragma unroll 1
    for (int first = 0; first < ORDER_LINES; first += HALF_TILE) {
        half_tile x[loss::ELEMENTS], slope;
        double number[HALF_TILE][ORDER_OWN_LANES] = {};
        read_elements<VECTORS_ANYHOW, loss::VECTOR_COUNT, HALF_TILE>(job, 0, &others, first, x);
#pragma unroll 1
        for (int64_t k = 0; k < good->count; k++) {
            const own_class label = label_at(job, good, k);
            count_slopes<loss>(parameter, tile, &label, first, x, number);
        }
        EACH_HALF_LINE EACH_OWN slope[i][own] = part ? slope_of_number(number[i][own], factor, upstream) : 0;
        write_half<VECTORS_ANYHOW>(job, 0, &others, first, slope);
    }
    __syncwarp();
    write_slopes_of_labels<loss>(job, parameter, good, tile, factor, upstream, (real *)others.operand[0]);
    empty_buffers<loss>(job, &others);
}

/* What a warp does of a tile, of a loss with such lists and of one without. */
template <typename loss, vector_access access, bool has_label_lists = loss::LABEL_LISTS> struct tile_work {
    ALWAYS_INLINE void sum(const cuda_vector *job, const double *parameter, int64_t row, const tile *tile,
                           double *sum) {
        const own_class label = find_own<loss>(job, row);
        sum_vectors<loss, access>(job, parameter, row, tile, &label, sum);
    }
    ALWAYS_INLINE void slopes(const cuda_vector *job, const double *parameter, int64_t row, const tile *tile, bool part,
                              const double *factor, real upstream) {
        write_slopes<loss, access>(job, parameter, row, tile, part, factor, upstream);
    }
};
template <typename loss, vector_access access> struct tile_work<loss, access, true> {
    ALWAYS_INLINE void sum(const cuda_vector *job, const double *parameter, int64_t row, const tile *tile,
                           double *sum) {
        sum_over_labels<loss>(job, parameter, row, tile, sum);
    }
    ALWAYS_INLINE void slopes(const cuda_vector *job, const double *parameter, int64_t row, const tile *tile, bool part,
                              const double *factor, real upstream) {
        write_slopes_over_labels<loss>(job, parameter, row, tile, part, factor, upstream);
    }
};

#endif
