/*
 * From a call to a job: every argument is checked before anything is computed, so
 * that an engine never meets bad input, and the tensors are planned as views.
 */
#include "dtype.h"
#include "engine.h"
#include "sized.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define OK(expression)                                                                                                 \
    do {                                                                                                               \
        const onepass_status status_ = (expression);                                                                   \
        if (status_ != ONEPASS_OK)                                                                                     \
            return status_;                                                                                            \
    } while (0)

#define FAIL_ARGUMENT(...) return onepass_fail(ONEPASS_INVALID_ARGUMENT, __VA_ARGS__)
#define FAIL_SHAPE(...)    return onepass_fail(ONEPASS_INVALID_SHAPE, __VA_ARGS__)
#define FAIL_MEMORY(...)   return onepass_fail(ONEPASS_INVALID_MEMORY, __VA_ARGS__)

const char *onepass_operand_name(const job *job, int32_t k) {
    return job->loss ? job->loss->info.operand[k] : "weight";
}

const char *const onepass_gradient_name[ONEPASS_MAX_OPERANDS] = {
    "gradient[0] (for the prediction)", "gradient[1] (for the target)", "gradient[2]", "gradient[3]"};

/* --------------------------------------------------------------- tensors -- */

/* A tensor that has been checked, with all that later checks need. */
typedef struct checked {
    const char *name;
    void *data;
    int32_t dtype;
    int32_t ndim;
    int64_t shape[ONEPASS_MAX_DIMENSIONS];
    int64_t stride[ONEPASS_MAX_DIMENSIONS];
    int64_t count;
    uintptr_t begin, end; /* the addresses it spans; equal if it has no elements */
} checked;

typedef struct text {
    char characters[320];
} text;

/* (8, 128): as Python writes a shape. */
static text shape_text(int32_t ndim, const int64_t *shape) {
    text text = {"("};
    size_t used = 1;
    for (int32_t d = 0; d < ndim && used < sizeof text.characters; d++)
        used += (size_t)snprintf(text.characters + used, sizeof text.characters - used, "%s%lld", d ? ", " : "",
                                 (long long)shape[d]);
    if (used < sizeof text.characters)
        snprintf(text.characters + used, sizeof text.characters - used, ndim == 1 ? ",)" : ")");
    return text;
}

static onepass_status check_extents(checked *tensor) {
    bool empty = false;
    for (int32_t d = 0; d < tensor->ndim; d++) {
        if (tensor->shape[d] < 0)
            FAIL_SHAPE("%s has shape %s; extents must not be negative", tensor->name,
                       shape_text(tensor->ndim, tensor->shape).characters);
        empty |= tensor->shape[d] == 0;
    }
    tensor->count = empty ? 0 : 1;
    for (int32_t d = 0; d < tensor->ndim && !empty; d++)
        if (__builtin_mul_overflow(tensor->count, tensor->shape[d], &tensor->count))
            FAIL_SHAPE("%s has shape %s; its number of elements must fit into 63 bits", tensor->name,
                       shape_text(tensor->ndim, tensor->shape).characters);
    return ONEPASS_OK;
}

/* Dense, row-major strides. They are of no interest in an empty tensor. */
static void fill_strides(checked *tensor) {
    int64_t stride = tensor->count > 0;
    for (int32_t d = tensor->ndim - 1; d >= 0; d--) {
        tensor->stride[d] = stride;
        stride *= tensor->count > 0 ? tensor->shape[d] : 0;
    }
}

/* Bytes that a tensor may span to either side of its first element. No machine has as many, and below this a walk's
 * step past the end of a dimension still fits, and so does a stride of 16-bit numbers that is counted in floats. */
#define LARGEST_SPAN ((int64_t)1 << 62)

