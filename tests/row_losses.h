/*
 * The losses over rows as the catalogue has them, for tests that go through them or draw one: a loss that is added to
 * src/row_losses.def is in all of these by itself. A header of static functions, like check.h.
 */
#ifndef ONEPASS_TESTS_ROW_LOSSES_H
#define ONEPASS_TESTS_ROW_LOSSES_H

#include "onepass.h"

#include <stdbool.h>

static inline bool row_loss_has_labels(const char *loss) {
    return onepass_loss_named(loss)->over_rows == ONEPASS_CLASS_INDEX;
}

static inline int row_loss_count(void) {
    int count = 0;
    while (onepass_row_loss_at(count))
        count++;
    return count;
}

/* Those of a class index and a softmax, by index from 0; null beyond the last. */
static inline const char *label_loss_at(int index) {
    for (int i = 0; onepass_row_loss_at(i); i++) {
        const onepass_loss_info *info = onepass_row_loss_at(i);
        if (info->over_rows == ONEPASS_CLASS_INDEX && info->has_log_sum_exp && index-- == 0)
            return info->name;
    }
    return NULL;
}

static inline int label_loss_count(void) {
    int count = 0;
    while (label_loss_at(count))
        count++;
    return count;
}

/* One of these in turn, by a case's number. A turn is not divisible by 2 or 3: every loss meets what a test has for
 * every second, third or fourth case. */
static inline const char *label_loss_in_turn(uint64_t number) {
    const int count = label_loss_count();
    int turn = count;
    while (turn % 2 == 0 || turn % 3 == 0)
        turn++;
    return label_loss_at((int)(number % (uint64_t)turn) % count);
}

/* The index of a loss, one of `count` and one more having been drawn: cross_entropy, the first, twice as often as the
 * others. */
static inline int twice_the_first(int64_t drawn) {
    return drawn > 0 ? (int)drawn - 1 : 0;
}

#endif
