/* The whole picture: a title, the grid of panels, and how it came about. */
#include "plot.h"
#include "plot_panel.h"
#include "replacement.h"
#include "svg.h"

#include <stdlib.h>
#include <string.h>

/* Pixels, as they are where the picture is shown 800 wide. */
enum {
    WIDTH = 800,
    MARGIN = 20,
    BETWEEN = 14, /* columns */
    TITLE = 38,   /* its baseline */
    LINE = 19,
    PANEL_HEIGHT = 208,
    LONE_HEIGHT = 380, /* of a panel that has a row for itself */
    FOOT = 30,
    LETTERS = 106 /* of small text that fit into a line */
};

/* -------------------------------------------------------------------------- words -- */

static void append(char *text, size_t size, const char *between, const char *more) {
    const size_t used = strlen(text);
    if (more[0])
        snprintf(text + used, size - used, "%s%s", used ? between : "", more);
}

/* Where and when it was measured. */
static void describe_run(char *text, size_t size, const record *record) {
    char threads[32] = "", date[16];
    text[0] = '\0';
    append(text, size, "", record->hardware);
    if (record->threads > 0)
        snprintf(threads, sizeof threads, "%d thread%s", (int)record->threads, record->threads > 1 ? "s" : "");
    append(text, size, ", ", threads);
    append(text, size, ", ", record->instruction_set);
    snprintf(date, sizeof date, "%.10s", record->date);
    append(text, size, ", ", date);
}

/* Who took part; in the line of the run if there is room. */
static void describe_versions(char *text, size_t size, char *run, size_t run_size, const record *record) {
    char version[96];
    text[0] = '\0';
    for (int i = 0; i < record->versions; i++) {
        snprintf(version, sizeof version, "%s %s", record->version[i].name, record->version[i].version);
        append(text, size, ", ", version);
    }
    if (strlen(run) + strlen(text) + 2 > LETTERS)
        return;
    append(run, run_size, ", ", text);
    text[0] = '\0';
}

static void describe_limit(char *text, size_t size, const record *record) {
    text[0] = '\0';
    if (record->limit[0])
        snprintf(text, size, "limit: %s; percentages are shares of it", record->limit);
}

/* Writes a text in lines, and returns where the next one stands. A null file only counts. */
static double draw_lines(FILE *file, double y, const char *text) {
    char line[LETTERS + 1];
    while (*text) {
        size_t length = strlen(text);
        if (length > LETTERS) {
            length = LETTERS;
            while (length > 0 && text[length] != ' ')
                length--;
            length = length > 0 ? length : LETTERS;
        }
        snprintf(line, sizeof line, "%.*s", (int)length, text);
        if (file)
            svg_text(file, "muted", MARGIN, y, line);
        y += LINE;
        text += length;
        text += strspn(text, " ");
    }
    return y;
}

/* ------------------------------------------------------------------------- layout -- */

typedef struct picture {
    char title[128], run[512], versions[1280], limit[384];
    panels panels;
    double top; /* where the panels begin */
    double panel_width, panel_height;
    double height;
} picture;

/* Under the title. Returns where they end; a null file only counts. */
static double draw_words(FILE *file, const picture *picture) {
    double y = draw_lines(file, TITLE + LINE + 5, picture->run);
    y = draw_lines(file, y, picture->versions);
    return draw_lines(file, y, picture->limit);
}

static void lay_out(picture *picture, const record *record) {
    const int columns = picture->panels.columns;
    snprintf(picture->title, sizeof picture->title, "onepass beside %s: GB/s by number of elements",
             picture->panels.by_contender ? "others" : "the memory's limit");
    describe_run(picture->run, sizeof picture->run, record);
    describe_versions(picture->versions, sizeof picture->versions, picture->run, sizeof picture->run, record);
    describe_limit(picture->limit, sizeof picture->limit, record);
    picture->top = draw_words(NULL, picture) + 6;
    picture->panel_width = (double)(WIDTH - 2 * MARGIN - (columns - 1) * BETWEEN) / columns;
    picture->panel_height = columns == 1 ? LONE_HEIGHT : PANEL_HEIGHT;
    picture->height = picture->top + picture->panels.rows * picture->panel_height + FOOT;
}

static void draw(FILE *file, const picture *picture, const record *record) {
    const axes axes = axes_make(&picture->panels, picture->panel_width);
    svg_begin(file, WIDTH, picture->height, picture->title, picture->run);
    svg_text(file, "title", MARGIN, TITLE, picture->title);
    draw_words(file, picture);
    for (int i = 0; i < picture->panels.count; i++) {
        const panel *panel = &picture->panels.panel[i];
        panel_draw(file, &picture->panels, panel, &axes, MARGIN + panel->column * (picture->panel_width + BETWEEN),
                   picture->top + panel->row * picture->panel_height, picture->panel_width, picture->panel_height - 8);
    }
    svg_text(file, "foot", MARGIN, picture->height - 14, record->command);
    svg_end(file);
}

bool plot_is_possible(const record *record, problem *problem) {
    panels *panels = malloc(sizeof *panels);
    const bool is_possible = panels ? panels_make(panels, record, problem) : fail(problem, "there is no memory left");
    free(panels);
    return is_possible;
}

bool plot_write(const record *record, const char *name, problem *problem) {
    replacement file;
    picture *picture = malloc(sizeof *picture);
    if (!picture)
        return fail(problem, "there is no memory left");
    bool is_done = panels_make(&picture->panels, record, problem) && replacement_begin(&file, name, problem);
    if (is_done) {
        lay_out(picture, record);
        draw(file.stream, picture, record);
        is_done = replacement_finish(&file, problem);
    }
    free(picture);
    return is_done;
}
