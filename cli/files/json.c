/* The reader of JSON, from the bytes up: places in the text, strings, values, and what nests. */
#include "json.h"
#include "utf8.h"

#include <string.h>

/* ---------------------------------------------------------------- places -- */

/* Behind the end there is a byte that nothing expects. */
static int byte_at(const json *reader, size_t at) {
    return at < reader->size ? reader->text[at] : -1;
}

static bool refuse(json *reader, size_t at, const char *expected) {
    reader->failed = true;
    return fail_expected(&reader->problem, expected, reader->text, reader->size, at, reader->origin);
}

static void pass_space(json *reader) {
    for (;;) {
        const int byte = byte_at(reader, reader->at);
        if (byte != ' ' && byte != '\t' && byte != '\n' && byte != '\r')
            return;
        reader->at++;
    }
}

static bool is_digit(int byte) {
    return byte >= '0' && byte <= '9';
}

/* ---------------------------------------------------------------- characters -- */

static size_t write_utf8(uint32_t character, unsigned char bytes[4]) {
    const size_t length = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    for (size_t i = length; i-- > 1; character >>= 6)
        bytes[i] = (unsigned char)(0x80 | (character & 0x3f));
    static const unsigned char marks[5] = {0, 0, 0xc0, 0xe0, 0xf0};
    bytes[0] = (unsigned char)(marks[length] | character);
    return length;
}

/* -1 unless four hexadecimal digits stand there. */
static int32_t four_digits(const unsigned char *text, size_t size) {
    int32_t unit = 0;
    for (size_t i = 0; i < 4; i++) {
        const int byte = i < size ? text[i] : -1;
        const int letter = byte | 0x20;
        if (is_digit(byte))
            unit = unit * 16 + (byte - '0');
        else if (letter >= 'a' && letter <= 'f')
            unit = unit * 16 + (letter - 'a' + 10);
        else
            return -1;
    }
    return unit;
}

static bool is_high_surrogate(int32_t unit) {
    return unit >= 0xd800 && unit < 0xdc00;
}

static bool is_low_surrogate(int32_t unit) {
    return unit >= 0xdc00 && unit < 0xe000;
}

/* Takes the first character off a string that scan_string has checked, in UTF-8. */
static size_t take_character(json_string *rest, unsigned char bytes[4]) {
    static const char letters[] = "bfnrt", meanings[] = "\b\f\n\r\t";
    const unsigned char *raw = rest->raw;
    size_t taken = utf8_length(raw, rest->size), length = taken;
    memcpy(bytes, raw, taken);
    if (raw[0] == '\\' && raw[1] != 'u') {
        const char *letter = strchr(letters, raw[1]);
        bytes[0] = letter != NULL ? (unsigned char)meanings[letter - letters] : raw[1];
        taken = 2;
    } else if (raw[0] == '\\') {
        int32_t unit = four_digits(raw + 2, rest->size - 2);
        taken = 6;
        if (is_high_surrogate(unit)) {
            unit = 0x10000 + (unit - 0xd800) * 0x400 + (four_digits(raw + 8, rest->size - 8) - 0xdc00);
            taken = 12;
        }
        length = write_utf8((uint32_t)unit, bytes);
    }
    rest->raw += taken;
    rest->size -= taken;
    return length;
}

/* ---------------------------------------------------------------- strings -- */

/* The bytes of an escape, 0 if it is none. */
static size_t scan_escape(json *reader, size_t at) {
    const int letter = byte_at(reader, at + 1);
    if (letter != 'u') {
        const bool known = letter > 0 && strchr("\"\\/bfnrt", letter) != NULL;
        return known ? 2 : (size_t)refuse(reader, at + 1, "one of \"\\/bfnrtu after a backslash");
    }
    const unsigned char *escape = reader->text + at;
    const size_t size = reader->size - at;
    const int32_t unit = four_digits(escape + 2, size - 2);
    if (unit < 0)
        return (size_t)refuse(reader, at + 2, "four hexadecimal digits");
    if (is_low_surrogate(unit))
        return (size_t)refuse(reader, at, "the first half of a surrogate pair before its second");
    if (!is_high_surrogate(unit))
        return 6;
    if (byte_at(reader, at + 6) == '\\' && byte_at(reader, at + 7) == 'u' &&
        is_low_surrogate(four_digits(escape + 8, size - 8)))
        return 12;
    return (size_t)refuse(reader, at + 6, "the second half of a surrogate pair");
}

/* Reads a string, with its quotes, where one is known to begin. */
static bool scan_string(json *reader, json_string *string) {
    const size_t begin = reader->at + 1;
    size_t at = begin;
    bool escaped = false;
    for (int byte; (byte = byte_at(reader, at)) != '"';) {
        if (byte < ' ')
            return refuse(reader, at, "a character of a string or its closing quote");
        escaped |= byte == '\\';
        const size_t length =
            byte == '\\' ? scan_escape(reader, at) : utf8_length(reader->text + at, reader->size - at);
        if (length == 0)
            return !reader->failed && refuse(reader, at, "a character in UTF-8");
        at += length;
    }
    *string = (json_string){.raw = reader->text + begin, .size = at - begin, .escaped = escaped};
    reader->at = at + 1;
    return true;
}

size_t json_copy(json_string string, char *text, size_t size) {
    size_t length = 0, kept = 0;
    bool fits = true;
    while (string.size > 0) {
        unsigned char bytes[4];
        const size_t taken = take_character(&string, bytes);
        length += taken;
        fits = fits && length < size;
        if (fits) {
            memcpy(text + kept, bytes, taken);
            kept = length;
        }
    }
    if (size > 0)
        text[kept] = '\0';
    return length;
}

