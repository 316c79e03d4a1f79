/*
 * A tile of a row's vectors in the registers of a warp: elements come in, sums and gradients are made of them.
 */
#ifndef ONEPASS_CUDA_VECTORS_TILE_H
#define ONEPASS_CUDA_VECTORS_TILE_H

#include "cuda/exponentials.h"
#include "cuda/pairwise/views.h"
#include "math/vector.h"

/* How vectors and their gradients lie in memory. */
typedef enum vector_access {
    VECTORS_DENSE,  /* without gaps, four elements at a time at an aligned address, all in float or all in 16-bit types
                     */
    VECTORS_STAGED, /* the same, in shared memory, where they have come as they are */
    VECTORS_ANYHOW  /* of any type, anywhere: through shared memory */
} vector_access;

/* The parameters, of which the compiler knows those that are as usual if `usual` says so. */
#define OWN_PARAMETERS(parameter, is_usual)                                                                            \
    double parameter[ONEPASS_MAX_PARAMETERS];                                                                          \
    _Pragma("unroll") for (int i = 0; i < ONEPASS_MAX_PARAMETERS; i++) parameter[i] = job->parameter[i];               \
    if (is_usual)                                                                                                      \
    loss::usual(parameter)

/* Lines that are in a thread's registers at a time: more would not leave it enough for what is summed in double. */
#define HALF_TILE (ORDER_LINES / 2)

/* A tile of a row, which is `index` tiles behind the row's first element. */
ALWAYS_INLINE tile vector_tile_at(const cuda_vector *job, int64_t index, int thread, real *buffer) {
    const int64_t left = job->length - index * ORDER_TILE;
    return tile_at(index, left < ORDER_TILE ? (int)left : ORDER_TILE, thread, buffer);
}

/* The number of a tile's first element among all. */
ALWAYS_INLINE int64_t first_element(const cuda_vector *job, int64_t row, const tile *tile) {
    return row * job->length + tile->index * ORDER_TILE;
}

ALWAYS_INLINE place vector_place(const cuda_vector *job, int which, int64_t element) {
    const cuda_view *view = &job->view[which];
    const place at = {element * view->stride[0], view->extent[0] - element};
    return view->ndim == 1 ? at : place_of(view, element);
}

ALWAYS_INLINE char *vector_address(const cuda_vector *job, int which, int64_t offset) {
    return (char *)job->data[which] + offset * (int64_t)dtype_size(job->dtype[which]);
}

/* ------------------------------------------------------- through shared memory -- */

static __device__ __noinline__ void fill_vector(const cuda_vector *job, int which, int64_t element, const tile *tile,
                                                real *buffer) {
    const cuda_view *view = &job->view[which];
    const place at = vector_place(job, which, element);
    if (at.left >= tile->count) {
        fill_from_row(tile, job->dtype[which], vector_address(job, which, at.offset), view->stride[view->ndim - 1],
                      buffer);
        return;
    }
#pragma unroll 1
    for (int i = tile->thread; i < tile->count; i += ORDER_WARP)
        buffer[i] = (real)load_scalar(vector_address(job, which, vector_place(job, which, element + i).offset),
                                      job->dtype[which]);
}

static __device__ __noinline__ void empty_vector(const cuda_vector *job, int which, int64_t element, const tile *tile,
                                                 const real *buffer) {
    const cuda_view *view = &job->view[which];
    const place at = vector_place(job, which, element);
    const int64_t stride = view->stride[view->ndim - 1];
#pragma unroll 1
    for (int i = tile->thread; i < tile->count; i += ORDER_WARP)
        store_one(job->dtype[which], job->data[which],
                  at.left >= tile->count ? at.offset + i * stride : vector_place(job, which, element + i).offset,
                  buffer[i]);
}

/* -------------------------------------------------------------------- a tile -- */

/* Where a tile of each operand is read, and of each gradient is written: in place, or in the warp's own memory. */
typedef struct vector_tile {
    struct tile of;
    int64_t row;
    char *operand[MOST_OPERANDS];
} vector_tile;

