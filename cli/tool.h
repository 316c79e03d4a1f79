/* What every part of the tool may use: its exit statuses, its way to complain, and the commands. */
#ifndef ONEPASS_CLI_TOOL_H
#define ONEPASS_CLI_TOOL_H

#include <onepass.h>

#include <stdbool.h>
#include <stddef.h>

/* Exit statuses. */
enum {
    RIGHT = 0,
    FAILED = 1, /* the machine: a GPU, memory, standard output */
    WRONG = 2   /* the command or a file */
};

/* Writes "onepass: ..." and a line's end to standard error, control characters as in \x1b, and returns the status. */
int complain(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* complain() about the library's last refusal. */
int complain_of_library(onepass_status status);

/* Before any file is opened: a file that got the number of a standard stream would be taken for it. */
int open_standard_streams(void);

/* Ends what was printed; complains if standard output could not take it. */
int close_output(void);

/* The commands. argv[0] is the command's or the loss's name. */
int loss_command(const onepass_loss_info *loss, int argc, char **argv);
int list_command(int argc, char **argv);
int info_command(int argc, char **argv);
int merge_command(int argc, char **argv);

void print_usage(bool to_error);
void print_help(void);
void print_loss_help(const onepass_loss_info *loss);

/* Writes text that begins at this column of a line, and goes on there on the next lines where it is too long for one.
 * Without the last line's end. */
void print_wrapped(int column, const char *text);

#endif
