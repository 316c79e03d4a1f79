/* The arithmetic that plans have in common. */
#ifndef ONEPASS_CUDA_ARITHMETIC_H
#define ONEPASS_CUDA_ARITHMETIC_H

#include <stdint.h>

#define WARP 32

static inline int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t most(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* The least power of two that is no less. */
static inline int64_t power_for(int64_t n) {
    int64_t power = 1;
    while (power < n)
        power *= 2;
    return power;
}

#endif
