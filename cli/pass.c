/* A pass over the files, piece by piece: how large a piece is, what it reads and writes, and how far the pass has come.
 */
#include "pass.h"
#include "rows.h"
#include "tool.h"

#include <stdlib.h>

/* Windows and copies of a piece. Larger pieces are hardly faster, smaller ones cost the rate some per cent. */
#define PIECE_BYTES (64 << 20)

size_t bytes_of_an_element(const task *task) {
    size_t bytes = 0;
    for (int k = 0; k < INPUTS; k++)
        if (task_has(task, k))
            bytes += onepass_dtype_size(task->input[k].layout.dtype);
    for (int k = 0; k < OUTPUTS; k++)
        if (task_wants(task, k))
            bytes += onepass_dtype_size(output_dtype(task, k));
    return bytes;
}

/* A power of two, so that a piece is one node of the order of summation. */
static int64_t most_elements(const task *task) {
    const int64_t room = PIECE_BYTES / (int64_t)bytes_of_an_element(task);
    int64_t most = ONEPASS_TILE;
    while (2 * most <= room)
        most *= 2;
    return most;
}

bool next_piece(const pass *pass, int64_t first, onepass_shape *piece) {
    const onepass_shape *common = &pass->task->common;
    const int64_t left = pass->end - first, most = pass->pieces.elements;
    const int64_t room = most ? most - first % most : 0; /* a part's first piece ends where others would */
    shape_piece(&pass->pieces, common, left < room ? left : room, piece);
    return left > 0;
}

void step_forward(pass *pass, uint64_t bytes) {
    pass->done_bytes += bytes;
    progress_update(&pass->progress, pass->done_bytes);
}

onepass_tensor piece_tensor(const void *data, int32_t dtype, const onepass_shape *piece) {
    return (onepass_tensor){
        .data = (void *)(uintptr_t)data, .dtype = dtype, .ndim = piece->ndim, .shape = piece->extent};
}

/* An accumulator does not know the batch of a batchmean: for it that is a mean with a divisor. */
static void choose_call(pass *pass) {
    const onepass_shape *common = &pass->task->common;
    pass->call = pass->task->call;
    if (pass->call.reduction != ONEPASS_BATCHMEAN)
        return;
    pass->call.reduction = ONEPASS_MEAN;
    pass->call.divisor = common->ndim > 0 ? (double)common->extent[0] : 1; /* 0: of no elements, as is the count */
}

static uint64_t count_bytes(const task *task, int64_t count) {
    uint64_t each = bytes_of_an_element(task);
    for (int k = WEIGHT; k <= MASK && task_sums_first(task); k++)
        if (task_has(task, k))
            each += onepass_dtype_size(task->input[k].layout.dtype);
    return (uint64_t)count * each;
}

static int open_elements(pass *pass) {
    task *task = pass->task;
    progress_begin(&pass->progress, count_bytes(task, pass->end - pass->first));
    source *sources[INPUTS];
    int count = 0;
    for (int k = 0; k < INPUTS; k++) {
        if (!task_has(task, k))
            continue;
        source_open(&pass->source[k], &task->input[k], &task->common);
        sources[count++] = &pass->source[k];
    }
    /* A part may begin anywhere, and a piece of rows may not. */
    if (!choose_pieces(sources, count, &task->common, most_elements(task), !task->part.count, &pass->pieces))
        return FAILED;
    const int64_t most = task->common.count < pass->pieces.elements ? task->common.count : pass->pieces.elements;
    for (int k = 0; k < OUTPUTS && most > 0; k++)
        if (task_wants(task, k) &&
            !(pass->output[k] = malloc((size_t)most * onepass_dtype_size(output_dtype(task, k)))))
            return complain(FAILED, "no memory for a piece of the outputs");
    return RIGHT;
}

int open_pass(pass *pass, task *task) {
    *pass = (struct pass){.task = task,
                          .first = part_begin(&task->part, task->common.count),
                          .end = part_end(&task->part, task->common.count)};
    choose_call(pass);
    return task->loss->over_rows ? open_rows(pass) : open_elements(pass);
}

onepass_status add_slice(pass *pass, const onepass_call *call, int64_t first) {
    const onepass_status status = onepass_accumulator_add(pass->accumulator, call, first);
    if (status != ONEPASS_OK || !pass->of_nothing)
        return status;
    onepass_call alone = *call;
    alone.reduction = ONEPASS_MEAN;
    alone.log_sum_exp = alone.predicted = alone.row_state = NULL;
    for (int k = 0; k < ONEPASS_MAX_OPERANDS; k++)
        alone.gradient[k] = NULL;
    return onepass_accumulator_add(pass->of_nothing, &alone, first);
}

int write_outputs(pass *pass, int first, int end, int64_t count) {
    task *task = pass->task;
    int status = RIGHT;
    for (int k = first; k < end && status == RIGHT; k++)
        if (task_wants(task, k))
            status = output_write(&task->output[k], pass->output[k],
                                  (size_t)count * onepass_dtype_size(output_dtype(task, k)));
    return status;
}

void close_pass(pass *pass) {
    progress_end(&pass->progress);
    for (int k = 0; k < INPUTS; k++)
        source_close(&pass->source[k]);
    for (int k = 0; k < OUTPUTS; k++)
        free(pass->output[k]);
    free(pass->row_state);
    onepass_accumulator_destroy(pass->accumulator);
    onepass_accumulator_destroy(pass->of_nothing);
}
