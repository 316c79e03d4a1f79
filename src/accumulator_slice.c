/*
 * Slices of an accumulator. A slice is cut into aligned blocks of tiles; each is computed like a call of its own and is
 * one node of the tree over the whole, whatever comes before or after it. Of tiles that it begins or ends within, the
 * terms are kept. Gradients are written at once, those of torn tiles too.
 */
#include "accumulator.h"
#include "call.h"
#include "float_state.h"
#include "message.h"
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------- what is given -- */

static onepass_status check_slice(const onepass_accumulator *accumulator, const onepass_call *call, const job *job,
                                  int64_t first) {
    const struct job *whole = &accumulator->whole;
    if (job->loss != whole->loss || call->reduction != whole->reduction || call->divisor != accumulator->divisor ||
        memcmp(job->parameter, whole->parameter, sizeof job->parameter) != 0)
        FAIL_ARGUMENT("the call's loss, parameters, reduction or divisor are not those that the accumulator "
                      "began with (for %s); expected the same",
                      whole->loss->info.name);
    if (first < 0)
        FAIL_ARGUMENT("first is %lld; expected the index of the slice's first element in the whole", (long long)first);
    if (first > accumulator->total || job->count > accumulator->total - first)
        FAIL_SHAPE("the slice has %lld elements from %lld on; the accumulator began with %lld in all",
                   (long long)job->count, (long long)first, (long long)accumulator->total);
    return ONEPASS_OK;
}

/* What a slice's mean is divided by in the end. The divisor of a call settles that for all slices, as a sum does. */
static divided_by divided_by_of(const onepass_accumulator *accumulator, const job *job) {
    if (accumulator->whole.reduction != ONEPASS_MEAN || accumulator->divisor != 0)
        return COUNT;
    const divided_by labels = has_labels(job) ? LABELLED | (job->operand[2].data ? CLASS_WEIGHTED : 0) : 0;
    return COUNT | (job->mask.data ? MASKED : 0) | (job->weight.data ? WEIGHTED : 0) | labels;
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
                      onepass_accumulator_divided_by(own), onepass_accumulator_divided_by(accumulator->divided_by));
    return ONEPASS_OK;
}

/* ---------------------------------------------------------------- what is run -- */

/* A slice, cut: first comes the rest of a tile that it begins within, then come whole tiles, then the beginning of one
 * that it ends within. Where the whole ends its last tile is one, too. */
typedef struct cut_slice {
    int64_t first, end;     /* elements */
    int64_t tile, end_tile; /* that are whole */
    torn_tile *torn[2];     /* null where there is none */
    bool over_weights;
} cut_slice;

static cut_slice cut(const onepass_accumulator *accumulator, int64_t first, int64_t count) {
    cut_slice slice = {.first = first, .end = first + count};
    const int64_t end = slice.end;
    slice.tile = first / ORDER_TILE + (first % ORDER_TILE != 0);
    slice.end_tile = end == accumulator->total ? accumulator->known.tiles : end / ORDER_TILE;
    if (slice.end_tile < slice.tile) /* it begins and ends within one tile, which is left to the beginning */
        slice.end_tile = slice.tile;
    return slice;
}

static void free_torn(cut_slice *slice) {
    free(slice->torn[0]);
    free(slice->torn[1]);
}

static onepass_status allocate_torn(const onepass_accumulator *accumulator, int32_t compute, cut_slice *slice) {
    const bool begins = slice->first < elements_before(accumulator, slice->tile);
    const bool ends = slice->end > elements_before(accumulator, slice->end_tile);
    if (begins)
        slice->torn[0] = onepass_torn_new(slice->tile - 1, compute, slice->over_weights);
    if (ends)
        slice->torn[1] = onepass_torn_new(slice->end_tile, compute, slice->over_weights);
    if ((begins && !slice->torn[0]) || (ends && !slice->torn[1])) {
        free_torn(slice);
        return onepass_fail(ONEPASS_OUT_OF_MEMORY, "no memory for the terms of a torn tile of an accumulator");
    }
    return ONEPASS_OK;
}

/* Computes elements first to end - 1 of the whole. */
static onepass_status run_part(const engine *engine, job *job, const cut_slice *slice, int64_t first, int64_t end,
                               torn_tile *torn, order_node *node) {
    job->first = first - slice->first;
    job->count = end - first;
    job->sum = &node->sum;
    job->terms = torn ? torn->terms : NULL;
    OK(engine->run(job));
    if (slice->over_weights) {
        struct job weights;
        onepass_plan_weights(job, &weights);
        weights.sum = &node->weights;
        weights.terms = torn ? onepass_torn_weights(torn) : NULL;
        OK(engine->run(&weights));
    }
    if (torn)
        onepass_torn_place(torn, first % ORDER_TILE, end - first);
    return ONEPASS_OK;
}

