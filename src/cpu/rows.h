/*
 * The CPU engine's entries for losses over rows: rows.c is compiled once for each instruction set and compute type.
 */
#ifndef ONEPASS_CPU_ROWS_H
#define ONEPASS_CPU_ROWS_H

#include "cpu/run.h"

/* `count` rows from `first` on, of the job's own: what each adds to the sum goes into `terms`, which are of the compute
 * type, unless that is null. */
typedef void cpu_rows_function(const job *job, int64_t first, int64_t count, void *terms);

/* The sum of up to a tile of terms; what lies behind them is overwritten. */
typedef double cpu_terms_function(void *terms, int64_t count);

#endif
