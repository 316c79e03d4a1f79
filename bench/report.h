/* What the benchmark found: a table for people, JSON for bench/results. */
#ifndef ONEPASS_BENCH_REPORT_H
#define ONEPASS_BENCH_REPORT_H

#include <stdbool.h>
#include <stdio.h>

typedef enum bar_kind {
    NO_BAR, /* for information */
    AT_LEAST,
    AT_MOST
} bar_kind;

/* One line: `judged` is what the bar is about, a ratio or a number of ulp or nanoseconds. */
typedef struct row {
    char work[64];
    double bytes; /* that must move in one call; 0 where the figure is not a rate */
    double ours;
    double beside;
    const char *unit; /* of ours and beside */
    const char *peer; /* what stands beside ours */
    double judged;
    const char *judged_unit;
    bar_kind kind;
    double bar;
} row;

typedef struct report {
    const char *heading; /* of the rows to come; printed before the first of them */
    row rows[160];
    int count;
    int missed;
} report;

/* A bar is judged by the figure as it is printed, with two decimals. */
bool row_is_met(const row *row);

/* Prints a row and keeps it for the JSON. */
void report_add(report *report, const row *row);

/* Writes one JSON string or the rows, without anything around them. */
void write_json_string(FILE *file, const char *text);
void write_json_rows(FILE *file, const report *report);

#endif
