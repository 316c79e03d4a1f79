/*
 * Rows one after the other, of any length and layout: the tiles of a row are summed, joined, and for the gradient gone
 * through once more. Threads may share the tiles of a row.
 */
#ifndef ONEPASS_CPU_ROWS_SINGLE_H
#define ONEPASS_CPU_ROWS_SINGLE_H

#include "cpu/rows/bf16_slopes.h"
#include "cpu/rows/tile.h"

/* Tiles of a row whose sums wait to be joined. Rows of more tiles have a pass of their own for the maximum. */
#define MOST_WAITING MOST_SHARED_TILES

/* One row. */
typedef struct row {
    int64_t index;
    const char *first[2]; /* of the operands */
    int64_t label;        /* -1: none */
    double weight;        /* of the row */
    real upstream;
    row_facts facts;
    double own_exponent; /* of the label's tile */
    row_slopes slopes;
    bool needs_sums; /* of its tiles, which wait */
    bool has_slopes; /* a gradient is to be made of them */
} row;

/* A row with the sums of its tiles. */
typedef struct single_row {
    row row;
    softmax_tile waiting[MOST_WAITING];
    real smallest[MOST_WAITING]; /* of their logits */
} single_row;

typedef struct single_buffers {
    tile_buffers tile;
    single_row single;
} single_buffers;

static int64_t tiles_of(const rows *rows) {
    const row_shard *shard = &rows->of->shard;
    const int64_t classes = shard->step == SHARD_VALUE ? shard->all_classes : rows->of->classes;
    return classes / ORDER_TILE + (classes % ORDER_TILE != 0);
}

/* The first number of a tile where classes are shared out. */
static double *numbers_of_tile(const rows *rows, int64_t row, int64_t tile) {
    const row_shard *shard = &rows->of->shard;
    return shard->tile_sums + row * shard->row_step + tile;
}

/* Of others' tiles the label's logit alone is known. */
static softmax_tile recall_tile(const rows *rows, row *row, int64_t index) {
    const double *number = numbers_of_tile(rows, row->index, index);
    const int64_t apart = rows->of->shard.sum_step;
    const softmax_shift shift = softmax_shift_of(&rows->softmax, &rows->of->scale, (real)number[0]);
    softmax_tile sums = {.exponent = shift.exponent, .largest = shift.largest, .others = number[apart]};
    if (rows->weighs) {
        sums.weights = number[2 * apart];
        sums.weighted = number[3 * apart];
    }
    if (row->label / ORDER_TILE == index) {
        row->facts.label_logit = (real)rows->of->shard.label_logit[row->index];
        row->facts.row.own = (double)softmax_exponential(&rows->softmax, &shift, row->facts.label_logit - shift.anchor);
        row->own_exponent = shift.exponent;
    }
    return sums;
}

/* ---------------------------------------------------------------- outputs -- */

/* Where a tile's gradient is computed: where it belongs, or in the buffer. */
typedef struct tile_output {
    view gradient;
    int64_t element;
    int count;
    real *out;
    bool is_direct;
} tile_output;

static tile_output output_of_tile(const rows *rows, const row *row, int k, int64_t tile, real *buffer) {
    const view *of = &rows->job->gradient[k];
    tile_output output = {.element = tile * ORDER_TILE, .count = tile_size(rows, tile)};
    output.gradient =
        classes_of(address_of(of, row->index), of->dtype, rows->of->classes, rows->of->gradient_stride[k]);
    output.out = direct(&output.gradient, output.element, output.count);
    output.is_direct = output.out;
    if (!output.is_direct)
        output.out = buffer;
    return output;
}

/* ------------------------------------------------------------------- sums -- */

/* Whether a row's exponentials wait, as its sums do, where their slopes will be. */
static bool keeps(const rows *rows, const row *row) {
    return rows->keeps && row->needs_sums;
}

/* The sums of a tile, and its smallest logit. The label's exponential, if it is here, goes into the row's facts, by the
 * tile's own exponent. */
