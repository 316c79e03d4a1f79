/*
 * The header of a safetensors file, checked as its format demands (https://github.com/huggingface/safetensors):
 * tensors that neither overlap nor leave holes, each of the size that its shape and type need.
 *
 * A header may have a hundred thousand tensors, or a few million where somebody means harm. So it is read once, the
 * places of the tensors are kept (40 bytes each), and what concerns all of them is found out by sorting.
 */
#include "safetensors.h"

#include "json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LENGTH_BYTES = 8,
    SHOWN = 64,          /* bytes of a name in a message, with the null byte */
    SHOWN_TOGETHER = 280 /* and of a list of names */
};

/* Those of the format of which arrays can be read here have a dtype, or one for each purpose. */
static const struct element_type {
    const char *name;
    int32_t bits;
    int32_t dtype, other_dtype;
} element_types[] = {
    {"F64", 64, ONEPASS_F64, 0},
    {"F32", 32, ONEPASS_F32, 0},
    {"F16", 16, ONEPASS_F16, 0},
    {"BF16", 16, ONEPASS_BF16, 0},
    {"I64", 64, ONEPASS_I64, 0},
    {"I32", 32, ONEPASS_I32, 0},
    {"I16", 16, 0, 0},
    {"I8", 8, 0, 0},
    {"U64", 64, 0, 0},
    {"U32", 32, 0, 0},
    {"U16", 16, 0, 0},
    {"U8", 8, ONEPASS_BOOL, ONEPASS_U8},
    {"BOOL", 8, ONEPASS_BOOL, 0},
    {"C64", 64, 0, 0},
    {"F8_E4M3", 8, 0, 0},
    {"F8_E5M2", 8, 0, 0},
    {"F8_E8M0", 8, 0, 0},
    {"F8_E4M3FNUZ", 8, 0, 0},
    {"F8_E5M2FNUZ", 8, 0, 0},
    {"F6_E2M3", 6, 0, 0},
    {"F6_E3M2", 6, 0, 0},
    {"F4", 4, 0, 0},
};

/* What the header says of a tensor. Its bytes are counted from the end of the header. */
typedef struct tensor {
    json_string name;
    json_string type;
    int64_t ndim;                          /* may be more than are kept */
    int64_t shape[ONEPASS_MAX_DIMENSIONS]; /* the first ones */
    int64_t count;                         /* of elements; 0 if an extent is, whatever the others */
    bool absurd;                           /* so many that they cannot be counted */
    int64_t begin, end;
} tensor;

/* What is kept of every tensor. */
typedef struct place {
    json_string name;
    int64_t begin, end;
} place;

typedef struct catalog {
    json reader;
    problem *problem;
    uint64_t data_bytes; /* of all tensors together */
    const char *wanted;  /* null: the only one */
    tensor found;        /* the one that is wanted, if there is one */
    bool is_found;
    place *places;
    size_t count, room;
} catalog;

/* ---------------------------------------------------------------- sentences -- */

/* Cut short where it is long, and without what would move a terminal's cursor: a file may come from anywhere. */
static void write_name(char *text, size_t size, json_string name) {
    const size_t whole = json_copy(name, text, size - 3);
    const size_t kept = strlen(text);
    for (size_t i = 0; i < kept; i++) {
        /* U+0080 to U+009F are two bytes and control a terminal too. */
        const unsigned char byte = (unsigned char)text[i], next = (unsigned char)text[i + 1];
        const bool wide = byte == 0xc2 && next < 0xa0;
        if (byte < ' ' || byte == 0x7f || wide)
            text[i] = '?';
        if (wide)
            text[i + 1] = '?';
    }
    if (kept < whole)
        memcpy(text + kept, "...", 4);
}

__attribute__((format(printf, 3, 4))) static bool fail_tensor(const catalog *catalog, json_string name,
                                                              const char *format, ...) {
    char shown[SHOWN], text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    write_name(shown, sizeof shown, name);
    return fail(catalog->problem, "its tensor '%s' %s", shown, text);
}

/* The reader's own sentence becomes the file's. */
static bool cannot_read(const catalog *catalog) {
    return fail(catalog->problem, "its header is not as it should be: %.400s", catalog->reader.problem.text);
}

/* "'a', 'b', 'c' and 12 more". */
static void write_names(char text[SHOWN_TOGETHER], const catalog *catalog) {
    size_t used = 0, shown = 0;
    text[0] = '\0';
    for (; shown < catalog->count; shown++) {
        char name[SHOWN];
        write_name(name, sizeof name, catalog->places[shown].name);
        if (used + strlen(name) + sizeof ", '' and 100000000 more" > SHOWN_TOGETHER)
            break;
        used += (size_t)snprintf(text + used, SHOWN_TOGETHER - used, "%s'%s'", shown > 0 ? ", " : "", name);
    }
    if (shown < catalog->count)
        snprintf(text + used, SHOWN_TOGETHER - used, " and %zu more", catalog->count - shown);
}

