/*
 * The accumulator: sums of slices, kept as nodes of the tree of src/order.h, which joins them, and the terms of torn
 * tiles until all of a tile are there. Where the mean is over the sum of the weights, each node and each term has that
 * beside its own. Of a loss over rows, rows are the elements.
 */
#include "accumulator.h"
#include "call.h"
#include "dtype.h"
#include "float_state.h"
#include "message.h"
#include "sized.h"
#include "tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------ what is there -- */

onepass_status onepass_accumulator_make_room(onepass_accumulator *accumulator, int64_t nodes, int64_t torn) {
    order_forest *known = &accumulator->known;
    OK(onepass_torn_make_room(&accumulator->torn, torn));
    if (known->count + nodes <= accumulator->room)
        return ONEPASS_OK;
    const int64_t room = 2 * (known->count + nodes);
    order_node *grown = realloc(known->node, (size_t)room * sizeof *grown);
    if (!grown)
        return onepass_fail(ONEPASS_OUT_OF_MEMORY, "no memory for the %lld partial sums of an accumulator",
                            (long long)room);
    known->node = grown;
    accumulator->room = room;
    return ONEPASS_OK;
}

const char *onepass_accumulator_unit(const onepass_accumulator *accumulator) {
    return accumulator->whole.family == FAMILY_PAIRWISE ? "elements" : "rows";
}

/* Of what slices on GPUs have. */
static int64_t first_pending(const onepass_accumulator *accumulator, int64_t first, int64_t end) {
    int64_t found = end;
    for (const pending_slice *slice = accumulator->pending.slice; slice; slice = slice->next)
        if (slice->first < found && slice->end > first)
            found = slice->first > first ? slice->first : first;
    return found;
}

static int64_t first_taken(const onepass_accumulator *accumulator, int64_t first, int64_t end) {
    const torn_tiles *torn = &accumulator->torn;
    const int64_t tile = first / ORDER_TILE, end_tile = (end - 1) / ORDER_TILE + 1;
    const int64_t node = order_first_known(&accumulator->known, tile, end_tile);
    int64_t found = node < end_tile ? (node == tile ? first : node * ORDER_TILE) : end;
    for (int64_t i = onepass_torn_find(torn, tile); i < torn->count && torn->tile[i]->tile < end_tile; i++) {
        const int64_t before = torn->tile[i]->tile * ORDER_TILE;
        const int64_t from = first > before ? first - before : 0;
        const int64_t next = onepass_torn_next(&torn->tile[i]->has, from, true);
        if (next < ORDER_TILE)
            return before + next < found ? before + next : found;
    }
    return found;
}

int64_t onepass_accumulator_first_known(const onepass_accumulator *accumulator, int64_t first, int64_t end) {
    return first_pending(accumulator, first, first_taken(accumulator, first, end));
}

/* Where the run of known elements ends that this one is in, or the element itself. */
static int64_t end_of_known(const onepass_accumulator *accumulator, int64_t element) {
    const order_forest *known = &accumulator->known;
    const torn_tiles *torn = &accumulator->torn;
    const int64_t tile = element / ORDER_TILE, at = order_place(known, tile + 1), i = onepass_torn_find(torn, tile);
    if (at > 0 && order_node_end(known, &known->node[at - 1]) > tile)
        return elements_before(accumulator, order_node_end(known, &known->node[at - 1]));
    for (const pending_slice *slice = accumulator->pending.slice; slice; slice = slice->next)
        if (slice->first <= element && slice->end > element)
            return slice->end;
    if (i < torn->count && torn->tile[i]->tile == tile)
        return tile * ORDER_TILE + onepass_torn_next(&torn->tile[i]->has, element % ORDER_TILE, false);
    return element;
}

