/*
 * How much stack a call takes: no more than ONEPASS_STACK_SIZE, whatever it computes, so that it can be made from a
 * thread with a small one. The calls of the list are made on a stack that was painted before, which shows how deep
 * they went; then the deepest ones on a stack of just that size, with an unreadable page behind it.
 */
#define _GNU_SOURCE
#include "cases.h"
#include "check.h"
#include "row_case.h"
#include "vector_case.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    PAINTED = 1 << 18, /* bytes: more than any call may take */
    PAINT = 0x5c
};

/* ------------------------------------------------------------ the stack -- */

static unsigned char *map_stack(size_t size) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *memory =
        mmap(NULL, page + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, page, PROT_NONE) != 0) {
        perror("mmap");
        exit(1);
    }
    return memory + page;
}

static void *make_call(void *call) {
    return (void *)(uintptr_t)onepass_run(call);
}

static void *do_nothing(void *unused) {
    return unused;
}

/* Runs a function in a thread with this stack. */
static void *run_on_stack(unsigned char *stack, size_t size, void *(*function)(void *), void *argument) {
    pthread_t thread;
    pthread_attr_t attributes;
    void *result = NULL;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstack(&attributes, stack, size) != 0 ||
        pthread_create(&thread, &attributes, function, argument) != 0) {
        printf("no thread with a stack of %zu bytes\n", size);
        exit(1);
    }
    pthread_join(thread, &result);
    pthread_attr_destroy(&attributes);
    return result;
}

/* The bytes that were written to since the stack was painted; it grows downward. */
static size_t depth_of(const unsigned char *stack) {
    size_t untouched = 0;
    while (untouched < PAINTED && stack[untouched] == PAINT) {
        untouched++;
    }
    return PAINTED - untouched;
}

static size_t measure(unsigned char *stack, void *(*function)(void *), void *argument) {
    memset(stack, PAINT, PAINTED);
    CHECK_OK((onepass_status)(uintptr_t)run_on_stack(stack, PAINTED, function, argument), "on a painted stack");
    return depth_of(stack);
}

/* ------------------------------------------------------------ the cases -- */

/* What takes other ways, and other buffers, through the engine. */
enum {
    IN_DOUBLE = 1,
    GATHERED = 2,  /* operands of 16 bits */
    SCATTERED = 4, /* gradients of 16 bits */
    IN_PLACE = 8,  /* gradients over their operands */
    EACH_VALUE = 16,
    WEIGHTED = 32,
    MASKED = 64,
    THREADS = 128,
    KINDS = 256
};

static test_case case_of(const char *loss, int kind) {
    const int32_t dtype = kind & IN_DOUBLE ? ONEPASS_F64 : ONEPASS_F32;
    const int32_t target = kind & GATHERED && !(kind & IN_PLACE) ? ONEPASS_F16 : dtype;
    return (test_case){.group = "stack",
                       .loss = loss,
                       .prediction = dtype,
                       .target = target,
                       .gradient = kind & SCATTERED && !(kind & IN_PLACE) ? ONEPASS_BF16 : dtype,
                       .value = dtype,
                       .upstream_dtype = ONEPASS_F16,
                       .reduction = kind & EACH_VALUE ? ONEPASS_NONE : ONEPASS_MEAN,
                       .wanted = WANT_ALL,
                       .upstream = kind & EACH_VALUE ? UPSTREAM_TENSOR : UPSTREAM_OTHER,
                       .layout = case_layout_named(kind & IN_PLACE ? "in place, both" : "padded rows"),
                       .rows = 3,
                       .columns = kind & THREADS ? 20000 : 2500,
                       .weight = kind & WEIGHTED ? WEIGHT_DENSE : WEIGHT_ABSENT,
                       .weight_dtype = ONEPASS_F16,
                       .mask = kind & MASKED ? WEIGHT_DENSE : WEIGHT_ABSENT,
                       .threads = kind & THREADS ? 64 : 1,
                       .seed = 5};
}

/* The same as one slice of an accumulator, which keeps the value, and the gradients of a weighted mean, for itself. */
static void *make_slice(void *argument) {
    onepass_call call = *(const onepass_call *)argument;
    const int64_t *shape = call.operand[0]->shape;
    const int64_t count = call.operand[0]->ndim == 1 ? shape[0] : shape[0] * shape[1];
    onepass_accumulator *accumulator = NULL;
    call.value = NULL;
    for (int k = 0; k < ONEPASS_MAX_OPERANDS && (call.weight || call.mask); k++) {
        call.gradient[k] = NULL;
    }
    onepass_status status = onepass_accumulator_begin(&accumulator, &call, count);
    if (status == ONEPASS_OK) {
        status = onepass_accumulator_add(accumulator, &call, 0);
    }
    onepass_accumulator_destroy(accumulator);
    return (void *)(uintptr_t)status;
}

/* What a thread takes that does nothing is not the library's: descriptor and thread-local variables lie there too. */
static size_t depth_of_nothing;

