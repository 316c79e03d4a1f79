/*
 * The CPU engine's work on tiles, for losses of two numbers or three: gather the
 * operands of a tile as `real` numbers, compute values and slopes lane by lane,
 * scatter what was computed. Compiled once for each instruction set and each
 * compute type; ONEPASS_ENTRY is the name of the one function that comes out.
 *
 * -ffp-contract=off is part of the meaning: a fused multiply-add has other bits.
 */
#include "cpu/memory.h"   /* gather and scatter */
#include "cpu/pairwise.h" /* the entry */
#include "order.h"        /* whatever is added up */

/* ----------------------------------------------------------------- strip -- */

/*
 * A strip is a few tiles in a row that are computed by one call of a loss's
 * function: as many as lie in memory as the computation wants them, or one that
 * was gathered into a buffer. Within a strip nothing is stored but whole cache
 * lines of results. That is not only less work: cores that stop fetching lines
 * which are about to be overwritten (write streaming) give up at the first store
 * of another kind, and one a tile cost 30 % of the rate on a Neoverse N1.
 */
#define STRIP_TILES 16

typedef struct strip {
    const void *operand[MOST_OPERANDS]; /* those that the loss does not have are another's */
    int64_t stride[MOST_OPERANDS];      /* elements from number to number; looked at only if the access is strided */
    int64_t step[MOST_OPERANDS];        /* elements from tile to tile; 0 where one constant tile serves all */
    real parameter[ONEPASS_MAX_PARAMETERS];
    real scale;
    real *gradient;   /* for the prediction, if it comes with the sums */
    bool from_memory; /* the operands are too many for the second-level cache */
    bool is_last;     /* of this thread's */
    int tiles;
    int count; /* elements: ORDER_TILE a tile, fewer in a tile that the input ends in */
} strip;

/* One tile of a strip. */
typedef struct tile {
    const void *operand[MOST_OPERANDS];
    int64_t stride[MOST_OPERANDS];
    real parameter[ONEPASS_MAX_PARAMETERS];
    real scale;
    real *gradient;
    bool prefetch_operands, prefetch_gradient; /* of the tile after it */
} tile;

/* How the operands of a strip lie: as `real` without gaps, or in one of the ways
 * that the sums can read without a detour through a buffer: as floats with gaps,
 * or all in the same 16-bit type. */
typedef enum access {
    ACCESS_REAL,
    ACCESS_STRIDED,
    ACCESS_F16,
    ACCESS_BF16,
    ACCESS_COUNT
} access;

/* What a tile's elements are multiplied by, or hidden by, where it does not lie in memory as the computation wants it.
 * Apart from the other buffers, since calls without it need that much less stack, and their sums with gradients take as
 * much. */
typedef struct factors {
    _Alignas(64) real upstream[ORDER_TILE];
    real weight[ORDER_TILE];
    real mask[ORDER_TILE];                       /* 0 and 1 */
    const void *constant_weight, *constant_mask; /* as in `buffers` */
} factors;

/* One thread's buffers, for what does not lie in memory as the computation wants it. They are on the stack, so they are
 * few: results leave theirs before the next are computed. */
typedef struct buffers {
    _Alignas(64) real operand[MOST_OPERANDS][ORDER_TILE];
    real result[ORDER_TILE]; /* values, or a gradient */
    /* Where the constant that fills operand[k] was read, so that a strip of the same row need not fill it again. */
    const void *constant[MOST_OPERANDS];
    factors *factors; /* null where the job has none */
} buffers;

/* --------------------------------------------------------------- compute -- */

/* slope * scale as it is stored. */
typedef real product_function(real slope, real scale);

ALWAYS_INLINE real canonical_product(real slope, real scale) {
    return canonical(slope * scale);
}

/* The same for the gradient that training needs most. On Arm the engine computes in
 * the default-NaN mode, in which a product's NaN is the canonical one (a strip's sum
 * and gradient were 25 % faster for it on a Neoverse N1). A compiler may still move a
 * negation behind the product, so a slope_p must not end in one. */
