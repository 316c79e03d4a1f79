/*
 * Rows of up to a tile of floats, classes along vectors, with AVX-512: each is exponentiated and added up by itself, in
 * registers, and what the rows of a group come to is computed side by side. To turn rows of a hundred classes takes
 * longer than to add them up, and to finish a row of a thousand by itself a third of its time.
 */
#ifndef ONEPASS_CPU_ROWS_ALONG_H
#define ONEPASS_CPU_ROWS_ALONG_H

#include "cpu/rows/block.h"

#if ONEPASS_HAS_REALS && !defined(__aarch64__)

/* Rows of fewer classes are turned. */
#define LEAST_ALONG 48

/* So many numbers of rows are looked at, then exponentiated: a first-level cache has them. */
#define MOST_SEEN 4096

#define LINE_VECTORS (ORDER_LANES / REALS)

/* What is the same for all groups of a job. */
typedef struct along {
    const rows *rows;
    aside_function *apply;
    bool needs_lse;
    int64_t classes;
    int64_t batch; /* rows that are looked at before they are exponentiated: what a first-level cache has */
    int lines;     /* of classes */
    __mmask16 last[LINE_VECTORS]; /* numbers of the last line that there are */
} along;

/* Rows, one `apart` from the next. A gradient has the exponentials until its factors are known. */
typedef struct rows_along {
    const real *z;
    real *gradient; /* or null */
    int64_t apart, gradient_apart;
} rows_along;

typedef struct along_buffers {
    _Alignas(64) real e[2][ORDER_TILE]; /* of this row and the one before, where there is no gradient */
    group group;
} along_buffers;

/* The first of so many numbers. */
static __mmask16 first_numbers(int64_t count) {
    return count >= REALS ? 0xffff : count <= 0 ? 0 : (__mmask16)((1u << count) - 1);
}

static bool goes_along(const rows *rows) {
    const job *job = rows->job;
    const view *gradient = &job->gradient[0];
    const bool has_place = gradient->dtype == REAL_DTYPE && rows->of->gradient_stride[0] == 1 && !job->in_place[0];
    return job->loss->kind == ROW_LABEL && rows->of->shard.step == SHARD_NONE && rows->softmax.softcap == 0 &&
           !rows->weighs && !rows->reads_state && !rows->of->predicted.data && rows->of->classes >= LEAST_ALONG &&
           rows->of->classes <= ORDER_TILE && job->operand[0].dtype == REAL_DTYPE && rows->of->class_stride[0] == 1 &&
           (!gradient->data || has_place);
}

/* ------------------------------------------------------------------- range -- */

/* The largest or the smallest of each of sixteen vectors, as a vector. */
typedef __m512 fold_function(__m512 a, __m512 b);

ALWAYS_INLINE reals larger_of(reals a, reals b) {
    return _mm512_max_ps(a, b);
}

ALWAYS_INLINE reals smaller_of(reals a, reals b) {
    return _mm512_min_ps(a, b);
}

ALWAYS_INLINE reals fold_sixteen(fold_function *fold, const reals *x) {
    reals two[8], four[4], eight[2];
    for (int i = 0; i < 8; i++)
        two[i] = fold(_mm512_unpacklo_ps(x[2 * i], x[2 * i + 1]), _mm512_unpackhi_ps(x[2 * i], x[2 * i + 1]));
    for (int i = 0; i < 4; i++) {
        const __m512d a = _mm512_castps_pd(two[2 * i]), b = _mm512_castps_pd(two[2 * i + 1]);
        four[i] = fold(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)), _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
    }
    for (int i = 0; i < 2; i++)
        eight[i] = fold(_mm512_shuffle_f32x4(four[2 * i], four[2 * i + 1], 0x88),
                        _mm512_shuffle_f32x4(four[2 * i], four[2 * i + 1], 0xdd));
    return fold(_mm512_shuffle_f32x4(eight[0], eight[1], 0x88), _mm512_shuffle_f32x4(eight[0], eight[1], 0xdd));
}

