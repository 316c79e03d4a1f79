#include "option_values.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *reduction_name(int32_t reduction) {
    static const char *const names[] = {
        [ONEPASS_MEAN] = "mean", [ONEPASS_SUM] = "sum", [ONEPASS_NONE] = "none", [ONEPASS_BATCHMEAN] = "batchmean"};
    return names[reduction];
}

int read_reduction(const char *text, onepass_call *call) {
    for (int32_t i = ONEPASS_MEAN; i <= ONEPASS_BATCHMEAN; i++) {
        if (strcmp(text, reduction_name(i)) == 0) {
            call->reduction = i;
            return RIGHT;
        }
    }
    return complain(WRONG, "--reduction is \"%s\"; expected mean, sum, none or batchmean", text);
}

bool read_count(const char *text, long least, long most, int32_t *count) {
    char *end;
    errno = 0;
    const long number = strtol(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || number < least || number > most)
        return false;
    *count = (int32_t)number;
    return true;
}

int read_threads(const char *text, onepass_call *call) {
    if (read_count(text, 1, INT32_MAX, &call->threads))
        return RIGHT;
    if (text[0] >= '1' && text[0] <= '9' && text[strspn(text, "0123456789")] == '\0') {
        call->threads = INT32_MAX; /* as many as there are */
        return RIGHT;
    }
    return complain(WRONG, "--threads is \"%s\"; expected a number from 1 on", text);
}

/* As NumPy counts dimensions; the library begins at 1. */
int read_axis(const char *text, onepass_call *call) {
    int32_t axis;
    const bool from_end = text[0] == '-';
    if (!read_count(text + from_end, from_end, ONEPASS_MAX_DIMENSIONS, &axis))
        return complain(
            WRONG, "--axis is \"%s\"; expected a dimension, counted from 0 on, or from the end by -1, -2, ...", text);
    call->axis = from_end ? -axis : axis + 1;
    return RIGHT;
}

int read_part(const char *text, part *part) {
    char index[16];
    const size_t length = strcspn(text, "/");
    snprintf(index, sizeof index, "%.*s", (int)(length < sizeof index ? length : sizeof index), text);
    if (length < sizeof index && text[length] == '/' && read_count(text + length + 1, 1, MOST_PARTS, &part->count) &&
        read_count(index, 1, INT32_MAX, &part->index)) {
        if (part->index <= part->count)
            return RIGHT;
        return complain(WRONG, "--part is \"%s\", and part %d is beyond %d; expected one from 1 to %d", text,
                        part->index, part->count, part->count);
    }
    return complain(WRONG, "--part is \"%s\"; expected the number of a part and of all, such as 3/8, of up to %d", text,
                    MOST_PARTS);
}

int read_device(const char *text, onepass_call *call) {
    if (strcmp(text, "auto") == 0 || strcmp(text, "cpu") == 0) {
        call->device = ONEPASS_CPU;
        return RIGHT;
    }
    call->device = ONEPASS_CUDA;
    if (strcmp(text, "cuda") == 0 ||
        (strncmp(text, "cuda:", 5) == 0 && read_count(text + 5, 0, INT32_MAX, &call->device_index)))
        return RIGHT;
    return complain(WRONG, "--device is \"%s\"; expected auto, cpu, cuda, or cuda:N for the GPU number N", text);
}

enum {
    SHOWN = 40 /* characters; numbers that are too long for a double are so for a sentence too */
};

static const char *rest(const char *text) {
    return strlen(text) > SHOWN ? "..." : "";
}

static int read_ignore_index(const char *text, double *value) {
    const long long most = 1LL << 53;
    char *end;
    errno = 0;
    const long long index = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || index < -most || index > most)
        return complain(WRONG, "--ignore-index is \"%.*s%s\"; expected a whole number from -2^53 to 2^53", SHOWN, text,
                        rest(text));
    *value = (double)index;
    return RIGHT;
}

int read_parameter(const char *text, const onepass_parameter_info *info, double *value) {
    if (strcmp(info->name, "ignore_index") == 0)
        return read_ignore_index(text, value);
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    if (end == text || *end != '\0')
        return complain(WRONG, "--%s is \"%s\"; expected a number", info->name, text);
    if (errno == ERANGE && (isinf(*value) || *value == 0))
        return complain(WRONG, "--%s is %.*s%s; expected a number that is not so %s", info->name, SHOWN, text,
                        rest(text), isinf(*value) ? "large" : "near to 0");
    return RIGHT;
}
