/* How things are measured: all contenders in turn, round after round, and the median of each, so that whatever else the
 * machine does meets all of them alike. */
#ifndef ONEPASS_CLI_TURNS_H
#define ONEPASS_CLI_TURNS_H

#include <stdbool.h>

enum {
    TURNS_MOST_CONTENDERS = 48
};

typedef struct contender {
    double (*turn)(void *state); /* returns the seconds of a call; a negative number if it failed */
    void *state;
    double seconds; /* the median of its turns */
} contender;

/* Each has run before. False as soon as one fails. */
bool take_turns(contender *contenders, int count);

#endif