void onepass_accumulator_put_torn(onepass_accumulator *accumulator, torn_tile *torn) {
    torn_tiles *tiles = &accumulator->torn;
    const int64_t at = onepass_torn_find(tiles, torn->tile);
    if (at < tiles->count && tiles->tile[at]->tile == torn->tile) {
        onepass_torn_join(tiles->tile[at], torn);
        free(torn);
    } else {
        onepass_torn_insert(tiles, at, torn);
    }
    torn_tile *joined = tiles->tile[at];
    if (onepass_torn_count(&joined->has) < elements_of_tile(accumulator, joined->tile))
        return;
    order_node node = {.first = joined->tile};
    onepass_torn_sums(joined, &node.sum, &node.weights);
    onepass_torn_remove(tiles, at);
    order_insert(&accumulator->known, node);
}

/* ------------------------------------------------------ what fits together -- */

onepass_status onepass_accumulator_check_place(const onepass_call *call) {
    if (call->flags)
        return onepass_fail(ONEPASS_NOT_SUPPORTED, "flags is %d; an accumulator knows no flags, so it must be 0",
                            call->flags);
    if (call->divisor_tensor || call->divided_by)
        return onepass_fail(ONEPASS_NOT_SUPPORTED,
                            "%s is set; an accumulator takes what a mean is divided by as a number, so it must be null "
                            "and the number, where it is known, the divisor",
                            call->divisor_tensor ? "divisor_tensor" : "divided_by");
    return ONEPASS_OK;
}

