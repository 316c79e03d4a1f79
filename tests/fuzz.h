/* What a fuzzer and the driver that stands in for libFuzzer know of each other. */
#ifndef ONEPASS_TESTS_FUZZ_H
#define ONEPASS_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One input. The name is libFuzzer's. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Checks that failed so far, and whether to go on after one instead of aborting. */
extern long fuzz_failures;
extern bool fuzz_goes_on;

#endif
