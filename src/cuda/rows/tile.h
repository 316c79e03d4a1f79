/*
 * A tile of a row's classes in the registers of a warp: logits come in, exponentials and their sums are made of them,
 * and gradients go out.
 */
#ifndef ONEPASS_CUDA_ROWS_TILE_H
#define ONEPASS_CUDA_ROWS_TILE_H

#include "cuda/rows/loose.h"

/* How a row's classes lie in memory. */
typedef enum row_access {
    ROW_VECTORS, /* without gaps, four at a time at an aligned address, in float or a 16-bit type */
    ROW_LOOSE,   /* the same at any address, with any number of classes */
    ROW_ANYHOW   /* of any type, anywhere: through shared memory */
} row_access;

ALWAYS_INLINE tile row_tile_at(int64_t index, int64_t classes, int thread, real *buffer) {
    const int64_t left = classes - index * ORDER_TILE;
    return tile_at(index, left < ORDER_TILE ? (int)left : ORDER_TILE, thread, buffer);
}

/* The same of a row that is not longer than tiles can wait, without a buffer. */
template <row_access access> ALWAYS_INLINE tile dense_tile_at(int index, int classes, int ahead, int thread) {
    tile tile = tile_at(index, classes - index * ORDER_TILE, thread, NULL);
    if (access == ROW_LOOSE)
        tile.ahead = ahead;
    return tile;
}

/* What its tiles are told. */
template <row_access access> ALWAYS_INLINE int row_ahead(const cuda_row *job, int64_t input) {
#if !defined(ONEPASS_REAL_F64)
    if (access == ROW_LOOSE)
        return elements_ahead(job, CUDA_ROW_INPUT, input);
#endif
    return 0;
}

/* ----------------------------------------------------------------- gather -- */

#if !defined(ONEPASS_REAL_F64)
ALWAYS_INLINE void unpack_rows(bool f16, const uint2 *half, own_numbers x) {
    if (f16)
        EACH_LINE unpack_half(true, apart(half[line]), x[line]);
    else
        EACH_LINE unpack_half(false, half[line], x[line]);
}

/* Those beyond the last class, which were read as 0. */
ALWAYS_INLINE void stand_in(const tile *tile, real otherwise, own_numbers x) {
    if (tile->count < ORDER_TILE)
        EACH_NUMBER x[line][own] = is_in(tile, line, own) ? x[line][own] : otherwise;
}

ALWAYS_INLINE void gather_loose(const tile *tile, const void *from, int32_t dtype, real otherwise, own_numbers x) {
    if (dtype == ONEPASS_F32) {
        vector read[ORDER_LINES];
        read_fours(tile, (const real *)from, (real)0, read);
        EACH_LINE unpack_vector(read[line], x[line]);
    } else {
        uint2 half[ORDER_LINES];
        read_fours(tile, (const uint16_t *)from, (uint16_t)0, half);
        unpack_rows(dtype == ONEPASS_F16, half, x);
    }
    stand_in(tile, otherwise, x);
}

ALWAYS_INLINE void gather_floats(const tile *tile, const real *from, real otherwise, own_numbers x) {
    vector read[ORDER_LINES];
    if (tile->count == ORDER_TILE) {
        EACH_LINE read[line] = *(const vector *)own_place(tile, from, line, 0);
    } else {
        EACH_LINE {
            read[line] = make_float4(otherwise, otherwise, otherwise, otherwise);
            if (is_in(tile, line, 0))
                read[line] = *(const vector *)own_place(tile, from, line, 0);
        }
    }
    EACH_LINE unpack_vector(read[line], x[line]);
}

ALWAYS_INLINE void gather_halves(const tile *tile, const uint16_t *from, uint2 otherwise, uint2 *read) {
    if (tile->count == ORDER_TILE) {
        EACH_LINE read[line] = *(const uint2 *)own_place(tile, from, line, 0);
    } else {
        EACH_LINE {
            read[line] = otherwise;
            if (is_in(tile, line, 0))
                read[line] = *(const uint2 *)own_place(tile, from, line, 0);
        }
    }
}

