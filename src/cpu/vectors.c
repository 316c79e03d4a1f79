/*
 * The CPU engine's work on vectors: the sums of a row's tiles, the row's value, and the slopes of its tiles. Compiled
 * once for each instruction set and compute type; ONEPASS_VARIANT (avx2_f32) ends the names of the functions that come
 * out.
 */
#include "cpu/vectors.h"

#include "cpu/direct_sum.h"
#include "cpu/label_lists.h"
#include "cpu/row_numbers.h"
#include "cpu/vector_tile.h"
#include "math/softmaxes.h"

#define ROWS      PASTE(onepass_cpu_vectors_, ONEPASS_VARIANT)
#define LARGEST   PASTE(onepass_cpu_vector_largest_, ONEPASS_VARIANT)
#define SOFTMAXES PASTE(onepass_cpu_vector_softmaxes_, ONEPASS_VARIANT)
#define KNOW      PASTE(onepass_cpu_vector_know_, ONEPASS_VARIANT)
#define SUMS      PASTE(onepass_cpu_vector_sums_, ONEPASS_VARIANT)
#define FINISH    PASTE(onepass_cpu_vector_finish_, ONEPASS_VARIANT)
#define SLOPES    PASTE(onepass_cpu_vector_slopes_, ONEPASS_VARIANT)
ONEPASS_INTERNAL cpu_vectors_function ROWS;
ONEPASS_INTERNAL cpu_vector_largest_function LARGEST;
ONEPASS_INTERNAL cpu_vector_softmaxes_function SOFTMAXES;
ONEPASS_INTERNAL cpu_vector_know_function KNOW;
ONEPASS_INTERNAL cpu_vector_sums_function SUMS;
ONEPASS_INTERNAL cpu_vector_finish_function FINISH;
ONEPASS_INTERNAL cpu_vector_slopes_function SLOPES;

/* For what does not lie in memory as the computation wants it, as in buffers.h. */
typedef struct vector_buffers {
    _Alignas(64) real operand[MOST_OPERANDS][ORDER_TILE];
    real result[ORDER_TILE];
    const void *constant[MOST_OPERANDS];
} vector_buffers;

/* The same for short rows. On x86 there is room for two of more than half a tile, if values alone are wanted: some
 * steps are then taken once. Shorter ones share a tile, and more of them took longer. */
#define GATHERED ((CAN_PREFETCH && sizeof(real) == sizeof(float) ? 2 : 1) * ORDER_TILE)

typedef struct short_buffers {
    _Alignas(64) real operand[MOST_OPERANDS][GATHERED];
    real result[ORDER_TILE];
} short_buffers;

static bool takes_part(const job *job, int64_t row) {
    return element_of(&job->mask, job->first + row, 1) != 0;
}

/* The element that a row's class index names. */
typedef struct own_element {
    int64_t at; /* -1: none */
    real x;
} own_element;

static int64_t own_index(const job *job, int64_t row) {
    const view *label = &job->operand[1];
    return job->loss->has_labels && takes_part(job, row)
               ? load_index(address_of(label, job->first + row), label->dtype, 0)
               : -1;
}

/* Before anything is written that may lie over it. */
static own_element own_element_of(const job *job, int64_t row) {
    own_element own = {own_index(job, row), 0};
    if (own.at >= 0)
        gather_copy(&job->operand[0], (job->first + row) * job->vectors.length + own.at, 1, &own.x);
    return own;
}

static int gradient_count(const job *job) {
    int count = 0;
    for (int k = 0; k < job->loss->vectors; k++)
        count += job->gradient[k].data != NULL;
    return count;
}

static void begin_tile(const job *job, vector_tile *tile) {
    memcpy(tile->parameter, job->parameter, sizeof tile->parameter);
    tile->has_slopes = gradient_count(job) > 0;
    tile->has_source = false;
}

static void begin_tiles(const job *job, vector_tile *tile, vector_buffers *buffers) {
    begin_tile(job, tile);
    for (int k = 0; k < MOST_OPERANDS; k++)
        buffers->constant[k] = NULL;
}