/* Returns whether none is NaN. */
ALWAYS_INLINE bool see_row(const real *z, int64_t classes, reals *largest, reals *smallest) {
    reals high[2] = {each_real(-REAL_INFINITY), each_real(-REAL_INFINITY)};
    reals low[2] = {each_real(REAL_INFINITY), each_real(REAL_INFINITY)};
    __mmask16 ordered = 0xffff;
    int64_t i = 0;
    for (; i + 2 * REALS <= classes; i += 2 * REALS) {
        const reals a = load_reals(z + i), b = load_reals(z + i + REALS);
        ordered = _mm512_mask_cmp_ps_mask(ordered, a, b, _CMP_ORD_Q);
        high[0] = _mm512_max_ps(a, high[0]);
        high[1] = _mm512_max_ps(b, high[1]);
        low[0] = _mm512_min_ps(a, low[0]);
        low[1] = _mm512_min_ps(b, low[1]);
    }
    for (; i < classes; i += REALS) {
        const reals a = load_reals(z + least(i, classes - REALS));
        ordered = _mm512_mask_cmp_ps_mask(ordered, a, a, _CMP_ORD_Q);
        high[0] = _mm512_max_ps(a, high[0]);
        low[0] = _mm512_min_ps(a, low[0]);
    }
    *largest = _mm512_max_ps(high[0], high[1]);
    *smallest = _mm512_min_ps(low[0], low[1]);
    return ordered == 0xffff;
}

/* As find_largest() has it, of the rows from `first` on, which do not reach beyond a vector of them unless they begin
 * with one. */
static void find_largest_along(const rows_along *given, int64_t first, int64_t end, group *group) {
    const rows_along rows = *given;
    const reals nan = each_real(REAL_NAN);
    for (int64_t block = first / REALS * REALS; block < end; block += REALS) {
        reals largest[REALS], smallest[REALS];
        unsigned ordered = 0, there = 0;
        for (int64_t r = 0; r < REALS; r++) {
            const bool own = block + r >= first && block + r < end;
            largest[r] = smallest[r] = each_real(0);
            if (!own)
                continue;
            there |= 1u << r;
            if (see_row(rows.z + (block + r) * rows.apart, group->classes, &largest[r], &smallest[r]))
                ordered |= 1u << r;
        }
        reals high = fold_sixteen(larger_of, largest), low = fold_sixteen(smaller_of, smallest);
        high = _mm512_mask_add_ps(nan, (__mmask16)ordered, high, each_real(0)); /* -0 is 0 */
        low = _mm512_mask_mov_ps(nan, (__mmask16)ordered, low);
        _mm512_mask_storeu_ps(group->largest + block, (__mmask16)there, high);
        _mm512_mask_storeu_ps(group->smallest + block, (__mmask16)there, low);
    }
}

/* ------------------------------------------------------------ exponentials -- */

#define VECTORS_ALONG 4 /* at a time */

/* Asks for what lies so many bytes behind some numbers. */
ALWAYS_INLINE void prefetch_ahead(const real *numbers, int64_t bytes) {
    __builtin_prefetch((const void *)((uintptr_t)numbers + (uintptr_t)bytes));
}

/* Of a row. Its last vector may begin within the one before, to the same numbers. */
ALWAYS_INLINE void exponentiate_along(const softmax *softmax, logits_kind kind, const group *group, int64_t r,
                                      const real *z, int64_t ahead, real *e) {
    const reals anchor = each_real(group->anchor[r]), lowest = each_real(group->lowest[r]),
                rounder = each_real(SOFTMAX_ROUNDER - group->n[r]);
    const vector_shift shift = {&anchor, &lowest, &rounder, 1};
    const int64_t classes = group->classes;
    int64_t i = 0;
    for (; i + VECTORS_ALONG * REALS <= classes; i += VECTORS_ALONG * REALS) {
        for (int v = 0; v < VECTORS_ALONG; v++)
            prefetch_ahead(z + i + v * REALS, ahead);
        exponentiate_vectors(softmax, &shift, kind, z + i, VECTORS_ALONG, e + i);
    }
    for (; i < classes; i += REALS) {
        const int64_t first = least(i, classes - REALS);
        prefetch_ahead(z + i, ahead);
        exponentiate_vectors(softmax, &shift, kind, z + first, 1, e + first);
    }
}

/* -------------------------------------------------------------------- sums -- */

/* Half a vector of numbers, as doubles, of which the first are there. */
ALWAYS_INLINE __m512d widen_half(const real *from, bool whole, unsigned there) {
    return whole ? _mm512_cvtps_pd(_mm256_loadu_ps(from))
                 : _mm512_cvtps_pd(_mm256_maskz_loadu_ps((__mmask8)there, from));
}

