/*
 * Rows side by side, rows along vectors: for rows of few classes, and for those of images, whose classes lie far apart
 * while neighbouring rows lie together. A block of rows is brought into a buffer, group by group of ROWS_ASIDE rows,
 * and all that a row needs is done to a whole group at a time. A row is one tile here.
 */
#ifndef ONEPASS_CPU_ROWS_BLOCK_H
#define ONEPASS_CPU_ROWS_BLOCK_H

#include "cpu/rows/next_block.h"
#include "cpu/rows/stream.h"
#include "cpu/rows/tile.h"
#include "cpu/rows/transpose.h"

/* A buffer of 32 KiB lies in a first-level cache, and 256 rows are a kilobyte of a float image's row at a time: with a
 * quarter of that a step took a twentieth longer on a Neoverse N1. Xeons with AVX-512 have second-level caches of a
 * megabyte and more, and take as much as a stack has room for. */
#if defined(__AVX512F__) && !defined(ONEPASS_REAL_F64)
#define BLOCK_BYTES 36864
#define MOST_ROWS   512
#else
#define BLOCK_BYTES 32768
#define MOST_ROWS   256
#endif
#define BLOCK_NUMBERS (BLOCK_BYTES / (int64_t)sizeof(real))
#define MOST_GROUPS   (MOST_ROWS / ROWS_ASIDE)

/* Of rows that are taken side by side. */
#define MOST_CLASSES (32768 / (int64_t)sizeof(real) / ROWS_ASIDE)

/* Rows of so many classes without gaps are transposed into the buffer; longer ones are faster by themselves. */
#define MOST_TRANSPOSED 256

typedef struct block_buffers {
    _Alignas(64) real z[BLOCK_NUMBERS];          /* [group][class][row]: logits, exponentials, slopes */
    real dense[ROWS_A_SQUARE * MOST_TRANSPOSED]; /* rows without gaps, as reals */
    real u[MOST_CLASSES + ORDER_LANES];          /* class weights; room for the zeros of a line */
    double weights;                              /* their sum */
    bool needs_lse;                              /* of every row */
    aside_function *apply;                       /* the loss, or null: row by row */
    next_block next;                             /* the next block, if it has rows */
    int64_t groups;                              /* of a double-buffered block; 0: there are none */
    int half;                                    /* of z, where the next block is then */
    group group;
} block_buffers;
_Static_assert(sizeof(block_buffers) <= 53248, "a call's other frames take up to 48 KiB of ONEPASS_STACK_SIZE");

/* ------------------------------------------------------------------ memory -- */

/* The rows of a tensor that a block has: from `first` on, `row` apart. */
typedef struct block_memory {
    char *first;
    int32_t dtype;
    int64_t row, class; /* strides */
    int64_t rows, classes;
} block_memory;

static int64_t block_length(const view *view, int64_t row, int64_t most) {
    return view->data ? least(row_length(view, row), most) : most;
}

ALWAYS_INLINE block_memory memory_of(const rows *rows, const view *view, int64_t class_stride, int64_t row,
                                     int64_t count) {
    return (block_memory){.first = address_of(view, row),
                          .dtype = view->dtype,
                          .row = inner_stride(view),
                          .class = class_stride,
                          .rows = count,
                          .classes = rows->of->classes};
}

ALWAYS_INLINE real *group_of(real *z, const block_memory *memory, int64_t row) {
    return z + row / ROWS_ASIDE * memory->classes * ROWS_ASIDE;
}

/* Neighbouring rows that lie together are copied as vectors, others number by number. */
ALWAYS_INLINE void bring_block(load_function *load, const block_memory *given, real *z) {
    const block_memory memory = *given;
    if (memory.row != 1) {
        for (int64_t row = 0; row < memory.rows; row++) {
            real *into = group_of(z, &memory, row) + row % ROWS_ASIDE;
            for (int64_t class = 0; class < memory.classes; class ++)
                into[class * ROWS_ASIDE] = load(memory.first, row * memory.row + class * memory.class);
        }
        return;
    }
    for (int64_t class = 0; class < memory.classes; class ++)
        for (int64_t row = 0; row < memory.rows; row += ROWS_ASIDE) {
            real *into = group_of(z, &memory, row) + class * ROWS_ASIDE;
            const int64_t offset = row + class * memory.class, left = memory.rows - row;
            if (left >= ROWS_ASIDE)
                EACH_ROW_ASIDE(into[r] = load(memory.first, offset + r))
            for (int64_t r = 0; left < ROWS_ASIDE && r < left; r++)
                into[r] = load(memory.first, offset + r);
        }
}

