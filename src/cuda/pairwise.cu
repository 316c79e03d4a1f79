/*
 * The CUDA engine's work on tiles, for losses that compare two numbers: the twin of
 * src/cpu/pairwise.c. A warp takes a tile: it gathers the operands as `real` numbers,
 * computes values and slopes lane by lane, and scatters what was computed. Compiled
 * once for each compute type; a direct and a general kernel come out for each loss.
 *
 * --fmad=false is part of the meaning: a fused multiply-add has other bits.
 */
#include "cuda/combine.h"  /* from the sums of tiles to the value */
#include "cuda/memory.h"   /* gather and scatter */
#include "cuda/pairwise.h" /* the parameter */
#include "order.h"         /* whatever is added up */

#if defined(ONEPASS_REAL_F64)
#define KERNEL(name)  onepass_##name##_f64
#define REAL(numbers) (numbers).f64
#define MOST_WARPS    8 /* a thread needs up to 255 registers, ... */
#define LEAN_BLOCKS   1
#else
#define KERNEL(name)  onepass_##name##_f32
#define REAL(numbers) (numbers).f32
#define MOST_WARPS    16 /* ... or 128; */
#define LEAN_BLOCKS   2  /* with half of that twice as many warps fit */
#endif
#define BOUNDS __launch_bounds__(MOST_WARPS *ORDER_WARP, 1)

/* --------------------------------------------------------------- compute -- */

typedef real (*loss_function)(real p, real t, const real *parameter);

/* The outputs that a kernel is made for. */
typedef enum outputs {
    OUTPUTS_VALUE, /* of a mean or sum */
    OUTPUTS_BOTH,  /* the same with the gradient for the prediction */
    OUTPUTS_ANY
} outputs;

/* What is wanted of each tile, the same for all. */
typedef struct wanted {
    bool sum, values, gradient[2];
    bool upstream_is_tensor;
    real scale;
    real upstream; /* if it is one number; 1 if there is none */
    const real *parameter;
} wanted;

template <outputs outputs> ALWAYS_INLINE wanted what_is_wanted(const cuda_head *head) {
    const bool none = outputs == OUTPUTS_ANY && head->reduction == ONEPASS_NONE;
    wanted wanted;
    wanted.sum = outputs != OUTPUTS_ANY || (!none && head->data[CUDA_VALUE]);
    wanted.values = none && head->data[CUDA_VALUE];
    wanted.gradient[0] = outputs == OUTPUTS_BOTH || (outputs == OUTPUTS_ANY && head->data[CUDA_GRADIENT]);
    wanted.gradient[1] = outputs == OUTPUTS_ANY && head->data[CUDA_GRADIENT + 1];
    wanted.upstream_is_tensor = none && head->data[CUDA_UPSTREAM];
    wanted.scale = REAL(head->scale);
    wanted.parameter = REAL(head->parameter);
    wanted.upstream = 1;
    if (outputs != OUTPUTS_VALUE && !none && head->data[CUDA_UPSTREAM])
        wanted.upstream = (real)load_scalar(head->data[CUDA_UPSTREAM], head->dtype[CUDA_UPSTREAM]);
    return wanted;
}

/* The sums of a thread's own lanes, row by row. */
typedef struct lane_sums {
    real sum[ORDER_OWN_LANES], two[ORDER_OWN_LANES], four[ORDER_OWN_LANES];
} lane_sums;

ALWAYS_INLINE void add_row(int row, const real *term, lane_sums *sums) {
    EACH_OWN order_row(row, term[own], &sums->sum[own], &sums->two[own], &sums->four[own]);
}

template <loss_function value>
ALWAYS_INLINE void value_row(const wanted *wanted, const real *p, const real *t, real *x) {
    EACH_OWN x[own] = value(p[own], t[own], wanted->parameter);
}

