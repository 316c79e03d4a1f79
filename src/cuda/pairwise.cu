/*
 * The CUDA engine's work on tiles, for losses of two numbers or three: the twin of
 * src/cpu/run.c. A warp takes a tile: it gathers the operands as `real` numbers,
 * computes values and slopes lane by lane, and scatters what was computed. Compiled
 * once for each compute type; several direct kernels and a general one come out for
 * each loss.
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
#define BLOCKS        1 /* a thread needs up to 255 registers, ... */
#define LEAN_BLOCKS   1
#else
#define KERNEL(name)  onepass_##name##_f32
#define REAL(numbers) (numbers).f32
#define BLOCKS        2 /* ... or 128; */
#define LEAN_BLOCKS   4 /* with half of that twice as many warps fit */
#endif
#define MOST_WARPS CUDA_MOST_WARPS
#define BOUNDS     __launch_bounds__(MOST_WARPS *ORDER_WARP, BLOCKS)

/* --------------------------------------------------------------- compute -- */

/* A loss as the templates below take it: its functions, of an array of operands. */
#define ARGUMENTS_2 x[0], x[1]
#define ARGUMENTS_3 x[0], x[1], x[2]
#define LOSS_MEMBER(name, member, operands)                                                                            \
    ALWAYS_INLINE real member(const real *x, const real *parameter) {                                                  \
        return name##_##member(PASTE(ARGUMENTS_, OPERANDS_OF operands), parameter);                                    \
    }
#define LOSS_SLOPE_2(name, operands)
#define LOSS_SLOPE_3(name, operands) LOSS_MEMBER(name, slope_v, operands)
#define LOSS(name, operands, ...)                                                                                      \
    struct name##_loss {                                                                                               \
        enum {                                                                                                         \
            OPERANDS = OPERANDS_OF operands                                                                            \
        };                                                                                                             \
        LOSS_MEMBER(name, value, operands)                                                                             \
        LOSS_MEMBER(name, slope_p, operands)                                                                           \
        LOSS_MEMBER(name, slope_t, operands)                                                                           \
        PASTE(LOSS_SLOPE_, OPERANDS_OF operands)(name, operands)                                                       \
    };
#include "losses.def"
#undef LOSS

/* What a mean is divided by is the sum of a loss whose value is its only operand. */
struct weights_loss {
    enum {
        OPERANDS = 1
    };
    ALWAYS_INLINE real value(const real *x, const real *parameter) {
        return x[0];
    }
};

typedef real (*loss_function)(const real *x, const real *parameter);

/* The outputs that a kernel is made for. */
typedef enum outputs {
    OUTPUTS_VALUE,    /* of a mean or sum */
    OUTPUTS_BOTH,     /* the same with the gradient for the prediction */
    OUTPUTS_GRADIENT, /* that gradient alone */
    OUTPUTS_ANY
} outputs;

/* What is wanted of each tile, the same for all. */
typedef struct wanted {
    bool sum, values;
    unsigned gradients; /* a bit for each operand */
    bool upstream_is_tensor;
    real scale;
    real upstream; /* if it is one number; 1 if there is none */
    const real *parameter;
} wanted;

template <outputs outputs> ALWAYS_INLINE wanted what_is_wanted(const cuda_head *head) {
    const bool any = outputs == OUTPUTS_ANY, none = any && head->reduction == ONEPASS_NONE;
    wanted wanted;
    wanted.sum = outputs == OUTPUTS_VALUE || outputs == OUTPUTS_BOTH || (any && !none && head->total.value);
    wanted.values = none && head->data[CUDA_VALUE];
    wanted.gradients = outputs == OUTPUTS_BOTH || outputs == OUTPUTS_GRADIENT;
    for (int k = 0; k < MOST_OPERANDS && any; k++)
        wanted.gradients |= (unsigned)(head->data[CUDA_GRADIENT + k] != NULL) << k;
    wanted.upstream_is_tensor = none && head->data[CUDA_UPSTREAM];
    wanted.scale = REAL(head->scale);
    wanted.parameter = REAL(head->parameter);
    wanted.upstream = 1;
    if (outputs != OUTPUTS_VALUE && !none && head->data[CUDA_UPSTREAM])
        wanted.upstream = (real)load_scalar(head->data[CUDA_UPSTREAM], head->dtype[CUDA_UPSTREAM]);
    return wanted;
}

/* The sums of a thread's own lanes. */
typedef struct lane_sums {
    real sum[ORDER_OWN_LANES], two[ORDER_OWN_LANES], four[ORDER_OWN_LANES];
} lane_sums;

