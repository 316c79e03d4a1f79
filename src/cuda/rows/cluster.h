/*
 * Value and gradient of long rows as in simple.h, of bf16, from one read: the blocks of a cluster have a row, and each
 * warp two tiles of it. Nobody waits at a barrier of the cluster, at which gradients that were written before would
 * have to arrive first. A warp leaves its exponentials in shared memory and goes on with the next row, while what its
 * tiles come to is on its way to all blocks of the cluster. There a warp that has no tiles joins the row, and tells the
 * others, who then write the gradient: so the memory brings logits and takes gradients all the time.
 *
 * How far ahead a warp can be: it sends what row k comes to when row k - 2 is joined in its block, for which all warps
 * of all blocks have sent theirs, and so have seen row k - 4 joined. That goes for rows that take no part as well.
 */
#ifndef ONEPASS_CUDA_ROWS_CLUSTER_H
#define ONEPASS_CUDA_ROWS_CLUSTER_H

#include "cuda/cluster.h"
#include "cuda/rows/simple_both.h"

#if !defined(ONEPASS_REAL_F64)

/* Rows whose sums have a place at the same time; rows that are known, of which so many are ahead of those that are
 * joined. */
#define CLUSTER_ROWS  4
#define CLUSTER_KNOWN 8
#define CLUSTER_AHEAD 3

#define TILES_OF_WARP 2 /* tiles of a warp */
#define EACH_TILE     _Pragma("unroll") for (int i = 0; i < TILES_OF_WARP; i++)

/* The sums of a tile, as they travel: 16 bytes. */
typedef struct cluster_sum {
    double others;
    real largest;
    real n; /* of its shift if that is as usual, and NaN otherwise */
} cluster_sum;

/* A row; beyond the last one the index is -1. */
typedef struct cluster_row {
    int64_t index;
    int label;
    real label_logit;
} cluster_row;

/* What slopes are made of: the tiles' exponentials, and the label's own. */
typedef struct cluster_slopes {
    real factor[ORDER_WARP];
    real own;
} cluster_slopes;

/* A warp's exponentials that wait for their row, and logits that are on their way. */
typedef struct cluster_room {
    real kept[TILES_OF_WARP][ORDER_TILE];
    uint16_t sent[TILES_OF_WARP][ORDER_TILE];
} cluster_room;

/* The rows of a cluster, one after the other. */
typedef struct cluster_walk {
    row_team team;
    lane_rows rows;
    cluster_row row[ORDER_WARP]; /* these */
    int done, at;                /* rows of the team that were described, and of those at hand that are known */
} cluster_walk;

typedef struct cluster_block {
    cluster_walk walk;
    cluster_sum sum[CLUSTER_ROWS][CUDA_CLUSTER_TILES];
    cluster_slopes slopes[CLUSTER_ROWS];
    cluster_row row[CLUSTER_KNOWN];
    cluster_barrier are_there[CLUSTER_ROWS], is_joined[CLUSTER_ROWS];
    uint64_t has_come[CUDA_CLUSTER_WARPS][TILES_OF_WARP];
} cluster_block;

/* A warp's i-th tile; if it has none, `count` is 0 or less. (Where it was made 0 then, ptxas of CUDA 13.0 took whole
 * tiles for torn ones, and torn ones for whole.) Neighbouring tiles are in different blocks, so that a thread which
 * joins four neighbours has one of its own block. */
ALWAYS_INLINE tile cluster_tile(const cuda_row *job, const place_in_block *at, int i) {
    const int rank = (int)blockIdx.x % CUDA_CLUSTER, t = (at->warp * TILES_OF_WARP + i) * CUDA_CLUSTER + rank;
    return dense_tile_at<ROW_VECTORS>(t, (int)job->classes, 0, at->thread);
}

/* ----------------------------------------------------------------------- rows -- */

ALWAYS_INLINE void begin_walk(const cuda_row *job, cluster_walk *walk) {
    walk->team = team_of(job, (int)blockIdx.x / CUDA_CLUSTER, (int)gridDim.x / CUDA_CLUSTER);
    walk->rows.count = walk->done = walk->at = 0;
}

