/*
 * Rows one behind the other, of more classes than a thread has registers for and of so few that a warp for each would
 * mostly have nothing to do: a warp has several at a time, a team of 2 to 16 lanes each. Their numbers come to shared
 * memory in one piece, so that neighbouring threads move neighbouring numbers, while those before them are computed,
 * and gradients go back in one piece. Warps have nothing to do with each other, and stay for all rows.
 */
#ifndef ONEPASS_CUDA_ROWS_TEAMS_H
#define ONEPASS_CUDA_ROWS_TEAMS_H

#include "cuda/rows/aside.h"
#include "cuda/rows/simple.h"
#include "cuda/rows/sized_data.h"

#if !defined(ONEPASS_REAL_F64)

/* What a warp knows of up to 32 rows, and what they come to. */
typedef struct team_rows {
    double weight[ORDER_WARP], class_weight[ORDER_WARP], others[ORDER_WARP];
    real upstream[ORDER_WARP], label_logit[ORDER_WARP], largest[ORDER_WARP];
    int label[ORDER_WARP], part[ORDER_WARP]; /* no label: -1 */
} team_rows;
static_assert(sizeof(team_rows) == CUDA_TEAM_KNOWN && CUDA_TEAM_KNOWN % 16 == 0, "as the launch has room for");

/* What a warp knows all the time. A lane has fours of neighbouring classes, as many lanes apart as are in its team. */
typedef struct team_place {
    int lane, lanes;    /* of the team */
    int row, at_a_time; /* its own, of those that the warp has */
    int classes;
    int step;   /* classes from four to four */
    int rounds; /* four times the fours that a lane may have */
    int last;   /* classes from the lane's last four on, 0 or less if it has none of it */
    team_rows *known;
    char *numbers; /* of the rows that come next */
    real *slopes;
    double per_divisor;
} team_place;

template <bool writes> ALWAYS_INLINE team_place team_place_of(const cuda_row *job) {
    extern __shared__ __align__(16) unsigned char shared_memory[];
    const place_in_block at = here_in_block();
    const int size = (int)dtype_size(job->dtype[CUDA_ROW_INPUT]);
    team_place place;
    place.lanes = 1 << job->group;
    place.lane = at.thread & (place.lanes - 1);
    place.row = at.thread >> job->group;
    place.at_a_time = ORDER_WARP >> job->group;
    place.classes = (int)job->classes;
    place.step = 4 << job->group;
    place.rounds = (place.classes + place.step - 1) / place.step * 4;
    place.last = place.classes - (place.rounds / 4 - 1) * place.step - 4 * place.lane;
    place.numbers = (char *)shared_memory + at.warp * job->room + sizeof(team_rows);
    place.known = (team_rows *)place.numbers - 1;
    place.slopes = (real *)(place.numbers + CUDA_TEAM_ROOM(place.at_a_time * place.classes, size));
    place.per_divisor = writes ? per_divisor_of(job) : 1;
    return place;
}

/* -------------------------------------------------------------- in and out -- */

