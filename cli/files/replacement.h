/* A file that is written beside its name and renamed when it is complete: the name has what it had before, or all of
 * the new file. */
#ifndef ONEPASS_CLI_REPLACEMENT_H
#define ONEPASS_CLI_REPLACEMENT_H

#include "layout.h" /* problem */

#include <sys/types.h>

typedef struct replacement {
    const char *name; /* as it was given, for messages; null: not wanted */
    char *final;      /* the name that it will have: where links lead */
    char *part;       /* the name that it has meanwhile; null: there is no file */
    mode_t mode;      /* of the file that it replaces, or of new ones */
    int file;         /* descriptor; -1: not open */
} replacement;

/* Looks whether there can be a file of this name, without making one. */
bool replacement_name(replacement *replacement, const char *name, problem *problem);

/* Makes the part; writes to it and says what is wrong. */
bool replacement_make(replacement *replacement, problem *problem);
bool replacement_write(replacement *replacement, const void *bytes, size_t count, problem *problem);

/* To close all of several before the first is renamed lets a disk that is full at the last moment change nothing. What
 * is closed is on the disk. */
bool replacement_close(replacement *replacement, problem *problem);
bool replacement_rename(replacement *replacement, problem *problem);

/* Takes away what is not complete, and all memory. Also for one that is all zeros. */
void replacement_drop(replacement *replacement);

/* Whether two names, whatever is there now, are those of one file. */
bool is_one_file(const char *name, const char *other);

#endif
