/* The options of `onepass LOSS PREDICTION TARGET`. */
#ifndef ONEPASS_CLI_LOSS_OPTIONS_H
#define ONEPASS_CLI_LOSS_OPTIONS_H

#include "part_file.h"
#include "tool.h"

/* Files are null where there are none. */
typedef struct loss_options {
    onepass_call call; /* the loss, its parameters, the reduction, the threads, the device */
    const char *operand[ONEPASS_MAX_OPERANDS];
    const char *weight, *mask;
    const char *gradient[ONEPASS_MAX_OPERANDS]; /* by operand */
    const char *losses, *log_sum_exp, *predicted;
    part part;         /* 0 of 0: all */
    const char *state; /* where its state goes */
    bool integers_are_bf16, as_hex, as_json, wants_help;
} loss_options;

/* Complains of what is wrong. argv[0] is the loss's name; argv is put into another order. */
int read_loss_options(loss_options *options, const onepass_loss_info *loss, int argc, char **argv);

/* A line an option, for --help. */
void print_loss_options(const onepass_loss_info *loss);

#endif
