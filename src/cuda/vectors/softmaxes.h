/*
 * A tile of a row whose two vectors are logits: their exponentials, which stay in a thread's registers, what the tile
 * leaves to be joined, and when the row is known, what a loss makes of its probabilities.
 */
#ifndef ONEPASS_CUDA_VECTORS_SOFTMAXES_H
#define ONEPASS_CUDA_VECTORS_SOFTMAXES_H

#include "cuda/exponentials.h"
#include "cuda/vectors/row.h"
#include "math/softmaxes.h"

/* What a tile leaves. Its exponents follow from its largest logits, which are NaN if a logit is. */
typedef struct tile_softmaxes {
    double largest[2];
    double others[2], leading[2];
    double carried;
} tile_softmaxes;

/* A tile in hand: exponentials by its own shifts. */
typedef struct exponentials {
    own_numbers of[2];
    softmax_shift shift[2];
    real largest[2]; /* as in tile_softmaxes */
    bool calm[2];    /* see is_calm_tile() */
} exponentials;

/* ------------------------------------------------------------ exponentials -- */

/* Whether a number is there at all, of a tile that may end in its last line alone. */
ALWAYS_INLINE bool is_in_last_line(const tile *tile, int line, int own) {
    return line < ORDER_LINES - 1 || is_in(tile, line, own);
}

/* Exponentials of what stands in for logits beyond the end. */
ALWAYS_INLINE void drop_last_line(const tile *tile, own_numbers x) {
    const int last = ORDER_LINES - 1;
    EACH_OWN x[last][own] = is_in(tile, last, own) ? x[last][own] : 0;
}

/* Logits of the second vector become exponentials. The lanes' sums of what these carry are left. */
template <bool CALM>
ALWAYS_INLINE void exponentiate_and_carry(const softmax *of, const softmax_shift *given, const real *largest,
                                          const tile *tile, const own_numbers first, own_numbers second, real *lane) {
    const softmax softmax = *of;
    const softmax_shift shift = *given;
    EACH_OWN {
        real two, four;
        EACH_LINE {
            const real z = second[line][own], apart = softmaxes_apart(first[line][own], largest[0], z, largest[1]);
            const bool is_there = CALM || shift.anchor == 0 || is_in(tile, line, own);
            const real e = CALM ? softmax_exponential_above(&softmax, &shift, z)
                                : softmax_exponential(&softmax, &shift, is_there ? z - shift.anchor : -REAL_INFINITY);
            const real carried = CALM ? e * apart : softmaxes_carried(e, apart);
            const bool is_counted = is_in_last_line(tile, line, own);
            second[line][own] = is_counted ? e : 0;
            order_line(line, is_counted ? carried : 0, &lane[own], &two, &four);
        }
    }
}

/* Of a tile that is not whole: what stands beyond its end. Where only the last line ends, which costs least, it is a
 * logit of the tile, so that the tile may be calm, and else -inf. */
ALWAYS_INLINE void stand_in(const tile *tile, own_numbers x) {
    if (tile->count > ORDER_TILE - ORDER_LANES)
        EACH_OWN x[ORDER_LINES - 1][own] = is_in(tile, ORDER_LINES - 1, own) ? x[ORDER_LINES - 1][own] : x[0][own];
    else
        EACH_NUMBER x[line][own] = is_in(tile, line, own) ? x[line][own] : ROW_NO_LOGIT;
}

/* Logits of a tile in the place of its exponentials. */
template <vector_access access>
ALWAYS_INLINE void read_logits(const cuda_vector *job, const vector_tile *own_tile, exponentials *e) {
    const softmax softmax = softmax_as_told(&job->softmax);
    const tile *tile = &own_tile->of;
    read_elements<access, 2, ORDER_LINES>(job, 0, own_tile, 0, e->of);
#pragma unroll
    for (int k = 0; k < 2; k++) {
        if (tile->count < ORDER_TILE)
            stand_in(tile, e->of[k]);
        const own_range range = range_of(tile, e->of[k]);
        e->largest[k] = warp_largest_or_nan(range.largest) + 0; /* -0 is 0 */
        e->shift[k] = softmax_shift_of(&softmax, &job->softmax.scale, e->largest[k]);
        e->calm[k] = is_calm_tile(&softmax, &e->shift[k], range.smallest);
    }
}

/* Those of one vector become exponentials. */
ALWAYS_INLINE void exponentiate_vector(const cuda_vector *job, const tile *tile, int k, exponentials *e) {
    const softmax softmax = softmax_as_told(&job->softmax);
    exponentiate(&softmax, &e->shift[k], tile, e->calm[k], e->of[k]);
    drop_last_line(tile, e->of[k]);
}

