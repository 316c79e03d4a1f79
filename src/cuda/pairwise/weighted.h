/*
 * Dense tiles with a weight of the compute type, a mask, or both.
 */
#ifndef ONEPASS_CUDA_PAIRWISE_WEIGHTED_H
#define ONEPASS_CUDA_PAIRWISE_WEIGHTED_H

#include "cuda/pairwise/compute.h"

/* Half a tile at a time: as much as registers have room for with two operands and a weight. */
#define WEIGHTED_LINES (ORDER_LINES / 2)
#define EACH_WEIGHTED  _Pragma("unroll") for (int line = 0; line < WEIGHTED_LINES; line++)

/* Numbers of some lines of a dense tensor; 1 where there is no such tensor. */
ALWAYS_INLINE void prefetch_weighted(const tile *tile, const void *data, int first, numbers *into, int apart) {
    const real one = 1, *from = (const real *)data + tile->index * ORDER_TILE;
    if (!data)
        EACH_WEIGHTED prefetch_constant(&one, &into[line * apart]);
    else if (tile->count == ORDER_TILE)
        EACH_WEIGHTED prefetch_line<ACCESS_REAL, KEEP_LEAST>(tile, from, first + line, &into[line * apart]);
    else
        EACH_WEIGHTED prefetch_last_line<ACCESS_REAL>(tile, from, first + line, &into[line * apart]);
}

/* The bytes of a mask for a thread's own lanes. */
ALWAYS_INLINE uint32_t mask_word(const tile *tile, const unsigned char *mask, int line) {
    const unsigned char *at = mask + own_element(tile, line, 0);
    if (tile->count == ORDER_TILE)
        return __ldcs((const uint32_t *)at);
    uint32_t word = 0;
    EACH_OWN if (own_element(tile, line, own) < tile->count) word |= (uint32_t)at[own] << 8 * own;
    return word;
}

template <typename loss, direction direction>
ALWAYS_INLINE void run_half(const cuda_weighted *job, const outputs *outputs, const tile *tile, int first,
                            lane_sums *sums) {
    numbers in[WEIGHTED_LINES][loss::OPERANDS], weight[WEIGHTED_LINES];
    uint32_t mask[WEIGHTED_LINES];
    const unsigned char *mask_tile = (const unsigned char *)job->mask + tile->index * ORDER_TILE;
    EACH_OPERAND prefetch_weighted(tile, job->head.data[CUDA_PREDICTION + k], first, &in[0][k], loss::OPERANDS);
    prefetch_weighted(tile, job->weight, first, weight, 1);
    EACH_WEIGHTED mask[line] = job->mask ? mask_word(tile, mask_tile, first + line) : ~0u;
    real *gradient = (real *)job->head.data[CUDA_GRADIENT] + tile->index * ORDER_TILE;
    EACH_WEIGHTED {
        own_line x;
        real w[ORDER_OWN_LANES], value[ORDER_OWN_LANES], slope[ORDER_OWN_LANES];
        unpack_line<loss, ACCESS_REAL>(false, in[line], &x);
        unpack<ACCESS_REAL>(false, &weight[line], w);
        EACH_OWN {
            const bool takes_part = mask[line] >> 8 * own & 0xff;
            value[own] = takes_part ? canonical(loss::value(x.x[own], outputs->parameter) * w[own]) : 0;
            if constexpr (direction == BOTH) {
                const real weighted = loss::slope_p(x.x[own], outputs->parameter) * w[own];
                slope[own] = takes_part ? gradient_of(outputs, weighted, outputs->upstream) : 0;
            }
        }
        end_line(tile, first + line, value);
        add_line(first + line, value, sums);
        if constexpr (direction == BOTH) {
            if (tile->count == ORDER_TILE)
                put_line<ACCESS_REAL>(tile, false, gradient, first + line, slope);
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
    double sum = ORDER_NOTHING;
#pragma unroll 1
    for (int i = at.warp; i < tiles; i += at.warps) {
        const tile tile = tile_at(first + i, count - i * ORDER_TILE, at.thread, NULL);
        lane_sums sums = {};
        if (tile.count > 0)
#pragma unroll
            for (int half = 0; half < ORDER_LINES; half += WEIGHTED_LINES)
                run_half<loss, direction>(job, outputs, &tile, half, &sums);
        sum = tile.count > 0 ? order_lanes(tile.thread, sums.sum) : ORDER_NOTHING;
        if (at.thread == 0)
            node[i] = sum;
    }
    return sum;
}

#endif
