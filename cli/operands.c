#include "operands.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static void add(char text[OPERANDS_TEXT], const char *between, const char *name) {
    const size_t used = strlen(text);
    snprintf(text + used, OPERANDS_TEXT - used, "%s%s", between, name);
}

typedef const onepass_loss_info *loss_list(int32_t index);

const onepass_loss_info *any_loss_at(int32_t index) {
    static loss_list *const list[] = {onepass_loss_at, onepass_row_loss_at, onepass_vector_loss_at};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        int32_t count = 0;
        while (count <= index && list[i](count))
            count++;
        if (count > index)
            return list[i](index);
        index -= count;
    }
    return NULL;
}

bool has_classes(const onepass_loss_info *loss) {
    return loss->over_rows == ONEPASS_CLASS_INDEX || loss->over_rows == ONEPASS_CLASS_PROBABILITIES;
}

static bool has_number_a_vector(const onepass_loss_info *loss) {
    return loss->over_rows == ONEPASS_NUMBER_A_VECTOR || loss->over_rows == ONEPASS_CLASS_A_VECTOR;
}

bool takes_class_weight(const onepass_loss_info *loss) {
    return has_classes(loss) || loss->over_rows == ONEPASS_CLASS_A_VECTOR;
}

bool has_label_lists(const onepass_loss_info *loss) {
    return loss->over_rows == ONEPASS_CLASSES_A_VECTOR;
}

int32_t count_vectors(const onepass_loss_info *loss) {
    switch (loss->over_rows) {
    case ONEPASS_VECTOR:
        return loss->operand_count;
    case ONEPASS_NUMBER_A_VECTOR:
        return loss->operand_count - 1;
    default:
        return loss->over_rows == ONEPASS_CLASS_A_VECTOR || has_label_lists(loss);
    }
}

bool is_number_a_vector(const onepass_loss_info *loss, int32_t operand) {
    return has_number_a_vector(loss) && operand == count_vectors(loss);
}

int32_t file_operands(const onepass_loss_info *loss) {
    return takes_class_weight(loss) ? ONEPASS_CLASS_WEIGHT : loss->operand_count;
}

bool has_gradient(const onepass_loss_info *loss, int32_t operand) {
    return operand == ONEPASS_PREDICTION || !loss->over_rows || operand < count_vectors(loss) ||
           (operand == ONEPASS_TARGET && loss->over_rows == ONEPASS_CLASS_PROBABILITIES);
}

void write_operands(char text[OPERANDS_TEXT], const onepass_loss_info *loss) {
    const int32_t count = file_operands(loss);
    text[0] = '\0';
    for (int32_t k = 0; k < count; k++)
        add(text, k == 0 ? "" : k == count - 1 ? " and " : ", ", loss->operand[k]);
}

void write_operands_as_files(char text[OPERANDS_TEXT], const onepass_loss_info *loss) {
    text[0] = '\0';
    for (int32_t k = 0; k < file_operands(loss); k++)
        add(text, k == 0 ? "" : " ", loss->operand[k]);
    for (char *c = text; *c; c++)
        *c = (char)toupper((unsigned char)*c);
}

const char *count_in_words(int32_t count) {
    static const char *const words[] = {"no", "one", "two", "three", "four"};
    return words[count];
}
