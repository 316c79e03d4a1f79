/* One panel of the plot: its axes, its curves and their names. */
#ifndef ONEPASS_CLI_PLOT_PANEL_H
#define ONEPASS_CLI_PLOT_PANEL_H

#include "plot_panels.h"
#include "plot_scale.h"

#include <stdio.h>

/* What all panels share, so that they can be compared at a glance. */
typedef struct axes {
    double top_gbps, step_gbps;
    int power_step;                 /* from tick to tick */
    double least_power, most_power; /* of elements */
    double right;                   /* what the names need beside the curves */
} axes;

enum {
    PLOT_LEFT = 40,  /* for the numbers beside the vertical axis */
    PLOT_ABOVE = 26, /* for a panel's title */
    PLOT_BELOW = 26  /* for the numbers under the horizontal axis */
};

axes axes_make(const panels *panels, double panel_width);

/* In the rectangle from (x, y) on. */
void panel_draw(FILE *file, const panels *panels, const panel *panel, const axes *axes, double x, double y,
                double width, double height);

#endif
