/* The table and its JSON: see report.h. */
#include "report.h"

#include <math.h>
#include <stdlib.h>

static double as_printed(double figure) {
    return round(figure * 100) / 100;
}

bool row_is_met(const row *row) {
    return row->kind == NO_BAR ||
           (row->kind == AT_LEAST ? as_printed(row->judged) >= row->bar : as_printed(row->judged) <= row->bar);
}

static void print_heading(report *report) {
    if (report->heading)
        printf("\n%-48s %8s %11s %11s       %-32s %10s  %s\n", report->heading, "MB", "ours", "beside", "", "judged",
               "bar");
    report->heading = NULL;
}

void report_add(report *report, const row *row) {
    if (report->count == sizeof report->rows / sizeof *report->rows) {
        fprintf(stderr, "The report is full: give it more rows.\n");
        exit(EXIT_FAILURE);
    }
    report->rows[report->count++] = *row;
    report->missed += !row_is_met(row);

    print_heading(report);
    char bytes[16] = "";
    if (row->bytes > 0)
        snprintf(bytes, sizeof bytes, "%.1f", 1e-6 * row->bytes);
    char judged[24];
    snprintf(judged, sizeof judged, "%.2f%s%s", row->judged, *row->judged_unit ? " " : "", row->judged_unit);
    char bar[32] = "";
    if (row->kind != NO_BAR)
        snprintf(bar, sizeof bar, "%s %.2f  %s", row->kind == AT_LEAST ? ">=" : "<=", row->bar,
                 row_is_met(row) ? "met" : "MISSED");
    printf("  %-46s %8s %11.2f %11.2f %-5s %-32s %10s  %s\n", row->work, bytes, row->ours, row->beside, row->unit,
           row->peer, judged, bar);
    fflush(stdout);
}

void write_json_string(FILE *file, const char *text) {
    fputc('"', file);
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            fprintf(file, "\\%c", *text);
        else if ((unsigned char)*text < ' ')
            fprintf(file, "\\u%04x", *text);
        else
            fputc(*text, file);
    fputc('"', file);
}

/* JSON has no infinity. */
static void write_json_number(FILE *file, double number) {
    if (isfinite(number))
        fprintf(file, "%.6g", number);
    else
        fprintf(file, "null");
}

static void write_json_row(FILE *file, const row *row) {
    const struct {
        const char *key;
        double number;
    } figures[] = {{"bytes", row->bytes}, {"ours", row->ours}, {"beside", row->beside}, {"judged", row->judged}};
    const struct {
        const char *key, *text;
    } words[] = {{"unit", row->unit}, {"peer", row->peer}, {"judged_unit", row->judged_unit}};

    fprintf(file, "{\"work\": ");
    write_json_string(file, row->work);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        fprintf(file, ", \"%s\": ", figures[i].key);
        write_json_number(file, figures[i].number);
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        fprintf(file, ", \"%s\": ", words[i].key);
        write_json_string(file, words[i].text);
    }
    if (row->kind != NO_BAR) {
        fprintf(file, ", \"%s\": ", row->kind == AT_LEAST ? "at_least" : "at_most");
        write_json_number(file, row->bar);
        fprintf(file, ", \"met\": %s", row_is_met(row) ? "true" : "false");
    }
    fprintf(file, "}");
}

void write_json_rows(FILE *file, const report *report) {
    fprintf(file, "[");
    for (int i = 0; i < report->count; i++) {
        fprintf(file, "%s\n    ", i ? "," : "");
        write_json_row(file, &report->rows[i]);
    }
    fprintf(file, "\n  ]");
}
