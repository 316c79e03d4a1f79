/* What the checks of all losses share: numbers to compute with, the bits by every route, and the table. */
#ifndef ONEPASS_DEMO_CHECK_H
#define ONEPASS_DEMO_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include <onepass.h>

/* A number of its own for each index. */
uint64_t random_bits(uint64_t index);

/* A unit in the last place of floats of this size. */
double unit_of(double number);

/* The larger one; a NaN is larger than all others. */
double worse(double error, double than);

/* The largest errors, in units in the last place. */
typedef struct errors {
    double value, gradient;
} errors;

/* Whether they are what the catalogue states for the loss, with some slack. */
bool errors_are_small(const onepass_loss_info *loss, errors errors);

void show_heading(const onepass_machine_info *machine);

/* A line of the table: what the call, of floats, has written to its value and to the gradient for its first operand;
 * and whether every other way to compute that has the same bits. If the call has a row_state, a way is to compute the
 * gradient from it. True if they have, and the errors are `right`. */
bool show_checked(const onepass_call *call, errors errors, bool right, const onepass_machine_info *machine);

#endif
