/*
 * The harness itself: a right kernel gives the right sum under a hundred seeds, a
 * planted mistake of each kind is found. Those that end the program do so in a
 * child process, whose last words are read.
 */
#define _GNU_SOURCE
#include "check.h"
#include "fiber.h" /* whether the address sanitizer is here */
#include "planted.h"

#include <sys/wait.h>
#include <unistd.h>

enum {
    BLOCKS = 5,
    THREADS = 128,
    SEEDS = 100,
    MOST_NUMBERS = BLOCKS * PLANTED_ROUNDS * 2 * PLANTED_WARPS * 32
};

static _Alignas(16) float numbers[MOST_NUMBERS + 4];
static double partial[BLOCKS + 1];
static unsigned counter;
static double sum;

static void call(void *argument) {
    planted_sum(*(const planted_job *)argument);
}

/* The sum that one launch computes. */
static double run(mistake mistake, uint32_t threads, uint64_t seed) {
    planted_job job = {numbers, partial, &counter, &sum, (const void *)(uintptr_t)64, mistake};
    memset(partial, 0, sizeof partial);
    counter = 0;
    sum = -1;
    simt_run(&(simt_launch){.library = planted_library(),
                            .name = "planted_sum",
                            .body = call,
                            .argument = &job,
                            .blocks = BLOCKS,
                            .threads = threads,
                            .shared_memory = threads * (uint32_t)sizeof(double),
                            .seed = seed});
    return sum;
}

/* Whole numbers, so that every order of adding them is exact. */
static void fill(void) {
    for (int i = 0; i < MOST_NUMBERS; i++) {
        numbers[i] = (float)(i * 37 % 101 - 50);
    }
}

/* What a lane has after an exchange with its mirror image. */
static double exchanged(double own, double other, uint32_t lane) {
    return own + other * (lane % 3);
}

static double expected_sum(uint32_t threads) {
    double expected = 0;
    for (uint32_t i = 0; i < BLOCKS * PLANTED_ROUNDS * threads; i++) {
        const uint32_t lane = i % 32;
        const double own = numbers[i], other = numbers[i - lane + (31 - lane)];
        expected += exchanged(exchanged(own, other, lane), exchanged(other, own, 31 - lane), lane);
    }
    return expected;
}

static void test_right(void) {
    for (uint32_t threads = 32; threads <= 32 * PLANTED_WARPS; threads *= 2) {
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            const double got = run(MISTAKE_NONE, threads, seed);
            CHECK(got == expected_sum(threads), "seed %d, %u threads: expected %g, got %g", (int)seed, threads,
                  expected_sum(threads), got);
            CHECK(counter == 0, "seed %d: expected the counter at 0, got %u", (int)seed, counter);
        }
    }
}

/* Blocks are interleaved for half of the seeds, so mistakes between them show less often. */
static void test_wrong_results(void) {
    static const struct {
        mistake mistake;
        const char *what;
        int least; /* of the seeds that must show it */
    } rows[] = {
        {MISTAKE_NO_SYNCWARP, "no __syncwarp before reading", 95},
        {MISTAKE_NO_SECOND_SYNCWARP, "no __syncwarp before writing again", 70},
        {MISTAKE_NO_BARRIER, "no __syncthreads before reading", 70},
        {MISTAKE_NO_SECOND_BARRIER, "no __syncthreads before writing again", 50},
        {MISTAKE_UNWRITTEN, "shared memory never written", 100},
        {MISTAKE_LATE_PARTIAL_SUM, "partial sum written after the ticket", 10},
        {MISTAKE_LAST_BLOCK_BY_INDEX, "last block by index", 60},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int wrong = 0;
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            wrong += run(rows[i].mistake, THREADS, seed) != expected_sum(THREADS);
        }
        printf("%s: found with %d of %d seeds\n", rows[i].what, wrong, SEEDS);
        CHECK(wrong >= rows[i].least, "%s: expected wrong sums with at least %d of %d seeds, got %d", rows[i].what,
              rows[i].least, SEEDS, wrong);
    }
}

