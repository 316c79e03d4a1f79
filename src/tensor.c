/* Tensors: see tensor.h. */
#include "tensor.h"

#include "dtype.h"
#include "message.h"

#include <stdio.h>
#include <string.h>

typedef struct text {
    char characters[480];
} text;

/* (8, 128): as Python writes a shape. */
static text text_of(int32_t ndim, const int64_t *numbers) {
    text text = {"("};
    size_t used = 1;
    for (int32_t d = 0; d < ndim && used < sizeof text.characters; d++)
        used += (size_t)snprintf(text.characters + used, sizeof text.characters - used, "%s%lld", d ? ", " : "",
                                 (long long)numbers[d]);
    if (used < sizeof text.characters)
        snprintf(text.characters + used, sizeof text.characters - used, ndim == 1 ? ",)" : ")");
    return text;
}

/* For the arguments of a message. */
#define SHAPE_TEXT(shape)    text_of((shape)->ndim, (shape)->extent).characters
#define STRIDES_TEXT(tensor) text_of((tensor)->shape.ndim, (tensor)->stride).characters

/* Fills in the number of elements. */
static onepass_status count_elements(onepass_shape *shape, const char *name) {
    bool empty = false;
    for (int32_t d = 0; d < shape->ndim; d++) {
        if (shape->extent[d] < 0)
            FAIL_SHAPE("%s has shape %s; extents must not be negative", name, SHAPE_TEXT(shape));
        empty |= shape->extent[d] == 0;
    }
    shape->count = empty ? 0 : 1;
    for (int32_t d = 0; d < shape->ndim && !empty; d++)
        if (__builtin_mul_overflow(shape->count, shape->extent[d], &shape->count))
            FAIL_SHAPE("%s has shape %s; its number of elements must fit into 63 bits", name, SHAPE_TEXT(shape));
    return ONEPASS_OK;
}

/* Dense, row-major strides. They are of no interest in an empty tensor. */
static void fill_strides(const onepass_shape *shape, int64_t *stride) {
    int64_t step = shape->count > 0;
    for (int32_t d = shape->ndim - 1; d >= 0; d--) {
        stride[d] = step;
        step *= shape->count > 0 ? shape->extent[d] : 0;
    }
}

/* Bytes that a tensor may span to either side of its first element. No machine has as many, and below this a walk's
 * step past the end of a dimension still fits, and so does a stride of 16-bit numbers that is counted in floats. */
#define LARGEST_SPAN ((int64_t)1 << 62)

/* The first and one past the last byte, if they are addresses at all. */
static onepass_status check_span(tensor *tensor) {
    tensor->begin = tensor->end = (uintptr_t)tensor->data;
    if (tensor->shape.count == 0)
        return ONEPASS_OK;
    if (!tensor->data)
        FAIL_ARGUMENT("%s has null data; expected a pointer to its %lld elements", tensor->name,
                      (long long)tensor->shape.count);
    const int64_t size = (int64_t)dtype_size(tensor->dtype);
    if ((uintptr_t)tensor->data & (uintptr_t)(size - 1)) /* a power of two: no division */
        FAIL_MEMORY("%s has data at %p, which is misaligned; its type needs a multiple of %lld bytes", tensor->name,
                    tensor->data, (long long)size);
    int64_t lowest = 0, highest = 0;
    bool overflow = false;
    for (int32_t d = 0; d < tensor->shape.ndim; d++) {
        int64_t reach;
        overflow |= __builtin_mul_overflow(tensor->shape.extent[d] - 1, tensor->stride[d], &reach);
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
                   SHAPE_TEXT(&tensor->shape), STRIDES_TEXT(tensor));
    return ONEPASS_OK;
}

static onepass_status check_ndim(int32_t ndim, const char *name) {
    if (ndim < 0 || ndim > ONEPASS_MAX_DIMENSIONS)
        FAIL_SHAPE("%s has ndim %d; expected 0 to %d dimensions", name, ndim, ONEPASS_MAX_DIMENSIONS);
    return ONEPASS_OK;
}

static onepass_status read_shape(const onepass_tensor *given, const char *name, onepass_shape *shape) {
    shape->ndim = given->ndim;
    OK(check_ndim(given->ndim, name));
    if (given->ndim > 0 && !given->shape)
        FAIL_ARGUMENT("%s has a null shape; expected %d extents", name, given->ndim);
    if (given->ndim > 0)
        memcpy(shape->extent, given->shape, (size_t)given->ndim * sizeof *given->shape);
    return count_elements(shape, name);
}

static void read_strides(const onepass_tensor *given, const onepass_shape *shape, int64_t *stride) {
    if (shape->ndim > 0 && given->strides)
        memcpy(stride, given->strides, (size_t)shape->ndim * sizeof *stride);
    else
        fill_strides(shape, stride);
}