ALWAYS_INLINE real lean_product(real slope, real scale) {
#if defined(__aarch64__)
    return slope * scale;
#else
    return canonical_product(slope, scale);
#endif
}

/* The functions of a loss, for a strip. The sums are of whole tiles and come alone
 * or with the gradient for the prediction, since that is how training uses them. A
 * gradient is slope * scale here, and times the upstream gradient, if that is not
 * 1, in a step of its own. */
typedef struct loss_functions {
    void (*sums[ACCESS_COUNT])(const strip *strip, double *sum);
    void (*sums_and_gradient[ACCESS_COUNT])(const strip *strip, double *sum);
    void (*values)(const strip *strip, real *value);
    void (*gradient[MOST_OPERANDS])(const strip *strip, real *gradient);
} loss_functions;

/* A copy, whose address nobody else has: it cannot alias what the loops write. */
ALWAYS_INLINE tile tile_of(const strip *strip, int index, size_t size) {
    const bool followed = index + 1 < strip->tiles || !strip->is_last;
    tile tile = {.scale = strip->scale,
                 .gradient = strip->gradient ? strip->gradient + index * ORDER_TILE : NULL,
                 .prefetch_operands = followed && strip->from_memory,
                 .prefetch_gradient = followed};
    for (int k = 0; k < MOST_OPERANDS; k++) {
        tile.operand[k] = (const char *)strip->operand[k] + index * strip->step[k] * (int64_t)size;
        tile.stride[k] = strip->stride[k];
    }
    memcpy(tile.parameter, strip->parameter, sizeof tile.parameter);
    return tile;
}

ALWAYS_INLINE int tile_count(const strip *strip, int index) {
    const int left = strip->count - index * ORDER_TILE;
    return left < ORDER_TILE ? left : ORDER_TILE;
}

ALWAYS_INLINE real read_real(const tile *tile, int operand, int64_t i) {
    return ((const real *)tile->operand[operand])[i];
}

/* A term that lies in a buffer already. */
ALWAYS_INLINE real stored_term(const tile *tile, int64_t i) {
    return read_real(tile, 0, i);
}

/*
 * How a processor likes its tiles. x86 has the memory of the next tile on its way while it computes one: hardware stops
 * at the end of a page, which a tile of floats is, and a store waits for its line. Value and gradient of mse, 8192 x
 * 8192 on a Xeon, went from 0.66 to 1.0 of a plain loop's rate. What the second-level cache holds is there soon enough,
 * but for the lines to be written. Four lines at a time leave few sums to store beside a gradient (0.44 to 0.8 of a
 * plain loop in that cache); losses that compute long gain nothing by it, and their code would be there four times.
 *
 * Arm's cores like plain streams best: one line at a time, and gradients one element after the other, which keeps their
 * write streaming (mse took twice as long on a Neoverse N1 with two lines at a time). Only losses that compute long
 * want two lines, which do not wait for each other (log_cosh 30 ms instead of 35).
 */
#if defined(__x86_64__)
enum {
    CAN_PREFETCH = true,
    TILES_OF_SUMS = 1,
    BLOCK_OF_LANES = 16,
    LINES_OF_SUMS_SHORT = 4,
    LINES_OF_SUMS_LONG = 2,
    LINES_OF_GRADIENTS_SHORT = 4,
    LINES_OF_GRADIENTS_LONG = 1
};
#else
enum {
    CAN_PREFETCH = false,
    TILES_OF_SUMS = STRIP_TILES,
    BLOCK_OF_LANES = ORDER_LANES,
    LINES_OF_SUMS_SHORT = 1,
    LINES_OF_SUMS_LONG = 2,
    LINES_OF_GRADIENTS_SHORT = 1,
    LINES_OF_GRADIENTS_LONG = 1
};
#endif

#define CACHE_LINE        64
#define MOST_CACHED_BYTES (1 << 20) /* of an operand's, on one core */

