/* What came out of a task: a number for people, its bits, or an object for programs. */
#ifndef ONEPASS_CLI_ANSWER_H
#define ONEPASS_CLI_ANSWER_H

#include "loss_options.h"
#include "task.h"

int print_answer(const task *task, const onepass_loss_info *loss, const loss_options *options, double seconds);

/* The same of a whole whose parts were merged. */
int print_merged(const onepass_accumulator_info *whole, const number *value, int parts, bool as_hex, bool as_json);

#endif
