/*
 * The values of rows as in simple.h, of single tiles.
 */
#ifndef ONEPASS_CUDA_ROWS_SIMPLE_VALUES_H
#define ONEPASS_CUDA_ROWS_SIMPLE_VALUES_H

#include "cuda/rows/simple.h"

#if !defined(ONEPASS_REAL_F64)

/* What a warp has in shared memory, with the sums of a tile for each lane. */
typedef struct simple_warp {
    alignas(16) real lanes[ORDER_TOGETHER * ORDER_PITCH]; /* moved as vectors */
    double others[ORDER_WARP];
    real largest[ORDER_WARP];
    unsigned rows; /* that take part */
} simple_warp;

/* Rows that are single tiles. They are read when they are needed: while a warp waits, others compute. On an H200 copies
 * to shared memory ahead of time were slower by a tenth, and the engine for bulk copies by a quarter. */
template <typename number>
ALWAYS_INLINE void sum_simple_rows(const cuda_row *job, const row_team *team, const lane_rows *rows, int thread,
                                   simple_warp *own) {
    const waiting waiting = {own->largest, own->others, NULL, NULL, NULL};
    lane_room lanes = {own->lanes, 0};
    unsigned left = rows->counting;
#pragma unroll 1
    while (left) {
        const tile tile = dense_tile_at<ROW_VECTORS>(0, (int)job->classes, 0, thread);
        const int lane = first_lane(left), label = __shfl_sync(~0u, rows->label, lane);
        own_numbers x;
        real lane_sums[ORDER_OWN_LANES];
        const own_range range =
            read_simple(&tile, row_at<const number>(job, CUDA_ROW_INPUT, row_of_lane(team, rows, lane)), x);
        const real largest = warp_largest_or_nan(range.largest);
        sum_simple_lanes(job, label, &tile, largest, range.smallest, x, lane_sums);
        leave_lanes(&waiting, lane, thread, largest, lane_sums, &lanes);
        left &= left - 1;
    }
    if (lanes.tiles)
        add_up_room(&waiting, thread, &lanes);
    __syncwarp();
}

/* Of the lane's own row. */
template <typename loss, typename number>
ALWAYS_INLINE void finish_simple(const cuda_row *job, int64_t index, int label, real largest, double others) {
    const row row = simple_row(label);
    row_sum sum = {};
    if (label >= 0) {
        const real label_logit = as_real(row_at<const number>(job, CUDA_ROW_INPUT, index)[label]);
        begin_join(job, largest, label_logit, &sum);
        sum.others = others;
        sum.own = own_part(job, largest, label_logit, sum.exponent);
    }
    finish_row_here<loss>(job, &row, index, &sum);
}

template <typename loss, typename number> ALWAYS_INLINE void run_simple_values(const cuda_row *job, simple_warp *own) {
    const place_in_block at = here_in_block();
    const row_team team = team_of(job, (int)blockIdx.x * at.warps + at.warp, (int)gridDim.x * at.warps);
    if (at.thread == 0)
        own->rows = 0;
#pragma unroll 1
    for (int done = 0; done < team.rows; done += team.at_a_time) {
        const lane_rows rows = describe_lanes(job, &team, done, at.thread);
        const unsigned taking_part = __ballot_sync(~0u, rows.label != LABEL_IGNORED);
        if (at.thread == 0)
            own->rows += (unsigned)__popc(taking_part);
        sum_simple_rows<number>(job, &team, &rows, at.thread, own);
        if (at.thread < rows.count)
            finish_simple<loss, number>(job, row_of_lane(&team, &rows, at.thread), rows.label, own->largest[at.thread],
                                        own->others[at.thread]);
        __syncwarp();
    }
}

template <typename loss> ALWAYS_INLINE void run_simple_forward(const cuda_row *job) {
    __shared__ simple_warp shared[CUDA_VALUES_WARPS];
    const place_in_block at = here_in_block();
    if (job->dtype[CUDA_ROW_INPUT] == ONEPASS_F32)
        run_simple_values<loss, real>(job, &shared[at.warp]);
    else
        run_simple_values<loss, uint16_t>(job, &shared[at.warp]);
    if (!job->counts)
        return;
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned rows = 0;
        for (int warp = 0; warp < at.warps; warp++)
            rows += shared[warp].rows;
        leave_count(job, rows);
    }
}

#endif

#endif
