/* The computation on the CPU: piece by piece through the library's accumulator, so that neither the memory nor the bits
 * depend on the files' sizes. */
#include "pass.h"
#include "stop.h"
#include "tool.h"

#include <stdlib.h>

/* Windows and copies of a piece. Larger pieces are hardly faster, smaller ones cost the rate some per cent. */
#define PIECE_BYTES (64 << 20)

/* ------------------------------------------------------------------ the pieces -- */

static size_t bytes_of_an_element(const task *task) {
    size_t bytes = 0;
    for (int k = 0; k < INPUTS; k++)
        if (task_has(task, k))
            bytes += dtype_bytes(task->input[k].layout.dtype);
    for (int k = 0; k < OUTPUTS; k++)
        if (task_wants(task, k))
            bytes += dtype_bytes(output_dtype(task, k));
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

bool next_piece(const pass *pass, int64_t first, extents *piece) {
    const extents *common = &pass->task->common;
    const int64_t left = common->count - first;
    shape_piece(&pass->pieces, common, left < pass->pieces.elements ? left : pass->pieces.elements, piece);
    return left > 0;
}

void step_forward(pass *pass, uint64_t bytes) {
    pass->done_bytes += bytes;
    progress_update(&pass->progress, pass->done_bytes);
}

onepass_tensor piece_tensor(const void *data, int32_t dtype, const extents *piece) {
    return (onepass_tensor){
        .data = (void *)(uintptr_t)data, .dtype = dtype, .ndim = piece->ndim, .shape = piece->shape};
}

/* --------------------------------------------------------------------- a piece -- */

/* The loss of each element. */
static onepass_status run_elements(const onepass_call *call, const onepass_tensor *losses) {
    onepass_call elements = *call;
    elements.reduction = ONEPASS_NONE;
    elements.divisor = 0;
    elements.value = losses;
    for (int k = 0; k < ONEPASS_MAX_OPERANDS && call->reduction != ONEPASS_NONE; k++)
        elements.gradient[k] = NULL; /* the accumulator has it */
    return onepass_run(&elements);
}

static int write_outputs(pass *pass, int64_t count) {
    task *task = pass->task;
    int status = RIGHT;
    for (int k = 0; k < OUTPUTS && status == RIGHT; k++)
        if (task_wants(task, k))
            status =
                output_write(&task->output[k], pass->output[k], (size_t)count * dtype_bytes(output_dtype(task, k)));
    return status;
}

static int run_piece(pass *pass, int64_t first, const extents *piece) {
    const task *task = pass->task;
    onepass_call call = pass->call;
    onepass_tensor input[INPUTS], output[OUTPUTS];
    for (int k = 0; k < INPUTS; k++)
        if (task_has(task, k) &&
            !source_take(&pass->source[k], first, piece, &pass->pieces, task_threads(task), &input[k]))
            return FAILED;
    for (int k = 0; k < OUTPUTS; k++)
        output[k] = piece_tensor(pass->output[k], output_dtype(task, k), piece);
    point_call(task, input, output, &call);
    onepass_status status = ONEPASS_OK;
    if (pass->accumulator)
        status = onepass_accumulator_add(pass->accumulator, &call, first);
    if (status == ONEPASS_OK && (task_wants(task, LOSSES) || !pass->accumulator))
        status = run_elements(&call, task_wants(task, LOSSES) ? &output[LOSSES] : NULL);
    return status == ONEPASS_OK ? write_outputs(pass, piece->count) : complain_of_library(status);
}

/* ------------------------------------------------------------------- the pass -- */

/* An accumulator does not know the batch of a batchmean: for it that is a mean with a divisor. */
static void choose_call(pass *pass) {
    const extents *common = &pass->task->common;
    pass->call = pass->task->call;
    if (pass->call.reduction != ONEPASS_BATCHMEAN)
        return;
    pass->call.reduction = ONEPASS_MEAN;
    pass->call.divisor = common->ndim > 0 ? (double)common->shape[0] : 1; /* 0: of no elements, as is the count */
}

static int open_pass(pass *pass) {
    task *task = pass->task;
    source *sources[INPUTS];
    int count = 0;
    for (int k = 0; k < INPUTS; k++) {
        if (!task_has(task, k))
            continue;
        source_open(&pass->source[k], &task->input[k], &task->common);
        sources[count++] = &pass->source[k];
    }
    if (!choose_pieces(sources, count, &task->common, most_elements(task), &pass->pieces))
        return FAILED;
    const int64_t most = task->common.count < pass->pieces.elements ? task->common.count : pass->pieces.elements;
    for (int k = 0; k < OUTPUTS && most > 0; k++)
        if (task_wants(task, k) && !(pass->output[k] = malloc((size_t)most * dtype_bytes(output_dtype(task, k)))))
            return complain(FAILED, "no memory for a piece of the outputs");
    return RIGHT;
}

static void close_pass(pass *pass) {
    for (int k = 0; k < INPUTS; k++)
        source_close(&pass->source[k]);
    for (int k = 0; k < OUTPUTS; k++)
        free(pass->output[k]);
    onepass_accumulator_destroy(pass->accumulator);
}

static uint64_t count_bytes(const task *task) {
    uint64_t each = bytes_of_an_element(task);
    for (int k = WEIGHT; k <= MASK && task_sums_first(task); k++)
        if (task_has(task, k))
            each += dtype_bytes(task->input[k].layout.dtype);
    return (uint64_t)task->common.count * each;
}

/* The value is the accumulator's, or that of a mean of no elements. */
static int finish(pass *pass) {
    task *task = pass->task;
    const onepass_tensor value = {.data = &task->value.bits, .dtype = task->value_dtype};
    onepass_accumulator *empty = NULL;
    onepass_status status = ONEPASS_OK;
    task->value.dtype = task->value_dtype;
    if (pass->nothing_takes_part)
        status = onepass_accumulator_begin(&empty, &task->call, 0);
    if (status == ONEPASS_OK)
        status = onepass_accumulator_finish(empty ? empty : pass->accumulator, &value);
    onepass_accumulator_destroy(empty);
    return status == ONEPASS_OK ? RIGHT : complain_of_library(status);
}

static int run_pieces(pass *pass) {
    const uint64_t each = bytes_of_an_element(pass->task);
    extents piece;
    int status = RIGHT;
    if (pass->call.reduction != ONEPASS_NONE) {
        const onepass_status begun =
            onepass_accumulator_begin(&pass->accumulator, &pass->call, pass->task->common.count);
        if (begun != ONEPASS_OK)
            return complain_of_library(begun);
    }
    for (int64_t first = 0; status == RIGHT && next_piece(pass, first, &piece); first += piece.count) {
        status = stop_wanted() ? FAILED : run_piece(pass, first, &piece);
        step_forward(pass, (uint64_t)piece.count * each);
    }
    return status == RIGHT && pass->accumulator ? finish(pass) : status;
}

int compute_on_cpu(task *task) {
    pass pass = {.task = task};
    progress_begin(&pass.progress, count_bytes(task));
    choose_call(&pass);
    int status = open_pass(&pass);
    if (status == RIGHT)
        status = find_divisor(&pass);
    if (status == RIGHT)
        status = run_pieces(&pass);
    progress_end(&pass.progress);
    close_pass(&pass);
    return status;
}
