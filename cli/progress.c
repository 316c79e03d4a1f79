#include "progress.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE 0.5 /* seconds before the bar is first drawn: quick work needs none */
#define PAUSE    0.1 /* between two drawings */
#define CELLS    24

double clock_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void progress_begin(progress *progress, uint64_t total_bytes) {
    progress->shown = isatty(STDERR_FILENO);
    progress->begun = clock_seconds();
    progress->updated = progress->begun - PAUSE;
    progress->total = total_bytes;
}

/* "3 s", "2 min 5 s", "1 h 12 min". */
static void write_time(char *text, size_t size, double seconds) {
    const long s = (long)(seconds + 0.5);
    if (s < 60)
        snprintf(text, size, "%ld s", s);
    else if (s < 3600)
        snprintf(text, size, "%ld min %ld s", s / 60, s % 60);
    else
        snprintf(text, size, "%ld h %ld min", s / 3600, s % 3600 / 60);
}

/* Something stands there now. */
static volatile sig_atomic_t drawn;

static int columns(void) {
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/* On a narrow terminal the bar itself is the first to go; a line that wraps could not be taken away. */
static void draw(const progress *progress, uint64_t done_bytes, double seconds) {
    const double share = (double)done_bytes / (double)progress->total;
    const double rate = (double)done_bytes / seconds;
    char left[32], bar[CELLS + 4] = "", text[160];
    write_time(left, sizeof left, rate > 0 ? (double)(progress->total - done_bytes) / rate : 0);
    if (columns() > 68) {
        for (int i = 0; i < CELLS; i++)
            bar[1 + i] = i < (int)(share * CELLS) ? '#' : '.';
        bar[0] = '[';
        memcpy(bar + 1 + CELLS, "] ", 3);
    }
    snprintf(text, sizeof text, "%s%3.0f %%  %.*f %s/s  %s left", bar, 100 * share, rate < 1e9 ? 0 : 1,
             rate < 1e9 ? 1e-6 * rate : 1e-9 * rate, rate < 1e9 ? "MB" : "GB", left);
    drawn = 1;
    fprintf(stderr, "\r%.*s\033[K", columns() - 1, text);
    fflush(stderr);
}

void progress_update(progress *progress, uint64_t done_bytes) {
    if (!progress->shown || progress->total == 0 || done_bytes == 0)
        return;
    const double now = clock_seconds();
    if (now - progress->begun < PATIENCE || now - progress->updated < PAUSE)
        return;
    progress->updated = now;
    draw(progress, done_bytes < progress->total ? done_bytes : progress->total, now - progress->begun);
}

void progress_end(progress *progress) {
    progress->shown = false;
    progress_wipe();
}

void progress_wipe(void) {
    static const char wipe[] = "\r\033[K";
    if (drawn && write(STDERR_FILENO, wipe, sizeof wipe - 1) >= 0)
        drawn = 0;
}
