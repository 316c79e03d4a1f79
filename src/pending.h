/*
 * Slices that a GPU computes: what they come to stays in its memory until somebody asks for it. What is kept here says
 * which elements they have; the rest is the CUDA engine's.
 */
#ifndef ONEPASS_PENDING_H
#define ONEPASS_PENDING_H

#include "engine.h"
#include "parts.h"

typedef struct pending_slice {
    struct pending_slice *next;
    int64_t first, end; /* elements of the whole; none of a slice that has failed on the way */
    struct pending_slab *slab;
    size_t at;  /* bytes: where its results are in the slab */
    void *done; /* an event: whether they are there */
} pending_slice;

typedef struct pending_slices {
    pending_slice *slice;
    struct pending_slab *slab;
} pending_slices;

/* Takes in what a slice has come to. */
typedef onepass_status pending_taker(void *taker, const pending_slice *slice, const unsigned char *results);

/* Has a slice computed on its job's stream, and waits for nobody. If that fails the slices are as before. Of slices
 * before, those that are done may be taken in for their room. */
ONEPASS_INTERNAL onepass_status onepass_pending_add(pending_slices *pending, const job *job, const slice_parts *parts,
                                                    pending_taker *take, void *taker);

/* Waits for all slices and has them taken in. If that fails, those that were not stay. */
ONEPASS_INTERNAL onepass_status onepass_pending_take(pending_slices *pending, pending_taker *take, void *taker);

/* Frees all memory, here and on GPUs. */
ONEPASS_INTERNAL void onepass_pending_drop(pending_slices *pending);

#endif
