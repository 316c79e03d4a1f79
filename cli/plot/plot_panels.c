/* Points become curves, and curves panels: see plot_panels.h. */
#include "plot_panels.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------- who stands where -- */

static bool is_limit(const point *point) {
    return strcmp(point->series, RECORD_LIMIT) == 0;
}

static bool has_several_contenders(const record *record) {
    const char *first = NULL;
    for (size_t i = 0; i < record->points; i++) {
        if (is_limit(&record->point[i]))
            continue;
        if (first && strcmp(first, record->point[i].series) != 0)
            return true;
        first = record->point[i].series;
    }
    return false;
}

static const char *words_for_mode(const char *mode) {
    return strcmp(mode, "forward") == 0 ? "value alone" : strcmp(mode, "both") == 0 ? "value and gradient" : mode;
}

static void name_panel(char title[96], const point *point, bool by_contender) {
    if (by_contender)
        snprintf(title, 96, "%s, %s, %s", point->loss, point->type, words_for_mode(point->mode));
    else
        snprintf(title, 96, "%s, %s", point->type, words_for_mode(point->mode));
}

/* The place of a text in a list of different ones, to which it is added if it is new; -1 if the list is full. */
static int place_in(char (*list)[64], int *count, int most, const char *text) {
    for (int i = 0; i < *count; i++)
        if (strcmp(list[i], text) == 0)
            return i;
    if (*count == most)
        return -1;
    snprintf(list[*count], 64, "%s", text);
    return (*count)++;
}

static panel *panel_titled(panels *panels, const char *title) {
    for (int i = 0; i < panels->count; i++)
        if (strcmp(panels->panel[i].title, title) == 0)
            return &panels->panel[i];
    if (panels->count == PLOT_MOST_PANELS)
        return NULL;
    panel *panel = &panels->panel[panels->count++];
    snprintf(panel->title, sizeof panel->title, "%s", title);
    return panel;
}

static curve *curve_named(panel *panel, const char *name) {
    for (int i = 0; i < panel->curves; i++)
        if (strcmp(panel->curve[i].name, name) == 0)
            return &panel->curve[i];
    if (panel->curves == PLOT_MOST_CURVES)
        return NULL;
    curve *curve = &panel->curve[panel->curves++];
    snprintf(curve->name, sizeof curve->name, "%s", name);
    return curve;
}

/* In its order. Of two points at the same size the first one stays: a limit that serves several losses is there for
 * each of them. */
static bool add_to_curve(curve *curve, const point *point) {
    int place = curve->points;
    while (place > 0 && curve->elements[place - 1] >= point->elements)
        place--;
    if (place < curve->points && curve->elements[place] == point->elements)
        return true;
    if (curve->points == PLOT_MOST_SIZES)
        return false;
    const size_t after = (size_t)(curve->points - place);
    memmove(&curve->elements[place + 1], &curve->elements[place], after * sizeof *curve->elements);
    memmove(&curve->gbps[place + 1], &curve->gbps[place], after * sizeof *curve->gbps);
    curve->elements[place] = point->elements;
    curve->gbps[place] = point->gbps;
    curve->points++;
    return true;
}

static void widen(panels *panels, const point *point) {
    if (panels->least_elements == 0 || point->elements < panels->least_elements)
        panels->least_elements = point->elements;
    if (point->elements > panels->most_elements)
        panels->most_elements = point->elements;
    if (point->gbps > panels->most_gbps)
        panels->most_gbps = point->gbps;
}

/* ---------------------------------------------------------------- the whole table -- */

/* What decides the grid: the modes, and what else tells panels apart. */
typedef struct grid {
    char mode[PLOT_MOST_PANELS][64], group[PLOT_MOST_PANELS][64];
    int modes, groups;
} grid;

static bool add_point(panels *panels, grid *grid, const point *point) {
    const bool by_contender = panels->by_contender;
    char title[96], group[64];
    name_panel(title, point, by_contender);
    snprintf(group, sizeof group, "%s %s", by_contender ? point->loss : "", point->type);
    const int column = place_in(grid->mode, &grid->modes, PLOT_MOST_PANELS, point->mode),
              row = place_in(grid->group, &grid->groups, PLOT_MOST_PANELS, group);
    panel *panel = column < 0 || row < 0 ? NULL : panel_titled(panels, title);
    if (!panel)
        return false;
    panel->row = row;
    panel->column = column;
    curve *curve = curve_named(panel, is_limit(point) || by_contender ? point->series : point->loss);
    if (!curve || !add_to_curve(curve, point))
        return false;
    curve->is_limit = is_limit(point);
    widen(panels, point);
    return true;
}

/* A colour is a name's in all panels. */
static bool list_names(panels *panels) {
    for (int i = 0; i < panels->count; i++)
        for (int c = 0; c < panels->panel[i].curves; c++) {
            const curve *curve = &panels->panel[i].curve[c];
            int found = 0;
            while (found < panels->names && strcmp(panels->name[found], curve->name) != 0)
                found++;
            if (curve->is_limit || found < panels->names)
                continue;
            if (panels->names == PLOT_MOST_CURVES)
                return false;
            memcpy(panels->name[panels->names++], curve->name, sizeof curve->name);
        }
    return true;
}

/* One mode alone leaves a column free: the others are then laid out two by two. */
static void arrange(panels *panels, const grid *grid) {
    panels->rows = grid->groups;
    panels->columns = grid->modes;
    if (grid->modes > 1 || grid->groups == 1)
        return;
    panels->columns = 2;
    panels->rows = (grid->groups + 1) / 2;
    for (int i = 0; i < panels->count; i++) {
        panels->panel[i].column = panels->panel[i].row % 2;
        panels->panel[i].row /= 2;
    }
}

bool panels_make(panels *panels, const record *record, problem *problem) {
    grid grid = {.modes = 0};
    memset(panels, 0, sizeof *panels);
    panels->by_contender = has_several_contenders(record);
    for (size_t i = 0; i < record->points; i++)
        if (!add_point(panels, &grid, &record->point[i]))
            return fail(problem, "there is too much for one picture: at most %d panels, %d curves in each and %d sizes",
                        PLOT_MOST_PANELS, PLOT_MOST_CURVES, PLOT_MOST_SIZES);
    if (!list_names(panels))
        return fail(problem, "there is too much for one picture: at most %d names of curves", PLOT_MOST_CURVES);
    arrange(panels, &grid);
    return panels->count > 0 || fail(problem, "there are no points to draw");
}

const curve *panel_limit(const panel *panel) {
    for (int i = 0; i < panel->curves; i++)
        if (panel->curve[i].is_limit)
            return &panel->curve[i];
    return NULL;
}

double curve_at(const curve *curve, int64_t elements) {
    for (int i = 0; i < curve->points; i++)
        if (curve->elements[i] == elements)
            return curve->gbps[i];
    return -1;
}
