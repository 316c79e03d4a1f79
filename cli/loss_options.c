#include "loss_options.h"
#include "json_write.h"
#include "operands.h"
#include "option_values.h"
#include "spelling.h"

#include <ctype.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* -------------------------------------------------------------------- the list -- */

typedef enum option_name {
    REDUCTION = 1, /* getopt's 0 has a meaning */
    WEIGHT,
    MASK,
    GRAD,
    NONE,
    AXIS,              /* of losses over rows or of vectors */
    CLASS_WEIGHT_FILE, /* of losses with classes */
    LOG_SUM_EXP_FILE,
    PREDICTED_FILE, /* of losses over rows */
    PART,
    STATE,
    BF16,
    DEVICE,
    THREADS,
    HEX,
    JSON,
    HELP,
    FIRST_PARAMETER,                                           /* and from here on the loss's own */
    FIRST_GRADIENT = FIRST_PARAMETER + ONEPASS_MAX_PARAMETERS, /* by operand; the first one's is GRAD */
    END = FIRST_GRADIENT + ONEPASS_MAX_OPERANDS
} option_name;

static const struct {
    const char *name, *value, *meaning;
} options_list[] = {
    [REDUCTION] = {"reduction", "HOW",
                   "mean (the default), sum, none, or batchmean: the sum divided by the first extent"},
    [WEIGHT] = {"weight", "FILE", "multiplies each element's loss; broadcast to the others' shape"},
    [MASK] = {"mask", "FILE", "booleans: elements where it is 0 take no part; broadcast to the others' shape"},
    [GRAD] = {"grad", "FILE", NULL},
    [NONE] = {"none", "FILE", "writes the loss of each element, as .npy"},
    [AXIS] = {"axis", "N", NULL},
    [CLASS_WEIGHT_FILE] = {"class-weight", "FILE", "a weight for each class"},
    [LOG_SUM_EXP_FILE] = {"lse", "FILE", "writes the logarithm of the sum of exponentials of each row, as .npy"},
    [PREDICTED_FILE] = {"predicted", "FILE", "writes the class of the largest number of each row, as .npy"},
    [PART] = {"part", "I/N", "computes the I-th of N parts of the elements or rows, for --state, and their outputs"},
    [STATE] = {"state", "FILE", "writes what the part comes to, for onepass merge, and prints nothing"},
    [BF16] = {"bf16", NULL, "16-bit unsigned integers in .npy files are bfloat16 numbers"},
    [DEVICE] = {"device", "WHERE", "auto (the default: the CPU), cpu, cuda, or cuda:N for the GPU number N"},
    [THREADS] = {"threads", "N", "at most N threads on the CPU"},
    [HEX] = {"hex", NULL, "prints the bits of the number"},
    [JSON] = {"json", NULL, "prints a JSON object"},
    [HELP] = {"help", NULL, "this text"},
};

enum {
    LISTED = sizeof options_list / sizeof *options_list
};

/* Of any option, the loss's own included, as the library spells its part of it. */
static const char *spell_option(char text[LONGEST_NAME], const onepass_loss_info *loss, int name) {
    if (name > FIRST_GRADIENT)
        snprintf(text, LONGEST_NAME, "grad-%s", loss->operand[name - FIRST_GRADIENT]);
    else
        snprintf(text, LONGEST_NAME, "%s",
                 name >= FIRST_PARAMETER ? loss->parameter[name - FIRST_PARAMETER].name : options_list[name].name);
    return text;
}

/* Words joined by dashes, as a command's are. */
static const char *name_option(char text[LONGEST_NAME], const onepass_loss_info *loss, int name) {
    spell_option(text, loss, name);
    for (char *c = text; *c; c++)
        *c = (char)(*c == '_' ? '-' : *c);
    return text;
}

static bool is_there(const onepass_loss_info *loss, int name) {
    if (name == AXIS)
        return loss->over_rows != 0;
    if (name == CLASS_WEIGHT_FILE)
        return takes_class_weight(loss);
    if (name == LOG_SUM_EXP_FILE)
        return loss->has_log_sum_exp;
    if (name == PREDICTED_FILE)
        return has_classes(loss);
    if (name < LISTED)
        return options_list[name].name != NULL;
    if (name < FIRST_GRADIENT)
        return name - FIRST_PARAMETER < loss->parameter_count;
    return name > FIRST_GRADIENT && name - FIRST_GRADIENT < loss->operand_count &&
           has_gradient(loss, name - FIRST_GRADIENT);
}

