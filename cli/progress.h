/* A bar on a terminal: how far, how fast, how long still. Nothing where standard error is not a terminal. */
#ifndef ONEPASS_CLI_PROGRESS_H
#define ONEPASS_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    bool shown;     /* standard error is a terminal */
    double begun;   /* seconds of a clock that only goes forward */
    double updated; /* when it was last drawn */
    uint64_t total; /* bytes; what else is counted has no rate */
} progress;

double clock_seconds(void);
void progress_begin(progress *progress, uint64_t total_bytes);
void progress_update(progress *progress, uint64_t done_bytes);
void progress_end(progress *progress); /* takes the bar away */

/* Takes away whatever bar stands there, so that a sentence begins a line. For a signal's handler too. */
void progress_wipe(void);

#endif
