/*
 * The CPU engine's work on vectors: the sums of a row's tiles, the row's value, and the slopes of its tiles. Compiled
 * once for each instruction set and compute type; ONEPASS_VARIANT (avx2_f32) ends the names of the functions that come
 * out.
 */
#include "cpu/vectors.h"

#include "cpu/exponentials.h"
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

static void begin_tiles(const job *job, vector_tile *tile, vector_buffers *buffers) {
    memcpy(tile->parameter, job->parameter, sizeof tile->parameter);
    for (int k = 0; k < MOST_OPERANDS; k++)
        buffers->constant[k] = NULL;
}

/* An operand that its gradient will lie over is copied first, if other gradients are computed from it as well. */
static void gather_tile(const job *job, int64_t element, int64_t count, bool must_copy, vector_tile *tile,
                        vector_buffers *buffers) {
    const int vectors = job->loss->vectors;
    tile->count = count;
    for (int k = 0; k < vectors; k++)
        tile->operand[k] =
            must_copy && job->in_place[k]
                ? gather_copy(&job->operand[k], element, (int)count, buffers->operand[k])
                : gather(&job->operand[k], element, (int)count, buffers->operand[k], &buffers->constant[k]);
    for (int k = vectors; k < MOST_OPERANDS; k++)
        tile->operand[k] = tile->operand[0];
}

/* The same of a loss with labels: beside each element the own one, in whose place there is none. */
static void gather_labelled(const job *job, const own_element *own, int64_t i, int64_t element, int64_t count,
                            vector_tile *tile, vector_buffers *buffers) {
    const int64_t at = own->at - i;
    gather_tile(job, element, count, false, tile, buffers);
    for (int64_t j = 0; j < count && !buffers->constant[1]; j++) /* of the first tile, which is the longest */
        buffers->operand[1][j] = own->x;
    tile->operand[1] = buffers->constant[1] = buffers->operand[1];
    if (own->at < i || at >= count)
        return;
    tile->operand[0] = gather_copy(&job->operand[0], element, (int)count, buffers->operand[0]);
    buffers->operand[0][at] = -REAL_INFINITY;
    buffers->constant[0] = NULL;
}

/* The elements of a share: how many there are before its end, and the number of the row's first. */
static int64_t end_of(const job *job, const vector_share *share) {
    return least(share->end_tile * ORDER_TILE, job->vectors.length);
}

static int64_t first_of(const job *job, const vector_share *share) {
    return (job->first + share->row) * job->vectors.length;
}

/* -------------------------------------------------------------- softmaxes -- */

/* NaN if one is; +inf and -inf stay what they are. */
void LARGEST(const job *job, const vector_share *share, double *largest) {
    const int64_t end = end_of(job, share), first = first_of(job, share);
    vector_tile tile;
    vector_buffers buffers;
    begin_tiles(job, &tile, &buffers);
    largest[0] = largest[1] = -WIDE_INFINITY;
    for (int64_t i = share->first_tile * ORDER_TILE; i < end; i += ORDER_TILE) {
        gather_tile(job, first + i, least(end - i, ORDER_TILE), false, &tile, &buffers);
        for (int k = 0; k < 2; k++) {
            const double own = (double)largest_of(tile.operand[k], tile.count);
            largest[k] = own != own || own > largest[k] ? own : largest[k];
            if (own != own)
                return;
        }
    }
}

/* The sums of the second vector's tile: as sum_without_leading() has them, and of what its exponentials carry. */
static void sum_carried(const struct tile *logits, const vector_tile *tile, real most, vector_buffers *buffers,
                        const softmax_tile *first, softmax_tile *second) {
    const int64_t count = tile->count;
    const real *a = tile->operand[0], *b = tile->operand[1];
    const real largest_a = first->largest, largest_b = second->largest;
    real *others = buffers->result, *carried = buffers->operand[2];
    real_bits leaders = 0;
    exponentiate(logits, 0, count, others);
#pragma omp simd reduction(+ : leaders)
    for (int64_t i = 0; i < count; i++) {
        const real e = others[i];
        leaders += (real_bits)(e == most);
        others[i] = choose(e == most, 0, e);
        carried[i] = softmaxes_carried(e, softmaxes_apart(a[i], largest_a, b[i], largest_b));
    }
    stored_sum(others, (int)count, &second->others);
    stored_sum(carried, (int)count, &second->weighted);
    second->leading = (double)leaders * (double)most;
}

