/*
 * Between memory and a thread's buffers: gather brings the numbers of a view into
 * the compute type, scatter takes them back. Memory types, strides and
 * broadcasting end here. Numbers that lie in memory as the computation wants them
 * are not moved at all.
 */
#ifndef ONEPASS_CPU_MEMORY_H
#define ONEPASS_CPU_MEMORY_H

#include "cpu/cursor.h"
#include "dtype.h"
#include "engine.h"
#include "order.h"

#if NATIVE_HALF && !defined(ONEPASS_REAL_F64)
#include <arm_neon.h>
#endif

/* ---------------------------------------------------------------- gather -- */

typedef real load_function(const void *data, int64_t i);

/* A row without gaps is vector code. One with gaps is so on Arm alone (a quarter faster on a Neoverse N1): vectors of
 * numbers that are fetched one by one cost 15 % of the rate on a Xeon. */
ALWAYS_INLINE void gather_rows(load_function *load, const view *view, cursor *at, int count, real *into) {
    const int64_t stride = inner_stride(view);
    for (int done = 0; done < count; cursor_next_row(at, view)) {
        const int n = (int)least(at->left, count - done);
        const int64_t offset = at->offset;
        real *out = into + done;
        if (stride == 1) {
#pragma omp simd
            for (int64_t i = 0; i < n; i++)
                out[i] = load(view->data, offset + i);
        } else {
#if defined(__aarch64__)
#pragma omp simd
#endif
            for (int64_t i = 0; i < n; i++)
                out[i] = load(view->data, offset + i * stride);
        }
        done += n;
    }
}

static void gather_any(const view *view, cursor *at, int count, real *into) {
    switch (view->dtype) {
    case ONEPASS_F16:
        gather_rows(load_f16, view, at, count, into);
        break;
    case ONEPASS_BF16:
        gather_rows(load_bf16, view, at, count, into);
        break;
    case ONEPASS_F32:
        gather_rows(load_f32, view, at, count, into);
        break;
    case ONEPASS_BOOL:
        gather_rows(load_bool, view, at, count, into);
        break;
    default:
        gather_rows(load_f64, view, at, count, into);
    }
}

/* How many elements from `element` on are in its row, ... */
ALWAYS_INLINE int64_t row_length(const view *view, int64_t element) {
    return view->ndim == 1 ? view->shape[0] - element : cursor_at(view, element).left;
}

/* ... if they lie without gaps, ... */
ALWAYS_INLINE int64_t dense_length(const view *view, int64_t element) {
    return inner_stride(view) == 1 ? row_length(view, element) : 0;
}

/* ... or are all the same one. */
ALWAYS_INLINE int64_t constant_length(const view *view, int64_t element) {
    return inner_stride(view) == 0 ? row_length(view, element) : 0;
}

ALWAYS_INLINE void *address_of(const view *view, int64_t element) {
    const int64_t offset = view->ndim == 1 ? element * view->stride[0] : cursor_at(view, element).offset;
    return (char *)view->data + offset * (int64_t)dtype_size(view->dtype);
}

/* `count` numbers of the view from `element` on, in the buffer. */
static const real *gather_copy(const view *view, int64_t element, int count, real *buffer) {
    cursor at = cursor_at(view, element);
    gather_any(view, &at, count, buffer);
    return buffer;
}

/* `count` numbers of the view from `element` on: where they lie if they lie as
 * wanted, else in the buffer, which has room for them; for a tile of a single
 * number that stands for all. */
ALWAYS_INLINE const real *gather(const view *view, int64_t element, int count, real *buffer, const void **constant) {
    if (view->dtype == REAL_DTYPE && dense_length(view, element) >= count)
        return address_of(view, element);
    const void *data = address_of(view, element);
    const bool is_constant = constant_length(view, element) >= ORDER_TILE;
    if (!is_constant || *constant != data)
        gather_copy(view, element, is_constant ? ORDER_TILE : count, buffer);
    *constant = is_constant ? data : NULL;
    return buffer;
}

/* --------------------------------------------------------------- scatter -- */

/* Results have the canonical NaN already, since those that lie as `real` are stored without a look at them. */
typedef void store_function(void *data, int64_t i, real x);

ALWAYS_INLINE void store_f16(void *data, int64_t i, real x) {
    ((uint16_t *)data)[i] = sizeof x == sizeof(float) ? f16_of_f32((float)x) : f16_of_f64((double)x);
}
ALWAYS_INLINE void store_bf16(void *data, int64_t i, real x) {
    ((uint16_t *)data)[i] = sizeof x == sizeof(float) ? bf16_of_canonical((float)x) : bf16_of_f64((double)x);
}
ALWAYS_INLINE void store_f32(void *data, int64_t i, real x) {
    ((float *)data)[i] = (float)x;
}
ALWAYS_INLINE void store_f64(void *data, int64_t i, real x) {
    ((double *)data)[i] = (double)x;
}

/* Stores the first numbers of a row as halves by Arm's vectors, which gcc does not convert to them by itself, and
 * returns how many: value and gradient of mse took 2.5 ns an element on a Neoverse N1, and take 0.9. */
ALWAYS_INLINE int64_t store_vectors_f16(uint16_t *data, const real *in, int64_t count) {
    int64_t i = 0;
#if NATIVE_HALF && !defined(ONEPASS_REAL_F64)
    for (; i + 8 <= count; i += 8) {
        const float16x4_t low = vcvt_f16_f32(vld1q_f32(in + i));
        vst1q_u16(data + i, vreinterpretq_u16_f16(vcvt_high_f16_f32(low, vld1q_f32(in + i + 4))));
    }
#else
    (void)data, (void)in, (void)count;
#endif
    return i;
}

ALWAYS_INLINE void scatter_rows(store_function *store, const view *view, cursor *at, int count, const real *from) {
    const int64_t stride = inner_stride(view);
    for (int done = 0; done < count; cursor_next_row(at, view)) {
        const int n = (int)least(at->left, count - done);
        const int64_t offset = at->offset;
        const real *in = from + done;
        if (stride == 1) {
            const int64_t stored = store == store_f16 ? store_vectors_f16((uint16_t *)view->data + offset, in, n) : 0;
#pragma omp simd
            for (int64_t i = stored; i < n; i++)
                store(view->data, offset + i, in[i]);
        } else {
            for (int64_t i = 0; i < n; i++)
                store(view->data, offset + i * stride, in[i]);
        }
        done += n;
    }
}

static void scatter(const view *view, int64_t element, int count, const real *from) {
    cursor at = cursor_at(view, element);
    switch (view->dtype) {
    case ONEPASS_F16:
        scatter_rows(store_f16, view, &at, count, from);
        break;
    case ONEPASS_BF16:
        scatter_rows(store_bf16, view, &at, count, from);
        break;
    case ONEPASS_F32:
        scatter_rows(store_f32, view, &at, count, from);
        break;
    default:
        scatter_rows(store_f64, view, &at, count, from);
    }
}

/* Where an output's elements may be computed without a buffer, else null. */
static real *direct(const view *view, int64_t element, int count) {
    return view->dtype == REAL_DTYPE && dense_length(view, element) >= count ? address_of(view, element) : NULL;
}

#endif
