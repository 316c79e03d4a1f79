/*
 * Headers of .npy files, read and written: what is expected is by NumPy's numpy.lib.format, which documents the format.
 */
#include "../cli/files/npy.h"

#include "test_files.h"

static file npy_file(int major, const char *dictionary) {
    file file = {0};
    append(&file, "\x93NUMPY", 6);
    append_number(&file, (uint64_t)major, 2);
    append_number(&file, strlen(dictionary), major == 1 ? 2 : 4);
    append(&file, dictionary, strlen(dictionary));
    return file;
}

/* ---------------------------------------------------------------- read -- */

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

    /* Class indices. */
    {"{'descr': '<i8', 'fortran_order': False, 'shape': (3, 4), }\n", 1, '<', FOR_LABELS, 96, "i64 (3, 4) by (4, 1)"},
    {"{'descr': '>i4', 'fortran_order': True, 'shape': (3, 4), }\n", 1, '>', FOR_LABELS, 48, "i32 (3, 4) by (1, 3)"},
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (), }\n", 1, '=', FOR_LABELS, 1, "u8 () by ()"},
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

static const struct bad_npy bad_labels[] = {
    {"numbers", "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", 12,
     "holds floating-point numbers (type '<f4')|i8, i4 or u1|class indices"},
    {"bytes with a sign", "{'descr': '|i1', 'fortran_order': False, 'shape': (3,)}", 3,
     "integers of another size|i1'|i8"},
    {"unsigned integers", "{'descr': '<u8', 'fortran_order': False, 'shape': (3,)}", 24,
     "unsigned integers of another size|'<u8'|i8"},
    {"booleans", "{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", 3, "booleans|i8"},
    {"a byte too few", "{'descr': '<i8', 'fortran_order': False, 'shape': (3,)}", 23,
     "cut short|(3,) of i8 needs 24|23 are"},
};

/* Files that go wrong before the dictionary begins. */
static const bad_beginning bad_beginnings[] = {
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
    for (size_t i = 0; i < COUNT(bad_labels); i++) {
        const struct bad_npy *bad = &bad_labels[i];
        file file = npy_file(1, bad->dictionary);
        const bool parsed = npy_parse(file.bytes, file.size, file.size + bad->data, FOR_LABELS, &layout, &problem);
        check_refusal(bad->what, parsed, &problem, bad->words);
        free(file.bytes);
    }
    for (size_t i = 0; i < COUNT(bad_beginnings); i++) {
        const bad_beginning *bad = &bad_beginnings[i];
        file file = {0};
        append(&file, bad->bytes, bad->size);
        const bool parsed = npy_parse(file.bytes, file.size, bad->file_size, FOR_NUMBERS, &layout, &problem);
        check_refusal(bad->words, parsed, &problem, bad->words);
        free(file.bytes);
    }
    CHECK(!npy_is_meant((const unsigned char *)"", 0), "an empty file is taken for a .npy file");
    CHECK(!npy_is_meant((const unsigned char *)"N", 1), "N is taken for the beginning of a .npy file");
}

/* ---------------------------------------------------------------- written -- */

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
        const uint64_t bytes = (uint64_t)count * onepass_dtype_size(one->dtype);
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

int main(void) {
    test_npy();
    test_writing();
    test_longest();
    return check_finish();
}