static void bring_any(const block_memory *memory, real *z) {
    switch (memory->dtype) {
    case ONEPASS_F16:
        bring_block(load_f16, memory, z);
        break;
    case ONEPASS_BF16:
        bring_block(load_bf16, memory, z);
        break;
    case ONEPASS_F32:
        bring_block(load_f32, memory, z);
        break;
    default:
        bring_block(load_f64, memory, z);
    }
}

/* Of one whole group. */
static block_memory memory_of_group(const block_memory *memory, int64_t row) {
    block_memory group = *memory;
    group.first += row * memory->row * (int64_t)dtype_size(memory->dtype);
    group.rows = ROWS_ASIDE;
    return group;
}

/* Few classes, and rows one behind the other without gaps: these are turned. */
static bool is_dense(const block_memory *memory) {
    return memory->class == 1 && memory->row == memory->classes && memory->classes <= MOST_TRANSPOSED;
}

static view view_of_dense(const block_memory *memory) {
    return (view){memory->first, memory->dtype, 1, {memory->rows * memory->classes}, {1}};
}

/* Whether groups are turned one at a time, when their turn comes or one before it. */
static bool turns_groups(const block_memory *memory) {
    return TURNS_GROUPS && is_dense(memory) && memory->dtype == REAL_DTYPE && memory->classes >= 4 &&
           memory->rows % ROWS_ASIDE == 0;
}

static void bring(const block_memory *memory, real *z, real *dense) {
    if (!is_dense(memory)) {
        bring_any(memory, z);
        return;
    }
    const view view = view_of_dense(memory);
    for (int64_t row = 0; row < memory->rows; row += ROWS_ASIDE) {
        const int64_t count = least(memory->rows - row, ROWS_ASIDE), first = row * memory->classes;
        real *group = group_of(z, memory, row);
        if (memory->dtype == REAL_DTYPE)
            turn_rows_aside((const real *)(const void *)memory->first + first, memory->classes, count, group);
        for (int64_t r = 0; memory->dtype != REAL_DTYPE && r < count; r += ROWS_A_SQUARE) {
            const int64_t some = least(count - r, ROWS_A_SQUARE);
            gather_copy(&view, first + r * memory->classes, (int)(some * memory->classes), dense);
            turn_rows_aside(dense, memory->classes, some, group + r);
        }
    }
}

/* Groups that are turned before the one before them is computed have two places by turns. */
ALWAYS_INLINE real *place_ahead(const block_memory *memory, int64_t row, real *z) {
    return group_of(z, memory, row % (2 * ROWS_ASIDE));
}

ALWAYS_INLINE void turn_ahead(const block_memory *memory, int64_t row, real *z) {
    const real *rows = (const real *)(const void *)memory->first + row * memory->classes;
    turn_rows_aside(rows, memory->classes, ROWS_ASIDE, place_ahead(memory, row, z));
}

ALWAYS_INLINE void take_block(store_function *store, const block_memory *given, real *z) {
    const block_memory memory = *given;
    if (memory.row != 1) {
        for (int64_t row = 0; row < memory.rows; row++) {
            const real *from = group_of(z, &memory, row) + row % ROWS_ASIDE;
            for (int64_t class = 0; class < memory.classes; class ++)
                store(memory.first, row * memory.row + class * memory.class, from[class * ROWS_ASIDE]);
        }
        return;
    }
    for (int64_t class = 0; class < memory.classes; class ++)
        for (int64_t row = 0; row < memory.rows; row += ROWS_ASIDE) {
            const real *from = group_of(z, &memory, row) + class * ROWS_ASIDE;
            const int64_t offset = row + class * memory.class, left = memory.rows - row;
            if (left >= ROWS_ASIDE)
                EACH_ROW_ASIDE(store(memory.first, offset + r, from[r]))
            for (int64_t r = 0; left < ROWS_ASIDE && r < left; r++)
                store(memory.first, offset + r, from[r]);
        }
}

