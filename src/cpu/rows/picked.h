/*
 * Rows of which the label's number alone counts, side by side. Each of these numbers may be a line of memory of its
 * own, and a core waits for all of a group at once, since nothing else is done between.
 */
#ifndef ONEPASS_CPU_ROWS_PICKED_H
#define ONEPASS_CPU_ROWS_PICKED_H

#include "cpu/rows/block.h"
#include "cpu/rows/single.h"

/* Whether a job's rows are picked from; where there is no class, no row takes part. */
static bool goes_picked(const rows *rows) {
    return rows->job->loss->kind == ROW_PICKED && rows->of->classes > 0;
}

static void predict_picked(const rows *rows, const block_memory *memory, const group *group) {
    real buffer[ORDER_TILE];
    const int64_t size = (int64_t)dtype_size(memory->dtype);
    for (int r = 0; r < group->count; r++) {
        const char *first = memory->first + place_of(memory, r, 0) * size;
        write_predicted(rows, group->first + r, group->takes_part[r] ? predict(rows, first, buffer) : -1);
    }
}

/* Of a gradient's rows, whatever lies together at once. */
static void clear_rows(const block_memory *memory) {
    const int64_t size = (int64_t)dtype_size(memory->dtype), rows = memory->rows, classes = memory->classes;
    if (memory->class == 1 && memory->row == classes) {
        memset(memory->first, 0, (size_t)(rows * classes * size));
    } else if (memory->class == 1) {
        for (int64_t r = 0; r < rows; r++)
            memset(memory->first + place_of(memory, r, 0) * size, 0, (size_t)(classes * size));
    } else if (memory->row == 1) {
        for (int64_t class = 0; class < classes; class ++)
            memset(memory->first + place_of(memory, 0, class) * size, 0, (size_t)(rows * size));
    } else {
        for (int64_t class = 0; class < classes; class ++)
            for (int64_t r = 0; r < rows; r++)
                memset(memory->first + place_of(memory, r, class) * size, 0, (size_t)size);
    }
}

static void write_picked(const rows *rows, const block_memory *memory, const group *group) {
    clear_rows(memory);
    for (int r = 0; r < group->count; r++) {
        if (!group->takes_part[r])
            continue;
        const real own = canonical((real)(group->of_own[r] * (group->weight[r] * rows->per_divisor)));
        const int64_t place = place_of(memory, r, group->label[r]);
        store_scalar(memory->first + place * (int64_t)dtype_size(memory->dtype), memory->dtype,
                     (double)(group->has_upstream ? canonical(own * group->upstream[r]) : own));
    }
}

/* Up to a group of rows, as many as lie in one row of the views; returns how many. */
static int64_t run_picked(const rows *rows, aside_function *apply, int64_t index, int64_t most, group *group,
                          real *terms) {
    const job *job = rows->job;
    const int64_t some = block_length(&job->operand[0], index, least(most, ROWS_ASIDE));
    const int64_t count = block_length(&job->gradient[0], index, some);
    const block_memory logits = memory_of(rows, &job->operand[0], rows->of->class_stride[0], index, count);
    group->classes = rows->of->classes;
    group->first = index;
    group->count = (int)count;
    read_rows(rows, group);
    pick(&logits, group, group->nll);
    EACH_ROW_ASIDE(group->nll[r] = -group->nll[r])
    read_factors(rows, group);
    if (rows->of->predicted.data)
        predict_picked(rows, &logits, group);
    if (apply)
        apply(job->parameter, rows->has_gradient, group);
    else
        apply_aside(job->loss->row, job->parameter, rows->has_gradient, group);
    if (rows->has_gradient) {
        const block_memory slopes = memory_of(rows, &job->gradient[0], rows->of->gradient_stride[0], index, count);
        write_picked(rows, &slopes, group);
    }
    if (group->has_absent)
        hide_absent(false, group);
    finish_values(rows, group, terms);
    return count;
}

#endif
