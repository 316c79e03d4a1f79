/* Where names can stand: beside the ends of curves, and on a curve. */
#ifndef ONEPASS_CLI_PLOT_LABELS_H
#define ONEPASS_CLI_PLOT_LABELS_H

#include <stdbool.h>

enum {
    LABELS_MOST = 16
};

typedef struct label {
    double wanted; /* where it would like to be */
    double place;  /* where it is */
    int curve;     /* whose it is */
} label;

/* Orders the labels by where they would like to be, and moves them as little as it takes (by the sum of squares) for
 * them to be `gap` apart and within [top, bottom]. */
void push_apart(label *labels, int count, double gap, double top, double bottom);

/* A curve in places of the picture, from left to right. */
typedef struct line {
    int points;
    const double *x, *y;
} line;

/* The middle of a box on or under `on` that is as far from all lines as can be, itself among them. */
typedef struct box {
    double x, y, width, height;
} box;

/* Chooses x and y, the box's middle, within the borders. False if there is no line to stand on. */
bool find_room(box *box, const line *on, const line *lines, int count, double left, double right, double top,
               double bottom);

#endif
