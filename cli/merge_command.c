/* onepass merge PART...: what the whole call would have printed, out of the states that its parts left. */
#include "answer.h"
#include "option_values.h"
#include "part_file.h"
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int complain_of_whole(const part_file *one, const part_file *other, const char *what, const char *of_one,
                             const char *of_other) {
    return complain(WRONG, "%s and %s: are not parts of one whole: %s is %s in the first and %s in the second",
                    one->path, other->path, what, of_one, of_other);
}

static int compare_numbers(const part_file *one, const part_file *other, const char *what, double of_one,
                           double of_other) {
    char text[2][32];
    if (of_one == of_other)
        return RIGHT;
    snprintf(text[0], sizeof text[0], "%.17g", of_one);
    snprintf(text[1], sizeof text[1], "%.17g", of_other);
    return complain_of_whole(one, other, what, text[0], text[1]);
}

/* What the library would refuse as well, but without the names of files. */
static int compare_wholes(const part_file *one, const part_file *other) {
    const onepass_accumulator_info *a = &one->info, *b = &other->info;
    const onepass_loss_info *loss = onepass_loss_named(a->loss);
    int status = RIGHT;
    if (strcmp(a->loss, b->loss) != 0)
        return complain_of_whole(one, other, "the loss", a->loss, b->loss);
    if (a->reduction != b->reduction)
        return complain_of_whole(one, other, "the reduction", reduction_name(a->reduction),
                                 reduction_name(b->reduction));
    if (a->total != b->total)
        return complain(WRONG, "%s and %s: are not parts of one whole: the first is of %lld %s, the second of %lld",
                        one->path, other->path, (long long)a->total, loss->over_rows ? "rows" : "elements",
                        (long long)b->total);
    for (int32_t i = 0; i < a->parameter_count && status == RIGHT; i++)
        status = compare_numbers(one, other, loss->parameter[i].name, a->parameter[i], b->parameter[i]);
    if (status == RIGHT)
        status = compare_numbers(one, other, "the divisor", a->divisor, b->divisor);
    return status;
}

/* "f32 of shape (3, 4)", or "not there". */
static void describe_input(char *text, size_t size, const part_input *input) {
    char shape[256];
    write_shape(shape, sizeof shape, input->ndim, input->shape);
    if (input->dtype)
        snprintf(text, size, "%s of shape %s", dtype_name(input->dtype), shape);
    else
        snprintf(text, size, "not there");
}

/* The files that parts were computed from; nobody knows those of a program's parts. */
static int compare_origins(const part_file *one, const part_file *other) {
    const onepass_loss_info *loss = onepass_loss_named(one->info.loss);
    if (!one->part.count || !other->part.count)
        return RIGHT;
    for (int k = 0; k < PART_INPUTS; k++) {
        const part_input *a = &one->origin.input[k], *b = &other->origin.input[k];
        char what[64], text[2][300];
        if (a->dtype == b->dtype && a->ndim == b->ndim && memcmp(a->shape, b->shape, sizeof a->shape) == 0)
            continue;
        snprintf(what, sizeof what, "the %s",
                 k < loss->operand_count     ? loss->operand[k]
                 : k == ONEPASS_MAX_OPERANDS ? "weight"
                                             : "mask");
        describe_input(text[0], sizeof text[0], a);
        describe_input(text[1], sizeof text[1], b);
        return complain_of_whole(one, other, what, text[0], text[1]);
    }
    return compare_numbers(one, other, "the axis", one->origin.axis, other->origin.axis);
}

/* Where one part ends and the next one begins, both have seen the same numbers. All parts are there. */
static int compare_places(const part_file *files, int count) {
    const part_file **by_index = calloc((size_t)count, sizeof *by_index);
    int status = by_index ? RIGHT : complain(FAILED, "no memory for %d parts", count);
    for (int i = 0; i < count && by_index && files[i].part.count == count; i++)
        by_index[files[i].part.index - 1] = &files[i];
    for (int i = 1; i < count && status == RIGHT; i++) {
        const part_file *one = by_index[i - 1], *other = by_index[i];
        if (one && other && one->origin.behind != other->origin.before)
            status = complain(WRONG,
                              "%s and %s: are not parts of one whole: where the first ends and the second begins, the "
                              "files that they were computed from have other numbers",
                              one->path, other->path);
    }
    free(by_index);
    return status;
}

static int compare_parts(const part_file *one, const part_file *other) {
    if (one->value_dtype && other->value_dtype && one->value_dtype != other->value_dtype)
        return complain_of_whole(one, other, "the type of the answer", dtype_name(one->value_dtype),
                                 dtype_name(other->value_dtype));
    if (one->part.count && other->part.count && one->part.count != other->part.count)
        return complain(WRONG, "%s and %s: are part %d of %d and part %d of %d; expected parts of one division",
                        one->path, other->path, one->part.index, one->part.count, other->part.index, other->part.count);
    if (one->part.count && one->part.index == other->part.index && one->part.count == other->part.count)
        return complain(WRONG, "%s and %s: are both part %d of %d; expected each part once", one->path, other->path,
                        one->part.index, one->part.count);
    return RIGHT;
}

/* Of parts that are all the tool's own, each is given once; of one division, they are all there if so many are. An
 * empty one is missed too: whoever has not written it may have failed. */