static void take_any(const block_memory *memory, real *z) {
    switch (memory->dtype) {
    case ONEPASS_F16:
        take_block(store_f16, memory, z);
        break;
    case ONEPASS_BF16:
        take_block(store_bf16, memory, z);
        break;
    case ONEPASS_F32:
        take_block(store_f32, memory, z);
        break;
    default:
        take_block(store_f64, memory, z);
    }
}

/* Whether a block of an image's rows is nothing but whole cache lines. */
static bool can_stream(const block_memory *memory) {
    return memory->row == 1 && memory->dtype == REAL_DTYPE && memory->rows % ROWS_ASIDE == 0 &&
           (uintptr_t)memory->first % CACHE_LINE == 0 && memory->class * (int64_t)sizeof(real) % CACHE_LINE == 0;
}

static void stream_block(const block_memory *given, real *z) {
    const block_memory memory = *given;
    real *into = (real *)(void *)memory.first;
    for (int64_t class = 0; class < memory.classes; class ++)
        for (int64_t row = 0; row < memory.rows; row += ROWS_ASIDE)
            stream_rows(group_of(z, &memory, row) + class * ROWS_ASIDE, into + class * memory.class + row);
}

static void take(const block_memory *memory, real *z, real *dense) {
    if (!is_dense(memory)) {
        take_any(memory, z);
        return;
    }
    const view view = view_of_dense(memory);
    for (int64_t row = 0; row < memory->rows; row += ROWS_ASIDE) {
        const int64_t count = least(memory->rows - row, ROWS_ASIDE), first = row * memory->classes;
        const real *group = group_of(z, memory, row);
        if (memory->dtype == REAL_DTYPE)
            turn_rows_back(group, memory->classes, count, (real *)(void *)memory->first + first);
        for (int64_t r = 0; memory->dtype != REAL_DTYPE && r < count; r += ROWS_A_SQUARE) {
            const int64_t some = least(count - r, ROWS_A_SQUARE);
            turn_rows_back(group + r, memory->classes, some, dense);
            scatter(&view, first + r * memory->classes, (int)(some * memory->classes), dense);
        }
    }
}

/* Of an image's classes: a first-level cache has few places for the lines of classes that are a power of two apart, and
 * what else is there was pushed out (a step of 2 images of 21 classes and 500 x 500 rows took an eighth longer on a
 * Xeon). */
#define MOST_PREFETCHED 8

/* The lines of a group of an image's rows, one or a few in every class: more streams than hardware follows. A group at
 * a time, since a core has room for no more lines that are on their way. */
static void prefetch_group(const block_memory *memory, int64_t row, bool to_write) {
    const int64_t size = (int64_t)dtype_size(memory->dtype);
    const uintptr_t first = (uintptr_t)memory->first + (uintptr_t)(row * size);
    const int64_t classes = least(memory->classes, MOST_PREFETCHED);
    for (int64_t class = 0; CAN_PREFETCH && memory->row == 1 && class < classes; class ++)
        for (int64_t byte = 0; byte < ROWS_ASIDE * size; byte += CACHE_LINE) {
            const void *line = (const void *)(first + (uintptr_t)(class * memory->class * size + byte));
            if (to_write)
                __builtin_prefetch(line, 1);
            else
                __builtin_prefetch(line);
        }
    if (TURNS_AHEAD && to_write && is_dense(memory)) {
        const uintptr_t from = (uintptr_t)memory->first + (uintptr_t)(row * memory->classes * size);
        for (int64_t byte = 0; byte < ROWS_ASIDE * memory->classes * size; byte += CACHE_LINE)
            __builtin_prefetch((const void *)(from + (uintptr_t)byte), 1);
    }
}