/* An element of a row that lies as the kernels like it. */
ALWAYS_INLINE char *dense_address(const cuda_vector *job, int which, int64_t row, int64_t element) {
    return (char *)job->data[which] + (row * job->row_stride[which] + element) * (job->halves ? 2 : 4);
}

ALWAYS_INLINE char *tile_in_place(const cuda_vector *job, int which, int64_t row, const tile *tile) {
    return dense_address(job, which, row, tile->index * ORDER_TILE);
}

#define CANONICAL_FOUR(x) canonical((x)[0]), canonical((x)[1]), canonical((x)[2]), canonical((x)[3])

#if !defined(ONEPASS_REAL_F64)
/* Slopes of four neighbouring elements, of which NaN gets its canonical bits. */
ALWAYS_INLINE void write_four(const cuda_vector *job, int which, char *to, const real *x) {
    if (!job->halves) {
        const real slope[] = {CANONICAL_FOUR(x)};
        *(vector *)to = pack_vector(slope);
    } else if (job->dtype[which] == ONEPASS_F16) {
        *(uint2 *)to = make_uint2(pack_two(true, x[0], x[1]), pack_two(true, x[2], x[3]));
    } else {
        *(uint2 *)to = make_uint2(pack_two(false, x[0], x[1]), pack_two(false, x[2], x[3]));
    }
}
#endif

template <typename loss, vector_access access>
ALWAYS_INLINE vector_tile begin_tile(const cuda_vector *job, int64_t row, const tile *tile) {
    vector_tile own = {*tile, row, {NULL, NULL, NULL}};
    if (access == VECTORS_ANYHOW)
        __syncwarp();
#pragma unroll
    for (int k = 0; k < loss::VECTOR_COUNT; k++) {
        if (access == VECTORS_ANYHOW) {
            const struct tile copy = *tile;
            real *buffer = tile->buffer + k * ORDER_TILE;
            fill_vector(job, CUDA_VECTOR_OPERAND + k, first_element(job, row, tile), &copy, buffer);
            own.operand[k] = (char *)buffer;
        } else if (access == VECTORS_STAGED) {
            own.operand[k] = (char *)tile->buffer + k * ORDER_TILE * (job->halves ? 2 : 4);
        } else {
            own.operand[k] = tile_in_place(job, CUDA_VECTOR_OPERAND + k, row, tile);
        }
    }
    if (access == VECTORS_ANYHOW)
        __syncwarp();
    return own;
}

/* A thread's own elements of half a tile. */
typedef real half_tile[HALF_TILE][ORDER_OWN_LANES];

#define EACH_HALF_LINE _Pragma("unroll") for (int i = 0; i < HALF_TILE; i++)

#define EACH_READ_VECTOR _Pragma("unroll") for (int j = 0; j < operands; j++)
#define EACH_READ        EACH_READ_VECTOR _Pragma("unroll") for (int i = 0; i < lines; i++)

#if !defined(ONEPASS_REAL_F64)
/* Elements beyond the end are 0, or anything where they lie in shared memory. */
template <vector_access access, typename four, typename number, int operands, int lines>
ALWAYS_INLINE void read_fours(const vector_tile *own, int k, int first, four zero, four (*read)[lines]) {
    EACH_READ {
        read[j][i] = zero;
        if (access == VECTORS_STAGED || is_in(&own->of, first + i, 0))
            read[j][i] = *(const four *)own_place(&own->of, (const number *)own->operand[k + j], first + i, 0);
    }
}
#endif

