/*
 * The CPU engine's work on vectors: the sums of a row's tiles, the row's value, and the slopes of its tiles. Compiled
 * once for each instruction set and compute type; ONEPASS_VARIANT (avx2_f32) ends the names of the functions that come
 * out.
 */
#include "cpu/vectors.h"

#include "cpu/row_numbers.h"
#include "cpu/vector_tile.h"

#define ROWS   PASTE(onepass_cpu_vectors_, ONEPASS_VARIANT)
#define SUMS   PASTE(onepass_cpu_vector_sums_, ONEPASS_VARIANT)
#define FINISH PASTE(onepass_cpu_vector_finish_, ONEPASS_VARIANT)
#define SLOPES PASTE(onepass_cpu_vector_slopes_, ONEPASS_VARIANT)
ONEPASS_INTERNAL cpu_vectors_function ROWS;
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

void SUMS(const job *job, int64_t row, int64_t first_tile, int64_t end_tile, int level, double *const *node) {
    const cpu_vector *loss = job->loss->cpu_vectors.ONEPASS_VARIANT;
    const int64_t length = job->vectors.length, first = (job->first + row) * length;
    const int64_t end = least(end_tile * ORDER_TILE, length);
    vector_tile tile;
    vector_buffers buffers;
    order_nodes nodes[VECTOR_MOST_SUMS];
    double sum[VECTOR_MOST_SUMS];
    begin_tiles(job, &tile, &buffers);
    for (int k = 0; k < job->loss->sums; k++)
        order_begin_nodes(&nodes[k], level, node[k]);
    for (int64_t i = first_tile * ORDER_TILE; i < end; i += ORDER_TILE) {
        gather_tile(job, first + i, least(end - i, ORDER_TILE), false, &tile, &buffers);
        loss->sums(&tile, sum);
        for (int k = 0; k < job->loss->sums; k++)
            order_push_tile(&nodes[k], sum[k]);
    }
    for (int k = 0; k < job->loss->sums; k++)
        order_end_node(&nodes[k]);
}

/* What multiplies all slopes of the row is multiplied into their factors. A row that takes no part has none, which
 * nobody asks for. */
void FINISH(const job *job, int64_t row, const double *sum, vector_slopes *slopes, void *term) {
    const int64_t index = job->first + row;
    const view *number = &job->operand[job->loss->vectors];
    vector_sums sums = {{0}, 0};
    double value = 0;
    if (takes_part(job, row)) {
        const double weight = element_of(&job->weight, index, 1);
        const double scale = job->reduction == ONEPASS_MEAN ? weight * (1 / job->divisor) : weight;
        memcpy(sums.sum, sum, (size_t)job->loss->sums * sizeof *sum);
        if (job->loss->vectors < job->operand_count)
            sums.number = load_number(address_of(number, index), number->dtype);
        job->loss->vector(&sums, job->parameter, slopes);
        value = slopes->value * weight;
        for (int k = 0; k < VECTOR_MOST_FACTORS; k++)
            slopes->factor[k] = slopes->factor[k] * scale;
    }
    if (job->reduction == ONEPASS_NONE)
        write_number(&job->value, index, value);
    *(real *)term = canonical((real)value);
}

/* What the row's gradients are multiplied by last, so that they may also be scaled later with the same bits. */
static void multiply(real *gradient, int64_t count, real upstream) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        gradient[i] = canonical(gradient[i] * upstream);
}

void SLOPES(const job *job, int64_t row, int64_t first_tile, int64_t end_tile, const vector_slopes *slopes) {
    const cpu_vector *loss = job->loss->cpu_vectors.ONEPASS_VARIANT;
    const int64_t length = job->vectors.length, first = (job->first + row) * length;
    const int64_t end = least(end_tile * ORDER_TILE, length);
    const bool part = takes_part(job, row), must_copy = gradient_count(job) > 1;
    const real upstream = part ? upstream_of(job, job->first + row) : 1;
    vector_tile tile;
    vector_buffers buffers;
    begin_tiles(job, &tile, &buffers);
    for (int64_t i = first_tile * ORDER_TILE; i < end; i += ORDER_TILE) {
        const int count = (int)least(end - i, ORDER_TILE);
        if (part)
            gather_tile(job, first + i, count, must_copy, &tile, &buffers);
        for (int k = 0; k < job->loss->vectors; k++) {
            if (!job->gradient[k].data)
                continue;
            real *into = direct(&job->gradient[k], first + i, count), *gradient = into ? into : buffers.result;
            if (part)
                loss->gradient[k](&tile, slopes->factor, gradient);
            else
                memset(gradient, 0, (size_t)count * sizeof *gradient);
            if (upstream != 1)
                multiply(gradient, count, upstream);
            if (!into)
                scatter(&job->gradient[k], first + i, count, gradient);
        }
    }
}

void ROWS(const job *job, int64_t first, int64_t count, void *terms) {
    const int64_t tiles = job->vectors.length / ORDER_TILE + (job->vectors.length % ORDER_TILE != 0);
    const bool has_value = job->value.data || job->sum, has_gradient = gradient_count(job) > 0;
    for (int64_t row = first; row < first + count; row++) {
        double sum[VECTOR_MOST_SUMS] = {0};
        double *const node[VECTOR_MOST_SUMS] = {&sum[0], &sum[1], &sum[2]};
        vector_slopes slopes = {0};
        if (takes_part(job, row) && (has_value || has_gradient))
            SUMS(job, row, 0, tiles, ORDER_TOP_LEVEL, node);
        FINISH(job, row, sum, &slopes, (real *)terms + (row - first));
        if (has_gradient)
            SLOPES(job, row, 0, tiles, &slopes);
    }
}
