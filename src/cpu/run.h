/*
 * The CPU engine's entries: run.c is compiled once for each instruction set
 * and compute type and has one function each time. It computes tiles that follow one
 * another, on one thread, from the beginning of a span of 2^level tiles on. Each span
 * leaves its sum in `sum`, if sums are asked for; the last span may have fewer tiles.
 */
#ifndef ONEPASS_CPU_RUN_H
#define ONEPASS_CPU_RUN_H

#include "engine.h"

typedef void cpu_run_function(const job *job, int64_t first_tile, int64_t tile_count, int level, double *sum);

#endif
