/* An accumulator that travels as bytes, for the tests that compare it with one that stays. */
#ifndef ONEPASS_TESTS_ACCUMULATOR_BYTES_H
#define ONEPASS_TESTS_ACCUMULATOR_BYTES_H

#include "check.h"

/* The bytes are the caller's to free. */
static inline unsigned char *exported(const onepass_accumulator *accumulator, size_t *size) {
    *size = 0;
    CHECK_OK(onepass_accumulator_export(accumulator, NULL, 0, size), "the size of an accumulator");
    unsigned char *bytes = malloc(*size + 1);
    if (!bytes) {
        perror("malloc");
        exit(1);
    }
    bytes[*size] = 0x5a;
    CHECK_OK(onepass_accumulator_export(accumulator, bytes, *size, size), "export");
    CHECK(bytes[*size] == 0x5a, "expected nothing written behind %zu bytes", *size);
    return bytes;
}

/* Gives an accumulator away for one that was made of its bytes, which exports the same. */
static inline onepass_accumulator *through_bytes(onepass_accumulator *accumulator) {
    size_t size = 0, again_size = 0;
    onepass_accumulator *imported = NULL;
    unsigned char *bytes = exported(accumulator, &size);
    onepass_accumulator_destroy(accumulator);
    CHECK_OK(onepass_accumulator_import(&imported, bytes, size), "import");
    unsigned char *again = exported(imported, &again_size);
    CHECK(size == again_size && memcmp(bytes, again, size) == 0, "expected the same %zu bytes of what was imported",
          size);
    free(bytes);
    free(again);
    return imported;
}

#endif
