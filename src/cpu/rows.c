/*
 * The CPU engine's work on rows: gather a tile of a row's classes as `real` numbers, exponentiate and sum it, join the
 * tiles, and scatter the gradients. Compiled once for each instruction set and each compute type; ONEPASS_VARIANT
 * (avx2_f32) ends the names of the functions that come out.
 *
 * -ffp-contract=off is part of the meaning: a fused multiply-add has other bits.
 */
#include "cpu/rows.h"

#include "cpu/buffers.h"
#include "cpu/memory.h"
#include "math/row.h"

/* Tiles of a row whose sums wait to be joined. Rows of more tiles have a pass of their own for the maximum. */
#define MOST_WAITING 512

/* ------------------------------------------------------------------- a row -- */

/* What is the same for all rows of a job. */
typedef struct rows {
    const job *job;
    const row_job *of;
    softmax softmax;
    real kept, share;  /* u_c = w_c (kept q_c + share): of smoothed probabilities */
    bool sums_weights; /* the value needs the sums of u_c */
    bool weighs;       /* and the slopes need u_c */
    bool has_value, has_gradient;
    double per_divisor; /* one over the divisor */
} rows;

/* One row. */
typedef struct row {
    int64_t index;
    const char *first[2]; /* of the operands */
    int64_t label;
    int64_t predicted;
    double weight; /* of the row */
    real upstream;
    row_facts facts;
} row;

typedef struct row_buffers {
    _Alignas(64) real z[ORDER_TILE];
    real e[ORDER_TILE];
    real u[ORDER_TILE]; /* class weights, or these times probabilities */
    real tangent[ORDER_TILE];
} row_buffers;

static view classes_of(const void *first, int32_t dtype, int64_t classes, int64_t stride) {
    return (view){(void *)(uintptr_t)first, dtype, 1, {classes}, {stride}};
}

static int tile_size(const rows *rows, int64_t tile) {
    return (int)least(rows->of->classes - tile * ORDER_TILE, ORDER_TILE);
}

/* Logits of a tile, capped. */
static void gather_logits(const rows *rows, const row *row, int64_t tile, int count, row_buffers *buffers) {
    const job *job = rows->job;
    const view classes =
        classes_of(row->first[0], job->operand[0].dtype, rows->of->classes, rows->of->class_stride[0]);
    gather_copy(&classes, tile * ORDER_TILE, count, buffers->z);
    if (rows->softmax.softcap == 0)
        return;
    for (int i = 0; i < count; i++) {
        buffers->tangent[i] = softmax_tangent(&rows->softmax, buffers->z[i]);
        buffers->z[i] = rows->softmax.softcap * buffers->tangent[i];
    }
}

/* u_c of a tile. */
static void gather_weights(const rows *rows, const row *row, int64_t tile, int count, row_buffers *buffers) {
    const job *job = rows->job;
    real *u = buffers->u;
    const bool weighted = job->operand[2].data;
    if (weighted) {
        const view classes =
            classes_of(job->operand[2].data, job->operand[2].dtype, rows->of->classes, rows->of->class_stride[2]);
        gather_copy(&classes, tile * ORDER_TILE, count, u);
    }
    for (int i = 0; i < count && !weighted; i++)
        u[i] = 1;
    if (job->loss->kind != ROW_PROBABILITIES)
        return;
    const view classes =
        classes_of(row->first[1], job->operand[1].dtype, rows->of->classes, rows->of->class_stride[1]);
    gather_copy(&classes, tile * ORDER_TILE, count, buffers->e);
    for (int i = 0; i < count; i++)
        u[i] = u[i] * (buffers->e[i] * rows->kept + rows->share);
}

/* The largest of numbers, or NaN if one is. */
static real largest_of(const real *z, int count) {
    real largest = -REAL_INFINITY, nothing = 0;
#pragma omp simd reduction(max : largest) reduction(+ : nothing)
    for (int64_t i = 0; i < count; i++) {
        largest = z[i] > largest ? z[i] : largest;
        nothing += choose(z[i] != z[i], z[i], 0);
    }
    return nothing != nothing ? REAL_NAN : largest;
}

