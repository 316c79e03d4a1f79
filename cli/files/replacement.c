#define _GNU_SOURCE /* mkostemps */
#include "replacement.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ------------------------------------------------------------------------ names -- */

static bool cannot_write(const char *name, int error, problem *problem) {
    return fail(problem, "%s: cannot be written: %s", name, error ? strerror(error) : "no memory");
}

/* The folder that a file of this name is in. */
static char *folder_of(const char *name) {
    const char *slash = strrchr(name, '/');
    return slash ? strndup(name, (size_t)(slash - name) + 1) : strdup(".");
}

/* Where a link leads, so that it is kept and its file is replaced. Where nothing is yet, the folder's own name is found
 * out, so that one file has one name. */
static char *follow(const char *name) {
    char *real = realpath(name, NULL);
    if (real)
        return real;
    const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
    char *folder = folder_of(name), *real_folder = folder ? realpath(folder, NULL) : NULL;
    free(folder);
    if (!real_folder)
        return strdup(name);
    const size_t size = strlen(real_folder) + strlen(last) + 2;
    char *whole = malloc(size);
    if (whole)
        snprintf(whole, size, "%s/%s", real_folder, last);
    free(real_folder);
    return whole;
}

bool is_one_file(const char *name, const char *other) {
    char *a = follow(name), *b = follow(other);
    const bool are_same = a && b && strcmp(a, b) == 0;
    free(a);
    free(b);
    return are_same;
}

static bool is_folder_writable(const char *name, problem *problem) {
    char *folder = folder_of(name);
    const bool is_writable = folder && access(folder, W_OK | X_OK) == 0;
    const int error = errno;
    free(folder);
    return is_writable || cannot_write(name, error, problem);
}

bool replacement_name(replacement *replacement, const char *name, problem *problem) {
    struct stat now;
    *replacement = (struct replacement){.name = name, .file = -1};
    if (strcmp(name, "-") == 0)
        return fail(problem,
                    "-: a file is renamed to its name when it is complete, and standard output has none; expected "
                    "a file's name to write to");
    if (name[0] == '\0' || name[strlen(name) - 1] == '/')
        return fail(problem, "\"%s\": is not a file's name; expected one to write to", name);
    if (stat(name, &now) == 0 && S_ISDIR(now.st_mode))
        return fail(problem, "%s: is a directory; expected a file's name to write to", name);
    if (stat(name, &now) == 0 && !S_ISREG(now.st_mode))
        return fail(problem, "%s: is not a plain file; expected another name to write to", name);
    replacement->final = follow(name);
    if (!replacement->final)
        return cannot_write(name, 0, problem);
    return is_folder_writable(replacement->final, problem);
}

bool replacement_is_possible(const char *name, problem *problem) {
    replacement replacement;
    const bool is_possible = replacement_name(&replacement, name, problem);
    replacement_drop(&replacement);
    return is_possible;
}

/* ------------------------------------------------------------------------ the part -- */

/* The file may be read by whom the user's umask lets, and not only by the user, as mkstemp would have it. */
static bool open_to_others(int file) {
    const mode_t mask = umask(0);
    umask(mask);
    return fchmod(file, 0666 & ~mask) == 0;
}

bool replacement_make(replacement *replacement, problem *problem) {
    const size_t size = strlen(replacement->final) + sizeof ".XXXXXX.part";
    char *part = malloc(size);
    if (!part)
        return cannot_write(replacement->name, 0, problem);
    snprintf(part, size, "%s.XXXXXX.part", replacement->final);
    replacement->file = mkostemps(part, (int)strlen(".part"), O_CLOEXEC);
    if (replacement->file < 0) {
        cannot_write(replacement->name, errno, problem);
        free(part);
        return false;
    }
    replacement->part = part;
    return open_to_others(replacement->file) || cannot_write(replacement->name, errno, problem);
}

bool replacement_write(replacement *replacement, const void *bytes, size_t count, problem *problem) {
    const char *from = bytes;
    while (count > 0) {
        const ssize_t written = write(replacement->file, from, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return cannot_write(replacement->name, errno, problem);
        from += written;
        count -= (size_t)written;
    }
    return true;
}

/* ------------------------------------------------------------------------- the end -- */

bool replacement_close(replacement *replacement, problem *problem) {
    const int file = replacement->file;
    FILE *stream = replacement->stream;
    replacement->file = -1;
    replacement->stream = NULL;
    errno = 0;
    bool is_written = true;
    if (stream) {
        is_written = !ferror(stream);
        is_written = fclose(stream) == 0 && is_written;
    } else if (file >= 0) {
        is_written = close(file) == 0;
    }
    return is_written || cannot_write(replacement->name, errno ? errno : EIO, problem);
}

bool replacement_rename(replacement *replacement, problem *problem) {
    if (!replacement->part)
        return true;
    if (rename(replacement->part, replacement->final) != 0)
        return cannot_write(replacement->name, errno, problem);
    free(replacement->part);
    replacement->part = NULL;
    return true;
}

void replacement_drop(replacement *replacement) {
    if (replacement->stream)
        fclose(replacement->stream);
    else if (replacement->part && replacement->file >= 0)
        close(replacement->file);
    if (replacement->part)
        unlink(replacement->part);
    free(replacement->part);
    free(replacement->final);
    *replacement = (struct replacement){.file = -1};
}

/* --------------------------------------------------------------------------- text -- */

bool replacement_begin(replacement *replacement, const char *name, problem *problem) {
    bool is_begun = replacement_name(replacement, name, problem) && replacement_make(replacement, problem);
    if (is_begun && !(replacement->stream = fdopen(replacement->file, "w")))
        is_begun = cannot_write(name, errno, problem);
    if (!is_begun)
        replacement_drop(replacement);
    return is_begun;
}

bool replacement_finish(replacement *replacement, problem *problem) {
    const bool is_done = replacement_close(replacement, problem) && replacement_rename(replacement, problem);
    replacement_drop(replacement);
    return is_done;
}