/* Of rows that are turned a group ahead, as many lines as a group has, some behind the next one: hardware asks for what
 * follows, but too late. */
#define BYTES_BEHIND 4096

static void prefetch_rows(const block_memory *memory, int64_t row) {
    const int64_t bytes = ROWS_ASIDE * memory->classes * (int64_t)sizeof(real);
    const uintptr_t from = (uintptr_t)memory->first + (uintptr_t)(row / ROWS_ASIDE * bytes + bytes + BYTES_BEHIND);
    for (int64_t byte = 0; byte < bytes; byte += CACHE_LINE)
        __builtin_prefetch((const void *)(from + (uintptr_t)byte));
}

/* ----------------------------------------------------------------- a group -- */

/* Class indices of neighbouring rows. */
static void read_labels(const view *view, int64_t first, int count, int64_t *label) {
    if (dense_length(view, first) < count) {
        for (int r = 0; r < count; r++)
            label[r] = load_index(address_of(view, first + r), view->dtype, 0);
        return;
    }
    const void *data = address_of(view, first);
    if (view->dtype == ONEPASS_I64 && count == ROWS_ASIDE) { /* without a call */
        memcpy(label, data, ROWS_ASIDE * sizeof *label);
        return;
    }
    for (int r = 0; r < count; r++)
        label[r] = load_index(data, view->dtype, r);
}

/* Rows that take no part have the label 0, which nobody looks at. */
static __attribute__((noinline)) void mark_absent(int64_t ignored, group *group) {
#pragma omp simd
    for (int64_t r = 0; r < ROWS_ASIDE; r++) {
        const int64_t label = group->label[r], part = label != ignored;
        group->takes_part[r] = part;
        group->label[r] = label & -part;
    }
}

/* Who takes part: nearly always all do. Rows that are not there have the label 0, too. */
ALWAYS_INLINE void read_rows(const rows *rows, group *group) {
    const view *mask = &rows->job->mask;
    const int64_t ignored = rows->of->ignore_index;
    int64_t absent = 0;
    for (int r = group->count; r < ROWS_ASIDE; r++)
        group->label[r] = 0;
    read_labels(&rows->job->operand[1], group->first, group->count, group->label);
    for (int r = 0; mask->data && r < group->count; r++)
        group->label[r] = element_of(mask, group->first + r, 1) != 0 ? group->label[r] : ignored;
#pragma omp simd reduction(+ : absent)
    for (int64_t r = 0; r < ROWS_ASIDE; r++)
        absent += group->label[r] == ignored;
    if (absent || group->has_absent) /* or one did not in the group before */
        mark_absent(ignored, group);
    group->has_absent = absent;
    EACH_ROW_ASIDE(group->own_place[r] = (int32_t)(group->label[r] * ROWS_ASIDE + r))
}

/* Before the first of a job's groups. Rows that are not there are computed with, too. */
static void begin_groups(group *group) {
    memset(group, 0, sizeof *group);
    EACH_ROW_ASIDE(group->takes_part[r] = true; group->class_weight[r] = 1; group->weight[r] = 1;
                   group->upstream[r] = 1)
}

/* Where a row's class is, counted from the first row's first. */
ALWAYS_INLINE int64_t place_of(const block_memory *memory, int64_t r, int64_t class) {
    return r * memory->row + class * memory->class;
}

ALWAYS_INLINE void pick_numbers(load_function *load, const block_memory *given, const group *group, double *into) {
    const block_memory memory = *given;
    for (int64_t r = 0; r < memory.rows; r++)
        into[r] = group->takes_part[r] ? (double)load(memory.first, place_of(&memory, r, group->label[r])) : 1;
}

/* The number of each row's label, 1 for rows that take no part. */
static void pick(const block_memory *memory, const group *group, double *into) {
    switch (memory->dtype) {
    case ONEPASS_F16:
        pick_numbers(load_f16, memory, group, into);
        break;
    case ONEPASS_BF16:
        pick_numbers(load_bf16, memory, group, into);
        break;
    case ONEPASS_F32:
        pick_numbers(load_f32, memory, group, into);
        break;
    default:
        pick_numbers(load_f64, memory, group, into);
    }
}