static void sum_softmaxes(const softmax *softmax, const softmax_scale *scale, bool carries, const vector_tile *tile,
                          vector_buffers *buffers, softmax_tile *sums) {
    const int count = (int)tile->count;
    for (int k = 0; k < 2; k++) {
        const softmax_shift shift = softmax_shift_of(softmax, scale, largest_of(tile->operand[k], count));
        const struct tile logits = tile_of_logits(softmax, &shift, tile->operand[k]);
        const real most = row_most_of_tile(softmax, &shift);
        sums[k] = (softmax_tile){.exponent = shift.exponent, .largest = shift.largest};
        if (k == 1 && carries)
            sum_carried(&logits, tile, most, buffers, &sums[0], &sums[1]);
        else
            sums[k].others =
                sum_without_leading(&logits, count, most, buffers->result, buffers->result, &sums[k].leading);
    }
}

void SOFTMAXES(const job *job, const vector_share *share, const double *largest) {
    const softmax_scale *scale = &job->vectors.scale;
    const softmax softmax = softmax_of(scale);
    const int64_t end = end_of(job, share), first = first_of(job, share);
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
        sum_softmaxes(&softmax, scale, job->loss->sums == 0, &tile, &buffers, sums);
        softmaxes_parts(sums, exponent, largest, part);
        for (int k = 0; k < SOFTMAXES_SUMS; k++)
            order_push_tile(&nodes[k], part[k]);
    }
    for (int k = 0; k < SOFTMAXES_SUMS; k++)
        order_end_node(&nodes[k]);
}

void KNOW(const job *job, const double *largest, const double *sum, vector_softmaxes *known) {
    const softmax softmax = softmax_of(&job->vectors.scale);
    softmaxes_know(&softmax, &job->vectors.scale, largest, sum, known);
}

/* Of logits in a buffer, in their place. */
static void make_probabilities(const softmax *softmax, const softmax_scale *scale, double per_sum, double row_exponent,
                               int64_t count, real *x) {
    const softmax_shift shift = softmax_shift_of(softmax, scale, largest_of(x, count));
    const struct tile logits = tile_of_logits(softmax, &shift, x);
    const real factor = softmaxes_factor(per_sum, shift.exponent, row_exponent);
    exponentiate(&logits, 0, count, x);
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        x[i] = x[i] * factor;
}

/* A tile's probabilities in the place of its logits, and behind them how far these are apart. */
static void gather_probabilities(const job *job, const vector_softmaxes *known, int64_t element, int64_t count,
                                 vector_tile *tile, vector_buffers *buffers) {
    const softmax_scale *scale = &job->vectors.scale;
    const softmax softmax = softmax_of(scale);
    const real largest_a = (real)known->largest[0], largest_b = (real)known->largest[1];
    real *a = buffers->operand[0], *b = buffers->operand[1], *apart = buffers->operand[2];
    double exponent[2];
    softmaxes_exponents(&softmax, scale, known->largest, exponent);
    gather_copy(&job->operand[0], element, (int)count, a);
    gather_copy(&job->operand[1], element, (int)count, b);
    if (job->loss->sums == 0) {
#pragma omp simd
        for (int64_t i = 0; i < count; i++)
            apart[i] = softmaxes_apart(a[i], largest_a, b[i], largest_b);
    }
    for (int k = 0; k < 2; k++)
        make_probabilities(&softmax, scale, known->per_sum[k], exponent[k], count, buffers->operand[k]);
    *tile = (vector_tile){.operand = {a, b, job->loss->sums == 0 ? apart : a}, .count = count};
    memcpy(tile->parameter, job->parameter, sizeof tile->parameter);
}

