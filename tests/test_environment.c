/*
 * The caller's floating-point state changes nothing: rounding mode, flushing of
 * denormals, traps and exception flags are what they were after a call, and the
 * result has the same bits. The same from threads of the caller's and in a child
 * after fork().
 *
 * Everything expected is computed before any state is changed, by the oracle.
 */
#define _GNU_SOURCE
#include "cases.h"
#include "check.h"
#include "cpu/threads.h"
#include "oracle.h"

#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif
#if defined(_OPENMP)
#include <omp.h>
#endif

/* ------------------------------------------------------------ the state -- */

/* Control bits and exception flags, as the machine holds them. */
typedef struct machine_state {
    uint64_t control;
    uint64_t flags;
} machine_state;

static machine_state get_state(void) {
    machine_state state = {0, 0};
#if defined(__x86_64__)
    state.control = _mm_getcsr() & ~0x3fu;
    state.flags = _mm_getcsr() & 0x3fu;
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, fpcr" : "=r"(state.control));
    __asm__ volatile("mrs %0, fpsr" : "=r"(state.flags));
#else
    state.control = (uint64_t)fegetround();
    state.flags = (uint64_t)fetestexcept(FE_ALL_EXCEPT);
#endif
    return state;
}

/* Results and operands that are denormal become 0; on Arm NaN also loses its payload. */
static void flush_denormals(void) {
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040u);
#elif defined(__aarch64__)
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    control |= UINT64_C(1) << 24 | UINT64_C(1) << 25 | UINT64_C(1) << 19;
    __asm__ volatile("msr fpcr, %0" : : "r"(control));
#endif
}

static void set_nothing(void) {}
static void round_up(void) {
    fesetround(FE_UPWARD);
}
static void round_down(void) {
    fesetround(FE_DOWNWARD);
}
static void round_to_zero(void) {
    fesetround(FE_TOWARDZERO);
}
static void round_up_and_flush(void) {
    fesetround(FE_UPWARD);
    flush_denormals();
}

static const struct {
    const char *name;
    void (*set)(void);
} states[] = {
    {"as it was", set_nothing},     {"upward", round_up},          {"downward", round_down},
    {"toward zero", round_to_zero}, {"flushing", flush_denormals}, {"upward and flushing", round_up_and_flush},
};

enum {
    STATES = sizeof states / sizeof states[0]
};

/* ---------------------------------------------------------------- cases -- */

enum {
    CASES = 10
};

typedef struct expectation {
    test_case c;
    prepared_case *expected;
    prepared_case *got;
} expectation;

static expectation expect_case(const test_case *c) {
    const expectation e = {.c = *c, .expected = case_prepare(c), .got = case_prepare(c)};
    oracle_run(&e.expected->call);
    return e;
}

static test_case case_of(const char *loss, int32_t dtype, int32_t data, int32_t reduction, int64_t count) {
    test_case c = case_dense("environment", loss, dtype, count);
    c.reduction = reduction;
    c.wanted = WANT_ALL;
    c.data = data;
    c.upstream = UPSTREAM_OTHER;
    c.seed = 8;
    return c;
}

static expectation expect(const char *loss, int32_t dtype, int32_t data, int32_t reduction, int64_t count) {
    const test_case c = case_of(loss, dtype, data, reduction, count);
    return expect_case(&c);
}

static void forget(expectation *e) {
    case_free(e->expected);
    case_free(e->got);
}

/* Denormals in operands, terms and gradients; overflow, NaN; sums in which every
 * rounding matters; one large enough that worker threads take part. */
static void make_cases(expectation *all) {
    all[0] = expect("mse", ONEPASS_F32, DATA_TINY, ONEPASS_NONE, 3000);
    all[1] = expect("mse", ONEPASS_F32, DATA_TINY, ONEPASS_SUM, 3000);
    all[2] = expect("smooth_l1", ONEPASS_F16, DATA_TINY, ONEPASS_MEAN, 3000);
    all[3] = expect("hinge", ONEPASS_BF16, DATA_TINY, ONEPASS_NONE, 3000);
    all[4] = expect("mse", ONEPASS_F64, DATA_TINY, ONEPASS_MEAN, 3000);
    all[5] = expect("smooth_l1", ONEPASS_F32, DATA_SPECIAL, ONEPASS_NONE, 3000);
    all[6] = expect("hinge", ONEPASS_F32, DATA_HUGE, ONEPASS_NONE, 3000);
    all[7] = expect("mse", ONEPASS_F64, DATA_NORMAL, ONEPASS_MEAN, 3000);
    test_case c = case_of("smooth_l1", ONEPASS_F64, DATA_TINY, ONEPASS_MEAN, 3000);
    c.divisor = 0x1p-1023; /* flushed to zero it would look like one that was not given */
    all[8] = expect_case(&c);
    all[9] = expect("mse", ONEPASS_F32, DATA_TINY, ONEPASS_MEAN, 600000);
}

