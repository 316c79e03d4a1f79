/*
 * The golden file holds the bits of known results: a hash for each group of the
 * lists of cases and each loss, and a few values in full. Every machine,
 * instruction set and version must reproduce it; it changes only with the order
 * of summation or the mathematics, in a commit that says so.
 *
 *     golden --write FILE
 *     golden --check FILE
 *     golden --check FILE PART/PARTS    a share of the groups, for emulators: some
 *                                       of every loss, in both compute types;
 *                                       else ONEPASS_TEST_SHARE may name one
 *
 * With ONEPASS_ISA set, --check first makes sure that this instruction set is
 * here (or skips), and then that it is the one in use.
 */
#define _POSIX_C_SOURCE 200809L
#include "cases.h"
#include "check.h"
#include "oracle.h"
#include "row_case.h"
#include "vector_case.h"

#include <sys/wait.h>
#include <unistd.h>

/* ---------------------------------------------------------------- lines -- */

enum {
    LINES = 1024,
    NAME = 64
};

typedef struct golden_line {
    char name[NAME];
    uint64_t bits;
} golden_line;

typedef struct golden_lines {
    golden_line line[LINES];
    int count;
} golden_lines;

static golden_line *find_line(golden_lines *lines, const char *name) {
    for (int i = 0; i < lines->count; i++) {
        if (strcmp(lines->line[i].name, name) == 0) {
            return &lines->line[i];
        }
    }
    return NULL;
}

static void add_line(golden_lines *lines, const char *name, uint64_t bits) {
    if (lines->count == LINES || strlen(name) >= NAME || find_line(lines, name)) {
        printf("golden line \"%s\": one too many, too long, or there twice\n", name);
        exit(1);
    }
    golden_line *line = &lines->line[lines->count++];
    strcpy(line->name, name);
    line->bits = bits;
}

/* -------------------------------------------------------------- hashing -- */

/* 64-bit FNV-1a over the elements' bytes, lowest first, in row-major order. */
static uint64_t hash_tensor(uint64_t hash, const onepass_tensor *tensor) {
    int64_t count = 1;
    for (int d = 0; d < tensor->ndim; d++) {
        count *= tensor->shape[d];
    }
    const size_t size = oracle_size(tensor->dtype);
    for (int64_t i = 0; i < count; i++) {
        const int64_t offset = oracle_offset(tensor, tensor->ndim, tensor->shape, i);
        uint64_t bits = oracle_load_bits(tensor->dtype, (const char *)tensor->data + offset * (int64_t)size);
        for (size_t byte = 0; byte < size; byte++) {
            hash = (hash ^ (bits & 0xff)) * UINT64_C(0x100000001b3);
            bits >>= 8;
        }
    }
    return hash;
}

static const uint64_t hash_begin = UINT64_C(0xcbf29ce484222325);

static uint64_t hash_case(uint64_t hash, const test_case *c) {
    prepared_case *prepared = case_prepare(c);
    const onepass_call *call = &prepared->call;
    char text[512];
    case_describe(c, text, sizeof text);
    CHECK_OK(onepass_run(call), text);
    if (call->value) {
        hash = hash_tensor(hash, call->value);
    }
    for (int which = 0; which < ORACLE_OPERANDS; which++) {
        if (call->gradient[which]) {
            hash = hash_tensor(hash, call->gradient[which]);
        }
    }
    case_free(prepared);
    return hash;
}

/* --------------------------------------------------------------- shares -- */

/* Part number `part`, from 1 on, of so many. The parts of a number together are all groups. */
typedef struct share {
    int part, parts;
} share;

static const share everything = {1, 1};

/* Reads "1/2"; 0 if it is nothing like that. */
static int read_share(const char *text, share *found) {
    char after;
    return sscanf(text, "%d/%d%c", &found->part, &found->parts, &after) == 2 && found->part >= 1 &&
           found->part <= found->parts;
}

/* A part has the types of every loss, which are in float and in double and take little time. In the other groups the
 * parts take turns, each loss beginning with the next one: so a part has of every group some losses. */
