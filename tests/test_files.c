/*
 * The parsers of the tool's files: tables of headers that are good, each with the array that it describes, and of
 * headers that are not, each with the words that the sentence about it must have. What is expected was written down
 * from the formats' own documentation: NumPy's numpy.lib.format, safetensors' README, and RFC 8259 for JSON.
 */
#include "../cli/files/json.h"
#include "../cli/files/npy.h"
#include "../cli/files/safetensors.h"

#include <time.h>

#include "check.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---------------------------------------------------------------- files -- */

/* A file's beginning, in a block that ends with it, so that a sanitizer sees who reads on. */
typedef struct file {
    unsigned char *bytes;
    size_t size;
} file;

static void append(file *file, const void *bytes, size_t size) {
    file->bytes = realloc(file->bytes, file->size + size + (file->size + size == 0));
    if (file->bytes == NULL)
        abort();
    memcpy(file->bytes + file->size, bytes, size);
    file->size += size;
}

static void append_number(file *file, uint64_t number, int bytes) {
    for (int i = 0; i < bytes; i++, number >>= 8)
        append(file, &(unsigned char){(unsigned char)number}, 1);
}

static file npy_file(int major, const char *dictionary) {
    file file = {0};
    append(&file, "\x93NUMPY", 6);
    append_number(&file, (uint64_t)major, 2);
    append_number(&file, strlen(dictionary), major == 1 ? 2 : 4);
    append(&file, dictionary, strlen(dictionary));
    return file;
}

static file safetensors_file(const char *header) {
    file file = {0};
    append_number(&file, strlen(header), 8);
    append(&file, header, strlen(header));
    return file;
}

/* ---------------------------------------------------------------- expectations -- */

/* "f32 (3, 4) by (4, 1)": type, shape and strides. */
static void describe(const layout *layout, char *text, size_t size) {
    char shape[200], strides[200];
    write_shape(shape, sizeof shape, layout->ndim, layout->shape);
    write_shape(strides, sizeof strides, layout->ndim, layout->stride);
    snprintf(text, size, "%s %s by %s", dtype_name(layout->dtype), shape, strides);
}

static void check_array(const char *what, bool good, const layout *layout, const problem *problem, const char *expected,
                        bool swapped, uint64_t offset) {
    char text[512];
    if (!CHECK(good, "%s: expected %s, got \"%s\"", what, expected, problem->text))
        return;
    describe(layout, text, sizeof text);
    CHECK(strcmp(text, expected) == 0, "%s: expected %s, got %s", what, expected, text);
    CHECK(layout->swapped == swapped, "%s: expected swapped to be %d", what, swapped);
    CHECK(layout->offset == offset, "%s: expected the data at byte %llu, got %llu", what, (unsigned long long)offset,
          (unsigned long long)layout->offset);
}

/* Whether the text has all of the words, which bars separate. */
static bool has_words(const char *text, const char *words) {
    char word[200];
    while (*words != '\0') {
        const size_t length = strcspn(words, "|");
        snprintf(word, sizeof word, "%.*s", (int)length, words);
        if (strstr(text, word) == NULL)
            return false;
        words += length + (words[length] == '|');
    }
    return true;
}

static void check_refusal(const char *what, bool good, const problem *problem, const char *words) {
    if (CHECK(!good, "%s: expected a refusal", what))
        CHECK(has_words(problem->text, words), "%s: expected a sentence with %s, got \"%s\"", what, words,
              problem->text);
}

/* ---------------------------------------------------------------- .npy -- */

static const struct good_npy {
    const char *dictionary;
    int major;
    char order; /* of the bytes: '<', '>' or '=' for the machine's */
    purpose purpose;
    uint64_t data; /* bytes */
    const char *expected;
} good_npy[] = {
    /* As NumPy writes them. */
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }    \n", 1, '<', FOR_NUMBERS, 48,
     "f32 (3, 4) by (4, 1)"},
    {"{'descr': '<f2', 'fortran_order': False, 'shape': (5,), }\n", 1, '<', FOR_NUMBERS, 10, "f16 (5,) by (1,)"},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (), }\n", 1, '<', FOR_NUMBERS, 8, "f64 () by ()"},
    {"{'descr': '>f8', 'fortran_order': False, 'shape': (2, 3), }\n", 1, '>', FOR_NUMBERS, 48, "f64 (2, 3) by (3, 1)"},
    {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3, 4), }\n", 1, '<', FOR_NUMBERS, 96,
     "f32 (2, 3, 4) by (1, 2, 6)"},
    {"{'descr': '|V2', 'fortran_order': False, 'shape': (3,), }\n", 1, '=', FOR_NUMBERS, 6, "bf16 (3,) by (1,)"},
    {"{'descr': '<V2', 'fortran_order': False, 'shape': (3,), }\n", 1, '<', FOR_NUMBERS, 6, "bf16 (3,) by (1,)"},
    {"{'descr': '>V2', 'fortran_order': False, 'shape': (3,), }\n", 1, '>', FOR_NUMBERS, 6, "bf16 (3,) by (1,)"},
    {"{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }\n", 1, '<', FOR_NUMBERS_OR_BITS, 6,
     "bf16 (3,) by (1,)"},
    {"{'descr': '>u2', 'fortran_order': False, 'shape': (3,), }\n", 1, '>', FOR_NUMBERS_OR_BITS, 6,
     "bf16 (3,) by (1,)"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }\n", 1, '<', FOR_NUMBERS_OR_BITS, 12,
     "f32 (3,) by (1,)"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }\n", 2, '<', FOR_NUMBERS, 48, "f32 (3, 4) by (4, 1)"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }\n", 3, '<', FOR_NUMBERS, 48, "f32 (3, 4) by (4, 1)"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2), }", 1, '<',
     FOR_NUMBERS, 8,
     "f32 (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2) by (2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1)"},

    /* As others may. */
    {"{\"shape\":(3,4),\"fortran_order\":False,\"descr\":\"=f4\"}", 1, '=', FOR_NUMBERS, 48, "f32 (3, 4) by (4, 1)"},
    {" {\t'fortran_order' :\r\n True\f,'descr' : \"f8\" , 'shape' : ( 2 , 3 , ) , } ", 1, '=', FOR_NUMBERS, 48,
     "f64 (2, 3) by (1, 2)"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3L, 4L), }", 1, '<', FOR_NUMBERS, 48, "f32 (3, 4) by (4, 1)"},

    /* Without elements, whatever the other extents. */
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (0,), }", 1, '<', FOR_NUMBERS, 0, "f32 (0,) by (0,)"},
    {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 0, 3), }", 1, '<', FOR_NUMBERS, 0,
     "f32 (2, 0, 3) by (0, 0, 0)"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 0, 2), }", 1, '<', FOR_NUMBERS, 0,
     "f32 (9223372036854775807, 0, 2) by (0, 0, 0)"},

    /* Larger than memory: only the header is looked at. */
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776,), }", 1, '<', FOR_NUMBERS, 8796093022208,
     "f64 (1099511627776,) by (1,)"},

    /* Masks, whose elements have one byte and so no order. */
    {"{'descr': '|b1', 'fortran_order': False, 'shape': (3, 4), }\n", 1, '=', FOR_MASK, 12, "bool (3, 4) by (4, 1)"},
    {"{'descr': '|u1', 'fortran_order': True, 'shape': (3, 4), }\n", 1, '=', FOR_MASK, 12, "bool (3, 4) by (1, 3)"},
    {"{'descr': '>b1', 'fortran_order': False, 'shape': (), }\n", 1, '=', FOR_MASK, 1, "bool () by ()"},
    {"{'descr': 'u1', 'fortran_order': False, 'shape': (0, 4), }\n", 2, '=', FOR_MASK, 0, "bool (0, 4) by (0, 0)"},
};