onepass_status onepass_accumulator_check_kind(const job *before, const job *own) {
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

onepass_status onepass_accumulator_check_class_weights(uint64_t before, uint64_t own) {
    if (before == own || before == WEIGHTS_UNKNOWN || own == WEIGHTS_UNKNOWN)
        return ONEPASS_OK;
    if (before == WEIGHTS_ABSENT || own == WEIGHTS_ABSENT)
        FAIL_ARGUMENT("what is added has %s class weights, and the slices before had %s; expected the same for all",
                      own == WEIGHTS_ABSENT ? "no" : "its own", before == WEIGHTS_ABSENT ? "none" : "some");
    FAIL_ARGUMENT("what is added has other class weights than the slices before (their fingerprints are %016llx and "
                  "%016llx); expected the same for all",
                  (unsigned long long)own, (unsigned long long)before);
}

const char *onepass_accumulator_divided_by(divided_by which) {
    static const char *const text[2][4] = {{"neither weight nor mask", "a mask", "a weight", "a weight and a mask"},
                                           {"class weights", "class weights and a mask", "class weights and a weight",
                                            "class weights, a weight and a mask"}};
    return text[which / CLASS_WEIGHTED][(which & (MASKED | WEIGHTED)) / MASKED];
}

/* ------------------------------------------------------ begin, merge, finish -- */

onepass_status onepass_accumulator_start(onepass_accumulator **accumulator, const onepass_call *given, int64_t total) {
    onepass_call call;
    job whole = {0};
    if (!accumulator)
        FAIL_ARGUMENT("accumulator is null; expected a place for its pointer");
    OK(onepass_read_call(given, &call));
    OK(onepass_plan_loss(&call, &whole));
    OK(onepass_accumulator_check_place(&call));
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

ARITHMETIC onepass_status begin(onepass_accumulator **accumulator, const onepass_call *call, int64_t total) {
    onepass_succeed();
    return onepass_accumulator_start(accumulator, call, total);
}

static onepass_status fail_whole(const char *what, const char *one, const char *other) {
    FAIL_ARGUMENT("the accumulators are parts of different wholes: %s is %s in one and %s in the other; expected the "
                  "same loss, parameters, reduction, divisor and total",
                  what, one, other);
}

static onepass_status check_number(const char *what, double one, double other) {
    char text[2][32];
    if (one == other)
        return ONEPASS_OK;
    snprintf(text[0], sizeof text[0], "%.17g", one);
    snprintf(text[1], sizeof text[1], "%.17g", other);
    return fail_whole(what, text[0], text[1]);
}

/* Parts of one whole began with the same call and total. */
static onepass_status check_same_whole(const onepass_accumulator *into, const onepass_accumulator *from) {
    static const char *const reductions[] = {[ONEPASS_MEAN] = "mean", [ONEPASS_SUM] = "sum"};
    const job *a = &into->whole, *b = &from->whole;
    if (a->loss != b->loss)
        return fail_whole("the loss", a->loss->info.name, b->loss->info.name);
    if (a->reduction != b->reduction)
        return fail_whole("the reduction", reductions[a->reduction], reductions[b->reduction]);
    if (into->total != from->total)
        FAIL_ARGUMENT("the accumulators are parts of different wholes, of %lld and of %lld %s; expected the same total",
                      (long long)into->total, (long long)from->total, onepass_accumulator_unit(into));
    for (int32_t i = 0; i < a->loss->info.parameter_count; i++)
        OK(check_number(a->loss->info.parameter[i].name, a->parameter[i], b->parameter[i]));
    return check_number("the divisor", into->divisor, from->divisor);
}

static onepass_status check_new(const onepass_accumulator *into, int64_t first, int64_t end) {
    const int64_t known = onepass_accumulator_first_known(into, first, end);
    if (known == end)
        return ONEPASS_OK;
    FAIL_ARGUMENT("%s %lld to %lld were added to both accumulators, in whole or in part (%lld is the first of them); "
                  "expected different slices",
                  onepass_accumulator_unit(into), (long long)first, (long long)(end - 1), (long long)known);
}

/* What both have seen would count twice. */
static onepass_status check_apart(const onepass_accumulator *into, const onepass_accumulator *from) {
    const order_forest *known = &from->known;
    for (int64_t i = 0; i < known->count; i++)
        OK(check_new(into, elements_before(from, known->node[i].first),
                     elements_before(from, order_node_end(known, &known->node[i]))));
    for (int64_t i = 0; i < from->torn.count; i++) {
        const torn_tile *torn = from->torn.tile[i];
        const int64_t before = torn->tile * ORDER_TILE;
        int64_t first = onepass_torn_next(&torn->has, 0, true);
        while (first < ORDER_TILE) {
            const int64_t end = onepass_torn_next(&torn->has, first, false);
            OK(check_new(into, before + first, before + end));
            first = onepass_torn_next(&torn->has, end, true);
        }
    }
    return ONEPASS_OK;
}

/* Copies of another's torn tiles, before anything is changed. They wait at the end of the room. */
static onepass_status copy_torn(const torn_tiles *from, torn_tile **copy) {
    for (int64_t i = 0; i < from->count; i++) {
        copy[i] = onepass_torn_copy(from->tile[i]);
        if (copy[i])
            continue;
        while (i > 0)
            free(copy[--i]);
        return onepass_fail(ONEPASS_OUT_OF_MEMORY, "no memory for the %lld torn tiles of an accumulator",
                            (long long)from->count);
    }
    return ONEPASS_OK;
}

ARITHMETIC onepass_status merge(onepass_accumulator *into, const onepass_accumulator *from) {
    onepass_succeed();
    if (!into || !from)
        FAIL_ARGUMENT("%s is null; expected an accumulator that has begun", into ? "from" : "into");
    OK(check_same_whole(into, from));
    if (into->divided_by != from->divided_by && into->divided_by != UNDECIDED && from->divided_by != UNDECIDED)
        FAIL_ARGUMENT("the slices of one have %s and those of the other %s; expected the same for every slice "
                      "of a mean",
                      onepass_accumulator_divided_by(into->divided_by),
                      onepass_accumulator_divided_by(from->divided_by));
    OK(onepass_accumulator_check_kind(&into->whole, &from->whole));
    OK(onepass_accumulator_check_class_weights(into->class_weights, from->class_weights));
    OK(onepass_accumulator_wait(from));
    OK(check_apart(into, from));
    OK(onepass_accumulator_make_room(into, from->known.count + from->torn.count, 2 * from->torn.count));
    torn_tile **copy = from->torn.count ? into->torn.tile + into->torn.room - from->torn.count : NULL;
    OK(copy_torn(&from->torn, copy));
    if (from->divided_by != UNDECIDED) {
        into->divided_by = from->divided_by;
        into->whole.compute = from->whole.compute;
        into->whole.rows.classes = from->whole.rows.classes;
        into->whole.vectors = from->whole.vectors;
    }
    if (from->class_weights != WEIGHTS_UNKNOWN)
        into->class_weights = from->class_weights;
    for (int64_t i = 0; i < from->known.count; i++)
        order_insert(&into->known, from->known.node[i]);
    for (int64_t i = 0; i < from->torn.count; i++)
        onepass_accumulator_put_torn(into, copy[i]);
    return ONEPASS_OK;
}

/* How much has been added, and the first of what has not. */
typedef struct progress {
    int64_t added, missing, missing_end;
} progress;

static int64_t count_known(const onepass_accumulator *accumulator) {
    const order_forest *known = &accumulator->known;
    int64_t count = 0;
    for (int64_t i = 0; i < known->count; i++)
        count += elements_before(accumulator, order_node_end(known, &known->node[i])) -
                 elements_before(accumulator, known->node[i].first);
    for (int64_t i = 0; i < accumulator->torn.count; i++)
        count += onepass_torn_count(&accumulator->torn.tile[i]->has);
    for (const pending_slice *slice = accumulator->pending.slice; slice; slice = slice->next)
        count += slice->end - slice->first;
    return count;
}

static progress progress_of(const onepass_accumulator *accumulator) {
    const int64_t total = accumulator->total;
    progress progress = {.added = count_known(accumulator), .missing_end = total};
    for (int64_t end = 0; progress.missing < total; progress.missing = end) {
        end = end_of_known(accumulator, progress.missing);
        if (end == progress.missing)
            break;
    }
    if (progress.missing < total)
        progress.missing_end = onepass_accumulator_first_known(accumulator, progress.missing, total);
    return progress;
}

ARITHMETIC onepass_status finish(const onepass_accumulator *accumulator, const onepass_tensor *given) {
    tensor value;
    onepass_succeed();
    if (!accumulator)
        FAIL_ARGUMENT("accumulator is null; expected one that has begun");
    OK(onepass_read_scalar(given, "value", &value));
    const progress progress = progress_of(accumulator);
    if (progress.added < accumulator->total)
        return onepass_fail(
            ONEPASS_INCOMPLETE,
            "%lld of the %lld %s have been added; the first that are missing are %lld to %lld; expected all",
            (long long)progress.added, (long long)accumulator->total, onepass_accumulator_unit(accumulator),
            (long long)progress.missing, (long long)(progress.missing_end - 1));
    OK(onepass_accumulator_wait(accumulator));
    const order_forest *known = &accumulator->known;
    const double sum = known->count ? known->node[0].sum : 0;
    const double divisor = has_weight_sums(accumulator) ? known->node[0].weights : accumulator->whole.divisor;
    store_scalar(value.data, value.dtype, onepass_reduced(accumulator->whole.reduction, sum, divisor));
    return ONEPASS_OK;
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
    const job *whole = &accumulator->whole;
    const progress progress = progress_of(accumulator);
    onepass_accumulator_info own = {.size = info->size,
                                    .loss = whole->loss->info.name,
                                    .reduction = whole->reduction,
                                    .parameter_count = whole->loss->info.parameter_count,
                                    .divisor = accumulator->divisor,
                                    .total = accumulator->total,
                                    .added = progress.added,
                                    .missing = progress.missing,
                                    .missing_end = progress.missing_end,
                                    .compute = whole->compute};
    memcpy(own.parameter, whole->parameter, sizeof own.parameter);
    write_sized(info, info->size, &own, sizeof own);
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
    onepass_pending_drop(&accumulator->pending);
    onepass_torn_free(&accumulator->torn);
    free(accumulator->known.node);
    free(accumulator);
}