/* ---------------------------------------------------------------- one tensor -- */

static bool read_extents(catalog *catalog, tensor *tensor) {
    bool empty = false;
    tensor->count = 1;
    if (!json_enter_array(&catalog->reader))
        return cannot_read(catalog);
    for (; json_next_element(&catalog->reader); tensor->ndim++) {
        int64_t extent;
        if (!json_read_integer(&catalog->reader, &extent))
            return cannot_read(catalog);
        if (extent < 0)
            return fail_tensor(catalog, tensor->name, "has a negative extent");
        if (tensor->ndim < ONEPASS_MAX_DIMENSIONS)
            tensor->shape[tensor->ndim] = extent;
        empty |= extent == 0;
        tensor->absurd =
            tensor->absurd || (extent > 0 && __builtin_mul_overflow(tensor->count, extent, &tensor->count));
    }
    if (empty) {
        tensor->count = 0;
        tensor->absurd = false;
    }
    return !catalog->reader.failed || cannot_read(catalog);
}

static bool read_offsets(catalog *catalog, tensor *tensor) {
    json *reader = &catalog->reader;
    bool more = false;
    if (!json_enter_array(reader) || !json_next_element(reader) || !json_read_integer(reader, &tensor->begin) ||
        !json_next_element(reader) || !json_read_integer(reader, &tensor->end) || (more = json_next_element(reader)))
        return reader->failed
                   ? cannot_read(catalog)
                   : fail_tensor(catalog, tensor->name, "must have two data_offsets, not %s", more ? "more" : "fewer");
    return !reader->failed || cannot_read(catalog);
}

enum {
    DTYPE,
    SHAPE,
    OFFSETS,
    KEYS
};
static const char *const keys[KEYS] = {"dtype", "shape", "data_offsets"};

/* The reader stands before a key's value. `has` says which keys the tensor has had. */
static bool read_member(catalog *catalog, json_string name, tensor *tensor, bool has[KEYS]) {
    int key = 0;
    while (key < KEYS && !json_equals(name, keys[key]))
        key++;
    if (key == KEYS) {
        char shown[SHOWN];
        write_name(shown, sizeof shown, name);
        return fail_tensor(catalog, tensor->name, "has the unknown key '%s'", shown);
    }
    if (has[key])
        return fail_tensor(catalog, tensor->name, "has the key '%s' twice", keys[key]);
    has[key] = true;
    if (key == DTYPE)
        return json_read_string(&catalog->reader, &tensor->type) || cannot_read(catalog);
    return key == SHAPE ? read_extents(catalog, tensor) : read_offsets(catalog, tensor);
}

static bool read_tensor(catalog *catalog, tensor *tensor) {
    bool has[KEYS] = {false};
    json_string key;
    if (!json_enter_object(&catalog->reader))
        return cannot_read(catalog);
    while (json_next_member(&catalog->reader, &key))
        if (!read_member(catalog, key, tensor, has))
            return false;
    if (catalog->reader.failed)
        return cannot_read(catalog);
    for (int i = 0; i < KEYS; i++)
        if (!has[i])
            return fail_tensor(catalog, tensor->name, "has no key '%s'", keys[i]);
    return true;
}

static const struct element_type *find_type(json_string name) {
    for (size_t i = 0; i < sizeof element_types / sizeof *element_types; i++)
        if (json_equals(name, element_types[i].name))
            return &element_types[i];
    return NULL;
}

static bool check_place(const catalog *catalog, const tensor *tensor) {
    if (tensor->begin < 0 || tensor->end < tensor->begin)
        return fail_tensor(catalog, tensor->name, "has the data_offsets [%lld, %lld], which are not in order from 0 on",
                           (long long)tensor->begin, (long long)tensor->end);
    if ((uint64_t)tensor->end > catalog->data_bytes)
        return fail_tensor(catalog, tensor->name, "ends at byte %lld of the data, of which the file has %llu",
                           (long long)tensor->end, (unsigned long long)catalog->data_bytes);
    return true;
}