/* The outputs are poisoned again, so that a call that writes nothing cannot pass. */
static void poison_outputs(prepared_case *prepared) {
    for (int which = TENSOR_VALUE; which <= TENSOR_GRADIENT_TARGET; which++) {
        memset(prepared->block + prepared->begin[which], 0xa5, prepared->bytes[which]);
    }
}

static int same_block(const expectation *e) {
    return memcmp(e->expected->block, e->got->block, e->got->block_size) == 0;
}

/* Runs one case in a state; puts the default state back before it judges. */
static void run_in_state(expectation *e, const char *name, void (*set)(void)) {
    fenv_t standard;
    char text[512];
    poison_outputs(e->got);
    case_describe(&e->c, text, sizeof text);
    fegetenv(&standard);
    set();
    feclearexcept(FE_ALL_EXCEPT);
    const machine_state clear = get_state();
    const onepass_status status = onepass_run(&e->got->call);
    const machine_state after_clear = get_state();
    feraiseexcept(FE_OVERFLOW | FE_INVALID);
    const machine_state raised = get_state();
    const onepass_status again = onepass_run(&e->got->call);
    const machine_state after_raised = get_state();
    fesetenv(&standard);

    CHECK_OK(status, text);
    CHECK_OK(again, text);
    CHECK_BITS(clear.control, after_clear.control, "control bits after a call");
    CHECK_BITS(clear.flags, after_clear.flags, "exception flags after a call that began with none");
    CHECK_BITS(raised.control, after_raised.control, "control bits after a second call");
    CHECK_BITS(raised.flags, after_raised.flags, "exception flags after a call that began with two");
    CHECK(same_block(e), "rounding and flushing \"%s\": expected the same bits: %s", name, text);
}

static void test_states(expectation *all) {
    for (int i = 0; i < STATES; i++) {
        for (int j = 0; j < CASES; j++) {
            run_in_state(&all[j], states[i].name, states[i].set);
        }
    }
}

/* Without a state that shows, the tests above could not fail: a quotient and a
 * product done here must come out differently. Volatile results keep the
 * compiler from moving them across the change of state. */
static void test_states_show(void) {
    fenv_t standard;
    volatile double one = 1;
    volatile double three = 3;
    volatile float least = 0x1p-149f;
    fegetenv(&standard);
    volatile double nearest = one / three;
    volatile float kept = least * (float)one;
    round_up_and_flush();
    volatile double upward = one / three;
    volatile float flushed = least * (float)one;
    fesetenv(&standard);
    CHECK(upward != nearest, "expected 1/3 to differ when rounded upward");
    CHECK(kept != 0, "expected a denormal to stay in the default state");
#if defined(__x86_64__) || defined(__aarch64__)
    CHECK(flushed == 0, "expected a denormal to be flushed");
#else
    printf("flushing of denormals: not known how on this machine (a denormal is %g)\n", (double)flushed);
#endif
}

/* --------------------------------------------------------- accumulators -- */

/* The elements of a dense tensor from `first` on. */
static onepass_tensor slice_of(const onepass_tensor *whole, int64_t first, const int64_t *count) {
    char *data = (char *)whole->data + (size_t)first * oracle_size(whole->dtype);
    return (onepass_tensor){data, whole->dtype, 1, count, NULL};
}

static onepass_status add_slice(onepass_accumulator *accumulator, const onepass_call *whole, int64_t first,
                                int64_t count) {
    onepass_tensor tensor[5];
    onepass_call call = *whole;
    const onepass_tensor **const dense[5] = {&call.operand[0], &call.operand[1], &call.weight, &call.gradient[0],
                                             &call.gradient[1]};
    for (int i = 0; i < 5; i++) {
        if (*dense[i]) {
            tensor[i] = slice_of(*dense[i], first, &count);
            *dense[i] = &tensor[i];
        }
    }
    call.value = NULL;
    return onepass_accumulator_add(accumulator, &call, first);
}