/* The bytes of `count` elements of the next tile, beginning at those of `element`. */
ALWAYS_INLINE void prefetch(const void *tile, int64_t size, int64_t element, int64_t count, bool to_write) {
    const uintptr_t from = (uintptr_t)tile + (uintptr_t)((ORDER_TILE + element) * size);
    for (int64_t byte = 0; byte < count * size; byte += CACHE_LINE) {
        const void *line = (const void *)(from + (uintptr_t)byte);
        if (to_write)
            __builtin_prefetch(line, 1);
        else
            __builtin_prefetch(line);
    }
}

ALWAYS_INLINE void prefetch_nothing(const tile *tile, int64_t element, int64_t count) {
    (void)tile, (void)element, (void)count;
}

ALWAYS_INLINE void prefetch_operands(const tile *tile, int operands, int64_t size, int64_t element, int64_t count) {
    for (int k = 0; CAN_PREFETCH && tile->prefetch_operands && k < operands; k++)
        prefetch(tile->operand[k], size, element, count, false);
}

ALWAYS_INLINE void prefetch_gradient(const tile *tile, int64_t element, int64_t count) {
    if (CAN_PREFETCH && tile->prefetch_gradient)
        prefetch(tile->gradient, sizeof(real), element, count, true);
}

ALWAYS_INLINE void each_sum(order_term *term, order_prefetch *prefetch, const strip *strip, size_t size, int lines,
                            double *sum) {
    _Alignas(64) real part[ORDER_ROWS][ORDER_LANES], lanes[ORDER_LANES];
    for (int index = 0; index < strip->tiles; index++) {
        const tile tile = tile_of(strip, index, size);
        order_lines(term, prefetch, &tile, lines, BLOCK_OF_LANES, part, lanes);
        sum[index] = order_lanes(lanes);
    }
}

/* The same for terms that also write a gradient. Where a store of another kind ends their streaming, the sums wait
 * until the end of the strip. */
ALWAYS_INLINE void each_sum_and_gradient(order_term *term, order_prefetch *prefetch, const strip *strip, size_t size,
                                         int lines, double *sum) {
    _Alignas(64) real part[ORDER_ROWS][ORDER_LANES], lanes[TILES_OF_SUMS][ORDER_LANES];
    for (int index = 0; index < strip->tiles; index++) {
        const tile tile = tile_of(strip, index, size);
        order_lines(term, prefetch, &tile, lines, BLOCK_OF_LANES, part, lanes[index % TILES_OF_SUMS]);
        if (TILES_OF_SUMS == 1)
            sum[index] = order_lanes(lanes[0]);
    }
    for (int index = 0; TILES_OF_SUMS > 1 && index < strip->tiles; index++)
        sum[index] = order_lanes(lanes[index % TILES_OF_SUMS]);
}

ALWAYS_INLINE void each_value(order_term *term, const strip *strip, real *value) {
    for (int index = 0; index < strip->tiles; index++) {
        const tile tile = tile_of(strip, index, sizeof(real));
        const int count = tile_count(strip, index);
        real *out = value + index * ORDER_TILE;
#pragma omp simd
        for (int64_t i = 0; i < count; i++)
            out[i] = canonical(term(&tile, i));
    }
}

ALWAYS_INLINE void each_gradient(order_term *slope, product_function *product, const strip *strip, real *gradient) {
    for (int index = 0; index < strip->tiles; index++) {
        const tile tile = tile_of(strip, index, sizeof(real));
        const int count = tile_count(strip, index);
        real *out = gradient + index * ORDER_TILE;
#pragma omp simd
        for (int64_t i = 0; i < count; i++)
            out[i] = product(slope(&tile, i), tile.scale);
    }
}

ALWAYS_INLINE real read_strided(const tile *tile, int operand, int64_t i) {
    return ((const real *)tile->operand[operand])[i * tile->stride[operand]];
}
ALWAYS_INLINE real read_f16(const tile *tile, int operand, int64_t i) {
    return load_f16(tile->operand[operand], i);
}
ALWAYS_INLINE real read_bf16(const tile *tile, int operand, int64_t i) {
    return load_bf16(tile->operand[operand], i);
}

#define SIZE_real    sizeof(real)
#define SIZE_strided sizeof(real)
#define SIZE_f16     2
#define SIZE_bf16    2

