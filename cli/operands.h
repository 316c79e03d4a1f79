/* The operands of a loss in words: the library knows their names. */
#ifndef ONEPASS_CLI_OPERANDS_H
#define ONEPASS_CLI_OPERANDS_H

#include <onepass.h>

#include <stddef.h>

enum {
    OPERANDS_TEXT = 256 /* bytes that are enough for either text */
};

/* "prediction, target and variance". */
void write_operands(char text[OPERANDS_TEXT], const onepass_loss_info *loss);

/* "PREDICTION TARGET VARIANCE", as a command's usage has them. */
void write_operands_as_files(char text[OPERANDS_TEXT], const onepass_loss_info *loss);

/* "two": from 1 to ONEPASS_MAX_OPERANDS. */
const char *count_in_words(int32_t count);

#endif