ALWAYS_INLINE void add_row(int row, const real *term, lane_sums *sums) {
    EACH_OWN order_line(row, term[own], &sums->sum[own], &sums->two[own], &sums->four[own]);
}

/* A thread's own lanes of a row: for each of them its operands. */
typedef struct own_row {
    real x[ORDER_OWN_LANES][MOST_OPERANDS];
} own_row;

/* The upstream gradient comes last, so that a gradient may also be scaled later with the same bits. */
ALWAYS_INLINE real gradient_of(const wanted *wanted, real slope, real upstream) {
    return canonical(slope * wanted->scale * upstream);
}

/* Terms beyond the end of the input are +0. */
ALWAYS_INLINE void end_row(const tile *tile, int row, real *x) {
    EACH_OWN x[own] = own_element(tile, row, own) < tile->count ? x[own] : 0;
}

/* ---------------------------------------------------------- direct tiles -- */

/* Rows are sent for a stage ahead: while half a tile is computed the next half is on its way, and the first half of the
 * warp's next tile after that (6 to 8 % of the rate of losses that compute long, 1 % of mse's). Doubles and three
 * operands take more registers and make it quarters. Of 16-bit numbers a whole tile is sent for at once and nothing
 * ahead: with so few registers a row twice as many warps fit, which do as well. */
template <typename loss, access access> struct stage {
    enum {
        ROWS = access == ACCESS_HALF               ? ORDER_LINES
               : loss::OPERANDS * sizeof(real) > 8 ? ORDER_LINES / 4
                                                   : ORDER_LINES / 2
    };
    numbers of[ROWS][loss::OPERANDS];
};

#define EACH_OPERAND   _Pragma("unroll") for (int k = 0; k < loss::OPERANDS; k++)
#define EACH_STAGE_ROW _Pragma("unroll") for (int row = 0; row < stage<loss, access>::ROWS; row++)

/* What is read once should leave the cache first, and what is shared last (3 % of the rate); three operands want to be
 * treated like the latter (3 %), but beside a gradient such hints cost 2 %. */
template <typename loss, access access, keeping keeping>
ALWAYS_INLINE void send_for_rows(const tile *tile, void *const *at, int first, stage<loss, access> *into) {
    EACH_STAGE_ROW EACH_OPERAND {
        if (keeping == KEEP_OUTSIDE && k == CUDA_TARGET)
            send_for_row<access, KEEP_LONGEST>(tile, at[k], first + row, &into->of[row][k]);
        else
            send_for_row<access, keeping>(tile, at[k], first + row, &into->of[row][k]);
    }
}

/* Operands of which some are one number for the whole tile, ... */
template <typename loss> ALWAYS_INLINE bool has_constants(const cuda_direct *job) {
    bool has = false;
    EACH_OPERAND has |= is_constant(job, CUDA_PREDICTION + k);
    return has;
}

template <typename loss, access access>
ALWAYS_INLINE void send_for_constants(const cuda_direct *job, const tile *tile, void *const *at, int first,
                                      stage<loss, access> *into) {
    EACH_OPERAND {
        if (is_constant(job, CUDA_PREDICTION + k))
            EACH_STAGE_ROW send_for_constant(at[k], &into->of[row][k]);
        else
            EACH_STAGE_ROW send_for_row<ACCESS_REAL, KEEP_LEAST>(tile, at[k], first + row, &into->of[row][k]);
    }
}

/* ... and those of the tile that the input ends in. */
template <typename loss, access access>
ALWAYS_INLINE void send_for_last_rows(const cuda_direct *job, const tile *tile, void *const *at, int first,
                                      stage<loss, access> *into) {
    EACH_OPERAND {
        if (access == ACCESS_REAL && is_constant(job, CUDA_PREDICTION + k))
            EACH_STAGE_ROW send_for_constant(at[k], &into->of[row][k]);
        else
            EACH_STAGE_ROW send_for_rest<access>(tile, at[k], first + row, &into->of[row][k]);
    }
}

/* What a warp has sent for before it comes to a tile: its first rows. */
template <typename loss, access access> struct ahead {
    bool is_plain; /* neither of the above: asked once, since branches cost as much as elements */
    void *at[loss::OPERANDS];
    stage<loss, access> rows;
};

