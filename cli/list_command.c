/* onepass list: the losses, as the library describes them. */
#include "json_write.h"
#include "operands.h"
#include "tool.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- for programs -- */

static void print_bound(const char *key, double bound, bool is_excluded) {
    printf(", \"%s\": ", key);
    if (isfinite(bound))
        json_write_number(stdout, bound);
    else
        printf("null");
    printf(", \"%s_excluded\": %s", key, is_excluded ? "true" : "false");
}

static void print_parameter(const onepass_parameter_info *parameter) {
    printf("{\"name\": \"%s\", \"meaning\": ", parameter->name);
    json_write_string(stdout, parameter->meaning);
    printf(", \"default\": ");
    json_write_number(stdout, parameter->default_value);
    print_bound("minimum", parameter->minimum, parameter->minimum_excluded);
    print_bound("maximum", parameter->maximum, parameter->maximum_excluded);
    printf("}");
}

static const char *target_of(const onepass_loss_info *loss) {
    static const char *const names[] = {[ONEPASS_CLASS_INDEX] = "class indices",
                                        [ONEPASS_CLASS_PROBABILITIES] = "class probabilities",
                                        [ONEPASS_VECTOR] = "vectors",
                                        [ONEPASS_NUMBER_A_VECTOR] = "a number a vector",
                                        [ONEPASS_CLASS_A_VECTOR] = "class indices",
                                        [ONEPASS_CLASSES_A_VECTOR] = "lists of class indices"};
    return loss->over_rows ? names[loss->over_rows] : "numbers";
}

static void print_as_json(const onepass_loss_info *loss) {
    printf("  {\"name\": \"%s\", \"meaning\": ", loss->name);
    json_write_string(stdout, loss->meaning);
    printf(", \"operands\": [");
    for (int32_t k = 0; k < loss->operand_count; k++)
        printf("%s\"%s\"", k ? ", " : "", loss->operand[k]);
    printf("], \"over_rows\": %s, \"of_vectors\": %s, \"log_sum_exp\": %s, \"target\": \"%s\", \"value\": ",
           has_classes(loss) ? "true" : "false", count_vectors(loss) > 0 ? "true" : "false",
           loss->has_log_sum_exp ? "true" : "false", target_of(loss));
    json_write_string(stdout, loss->value);
    printf(", \"slope\": ");
    json_write_string(stdout, loss->slope);
    printf(", \"parameters\": [");
    for (int32_t i = 0; i < loss->parameter_count; i++) {
        if (i > 0)
            printf(", ");
        print_parameter(&loss->parameter[i]);
    }
    printf("]}");
}

static void print_all_as_json(void) {
    const onepass_loss_info *loss;
    puts("[");
    for (int32_t i = 0; (loss = any_loss_at(i)) != NULL; i++) {
        if (i > 0)
            puts(",");
        print_as_json(loss);
    }
    puts("\n]");
}

/* ------------------------------------------------------------------ for people -- */

enum {
    PARAMETERS_TEXT = 128
};

/* "alpha=0.25, gamma=2": as they are unless said otherwise. */
static void write_parameters(char text[PARAMETERS_TEXT], const onepass_loss_info *loss) {
    text[0] = '\0';
    for (int32_t i = 0; i < loss->parameter_count; i++) {
        const size_t used = strlen(text);
        snprintf(text + used, PARAMETERS_TEXT - used, "%s%s=%g", i ? ", " : "", loss->parameter[i].name,
                 loss->parameter[i].default_value);
    }
}

/* The columns' widths: of the names, and of the parameters. */
typedef struct widths {
    int name, parameters;
} widths;

static widths measure(void) {
    const onepass_loss_info *loss;
    char parameters[PARAMETERS_TEXT];
    widths most = {0};
    for (int32_t i = 0; (loss = onepass_loss_at(i)) != NULL; i++) {
        write_parameters(parameters, loss);
        const int name = (int)strlen(loss->name), own = (int)strlen(parameters);
        most.name = name > most.name ? name : most.name;
        most.parameters = own > most.parameters ? own : most.parameters;
    }
    return most;
}

