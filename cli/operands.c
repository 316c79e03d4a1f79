#include "operands.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static void add(char text[OPERANDS_TEXT], const char *between, const char *name) {
    const size_t used = strlen(text);
    snprintf(text + used, OPERANDS_TEXT - used, "%s%s", between, name);
}

void write_operands(char text[OPERANDS_TEXT], const onepass_loss_info *loss) {
    text[0] = '\0';
    for (int32_t k = 0; k < loss->operand_count; k++)
        add(text, k == 0 ? "" : k == loss->operand_count - 1 ? " and " : ", ", loss->operand[k]);
}

void write_operands_as_files(char text[OPERANDS_TEXT], const onepass_loss_info *loss) {
    text[0] = '\0';
    for (int32_t k = 0; k < loss->operand_count; k++)
        add(text, k == 0 ? "" : " ", loss->operand[k]);
    for (char *c = text; *c; c++)
        *c = (char)toupper((unsigned char)*c);
}

const char *count_in_words(int32_t count) {
    static const char *const words[] = {"no", "one", "two", "three", "four"};
    return words[count];
}