/* Lanes of `lines` lines by the tree; `vectors` of them, of which the last may be in part. Missing terms are +0, which
 * changes no sum of numbers that are no -0. */
ALWAYS_INLINE double sum_lanes_along(const along *along, const real *e, int lines, int vectors) {
    __m512d low[LINE_VECTORS], high[LINE_VECTORS];
    for (int v = 0; v < vectors; v++) {
        _Alignas(64) real lane[REALS];
        if (lines == 1) {
            const unsigned there = along->last[v];
            low[v] = widen_half(e + v * REALS, v + 1 < vectors, there & 0xff);
            high[v] = widen_half(e + v * REALS + REALS / 2, v + 1 < vectors, there >> 8);
            continue;
        }
        reals x[ORDER_LINES];
        for (int line = 0; line < lines; line++) {
            const real *from = e + line * ORDER_LANES + v * REALS;
            x[line] = line + 1 < lines ? load_reals(from) : _mm512_maskz_loadu_ps(along->last[v], from);
        }
        for (int apart = 1; apart < lines; apart *= 2)
            for (int line = 0; line + apart < lines; line += 2 * apart)
                x[line] = reals_plus(x[line], x[line + apart]);
        store_reals(lane, x[0]);
        low[v] = widen_half(lane, true, 0);
        high[v] = widen_half(lane + REALS / 2, true, 0);
    }
    for (int apart = LINE_VECTORS / 2; apart > 0; apart /= 2)
        for (int v = 0; v < apart && v + apart < vectors; v++) {
            low[v] = _mm512_add_pd(low[v], low[v + apart]);
            high[v] = _mm512_add_pd(high[v], high[v + apart]);
        }
    const __m512d eight = _mm512_add_pd(low[0], high[0]);
    const __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(two) + _mm_cvtsd_f64(_mm_unpackhi_pd(two, two));
}

ALWAYS_INLINE double sum_along(const along *along, const real *e) {
    /* Of a single line, then of several. */
    switch (along->lines == 1 ? (int)((along->classes + REALS - 1) / REALS) : along->lines * ORDER_LANES) {
#define VECTORS_OF_LINE(count)                                                                                         \
    case count:                                                                                                        \
        return sum_lanes_along(along, e, 1, count);
#define LINES_OF_ROW(count)                                                                                            \
    case count *ORDER_LANES:                                                                                           \
        return sum_lanes_along(along, e, count, LINE_VECTORS);
        VECTORS_OF_LINE(3)
        VECTORS_OF_LINE(4)
        VECTORS_OF_LINE(5)
        VECTORS_OF_LINE(6)
        VECTORS_OF_LINE(7)
        VECTORS_OF_LINE(8)
        LINES_OF_ROW(2)
        LINES_OF_ROW(3)
        LINES_OF_ROW(4)
        LINES_OF_ROW(5)
        LINES_OF_ROW(6)
        LINES_OF_ROW(7)
    default:
        return sum_lanes_along(along, e, ORDER_LINES, LINE_VECTORS);
#undef VECTORS_OF_LINE
#undef LINES_OF_ROW
    }
}

/* A group's rows, each added up after the next one is exponentiated: a label's place, which is stored by itself, is in
 * the cache by then. */
ALWAYS_INLINE void sum_rows_along(const along *along, logits_kind kind, const rows_along *given, int64_t first,
                                  int64_t end, along_buffers *buffers) {
    const softmax softmax = along->rows->softmax;
    const rows_along rows = *given;
    const int64_t ahead = along->batch * rows.apart * (int64_t)sizeof(real);
    group *group = &buffers->group;
    const real *before = NULL;
    for (int64_t r = first; r < end; r++) {
        real *e = rows.gradient ? rows.gradient + r * rows.gradient_apart : buffers->e[r % 2];
        exponentiate_along(&softmax, kind, group, r, rows.z + r * rows.apart, ahead, e);
        group->own[r] = (double)e[group->label[r]];
        e[group->label[r]] = 0;
        if (before)
            group->others[r - 1] = sum_along(along, before);
        before = e;
    }
    group->others[end - 1] = sum_along(along, before);
}