/* One for all rows, of the classes that are here. */
static block_memory memory_of_weights(const job *job, int64_t count) {
    const view *weight = &job->operand[2];
    const int64_t first = job->rows.shard.first_class * job->rows.class_stride[2] * (int64_t)dtype_size(weight->dtype);
    return (block_memory){.first = (char *)((uintptr_t)weight->data - (uintptr_t)first),
                          .dtype = weight->dtype,
                          .class = job->rows.class_stride[2],
                          .rows = count};
}

/* Weights and upstream gradients, where there are any. */
ALWAYS_INLINE void read_factors(const rows *rows, group *group) {
    const job *job = rows->job;
    if (job->operand[2].data) {
        const block_memory weights = memory_of_weights(job, group->count);
        pick(&weights, group, group->class_weight);
    }
    for (int r = 0; job->weight.data && r < group->count; r++)
        group->weight[r] = group->takes_part[r] ? element_of(&job->weight, group->first + r, 1) : 1;
    if (!job->upstream.data && job->expected_upstream == 1)
        return;
    group->has_upstream = false;
    for (int r = 0; r < group->count; r++) {
        group->upstream[r] = group->takes_part[r] ? upstream_of(job, group->first + r) : 1;
        group->has_upstream |= group->upstream[r] != 1;
    }
}

/* What rows count for in a mean, group by group. */
static void weigh_rows(const rows *rows, int64_t first, int64_t count, real *term) {
    group group;
    begin_groups(&group);
    for (int64_t done = 0; done < count; done += ROWS_ASIDE) {
        group.first = first + done;
        group.count = (int)least(count - done, ROWS_ASIDE);
        read_rows(rows, &group);
        read_factors(rows, &group);
        for (int r = 0; r < group.count; r++) {
            const double weight = rows->job->over_elements ? 1 : group.class_weight[r] * group.weight[r];
            term[done + r] = group.takes_part[r] ? canonical((real)weight) : 0;
        }
    }
}

static void recall_states(const rows *rows, group *group) {
    for (int r = 0; r < group->count; r++) {
        softmax_row state;
        memcpy(&state, rows->of->state + (group->first + r) * ONEPASS_ROW_STATE, sizeof state);
        set_state(group, r, state);
    }
}

/* From the group's logits, whose largest are known, to its exponentials and what is known of its rows. */
static void sum_group(const rows *rows, const block_buffers *buffers, group *group) {
    const real *u = rows->weighs ? buffers->u : NULL;
    if (u && !rows->reads_state)
        sum_weighted_aside(group, u, buffers->weights);
    exponentiate_aside(&rows->softmax, &rows->of->scale, group);
    if (rows->reads_state) {
        recall_states(rows, group);
        return;
    }
    take_own_exponentials(group);
    sum_exponentials_aside(group);
    if (buffers->needs_lse)
        finish_sums(&rows->softmax, &rows->of->scale, group);
}

/* The class of the largest number, the first of equals, or of the first NaN. */
static int64_t predict_aside(const group *group, int r) {
    int64_t found = 0;
    for (int64_t class = 0; class < group->classes; class ++) {
        const real z = group->z[class * ROWS_ASIDE + r];
        if (z != z)
            return class;
        if (z > group->z[found * ROWS_ASIDE + r])
            found = class;
    }
    return found;
}

/* The label's logit, from where it came: no loop over a group's rows has a use for it. */
static real label_logit_of(const rows *rows, const group *group, int r) {
    const view *logits = &rows->job->operand[0];
    const int64_t offset = group->label[r] * rows->of->class_stride[0] * (int64_t)dtype_size(logits->dtype);
    return (real)load_scalar((const char *)address_of(logits, group->first + r) + offset, logits->dtype);
}