/* Operands that do not lie as wanted come to their places. One that its gradient will lie over is copied first, if
 * other gradients are computed from it as well; and so is a single number that stands for more than a tile, of which
 * gather() has no more. */
static void gather_to(real *const *place, const void **constant, const job *job, int64_t element, int64_t count,
                      bool must_copy, vector_tile *tile) {
    const int vectors = job->loss->vectors;
    tile->rows = 1;
    tile->count = count;
    tile->is_followed = element + count < (job->first + job->count) * job->vectors.length;
    tile->has_source = CAN_PREFETCH && tile->is_followed;
    tile->beyond = count > ORDER_TILE ? count - ORDER_TILE : 0;
    for (int k = 0; k < vectors; k++) {
        const bool copies =
            (must_copy && job->in_place[k]) || (count > ORDER_TILE && inner_stride(&job->operand[k]) == 0);
        tile->operand[k] = copies ? gather_copy(&job->operand[k], element, (int)count, place[k])
                                  : gather(&job->operand[k], element, (int)count, place[k], &constant[k]);
        tile->is_followed &= tile->operand[k] != place[k];
        tile->has_source &=
            dtype_size(job->operand[k].dtype) == SOURCE_SIZE && dense_length(&job->operand[k], element) > 0;
        tile->source[k] = tile->has_source ? address_of(&job->operand[k], element) : NULL;
    }
    for (int k = vectors; k < MOST_OPERANDS; k++) {
        tile->operand[k] = tile->operand[0];
        tile->source[k] = NULL;
    }
}

static void gather_tile(const job *job, int64_t element, int64_t count, bool must_copy, vector_tile *tile,
                        vector_buffers *buffers) {
    real *const place[] = {buffers->operand[0], buffers->operand[1], buffers->operand[2]};
    gather_to(place, buffers->constant, job, element, count, must_copy, tile);
}

/* The elements of a share: how many there are before its end, and the number of the row's first. */
static int64_t end_of(const job *job, const vector_share *share) {
    return least(share->end_tile * ORDER_TILE, job->vectors.length);
}

static int64_t first_of(const job *job, const vector_share *share) {
    return (job->first + share->row) * job->vectors.length;
}

/* -------------------------------------------------------------- softmaxes -- */

/* What the steps of a row leave for those that come after, where one thread has the whole row: its tiles' ranges of
 * logits, and the exponentials of one that is short, which else are computed anew for sums and again for slopes. A row
 * of doubles has less room, since its buffers have twice the size. */
#define MOST_SEEN_TILES 128
#define MOST_KEPT_PAIRS (65536 / (int64_t)(sizeof(real) * sizeof(real)))

typedef struct kept_softmaxes {
    _Alignas(64) real e[2][MOST_KEPT_PAIRS];
    tile_range range[2][MOST_SEEN_TILES];
    bool has_ranges, has_exponentials; /* of all tiles */
} kept_softmaxes;

static bool has_ranges(const kept_softmaxes *kept) {
    return kept && kept->has_ranges;
}

static bool has_exponentials(const kept_softmaxes *kept) {
    return kept && kept->has_exponentials;
}

/* Of operand k's tile that begins with the i-th element. */
static tile_range range_of_tile(const kept_softmaxes *kept, int k, int64_t i, const real *z, int64_t count) {
    return has_ranges(kept) ? kept->range[k][i / ORDER_TILE] : range_of(z, count);
}

/* NaN if one is; +inf and -inf stay what they are. */
static __attribute__((noinline)) void find_largest(const job *job, const vector_share *share, kept_softmaxes *kept,
                                                   double *largest) {
    const int64_t end = end_of(job, share), first = first_of(job, share);
    const bool keeps = kept && end <= MOST_SEEN_TILES * ORDER_TILE;
    vector_tile tile;
    vector_buffers buffers;
    begin_tiles(job, &tile, &buffers);
    largest[0] = largest[1] = -WIDE_INFINITY;
    for (int64_t i = share->first_tile * ORDER_TILE; i < end; i += ORDER_TILE) {
        gather_tile(job, first + i, least(end - i, ORDER_TILE), false, &tile, &buffers);
        for (int k = 0; k < 2; k++) {
            const tile_range range = range_of(tile.operand[k], tile.count);
            const double own = (double)range.largest;
            largest[k] = own != own || own > largest[k] ? own : largest[k];
            if (own != own)
                return;
            if (keeps)
                kept->range[k][i / ORDER_TILE] = range;
        }
    }
    if (keeps)
        kept->has_ranges = true;
}