static int is_in_share(int loss, int index, const char *group, share wanted) {
    return strcmp(group, "types") == 0 || (loss + index) % wanted.parts == wanted.part - 1;
}

/* --------------------------------------------------------------- groups -- */

/* The list holds a loss's groups, and each of them, in one piece. */
static void add_groups(golden_lines *lines, share wanted) {
    size_t count;
    const test_case *cases = case_list(&count);
    int losses = 0;
    for (size_t i = 0; i < count; losses++) {
        const char *loss = cases[i].loss;
        int groups = 0, computed[2] = {0}; /* in float, in double */
        for (; i < count && cases[i].loss == loss; groups++) {
            const char *group = cases[i].group;
            const int taken = is_in_share(losses, groups, group, wanted);
            uint64_t hash = hash_begin;
            for (; i < count && cases[i].group == group && cases[i].loss == loss; i++) {
                if (taken) {
                    hash = hash_case(hash, &cases[i]);
                    computed[case_in_double(&cases[i]) ? 1 : 0]++;
                }
            }
            if (taken) {
                char name[NAME];
                snprintf(name, sizeof name, "%s %s", group, loss);
                add_line(lines, name, hash);
            }
        }
        CHECK(computed[0] && computed[1], "%s: expected cases in float and in double, got %d and %d", loss, computed[0],
              computed[1]);
    }
}

/* The same of losses over rows. */
static uint64_t hash_rows(uint64_t hash, const row_case *c) {
    prepared_rows *prepared = row_case_prepare(c);
    char text[512];
    row_case_describe(c, text, sizeof text);
    CHECK_OK(onepass_run(&prepared->call), text);
    hash = row_case_hash(hash, prepared);
    row_case_free(prepared);
    return hash;
}

static void add_rows(golden_lines *lines, share wanted) {
    size_t count;
    const row_case *cases = row_case_list(&count);
    int losses = 0;
    for (size_t i = 0; i < count; losses++) {
        const char *loss = cases[i].loss;
        for (int groups = 0; i < count && cases[i].loss == loss; groups++) {
            const char *group = cases[i].group;
            const int taken = is_in_share(losses, groups, group, wanted);
            uint64_t hash = hash_begin;
            for (; i < count && cases[i].group == group && cases[i].loss == loss; i++) {
                hash = taken ? hash_rows(hash, &cases[i]) : hash;
            }
            if (taken) {
                char name[NAME];
                snprintf(name, sizeof name, "rows %s %s", group, loss);
                add_line(lines, name, hash);
            }
        }
    }
}

/* The same of vector losses. */
static uint64_t hash_vectors(uint64_t hash, const vector_case *c) {
    prepared_vectors *prepared = vector_case_prepare(c);
    char text[512];
    vector_case_describe(c, text, sizeof text);
    CHECK_OK(onepass_run(&prepared->call), text);
    hash = vector_case_hash(hash, prepared);
    vector_case_free(prepared);
    return hash;
}

static void add_vectors(golden_lines *lines, share wanted) {
    size_t count;
    const vector_case *cases = vector_case_list(&count);
    int losses = 0;
    for (size_t i = 0; i < count; losses++) {
        const char *loss = cases[i].loss;
        for (int groups = 0; i < count && cases[i].loss == loss; groups++) {
            const char *group = cases[i].group;
            const int taken = is_in_share(losses, groups, group, wanted);
            uint64_t hash = hash_begin;
            for (; i < count && cases[i].group == group && cases[i].loss == loss; i++) {
                hash = taken ? hash_vectors(hash, &cases[i]) : hash;
            }
            if (taken) {
                char name[NAME];
                snprintf(name, sizeof name, "vectors %s %s", group, loss);
                add_line(lines, name, hash);
            }
        }
    }
}

