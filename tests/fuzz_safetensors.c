/*
 * A fuzzer of the parser of safetensors headers and of the JSON reader under it. Whatever the bytes, the parser stays
 * inside them; a tensor that it finds lies in the file; a failure has a sentence. And a text that the reader skips as a
 * whole, it reads value by value with the same result.
 *
 * Under libFuzzer this is the whole program; elsewhere fuzz_driver.c calls it with pseudo-random bytes.
 */
#include "../cli/files/json.h"
#include "../cli/files/safetensors.h"

#include "fuzz_files.h"

long fuzz_failures;
bool fuzz_goes_on;

static const char *const members[] = {
    "\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}",
    "\"b\":{\"shape\":[2],\"data_offsets\":[12,16],\"dtype\":\"BF16\"}",
    "\"\\u0061\":{\"dtype\":\"F16\",\"shape\":[],\"data_offsets\":[0,2]}",
    "\"e\":{\"dtype\":\"F64\",\"shape\":[0],\"data_offsets\":[0,0]}",
    "\"\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}",
    "\"\\u0000\\ud83d\\ude00\":{\"dtype\":\"U8\",\"shape\":[12],\"data_offsets\":[0,12]}",
    "\"x\":{\"dtype\":\"X9\",\"shape\":[5,5],\"data_offsets\":[16,24]}",
    "\"f\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}",
    "\"i\":{\"dtype\":\"I64\",\"shape\":[9223372036854775807,8],\"data_offsets\":[0,8]}",
    "\"n\":{\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[-1,-9223372036854775808]}",
    "\"m\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[4,12]}",
    "\"k\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}",
    "\"__metadata__\":{\"format\":\"pt\"}",
    "\"__metadata__\":{\"epoch\":[3,{\"a\":null}]}",
    ",",
    ",",
    ",",
    " ",
    "\"a\":{\"dtype\":\"BOOL\",\"shape\":[2,4],\"data_offsets\":[0,8]}",
};

/* The header of a dressed file is the input itself, or made of members. */
static built build(const choice *choice, const uint8_t *data, size_t size) {
    built file = {0}, header = {0};
    if (choice->dressing == 0) {
        append(&file, data, size);
        return file;
    }
    if (choice->dressing == 1)
        append(&header, data, size);
    else
        append_members(&header, data, size, members, sizeof members / sizeof *members);
    append_number(&file, header.size, 8);
    append(&file, header.bytes, header.size);
    free(header.bytes);
    return file;
}

static void check_string(json_string string) {
    char text[16];
    memset(text, 0x5a, sizeof text);
    const size_t length = json_copy(string, text, sizeof text);
    fuzz_check(length <= string.size, "a string grew when its escapes were resolved");
    fuzz_check(memchr(text, '\0', sizeof text) != NULL, "a copy has no end");
    if (length < sizeof text && strlen(text) == length)
        fuzz_check(json_equals(string, text), "a string is not equal to its copy");
    fuzz_check(json_compare(string, string) == 0, "a string is not equal to itself");
}

/* Takes the value that waits by the function for its kind. Returns the bracket if it nests, else 0. */
static unsigned char take_value(json *reader) {
    json_string string;
    int64_t integer;
    double real;
    bool boolean;
    switch (json_peek(reader)) {
    case JSON_NOTHING:
        break;
    case JSON_OBJECT:
        return json_enter_object(reader) ? '{' : 0;
    case JSON_ARRAY:
        return json_enter_array(reader) ? '[' : 0;
    case JSON_STRING:
        if (json_read_string(reader, &string))
            check_string(string);
        break;
    case JSON_INTEGER:
        json_read_integer(reader, &integer);
        break;
    case JSON_REAL:
        json_read_real(reader, &real);
        break;
    case JSON_BOOLEAN:
        json_read_boolean(reader, &boolean);
        break;
    case JSON_NULL:
        json_read_null(reader);
        break;
    }
    return 0;
}

static bool find_next(json *reader, unsigned char bracket) {
    json_string key;
    if (bracket == '[')
        return json_next_element(reader);
    if (!json_next_member(reader, &key))
        return false;
    check_string(key);
    return true;
}

/* Everything of the text, value by value. Returns what json_close does. */
static bool walk(json *reader) {
    unsigned char open[JSON_DEEPEST];
    int depth = 0;
    do {
        const unsigned char bracket = take_value(reader);
        if (bracket != 0)
            open[depth++] = bracket;
        while (depth > 0 && !find_next(reader, open[depth - 1]))
            depth--;
    } while (depth > 0);
    return json_close(reader);
}

/* A number beyond a double is only found when it is read; nothing else may tell the two ways apart. */
static void check_json(const unsigned char *text, size_t size) {
    json skipping, walking;
    json_open(&skipping, text, size, 8);
    json_open(&walking, text, size, 8);
    const bool skipped = json_close(&skipping), walked = walk(&walking);
    const bool too_large = walking.failed && strstr(walking.problem.text, "that a double can hold") != NULL;
    fuzz_check(skipped == walked || too_large, "skipping and reading do not agree");
    fuzz_check(skipped || too_large || strcmp(skipping.problem.text, walking.problem.text) == 0,
               "skipping and reading fail for different reasons");
    if (!skipped)
        check_problem(&skipping.problem);
    if (!walked)
        check_problem(&walking.problem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const names[] = {NULL, "a", "b", "", "e", "x", "__metadata__", "a name that no file has"};
    const choice choice = choose(data, size);
    const built file = build(&choice, data, size);
    const uint64_t file_size = choose_file_size(&choice, file.size);
    const purpose purpose = choice.option & 8 ? FOR_MASK : FOR_NUMBERS;
    layout layout;
    problem problem;
    memset(&layout, 0x5a, sizeof layout);
    memset(&problem, 0x5a, sizeof problem);
    safetensors_is_meant(file.bytes, file.size);
    if (safetensors_parse(file.bytes, file.size, file_size, names[choice.option % 8], purpose, &layout, &problem)) {
        fuzz_check((layout.dtype == ONEPASS_BOOL) == (purpose == FOR_MASK), "a tensor is not what was wanted");
        check_layout(&layout, file_size);
        fuzz_check(layout.ndim == 0 || layout.count == 0 || is_dense(&layout, false), "strides are not of C order");
    } else {
        check_problem(&problem);
    }
    if (file.size >= 8)
        check_json(file.bytes + 8, file.size - 8);
    free(file.bytes);
    return 0;
}
