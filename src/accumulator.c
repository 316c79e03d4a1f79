/*
 * The accumulator: sums of slices, kept as nodes of the tree of src/order.h.
 *
 * A slice is cut into aligned blocks of tiles. Each is computed like a call of its
 * own and is one node of the tree over the whole, whatever comes before or after
 * it; order.h joins them. Where the mean is over the sum of the weights, each node
 * has that beside its own. Of a loss over rows, rows are the elements.
 */
#include "call.h"
#include "dtype.h"
#include "float_state.h"
#include "message.h"
#include "order.h"
#include "plan/plan.h"
#include "sized.h"
#include "tensor.h"

#include <stdlib.h>
#include <string.h>

/* What a mean is divided by. Its slices have weights or none of them has, and so with masks; the first one that is
 * added says so. */
typedef enum divided_by {
    UNDECIDED = 0,
    COUNT = 1, /* or the call's divisor, unless one of the others says more */
    MASKED = 2,
    WEIGHTED = 4,
    LABELLED = 8 /* by what the rows' class indices count for */
} divided_by;

struct onepass_accumulator {
    job whole; /* loss, parameters, reduction, the divisor that the mean is divided by; compute is 0 before a slice */
    double divisor; /* as the call gave it: 0 for the total */
    int64_t total;
    divided_by divided_by;
    order_forest known;
    int64_t room; /* for nodes */
};

static onepass_status make_room(onepass_accumulator *accumulator, int64_t more) {
    order_forest *known = &accumulator->known;
    if (known->count + more <= accumulator->room)
        return ONEPASS_OK;
    const int64_t room = 2 * (known->count + more);
    order_node *grown = realloc(known->node, (size_t)room * sizeof *grown);
    if (!grown)
        return onepass_fail(ONEPASS_OUT_OF_MEMORY, "no memory for the %lld partial sums of an accumulator",
                            (long long)room);
    known->node = grown;
    accumulator->room = room;
    return ONEPASS_OK;
}

/* ------------------------------------------------------------------- slices -- */

static onepass_status check_place(const onepass_call *call) {
    if (call->flags)
        return onepass_fail(ONEPASS_NOT_SUPPORTED, "flags is %d; an accumulator knows no flags, so it must be 0",
                            call->flags);
    if (call->divisor_tensor || call->divided_by)
        return onepass_fail(ONEPASS_NOT_SUPPORTED,
                            "%s is set; an accumulator takes what a mean is divided by as a number, so it must be null "
                            "and the number, where it is known, the divisor",
                            call->divisor_tensor ? "divisor_tensor" : "divided_by");
    if (call->device != ONEPASS_CPU)
        return onepass_fail(ONEPASS_NOT_SUPPORTED,
                            "device is ONEPASS_CUDA; an accumulator adds up on the CPU, so expected ONEPASS_CPU and "
                            "memory of the CPU");
    return ONEPASS_OK;
}

static onepass_status check_slice(const onepass_accumulator *accumulator, const onepass_call *call, const job *job,
                                  int64_t first) {
    const struct job *whole = &accumulator->whole;
    if (job->loss != whole->loss || call->reduction != whole->reduction || call->divisor != accumulator->divisor ||
        memcmp(job->parameter, whole->parameter, sizeof job->parameter) != 0)
        FAIL_ARGUMENT("the call's loss, parameters, reduction or divisor are not those that the accumulator "
                      "began with (for %s); expected the same",
                      whole->loss->info.name);
    if (first < 0 || first % ORDER_TILE != 0)
        FAIL_ARGUMENT("first is %lld; expected a multiple of ONEPASS_TILE (%d)", (long long)first, ORDER_TILE);
    if (first > accumulator->total || job->count > accumulator->total - first)
        FAIL_SHAPE("the slice has %lld elements from %lld on; the accumulator began with %lld in all",
                   (long long)job->count, (long long)first, (long long)accumulator->total);
    if (job->count % ORDER_TILE != 0 && first + job->count != accumulator->total)
        FAIL_SHAPE("the slice from %lld on has %lld elements; expected a multiple of ONEPASS_TILE (%d), "
                   "since it is not the last",
                   (long long)first, (long long)job->count, ORDER_TILE);
    return ONEPASS_OK;
}