/* A dictionary of version 1.0, followed by so many bytes. */
static const struct bad_npy {
    const char *what;
    const char *dictionary;
    uint64_t data;
    const char *words;
} bad_npy[] = {
    /* Not a dictionary: bytes are counted from the file's first, and the dictionary begins at 10. */
    {"nothing", "", 0, "dictionary|expected '{' at byte 10|ends"},
    {"white space", " \n", 0, "expected '{' at byte 12"},
    {"a list", "[1]", 0, "expected '{' at byte 10, not '['"},
    {"no key", "{", 0, "expected a key in quotes or '}' at byte 11, where it ends"},
    {"a key without quotes", "{descr: '<f4'}", 0, "expected a key in quotes or '}' at byte 11, not 'd'"},
    {"a key without an end", "{'descr", 0, "closing quote at byte 17, where it ends"},
    {"a key with an escape", "{'d\\x65scr': 1}", 0, "plain character|byte 13, not '\\'"},
    {"a key with a control character", "{'d\x01'}", 0, "plain character|byte 13, not the byte 0x01"},
    {"a key with a letter beyond ASCII", "{'d\xc3\xa9'}", 0, "plain character|byte 13, not the byte 0xc3"},
    {"no colon", "{'descr' '<f4'}", 0, "expected ':' at byte 19, not '''"},
    {"a comma alone", "{,}", 0, "expected a key in quotes or '}' at byte 11, not ','"},
    {"no comma", "{'descr': '<f4' 'shape': ()}", 0, "expected ',' or '}' at byte 26, not '''"},
    {"two commas", "{'descr': '<f4',, 'shape': ()}", 0, "expected a key in quotes or '}' at byte 26, not ','"},
    {"no brace at the end", "{'descr': '<f4', 'fortran_order': False, 'shape': ()", 4, "expected ',' or '}'|ends"},
    {"something behind it", "{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", 4, "white space|'x'"},
    {"null bytes behind it", "{'descr': '<f4', 'fortran_order': False, 'shape': ()}\x01", 4, "white space|0x01"},

    /* Keys. */
    {"no descr", "{'fortran_order': False, 'shape': ()}", 4, "no key 'descr'"},
    {"no fortran_order", "{'descr': '<f4', 'shape': ()}", 4, "no key 'fortran_order'"},
    {"no shape", "{'descr': '<f4', 'fortran_order': False}", 4, "no key 'shape'"},
    {"an empty dictionary", "{}", 0, "no key 'descr'"},
    {"shape twice", "{'shape': (), 'descr': '<f4', 'fortran_order': False, 'shape': ()}", 4, "key 'shape' twice"},
    {"descr twice", "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False}", 4, "key 'descr' twice"},
    {"an unknown key", "{'color': 'red', 'descr': '<f4'}", 4, "unknown key 'color'"},
    {"a key that only begins well", "{'descriptor': '<f4'}", 4, "unknown key 'descriptor'"},

    /* fortran_order. */
    {"a string for a truth value", "{'fortran_order': 'False'}", 4, "expected True or False at byte 28, not '''"},
    {"a number for a truth value", "{'fortran_order': 0}", 4, "expected True or False at byte 28, not '0'"},
    {"half a truth value", "{'fortran_order': Fals", 4, "expected True or False at byte 28, not 'F'"},
    {"more than a truth value", "{'fortran_order': Falsey}", 4, "expected ',' or '}' at byte 33, not 'y'"},

    /* Shapes. */
    {"a list as the shape", "{'shape': [3, 4]}", 48, "expected '(' of the shape at byte 20, not '['"},
    {"a number as the shape", "{'shape': 3}", 12, "expected '(' of the shape at byte 20, not '3'"},
    {"a number in brackets", "{'shape': (3)}", 12, "expected ',' at byte 22, not ')'"},
    {"a comma in brackets", "{'shape': (,)}", 12, "expected an integer or ')' at byte 21, not ','"},
    {"a fraction", "{'shape': (3.0, 4)}", 12, "expected ',' at byte 22, not '.'"},
    {"a leading zero", "{'shape': (03, 4)}", 12, "leading zeros at byte 21"},
    {"a word", "{'shape': (None, 4)}", 12, "expected an integer or ')' at byte 21, not 'N'"},
    {"no end of the shape", "{'shape': (3, 4", 12, "expected ',' or ')' at byte 25, where it ends"},
    {"no end of the shape behind a comma", "{'shape': (3,", 12, "expected an integer or ')' at byte 23, where it ends"},
    {"a negative extent", "{'descr': '<f4', 'fortran_order': False, 'shape': (3, -4)}", 48, "(3, -4)|negative"},
    {"two negative extents", "{'descr': '<f4', 'fortran_order': False, 'shape': (-3, -4)}", 48, "(-3, -4)|negative"},
    {"an extent beyond 63 bits", "{'shape': (9223372036854775808,)}", 0, "absurd|extent|63 bits"},
    {"a negative extent beyond 63 bits", "{'shape': (-9223372036854775809,)}", 0, "absurd|extent|63 bits"},
    {"a product of 2^64", "{'descr': '<f2', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", 0,
     "absurd|(4294967296, 4294967296)|63 bits"},
    {"bytes that overflow", "{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693952,)}", 0,
     "absurd|(2305843009213693952,)|63 bits"},
    {"17 dimensions", "{'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}", 4, "17 dimensions|at most 16"},
    {"20 dimensions", "{'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}", 4, "20 dimensions|at most 16"},

    /* Types. */
    {"a structured type", "{'descr': [('a', '<f4'), ('b', '<i2')], ", 12, "structured|plain numbers"},
    {"a sub-array", "{'descr': ('<f4', (3,)), ", 12, "structured|plain numbers"},
    {"a number as the type", "{'descr': 4}", 12, "expected the type as a string at byte 20, not '4'"},
    {"objects", "{'descr': '|O', 'fortran_order': False, 'shape': (3,)}", 0, "Python objects|O'|f2, f4, f8"},
    {"integers", "{'descr': '<i4', 'fortran_order': False, 'shape': (3,)}", 12,
     "integers|'<i4'|f2, f4, f8|V2 (bfloat16)"},
    {"unsigned integers", "{'descr': '<u4', 'fortran_order': False, 'shape': (3,)}", 12, "unsigned integers|'<u4'"},
    {"what may be bfloat16", "{'descr': '<u2', 'fortran_order': False, 'shape': (3,)}", 6, "'<u2'|bfloat16|--bf16"},
    {"booleans", "{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", 3, "booleans|b1"},
    {"complex numbers", "{'descr': '<c8', 'fortran_order': False, 'shape': (3,)}", 24, "complex numbers|'<c8'"},
    {"long doubles", "{'descr': '<f16', 'fortran_order': False, 'shape': (3,)}", 48, "another size|'<f16'"},
    {"byte strings", "{'descr': '|S5', 'fortran_order': False, 'shape': (3,)}", 15, "byte strings|S5"},
    {"strings", "{'descr': '<U5', 'fortran_order': False, 'shape': (3,)}", 60, "strings|'<U5'"},
    {"dates", "{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (3,)}", 24, "dates|'<M8[ns]'"},
    {"time spans", "{'descr': '<m8', 'fortran_order': False, 'shape': (3,)}", 24, "time spans|'<m8'"},
    {"other raw bytes", "{'descr': '|V1', 'fortran_order': False, 'shape': (3,)}", 3, "raw bytes|V1"},
    {"no type", "{'descr': '', 'fortran_order': False, 'shape': (3,)}", 3, "unknown|''"},
    {"only an order", "{'descr': '<', 'fortran_order': False, 'shape': (3,)}", 3, "unknown|'<'"},
    {"a name", "{'descr': 'quad', 'fortran_order': False, 'shape': (3,)}", 3, "unknown|'quad'"},

    /* Data. */
    {"no data", "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)}", 0,
     "is cut short: shape (3, 4) of f4 needs 48 bytes of data after the header, and 0 are there"},
    {"data cut short", "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)}", 20,
     "is cut short: shape (3, 4) of f4 needs 48 bytes of data after the header, and 20 are there"},
    {"a byte too few", "{'descr': '>V2', 'fortran_order': False, 'shape': ()}", 1, "cut short|() of V2 needs 2|1 are"},
    {"a byte too many", "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)}", 49, "too long|48 bytes|1 more"},
    {"data without elements", "{'descr': '<f4', 'fortran_order': False, 'shape': (0,)}", 4, "too long|0 bytes|4 more"},
};

