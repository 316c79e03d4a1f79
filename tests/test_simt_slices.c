/*
 * Slices of accumulators as the CUDA engine launches them, on the CPU, thread by thread, against the CPU engine. In the
 * place of src/cuda/pending.c stands a list of results that are there at once.
 *
 *   test_simt_slices [f32|f64]   the kernels of one compute type, or of both
 */
#define _GNU_SOURCE
#include "cuda/slice.h"
#include "message.h"
#include "pending.h"
#include "slices.h"
#include "steps.h"

/* ----------------------------------------------------------------- in a GPU's place -- */

typedef struct harness {
    cuda_visitor visitor; /* the first member: it is who is called */
    size_t needed;
    uint64_t seed;
} harness;

static onepass_status look(cuda_visitor *visitor, cuda_launch *launch) {
    harness *own = (harness *)visitor;
    own->needed = launch->workspace > own->needed ? launch->workspace : own->needed;
    return ONEPASS_OK;
}

static onepass_status launch_here(cuda_visitor *visitor, cuda_launch *launch) {
    harness *own = (harness *)visitor;
    return run_launch(launch, own->needed, own->seed++, "a slice")
               ? ONEPASS_OK
               : onepass_fail(ONEPASS_DEVICE_FAILED, "the launch failed");
}

static onepass_status copy_nothing(cuda_visitor *visitor, char *to, const char *from, size_t size) {
    (void)visitor, (void)to, (void)from, (void)size;
    return ONEPASS_OK;
}

static onepass_status copy_here(cuda_visitor *visitor, char *to, const char *from, size_t size) {
    (void)visitor;
    memcpy(to, from, size);
    return ONEPASS_OK;
}

onepass_status onepass_pending_add(pending_slices *pending, const job *job, const slice_parts *parts,
                                   pending_taker *take, void *taker) {
    (void)take, (void)taker;
    pending_slice *slice = malloc(sizeof *slice);
    unsigned char *results = aligned_alloc(256, (parts->size + MARGIN + 255) / 256 * 256);
    memset(results, 0xff, parts->size + MARGIN);
    *slice = (pending_slice){.next = pending->slice, .first = parts->first, .end = parts->end, .done = results};
    harness harness = {
        .visitor = {.launch = look, .copy = copy_nothing, .limits = simt_limits, .results = (char *)results}};
    OK(onepass_cuda_visit_slice(job, parts, &harness.visitor));
    make_workspace(harness.needed);
    harness.visitor.workspace = (uintptr_t)workspace;
    harness.visitor.launch = launch_here;
    harness.visitor.copy = copy_here;
    harness.seed = (uint64_t)parts->first;
    pending->slice = slice;
    const onepass_status status = onepass_cuda_visit_slice(job, parts, &harness.visitor);
    bool clean = true;
    for (size_t i = 0; i < MARGIN; i++)
        clean &= results[parts->size + i] == 0xff;
    CHECK(clean, "a slice wrote beyond its %zu bytes of results", parts->size);
    return status;
}

onepass_status onepass_pending_take(pending_slices *pending, pending_taker *take, void *taker) {
    while (pending->slice) {
        pending_slice *slice = pending->slice;
        OK(take(taker, slice, slice->done));
        pending->slice = slice->next;
        free(slice->done);
        free(slice);
    }
    return ONEPASS_OK;
}

void onepass_pending_drop(pending_slices *pending) {
    while (pending->slice) {
        pending_slice *slice = pending->slice;
        pending->slice = slice->next;
        free(slice->done);
        free(slice);
    }
}

/* ------------------------------------------------------------------------------ cases -- */

static void *allocate_here(size_t size) {
    return aligned_alloc(256, (size + 255) / 256 * 256);
}

static void copy(void *to, const void *from, size_t size) {
    memcpy(to, from, size);
}

int main(int argc, char **argv) {
    static const cuda_shape shapes[] = {{0}, {.tiles_per_block = 1}, {.kernels = CUDA_GENERAL_KERNELS}};
    const bool quick = check_quick("two of three launch shapes for a case");
    const char *only = argc > 1 ? argv[1] : "";
    const slices_place place = {allocate_here, free, copy, copy, {NULL}};
    for (int in_double = 0; in_double < 2; in_double++) {
        if (strcmp(only, in_double ? "f32" : "f64") == 0)
            continue;
        for (int i = 0; i < SLICES_CASES; i++)
            for (int shape = 0; shape < 3; shape++) {
                if (slices_in_double(&slices_cases[i]) != in_double || (quick && shape != i % 3))
                    continue;
                onepass_cuda_shape = shapes[shape];
                slices_run(&slices_cases[i], &place, (uint64_t)(i + shape), quick ? 1 : 2);
            }
    }
    free(workspace);
    return check_finish();
}
