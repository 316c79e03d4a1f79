/*
 * What it takes to merge the states of many ranks, without the ranks: made-up states of 1, 8, 64 and 1024 ranks with
 * 2^36 elements each are imported and merged, and the program prints bytes and seconds. The values are made up too, but
 * nodes, torn tiles and bytes are those that such shares leave, so time and size are theirs. Every state is merged in
 * order, in a random order and by pairs, which must come to the same bits.
 *
 *     states [RANKS [LOG2_OF_ELEMENTS_A_RANK]]
 */
#define _POSIX_C_SOURCE 199309L /* clock_gettime */
#include <onepass.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    HEADER = 224, /* bytes: see src/accumulator_bytes.c */
    COMPUTE = 96,
    DIVIDED_BY = 104,
    NODES = 200,
    TORN = 208,
    CHECKSUM = 8,
    WEIGHTED = 1 + 4, /* what a mean over weights is divided by */
    MOST_BYTES = 40000,
    REPEATS = 5
};

typedef struct state {
    unsigned char *bytes;
    size_t size;
} state;

/* How shares are cut, and what their elements are. */
typedef struct kind {
    const char *name;
    int32_t compute;
    int torn, weighted;
} kind;

static const kind kinds[] = {{"f32, cut on tiles", ONEPASS_F32, 0, 0},
                             {"f32, cut anywhere", ONEPASS_F32, 1, 0},
                             {"f32, weights, cut anywhere", ONEPASS_F32, 1, 1},
                             {"f64, weights, cut anywhere", ONEPASS_F64, 1, 1}};

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void check(onepass_status status) {
    if (status == ONEPASS_OK)
        return;
    fprintf(stderr, "%s: %s\n", onepass_status_name(status), onepass_message());
    exit(1);
}

static void *allocate(size_t size) {
    void *memory = malloc(size ? size : 1);
    if (!memory) {
        perror("malloc");
        exit(1);
    }
    return memory;
}

static uint64_t random_bits(void) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

static double random_number(void) {
    return (double)(1 + random_bits()) / 1024;
}

/* ----------------------------------------------------------------- made-up states -- */

static void put(state *s, uint64_t number, int bytes) {
    for (int i = 0; i < bytes; i++)
        s->bytes[s->size++] = (unsigned char)(number >> 8 * i);
}

static uint64_t number_at(const unsigned char *at) {
    uint64_t number = 0;
    for (int i = 0; i < 8; i++)
        number |= (uint64_t)at[i] << 8 * i;
    return number;
}

static void set(state *s, size_t at, uint64_t number) {
    const size_t size = s->size;
    s->size = at;
    put(s, number, 8);
    s->size = size;
}

static void put_double(state *s, double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    put(s, bits, 8);
}

static void put_float(state *s, float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    put(s, bits, 4);
}

/* The largest aligned nodes, as an accumulator has them. */
static uint64_t put_nodes(state *s, const kind *kind, int64_t tile, int64_t end) {
    uint64_t nodes = 0;
    for (; tile < end; nodes++) {
        int level = 0;
        while (!(tile >> level & 1) && end - tile >= (int64_t)2 << level)
            level++;
        put(s, (uint64_t)tile, 8);
        put(s, (uint64_t)level, 8);
        put_double(s, ldexp(random_number(), level));
        if (kind->weighted)
            put_double(s, ldexp(random_number(), level));
        tile += (int64_t)1 << level;
    }
    return nodes;
}

static void put_torn(state *s, const kind *kind, int64_t tile, int first, int end) {
    put(s, (uint64_t)tile, 8);
    for (int word = 0; word < ONEPASS_TILE / 64; word++) {
        uint64_t has = 0;
        for (int i = 0; i < 64; i++)
            has |= (uint64_t)(64 * word + i >= first && 64 * word + i < end) << i;
        put(s, has, 8);
    }
    for (int turn = 0; turn <= kind->weighted; turn++) {
        for (int i = first; i < end; i++)
            if (kind->compute == ONEPASS_F64)
                put_double(s, random_number());
            else
                put_float(s, (float)random_number());
        while (s->size % 8)
            put(s, 0, 1);
    }
}

