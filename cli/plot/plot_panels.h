/* From points to panels: which points stand in one panel, and which of them make a curve. */
#ifndef ONEPASS_CLI_PLOT_PANELS_H
#define ONEPASS_CLI_PLOT_PANELS_H

#include "record.h"

enum {
    PLOT_MOST_PANELS = 24,
    PLOT_MOST_CURVES = 10, /* the limit among them */
    PLOT_MOST_SIZES = 48
};

typedef struct curve {
    char name[32];
    bool is_limit;
    int points;
    int64_t elements[PLOT_MOST_SIZES]; /* ascending */
    double gbps[PLOT_MOST_SIZES];
} curve;

typedef struct panel {
    char title[96];
    int row, column;
    int curves;
    curve curve[PLOT_MOST_CURVES];
} panel;

/* With several contenders a panel is a loss, a type and a mode, and the curves are the contenders. With one, a panel is
 * a type and a mode, and the curves are the losses. Modes are columns. */
typedef struct panels {
    bool by_contender;
    int count, rows, columns;
    panel panel[PLOT_MOST_PANELS];
    int64_t least_elements, most_elements;
    double most_gbps;
    int names; /* of all curves but the limit, in the order of their colours */
    char name[PLOT_MOST_CURVES][32];
} panels;

bool panels_make(panels *panels, const record *record, problem *problem);

/* Null if there is none. */
const curve *panel_limit(const panel *panel);

/* At this size; a negative number if it has no such point. */
double curve_at(const curve *curve, int64_t elements);

#endif
