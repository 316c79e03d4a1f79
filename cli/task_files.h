/* The files of a task: opened and understood, and its outputs from the first look at their names to the last. */
#ifndef ONEPASS_CLI_TASK_FILES_H
#define ONEPASS_CLI_TASK_FILES_H

#include "loss_options.h"
#include "task.h"

/* Opens the inputs, and finds out the common shape and the types. */
int open_inputs(task *task, const loss_options *options);

/* Looks whether the outputs can be written, without making one. */
int check_outputs(task *task, const loss_options *options);

/* Makes them beside their names; completes them, on the disk; gives them their names. */
int begin_outputs(task *task);
int complete_outputs(task *task);
int name_outputs(task *task);

/* Takes away what is not complete, and closes the inputs; also of a task that got nowhere. */
void close_files(task *task);

#endif