/* The arguments of a loss's functions, by the list of its operands. */
#define ARGUMENTS_2(access) read_##access(tile, 0, i), read_##access(tile, 1, i), tile->parameter
#define ARGUMENTS_3(access)                                                                                            \
    read_##access(tile, 0, i), read_##access(tile, 1, i), read_##access(tile, 2, i), tile->parameter
#define ARGUMENTS(operands, access) PASTE(ARGUMENTS_, OPERANDS_OF operands)(access)

/* What is made of a loss for each access to its operands, ... */
#define LOSS_SUMS(name, operands, length, access)                                                                      \
    ALWAYS_INLINE real name##_term_##access(const tile *tile, int64_t i) {                                             \
        return name##_value(ARGUMENTS(operands, access));                                                              \
    }                                                                                                                  \
    ALWAYS_INLINE real name##_term_and_gradient_##access(const tile *tile, int64_t i) {                                \
        const real term = name##_value(ARGUMENTS(operands, access));                                                   \
        tile->gradient[i] = lean_product(name##_slope_p(ARGUMENTS(operands, access)), tile->scale);                    \
        return term;                                                                                                   \
    }                                                                                                                  \
    ALWAYS_INLINE void name##_prefetch_##access(const tile *tile, int64_t element, int64_t count) {                    \
        prefetch_operands(tile, OPERANDS_OF operands, SIZE_##access, element, count);                                  \
    }                                                                                                                  \
    ALWAYS_INLINE void name##_prefetch_all_##access(const tile *tile, int64_t element, int64_t count) {                \
        prefetch_operands(tile, OPERANDS_OF operands, SIZE_##access, element, count);                                  \
        prefetch_gradient(tile, element, count);                                                                       \
    }                                                                                                                  \
    static void name##_sums_##access(const strip *strip, double *sum) {                                                \
        each_sum(name##_term_##access, name##_prefetch_##access, strip, SIZE_##access, LINES_OF_SUMS_##length, sum);   \
    }                                                                                                                  \
    static void name##_sums_and_gradient_##access(const strip *strip, double *sum) {                                   \
        each_sum_and_gradient(name##_term_and_gradient_##access, name##_prefetch_all_##access, strip, SIZE_##access,   \
                              LINES_OF_GRADIENTS_##length, sum);                                                       \
    }

/* ... for each operand, ... */
#define LOSS_GRADIENT(name, operands, which, product)                                                                  \
    ALWAYS_INLINE real name##_slope_##which##_at(const tile *tile, int64_t i) {                                        \
        return name##_slope_##which(ARGUMENTS(operands, real));                                                        \
    }                                                                                                                  \
    static void name##_gradient_##which(const strip *strip, real *gradient) {                                          \
        each_gradient(name##_slope_##which##_at, product, strip, gradient);                                            \
    }
#define LOSS_GRADIENTS_2(name, operands)                                                                               \
    LOSS_GRADIENT(name, operands, p, lean_product)                                                                     \
    LOSS_GRADIENT(name, operands, t, canonical_product)
#define LOSS_GRADIENTS_3(name, operands)                                                                               \
    LOSS_GRADIENTS_2(name, operands)                                                                                   \
    LOSS_GRADIENT(name, operands, v, canonical_product)
#define GRADIENTS_2(name) name##_gradient_p, name##_gradient_t
#define GRADIENTS_3(name) GRADIENTS_2(name), name##_gradient_v

/* ... and once. */
#define LOSS_ELEMENTS(name, operands)                                                                                  \
    PASTE(LOSS_GRADIENTS_, OPERANDS_OF operands)                                                                       \
    (name, operands) static void name##_values(const strip *strip, real *value) {                                      \
        each_value(name##_term_real, strip, value);                                                                    \
    }

/* Accesses other than the first are for float: they cost a loss five times the code. */
#if defined(ONEPASS_REAL_F64)
#define LOSS(name, operands, length, ...)                                                                              \
    LOSS_SUMS(name, operands, length, real)                                                                            \
    LOSS_ELEMENTS(name, operands)
