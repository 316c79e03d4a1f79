/* The losses and their operands in words: the library knows their names. */
#ifndef ONEPASS_CLI_OPERANDS_H
#define ONEPASS_CLI_OPERANDS_H

#include <onepass.h>

#include <stdbool.h>
#include <stddef.h>

enum {
    OPERANDS_TEXT = 256 /* bytes that are enough for either text */
};

/* All losses, those over rows last, by index from 0; null beyond the last. */
const onepass_loss_info *any_loss_at(int32_t index);

/* Operands that a command names as files: all of them, but for the class weights of a loss over rows. */
int32_t file_operands(const onepass_loss_info *loss);

/* Whether an operand can have a gradient: class indices and weights cannot. */
bool has_gradient(const onepass_loss_info *loss, int32_t operand);

/* Whether rows have a logarithm of a sum of exponentials: the loss's formula then has it. */
bool has_log_sum_exp(const onepass_loss_info *loss);

/* "prediction, target and variance". */
void write_operands(char text[OPERANDS_TEXT], const onepass_loss_info *loss);

/* "PREDICTION TARGET VARIANCE", as a command's usage has them. */
void write_operands_as_files(char text[OPERANDS_TEXT], const onepass_loss_info *loss);

/* "two": from 1 to ONEPASS_MAX_OPERANDS. */
const char *count_in_words(int32_t count);

#endif
