/*
 * The accumulator: sums of slices, kept as nodes of the tree of src/order.h.
 *
 * A slice is cut into aligned blocks of tiles. Each is computed like a call of its
 * own and is one node of the tree over the whole, whatever comes before or after
 * it; two nodes that are siblings become their parent at once. So the state is as
 * small as the gaps between the slices allow, and the last node left is the sum.
 * Where the mean is over the sum of the weights, each node has that beside its own.
 */
#include "engine.h"
#include "float_state.h"
#include "order.h"

#include <stdlib.h>
#include <string.h>

typedef struct node {
    int64_t first; /* tile */
    int level;
    double sum;
    double weights; /* 0 where nobody will divide by them */
} node;

/* A mean's slices have weights or none of them has, and so with masks; the first one that is added says so. */
typedef enum divided_by {
    UNDECIDED,
    COUNT, /* or the call's divisor */
    MASKED_COUNT,
    WEIGHTS,
    MASKED_WEIGHTS
} divided_by;

struct onepass_accumulator {
    job whole; /* loss, parameters, reduction, the divisor that the mean is divided by; compute is 0 before a slice */
    double divisor; /* as the call gave it: 0 for the total */
    int64_t total;
    int64_t tiles;
    divided_by divided_by;
    int64_t count, room;
    node *node; /* by their first tile */
};

/* The most aligned blocks that a span of tiles can fall into: one of each size on the way up and down. */
#define MOST_BLOCKS (2 * ORDER_MAX_LEVELS)

/* ------------------------------------------------------------------- nodes -- */

/* One past the last tile: beyond the end there is nothing, at any level. */
static int64_t node_end(const onepass_accumulator *accumulator, const node *node) {
    const int64_t left = accumulator->tiles - node->first;
    return node->level >= 62 || left <= (int64_t)1 << node->level ? accumulator->tiles
                                                                  : node->first + ((int64_t)1 << node->level);
}

