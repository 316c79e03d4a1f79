/* onepass list: the losses, as the library describes them. */
#include "tool.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void print_bound(const char *key, double bound) {
    if (isfinite(bound))
        printf(", \"%s\": %.17g", key, bound);
    else
        printf(", \"%s\": null", key);
}

static void print_as_json(const onepass_loss_info *loss) {
    printf("  {\"name\": \"%s\", \"meaning\": ", loss->name);
    print_json_string(loss->meaning);
    printf(", \"value\": ");
    print_json_string(loss->value);
    printf(", \"slope\": ");
    print_json_string(loss->slope);
    printf(", \"parameters\": [");
    for (int32_t i = 0; i < loss->parameter_count; i++) {
        const onepass_parameter_info *parameter = &loss->parameter[i];
        printf("%s{\"name\": \"%s\", \"meaning\": ", i ? ", " : "", parameter->name);
        print_json_string(parameter->meaning);
        printf(", \"default\": %.17g", parameter->standard);
        print_bound("least", parameter->least);
        print_bound("greatest", parameter->greatest);
        printf("}");
    }
    printf("]}");
}

static void print_as_text(const onepass_loss_info *loss) {
    printf("%s: %s\n  loss   %s\n  slope  %s\n", loss->name, loss->meaning, loss->value, loss->slope);
    for (int32_t i = 0; i < loss->parameter_count; i++)
        printf("  --%s  %s (%g unless said otherwise)\n", loss->parameter[i].name, loss->parameter[i].meaning,
               loss->parameter[i].standard);
}

int list_command(int argc, char **argv) {
    const bool as_json = argc == 2 && strcmp(argv[1], "--json") == 0;
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        puts("usage: onepass list [--json]\n\nThe losses: formula, slope and parameters, with p the prediction, t the "
             "target and x = p - t.");
        return close_output();
    }
    if (argc > 1 && !as_json)
        return complain(WRONG, "%s: onepass list takes --json and nothing else", argv[1]);
    const onepass_loss_info *loss;
    if (as_json)
        puts("[");
    else
        puts("p is the prediction, t the target, x = p - t.\n");
    for (int32_t i = 0; (loss = onepass_loss_at(i)) != NULL; i++) {
        if (i > 0)
            puts(as_json ? "," : "");
        (as_json ? print_as_json : print_as_text)(loss);
    }
    if (as_json)
        puts("\n]");
    return close_output();
}
