/*
 * The reader of JSON, which safetensors files have their headers in and the benchmark its records: what is expected is
 * by RFC 8259.
 */
#include "../cli/files/json.h"

#include "test_files.h"

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
    test_json_tables();
    test_json_mismatches();
    test_json_order();
    test_json_strings();
    test_json_limits();
    return check_finish();
}
