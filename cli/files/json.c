/*
 * The reader of JSON, from the bytes up: places in the text, strings, numbers, values, and what nests.
 *
 * Between two calls the reader stands either before a value that waits, or behind one (or behind the bracket that opens
 * an object or array, which is then `first`); so which commas, colons and brackets may follow is known without a tree.
 */
#include "json.h"
#include "utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- places -- */

/* Behind the end there is a byte that nothing expects. */
static int byte_at(const json *reader, size_t at) {
    return at < reader->size ? reader->text[at] : -1;
}

static bool refuse(json *reader, size_t at, const char *expected) {
    reader->failed = true;
    reader->waits = false;
    return fail_expected(&reader->problem, expected, reader->text, reader->size, at, reader->origin);
}

/* For what a caller must not do, whatever the text. */
static bool refuse_call(json *reader, const char *what) {
    reader->failed = true;
    reader->waits = false;
    return fail(&reader->problem, "%s at byte %llu", what, (unsigned long long)reader->origin + reader->at);
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

/* ---------------------------------------------------------------- numbers -- */

typedef struct number {
    size_t end; /* where it ends in the text */
    bool whole; /* neither fraction nor exponent, and within an int64_t */
    int64_t integer;
} number;

static bool scan_digits(json *reader, size_t *at) {
    if (!is_digit(byte_at(reader, *at)))
        return refuse(reader, *at, "a digit");
    while (is_digit(byte_at(reader, *at)))
        ++*at;
    return true;
}

/* From `begin` to `end`, counted down from 0, since the least int64_t has no positive counterpart. -0 is none: an
 * integer would lose its sign. */
static bool add_digits(const json *reader, size_t begin, size_t end, int64_t *integer) {
    const bool negative = reader->text[begin] == '-';
    *integer = 0;
    for (size_t at = begin + negative; at < end; at++) {
        const int64_t digit = reader->text[at] - '0';
        if (__builtin_mul_overflow(*integer, 10, integer) || __builtin_sub_overflow(*integer, digit, integer))
            return false;
    }
    return negative ? *integer != 0 : !__builtin_sub_overflow(0, *integer, integer);
}

static bool scan_number(json *reader, number *number) {
    size_t at = reader->at;
    at += byte_at(reader, at) == '-';
    if (byte_at(reader, at) == '0')
        at++; /* no digit may follow; whatever comes next will refuse it */
    else if (!scan_digits(reader, &at))
        return false;
    bool plain = true;
    if (byte_at(reader, at) == '.') {
        plain = false;
        at++;
        if (!scan_digits(reader, &at))
            return false;
    }
    if (byte_at(reader, at) == 'e' || byte_at(reader, at) == 'E') {
        plain = false;
        at++;
        at += byte_at(reader, at) == '+' || byte_at(reader, at) == '-';
        if (!scan_digits(reader, &at))
            return false;
    }
    if (at - reader->at > JSON_LONGEST_NUMBER)
        return refuse(reader, reader->at, "a number of at most 1000 characters");
    number->end = at;
    number->whole = plain && add_digits(reader, reader->at, at, &number->integer);
    return true;
}

/* ---------------------------------------------------------------- values -- */

json_kind json_peek(json *reader) {
    if (!reader->waits)
        return JSON_NOTHING;
    pass_space(reader);
    number number = {0};
    const int byte = byte_at(reader, reader->at);
    switch (byte) {
    case '{':
        return JSON_OBJECT;
    case '[':
        return JSON_ARRAY;
    case '"':
        return JSON_STRING;
    case 't':
    case 'f':
        return JSON_BOOLEAN;
    case 'n':
        return JSON_NULL;
    }
    if (byte != '-' && !is_digit(byte)) {
        refuse(reader, reader->at, "a value");
        return JSON_NOTHING;
    }
    if (!scan_number(reader, &number))
        return JSON_NOTHING;
    return number.whole ? JSON_INTEGER : JSON_REAL;
}

/* Whether a value waits that is of this kind, or of the other that will do too. */
static bool expect(json *reader, json_kind kind, json_kind other, const char *expected) {
    static const char *const names[] = {
        [JSON_NOTHING] = "nothing", [JSON_OBJECT] = "an object",     [JSON_ARRAY] = "an array",
        [JSON_STRING] = "a string", [JSON_INTEGER] = "an integer",   [JSON_REAL] = "a real number",
        [JSON_NULL] = "null",       [JSON_BOOLEAN] = "true or false"};
    if (reader->failed)
        return false;
    if (!reader->waits)
        return refuse_call(reader, "no value waits");
    const json_kind found = json_peek(reader);
    if (found == kind || found == other)
        return true;
    if (reader->failed)
        return false;
    reader->failed = true;
    reader->waits = false;
    return fail(&reader->problem, "expected %s at byte %llu, not %s", expected,
                (unsigned long long)reader->origin + reader->at, names[found]);
}

static bool take_word(json *reader, const char *word) {
    const size_t length = strlen(word);
    if (reader->size - reader->at < length || memcmp(reader->text + reader->at, word, length) != 0)
        return refuse(reader, reader->at, "a value");
    reader->at += length;
    reader->waits = false;
    return true;
}

bool json_read_string(json *reader, json_string *string) {
    if (!expect(reader, JSON_STRING, JSON_STRING, "a string") || !scan_string(reader, string))
        return false;
    reader->waits = false;
    return true;
}

bool json_read_integer(json *reader, int64_t *integer) {
    number number = {0};
    if (!expect(reader, JSON_INTEGER, JSON_INTEGER, "an integer of 64 bits") || !scan_number(reader, &number))
        return false;
    *integer = number.integer;
    reader->at = number.end;
    reader->waits = false;
    return true;
}

/* strtod reads what scan_number has found to be a number, in the C locale, which a program keeps unless it asks for
 * another. */
bool json_read_real(json *reader, double *real) {
    number number = {0};
    if (!expect(reader, JSON_INTEGER, JSON_REAL, "a number") || !scan_number(reader, &number))
        return false;
    char digits[JSON_LONGEST_NUMBER + 1];
    const size_t length = number.end - reader->at;
    memcpy(digits, reader->text + reader->at, length);
    digits[length] = '\0';
    const double value = strtod(digits, NULL);
    if (isinf(value))
        return refuse(reader, reader->at, "a number that a double can hold");
    *real = value;
    reader->at = number.end;
    reader->waits = false;
    return true;
}

bool json_read_boolean(json *reader, bool *boolean) {
    if (!expect(reader, JSON_BOOLEAN, JSON_BOOLEAN, "true or false"))
        return false;
    const bool value = byte_at(reader, reader->at) == 't';
    if (!take_word(reader, value ? "true" : "false"))
        return false;
    *boolean = value;
    return true;
}

bool json_read_null(json *reader) {
    return expect(reader, JSON_NULL, JSON_NULL, "null") && take_word(reader, "null");
}

/* ---------------------------------------------------------------- what nests -- */

static bool enter(json *reader, json_kind kind, const char *expected) {
    if (!expect(reader, kind, kind, expected))
        return false;
    if (reader->depth == JSON_DEEPEST)
        return refuse_call(reader, "objects and arrays are nested too deep");
    reader->open[reader->depth++] = reader->text[reader->at++];
    reader->waits = false;
    reader->first = true;
    return true;
}

bool json_enter_object(json *reader) {
    return enter(reader, JSON_OBJECT, "an object");
}

bool json_enter_array(json *reader) {
    return enter(reader, JSON_ARRAY, "an array");
}

/* Passes a comma where one must be; false if the object or array ended instead. */
static bool pass_comma(json *reader, char closing, const char *expected) {
    pass_space(reader);
    const int byte = byte_at(reader, reader->at);
    const bool first = reader->first;
    reader->first = false;
    if (byte == closing) {
        reader->at++;
        reader->depth--;
        return false;
    }
    if (first)
        return true;
    if (byte != ',')
        return refuse(reader, reader->at, expected);
    reader->at++;
    return true;
}

static bool advance_element(json *reader) {
    reader->waits = pass_comma(reader, ']', "',' or ']'");
    return reader->waits;
}

static bool advance_member(json *reader, json_string *key) {
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
    reader->waits = true;
    return true;
}

/* Takes a value that does not nest, and enters one that does. */
static bool take_any(json *reader) {
    json_string string;
    number number = {0};
    bool boolean;
    switch (json_peek(reader)) {
    case JSON_NOTHING:
        return false;
    case JSON_OBJECT:
        return json_enter_object(reader);
    case JSON_ARRAY:
        return json_enter_array(reader);
    case JSON_STRING:
        return json_read_string(reader, &string);
    case JSON_BOOLEAN:
        return json_read_boolean(reader, &boolean);
    case JSON_NULL:
        return json_read_null(reader);
    case JSON_INTEGER:
    case JSON_REAL:
        break;
    }
    if (!scan_number(reader, &number))
        return false;
    reader->at = number.end;
    reader->waits = false;
    return true;
}

bool json_skip(json *reader) {
    if (reader->failed)
        return false;
    if (!reader->waits)
        return refuse_call(reader, "no value waits");
    const int depth = reader->depth;
    do {
        json_string key;
        if (reader->waits)
            take_any(reader);
        else if (reader->open[reader->depth - 1] == '[')
            advance_element(reader);
        else
            advance_member(reader, &key);
    } while (!reader->failed && (reader->waits || reader->depth > depth));
    return !reader->failed;
}

/* Whether the reader stands between two values of an object ('{') or array ('['). */
static bool is_inside(json *reader, unsigned char bracket) {
    if (reader->failed || (reader->waits && !json_skip(reader)))
        return false;
    if (reader->depth > 0 && reader->open[reader->depth - 1] == bracket)
        return true;
    return refuse_call(reader, bracket == '{' ? "no object is open" : "no array is open");
}

bool json_next_member(json *reader, json_string *key) {
    return is_inside(reader, '{') && advance_member(reader, key);
}

bool json_next_element(json *reader) {
    return is_inside(reader, '[') && advance_element(reader);
}

/* ---------------------------------------------------------------- the text -- */

void json_open(json *reader, const void *text, size_t size, size_t origin) {
    *reader = (json){.text = text, .size = size, .origin = origin, .waits = true};
}

bool json_close(json *reader) {
    if (reader->failed || (reader->waits && !json_skip(reader)))
        return false;
    if (reader->depth > 0)
        return refuse_call(reader, "an object or array is still open");
    pass_space(reader);
    return reader->at == reader->size || refuse(reader, reader->at, "the end");
}
