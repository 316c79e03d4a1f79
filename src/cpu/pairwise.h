/*
 * The CPU engine's entries: pairwise.c is compiled once for each instruction set
 * and compute type and has one function each time. It computes the tiles of an
 * aligned run, on one thread, and returns their sum (0 if none is wanted).
 */
#ifndef ONEPASS_CPU_PAIRWISE_H
#define ONEPASS_CPU_PAIRWISE_H

#include "engine.h"

typedef double cpu_pairwise(const job *job, int64_t first_tile, int64_t tile_count);

#define CPU_PAIRWISE(isa)                                                                                              \
    ONEPASS_INTERNAL cpu_pairwise onepass_cpu_pairwise_##isa##_f32;                                                    \
    ONEPASS_INTERNAL cpu_pairwise onepass_cpu_pairwise_##isa##_f64;

/* Those that are built are in the table of engine.c. */
CPU_PAIRWISE(avx512)
CPU_PAIRWISE(avx2)
CPU_PAIRWISE(sse2)
CPU_PAIRWISE(sve)
CPU_PAIRWISE(neon)
CPU_PAIRWISE(baseline)

#endif
