/* What was measured, in memory and to JSON: see record.h. record_read.c has the way back. */
#include "json_write.h"
#include "record.h"
#include "replacement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void record_begin(record *record) {
    memset(record, 0, sizeof *record);
    const time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc))
        strftime(record->date, sizeof record->date, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

void record_end(record *record) {
    free(record->point);
    record->point = NULL;
}

bool record_add(record *record, const point *point, problem *problem) {
    if (record->points == record->room) {
        const size_t room = record->room ? 2 * record->room : 256;
        struct point *larger = realloc(record->point, room * sizeof *larger);
        if (!larger)
            return fail(problem, "there is no memory left");
        record->point = larger;
        record->room = room;
    }
    record->point[record->points++] = *point;
    return true;
}

void record_add_version(record *record, const char *name, const char *version) {
    if (record->versions == RECORD_MOST_VERSIONS)
        return;
    record_version *added = &record->version[record->versions++];
    snprintf(added->name, sizeof added->name, "%s", name);
    snprintf(added->version, sizeof added->version, "%s", version);
}

/* --------------------------------------------------------------------- to JSON -- */

static void write_member(FILE *file, const char *key, const char *text) {
    fprintf(file, "  \"%s\": ", key);
    json_write_string(file, text);
    fputs(",\n", file);
}

static void write_versions(FILE *file, const record *record) {
    fputs("  \"versions\": {", file);
    for (int i = 0; i < record->versions; i++) {
        fputs(i > 0 ? ", " : "", file);
        json_write_string(file, record->version[i].name);
        fputs(": ", file);
        json_write_string(file, record->version[i].version);
    }
    fputs("},\n", file);
}

static void write_point(FILE *file, const point *point) {
    fputs("    {\"series\": ", file);
    json_write_string(file, point->series);
    fputs(", \"loss\": ", file);
    json_write_string(file, point->loss);
    fputs(", \"mode\": ", file);
    json_write_string(file, point->mode);
    fputs(", \"type\": ", file);
    json_write_string(file, point->type);
    fprintf(file, ", \"elements\": %lld, \"bytes\": %.0f, \"seconds\": %.6g, \"gbps\": %.6g}",
            (long long)point->elements, point->bytes, point->seconds, point->gbps);
}

bool record_write(const record *record, const char *name, problem *problem) {
    replacement file;
    if (!replacement_begin(&file, name, problem))
        return false;
    fputs("{\n", file.stream);
    write_member(file.stream, "command", record->command);
    write_member(file.stream, "date", record->date);
    write_member(file.stream, "hardware", record->hardware);
    write_member(file.stream, "device", record->device);
    write_member(file.stream, "engine", record->engine);
    write_member(file.stream, "sources", record->sources);
    if (record->threads > 0)
        fprintf(file.stream, "  \"threads\": %d,\n", (int)record->threads);
    if (record->instruction_set[0])
        write_member(file.stream, "instruction_set", record->instruction_set);
    write_versions(file.stream, record);
    write_member(file.stream, "limit", record->limit);
    fputs("  \"points\": [\n", file.stream);
    for (size_t i = 0; i < record->points; i++) {
        write_point(file.stream, &record->point[i]);
        fputs(i + 1 < record->points ? ",\n" : "\n", file.stream);
    }
    fputs("  ]\n}\n", file.stream);
    return replacement_finish(&file, problem);
}
