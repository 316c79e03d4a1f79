/*
 * Slices of an accumulator. A slice is cut into aligned blocks of tiles; each is computed like a call of its own and is
 * one node of the tree over the whole, whatever comes before or after it. Of tiles that it begins or ends within, the
 * terms are kept. Gradients are written at once, those of torn tiles too. What a GPU computes is taken in later.
 */
#include "accumulator.h"
#include "call.h"
#include "dtype.h"
#include "float_state.h"
#include "message.h"
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(MOST_PARTS == ORDER_MOST_NODES + 2, "nodes, and what is torn at both ends");

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

/* Of the numbers and not of their type: a slice may have the same in another. Every step maps numbers, and what came
 * before, one to one, so that no change of one number goes unnoticed. */
ARITHMETIC uint64_t fingerprint_of(const void *weights, int32_t dtype, int64_t stride, int64_t count) {
    uint64_t found = (uint64_t)count;
    for (int64_t i = 0; i < count; i++) {
        const double x = load_scalar((const char *)weights + i * stride * (int64_t)dtype_size(dtype), dtype);
        uint64_t bits = UINT64_C(0x7ff8000000000000);
        if (x == x)
            memcpy(&bits, &x, sizeof bits);
        found = (found ^ bits) * UINT64_C(0x9e3779b97f4a7c15);
        found ^= found >> 32;
    }
    return found > WEIGHTS_ABSENT ? found : ~found;
}

static uint64_t class_weights_of(const job *job, int32_t device) {
    const view *weight = &job->operand[ONEPASS_CLASS_WEIGHT];
    if (!has_classes(job))
        return WEIGHTS_UNKNOWN;
    if (!weight->data)
        return WEIGHTS_ABSENT;
    if (device != ONEPASS_CPU)
        return WEIGHTS_UNKNOWN;
    return job->family == FAMILY_ROWS
               ? fingerprint_of(weight->data, weight->dtype, job->rows.class_stride[2], job->rows.classes)
               : fingerprint_of(weight->data, weight->dtype, weight->stride[weight->ndim - 1], job->vectors.length);
}

/* ----------------------------------------------------------------- what it is -- */

static void add_part(slice_parts *parts, int64_t first, int64_t end, int64_t tile, int level) {
    parts->part[parts->count++] =
        (slice_part){.first = first - parts->first, .count = end - first, .tile = tile, .level = level};
}

/* Results lie one behind the other, sums of 8 bytes and terms in the compute type, from multiples of 16 bytes on, as
 * kernels like it. */
static void place_results(slice_parts *parts) {
    const size_t size = dtype_size(parts->compute);
    for (int i = 0; i < parts->count; i++) {
        slice_part *part = &parts->part[i];
        const size_t bytes = part->level == TORN ? ((size_t)part->count * size + 15) / 16 * 16 : 16;
        part->at = parts->size;
        part->weights_at = part->at + bytes;
        parts->size += parts->over_weights ? 2 * bytes : bytes;
    }
}

void onepass_accumulator_cut(const onepass_accumulator *accumulator, int64_t first, int64_t count, int32_t compute,
                             bool over_weights, slice_parts *parts) {
    const int64_t end = first + count, begin_tile = first / ORDER_TILE + (first % ORDER_TILE != 0);
    const int64_t last_tile = end == accumulator->total ? accumulator->known.tiles : end / ORDER_TILE;
    const int64_t end_tile = last_tile > begin_tile ? last_tile : begin_tile; /* or it is within one tile */
    const int64_t begin = elements_before(accumulator, begin_tile), rest = elements_before(accumulator, end_tile);
    parts->first = first;
    parts->end = end;
    parts->compute = compute;
    parts->over_weights = over_weights;
    parts->count = 0;
    parts->size = 0;
    if (first < begin)
        add_part(parts, first, end < begin ? end : begin, begin_tile - 1, TORN);
    for (int64_t tile = begin_tile; tile < end_tile;) {
        const int level = order_level_of(tile, end_tile);
        const int64_t next = tile + ((int64_t)1 << level);
        add_part(parts, elements_before(accumulator, tile), elements_before(accumulator, next), tile, level);
        tile = next;
    }
    if (end > rest)
        add_part(parts, rest, end, end_tile, TORN);
    place_results(parts);
}

