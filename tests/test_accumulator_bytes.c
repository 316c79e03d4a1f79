/*
 * Accumulators as bytes: what they look like, written down once more by hand; that none is believed which was
 * truncated, altered, made by a stranger or by a newer library, or made up with care; and how large they are.
 */
#include "accumulator_bytes.h"
#include "check.h"

enum {
    HEADER = 224,
    NODES = 200, /* where the number of nodes stands */
    TORN = 208,
    WEIGHTS = 216, /* of classes: their fingerprint */
    WHOLE = 2500,
    MOST_BYTES = 4096
};

/* ------------------------------------------------------------- by hand -- */

typedef struct written {
    unsigned char bytes[MOST_BYTES];
    size_t size;
} written;

static void write_byte(written *w, unsigned byte) {
    w->bytes[w->size++] = (unsigned char)byte;
}

static void write_number(written *w, uint64_t number) {
    for (int i = 0; i < 8; i++) {
        write_byte(w, (unsigned)(number >> 8 * i) & 255);
    }
}

static void write_double(written *w, double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    write_number(w, bits);
}

static void write_float(written *w, float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    for (int i = 0; i < 4; i++) {
        write_byte(w, bits >> 8 * i & 255);
    }
}

static void write_text(written *w, const char *text, size_t size) {
    const size_t length = strlen(text);
    for (size_t i = 0; i < size; i++) {
        write_byte(w, i < length ? (unsigned char)text[i] : 0);
    }
}

static uint64_t number_at(const unsigned char *bytes, size_t at) {
    uint64_t number = 0;
    for (size_t i = 0; i < 8; i++) {
        number += (uint64_t)bytes[at + i] << 8 * i;
    }
    return number;
}

static void set_number(unsigned char *bytes, size_t at, uint64_t number) {
    for (size_t i = 0; i < 8; i++) {
        bytes[at + i] = (unsigned char)(number >> 8 * i);
    }
}

/* Size and checksum, as they are for what now stands before them. */
static void seal(unsigned char *bytes, size_t size) {
    set_number(bytes, 16, size);
    uint64_t sum = size - 8;
    for (size_t at = 0; at < size - 8; at += 8) {
        sum ^= number_at(bytes, at);
        sum *= 0x9e3779b97f4a7c15u;
        sum ^= sum >> 32;
    }
    set_number(bytes, size - 8, sum);
}

/* ------------------------------------------------------------ examples -- */

typedef struct example {
    onepass_call call;
    onepass_accumulator *accumulator;
} example;

/* Of 2500 elements the three from 1 on, which are off by 1, 2 and NaN or 3, and tile 1, all of it off by 1. */
static example make_example(int32_t dtype, int weighted, double last) {
    static double p[3], ones[ONEPASS_TILE], zero;
    static float narrow_p[3], narrow_ones[ONEPASS_TILE], narrow_zero;
    const int wide = dtype == ONEPASS_F64;
    const int64_t three = 3, tile = ONEPASS_TILE, same = 0;
    for (int i = 0; i < 3; i++) {
        p[i] = i < 2 ? i + 1 : last;
        narrow_p[i] = (float)p[i];
    }
    for (int i = 0; i < ONEPASS_TILE; i++) {
        ones[i] = narrow_ones[i] = 1;
    }
    example e = {.call = {.size = sizeof e.call, .loss = "mse", .reduction = weighted ? ONEPASS_MEAN : ONEPASS_SUM}};
    CHECK_OK(onepass_accumulator_begin(&e.accumulator, &e.call, WHOLE), "begin");
    onepass_tensor prediction = {wide ? (void *)p : (void *)narrow_p, dtype, 1, &three, NULL};
    onepass_tensor weight = {wide ? (void *)ones : (void *)narrow_ones, dtype, 1, &three, NULL};
    onepass_tensor target = {wide ? (void *)&zero : (void *)&narrow_zero, dtype, 1, &three, &same};
    e.call.operand[0] = &prediction;
    e.call.operand[1] = &target;
    e.call.weight = weighted ? &weight : NULL;
    CHECK_OK(onepass_accumulator_add(e.accumulator, &e.call, 1), "three elements");
    prediction = (onepass_tensor){weight.data, dtype, 1, &tile, NULL};
    weight.shape = target.shape = &tile;
    CHECK_OK(onepass_accumulator_add(e.accumulator, &e.call, ONEPASS_TILE), "tile 1");
    return e;
}

