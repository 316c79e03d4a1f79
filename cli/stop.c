#include "progress.h"
#include "stop.h"
#include "tool.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t wanted;

/* Those that would end the tool in the middle: from the keyboard, from who wants it gone, from a reader of its messages
 * who has gone, and from a limit on its time. */
static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU};
enum {
    ENDS = sizeof ends / sizeof *ends
};
static struct sigaction former[ENDS];

/* Kept simple for the handler: set before a window is used, cleared after. */
static struct {
    const char *volatile path;
    const char *volatile begin;
    volatile size_t bytes;
} windows[STOP_WINDOWS];
static const char *volatile files[STOP_FILES];

static void remember(int number) {
    wanted = number;
}

/* Only what may be called in a handler. */
static void say(const char *text) {
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        _exit(WRONG);
}

static void remove_files(void) {
    for (int i = 0; i < STOP_FILES; i++)
        if (files[i])
            unlink(files[i]);
}

static void end_for_lost_file(int number, siginfo_t *info, void *context) {
    (void)context;
    const char *path = NULL, *at = info->si_addr;
    for (int i = 0; i < STOP_WINDOWS; i++)
        if (windows[i].path && at >= windows[i].begin && at < windows[i].begin + windows[i].bytes)
            path = windows[i].path;
    if (!path) { /* not a file of ours: a mistake of the tool, which a core file tells more about */
        signal(number, SIG_DFL);
        return;
    }
    remove_files();
    progress_wipe();
    say("onepass: ");
    say(path);
    say(": was cut short while it was read, or its disk failed\n");
    _exit(WRONG);
}

void stop_prepare(void) {
    struct sigaction action = {.sa_handler = remember};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < ENDS; i++)
        if (sigaction(ends[i], NULL, &former[i]) == 0 && former[i].sa_handler != SIG_IGN) /* as nohup wants it */
            sigaction(ends[i], &action, NULL);
    action = (struct sigaction){.sa_sigaction = end_for_lost_file, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
    signal(SIGXFSZ, SIG_IGN); /* a file that gets too large is an error of write() then */
    atexit(remove_files);     /* OpenMP's library ends the program where it cannot have its threads */
}

bool stop_wanted(void) {
    return wanted != 0;
}

void stop_finish(void) {
    for (int i = 0; i < ENDS; i++)
        sigaction(ends[i], &former[i], NULL);
    if (wanted != 0)
        raise(wanted);
}

void stop_knows_window(int index, const char *path, const void *address, size_t bytes) {
    windows[index].path = NULL;
    windows[index].begin = address;
    windows[index].bytes = bytes;
    windows[index].path = path;
}

void stop_knows_file(int index, const char *path) {
    files[index] = path;
}