#define EACH_ACCESS(function)                                                                                          \
    { function##_real }
#else
#define LOSS(name, operands, length, ...)                                                                              \
    LOSS_SUMS(name, operands, length, real)                                                                            \
    LOSS_SUMS(name, operands, length, strided)                                                                         \
    LOSS_SUMS(name, operands, length, f16)                                                                             \
    LOSS_SUMS(name, operands, length, bf16)                                                                            \
    LOSS_ELEMENTS(name, operands)
#define EACH_ACCESS(function)                                                                                          \
    { function##_real, function##_strided, function##_f16, function##_bf16 }
#endif
#include "losses.def"
#undef LOSS

#define LOSS(name, operands, length, ...)                                                                              \
    {EACH_ACCESS(name##_sums),                                                                                         \
     EACH_ACCESS(name##_sums_and_gradient),                                                                            \
     name##_values,                                                                                                    \
     {PASTE(GRADIENTS_, OPERANDS_OF operands)(name)}},
static const loss_functions losses[] = {
#include "losses.def"
};
#undef LOSS

/* Numbers times their weights, and a factor for all. */
static void weigh(real *x, int count, const real *weight, real factor) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        x[i] = canonical(x[i] * weight[i] * factor);
}

/* 0 where the mask is, whatever stands there. */
static void hide(real *x, int count, const real *mask) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        x[i] = choose(mask[i] != 0, x[i], 0);
}

/* The sum of one whole tile. */
ALWAYS_INLINE void one_sum(order_term *term, const real *first, const real *second, double *sum) {
    each_sum(term, prefetch_nothing, &(strip){.operand = {first, second, second}, .tiles = 1}, sizeof(real),
             LINES_OF_SUMS_SHORT, sum);
}

/* The sum of a tile's terms that lie in a buffer, `count` of them. Missing terms are +0. */
static void stored_sum(real *terms, int count, double *sum) {
    memset(terms + count, 0, (size_t)(ORDER_TILE - count) * sizeof *terms);
    one_sum(stored_term, terms, terms, sum);
}

ALWAYS_INLINE real weighted_term(const tile *tile, int64_t i) {
    return read_real(tile, 0, i) * read_real(tile, 1, i);
}

/* What a tile's elements are worth; null where there is no such thing. */
typedef struct worth {
    const real *weight, *mask;
} worth;

/* A tile that the input ends in, or whose terms are weighted or masked. */
static void buffered_sum(const loss_functions *loss, const strip *given, worth worth, real *terms, double *sum) {
    const real *weight = worth.weight;
    loss->values(given, terms);
    if (weight && !worth.mask && given->count == ORDER_TILE) {
        one_sum(weighted_term, terms, weight, sum);
        return;
    }
    if (weight)
        weigh(terms, given->count, weight, 1);
    if (worth.mask)
        hide(terms, given->count, worth.mask);
    stored_sum(terms, given->count, sum);
}

static void multiply_by_one(real *gradient, int count, real factor) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        gradient[i] = canonical(gradient[i] * factor);
}

static void multiply_by_each(real *gradient, int count, const real *factor) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        gradient[i] = canonical(gradient[i] * factor[i]);
}

/* ------------------------------------------------------------------- run -- */

/* What a run does with each of its tiles. */
typedef struct wanted {
    bool sum, values, gradient[MOST_OPERANDS];
    int gradients; /* how many */
    bool upstream_is_tensor;
    bool weighted;   /* then the scale is left to be multiplied after the weight */
    bool one_by_one; /* tiles with a weight or a mask */
    real scale;
    access access; /* in which the sums can read the operands, where whole tiles of each lie in one row */
    real upstream; /* if it is one number; 1 if there is none */
} wanted;

/* Gaps within a cache line: the sums read around them (0.95 of a plain loop's rate
 * on a Neoverse N1, against 0.62 through a buffer). Wider ones are better gathered. */
static bool has_narrow_gaps(const view *view) {
    const int64_t stride = inner_stride(view);
    return stride != 0 && stride != 1 && stride * (int64_t)sizeof(real) < 64 && -stride * (int64_t)sizeof(real) < 64;
}