/* A type that nobody here has heard of may have any size: the format grows. */
static bool check_size(const catalog *catalog, const tensor *tensor) {
    const struct element_type *type = find_type(tensor->type);
    if (type == NULL)
        return true;
    char shape[256];
    if (tensor->ndim <= ONEPASS_MAX_DIMENSIONS)
        write_shape(shape, sizeof shape, (int32_t)tensor->ndim, tensor->shape);
    else
        snprintf(shape, sizeof shape, "with %lld dimensions", (long long)tensor->ndim);
    int64_t bits;
    if (tensor->absurd || __builtin_mul_overflow(tensor->count, type->bits, &bits))
        return fail_tensor(catalog, tensor->name, "is absurd: the size of its shape %s does not fit into 63 bits",
                           shape);
    if (bits % 8 != 0)
        return fail_tensor(catalog, tensor->name,
                           "is absurd: its shape %s of %s needs %lld bits, which are no whole bytes", shape, type->name,
                           (long long)bits);
    const int64_t bytes = tensor->end - tensor->begin;
    return bits / 8 == bytes || fail_tensor(catalog, tensor->name, "has %lld bytes, and its shape %s of %s needs %lld",
                                            (long long)bytes, shape, type->name, (long long)bits / 8);
}

/* ---------------------------------------------------------------- all tensors -- */

static bool keep_place(catalog *catalog, const tensor *tensor) {
    if (catalog->count == catalog->room) {
        const size_t room = catalog->room > 0 ? 2 * catalog->room : 64;
        place *places = realloc(catalog->places, room * sizeof *places);
        if (places == NULL)
            return fail(catalog->problem, "has so many tensors that they do not fit into memory");
        catalog->places = places;
        catalog->room = room;
    }
    catalog->places[catalog->count++] = (place){.name = tensor->name, .begin = tensor->begin, .end = tensor->end};
    return true;
}

/* An object of strings, which nobody here looks at. */
static bool read_metadata(catalog *catalog) {
    json_string key, value;
    if (!json_enter_object(&catalog->reader))
        return cannot_read(catalog);
    while (json_next_member(&catalog->reader, &key))
        json_read_string(&catalog->reader, &value);
    return !catalog->reader.failed || cannot_read(catalog);
}

static bool read_header(catalog *catalog) {
    bool has_metadata = false;
    json_string name;
    if (!json_enter_object(&catalog->reader))
        return cannot_read(catalog);
    while (json_next_member(&catalog->reader, &name)) {
        if (json_equals(name, "__metadata__")) {
            if (has_metadata)
                return fail(catalog->problem, "its header has __metadata__ twice");
            has_metadata = true;
            if (!read_metadata(catalog))
                return false;
            continue;
        }
        tensor tensor = {.name = name};
        if (!read_tensor(catalog, &tensor) || !check_place(catalog, &tensor) || !check_size(catalog, &tensor) ||
            !keep_place(catalog, &tensor))
            return false;
        if (catalog->wanted == NULL || json_equals(name, catalog->wanted)) {
            catalog->found = tensor;
            catalog->is_found = true;
        }
    }
    return json_close(&catalog->reader) || cannot_read(catalog);
}

static int by_place(const void *left, const void *right) {
    const place *a = left, *b = right;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return (a->end > b->end) - (a->end < b->end);
}

static int by_name(const void *left, const void *right) {
    const place *a = left, *b = right;
    return json_compare(a->name, b->name);
}

static void sort(catalog *catalog, int (*compare)(const void *, const void *)) {
    if (catalog->count > 1)
        qsort(catalog->places, catalog->count, sizeof *catalog->places, compare);
}

/* Every byte of the data belongs to one tensor. */
static bool check_cover(catalog *catalog) {
    int64_t covered = 0;
    sort(catalog, by_place);
    for (size_t i = 0; i < catalog->count; i++) {
        const place *here = &catalog->places[i];
        if (here->begin > covered)
            return fail_tensor(catalog, here->name,
                               "begins at byte %lld of the data, and no tensor has those before it, from %lld on",
                               (long long)here->begin, (long long)covered);
        if (here->begin < covered) {
            char before[SHOWN];
            write_name(before, sizeof before, here[-1].name);
            return fail_tensor(catalog, here->name, "overlaps '%s', which ends at byte %lld, by beginning at %lld",
                               before, (long long)covered, (long long)here->begin);
        }
        covered = here->end;
    }
    if ((uint64_t)covered < catalog->data_bytes)
        return fail(catalog->problem, "is too long: its tensors end at byte %lld of the data, and %llu more follow",
                    (long long)covered, (unsigned long long)(catalog->data_bytes - (uint64_t)covered));
    return true;
}

/* Leaves the tensors in the order of their names, in which messages list them. */
static bool check_names(catalog *catalog) {
    sort(catalog, by_name);
    for (size_t i = 1; i < catalog->count; i++)
        if (json_compare(catalog->places[i - 1].name, catalog->places[i].name) == 0)
            return fail_tensor(catalog, catalog->places[i].name, "is there twice");
    return true;
}

/* ---------------------------------------------------------------- the tensor that is wanted -- */