/* Masks of other types. */
static const struct bad_npy bad_masks[] = {
    {"numbers", "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", 12,
     "holds floating-point numbers (type '<f4')|b1 (booleans)|u1 (bytes)|mask"},
    {"integers of a byte", "{'descr': '|i1', 'fortran_order': False, 'shape': (3,)}", 3, "integers|i1'|b1|u1"},
    {"unsigned integers", "{'descr': '<u2', 'fortran_order': False, 'shape': (3,)}", 6,
     "unsigned integers|'<u2'|b1|u1"},
    {"bfloat16", "{'descr': '|V2', 'fortran_order': False, 'shape': (3,)}", 6, "raw bytes|b1|u1"},
    {"a byte too few", "{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", 2,
     "cut short|(3,) of b1 needs 3|2 are"},
    {"a byte too many", "{'descr': '|u1', 'fortran_order': False, 'shape': (3,)}", 4, "too long|3 bytes|1 more"},
    {"bytes that overflow", "{'descr': '|b1', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", 0,
     "absurd|(4294967296, 4294967296) of bool|63 bits"},
};

/* Files that go wrong before the dictionary begins. */
static const struct bad_beginning {
    const char *bytes;
    size_t size;
    uint64_t file_size;
    const char *words;
} bad_beginnings[] = {
    {"", 0, 0, "not a .npy file|0x93"},
    {"NUMPY", 5, 5, "not a .npy file|0x93"},
    {"\x93NUMPX\x01\0\x02\0{}", 12, 12, "not a .npy file|0x93"},
    {"\x93NUX", 4, 4, "not a .npy file"},
    {"\x93", 1, 1, "header is cut short|1 bytes"},
    {"\x93NUMPY\x01", 7, 7, "header is cut short|7 bytes"},
    {"\x93NUMPY\x01\0\x02", 9, 9, "header is cut short|9 bytes|10"},
    {"\x93NUMPY\x02\0\x02\0\0", 11, 11, "header is cut short|11 bytes|12"},
    {"\x93NUMPY\0\0\x02\0{}", 12, 12, "version 0.0|1.0, 2.0 and 3.0"},
    {"\x93NUMPY\x04\0\x02\0\0\0{}", 14, 14, "version 4.0|1.0, 2.0 and 3.0"},
    {"\x93NUMPY\x01\x01\x02\0{}", 12, 12, "version 1.1|1.0, 2.0 and 3.0"},
    {"\x93NUMPY\x01\0\x03\0{}", 12, 12, "header is cut short|should have 3 bytes|after 2"},
    {"\x93NUMPY\x01\0\xff\xff{}", 12, 12, "header is cut short|should have 65535 bytes|after 2"},
    {"\x93NUMPY\x03\0\xff\xff\xff\xff{}", 14, 14, "header is cut short|should have 4294967295 bytes|after 2"},
    {"\x93NUMPY\x02\0\xff\xff\xff\x7f{}", 14, 1ull << 40, "header is too long|2147483647"},
};

static void test_npy(void) {
    layout layout;
    problem problem;
    for (size_t i = 0; i < COUNT(good_npy); i++) {
        const struct good_npy *good = &good_npy[i];
        file file = npy_file(good->major, good->dictionary);
        const bool parsed = npy_parse(file.bytes, file.size, file.size + good->data, good->purpose, &layout, &problem);
        check_array(good->dictionary, parsed, &layout, &problem, good->expected,
                    good->order == (machine_is_big_endian() ? '<' : '>'), file.size);
        CHECK(npy_is_meant(file.bytes, file.size), "%s: not taken for a .npy file", good->dictionary);
        free(file.bytes);
    }
    for (size_t i = 0; i < COUNT(bad_npy); i++) {
        const struct bad_npy *bad = &bad_npy[i];
        file file = npy_file(1, bad->dictionary);
        const bool parsed = npy_parse(file.bytes, file.size, file.size + bad->data, FOR_NUMBERS, &layout, &problem);
        check_refusal(bad->what, parsed, &problem, bad->words);
        free(file.bytes);
    }
    for (size_t i = 0; i < COUNT(bad_masks); i++) {
        const struct bad_npy *bad = &bad_masks[i];
        file file = npy_file(1, bad->dictionary);
        const bool parsed = npy_parse(file.bytes, file.size, file.size + bad->data, FOR_MASK, &layout, &problem);
        check_refusal(bad->what, parsed, &problem, bad->words);
        free(file.bytes);
    }
    for (size_t i = 0; i < COUNT(bad_beginnings); i++) {
        const struct bad_beginning *bad = &bad_beginnings[i];
        file file = {0};
        append(&file, bad->bytes, bad->size);
        const bool parsed = npy_parse(file.bytes, file.size, bad->file_size, FOR_NUMBERS, &layout, &problem);
        check_refusal(bad->words, parsed, &problem, bad->words);
        free(file.bytes);
    }
    CHECK(!npy_is_meant((const unsigned char *)"", 0), "an empty file is taken for a .npy file");
    CHECK(!npy_is_meant((const unsigned char *)"N", 1), "N is taken for the beginning of a .npy file");
}

/* ---------------------------------------------------------------- .npy, written -- */

/* What NumPy 2 writes for these, with '<' for the machine's order: the text, and what it is filled up to. */
static const struct written {
    int32_t dtype;
    int32_t ndim;
    int64_t shape[ONEPASS_MAX_DIMENSIONS];
    size_t size;
    const char *text;
} written[] = {
    {ONEPASS_F32, 2, {3, 4}, 128, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }"},
    {ONEPASS_F64, 0, {0}, 128, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }"},
    {ONEPASS_F16, 1, {5}, 128, "{'descr': '<f2', 'fortran_order': False, 'shape': (5,), }"},
    {ONEPASS_BF16, 1, {3}, 128, "{'descr': '<V2', 'fortran_order': False, 'shape': (3,), }"},
    {ONEPASS_F32, 2, {0, 7}, 128, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 7), }"},
    {ONEPASS_F32, 1, {1ll << 40}, 128, "{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,), }"},
    {ONEPASS_F32,
     16,
     {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
     192,
     "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1), }"},
    /* With the room for a first extent of 21 digits and the end of line, 127 and 128 bytes: NumPy fills up both. */
    {ONEPASS_F32,
     11,
     {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 10000000000},
     128,
     "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 10000000000), }"},
    {ONEPASS_F32,
     11,
     {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 100000000000},
     192,
     "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 100000000000), }"},
};

