#include "gather.h"

#include <string.h>

#define LEAST(a, b) ((a) < (b) ? (a) : (b))

/* Bytes of the file that are mapped at a time, so that memory is bounded however far apart the elements are. */
#define WINDOW ((int64_t)32 << 20)

/* ------------------------------------------------------------------------ boxes -- */

/* Elements in several dimensions: how many, and how far apart, in the copy and in the file. */
typedef struct box {
    int32_t ndim;
    int64_t extent[ONEPASS_MAX_DIMENSIONS], to[ONEPASS_MAX_DIMENSIONS], from[ONEPASS_MAX_DIMENSIONS];
    int64_t from_at;     /* the first one, in elements from the array's beginning */
    unsigned char *copy; /* of the first one */
} box;

/* Two dimensions of a box: b is the last one, so that its elements are neighbours in the copy; a is that whose elements
 * are nearest to each other in the file, or nothing (extent 1). */
typedef struct plane {
    int64_t extent_a, to_a, from_a;
    int64_t extent_b, from_b;
} plane;

/* A part of a plane is a piece of a line where there is no a, else a block. Blocks are tall, since each of their
 * columns may be on a page of its own. */
enum {
    LINE = 16384,
    ROWS = 128,
    COLUMNS = 16
};

/* ----------------------------------------------------------------------- copying -- */

#define SWAP_ELEMENTS(type, swap)                                                                                      \
    for (int64_t i = 0; i < count; i++) {                                                                              \
        type x;                                                                                                        \
        memcpy(&x, (const unsigned char *)from + i * (int64_t)sizeof x, sizeof x);                                     \
        x = swap(x);                                                                                                   \
        memcpy((unsigned char *)to + i * (int64_t)sizeof x, &x, sizeof x);                                             \
    }

void swap_bytes(void *to, const void *from, int64_t count, size_t element_size) {
    if (element_size == 2)
        SWAP_ELEMENTS(uint16_t, __builtin_bswap16)
    else if (element_size == 4)
        SWAP_ELEMENTS(uint32_t, __builtin_bswap32)
    else
        SWAP_ELEMENTS(uint64_t, __builtin_bswap64)
}

#define COPY_ELEMENTS(type)                                                                                            \
    for (int64_t i = 0; i < count; i++)                                                                                \
    memcpy(to + i * (int64_t)sizeof(type), from + i * step * (int64_t)sizeof(type), sizeof(type))

/* `count` elements, `step` elements apart in the file. The compiler makes single loads and stores of the copies. */
static void copy_line(unsigned char *to, const unsigned char *from, int64_t step, int64_t count, size_t size) {
    if (step == 1)
        memcpy(to, from, (size_t)count * size);
    else if (size == 1)
        COPY_ELEMENTS(uint8_t);
    else if (size == 2)
        COPY_ELEMENTS(uint16_t);
    else if (size == 4)
        COPY_ELEMENTS(uint32_t);
    else
        COPY_ELEMENTS(uint64_t);
}

/* Through a block of its own: rows that are powers of two apart share a few lines of the cache, from which they would
 * drive each other out before they are whole. */
#define COPY_BLOCK(type)                                                                                               \
    type block[ROWS][COLUMNS];                                                                                         \
    for (int64_t b = 0; b < columns; b++)                                                                              \
        for (int64_t a = 0; a < rows; a++)                                                                             \
            memcpy(&block[a][b], from + (a * plane->from_a + b * plane->from_b) * (int64_t)sizeof(type),               \
                   sizeof(type));                                                                                      \
    for (int64_t a = 0; a < rows; a++)                                                                                 \
    memcpy(to + a * plane->to_a * (int64_t)sizeof(type), block[a], (size_t)columns * sizeof(type))

static void copy_block(const plane *plane, unsigned char *to, const unsigned char *from, int64_t rows, int64_t columns,
                       size_t size) {
    if (size == 1) {
        COPY_BLOCK(uint8_t);
    } else if (size == 2) {
        COPY_BLOCK(uint16_t);
    } else if (size == 4) {
        COPY_BLOCK(uint32_t);
    } else {
        COPY_BLOCK(uint64_t);
    }
}

/* Parts are counted along b first. */
static int64_t parts_of(const plane *plane) {
    if (plane->extent_a == 1)
        return (plane->extent_b + LINE - 1) / LINE;
    return (plane->extent_a + ROWS - 1) / ROWS * ((plane->extent_b + COLUMNS - 1) / COLUMNS);
}

static void copy_part(const plane *plane, int64_t part, unsigned char *to, const unsigned char *from, size_t size,
                      bool swapped) {
    const int64_t columns = plane->extent_a == 1 ? LINE : COLUMNS;
    const int64_t across = (plane->extent_b + columns - 1) / columns;
    const int64_t a = part / across * ROWS, b = part % across * columns;
    const int64_t rows = LEAST(ROWS, plane->extent_a - a), count = LEAST(columns, plane->extent_b - b);
    to += (a * plane->to_a + b) * (int64_t)size;
    from += (a * plane->from_a + b * plane->from_b) * (int64_t)size;
    if (plane->extent_a == 1)
        copy_line(to, from, plane->from_b, count, size);
    else
        copy_block(plane, to, from, rows, count, size);
    for (int64_t row = 0; row < rows && swapped; row++)
        swap_bytes(to + row * plane->to_a * (int64_t)size, to + row * plane->to_a * (int64_t)size, count, size);
}

/* ------------------------------------------------------------------------ a box -- */