static void sum_tile(const rows *rows, row *row, int64_t index, tile_buffers *buffers, softmax_tile *sums,
                     real *smallest) {
    *smallest = -REAL_INFINITY;
    if (rows->of->shard.step == SHARD_VALUE) {
        *sums = recall_tile(rows, row, index);
        return;
    }
    const int count = tile_size(rows, index);
    tile_range range;
    const real *z = see_logits(rows, row->first, index, buffers, &range);
    const softmax_shift shift = softmax_shift_of(&rows->softmax, &rows->of->scale, range.largest);
    tile tile = tile_of_logits(&rows->softmax, &shift, range.smallest, z);
    *smallest = range.smallest;
    let_prefetch(rows, row->first, index, &tile);
    const int64_t label = row->label - index * ORDER_TILE;
    const real most = rows->has_labels ? 0 : row_most_of_tile(&rows->softmax, &shift);
    *sums = (softmax_tile){.exponent = shift.exponent, .largest = shift.largest};
    real own = 0;
    /* Kept exponentials of a tile that the row ends in have no room beyond, and are copied there. */
    real *place = keeps(rows, row) ? output_of_tile(rows, row, 0, index, NULL).out : NULL;
    real *e = !place ? buffers->e : count == ORDER_TILE ? place : buffers->u;
    if (place || !sum_directly(rows, &tile, count, label, most, &own, sums)) {
        exponentiate_tile(&tile, e == place, count, e);
        sums->others = rows->has_labels ? sum_exponentials(count, label, e, &own)
                                        : sum_without_leading(count, most, e, buffers->e, &sums->leading);
    }
    if (place && e != place)
        memcpy(place, e, (size_t)count * sizeof *e);
    if (label >= 0 && label < count) {
        row->facts.row.own = (double)own;
        row->facts.label_logit = z[label];
        row->own_exponent = shift.exponent;
    }
    const real *q = rows->weighs ? plain_targets_of(rows, row->first[1], index, count) : NULL;
    if (q) {
        sum_targets(rows, z, q, shift.largest, sums);
    } else if (rows->weighs) {
        const real *u = weights_of(rows, row->first[1], index, buffers);
        sums->weights = sum_of_weights(u, count, buffers->e);
        sums->weighted = sum_weighted(z, u, shift.largest, count, buffers->e);
    }
}

/* The largest of a row's logits, or NaN if one is. */
static real largest_of_row(const rows *rows, const row *row, tile_buffers *buffers) {
    real largest = -REAL_INFINITY;
    for (int64_t tile = 0; tile < tiles_of(rows); tile++) {
        const real own = rows->of->shard.step == SHARD_VALUE
                             ? (real)*numbers_of_tile(rows, row->index, tile)
                             : range_of(logits_of(rows, row->first[0], tile, buffers), tile_size(rows, tile)).largest;
        if (own != own)
            return own;
        largest = own > largest ? own : largest;
    }
    return largest;
}

/* The same of tiles that were summed; +inf counts as NaN. */
static real largest_of_tiles(const softmax_tile *tile, int64_t tiles) {
    real largest = -REAL_INFINITY;
    for (int64_t i = 0; i < tiles; i++) {
        if (tile[i].exponent != tile[i].exponent)
            return REAL_NAN;
        if (tile[i].exponent > -WIDE_INFINITY && tile[i].largest > largest)
            largest = tile[i].largest;
    }
    return largest;
}

/* The sums of a row while its tiles are joined. */
typedef struct joined {
    order_stack others, leading, weights, weighted;
} joined;

static void join_tile(const rows *rows, const softmax_tile *tile, const row_facts *facts, joined *joined) {
    const real largest = (real)facts->row.largest;
    order_push(&joined->others, row_part_of_others(tile, facts->exponent, largest));
    if (!rows->weighs)
        return;
    order_push(&joined->leading, row_part_of_leading(tile, largest));
    order_push(&joined->weights, tile->weights);
    order_push(&joined->weighted, row_part_of_weighted(tile, largest));
}

static void begin_join(joined *joined) {
    joined->others.depth = joined->leading.depth = joined->weights.depth = joined->weighted.depth = 0;
    joined->others.tiles = joined->leading.tiles = joined->weights.tiles = joined->weighted.tiles = 0;
}

/* Some tiles, whose sums then wait. */
static void sum_tiles(const rows *rows, single_row *single, int64_t first, int64_t end, tile_buffers *buffers) {
    for (int64_t tile = first; tile < end; tile++)
        sum_tile(rows, &single->row, tile, buffers, &single->waiting[tile], &single->smallest[tile]);
}

