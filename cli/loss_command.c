/* onepass LOSS PREDICTION TARGET: opens the files, has the task computed, and says what came out. */
#include "answer.h"
#include "progress.h"
#include "stop.h"
#include "task_files.h"

/* The CPU reads weights, masks and labels twice where their sum has to be known first. */
static uint64_t count_bytes(const task *task) {
    uint64_t bytes = 0;
    for (int k = 0; k < INPUTS; k++)
        bytes += input_bytes(task, k);
    if (task->call.device == ONEPASS_CPU && task_sums_first(task))
        bytes += input_bytes(task, WEIGHT) + input_bytes(task, MASK) +
                 (task_has_labels(task) ? input_bytes(task, ONEPASS_TARGET) : 0);
    for (int k = 0; k < OUTPUTS; k++)
        bytes += output_bytes(task, k);
    return bytes;
}

/* The library says what it thinks of the parameters before a file is written or a GPU is opened. */
static int check_parameters(const task *task) {
    onepass_accumulator *accumulator = NULL;
    onepass_call call = task->call;
    call.device = ONEPASS_CPU;
    call.device_index = 0;
    call.reduction = ONEPASS_SUM;
    const onepass_status status = onepass_accumulator_begin(&accumulator, &call, 0);
    onepass_accumulator_destroy(accumulator);
    return status == ONEPASS_OK ? RIGHT : complain_of_library(status);
}

static int work(task *task, const loss_options *options) {
    int status = check_parameters(task);
    if (status == RIGHT)
        status = open_inputs(task, options);
    if (status == RIGHT && !stop_wanted())
        status = check_outputs(task, options);
    if (status != RIGHT || stop_wanted())
        return status == RIGHT ? FAILED : status;
    task->bytes = count_bytes(task);
    status = begin_outputs(task);
    if (status == RIGHT)
        status = task->call.device == ONEPASS_CUDA ? compute_on_gpu(task) : compute_on_cpu(task);
    return status == RIGHT ? complete_outputs(task) : status;
}

/* The outputs get their names when the answer is out: a failure before leaves nothing behind. */
static int finish(task *task, const loss_options *options, double seconds) {
    if (stop_wanted())
        return FAILED;
    const int status = options->state ? RIGHT : print_answer(task, task->loss, options, seconds);
    return status == RIGHT ? name_outputs(task) : status;
}

int loss_command(const onepass_loss_info *loss, int argc, char **argv) {
    loss_options options;
    int status = read_loss_options(&options, loss, argc, argv);
    if (status == RIGHT && options.wants_help) {
        print_loss_help(loss);
        return close_output();
    }
    if (status != RIGHT)
        return status;
    task task = {.loss = loss, .call = options.call};
    for (int k = 0; k < INPUTS; k++)
        task.input[k].file = -1;
    for (int k = 0; k < OUTPUTS; k++)
        task.output[k].file.file = -1;
    task.state.file.file = -1;
    task.state.index = OUTPUTS;
    task.part = options.part;
    stop_prepare();
    const double begun = clock_seconds();
    status = work(&task, &options);
    if (status == RIGHT)
        status = finish(&task, &options, clock_seconds() - begun);
    close_files(&task);
    stop_finish();
    return status;
}