/* Computes the slice part by part. Nothing goes into the accumulator before all of it has come out right. */
static onepass_status run_slice(const onepass_accumulator *accumulator, const engine *engine, job *job,
                                const cut_slice *slice, order_node *block, int *blocks) {
    order_node unused;
    const int64_t begin = elements_before(accumulator, slice->tile), end = slice->end;
    if (slice->torn[0])
        OK(run_part(engine, job, slice, slice->first, end < begin ? end : begin, slice->torn[0], &unused));
    *blocks = 0;
    for (int64_t tile = slice->tile; tile < slice->end_tile; (*blocks)++) {
        order_node *own = &block[*blocks];
        *own = (order_node){.first = tile, .level = order_level_of(tile, slice->end_tile)};
        const int64_t next = tile + ((int64_t)1 << own->level);
        OK(run_part(engine, job, slice, elements_before(accumulator, tile), elements_before(accumulator, next), NULL,
                    own));
        tile = next;
    }
    if (slice->torn[1])
        OK(run_part(engine, job, slice, elements_before(accumulator, slice->end_tile), end, slice->torn[1], &unused));
    return ONEPASS_OK;
}

/* A slice has a value, which goes no further than the accumulator. The plan has to know, since some outputs come with a
 * value alone. */
static onepass_status plan_slice(const onepass_accumulator *accumulator, onepass_call *call, job *job) {
    double place;
    const onepass_tensor value = {.data = &place, .dtype = ONEPASS_F64};
    if (call->all_classes)
        return onepass_fail(ONEPASS_NOT_SUPPORTED, "all_classes is set; an accumulator takes rows with all of their "
                                                   "classes, so it must be 0");
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
    OK(onepass_accumulator_check_place(&call));
    OK(plan_slice(accumulator, &call, &job));
    OK(check_slice(accumulator, &call, &job, first));
    if (job.count == 0)
        return ONEPASS_OK;
    const divided_by own = divided_by_of(accumulator, &job);
    OK(onepass_accumulator_check_kind(&accumulator->whole, &job));
    OK(check_weight(accumulator, &job, own));

    const int64_t end = first + job.count;
    if (onepass_accumulator_first_known(accumulator, first, end) < end)
        FAIL_ARGUMENT("%s %lld to %lld were added already, in whole or in part (%lld is the first of them); expected "
                      "new ones",
                      onepass_accumulator_unit(accumulator), (long long)first, (long long)(end - 1),
                      (long long)onepass_accumulator_first_known(accumulator, first, end));
    OK(onepass_check_labels(&job, first)); /* of all parts, before the first one writes anything */
    job.divisor = accumulator->whole.divisor;
    job.over_weights = false; /* not over those of a part */
    /* The blocks wait at the end of the room, which is not the stack's, until they find their places in front. */
    OK(onepass_accumulator_make_room(accumulator, 2 * ORDER_MOST_NODES + 2, 2));
    order_node *block = accumulator->known.node + accumulator->room - ORDER_MOST_NODES;
    cut_slice slice = cut(accumulator, first, job.count);
    slice.over_weights = own > COUNT;
    OK(allocate_torn(accumulator, job.compute, &slice));
    const onepass_status status = run_slice(accumulator, onepass_engine(call.device), &job, &slice, block, &blocks);
    if (status != ONEPASS_OK) {
        free_torn(&slice);
        return status;
    }
    accumulator->divided_by = own;
    accumulator->whole.compute = job.compute;
    if (job.family == FAMILY_ROWS)
        accumulator->whole.rows.classes = job.rows.classes;
    if (job.family == FAMILY_VECTORS)
        accumulator->whole.vectors = job.vectors;
    for (int i = 0; i < blocks; i++)
        order_insert(&accumulator->known, block[i]);
    for (int i = 0; i < 2; i++)
        if (slice.torn[i])
            onepass_accumulator_put_torn(accumulator, slice.torn[i]);
    return ONEPASS_OK;
}

onepass_status onepass_accumulator_add(onepass_accumulator *accumulator, const onepass_call *call, int64_t first) {
    const float_state callers = enter_float_state();
    const onepass_status status = add(accumulator, call, first);
    leave_float_state(callers);
    return status;
}
