/* `onepass bench`: what to measure, how large, and the table. How it is measured is the devices' affair: bench_cpu.c
 * and bench_gpu.c. */
#include "bench_options.h"
#include "plot.h"
#include "record.h"
#include "replacement.h"
#include "stop.h"
#include "tool.h"

#include "sources.h" /* made by CMake */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_SIZES = 32,
    STEP = 4 /* from one size to the next */
};

/* Of the memory that is free, as much as may be taken: what else runs needs some too. */
#define SHARE_OF_MEMORY 0.85

typedef struct bench {
    bench_options options;
    const bench_device *device;
    record record;
    int64_t most[4]; /* elements of each type of the options, as far as memory goes */
} bench;

/* --------------------------------------------------------------------------- the sizes -- */

/* From the least on, by steps, and always the largest. */
static int list_sizes(int64_t least, int64_t most, int64_t *sizes) {
    int count = 0;
    for (int64_t size = least; size < most && count < MOST_SIZES - 1; size *= STEP)
        sizes[count++] = size;
    sizes[count++] = most;
    return count;
}

/* 2^20, or the digits. */
static const char *write_count(char text[24], int64_t count) {
    int power = 0;
    while (INT64_C(1) << power < count)
        power++;
    if (INT64_C(1) << power == count)
        snprintf(text, 24, "2^%d", power);
    else
        snprintf(text, 24, "%lld", (long long)count);
    return text;
}

static int arrays_needed(const bench_options *options) {
    return options->mode[options->modes - 1] == BENCH_BOTH ? 3 : 2;
}

/* Halves the largest size of each type until it fits, and says so. */
static bool fit_memory(bench *bench, problem *problem) {
    const bench_options *options = &bench->options;
    const int arrays = arrays_needed(options);
    const double room = SHARE_OF_MEMORY * (double)bench->device->free_memory();
    for (int i = 0; i < options->dtypes; i++) {
        const double element = (double)dtype_bytes(options->dtype[i]) * arrays;
        bench->most[i] = options->most;
        while (bench->most[i] > options->least && element * (double)bench->most[i] > room)
            bench->most[i] = bench->most[i] / 2 > options->least ? bench->most[i] / 2 : options->least;
        char asked[24], fitting[24];
        const char *name = dtype_name(options->dtype[i]);
        if (element * (double)bench->most[i] > room)
            return fail(problem, "%s elements of %s need %.1f GB, and %.1f GB are free",
                        write_count(asked, options->least), name, 1e-9 * element * (double)options->least, 1e-9 * room);
        if (bench->most[i] < options->most)
            printf("%s: %s elements need %.1f GB, and %.1f GB are free: measured up to %s\n", name,
                   write_count(asked, options->most), 1e-9 * element * (double)options->most, 1e-9 * room,
                   write_count(fitting, bench->most[i]));
    }
    return true;
}

static size_t largest_array(const bench *bench) {
    size_t largest = 0;
    for (int i = 0; i < bench->options.dtypes; i++) {
        const size_t bytes = (size_t)bench->most[i] * dtype_bytes(bench->options.dtype[i]);
        largest = bytes > largest ? bytes : largest;
    }
    return largest;
}

/* --------------------------------------------------------------------------- the table -- */

static void describe(bench *bench) {
    record *record = &bench->record;
    const bench_options *options = &bench->options;
    onepass_machine_info machine = {.size = sizeof machine};
    onepass_machine(&machine); /* which has been asked before, by the device */
    record_begin(record);
    snprintf(record->command, sizeof record->command, "%s", options->command);
    snprintf(record->hardware, sizeof record->hardware, "%s", bench->device->name());
    snprintf(record->limit, sizeof record->limit, "%s", bench->device->limit);
    snprintf(record->engine, sizeof record->engine, "speed-%s", options->on_gpu ? "cuda" : "cpu");
    snprintf(record->sources, sizeof record->sources, "%s",
             options->on_gpu ? ONEPASS_SOURCES_CUDA : ONEPASS_SOURCES_CPU);
    record_add_version(record, "onepass", onepass_version_text());
    if (options->on_gpu) {
        char version[32];
        snprintf(record->device, sizeof record->device, "cuda:%d", options->gpu);
        snprintf(version, sizeof version, "%d.%d", machine.gpu_driver / 1000, machine.gpu_driver % 1000 / 10);
        record_add_version(record, "CUDA driver", version);
    } else {
        snprintf(record->device, sizeof record->device, "cpu");
        snprintf(record->instruction_set, sizeof record->instruction_set, "%s", machine.instruction_set);
        record->threads = options->threads ? options->threads : machine.threads;
    }
}