/* The first and one past the last byte, if they are addresses at all. */
static onepass_status check_span(checked *tensor) {
    tensor->begin = tensor->end = (uintptr_t)tensor->data;
    if (tensor->count == 0)
        return ONEPASS_OK;
    if (!tensor->data)
        FAIL_ARGUMENT("%s has null data; expected a pointer to its %lld elements", tensor->name,
                      (long long)tensor->count);
    const int64_t size = (int64_t)dtype_size(tensor->dtype);
    if ((uintptr_t)tensor->data % (uintptr_t)size != 0)
        FAIL_MEMORY("%s has data at %p, which is misaligned; its type needs a multiple of %lld bytes", tensor->name,
                    tensor->data, (long long)size);
    int64_t lowest = 0, highest = 0;
    bool overflow = false;
    for (int32_t d = 0; d < tensor->ndim; d++) {
        int64_t reach;
        overflow |= __builtin_mul_overflow(tensor->shape[d] - 1, tensor->stride[d], &reach);
        overflow |= __builtin_add_overflow(reach < 0 ? lowest : highest, reach, reach < 0 ? &lowest : &highest);
    }
    overflow |= __builtin_add_overflow(highest, (int64_t)1, &highest);
    overflow |= __builtin_mul_overflow(lowest, size, &lowest);
    overflow |= __builtin_mul_overflow(highest, size, &highest);
    overflow |= lowest < -LARGEST_SPAN || highest > LARGEST_SPAN;
    overflow = overflow || __builtin_sub_overflow(tensor->begin, 0 - (uintptr_t)lowest, &tensor->begin);
    overflow = overflow || __builtin_add_overflow(tensor->end, (uintptr_t)highest, &tensor->end);
    if (overflow)
        FAIL_SHAPE("%s has shape %s and strides %s, which reach beyond the address space", tensor->name,
                   shape_text(tensor->ndim, tensor->shape).characters,
                   shape_text(tensor->ndim, tensor->stride).characters);
    return ONEPASS_OK;
}

/* All but the type. */
static onepass_status check_layout(const onepass_tensor *given, const char *name, checked *tensor) {
    tensor->name = name;
    tensor->data = given->data;
    tensor->dtype = given->dtype;
    tensor->ndim = given->ndim;
    if (given->ndim < 0 || given->ndim > ONEPASS_MAX_DIMENSIONS)
        FAIL_SHAPE("%s has ndim %d; expected 0 to %d dimensions", name, given->ndim, ONEPASS_MAX_DIMENSIONS);
    if (given->ndim > 0 && !given->shape)
        FAIL_ARGUMENT("%s has a null shape; expected %d extents", name, given->ndim);
    if (given->ndim > 0)
        memcpy(tensor->shape, given->shape, (size_t)given->ndim * sizeof *tensor->shape);
    OK(check_extents(tensor));
    if (given->ndim > 0 && given->strides)
        memcpy(tensor->stride, given->strides, (size_t)given->ndim * sizeof *tensor->stride);
    else
        fill_strides(tensor);
    return check_span(tensor);
}

static onepass_status check_tensor(const onepass_tensor *given, const char *name, checked *tensor) {
    if (given->dtype < ONEPASS_F16 || given->dtype > ONEPASS_F64)
        FAIL_ARGUMENT("%s has dtype %d; expected ONEPASS_F16 (1), ONEPASS_BF16 (2), ONEPASS_F32 (3) or ONEPASS_F64 (4)",
                      name, given->dtype);
    return check_layout(given, name, tensor);
}

static onepass_status check_mask(const onepass_tensor *given, checked *tensor) {
    if (given->dtype != ONEPASS_BOOL)
        FAIL_ARGUMENT("mask has dtype %d; expected ONEPASS_BOOL (5), a byte an element", given->dtype);
    return check_layout(given, "mask", tensor);
}

/* No two elements of an output may share memory. Judged by strides that nest:
 * in the order of their size, each must step over all that the smaller ones reach. */
static onepass_status check_output(const checked *tensor) {
    int64_t extent[ONEPASS_MAX_DIMENSIONS], stride[ONEPASS_MAX_DIMENSIONS];
    int32_t used = 0;
    for (int32_t d = 0; d < tensor->ndim && tensor->count > 0; d++) {
        if (tensor->shape[d] == 1)
            continue;
        const int64_t step = tensor->stride[d] < 0 ? -tensor->stride[d] : tensor->stride[d];
        int32_t at = used++;
        for (; at > 0 && stride[at - 1] > step; at--) {
            stride[at] = stride[at - 1];
            extent[at] = extent[at - 1];
        }
        stride[at] = step;
        extent[at] = tensor->shape[d];
    }
    int64_t reach = 0;
    for (int32_t i = 0; i < used; i++) {
        if (stride[i] <= reach)
            FAIL_MEMORY("%s has shape %s and strides %s, under which elements overlap; an output's may not",
                        tensor->name, shape_text(tensor->ndim, tensor->shape).characters,
                        shape_text(tensor->ndim, tensor->stride).characters);
        reach += (extent[i] - 1) * stride[i];
    }
    return ONEPASS_OK;
}

static bool overlap(const checked *a, const checked *b) {
    return a->begin < b->end && b->begin < a->end;
}

static bool same_place(const checked *a, const checked *b) {
    if (a->data != b->data || a->dtype != b->dtype || a->ndim != b->ndim)
        return false;
    for (int32_t d = 0; d < a->ndim; d++)
        if (a->shape[d] != b->shape[d] || (a->stride[d] != b->stride[d] && a->shape[d] > 1))
            return false;
    return true;
}