static void test_writing(void) {
    for (size_t i = 0; i < COUNT(written); i++) {
        const struct written *one = &written[i];
        char header[NPY_MOST_HEADER], expected[NPY_MOST_HEADER];
        const size_t size = npy_write_header(header, one->dtype, one->ndim, one->shape);
        if (!CHECK(size == one->size, "%s: expected %zu bytes, got %zu", one->text, one->size, size))
            continue;
        snprintf(expected, sizeof expected, "%-*s\n", (int)one->size - 11, one->text);
        if (machine_is_big_endian())
            *strchr(expected, '<') = '>';
        CHECK(memcmp(header, "\x93NUMPY\x01\0", 8) == 0, "%s: expected the magic and version 1.0", one->text);
        CHECK((unsigned char)header[8] + 256 * (unsigned char)header[9] == (int)size - 10, "%s: wrong length",
              one->text);
        CHECK(memcmp(header + 10, expected, size - 10) == 0, "%s: got %.*s", one->text, (int)size - 10, header + 10);
        layout layout;
        problem problem;
        int64_t count = 1;
        for (int32_t d = 0; d < one->ndim; d++)
            count *= one->shape[d];
        const uint64_t bytes = (uint64_t)count * dtype_bytes(one->dtype);
        const bool parsed =
            npy_parse((const unsigned char *)header, size, size + bytes, FOR_NUMBERS, &layout, &problem);
        CHECK(parsed && layout.dtype == one->dtype && layout.ndim == one->ndim && layout.count == count &&
                  !layout.swapped && memcmp(layout.shape, one->shape, (size_t)one->ndim * sizeof *layout.shape) == 0,
              "%s: does not read back", one->text);
    }
}

/* The longest header there can be: every extent with 19 digits. */
static void test_longest(void) {
    char header[NPY_MOST_HEADER];
    int64_t shape[ONEPASS_MAX_DIMENSIONS];
    for (int d = 0; d < ONEPASS_MAX_DIMENSIONS; d++)
        shape[d] = INT64_MAX;
    const size_t size = npy_write_header(header, ONEPASS_BF16, ONEPASS_MAX_DIMENSIONS, shape);
    CHECK(size % 64 == 0 && size <= sizeof header && header[size - 1] == '\n', "the longest header has %zu bytes",
          size);
}

/* ---------------------------------------------------------------- safetensors -- */

#define TENSOR(name, dtype, shape, begin, end)                                                                         \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}"

static const struct good_safetensors {
    const char *header;
    const char *name;
    uint64_t data;  /* bytes */
    uint64_t begin; /* of the array, in the data */
    const char *expected;
} good_safetensors[] = {
    {"{" TENSOR("a", "F32", "[3,4]", 0, 48) "}", NULL, 48, 0, "f32 (3, 4) by (4, 1)"},
    {"{" TENSOR("a", "F32", "[3,4]", 0, 48) "}", "a", 48, 0, "f32 (3, 4) by (4, 1)"},
    {"{" TENSOR("a", "F16", "[3]", 0, 6) "}", NULL, 6, 0, "f16 (3,) by (1,)"},
    {"{" TENSOR("a", "BF16", "[3]", 0, 6) "}", NULL, 6, 0, "bf16 (3,) by (1,)"},
    {"{" TENSOR("a", "F64", "[]", 0, 8) "}", NULL, 8, 0, "f64 () by ()"},
    {"{" TENSOR("a", "F32", "[2,0,3]", 0, 0) "}", NULL, 0, 0, "f32 (2, 0, 3) by (0, 0, 0)"},
    {"{" TENSOR("a", "F32", "[0,1099511627776,1099511627776]", 0, 0) "}", NULL, 0, 0,
     "f32 (0, 1099511627776, 1099511627776) by (0, 0, 0)"},
    {"{" TENSOR("a", "F32", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", 0, 4) "}", NULL, 4, 0,
     "f32 (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1) by (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)"},
    {"{" TENSOR("a", "F64", "[1099511627776]", 0, 8796093022208) "}", NULL, 8796093022208, 0,
     "f64 (1099511627776,) by (1,)"},

    /* White space, the order of keys, escapes, metadata. */
    {"{ \"a\"\t:\n{\"data_offsets\" : [ 0 , 8 ] , \"shape\":[2],\r\"dtype\":\"F32\"} }     ", "a", 8, 0,
     "f32 (2,) by (1,)"},
    {"{" TENSOR("\\u0061\\/\\ud83d\\ude00", "F\\u00332", "[2]", 0, 8) "}", "a/\xf0\x9f\x98\x80", 8, 0,
     "f32 (2,) by (1,)"},
    {"{" TENSOR("\xf0\x9f\x98\x80", "F32", "[2]", 0, 8) "}", "\xf0\x9f\x98\x80", 8, 0, "f32 (2,) by (1,)"},
    {"{" TENSOR("", "F32", "[2]", 0, 8) "}", "", 8, 0, "f32 (2,) by (1,)"},
    {"{\"__metadata__\":{}," TENSOR("a", "F32", "[2]", 0, 8) "}", NULL, 8, 0, "f32 (2,) by (1,)"},
    {"{" TENSOR("a", "F32", "[2]", 0, 8) ",\"__metadata__\":{\"format\":\"pt\",\"x\":\"\"}}", NULL, 8, 0,
     "f32 (2,) by (1,)"},

    /* Beside others, in any order, of any type, among them one of no bytes and one of which nobody has heard. */
    {"{" TENSOR("b", "F32", "[2]", 4, 12) "," TENSOR("a", "U8", "[4]", 0, 4) "}", "b", 12, 4, "f32 (2,) by (1,)"},
    {"{" TENSOR("b", "F32", "[2]", 4, 12) "," TENSOR("a", "X7", "[4]", 0, 4) "}", "b", 12, 4, "f32 (2,) by (1,)"},
    {"{" TENSOR("b", "F32", "[2]", 0, 8) "," TENSOR("a", "F32", "[0]", 8, 8) "," TENSOR("c", "F32", "[0]", 0, 0) "}",
     "c", 8, 0, "f32 (0,) by (0,)"},
    {"{" TENSOR("b", "F16", "[1]", 0, 2) "," TENSOR("a", "I8", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", 2, 3) "}", "b",
     3, 0, "f16 (1,) by (1,)"},
    {"{" TENSOR("p", "F64", "[1]", 0, 8) "," TENSOR("q", "I64", "[1]", 8, 16) "," TENSOR(
         "r", "U64", "[1]",
         16, 24) "," TENSOR("s", "C64", "[1]",
                            24, 32) "," TENSOR("t", "I32", "[1]", 32,
                                               36) "," TENSOR("u", "U32", "[1]", 36,
                                                              40) "," TENSOR("v", "I16", "[1]", 40,
                                                                             42) "," TENSOR("w", "U16", "[1]", 42,
                                                                                            44) "," TENSOR("x", "I8",
                                                                                                           "[1]",
                                                                                                           44, 45) "," TENSOR("y", "U8", "[1]", 45, 46) "," TENSOR("z", "BOOL", "[1]", 46, 47) "," TENSOR("A", "F8_E4M3", "[1]", 47, 48) "," TENSOR("B", "F8_E5M2", "[1]", 48, 49) "," TENSOR("C",
                                                                                                                                                                                                                                                                                              "F8_E8M0", "[1]", 49, 50) "," TENSOR("D", "F4", "[2]", 50, 51) "," TENSOR("E", "F6_E2M3", "[4]", 51, 54) "," TENSOR("F",
                                                                                                                                                                                                                                                                                                                                                                                                                  "F6_E3M2",
                                                                                                                                                                                                                                                                                                                                                                                                                  "[4]",
                                                                                                                                                                                                                                                                                                                                                                                                                  54,
                                                                                                                                                                                                                                                                                                                                                                                                                  57) "," TENSOR("G",
                                                                                                                                                                                                                                                                                                                                                                                                                                 "F8_E4M3FNUZ",
                                                                                                                                                                                                                                                                                                                                                                                                                                 "[1]",
                                                                                                                                                                                                                                                                                                                                                                                                                                 57,
                                                                                                                                                                                                                                                                                                                                                                                                                                 58) "," TENSOR("H",
                                                                                                                                                                                                                                                                                                                                                                                                                                                "F8_E5M2FNUZ",
                                                                                                                                                                                                                                                                                                                                                                                                                                                "[1]", 58, 59) "," TENSOR("mine",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                          "BF16",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                          "[2]",
                                                                                                                                                                                                                                                                                                                                                                                                                                                                          59,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                          63) "}",
     "mine", 63, 59, "bf16 (2,) by (1,)"},
};