/* Whether a row ends in the last line of a tile, as one of 1000 classes does: the others ask nothing. */
ALWAYS_INLINE bool ends_in_last_line(const tile *tile) {
    return tile->count > ORDER_TILE - ORDER_LANES;
}

/* Four numbers of each line at a time, as floats or as pairs of 16 bits. Beyond the last class the tile's first four
 * stand in, which change no extreme: their exponentials are to be dropped. What stands for -inf would have to be asked
 * about for each number. */
template <typename four, typename number>
ALWAYS_INLINE void read_lines(const tile *tile, const number *from, four *read) {
    if (tile->count == ORDER_TILE) {
        EACH_LINE read[line] = *(const four *)own_place(tile, from, line, 0);
    } else if (ends_in_last_line(tile)) {
        EACH_LINE read[line] =
            *(const four *)(line < ORDER_LINES - 1 || is_in(tile, line, 0) ? own_place(tile, from, line, 0) : from);
    } else {
        EACH_LINE read[line] = *(const four *)(is_in(tile, line, 0) ? own_place(tile, from, line, 0) : from);
    }
}
#endif

/* The exponentials of such numbers. */
ALWAYS_INLINE void drop_beyond(const tile *tile, own_numbers x) {
    if (tile->count == ORDER_TILE)
        return;
    const int last = ORDER_LINES - 1;
    if (tile->count > last * ORDER_LANES)
        EACH_OWN x[last][own] = is_in(tile, last, 0) ? x[last][own] : 0;
    else
        EACH_NUMBER x[line][own] = is_in(tile, line, 0) ? x[line][own] : 0;
}

ONCE_A_ROW void fill_anyhow(const tile *tile, const void *from, int32_t dtype, int64_t stride) {
    __syncwarp();
    fill_from_row(tile, dtype, from, stride, tile->buffer);
    __syncwarp();
}

ONCE_A_ROW void empty_anyhow(const tile *tile, void *to, int32_t dtype, int64_t stride) {
    __syncwarp();
#pragma unroll 1
    for (int i = tile->thread; i < tile->count; i += ORDER_WARP)
        store_one(dtype, to, i * stride, tile->buffer[i]);
}

/* Some numbers of a row, from the tile's first on. */
template <row_access access>
ALWAYS_INLINE void gather_row(const tile *tile, const void *row, int32_t dtype, int64_t offset, int64_t stride,
                              real otherwise, own_numbers x) {
    const int64_t first = offset + tile->index * ORDER_TILE * stride;
    const void *from = (const char *)row + first * (int64_t)dtype_size(dtype);
#if !defined(ONEPASS_REAL_F64)
    if (access == ROW_LOOSE) {
        gather_loose(tile, from, dtype, otherwise, x);
        return;
    }
    if (access == ROW_VECTORS && dtype == ONEPASS_F32) {
        gather_floats(tile, (const real *)from, otherwise, x);
        return;
    }
    if (access == ROW_VECTORS) {
        uint2 half[ORDER_LINES];
        gather_halves(tile, (const uint16_t *)from, make_uint2(0, 0), half);
        unpack_rows(dtype == ONEPASS_F16, half, x);
        if (tile->count < ORDER_TILE)
            EACH_LINE if (!is_in(tile, line, 0)) EACH_OWN x[line][own] = otherwise;
        return;
    }
#endif
    const struct tile copy = *tile;
    fill_anyhow(&copy, from, dtype, stride);
    EACH_LINE read_line(tile, tile->buffer, line, x[line]);
    EACH_NUMBER x[line][own] = is_in(tile, line, own) ? x[line][own] : otherwise;
}