static void exponentiate(const rows *rows, const softmax_shift *shift, int count, row_buffers *buffers) {
    const softmax softmax = rows->softmax;
    const softmax_shift own = *shift;
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        buffers->e[i] = softmax_exponential(&softmax, &own, buffers->z[i] - own.anchor);
}

/* Of logits that are -inf, and weights that are 0, the product is 0. */
static double sum_weighted(const real *z, const real *u, real largest, int count, real *terms) {
    double sum;
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        terms[i] = choose(u[i] == 0, 0, u[i] * (z[i] - largest));
    stored_sum(terms, count, &sum);
    return sum;
}

static double plain_sum(const real *terms, int count, real *copy) {
    double sum;
    memcpy(copy, terms, (size_t)count * sizeof *terms);
    stored_sum(copy, count, &sum);
    return sum;
}

/* A tile of a row in the buffers, and its sums. The label's exponential, if it is here, goes into the row's facts, by
 * the tile's own exponent. */
static softmax_tile sum_tile(const rows *rows, row *row, int64_t tile, row_buffers *buffers, double *own_exponent) {
    const int count = tile_size(rows, tile);
    softmax_tile sums = {0};
    gather_logits(rows, row, tile, count, buffers);
    const softmax_shift shift = softmax_shift_of(&rows->softmax, &rows->of->scale, largest_of(buffers->z, count));
    sums.exponent = shift.exponent;
    sums.largest = shift.largest;
    if (rows->sums_weights) {
        gather_weights(rows, row, tile, count, buffers);
        sums.weights = plain_sum(buffers->u, count, buffers->e);
        sums.weighted = sum_weighted(buffers->z, buffers->u, shift.largest, count, buffers->e);
    }
    exponentiate(rows, &shift, count, buffers);
    const int64_t label = row->label - tile * ORDER_TILE;
    if (label >= 0 && label < count) {
        row->facts.row.own = (double)buffers->e[label];
        row->facts.label_logit = buffers->z[label];
        *own_exponent = shift.exponent;
        buffers->e[label] = 0;
    }
    stored_sum(buffers->e, count, &sums.others);
    return sums;
}

/* The row's largest logit, or NaN; -inf where there is none larger. */
static real largest_of_row(const rows *rows, const row *row, int64_t tiles, row_buffers *buffers) {
    real largest = -REAL_INFINITY;
    for (int64_t tile = 0; tile < tiles; tile++) {
        const int count = tile_size(rows, tile);
        gather_logits(rows, row, tile, count, buffers);
        const real own = largest_of(buffers->z, count);
        if (own != own)
            return own;
        largest = own > largest ? own : largest;
    }
    return largest;
}

/* The sums of a row while its tiles are joined. */
typedef struct joined {
    order_stack others, weights, weighted;
} joined;

static void join_tile(const rows *rows, const softmax_tile *tile, real largest, double exponent, joined *joined) {
    order_push(&joined->others, row_part_of_others(tile, exponent));
    if (!rows->sums_weights)
        return;
    order_push(&joined->weights, tile->weights);
    order_push(&joined->weighted, row_part_of_weighted(tile, largest));
}

/* The largest logit of tiles that were summed: NaN or -inf as above. */
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

