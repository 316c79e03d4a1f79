#define _GNU_SOURCE /* for 128 bits */
#include "part_file.h"
#include "tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of 8 bytes, little-endian: the magic, the version, how many numbers there are, the type, the part and how
 * many there are, the axis, the two fingerprints; for each input its type and, if that is not 0, how many dimensions it
 * has and their extents; and a checksum of these. The state, which has its own, follows. */
enum {
    LEAST_NUMBERS = 9 + PART_INPUTS + 1,
    MOST_NUMBERS = LEAST_NUMBERS + PART_INPUTS * (1 + ONEPASS_MAX_DIMENSIONS),
    VERSION = 2,
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
static uint64_t checksum_of(const unsigned char *bytes, uint64_t numbers) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < numbers; i++)
        sum = (sum ^ number_at(bytes + 8 * i)) * UINT64_C(0x9e3779b97f4a7c15);
    return sum;
}

/* ----------------------------------------------------------------------- writing -- */

/* Returns how many bytes it has. */
static size_t put_header(unsigned char *bytes, const part *part, int32_t value_dtype, const part_origin *origin) {
    uint64_t number[MOST_NUMBERS] = {0,
                                     VERSION,
                                     0,
                                     (uint64_t)value_dtype,
                                     (uint64_t)part->index,
                                     (uint64_t)part->count,
                                     (uint64_t)origin->axis,
                                     origin->before,
                                     origin->behind};
    size_t count = 9;
    for (int k = 0; k < PART_INPUTS; k++) {
        const part_input *input = &origin->input[k];
        number[count++] = (uint64_t)input->dtype;
        if (!input->dtype)
            continue;
        number[count++] = (uint64_t)input->ndim;
        for (int32_t d = 0; d < input->ndim; d++)
            number[count++] = (uint64_t)input->shape[d];
    }
    number[2] = count + 1;
    for (size_t i = 0; i < count; i++)
        put_number(bytes + 8 * i, number[i]);
    memcpy(bytes, magic, sizeof magic);
    put_number(bytes + 8 * count, checksum_of(bytes, count));
    return 8 * (count + 1);
}

int part_write(output *output, const part *part, int32_t value_dtype, const part_origin *origin,
               const onepass_accumulator *accumulator) {
    unsigned char header[8 * MOST_NUMBERS];
    const size_t header_size = put_header(header, part, value_dtype, origin);
    size_t size = 0;
    onepass_status status = onepass_accumulator_export(accumulator, NULL, 0, &size);
    unsigned char *bytes = status == ONEPASS_OK ? malloc(size) : NULL;
    if (status == ONEPASS_OK && !bytes)
        return complain(FAILED, "no memory for the %zu bytes of a part", size);
    if (status == ONEPASS_OK)
        status = onepass_accumulator_export(accumulator, bytes, size, &size);
    int written = status == ONEPASS_OK ? output_write(output, header, header_size) : complain_of_library(status);
    if (written == RIGHT)
        written = output_write(output, bytes, size);
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

/* The inputs out of numbers up to `end`; false where these are none. */
static bool read_inputs(part_origin *origin, const unsigned char *at, const unsigned char *end) {
    for (int k = 0; k < PART_INPUTS; k++) {
        part_input *input = &origin->input[k];
        const uint64_t dtype = at < end ? number_at(at) : UINT64_MAX;
        at += 8;
        if (dtype == 0)
            continue;
        const uint64_t ndim = at < end ? number_at(at) : UINT64_MAX;
        at += 8;
        if (dtype > INT32_MAX || onepass_dtype_size((int32_t)dtype) == 0 || ndim > ONEPASS_MAX_DIMENSIONS ||
            ndim > (uint64_t)(end - at) / 8)
            return false;
        input->dtype = (int32_t)dtype;
        input->ndim = (int32_t)ndim;
        for (uint64_t d = 0; d < ndim; d++, at += 8) {
            input->shape[d] = (int64_t)number_at(at);
            if (input->shape[d] < 0)
                return false;
        }
    }
    return at == end;
}

static int read_header(part_file *file, const unsigned char *bytes, size_t size, size_t *header) {
    if (size >= 16 && number_at(bytes + 8) != VERSION)
        return complain(WRONG,
                        "%s: is a part of version %llu; this tool (%s) reads version %d: use one version of the "
                        "tool for all parts",
                        file->path, (unsigned long long)number_at(bytes + 8), onepass_version_text(), VERSION);
    if (size < 8 * LEAST_NUMBERS)
        return complain(WRONG, "%s: is truncated: it has %zu bytes, which is not even a header", file->path, size);
    const uint64_t numbers = number_at(bytes + 16);
    if (numbers < LEAST_NUMBERS || numbers > MOST_NUMBERS)
        return complain(WRONG, "%s: is damaged: its header says that it has %llu numbers", file->path,
                        (unsigned long long)numbers);
    if (size < 8 * numbers)
        return complain(WRONG, "%s: is truncated: it has %zu bytes, less than its header", file->path, size);
    const unsigned char *end = bytes + 8 * (numbers - 1);
    if (number_at(end) != checksum_of(bytes, numbers - 1))
        return complain(WRONG, "%s: is damaged: the checksum of its header is not the one that was written",
                        file->path);
    const uint64_t dtype = number_at(bytes + 24), index = number_at(bytes + 32), count = number_at(bytes + 40);
    const uint64_t axis = number_at(bytes + 48);
    if (dtype < ONEPASS_F16 || dtype > ONEPASS_F64 || index < 1 || index > count || count > MOST_PARTS ||
        axis >= ONEPASS_MAX_DIMENSIONS || !read_inputs(&file->origin, bytes + 72, end))
        return complain(WRONG, "%s: is not a part that the tool wrote, though its checksum is right", file->path);
    file->part = (part){(int32_t)index, (int32_t)count};
    file->value_dtype = (int32_t)dtype;
    file->origin.axis = (int32_t)axis;
    file->origin.before = number_at(bytes + 56);
    file->origin.behind = number_at(bytes + 64);
    *header = 8 * numbers;
    return RIGHT;
}

static int read_bytes(part_file *file, const unsigned char *bytes, size_t size) {
    const bool has_header = size >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
    if (!has_header && (size < sizeof state_magic || memcmp(bytes, state_magic, sizeof state_magic) != 0))
        return complain(WRONG, "%s: is not a part; expected a file that onepass LOSS ... --state FILE wrote",
                        file->path);
    size_t skipped = 0;
    const int status = has_header ? read_header(file, bytes, size, &skipped) : RIGHT;
    if (status != RIGHT)
        return status;
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