static access sums_access(const job *job) {
    const int32_t dtype = job->operand[0].dtype;
    bool dense = true, gaps = false;
    for (int32_t k = 0; k < job->operand_count; k++) {
        if (job->operand[k].dtype != dtype)
            return ACCESS_REAL;
        dense &= inner_stride(&job->operand[k]) == 1;
        gaps |= has_narrow_gaps(&job->operand[k]);
    }
    if (sizeof(real) != sizeof(float))
        return ACCESS_REAL;
    if (dtype == REAL_DTYPE)
        return gaps ? ACCESS_STRIDED : ACCESS_REAL;
    return !dense ? ACCESS_REAL : dtype == ONEPASS_F16 ? ACCESS_F16 : ACCESS_BF16;
}

static wanted what_is_wanted(const job *job) {
    const bool none = job->reduction == ONEPASS_NONE;
    wanted wanted = {.sum = job->sum || (!none && job->value.data),
                     .values = none && job->value.data,
                     .upstream_is_tensor = none && job->upstream.data,
                     .weighted = job->weight.data,
                     .one_by_one = job->weight.data || job->mask.data,
                     .scale = job->reduction == ONEPASS_MEAN ? (real)(1.0 / job->divisor) : 1,
                     .upstream = 1};
    if (!none && job->upstream.data)
        wanted.upstream = (real)load_scalar(job->upstream.data, job->upstream.dtype);
    for (int k = 0; k < MOST_OPERANDS; k++) {
        wanted.gradient[k] = job->gradient[k].data;
        wanted.gradients += wanted.gradient[k];
    }
    const bool only_sums = wanted.sum && !wanted.values && wanted.gradients == wanted.gradient[0];
    if (only_sums && !wanted.one_by_one)
        wanted.access = sums_access(job);
    return wanted;
}

/* How many tiles from `element` on make a strip for which the view need not be gathered, or only one constant tile. */
static int64_t tiles_without_gather(const view *view, int64_t element, access access) {
    if (access != ACCESS_REAL)
        return row_length(view, element) / ORDER_TILE;
    const int64_t dense = view->dtype == REAL_DTYPE ? dense_length(view, element) : 0;
    return (dense ? dense : constant_length(view, element)) / ORDER_TILE;
}

static int64_t tiles_without_scatter(const view *view, int64_t element) {
    return view->dtype == REAL_DTYPE ? dense_length(view, element) / ORDER_TILE : 0;
}

/* An operand that its gradient will lie over is copied first, if other gradients are computed from it as well. */
static bool must_copy(const job *job, const wanted *wanted, int k) {
    return wanted->gradients > 1 && job->in_place[k];
}

/* The next strip: as many tiles as nobody needs a buffer for, else one. */
static access next_strip(const job *job, const wanted *wanted, int64_t element, int64_t left, strip *strip,
                         buffers *buffers) {
    int64_t tiles = least(left / ORDER_TILE, wanted->one_by_one ? 1 : STRIP_TILES);
    access access = tiles ? wanted->access : ACCESS_REAL;
    for (int k = 0; k < job->operand_count; k++)
        if (row_length(&job->operand[k], element) < ORDER_TILE)
            access = ACCESS_REAL;
    for (int k = 0; k < job->operand_count; k++) {
        tiles = least(tiles, tiles_without_gather(&job->operand[k], element, access));
        if (wanted->gradient[k])
            tiles = must_copy(job, wanted, k) ? 0 : least(tiles, tiles_without_scatter(&job->gradient[k], element));
    }
    if (wanted->values)
        tiles = least(tiles, tiles_without_scatter(&job->value, element));

    strip->tiles = tiles > 0 ? (int)tiles : 1;
    strip->count = (int)least(left, (int64_t)strip->tiles * ORDER_TILE);
    for (int k = 0; k < job->operand_count; k++) {
        const view *view = &job->operand[k];
        if (access != ACCESS_REAL)
            strip->operand[k] = address_of(view, element);
        else if (must_copy(job, wanted, k))
            strip->operand[k] = gather_copy(view, element, strip->count, buffers->operand[k]);
        else
            strip->operand[k] = gather(view, element, strip->count, buffers->operand[k], &buffers->constant[k]);
        strip->stride[k] = access == ACCESS_STRIDED ? inner_stride(view) : 1;
        strip->step[k] = strip->operand[k] == buffers->operand[k] ? 0 : strip->stride[k] * ORDER_TILE;
    }
    for (int k = job->operand_count; k < MOST_OPERANDS; k++)
        strip->operand[k] = strip->operand[0];
    return access;
}