/* A slice and what it comes to, of which nothing goes into the accumulator before there is room for all. Not on the
 * stack, of which a call may take little. */
typedef struct cut_slice {
    slice_parts parts;
    double sum[MOST_PARTS], weights[MOST_PARTS];
    torn_tile *torn[2]; /* in the order of the parts */
} cut_slice;

static cut_slice *new_slice(void) {
    cut_slice *slice = malloc(sizeof *slice);
    if (slice)
        slice->torn[0] = slice->torn[1] = NULL;
    else
        onepass_fail(ONEPASS_OUT_OF_MEMORY, "no memory for the parts of a slice of an accumulator");
    return slice;
}

static void free_slice(cut_slice *slice) {
    free(slice->torn[0]);
    free(slice->torn[1]);
    free(slice);
}

static onepass_status make_room(onepass_accumulator *accumulator, cut_slice *slice) {
    const slice_parts *parts = &slice->parts;
    int torn = 0;
    OK(onepass_accumulator_make_room(accumulator, parts->count, 2));
    for (int i = 0; i < parts->count; i++) {
        if (parts->part[i].level != TORN)
            continue;
        slice->torn[torn] = onepass_torn_new(parts->part[i].tile, parts->compute, parts->over_weights);
        if (!slice->torn[torn++])
            return onepass_fail(ONEPASS_OUT_OF_MEMORY, "no memory for the terms of a torn tile of an accumulator");
    }
    return ONEPASS_OK;
}

/* Terms that lie at the beginning of torn tiles find their places there. */
static void put_slice(onepass_accumulator *accumulator, cut_slice *slice) {
    const slice_parts *parts = &slice->parts;
    int torns = 0;
    for (int i = 0; i < parts->count; i++) {
        const slice_part *part = &parts->part[i];
        if (part->level != TORN) {
            const double weights = parts->over_weights ? slice->weights[i] : 0;
            order_insert(&accumulator->known, (order_node){part->tile, part->level, slice->sum[i], weights});
            continue;
        }
        torn_tile *torn = slice->torn[torns];
        slice->torn[torns++] = NULL;
        onepass_torn_place(torn, (parts->first + part->first) % ORDER_TILE, part->count);
        onepass_accumulator_put_torn(accumulator, torn);
    }
}

/* ------------------------------------------------------------------ on the CPU -- */

/* Computes the slice part by part. */
static onepass_status run_slice(onepass_accumulator *accumulator, job *job, cut_slice *slice) {
    const engine *engine = onepass_engine(ONEPASS_CPU);
    const slice_parts *parts = &slice->parts;
    int torns = 0;
    OK(make_room(accumulator, slice));
    for (int i = 0; i < parts->count; i++) {
        const slice_part *part = &parts->part[i];
        torn_tile *torn = part->level == TORN ? slice->torn[torns++] : NULL;
        job->first = part->first;
        job->count = part->count;
        job->sum = &slice->sum[i];
        job->terms = torn ? torn->terms : NULL;
        OK(engine->run(job));
        if (!parts->over_weights)
            continue;
        struct job weights;
        onepass_plan_weights(job, &weights);
        weights.sum = &slice->weights[i];
        weights.terms = torn ? onepass_torn_weights(torn) : NULL;
        OK(engine->run(&weights));
    }
    put_slice(accumulator, slice);
    return ONEPASS_OK;
}

/* --------------------------------------------------------------------- on a GPU -- */