/* A row that the loops over the group do not serve. */
static void finish_row(const rows *rows, const aside_scale *scale, group *group, int r) {
    row_slopes slopes = {WIDE_NAN, WIDE_NAN, WIDE_NAN, WIDE_NAN};
    row_facts facts = facts_aside(group, r);
    facts.label_logit = label_logit_of(rows, group, r);
    if (facts.row.largest - facts.row.largest == 0) {
        const row_sums sums = rows->reads_state ? row_sums_of_state(&rows->of->scale, &facts, 0)
                                                : row_sums_of(&rows->softmax, &rows->of->scale, &facts);
        rows->job->loss->row(&sums, rows->job->parameter, &slopes);
    } else {
        facts.row = no_softmax();
    }
    set_state(group, r, facts.row);
    group->value[r] = slopes.value * group->weight[r];
    keep_factors(scale, &slopes, row_per_sum(&facts.row), r, group);
}

static void finish_unusual(const rows *rows, const aside_scale *scale, group *group) {
    for (int r = 0; r < group->count; r++)
        if (group->takes_part[r] && is_unusual(group, rows->has_gradient, r))
            finish_row(rows, scale, group, r);
}

/* Whether a row's state, or some of it, was asked for. */
static bool gives_states(const rows *rows) {
    return rows->of->log_sum_exp.data || rows->of->state;
}

/* What was asked for a row, and what the rows add to the sum. Values alone are copied where they lie as reals. */
ALWAYS_INLINE void finish_values(const rows *rows, const group *group, real *terms) {
    const view *value = &rows->job->value;
    const bool is_alone = value->data && !gives_states(rows);
    const size_t bytes = (size_t)group->count * sizeof *terms;
    real rounded[ROWS_ASIDE];
    EACH_ROW_ASIDE(rounded[r] = canonical((real)group->value[r]))
    memcpy(terms, rounded, bytes);
    real *values = rows->has_outputs && is_alone ? direct(value, group->first, group->count) : NULL;
    if (values)
        memcpy(values, rounded, bytes);
    for (int r = 0; rows->has_outputs && !values && r < group->count; r++) {
        const softmax_row state = group->takes_part[r] ? state_aside(group, r) : (softmax_row){0};
        write_outputs(rows, group->first + r, group->value[r], &state);
    }
}

/* Values of the group's rows, what comes with them, and what they add to the sum. */
static void finish_rows(const rows *rows, aside_function *apply, group *group, real *terms) {
    const aside_scale scale = {rows->per_divisor, rows->of->scale.per_temperature};
    const bool has_slopes = rows->has_gradient;
    finish_states(group);
    if (has_slopes)
        finish_shares(group);
    if (apply)
        apply(rows->job->parameter, has_slopes, group);
    else
        apply_aside(rows->job->loss->row, rows->job->parameter, has_slopes, group);
    if (has_slopes)
        keep_all_factors(&scale, group);
    const bool unusual = has_unusual(group, has_slopes);
    if (unusual)
        finish_unusual(rows, &scale, group);
    if (group->has_absent)
        hide_absent(has_slopes, group);
    finish_values(rows, group, terms);
    if (unusual) /* the next group's rows have none of these by now */
        EACH_ROW_ASIDE(group->lse[r] = group->weights[r] = 0)
}

/* Meanwhile classes of the next block are prefetched, up to `end_of_next`. */
static void run_group(const rows *rows, block_buffers *buffers, bool is_turned, int64_t end_of_next, group *group,
                      real *terms) {
    prefetch_next_block(&buffers->next, end_of_next, 1);
    read_rows(rows, group);
    read_factors(rows, group);
    for (int r = 0; rows->of->predicted.data && r < group->count; r++)
        write_predicted(rows, group->first + r, group->takes_part[r] ? predict_aside(group, r) : -1);
    if (!is_turned)
        find_largest(&rows->softmax, group);
    prefetch_next_block(&buffers->next, end_of_next, 2);
    sum_group(rows, buffers, group);
    prefetch_next_block(&buffers->next, end_of_next, 3);
    finish_rows(rows, buffers->apply, group, terms);
    prefetch_next_block(&buffers->next, end_of_next, 4);
    if (rows->has_gradient)
        write_slopes_aside(group, rows->weighs ? buffers->u : NULL);
}

