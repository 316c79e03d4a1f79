/*
 * What was measured, with the machine and the date: a table of points, as `onepass bench --json` and bench/compare.py
 * write it and `onepass plot` reads it:
 *
 *     {"command": "onepass bench", "date": "2026-11-15T10:00:00Z", "hardware": "Neoverse-N1", "device": "cpu",
 *      "engine": "speed-cpu", "sources": "a hash of the engine's sources", "threads": 2, "instruction_set": "neon",
 *      "versions": {"onepass": "0.1.0"}, "limit": "what the limit is",
 *      "points": [{"series": "onepass", "loss": "mse", "mode": "forward", "type": "f32", "elements": 1024,
 *                  "bytes": 8192, "seconds": 3.1e-07, "gbps": 26.4}, ...]}
 *
 * The series are whoever took part, and "limit". Only the points, and in them all but bytes and seconds, must be there.
 */
#ifndef ONEPASS_CLI_RECORD_H
#define ONEPASS_CLI_RECORD_H

#include "layout.h" /* problem */

#define RECORD_LIMIT "limit" /* the series of the limit */

enum {
    RECORD_MOST_VERSIONS = 12
};

typedef struct point {
    char series[32], loss[32], mode[32], type[16];
    int64_t elements;
    double bytes;   /* that had to move */
    double seconds; /* of a call */
    double gbps;
} point;

typedef struct record_version {
    char name[32], version[48];
} record_version;

typedef struct record {
    char command[256], date[32], hardware[160], device[32], instruction_set[32], limit[256];
    char engine[16], sources[72]; /* by which a test tells that the engine has changed since */
    int32_t threads;              /* 0: no matter */
    record_version version[RECORD_MOST_VERSIONS];
    int versions;
    point *point;
    size_t points, room;
} record;

void record_begin(record *record); /* empty, with today's date */
void record_end(record *record);

bool record_add(record *record, const point *point, problem *problem);

/* Text that does not fit is cut short. */
void record_add_version(record *record, const char *name, const char *version);

/* Problems are to follow the file's name, which they do not have. */
bool record_write(const record *record, const char *file, problem *problem);
bool record_read(record *record, const char *file, problem *problem);

#endif
