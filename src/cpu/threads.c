/* Threads: see threads.h. */
#include "cpu/threads.h"

#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
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

int onepass_cpu_wished_threads(void) {
#if defined(_OPENMP)
    return omp_in_parallel() ? 1 : omp_get_max_threads();
#else
    return 1;
#endif
}

int onepass_cpu_default_threads(void) {
    const int most = cores(), wish = onepass_cpu_wished_threads();
    return wish < most ? wish : most;
}

/* --------------------------------------------------------------- attempts -- */

/* The stack of OpenMP's threads where the environment says one: a number of KiB, or of what the letter behind it says.
 * The largest counts, since each runtime has an order of its own. */
static size_t stack_asked_for(void) {
    static const char *const names[] = {"OMP_STACKSIZE", "GOMP_STACKSIZE", "KMP_STACKSIZE"};
    static const char letters[] = "BKMGT";
    size_t largest = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = getenv(names[i]);
        char *end = NULL;
        const unsigned long long number = text ? strtoull(text, &end, 10) : 0;
        while (end && isspace((unsigned char)*end))
            end++;
        const char *letter = end && *end ? strchr(letters, toupper((unsigned char)*end)) : NULL;
        const int shift = letter ? 10 * (int)(letter - letters) : 10;
        const size_t stack = number > SIZE_MAX >> shift ? SIZE_MAX : (size_t)number << shift;
        largest = stack > largest ? stack : largest;
    }
    return largest;
}

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
    const size_t asked_for = stack_asked_for();
    size_t stack = 0;
    if (pthread_attr_init(&attempt.attributes) != 0)
        return 0;
    pthread_attr_getstacksize(&attempt.attributes, &stack);
    stack = asked_for > stack ? asked_for : stack;
    if (stack <= SIZE_MAX - MORE_STACK && pthread_attr_setstacksize(&attempt.attributes, stack + MORE_STACK) == 0)
        create_next(&attempt);
    pthread_attr_destroy(&attempt.attributes);
    return wanted - attempt.missing;
}

/* A team of so many, or of as many as there can be. It is there when this returns, and stays for the calling thread's
 * next parallel region; what the attempt found is not for the team of another thread to take. */
static int create_team(int threads) {
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&one_at_a_time);
    const int created = can_be_created(threads);
    threads = created < 1 ? 1 : created;
#if defined(_OPENMP)
    static atomic_int members; /* without which the region would be empty and left out */
#pragma omp parallel num_threads(threads)
    atomic_fetch_add_explicit(&members, 1, memory_order_relaxed);
#endif
    pthread_mutex_unlock(&one_at_a_time);
    return threads;
}

/* A limit on memory or on processes shows in the attempt alone, which is made when a team is to be larger than the
 * thread's last one: OpenMP's runtimes end the threads that a smaller one leaves over, unless it is the caller alone.
 * It is for one thread more than the team needs: one that has just ended may still be counted. Nor are the cores
 * counted for a team that is there: libgomp asks the kernel, which took half a microsecond of a call's eight. */
int onepass_cpu_possible_threads(int64_t wanted) {
    static _Thread_local int team = 1;
    const bool is_there = wanted <= team && !atomic_load_explicit(&after_fork, memory_order_relaxed);
    const int most = is_there ? team : cores();
    const int threads = wanted < most ? (int)wanted : most;
    if (threads > team)
        return team = create_team(threads);
    if (threads > 1)
        team = threads;
    return threads;
}