static const struct bad_safetensors {
    const char *what;
    const char *header;
    const char *name;
    uint64_t data;
    const char *words;
} bad_safetensors[] = {
    /* Not a header: bytes are counted from the file's first, and the JSON begins at 8. */
    {"nothing", "", NULL, 0, "does not begin with a brace"},
    {"white space first", " {}", NULL, 0, "does not begin with a brace"},
    {"an array", "[]", NULL, 0, "does not begin with a brace"},
    {"half an object", "{", NULL, 0, "expected a key in double quotes or '}' at byte 9, where it ends"},
    {"something behind it", "{} x", NULL, 0, "expected the end at byte 11, not 'x'"},
    {"a comma behind a member", "{" TENSOR("a", "F32", "[]", 0, 4) ",}", NULL, 4, "expected a key in double quotes"},
    {"single quotes", "{'a':1}", NULL, 0, "double quotes|byte 9"},
    {"a name that is not UTF-8", "{\"\xff\":1}", NULL, 0, "UTF-8|byte 10, not the byte 0xff"},

    /* Tensors that are none. */
    {"a number as a tensor", "{\"a\":1}", NULL, 0, "expected an object at byte 13, not an integer"},
    {"an array as a tensor", "{\"a\":[\"F32\",[],[0,4]]}", NULL, 4, "expected an object at byte 13, not an array"},
    {"no dtype", "{\"a\":{\"shape\":[],\"data_offsets\":[0,4]}}", NULL, 4, "'a'|no key 'dtype'"},
    {"no shape", "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", NULL, 4, "'a'|no key 'shape'"},
    {"no data_offsets", "{\"a\":{\"dtype\":\"F32\",\"shape\":[]}}", NULL, 4, "'a'|no key 'data_offsets'"},
    {"dtype twice", "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", NULL, 4, "'a'|key 'dtype' twice"},
    {"shape twice", "{\"a\":{\"shape\":[],\"sh\\u0061pe\":[]}}", NULL, 4, "'a'|key 'shape' twice"},
    {"an unknown key", "{\"a\":{\"dtype\":\"F32\",\"color\":\"red\"}}", NULL, 4, "'a'|unknown key 'color'"},
    {"a number as the dtype", "{\"a\":{\"dtype\":32}}", NULL, 4, "expected a string at byte 22, not an integer"},
    {"a number as the shape", "{\"a\":{\"shape\":3}}", NULL, 4, "expected an array at byte 22, not an integer"},
    {"a string as an extent", "{\"a\":{\"shape\":[\"3\"]}}", NULL, 4,
     "expected an integer of 64 bits at byte 23, not a string"},
    {"a fraction as an extent", "{\"a\":{\"shape\":[3.0]}}", NULL, 4,
     "expected an integer of 64 bits at byte 23, not a real number"},
    {"a negative zero", "{\"a\":{\"shape\":[-0]}}", NULL, 0, "expected an integer of 64 bits at byte 23"},
    {"an extent beyond 63 bits", "{\"a\":{\"shape\":[9223372036854775808]}}", NULL, 4, "integer of 64 bits|byte 23"},
    {"a negative extent", "{" TENSOR("a", "F32", "[2,-3]", 0, 24) "}", NULL, 24, "'a'|negative"},
    {"no offset", "{\"a\":{\"data_offsets\":[]}}", NULL, 4, "'a'|two data_offsets|fewer"},
    {"one offset", "{\"a\":{\"data_offsets\":[0]}}", NULL, 4, "'a'|two data_offsets|fewer"},
    {"three offsets", "{\"a\":{\"data_offsets\":[0,4,8]}}", NULL, 4, "'a'|two data_offsets|more"},
    {"a string as an offset", "{\"a\":{\"data_offsets\":[0,\"4\"]}}", NULL, 4, "expected an integer|not a string"},

    /* Metadata. */
    {"metadata that are a string", "{\"__metadata__\":\"pt\"}", NULL, 0, "expected an object at byte 24, not a string"},
    {"a number in the metadata", "{\"__metadata__\":{\"epoch\":3}}", NULL, 0, "expected a string|not an integer"},
    {"metadata twice", "{\"__metadata__\":{},\"__metadata__\":{}}", NULL, 0, "__metadata__ twice"},

    /* Offsets and sizes. */
    {"offsets backwards", "{" TENSOR("a", "F32", "[2]", 8, 0) "}", NULL, 8, "'a'|[8, 0]|order"},
    {"a negative offset", "{" TENSOR("a", "F32", "[2]", -8, 0) "}", NULL, 8, "'a'|[-8, 0]|from 0"},
    {"the least offset", "{" TENSOR("a", "F32", "[2]", -9223372036854775808, 9223372036854775807) "}", NULL, 8,
     "order"},
    {"behind the data", "{" TENSOR("a", "F32", "[3,4]", 0, 48) "}", NULL, 20, "'a'|ends at byte 48|file has 20"},
    {"the greatest offset", "{" TENSOR("a", "F32", "[2]", 0, 9223372036854775807) "}", NULL, 8, "'a'|ends|has 8"},
    {"too few bytes", "{" TENSOR("a", "F32", "[3,4]", 0, 44) "}", NULL, 44, "'a'|44 bytes|(3, 4) of F32 needs 48"},
    {"too many bytes", "{" TENSOR("a", "F16", "[3,4]", 0, 48) "}", NULL, 48, "'a'|48 bytes|(3, 4) of F16 needs 24"},
    {"another tensor's size", "{" TENSOR("a", "F32", "[]", 0, 4) "," TENSOR("b", "I64", "[2]", 4, 8) "}", "a", 8,
     "'b'|4 bytes|(2,) of I64 needs 16"},
    {"no whole bytes", "{" TENSOR("a", "F4", "[3]", 0, 2) "}", NULL, 2, "'a'|12 bits|whole bytes"},
    {"a product of 2^64", "{" TENSOR("a", "U8", "[4294967296,4294967296]", 0, 0) "}", NULL, 0,
     "'a'|absurd|(4294967296, 4294967296)|63 bits"},
    {"bits that overflow", "{" TENSOR("a", "F64", "[1152921504606846976]", 0, 0) "}", NULL, 0, "'a'|absurd|63 bits"},

    /* All tensors together. */
    {"an overlap", "{" TENSOR("a", "F32", "[2]", 0, 8) "," TENSOR("b", "F32", "[2]", 4, 12) "}", "a", 12,
     "'b'|overlaps 'a'|ends at byte 8|beginning at 4"},
    {"the same bytes", "{" TENSOR("a", "F32", "[2]", 0, 8) "," TENSOR("b", "F32", "[2]", 0, 8) "}", "a", 8, "overlaps"},
    {"no bytes amid another's", "{" TENSOR("a", "F32", "[2]", 0, 8) "," TENSOR("b", "F32", "[0]", 4, 4) "}", "a", 8,
     "'b'|overlaps 'a'"},
    {"an overlap with an unknown type", "{" TENSOR("a", "F32", "[2]", 0, 8) "," TENSOR("b", "X7", "[2]", 4, 12) "}",
     "a", 12, "overlaps"},
    {"a hole", "{" TENSOR("a", "F32", "[1]", 0, 4) "," TENSOR("b", "F32", "[1]", 8, 12) "}", "a", 12,
     "'b'|begins at byte 8|from 4 on"},
    {"a hole at the beginning", "{" TENSOR("a", "F32", "[1]", 4, 8) "}", NULL, 8, "'a'|begins at byte 4|from 0 on"},
    {"left-over bytes", "{" TENSOR("a", "F32", "[1]", 0, 4) "}", NULL, 7, "too long|byte 4|3 more"},
    {"data without tensors", "{}", NULL, 7, "too long|byte 0|7 more"},
    {"a name twice", "{" TENSOR("a", "F32", "[1]", 0, 4) "," TENSOR("\\u0061", "F32", "[1]", 4, 8) "}", "a", 8,
     "'a'|twice"},

    /* The tensor that is asked for. */
    {"no tensors", "{}", NULL, 0, "no tensors"},
    {"no tensors, one asked for", "{\"__metadata__\":{}}", "a", 0, "no tensors"},
    {"an unknown name", "{" TENSOR("b", "F32", "[]", 0, 4) "," TENSOR("a", "F32", "[]", 4, 8) "}", "c", 8,
     "no tensor 'c'|'a', 'b'"},
    {"a name that only begins well", "{" TENSOR("b", "F32", "[]", 0, 4) "}", "bb", 4, "no tensor 'bb'|'b'"},
    {"the metadata by their name", "{\"__metadata__\":{}," TENSOR("b", "F32", "[]", 0, 4) "}", "__metadata__", 4,
     "no tensor '__metadata__'"},
    {"no name and two tensors", "{" TENSOR("b", "F32", "[]", 0, 4) "," TENSOR("a", "F32", "[]", 4, 8) "}", NULL, 8,
     "2 tensors|named after a colon|'a', 'b'"},
    {"integers", "{" TENSOR("a", "I32", "[1]", 0, 4) "}", NULL, 4, "'a'|type I32|F16, BF16, F32 or F64"},
    {"an unknown type", "{" TENSOR("a", "X7", "[1]", 0, 4) "}", NULL, 4, "'a'|type X7|F16, BF16, F32 or F64"},
    {"17 dimensions", "{" TENSOR("a", "F32", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", 0, 4) "}", NULL, 4,
     "'a'|17 dimensions|at most 16"},
    {"a name that would ring a bell", "{" TENSOR("\\u0007\\u001b[2J\xc2\x9b", "I32", "[1]", 0, 4) "}", NULL, 4,
     "'?\?[2J?\?'"},
    {"a long name",
     "{" TENSOR("0123456789012345678901234567890123456789012345678901234567890123456789", "I32", "[1]", 0, 4) "}", NULL,
     4, "'012345678901234567890123456789012345678901234567890123456789...'"},
};