static void seal(state *s) {
    set(s, 16, s->size + CHECKSUM);
    uint64_t sum = s->size;
    for (size_t at = 0; at < s->size; at += 8) {
        sum = (sum ^ number_at(s->bytes + at)) * UINT64_C(0x9e3779b97f4a7c15);
        sum ^= sum >> 32;
    }
    put(s, sum, CHECKSUM);
}

/* Elements first to end - 1, by a header of the library's own. */
static state make_state(const kind *kind, const onepass_call *call, int64_t total, int64_t first, int64_t end) {
    state s = {allocate(MOST_BYTES), 0};
    onepass_accumulator *empty = NULL;
    check(onepass_accumulator_begin(&empty, call, total));
    check(onepass_accumulator_export(empty, s.bytes, MOST_BYTES, &s.size));
    onepass_accumulator_destroy(empty);
    s.size = HEADER;
    const int64_t tile = (first + ONEPASS_TILE - 1) / ONEPASS_TILE, end_tile = end / ONEPASS_TILE;
    const int begins = (int)(first % ONEPASS_TILE), ends = (int)(end % ONEPASS_TILE);
    set(&s, COMPUTE, (uint64_t)kind->compute);
    set(&s, DIVIDED_BY, kind->weighted ? WEIGHTED : 1);
    set(&s, NODES, put_nodes(&s, kind, tile, end_tile));
    set(&s, TORN, (uint64_t)(begins > 0) + (uint64_t)(ends > 0));
    if (begins)
        put_torn(&s, kind, tile - 1, begins, ONEPASS_TILE);
    if (ends)
        put_torn(&s, kind, end_tile, 0, ends);
    seal(&s);
    return s;
}

/* ------------------------------------------------------------------------ merging -- */

