/* The instruction sets that the library is built for: the build defines ONEPASS_HAS_AVX2 for those that it has. */
#ifndef ONEPASS_CPU_INSTRUCTION_SETS_H
#define ONEPASS_CPU_INSTRUCTION_SETS_H

#if defined(ONEPASS_HAS_AVX512)
#define IF_AVX512(...) __VA_ARGS__
#else
#define IF_AVX512(...)
#endif
#if defined(ONEPASS_HAS_AVX2)
#define IF_AVX2(...) __VA_ARGS__
#else
#define IF_AVX2(...)
#endif
#if defined(ONEPASS_HAS_SSE2)
#define IF_SSE2(...) __VA_ARGS__
#else
#define IF_SSE2(...)
#endif
#if defined(ONEPASS_HAS_SVE)
#define IF_SVE(...) __VA_ARGS__
#else
#define IF_SVE(...)
#endif
#if defined(ONEPASS_HAS_NEON)
#define IF_NEON(...) __VA_ARGS__
#else
#define IF_NEON(...)
#endif
#if defined(ONEPASS_HAS_BASELINE)
#define IF_BASELINE(...) __VA_ARGS__
#else
#define IF_BASELINE(...)
#endif

/* SET(argument, name, automatic) for each of them, best first. Those that are not automatic must be asked for: sve's
 * bits are tested under emulation, but no measurement yet shows that it is faster than neon. */
#define EACH_INSTRUCTION_SET(SET, argument)                                                                            \
    IF_AVX512(SET(argument, avx512, true))                                                                             \
    IF_AVX2(SET(argument, avx2, true))                                                                                 \
    IF_SSE2(SET(argument, sse2, true))                                                                                 \
    IF_SVE(SET(argument, sve, false))                                                                                  \
    IF_NEON(SET(argument, neon, true))                                                                                 \
    IF_BASELINE(SET(argument, baseline, true))

#endif
