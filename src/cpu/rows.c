/*
 * The CPU engine's entries for losses over rows. Compiled once for each instruction set and each compute type;
 * ONEPASS_VARIANT (avx2_f32) ends the names of the functions that come out.
 *
 * -ffp-contract=off is part of the meaning: a fused multiply-add has other bits.
 */
#include "cpu/rows.h"
#include "cpu/vectors.h"

#include "cpu/rows/along.h"
#include "cpu/rows/picked.h"

#define ROWS    PASTE(onepass_cpu_rows_, ONEPASS_VARIANT)
#define VECTORS PASTE(onepass_cpu_vectors_, ONEPASS_VARIANT)
#define TERMS   PASTE(onepass_cpu_terms_, ONEPASS_VARIANT)
#define LABELS  PASTE(onepass_cpu_labels_, ONEPASS_VARIANT)
#define ENTRY   PASTE(onepass_cpu_run_rows_, ONEPASS_VARIANT)
#define SHARE   PASTE(onepass_cpu_share_, ONEPASS_VARIANT)
ONEPASS_INTERNAL cpu_rows_function ROWS;
ONEPASS_INTERNAL cpu_vectors_function VECTORS;
ONEPASS_INTERNAL cpu_terms_function TERMS;
ONEPASS_INTERNAL cpu_labels_function LABELS;
ONEPASS_INTERNAL cpu_run_function ENTRY;
ONEPASS_INTERNAL cpu_share_function SHARE;

/* The losses, so that the loop over a group's rows is vectors for each of them. */
#define ROW_LOSS(of, ...)                                                                                              \
    ONEPASS_INTERNAL extern const loss onepass_loss_##of;                                                              \
    static void PASTE(of##_aside_, ONEPASS_VARIANT)(const double *parameter, bool has_slopes, group *group) {          \
        apply_aside(of##_row, parameter, has_slopes, group);                                                           \
    }
#include "row_losses.def"
#undef ROW_LOSS

/* Null for a loss that is not the library's own. */
#define ROW_LOSS(of, ...)                                                                                              \
    if (job->loss == &onepass_loss_##of)                                                                               \
        return PASTE(of##_aside_, ONEPASS_VARIANT);
static aside_function *aside_function_of(const job *job) {
#include "row_losses.def"
    return NULL;
}
#undef ROW_LOSS

/* Buffers are large, and a stack has room for those of one way at a time. */
static __attribute__((noinline)) void run_singles(const rows *rows, int64_t first, int64_t count, real *term) {
    single_buffers buffers;
    for (int64_t i = 0; i < count; i++)
        term[i] = run_single(rows, first + i, &buffers);
}

static __attribute__((noinline)) void leave_rows(const rows *rows, int64_t first, int64_t count, real *term) {
    single_buffers buffers;
    for (int64_t i = 0; i < count; i++) {
        leave_tiles(rows, first + i, &buffers);
        term[i] = 0;
    }
}

static __attribute__((noinline)) void run_blocks(const rows *rows, int64_t first, int64_t count, real *term) {
    block_buffers buffers;
    prepare_block(rows, aside_function_of(rows->job), &buffers);
    for (int64_t done = 0; done < count;)
        done += run_block(rows, first + done, count - done, &buffers, term + done);
    if (is_streamed(rows->job))
        end_streaming();
}

static __attribute__((noinline)) void run_rows_along(const rows *rows, int64_t first, int64_t count, real *term) {
    along along;
    along_buffers buffers;
    prepare_along(rows, aside_function_of(rows->job), &along, &buffers);
    for (int64_t done = 0; done < count;)
        done += run_along(&along, first + done, count - done, &buffers, term + done);
}

static __attribute__((noinline)) void run_picks(const rows *rows, int64_t first, int64_t count, real *term) {
    aside_function *apply = aside_function_of(rows->job);
    group group;
    begin_groups(&group);
    for (int64_t done = 0; done < count;)
        done += run_picked(rows, apply, first + done, count - done, &group, term + done);
}

void ROWS(const job *job, int64_t first, int64_t count, void *terms) {
    real *term = terms;
    if (job->family == FAMILY_VECTORS) {
        VECTORS(job, first, count, terms);
        return;
    }
    const rows rows = rows_of(job);
    if (job->family == FAMILY_ROW_WEIGHTS)
        weigh_rows(&rows, job->first + first, count, term);
    else if (job->rows.shard.step == SHARD_SUMS)
        leave_rows(&rows, job->first + first, count, term);
    else if (goes_picked(&rows))
        run_picks(&rows, job->first + first, count, term);
    else if (goes_along(&rows))
        run_rows_along(&rows, job->first + first, count, term);
    else if (goes_aside(&rows))
        run_blocks(&rows, job->first + first, count, term);
    else
        run_singles(&rows, job->first + first, count, term);
}

/* A row that takes no part has nothing left to do after the first step. */
typedef struct shared_single {
    single_row single;
    bool is_left;
} shared_single;
_Static_assert(sizeof(shared_single) <= SHARED_ROW_BYTES, "a shared row has room");

void SHARE(const job *job, int64_t row, share_step step, int64_t first_tile, int64_t end_tile, shared_row *shared,
           void *term) {
    tile_buffers buffers;
    shared_single *own = (void *)shared->bytes;
    const rows rows = rows_of(job);
    if (step == SHARE_BEGIN) {
        *(real *)term = 0;
        own->is_left = begin_single(&rows, job->first + row, &own->single, &buffers);
    } else if (step == SHARE_SUMS && own->is_left && own->single.row.needs_sums) {
        sum_tiles(&rows, &own->single, first_tile, end_tile, &buffers);
    } else if (step == SHARE_VALUE && own->is_left) {
        *(real *)term = finish_single(&rows, &own->single, &buffers);
    } else if (step == SHARE_GRADIENTS && own->is_left && own->single.row.has_slopes) {
        write_gradients(&rows, &own->single, first_tile, end_tile, &buffers);
    }
}

double TERMS(void *terms, int64_t count) {
    double sum;
    stored_sum(terms, (int)count, &sum);
    return sum;
}

/* Two comparisons a label, each of which is added as it is: whether one is wrong is asked for all of them together. */
void LABELS(const int64_t *label, int64_t count, const label_range *range, label_scan *scan) {
    const uint64_t classes = range->classes;
    const int64_t ignore_index = range->ignore_index;
    int64_t good = 0, ignored = 0;
#pragma omp simd reduction(+ : good, ignored)
    for (int64_t i = 0; i < count; i++) {
        ignored += label[i] == ignore_index;
        good += (uint64_t)label[i] < classes;
    }
    scan->good += good;
    scan->ignored += ignored;
}

/* Tiles of rows, as run.c has tiles of elements. */
void ENTRY(const job *job, const cpu_start *start, int64_t first_tile, int64_t tile_count, int level, double *sums) {
    (void)start;
    _Alignas(64) real own[ORDER_TILE];
    real *terms = job->terms ? job->terms : own;
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
