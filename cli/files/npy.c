/*
 * The header of a .npy file, read and written. What stands in it was specified with NumPy:
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
 *
 * The dictionary is a Python literal, but one of three keys with a string, a truth value and a tuple of integers; so it
 * is read as just that, byte by byte, and everything else is refused where it stands. All places in messages are
 * counted from the beginning of the file.
 */
#include "npy.h"

#include <stdio.h>
#include <string.h>

static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

enum {
    MULTIPLE = 64,     /* of bytes, to which NumPy fills up a header */
    SHOWN = 40,        /* characters of a string from the file in a message */
    SPARE_DIGITS = 21, /* which NumPy leaves room for, so that the first extent can grow in place */
};

/* ---------------------------------------------------------------- the dictionary's bytes -- */

/* The file's beginning, up to the end of the header, and how far it has been read. */
typedef struct cursor {
    const unsigned char *text;
    size_t size;
    size_t at;
    problem *problem;
} cursor;

/* A string without its quotes. */
typedef struct slice {
    const char *text;
    int size;
} slice;

static bool slice_is(slice slice, const char *text) {
    return strlen(text) == (size_t)slice.size && memcmp(slice.text, text, (size_t)slice.size) == 0;
}

static int shown(slice slice) {
    return slice.size < SHOWN ? slice.size : SHOWN;
}

static bool refuse(cursor *cursor, const char *expected) {
    problem place = {""};
    fail_expected(&place, expected, cursor->text, cursor->size, cursor->at, 0);
    return fail(cursor->problem, "its header is not a dictionary as NumPy writes it: %.400s", place.text);
}

/* Behind the end there is a byte that nothing expects. */
static int next_byte(const cursor *cursor) {
    return cursor->at < cursor->size ? cursor->text[cursor->at] : -1;
}

static void pass_space(cursor *cursor) {
    while (next_byte(cursor) > 0 && strchr(" \t\n\r\f", next_byte(cursor)) != NULL)
        cursor->at++;
}

/* Passes white space, and this byte if it follows. */
static bool pass(cursor *cursor, char byte) {
    pass_space(cursor);
    const bool found = next_byte(cursor) == byte;
    cursor->at += found;
    return found;
}

static bool read_string(cursor *cursor, const char *expected, slice *slice) {
    pass_space(cursor);
    const int quote = next_byte(cursor);
    if (quote != '\'' && quote != '"')
        return refuse(cursor, expected);
    const size_t begin = ++cursor->at;
    for (; next_byte(cursor) != quote; cursor->at++)
        if (next_byte(cursor) < ' ' || next_byte(cursor) > '~' || next_byte(cursor) == '\\')
            return refuse(cursor, "a plain character or the string's closing quote");
    if (cursor->at - begin > INT16_MAX) {
        cursor->at = begin;
        return refuse(cursor, "a shorter string");
    }
    slice->text = (const char *)cursor->text + begin;
    slice->size = (int)(cursor->at++ - begin);
    return true;
}

static bool read_boolean(cursor *cursor, bool *boolean) {
    pass_space(cursor);
    const size_t left = cursor->size - cursor->at;
    const char *words[] = {"False", "True"};
    for (int i = 0; i < 2; i++) {
        const size_t length = strlen(words[i]);
        if (left >= length && memcmp(cursor->text + cursor->at, words[i], length) == 0) {
            *boolean = i == 1;
            cursor->at += length;
            return true;
        }
    }
    return refuse(cursor, "True or False");
}

static bool is_digit(int byte) {
    return byte >= '0' && byte <= '9';
}

/* A decimal integer, as Python 3 or 2 writes it: "12", "12L". A negative one is read, to be refused by its name. */
static bool read_extent(cursor *cursor, int64_t *extent) {
    const bool negative = pass(cursor, '-');
    if (!is_digit(next_byte(cursor)))
        return refuse(cursor, "an integer or ')'");
    if (next_byte(cursor) == '0' && cursor->at + 1 < cursor->size && is_digit(cursor->text[cursor->at + 1]))
        return refuse(cursor, "an integer without leading zeros");
    for (*extent = 0; is_digit(next_byte(cursor)); cursor->at++) {
        const int digit = next_byte(cursor) - '0';
        if (__builtin_mul_overflow(*extent, 10, extent) || __builtin_add_overflow(*extent, digit, extent))
            return fail(cursor->problem, "its shape is absurd: an extent before byte %llu does not fit into 63 bits",
                        (unsigned long long)cursor->at);
    }
    cursor->at += next_byte(cursor) == 'L';
    if (negative)
        *extent = -*extent;
    return true;
}

