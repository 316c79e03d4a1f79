#include "loss_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------- the list -- */

typedef enum option_name {
    REDUCTION = 1, /* getopt's 0 has a meaning */
    WEIGHT,
    GRAD,
    NONE,
    BF16,
    DEVICE,
    THREADS,
    HEX,
    JSON,
    HELP,
    FIRST_PARAMETER /* and from here on the loss's own */
} option_name;

static const struct {
    const char *name, *value, *meaning;
} options_list[] = {
    [REDUCTION] = {"reduction", "HOW", "mean (the default), sum or none"},
    [WEIGHT] = {"weight", "FILE", "multiplies each element's loss; broadcast to the others' shape"},
    [GRAD] = {"grad", "FILE", "writes the gradient for the predictions, as .npy, in the same pass"},
    [NONE] = {"none", "FILE", "writes the loss of each element, as .npy"},
    [BF16] = {"bf16", NULL, "16-bit unsigned integers in .npy files are bfloat16 numbers"},
    [DEVICE] = {"device", "WHERE", "auto (the default: the CPU), cpu, cuda, or cuda:N for the GPU number N"},
    [THREADS] = {"threads", "N", "at most N threads on the CPU"},
    [HEX] = {"hex", NULL, "prints the bits of the number"},
    [JSON] = {"json", NULL, "prints a JSON object"},
    [HELP] = {"help", NULL, "this text"},
};

enum {
    LISTED = sizeof options_list / sizeof *options_list,
    MOST_OPTIONS = LISTED + ONEPASS_MAX_PARAMETERS
};

void print_loss_options(const onepass_loss_info *loss) {
    char called[40];
    for (int32_t i = 0; i < loss->parameter_count; i++) {
        const onepass_parameter_info *parameter = &loss->parameter[i];
        snprintf(called, sizeof called, "--%s X", parameter->name);
        printf("  %-20s %s (%g unless said otherwise)\n", called, parameter->meaning, parameter->standard);
    }
    for (int i = REDUCTION; i < LISTED; i++) {
        snprintf(called, sizeof called, "--%s %s", options_list[i].name,
                 options_list[i].value ? options_list[i].value : "");
        printf("  %-20s %s\n", called, options_list[i].meaning);
    }
}

/* ------------------------------------------------------------------- their values -- */

static int read_reduction(const char *text, onepass_call *call) {
    static const char *const names[] = {"mean", "sum", "none"}; /* as onepass_reduction counts them */
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) == 0) {
            call->reduction = i;
            return RIGHT;
        }
    }
    return complain(WRONG, "--reduction is \"%s\"; expected mean, sum or none", text);
}

static bool read_count(const char *text, long least, long most, int32_t *count) {
    char *end;
    errno = 0;
    const long number = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || number < least || number > most)
        return false;
    *count = (int32_t)number;
    return true;
}

static int read_threads(const char *text, onepass_call *call) {
    if (read_count(text, 1, INT32_MAX, &call->threads))
        return RIGHT;
    return complain(WRONG, "--threads is \"%s\"; expected a number from 1 on", text);
}

static int read_device(const char *text, onepass_call *call) {
    if (strcmp(text, "auto") == 0 || strcmp(text, "cpu") == 0) {
        call->device = ONEPASS_CPU;
        return RIGHT;
    }
    call->device = ONEPASS_CUDA;
    if (strcmp(text, "cuda") == 0 ||
        (strncmp(text, "cuda:", 5) == 0 && read_count(text + 5, 0, INT32_MAX, &call->device_index)))
        return RIGHT;
    return complain(WRONG, "--device is \"%s\"; expected auto, cpu, cuda, or cuda:N for the GPU number N", text);
}

/* Whether the library will take it is for the library to say. */
static int read_parameter(const char *text, const onepass_parameter_info *info, double *value) {
    char *end;
    *value = strtod(text, &end);
    if (end == text || *end != '\0')
        return complain(WRONG, "--%s is \"%s\"; expected a number", info->name, text);
    return RIGHT;
}

/* ---------------------------------------------------------------------- reading -- */

static void fill_known(const onepass_loss_info *loss, struct option *known) {
    int count = 0;
    for (int i = REDUCTION; i < LISTED; i++)
        known[count++] =
            (struct option){options_list[i].name, options_list[i].value ? required_argument : no_argument, NULL, i};
    for (int32_t i = 0; i < loss->parameter_count; i++)
        known[count++] = (struct option){loss->parameter[i].name, required_argument, NULL, FIRST_PARAMETER + i};
    known[count] = (struct option){0};
}