static void test_call_on_stack(onepass_call *call, const char *text, void *(*function)(void *), unsigned char *painted,
                               unsigned char *exact, size_t *deepest) {
    const size_t depth = measure(painted, function, call) - depth_of_nothing;
    const int fits = CHECK(depth <= ONEPASS_STACK_SIZE, "expected at most %d bytes of stack, got %zu: %s",
                           ONEPASS_STACK_SIZE, depth, text);
    if (fits && depth > *deepest) {
        const size_t page = (size_t)sysconf(_SC_PAGESIZE);
        const size_t enough = (ONEPASS_STACK_SIZE + depth_of_nothing + page - 1) / page * page;
        const long least = sysconf(_SC_THREAD_STACK_MIN); /* 128 KiB in glibc for Arm: no thread has less */
        const size_t size = least > 0 && enough < (size_t)least ? (size_t)least : enough;
        CHECK_OK((onepass_status)(uintptr_t)run_on_stack(exact, size, function, call), text);
    }
    *deepest = depth > *deepest ? depth : *deepest;
}

static void test_case_on_stack(const test_case *c, int as_slice, unsigned char *painted, unsigned char *exact,
                               size_t *deepest) {
    prepared_case *prepared = case_prepare(c);
    char text[512];
    case_describe(c, text, sizeof text);
    test_call_on_stack(&prepared->call, text, as_slice ? make_slice : make_call, painted, exact, deepest);
    case_free(prepared);
}

static void test_rows_on_stack(const row_case *c, unsigned char *painted, unsigned char *exact, size_t *deepest) {
    prepared_rows *prepared = row_case_prepare(c);
    char text[512];
    row_case_describe(c, text, sizeof text);
    prepared->call.threads = 64;
    test_call_on_stack(&prepared->call, text, make_call, painted, exact, deepest);
    row_case_free(prepared);
}

/* Rows that are taken side by side, one after the other or by tiles, by one thread, with all that a mean can have. */
static void test_row_ways_on_stack(unsigned char *painted, unsigned char *exact, size_t *deepest) {
    static const int64_t classes[] = {2, 10, 100, 134, 200, 256, 300, 1000, 1024, 4096};
    for (size_t i = 0; i < 2 * sizeof classes / sizeof *classes; i++) {
        const int32_t dtype = i % 2 ? ONEPASS_F64 : ONEPASS_F32;
        const row_case c = {.group = "stack",
                            .loss = "cross_entropy",
                            .input = dtype,
                            .target = ONEPASS_I64,
                            .class_weight = dtype,
                            .weight = dtype,
                            .upstream = dtype,
                            .value = dtype,
                            .gradient = dtype,
                            .mask = true,
                            .reduction = ONEPASS_MEAN,
                            .ignored = true,
                            .parameter_count = 2,
                            .parameter = {-100, 0.1},
                            .batch = 40,
                            .classes = classes[i / 2],
                            .seed = i};
        prepared_rows *prepared = row_case_prepare(&c);
        char text[512];
        row_case_describe(&c, text, sizeof text);
        prepared->call.threads = 1;
        test_call_on_stack(&prepared->call, text, make_call, painted, exact, deepest);
        row_case_free(prepared);
    }
}

static void test_vectors_on_stack(const vector_case *c, unsigned char *painted, unsigned char *exact, size_t *deepest) {
    prepared_vectors *prepared = vector_case_prepare(c);
    char text[512];
    vector_case_describe(c, text, sizeof text);
    prepared->call.threads = 64;
    test_call_on_stack(&prepared->call, text, make_call, painted, exact, deepest);
    vector_case_free(prepared);
}

int main(void) {
    if (CHECK_SANITIZED) {
        return check_skip("sanitizers make frames larger");
    }
    const size_t step = check_quick("fifteen of sixteen cases of rows and of vectors") ? 16 : 1;
    unsigned char *painted = map_stack(PAINTED), *exact = map_stack(PAINTED);
    size_t deepest = 0;
    depth_of_nothing = measure(painted, do_nothing, NULL);
    for (int kind = 0; kind < KINDS; kind++) {
        const test_case c = case_of("gaussian_nll", kind);
        test_case_on_stack(&c, 0, painted, exact, &deepest);
        if (!(kind & EACH_VALUE)) {
            test_case_on_stack(&c, 1, painted, exact, &deepest);
        }
    }
    for (int32_t i = 0; onepass_loss_at(i); i++) {
        for (int kind = 0; kind <= IN_DOUBLE; kind++) {
            const test_case c = case_of(onepass_loss_at(i)->name, kind | THREADS);
            test_case_on_stack(&c, 0, painted, exact, &deepest);
        }
    }
    size_t count;
    const row_case *cases = row_case_list(&count);
    for (size_t i = 0; i < count; i++) {
        if (check_takes(i, step)) {
            test_rows_on_stack(&cases[i], painted, exact, &deepest);
        }
    }
    test_row_ways_on_stack(painted, exact, &deepest);
    const vector_case *vectors = vector_case_list(&count);
    for (size_t i = 0; i < count; i++) {
        if (check_takes(i, step)) {
            test_vectors_on_stack(&vectors[i], painted, exact, &deepest);
        }
    }
    printf("the deepest call took %zu bytes of stack\n", deepest);
    return check_finish();
}
