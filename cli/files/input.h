/* An array in a file: opened, its header understood, and mapped a window at a time. */
#ifndef ONEPASS_CLI_INPUT_H
#define ONEPASS_CLI_INPUT_H

#include "layout.h"

#include <sys/types.h>

typedef struct input {
    const char *path; /* as it was given, for messages */
    int index;        /* among the windows that stop.h knows */
    int file;         /* descriptor; -1: not open */
    uint64_t size;    /* of the file */
    dev_t device;     /* which file it is, under whatever name */
    ino_t number;
    layout layout;
    void *window; /* that is mapped now; null: none */
    size_t window_bytes;
} input;

/* Opens `argument` (a path, "-", or file.safetensors:name), and complains if it cannot. */
int input_open(input *input, int index, const char *argument, purpose purpose);
void input_close(input *input); /* also one that was not opened, if its file is -1 */

/* Maps bytes from `begin` to `end` of the file instead of what was mapped before. Null: it has complained. */
const unsigned char *input_map(input *input, uint64_t begin, uint64_t end);

#endif
