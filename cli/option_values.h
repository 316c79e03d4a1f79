/* The values of a loss's options, from words to numbers. Each function that returns a status complains of what it
 * cannot read. */
#ifndef ONEPASS_CLI_OPTION_VALUES_H
#define ONEPASS_CLI_OPTION_VALUES_H

#include "part_file.h"
#include "tool.h"

/* Digits and nothing else. */
bool read_count(const char *text, long least, long most, int32_t *count);

int read_reduction(const char *text, onepass_call *call);
int read_threads(const char *text, onepass_call *call);
int read_axis(const char *text, onepass_call *call);
int read_part(const char *text, part *part);
int read_device(const char *text, onepass_call *call);

/* Whether the library will take the number is for the library to say. An index is whole before it is a double, which
 * would have a large one rounded to another. */
int read_parameter(const char *text, const onepass_parameter_info *info, double *value);

/* "mean", as --reduction takes it. */
const char *reduction_name(int32_t reduction);

#endif