/* The upstream gradient comes last, so that a gradient may also be scaled later with the same bits. */
template <loss_function slope>
ALWAYS_INLINE void gradient_row(const wanted *wanted, const real *p, const real *t, const real *upstream, real *x,
                                const real *weight = NULL) {
    EACH_OWN {
        const real own_slope = slope(p[own], t[own], wanted->parameter);
        x[own] = canonical((weight ? own_slope * weight[own] : own_slope) * wanted->scale * upstream[own]);
    }
}

/* ---------------------------------------------------------- direct tiles -- */

/* Where the outputs of a tile lie, and its upstream gradient. */
typedef struct direct_tile {
    const real *upstream;
    void *value, *gradient[2];
} direct_tile;

ALWAYS_INLINE direct_tile look_at_tile(const cuda_direct *job, const wanted *wanted, const tile *tile, int size) {
    direct_tile at = {};
    if (wanted->upstream_is_tensor)
        at.upstream = (const real *)tile_address(job, CUDA_UPSTREAM, tile, sizeof(real));
    if (wanted->values)
        at.value = tile_address(job, CUDA_VALUE, tile, size);
    for (int k = 0; k < 2; k++)
        if (wanted->gradient[k])
            at.gradient[k] = tile_address(job, CUDA_GRADIENT + k, tile, size);
    return at;
}

/* The rows from `row` on. Not a loop: the compiler would make one for every set of outputs. */
template <int row, access p_access, access t_access, loss_function value, loss_function slope_p, loss_function slope_t>
ALWAYS_INLINE void direct_rows(const tile *tile, const wanted *wanted, const direct_tile *at, const numbers *p_numbers,
                               const numbers *t_numbers, real constant, lane_sums *sums) {
    real p[ORDER_OWN_LANES], t[ORDER_OWN_LANES], x[ORDER_OWN_LANES], upstream[ORDER_OWN_LANES];
    receive<p_access>(p_numbers, 0, row, p);
    receive<t_access>(t_numbers, constant, row, t);
    if (wanted->sum) {
        value_row<value>(wanted, p, t, x);
        add_row(row, x, sums);
    } else if (wanted->values) {
        value_row<value>(wanted, p, t, x);
        EACH_OWN x[own] = canonical(x[own]);
        put_row<p_access>(tile, at->value, row, x);
    }
    EACH_OWN upstream[own] = wanted->upstream;
    if (wanted->upstream_is_tensor)
        read_row(tile, at->upstream, row, upstream);
    if (wanted->gradient[0]) {
        gradient_row<slope_p>(wanted, p, t, upstream, x);
        put_row<p_access>(tile, at->gradient[0], row, x);
    }
    if (wanted->gradient[1]) {
        gradient_row<slope_t>(wanted, p, t, upstream, x);
        put_row<p_access>(tile, at->gradient[1], row, x);
    }
    if constexpr (row + 1 < ORDER_ROWS)
        direct_rows<row + 1, p_access, t_access, value, slope_p, slope_t>(tile, wanted, at, p_numbers, t_numbers,
                                                                          constant, sums);
}

template <access p_access, access t_access, keeping p_keeping, keeping t_keeping>
ALWAYS_INLINE void send_for_tile(const tile *tile, const void *p_at, const void *t_at, numbers *p, numbers *t) {
    EACH_ROW {
        send_for_row<p_access, p_keeping>(tile, p_at, row, p);
        send_for_row<t_access, t_keeping>(tile, t_at, row, t);
    }
}