/* All tiles of a row: false if it has no softmax. */
static bool sum_row(const rows *rows, row *row, row_buffers *buffers) {
    const int64_t tiles = (rows->of->classes - 1) / ORDER_TILE + 1;
    softmax_tile waiting[MOST_WAITING];
    joined joined;
    joined.others.depth = joined.weights.depth = joined.weighted.depth = 0;
    joined.others.tiles = joined.weights.tiles = joined.weighted.tiles = 0;
    double own_exponent = -WIDE_INFINITY; /* without a label its exponential is 0, whatever the row's exponent */
    const bool can_wait = tiles <= MOST_WAITING;
    row->facts.row.own = 0;
    row->facts.label_logit = -REAL_INFINITY;
    for (int64_t tile = 0; can_wait && tile < tiles; tile++)
        waiting[tile] = sum_tile(rows, row, tile, buffers, &own_exponent);
    const real largest = can_wait ? largest_of_tiles(waiting, tiles) : largest_of_row(rows, row, tiles, buffers);
    if (!(largest > -REAL_INFINITY && largest < REAL_INFINITY))
        return false;
    const double exponent = softmax_shift_of(&rows->softmax, &rows->of->scale, largest).exponent;
    for (int64_t tile = 0; tile < tiles; tile++) {
        const softmax_tile sums = can_wait ? waiting[tile] : sum_tile(rows, row, tile, buffers, &own_exponent);
        join_tile(rows, &sums, largest, exponent, &joined);
    }
    row_facts *facts = &row->facts;
    facts->largest = largest;
    facts->row.exponent = exponent;
    facts->row.others = order_top(&joined.others);
    if (row->label >= 0)
        facts->row.own = facts->row.own * wide_exp2(own_exponent - exponent);
    facts->row.weights = order_top(&joined.weights);
    facts->weighted = order_top(&joined.weighted);
    return true;
}

/* ---------------------------------------------------------------- outputs -- */

static real *outputs_of_tile(const rows *rows, const row *row, int k, int64_t tile, int count, view *gradient,
                             real *buffer) {
    const view *of = &rows->job->gradient[k];
    *gradient = classes_of(address_of(of, row->index), of->dtype, rows->of->classes, rows->of->gradient_stride[k]);
    real *into = direct(gradient, tile * ORDER_TILE, count);
    return into ? into : buffer;
}

static void finish_tile(const view *gradient, int64_t tile, int count, real upstream, const real *buffer, real *out) {
    if (upstream != 1)
        multiply_by_one(out, count, upstream);
    if (out == buffer)
        scatter(gradient, tile * ORDER_TILE, count, out);
}

/* The gradient of every class of a row is one number. */
static void fill_gradients(const rows *rows, const row *row, real number, row_buffers *buffers) {
    for (int k = 0; k < 2; k++)
        for (int64_t first = 0; rows->job->gradient[k].data && first < rows->of->classes; first += ORDER_TILE) {
            view gradient;
            const int count = (int)least(rows->of->classes - first, ORDER_TILE);
            real *out = outputs_of_tile(rows, row, k, first / ORDER_TILE, count, &gradient, buffers->e);
            for (int i = 0; i < count; i++)
                out[i] = number;
            finish_tile(&gradient, first / ORDER_TILE, count, 1, buffers->e, out);
        }
}

/* slope of z_c = e_c f - u_c b, but for the label's. */
static void logit_gradient(const rows *rows, const row *row, const row_factors *factors, int64_t tile,
                           row_buffers *buffers) {
    view gradient;
    const int count = tile_size(rows, tile);
    const softmax_shift shift = softmax_shift_of(&rows->softmax, &rows->of->scale, largest_of(buffers->z, count));
    const real f = row_tile_factor(factors, shift.exponent, row->facts.row.exponent), b = factors->of_weights;
    exponentiate(rows, &shift, count, buffers);
    real *out = outputs_of_tile(rows, row, 0, tile, count, &gradient, buffers->e);
    if (rows->weighs) {
#pragma omp simd
        for (int64_t i = 0; i < count; i++)
            out[i] = canonical(buffers->e[i] * f - buffers->u[i] * b);
    } else {
#pragma omp simd
        for (int64_t i = 0; i < count; i++)
            out[i] = canonical(buffers->e[i] * f);
    }
    const int64_t label = row->label - tile * ORDER_TILE;
    if (label >= 0 && label < count)
        out[label] = canonical(factors->own);
    for (int i = 0; rows->softmax.softcap != 0 && i < count; i++)
        out[i] = canonical(out[i] * fused(-buffers->tangent[i], buffers->tangent[i], 1));
    finish_tile(&gradient, tile, count, row->upstream, buffers->e, out);
}

