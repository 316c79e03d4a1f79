/*
 * Rows whose classes are shared out, and whose tiles' sums have been told: a warp has a row, and reads them where they
 * lie.
 */
#ifndef ONEPASS_CUDA_ROWS_TOLD_H
#define ONEPASS_CUDA_ROWS_TOLD_H

#include "cuda/rows/join.h"

template <typename loss> ALWAYS_INLINE void run_told(const cuda_row *job) {
    __shared__ real largest[CUDA_TOLD_WARPS][CUDA_MOST_ROW_TILES];
    __shared__ row rows[CUDA_TOLD_WARPS];
    const place_in_block at = here_in_block();
    const int64_t index = (int64_t)blockIdx.x * at.warps + at.warp;
    const int tiles = (int)job->tiles;
    if (index >= job->rows)
        return;
    row *row = &rows[at.warp];
    if (at.thread == 0)
        describe_row<loss::KIND>(job, index, row);
    __syncwarp();
    row_sum sum = {};
    if (row->part == ROW_COUNTS) {
        double *numbers = numbers_of_tile(job, index, 0);
        const waiting waiting = {largest[at.warp], numbers + job->sum_step, NULL, numbers + 2 * job->sum_step,
                                 numbers + 3 * job->sum_step};
        for (int t = at.thread; t < tiles; t += ORDER_WARP)
            waiting.largest[t] = (real)numbers[t];
        __syncwarp();
        sum = join_row<loss::KIND>(job, waiting, 0, tiles, at.thread, job->weighs, row->label, row_logit(job, row));
    }
    if (at.thread == 0)
        finish_row<loss>(job, row, index, &sum);
}

#endif