/* ------------------------------------------------------- sums and slopes -- */

/* The elements that a loss's functions are given, from the i-th of a row on. */
static void gather_elements(const job *job, const vector_softmaxes *known, const own_element *own, int64_t i,
                            int64_t element, int64_t count, bool must_copy, vector_tile *tile,
                            vector_buffers *buffers) {
    if (job->loss->has_softmaxes)
        gather_probabilities(job, known, element, count, tile, buffers);
    else if (job->loss->has_labels)
        gather_labelled(job, own, i, element, count, tile, buffers);
    else
        gather_tile(job, element, count, must_copy, tile, buffers);
}

static __attribute__((noinline)) void sum_elements(const job *job, const vector_share *share,
                                                   const vector_softmaxes *known) {
    const cpu_vector *loss = job->loss->cpu_vectors.ONEPASS_VARIANT;
    const int64_t end = end_of(job, share), first = first_of(job, share);
    const own_element own = own_element_of(job, share->row);
    vector_tile tile;
    vector_buffers buffers;
    order_nodes nodes[VECTOR_MOST_SUMS];
    double sum[VECTOR_MOST_SUMS];
    begin_tiles(job, &tile, &buffers);
    for (int k = 0; k < job->loss->sums; k++)
        order_begin_nodes(&nodes[k], share->level, share->node[k]);
    for (int64_t i = share->first_tile * ORDER_TILE; i < end; i += ORDER_TILE) {
        gather_elements(job, known, &own, i, first + i, least(end - i, ORDER_TILE), false, &tile, &buffers);
        loss->sums(&tile, sum);
        for (int k = 0; k < job->loss->sums; k++)
            order_push_tile(&nodes[k], sum[k]);
    }
    for (int k = 0; k < job->loss->sums; k++)
        order_end_node(&nodes[k]);
}

void SUMS(const job *job, const vector_share *share, const vector_softmaxes *known) {
    if (job->loss->has_label_lists && takes_part(job, share->row))
        sum_lists(job, job->loss->cpu_vectors.ONEPASS_VARIANT, share, end_of(job, share));
    else
        sum_elements(job, share, known);
}

/* What its class weighs is no other than its own weight. */
static double row_weight_of(const job *job, int64_t row) {
    const double weight = element_of(&job->weight, job->first + row, 1);
    return job->loss->has_labels ? weight * element_of(&job->operand[ONEPASS_CLASS_WEIGHT], own_index(job, row), 1)
                                 : weight;
}

/* What multiplies all slopes of the row is multiplied into their factors. A row that takes no part has none, which
 * nobody asks for. */
void FINISH(const job *job, int64_t row, const double *sum, const vector_softmaxes *known, vector_slopes *slopes,
            void *term) {
    const int64_t index = job->first + row;
    const view *number = &job->operand[job->loss->vectors];
    vector_sums sums = {.length = (double)job->vectors.length, .softmaxes = *known};
    double value = 0;
    if (takes_part(job, row)) {
        const double weight = row_weight_of(job, row);
        const double scale = job->reduction == ONEPASS_MEAN ? weight * (1 / job->divisor) : weight;
        memcpy(sums.sum, sum, (size_t)job->loss->sums * sizeof *sum);
        if (job->loss->vectors < job->operand_count && !job->loss->has_label_lists)
            sums.number = load_number(address_of(number, index), number->dtype);
        job->loss->vector(&sums, job->parameter, slopes);
        value = slopes->value * weight;
        for (int k = 0; k < VECTOR_MOST_FACTORS; k++)
            slopes->factor[k] = slopes->factor[k] * scale;
        if (job->loss->has_labels)
            slopes->factor[VECTOR_OWN_ELEMENT] = (double)own_element_of(job, row).x;
    }
    if (job->reduction == ONEPASS_NONE)
        write_number(&job->value, index, value);
    *(real *)term = canonical((real)value);
}