static void write_terms(written *w, int32_t dtype, const double *term) {
    for (int i = 0; i < 3; i++) {
        if (term[i] != term[i]) {
            write_number(w, dtype == ONEPASS_F64 ? 0x7ff8000000000000u : 0x7fc00000u);
            w->size -= dtype == ONEPASS_F64 ? 0 : 4;
        } else if (dtype == ONEPASS_F64) {
            write_double(w, term[i]);
        } else {
            write_float(w, (float)term[i]);
        }
    }
    while (w->size % 8) {
        write_byte(w, 0);
    }
}

static written write_example(int32_t dtype, int weighted, double last) {
    const double term[3] = {1, 4, last * last}, weight[3] = {1, 1, 1};
    written w = {.size = 0};
    write_text(&w, "\x89onepass", 8);
    write_number(&w, 2);
    write_number(&w, 0); /* the size, by seal */
    write_text(&w, "mse", 64);
    write_number(&w, weighted ? 0 : 1);
    write_number(&w, dtype == ONEPASS_F64 ? 4 : 3);
    write_number(&w, weighted ? 5 : 1);
    for (int i = 0; i < 9; i++) {
        write_double(&w, 0); /* parameters and divisor */
    }
    write_number(&w, WHOLE);
    write_number(&w, 0);
    write_number(&w, 1);
    write_number(&w, 1);
    write_number(&w, 0); /* no classes, of which weights could be known */
    write_number(&w, 1); /* the node: tile 1 */
    write_number(&w, 0);
    write_double(&w, ONEPASS_TILE);
    if (weighted) {
        write_double(&w, ONEPASS_TILE);
    }
    write_number(&w, 0); /* the torn tile 0 */
    write_number(&w, 2 + 4 + 8);
    for (int i = 1; i < 16; i++) {
        write_number(&w, 0);
    }
    write_terms(&w, dtype, term);
    if (weighted) {
        write_terms(&w, dtype, weight);
    }
    write_number(&w, 0);
    seal(w.bytes, w.size);
    return w;
}

static void test_layout(void) {
    for (int turn = 0; turn < 8; turn++) {
        const int32_t dtype = turn % 2 ? ONEPASS_F64 : ONEPASS_F32;
        const int weighted = turn / 2 % 2;
        uint64_t nan_bits = 0xfff8000000000123u; /* of another face, which is not shown */
        double last = 3;
        if (turn / 4) {
            memcpy(&last, &nan_bits, sizeof last);
        }
        example e = make_example(dtype, weighted, last);
        const written expected = write_example(dtype, weighted, last);
        size_t size = 0;
        unsigned char *bytes = exported(e.accumulator, &size);
        CHECK(size == expected.size, "expected %zu bytes, got %zu", expected.size, size);
        for (size_t i = 0; i < size && size == expected.size; i++) {
            if (bytes[i] != expected.bytes[i]) {
                CHECK(0, "turn %d: expected %02x at byte %zu, got %02x", turn, expected.bytes[i], i, bytes[i]);
                break;
            }
        }
        e.accumulator = through_bytes(e.accumulator);
        onepass_accumulator_info info = {.size = sizeof info};
        CHECK_OK(onepass_accumulator_describe(e.accumulator, &info), "describe");
        CHECK(info.added == ONEPASS_TILE + 3 && info.missing == 0 && info.missing_end == 1 && info.compute == dtype,
              "expected what was exported, got %lld added", (long long)info.added);
        onepass_accumulator_destroy(e.accumulator);
        free(bytes);
    }
}

/* -------------------------------------------------------------- errors -- */

static void refuse(const unsigned char *bytes, size_t size, onepass_status expected, const char *words) {
    onepass_accumulator *accumulator = NULL;
    unsigned char *exact = malloc(size ? size : 1); /* so that a sanitizer sees who reads on */
    memcpy(exact, bytes, size);
    const onepass_status status = onepass_accumulator_import(&accumulator, exact, size);
    CHECK(status == expected, "%s: expected %s, got %s", words, onepass_status_name(expected),
          onepass_status_name(status));
    CHECK(strstr(onepass_message(), words) != NULL, "expected \"%s\" in \"%s\"", words, onepass_message());
    CHECK(!accumulator, "%s: expected no accumulator", words);
    onepass_accumulator_destroy(accumulator);
    free(exact);
}