/* ------------------------------------------------------------------------ help -- */

static void print_option(const onepass_loss_info *loss, int name, const char *value, const char *meaning) {
    char called[LONGEST_NAME], text[LONGEST_NAME + 16];
    snprintf(text, sizeof text, "--%s %s", name_option(called, loss, name), value ? value : "");
    printf("  %-22s ", text);
    print_wrapped(25, meaning);
    putchar('\n');
}

/* "; 1 or 2": what the library expects in the place of a number, in its own words; nothing if it takes the number. */
static void write_expected(char *text, size_t size, const onepass_loss_info *loss, int32_t parameter, double number) {
    static const char before[] = "expected ";
    onepass_accumulator *accumulator = NULL;
    onepass_call call = {.size = sizeof call, .loss = loss->name, .reduction = ONEPASS_SUM};
    call.parameter_count = loss->parameter_count;
    for (int32_t i = 0; i < loss->parameter_count; i++)
        call.parameter[i] = loss->parameter[i].default_value;
    call.parameter[parameter] = number;
    const onepass_status status = onepass_accumulator_begin(&accumulator, &call, 0);
    const char *expected = status == ONEPASS_INVALID_ARGUMENT ? strstr(onepass_message(), before) : NULL;
    snprintf(text, size, "%s%s", expected ? "; " : "", expected ? expected + strlen(before) : "");
    onepass_accumulator_destroy(accumulator);
}

/* "; above 0", "; from 0 to 1", "; 0 or 1"; nothing where any number will do, or its meaning says it. Where the
 * library refuses a number between the limits, as half an index or a tiny softcap, they do not say all, and it does. */
static void write_range(char *text, size_t size, const onepass_loss_info *loss, int32_t index) {
    const onepass_parameter_info *parameter = &loss->parameter[index];
    const double low = parameter->minimum, high = parameter->maximum;
    char least[NUMBER_DIGITS], most[NUMBER_DIGITS];
    write_digits(least, low);
    write_digits(most, high);
    text[0] = '\0';
    if (isfinite(low) && isfinite(high)) {
        write_expected(text, size, loss, index, nextafter(low, high));
        if (!text[0])
            write_expected(text, size, loss, index, nextafter((low + high) / 2, high));
    }
    if (text[0]) {
        if (strstr(parameter->meaning, text + strlen("; ")))
            text[0] = '\0';
    } else if (isfinite(low) && isfinite(high) && parameter->minimum_excluded && parameter->maximum_excluded)
        snprintf(text, size, "; above %s and below %s", least, most);
    else if (isfinite(low) && isfinite(high))
        snprintf(text, size, "; from %s%s to %s%s", least, parameter->minimum_excluded ? " (excluded)" : "", most,
                 parameter->maximum_excluded ? " (excluded)" : "");
    else if (isfinite(low))
        snprintf(text, size, "; %s %s", parameter->minimum_excluded ? "above" : "at least", least);
    else if (isfinite(high))
        snprintf(text, size, "; %s %s", parameter->maximum_excluded ? "below" : "at most", most);
}

static void print_parameters(const onepass_loss_info *loss) {
    char range[128], usual[NUMBER_DIGITS], meaning[512];
    for (int32_t i = 0; i < loss->parameter_count; i++) {
        const onepass_parameter_info *parameter = &loss->parameter[i];
        write_range(range, sizeof range, loss, i);
        write_digits(usual, parameter->default_value);
        snprintf(meaning, sizeof meaning, "%s (%s unless said otherwise%s)", parameter->meaning, usual, range);
        print_option(loss, FIRST_PARAMETER + i, "X", meaning);
    }
}

static void print_gradients(const onepass_loss_info *loss) {
    char meaning[128];
    for (int32_t k = 0; k < loss->operand_count; k++) {
        if (!has_gradient(loss, k))
            continue;
        snprintf(meaning, sizeof meaning, "writes the gradient for the %s, as .npy, in the same pass",
                 loss->operand[k]);
        print_option(loss, k == 0 ? GRAD : FIRST_GRADIENT + k, "FILE", meaning);
    }
}