/* 16-bit types are told apart by a branch that all threads take together. */
#if !defined(ONEPASS_REAL_F64)
template <int operands, int lines>
ALWAYS_INLINE void unpack_halves(const cuda_vector *job, int k, uint2 (*half)[lines],
                                 real (*x)[lines][ORDER_OWN_LANES]) {
    EACH_READ_VECTOR {
        if (job->dtype[CUDA_VECTOR_OPERAND + k + j] == ONEPASS_F16)
            _Pragma("unroll") for (int i = 0; i < lines; i++) unpack_half(true, apart(half[j][i]), x[j][i]);
        else
            _Pragma("unroll") for (int i = 0; i < lines; i++) unpack_half(false, half[j][i], x[j][i]);
    }
}
#endif

/* So many lines of so many operands, from one of each on: all are in flight before the first is used. */
template <vector_access access, int operands, int lines>
ALWAYS_INLINE void read_elements(const cuda_vector *job, int k, const vector_tile *own, int first,
                                 real (*x)[lines][ORDER_OWN_LANES]) {
    if (access == VECTORS_ANYHOW) {
        EACH_READ read_line(&own->of, (const real *)own->operand[k + j], first + i, x[j][i]);
        return;
    }
#if !defined(ONEPASS_REAL_F64)
    if (!job->halves) {
        vector read[operands][lines];
        read_fours<access, vector, real, operands, lines>(own, k, first, zero_vector(), read);
        EACH_READ unpack_vector(read[j][i], x[j][i]);
        return;
    }
    uint2 half[operands][lines];
    read_fours<access, uint2, uint16_t, operands, lines>(own, k, first, make_uint2(0, 0), half);
    unpack_halves<operands, lines>(job, k, half, x);
#endif
}

/* ------------------------------------------------------------------- labels -- */

/* The element that a row's class index names, of a loss with labels. */
typedef struct own_class {
    int64_t at; /* -1: there is none */
    real x;
} own_class;

template <typename loss> ALWAYS_INLINE int64_t own_index(const cuda_vector *job, int64_t row) {
    const int which = CUDA_VECTOR_OPERAND + 1;
    if (!loss::LABELS)
        return -1;
    const int64_t at =
        load_index(vector_address(job, which, vector_place(job, which, row).offset), job->dtype[which], 0);
    return (uint64_t)at < (uint64_t)job->length ? at : -1;
}

/* Before anything is written that may lie over it. */
template <typename loss> ALWAYS_INLINE own_class find_own(const cuda_vector *job, int64_t row) {
    const int which = CUDA_VECTOR_OPERAND;
    own_class label = {own_index<loss>(job, row), 0};
    if (label.at >= 0)
        label.x =
            (real)load_scalar(vector_address(job, which, vector_place(job, which, row * job->length + label.at).offset),
                              job->dtype[which]);
    return label;
}

/* Where it is in a tile; -1: elsewhere. */
ALWAYS_INLINE int own_in_tile(const own_class *label, const tile *tile) {
    const int64_t at = label->at - tile->index * ORDER_TILE;
    return at >= 0 && at < ORDER_TILE ? (int)at : -1;
}

/* Beside each element the own one, in whose place there is none. */
template <typename loss>
ALWAYS_INLINE void place_own(const own_class *label, const tile *tile, int first, half_tile *x) {
    if (!loss::LABELS && !loss::LABEL_LISTS)
        return;
    const int at = own_in_tile(label, tile);
    EACH_HALF_LINE EACH_OWN {
        x[0][i][own] = own_element(tile, first + i, own) == at ? -REAL_INFINITY : x[0][i][own];
        x[1][i][own] = label->x;
    }
}

/* The slope of an element, whose NaN may have any bits; that of the own one is ready, and so are all where none is:
 * NaN. A product with 1 is the other factor. */
template <typename loss>
ALWAYS_INLINE real slope_of(int which, const real *x, const double *parameter, const double *factor, bool is_own,
                            real upstream) {
    const double slope = loss::slope(which, x, parameter, factor);
    return (real)(loss::LABELS && is_own ? factor[VECTOR_OWN_SLOPE] : slope) * upstream;
}

/* --------------------------------------------------------------------- sums -- */