/* The rows of a tile from `first` on. */
template <typename loss, outputs outputs, access access>
ALWAYS_INLINE void send_for_stage(const cuda_direct *job, const tile *tile, const ahead<loss, access> *ahead, int first,
                                  stage<loss, access> *into) {
    if (!ahead->is_plain && tile->count < ORDER_TILE)
        send_for_last_rows<loss, access>(job, tile, ahead->at, first, into);
    else if (access == ACCESS_REAL && !ahead->is_plain)
        send_for_constants<loss, access>(job, tile, ahead->at, first, into);
    else if (outputs != OUTPUTS_VALUE)
        send_for_rows<loss, access, KEEP_AS_USUAL>(tile, ahead->at, first, into);
    else if (loss::OPERANDS > 2 || (job->head.rows >> CUDA_TARGET & 1))
        send_for_rows<loss, access, KEEP_OUTSIDE>(tile, ahead->at, first, into);
    else
        send_for_rows<loss, access, KEEP_LEAST>(tile, ahead->at, first, into);
}

template <typename loss, access access> ALWAYS_INLINE void receive_row(bool f16, const numbers *from, own_row *into) {
    EACH_OPERAND {
        real x[ORDER_OWN_LANES];
        receive<access>(f16, &from[k], x);
        EACH_OWN into->x[own][k] = x[own];
    }
}

/* Rows that have come, from `first` on. Plain ones are whole and aligned. */
template <typename loss, outputs outputs, access access, int rows>
ALWAYS_INLINE void compute_rows(const tile *tile, const wanted *wanted, bool f16, bool plain, void *gradient, int first,
                                const numbers (*from)[loss::OPERANDS], lane_sums *sums) {
    real value[rows][ORDER_OWN_LANES], slope[rows][ORDER_OWN_LANES];
#define EACH_OF_ROWS _Pragma("unroll") for (int row = 0; row < rows; row++)
    EACH_OF_ROWS {
        own_row in;
        receive_row<loss, access>(f16, from[row], &in);
        EACH_OWN { /* one after the other, so that the compiler sees what they share */
            if constexpr (outputs != OUTPUTS_GRADIENT)
                value[row][own] = loss::value(in.x[own], wanted->parameter);
            if constexpr (outputs != OUTPUTS_VALUE)
                slope[row][own] = gradient_of(wanted, loss::slope_p(in.x[own], wanted->parameter), wanted->upstream);
        }
    }
    if constexpr (outputs != OUTPUTS_GRADIENT) {
        if (tile->count < ORDER_TILE)
            EACH_OF_ROWS end_row(tile, first + row, value[row]);
        EACH_OF_ROWS add_row(first + row, value[row], sums);
    }
    if constexpr (outputs != OUTPUTS_VALUE) {
        if (plain)
            EACH_OF_ROWS put_row<access>(tile, f16, gradient, first + row, slope[row]);
        else
            EACH_OF_ROWS put_last_row<access>(tile, f16, gradient, first + row, slope[row]);
    }
#undef EACH_OF_ROWS
}

template <typename loss, outputs outputs, access access>
ALWAYS_INLINE void compute_stage(const tile *tile, const wanted *wanted, bool f16, void *gradient, int first,
                                 const stage<loss, access> *from, lane_sums *sums) {
    compute_rows<loss, outputs, access, stage<loss, access>::ROWS>(tile, wanted, f16, tile->count == ORDER_TILE,
                                                                   gradient, first, from->of, sums);
}

template <typename loss, outputs outputs, access access>
ALWAYS_INLINE void begin_tile(const cuda_direct *job, const tile *tile, ahead<loss, access> *ahead) {
    if (tile->count <= 0)
        return;
    const bool is_whole = tile->count == ORDER_TILE;
    if (job->head.rows == 0) { /* as nearly always: one question instead of several */
        ahead->is_plain = is_whole;
        EACH_OPERAND ahead->at[k] = dense_address(job, CUDA_PREDICTION + k, tile, access_size(access));
    } else {
        ahead->is_plain = is_whole && !(access == ACCESS_REAL && has_constants<loss>(job));
        EACH_OPERAND ahead->at[k] = tile_address(job, CUDA_PREDICTION + k, tile, access_size(access));
    }
    send_for_stage<loss, outputs, access>(job, tile, ahead, 0, &ahead->rows);
}

template <typename loss, outputs outputs, access access>
ALWAYS_INLINE void run_tile(const cuda_direct *job, const wanted *wanted, const tile *now, const tile *next,
                            ahead<loss, access> *ahead, lane_sums *sums) {
    const int rows = stage<loss, access>::ROWS;
    const bool f16 = access == ACCESS_HALF && job->head.dtype[CUDA_PREDICTION] == ONEPASS_F16;
    void *gradient = outputs == OUTPUTS_VALUE ? NULL : tile_address(job, CUDA_GRADIENT, now, access_size(access));
    if constexpr (rows == ORDER_LINES) {
        begin_tile<loss, outputs, access>(job, now, ahead);
        compute_stage<loss, outputs, access>(now, wanted, f16, gradient, 0, &ahead->rows, sums);
    } else {
        stage<loss, access> other;
#pragma unroll
        for (int first = 0; first < ORDER_LINES; first += 2 * rows) {
            send_for_stage<loss, outputs, access>(job, now, ahead, first + rows, &other);
            compute_stage<loss, outputs, access>(now, wanted, false, gradient, first, &ahead->rows, sums);
            if (first + 2 * rows < ORDER_LINES)
                send_for_stage<loss, outputs, access>(job, now, ahead, first + 2 * rows, &ahead->rows);
            else
                begin_tile<loss, outputs, access>(job, next, ahead);
            compute_stage<loss, outputs, access>(now, wanted, false, gradient, first + rows, &other, sums);
        }
    }
}