/* What it means for this loss. */
static const char *meaning_of(const onepass_loss_info *loss, int name) {
    switch (name) {
    case AXIS:
        return count_vectors(loss) > 0
                   ? "a vector is everything from this dimension on, which is counted from 0 on or, as -1, "
                     "from the end; the last unless said otherwise"
                   : "the dimension of the classes, from 0 on or, as -1, from the end; 1, or the only one, "
                     "unless said otherwise";
    case WEIGHT:
        return loss->over_rows ? "multiplies each row's value; broadcast to the rows' shape"
                               : options_list[name].meaning;
    case MASK:
        return loss->over_rows ? "booleans: rows where it is 0 take no part; broadcast to the rows' shape"
                               : options_list[name].meaning;
    case NONE:
        return loss->over_rows ? "writes the value of each row, as .npy" : options_list[name].meaning;
    default:
        return options_list[name].meaning;
    }
}

void print_loss_options(const onepass_loss_info *loss) {
    print_parameters(loss);
    for (int i = REDUCTION; i < LISTED; i++)
        if (i == GRAD)
            print_gradients(loss);
        else if (is_there(loss, i))
            print_option(loss, i, options_list[i].value, meaning_of(loss, i));
}

/* ---------------------------------------------------------------------- reading -- */

/* What getopt is to know. Names of several words have two spellings. */
typedef struct known {
    struct option option[2 * END];
    char name[2 * END][LONGEST_NAME];
} known;

static void fill_known(const onepass_loss_info *loss, known *known) {
    int count = 0;
    for (int i = REDUCTION; i < END; i++) {
        if (!is_there(loss, i))
            continue;
        struct option option = {.name = name_option(known->name[2 * i], loss, i),
                                .has_arg = i >= LISTED || options_list[i].value ? required_argument : no_argument,
                                .val = i};
        known->option[count++] = option;
        option.name = spell_option(known->name[2 * i + 1], loss, i);
        if (strcmp(option.name, known->name[2 * i]) != 0)
            known->option[count++] = option;
    }
    known->option[count] = (struct option){0};
}

/* Whether the option, with its dashes and perhaps its value, is called so, in either spelling. */
static bool is_called(const char *given, const char *name) {
    const size_t length = strcspn(given, "=");
    bool same = strncmp(given, "--", 2) == 0 && length == strlen(name) + 2;
    for (size_t i = 2; same && i < length; i++)
        same = given[i] == name[i - 2] || (given[i] == '-' && name[i - 2] == '_');
    return same;
}

/* "--gard" is a mistyped "--grad". */
static int complain_of_mistyped(const onepass_loss_info *loss, const char *given) {
    char word[LONGEST_NAME + 2], name[END][LONGEST_NAME];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(given, "="), given);
    for (char *c = word; *c; c++)
        *c = (char)(*c == '_' ? '-' : *c);
    spelling spelling = {.given = strncmp(word, "--", 2) == 0 ? word + 2 : ""};
    for (int i = REDUCTION; i < END; i++)
        if (is_there(loss, i))
            compare_spelling(&spelling, name_option(name[i], loss, i));
    if (spelling.nearest)
        return complain(WRONG, "%s: there is no such option; did you mean \"--%s\"?", given, spelling.nearest);
    return complain(WRONG, "%s: there is no such option (onepass %s --help lists them)", given, loss->name);
}

/* "input1 (--grad) and input2 (--grad-input2)": the first one's option is not called after it. */
static int complain_of_gradient(const onepass_loss_info *loss, const char *given) {
    char text[ONEPASS_MAX_OPERANDS * (2 * LONGEST_NAME + 16)] = "", called[LONGEST_NAME];
    int32_t count = 0, written = 0;
    for (int32_t k = 0; k < loss->operand_count; k++)
        count += has_gradient(loss, k);
    for (int32_t k = 0; k < loss->operand_count; k++) {
        if (!has_gradient(loss, k))
            continue;
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s (--%s)",
                 written == 0           ? ""
                 : written == count - 1 ? " and "
                                        : ", ",
                 loss->operand[k], name_option(called, loss, k == 0 ? GRAD : FIRST_GRADIENT + k));
        written++;
    }
    return complain(WRONG, "%s: there is no such option; %s has %s for %s", given, loss->name,
                    count == 1 ? "a gradient" : "gradients", text);
}

