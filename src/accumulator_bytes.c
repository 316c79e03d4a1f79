/*
 * An accumulator as bytes, which another process or machine can go on with. They are the same on every machine:
 * numbers of 8 bytes, the last first (little-endian), but for terms in float, which have 4.
 *
 *     8   "\x89onepass"
 *     8   version of this layout and of the order of summation
 *     8   bytes in all
 *     64  the loss's name, zeros behind it
 *     24  reduction, compute type (0: no slice yet), what a mean is divided by
 *     64  parameters
 *     8   divisor
 *     8   elements of the whole
 *     8   classes of a row or elements of a vector
 *     16  how many nodes, how many torn tiles
 *     8   a fingerprint of the classes' weights; 0: not known, 1: there are none
 *     24 or 32 a node: first tile, level, sum; the weights' sum, if a mean is divided by it
 *     a torn tile: index, 128 bytes that say which terms there are, those terms, zeros up to a multiple of 8; the same
 *         for weights, if a mean is divided by their sum
 *     8   checksum of everything before
 *
 * Bytes may come from anywhere: nothing in them is believed before it has been looked at, and no more is allocated than
 * what lies there asks for.
 */
#include "accumulator.h"
#include "dtype.h"
#include "float_state.h"
#include "message.h"

#include <stdlib.h>
#include <string.h>

#define STATE_VERSION  2
#define STATE_NAME     64
#define STATE_HEADER   224
#define STATE_CHECKSUM 8

static const unsigned char magic[8] = {0x89, 'o', 'n', 'e', 'p', 'a', 's', 's'};

/* -------------------------------------------------------------------- numbers -- */

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LITTLE_ENDIAN_BITS(swap, bits) (bits)
#else
#define LITTLE_ENDIAN_BITS(swap, bits) swap(bits)
#endif

static uint64_t load_word(const unsigned char *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return LITTLE_ENDIAN_BITS(__builtin_bswap64, word);
}

static void store_word(unsigned char *at, uint64_t word) {
    const uint64_t bits = LITTLE_ENDIAN_BITS(__builtin_bswap64, word);
    memcpy(at, &bits, sizeof bits);
}

static uint32_t load_half(const unsigned char *at) {
    uint32_t half;
    memcpy(&half, at, sizeof half);
    return LITTLE_ENDIAN_BITS(__builtin_bswap32, half);
}

static void store_half(unsigned char *at, uint32_t half) {
    const uint32_t bits = LITTLE_ENDIAN_BITS(__builtin_bswap32, half);
    memcpy(at, &bits, sizeof bits);
}

/* Every step maps words, and sums before, one to one, so that no change of a single word goes unnoticed. */
static uint64_t checksum_of(const unsigned char *bytes, size_t size) {
    uint64_t sum = size;
    for (size_t i = 0; i + 8 <= size; i += 8) {
        sum = (sum ^ load_word(bytes + i)) * UINT64_C(0x9e3779b97f4a7c15);
        sum ^= sum >> 32;
    }
    return sum;
}

/* NaN has one face, whatever the processor made of it. */
static uint64_t stored_f64(double x) {
    uint64_t bits = UINT64_C(0x7ff8000000000000);
    if (x == x)
        memcpy(&bits, &x, sizeof bits);
    return bits;
}

static uint32_t stored_f32(float x) {
    return x == x ? f32_bits(x) : UINT32_C(0x7fc00000);
}

/* A place in bytes that goes forward; whoever reads has looked how many there are. */
typedef struct walk {
    unsigned char *at;
} walk;

static void put(walk *walk, uint64_t word) {
    store_word(walk->at, word);
    walk->at += 8;
}

typedef struct reading {
    const unsigned char *at;
    size_t left;
} reading;

static uint64_t get(reading *reading) {
    const uint64_t word = load_word(reading->at);
    reading->at += 8;
    reading->left -= 8;
    return word;
}