/* Every so-manieth slice of two tiles, the last first: nodes wait for each other, and most are added up at the end. */
static onepass_status add_slices(onepass_accumulator *accumulator, const onepass_call *whole, int64_t total, int first,
                                 int step) {
    const int64_t length = 2 * ONEPASS_TILE;
    onepass_status status = ONEPASS_OK;
    for (int64_t i = (total - 1) / length; i >= 0 && status == ONEPASS_OK; i--) {
        if (i % step == first) {
            const int64_t left = total - i * length;
            status = add_slice(accumulator, whole, i * length, left < length ? left : length);
        }
    }
    return status;
}

/* In two accumulators, of which one is merged into the other. What comes out is in the call's own tensors. */
static onepass_status accumulate(const onepass_call *call, int64_t total) {
    onepass_accumulator *even = NULL;
    onepass_accumulator *odd = NULL;
    onepass_status status = onepass_accumulator_begin(&even, call, total);
    if (status == ONEPASS_OK) {
        status = onepass_accumulator_begin(&odd, call, total);
    }
    if (status == ONEPASS_OK) {
        status = add_slices(even, call, total, 0, 2);
    }
    if (status == ONEPASS_OK) {
        status = add_slices(odd, call, total, 1, 2);
    }
    if (status == ONEPASS_OK) {
        status = onepass_accumulator_merge(even, odd);
    }
    if (status == ONEPASS_OK) {
        status = onepass_accumulator_finish(even, call->value);
    }
    onepass_accumulator_destroy(even);
    onepass_accumulator_destroy(odd);
    return status;
}

/* All in one accumulator: siblings meet while slices are added. */
static onepass_status accumulate_alone(const onepass_call *call, int64_t total) {
    onepass_accumulator *accumulator = NULL;
    onepass_status status = onepass_accumulator_begin(&accumulator, call, total);
    if (status == ONEPASS_OK) {
        status = add_slices(accumulator, call, total, 0, 1);
    }
    if (status == ONEPASS_OK) {
        status = onepass_accumulator_finish(accumulator, call->value);
    }
    onepass_accumulator_destroy(accumulator);
    return status;
}

static void accumulate_in_states(expectation *e, onepass_status (*run)(const onepass_call *call, int64_t total)) {
    char text[512];
    case_describe(&e->c, text, sizeof text);
    for (int i = 0; i < STATES; i++) {
        fenv_t standard;
        poison_outputs(e->got);
        fegetenv(&standard);
        states[i].set();
        feclearexcept(FE_ALL_EXCEPT);
        const machine_state before = get_state();
        const onepass_status status = run(&e->got->call, e->c.columns);
        const machine_state after = get_state();
        fesetenv(&standard);
        CHECK_OK(status, text);
        CHECK_BITS(before.control, after.control, "control bits after an accumulator");
        CHECK_BITS(before.flags, after.flags, "exception flags after an accumulator");
        CHECK(same_block(e), "rounding and flushing \"%s\": expected the same bits %s: %s", states[i].name,
              run == accumulate ? "of two accumulators" : "of an accumulator", text);
    }
}

/* With traps enabled an addition that is not exact would end the program. */
static void accumulate_with_traps(expectation *e) {
#if defined(__GLIBC__)
    poison_outputs(e->got);
    feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(FE_ALL_EXCEPT);
    const onepass_status status = accumulate(&e->got->call, e->c.columns);
    fedisableexcept(FE_ALL_EXCEPT);
    CHECK_OK(status, "an accumulator with traps enabled");
    CHECK(same_block(e), "expected the same bits of an accumulator with traps enabled");
#else
    (void)e;
#endif
}

enum {
    ACCUMULATED = 5
};

