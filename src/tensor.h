/*
 * Tensors: shapes, strides, broadcasting and overlap. What a caller hands in is checked here, once, and becomes a view
 * for the engines. Depends on nothing but messages.
 */
#ifndef ONEPASS_TENSOR_H
#define ONEPASS_TENSOR_H

#include "internal.h"
#include "view.h"

#include <stdbool.h>

/* A tensor that has been checked, with all that later checks need. */
typedef struct tensor {
    const char *name; /* as messages call it */
    void *data;
    int32_t dtype;
    onepass_shape shape;
    int64_t stride[ONEPASS_MAX_DIMENSIONS];
    uintptr_t begin, end; /* the addresses it spans; equal if it has no elements */
} tensor;

/* A tensor of numbers, as the caller describes it. */
ONEPASS_INTERNAL onepass_status onepass_read_tensor(const onepass_tensor *given, const char *name, tensor *tensor);

/* The same of a mask, ... */
ONEPASS_INTERNAL onepass_status onepass_read_mask(const onepass_tensor *given, tensor *tensor);

/* ... of class indices, those of a loss (with advice for whoever has floating-point numbers, or "") or any others, ...
 */
ONEPASS_INTERNAL onepass_status onepass_read_labels(const onepass_tensor *given, const char *loss, const char *advice,
                                                    tensor *tensor);
ONEPASS_INTERNAL onepass_status onepass_read_indices(const onepass_tensor *given, const char *name, tensor *tensor);

/* ... and of a tensor that must have one element. */
ONEPASS_INTERNAL onepass_status onepass_read_scalar(const onepass_tensor *given, const char *name, tensor *tensor);

/* The shape that the tensors have together, aligned at the last dimension. */
ONEPASS_INTERNAL onepass_status onepass_common_shape(const tensor *tensor, int32_t count, onepass_shape *common);

/* That the tensor has this shape, ... */
ONEPASS_INTERNAL onepass_status onepass_check_shape(const tensor *tensor, const onepass_shape *common,
                                                    const char *what);

ONEPASS_INTERNAL bool onepass_same_shape(const onepass_shape *a, const onepass_shape *b);

/* That it has not, though `who` has. */
ONEPASS_INTERNAL onepass_status onepass_fail_rows(const tensor *tensor, const onepass_shape *expected, const char *who);

/* ... or broadcasts to it, as it is. */
ONEPASS_INTERNAL onepass_status onepass_check_broadcast(const tensor *tensor, const onepass_shape *common,
                                                        const char *what);

/* That two gradients of one call have one shape. */
ONEPASS_INTERNAL onepass_status onepass_check_same_shape(const tensor *first, const tensor *second);

/* That no two elements of an output share memory. */
ONEPASS_INTERNAL onepass_status onepass_check_output(const tensor *tensor);

/* That an output and another tensor share none. */
ONEPASS_INTERNAL onepass_status onepass_check_apart(const tensor *output, const tensor *other);

/* Whether two tensors are one: pointer, type, shape and strides. */
ONEPASS_INTERNAL bool onepass_same_place(const tensor *a, const tensor *b);

/* The tensor at the common shape, with as few dimensions as its strides allow. */
ONEPASS_INTERNAL void onepass_make_view(const tensor *tensor, const onepass_shape *common, view *view);

#endif