/* A tuple of integers. Of more than a layout can hold the number is found out, for the message. */
static bool read_shape(cursor *cursor, layout *layout) {
    if (!pass(cursor, '('))
        return refuse(cursor, "'(' of the shape");
    int64_t count = 0;
    while (!pass(cursor, ')')) {
        int64_t extent = 0;
        if (!read_extent(cursor, &extent))
            return false;
        if (count < ONEPASS_MAX_DIMENSIONS)
            layout->shape[count] = extent;
        count++;
        if (pass(cursor, ','))
            continue;
        if (next_byte(cursor) != ')' || count == 1)
            return refuse(cursor, count == 1 ? "','" : "',' or ')'");
    }
    if (count > ONEPASS_MAX_DIMENSIONS)
        return fail(cursor->problem, "has %lld dimensions, and at most %d can be read", (long long)count,
                    ONEPASS_MAX_DIMENSIONS);
    layout->ndim = (int32_t)count;
    return true;
}

/* ---------------------------------------------------------------- the three keys -- */

enum {
    DESCR,
    FORTRAN_ORDER,
    SHAPE,
    KEYS
};
static const char *const keys[KEYS] = {"descr", "fortran_order", "shape"};

typedef struct dictionary {
    bool has[KEYS];
    slice descr;
    bool fortran;
} dictionary;

static bool read_descr(cursor *cursor, slice *descr) {
    pass_space(cursor);
    if (next_byte(cursor) == '[' || next_byte(cursor) == '(')
        return fail(cursor->problem,
                    "has a structured type, with fields or sub-arrays; an array of plain numbers is expected");
    return read_string(cursor, "the type as a string", descr);
}

static bool read_member(cursor *cursor, dictionary *dictionary, layout *layout) {
    slice name = {0};
    if (!read_string(cursor, "a key in quotes or '}'", &name))
        return false;
    int key = 0;
    while (key < KEYS && !slice_is(name, keys[key]))
        key++;
    if (key == KEYS)
        return fail(cursor->problem, "its header has the unknown key '%.*s'", shown(name), name.text);
    if (dictionary->has[key])
        return fail(cursor->problem, "its header has the key '%s' twice", keys[key]);
    dictionary->has[key] = true;
    if (!pass(cursor, ':'))
        return refuse(cursor, "':'");
    if (key == DESCR)
        return read_descr(cursor, &dictionary->descr);
    if (key == FORTRAN_ORDER)
        return read_boolean(cursor, &dictionary->fortran);
    return read_shape(cursor, layout);
}

static bool read_dictionary(cursor *cursor, dictionary *dictionary, layout *layout) {
    if (!pass(cursor, '{'))
        return refuse(cursor, "'{'");
    while (!pass(cursor, '}')) {
        if (!read_member(cursor, dictionary, layout))
            return false;
        if (!pass(cursor, ',') && next_byte(cursor) != '}')
            return refuse(cursor, "',' or '}'");
    }
    pass_space(cursor);
    if (cursor->at < cursor->size)
        return refuse(cursor, "nothing but white space");
    for (int key = 0; key < KEYS; key++)
        if (!dictionary->has[key])
            return fail(cursor->problem, "its header has no key '%s'", keys[key]);
    return true;
}

/* ---------------------------------------------------------------- types -- */

