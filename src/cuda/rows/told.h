/*
 * Rows whose classes are shared out, and whose tiles' sums have been told: a block has a group of rows. Their numbers
 * come to shared memory all at once, a warp joins a row at a time, and a lane finishes a row.
 */
#ifndef ONEPASS_CUDA_ROWS_TOLD_H
#define ONEPASS_CUDA_ROWS_TOLD_H

#include "cuda/rows/dense.h"

/* Tiles that a thread asks for before it stores the first. */
#define TOLD_AHEAD 8

/* What waits of all rows of a group, whether they take part or not; sums of weights are rare, and stay where they are.
 */
ALWAYS_INLINE void recall_group(const cuda_row *job, const row_group *group, const waiting *waiting) {
    const int tiles = (int)job->tiles, count = group->count * tiles;
#pragma unroll 1
    for (int first = (int)threadIdx.x; first < count; first += TOLD_AHEAD * (int)blockDim.x) {
        double largest[TOLD_AHEAD], others[TOLD_AHEAD];
#pragma unroll
        for (int i = 0; i < TOLD_AHEAD; i++) {
            const int at = first + i * (int)blockDim.x;
            const double *number = numbers_of_tile(job, group->first + at / tiles, at % tiles);
            largest[i] = at < count ? number[0] : 0;
            others[i] = at < count ? number[job->sum_step] : 0;
        }
#pragma unroll
        for (int i = 0; i < TOLD_AHEAD; i++) {
            const int at = first + i * (int)blockDim.x;
            if (at < count) {
                waiting->largest[at] = (real)largest[i];
                waiting->others[at] = others[i];
            }
        }
    }
}

template <typename loss> ALWAYS_INLINE void run_told(const cuda_row *job) {
    WAITING_TILES(CUDA_TOLD_TILES, false);
    __shared__ row rows[CUDA_MOST_GROUP];
    __shared__ real label_logit[CUDA_MOST_GROUP];
    __shared__ row_sum sums[CUDA_MOST_GROUP];
    const place_in_block at = here_in_block();
    const int tiles = (int)job->tiles;
    const row_group group = group_of_block(job);
    if ((int)threadIdx.x < group.count) {
        describe_row<loss::KIND>(job, group.first + threadIdx.x, &rows[threadIdx.x]);
        label_logit[threadIdx.x] = row_logit(job, &rows[threadIdx.x]);
    }
    recall_group(job, &group, &waiting);
    __syncthreads();
#pragma unroll 1
    for (int i = at.warp; i < group.count; i += at.warps) {
        if (rows[i].part != ROW_COUNTS)
            continue;
        double *numbers = numbers_of_tile(job, rows[i].index, 0) - i * tiles;
        const struct waiting own = {waiting.largest, waiting.others, NULL, numbers + 2 * job->sum_step,
                                    numbers + 3 * job->sum_step};
        join_row_here<loss::KIND>(job, &own, i * tiles, tiles, at.thread, job->weighs, rows[i].label, label_logit[i],
                                  &sums[i]);
    }
    __syncthreads();
    if (at.warp != 0)
        return;
    if (at.thread < group.count)
        finish_row<loss>(job, &rows[at.thread], group.first + at.thread, &sums[at.thread]);
    if (job->counts)
        count_group(job, &group, rows);
}

#endif