static const struct bad_beginning bad_safetensors_beginnings[] = {
    {"", 0, 0, "header is cut short|0 bytes|8"},
    {"\x02\0\0\0\0\0\0", 7, 7, "header is cut short|7 bytes|8"},
    {"\x02\0\0\0\0\0\0\0", 8, 8, "header is cut short|2 bytes|after 0"},
    {"\x03\0\0\0\0\0\0\0{}", 10, 10, "header is cut short|3 bytes|after 2"},
    {"\0\xe1\xf5\x05\0\0\0\0{}", 10, 10, "header is cut short|100000000 bytes|after 2"},
    {"\x01\xe1\xf5\x05\0\0\0\0{}", 10, 1ull << 40, "too long|100000001|100000000"},
    {"\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, 10, "too long|18446744073709551615|100000000"},
    {"\x03\0\0\0\0\0\0\0{}", 10, 1ull << 40, "too long|3 bytes"},
};

static void test_safetensors(void) {
    layout layout;
    problem problem;
    for (size_t i = 0; i < COUNT(good_safetensors); i++) {
        const struct good_safetensors *good = &good_safetensors[i];
        file file = safetensors_file(good->header);
        const bool parsed = safetensors_parse(file.bytes, file.size, file.size + good->data, good->name, FOR_NUMBERS,
                                              &layout, &problem);
        check_array(good->header, parsed, &layout, &problem, good->expected, machine_is_big_endian(),
                    file.size + good->begin);
        CHECK(safetensors_is_meant(file.bytes, file.size), "%s: not taken for a safetensors file", good->header);
        free(file.bytes);
    }
    for (size_t i = 0; i < COUNT(bad_safetensors); i++) {
        const struct bad_safetensors *bad = &bad_safetensors[i];
        file file = safetensors_file(bad->header);
        const bool parsed =
            safetensors_parse(file.bytes, file.size, file.size + bad->data, bad->name, FOR_NUMBERS, &layout, &problem);
        check_refusal(bad->what, parsed, &problem, bad->words);
        free(file.bytes);
    }
    for (size_t i = 0; i < COUNT(bad_safetensors_beginnings); i++) {
        const struct bad_beginning *bad = &bad_safetensors_beginnings[i];
        file file = {0};
        append(&file, bad->bytes, bad->size);
        const bool parsed =
            safetensors_parse(file.bytes, file.size, bad->file_size, NULL, FOR_NUMBERS, &layout, &problem);
        check_refusal(bad->words, parsed, &problem, bad->words);
        free(file.bytes);
    }
    CHECK(!safetensors_is_meant((const unsigned char *)"\x02\0\0\0\0\0\0\0", 8), "a length alone is taken for a file");
    CHECK(!safetensors_is_meant((const unsigned char *)"\x02\0\0\0\0\0\0\0[]", 10), "an array is taken for a header");
    CHECK(!safetensors_is_meant((const unsigned char *)"[1, 2, 3{", 9), "text is taken for a safetensors file");
}

/* Masks beside numbers: each is taken for what it is, and for nothing else. */
static void test_masks_in_safetensors(void) {
    file file = safetensors_file("{" TENSOR("p", "F32", "[2]", 0, 8) "," TENSOR("m", "BOOL", "[3,1]", 8, 11) "," TENSOR(
        "b", "U8", "[2]", 11, 13) "," TENSOR("i", "I8", "[2]", 13, 15) "}");
    static const struct {
        const char *name;
        purpose purpose;
        uint64_t begin;
        const char *expected; /* or the words of the sentence, if there is no beginning */
    } cases[] = {
        {"m", FOR_MASK, 8, "bool (3, 1) by (1, 1)"},
        {"b", FOR_MASK, 11, "bool (2,) by (1,)"},
        {"p", FOR_MASK, 0, "'p'|type F32|BOOL or U8"},
        {"i", FOR_MASK, 0, "'i'|type I8|BOOL or U8"},
        {"m", FOR_NUMBERS, 0, "'m'|type BOOL|F16, BF16, F32 or F64"},
        {"b", FOR_NUMBERS_OR_BITS, 0, "'b'|type U8|F16, BF16, F32 or F64"},
    };
    layout layout;
    problem problem;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const bool parsed = safetensors_parse(file.bytes, file.size, file.size + 15, cases[i].name, cases[i].purpose,
                                              &layout, &problem);
        if (cases[i].begin > 0)
            check_array(cases[i].name, parsed, &layout, &problem, cases[i].expected, false, file.size + cases[i].begin);
        else
            check_refusal(cases[i].name, parsed, &problem, cases[i].expected);
    }
    free(file.bytes);
}

/* As many as the largest models have, and more, last ones first. A quadratic check would take minutes;
 * this takes 0.2 s, and ten times that under a sanitizer. */
static void test_many_tensors(void) {
    enum {
        TENSORS = 100000
    };
    char *header = malloc((size_t)TENSORS * 128);
    if (header == NULL)
        abort();
    size_t used = 0;
    for (int i = TENSORS; i-- > 0;)
        used += (size_t)sprintf(header + used,
                                "%c\"layers.%d.weight\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[%d,%d]}",
                                i == TENSORS - 1 ? '{' : ',', i, 8 * i, 8 * i + 8);
    strcpy(header + used, "}");
    file file = safetensors_file(header);
    free(header);
    layout layout;
    problem problem;
    const clock_t begun = clock();
    const bool parsed = safetensors_parse(file.bytes, file.size, file.size + 8ull * TENSORS, "layers.4711.weight",
                                          FOR_NUMBERS, &layout, &problem);
    const double seconds = (double)(clock() - begun) / CLOCKS_PER_SEC;
    check_array("many tensors", parsed, &layout, &problem, "f32 (1, 2) by (2, 1)", machine_is_big_endian(),
                file.size + 8ull * 4711);
    CHECK(seconds < 20, "%d tensors took %g s", TENSORS, seconds);
    check_refusal(
        "an unknown name of many",
        safetensors_parse(file.bytes, file.size, file.size + 8ull * TENSORS, "x", FOR_NUMBERS, &layout, &problem),
        &problem, "no tensor 'x'|'layers.0.weight', 'layers.1.weight'| and 999|more");
    free(file.bytes);
}