/* Sums in which every rounding matters, of terms and of weights; denormals; and a divisor that is one. */
static void make_accumulated(expectation *all) {
    test_case c[ACCUMULATED] = {
        case_of("mse", ONEPASS_F64, DATA_NORMAL, ONEPASS_SUM, 41000),
        case_of("smooth_l1", ONEPASS_F16, DATA_TINY, ONEPASS_MEAN, 9001),
        case_of("hinge", ONEPASS_F64, DATA_UNIFORM, ONEPASS_MEAN, 41000),
        case_of("mse", ONEPASS_F32, DATA_WIDE, ONEPASS_MEAN, 41000),
        case_of("smooth_l1", ONEPASS_F64, DATA_TINY, ONEPASS_MEAN, 9001),
    };
    for (int i = 2; i < 4; i++) { /* over the sum of the weights, so that there are no gradients */
        c[i].weight = WEIGHT_DENSE;
        c[i].weight_dtype = c[i].prediction;
        c[i].weights = WEIGHTS_POSITIVE;
        c[i].value = ONEPASS_F64;
        c[i].wanted = WANT_VALUE;
    }
    c[4].divisor = 0x1p-1023;
    for (int i = 0; i < ACCUMULATED; i++) {
        all[i] = expect_case(&c[i]);
    }
}

/* A total that no double holds is rounded to the nearest one, and so the gradients of a mean are the same. */
static void test_large_total(void) {
    enum {
        COUNT = ONEPASS_TILE
    };
    test_case c = case_of("mse", ONEPASS_F64, DATA_NORMAL, ONEPASS_MEAN, COUNT);
    c.wanted = WANT_PREDICTION | WANT_TARGET;
    c.divisor = 0x1p53;
    expectation e = expect_case(&c);
    e.got->call.divisor = 0;
    for (int i = 0; i < STATES; i++) {
        fenv_t standard;
        onepass_accumulator *accumulator = NULL;
        poison_outputs(e.got);
        fegetenv(&standard);
        states[i].set();
        feclearexcept(FE_ALL_EXCEPT);
        const machine_state before = get_state();
        const onepass_status begun = onepass_accumulator_begin(&accumulator, &e.got->call, (INT64_C(1) << 53) + 1);
        const onepass_status added = add_slice(accumulator, &e.got->call, 0, COUNT);
        const machine_state after = get_state();
        fesetenv(&standard);
        CHECK_OK(begun, "begin with a large total");
        CHECK_OK(added, "add to a large total");
        CHECK_BITS(before.flags, after.flags, "exception flags after a large total");
        CHECK(same_block(&e), "\"%s\": expected the same gradients of a mean over 2^53 + 1 elements", states[i].name);
        onepass_accumulator_destroy(accumulator);
    }
    forget(&e);
}

static void test_accumulators(void) {
    expectation all[ACCUMULATED];
    make_accumulated(all);
    for (int i = 0; i < ACCUMULATED; i++) {
        accumulate_in_states(&all[i], accumulate_alone);
        accumulate_in_states(&all[i], accumulate);
        accumulate_with_traps(&all[i]);
        forget(&all[i]);
    }
    test_large_total();
}

/* ---------------------------------------------------------------- traps -- */

#if defined(__GLIBC__)
static void test_traps(expectation *all) {
    if (feenableexcept(FE_INVALID | FE_OVERFLOW | FE_DIVBYZERO | FE_UNDERFLOW | FE_INEXACT) == -1) {
        printf("traps: this machine has none\n");
        return;
    }
    fedisableexcept(FE_ALL_EXCEPT);
    for (int j = 0; j < CASES; j++) {
        poison_outputs(all[j].got);
        feclearexcept(FE_ALL_EXCEPT);
        feenableexcept(FE_INVALID | FE_OVERFLOW | FE_DIVBYZERO | FE_UNDERFLOW | FE_INEXACT);
        const int before = fegetexcept();
        const onepass_status status = onepass_run(&all[j].got->call); /* a trap would end the program here */
        const int after = fegetexcept();
        fedisableexcept(FE_ALL_EXCEPT);
        CHECK_OK(status, "with traps enabled");
        CHECK(before == after, "expected traps %x after the call, got %x", (unsigned)before, (unsigned)after);
        CHECK(same_block(&all[j]), "expected the same bits with traps enabled");
    }
}
#else
static void test_traps(expectation *all) {
    (void)all;
    printf("traps: this C library cannot enable them\n");
}
#endif

/* -------------------------------------------------------------- threads -- */

typedef struct thread_task {
    expectation e;
    void (*set)(void);
    int right;
} thread_task;