static bool lacks_parts(const part_file *files, int count) {
    for (int i = 0; i < count; i++)
        if (!files[i].part.count)
            return false;
    return count < files[0].part.count;
}

/* "part 3 of 8 is missing", "parts 3, 5 and 7 of 8 are missing". */
static int complain_of_missing(const part_file *files, int count) {
    enum {
        NAMED = 8
    };
    const int32_t parts = files[0].part.count;
    int32_t missing[NAMED] = {0}, found = 0;
    char text[256];
    int used = 0;
    for (int32_t index = 1; index <= parts; index++) {
        bool is_there = false;
        for (int i = 0; i < count && !is_there; i++)
            is_there = files[i].part.index == index;
        if (!is_there && found++ < NAMED)
            missing[found - 1] = index;
    }
    if (parts == 0 || found == 0)
        return complain(WRONG, "parts are missing: %s", onepass_message());
    const int32_t named = found < NAMED ? found : NAMED;
    for (int32_t i = 0; i < named; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%d",
                         i == 0                             ? ""
                         : i == named - 1 && found == named ? " and "
                                                            : ", ",
                         missing[i]);
    if (found > named)
        snprintf(text + used, sizeof text - (size_t)used, " and %d more", found - named);
    return complain(WRONG, "part%s %s of %d %s missing; expected the states of all parts", found == 1 ? "" : "s", text,
                    parts, found == 1 ? "is" : "are");
}

/* All into the first; of types the first that has one says which. */
static int merge_all(part_file *files, int count, number *value) {
    value->dtype = files[0].value_dtype;
    for (int i = 1; i < count; i++) {
        for (int j = 0; j < i; j++) {
            int status = j == 0 ? compare_wholes(&files[0], &files[i]) : RIGHT;
            if (status == RIGHT)
                status = compare_parts(&files[j], &files[i]);
            if (status == RIGHT && j == 0)
                status = compare_origins(&files[0], &files[i]);
            if (status != RIGHT)
                return status;
        }
        if (!value->dtype)
            value->dtype = files[i].value_dtype;
        if (onepass_accumulator_merge(files[0].accumulator, files[i].accumulator) != ONEPASS_OK)
            return complain(WRONG, "%s: does not go with the parts before it: %s (into: those before, from: this one)",
                            files[i].path, onepass_message());
    }
    if (!value->dtype)
        value->dtype = ONEPASS_F32;
    const onepass_tensor tensor = {.data = &value->bits, .dtype = value->dtype};
    const onepass_status status = onepass_accumulator_finish(files[0].accumulator, &tensor);
    if (status == ONEPASS_INCOMPLETE || (status == ONEPASS_OK && lacks_parts(files, count)))
        return complain_of_missing(files, count);
    return status == ONEPASS_OK ? compare_places(files, count) : complain_of_library(status);
}

static int check_standard_input(char **paths, int count) {
    int given = 0;
    for (int i = 0; i < count; i++)
        given += strcmp(paths[i], "-") == 0;
    return given <= 1 ? RIGHT : complain(WRONG, "\"-\" is given %d times; standard input can be read once", given);
}

static int merge_files(char **paths, int count, bool as_hex, bool as_json) {
    part_file *files = calloc((size_t)count, sizeof *files);
    number value = {0};
    int status = files ? check_standard_input(paths, count) : complain(FAILED, "no memory for %d parts", count);
    for (int i = 0; i < count && status == RIGHT; i++)
        status = part_read(&files[i], paths[i]);
    if (status == RIGHT)
        status = merge_all(files, count, &value);
    if (status == RIGHT)
        status = print_merged(&files[0].info, &value, count, as_hex, as_json);
    for (int i = 0; i < count && files; i++)
        onepass_accumulator_destroy(files[i].accumulator);
    free(files);
    return status;
}

static int print_merge_help(void) {
    puts("usage: onepass merge PART... [--hex | --json]\n\n"
         "The answer of a whole out of its parts: files that onepass LOSS ... --part I/N --state FILE wrote, all of "
         "them,\n"
         "in any order. It has the bits of one call over the whole.\n\n"
         "  onepass mse pred.npy target.npy --part 1/2 --state part1.onepass      one half, here\n"
         "  onepass mse pred.npy target.npy --part 2/2 --state part2.onepass      the other, perhaps elsewhere\n"
         "  onepass merge part1.onepass part2.onepass\n");
    return close_output();
}

int merge_command(int argc, char **argv) {
    bool as_hex = false, as_json = false, only_files = false;
    int count = 0;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (only_files || word[0] != '-' || word[1] == '\0')
            argv[count++] = argv[i];
        else if (strcmp(word, "--") == 0)
            only_files = true;
        else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
            return print_merge_help();
        else if (strcmp(word, "--hex") == 0)
            as_hex = true;
        else if (strcmp(word, "--json") == 0)
            as_json = true;
        else
            return complain(WRONG, "%s: there is no such option; onepass merge takes parts, --hex and --json", word);
    }
    if (as_hex && as_json)
        return complain(WRONG, "--hex and --json are given; expected one of them (the JSON object has the bits too)");
    if (count == 0)
        return complain(WRONG, "no part is given; expected files that --state wrote: onepass merge PART...");
    return merge_files(argv, count, as_hex, as_json);
}