/* All tiles of a row together: false if it has no softmax. */
static bool join_row(const rows *rows, single_row *single, tile_buffers *buffers) {
    const int64_t tiles = tiles_of(rows);
    row *row = &single->row;
    row_facts *facts = &row->facts;
    joined joined;
    real smallest;
    begin_join(&joined);
    const real largest =
        row->needs_sums ? largest_of_tiles(single->waiting, tiles) : largest_of_row(rows, row, buffers);
    if (!(largest - largest == 0))
        return false;
    facts->row.largest = (double)largest;
    facts->exponent = softmax_shift_of(&rows->softmax, &rows->of->scale, largest).exponent;
    for (int64_t tile = 0; tile < tiles; tile++) {
        softmax_tile sums;
        if (!row->needs_sums)
            sum_tile(rows, row, tile, buffers, &sums, &smallest);
        join_tile(rows, row->needs_sums ? &single->waiting[tile] : &sums, facts, &joined);
    }
    facts->row.own =
        rows->has_labels ? facts->row.own * wide_exp2(row->own_exponent - facts->exponent) : order_top(&joined.leading);
    facts->row.others = order_top(&joined.others);
    facts->row.weights = order_top(&joined.weights);
    facts->weighted = order_top(&joined.weighted);
    return true;
}

/* ------------------------------------------------------------------ slopes -- */

static void finish_tile(const tile_output *output, real upstream) {
    if (upstream != 1)
        multiply_by_one(output->out, output->count, upstream);
    if (!output->is_direct)
        scatter(&output->gradient, output->element, output->count, output->out);
}

/* Whether classes that lie side by side were set to 0, of whatever type: by the system's own loop, which need not read
 * what it overwrites. */
static bool clear_gradient(const rows *rows, const row *row, int k) {
    const view *of = &rows->job->gradient[k];
    if (rows->of->gradient_stride[k] != 1)
        return false;
    memset(address_of(of, row->index), 0, (size_t)rows->of->classes * dtype_size(of->dtype));
    return true;
}

/* The gradient of every class of a row is one number. */
static void fill_gradients(const rows *rows, const row *row, real number, real *buffer) {
    for (int k = 0; k < 2; k++) {
        if (!rows->job->gradient[k].data || (number == 0 && clear_gradient(rows, row, k)))
            continue;
        for (int64_t tile = 0; tile < tiles_of(rows); tile++) {
            const tile_output output = output_of_tile(rows, row, k, tile, buffer);
            for (int i = 0; i < output.count; i++)
                output.out[i] = number;
            finish_tile(&output, 1);
        }
    }
}

/* The lines of the next tile's gradient, while this one's are computed. */
static void prefetch_output(const tile_output *output, int from, int count) {
    const int64_t size = (int64_t)dtype_size(output->gradient.dtype);
    if (CAN_PREFETCH && output->gradient.stride[0] == 1)
        prefetch((const char *)output->gradient.data + output->element * size, size, from, count, true);
}

/* What a slope is made of: e_c f - u_c b, or e_c f where the value knows no u. */
typedef struct tile_factors {
    real f, b;
    bool weighs;
    const real *q; /* u_c = kept q_c + share, or null: */
    real kept, share;
    const real *u; /* null: 1 */
} tile_factors;

static tile_factors factors_of_tile(const rows *rows, const row *row, const row_factors *factors, int64_t index,
                                    double exponent, tile_buffers *buffers) {
    const real *q = rows->weighs ? plain_targets_of(rows, row->first[1], index, tile_size(rows, index)) : NULL;
    return (tile_factors){.f = row_tile_factor(factors, exponent, row->facts.exponent),
                          .b = factors->of_weights,
                          .weighs = rows->weighs,
                          .q = q,
                          .kept = rows->kept,
                          .share = rows->share,
                          .u = rows->weighs && !q ? weights_of(rows, row->first[1], index, buffers) : NULL};
}

/* In the place of some exponentials, from the given class of the tile on. */
static void multiply(const tile_factors *factors, int64_t first, int64_t count, real *e) {
    const real f = factors->f, b = factors->b;
    if (factors->q) {
        const real *q = factors->q + first, kept = factors->kept, share = factors->share;
#pragma omp simd
        for (int64_t i = 0; i < count; i++)
            e[i] = lean(e[i] * f - (q[i] * kept + share) * b);
    } else if (factors->u) {
        const real *u = factors->u + first;
#pragma omp simd
        for (int64_t i = 0; i < count; i++)
            e[i] = lean(e[i] * f - u[i] * b);
    } else if (factors->weighs) {
#pragma omp simd
        for (int64_t i = 0; i < count; i++)
            e[i] = lean(e[i] * f - b);
    } else {
#pragma omp simd
        for (int64_t i = 0; i < count; i++)
            e[i] = lean(e[i] * f);
    }
}