/* ---------------------------------------------------------- broadcasting -- */

/* The common shape of the operands, aligned at the last dimension. */
typedef struct common {
    int32_t ndim;
    int64_t shape[ONEPASS_MAX_DIMENSIONS];
    int64_t count;
} common;

/* If the shorter shape is the beginning of the longer one, somebody counted from
 * the first dimension: say which shape was probably meant. */
static void suggest_reshape(const checked *a, const checked *b, char *into, size_t size) {
    const checked *shorter = a->ndim < b->ndim ? a : b, *longer = a->ndim < b->ndim ? b : a;
    checked meant = *shorter;
    into[0] = '\0';
    if (shorter->ndim == 0 || shorter->ndim == longer->ndim)
        return;
    for (int32_t d = 0; d < shorter->ndim; d++)
        if (shorter->shape[d] != longer->shape[d] && shorter->shape[d] != 1)
            return;
    for (meant.ndim = longer->ndim; meant.ndim > shorter->ndim; meant.ndim--)
        meant.shape[meant.ndim - 1] = 1;
    snprintf(into, size, "; shapes are aligned at the last dimension, so for one %s a row reshape it to %s",
             shorter->name, shape_text(longer->ndim, meant.shape).characters);
}

static onepass_status broadcast(const checked *tensor, int32_t count, common *common) {
    common->ndim = 0;
    for (int32_t k = 0; k < count; k++)
        if (tensor[k].ndim > common->ndim)
            common->ndim = tensor[k].ndim;
    checked whole;
    whole.name = "the common shape of the operands";
    whole.ndim = common->ndim;
    for (int32_t d = 0; d < common->ndim; d++) {
        whole.shape[d] = 1;
        for (int32_t k = 0; k < count; k++) {
            const int32_t own = d - (common->ndim - tensor[k].ndim);
            const int64_t extent = own < 0 ? 1 : tensor[k].shape[own];
            if (extent == 1 || extent == whole.shape[d])
                continue;
            if (whole.shape[d] != 1) {
                char hint[480];
                suggest_reshape(&tensor[0], &tensor[k], hint, sizeof hint);
                FAIL_SHAPE("%s has shape %s and %s has shape %s, which do not broadcast (%lld against %lld)%s",
                           tensor[0].name, shape_text(tensor[0].ndim, tensor[0].shape).characters, tensor[k].name,
                           shape_text(tensor[k].ndim, tensor[k].shape).characters, (long long)whole.shape[d],
                           (long long)extent, hint);
            }
            whole.shape[d] = extent;
        }
    }
    OK(check_extents(&whole));
    memcpy(common->shape, whole.shape, (size_t)common->ndim * sizeof *common->shape);
    common->count = whole.count;
    return ONEPASS_OK;
}

static bool same_shape(const checked *tensor, int32_t ndim, const int64_t *shape) {
    return tensor->ndim == ndim && memcmp(tensor->shape, shape, (size_t)ndim * sizeof *shape) == 0;
}

static onepass_status check_shape(const checked *tensor, const common *common, const char *what) {
    if (!same_shape(tensor, common->ndim, common->shape))
        FAIL_SHAPE("%s has shape %s; %s has the operands' common shape %s", tensor->name,
                   shape_text(tensor->ndim, tensor->shape).characters, what,
                   shape_text(common->ndim, common->shape).characters);
    return ONEPASS_OK;
}

/* Whether the tensor broadcasts to the common shape, as it is. */
static onepass_status check_reach(const checked *tensor, const common *common) {
    const int32_t missing = common->ndim - tensor->ndim;
    bool reaches = missing >= 0;
    for (int32_t d = 0; d < tensor->ndim && reaches; d++)
        reaches = tensor->shape[d] == 1 || tensor->shape[d] == common->shape[d + missing];
    if (reaches)
        return ONEPASS_OK;
    checked whole = {.ndim = common->ndim};
    memcpy(whole.shape, common->shape, (size_t)common->ndim * sizeof *whole.shape);
    char hint[480] = "";
    if (missing > 0)
        suggest_reshape(tensor, &whole, hint, sizeof hint);
    FAIL_SHAPE("%s has shape %s, which does not broadcast to the operands' common shape %s%s", tensor->name,
               shape_text(tensor->ndim, tensor->shape).characters, shape_text(common->ndim, common->shape).characters,
               hint);
}

static onepass_status check_single(const checked *tensor) {
    if (tensor->count != 1)
        FAIL_SHAPE("%s has shape %s; expected one element for this reduction", tensor->name,
                   shape_text(tensor->ndim, tensor->shape).characters);
    return ONEPASS_OK;
}