/* All but the type. */
static onepass_status check_layout(const onepass_tensor *given, const char *name, tensor *tensor) {
    tensor->name = name;
    tensor->data = given->data;
    tensor->dtype = given->dtype;
    OK(read_shape(given, name, &tensor->shape));
    read_strides(given, &tensor->shape, tensor->stride);
    return check_span(tensor);
}

onepass_status onepass_read_tensor(const onepass_tensor *given, const char *name, tensor *tensor) {
    if (given->dtype < ONEPASS_F16 || given->dtype > ONEPASS_F64)
        FAIL_ARGUMENT("%s has dtype %d; expected ONEPASS_F16 (1), ONEPASS_BF16 (2), ONEPASS_F32 (3) or ONEPASS_F64 (4)",
                      name, given->dtype);
    return check_layout(given, name, tensor);
}

onepass_status onepass_read_mask(const onepass_tensor *given, tensor *tensor) {
    if (given->dtype != ONEPASS_BOOL)
        FAIL_ARGUMENT("mask has dtype %d; expected ONEPASS_BOOL (5), a byte an element", given->dtype);
    return check_layout(given, "mask", tensor);
}

onepass_status onepass_read_labels(const onepass_tensor *given, const char *loss, const char *advice, tensor *tensor) {
    if (given->dtype >= ONEPASS_F16 && given->dtype <= ONEPASS_F64)
        FAIL_ARGUMENT("target has floating-point numbers; %s takes class indices, ONEPASS_I64 (6), ONEPASS_I32 (7) or "
                      "ONEPASS_U8 (8)%s",
                      loss, advice);
    if (given->dtype < ONEPASS_I64 || given->dtype > ONEPASS_U8)
        FAIL_ARGUMENT("target has dtype %d; expected class indices: ONEPASS_I64 (6), ONEPASS_I32 (7) or ONEPASS_U8 (8)",
                      given->dtype);
    return check_layout(given, "target", tensor);
}

onepass_status onepass_read_indices(const onepass_tensor *given, const char *name, tensor *tensor) {
    if (given->dtype != ONEPASS_I64)
        FAIL_ARGUMENT("%s has dtype %d; expected ONEPASS_I64 (6)", name, given->dtype);
    return check_layout(given, name, tensor);
}

onepass_status onepass_read_scalar(const onepass_tensor *given, const char *name, tensor *tensor) {
    if (!given)
        FAIL_ARGUMENT("%s is null; expected a tensor of one element", name);
    OK(onepass_read_tensor(given, name, tensor));
    if (tensor->shape.count != 1)
        FAIL_SHAPE("%s has shape %s; expected one element for this reduction", name, SHAPE_TEXT(&tensor->shape));
    return ONEPASS_OK;
}

/* --------------------------------------------------------------- overlap -- */

/* Judged by strides that nest:
 * in the order of their size, each must step over all that the smaller ones reach. */
onepass_status onepass_check_output(const tensor *tensor) {
    int64_t extent[ONEPASS_MAX_DIMENSIONS], stride[ONEPASS_MAX_DIMENSIONS];
    int32_t used = 0;
    for (int32_t d = 0; d < tensor->shape.ndim && tensor->shape.count > 0; d++) {
        if (tensor->shape.extent[d] == 1)
            continue;
        const int64_t step = tensor->stride[d] < 0 ? -tensor->stride[d] : tensor->stride[d];
        int32_t at = used++;
        for (; at > 0 && stride[at - 1] > step; at--) {
            stride[at] = stride[at - 1];
            extent[at] = extent[at - 1];
        }
        stride[at] = step;
        extent[at] = tensor->shape.extent[d];
    }
    int64_t reach = 0;
    for (int32_t i = 0; i < used; i++) {
        if (stride[i] <= reach)
            FAIL_MEMORY("%s has shape %s and strides %s, under which elements overlap; an output's may not",
                        tensor->name, SHAPE_TEXT(&tensor->shape), STRIDES_TEXT(tensor));
        reach += (extent[i] - 1) * stride[i];
    }
    return ONEPASS_OK;
}

onepass_status onepass_check_apart(const tensor *output, const tensor *other) {
    if (output->begin < other->end && other->begin < output->end)
        FAIL_MEMORY("%s overlaps %s in memory; a gradient may lie over its own operand with the same pointer, type, "
                    "shape and strides, and all else must be apart",
                    output->name, other->name);
    return ONEPASS_OK;
}

bool onepass_same_shape(const onepass_shape *a, const onepass_shape *b) {
    return a->ndim == b->ndim && memcmp(a->extent, b->extent, (size_t)a->ndim * sizeof *a->extent) == 0;
}

bool onepass_same_place(const tensor *a, const tensor *b) {
    if (a->data != b->data || a->dtype != b->dtype || !onepass_same_shape(&a->shape, &b->shape))
        return false;
    for (int32_t d = 0; d < a->shape.ndim; d++)
        if (a->stride[d] != b->stride[d] && a->shape.extent[d] > 1)
            return false;
    return true;
}