/* The operands of one element, as a loss's functions take them. */
#define OWN_OPERANDS(x, i, own)                                                                                        \
    { x[0][i][own], x[1][i][own], x[loss::VECTOR_COUNT > 2 ? 2 : 0][i][own] }

/* What two elements of a lane add to its sums. */
template <typename loss>
ALWAYS_INLINE void add_two(const double *parameter, const real *first, const real *second, double *sum) {
    loss::terms(first, parameter, sum);
    loss::add(second, parameter, sum);
}

/* What the first two or all four lines of half a tile add to the sums of a lane, if they are whole. */
template <typename loss, int LINES>
ALWAYS_INLINE void add_lane(const double *parameter, const half_tile *x, int first, int own,
                            double (*lane)[ORDER_OWN_LANES]) {
    double sum[LINES / 2][VECTOR_MOST_SUMS];
#pragma unroll
    for (int i = 0; i < LINES; i += 2) {
        const real even[] = OWN_OPERANDS(x, i, own), odd[] = OWN_OPERANDS(x, i + 1, own);
        add_two<loss>(parameter, even, odd, sum[i / 2]);
    }
#pragma unroll
    for (int k = 0; k < loss::SUMS; k++) {
        const double all = LINES == 2 ? sum[0][k] : sum[0][k] + sum[LINES / 2 - 1][k];
        lane[k][own] = first == 0 ? all : lane[k][own] + all;
    }
}

/* The same of a half that ends somewhere. */
template <typename loss>
ALWAYS_INLINE void add_part_of_lane(const double *parameter, const tile *tile, const half_tile *x, int first, int own,
                                    double (*lane)[ORDER_OWN_LANES]) {
    double term[HALF_TILE][VECTOR_MOST_SUMS];
    EACH_HALF_LINE {
        const real operand[] = OWN_OPERANDS(x, i, own);
        loss::terms(operand, parameter, term[i]);
#pragma unroll
        for (int k = 0; k < loss::SUMS; k++)
            term[i][k] = is_in(tile, first + i, own) ? term[i][k] : 0;
    }
#pragma unroll
    for (int k = 0; k < loss::SUMS; k++) {
        const double sum = (term[0][k] + term[1][k]) + (term[2][k] + term[3][k]);
        lane[k][own] = first == 0 ? sum : lane[k][own] + sum;
    }
}

/* Two lines that a tile ends before would add 0. */
template <typename loss, bool WHOLE>
ALWAYS_INLINE void add_half(const double *parameter, const tile *tile, const half_tile *x, int first,
                            double (*lane)[ORDER_OWN_LANES]) {
    const int count = tile->count - first * ORDER_LANES;
    if (WHOLE || count >= HALF_TILE * ORDER_LANES)
        EACH_OWN add_lane<loss, HALF_TILE>(parameter, x, first, own, lane);
    else if (count == 2 * ORDER_LANES)
        EACH_OWN add_lane<loss, 2>(parameter, x, first, own, lane);
    else
        EACH_OWN add_part_of_lane<loss>(parameter, tile, x, first, own, lane);
}

template <typename loss, vector_access access, bool WHOLE>
ALWAYS_INLINE void add_halves(const cuda_vector *job, const double *parameter, const vector_tile *own_tile,
                              const own_class *label, double (*lane)[ORDER_OWN_LANES]) {
#pragma unroll
    for (int first = 0; first < ORDER_LINES; first += HALF_TILE) {
        half_tile x[loss::ELEMENTS];
        if (!WHOLE && first > 0 && own_tile->of.count <= first * ORDER_LANES)
            continue;
        read_elements<access, loss::VECTOR_COUNT, HALF_TILE>(job, 0, own_tile, first, x);
        place_own<loss>(label, &own_tile->of, first, x);
        add_half<loss, WHOLE>(parameter, &own_tile->of, x, first, lane);
    }
}