/* --------------------------------------------- direct tiles with a weight -- */

/* Half a tile at a time: as much as registers have room for with two operands and a weight. */
#define WEIGHTED_ROWS (ORDER_LINES / 2)
#define EACH_WEIGHTED _Pragma("unroll") for (int row = 0; row < WEIGHTED_ROWS; row++)

/* Numbers of some rows of a dense tensor; 1 where there is no such tensor. */
ALWAYS_INLINE void send_for_weighted(const tile *tile, const void *data, int first, numbers *into, int apart) {
    const real one = 1, *from = (const real *)data + tile->index * ORDER_TILE;
    if (!data)
        EACH_WEIGHTED send_for_constant(&one, &into[row * apart]);
    else if (tile->count == ORDER_TILE)
        EACH_WEIGHTED send_for_row<ACCESS_REAL, KEEP_LEAST>(tile, from, first + row, &into[row * apart]);
    else
        EACH_WEIGHTED send_for_rest<ACCESS_REAL>(tile, from, first + row, &into[row * apart]);
}

/* The bytes of a mask for a thread's own lanes. */
ALWAYS_INLINE uint32_t mask_word(const tile *tile, const unsigned char *mask, int row) {
    const unsigned char *at = mask + own_element(tile, row, 0);
    if (tile->count == ORDER_TILE)
        return __ldcs((const uint32_t *)at);
    uint32_t word = 0;
    EACH_OWN if (own_element(tile, row, own) < tile->count) word |= (uint32_t)at[own] << 8 * own;
    return word;
}

template <typename loss, outputs outputs>
ALWAYS_INLINE void run_half(const cuda_weighted *job, const wanted *wanted, const tile *tile, int first,
                            lane_sums *sums) {
    numbers in[WEIGHTED_ROWS][loss::OPERANDS], weight[WEIGHTED_ROWS];
    uint32_t mask[WEIGHTED_ROWS];
    const unsigned char *mask_tile = (const unsigned char *)job->mask + tile->index * ORDER_TILE;
    EACH_OPERAND send_for_weighted(tile, job->head.data[CUDA_PREDICTION + k], first, &in[0][k], loss::OPERANDS);
    send_for_weighted(tile, job->weight, first, weight, 1);
    EACH_WEIGHTED mask[row] = job->mask ? mask_word(tile, mask_tile, first + row) : ~0u;
    real *gradient = (real *)job->head.data[CUDA_GRADIENT] + tile->index * ORDER_TILE;
    EACH_WEIGHTED {
        own_row x;
        real w[ORDER_OWN_LANES], value[ORDER_OWN_LANES], slope[ORDER_OWN_LANES];
        receive_row<loss, ACCESS_REAL>(false, in[row], &x);
        receive<ACCESS_REAL>(false, &weight[row], w);
        EACH_OWN {
            const bool takes_part = mask[row] >> 8 * own & 0xff;
            value[own] = takes_part ? canonical(loss::value(x.x[own], wanted->parameter) * w[own]) : 0;
            if constexpr (outputs == OUTPUTS_BOTH) {
                const real weighted = loss::slope_p(x.x[own], wanted->parameter) * w[own];
                slope[own] = takes_part ? gradient_of(wanted, weighted, wanted->upstream) : 0;
            }
        }
        end_row(tile, first + row, value);
        add_row(first + row, value, sums);
        if constexpr (outputs == OUTPUTS_BOTH) {
            if (tile->count == ORDER_TILE)
                put_row<ACCESS_REAL>(tile, false, gradient, first + row, slope);
            else
                put_last_row<ACCESS_REAL>(tile, false, gradient, first + row, slope);
        }
    }
}

/* -------------------------------------------- tiles through shared memory -- */

/* Tiles of shared memory: the operands and an upstream gradient, then value and gradients in
 * their place. Each thread reads its own numbers of a row before it writes its own results
 * there, so that they can share. A weight has another one, behind them. */
ALWAYS_INLINE real *buffer_of(const tile *tile, int which) {
    return tile->buffer + which * ORDER_TILE;
}

