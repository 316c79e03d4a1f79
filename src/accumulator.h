/* What an accumulator knows, for those who compute with it and those who carry it elsewhere. */
#ifndef ONEPASS_ACCUMULATOR_H
#define ONEPASS_ACCUMULATOR_H

#include "engine.h"
#include "order.h"
#include "pending.h"
#include "torn.h"

/* What a mean is divided by. Its slices have weights or none of them has, and so with masks; the first one that is
 * added says so. */
typedef enum divided_by {
    UNDECIDED = 0,
    COUNT = 1, /* or the call's divisor, unless one of the others says more */
    MASKED = 2,
    WEIGHTED = 4,
    LABELLED = 8,       /* by what the rows' class indices count for */
    CLASS_WEIGHTED = 16 /* which are class weights; 1 without them */
} divided_by;

/* The weights of the classes, which all slices of a whole have alike: a fingerprint of them, or one of these. */
enum {
    WEIGHTS_UNKNOWN = 0, /* there is no slice yet, or a GPU has them, and nobody waits for it */
    WEIGHTS_ABSENT = 1
};

struct onepass_accumulator {
    job whole; /* loss, parameters, reduction, the divisor that the mean is divided by; compute is 0 before a slice */
    double divisor; /* as the call gave it: 0 for the total */
    int64_t total;
    divided_by divided_by;
    uint64_t class_weights;
    order_forest known;
    int64_t room; /* for nodes */
    torn_tiles torn;
    pending_slices pending;
};

/* Whether the weights are summed beside the terms. */
static inline bool has_weight_sums(const onepass_accumulator *accumulator) {
    return accumulator->divided_by > COUNT;
}

/* Whether a row has a class index, which has a say in what a mean is divided by. */
static inline bool has_labels(const job *job) {
    return job->family == FAMILY_ROWS && job->loss->kind != ROW_PROBABILITIES;
}

/* Whether its classes may have weights. */
static inline bool has_classes(const job *job) {
    return job->family == FAMILY_ROWS || (job->family == FAMILY_VECTORS && job->loss->has_labels);
}

/* Elements before a tile, and those of the tile. */
static inline int64_t elements_before(const onepass_accumulator *accumulator, int64_t tile) {
    return tile >= accumulator->known.tiles ? accumulator->total : tile * ORDER_TILE;
}

static inline int64_t elements_of_tile(const onepass_accumulator *accumulator, int64_t tile) {
    return elements_before(accumulator, tile + 1) - elements_before(accumulator, tile);
}

/* src/accumulator.c, for slices and for bytes. Whatever computes does so in the floating-point state of
 * src/float_state.h. */

/* Room for so many more nodes and torn tiles. */
ONEPASS_INTERNAL onepass_status onepass_accumulator_make_room(onepass_accumulator *accumulator, int64_t nodes,
                                                              int64_t torn);

/* An accumulator of a whole of which nothing has been added. */
ONEPASS_INTERNAL onepass_status onepass_accumulator_start(onepass_accumulator **accumulator, const onepass_call *call,
                                                          int64_t total);

/* The first of these elements that was added already, or `end`. */
ONEPASS_INTERNAL int64_t onepass_accumulator_first_known(const onepass_accumulator *accumulator, int64_t first,
                                                         int64_t end);

/* Puts terms to those of their tile that are known, and frees or keeps what they come in; all of them are new, and
 * there is room. A tile that has all of its terms becomes a node. */
ONEPASS_INTERNAL void onepass_accumulator_put_torn(onepass_accumulator *accumulator, torn_tile *torn);

/* src/accumulator_slice.c: how the accumulator cuts a slice of so many elements; what a GPU found them to come to goes
 * into the accumulator; and that for all slices, which are waited for. The last leaves an accumulator that was lent to
 * be read as it was to its owner. */
ONEPASS_INTERNAL void onepass_accumulator_cut(const onepass_accumulator *accumulator, int64_t first, int64_t count,
                                              int32_t compute, bool over_weights, slice_parts *parts);
ONEPASS_INTERNAL onepass_status onepass_accumulator_take_slice(onepass_accumulator *accumulator, int64_t first,
                                                               int64_t end, const unsigned char *results);
ONEPASS_INTERNAL onepass_status onepass_accumulator_wait(const onepass_accumulator *accumulator);

/* Flags and divisor of a call are those that an accumulator can have. */
ONEPASS_INTERNAL onepass_status onepass_accumulator_check_place(const onepass_call *call);

/* The type that slices are computed in is one, as that of a call is, and so is the number of classes; the first slice
 * that is added settles them. */
ONEPASS_INTERNAL onepass_status onepass_accumulator_check_kind(const job *before, const job *own);

/* The classes' weights are the same, as far as somebody knows. */
ONEPASS_INTERNAL onepass_status onepass_accumulator_check_class_weights(uint64_t before, uint64_t own);

/* What messages call the elements, and what a mean is divided by. */
ONEPASS_INTERNAL const char *onepass_accumulator_unit(const onepass_accumulator *accumulator);
ONEPASS_INTERNAL const char *onepass_accumulator_divided_by(divided_by which);

#endif