/* Larger inputs, on as many threads as the library takes by itself. */
static void add_large(golden_lines *lines) {
    for (int i = 0; oracle_loss_at(i); i++) {
        if (!case_loss_is_swept(oracle_loss_at(i)->name)) {
            continue;
        }
        for (int32_t dtype = ONEPASS_F16; dtype <= ONEPASS_F64; dtype++) {
            const test_case c = {.group = "large",
                                 .loss = oracle_loss_at(i)->name,
                                 .prediction = dtype,
                                 .target = dtype,
                                 .gradient = dtype,
                                 .upstream_dtype = dtype,
                                 .value = ONEPASS_F64,
                                 .reduction = ONEPASS_MEAN,
                                 .wanted = WANT_VALUE | WANT_PREDICTION,
                                 .layout = LAYOUT_DENSE,
                                 .rows = 1,
                                 .columns = 1000 * 1000 + 1,
                                 .data = DATA_UNIFORM,
                                 .seed = 4};
            char name[NAME];
            snprintf(name, sizeof name, "large %s %s", c.loss, oracle_dtype_name(dtype));
            add_line(lines, name, hash_case(hash_begin, &c));
        }
    }
}

/* Simple numbers: the first operand goes from -2 to 2 by quarters around and around, the second is -1, 1, -1, ... Where
 * they are to be positive, probabilities or signs they are made so. */
static float simple_number(oracle_domain domain, int operand, int i) {
    const float plain = operand == 0 ? (float)(i % 17 - 8) / 4 : i % 2 ? 1.0f : -1.0f;
    switch (domain) {
    case ORACLE_POSITIVE:
        return (float)(1 + (i + 5 * operand) % 13) / 8;
    case ORACLE_PROBABILITY:
        return (float)((i + 3 * operand) % 17) / 16;
    case ORACLE_SIGN:
        return i % 3 ? 1.0f : -1.0f;
    default:
        return plain;
    }
}

/* Inputs whose values stand in the file in full, so that a difference can be read. Of a share all but the largest, of
 * which the calls take an emulator longer than the groups. */
static void add_values(golden_lines *lines, share wanted) {
    enum {
        MOST = 100000
    };
    static float number[ORACLE_OPERANDS][MOST];
    static const int64_t counts[] = {1, 100, 1025, MOST};
    static const char *const reductions[] = {"mean", "sum"};
    for (int i = 0; oracle_loss_at(i); i++) {
        const oracle_loss *loss = oracle_loss_at(i);
        for (int j = 0; j < loss->operand_count; j++) {
            for (int n = 0; n < MOST; n++) {
                number[j][n] = simple_number(loss->domain[j], j, n);
            }
        }
        for (size_t j = 0; j < sizeof counts / sizeof counts[0] && (counts[j] < MOST || wanted.parts == 1); j++) {
            for (int reduction = ONEPASS_MEAN; reduction <= ONEPASS_SUM; reduction++) {
                double value = -1;
                const onepass_tensor v = {&value, ONEPASS_F64, 0, NULL, NULL};
                onepass_tensor in[ORACLE_OPERANDS];
                onepass_call call = {.size = sizeof call, .loss = loss->name, .reduction = reduction, .value = &v};
                for (int k = 0; k < loss->operand_count; k++) {
                    in[k] = (onepass_tensor){number[k], ONEPASS_F32, 1, &counts[j], NULL};
                    call.operand[k] = &in[k];
                }
                char name[NAME];
                snprintf(name, sizeof name, "value %s %s %lld", loss->name, reductions[reduction],
                         (long long)counts[j]);
                CHECK_OK(onepass_run(&call), name);
                add_line(lines, name, oracle_double_bits(value));
            }
        }
    }
}

/* ---------------------------------------------------------------- files -- */

static int read_lines(const char *path, golden_lines *lines) {
    FILE *file = fopen(path, "r");
    if (!file) {
        perror(path);
        return 0;
    }
    char text[2 * NAME];
    while (fgets(text, sizeof text, file)) {
        char *space = strrchr(text, ' ');
        if (text[0] != '#' && space) {
            *space = 0;
            add_line(lines, text, strtoull(space + 1, NULL, 16));
        }
    }
    fclose(file);
    return 1;
}

