/*
 * A library whose structs have grown, and a program that was built before: this one. The library's sources are compiled
 * against a header with fields appended to onepass_call and onepass_machine_info (see arguments.cmake). Each struct
 * ends where an unreadable page begins, so that the library cannot look beyond it, nor write there.
 */
#define _GNU_SOURCE
#include "check.h"
#include "fence.h"

#define HOLDS(condition) CHECK(condition, "%s does not hold", #condition)

/* What the appended fields take in the library. */
enum {
    GROWN_BY = 24
};

/* Zeroed memory that ends where nothing is readable. */
static char *at_fence(size_t size) {
    const fenced f = fence(size);
    return f.begin + f.bytes - size;
}

/* A call of that size, with zeros where this header ends; the value, or -1. */
static float run_with_size(size_t size, size_t used_byte) {
    static const float prediction[3] = {1, 2, 4}, target[3] = {0, 0, 0};
    static const int64_t shape[1] = {3};
    float value = -1;
    const onepass_tensor p = {(void *)(uintptr_t)prediction, ONEPASS_F32, 1, shape, NULL};
    const onepass_tensor t = {(void *)(uintptr_t)target, ONEPASS_F32, 1, shape, NULL};
    const onepass_tensor v = {&value, ONEPASS_F32, 0, NULL, NULL};
    const onepass_call call = {.size = size, .loss = "mse", .operand = {&p, &t}, .value = &v};
    char *memory = at_fence(size);
    memcpy(memory, &call, sizeof call);
    if (used_byte) {
        memory[used_byte] = 1;
    }
    return onepass_run((const onepass_call *)memory) == ONEPASS_OK ? value : -1;
}

static void test_call(void) {
    HOLDS(run_with_size(sizeof(onepass_call), 0) == 7);
    HOLDS(run_with_size(sizeof(onepass_call) + 8, 0) == 7); /* of a version in between */
    HOLDS(run_with_size(sizeof(onepass_call) + GROWN_BY, 0) == 7);
    HOLDS(run_with_size(sizeof(onepass_call) + GROWN_BY + 40, 0) == 7); /* and of one after it */
    HOLDS(run_with_size(sizeof(onepass_call) + GROWN_BY, sizeof(onepass_call)) == 7);
    HOLDS(run_with_size(sizeof(onepass_call) + GROWN_BY + 40, sizeof(onepass_call) + GROWN_BY) == -1);
    CHECK(strstr(onepass_message(), "does not know") != NULL, "got \"%s\"", onepass_message());
}

static void test_machine(void) {
    for (size_t more = 0; more <= GROWN_BY + 40; more += 8) {
        const size_t size = sizeof(onepass_machine_info) + more;
        char *memory = at_fence(size);
        onepass_machine_info *info = (onepass_machine_info *)memory;
        memset(memory, 0xa5, size);
        info->size = size;
        CHECK_OK(onepass_machine(info), "machine");
        HOLDS(info->size == size && info->threads >= 1 && info->instruction_set[0] != '\0');
        for (size_t i = sizeof *info; i < size; i++) {
            CHECK(memory[i] == 0, "expected 0 in byte %zu, which is of no field here, got %x", i, memory[i] & 0xffu);
        }
    }
}

int main(void) {
    test_call();
    test_machine();
    return check_finish();
}