/* The dimension that is walked together with the last one; the last one itself if that is as good as it gets. */
static int32_t nearest(const box *box) {
    const int32_t last = box->ndim - 1;
    int32_t near = last;
    if (box->from[last] <= 1)
        return last;
    for (int32_t d = 0; d < last; d++)
        if (box->extent[d] > 1 && box->from[d] != 0 && box->from[d] < box->from[near])
            near = d;
    return near;
}

/* `from` is the box's first element. Each thread takes parts of planes. */
static void copy_box(const box *box, const unsigned char *from, size_t size, bool swapped, int threads) {
    const int32_t last = box->ndim - 1, near = nearest(box);
    const plane plane = {.extent_a = near == last ? 1 : box->extent[near],
                         .to_a = box->to[near],
                         .from_a = box->from[near],
                         .extent_b = box->extent[last],
                         .from_b = box->from[last]};
    int64_t planes = 1;
    for (int32_t d = 0; d < last; d++)
        planes *= d == near ? 1 : box->extent[d];
    const int64_t each = parts_of(&plane), parts = planes * each;
    (void)threads; /* without OpenMP */
#pragma omp parallel for num_threads(threads) schedule(static) if (parts >= 4 * (int64_t)threads)
    for (int64_t part = 0; part < parts; part++) {
        int64_t to_at = 0, from_at = 0, index = part / each;
        for (int32_t d = last - 1; d >= 0; d--) {
            if (d == near)
                continue;
            to_at += index % box->extent[d] * box->to[d];
            from_at += index % box->extent[d] * box->from[d];
            index /= box->extent[d];
        }
        copy_part(&plane, part % each, box->copy + to_at * (int64_t)size, from + from_at * (int64_t)size, size,
                  swapped);
    }
}

/* Elements of the file from the first to the last of the box. */
static int64_t reach_of(const box *box) {
    int64_t reach = 1;
    for (int32_t d = 0; d < box->ndim; d++)
        reach += (box->extent[d] - 1) * box->from[d];
    return reach;
}

/* Where the box reaches farthest, it is cut into parts that fit into a window. Each cut leaves less to cut. */
static bool take_box(const view *view, const box *whole, int threads) {
    const layout *layout = &view->input->layout;
    const int64_t size = (int64_t)onepass_dtype_size(layout->dtype), reach = reach_of(whole);
    int32_t far = 0;
    for (int32_t d = 1; d < whole->ndim; d++)
        if ((whole->extent[d] - 1) * whole->from[d] > (whole->extent[far] - 1) * whole->from[far])
            far = d;
    if (reach * size <= WINDOW || whole->extent[far] == 1) {
        const uint64_t begin = layout->offset + (uint64_t)(whole->from_at * size);
        const unsigned char *window = input_map(view->input, begin, begin + (uint64_t)(reach * size));
        if (window)
            copy_box(whole, window, (size_t)size, layout->swapped, threads);
        return window != NULL;
    }
    int64_t most = (int64_t)((double)whole->extent[far] * (double)WINDOW / (double)(reach * size));
    most = most < 1 ? 1 : most;
    for (int64_t at = 0; at < whole->extent[far]; at += most) {
        box part = *whole;
        part.extent[far] = LEAST(most, whole->extent[far] - at);
        part.from_at += at * part.from[far];
        part.copy += at * part.to[far] * size;
        if (!take_box(view, &part, threads))
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------------- runs -- */

/* Whole rows: `rows` of dimension d from element `from_at` on, with all that is below it. */
static bool take_rows(const view *view, int32_t d, int64_t rows, int64_t from_at, unsigned char *copy, int threads) {
    box box = {.ndim = view->ndim - d, .from_at = from_at, .copy = copy};
    int64_t step = 1;
    for (int32_t k = box.ndim - 1; k >= 0; k--) {
        box.extent[k] = k == 0 ? rows : view->shape[d + k];
        box.from[k] = view->stride[d + k];
        box.to[k] = step;
        step *= box.extent[k];
    }
    return rows == 0 || take_box(view, &box, threads);
}

/* Elements from `first` on of what lies below one index of dimension d - 1, which is at `from_at`: the rest of a row,
 * whole rows, and a part of a row, for which the same goes one dimension further down. */
static bool take_run(const view *view, int32_t d, int64_t first, int64_t count, int64_t from_at, unsigned char *copy,
                     int threads) {
    const int64_t size = (int64_t)onepass_dtype_size(view->input->layout.dtype);
    bool taken = true;
    for (; d < view->ndim - 1 && count > 0 && taken; d++) {
        int64_t inner = 1;
        for (int32_t k = d + 1; k < view->ndim; k++)
            inner *= view->shape[k];
        int64_t row = first / inner;
        const int64_t skipped = first % inner;
        if (skipped > 0) {
            const int64_t part = LEAST(inner - skipped, count);
            taken = take_run(view, d + 1, skipped, part, from_at + row * view->stride[d], copy, threads);
            copy += part * size;
            count -= part;
            row++;
        }
        const int64_t rows = count / inner;
        taken = taken && take_rows(view, d, rows, from_at + row * view->stride[d], copy, threads);
        copy += rows * inner * size;
        from_at += (row + rows) * view->stride[d];
        count -= rows * inner;
        first = 0;
    }
    return taken &&
           take_rows(view, view->ndim - 1, count, from_at + first * view->stride[view->ndim - 1], copy, threads);
}

bool gather(const view *view, int64_t first, int64_t count, unsigned char *copy, int threads) {
    return take_run(view, 0, first, count, 0, copy, threads);
}
