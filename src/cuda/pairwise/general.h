/*
 * Tiles of any direction, types, strides and shapes, through shared memory.
 */
#ifndef ONEPASS_CUDA_PAIRWISE_GENERAL_H
#define ONEPASS_CUDA_PAIRWISE_GENERAL_H

#include "cuda/pairwise/compute.h"
#include "cuda/pairwise/views.h"

/* Tiles of shared memory: the operands and an upstream gradient, then value and gradients in
 * their place. Each thread reads its own numbers of a line before it writes its own results
 * there, so that they can share. A weight has another one, behind them. */
ALWAYS_INLINE real *buffer_of(const tile *tile, int which) {
    return tile->buffer + which * ORDER_TILE;
}

/* Where a tile's inputs are read line by line: operands, an upstream gradient and a weight. Those that lie without gaps
 * stay where they are, the others are brought into shared memory; an address can be of either. */
#define GENERAL_INPUTS (MOST_OPERANDS + 2)
#define INPUT_UPSTREAM MOST_OPERANDS
#define INPUT_WEIGHT   (MOST_OPERANDS + 1)
typedef struct sources {
    const real *at[GENERAL_INPUTS]; /* null: absent */
} sources;

/* A line of them, which is prefetched while another is computed. */
typedef struct inputs {
    real x[GENERAL_INPUTS][ORDER_OWN_LANES];
} inputs;

ALWAYS_INLINE void read_inputs(const tile *tile, const sources *sources, int line, inputs *into) {
#pragma unroll
    for (int k = 0; k < GENERAL_INPUTS; k++)
        if (sources->at[k])
            read_line(tile, sources->at[k], line, into->x[k]);
}

/* Value and gradients in the order of their buffers. Those that can be put without a detour have a place. */
#define GENERAL_OUTPUTS (1 + MOST_OPERANDS)
typedef struct places {
    real *at[GENERAL_OUTPUTS];
} places;

ALWAYS_INLINE void put_result(const tile *tile, const places *places, int output, int line, const real *x) {
    if (places->at[output] && tile->count == ORDER_TILE)
        put_line<ACCESS_REAL>(tile, false, places->at[output], line, x);
    else if (places->at[output])
        put_last_line<ACCESS_REAL>(tile, false, places->at[output], line, x);
    else
        write_line(tile, buffer_of(tile, output), line, x);
}

template <loss_function slope>
ALWAYS_INLINE void buffered_gradient(const tile *tile, const outputs *outputs, const places *places, part part, int k,
                                     int line, const own_line *in, const real *upstream, const real *weight) {
    real x[ORDER_OWN_LANES];
    EACH_OWN {
        const real weighted = slope(in->x[own], outputs->parameter) * weight[own];
        x[own] = takes_part(part, line, own) ? gradient_of(outputs, weighted, upstream[own]) : 0;
    }
    put_result(tile, places, 1 + k, line, x);
}

template <typename loss>
ALWAYS_INLINE void buffered_line(const tile *tile, const outputs *outputs, const inputs *inputs, part part,
                                 const places *places, int line, lane_sums *sums) {
    own_line in;
    real x[ORDER_OWN_LANES];
    const real *upstream = inputs->x[INPUT_UPSTREAM], *weight = inputs->x[INPUT_WEIGHT];
#pragma unroll
    for (int k = 0; k < loss::OPERANDS; k++)
        EACH_OWN in.x[own][k] = inputs->x[k][own];
    if (outputs->sum || outputs->values) {
        EACH_OWN {
            const real value = loss::value(in.x[own], outputs->parameter);
            x[own] = takes_part(part, line, own) ? canonical(value * weight[own]) : 0;
        }
        end_line(tile, line, x);
    }
    if (outputs->sum)
        add_line(line, x, sums);
    if (outputs->values)
        put_result(tile, places, 0, line, x);
    if constexpr (loss::OPERANDS > 1) {
        if (outputs->gradients & 1)
            buffered_gradient<loss::slope_p>(tile, outputs, places, part, 0, line, &in, upstream, weight);
        if (outputs->gradients & 2)
            buffered_gradient<loss::slope_t>(tile, outputs, places, part, 1, line, &in, upstream, weight);
        if constexpr (loss::OPERANDS > 2)
            if (outputs->gradients & 4)
                buffered_gradient<loss::slope_v>(tile, outputs, places, part, 2, line, &in, upstream, weight);
    }
}