/* Those of the second, while the first's are logits: the lanes' sums of what is carried are left. */
ALWAYS_INLINE void exponentiate_carrier(const cuda_vector *job, const tile *tile, exponentials *e, real *lane) {
    const softmax softmax = softmax_as_told(&job->softmax);
    const real largest[2] = {e->shift[0].largest, e->shift[1].largest};
    if (e->calm[1])
        exponentiate_and_carry<true>(&softmax, &e->shift[1], largest, tile, e->of[0], e->of[1], lane);
    else
        exponentiate_and_carry<false>(&softmax, &e->shift[1], largest, tile, e->of[0], e->of[1], lane);
}

ALWAYS_INLINE void exponentiate_logits(const cuda_vector *job, const tile *tile, exponentials *e) {
    exponentiate_vector(job, tile, 1, e);
    exponentiate_vector(job, tile, 0, e);
}

/* The lanes of a tile's sums, in shared memory, where they are added up together. */
typedef real lanes_together[ORDER_TOGETHER * ORDER_PITCH];

/* So many sums at a time: one by one they would take more shuffles of doubles than there are of anything else once a
 * tile. */
template <int SUMS>
ALWAYS_INLINE void sum_together(int thread, real (*lane)[ORDER_OWN_LANES], real *of_warp, double *sum) {
    __syncwarp(); /* nobody reads what was there before */
#pragma unroll
    for (int k = 0; k < SUMS; k++)
        EACH_VECTOR *(vector *)(of_warp + k * ORDER_PITCH + order_lane(thread, i * VECTOR)) =
            pack_vector(lane[k] + i * VECTOR);
    __syncwarp();
    constexpr int threads = ORDER_WARP / ORDER_TOGETHER; /* that have a sum; those that would have none, the first */
    const double own = order_lanes_together(thread < SUMS * threads ? thread : thread % threads, of_warp);
#pragma unroll
    for (int k = 0; k < SUMS; k++)
        sum[k] = __shfl_sync(~0u, own, k * threads);
}

template <typename loss>
ALWAYS_INLINE void sum_softmaxes(const cuda_vector *job, const tile *tile, exponentials *e, real *of_warp,
                                 tile_softmaxes *sums) {
    constexpr bool CARRIES = loss::SUMS == 0;
    constexpr bool TOGETHER = sizeof(real) == sizeof(float); /* doubles that wait for others take too many registers */
    const softmax softmax = softmax_as_told(&job->softmax);
    real lane[3][ORDER_OWN_LANES];
    double sum[3] = {0, 0, 0};
    if (CARRIES)
        exponentiate_carrier(job, tile, e, lane[2]);
    else
        exponentiate_vector(job, tile, 1, e);
    if (!TOGETHER && CARRIES)
        sum[2] = order_lanes(tile->thread, lane[2]);
    exponentiate_vector(job, tile, 0, e);
#pragma unroll
    for (int k = 0; k < 2; k++) {
        sums->largest[k] = (double)e->largest[k];
        sums->leading[k] = lanes_without_leading(row_most_of_tile(&softmax, &e->shift[k]), e->of[k], lane[k]);
        if (!TOGETHER)
            sum[k] = order_lanes(tile->thread, lane[k]);
    }
    if (TOGETHER)
        sum_together<2 + CARRIES>(tile->thread, lane, of_warp, sum);
    sums->others[0] = sum[0];
    sums->others[1] = sum[1];
    sums->carried = sum[2];
}

/* ---------------------------------------------------------- probabilities -- */

/* Exponentials of a tile become probabilities. */
ALWAYS_INLINE void make_probabilities(const cuda_vector *job, const vector_softmaxes *known, exponentials *e) {
    const softmax softmax = softmax_as_told(&job->softmax);
    double exponent[2];
    softmaxes_exponents(&softmax, &job->softmax.scale, known->largest, exponent);
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const real factor = softmaxes_factor(known->per_sum[k], e->shift[k].exponent, exponent[k]);
        EACH_NUMBER e->of[k][line][own] = e->of[k][line][own] * factor;
    }
}

