/*
 * That a file is on the disk before it gets its name, and keeps its former content when it cannot be brought there.
 * The calls that matter are watched: the build has replacement.c call watched_fsync and watched_rename.
 */
#define _GNU_SOURCE /* mkdtemp */
#include "../cli/files/replacement.h"

#include "test_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---------------------------------------------------------------- what is watched -- */

static struct {
    int errors[2]; /* of the next calls of fsync; 0: it succeeds */
    int syncs, renames;
    ino_t synced; /* the file of the last one that succeeded, and its size then */
    off_t synced_size;
} watched;

int watched_fsync(int file) {
    struct stat now;
    const int call = watched.syncs++, error = call < (int)COUNT(watched.errors) ? watched.errors[call] : 0;
    if (error != 0) {
        errno = error;
        return -1;
    }
    if (!CHECK(fstat(file, &now) == 0, "expected fsync of a file that is open"))
        return -1;
    watched.synced = now.st_ino;
    watched.synced_size = now.st_size;
    return fdatasync(file);
}

int watched_rename(const char *from, const char *to) {
    struct stat now;
    watched.renames++;
    if (CHECK(stat(from, &now) == 0, "%s: expected a file to rename", from))
        CHECK(watched.synced == now.st_ino && watched.synced_size == now.st_size,
              "%s: %lld bytes of %lld were on the disk when it was renamed", to,
              (long long)(watched.synced == now.st_ino ? watched.synced_size : 0), (long long)now.st_size);
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

static void watch(int first_error, int second_error) {
    memset(&watched, 0, sizeof watched);
    watched.errors[0] = first_error;
    watched.errors[1] = second_error;
}

/* ------------------------------------------------------------------------- files -- */

static const char name[] = "replaced.txt", earlier[] = "earlier", content[] = "a new file, longer than the earlier one";

static void write_earlier(void) {
    FILE *file = fopen(name, "w");
    if (CHECK(file != NULL, "expected to write %s", name)) {
        fputs(earlier, file);
        fclose(file);
    }
}

static void check_content(const char *expected) {
    char text[200] = "";
    FILE *file = fopen(name, "r");
    if (CHECK(file != NULL, "expected to read %s", name)) {
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
    }
    CHECK(strcmp(text, expected) == 0, "expected \"%s\", got \"%s\"", expected, text);
}

/* As the outputs of a loss are written. */
static bool replace(problem *problem) {
    replacement file;
    const bool is_done = replacement_name(&file, name, problem) && replacement_make(&file, problem) &&
                         replacement_write(&file, content, strlen(content), problem) &&
                         replacement_close(&file, problem) && replacement_rename(&file, problem);
    replacement_drop(&file);
    return is_done;
}

/* ------------------------------------------------------------------------- tests -- */

static void test_order(void) {
    problem problem = {""};
    write_earlier();
    watch(0, 0);
    CHECK(replace(&problem), "expected a new file, got \"%s\"", problem.text);
    CHECK(watched.syncs == 1 && watched.renames == 1, "expected one fsync and one rename, got %d and %d", watched.syncs,
          watched.renames);
    check_content(content);
}

static void test_failure(void) {
    problem problem = {""};
    write_earlier();
    watch(EIO, 0);
    check_refusal("fsync fails", replace(&problem), &problem, "cannot be written: |nput/output error");
    CHECK(watched.renames == 0, "expected no rename of a file that may not be on the disk");
    check_content(earlier);
}

static void test_interruption(void) {
    problem problem = {""};
    write_earlier();
    watch(EINTR, EINTR);
    CHECK(replace(&problem), "expected a new file, got \"%s\"", problem.text);
    CHECK(watched.syncs == 3, "expected fsync to be tried again until it is done, got %d calls", watched.syncs);
    check_content(content);
}

int main(void) {
    char folder[] = "/tmp/onepass_replacement.XXXXXX";
    if (mkdtemp(folder) == NULL || chdir(folder) != 0)
        return EXIT_FAILURE;
    test_order();
    test_failure();
    test_interruption();
    CHECK(unlink(name) == 0 && rmdir(folder) == 0, "expected nothing else in %s", folder);
    return check_finish();
}
