#include "progress.h"
#include "stop.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int complain(int status, const char *format, ...) {
    char text[1 << 14]; /* for the names of a few files */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    progress_wipe();
    fputs("onepass: ", stderr);
    for (const char *at = text; *at; at++) {
        const unsigned char byte = (unsigned char)*at;
        if (byte < ' ' || byte == 0x7f) /* names may have any, and a terminal would obey */
            fprintf(stderr, "\\x%02x", byte);
        else
            fputc(byte, stderr);
    }
    fputc('\n', stderr);
    return status;
}

int complain_of_library(onepass_status status) {
    const bool is_machine = status == ONEPASS_NO_DEVICE || status == ONEPASS_DEVICE_FAILED ||
                            status == ONEPASS_OUT_OF_MEMORY || status == ONEPASS_INCOMPLETE;
    return complain(is_machine ? FAILED : WRONG, "%s", onepass_message());
}

/* Where a stream is closed, its number goes to a file that can only be used the other way around, so that who needs the
 * stream fails as before. */
int open_standard_streams(void) {
    static const int other_way[] = {[STDIN_FILENO] = O_WRONLY, [STDOUT_FILENO] = O_RDONLY, [STDERR_FILENO] = O_RDONLY};
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
        if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", other_way[stream]) != stream)
            return complain(FAILED, "descriptor %d is closed, and /dev/null cannot take its place: %s", stream,
                            strerror(errno));
    return RIGHT;
}

int close_output(void) {
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return RIGHT;
    if (stop_wanted()) /* the reader has gone, and the signal that says so ends the tool */
        return FAILED;
    return complain(FAILED, "standard output: %s", errno ? strerror(errno) : "could not be written");
}

enum {
    LINE = 118 /* columns */
};

void print_wrapped(int column, const char *text) {
    int at = column;
    while (*text) {
        const int word = (int)strcspn(text, " ");
        if (at > column && at + 1 + word > LINE) {
            printf("\n%*s", column, "");
            at = column;
        } else if (at > column) {
            putchar(' ');
            at++;
        }
        printf("%.*s", word, text);
        at += word;
        text += word + (text[word] == ' ');
    }
}
