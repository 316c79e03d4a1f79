/*
 * A fuzzer of accumulators' bytes. Whatever they are, an import stays inside them; a failure has a sentence; and what
 * can be imported says the same when it is exported and imported again, does not merge with itself, and merges with an
 * empty one into itself.
 *
 * A checksum keeps made-up bytes out, so they are tried as they are and once more as an impostor would send them, with
 * the right beginning, size and checksum, and with the name of a loss. Under libFuzzer this is the whole program;
 * elsewhere fuzz_driver.c calls it with pseudo-random bytes.
 */
#include "fuzz.h"
#include "onepass.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

long fuzz_failures;
bool fuzz_goes_on;

enum {
    LEAST = 232, /* bytes of an accumulator without slices */
    MOST = 1 << 16,
    NAME = 24,
    NAME_SIZE = 64,
    PLAIN_NUMBERS = NAME + NAME_SIZE
};

static void fuzz_check(bool holds, const char *otherwise) {
    if (holds)
        return;
    fuzz_failures++;
    fprintf(stderr, "%s: \"%s\"\n", otherwise, onepass_message());
    if (!fuzz_goes_on)
        abort();
}

static void *allocate(size_t size) {
    void *memory = malloc(size ? size : 1);
    if (!memory)
        abort();
    return memory;
}

/* ------------------------------------------------------------- what is imported -- */

static unsigned char *exported(const onepass_accumulator *accumulator, size_t *size) {
    fuzz_check(onepass_accumulator_export(accumulator, NULL, 0, size) == ONEPASS_OK, "a size is refused");
    unsigned char *bytes = allocate(*size);
    fuzz_check(onepass_accumulator_export(accumulator, bytes, *size, size) == ONEPASS_OK, "an export is refused");
    return bytes;
}

/* Of NaN another face may have come in than goes out, so what goes out is compared. */
static void check_again(const onepass_accumulator *accumulator) {
    size_t size = 0, again_size = 0;
    unsigned char *bytes = exported(accumulator, &size);
    onepass_accumulator *again = NULL;
    if (onepass_accumulator_import(&again, bytes, size) == ONEPASS_OK) {
        unsigned char *again_bytes = exported(again, &again_size);
        fuzz_check(size == again_size && memcmp(bytes, again_bytes, size) == 0, "an export changes");
        free(again_bytes);
    } else {
        fuzz_check(false, "what was exported is refused");
    }
    onepass_accumulator_destroy(again);
    free(bytes);
}

static void check_imported(onepass_accumulator *accumulator) {
    onepass_accumulator_info info = {.size = sizeof info};
    double value = 0;
    const onepass_tensor v = {.data = &value, .dtype = ONEPASS_F64};
    onepass_accumulator *empty = NULL;
    check_again(accumulator);
    fuzz_check(onepass_accumulator_describe(accumulator, &info) == ONEPASS_OK, "it does not describe itself");
    fuzz_check(info.added >= 0 && info.added <= info.total && info.missing <= info.missing_end &&
                   info.missing_end <= info.total,
               "it has more than all");
    fuzz_check(onepass_accumulator_finish(accumulator, &v) ==
                   (info.added == info.total ? ONEPASS_OK : ONEPASS_INCOMPLETE),
               "it ends too early or not at all");
    fuzz_check((onepass_accumulator_merge(accumulator, accumulator) == ONEPASS_OK) == (info.added == 0),
               "it merges with itself");
    onepass_call call = {.size = sizeof call,
                         .loss = info.loss,
                         .reduction = info.reduction,
                         .parameter_count = info.parameter_count,
                         .divisor = info.divisor};
    memcpy(call.parameter, info.parameter, sizeof call.parameter);
    fuzz_check(onepass_accumulator_begin(&empty, &call, info.total) == ONEPASS_OK, "nothing begins like it");
    fuzz_check(onepass_accumulator_merge(empty, accumulator) == ONEPASS_OK, "it does not merge with nothing");
    check_again(empty);
    onepass_accumulator_destroy(empty);
}