/* ---------------------------------------------------------------- JSON -- */

/* Writes what the reader finds in a notation of its own: strings in <>, integers as they are, reals with an r. */
static void write_value(json *reader, char *text, size_t size) {
    json_string string;
    int64_t integer;
    double real;
    bool boolean;
    char part[64] = "";
    switch (json_peek(reader)) {
    case JSON_NOTHING:
        return;
    case JSON_OBJECT:
        json_enter_object(reader);
        strncat(text, "{", size - strlen(text) - 1);
        while (json_next_member(reader, &string)) {
            json_copy(string, part, sizeof part);
            snprintf(text + strlen(text), size - strlen(text), "<%s>:", part);
            write_value(reader, text, size);
        }
        snprintf(part, sizeof part, "}");
        break;
    case JSON_ARRAY:
        json_enter_array(reader);
        strncat(text, "[", size - strlen(text) - 1);
        while (json_next_element(reader))
            write_value(reader, text, size);
        snprintf(part, sizeof part, "]");
        break;
    case JSON_STRING:
        if (json_read_string(reader, &string)) {
            part[0] = '<';
            json_copy(string, part + 1, sizeof part - 2);
            strcat(part, ">");
        }
        break;
    case JSON_INTEGER:
        if (json_read_integer(reader, &integer))
            snprintf(part, sizeof part, "%lld ", (long long)integer);
        break;
    case JSON_REAL:
        if (json_read_real(reader, &real))
            snprintf(part, sizeof part, "r%.17g ", real);
        break;
    case JSON_BOOLEAN:
        if (json_read_boolean(reader, &boolean))
            snprintf(part, sizeof part, boolean ? "yes " : "no ");
        break;
    case JSON_NULL:
        if (json_read_null(reader))
            snprintf(part, sizeof part, "null ");
        break;
    }
    strncat(text, part, size - strlen(text) - 1);
}

static const struct good_json {
    const char *text;
    const char *expected;
} good_json[] = {
    {"{}", "{}"},
    {" [ ] ", "[]"},
    {"\t\"a\"\r\n", "<a>"},
    {"[1,[2,[3]],{}]", "[1 [2 [3 ]]{}]"},
    {"{\"a\":{\"b\":[true,false,null]},\"c\":\"\"}", "{<a>:{<b>:[yes no null ]}<c>:<>}"},
    {"{\"a\":1,\"a\":2}", "{<a>:1 <a>:2 }"},
    {"[0,-0,7,-12]", "[0 r-0 7 -12 ]"},
    {"[9223372036854775807,-9223372036854775808]", "[9223372036854775807 -9223372036854775808 ]"},
    {"[9223372036854775808,-9223372036854775809]", "[r9.2233720368547758e+18 r-9.2233720368547758e+18 ]"},
    {"[1.5,0.1,-0.0,1e3,1E+3,25e-1,1e-400]", "[r1.5 r0.10000000000000001 r-0 r1000 r1000 r2.5 r0 ]"},
    {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "<\"\\/\b\f\n\r\t>"},
    {"\"\\u0041\\u00e9\\u20AC\\uD83D\\uDE00\"", "<A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80>"},
    {"\"\xc3\xa9\xe2\x82\xac\xed\x9f\xbf\xee\x80\x80\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf\x7f\"",
     "<\xc3\xa9\xe2\x82\xac\xed\x9f\xbf\xee\x80\x80\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf\x7f>"},
};

static const struct bad_json {
    const char *text;
    const char *words;
} bad_json[] = {
    {"", "expected a value at byte 0, where it ends"},
    {" ", "expected a value at byte 1, where it ends"},
    {"\xef\xbb\xbf{}", "expected a value at byte 0, not the byte 0xef"},
    {"{} {}", "expected the end at byte 3, not '{'"},
    {"]", "expected a value at byte 0, not ']'"},
    {"[1 2]", "expected ',' or ']' at byte 3, not '2'"},
    {"[1,]", "expected a value at byte 3, not ']'"},
    {"[,1]", "expected a value at byte 1, not ','"},
    {"[1", "expected ',' or ']' at byte 2, where it ends"},
    {"[1}", "expected ',' or ']' at byte 2, not '}'"},
    {"[1\n,\v2]", "expected a value at byte 4, not the byte 0x0b"},
    {"{\"a\" 1}", "expected ':' at byte 5, not '1'"},
    {"{\"a\":}", "expected a value at byte 5, not '}'"},
    {"{\"a\":1,}", "expected a key in double quotes at byte 7, not '}'"},
    {"{\"a\":1 \"b\":2}", "expected ',' or '}' at byte 7, not '\"'"},
    {"{1:2}", "expected a key in double quotes or '}' at byte 1, not '1'"},
    {"{\"a\":1", "expected ',' or '}' at byte 6, where it ends"},
    {"True", "expected a value at byte 0, not 'T'"},
    {"tru", "expected a value at byte 0, not 't'"},
    {"[falsy]", "expected a value at byte 1, not 'f'"},
    {"nullx", "expected the end at byte 4, not 'x'"},
    {"NaN", "expected a value at byte 0, not 'N'"},
    {"nan", "expected a value at byte 0, not 'n'"},
    {"-Infinity", "expected a digit at byte 1, not 'I'"},
    {"+1", "expected a value at byte 0, not '+'"},
    {"-", "expected a digit at byte 1, where it ends"},
    {"01", "expected the end at byte 1, not '1'"},
    {".5", "expected a value at byte 0, not '.'"},
    {"5.", "expected a digit at byte 2, where it ends"},
    {"5.e1", "expected a digit at byte 2, not 'e'"},
    {"5e", "expected a digit at byte 2, where it ends"},
    {"5e+", "expected a digit at byte 3, where it ends"},
    {"0x10", "expected the end at byte 1, not 'x'"},
    {"1e400", "expected a number that a double can hold at byte 0"},
    {"\"a", "closing quote at byte 2, where it ends"},
    {"\"a\nb\"", "character of a string or its closing quote at byte 2, not the end of a line"},
    {"\"\x1f\"", "byte 1, not the byte 0x1f"},
    {"\"\\x41\"", "after a backslash at byte 2, not 'x'"},
    {"\"\\", "after a backslash at byte 2, where it ends"},
    {"\"\\u12", "four hexadecimal digits at byte 3"},
    {"\"\\u12g4\"", "four hexadecimal digits at byte 3"},
    {"\"\\ud800\"", "second half of a surrogate pair at byte 7, not '\"'"},
    {"\"\\ud800\\n\"", "second half of a surrogate pair at byte 7"},
    {"\"\\ud800\\ud800\"", "second half of a surrogate pair at byte 7"},
    {"\"\\udc00\"", "first half of a surrogate pair before its second at byte 1"},
    {"\"\x80\"", "UTF-8 at byte 1, not the byte 0x80"},
    {"\"\xc0\x80\"", "UTF-8 at byte 1, not the byte 0xc0"},
    {"\"\xc1\xbf\"", "UTF-8 at byte 1"},
    {"\"\xc3", "UTF-8 at byte 1"},
    {"\"\xc3\"", "UTF-8 at byte 1"},
    {"\"\xe0\x9f\xbf\"", "UTF-8 at byte 1"},
    {"\"\xed\xa0\x80\"", "UTF-8 at byte 1"},
    {"\"\xf0\x8f\xbf\xbf\"", "UTF-8 at byte 1"},
    {"\"\xf4\x90\x80\x80\"", "UTF-8 at byte 1"},
    {"\"\xf8\x88\x80\x80\x80\"", "UTF-8 at byte 1"},
    {"\"\xff\"", "UTF-8 at byte 1"},
};