/* softcap * tanh(z / softcap) takes the place of z; its slope is apart. */
ALWAYS_INLINE void cap_logits(const cuda_row *job, const tile *tile, own_numbers x, own_numbers slope) {
    const softmax softmax = softmax_of_job(job);
    EACH_NUMBER {
        const real tangent = softmax_tangent(&softmax, x[line][own]);
        slope[line][own] = softmax_cap_slope(&softmax, x[line][own]);
        x[line][own] = is_in(tile, line, own) ? softmax.softcap * tangent : ROW_NO_LOGIT;
    }
}

/* Class weights; 1 where there are none. */
template <row_access access>
ALWAYS_INLINE void gather_class_weights(const cuda_row *job, const tile *tile, own_numbers w) {
    EACH_NUMBER w[line][own] = 1;
    if (job->class_weight)
        gather_row<access>(tile, job->class_weight, job->class_weight_dtype, 0, job->class_stride[2], 0, w);
}

/* u_c of a tile; 0 beyond the last class. Of probabilities these are in the place of u. */
template <row_kind kind, row_access access>
ALWAYS_INLINE void make_weights(const cuda_row *job, const tile *tile, own_numbers u) {
    if (kind == ROW_PROBABILITIES) {
        EACH_NUMBER u[line][own] = u[line][own] * REAL(job->kept) + REAL(job->share);
        if (job->class_weight) {
            own_numbers w;
            gather_class_weights<access>(job, tile, w);
            EACH_NUMBER u[line][own] = w[line][own] * u[line][own];
        }
    } else {
        gather_class_weights<access>(job, tile, u);
    }
    if (tile->count < ORDER_TILE)
        EACH_NUMBER u[line][own] = is_in(tile, line, own) ? u[line][own] : 0;
}

template <row_kind kind, row_access access>
ALWAYS_INLINE void gather_weights(const cuda_row *job, int64_t target, const tile *tile, own_numbers u) {
    if (kind == ROW_PROBABILITIES)
        gather_row<access>(tile, job->data[CUDA_ROW_TARGET], job->dtype[CUDA_ROW_TARGET], target, job->class_stride[1],
                           0, u);
    make_weights<kind, access>(job, tile, u);
}

/* ------------------------------------------------------------------- sums -- */

/* Logits of a tile, and their extremes. What stands in beyond the last class is to be dropped, or is -inf: that is for
 * kernels which have no register to spare. */
template <row_access access, bool drops = access == ROW_VECTORS>
ALWAYS_INLINE own_range gather_logits(const cuda_row *job, int64_t input, const tile *tile, own_numbers x) {
    const int32_t dtype = job->dtype[CUDA_ROW_INPUT];
#if ROW_KEEPS_NAN
    if (access != ROW_ANYHOW && dtype == ONEPASS_BF16) {
        uint2 half[ORDER_LINES];
        const uint16_t *from = (const uint16_t *)job->data[CUDA_ROW_INPUT] + input + tile->index * ORDER_TILE;
        if (access == ROW_LOOSE)
            read_fours(tile, from, (uint16_t)0xff80u, half);
        else if (drops)
            read_lines(tile, from, half);
        else
            gather_halves(tile, from, make_uint2(0xff80ff80u, 0xff80ff80u), half);
        unpack_rows(false, half, x);
        return range_of_pairs(half);
    }
#endif
#if !defined(ONEPASS_REAL_F64)
    if (drops && dtype == ONEPASS_F32) {
        vector read[ORDER_LINES];
        read_lines(tile, (const real *)job->data[CUDA_ROW_INPUT] + input + tile->index * ORDER_TILE, read);
        EACH_LINE unpack_vector(read[line], x[line]);
        return range_of(tile, x);
    }
    if (drops) {
        uint2 half[ORDER_LINES];
        read_lines(tile, (const uint16_t *)job->data[CUDA_ROW_INPUT] + input + tile->index * ORDER_TILE, half);
        unpack_rows(dtype == ONEPASS_F16, half, x);
        return range_of(tile, x);
    }
#endif
    gather_row<access>(tile, job->data[CUDA_ROW_INPUT], dtype, input, job->class_stride[0], ROW_NO_LOGIT, x);
    return range_of(tile, x);
}