template <access p_access, access t_access, loss_function value, loss_function slope_p, loss_function slope_t>
ALWAYS_INLINE void run_direct(const cuda_direct *job, const wanted *wanted, const tile *tile, lane_sums *sums) {
    const int size = p_access == ACCESS_REAL ? sizeof(real) : sizeof(uint16_t);
    const void *p_at = tile_address(job, CUDA_PREDICTION, tile, size);
    const void *t_at = tile_address(job, CUDA_TARGET, tile, size);
    numbers p, t;
    real constant = 0;
    const bool writes = wanted->gradient[0] || wanted->gradient[1] || wanted->values;
    const bool shared_row = t_access != ACCESS_CONSTANT && (job->head.rows >> CUDA_TARGET & 1);
    if (t_access == ACCESS_CONSTANT)
        constant = *(const real *)t_at;
    /* What is read once should leave the cache first, and what is shared last (3 % of the rate);
     * but beside a gradient such hints cost 2 %. */
    if (writes)
        send_for_tile<p_access, t_access, KEEP_AS_USUAL, KEEP_AS_USUAL>(tile, p_at, t_at, &p, &t);
    else if (shared_row)
        send_for_tile<p_access, t_access, KEEP_OUTSIDE, KEEP_LONGEST>(tile, p_at, t_at, &p, &t);
    else
        send_for_tile<p_access, t_access, KEEP_LEAST, KEEP_LEAST>(tile, p_at, t_at, &p, &t);
    const direct_tile at = look_at_tile(job, wanted, tile, size);
    direct_rows<0, p_access, t_access, value, slope_p, slope_t>(tile, wanted, &at, &p, &t, constant, sums);
}

/* What a kernel is made for. */
typedef enum operands {
    OPERANDS_REAL,
    OPERANDS_HALF,     /* both of the same 16-bit type */
    OPERANDS_CONSTANT, /* the target has one number for each tile */
    OPERANDS_DIRECT,   /* any of these */
    OPERANDS_ANY
} operands;

template <operands operands, loss_function value, loss_function slope_p, loss_function slope_t>
ALWAYS_INLINE void choose_direct(const cuda_direct *job, const wanted *wanted, const tile *tile, lane_sums *sums) {
    if (operands == OPERANDS_REAL)
        run_direct<ACCESS_REAL, ACCESS_REAL, value, slope_p, slope_t>(job, wanted, tile, sums);
    else if (operands == OPERANDS_CONSTANT)
        run_direct<ACCESS_REAL, ACCESS_CONSTANT, value, slope_p, slope_t>(job, wanted, tile, sums);
#if !defined(ONEPASS_REAL_F64)
    else if (operands == OPERANDS_HALF && job->head.dtype[CUDA_PREDICTION] == ONEPASS_F16)
        run_direct<ACCESS_F16, ACCESS_F16, value, slope_p, slope_t>(job, wanted, tile, sums);
    else if (operands == OPERANDS_HALF)
        run_direct<ACCESS_BF16, ACCESS_BF16, value, slope_p, slope_t>(job, wanted, tile, sums);
    else if (job->head.dtype[CUDA_PREDICTION] != ONEPASS_F32)
        choose_direct<OPERANDS_HALF, value, slope_p, slope_t>(job, wanted, tile, sums);
#endif
    else if ((job->head.rows >> CUDA_TARGET & 1) && job->rows[CUDA_TARGET].tile_step == 0)
        choose_direct<OPERANDS_CONSTANT, value, slope_p, slope_t>(job, wanted, tile, sums);
    else
        choose_direct<OPERANDS_REAL, value, slope_p, slope_t>(job, wanted, tile, sums);
}

/* -------------------------------------------- tiles through shared memory -- */

/* Up to three tiles of shared memory: prediction, target and upstream gradient, then
 * value and gradients. Each thread reads its own numbers of a row before it writes its
 * own results there, so that they can share. A weight has another one, behind them. */
ALWAYS_INLINE real *buffer_of(const tile *tile, int which) {
    return tile->buffer + which * ORDER_TILE;
}

