/*
 * Blocks of a cluster, which newer GPUs have: they tell each other a few numbers without waiting. Compiled for a GPU
 * that has none this is nothing, and no plan asks for it; in the tests it is plain C of the same meaning.
 */
#ifndef ONEPASS_CUDA_CLUSTER_H
#define ONEPASS_CUDA_CLUSTER_H

#include "cuda/async.h"

/*
 * A place in shared memory where threads wait. Between two waits so many arrive there as it was begun for, one of which
 * may say how many bytes are to come from blocks of the cluster, and all these come; they may do so before it arrives.
 */
typedef uint64_t cluster_barrier;

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

ALWAYS_INLINE void begin_barrier(cluster_barrier *barrier, int threads) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(
                     SHARED_ADDRESS(barrier)),
                 "r"(threads)
                 : "memory");
}

ALWAYS_INLINE void arrive(cluster_barrier *barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(SHARED_ADDRESS(barrier)) : "memory");
}

ALWAYS_INLINE void arrive_before(cluster_barrier *barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SHARED_ADDRESS(barrier)), "r"(bytes)
                 : "memory");
}

/* `waited` is how often there was a wait before. */
ALWAYS_INLINE void wait_at_barrier(cluster_barrier *barrier, unsigned waited) {
    asm volatile("{\n\t.reg .pred there;\n"
                 "again:\n\tmbarrier.try_wait.parity.shared::cta.b64 there, [%0], %1;\n\t"
                 "@!there bra again;\n\t}" ::"r"(SHARED_ADDRESS(barrier)),
                 "r"(waited & 1)
                 : "memory");
}

/* By all threads, once: before any block sends, and after all have begun their barriers. */
ALWAYS_INLINE void meet_cluster(void) {
    asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* Puts 16 bytes where `to` is in the `rank`-th block, which counts them at its own barrier. Unlike at a barrier of the
 * cluster nobody waits for what this thread has stored before. */
ALWAYS_INLINE void send_to_block(int rank, void *to, ulonglong2 number, cluster_barrier *barrier) {
    asm volatile(
        "{\n\t.reg .b32 there, counter;\n\t"
        "mapa.shared::cluster.u32 there, %0, %2;\n\tmapa.shared::cluster.u32 counter, %1, %2;\n\t"
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [there], {%3, %4}, [counter];\n\t}" ::"r"(
            SHARED_ADDRESS(to)),
        "r"(SHARED_ADDRESS(barrier)), "r"(rank), "l"(number.x), "l"(number.y)
        : "memory");
}

#elif defined(SIMT_HARNESS)

/* Bytes that are to come, who has arrived, of how many, and how often all was there. */
typedef struct simulated_barrier {
    int16_t bytes;
    uint8_t arrived, threads;
    uint32_t phase;
} simulated_barrier;

ALWAYS_INLINE void settle_barrier(cluster_barrier *barrier, int bytes, int arrived) {
    simulated_barrier own;
    memcpy(&own, barrier, sizeof own);
    own.bytes = (int16_t)(own.bytes + bytes);
    own.arrived = (uint8_t)(own.arrived + arrived);
    if (own.bytes == 0 && own.arrived == own.threads) {
        own.arrived = 0;
        own.phase++;
    }
    memcpy(barrier, &own, sizeof own);
}

ALWAYS_INLINE void begin_barrier(cluster_barrier *barrier, int threads) {
    const simulated_barrier own = {0, 0, (uint8_t)threads, 0};
    memcpy(barrier, &own, sizeof own);
}

ALWAYS_INLINE void arrive(cluster_barrier *barrier) {
    settle_barrier(barrier, 0, 1);
}

ALWAYS_INLINE void arrive_before(cluster_barrier *barrier, int bytes) {
    settle_barrier(barrier, bytes, 1);
}

ALWAYS_INLINE void wait_at_barrier(cluster_barrier *barrier, unsigned waited) {
    simulated_barrier own;
    do
        memcpy(&own, barrier, sizeof own);
    while (!simt_found((own.phase & 1) != (waited & 1)));
}

ALWAYS_INLINE void meet_cluster(void) {
    simt_meet_cluster();
}

ALWAYS_INLINE void send_to_block(int rank, void *to, ulonglong2 number, cluster_barrier *barrier) {
    simt_yield();
    memcpy(simt_in_block(rank, to), &number, sizeof number);
    settle_barrier((cluster_barrier *)simt_in_block(rank, barrier), -(int)sizeof number, 0);
}

#else

ALWAYS_INLINE void begin_barrier(cluster_barrier *barrier, int threads) {
    (void)barrier, (void)threads;
}
ALWAYS_INLINE void arrive(cluster_barrier *barrier) {
    (void)barrier;
}
ALWAYS_INLINE void arrive_before(cluster_barrier *barrier, int bytes) {
    (void)barrier, (void)bytes;
}
ALWAYS_INLINE void wait_at_barrier(cluster_barrier *barrier, unsigned waited) {
    (void)barrier, (void)waited;
}
ALWAYS_INLINE void meet_cluster(void) {}
ALWAYS_INLINE void send_to_block(int rank, void *to, ulonglong2 number, cluster_barrier *barrier) {
    (void)rank, (void)to, (void)number, (void)barrier;
}

#endif

#endif
