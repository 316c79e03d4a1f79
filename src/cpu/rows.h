/*
 * The CPU engine's entries for losses over rows: rows.c is compiled once for each instruction set and compute type.
 */
#ifndef ONEPASS_CPU_ROWS_H
#define ONEPASS_CPU_ROWS_H

#include "cpu/run.h"

/* `count` rows from `first` on, of the job's own: what each adds to the sum goes into `terms`, which are of the compute
 * type, unless that is null. */
typedef void cpu_rows_function(const job *job, int64_t first, int64_t count, void *terms);

/* A row that threads share, by its tiles: what each step is done by, in this order. All have done one before any does
 * the next. */
typedef enum share_step {
    SHARE_BEGIN,    /* one thread */
    SHARE_SUMS,     /* each of its tiles */
    SHARE_VALUE,    /* one thread; the row's term is left */
    SHARE_GRADIENTS /* each of its tiles */
} share_step;

/* What they know of it, which rows.c has a type for. */
#define SHARED_ROW_BYTES 24576
typedef struct shared_row {
    _Alignas(64) unsigned char bytes[SHARED_ROW_BYTES];
} shared_row;

typedef void cpu_share_function(const job *job, int64_t row, share_step step, int64_t first_tile, int64_t end_tile,
                                shared_row *shared, void *term);

/* Rows of more tiles are not shared. */
#define MOST_SHARED_TILES 384

/* What a scan of class indices looks for, and what it finds. */
typedef struct label_range {
    uint64_t classes;
    int64_t ignore_index;
    bool ignores; /* rows with that index */
} label_range;

typedef struct label_scan {
    int64_t good;    /* labels of a class */
    int64_t ignored; /* rows; they may have that of a class */
} label_scan;

/* Adds what neighbouring indices come to. */
typedef void cpu_labels_function(const int64_t *label, int64_t count, const label_range *range, label_scan *scan);

/* The sum of up to a tile of terms; what lies behind them is overwritten. */
typedef double cpu_terms_function(void *terms, int64_t count);

#endif
