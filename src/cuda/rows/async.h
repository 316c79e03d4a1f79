/*
 * Copies into shared memory that nobody waits for until they are asked for: newer GPUs have an instruction for it.
 */
#ifndef ONEPASS_CUDA_ROWS_ASYNC_H
#define ONEPASS_CUDA_ROWS_ASYNC_H

#include "cuda/pairwise/tile.h"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define SEND(bytes, cache, to, from)                                                                                   \
    asm volatile("cp.async." cache ".shared.global [%0], [%1], " bytes                                                 \
                 ";" ::"r"((unsigned)__cvta_generic_to_shared(to)),                                                    \
                 "l"(from)                                                                                             \
                 : "memory")
ALWAYS_INLINE void send_vector(real *to, const real *from) {
    SEND("16", "cg", to, from);
}
ALWAYS_INLINE void send_half(uint16_t *to, const uint16_t *from) { /* four numbers of 16 bits */
    SEND("8", "ca", to, from);
}
ALWAYS_INLINE void send_one(real *to, const real *from) {
    SEND("4", "ca", to, from);
}
ALWAYS_INLINE void wait_for_sent(void) {
    asm volatile("cp.async.wait_all;" ::: "memory");
}
#else
ALWAYS_INLINE void send_vector(real *to, const real *from) {
    *(vector *)to = __ldcs((const vector *)from);
}
ALWAYS_INLINE void send_half(uint16_t *to, const uint16_t *from) {
    *(uint2 *)to = *(const uint2 *)from;
}
ALWAYS_INLINE void send_one(real *to, const real *from) {
    *to = *from;
}
ALWAYS_INLINE void wait_for_sent(void) {}
#endif

#endif