/* slope of q_c = (1 - s) w_c (lse - z_c). */
static void probability_gradient(const rows *rows, const row *row, double log2_sum, int64_t tile,
                                 row_buffers *buffers) {
    view gradient;
    const int count = tile_size(rows, tile);
    const double common = row->weight * rows->per_divisor * (1 - rows->of->smoothing);
    const job *job = rows->job;
    if (job->operand[2].data) {
        const view classes =
            classes_of(job->operand[2].data, job->operand[2].dtype, rows->of->classes, rows->of->class_stride[2]);
        gather_copy(&classes, tile * ORDER_TILE, count, buffers->e);
    }
    for (int i = 0; i < count && !job->operand[2].data; i++)
        buffers->e[i] = 1;
    real *out = outputs_of_tile(rows, row, 1, tile, count, &gradient, buffers->u);
    for (int i = 0; i < count; i++)
        out[i] = canonical((real)(row_distance(&rows->of->scale, row->facts.row.exponent, log2_sum,
                                               (double)buffers->z[i]) *
                                  (double)buffers->e[i] * common));
    finish_tile(&gradient, tile, count, row->upstream, buffers->u, out);
}

static void write_gradients(const rows *rows, const row *row, const row_slopes *slopes, row_buffers *buffers) {
    const double common = row->weight * rows->per_divisor * rows->of->scale.per_temperature;
    const row_factors factors = row_factors_of(&row->facts.row, slopes, common);
    const double log2_sum = wide_log2(row->facts.row.others + row->facts.row.own);
    const bool for_logits = rows->job->gradient[0].data, for_target = rows->job->gradient[1].data;
    for (int64_t first = 0; first < rows->of->classes; first += ORDER_TILE) {
        const int64_t tile = first / ORDER_TILE;
        const int count = tile_size(rows, tile);
        gather_logits(rows, row, tile, count, buffers);
        if (rows->weighs)
            gather_weights(rows, row, tile, count, buffers);
        if (for_logits)
            logit_gradient(rows, row, &factors, tile, buffers);
        if (for_target)
            probability_gradient(rows, row, log2_sum, tile, buffers);
    }
}

static void write_number(const view *view, int64_t row, double number) {
    if (view->data)
        store_scalar(address_of(view, row), view->dtype, number);
}

/* The class of the largest number, the first of equals, or of the first NaN. */
static int64_t predict(const rows *rows, const row *row, row_buffers *buffers) {
    real largest = 0;
    int64_t found = -1;
    const view classes =
        classes_of(row->first[0], rows->job->operand[0].dtype, rows->of->classes, rows->of->class_stride[0]);
    for (int64_t first = 0; first < rows->of->classes; first += ORDER_TILE) {
        const int count = (int)least(rows->of->classes - first, ORDER_TILE);
        gather_copy(&classes, first, count, buffers->z);
        for (int i = 0; i < count; i++) {
            const real z = buffers->z[i];
            if (z != z)
                return first + i;
            if (found < 0 || z > largest) {
                largest = z;
                found = first + i;
            }
        }
    }
    return found;
}

static void write_outputs(const rows *rows, const row *row, double value, bool takes_part) {
    const row_job *of = rows->of;
    if (rows->job->reduction == ONEPASS_NONE)
        write_number(&rows->job->value, row->index, value);
    write_number(&of->log_sum_exp, row->index, takes_part ? row->facts.row.lse : 0);
    if (of->predicted.data)
        *(int64_t *)address_of(&of->predicted, row->index) = row->predicted;
    if (of->state && !of->reads_state) { /* number by number, since a NaN has one face */
        const softmax_row *state = &row->facts.row;
        const double number[] = {state->exponent, state->others, state->own, state->lse, state->weights};
        for (int i = 0; i < ONEPASS_ROW_STATE; i++)
            store_scalar(of->state + row->index * ONEPASS_ROW_STATE + i, ONEPASS_F64, number[i]);
    }
}

