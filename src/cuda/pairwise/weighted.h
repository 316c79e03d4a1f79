/*
 * Dense tiles with a weight of the compute type, a mask, or both.
 */
#ifndef ONEPASS_CUDA_PAIRWISE_WEIGHTED_H
#define ONEPASS_CUDA_PAIRWISE_WEIGHTED_H

#include "cuda/pairwise/compute.h"

/* Half a tile at a time: as much as registers have room for with two operands and a weight. */
#define WEIGHTED_LINES (ORDER_LINES / 2)

#define EACH_OF(lines) _Pragma("unroll") for (int line = 0; line < (lines); line++)

/* Some lines of a tile. */
template <typename loss, int lines> struct weighted_lines {
    numbers in[lines][loss::OPERANDS], weight[lines];
    uint32_t mask[lines]; /* a byte for each of a thread's own lanes */
};

/* What they are of. */
typedef struct weighted_tensors {
    const void *operand[MOST_OPERANDS];
    const void *weight, *mask; /* null: absent */
    bool over_elements;        /* of a mean: weights do not count in what it is divided by */
} weighted_tensors;

ALWAYS_INLINE weighted_tensors tensors_of(const cuda_weighted *job) {
    void *const *data = job->head.data + CUDA_PREDICTION;
    return (weighted_tensors){{data[0], data[1], data[2]}, job->weight, job->mask, job->over_elements != 0};
}

/* Numbers of some lines of a dense tensor; 1 where there is no such tensor, which is not asked of one that is always
 * there. */
template <int lines, bool whole, bool always, keeping keeping>
ALWAYS_INLINE void prefetch_weighted(const tile *tile, const void *data, int first, numbers *into, int apart) {
    const real one = 1, *from = (const real *)data + tile->index * ORDER_TILE;
    if (!always && !data)
        EACH_OF(lines) prefetch_constant(&one, &into[line * apart]);
    else if (whole || tile->count == ORDER_TILE)
        EACH_OF(lines) prefetch_line<ACCESS_REAL, keeping>(tile, from, first + line, &into[line * apart]);
    else
        EACH_OF(lines) prefetch_last_line<ACCESS_REAL>(tile, from, first + line, &into[line * apart]);
}

/* The bytes of a mask for a thread's own lanes. What lies beyond the end takes no part, whether there is one or not.
 * Addresses that share their beginning pay, but not where value and gradient come at once: with a mask of 2^28 elements
 * that took a seventh longer. */
template <direction direction, bool whole, bool always>
ALWAYS_INLINE uint32_t mask_word(const tile *tile, const unsigned char *mask, int line) {
    const unsigned char *of_tile = mask + tile->index * ORDER_TILE;
    const unsigned char *at =
        direction == BOTH ? of_tile + own_element(tile, line, 0) : own_place(tile, of_tile, line, 0);
    if (whole || tile->count == ORDER_TILE)
        return always || mask ? __ldcs((const uint32_t *)at) : ~0u;
    uint32_t word = 0;
    EACH_OWN if (own_element(tile, line, own) < tile->count) word |= (uint32_t)(always || mask ? at[own] : 1)
                                                                     << 8 * own;
    return word;
}

template <direction direction, bool whole, keeping keeping = KEEP_LEAST, bool has_mask = direction == MASK_MEAN,
          typename loss, int lines>
ALWAYS_INLINE void prefetch_weighted_lines(const weighted_tensors *of, const tile *tile, int first,
                                           weighted_lines<loss, lines> *into) {
    constexpr bool has_weight = direction == MEAN || direction == WEIGHT_MEAN;
    constexpr bool has_operands = loss::OPERANDS > 1 && direction != BOTH;
    const unsigned char *mask = direction == WEIGHT_MEAN ? NULL : (const unsigned char *)of->mask;
    EACH_OPERAND prefetch_weighted<lines, whole, has_operands, keeping>(tile, of->operand[k], first, &into->in[0][k],
                                                                        loss::OPERANDS);
    prefetch_weighted<lines, whole, has_weight, keeping>(tile, direction == MASK_MEAN ? NULL : of->weight, first,
                                                         into->weight, 1);
    EACH_OF(lines) into->mask[line] = mask_word<direction, whole, has_mask>(tile, mask, first + line);
}

