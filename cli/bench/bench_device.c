/* What the two devices of `onepass bench` share: see bench_device.h. */
#include "bench_device.h"

#include <string.h>

const char *bench_mode_name(bench_mode mode) {
    return mode == BENCH_BOTH ? "both" : "forward";
}

double bench_bytes(int32_t dtype, bench_mode mode, int64_t count) {
    return (mode == BENCH_BOTH ? 3.0 : 2.0) * (double)dtype_bytes(dtype) * (double)count;
}

void bench_call_make(bench_call *made, const bench_group *group, int loss, void *const array[BENCH_ARRAYS],
                     void *value) {
    memset(made, 0, sizeof *made);
    made->shape = group->count;
    made->prediction = (onepass_tensor){array[0], group->dtype, 1, &made->shape, NULL};
    made->target = (onepass_tensor){array[1], group->dtype, 1, &made->shape, NULL};
    made->gradient = (onepass_tensor){array[2], group->dtype, 1, &made->shape, NULL};
    made->value = (onepass_tensor){value, group->dtype, 0, NULL, NULL};
    made->call = (onepass_call){.size = sizeof(onepass_call),
                                .loss = group->loss[loss],
                                .operand = {&made->prediction, &made->target},
                                .value = &made->value};
    if (group->mode == BENCH_BOTH)
        made->call.gradient[ONEPASS_PREDICTION] = &made->gradient;
}

/* ------------------------------------------------------------------- numbers -- */

/* xorshift64*: quick, and random enough for numbers that are only read. */
static uint64_t next_random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1du;
}

/* Sign, one of the three exponents below that of 2, and mantissa, from the bits of a random number. */
static uint64_t random_float(uint64_t random, int mantissa_bits, int exponent_of_one, int sign_bit) {
    const uint64_t exponent = (uint64_t)exponent_of_one - random % 3;
    return (random >> 63) << sign_bit | exponent << mantissa_bits |
           (random >> 4 & ((UINT64_C(1) << mantissa_bits) - 1));
}

void bench_numbers(void *numbers, int32_t dtype, uint64_t seed) {
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    for (int i = 0; i < BENCH_PERIOD; i++) {
        const uint64_t random = next_random(&state);
        switch (dtype) {
        case ONEPASS_F16:
            ((uint16_t *)numbers)[i] = (uint16_t)random_float(random, 10, 15, 15);
            break;
        case ONEPASS_BF16:
            ((uint16_t *)numbers)[i] = (uint16_t)random_float(random, 7, 127, 15);
            break;
        case ONEPASS_F32:
            ((uint32_t *)numbers)[i] = (uint32_t)random_float(random, 23, 127, 31);
            break;
        default:
            ((uint64_t *)numbers)[i] = random_float(random, 52, 1023, 63);
        }
    }
}