/* Of logits, a line at a time. */
static void write_slopes(const tile *tile, const tile_factors *factors, const tile_output *output) {
    for (int first = 0; first < output->count; first += ORDER_LANES) {
        const int count = (int)least(output->count - first, ORDER_LANES);
        prefetch_output(output, first, count);
        if (output->is_direct)
            exponentiate_far(tile, first, count, output->out + first);
        else
            exponentiate(tile, first, count, output->out + first);
        multiply(factors, first, count, output->out + first);
    }
}

static void multiply_by_cap(const real *slope, int count, real *out) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        out[i] = canonical(out[i] * slope[i]);
}

/* The label's slope, and what all are multiplied by. */
static void finish_slopes(const rows *rows, const row *row, const row_factors *factors, const tile_output *output,
                          const tile_buffers *buffers) {
    const int64_t label = row->label - output->element;
    if (label >= 0 && label < output->count)
        output->out[label] = canonical(factors->own);
    if (rows->softmax.softcap != 0)
        multiply_by_cap(buffers->slope, output->count, output->out);
    finish_tile(output, row->upstream);
}

/* slope of z_c = e_c f - u_c b, but for the label's. */
static void logit_gradient(const rows *rows, const row *row, const row_factors *factors, int64_t index, const real *z,
                           tile_range range, tile_buffers *buffers) {
    const softmax_shift shift = softmax_shift_of(&rows->softmax, &rows->of->scale, range.largest);
    const tile tile = tile_of_logits(&rows->softmax, &shift, range.smallest, z);
    const tile_factors own = factors_of_tile(rows, row, factors, index, shift.exponent, buffers);
    const tile_output output = output_of_tile(rows, row, 0, index, buffers->e);
    write_slopes(&tile, &own, &output);
    finish_slopes(rows, row, factors, &output, buffers);
}

static void kept_gradient(const rows *rows, const row *row, const row_factors *factors, int64_t index, double exponent,
                          tile_buffers *buffers) {
    const tile_factors own = factors_of_tile(rows, row, factors, index, exponent, buffers);
    const tile_output output = output_of_tile(rows, row, 0, index, buffers->e);
    multiply(&own, 0, output.count, output.out);
    finish_slopes(rows, row, factors, &output, buffers);
}

/* slope of q_c = (1 - s) w_c (lse - z_c). */
static void probability_gradient(const rows *rows, const row *row, int64_t tile, const real *z, tile_buffers *buffers) {
    const softmax_scale scale = rows->of->scale;
    const double common = row->weight * rows->per_divisor * (1 - rows->of->smoothing);
    const double largest = row->facts.row.largest, above = row_above(&rows->softmax, &scale, &row->facts.row);
    const tile_output output = output_of_tile(rows, row, 1, tile, buffers->u);
    gather_class_weights(rows, tile, output.count, buffers->e);
#pragma omp simd
    for (int64_t i = 0; i < output.count; i++)
        output.out[i] =
            canonical((real)(row_distance(&scale, largest, above, (double)z[i]) * (double)buffers->e[i] * common));
    finish_tile(&output, row->upstream);
}

/* Whether a tile's slopes were written straight from where its logits are: if they are calm bf16, and no factor is inf
 * or NaN. */
static bool bf16_gradient(const rows *rows, const single_row *single, const row_factors *factors, int64_t index) {
    const job *job = rows->job;
    const row *row = &single->row;
    const softmax_tile *tile = &single->waiting[index % MOST_WAITING];
    const int64_t label = row->label - index * ORDER_TILE;
    if (!HAS_BF16_SLOPES || job->operand[0].dtype != ONEPASS_BF16 || job->gradient[0].dtype != ONEPASS_BF16 ||
        !job->gradient[0].data || job->gradient[1].data || rows->weighs || rows->softmax.softcap != 0 ||
        !row->needs_sums || rows->of->shard.tile_sums || rows->of->class_stride[0] != 1 ||
        rows->of->gradient_stride[0] != 1 || tile_size(rows, index) < ORDER_TILE || tile->exponent == -WIDE_INFINITY)
        return false;
    const softmax_shift shift = softmax_shift_of(&rows->softmax, &rows->of->scale, tile->largest);
    const bf16_slopes own = {
        .from = (const uint16_t *)(const void *)row->first[0] + index * ORDER_TILE,
        .to = (uint16_t *)address_of(&job->gradient[0], row->index) + index * ORDER_TILE,
        .f = row_tile_factor(factors, shift.exponent, row->facts.exponent),
        .upstream = row->upstream,
    };
    if (!softmax_is_calm(&rows->softmax, &shift, single->smallest[index % MOST_WAITING]) || own.f - own.f != 0 ||
        own.upstream - own.upstream != 0)
        return false;
    write_bf16_slopes(&rows->softmax, &shift, &own);
    if (label >= 0 && label < ORDER_TILE) {
        const real slope = canonical(factors->own);
        store_bf16(own.to, label, own.upstream != 1 ? canonical(slope * own.upstream) : slope);
    }
    return true;
}

