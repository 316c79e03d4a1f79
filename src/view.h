/* What engines see of a tensor. */
#ifndef ONEPASS_VIEW_H
#define ONEPASS_VIEW_H

#include "onepass.h"

/*
 * A tensor at the common shape, as an engine walks it: element i in row-major
 * order of that shape is found by this view's own dimensions, which are as few as
 * the strides allow. A dense tensor has one, whatever the call's shape; a row that
 * is shared by all rows has two, the outer with stride 0.
 */
typedef struct view {
    void *data; /* null: absent */
    int32_t dtype;
    int32_t ndim; /* at least 1 */
    int64_t shape[ONEPASS_MAX_DIMENSIONS];
    int64_t stride[ONEPASS_MAX_DIMENSIONS]; /* in elements */
} view;

#endif
