/*
 * A strict reader of JSON (RFC 8259) from memory. The caller asks for what it expects, in the order of the text:
 *
 *     json reader;
 *     json_string key, name;
 *     double seconds;
 *     json_open(&reader, text, size, 0);
 *     json_enter_object(&reader);
 *     while (json_next_member(&reader, &key)) {
 *         if (json_equals(key, "name")) {
 *             json_read_string(&reader, &name);
 *         } else if (json_equals(key, "seconds")) {
 *             json_enter_array(&reader);
 *             while (json_next_element(&reader))
 *                 json_read_real(&reader, &seconds);
 *         }
 *     }
 *     if (!json_close(&reader))
 *         return fail(problem, "is not what it should be: %s", reader.problem.text);
 *
 * Failure: the first one is kept in `problem` ("expected a string at byte 17, not a number"), and from then on every
 * function returns false. So a caller may look at what each call returns, or only at what json_close does; but what a
 * function that returned false was to fill in, it has not.
 *
 * Order: when json_next_member or json_next_element returns true, one value waits, and one of json_read_...,
 * json_enter_... or json_skip takes it; a value that nobody took is skipped. An object or array that was entered is
 * left by calling json_next_... until it returns false, and not before.
 *
 * Memory: none is allocated. The reader and its strings point into the text, which must stay. Objects and arrays nest
 * to JSON_DEEPEST and no deeper; no function calls itself.
 *
 * Strictness: the text is one value in UTF-8 and white space, without a byte order mark; no overlong or lone surrogate
 * in it, whether written out or as \uXXXX. That a key stands twice in an object is for the caller to find.
 */
#ifndef ONEPASS_CLI_JSON_H
#define ONEPASS_CLI_JSON_H

#include "layout.h"

enum {
    JSON_DEEPEST = 64,
    JSON_LONGEST_NUMBER = 1000 /* characters; the digits of any double fit */
};

/* What waits to be read. Numbers are integers if they have neither fraction nor exponent and fit an int64_t, which -0
 * does not. */
typedef enum json_kind {
    JSON_NOTHING, /* no value waits, or the reader has failed */
    JSON_OBJECT,
    JSON_ARRAY,
    JSON_STRING,
    JSON_INTEGER,
    JSON_REAL,
    JSON_BOOLEAN,
    JSON_NULL
} json_kind;

/* A string as it stands in the text, between its quotes: checked, but with its escapes. */
typedef struct json_string {
    const unsigned char *raw;
    size_t size;
    bool escaped; /* a backslash is in it */
} json_string;

/* Only `failed` and `problem` are for the caller to look at. */
typedef struct json {
    bool failed;
    problem problem;
    const unsigned char *text;
    size_t size;
    size_t at;     /* the next byte to read */
    size_t origin; /* what messages call the first byte */
    bool waits;    /* a value does, at `at` or after white space */
    bool first;    /* nothing has been read of the innermost object or array */
    int depth;
    unsigned char open[JSON_DEEPEST]; /* '{' or '[' */
} json;

/* Messages count bytes from `origin`, which is where the text begins in its file. Then one value waits: the whole. */
void json_open(json *reader, const void *text, size_t size, size_t origin);

/* True if nothing has failed and nothing but white space is left. */
bool json_close(json *reader);

/* Takes nothing. */
json_kind json_peek(json *reader);

/* False at the end of the object or array, which is then left, and after a failure. */
bool json_next_member(json *reader, json_string *key);
bool json_next_element(json *reader);

bool json_enter_object(json *reader);
bool json_enter_array(json *reader);
bool json_read_string(json *reader, json_string *string);
bool json_read_integer(json *reader, int64_t *integer);
bool json_read_real(json *reader, double *real); /* an integer too; not one that overflows to infinity */
bool json_read_boolean(json *reader, bool *boolean);
bool json_read_null(json *reader);
bool json_skip(json *reader); /* whatever it is, checked as strictly */

/* Writes the string without its escapes and ends it with a null byte, cut short between two characters if `size` bytes
 * do not hold it. Returns the length of the whole, so that less than `size` means that it is all there. A string may
 * hold null bytes itself (\u0000). */
size_t json_copy(json_string string, char *text, size_t size);

/* Whether it is this text, escapes or not. */
bool json_equals(json_string string, const char *text);

/* Less than, equal to or greater than 0, by the bytes of the two without their escapes. */
int json_compare(json_string a, json_string b);

#endif
