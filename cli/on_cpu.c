/* The computation on the CPU: piece by piece through the library's accumulator, so that neither the memory nor the bits
 * depend on the files' sizes. */
#include "progress.h"
#include "stop.h"
#include "task.h"
#include "tool.h"

#include <math.h>
#include <stdlib.h>

/* Windows and copies of a piece. Larger pieces are hardly faster, smaller ones cost the rate some per cent. */
#define PIECE_BYTES (64 << 20)

/* A pass over the files, and where it is. */
typedef struct pass {
    task *task;
    pieces pieces;
    source source[INPUTS];
    unsigned char *gradient, *losses; /* of a piece; null: not wanted */
    onepass_accumulator *accumulator; /* null: the reduction is none */
    progress progress;
    uint64_t done_bytes, total_bytes;
} pass;

/* -------------------------------------------------------------------- a piece -- */

static size_t bytes_of_an_element(const task *task) {
    size_t bytes = 0;
    for (int k = 0; k < INPUTS; k++)
        if (task->input[k].file >= 0)
            bytes += dtype_bytes(task->input[k].layout.dtype);
    if (task->gradient.file.name)
        bytes += dtype_bytes(task->gradient_dtype);
    if (task->losses.file.name)
        bytes += dtype_bytes(task->value_dtype);
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

static onepass_tensor dense(const void *data, int32_t dtype, const extents *piece) {
    return (onepass_tensor){
        .data = (void *)(uintptr_t)data, .dtype = dtype, .ndim = piece->ndim, .shape = piece->shape};
}

/* The loss of each element. */
static onepass_status run_elements(const onepass_call *call, const onepass_tensor *losses) {
    onepass_call elements = *call;
    elements.reduction = ONEPASS_NONE;
    elements.divisor = 0;
    elements.value = losses;
    if (call->reduction != ONEPASS_NONE)
        elements.gradient[ONEPASS_PREDICTION] = NULL; /* the accumulator has it */
    return onepass_run(&elements);
}

static int write_outputs(pass *pass, int64_t count) {
    task *task = pass->task;
    int status = RIGHT;
    if (pass->gradient)
        status = output_write(&task->gradient, pass->gradient, (size_t)count * dtype_bytes(task->gradient_dtype));
    if (status == RIGHT && pass->losses)
        status = output_write(&task->losses, pass->losses, (size_t)count * dtype_bytes(task->value_dtype));
    return status;
}

static int run_piece(pass *pass, int64_t first, const extents *piece) {
    const task *task = pass->task;
    onepass_call call = task->call;
    onepass_tensor tensor[INPUTS];
    for (int k = 0; k < INPUTS; k++)
        if (task->input[k].file >= 0 &&
            !source_take(&pass->source[k], first, piece, &pass->pieces, task_threads(task), &tensor[k]))
            return FAILED;
    const onepass_tensor gradient = dense(pass->gradient, task->gradient_dtype, piece);
    const onepass_tensor losses = dense(pass->losses, task->value_dtype, piece);
    call.operand[ONEPASS_PREDICTION] = &tensor[PREDICTIONS];
    call.operand[ONEPASS_TARGET] = &tensor[TARGETS];
    call.weight = task_is_weighted(task) ? &tensor[WEIGHTS] : NULL;
    call.gradient[ONEPASS_PREDICTION] = pass->gradient ? &gradient : NULL;
    onepass_status status = ONEPASS_OK;
    if (pass->accumulator)
        status = onepass_accumulator_add(pass->accumulator, &call, first);
    if (status == ONEPASS_OK && (pass->losses || !pass->accumulator))
        status = run_elements(&call, pass->losses ? &losses : NULL);
    return status == ONEPASS_OK ? write_outputs(pass, piece->count) : complain_of_library(status);
}

/* ------------------------------------------------------------- the weights' sum -- */

/* The weights of a piece, added up in the library's order: they are the weighted losses of predictions that are off
 * by 1. In double if that is what the loss itself is computed in. */
static onepass_status add_weights(onepass_accumulator *accumulator, const onepass_call *call, int32_t compute,
                                  const onepass_tensor *weights, int64_t first, const extents *piece) {
    static const double numbers_f64[] = {0, 1};
    static const float numbers_f32[] = {0, 1};
    static const int64_t same[ONEPASS_MAX_DIMENSIONS] = {0};
    const bool in_double = compute == ONEPASS_F64;
    onepass_tensor zero = dense(in_double ? (const void *)numbers_f64 : numbers_f32, compute, piece);
    onepass_tensor one = dense(in_double ? (const void *)(numbers_f64 + 1) : numbers_f32 + 1, compute, piece);
    one.strides = zero.strides = same;
    onepass_call slice = *call;
    slice.operand[ONEPASS_PREDICTION] = &one;
    slice.operand[ONEPASS_TARGET] = &zero;
    slice.weight = weights;
    return onepass_accumulator_add(accumulator, &slice, first);
}

static int32_t compute_type(const task *task) {
    for (int k = 0; k < INPUTS; k++)
        if (task->input[k].file >= 0 && task->input[k].layout.dtype == ONEPASS_F64)
            return ONEPASS_F64;
    return ONEPASS_F32;
}

/* The next piece from `first` on; false at the end. */
static bool next_piece(const pass *pass, int64_t first, extents *piece) {
    const extents *common = &pass->task->common;
    const int64_t left = common->count - first;
    shape_piece(&pass->pieces, common, left < pass->pieces.elements ? left : pass->pieces.elements, piece);
    return left > 0;
}

/* What the gradient of a weighted mean is divided by; it has to be known before the first piece. */
static int sum_weights(pass *pass, double *sum) {
    const task *task = pass->task;
    const onepass_call call = {
        .size = sizeof call, .loss = "mse", .reduction = ONEPASS_SUM, .threads = task->call.threads};
    const onepass_tensor value = {.data = sum, .dtype = ONEPASS_F64};
    onepass_accumulator *accumulator = NULL;
    extents piece;
    onepass_status status = onepass_accumulator_begin(&accumulator, &call, task->common.count);
    int result = RIGHT;
    for (int64_t first = 0; status == ONEPASS_OK && result == RIGHT && next_piece(pass, first, &piece);
         first += piece.count) {
        onepass_tensor weights;
        if (stop_wanted() ||
            !source_take(&pass->source[WEIGHTS], first, &piece, &pass->pieces, task_threads(task), &weights))
            result = FAILED;
        else
            status = add_weights(accumulator, &call, compute_type(task), &weights, first, &piece);
        pass->done_bytes += (uint64_t)piece.count * dtype_bytes(task->input[WEIGHTS].layout.dtype);
        progress_update(&pass->progress, pass->done_bytes);
    }
    if (status == ONEPASS_OK && result == RIGHT)
        status = onepass_accumulator_finish(accumulator, &value);
    onepass_accumulator_destroy(accumulator);
    return status == ONEPASS_OK ? result : complain_of_library(status);
}

static int find_divisor(pass *pass) {
    task *task = pass->task;
    double sum;
    if (!task_sums_weights(task))
        return RIGHT;
    const int status = sum_weights(pass, &sum);
    if (status != RIGHT)
        return status;
    if (!(sum > 0 && isfinite(sum)))
        return complain(
            WRONG,
            "%s: its weights sum to %g; the gradient of a weighted mean is divided by their sum, so expected "
            "a positive, finite one",
            task->input[WEIGHTS].path, sum);
    task->call.divisor = sum;
    return RIGHT;
}

/* ------------------------------------------------------------------- the pass -- */

static int open_pass(pass *pass) {
    task *task = pass->task;
    source *sources[INPUTS];
    int count = 0;
    for (int k = 0; k < INPUTS; k++) {
        if (task->input[k].file < 0)
            continue;
        source_open(&pass->source[k], &task->input[k], &task->common);
        sources[count++] = &pass->source[k];
    }
    if (!choose_pieces(sources, count, &task->common, most_elements(task), &pass->pieces))
        return FAILED;
    const int64_t most = task->common.count < pass->pieces.elements ? task->common.count : pass->pieces.elements;
    if (most == 0)
        return RIGHT;
    if (task->gradient.file.name)
        pass->gradient = malloc((size_t)most * dtype_bytes(task->gradient_dtype));
    if (task->losses.file.name)
        pass->losses = malloc((size_t)most * dtype_bytes(task->value_dtype));
    const bool lacks = (task->gradient.file.name && !pass->gradient) || (task->losses.file.name && !pass->losses);
    return lacks ? complain(FAILED, "no memory for a piece of the outputs") : RIGHT;
}

static void close_pass(pass *pass) {
    for (int k = 0; k < INPUTS; k++)
        source_close(&pass->source[k]);
    free(pass->gradient);
    free(pass->losses);
    onepass_accumulator_destroy(pass->accumulator);
}

static void count_bytes(pass *pass) {
    task *task = pass->task;
    pass->total_bytes = (uint64_t)task->common.count * bytes_of_an_element(task);
    if (task_sums_weights(task))
        pass->total_bytes += (uint64_t)task->common.count * dtype_bytes(task->input[WEIGHTS].layout.dtype);
}

static int run_pieces(pass *pass) {
    task *task = pass->task;
    const uint64_t each = bytes_of_an_element(task);
    extents piece;
    int status = RIGHT;
    if (task->call.reduction != ONEPASS_NONE) {
        const onepass_status begun = onepass_accumulator_begin(&pass->accumulator, &task->call, task->common.count);
        if (begun != ONEPASS_OK)
            return complain_of_library(begun);
    }
    for (int64_t first = 0; status == RIGHT && next_piece(pass, first, &piece); first += piece.count) {
        status = stop_wanted() ? FAILED : run_piece(pass, first, &piece);
        pass->done_bytes += (uint64_t)piece.count * each;
        progress_update(&pass->progress, pass->done_bytes);
    }
    if (status != RIGHT || !pass->accumulator)
        return status;
    task->value.dtype = task->value_dtype;
    const onepass_tensor value = {.data = &task->value.bits, .dtype = task->value_dtype};
    const onepass_status finished = onepass_accumulator_finish(pass->accumulator, &value);
    return finished == ONEPASS_OK ? RIGHT : complain_of_library(finished);
}

int compute_on_cpu(task *task) {
    pass pass = {.task = task};
    count_bytes(&pass);
    progress_begin(&pass.progress, pass.total_bytes);
    int status = open_pass(&pass);
    if (status == RIGHT)
        status = find_divisor(&pass);
    if (status == RIGHT)
        status = run_pieces(&pass);
    progress_end(&pass.progress);
    close_pass(&pass);
    return status;
}