static onepass_status take_results(onepass_accumulator *accumulator, cut_slice *slice, const unsigned char *results) {
    const slice_parts *parts = &slice->parts;
    int torns = 0;
    OK(make_room(accumulator, slice));
    for (int i = 0; i < parts->count; i++) {
        const slice_part *part = &parts->part[i];
        torn_tile *torn = part->level == TORN ? slice->torn[torns++] : NULL;
        const size_t size = torn ? (size_t)part->count * dtype_size(parts->compute) : sizeof(double);
        memcpy(torn ? (void *)torn->terms : &slice->sum[i], results + part->at, size);
        if (parts->over_weights)
            memcpy(torn ? onepass_torn_weights(torn) : &slice->weights[i], results + part->weights_at, size);
    }
    put_slice(accumulator, slice);
    return ONEPASS_OK;
}

onepass_status onepass_accumulator_take_slice(onepass_accumulator *accumulator, int64_t first, int64_t end,
                                              const unsigned char *results) {
    cut_slice *slice = new_slice();
    if (!slice)
        return ONEPASS_OUT_OF_MEMORY;
    onepass_accumulator_cut(accumulator, first, end - first, accumulator->whole.compute, has_weight_sums(accumulator),
                            &slice->parts);
    const onepass_status status = take_results(accumulator, slice, results);
    free_slice(slice);
    return status;
}

static onepass_status take(void *taker, const pending_slice *slice, const unsigned char *results) {
    return onepass_accumulator_take_slice(taker, slice->first, slice->end, results);
}

onepass_status onepass_accumulator_wait(const onepass_accumulator *accumulator) {
    onepass_accumulator *own = (onepass_accumulator *)(uintptr_t)accumulator; /* which the library has allocated */
    return onepass_pending_take(&own->pending, take, own);
}

/* ------------------------------------------------------------------- add it -- */

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

static onepass_status run(onepass_accumulator *accumulator, job *job, int32_t device, int64_t first,
                          bool over_weights) {
    if (device == ONEPASS_CPU)
        OK(onepass_check_labels(job, first)); /* of all parts, before the first one writes anything */
    cut_slice *slice = new_slice();
    if (!slice)
        return ONEPASS_OUT_OF_MEMORY;
    onepass_accumulator_cut(accumulator, first, job->count, job->compute, over_weights, &slice->parts);
    const onepass_status status =
        device == ONEPASS_CUDA ? onepass_pending_add(&accumulator->pending, job, &slice->parts, take, accumulator)
                               : run_slice(accumulator, job, slice);
    free_slice(slice);
    return status;
}

ARITHMETIC onepass_status add(onepass_accumulator *accumulator, const onepass_call *given, int64_t first) {
    onepass_call call;
    job job;
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
    const uint64_t class_weights = class_weights_of(&job, call.device);
    OK(onepass_accumulator_check_class_weights(accumulator->class_weights, class_weights));

    const int64_t end = first + job.count;
    if (onepass_accumulator_first_known(accumulator, first, end) < end)
        FAIL_ARGUMENT("%s %lld to %lld were added already, in whole or in part (%lld is the first of them); expected "
                      "new ones",
                      onepass_accumulator_unit(accumulator), (long long)first, (long long)(end - 1),
                      (long long)onepass_accumulator_first_known(accumulator, first, end));
    job.divisor = accumulator->whole.divisor;
    job.over_weights = false; /* not over those of a part */
    OK(run(accumulator, &job, call.device, first, own > COUNT));
    accumulator->divided_by = own;
    if (class_weights != WEIGHTS_UNKNOWN)
        accumulator->class_weights = class_weights;
    accumulator->whole.compute = job.compute;
    if (job.family == FAMILY_ROWS)
        accumulator->whole.rows.classes = job.rows.classes;
    if (job.family == FAMILY_VECTORS)
        accumulator->whole.vectors = job.vectors;
    return ONEPASS_OK;
}

onepass_status onepass_accumulator_add(onepass_accumulator *accumulator, const onepass_call *call, int64_t first) {
    const float_state callers = enter_float_state();
    const onepass_status status = add(accumulator, call, first);
    leave_float_state(callers);
    return status;
}
