#include "number.h"
#include "layout.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bits of the fraction, and the exponent of the smallest normal number. */
static const struct {
    int fraction, least_exponent;
} kinds[] = {
    [ONEPASS_F16] = {10, -14}, [ONEPASS_BF16] = {7, -126}, [ONEPASS_F32] = {23, -126}, [ONEPASS_F64] = {52, -1022}};

static double half_value(uint16_t bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double magnitude = exponent == 31  ? (fraction ? (double)NAN : (double)INFINITY)
                             : exponent == 0 ? ldexp(fraction, -24)
                                             : ldexp(1024 + fraction, exponent - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
}

double number_value(const number *number) {
    switch (number->dtype) {
    case ONEPASS_F16:
        return half_value(number->bits.b16);
    case ONEPASS_BF16: {
        const uint32_t widened = (uint32_t)number->bits.b16 << 16;
        float value;
        memcpy(&value, &widened, sizeof value);
        return (double)value;
    }
    case ONEPASS_F32:
        return (double)number->bits.f32;
    default:
        return number->bits.f64;
    }
}

/* The distance to a neighbour; half of that to the one below a power of two. */
static double spacing(int32_t dtype, double value) {
    int exponent;
    frexp(value, &exponent); /* value < 2^exponent */
    const int least = kinds[dtype].least_exponent;
    return ldexp(1, (exponent - 1 > least ? exponent - 1 : least) - kinds[dtype].fraction);
}

void number_digits(const number *number, char *text, size_t size) {
    const double value = number_value(number);
    if (isnan(value) || isinf(value)) {
        snprintf(text, size, "%s", isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
        return;
    }
    /* Nearer than a quarter of the spacing is nearer to it than to either neighbour. Doubles have no room for that. */
    const double slack = number->dtype == ONEPASS_F64 ? 0 : spacing(number->dtype, value) / 4;
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, size, "%.*g", digits, value);
        if (fabs(strtod(text, NULL) - value) <= slack)
            return;
    }
}

void number_hex(const number *number, char *text, size_t size) {
    if (onepass_dtype_size(number->dtype) == 2)
        snprintf(text, size, "0x%04x", (unsigned)number->bits.b16);
    else if (onepass_dtype_size(number->dtype) == 4)
        snprintf(text, size, "0x%08lx", (unsigned long)number->bits.b32);
    else
        snprintf(text, size, "0x%016llx", (unsigned long long)number->bits.b64);
}
