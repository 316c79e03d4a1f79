/* What a word that nobody knows may have been meant to be. */
#ifndef ONEPASS_CLI_SPELLING_H
#define ONEPASS_CLI_SPELLING_H

enum {
    LONGEST_NAME = 64 /* characters of an option, a loss or a command */
};

typedef struct spelling {
    const char *given;
    const char *nearest; /* of the names that it was compared with; null: none is near */
    int off;             /* by so many characters */
} spelling;

void compare_spelling(spelling *spelling, const char *name);

#endif