/* Where a tile's inputs are read row by row: operands, an upstream gradient and a weight. Those that lie without gaps
 * stay where they are, the others are brought into shared memory; an address can be of either. */
#define GENERAL_INPUTS (MOST_OPERANDS + 2)
#define INPUT_UPSTREAM MOST_OPERANDS
#define INPUT_WEIGHT   (MOST_OPERANDS + 1)
typedef struct sources {
    const real *at[GENERAL_INPUTS]; /* null: absent */
} sources;

/* A row of them, which is sent for while another is computed. */
typedef struct inputs {
    real x[GENERAL_INPUTS][ORDER_OWN_LANES];
} inputs;

ALWAYS_INLINE void read_inputs(const tile *tile, const sources *sources, int row, inputs *into) {
#pragma unroll
    for (int k = 0; k < GENERAL_INPUTS; k++)
        if (sources->at[k])
            read_row(tile, sources->at[k], row, into->x[k]);
}

/* Value and gradients in the order of their buffers. Those that can be put without a detour have a place. */
#define GENERAL_OUTPUTS (1 + MOST_OPERANDS)
typedef struct places {
    real *at[GENERAL_OUTPUTS];
} places;

ALWAYS_INLINE void put_result(const tile *tile, const places *places, int output, int row, const real *x) {
    if (places->at[output] && tile->count == ORDER_TILE)
        put_row<ACCESS_REAL>(tile, false, places->at[output], row, x);
    else if (places->at[output])
        put_last_row<ACCESS_REAL>(tile, false, places->at[output], row, x);
    else
        write_row(tile, buffer_of(tile, output), row, x);
}

template <loss_function slope>
ALWAYS_INLINE void buffered_gradient(const tile *tile, const wanted *wanted, const places *places, part part, int k,
                                     int row, const own_row *in, const real *upstream, const real *weight) {
    real x[ORDER_OWN_LANES];
    EACH_OWN {
        const real weighted = slope(in->x[own], wanted->parameter) * weight[own];
        x[own] = takes_part(part, row, own) ? gradient_of(wanted, weighted, upstream[own]) : 0;
    }
    put_result(tile, places, 1 + k, row, x);
}

template <typename loss>
ALWAYS_INLINE void buffered_row(const tile *tile, const wanted *wanted, const inputs *inputs, part part,
                                const places *places, int row, lane_sums *sums) {
    own_row in;
    real x[ORDER_OWN_LANES];
    const real *upstream = inputs->x[INPUT_UPSTREAM], *weight = inputs->x[INPUT_WEIGHT];
#pragma unroll
    for (int k = 0; k < loss::OPERANDS; k++)
        EACH_OWN in.x[own][k] = inputs->x[k][own];
    if (wanted->sum || wanted->values) {
        EACH_OWN {
            const real value = loss::value(in.x[own], wanted->parameter);
            x[own] = takes_part(part, row, own) ? canonical(value * weight[own]) : 0;
        }
        end_row(tile, row, x);
    }
    if (wanted->sum)
        add_row(row, x, sums);
    if constexpr (loss::OPERANDS > 1) {
        if (wanted->values)
            put_result(tile, places, 0, row, x);
        if (wanted->gradients & 1)
            buffered_gradient<loss::slope_p>(tile, wanted, places, part, 0, row, &in, upstream, weight);
        if (wanted->gradients & 2)
            buffered_gradient<loss::slope_t>(tile, wanted, places, part, 1, row, &in, upstream, weight);
        if constexpr (loss::OPERANDS > 2)
            if (wanted->gradients & 4)
                buffered_gradient<loss::slope_v>(tile, wanted, places, part, 2, row, &in, upstream, weight);
    }
}

template <typename loss>
ALWAYS_INLINE void run_tile(const cuda_general *job, const wanted *wanted, const tile *tile, lane_sums *sums) {
    const bool has_weight = job->weight != NULL;
    const int buffered = loss::OPERANDS + wanted->upstream_is_tensor; /* behind them the weight */
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
        const bool is_wanted = k == 0 ? wanted->values : wanted->gradients >> (k - 1) & 1;
        places.at[k] = k <= loss::OPERANDS && is_wanted ? plain_output(job, CUDA_VALUE + k, tile) : NULL;
    }
    __syncwarp();
    inputs next;
    EACH_OWN next.x[INPUT_UPSTREAM][own] = wanted->upstream;
    EACH_OWN next.x[INPUT_WEIGHT][own] = 1;
    read_inputs(tile, &sources, 0, &next);
