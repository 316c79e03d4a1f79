/*
 * Structs that begin with their own size, so that fields can be appended: a program that was built with an older header
 * has a shorter one, a program with a newer header a longer one. No less than what version 0.1.0 had is accepted, and
 * nothing is read or written beyond the caller's size.
 */
#ifndef ONEPASS_SIZED_H
#define ONEPASS_SIZED_H

#include "onepass.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* By the last field of version 0.1.0; what it had never moves. */
#define CALL_SIZE_0_1_0         (offsetof(onepass_call, workspace_size) + sizeof(size_t))
#define MACHINE_INFO_SIZE_0_1_0 (offsetof(onepass_machine_info, gpu_toolkit) + sizeof(int32_t))
_Static_assert(sizeof(void *) != 8 || (CALL_SIZE_0_1_0 == 232 && MACHINE_INFO_SIZE_0_1_0 == 56), "a field has moved");

/* The same of what came later, by the last field that it came with. */
#define ACCUMULATOR_INFO_FIRST_SIZE (offsetof(onepass_accumulator_info, added) + sizeof(int64_t))

/* Larger ones are taken for sizes that nobody has set, and what they span is not looked at. */
#define LARGEST_SIZE 4096

static inline bool is_plausible_size(size_t size, size_t first) {
    return size >= first && size <= LARGEST_SIZE;
}

/* What this version knows of the given struct; fields that its caller does not know are 0. Returns the place of a byte
 * beyond, in a field that is in use but not known here, or 0. */
static inline size_t read_sized(void *into, size_t known, const void *given, size_t size) {
    const size_t common = size < known ? size : known;
    const unsigned char *bytes = given;
    memcpy(into, given, common);
    memset((char *)into + common, 0, known - common);
    for (size_t i = known; i < size; i++)
        if (bytes[i] != 0)
            return i;
    return 0;
}

/* The other way: as much as the caller knows, and 0 in fields that are not known here. */
static inline void write_sized(void *into, size_t size, const void *from, size_t known) {
    const size_t common = size < known ? size : known;
    memcpy(into, from, common);
    memset((char *)into + common, 0, size - common);
}

#endif
