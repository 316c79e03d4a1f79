/* The options of `onepass bench`, and its help. */
#include "bench_options.h"
#include "option_values.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAST_POWER = 10,
    MOST_POWER = 28,
    MOST_THREADS = 1 << 16,
    HIGHEST_POWER = 40 /* more elements than any memory holds */
};

void bench_help(void) {
    fputs(
        "Measures the library on this machine beside what the machine's memory can do, in the same run: GB/s of each\n"
        "loss, GB/s of a loop that moves the same bytes and does nothing else, and the share of the one in the other.\n"
        "\n"
        "    onepass bench                                   three losses on the CPU; a minute or so\n"
        "    onepass bench --loss mse --type f32             one loss, one type\n"
        "    onepass bench --max 2^22 --mode forward         small arrays, the value alone\n"
        "    onepass bench --device cuda --plot gpu.svg      on the GPU, with a picture\n"
        "    onepass bench --json now.json                   for programs; \"onepass plot\" draws it later\n"
        "\n"
        "options:\n"
        "    --device cpu|cuda|cuda:N    where; cpu unless said otherwise\n"
        "    --loss NAME,...             these losses; mse, smooth_l1 and hinge unless said otherwise. Any that\n"
        "                                \"onepass list\" names, if it has two operands\n"
        "    --type TYPE,...             only these types: f16, bf16, f32, f64\n"
        "    --mode forward,both         only these: the value alone, or value and gradient\n"
        "    --min N, --max N            elements; 2^10 to 2^28 unless said otherwise\n"
        "    --threads N                 at most so many on the CPU; as many as there are cores unless said otherwise\n"
        "    --json FILE                 what was measured, with the machine and the date\n"
        "    --plot FILE.svg             a picture: elements against GB/s, with the limit as a line\n"
        "    --help                      this\n",
        stdout);
}

/* ------------------------------------------------------------------------- numbers -- */

/* 1048576, or 2^20. */
static bool parse_count(const char *option, const char *text, int64_t *count, problem *problem) {
    char *end = NULL;
    errno = 0;
    const char *digits = strncmp(text, "2^", 2) == 0 ? text + 2 : text;
    const long long number = *digits >= '0' && *digits <= '9' ? strtoll(digits, &end, 10) : -1;
    const bool is_power = digits != text;
    if (number < 0 || *end != '\0' || errno)
        return fail(problem, "%s is \"%s\"; expected a number of elements, such as 1000 or 2^20", option, text);
    if (is_power ? number > HIGHEST_POWER : number > INT64_C(1) << HIGHEST_POWER)
        return fail(problem, "%s is %s; at most 2^%d elements can be asked for", option, text, HIGHEST_POWER);
    *count = is_power ? INT64_C(1) << number : number;
    return *count > 0 || fail(problem, "%s is 0; there must be elements to measure", option);
}

static bool parse_threads(const char *text, int32_t *threads, problem *problem) {
    return read_count(text, 1, MOST_THREADS, threads) ||
           fail(problem, "--threads is \"%s\"; expected a number from 1 on", text);
}

static bool parse_device(const char *text, bench_options *options, problem *problem) {
    options->on_gpu = strncmp(text, "cuda", 4) == 0;
    options->gpu = 0;
    if (strcmp(text, "cpu") == 0 || strcmp(text, "cuda") == 0 ||
        (strncmp(text, "cuda:", 5) == 0 && read_count(text + 5, 0, INT32_MAX, &options->gpu)))
        return true;
    return fail(problem, "--device is \"%s\"; expected cpu, cuda or cuda:N", text);
}

/* --------------------------------------------------------------------------- lists -- */

/* Names that an option may list, and which of them it does. */
typedef struct choice {
    const char *option, *thing;
    const char *name[BENCH_MOST_LOSSES];
    bool is_usual[BENCH_MOST_LOSSES]; /* wanted where the option is not there */
    bool is_wanted[BENCH_MOST_LOSSES];
    int count;
} choice;

static bool refuse_name(const choice *choice, const char *name, size_t length, problem *problem) {
    char known[400] = "", asked[64];
    snprintf(asked, sizeof asked, "%.*s", (int)length, name);
    if (strcmp(choice->option, "--loss") == 0 && onepass_loss_named(asked))
        return fail(problem, "%s: %s has more than two operands, and only losses of two can be measured",
                    choice->option, asked);
    for (int i = 0; i < choice->count && strlen(known) < sizeof known; i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i > 0 ? ", " : "", choice->name[i]);
    return fail(problem, "%s: there is no %s \"%s\"; there are %s", choice->option, choice->thing, asked, known);
}

static bool parse_list(choice *choice, const char *text, problem *problem) {
    for (const char *name = text;; name++) {
        const size_t length = strcspn(name, ",");
        int found = 0;
        while (found < choice->count &&
               (strlen(choice->name[found]) != length || strncmp(choice->name[found], name, length) != 0))
            found++;
        if (found == choice->count)
            return refuse_name(choice, name, length, problem);
        choice->is_wanted[found] = true;
        name += length;
        if (*name == '\0')
            return true;
    }
}

/* Whether the option listed this one, or was not there at all, and this is one of the usual. */
static bool is_chosen(const choice *choice, int index) {
    bool any = false;
    for (int i = 0; i < choice->count; i++)
        any = any || choice->is_wanted[i];
    return any ? choice->is_wanted[index] : choice->is_usual[index];
}

/* ------------------------------------------------------------------- the command line -- */

typedef struct choices {
    choice loss, type, mode;
} choices;