/* The label's place in a tile, or what is none. */
ALWAYS_INLINE int place_in_tile(const tile *tile, int64_t label) {
    const int64_t place = label - tile->index * ORDER_TILE;
    return place >= 0 && place < ORDER_TILE ? (int)place : -1;
}

/* The label's exponential is left out of the sum. */
ALWAYS_INLINE void leave_label_out(const tile *tile, int place, own_numbers x) {
    if ((unsigned)place >= ORDER_TILE)
        return;
    const int lane = place % ORDER_LANES;
    switch (place / ORDER_LANES) { /* one branch for all threads, and one line of four */
#define LEAVE_OUT(line)                                                                                                \
    case line:                                                                                                         \
        EACH_OWN x[line][own] = own_lane(tile, own) == lane ? 0 : x[line][own];                                        \
        break;
        LEAVE_OUT(0)
        LEAVE_OUT(1)
        LEAVE_OUT(2)
        LEAVE_OUT(3)
        LEAVE_OUT(4)
        LEAVE_OUT(5)
        LEAVE_OUT(6)
        LEAVE_OUT(7)
#undef LEAVE_OUT
    }
}

/* What a tile leaves to be joined. Its exponent follows from its largest logit. */
typedef struct tile_sums {
    real largest;
    double others, leading, weights, weighted;
} tile_sums;

/* What a kernel does about the u_c of a loss. */
typedef enum weighing {
    WEIGHS_NOTHING, /* they are not needed */
    WEIGHS_ONES,    /* all are 1 */
    WEIGHS_EACH
} weighing;

ALWAYS_INLINE void sum_weights(const tile *tile, const softmax_shift *shift, weighing weighs, const own_numbers x,
                               const own_numbers u, tile_sums *sums) {
    own_numbers term;
    if (weighs == WEIGHS_ONES) {
        sums->weights = (double)tile->count;
        EACH_NUMBER term[line][own] = x[line][own] - shift->largest;
        if (tile->count < ORDER_TILE) /* not asked for each number: that was a sixth of the instructions */
            EACH_NUMBER term[line][own] = is_in(tile, line, own) ? term[line][own] : 0;
    } else {
        sums->weights = sum_of_tile(tile->thread, u);
        EACH_NUMBER term[line][own] = u[line][own] == 0 ? 0 : u[line][own] * (x[line][own] - shift->largest);
    }
    sums->weighted = sum_of_tile(tile->thread, term);
}

/* The sums of the lanes that a thread has in the order. */
ALWAYS_INLINE void sum_lanes_in_order(const tile *tile, const own_numbers x, real *lane) {
    sum_lanes(x, lane);
#if !defined(ONEPASS_REAL_F64)
    bring_lanes_home(tile, lane);
#endif
}

/* Logits become exponentials, the label's 0, of which the lanes are added up. Returns the largest logit. */
template <bool drops>
ALWAYS_INLINE real sum_lanes_of_tile(const cuda_row *job, int label_place, const tile *tile, own_range range,
                                     own_numbers x, real *lane) {
    const real largest = warp_largest_or_nan(range.largest);
    const softmax_shift shift = shift_of(job, largest);
    const softmax softmax = softmax_of_job(job);
    exponentiate(&softmax, &shift, tile, is_calm_tile(&softmax, &shift, range.smallest), x);
    if (drops)
        drop_beyond(tile, x);
    leave_label_out(tile, label_place, x);
    sum_lanes_in_order(tile, x, lane);
    return largest;
}