/* A parameter or an operand of another loss is the likeliest mistake. */
static int complain_of_unknown(const onepass_loss_info *loss, const char *given) {
    const onepass_loss_info *other;
    if (has_classes(loss) && is_called(given, options_list[LOG_SUM_EXP_FILE].name))
        return complain(WRONG, "%s: %s has no sum of exponentials (onepass %s --help lists the options)", given,
                        loss->name, loss->name);
    for (int i = 0; i < LISTED; i++)
        if (options_list[i].name && !options_list[i].value && is_called(given, options_list[i].name))
            return complain(WRONG, "%s: --%s takes no value", given, options_list[i].name);
    for (int i = AXIS; i <= PREDICTED_FILE; i++)
        if (!has_classes(loss) && is_called(given, options_list[i].name))
            return complain(WRONG, "%s: is for losses over rows, such as %s%s; %s is none of them", given,
                            onepass_row_loss_at(0)->name,
                            i == AXIS                ? ", and of vectors"
                            : i == CLASS_WEIGHT_FILE ? ", and of vectors with labels"
                                                     : "",
                            loss->name);
    for (int32_t i = 0; (other = any_loss_at(i)) != NULL; i++)
        for (int32_t k = 0; k < other->parameter_count; k++)
            if (is_called(given, other->parameter[k].name))
                return complain(WRONG, "%s: %s has no such parameter, %s has (onepass %s --help lists the options)",
                                given, loss->name, other->name, loss->name);
    if (strncmp(given, "--grad-", 7) == 0)
        return complain_of_gradient(loss, given);
    return complain_of_mistyped(loss, given);
}

static int take_option(loss_options *options, const onepass_loss_info *loss, int name, char *value) {
    onepass_call *call = &options->call;
    char called[LONGEST_NAME];
    if (value && value[0] == '\0')
        return complain(WRONG, "--%s has an empty value; expected one", name_option(called, loss, name));
    if (name > FIRST_GRADIENT && name < END) {
        options->gradient[name - FIRST_GRADIENT] = value;
        return RIGHT;
    }
    if (name >= FIRST_PARAMETER && name < FIRST_GRADIENT) {
        const int parameter = name - FIRST_PARAMETER;
        return read_parameter(value, &loss->parameter[parameter], &call->parameter[parameter]);
    }
    switch (name) {
    case REDUCTION:
        return read_reduction(value, call);
    case WEIGHT:
        options->weight = value;
        return RIGHT;
    case MASK:
        options->mask = value;
        return RIGHT;
    case GRAD:
        options->gradient[0] = value;
        return RIGHT;
    case NONE:
        options->losses = value;
        return RIGHT;
    case AXIS:
        return read_axis(value, call);
    case CLASS_WEIGHT_FILE:
        options->operand[ONEPASS_CLASS_WEIGHT] = value;
        return RIGHT;
    case LOG_SUM_EXP_FILE:
        options->log_sum_exp = value;
        return RIGHT;
    case PREDICTED_FILE:
        options->predicted = value;
        return RIGHT;
    case PART:
        return read_part(value, &options->part);
    case STATE:
        options->state = value;
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
    default: /* HELP, or -h */
        options->wants_help = true;
        return RIGHT;
    }
}

/* ------------------------------------------------------------------ all together -- */

static int check_outputs(const loss_options *options, const onepass_loss_info *loss) {
    char one[LONGEST_NAME], other[LONGEST_NAME];
    const char *path[ONEPASS_MAX_OPERANDS + 3]; /* the gradients come first */
    int name[ONEPASS_MAX_OPERANDS + 3], count = 0;
    for (int32_t k = 0; k < loss->operand_count; k++) {
        path[count] = options->gradient[k];
        name[count++] = k == 0 ? GRAD : FIRST_GRADIENT + k;
    }
    path[count] = options->losses;
    name[count++] = NONE;
    path[count] = options->log_sum_exp;
    name[count++] = LOG_SUM_EXP_FILE;
    path[count] = options->predicted;
    name[count++] = PREDICTED_FILE;
    bool any = false;
    for (int i = 0; i < count; i++) {
        any = any || path[i];
        for (int j = 0; j < i; j++)
            if (path[i] && path[j] && strcmp(path[i], path[j]) == 0)
                return complain(WRONG, "%s: is named by --%s and by --%s; expected two files", path[i],
                                name_option(one, loss, name[j]), name_option(other, loss, name[i]));
    }
    if (options->call.reduction == ONEPASS_NONE && !any)
        return complain(WRONG, "--reduction none has no number to print; expected --none FILE or --grad FILE as well");
    return RIGHT;
}