static int write_lines(const char *path, const golden_lines *lines) {
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        return 0;
    }
    fprintf(
        file,
        "# Written by golden --write. For each group of tests/cases.c, row_case_list.c or vector_case_list.c and each\n"
        "# loss a hash of all outputs' bits; for \"value\" the bits themselves, as double, of the inputs in "
        "golden.c.\n");
    for (int i = 0; i < lines->count; i++) {
        fprintf(file, "%s %016" PRIx64 "\n", lines->line[i].name, lines->line[i].bits);
    }
    return fclose(file) == 0;
}

static void compare_lines(golden_lines *expected, golden_lines *got, int all) {
    for (int i = 0; i < got->count; i++) {
        const golden_line *line = find_line(expected, got->line[i].name);
        if (CHECK(line != NULL, "%s: expected no such line in the file, got %016" PRIx64, got->line[i].name,
                  got->line[i].bits)) {
            CHECK_BITS(line->bits, got->line[i].bits, line->name);
        }
    }
    for (int i = 0; all && i < expected->count; i++) {
        CHECK(find_line(got, expected->line[i].name) != NULL, "%s: expected %016" PRIx64 ", got no such line",
              expected->line[i].name, expected->line[i].bits);
    }
}

/* ----------------------------------------------------- instruction sets -- */

static int has_word(const char *words, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = strstr(words, word); at; at = strstr(at + 1, word)) {
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || !at[length])) {
            return 1;
        }
    }
    return 0;
}

/* The library reads ONEPASS_ISA once and refuses a name that is not there, so the
 * list of those that are is asked for in a child without the variable. */
static int machine_has(const char *instruction_set) {
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        onepass_machine_info info = {.size = sizeof info};
        unsetenv("ONEPASS_ISA");
        if (onepass_machine(&info) != ONEPASS_OK) {
            _exit(2);
        }
        _exit(has_word(info.instruction_sets, instruction_set) ? 0 : 1);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) > 1) {
        CHECK(0, "expected onepass_machine to list the instruction sets, got a failure");
        return 0;
    }
    return WEXITSTATUS(status) == 0;
}

static void check_instruction_set(const char *forced) {
    onepass_machine_info info = {.size = sizeof info};
    if (CHECK_OK(onepass_machine(&info), "onepass_machine")) {
        printf("instruction set %s of %s\n", info.instruction_set, info.instruction_sets);
        if (forced) {
            CHECK(strcmp(info.instruction_set, forced) == 0, "expected instruction set %s in use, got %s", forced,
                  info.instruction_set);
        }
    }
}

int main(int count, char **arguments) {
    static golden_lines expected, got;
    share wanted = everything;
    const int writes = count == 3 && strcmp(arguments[1], "--write") == 0;
    const char *part = count == 4 ? arguments[3] : writes ? NULL : getenv("ONEPASS_TEST_SHARE");
    const int checks =
        (count == 3 || count == 4) && (!part || read_share(part, &wanted)) && strcmp(arguments[1], "--check") == 0;
    if (!writes && !checks) {
        printf("usage: golden --write FILE | --check FILE [PART/PARTS]\n");
        return 2;
    }
    const char *forced = getenv("ONEPASS_ISA");
    if (forced && !machine_has(forced)) {
        if (check_failed) {
            return check_finish();
        }
        char reason[128];
        snprintf(reason, sizeof reason, "this build or machine has no %s", forced);
        return check_skip(reason);
    }
    check_instruction_set(forced);

    const int quick = checks && check_quick("the large groups");
    add_groups(&got, wanted);
    add_rows(&got, wanted);
    add_vectors(&got, wanted);
    if (wanted.parts > 1) {
        printf("part %d of %d: left out: all but %d groups of losses, and the largest values\n", wanted.part,
               wanted.parts, got.count);
    }
    add_values(&got, wanted);
    if (!quick) {
        add_large(&got);
    }
    if (writes) {
        CHECK(write_lines(arguments[2], &got), "expected to write %s", arguments[2]);
    } else if (CHECK(read_lines(arguments[2], &expected), "expected to read %s", arguments[2])) {
        compare_lines(&expected, &got, !quick && wanted.parts == 1);
    }
    return check_finish();
}