/* -------------------------------------------------------------------- rows -- */

static bool has_labels(const job *job) {
    return job->loss->kind != ROW_PROBABILITIES;
}

static int64_t label_of(const job *job, int64_t row) {
    return load_index(address_of(&job->operand[1], row), job->operand[1].dtype, 0);
}

static double element_of(const view *view, int64_t row, double otherwise) {
    return view->data ? load_scalar(address_of(view, row), view->dtype) : otherwise;
}

/* Whether a row counts at all. */
static bool takes_part(const job *job, int64_t row) {
    return element_of(&job->mask, row, 1) != 0 && !(has_labels(job) && label_of(job, row) == job->rows.ignore_index);
}

static double class_weight_of(const job *job, int64_t label) {
    const view *weight = &job->operand[2];
    const int64_t size = (int64_t)dtype_size(weight->dtype);
    return weight->data ? load_scalar((const char *)weight->data + label * job->rows.class_stride[2] * size, weight->dtype)
                        : 1;
}

/* A row that takes part: its value in double. */
static double run_row(const rows *rows, row *row, row_buffers *buffers) {
    const job *job = rows->job;
    row_slopes slopes = {0};
    row_facts *facts = &row->facts;
    bool good = row->label >= 0 || !has_labels(job);
    if (job->loss->kind == ROW_PICKED) {
        const int64_t size = (int64_t)dtype_size(job->operand[0].dtype);
        const double z = load_scalar(row->first[0] + row->label * rows->of->class_stride[0] * size, job->operand[0].dtype);
        const row_sums sums = {.nll = -z, .weight = facts->weight, .classes = facts->classes};
        job->loss->row(&sums, job->parameter, &slopes);
        facts->row = (softmax_row){.others = 1};
    } else if (rows->of->reads_state && rows->of->state) {
        memcpy(&facts->row, rows->of->state + row->index * ONEPASS_ROW_STATE, sizeof facts->row);
        good = facts->row.exponent == facts->row.exponent;
        if (has_labels(job)) {
            const int64_t tile = row->label / ORDER_TILE;
            gather_logits(rows, row, tile, tile_size(rows, tile), buffers);
            facts->label_logit = buffers->z[row->label % ORDER_TILE];
        }
        const row_sums sums = row_sums_of_state(&rows->of->scale, facts, 0);
        job->loss->row(&sums, job->parameter, &slopes);
    } else {
        good = good && sum_row(rows, row, buffers);
        if (good) {
            const row_sums sums = row_sums_of(&rows->softmax, &rows->of->scale, facts);
            job->loss->row(&sums, job->parameter, &slopes);
        }
    }
    if (!good) {
        facts->row = (softmax_row){WIDE_NAN, WIDE_NAN, WIDE_NAN, WIDE_NAN, WIDE_NAN};
        slopes.value = WIDE_NAN;
        if (rows->has_gradient)
            fill_gradients(rows, row, REAL_NAN, buffers);
    } else if (rows->has_gradient && job->loss->kind == ROW_PICKED) {
        const real own = canonical((real)(slopes.own * (row->weight * rows->per_divisor))) ;
        view gradient;
        fill_gradients(rows, row, 0, buffers);
        gradient = classes_of(address_of(&job->gradient[0], row->index), job->gradient[0].dtype, rows->of->classes,
                              rows->of->gradient_stride[0]);
        const real scaled = row->upstream != 1 ? canonical(own * row->upstream) : own;
        scatter(&gradient, row->label, 1, &scaled);
    } else if (rows->has_gradient) {
        write_gradients(rows, row, &slopes, buffers);
    }
    return slopes.value * row->weight;
}