/* Every 32nd vector of so many bytes, 4096 at most, from the lane's first on. Such an instruction reaches 2048 bytes in
 * either direction, so addresses are of the middle; compilers are not to find them anew for each. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
template <int k> ALWAYS_INLINE void send_from(int bytes, const char *middle, unsigned to) {
    constexpr int at = k * ORDER_WARP * 16;
    if constexpr (at < CUDA_TEAM_NUMBERS * 4) {
        if (at < bytes)
            asm volatile("cp.async.cg.shared.global [%0 + %2], [%1 + %3], 16;" ::"r"(to), "l"(middle), "n"(at),
                         "n"(at - 2048)
                         : "memory");
        send_from<k + 1>(bytes, middle, to);
    }
}

ALWAYS_INLINE void send_each(int bytes, const char *from, char *to) {
    const char *middle = from + 2048;
    asm volatile("" : "+l"(middle));
    send_from<0>(bytes, middle, (unsigned)anew((int)__cvta_generic_to_shared(to)));
}
#else
ALWAYS_INLINE void send_each(int bytes, const char *from, char *to) {
    for (int i = 0; i < bytes; i += ORDER_WARP * 16)
        send_vector((real *)(to + i), (const real *)(from + i));
}
#endif

/* Sends for the numbers of some rows, those from one on, if there is any. */
ALWAYS_INLINE void send_for_teams(const cuda_row *job, const team_place *place, int64_t first) {
    const int64_t left = job->rows - first;
    const int lane = lane_anew();
    if (left <= 0)
        return;
    const int size = job->dtype[CUDA_ROW_INPUT] == ONEPASS_F32 ? 4 : 2;
    const int count = (left < place->at_a_time ? (int)left : place->at_a_time) * place->classes, bytes = count * size;
    const char *from = (const char *)job->data[CUDA_ROW_INPUT] + first * (place->classes * size);
    if ((((uintptr_t)from | (unsigned)bytes) & 15) == 0) {
        send_each(bytes - lane * 16, from + lane * 16, place->numbers + lane * 16);
    } else if (size == 4) {
#pragma unroll 4
        for (int i = lane; i < count; i += ORDER_WARP)
            send_one((real *)place->numbers + i, (const real *)from + i);
    } else {
#pragma unroll 4
        for (int i = lane; i < count; i += ORDER_WARP)
            ((uint16_t *)place->numbers)[i] = ((const uint16_t *)from)[i];
    }
}

/* The fours of a lane that its team has a class of. With fewer than five, half as many lanes would do. */
#define EACH_TEAM_FOUR                                                                                                 \
    _Pragma("unroll") for (int four = 0; four < CUDA_ASIDE_KEPT; four += 4) if (four < 20 || four < place->rounds)

/* Whether there is another, so that the lane has all of this one. */
#define IS_WHOLE (four < 16 || four + 4 < place->rounds)

/* A lane's numbers; those that its row does not have are -inf. */
ALWAYS_INLINE void read_team(const team_place *place, const real *own, real *x) {
    const int step = anew(place->step);
    if (place->classes % 4 == 0) {
        EACH_TEAM_FOUR {
            if (IS_WHOLE) {
                unpack_vector(*(const vector *)own, x + four);
            } else {
                vector read = {-REAL_INFINITY, -REAL_INFINITY, -REAL_INFINITY, -REAL_INFINITY};
                if (place->last > 0)
                    read = *(const vector *)own;
                unpack_vector(read, x + four);
            }
            own += step;
        }
    } else {
        EACH_TEAM_FOUR {
            if (IS_WHOLE)
                EACH_OF_FOUR x[four + c] = own[c];
            else
                EACH_OF_FOUR x[four + c] = c < place->last ? own[c] : -REAL_INFINITY;
            own += step;
        }
    }
}

/* The same of 16 bits. */
ALWAYS_INLINE void read_team_halves(const team_place *place, const uint16_t *own, bool f16, real *x) {
    const uint32_t none = f16 ? 0xfc00u : 0xff80u;
    const int step = anew(place->step);
    if (place->classes % 4 == 0) {
        EACH_TEAM_FOUR {
            uint2 read = {none << 16 | none, none << 16 | none};
            if (IS_WHOLE || place->last > 0)
                read = *(const uint2 *)own;
            unpack_half(f16, read, x + four);
            own += step;
        }
    } else {
        EACH_TEAM_FOUR {
            EACH_OF_FOUR {
                const uint32_t half = IS_WHOLE || c < place->last ? own[c] : none;
                x[four + c] = f16 ? f32_of_f16((uint16_t)half) : f32_of(half << 16);
            }
            own += step;
        }
    }
}

ALWAYS_INLINE void write_team(const team_place *place, const real *x, real *own) {
    const int step = anew(place->step);
    if (place->classes % 4 == 0) {
        EACH_TEAM_FOUR {
            if (IS_WHOLE || place->last > 0)
                *(vector *)own = pack_vector(x + four);
            own += step;
        }
    } else {
        EACH_TEAM_FOUR {
            EACH_OF_FOUR if (IS_WHOLE || c < place->last) own[c] = x[four + c];
            own += step;
        }
    }
}

