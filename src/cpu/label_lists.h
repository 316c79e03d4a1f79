/*
 * Rows of scores and lists of labels, on the CPU: what each label's score and those of a tile's other classes come to,
 * for one label after the other. No memory is needed beyond a tile: the list is gone through again for each.
 */
#ifndef ONEPASS_CPU_LABEL_LISTS_H
#define ONEPASS_CPU_LABEL_LISTS_H

#include "cpu/buffers.h"
#include "cpu/row_numbers.h"
#include "cpu/vector_tile.h"
#include "cpu/vectors.h"

/* A tile's scores but for those of labels, beside each of them that of one label, and whether the pair has a slope. */
typedef struct label_tile {
    _Alignas(64) real others[ORDER_TILE];
    real own[ORDER_TILE], slope[ORDER_TILE];
    vector_tile tile;
} label_tile;

/* The k-th of a row; -1 behind the last. */
static int64_t listed_label(const job *job, int64_t row, int64_t k) {
    const view *labels = &job->operand[1];
    return k < job->vectors.length ? load_index(address_of(labels, row * job->vectors.length + k), labels->dtype, 0)
                                   : -1;
}

/* The classes from the i-th on. In a label's place is -inf, which lacks nothing. */
static void gather_others(const job *job, int64_t row, int64_t i, label_tile *own) {
    const int64_t count = least(job->vectors.length - i, ORDER_TILE);
    int64_t label;
    gather_copy(&job->operand[0], row * job->vectors.length + i, (int)count, own->others);
    for (int64_t k = 0; (label = listed_label(job, row, k)) >= 0; k++)
        if (label >= i && label < i + count)
            own->others[label - i] = -REAL_INFINITY;
    own->tile = (vector_tile){.operand = {own->others, own->own, own->others}, .rows = 1, .count = count};
    memcpy(own->tile.parameter, job->parameter, sizeof own->tile.parameter);
}

static void put_label_beside(const job *job, int64_t row, int64_t label, label_tile *own) {
    real score;
    gather_copy(&job->operand[0], row * job->vectors.length + label, 1, &score);
    for (int64_t j = 0; j < own->tile.count; j++)
        own->own[j] = score;
}

/* The sum of the tile that begins with the i-th class. */
static double sum_over_labels(const job *job, const cpu_vector *loss, int64_t row, int64_t i) {
    label_tile own;
    double sum = 0;
    tile_sums of_label;
    int64_t label;
    gather_others(job, row, i, &own);
    for (int64_t k = 0; (label = listed_label(job, row, k)) >= 0; k++) {
        put_label_beside(job, row, label, &own);
        loss->sums(&own.tile, &of_label);
        sum = sum + of_label[0];
    }
    return sum;
}

/* Which of the tile's classes have a slope together with a label: 1, or else 0. Their number is exact in any order. */
static double find_label_slopes(const job *job, const cpu_vector *loss, int64_t row, int64_t label, label_tile *own) {
    const vector_slopes one = {.factor = {1, 1, 1}};
    double count = 0;
    put_label_beside(job, row, label, own);
    loss->gradient[0](&own->tile, &one, own->slope);
#pragma omp simd reduction(+ : count)
    for (int64_t j = 0; j < own->tile.count; j++)
        count += (double)own->slope[j];
    return count;
}

/* A label has as many slopes, of the opposite sign, as there are classes in the row that it has one with: to those in
 * its own tile, which begins with the i-th class, those in others are added. */
static void count_other_tiles(const job *job, const cpu_vector *loss, int64_t row, int64_t i, int64_t count,
                              double *number) {
    label_tile other;
    int64_t label;
    bool any = false;
    for (int64_t k = 0; (label = listed_label(job, row, k)) >= 0; k++)
        any |= label >= i && label < i + count;
    for (int64_t first = 0; any && first < job->vectors.length; first += ORDER_TILE) {
        if (first == i)
            continue;
        gather_others(job, row, first, &other);
        for (int64_t k = 0; (label = listed_label(job, row, k)) >= 0; k++)
            if (label >= i && label < i + count)
                number[label - i] -= find_label_slopes(job, loss, row, label, &other);
    }
}

/* How many slopes each class of the tile has. */
static void count_label_slopes(const job *job, const cpu_vector *loss, int64_t row, int64_t i, label_tile *own,
                               double *number) {
    int64_t label;
    gather_others(job, row, i, own);
    for (int64_t j = 0; j < own->tile.count; j++)
        number[j] = 0;
    for (int64_t k = 0; (label = listed_label(job, row, k)) >= 0; k++) {
        const double count = find_label_slopes(job, loss, row, label, own);
        for (int64_t j = 0; j < own->tile.count; j++)
            number[j] += (double)own->slope[j];
        if (label >= i && label < i + own->tile.count)
            number[label - i] -= count;
    }
    if (job->vectors.length > ORDER_TILE)
        count_other_tiles(job, loss, row, i, own->tile.count, number);
}

/* ------------------------------------------------------------------- tiles -- */

/* Apart from what other losses do, since buffers are large. `end` is one past the last class of the share. */
static __attribute__((noinline)) void sum_lists(const job *job, const cpu_vector *loss, const vector_share *share,
                                                int64_t end) {
    const int64_t row = job->first + share->row;
    order_nodes nodes;
    order_begin_nodes(&nodes, share->level, share->node[0]);
    for (int64_t i = share->first_tile * ORDER_TILE; i < end; i += ORDER_TILE)
        order_push_tile(&nodes, sum_over_labels(job, loss, row, i));
    order_end_node(&nodes);
}

static __attribute__((noinline)) void write_list_slopes(const job *job, const cpu_vector *loss,
                                                        const vector_share *share, int64_t end, double factor) {
    const int64_t row = job->first + share->row;
    const real upstream = upstream_of(job, row);
    _Alignas(64) double number[ORDER_TILE];
    label_tile own;
    for (int64_t i = share->first_tile * ORDER_TILE; i < end && job->gradient[0].data; i += ORDER_TILE) {
        count_label_slopes(job, loss, row, i, &own, number);
        const int count = (int)own.tile.count;
        for (int64_t j = 0; j < count; j++)
            own.slope[j] = canonical((real)(number[j] * factor));
        if (upstream != 1)
            multiply_by_one(own.slope, count, upstream);
        scatter(&job->gradient[0], row * job->vectors.length + i, count, own.slope);
    }
}

#endif
