#define _GNU_SOURCE /* fallocate */
#include "output.h"
#include "npy.h"
#include "stop.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static int complain_of(const output *output, const problem *problem) {
    return complain(WRONG, "%s: %s", output->file.name, problem->text);
}

int output_check(output *output, int index, const char *path, const input *const *inputs, int count) {
    struct stat now;
    problem problem;
    output->index = index;
    if (!replacement_name(&output->file, path, &problem))
        return complain_of(output, &problem);
    if (stat(path, &now) != 0)
        return RIGHT;
    for (int i = 0; i < count; i++)
        if (inputs[i]->file >= 0 && inputs[i]->device == now.st_dev && inputs[i]->number == now.st_ino)
            return complain(WRONG, "%s: is an input too; expected another name to write to", path);
    return RIGHT;
}

/* A disk that is too full says so before the work and not after. Not every file system can tell. */
static int reserve(const output *output, uint64_t bytes) {
    if (bytes > (uint64_t)INT64_MAX)
        return complain(WRONG, "%s: would have %llu bytes, more than any file can", output->file.name,
                        (unsigned long long)bytes);
    if (fallocate(output->file.file, 0, 0, (off_t)bytes) != 0 && (errno == ENOSPC || errno == EFBIG || errno == EDQUOT))
        return complain(WRONG, "%s: cannot be written: %s (%llu bytes are needed)", output->file.name, strerror(errno),
                        (unsigned long long)bytes);
    return RIGHT;
}

int output_make(output *output) {
    problem problem;
    const bool is_made = replacement_make(&output->file, &problem);
    stop_knows_file(output->index, output->file.part);
    return is_made ? RIGHT : complain_of(output, &problem);
}

int output_begin(output *output, int32_t dtype, const onepass_shape *shape) {
    char header[NPY_MOST_HEADER];
    const size_t header_size = npy_write_header(header, dtype, shape->ndim, shape->extent);
    uint64_t data;
    if (__builtin_mul_overflow((uint64_t)shape->count, (uint64_t)onepass_dtype_size(dtype), &data))
        return complain(WRONG, "%s: would be larger than any file can be", output->file.name);
    int status = output_make(output);
    if (status == RIGHT)
        status = reserve(output, header_size + data);
    return status == RIGHT ? output_write(output, header, header_size) : status;
}

int output_write(output *output, const void *bytes, size_t count) {
    problem problem;
    return replacement_write(&output->file, bytes, count, &problem) ? RIGHT : complain_of(output, &problem);
}

int output_close(output *output) {
    problem problem;
    return replacement_close(&output->file, &problem) ? RIGHT : complain_of(output, &problem);
}

int output_rename(output *output) {
    problem problem;
    if (!replacement_rename(&output->file, &problem))
        return complain_of(output, &problem);
    stop_knows_file(output->index, NULL);
    return RIGHT;
}

void output_abandon(output *output) {
    stop_knows_file(output->index, NULL);
    replacement_drop(&output->file);
}
