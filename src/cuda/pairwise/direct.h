/*
 * Direct tiles: operands whose every tile lies in memory without gaps and aligned, or is one number.
 */
#ifndef ONEPASS_CUDA_PAIRWISE_DIRECT_H
#define ONEPASS_CUDA_PAIRWISE_DIRECT_H

#include "cuda/pairwise/compute.h"

/* Lines are prefetched a stage at a time: while half a tile is computed the next half is on its way, and the first half
 * of the warp's next tile after that (6 to 8 % of the rate of losses that compute long, 1 % of mse's). Doubles and
 * three operands take more registers and make it quarters. Of 16-bit numbers a whole tile is loaded at once and nothing
 * prefetched: with so few registers a line twice as many warps fit, which do as well. */
template <typename loss, access access> struct stage {
    enum {
        LINES = access == ACCESS_HALF               ? ORDER_LINES
                : loss::OPERANDS * sizeof(real) > 8 ? ORDER_LINES / 4
                                                    : ORDER_LINES / 2
    };
    numbers of[LINES][loss::OPERANDS];
};

#define EACH_STAGE_LINE _Pragma("unroll") for (int line = 0; line < stage<loss, access>::LINES; line++)

/* What is read once should leave the cache first, and what is shared last (3 % of the rate); three operands want to be
 * treated like the latter (3 %), but beside a gradient such hints cost 2 %. */
template <typename loss, access access, keeping keeping>
ALWAYS_INLINE void prefetch_lines(const tile *tile, void *const *at, int first, stage<loss, access> *into) {
    EACH_STAGE_LINE EACH_OPERAND {
        if (keeping == KEEP_OUTSIDE && k == CUDA_TARGET)
            prefetch_line<access, KEEP_LONGEST>(tile, at[k], first + line, &into->of[line][k]);
        else
            prefetch_line<access, keeping>(tile, at[k], first + line, &into->of[line][k]);
    }
}

/* Operands of which some are one number for the whole tile, ... */
template <typename loss> ALWAYS_INLINE bool has_constants(const cuda_direct *job) {
    bool has = false;
    EACH_OPERAND has |= is_constant(job, CUDA_PREDICTION + k);
    return has;
}

template <typename loss, access access>
ALWAYS_INLINE void prefetch_constants(const cuda_direct *job, const tile *tile, void *const *at, int first,
                                      stage<loss, access> *into) {
    EACH_OPERAND {
        if (is_constant(job, CUDA_PREDICTION + k))
            EACH_STAGE_LINE prefetch_constant(at[k], &into->of[line][k]);
        else
            EACH_STAGE_LINE prefetch_line<ACCESS_REAL, KEEP_LEAST>(tile, at[k], first + line, &into->of[line][k]);
    }
}

/* ... and those of the tile that the input ends in. */
template <typename loss, access access>
ALWAYS_INLINE void prefetch_last_lines(const cuda_direct *job, const tile *tile, void *const *at, int first,
                                       stage<loss, access> *into) {
    EACH_OPERAND {
        if (access == ACCESS_REAL && is_constant(job, CUDA_PREDICTION + k))
            EACH_STAGE_LINE prefetch_constant(at[k], &into->of[line][k]);
        else
            EACH_STAGE_LINE prefetch_last_line<access>(tile, at[k], first + line, &into->of[line][k]);
    }
}

/* What a warp has prefetched of a tile before it comes to it: the first lines. */
template <typename loss, access access> struct prefetched {
    bool is_plain; /* neither of the above: asked once, since branches cost as much as elements */
    void *at[loss::OPERANDS];
    stage<loss, access> lines;
};

/* The lines of a tile from `first` on. */
template <typename loss, direction direction, access access>
ALWAYS_INLINE void prefetch_stage(const cuda_direct *job, const tile *tile, const prefetched<loss, access> *prefetched,
                                  int first, stage<loss, access> *into) {
    if (!prefetched->is_plain && tile->count < ORDER_TILE)
        prefetch_last_lines<loss, access>(job, tile, prefetched->at, first, into);
    else if (access == ACCESS_REAL && !prefetched->is_plain)
        prefetch_constants<loss, access>(job, tile, prefetched->at, first, into);
    else if (direction != FORWARD)
        prefetch_lines<loss, access, KEEP_AS_USUAL>(tile, prefetched->at, first, into);
    else if (loss::OPERANDS > 2 || (job->head.rows >> CUDA_TARGET & 1))
        prefetch_lines<loss, access, KEEP_OUTSIDE>(tile, prefetched->at, first, into);
    else
        prefetch_lines<loss, access, KEEP_LEAST>(tile, prefetched->at, first, into);
}

