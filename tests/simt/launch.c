/* From a plan to the kernel's function, in one of the libraries of its compute type. */
#define _GNU_SOURCE
#include "launch.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_LAUNCHED = 2048, /* kernels; there are more than a thousand */
    STACK_SIZE = 64 << 20 /* of a thread of the CPU engine */
};

/* A C library takes each thread's thread-local storage from its stack, and the kernels' shared memory is 20 MiB of it:
 * a usual stack would have next to nothing left. */
__attribute__((constructor)) static void enlarge_stacks(void) {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) || pthread_attr_setstacksize(&attributes, STACK_SIZE) ||
        pthread_setattr_default_np(&attributes))
        abort();
    pthread_attr_destroy(&attributes);
}

cuda_limits simt_limits = {MULTIPROCESSORS, 227 * 1024, 15, true};

static kernel_name launched[MOST_LAUNCHED];

kernel_name simt_name(const char *loss, cuda_variant variant) {
    kernel_name name;
    snprintf(name.text, sizeof name.text, "onepass_%s_%s", loss, onepass_cuda_variant[variant].name);
    return name;
}

/* Where the name is in the list, or is to go. */
static kernel_name *launched_place(const kernel_name *name) {
    int i = 0;
    while (launched[i].text[0] && strcmp(launched[i].text, name->text) != 0)
        if (++i == MOST_LAUNCHED)
            abort();
    return &launched[i];
}

bool simt_was_launched(const kernel_name *name) {
    return launched_place(name)->text[0] != '\0';
}

void simt_forget_launches(void) {
    memset(launched, 0, sizeof launched);
}

/* A kernel and its parameter, of which there are several kinds. */
typedef struct kernel_call {
    union {
        void *symbol;
        void (*direct)(cuda_direct parameter);
        void (*weighted)(cuda_weighted parameter);
        void (*small)(cuda_small parameter);
        void (*small_mean)(cuda_small_mean parameter);
        void (*few)(cuda_few parameter);
        void (*few_mean)(cuda_few_mean parameter);
        void (*tiny_mean)(cuda_tiny_mean parameter);
        void (*backward)(cuda_backward parameter);
        void (*whole)(cuda_whole parameter);
        void (*tiny)(cuda_tiny parameter);
        void (*tiny_both)(cuda_tiny_both parameter);
        void (*general)(cuda_general parameter);
        void (*row)(cuda_row parameter);
        void (*vector)(cuda_vector parameter);
        void (*terms)(cuda_terms parameter);
        void (*divided_by)(cuda_divided_by parameter);
    } kernel;
    const cuda_launch *launch;
} kernel_call;

/* Kernels of both compute types have the same names. Gives the library that has it, or NULL. */
static const simt_library *find_kernel(const char *compute, const kernel_name *name, void **symbol) {
    union {
        void *symbol;
        const simt_library *(*function)(void);
    } library;
    for (int i = 0; i < SIMT_LIBRARIES; i++) {
        char file[64];
        snprintf(file, sizeof file, "libonepass_simt_kernels_%s_%d.so", compute, i);
        void *handle = dlopen(file, RTLD_LAZY | RTLD_NOLOAD); /* which the program is linked with */
        *symbol = handle ? dlsym(handle, name->text) : NULL;
        library.symbol = *symbol ? dlsym(handle, "onepass_simt_library") : NULL;
        if (library.symbol)
            return library.function();
    }
    return NULL;
}

static void call_kernel(void *argument) {
    const kernel_call *call = argument;
    switch (onepass_cuda_variant[call->launch->variant].kind) {
    case kind_general:
        call->kernel.general(call->launch->parameter.general);
        break;
    case kind_weighted:
        call->kernel.weighted(call->launch->parameter.weighted);
        break;
    case kind_small:
        call->kernel.small(call->launch->parameter.small);
        break;
    case kind_small_mean:
        call->kernel.small_mean(call->launch->parameter.small_mean);
        break;
    case kind_backward:
        call->kernel.backward(call->launch->parameter.backward);
        break;
    case kind_whole:
        call->kernel.whole(call->launch->parameter.whole);
        break;
    case kind_few_mean:
        call->kernel.few_mean(call->launch->parameter.few_mean);
        break;
    case kind_tiny_mean:
        call->kernel.tiny_mean(call->launch->parameter.tiny_mean);
        break;
    case kind_few:
        call->kernel.few(call->launch->parameter.few);
        break;
    case kind_tiny:
        call->kernel.tiny(call->launch->parameter.tiny);
        break;
    case kind_tiny_both:
        call->kernel.tiny_both(call->launch->parameter.tiny_both);
        break;
    case kind_row:
        call->kernel.row(call->launch->parameter.row);
        break;
    case kind_vector:
        call->kernel.vector(call->launch->parameter.vector);
        break;
    case kind_terms:
        call->kernel.terms(call->launch->parameter.terms);
        break;
    case kind_divided_by:
        call->kernel.divided_by(call->launch->parameter.divided_by);
        break;
    case kind_direct:
        call->kernel.direct(call->launch->parameter.direct);
        break;
    }
}

bool simt_run_plan(const cuda_launch *launch, uint64_t seed, uint32_t first_block, uint32_t block_count) {
    const kernel_name name = simt_name(launch->loss->info.name, launch->variant);
    kernel_call call = {.launch = launch};
    const simt_library *library =
        find_kernel(launch->compute == ONEPASS_F64 ? "f64" : "f32", &name, &call.kernel.symbol);
    if (!library)
        return false;
    simt_run(&(simt_launch){.library = library,
                            .name = name.text,
                            .body = call_kernel,
                            .argument = &call,
                            .blocks = launch->blocks,
                            .threads = launch->threads,
                            .shared_memory = launch->shared_memory,
                            .cluster = launch->variant == variant_rows_cluster ? CUDA_CLUSTER : 0,
                            .first_block = first_block,
                            .block_count = block_count,
                            .seed = seed});
    *launched_place(&name) = name;
    return true;
}
