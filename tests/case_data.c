/*
 * The numbers that the cases are made of. No function of libm has a part in them,
 * since those differ between machines.
 */
#include "cases.h"

uint64_t random_bits(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

int64_t random_below(uint64_t *state, int64_t below) {
    return (int64_t)(random_bits(state) % (uint64_t)below);
}

/* -1 to 1 on a grid of 2^-30, so that every step of the arithmetic is exact. */
static double random_uniform(uint64_t *state) {
    return (double)((int64_t)(random_bits(state) >> 33) - (INT64_C(1) << 30)) / 1073741824.0;
}

/* The sum of a few uniform numbers is close to a bell curve, by additions alone. Four coarse
 * ones come out of one draw, the fifth gives the low bits. */
static double random_bell(uint64_t *state) {
    const uint64_t bits = random_bits(state);
    int64_t sum = 0;
    for (int i = 0; i < 4; i++) {
        sum += (int64_t)(bits >> 16 * i & 0xffff) - 0x8000;
    }
    return (double)sum / 32768.0 + random_uniform(state);
}

/* 2^exponent for the exponents of normal doubles. */
static double power_of_two(int64_t exponent) {
    return oracle_double_from_bits((uint64_t)(exponent + 1023) << 52);
}

static double random_scaled(uint64_t *state, int64_t least, int64_t most) {
    return random_uniform(state) * power_of_two(least + random_below(state, most - least + 1));
}

static double random_huge(uint64_t *state, int32_t dtype) {
    switch (dtype) {
    case ONEPASS_F16:
        return random_scaled(state, 10, 17); /* some are beyond 65504 and become infinite */
    case ONEPASS_F64:
        return random_scaled(state, 480, 1023);
    default:
        return random_scaled(state, 55, 127);
    }
}

static double random_tiny(uint64_t *state, int32_t dtype) {
    const int denormal = random_below(state, 2) == 0;
    switch (dtype) {
    case ONEPASS_F16:
        return denormal ? random_scaled(state, -25, -14) : random_scaled(state, -12, -8);
    case ONEPASS_F64:
        return denormal ? random_scaled(state, -52, 0) * power_of_two(-1022) : random_scaled(state, -540, -505);
    default:
        return denormal ? random_scaled(state, -149, -126) : random_scaled(state, -75, -60);
    }
}

/* Quiet and signalling NaN of both signs and with payloads, and infinities. */
static uint64_t random_special(uint64_t *state, int32_t dtype) {
    static const uint64_t faces[4][6] = {
        {0x7e00, 0xfe00, 0x7d01, 0xffff, 0x7c00, 0xfc00},
        {0x7fc0, 0xffc0, 0x7f81, 0xffff, 0x7f80, 0xff80},
        {0x7fc00000, 0xffc00000, 0x7f800001, 0xffffffff, 0x7f800000, 0xff800000},
        {UINT64_C(0x7ff8000000000000), UINT64_C(0xfff8000000000000), UINT64_C(0x7ff0000000000001), UINT64_MAX,
         UINT64_C(0x7ff0000000000000), UINT64_C(0xfff0000000000000)},
    };
    return faces[dtype - ONEPASS_F16][random_below(state, 6)];
}

static double random_kink(uint64_t *state, double parameter) {
    const double points[] = {0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, parameter, -parameter, 2 * parameter};
    return points[random_below(state, sizeof points / sizeof points[0])];
}

uint64_t random_element(uint64_t *state, int32_t data, int32_t dtype, double parameter) {
    double value = 0;
    switch (data) {
    case DATA_UNIFORM:
        value = random_uniform(state);
        break;
    case DATA_HUGE:
        value = random_huge(state, dtype);
        break;
    case DATA_TINY:
        value = random_tiny(state, dtype);
        break;
    case DATA_WIDE:
        value = random_scaled(state, -40, 40);
        break;
    case DATA_KINK:
        value = random_kink(state, parameter);
        break;
    case DATA_SPECIAL:
        if (random_below(state, 6) == 0) {
            return random_special(state, dtype);
        }
        value = 2 * random_uniform(state);
        break;
    default:
        value = random_bell(state);
    }
    return oracle_encode(dtype, value);
}

uint64_t random_operand(uint64_t *state, int32_t data, oracle_domain domain, int32_t dtype, double parameter) {
    const uint64_t bits = random_element(state, data, dtype, parameter);
    if (domain == ORACLE_ANY || data == DATA_SPECIAL || data == DATA_KINK) {
        return bits;
    }
    const double value = oracle_decode(dtype, bits);
    const double magnitude = value < 0 ? -value : value;
    const int64_t choice = domain == ORACLE_POSITIVE ? 0 : random_below(state, 8);
    if (domain == ORACLE_POSITIVE) {
        return oracle_encode(dtype, magnitude);
    }
    if (domain == ORACLE_PROBABILITY) {
        return oracle_encode(dtype, choice < 2 ? (double)choice : magnitude <= 1 ? magnitude : 1 / magnitude);
    }
    return choice == 0 ? bits : oracle_encode(dtype, value < 0 ? -1 : 1);
}

uint64_t random_weight(uint64_t *state, int32_t weights, int32_t dtype) {
    switch (weights) {
    case WEIGHTS_SIGNED:
        return random_element(state, DATA_UNIFORM, dtype, 0);
    case WEIGHTS_SPARSE:
        return oracle_encode(dtype, random_below(state, 5) ? 0.0 : 1.0);
    case WEIGHTS_ZERO:
        return oracle_encode(dtype, random_below(state, 2) ? 0.0 : -0.0);
    case WEIGHTS_ONE:
        return oracle_encode(dtype, 1.0);
    case WEIGHTS_WIDE:
        return random_element(state, DATA_WIDE, dtype, 0);
    case WEIGHTS_SPECIAL:
        return random_element(state, DATA_SPECIAL, dtype, 0);
    default:
        return oracle_encode(dtype, 1.0 + 0.5 * random_uniform(state));
    }
}

/* Whatever is not 0 is yes. */
uint64_t random_mask(uint64_t *state, int32_t masks) {
    static const uint64_t yes[] = {1, 1, 1, 2, 0x80, 0xff};
    const int64_t choice = random_below(state, masks == MASKS_SPARSE ? 10 : 2);
    const int takes_part = masks == MASKS_ALL || (masks != MASKS_NONE && choice == 0);
    return takes_part ? yes[random_below(state, sizeof yes / sizeof yes[0])] : 0;
}
