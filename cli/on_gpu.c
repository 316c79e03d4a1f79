/* The computation on a GPU: the files' arrays are copied there as they are, one call, and the outputs come back. */
#include "divisor.h"
#include "gpu.h"
#include "progress.h"
#include "stop.h"
#include "task.h"
#include "tool.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK ((uint64_t)32 << 20) /* bytes that are copied at a time */

/* What is in the GPU's memory. */
typedef struct residence {
    task *task;
    void *input[INPUTS], *output[OUTPUTS], *value;
    unsigned char *buffer; /* of the CPU, for a chunk */
    progress progress;
    uint64_t done_bytes;
} residence;

static int complain_of_gpu(void) {
    return complain(FAILED, "%s", gpu_problem());
}

static uint64_t needed_bytes(const task *task) {
    uint64_t bytes = 0;
    for (int k = 0; k < INPUTS; k++)
        bytes += input_bytes(task, k);
    for (int k = 0; k < OUTPUTS; k++)
        bytes += output_bytes(task, k);
    return bytes;
}

/* ----------------------------------------------------------------- up and down -- */

static void count_copied(residence *at, uint64_t bytes) {
    at->done_bytes += bytes;
    progress_update(&at->progress, at->done_bytes);
}

static int upload(residence *at, int k) {
    input *input = &at->task->input[k];
    const uint64_t bytes = input_bytes(at->task, k);
    const size_t size = onepass_dtype_size(input->layout.dtype);
    at->input[k] = gpu_allocate(bytes > 0 ? (size_t)bytes : 1);
    if (!at->input[k])
        return complain_of_gpu();
    for (uint64_t first = 0; first < bytes; first += CHUNK) {
        const uint64_t count = bytes - first < CHUNK ? bytes - first : CHUNK;
        const unsigned char *window =
            input_map(input, input->layout.offset + first, input->layout.offset + first + count);
        if (!window || stop_wanted())
            return FAILED;
        if (input->layout.swapped) {
            swap_bytes(at->buffer, window, (int64_t)(count / size), size);
            window = at->buffer;
        }
        if (!gpu_upload((char *)at->input[k] + first, window, (size_t)count))
            return complain_of_gpu();
        count_copied(at, count);
    }
    return RIGHT;
}

static int download(residence *at, int k) {
    const uint64_t bytes = output_bytes(at->task, k);
    int status = RIGHT;
    for (uint64_t first = 0; first < bytes && status == RIGHT; first += CHUNK) {
        const uint64_t count = bytes - first < CHUNK ? bytes - first : CHUNK;
        if (stop_wanted())
            return FAILED;
        if (!gpu_download(at->buffer, (const char *)at->output[k] + first, (size_t)count))
            return complain_of_gpu();
        status = output_write(&at->task->output[k], at->buffer, (size_t)count);
        count_copied(at, count);
    }
    return status;
}

/* ------------------------------------------------------------------- the call -- */

static onepass_tensor tensor_of(const input *input, void *data) {
    return (onepass_tensor){.data = data,
                            .dtype = input->layout.dtype,
                            .ndim = input->layout.ndim,
                            .shape = input->layout.shape,
                            .strides = input->layout.stride};
}

static onepass_tensor dense(const onepass_shape *shape, void *data, int32_t dtype) {
    return (onepass_tensor){.data = data, .dtype = dtype, .ndim = shape->ndim, .shape = shape->extent};
}

/* The losses are also there where nobody wants them: other outputs of a row come with them alone. */
static bool needs_losses(const task *task) {
    return task_wants(task, LOSSES) || (task->loss->over_rows && task->call.reduction == ONEPASS_NONE);
}

