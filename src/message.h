/* How a function fails: with a status, and with a sentence in the calling thread's message. */
#ifndef ONEPASS_MESSAGE_H
#define ONEPASS_MESSAGE_H

#include "internal.h"
#include "onepass.h"

/* Sets the message and returns the status. */
ONEPASS_INTERNAL onepass_status onepass_fail(onepass_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Empties the message. */
ONEPASS_INTERNAL onepass_status onepass_succeed(void);

typedef struct number_text {
    char characters[32];
} number_text;

/* A number for a message: as %g has it where that reads back as the same number, and else with as many digits more as
 * that takes. Rounded ones contradict each other: "9.0072e+15; expected at most 9.0072e+15". */
ONEPASS_INTERNAL number_text onepass_in_digits(double number);

#define FAIL_ARGUMENT(...) return onepass_fail(ONEPASS_INVALID_ARGUMENT, __VA_ARGS__)
#define FAIL_SHAPE(...)    return onepass_fail(ONEPASS_INVALID_SHAPE, __VA_ARGS__)
#define FAIL_MEMORY(...)   return onepass_fail(ONEPASS_INVALID_MEMORY, __VA_ARGS__)

/* Returns from a function as soon as something in it has failed. */
#define OK(expression)                                                                                                 \
    do {                                                                                                               \
        const onepass_status status_ = (expression);                                                                   \
        if (status_ != ONEPASS_OK)                                                                                     \
            return status_;                                                                                            \
    } while (0)

#endif
