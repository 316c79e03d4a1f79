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
