/*
 * Gradients of large images, stored past the caches with AVX-512. A store into a cache has its line read first, and
 * lines of many classes that are a power of two apart push each other out of the caches until then. A step of 2 images
 * of 21 classes and 512 x 1024 rows took a third longer on a Xeon.
 */
#ifndef ONEPASS_CPU_ROWS_STREAM_H
#define ONEPASS_CPU_ROWS_STREAM_H

#include "engine.h"

#include "cpu/rows/group.h"

/* A smaller gradient may be in a cache until somebody reads it. */
#define LEAST_STREAMED_BYTES ((double)(64 << 20))

static bool has_large_gradient(const job *job) {
    const double numbers = (double)job->count * (double)job->rows.classes;
    return job->gradient[0].data && numbers * (double)sizeof(real) >= LEAST_STREAMED_BYTES;
}

#if ONEPASS_HAS_REALS && !defined(__aarch64__)

static bool is_streamed(const job *job) {
    return has_large_gradient(job) && !job->in_place[0];
}

/* A group's rows of one class, which are whole cache lines. */
ALWAYS_INLINE void stream_rows(const real *from, real *to) {
    for (int64_t r = 0; r < ROWS_ASIDE; r += REALS)
        _mm512_stream_ps(to + r, load_reals(from + r));
}

/* What was streamed is seen by other threads before what is stored from here on. */
static void end_streaming(void) {
    _mm_sfence();
}

#else

static bool is_streamed(const job *job) {
    (void)job;
    return false;
}

ALWAYS_INLINE void stream_rows(const real *from, real *to) {
    (void)from, (void)to;
}

static void end_streaming(void) {}

#endif

#endif