#pragma unroll 1
    for (int row = 0; row < ORDER_LINES; row++) {
        const inputs now = next;
        if (row + 1 < ORDER_LINES)
            read_inputs(tile, &sources, row + 1, &next);
        buffered_row<loss>(tile, wanted, &now, part, &places, row, sums);
    }
    __syncwarp();
#pragma unroll 1
    for (int k = 0; k <= loss::OPERANDS; k++)
        if ((k == 0 ? wanted->values : wanted->gradients >> (k - 1) & 1) && !plain_output(job, CUDA_VALUE + k, tile))
            empty_buffer(job, CUDA_VALUE + k, tile, buffer_of(tile, k));
    __syncwarp();
}

/* ------------------------------------------------------------------- run -- */

/* What a mean is divided by beyond the head's divisor. */
ALWAYS_INLINE bool is_over_weights(const cuda_direct *job) {
    return false;
}
template <typename parameter> ALWAYS_INLINE bool is_over_weights(const parameter *job) {
    return job->over_weights;
}

ALWAYS_INLINE double sum_of_weights(const cuda_head *head) {
    return *(const double *)((const char *)head->total.workspace + CUDA_WEIGHTS_AT);
}

/* Where a thread stands in its block. */
typedef struct place_in_block {
    int thread, warp, warps;
} place_in_block;

ALWAYS_INLINE place_in_block here_in_block(void) {
    return (place_in_block){(int)threadIdx.x % ORDER_WARP, (int)threadIdx.x / ORDER_WARP, (int)blockDim.x / ORDER_WARP};
}

/* The block's run of tiles from `first` on, of which the input fills `count` elements, a warp every so many of them, so
 * that neighbouring tiles are worked on at the same time. The tiles' sums become nodes; the warp's last one is
 * returned.
 *
 * The lanes of some tiles are added up together, in a fifth of the instructions that one at a time takes: 2 of the 45
 * or so that an element of log_cosh needs. */
