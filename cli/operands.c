#include "operands.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static void add(char text[OPERANDS_TEXT], const char *between, const char *name) {
    const size_t used = strlen(text);
    snprintf(text + used, OPERANDS_TEXT - used, "%s%s", between, name);
}

const onepass_loss_info *any_loss_at(int32_t index) {
    int32_t pairwise = 0;
    while (pairwise <= index && onepass_loss_at(pairwise))
        pairwise++;
    return pairwise > index ? onepass_loss_at(index) : onepass_row_loss_at(index - pairwise);
}

int32_t file_operands(const onepass_loss_info *loss) {
    return loss->over_rows ? ONEPASS_CLASS_WEIGHT : loss->operand_count;
}

bool has_gradient(const onepass_loss_info *loss, int32_t operand) {
    return operand == ONEPASS_PREDICTION || !loss->over_rows ||
           (operand == ONEPASS_TARGET && loss->over_rows == ONEPASS_CLASS_PROBABILITIES);
}

bool has_log_sum_exp(const onepass_loss_info *loss) {
    return loss->over_rows && strstr(loss->value, "lse") != NULL;
}

void write_operands(char text[OPERANDS_TEXT], const onepass_loss_info *loss) {
    text[0] = '\0';
    const int32_t count = file_operands(loss);
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