/* What an array holds that is not wanted, by the letter of its type. */
static const char *kind_of_type(char letter, purpose purpose) {
    switch (letter) {
    case 'b':
    case '?':
        return "booleans";
    case 'i':
        return suits(ONEPASS_I64, purpose) ? "integers of another size" : "integers";
    case 'u':
        return suits(ONEPASS_U8, purpose) ? "unsigned integers of another size" : "unsigned integers";
    case 'f':
        return suits(ONEPASS_F32, purpose) ? "floating-point numbers of another size" : "floating-point numbers";
    case 'c':
        return "complex numbers";
    case 'O':
        return "Python objects";
    case 'S':
    case 'a':
        return "byte strings";
    case 'U':
        return "strings";
    case 'M':
        return "dates";
    case 'm':
        return "time spans";
    case 'V':
        return "raw bytes";
    }
    return "something unknown";
}

/* The type without its byte order: "f4" of "<f4". */
static slice without_order(slice descr) {
    const bool ordered = descr.size > 0 && strchr("<>=|", descr.text[0]) != NULL;
    return (slice){.text = descr.text + ordered, .size = descr.size - ordered};
}

static bool refuse_type(slice descr, purpose purpose, problem *problem) {
    const slice type = without_order(descr);
    const char *kind = kind_of_type(type.size > 0 ? type.text[0] : ' ', purpose);
    if (purpose == FOR_MASK)
        return fail(problem, "holds %s (type '%.*s'), and b1 (booleans) or u1 (bytes) is expected of a mask", kind,
                    shown(descr), descr.text);
    if (purpose == FOR_LABELS)
        return fail(problem, "holds %s (type '%.*s'), and i8, i4 or u1 is expected of class indices", kind,
                    shown(descr), descr.text);
    if (purpose == FOR_ANY_NUMBERS)
        return fail(problem, "holds %s (type '%.*s'), and f2, f4, f8, V2 (bfloat16), i8, i4 or u1 is expected", kind,
                    shown(descr), descr.text);
    return fail(problem, "holds %s (type '%.*s'), and f2, f4, f8 or V2 (bfloat16) is expected%s", kind, shown(descr),
                descr.text, slice_is(type, "u2") ? "; if they are the bits of bfloat16 numbers, say --bf16" : "");
}

static bool understand_type(slice descr, purpose purpose, layout *layout, problem *problem) {
    static const struct {
        const char *name;
        int32_t dtype;
    } types[] = {{"f2", ONEPASS_F16},  {"f4", ONEPASS_F32},  {"f8", ONEPASS_F64},
                 {"V2", ONEPASS_BF16}, {"b1", ONEPASS_BOOL}, {"u1", ONEPASS_BOOL},
                 {"i8", ONEPASS_I64},  {"i4", ONEPASS_I32},  {"u1", ONEPASS_U8}};
    const slice type = without_order(descr);
    layout->dtype = 0;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (slice_is(type, types[i].name) && suits(types[i].dtype, purpose))
            layout->dtype = types[i].dtype;
    if (slice_is(type, "u2") && purpose == FOR_NUMBERS_OR_BITS)
        layout->dtype = ONEPASS_BF16;
    /* Without an order, or with '=' or '|', NumPy too takes the bytes for the machine's own. */
    const char other_order = machine_is_big_endian() ? '<' : '>';
    layout->swapped = onepass_dtype_size(layout->dtype) > 1 && descr.size > 0 && descr.text[0] == other_order;
    return layout->dtype != 0 || refuse_type(descr, purpose, problem);
}

/* ---------------------------------------------------------------- the file -- */

bool npy_is_meant(const unsigned char *head, size_t size) {
    return size > 0 && memcmp(head, magic, size < sizeof magic ? size : sizeof magic) == 0;
}