template <typename loss, outputs outputs, access access>
ALWAYS_INLINE double run_tiles(const cuda_direct *job, const wanted *wanted, int64_t first, int count, double *node) {
    __shared__ __align__(16) real lanes[MOST_WARPS][ORDER_TOGETHER * ORDER_PITCH];
    const place_in_block at = here_in_block();
    const int tiles = job->head.tiles_per_block;
    double sum = ORDER_NOTHING;
    tile now = tile_at(first + at.warp, count - at.warp * ORDER_TILE, at.thread, lanes[at.warp]);
    ahead<loss, access> ahead;
    if (stage<loss, access>::ROWS < ORDER_LINES)
        begin_tile<loss, outputs, access>(job, &now, &ahead);
    int together = 0;
#pragma unroll 1
    for (int i = at.warp; i < tiles; i += at.warps) {
        const int further = i + at.warps;
        const tile next = tile_at(first + further, count - further * ORDER_TILE, at.thread, lanes[at.warp]);
        lane_sums sums = {};
        if (now.count > 0)
            run_tile<loss, outputs, access>(job, wanted, &now, &next, &ahead, &sums);
        if constexpr (outputs != OUTPUTS_GRADIENT) {
            write_row(&now, now.buffer + together++ * ORDER_PITCH, 0, sums.sum);
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

template <typename loss, outputs outputs, access access>
ALWAYS_INLINE double run_tiles(const cuda_general *job, const wanted *wanted, int64_t first, int count, double *node) {
    const place_in_block at = here_in_block();
    const int tiles = job->head.tiles_per_block;
    real *buffer = shared_buffer(&job->head, at.warp);
    double sum = ORDER_NOTHING;
#pragma unroll 1
    for (int i = at.warp; i < tiles; i += at.warps) {
        const tile tile = tile_at(first + i, count - i * ORDER_TILE, at.thread, buffer);
        lane_sums sums = {};
        if (tile.count > 0)
            run_tile<loss>(job, wanted, &tile, &sums);
        if (!wanted->sum)
            continue;
        sum = tile.count > 0 ? order_lanes(tile.thread, sums.sum) : ORDER_NOTHING;
        if (at.thread == 0)
            node[i] = sum;
    }
    return sum;
}

template <typename loss, outputs outputs, access access>
ALWAYS_INLINE double run_tiles(const cuda_weighted *job, const wanted *wanted, int64_t first, int count, double *node) {
    const place_in_block at = here_in_block();
    const int tiles = job->head.tiles_per_block;
    double sum = ORDER_NOTHING;
#pragma unroll 1
    for (int i = at.warp; i < tiles; i += at.warps) {
        const tile tile = tile_at(first + i, count - i * ORDER_TILE, at.thread, NULL);
        lane_sums sums = {};
        if (tile.count > 0)
#pragma unroll
            for (int half = 0; half < ORDER_LINES; half += WEIGHTED_ROWS)
                run_half<loss, outputs>(job, wanted, &tile, half, &sums);
        sum = tile.count > 0 ? order_lanes(tile.thread, sums.sum) : ORDER_NOTHING;
        if (at.thread == 0)
            node[i] = sum;
    }
    return sum;
}

/* A block takes an aligned run of tiles; their sums meet in shared memory. Inputs beyond what so many blocks can take
 * make it come again, in sweeps. */
template <typename loss, outputs outputs, access access, typename parameter>
ALWAYS_INLINE void run_block(const parameter *job) {
    __shared__ double node[CUDA_MOST_NODES];
    __shared__ order_stack stack;
    const cuda_head *head = &job->head;
    const place_in_block at = here_in_block();
    const int tiles = head->tiles_per_block, sweeps = head->sweeps;
    const double weights = is_over_weights(job) ? sum_of_weights(head) : 1;
    wanted wanted = what_is_wanted<outputs>(head);
    if (is_over_weights(job))
        wanted.scale = (real)(1 / weights);
    if (outputs >= OUTPUTS_GRADIENT && head->skip_if_one && wanted.upstream == 1)
        return;
    double sum = ORDER_NOTHING;
    if (sweeps > 1 && threadIdx.x == 0)
        stack.depth = 0, stack.tiles = 0;

#pragma unroll 1
    for (int sweep = 0; sweep < sweeps; sweep++) {
        const int64_t first = ((int64_t)blockIdx.x * sweeps + sweep) * tiles;
        const int64_t left = head->count - first * ORDER_TILE;
        const int count = left < tiles * ORDER_TILE ? (int)left : tiles * ORDER_TILE;
        if (count <= 0)
            break;
        sum = run_tiles<loss, outputs, access>(job, &wanted, first, count, node);
        if (wanted.sum && tiles > 1) {
            __syncthreads();
            if (at.warp == 0)
                sum = tree_of(at.thread, node, tiles);
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
    if (head->count == 0)
        sum = 0;
    if (has_total(&head->total, node, &sum))
        write_value(&head->total, sum / weights);
}

/* ---------------------------------------------------------- small inputs -- */

/* A launch begins with cold caches of instructions and parameters, so that a small input costs what its code is long,
 * and a warp has one tile, all of whose numbers it sends for at once. Serves dense operands of the compute type. */
template <typename loss, outputs outputs> ALWAYS_INLINE void run_small(const cuda_small *job) {
    __shared__ double node[CUDA_MOST_NODES];
    const place_in_block at = here_in_block();
    const int index = blockIdx.x * at.warps + at.warp, left = job->total.count - index * ORDER_TILE;
    double sum = ORDER_NOTHING;
    if (left > 0) {
        const tile tile = tile_at(index, left, at.thread, NULL);
        const bool plain = left >= ORDER_TILE && job->total.aligned;
        const int64_t first = (int64_t)index * ORDER_TILE;
        numbers in[ORDER_LINES][loss::OPERANDS];
        EACH_OPERAND {
            const real *from = (const real *)job->operand[k] + first;
            if (plain)
                EACH_ROW send_for_row<ACCESS_REAL, KEEP_LEAST>(&tile, from, row, &in[row][k]);
            else
                EACH_ROW send_for_rest<ACCESS_REAL>(&tile, from, row, &in[row][k]);
        }
        wanted wanted = {};
        wanted.parameter = REAL(job->parameter);
        wanted.scale = REAL(job->scale);
        wanted.upstream = 1;
        if (outputs == OUTPUTS_BOTH && job->upstream)
            wanted.upstream = (real)load_scalar(job->upstream, job->upstream_dtype);
        lane_sums sums = {};
        compute_rows<loss, outputs, ACCESS_REAL, ORDER_LINES>(&tile, &wanted, false, plain,
                                                              (real *)job->gradient + first, 0, in, &sums);
        sum = order_lanes(at.thread, sums.sum);
    }
    if (at.warps > 1) {
        if (at.thread == 0)
            node[at.warp] = sum;
        __syncthreads();
        if (at.warp == 0)
            sum = order_neighbours(at.thread < at.warps ? node[at.thread] : ORDER_NOTHING, at.warps);
    }
    if (has_total(&job->total, node, &sum))
        write_small_value(&job->total, sum);
}

/* --------------------------------------------------------------- scaling -- */

ALWAYS_INLINE void scale_tile(const cuda_direct *job, int which, const tile *tile, real factor) {
    real *at = (real *)tile_address(job, which, tile, sizeof(real));
    if (tile->count < ORDER_TILE) {
        for (int i = tile->thread; i < tile->count; i += ORDER_WARP)
            at[i] = canonical(at[i] * factor);
        return;
    }
    numbers numbers[ORDER_LINES];
    EACH_ROW send_for_row<ACCESS_REAL, KEEP_LEAST>(tile, at, row, &numbers[row]);
    EACH_ROW {
        real x[ORDER_OWN_LANES];
        receive<ACCESS_REAL>(false, &numbers[row], x);
        EACH_OWN x[own] = canonical(x[own] * factor);
        put_row<ACCESS_REAL>(tile, false, at, row, x);
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

/* --------------------------------------------------------------- kernels -- */

#if !defined(ONEPASS_REAL_F64) && defined(__CUDACC__)
extern "C" __device__ __align__(256) unsigned char CUDA_FIRST_WORKSPACE[ONEPASS_WORKSPACE_SIZE];
#endif

#define KERNEL_OF(bounds, name, parameter)                                                                             \
    extern "C" __global__ void bounds KERNEL(name)(const __grid_constant__ parameter job)
#define LEAN_BOUNDS __launch_bounds__(MOST_WARPS *ORDER_WARP, LEAN_BLOCKS)

#define DIRECT(bounds, name, kernel, outputs, access)                                                                  \
    KERNEL_OF(bounds, name##_##kernel, cuda_direct) {                                                                  \
        run_block<name##_loss, outputs, access>(&job);                                                                 \
    }
#define WEIGHTED(name, kernel, outputs)                                                                                \
    KERNEL_OF(BOUNDS, name##_##kernel, cuda_weighted) {                                                                \
        run_block<name##_loss, outputs, ACCESS_REAL>(&job);                                                            \
    }
#define SMALL(name, kernel, outputs)                                                                                   \
    KERNEL_OF(BOUNDS, name##_##kernel, cuda_small) {                                                                   \
        run_small<name##_loss, outputs>(&job);                                                                         \
    }
#define GENERAL(name)                                                                                                  \
    KERNEL_OF(BOUNDS, name##_general, cuda_general) {                                                                  \
        run_block<name##_loss, OUTPUTS_ANY, ACCESS_REAL>(&job);                                                        \
    }

/* The kernels of a loss, by the number of its operands; src/cuda/plan.c has the same lists. */
#if defined(ONEPASS_REAL_F64)
#define KERNELS_2(name)                                                                                                \
    GENERAL(name)                                                                                                      \
    DIRECT(BOUNDS, name, forward, OUTPUTS_VALUE, ACCESS_REAL)
#define KERNELS_3(name) KERNELS_2(name)
#else
#define KERNELS_3(name)                                                                                                \
    GENERAL(name)                                                                                                      \
    DIRECT(BOUNDS, name, forward, OUTPUTS_VALUE, ACCESS_REAL)                                                          \
    DIRECT(BOUNDS, name, both, OUTPUTS_BOTH, ACCESS_REAL)                                                              \
    WEIGHTED(name, weighted_forward, OUTPUTS_VALUE)                                                                    \
    WEIGHTED(name, weighted_both, OUTPUTS_BOTH)
#define KERNELS_2(name)                                                                                                \
    KERNELS_3(name)                                                                                                    \
    DIRECT(BOUNDS, name, backward, OUTPUTS_GRADIENT, ACCESS_REAL)                                                      \
    DIRECT(LEAN_BOUNDS, name, forward_half, OUTPUTS_VALUE, ACCESS_HALF)                                                \
    DIRECT(BOUNDS, name, both_half, OUTPUTS_BOTH, ACCESS_HALF)                                                         \
    DIRECT(BOUNDS, name, backward_half, OUTPUTS_GRADIENT, ACCESS_HALF)                                                 \
    SMALL(name, small_forward, OUTPUTS_VALUE)                                                                          \
    SMALL(name, small_both, OUTPUTS_BOTH)
#endif

#define LOSS(name, operands, ...) PASTE(KERNELS_, OPERANDS_OF operands)(name)
#include "losses.def"
#undef LOSS

/* A float gradient that was computed before its upstream gradient was known. */
KERNEL_OF(BOUNDS, scale_direct, cuda_direct) {
    scale_block(&job);
}
KERNEL_OF(BOUNDS, scale_general, cuda_general) {
    scale_block(&job);
}

/* What a weighted or masked mean is divided by, for the launch that comes next. */
DIRECT(BOUNDS, weights, direct, OUTPUTS_VALUE, ACCESS_REAL)
#if !defined(ONEPASS_REAL_F64)
WEIGHTED(weights, weighted, OUTPUTS_VALUE)
#endif
GENERAL(weights)
