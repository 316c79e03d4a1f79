#include "input.h"
#include "npy.h"
#include "safetensors.h"
#include "stop.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* More than any header that is read. */
#define MOST_HEAD ((uint64_t)SAFETENSORS_MOST_HEADER + 8)

/* -------------------------------------------------------------------- names -- */

#define SUFFIX ".safetensors:"

/* A path, and the name of a tensor in it if there is one. */
typedef struct place {
    char *path;
    const char *tensor; /* null: none was named */
} place;

static bool is_file(const char *path) {
    struct stat now;
    return stat(path, &now) == 0 && !S_ISDIR(now.st_mode);
}

static char *last_suffix(char *path) {
    char *last = NULL;
    for (char *suffix = path; (suffix = strstr(suffix, SUFFIX)) != NULL; suffix++)
        last = suffix;
    return last;
}

/* Names of folders, files and tensors may all have the suffix in them: the longest path that is a file's goes first,
 * which is the whole argument if there is a file that is really called so. */
static bool read_place(const char *argument, place *place) {
    char *suffix;
    place->path = strdup(argument);
    place->tensor = NULL;
    if (!place->path)
        return false;
    while (!is_file(place->path) && (suffix = last_suffix(place->path)) != NULL) {
        char *colon = suffix + strlen(SUFFIX) - 1;
        *colon = '\0';
        place->tensor = argument + (colon - place->path) + 1;
    }
    if (!is_file(place->path) && access(argument, F_OK) == 0) { /* a folder, to be refused as one */
        strcpy(place->path, argument);
        place->tensor = NULL;
    }
    return true;
}

/* ------------------------------------------------------------------- opening -- */

static const char *temporary_folder(void) {
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

/* A file without a name, which is gone when it is closed. */
static int open_temporary(void) {
    char path[4096];
    snprintf(path, sizeof path, "%s/onepass.XXXXXX", temporary_folder());
    const int file = mkstemp(path);
    if (file >= 0)
        unlink(path);
    return file;
}

static bool write_all(int file, const char *bytes, size_t count) {
    while (count > 0) {
        const ssize_t written = write(file, bytes, count);
        if (written < 0 && errno != EINTR)
            return false;
        if (written > 0) {
            bytes += written;
            count -= (size_t)written;
        }
    }
    return true;
}

/* Of a file that begins so: whether a parser would look any further. */
static bool is_meant(const char *bytes, size_t size, const char *tensor) {
    const unsigned char *head = (const unsigned char *)bytes;
    return safetensors_is_meant(head, size) || (!tensor && npy_is_meant(head, size));
}

/* What comes out of a pipe can be read once and in order only; a copy of it, as often as one likes. Of what its first
 * bytes say cannot be read these are enough: /dev/zero has no end. */
static int copy_pipe(const input *input, const char *tensor, int pipe, int *copy) {
    enum {
        CHUNK = 1 << 20,
        HEAD = 16 /* bytes that tell what it is */
    };
    char *chunk = malloc(CHUNK);
    size_t held = 0;
    uint64_t copied = 0;
    bool goes_on = true;
    int status = RIGHT;
    *copy = chunk ? open_temporary() : -1;
    if (*copy < 0)
        status = complain(FAILED, "%s: is a pipe, and cannot be copied to a temporary file in %s: %s", input->path,
                          temporary_folder(), strerror(errno));
    while (status == RIGHT && goes_on && !stop_wanted()) {
        const ssize_t count = read(pipe, chunk + held, CHUNK - held);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            status = complain(WRONG, "%s: cannot be read: %s", input->path, strerror(errno));
            break;
        }
        held += (size_t)count;
        if (count > 0 && copied == 0 && held < HEAD)
            continue;
        goes_on = count > 0 && (copied > 0 || is_meant(chunk, held, tensor));
        if (!write_all(*copy, chunk, held))
            status = complain(FAILED, "%s: is a pipe, and its temporary copy cannot be written: %s", input->path,
                              strerror(errno));
        copied += held;
        held = 0;
    }
    free(chunk);
    return status;
}

static int look_at_file(input *input, const char *tensor) {
    struct stat stat;
    if (fstat(input->file, &stat) != 0)
        return complain(WRONG, "%s: %s", input->path, strerror(errno));
    if (S_ISDIR(stat.st_mode))
        return complain(WRONG, "%s: is a directory; expected a file", input->path);
    if (!S_ISREG(stat.st_mode)) {
        int copy;
        const int status = copy_pipe(input, tensor, input->file, &copy);
        close(input->file);
        input->file = copy;
        if (status != RIGHT)
            return status;
        if (fstat(input->file, &stat) != 0)
            return complain(WRONG, "%s: %s", input->path, strerror(errno));
    }
    input->size = (uint64_t)stat.st_size;
    input->device = stat.st_dev;
    input->number = stat.st_ino;
    return RIGHT;
}