template <typename loss, direction direction, access access>
ALWAYS_INLINE void compute_stage(const tile *tile, const outputs *outputs, bool f16, void *gradient, int first,
                                 const stage<loss, access> *from, lane_sums *sums) {
    compute_lines<loss, direction, access, stage<loss, access>::LINES>(tile, outputs, f16, tile->count == ORDER_TILE,
                                                                       gradient, first, from->of, sums);
}

template <typename loss, direction direction, access access>
ALWAYS_INLINE void begin_tile(const cuda_direct *job, const tile *tile, prefetched<loss, access> *prefetched) {
    if (tile->count <= 0)
        return;
    const bool is_whole = tile->count == ORDER_TILE;
    if (job->head.rows == 0) { /* as nearly always: one question instead of several */
        prefetched->is_plain = is_whole;
        EACH_OPERAND prefetched->at[k] = dense_address(job, CUDA_PREDICTION + k, tile, access_size(access));
    } else {
        prefetched->is_plain = is_whole && !(access == ACCESS_REAL && has_constants<loss>(job));
        EACH_OPERAND prefetched->at[k] = tile_address(job, CUDA_PREDICTION + k, tile, access_size(access));
    }
    prefetch_stage<loss, direction, access>(job, tile, prefetched, 0, &prefetched->lines);
}

template <typename loss, direction direction, access access>
ALWAYS_INLINE void run_tile(const cuda_direct *job, const outputs *outputs, const tile *now, const tile *next,
                            prefetched<loss, access> *prefetched, lane_sums *sums) {
    const int lines = stage<loss, access>::LINES;
    const bool f16 = access == ACCESS_HALF && job->head.dtype[CUDA_PREDICTION] == ONEPASS_F16;
    void *gradient = direction == FORWARD ? NULL : tile_address(job, CUDA_GRADIENT, now, access_size(access));
    if constexpr (lines == ORDER_LINES) {
        begin_tile<loss, direction, access>(job, now, prefetched);
        compute_stage<loss, direction, access>(now, outputs, f16, gradient, 0, &prefetched->lines, sums);
    } else {
        stage<loss, access> other;
#pragma unroll
        for (int first = 0; first < ORDER_LINES; first += 2 * lines) {
            prefetch_stage<loss, direction, access>(job, now, prefetched, first + lines, &other);
            compute_stage<loss, direction, access>(now, outputs, false, gradient, first, &prefetched->lines, sums);
            if (first + 2 * lines < ORDER_LINES)
                prefetch_stage<loss, direction, access>(job, now, prefetched, first + 2 * lines, &prefetched->lines);
            else
                begin_tile<loss, direction, access>(job, next, prefetched);
            compute_stage<loss, direction, access>(now, outputs, false, gradient, first + lines, &other, sums);
        }
    }
}

/* The block's span of tiles from `first` on, of which the input fills `count` elements, a warp every so many of them,
 * so that neighbouring tiles are worked on at the same time. The tiles' sums become nodes; the warp's last one is
 * returned.
 *
 * The lanes of some tiles are added up together, in a fifth of the instructions that one at a time takes: 2 of the 45
 * or so that an element of log_cosh needs. */
template <typename loss, direction direction, access access>
ALWAYS_INLINE double run_tiles(const cuda_direct *job, const outputs *outputs, int64_t first, int count, double *node) {
    __shared__ __align__(16) real lanes[CUDA_MOST_WARPS][ORDER_TOGETHER * ORDER_PITCH];
    const place_in_block at = here_in_block();
    const int tiles = job->head.tiles_per_block;
    double sum = ORDER_NOTHING;
    tile now = tile_at(first + at.warp, count - at.warp * ORDER_TILE, at.thread, lanes[at.warp]);
    prefetched<loss, access> prefetched;
    if (stage<loss, access>::LINES < ORDER_LINES)
        begin_tile<loss, direction, access>(job, &now, &prefetched);
    int together = 0;
#pragma unroll 1
    for (int i = at.warp; i < tiles; i += at.warps) {
        const int further = i + at.warps;
        const tile next = tile_at(first + further, count - further * ORDER_TILE, at.thread, lanes[at.warp]);
        lane_sums sums = {};
        if (now.count > 0)
            run_tile<loss, direction, access>(job, outputs, &now, &next, &prefetched, &sums);
        if constexpr (direction != BACKWARD) {
            write_line(&now, now.buffer + together++ * ORDER_PITCH, 0, sums.sum);
            if (together == ORDER_TOGETHER || further >= tiles) {
                __syncwarp();
                const int threads = ORDER_WARP / ORDER_TOGETHER, own = at.thread / threads; /* of the tiles */
                const int index = i - (together - 1 - own) * at.warps;
                sum = order_lanes_together(at.thread, now.buffer);
                if (own < together && at.thread % threads == 0)
                    node[index] = index * ORDER_TILE < count ? sum : ORDER_NOTHING;
                __syncwarp();
                together = 0;
            }
        }
        now = next;
    }
    return sum;
}

#endif
