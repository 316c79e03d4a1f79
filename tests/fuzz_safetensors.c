/*
 * A fuzzer of the parser of safetensors headers and of the JSON reader under it. Whatever the bytes, the parser stays
 * inside them; a tensor that it finds lies in the file; a failure has a sentence.
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

/* Keys and strings of an object, as far as it has nothing else. */
static void check_json(const unsigned char *text, size_t size) {
    json reader;
    json_string key, string;
    json_open(&reader, text, size, 8);
    json_enter_object(&reader);
    while (json_next_member(&reader, &key)) {
        check_string(key);
        if (json_read_string(&reader, &string))
            check_string(string);
    }
    if (!json_close(&reader))
        check_problem(&reader.problem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const names[] = {NULL, "a", "b", "", "e", "x", "__metadata__", "a name that no file has"};
    const choice choice = choose(data, size);
    const built file = build(&choice, data, size);
    const uint64_t file_size = choose_file_size(&choice, file.size);
    const purpose purpose = !(choice.option & 8) ? FOR_NUMBERS : choice.amount & 1 ? FOR_LABELS : FOR_MASK;
    layout layout;
    problem problem;
    memset(&layout, 0x5a, sizeof layout);
    memset(&problem, 0x5a, sizeof problem);
    safetensors_is_meant(file.bytes, file.size);
    if (safetensors_parse(file.bytes, file.size, file_size, names[choice.option % 8], purpose, &layout, &problem)) {
        fuzz_check(suits(layout.dtype, purpose), "a tensor is not what was wanted");
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
