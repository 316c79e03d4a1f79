/* The bits of a call on every number of threads, by every route and on the GPU; and the table. */
#include "check.h"
#include "demo.h"
#include "gpu.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------- the numbers -- */

/* The mixing function of splitmix64. */
uint64_t random_bits(uint64_t index) {
    uint64_t z = (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

double unit_of(double number) {
    int exponent;
    frexp(number, &exponent);
    return ldexp(1, (exponent < FLT_MIN_EXP ? FLT_MIN_EXP : exponent) - FLT_MANT_DIG);
}

double worse(double error, double than) {
    return error <= than || isnan(than) ? than : error;
}

/* A sum of floats may be off by 4 * 2^-24 of itself. Parts of a gradient that are rounded add up to one unit. */
static const double value_slack = 4, gradient_slack = 1;

bool errors_are_small(const onepass_loss_info *loss, errors errors) {
    const onepass_error *stated = loss->accuracy->error;
    return errors.value <= stated[0].ulp + value_slack && errors.gradient <= stated[1].ulp + gradient_slack;
}

/* -------------------------------------------------------- another memory -- */

static size_t bytes_of(const onepass_tensor *tensor) {
    size_t bytes = onepass_dtype_size(tensor->dtype);
    for (int32_t i = 0; i < tensor->ndim; i++)
        bytes *= (size_t)tensor->shape[i];
    return bytes;
}

static void put(onepass_device device, void *to, const void *from, size_t size) {
    if (device == ONEPASS_CUDA)
        gpu_upload(to, from, size);
    else
        memcpy(to, from, size);
}

static void get(onepass_device device, void *to, const void *from, size_t size) {
    if (device == ONEPASS_CUDA)
        gpu_download(to, from, size);
    else
        memcpy(to, from, size);
}

/* Of a tensor that is there; null stays null. */
static const onepass_tensor *copy_of(const onepass_tensor *tensor, onepass_device device, onepass_tensor *copy) {
    if (!tensor)
        return NULL;
    const size_t size = bytes_of(tensor);
    *copy = *tensor;
    copy->data = device == ONEPASS_CUDA ? gpu_allocate(size) : allocate((int64_t)size, 1);
    put(device, copy->data, tensor->data, size);
    return copy;
}

static void give_back(const onepass_tensor *copy, onepass_device device) {
    if (copy && device == ONEPASS_CUDA)
        gpu_free(copy->data);
    else if (copy)
        free(copy->data);
}

/* ------------------------------------------------------------- the bits -- */

/* What a call is asked for. Forward may keep a state, from which backward is computed later. */
static const struct route {
    bool value, gradient, state;
} routes[] = {{true, true, false}, {false, true, false}, {true, false, true}, {false, true, true}};

/* Whatever was there before must not pass for a result. */
static void spoil(const onepass_tensor *output, onepass_device device) {
    const size_t size = bytes_of(output);
    void *garbage = allocate((int64_t)size, 1);
    memset(garbage, 0xff, size);
    put(device, output->data, garbage, size);
    free(garbage);
}

static bool is_same(const onepass_tensor *expected, const onepass_tensor *output, onepass_device device) {
    const size_t size = bytes_of(expected);
    void *got = allocate((int64_t)size, 1);
    get(device, got, output->data, size);
    const bool same = !memcmp(expected->data, got, size);
    free(got);
    return same;
}

static bool is_same_by(const struct route *route, const onepass_call *expected, onepass_call call) {
    const onepass_device device = (onepass_device)call.device;
    const onepass_tensor *value = call.value, *gradient = call.gradient[0];
    spoil(value, device);
    spoil(gradient, device);
    call.value = route->value ? value : NULL;
    call.gradient[0] = route->gradient ? gradient : NULL;
    call.row_state = route->state ? call.row_state : NULL;
    must(onepass_run(&call));
    return (!route->value || is_same(expected->value, value, device)) &&
           (!route->gradient || is_same(expected->gradient[0], gradient, device));
}

static bool same_bits(const onepass_call *expected, onepass_device device, int threads) {
    onepass_tensor operand[ONEPASS_MAX_OPERANDS], value, gradient, state;
    onepass_call call = *expected;
    call.device = (int32_t)device;
    call.threads = threads;
    for (int i = 0; i < ONEPASS_MAX_OPERANDS; i++)
        call.operand[i] = copy_of(expected->operand[i], device, &operand[i]);
    call.value = copy_of(expected->value, device, &value);
    call.gradient[0] = copy_of(expected->gradient[0], device, &gradient);
    call.row_state = copy_of(expected->row_state, device, &state);

    if (call.row_state)
        spoil(call.row_state, device);
    bool same = true;
    const size_t count = sizeof routes / sizeof *routes - !call.row_state;
    for (size_t i = 0; i < count; i++)
        same = is_same_by(&routes[i], expected, call) && same;

    for (int i = 0; i < ONEPASS_MAX_OPERANDS; i++)
        give_back(call.operand[i], device);
    give_back(call.value, device);
    give_back(call.gradient[0], device);
    give_back(call.row_state, device);
    return same;
}

/* Of every route on one thread, a few, and all. */
static bool same_bits_on_threads(const onepass_call *expected, int most) {
    for (int threads = 1; threads < most; threads = threads < 3 ? threads + 1 : 2 * threads)
        if (!same_bits(expected, ONEPASS_CPU, threads))
            return false;
    return same_bits(expected, ONEPASS_CPU, most);
}

/* ------------------------------------------------------------ the table -- */

/* Without blanks at the end. */
static void print_row(const char *loss, const char *mean, const char *error, const char *gradient_error,
                      const char *same, const char *last) {
    printf("%-32s %13s %10s %13s   %-*s%s\n", loss, mean, error, gradient_error, *last ? 7 : 0, same, last);
    fflush(stdout);
}

void show_heading(const onepass_machine_info *machine) {
    print_row("", "", "error of", "error of", "same", "");
    print_row("loss", "mean", "the mean", "the gradient", "bits", machine->gpu_count > 0 ? "on the GPU" : "");
}

bool show_checked(const onepass_call *call, errors errors, bool right, const onepass_machine_info *machine) {
    const bool same = same_bits_on_threads(call, machine->threads);
    const bool has_gpu = machine->gpu_count > 0, same_on_gpu = has_gpu && same_bits(call, ONEPASS_CUDA, 0);
    char mean[16], error[16], gradient_error[16], last[32];
    snprintf(mean, sizeof mean, "%.7g", (double)*(const float *)call->value->data);
    snprintf(error, sizeof error, "%.2f", errors.value);
    snprintf(gradient_error, sizeof gradient_error, "%.2f", errors.gradient);
    snprintf(last, sizeof last, "%s%s", !has_gpu ? "" : same_on_gpu ? "yes" : "NO", right ? "" : "   WRONG");
    show_progress("");
    print_row(call->loss, mean, error, gradient_error, same ? "yes" : "NO", last);
    return right && same && (!has_gpu || same_on_gpu);
}
