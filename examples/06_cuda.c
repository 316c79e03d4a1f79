/*
 * 06: the mean squared error and its gradient on a GPU.
 *
 * Shows a call with device = ONEPASS_CUDA on memory of the GPU. Programs that have the CUDA
 * toolkit get that memory by cudaMalloc; this one must compile without it, so it opens the
 * driver itself. Where there is no GPU it says why, and that is all. What it allocates is freed
 * when it ends.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <onepass.h>

enum {
    COUNT = 100000
};
static const size_t SIZE = COUNT * sizeof(float);

/* The few functions of the driver that this program needs. They return 0 if all went well. */
static struct {
    int (*cuInit)(unsigned flags);
    int (*cuDevicePrimaryCtxRetain)(void **context, int gpu);
    int (*cuCtxSetCurrent)(void *context);
    int (*cuMemAlloc_v2)(void **memory, size_t size);
    int (*cuMemcpyHtoD_v2)(void *to, const void *from, size_t size);
    int (*cuMemcpyDtoH_v2)(void *to, const void *from, size_t size);
} driver;

static int open_driver(void) {
    static const char *const names[] = {"cuInit",        "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent",
                                        "cuMemAlloc_v2", "cuMemcpyHtoD_v2",          "cuMemcpyDtoH_v2"};
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *function = library ? dlsym(library, names[i]) : NULL;
        if (!function)
            return 1;
        memcpy((char *)&driver + i * sizeof function, &function, sizeof function);
    }
    void *context; /* the one that PyTorch and the CUDA runtime use too */
    return driver.cuInit(0) || driver.cuDevicePrimaryCtxRetain(&context, 0) || driver.cuCtxSetCurrent(context);
}

static float prediction[COUNT], target[COUNT], gradient[COUNT], gpu_gradient[COUNT];

int main(void) {
    onepass_machine_info machine = {.size = sizeof machine};
    if (onepass_machine(&machine) != ONEPASS_OK)
        return puts(onepass_message()), 1;
    if (machine.gpu_count == 0)
        return printf("no GPU: %s\n", machine.gpu_reason), 0;
    for (int i = 0; i < COUNT; i++) {
        prediction[i] = (float)(i % 1009) / 7;
        target[i] = (float)(i % 911) / 11;
    }
    void *p_memory, *t_memory, *g_memory, *v_memory;
    if (open_driver() || driver.cuMemAlloc_v2(&p_memory, SIZE) || driver.cuMemAlloc_v2(&t_memory, SIZE) ||
        driver.cuMemAlloc_v2(&g_memory, SIZE) || driver.cuMemAlloc_v2(&v_memory, sizeof(float)) ||
        driver.cuMemcpyHtoD_v2(p_memory, prediction, SIZE) || driver.cuMemcpyHtoD_v2(t_memory, target, SIZE))
        return puts("the driver failed"), 1;

    /* The same call as on the CPU, but for the device and the pointers. */
    const int64_t shape[] = {COUNT};
    const onepass_tensor p = {p_memory, ONEPASS_F32, 1, shape, NULL}, t = {t_memory, ONEPASS_F32, 1, shape, NULL};
    const onepass_tensor g = {g_memory, ONEPASS_F32, 1, shape, NULL}, v = {v_memory, ONEPASS_F32, 0, NULL, NULL};
    onepass_call call = ONEPASS_CALL_INIT;
    call.loss = "mse";
    call.operand[ONEPASS_PREDICTION] = &p;
    call.operand[ONEPASS_TARGET] = &t;
    call.value = &v;
    call.gradient[ONEPASS_PREDICTION] = &g;
    call.device = ONEPASS_CUDA; /* GPU 0 and its default stream */
    if (onepass_run(&call) != ONEPASS_OK)
        return puts(onepass_message()), 1;

    /* onepass_run does not wait; these copies do. */
    float value, gpu_value;
    if (driver.cuMemcpyDtoH_v2(&gpu_value, v_memory, sizeof gpu_value) ||
        driver.cuMemcpyDtoH_v2(gpu_gradient, g_memory, SIZE))
        return puts("the driver failed"), 1;
    if (onepass_mean_f32("mse", COUNT, prediction, target, &value, gradient) != ONEPASS_OK)
        return puts(onepass_message()), 1;
    const int same = memcmp(&value, &gpu_value, sizeof value) == 0 && memcmp(gradient, gpu_gradient, SIZE) == 0;
    printf("%s: loss %g, gradient %g ... %g\n", machine.gpu_names, (double)gpu_value, (double)gpu_gradient[0],
           (double)gpu_gradient[COUNT - 1]);
    printf("loss and gradient, GPU and CPU: %s\n", same ? "the same bits" : "DIFFERENT");
    return same ? 0 : 1;
}
