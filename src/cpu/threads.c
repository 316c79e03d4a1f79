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

typedef struct attempt {
    pthread_attr_t attributes;
    int missing; /* threads */
} attempt;

/* Each thread creates the next and waits for it, so that all are there at once. */
static void *create_next(void *argument) {
    attempt *attempt = argument;
    pthread_t next;
    if (attempt->missing == 0)
        return NULL;
    attempt->missing--;
    if (pthread_create(&next, &attempt->attributes, create_next, attempt) == 0)
        pthread_join(next, NULL);
    else
        attempt->missing++;
    return NULL;
}

/* Stacks are a little larger than usual: libomp's are, and glibc keeps these for threads to come that need no more. */
#define MORE_STACK ((size_t)1 << 20)

/* Of so many threads beside the caller's. */
static int can_be_created(int wanted) {
    attempt attempt = {.missing = wanted};
    size_t stack = 0;
    if (pthread_attr_init(&attempt.attributes) != 0)
        return 0;
    if (pthread_attr_getstacksize(&attempt.attributes, &stack) == 0)
        pthread_attr_setstacksize(&attempt.attributes, stack + MORE_STACK);
    create_next(&attempt);
    pthread_attr_destroy(&attempt.attributes);
    return wanted - attempt.missing;
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