/* The sums of what a loss makes of them. Those beyond the end are 0, of which terms are +0, or NaN as the row is. */
template <typename loss>
ALWAYS_INLINE void sum_probabilities(const double *parameter, const tile *tile, const exponentials *p, double *sum) {
    double lane[VECTOR_MOST_SUMS][ORDER_OWN_LANES];
    EACH_OWN {
        double half[2][VECTOR_MOST_SUMS];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            double term[HALF_TILE][VECTOR_MOST_SUMS];
#pragma unroll
            for (int j = 0; j < HALF_TILE; j++) {
                const int line = i * HALF_TILE + j;
                const real x[] = {p->of[0][line][own], p->of[1][line][own], 0};
                loss::terms(x, parameter, term[j]);
            }
#pragma unroll
            for (int k = 0; k < loss::SUMS; k++)
                half[i][k] = (term[0][k] + term[1][k]) + (term[2][k] + term[3][k]);
        }
#pragma unroll
        for (int k = 0; k < loss::SUMS; k++)
            lane[k][own] = half[0][k] + half[1][k];
    }
#pragma unroll
    for (int k = 0; k < loss::SUMS; k++)
        sum[k] = order_lanes(tile->thread, lane[k]);
}

/* How far logits of half a tile are apart, which are read again. */
template <vector_access access>
ALWAYS_INLINE void find_apart(const cuda_vector *job, const vector_softmaxes *known, const vector_tile *own_tile,
                              int first, half_tile apart) {
    const real largest[2] = {(real)known->largest[0], (real)known->largest[1]};
    half_tile x[2];
    read_elements<access, 2, HALF_TILE>(job, 0, own_tile, first, x);
    EACH_HALF_LINE EACH_OWN apart[i][own] = softmaxes_apart(x[0][i][own], largest[0], x[1][i][own], largest[1]);
}

/* The gradient of one vector, of its probabilities. Slopes that cannot be NaN need not be looked at. */
template <typename loss, vector_access access, int k, bool CALM>
ALWAYS_INLINE void write_gradient(const cuda_vector *job, const double *parameter, const vector_softmaxes *known,
                                  const vector_tile *own_tile, const exponentials *p, const double *factor) {
    const bool needs_apart = loss::SUMS == 0 && k == 1;
    const real upstream = row_upstream(job, own_tile->row);
#pragma unroll
    for (int first = 0; first < ORDER_LINES; first += HALF_TILE) {
        half_tile slope;
        if (needs_apart)
            find_apart<access>(job, known, own_tile, first, slope);
        EACH_HALF_LINE EACH_OWN {
            const real x[] = {p->of[0][first + i][own], p->of[1][first + i][own], needs_apart ? slope[i][own] : 0};
            const real own_slope = (real)loss::slope(k, x, parameter, factor);
            slope[i][own] = CALM ? own_slope : canonical(own_slope);
        }
        if (upstream != 1)
            EACH_HALF_LINE EACH_OWN slope[i][own] = canonical(slope[i][own] * upstream);
        write_half<access>(job, k, own_tile, first, slope);
    }
}

/* Of a row that takes no part it is 0. */
template <vector_access access, int k>
ALWAYS_INLINE void write_zeros(const cuda_vector *job, const vector_tile *own_tile) {
    half_tile zeros;
    EACH_HALF_LINE EACH_OWN zeros[i][own] = 0;
    write_half<access>(job, k, own_tile, 0, zeros);
    write_half<access>(job, k, own_tile, HALF_TILE, zeros);
}

template <typename loss, vector_access access, int k>
ALWAYS_INLINE void write_probability_slopes(const cuda_vector *job, const double *parameter,
                                            const vector_softmaxes *known, const vector_tile *own_tile, bool part,
                                            const exponentials *p, const double *factor) {
    const double all = known->per_sum[0] + known->per_sum[1] + factor[0] + factor[1] + factor[2];
    if (!job->data[CUDA_VECTOR_GRADIENT + k])
        return;
    if (!part)
        write_zeros<access, k>(job, own_tile);
    else if (all - all == 0 && !(loss::SUMS == 0 && k == 1))
        write_gradient<loss, access, k, true>(job, parameter, known, own_tile, p, factor);
    else
        write_gradient<loss, access, k, false>(job, parameter, known, own_tile, p, factor);
}

/* The second one's first: it may ask for the logits again, over which the other may be written. */
template <typename loss, vector_access access>
ALWAYS_INLINE void write_softmax_slopes(const cuda_vector *job, const double *parameter, const vector_softmaxes *known,
                                        const vector_tile *own_tile, bool part, const exponentials *p,
                                        const double *factor) {
    write_probability_slopes<loss, access, 1>(job, parameter, known, own_tile, part, p, factor);
    write_probability_slopes<loss, access, 0>(job, parameter, known, own_tile, part, p, factor);
    if (access == VECTORS_ANYHOW)
        empty_buffers<loss>(job, own_tile);
}

#endif