/* The next row becomes the k-th that is known. By one warp, whose lanes know of 32 rows. */
ONCE_A_ROW void tell_row(const cuda_row *job, unsigned k, int thread, cluster_walk *walk, cluster_row *known) {
    const bool has_told_all = walk->at == walk->rows.count && walk->done < walk->team.rows;
    __syncwarp(); /* before the first thread goes on */
    if (has_told_all) {
        const lane_rows rows = describe_lanes(job, &walk->team, walk->done, thread);
        const uint16_t *from = row_at<const uint16_t>(job, CUDA_ROW_INPUT, row_of_lane(&walk->team, &rows, thread));
        const cluster_row row = {row_of_lane(&walk->team, &rows, thread), rows.label,
                                 rows.label >= 0 ? as_real(from[rows.label]) : 0};
        __syncwarp();
        walk->row[thread] = row;
        if (thread == 0) {
            walk->rows = rows;
            walk->done += rows.count;
            walk->at = 0;
        }
        __syncwarp();
    }
    if (thread == 0) {
        const bool is_there = walk->at < walk->rows.count;
        const cluster_row none = {-1, LABEL_IGNORED, 0};
        known[k % CLUSTER_KNOWN] = is_there ? walk->row[walk->at] : none;
        walk->at += is_there;
    }
    __syncwarp();
}

/* -------------------------------------------------------------------- joining -- */

/* The tiles of a thread are neighbours, so that the order's tree begins with its own. */
#define CLUSTER_JOINED (CUDA_CLUSTER_TILES / ORDER_WARP)
#define EACH_JOINED    _Pragma("unroll") for (int i = 0; i < CLUSTER_JOINED; i++)

/* What a row's tiles come to, and what exponentials of the thread's tile in this block are multiplied by to be of the
 * row's exponent. */
typedef struct cluster_join {
    row_sum sum;
    double own_scale;
} cluster_join;

/* wide_exp2() of a whole number. */
ALWAYS_INLINE double power_of_whole(real x) {
    return x >= -1000 ? wide_of((uint64_t)(1023 + (int)x) << 52) : 0;
}

ALWAYS_INLINE void add_up_tiles(const double *part, row_sum *sum) {
    static_assert(CLUSTER_JOINED == 4 && CUDA_CLUSTER == 4, "a thread's tree, and one tile in each block");
    sum->others = order_neighbours((part[0] + part[1]) + (part[2] + part[3]), ORDER_WARP);
    sum->weights = sum->weighted = 0;
}

/* Of a row whose shifts are as usual, with nothing that has others wait: all warps wait for this one. */
ALWAYS_INLINE cluster_join join_usual(const cuda_row *job, int rank, int thread, const cluster_row *row,
                                      const cluster_sum *sum, real largest) {
    const int tiles = (int)job->tiles;
    const softmax softmax = softmax_of_job(job);
    const cluster_sum label = sum[row->label / ORDER_TILE];
    double part[CLUSTER_JOINED];
    cluster_join joined;
    joined.sum.largest = largest + 0;
    joined.sum.label_logit = row->label_logit;
    joined.sum.good = true;
    joined.own_scale = 0;
    const real n = softmax_ceiling(joined.sum.largest * softmax.factor);
    joined.sum.exponent = (double)n;
    EACH_JOINED {
        const int t = thread * CLUSTER_JOINED + i;
        const double scale = t < tiles ? power_of_whole(sum[t].n - n) : 0;
        part[i] = t < tiles ? sum[t].others * scale : ORDER_NOTHING;
        joined.own_scale = i == rank ? scale : joined.own_scale;
    }
    softmax_shift shift;
    shift.n = label.n;
    shift.lowest = (label.n - SOFTMAX_RANGE) * softmax.per_factor;
    joined.sum.own = (double)softmax_exponential(&softmax, &shift, row->label_logit) * power_of_whole(label.n - n);
    add_up_tiles(part, &joined.sum);
    return joined;
}

/* Of any row. */
ONCE_A_ROW cluster_join join_unusual(const cuda_row *job, int rank, int thread, const cluster_row *row,
                                     const cluster_sum *sum, real largest) {
    const int tiles = (int)job->tiles;
    double part[CLUSTER_JOINED];
    cluster_join joined;
    joined.own_scale = 0;
    begin_join(job, largest, row->label_logit, &joined.sum);
    EACH_JOINED {
        const int t = thread * CLUSTER_JOINED + i;
        const double scale = t < tiles ? wide_exp2(shift_of(job, sum[t].largest).exponent - joined.sum.exponent) : 0;
        part[i] = t < tiles ? sum[t].others * scale : ORDER_NOTHING;
        joined.own_scale = i == rank ? scale : joined.own_scale;
    }
    add_up_tiles(part, &joined.sum);
    joined.sum.own = own_part(job, sum[row->label / ORDER_TILE].largest, row->label_logit, joined.sum.exponent);
    return joined;
}