void LARGEST(const job *job, const vector_share *share, double *largest) {
    find_largest(job, share, NULL, largest);
}

/* Rows are read while their largest is looked for, and computed long from then on. Meanwhile on x86 the next row is
 * asked for, to the second-level cache: its tile is the second operand. Values of kl_div_with_logits took a fifth
 * longer on a Xeon, and in the first-level cache the next row would push this one out. */
ALWAYS_INLINE void ask_for_row(const struct tile *tile, int64_t element, int64_t count) {
    prefetch_far((const char *)tile->operand[1] + element * tile->stride[1], count * tile->stride[1]);
}

/* Whether a tile of operand k's next row is to be asked for: if it lies without gaps, and in no cache. */
static bool finds_next_row(const job *job, int k, int64_t element, int64_t count, struct tile *logits) {
    const view *view = &job->operand[k];
    const int64_t size = (int64_t)dtype_size(view->dtype), all = job->count * job->vectors.length;
    const int64_t next = element + job->vectors.length;
    if (!CAN_PREFETCH || logits->parameter[CALM] == 0 || all * size < MOST_CACHED_BYTES ||
        next + count > job->first * job->vectors.length + all || dense_length(view, next) < count)
        return false;
    logits->operand[1] = address_of(view, next);
    logits->stride[1] = size;
    return true;
}

static __attribute__((noinline)) void exponentiate_and_ask(const struct tile *given, int64_t count, real *e) {
    const struct tile logits = *given;
    exponentiate_lines(&logits, LOGITS_CALM, ask_for_row, count, e);
}

static void exponentiate_logits(const struct tile *logits, bool asks, int64_t count, real *e) {
    if (asks)
        exponentiate_and_ask(logits, count, e);
    else
        exponentiate(logits, 0, count, e);
}

/* The sums of the second vector's tile: as sum_without_leading() has them, and of what its exponentials carry. */
static void sum_carried(const struct tile *logits, bool asks, const vector_tile *tile, real most,
                        vector_buffers *buffers, const softmax_tile *first, real *kept, softmax_tile *second) {
    const int64_t count = tile->count;
    const real *a = tile->operand[0], *b = tile->operand[1];
    const real largest_a = first->largest, largest_b = second->largest;
    real *others = buffers->result, *carried = buffers->operand[2];
    const real *from = kept ? kept : others;
    real_bits leaders = 0;
    exponentiate_logits(logits, asks, count, kept ? kept : others);
#pragma omp simd reduction(+ : leaders)
    for (int64_t i = 0; i < count; i++) {
        const real e = from[i];
        leaders += (real_bits)(e == most);
        others[i] = choose(e == most, 0, e);
        carried[i] = softmaxes_carried(e, softmaxes_apart(a[i], largest_a, b[i], largest_b));
    }
    stored_sum(others, (int)count, &second->others);
    stored_sum(carried, (int)count, &second->weighted);
    second->leading = (double)leaders * (double)most;
}

#if ONEPASS_HAS_REALS && !defined(__aarch64__)
ALWAYS_INLINE void ask_for_nothing(const struct tile *tile, int64_t element, int64_t count) {
    (void)tile, (void)element, (void)count;
}

static __attribute__((noinline)) double sum_without_asking(const struct tile *logits, real most, real *e,
                                                           double *leading) {
    return sum_lines_without_leading(logits, ask_for_nothing, most, e, leading);
}

static __attribute__((noinline)) double sum_and_ask(const struct tile *logits, real most, real *e, double *leading) {
    return sum_lines_without_leading(logits, ask_for_row, most, e, leading);
}
#endif