/* The same with all sums of the tile. */
template <row_kind kind, bool drops>
ALWAYS_INLINE void sum_tile(const cuda_row *job, int64_t label, const tile *tile, own_range range, weighing weighs,
                            own_numbers x, const own_numbers u, tile_sums *sums) {
    sums->largest = warp_largest_or_nan(range.largest);
    const softmax_shift shift = shift_of(job, sums->largest);
    if (weighs != WEIGHS_NOTHING)
        sum_weights(tile, &shift, weighs, x, u, sums);
    const softmax softmax = softmax_of_job(job);
    exponentiate(&softmax, &shift, tile, is_calm_tile(&softmax, &shift, range.smallest), x);
    if (drops)
        drop_beyond(tile, x);
    real lane[ORDER_OWN_LANES];
    if (kind == ROW_PROBABILITIES) {
        sums->leading = lanes_without_leading(row_most_of_tile(&softmax, &shift), x, lane);
    } else {
        leave_label_out(tile, place_in_tile(tile, label), x);
        sum_lanes_in_order(tile, x, lane);
        sums->leading = 0;
    }
    sums->others = order_lanes(tile->thread, lane);
}

/* ---------------------------------------------------------------- scatter -- */

#if !defined(ONEPASS_REAL_F64)
/* A NaN is the canonical one, whose last bits are 0: it rounds to itself. Numbers that cannot be NaN are left to the
 * instruction of newer GPUs, which has another NaN. */
ALWAYS_INLINE uint32_t pair_of_bf16(real low, real high, bool calm) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if (calm) {
        uint32_t pair;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
        return pair;
    }
#endif
    const uint32_t a = bits_of(low), b = bits_of(high);
    const uint32_t first = a + 0x7fffu + (a >> 16 & 1u), second = b + 0x7fffu + (b >> 16 & 1u);
    return first >> 16 | (second & 0xffff0000u);
}

/* The same in f16. */
ALWAYS_INLINE uint32_t pair_of_f16(real low, real high, bool calm) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if (calm) {
        uint32_t pair;
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
        return pair;
    }
#endif
    return narrow(true, low) | narrow(true, high) << 16;
}

ALWAYS_INLINE uint2 four_bf16(bool calm, const real *x) {
    return make_uint2(pair_of_bf16(x[0], x[1], calm), pair_of_bf16(x[2], x[3], calm));
}

ALWAYS_INLINE void scatter_bf16(const tile *tile, uint16_t *to, bool calm, const own_numbers x) {
    EACH_LINE {
        if (is_in(tile, line, 0))
            *(uint2 *)own_place(tile, to, line, 0) = four_bf16(calm, x[line]);
    }
}

ALWAYS_INLINE void scatter_loose(const tile *tile, void *to, int32_t dtype, bool calm, const own_numbers x) {
    if (dtype == ONEPASS_F32) {
        vector four[ORDER_LINES];
        EACH_LINE four[line] = pack_vector(x[line]);
        write_fours(tile, (real *)to, four);
        return;
    }
    uint2 four[ORDER_LINES];
    if (dtype == ONEPASS_F16)
        EACH_LINE four[line] = pack_half(true, x[line]);
    else if (calm)
        EACH_LINE four[line] = four_bf16(true, x[line]);
    else
        EACH_LINE four[line] = four_bf16(false, x[line]);
    write_fours(tile, (uint16_t *)to, four);
}

ALWAYS_INLINE void scatter_vectors(const tile *tile, void *to, int32_t dtype, bool calm, const own_numbers x) {
    if (dtype == ONEPASS_F32) {
        EACH_LINE {
            if (is_in(tile, line, 0))
                *(vector *)own_place(tile, (real *)to, line, 0) = pack_vector(x[line]);
        }
    } else if (dtype == ONEPASS_F16) {
        EACH_LINE {
            if (is_in(tile, line, 0))
                *(uint2 *)own_place(tile, (uint16_t *)to, line, 0) = pack_half(true, x[line]);
        }
    } else if (calm) {
        scatter_bf16(tile, (uint16_t *)to, true, x);
    } else {
        scatter_bf16(tile, (uint16_t *)to, false, x);
    }
}
#endif