/* What the elements of a tile count for, of a mean over them: the sums of their weights in a thread's own lanes or, of
 * a mask alone, how many take part of each, in a byte. Numbers of elements are the same in whichever order they are
 * added up. */
typedef struct lane_weights {
    lane_sums sums;
    uint32_t ones;
} lane_weights;

/* 1 for each byte that is not 0. */
ALWAYS_INLINE uint32_t ones_of(uint32_t bytes) {
    const uint32_t low = 0x7f7f7f7f;
    return (((bytes & low) + low) | bytes) >> 7 & 0x01010101;
}

ALWAYS_INLINE uint32_t sum_of_bytes(uint32_t bytes) {
    return bytes * 0x01010101u >> 24;
}

/* Of a mean over them, what the elements count for is added up, too. NaNs are canonical where the sum is stored. */
template <direction direction, typename loss, int lines>
ALWAYS_INLINE void compute_weighted_lines(const weighted_tensors *of, const outputs *outputs, const tile *tile,
                                          void *gradients, int first, const weighted_lines<loss, lines> *from,
                                          lane_sums *sums, lane_weights *weights) {
    constexpr bool is_mean = direction == MEAN || direction == WEIGHT_MEAN;
    constexpr bool writes = direction == BOTH || direction == BACKWARD;
    real *gradient = (real *)gradients + tile->index * ORDER_TILE;
    EACH_OF(lines) {
        own_line x;
        real w[ORDER_OWN_LANES], value[ORDER_OWN_LANES], slope[ORDER_OWN_LANES], counted[ORDER_OWN_LANES];
        unpack_line<loss, ACCESS_REAL>(false, from->in[line], &x);
        unpack<ACCESS_REAL>(false, &from->weight[line], w);
        EACH_OWN {
            const bool takes_part = from->mask[line] >> 8 * own & 0xff;
            if constexpr (direction != BACKWARD) {
                const real term = loss::value(x.x[own], outputs->parameter) * w[own]; /* or there would be a branch */
                value[own] = takes_part ? term : 0;
            }
            if constexpr (is_mean)
                counted[own] = !takes_part ? 0 : of->over_elements ? 1 : w[own];
            if constexpr (writes) {
                const real weighted = loss::slope_p(x.x[own], outputs->parameter) * w[own];
                slope[own] = takes_part ? gradient_of(outputs, weighted, outputs->upstream) : 0;
            }
        }
        if constexpr (direction != BACKWARD)
            add_line(first + line, value, sums);
        if constexpr (is_mean)
            add_line(first + line, counted, &weights->sums);
        if constexpr (direction == MASK_MEAN)
            weights->ones += ones_of(from->mask[line]);
        if constexpr (writes) {
            if (tile->count == ORDER_TILE)
                put_line<ACCESS_REAL, direction == BACKWARD ? KEEP_LEAST : KEEP_AS_USUAL>(tile, false, gradient,
                                                                                          first + line, slope);
            else
                put_last_line<ACCESS_REAL>(tile, false, gradient, first + line, slope);
        }
    }
}

template <typename loss, direction direction, access access>
ALWAYS_INLINE double run_tiles(const cuda_weighted *job, const outputs *outputs, int64_t first, int count,
                               double *node) {
    const place_in_block at = here_in_block();
    const int tiles = job->head.tiles_per_block;
    const weighted_tensors tensors = tensors_of(job);
    double sum = ORDER_NOTHING;
#pragma unroll 1
    for (int i = at.warp; i < tiles; i += at.warps) {
        const tile tile = tile_at(first + i, count - i * ORDER_TILE, at.thread, NULL);
        lane_sums sums = {};
        if (tile.count > 0)
#pragma unroll
            for (int half = 0; half < ORDER_LINES; half += WEIGHTED_LINES) {
                weighted_lines<loss, WEIGHTED_LINES> lines;
                prefetch_weighted_lines<direction, false>(&tensors, &tile, half, &lines);
                compute_weighted_lines<direction>(&tensors, outputs, &tile, job->head.data[CUDA_GRADIENT], half, &lines,
                                                  &sums, NULL);
            }
        sum = tile.count > 0 ? order_lanes(tile.thread, sums.sum) : ORDER_NOTHING;
        if (at.thread == 0)
            node[i] = sum;
    }
    return sum;
}

#endif
