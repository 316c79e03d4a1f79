#ifndef ONEPASS_CLI_DIVISOR_H
#define ONEPASS_CLI_DIVISOR_H

#include "pass.h"

/* Where weights, a mask or labels decide what the gradients of a mean are divided by, finds it out and lets the pass's
 * call have it. */
int find_divisor(pass *pass);

/* That every label of a loss over rows is that of a class, or of a row that takes no part. */
int check_labels(task *task);

#endif
