#ifndef ONEPASS_CLI_DIVISOR_H
#define ONEPASS_CLI_DIVISOR_H

#include "pass.h"

/* Where weights or a mask decide what the gradients of a mean are divided by, finds it out and lets the pass's call
 * have it. */
int find_divisor(pass *pass);

#endif
