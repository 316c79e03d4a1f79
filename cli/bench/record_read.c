/* From JSON to what was measured: see record.h. */
#include "json.h"
#include "record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- the whole file -- */

enum {
    MOST_BYTES = 64 << 20 /* no run measures so much */
};

/* The text is the caller's to free. */
static char *read_whole(const char *name, size_t *size, problem *problem) {
    FILE *file = fopen(name, "rb");
    char *text = file ? malloc(MOST_BYTES + 1) : NULL;
    if (text) {
        *size = fread(text, 1, MOST_BYTES + 1, file);
        if (ferror(file) || *size > MOST_BYTES) {
            fail(problem, "%s%s", ferror(file) ? "cannot be read: " : "is too large for a file of measurements",
                 ferror(file) ? strerror(errno) : "");
            free(text);
            text = NULL;
        }
    } else {
        fail(problem, "cannot be read: %s", strerror(errno));
    }
    if (file)
        fclose(file);
    return text;
}

/* ------------------------------------------------------------------------ points -- */

/* Where a member of an object goes: a text or a number. */
typedef struct place {
    const char *key;
    char *text;
    size_t size;
    int64_t *integer;
    double *real;
    bool is_needed, is_there;
} place;

#define TEXT(key, member, needed)                                                                                      \
    { key, member, sizeof(member), NULL, NULL, needed, false }

static bool read_place(json *reader, place *place) {
    json_string string;
    place->is_there = true;
    if (place->integer)
        return json_read_integer(reader, place->integer);
    if (place->real)
        return json_read_real(reader, place->real);
    if (!json_read_string(reader, &string))
        return false;
    json_copy(string, place->text, place->size);
    return true;
}

/* Takes a member if it has a place. */
static void read_member(json *reader, json_string key, place *places, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (json_equals(key, places[i].key))
            read_place(reader, &places[i]);
}

static bool read_point(json *reader, point *point, problem *problem) {
    memset(point, 0, sizeof *point);
    place places[] = {TEXT("series", point->series, true),
                      TEXT("loss", point->loss, true),
                      TEXT("mode", point->mode, true),
                      TEXT("type", point->type, true),
                      {.key = "elements", .integer = &point->elements, .is_needed = true},
                      {.key = "gbps", .real = &point->gbps, .is_needed = true},
                      {.key = "bytes", .real = &point->bytes},
                      {.key = "seconds", .real = &point->seconds}};
    json_string key;
    json_enter_object(reader);
    while (json_next_member(reader, &key))
        read_member(reader, key, places, sizeof places / sizeof *places);
    for (size_t i = 0; !reader->failed && i < sizeof places / sizeof *places; i++)
        if (places[i].is_needed && !places[i].is_there)
            return fail(problem, "a point has no \"%s\"", places[i].key);
    if (!reader->failed && (point->elements < 1 || !(point->gbps >= 0)))
        return fail(problem, "a point has %lld elements and %g GB/s", (long long)point->elements, point->gbps);
    return true;
}

static bool read_points(json *reader, record *record, problem *problem) {
    bool is_right = true;
    json_enter_array(reader);
    while (json_next_element(reader)) {
        point point;
        is_right =
            is_right && read_point(reader, &point, problem) && (reader->failed || record_add(record, &point, problem));
    }
    return is_right;
}

static void read_versions(json *reader, record *record) {
    json_string key, string;
    json_enter_object(reader);
    while (json_next_member(reader, &key)) {
        char name[sizeof record->version->name], version[sizeof record->version->version];
        if (json_read_string(reader, &string)) {
            json_copy(key, name, sizeof name);
            json_copy(string, version, sizeof version);
            record_add_version(record, name, version);
        }
    }
}

static bool read_record(json *reader, record *record, problem *problem) {
    int64_t threads = 0;
    bool is_right = true;
    place places[] = {TEXT("command", record->command, false),
                      TEXT("date", record->date, false),
                      TEXT("hardware", record->hardware, false),
                      TEXT("device", record->device, false),
                      TEXT("instruction_set", record->instruction_set, false),
                      TEXT("limit", record->limit, false),
                      {.key = "threads", .integer = &threads}};
    json_string key;
    json_enter_object(reader);
    while (json_next_member(reader, &key))
        if (json_equals(key, "points"))
            is_right = read_points(reader, record, problem) && is_right;
        else if (json_equals(key, "versions"))
            read_versions(reader, record);
        else
            read_member(reader, key, places, sizeof places / sizeof *places);
    record->threads = threads > 0 && threads <= INT32_MAX ? (int32_t)threads : 0;
    return is_right;
}

bool record_read(record *record, const char *name, problem *problem) {
    struct problem inside;
    json reader;
    size_t size = 0;
    memset(record, 0, sizeof *record);
    char *text = read_whole(name, &size, problem);
    if (!text)
        return false;
    json_open(&reader, text, size, 0);
    bool is_right = read_record(&reader, record, &inside);
    if (!json_close(&reader))
        is_right = fail(problem, "is not what \"onepass bench --json\" writes: %s", reader.problem.text);
    else if (!is_right)
        fail(problem, "is not what \"onepass bench --json\" writes: %s", inside.text);
    else if (record->points == 0)
        is_right = fail(problem, "has no points");
    free(text);
    if (!is_right)
        record_end(record);
    return is_right;
}
