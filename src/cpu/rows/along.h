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

/* What is the same for all groups of a job. */
typedef struct along {
    const rows *rows;
    aside_function *apply;
    bool needs_lse;
    int64_t classes;
    int64_t batch; /* rows that are looked at before they are exponentiated: what a first-level cache has */
    int lines;     /* of classes */
    int vectors;   /* of a single line, else 0 */
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
    __m512d eight[ROWS_ASIDE];          /* the last eight lanes of each row's sum */
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

/* Where a row's n-th vector begins; the last of them may begin within the one before it. */
ALWAYS_INLINE int64_t vector_at(int64_t n, int64_t count, int64_t classes) {
    return n + 1 < count ? n * REALS : classes - REALS;
}

/* Returns whether none is NaN. */
ALWAYS_INLINE bool see_row(const real *z, int64_t classes, int vectors, reals *largest, reals *smallest) {
    const int64_t count = vectors ? vectors : (classes + REALS - 1) / REALS;
    reals high[2] = {each_real(-REAL_INFINITY), each_real(-REAL_INFINITY)};
    reals low[2] = {each_real(REAL_INFINITY), each_real(REAL_INFINITY)};
    __mmask16 ordered = 0xffff;
    for (int64_t n = 0; n < count; n += 2) {
        const bool is_pair = n + 1 < count;
        const reals a = load_reals(z + vector_at(n, count, classes));
        const reals b = is_pair ? load_reals(z + vector_at(n + 1, count, classes)) : a;
        ordered = _mm512_mask_cmp_ps_mask(ordered, a, b, _CMP_ORD_Q);
        high[0] = _mm512_max_ps(a, high[0]);
        low[0] = _mm512_min_ps(a, low[0]);
        if (!is_pair)
            break;
        high[1] = _mm512_max_ps(b, high[1]);
        low[1] = _mm512_min_ps(b, low[1]);
    }
    *largest = _mm512_max_ps(high[0], high[1]);
    *smallest = _mm512_min_ps(low[0], low[1]);
    return ordered == 0xffff;
}

/* A vector's rows of a group. */
typedef struct seen_rows {
    reals largest[REALS], smallest[REALS];
    unsigned there, ordered; /* bits: looked at, without NaN */
} seen_rows;

ALWAYS_INLINE void see_rows(int vectors, const real *z, int64_t apart, int64_t classes, int64_t first, int64_t end,
                            seen_rows *seen) {
    seen->ordered = 0;
    seen->there = first_numbers(end) & ~(unsigned)first_numbers(first);
    for (int64_t r = first; r < end; r++)
        seen->ordered |= (unsigned)see_row(z + r * apart, classes, vectors, &seen->largest[r], &seen->smallest[r]) << r;
}

/* As find_largest() has it, of the rows from `first` on, which do not reach beyond a vector of them unless they begin
 * with one. */
ALWAYS_INLINE void find_largest_of(int vectors, const rows_along *given, int64_t first, int64_t end, group *group) {
    const rows_along rows = *given;
    const reals nan = each_real(REAL_NAN);
    for (int64_t block = first / REALS * REALS; block < end; block += REALS) {
        const real *z = rows.z + block * rows.apart;
        const int64_t from = first > block ? first - block : 0, to = least(end - block, REALS);
        seen_rows seen;
        if (from == 0 && to == REALS) {
            see_rows(vectors, z, rows.apart, group->classes, 0, REALS, &seen);
        } else {
            memset(&seen, 0, sizeof seen);
            see_rows(vectors, z, rows.apart, group->classes, from, to, &seen);
        }
        reals high = fold_sixteen(larger_of, seen.largest), low = fold_sixteen(smaller_of, seen.smallest);
        high = _mm512_mask_add_ps(nan, (__mmask16)seen.ordered, high, each_real(0)); /* -0 is 0 */
        low = _mm512_mask_mov_ps(nan, (__mmask16)seen.ordered, low);
        _mm512_mask_storeu_ps(group->largest + block, (__mmask16)seen.there, high);
        _mm512_mask_storeu_ps(group->smallest + block, (__mmask16)seen.there, low);
    }
}

/* Lines of so many vectors have code of their own: by one loop rows of 100 classes took a quarter longer. */
#define EACH_COUNT_OF_VECTORS(work) work(3) work(4) work(5) work(6) work(7) work(8)

static void find_largest_along(const along *along, const rows_along *rows, int64_t first, int64_t end, group *group) {
    switch (along->vectors) {
#define FIND_LARGEST(count)                                                                                            \
    case count:                                                                                                        \
        find_largest_of(count, rows, first, end, group);                                                               \
        break;
        EACH_COUNT_OF_VECTORS(FIND_LARGEST)
#undef FIND_LARGEST
    default:
        find_largest_of(0, rows, first, end, group);
    }
}

/* ------------------------------------------------------------ exponentials -- */

#define VECTORS_ALONG 4 /* at a time */

/* Asks for what lies so many bytes behind some numbers. */
ALWAYS_INLINE void prefetch_ahead(const real *numbers, int64_t bytes) {
    __builtin_prefetch((const void *)((uintptr_t)numbers + (uintptr_t)bytes));
}

/* Of so many vectors, side by side. */
ALWAYS_INLINE void exponentiate_line(const softmax *softmax, const vector_shift *shift, logits_kind kind, int vectors,
                                     int64_t classes, const real *z, real *e) {
    reals shifted[MOST_VECTORS], p[MOST_VECTORS];
    begin_exponentials_up_to(softmax, shift, kind, z, REALS, vectors, z + classes - REALS, shifted, p);
    for (int n = 0; n < vectors; n++)
        store_reals(e + vector_at(n, vectors, classes), end_exponential(kind, shifted[n], p[n]));
}

/* Of a row. Its last vector may begin within the one before, to the same numbers. */
ALWAYS_INLINE void exponentiate_along(const softmax *softmax, logits_kind kind, int vectors, const group *group,
                                      int64_t r, const real *z, int64_t ahead, real *e) {
    const reals anchor = each_real(group->anchor[r]), lowest = each_real(group->lowest[r]),
                rounder = each_real(SOFTMAX_ROUNDER - group->n[r]);
    const vector_shift shift = {&anchor, &lowest, &rounder, 1};
    const int64_t classes = group->classes;
    int64_t i = 0;
    if (vectors) {
        for (int n = 0; n < vectors; n++)
            prefetch_ahead(z + n * REALS, ahead);
        exponentiate_line(softmax, &shift, kind, vectors, classes, z, e);
        return;
    }
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
ALWAYS_INLINE __m512d widen_half(const real *from) {
    return _mm512_cvtps_pd(_mm256_loadu_ps(from));
}

ALWAYS_INLINE __m512d widen_part(const real *from, unsigned there) {
    return _mm512_cvtps_pd(_mm256_maskz_loadu_ps((__mmask8)there, from));
}

/* So many vectors of a line's lanes by the tree, down to eight. Missing ones are +0, which changes no sum of numbers
 * that are no -0. */
ALWAYS_INLINE __m512d sum_widened(int vectors, __m512d *low, __m512d *high) {
    for (int apart = LINE_VECTORS / 2; apart > 0; apart /= 2)
        for (int v = 0; v < apart && v + apart < vectors; v++) {
            low[v] = _mm512_add_pd(low[v], low[v + apart]);
            high[v] = _mm512_add_pd(high[v], high[v + apart]);
        }
    return _mm512_add_pd(low[0], high[0]);
}

/* Of a single line, of whose last vector some numbers are there. */
ALWAYS_INLINE __m512d sum_line_along(const along *along, int vectors, const real *e) {
    const unsigned last = along->last[vectors - 1];
    __m512d low[LINE_VECTORS], high[LINE_VECTORS];
    for (int v = 0; v < vectors; v++) {
        const real *from = e + v * REALS;
        const bool whole = v + 1 < vectors;
        low[v] = whole ? widen_half(from) : widen_part(from, last & 0xff);
        high[v] = whole ? widen_half(from + REALS / 2) : widen_part(from + REALS / 2, last >> 8);
    }
    return sum_widened(vectors, low, high);
}

/* Of so many, of which the last may be in part. */
ALWAYS_INLINE __m512d sum_lines_along(const along *along, int lines, const real *e) {
    __m512d low[LINE_VECTORS], high[LINE_VECTORS];
    for (int v = 0; v < LINE_VECTORS; v++) {
        _Alignas(64) real lane[REALS];
        reals x[ORDER_LINES];
        for (int line = 0; line < lines; line++) {
            const real *from = e + line * ORDER_LANES + v * REALS;
            x[line] = line + 1 < lines ? load_reals(from) : _mm512_maskz_loadu_ps(along->last[v], from);
        }
        for (int apart = 1; apart < lines; apart *= 2)
            for (int line = 0; line + apart < lines; line += 2 * apart)
                x[line] = reals_plus(x[line], x[line + apart]);
        store_reals(lane, x[0]);
        low[v] = widen_half(lane);
        high[v] = widen_half(lane + REALS / 2);
    }
    return sum_widened(LINE_VECTORS, low, high);
}

ALWAYS_INLINE __m512d sum_along(const along *along, int vectors, const real *e) {
    if (vectors)
        return sum_line_along(along, vectors, e);
    switch (along->lines) {
#define SUM_LINES(count)                                                                                               \
    case count:                                                                                                        \
        return sum_lines_along(along, count, e);
        SUM_LINES(1)
        SUM_LINES(2)
        SUM_LINES(3)
        SUM_LINES(4)
        SUM_LINES(5)
        SUM_LINES(6)
        SUM_LINES(7)
#undef SUM_LINES
    default:
        return sum_lines_along(along, ORDER_LINES, e);
    }
}

/* The halves of two vectors, each added up. */
ALWAYS_INLINE __m512d add_halves(__m512d a, __m512d b) {
    return _mm512_add_pd(_mm512_shuffle_f64x2(a, b, 0x44), _mm512_shuffle_f64x2(a, b, 0xee));
}

/* The same of the halves of these. */
ALWAYS_INLINE __m512d add_quarters(__m512d a, __m512d b) {
    return _mm512_add_pd(_mm512_shuffle_f64x2(a, b, 0x88), _mm512_shuffle_f64x2(a, b, 0xdd));
}

/* The sums of eight rows' last lanes, side by side: those of a row by itself wait for each other. */
ALWAYS_INLINE __m512d sum_eight_rows(const __m512d *x) {
    const __m512d even = add_quarters(add_halves(x[0], x[2]), add_halves(x[4], x[6]));
    const __m512d odd = add_quarters(add_halves(x[1], x[3]), add_halves(x[5], x[7]));
    return _mm512_add_pd(_mm512_unpacklo_pd(even, odd), _mm512_unpackhi_pd(even, odd));
}

/* A group's rows, each added up after the next one is exponentiated: a label's place, which is stored by itself, is in
 * the cache by then. */
ALWAYS_INLINE void sum_rows_of(const along *along, logits_kind kind, int vectors, const rows_along *given,
                               int64_t first, int64_t end, along_buffers *buffers) {
    const softmax softmax = along->rows->softmax;
    const rows_along rows = *given;
    const int64_t ahead = along->batch * rows.apart * (int64_t)sizeof(real);
    group *group = &buffers->group;
    const real *before = NULL;
    for (int64_t r = first; r < end; r++) {
        real *e = rows.gradient ? rows.gradient + r * rows.gradient_apart : buffers->e[r % 2];
        exponentiate_along(&softmax, kind, vectors, group, r, rows.z + r * rows.apart, ahead, e);
        group->own[r] = (double)e[group->label[r]];
        e[group->label[r]] = 0;
        if (before)
            buffers->eight[r - 1] = sum_along(along, vectors, before);
        before = e;
    }
    buffers->eight[end - 1] = sum_along(along, vectors, before);
}

static void sum_rows_along(const along *along, bool calm, const rows_along *rows, int64_t first, int64_t end,
                           along_buffers *buffers) {
    switch (along->vectors) {
#define SUM_ROWS(count)                                                                                                \
    case count:                                                                                                        \
        if (calm)                                                                                                      \
            sum_rows_of(along, LOGITS_CALM, count, rows, first, end, buffers);                                         \
        else                                                                                                           \
            sum_rows_of(along, LOGITS_ANY, count, rows, first, end, buffers);                                          \
        break;
        EACH_COUNT_OF_VECTORS(SUM_ROWS)
#undef SUM_ROWS
    default:
        if (calm)
            sum_rows_of(along, LOGITS_CALM, 0, rows, first, end, buffers);
        else
            sum_rows_of(along, LOGITS_ANY, 0, rows, first, end, buffers);
    }
}

static void sum_group_along(const along *along, const rows_along *rows, along_buffers *buffers) {
    const struct rows *of = along->rows;
    group *group = &buffers->group;
    bool all_calm = true;
    for (int64_t first = 0; first < group->count; first += along->batch) {
        const int64_t end = least(first + along->batch, group->count);
        find_largest_along(along, rows, first, end, group);
        find_shifts(&of->softmax, &of->of->scale, group);
        const bool calm = is_calm_aside(&of->softmax, group);
        all_calm &= calm;
        sum_rows_along(along, calm, rows, first, end, buffers);
    }
    for (int r = 0; r < group->count; r += 8)
        _mm512_storeu_pd(group->others + r, sum_eight_rows(buffers->eight + r));
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
    memset(buffers->eight, 0, sizeof buffers->eight); /* of rows that there are not */
    buffers->group.classes = classes;
    along->rows = rows;
    along->apply = apply;
    along->needs_lse = gives_states(rows) || looks_at_lse(rows->job);
    along->classes = classes;
    along->batch = ROWS_ASIDE;
    while (along->batch > 1 && along->batch * classes > MOST_SEEN)
        along->batch /= 2;
    along->lines = (int)((classes - 1) / ORDER_LANES + 1);
    along->vectors = along->lines == 1 ? (int)((classes + REALS - 1) / REALS) : 0;
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
