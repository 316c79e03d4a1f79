/*
 * Headers of safetensors files: what is expected is by the README of safetensors. The JSON in them has a test of its
 * own, test_files_json.c.
 */
#include "../cli/files/safetensors.h"

#include <time.h>

#include "test_files.h"

static file safetensors_file(const char *header) {
    file file = {0};
    append_number(&file, strlen(header), 8);
    append(&file, header, strlen(header));
    return file;
}

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
    {"{" TENSOR("p", "F64", "[1]", 0, 8)           /* 64 bits */
     "," TENSOR("q", "I64", "[1]", 8, 16)          /* 64 bits */
     "," TENSOR("r", "U64", "[1]", 16, 24)         /* 64 bits */
     "," TENSOR("s", "C64", "[1]", 24, 32)         /* 64 bits */
     "," TENSOR("t", "I32", "[1]", 32, 36)         /* 32 bits */
     "," TENSOR("u", "U32", "[1]", 36, 40)         /* 32 bits */
     "," TENSOR("v", "I16", "[1]", 40, 42)         /* 16 bits */
     "," TENSOR("w", "U16", "[1]", 42, 44)         /* 16 bits */
     "," TENSOR("x", "I8", "[1]", 44, 45)          /* 8 bits */
     "," TENSOR("y", "U8", "[1]", 45, 46)          /* 8 bits */
     "," TENSOR("z", "BOOL", "[1]", 46, 47)        /* 8 bits */
     "," TENSOR("A", "F8_E4M3", "[1]", 47, 48)     /* 8 bits */
     "," TENSOR("B", "F8_E5M2", "[1]", 48, 49)     /* 8 bits */
     "," TENSOR("C", "F8_E8M0", "[1]", 49, 50)     /* 8 bits */
     "," TENSOR("D", "F4", "[2]", 50, 51)          /* 4 bits */
     "," TENSOR("E", "F6_E2M3", "[4]", 51, 54)     /* 6 bits */
     "," TENSOR("F", "F6_E3M2", "[4]", 54, 57)     /* 6 bits */
     "," TENSOR("G", "F8_E4M3FNUZ", "[1]", 57, 58) /* 8 bits */
     "," TENSOR("H", "F8_E5M2FNUZ", "[1]", 58, 59) /* 8 bits */
     "," TENSOR("mine", "BF16", "[2]", 59, 63)     /* 16 bits */
     "}",
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
    {"a number as a tensor", "{\"a\":1}", NULL, 0, "expected an object at byte 13, not a number"},
    {"an array as a tensor", "{\"a\":[\"F32\",[],[0,4]]}", NULL, 4, "expected an object at byte 13, not an array"},
    {"no dtype", "{\"a\":{\"shape\":[],\"data_offsets\":[0,4]}}", NULL, 4, "'a'|no key 'dtype'"},
    {"no shape", "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", NULL, 4, "'a'|no key 'shape'"},
    {"no data_offsets", "{\"a\":{\"dtype\":\"F32\",\"shape\":[]}}", NULL, 4, "'a'|no key 'data_offsets'"},
    {"dtype twice", "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", NULL, 4, "'a'|key 'dtype' twice"},
    {"shape twice", "{\"a\":{\"shape\":[],\"sh\\u0061pe\":[]}}", NULL, 4, "'a'|key 'shape' twice"},
    {"an unknown key", "{\"a\":{\"dtype\":\"F32\",\"color\":\"red\"}}", NULL, 4, "'a'|unknown key 'color'"},
    {"a number as the dtype", "{\"a\":{\"dtype\":32}}", NULL, 4, "expected a string at byte 22, not a number"},
    {"a number as the shape", "{\"a\":{\"shape\":3}}", NULL, 4, "expected an array at byte 22, not a number"},
    {"a string as an extent", "{\"a\":{\"shape\":[\"3\"]}}", NULL, 4,
     "expected an integer of 64 bits at byte 23, not a string"},
    {"a fraction as an extent", "{\"a\":{\"shape\":[3.0]}}", NULL, 4,
     "expected an integer of 64 bits at byte 23, not another number"},
    {"a negative zero", "{\"a\":{\"shape\":[-0]}}", NULL, 0, "expected an integer of 64 bits at byte 23"},
    {"an extent beyond 63 bits", "{\"a\":{\"shape\":[9223372036854775808]}}", NULL, 4, "integer of 64 bits|byte 23"},
    {"a negative extent", "{" TENSOR("a", "F32", "[2,-3]", 0, 24) "}", NULL, 24, "'a'|negative"},
    {"no offset", "{\"a\":{\"data_offsets\":[]}}", NULL, 4, "'a'|two data_offsets|fewer"},
    {"one offset", "{\"a\":{\"data_offsets\":[0]}}", NULL, 4, "'a'|two data_offsets|fewer"},
    {"three offsets", "{\"a\":{\"data_offsets\":[0,4,8]}}", NULL, 4, "'a'|two data_offsets|more"},
    {"a string as an offset", "{\"a\":{\"data_offsets\":[0,\"4\"]}}", NULL, 4, "expected an integer|not a string"},

    /* Metadata. */
    {"metadata that are a string", "{\"__metadata__\":\"pt\"}", NULL, 0, "expected an object at byte 24, not a string"},
    {"a number in the metadata", "{\"__metadata__\":{\"epoch\":3}}", NULL, 0, "expected a string|not a number"},
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

/* Files that go wrong before the JSON begins. */
static const bad_beginning bad_beginnings[] = {
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
    for (size_t i = 0; i < COUNT(bad_beginnings); i++) {
        const bad_beginning *bad = &bad_beginnings[i];
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

/* Masks, class indices and numbers in one file: each is taken for what it is, and for nothing else. */
static void test_masks_in_safetensors(void) {
    file file = safetensors_file("{" TENSOR("p", "F32", "[2]", 0, 8) "," TENSOR("m", "BOOL", "[3,1]", 8, 11) "," TENSOR(
        "b", "U8", "[2]", 11, 13) "," TENSOR("i", "I8", "[2]", 13, 15) "," TENSOR("l", "I64", "[1]", 15,
                                                                                  23) "," TENSOR("k", "I32", "[1]", 23,
                                                                                                 27) "}");
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
        {"l", FOR_LABELS, 15, "i64 (1,) by (1,)"},
        {"k", FOR_LABELS, 23, "i32 (1,) by (1,)"},
        {"b", FOR_LABELS, 11, "u8 (2,) by (1,)"},
        {"i", FOR_LABELS, 0, "'i'|type I8|I64, I32 or U8"},
        {"p", FOR_LABELS, 0, "'p'|type F32|I64, I32 or U8"},
        {"l", FOR_NUMBERS, 0, "'l'|type I64|F16, BF16, F32 or F64"},
        {"b", FOR_NUMBERS_OR_BITS, 0, "'b'|type U8|F16, BF16, F32 or F64"},
    };
    layout layout;
    problem problem;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const bool parsed = safetensors_parse(file.bytes, file.size, file.size + 27, cases[i].name, cases[i].purpose,
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

int main(void) {
    test_safetensors();
    test_masks_in_safetensors();
    test_many_tensors();
    return check_finish();
}