/* Every 32nd four of so many numbers, from the lane's first on. */
#define EACH_FOUR_LEFT                                                                                                 \
    _Pragma("unroll") for (int i = 0; i < CUDA_TEAM_NUMBERS; i += ORDER_WARP * 4) if (i + lane * 4 < count)

template <bool f16> ALWAYS_INLINE void leave_halves(int count, int lane, const real *from, uint16_t *to) {
    EACH_FOUR_LEFT {
        real x[4];
        unpack_vector(*(const vector *)(from + lane * 4 + i), x);
        *(uint2 *)(to + lane * 4 + i) = pack_half(f16, x);
    }
}

/* The gradients of some rows, one behind the other. */
ALWAYS_INLINE void leave_teams(const cuda_row *job, const team_place *place, int64_t first, int rows) {
    const int32_t dtype = job->dtype[CUDA_ROW_GRADIENT];
    const int count = rows * place->classes, lane = lane_anew(), size = (int)dtype_size(dtype);
    char *to = (char *)job->data[CUDA_ROW_GRADIENT] + first * (place->classes * size);
    const bool in_fours = (((uintptr_t)to | (unsigned)(count * size)) & (unsigned)(4 * size - 1)) == 0;
    if (in_fours && dtype == ONEPASS_F32) {
        EACH_FOUR_LEFT __stcs((vector *)to + (lane + i / 4), *(const vector *)(place->slopes + lane * 4 + i));
    } else if (in_fours && dtype == ONEPASS_BF16) {
        leave_halves<false>(count, lane, place->slopes, (uint16_t *)to);
    } else if (in_fours && dtype == ONEPASS_F16) {
        leave_halves<true>(count, lane, place->slopes, (uint16_t *)to);
    } else {
#pragma unroll 4
        for (int i = lane; i < count; i += ORDER_WARP)
            store_one(dtype, to, i, place->slopes[i]);
    }
}

/* ---------------------------------------------------------------- what is known -- */

ALWAYS_INLINE void describe_team(const cuda_row *job, int64_t index, int64_t label, real upstream, int i,
                                 team_rows *rows) {
    const row row = describe_few(job, index, label, 0, upstream);
    rows->label[i] = row.part == ROW_COUNTS ? (int)row.label : -1;
    rows->part[i] = row.part;
    rows->upstream[i] = row.upstream;
    rows->weight[i] = row.weight;
    rows->class_weight[i] = row.class_weight;
}

ALWAYS_INLINE row row_of_team(const team_rows *rows, int i) {
    row row = {};
    row.label = rows->label[i];
    row.part = rows->part[i];
    row.upstream = rows->upstream[i];
    row.weight = rows->weight[i];
    row.class_weight = rows->class_weight[i];
    return row;
}

ALWAYS_INLINE row_sum sum_of_team_row(const cuda_row *job, const softmax_shift *shift, real label_logit,
                                      double others) {
    const softmax softmax = softmax_of_job(job);
    row_sum sum = {};
    sum.exponent = shift->exponent;
    sum.good = shift->exponent - shift->exponent == 0;
    sum.largest = shift->largest;
    sum.label_logit = label_logit;
    sum.others = others;
    sum.own = (double)softmax_exponential(&softmax, shift, label_logit - shift->anchor);
    return sum;
}

/* -------------------------------------------------------------------------- sums -- */

/* The order's tree over the lanes of a tile that a thread has, those that are neighbours left apart. */
template <int lanes> ALWAYS_INLINE void sum_fours(const real *x, double *sum) {
    double lane[lanes];
#pragma unroll
    for (int i = 0; i < lanes; i++)
        lane[i] = (double)tree_of_lines<lanes, CUDA_ASIDE_KEPT / lanes>::sum(x + i);
    EACH_OF_FOUR sum[c] = tree_by_halves<lanes, 4>::sum(lane + c);
}

