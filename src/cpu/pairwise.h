/*
 * The CPU engine's entries: pairwise.c is compiled once for each instruction set
 * and compute type and has one function each time. It computes tiles that follow one
 * another, on one thread, from the beginning of a run of 2^level tiles on. Each run
 * leaves its sum in `sum`, if sums are wanted; the last run may have fewer tiles.
 */
#ifndef ONEPASS_CPU_PAIRWISE_H
#define ONEPASS_CPU_PAIRWISE_H

#include "engine.h"

typedef void cpu_pairwise(const job *job, int64_t first_tile, int64_t tile_count, int level, double *sum);

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