/* The tensor at the common shape, with as few dimensions as its strides allow. */
static void make_view(const checked *tensor, const common *common, view *view) {
    view->data = tensor->data;
    view->dtype = tensor->dtype;
    view->ndim = 0;
    const int32_t missing = common->ndim - tensor->ndim;
    for (int32_t d = 0; d < common->ndim && common->count > 0; d++) {
        const int64_t extent = common->shape[d];
        if (extent == 1)
            continue;
        const int64_t stride = d < missing || tensor->shape[d - missing] == 1 ? 0 : tensor->stride[d - missing];
        const int32_t outer = view->ndim - 1;
        /* No overflow: see LARGEST_SPAN. */
        if (outer >= 0 && view->stride[outer] == stride * extent) {
            view->shape[outer] *= extent;
            view->stride[outer] = stride;
        } else {
            view->shape[view->ndim] = extent;
            view->stride[view->ndim++] = stride;
        }
    }
    if (view->ndim == 0) {
        view->shape[0] = 1;
        view->stride[0] = 1;
        view->ndim = 1;
    }
}

/* ------------------------------------------------------------------ call -- */

onepass_status onepass_read_call(const onepass_call *given, onepass_call *call) {
    if (!given)
        FAIL_ARGUMENT("call is null; expected a pointer to an onepass_call");
    if (!is_plausible_size(given->size, CALL_SIZE_0_1_0))
        FAIL_ARGUMENT(
            "call.size is %zu; expected sizeof(onepass_call), which is %zu here: begin with ONEPASS_CALL_INIT",
            given->size, sizeof *call);
    const size_t unknown = read_sized(call, sizeof *call, given, given->size);
    if (unknown)
        return onepass_fail(ONEPASS_NOT_SUPPORTED,
                            "call uses a field at byte %zu that this version (%s) does not know; update the library",
                            unknown, onepass_version_text());
    return ONEPASS_OK;
}

static onepass_status check_flags(const onepass_call *call) {
    if (call->flags & ~(ONEPASS_SKIP_IF_UPSTREAM_IS_ONE | ONEPASS_OVER_ELEMENTS))
        return onepass_fail(ONEPASS_NOT_SUPPORTED,
                            "flags is %d; this version (%s) knows ONEPASS_SKIP_IF_UPSTREAM_IS_ONE (%d) and "
                            "ONEPASS_OVER_ELEMENTS (%d) alone, or 0",
                            call->flags, onepass_version_text(), ONEPASS_SKIP_IF_UPSTREAM_IS_ONE,
                            ONEPASS_OVER_ELEMENTS);
    return ONEPASS_OK;
}

/* What would be lost if nothing were done must not be wanted, nor may a gradient have taken the place of what it would
 * be computed of. */
static onepass_status check_skip_if_one(const onepass_call *call, const job *job) {
    if (!(call->flags & ONEPASS_SKIP_IF_UPSTREAM_IS_ONE))
        return ONEPASS_OK;
    if (call->value)
        FAIL_ARGUMENT("value is set, but flags has ONEPASS_SKIP_IF_UPSTREAM_IS_ONE, with which nothing may be written; "
                      "expected null");
    if (!call->upstream || job->reduction == ONEPASS_NONE)
        FAIL_ARGUMENT("flags has ONEPASS_SKIP_IF_UPSTREAM_IS_ONE, which asks about an upstream gradient of one "
                      "element; expected one, "
                      "and a reduction to a mean or a sum");
    for (int32_t k = 0; k < ONEPASS_MAX_OPERANDS; k++)
        if (job->in_place[k])
            FAIL_MEMORY("%s lies over its operand, but flags has ONEPASS_SKIP_IF_UPSTREAM_IS_ONE, which may need that "
                        "operand again; "
                        "expected memory of its own",
                        onepass_gradient_name[k]);
    return ONEPASS_OK;
}

onepass_status onepass_check_device(int32_t device, int32_t device_index) {
    if (device != ONEPASS_CPU && device != ONEPASS_CUDA)
        FAIL_ARGUMENT("device is %d; expected ONEPASS_CPU (0) or ONEPASS_CUDA (1)", device);
    if (device == ONEPASS_CPU && device_index != 0)
        FAIL_ARGUMENT("device_index is %d; expected 0 for the CPU", device_index);
    if (device_index < 0)
        FAIL_ARGUMENT("device_index is %d; expected the index of a GPU, from 0 on", device_index);
    return ONEPASS_OK;
}

