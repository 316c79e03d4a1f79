/*
 * What the tests of the parsers of the tool's files share: files in memory, and what is expected of an array that was
 * found and of a refusal. What is expected stands in tables: of headers that are good, each with the array that it
 * describes, and of headers that are not, each with the words that the sentence about it must have. The tables were
 * written down from the formats' own documentation.
 *
 * Like check.h it is a header of static functions.
 */
#ifndef ONEPASS_TESTS_TEST_FILES_H
#define ONEPASS_TESTS_TEST_FILES_H

#include "../cli/files/layout.h"

#include "check.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---------------------------------------------------------------- files -- */

/* A file's beginning, in a block that ends with it, so that a sanitizer sees who reads on. */
typedef struct file {
    unsigned char *bytes;
    size_t size;
} file;

static inline void append(file *file, const void *bytes, size_t size) {
    file->bytes = realloc(file->bytes, file->size + size + (file->size + size == 0));
    if (file->bytes == NULL)
        abort();
    memcpy(file->bytes + file->size, bytes, size);
    file->size += size;
}

static inline void append_number(file *file, uint64_t number, int bytes) {
    for (int i = 0; i < bytes; i++, number >>= 8)
        append(file, &(unsigned char){(unsigned char)number}, 1);
}

/* A file that goes wrong before its header's text begins. */
typedef struct bad_beginning {
    const char *bytes;
    size_t size;
    uint64_t file_size;
    const char *words;
} bad_beginning;

/* ---------------------------------------------------------------- expectations -- */

/* "f32 (3, 4) by (4, 1)": type, shape and strides. */
static inline void describe(const layout *layout, char *text, size_t size) {
    char shape[200], strides[200];
    write_shape(shape, sizeof shape, layout->ndim, layout->shape);
    write_shape(strides, sizeof strides, layout->ndim, layout->stride);
    snprintf(text, size, "%s %s by %s", dtype_name(layout->dtype), shape, strides);
}

static inline void check_array(const char *what, bool good, const layout *layout, const problem *problem,
                               const char *expected, bool swapped, uint64_t offset) {
    char text[512];
    if (!CHECK(good, "%s: expected %s, got \"%s\"", what, expected, problem->text))
        return;
    describe(layout, text, sizeof text);
    CHECK(strcmp(text, expected) == 0, "%s: expected %s, got %s", what, expected, text);
    CHECK(layout->swapped == swapped, "%s: expected swapped to be %d", what, swapped);
    CHECK(layout->offset == offset, "%s: expected the data at byte %llu, got %llu", what, (unsigned long long)offset,
          (unsigned long long)layout->offset);
}

/* Whether the text has all of the words, which bars separate. */
static inline bool has_words(const char *text, const char *words) {
    char word[200];
    while (*words != '\0') {
        const size_t length = strcspn(words, "|");
        snprintf(word, sizeof word, "%.*s", (int)length, words);
        if (strstr(text, word) == NULL)
            return false;
        words += length + (words[length] == '|');
    }
    return true;
}

static inline void check_refusal(const char *what, bool good, const problem *problem, const char *words) {
    if (CHECK(!good, "%s: expected a refusal", what))
        CHECK(has_words(problem->text, words), "%s: expected a sentence with %s, got \"%s\"", what, words,
              problem->text);
}

#endif