static void test_damage(void) {
    const written good = write_example(ONEPASS_F32, 1, 3);
    written bad = good;
    for (size_t size = 0; size < good.size; size++) {
        refuse(good.bytes, size, ONEPASS_INVALID_ARGUMENT, size < 8 ? "do not begin" : "truncated");
    }
    for (size_t i = 0; i < good.size; i++) {
        bad = good;
        bad.bytes[i] ^= (unsigned char)(1 << i % 8);
        const onepass_status status = i / 8 == 1 ? ONEPASS_NOT_SUPPORTED : ONEPASS_INVALID_ARGUMENT;
        refuse(bad.bytes, bad.size, status,
               i < 8        ? "do not begin"
               : i / 8 == 1 ? "version"
               : i / 8 == 2 ? "there are"
                            : "checksum is not");
    }
    for (size_t more = 1; more < 17; more++) {
        refuse(good.bytes, good.size + more, ONEPASS_INVALID_ARGUMENT, "damaged: there are");
    }
    refuse((const unsigned char *)"\x93NUMPY and something else", 25, ONEPASS_INVALID_ARGUMENT, "do not begin");
    bad = good;
    for (unsigned char version = 1; version <= 3; version += 2) {
        char words[16];
        bad.bytes[8] = version;
        seal(bad.bytes, bad.size);
        snprintf(words, sizeof words, "version %d", version);
        refuse(bad.bytes, bad.size, ONEPASS_NOT_SUPPORTED, words);
    }
}

/* A number changed by somebody who knows the checksum. */
static const struct {
    size_t at;
    uint64_t number;
    const char *words;
    int weighted;
} made_up[] = {
    {24, 0x6573736573u, "loss \"sesse\"", 0},
    {24, 0xff, "has more in it", 0},     /* nor text that a message could show */
    {24 + 8, 0x65, "has more in it", 0}, /* behind its end */
    {24 + 56, UINT64_MAX, "has more in it", 0},
    {88, 2, "neither mean nor sum", 0},
    {88, UINT64_MAX, "neither mean nor sum", 0},
    {96, 0, "neither float nor double", 0},
    {96, 2, "neither float nor double", 0},
    {104, 0, "divided by", 0},
    {104, 5, "divided by", 0},
    {104, 1 + 8, "divided by", 1},
    {104, 4, "divided by", 1},
    {104, 1 + 4 + 16, "divided by", 1}, /* of no loss over rows */
    {104, UINT64_C(1) << 40 | 5, "divided by", 1},
    {112, 1, "parameter", 0},
    {176, 0x3ff0000000000000u, "divisor", 0},           /* of a sum */
    {176, 0x3ff0000000000000u, "divided by is not", 1}, /* of a mean that counts weights */
    {176, 0x7ff0000000000000u, "divisor", 1},
    {184, UINT64_MAX, "more elements", 0},
    {184, 2, "not one of the tree", 0},
    {184, 4, "torn tile has none or all", 0}, /* replaced below: the node goes first */
    {192, 7, "have a length", 0},
    {NODES, UINT64_MAX, "fewer nodes", 0},
    {NODES, UINT64_MAX / 24 + 2, "fewer nodes", 0},
    {NODES, 7, "", 0},
    {NODES, 0, "", 0},
    {TORN, UINT64_MAX, "fewer torn tiles", 0},
    {TORN, 2, "", 0},
    {TORN, 0, "lies behind", 0},
    {WEIGHTS, 1, "such weights", 0},
    {WEIGHTS, UINT64_MAX, "such weights", 1},
    {HEADER, 3, "not one of the tree", 0},
    {HEADER, UINT64_MAX, "not one of the tree", 0},
    {HEADER, 0, "torn tile is in a node", 0},
    {HEADER, 2, "not been joined", 0}, /* the last tile stands alone one level up */
    {HEADER + 8, 1, "not one of the tree", 0},
    {HEADER + 8, 63, "not one of the tree", 0},
    {HEADER + 8, UINT64_MAX, "not one of the tree", 0},
    {HEADER + 24, 3, "out of order or beyond", 0},
    {HEADER + 24, UINT64_MAX, "out of order or beyond", 0},
    {HEADER + 24, 1, "torn tile is in a node", 0},
    {HEADER + 32, 0, "none or all", 0},
    {HEADER + 32, 1 | 2 | 4 | 8 | 16 | 32, "fewer terms", 0},
    {HEADER + 32, 2, "lies behind", 0},
};