static void print_heading(const record *record) {
    printf("%s", record->hardware);
    if (record->threads > 0)
        printf(", %d thread%s, %s", (int)record->threads, record->threads > 1 ? "s" : "", record->instruction_set);
    for (int i = 0; i < record->versions; i++)
        printf(", %s %s", record->version[i].name, record->version[i].version);
    printf(", %.10s\nthe limit: %s\n", record->date, record->limit);
}

static int name_width(const bench *bench) {
    int width = 10;
    for (int i = 0; i < bench->options.losses; i++)
        width = (int)strlen(bench->options.loss[i]) > width ? (int)strlen(bench->options.loss[i]) : width;
    return width;
}

static void print_column_names(int width) {
    printf("\n%-*s %-8s %-5s %10s %11s %11s %7s\n", width, "loss", "mode", "type", "elements", "ours GB/s",
           "limit GB/s", "share");
}

static void print_line(int width, const point *ours, const point *limit) {
    char count[24];
    printf("%-*s %-8s %-5s %10s %11.1f %11.1f %5.0f %%\n", width, ours->loss, ours->mode, ours->type,
           write_count(count, ours->elements), ours->gbps, limit->gbps, 100 * ours->gbps / limit->gbps);
}

/* The points from `first` on, which come in pairs, by loss: a loss's sizes one after the other. */
static void print_block(const bench *bench, size_t first) {
    const int width = name_width(bench);
    print_column_names(width);
    for (int loss = 0; loss < bench->options.losses; loss++)
        for (size_t i = first; i < bench->record.points; i += 2)
            if (strcmp(bench->record.point[i].loss, bench->options.loss[loss]) == 0)
                print_line(width, &bench->record.point[i], &bench->record.point[i + 1]);
    fflush(stdout);
}

/* Of the largest size of each loss, mode and type: small arrays are limited by other things than memory. */
static void print_summary(const record *record) {
    double least = 0, most = 0;
    int64_t largest = 0;
    for (size_t i = 0; i < record->points; i++)
        largest = record->point[i].elements > largest ? record->point[i].elements : largest;
    for (size_t i = 0; i < record->points; i += 2) {
        const double share = 100 * record->point[i].gbps / record->point[i + 1].gbps;
        if (record->point[i].elements != largest)
            continue;
        least = least == 0 || share < least ? share : least;
        most = share > most ? share : most;
    }
    char count[24];
    printf("\nat %s elements the share of the limit is from %.0f to %.0f %%\n", write_count(count, largest), least,
           most);
}

/* ------------------------------------------------------------------------- the measuring -- */

static point make_point(const char *series, const bench_group *group, int loss, double seconds) {
    point point = {
        .elements = group->count, .bytes = bench_bytes(group->dtype, group->mode, group->count), .seconds = seconds};
    point.gbps = 1e-9 * point.bytes / seconds;
    snprintf(point.series, sizeof point.series, "%s", series);
    snprintf(point.loss, sizeof point.loss, "%s", group->loss[loss]);
    snprintf(point.mode, sizeof point.mode, "%s", bench_mode_name(group->mode));
    snprintf(point.type, sizeof point.type, "%s", dtype_name(group->dtype));
    return point;
}

/* One size: a pair of points for each loss. */
static bool measure_group(bench *bench, const bench_group *group, problem *problem) {
    double seconds[BENCH_MOST_LOSSES + 1];
    if (!bench->device->measure(group, seconds, problem))
        return false;
    for (int i = 0; i < group->losses; i++) {
        const point ours = make_point("onepass", group, i, seconds[i]),
                    limit = make_point(RECORD_LIMIT, group, i, seconds[group->losses]);
        if (!record_add(&bench->record, &ours, problem) || !record_add(&bench->record, &limit, problem))
            return false;
    }
    return true;
}