template <typename loss>
ALWAYS_INLINE row_sum join_cluster_row(const cuda_row *job, const simple_factor *factor, int rank, int thread,
                                       const cluster_row *row, const cluster_sum *sum, cluster_slopes *slopes) {
    real largest = -REAL_INFINITY;
    bool is_usual = true;
    EACH_JOINED {
        const int t = thread * CLUSTER_JOINED + i;
        if (t < (int)job->tiles) {
            largest = larger_or_nan(largest, sum[t].largest);
            is_usual &= sum[t].n == sum[t].n;
        }
    }
    largest = warp_largest_or_nan(largest);
    const cluster_join joined = __all_sync(~0u, is_usual) ? join_usual(job, rank, thread, row, sum, largest)
                                                          : join_unusual(job, rank, thread, row, sum, largest);
    const row_factors factors = simple_factors_of<loss>(job, factor->common, &joined.sum);
    slopes->factor[thread] = joined.sum.good ? (real)(factors.of_exponentials * joined.own_scale) : REAL_NAN;
    if (thread == 0)
        slopes->own = joined.sum.good ? factors.own : REAL_NAN;
    return joined.sum;
}

/* By the warp that has no tiles. The values of 32 rows are computed together, a lane each. */
template <typename loss>
ALWAYS_INLINE void join_cluster_rows(const cuda_row *job, int rank, int thread, cluster_block *block) {
    const simple_factor factor = simple_factor_of(job);
    cluster_row own = {-1, LABEL_IGNORED, 0};
    row_sum own_sum = {};
#pragma unroll 1
    for (unsigned k = 0;; k++) {
        const int lane = k % ORDER_WARP;
        const cluster_row row = block->row[k % CLUSTER_KNOWN];
        cluster_barrier *are_there = &block->are_there[k % CLUSTER_ROWS];
        tell_row(job, k + CLUSTER_AHEAD, thread, &block->walk, block->row);
        if (row.index >= 0) {
            if (thread == 0)
                arrive_before(are_there, (int)job->tiles * (int)sizeof(cluster_sum));
            wait_at_barrier(are_there, k / CLUSTER_ROWS);
            row_sum sum = {};
            if (row.label >= 0)
                sum = join_cluster_row<loss>(job, &factor, rank, thread, &row, block->sum[k % CLUSTER_ROWS],
                                             &block->slopes[k % CLUSTER_ROWS]);
            __syncwarp();
            if (thread == 0)
                arrive(&block->is_joined[k % CLUSTER_ROWS]);
            if (thread == lane) {
                own = row;
                own_sum = sum;
            }
        }
        if (rank == 0 && (row.index < 0 ? thread < lane : lane == ORDER_WARP - 1)) {
            const struct row known = simple_row(own.label);
            finish_row<loss>(job, &known, own.index, &own_sum);
        }
        if (row.index < 0)
            return;
    }
}

/* --------------------------------------------------------------------- tiles -- */

/* Sends for a tile of a row that takes part. */
ALWAYS_INLINE void send_cluster_tile(const cuda_row *job, const cluster_row *row, const tile *tile, uint64_t *has_come,
                                     uint16_t *sent) {
    if (row->index < 0 || row->label < 0)
        return;
    const uint16_t *from = row_at<const uint16_t>(job, CUDA_ROW_INPUT, row->index);
    expect_bytes(has_come, tile->thread, 2 * tile->count);
    send_bytes(has_come, tile->thread, sent, from + tile->index * ORDER_TILE, 2 * tile->count);
}

/* A thread tells a block. */
ALWAYS_INLINE void send_cluster_sum(const tile *tile, const cluster_sum *own, cluster_sum *sums,
                                    cluster_barrier *are_there) {
    const uint64_t both = (uint64_t)bits_of(own->n) << 32 | bits_of(own->largest);
    if (tile->thread < CUDA_CLUSTER)
        send_to_block(tile->thread, &sums[tile->index], make_ulonglong2(wide_bits(own->others), both), are_there);
}

/* Logits become exponentials. */
ALWAYS_INLINE cluster_sum sum_cluster_tile(const cuda_row *job, int label, const tile *tile, own_range range,
                                           own_numbers x) {
    const softmax softmax = softmax_of_job(job);
    real lane[ORDER_OWN_LANES];
    cluster_sum sum;
    sum.largest = warp_largest_or_nan(range.largest);
    const softmax_shift shift =
        sum_simple_lanes(job, label - (int)tile->index * ORDER_TILE, tile, sum.largest, range.smallest, x, lane);
    sum.n = is_usual_largest(&softmax, sum.largest) ? shift.n : REAL_NAN;
    sum.others = order_lanes(tile->thread, lane);
    return sum;
}

