/*
 * Stands in for libFuzzer where there is none: runs pseudo-random inputs, always the same ones, and the files of a
 * corpus. Usage: fuzz_driver COUNT [FILE...]. No coverage guides it, so it finds less; but it runs everywhere.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

enum {
    LONGEST = 512,
    PRINTED = 10
};

static uint64_t state = 0x9e3779b97f4a7c15u;

static uint32_t next_random(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}

/* True if the input passed. */
static bool run(const uint8_t *input, size_t size) {
    long failures = fuzz_failures;
    LLVMFuzzerTestOneInput(input, size);
    return fuzz_failures == failures;
}

/* Bytes of all kinds make calls that are wrong in many ways at once; bytes that are mostly small, good ones. */
static size_t make_input(uint8_t *input) {
    size_t size = next_random() % LONGEST;
    uint32_t tame = next_random() % 4;
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = (uint8_t)next_random();
        input[i] = next_random() % 4 < tame ? byte % 96 : byte;
    }
    return size;
}

static bool run_file(const char *path) {
    uint8_t input[4096];
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fprintf(stderr, "%s: cannot be read\n", path);
        return false;
    }
    size_t size = fread(input, 1, sizeof input, file);
    fclose(file);
    return run(input, size);
}

int main(int argc, char **argv) {
    long count = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    if (count <= 0) {
        fprintf(stderr, "usage: %s COUNT [FILE...]\n", argv[0]);
        return 2;
    }
    long passed = 0, failed = 0;
    fuzz_goes_on = true;
    for (int i = 2; i < argc; i++)
        *(run_file(argv[i]) ? &passed : &failed) += 1;
    for (long i = 0; i < count; i++) {
        uint8_t input[LONGEST];
        if (run(input, make_input(input))) {
            passed++;
        } else if (++failed <= PRINTED) {
            fprintf(stderr, "input %ld failed\n", i);
        }
    }
    printf("%ld inputs\n%ld passed, %ld failed\n", passed + failed, passed, failed);
    return failed > 0 ? 1 : 0;
}
