/* Signals: Ctrl-C and its like are noticed between two pieces of work, so that no output is left half-written; and a
 * file that shrinks while it is mapped ends the tool with a sentence instead of a crash. */
#ifndef ONEPASS_CLI_STOP_H
#define ONEPASS_CLI_STOP_H

#include <stdbool.h>
#include <stddef.h>

/* From here on signals are remembered, until nothing is left that could be half-written. */
void stop_prepare(void);

/* Whether somebody wants the tool to end. */
bool stop_wanted(void);

/* Signals do again what they did before, and one that came meanwhile does it now. */
void stop_finish(void);

/* What a signal's handler has to know, since it must not search for it: windows of files that are mapped, and files
 * to take away. A null path or address ends the entry. */
enum {
    STOP_WINDOWS = 6,
    STOP_FILES = 8
};
void stop_knows_window(int index, const char *path, const void *address, size_t bytes);
void stop_knows_file(int index, const char *path);

#endif