static bool check_choice(const catalog *catalog) {
    char names[SHOWN_TOGETHER];
    write_names(names, catalog);
    if (catalog->count == 0)
        return fail(catalog->problem, "has no tensors");
    if (catalog->wanted == NULL && catalog->count > 1)
        return fail(catalog->problem, "has %zu tensors, of which one must be named after a colon: %s", catalog->count,
                    names);
    if (!catalog->is_found)
        return fail(catalog->problem, "has no tensor '%.64s'; it has %s", catalog->wanted, names);
    return true;
}

/* 0 if the type is not known, or nothing for the purpose. */
static int32_t dtype_for(const struct element_type *type, purpose purpose) {
    if (!type)
        return 0;
    return suits(type->dtype, purpose) ? type->dtype : suits(type->other_dtype, purpose) ? type->other_dtype : 0;
}

static bool describe(const catalog *catalog, purpose purpose, layout *layout) {
    const tensor *tensor = &catalog->found;
    const struct element_type *type = find_type(tensor->type);
    layout->dtype = dtype_for(type, purpose);
    if (layout->dtype == 0) {
        char name[SHOWN];
        write_name(name, sizeof name, tensor->type);
        return fail_tensor(catalog, tensor->name, "is of type %s, and %s is expected", name,
                           purpose == FOR_MASK          ? "BOOL or U8, for a mask,"
                           : purpose == FOR_LABELS      ? "I64, I32 or U8, for class indices,"
                           : purpose == FOR_ANY_NUMBERS ? "F16, BF16, F32, F64, I64, I32 or U8"
                                                        : "F16, BF16, F32 or F64");
    }
    if (tensor->ndim > ONEPASS_MAX_DIMENSIONS)
        return fail_tensor(catalog, tensor->name, "has %lld dimensions, and at most %d can be read",
                           (long long)tensor->ndim, ONEPASS_MAX_DIMENSIONS);
    layout->swapped = machine_is_big_endian() && onepass_dtype_size(layout->dtype) > 1;
    layout->ndim = (int32_t)tensor->ndim;
    memcpy(layout->shape, tensor->shape, sizeof layout->shape);
    if (!count_elements(layout, catalog->problem))
        return false;
    fill_strides(layout, false);
    layout->offset = catalog->reader.origin + catalog->reader.size + (uint64_t)tensor->begin;
    return true;
}

/* ---------------------------------------------------------------- the file -- */

static uint64_t read_length(const unsigned char *head) {
    uint64_t length = 0;
    for (int i = LENGTH_BYTES; i-- > 0;)
        length = length << 8 | head[i];
    return length;
}

bool safetensors_is_meant(const unsigned char *head, size_t size) {
    return size > LENGTH_BYTES && head[LENGTH_BYTES] == '{' && read_length(head) <= UINT32_MAX;
}

static bool find_header(const unsigned char *head, size_t size, uint64_t file_size, size_t *length, problem *problem) {
    if (size < LENGTH_BYTES)
        return fail(problem, "its header is cut short: it has %zu bytes, and even the length takes %d", size,
                    LENGTH_BYTES);
    const uint64_t promised = read_length(head), there = file_size - LENGTH_BYTES;
    if (promised > SAFETENSORS_MOST_HEADER)
        return fail(problem, "its header is too long: %llu bytes, and at most %d are allowed",
                    (unsigned long long)promised, SAFETENSORS_MOST_HEADER);
    if (promised == 0 || (size > LENGTH_BYTES && head[LENGTH_BYTES] != '{'))
        return fail(problem, "its header does not begin with a brace at byte %d", LENGTH_BYTES);
    if (promised > there)
        return fail(problem, "its header is cut short: it should have %llu bytes, and the file ends after %llu of them",
                    (unsigned long long)promised, (unsigned long long)there);
    if (promised > size - LENGTH_BYTES)
        return fail(problem, "its header is too long: %llu bytes", (unsigned long long)promised);
    *length = (size_t)promised;
    return true;
}

bool safetensors_parse(const unsigned char *head, size_t size, uint64_t file_size, const char *name, purpose purpose,
                       layout *layout, problem *problem) {
    size_t length = 0;
    if (size > file_size)
        size = (size_t)file_size;
    if (!find_header(head, size, file_size, &length, problem))
        return false;
    catalog catalog = {.problem = problem, .data_bytes = file_size - LENGTH_BYTES - length, .wanted = name};
    json_open(&catalog.reader, head + LENGTH_BYTES, length, LENGTH_BYTES);
    const bool good = read_header(&catalog) && check_cover(&catalog) && check_names(&catalog) &&
                      check_choice(&catalog) && describe(&catalog, purpose, layout);
    free(catalog.places);
    return good;
}