/* On a terminal only; the next one overwrites it. */
static void show_progress(const bench_group *group) {
    char count[24];
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[Kmeasuring %s, %s, %s elements", dtype_name(group->dtype), bench_mode_name(group->mode),
                write_count(count, group->count));
}

static void hide_progress(void) {
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

/* One type and mode: all sizes, and their part of the table. */
static bool measure_block(bench *bench, int type, bench_mode mode, problem *problem) {
    bench_group group = {.dtype = bench->options.dtype[type], .mode = mode, .losses = bench->options.losses};
    memcpy(group.loss, bench->options.loss, sizeof group.loss);
    int64_t sizes[MOST_SIZES];
    const int count = list_sizes(bench->options.least, bench->most[type], sizes);
    const size_t first = bench->record.points;
    bool is_done = true;
    for (int i = 0; is_done && i < count; i++) {
        group.count = sizes[i];
        show_progress(&group);
        is_done = measure_group(bench, &group, problem);
    }
    hide_progress();
    if (is_done)
        print_block(bench, first);
    return is_done;
}

static bool measure_all(bench *bench, problem *problem) {
    const bench_options *options = &bench->options;
    if (!bench->device->allocate(arrays_needed(options), largest_array(bench), problem))
        return false;
    for (int type = 0; type < options->dtypes; type++) {
        if (!bench->device->fill(options->dtype[type], bench->most[type], problem))
            return false;
        for (int mode = 0; mode < options->modes; mode++)
            if (!measure_block(bench, type, options->mode[mode], problem))
                return false;
    }
    print_summary(&bench->record);
    return true;
}

static bool measure(bench *bench, problem *problem) {
    bench->device = bench->options.on_gpu ? &bench_gpu : &bench_cpu;
    if (!bench->device->open(bench->options.gpu, bench->options.threads, problem))
        return false;
    describe(bench);
    print_heading(&bench->record);
    return fit_memory(bench, problem) && measure_all(bench, problem);
}

/* --------------------------------------------------------------------------- the command -- */

static int write_json(const bench *bench) {
    const char *name = bench->options.json;
    problem problem;
    if (!name)
        return RIGHT;
    if (!record_write(&bench->record, name, &problem))
        return complain(FAILED, "%s: %s", name, problem.text);
    printf("written to %s\n", name);
    return RIGHT;
}

static int write_plot(const bench *bench) {
    const char *name = bench->options.plot;
    problem problem;
    if (!name)
        return RIGHT;
    if (!plot_write(&bench->record, name, &problem))
        return complain(FAILED, "%s: %s", name, problem.text);
    printf("drawn in %s\n", name);
    return RIGHT;
}

static int write_files(const bench *bench) {
    stop_prepare();
    int status = write_json(bench);
    if (status == RIGHT)
        status = write_plot(bench);
    stop_finish();
    return status;
}

/* Whether the files can be written, before anything is measured. */
static int check_files(const bench_options *options) {
    const char *const names[] = {options->json, options->plot};
    problem problem;
    for (int i = 0; i < 2; i++)
        if (names[i] && !replacement_is_possible(names[i], &problem))
            return complain(WRONG, "%s: %s", names[i], problem.text);
    if (options->json && options->plot && is_one_file(options->json, options->plot))
        return complain(WRONG, "%s: is named by --json and by --plot; expected two files", options->plot);
    return RIGHT;
}

int bench_command(int argc, char **argv) {
    static bench bench;
    problem problem;
    if (!bench_options_parse(&bench.options, argc, argv, &problem))
        return complain(WRONG, "%s", problem.text);
    if (bench.options.help) {
        bench_help();
        return close_output();
    }
    int status = check_files(&bench.options);
    if (status != RIGHT)
        return status;
    const bool is_measured = measure(&bench, &problem);
    bench.device->close();
    status = is_measured ? write_files(&bench) : complain(FAILED, "%s", problem.text);
    record_end(&bench.record);
    return status == RIGHT ? close_output() : status;
}