static int run(residence *at) {
    const task *task = at->task;
    onepass_tensor input[INPUTS], output[OUTPUTS];
    for (int k = 0; k < INPUTS; k++)
        input[k] = tensor_of(&task->input[k], at->input[k]);
    for (int k = 0; k < OUTPUTS; k++)
        output[k] = dense(output_shape(task, k), at->output[k], output_dtype(task, k));
    const onepass_tensor value = {.data = at->value, .dtype = task->value_dtype};
    const onepass_tensor *losses = needs_losses(task) ? &output[LOSSES] : NULL;
    const bool is_reduced = task->call.reduction != ONEPASS_NONE;
    onepass_call call = task->call;
    point_call(task, input, output, &call);
    call.value = is_reduced ? &value : losses;
    onepass_status status = onepass_run(&call);
    if (status == ONEPASS_OK && is_reduced && losses) {
        call.reduction = ONEPASS_NONE;
        call.log_sum_exp = call.predicted = NULL;
        for (int k = 0; k < ONEPASS_MAX_OPERANDS; k++)
            call.gradient[k] = NULL;
        call.value = losses;
        status = onepass_run(&call);
    }
    if (status != ONEPASS_OK)
        return complain_of_library(status);
    return gpu_wait() ? RIGHT : complain_of_gpu();
}

/* ---------------------------------------------------------------------- all -- */

static int make_room(residence *at) {
    const task *task = at->task;
    const uint64_t needed = needed_bytes(task), here = gpu_free_memory();
    if (needed + (32 << 20) > here)
        return complain(
            FAILED,
            "the arrays need %.1f GiB of the GPU's memory, of which %.1f GiB are free; expected them to fit "
            "(--device cpu takes files of any size)",
            (double)needed / 0x1p30, (double)here / 0x1p30);
    at->buffer = malloc(CHUNK);
    if (!at->buffer)
        return complain(FAILED, "no memory for a piece of the files");
    at->value = gpu_allocate(sizeof(double));
    bool lacks = !at->value;
    for (int k = 0; k < OUTPUTS && !lacks; k++)
        if (task_wants(task, k) || (k == LOSSES && needs_losses(task)))
            lacks = !(at->output[k] = gpu_allocate(
                          (size_t)output_shape(task, k)->count * onepass_dtype_size(output_dtype(task, k)) + 1));
    return lacks ? complain_of_gpu() : RIGHT;
}

static int fetch_value(residence *at) {
    task *task = at->task;
    if (task->call.reduction == ONEPASS_NONE)
        return RIGHT;
    task->value.dtype = task->value_dtype;
    return gpu_download(&task->value.bits, at->value, onepass_dtype_size(task->value_dtype)) ? RIGHT
                                                                                             : complain_of_gpu();
}

static int work(residence *at) {
    task *task = at->task;
    int status = make_room(at);
    for (int k = 0; k < INPUTS && status == RIGHT; k++)
        if (task_has(task, k))
            status = upload(at, k);
    if (status == RIGHT)
        status = run(at);
    if (status == RIGHT)
        status = fetch_value(at);
    for (int k = 0; k < OUTPUTS && status == RIGHT; k++)
        if (task_wants(task, k))
            status = download(at, k);
    return status;
}

int compute_on_gpu(task *task) {
    residence at = {.task = task};
    onepass_machine_info machine = {.size = sizeof machine};
    if (onepass_machine(&machine) == ONEPASS_OK && machine.gpu_count == 0)
        return complain(FAILED, "--device cuda: no GPU can be used here: %s", machine.gpu_reason);
    const onepass_status ready = onepass_prepare(ONEPASS_CUDA, task->call.device_index);
    if (ready != ONEPASS_OK)
        return complain_of_library(ready);
    if (!gpu_open(task->call.device_index))
        return complain_of_gpu();
    progress_begin(&at.progress, needed_bytes(task));
    int status = task_has_labels(task) ? check_labels(task) : RIGHT; /* a GPU would say NaN */
    if (status == RIGHT)
        status = work(&at);
    progress_end(&at.progress);
    for (int k = 0; k < INPUTS; k++)
        gpu_release(at.input[k]);
    for (int k = 0; k < OUTPUTS; k++)
        gpu_release(at.output[k]);
    gpu_release(at.value);
    free(at.buffer);
    return status;
}