/* Numbers that are canonical. */
template <row_access access>
ALWAYS_INLINE void scatter_row(const tile *tile, void *row, int32_t dtype, int64_t offset, int64_t stride, bool calm,
                               const own_numbers x) {
    const int64_t first = offset + tile->index * ORDER_TILE * stride;
    char *to = (char *)row + first * (int64_t)dtype_size(dtype);
#if !defined(ONEPASS_REAL_F64)
    if (access == ROW_VECTORS) {
        scatter_vectors(tile, to, dtype, calm, x);
        return;
    }
    if (access == ROW_LOOSE) {
        scatter_loose(tile, to, dtype, calm, x);
        return;
    }
#endif
    __syncwarp();
    EACH_LINE write_line(tile, tile->buffer, line, x[line]);
    const struct tile copy = *tile;
    empty_anyhow(&copy, to, dtype, stride);
}

template <row_access access>
ALWAYS_INLINE void scatter_gradient(const cuda_row *job, int64_t offset, int k, const tile *tile, bool calm,
                                    const own_numbers x) {
    const int which = CUDA_ROW_GRADIENT + k;
#if !defined(ONEPASS_REAL_F64)
    if (access == ROW_LOOSE &&
        elements_ahead(job, which, offset) != tile->ahead) { /* as views of longer rows have it */
        EACH_NUMBER if (is_in(tile, line, own))
            store_one(job->dtype[which], job->data[which],
                      offset + tile->index * ORDER_TILE + own_element(tile, line, own), x[line][own]);
        return;
    }
#endif
    scatter_row<access>(tile, job->data[which], job->dtype[which], offset, job->gradient_stride[k], calm, x);
}

/* Every class of the row gets one number. */
template <row_access access>
ALWAYS_INLINE void fill_gradient(const cuda_row *job, int64_t offset, int k, const tile *tile, real number) {
    own_numbers x;
    EACH_NUMBER x[line][own] = number;
    scatter_gradient<access>(job, offset, k, tile, false, x);
}

/* The upstream gradient comes last. What may be NaN gets its one face. */
ALWAYS_INLINE void scale_gradient(real upstream, bool calm, own_numbers x) {
    if (!calm)
        EACH_NUMBER x[line][own] = canonical(x[line][own]);
    if (upstream != 1) {
        EACH_NUMBER x[line][own] = x[line][own] * upstream;
        if (!calm)
            EACH_NUMBER x[line][own] = canonical(x[line][own]);
    }
}

/* The label's own slope stands by itself: whoever has written its place does so again. */
ALWAYS_INLINE void put_label(const cuda_row *job, const row *row, const tile *tile, real own) {
    const int64_t place = row->label - tile->index * ORDER_TILE;
    const int lane = ((int)place + tile->ahead) % ORDER_LANES; /* as if the row were not loose */
    if (place < 0 || place >= tile->count || lane / ORDER_OWN_LANES != tile->thread)
        return;
    const real slope = row->upstream != 1 ? canonical(canonical(own) * row->upstream) : canonical(own);
    store_one(job->dtype[CUDA_ROW_GRADIENT], job->data[CUDA_ROW_GRADIENT],
              row->gradient + row->label * job->gradient_stride[0], slope);
}

/* From exponentials to gradients, without softcap. */
template <row_access access>
ALWAYS_INLINE void write_gradient(const cuda_row *job, const row *row, const tile *tile, const row_factors *factors,
                                  real f, weighing weighs, own_numbers x, const own_numbers u) {
    const bool finite = is_finite(f) && is_finite(row->upstream);
    const bool calm = finite && (weighs == WEIGHS_NOTHING || (weighs == WEIGHS_ONES && is_finite(factors->of_weights)));
    if (weighs == WEIGHS_ONES)
        EACH_NUMBER x[line][own] = x[line][own] * f - factors->of_weights;
    else if (weighs == WEIGHS_EACH)
        EACH_NUMBER x[line][own] = x[line][own] * f - u[line][own] * factors->of_weights;
    else
        EACH_NUMBER x[line][own] = x[line][own] * f;
    scale_gradient(row->upstream, calm, x);
    scatter_gradient<access>(job, row->gradient, 0, tile, calm, x);
    put_label(job, row, tile, factors->own);
}

#endif