/* Where a node that begins at this tile is or belongs. */
static int64_t node_place(const onepass_accumulator *accumulator, int64_t first) {
    int64_t low = 0, high = accumulator->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (accumulator->node[middle].first < first)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool was_added(const onepass_accumulator *accumulator, int64_t first, int64_t end) {
    const int64_t at = node_place(accumulator, first);
    return (at > 0 && node_end(accumulator, &accumulator->node[at - 1]) > first) ||
           (at < accumulator->count && accumulator->node[at].first < end);
}

static onepass_status make_room(onepass_accumulator *accumulator, int64_t more) {
    if (accumulator->count + more <= accumulator->room)
        return ONEPASS_OK;
    const int64_t room = 2 * (accumulator->count + more);
    node *grown = realloc(accumulator->node, (size_t)room * sizeof *grown);
    if (!grown)
        return onepass_fail(ONEPASS_OUT_OF_MEMORY, "no memory for the %lld partial sums of an accumulator",
                            (long long)room);
    accumulator->node = grown;
    accumulator->room = room;
    return ONEPASS_OK;
}

/* Climbs from a node as far as the tree is known: with its sibling, or alone where there can be none. */
static void climb(onepass_accumulator *accumulator, int64_t at) {
    for (;;) {
        node *own = &accumulator->node[at];
        if (own->first == 0 && node_end(accumulator, own) == accumulator->tiles)
            return;
        const int64_t length = (int64_t)1 << own->level;
        const bool is_right = own->first & length;
        if (!is_right && own->first + length >= accumulator->tiles) {
            own->level++;
            continue;
        }
        const int64_t left = is_right ? at - 1 : at;
        if (left < 0 || left + 1 >= accumulator->count)
            return;
        node *pair = &accumulator->node[left];
        if (pair[0].level != own->level || pair[1].level != own->level || pair[1].first != pair[0].first + length)
            return;
        pair[0].sum = pair[0].sum + pair[1].sum;
        pair[0].weights = pair[0].weights + pair[1].weights;
        pair[0].level++;
        accumulator->count--;
        memmove(pair + 1, pair + 2, (size_t)(accumulator->count - left - 1) * sizeof *pair);
        at = left;
    }
}

/* There must be room for it. */
static void insert(onepass_accumulator *accumulator, node new) {
    const int64_t at = node_place(accumulator, new.first);
    node *place = &accumulator->node[at];
    memmove(place + 1, place, (size_t)(accumulator->count - at) * sizeof *place);
    *place = new;
    accumulator->count++;
    climb(accumulator, at);
}

/* ------------------------------------------------------------------- slices -- */

/* The largest aligned block that begins at a tile and ends within the slice. */
static int block_level(int64_t tile, int64_t end) {
    int level = 0;
    while (level < 61 && !(tile >> level & 1) && end - tile >= (int64_t)2 << level)
        level++;
    return level;
}

static onepass_status check_place(const onepass_call *call) {
    if (call->flags)
        return onepass_fail(ONEPASS_NOT_SUPPORTED, "flags is %d; an accumulator knows no flags, so it must be 0",
                            call->flags);
    if (call->device != ONEPASS_CPU)
        return onepass_fail(ONEPASS_NOT_SUPPORTED,
                            "device is ONEPASS_CUDA; an accumulator adds up on the CPU, so expected ONEPASS_CPU and "
                            "memory of the CPU");
    return ONEPASS_OK;
}

static onepass_status check_slice(const onepass_accumulator *accumulator, const onepass_call *call, const job *job,
                                  int64_t first) {
    const struct job *whole = &accumulator->whole;
    if (call->value)
        return onepass_fail(ONEPASS_INVALID_ARGUMENT,
                            "value is set; expected null, since the value comes from onepass_accumulator_finish");
    if (job->loss != whole->loss || call->reduction != whole->reduction || call->divisor != accumulator->divisor ||
        memcmp(job->parameter, whole->parameter, sizeof job->parameter) != 0)
        return onepass_fail(ONEPASS_INVALID_ARGUMENT,
                            "the call's loss, parameters, reduction or divisor are not those that the accumulator "
                            "began with (for %s); expected the same",
                            whole->loss->info.name);
    if (first < 0 || first % ORDER_TILE != 0)
        return onepass_fail(ONEPASS_INVALID_ARGUMENT, "first is %lld; expected a multiple of ONEPASS_TILE (%d)",
                            (long long)first, ORDER_TILE);
    if (first > accumulator->total || job->count > accumulator->total - first)
        return onepass_fail(ONEPASS_INVALID_SHAPE,
                            "the slice has %lld elements from %lld on; the accumulator began with %lld in all",
                            (long long)job->count, (long long)first, (long long)accumulator->total);
    if (job->count % ORDER_TILE != 0 && first + job->count != accumulator->total)
        return onepass_fail(ONEPASS_INVALID_SHAPE,
                            "the slice from %lld on has %lld elements; expected a multiple of ONEPASS_TILE (%d), "
                            "since it is not the last",
                            (long long)first, (long long)job->count, ORDER_TILE);
    return ONEPASS_OK;
}

/* What a slice's mean is divided by in the end. The divisor of a call settles that for all slices, as a sum does. */
static divided_by divided_by_of(const onepass_accumulator *accumulator, const job *job) {
    if (accumulator->whole.reduction != ONEPASS_MEAN || accumulator->divisor != 0)
        return COUNT;
    if (job->mask.data)
        return job->weight.data ? MASKED_WEIGHTS : MASKED_COUNT;
    return job->weight.data ? WEIGHTS : COUNT;
}

/* The type that slices are computed in is one, as that of a call is; the first one that is added settles it. */
static onepass_status check_compute(int32_t before, int32_t own) {
    if (before == 0 || own == 0 || before == own)
        return ONEPASS_OK;
    return onepass_fail(ONEPASS_INVALID_ARGUMENT,
                        "what is added is computed in %s, by the types of its operands and weight, but the slices "
                        "before were in %s; expected one for all",
                        own == ONEPASS_F64 ? "double" : "float", before == ONEPASS_F64 ? "double" : "float");
}

static const char *divided_by_text(divided_by which) {
    static const char *const text[] = {"nothing", "neither weight nor mask", "a mask", "a weight",
                                       "a weight and a mask"};
    return text[which];
}

static onepass_status check_weight(const onepass_accumulator *accumulator, const job *job, divided_by own) {
    bool wants_gradient = false;
    for (int32_t k = 0; k < ONEPASS_MAX_OPERANDS; k++)
        wants_gradient |= job->gradient[k].data != NULL;
    if (own > COUNT && wants_gradient)
        return onepass_fail(
            ONEPASS_INVALID_ARGUMENT,
            "gradients of a weighted or masked mean are divided by the sum of all weights or the number "
            "of elements that take part, which is not known before the last slice; expected it as "
            "divisor, or no gradients");
    if (accumulator->divided_by != UNDECIDED && accumulator->divided_by != own)
        return onepass_fail(
            ONEPASS_INVALID_ARGUMENT,
            "the slice has %s, but the slices before had %s; expected the same for every slice of a mean",
            divided_by_text(own), divided_by_text(accumulator->divided_by));
    return ONEPASS_OK;
}

/* Computes the slice block by block. Nothing goes into the accumulator before all of it has come out right. */
static onepass_status run_blocks(job *job, bool over_weights, int64_t tile, int64_t end, node *block, int *blocks) {
    const int64_t slice_first = tile, slice_count = job->count;
    onepass_status status = ONEPASS_OK;
    for (*blocks = 0; tile < end && status == ONEPASS_OK; (*blocks)++) {
        const int level = block_level(tile, end);
        block[*blocks] = (node){.first = tile, .level = level};
        job->first = (tile - slice_first) * ORDER_TILE;
        const int64_t length = (int64_t)ORDER_TILE << level;
        job->count = slice_count - job->first < length ? slice_count - job->first : length;
        job->sum = &block[*blocks].sum;
        status = onepass_cpu_engine.run(job);
        if (over_weights && status == ONEPASS_OK) {
            struct job weights;
            onepass_plan_weights(job, &weights);
            weights.sum = &block[*blocks].weights;
            status = onepass_cpu_engine.run(&weights);
        }
        tile += (int64_t)1 << level;
    }
    return status;
}

ARITHMETIC onepass_status add(onepass_accumulator *accumulator, const onepass_call *given, int64_t first) {
    onepass_call call;
    job job;
    int blocks = 0;
    onepass_succeed();
    if (!accumulator)
        return onepass_fail(ONEPASS_INVALID_ARGUMENT, "accumulator is null; expected one that has begun");
    onepass_status status = onepass_read_call(given, &call);
    if (status == ONEPASS_OK)
        status = onepass_plan(&call, &job);
    if (status == ONEPASS_OK)
        status = check_place(&call);
    if (status == ONEPASS_OK)
        status = check_slice(accumulator, &call, &job, first);
    if (status != ONEPASS_OK || job.count == 0)
        return status;
    const divided_by own = divided_by_of(accumulator, &job);
    status = check_compute(accumulator->whole.compute, job.compute);
    if (status == ONEPASS_OK)
        status = check_weight(accumulator, &job, own);
    if (status != ONEPASS_OK)
        return status;

    const int64_t tile = first / ORDER_TILE, end = tile + (job.count - 1) / ORDER_TILE + 1;
    if (was_added(accumulator, tile, end))
        return onepass_fail(ONEPASS_INVALID_ARGUMENT,
                            "elements %lld to %lld were added already, in whole or in part; expected new ones",
                            (long long)first, (long long)(first + job.count - 1));
    job.divisor = accumulator->whole.divisor;
    job.over_weights = false; /* not over those of a block */
    /* The blocks wait at the end of the room, which is not the stack's, until they find their places in front. */
    status = make_room(accumulator, 2 * MOST_BLOCKS);
    if (status != ONEPASS_OK)
        return status;
    node *block = accumulator->node + accumulator->room - MOST_BLOCKS;
    status = run_blocks(&job, own > COUNT, tile, end, block, &blocks);
    if (status == ONEPASS_OK) {
        accumulator->divided_by = own;
        accumulator->whole.compute = job.compute;
    }
    for (int i = 0; i < blocks && status == ONEPASS_OK; i++)
        insert(accumulator, block[i]);
    return status;
}

/* ------------------------------------------------------ begin, merge, finish -- */

ARITHMETIC onepass_status begin(onepass_accumulator **accumulator, const onepass_call *given, int64_t total) {
    onepass_call call;
    job whole = {0};
    onepass_succeed();
    if (!accumulator)
        return onepass_fail(ONEPASS_INVALID_ARGUMENT, "accumulator is null; expected a place for its pointer");
    onepass_status status = onepass_read_call(given, &call);
    if (status == ONEPASS_OK)
        status = onepass_plan_loss(&call, &whole);
    if (status == ONEPASS_OK)
        status = check_place(&call);
    if (status != ONEPASS_OK)
        return status;
    if (whole.reduction == ONEPASS_BATCHMEAN)
        return onepass_fail(ONEPASS_INVALID_ARGUMENT,
                            "reduction is ONEPASS_BATCHMEAN, but the whole's batch is not known to an accumulator; "
                            "expected ONEPASS_MEAN with its size as the divisor");
    if (whole.reduction == ONEPASS_NONE)
        return onepass_fail(ONEPASS_INVALID_ARGUMENT,
                            "reduction is ONEPASS_NONE, which has no sum; expected ONEPASS_MEAN or ONEPASS_SUM");
    if (total < 0)
        return onepass_fail(ONEPASS_INVALID_ARGUMENT, "total is %lld; expected the number of elements of the whole",
                            (long long)total);
    onepass_accumulator *new = calloc(1, sizeof *new);
    if (!new)
        return onepass_fail(ONEPASS_OUT_OF_MEMORY, "no memory for an accumulator");
    new->whole = whole;
    new->divisor = call.divisor;
    new->total = total;
    new->tiles = total / ORDER_TILE + (total % ORDER_TILE != 0);
    if (whole.divisor == 0)
        new->whole.divisor = (double)total;
    *accumulator = new;
    return ONEPASS_OK;
}

static bool same_whole(const onepass_accumulator *a, const onepass_accumulator *b) {
    return a->total == b->total && a->whole.loss == b->whole.loss && a->whole.reduction == b->whole.reduction &&
           a->divisor == b->divisor && memcmp(a->whole.parameter, b->whole.parameter, sizeof a->whole.parameter) == 0;
}

ARITHMETIC onepass_status merge(onepass_accumulator *into, const onepass_accumulator *from) {
    onepass_succeed();
    if (!into || !from)
        return onepass_fail(ONEPASS_INVALID_ARGUMENT, "%s is null; expected an accumulator that has begun",
                            into ? "from" : "into");
    if (!same_whole(into, from))
        return onepass_fail(ONEPASS_INVALID_ARGUMENT,
                            "the accumulators began with different calls or totals (%lld and %lld elements); expected "
                            "the same loss, parameters, reduction, divisor and total",
                            (long long)into->total, (long long)from->total);
    if (into->divided_by != from->divided_by && into->divided_by != UNDECIDED && from->divided_by != UNDECIDED)
        return onepass_fail(ONEPASS_INVALID_ARGUMENT,
                            "the slices of into have %s and those of from have %s; expected the same for every slice "
                            "of a mean",
                            divided_by_text(into->divided_by), divided_by_text(from->divided_by));
    onepass_status status = check_compute(into->whole.compute, from->whole.compute);
    if (status != ONEPASS_OK)
        return status;
    for (int64_t i = 0; i < from->count; i++)
        if (was_added(into, from->node[i].first, node_end(from, &from->node[i])))
            return onepass_fail(ONEPASS_INVALID_ARGUMENT,
                                "elements from %lld on were added to both accumulators; expected different slices",
                                (long long)from->node[i].first * ORDER_TILE);
    status = make_room(into, from->count);
    if (status == ONEPASS_OK && from->divided_by != UNDECIDED) {
        into->divided_by = from->divided_by;
        into->whole.compute = from->whole.compute;
    }
    for (int64_t i = 0; i < from->count && status == ONEPASS_OK; i++)
        insert(into, from->node[i]);
    return status;
}

ARITHMETIC onepass_status finish(const onepass_accumulator *accumulator, const onepass_tensor *value) {
    view view;
    onepass_succeed();
    if (!accumulator)
        return onepass_fail(ONEPASS_INVALID_ARGUMENT, "accumulator is null; expected one that has begun");
    const onepass_status status = onepass_plan_scalar(value, "value", &view);
    if (status != ONEPASS_OK)
        return status;
    int64_t known = 0;
    for (int64_t i = 0; i < accumulator->count; i++)
        known += node_end(accumulator, &accumulator->node[i]) - accumulator->node[i].first;
    if (known != accumulator->tiles)
        return onepass_fail(ONEPASS_INCOMPLETE, "%lld of the %lld tiles of %d elements have been added; expected all",
                            (long long)known, (long long)accumulator->tiles, ORDER_TILE);
    const double sum = accumulator->count ? accumulator->node[0].sum : 0;
    const double divisor = accumulator->divided_by > COUNT ? accumulator->node[0].weights : accumulator->whole.divisor;
    onepass_cpu_finish(&view, sum, accumulator->whole.reduction, divisor);
    return ONEPASS_OK;
}

/* --------------------------------------------------------------- the ways in -- */

/* Each in our own floating-point state from its first comparison on: flushed to zero, the divisor of a call may look
 * like one that was not given. */

onepass_status onepass_accumulator_begin(onepass_accumulator **accumulator, const onepass_call *call, int64_t total) {
    const float_state callers = enter_float_state();
    const onepass_status status = begin(accumulator, call, total);
    leave_float_state(callers);
    return status;
}

onepass_status onepass_accumulator_add(onepass_accumulator *accumulator, const onepass_call *call, int64_t first) {
    const float_state callers = enter_float_state();
    const onepass_status status = add(accumulator, call, first);
    leave_float_state(callers);
    return status;
}

onepass_status onepass_accumulator_merge(onepass_accumulator *into, const onepass_accumulator *from) {
    const float_state callers = enter_float_state();
    const onepass_status status = merge(into, from);
    leave_float_state(callers);
    return status;
}

onepass_status onepass_accumulator_finish(const onepass_accumulator *accumulator, const onepass_tensor *value) {
    const float_state callers = enter_float_state();
    const onepass_status status = finish(accumulator, value);
    leave_float_state(callers);
    return status;
}

void onepass_accumulator_destroy(onepass_accumulator *accumulator) {
    if (!accumulator)
        return;
    free(accumulator->node);
    free(accumulator);
}
