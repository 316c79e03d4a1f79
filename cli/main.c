/* onepass: losses of files, and what the library and this machine can do. Each command has a file of its own. */
#include "operands.h"
#include "spelling.h"
#include "tool.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {{"list", list_command}, {"info", info_command}, {"merge", merge_command}};

enum {
    COMMANDS = sizeof commands / sizeof *commands
};

/* As other libraries might have called it: "MSE", "l1_loss", "HuberLoss". */
static void plain_word(const char *given, char word[LONGEST_NAME + 2]) {
    static const char *const endings[] = {"_loss", "loss"};
    size_t length = 0;
    for (; length <= LONGEST_NAME && given[length]; length++)
        word[length] = (char)tolower((unsigned char)given[length]);
    word[length] = '\0';
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t ending = strlen(endings[i]);
        if (length > ending && strcmp(word + length - ending, endings[i]) == 0)
            word[length -= ending] = '\0';
    }
}

static int complain_of_command(const char *name) {
    const onepass_loss_info *loss;
    char word[LONGEST_NAME + 2];
    plain_word(name, word);
    spelling spelling = {.given = word};
    for (int32_t i = 0; (loss = any_loss_at(i)) != NULL; i++)
        compare_spelling(&spelling, loss->name);
    for (int i = 0; i < COMMANDS; i++)
        compare_spelling(&spelling, commands[i].name);
    if (name[0] == '-')
        return complain(WRONG, "%s: there is no such option here; expected a loss or a command first (onepass --help)",
                        name);
    if (spelling.nearest)
        return complain(WRONG, "\"%s\" is neither a loss nor a command; did you mean \"%s\"?", name, spelling.nearest);
    return complain(WRONG, "\"%s\" is neither a loss (onepass list names them) nor a command (list, info, merge)",
                    name);
}

static bool asks_for_help(const char *word) {
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

int main(int argc, char **argv) {
    if (open_standard_streams() != RIGHT)
        return FAILED;
    if (argc < 2) {
        print_usage(true);
        fputs("onepass --help tells more.\n", stderr);
        return WRONG;
    }
    if (asks_for_help(argv[1])) {
        if (argc == 2) {
            print_help();
            return close_output();
        }
        if (argc > 3)
            return complain(WRONG, "%s: onepass %s takes a loss or a command, and nothing else", argv[3], argv[1]);
        static char help[] = "--help"; /* of what it stands before, as if it stood behind it */
        argv[1] = argv[2];
        argv[2] = help;
    }
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        if (argc > 2)
            return complain(WRONG, "%s: onepass %s takes nothing else", argv[2], name);
        printf("onepass %s\n", onepass_version_text());
        return close_output();
    }
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(name, commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    const onepass_loss_info *loss = onepass_loss_named(name);
    return loss ? loss_command(loss, argc - 1, argv + 1) : complain_of_command(name);
}