static void sum_group_along(const along *along, const rows_along *rows, along_buffers *buffers) {
    const struct rows *of = along->rows;
    group *group = &buffers->group;
    bool all_calm = true;
    for (int64_t first = 0; first < group->count; first += along->batch) {
        const int64_t end = least(first + along->batch, group->count);
        find_largest_along(rows, first, end, group);
        find_shifts(&of->softmax, &of->of->scale, group);
        const bool calm = is_calm_aside(&of->softmax, group);
        all_calm &= calm;
        if (calm)
            sum_rows_along(along, LOGITS_CALM, rows, first, end, buffers);
        else
            sum_rows_along(along, LOGITS_ANY, rows, first, end, buffers);
    }
    group->is_calm = all_calm;
    for (int r = group->count; r < ROWS_ASIDE; r++) {
        group->largest[r] = group->smallest[r] = 0;
        group->own[r] = group->others[r] = 1;
    }
    if (along->needs_lse)
        finish_sums(&of->softmax, &of->of->scale, group);
}

/* ------------------------------------------------------------------ slopes -- */

/* In the place of the exponentials. */
static void write_slopes_along(const rows_along *given, const group *group) {
    const rows_along rows = *given;
    const reals nan = each_real(REAL_NAN);
    const int64_t classes = group->classes;
    for (int64_t r = 0; r < group->count; r++) {
        real *e = rows.gradient + r * rows.gradient_apart;
        if (!group->takes_part[r]) {
            memset(e, 0, (size_t)classes * sizeof *e);
            continue;
        }
        const reals f = each_real(group->f[r]), upstream = each_real(group->upstream[r]);
        for (int64_t i = 0; i < classes; i += REALS) {
            const __mmask16 own = first_numbers(classes - i);
            reals slope = reals_times(_mm512_maskz_loadu_ps(own, e + i), f);
            if (group->has_upstream)
                slope = reals_times(slope, upstream);
            slope = _mm512_mask_mov_ps(slope, _mm512_cmp_ps_mask(slope, slope, _CMP_UNORD_Q), nan);
            _mm512_mask_storeu_ps(e + i, own, slope);
        }
        const real own = canonical(group->own_slope[r]);
        e[group->label[r]] = group->has_upstream ? canonical(own * group->upstream[r]) : own;
    }
}

/* -------------------------------------------------------------------- rows -- */

static void prepare_along(const rows *rows, aside_function *apply, along *along, along_buffers *buffers) {
    const int64_t classes = rows->of->classes;
    begin_groups(&buffers->group);
    buffers->group.classes = classes;
    along->rows = rows;
    along->apply = apply;
    along->needs_lse = gives_states(rows) || looks_at_lse(rows->job);
    along->classes = classes;
    along->batch = ROWS_ASIDE;
    while (along->batch > 1 && along->batch * classes > MOST_SEEN)
        along->batch /= 2;
    along->lines = (int)((classes - 1) / ORDER_LANES + 1);
    for (int v = 0; v < (int)LINE_VECTORS; v++)
        along->last[v] = first_numbers(classes - (along->lines - 1) * ORDER_LANES - v * REALS);
}

/* Up to a group of rows, as many as lie in one row of the views; returns how many. */
static int64_t run_along(const along *along, int64_t index, int64_t most, along_buffers *buffers, real *terms) {
    const rows *of = along->rows;
    const job *job = of->job;
    group *group = &buffers->group;
    const int64_t some = block_length(&job->operand[0], index, least(most, ROWS_ASIDE));
    const int64_t count = block_length(&job->gradient[0], index, some);
    rows_along rows = {.z = address_of(&job->operand[0], index), .apart = inner_stride(&job->operand[0])};
    if (of->has_gradient) {
        rows.gradient = address_of(&job->gradient[0], index);
        rows.gradient_apart = inner_stride(&job->gradient[0]);
    }
    group->first = index;
    group->count = (int)count;
    read_rows(of, group);
    read_factors(of, group);
    sum_group_along(along, &rows, buffers);
    finish_rows(of, along->apply, group, terms);
    if (of->has_gradient)
        write_slopes_along(&rows, group);
    return count;
}

#else

typedef struct along {
    bool none;
} along;

typedef struct along_buffers {
    bool none;
} along_buffers;

static bool goes_along(const rows *rows) {
    (void)rows;
    return false;
}

static void prepare_along(const rows *rows, aside_function *apply, along *along, along_buffers *buffers) {
    (void)rows, (void)apply, (void)along, (void)buffers;
}

static int64_t run_along(const along *along, int64_t index, int64_t most, along_buffers *buffers, real *terms) {
    (void)along, (void)index, (void)buffers, (void)terms;
    return most;
}

#endif

#endif