/* A workspace holds numbers of 8 bytes; kernels may read two at a time. */
#define WORKSPACE_ALIGNMENT 16

static onepass_status check_workspace(const onepass_call *call) {
    if (!call->workspace && call->workspace_size)
        FAIL_ARGUMENT("workspace_size is %zu, but workspace is null; expected both or neither", call->workspace_size);
    if ((uintptr_t)call->workspace % WORKSPACE_ALIGNMENT != 0)
        FAIL_MEMORY("workspace is at %p, which is misaligned; expected a multiple of %d bytes", call->workspace,
                    WORKSPACE_ALIGNMENT);
    if ((uintptr_t)call->workspace > UINTPTR_MAX - call->workspace_size)
        FAIL_ARGUMENT("workspace_size is %zu, which reaches beyond the address space", call->workspace_size);
    return ONEPASS_OK;
}

/* Where and how: what a call and a call of onepass_scale have alike. */
static onepass_status plan_place(const onepass_call *call, job *job) {
    OK(onepass_check_device(call->device, call->device_index));
    if (call->threads < 0)
        FAIL_ARGUMENT("threads is %d; expected a number of threads, or 0 to let the library decide", call->threads);
    if (call->device == ONEPASS_CPU && call->stream)
        FAIL_ARGUMENT("stream is set, but device is ONEPASS_CPU, which has no streams; expected null");
    if (call->device == ONEPASS_CPU && (call->workspace || call->workspace_size))
        FAIL_ARGUMENT("workspace is set, but device is ONEPASS_CPU, which needs none; expected null and size 0");
    OK(check_workspace(call));
    job->threads = call->threads;
    job->device_index = call->device_index;
    job->stream = call->stream;
    job->workspace = call->workspace;
    job->workspace_size = call->workspace_size;
    return ONEPASS_OK;
}