static void try_bytes(const unsigned char *bytes, size_t size) {
    onepass_accumulator *accumulator = NULL;
    if (onepass_accumulator_import(&accumulator, bytes, size) == ONEPASS_OK)
        check_imported(accumulator);
    else
        fuzz_check(!accumulator && onepass_message()[0] != '\0', "a failure has no sentence, or an accumulator");
    onepass_accumulator_destroy(accumulator);
}

/* ----------------------------------------------------------------- an impostor -- */

static uint64_t number_at(const unsigned char *at) {
    uint64_t number = 0;
    for (int i = 0; i < 8; i++)
        number += (uint64_t)at[i] << 8 * i;
    return number;
}

static void set_number(unsigned char *at, uint64_t number) {
    for (int i = 0; i < 8; i++)
        at[i] = (unsigned char)(number >> 8 * i);
}

static const onepass_loss_info *loss_for(unsigned choice) {
    static const onepass_loss_info *(*const lists[])(int32_t) = {onepass_loss_at, onepass_row_loss_at,
                                                                 onepass_vector_loss_at};
    const onepass_loss_info *loss = lists[choice % 3]((int32_t)(choice / 3 % 8));
    return loss ? loss : lists[choice % 3](0);
}

/* Random words are seldom those of a header: by the last byte's bits they are made small, the parameters the defaults,
 * and the nodes and torn tiles as many as can be. */
static void dress(unsigned char *bytes, size_t size, unsigned choice) {
    const onepass_loss_info *loss = loss_for(choice);
    memcpy(bytes, "\x89onepass", 8);
    set_number(bytes + 8, 2);
    set_number(bytes + 16, size);
    if (choice & 128 || bytes[NAME] == 0) {
        memset(bytes + NAME, 0, NAME_SIZE);
        memcpy(bytes + NAME, loss->name, strlen(loss->name));
        set_number(bytes + PLAIN_NUMBERS, choice & 1);
        set_number(bytes + PLAIN_NUMBERS + 8, 3 + (choice >> 1 & 1));
        set_number(bytes + PLAIN_NUMBERS + 16, bytes[PLAIN_NUMBERS + 16] % 16);
        memset(bytes + PLAIN_NUMBERS + 24, 0, 72); /* parameters and divisor */
        for (int32_t i = 0; i < loss->parameter_count; i++)
            memcpy(bytes + PLAIN_NUMBERS + 24 + 8 * i, &loss->parameter[i].default_value, 8);
        if (choice & 64)
            set_number(bytes + PLAIN_NUMBERS + 128, choice >> 5 & 1); /* of class weights */
        for (int i = 0; i < 4; i++)                                   /* total, length, nodes, torn tiles */
            set_number(bytes + PLAIN_NUMBERS + 96 + 8 * i,
                       number_at(bytes + PLAIN_NUMBERS + 96 + 8 * i) >> (i ? 61 : 40));
    }
    uint64_t sum = size - 8;
    for (size_t at = 0; at + 8 < size; at += 8) {
        sum = (sum ^ number_at(bytes + at)) * 0x9e3779b97f4a7c15u;
        sum ^= sum >> 32;
    }
    set_number(bytes + size - 8, sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > MOST)
        return 0;
    unsigned char *bytes = allocate(size);
    if (size > 0)
        memcpy(bytes, data, size);
    try_bytes(bytes, size);
    const size_t dressed_size = size < LEAST ? LEAST : size / 8 * 8;
    unsigned char *dressed = allocate(dressed_size);
    memset(dressed, 0, dressed_size);
    if (size > 0)
        memcpy(dressed, data, size < dressed_size ? size : dressed_size);
    dress(dressed, dressed_size, size > 0 ? data[size - 1] : 0);
    try_bytes(dressed, dressed_size);
    free(dressed);
    free(bytes);
    return 0;
}