/* A part has a sum that is not finished, and outputs of its own elements. */
static int check_part(const loss_options *options) {
    if (!options->part.count && !options->state)
        return RIGHT;
    if (!options->part.count || !options->state)
        return complain(WRONG, "--%s is given without --%s; a part and the file for its state belong together",
                        options->state ? "state" : "part", options->state ? "part" : "state");
    if (options->call.reduction == ONEPASS_NONE)
        return complain(WRONG,
                        "--part has a sum for onepass merge, and --reduction none has none; expected --reduction "
                        "mean, sum or batchmean, with --none FILE for the loss of each element of the part");
    if (options->call.device == ONEPASS_CUDA)
        return complain(WRONG, "--part is computed on the CPU; expected --device cpu or auto");
    if (options->as_hex || options->as_json)
        return complain(WRONG, "--%s is given, but a part prints nothing; expected it with onepass merge",
                        options->as_hex ? "hex" : "json");
    return RIGHT;
}

static int check_standard_input(const loss_options *options) {
    int count =
        (options->weight && strcmp(options->weight, "-") == 0) + (options->mask && strcmp(options->mask, "-") == 0);
    for (int k = 0; k < ONEPASS_MAX_OPERANDS; k++)
        count += options->operand[k] && strcmp(options->operand[k], "-") == 0;
    return count <= 1 ? RIGHT : complain(WRONG, "\"-\" is given %d times; standard input can be read once", count);
}

static int take_files(loss_options *options, const onepass_loss_info *loss, int count, char **files) {
    char operands[OPERANDS_TEXT], usage[OPERANDS_TEXT];
    write_operands(operands, loss);
    write_operands_as_files(usage, loss);
    if (count != file_operands(loss))
        return complain(WRONG, "%d file%s given; expected %s, %s: onepass %s %s", count, count == 1 ? " is" : "s are",
                        count_in_words(file_operands(loss)), operands, loss->name, usage);
    for (int k = 0; k < count; k++) {
        if (files[k][0] == '\0')
            return complain(WRONG, "a file's name is empty; expected %s, %s: onepass %s %s",
                            count_in_words(file_operands(loss)), operands, loss->name, usage);
        options->operand[k] = files[k];
    }
    if (options->as_hex && options->as_json)
        return complain(WRONG, "--hex and --json are given; expected one of them (the JSON object has the bits too)");
    int status = check_part(options);
    if (status == RIGHT)
        status = check_outputs(options, loss);
    return status == RIGHT ? check_standard_input(options) : status;
}

/* What getopt has just refused. Letters may stand together in an argument, which is not behind it as long as one is
 * left. */
static const char *refused_option(char **argv, char letter[3]) {
    _Static_assert(END < ' ', "an option's number is no letter");
    if (optopt > 0 && isprint(optopt)) {
        snprintf(letter, 3, "-%c", optopt);
        return letter;
    }
    const bool is_part_of_letter = optopt < 0 || optopt > '~'; /* in UTF-8, of which more follows */
    return argv[is_part_of_letter ? optind : optind - 1];
}

int read_loss_options(loss_options *options, const onepass_loss_info *loss, int argc, char **argv) {
    known known = {0};
    bool has_value[END] = {false};
    fill_known(loss, &known);
    *options = (loss_options){.call = {.size = sizeof options->call, .loss = loss->name}};
    options->call.parameter_count = loss->parameter_count;
    for (int32_t i = 0; i < loss->parameter_count; i++)
        options->call.parameter[i] = loss->parameter[i].default_value;
    opterr = 0;
    optind = 1;
    for (;;) {
        const int name = getopt_long(argc, argv, ":h", known.option, NULL);
        char letter[3], called[LONGEST_NAME];
        if (name == -1)
            break;
        if (name == '?')
            return complain_of_unknown(loss, refused_option(argv, letter));
        if (name == ':')
            return complain(WRONG, "%s: a value is missing", argv[optind - 1]);
        if (optarg && has_value[name])
            return complain(WRONG, "--%s is given twice; expected it once", name_option(called, loss, name));
        if (optarg)
            has_value[name] = true;
        const int status = take_option(options, loss, name, optarg);
        if (status != RIGHT)
            return status;
    }
    return options->wants_help ? RIGHT : take_files(options, loss, argc - optind, argv + optind);
}
