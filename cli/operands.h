/* The losses and their operands in words: the library knows their names. */
#ifndef ONEPASS_CLI_OPERANDS_H
#define ONEPASS_CLI_OPERANDS_H

#include <onepass.h>

#include <stdbool.h>
#include <stddef.h>

enum {
    OPERANDS_TEXT = 256 /* bytes that are enough for either text */
};

/* All losses, those over rows and then those of vectors last, by index from 0; null beyond the last. */
const onepass_loss_info *any_loss_at(int32_t index);

/* Whether the loss is over rows of classes, ... */
bool has_classes(const onepass_loss_info *loss);

/* ... whether it takes a weight for each class, which is no file that a command names without an option, ... */
bool takes_class_weight(const onepass_loss_info *loss);

/* ... and how many operands are vectors; 0: not a loss of vectors. */
int32_t count_vectors(const onepass_loss_info *loss);

/* Whether an operand has one number for each vector, of any type, which has no say in the type of the value. */
bool is_number_a_vector(const onepass_loss_info *loss, int32_t operand);

/* Whether the second operand has a list of class indices for each vector, of the first one's shape. */
bool has_label_lists(const onepass_loss_info *loss);

/* Operands that a command names as files: all of them, but for class weights. */
int32_t file_operands(const onepass_loss_info *loss);

/* Whether an operand can have a gradient: class indices and weights cannot, nor can a number for each vector. */
bool has_gradient(const onepass_loss_info *loss, int32_t operand);

/* "prediction, target and variance". */
void write_operands(char text[OPERANDS_TEXT], const onepass_loss_info *loss);

/* "PREDICTION TARGET VARIANCE", as a command's usage has them. */
void write_operands_as_files(char text[OPERANDS_TEXT], const onepass_loss_info *loss);

/* "two": from 1 to ONEPASS_MAX_OPERANDS. */
const char *count_in_words(int32_t count);

#endif
