/* From a slice of an accumulator to its launches: see slice.h. */
#include "cuda/slice.h"
#include "dtype.h"
#include "message.h"

/* ------------------------------------------------------------------- a part -- */

/* Views of a part begin at its first element: so they do by their address where they have one dimension, or two and the
 * part begins with a row. */
static bool begins_by_address(const view *view, int64_t first) {
    return !view->data || view->ndim == 1 || (view->ndim == 2 && first % view->shape[1] == 0);
}

static void move_view(view *view, int64_t first) {
    const int64_t steps = view->ndim == 1 ? first : first / view->shape[1];
    view->data = (char *)view->data + steps * view->stride[0] * (int64_t)dtype_size(view->dtype);
}

/* Where other views are among them, all that have several dimensions are told the element. */
static job part_of(const job *slice, const slice_part *part) {
    job own = *slice;
    view *views[2 * ONEPASS_MAX_OPERANDS + 2] = {&own.weight, &own.mask};
    int count = 2;
    bool by_address = true;
    for (int32_t k = 0; k < own.operand_count; k++) {
        views[count++] = &own.operand[k];
        views[count++] = &own.gradient[k];
    }
    for (int i = 0; i < count; i++)
        by_address &= begins_by_address(views[i], part->first);
    for (int i = 0; i < count; i++)
        if (views[i]->data && (by_address || views[i]->ndim == 1))
            move_view(views[i], part->first);
    own.first = by_address ? 0 : part->first;
    own.count = part->count;
    return own;
}

static onepass_status visit_steps(const job *job, cuda_visitor *visitor) {
    cuda_launch launch;
    for (int step = 0; onepass_cuda_plan_step(job, step, &visitor->limits, &launch); step++)
        if (launch.blocks > 0)
            OK(visitor->launch(visitor, &launch));
    return ONEPASS_OK;
}

/* The plain sum as a double. */
static void ask_for_sum(job *job, char *result) {
    job->value = (view){result, ONEPASS_F64, 1, {1}, {1}};
    job->sum = (double *)(void *)result;
}

static void forget_gradients(job *job) {
    for (int32_t k = 0; k < ONEPASS_MAX_OPERANDS; k++)
        job->gradient[k].data = NULL;
}

static bool has_gradients(const job *job) {
    bool any = false;
    for (int32_t k = 0; k < ONEPASS_MAX_OPERANDS; k++)
        any |= job->gradient[k].data != NULL;
    return any;
}

/* ------------------------------------------------- losses of pairs, weights -- */

/* The terms are values that nobody reduces; gradients come after them, since they may lie over operands. */
static onepass_status visit_torn(const job *part, char *result, cuda_visitor *visitor) {
    job terms = *part;
    terms.reduction = ONEPASS_NONE;
    terms.value = (view){result, part->compute, 1, {part->count}, {1}};
    terms.upstream.data = NULL;
    forget_gradients(&terms);
    OK(visit_steps(&terms, visitor));
    return has_gradients(part) ? visit_steps(part, visitor) : ONEPASS_OK;
}

static onepass_status visit_part(const job *part, bool is_torn, char *result, cuda_visitor *visitor) {
    if (is_torn)
        return visit_torn(part, result, visitor);
    job sum = *part;
    ask_for_sum(&sum, result);
    return visit_steps(&sum, visitor);
}

/* What a mean is divided by is the sum of a loss whose value is its only operand, as that of the terms is. */
static onepass_status visit_weights(const job *slice, const slice_part *part, cuda_visitor *visitor) {
    job weights;
    onepass_plan_weights(slice, &weights);
    weights.family = FAMILY_PAIRWISE;
    weights.loss = &onepass_cuda_terms;
    const job own = part_of(&weights, part);
    return visit_part(&own, part->level == TORN, visitor->results + part->weights_at, visitor);
}

static onepass_status visit_pairs(const job *slice, const slice_parts *parts, cuda_visitor *visitor) {
    for (int i = 0; i < parts->count; i++) {
        const slice_part *part = &parts->part[i];
        const job own = part_of(slice, part);
        if (parts->over_weights)
            OK(visit_weights(slice, part, visitor));
        OK(visit_part(&own, part->level == TORN, visitor->results + part->at, visitor));
    }
    return ONEPASS_OK;
}

/* --------------------------------------------------------------------- rows -- */

/* Terms that rows have left in the workspace. */
static onepass_status visit_terms(const job *slice, const slice_parts *parts, bool of_weights, cuda_visitor *visitor) {
    const int64_t size = (int64_t)dtype_size(slice->compute);
    for (int i = 0; i < parts->count; i++) {
        const slice_part *part = &parts->part[i];
        char *terms = (char *)(visitor->workspace + (uintptr_t)(onepass_cuda_terms_at(slice) + part->first * size));
        char *result = visitor->results + (of_weights ? part->weights_at : part->at);
        if (part->level == TORN) {
            OK(visitor->copy(visitor, result, terms, (size_t)(part->count * size)));
            continue;
        }
        job sum = {.family = FAMILY_PAIRWISE,
                   .loss = &onepass_cuda_terms,
                   .operand_count = 1,
                   .reduction = ONEPASS_SUM,
                   .compute = slice->compute,
                   .count = part->count,
                   .operand = {{terms, slice->compute, 1, {part->count}, {1}}},
                   .divisor = 1};
        ask_for_sum(&sum, result);
        OK(visit_steps(&sum, visitor));
    }
    return ONEPASS_OK;
}

/* What rows with class indices count for is a term of each. */
static onepass_status visit_row_weights(const job *slice, const slice_parts *parts, cuda_visitor *visitor) {
    job weights;
    cuda_launch launch;
    onepass_plan_weights(slice, &weights);
    weights.terms = visitor->results;
    onepass_cuda_plan_row_weights(&weights, &launch);
    OK(visitor->launch(visitor, &launch));
    return visit_terms(slice, parts, true, visitor);
}

static onepass_status visit_rows(const job *slice, const slice_parts *parts, cuda_visitor *visitor) {
    const bool has_labels = slice->family == FAMILY_ROWS && slice->loss->kind != ROW_PROBABILITIES;
    job rows = *slice;
    ask_for_sum(&rows, visitor->results);
    rows.terms = visitor->results;
    if (parts->over_weights && has_labels)
        OK(visit_row_weights(slice, parts, visitor));
    for (int i = 0; i < parts->count && parts->over_weights && !has_labels; i++)
        OK(visit_weights(slice, &parts->part[i], visitor));
    OK(visit_steps(&rows, visitor));
    return visit_terms(slice, parts, false, visitor);
}

onepass_status onepass_cuda_visit_slice(const job *slice, const slice_parts *parts, cuda_visitor *visitor) {
    return (slice->family == FAMILY_PAIRWISE ? visit_pairs : visit_rows)(slice, parts, visitor);
}
