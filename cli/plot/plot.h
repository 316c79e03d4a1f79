/* A picture of what was measured, as SVG: small multiples of elements against GB/s, with the limit as a line. */
#ifndef ONEPASS_CLI_PLOT_H
#define ONEPASS_CLI_PLOT_H

#include "record.h"

/* Whether one picture holds it. The problem is that of the record, and follows its name. */
bool plot_is_possible(const record *record, problem *problem);

/* The problem is that of the file, and follows its name. */
bool plot_write(const record *record, const char *file, problem *problem);

#endif
