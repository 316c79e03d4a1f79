/*
 * The loops of the limit. The tool is installed, so that it cannot be compiled for the machine it runs on: on x86 each
 * loop is compiled for three instruction sets, and the widest that is there is taken. Elsewhere the baseline will do,
 * since 16 bytes a load are enough for every cache but the first.
 *
 * The narrow loop has one accumulator, the wide one several. On a Neoverse N1 the narrow one is 1 to 2 % faster from
 * memory, which likes a slower pace, and the wide one by up to a factor of 2 from the caches.
 */
#include "cpu_limits.h"

#include <stdint.h>

#if defined(__x86_64__)
#include <emmintrin.h> /* stores that go around the cache */
#endif

enum {
    WORD = sizeof(uint64_t),
    LANES = LIMIT_STEP / WORD
};

typedef uint64_t read_loop(const uint64_t *a, const uint64_t *b, size_t words);
typedef void write_loop(const uint64_t *a, const uint64_t *b, uint64_t *restrict c, size_t words);

#define INLINE static inline __attribute__((always_inline))

/* ----------------------------------------------------------------- the loops -- */

INLINE uint64_t read_narrow(const uint64_t *a, const uint64_t *b, size_t words) {
    uint64_t all = 0;
    for (size_t i = 0; i < words; i++)
        all ^= a[i] ^ b[i];
    return all;
}

INLINE uint64_t read_wide(const uint64_t *a, const uint64_t *b, size_t words) {
    uint64_t lane[LANES] = {0}, all = 0;
    for (size_t i = 0; i < words; i += LANES)
        for (int k = 0; k < LANES; k++)
            lane[k] ^= a[i + k] ^ b[i + k];
    for (int k = 0; k < LANES; k++)
        all ^= lane[k];
    return all;
}

INLINE void write_narrow(const uint64_t *a, const uint64_t *b, uint64_t *restrict c, size_t words) {
    for (size_t i = 0; i < words; i++)
        c[i] = a[i] ^ b[i];
}

INLINE void write_wide(const uint64_t *a, const uint64_t *b, uint64_t *restrict c, size_t words) {
    for (size_t i = 0; i < words; i += LANES)
        for (int k = 0; k < LANES; k++)
            c[i + k] = a[i + k] ^ b[i + k];
}

#if defined(__x86_64__)
/* Lines that are written as a whole need not be read before. Arm processors find that out by themselves. */
static void write_around(const uint64_t *a, const uint64_t *b, uint64_t *restrict c, size_t words) {
    const __m128i *x = (const __m128i *)a, *y = (const __m128i *)b;
    __m128i *z = (__m128i *)c;
    for (size_t i = 0; i < words * WORD / sizeof *z; i += LIMIT_STEP / sizeof *z)
        for (size_t k = 0; k < LIMIT_STEP / sizeof *z; k++)
            _mm_stream_si128(z + i + k, _mm_xor_si128(_mm_load_si128(x + i + k), _mm_load_si128(y + i + k)));
    _mm_sfence();
}
#endif

/* ------------------------------------------------------- for instruction sets -- */

enum {
    MOST_LOOPS = 3
};

typedef struct loops {
    read_loop *read[MOST_LOOPS];
    write_loop *write[MOST_LOOPS];
} loops;

#define LOOPS_FOR(isa, TARGET)                                                                                         \
    TARGET static uint64_t read_narrow_##isa(const uint64_t *a, const uint64_t *b, size_t words) {                     \
        return read_narrow(a, b, words);                                                                               \
    }                                                                                                                  \
    TARGET static uint64_t read_wide_##isa(const uint64_t *a, const uint64_t *b, size_t words) {                       \
        return read_wide(a, b, words);                                                                                 \
    }                                                                                                                  \
    TARGET static void write_narrow_##isa(const uint64_t *a, const uint64_t *b, uint64_t *restrict c, size_t words) {  \
        write_narrow(a, b, c, words);                                                                                  \
    }                                                                                                                  \
    TARGET static void write_wide_##isa(const uint64_t *a, const uint64_t *b, uint64_t *restrict c, size_t words) {    \
        write_wide(a, b, c, words);                                                                                    \
    }

LOOPS_FOR(baseline, )

#if defined(__x86_64__)

/* gcc takes half of the width unless it is told to. */
#if defined(__clang__)
#define AVX512 "avx512f"
#else
#define AVX512 "avx512f,prefer-vector-width=512"
#endif

LOOPS_FOR(avx2, __attribute__((target("avx2"))))
LOOPS_FOR(avx512, __attribute__((target(AVX512))))

static const loops *loops_here(void) {
    static const loops baseline = {{read_narrow_baseline, read_wide_baseline},
                                   {write_narrow_baseline, write_wide_baseline, write_around}},
                       avx2 = {{read_narrow_avx2, read_wide_avx2}, {write_narrow_avx2, write_wide_avx2, write_around}},
                       avx512 = {{read_narrow_avx512, read_wide_avx512},
                                 {write_narrow_avx512, write_wide_avx512, write_around}};
    return __builtin_cpu_supports("avx512f") ? &avx512 : __builtin_cpu_supports("avx2") ? &avx2 : &baseline;
}

#else

static const loops *loops_here(void) {
    static const loops baseline = {{read_narrow_baseline, read_wide_baseline},
                                   {write_narrow_baseline, write_wide_baseline}};
    return &baseline;
}

#endif

int limit_loops(bool writes) {
    const loops *here = loops_here();
    int count = 0;
    while (count < MOST_LOOPS && (writes ? here->write[count] != NULL : here->read[count] != NULL))
        count++;
    return count;
}

/* ------------------------------------------------------------------ on threads -- */

/* So that no compiler can leave the reading out. */
static volatile uint64_t what_was_read;

/* From the `part`-th of `parts` pieces on, in words: whole steps each. */
static size_t beginning(size_t bytes, int part, int parts) {
    const size_t steps = (bytes + LIMIT_STEP - 1) / LIMIT_STEP;
    return steps * (size_t)part / (size_t)parts * LANES;
}

static uint64_t run_part(const limit_work *work, int part) {
    const size_t first = beginning(work->bytes, part, work->threads),
                 words = beginning(work->bytes, part + 1, work->threads) - first;
    const uint64_t *a = (const uint64_t *)work->a + first, *b = (const uint64_t *)work->b + first;
    if (!work->c)
        return loops_here()->read[work->loop](a, b, words);
    loops_here()->write[work->loop](a, b, (uint64_t *)work->c + first, words);
    return 0;
}

/* OpenMP's threads, which are those that the library uses too: two pools would be in each other's way. */
void limit_run(const limit_work *work) {
    uint64_t all = 0;
    if (work->threads == 1) {
        all = run_part(work, 0);
    } else {
#pragma omp parallel for num_threads(work->threads) schedule(static) reduction(^ : all)
        for (int part = 0; part < work->threads; part++)
            all ^= run_part(work, part);
    }
    what_was_read = all;
}
