/* The computation on a GPU: the files' arrays are copied there as they are, one call, and the outputs come back. */
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
    void *input[INPUTS];
    void *gradient, *losses, *value;
    unsigned char *buffer; /* of the CPU, for a chunk */
    progress progress;
    uint64_t done_bytes;
} residence;

static int complain_of_gpu(void) {
    return complain(FAILED, "%s", gpu_problem());
}

static uint64_t output_bytes(const task *task, int32_t dtype) {
    return (uint64_t)task->common.count * dtype_bytes(dtype);
}

static uint64_t needed_bytes(const task *task) {
    uint64_t bytes = 0;
    for (int k = 0; k < INPUTS; k++)
        if (task->input[k].file >= 0)
            bytes += input_bytes(&task->input[k]);
    if (task->gradient.file.name)
        bytes += output_bytes(task, task->gradient_dtype);
    if (task->losses.file.name)
        bytes += output_bytes(task, task->value_dtype);
    return bytes;
}

/* ----------------------------------------------------------------- up and down -- */

static void step_forward(residence *at, uint64_t bytes) {
    at->done_bytes += bytes;
    progress_update(&at->progress, at->done_bytes);
}

static int upload(residence *at, int k) {
    input *input = &at->task->input[k];
    const uint64_t bytes = input_bytes(input);
    const size_t size = dtype_bytes(input->layout.dtype);
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
        step_forward(at, count);
    }
    return RIGHT;
}

static int download(residence *at, output *output, const void *from, uint64_t bytes) {
    int status = RIGHT;
    for (uint64_t first = 0; first < bytes && status == RIGHT; first += CHUNK) {
        const uint64_t count = bytes - first < CHUNK ? bytes - first : CHUNK;
        if (stop_wanted())
            return FAILED;
        if (!gpu_download(at->buffer, (const char *)from + first, (size_t)count))
            return complain_of_gpu();
        status = output_write(output, at->buffer, (size_t)count);
        step_forward(at, count);
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

static onepass_tensor dense(const task *task, void *data, int32_t dtype) {
    return (onepass_tensor){.data = data, .dtype = dtype, .ndim = task->common.ndim, .shape = task->common.shape};
}

static int run(residence *at) {
    const task *task = at->task;
    onepass_tensor tensor[INPUTS];
    for (int k = 0; k < INPUTS; k++)
        tensor[k] = tensor_of(&task->input[k], at->input[k]);
    const onepass_tensor gradient = dense(task, at->gradient, task->gradient_dtype);
    const onepass_tensor losses = dense(task, at->losses, task->value_dtype);
    const onepass_tensor value = {.data = at->value, .dtype = task->value_dtype};
    const bool is_reduced = task->call.reduction != ONEPASS_NONE;
    onepass_call call = task->call;
    call.operand[ONEPASS_PREDICTION] = &tensor[PREDICTIONS];
    call.operand[ONEPASS_TARGET] = &tensor[TARGETS];
    call.weight = task_is_weighted(task) ? &tensor[WEIGHTS] : NULL;
    call.gradient[ONEPASS_PREDICTION] = task->gradient.file.name ? &gradient : NULL;
    call.value = is_reduced ? &value : task->losses.file.name ? &losses : NULL;
    onepass_status status = onepass_run(&call);
    if (status == ONEPASS_OK && is_reduced && task->losses.file.name) {
        call.reduction = ONEPASS_NONE;
        call.gradient[ONEPASS_PREDICTION] = NULL;
        call.value = &losses;
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
    if (task->gradient.file.name)
        at->gradient = gpu_allocate((size_t)output_bytes(task, task->gradient_dtype) + 1);
    if (task->losses.file.name)
        at->losses = gpu_allocate((size_t)output_bytes(task, task->value_dtype) + 1);
    const bool lacks =
        !at->value || (task->gradient.file.name && !at->gradient) || (task->losses.file.name && !at->losses);
    return lacks ? complain_of_gpu() : RIGHT;
}

static int fetch_value(residence *at) {
    task *task = at->task;
    if (task->call.reduction == ONEPASS_NONE)
        return RIGHT;
    task->value.dtype = task->value_dtype;
    return gpu_download(&task->value.bits, at->value, dtype_bytes(task->value_dtype)) ? RIGHT : complain_of_gpu();
}

static int work(residence *at) {
    task *task = at->task;
    int status = make_room(at);
    for (int k = 0; k < INPUTS && status == RIGHT; k++)
        if (task->input[k].file >= 0)
            status = upload(at, k);
    if (status == RIGHT)
        status = run(at);
    if (status == RIGHT)
        status = fetch_value(at);
    if (status == RIGHT && task->gradient.file.name)
        status = download(at, &task->gradient, at->gradient, output_bytes(task, task->gradient_dtype));
    if (status == RIGHT && task->losses.file.name)
        status = download(at, &task->losses, at->losses, output_bytes(task, task->value_dtype));
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
    const int status = work(&at);
    progress_end(&at.progress);
    for (int k = 0; k < INPUTS; k++)
        gpu_release(at.input[k]);
    gpu_release(at.gradient);
    gpu_release(at.losses);
    gpu_release(at.value);
    free(at.buffer);
    return status;
}