template <loss_function value, loss_function slope_p, loss_function slope_t>
ALWAYS_INLINE void buffered_row(const tile *tile, const wanted *wanted, const real *weights, int row, lane_sums *sums) {
    real p[ORDER_OWN_LANES], t[ORDER_OWN_LANES], x[ORDER_OWN_LANES], upstream[ORDER_OWN_LANES];
    real weight[ORDER_OWN_LANES];
    read_row(tile, buffer_of(tile, 0), row, p);
    read_row(tile, buffer_of(tile, 1), row, t);
    EACH_OWN weight[own] = 1;
    if (weights)
        read_row(tile, weights, row, weight);
    EACH_OWN upstream[own] = wanted->upstream;
    if (wanted->upstream_is_tensor)
        read_row(tile, buffer_of(tile, 2), row, upstream);
    if (wanted->sum) {
        value_row<value>(wanted, p, t, x);
        EACH_OWN x[own] =
            own_element(tile, row, own) < tile->count ? x[own] * weight[own] : 0; /* terms beyond the end are +0 */
        add_row(row, x, sums);
    } else if (wanted->values) {
        value_row<value>(wanted, p, t, x);
        EACH_OWN x[own] = canonical(x[own] * weight[own]);
        write_row(tile, buffer_of(tile, 0), row, x);
    }
    if (wanted->gradient[0]) {
        gradient_row<slope_p>(wanted, p, t, upstream, x, weight);
        write_row(tile, buffer_of(tile, 1), row, x);
    }
    if (wanted->gradient[1]) {
        gradient_row<slope_t>(wanted, p, t, upstream, x, weight);
        write_row(tile, buffer_of(tile, 2), row, x);
    }
}

/* A direct kernel has no weight, and is compiled as if there were none. */
ALWAYS_INLINE bool is_weighted(const cuda_direct *job) {
    return false;
}
ALWAYS_INLINE bool is_weighted(const cuda_general *job) {
    return job->weight;
}

template <typename parameter, loss_function value, loss_function slope_p, loss_function slope_t>
ALWAYS_INLINE void run_buffered(const parameter *job, const wanted *wanted, const tile *tile, lane_sums *sums) {
    const bool weighted = is_weighted(job);
    real *weights = weighted ? buffer_of(tile, job->head.buffers - 1) : NULL;
#pragma unroll 1
    for (int k = 0; k < (weighted ? 4 : wanted->upstream_is_tensor ? 3 : 2); k++) {
        const bool is_weight = weighted && k == 3; /* the upstream gradient is third */
        if (weighted && k == 2 && !wanted->upstream_is_tensor)
            continue;
        fill_buffer(job, is_weight ? CUDA_WEIGHT : CUDA_PREDICTION + k, tile, is_weight ? weights : buffer_of(tile, k));
    }
    __syncwarp();
#pragma unroll 1
    for (int row = 0; row < ORDER_ROWS; row++)
        buffered_row<value, slope_p, slope_t>(tile, wanted, weights, row, sums);
    __syncwarp();
#pragma unroll 1
    for (int k = 0; k < 3; k++)
        if (k == 0 ? wanted->values : k == 1 ? wanted->gradient[0] : wanted->gradient[1])
            empty_buffer(job, CUDA_VALUE + k, tile, buffer_of(tile, k));
    __syncwarp();
}

/* ------------------------------------------------------------------- run -- */

/* What a mean is divided by beyond the head's divisor. */
ALWAYS_INLINE double sum_of_weights(const cuda_direct *job) {
    return 1;
}
ALWAYS_INLINE double sum_of_weights(const cuda_general *job) {
    return job->over_weights ? *(const double *)((const char *)job->head.workspace + CUDA_WEIGHTS_AT) : 1;
}

/* The sum of a tile, for the warp and for the block. */
ALWAYS_INLINE double tile_sum(const wanted *wanted, const tile *tile, const lane_sums *sums, bool alone, double *node) {
    if (!wanted->sum)
        return 0;
    const double sum = tile->count > 0 ? order_lanes(tile->thread, sums->sum) : ORDER_NOTHING;
    if (!alone && tile->thread == 0)
        *node = sum;
    return sum;
}

/* A block takes an aligned run of tiles, a warp every so many of them, so that
 * neighbouring tiles are worked on at the same time; the sums meet in shared
 * memory. Inputs beyond what so many blocks can take make it come again, in sweeps. */
template <outputs outputs, operands operands, typename parameter, loss_function value, loss_function slope_p,
          loss_function slope_t>
