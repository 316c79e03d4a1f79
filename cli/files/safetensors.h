/* The safetensors format: the length of a header, a JSON object with a member a tensor, and the tensors' bytes. */
#ifndef ONEPASS_CLI_SAFETENSORS_H
#define ONEPASS_CLI_SAFETENSORS_H

#include "layout.h"

/* Whether a file that begins like this is meant to be one: a length that is not beyond all measure (which tells it from
 * text), and then a brace. */
bool safetensors_is_meant(const unsigned char *head, size_t size);

/* `head` is the file's beginning: all of it, or at least the header. `name` is the tensor's; null: the only one of the
 * file. Every tensor of the file is checked, not only the one that is asked for. Nothing beyond `size` bytes is read.
 */
bool safetensors_parse(const unsigned char *head, size_t size, uint64_t file_size, const char *name, purpose purpose,
                       layout *layout, problem *problem);

/* Headers are no longer than this in any good file. */
enum {
    SAFETENSORS_MOST_HEADER = 100000000
};

#endif