static void print_row(const onepass_loss_info *loss, const widths *widths) {
    char parameters[PARAMETERS_TEXT];
    write_parameters(parameters, loss);
    printf("  %-*s  %-*s  ", widths->name, loss->name, widths->parameters, parameters);
    print_wrapped(widths->name + widths->parameters + 6, loss->meaning);
    putchar('\n');
}

/* The first loss with these operands, which is `first`, and those after it that have them too. */
static void print_group(int32_t first, const char *operands, const widths *widths) {
    const onepass_loss_info *loss;
    char own[OPERANDS_TEXT];
    printf("%sonepass LOSS %s\n\n", first ? "\n" : "", operands);
    for (int32_t i = first; (loss = onepass_loss_at(i)) != NULL; i++) {
        write_operands_as_files(own, loss);
        if (strcmp(own, operands) == 0)
            print_row(loss, widths);
    }
}

typedef const onepass_loss_info *list_of_losses(int32_t index);

static bool is_first_of_its_operands(list_of_losses *loss_at, int32_t index, char operands[OPERANDS_TEXT]) {
    char earlier[OPERANDS_TEXT];
    write_operands_as_files(operands, loss_at(index));
    for (int32_t i = 0; i < index; i++) {
        write_operands_as_files(earlier, loss_at(i));
        if (strcmp(earlier, operands) == 0)
            return false;
    }
    return true;
}

/* Losses over rows and of vectors have more parameters than fit on the line of a meaning. */
static void print_in_two_lines(const onepass_loss_info *loss, int width) {
    char parameters[PARAMETERS_TEXT];
    write_parameters(parameters, loss);
    printf("  %-*s  ", width, loss->name);
    print_wrapped(width + 4, loss->meaning);
    if (parameters[0])
        printf("\n%*s", width + 4, "");
    print_wrapped(width + 4, parameters);
    putchar('\n');
}

/* Those of a list that have these operands. */
static void print_long_group(list_of_losses *loss_at, const char *operands, const char *kind, int width) {
    const onepass_loss_info *loss;
    char own[OPERANDS_TEXT];
    printf("\nonepass LOSS %s, %s\n\n", operands, kind);
    for (int32_t i = 0; (loss = loss_at(i)) != NULL; i++) {
        write_operands_as_files(own, loss);
        if (strcmp(own, operands) == 0)
            print_in_two_lines(loss, width);
    }
}

static void print_long_losses(list_of_losses *loss_at, const char *kind) {
    const onepass_loss_info *loss;
    char operands[OPERANDS_TEXT];
    int width = 0;
    for (int32_t i = 0; (loss = loss_at(i)) != NULL; i++)
        width = (int)strlen(loss->name) > width ? (int)strlen(loss->name) : width;
    for (int32_t i = 0; loss_at(i) != NULL; i++)
        if (is_first_of_its_operands(loss_at, i, operands))
            print_long_group(loss_at, operands, kind, width);
}

static void print_all_as_text(void) {
    char operands[OPERANDS_TEXT];
    const widths widths = measure();
    for (int32_t i = 0; onepass_loss_at(i) != NULL; i++)
        if (is_first_of_its_operands(onepass_loss_at, i, operands))
            print_group(i, operands, &widths);
    print_long_losses(onepass_row_loss_at, "over rows");
    print_long_losses(onepass_vector_loss_at, "of vectors");
    puts("\nonepass LOSS --help shows the formula of a loss, what its parameters mean, and all options.");
}

/* ----------------------------------------------------------------- the command -- */

int list_command(int argc, char **argv) {
    const bool as_json = argc == 2 && strcmp(argv[1], "--json") == 0;
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        puts(
            "usage: onepass list [--json]\n\nThe losses, by their operands: name, parameters as they are unless said "
            "otherwise, and meaning.\nThe JSON has the formulas too, with p, t and v the operands and x = p - t; of a "
            "loss over rows with z the row, y its\nclass index, q its probabilities, w the class weights, C the number "
            "of classes and lse = log(sum(exp(z))); of\nvectors with a, b, p and n those of a row, o and t "
            "probabilities and a region, and y the number.");
        return close_output();
    }
    if (argc > 1 && !as_json)
        return complain(WRONG, "%s: onepass list takes --json and nothing else",
                        argv[argc > 2 && strcmp(argv[1], "--json") == 0 ? 2 : 1]);
    (as_json ? print_all_as_json : print_all_as_text)();
    return close_output();
}