/* The sum of a row, which all lanes of its team come to know. */
ALWAYS_INLINE double sum_of_team(const team_place *place, const real *x) {
    double sum[4];
    if (place->lanes <= ORDER_LANES / CUDA_ASIDE_KEPT)
        sum_fours<CUDA_ASIDE_KEPT>(x, sum);
    else if (place->lanes == 8)
        sum_fours<ORDER_LANES / 8>(x, sum);
    else
        sum_fours<ORDER_LANES / 16>(x, sum);
#pragma unroll
    for (int distance = CUDA_MOST_TEAM / 2; distance > 0; distance /= 2)
        if (distance < place->lanes)
            EACH_OF_FOUR sum[c] = sum[c] + __shfl_xor_sync(~0u, sum[c], distance);
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

/* The largest of its logits. A chain for each lane: nobody waits long for the one before. */
ALWAYS_INLINE real largest_of_team(const team_place *place, real label_logit, const real *x) {
    real four_largest[4] = {label_logit, label_logit, label_logit, label_logit};
    EACH_TEAM_FOUR EACH_OF_FOUR four_largest[c] = larger_or_nan(four_largest[c], x[four + c]);
    real largest =
        larger_or_nan(larger_or_nan(four_largest[0], four_largest[1]), larger_or_nan(four_largest[2], four_largest[3]));
#pragma unroll
    for (int distance = CUDA_MOST_TEAM / 2; distance > 0; distance /= 2)
        if (distance < place->lanes)
            largest = larger_or_nan(largest, __shfl_xor_sync(~0u, largest, distance));
    return largest;
}

/* -------------------------------------------------------------------------- rows -- */

/* The label's logit, which gives way to what stands for no class, and the lane's numbers. */
ALWAYS_INLINE real take_numbers(const cuda_row *job, const team_place *place, int row, int label, real *x) {
    const int at = row * place->classes;
    real label_logit = -REAL_INFINITY;
    if (job->dtype[CUDA_ROW_INPUT] == ONEPASS_F32) {
        real *from = (real *)place->numbers + at;
        if (label >= 0)
            label_logit = from[label];
        __syncwarp();
        if (label >= 0 && place->lane == 0)
            from[label] = -REAL_INFINITY;
        __syncwarp();
        read_team(place, from + 4 * place->lane, x);
    } else {
        const bool f16 = job->dtype[CUDA_ROW_INPUT] == ONEPASS_F16;
        uint16_t *from = (uint16_t *)place->numbers + at;
        if (label >= 0)
            label_logit = f16 ? f32_of_f16(from[label]) : f32_of((uint32_t)from[label] << 16);
        __syncwarp();
        if (label >= 0 && place->lane == 0)
            from[label] = (uint16_t)(f16 ? 0xfc00u : 0xff80u);
        __syncwarp();
        read_team_halves(place, from + 4 * place->lane, f16, x);
    }
    __syncwarp(); /* before others come in their place */
    return label_logit;
}

/* A row for each team, of `some` from one on, the i-th that is known; the next are sent for as soon as these are in
 * registers. */
template <typename loss, bool writes>
ALWAYS_INLINE void run_teams_once(const cuda_row *job, const team_place *place, int64_t first, int i, int some,
                                  int64_t next) {
    constexpr int most = CUDA_ASIDE_KEPT;
    const bool is_there = place->row < some;
    const int own = is_there ? place->row : 0;
    team_rows *known = place->known;
    const row row = row_of_team(known, i + own);
    const softmax softmax = softmax_of_job(job);
    real x[most] = {};
    wait_for_sent();
    __syncwarp();
    const real label_logit = take_numbers(job, place, own, (int)row.label, x);
    send_for_teams(job, place, next);
    const real largest = largest_of_team(place, label_logit, x);
    const softmax_shift shift = usual_shift_of(job, largest);
    if (shift.anchor != 0)
        EACH_TEAM_FOUR EACH_OF_FOUR x[four + c] = x[four + c] - shift.anchor;
    EACH_TEAM_FOUR EACH_OF_FOUR x[four + c] = softmax_exponential(&softmax, &shift, x[four + c]);
    const double others = sum_of_team(place, x);
    if (place->lane == 0 && is_there) {
        known->largest[i + own] = largest;
        known->label_logit[i + own] = label_logit;
        known->others[i + own] = others;
    }
    if (!writes)
        return;
    const row_sum sum = sum_of_team_row(job, &shift, label_logit, others);
    const few_slopes slopes = few_slopes_of<loss>(job, place->per_divisor, &row, &sum);
    real *to = place->slopes + own * place->classes;
    few_gradient<most>(place->rounds, &slopes, x);
    if (is_there)
        write_team(place, x, to + 4 * place->lane);
    __syncwarp();
    if (place->lane == 0 && is_there && row.part == ROW_COUNTS)
        to[row.label] = slopes.own;
    __syncwarp();
    leave_teams(job, place, first, some);
    __syncwarp();
}

/* What becomes of the lane's own row. */
template <typename loss>
ALWAYS_INLINE void finish_team(const cuda_row *job, int64_t index, int i, const team_rows *rows) {
    const row row = row_of_team(rows, i);
    row_sum sum = {};
    if (row.part == ROW_COUNTS) {
        const softmax_shift shift = usual_shift_of(job, rows->largest[i]);
        sum = sum_of_team_row(job, &shift, rows->label_logit[i], rows->others[i]);
    }
    finish_row_here<loss>(job, &row, index, &sum);
}

/* The label of a row that comes later, if there is one and no more to know of it. */
ALWAYS_INLINE int64_t label_ahead(const cuda_row *job, int64_t index) {
    return job->simple && index < job->rows ? simple_label(job, index) : 0;
}

/* A warp has some rows together, and then those that are as many further as all warps have. Returns how many took
 * part. */
template <typename loss, bool writes> ALWAYS_INLINE unsigned run_teams_of_warp(const cuda_row *job) {
    const place_in_block at = here_in_block();
    const team_place place = team_place_of<writes>(job);
    const int together = job->lines * place.at_a_time, step = anew((int)gridDim.x * at.warps * together);
    const real upstream = upstream_of_all(job);
    unsigned taking_part = 0;
    int64_t first = ((int64_t)blockIdx.x * at.warps + at.warp) * together;
    int64_t label = label_ahead(job, first + at.thread);
    send_for_teams(job, &place, first);
#pragma unroll 1
    for (; first < job->rows; first += step) {
        const int count = job->rows - first < together ? (int)(job->rows - first) : together;
        if (at.thread < count)
            describe_team(job, first + at.thread, label, upstream, at.thread, place.known);
        label = label_ahead(job, first + step + at.thread);
        __syncwarp();
        if (!writes && job->counts)
            taking_part +=
                (unsigned)__popc(__ballot_sync(~0u, at.thread < count && place.known->part[at.thread] != ROW_IGNORED));
#pragma unroll 1
        for (int i = 0; i < count; i += place.at_a_time) {
            const int left = count - i, some = left < place.at_a_time ? left : place.at_a_time;
            run_teams_once<loss, writes>(job, &place, first + i, i, some, first + (left > some ? i + some : step));
        }
        __syncwarp();
        if (at.thread < count && job->finishes)
            finish_team<loss>(job, first + at.thread, at.thread, place.known);
        __syncwarp();
    }
    return taking_part;
}

template <typename loss, bool writes> ALWAYS_INLINE void run_teams(const cuda_row *job) {
    __shared__ unsigned taking_part[CUDA_TEAM_WARPS];
    if (writes && is_done_before(job))
        return;
    const place_in_block at = here_in_block();
    const unsigned own = run_teams_of_warp<loss, writes>(job);
    if (writes || !job->counts)
        return;
    if (at.thread == 0)
        taking_part[at.warp] = own;
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned all = 0;
        for (int warp = 0; warp < at.warps; warp++)
            all += taking_part[warp];
        leave_count(job, all);
    }
}

#endif

#endif