/* The upstream gradient comes last, so that gradients may also be scaled later with the same bits. */
static __attribute__((noinline)) void write_vector_slopes(const job *job, const vector_share *share,
                                                          const vector_softmaxes *known, const vector_slopes *slopes) {
    const cpu_vector *loss = job->loss->cpu_vectors.ONEPASS_VARIANT;
    const int64_t end = end_of(job, share), first = first_of(job, share);
    const bool part = takes_part(job, share->row), must_copy = gradient_count(job) > 1;
    const real upstream = part ? upstream_of(job, job->first + share->row) : 1;
    const own_element own = {own_index(job, share->row), (real)slopes->factor[VECTOR_OWN_ELEMENT]};
    vector_tile tile;
    vector_buffers buffers;
    begin_tiles(job, &tile, &buffers);
    for (int64_t i = share->first_tile * ORDER_TILE; i < end; i += ORDER_TILE) {
        const int count = (int)least(end - i, ORDER_TILE);
        if (part)
            gather_elements(job, known, &own, i, first + i, count, must_copy, &tile, &buffers);
        for (int k = 0; k < job->loss->vectors; k++) {
            if (!job->gradient[k].data)
                continue;
            real *into = direct(&job->gradient[k], first + i, count), *gradient = into ? into : buffers.result;
            if (part)
                loss->gradient[k](&tile, slopes->factor, gradient);
            else
                memset(gradient, 0, (size_t)count * sizeof *gradient);
            if (own.at >= i && own.at < i + count)
                gradient[own.at - i] = canonical((real)slopes->factor[VECTOR_OWN_SLOPE]);
            if (upstream != 1)
                multiply_by_one(gradient, count, upstream);
            if (!into)
                scatter(&job->gradient[k], first + i, count, gradient);
        }
    }
}

void SLOPES(const job *job, const vector_share *share, const vector_softmaxes *known, const vector_slopes *slopes) {
    if (job->loss->has_label_lists && takes_part(job, share->row))
        write_list_slopes(job, job->loss->cpu_vectors.ONEPASS_VARIANT, share, end_of(job, share), slopes->factor[0]);
    else
        write_vector_slopes(job, share, known, slopes);
}

/* -------------------------------------------------------------------- rows -- */

/* Buffers are large: those of one step are gone before the next has its own. */
static void know_row(const job *job, const vector_share *share, const double *sum, vector_softmaxes *known) {
    double largest[2];
    LARGEST(job, share, largest);
    SOFTMAXES(job, share, largest);
    KNOW(job, largest, sum, known);
}

void ROWS(const job *job, int64_t first, int64_t count, void *terms) {
    const int64_t tiles = job->vectors.length / ORDER_TILE + (job->vectors.length % ORDER_TILE != 0);
    const bool has_value = job->value.data || job->sum, has_gradient = gradient_count(job) > 0;
    for (int64_t row = first; row < first + count; row++) {
        double sum[VECTOR_MOST_NODES] = {0};
        double *const node[VECTOR_MOST_NODES] = {&sum[0], &sum[1], &sum[2], &sum[3], &sum[4]};
        const vector_share whole = {row, 0, tiles, ORDER_TOP_LEVEL, node};
        vector_softmaxes known = {0};
        vector_slopes slopes = {0};
        if (takes_part(job, row) && (has_value || has_gradient)) {
            if (job->loss->has_softmaxes)
                know_row(job, &whole, sum, &known);
            memset(sum, 0, sizeof sum);
            if (job->loss->sums > 0)
                SUMS(job, &whole, &known);
        }
        FINISH(job, row, sum, &known, &slopes, (real *)terms + (row - first));
        if (has_gradient)
            SLOPES(job, &whole, &known, &slopes);
    }
}
