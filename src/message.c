/* The message of a thread's last call, apart so that everybody can fail in one line. */
#include "message.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static _Thread_local char message[1024];

onepass_status onepass_fail(onepass_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return status;
}

onepass_status onepass_succeed(void) {
    message[0] = '\0';
    return ONEPASS_OK;
}

const char *onepass_message(void) {
    return message;
}

number_text onepass_in_digits(double number) {
    number_text text;
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text.characters, sizeof text.characters, "%.*g", digits, number);
        if (strtod(text.characters, NULL) == number)
            break;
    }
    return text;
}

const char *onepass_status_name(onepass_status status) {
    switch (status) {
    case ONEPASS_OK:
        return "ONEPASS_OK";
    case ONEPASS_INVALID_ARGUMENT:
        return "ONEPASS_INVALID_ARGUMENT";
    case ONEPASS_INVALID_SHAPE:
        return "ONEPASS_INVALID_SHAPE";
    case ONEPASS_INVALID_MEMORY:
        return "ONEPASS_INVALID_MEMORY";
    case ONEPASS_NOT_SUPPORTED:
        return "ONEPASS_NOT_SUPPORTED";
    case ONEPASS_NO_DEVICE:
        return "ONEPASS_NO_DEVICE";
    case ONEPASS_OUT_OF_MEMORY:
        return "ONEPASS_OUT_OF_MEMORY";
    case ONEPASS_INCOMPLETE:
        return "ONEPASS_INCOMPLETE";
    case ONEPASS_DEVICE_FAILED:
        return "ONEPASS_DEVICE_FAILED";
    case ONEPASS_OUT_OF_BOUNDS:
        return "ONEPASS_OUT_OF_BOUNDS";
    }
    return "an unknown status";
}
