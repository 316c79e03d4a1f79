/*
 * The floating-point state that the bits need: round to nearest, denormals, no traps.
 * Whoever computes enters it and leaves it again, which restores the caller's state and
 * drops the exception flags that were raised in between.
 *
 * fenv.h can do this everywhere, but on x86 it also saves the x87 unit, which took
 * longer than the sum of a thousand numbers. On Arm the default-NaN mode saves
 * cpu/lines.h a comparison and a choice for each gradient.
 */
#ifndef ONEPASS_FLOAT_STATE_H
#define ONEPASS_FLOAT_STATE_H

#include <stdint.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#elif !defined(__aarch64__)
#include <fenv.h>
#endif

/* Not inlined: compilers do not know that arithmetic must stay between enter_float_state
 * and leave_float_state, but they cannot move it out of a call. */
#define ARITHMETIC static __attribute__((noinline))

#if defined(__x86_64__)
typedef unsigned float_state;

static inline float_state enter_float_state(void) {
    const float_state callers = _mm_getcsr();
    _mm_setcsr(0x1f80); /* the power-on value: all masked, round to nearest, no flushing */
    return callers;
}

static inline void leave_float_state(float_state callers) {
    _mm_setcsr(callers);
}
#elif defined(__aarch64__)
typedef struct float_state {
    uint64_t control, status;
} float_state;

static inline float_state enter_float_state(void) {
    const uint64_t default_nan = UINT64_C(1) << 25;
    float_state callers;
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(callers.control), "=r"(callers.status) : : "memory");
    __asm__ volatile("msr fpcr, %0" : : "r"(default_nan) : "memory");
    return callers;
}

static inline void leave_float_state(float_state callers) {
    __asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1" : : "r"(callers.control), "r"(callers.status) : "memory");
}
#else
typedef fenv_t float_state;

static inline float_state enter_float_state(void) {
    float_state callers;
    fegetenv(&callers);
    fesetenv(FE_DFL_ENV);
    return callers;
}

static inline void leave_float_state(float_state callers) {
    fesetenv(&callers);
}
#endif

#endif
