/*
 * Slopes of rows of bf16 with AVX-512, straight from the logits in memory to the gradient in memory: by steps of their
 * own, which leave a tile's numbers in a buffer each time, a step of 128256 classes took a third longer.
 */
#ifndef ONEPASS_CPU_ROWS_BF16_SLOPES_H
#define ONEPASS_CPU_ROWS_BF16_SLOPES_H

#include "cpu/exponentials.h"
#include "cpu/rows/job.h"

/* What a whole tile's slopes are made of: e f, times the upstream gradient. */
typedef struct bf16_slopes {
    const uint16_t *from;
    uint16_t *to;
    real f, upstream;
} bf16_slopes;

#if ONEPASS_HAS_REALS && !defined(__aarch64__)

#define HAS_BF16_SLOPES     true
#define BF16_SLOPES_AT_ONCE (MOST_VECTORS * REALS) /* numbers at a time */

/* Rounded to nearest, of numbers that are finite. */
ALWAYS_INLINE __m256i bf16_of_reals(reals x) {
    const reals_bits bits = BITS_OF_REALS(x), odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), each_bits(1));
    const reals_bits rounded = sum_of_bits(bits, sum_of_bits(odd, each_bits(0x7fff)));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
}

/* Of calm logits, and factors that are finite. */
static __attribute__((noinline)) void write_bf16_slopes(const softmax *given, const softmax_shift *shift_of_tile,
                                                        const bf16_slopes *tile) {
    const softmax softmax = *given;
    const reals rounder = each_real(SOFTMAX_ROUNDER - shift_of_tile->n), none = each_real(0);
    const vector_shift shift = {&none, &none, &rounder, 1};
    const reals f = each_real(tile->f), upstream = each_real(tile->upstream);
    const bool is_scaled = tile->upstream != 1;
    for (int64_t first = 0; first < ORDER_TILE; first += BF16_SLOPES_AT_ONCE) {
        real z[BF16_SLOPES_AT_ONCE];
        reals shifted[MOST_VECTORS], e[MOST_VECTORS];
        for (int64_t i = 0; i < BF16_SLOPES_AT_ONCE; i += REALS)
            store_reals(z + i, reals_of_bf16(_mm256_loadu_si256((const void *)(tile->from + first + i))));
        prefetch(tile->to, sizeof *tile->to, first, BF16_SLOPES_AT_ONCE, true);
        begin_exponentials(&softmax, &shift, LOGITS_CALM, z, REALS, MOST_VECTORS, shifted, e);
        for (int i = 0; i < MOST_VECTORS; i++) {
            e[i] = reals_times(end_exponential(LOGITS_CALM, shifted[i], e[i]), f);
            e[i] = is_scaled ? reals_times(e[i], upstream) : e[i];
            _mm256_storeu_si256((__m256i *)(void *)(tile->to + first + i * REALS), bf16_of_reals(e[i]));
        }
    }
}

#else

#define HAS_BF16_SLOPES false

static void write_bf16_slopes(const softmax *softmax, const softmax_shift *shift, const bf16_slopes *tile) {
    (void)softmax, (void)shift, (void)tile;
}

#endif

#endif