/* A parameter of another loss is the likeliest mistake. */
static int complain_of_unknown(const onepass_loss_info *loss, const char *given) {
    const onepass_loss_info *other;
    for (int32_t i = 0; (other = onepass_loss_at(i)) != NULL; i++)
        for (int32_t k = 0; k < other->parameter_count; k++)
            if (strncmp(given, "--", 2) == 0 &&
                strncmp(given + 2, other->parameter[k].name, strcspn(given + 2, "=")) == 0 &&
                strlen(other->parameter[k].name) == strcspn(given + 2, "="))
                return complain(WRONG, "%s: %s has no such parameter, %s has (onepass %s --help lists the options)",
                                given, loss->name, other->name, loss->name);
    return complain(WRONG, "%s: there is no such option (onepass %s --help lists them)", given, loss->name);
}

static int take_option(loss_options *options, const onepass_loss_info *loss, int name, char *value) {
    onepass_call *call = &options->call;
    if (value && value[0] == '\0')
        return complain(WRONG, "--%s has an empty value; expected one",
                        name < LISTED ? options_list[name].name : loss->parameter[name - FIRST_PARAMETER].name);
    switch (name) {
    case REDUCTION:
        return read_reduction(value, call);
    case WEIGHT:
        options->weight = value;
        return RIGHT;
    case GRAD:
        options->gradient = value;
        return RIGHT;
    case NONE:
        options->losses = value;
        return RIGHT;
    case BF16:
        options->integers_are_bf16 = true;
        return RIGHT;
    case DEVICE:
        return read_device(value, call);
    case THREADS:
        return read_threads(value, call);
    case HEX:
        options->as_hex = true;
        return RIGHT;
    case JSON:
        options->as_json = true;
        return RIGHT;
    case 'h':
    case HELP:
        options->wants_help = true;
        return RIGHT;
    default: {
        const int parameter = name - FIRST_PARAMETER;
        return read_parameter(value, &loss->parameter[parameter], &call->parameter[parameter]);
    }
    }
}

static int check_together(const loss_options *options) {
    if (options->call.reduction == ONEPASS_NONE && !options->losses && !options->gradient)
        return complain(WRONG, "--reduction none has no number to print; expected --none FILE or --grad FILE as well");
    if (options->losses && options->gradient && strcmp(options->losses, options->gradient) == 0)
        return complain(WRONG, "%s: is named by --grad and by --none; expected two files", options->losses);
    if (options->as_hex && options->as_json)
        return complain(WRONG, "--hex and --json are given; expected one of them (the JSON object has the bits too)");
    int from_standard = strcmp(options->predictions, "-") == 0;
    from_standard += strcmp(options->targets, "-") == 0;
    from_standard += options->weight && strcmp(options->weight, "-") == 0;
    if (from_standard > 1)
        return complain(WRONG, "\"-\" is given %d times; standard input can be read once", from_standard);
    return RIGHT;
}

static int take_files(loss_options *options, const onepass_loss_info *loss, int count, char **files) {
    if (count != 2)
        return complain(WRONG, "%d file%s given; expected two, predictions and targets: onepass %s PREDICTIONS TARGETS",
                        count, count == 1 ? " is" : "s are", loss->name);
    if (files[0][0] == '\0' || files[1][0] == '\0')
        return complain(WRONG,
                        "a file's name is empty; expected two, predictions and targets: onepass %s PREDICTIONS TARGETS",
                        loss->name);
    options->predictions = files[0];
    options->targets = files[1];
    return check_together(options);
}

int read_loss_options(loss_options *options, const onepass_loss_info *loss, int argc, char **argv) {
    struct option known[MOST_OPTIONS];
    fill_known(loss, known);
    *options = (loss_options){.call = {.size = sizeof options->call, .loss = loss->name}};
    options->call.parameter_count = loss->parameter_count;
    for (int32_t i = 0; i < loss->parameter_count; i++)
        options->call.parameter[i] = loss->parameter[i].standard;
    opterr = 0;
    optind = 1;
    for (;;) {
        const int at = optind, name = getopt_long(argc, argv, ":h", known, NULL);
        if (name == -1)
            break;
        if (name == '?')
            return complain_of_unknown(loss, argv[optind > at ? optind - 1 : at]);
        if (name == ':')
            return complain(WRONG, "%s: a value is missing", argv[optind - 1]);
        const int status = take_option(options, loss, name, optarg);
        if (status != RIGHT)
            return status;
    }
    return options->wants_help ? RIGHT : take_files(options, loss, argc - optind, argv + optind);
}