/* Counts in the task, since CHECK's counters belong to the main thread. */
static void *run_thread(void *argument) {
    thread_task *task = argument;
    task->set();
    task->right = 0;
    for (int round = 0; round < 3; round++) {
        poison_outputs(task->e.got);
        const machine_state before = get_state();
        const onepass_status status = onepass_run(&task->e.got->call);
        const machine_state after = get_state();
        task->right += status == ONEPASS_OK && before.control == after.control && before.flags == after.flags &&
                       same_block(&task->e);
    }
    return NULL;
}

/* Callers in different states at once, each with workers of its own. */
static void test_threads(void) {
    pthread_t thread[STATES];
    thread_task task[STATES];
    for (int i = 0; i < STATES; i++) {
        task[i].e = expect("mse", ONEPASS_F32, i % 2 ? DATA_TINY : DATA_WIDE, ONEPASS_MEAN, 200000);
        task[i].set = states[i].set;
    }
    for (int i = 0; i < STATES; i++) {
        if (!CHECK(pthread_create(&thread[i], NULL, run_thread, &task[i]) == 0, "expected a thread")) {
            exit(1);
        }
    }
    for (int i = 0; i < STATES; i++) {
        pthread_join(thread[i], NULL);
        CHECK(task[i].right == 3, "a caller's thread with state \"%s\": expected 3 right results, got %d",
              states[i].name, task[i].right);
        forget(&task[i].e);
    }
}

/* Threads that the tests ask for, on whatever machine. */
enum {
    WORKERS = 4
};

/* The library's workers may be those of the caller's own OpenMP, in any state. */
static void test_workers(expectation *large) {
#if defined(_OPENMP)
    int kept = 0;
    large->got->call.threads = WORKERS;
    poison_outputs(large->got);
#pragma omp parallel num_threads(WORKERS)
    if (omp_get_thread_num() != 0) {
        round_up_and_flush();
    }
    CHECK_OK(onepass_run(&large->got->call), "with workers in another state");
#pragma omp parallel num_threads(WORKERS) reduction(+ : kept)
    if (omp_get_thread_num() != 0) {
        kept += fegetround() == FE_UPWARD;
        fesetenv(FE_DFL_ENV);
    }
    large->got->call.threads = 0;
    CHECK(same_block(large), "expected the same bits from workers in another state");
    CHECK(kept == WORKERS - 1, "expected %d workers in the state they had, got %d", WORKERS - 1, kept);
#else
    (void)large;
    printf("workers of the caller's: this compiler has no OpenMP\n");
#endif
}

/* ----------------------------------------------------------------- fork -- */

/* Worker threads do not survive fork(); a child that waits for them hangs until its alarm. */
static void test_fork(expectation *large) {
    poison_outputs(large->got);
    large->got->call.threads = WORKERS;
    CHECK_OK(onepass_run(&large->got->call), "before fork");
    CHECK(same_block(large), "expected the right bits before fork");
    poison_outputs(large->got);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        alarm(120);
        const onepass_status status = onepass_run(&large->got->call);
        _exit(status == ONEPASS_OK && same_block(large) ? 0 : 1);
    }
    int status = -1;
    pid_t ended = -1;
    do {
        ended = waitpid(child, &status, 0);
    } while (ended < 0 && errno == EINTR);
    CHECK(child > 0 && ended == child, "expected a child to wait for");
    CHECK(!WIFSIGNALED(status), "expected the child to end by itself, got signal %d%s", WTERMSIG(status),
          WTERMSIG(status) == SIGALRM ? " (it hung)" : "");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "expected the same bits in the child, got exit %d",
          WEXITSTATUS(status));
    CHECK_OK(onepass_run(&large->got->call), "the parent after fork");
    CHECK(same_block(large), "expected the right bits in the parent after fork");
    large->got->call.threads = 0;
}

int main(void) {
    static expectation all[CASES];
    onepass_cpu_cores = WORKERS;
    make_cases(all);
    /* The first call that starts workers is made while flushing and rounding upward:
     * threads inherit the state of the thread that creates them. */
    run_in_state(&all[CASES - 1], "upward and flushing, at the first call", round_up_and_flush);
    test_states_show();
    test_states(all);
    test_accumulators();
    test_traps(all);
    test_threads();
    test_workers(&all[CASES - 1]);
    test_fork(&all[CASES - 1]);
    for (int i = 0; i < CASES; i++) {
        forget(&all[i]);
    }
    return check_finish();
}