/* Finds the dictionary: everything from `at` to `size` of the cursor. */
static bool find_dictionary(cursor *cursor, uint64_t file_size) {
    const unsigned char *head = cursor->text;
    const size_t compared = cursor->size < sizeof magic ? cursor->size : sizeof magic;
    if (compared == 0 || memcmp(head, magic, compared) != 0)
        return fail(cursor->problem, "is not a .npy file: it does not begin with the byte 0x93 and NUMPY");
    const bool has_version = cursor->size >= sizeof magic + 2;
    const int major = has_version ? head[6] : 1, minor = has_version ? head[7] : 0;
    if (major < 1 || major > 3 || minor != 0)
        return fail(cursor->problem, "has version %d.%d of the .npy format; 1.0, 2.0 and 3.0 can be read", major,
                    minor);
    const size_t length_bytes = major == 1 ? 2 : 4, begin = sizeof magic + 2 + length_bytes;
    if (cursor->size < begin)
        return fail(cursor->problem, "its header is cut short: it has %zu bytes, and even the length takes %zu",
                    cursor->size, begin);
    uint64_t length = 0;
    for (size_t i = length_bytes; i-- > 0;)
        length = length << 8 | head[begin - length_bytes + i];
    if (length > file_size - begin)
        return fail(cursor->problem,
                    "its header is cut short: it should have %llu bytes from byte %zu on, "
                    "and the file ends after %llu of them",
                    (unsigned long long)length, begin, (unsigned long long)(file_size - begin));
    if (length > cursor->size - begin)
        return fail(cursor->problem, "its header is too long: %llu bytes", (unsigned long long)length);
    cursor->at = begin;
    cursor->size = begin + (size_t)length;
    return true;
}

static bool check_length(const layout *layout, slice type, uint64_t file_size, problem *problem) {
    const uint64_t needed = (uint64_t)layout->count * onepass_dtype_size(layout->dtype);
    const uint64_t there = file_size - layout->offset;
    char shape[256];
    write_shape(shape, sizeof shape, layout->ndim, layout->shape);
    if (there < needed)
        return fail(problem,
                    "is cut short: shape %s of %.*s needs %llu bytes of data after the header, and %llu are there",
                    shape, type.size, type.text, (unsigned long long)needed, (unsigned long long)there);
    if (there > needed)
        return fail(problem,
                    "is too long: shape %s of %.*s needs %llu bytes of data after the header, and %llu more follow",
                    shape, type.size, type.text, (unsigned long long)needed, (unsigned long long)(there - needed));
    return true;
}

bool npy_parse(const unsigned char *head, size_t size, uint64_t file_size, purpose purpose, layout *layout,
               problem *problem) {
    cursor cursor = {.text = head, .size = size < file_size ? size : (size_t)file_size, .problem = problem};
    dictionary dictionary = {0};
    if (!find_dictionary(&cursor, file_size) || !read_dictionary(&cursor, &dictionary, layout) ||
        !understand_type(dictionary.descr, purpose, layout, problem) || !count_elements(layout, problem))
        return false;
    layout->offset = cursor.size;
    fill_strides(layout, dictionary.fortran);
    return check_length(layout, without_order(dictionary.descr), file_size, problem);
}

/* ---------------------------------------------------------------- writing -- */

static const char *type_to_write(int32_t dtype) {
    switch (dtype) {
    case ONEPASS_F16:
        return "f2";
    case ONEPASS_BF16:
        return "V2";
    case ONEPASS_F32:
        return "f4";
    case ONEPASS_I64:
        return "i8";
    }
    return "f8";
}

size_t npy_write_header(char header[NPY_MOST_HEADER], int32_t dtype, int32_t ndim, const int64_t *shape) {
    char tuple[512], first[32];
    write_shape(tuple, sizeof tuple, ndim, shape);
    const int digits = ndim > 0 ? snprintf(first, sizeof first, "%lld", (long long)shape[0]) : SPARE_DIGITS;
    const size_t begin = sizeof magic + 4; /* after the version and the length */
    const size_t written = (size_t)snprintf(
        header + begin, NPY_MOST_HEADER - begin, "{'descr': '%c%s', 'fortran_order': False, 'shape': %s, }%*s",
        machine_is_big_endian() ? '>' : '<', type_to_write(dtype), tuple, SPARE_DIGITS - digits, "");
    /* Where the end of line falls on a multiple, NumPy adds a whole one. */
    const size_t unpadded = begin + written + 1;
    const size_t total = unpadded + MULTIPLE - unpadded % MULTIPLE;
    memset(header + begin + written, ' ', total - begin - written);
    header[total - 1] = '\n';
    memcpy(header, magic, sizeof magic);
    header[6] = 1;
    header[7] = 0;
    header[8] = (char)((total - begin) & 0xff);
    header[9] = (char)((total - begin) >> 8);
    return total;
}