ALWAYS_INLINE void write_cluster_gradient(const cuda_row *job, const simple_factor *factor,
                                          const cluster_slopes *slopes, int place, const cluster_row *row,
                                          const tile *tile, const real *kept) {
    uint16_t *to = row_at<uint16_t>(job, CUDA_ROW_GRADIENT, row->index) + tile->index * ORDER_TILE;
    if (row->label < 0) {
        fill_simple(tile, to, row->label == LABEL_IGNORED ? 0 : REAL_NAN);
        return;
    }
    own_numbers x;
    EACH_LINE unpack_vector(*(const vector *)own_place(tile, kept, line, 0), x[line]);
    const real f = slopes->factor[place];
    const bool calm = is_finite(f) && is_finite(factor->upstream);
    EACH_NUMBER x[line][own] = x[line][own] * f;
    scale_gradient(factor->upstream, calm, x);
    write_simple(tile, to, calm, x);
    put_simple_label(factor, slopes->own, row->label - (int)tile->index * ORDER_TILE, tile, to);
}

ALWAYS_INLINE void run_cluster_tiles(const cuda_row *job, const place_in_block *at, cluster_block *block,
                                     cluster_room *room) {
    const simple_factor factor = simple_factor_of(job);
    uint64_t *has_come = block->has_come[at->warp];
    unsigned come = 0;
    if (cluster_tile(job, at, 0).count <= 0)
        return;
    EACH_TILE {
        const tile tile = cluster_tile(job, at, i);
        if (tile.count > 0)
            send_cluster_tile(job, &block->row[0], &tile, &has_come[i], room->sent[i]);
    }
#pragma unroll 1
    for (unsigned k = 0;; k++) {
        const unsigned before = k - 1;
        const cluster_row *row = &block->row[k % CLUSTER_KNOWN], *next = &block->row[(k + 1) % CLUSTER_KNOWN];
        const bool is_there = row->index >= 0, counts = is_there && row->label >= 0;
#pragma unroll 1
        for (int i = 0; i < TILES_OF_WARP; i++) {
            const tile tile = cluster_tile(job, at, i);
            own_numbers x;
            cluster_sum sum = {};
            if (tile.count <= 0)
                continue;
            if (counts) {
                wait_for_bytes(&has_come[i], come);
                const own_range range = read_simple(&tile, room->sent[i], x);
                send_cluster_tile(job, next, &tile, &has_come[i], room->sent[i]);
                sum = sum_cluster_tile(job, row->label, &tile, range, x);
            } else if (is_there) {
                send_cluster_tile(job, next, &tile, &has_come[i], room->sent[i]);
            }
            if (is_there)
                send_cluster_sum(&tile, &sum, block->sum[k % CLUSTER_ROWS], &block->are_there[k % CLUSTER_ROWS]);
            if (k > 0) {
                if (i == 0)
                    wait_at_barrier(&block->is_joined[before % CLUSTER_ROWS], before / CLUSTER_ROWS);
                write_cluster_gradient(job, &factor, &block->slopes[before % CLUSTER_ROWS],
                                       at->warp * TILES_OF_WARP + i, &block->row[before % CLUSTER_KNOWN], &tile,
                                       room->kept[i]);
            }
            if (counts)
                EACH_LINE *(vector *)own_place(&tile, room->kept[i], line, 0) = pack_vector(x[line]);
        }
        come += counts;
        if (!is_there)
            return;
        if (!counts) /* nothing else keeps the first threads, which send, from going on alone */
            __syncwarp();
    }
}

template <typename loss> ALWAYS_INLINE void run_cluster(const cuda_row *job) {
    extern __shared__ __align__(16) unsigned char shared_memory[];
    __shared__ __align__(16) cluster_block block;
    static_assert(offsetof(cluster_block, sum) % sizeof(cluster_sum) == 0, "sums come by 16 bytes");
    static_assert(sizeof(cluster_block) <= CUDA_CLUSTER_OWN && sizeof(cluster_room) == CUDA_CLUSTER_ROOM,
                  "shared memory");
    if (is_done_before(job))
        return;
    const place_in_block at = here_in_block();
    const int rank = (int)blockIdx.x % CUDA_CLUSTER;
    const bool joins = at.warp == at.warps - 1;
    if (joins) {
        if (at.thread == 0)
            begin_walk(job, &block.walk);
        __syncwarp();
        for (unsigned k = 0; k < CLUSTER_AHEAD; k++)
            tell_row(job, k, at.thread, &block.walk, block.row);
        if (at.thread < CLUSTER_ROWS) {
            begin_barrier(&block.are_there[at.thread], 1);
            begin_barrier(&block.is_joined[at.thread], 1);
        }
        __syncwarp();
    } else {
        EACH_TILE prepare_to_wait(&block.has_come[at.warp][i], at.thread);
    }
    meet_cluster();
    if (joins)
        join_cluster_rows<loss>(job, rank, at.thread, &block);
    else
        run_cluster_tiles(job, &at, &block, (cluster_room *)shared_memory + at.warp);
}

#endif

#endif