/* Of some tiles. The target's gradient first: the other may lie over the logits. */
static void write_gradients(const rows *rows, const single_row *single, int64_t first, int64_t end,
                            tile_buffers *buffers) {
    const row *row = &single->row;
    const double common = row->weight * rows->per_divisor * rows->of->scale.per_temperature;
    const row_factors factors = row_factors_of(&row->facts.row, &row->slopes, common);
    for (int64_t index = first; index < end; index++) {
        const softmax_tile *tile = &single->waiting[index % MOST_WAITING];
        if (keeps(rows, row)) {
            kept_gradient(rows, row, &factors, index, tile->exponent, buffers);
            continue;
        }
        if (bf16_gradient(rows, single, &factors, index))
            continue;
        const real *z = logits_of(rows, row->first[0], index, buffers);
        tile_range range = {tile->exponent == -WIDE_INFINITY ? -REAL_INFINITY : tile->largest,
                            single->smallest[index % MOST_WAITING]};
        if (rows->of->shard.tile_sums)
            range = (tile_range){(real)*numbers_of_tile(rows, row->index, index), -REAL_INFINITY};
        else if (!row->needs_sums)
            range = range_of(z, tile_size(rows, index));
        if (rows->job->gradient[1].data)
            probability_gradient(rows, row, index, z, buffers);
        if (rows->job->gradient[0].data)
            logit_gradient(rows, row, &factors, index, z, range, buffers);
    }
}

/* The first class of a row, from a tile on, whose number equals the largest; of a NaN the first NaN. */
static int64_t find_class(const rows *rows, const char *first, int64_t tile, real largest, real *buffer) {
    const view classes = classes_of(first, rows->job->operand[0].dtype, rows->of->classes, rows->of->class_stride[0]);
    for (; tile < tiles_of(rows); tile++) {
        gather_copy(&classes, tile * ORDER_TILE, tile_size(rows, tile), buffer);
        for (int i = 0; i < tile_size(rows, tile); i++)
            if (buffer[i] == largest || (largest != largest && buffer[i] != buffer[i]))
                return tile * ORDER_TILE + i;
    }
    return -1;
}

/* The class of the largest number, the first of equals, or of the first NaN; numbers are not capped. */
static int64_t predict(const rows *rows, const char *first, real *buffer) {
    const view classes = classes_of(first, rows->job->operand[0].dtype, rows->of->classes, rows->of->class_stride[0]);
    real largest = -REAL_INFINITY;
    int64_t found = 0;
    for (int64_t tile = 0; tile < tiles_of(rows); tile++) {
        gather_copy(&classes, tile * ORDER_TILE, tile_size(rows, tile), buffer);
        const real own = range_of(buffer, tile_size(rows, tile)).largest;
        if (own > largest || own != own) {
            largest = own;
            found = tile;
        }
        if (own != own)
            break;
    }
    return find_class(rows, first, found, largest, buffer);
}

/* -------------------------------------------------------------------- rows -- */

/* From a state that was computed before. */
static bool recall_row(const rows *rows, row *row, tile_buffers *buffers) {
    row_facts *facts = &row->facts;
    memcpy(&facts->row, rows->of->state + row->index * ONEPASS_ROW_STATE, sizeof facts->row);
    facts->exponent = softmax_shift_of(&rows->softmax, &rows->of->scale, (real)facts->row.largest).exponent;
    if (rows->of->shard.label_logit)
        facts->label_logit = (real)rows->of->shard.label_logit[row->index];
    else if (rows->has_labels)
        facts->label_logit = logits_of(rows, row->first[0], row->label / ORDER_TILE, buffers)[row->label % ORDER_TILE];
    const row_sums sums = row_sums_of_state(&rows->of->scale, facts, 0);
    rows->job->loss->row(&sums, rows->job->parameter, &row->slopes);
    return facts->row.largest == facts->row.largest;
}

