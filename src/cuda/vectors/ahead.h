/*
 * The sums of long rows of floats, of whole tiles, for a loss that computes long: while half a tile is computed the
 * next half is on its way, also from tile to tile and from chunk to chunk, since blocks stay. In run_sums() of long.h a
 * warp waits for half a tile or computes it, and half as many warps again did not hide the one behind the other.
 */
#ifndef ONEPASS_CUDA_VECTORS_AHEAD_H
#define ONEPASS_CUDA_VECTORS_AHEAD_H

#include "cuda/vectors/row.h"

#if !defined(ONEPASS_REAL_F64)

/* What the warps of a block have in shared memory: the lanes of a tile's sums, which are added up together, and the
 * sums of a chunk's tiles, in turns, so that nobody waits for those who still read. */
typedef struct sums_ahead {
    double lane[CUDA_MOST_WARPS][VECTOR_MOST_SUMS * ORDER_PITCH];
    double node[2][VECTOR_MOST_SUMS][CUDA_AHEAD_CHUNK];
} sums_ahead;

/* The tiles of a chunk, 0 if its row takes no part or there is no such chunk; and where the thread's own elements of
 * the warp's first one lie. */
template <typename loss> ALWAYS_INLINE int find_chunk(const cuda_vector *job, int64_t index, const real **at) {
    const int64_t row = divide_by_chunks(job, index), first = (index - row * job->chunks) * job->chunk;
    const int64_t left = job->tiles - first;
    const place_in_block here = here_in_block();
#pragma unroll
    for (int k = 0; k < loss::VECTOR_COUNT; k++)
        at[k] = (const real *)dense_address(job, CUDA_VECTOR_OPERAND + k, row,
                                            (first + here.warp) * ORDER_TILE + order_lane(here.thread, 0));
    if (index >= job->rows * job->chunks || !row_takes_part(job, row))
        return 0;
    return left < job->chunk ? (int)left : job->chunk;
}

/* Half a tile as it lies in memory. */
template <typename loss> struct half_ahead { vector of[loss::VECTOR_COUNT][HALF_TILE]; };

template <typename loss> ALWAYS_INLINE void fetch_half(const real *const *at, int first, half_ahead<loss> *half) {
#pragma unroll
    for (int k = 0; k < loss::VECTOR_COUNT; k++)
        EACH_HALF_LINE half->of[k][i] = load_outside((const vector *)at[k] + (first + i) * ORDER_WARP);
}

/* What half a tile adds to the lanes' sums, which lie in shared memory, two at a time: in registers all of them would
 * leave no room for what is on its way. */
template <typename loss, int first>
ALWAYS_INLINE void add_half_ahead(const double *parameter, int thread, const half_ahead<loss> *half, double *lanes) {
    half_tile x[loss::VECTOR_COUNT];
#pragma unroll
    for (int k = 0; k < loss::VECTOR_COUNT; k++)
        EACH_HALF_LINE unpack_vector(half->of[k][i], x[k][i]);
#pragma unroll
    for (int own = 0; own < ORDER_OWN_LANES; own += 2) {
        double sum[VECTOR_MOST_SUMS][ORDER_OWN_LANES];
        add_lane<loss, HALF_TILE>(parameter, x, 0, own, sum);
        add_lane<loss, HALF_TILE>(parameter, x, 0, own + 1, sum);
#pragma unroll
        for (int k = 0; k < loss::SUMS; k++) {
            double2 *lane = (double2 *)(lanes + k * ORDER_PITCH + order_lane(thread, own));
            *lane = first == 0 ? make_double2(sum[k][own], sum[k][own + 1])
                               : make_double2(lane->x + sum[k][own], lane->y + sum[k][own + 1]);
        }
    }
}

/* The sums of a chunk's tiles, of which a warp has every so many-th. `even` has the first half of its first one, and
 * afterwards that of its first one in the chunk `next`, if there is such. */
template <typename loss>
ALWAYS_INLINE void sum_chunk(const cuda_vector *job, const double *parameter, int tiles, int64_t next, const real **at,
                             half_ahead<loss> *even, double *lanes, double (*node)[CUDA_AHEAD_CHUNK]) {
    const place_in_block here = here_in_block();
    half_ahead<loss> odd;
    static_assert(VECTOR_MOST_SUMS * 8 <= ORDER_WARP, "eight threads have a sum");
#pragma unroll 1
    for (int i = here.warp; i < tiles; i += here.warps) {
        bool is_more = true;
        fetch_half(at, HALF_TILE, &odd);
        __syncwarp(); /* nobody reads the lanes of the tile before */
        add_half_ahead<loss, 0>(parameter, here.thread, even, lanes);
        if (i + here.warps < tiles) {
#pragma unroll
            for (int k = 0; k < loss::VECTOR_COUNT; k++)
                at[k] += here.warps * ORDER_TILE;
        } else {
            is_more = here.warp < find_chunk<loss>(job, next, at);
        }
        if (is_more)
            fetch_half(at, 0, even);
        add_half_ahead<loss, HALF_TILE>(parameter, here.thread, &odd, lanes);
        __syncwarp();
        const double sum = order_lanes_together(here.thread / 8 < loss::SUMS ? here.thread : here.thread % 8, lanes);
        if (here.thread % 8 == 0 && here.thread / 8 < loss::SUMS)
            node[here.thread / 8][i] = sum;
    }
}

template <typename loss> ALWAYS_INLINE void run_sums_ahead(const cuda_vector *job) {
    __shared__ __align__(16) sums_ahead shared;
    const place_in_block at = here_in_block();
    const int64_t all = job->rows * job->chunks;
    const real *own[loss::VECTOR_COUNT];
    half_ahead<loss> even;
    int turn = 0;
    OWN_PARAMETERS(parameter, true);
    if (is_done_before(job))
        return;
    if (at.warp < find_chunk<loss>(job, blockIdx.x, own))
        fetch_half(own, 0, &even);
#pragma unroll 1
    for (int64_t index = blockIdx.x; index < all; index += gridDim.x, turn ^= 1) {
        const real *of_first[loss::VECTOR_COUNT];
        const int tiles = find_chunk<loss>(job, index, of_first);
        if (at.warp >= tiles && at.warp < find_chunk<loss>(job, index + gridDim.x, own)) /* else fetched in passing */
            fetch_half(own, 0, &even);
        sum_chunk(job, parameter, tiles, index + gridDim.x, own, &even, shared.lane[at.warp], shared.node[turn]);
        __syncthreads();
#pragma unroll 1
        for (int k = at.warp; k < loss::SUMS; k += at.warps) { /* a thread has two tiles: there are no more of them */
            const double *node = shared.node[turn][k] + 2 * at.thread;
            const double left = 2 * at.thread < tiles ? node[0] : ORDER_NOTHING;
            const double sum =
                order_neighbours(left + (2 * at.thread + 1 < tiles ? node[1] : ORDER_NOTHING), ORDER_WARP);
            if (at.thread == 0)
                in_workspace(job, job->nodes_at)[k * all + index] = sum;
        }
    }
}

#endif

#endif