static bool has_labels(const job *job) {
    return job->family == FAMILY_ROWS && job->loss->kind != ROW_PROBABILITIES;
}

/* What a slice's mean is divided by in the end. The divisor of a call settles that for all slices, as a sum does. */
static divided_by divided_by_of(const onepass_accumulator *accumulator, const job *job) {
    if (accumulator->whole.reduction != ONEPASS_MEAN || accumulator->divisor != 0)
        return COUNT;
    return COUNT | (job->mask.data ? MASKED : 0) | (job->weight.data ? WEIGHTED : 0) | (has_labels(job) ? LABELLED : 0);
}

/* The type that slices are computed in is one, as that of a call is, and so is the number of classes; the first slice
 * that is added settles them. */
static onepass_status check_kind(const job *before, const job *own) {
    if (before->compute == 0 || own->compute == 0)
        return ONEPASS_OK;
    if (before->compute != own->compute)
        FAIL_ARGUMENT("what is added is computed in %s, by the types of its operands and weight, but the slices "
                      "before were in %s; expected one for all",
                      own->compute == ONEPASS_F64 ? "double" : "float",
                      before->compute == ONEPASS_F64 ? "double" : "float");
    if (own->family == FAMILY_ROWS && before->rows.classes != own->rows.classes)
        FAIL_SHAPE("what is added has %lld classes, but the slices before had %lld; expected the same for all",
                   (long long)own->rows.classes, (long long)before->rows.classes);
    if (own->family == FAMILY_VECTORS && before->vectors.length != own->vectors.length)
        FAIL_SHAPE(
            "what is added has vectors of %lld elements, but the slices before had %lld; expected the same for all",
            (long long)own->vectors.length, (long long)before->vectors.length);
    return ONEPASS_OK;
}

static const char *divided_by_text(divided_by which) {
    static const char *const text[] = {"neither weight nor mask", "a mask", "a weight", "a weight and a mask"};
    return text[(which & (MASKED | WEIGHTED)) / MASKED];
}

static onepass_status check_weight(const onepass_accumulator *accumulator, const job *job, divided_by own) {
    bool wants_gradient = false;
    for (int32_t k = 0; k < ONEPASS_MAX_OPERANDS; k++)
        wants_gradient |= job->gradient[k].data != NULL;
    if (own > COUNT && wants_gradient)
        FAIL_ARGUMENT("gradients of a %s are divided by %s, which is not known before the last slice; expected it as "
                      "divisor, or no gradients",
                      own & LABELLED ? "mean over class indices" : "weighted or masked mean",
                      own & LABELLED ? "the sum of what all rows count for"
                                     : "the sum of all weights or the number of elements that take part");
    if (accumulator->divided_by != UNDECIDED && accumulator->divided_by != own)
        FAIL_ARGUMENT("the slice has %s, but the slices before had %s; expected the same for every slice of a mean",
                      divided_by_text(own), divided_by_text(accumulator->divided_by));
    return ONEPASS_OK;
}

/* Computes the slice block by block. Nothing goes into the accumulator before all of it has come out right. */
static onepass_status run_blocks(const engine *engine, job *job, bool over_weights, int64_t tile, int64_t end,
                                 order_node *block, int *blocks) {
    const int64_t slice_first = tile, slice_count = job->count;
    for (*blocks = 0; tile < end; (*blocks)++) {
        order_node *own = &block[*blocks];
        *own = (order_node){.first = tile, .level = order_level_of(tile, end)};
        job->first = (tile - slice_first) * ORDER_TILE;
        const int64_t length = (int64_t)ORDER_TILE << own->level;
        job->count = slice_count - job->first < length ? slice_count - job->first : length;
        job->sum = &own->sum;
        OK(engine->run(job));
        if (over_weights) {
            struct job weights;
            onepass_plan_weights(job, &weights);
            weights.sum = &own->weights;
            OK(engine->run(&weights));
        }
        tile += (int64_t)1 << own->level;
    }
    return ONEPASS_OK;
}

/* A slice has a value, which goes no further than the accumulator. The plan has to know, since some outputs come with a
 * value alone. */
