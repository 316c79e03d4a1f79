/*
 * The CPU engine's entries: run.c is compiled once for each instruction set and compute type and has two functions each
 * time. One looks at the job before its threads begin. The other computes tiles that follow one another, on one thread,
 * from the beginning of a span of 2^level tiles on. Each span leaves its sum in `sum`, if sums are asked for; the last
 * span may have fewer tiles.
 */
#ifndef ONEPASS_CPU_RUN_H
#define ONEPASS_CPU_RUN_H

#include "engine.h"

/* What all threads begin with, on few cache lines of its own. The job lies on many, which a thread on another core
 * waits for, and whoever plans the next job waits until that core has given them back: value and gradient of 65536
 * floats took a tenth longer on two cores of a Xeon. */
typedef struct cpu_start {
    _Alignas(64) unsigned char bytes[256];
} cpu_start;

typedef void cpu_begin_function(const job *job, cpu_start *start);

/* Rows have no start. */
typedef void cpu_run_function(const job *job, const cpu_start *start, int64_t first_tile, int64_t tile_count, int level,
                              double *sum);

#endif