ALWAYS_INLINE void run_block(const parameter *job) {
    __shared__ double node[CUDA_MOST_NODES];
    __shared__ order_stack stack;
    const cuda_head *head = &job->head;
    const int thread = threadIdx.x % ORDER_WARP, warp = threadIdx.x / ORDER_WARP, warps = blockDim.x / ORDER_WARP;
    const int tiles = head->tiles_per_block, sweeps = head->sweeps;
    const bool alone = tiles == 1; /* nobody to wait for */
    const double weights = sum_of_weights(job);
    wanted wanted = what_is_wanted<outputs>(head);
    wanted.scale = wanted.scale * (real)(1 / weights); /* one of the two is 1 */
    if (outputs == OUTPUTS_ANY && head->unless_one && wanted.upstream == 1)
        return;
    double sum = ORDER_NOTHING;
    if (sweeps > 1 && threadIdx.x == 0)
        stack.depth = 0, stack.tiles = 0;

    for (int sweep = 0; sweep < sweeps; sweep++) {
        const int64_t first = ((int64_t)blockIdx.x * sweeps + sweep) * tiles;
        const int64_t left = head->count - first * ORDER_TILE;
        const int here = left < tiles * ORDER_TILE ? (int)left : tiles * ORDER_TILE; /* elements */
        if (here <= 0)
            break;
        int i = warp;
        if constexpr (operands != OPERANDS_ANY)
            for (; i < here / ORDER_TILE; i += warps) {
                const tile tile = tile_at(first + i, ORDER_TILE, thread, NULL);
                lane_sums sums = {};
                choose_direct<operands, value, slope_p, slope_t>(job, &wanted, &tile, &sums);
                sum = tile_sum(&wanted, &tile, &sums, alone, &node[i]);
            }
        for (; i < tiles; i += warps) {
            /* A direct kernel has one tile at most that goes through shared memory: that which the input ends in. */
            real *buffer = shared_buffer(head, operands == OPERANDS_ANY ? warp : 0);
            const tile tile = tile_at(first + i, here - i * ORDER_TILE, thread, buffer);
            lane_sums sums = {};
            if (tile.count > 0)
                run_buffered<parameter, value, slope_p, slope_t>(job, &wanted, &tile, &sums);
            sum = tile_sum(&wanted, &tile, &sums, alone, &node[i]);
        }
        if (wanted.sum && !alone) {
            __syncthreads();
            if (warp == 0)
                sum = tree_of(thread, node, tiles);
        }
        if (wanted.sum && sweeps > 1) {
            if (threadIdx.x == 0)
                order_push(&stack, sum);
            __syncthreads();
        }
    }
    if (!wanted.sum)
        return;
    if (sweeps > 1 && threadIdx.x == 0)
        sum = stack.depth ? order_top(&stack) : ORDER_NOTHING;
    finish(head, node, sum, weights);
}

/* ---------------------------------------------------------- small inputs -- */

/* A launch begins with cold instruction caches, so that a small input costs what its code
 * is long: 2.0 us for one tile as above, 1.3 as here, where a thread has one lane and four
 * warps have a tile. Serves dense operands of the compute type, at any address. */
#define SMALL_TILES CUDA_SMALL_TILES(REAL_DTYPE)

