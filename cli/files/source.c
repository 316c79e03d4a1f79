#include "source.h"
#include "tool.h"

#include <stdlib.h>
#include <string.h>

#define LEAST(a, b) ((a) < (b) ? (a) : (b))

/* ------------------------------------------------------------------- the view -- */

/* By the strides for the dimensions of a shape. */
static void merge_view(source *source, const onepass_shape *shape) {
    view *view = &source->view;
    onepass_shape merged = *shape;
    memcpy(view->stride, source->common_stride, sizeof view->stride);
    onepass_merge_dimensions(&merged, view->stride);
    view->ndim = merged.ndim;
    memcpy(view->shape, merged.extent, sizeof view->shape);
}

void source_open(source *source, input *input, const onepass_shape *common) {
    *source = (struct source){.view = {.input = input}};
    if (common->count == 0)
        return; /* nobody will take anything */
    const onepass_tensor tensor = layout_tensor(&input->layout);
    onepass_broadcast_strides(&tensor, common, source->common_stride);
    merge_view(source, common);
}

void source_open_moved(source *source, input *input, int32_t last) {
    const layout *layout = &input->layout;
    onepass_shape shape = {.count = layout->count};
    *source = (struct source){.view = {.input = input}};
    if (layout->count == 0)
        return;
    for (int32_t d = 0; d < layout->ndim; d++)
        if (d != last) {
            source->common_stride[shape.ndim] = layout->stride[d];
            shape.extent[shape.ndim++] = layout->shape[d];
        }
    if (last >= 0) {
        source->common_stride[shape.ndim] = layout->stride[last];
        shape.extent[shape.ndim++] = layout->shape[last];
    }
    merge_view(source, &shape);
}

void source_close(source *source) {
    free(source->buffer);
    source->buffer = NULL;
}

/* ------------------------------------------------------------------- the pieces -- */

/* Consecutive in the file and in order. */
static bool is_plain(const view *view) {
    return view->ndim == 1 && view->stride[0] == 1;
}

/* The library reads numbers of this machine, at addresses that are multiples of their size. It would take any strides,
 * but numbers that lie apart are copied sooner than read one by one. */
static bool is_readable(const view *view) {
    const layout *layout = &view->input->layout;
    return !layout->swapped && layout->offset % (uint64_t)onepass_dtype_size(layout->dtype) == 0 &&
           view->stride[view->ndim - 1] <= 1;
}

/* Rows that suit an accumulator, if a piece has room for some. */
static void try_rows(const onepass_shape *common, int64_t most, pieces *pieces) {
    int32_t first = 0;
    while (first < common->ndim - 1 && common->extent[first] == 1)
        first++;
    int64_t row = 1, unit = ONEPASS_TILE;
    for (int32_t d = first + 1; d < common->ndim; d++)
        row *= common->extent[d];
    for (int64_t rest = row; rest % 2 == 0 && unit > 1; rest /= 2)
        unit /= 2; /* so many rows are whole tiles */
    if (common->ndim == 0 || row > most / unit)
        return;
    *pieces = (struct pieces){.elements = most / (unit * row) * unit * row, .row = row, .first = first};
}

/* Room for a copy where there has to be one. */
static bool make_room(source *source, int64_t elements) {
    const input *input = source->view.input;
    if (source->is_direct)
        return true;
    source->buffer = malloc((size_t)elements * onepass_dtype_size(input->layout.dtype));
    if (!source->buffer)
        complain(FAILED, "%s: no memory to copy a part of it", input->path);
    return source->buffer != NULL;
}

bool source_prepare(source *source, int64_t elements) {
    if (elements == 0)
        return true;
    source->is_direct = is_readable(&source->view) && is_plain(&source->view);
    return make_room(source, elements);
}

bool choose_pieces(source *const *sources, int count, const onepass_shape *common, int64_t most, bool may_be_rows,
                   pieces *pieces) {
    bool wants_rows = false;
    *pieces = (struct pieces){.elements = most};
    if (common->count == 0)
        return true;
    for (int k = 0; k < count; k++)
        wants_rows |= is_readable(&sources[k]->view) && !is_plain(&sources[k]->view);
    if (wants_rows && may_be_rows)
        try_rows(common, most, pieces);
    for (int k = 0; k < count; k++) {
        const view *view = &sources[k]->view;
        sources[k]->is_direct = is_readable(view) && (is_plain(view) || pieces->row > 0);
        if (!make_room(sources[k], LEAST(pieces->elements, common->count)))
            return false;
    }
    return true;
}

void shape_piece(const pieces *pieces, const onepass_shape *common, int64_t count, onepass_shape *piece) {
    *piece = (onepass_shape){.ndim = 1, .extent = {count}, .count = count};
    if (pieces->row == 0)
        return;
    piece->ndim = common->ndim - pieces->first;
    memcpy(piece->extent, common->extent + pieces->first, (size_t)piece->ndim * sizeof *piece->extent);
    piece->extent[0] = count / pieces->row;
}

/* -------------------------------------------------------------------- taking -- */

/* The elements that a piece touches lie from `lowest` on, up to `highest`: whole rows of the first dimension in which
 * the piece has more than one index, which is more than it needs, and never more than the file has. */
static void find_reach(const view *view, int64_t first, int64_t count, int64_t *lowest, int64_t *highest) {
    int64_t inner = 1;
    for (int32_t k = 1; k < view->ndim; k++)
        inner *= view->shape[k];
    int64_t last = first + count - 1;
    *lowest = *highest = 0;
    for (int32_t d = 0; d < view->ndim; d++) {
        const int64_t a = first / inner, b = last / inner;
        *lowest += a * view->stride[d];
        *highest += b * view->stride[d];
        if (a != b) {
            for (int32_t k = d + 1; k < view->ndim; k++)
                *highest += (view->shape[k] - 1) * view->stride[k];
            return;
        }
        first %= inner;
        last %= inner;
        if (d + 1 < view->ndim)
            inner /= view->shape[d + 1];
    }
}

static const void *map_piece(const view *view, int64_t first, int64_t count) {
    const layout *layout = &view->input->layout;
    const uint64_t size = onepass_dtype_size(layout->dtype);
    int64_t lowest, highest;
    find_reach(view, first, count, &lowest, &highest);
    return input_map(view->input, layout->offset + (uint64_t)lowest * size,
                     layout->offset + ((uint64_t)highest + 1) * size);
}

bool source_take(source *source, int64_t first, const onepass_shape *piece, const pieces *pieces, int threads,
                 onepass_tensor *tensor) {
    const view *view = &source->view;
    const void *data = source->buffer;
    if (source->is_direct)
        data = map_piece(view, first, piece->count);
    else if (!gather(view, first, piece->count, source->buffer, threads))
        data = NULL;
    *tensor = (onepass_tensor){.data = (void *)(uintptr_t)data,
                               .dtype = view->input->layout.dtype,
                               .ndim = piece->ndim,
                               .shape = piece->extent,
                               .strides =
                                   source->is_direct && pieces->row > 0 ? source->common_stride + pieces->first : NULL};
    return data != NULL;
}