/* The sums of a thread's own lanes. */
template <typename loss, vector_access access>
ALWAYS_INLINE void sum_lanes(const cuda_vector *job, const double *parameter, const vector_tile *own_tile,
                             const own_class *label, double (*lane)[ORDER_OWN_LANES]) {
    if (access != VECTORS_ANYHOW && own_tile->of.count == ORDER_TILE)
        add_halves<loss, access, true>(job, parameter, own_tile, label, lane);
    else
        add_halves<loss, access, false>(job, parameter, own_tile, label, lane);
}

/* A tile that is not whole lacks terms, which are +0: added at the end they come to the same. */
ALWAYS_INLINE double add_missing(const tile *tile, double sum) {
    return tile->count < ORDER_TILE ? sum + 0 : sum;
}

template <typename loss, vector_access access>
ALWAYS_INLINE void sum_tile(const cuda_vector *job, const double *parameter, const vector_tile *own_tile,
                            const own_class *label, double *sum) {
    double lane[VECTOR_MOST_SUMS][ORDER_OWN_LANES] = {};
    sum_lanes<loss, access>(job, parameter, own_tile, label, lane);
    order_lanes_of<loss::SUMS>(own_tile->of.thread, lane, sum);
#pragma unroll
    for (int k = 0; k < loss::SUMS; k++)
        sum[k] = add_missing(&own_tile->of, sum[k]);
}

template <typename loss, vector_access access>
ALWAYS_INLINE void sum_vectors(const cuda_vector *job, const double *parameter, int64_t row, const tile *tile,
                               const own_class *label, double *sum) {
    const vector_tile own_tile = begin_tile<loss, access>(job, row, tile);
    sum_tile<loss, access>(job, parameter, &own_tile, label, sum);
}

/* ------------------------------------------------------------------- slopes -- */

/* A thread's own slopes of a line. */
template <vector_access access>
ALWAYS_INLINE void write_own(const cuda_vector *job, int k, const vector_tile *own, int line, const real *slope) {
    const tile *tile = &own->of;
    if (access == VECTORS_ANYHOW) {
        const real in_buffer[] = {CANONICAL_FOUR(slope)};
        write_line(tile, (real *)own->operand[k], line, in_buffer);
        return;
    }
#if !defined(ONEPASS_REAL_F64)
    char *to = tile_in_place(job, CUDA_VECTOR_GRADIENT + k, own->row, tile);
    write_four(job, CUDA_VECTOR_GRADIENT + k,
               job->halves ? (char *)own_place(tile, (uint16_t *)to, line, 0)
                           : (char *)own_place(tile, (real *)to, line, 0),
               slope);
#endif
}

/* Those of half a tile, whose NaN have their canonical bits. */
template <vector_access access>
ALWAYS_INLINE void write_half(const cuda_vector *job, int k, const vector_tile *own, int first, const half_tile slope) {
    const tile *tile = &own->of;
    if (access == VECTORS_ANYHOW) {
        EACH_HALF_LINE write_line(tile, (real *)own->operand[k], first + i, slope[i]);
        return;
    }
#if !defined(ONEPASS_REAL_F64)
    char *to = tile_in_place(job, CUDA_VECTOR_GRADIENT + k, own->row, tile);
    if (job->halves) {
        EACH_HALF_LINE if (is_in(tile, first + i, 0)) * (uint2 *)own_place(tile, (uint16_t *)to, first + i, 0) =
            pack_half(job->dtype[CUDA_VECTOR_GRADIENT + k] == ONEPASS_F16, slope[i]);
    } else {
        EACH_HALF_LINE if (is_in(tile, first + i, 0)) * (vector *)own_place(tile, (real *)to, first + i, 0) =
            pack_vector(slope[i]);
    }
#endif
}

