/* Where names can stand: see plot_labels.h. */
#include "plot_labels.h"

#include <math.h>
#include <stdlib.h>

/* ------------------------------------------------------------------- pushing apart -- */

static int compare_labels(const void *a, const void *b) {
    const label *x = a, *y = b;
    return x->wanted != y->wanted ? (x->wanted > y->wanted) - (x->wanted < y->wanted) : x->curve - y->curve;
}

static double between(double number, double low, double high) {
    return number > high ? high : number < low ? low : number;
}

/* With the gaps taken out, labels in order are numbers that do not fall: the nearest such numbers are means of
 * neighbours that were pooled because they fell. */
void push_apart(label *labels, int count, double gap, double top, double bottom) {
    double mean[LABELS_MOST];
    int size[LABELS_MOST], pools = 0;
    qsort(labels, (size_t)count, sizeof *labels, compare_labels);
    for (int i = 0; i < count; i++) {
        mean[pools] = labels[i].wanted - i * gap;
        size[pools++] = 1;
        while (pools > 1 && mean[pools - 2] > mean[pools - 1]) {
            const int joined = size[pools - 2] + size[pools - 1];
            mean[pools - 2] = (mean[pools - 2] * size[pools - 2] + mean[pools - 1] * size[pools - 1]) / joined;
            size[pools - 2] = joined;
            pools--;
        }
    }
    const double last = fmax(top, bottom - (count - 1) * gap);
    for (int pool = 0, i = 0; pool < pools; pool++)
        for (int k = 0; k < size[pool]; k++, i++)
            labels[i].place = between(mean[pool], top, last) + i * gap;
}

/* --------------------------------------------------------------------- finding room -- */

enum {
    LOOKS = 9, /* at the lines, along a box */
    STEPS = 64 /* of a box, along its line */
};

/* The line's height at x; false where it is not. */
static bool height_at(const line *line, double x, double *y) {
    for (int i = 0; i + 1 < line->points; i++)
        if (x >= line->x[i] && x <= line->x[i + 1]) {
            const double width = line->x[i + 1] - line->x[i], share = width > 0 ? (x - line->x[i]) / width : 0;
            *y = line->y[i] + share * (line->y[i + 1] - line->y[i]);
            return true;
        }
    return false;
}

/* How far the nearest line passes above or below the box; negative if one goes through it. */
static double clearance(const box *box, const line *lines, int count) {
    double nearest = 1e9;
    for (int l = 0; l < count; l++)
        for (int k = 0; k < LOOKS; k++) {
            double y;
            if (height_at(&lines[l], box->x + box->width * ((double)k / (LOOKS - 1) - 0.5), &y))
                nearest = fmin(nearest, fabs(y - box->y) - 0.5 * box->height);
        }
    return nearest;
}

/* How good a place is: a little room is as good as a lot; a name belongs right beside its line, rather above it than
 * below, and rather high up, where fewer lines meet. */
#define ENOUGH 4.0

static double merit(const box *box, const line *lines, int count, double away, bool is_above, double bottom) {
    return fmin(clearance(box, lines, count), ENOUGH) - 0.1 * away + (is_above ? 0.5 : 0) + 0.02 * (bottom - box->y);
}

bool find_room(box *box, const line *on, const line *lines, int count, double left, double right, double top,
               double bottom) {
    double best = -1e9, x = 0, y = 0;
    for (int step = 0; on->points > 1 && step <= STEPS; step++)
        for (int side = -1; side <= 1; side += 2) {
            double height;
            box->x = left + 0.5 * box->width + (right - left - box->width) * step / STEPS;
            if (!height_at(on, box->x, &height))
                continue;
            for (double away = 2; away <= 16; away += 2) {
                box->y = height + side * (0.5 * box->height + away);
                const bool is_inside = box->y - 0.5 * box->height >= top && box->y + 0.5 * box->height <= bottom;
                const double room = merit(box, lines, count, away, side < 0, bottom);
                if (is_inside && room > best) {
                    best = room;
                    x = box->x;
                    y = box->y;
                }
            }
        }
    box->x = x;
    box->y = y;
    return best > -1e9;
}