/* ---------------------------------------------------------- broadcasting -- */

/* If the shorter shape is the beginning of the longer one, somebody counted from
 * the first dimension: say which shape was probably meant. */
static text suggest_reshape(const char *name, const onepass_shape *shorter, const onepass_shape *longer) {
    text hint = {""};
    onepass_shape meant = *shorter;
    if (shorter->ndim == 0 || shorter->ndim >= longer->ndim)
        return hint;
    for (int32_t d = 0; d < shorter->ndim; d++)
        if (shorter->extent[d] != longer->extent[d] && shorter->extent[d] != 1)
            return hint;
    while (meant.ndim < longer->ndim)
        meant.extent[meant.ndim++] = 1;
    snprintf(hint.characters, sizeof hint.characters,
             "; shapes are aligned at the last dimension, so for one %s a row reshape it to %.360s", name,
             SHAPE_TEXT(&meant));
    return hint;
}

/* Two extents that must be one. */
typedef struct conflict {
    int64_t a, b;
} conflict;

static onepass_status do_not_broadcast(const tensor *a, const tensor *b, conflict conflict) {
    const tensor *shorter = a->shape.ndim < b->shape.ndim ? a : b, *longer = shorter == a ? b : a;
    FAIL_SHAPE("%s has shape %s and %s has shape %s, which do not broadcast (%lld against %lld)%s", a->name,
               SHAPE_TEXT(&a->shape), b->name, SHAPE_TEXT(&b->shape), (long long)conflict.a, (long long)conflict.b,
               suggest_reshape(shorter->name, &shorter->shape, &longer->shape).characters);
}

/* Joins another shape to a common one, whose elements are to be counted anew. False: they do not broadcast. */
static bool join(onepass_shape *common, const onepass_shape *own, conflict *conflict) {
    onepass_shape joined;
    joined.ndim = common->ndim > own->ndim ? common->ndim : own->ndim;
    for (int32_t d = 1; d <= joined.ndim; d++) { /* from the last one on */
        const int64_t a = d <= common->ndim ? common->extent[common->ndim - d] : 1;
        const int64_t b = d <= own->ndim ? own->extent[own->ndim - d] : 1;
        if (a != b && a != 1 && b != 1) {
            *conflict = (struct conflict){a, b};
            return false;
        }
        joined.extent[joined.ndim - d] = a == 1 ? b : a;
    }
    common->ndim = joined.ndim;
    memcpy(common->extent, joined.extent, (size_t)joined.ndim * sizeof *joined.extent);
    return true;
}

onepass_status onepass_common_shape(const tensor *tensor, int32_t count, onepass_shape *common) {
    conflict conflict;
    common->ndim = 0;
    for (int32_t k = 0; k < count; k++)
        if (!join(common, &tensor[k].shape, &conflict))
            return do_not_broadcast(&tensor[0], &tensor[k], conflict);
    return count_elements(common, "the common shape of the operands");
}

onepass_status onepass_check_shape(const tensor *tensor, const onepass_shape *common, const char *what) {
    if (!onepass_same_shape(&tensor->shape, common))
        FAIL_SHAPE("%s has shape %s; %s has the operands' common shape %s", tensor->name, SHAPE_TEXT(&tensor->shape),
                   what, SHAPE_TEXT(common));
    return ONEPASS_OK;
}

onepass_status onepass_fail_rows(const tensor *tensor, const onepass_shape *expected, const char *who) {
    FAIL_SHAPE("%s has shape %s; %s shape %s", tensor->name, SHAPE_TEXT(&tensor->shape), who, SHAPE_TEXT(expected));
}

onepass_status onepass_check_same_shape(const tensor *first, const tensor *second) {
    if (!onepass_same_shape(&first->shape, &second->shape))
        FAIL_SHAPE("%s has shape %s and %s has shape %s; gradients of one call have one shape", first->name,
                   SHAPE_TEXT(&first->shape), second->name, SHAPE_TEXT(&second->shape));
    return ONEPASS_OK;
}

static bool broadcasts_to(const onepass_shape *own, const onepass_shape *common) {
    const int32_t missing = common->ndim - own->ndim;
    bool reaches = missing >= 0;
    for (int32_t d = 0; d < own->ndim && reaches; d++)
        reaches = own->extent[d] == 1 || own->extent[d] == common->extent[d + missing];
    return reaches;
}

onepass_status onepass_check_broadcast(const tensor *tensor, const onepass_shape *common, const char *what) {
    if (!broadcasts_to(&tensor->shape, common))
        FAIL_SHAPE("%s has shape %s, which does not broadcast to %s %s%s", tensor->name, SHAPE_TEXT(&tensor->shape),
                   what, SHAPE_TEXT(common), suggest_reshape(tensor->name, &tensor->shape, common).characters);
    return ONEPASS_OK;
}

