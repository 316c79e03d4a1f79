/*
 * Copies into shared memory that nobody waits for until they are asked for: newer GPUs have an instruction for it.
 */
#ifndef ONEPASS_CUDA_ASYNC_H
#define ONEPASS_CUDA_ASYNC_H

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
/* So many numbers further on, at both ends, which costs no addition. */
#define SEND_BEYOND(bytes, cache, beyond, to, from)                                                                    \
    asm volatile("cp.async." cache ".shared.global [%0 + %2], [%1 + %2], " bytes                                       \
                 ";" ::"r"((unsigned)__cvta_generic_to_shared(to)),                                                    \
                 "l"(from), "n"(beyond)                                                                                \
                 : "memory")
template <int beyond> ALWAYS_INLINE void send_four_beyond(real *to, const real *from) {
    SEND_BEYOND("16", "cg", beyond * 4, to, from);
}
template <int beyond> ALWAYS_INLINE void send_four_beyond(uint16_t *to, const uint16_t *from) {
    SEND_BEYOND("8", "ca", beyond * 2, to, from);
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
template <int beyond> ALWAYS_INLINE void send_four_beyond(real *to, const real *from) {
    send_vector(to + beyond, from + beyond);
}
template <int beyond> ALWAYS_INLINE void send_four_beyond(uint16_t *to, const uint16_t *from) {
    send_half(to + beyond, from + beyond);
}
ALWAYS_INLINE void wait_for_sent(void) {}
#endif

/* ------------------------------------------------------------------ a warp's -- */

/* Bytes, a multiple of 16 at an aligned address, that a warp sends for together, and that any of its threads reads when
 * it has waited. Newer GPUs copy as many as they are told by one instruction of one thread, and count them at a barrier
 * of the warp's own; a thread that copies 16 at a time spends a dozen instructions on each. On others all threads copy
 * some. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define SHARED_ADDRESS(pointer) ((unsigned)__cvta_generic_to_shared(pointer))

ALWAYS_INLINE void prepare_to_wait(uint64_t *barrier, int thread) {
    if (thread == 0)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(
                         SHARED_ADDRESS(barrier))
                     : "memory");
    __syncwarp();
}

/* So many bytes will be sent for. Nobody reads any more what they come in the place of. */
ALWAYS_INLINE void expect_bytes(uint64_t *barrier, int thread, int bytes) {
    __syncwarp();
    if (thread == 0)
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SHARED_ADDRESS(barrier)), "r"(bytes)
                     : "memory");
}

ALWAYS_INLINE void send_bytes(uint64_t *barrier, int thread, void *to, const void *from, int bytes) {
    if (thread == 0)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         SHARED_ADDRESS(to)),
                     "l"(from), "r"(bytes), "r"(SHARED_ADDRESS(barrier))
                     : "memory");
}

/* `waited` is how often there was a wait before. */
ALWAYS_INLINE void wait_for_bytes(uint64_t *barrier, unsigned waited) {
    asm volatile("{\n\t.reg .pred there;\n"
                 "again:\n\tmbarrier.try_wait.parity.shared::cta.b64 there, [%0], %1;\n\t@!there bra again;\n\t}" ::"r"(
                     SHARED_ADDRESS(barrier)),
                 "r"(waited & 1)
                 : "memory");
}
#else
ALWAYS_INLINE void prepare_to_wait(uint64_t *barrier, int thread) {
    (void)barrier, (void)thread;
}

ALWAYS_INLINE void expect_bytes(uint64_t *barrier, int thread, int bytes) {
    (void)barrier, (void)thread, (void)bytes;
    __syncwarp();
}

ALWAYS_INLINE void send_bytes(uint64_t *barrier, int thread, void *to, const void *from, int bytes) {
    (void)barrier;
#pragma unroll 1
    for (int i = thread * 16; i < bytes; i += 16 * ORDER_WARP)
        send_vector((real *)((char *)to + i), (const real *)((const char *)from + i));
}

ALWAYS_INLINE void wait_for_bytes(uint64_t *barrier, unsigned waited) {
    (void)barrier, (void)waited;
    wait_for_sent();
    __syncwarp();
}
#endif

#endif