/* The sums of a tile whose exponentials carry nothing. With AVX-512 those of a whole tile are added up where they come
 * out. */
static double sum_plain(const struct tile *logits, bool asks, int count, real most, real *e, real *terms,
                        double *leading) {
#if ONEPASS_HAS_REALS && !defined(__aarch64__)
    if (count == ORDER_TILE && can_sum_down(logits))
        return asks ? sum_and_ask(logits, most, e, leading) : sum_without_asking(logits, most, e, leading);
#endif
    exponentiate_logits(logits, asks, count, e);
    return sum_without_leading(count, most, e, terms, leading);
}

/* Of the tile that begins with the row's i-th element, which is this one of all. Exponentials are kept if there is room
 * for the row's. */
static void sum_softmaxes(const job *job, const softmax *softmax, int64_t element, int64_t i, bool keeps,
                          const vector_tile *tile, vector_buffers *buffers, kept_softmaxes *kept, softmax_tile *sums) {
    const int count = (int)tile->count;
    for (int k = 0; k < 2; k++) {
        const tile_range range = range_of_tile(kept, k, i, tile->operand[k], count);
        const softmax_shift shift = softmax_shift_of(softmax, &job->vectors.scale, range.largest);
        struct tile logits = tile_of_logits(softmax, &shift, range.smallest, tile->operand[k]);
        const bool asks = kept && finds_next_row(job, k, element, count, &logits);
        const real most = row_most_of_tile(softmax, &shift);
        sums[k] = (softmax_tile){.exponent = shift.exponent, .largest = shift.largest};
        real *place = keeps ? kept->e[k] + i : NULL;
        if (k == 1 && job->loss->sums == 0)
            sum_carried(&logits, asks, tile, most, buffers, &sums[0], place, &sums[1]);
        else
            sums[k].others = sum_plain(&logits, asks, count, most, place ? place : buffers->result, buffers->result,
                                       &sums[k].leading);
    }
}

static __attribute__((noinline)) void sum_row_softmaxes(const job *job, const vector_share *share,
                                                        const double *largest, kept_softmaxes *kept) {
    const softmax_scale *scale = &job->vectors.scale;
    const softmax softmax = softmax_of(scale);
    const int64_t end = end_of(job, share), first = first_of(job, share);
    const bool keeps = kept && end <= MOST_KEPT_PAIRS && (job->loss->sums > 0 || gradient_count(job) > 0);
    vector_tile tile;
    vector_buffers buffers;
    order_nodes nodes[SOFTMAXES_SUMS];
    double exponent[2], part[SOFTMAXES_SUMS];
    softmax_tile sums[2];
    begin_tiles(job, &tile, &buffers);
    for (int k = 0; k < SOFTMAXES_SUMS; k++)
        order_begin_nodes(&nodes[k], share->level, share->node[k]);
    if (!softmaxes_exponents(&softmax, scale, largest, exponent))
        return;
    for (int64_t i = share->first_tile * ORDER_TILE; i < end; i += ORDER_TILE) {
        gather_tile(job, first + i, least(end - i, ORDER_TILE), false, &tile, &buffers);
        sum_softmaxes(job, &softmax, first + i, i, keeps, &tile, &buffers, kept, sums);
        softmaxes_parts(sums, exponent, largest, part);
        for (int k = 0; k < SOFTMAXES_SUMS; k++)
            order_push_tile(&nodes[k], part[k]);
    }
    for (int k = 0; k < SOFTMAXES_SUMS; k++)
        order_end_node(&nodes[k]);
    if (keeps)
        kept->has_exponentials = true;
}

void SOFTMAXES(const job *job, const vector_share *share, const double *largest) {
    sum_row_softmaxes(job, share, largest, NULL);
}

void KNOW(const job *job, const double *largest, const double *sum, vector_softmaxes *known) {
    const softmax softmax = softmax_of(&job->vectors.scale);
    softmaxes_know(&softmax, &job->vectors.scale, largest, sum, known);
}

/* A tile's probabilities in the place of its logits, and behind them how far these are apart, which slopes of the
 * second operand alone look at. */