static void write_values(const job *job, const loss_functions *loss, const strip *strip, worth worth, int64_t element,
                         buffers *buffers) {
    real *into = direct(&job->value, element, strip->count), *values = into ? into : buffers->result;
    loss->values(strip, values);
    if (worth.weight)
        weigh(values, strip->count, worth.weight, 1);
    if (worth.mask)
        hide(values, strip->count, worth.mask);
    if (!into)
        scatter(&job->value, element, strip->count, values);
}

/* The upstream gradient comes last, so that a gradient may also be scaled later with the same bits. */
static void multiply_by_upstream(const job *job, const wanted *wanted, int64_t element, int count, factors *factors,
                                 real *gradient) {
    if (wanted->upstream_is_tensor) {
        const void *constant = NULL;
        for (int done = 0; done < count; done += ORDER_TILE) {
            const int n = (int)least(count - done, ORDER_TILE);
            multiply_by_each(gradient + done, n,
                             gather(&job->upstream, element + done, n, factors->upstream, &constant));
        }
    } else if (wanted->upstream != 1) {
        multiply_by_one(gradient, count, wanted->upstream);
    }
}

static worth worth_of(const job *job, int64_t element, int count, factors *factors) {
    worth worth = {NULL, NULL};
    if (job->weight.data)
        worth.weight = gather(&job->weight, element, count, factors->weight, &factors->constant_weight);
    if (job->mask.data)
        worth.mask = gather(&job->mask, element, count, factors->mask, &factors->constant_mask);
    return worth;
}

/* All that is wanted of a strip; `sum` has one number a tile, if sums are wanted. */
static void run_strip(const job *job, const wanted *wanted, access access, strip *strip, int64_t element,
                      buffers *buffers, double *sum) {
    const loss_functions *loss = &losses[job->loss];
    const worth worth = worth_of(job, element, strip->count, buffers->factors);
    const bool whole = strip->count == strip->tiles * ORDER_TILE && !wanted->one_by_one;
    const bool together = whole && wanted->sum && wanted->gradient[0];

    if (together) {
        real *into = direct(&job->gradient[0], element, strip->count);
        strip->gradient = into ? into : buffers->result;
        loss->sums_and_gradient[access](strip, sum);
    } else if (wanted->sum && whole) {
        loss->sums[access](strip, sum);
    } else if (wanted->sum) {
        buffered_sum(loss, strip, worth, buffers->result, sum);
    }
    if (wanted->values)
        write_values(job, loss, strip, worth, element, buffers);
    for (int k = 0; k < job->operand_count; k++) {
        if (!wanted->gradient[k])
            continue;
        real *into = direct(&job->gradient[k], element, strip->count), *gradient = into ? into : buffers->result;
        if (!(together && k == 0))
            loss->gradient[k](strip, gradient);
        if (worth.weight)
            weigh(gradient, strip->count, worth.weight, wanted->scale);
        multiply_by_upstream(job, wanted, element, strip->count, buffers->factors, gradient);
        if (worth.mask)
            hide(gradient, strip->count, worth.mask);
        if (!into)
            scatter(&job->gradient[k], element, strip->count, gradient);
    }
}

