/* One panel: see plot_panel.h. */
#include "plot_panel.h"
#include "plot_labels.h"
#include "svg.h"

#include <math.h>
#include <string.h>

#define LETTER 7.3 /* the width of one, on average, in text of 13 pixels */
#define GAP    15  /* from name to name, one under the other */

#define ABOVE_ALL 1.08 /* the top of the vertical axis, over the largest number */

enum {
    BESIDE = 14 /* from the end of a curve to its name: room for a leader */
};

/* ------------------------------------------------------------------------ axes -- */

static double text_width(const char *text) {
    return LETTER * (double)strlen(text);
}

axes axes_make(const panels *panels, double panel_width) {
    axes axes = {.least_power = log2((double)panels->least_elements),
                 .most_power = log2((double)panels->most_elements)};
    axes.step_gbps = nice_step(panels->most_gbps, 6);
    axes.top_gbps = panels->most_gbps > 0 ? ABOVE_ALL * panels->most_gbps : axes.step_gbps;
    for (int i = 0; i < panels->names; i++)
        axes.right = fmax(axes.right, BESIDE + text_width(panels->name[i]) + text_width(" 100 %"));
    axes.right = fmin(axes.right, 0.5 * panel_width);
    axes.power_step =
        nice_power_step(axes.least_power, axes.most_power, (int)((panel_width - PLOT_LEFT - axes.right) / 34));
    return axes;
}

/* A panel and where it is. */
typedef struct frame {
    FILE *file;
    const panels *panels;
    const panel *panel;
    const axes *axes;
    scale x, y; /* of log2(elements) and GB/s */
} frame;

static void draw_gbps(const frame *frame) {
    const int ticks = (int)(frame->axes->top_gbps / frame->axes->step_gbps);
    for (int i = 0; i <= ticks; i++) {
        char text[32];
        const double gbps = i * frame->axes->step_gbps, y = scale_place(&frame->y, gbps);
        fprintf(frame->file, "<path class=\"%s\" d=\"M%.1f %.1fH%.1f\"/>\n", i == 0 ? "axis" : "grid", frame->x.begin,
                y, frame->x.end);
        snprintf(text, sizeof text, "%g", gbps);
        svg_text(frame->file, "tick right", frame->x.begin - 7, y + 4, text);
    }
}

/* 2 with its exponent raised. */
static void draw_elements(const frame *frame) {
    const double y = frame->y.begin;
    for (int power = (int)ceil(frame->axes->least_power - 1e-9); power <= frame->axes->most_power + 1e-9;
         power += frame->axes->power_step) {
        const double x = scale_place(&frame->x, power);
        fprintf(frame->file, "<path class=\"axis\" d=\"M%.1f %.1fv4\"/>\n", x, y);
        fprintf(
            frame->file,
            "<text class=\"tick middle\" x=\"%.1f\" y=\"%.1f\">2<tspan dy=\"-5\" font-size=\"9\">%d</tspan></text>\n",
            x, y + 19, power);
    }
    svg_text(frame->file, "tick", frame->x.end + BESIDE, y + 19, "elements");
}

/* ----------------------------------------------------------------------- curves -- */

/* A curve's places in the picture. */
typedef struct places {
    double x[PLOT_MOST_SIZES], y[PLOT_MOST_SIZES];
} places;

static void find_places(const frame *frame, const curve *curve, places *places) {
    for (int i = 0; i < curve->points; i++) {
        places->x[i] = scale_place(&frame->x, log2((double)curve->elements[i]));
        places->y[i] = scale_place(&frame->y, curve->gbps[i]);
    }
}

static void draw_path(FILE *file, const places *places, int points) {
    for (int i = 0; i < points; i++)
        fprintf(file, "%s%.1f %.1f", i == 0 ? "M" : "L", places->x[i], places->y[i]);
}

/* The room below the limit is what can be reached. */
static void draw_limit(const frame *frame, const curve *limit) {
    places places;
    find_places(frame, limit, &places);
    fputs("<path class=\"area\" d=\"", frame->file);
    draw_path(frame->file, &places, limit->points);
    fprintf(frame->file, "V%.1fH%.1fZ\"/>\n<path class=\"limit\" d=\"", frame->y.begin, places.x[0]);
    draw_path(frame->file, &places, limit->points);
    fputs("\"/>\n", frame->file);
}

static int colour_of(const frame *frame, const char *name) {
    int colour = 0;
    while (colour < frame->panels->names && strcmp(frame->panels->name[colour], name) != 0)
        colour++;
    return colour % SVG_COLOURS;
}

/* Each colour has its own shape, around (0, 0). */
static const char *const marker[] = {"M-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0Z",
                                     "M-2.7 -2.7H2.7V2.7H-2.7Z",
                                     "M0 -3.6L3.4 2.5H-3.4Z",
                                     "M0 -3.8L3.8 0L0 3.8L-3.8 0Z",
                                     "M0 3.6L3.4 -2.5H-3.4Z",
                                     "M-4 -1.6H4V1.6H-4Z",
                                     "M-1.6 -4H1.6V4H-1.6Z",
                                     "M-3.4 0L0 -2L3.4 0L0 2Z"};