/* -------------------------------------------------------------------- rows -- */

/* Whether a job's rows are taken side by side. */
static bool goes_aside(const rows *rows) {
    const job *job = rows->job;
    const int64_t classes = rows->of->classes;
    const bool is_short = classes <= MOST_TRANSPOSED;
    const bool lies_aside = rows->of->class_stride[0] != 1 && inner_stride(&job->operand[0]) == 1;
    return job->loss->kind == ROW_LABEL && rows->of->shard.step == SHARD_NONE && rows->softmax.softcap == 0 &&
           classes > 0 && classes <= MOST_CLASSES && (is_short || lies_aside);
}

/* Whether the logarithm of the sum changes what a loss makes of a row, but for the sign of a slope of 0. One so large
 * shows the least factor of its square. */
static bool looks_at_lse(const job *job) {
    row_slopes slopes[2];
    row_sums sums = {.nll = 1, .own = 0.25, .others = 0.75, .weight = 1, .weighted = 1, .weights = 1, .classes = 4};
    for (int i = 0; i < 2; i++) {
        sums.lse = i ? 0x1p512 : -1;
        job->loss->row(&sums, job->parameter, &slopes[i]);
    }
    return memcmp(&slopes[0], &slopes[1], sizeof slopes[0]) != 0;
}

/* Each block of a large image has half of the buffer, but for the first of some, which nobody has prefetched. */
#define HALF_NUMBERS (BLOCK_NUMBERS / 2 / ROWS_ASIDE * ROWS_ASIDE)
#define FIRST_GROUPS 2

/* How many groups such a block has; 0 without a double buffer. A first-level cache has two blocks of few groups; blocks
 * of fewer would be too small. Lines of fewer classes are prefetched in any case; images of a few hundred rows were no
 * quicker, nor gradients that a cache may keep. */
#define LEAST_GROUPS_AHEAD 3
#define MOST_GROUPS_AHEAD  4
#define LEAST_IMAGE_ROWS   4096

static int64_t double_buffered_groups(const rows *rows) {
    const view *logits = &rows->job->operand[0];
    const int64_t classes = rows->of->classes, groups = least(HALF_NUMBERS / (classes * ROWS_ASIDE), MOST_GROUPS_AHEAD);
    const bool is_image = inner_stride(logits) == 1 && rows->of->class_stride[0] != 1;
    return HAS_DOUBLE_BUFFER && is_image && logits->dtype == REAL_DTYPE && classes > MOST_PREFETCHED &&
                   groups >= LEAST_GROUPS_AHEAD && row_length(logits, 0) >= LEAST_IMAGE_ROWS &&
                   (!rows->has_gradient || has_large_gradient(rows->job))
               ? groups
               : 0;
}

static void prepare_block(const rows *rows, aside_function *apply, block_buffers *buffers) {
    const int classes = (int)rows->of->classes;
    begin_groups(&buffers->group);
    memset(&buffers->next, 0, sizeof buffers->next);
    buffers->groups = double_buffered_groups(rows);
    buffers->half = 0;
    buffers->apply = apply;
    buffers->weights = 0;
    buffers->needs_lse = rows->weighs || gives_states(rows) || looks_at_lse(rows->job);
    if (!rows->weighs)
        return;
    gather_class_weights(rows, 0, classes, buffers->u);
    buffers->weights = sum_of_weights(buffers->u, classes, buffers->z);
}

/* Rows from `index` on that lie in one row of the views. */
static int64_t rows_together(const job *job, int64_t index, int64_t most) {
    return block_length(&job->gradient[0], index, block_length(&job->operand[0], index, most));
}

/* ----------------------------------------------------------- double buffer -- */