static void gather_probabilities(const job *job, const vector_softmaxes *known, const kept_softmaxes *kept, int64_t i,
                                 int64_t element, int64_t count, vector_tile *tile, vector_buffers *buffers) {
    const softmax_scale *scale = &job->vectors.scale;
    const softmax softmax = softmax_of(scale);
    const real largest_a = (real)known->largest[0], largest_b = (real)known->largest[1];
    const bool has_apart = job->loss->sums == 0 && job->gradient[1].data;
    real *a = buffers->operand[0], *b = buffers->operand[1], *apart = buffers->operand[2];
    double exponent[2];
    softmaxes_exponents(&softmax, scale, known->largest, exponent);
    if (has_apart || !has_exponentials(kept)) {
        gather_copy(&job->operand[0], element, (int)count, a);
        gather_copy(&job->operand[1], element, (int)count, b);
    }
    if (has_apart) {
#pragma omp simd
        for (int64_t j = 0; j < count; j++)
            apart[j] = softmaxes_apart(a[j], largest_a, b[j], largest_b);
    }
    for (int k = 0; k < 2; k++) {
        real *x = buffers->operand[k];
        const tile_range range = range_of_tile(kept, k, i, x, count);
        const softmax_shift shift = softmax_shift_of(&softmax, scale, range.largest);
        const struct tile logits = tile_of_logits(&softmax, &shift, range.smallest, x);
        const real factor = softmaxes_factor(known->per_sum[k], shift.exponent, exponent[k]);
        const real *e = has_exponentials(kept) ? kept->e[k] + i : x;
        if (e == x)
            exponentiate(&logits, 0, count, x);
#pragma omp simd
        for (int64_t j = 0; j < count; j++)
            x[j] = e[j] * factor;
    }
    *tile = (vector_tile){.operand = {a, b, has_apart ? apart : a}, .rows = 1, .count = count};
    memcpy(tile->parameter, job->parameter, sizeof tile->parameter);
}

/* ------------------------------------------------------- sums and slopes -- */

/* The elements that a loss's functions are given, from the i-th of a row on. */
static void gather_elements(const job *job, const vector_softmaxes *known, const kept_softmaxes *kept,
                            const own_element *own, int64_t i, int64_t element, int64_t count, bool must_copy,
                            vector_tile *tile, vector_buffers *buffers) {
    if (job->loss->has_softmaxes)
        gather_probabilities(job, known, kept, i, element, count, tile, buffers);
    else
        gather_tile(job, element, count, must_copy, tile, buffers);
    tile->own = own->at - i;
    tile->own_score = own->x;
}

/* Where numbers that a loss has kept of elements are left by those who sum them up for those who write slopes: in the
 * gradient's place, if that is another than the element's. Else null. */
static real *kept_place(const job *job, int64_t element, int64_t count) {
    return gradient_count(job) == 1 && job->gradient[0].data && !job->in_place[0]
               ? direct(&job->gradient[0], element, (int)count)
               : NULL;
}

static void keep_numbers(const cpu_vector *loss, real *place, bool is_kept, vector_tile *tile, real *buffer) {
    real *kept = place ? place : buffer;
    if (!HAS_KEPT_NUMBERS || !loss->keep || !tile->has_slopes)
        return;
    if (!place || !is_kept)
        loss->keep(tile, kept);
    tile->operand[2] = kept;
}

static __attribute__((noinline)) void sum_elements(const job *job, const vector_share *share,
                                                   const vector_softmaxes *known, const kept_softmaxes *kept) {
    const cpu_vector *loss = job->loss->cpu_vectors.ONEPASS_VARIANT;
    const int64_t end = end_of(job, share), first = first_of(job, share);
    const own_element own = own_element_of(job, share->row);
    vector_tile tile;
    vector_buffers buffers;
    order_nodes nodes[VECTOR_MOST_SUMS];
    tile_sums sum;
    begin_tiles(job, &tile, &buffers);
    for (int k = 0; k < job->loss->sums; k++)
        order_begin_nodes(&nodes[k], share->level, share->node[k]);
    for (int64_t i = share->first_tile * ORDER_TILE; i < end; i += ORDER_TILE) {
        gather_elements(job, known, kept, &own, i, first + i, least(end - i, ORDER_TILE), false, &tile, &buffers);
        keep_numbers(loss, kept_place(job, first + i, tile.count), false, &tile, buffers.operand[2]);
        loss->sums(&tile, &sum);
        for (int k = 0; k < job->loss->sums; k++)
            order_push_tile(&nodes[k], sum[k]);
    }
    for (int k = 0; k < job->loss->sums; k++)
        order_end_node(&nodes[k]);
}