static double get_f64(reading *reading) {
    const uint64_t bits = get(reading);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ------------------------------------------------------------------------ sizes -- */

static size_t size_of_node(bool has_weights) {
    return has_weights ? 32 : 24;
}

static size_t size_of_terms(int64_t count, int32_t compute) {
    return ((size_t)count * dtype_size(compute) + 7) / 8 * 8;
}

static size_t size_of_torn(int64_t count, int32_t compute, bool has_weights) {
    return 8 + sizeof(torn_elements) + size_of_terms(count, compute) * (has_weights ? 2 : 1);
}

static size_t size_of_state(const onepass_accumulator *accumulator) {
    const bool has_weights = has_weight_sums(accumulator);
    size_t size = STATE_HEADER + STATE_CHECKSUM + (size_t)accumulator->known.count * size_of_node(has_weights);
    for (int64_t i = 0; i < accumulator->torn.count; i++)
        size +=
            size_of_torn(onepass_torn_count(&accumulator->torn.tile[i]->has), accumulator->whole.compute, has_weights);
    return size;
}

/* ----------------------------------------------------------------------- export -- */

static int64_t length_of(const job *whole) {
    return whole->family == FAMILY_ROWS      ? whole->rows.classes
           : whole->family == FAMILY_VECTORS ? whole->vectors.length
                                             : 0;
}

static void put_header(const onepass_accumulator *accumulator, size_t size, walk *walk) {
    const job *whole = &accumulator->whole;
    memcpy(walk->at, magic, sizeof magic);
    walk->at += sizeof magic;
    put(walk, STATE_VERSION);
    put(walk, size);
    memset(walk->at, 0, STATE_NAME);
    memcpy(walk->at, whole->loss->info.name, strlen(whole->loss->info.name));
    walk->at += STATE_NAME;
    put(walk, (uint64_t)whole->reduction);
    put(walk, (uint64_t)whole->compute);
    put(walk, (uint64_t)accumulator->divided_by);
    for (int32_t i = 0; i < ONEPASS_MAX_PARAMETERS; i++)
        put(walk, stored_f64(whole->parameter[i]));
    put(walk, stored_f64(accumulator->divisor));
    put(walk, (uint64_t)accumulator->total);
    put(walk, (uint64_t)length_of(whole));
    put(walk, (uint64_t)accumulator->known.count);
    put(walk, (uint64_t)accumulator->torn.count);
    put(walk, accumulator->class_weights);
}

/* Neighbouring terms. */
static unsigned char *put_run(unsigned char *at, int32_t compute, const void *terms, int64_t first, int64_t end) {
    const double *wide = terms;
    const float *narrow = terms;
    if (compute == ONEPASS_F64)
        for (int64_t i = first; i < end; i++)
            store_word(at + 8 * (i - first), stored_f64(wide[i]));
    else
        for (int64_t i = first; i < end; i++)
            store_half(at + 4 * (i - first), stored_f32(narrow[i]));
    return at + (size_t)(end - first) * dtype_size(compute);
}

static void put_terms(const torn_elements *has, int32_t compute, const void *terms, walk *walk) {
    int64_t first = onepass_torn_next(has, 0, true);
    while (first < ORDER_TILE) {
        const int64_t end = onepass_torn_next(has, first, false);
        walk->at = put_run(walk->at, compute, terms, first, end);
        first = onepass_torn_next(has, end, true);
    }
    if (onepass_torn_count(has) * (int64_t)dtype_size(compute) % 8 != 0) {
        store_half(walk->at, 0);
        walk->at += 4;
    }
}

static void put_torn(torn_tile *torn, walk *walk) {
    put(walk, (uint64_t)torn->tile);
    for (int word = 0; word < TORN_WORDS; word++)
        put(walk, torn->has.word[word]);
    put_terms(&torn->has, torn->compute, torn->terms, walk);
    if (torn->has_weights)
        put_terms(&torn->has, torn->compute, onepass_torn_weights(torn), walk);
}

static void put_state(const onepass_accumulator *accumulator, size_t size, unsigned char *bytes) {
    walk walk = {bytes};
    put_header(accumulator, size, &walk);
    for (int64_t i = 0; i < accumulator->known.count; i++) {
        const order_node *node = &accumulator->known.node[i];
        put(&walk, (uint64_t)node->first);
        put(&walk, (uint64_t)node->level);
        put(&walk, stored_f64(node->sum));
        if (has_weight_sums(accumulator))
            put(&walk, stored_f64(node->weights));
    }
    for (int64_t i = 0; i < accumulator->torn.count; i++)
        put_torn(accumulator->torn.tile[i], &walk);
    put(&walk, checksum_of(bytes, size - STATE_CHECKSUM));
}

ARITHMETIC onepass_status export(const onepass_accumulator *accumulator, void *bytes, size_t room, size_t *size) {
    onepass_succeed();
    if (!accumulator)
        FAIL_ARGUMENT("accumulator is null; expected one that has begun");
    if (!size)
        FAIL_ARGUMENT("size is null; expected a place for the number of bytes");
    if (strlen(accumulator->whole.loss->info.name) >= STATE_NAME)
        return onepass_fail(ONEPASS_NOT_SUPPORTED, "the name of the loss %s is too long; expected less than %d letters",
                            accumulator->whole.loss->info.name, STATE_NAME);
    OK(onepass_accumulator_wait(accumulator));
    const size_t needed = size_of_state(accumulator);
    *size = needed;
    if (!bytes)
        return ONEPASS_OK;
    if (room < needed)
        FAIL_ARGUMENT("bytes has room for %zu bytes, but the accumulator takes %zu; expected as many", room, needed);
    put_state(accumulator, needed, bytes);
    return ONEPASS_OK;
}

/* ----------------------------------------------------------------------- import -- */

/* Whether these are bytes of an accumulator, all of them and as they were written. */
static onepass_status check_bytes(const unsigned char *bytes, size_t size) {
    if (size < sizeof magic || memcmp(bytes, magic, sizeof magic) != 0)
        FAIL_ARGUMENT("the bytes, %zu of them, are not those of an accumulator: they do not begin as such bytes do",
                      size);
    if (size < 24)
        FAIL_ARGUMENT("the bytes of the accumulator are truncated: there are %zu, which is not even a header", size);
    const uint64_t version = load_word(bytes + 8), said = load_word(bytes + 16);
    if (version != STATE_VERSION)
        return onepass_fail(ONEPASS_NOT_SUPPORTED,
                            "the bytes of the accumulator are of version %llu; this library (%s) reads version %d: use "
                            "one version of the library for all parts",
                            (unsigned long long)version, onepass_version_text(), STATE_VERSION);
    if (size < said)
        FAIL_ARGUMENT("the bytes of the accumulator are truncated: there are %zu of %llu", size,
                      (unsigned long long)said);
    if (size > said || size < STATE_HEADER + STATE_CHECKSUM || size % 8 != 0)
        FAIL_ARGUMENT("the bytes of the accumulator are damaged: there are %zu, but they say %llu", size,
                      (unsigned long long)said);
    if (load_word(bytes + size - STATE_CHECKSUM) != checksum_of(bytes, size - STATE_CHECKSUM))
        FAIL_ARGUMENT("the bytes of the accumulator are damaged: their checksum is not the one that was written");
    return ONEPASS_OK;
}

/* Bytes that nobody exported though their checksum is right. */
static onepass_status fail_state(const char *what) {
    FAIL_ARGUMENT("the bytes are not those of an accumulator, though their checksum is right: %s", what);
}

/* What the header says of slices. */
typedef struct state {
    uint64_t compute, divided_by, length, class_weights, nodes, torn;
    bool has_weights;
} state;

/* Letters of a loss's name, and zeros behind them; what a message can show. */
static bool is_name(const char *name) {
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
    while (length < STATE_NAME && name[length] == 0)
        length++;
    return length == STATE_NAME;
}

static onepass_status read_whole(reading *reading, onepass_accumulator **accumulator, state *state) {
    char name[STATE_NAME];
    onepass_call call = {.size = sizeof call, .loss = name};
    double parameter[ONEPASS_MAX_PARAMETERS];
    memcpy(name, reading->at + 24, sizeof name);
    if (name[STATE_NAME - 1] != 0 || !is_name(name))
        return fail_state("the loss's name has more in it than letters, digits and underscores");
    const onepass_loss_info *loss = onepass_loss_named(name);
    if (!loss)
        return onepass_fail(ONEPASS_NOT_SUPPORTED,
                            "the bytes are those of an accumulator of the loss \"%s\", which this library (%s) does "
                            "not know",
                            name, onepass_version_text());
    reading->at += 24 + STATE_NAME;
    reading->left -= 24 + STATE_NAME;
    const uint64_t reduction = get(reading);
    state->compute = get(reading);
    state->divided_by = get(reading);
    for (int32_t i = 0; i < ONEPASS_MAX_PARAMETERS; i++)
        parameter[i] = get_f64(reading);
    call.divisor = get_f64(reading);
    const uint64_t total = get(reading);
    state->length = get(reading);
    state->nodes = get(reading);
    state->torn = get(reading);
    state->class_weights = get(reading);
    if (reduction != ONEPASS_MEAN && reduction != ONEPASS_SUM)
        return fail_state("its reduction is neither mean nor sum");
    if (total > INT64_MAX || state->length > INT64_MAX)
        return fail_state("it has more elements than there can be");
    call.reduction = (int32_t)reduction;
    call.parameter_count = loss->parameter_count;
    memcpy(call.parameter, parameter, sizeof parameter);
    OK(onepass_accumulator_start(accumulator, &call, (int64_t)total));
    if (memcmp((*accumulator)->whole.parameter, parameter, sizeof parameter) != 0)
        return fail_state("a parameter is not what it is when it has been read");
    return ONEPASS_OK;
}

/* What a mean of these slices can be divided by. */
static bool can_be_divided_by(const onepass_accumulator *accumulator, uint64_t divided_by) {
    const job *whole = &accumulator->whole;
    if (whole->reduction != ONEPASS_MEAN || accumulator->divisor != 0)
        return divided_by == COUNT;
    const uint64_t always = COUNT | (has_labels(whole) ? LABELLED : 0);
    const uint64_t perhaps = MASKED | WEIGHTED | (has_labels(whole) ? CLASS_WEIGHTED : 0);
    return (divided_by & ~perhaps) == always;
}

static onepass_status read_kind(const state *state, onepass_accumulator *accumulator) {
    job *whole = &accumulator->whole;
    if (state->nodes == 0 && state->torn == 0) {
        const bool unsettled = state->compute == 0 && state->divided_by == UNDECIDED && state->length == 0 &&
                               state->class_weights == WEIGHTS_UNKNOWN;
        return unsettled ? ONEPASS_OK : fail_state("it has no slices, which would settle its types");
    }
    if (state->compute != ONEPASS_F32 && state->compute != ONEPASS_F64)
        return fail_state("its compute type is neither float nor double");
    if (!can_be_divided_by(accumulator, state->divided_by))
        return fail_state("what its mean is divided by is not possible");
    if (whole->family == FAMILY_PAIRWISE && state->length != 0)
        return fail_state("its loss has no rows, and yet they have a length");
    const bool is_absent = state->class_weights == WEIGHTS_ABSENT, is_known = state->class_weights != WEIGHTS_UNKNOWN;
    const bool divides = whole->reduction == ONEPASS_MEAN && accumulator->divisor == 0 && has_labels(whole);
    if (is_known && (!has_classes(whole) || (divides && is_absent == ((state->divided_by & CLASS_WEIGHTED) != 0))))
        return fail_state("its classes cannot have such weights");
    accumulator->class_weights = state->class_weights;
    whole->compute = (int32_t)state->compute;
    accumulator->divided_by = (divided_by)state->divided_by;
    if (whole->family == FAMILY_ROWS)
        whole->rows.classes = (int64_t)state->length;
    if (whole->family == FAMILY_VECTORS)
        whole->vectors.length = (int64_t)state->length;
    return ONEPASS_OK;
}

/* A node of the tree over these tiles that lies behind those before it and has no sibling among them. */
static onepass_status read_node(reading *reading, bool has_weights, onepass_accumulator *accumulator) {
    order_forest *known = &accumulator->known;
    const int64_t count = known->count;
    const uint64_t first = get(reading), level = get(reading);
    order_node node = {.sum = get_f64(reading)};
    if (has_weights)
        node.weights = get_f64(reading);
    if (first >= (uint64_t)known->tiles || level > ORDER_TOP_LEVEL || first & ((UINT64_C(1) << level) - 1))
        return fail_state("a node is not one of the tree");
    node.first = (int64_t)first;
    node.level = (int)level;
    if (count > 0 && node.first < order_node_end(known, &known->node[count - 1]))
        return fail_state("its nodes overlap or are out of order");
    order_insert(known, node);
    if (known->count != count + 1 || known->node[count].level != node.level)
        return fail_state("nodes have not been joined");
    return ONEPASS_OK;
}

static const unsigned char *get_run(const unsigned char *at, int32_t compute, void *terms, int64_t first, int64_t end) {
    double *wide = terms;
    float *narrow = terms;
    if (compute == ONEPASS_F64)
        for (int64_t i = first; i < end; i++) {
            const uint64_t bits = load_word(at + 8 * (i - first));
            memcpy(&wide[i], &bits, sizeof bits);
        }
    else
        for (int64_t i = first; i < end; i++)
            narrow[i] = f32_of(load_half(at + 4 * (i - first)));
    return at + (size_t)(end - first) * dtype_size(compute);
}

static void get_terms(reading *reading, const torn_elements *has, int32_t compute, void *terms) {
    const unsigned char *at = reading->at;
    int64_t first = onepass_torn_next(has, 0, true);
    while (first < ORDER_TILE) {
        const int64_t end = onepass_torn_next(has, first, false);
        at = get_run(at, compute, terms, first, end);
        first = onepass_torn_next(has, end, true);
    }
    const size_t size = size_of_terms(onepass_torn_count(has), compute);
    reading->at += size;
    reading->left -= size;
}

/* Part of a tile that lies behind those before it, in no node. */
static onepass_status read_torn(reading *reading, bool has_weights, onepass_accumulator *accumulator) {
    const int32_t compute = accumulator->whole.compute;
    torn_tiles *tiles = &accumulator->torn;
    torn_elements has;
    if (reading->left < size_of_torn(1, compute, has_weights))
        return fail_state("it has fewer torn tiles than it says");
    const uint64_t tile = get(reading);
    for (int word = 0; word < TORN_WORDS; word++)
        has.word[word] = get(reading);
    if (tile >= (uint64_t)accumulator->known.tiles ||
        (tiles->count > 0 && tile <= (uint64_t)tiles->tile[tiles->count - 1]->tile))
        return fail_state("its torn tiles are out of order or beyond the whole");
    const int64_t index = (int64_t)tile, elements = elements_of_tile(accumulator, index);
    const int64_t count = onepass_torn_count(&has);
    const torn_elements most = onepass_torn_range(0, elements), common = onepass_torn_common(&has, &most);
    if (count == 0 || count >= elements || onepass_torn_count(&common) != count)
        return fail_state("a torn tile has none or all of its terms, or others");
    if (order_first_known(&accumulator->known, index, index + 1) == index)
        return fail_state("a torn tile is in a node");
    if (reading->left < size_of_torn(count, compute, has_weights) - size_of_torn(0, compute, has_weights))
        return fail_state("it has fewer terms than it says");
    torn_tile *torn = onepass_torn_new(index, compute, has_weights);
    if (!torn)
        return onepass_fail(ONEPASS_OUT_OF_MEMORY, "no memory for the terms of a torn tile of an accumulator");
    torn->has = has;
    onepass_torn_insert(tiles, tiles->count, torn);
    get_terms(reading, &has, compute, torn->terms);
    if (has_weights)
        get_terms(reading, &has, compute, onepass_torn_weights(torn));
    return ONEPASS_OK;
}

static onepass_status read_state(reading *reading, onepass_accumulator **accumulator) {
    state state = {0};
    OK(read_whole(reading, accumulator, &state));
    OK(read_kind(&state, *accumulator));
    const bool has_weights = has_weight_sums(*accumulator);
    if (state.nodes > reading->left / size_of_node(has_weights))
        return fail_state("it has fewer nodes than it says");
    if (state.torn > (reading->left - state.nodes * size_of_node(has_weights)) / size_of_torn(0, ONEPASS_F32, false))
        return fail_state("it has fewer torn tiles than it says");
    OK(onepass_accumulator_make_room(*accumulator, (int64_t)state.nodes, (int64_t)state.torn));
    for (uint64_t i = 0; i < state.nodes; i++)
        OK(read_node(reading, has_weights, *accumulator));
    for (uint64_t i = 0; i < state.torn; i++)
        OK(read_torn(reading, has_weights, *accumulator));
    return reading->left == 0 ? ONEPASS_OK : fail_state("something lies behind its torn tiles");
}

ARITHMETIC onepass_status import(onepass_accumulator **accumulator, const void *bytes, size_t size) {
    onepass_accumulator *new = NULL;
    onepass_succeed();
    if (!accumulator)
        FAIL_ARGUMENT("accumulator is null; expected a place for its pointer");
    if (!bytes)
        FAIL_ARGUMENT("bytes is null; expected what onepass_accumulator_export wrote");
    OK(check_bytes(bytes, size));
    reading reading = {bytes, size - STATE_CHECKSUM};
    const onepass_status status = read_state(&reading, &new);
    if (status != ONEPASS_OK) {
        onepass_accumulator_destroy(new);
        return status;
    }
    *accumulator = new;
    return ONEPASS_OK;
}

/* ------------------------------------------------------------------ the ways in -- */

/* In our own floating-point state, since numbers are compared. */

onepass_status onepass_accumulator_export(const onepass_accumulator *accumulator, void *bytes, size_t room,
                                          size_t *size) {
    const float_state callers = enter_float_state();
    const onepass_status status = export(accumulator, bytes, room, size);
    leave_float_state(callers);
    return status;
}

onepass_status onepass_accumulator_import(onepass_accumulator **accumulator, const void *bytes, size_t size) {
    const float_state callers = enter_float_state();
    const onepass_status status = import(accumulator, bytes, size);
    leave_float_state(callers);
    return status;
}
