/* What the tool says of itself. */
#include "loss_options.h"
#include "operands.h"

#include <stdio.h>
#include <string.h>

static void print_loss_names(void) {
    const onepass_loss_info *loss;
    char names[2048] = "";
    size_t used = 0;
    for (int32_t i = 0; (loss = any_loss_at(i)) != NULL && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", loss->name);
    fputs("  ", stdout);
    print_wrapped(2, names);
    putchar('\n');
}

void print_usage(bool to_error) {
    FILE *file = to_error ? stderr : stdout;
    fputs("usage: onepass LOSS PREDICTION TARGET [OPTION...]\n"
          "       onepass merge PART... [OPTION...]\n"
          "       onepass list | info [OPTION...]\n"
          "       onepass --help | --version\n",
          file);
}

void print_help(void) {
    fputs("onepass: the loss of files of numbers, and its gradient, in one pass over them\n\n", stdout);
    print_usage(false);
    fputs("\nLOSS is one of\n\n", stdout);
    print_loss_names();
    fputs("\nPREDICTION and TARGET are .npy files, or tensors of .safetensors files (file.safetensors:name); a few "
          "losses\n"
          "take a third file, and losses over rows, such as cross_entropy, class indices as the target. Files may be "
          "larger\n"
          "than memory. The answer has the same bits on every machine.\n\n"
          "  onepass mse pred.npy target.npy                          the mean squared error, with all its digits\n"
          "  onepass smooth_l1 pred.npy target.npy --beta 0.5         a loss's own parameters are options\n"
          "  onepass mse pred.npy target.npy --grad gradient.npy      the gradient too, from the same pass\n"
          "  onepass hinge run.safetensors:logits target.npy --json   the answer for programs\n"
          "  onepass mse pred.npy target.npy --reduction sum --hex    the sum, as its bits\n"
          "  onepass bce pred.npy target.npy --mask mask.npy          only where the mask is not 0\n"
          "  onepass cross_entropy logits.npy labels.npy              rows of logits, and a class index for each\n"
          "  onepass pairwise_distance input1.npy input2.npy          the mean distance of vectors\n\n"
          "  onepass LOSS --help      the loss: its formula, its parameters, all options\n"
          "  onepass merge            the answer of a whole out of its parts (--part, --state)\n"
          "  onepass list             the losses\n"
          "  onepass info             this machine, as the library sees it\n\n"
          "The exit status is 0, 2 if the command or a file is wrong, 1 if the machine failed. The manual: man "
          "onepass.\n",
          stdout);
}

/* "p the prediction, t the target and x = p - t". */
static void print_symbols(const onepass_loss_info *loss) {
    static const char *const symbols[ONEPASS_MAX_OPERANDS] = {"p", "t", "v", "w"};
    for (int32_t k = 0; k < loss->operand_count; k++)
        printf("%s%s the %s", k ? ", " : "", symbols[k], loss->operand[k]);
    printf(" and x = p - t");
}

/* "z a row of the input, y its class index, w the class weights ...". */
static void print_row_symbols(const onepass_loss_info *loss) {
    char text[512];
    const bool has_labels = loss->over_rows == ONEPASS_CLASS_INDEX;
    snprintf(text, sizeof text,
             "For each row, with z its numbers in the input, %s, w the class weights (1 unless they are given)%s%s%s:",
             has_labels ? "y its class index in the target" : "q its probabilities in the target",
             strstr(loss->value, "C") ? ", C the number of classes" : "",
             strstr(loss->value, "s)") ? ", s label_smoothing" : "",
             strstr(loss->value, "lse") ? " and lse = log(sum(exp(z)))" : "");
    print_wrapped(0, text);
    printf("\n\n");
}

/* "a input1, b input2 and y target": the letters that formulas have for a row's vectors. */
static void print_vector_symbols(const onepass_loss_info *loss) {
    static const struct {
        const char *operand, *letter;
    } letters[] = {{"input1", "a"}, {"input2", "b"}, {"anchor", "a"}, {"positive", "p"}, {"negative", "n"}};
    printf("For each row, with ");
    for (int32_t k = 0; k < loss->operand_count; k++) {
        const char *letter = k > count_vectors(loss)    ? "w"
                             : k == count_vectors(loss) ? "y"
                             : k > 0                    ? "t"
                             : strchr(loss->value, 'z') ? "z"
                                                        : "o"; /* of regions */
        for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
            if (strcmp(loss->operand[k], letters[i].operand) == 0)
                letter = letters[i].letter;
        const bool weighs = k == ONEPASS_CLASS_WEIGHT && takes_class_weight(loss);
        printf("%s%s the %s",
               k == 0                         ? ""
               : k == loss->operand_count - 1 ? " and "
                                              : ", ",
               letter, weighs ? "class weights (1 unless they are given)" : loss->operand[k]);
    }
    printf("%s:\n\n", takes_class_weight(loss) || has_label_lists(loss) ? ", of C classes" : "");
}

static void print_formula(const char *name, const char *formula) {
    printf("  %-5s  ", name);
    print_wrapped(9, formula);
    putchar('\n');
}

/* The names that the examples give to files: pred.npy, target.npy, variance.npy. */
static void print_files(const onepass_loss_info *loss, const char *first) {
    if (has_classes(loss)) {
        printf(" %s %s.npy", first ? first : "logits.npy",
               loss->over_rows == ONEPASS_CLASS_INDEX ? "labels" : "probabilities");
        return;
    }
    for (int32_t k = 0; k < file_operands(loss); k++)
        if (k == 0 && first)
            printf(" %s", first);
        else if (k > 0 && (loss->over_rows == ONEPASS_CLASS_A_VECTOR || has_label_lists(loss)))
            printf(" labels.npy");
        else
            printf(" %s.npy", strcmp(loss->operand[k], "prediction") == 0 ? "pred" : loss->operand[k]);
}

static void print_example(const onepass_loss_info *loss, const char *first, const char *options) {
    printf("  onepass %s", loss->name);
    print_files(loss, first);
    puts(options);
}

static void print_row_examples(const onepass_loss_info *loss) {
    const bool has_labels = loss->over_rows == ONEPASS_CLASS_INDEX;
    print_example(loss, NULL, "");
    print_example(loss, NULL,
                  has_labels ? " --ignore-index 0 --reduction sum" : " --label-smoothing 0.1 --reduction sum");
    print_example(loss, "model.safetensors:logits", " --axis -1 --grad g.npy");
    print_example(loss, NULL, " --class-weight class_weight.npy --json");
}

static void print_vector_examples(const onepass_loss_info *loss) {
    char option[96];
    print_example(loss, NULL, "");
    print_example(loss, NULL, " --reduction none --none values.npy");
    if (count_vectors(loss) > 1)
        snprintf(option, sizeof option, " --axis -1 --grad g.npy --grad-%s h.npy", loss->operand[ONEPASS_TARGET]);
    else
        snprintf(option, sizeof option, " --axis -1 --grad g.npy");
    print_example(loss, "model.safetensors:out", option);
    print_example(loss, NULL,
                  takes_class_weight(loss) ? " --class-weight class_weight.npy --json"
                                           : " --weight weight.npy --reduction sum --json");
}

static void print_examples(const onepass_loss_info *loss) {
    char option[96];
    print_example(loss, NULL, "");
    if (loss->parameter_count > 0) {
        const onepass_parameter_info *parameter = &loss->parameter[0];
        const double half = parameter->default_value / 2, other = half > parameter->minimum ? half : 4 * half;
        snprintf(option, sizeof option, " --%s %g", parameter->name, other == 0 ? 1 : other);
        print_example(loss, NULL, option);
    }
    snprintf(option, sizeof option, " --grad g.npy --grad-%s h.npy", loss->operand[ONEPASS_TARGET]);
    print_example(loss, "model.safetensors:logits", option);
    print_example(loss, NULL, " --weight weight.npy --reduction sum --json");
}

void print_loss_help(const onepass_loss_info *loss) {
    char files[OPERANDS_TEXT];
    write_operands_as_files(files, loss);
    print_wrapped(printf("onepass %s: ", loss->name), loss->meaning);
    printf("\n\nusage: onepass %s %s [OPTION...]\n\n", loss->name, files);
    if (has_classes(loss)) {
        print_row_symbols(loss);
    } else if (loss->over_rows) {
        print_vector_symbols(loss);
    } else {
        printf("For each element, with ");
        print_symbols(loss);
        printf(":\n\n");
    }
    print_formula("loss", loss->value);
    print_formula("slope", loss->slope);
    printf("\nThe files are .npy files (f2, f4, f8, bfloat16 as V2), or tensors of .safetensors files\n"
           "(file.safetensors:name); - is standard input. ");
    if (loss->over_rows == ONEPASS_CLASS_INDEX || loss->over_rows == ONEPASS_CLASS_A_VECTOR)
        puts("The target has a class index (i8, i4 or u1) for each row.");
    else if (has_label_lists(loss))
        puts("The target has the shape of the input:\nin each row class indices (i8, i4 or u1), of which those before "
             "the first -1 count.");
    else if (has_classes(loss))
        puts("The target has the shape of the input.");
    else if (loss->over_rows == ONEPASS_NUMBER_A_VECTOR)
        puts("The vectors' types may differ, their shapes are broadcast.\n"
             "The target has a number (i8, i4 and u1 too) for each of them.");
    else
        puts("Their types may differ, their shapes are broadcast.");
    printf("\noptions:\n");
    print_loss_options(loss);
    printf("\nexamples:\n");
    if (has_classes(loss))
        print_row_examples(loss);
    else if (loss->over_rows)
        print_vector_examples(loss);
    else
        print_examples(loss);
}
