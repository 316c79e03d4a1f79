/*
 * A strict reader of JSON (RFC 8259) from memory, as far as the header of a safetensors file goes: objects, arrays,
 * strings and integers. The caller asks for what it expects, in the order of the text:
 *
 *     json reader;
 *     json_string key, name;
 *     int64_t extent;
 *     json_open(&reader, text, size, 0);
 *     json_enter_object(&reader);
 *     while (json_next_member(&reader, &key)) {
 *         if (json_equals(key, "name")) {
 *             json_read_string(&reader, &name);
 *         } else {
 *             json_enter_array(&reader);
 *             while (json_next_element(&reader))
 *                 json_read_integer(&reader, &extent);
 *         }
 *     }
 *     if (!json_close(&reader))
 *         return fail(problem, "is not what it should be: %s", reader.problem.text);
 *
 * Failure: the first one is kept in `problem` ("expected a string at byte 17, not a number"), and from then on every
 * function returns false. So a caller may look at what each call returns, or only at what json_close does; but what a
 * function that returned false was to fill in, it has not.
 *
 * Order: when json_next_member or json_next_element returns true, the caller takes one value. An object or array that
 * was entered is left by calling json_next_... until it returns false, and not before.
 *
 * Memory: none is allocated. The reader and its strings point into the text, which must stay.
 *
 * Strictness: the text is one value in UTF-8 and white space, without a byte order mark; no overlong or lone surrogate
 * in it, whether written out or as \uXXXX. That a key stands twice in an object is for the caller to find.
 */
#ifndef ONEPASS_CLI_JSON_H
#define ONEPASS_CLI_JSON_H

#include "layout.h"

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
    bool first;    /* nothing has been read of the innermost object or array */
} json;

/* Messages count bytes from `origin`, which is where the text begins in its file. */
void json_open(json *reader, const void *text, size_t size, size_t origin);

/* True if nothing has failed and nothing but white space is left. */
bool json_close(json *reader);

/* False at the end of the object or array, which is then left, and after a failure. */
bool json_next_member(json *reader, json_string *key);
bool json_next_element(json *reader);

bool json_enter_object(json *reader);
bool json_enter_array(json *reader);
bool json_read_string(json *reader, json_string *string);
bool json_read_integer(json *reader, int64_t *integer);

/* Writes the string without its escapes and ends it with a null byte, cut short between two characters if `size` bytes
 * do not hold it. Returns the length of the whole, so that less than `size` means that it is all there. A string may
 * hold null bytes itself (\u0000). */
size_t json_copy(json_string string, char *text, size_t size);

/* Whether it is this text, escapes or not. */
bool json_equals(json_string string, const char *text);

/* Less than, equal to or greater than 0, by the bytes of the two without their escapes. */
int json_compare(json_string a, json_string b);

#endif
