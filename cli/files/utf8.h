#ifndef ONEPASS_CLI_UTF8_H
#define ONEPASS_CLI_UTF8_H

#include <stddef.h>

/* The bytes of the character at the front of `size` bytes, which are not none; 0 if it is none: cut short, overlong, a
 * surrogate or beyond the last one. */
size_t utf8_length(const unsigned char *text, size_t size);

#endif
