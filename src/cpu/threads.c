/* Threads: see threads.h. */
#include "cpu/threads.h"

#include <pthread.h>
#include <stdatomic.h>
#if defined(_OPENMP)
#include <omp.h>
#endif

/* ------------------------------------------------------------- after fork -- */

/* libgomp's pool does not survive a fork: a child that uses it hangs. */
static atomic_bool after_fork;

static void remember_fork(void) {
    atomic_store_explicit(&after_fork, true, memory_order_relaxed);
}

__attribute__((constructor)) static void watch_for_forks(void) {
    pthread_atfork(NULL, NULL, remember_fork);
}

/* ------------------------------------------------------------------ cores -- */

int32_t onepass_cpu_cores;

static int cores(void) {
#if defined(_OPENMP)
    if (!atomic_load_explicit(&after_fork, memory_order_relaxed))
        return onepass_cpu_cores ? onepass_cpu_cores : omp_get_num_procs();
#endif
    return 1;
}

int onepass_cpu_default_threads(void) {
#if defined(_OPENMP)
    const int most = cores(), wish = omp_in_parallel() ? 1 : omp_get_max_threads();
    return wish < most ? wish : most;
#else
    return 1;
#endif
}

/* --------------------------------------------------------------- attempts -- */

/* Each thread creates the next and waits for it, so that all are there at once. */
static void *create_next(void *missing) {
    int *left = missing;
    pthread_t next;
    if (*left == 0)
        return NULL;
    --*left;
    if (pthread_create(&next, NULL, create_next, left) == 0)
        pthread_join(next, NULL);
    else
        ++*left;
    return NULL;
}

/* Of so many threads beside the caller's. */
static int can_be_created(int wanted) {
    int missing = wanted;
    create_next(&missing);
    return wanted - missing;
}

/* A limit on memory or on processes shows in the attempt alone, which is made when a team is to be larger than the
 * thread's last one. It is for one thread more than the team needs: one that has just ended may still be counted. */
int onepass_cpu_possible_threads(int64_t wanted) {
    static _Thread_local int team = 1;
    const int most = cores();
    int threads = wanted < most ? (int)wanted : most;
    if (threads > team) {
        const int created = can_be_created(threads);
        threads = created < 1 ? 1 : created;
    }
    team = threads;
    return threads;
}
