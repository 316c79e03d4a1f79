/* The few functions of the CUDA driver that the demo needs. */
#include "gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    int (*cuInit)(unsigned flags);
    int (*cuDevicePrimaryCtxRetain)(void **context, int gpu);
    int (*cuCtxSetCurrent)(void *context);
    int (*cuMemAlloc_v2)(void **memory, size_t size);
    int (*cuMemFree_v2)(void *memory);
    int (*cuMemcpyHtoD_v2)(void *to, const void *from, size_t size);
    int (*cuMemcpyDtoH_v2)(void *to, const void *from, size_t size);
} driver;

static void must_not_fail(int error, const char *function) {
    if (error == 0)
        return;
    fprintf(stderr, "the CUDA driver's %s failed with error %d\n", function, error);
    exit(EXIT_FAILURE);
}

void gpu_open(void) {
    static const char *const names[] = {"cuInit",       "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuMemAlloc_v2",
                                        "cuMemFree_v2", "cuMemcpyHtoD_v2",          "cuMemcpyDtoH_v2"};
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *context;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *function = library ? dlsym(library, names[i]) : NULL;
        must_not_fail(!function, names[i]);
        memcpy((char *)&driver + i * sizeof function, &function, sizeof function);
    }
    must_not_fail(driver.cuInit(0), names[0]);
    must_not_fail(driver.cuDevicePrimaryCtxRetain(&context, 0), names[1]);
    must_not_fail(driver.cuCtxSetCurrent(context), names[2]);
}

void *gpu_allocate(size_t size) {
    void *memory;
    must_not_fail(driver.cuMemAlloc_v2(&memory, size), "cuMemAlloc");
    return memory;
}

void gpu_free(void *memory) {
    must_not_fail(driver.cuMemFree_v2(memory), "cuMemFree");
}

void gpu_upload(void *to, const void *from, size_t size) {
    must_not_fail(driver.cuMemcpyHtoD_v2(to, from, size), "cuMemcpyHtoD");
}

void gpu_download(void *to, const void *from, size_t size) {
    must_not_fail(driver.cuMemcpyDtoH_v2(to, from, size), "cuMemcpyDtoH");
}