template <outputs outputs, loss_function value, loss_function slope>
ALWAYS_INLINE void run_small(const cuda_direct *job) {
    __shared__ double lanes[SMALL_TILES * ORDER_LANES], node[CUDA_MOST_NODES];
    const cuda_head *head = &job->head;
    const wanted wanted = what_is_wanted<outputs>(head);
    const int thread = threadIdx.x % ORDER_WARP, warp = threadIdx.x / ORDER_WARP, tiles = head->tiles_per_block;
    const int64_t first =
        ((int64_t)blockIdx.x * tiles + threadIdx.x / ORDER_LANES) * ORDER_TILE + threadIdx.x % ORDER_LANES;
    const int64_t left = head->count - first;
    const real *p = (const real *)head->data[CUDA_PREDICTION] + first;
    const real *t = (const real *)head->data[CUDA_TARGET] + first;
    real *gradient = (real *)head->data[CUDA_GRADIENT] + first;

    real x[ORDER_ROWS] = {}, y[ORDER_ROWS] = {}, sum = 0, two = 0, four = 0;
    EACH_ROW if (row * ORDER_LANES < left) {
        x[row] = p[row * ORDER_LANES];
        y[row] = t[row * ORDER_LANES];
    }
    EACH_ROW {
        const bool within = row * ORDER_LANES < left;
        order_row(row, within ? value(x[row], y[row], wanted.parameter) : 0, &sum, &two, &four);
        if (outputs == OUTPUTS_BOTH && within)
            gradient[row * ORDER_LANES] =
                canonical(slope(x[row], y[row], wanted.parameter) * wanted.scale * wanted.upstream);
    }
    lanes[threadIdx.x] = (double)sum;
    __syncthreads();
    double total = ORDER_NOTHING;
    if (warp < tiles && ((int64_t)blockIdx.x * tiles + warp) * ORDER_TILE < head->count)
        total = order_lanes_of(thread, lanes + warp * ORDER_LANES);
    if (tiles > 1) {
        if (warp < tiles && thread == 0)
            node[warp] = total;
        __syncthreads();
        if (warp == 0)
            total = order_neighbours(thread < tiles ? node[thread] : ORDER_NOTHING, tiles);
    }
    finish(head, node, total);
}

/* --------------------------------------------------------------- scaling -- */

ALWAYS_INLINE void scale_tile(const cuda_direct *job, int which, const tile *tile, real factor) {
    real *at = (real *)tile_address(job, which, tile, sizeof(real));
    if (tile->count < ORDER_TILE) {
        for (int i = tile->thread; i < tile->count; i += ORDER_WARP)
            at[i] = canonical(at[i] * factor);
        return;
    }
    numbers numbers;
    EACH_ROW send_for_row<ACCESS_REAL, KEEP_LEAST>(tile, at, row, &numbers);
    EACH_ROW {
        real x[ORDER_OWN_LANES];
        receive<ACCESS_REAL>(&numbers, 0, row, x);
        EACH_OWN x[own] = canonical(x[own] * factor);
        put_row<ACCESS_REAL>(tile, at, row, x);
    }
}

ALWAYS_INLINE void scale_tile(const cuda_general *job, int which, const tile *tile, real factor) {
    real *data = (real *)job->head.data[which];
    for (int i = tile->thread; i < tile->count; i += ORDER_WARP) {
        real *at = data + place_of(&job->view[which], tile->index * ORDER_TILE + i).offset;
        *at = canonical(*at * factor);
    }
}

template <typename parameter> ALWAYS_INLINE void scale_block(const parameter *job) {
    const cuda_head *head = &job->head;
    const int thread = threadIdx.x % ORDER_WARP, warp = threadIdx.x / ORDER_WARP, warps = blockDim.x / ORDER_WARP;
    const real upstream = (real)load_scalar(head->data[CUDA_UPSTREAM], head->dtype[CUDA_UPSTREAM]);
    if (upstream == 1)
        return;
    const int64_t run = (int64_t)head->sweeps * head->tiles_per_block, first = blockIdx.x * run;
    for (int64_t i = first + warp; i < first + run && i * ORDER_TILE < head->count; i += warps) {
        const int64_t left = head->count - i * ORDER_TILE;
        const tile tile = tile_at(i, left < ORDER_TILE ? (int)left : ORDER_TILE, thread, NULL);
#pragma unroll 1
        for (int which = CUDA_GRADIENT; which < CUDA_TENSORS; which++)
            if (head->data[which])
                scale_tile(job, which, &tile, upstream);
    }
}

/* --------------------------------------------------------------- weights -- */

/* The sum of the weights is that of a loss whose value is its prediction. The target is one number, and not looked at.
 */
ALWAYS_INLINE real weights_value(real p, real t, const real *parameter) {
    (void)t, (void)parameter;
    return p;
}
#define WEIGHTS weights_value, weights_value, weights_value

/* --------------------------------------------------------------- kernels -- */