static void test_made_up(void) {
    for (size_t i = 0; i < sizeof made_up / sizeof *made_up; i++) {
        written w = write_example(ONEPASS_F32, made_up[i].weighted, 3);
        set_number(w.bytes, made_up[i].at, made_up[i].number);
        if (made_up[i].at == 184 && made_up[i].number == 4) {
            set_number(w.bytes, NODES, 0); /* a whole of 4 elements, of which element 3 is the last */
            memmove(w.bytes + HEADER, w.bytes + HEADER + 24, w.size - HEADER - 24);
            w.size -= 24;
            set_number(w.bytes, HEADER + 8, 2 + 4 + 16);
        }
        seal(w.bytes, w.size);
        refuse(w.bytes, w.size, i == 0 ? ONEPASS_NOT_SUPPORTED : ONEPASS_INVALID_ARGUMENT, made_up[i].words);
    }
}

/* Nodes that overlap, out of order, or siblings that nobody joined. */
static void test_made_up_nodes(void) {
    static const struct {
        uint64_t first[2], level[2];
        const char *words;
    } pairs[] = {{{4, 4}, {0, 0}, "overlap or are out of order"},
                 {{4, 0}, {0, 0}, "overlap or are out of order"},
                 {{4, 5}, {1, 0}, "overlap or are out of order"},
                 {{4, 5}, {0, 0}, "not been joined"},
                 {{0, 4}, {2, 2}, "not been joined"},
                 {{0, 4}, {62, 0}, "overlap or are out of order"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        written w = write_example(ONEPASS_F32, 0, 3);
        w.size = HEADER;
        set_number(w.bytes, 184, UINT64_C(100) * ONEPASS_TILE);
        set_number(w.bytes, NODES, 2);
        set_number(w.bytes, TORN, 0);
        for (int k = 0; k < 2; k++) {
            write_number(&w, pairs[i].first[k]);
            write_number(&w, pairs[i].level[k]);
            write_double(&w, 1);
        }
        write_number(&w, 0);
        seal(w.bytes, w.size);
        refuse(w.bytes, w.size, ONEPASS_INVALID_ARGUMENT, pairs[i].words);
    }
}

/* Nothing was added, and yet it is said of what type it was. */
static void test_made_up_nothing(void) {
    written w = write_example(ONEPASS_F32, 1, 3);
    w.size = HEADER;
    set_number(w.bytes, 184, 0);
    set_number(w.bytes, NODES, 0);
    set_number(w.bytes, TORN, 0);
    write_number(&w, 0);
    seal(w.bytes, w.size);
    refuse(w.bytes, w.size, ONEPASS_INVALID_ARGUMENT, "no slices");
}

static void test_arguments(void) {
    example e = make_example(ONEPASS_F32, 0, 3);
    unsigned char bytes[MOST_BYTES];
    size_t size = 7, again = 7;
    onepass_accumulator *accumulator = NULL;
    CHECK(onepass_accumulator_export(NULL, NULL, 0, &size) == ONEPASS_INVALID_ARGUMENT && size == 7, "of nothing");
    CHECK(onepass_accumulator_export(e.accumulator, NULL, 0, NULL) == ONEPASS_INVALID_ARGUMENT,
          "no place for the size");
    CHECK_OK(onepass_accumulator_export(e.accumulator, NULL, 0, &size), "the size alone");
    memset(bytes, 0xa5, sizeof bytes);
    CHECK(onepass_accumulator_export(e.accumulator, bytes, size - 1, &again) == ONEPASS_INVALID_ARGUMENT &&
              again == size && bytes[0] == 0xa5,
          "expected a refusal that says the size and writes nothing");
    CHECK_OK(onepass_accumulator_export(e.accumulator, bytes, sizeof bytes, &again), "more room than needed");
    CHECK(bytes[size] == 0xa5, "expected nothing written behind");
    CHECK(onepass_accumulator_import(&accumulator, NULL, 8) == ONEPASS_INVALID_ARGUMENT, "no bytes");
    CHECK(onepass_accumulator_import(NULL, bytes, size) == ONEPASS_INVALID_ARGUMENT, "no place for the accumulator");
    CHECK(!accumulator, "expected no accumulator");
    onepass_accumulator_destroy(e.accumulator);
}

/* ---------------------------------------------------- losses and sizes -- */

typedef const onepass_loss_info *loss_list(int32_t index);

/* Every loss has a name that fits, and an accumulator of it that begins with defaults travels. */
static void test_names(void) {
    static loss_list *const lists[] = {onepass_loss_at, onepass_row_loss_at, onepass_vector_loss_at};
    for (size_t list = 0; list < 3; list++) {
        for (int32_t i = 0; lists[list](i); i++) {
            const onepass_call call = {.size = sizeof call, .loss = lists[list](i)->name};
            onepass_accumulator *accumulator = NULL;
            size_t size = 0;
            CHECK_OK(onepass_accumulator_begin(&accumulator, &call, INT64_MAX), call.loss);
            CHECK_OK(onepass_accumulator_export(accumulator, NULL, 0, &size), call.loss);
            CHECK(size == HEADER + 8, "expected %d bytes of nothing, got %zu", HEADER + 8, size);
            onepass_accumulator_destroy(through_bytes(accumulator));
        }
    }
}

/* A share of a whole at any elements, of one number everywhere so that it may be long. */
static size_t size_of_share(int32_t dtype, int weighted, int64_t first, int64_t count) {
    static const double one = 1, zero = 0;
    static const float narrow_one = 1, narrow_zero = 0;
    const int wide = dtype == ONEPASS_F64;
    const int64_t same = 0;
    const onepass_tensor p = {(void *)(uintptr_t)(wide ? (const void *)&one : &narrow_one), dtype, 1, &count, &same};
    const onepass_tensor t = {(void *)(uintptr_t)(wide ? (const void *)&zero : &narrow_zero), dtype, 1, &count, &same};
    onepass_call call = {.size = sizeof call, .loss = "mse"};
    onepass_accumulator *accumulator = NULL;
    size_t size = 0;
    CHECK_OK(onepass_accumulator_begin(&accumulator, &call, INT64_C(1) << 40), "begin");
    call.operand[0] = &p;
    call.operand[1] = &t;
    call.weight = weighted ? &p : NULL;
    CHECK_OK(onepass_accumulator_add(accumulator, &call, first), "a share");
    accumulator = through_bytes(accumulator);
    CHECK_OK(onepass_accumulator_export(accumulator, NULL, 0, &size), "its size");
    onepass_accumulator_destroy(accumulator);
    return size;
}

static void test_sizes(void) {
    const int64_t tile = ONEPASS_TILE, long_share = check_quick("long shares") ? 8 * tile : 1 << 22;
    const size_t aligned = size_of_share(ONEPASS_F32, 0, 16 * tile, 16 * tile);
    CHECK(aligned == HEADER + 8 + 24, "expected one node of an aligned share, got %zu bytes", aligned);
    for (int turn = 0; turn < 4; turn++) {
        const int32_t dtype = turn % 2 ? ONEPASS_F64 : ONEPASS_F32;
        const size_t most = dtype == ONEPASS_F64 ? 40000 : 20000;
        const size_t size = size_of_share(dtype, turn / 2, 5 * tile + 1, long_share + 2 * tile - 2);
        printf("a share with two torn tiles, %s%s: %zu bytes\n", dtype == ONEPASS_F64 ? "f64" : "f32",
               turn / 2 ? " with weights" : "", size);
        CHECK(size <= most, "expected at most %zu bytes, got %zu", most, size);
    }
}

int main(void) {
    test_layout();
    test_damage();
    test_made_up();
    test_made_up_nodes();
    test_made_up_nothing();
    test_arguments();
    test_names();
    test_sizes();
    return check_finish();
}
