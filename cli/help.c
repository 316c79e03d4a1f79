/* What the tool says of itself. */
#include "loss_options.h"

#include <stdio.h>

static void print_loss_names(FILE *file) {
    const onepass_loss_info *loss;
    for (int32_t i = 0; (loss = onepass_loss_at(i)) != NULL; i++)
        fprintf(file, "%s%s", i ? ", " : "", loss->name);
}

void print_usage(bool to_error) {
    FILE *file = to_error ? stderr : stdout;
    fputs("usage: onepass LOSS PREDICTIONS TARGETS [OPTION...]\n"
          "       onepass list | info | bench | plot [OPTION...]\n"
          "       onepass --help | --version\n",
          file);
}

void print_help(void) {
    fputs("onepass: the loss of two files of numbers, and its gradient, in one pass over them\n\n", stdout);
    print_usage(false);
    fputs("\nLOSS is one of ", stdout);
    print_loss_names(stdout);
    fputs(". PREDICTIONS and TARGETS are .npy files, or tensors of .safetensors files\n"
          "(file.safetensors:name). Files may be larger than memory. The answer has the same bits on every machine.\n\n"
          "  onepass mse pred.npy target.npy                          the mean squared error, with all its digits\n"
          "  onepass smooth_l1 pred.npy target.npy --beta 0.5         a loss's own parameters are options\n"
          "  onepass mse pred.npy target.npy --grad gradient.npy      the gradient too, from the same pass\n"
          "  onepass hinge run.safetensors:logits target.npy --json   the answer for programs\n"
          "  onepass mse pred.npy target.npy --reduction sum --hex    the sum, as its bits\n\n"
          "  onepass LOSS --help      the loss: its formula, its parameters, all options\n"
          "  onepass list             the losses\n"
          "  onepass info             this machine, as the library sees it\n"
          "  onepass bench            the library's speed here, beside what the memory can do; --plot draws it\n"
          "  onepass plot             draws what was measured before\n\n"
          "The exit status is 0, 2 if the command or a file is wrong, 1 if the machine failed. The manual: man "
          "onepass.\n",
          stdout);
}

static void print_range(const onepass_parameter_info *parameter) {
    printf("  %s: %s. %g unless said otherwise; from %g%s to %g%s\n", parameter->name, parameter->meaning,
           parameter->standard, parameter->least, parameter->above_least ? " (excluded)" : "", parameter->greatest,
           parameter->below_greatest ? " (excluded)" : "");
}

void print_loss_help(const onepass_loss_info *loss) {
    printf("onepass %s: %s\n\n", loss->name, loss->meaning);
    printf("usage: onepass %s PREDICTIONS TARGETS [OPTION...]\n\n", loss->name);
    printf("For each element, with p the prediction, t the target and x = p - t:\n\n");
    printf("  loss   %s\n  slope  %s\n\n", loss->value, loss->slope);
    if (loss->parameter_count > 0) {
        for (int32_t i = 0; i < loss->parameter_count; i++)
            print_range(&loss->parameter[i]);
        putchar('\n');
    }
    printf("PREDICTIONS and TARGETS are .npy files (f2, f4, f8, bfloat16 as V2), or tensors of .safetensors files\n"
           "(file.safetensors:name); - is standard input. Their types may differ, their shapes are broadcast.\n\n"
           "options:\n");
    print_loss_options(loss);
    printf("\nexamples:\n");
    printf("  onepass %s pred.npy target.npy\n", loss->name);
    if (loss->parameter_count > 0)
        printf("  onepass %s pred.npy target.npy --%s %g\n", loss->name, loss->parameter[0].name,
               loss->parameter[0].standard / 2);
    printf("  onepass %s model.safetensors:logits target.npy --grad gradient.npy\n", loss->name);
    printf("  onepass %s pred.npy target.npy --weight weight.npy --reduction sum --json\n", loss->name);
}