/* ------------------------------------------------------------------- headers -- */

/* torch.save's archives begin with a file NAME/data.pkl; behind 30 bytes of an archive stands its first file's name,
 * the length of which is at 26. */
static bool is_of_torch(const unsigned char *head, size_t size) {
    static const char name[] = "/data.pkl";
    const size_t ending = sizeof name - 1, end = size < 30 ? 0 : 30 + (size_t)head[26] + 256 * (size_t)head[27];
    return end >= 30 + ending && end <= size && memcmp(head + end - ending, name, ending) == 0;
}

static bool parse(const unsigned char *head, size_t size, uint64_t file_size, const char *tensor, purpose purpose,
                  layout *layout, problem *problem) {
    if (!tensor && npy_is_meant(head, size))
        return npy_parse(head, size, file_size, purpose, layout, problem);
    if (tensor || safetensors_is_meant(head, size))
        return safetensors_parse(head, size, file_size, tensor, purpose, layout, problem);
    const bool is_archive = size >= 4 && memcmp(head, "PK\3\4", 4) == 0;
    if (is_archive && is_of_torch(head, size))
        return fail(problem,
                    "is neither a .npy nor a .safetensors file, but looks like one of torch.save; expected one "
                    "of np.save or of safetensors.torch.save_file");
    if (is_archive)
        return fail(problem,
                    "is neither a .npy nor a .safetensors file but an archive, as .npz files are; expected one of "
                    "the .npy files in it (unzip takes them out)");
    return fail(problem, "is neither a .npy nor a .safetensors file: it begins with neither's magic bytes");
}

static int read_header(input *input, const char *tensor, purpose purpose) {
    problem problem;
    if (input->size == 0)
        return complain(WRONG, "%s: is empty; expected a .npy or a .safetensors file", input->path);
    const uint64_t head_size = input->size < MOST_HEAD ? input->size : MOST_HEAD;
    const unsigned char *head = input_map(input, 0, head_size);
    if (!head)
        return FAILED;
    if (!parse(head, (size_t)head_size, input->size, tensor, purpose, &input->layout, &problem))
        return complain(WRONG, "%s: %s", input->path, problem.text);
    return RIGHT;
}

static int open_standard_input(input *input) {
    const int flags = fcntl(STDIN_FILENO, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_WRONLY)
        return complain(WRONG, "%s: standard input is not open for reading", input->path);
    input->file = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    return input->file >= 0 ? RIGHT : complain(FAILED, "%s: %s", input->path, strerror(errno));
}

static int open_file(input *input, const char *path) {
    input->file = open(path, O_RDONLY | O_CLOEXEC); /* waits for who writes to a pipe */
    if (input->file < 0 && stop_wanted())
        return FAILED;
    return input->file >= 0 ? RIGHT : complain(WRONG, "%s: %s", input->path, strerror(errno));
}

int input_open(input *input, int index, const char *argument, purpose purpose) {
    place place;
    *input = (struct input){.path = argument, .index = index, .file = -1};
    if (!read_place(argument, &place))
        return complain(FAILED, "no memory for a file's name");
    int status = strcmp(argument, "-") == 0 ? open_standard_input(input) : open_file(input, place.path);
    if (status == RIGHT)
        status = look_at_file(input, place.tensor);
    if (status == RIGHT && !stop_wanted())
        status = read_header(input, place.tensor, purpose);
    free(place.path);
    return status;
}

/* ------------------------------------------------------------------- windows -- */

static void unmap(input *input) {
    stop_knows_window(input->index, NULL, NULL, 0);
    if (input->window)
        munmap(input->window, input->window_bytes);
    input->window = NULL;
}

const unsigned char *input_map(input *input, uint64_t begin, uint64_t end) {
    static const unsigned char nothing[1];
    unmap(input);
    if (begin == end)
        return nothing;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), skipped = begin % page;
    input->window_bytes = (size_t)(end - begin + skipped);
    void *window = mmap(NULL, input->window_bytes, PROT_READ, MAP_SHARED, input->file, (off_t)(begin - skipped));
    if (window == MAP_FAILED) {
        complain(FAILED, "%s: cannot be mapped into memory: %s", input->path, strerror(errno));
        return NULL;
    }
    input->window = window;
    stop_knows_window(input->index, input->path, window, input->window_bytes);
    return (unsigned char *)window + skipped;
}

void input_close(input *input) {
    if (input->file < 0)
        return;
    unmap(input);
    close(input->file);
    input->file = -1;
}