/* The block's half, with its logits in it. Those of the next rows, if they make whole groups, will be in the other. */
static real *begin_double_buffer(const rows *rows, const block_memory *logits, int64_t index, int64_t most,
                                 block_buffers *buffers) {
    const int64_t count = logits->rows;
    const int own = buffers->next.rows ? !buffers->half : 0;
    real *z = buffers->z + own * HALF_NUMBERS;
    if (!buffers->next.rows)
        bring(logits, z, buffers->dense);
    buffers->half = own;
    buffers->next = (next_block){0};
    const int64_t count_of_next =
        most > count ? rows_together(rows->job, index + count, least(most - count, buffers->groups * ROWS_ASIDE)) : 0;
    if (count_of_next > 0 && count_of_next % ROWS_ASIDE == 0)
        buffers->next =
            (next_block){.from = (const real *)(const void *)address_of(&rows->job->operand[0], index + count),
                         .apart = logits->class,
                         .rows = count_of_next,
                         .classes = logits->classes,
                         .into = buffers->z + !own * HALF_NUMBERS};
    return z;
}

/* -------------------------------------------------------------------- blocks -- */

static int64_t groups_of_block(const rows *rows, const block_buffers *buffers) {
    if (buffers->groups > 0)
        return buffers->next.rows ? buffers->groups : FIRST_GROUPS;
    return least(BLOCK_NUMBERS / (rows->of->classes * ROWS_ASIDE), MOST_GROUPS);
}

/* Up to a block of rows, as many as lie in one row of the views; returns how many. */
static int64_t run_block(const rows *rows, int64_t index, int64_t most, block_buffers *buffers, real *terms) {
    const job *job = rows->job;
    const int64_t classes = rows->of->classes;
    const int64_t count = rows_together(job, index, least(most, groups_of_block(rows, buffers) * ROWS_ASIDE));
    const block_memory logits = memory_of(rows, &job->operand[0], rows->of->class_stride[0], index, count);
    block_memory slopes = {0};
    if (rows->has_gradient)
        slopes = memory_of(rows, &job->gradient[0], rows->of->gradient_stride[0], index, count);
    if (count % ROWS_ASIDE)
        memset(group_of(buffers->z, &logits, count), 0, (size_t)(classes * ROWS_ASIDE) * sizeof(real));
    const bool turns = turns_groups(&logits), ahead = turns && TURNS_AHEAD;
    const bool streams = !turns && is_streamed(job) && can_stream(&slopes), is_double = buffers->groups > 0;
    real *z = buffers->z;
    if (is_double)
        z = begin_double_buffer(rows, &logits, index, most, buffers);
    else if (!turns)
        bring(&logits, z, buffers->dense);
    if (ahead)
        turn_ahead(&logits, 0, z);
    const int64_t each =
        buffers->next.rows ? (classes * ROWS_ASIDE + count - 1) / count : 0; /* classes of it that each group copies */
    int64_t end_of_next = 0;
    for (int64_t row = 0; row < count; row += ROWS_ASIDE) {
        group *group = &buffers->group;
        /* Values alone are all computed in one place, which a first-level cache keeps. */
        group->z = turns && !rows->has_gradient ? z : group_of(z, &logits, row);
        if (ahead)
            group->z = place_ahead(&logits, row, z);
        group->classes = classes;
        group->first = index + row;
        group->count = (int)least(count - row, ROWS_ASIDE);
        if (ahead && row + ROWS_ASIDE < count)
            turn_ahead(&logits, row + ROWS_ASIDE, z);
        else if (turns && !ahead)
            turn_group(&rows->softmax, (const real *)(const void *)logits.first + row * classes, group);
        if (ahead)
            prefetch_rows(&logits, row);
        if (!is_double)
            prefetch_group(&logits, count + row, false); /* of the next block */
        if (rows->has_gradient && !streams)
            prefetch_group(&slopes, row, true);
        end_of_next = least(end_of_next + each, classes);
        run_group(rows, buffers, turns && !ahead, end_of_next, group, terms + row);
        copy_next_block(&buffers->next, end_of_next);
        if (ahead && rows->has_gradient) {
            const block_memory own = memory_of_group(&slopes, row);
            take(&own, group->z, buffers->dense);
        }
    }
    if (streams)
        stream_block(&slopes, z);
    else if (rows->has_gradient && !ahead)
        take(&slopes, z, buffers->dense);
    return count;
}

#endif
