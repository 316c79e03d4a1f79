#define _GNU_SOURCE /* vasprintf, mkostemps */
#include "replacement.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool cannot_write(int error, problem *problem) {
    return fail(problem, "cannot be written: %s", strerror(error));
}

/* ------------------------------------------------------------------------ names -- */

/* The bytes of a name that say in which folder it is, with the last slash. */
static int folder_bytes(const char *name) {
    const char *slash = strrchr(name, '/');
    return slash ? (int)(slash - name) + 1 : 0;
}

static char *folder_of(const char *name) {
    const int bytes = folder_bytes(name);
    return bytes > 0 ? strndup(name, (size_t)bytes) : strdup(".");
}

/* As printf would write it; null: there is no memory. */
__attribute__((format(printf, 1, 2))) static char *text_of(const char *format, ...) {
    va_list arguments;
    char *text;
    va_start(arguments, format);
    const int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    return length >= 0 ? text : NULL;
}

/* Where the link of this name leads; null: it is none. */
static char *target_of(const char *name) {
    char target[PATH_MAX];
    const ssize_t length = readlink(name, target, sizeof target);
    if (length < 0)
        return NULL;
    const int folder = length > 0 && target[0] == '/' ? 0 : folder_bytes(name);
    return text_of("%.*s%.*s", folder, name, (int)length, target);
}

/* Where a link leads, and one that that leads to, so that they are kept and their file is replaced or made. Null: errno
 * says why there can be none. Names stay relative: in a deep folder the whole one may be too long for any call. */
static char *follow(const char *name) {
    enum {
        MOST_LINKS = 40 /* as in Linux */
    };
    char *path = strdup(name);
    for (int i = 0; path && i < MOST_LINKS; i++) {
        char *target = target_of(path);
        if (!target)
            return path;
        free(path);
        path = target;
    }
    if (path)
        errno = ELOOP;
    free(path);
    return NULL;
}

static bool stat_folder(const char *name, struct stat *found) {
    char *folder = folder_of(name);
    const bool is_found = folder && stat(folder, found) == 0;
    free(folder);
    return is_found;
}

bool is_one_file(const char *name, const char *other) {
    char *a = follow(name), *b = follow(other);
    struct stat folder_a, folder_b;
    const bool are_same = a && b && strcmp(a + folder_bytes(a), b + folder_bytes(b)) == 0 &&
                          stat_folder(a, &folder_a) && stat_folder(b, &folder_b) &&
                          folder_a.st_dev == folder_b.st_dev && folder_a.st_ino == folder_b.st_ino;
    free(a);
    free(b);
    return are_same;
}

static bool is_folder_writable(const char *name) {
    char *folder = folder_of(name);
    const bool is_writable = folder && access(folder, W_OK | X_OK) == 0;
    free(folder);
    return is_writable;
}

/* In a folder such as /tmp everybody may make files, and replace their own. */
static bool may_be_replaced(const char *name, const struct stat *now) {
    struct stat folder;
    const uid_t user = geteuid();
    if (user == 0 || user == now->st_uid || !stat_folder(name, &folder) || !(folder.st_mode & S_ISVTX) ||
        user == folder.st_uid)
        return true;
    errno = EPERM;
    return false;
}

static mode_t mode_of_new_files(void) {
    const mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

bool replacement_name(replacement *replacement, const char *name, problem *problem) {
    struct stat now;
    *replacement = (struct replacement){.name = name, .file = -1};
    if (strcmp(name, "-") == 0)
        return fail(problem, "a file is renamed to its name when it is complete, and standard output has none; "
                             "expected a file's name to write to");
    if (name[0] == '\0' || name[strlen(name) - 1] == '/')
        return fail(problem, "is not a file's name; expected one to write to");
    const bool is_there = stat(name, &now) == 0;
    if (!is_there && errno != ENOENT)
        return cannot_write(errno, problem);
    if (is_there && S_ISDIR(now.st_mode))
        return fail(problem, "is a directory; expected a file's name to write to");
    if (is_there && !S_ISREG(now.st_mode))
        return fail(problem, "is not a plain file; expected another name to write to");
    replacement->mode = is_there ? now.st_mode & 0777 : mode_of_new_files();
    replacement->final = follow(name);
    const bool is_possible = replacement->final && is_folder_writable(replacement->final) &&
                             (!is_there || may_be_replaced(replacement->final, &now));
    return is_possible || cannot_write(errno, problem);
}

/* ------------------------------------------------------------------------ the part -- */

#define SUFFIX ".XXXXXX.part"

/* The name with the suffix. Where that would be too long for a name or for a path, less of the name, but no part of a
 * character. */
static char *name_part(const char *final) {
    char *folder = folder_of(final);
    const long of_name = folder ? pathconf(folder, _PC_NAME_MAX) : -1, of_path = PATH_MAX - 1 - folder_bytes(final);
    free(folder);
    const char *last = final + folder_bytes(final);
    const long room = (of_name >= 0 && of_name < of_path ? of_name : of_path) - (long)strlen(SUFFIX);
    long kept = (long)strlen(last);
    if (kept > room)
        for (kept = room > 0 ? room : 0; kept > 0 && (last[kept] & 0xc0) == 0x80;)
            kept--;
    return text_of("%.*s" SUFFIX, folder_bytes(final) + (int)kept, final);
}

/* Not 0600, as mkostemps has it. A file system without permissions says EPERM, and has none to keep. */
static bool set_mode(const replacement *replacement) {
    return fchmod(replacement->file, replacement->mode) == 0 || errno == EPERM;
}

bool replacement_make(replacement *replacement, problem *problem) {
    char *part = name_part(replacement->final);
    if (!part)
        return cannot_write(ENOMEM, problem);
    replacement->file = mkostemps(part, (int)strlen(strrchr(SUFFIX, '.')), O_CLOEXEC);
    if (replacement->file < 0) {
        cannot_write(errno, problem);
        free(part);
        return false;
    }
    replacement->part = part;
    return set_mode(replacement) || cannot_write(errno, problem);
}

bool replacement_write(replacement *replacement, const void *bytes, size_t count, problem *problem) {
    const char *from = bytes;
    while (count > 0) {
        const ssize_t written = write(replacement->file, from, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return cannot_write(errno, problem);
        from += written;
        count -= (size_t)written;
    }
    return true;
}

/* ------------------------------------------------------------------------- the end -- */

/* Until then a crash of the machine could leave the new name with an empty file. */
static bool sync_file(int file) {
    while (fsync(file) != 0)
        if (errno != EINTR)
            return false;
    return true;
}

bool replacement_close(replacement *replacement, problem *problem) {
    const int file = replacement->file;
    replacement->file = -1;
    if (file < 0)
        return true;
    errno = 0;
    bool is_written = sync_file(file);
    const int error = errno;
    is_written = close(file) == 0 && is_written;
    return is_written || cannot_write(error ? error : errno ? errno : EIO, problem);
}

bool replacement_rename(replacement *replacement, problem *problem) {
    if (!replacement->part)
        return true;
    if (rename(replacement->part, replacement->final) != 0)
        return cannot_write(errno, problem);
    free(replacement->part);
    replacement->part = NULL;
    return true;
}

void replacement_drop(replacement *replacement) {
    if (replacement->part && replacement->file >= 0)
        close(replacement->file);
    if (replacement->part)
        unlink(replacement->part);
    free(replacement->part);
    free(replacement->final);
    *replacement = (struct replacement){.file = -1};
}