static void sum_row(const job *job, const vector_share *share, const vector_softmaxes *known,
                    const kept_softmaxes *kept) {
    if (job->loss->has_label_lists && takes_part(job, share->row))
        sum_lists(job, job->loss->cpu_vectors.ONEPASS_VARIANT, share, end_of(job, share));
    else
        sum_elements(job, share, known, kept);
}

void SUMS(const job *job, const vector_share *share, const vector_softmaxes *known) {
    sum_row(job, share, known, NULL);
}

/* What its class weighs is no other than its own weight. */
static double row_weight_of(const job *job, int64_t row) {
    const double weight = element_of(&job->weight, job->first + row, 1);
    return job->loss->has_labels ? weight * element_of(&job->operand[ONEPASS_CLASS_WEIGHT], own_index(job, row), 1)
                                 : weight;
}

/* What a row's value is multiplied by in the result. */
static double share_of_row(const job *job) {
    return job->reduction == ONEPASS_MEAN ? 1 / job->divisor : 1;
}

/* What multiplies all slopes of the row is multiplied into their factors. A row that takes no part has none, which
 * nobody asks for. */
static void finish_row(const job *job, int64_t row, double share, const double *sum, const vector_softmaxes *known,
                       vector_slopes *slopes, real *term) {
    const int64_t index = job->first + row;
    const view *number = &job->operand[job->loss->vectors];
    vector_sums sums = {.length = (double)job->vectors.length, .softmaxes = *known};
    double value = 0;
    if (takes_part(job, row)) {
        const double weight = row_weight_of(job, row);
        const double scale = weight * share;
        memcpy(sums.sum, sum, sizeof sums.sum);
        if (job->loss->vectors < job->operand_count && !job->loss->has_label_lists)
            sums.number = load_number(address_of(number, index), number->dtype);
        if (gradient_count(job) > 0)
            job->loss->vector(&sums, job->parameter, slopes);
        else
            slopes->value = job->loss->vector_value(&sums, job->parameter); /* without the slopes' divisions */
        value = slopes->value * weight;
        for (int k = 0; k < VECTOR_MOST_FACTORS; k++)
            slopes->factor[k] = slopes->factor[k] * scale;
        if (job->loss->has_labels)
            slopes->factor[VECTOR_OWN_ELEMENT] = (double)own_element_of(job, row).x;
    }
    if (job->reduction == ONEPASS_NONE)
        write_number(&job->value, index, value);
    *term = canonical((real)value);
}

void FINISH(const job *job, int64_t row, const double *sum, const vector_softmaxes *known, vector_slopes *slopes,
            void *term) {
    finish_row(job, row, share_of_row(job), sum, known, slopes, term);
}

/* The gradients of the tile's elements, the i-th of a row and those behind it, or of several rows; 0 if they do not
 * take part. The upstream gradient comes last, so that gradients may also be scaled later with the same bits. */
static void write_tile_slopes(const job *job, int64_t row, bool part, int64_t i, const own_element *own,
                              const vector_slopes *slopes, const vector_tile *tile, real *buffer) {
    const cpu_vector *loss = job->loss->cpu_vectors.ONEPASS_VARIANT;
    const int64_t first = (job->first + row) * job->vectors.length + i;
    const int row_count = (int)tile->count, count = (int)tile->rows * row_count;
    for (int k = 0; k < job->loss->vectors; k++) {
        if (!job->gradient[k].data)
            continue;
        real *into = direct(&job->gradient[k], first, count), *gradient = into ? into : buffer;
        if (part)
            loss->gradient[k](tile, slopes, gradient);
        else
            memset(gradient, 0, (size_t)count * sizeof *gradient);
        if (own->at >= i && own->at < i + count)
            gradient[own->at - i] = canonical((real)slopes->factor[VECTOR_OWN_SLOPE]);
        for (int64_t r = 0; part && r < tile->rows; r++) {
            const real upstream = upstream_of(job, job->first + row + r);
            if (upstream != 1)
                multiply_by_one(gradient + r * row_count, row_count, upstream);
        }
        if (!into)
            scatter(&job->gradient[k], first, count, gradient);
    }
}

