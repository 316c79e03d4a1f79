/* Rounds and medians: see turns.h. */
#include "turns.h"
#include "progress.h" /* the clock */

#include <stdlib.h>

/* As many rounds as fit into the time, which is what keeps a whole run below a minute or so; five of what takes
 * long. */
#define SECONDS_OF_ROUNDS 0.25
enum {
    LEAST_ROUNDS = 5,
    MOST_ROUNDS = 25
};

static int compare_numbers(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *numbers, int count) {
    qsort(numbers, (size_t)count, sizeof *numbers, compare_numbers);
    return 0.5 * (numbers[(count - 1) / 2] + numbers[count / 2]);
}

bool take_turns(contender *contenders, int count) {
    double seconds[TURNS_MOST_CONTENDERS][MOST_ROUNDS];
    const double end = clock_seconds() + SECONDS_OF_ROUNDS;
    int rounds = 0;
    while (rounds < MOST_ROUNDS && (rounds < LEAST_ROUNDS || clock_seconds() < end)) {
        for (int c = 0; c < count; c++) {
            seconds[c][rounds] = contenders[c].turn(contenders[c].state);
            if (seconds[c][rounds] < 0)
                return false;
        }
        rounds++;
    }
    for (int c = 0; c < count; c++)
        contenders[c].seconds = median(seconds[c], rounds);
    return true;
}
