#define _GNU_SOURCE /* for 128 bits */
#include "part_file.h"
#include "tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of 8 bytes, little-endian: the magic, the version, the type, the part and how many there are, and a checksum
 * of these; the state, which has its own, follows. */
enum {
    NUMBERS = 6,
    HEADER = 8 * NUMBERS,
    VERSION = 1,
    LARGEST = 1 << 30 /* bytes of a file; those of one slice are a few thousand */
};

static const unsigned char magic[8] = {0x89, 'o', 'n', 'e', 'p', 'a', 'r', 't'};
static const unsigned char state_magic[8] = {0x89, 'o', 'n', 'e', 'p', 'a', 's', 's'};

/* ------------------------------------------------------------------------ shares -- */

static int64_t share(int64_t elements, int32_t parts, int32_t count) {
    return (int64_t)((__uint128_t)(uint64_t)elements * (uint32_t)parts / (uint32_t)count);
}

int64_t part_begin(const part *part, int64_t elements) {
    return part->count ? share(elements, part->index - 1, part->count) : 0;
}

int64_t part_end(const part *part, int64_t elements) {
    return part->count ? share(elements, part->index, part->count) : elements;
}

/* ----------------------------------------------------------------------- numbers -- */

static uint64_t number_at(const unsigned char *at) {
    uint64_t number = 0;
    for (int i = 0; i < 8; i++)
        number |= (uint64_t)at[i] << 8 * i;
    return number;
}

static void put_number(unsigned char *at, uint64_t number) {
    for (int i = 0; i < 8; i++)
        at[i] = (unsigned char)(number >> 8 * i);
}

/* No change of one number leaves it as it was. */
static uint64_t checksum_of(const unsigned char *header) {
    uint64_t sum = 0;
    for (int i = 0; i < NUMBERS - 1; i++)
        sum = (sum ^ number_at(header + 8 * i)) * UINT64_C(0x9e3779b97f4a7c15);
    return sum;
}

/* ----------------------------------------------------------------------- writing -- */

int part_write(output *output, const part *part, int32_t value_dtype, const onepass_accumulator *accumulator) {
    size_t size = 0;
    onepass_status status = onepass_accumulator_export(accumulator, NULL, 0, &size);
    unsigned char *bytes = status == ONEPASS_OK ? malloc(HEADER + size) : NULL;
    if (status == ONEPASS_OK && !bytes)
        return complain(FAILED, "no memory for the %zu bytes of a part", size);
    if (status == ONEPASS_OK)
        status = onepass_accumulator_export(accumulator, bytes + HEADER, size, &size);
    if (status != ONEPASS_OK) {
        free(bytes);
        return complain_of_library(status);
    }
    memcpy(bytes, magic, sizeof magic);
    put_number(bytes + 8, VERSION);
    put_number(bytes + 16, (uint64_t)value_dtype);
    put_number(bytes + 24, (uint64_t)part->index);
    put_number(bytes + 32, (uint64_t)part->count);
    put_number(bytes + 40, checksum_of(bytes));
    const int written = output_write(output, bytes, HEADER + size);
    free(bytes);
    return written;
}

/* ----------------------------------------------------------------------- reading -- */

/* All of a file, as far as it can be a part. */
static unsigned char *read_all(FILE *file, const char *path, size_t *size) {
    unsigned char *bytes = NULL;
    size_t room = 0;
    *size = 0;
    for (;;) {
        if (*size == room) {
            unsigned char *grown = room < LARGEST ? realloc(bytes, room = room ? 2 * room : 65536) : NULL;
            if (!grown) {
                complain(FAILED, "%s: no memory for what is more than %zu bytes; a part has a few thousand", path,
                         *size);
                free(bytes);
                return NULL;
            }
            bytes = grown;
        }
        const size_t count = fread(bytes + *size, 1, room - *size, file);
        *size += count;
        if (count == 0)
            return bytes;
        if (*size >= sizeof magic && memcmp(bytes, magic, sizeof magic) != 0 &&
            memcmp(bytes, state_magic, sizeof state_magic) != 0)
            return bytes; /* nobody wants the rest */
    }
}

static int read_header(part_file *file, const unsigned char *bytes, size_t size) {
    if (size >= 16 && number_at(bytes + 8) != VERSION)
        return complain(WRONG, "%s: is a part of version %llu; this tool (%s) reads version %d", file->path,
                        (unsigned long long)number_at(bytes + 8), onepass_version_text(), VERSION);
    if (size < HEADER)
        return complain(WRONG, "%s: is truncated: it has %zu bytes, which is not even a header", file->path, size);
    const uint64_t dtype = number_at(bytes + 16), index = number_at(bytes + 24), count = number_at(bytes + 32);
    if (number_at(bytes + 40) != checksum_of(bytes))
        return complain(WRONG, "%s: is damaged: the checksum of its header is not the one that was written",
                        file->path);
    if (dtype < ONEPASS_F16 || dtype > ONEPASS_F64 || index < 1 || index > count || count > MOST_PARTS)
        return complain(WRONG, "%s: is not a part that the tool wrote, though its checksum is right", file->path);
    file->part = (part){(int32_t)index, (int32_t)count};
    file->value_dtype = (int32_t)dtype;
    return RIGHT;
}

static int read_bytes(part_file *file, const unsigned char *bytes, size_t size) {
    const bool has_header = size >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
    if (!has_header && (size < sizeof state_magic || memcmp(bytes, state_magic, sizeof state_magic) != 0))
        return complain(WRONG, "%s: is not a part; expected a file that onepass LOSS ... --state FILE wrote",
                        file->path);
    const int status = has_header ? read_header(file, bytes, size) : RIGHT;
    if (status != RIGHT)
        return status;
    const size_t skipped = has_header ? HEADER : 0;
    file->info.size = sizeof file->info;
    if (onepass_accumulator_import(&file->accumulator, bytes + skipped, size - skipped) != ONEPASS_OK ||
        onepass_accumulator_describe(file->accumulator, &file->info) != ONEPASS_OK)
        return complain(WRONG, "%s: %s", file->path, onepass_message());
    if (!has_header)
        file->value_dtype = file->info.compute;
    return RIGHT;
}

int part_read(part_file *file, const char *path) {
    *file = (part_file){.path = path};
    FILE *stream = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (!stream)
        return complain(WRONG, "%s: cannot be read: %s", path, strerror(errno));
    size_t size;
    errno = 0;
    unsigned char *bytes = read_all(stream, path, &size);
    const int error = ferror(stream) ? errno : 0;
    if (stream != stdin)
        fclose(stream);
    const int status = !bytes  ? FAILED
                       : error ? complain(WRONG, "%s: cannot be read: %s", path, strerror(error))
                               : read_bytes(file, bytes, size);
    free(bytes);
    return status;
}