/* What a pointer over the marker brings up. */
static void draw_explanation(const frame *frame, const curve *curve, int i) {
    const struct curve *limit = panel_limit(frame->panel);
    const double most = limit ? curve_at(limit, curve->elements[i]) : -1;
    fputs("<title>", frame->file);
    svg_escaped(frame->file, curve->name);
    fprintf(frame->file, ", %lld elements: %.4g GB/s", (long long)curve->elements[i], curve->gbps[i]);
    if (most > 0)
        fprintf(frame->file, ", %.0f %% of the limit", 100 * curve->gbps[i] / most);
    fputs("</title>", frame->file);
}

/* Among contenders, the one that the picture is about. */
static bool is_ours(const curve *curve) {
    return strcmp(curve->name, "onepass") == 0;
}

static void draw_curve(const frame *frame, const curve *curve) {
    const int colour = colour_of(frame, curve->name);
    places places;
    find_places(frame, curve, &places);
    fprintf(frame->file, "<path class=\"line c%d%s\" d=\"", colour, is_ours(curve) ? " ours" : "");
    draw_path(frame->file, &places, curve->points);
    fputs("\"/>\n", frame->file);
    for (int i = 0; i < curve->points; i++) {
        fprintf(frame->file, "<path class=\"dot f%d\" transform=\"translate(%.1f %.1f)\" d=\"%s\">", colour,
                places.x[i], places.y[i], marker[colour]);
        draw_explanation(frame, curve, i);
        fputs("</path>\n", frame->file);
    }
}

/* ------------------------------------------------------------------------ names -- */

/* The share of the limit at the curve's end stands beside the name. */
static void draw_name(const frame *frame, const curve *curve, double x, double y) {
    const struct curve *limit = panel_limit(frame->panel);
    const int last = curve->points - 1;
    const double most = limit ? curve_at(limit, curve->elements[last]) : -1;
    fprintf(frame->file, "<text class=\"f%d%s\" x=\"%.1f\" y=\"%.1f\">", colour_of(frame, curve->name),
            is_ours(curve) ? " head" : "", x, y + 4.5);
    svg_escaped(frame->file, curve->name);
    if (most > 0)
        fprintf(frame->file, "<tspan class=\"muted\" font-weight=\"400\" dx=\"6\">%.0f %%</tspan>",
                100 * curve->gbps[last] / most);
    fputs("</text>\n", frame->file);
}

static void draw_leader(const frame *frame, double x, double y, double to_x, double to_y) {
    if (fabs(to_y - y) > 3 || to_x - x > BESIDE + 4)
        fprintf(frame->file, "<path class=\"leader\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", x + 5, y, to_x - 3, to_y);
}

/* Beside the curves' ends, one under the other. */
static void draw_names(const frame *frame) {
    label labels[LABELS_MOST];
    int count = 0;
    for (int i = 0; i < frame->panel->curves; i++) {
        const curve *curve = &frame->panel->curve[i];
        if (!curve->is_limit)
            labels[count++] = (label){scale_place(&frame->y, curve->gbps[curve->points - 1]), 0, i};
    }
    push_apart(labels, count, GAP, frame->y.end + 4, frame->y.begin - 4);
    for (int i = 0; i < count; i++) {
        const curve *curve = &frame->panel->curve[labels[i].curve];
        const double x = scale_place(&frame->x, log2((double)curve->elements[curve->points - 1]));
        draw_leader(frame, x, labels[i].wanted, frame->x.end + BESIDE, labels[i].place);
        draw_name(frame, curve, frame->x.end + BESIDE, labels[i].place);
    }
}

/* On its line, where there is most room. */
static void draw_name_of_limit(const frame *frame, const curve *limit) {
    places places[PLOT_MOST_CURVES];
    line lines[PLOT_MOST_CURVES], on = {0, NULL, NULL};
    for (int i = 0; i < frame->panel->curves; i++) {
        const curve *curve = &frame->panel->curve[i];
        find_places(frame, curve, &places[i]);
        lines[i] = (line){curve->points, places[i].x, places[i].y};
        if (curve == limit)
            on = lines[i];
    }
    box box = {.width = text_width(limit->name) + 4, .height = 13};
    if (find_room(&box, &on, lines, frame->panel->curves, frame->x.begin, frame->x.end, frame->y.end - 4,
                  frame->y.begin))
        svg_text(frame->file, "name middle", box.x, box.y + 4, limit->name);
}

/* ------------------------------------------------------------------------ whole -- */

void panel_draw(FILE *file, const panels *panels, const panel *panel, const axes *axes, double x, double y,
                double width, double height) {
    const frame frame = {.file = file,
                         .panels = panels,
                         .panel = panel,
                         .axes = axes,
                         .x = {axes->least_power, axes->most_power, x + PLOT_LEFT, x + width - axes->right},
                         .y = {0, axes->top_gbps, y + height - PLOT_BELOW, y + PLOT_ABOVE}};
    const curve *limit = panel_limit(panel);
    fprintf(file, "<text class=\"head\" x=\"%.1f\" y=\"%.1f\">", x + PLOT_LEFT, y + 12);
    svg_escaped(file, panel->title);
    fputs("<tspan class=\"muted\" font-weight=\"400\">, GB/s</tspan></text>\n", file);
    draw_gbps(&frame);
    draw_elements(&frame);
    if (limit)
        draw_limit(&frame, limit);
    for (int i = panel->curves - 1; i >= 0; i--) /* the first on top */
        if (!panel->curve[i].is_limit)
            draw_curve(&frame, &panel->curve[i]);
    draw_names(&frame);
    if (limit)
        draw_name_of_limit(&frame, limit);
}
