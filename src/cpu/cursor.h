/* A walk through a view, element by element or row by row of its innermost dimension. */
#ifndef ONEPASS_CPU_CURSOR_H
#define ONEPASS_CPU_CURSOR_H

#include "math/real.h"
#include "view.h"

ALWAYS_INLINE int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

ALWAYS_INLINE int64_t inner_stride(const view *view) {
    return view->stride[view->ndim - 1];
}

/* Loops over dimensions stay loops: with all sixteen laid out gcc took three times as long over run.c, and its code was
 * twice as large and no faster.
 *
 * A place in a view, and what is left of its innermost row from there. */
typedef struct cursor {
    int64_t offset;
    int64_t left;
    int64_t row; /* offset of the row's beginning */
    int64_t index[ONEPASS_MAX_DIMENSIONS];
} cursor;

ALWAYS_INLINE cursor cursor_at(const view *view, int64_t element) {
    cursor at; /* not zeroed: most views have one dimension or two */
    const int inner = view->ndim - 1;
#pragma GCC unroll 1
    for (int d = inner; d > 0; d--) {
        at.index[d] = element % view->shape[d];
        element /= view->shape[d];
    }
    at.index[0] = element;
    at.row = 0;
#pragma GCC unroll 1
    for (int d = 0; d < inner; d++)
        at.row += at.index[d] * view->stride[d];
    at.offset = at.row + at.index[inner] * view->stride[inner];
    at.left = view->shape[inner] - at.index[inner];
    return at;
}

ALWAYS_INLINE void cursor_next_row(cursor *at, const view *view) {
    int d = view->ndim - 2;
#pragma GCC unroll 1
    for (; d >= 0; d--) {
        at->row += view->stride[d];
        if (++at->index[d] < view->shape[d])
            break;
        at->row -= view->shape[d] * view->stride[d];
        at->index[d] = 0;
    }
    at->offset = at->row;
    at->left = view->shape[view->ndim - 1];
}

/* To the next element. */
ALWAYS_INLINE void cursor_step(cursor *at, const view *view) {
    if (--at->left == 0)
        cursor_next_row(at, view);
    else
        at->offset += inner_stride(view);
}

#endif
