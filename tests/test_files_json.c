/*
 * The reader of JSON, which safetensors files have their headers in: what is expected is by RFC 8259.
 */
#include "../cli/files/json.h"

#include "test_files.h"

/* Writes what the reader finds in a notation of its own: strings in <>, integers as they are. What is expected at the
 * place is told by the byte there, as no caller of the reader would do it. */
static void write_value(json *reader, char *text, size_t size) {
    json_string string;
    int64_t integer;
    char part[64] = "";
    while (reader->at < reader->size && strchr(" \t\r\n", reader->text[reader->at]))
        reader->at++;
    const int byte = reader->at < reader->size ? reader->text[reader->at] : -1;
    if (byte == '{') {
        json_enter_object(reader);
        strncat(text, "{", size - strlen(text) - 1);
        while (json_next_member(reader, &string)) {
            json_copy(string, part, sizeof part);
            snprintf(text + strlen(text), size - strlen(text), "<%s>:", part);
            write_value(reader, text, size);
        }
        snprintf(part, sizeof part, "}");
    } else if (byte == '[') {
        json_enter_array(reader);
        strncat(text, "[", size - strlen(text) - 1);
        while (json_next_element(reader))
            write_value(reader, text, size);
        snprintf(part, sizeof part, "]");
    } else if (byte == '"') {
        if (json_read_string(reader, &string)) {
            part[0] = '<';
            json_copy(string, part + 1, sizeof part - 2);
            strcat(part, ">");
        }
    } else if (json_read_integer(reader, &integer)) {
        snprintf(part, sizeof part, "%lld ", (long long)integer);
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
    {"{\"a\":{\"b\":[1,2]},\"c\":\"\"}", "{<a>:{<b>:[1 2 ]}<c>:<>}"},
    {"{\"a\":1,\"a\":2}", "{<a>:1 <a>:2 }"},
    {"[0,7,-12]", "[0 7 -12 ]"},
    {"[9223372036854775807,-9223372036854775808]", "[9223372036854775807 -9223372036854775808 ]"},
    {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "<\"\\/\b\f\n\r\t>"},
    {"\"\\u0041\\u00e9\\u20AC\\uD83D\\uDE00\"", "<A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80>"},
    {"\"\xc3\xa9\xe2\x82\xac\xed\x9f\xbf\xee\x80\x80\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf\x7f\"",
     "<\xc3\xa9\xe2\x82\xac\xed\x9f\xbf\xee\x80\x80\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf\x7f>"},
};

static const struct bad_json {
    const char *text;
    const char *words;
} bad_json[] = {
    {"", "expected an integer of 64 bits at byte 0, where it ends"},
    {" ", "expected an integer of 64 bits at byte 1, where it ends"},
    {"\xef\xbb\xbf{}", "expected an integer of 64 bits at byte 0, not the byte 0xef"},
    {"{} {}", "expected the end at byte 3, not '{'"},
    {"]", "expected an integer of 64 bits at byte 0, not ']'"},
    {"[1 2]", "expected ',' or ']' at byte 3, not '2'"},
    {"[1,]", "expected an integer of 64 bits at byte 3, not ']'"},
    {"[,1]", "expected an integer of 64 bits at byte 1, not ','"},
    {"[1", "expected ',' or ']' at byte 2, where it ends"},
    {"[1}", "expected ',' or ']' at byte 2, not '}'"},
    {"[1\n,\v2]", "expected an integer of 64 bits at byte 4, not the byte 0x0b"},
    {"{\"a\" 1}", "expected ':' at byte 5, not '1'"},
    {"{\"a\":}", "expected an integer of 64 bits at byte 5, not '}'"},
    {"{\"a\":1,}", "expected a key in double quotes at byte 7, not '}'"},
    {"{\"a\":1 \"b\":2}", "expected ',' or '}' at byte 7, not '\"'"},
    {"{1:2}", "expected a key in double quotes or '}' at byte 1, not '1'"},
    {"{\"a\":1", "expected ',' or '}' at byte 6, where it ends"},
    {"[true]", "expected an integer of 64 bits at byte 1, not true or false"},
    {"null", "expected an integer of 64 bits at byte 0, not null"},
    {"NaN", "expected an integer of 64 bits at byte 0, not 'N'"},
    {"-Infinity", "expected an integer of 64 bits at byte 0, not another number"},
    {"+1", "expected an integer of 64 bits at byte 0, not '+'"},
    {"-", "expected an integer of 64 bits at byte 0, not another number"},
    {"01", "expected an integer of 64 bits at byte 0, not another number"},
    {"-0", "expected an integer of 64 bits at byte 0, not another number"},
    {"-00", "expected an integer of 64 bits at byte 0, not another number"},
    {"5.", "expected an integer of 64 bits at byte 0, not another number"},
    {"5.5", "expected an integer of 64 bits at byte 0, not another number"},
    {"5e1", "expected an integer of 64 bits at byte 0, not another number"},
    {"5E1", "expected an integer of 64 bits at byte 0, not another number"},
    {"9223372036854775808", "expected an integer of 64 bits at byte 0, not another number"},
    {"-9223372036854775809", "expected an integer of 64 bits at byte 0, not another number"},
    {"99999999999999999999999", "expected an integer of 64 bits at byte 0, not another number"},
    {"0x10", "expected the end at byte 1, not 'x'"},
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
        free(file.bytes);
    }
    for (size_t i = 0; i < COUNT(bad_json); i++) {
        char found[256] = "";
        file file = json_text(bad_json[i].text);
        json_open(&reader, file.bytes, file.size, 0);
        write_value(&reader, found, sizeof found);
        check_refusal(bad_json[i].text, json_close(&reader), &reader.problem, bad_json[i].words);
        json_string string;
        int64_t integer;
        CHECK(!json_close(&reader) && reader.failed && !json_read_string(&reader, &string) &&
                  !json_read_integer(&reader, &integer) && !json_enter_object(&reader) && !json_next_element(&reader),
              "%s: the reader goes on after its failure", bad_json[i].text);
        free(file.bytes);
    }
}

/* A caller that asks for something else than is there is told so, with the place as it counts it. */
static void test_json_mismatches(void) {
    const char *const text[] = {"{}", "[]", "\"\"", "1", "true", "null"};
    static const char *const names[] = {"an object", "an array", "a string", "a number", "true or false", "null"};
    for (size_t value = 0; value < COUNT(text); value++) {
        for (size_t asked = 0; asked < 4; asked++) {
            json reader;
            json_string string;
            int64_t integer;
            json_open(&reader, text[value], strlen(text[value]), 1000);
            const bool taken = asked == 0   ? json_enter_object(&reader)
                               : asked == 1 ? json_enter_array(&reader)
                               : asked == 2 ? json_read_string(&reader, &string)
                                            : json_read_integer(&reader, &integer);
            CHECK(taken == (value == asked), "value %zu asked for as %zu", value, asked);
            if (!taken)
                CHECK(has_words(reader.problem.text, "expected |at byte 1000") &&
                          strstr(reader.problem.text, names[value]) != NULL,
                      "value %zu asked for as %zu: got \"%s\"", value, asked, reader.problem.text);
        }
    }
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

int main(void) {
    test_json_tables();
    test_json_mismatches();
    test_json_strings();
    return check_finish();
}