static onepass_status plan_slice(const onepass_accumulator *accumulator, onepass_call *call, job *job) {
    double place;
    const onepass_tensor value = {.data = &place, .dtype = ONEPASS_F64};
    if (call->value)
        FAIL_ARGUMENT("value is set; expected null, since the value comes from onepass_accumulator_finish");
    if (call->reduction == accumulator->whole.reduction)
        call->value = &value;
    const onepass_status status = onepass_plan(call, job);
    call->value = NULL;
    job->value.data = NULL;
    return status;
}

ARITHMETIC onepass_status add(onepass_accumulator *accumulator, const onepass_call *given, int64_t first) {
    onepass_call call;
    job job;
    int blocks = 0;
    onepass_succeed();
    if (!accumulator)
        FAIL_ARGUMENT("accumulator is null; expected one that has begun");
    OK(onepass_read_call(given, &call));
    OK(check_place(&call));
    OK(plan_slice(accumulator, &call, &job));
    OK(check_slice(accumulator, &call, &job, first));
    if (job.count == 0)
        return ONEPASS_OK;
    const divided_by own = divided_by_of(accumulator, &job);
    OK(check_kind(&accumulator->whole, &job));
    OK(check_weight(accumulator, &job, own));

    order_forest *known = &accumulator->known;
    const int64_t tile = first / ORDER_TILE, end = tile + (job.count - 1) / ORDER_TILE + 1;
    if (order_has_some(known, tile, end))
        FAIL_ARGUMENT("elements %lld to %lld were added already, in whole or in part; expected new ones",
                      (long long)first, (long long)(first + job.count - 1));
    OK(onepass_check_labels(&job, first)); /* of all blocks, before the first one writes anything */
    job.divisor = accumulator->whole.divisor;
    job.over_weights = false; /* not over those of a block */
    /* The blocks wait at the end of the room, which is not the stack's, until they find their places in front. */
    OK(make_room(accumulator, 2 * ORDER_MOST_NODES));
    order_node *block = known->node + accumulator->room - ORDER_MOST_NODES;
    OK(run_blocks(onepass_engine(call.device), &job, own > COUNT, tile, end, block, &blocks));
    accumulator->divided_by = own;
    accumulator->whole.compute = job.compute;
    if (job.family == FAMILY_ROWS)
        accumulator->whole.rows.classes = job.rows.classes;
    if (job.family == FAMILY_VECTORS)
        accumulator->whole.vectors = job.vectors;
    for (int i = 0; i < blocks; i++)
        order_insert(known, block[i]);
    return ONEPASS_OK;
}

/* ------------------------------------------------------ begin, merge, finish -- */

ARITHMETIC onepass_status begin(onepass_accumulator **accumulator, const onepass_call *given, int64_t total) {
    onepass_call call;
    job whole = {0};
    onepass_succeed();
    if (!accumulator)
        FAIL_ARGUMENT("accumulator is null; expected a place for its pointer");
    OK(onepass_read_call(given, &call));
    OK(onepass_plan_loss(&call, &whole));
    OK(check_place(&call));
    if (whole.reduction == ONEPASS_BATCHMEAN)
        FAIL_ARGUMENT("reduction is ONEPASS_BATCHMEAN, but the whole's batch is not known to an accumulator; "
                      "expected ONEPASS_MEAN with its size as the divisor");
    if (whole.reduction == ONEPASS_NONE)
        FAIL_ARGUMENT("reduction is ONEPASS_NONE, which has no sum; expected ONEPASS_MEAN or ONEPASS_SUM");
    if (total < 0)
        FAIL_ARGUMENT("total is %lld; expected the number of elements of the whole", (long long)total);
    onepass_accumulator *new = calloc(1, sizeof *new);
    if (!new)
        return onepass_fail(ONEPASS_OUT_OF_MEMORY, "no memory for an accumulator");
    new->whole = whole;
    new->divisor = call.divisor;
    new->total = total;
    new->known.tiles = total / ORDER_TILE + (total % ORDER_TILE != 0);
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
        FAIL_ARGUMENT("%s is null; expected an accumulator that has begun", into ? "from" : "into");
    if (!same_whole(into, from))
        FAIL_ARGUMENT("the accumulators began with different calls or totals (%lld and %lld elements); expected "
                      "the same loss, parameters, reduction, divisor and total",
                      (long long)into->total, (long long)from->total);
    if (into->divided_by != from->divided_by && into->divided_by != UNDECIDED && from->divided_by != UNDECIDED)
        FAIL_ARGUMENT("the slices of into have %s and those of from have %s; expected the same for every slice "
                      "of a mean",
                      divided_by_text(into->divided_by), divided_by_text(from->divided_by));
    OK(check_kind(&into->whole, &from->whole));
    for (int64_t i = 0; i < from->known.count; i++) {
        const order_node *node = &from->known.node[i];
        if (order_has_some(&into->known, node->first, order_node_end(&from->known, node)))
            FAIL_ARGUMENT("elements from %lld on were added to both accumulators; expected different slices",
                          (long long)node->first * ORDER_TILE);
    }
    OK(make_room(into, from->known.count));
    if (from->divided_by != UNDECIDED) {
        into->divided_by = from->divided_by;
        into->whole.compute = from->whole.compute;
        into->whole.rows.classes = from->whole.rows.classes;
        into->whole.vectors = from->whole.vectors;
    }
    for (int64_t i = 0; i < from->known.count; i++)
        order_insert(&into->known, from->known.node[i]);
    return ONEPASS_OK;
}