static rows rows_of(const job *job) {
    const bool none = job->reduction == ONEPASS_NONE;
    rows rows = {.job = job,
                 .of = &job->rows,
                 .softmax = softmax_of(&job->rows.scale),
                 .kept = (real)(1 - job->rows.smoothing),
                 .share = (real)(job->rows.smoothing / (double)job->rows.classes),
                 .has_value = job->sum || job->value.data || none,
                 .has_gradient = job->gradient[0].data || job->gradient[1].data,
                 .per_divisor = job->reduction == ONEPASS_MEAN ? 1 / job->divisor : 1};
    const bool weighs = job->loss->kind == ROW_PROBABILITIES || job->rows.smoothing != 0;
    rows.sums_weights = rows.weighs = weighs;
    return rows;
}

/* The row's numbers, and what it adds to the sum. */
static real term_of(const rows *rows, int64_t index, row_buffers *buffers) {
    const job *job = rows->job;
    row row = {.index = index, .predicted = -1, .upstream = 1};
    for (int k = 0; k < 2; k++)
        row.first[k] = address_of(&job->operand[k], index);
    row.label = has_labels(job) ? label_of(job, index) : -1;
    if (!takes_part(job, index)) {
        if (rows->has_gradient)
            fill_gradients(rows, &row, 0, buffers);
        write_outputs(rows, &row, 0, false);
        return 0;
    }
    row.weight = element_of(&job->weight, index, 1);
    row.facts.weight = has_labels(job) ? class_weight_of(job, row.label) : 1;
    row.facts.classes = (double)rows->of->classes;
    if (job->upstream.data)
        row.upstream = (real)(job->reduction == ONEPASS_NONE ? element_of(&job->upstream, index, 1)
                                                             : load_scalar(job->upstream.data, job->upstream.dtype));
    if (rows->of->predicted.data)
        row.predicted = predict(rows, &row, buffers); /* before a gradient takes the logits' place */
    const double value = run_row(rows, &row, buffers);
    if (!rows->of->reads_state || !rows->of->state)
        write_outputs(rows, &row, value, true);
    return canonical((real)value);
}

/* What a row counts for in a mean. */
static real weight_of(const job *job, int64_t row) {
    if (!takes_part(job, row))
        return 0;
    if (job->over_elements)
        return 1;
    return canonical((real)(class_weight_of(job, label_of(job, row)) * element_of(&job->weight, row, 1)));
}

#define ROWS  PASTE(onepass_cpu_rows_, ONEPASS_VARIANT)
#define TERMS PASTE(onepass_cpu_terms_, ONEPASS_VARIANT)
#define ENTRY PASTE(onepass_cpu_run_rows_, ONEPASS_VARIANT)
ONEPASS_INTERNAL cpu_rows_function ROWS;
ONEPASS_INTERNAL cpu_terms_function TERMS;
ONEPASS_INTERNAL cpu_run_function ENTRY;

void ROWS(const job *job, int64_t first, int64_t count, void *terms) {
    row_buffers buffers;
    real *term = terms;
    const rows rows = rows_of(job);
    for (int64_t i = 0; i < count; i++)
        term[i] = job->family == FAMILY_ROW_WEIGHTS ? weight_of(job, job->first + first + i)
                                                    : term_of(&rows, job->first + first + i, &buffers);
}

double TERMS(void *terms, int64_t count) {
    double sum;
    stored_sum(terms, (int)count, &sum);
    return sum;
}

/* Tiles of rows, as run.c has tiles of elements. */
void ENTRY(const job *job, int64_t first_tile, int64_t tile_count, int level, double *sums) {
    _Alignas(64) real terms[ORDER_TILE];
    order_nodes nodes;
    order_begin_nodes(&nodes, level, sums);
    const int64_t last_tile = first_tile + tile_count;
    const int64_t end = last_tile > job->count / ORDER_TILE ? job->count : last_tile * ORDER_TILE;
    for (int64_t row = first_tile * ORDER_TILE; row < end; row += ORDER_TILE) {
        const int64_t count = least(end - row, ORDER_TILE);
        ROWS(job, row, count, terms);
        order_push_tile(&nodes, TERMS(terms, count));
    }
    order_end_node(&nodes);
}
