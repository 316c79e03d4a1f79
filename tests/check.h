/*
 * The test harness: CHECK counts, prints where and what was expected, and goes
 * on; check_finish prints the totals and gives main its exit status. It is a
 * header of static functions so that a test is one program without a framework.
 */
#ifndef ONEPASS_TESTS_CHECK_H
#define ONEPASS_TESTS_CHECK_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onepass.h"

/* CTest's SKIP_RETURN_CODE. */
enum {
    CHECK_SKIPPED = 77
};

/* Whether a sanitizer is in this program: gcc says so by a macro, clang by a feature. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CHECK_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CHECK_SANITIZED 1
#endif
#endif
#if !defined(CHECK_SANITIZED)
#define CHECK_SANITIZED 0
#endif

/* A broken library fails thousands of cases; the first few tell the story. */
enum {
    CHECK_PRINTED = 25
};

/* Of the program, of however many files it is made. */
__attribute__((weak)) long check_passed;
__attribute__((weak)) long check_failed;

__attribute__((format(printf, 4, 5))) static inline int check_that(const char *file, int line, int holds,
                                                                   const char *format, ...) {
    if (holds) {
        check_passed++;
        return 1;
    }
    check_failed++;
    if (check_failed <= CHECK_PRINTED) {
        const char *slash = strrchr(file, '/');
        printf("%s:%d: ", slash ? slash + 1 : file, line);
        va_list arguments;
        va_start(arguments, format);
        vprintf(format, arguments);
        va_end(arguments);
        printf("\n");
    } else if (check_failed == CHECK_PRINTED + 1) {
        printf("further failures are counted, not printed\n");
    }
    fflush(stdout);
    return 0;
}

/* CHECK(condition, "sentence with expected and got", ...); its value is the condition. */
#define CHECK(holds, ...) check_that(__FILE__, __LINE__, (holds) ? 1 : 0, __VA_ARGS__)

/* The status is an argument of a function, so that a call in its place is made once. */
static inline int check_ok(const char *file, int line, onepass_status status, const char *what) {
    return check_that(file, line, status == ONEPASS_OK, "%s: expected ONEPASS_OK, got %s: %s", what,
                      onepass_status_name(status), onepass_message());
}

#define CHECK_OK(status, what) check_ok(__FILE__, __LINE__, (status), (what))

static inline int check_bits(const char *file, int line, uint64_t expected, uint64_t got, const char *what) {
    return check_that(file, line, expected == got, "%s: expected bits %" PRIx64 ", got %" PRIx64, what, expected, got);
}

#define CHECK_BITS(expected, got, what) check_bits(__FILE__, __LINE__, (expected), (got), (what))

static inline int check_finish(void) {
    printf("%ld passed, %ld failed\n", check_passed, check_failed);
    return check_failed || !check_passed ? 1 : 0;
}

static inline int check_skip(const char *reason) {
    printf("skipped: %s\n", reason);
    return CHECK_SKIPPED;
}

/* ONEPASS_TEST_QUICK=1 trims sizes, for sanitizers and emulators. Says what it leaves out. */
static inline int check_quick(const char *left_out) {
    const char *quick = getenv("ONEPASS_TEST_QUICK");
    if (!quick || strcmp(quick, "1") != 0) {
        return 0;
    }
    printf("ONEPASS_TEST_QUICK: left out: %s\n", left_out);
    return 1;
}

/* ONEPASS_TEST_CASES=25 takes one of 25 cases of the list of pairwise losses, and one of 5 of the lists of rows and
 * vectors, which are that much shorter: `share` is 1 or 5. For sanitizers; the golden file has the bits of all. */
static inline size_t check_one_of(long share) {
    const char *cases = getenv("ONEPASS_TEST_CASES");
    const long one_of = cases ? (strtol(cases, NULL, 10) + share - 1) / share : 0;
    if (one_of < 2) {
        return 1;
    }
    printf("ONEPASS_TEST_CASES: left out: all but one of %ld cases of the list\n", one_of);
    return (size_t)one_of;
}

/* Each time another one of them: lists have loops of few steps in them. */
static inline int check_takes(size_t index, size_t one_of) {
    return (index + index / one_of) % one_of == 0;
}

#endif
