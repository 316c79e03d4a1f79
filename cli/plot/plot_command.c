/* The command `onepass plot`. */
#include "plot.h"
#include "replacement.h"
#include "stop.h"
#include "tool.h"

#include <stdio.h>
#include <string.h>

static int help(void) {
    fputs("Draws a picture of what \"onepass bench --json\" or bench/compare.py --json has measured: elements against\n"
          "GB/s, with the limit of the memory as a line, as SVG that suits light and dark pages.\n"
          "\n"
          "    onepass bench --json now.json            measure first\n"
          "    onepass plot now.json --out now.svg      then draw\n"
          "\n"
          "options:\n"
          "    --out FILE.svg    the picture; needed\n"
          "    --help            this\n",
          stdout);
    return close_output();
}

typedef struct plot_options {
    const char *in, *out;
    bool help;
} plot_options;

/* After "--" everything is a file's name. */
static int parse(plot_options *options, int argc, char **argv) {
    bool only_files = false;
    for (int i = 1; i < argc; i++) {
        const bool is_option = !only_files && argv[i][0] == '-' && argv[i][1] != '\0';
        if (is_option && strcmp(argv[i], "--") == 0)
            only_files = true;
        else if (is_option && strcmp(argv[i], "--help") == 0)
            options->help = true;
        else if (is_option && strncmp(argv[i], "--out=", 6) == 0)
            options->out = argv[i] + 6;
        else if (is_option && strcmp(argv[i], "--out") == 0 && i + 1 < argc)
            options->out = argv[++i];
        else if (is_option && strcmp(argv[i], "--out") == 0)
            return complain(WRONG, "--out needs the name of a file");
        else if (is_option)
            return complain(WRONG, "plot has no option \"%s\"; it has --out and --help", argv[i]);
        else if (options->in)
            return complain(WRONG, "plot draws one file, not both %s and %s", options->in, argv[i]);
        else
            options->in = argv[i];
    }
    if (!options->help && !options->in)
        return complain(WRONG, "plot needs a file to draw; see \"onepass plot --help\"");
    if (!options->help && (!options->out || !options->out[0]))
        return complain(WRONG, "plot needs a file to draw to: --out FILE.svg");
    return RIGHT;
}

int plot_command(int argc, char **argv) {
    plot_options options = {NULL, NULL, false};
    record record;
    problem problem;
    const int status = parse(&options, argc, argv);
    if (status != RIGHT)
        return status;
    if (options.help)
        return help();
    if (is_one_file(options.in, options.out))
        return complain(WRONG, "%s: is what is to be drawn; expected another file to draw to", options.out);
    if (!record_read(&record, options.in, &problem))
        return complain(WRONG, "%s: %s", options.in, problem.text);
    stop_prepare();
    int done = RIGHT;
    if (!plot_is_possible(&record, &problem))
        done = complain(WRONG, "%s: %s", options.in, problem.text);
    else if (!plot_write(&record, options.out, &problem))
        done = complain(WRONG, "%s: %s", options.out, problem.text);
    stop_finish();
    record_end(&record);
    return done == RIGHT ? close_output() : done;
}