/* The upstream gradient alone, for gradients that were computed without it. */
static void scale_gradients(const job *job, const wanted *wanted, int64_t element, int64_t end, buffers *buffers) {
    for (int count; element < end && wanted->upstream != 1; element += count) {
        count = (int)least(end - element, ORDER_TILE);
        for (int k = 0; k < MOST_OPERANDS; k++) {
            const view *view = &job->gradient[k];
            if (!wanted->gradient[k])
                continue;
            real *into = direct(view, element, count), *gradient = into ? into : buffers->result;
            if (!into)
                gather_copy(view, element, count, gradient);
            multiply_by_one(gradient, count, wanted->upstream);
            if (!into)
                scatter(view, element, count, gradient);
        }
    }
}

/* The weights alone, or the mask, for the mean that is divided by their sum. A tile that lies as `real`, and counts as
 * a whole, is read where it is. */
static void sum_weights(const job *job, int64_t element, int64_t end, buffers *buffers, order_nodes *nodes) {
    factors *factors = buffers->factors;
    double sum;
    for (int count; element < end; element += count) {
        count = (int)least(end - element, ORDER_TILE);
        const real *weight =
            gather(&job->operand[0], job->first + element, count, factors->weight, &factors->constant_weight);
        if (count == ORDER_TILE && !job->mask.data) {
            one_sum(stored_term, weight, weight, &sum);
        } else {
            memcpy(buffers->result, weight, (size_t)count * sizeof *weight);
            if (job->mask.data)
                hide(buffers->result, count,
                     gather(&job->mask, job->first + element, count, factors->mask, &factors->constant_mask));
            stored_sum(buffers->result, count, &sum);
        }
        order_push_tile(nodes, sum);
    }
    order_end_node(nodes);
}

static __attribute__((noinline)) void run(const job *job, int64_t first_tile, int64_t tile_count, int level,
                                          factors *factors, double *sums) {
    const wanted wanted = what_is_wanted(job);
    double sum[STRIP_TILES];
    buffers buffers;
    for (int k = 0; k < MOST_OPERANDS; k++)
        buffers.constant[k] = NULL;
    buffers.factors = factors;
    strip strip = {.scale = wanted.weighted ? 1 : wanted.scale,
                   .from_memory = job->count * (int64_t)dtype_size(job->operand[0].dtype) > MOST_CACHED_BYTES};
    for (int i = 0; i < ONEPASS_MAX_PARAMETERS; i++)
        strip.parameter[i] = (real)job->parameter[i];

    order_nodes nodes = {.level = level, .next = sums};
    const int64_t last_tile = first_tile + tile_count;
    const int64_t end = last_tile > job->count / ORDER_TILE ? job->count : last_tile * ORDER_TILE;
    if (job->loss == ONEPASS_SCALE_ONLY) {
        scale_gradients(job, &wanted, first_tile * ORDER_TILE, end, &buffers);
        return;
    }
    if (job->loss == ONEPASS_WEIGHTS_ONLY) {
        sum_weights(job, first_tile * ORDER_TILE, end, &buffers, &nodes);
        return;
    }
    for (int64_t done = first_tile * ORDER_TILE; done < end; done += strip.count) {
        const int64_t element = job->first + done;
        const access access = next_strip(job, &wanted, element, end - done, &strip, &buffers);
        strip.is_last = done + strip.count >= end;
        run_strip(job, &wanted, access, &strip, element, &buffers, sum);
        for (int index = 0; wanted.sum && index < strip.tiles; index++)
            order_push_tile(&nodes, sum[index]);
    }
    order_end_node(&nodes);
}

static __attribute__((noinline)) void run_with_factors(const job *job, int64_t first_tile, int64_t tile_count,
                                                       int level, double *sums) {
    factors factors;
    factors.constant_weight = factors.constant_mask = NULL;
    run(job, first_tile, tile_count, level, &factors, sums);
}

void ONEPASS_ENTRY(const job *job, int64_t first_tile, int64_t tile_count, int level, double *sums) {
    const bool has_factors = job->weight.data || job->mask.data || job->loss == ONEPASS_WEIGHTS_ONLY ||
                             (job->reduction == ONEPASS_NONE && job->upstream.data);
    if (has_factors)
        run_with_factors(job, first_tile, tile_count, level, sums);
    else
        run(job, first_tile, tile_count, level, NULL, sums);
}