static file json_text(const char *text) {
    file file = {0};
    append(&file, text, strlen(text));
    return file;
}

static void test_json_tables(void) {
    json reader;
    for (size_t i = 0; i < COUNT(good_json); i++) {
        char found[256] = "";
        file file = json_text(good_json[i].text);
        json_open(&reader, file.bytes, file.size, 0);
        write_value(&reader, found, sizeof found);
        CHECK(json_close(&reader) && strcmp(found, good_json[i].expected) == 0, "%s: expected %s, got %s (%s)",
              good_json[i].text, good_json[i].expected, found, reader.problem.text);
        json_open(&reader, file.bytes, file.size, 0);
        CHECK(json_skip(&reader) && json_close(&reader), "%s: cannot be skipped: %s", good_json[i].text,
              reader.problem.text);
        free(file.bytes);
    }
    for (size_t i = 0; i < COUNT(bad_json); i++) {
        char found[256] = "";
        file file = json_text(bad_json[i].text);
        json_open(&reader, file.bytes, file.size, 0);
        write_value(&reader, found, sizeof found);
        check_refusal(bad_json[i].text, json_close(&reader), &reader.problem, bad_json[i].words);
        CHECK(!json_close(&reader) && reader.failed && !json_skip(&reader) && json_peek(&reader) == JSON_NOTHING,
              "%s: the reader goes on after its failure", bad_json[i].text);
        free(file.bytes);
    }
}

/* A caller that asks for something else than is there is told so, with the place as it counts it. */
static void test_json_mismatches(void) {
    const char *text = "[{},[],\"\",1,1.5,true,null]";
    static const char *const names[] = {"an object",     "an array",      "a string", "an integer",
                                        "a real number", "true or false", "null"};
    for (int value = 0; value < 7; value++) {
        for (int asked = 0; asked < 7; asked++) {
            json reader;
            json_string string;
            int64_t integer;
            double real;
            bool boolean;
            json_open(&reader, text, strlen(text), 1000);
            json_enter_array(&reader);
            for (int i = 0; i <= value; i++)
                json_next_element(&reader);
            const bool taken = asked == 0   ? json_enter_object(&reader)
                               : asked == 1 ? json_enter_array(&reader)
                               : asked == 2 ? json_read_string(&reader, &string)
                               : asked == 3 ? json_read_integer(&reader, &integer)
                               : asked == 4 ? json_read_real(&reader, &real)
                               : asked == 5 ? json_read_boolean(&reader, &boolean)
                                            : json_read_null(&reader);
            const bool fits = value == asked || (value == 3 && asked == 4);
            CHECK(taken == fits, "value %d asked for as %d: expected %d", value, asked, fits);
            if (!taken)
                CHECK(has_words(reader.problem.text, "expected |at byte 10") &&
                          strstr(reader.problem.text, names[value]) != NULL,
                      "value %d asked for as %d: got \"%s\"", value, asked, reader.problem.text);
        }
    }
}

/* Values that nobody takes are skipped, and checked; calls at the wrong time fail and do no harm. */
static void test_json_order(void) {
    json reader;
    json_string key;
    int64_t integer = 0;
    const char *text = "{\"a\":[1,{\"b\":[]}],\"c\":7,\"d\":{}}";
    json_open(&reader, text, strlen(text), 0);
    json_enter_object(&reader);
    while (json_next_member(&reader, &key))
        if (json_equals(key, "c"))
            json_read_integer(&reader, &integer);
    CHECK(json_close(&reader) && integer == 7, "expected 7, got %lld", (long long)integer);

    json_open(&reader, text, strlen(text), 0);
    CHECK(!json_next_element(&reader) && reader.failed, "an element without an array");
    json_open(&reader, text, strlen(text), 0);
    json_enter_object(&reader);
    CHECK(!json_next_element(&reader) && has_words(reader.problem.text, "no array"), "an element of an object");
    json_open(&reader, text, strlen(text), 0);
    json_enter_object(&reader);
    CHECK(!json_read_null(&reader) && has_words(reader.problem.text, "no value"), "a value before a key");
    json_open(&reader, text, strlen(text), 0);
    json_enter_object(&reader);
    CHECK(!json_close(&reader) && has_words(reader.problem.text, "open"), "closed inside an object");
    json_open(&reader, "[1,x]", 5, 0);
    json_enter_array(&reader);
    json_next_element(&reader);
    json_next_element(&reader);
    CHECK(!json_next_element(&reader) && !json_close(&reader), "a skipped value is not checked");
}

static void test_json_strings(void) {
    json reader;
    json_string a, b;
    char copy[8];
    const char *text = "[\"a\\u0000\xe2\x82\xac\\u20ac\",\"b\"]";
    json_open(&reader, text, strlen(text), 0);
    json_enter_array(&reader);
    json_next_element(&reader);
    json_read_string(&reader, &a);
    json_next_element(&reader);
    json_read_string(&reader, &b);
    CHECK(json_copy(a, copy, sizeof copy) == 8, "expected a length of 8");
    CHECK(memcmp(copy, "a\0\xe2\x82\xac", 6) == 0, "expected a copy cut short between two characters");
    CHECK(json_copy(a, copy, 0) == 8, "expected a length of 8 without room");
    CHECK(!json_equals(a, "a"), "a null byte ends a string early");
    CHECK(json_equals(b, "b") && !json_equals(b, "") && !json_equals(b, "bb"), "b is not b");
    CHECK(json_compare(a, b) < 0 && json_compare(b, a) > 0 && json_compare(a, a) == 0, "a does not come before b");
    json_string plain = {(const unsigned char *)"\xe2\x82\xac"
                                                "x",
                         4, false};
    json_string escaped = {(const unsigned char *)"\\u20ac", 6, true};
    CHECK(json_compare(plain, escaped) > 0 && json_compare(escaped, plain) < 0, "a beginning does not come first");
}

/* As deep as is allowed, and one deeper; as long a number as is allowed, and one longer. */
static void test_json_limits(void) {
    char text[JSON_LONGEST_NUMBER + 2];
    json reader;
    memset(text, '[', JSON_DEEPEST + 1);
    memset(text + JSON_DEEPEST, ']', JSON_DEEPEST);
    json_open(&reader, text, 2 * JSON_DEEPEST, 0);
    CHECK(json_close(&reader), "%d arrays: %s", JSON_DEEPEST, reader.problem.text);
    memset(text, '[', sizeof text);
    json_open(&reader, text, sizeof text, 0);
    CHECK(!json_close(&reader) && has_words(reader.problem.text, "too deep at byte 64"), "%s", reader.problem.text);

    double real = 0;
    memset(text, '0', sizeof text);
    memcpy(text, "1.", 2);
    json_open(&reader, text, JSON_LONGEST_NUMBER, 0);
    CHECK(json_read_real(&reader, &real) && real == 1 && json_close(&reader), "a long 1: %s", reader.problem.text);
    json_open(&reader, text, JSON_LONGEST_NUMBER + 1, 0);
    CHECK(!json_read_real(&reader, &real) && has_words(reader.problem.text, "at most 1000"), "a longer 1");
}

int main(void) {
    test_npy();
    test_writing();
    test_longest();
    test_safetensors();
    test_masks_in_safetensors();
    test_many_tensors();
    test_json_tables();
    test_json_mismatches();
    test_json_order();
    test_json_strings();
    test_json_limits();
    return check_finish();
}
