/* The computation on the CPU: piece by piece through the library's accumulator, so that neither the memory nor the bits
 * depend on the files' sizes. */
#include "divisor.h"
#include "origin.h"
#include "rows.h"
#include "stop.h"
#include "tool.h"

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

static int run_piece(pass *pass, int64_t first, const onepass_shape *piece) {
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
        status = add_slice(pass, &call, first);
    if (status == ONEPASS_OK && (task_wants(task, LOSSES) || !pass->accumulator))
        status = run_elements(&call, task_wants(task, LOSSES) ? &output[LOSSES] : NULL);
    return status == ONEPASS_OK ? write_outputs(pass, 0, OUTPUTS, piece->count) : complain_of_library(status);
}

/* ------------------------------------------------------------------- the pass -- */

static int finish_part(pass *pass) {
    task *task = pass->task;
    part_origin origin;
    if (!find_origin(pass, &origin))
        return FAILED;
    return part_write(&task->state, &task->part, task->value_dtype, &origin,
                      pass->of_nothing ? pass->of_nothing : pass->accumulator);
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

/* The accumulators: one has the gradients, which are zeros of a sum where nothing takes part in a mean; then the state
 * of a part is that of another, which is a mean. */
static int begin_accumulators(pass *pass) {
    const int64_t total = pass->task->common.count;
    onepass_status status = ONEPASS_OK;
    if (pass->call.reduction != ONEPASS_NONE)
        status = onepass_accumulator_begin(&pass->accumulator, &pass->call, total);
    if (status == ONEPASS_OK && pass->nothing_takes_part && pass->task->part.count)
        status = onepass_accumulator_begin(&pass->of_nothing, &pass->task->call, total);
    return status == ONEPASS_OK ? RIGHT : complain_of_library(status);
}

static int run_pieces(pass *pass) {
    const bool over_rows = pass->task->loss->over_rows;
    const uint64_t each = over_rows ? bytes_of_a_row(pass->task) : bytes_of_an_element(pass->task);
    onepass_shape piece;
    int status = begin_accumulators(pass);
    for (int64_t first = pass->first; status == RIGHT && next_piece(pass, first, &piece); first += piece.count) {
        status = stop_wanted() ? FAILED : over_rows ? run_rows(pass, first, &piece) : run_piece(pass, first, &piece);
        step_forward(pass, (uint64_t)piece.count * each);
    }
    if (status != RIGHT || !pass->accumulator)
        return status;
    return pass->task->part.count ? finish_part(pass) : finish(pass);
}

int compute_on_cpu(task *task) {
    pass pass;
    int status = open_pass(&pass, task);
    if (status == RIGHT)
        status = find_divisor(&pass);
    if (status == RIGHT)
        status = run_pieces(&pass);
    close_pass(&pass);
    return status;
}