#if !defined(ONEPASS_REAL_F64) && defined(__CUDACC__)
extern "C" __device__ __align__(256) unsigned char CUDA_FIRST_WORKSPACE[ONEPASS_WORKSPACE_SIZE];
#endif

#define FUNCTIONS(name)        name##_value, name##_slope_p, name##_slope_t
#define ENTRY(name, parameter) extern "C" __global__ void BOUNDS KERNEL(name)(const __grid_constant__ parameter job)
#define LEAN_ENTRY(name)                                                                                               \
    extern "C" __global__ void __launch_bounds__(MOST_WARPS *ORDER_WARP, LEAN_BLOCKS)                                  \
        KERNEL(name)(const __grid_constant__ cuda_direct job)
#define SMALL_ENTRY(name)                                                                                              \
    extern "C" __global__ void __launch_bounds__(SMALL_TILES *ORDER_LANES, 1)                                          \
        KERNEL(name)(const __grid_constant__ cuda_direct job)
#define DIRECT(name, outputs, operands) run_block<outputs, operands, cuda_direct, FUNCTIONS(name)>(&job)

#define LOSS(name, ...)                                                                                                \
    ENTRY(name##_forward, cuda_direct) {                                                                               \
        DIRECT(name, OUTPUTS_VALUE, OPERANDS_REAL);                                                                    \
    }                                                                                                                  \
    LEAN_ENTRY(name##_forward_constant) {                                                                              \
        DIRECT(name, OUTPUTS_VALUE, OPERANDS_CONSTANT);                                                                \
    }                                                                                                                  \
    ENTRY(name##_both, cuda_direct) {                                                                                  \
        DIRECT(name, OUTPUTS_BOTH, OPERANDS_REAL);                                                                     \
    }                                                                                                                  \
    ENTRY(name##_both_constant, cuda_direct) {                                                                         \
        DIRECT(name, OUTPUTS_BOTH, OPERANDS_CONSTANT);                                                                 \
    }                                                                                                                  \
    SMALL_ENTRY(name##_small_forward) {                                                                                \
        run_small<OUTPUTS_VALUE, name##_value, name##_slope_p>(&job);                                                  \
    }                                                                                                                  \
    SMALL_ENTRY(name##_small_both) {                                                                                   \
        run_small<OUTPUTS_BOTH, name##_value, name##_slope_p>(&job);                                                   \
    }                                                                                                                  \
    ENTRY(name##_direct, cuda_direct) {                                                                                \
        DIRECT(name, OUTPUTS_ANY, OPERANDS_DIRECT);                                                                    \
    }                                                                                                                  \
    ENTRY(name##_general, cuda_general) {                                                                              \
        run_block<OUTPUTS_ANY, OPERANDS_ANY, cuda_general, FUNCTIONS(name)>(&job);                                     \
    }
#include "losses.def"
#undef LOSS

#if !defined(ONEPASS_REAL_F64)
#define LOSS(name, ...)                                                                                                \
    LEAN_ENTRY(name##_forward_half) {                                                                                  \
        DIRECT(name, OUTPUTS_VALUE, OPERANDS_HALF);                                                                    \
    }                                                                                                                  \
    ENTRY(name##_both_half, cuda_direct) {                                                                             \
        DIRECT(name, OUTPUTS_BOTH, OPERANDS_HALF);                                                                     \
    }
#include "losses.def"
#undef LOSS
#endif

/* A float gradient that was computed before its upstream gradient was known. */
ENTRY(scale_direct, cuda_direct) {
    scale_block(&job);
}
ENTRY(scale_general, cuda_general) {
    scale_block(&job);
}

/* What a weighted mean is divided by, for the launch that comes next. */
ENTRY(weights_direct, cuda_direct) {
    run_block<OUTPUTS_VALUE, OPERANDS_CONSTANT, cuda_direct, WEIGHTS>(&job);
}
ENTRY(weights_general, cuda_general) {
    run_block<OUTPUTS_VALUE, OPERANDS_ANY, cuda_general, WEIGHTS>(&job);
}