static bool compute_row(const rows *rows, single_row *single, tile_buffers *buffers) {
    if (!join_row(rows, single, buffers))
        return false;
    const row_sums sums = row_sums_of(&rows->softmax, &rows->of->scale, &single->row.facts);
    rows->job->loss->row(&sums, rows->job->parameter, &single->row.slopes);
    return true;
}

/* What is known of a row before its classes are read: false if it takes no part, and all is done. */
static bool begin_single(const rows *rows, int64_t index, single_row *single, tile_buffers *buffers) {
    const job *job = rows->job;
    row *row = &single->row;
    memset(row, 0, sizeof *row);
    row->index = index;
    row->label = -1;
    for (int k = 0; k < 2 && rows->of->classes > 0; k++) /* else there is nothing, at strides of any size */
        row->first[k] = address_of(&job->operand[k], index);
    if (!takes_part(rows, index)) {
        if (rows->has_gradient)
            fill_gradients(rows, row, 0, buffers->e);
        write_predicted(rows, index, -1);
        write_outputs(rows, index, 0, &row->facts.row);
        return false;
    }
    if (rows->has_labels)
        row->label = label_of(job, index);
    row->weight = element_of(&job->weight, index, 1);
    row->upstream = upstream_of(job, index);
    row->facts.weight = rows->has_labels ? class_weight_of(job, row->label) : 1;
    row->facts.classes = (double)rows->of->shard.all_classes;
    row->facts.label_logit = -REAL_INFINITY;
    row->needs_sums = !rows->reads_state && tiles_of(rows) <= MOST_WAITING;
    return true;
}

/* The value, with the numbers that come with it, and what it adds to the sum; of gradients those that are NaN. */
static real finish_single(const rows *rows, single_row *single, tile_buffers *buffers) {
    row *row = &single->row;
    const bool good = rows->reads_state ? recall_row(rows, row, buffers) : compute_row(rows, single, buffers);
    if (rows->of->predicted.data)
        write_predicted(rows, row->index, predict(rows, row->first[0], buffers->e));
    if (!good) {
        row->facts.row = no_softmax();
        row->slopes.value = WIDE_NAN;
    }
    if (rows->has_gradient && !good)
        fill_gradients(rows, row, REAL_NAN, buffers->e);
    row->has_slopes = rows->has_gradient && good;
    const double value = row->slopes.value * row->weight;
    write_outputs(rows, row->index, value, &row->facts.row);
    return canonical((real)value);
}

/* The sums of a row's tiles, for whoever has those of the others. */
static void leave_tiles(const rows *rows, int64_t index, single_buffers *buffers) {
    const row_shard *shard = &rows->of->shard;
    row *row = &buffers->single.row;
    const bool counts = begin_single(rows, index, &buffers->single, &buffers->tile);
    for (int64_t tile = 0; tile < tiles_of(rows); tile++) {
        real smallest;
        softmax_tile sums = {0};
        if (counts)
            sum_tile(rows, row, tile, &buffers->tile, &sums, &smallest);
        double number[ONEPASS_SMOOTH_TILE_SUMS];
        row_numbers_of_tile(&sums, number);
        for (int64_t i = 0; i < shard->sums_of_tile; i++) /* a NaN has one face */
            store_scalar(numbers_of_tile(rows, index, tile) + i * shard->sum_step, ONEPASS_F64, number[i]);
    }
    store_scalar(shard->label_logit + index, ONEPASS_F64, counts ? (double)row->facts.label_logit : 0);
}

/* All of a row, and what it adds to the sum. */
static real run_single(const rows *rows, int64_t index, single_buffers *buffers) {
    single_row *single = &buffers->single;
    if (!begin_single(rows, index, single, &buffers->tile))
        return 0;
    if (single->row.needs_sums)
        sum_tiles(rows, single, 0, tiles_of(rows), &buffers->tile);
    const real term = finish_single(rows, single, &buffers->tile);
    if (single->row.has_slopes)
        write_gradients(rows, single, 0, tiles_of(rows), &buffers->tile);
    return term;
}

#endif