static __attribute__((noinline)) void write_vector_slopes(const job *job, const vector_share *share,
                                                          const vector_softmaxes *known, const kept_softmaxes *kept,
                                                          const vector_slopes *slopes) {
    const int64_t end = end_of(job, share), first = first_of(job, share);
    const cpu_vector *loss = job->loss->cpu_vectors.ONEPASS_VARIANT;
    const bool part = takes_part(job, share->row), must_copy = gradient_count(job) > 1;
    const own_element own = {own_index(job, share->row), (real)slopes->factor[VECTOR_OWN_ELEMENT]};
    vector_tile tile;
    vector_buffers buffers;
    begin_tiles(job, &tile, &buffers);
    for (int64_t i = share->first_tile * ORDER_TILE; i < end; i += ORDER_TILE) {
        const int count = (int)least(end - i, ORDER_TILE);
        if (part) {
            gather_elements(job, known, kept, &own, i, first + i, count, must_copy, &tile, &buffers);
            keep_numbers(loss, kept_place(job, first + i, count), true, &tile, buffers.operand[2]);
        } else {
            tile.rows = 1, tile.count = count;
        }
        write_tile_slopes(job, share->row, part, i, &own, slopes, &tile, buffers.result);
    }
}

static void write_row_slopes(const job *job, const vector_share *share, const vector_softmaxes *known,
                             const kept_softmaxes *kept, const vector_slopes *slopes) {
    if (job->loss->has_label_lists && takes_part(job, share->row))
        write_list_slopes(job, job->loss->cpu_vectors.ONEPASS_VARIANT, share, end_of(job, share), slopes->factor[0]);
    else
        write_vector_slopes(job, share, known, kept, slopes);
}

void SLOPES(const job *job, const vector_share *share, const vector_softmaxes *known, const vector_slopes *slopes) {
    write_row_slopes(job, share, known, NULL, slopes);
}

/* -------------------------------------------------------------------- rows -- */

/* Buffers are large: those of one step are gone before the next has its own. */
static void know_row(const job *job, const vector_share *share, const double *sum, kept_softmaxes *kept,
                     vector_softmaxes *known) {
    double largest[2];
    kept->has_ranges = kept->has_exponentials = false;
    find_largest(job, share, kept, largest);
    sum_row_softmaxes(job, share, largest, kept);
    KNOW(job, largest, sum, known);
}

static void run_row(const job *job, int64_t row, int64_t tiles, kept_softmaxes *kept, void *term) {
    const bool has_value = job->value.data || job->sum, has_gradient = gradient_count(job) > 0;
    double sum[VECTOR_MOST_NODES] = {0};
    double *const node[VECTOR_MOST_NODES] = {&sum[0], &sum[1], &sum[2], &sum[3], &sum[4]};
    const vector_share whole = {row, 0, tiles, ORDER_TOP_LEVEL, node};
    vector_softmaxes known = {0};
    vector_slopes slopes = {0};
    if (takes_part(job, row) && (has_value || has_gradient)) {
        if (kept)
            know_row(job, &whole, sum, kept, &known);
        memset(sum, 0, sizeof sum);
        if (job->loss->sums > 0)
            sum_row(job, &whole, &known, kept);
    }
    FINISH(job, row, sum, &known, &slopes, term);
    if (has_gradient)
        write_row_slopes(job, &whole, &known, kept, &slopes);
}

/* Rows that together are no more than a tile, and take part, are gathered once for their sums and their slopes, and
 * need no tree. */
