#include "spelling.h"

#include <string.h>

enum {
    ANOTHER_WORD = 3 /* characters: so far off nothing is meant */
};

/* How many characters must be inserted, left out or changed to make one word of the other. */
static int distance(const char *a, const char *b) {
    const size_t length_a = strlen(a), length_b = strlen(b);
    int row[LONGEST_NAME + 1];
    if (length_a > LONGEST_NAME || length_b > LONGEST_NAME)
        return LONGEST_NAME;
    for (size_t j = 0; j <= length_b; j++)
        row[j] = (int)j;
    for (size_t i = 1; i <= length_a; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= length_b; j++) {
            const int changed = diagonal + (a[i - 1] != b[j - 1]);
            const int fewer = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = changed < fewer ? changed : fewer;
        }
    }
    return row[length_b];
}

void compare_spelling(spelling *spelling, const char *name) {
    const int off = distance(spelling->given, name), most = spelling->nearest ? spelling->off : ANOTHER_WORD;
    if (off < most && off < (int)strlen(name)) {
        spelling->off = off;
        spelling->nearest = name;
    }
}