/* What lies in the warp's memory instead of the operands goes to the gradients. */
template <typename loss> ALWAYS_INLINE void empty_buffers(const cuda_vector *job, const vector_tile *own) {
    const struct tile copy = own->of;
    __syncwarp();
#pragma unroll
    for (int k = 0; k < loss::VECTOR_COUNT; k++)
        if (job->data[CUDA_VECTOR_GRADIENT + k])
            empty_vector(job, CUDA_VECTOR_GRADIENT + k, first_element(job, own->row, &copy), &copy,
                         (const real *)own->operand[k]);
}

/* Of a thread's own elements of a line. */
template <typename loss>
ALWAYS_INLINE void slopes_of_line(int k, const double *parameter, const vector_tile *own_tile, const own_class *label,
                                  const half_tile *x, int first, int i, bool part, const double *factor, real upstream,
                                  real *slope) {
    const int at = own_in_tile(label, &own_tile->of);
    EACH_OWN {
        const real operand[] = OWN_OPERANDS(x, i, own);
        const bool is_own = label->at < 0 || own_element(&own_tile->of, first + i, own) == at;
        slope[own] = part ? slope_of<loss>(k, operand, parameter, factor, is_own, upstream) : 0;
    }
}

/* The gradients that are wanted; which ones is a branch that all threads take together. Only through shared memory may
 * the row take no part. */
template <typename loss, vector_access access, bool WHOLE>
ALWAYS_INLINE void write_halves(const cuda_vector *job, const double *parameter, const vector_tile *own_tile, bool part,
                                const double *factor, real upstream) {
    const tile *tile = &own_tile->of;
    const own_class label = {own_index<loss>(job, own_tile->row), (real)factor[VECTOR_OWN_ELEMENT]};
#pragma unroll 1
    for (int first = 0; first < ORDER_LINES; first += HALF_TILE) {
        half_tile x[loss::ELEMENTS];
        read_elements<access, loss::VECTOR_COUNT, HALF_TILE>(job, 0, own_tile, first, x);
        place_own<loss>(&label, tile, first, x);
#pragma unroll
        for (int k = 0; k < loss::VECTOR_COUNT; k++) {
            if (!job->data[CUDA_VECTOR_GRADIENT + k])
                continue;
            EACH_HALF_LINE if (WHOLE || access == VECTORS_ANYHOW || is_in(tile, first + i, 0)) {
                real slope[ORDER_OWN_LANES];
                slopes_of_line<loss>(k, parameter, own_tile, &label, x, first, i, access != VECTORS_ANYHOW || part,
                                     factor, upstream, slope);
                write_own<access>(job, k, own_tile, first + i, slope);
            }
        }
    }
}

/* Those of a row that takes no part. */
template <typename loss, vector_access access>
ALWAYS_INLINE void write_no_slopes(const cuda_vector *job, const vector_tile *own_tile) {
    const real zero[ORDER_OWN_LANES] = {0, 0, 0, 0};
#pragma unroll
    for (int k = 0; k < loss::VECTOR_COUNT; k++)
#pragma unroll 1
        for (int line = 0; line < ORDER_LINES && job->data[CUDA_VECTOR_GRADIENT + k]; line++)
            if (is_in(&own_tile->of, line, 0))
                write_own<access>(job, k, own_tile, line, zero);
}

/* Of a whole tile nothing need be asked for each line. */
template <typename loss, vector_access access>
ALWAYS_INLINE void write_slopes(const cuda_vector *job, const double *parameter, int64_t row, const tile *tile,
                                bool part, const double *factor, real upstream) {
    const vector_tile own_tile = begin_tile<loss, access>(job, row, tile);
    if (access == VECTORS_ANYHOW) {
        write_halves<loss, access, false>(job, parameter, &own_tile, part, factor, upstream);
        empty_buffers<loss>(job, &own_tile);
    } else if (!part) {
        write_no_slopes<loss, access>(job, &own_tile);
    } else if (tile->count == ORDER_TILE) {
        write_halves<loss, access, true>(job, parameter, &own_tile, true, factor, upstream);
    } else {
        write_halves<loss, access, false>(job, parameter, &own_tile, true, factor, upstream);
    }
}

#endif