ARITHMETIC onepass_status finish(const onepass_accumulator *accumulator, const onepass_tensor *given) {
    tensor value;
    onepass_succeed();
    if (!accumulator)
        FAIL_ARGUMENT("accumulator is null; expected one that has begun");
    OK(onepass_read_scalar(given, "value", &value));
    const order_forest *known = &accumulator->known;
    int64_t tiles = 0;
    for (int64_t i = 0; i < known->count; i++)
        tiles += order_node_end(known, &known->node[i]) - known->node[i].first;
    if (tiles != known->tiles)
        return onepass_fail(ONEPASS_INCOMPLETE, "%lld of the %lld tiles of %d elements have been added; expected all",
                            (long long)tiles, (long long)known->tiles, ORDER_TILE);
    const double sum = known->count ? known->node[0].sum : 0;
    const double divisor = accumulator->divided_by > COUNT ? known->node[0].weights : accumulator->whole.divisor;
    store_scalar(value.data, value.dtype, onepass_reduced(accumulator->whole.reduction, sum, divisor));
    return ONEPASS_OK;
}

/* ------------------------------------------------------------------- describe -- */

static int64_t added_elements(const onepass_accumulator *accumulator) {
    const order_forest *known = &accumulator->known;
    int64_t added = 0;
    for (int64_t i = 0; i < known->count; i++) {
        const int64_t end = order_node_end(known, &known->node[i]);
        added += (end == known->tiles ? accumulator->total : end * ORDER_TILE) - known->node[i].first * ORDER_TILE;
    }
    return added;
}

onepass_status onepass_accumulator_describe(const onepass_accumulator *accumulator, onepass_accumulator_info *info) {
    onepass_succeed();
    if (!accumulator)
        FAIL_ARGUMENT("accumulator is null; expected one that has begun");
    if (!info)
        FAIL_ARGUMENT("info is null; expected a pointer to an onepass_accumulator_info");
    if (!is_plausible_size(info->size, ACCUMULATOR_INFO_FIRST_SIZE))
        FAIL_ARGUMENT("info.size is %zu; expected sizeof(onepass_accumulator_info), which is %zu here", info->size,
                      sizeof *info);
    onepass_accumulator_info all = {.size = info->size,
                                    .loss = accumulator->whole.loss->info.name,
                                    .reduction = accumulator->whole.reduction,
                                    .parameter_count = accumulator->whole.loss->info.parameter_count,
                                    .divisor = accumulator->divisor,
                                    .total = accumulator->total,
                                    .added = added_elements(accumulator)};
    memcpy(all.parameter, accumulator->whole.parameter, sizeof all.parameter);
    write_sized(info, info->size, &all, sizeof all);
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
    free(accumulator->known.node);
    free(accumulator);
}