static onepass_status check_loss_name(const char *name) {
    if (!name)
        FAIL_ARGUMENT("loss is null; expected a name, \"%s\" for one", onepass_loss_at(0)->name);
    if (onepass_find_loss(name))
        return ONEPASS_OK;
    char names[1024];
    size_t used = 0;
    for (int32_t i = 0; onepass_loss_at(i) && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", onepass_loss_at(i)->name);
    FAIL_ARGUMENT("loss is \"%.64s\"; expected one of %s", name, names);
}

static onepass_status check_parameter(const char *loss, const onepass_parameter_info *known, double parameter) {
    if (isnan(parameter))
        FAIL_ARGUMENT("%s of %s is NaN; expected a number", known->name, loss);
    if (parameter < known->minimum || (known->minimum_excluded && parameter == known->minimum))
        FAIL_ARGUMENT("%s of %s is %g; expected %s %g", known->name, loss, parameter,
                      known->minimum_excluded ? "more than" : "at least", known->minimum);
    if (parameter > known->maximum || (known->maximum_excluded && parameter == known->maximum))
        FAIL_ARGUMENT("%s of %s is %g; expected %s %g", known->name, loss, parameter,
                      known->maximum_excluded ? "less than" : "at most", known->maximum);
    return ONEPASS_OK;
}

/* Loss, parameters, reduction and divisor: all of a call that has no tensors. */
onepass_status onepass_plan_loss(const onepass_call *call, job *job) {
    OK(check_flags(call));
    OK(check_loss_name(call->loss));
    job->loss = onepass_find_loss(call->loss);
    job->family = job->loss->family;
    const onepass_loss_info *loss = &job->loss->info;
    job->operand_count = loss->operand_count;
    if (call->parameter_count < 0 || call->parameter_count > loss->parameter_count)
        FAIL_ARGUMENT("parameter_count is %d; %s takes 0 to %d parameters", call->parameter_count, loss->name,
                      loss->parameter_count);
    for (int32_t i = 0; i < ONEPASS_MAX_PARAMETERS; i++)
        job->parameter[i] = 0;
    for (int32_t i = 0; i < loss->parameter_count; i++) {
        const onepass_parameter_info *known = &loss->parameter[i];
        const double parameter = i < call->parameter_count ? call->parameter[i] : known->default_value;
        OK(check_parameter(loss->name, known, parameter));
        job->parameter[i] = parameter + 0.0; /* -0 is 0: compilers differ in what becomes of the sign in a choice */
    }
    if (call->reduction < ONEPASS_MEAN || call->reduction > ONEPASS_BATCHMEAN)
        FAIL_ARGUMENT("reduction is %d; expected ONEPASS_MEAN (0), ONEPASS_SUM (1), ONEPASS_NONE (2) or "
                      "ONEPASS_BATCHMEAN (3)",
                      call->reduction);
    if (call->divisor != 0 && call->reduction != ONEPASS_MEAN)
        FAIL_ARGUMENT("divisor is %g, but only a mean is divided; expected 0 for this reduction", call->divisor);
    if (!isfinite(call->divisor) || call->divisor < 0)
        FAIL_ARGUMENT("divisor is %g; expected a positive number, or 0 to divide by the count", call->divisor);
    job->reduction = call->reduction;
    job->divisor = call->divisor;
    job->over_elements = call->flags & ONEPASS_OVER_ELEMENTS;
    if (job->over_elements && (call->reduction != ONEPASS_MEAN || call->divisor != 0))
        FAIL_ARGUMENT(
            "flags has ONEPASS_OVER_ELEMENTS, which says what a mean is divided by; expected ONEPASS_MEAN and "
            "no divisor");
    return plan_place(call, job);
}

onepass_status onepass_plan_scalar(const onepass_tensor *tensor, const char *name, view *view) {
    checked checked;
    if (!tensor)
        FAIL_ARGUMENT("%s is null; expected a tensor of one element", name);
    OK(check_tensor(tensor, name, &checked));
    OK(check_single(&checked));
    make_view(&checked, &(common){.count = 1}, view);
    return ONEPASS_OK;
}

/* The tensors of a call, checked one by one: operands first, then weight, mask, upstream, value, gradients. The
 * workspace is none of them, but has a place in memory like them. */
typedef struct tensors {
    checked operand[ONEPASS_MAX_OPERANDS];
    checked weight, mask, upstream, value;
    checked gradient[ONEPASS_MAX_OPERANDS];
    checked workspace;
    common common;
} tensors;

/* An absent tensor spans nothing. The rest of it is never looked at, and zeroing all of it took a tenth of a small
 * call. */
static void forget_absent(tensors *all) {
    all->weight.begin = all->weight.end = all->mask.begin = all->mask.end = 0;
    all->upstream.begin = all->upstream.end = 0;
    all->value.begin = all->value.end = 0;
    for (int32_t k = 0; k < ONEPASS_MAX_OPERANDS; k++)
        all->gradient[k].begin = all->gradient[k].end = 0;
}

static void place_workspace(const onepass_call *call, checked *workspace) {
    workspace->name = "workspace";
    workspace->begin = (uintptr_t)call->workspace;
    workspace->end = workspace->begin + call->workspace_size;
}

static onepass_status plan_operands(const onepass_call *call, tensors *all, job *job) {
    for (int32_t k = 0; k < ONEPASS_MAX_OPERANDS; k++) {
        if (k >= job->operand_count && (call->operand[k] || call->gradient[k]))
            return onepass_fail(ONEPASS_NOT_SUPPORTED, "%s[%d] is set; %s has %d operands, so it must be null",
                                call->operand[k] ? "operand" : "gradient", k, call->loss, job->operand_count);
        if (k >= job->operand_count)
            continue;
        if (!call->operand[k])
            FAIL_ARGUMENT("operand[%d], the %s, is null; expected a tensor", k, onepass_operand_name(job, k));
        OK(check_tensor(call->operand[k], onepass_operand_name(job, k), &all->operand[k]));
    }
    OK(broadcast(all->operand, job->operand_count, &all->common));
    job->compute = ONEPASS_F32;
    for (int32_t k = 0; k < job->operand_count; k++) {
        make_view(&all->operand[k], &all->common, &job->operand[k]);
        if (all->operand[k].dtype == ONEPASS_F64)
            job->compute = ONEPASS_F64;
    }
    return ONEPASS_OK;
}

/* A weight is broadcast to the common shape and has no part in it. */
static onepass_status plan_weight(const onepass_call *call, tensors *all, job *job) {
    job->weight.data = NULL;
    if (!call->weight)
        return ONEPASS_OK;
    OK(check_tensor(call->weight, "weight", &all->weight));
    OK(check_reach(&all->weight, &all->common));
    make_view(&all->weight, &all->common, &job->weight);
    if (all->weight.dtype == ONEPASS_F64)
        job->compute = ONEPASS_F64;
    return ONEPASS_OK;
}

static onepass_status plan_mask(const onepass_call *call, tensors *all, job *job) {
    job->mask.data = NULL;
    if (!call->mask)
        return ONEPASS_OK;
    OK(check_mask(call->mask, &all->mask));
    OK(check_reach(&all->mask, &all->common));
    make_view(&all->mask, &all->common, &job->mask);
    return ONEPASS_OK;
}

/* Upstream gradient and value have one element, or with the reduction none the common shape. */
static onepass_status plan_reduced(const onepass_tensor *tensor, const char *name, const common *common,
                                   checked *checked, job *job, view *view) {
    view->data = NULL;
    if (!tensor)
        return ONEPASS_OK;
    OK(check_tensor(tensor, name, checked));
    if (job->reduction == ONEPASS_NONE) {
        OK(check_shape(checked, common, "with the reduction none it"));
        make_view(checked, common, view);
    } else {
        OK(check_single(checked));
        make_view(checked, &(struct common){.count = 1}, view);
    }
    return ONEPASS_OK;
}

static onepass_status plan_gradients(const onepass_call *call, tensors *all, job *job) {
    for (int32_t k = 0; k < ONEPASS_MAX_OPERANDS; k++) {
        job->gradient[k].data = NULL;
        job->in_place[k] = false;
        if (!call->gradient[k])
            continue;
        OK(check_tensor(call->gradient[k], onepass_gradient_name[k], &all->gradient[k]));
        OK(check_shape(&all->gradient[k], &all->common, "a gradient"));
        OK(check_output(&all->gradient[k]));
        make_view(&all->gradient[k], &all->common, &job->gradient[k]);
        job->in_place[k] = all->common.count > 0 && same_place(&all->gradient[k], &all->operand[k]);
    }
    return ONEPASS_OK;
}

static onepass_status check_apart(const checked *output, const checked *other) {
    if (overlap(output, other))
        FAIL_MEMORY("%s overlaps %s in memory; a gradient may lie over its own operand with the same pointer, type, "
                    "shape and strides, and all else must be apart",
                    output->name, other->name);
    return ONEPASS_OK;
}

#define MOST_OUTPUTS (2 + ONEPASS_MAX_OPERANDS)

/* Whatever is written against everything else. Tensors that are absent span nothing. */
static onepass_status check_overlaps(const tensors *all, const job *job) {
    const checked *output[MOST_OUTPUTS] = {&all->value};
    for (int32_t k = 0; k < ONEPASS_MAX_OPERANDS; k++)
        output[1 + k] = &all->gradient[k];
    output[MOST_OUTPUTS - 1] = &all->workspace;
    for (int32_t i = 0; i < MOST_OUTPUTS; i++) {
        for (int32_t k = 0; k < job->operand_count; k++)
            if (!(i == 1 + k && job->in_place[k]))
                OK(check_apart(output[i], &all->operand[k]));
        OK(check_apart(output[i], &all->weight));
        OK(check_apart(output[i], &all->mask));
        OK(check_apart(output[i], &all->upstream));
        for (int32_t j = 0; j < i; j++)
            OK(check_apart(output[i], output[j]));
    }
    return ONEPASS_OK;
}

/* What a mean is divided by. A batchmean is a mean with a divisor. */
static void plan_divisor(const common *common, job *job) {
    if (job->reduction == ONEPASS_BATCHMEAN) {
        job->reduction = ONEPASS_MEAN;
        job->divisor = common->ndim > 0 ? (double)common->shape[0] : 1;
        job->over_weights = false;
        return;
    }
    const bool own_divisor = job->reduction != ONEPASS_MEAN || job->divisor != 0;
    const bool counts_weights = job->weight.data && !job->over_elements;
    /* The weights of no elements sum to what their count is. */
    job->over_weights = !own_divisor && (counts_weights || job->mask.data) && job->count > 0;
    if (!own_divisor)
        job->divisor = (double)job->count;
}

onepass_status onepass_plan(const onepass_call *call, job *job) {
    tensors all;
    OK(onepass_plan_loss(call, job));
    forget_absent(&all);
    place_workspace(call, &all.workspace);
    OK(plan_operands(call, &all, job));
    OK(plan_weight(call, &all, job));
    OK(plan_mask(call, &all, job));
    OK(plan_reduced(call->upstream, "upstream", &all.common, &all.upstream, job, &job->upstream));
    OK(plan_reduced(call->value, "value", &all.common, &all.value, job, &job->value));
    if (call->value)
        OK(check_output(&all.value));
    OK(plan_gradients(call, &all, job));
    OK(check_overlaps(&all, job));
    OK(check_skip_if_one(call, job));
    job->skip_if_one = call->flags & ONEPASS_SKIP_IF_UPSTREAM_IS_ONE;
    job->first = 0;
    job->count = all.common.count;
    job->sum = NULL;
    plan_divisor(&all.common, job);
    return ONEPASS_OK;
}

/* Without weights that count the mask itself is added up: its elements count as 0 and 1. */
void onepass_plan_weights(const job *weighted, job *weights) {
    const bool counts_weights = weighted->weight.data && !weighted->over_elements;
    *weights = (struct job){.family = FAMILY_WEIGHTS,
                            .operand_count = 1,
                            .reduction = ONEPASS_SUM,
                            .compute = weighted->compute,
                            .first = weighted->first,
                            .count = weighted->count,
                            .operand = {counts_weights ? weighted->weight : weighted->mask},
                            .divisor = 1,
                            .threads = weighted->threads};
    if (counts_weights)
        weights->mask = weighted->mask;
}

/* ----------------------------------------------------------------- scale -- */

/* A call that only scales gradients describes nothing else; a field that is set was meant for another function. */
static onepass_status check_scale_only(const onepass_call *call) {
    const char *name = call->loss                             ? "loss"
                       : call->parameter_count                ? "parameter_count"
                       : call->reduction                      ? "reduction"
                       : call->divisor != 0                   ? "divisor"
                       : call->operand[0]                     ? "operand[0], the prediction,"
                       : call->operand[1]                     ? "operand[1], the target,"
                       : call->operand[2] || call->operand[3] ? "operand[2] or operand[3]"
                       : call->weight                         ? "weight"
                       : call->mask                           ? "mask"
                       : call->value                          ? "value"
                       : call->gradient[MOST_OPERANDS]        ? "gradient[3]"
                       : call->flags                          ? "flags"
                                                              : NULL;
    if (name)
        FAIL_ARGUMENT("%s is set; onepass_scale multiplies gradients by upstream and takes nothing else, so it must be "
                      "null or 0",
                      name);
    if (!call->gradient[0] && !call->gradient[1] && !call->gradient[2])
        FAIL_ARGUMENT("nothing is to be scaled: gradient[0] to gradient[2] are null; expected at least one");
    return ONEPASS_OK;
}

/* A 16-bit gradient was rounded before it is scaled, so it would have other bits. */
static onepass_status check_scalable(const checked *gradient) {
    if (gradient->dtype != ONEPASS_F32 && gradient->dtype != ONEPASS_F64)
        return onepass_fail(ONEPASS_NOT_SUPPORTED,
                            "%s has 16 bits an element and was rounded to them before upstream was known; compute it "
                            "anew with upstream instead",
                            gradient->name);
    return ONEPASS_OK;
}

/* Two gradients are those of one call, so they have one shape, and one type if they can be scaled at all. */
static onepass_status check_pair(const checked *first, const checked *second) {
    if (first->dtype != second->dtype)
        FAIL_ARGUMENT("%s and %s have different types; gradients of one call that can be scaled have one, that of the "
                      "computation",
                      first->name, second->name);
    if (!same_shape(first, second->ndim, second->shape))
        FAIL_SHAPE("%s has shape %s and %s has shape %s; gradients of one call have one shape", first->name,
                   shape_text(first->ndim, first->shape).characters, second->name,
                   shape_text(second->ndim, second->shape).characters);
    return check_apart(first, second);
}

static onepass_status plan_scaled(const onepass_call *call, checked *gradient, job *job) {
    for (int32_t k = 0; k < MOST_OPERANDS; k++) {
        if (!call->gradient[k])
            continue;
        OK(check_tensor(call->gradient[k], onepass_gradient_name[k], &gradient[k]));
        OK(check_output(&gradient[k]));
        OK(check_scalable(&gradient[k]));
        common own = {.ndim = gradient[k].ndim, .count = gradient[k].count};
        memcpy(own.shape, gradient[k].shape, (size_t)own.ndim * sizeof *own.shape);
        make_view(&gradient[k], &own, &job->gradient[k]);
        job->compute = gradient[k].dtype;
        job->count = gradient[k].count;
        for (int32_t j = 0; j < k; j++)
            if (call->gradient[j])
                OK(check_pair(&gradient[j], &gradient[k]));
    }
    return ONEPASS_OK;
}

onepass_status onepass_plan_scale(const onepass_call *call, job *job) {
    checked gradient[MOST_OPERANDS], upstream;
    OK(check_flags(call));
    OK(check_scale_only(call));
    *job = (struct job){.family = FAMILY_SCALE, .reduction = ONEPASS_SUM, .divisor = 1};
    OK(plan_place(call, job));
    if (!call->upstream)
        FAIL_ARGUMENT("upstream is null; expected a tensor of one element");
    OK(plan_scaled(call, gradient, job));
    OK(plan_reduced(call->upstream, "upstream", NULL, &upstream, job, &job->upstream));
    for (int32_t k = 0; k < MOST_OPERANDS; k++)
        if (call->gradient[k])
            OK(check_apart(&gradient[k], &upstream));
    return ONEPASS_OK;
}
