/* From a plan to the kernel's function in one of the two libraries. */
#define _GNU_SOURCE
#include "launch.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* kernels.cpp */
const simt_library *onepass_simt_kernels_f32(void);
const simt_library *onepass_simt_kernels_f64(void);

static kernel_name launched[1024];

kernel_name simt_name(const char *loss, cuda_variant variant) {
    kernel_name name;
    snprintf(name.text, sizeof name.text, "onepass_%s_%s", loss, onepass_cuda_variant[variant].name);
    return name;
}

/* Where the name is in the list, or is to go. */
static kernel_name *launched_place(const kernel_name *name) {
    int i = 0;
    while (launched[i].text[0] && strcmp(launched[i].text, name->text) != 0)
        i++;
    return &launched[i];
}

bool simt_was_launched(const kernel_name *name) {
    return launched_place(name)->text[0] != '\0';
}

void simt_forget_launches(void) {
    memset(launched, 0, sizeof launched);
}

/* Both libraries have kernels of the same names. */
static void *find_kernel(int32_t compute, const kernel_name *name) {
    union {
        const simt_library *(*function)(void);
        void *address;
    } inside = {compute == ONEPASS_F64 ? onepass_simt_kernels_f64 : onepass_simt_kernels_f32};
    Dl_info file;
    void *library = dladdr(inside.address, &file) ? dlopen(file.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    return library ? dlsym(library, name->text) : NULL;
}

/* A kernel and its parameter, of which there are several kinds. */
typedef struct kernel_call {
    union {
        void *symbol;
        void (*direct)(cuda_direct parameter);
        void (*weighted)(cuda_weighted parameter);
        void (*small)(cuda_small parameter);
        void (*tiny)(cuda_tiny parameter);
        void (*general)(cuda_general parameter);
        void (*row)(cuda_row parameter);
        void (*vector)(cuda_vector parameter);
        void (*divided_by)(cuda_divided_by parameter);
    } kernel;
    const cuda_launch *launch;
} kernel_call;

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
    case kind_tiny:
        call->kernel.tiny(call->launch->parameter.tiny);
        break;
    case kind_row:
        call->kernel.row(call->launch->parameter.row);
        break;
    case kind_vector:
        call->kernel.vector(call->launch->parameter.vector);
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
    const bool is_f64 = launch->compute == ONEPASS_F64;
    kernel_call call = {.kernel.symbol = find_kernel(launch->compute, &name), .launch = launch};
    if (!call.kernel.symbol)
        return false;
    simt_run(&(simt_launch){.library = is_f64 ? onepass_simt_kernels_f64() : onepass_simt_kernels_f32(),
                            .name = name.text,
                            .body = call_kernel,
                            .argument = &call,
                            .blocks = launch->blocks,
                            .threads = launch->threads,
                            .shared_memory = launch->shared_memory,
                            .first_block = first_block,
                            .block_count = block_count,
                            .seed = seed});
    *launched_place(&name) = name;
    return true;
}