bool json_equals(json_string string, const char *text) {
    size_t left = strlen(text);
    if (!string.escaped)
        return string.size == left && memcmp(string.raw, text, left) == 0;
    while (string.size > 0) {
        unsigned char bytes[4];
        const size_t taken = take_character(&string, bytes);
        if (taken > left || memcmp(bytes, text, taken) != 0)
            return false;
        text += taken;
        left -= taken;
    }
    return left == 0;
}

int json_compare(json_string a, json_string b) {
    int order = 0;
    if (!a.escaped && !b.escaped) {
        order = memcmp(a.raw, b.raw, a.size < b.size ? a.size : b.size);
        return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
    }
    while (order == 0 && a.size > 0 && b.size > 0) {
        /* Characters of different lengths differ in their first byte already. */
        unsigned char left[4] = {0}, right[4] = {0};
        take_character(&a, left);
        take_character(&b, right);
        order = memcmp(left, right, sizeof left);
    }
    return order != 0 ? order : (a.size > 0) - (b.size > 0);
}

/* ---------------------------------------------------------------- values -- */

/* What begins with this byte, or null. */
static const char *kind_of(int byte) {
    switch (byte) {
    case '{':
        return "an object";
    case '[':
        return "an array";
    case '"':
        return "a string";
    case 't':
    case 'f':
        return "true or false";
    case 'n':
        return "null";
    }
    return byte == '-' || is_digit(byte) ? "a number" : NULL;
}

/* Whether the next value begins with this byte. */
static bool expect(json *reader, int byte, const char *expected) {
    if (reader->failed)
        return false;
    pass_space(reader);
    const int found = byte_at(reader, reader->at);
    if (found == byte)
        return true;
    const char *kind = kind_of(found);
    if (!kind)
        return refuse(reader, reader->at, expected);
    reader->failed = true;
    return fail(&reader->problem, "expected %s at byte %llu, not %s", expected,
                (unsigned long long)reader->origin + reader->at, kind);
}

bool json_read_string(json *reader, json_string *string) {
    return expect(reader, '"', "a string") && scan_string(reader, string);
}

/* Counted down from 0, since the least int64_t has no positive counterpart. */
bool json_read_integer(json *reader, int64_t *integer) {
    static const char expected[] = "an integer of 64 bits";
    if (reader->failed)
        return false;
    pass_space(reader);
    const bool negative = byte_at(reader, reader->at) == '-';
    const size_t first = reader->at + negative;
    size_t at = first;
    bool fits = true;
    if (!negative && !is_digit(byte_at(reader, at)))
        return expect(reader, '0', expected);
    for (*integer = 0; is_digit(byte_at(reader, at)); at++)
        fits = fits && !__builtin_mul_overflow(*integer, 10, integer) &&
               !__builtin_sub_overflow(*integer, reader->text[at] - '0', integer);
    const int next = byte_at(reader, at);
    const bool is_padded = at > first + 1 && reader->text[first] == '0', is_real = next == '.' || (next | 0x20) == 'e';
    fits = fits && (negative ? *integer != 0 : !__builtin_sub_overflow(0, *integer, integer)); /* -0 is no integer */
    if (at == first || is_padded || is_real || !fits) {
        reader->failed = true;
        return fail(&reader->problem, "expected %s at byte %llu, not another number", expected,
                    (unsigned long long)reader->origin + reader->at);
    }
    reader->at = at;
    return true;
}

/* ---------------------------------------------------------------- what nests -- */

static bool enter(json *reader, int bracket, const char *expected) {
    if (!expect(reader, bracket, expected))
        return false;
    reader->at++;
    reader->first = true;
    return true;
}

bool json_enter_object(json *reader) {
    return enter(reader, '{', "an object");
}

bool json_enter_array(json *reader) {
    return enter(reader, '[', "an array");
}

/* Passes a comma where one must be; false if the object or array ended instead. */
static bool pass_comma(json *reader, char closing, const char *expected) {
    if (reader->failed)
        return false;
    pass_space(reader);
    const int byte = byte_at(reader, reader->at);
    const bool first = reader->first;
    reader->first = false;
    if (byte == closing) {
        reader->at++;
        return false;
    }
    if (first)
        return true;
    if (byte != ',')
        return refuse(reader, reader->at, expected);
    reader->at++;
    return true;
}

bool json_next_element(json *reader) {
    return pass_comma(reader, ']', "',' or ']'");
}

bool json_next_member(json *reader, json_string *key) {
    const bool first = reader->first;
    if (!pass_comma(reader, '}', "',' or '}'"))
        return false;
    pass_space(reader);
    if (byte_at(reader, reader->at) != '"')
        return refuse(reader, reader->at, first ? "a key in double quotes or '}'" : "a key in double quotes");
    if (!scan_string(reader, key))
        return false;
    pass_space(reader);
    if (byte_at(reader, reader->at) != ':')
        return refuse(reader, reader->at, "':'");
    reader->at++;
    return true;
}

/* ---------------------------------------------------------------- the text -- */

void json_open(json *reader, const void *text, size_t size, size_t origin) {
    *reader = (json){.text = text, .size = size, .origin = origin};
}

bool json_close(json *reader) {
    if (reader->failed)
        return false;
    pass_space(reader);
    return reader->at == reader->size || refuse(reader, reader->at, "the end");
}