template <typename loss>
ALWAYS_INLINE void run_tile(const cuda_general *job, const outputs *outputs, const tile *tile, lane_sums *sums) {
    const bool has_weight = job->weight != NULL;
    const int buffered = loss::OPERANDS + outputs->upstream_is_tensor; /* behind them the weight */
    sources sources = {};
#pragma unroll 1
    for (int k = 0; k < buffered + has_weight; k++) {
        const int which = k < loss::OPERANDS ? CUDA_PREDICTION + k : k < buffered ? CUDA_UPSTREAM : CUDA_WEIGHT;
        const int input = k < loss::OPERANDS ? k : k < buffered ? INPUT_UPSTREAM : INPUT_WEIGHT;
        const real *at = plain_input(job, which, tile);
        if (!at) {
            real *buffer = buffer_of(tile, k < buffered ? k : job->weight_buffer);
            fill_buffer(job, which, tile, buffer);
            at = buffer;
        }
#pragma unroll
        for (int i = 0; i < GENERAL_INPUTS; i++)
            sources.at[i] = i == input ? at : sources.at[i];
    }
    const part part = job->mask ? read_mask(job, tile) : PART_ALL;
    places places;
#pragma unroll
    for (int k = 0; k < GENERAL_OUTPUTS; k++) {
        const bool is_output = k == 0 ? outputs->values : outputs->gradients >> (k - 1) & 1;
        places.at[k] = k <= loss::OPERANDS && is_output ? plain_output(job, CUDA_VALUE + k, tile) : NULL;
    }
    __syncwarp();
    inputs next;
    EACH_OWN next.x[INPUT_UPSTREAM][own] = outputs->upstream;
    EACH_OWN next.x[INPUT_WEIGHT][own] = 1;
    read_inputs(tile, &sources, 0, &next);
#pragma unroll 1
    for (int line = 0; line < ORDER_LINES; line++) {
        const inputs now = next;
        if (line + 1 < ORDER_LINES)
            read_inputs(tile, &sources, line + 1, &next);
        buffered_line<loss>(tile, outputs, &now, part, &places, line, sums);
    }
    __syncwarp();
#pragma unroll 1
    for (int k = 0; k <= loss::OPERANDS; k++)
        if ((k == 0 ? outputs->values : outputs->gradients >> (k - 1) & 1) && !plain_output(job, CUDA_VALUE + k, tile))
            empty_buffer(job, CUDA_VALUE + k, tile, buffer_of(tile, k));
    __syncwarp();
}

template <typename loss, direction direction, access access>
ALWAYS_INLINE double run_tiles(const cuda_general *job, const outputs *outputs, int64_t first, int count,
                               double *node) {
    const place_in_block at = here_in_block();
    const int tiles = job->head.tiles_per_block;
    real *buffer = shared_buffer(&job->head, at.warp);
    double sum = ORDER_NOTHING;
#pragma unroll 1
    for (int i = at.warp; i < tiles; i += at.warps) {
        const tile tile = tile_at(first + i, count - i * ORDER_TILE, at.thread, buffer);
        lane_sums sums = {};
        if (tile.count > 0)
            run_tile<loss>(job, outputs, &tile, &sums);
        if (!outputs->sum)
            continue;
        sum = tile.count > 0 ? order_lanes(tile.thread, sums.sum) : ORDER_NOTHING;
        if (at.thread == 0)
            node[i] = sum;
    }
    return sum;
}

#endif