static void spread_strides(const onepass_shape *own, const int64_t *stride, const onepass_shape *common,
                           int64_t *spread) {
    const int32_t missing = common->ndim - own->ndim;
    for (int32_t d = 0; d < common->ndim; d++)
        spread[d] = d < missing || own->extent[d - missing] == 1 ? 0 : stride[d - missing];
}

/* Returns how many dimensions are left. */
static int32_t merge_dimensions(int32_t ndim, int64_t *extent, int64_t *stride) {
    int32_t kept = 0;
    for (int32_t d = 0; d < ndim; d++) {
        if (extent[d] == 1)
            continue;
        int64_t step;
        if (kept > 0 && !__builtin_mul_overflow(stride[d], extent[d], &step) && stride[kept - 1] == step) {
            extent[kept - 1] *= extent[d];
            stride[kept - 1] = stride[d];
        } else {
            extent[kept] = extent[d];
            stride[kept++] = stride[d];
        }
    }
    if (kept == 0) {
        extent[0] = stride[0] = 1;
        kept = 1;
    }
    return kept;
}

void onepass_make_view(const tensor *tensor, const onepass_shape *common, view *view) {
    view->data = tensor->data;
    view->dtype = tensor->dtype;
    memcpy(view->shape, common->extent, (size_t)common->ndim * sizeof *view->shape);
    spread_strides(&tensor->shape, tensor->stride, common, view->stride);
    view->ndim = merge_dimensions(common->count > 0 ? common->ndim : 0, view->shape, view->stride);
}

/* ---------------------------------------------------------- for programs -- */

size_t onepass_dtype_size(int32_t dtype) {
    return dtype >= ONEPASS_F16 && dtype <= ONEPASS_U8 ? dtype_size(dtype) : 0;
}

int32_t onepass_promote(int32_t a, int32_t b) {
    if (a < ONEPASS_F16 || a > ONEPASS_F64 || b < ONEPASS_F16 || b > ONEPASS_F64)
        return 0;
    const bool differ_in_16_bits = a != b && a < ONEPASS_F32 && b < ONEPASS_F32;
    return differ_in_16_bits ? ONEPASS_F32 : a > b ? a : b;
}

onepass_status onepass_broadcast(onepass_shape *common, const onepass_tensor *tensor) {
    onepass_shape own, joined;
    conflict conflict;
    onepass_succeed();
    if (!common || !tensor)
        FAIL_ARGUMENT("%s is null; expected a shape and a tensor", common ? "tensor" : "common");
    OK(check_ndim(common->ndim, "common"));
    OK(read_shape(tensor, "the tensor", &own));
    joined = *common;
    if (!join(&joined, &own, &conflict))
        FAIL_SHAPE("the tensor has shape %s, which does not broadcast with %s (%lld against %lld)", SHAPE_TEXT(&own),
                   SHAPE_TEXT(common), (long long)conflict.b, (long long)conflict.a);
    OK(count_elements(&joined, "the common shape"));
    *common = joined;
    return ONEPASS_OK;
}

onepass_status onepass_broadcast_strides(const onepass_tensor *tensor, const onepass_shape *common, int64_t *strides) {
    onepass_shape own, all;
    int64_t stride[ONEPASS_MAX_DIMENSIONS];
    onepass_succeed();
    if (!tensor || !common || !strides)
        FAIL_ARGUMENT("%s is null; expected a tensor, a shape and a place for its strides", !tensor   ? "tensor"
                                                                                            : !common ? "common"
                                                                                                      : "strides");
    OK(check_ndim(common->ndim, "common"));
    all = *common;
    OK(count_elements(&all, "common"));
    OK(read_shape(tensor, "the tensor", &own));
    if (!broadcasts_to(&own, common))
        FAIL_SHAPE("the tensor has shape %s, which does not broadcast to %s", SHAPE_TEXT(&own), SHAPE_TEXT(common));
    read_strides(tensor, &own, stride);
    spread_strides(&own, stride, common, strides);
    return ONEPASS_OK;
}

onepass_status onepass_merge_dimensions(onepass_shape *shape, int64_t *strides) {
    onepass_shape merged;
    onepass_succeed();
    if (!shape || !strides)
        FAIL_ARGUMENT("%s is null; expected a shape and its strides", shape ? "strides" : "shape");
    OK(check_ndim(shape->ndim, "the shape"));
    merged = *shape;
    OK(count_elements(&merged, "the shape"));
    merged.ndim = merge_dimensions(merged.count > 0 ? merged.ndim : 0, merged.extent, strides);
    if (merged.count == 0)
        merged.extent[0] = 0;
    *shape = merged;
    return ONEPASS_OK;
}
