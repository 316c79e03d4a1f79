/* What `onepass bench` is asked to measure. */
#ifndef ONEPASS_CLI_BENCH_OPTIONS_H
#define ONEPASS_CLI_BENCH_OPTIONS_H

#include "bench_device.h"

typedef struct bench_options {
    bool help;
    bool on_gpu;
    int gpu;             /* which */
    int32_t threads;     /* 0: the library decides */
    int64_t least, most; /* elements */
    const char *loss[BENCH_MOST_LOSSES];
    int losses;
    int32_t dtype[4];
    int dtypes;
    bench_mode mode[BENCH_MODES];
    int modes;
    const char *json, *plot; /* files, or null */
    char command[256];       /* as it was typed, but for the files */
} bench_options;

bool bench_options_parse(bench_options *options, int argc, char **argv, problem *problem);

void bench_help(void);

#endif