#define MOST_ROWS_A_TILE 32

static __attribute__((noinline)) void run_tile(const job *job, int64_t row, int64_t rows, real *terms) {
    const cpu_vector *loss = job->loss->cpu_vectors.ONEPASS_VARIANT;
    const vector_softmaxes none = {0};
    const own_element own = own_element_of(job, row);
    const int64_t length = job->vectors.length;
    tile_sums sum[MOST_ROWS_A_TILE];
    vector_slopes slopes[MOST_ROWS_A_TILE];
    const double share = share_of_row(job);
    vector_tile tile;
    short_buffers buffers;
    real *const place[] = {buffers.operand[0], buffers.operand[1], buffers.operand[2]};
    const void *constant[MOST_OPERANDS] = {NULL};
    begin_tile(job, &tile);
    gather_to(place, constant, job, (job->first + row) * length, rows * length, gradient_count(job) > 1, &tile);
    tile.rows = rows;
    tile.count = length;
    tile.own = own.at;
    tile.own_score = own.x;
    keep_numbers(loss, NULL, false, &tile, buffers.operand[2]);
    loss->sums(&tile, sum);
    for (int64_t r = 0; r < rows; r++) {
        slopes[r] = (vector_slopes){0};
        finish_row(job, row + r, share, sum[r], &none, &slopes[r], terms + r);
    }
    if (tile.has_slopes)
        write_tile_slopes(job, row, true, 0, &own, slopes, &tile, buffers.result);
}

/* How many rows, of those left, make a tile: one, where the next row's vectors do not lie behind its own although each
 * lies as wanted, or a label is to be looked up. Where nothing is gathered and no slope waits for its row, a tile may
 * have more elements than there is room for: what is done once a row, one step after the other, does not keep the next
 * row waiting (values of cosines of 1024 floats took a Neoverse N1 3 % longer). */
static int64_t rows_a_tile(const job *job, int64_t row, int64_t left) {
    const int64_t length = job->vectors.length, first = (job->first + row) * length;
    int64_t rows = 1, most = job->loss->has_labels ? 1 : least(left, MOST_ROWS_A_TILE);
    bool is_gathered = gradient_count(job) > 0;
    for (int k = 0; most > 1 && k < job->loss->vectors; k++)
        is_gathered |= !direct(&job->operand[k], first, (int)(most * length));
    if (is_gathered)
        most = least(most, (gradient_count(job) > 0 || length <= ORDER_TILE / 2 ? ORDER_TILE : GATHERED) / length);
    for (int k = 0; is_gathered && most > 1 && k < job->loss->vectors; k++)
        if (direct(&job->operand[k], first, (int)length) && !direct(&job->operand[k], first, (int)(most * length)))
            return 1;
    while (rows < most && takes_part(job, row + rows))
        rows++;
    return rows;
}

/* Only losses with softmaxes have what is kept on the stack. */
static __attribute__((noinline)) void run_softmaxes(const job *job, int64_t first, int64_t count, int64_t tiles,
                                                    real *terms) {
    kept_softmaxes kept;
    for (int64_t i = 0; i < count; i++)
        run_row(job, first + i, tiles, &kept, terms + i);
}

void ROWS(const job *job, int64_t first, int64_t count, void *terms) {
    const int64_t tiles = job->vectors.length / ORDER_TILE + (job->vectors.length % ORDER_TILE != 0);
    const bool has_value = job->value.data || job->sum, has_gradient = gradient_count(job) > 0;
    const bool is_tile = tiles == 1 && !job->loss->has_label_lists && (has_value || has_gradient);
    if (job->loss->has_softmaxes)
        run_softmaxes(job, first, count, tiles, terms);
    for (int64_t i = 0, rows = 1; i < count && !job->loss->has_softmaxes; i += rows) {
        const bool gathered = is_tile && takes_part(job, first + i);
        rows = gathered ? rows_a_tile(job, first + i, count - i) : 1;
        if (gathered)
            run_tile(job, first + i, rows, (real *)terms + i);
        else
            run_row(job, first + i, tiles, NULL, (real *)terms + i);
    }
}