static uint64_t finish(const onepass_accumulator *accumulator) {
    double value = 0;
    uint64_t bits;
    const onepass_tensor v = {&value, ONEPASS_F64, 0, NULL, NULL};
    check(onepass_accumulator_finish(accumulator, &v));
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static onepass_accumulator *import(const state *s) {
    onepass_accumulator *accumulator = NULL;
    check(onepass_accumulator_import(&accumulator, s->bytes, s->size));
    return accumulator;
}

/* As the bytes arrive. */
static uint64_t merge_in_order(const state *states, const int *order, int ranks) {
    onepass_accumulator *all = import(&states[order[0]]);
    for (int i = 1; i < ranks; i++) {
        onepass_accumulator *one = import(&states[order[i]]);
        check(onepass_accumulator_merge(all, one));
        onepass_accumulator_destroy(one);
    }
    const uint64_t bits = finish(all);
    onepass_accumulator_destroy(all);
    return bits;
}

/* As ranks would do it among themselves, each pair by bytes. */
static uint64_t merge_by_pairs(const state *states, int ranks) {
    onepass_accumulator **part = allocate((size_t)ranks * sizeof *part);
    unsigned char *bytes = allocate(2 * MOST_BYTES);
    for (int i = 0; i < ranks; i++)
        part[i] = import(&states[i]);
    for (int apart = 1; apart < ranks; apart *= 2)
        for (int i = 0; i + apart < ranks; i += 2 * apart) {
            state sent = {bytes, 0};
            check(onepass_accumulator_export(part[i + apart], bytes, 2 * MOST_BYTES, &sent.size));
            onepass_accumulator_destroy(part[i + apart]);
            onepass_accumulator *arrived = import(&sent);
            check(onepass_accumulator_merge(part[i], arrived));
            onepass_accumulator_destroy(arrived);
        }
    const uint64_t bits = finish(part[0]);
    onepass_accumulator_destroy(part[0]);
    free(bytes);
    free(part);
    return bits;
}

static double time_order(const state *states, const int *order, int ranks, uint64_t *bits) {
    double best = INFINITY;
    for (int i = 0; i < REPEATS; i++) {
        const double begun = seconds();
        *bits = merge_in_order(states, order, ranks);
        best = fmin(best, seconds() - begun);
    }
    return best;
}

/* What a rank does beside its share: export, and for each other rank an import and a merge into nothing. */
static double time_one(const state *s, const onepass_call *call, int64_t total) {
    double best = INFINITY;
    unsigned char *bytes = allocate(MOST_BYTES);
    onepass_accumulator *one = import(s);
    for (int i = 0; i < 20 * REPEATS; i++) {
        onepass_accumulator *into = NULL, *arrived = NULL;
        size_t size = 0;
        check(onepass_accumulator_begin(&into, call, total));
        const double begun = seconds();
        check(onepass_accumulator_export(one, bytes, MOST_BYTES, &size));
        check(onepass_accumulator_import(&arrived, bytes, size));
        check(onepass_accumulator_merge(into, arrived));
        best = fmin(best, seconds() - begun);
        onepass_accumulator_destroy(arrived);
        onepass_accumulator_destroy(into);
    }
    onepass_accumulator_destroy(one);
    free(bytes);
    return best;
}

static int simulate(const kind *kind, int ranks, int log2_elements) {
    const int64_t elements = INT64_C(1) << log2_elements, total = elements * ranks;
    const onepass_call call = {.size = sizeof call, .loss = "mse"};
    state *states = allocate((size_t)ranks * sizeof *states);
    int *order = allocate((size_t)ranks * sizeof *order), *shuffled = allocate((size_t)ranks * sizeof *shuffled);
    size_t bytes = 0;
    int most = 0; /* the rank with the largest state */
    int64_t first = 0;
    for (int i = 0; i < ranks; i++) {
        const int64_t moved = kind->torn && i + 1 < ranks ? 1 + (int64_t)(random_bits() % (ONEPASS_TILE - 1)) : 0;
        const int64_t end = elements * (i + 1) + moved;
        states[i] = make_state(kind, &call, total, first, end);
        bytes += states[i].size;
        most = states[i].size > states[most].size ? i : most;
        first = end;
        const int other = (int)(random_bits() % (uint64_t)(i + 1));
        order[i] = i;
        shuffled[i] = shuffled[other];
        shuffled[other] = i;
    }
    uint64_t in_order, in_disorder;
    const double one = time_one(&states[most], &call, total);
    const double time = time_order(states, order, ranks, &in_order);
    const double other_time = time_order(states, shuffled, ranks, &in_disorder);
    const int same = in_order == in_disorder && in_order == merge_by_pairs(states, ranks);
    printf("%-27s %5d ranks: %8zu bytes, %5zu a rank at most; %8.3f ms in order, %8.3f ms in any other; %5.1f us for "
           "the largest%s\n",
           kind->name, ranks, bytes, states[most].size, 1e3 * time, 1e3 * other_time, 1e6 * one,
           same ? "" : "; DIFFERENT BITS");
    for (int i = 0; i < ranks; i++)
        free(states[i].bytes);
    free(shuffled);
    free(order);
    free(states);
    return same;
}

int main(int argc, char **argv) {
    static const int usual[] = {1, 8, 64, 1024};
    const int ranks = argc > 1 ? atoi(argv[1]) : 0, log2_elements = argc > 2 ? atoi(argv[2]) : 36;
    int same = 1;
    if (argc > 3 || (argc > 1 && (ranks < 1 || ranks > 1 << 20)) || log2_elements < 11 || log2_elements > 42) {
        fprintf(stderr, "usage: states [RANKS [LOG2_OF_ELEMENTS_A_RANK]]\n");
        return 2;
    }
    printf("2^%d elements a rank; export, import and merge\n", log2_elements);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t i = 0; i < (ranks ? 1 : sizeof usual / sizeof *usual); i++)
            same &= simulate(&kinds[k], ranks ? ranks : usual[i], log2_elements);
    printf("%s\n", same ? "the same bits in every order" : "THE BITS DEPEND ON THE ORDER");
    return same ? 0 : 1;
}
