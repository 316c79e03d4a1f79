/* A number of any of the types, as people, programs and bit counters read it. */
#ifndef ONEPASS_CLI_NUMBER_H
#define ONEPASS_CLI_NUMBER_H

#include <stddef.h>
#include <stdint.h>

typedef struct number {
    int32_t dtype;
    union {
        uint16_t b16;
        uint32_t b32;
        uint64_t b64;
        float f32;
        double f64;
    } bits;
} number;

double number_value(const number *number);

/* As few digits as tell it from its neighbours of the same type; "nan", "inf", "-inf". */
void number_digits(const number *number, char *text, size_t size);

/* "0x3ec00000": as many digits as the type has. */
void number_hex(const number *number, char *text, size_t size);

#endif