static void add_choice(choice *choice, const char *name, bool is_usual) {
    if (choice->count == BENCH_MOST_LOSSES)
        return;
    choice->name[choice->count] = name;
    choice->is_usual[choice->count++] = is_usual;
}

/* Few enough for a picture: the cheapest, one with a branch, and one of another kind. */
static bool is_usual_loss(const char *name) {
    return strcmp(name, "mse") == 0 || strcmp(name, "smooth_l1") == 0 || strcmp(name, "hinge") == 0;
}

static void list_choices(choices *choices) {
    const onepass_loss_info *loss;
    *choices = (struct choices){.loss = {.option = "--loss", .thing = "loss"},
                                .type = {.option = "--type", .thing = "type"},
                                .mode = {.option = "--mode", .thing = "mode"}};
    for (int32_t i = 0; (loss = onepass_loss_at(i)) != NULL; i++)
        if (loss->operand_count == 2)
            add_choice(&choices->loss, loss->name, is_usual_loss(loss->name));
    for (int32_t dtype = ONEPASS_F16; dtype <= ONEPASS_F64; dtype++)
        add_choice(&choices->type, dtype_name(dtype), true);
    for (int mode = 0; mode < BENCH_MODES; mode++)
        add_choice(&choices->mode, bench_mode_name((bench_mode)mode), true);
}

static void take_choices(const choices *choices, bench_options *options) {
    for (int i = 0; i < choices->loss.count; i++)
        if (is_chosen(&choices->loss, i))
            options->loss[options->losses++] = choices->loss.name[i];
    for (int i = 0; i < choices->type.count; i++)
        if (is_chosen(&choices->type, i))
            options->dtype[options->dtypes++] = ONEPASS_F16 + i;
    for (int i = 0; i < choices->mode.count; i++)
        if (is_chosen(&choices->mode, i))
            options->mode[options->modes++] = (bench_mode)i;
}

/* An option and its value, from one argument (--max=8) or two (--max 8). */
typedef struct argument {
    char name[16];
    const char *value; /* null: there is none */
    int taken;         /* arguments */
} argument;

static argument argument_at(int argc, char **argv, int at) {
    argument found = {.taken = 1};
    const size_t length = strcspn(argv[at], "=");
    snprintf(found.name, sizeof found.name, "%.*s", (int)length, argv[at]);
    if (argv[at][length] == '=') {
        found.value = argv[at] + length + 1;
    } else if (at + 1 < argc) {
        found.value = argv[at + 1];
        found.taken = 2;
    }
    return found;
}

static bool take_value(const argument *argument, choices *choices, bench_options *options, problem *problem) {
    const char *name = argument->name, *value = argument->value;
    if (strcmp(name, "--loss") == 0)
        return parse_list(&choices->loss, value, problem);
    if (strcmp(name, "--type") == 0)
        return parse_list(&choices->type, value, problem);
    if (strcmp(name, "--mode") == 0)
        return parse_list(&choices->mode, value, problem);
    if (strcmp(name, "--device") == 0)
        return parse_device(value, options, problem);
    if (strcmp(name, "--threads") == 0)
        return parse_threads(value, &options->threads, problem);
    if (strcmp(name, "--min") == 0)
        return parse_count(name, value, &options->least, problem);
    if (strcmp(name, "--max") == 0)
        return parse_count(name, value, &options->most, problem);
    if (strcmp(name, "--json") == 0)
        options->json = value;
    else
        options->plot = value;
    return value[0] != '\0' || fail(problem, "%s needs the name of a file", name);
}

static bool is_option(const char *name) {
    static const char *const names[] = {"--device", "--loss",    "--type", "--mode", "--min",
                                        "--max",    "--threads", "--json", "--plot"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* What was measured does not depend on where it was written to. */
static void remember(bench_options *options, const argument *argument) {
    const size_t used = strlen(options->command);
    if (strcmp(argument->name, "--json") != 0 && strcmp(argument->name, "--plot") != 0)
        snprintf(options->command + used, sizeof options->command - used, " %s %s", argument->name, argument->value);
}

/* The sizes that were not asked for give way to those that were. */
static bool check_sizes(bench_options *options, problem *problem) {
    const bool has_least = options->least > 0, has_most = options->most > 0;
    if (!has_least)
        options->least = INT64_C(1) << LEAST_POWER;
    if (!has_most)
        options->most = INT64_C(1) << MOST_POWER;
    if (options->least > options->most && has_least && has_most)
        return fail(problem, "--min is larger than --max");
    if (options->least > options->most)
        *(has_least ? &options->most : &options->least) = has_least ? options->least : options->most;
    return true;
}

bool bench_options_parse(bench_options *options, int argc, char **argv, problem *problem) {
    choices choices;
    memset(options, 0, sizeof *options);
    snprintf(options->command, sizeof options->command, "onepass bench");
    list_choices(&choices);
    for (int at = 1; at < argc;) {
        if (strcmp(argv[at], "--help") == 0) {
            options->help = true;
            return true;
        }
        const argument argument = argument_at(argc, argv, at);
        if (!is_option(argument.name))
            return fail(problem,
                        "bench has no option \"%s\"; it has --device, --loss, --type, --mode, --min, --max, --threads, "
                        "--json, --plot and --help",
                        argv[at]);
        if (!argument.value)
            return fail(problem, "%s needs a value; see \"onepass bench --help\"", argument.name);
        if (!take_value(&argument, &choices, options, problem))
            return false;
        remember(options, &argument);
        at += argument.taken;
    }
    take_choices(&choices, options);
    if (options->json && options->plot && strcmp(options->json, options->plot) == 0)
        return fail(problem, "--json and --plot name the same file, %s", options->json);
    return check_sizes(options, problem);
}