/* Runs it in a child; returns whether that ended by itself and well, and what it said on stderr. */
static int survives(mistake mistake, uint32_t threads, uint64_t seed, char *words, size_t size) {
    int ends[2];
    fflush(stdout);
    if (pipe(ends) != 0) {
        perror("pipe");
        exit(1);
    }
    const pid_t child = fork();
    if (child < 0) {
        perror("fork");
        exit(1);
    }
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        run(mistake, threads, seed);
        _exit(0);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t got; (got = read(ends[0], words + length, size - 1 - length)) > 0;) {
        length += (size_t)got;
    }
    words[length] = '\0';
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void check_reported(mistake mistake, uint32_t threads, const char *expected) {
    static char words[65536];
    for (uint64_t seed = 0; seed < 5; seed++) {
        const int survived = survives(mistake, threads, seed, words, sizeof words);
        CHECK(!survived && strstr(words, expected), "mistake %d, seed %d: expected a failure with \"%s\", got %s: %s",
              (int)mistake, (int)seed, expected, survived ? "none" : "one", words);
    }
}

static void test_reports(void) {
    check_reported(MISTAKE_TWO_BARRIERS, THREADS, "threads of one block are at different barriers");
    check_reported(MISTAKE_BARRIER_AND_SHUFFLE, THREADS, "can go on");
    check_reported(MISTAKE_BARRIER_AND_SHUFFLE, THREADS, "threads 0 to 15: at __syncthreads, planted.cpp:");
    check_reported(MISTAKE_DIFFERENT_OPERATIONS, THREADS, "lanes of one warp are at different operations: __s");
    check_reported(MISTAKE_EARLY_RETURN, THREADS, "thread 37: returned");
    check_reported(MISTAKE_EARLY_RETURN, THREADS, "threads 38 to 63: at __syncwarp of lanes ffffffff");
    check_reported(MISTAKE_MASK_WITHOUT_SELF, THREADS, "leaves out the lane that calls");
    check_reported(MISTAKE_SOURCE_OUTSIDE_MASK, THREADS, "which takes no part (mask 0000ffff)");
    check_reported(MISTAKE_MISALIGNED_LOAD, THREADS, "is not a multiple of 16");
    check_reported(MISTAKE_MISALIGNED_STORE, THREADS, "is not a multiple of 8");
    check_reported(MISTAKE_BEYOND_DYNAMIC, THREADS, "wrote beyond its 1024 bytes of dynamic shared memory");
    check_reported(MISTAKE_NONE, 0, "0 threads a block; expected 1 to 1024");
    check_reported(MISTAKE_NONE, SIMT_MOST_THREADS + 32, "1056 threads a block; expected 1 to 1024");
#if defined(SIMT_SANITIZED)
    check_reported(MISTAKE_MISALIGNED_VECTOR, THREADS, "misaligned address");
    check_reported(MISTAKE_TOO_MANY_THREADS, 2 * PLANTED_WARPS * 32, "out of bounds");
#else
    printf("left out: plain misaligned accesses and array bounds, which this compiler's sanitizer does not check\n");
#endif
}

/* The address sanitizer has its own words for these. */
static void test_signals(void) {
#if defined(FIBER_ADDRESS_SANITIZER)
    check_reported(MISTAKE_WILD_ADDRESS, THREADS, "AddressSanitizer");
#else
    check_reported(MISTAKE_WILD_ADDRESS, THREADS, "access out of bounds at address 0x40");
    check_reported(MISTAKE_DEEP_STACK, THREADS, "used up its stack of 65536 bytes");
    check_reported(MISTAKE_DEEP_STACK, THREADS, "of block ");
#endif
}

int main(void) {
    fill();
    test_right();
    test_wrong_results();
    test_reports();
    test_signals();
    return check_finish();
}
